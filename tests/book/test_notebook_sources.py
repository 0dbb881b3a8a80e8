"""The notebooks as files: derived copies are fresh, cells are short, parameters are plain, figures
are described.
"""

import ast
import itertools
import re

import jupytext
import nbformat
from derive_notebooks import fold

from capcal_lib.book.pipeline import book_pages
from capcal_lib.places import NOTEBOOKS

SOURCES = {path.stem: jupytext.read(path) for path in sorted(NOTEBOOKS.glob("[0-9]*.py"))}
LONGEST_CELL, MEDIAN_CELL = 8, 3  # lines, without imports


def cells(name: str, kind: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in SOURCES[name].cells if cell.cell_type == kind]


def only_imports(source: str) -> bool:
    return all(isinstance(each, ast.Import | ast.ImportFrom) for each in ast.parse(source).body)


def tags(cell: nbformat.NotebookNode) -> set[str]:
    return {*cell.metadata.get("tags", ())}


def words(name: str) -> str:
    """Return the text of a notebook."""
    return "\n".join(cell.source for cell in cells(name, "markdown"))


def test_there_is_a_notebook_for_each_chapter() -> None:
    assert [*book_pages()] == list(SOURCES)
    numbers = [name[:2] for name in SOURCES]
    assert all(number.isdigit() for number in numbers)
    assert len(set(numbers)) == len(numbers)


def test_derived_notebooks_have_the_contents_of_their_sources() -> None:
    for name, source in SOURCES.items():
        derived = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
        fresh = jupytext.reads(jupytext.writes(source, fmt="ipynb"), fmt="ipynb")
        fold(fresh)
        for notebook in (derived, fresh):
            for cell in notebook["cells"]:
                cell.pop("id", None)
        assert derived["cells"] == fresh["cells"], f"{name}: run `make notebooks`"
        assert derived["metadata"]["kernelspec"] == fresh["metadata"]["kernelspec"], name
        assert all(
            not cell.get("outputs") and not cell.get("execution_count") for cell in derived["cells"]
        ), name


def test_parameters_are_plain_annotated_literals_with_a_comment() -> None:
    for name in SOURCES:
        code = cells(name, "code")
        assert "parameters" in code[0].metadata.get("tags", []), name
        assert sum("parameters" in cell.metadata.get("tags", []) for cell in code) == 1, name
        for line in code[0].source.splitlines():
            (statement,) = ast.parse(line).body
            assert isinstance(statement, ast.AnnAssign), (name, line)
            assert type(ast.literal_eval(statement.value)).__name__ == statement.annotation.id, (
                name,
                line,
            )  # type: ignore[arg-type]
            assert "  # " in line, f"{name}: no comment: {line}"
        assert {"model", "store"} <= {line.split(":")[0] for line in code[0].source.splitlines()}, (
            name
        )


def test_what_samples_count_is_asked_by_the_same_names_on_all_pages() -> None:
    """A page of a game has one protocol, the page on corrections shows both, and the page on
    grading is about the rules.
    """
    reading = [
        name for name in SOURCES if any("results_of(page" in c.source for c in cells(name, "code"))
    ]
    assert {"04_main_table", "05_pass_at_k"} <= {*reading}
    for name in {*reading} - {"12_try_it", "13_protocol", "15_grading"}:
        asked = {line.split(":")[0] for line in cells(name, "code")[0].source.splitlines()}
        assert {"k_eval", "protocol", "verdicts"} <= asked, name


def lines_of(source: str) -> int:
    """Count the lines of a cell, without its imports and empty lines."""
    body = [each for each in ast.parse(source).body if not only_imports(ast.unparse(each))]
    lines = source.splitlines()
    return sum(bool(line) for each in body for line in lines[each.lineno - 1 : each.end_lineno])


def test_cells_are_short() -> None:
    lengths = []
    for name in SOURCES:
        shown = [
            cell for cell in cells(name, "code") if not {"parameters", "remove-cell"} & tags(cell)
        ]
        for cell in shown:
            lines = lines_of(cell.source)
            assert lines <= LONGEST_CELL, (name, cell.source)
            lengths += [lines] if lines else []
    assert sorted(lengths)[len(lengths) // 2] <= MEDIAN_CELL


def test_a_page_ends_early_in_three_places_at_most() -> None:
    for name in SOURCES:
        code = "\n".join(cell.source for cell in cells(name, "code"))
        assert code.count("raise EndOfPage(") <= 3, name


def test_nothing_is_hidden_but_solutions_and_what_other_pages_take() -> None:
    for name in SOURCES:
        for cell in cells(name, "code"):
            hidden = {tag for tag in tags(cell) if tag.startswith(("hide-", "remove-"))}
            if "solution" in tags(cell):
                assert hidden == {"hide-cell"}, (name, cell.source)
            elif "parameters" in tags(cell):
                assert hidden == {"hide-input"}, name
            elif hidden:
                last = ast.parse(cell.source).body[-1]
                assert ast.unparse(last).startswith("glue("), (name, cell.source)


def test_a_page_has_one_finding_and_one_picture() -> None:
    for name in SOURCES:
        found = [tag for cell in cells(name, "code") for tag in tags(cell)]
        for tag in ("finding", "picture"):
            assert found.count(tag) == 1, (name, tag)


def test_a_key_is_handed_on_once() -> None:
    for name in SOURCES:
        keys = [
            keyword.arg
            for cell in cells(name, "code")
            for node in ast.walk(ast.parse(cell.source))
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "glue"
            for keyword in node.keywords
            if keyword.arg is not None  # the names in a mapping are not known from the source
        ]
        assert [key for key in set(keys) if keys.count(key) > 1] == [], name


def test_a_figure_has_a_name_an_alternative_text_and_a_text_below_it() -> None:
    for name, source in SOURCES.items():
        labels = []
        for cell, below in itertools.pairwise(source.cells):
            label = cell.metadata.get("label", "")
            drawn = "image" in cell.metadata.get("mystnb", {})
            assert not drawn or below.cell_type == "markdown", (name, label)
            if drawn:
                labels.append(label)
                alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
                assert len(alt) >= 20, (name, label)
                assert "figure" not in cell.metadata["mystnb"], (name, label)
        assert len(labels) == len({*labels}), name


NAMES_WITH_DIGITS = re.compile(r"MATH-500|AIME25|GSM8K|gpt-oss-20b|P\(True\)")
OUTCOME = re.compile(  # what numbers decide, so that a line that is typed outlives it
    r"\d|\b(most|nearly|almost|close|closest|lowest|highest|largest|smallest|furthest|farthest"
    r"|far|widest|worst|best(?! constant)|few|half|third|lies?|stands?|stays?|rises?|falls?|rising"
    r"|falling|gathers?|spreads?|follows?|moves|runs?|reach|touch|above|steeply"
    r"|(left|right) of|to the (left|right))\b",
    re.IGNORECASE,
)


def test_an_alternative_text_says_what_is_drawn_and_not_what_came_out() -> None:
    for name in SOURCES:
        for cell in cells(name, "code"):
            alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            assert not OUTCOME.search(NAMES_WITH_DIGITS.sub("", alt)), (name, alt)


def test_an_outcome_in_an_alternative_text_is_seen() -> None:
    for alt in ("All points lie near zero.", "Votes gain 3 points.", "Asking is right of zero."):
        assert OUTCOME.search(alt), alt


def test_a_figure_is_not_followed_by_the_name_of_its_grid() -> None:
    """A method of seaborn's grids returns the grid, which the last line of a cell would show."""
    for name in SOURCES:
        for cell in cells(name, "code"):
            if "image" in cell.metadata.get("mystnb", {}):
                last = ast.parse(cell.source).body[-1]
                shown = ast.unparse(last) if isinstance(last, ast.Expr) else ""
                assert not re.match(r"grid\.(?!figure)", shown), (name, shown)


def test_no_line_of_prose_is_taken_for_a_comment() -> None:
    """MyST drops a line that begins with a percent sign, and ends the paragraph there."""
    pages = {name: words(name) for name in SOURCES}
    pages |= {
        str(path): path.read_text(encoding="utf-8")
        for path in NOTEBOOKS.parent.glob("book/**/*.md")
    }
    for name, text in pages.items():
        assert not [line for line in text.splitlines() if line.startswith("%")], name


def test_pages_open_and_close_alike() -> None:
    for name in SOURCES:
        text = [cell.source for cell in cells(name, "markdown")]
        assert text[0].startswith("# "), name
        assert "## Summary" in words(name), name
        last = words(name).partition("## Exercise")[2]
        solutions = [
            cell for cell in cells(name, "code") if "solution" in cell.metadata.get("tags", [])
        ]
        assert len(solutions) == last.count("Hint") <= 3, name
        assert not last or solutions, name


def test_a_folded_solution_says_what_it_is_about() -> None:
    """JupyterLab shows the first line of a folded cell."""
    for name in SOURCES:
        for cell in cells(name, "code"):
            if "solution" in cell.metadata.get("tags", []):
                assert cell.source.startswith("# "), (name, cell.source)


def test_a_page_begins_with_the_one_before_and_ends_with_the_next() -> None:
    names = [*SOURCES]
    for before, name in itertools.pairwise(names):
        first = cells(name, "markdown")[0].source
        assert f"({before}.ipynb)" in first, name
    for name, after in itertools.pairwise(names):
        summary = words(name).partition("## Summary")[2].partition("## Exercise")[0]
        assert f"({after}.ipynb)" in summary, name


def test_a_notebook_links_to_notebooks_that_are_there() -> None:
    for name in SOURCES:
        linked = re.findall(r"\]\((\d\d_\w+)\.ipynb", words(name))
        assert set(linked) <= set(SOURCES), name
