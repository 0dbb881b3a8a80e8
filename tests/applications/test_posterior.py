import numpy as np
import pytest
from scipy.stats import betabinom

from capcal_lib.applications import draw_accuracies, fit_concentration
from capcal_lib.errors import InputError


def world(nu, n=2000, k=30, seed=0):
    """Confidences, and counts whose mu follows their posteriors."""
    rng = np.random.default_rng(seed)
    s = rng.uniform(0.05, 0.95, n)
    mu = s if np.isinf(nu) else rng.beta(s * nu, (1 - s) * nu)
    return s, rng.binomial(k, mu), np.full(n, k)


@pytest.mark.parametrize(("nu", "within"), [(0.3, 0.1), (200, 0.3)])
def test_it_finds_the_concentration(nu, within):
    assert fit_concentration(*world(nu)) == pytest.approx(nu, rel=within)


def test_it_is_the_maximum_of_the_likelihood():
    s, c, n = world(4, n=200)
    grid = np.geomspace(1, 16, 4001)
    naive = [betabinom.logpmf(c, n, s * nu, (1 - s) * nu).sum() for nu in grid]
    assert fit_concentration(s, c, n) == pytest.approx(grid[np.argmax(naive)], rel=2e-3)


def test_counts_without_spread_have_none():
    assert fit_concentration([0.5] * 4, [5, 5, 5, 5], [10] * 4) == np.inf
    infinite = [np.isinf(fit_concentration(*world(np.inf, seed=seed, n=300))) for seed in range(20)]
    assert 0.3 < np.mean(infinite) < 0.9


def test_one_sample_a_question_is_refused_or_left_out():
    with pytest.raises(InputError, match="one sample per question cannot show"):
        fit_concentration([0.2, 0.7], [1, 0], [1, 1])
    s, c, n = world(3, n=200)
    single = np.append(s, [0.1, 0.9]), np.append(c, [1, 0]), np.append(n, [1, 1])
    assert fit_concentration(*single) == fit_concentration(s, c, n)


def test_certain_confidences_can_be_wrong():
    nu = fit_concentration([0.0, 1.0, 0.0, 1.0], [0, 10, 3, 8], [10] * 4)
    assert 0 < nu < 100


def test_bad_rows_are_refused():
    with pytest.raises(InputError, match="row 1: confidence is nan"):
        fit_concentration([0.5, float("nan")], [1, 1], [2, 2])
    with pytest.raises(InputError, match="row 0: total is 0"):
        fit_concentration([0.5], [0], [0])
    with pytest.raises(InputError, match="the same number of rows"):
        fit_concentration([0.5], [1, 1], [2, 2])


def test_draws_are_those_of_the_posterior_with_a_prior_over_questions():
    """Questions weigh the same in the mean of the prior, whatever the number of their samples."""
    correct, total = np.array([0, 3, 9, 60]), np.array([10, 10, 10, 100])
    mean = (correct / total).mean()
    nu = fit_concentration(np.full(4, mean), correct, total)
    drawn = draw_accuracies(correct, total, 20_000, rng=np.random.default_rng(0))
    assert drawn.shape == (20_000, 4)
    of_posterior = (mean * nu + correct) / (nu + total)
    assert drawn.mean(axis=0) == pytest.approx(of_posterior, abs=0.004)
    spread = of_posterior * (1 - of_posterior) / (nu + total + 1)
    assert drawn.var(axis=0) == pytest.approx(spread, rel=0.05)


def test_a_draw_does_not_know_the_noise_of_the_samples():
    """If all questions are alike, draws seldom differ: only where a fitted prior finds a spread."""
    shares, drawn = [], []
    for seed in range(12):
        correct = np.random.default_rng(seed).binomial(12, 0.4, 400)
        rng = np.random.default_rng(1)
        drawn.append(draw_accuracies(correct, np.full(400, 12), 1, rng=rng).std())
        shares.append(np.std(correct / 12))
    assert np.mean(drawn) < 0.2 * np.mean(shares)
    assert np.median(drawn) < 1e-12
