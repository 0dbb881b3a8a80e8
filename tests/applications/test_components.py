import numpy as np
import pytest
from scipy.stats import binom

from capcal_lib.applications import score_components
from capcal_lib.applications.components import Components
from capcal_lib.errors import InputError
from capcal_lib.metrics import capability_brier_terms


def rng(seed=0):
    return np.random.default_rng(seed)


def world(n, seed=0):
    """True mu, and a noisy confidence."""
    generator = rng(seed)
    mu = generator.beta(0.5, 0.5, n)
    return mu, np.clip(mu + generator.normal(0, 0.2, n), 0, 1)


@pytest.mark.parametrize(
    ("counts", "message"),
    [(([1], [4]), "at least two questions; got 1"), (([1, 1], [4, 3]), "row 1: total is 3")],
)
def test_bad_input_is_refused(counts, message):
    with pytest.raises(InputError, match=message):
        score_components(0.5, *counts)


def test_parts_of_a_score_in_a_known_world():
    mu, s = world(200_000)
    k = 6
    found = score_components(s, rng(1).binomial(k, mu), np.full(len(mu), k))
    v = mu * (1 - mu)
    assert found.estimate == pytest.approx(np.mean((s - mu) ** 2), abs=1e-3)
    assert found.between == pytest.approx(np.var((s - mu) ** 2), rel=0.05)
    assert found.within == pytest.approx(np.mean(4 * (s - mu) ** 2 * v), rel=0.05)
    assert found.pairs == pytest.approx(np.mean(2 * v**2), rel=0.03)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_variance_over_samples_is_exact(k):
    """For one question, over all counts that k samples can give."""
    s, mu = 0.8, 0.3
    counts = np.arange(k + 1)
    terms = capability_brier_terms([s] * (k + 1), counts, [k] * (k + 1), corrected=True)
    chances = binom.pmf(counts, k, mu)
    variance = chances @ terms**2 - (chances @ terms) ** 2
    v = mu * (1 - mu)
    assert variance == pytest.approx(4 * (s - mu) ** 2 * v / k + 2 * v**2 / (k * (k - 1)))
    parts = Components(0.0, between=0.25, within=4 * (s - mu) ** 2 * v, pairs=2 * v**2)
    assert parts.variance(k) == pytest.approx(0.25 + variance)


def test_a_single_sample_has_a_variance_where_no_pairs_count():
    assert Components(0.0, between=0.01, within=0.04).variance(1) == pytest.approx(0.05)


def test_groups_of_alike_questions_take_more_of_them():
    generator = rng(5)
    groups = np.repeat(np.arange(40), 25)
    shift = generator.normal(0, 0.2, 40)[groups]
    mu = np.clip(0.5 + shift, 0.02, 0.98)
    s, correct, total = np.full(1000, 0.5), generator.binomial(30, mu), np.full(1000, 30)
    alone, together = (
        score_components(s, correct, total),
        score_components(s, correct, total, clusters=groups),
    )
    terms = (s - mu) ** 2
    of_groups = terms.reshape(40, 25).mean(axis=1)
    assert together.between == pytest.approx(
        25 * of_groups.var(ddof=1), rel=0.1
    )  # 1000 questions are 40 groups
    assert alone.between == pytest.approx(terms.var(ddof=1), rel=0.05)
    assert together[2:] == alone[2:]


@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_noise_of_a_perfect_score_is_that_of_the_pairs(k):
    """With s = mu nothing else is left; the pairs come from counts of another study."""
    mu = rng(0).beta(0.5, 0.5, 400)
    counts = rng(1).binomial(100, mu), np.full(400, 100)
    pairs = score_components(counts[0] / 100, *counts).pairs
    drawn = rng(2).binomial(k, mu, (4000, 400))
    terms = (mu - drawn / k) ** 2 - drawn * (k - drawn) / (k * k * (k - 1))
    assert np.sqrt(pairs / (k * (k - 1)) / 400) == pytest.approx(terms.mean(axis=1).std(), rel=0.05)
