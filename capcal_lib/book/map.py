"""The reproduction map: which notebook cell or page shows each item of the paper.

``data_manifests/paper.yaml`` lists the items of the paper. A notebook cell names in its metadata
those that it shows::

    # %% label="main-scores" paper=["table-2"] evidence=["measured"] reads=["verdicts",
    "confidences", "features"]

``label`` is unique (a figure's own name serves too). ``paper`` lists keys of items, ``evidence``
the marks that the page of the default model shows, and ``reads`` the files behind the cell: of a
run (samples, verdicts, confidences, features) or of reported numbers."""

import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from capcal_lib.book.layout import TOP
from capcal_lib.manifests import read_yaml
from capcal_lib.places import MANIFESTS, NOTEBOOKS

HEAD = """# What is where in the paper

Where does this book treat each section, theorem, equation, table and figure of the paper
{cite:p}`yang2026capability`? This page is made from the notebooks, so it agrees with them. The mark
shows the evidence on the page of the default model. Files lie in `runs/recorded/MODEL`, and tables
in `data_manifests/reported`.

- *Partly*: some of the item is missing, as stated.
- *Given samples*: the book measures the item as soon as samples of the paper's models are there. A
  rehearsal of the whole experiment, with a stand-in for such a model, shows this.
- *In words only*: the paper gives no number there, and nothing is computed here.

"""
PART = """
## {item.number}: {item.title}

:::{{list-table}}
:class: fits cards
:header-rows: 1
:widths: 24 38 12 26

* - In the paper
  - Here
  - Evidence
  - Files"""
ROW = """
* - **{{index}}`!{item.number}`** {item.title}
  - {places}
  - {badges}
  - {files}"""
UNSAMPLED = "there are no samples of the paper's models here; *given samples*, it is measured"


@dataclass(frozen=True)
class Item:
    """An item of the paper.

    ``pages`` are written pages that treat it. ``why`` says why nothing is computed, and ``lacking``
    what is missing here. If it were not missing, the code of the item's notebooks would match the
    regular expression ``unless``. A ``measurable`` item is measured if there are samples of the
    paper's models.
    """

    key: str
    kind: str  # section, appendix, table, figure, theorem or equation
    number: str
    title: str
    label: str | None = None
    pages: tuple[str, ...] = ()
    why: str | None = None
    lacking: str | None = None
    unless: str | None = None
    measurable: bool = False


class Cell(NamedTuple):
    """A notebook cell that shows an item of the paper."""

    notebook: str
    section: str  # the heading above what it shows, empty below the title
    metadata: dict[str, Any]

    @property
    def place(self) -> str:
        from myst_parser.mdit_to_docutils.base import default_slugify

        page = f"../notebooks/{self.notebook}.ipynb"
        section = f" – []({page}#{default_slugify(self.section)})" if self.section else ""
        return f"[]({page}){section}"


def load_items() -> list[Item]:
    """List everything in the paper.

    >>> [item.key for item in load_items() if item.kind == "theorem"]
    ['theorem-1', 'theorem-2']
    """
    return [Item(**entry) for entry in read_yaml(MANIFESTS / "paper.yaml")["items"]]


def notebook_cells() -> list[Cell]:
    """List the cells of all notebooks that name an item of the paper.

    A cell that the book lifts below the title of its page (``layout.TOP``) has no section.
    """
    cells = []
    for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
        section = ""
        for cell in json.loads(path.read_bytes())["cells"]:
            metadata, source = cell["metadata"], "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                headings = re.findall(r"^## (.+)$", source, flags=re.MULTILINE)
                section = [section, *headings][-1]
            elif "paper" in metadata:
                lifted = {*TOP} & {*metadata.get("tags", ())}
                cells.append(Cell(path.stem, "" if lifted else section, metadata))
    return cells


def map_page() -> str:
    """Return the reproduction map in MyST. Links without a text take the title of their target."""
    cells = notebook_cells()
    parts = []
    for item in load_items():
        if item.kind in ("section", "appendix") and "." not in item.number:
            parts.append(PART.format(item=item))
        made = [cell for cell in cells if item.key in cell.metadata["paper"]]
        places = [cell.place for cell in made]
        places += [re.sub(r"^[^#]*", r"[](../\g<0>.md", page) + ")" for page in item.pages]
        lacking = [UNSAMPLED] if item.measurable else []
        if item.lacking:
            lacking.append(item.lacking)
        if item.why:
            places.append(item.why)
        if lacking:
            places.append(f"*partly*: {'; '.join(lacking)}")
        marks = dict.fromkeys(mark for cell in made for mark in cell.metadata["evidence"])
        badges = [f"[{mark}]{{.evidence .{mark.replace(' ', '-')}}}" for mark in marks]
        files = dict.fromkeys(file for cell in made for file in cell.metadata.get("reads", ()))
        parts[-1] += ROW.format(
            item=item,
            places="; ".join(dict.fromkeys(places)),
            badges=" ".join(badges),
            files=", ".join(files),
        )
    return HEAD + "\n:::\n".join([*parts, ""])
