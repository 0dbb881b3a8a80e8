from fractions import Fraction
from math import comb

import numpy as np
import pandas as pd
import pytest
import scorio
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from capcal_lib.applications import (
    allocate,
    deep_samples,
    fit_concentration,
    pass_at_k,
    pass_at_k_error_terms,
    simulate_pass_at_k,
    success_rate,
)
from capcal_lib.errors import InputError


def exact_pass_at_k(correct, total, k):
    return 1 - Fraction(comb(total - correct, k), comb(total, k))


def test_every_count_of_100_samples_is_exact():
    correct = np.arange(101)
    rates = pass_at_k(correct, np.full(101, 100), range(1, 101))
    exact = [[float(exact_pass_at_k(int(c), 100, k)) for k in range(1, 101)] for c in correct]
    np.testing.assert_allclose(rates, exact, rtol=0, atol=2e-15)
    assert (rates[0] == 0).all()
    assert (rates[100] == 1).all()


@settings(max_examples=25)
@given(
    st.lists(
        st.integers(0, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
        min_size=1,
        max_size=8,
    ),
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
                assert rates[row, column] == pytest.approx(
                    float(exact_pass_at_k(c, n, k)), abs=1e-15
                )


def test_ten_thousand_samples_stay_exact():
    ks = [1, 100, 5000, 9999, 10_000]
    rates = pass_at_k([1, 37], [10_000, 10_000], ks)
    exact = [[float(exact_pass_at_k(c, 10_000, k)) for k in ks] for c in (1, 37)]
    np.testing.assert_allclose(rates, exact, rtol=0, atol=1e-13)


def test_a_huge_k_is_nan_and_costs_nothing():
    assert np.isnan(pass_at_k([3], [10], [10**15])).all()


@pytest.mark.parametrize(
    ("ks", "message"),
    [
        ([], "k is empty; give at least one row"),
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


@settings(max_examples=25)
@given(st.floats(0, 1), st.integers(1, 40))
def test_simulation_is_exact(s, k):
    exact = float(1 - (1 - Fraction(s)) ** k)
    assert simulate_pass_at_k([s], [k])[0, 0] == pytest.approx(exact, rel=1e-14, abs=0)


def test_simulation_keeps_its_precision_at_the_ends():
    rates = simulate_pass_at_k([0.0, 1e-300, 5e-324, 1e-12, 1.0], [1, 10**12])
    np.testing.assert_allclose(rates[:, 0], [0, 1e-300, 5e-324, 1e-12, 1], rtol=1e-15)
    np.testing.assert_allclose(
        rates[1:4, 1], [1e-288, 4.94065645841246544e-312, -np.expm1(-1)], rtol=1e-11
    )
    assert rates[0, 1] == 0
    assert rates[4, 1] == 1


@settings(max_examples=25)
@given(st.floats(0, 1), st.floats(1e-3, 1e6), st.integers(1, 60))
def test_a_posterior_fails_by_the_product_of_its_rates(s, nu, k):
    failure = np.prod([1 - s * nu / (nu + i) for i in range(k)])
    assert simulate_pass_at_k([s], [k], concentration=nu)[0, 0] == pytest.approx(
        1 - failure, rel=1e-9, abs=3e-9
    )


def test_a_sure_posterior_is_plug_in_and_rows_may_differ():
    s, ks = [0.0, 1e-9, 0.3, 1.0], [1, 100, 10**6]
    plug_in = simulate_pass_at_k(s, ks)
    np.testing.assert_array_equal(simulate_pass_at_k(s, ks, concentration=np.inf), plug_in)
    np.testing.assert_allclose(simulate_pass_at_k(s, ks, concentration=1e15), plug_in, rtol=1e-5)
    each = simulate_pass_at_k(s, ks, concentration=[1.0, 2.0, np.inf, 3.0])
    np.testing.assert_array_equal(each[2:], plug_in[2:])
    assert each[1] == pytest.approx(simulate_pass_at_k([1e-9], ks, concentration=2.0)[0], rel=1e-12)


@pytest.mark.parametrize(
    ("concentration", "message"),
    [
        (0, "row 0: concentration is 0, but must be above 0"),
        ([1.0, float("nan")], "row 1: concentration is nan"),
        ([1.0], "all must have the same number of rows, one per question"),
        ("high", "row 0: concentration is 'high', not a number"),
    ],
)
def test_bad_concentrations_are_refused(concentration, message):
    for call in (
        lambda: simulate_pass_at_k([0.5, 0.5], [1], concentration=concentration),
        lambda: allocate([0.5, 0.5], 3, concentration=concentration),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert str(error.value).startswith(message)


def test_the_error_of_a_prediction_is_unbiased():
    """Summed over all counts that n samples can give."""
    n, ks, promised = 12, [1, 2, 6], [0.1, 0.5, 0.95]
    for mu in (0.0, 0.07, 0.6, 1.0):
        counts = np.arange(n + 1)
        terms = pass_at_k_error_terms([promised] * (n + 1), counts, [n] * (n + 1), ks)
        truth = (np.array(promised) - (1 - (1 - mu) ** np.array(ks))) ** 2
        np.testing.assert_allclose(binom.pmf(counts, n, mu) @ terms, truth, atol=1e-14)


def test_the_error_of_a_prediction_needs_twice_the_samples():
    terms = pass_at_k_error_terms(np.full((2, 3), 0.5), [1, 1], [4, 6], [1, 2, 3])
    assert np.isnan(terms).tolist() == [[False, False, True], [False, False, False]]
    assert np.isnan(pass_at_k_error_terms([[0.5]], [1], [4], [10**15])).all()


@pytest.mark.parametrize(
    ("predicted", "message"),
    [
        ([0.5, 0.5], r"shape \(2, 1\); got \(2,\)"),
        ([[0.5], [1.5]], r"row 1: predicted is 1\.5, or has a value outside"),
        ([[0.5], [float("nan")]], "row 1: predicted is nan"),
    ],
)
def test_bad_predictions_are_refused(predicted, message):
    with pytest.raises(InputError, match=message):
        pass_at_k_error_terms(predicted, [1, 1], [2, 2], [1])


def test_the_mean_over_questions_is_that_of_scorio():
    samples = np.random.default_rng(0).random((30, 20)) < np.linspace(0, 1, 30)[:, None]
    expected = scorio.eval.pass_at_k(samples.astype(int), 3)
    rates = pass_at_k(samples.sum(axis=1), [20] * 30, [3])
    assert rates.mean() == pytest.approx(expected, abs=1e-12)


def test_series_are_joined_by_their_index():
    s, nu = pd.Series([0.1, 0.9], ["a", "b"]), pd.Series([5.0, 1.0], ["b", "a"])
    np.testing.assert_array_equal(
        simulate_pass_at_k(s, [3], concentration=nu),
        simulate_pass_at_k([0.1, 0.9], [3], concentration=[1.0, 5.0]),
    )
    cost = pd.Series([2.0, 3.0], ["b", "a"])
    np.testing.assert_array_equal(
        allocate(s, 9, cost=cost), allocate([0.1, 0.9], 9, cost=[3.0, 2.0])
    )
    c, n = pd.Series([9, 1], ["b", "a"]), pd.Series([10, 10], ["a", "b"])
    assert fit_concentration(s, c, n) == fit_concentration([0.1, 0.9], [1, 9], [10, 10])
    assert success_rate(pd.Series([1, 2], ["a", "b"]), c, n) == success_rate(
        [1, 2], [1, 9], [10, 10]
    )


@pytest.mark.parametrize(
    ("total", "n"),
    [
        ([32] * 5, 32),
        ([32], 32),
        ([100] * 20 + [12] * 40, 100),
        ([100] * 20 + [12] * 40_000, 12),  # 447 against 2,401
        ([100] * 9 + [12] * 40, 12),  # nine say little of others
        ([100, 12, 12], 12),  # fewer than ten: all of them
        ([100] * 45 + [97] * 15, 97),  # three samples of some are not scored
        ([0] * 30, 0),
    ],
)
def test_many_samples_of_some_count_where_these_are_ten(total, n):
    assert deep_samples(total) == n
    assert deep_samples(total[::-1]) == n
