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
MARKS = {"worse": "worse", "no better": "inconclusive", "better": "better"}  # and their classes
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


def verdict_grid(found: pd.DataFrame, *, rows: Sequence[str], caption: str, evidence: str) -> Html:
    """Draw comparisons as marks: a row a kind of method, a column a verdict, a mark a comparison.

    ``found`` has the columns ``kind``, ``model``, ``dataset`` and ``verdict``, one of `MARKS`; a
    cell says in words how many there are.

    >>> one = {"kind": "P(True)", "model": "A", "dataset": "MMLU", "verdict": "better"}
    >>> drawn = verdict_grid(pd.DataFrame([one]), rows=["P(True)"], caption="Against a constant.",
    ...     evidence="measured")
    >>> drawn.html.count("title='MMLU, A: better'"), "1 of 1" in drawn.html
    (1, True)
    """
    cells: dict[str, list[Html]] = {verdict: [] for verdict in MARKS}
    for row in rows:
        own = found[found["kind"] == row]
        for verdict, mark in MARKS.items():
            of = own[own["verdict"] == verdict]
            marks = "".join(
                f"<i class='{mark}' title='{escape(f'{name}, {model}: {verdict}')}'></i>"
                for name, model in zip(of["dataset"], of["model"], strict=True)
            )
            drawn = f"<span class='verdicts' aria-hidden='true'>{marks}</span>"
            cells[verdict].append(Html(f"{drawn}<small>{len(of)} of {len(own)}</small>"))
    table = pd.DataFrame(cells, index=pd.Index(rows, name="confidence"))
    return Html(f"<div class='verdict-grid'>{show(table, caption, evidence=evidence).html}</div>")
