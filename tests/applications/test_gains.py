"""Gains of a confidence over a rule without one, by their definitions."""

import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications import (
    abstaining_gains,
    allocate,
    budget_gains,
    others_mean,
    pass_at_k,
    pass_at_k_gains,
    pass_at_k_gains_over_answer,
    success_terms,
)

INDEX = pd.Index(list("abcd"), name="question_id")
CONFIDENCE = pd.Series([0.1, 0.4, 0.5, 0.9], INDEX)
CORRECT = pd.Series([0, 3, 6, 10], INDEX)
TOTAL = pd.Series([10, 10, 10, 10], INDEX)
GIVEN = (CONFIDENCE, CORRECT, TOTAL)


def test_the_mean_of_the_others_leaves_out_the_question_and_what_is_missing():
    values = pd.Series([1.0, np.nan, 3.0, 5.0])
    assert others_mean(values).tolist()[:1] == [4.0]
    assert others_mean(values)[3] == 2.0


def test_pass_at_k_gains_are_differences_of_squared_errors():
    k = 3
    actual = [float(pass_at_k([c], [10], [k])[0, 0]) for c in CORRECT]
    expected = []
    for place, s in enumerate(CONFIDENCE):
        rest = [each for at, each in enumerate(actual) if at != place]
        constant = (np.mean(rest) - actual[place]) ** 2
        expected.append(constant - (1 - (1 - s) ** k - actual[place]) ** 2)
    gain = pass_at_k_gains(*GIVEN, k)
    assert gain.index.equals(INDEX)
    assert gain.tolist() == pytest.approx(expected)
    # 1 - (1 - s)^3 at s = 1/2 is 7/8, and 3/4 in the mean over Beta(1, 1)
    moved = (pass_at_k_gains(*GIVEN, k, concentration=2) - gain)["c"]
    assert moved == pytest.approx((7 / 8 - actual[2]) ** 2 - (3 / 4 - actual[2]) ** 2)


def test_a_known_answer_is_each_sample_in_turn():
    k = 2
    expected = []
    for s, c in zip(CONFIDENCE, CORRECT, strict=True):
        samples = [1] * c + [0] * (10 - c)
        saved = []
        for place, known in enumerate(samples):
            left = sum(samples) - samples[place]
            actual = float(pass_at_k([left], [9], [k])[0, 0])
            saved.append((known - actual) ** 2 - (1 - (1 - s) ** k - actual) ** 2)
        expected.append(np.mean(saved))
    assert pass_at_k_gains_over_answer(*GIVEN, k).tolist() == pytest.approx(expected)


def test_too_few_samples_are_not_scored():
    total = TOTAL.where(INDEX != "b", 3)
    gain = pass_at_k_gains(CONFIDENCE, CORRECT, total, 5)
    assert gain.isna().tolist() == [False, True, False, False]


def test_one_confidence_for_all_gains_nothing_on_an_even_budget():
    same = pd.Series(0.5, INDEX)
    assert budget_gains(same, CORRECT, TOTAL, 2).abs().max() < 1e-12


def test_knowing_mu_gains_on_a_budget():
    hard = pd.Series([0, 0, 1, 2, 5, 9, 10, 10] * 6)
    total = pd.Series(10, hard.index)
    knowing = budget_gains(hard / 10, hard, total, 2)
    assert knowing.mean() > 0.02
    backwards = budget_gains(1 - hard / 10, hard, total, 2)
    assert backwards.mean() < 0


def test_a_question_that_takes_more_of_the_budget_pays_for_it():
    correct = pd.Series([0, 1, 2, 5, 9, 10] * 4)
    total = pd.Series(10, correct.index)
    confidence = correct / 10
    spent = allocate(confidence, 48, max_per_question=total).to_numpy()
    solved = success_terms(spent, correct, total) - success_terms([2] * 24, correct, total)
    paid = solved - budget_gains(confidence, correct, total, 2).to_numpy()
    assert paid.sum() == pytest.approx(0)  # the price moves no mean
    price = np.ptp(paid) / np.ptp(spent)
    assert price > 0.01
    assert paid == pytest.approx(price * (spent - 2))


def test_answering_the_surest_first_gains_the_area():
    gain = abstaining_gains(*GIVEN)
    assert gain.index.equals(INDEX)
    losses = [0.0, 0.4, 0.7, 1.0]  # from the most confident on
    area = np.mean([np.mean(losses[:answered]) for answered in (1, 2, 3, 4)])
    assert gain.mean() == pytest.approx(np.mean(losses) - area)
