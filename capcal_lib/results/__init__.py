"""Results: one tidy table of a model's runs, its scores with intervals, and the state of a store."""

from capcal_lib.results.results import costs, describe_runs, load_results, subjects

__all__ = ["costs", "describe_runs", "load_results", "subjects"]
