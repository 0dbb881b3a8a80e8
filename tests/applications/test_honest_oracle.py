"""An oracle that knows one half of the samples."""

import numpy as np
import pytest

from capcal_lib.applications import allocate, honest_oracle, success_rate
from capcal_lib.errors import InputError


def test_what_it_knows_and_what_is_left_are_all_samples():
    correct, total = np.array([0, 3, 7, 20]), np.array([20, 20, 15, 20])
    s, nu, right, left = honest_oracle(correct, total, rng=np.random.default_rng(1))
    assert left.tolist() == [10, 10, 8, 10]
    seen = total - left
    prior = nu - seen
    assert np.ptp(prior) == pytest.approx(0, abs=1e-9)
    # The posterior mean: the known counts, and the mean of the data set as a prior.
    mean = np.mean((correct - right) / seen)  # over questions: one has fewer samples
    assert s * nu == pytest.approx(correct - right + mean * prior)
    with pytest.raises(InputError, match="row 1: total is 0, but 1 or more scored samples are"):
        honest_oracle([1, 1], [4, 1], rng=np.random.default_rng(1))


def test_questions_that_do_not_differ_have_one_confidence():
    s, *_ = honest_oracle([5] * 40, [10] * 40, rng=np.random.default_rng(0))
    assert np.ptp(s) == 0


def test_where_no_question_differs_it_solves_no_more_than_even_spending():
    rng = np.random.default_rng(2)
    total = np.full(400, 40)
    correct = rng.binomial(total, 0.3)
    gained = []
    for _ in range(20):
        s, nu, *counts = honest_oracle(correct, total, rng=rng)
        plan = allocate(s, 800, max_per_question=counts[1], concentration=nu)
        gained.append(success_rate(plan, *counts) - success_rate([2] * 400, *counts))
    assert abs(np.mean(gained)) < 0.02
