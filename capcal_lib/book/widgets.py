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

ELSEWHERE = (
    "<p>The experiment runs in the built book, which <code>capcal book</code> makes. "
    "Here is a table in its place.</p>"
)
UNDECIDABLE = "undecidable"  # where a perfect confidence would not be better either
HEADS = {  # of columns of verdicts, in their order
    "worse": "worse",
    "inconclusive": "cannot tell",
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
    scripts run, as in JupyterLab.

    >>> "<figcaption>Ask." in widget("coin", {}, "Ask.", fallback=Html("<p>0 of 0</p>"),
    ...     evidence="measured").html
    True
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return Html(
        f"<figure class='capcal-widget' data-widget='{kind}' data-label='{escape(caption)}'>"
        f"<script type='application/json'>{text}</script><div "
        f"class='cw-fallback'>{ELSEWHERE}{fallback.html}</div>"
        f"<figcaption>{escape(caption)} · {badge(evidence)}</figcaption></figure>"
    )


def verdict_grid(found: pd.DataFrame, *, rows: Sequence[str], caption: str, evidence: str) -> Html:
    """Draw comparisons as marks: a row a kind of method, a column a verdict, a mark a comparison.

    ``found`` has the columns ``kind``, ``model``, ``dataset`` and ``verdict`` of
    ``results.compare_with_constant``; a cell says in words how many there are, of those that could
    be decided.

    >>> one = {"kind": "P(True)", "model": "A", "dataset": "MMLU", "verdict": "inconclusive"}
    >>> drawn = verdict_grid(pd.DataFrame([one]), rows=["P(True)"], caption="Against a constant.",
    ...     evidence="measured")
    >>> drawn.html.count("title='MMLU, A: cannot tell'"), "1 of 1" in drawn.html
    (1, True)
    """
    decidable = found.loc[found["verdict"] != UNDECIDABLE, "kind"].value_counts()
    cells: dict[str, list[Html]] = {head: [] for head in HEADS.values()}
    for kind in rows:
        for verdict, head in HEADS.items():
            cases = found[(found["kind"] == kind) & (found["verdict"] == verdict)]
            marks = ""
            for model, name in cases[["model", "dataset"]].to_numpy():
                title = escape(f"{name}, {model}: {head}")
                marks += f"<i class='{verdict}' title='{title}'></i>"
            words = f"{len(cases)}"
            if verdict != UNDECIDABLE:
                words += f" of {decidable.get(kind, 0)}"
            span = f"<span class='verdicts' aria-hidden='true'>{marks}</span>"
            cells[head].append(Html(f"{span}<small>{words}</small>"))
    table = pd.DataFrame(cells, pd.Index(rows, name="confidence"))
    return Html(f"<div class='verdict-grid'>{show(table, caption, evidence=evidence).html}</div>")
