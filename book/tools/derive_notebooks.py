"""Derive the notebooks from their sources: without outputs, and folded in JupyterLab as the book
folds them.
"""

import subprocess
import sys
from pathlib import Path

import nbformat

from capcal_lib.book.pipeline import unlike_their_source
from capcal_lib.places import NOTEBOOKS


def fold(notebook: nbformat.NotebookNode) -> None:
    """Hide solutions, and what only other pages take, until they are opened."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata.pop("jupyter", None)  # of a cell that stood there before
            if {"remove-cell", "solution"} & {*cell.metadata.get("tags", ())}:
                cell.metadata["jupyter"] = {"source_hidden": True, "outputs_hidden": True}


def edited(notebooks: list[Path]) -> list[Path]:
    """Return the notebooks that are newer than their sources: deriving would lose what they say."""
    return [
        notebook
        for notebook in notebooks
        if notebook.stat().st_mtime > notebook.with_suffix(".py").stat().st_mtime
    ]


def main() -> None:
    for notebook in edited(unlike_their_source()):
        name = f"notebooks/{notebook.stem}"
        sys.exit(
            f"{name}.ipynb has been edited, and {name}.py is the source. Take the edits over with: "
            f"jupytext --to py:percent {name}.ipynb\nOr drop them with: touch {name}.py"
        )
    sources = sorted(NOTEBOOKS.glob("[0-9]*.py"))
    jupytext = Path(sys.executable).with_name("jupytext")
    subprocess.run([jupytext, "--quiet", "--update", "--to", "ipynb", *sources], check=True)
    for source in sources:
        path = source.with_suffix(".ipynb")
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        fold(notebook)
        nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
