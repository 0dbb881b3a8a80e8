"""Results: one tidy table of runs, its scores with intervals, and the state of a store."""

from capcal_lib.results.claims import judge_claim, measured_claims, printed_claims, read_claims
from capcal_lib.results.results import costs, describe_runs, judged_by, load_results, subjects
from capcal_lib.results.scores import MISSING_AS, best_constant, brier_terms, methods, score

__all__ = [
    "MISSING_AS",
    "best_constant",
    "brier_terms",
    "costs",
    "describe_runs",
    "judge_claim",
    "judged_by",
    "load_results",
    "measured_claims",
    "methods",
    "printed_claims",
    "read_claims",
    "score",
    "subjects",
]
