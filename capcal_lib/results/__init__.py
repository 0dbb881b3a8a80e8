"""Results: one tidy table of runs, its scores with intervals, and the state of a store."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capcal_lib.results.results import costs, describe_runs, judged_by, load_results, subjects
    from capcal_lib.results.scores import (
        MISSING_AS,
        best_constant,
        brier_terms,
        gains_by_dataset,
        methods,
        score,
    )

__all__ = [
    "MISSING_AS",
    "best_constant",
    "brier_terms",
    "costs",
    "describe_runs",
    "gains_by_dataset",
    "judged_by",
    "load_results",
    "methods",
    "score",
    "subjects",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: to score a file takes no run store."""
    if name in __all__:
        for module in ("results", "scores"):
            if hasattr(room := import_module(f"{__name__}.{module}"), name):
                return getattr(room, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
