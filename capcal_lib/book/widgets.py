"""Put a widget on a page: its data as JSON, and a table for readers without scripts.

``book/static/widgets.js`` draws it in the reader's browser, without a server.
"""

import json
from collections.abc import Mapping
from html import escape
from typing import Any, Literal, get_args

from capcal_lib.book.tables import Html, badge
from capcal_lib.errors import InputError, unknown

Kind = Literal["coin", "theorem", "guess", "explorer", "abstain"]
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
