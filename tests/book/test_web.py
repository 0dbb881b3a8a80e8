"""What the book's own extension does to the pages that Sphinx wrote."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from fontTools.ttLib import TTFont

from capcal_lib.book.style import font_files
from capcal_lib.book.web import _finish

WRITTEN = (
    '<p>5 %</p><div role="list" class="citation-list"><p role="doc-biblioentry">A</p></div>'
    '<th class="head"></th>\n<script defer src="../_static/scripts/fontawesome.js?1"></script>'
)
REWRITTEN = '<p>5\N{NO-BREAK SPACE}%</p><div class="citation-list"><p>A</p></div><td></td>\n'


def test_pages_are_rewritten_and_fonts_packed(tmp_path: Path) -> None:
    for name in ("index.html", "guide/page.html"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(WRITTEN, encoding="utf-8")
    (tmp_path / "code.js").write_text("5 %")
    _finish(SimpleNamespace(outdir=str(tmp_path)), None)
    for name in ("index.html", "guide/page.html"):
        assert (tmp_path / name).read_text(encoding="utf-8") == REWRITTEN
    assert (tmp_path / "code.js").read_text() == "5 %", "no page"
    if not font_files():
        pytest.skip("the faces of the book are not installed")
    names = {file.with_suffix(".woff").name for file in font_files()}
    packed = {path.name: TTFont(path).flavor for path in (tmp_path / "_static/fonts").iterdir()}
    assert packed == dict.fromkeys(names, "woff")


def test_the_page_of_a_notebook_has_a_button_that_downloads_it(tmp_path: Path) -> None:
    menu = '<div class="dropdown dropdown-download-buttons"><a href="../_sources/{}">x</a></div>'
    notebook, text = menu.format("notebooks/05_page.ipynb"), menu.format("guide/page.md")
    (tmp_path / "05_page.html").write_text(notebook)
    (tmp_path / "page.html").write_text(text)
    _finish(SimpleNamespace(outdir=str(tmp_path)), None)
    button = (
        '<a class="btn btn-sm capcal-notebook" href="../_sources/notebooks/05_page.ipynb" download '
        'title="Downloads it. In a copy of the repository: jupyter lab notebooks/05_page.ipynb">'
        "Open this notebook</a>"
    )
    assert (tmp_path / "05_page.html").read_text() == button + notebook
    assert (tmp_path / "page.html").read_text() == text


def test_a_build_that_failed_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(WRITTEN)
    _finish(SimpleNamespace(outdir=str(tmp_path)), RuntimeError("no"))
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    assert (tmp_path / "index.html").read_text() == WRITTEN
