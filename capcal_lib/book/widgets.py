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
from capcal_lib.results.judged import WINNABLE, tally

ELSEWHERE = (
    "<p>The experiment runs in the built book, which <code>capcal book</code> makes. "
    "Here is a table in its place.</p>"
)
HEADS = {"worse": "worse", "inconclusive": "cannot tell", "better": "better"}  # of verdicts


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


def verdict_grid(
    verdicts: pd.DataFrame, *, rows: Sequence[str], caption: str, evidence: str
) -> Html:
    """Draw comparisons as marks: a row a kind of method, a column a verdict, a mark a comparison.

    ``found`` has the columns ``kind``, ``model``, ``dataset``, ``verdict`` and ``could be won`` of
    ``results.compare_with_constant``. A cell says how many there are: of all cases, and those that
    are better of the cases that could be won; a mark of a case that could not is faint.

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
