"""What the book's pages need beyond what Sphinx and the theme write: a description each, and roles
that readers of screens understand. It is a Sphinx extension."""

import re
from html import escape
from pathlib import Path
from typing import Any

from capcal_lib.book.style import font_files

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
    """Put the first paragraph of a page into its head, for search engines and links, and its
    minutes under its title.

    To study a page takes a minute for a hundred words of prose, and one for each figure or table.
    """
    from docutils import nodes

    paragraphs = list(doctree.findall(nodes.paragraph)) if doctree else []
    if paragraphs and name.startswith(("guide/", "notebooks/", "theory/")):
        shown = len(list(doctree.findall(nodes.image))) + str(context["body"]).count(
            "<figure class='capcal-table'"
        )
        minutes = round(shown + sum(len(one.astext().split()) for one in paragraphs) / 100)
        said = f'</h1><p class="capcal-minutes">{minutes} minutes</p>'
        context["body"] = context["body"].replace("</h1>", said, 1)
    text = next((one.astext() for one in paragraphs if isinstance(one.parent, nodes.section)), "")
    if not text:
        text = f"{context.get('title', name)}: {app.config.html_title or app.config.project}"
    found, title = escape(describe(text)), escape(str(context.get("title", "")))
    tags = (
        f'<meta name="description" content="{found}">\n'
        f'<meta property="og:description" content="{found}">\n'
    )
    context["metatags"] = (
        f'{context.get("metatags", "")}{tags}<meta property="og:title" content="{title}">\n'
    )


REWRITES = {
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    ' role="doc-biblioentry"': "",  # no longer a role of its own
    r'<th( class="head")?></th>': "<td></td>",  # the corner of a table heads nothing
    # the same icons as the font, in 1.5 MB
    r'<script defer src="[./]*_static/scripts/fontawesome[^>]*></script>': "",
    # one notebook, a page for each model
    r"(lab/tree/|/blob/[^/]+/)(notebooks/\w+)/[\w.-]+(?=\.ipynb\")": r"\1\2",
    # Folded cells beside each other that show nothing become one fold; the notebook keeps them, and
    # their tags.
    r'</details>\n</div>\n<div class="cell [^"]*tag_hide-input[^"]*">\n'
    r"<details [^>]*above-input[^>]*>\n<summary[\s\S]*?</summary>\n": "",
    r"(tag_solution[\s\S]{,200}?Show the) code"
    r"(</p>\s*<p[^>]*>Hide the) code": r"\1 solution\2 solution",
    # what a kernel has to know, and no reader
    r'(<span></span>)?<span class="c1"># needs \w+</span>\n': r"\1",
    '<div id="pst-primary-sidebar"': (
        '<div role="navigation" aria-label="The book" id="pst-primary-sidebar"'
    ),
}


def _rewrite(app: Any, exception: Exception | None) -> None:
    """Replace what Sphinx and the theme write and a page is better without; `REWRITES` says why of
    each.
    """
    if exception is None and app.builder.format == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = changed = page.read_text(encoding="utf-8")
            for old, new in REWRITES.items():
                changed = re.sub(old, new, changed)
            if changed != text:
                page.write_text(changed, encoding="utf-8")


def _fonts(app: Any, exception: Exception | None) -> None:
    """Put the book's faces where the style sheet looks for them, packed for browsers."""
    from fontTools.ttLib import TTFont

    if exception is None and app.builder.format == "html":
        folder = Path(app.outdir) / "_static" / "fonts"
        folder.mkdir(parents=True, exist_ok=True)
        for file in font_files():
            font = TTFont(file, recalcTimestamp=False)
            font.flavor = "woff"
            font.save(folder / file.with_suffix(".woff").name)


def _launch(_: Any, config: Any) -> None:
    """Offer to open pages elsewhere only where the address of the repository is set."""
    if not config.html_theme_options.get("repository_url"):
        config.html_theme_options["launch_buttons"] = {}


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect(
        "autodoc-skip-member", lambda *event: "Alias for field" in str(event[3].__doc__) or None
    )
    app.connect("config-inited", _launch)
    app.connect("html-page-context", _head)
    app.connect("build-finished", _rewrite)
    app.connect("build-finished", _fonts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
