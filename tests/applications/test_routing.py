"""Routing: choices against all that there are, gains against random mixing by hand."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcal_lib.applications import mixing_gain_terms, route
from capcal_lib.errors import InputError
from capcal_lib.metrics import mean_interval


def at(table, choice):
    return np.asarray(table)[np.arange(len(choice)), choice]


TABLES = st.integers(1, 4).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(st.integers(0, 10), min_size=3, max_size=3), min_size=n, max_size=n),
        st.lists(st.lists(st.integers(1, 9), min_size=3, max_size=3), min_size=n, max_size=n),
    )
)


@given(TABLES, st.floats(0.5, 10))
def test_no_choice_that_costs_as_much_promises_more(tables, budget):
    rates, cost = np.array(tables[0]) / 10, np.array(tables[1], float)
    choice = route(rates, cost, budget)
    spent = at(cost, choice).mean()
    assert spent <= max(budget, cost.min(axis=1).mean()) + 1e-9
    every = [np.array(each) for each in product(range(3), repeat=len(rates))]
    rivals = [at(rates, each).mean() for each in every if at(cost, each).mean() <= spent + 1e-9]
    assert at(rates, choice).mean() >= max(rivals) - 1e-9


@pytest.mark.parametrize("budget", [2.5, 3.0, 4.2])
def test_the_budget_is_spent_but_for_what_one_question_costs(budget):
    rng = np.random.default_rng(2)
    rates, cost = np.sort(rng.random((300, 3)), axis=1), rng.uniform([1, 3, 6], [2, 5, 9], (300, 3))
    spent = at(cost, route(rates, cost, budget)).mean()
    assert budget - cost.max() / 300 <= spent <= budget + 1e-9


def test_a_router_of_plenty_takes_the_best_and_one_of_nothing_the_cheapest():
    rates, cost = [[0.2, 0.9, 0.5], [0.7, 0.6, 0.1]], [[1, 2, 9], [3, 2, 9]]
    assert route(rates, cost, 100).tolist() == [1, 0]
    assert route(rates, cost, 0.1).tolist() == [0, 1]


def test_tables_are_joined_by_question_and_model():
    rates = pd.DataFrame({"small": [0.9, 0.1], "large": [0.9, 0.8]}, ["a", "b"])
    cost = pd.DataFrame({"large": [3, 3], "small": [1, 1]}, ["b", "a"])
    assert route(rates, cost, 2).tolist() == [0, 1]


def test_mixing_gains_nothing_over_itself():
    rng = np.random.default_rng(0)
    rates, cost = rng.random((50, 3)), rng.uniform([1, 5, 9], [2, 6, 12], (50, 3))
    rates.sort(axis=1)
    for share in (0.0, 0.3, 1.0):
        mixed = [(1 - share) * table[:, 0] + share * table[:, 2] for table in (rates, cost)]
        better = mixing_gain_terms(*mixed, rates[:, [0, 2]], cost[:, [0, 2]])
        assert better == pytest.approx(np.zeros(50))


def test_gain_is_over_the_best_mixture_whichever_models_it_mixes():
    rates, cost = np.array([[0.2, 0.3, 0.8]] * 4), np.array([[1.0, 2.0, 3.0]] * 4)
    terms = mixing_gain_terms([0.6] * 4, [2.0] * 4, rates, cost)
    assert terms.mean() == pytest.approx(
        0.6 - 0.5
    )  # half small, half large; always the middle one: 0.3
    assert mixing_gain_terms([0.6] * 4, [9.0] * 4, rates, cost).mean() == pytest.approx(0.6 - 0.8)
    assert mixing_gain_terms([0.6] * 4, [0.5] * 4, rates, cost).mean() == pytest.approx(0.6 - 0.2)


def test_the_interval_covers_the_gain_on_new_questions():
    rng = np.random.default_rng(1)

    def draw(n):
        easy = rng.random(n)
        rates = np.column_stack([easy, 0.5 + easy / 2])
        cost = np.column_stack([np.ones(n), 2 + 4 * rng.random(n)])
        choice = (easy + rng.normal(0, 0.2, n) < 0.4).astype(int)
        return mixing_gain_terms(at(rates, choice), at(cost, choice), rates, cost)

    truth = draw(400_000).mean()
    held = [
        low <= truth <= high for _, low, high in (mean_interval(draw(1000)) for _ in range(400))
    ]
    assert 0.92 <= np.mean(held) <= 0.98


@pytest.mark.parametrize(
    ("rates", "cost", "message"),
    [
        ([0.5], [[1]], "a row a question"),
        ([[0.5, 1.5]], [[1, 2]], "lie in"),
        ([[0.5, 0.5]], [[1, 0]], "above 0"),
        ([[0.5, np.nan]], [[1, 1]], "leave out"),
        ([[0.5, 0.5]], [[1]], "same rows"),
    ],
)
def test_bad_tables_are_refused(rates, cost, message):
    with pytest.raises(InputError, match=message):
        route(rates, cost, 1)
