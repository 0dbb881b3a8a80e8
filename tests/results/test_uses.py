"""The bounds of what a confidence can gain in a use."""

import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications import risk_area_bounds
from capcal_lib.results.uses import bounds_in_use

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
