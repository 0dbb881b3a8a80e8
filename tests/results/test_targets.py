from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from capcal_lib.errors import InputError
from capcal_lib.metrics import (
    capability_brier,
    correctness_variance,
    expected_response_brier,
    mean_interval,
)
from capcal_lib.results import estimates
from capcal_lib.results.targets import (
    accuracy_variance,
    judge_alike,
    losses_by_target,
    response_distances,
    shares_between,
)
from capcal_lib.results.terms import NUMBERS


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
    assert found["share between"].isna().tolist() == [True, False]  # four samples are too few
    assert found.loc["math500", "share between"] == 0  # .9 itself is not between
    plug_in = response_distances(made(), protocol="paper")
    assert plug_in["mean distance"].tolist() == pytest.approx([0.25, 2 * 0.9 * 0.1])


def test_questions_of_a_subject_are_one_cluster_of_an_interval() -> None:
    names = [f"mmlu/test/{subject}/{n}" for subject in ("anatomy", "law", "art") for n in range(4)]
    index = pd.MultiIndex.from_product([["mmlu"], names], names=["dataset", "question_id"])
    counts = {"correct": [1] * 4 + [2] * 4 + [4] * 4, "total": 4}  # alike within a subject
    found = response_distances(pd.DataFrame(counts, index)).loc["mmlu"]
    distances = np.repeat([0.5, 2 / 3, 0], 4)
    wanted = mean_interval(distances, clusters=np.repeat([0, 1, 2], 4), bounds=(0, 0.5))
    assert found[["mean distance", "low", "high"]].tolist() == pytest.approx(list(wanted))


def test_questions_with_one_sample_have_no_distances_and_two_may_lie_apart_by_one() -> None:
    single = response_distances(made().query("total == 1"))
    assert single.empty
    assert single["mean distance"].dtype == float  # so that it can stand beside others in a figure
    two = made().iloc[:1].assign(correct=1, total=2)
    assert response_distances(two)["mean distance"].tolist() == [1.0]


def counts_of(correct: list[int], total: list[int]) -> pd.DataFrame:
    index = pd.MultiIndex.from_product([["gsm8k"], map(str, range(len(total)))])
    index.names = ["dataset", "question_id"]
    return pd.DataFrame({"correct": correct, "total": total}, index)


def test_shares_between_are_those_of_all_choices_of_ten_samples() -> None:
    """Two of 20 are both among ten with probability 10/20 9/19; of ten there is one choice."""
    found = shares_between(counts_of([2, 1, 2, 8, 9, 0, 9], [20, 10, 10, 10, 10, 40, 9]))
    assert found[:6].tolist() == pytest.approx([90 / 380, 0, 1, 1, 0, 0])
    assert np.isnan(found.iloc[6])


def test_the_variance_of_accuracy_by_hand() -> None:
    """Shares of 0, 1/2 and 1 vary by 1/4; their noise is (0 + 1/4/3 + 0) / 3."""
    counts = counts_of([0, 2, 4, 1], [4, 4, 4, 1])  # that with one sample tells nothing of noise
    assert accuracy_variance(counts).to_dict() == pytest.approx({"gsm8k": 1 / 4 - 1 / 36})
    assert accuracy_variance(counts.head(1)).isna().all()


def test_the_variance_of_accuracy_has_no_bias() -> None:
    """Over all that three and five samples of two questions may show, weighted by its chance."""
    mu, total = [0.2, 0.6], [3, 5]
    expected = 0.0
    for correct in product(range(4), range(6)):
        chance = np.prod(binom.pmf(correct, total, mu))
        expected += chance * accuracy_variance(counts_of([*correct], total)).item()
    assert expected == pytest.approx(np.var(mu, ddof=1))


def test_all_methods_are_judged_by_the_samples_that_did_not_vote() -> None:
    results = made().assign(**{"votes correct": [0, 1, np.nan, np.nan]})
    results = results.assign(**{"votes total": [2, 2, np.nan, np.nan], "votes term": 0.1})
    alike = judge_alike(results)
    assert alike.index.tolist() == [("gsm8k", "a"), ("gsm8k", "b"), ("math500", "a")]
    assert alike[["correct", "total"]].values.tolist() == [[0, 2], [1, 2], [9, 10]]
    assert [*alike] == [*results]
    assert alike["mine"].tolist()[:2] == [0.0, 1.0]
    pd.testing.assert_frame_equal(judge_alike(made()), made())


def test_intervals_of_distances_are_those_of_a_mean(recorded: pd.DataFrame) -> None:
    results = recorded.loc[["gsm8k"]]
    c, n = results["correct"], results["total"]
    expected = mean_interval(2 * c * (n - c) / n / (n - 1), bounds=(0, 0.5))
    found = response_distances(results).loc["gsm8k"]
    assert found[["mean distance", "low", "high"]].tolist() == pytest.approx([*expected])


def test_the_brier_score_by_both_targets_is_that_of_its_own_functions(
    recorded: pd.DataFrame,
) -> None:
    results = recorded.loc[["gsm8k", "mini-exam"]]
    losses = losses_by_target(results)
    alike = judge_alike(results)
    assert ("gsm8k", "P(True)") in losses.index
    for dataset, method in losses.index:
        s, *counts = estimates(alike.loc[[dataset]], method)[NUMBERS].to_numpy().T
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
    with pytest.raises(InputError, match="least must be at least 0 and below"):
        losses_by_target(made(), least=0.5)
