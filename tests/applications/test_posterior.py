import numpy as np
import pytest
from scipy.stats import betabinom, kstest

from capcal_lib.applications import calibration_test, concentration_interval, fit_concentration
from capcal_lib.errors import InputError


def world(nu, n=2000, k=30, seed=0):
    """Confidences, and counts whose mu follows their posteriors."""
    rng = np.random.default_rng(seed)
    s = rng.uniform(0.05, 0.95, n)
    mu = s if np.isinf(nu) else rng.beta(s * nu, (1 - s) * nu)
    return s, rng.binomial(k, mu), np.full(n, k)


@pytest.mark.parametrize(("nu", "within"), [(0.3, 0.1), (5, 0.1), (200, 0.3)])
def test_it_finds_the_concentration(nu, within):
    assert fit_concentration(*world(nu)) == pytest.approx(nu, rel=within)


def test_it_is_the_maximum_of_the_likelihood():
    s, c, n = world(4, n=200)
    grid = np.geomspace(1, 16, 4001)
    naive = [betabinom.logpmf(c, n, s * nu, (1 - s) * nu).sum() for nu in grid]
    assert fit_concentration(s, c, n) == pytest.approx(grid[np.argmax(naive)], rel=2e-3)


def test_counts_without_spread_have_none():
    assert fit_concentration([0.5] * 4, [5, 5, 5, 5], [10] * 4) == np.inf
    assert fit_concentration([0.2, 0.7], [1, 0], [1, 1]) == np.inf  # one sample each says nothing
    infinite = [np.isinf(fit_concentration(*world(np.inf, seed=seed, n=300))) for seed in range(40)]
    assert 0.3 < np.mean(infinite) < 0.9


def test_certain_confidences_can_be_wrong():
    nu = fit_concentration([0.0, 1.0, 0.0, 1.0], [0, 10, 3, 8], [10] * 4)
    assert 0 < nu < 100


def test_the_order_of_rows_does_not_matter():
    s, c, n = world(3, n=100)
    order = np.random.default_rng(1).permutation(100)
    assert fit_concentration(s[order], c[order], n[order]) == pytest.approx(fit_concentration(s, c, n), rel=1e-9)


def test_the_interval_covers_as_often_as_it_says():
    inside = [
        low <= 5 <= high for _, low, high in (concentration_interval(*world(5, n=60, seed=s)) for s in range(200))
    ]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.045)


def test_the_interval_is_where_the_likelihood_falls_by_two():
    s, c, n = world(4, n=200)
    fit = concentration_interval(s, c, n)
    best, *ends = (betabinom.logpmf(c, n, s * nu, (1 - s) * nu).sum() for nu in fit)
    np.testing.assert_allclose(best - np.array(ends), 3.841459 / 2, rtol=1e-4)
    wide = concentration_interval(s, c, n, level=0.99)
    assert wide.low < fit.low < fit.estimate < fit.high < wide.high
    assert concentration_interval(*world(np.inf, n=50)).high == np.inf


def test_calibrated_posteriors_give_uniform_values():
    s, c, n = world(6)
    test = calibration_test(s, c, n, concentration=6, rng=np.random.default_rng(1))
    assert test.pit.shape == s.shape
    assert test.p_value == pytest.approx(kstest(test.pit, "uniform").pvalue)
    assert test.p_value > 0.01
    for wrong in (0.5, 60, None):
        assert calibration_test(s, c, n, concentration=wrong, rng=np.random.default_rng(1)).p_value < 1e-6


def test_the_test_rejects_a_calibrated_posterior_as_rarely_as_it_should():
    p = [
        calibration_test(*world(4, n=80, seed=seed), concentration=4, rng=np.random.default_rng(1000 + seed)).p_value
        for seed in range(200)
    ]
    assert np.mean(np.array(p) < 0.1) == pytest.approx(0.1, abs=0.06)


def test_values_lie_between_the_chances_of_fewer_and_of_as_many():
    s, c, n = [0.3, 0.8, 0.5], [0, 4, 7], [5, 4, 9]
    pit = calibration_test(s, c, n, concentration=2.0, rng=np.random.default_rng(0)).pit
    for value, a, hits, samples in zip(pit, s, c, n, strict=True):
        law = betabinom(samples, 2 * a, 2 * (1 - a))
        assert law.cdf(hits - 1) <= value <= law.cdf(hits)


@pytest.mark.parametrize("call", [fit_concentration, concentration_interval])
def test_bad_rows_are_refused(call):
    with pytest.raises(InputError, match="row 1: confidence is nan"):
        call([0.5, float("nan")], [1, 1], [2, 2])
    with pytest.raises(InputError, match="row 0: total is 0"):
        call([0.5], [0], [0])
    with pytest.raises(InputError, match="equally many rows"):
        call([0.5], [1, 1], [2, 2])
    with pytest.raises(InputError, match="level must lie between 0 and 1"):
        concentration_interval([0.5], [1], [2], level=95)
