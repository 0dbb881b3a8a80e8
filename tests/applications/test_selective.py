"""Selective prediction: the area by brute force over orders, and its interval."""

from itertools import pairwise, permutations, product
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from capcal_lib.applications import risk_area_bounds, risk_area_terms
from capcal_lib.errors import InputError

QUESTIONS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=6)


def naive_area(confidence, losses):
    """Average the mean risk over all orders that the confidences allow."""
    orders = [
        order
        for order in permutations(range(len(losses)))
        if all(confidence[a] >= confidence[b] for a, b in pairwise(order))
    ]
    return np.mean(
        [
            [np.mean([losses[i] for i in order[:k]]) for k in range(1, len(order) + 1)]
            for order in orders
        ]
    )


@settings(max_examples=25)
@given(QUESTIONS)
def test_area_is_the_mean_over_all_orders_that_ties_allow(rows):
    levels, correct = np.array(rows).T
    expected = naive_area(levels / 3, 1 - correct / 4)
    assert risk_area_terms(levels / 3, correct, 4).mean() == pytest.approx(expected)


@settings(max_examples=25)
@given(QUESTIONS, st.randoms(use_true_random=False))
@example([(0, 1), (2, 3), (1, 4)], Random(0))
def test_a_term_follows_its_question_and_only_the_order_of_confidences_counts(rows, random):
    levels, correct = np.array(rows).T
    terms = risk_area_terms(levels / 3, correct, 4)
    places = random.sample(range(len(rows)), len(rows))
    shuffled = risk_area_terms(np.square(levels / 3)[places], correct[places], 4)
    assert shuffled == pytest.approx(terms[places])


def test_a_constant_says_nothing():
    assert risk_area_terms([0.5] * 3, [0, 1, 4], 4) == pytest.approx(
        [1, 0.75, 0]
    )  # the losses themselves


@settings(max_examples=25)
@given(QUESTIONS, st.booleans())
def test_where_all_are_lost_or_none_no_order_gains_even_by_rounding(rows, solved):
    """A gain of 1e-17 with an interval of no width would be a verdict."""
    levels = np.array(rows)[:, 0] / 3
    assert (risk_area_terms(levels, [4 * solved] * len(rows), 4) == 1 - solved).all()


def test_the_terms_spread_as_the_area_does_over_draws_of_questions():
    rng = np.random.default_rng(0)

    def draw():
        mu = rng.beta(1, 1, 400)
        return risk_area_terms(
            np.clip(mu + rng.normal(0, 0.3, 400), 0, 1), rng.binomial(10, mu), [10] * 400
        )

    drawn = [draw() for _ in range(800)]
    promised = np.mean([terms.std() / 20 for terms in drawn])
    assert promised == pytest.approx(np.std([terms.mean() for terms in drawn]), rel=0.08)


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="row 1: confidence is nan"):
        risk_area_terms([0.5, np.nan], [1, 1], [1, 1])


@pytest.mark.parametrize("n", [1, 2, 7])
def test_bounds_hold_what_any_question_can_count_for_and_are_reached(n):
    confidence = np.arange(n, 0, -1) / n
    counted = []
    for correct in product([0, 1], repeat=n):
        mu = np.array(correct)
        counted += [*(1 - mu - risk_area_terms(confidence, mu, 1))]
    assert (min(counted), max(counted)) == pytest.approx(risk_area_bounds(n))
