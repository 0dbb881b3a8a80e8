"""What the book's pages need beyond what Sphinx and the theme write: a description and its minutes
each, roles that readers of screens understand, the faces, and old addresses that lead to new ones.
It is a Sphinx extension."""

import re
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from posixpath import dirname, relpath
from textwrap import shorten
from typing import Any

from capcal_lib.book.style import font_files

DESCRIPTION = 155  # characters, about what search engines show


def minutes(doctree: Any) -> int:
    """Estimate how long a page takes to read.

    A minute for 200 words of text, and a quarter of one for each figure, table and cell of code
    that is shown."""
    from docutils import nodes

    words = sum(len(one.astext().split()) for one in doctree.findall(nodes.paragraph))
    shown = len(list(doctree.findall(nodes.image)))
    for raw in doctree.findall(nodes.raw):
        shown += raw.astext().count("<figure class='capcal-table'")
    for cell in doctree.findall(nodes.container):
        folded = any(name.startswith(("tag_hide", "tag_remove")) for name in cell["classes"])
        shown += "cell" in cell["classes"] and not folded
    return max(1, round(words / 200 + shown / 4))


TIMED = ("guide/", "notebooks/", "theory/")  # pages that say how long they take
SUM = '<span class="capcal-sum">0</span>'  # is given the minutes of a path on the front page


def _sums(app: Any, body: str) -> Iterator[int]:
    """Add up the minutes of the pages that each path of the front page links."""
    from bs4 import BeautifulSoup

    for card in BeautifulSoup(body, "html.parser").select(".sd-card:has(.capcal-sum)"):
        links = {str(link["href"]) for link in card.select("a[href]")}
        pages = {link.partition("#")[0].removesuffix(".html") for link in links}
        timed = [page for page in sorted(pages & app.env.found_docs) if page.startswith(TIMED)]
        trees = [app.env.get_and_resolve_doctree(page, app.builder) for page in timed]
        yield sum(map(minutes, trees))


def _head(app: Any, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:  # noqa: ARG001
    """Put the first paragraph of a page into its head, for search engines and links, and its
    minutes under its title; those of whole paths on the front page.
    """
    from docutils import nodes

    paragraphs = list(doctree.findall(nodes.paragraph)) if doctree else []
    if paragraphs and name.startswith(TIMED):
        read = minutes(doctree)
        said = f'</h1><p class="capcal-minutes">{read} minute{"s" * (read > 1)}</p>'
        context["body"] = context["body"].replace("</h1>", said, 1)
    if name == app.config.root_doc:
        for read in _sums(app, context["body"]):
            context["body"] = context["body"].replace(SUM, SUM.replace("0", str(read)), 1)
    text = next((one.astext() for one in paragraphs if isinstance(one.parent, nodes.section)), "")
    if not text:
        text = f"{context.get('title', name)}: {app.config.html_title or app.config.project}"
    found = escape(shorten(text, DESCRIPTION, placeholder="…"))
    title = escape(str(context.get("title", "")))
    tags = (
        f'<meta name="description" content="{found}">\n'
        f'<meta property="og:description" content="{found}">\n'
        f'<meta property="og:title" content="{title}">\n'
    )
    context["metatags"] = context.get("metatags", "") + tags


def _keep_percent(app: Any, doctree: Any, name: str) -> None:  # noqa: ARG001
    """Keep a number and its per cent sign on one line, in all text that is not code."""
    from docutils import nodes

    for text in list(doctree.findall(nodes.Text)):
        if not isinstance(text.parent, nodes.literal | nodes.literal_block | nodes.raw):
            kept = re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", text)
            text.parent.replace(text, nodes.Text(kept))


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
    # a fold of what a cell shows
    r'(<details class="admonition hide below-input">\s*<summary[^>]*>\s*<p[^>]*>Show the) code'
    r"(</p>\s*<p[^>]*>Hide the) code": r"\1 output\2 output",
    # A formula keeps its comma.
    r'(?<!together">)(<span class="math notranslate nohighlight">[^<]*</span>[,.;:?!)]+)': (
        r'<span class="capcal-together">\1</span>'
    ),
    # An option keeps its hyphens.
    r'<span class="pre">(--[\w-]+)</span>': r'<span class="pre capcal-together">\1</span>',
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


MOVED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>This page has moved</title>
<link rel="canonical" href="{0}"><meta http-equiv="refresh" content="0; url={0}"></head>
<body><p>This page has moved: <a href="{0}">{0}</a>.</p></body></html>
"""


def redirect(folder: Path, moved: Mapping[str, str]) -> None:
    """Leave a page at every old address that leads to the new one, both without their ending."""
    for old, new in moved.items():
        page = folder / f"{old}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(MOVED.format(relpath(f"{new}.html", dirname(old))), encoding="utf-8")


def _redirect(app: Any, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        redirect(Path(app.outdir), app.config.redirects)


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
    app.connect("doctree-resolved", _keep_percent)
    app.connect("html-page-context", _head)
    app.connect("build-finished", _rewrite)
    app.connect("build-finished", _fonts)
    app.connect("build-finished", _redirect)
    app.add_config_value("redirects", {}, "html", dict)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
