"""The theory pages' tables, against hand-computed cases and on every recorded run."""

import math

import numpy as np
import pandas as pd
import pytest

from capcal_lib.book import theory
from capcal_lib.manifests import RECORDED_RUNS
from capcal_lib.metrics.intervals import binomial_interval, coverage_probability
from capcal_lib.results import tables
from capcal_lib.results.evaluation import evaluated, load_evaluation
from tests.results.test_tables import FOUR, evaluation, rng

NOTHING = evaluation([0], [0])


@pytest.mark.parametrize("model", ["smollm2-135m", "simulated"])
def test_theorem_2_holds_on_every_recorded_run_for_every_score(model: str) -> None:
    datasets = evaluated(RECORDED_RUNS, model)
    assert len(datasets) >= 4
    for dataset in datasets:
        one = load_evaluation(RECORDED_RUNS, model, dataset)
        assert tables.theorem_2(one)["gap"].abs().max() < 1e-12
        general = theory.proper_scores(one)
        assert set(general["score"]) == {"brier", "log", "spherical"}
        assert general["gap"].abs().max() < 1e-12
        assert general["evidence"].unique().tolist() == [one.evidence]


def test_proper_scores_by_hand() -> None:
    table = theory.proper_scores(FOUR).set_index(["score", "method"])
    row = table.loc[("log", "P(True)")]
    lost = [-math.log(0.5), -math.log(0.9), -math.log(0.8)]  # of 2 in 4, 4 in 4 and none in 4 correct
    assert row["expected response loss"] == pytest.approx(sum(lost) / 3)
    assert row["Bregman information"] == pytest.approx(math.log(2) / 3)
    assert row["capability loss"] == pytest.approx((sum(lost) - math.log(2)) / 3)
    assert "Probe (Mini exam)" not in table.index.unique("method")


def test_a_sure_confidence_is_moved_from_the_edge() -> None:
    table = theory.proper_scores(evaluation([2], [4], {"P(True)": [1.0]}), clip=0.1)
    assert table["expected response loss"].iloc[1] == pytest.approx(-(math.log(0.9) + math.log(0.1)) / 2)


@pytest.mark.parametrize("score", ["brier", "log", "spherical"])
def test_optima_are_the_targets(score: str) -> None:
    row = theory.optima(evaluation([0, 1, 5, 10], [10, 10, 10, 10]), rng()).set_index("score").loc[score]
    assert row["furthest from C"] == row["furthest from mu_hat"] == 0
    assert row["optima apart"] == 0.5  # the second and the third question are undecided


def test_what_is_drawn_depends_on_the_seed() -> None:
    one = evaluation([5] * 40, [10] * 40)
    first, same, other = (theory.single_draws(one, rng(seed))["mean of draws"][0] for seed in (0, 0, 1))
    assert first == same != other


def test_one_draw_of_the_baseline_scatters_as_it_must() -> None:
    row = theory.single_draws(evaluation([0] * 50, [10] * 50), rng(), draws=20_000).iloc[0]
    assert row["exact"] == pytest.approx(1 / 3)
    assert row["mean of draws"] == pytest.approx(1 / 3, abs=0.002)
    assert row["sd of one draw"] == pytest.approx(math.sqrt((1 / 5 - 1 / 9) / 50), rel=0.03)  # Var of u^2


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
    assert theory.optima(NOTHING, rng()).empty
    assert theory.single_draws(NOTHING, rng()).empty
    assert theory.proper_scores(NOTHING).empty
    assert math.isnan(theory.at_the_ends([NOTHING])["none correct"][0])
    assert math.isnan(theory.coverage_on([NOTHING], 10)["wald"][0])


def test_the_widest_gap_has_no_sign() -> None:
    gaps = [pd.DataFrame({"gap": [0.0, -3.0]}), pd.DataFrame({"gap": [2.0]}), pd.DataFrame({"gap": []})]
    assert theory.widest_gap(gaps) == 3
    assert math.isnan(theory.widest_gap(gaps[2:]))
