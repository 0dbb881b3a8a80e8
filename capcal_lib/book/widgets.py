"""Put a widget on a page: its data as JSON, and a table for readers without scripts. And draw
verdicts as marks.

``book/static/widgets.js`` draws it in the reader's browser, without a server.
"""

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from capcal_lib.book.tables import Html, badge, show

UNDECIDABLE = "undecidable"  # where a perfect confidence would not be better either
MARKS = {  # and their classes
    "worse": "worse",
    "cannot tell": "inconclusive",
    "alike": "alike",
    "better": "better",
    UNDECIDABLE: "undecidable",
}


def widget(
    kind: str, data: Mapping[str, Any], caption: str, *, fallback: Html, evidence: str
) -> Html:
    """Draw one of the widgets of ``book/static/widgets.js``, where each says what data it takes.

    ``data`` are what JSON can hold, and NaN is not among it. The ``caption`` says what the reader
    can do and stands below with the evidence; ``fallback`` is a table that says the same where no
    scripts run.

    >>> "<figcaption>Ask." in widget("coin", {}, "Ask.", fallback=Html("<p>0 of 0</p>"),
    ...     evidence="measured").html
    True
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return Html(
        f"<figure class='capcal-widget' data-widget='{kind}' data-label='{escape(caption)}'>"
        f"<script type='application/json'>{text}</script><div "
        f"class='cw-fallback'>{fallback.html}</div>"
        f"<figcaption>{escape(caption)} {badge(evidence)}</figcaption></figure>"
    )


def verdict_grid(found: pd.DataFrame, *, rows: Sequence[str], caption: str, evidence: str) -> Html:
    """Draw comparisons as marks: a row a kind of method, a column a verdict, a mark a comparison.

    ``found`` has the columns ``kind``, ``model``, ``dataset`` and ``verdict``, one of `MARKS`; a
    cell says in words how many there are, of those that could be decided.

    >>> one = {"kind": "P(True)", "model": "A", "dataset": "MMLU", "verdict": "better"}
    >>> drawn = verdict_grid(pd.DataFrame([one]), rows=["P(True)"], caption="Against a constant.",
    ...     evidence="measured")
    >>> drawn.html.count("title='MMLU, A: better'"), "1 of 1" in drawn.html
    (1, True)
    """
    marks = pd.DataFrame("", index=pd.Index(rows, name="confidence"), columns=[*MARKS])
    for kind, model, name, verdict in found[["kind", "model", "dataset", "verdict"]].to_numpy():
        title = escape(f"{name}, {model}: {verdict}")
        marks.loc[kind, verdict] += f"<i class='{MARKS[verdict]}' title='{title}'></i>"
    decided = marks.drop(columns=UNDECIDABLE).sum(axis="columns").str.count("<i")
    cells: dict[str, list[Html]] = {}
    for verdict, column in marks.items():
        cells[str(verdict)] = []
        for kind, drawn in column.items():
            words = f"{drawn.count('<i')}"
            if verdict != UNDECIDABLE:
                words += f" of {decided[str(kind)]}"
            span = f"<span class='verdicts' aria-hidden='true'>{drawn}</span>"
            cells[str(verdict)].append(Html(f"{span}<small>{words}</small>"))
    table = pd.DataFrame(cells, marks.index)
    return Html(f"<div class='verdict-grid'>{show(table, caption, evidence=evidence).html}</div>")
