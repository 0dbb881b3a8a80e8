"""Notebooks follow their sources, and nobody's edit is lost."""

import os
from pathlib import Path

import derive_notebooks
import nbformat
import pytest

from capcal_lib.book import pipeline
from capcal_lib.book.pipeline import execute, unlike_their_source
from capcal_lib.places import ROOT

SOURCE = '# %% [markdown]\n# # Title\n\n# %% tags=["hide-cell", "solution"]\n1 + 1\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a source and the notebook that is derived from it."""
    (tmp_path / "jupytext.toml").write_text((ROOT / "jupytext.toml").read_text())
    (tmp_path / "01_page.py").write_text(SOURCE)
    monkeypatch.setattr(pipeline, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(derive_notebooks, "NOTEBOOKS", tmp_path)
    derive_notebooks.main()
    return tmp_path


def read(folder: Path) -> nbformat.NotebookNode:
    return nbformat.read(folder / "01_page.ipynb", as_version=4)


def edit(folder: Path, *, newer: str) -> None:
    """Edit the notebook, and let it or its source be the newer one."""
    page = read(folder)
    page.cells[1].source = "2 + 2"
    nbformat.write(page, folder / "01_page.ipynb")
    os.utime(folder / "01_page.ipynb", (1000, 1000))
    os.utime(folder / "01_page.py", (1000, 1001 if newer == "source" else 999))


def test_a_derived_notebook_has_the_cells_of_its_source_and_folded_solutions(folder: Path) -> None:
    first, second = read(folder).cells
    assert (first.cell_type, first.source, second.source) == ("markdown", "# Title", "1 + 1")
    assert second.metadata["jupyter"] == {"source_hidden": True, "outputs_hidden": True}
    assert unlike_their_source() == []


@pytest.mark.parametrize("changed", ["1 + 2", '# %% tags=["solution"]'])
def test_a_changed_source_is_said_and_derived(folder: Path, changed: str) -> None:
    old = "1 + 1" if "+" in changed else '# %% tags=["hide-cell", "solution"]'
    (folder / "01_page.py").write_text(SOURCE.replace(old, changed))
    said: list[str] = []
    assert execute({}, folder / "out", say=said.append) == {}
    assert said == ["notebooks/01_page.py has changed: run make notebooks"]
    derive_notebooks.main()
    assert unlike_their_source() == []


def test_a_source_tree_that_cannot_be_written_to_is_no_reason_to_stop(folder: Path) -> None:
    (folder / "01_page.py").write_text(SOURCE.replace("1 + 1", "1 + 2"))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    said: list[str] = []
    execute({}, folder.with_name("out"), say=said.append)
    assert len(said) == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_edited_notebook_is_not_overwritten_in_silence(folder: Path) -> None:
    edit(folder, newer="notebook")
    with pytest.raises(SystemExit, match=r"01_page\.ipynb has been edited"):
        derive_notebooks.main()
    assert read(folder).cells[1].source == "2 + 2"
    edit(folder, newer="source")
    derive_notebooks.main()
    assert read(folder).cells[1].source == "1 + 1"
