import numpy as np
import pytest
from scipy.stats import binom

from capcal_lib.applications import (
    Components,
    difference_components,
    plan_study,
    questions_needed,
    score_components,
)
from capcal_lib.errors import InputError
from capcal_lib.metrics import capability_brier, capability_brier_terms
from capcal_lib.metrics.intervals import variance_of_mean


def rng(seed=0):
    return np.random.default_rng(seed)


def world(n, seed=0):
    """True mu, and two noisy confidences of which the first is the better one."""
    generator = rng(seed)
    mu = generator.beta(0.5, 0.5, n)
    a, b = (np.clip(mu + generator.normal(0, noise, n), 0, 1) for noise in (0.2, 0.26))
    return mu, a, b


def test_components_of_a_known_world():
    """With every mu known: the variance over questions, and over samples by the formula of the
    binomial.
    """
    mu, a, b = world(200_000)
    k = 6
    found = difference_components(a, b, rng(1).binomial(k, mu), np.full(len(mu), k))
    truth = (a - mu) ** 2 - (b - mu) ** 2
    assert found.estimate == pytest.approx(truth.mean(), abs=5e-4)
    assert found.between == pytest.approx(truth.var(), rel=0.02)
    assert found.within == pytest.approx(np.mean(4 * (a - b) ** 2 * mu * (1 - mu)), rel=0.02)


def test_components_add_up_to_the_variance_of_the_mean():
    """Over repeated studies of fresh questions and samples."""
    n, k, means = 50, 5, []
    for seed in range(2000):
        mu, a, b = world(n, seed)
        correct, total = rng(seed + 10_000).binomial(k, mu), np.full(n, k)
        means.append(
            np.mean(
                capability_brier_terms(a, correct, total)
                - capability_brier_terms(b, correct, total)
            )
        )
    mu, a, b = world(200_000)
    found = difference_components(a, b, rng(1).binomial(k, mu), np.full(len(mu), k))
    assert np.var(means) == pytest.approx((found.between + found.within / k) / n, rel=0.12)


@pytest.mark.parametrize("k", [2, 20])
def test_the_planned_study_finds_the_difference_as_often_as_planned(k):
    mu, a, b = world(100_000)
    pilot = difference_components(a, b, rng(1).binomial(30, mu), np.full(len(mu), 30))
    n = int(questions_needed(pilot, k))
    found = 0
    studies = 400
    for seed in range(studies):
        mu, a, b = world(n, seed)
        correct, total = rng(seed + 10_000).binomial(k, mu), np.full(n, k)
        first, second = (capability_brier_terms(s, correct, total, corrected=True) for s in (a, b))
        gain = first - second
        found += gain.mean() + 1.96 * np.sqrt(variance_of_mean(gain)) < 0
    assert found / studies == pytest.approx(0.8, abs=4 * np.sqrt(0.16 / studies))


def test_more_samples_take_no_more_questions():
    components = Components(estimate=0.02, between=0.01, within=0.3)
    for k in (2, 3, 50):
        assert questions_needed(components, k) <= questions_needed(components, k - 1)


def test_by_hand():
    # (1.959964 + 0.841621)^2 = 7.848880
    components = Components(estimate=-0.1, between=0.04, within=0.2)
    assert questions_needed(components, 10) == np.ceil(7.848880 * (0.04 + 0.02) / 0.01)
    assert questions_needed(components._replace(estimate=0.0), 10) == np.inf
    assert questions_needed(Components(1.0, 0.0, 0.0), 1) == 2


def test_more_power_and_a_higher_level_take_more():
    components = Components(estimate=0.02, between=0.01, within=0.3)
    usual = questions_needed(components, 10)
    assert questions_needed(components, 10, power=0.9) > usual
    assert questions_needed(components, 10, level=0.99) > usual


def test_methods_that_agree_have_no_variance():
    assert difference_components([0.3, 0.7], [0.3, 0.7], [1, 2], [4, 4]) == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: difference_components([0.5], [0.4], [1], [2]), "two questions at least; got 1"),
        (
            lambda: difference_components([0.5, 0.5], [0.4, 0.4], [1, 1], [2, 1]),
            "row 1: total is 1",
        ),
        (lambda: difference_components([0.5, 0.5], [0.4], [1, 1], [2, 2]), "confidence_b has 1"),
        (
            lambda: difference_components([0.5, 2.0], [0.4, 0.4], [1, 1], [2, 2]),
            "row 1: confidence is 2",
        ),
        (lambda: questions_needed(Components(1, 1, 1), 0), "k must be a whole number from 1"),
        (
            lambda: questions_needed(Components(1, 1, 1), 1, power=1.0),
            "power must lie between 0 and 1, such as 0.95; got 1.0",
        ),
        (
            lambda: questions_needed(Components(1, 1, 1), 5, level=95),
            "level must lie between 0 and 1",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


# The parts of a score


def test_parts_of_a_score_in_a_known_world():
    mu, s, _ = world(200_000)
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


def test_the_planned_score_is_as_sharp_as_planned():
    mu, s, _ = world(50_000)
    pilot = score_components(s, rng(1).binomial(20, mu), np.full(len(mu), 20))
    best = plan_study(pilot, half_width=0.01, tokens_per_sample=100, tokens_per_question=300).iloc[
        0
    ]
    scores = []
    for seed in range(600):
        mu, s, _ = world(int(best["questions"]), seed)
        k = int(best["samples"])
        scores.append(
            capability_brier(
                s, rng(seed + 10_000).binomial(k, mu), np.full(len(mu), k), corrected=True
            )
        )
    assert 1.96 * np.std(scores) == pytest.approx(0.01, rel=0.1)


def test_the_cheapest_plan_comes_first_and_is_the_cheapest():
    components = Components(estimate=0.1, between=0.02, within=0.05, pairs=0.08)
    plans = plan_study(
        components, half_width=0.02, tokens_per_sample=7, tokens_per_question=30, max_samples=40
    )
    assert sorted(plans["samples"]) == list(range(2, 41))
    assert (plans["tokens"] == plans["questions"] * (7 * plans["samples"] + 30)).all()
    assert plans["tokens"].is_monotonic_increasing
    for k, n in zip(plans["samples"], plans["questions"], strict=True):
        assert questions_needed(components, k, half_width=0.02) == n
    few = plan_study(components, half_width=0.02, max_questions=250, max_samples=40)
    assert (few["questions"] <= 250).all()
    assert len(few) == (plans["questions"] <= 250).sum() > 0
    assert plan_study(components, half_width=0.02, max_questions=2).empty


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: plan_study(c, half_width=0), "half_width must be above 0; got 0"),
        (lambda c: plan_study(c, tokens_per_sample=0), "tokens_per_sample must be above 0"),
        (lambda c: plan_study(c, max_questions=1), "max_questions must be a whole number from 2"),
        (lambda c: questions_needed(c, 1, half_width=0.1), "k must be a whole number from 2"),
        (
            lambda _: score_components([0.5, 0.5], [1, 1], [3, 4]),
            "row 0: total is 3, but 4 scored samples are needed",
        ),
    ],
)
def test_bad_plans_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call(Components(0.1, 0.1, 0.1, 0.1))


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
    needed = [questions_needed(each, 10, half_width=0.01) for each in (alone, together)]
    assert needed[1] > 5 * needed[0]
    apart = difference_components(s, np.full(1000, 0.4), correct, total, clusters=np.arange(1000))
    assert apart == pytest.approx(difference_components(s, np.full(1000, 0.4), correct, total))


@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_noise_of_a_perfect_score_is_that_of_the_pairs(k):
    """With s = mu nothing else is left; the pairs come from counts of another study."""
    mu = rng(0).beta(0.5, 0.5, 400)
    counts = rng(1).binomial(100, mu), np.full(400, 100)
    pairs = score_components(counts[0] / 100, *counts).pairs
    drawn = rng(2).binomial(k, mu, (4000, 400))
    terms = (mu - drawn / k) ** 2 - drawn * (k - drawn) / (k * k * (k - 1))
    assert np.sqrt(pairs / (k * (k - 1)) / 400) == pytest.approx(terms.mean(axis=1).std(), rel=0.05)
