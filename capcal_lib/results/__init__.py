"""Results: one tidy table of runs, its scores with intervals, and the state of a store."""

from capcal_lib.results.results import costs, describe_runs, judged_by, load_results, subjects
from capcal_lib.results.scores import MISSING_AS, best_constant, brier_terms, methods, score

__all__ = [
    "MISSING_AS",
    "best_constant",
    "brier_terms",
    "costs",
    "describe_runs",
    "judged_by",
    "load_results",
    "methods",
    "score",
    "subjects",
]
