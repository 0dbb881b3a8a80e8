"""The theory pages' tables, against hand-computed cases and on every recorded run."""

import math

import numpy as np
import pytest

from capcal_lib.book import theory
from capcal_lib.metrics.intervals import binomial_interval, coverage_probability
from capcal_lib.results import tables
from tests.results.test_tables import evaluation, rng

NOTHING = evaluation([0], [0])


def test_exact_coverage_is_that_of_the_intervals_and_its_width_is_a_mean() -> None:
    table = theory.exact_coverage([0.1, 0.5], 20).set_index(["method", "mu"])
    assert sorted(table.index.unique("method")) == ["clopper-pearson", "jeffreys", "wald", "wilson"]
    assert table["coverage"]["wald", 0.5] == pytest.approx(coverage_probability([0.5], 20, method="wald")[0])
    limits = binomial_interval(np.arange(21), np.full(21, 20), method="wilson")
    mean = sum(math.comb(20, c) / 2**20 * (limits[c, 1] - limits[c, 0]) for c in range(21))
    assert table["width"]["wilson", 0.5] == pytest.approx(mean)
    assert set(table["evidence"]) == {"simulated"}


def test_coverage_summary_takes_the_mean_and_the_least() -> None:
    wald = theory.coverage_summary(theory.exact_coverage([0.01, 0.5], 100)).set_index("method").loc["wald"]
    covered = coverage_probability([0.01, 0.5], 100, method="wald")
    assert wald["mean"] == pytest.approx(covered.mean())
    assert wald["least"] == covered[0]


def test_drawn_and_exact_coverage_agree() -> None:
    drawn = tables.coverage([0.03, 0.4], 60, rng(), draws=40_000)
    both = drawn.merge(theory.exact_coverage([0.03, 0.4], 60), on=["method", "mu"], suffixes=(" drawn", ""))
    assert len(both) == 8
    assert (both["coverage drawn"] - both["coverage"]).abs().max() < 0.008


def test_coverage_on_a_data_set_is_the_mean_over_its_questions() -> None:
    row = theory.coverage_on([evaluation([1, 0, 0], [10, 10, 0])], 50).iloc[0]
    assert row["wald"] == pytest.approx(coverage_probability([1.5 / 11, 0.5 / 11], 50, method="wald").mean())
    assert row["evidence"] == "simulated"


def test_at_the_ends_by_hand() -> None:
    row = theory.at_the_ends([evaluation([0, 3, 4, 4, 0], [4, 4, 4, 4, 0])]).iloc[0]
    assert (row["questions"], row["none correct"], row["all correct"]) == (4, 0.25, 0.5)


def test_no_scored_sample_is_nothing_to_show() -> None:
    assert math.isnan(theory.at_the_ends([NOTHING])["none correct"][0])
    assert math.isnan(theory.coverage_on([NOTHING], 10)["wald"][0])
