import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.errors import InputError
from capcal_lib.metrics import (
    capability_brier_terms,
    correctness_variance_terms,
    expected_response_brier,
)
from capcal_lib.metrics.scores import (
    ProperScore,
    best_confidence,
    divergence,
    expected_response_loss,
)

SCORES = get_args(ProperScore)
INSIDE = st.floats(0.001, 0.999)


def information(correct, total, score="brier"):
    """Return the expected response loss of mu_hat itself: the Bregman information."""
    return expected_response_loss(np.divide(correct, total), correct, total, score=score)


# Each score as its textbooks write it, for a single sample: what is lost against the perfect
# confidence.
LOST = {
    "brier": lambda z, s: (z - s) ** 2,
    "log": lambda z, s: -math.log(s if z else 1 - s),
    "spherical": lambda z, s: 1 - (s if z else 1 - s) / math.sqrt(s**2 + (1 - s) ** 2),
}


@pytest.mark.parametrize("score", SCORES)
@given(s=INSIDE, z=st.sampled_from([0, 1]))
@settings(deadline=None, max_examples=25)
def test_on_one_sample_it_is_the_textbooks_score(score, s, z):
    assert divergence([z], [s], score=score)[0] == pytest.approx(LOST[score](z, s), abs=1e-12)


@pytest.mark.parametrize("score", SCORES)
@given(s=INSIDE, total=st.integers(1, 200), share=st.floats(0, 1))
@settings(deadline=None, max_examples=25)
def test_theorem_2_holds_for_every_score(score, s, total, share):
    correct = round(share * total)
    naive = (correct * LOST[score](1, s) + (total - correct) * LOST[score](0, s)) / total
    counts = [correct], [total]
    response = expected_response_loss([s], *counts, score=score)[0]
    assert response == pytest.approx(naive, abs=1e-12)
    gap = response - divergence([correct / total], [s], score=score)[0]
    assert gap == pytest.approx(information(*counts, score)[0], abs=1e-12)


@pytest.mark.parametrize("score", SCORES)
@given(t=INSIDE, s=INSIDE)
@settings(deadline=None, max_examples=25)
def test_only_the_target_itself_loses_nothing(score, t, s):
    assert divergence([t], [t], score=score)[0] == pytest.approx(0, abs=1e-12)
    assert divergence([t], [s], score=score)[0] >= -1e-15
    if abs(t - s) > 1e-3:
        assert divergence([t], [s], score=score)[0] > 1e-8


def test_brier_is_that_of_the_metrics():
    rng = np.random.default_rng(0)
    total = rng.integers(1, 50, 200)
    correct, s = rng.integers(0, total + 1), rng.random(200)
    terms = capability_brier_terms(s, correct, total)
    np.testing.assert_allclose(divergence(correct / total, s), terms, atol=1e-15)
    response = expected_response_loss(s, correct, total)
    assert response.mean() == pytest.approx(expected_response_brier(s, correct, total), abs=1e-15)
    variance = correctness_variance_terms(correct, total)
    np.testing.assert_allclose(information(correct, total), variance, atol=1e-15)


def test_information_by_hand():
    entropy = -0.25 * math.log(0.25) - 0.75 * math.log(0.75)
    assert information([1], [4], "log")[0] == pytest.approx(entropy, abs=1e-15)
    assert information([1], [2], "spherical")[0] == pytest.approx(1 - math.sqrt(0.5), abs=1e-15)


def test_a_sure_confidence_that_is_wrong_loses_infinitely_by_the_log_score():
    assert expected_response_loss([0.0, 0.0, 1.0], [0, 1, 4], [4, 4, 4], score="log").tolist() == [
        0,
        math.inf,
        0,
    ]
    assert divergence([0, 0.25, 1], [0, 0, 1], score="log").tolist() == [0, math.inf, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: divergence([0.5], [0.5], score="zero-one"),
            "unknown proper score 'zero-one'; known: brier, log, sph",
        ),
        (
            lambda: expected_response_loss([0.5], [1], [2], score="logg"),
            "unknown proper score 'logg'",
        ),
        (lambda: divergence([0.5], [1.5]), "row 0: confidence is 1.5"),
        (lambda: divergence([0.5, 0.5], [0.5]), "2"),
        (lambda: expected_response_loss([0.5], [0], [0]), "row 0"),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(InputError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("score", ["brier", "log", "spherical"])
def test_the_best_confidence_is_the_target(score: ProperScore) -> None:
    """Theorem 1: by both targets, of a sample's correctness and of the expected accuracy."""
    correct = np.arange(8)
    assert best_confidence(correct / 7, 7, score=score) == pytest.approx(correct / 7)
    assert best_confidence([0.0, 1.0], [3, 5], score=score).tolist() == [0.0, 1.0]
    assert best_confidence([0.3], [2], score="brier").tolist() == [0.5]  # the next of the grid
    assert best_confidence([0.2], [2], score="log").tolist() == [0.5]  # 0 loses infinitely


def test_a_search_of_the_best_confidence_takes_a_grid() -> None:
    with pytest.raises(InputError, match="total"):
        best_confidence([0.5], [0])
