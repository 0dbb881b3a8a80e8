"""Where counts lie within what a posterior predicts."""

import numpy as np
import pytest
from scipy.stats import kstest

from capcal_lib.applications import posterior_places


@pytest.fixture
def world():
    """Counts of 20 samples of 2,000 questions whose mu is Beta(1, 1): s = 1/2 and nu = 2."""
    rng = np.random.default_rng(1)
    return np.full(2_000, 0.5), rng.binomial(20, rng.beta(1, 1, 2_000)), np.full(2_000, 20)


def places(world, nu):
    return posterior_places(*world, concentration=nu, rng=np.random.default_rng(0))


def test_the_true_posterior_has_even_places(world):
    assert kstest(places(world, 2.0), "uniform").pvalue > 0.05


def test_one_that_is_too_sure_has_its_counts_at_the_ends(world):
    for sure in (20.0, np.inf, None):
        assert np.mean(np.abs(places(world, sure) - 0.5) > 0.45) > 0.3


def test_one_that_is_not_sure_enough_has_them_in_the_middle(world):
    assert np.mean(np.abs(places(world, 0.2) - 0.5) < 0.25) > 0.6


def test_a_place_lies_between_the_chances_of_less_and_of_as_much():
    drawn = [
        posterior_places([0.5], [1], [2], rng=np.random.default_rng(seed))[0] for seed in range(200)
    ]
    assert 0.25 <= min(drawn) < 0.27
    assert 0.73 < max(drawn) <= 0.75
