"""The stopping rule and its estimates, against brute force over all orders of outcomes."""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.applications import difference_components, score_components
from capcal_lib.errors import InputError
from capcal_lib.metrics import capability_brier_terms
from capcal_lib.metrics.intervals import binomial_interval
from capcal_lib.runs import stopping
from capcal_lib.runs.stopping import Rule, outcomes, stopped_components, stops

RULE = Rule(precision=0.05, k=100)


def walk(rule: Rule, sequence: tuple[int, ...]) -> tuple[int, int]:
    """Follow one order of outcomes to its stop, by the words of the rule."""
    for n in range(1, rule.k + 1):
        if n % stopping.EVERY == 0 or n == rule.k:
            c = sum(sequence[:n])
            low, high = binomial_interval([c], [n])[0]
            if (high - low) / 2 <= rule.precision or n == rule.k:
                return c, n
    raise AssertionError


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Rule:
    """A rule short enough to try all 2^12 orders; it stops some at 4, 6, 8 and 10."""
    monkeypatch.setattr(stopping, "EVERY", 2)
    return Rule(precision=0.24, k=12)


def test_all_ends_and_their_probabilities_are_those_of_brute_force(small: Rule) -> None:
    mu = Fraction(3, 10)
    exact: dict[tuple[int, int], Fraction] = {}
    first: dict[tuple[int, int], Fraction] = {}
    both: dict[tuple[int, int], Fraction] = {}
    for sequence in itertools.product((0, 1), repeat=small.k):
        end, right = walk(small, sequence), sum(sequence)
        chance = mu**right * (1 - mu) ** (small.k - right)
        exact[end] = exact.get(end, Fraction(0)) + chance
        first[end] = first.get(end, Fraction(0)) + chance * sequence[0]
        both[end] = both.get(end, Fraction(0)) + chance * sequence[0] * sequence[1]
    correct, total = small.ends
    ends = list(zip(correct.tolist(), total.tolist(), strict=True))
    assert set(ends) == set(exact)
    assert {n for _, n in ends} > {12}
    np.testing.assert_allclose(small.probabilities([0.3])[0], [float(exact[end]) for end in ends])
    one, two = small.unbiased(correct, total)
    np.testing.assert_allclose(one, [float(first[end] / exact[end]) for end in ends])
    np.testing.assert_allclose(two, [float(both[end] / exact[end]) for end in ends])


def brier_terms(rule: Rule, s: np.ndarray, correct: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Estimate (s - mu)^2 of each question without bias."""
    mu, square = rule.unbiased(correct, total)
    return s**2 - 2 * s * mu + square


@settings(max_examples=20, deadline=None)
@given(precision=st.floats(0.03, 0.2), k=st.integers(2, 130), mu=st.floats(0, 1), s=st.floats(0, 1))
def test_the_estimates_are_unbiased_whatever_the_rule_and_mu(
    precision: float, k: int, mu: float, s: float
) -> None:
    rule = Rule(precision, k)
    correct, total = rule.ends
    (chance,) = rule.probabilities([mu])
    one, two = rule.unbiased(correct, total)
    assert chance.sum() == pytest.approx(1)
    assert chance @ one == pytest.approx(mu, abs=1e-10)
    assert chance @ two == pytest.approx(mu**2, abs=1e-10)
    terms = brier_terms(rule, np.full(len(one), s), correct, total)
    assert chance @ terms == pytest.approx((s - mu) ** 2, abs=1e-10)


def test_right_and_wrong_are_treated_alike() -> None:
    correct, total = RULE.ends
    assert sorted(zip(correct, total, strict=True)) == sorted(
        zip(total - correct, total, strict=True)
    )
    np.testing.assert_allclose(
        RULE.unbiased(correct, total)[0], 1 - RULE.unbiased(total - correct, total)[0], atol=1e-12
    )


def test_a_rule_that_never_stops_early_gives_the_corrected_score_of_fixed_k() -> None:
    rule = Rule(precision=0.001, k=20)
    correct, total, s = np.arange(21), np.full(21, 20), np.linspace(0, 1, 21)
    assert rule.ends[1].tolist() == [20] * 21
    np.testing.assert_allclose(rule.unbiased(correct, total)[0], correct / 20)
    np.testing.assert_allclose(
        brier_terms(rule, s, correct, total),
        capability_brier_terms(s, correct, total, corrected=True),
        atol=1e-12,
    )


def test_counts_where_no_question_stops_have_no_estimate() -> None:
    one, two = RULE.unbiased([0, 0, 1, 5, 50, 0], [30, 20, 30, 31, 100, 100])
    assert (
        np.isnan(one).tolist() == np.isnan(two).tolist() == [False, True, True, True, False, True]
    )


def test_simulated_sampling_agrees_with_the_exact_numbers() -> None:
    mu, n = 0.05, 20_000
    correct, total = RULE.ends
    (chance,) = RULE.probabilities([mu])
    bias = chance @ (correct / total) - mu
    table = np.random.default_rng(0).binomial(1, mu, size=(n, RULE.k)).astype(np.int8)
    at, stopped = stops(RULE, table)
    assert stopped.all()
    plain = np.where(np.arange(RULE.k) < at[:, None], table, 0).sum(axis=1) / at
    error = plain.std() / np.sqrt(n)
    assert at.mean() == pytest.approx(chance @ total, abs=1)
    assert plain.mean() - mu == pytest.approx(bias, abs=5 * error)
    assert bias < -20 * error  # there is something to correct
    spread = np.sqrt(chance @ (correct / total - mu) ** 2)
    assert np.sqrt(((plain - mu) ** 2).mean()) == pytest.approx(spread, rel=0.05)


def frame(rows: dict[str, str]) -> pd.DataFrame:
    words = {"+": "correct", "-": "incorrect", "o": "no_answer", "?": "not_scored"}
    return pd.DataFrame(
        [
            (name, index, words[sign])
            for name, signs in rows.items()
            for index, sign in enumerate(signs)
            if sign != " "
        ],
        columns=["question_id", "sample_index", "verdict"],
    )


def test_looks_go_as_far_as_the_samples() -> None:
    verdicts = frame(
        {
            "a": "-" * 45,
            "b": "+" * 30,
            "c": "o" * 29,
            "d": "+-" * 15,
            "e": " " + "-" * 40,
            "f": "+-" * 60,
        }
    )
    names, table = outcomes(verdicts, RULE.k)
    at, stopped = stops(RULE, table)
    assert names == list("abcdef")
    assert at.tolist() == [30, 30, 30, 40, 10, 100]
    assert stopped.tolist() == [True, True, False, False, False, True]


def test_outcomes_have_a_code_each() -> None:
    names, table = outcomes(frame({"b": "+-o?", "a": "? +"}), 5)
    assert names == ["a", "b"]
    assert table.tolist() == [[-1, -2, 1, -2, -2], [1, 0, 0, -1, -2]]
    # Samples that are not scored are there, and count for no interval.
    at, stopped = stops(RULE, outcomes(frame({"c": "?" * 10 + "-" * 30}), RULE.k)[1])
    assert (at.tolist(), stopped.tolist()) == ([40], [True])


@pytest.mark.parametrize(("precision", "k", "message"), [
    (0.0, 100, "precision is the half-width of an interval, in"),
    (0.5, 100, "got 0.5"),
    (float("nan"), 100, "got nan"),
    (0.05, 1, "k must be a whole number from 2"),
])  # fmt: skip
def test_bad_rules_are_refused(precision: float, k: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Rule(precision, k)


def test_the_variance_of_stopped_runs_is_planned_from_a_pilot_of_fixed_size() -> None:
    """Against runs drawn anew from the mu behind the pilot: sample by sample, to the stop."""
    rng, rule, n = np.random.default_rng(4), Rule(precision=0.1, k=60), 4000
    mu = rng.beta(0.4, 0.6, n)
    s, other = np.clip(mu + rng.normal(0, 0.2, (2, n)), 0, 1)
    pilot, total = rng.binomial(400, mu), np.full(n, 400)
    planned = [
        stopped_components(rule, score_components(s, pilot, total), pilot, total, s),
        stopped_components(
            rule, difference_components(s, other, pilot, total), pilot, total, s, other
        ),
    ]
    draws, used = [], []
    for _ in range(20):
        order = (rng.random((n, 60)) < mu[:, None]).astype(np.int8)
        at, _ = stops(rule, order)
        correct = np.where(np.arange(60) < at[:, None], order, 0).sum(axis=1)
        draws.append([brier_terms(rule, each, correct, at) for each in (s, other)])
        used.append(at.mean())
    first, second = np.array(draws).transpose(1, 0, 2)
    for (found, samples), terms in zip(planned, (first, first - second), strict=True):
        assert found.within == pytest.approx(terms.var(axis=0, ddof=1).mean(), rel=0.05)
        assert found.pairs == 0
        assert samples == pytest.approx(np.mean(used), rel=0.02)
