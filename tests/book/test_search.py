"""The index of the search has what pages say, and not their code or their tables of numbers."""

import json

import pytest
from docutils import nodes

from capcal_lib.book.search import searched
from capcal_lib.places import BUILD

INDEX = BUILD / "book" / "_build" / "html" / "searchindex.js"


def page() -> nodes.document:
    """Return a page as Sphinx has it of a notebook: text, a cell, its finding, a table, a box."""
    from docutils.utils import new_document

    def cell(*parts: nodes.Node) -> nodes.container:
        return nodes.container("", *parts, classes=["cell"])

    table = (
        "<figure><figcaption>Scores of pears. · <span class='evidence measured'>measured</span> "
        "· <a>CSV</a></figcaption><table><tr><td>quinces</td></tr></table></figure>"
    )
    document = new_document("page")
    document += nodes.section("", nodes.title("", "Of apples"), ids=["of-apples"])
    document[0] += nodes.paragraph("", "", nodes.Text("They are "), nodes.strong("", "round"))
    document[0] += cell(nodes.literal_block("", "peel = 1"), nodes.paragraph("", "They peel."))
    document[0] += cell(nodes.raw("", table, format="html"))
    about = f"<div class='capcal-about'><p>300 plums</p>{table}</div>"
    document[0] += cell(nodes.raw("", about, format="html"))
    return document


def test_a_page_is_searched_by_what_it_says() -> None:
    whole = page()
    words = " ".join(searched(whole).astext().split())
    assert words == "Of apples They are round They peel. Scores of pears."
    assert "peel = 1" in whole.astext(), "the page that is drawn is left as it is"
    assert "quinces" in whole.astext()
    assert "plums" in whole.astext()


@pytest.mark.slow
@pytest.mark.skipif(not INDEX.exists(), reason="the book is not built: make book")
def test_the_index_has_words_of_pages_and_none_of_their_code_or_tables() -> None:
    text = INDEX.read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    terms, names = index["terms"], index["docnames"]

    def pages(word: str) -> set[str]:
        found = terms.get(word, [])
        return {names[place] for place in (found if isinstance(found, list) else [found])}

    assert {"open_page", "axline", "dataframe", "tbody"} & terms.keys() == set()
    assert pages("caveat") == {"guide/limits"}, "a keyword"
    notebooks = [name for name in names if name.startswith("notebooks/")]
    assert 0 < len(pages("mmlu") & {*notebooks}) < len(notebooks) / 2, "the box names it on each"
    assert {"best constant", "corrected brier", "table 7"} <= index["indexentries"].keys()
