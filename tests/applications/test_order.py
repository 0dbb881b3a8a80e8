"""The order of attempts: one-shot, and sequential against exact dynamic programming."""

from functools import cache
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.applications import allocate, attempt_order, solved_by_budget, success_terms
from capcal_lib.errors import InputError

CONFIDENCES = st.lists(
    st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1)), min_size=3, max_size=3
)
SURE = st.sampled_from([0.05, 1.0, 7.5, 1e4, float("inf")])
COSTS = st.lists(st.sampled_from([0.7, 1.0, 2.0, 2.5, 30.0]), min_size=3, max_size=3)
MOST = 3


def chance(s, nu, failures):
    """Of success, after so many failures."""
    return s if np.isinf(nu) or failures == 0 else s * nu / (nu + failures)


def unsolved(s, nu, attempts):
    return np.prod([1 - chance(s, nu, k) for k in range(attempts)])


@pytest.mark.parametrize("nu", [None, 2.0])
def test_one_order_divides_every_budget(nu):
    rng = np.random.default_rng(0)
    confidence = rng.beta(0.4, 0.6, 60)
    total = rng.integers(5, 30, 60)
    correct = rng.binomial(total, confidence)
    order = attempt_order(confidence, total, concentration=nu)
    budgets = np.append(np.arange(0, 60 * 4, 7), total.sum())
    solved = solved_by_budget(order, correct, total, budgets / 60)
    for budget, terms in zip(budgets.tolist(), solved.T, strict=True):
        best = allocate(confidence, budget, max_per_question=total, concentration=nu)
        np.testing.assert_array_equal(np.bincount(order[:budget], minlength=60), best)
        np.testing.assert_allclose(terms, success_terms(best, correct, total), atol=1e-12)


def test_by_hand():
    # One-shot 0.5, 0.4, 0.25, 0.24 and so on; a failure makes the first posterior 0.25, and the
    # second 0.4 * 10/11.
    assert attempt_order([0.5, 0.4], 2).tolist() == [0, 1, 0, 1]
    assert attempt_order([0.5, 0.4], 2, sequential=True).tolist() == [0, 0, 1, 1]
    assert attempt_order([0.5, 0.4], 2, sequential=True, concentration=[1, 10]).tolist() == [
        0,
        1,
        1,
        0,
    ]
    assert attempt_order([0.5, 0.4], 2, sequential=True, cost=[2, 1]).tolist() == [1, 1, 0, 0]


def test_what_is_worth_nothing_goes_in_turns():
    confidence, most = [0.0, 1.0, 0.0, 0.5], [2, 4, 3, 2]
    assert attempt_order(confidence, most).tolist() == [1, 3, 3, 0, 1, 2, 0, 1, 2, 1, 2]
    assert attempt_order(confidence, most, sequential=True).tolist() == [
        1,
        1,
        1,
        1,
        3,
        3,
        0,
        2,
        0,
        2,
        2,
    ]
    assert attempt_order([0.3, 0.3], [2, 0]).tolist() == [0, 0]


@settings(max_examples=60, deadline=None)
@given(CONFIDENCES, SURE, COSTS)
def test_no_division_at_the_cost_of_a_prefix_is_better(confidence, nu, cost):
    def value(division):
        return sum(1 - unsolved(s, nu, k) for s, k in zip(confidence, division, strict=True))

    order = attempt_order(confidence, MOST, concentration=nu, cost=cost)
    everything = np.array(list(product(range(MOST + 1), repeat=3)))
    values = np.array([value(division) for division in everything])
    for count in range(3 * MOST + 1):
        taken = np.bincount(order[:count], minlength=3)
        affordable = everything @ cost <= taken @ cost + 1e-9
        assert value(taken) == pytest.approx(values[affordable].max(), rel=1e-9, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(CONFIDENCES, SURE, st.integers(0, 7))
def test_no_rule_that_learns_from_failures_solves_more(confidence, nu, budget):
    order = attempt_order(confidence, MOST, concentration=nu, sequential=True).tolist()

    def attempt(go_on, failures, left, row):
        p = chance(confidence[row], nu, failures[row])
        solved, failed = (
            (*failures[:row], outcome, *failures[row + 1 :])
            for outcome in (None, failures[row] + 1)
        )
        return p * (1 + go_on(solved, left - 1)) + (1 - p) * go_on(failed, left - 1)

    def open_rows(failures):
        """Return the questions that are neither solved (None) nor used up."""
        return [row for row in range(3) if failures[row] not in (None, MOST)]

    @cache
    def best(failures, left):
        return max(
            (attempt(best, failures, left, row) for row in open_rows(failures) if left), default=0.0
        )

    @cache
    def ordered(failures, left):
        places = [
            [at for at, each in enumerate(order) if each == row][failures[row]]
            for row in open_rows(failures)
        ]
        return attempt(ordered, failures, left, order[min(places)]) if left and places else 0.0

    assert ordered((0, 0, 0), budget) == pytest.approx(best((0, 0, 0), budget), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(CONFIDENCES, SURE, COSTS, st.floats(0, 2))
def test_nor_at_the_same_expected_cost(confidence, nu, cost, price):
    """Of solved questions less the price of all attempts, no rule has more than some prefix (a
    Lagrangian bound).
    """

    def best(s, own, failures=0):
        p = chance(s, nu, failures)
        return (
            max(0.0, p - price * own + (1 - p) * best(s, own, failures + 1))
            if failures < MOST
            else 0.0
        )

    made, net = [0, 0, 0], [0.0]
    for row in attempt_order(confidence, MOST, concentration=nu, cost=cost, sequential=True):
        s, k = confidence[row], made[row]
        net.append(net[-1] + unsolved(s, nu, k) * (chance(s, nu, k) - price * cost[row]))
        made[row] += 1
    assert max(net) == pytest.approx(sum(map(best, confidence, cost)), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.integers(1, 4).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
        min_size=2,
        max_size=2,
    ),
    st.booleans(),
    st.lists(st.sampled_from([1.0, 2.5, 7.0]), min_size=2, max_size=2),
    st.randoms(use_true_random=False),
)
def test_solved_and_spent_are_the_means_over_all_draws(questions, sequential, cost, random):
    correct, total = zip(*questions, strict=True)
    order = [row for row in (0, 1) for _ in range(total[row])]
    random.shuffle(order)
    draws = [list(permutations([True] * c + [False] * (n - c))) for c, n in questions]
    worlds = list(product(*draws))
    solved, spent = np.zeros((len(order) + 1, 2)), np.zeros(len(order) + 1)
    for world in worlds:
        done, made = [False, False], [0, 0]
        for at, row in enumerate(order):
            if not (sequential and done[row]):
                spent[at + 1 :] += cost[row] / len(worlds)
                done[row] |= world[row][made[row]]
            made[row] += 1
            solved[at + 1] += np.array(done) / len(worlds)
    found = solved_by_budget(order, correct, total, spent / 2, cost=cost, sequential=sequential)
    np.testing.assert_allclose(found.T, solved, atol=1e-9)
    between = solved_by_budget(
        order, correct, total, (spent[:-1] + spent[1:]) / 4, cost=cost, sequential=sequential
    )
    np.testing.assert_allclose(between.T, (solved[:-1] + solved[1:]) / 2, atol=1e-9)
    shuffled = solved_by_budget(
        order, correct, total, [100, 0.5, 100], cost=cost, sequential=sequential
    )
    np.testing.assert_allclose(shuffled[:, [0, 2]].T, solved[[-1, -1]], atol=1e-9)


def test_bad_input_is_refused():
    for order, message in [
        ([0, 2], "row 1: order is 2, but there are 2"),
        ([1, 1], "row 1: attempts is 2, more than"),
    ]:
        with pytest.raises(InputError, match=message):
            solved_by_budget(order, [1, 1], [4, 1], [1])
    with pytest.raises(InputError, match="row 0: budgets is -1, but must be at least 0"):
        solved_by_budget([0], [1], [4], [-1])
    with pytest.raises(InputError, match="row 1: cost is 0, but must be above 0"):
        attempt_order([0.5, 0.5], 2, cost=[1, 0])
