"""Derive the notebooks from their sources: without outputs, and folded in JupyterLab as the book
folds them.
"""

import re
import subprocess
import sys
from pathlib import Path

import nbformat

from capcal_lib.manifests import NOTEBOOKS


def fold(notebook: nbformat.NotebookNode) -> None:
    """Hide code that sets up, draws or says something, and solutions with their outputs; and say in
    metadata what a cell needs and which is the line of provenance.
    """
    for cell in notebook.cells:
        cell.metadata.pop("jupyter", None)
        if cell.cell_type != "code":
            continue
        cell.outputs, cell.execution_count = [], None
        needs = re.match(r"(?:# .*\n)?# needs (\w+)", cell.source)
        call = re.match(r"(?:# needs \w+\n)?notebook\.(\w+)\(", cell.source)
        tags = set(cell.metadata.get("tags", ()))
        tags |= {"remove-input"} if call and call[1] in ("say", "finding") else set()
        tags |= {"provenance"} if "notebook.about(" in cell.source else set()
        hidden = {}
        if tags & {"hide-input", "hide-cell", "remove-input", "remove-cell"}:
            hidden["source_hidden"] = True
        if tags & {"hide-cell", "hide-output", "remove-cell"}:
            hidden["outputs_hidden"] = True
        facts = {"jupyter": hidden, "needs": needs and needs[1], "tags": sorted(tags)}
        cell.metadata |= {key: fact for key, fact in facts.items() if fact}


def main() -> None:
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
