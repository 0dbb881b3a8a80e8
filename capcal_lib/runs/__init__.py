"""Runs: the samples of a model on a split of a data set, and what was made from them."""

from capcal_lib.runs.run import Run, find_run, open_runs

__all__ = ["Run", "find_run", "open_runs"]
