"""Results: one tidy table of runs, its scores with intervals, and the state of a store."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from capcal_lib.errors import naming_extra

if TYPE_CHECKING:
    from capcal_lib.results.constant import (
        compare_recalibrated,
        compare_with_constant,
        count_by_kind,
    )
    from capcal_lib.results.counting import Counting
    from capcal_lib.results.estimated import columns_of, confidence_columns, estimates, methods
    from capcal_lib.results.recalibrated import recalibrate
    from capcal_lib.results.results import costs, describe_runs, load_results, subjects
    from capcal_lib.results.scores import (
        MISSING_AS,
        best_constant,
        brier_terms,
        keep_nearest_probe,
        questions_predicted,
        score,
    )
    from capcal_lib.results.terms import BEST_CONSTANT

__all__ = [
    "BEST_CONSTANT",
    "MISSING_AS",
    "Counting",
    "best_constant",
    "brier_terms",
    "columns_of",
    "compare_recalibrated",
    "compare_with_constant",
    "confidence_columns",
    "costs",
    "count_by_kind",
    "describe_runs",
    "estimates",
    "keep_nearest_probe",
    "load_results",
    "methods",
    "questions_predicted",
    "recalibrate",
    "score",
    "subjects",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, since scoring a file needs no run store."""
    if name in __all__:
        for module in (
            "terms",
            "counting",
            "results",
            "estimated",
            "scores",
            "recalibrated",
            "constant",
        ):
            with naming_extra():
                room = import_module(f"{__name__}.{module}")
            if hasattr(room, name):
                return getattr(room, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
