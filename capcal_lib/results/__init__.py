"""Results: one tidy table of runs, its scores with intervals, and the state of a store."""

from capcal_lib.results.results import costs, describe_runs, load_results, subjects
from capcal_lib.results.scores import best_constant, brier_terms, methods, score
