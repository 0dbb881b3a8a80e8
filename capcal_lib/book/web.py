"""What the book's pages need beyond what Sphinx and the theme write: a description each. It is a Sphinx extension."""

from html import escape
from typing import Any

DESCRIPTION = 155  # characters, about what search engines show


def describe(text: str, characters: int = DESCRIPTION) -> str:
    """Cut a text to a description: whole words, whole sentences where one fits.

    >>> describe("One sentence. Another  one.", 20)
    'One sentence.'
    >>> describe("many words without an end", 15)
    'many words…'
    """
    words = " ".join(text.split())
    if len(words) <= characters:
        return words
    cut = words[: characters - 1]
    sentence = cut.rpartition(". ")[0]
    return f"{sentence}." if sentence else f"{cut.rpartition(' ')[0]}…"


def _head(app: Any, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:  # noqa: ARG001
    """Put the first paragraph of a page into its head, for search engines and for links to it."""
    from docutils import nodes

    paragraphs = doctree.findall(nodes.paragraph) if doctree else []
    text = next((one.astext() for one in paragraphs if isinstance(one.parent, nodes.section)), "")
    if not text:
        text = f"{context.get('title', name)}: {app.config.html_title or app.config.project}"
    found, title = escape(describe(text)), escape(str(context.get("title", "")))
    tags = f'<meta name="description" content="{found}">\n<meta property="og:description" content="{found}">\n'
    context["metatags"] = f'{context.get("metatags", "")}{tags}<meta property="og:title" content="{title}">\n'


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", _head)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
