"""What a page shows of numbers that an executed page has, or has not, kept."""

import subprocess
import sys

import nbformat
import pytest
from bs4 import BeautifulSoup

TAKEN = "{{glue:text}}`{}notebooks/kept.ipynb::{}:.1f`".format
GUIDE = f"""# Guide

There are {TAKEN("../", "sets")} sets.

With {TAKEN("../", "width")} times the width and {TAKEN("../", "sets")} sets
the first sentence stands. So does the second.

Nothing is measured here.

:::{{list-table}}
* - Closer
  - In {TAKEN("../", "closer")} cases.
* - Farther
  - In {TAKEN("../", "sets")} cases.
:::
"""
SETTINGS = """
extensions = ["sphinx.ext.autodoc", "myst_nb", "capcal_lib.book.web"]
nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence"]
"""
CONTENTS = "# Book\n\n```{toctree}\nguide/guide\nnotebooks/kept\nreference/vocabulary\n```\n"


def keep(key: str, value: float) -> nbformat.NotebookNode:
    """Make a cell that was executed and kept a number, as ``lesson.glue`` does."""
    data = {"application/papermill.record/text/plain": repr(value)}
    about = {"scrapbook": {"name": key, "mime_prefix": "application/papermill.record/"}}
    output = nbformat.v4.new_output("display_data", data=data, metadata=about)
    return nbformat.v4.new_code_cell("glue()", outputs=[output], execution_count=1)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[BeautifulSoup, str]:
    """Build a guide, and return what it shows and the warnings."""
    book, html = tmp_path_factory.mktemp("book"), tmp_path_factory.mktemp("html")
    cells = [nbformat.v4.new_markdown_cell("# Kept"), keep("sets", 2.25)]
    language = {"name": "python", "pygments_lexer": "ipython3"}
    kept = nbformat.v4.new_notebook(cells=cells, metadata={"language_info": language})
    for name, text in {
        "conf.py": SETTINGS,
        "index.md": CONTENTS,
        "guide/guide.md": GUIDE,
        "notebooks/kept.ipynb": nbformat.writes(kept),
        "reference/vocabulary.md": "# Vocabulary\n",
    }.items():
        path = book / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    command = [sys.executable, "-m", "sphinx", "-q", book, html]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    page = (html / "guide" / "guide.html").read_text()
    return BeautifulSoup(page, "html.parser"), done.stderr


def test_a_paragraph_without_its_number_is_left_out_whole(
    built: tuple[BeautifulSoup, str],
) -> None:
    body = built[0].find("section")
    assert body is not None
    paragraphs = [paragraph.get_text() for paragraph in body.find_all("p", recursive=False)]
    assert paragraphs == ["There are 2.2 sets.", "Nothing is measured here."]
    cells = [cell.get_text().strip() for cell in body.find_all("td")]
    assert cells == ["Closer", "", "Farther", "In 2.2 cases."]


def test_a_paragraph_that_is_left_out_is_warned_of(built: tuple[BeautifulSoup, str]) -> None:
    missing = [line.partition("WARNING: ")[2] for line in built[1].splitlines()]
    assert missing == [
        f"a paragraph is left out, since notebooks/kept has not kept '{key}'"
        for key in ("width", "closer")
    ]
