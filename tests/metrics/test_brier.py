"""Metrics against hand cases, samples written out, and the properties each must have.

To add a metric: put it into SCORES with the sets it belongs to; ``test_every_metric_is_classified``
fails until it is there.
"""

import inspect
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.metrics import brier_score_loss, roc_auc_score

from capcal_lib import metrics
from capcal_lib.errors import InputError

NAN = float("nan")
CORRECTED = {"corrected": True}

# name -> variants of keyword arguments
SCORES = {
    "capability_brier": [{}, CORRECTED],
    "expected_response_brier": [{}],
    "correctness_variance": [{}, CORRECTED],
    "uniform_baseline_brier": [{}, CORRECTED],
    "soft_auroc": [{}],
    "spearman": [{}],
}
WITHOUT_CONFIDENCE = {"correctness_variance", "uniform_baseline_brier"}
WITH_TERMS = {"capability_brier", "correctness_variance", "uniform_baseline_brier"}
VARIANTS = [(name, options) for name, variants in SCORES.items() for options in variants]


def score(name, options, confidence, correct, total):
    function = getattr(metrics, name)
    columns = (
        (correct, total)
        if name.removesuffix("_terms") in WITHOUT_CONFIDENCE
        else (confidence, correct, total)
    )
    return function(*columns, **options)


@st.composite
def scored_questions(draw, least_total=1):
    n = draw(st.integers(1, 8))
    total = draw(st.lists(st.integers(least_total, 12), min_size=n, max_size=n))
    correct = [draw(st.integers(0, samples)) for samples in total]
    confidence = draw(st.lists(st.floats(0, 1), min_size=n, max_size=n))
    return confidence, correct, total


EXAMPLE = ([0.1, 0.5, 0.9, 1.0, 0.0], [0, 3, 2, 7, 1], [4, 5, 2, 7, 3])


def test_every_metric_is_classified():
    public = {
        name
        for name, function in inspect.getmembers(metrics, inspect.isfunction)
        if function.__module__ == "capcal_lib.metrics.brier"
    }
    with_terms = {f"{name}_terms" for name in WITH_TERMS}
    assert public == set(SCORES) | with_terms
    assert set(SCORES) >= WITHOUT_CONFIDENCE | WITH_TERMS


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_question_order_does_not_matter(name, options):
    order = [3, 1, 4, 0, 2]
    shuffled = [[column[row] for row in order] for column in EXAMPLE]
    assert score(name, options, *shuffled) == pytest.approx(
        score(name, options, *EXAMPLE), abs=1e-15
    )


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_lists_arrays_and_series_score_the_same(name, options):
    expected = score(name, options, *EXAMPLE)
    assert isinstance(expected, float)
    assert score(name, options, *map(np.array, EXAMPLE)) == expected
    # The labels of a Series say nothing: rows are taken in order.
    assert (
        score(name, options, *(pd.Series(column, index=[9, 8, 7, 6, 5]) for column in EXAMPLE))
        == expected
    )
    assert (
        score(name, options, EXAMPLE[0], *(np.array(column, dtype=float) for column in EXAMPLE[1:]))
        == expected
    )


@pytest.mark.parametrize(("name", "options"), VARIANTS)
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((NAN, 1, 4), "row 1: confidence is nan"),
        ((1.5, 1, 4), "row 1: confidence is 1.5"),
        (("high", 1, 4), "row 1: confidence is 'high'"),
        ((0.5, NAN, 4), "row 1: correct is nan"),
        ((0.5, 5, 4), "row 1: correct is 5, more than its total"),
        ((0.5, -1, 4), "row 1: correct is -1"),
        ((0.5, 0.5, 4), "row 1: correct is 0.5"),
        ((0.5, None, 4), "row 1: correct is None"),
        ((0.5, 0, 0), "row 1: total is 0, but"),
        ((0.5, 0, 1), "row 1: total is 1, but 2 or more scored samples are needed"),
    ],
)
def test_bad_rows_are_refused(name, options, row, message):
    if ("confidence" in message and name in WITHOUT_CONFIDENCE) or (
        row[2] == 1 and options != CORRECTED
    ):
        return  # the row is fine there
    columns = [[good, bad] for good, bad in zip((0.5, 1, 4), row, strict=True)]
    with pytest.raises(InputError) as error:
        score(name, options, *columns)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_bad_shapes_are_refused(name, options):
    with pytest.raises(InputError, match="is empty; give at least one row"):
        score(name, options, [], [], [])
    with pytest.raises(InputError, match=r"shape \(1, 2\)"):
        score(name, options, [[0.5, 0.5]], [[1, 1]], [[4, 4]])
    with pytest.raises(InputError, match="all must have the same number of rows"):
        score(name, options, [0.5, 0.5], [1, 1], [4])
    if name not in WITHOUT_CONFIDENCE:
        with pytest.raises(InputError, match="confidence has 1, correct has 2"):
            score(name, options, [0.5], [1, 1], [4, 4])


@pytest.mark.parametrize(
    ("name", "options"), [variant for variant in VARIANTS if variant[0] in WITH_TERMS]
)
def test_a_score_is_the_mean_of_its_terms(name, options):
    terms = score(f"{name}_terms", options, *EXAMPLE)
    assert terms.shape == (5,)
    assert terms.mean() == score(name, options, *EXAMPLE)


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


@settings(max_examples=60, deadline=None)
@given(scored_questions())
def test_expected_response_brier_is_the_mean_over_samples(questions):
    expected = float(naive_expected_response_brier(*questions))
    assert metrics.expected_response_brier(*questions) == pytest.approx(expected, abs=1e-14)


@settings(max_examples=60, deadline=None)
@given(scored_questions())
def test_theorem_2_holds_on_the_samples(questions):
    confidence, correct, total = questions
    response = metrics.expected_response_loss(confidence, correct, total)
    split = metrics.capability_brier_terms(*questions) + metrics.correctness_variance_terms(
        correct, total
    )
    np.testing.assert_allclose(split, response, rtol=0, atol=1e-14)


@settings(max_examples=60, deadline=None)
@given(scored_questions(least_total=2))
def test_theorem_2_holds_corrected_too(questions):
    _, correct, total = questions
    split = metrics.capability_brier(*questions, corrected=True) + metrics.correctness_variance(
        correct, total, corrected=True
    )
    assert split == pytest.approx(metrics.expected_response_brier(*questions), abs=1e-14)


@settings(max_examples=60, deadline=None)
@given(scored_questions(least_total=2))
def test_corrected_brier_is_the_mean_over_pairs_of_samples(questions):
    expected = float(naive_pair_mean(*questions))
    assert metrics.capability_brier(*questions, corrected=True) == pytest.approx(
        expected, abs=1e-14
    )


@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize("mu", [0.0, 0.1, 0.5, 0.93, 1.0])
def test_corrected_scores_are_unbiased(mu, n):
    counts = np.arange(n + 1)
    chance = binom.pmf(counts, n, mu)
    everyone = np.full(n + 1, n)
    terms = metrics.capability_brier_terms(np.full(n + 1, 0.3), counts, everyone, corrected=True)
    assert chance @ terms == pytest.approx((0.3 - mu) ** 2, abs=1e-14)
    terms = metrics.correctness_variance_terms(counts, everyone, corrected=True)
    assert chance @ terms == pytest.approx(mu * (1 - mu), abs=1e-14)
    terms = metrics.uniform_baseline_brier_terms(counts, everyone, corrected=True)
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


@settings(max_examples=60, deadline=None)
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


@pytest.mark.parametrize(
    ("confidence", "correct"),
    [([0.5, 0.5, 0.5], [0, 1, 2]), ([0.1, 0.2, 0.3], [1, 1, 1]), ([0.5], [1])],
)
def test_spearman_is_nan_without_a_ranking(confidence, correct):
    assert np.isnan(metrics.spearman(confidence, correct, [2] * len(correct)))


def test_spearman_does_not_see_the_scale():
    confidence, correct, total = EXAMPLE
    squared = [s**2 for s in confidence]
    assert metrics.spearman(squared, correct, total) == metrics.spearman(confidence, correct, total)


def test_with_one_sample_each_it_is_the_usual_brier_score():
    confidence, verdicts = [0.1, 0.7, 0.7, 1.0], [0, 1, 0, 1]
    expected = brier_score_loss(verdicts, confidence)
    assert metrics.capability_brier(confidence, verdicts, [1] * 4) == pytest.approx(
        expected, abs=1e-15
    )
    assert metrics.expected_response_brier(confidence, verdicts, [1] * 4) == pytest.approx(
        expected, abs=1e-15
    )


@settings(max_examples=60, deadline=None)
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


def test_soft_auroc_is_the_weighted_auroc_of_scikit_learn():
    rng = np.random.default_rng(0)
    s, correct = rng.random(50).round(1), rng.integers(0, 8, 50)
    mu = correct / 7
    expected = roc_auc_score([1] * 50 + [0] * 50, np.r_[s, s], sample_weight=np.r_[mu, 1 - mu])
    assert metrics.soft_auroc(s, correct, [7] * 50) == pytest.approx(expected)


def test_soft_auroc_of_constants_and_of_mu_itself():
    assert metrics.soft_auroc([0.3] * 3, [0, 1, 2], [2, 2, 2]) == 0.5
    assert metrics.soft_auroc([0.0, 0.5, 1.0], [0, 1, 2], [2, 2, 2]) < 1
    assert metrics.soft_auroc([0.0, 1.0], [0, 2], [2, 2]) == 1.0
    for correct in ([0, 0], [2, 2]):
        assert np.isnan(metrics.soft_auroc([0.1, 0.2], correct, [2, 2]))


@settings(max_examples=60, deadline=None)
@given(scored_questions(least_total=2), st.integers(0, 9))
def test_terms_of_parts_are_those_of_the_whole(questions, cut):
    for terms in (metrics.capability_brier_terms, metrics.expected_response_loss):
        parts = [[column[:cut] for column in questions], [column[cut:] for column in questions]]
        found = np.concatenate([terms(*part) for part in parts if part[0]])
        np.testing.assert_array_equal(found, terms(*questions))


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
