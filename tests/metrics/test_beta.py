import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import betabinom

from capcal_lib.errors import InputError
from capcal_lib.metrics.beta import beta_from_moments, beta_pass_at_k, beta_sample

SHAPES = st.floats(0.01, 50)


@settings(max_examples=60, deadline=None)
@given(SHAPES, SHAPES)
def test_moments_lead_back_to_the_shapes(a, b):
    mean = a / (a + b)
    spread = a * b / ((a + b) * (a + b + 1))  # E[mu] - E[mu^2]
    assert beta_from_moments(mean, spread) == pytest.approx((a, b), rel=1e-9)


@pytest.mark.parametrize(
    ("mean", "spread", "message"),
    [
        (0.0, 0.1, "the mean expected accuracy must lie between 0 and 1 for a Beta; got 0.0"),
        (1.2, 0.1, "got 1.2"),
        (float("nan"), 0.1, "got nan"),
        (0.5, 0.25, "no Beta with mean 0.5 has E[mu(1-mu)] = 0.25; it must lie between 0 and mean(1-mean) = 0.25"),
        (0.5, 0.0, "no Beta with mean 0.5"),
        (0.9, 0.1, "mean(1-mean) = 0.09"),
        (0.5, float("nan"), "no Beta with mean 0.5"),
    ],
)
def test_impossible_moments_are_refused(mean, spread, message):
    with pytest.raises(InputError) as error:
        beta_from_moments(mean, spread)
    assert message in str(error.value)


@settings(max_examples=60, deadline=None)
@given(SHAPES, SHAPES, st.integers(1, 60))
def test_pass_at_k_is_one_minus_the_chance_of_no_success(a, b, k):
    # The chance of no success is the product of the posterior failure rates.
    none = np.prod([(b + i) / (a + b + i) for i in range(k)])
    assert beta_pass_at_k(a, b, [k])[0] == pytest.approx(1 - none, abs=1e-12)
    assert beta_pass_at_k(a, b, [k])[0] == pytest.approx(1 - betabinom.pmf(0, k, a, b), abs=1e-9)


def test_pass_at_k_is_the_integral_over_mu():
    integral, _ = quad(lambda mu: (1 - (1 - mu) ** 7) * 6 * mu * (1 - mu), 0, 1)
    assert beta_pass_at_k(2, 2, [7])[0] == pytest.approx(integral, abs=1e-12)


def test_uniform_mu_solves_k_of_k_plus_one():
    ks = np.array([1, 2, 10, 10**9])
    np.testing.assert_allclose(beta_pass_at_k(1, 1, ks), ks / (ks + 1), rtol=1e-9)


def test_samples_have_the_moments_and_follow_the_seed():
    mu = beta_sample(0.4, 0.6, 200_000, np.random.default_rng(1))
    assert mu.mean() == pytest.approx(0.4, abs=0.005)
    assert (mu * (1 - mu)).mean() == pytest.approx(0.12, abs=0.002)
    again = beta_sample(0.4, 0.6, 200_000, np.random.default_rng(1))
    other = beta_sample(0.4, 0.6, 200_000, np.random.default_rng(2))
    assert (mu == again).all()
    assert (mu != other).any()


def test_bad_shapes_and_sizes_are_refused():
    for a, b in [(0, 1), (1, -1), (float("nan"), 1), (float("inf"), 1)]:
        with pytest.raises(InputError, match="shapes of a Beta must be above 0"):
            beta_pass_at_k(a, b, [1])
        with pytest.raises(InputError, match="shapes of a Beta must be above 0"):
            beta_sample(a, b, 1, np.random.default_rng(0))
    with pytest.raises(InputError, match="row 0: k is 0"):
        beta_pass_at_k(1, 1, [0])
    with pytest.raises(InputError, match="n must be a whole number from 1"):
        beta_sample(1, 1, 0, np.random.default_rng(0))
