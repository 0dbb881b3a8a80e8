"""Metrics against hand cases, samples written out, and the properties each must have."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.metrics import brier_score_loss

from capcal_lib import metrics
from capcal_lib.errors import InputError


@st.composite
def scored_questions(draw, least_total=1):
    n = draw(st.integers(1, 8))
    total = draw(st.lists(st.integers(least_total, 12), min_size=n, max_size=n))
    correct = [draw(st.integers(0, samples)) for samples in total]
    confidence = draw(st.lists(st.floats(0, 1), min_size=n, max_size=n))
    return confidence, correct, total


EXAMPLE = ([0.1, 0.5, 0.9, 1.0, 0.0], [0, 3, 2, 7, 1], [4, 5, 2, 7, 3])


@pytest.mark.parametrize("options", [{}, {"corrected": True}])
def test_a_score_is_the_mean_of_its_terms(options):
    for name, columns in (
        ("capability_brier", EXAMPLE),
        ("correctness_variance", EXAMPLE[1:]),
        ("uniform_baseline_brier", EXAMPLE[1:]),
    ):
        terms = getattr(metrics, f"{name}_terms")(*columns, **options)
        assert terms.shape == (5,)
        assert terms.mean() == getattr(metrics, name)(*columns, **options)


@pytest.mark.parametrize(
    "score", [metrics.capability_brier, metrics.expected_response_brier, metrics.soft_auroc]
)
def test_a_question_without_a_confidence_or_a_scored_sample_is_refused(score):
    with pytest.raises(InputError, match="row 1: confidence is nan"):
        score([0.5, float("nan")], [1, 1], [4, 4])
    with pytest.raises(InputError, match="row 1: total is 0, but"):
        score([0.5, 0.5], [1, 0], [4, 0])


def test_a_corrected_score_takes_two_scored_samples():
    said = "row 0: total is 1, but 2 or more scored samples are needed"
    with pytest.raises(InputError, match=said):
        metrics.capability_brier([0.5], [1], [1], corrected=True)
    for score in (metrics.correctness_variance, metrics.uniform_baseline_brier):
        with pytest.raises(InputError, match=said):
            score([1], [1], corrected=True)


# Against definitions over the samples, one by one.


def samples(correct, total):
    return [1] * correct + [0] * (total - correct)


def naive_expected_response_brier(confidence, correct, total):
    rows = zip(confidence, correct, total, strict=True)
    means = [sum((Fraction(s) - z) ** 2 for z in samples(c, n)) / n for s, c, n in rows]
    return sum(means) / len(means)


def naive_pair_mean(confidence, correct, total):
    """Mean of (s - z)(s - z') over pairs of different samples: unbiased for (s - mu)^2."""
    means = []
    for s, c, n in zip(confidence, correct, total, strict=True):
        errors = [Fraction(s) - z for z in samples(c, n)]
        pairs = [errors[i] * errors[j] for i in range(n) for j in range(n) if i != j]
        means.append(sum(pairs) / len(pairs))
    return sum(means) / len(means)


@settings(max_examples=25, deadline=None)
@given(scored_questions())
def test_expected_response_brier_is_the_mean_over_samples(questions):
    expected = float(naive_expected_response_brier(*questions))
    assert metrics.expected_response_brier(*questions) == pytest.approx(expected, abs=1e-14)


@settings(max_examples=25, deadline=None)
@given(scored_questions())
def test_theorem_2_holds_on_the_samples(questions):
    confidence, correct, total = questions
    response = metrics.expected_response_loss(confidence, correct, total)
    split = metrics.capability_brier_terms(*questions) + metrics.correctness_variance_terms(
        correct, total
    )
    np.testing.assert_allclose(split, response, rtol=0, atol=1e-14)


@settings(max_examples=25, deadline=None)
@given(scored_questions(least_total=2))
def test_theorem_2_holds_corrected_too(questions):
    _, correct, total = questions
    split = metrics.capability_brier(*questions, corrected=True) + metrics.correctness_variance(
        correct, total, corrected=True
    )
    assert split == pytest.approx(metrics.expected_response_brier(*questions), abs=1e-14)


@settings(max_examples=25, deadline=None)
@given(scored_questions(least_total=2))
def test_corrected_brier_is_the_mean_over_pairs_of_samples(questions):
    expected = float(naive_pair_mean(*questions))
    assert metrics.capability_brier(*questions, corrected=True) == pytest.approx(
        expected, abs=1e-14
    )


@pytest.mark.parametrize(("mu", "n"), [(0.0, 2), (0.1, 3), (0.93, 10)])
def test_corrected_scores_are_unbiased(mu, n):
    counts = np.arange(n + 1)
    chance = binom.pmf(counts, n, mu)
    terms = metrics.capability_brier_terms(0.3, counts, n, corrected=True)
    assert chance @ terms == pytest.approx((0.3 - mu) ** 2, abs=1e-14)
    terms = metrics.correctness_variance_terms(counts, n, corrected=True)
    assert chance @ terms == pytest.approx(mu * (1 - mu), abs=1e-14)
    terms = metrics.uniform_baseline_brier_terms(counts, n, corrected=True)
    assert chance @ terms == pytest.approx(1 / 3 - mu + mu**2, abs=1e-14)


def test_hand_cases():
    # mu_hat = 1/2 and 1; s = 1/4 and 3/4
    confidence, correct, total = [0.25, 0.75], [2, 3], [4, 3]
    assert metrics.capability_brier(confidence, correct, total) == 1 / 16
    assert metrics.capability_brier(confidence, correct, total, corrected=True) == pytest.approx(
        (-1 / 48 + 1 / 16) / 2
    )
    assert metrics.expected_response_brier(confidence, correct, total) == (5 / 16 + 1 / 16) / 2
    assert metrics.correctness_variance(correct, total) == 1 / 8
    assert metrics.correctness_variance(correct, total, corrected=True) == pytest.approx(1 / 6)
    assert metrics.uniform_baseline_brier(correct, total) == pytest.approx((1 / 12 + 1 / 3) / 2)
    assert metrics.uniform_baseline_brier(correct, total, corrected=True) == pytest.approx(
        1 / 3 - 1 / 6
    )


def test_uniform_baseline_is_the_mean_over_uniform_confidences():
    grid = (np.arange(1000) + 0.5) / 1000
    averaged = np.mean([metrics.capability_brier([s, s], [1, 7], [4, 9]) for s in grid])
    assert metrics.uniform_baseline_brier([1, 7], [4, 9]) == pytest.approx(averaged, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(scored_questions())
def test_spearman_is_pearson_on_mean_ranks(questions):
    confidence, correct, total = questions
    accuracy = [Fraction(c, n) for c, n in zip(correct, total, strict=True)]

    def ranks(values):  # one below, plus the middle of those that are equal
        return [sum(w < v for w in values) + (sum(w == v for w in values) + 1) / 2 for v in values]

    if len(set(confidence)) == 1 or len(set(accuracy)) == 1:
        assert np.isnan(metrics.spearman(*questions))
    else:
        expected = np.corrcoef(ranks(confidence), ranks(accuracy))[0, 1]
        assert metrics.spearman(*questions) == pytest.approx(expected, abs=1e-12)


def test_with_one_sample_each_it_is_the_usual_brier_score():
    confidence, verdicts = [0.1, 0.7, 0.7, 1.0], [0, 1, 0, 1]
    expected = brier_score_loss(verdicts, confidence)
    assert metrics.capability_brier(confidence, verdicts, [1] * 4) == pytest.approx(
        expected, abs=1e-15
    )
    assert metrics.expected_response_brier(confidence, verdicts, [1] * 4) == pytest.approx(
        expected, abs=1e-15
    )


@settings(max_examples=25, deadline=None)
@given(scored_questions())
def test_soft_auroc_counts_pairs_of_samples_with_ties_at_one_half(questions):
    confidence, correct, total = questions
    mu = [Fraction(c, n) for c, n in zip(correct, total, strict=True)]
    pairs = wins = Fraction(0)
    for s, right in zip(confidence, mu, strict=True):
        for other, rate in zip(confidence, mu, strict=True):
            weight = right * (1 - rate)
            pairs += weight
            wins += weight * (Fraction(1, 2) if s == other else int(s > other))
    found = metrics.soft_auroc(*questions)
    assert np.isnan(found) if pairs == 0 else found == pytest.approx(float(wins / pairs), abs=1e-12)


def test_series_in_another_order_score_the_same():
    frame = pd.DataFrame(
        {"s": [0.2, 0.9, 0.4], "c": [1, 4, 0], "n": [4, 4, 8]}, index=["a", "b", "c"]
    )
    expected = metrics.capability_brier(frame["s"], frame["c"], frame["n"], corrected=True)
    shuffled = frame.loc[["c", "a", "b"]]
    assert (
        metrics.capability_brier(frame["s"], shuffled["c"], shuffled["n"], corrected=True)
        == expected
    )
    with pytest.raises(InputError, match="correct and confidence have different indices"):
        metrics.capability_brier(frame["s"], frame["c"].reset_index(drop=True), frame["n"])
