"""Small orders, of the simulated model."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from capcal_lib.reproduce import PAPER, Order

BY_RULES = replace(PAPER, judge=None)  # the paper's recipe, with the verdicts of the rules


def small(store: Path, **others: Any) -> Order:
    """Six questions of a built-in set, answered by the simulated model."""
    asked: dict[str, Any] = {
        "model": "simulated",
        "datasets": ["mini-exam"],
        "limit": 6,
        "store": store,
    }
    return Order(**asked | others)
