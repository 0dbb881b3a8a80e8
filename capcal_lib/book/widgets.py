"""Put a widget on a page: its data as JSON, and a table for readers without scripts. And draw
verdicts as marks.

``book/static/widgets.js`` draws it in the reader's browser, without a server.
"""

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Literal, get_args

import pandas as pd

from capcal_lib.book.tables import Html, badge, show
from capcal_lib.errors import InputError, unknown

Kind = Literal["coin", "theorem", "guess", "explorer", "abstain"]
MARKS = ("better", "inconclusive", "worse")
BYTES = 300_000  # that a widget may add to its page


def widget(
    kind: Kind, data: Mapping[str, Any], caption: str, *, fallback: Html, evidence: str
) -> Html:
    """Draw one of the widgets of ``book/static/widgets.js``, where each says what data it takes.

    ``data`` are what JSON can hold; NaN is not among it, and more than a page should carry is
    refused. The ``caption`` says what the reader can do and stands below with the evidence;
    ``fallback`` is a table that says the same where no scripts run.

    >>> "<figcaption>Ask." in widget("coin", {}, "Ask.", fallback=Html("<p>0 of 0</p>"),
    ...     evidence="measured").html
    True
    """
    if kind not in get_args(Kind):
        raise unknown("widget", kind, get_args(Kind))
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    if len(text.encode()) > BYTES:
        raise InputError(
            f"the data of a widget must not exceed {BYTES:,} bytes; got {len(text.encode()):,}"
        )
    return Html(
        f"<figure class='capcal-widget' data-widget='{kind}' data-label='{escape(caption)}'>"
        f"<script type='application/json'>{text}</script><div "
        f"class='cw-fallback'>{fallback.html}</div>"
        f"<figcaption>{escape(caption)} {badge(evidence)}</figcaption></figure>"
    )


def verdict_grid(
    found: pd.DataFrame, *, rows: Sequence[str], columns: Sequence[str], caption: str, evidence: str
) -> Html:
    """Draw comparisons as marks: a row a method, a column a model, a mark a data set.

    ``found`` has the columns ``method``, ``model``, ``dataset`` and ``verdict``, one of `MARKS`; a
    cell says in words how many are better and worse.

    >>> one = {"method": "P(True)", "model": "A", "dataset": "MMLU", "verdict": "better"}
    >>> drawn = verdict_grid(pd.DataFrame([one]), rows=["P(True)"], columns=["A"],
    ...     caption="Against a constant.", evidence="measured")
    >>> drawn.html.count("title='MMLU: better'"), "1 of 1 better" in drawn.html
    (1, True)
    """
    cells = {}
    for column in columns:
        own = found[found["model"] == column]
        cells[column] = [_marks(own[own["method"] == row]) for row in rows]
    table = pd.DataFrame(cells, index=pd.Index(rows, name=""))
    legend = ""
    for each in MARKS:
        legend += f"<span class='verdicts'><i class='{each}'></i></span> {each} "
    html = show(table, caption, evidence=evidence).html
    return Html(
        "<div class='verdict-grid'>"
        f"{html.replace('</figure>', f'<p class=capcal-legend>{legend}</p></figure>')}</div>"
    )


def _marks(cell: pd.DataFrame) -> Html:
    """Draw the marks of a cell, the better ones first, and count them in words."""
    if cell.empty:
        return Html("–")
    marks = ""
    for each in MARKS:
        for name in cell.loc[cell["verdict"] == each, "dataset"]:
            marks += f"<i class='{each}' title='{escape(name)}: {each}'></i>"
    better, _, worse = ((cell["verdict"] == each).sum() for each in MARKS)
    said = f"{better} of {len(cell)} better" + (f", {worse} worse" if worse else "")
    return Html(f"<span class='verdicts' aria-hidden='true'>{marks}</span><small>{said}</small>")
