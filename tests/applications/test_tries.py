"""The number of attempts that a first success takes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import betabinom, geom

from capcal_lib.applications import expected_tries, simulate_pass_at_k, tries_quantile
from capcal_lib.errors import InputError

SHARES = st.sampled_from([0.05, 0.25, 0.5, 0.9, 0.99])


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 0.99), st.sampled_from([0.3, 2.0, 40.0]), st.integers(1, 60))
def test_the_mean_is_that_of_the_attempts_made(s, nu, limit):
    # Attempt k + 1 is made if k of k fail.
    made = sum(float(betabinom.pmf(0, k, s * nu, (1 - s) * nu)) if k else 1.0 for k in range(limit))
    assert expected_tries([s], limit=limit, concentration=nu) == pytest.approx(made, rel=1e-9)
    assert expected_tries([s], limit=limit) == pytest.approx((1 - (1 - s) ** limit) / s, rel=1e-9)


def test_without_a_limit_it_is_the_mean_of_one_over_mu():
    mu = np.random.default_rng(0).beta(3, 5, 400_000)
    assert expected_tries([3 / 8], concentration=8)[0] == pytest.approx((1 / mu).mean(), rel=0.01)
    assert expected_tries([0.25, 1.0, 0.0]).tolist() == [4, 1, np.inf]
    assert expected_tries([0.25, 0.1, 1.0, 0.0, 0.5], concentration=4).tolist() == [np.inf, np.inf, 1, np.inf, 3]


def test_the_mean_of_a_posterior_grows_to_its_limit_or_without_one():
    finite, infinite = (
        [expected_tries([s], limit=k, concentration=2)[0] for k in (10, 1000, 100_000)] for s in (0.9, 0.3)
    )
    assert finite[-1] == pytest.approx(expected_tries([0.9], concentration=2)[0], abs=1e-3)
    assert infinite[2] / infinite[1] == pytest.approx(100 ** (1 - 0.3 * 2), rel=0.1)  # the tail is a power


@settings(max_examples=100, deadline=None)
@given(st.floats(0.02, 1), st.sampled_from([1.0, 5.0, 1e3, float("inf")]), SHARES)
def test_a_quantile_is_the_fewest_attempts_that_do(s, nu, share):
    k = tries_quantile([s], share, concentration=nu)[0]
    if np.isfinite(k):
        ks = [max(int(k) - 1, 1), int(k)]
        fewer, enough = simulate_pass_at_k([s], ks, concentration=nu)[0]
        assert enough >= share - 1e-9
        assert k == 1 or fewer < share + 1e-9


def test_a_plug_in_quantile_is_geometric():
    s = np.linspace(0.01, 0.99, 50)
    for share in (0.1, 0.5, 0.95):
        np.testing.assert_array_equal(tries_quantile(s, share), geom.ppf(share, s))
    assert tries_quantile([0.5, 0.5], 0.75, concentration=[np.inf, 1e-3]).tolist() == [2, np.inf]
    assert tries_quantile([0.0, 1.0], 0.5, concentration=1).tolist() == [np.inf, 1]


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="limit must be a whole number from 1"):
        expected_tries([0.5], limit=0)
    with pytest.raises(InputError, match="share must lie between 0 and 1"):
        tries_quantile([0.5], 1.0)
