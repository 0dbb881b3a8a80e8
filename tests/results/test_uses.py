"""The bounds of what a confidence can gain in a use."""

import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications import abstaining_gains, budget_gains, risk_area_bounds
from capcal_lib.results.uses import PER_QUESTION, bounds_in_use, gain_in_use, perfect_gains

CORRECT, TOTAL = pd.Series([0, 3, 4, 10]), pd.Series([10, 10, 10, 10])


def test_an_evaluation_loses_up_to_three_quarters_and_gains_up_to_one() -> None:
    """A quarter of the samples has four times the variance of an answer, and very many none."""
    samples, variances = np.meshgrid([0.25, 0.5, 1, 2, 1e9], np.linspace(0, 0.25, 11))
    gains = variances - variances / samples
    found = bounds_in_use("Evaluation", CORRECT, TOTAL)
    assert found == pytest.approx((gains.min(), gains.max()))


def test_a_budget_loses_or_gains_a_whole_question() -> None:
    assert bounds_in_use("Budget", CORRECT, TOTAL) == (-1, 1)


def test_abstaining_has_the_bounds_of_the_area_under_its_curve() -> None:
    assert bounds_in_use("Abstaining", CORRECT, TOTAL) == risk_area_bounds(4)


def test_squared_errors_of_a_label_are_those_of_the_mean_of_the_others() -> None:
    """The constant is off by c or 1 - c at most, and a confidence by 1."""
    mu = CORRECT / TOTAL
    constants = (mu.sum() - mu) / (len(mu) - 1)
    low, high = bounds_in_use("Labels saved", CORRECT, TOTAL)
    most = np.maximum(constants, 1 - constants).max() ** 2
    least = np.minimum(constants, 1 - constants).min() ** 2 - 1
    assert (low, high) == pytest.approx((least, most))


def test_a_perfect_confidence_seldom_gains_where_questions_are_alike() -> None:
    """Their shares, which know the noise of the samples that judge them, always gain."""
    perfect, shares = [], []
    for seed in range(12):
        correct = pd.Series(np.random.default_rng(seed).binomial(12, 0.4, 400))
        judges = pd.DataFrame({"correct": correct, "total": 12})
        tokens = pd.Series(1.0, judges.index)
        perfect.append(perfect_gains(judges, tokens, "Abstaining").mean())
        shares.append(abstaining_gains(correct / 12, correct, judges["total"]).mean())
    assert min(shares) > 0.1
    assert np.median(perfect) == pytest.approx(0, abs=1e-9)
    assert np.mean(perfect) < 0.2 * np.mean(shares)


def test_a_budget_is_divided_by_the_posterior_where_a_concentration_is_given() -> None:
    confidence = pd.Series([0.02, 0.3, 0.5, 0.9])
    tokens = pd.Series(1.0, confidence.index)
    gained = gain_in_use("Budget", confidence, CORRECT, TOTAL, tokens=tokens, concentration=0.5)
    expected = budget_gains(confidence, CORRECT, TOTAL, PER_QUESTION, concentration=0.5)
    plug_in = budget_gains(confidence, CORRECT, TOTAL, PER_QUESTION)
    assert gained.tolist() == expected.tolist()
    assert gained.tolist() != plug_in.tolist()
