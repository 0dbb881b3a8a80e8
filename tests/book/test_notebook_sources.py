"""The notebooks as files: derived copies are fresh, cells are short, parameters are plain."""

import ast
import json
from pathlib import Path

import jupytext
import nbformat
import pytest

from capcal_lib.book.pipeline import notebook_names
from capcal_lib.manifests import NOTEBOOKS

SOURCES = sorted(NOTEBOOKS.glob("[0-9]*.py"))
NAMES = [path.stem for path in SOURCES]
LONGEST_CELL = 15


def cells(source: Path, kind: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in jupytext.read(source).cells if cell.cell_type == kind]


def test_there_is_a_notebook_for_each_chapter() -> None:
    assert notebook_names() == NAMES
    numbers = [name[:2] for name in NAMES]
    assert all(number.isdigit() for number in numbers)
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_derived_notebook_has_the_contents_of_its_source(source: Path) -> None:
    derived = json.loads(source.with_suffix(".ipynb").read_text(encoding="utf-8"))
    fresh = json.loads(jupytext.writes(jupytext.read(source), fmt="ipynb"))
    for notebook in (derived, fresh):
        for cell in notebook["cells"]:
            cell.pop("id", None)
    assert derived["cells"] == fresh["cells"], "run `make notebooks`"
    assert derived["metadata"]["kernelspec"] == fresh["metadata"]["kernelspec"]
    assert all(not cell.get("outputs") and not cell.get("execution_count") for cell in derived["cells"])


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_parameters_are_plain_annotated_literals_with_a_comment(source: Path) -> None:
    code = cells(source, "code")
    assert [cell.metadata.get("tags") for cell in code].index(["parameters"]) == 0
    for line in code[0].source.splitlines():
        (statement,) = ast.parse(line).body
        assert isinstance(statement, ast.AnnAssign), line
        assert type(ast.literal_eval(statement.value)).__name__ == statement.annotation.id  # type: ignore[arg-type]
        assert "  # " in line, f"no comment: {line}"
    assert {"model", "store", "k_eval", "seed"} <= {line.split(":")[0] for line in code[0].source.splitlines()}


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_cells_are_short_and_no_result_stands_in_the_text(source: Path) -> None:
    code = cells(source, "code")
    lengths = sorted(sum(map(bool, cell.source.splitlines())) for cell in code)
    assert lengths[-1] <= LONGEST_CELL
    assert lengths[len(lengths) // 2] <= 4
    text = "\n".join(cell.source for cell in cells(source, "markdown"))
    keys = {part.split("`")[1].split(":")[0] for part in text.split("{glue:text}")[1:]}
    glued = {
        keyword.arg
        for cell in code
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "notebook.glue"
        for keyword in node.keywords
    }
    assert keys <= glued


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_pages_open_and_close_alike(source: Path) -> None:
    text = [cell.source for cell in cells(source, "markdown")]
    assert text[0].startswith("# ")
    assert "**You will learn**" in text[0]
    assert "**You need**" in text[0]
    assert "## Summary" in text[-1]
    assert "## Exercises" in text[-1]
