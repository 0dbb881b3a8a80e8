import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest

from capcal_lib.book.layout import PAGES, caption_figures, cut, lay_out
from capcal_lib.book.pipeline import PRINTED, own_front_page
from capcal_lib.places import BOOK


def code(source: str, *tags: str, **metadata: Any) -> dict[str, Any]:
    cell = {"cell_type": "code", "source": source, "metadata": {"tags": [*tags], **metadata}}
    return {**cell, "outputs": [{"data": {"text/plain": source}}]}


def text(source: str, *tags: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": source, "metadata": {"tags": [*tags]}}


def test_a_page_begins_with_what_its_finding_its_provenance_and_its_picture_show() -> None:
    cells = [code("1"), code("2", "provenance"), code("3"), code("4", "picture")]
    page = {"cells": [text("# T"), *cells, code("5", "finding")]}
    lay_out(page)
    title, *cells = page["cells"]
    top, below = cells[:3], cells[3:]
    assert [cell["source"] for cell in top] == ["5", "2", "4"]
    assert all(cell["metadata"]["tags"] == ["remove-input"] for cell in top)
    assert [cell["outputs"][0]["data"]["text/plain"] for cell in top] == ["5", "2", "4"]
    assert [cell["source"] for cell in below] == [*"12345"]  # the code stays where it is read
    shown = ["".join(output["data"].values()) for cell in below for output in cell["outputs"]]
    above = "<p class='capcal-about'>Shown at the top of the page.</p>"
    assert shown == ["1", "3", above, above]  # nothing below what opens the page
    assert title["source"] == "# T"


@pytest.mark.parametrize("tag", ["parameters", "injected-parameters"])
def test_parameters_are_folded(tag: str) -> None:
    page = {"cells": [text("# T"), code("model = 'simulated'", tag)]}
    lay_out(page)
    metadata = page["cells"][1]["metadata"]
    assert metadata["tags"] == [tag, "hide-input"]
    assert metadata["mystnb"]["code_prompt_show"].startswith("Show the parameters")


def test_the_book_folds_a_solution_once() -> None:
    found = {"output_type": "execute_result", "data": {"text/html": ["<details>", "7</details>"]}}
    solution = {**code("1", "hide-cell", "solution"), "outputs": [found]}
    page = {"cells": [text("# T"), solution, {**deepcopy(solution), "metadata": {}}]}
    lay_out(page)
    shown = ["".join(cell["outputs"][0]["data"]["text/html"]) for cell in page["cells"][1:]]
    assert shown == ["<details open>7</details>", "<details>7</details>"]


def test_a_page_without_a_notebook_is_linked_where_a_text_names_it() -> None:
    page = {"cells": [text("# T"), text("See “Grading”.")]}
    lay_out(page)
    assert page["cells"][-1]["source"] == "See [Grading](/reference/grading.md)."
    for link in PAGES.values():
        address = re.findall(r"\]\(/(.*)\.md\)", link)
        assert address == [PRINTED] or BOOK.joinpath(f"{address[0]}.md").is_file()


def test_the_text_below_a_figure_is_its_caption_and_its_label_its_name() -> None:
    figure = code("draw()", "picture", label="fig-a", mystnb={"image": {"alt": "A plot."}})
    cells = caption_figures([figure, text("What one\nsees.", "caption"), text("More.")])
    assert [cell["source"] for cell in cells] == ["draw()", "More."]
    shown = {"image": {"alt": "A plot."}, "figure": {"caption": "What one sees.", "name": "fig-a"}}
    assert cells[0]["metadata"]["mystnb"] == shown


def test_a_figure_that_is_lifted_takes_its_caption_along() -> None:
    figure = code("draw()", "picture", label="fig-a")
    page = {"cells": [text("# T"), code("1"), figure, text("Seen.", "caption")]}
    lay_out(page)
    _, lifted, _, left = page["cells"]
    assert lifted["metadata"]["mystnb"]["figure"] == {"caption": "Seen.", "name": "fig-a"}
    assert "mystnb" not in left["metadata"]  # or the name would be there twice


def test_a_page_of_which_nothing_ended_is_left_as_it_is() -> None:
    page = {"cells": [code("1"), text("Text.")]}
    before = deepcopy(page)
    cut(page)
    assert page == before


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_papermill_takes_the_end_of_a_page_for_no_error(tmp_path: Path) -> None:
    first = "class EndOfPage(Exception):\n    pass\nprint('shown')\nraise EndOfPage"
    cells = [nbformat.v4.new_code_cell(first), nbformat.v4.new_code_cell("print('below')")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "language": "python",
        "display_name": "Python 3",
    }
    source, executed = tmp_path / "page.ipynb", tmp_path / "out.ipynb"
    nbformat.write(notebook, source)
    papermill.execute_notebook(source, executed, progress_bar=False)
    (cell,) = nbformat.read(executed, as_version=4).cells
    assert [output.get("text") for output in cell.outputs] == ["shown\n"]


def test_the_title_of_a_model_is_text_wherever_a_page_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models").mkdir()
    lines = "name: evil", "title: <img src=x onerror=alert(1)> [*A*] $x$", "engine: simulated"
    rest = "prompt_style: paper", "sampling: {temperature: 1, max_tokens: 8, context_tokens: 9}"
    (tmp_path / "models" / "evil.yaml").write_text("\n".join([*lines, *rest]))
    monkeypatch.setenv("CAPCAL_MANIFESTS", str(tmp_path))
    shown = r"\<img src=x onerror=alert(1)\> \[\*A\*\] \$x\$"
    assert own_front_page("evil").startswith(f"# Capability calibration of {shown}\n")
