"""Put a widget on a page, with its data as JSON and a table for readers without scripts, and draw
verdicts as marks.

``book/static/widgets.js`` draws the widget in the reader's browser, without a server."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from capcal_lib.book.tables import Html, badge, show
from capcal_lib.results.judged import WINNABLE, tally

ELSEWHERE = (
    "<p>The experiment runs in the built book, which <code>capcal book</code> makes. "
    "Here is a table in its place.</p>"
)
HEADS = {"worse": "worse", "inconclusive": "cannot tell", "better": "better"}  # of verdicts


def widget(
    kind: str, data: Mapping[str, Any], caption: str, *, fallback: Html, evidence: str
) -> Html:
    """Draw one of the widgets of ``book/static/widgets.js``, which says for each what data it
    takes.

    ``data`` must fit JSON, which has no NaN. The ``caption`` says what the reader can do, and
    stands below with the evidence. ``fallback`` is a table with the same content for readers
    without scripts, as in JupyterLab.

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


def verdict_grid(
    verdicts: pd.DataFrame, *, rows: Sequence[str], caption: str, evidence: str
) -> Html:
    """Draw comparisons as marks: one row per kind of method, one column per verdict.

    ``verdicts`` has the columns ``kind``, ``model``, ``dataset``, ``verdict`` and ``could be won``
    of ``results.compare_with_constant``. A cell gives the number of its comparisons out of all
    cases; for better ones, out of the cases that could be won. The mark of a case that could not be
    won is faint.

    >>> one = {"kind": "P(True)", "model": "A", "dataset": "MMLU", "verdict": "inconclusive"}
    >>> found = pd.DataFrame([one | {"could be won": True}])
    >>> drawn = verdict_grid(found, rows=["P(True)"], caption="Why?", evidence="measured")
    >>> drawn.html.count("title='MMLU, A: cannot tell'"), "1 of 1" in drawn.html
    (1, True)
    """
    counts = tally(verdicts, [verdicts["kind"].astype(str)])
    cells: dict[str, list[Html]] = {head: [] for head in HEADS.values()}
    for kind in rows:
        for verdict, head in HEADS.items():
            cases = verdicts[(verdicts["kind"] == kind) & (verdicts["verdict"] == verdict)]
            marks = ""
            for model, name, winnable in cases[["model", "dataset", WINNABLE]].to_numpy():
                title = f"{name}, {model}: {head}" + ("" if winnable else ", could not be won")
                faint = "" if winnable else " faint"
                marks += f"<i class='{verdict}{faint}' title='{escape(title)}'></i>"
            words = f"{len(cases)} of {counts['cases'].get(kind, 0)}"
            if verdict == "better":
                words = f"{counts['better'].get(kind, 0)} of {counts[WINNABLE].get(kind, 0)}"
            span = f"<span class='verdicts' aria-hidden='true'>{marks}</span>"
            cells[head].append(Html(f"{span}<small>{words}</small>"))
    table = pd.DataFrame(cells, pd.Index(rows, name="confidence"))
    return Html(f"<div class='verdict-grid'>{show(table, caption, evidence=evidence).html}</div>")
