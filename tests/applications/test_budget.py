from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.applications import (
    allocate,
    pass_at_k,
    spending_terms,
    split_counts,
    success_rate,
    success_terms,
)
from capcal_lib.errors import InputError

# Round confidences, so that gains tie; any at all; and the ends.
CONFIDENCES = st.lists(
    st.one_of(
        st.integers(0, 10).map(lambda tenths: tenths / 10),
        st.floats(0, 1),
        st.sampled_from([0.0, 5e-324, 1e-300, 1e-12, 1 - 1e-12, 1.0]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=25)
@given(CONFIDENCES, st.integers(0, 10**15))
def test_any_budget_is_spent_to_the_last_sample(confidence, budget):
    assert allocate(confidence, budget).sum() == budget


def test_hand_cases():
    # gains: 0.9, 0.09; 0.5, 0.25, 0.125; 0.1, 0.09, ...
    assert [allocate([0.9, 0.5, 0.1], budget).tolist() for budget in range(6)] == [
        [0, 0, 0],
        [1, 0, 0],
        [1, 1, 0],
        [1, 2, 0],
        [1, 3, 0],
        [1, 3, 1],
    ]


def test_equal_gains_go_to_the_first_rows():
    assert allocate([0.3] * 4, 6).tolist() == [2, 2, 1, 1]
    assert allocate([0.5, 0.25], 2).tolist() == [2, 0]  # both gain 0.25
    assert allocate([0.25, 0.5], 2).tolist() == [1, 1]
    assert allocate([1.0] * 3, 2).tolist() == [1, 1, 0]
    assert allocate([1e-300] * 3, 10**9 + 1).tolist() == [333333334, 333333334, 333333333]


def test_certain_and_hopeless_questions_share_what_gains_nothing():
    assert allocate([0.0, 0.0, 0.0], 7).tolist() == [3, 2, 2]
    assert allocate([1.0, 0.0], 9).tolist() == [5, 4]  # one useful sample, then turns
    assert allocate([1.0, 0.0, 0.5], 9).tolist() == [1, 0, 8]  # a sample more always helps the last
    assert allocate([1.0, 0.0, 0.5], 9, max_per_question=4).tolist() == [3, 2, 4]


def test_tiny_confidences_are_told_apart():
    assert allocate([1e-12, 1e-12, 2e-12], 1000).tolist() == [0, 0, 1000]
    assert allocate([1e-300, 0.0, 2e-300], 5).tolist() == [0, 0, 5]
    # 0.5 is ahead until 2^-k falls below 1e-300, at k = 996.
    assert allocate([0.5, 1e-300], 10_000).tolist() == [996, 9004]


def test_maxima_may_differ():
    assert allocate([0.1, 0.1, 0.9], 10, max_per_question=[2, 9, 0]).tolist() == [2, 8, 0]
    assert allocate([0.1, 0.1, 0.9], 100, max_per_question=np.array([2, 9, 0])).tolist() == [
        2,
        9,
        0,
    ]
    assert allocate([0.1, 0.9], 100, max_per_question=3).tolist() == [3, 3]
    assert allocate([0.1, 0.9], 100, max_per_question=0).tolist() == [0, 0]


@pytest.mark.parametrize("budget", [1.0, -1, "4", 2**60])
def test_bad_budgets_are_refused(budget):
    with pytest.raises(InputError, match="budget must be a whole number from 0 to"):
        allocate([0.5], budget)


@pytest.mark.parametrize(
    ("maxima", "message"),
    [
        (-1, "row 0: max_per_question is -1, but must be a whole number of at least 0"),
        (2.5, "row 0: max_per_question is 2.5, but must be a whole number of at least 0"),
        ([1], "all must have the same number of rows, one per question"),
    ],
)
def test_bad_maxima_are_refused(maxima, message):
    with pytest.raises(InputError) as error:
        allocate([0.5, 0.5], 3, max_per_question=maxima)
    assert str(error.value).startswith(message)


# Posteriors and costs


def expected(confidence, allocation, nu):
    """How many are solved, by the rates of failure one after the other."""
    solved = 0.0
    for s, k in zip(confidence, allocation, strict=True):
        solved += 1 - np.prod(
            [1 - s * (nu / (nu + i) if np.isfinite(nu) else 1) for i in range(int(k))]
        )
    return solved


SURE = st.sampled_from([0.05, 1.0, 7.5, 1e4, float("inf")])


@settings(max_examples=25)
@given(
    st.lists(
        st.one_of(st.integers(0, 4).map(lambda fourths: fourths / 4), st.floats(0, 1)),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 9),
    st.integers(1, 4),
    SURE,
    st.one_of(st.none(), st.lists(st.sampled_from([0.7, 1, 2, 2.5, 3, 5]), min_size=4, max_size=4)),
)
def test_no_division_is_better_under_a_posterior_and_with_costs(
    confidence, budget, most, nu, costs
):
    cost = None if costs is None else costs[: len(confidence)]
    allocation = allocate(confidence, budget, max_per_question=most, concentration=nu, cost=cost)
    everything = np.array(list(product(range(most + 1), repeat=len(confidence))))
    paid = everything @ (np.ones(len(confidence)) if cost is None else cost)
    less = 0 if cost is None else max(cost)  # what the greedy way may leave unspent
    affordable = everything[paid <= max(budget - less, 0)]
    best = max(expected(confidence, other, nu) for other in affordable)
    assert (allocation >= 0).all()
    assert (allocation <= most).all()
    if cost is None:
        assert allocation.sum() == min(budget, most * len(confidence))
    else:
        assert allocation @ cost <= budget
        assert expected(confidence, allocation, nu) >= best * (1 - 1e-9) - 1e-12
        return
    assert expected(confidence, allocation, nu) == pytest.approx(best, rel=1e-9, abs=1e-12)


@settings(max_examples=25)
@given(CONFIDENCES, st.integers(0, 300), SURE, st.data())
def test_a_posterior_is_divided_as_well_as_by_greedy(confidence, budget, nu, data):
    n = len(confidence)
    maxima = data.draw(st.lists(st.integers(0, 60), min_size=n, max_size=n))
    allocation, counts = (
        allocate(confidence, budget, max_per_question=maxima, concentration=nu),
        [0] * n,
    )
    for _ in range(min(budget, sum(maxima))):
        gains = [
            -1.0
            if k == most
            else s
            * np.prod(
                [(1 - s) if np.isinf(nu) else ((1 - s) * nu + i) / (nu + 1 + i) for i in range(k)]
            )
            for s, k, most in zip(confidence, counts, maxima, strict=True)
        ]
        counts[int(np.argmax(gains))] += 1
    assert allocation.sum() == sum(counts)
    assert expected(confidence, allocation, nu) == pytest.approx(
        expected(confidence, counts, nu), rel=1e-9, abs=1e-12
    )


def test_posterior_by_hand():
    # Beta(1, 1) gains 1/2, 1/6, 1/12; Beta(0.2, 1.8) gains 0.1, 0.06.
    assert allocate([0.5, 0.1], 3, concentration=2).tolist() == [2, 1]
    assert allocate([0.5, 0.1], 5, concentration=2).tolist() == [3, 2]
    assert allocate([0.5, 0.5], 4, concentration=[1e-3, np.inf]).tolist() == [1, 3]


def test_cost_by_hand():
    # Gains per cost: 0.9/3, 0.09/3; 0.5, 0.25, ...
    assert allocate([0.9, 0.5], 4, cost=[3, 1]).tolist() == [1, 1]
    # The best gain per cost comes first, though the two others would fit.
    assert allocate([0.9, 0.5, 0.5], 4, cost=[3, 2, 2]).tolist() == [1, 0, 0]
    assert allocate([1.0, 0.0, 0.5], 100, cost=[1, 1, 40]).tolist() == [1, 0, 2]
    assert allocate([0.5, 0.5], 3, cost=[10, 10]).tolist() == [0, 0]
    # Beta(1, 1) gains 0.5/4, 0.167/4; Beta(0.6, 1.4) gains 0.3, 0.14, 0.084, 0.057.
    assert allocate([0.5, 0.3], 8, cost=[4, 1], concentration=2).tolist() == [1, 4]


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ([1, 0], "row 1: cost is 0, but must be above 0"),
        ([1, float("inf")], "row 1: cost is inf"),
        ([1], "all must have the same number of rows, one per question"),
        (0, "row 0: cost is 0"),
    ],
)
def test_bad_costs_are_refused(cost, message):
    with pytest.raises(InputError, match=message):
        allocate([0.5, 0.5], 3, cost=cost)


# What an allocation is worth


def test_halves_are_drawn_without_replacement():
    rng = np.random.default_rng(0)
    (a, m), (b, n) = split_counts([3] * 20_000, [9] * 20_000, rng=rng)
    assert (a + b == 3).all()
    assert (m == 4).all()
    assert (n == 5).all()
    chances = [Fraction(comb(3, hits) * comb(6, 4 - hits), comb(9, 4)) for hits in range(4)]
    np.testing.assert_allclose(
        np.bincount(a) / 20_000, [float(chance) for chance in chances], atol=0.015
    )


@settings(max_examples=25)
@given(
    st.lists(
        st.integers(0, 6).flatmap(
            lambda n: st.tuples(st.integers(0, n), st.integers(0, n), st.just(n))
        ),
        min_size=1,
        max_size=6,
    )
)
def test_success_rate_is_the_mean_over_all_draws(questions):
    def solved(k, c, n):
        draws = list(combinations([1] * c + [0] * (n - c), k))
        return Fraction(sum(any(draw) for draw in draws), len(draws))

    expected = sum(solved(*question) for question in questions) / len(questions)
    assert success_rate(*zip(*questions, strict=True)) == pytest.approx(float(expected), abs=1e-15)


def test_a_uniform_allocation_scores_the_mean_pass_at_k():
    correct, total = np.arange(0, 101, 4), np.full(26, 100)
    for k in (1, 16, 100):
        expected = pass_at_k(correct, total, [k]).mean()
        assert success_rate(np.full(26, k), correct, total) == pytest.approx(expected, abs=1e-15)


def test_more_than_was_scored_is_refused():
    with pytest.raises(InputError) as error:
        success_rate([1, 5], [4, 4], [4, 4])
    assert str(error.value).startswith(
        "row 1: allocation is 5, more than its total of scored samples; "
    )
    assert "max_per_question=total" in str(error.value)
    allocation = allocate([0.1, 0.9], 100, max_per_question=[4, 3])
    assert success_rate(allocation, [1, 0], [4, 3]) == 0.5


def test_bad_rows_are_refused():
    with pytest.raises(InputError, match="allocation has 1, correct has 2"):
        success_rate([1], [1, 1], [4, 4])
    with pytest.raises(InputError, match=r"row 0: allocation is 1\.5, but must be a whole number"):
        success_rate([1.5], [1], [4])
    with pytest.raises(InputError, match="row 0: correct is 5, more than its total"):
        success_rate([1], [5], [4])


def test_shared_budgets_make_intervals_nominal_and_narrower():
    rng = np.random.default_rng(0)

    def drawn(n):
        mu = rng.beta(0.4, 0.6, n)
        s = np.clip(mu + rng.normal(0, 0.25, n), 0.01, 0.99)
        plan, more = (
            allocate(s, int(b * n), max_per_question=32, concentration=4) for b in (1, 1.25)
        )
        return mu, plan, more

    mu, plan, _ = drawn(40_000)
    truth = np.mean((1 - mu) - (1 - mu) ** plan)
    held = np.zeros(2)
    widths = np.zeros(2)
    for _ in range(120):
        mu, plan, more = drawn(300)
        counts = rng.binomial(32, mu), np.full(300, 32)
        gain = success_terms(plan, *counts) - success_terms(np.ones(300), *counts)
        for at, terms in enumerate((gain, gain - spending_terms(plan, more, *counts))):
            error = terms.std() / np.sqrt(300)
            held[at] += abs(terms.mean() - truth) < 1.96 * error
            widths[at] += error
    assert held[0] > 0.97 * 120
    assert held[1] > 0.89 * 120
    assert widths[1] < 0.75 * widths[0]
    assert spending_terms([1, 3], [1, 3], [5, 5], [9, 9]).tolist() == [0, 0]  # no more to buy


def test_an_allocation_of_a_series_keeps_its_index():
    s = pd.Series(np.linspace(0.05, 0.95, 40), [f"q{at}" for at in range(40)])
    c, n = (20 * s).round().astype(int), pd.Series(20, s.index)
    plan = allocate(s, 100, max_per_question=n)
    assert plan.index.equals(s.index)
    shuffled = allocate(s.sample(frac=1, random_state=1), 100, max_per_question=n)
    assert success_rate(shuffled, c, n) == pytest.approx(success_rate(plan, c, n), abs=0.01)
    assert isinstance(allocate(s.to_numpy(), 100), np.ndarray)
