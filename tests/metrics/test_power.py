import numpy as np
import pytest

from capcal_lib.errors import InputError
from capcal_lib.metrics import capability_brier_terms
from capcal_lib.metrics.intervals import paired_difference
from capcal_lib.metrics.power import Components, questions_needed, samples_needed, variance_components


def rng(seed=0):
    return np.random.default_rng(seed)


def world(n, seed=0):
    """True mu, and two noisy confidences of which the first is the better one."""
    generator = rng(seed)
    mu = generator.beta(0.5, 0.5, n)
    a, b = (np.clip(mu + generator.normal(0, noise, n), 0, 1) for noise in (0.2, 0.26))
    return mu, a, b


def test_components_of_a_known_world():
    """With every mu known: the variance over questions, and over samples by the formula of the binomial."""
    mu, a, b = world(200_000)
    k = 6
    found = variance_components(a, b, rng(1).binomial(k, mu), np.full(len(mu), k))
    truth = (a - mu) ** 2 - (b - mu) ** 2
    assert found.difference == pytest.approx(truth.mean(), abs=5e-4)
    assert found.between == pytest.approx(truth.var(), rel=0.02)
    assert found.within == pytest.approx(np.mean(4 * (a - b) ** 2 * mu * (1 - mu)), rel=0.02)


def test_components_add_up_to_the_variance_of_the_mean():
    """Over repeated studies of fresh questions and samples."""
    n, k, means = 50, 5, []
    for seed in range(2000):
        mu, a, b = world(n, seed)
        correct, total = rng(seed + 10_000).binomial(k, mu), np.full(n, k)
        means.append(np.mean(capability_brier_terms(a, correct, total) - capability_brier_terms(b, correct, total)))
    mu, a, b = world(200_000)
    found = variance_components(a, b, rng(1).binomial(k, mu), np.full(len(mu), k))
    assert np.var(means) == pytest.approx((found.between + found.within / k) / n, rel=0.12)


@pytest.mark.parametrize("k", [2, 20])
def test_the_planned_study_finds_the_difference_as_often_as_planned(k):
    mu, a, b = world(100_000)
    pilot = variance_components(a, b, rng(1).binomial(30, mu), np.full(len(mu), 30))
    n = int(questions_needed(pilot, k))
    found = 0
    studies = 400
    for seed in range(studies):
        mu, a, b = world(n, seed)
        correct, total = rng(seed + 10_000).binomial(k, mu), np.full(n, k)
        terms = (capability_brier_terms(s, correct, total, corrected=True) for s in (a, b))
        found += paired_difference(*terms, rng=rng(seed), resamples=400).high < 0
    assert found / studies == pytest.approx(0.8, abs=4 * np.sqrt(0.16 / studies))


def test_questions_and_samples_answer_each_other():
    components = Components(difference=0.02, between=0.01, within=0.3)
    for k in (1, 3, 50):
        n = questions_needed(components, k)
        assert samples_needed(components, int(n)) <= k
        if k > 1:
            assert questions_needed(components, k) <= questions_needed(components, k - 1)


def test_by_hand():
    # (1.959964 + 0.841621)^2 = 7.848880
    components = Components(difference=-0.1, between=0.04, within=0.2)
    assert questions_needed(components, 10) == np.ceil(7.848880 * (0.04 + 0.02) / 0.01)
    assert samples_needed(components, 60) == np.ceil(0.2 / (60 * 0.01 / 7.848880 - 0.04))
    assert samples_needed(components, 10) == np.inf
    assert questions_needed(components._replace(difference=0.0), 10) == np.inf
    assert samples_needed(components._replace(difference=0.0, between=0.0), 10) == np.inf
    assert questions_needed(Components(1.0, 0.0, 0.0), 1) == 2
    assert samples_needed(Components(1.0, 0.0, 0.0), 2) == 1


def test_more_power_and_a_higher_level_take_more():
    components = Components(difference=0.02, between=0.01, within=0.3)
    usual = questions_needed(components, 10)
    assert questions_needed(components, 10, power=0.9) > usual
    assert questions_needed(components, 10, level=0.99) > usual


def test_methods_that_agree_have_no_variance():
    assert variance_components([0.3, 0.7], [0.3, 0.7], [1, 2], [4, 4]) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: variance_components([0.5], [0.4], [1], [2]), "two questions at least; got 1"),
        (lambda: variance_components([0.5, 0.5], [0.4, 0.4], [1, 1], [2, 1]), "row 1: total is 1"),
        (lambda: variance_components([0.5, 0.5], [0.4], [1, 1], [2, 2]), "confidence_b has 1"),
        (lambda: variance_components([0.5, 2.0], [0.4, 0.4], [1, 1], [2, 2]), "row 1: confidence is 2"),
        (lambda: questions_needed(Components(1, 1, 1), 0), "k must be a whole number from 1"),
        (lambda: questions_needed(Components(1, 1, 1), 1, power=1.0), "power must lie between 0 and 1; got 1.0"),
        (lambda: samples_needed(Components(1, 1, 1), 1), "questions must be a whole number from 2"),
        (lambda: samples_needed(Components(1, 1, 1), 5, level=95), "level must lie between 0 and 1; got 95"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
