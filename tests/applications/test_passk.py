from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pytest
import scorio
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.applications.passk import pass_at_k, simulate_pass_at_k, simulated_curve
from capcal_lib.errors import InputError


def exact_pass_at_k(correct, total, k):
    return 1 - Fraction(comb(total - correct, k), comb(total, k))


def test_it_is_the_share_of_subsets_with_a_correct_sample():
    samples = [1, 1, 0, 0, 0]
    for k in range(1, 6):
        subsets = list(combinations(samples, k))
        assert pass_at_k([2], [5], [k])[0, 0] == pytest.approx(sum(map(max, subsets)) / len(subsets), abs=1e-15)


def test_every_count_of_100_samples_is_exact():
    correct = np.arange(101)
    rates = pass_at_k(correct, np.full(101, 100), range(1, 101))
    exact = [[float(exact_pass_at_k(int(c), 100, k)) for k in range(1, 101)] for c in correct]
    np.testing.assert_allclose(rates, exact, rtol=0, atol=2e-15)
    assert (rates[0] == 0).all()
    assert (rates[100] == 1).all()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=8),
    st.lists(st.integers(1, 35), min_size=1, max_size=6),
)
def test_mixed_totals_are_exact_and_nan_past_the_total(counts, ks):
    correct, total = zip(*counts, strict=True)
    rates = pass_at_k(correct, total, ks)
    assert rates.shape == (len(counts), len(ks))
    for row, (c, n) in enumerate(counts):
        for column, k in enumerate(ks):
            if k > n:
                assert np.isnan(rates[row, column])
            else:
                assert rates[row, column] == pytest.approx(float(exact_pass_at_k(c, n, k)), abs=1e-15)


def test_ten_thousand_samples_stay_exact():
    ks = [1, 100, 5000, 9999, 10_000]
    rates = pass_at_k([1, 37], [10_000, 10_000], ks)
    exact = [[float(exact_pass_at_k(c, 10_000, k)) for k in ks] for c in (1, 37)]
    np.testing.assert_allclose(rates, exact, rtol=0, atol=1e-13)


def test_it_never_falls_as_k_grows():
    rates = pass_at_k([0, 1, 5, 50], [100] * 4, range(1, 101))
    assert (np.diff(rates, axis=1) >= 0).all()


def test_a_huge_k_is_nan_and_costs_nothing():
    assert np.isnan(pass_at_k([3], [10], [10**15])).all()


def test_a_question_without_scored_samples_is_nan():
    assert np.isnan(pass_at_k([0], [0], [1, 2])).all()


def test_ks_keep_their_order():
    np.testing.assert_array_equal(pass_at_k([3], [10], [4, 1, 4]), pass_at_k([3], [10], [1, 4])[:, [1, 0, 1]])


def test_lists_arrays_and_series_are_the_same():
    expected = pass_at_k([3, 4], [10, 5], [1, 2])
    np.testing.assert_array_equal(pass_at_k(np.array([3, 4]), np.array([10, 5]), np.array([1, 2])), expected)
    np.testing.assert_array_equal(pass_at_k(pd.Series([3, 4]), pd.Series([10, 5]), pd.Series([1, 2])), expected)


@pytest.mark.parametrize(
    ("ks", "message"),
    [
        ([], "k is empty"),
        ([1, 0], "row 1: k is 0, but must be a whole number of at least 1"),
        ([-1], "row 0: k is -1"),
        ([1.5], "row 0: k is 1.5"),
        (["4"], "row 0: k is '4', not a number"),
    ],
)
def test_bad_ks_are_refused(ks, message):
    for call in (lambda: pass_at_k([1], [2], ks), lambda: simulate_pass_at_k([0.5], ks)):
        with pytest.raises(InputError) as error:
            call()
        assert str(error.value).startswith(message)


def test_bad_counts_and_confidences_are_refused():
    with pytest.raises(InputError, match="row 1: correct is 3, more than its total"):
        pass_at_k([1, 3], [2, 2], [1])
    with pytest.raises(InputError, match="row 1: confidence is nan"):
        simulate_pass_at_k([0.5, float("nan")], [1])


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1), st.integers(1, 40))
def test_simulation_is_exact(s, k):
    exact = float(1 - (1 - Fraction(s)) ** k)
    assert simulate_pass_at_k([s], [k])[0, 0] == pytest.approx(exact, rel=1e-14, abs=0)


def test_simulation_keeps_its_precision_at_the_ends():
    rates = simulate_pass_at_k([0.0, 1e-300, 5e-324, 1e-12, 1.0], [1, 10**12])
    np.testing.assert_allclose(rates[:, 0], [0, 1e-300, 5e-324, 1e-12, 1], rtol=1e-15)
    np.testing.assert_allclose(rates[1:4, 1], [1e-288, 4.94065645841246544e-312, -np.expm1(-1)], rtol=1e-11)
    assert rates[0, 1] == 0
    assert rates[4, 1] == 1


def test_curve_is_the_mean_and_spread_of_independent_verdicts():
    curve = simulated_curve([0.5, 0.1], [1, 3])
    solved = [[0.5, 0.875], [0.1, 0.271]]
    np.testing.assert_allclose(curve.mean, np.mean(solved, axis=0))
    for column in range(2):
        p, q = solved[0][column], solved[1][column]
        # All four outcomes of two verdicts, and the variance of their mean.
        outcomes = [(0, (1 - p) * (1 - q)), (0.5, p * (1 - q) + q * (1 - p)), (1, p * q)]
        variance = sum(chance * (rate - (p + q) / 2) ** 2 for rate, chance in outcomes)
        assert curve.sd[column] == pytest.approx(variance**0.5)


@pytest.mark.parametrize("k", [1, 3, 8, 20])
def test_the_mean_over_questions_is_that_of_scorio(k):
    samples = np.random.default_rng(k).random((30, 20)) < np.linspace(0, 1, 30)[:, None]
    correct = samples.sum(axis=1)
    expected = scorio.eval.pass_at_k(samples.astype(int), k)
    assert pass_at_k(correct, [20] * 30, [k]).mean() == pytest.approx(expected, abs=1e-12)
