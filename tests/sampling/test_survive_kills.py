"""The short form of the benchmark: real kills and cuts of a real command."""

from pathlib import Path

import pytest

from benchmarks.survive_kills import survive


@pytest.mark.slow
def test_killed_and_cut_runs_end_with_the_rows_of_an_undisturbed_one(tmp_path: Path) -> None:
    figures = survive(tmp_path, kills=4, seed=1, k=60, limit=100, rows_per_shard=100)
    assert figures.kills == 4
    assert figures.kills_while_drawing >= 1
    assert sum(figures.cuts.values()) >= figures.refusals >= 1
    assert figures.rows == 6_000
    assert figures.same
