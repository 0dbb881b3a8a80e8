"""Results: one tidy table of runs, its scores with intervals, and the state of a store."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from capcal_lib.errors import naming_extra

if TYPE_CHECKING:
    from capcal_lib.results.counting import Counting
    from capcal_lib.results.estimated import confidence_columns, differing, estimates, methods
    from capcal_lib.results.judged import (
        compare_recalibrated,
        compare_with_constant,
        compare_with_nearest_probe,
        count_by_kind,
        judge,
        tally,
    )
    from capcal_lib.results.results import costs, describe_runs, load_results, subjects
    from capcal_lib.results.scores import best_constant, brier_terms, recalibrate, score, terms_of
    from capcal_lib.results.terms import BEST_CONSTANT
    from capcal_lib.results.uses import compare_use, ways_to_use

MODULES = {
    "terms": ["BEST_CONSTANT"],
    "counting": ["Counting"],
    "results": ["costs", "describe_runs", "load_results", "subjects"],
    "estimated": ["confidence_columns", "differing", "estimates", "methods"],
    "scores": ["best_constant", "brier_terms", "recalibrate", "score", "terms_of"],
    "judged": [
        "compare_recalibrated",
        "compare_with_constant",
        "compare_with_nearest_probe",
        "count_by_kind",
        "judge",
        "tally",
    ],
    "uses": ["compare_use", "ways_to_use"],
}
__all__ = sorted(name for names in MODULES.values() for name in names)


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, since scoring a file needs no run store."""
    for module, names in MODULES.items():
        if name in names:
            with naming_extra():
                return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
