"""The reproduction map has everything that is in the paper, and points at what exists."""

import json
import re
from pathlib import Path

import pytest
from myst_parser.mdit_to_docutils.base import default_slugify

from capcal_lib.book import map as map_module
from capcal_lib.book import printed
from capcal_lib.book.map import Cell, Item, load_items, map_page, notebook_cells
from capcal_lib.book.pipeline import notebook_names
from capcal_lib.book.tables import EVIDENCE
from capcal_lib.places import BOOK, NOTEBOOKS, RECORDED_RUNS
from capcal_lib.reported import FOLDERS
from tests.outside import PAPER, needs_paper

REPORTED = {path.stem for folder in FOLDERS.values() for path in folder.glob("*.csv")}
KEPT = {  # within <store>/<model>/
    "samples": ("*-test/*/samples-*.parquet",),
    "verdicts": ("*-test/*/verdicts.parquet",),
    "confidences": ("*-test/*/confidence-*.parquet",),
    "features": (
        "*-test/*/features.parquet",
        "*-train/*/features.parquet",
        "*-train/*/verdicts.parquet",
    ),
}
ITEMS = load_items()
CELLS = notebook_cells()
LEVELS = {"section": 0, "subsection": 1, "subsubsection": 2}


def label_of(cell: Cell) -> str:
    return cell.metadata.get("label") or cell.metadata["mystnb"]["figure"]["name"]


def reads(cell: Cell) -> set[str]:
    return set(cell.metadata.get("reads", ()))


def in_the_paper(tex: str) -> list[tuple[str, str | None]]:
    """Number everything that the paper's source numbers, in its order: (number, label)."""
    tex = re.sub(r"(?<!\\)%.*", "", tex)
    heading = r"\\(?P<heading>section|subsection|subsubsection)(?P<star>\*?)\{"
    environment = r"\\begin\{(?P<environment>abstract|table|figure|theorem|equation)\*?\}"
    counts = {"table": 0, "figure": 0, "theorem": 0, "equation": 0}
    place, appendix, found = [0, 0, 0], False, []
    for match in re.finditer(rf"{heading}|{environment}|\\appendix\b", tex):
        if match["heading"] and match["star"]:
            found.append((re.match(r"[^}]*", tex[match.end() :])[0].capitalize(), None))
        elif match["heading"]:
            level = LEVELS[match["heading"]]
            place = [*place[:level], place[level] + 1, *[0] * (2 - level)]
            first = chr(ord("A") + place[0] - 1) if appendix else str(place[0])
            number = ".".join([first, *(str(part) for part in place[1 : level + 1])])
            found.append(
                (
                    f"{'Appendix' if appendix else 'Section'} {number}",
                    after_heading(tex[match.end() :]),
                )
            )
        elif match["environment"] == "abstract":
            found.append(("Abstract", None))
        elif match["environment"]:
            kind = match["environment"]
            body = tex[match.end() : tex.index(f"\\end{{{kind}", match.end())]
            if kind == "theorem":
                body = body.split("\\begin{equation}")[0]
            label = re.search(r"\\label\{([^}]*)\}", body)
            counts[kind] += 1
            found.append((f"{kind.capitalize()} {counts[kind]}", label[1] if label else None))
        else:
            place, appendix = [0, 0, 0], True
    return found


def after_heading(rest: str) -> str | None:
    """Return the label that follows a heading, past its braces."""
    depth, end = 1, 0
    while depth:
        depth += {"{": 1, "}": -1}.get(rest[end], 0)
        end += 1
    label = re.match(r"\.?\s*\\label\{([^}]*)\}", rest[end:])
    return label[1] if label else None


@needs_paper
def test_works_on_uncertainty_are_in_the_bibliography_or_said_to_be_left_out() -> None:
    tex = PAPER.read_text(encoding="utf-8")
    _, section = tex.split("\\subsection{LLM uncertainty quantification}")
    section, _ = section.split("\\section", 1)
    cited = {
        key.strip()
        for keys in re.findall(r"\\cite\w*\{([^}]+)\}", section)
        for key in keys.split(",")
    }
    entries = (BOOK / "references.bib").read_text(encoding="utf-8")
    lacking = cited - {*re.findall(r"^@\w+\{([^,]+),", entries, flags=re.MULTILINE)}
    assert len(cited) == 13
    assert lacking == {"huang2024survey"}
    [item] = [item for item in ITEMS if item.key == "section-2.2"]
    assert "Huang et al. (2024)" in str(item.why)


@needs_paper
def test_everything_in_the_paper_is_listed_with_its_number_and_label() -> None:
    printed = in_the_paper(PAPER.read_text(encoding="utf-8"))
    listed = [(item.number, item.label) for item in ITEMS]
    assert sorted(number for number, _ in listed) == sorted(number for number, _ in printed)
    assert dict(listed) == dict(printed)


def test_the_paper_has_as_many_of_each_kind() -> None:
    kinds = [item.kind for item in ITEMS]
    assert [kinds.count(kind) for kind in ("table", "figure", "theorem", "equation")] == [
        8,
        11,
        2,
        20,
    ]


def test_every_item_has_a_place_and_every_table_and_figure_of_results_a_cell() -> None:
    rows = {
        item.key: [cell for cell in CELLS if item.key in cell.metadata["paper"]] for item in ITEMS
    }
    assert len(rows) == len(ITEMS)
    assert {key for cell in CELLS for key in cell.metadata["paper"]} <= set(rows)
    assert [item.key for item in ITEMS if not (rows[item.key] or item.pages or item.why)] == []
    told = {"table-1", "figure-1"}  # these two explain, and have a written page
    assert {
        item.key for item in ITEMS if item.kind in ("table", "figure") and not rows[item.key]
    } == told
    assert rows["theorem-1"]
    assert rows["theorem-2"]


def untrue_notes(items: list[Item]) -> list[str]:
    """List items that are said to lack what their notebooks do, or numbers that no cell marks."""
    wrong = []
    for item in items:
        made = [cell for cell in CELLS if item.key in cell.metadata["paper"]]
        marks = {mark for cell in made for mark in cell.metadata["evidence"]}
        code = "\n".join(code_of(name) for name in {cell.notebook for cell in made})
        if item.unless:
            untrue = not item.lacking or re.search(item.unless, code)
        else:
            untrue = item.lacking and not marks & {"read off", "simulated"}
        if untrue:
            wrong.append(item.key)
    return wrong


def code_of(notebook: str) -> str:
    """Return the code of a notebook, whose cells of prose are comments in its source."""
    source = (NOTEBOOKS / f"{notebook}.py").read_text(encoding="utf-8")
    return re.sub(r"^#.*", "", source, flags=re.MULTILINE)


def test_what_an_item_is_said_to_lack_no_page_does() -> None:
    assert untrue_notes(ITEMS) == []


def test_a_note_that_a_page_outgrew_is_seen() -> None:
    done = Item("section-5.2", "section", "5.2", "Budgets", lacking="none", unless=r"allocate\(")
    unmarked = Item("theorem-1", "theorem", "1", "Optima", lacking="read off its curves")
    assert untrue_notes([done, unmarked]) == ["section-5.2", "theorem-1"]


def test_cells_are_of_notebooks_that_the_book_has() -> None:
    assert {cell.notebook for cell in CELLS} <= set(notebook_names())


def headings(target: str) -> list[str]:
    """List the anchors of a page that the map links to, by its path from the map; the first is that
    of the title. A page that is written by a function when the book is built has its title alone.
    """
    path = (BOOK / "reference" / target).resolve()
    if path == BOOK / "reference/printed.md":
        text = printed.HEAD
    elif path.suffix == ".ipynb":
        cells = json.loads((NOTEBOOKS / path.name).read_bytes())["cells"]
        written = [cell["source"] for cell in cells if cell["cell_type"] == "markdown"]
        text = "\n\n".join(map("".join, written))
    else:
        text = path.read_text(encoding="utf-8")
    names = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return [default_slugify(name) for name in names]


def test_every_link_leads_to_a_heading_that_its_page_has_once() -> None:
    links = re.findall(r"\[\]\(([^)#]*)#?([^)]*)\)", map_page())
    assert any("printed" in target for target, _ in links)
    for target, anchor in links:
        title, *_ = there = headings(target)
        assert there.count(anchor or title) == 1, (target, anchor)


def test_a_link_leads_to_where_the_book_shows_a_cell() -> None:
    """Below the heading above the cell, or the title for what is lifted below it."""
    for cell in CELLS:
        text = (NOTEBOOKS / f"{cell.notebook}.py").read_text(encoding="utf-8")
        above, label, _ = text.partition(f'"{label_of(cell)}"')
        assert label, label_of(cell)
        top = {*cell.metadata.get("tags", ())} & {"finding", "picture", "provenance"}
        sections = [] if top else re.findall(r"^# ## (.+)$", above, flags=re.MULTILINE)
        assert cell.section == "".join(sections[-1:]), label_of(cell)


def test_every_file_read_exists() -> None:
    for model in ("qwen2.5-coder-1.5b", "simulated"):
        for patterns in KEPT.values():
            for pattern in patterns:
                assert list(RECORDED_RUNS.joinpath(model).glob(pattern)), pattern


def test_measured_cells_read_runs_and_reported_ones_read_what_is_reported() -> None:
    for cell in CELLS:
        if "measured" in cell.metadata["evidence"]:
            assert reads(cell) & {*KEPT}, label_of(cell)
        if reads(cell) & {*KEPT}:
            assert "measured" in cell.metadata["evidence"], label_of(cell)
        if reads(cell) & REPORTED:
            assert {"reported", "read off", "simulated"} & set(cell.metadata["evidence"]), label_of(
                cell
            )


def test_the_page_has_a_row_an_item_and_only_links_to_pages_of_the_book() -> None:
    page = map_page()
    for item in ITEMS:
        row = page.split(f"* - **{{index}}`!{item.number}`** {item.title}\n")[1].split("\n")[0]
        assert ("*partly*" in row) == bool(item.lacking or item.measurable)
    for item in ITEMS:
        assert page.count(f"* - **{{index}}`!{item.number}`** ") == 1
    for target in re.findall(r"\]\(\.\./notebooks/([^)#]*)\.ipynb", page):
        assert target in notebook_names()
    assert "notebooks/04_main_table.ipynb#all-scores" in page
    assert page.count(":::{list-table}") == page.count("\n:::\n")


def test_a_cell_has_a_label_of_its_own_known_evidence_and_known_files() -> None:
    labels = [label_of(cell) for cell in CELLS]
    assert len(set(labels)) == len(labels)
    for cell in CELLS:
        assert cell.metadata["evidence"], label_of(cell)
        assert set(cell.metadata["evidence"]) <= set(EVIDENCE), label_of(cell)
        assert reads(cell) <= {*KEPT, *REPORTED}, label_of(cell)


def test_a_cell_is_read_with_its_title_and_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = {"label": "here", "paper": ["table-2"], "evidence": ["measured"]}
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# A title\n", "\n", "## A section"]},
        {"cell_type": "code", "metadata": metadata, "source": ["1"]},
    ]
    (tmp_path / "01_one.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    monkeypatch.setattr(map_module, "NOTEBOOKS", tmp_path)
    [cell] = notebook_cells()
    assert (cell.notebook, cell.section) == ("01_one", "A section")
    assert cell.metadata == metadata
