"""Write the index that the book's search reads, as a Sphinx extension: what a page says, and not
its code, its tables of numbers, or where they come from.

How pages are ranked, and what is shown of each, stands in ``book/static/search_scorer.js``.
"""

import re
from typing import Any

from docutils import nodes
from sphinx.builders.html import StandaloneHTMLBuilder

CAPTION = re.compile(r"<figcaption>(.*?)(?= · <span class=.evidence|</figcaption>)", re.DOTALL)


def searched(page: nodes.document) -> nodes.document:
    """Return a copy of a page that has its headings, text, findings and captions alone."""
    copy = page.deepcopy()
    for code in list(copy.findall(nodes.literal_block)):
        code.parent.remove(code)
    for raw in list(copy.findall(nodes.raw)):  # tables of numbers, among others
        captions = CAPTION.findall(raw.astext())
        about = "capcal-about" in raw.astext()  # the runs behind the page
        raw[:] = [nodes.Text("" if about else " ".join(captions))]
    return copy


class SearchedHTMLBuilder(StandaloneHTMLBuilder):
    """Sphinx's builder of HTML, whose index has what `searched` leaves of a page."""

    def index_page(self, pagename: str, doctree: nodes.document, title: str) -> None:
        """Put a page into the index."""
        super().index_page(pagename, searched(doctree), title)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_builder(SearchedHTMLBuilder, override=True)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
