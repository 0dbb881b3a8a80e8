"""Lay out executed notebooks: where a page ended, and how the book shows it."""

import hashlib
from copy import deepcopy
from typing import Any

from capcal_lib.book.lesson import EndOfPage
from capcal_lib.book.style import NARROW

PAGES = {  # that a notebook names, which is read where they are not
    "“Grading”": "[Grading](/reference/grading.md)",
    "“Scaling out”": "[Scaling out](/guide/scaling_out.md)",
    "“The paper's main table”": "[The paper's main table](/reference/printed.md)",
}
FOLDED = {  # by a cell's tag, what the link says that opens it
    "parameters": "the parameters of this page",
    "injected-parameters": "the parameters that this book was made with",
}
SHOWN_ABOVE = {
    "output_type": "display_data",
    "metadata": {},
    "data": {"text/html": "<p class='capcal-about'>Shown at the top of the page.</p>"},
}
TOP = ("finding", "provenance", "picture")  # tags of what stands below the title, in this order


def cut(notebook: dict[str, Any]) -> None:
    """Remove all that is below the end of an executed page, and the error that ended it.

    >>> ended = {"output_type": "error", "ename": "EndOfPage"}
    >>> cells = [{"outputs": [{"data": {}}, ended], "metadata": {}}, {"outputs": []}]
    >>> page = {"cells": cells}
    >>> cut(page)
    >>> page["cells"]
    [{'outputs': [{'data': {}}], 'metadata': {}}]
    """
    for place, cell in enumerate(notebook["cells"]):
        outputs = cell.get("outputs", [])
        ends = [output for output in outputs if output.get("ename") == EndOfPage.__name__]
        if ends:
            outputs.remove(ends[0])
            if "papermill" in cell["metadata"]:
                cell["metadata"]["papermill"]["exception"] = False
            del notebook["cells"][place + 1 :]
            return


def caption_figures(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Turn the text below a figure, tagged ``caption``, into its caption, and its label into its
    name.
    """
    remaining: list[dict[str, Any]] = []
    for cell in cells:
        if "caption" in cell["metadata"].get("tags", ()):
            above = remaining[-1]["metadata"]
            caption = " ".join("".join(cell["source"]).split())
            figure = {"caption": caption, "name": above.get("label", "")}
            above.setdefault("mystnb", {})["figure"] = figure
        else:
            remaining.append(cell)
    return remaining


def lift(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the outputs of the cells tagged as `TOP` before all others, without their code. The code
    stays in its place and says so.
    """
    lifted = []
    for tag in TOP:
        for cell in cells:
            if tag in cell["metadata"].get("tags", ()):
                shown = deepcopy(cell)
                shown["metadata"]["tags"] = ["remove-input"]
                lifted.append(shown)
                cell["outputs"] = [] if tag == "provenance" else [deepcopy(SHOWN_ABOVE)]
                cell["metadata"].pop("mystnb", None)
    return [*lifted, *cells]


def lay_out(notebook: dict[str, Any]) -> dict[str, str]:
    """Lay out an executed page for the book: below the title the outputs tagged as finding,
    provenance and picture, then all cells, with captions below their figures.

    Returns the narrow forms of figures, which are removed from the page, by the digests with which
    the book's builder names the figures.

    >>> title = {"cell_type": "markdown", "source": "# Title", "metadata": {}}
    >>> data = {"image/svg+xml": ["<svg>wide</svg>"], NARROW: ["<svg>narrow</svg>"]}
    >>> cell = {"source": "1", "metadata": {"tags": ["picture"]},
    ...     "outputs": [{"data": data}]}
    >>> page = {"cells": [title, {**title, "source": "Text."}, cell]}
    >>> [*lay_out(page).values()], list(data)
    (['<svg>narrow</svg>'], ['image/svg+xml'])
    >>> [(cell["source"], "outputs" in cell and bool(cell["outputs"])) for cell in page["cells"]]
    [('# Title', False), ('1', True), ('Text.', False), ('1', True)]
    """
    title, *cells = notebook["cells"]
    cells = caption_figures(cells)
    drawings = {}
    for cell in cells:
        cell["source"] = "".join(cell["source"])
        for named, link in PAGES.items():
            cell["source"] = cell["source"].replace(named, link)
        tags = cell["metadata"].setdefault("tags", [])
        for name in FOLDED.keys() & tags:
            tags.append("hide-input")
            prompts = {
                f"code_prompt_{verb.lower()}": f"{verb} {FOLDED[name]}" for verb in ("Show", "Hide")
            }
            cell["metadata"]["mystnb"] = prompts
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "solution" in tags and "text/html" in data:  # the book folds it with its code
                html = "".join(data["text/html"])
                data["text/html"] = html.replace("<details>", "<details open>", 1)
            if narrow := data.pop(NARROW, None):
                wide = "\n".join("".join(data["image/svg+xml"]).splitlines())
                drawings[hashlib.sha256(wide.encode()).hexdigest()] = "".join(narrow)
    notebook["cells"] = [title, *lift(cells)]
    return drawings
