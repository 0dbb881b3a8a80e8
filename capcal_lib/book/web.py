"""Add to the book's pages what Sphinx and the theme lack: explained terms, roles for screen
readers, and fonts. This is a Sphinx extension."""

import re
from pathlib import Path
from typing import Any

from capcal_lib.book.style import font_files

GLOSSARY = "reference/vocabulary"
PLAIN_WORDS = {  # of the glossary, that every reader knows
    "question",
    "sample",
    "response",
    "paper",
    "judge",
    "verdict",
    "temperature",
    "k",
    "coverage",
    "risk",
    "uncertainty",
    "supported",
    "reversed",
    "inconclusive",
    "baseline",
    "labelled",
    "unlabelled",
    "no labels",
}


def _explain(app: Any, doctree: Any, name: str) -> None:
    """Explain each term of the glossary, on hover, at its first use on a page."""
    from docutils import nodes

    if name.startswith("reference/"):
        return
    meanings: dict[str, str] = {}
    for item in app.env.get_doctree(GLOSSARY).findall(nodes.definition_list_item):
        *terms, definition = item
        text = definition[0].astext().replace(r"\hat\mu", "μ̂").replace(r"\mu", "μ")
        for word in {term.astext().lower() for term in terms} - PLAIN_WORDS:
            meanings[word] = meanings[f"{word}s"] = " ".join(text.split())
    words = map(re.escape, sorted(meanings, key=len, reverse=True))
    pattern = re.compile(rf"\b({'|'.join(words)})\b", re.IGNORECASE)
    explained = {""}
    for text in [one for one in doctree.findall(nodes.Text) if type(one.parent) is nodes.paragraph]:
        parts: list[Any] = list(map(nodes.Text, pattern.split(text)))
        for place, part in enumerate(parts):
            meaning = meanings.get(part.lower(), "")
            if meaning not in explained:
                explained.add(meaning)
                parts[place] = nodes.abbreviation("", part, explanation=meaning)
        text.parent.replace(text, parts)


REWRITES = {
    r"(?<=\d) %": "\N{NO-BREAK SPACE}%",  # code has its numbers in tags of their own
    # the arrows of the side bar
    '<summary>(?=<span class="toctree-toggle")': '<summary aria-label="Pages below">',
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    ' role="doc-biblioentry"': "",  # no longer a role of its own
    r'<th( class="head")?></th>': "<td></td>",  # the corner of a table heads nothing
    # the same icons as the font, in 1.5 MB
    r'<script defer src="[./]*_static/scripts/fontawesome[^>]*></script>': "",
    r"(tag_solution[\s\S]{,200}?Show the) code"
    r"(</p>\s*<p[^>]*>Hide the) code": r"\1 solution\2 solution",
    # What the menu of downloads has, where it is seen.
    r'<div class="dropdown dropdown-download-buttons">'
    r'(?=[\s\S]{,400}?href="([./]*_sources/(notebooks/[\w.-]+\.ipynb))")': (
        r'<a class="btn btn-sm capcal-notebook" href="\1" download title="Downloads it. In a copy '
        r'of the repository: jupyter lab \2">Open this notebook</a>\g<0>'
    ),
    # A figure has a form for a telephone.
    r'<img [^>]*src="([./]*)_images/(\w{64}\.svg)"[^>]*>': (
        r'<picture><source media="(max-width: 576px)" srcset="\1_static/narrow/\2">\g<0></picture>'
    ),
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


def _finish(app: Any, exception: Exception | None) -> None:
    """Improve the pages that Sphinx and the theme wrote, with `REWRITES`, and put the book's fonts,
    packed for browsers, into the folder that the style sheet names.
    """
    from fontTools.ttLib import TTFont

    if exception:
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for old, new in REWRITES.items():
            text = re.sub(old, new, text)
        page.write_text(text, encoding="utf-8")
    folder = Path(app.outdir) / "_static" / "fonts"
    folder.mkdir(parents=True, exist_ok=True)
    for file in font_files():
        font = TTFont(file, recalcTimestamp=False)
        font.flavor = "woff"
        font.save(folder / file.with_suffix(".woff").name)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    from capcal_lib.book.glued import WholeParagraphs

    app.connect(
        "autodoc-skip-member",
        lambda *event: (
            "Alias for field" in str(event[3].__doc__)
            or event[2].endswith(("_request", "metadata_routing"))  # of scikit-learn's estimators
            or None
        ),
    )
    app.add_post_transform(WholeParagraphs)
    app.connect("doctree-resolved", _explain)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
