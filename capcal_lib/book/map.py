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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from capcal_lib.book.tables import Evidence
from capcal_lib.errors import InputError, unknown
from capcal_lib.manifests import BOOK, MANIFESTS, NOTEBOOKS, read_yaml
from capcal_lib.reported import LATER_TABLES, TABLES

RUN_FILES = {  # by the word that a cell uses, within <store>/<model>/
    "samples": ("*-test/*/samples-*.parquet",),
    "verdicts": ("*-test/*/verdicts.parquet",),
    "confidences": ("*-test/*/confidence-*.parquet",),
    "features": (
        "*-test/*/features.parquet",
        "*-train/*/features.parquet",
        "*-train/*/verdicts.parquet",
    ),
}
REPORTED_FILES = {name: f"data_manifests/reported/{name}.csv" for name in TABLES} | {
    name: f"data_manifests/reported/reference_code/{name}.csv" for name in LATER_TABLES
}
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


@dataclass(frozen=True, slots=True)
class Cell:
    """A notebook cell that makes something of the paper."""

    notebook: str
    title: str  # of the notebook
    section: str  # the heading above the cell
    label: str
    paper: tuple[str, ...]
    evidence: tuple[str, ...]
    reads: tuple[str, ...]


def load_items(path: Path = MANIFESTS / "paper.yaml") -> list[Item]:
    """List everything in the paper; a key that stands twice is refused, and a file that is no such
    list.

    >>> [item.key for item in load_items() if item.kind == "theorem"]
    ['theorem-1', 'theorem-2']
    """
    try:
        items = [Item.model_validate(entry) for entry in read_yaml(path)["items"]]
    except (ValidationError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: not a list of the paper's items: {' '.join(str(error).split())}"
        ) from None
    _once(path.name, "key", [item.key for item in items])
    return items


def notebook_cells(folder: Path = NOTEBOOKS) -> list[Cell]:
    """List the cells of all notebooks that name something of the paper.

    A label that is missing or stands twice is refused, and so is unknown evidence or an unknown
    file."""
    cells = [cell for path in sorted(folder.glob("[0-9]*.ipynb")) for cell in _cells(path)]
    _once("the notebooks", "label", [cell.label for cell in cells])
    return cells


def _cells(path: Path) -> list[Cell]:
    found = []
    headings = [""]
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" or "notebook.say(" in source:
            headings += re.findall(r"^##? (?!needs )(.+)$", source, flags=re.MULTILINE)
            continue
        metadata = cell["metadata"]
        if "paper" not in metadata:
            continue
        label = metadata.get("label") or metadata.get("mystnb", {}).get("figure", {}).get("name")
        if not label:
            raise InputError(
                f"{path.name}: a cell for {', '.join(metadata['paper'])} has no label; give it one"
            )
        section = headings[-1] if len(headings) > 2 else ""
        one = Cell(
            notebook=path.stem,
            title=headings[1],
            section=section,
            label=label,
            paper=tuple(metadata["paper"]),
            evidence=tuple(metadata.get("evidence", ())),
            reads=tuple(metadata.get("reads", ())),
        )
        _known(one)
        found.append(one)
    return found


def _known(cell: Cell) -> None:
    if not cell.evidence:
        raise InputError(
            f"{cell.notebook}: cell {cell.label!r} names no evidence; give one or more"
        )
    for mark in cell.evidence:
        if mark not in get_args(Evidence):
            raise unknown(f"evidence of cell {cell.label!r}", mark, get_args(Evidence))
    for file in cell.reads:
        if file not in RUN_FILES and file not in REPORTED_FILES:
            raise unknown(f"file read by cell {cell.label!r}", file, [*RUN_FILES, *REPORTED_FILES])


def shown(folder: Path) -> dict[str, set[str]]:
    """Return the marks of what executed notebooks show of each item of the paper, by its key.

    An output without marks, such as a figure, has those that its cell declares; an item of which
    nothing is shown has no key."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            outputs = cell.get("outputs")
            if not outputs:
                continue
            marks = _marks(outputs) or set(cell["metadata"].get("evidence", ()))
            for key in cell["metadata"].get("paper", ()):
                found.setdefault(key, set()).update(marks)
    return found


def joined(items: Sequence[Item], cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Return the cells of each item, by its key, in the paper's order.

    Refused: a cell that names no item of the paper, and an item with neither cell, page nor reason.
    """
    rows: dict[str, list[Cell]] = {item.key: [] for item in items}
    for cell in cells:
        for key in cell.paper:
            if key not in rows:
                raise unknown(
                    f"item of the paper in cell {cell.label!r} of {cell.notebook}", key, rows
                )
            rows[key].append(cell)
    for item in items:
        if not rows[item.key] and not item.pages and not item.why:
            raise InputError(
                f"{item.number} of the paper is nowhere: no cell names {item.key!r}, and no page "
                "has it"
            )
    return rows


def map_page() -> str:
    """Write the reproduction map in MyST."""
    items = load_items()
    rows = joined(items, notebook_cells())
    lines = [HEAD]
    for item in items:
        if (
            item.kind in ("section", "appendix")
            and "." not in item.number
            and item.number != "Acknowledgements"
        ):
            fence = [":::", ""] if len(lines) > 1 else []
            alone = item.title in (item.number, "What the paper is about")
            heading = item.number if alone else f"{item.number}: {item.title}"
            lines += [*fence, f"## {heading}", "", ":::{list-table}", ":class: fits cards"]
            lines += [":header-rows: 1", ":widths: 24 38 12 26", ""]
            lines += ["* - In the paper", "  - Here", "  - Evidence", "  - Files"]
        lines += _row(item, rows[item.key])
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
    printed = [f"`{Path(REPORTED_FILES[file]).name}`" for file in files if file not in RUN_FILES]
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


def check_evidence(notebook: Path, *, marks: bool = True) -> None:
    """Hold the evidence that cells declare against what they show, in an executed notebook.

    A cell that declares ``reported`` shows something that is, whichever the model: a mark, a figure
    or plain text. With ``marks``, an output that has marks has those that its cell declares; one
    without, such as a figure, is not looked at. The first cell of which that is not true is
    refused."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        declared = cell["metadata"].get("evidence", ())
        outputs = cell.get("outputs", [])
        label = cell["metadata"].get("label", "without a label")
        shown = _marks(outputs)
        kinds = {
            kind.partition("/")[0]
            for each in outputs
            for kind in each.get("data", {each["output_type"]: ""})
        }
        if "reported" in declared and "reported" not in shown and not kinds & {"image", "stream"}:
            raise InputError(
                f"{notebook.name}: cell {label!r} declares reported and shows nothing that is"
            )
        if marks and declared and shown and set(declared) != shown:
            found = ", ".join(sorted(shown))
            raise InputError(
                f"{notebook.name}: cell {label!r} declares {', '.join(declared)} and shows {found}"
            )


def _marks(outputs: Sequence[dict[str, Any]]) -> set[str]:
    html = " ".join("".join(output.get("data", {}).get("text/html", ())) for output in outputs)
    found = re.findall(r'class="evidence ([\w-]+)"', html) + re.findall(r"Evidence: (\w+)\.", html)
    return {mark.replace("-", " ") for mark in found}


def _once(where: str, what: str, names: Sequence[str]) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"{where}: the {what} {twice[0]!r} stands twice; make it unique")
