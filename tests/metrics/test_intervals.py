import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import beta, betabinom, binom, binomtest, bootstrap

from capcal_lib.errors import InputError
from capcal_lib.metrics.intervals import (
    binomial_interval,
    bootstrap_mean,
    bootstrap_means,
    coverage_probability,
    paired_difference,
    wald_sample_size,
)

METHODS = ["jeffreys", "wilson", "clopper-pearson", "wald"]


def rng(seed=0):
    return np.random.default_rng(seed)


# One question


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_wilson_and_clopper_pearson_agree_with_scipy(n, level):
    counts = np.arange(n + 1)
    for method, name in [("wilson", "wilson"), ("clopper-pearson", "exact")]:
        limits = binomial_interval(counts, np.full(n + 1, n), method=method, level=level)
        expected = [tuple(binomtest(int(c), n).proportion_ci(level, method=name)) for c in counts]
        np.testing.assert_allclose(limits, expected, rtol=0, atol=1e-8 if name == "exact" else 1e-14)


@pytest.mark.parametrize("c", [1, 3, 9])
def test_jeffreys_leaves_equal_tails_of_the_posterior(c):
    low, high = binomial_interval([c], [10], level=0.9)[0]
    posterior = beta(c + 0.5, 10 - c + 0.5)
    assert posterior.cdf(low) == pytest.approx(0.05, abs=1e-12)
    assert posterior.sf(high) == pytest.approx(0.05, abs=1e-12)


def test_clopper_pearson_turns_the_exact_tests_round():
    low, high = binomial_interval([3], [10], method="clopper-pearson")[0]
    assert low == pytest.approx(brentq(lambda mu: binom.sf(2, 10, mu) - 0.025, 1e-9, 0.9), abs=1e-9)
    assert high == pytest.approx(brentq(lambda mu: binom.cdf(3, 10, mu) - 0.025, 0.1, 1 - 1e-9), abs=1e-9)


def test_wald_is_the_formula_of_the_paper():
    half_width = 1.959963984540054 * math.sqrt(0.1 * 0.9 / 10)
    np.testing.assert_allclose(binomial_interval([1], [10], method="wald"), [[0.1 - half_width, 0.1 + half_width]])
    np.testing.assert_array_equal(binomial_interval([0, 10], [10, 10], method="wald"), [[0, 0], [1, 1]])


@pytest.mark.parametrize("method", ["jeffreys", "wilson", "clopper-pearson"])
def test_limits_start_at_0_and_end_at_1_exactly(method):
    limits = binomial_interval([0, 7], [7, 7], method=method)
    assert limits[0, 0] == 0
    assert limits[1, 1] == 1
    np.testing.assert_allclose(limits[0], 1 - limits[1, ::-1], atol=1e-15)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40, deadline=None)
@given(counts=st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_limits_hold_the_estimate_mirror_and_widen_with_the_level(method, counts):
    c, n = counts
    (low, high), mirrored = binomial_interval([c, n - c], [n, n], method=method)
    assert low <= c / n <= high
    np.testing.assert_allclose([low, high], 1 - mirrored[::-1], atol=1e-12)
    wider = binomial_interval([c], [n], method=method, level=0.99)[0]
    assert wider[0] <= low
    assert high <= wider[1]


def test_coverage_is_as_documented():
    counts, n = np.arange(101), np.full(101, 100)
    chance = betabinom.pmf(counts, 100, 0.3, 0.3)
    covered = {}
    for method in METHODS:
        low, high = binomial_interval(counts, n, method=method).T
        posterior = beta(counts + 0.3, n - counts + 0.3)
        covered[method] = chance @ (posterior.cdf(high) - posterior.cdf(low))
    assert covered == pytest.approx(
        {"wald": 0.71, "wilson": 0.954, "jeffreys": 0.958, "clopper-pearson": 0.975}, abs=2e-3
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_question_without_scored_samples_has_nan_limits(method):
    limits = binomial_interval([0, 1], [0, 2], method=method)
    assert np.isnan(limits[0]).all()
    assert np.isfinite(limits[1]).all()


def test_bad_interval_options_are_refused():
    with pytest.raises(
        InputError, match="unknown interval method 'exact'; known: clopper-pearson, jeffreys, wald, wilson"
    ):
        binomial_interval([1], [2], method="exact")
    for level in (0, 1, 95, float("nan")):
        with pytest.raises(InputError, match=r"level must lie between 0 and 1, such as 0\.95"):
            binomial_interval([1], [2], level=level)
    with pytest.raises(InputError, match="row 0: correct is 3, more than its total"):
        binomial_interval([3], [2])


# How many samples


@pytest.mark.parametrize("expected_accuracy", [0.01, 0.3, 0.5])
@pytest.mark.parametrize("half_width", [0.02, 0.1])
def test_sample_size_is_the_least_that_will_do(half_width, expected_accuracy):
    def margin(k):
        return 1.959963984540054 * math.sqrt(expected_accuracy * (1 - expected_accuracy) / k)

    k = wald_sample_size(half_width, expected_accuracy=expected_accuracy)
    assert margin(k) <= half_width < margin(k - 1)


def test_sample_size_at_the_ends():
    assert wald_sample_size(0.1, expected_accuracy=0) == 1
    assert wald_sample_size(0.098) == 100  # the paper's k_eval = 100
    for options, message in [
        ({"half_width": 0}, "half_width must be above 0"),
        ({"half_width": float("nan")}, "half_width must be above 0"),
        ({"half_width": 0.1, "expected_accuracy": 1.5}, r"expected_accuracy must lie in \[0, 1\]; got 1\.5"),
        ({"half_width": 0.1, "level": 1}, "level must lie between 0 and 1"),
    ]:
        with pytest.raises(InputError, match=message):
            wald_sample_size(**options)


# Means over questions


def naive_bootstrap(terms, seed, resamples, clusters=None):
    """One resample at a time, the questions of each drawn cluster listed."""
    generator = rng(seed)
    groups = [[term] for term in terms]
    if clusters is not None:
        groups = [
            [t for t, label in zip(terms, clusters, strict=True) if label == want] for want in dict.fromkeys(clusters)
        ]
    means = []
    for _ in range(resamples):
        drawn = [term for unit in generator.integers(len(groups), size=len(groups)) for term in groups[unit]]
        means.append(sum(drawn) / len(drawn))
    return np.quantile(means, [0.025, 0.975])


TERMS = rng(5).random(40)
LABELS = [f"subject {label}" for label in rng(6).integers(7, size=40)]


@pytest.mark.parametrize("clusters", [None, LABELS])
def test_bootstrap_equals_the_naive_one_draw_for_draw(clusters):
    interval = bootstrap_mean(TERMS, rng=rng(1), resamples=3000, clusters=clusters)
    assert interval.estimate == pytest.approx(TERMS.mean())
    np.testing.assert_allclose(interval[1:], naive_bootstrap(TERMS, 1, 3000, clusters), rtol=1e-12)


def test_bootstrap_of_many_questions_is_the_normal_interval():
    terms = rng(2).random(4000)
    interval = bootstrap_mean(terms, rng=rng(3), level=0.9)
    half_width = 1.6449 * terms.std() / math.sqrt(4000)
    assert interval.low == pytest.approx(terms.mean() - half_width, abs=0.05 * half_width)
    assert interval.high == pytest.approx(terms.mean() + half_width, abs=0.05 * half_width)


def test_bootstrap_follows_the_seed():
    first, again, other = (bootstrap_mean(TERMS, rng=rng(seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_clusters_that_agree_within_widen_the_interval():
    terms = np.repeat(rng(4).random(20), 10)
    labels = np.repeat(np.arange(20), 10)
    alone, together = (bootstrap_mean(terms, rng=rng(1), clusters=clusters) for clusters in (None, labels))
    assert together.estimate == alone.estimate
    assert (together.high - together.low) > 2.5 * (alone.high - alone.low)  # sqrt(10), in expectation


def test_one_question_per_cluster_is_no_clustering():
    alone, together = (bootstrap_mean(TERMS, rng=rng(1), clusters=clusters) for clusters in (None, range(40)))
    assert together == pytest.approx(alone)


def test_paired_difference_resamples_the_same_questions():
    other = rng(7).random(40)
    difference = paired_difference(TERMS, other, rng=rng(1), clusters=LABELS)
    assert difference == bootstrap_mean(TERMS - other, rng=rng(1), clusters=LABELS)
    back = paired_difference(other, TERMS, rng=rng(1), clusters=LABELS)
    np.testing.assert_allclose(back, [-difference.estimate, -difference.high, -difference.low])


def test_methods_that_differ_by_a_constant_differ_for_sure():
    interval = paired_difference(TERMS, TERMS + 0.1, rng=rng())
    np.testing.assert_allclose(interval, [-0.1, -0.1, -0.1])


@pytest.mark.parametrize(("terms", "clusters"), [([0.3], None), ([0.2, 0.4], ["algebra", "algebra"])])
def test_a_single_unit_has_no_known_limits(terms, clusters):
    interval = bootstrap_mean(terms, rng=rng(), clusters=clusters)
    assert interval.estimate == pytest.approx(0.3)
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)


def test_bootstrap_takes_lists_and_series():
    expected = bootstrap_mean(TERMS, rng=rng(), clusters=LABELS)
    assert bootstrap_mean(list(TERMS), rng=rng(), clusters=pd.Series(LABELS)) == expected
    assert bootstrap_mean(pd.Series(TERMS), rng=rng(), clusters=np.array(LABELS)) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"terms": [0.1, float("nan")]}, "row 1: term is nan, but must be finite; leave out what was not scored"),
        ({"terms": [np.inf, 0.1]}, "row 0: term is inf, but must be finite"),
        ({"terms": []}, "term is empty"),
        ({"clusters": ["a"]}, "equally many rows are needed, one per question; terms has 2, clusters has 1"),
        ({"clusters": ["a", None]}, "row 1: the cluster label is missing"),
        ({"clusters": [float("nan"), "a"]}, "row 0: the cluster label is missing"),
        ({"clusters": "ab"}, "clusters must be one-dimensional, one label per question; got shape ()"),
        ({"rng": 0}, "rng must be a numpy random generator, such as np.random.default_rng(0); got 0"),
        ({"rng": None}, "rng must be a numpy random generator"),
        ({"resamples": 0}, "resamples must be a whole number from 1"),
        ({"level": 1.5}, "level must lie between 0 and 1"),
    ],
)
def test_bad_bootstraps_are_refused(options, message):
    with pytest.raises(InputError) as error:
        bootstrap_mean(**{"terms": [0.1, 0.2], "rng": rng(), **options})
    assert str(error.value).startswith(message)


def test_a_pair_must_be_of_the_same_questions():
    with pytest.raises(InputError, match="terms_a has 2, terms_b has 1"):
        paired_difference([0.1, 0.2], [0.1], rng=rng())
    with pytest.raises(InputError, match="row 0: term is inf"):
        paired_difference([np.inf], [np.inf], rng=rng())


# Several means at once

COLUMNS = np.column_stack([TERMS, rng(8).random(40), TERMS - rng(8).random(40)])


@pytest.mark.parametrize("clusters", [None, LABELS])
def test_columns_share_their_draws_and_equal_each_on_its_own(clusters):
    together = bootstrap_means(COLUMNS, rng=rng(1), clusters=clusters)
    for column, interval in zip(COLUMNS.T, together, strict=True):
        assert interval == pytest.approx(bootstrap_mean(column, rng=rng(1), clusters=clusters))


@pytest.mark.parametrize("clusters", [None, LABELS])
def test_missing_terms_are_left_out_of_their_own_column(clusters):
    gaps = COLUMNS.copy()
    gaps[::3, 1] = np.nan
    found = bootstrap_means(gaps, rng=rng(1), resamples=300, clusters=clusters)
    whole = bootstrap_means(COLUMNS, rng=rng(1), resamples=300, clusters=clusters)
    assert found[0] == pytest.approx(whole[0])
    assert found[1].estimate == pytest.approx(np.nanmean(gaps[:, 1]))
    labels = list(range(40)) if clusters is None else clusters
    groups = [
        [t for t, label in zip(gaps[:, 1], labels, strict=True) if label == each] for each in dict.fromkeys(labels)
    ]
    generator, means = rng(1), []
    for _ in range(300):
        drawn = [t for unit in generator.integers(len(groups), size=len(groups)) for t in groups[unit]]
        means.append(np.nanmean(drawn))
    np.testing.assert_allclose(found[1][1:], np.quantile(means, [0.025, 0.975]), rtol=1e-12)


def test_columns_that_are_empty_or_of_one_unit_have_no_limits():
    terms = np.array([[np.nan, 0.2, 0.1], [np.nan, np.nan, 0.3]])
    none, single, both = bootstrap_means(terms, rng=rng())
    assert np.isnan(none).all()
    assert single.estimate == 0.2
    assert np.isnan(single[1:]).all()
    assert np.isfinite(both).all()
    assert np.isnan(bootstrap_means(terms, rng=rng(), clusters=["a", "a"])[2][1:]).all()


def test_a_resample_without_any_term_says_nothing():
    terms = np.full((6, 1), np.nan)
    terms[:2, 0] = 0.1, 0.5
    (interval,) = bootstrap_means(terms, rng=rng())
    assert interval[1:] == (0.1, 0.5)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ([0.1, 0.2], r"terms must have shape \(n_questions, n_columns\); got \(2,\)"),
        (np.empty((0, 2)), r"terms must have shape"),
        ([[0.1, 0.2], [0.1, np.inf]], "row 1: a term is infinite"),
    ],
)
def test_bad_columns_are_refused(terms, message):
    with pytest.raises(InputError, match=message):
        bootstrap_means(terms, rng=rng())


def test_bootstrap_agrees_with_scipy():
    ours = bootstrap_mean(TERMS, rng=rng(1))
    theirs = bootstrap((TERMS,), np.mean, n_resamples=10_000, method="percentile", rng=rng(2)).confidence_interval
    np.testing.assert_allclose(ours[1:], theirs, atol=0.005)


# Coverage


@pytest.mark.parametrize("method", METHODS)
def test_coverage_is_the_chance_of_the_counts_whose_interval_holds_mu(method):
    for k, mu in [(1, 0.3), (10, 0.04), (100, 0.5)]:
        naive = 0.0
        for c in range(k + 1):
            low, high = binomial_interval([c], [k], method=method, level=0.9)[0]
            naive += math.comb(k, c) * mu**c * (1 - mu) ** (k - c) * (low <= mu <= high)
        assert coverage_probability([mu], k, method=method, level=0.9)[0] == pytest.approx(naive, abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_coverage_is_what_draws_show(method):
    mu, k, draws = 0.07, 40, 40_000
    limits = binomial_interval(rng(1).binomial(k, mu, draws), np.full(draws, k), method=method)
    seen = np.mean((limits[:, 0] <= mu) & (mu <= limits[:, 1]))
    exact = coverage_probability([mu], k, method=method)[0]
    assert abs(seen - exact) < 4 * math.sqrt(exact * (1 - exact) / draws)


@given(mu=st.floats(0, 1), k=st.integers(1, 150), level=st.sampled_from([0.8, 0.95]))
@settings(deadline=None, max_examples=60)
def test_clopper_pearson_never_covers_less_than_it_says(mu, k, level):
    assert coverage_probability([mu], k, method="clopper-pearson", level=level)[0] >= level - 1e-9


def test_wald_hardly_ever_covers_near_the_ends():
    wald, jeffreys = (coverage_probability([0.001, 0.999], 100, method=one) for one in ("wald", "jeffreys"))
    assert (wald < 0.1).all()
    assert (jeffreys > 0.9).all()
    assert wald[0] == pytest.approx(wald[1], abs=1e-9)


def test_coverage_refuses_what_is_no_probability():
    with pytest.raises(InputError, match=r"row 1: confidence is 1\.5"):
        coverage_probability([0.5, 1.5], 10)
    with pytest.raises(InputError, match="k_eval must be a whole number"):
        coverage_probability([0.5], 0)
