"""The reproduction map: for everything in the paper, the notebook cell or page that has it.

``data_manifests/paper.yaml`` lists what the paper has. A notebook cell names in its own metadata
what it makes::

    # %% label="main-scores" paper=["table-2"] evidence=["measured"] reads=["verdicts",
    "confidences", "features"]

``label`` is unique (a figure's own name serves too), ``paper`` lists keys of the paper's items,
``evidence`` the marks that the page of the default model shows, and ``reads`` the files behind it,
of a run or of reported numbers."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from capcal_lib.manifests import BOOK, MANIFESTS, NOTEBOOKS, read_yaml

RUN_FILES = ("samples", "verdicts", "confidences", "features")  # others are printed tables
HEAD = """# What is where in the paper

Everything in the paper {cite:p}`yang2026capability` that has a number or a heading, in its order,
and the page that has it here: notebook cells by their section, written pages by theirs. This page
is made from the notebooks themselves, so it cannot fall behind them. The mark is that of the page
of the default model, from recorded runs. Files are those of `runs/recorded/MODEL`, and tables
those of `data_manifests/reported`. *Partly*: some of the item is missing, as stated. *Given
samples*: measured in a rehearsal of the whole experiment, in which a stand-in takes the place of a
model of the paper.
"""
MANY = 4  # tables that a cell names
UNSAMPLED = "of the paper's models there are no samples here; *given samples*, it is measured"


class Item(BaseModel):
    """Something in the paper.

    ``pages`` are written pages that treat it; ``why`` says why nothing is computed, ``lacking``
    what of it is not here. What is ``measurable`` is measured given samples of the paper's models.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    kind: Literal["section", "appendix", "table", "figure", "theorem", "equation"]
    number: str
    title: str
    label: str | None = None
    pages: tuple[str, ...] = ()
    why: str | None = None
    lacking: str | None = None
    measurable: bool = False


class Cell(BaseModel):
    """A notebook cell that makes something of the paper."""

    notebook: str
    title: str  # of the notebook
    section: str  # the heading above the cell
    label: str
    paper: list[str]
    evidence: list[str]
    reads: list[str] = []


def load_items(path: Path = MANIFESTS / "paper.yaml") -> list[Item]:
    """List everything in the paper.

    >>> [item.key for item in load_items() if item.kind == "theorem"]
    ['theorem-1', 'theorem-2']
    """
    return [Item.model_validate(entry) for entry in read_yaml(path)["items"]]


def notebook_cells(folder: Path = NOTEBOOKS) -> list[Cell]:
    """List the cells of all notebooks that name something of the paper."""
    found = []
    for path in sorted(folder.glob("[0-9]*.ipynb")):
        headings = [""]
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            metadata, source = cell["metadata"], "".join(cell["source"])
            if cell["cell_type"] == "markdown" or "notebook.say(" in source:
                headings += re.findall(r"^##? (?!needs )(.+)$", source, flags=re.MULTILINE)
            elif "paper" in metadata:
                label = metadata.get("label") or metadata["mystnb"]["figure"]["name"]
                section = headings[-1] if len(headings) > 2 else ""
                place = {"notebook": path.stem, "title": headings[1], "section": section}
                found.append(Cell.model_validate(metadata | place | {"label": label}))
    return found


def map_page() -> str:
    """Write the reproduction map in MyST."""
    cells = notebook_cells()
    lines = [HEAD]
    for item in load_items():
        part = item.kind in ("section", "appendix") and "." not in item.number
        if part and item.number != "Acknowledgements":
            fence = [":::", ""] if len(lines) > 1 else []
            alone = item.title in (item.number, "What the paper is about")
            heading = item.number if alone else f"{item.number}: {item.title}"
            lines += [*fence, f"## {heading}", "", ":::{list-table}", ":class: fits cards"]
            lines += [":header-rows: 1", ":widths: 24 38 12 26", ""]
            lines += ["* - In the paper", "  - Here", "  - Evidence", "  - Files"]
        lines += _row(item, [cell for cell in cells if item.key in cell.paper])
    return "\n".join([*lines, ":::", ""])


def _row(item: Item, cells: Sequence[Cell]) -> list[str]:
    found: dict[str, list[str]] = {}
    for cell in cells:
        target = f"../notebooks/{cell.notebook}.ipynb"
        sections = found.setdefault(f"[{cell.title}]({target})", [])
        sections += [f"[{cell.section}]({target}#{slug(cell.section)})"] if cell.section else []
    places = [
        f"{page}{' – ' * bool(each)}{', '.join(dict.fromkeys(each))}"
        for page, each in found.items()
    ]
    places += [_link(page) for page in item.pages]
    places += [item.why] if item.why else []
    lacking = [UNSAMPLED] * item.measurable + [item.lacking] * bool(item.lacking)
    places += [f"*partly*: {'; '.join(map(str, lacking))}"] if lacking else []
    marks = dict.fromkeys(mark for cell in cells for mark in cell.evidence)
    badges = [f"[{mark}]{{.evidence .{mark.replace(' ', '-')}}}" for mark in marks]
    files = dict.fromkeys(file for cell in cells for file in cell.reads)
    named = [file for file in files if file in RUN_FILES]
    printed = [f"`{file}.csv`" for file in files if file not in RUN_FILES]
    if len(printed) > MANY:
        printed = [f"{len(printed)} printed tables"]
    return [
        f"* - **{item.number}** {item.title}",
        f"  - {'; '.join(places)}",
        f"  - {' '.join(badges)}",
        f"  - {', '.join(named + printed)}",
    ]


def _link(page: str) -> str:
    """Link to a written page, or to its section, by its heading."""
    path, mark, section = page.partition("#")
    headings = re.findall(
        r"^#+ (.+)$", (BOOK / f"{path}.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    heading = next(each for each in headings if not section or slug(each) == section)
    return f"[{heading}](../{path}.md{mark}{section})"


def slug(heading: str) -> str:
    """Return the anchor of a heading, as the book's builder makes it.

    >>> slug("Theorem 1: two targets, two optima")
    'theorem-1-two-targets-two-optima'
    """
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
