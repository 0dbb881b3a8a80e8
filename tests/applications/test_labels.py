import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications import accuracy_from_labels
from capcal_lib.errors import InputError
from capcal_lib.metrics import mean_interval

LABEL, S = np.array([1, 0, 1, 1]), np.array([0.9, 0.2, 0.8, 0.3])
OTHERS = np.array([0.2, 0.3, 0.1, 0.4, 0.2, 0.3])


def test_the_estimate_by_hand() -> None:
    """The weight is the covariance over the variance of the confidence, shrunk by 1 + n/N."""
    spread = np.var([*S, *OTHERS], ddof=1)
    weight = np.cov(LABEL, S)[0, 1] / spread / (1 + 4 / 6)
    assert 0 < weight < 1
    by_hand = weight * OTHERS.mean() + np.mean(LABEL - weight * S)
    assert accuracy_from_labels(LABEL, S, OTHERS).estimate == pytest.approx(by_hand)


def test_a_constant_leaves_the_labels_alone_with_the_interval_of_agresti_and_coull() -> None:
    found = accuracy_from_labels(LABEL, np.full(4, 0.3), np.full(9, 0.3))
    share = (3 + 2) / (4 + 4)
    half = 1.96 * np.sqrt(share * (1 - share) / 7)
    assert found.estimate == 0.75
    assert (found.low, found.high) == pytest.approx((share - half, min(1, share + half)), abs=1e-4)


def test_a_confidence_that_runs_against_the_labels_is_left_out() -> None:
    assert accuracy_from_labels(LABEL, 1 - LABEL, OTHERS).estimate == pytest.approx(0.75)


def test_series_are_put_side_by_side_by_their_index() -> None:
    label, s = pd.Series(LABEL, list("abcd")), pd.Series(S, list("abcd"))
    assert accuracy_from_labels(label, s[::-1], OTHERS) == accuracy_from_labels(LABEL, S, OTHERS)


@pytest.mark.parametrize("mean", [0.006, 0.03, 0.15, 0.5, 0.95, 0.994])
@pytest.mark.parametrize("blur", [0, 0.5])
def test_fifty_labels_keep_the_promise_at_every_accuracy(mean: float, blur: float) -> None:
    """Above .93 of 600 studies: an interval of .95 falls below that once in a hundred times."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(600):
        mu = rng.beta(mean / 2, (1 - mean) / 2, 500)
        s = np.clip(mu + rng.normal(0, blur, 500), 0, 1)
        found = accuracy_from_labels(rng.binomial(1, mu[:50]), s[:50], s[50:])
        held += found.low <= mean <= found.high
    assert held / 600 >= 0.93


def test_a_good_confidence_narrows_the_interval() -> None:
    rng = np.random.default_rng(0)
    mu = rng.beta(0.3, 0.3, 1000)
    label = rng.binomial(1, mu[:50])
    with_it = accuracy_from_labels(label, mu[:50], mu[50:])
    without = accuracy_from_labels(label, np.full(50, 0.5), np.full(950, 0.5))
    assert with_it.high - with_it.low < 0.75 * (without.high - without.low)
    assert with_it.high - with_it.low < 0.8 * (np.subtract(*mean_interval(label)[2:0:-1]))


@pytest.mark.parametrize(
    ("label", "confidence", "others", "said"),
    [
        ([1], [0.5], [0.5, 0.5], "two labels"),
        ([1, 0], [0.5, 0.5], [0.5], "two labels"),
        ([1, 2], [0.5, 0.5], [0.5, 0.5], "label is 1"),
        ([1, 0], [0.5, 1.5], [0.5, 0.5], "confidence"),
        ([1, 0], [0.5, np.nan], [0.5, 0.5], "confidence"),
        ([1, 0, 1], [0.5, 0.5], [0.5, 0.5], "rows"),
    ],
)
def test_what_is_refused(label, confidence, others, said) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=said):
        accuracy_from_labels(label, confidence, others)
