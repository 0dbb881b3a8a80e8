import numpy as np
import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.metrics import (
    capability_brier,
    correctness_variance,
    expected_response_brier,
    mean_interval,
)
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results import judged_by, load_results
from capcal_lib.results.targets import losses_by_target, response_distances


def made() -> pd.DataFrame:
    index = pd.MultiIndex.from_tuples(
        [("gsm8k", "a"), ("gsm8k", "b"), ("gsm8k", "c"), ("math500", "a")],
        names=["dataset", "question_id"],
    )
    return pd.DataFrame(
        {
            "correct": [0, 2, 1, 9],
            "total": [4, 4, 1, 10],
            "mine": [0.0, 1.0, 0.5, np.nan],
            "Probe (MATH) [0]": [0.2, 0.5, 0.5, 0.9],
            "Probe (MATH) [1]": [0.4, 0.5, 0.5, 0.5],
        },
        index,
    )


def test_distances_by_hand() -> None:
    found = response_distances(made())
    assert found["questions"].tolist() == [2, 1]  # that with one sample tells no distance
    assert found["mean distance"].tolist() == pytest.approx([2 * 4 / 12 / 2, 2 * 9 / 90])
    assert found["share between"].tolist() == [0.5, 0.0]  # .9 itself is not between
    plug_in = response_distances(made(), protocol="paper")
    assert plug_in["mean distance"].tolist() == pytest.approx([0.25, 2 * 0.9 * 0.1])


def test_questions_with_one_sample_have_no_distances_and_two_may_lie_apart_by_one() -> None:
    single = response_distances(made().query("total == 1"))
    assert single.empty
    assert single["mean distance"].dtype == float  # so that it can stand beside others in a figure
    two = made().iloc[:1].assign(correct=1, total=2)
    assert response_distances(two)["mean distance"].tolist() == [1.0]


def test_intervals_of_distances_are_those_of_a_mean() -> None:
    results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["gsm8k"])
    c, n = results["correct"], results["total"]
    expected = mean_interval(2 * c * (n - c) / n / (n - 1), bounds=(0, 0.5))
    found = response_distances(results).loc["gsm8k"]
    assert found[["mean distance", "low", "high"]].tolist() == pytest.approx([*expected])


def test_the_brier_score_by_both_targets_is_that_of_its_own_functions() -> None:
    results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["gsm8k", "mini-exam"])
    losses = losses_by_target(results)
    assert ("gsm8k", "P(True)") in losses.index
    for dataset, method in losses.index:
        s, *counts = judged_by(results.loc[[dataset]], method).to_numpy().T
        expected = [
            expected_response_brier(s, *counts),
            correctness_variance(*counts),
            capability_brier(s, *counts),
            0,
        ]
        assert losses.loc[(dataset, method)].tolist() == pytest.approx(expected)


@pytest.mark.parametrize("score", ["brier", "log", "spherical"])
def test_nothing_is_left_of_the_gap(score: str) -> None:
    losses = losses_by_target(made(), score=score, least=0.01)  # type: ignore[arg-type]
    assert losses["gap"].abs().max() < 1e-12
    assert (losses["Bregman information"] > 0).all()
    assert ("math500", "mine") not in losses.index


def test_losses_of_a_probe_are_the_mean_of_its_five() -> None:
    found = losses_by_target(made()).loc[("gsm8k", "Probe (MATH)"), "capability loss"]
    assert found == pytest.approx(((0.2**2 + 0.4**2) / 2 + 0 + 0.5**2) / 3)


def test_confidences_are_moved_from_the_ends() -> None:
    wrong = made().loc[["gsm8k"], ["correct", "total"]].assign(sure=1.0)
    moved = losses_by_target(wrong, score="log", least=0.001)
    never, half = -np.log(0.001), (np.log(0.5 / 0.999) + np.log(0.5 / 0.001)) / 2
    found = moved.loc[("gsm8k", "sure"), "capability loss"]
    assert found == pytest.approx((never + half - np.log(0.999)) / 3)
    with pytest.raises(InputError, match="least must be at least 0 and below"):
        losses_by_target(wrong, least=0.5)
