"""Runs: the samples of a model on a split of a data set, and what was made from them."""

from capcal_lib.errors import naming_extra

with naming_extra():
    from capcal_lib.runs.run import Run, find_run, open_runs
    from capcal_lib.runs.store import KEY, read_samples

__all__ = ["KEY", "Run", "find_run", "open_runs", "read_samples"]
