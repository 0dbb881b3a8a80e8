import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, betabinom, binom, binomtest
from scipy.stats import t as student

from benchmarks import coverage
from capcal_lib.errors import InputError
from capcal_lib.metrics import binomial_interval, compare, coverage_probability, mean_interval

METHODS = ["jeffreys", "wilson", "clopper-pearson", "wald"]


def rng(seed=0):
    return np.random.default_rng(seed)


# One question


@pytest.mark.parametrize(("n", "level"), [(1, 0.95), (7, 0.5), (20, 0.99)])
def test_wilson_and_clopper_pearson_agree_with_scipy(n, level):
    counts = np.arange(n + 1)
    for method, name in [("wilson", "wilson"), ("clopper-pearson", "exact")]:
        limits = binomial_interval(counts, np.full(n + 1, n), method=method, level=level)
        expected = [tuple(binomtest(int(c), n).proportion_ci(level, method=name)) for c in counts]
        np.testing.assert_allclose(
            limits, expected, rtol=0, atol=1e-8 if name == "exact" else 1e-14
        )


def test_wald_is_the_formula_of_the_paper():
    half_width = 1.959963984540054 * math.sqrt(0.1 * 0.9 / 10)
    np.testing.assert_allclose(
        binomial_interval([1], [10], method="wald"), [[0.1 - half_width, 0.1 + half_width]]
    )
    np.testing.assert_array_equal(
        binomial_interval([0, 10], [10, 10], method="wald"), [[0, 0], [1, 1]]
    )


@pytest.mark.parametrize("method", ["jeffreys", "wilson", "clopper-pearson"])
def test_limits_start_at_0_and_end_at_1_exactly(method):
    limits = binomial_interval([0, 7], [7, 7], method=method)
    assert limits[0, 0] == 0
    assert limits[1, 1] == 1
    np.testing.assert_allclose(limits[0], 1 - limits[1, ::-1], atol=1e-15)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=25, deadline=None)
@given(counts=st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_limits_hold_the_estimate_mirror_and_widen_with_the_level(method, counts):
    c, n = counts
    (low, high), mirrored = binomial_interval([c, n - c], [n, n], method=method)
    assert low <= c / n <= high
    if method == "jeffreys" and 0 < c < n:
        posterior = beta(c + 0.5, n - c + 0.5)
        assert (posterior.cdf(low), posterior.sf(high)) == pytest.approx((0.025, 0.025), abs=1e-9)
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
        InputError,
        match="unknown interval method 'exact'; known: clopper-pearson, jeffreys, wald, wilson",
    ):
        binomial_interval([1], [2], method="exact")
    for level in (0, 1, 95, float("nan")):
        with pytest.raises(InputError, match=r"level must lie between 0 and 1, such as 0\.95"):
            binomial_interval([1], [2], level=level)
    with pytest.raises(InputError, match="row 0: correct is 3, more than its total"):
        binomial_interval([3], [2])


# For questions like these

SCORE, APART = (0, 1), (-1, 1)
TERMS = rng(5).random(40)
LABELS = [f"subject {label}" for label in rng(6).integers(12, size=40)]


def naive(terms, bounds=(0.0, 1.0), clusters=None, level=0.95):
    """One unit at a time: the mean with half a question at either bound, its weighted jackknife."""
    labels = range(len(terms)) if clusters is None else clusters
    groups = [
        [term for term, label in zip(terms, labels, strict=True) if label == want]
        for want in dict.fromkeys(labels)
    ]
    units = [(1.0, len(group), sum(group)) for group in groups]
    units += [(0.5, 1, bound) for bound in bounds]
    weight = sum(w * m for w, m, _ in units)
    centre = sum(w * total for w, _, total in units) / weight
    without = [(weight * centre - total) / (weight - m) for _, m, total in units]
    squares = sum(w * (each - centre) ** 2 for (w, *_), each in zip(units, without, strict=True))
    error = math.sqrt(squares * len(groups) / (len(groups) + 1))
    effective = len(terms) ** 2 / sum(len(group) ** 2 for group in groups)
    width = student.ppf((1 + level) / 2, effective - 1) * error
    mean = sum(terms) / len(terms)
    return (
        mean,
        max(min(mean, centre - width), min(bounds[0], mean)),
        min(max(mean, centre + width), max(bounds[1], mean)),
    )


@pytest.mark.parametrize("clusters", [None, LABELS])
@pytest.mark.parametrize(("bounds", "level"), [((0, 1), 0.95), ((-1, 1), 0.5)])
def test_limits_are_those_of_t_with_half_a_question_at_either_bound(clusters, bounds, level):
    found = mean_interval(TERMS, clusters=clusters, bounds=bounds, level=level)
    assert found == pytest.approx(naive(TERMS, bounds, clusters, level), abs=1e-12)


def test_a_case_by_hand():
    """Terms 0 and 1 and half a one at each bound: centre 1/2, squares 3/4, 2 * 3 * error^2."""
    width = student.ppf(0.75, 1) * math.sqrt(0.75 / 6)
    expected = pytest.approx((0.5, 0.5 - width, 0.5 + width))
    assert mean_interval([0, 1], level=0.5, bounds=SCORE) == expected
    # None of n: the centre is 1/2 over n + 1, and the upper half-question carries the error.
    n = 9
    centre = 0.5 / (n + 1)
    error = math.sqrt((n * centre**2 + centre**2 / 2 + (1 - centre) ** 2 / 2) / (n * (n + 1)))
    high = centre + student.ppf(0.975, n - 1) * error
    assert mean_interval(np.zeros(n), bounds=SCORE) == pytest.approx((0, 0, high))


@settings(max_examples=25, deadline=None)
@given(
    terms=st.lists(st.floats(-1, 1), min_size=2, max_size=30),
    levels=st.tuples(st.floats(0.01, 0.999999), st.floats(0.01, 0.999999)),
)
def test_limits_are_nested_in_the_level_hold_the_estimate_and_keep_the_bounds(terms, levels):
    inner, outer = (mean_interval(terms, level=level, bounds=(-1, 1)) for level in sorted(levels))
    assert -1 - 1e-12 <= outer.low <= inner.low <= inner.estimate
    assert inner.estimate <= inner.high <= outer.high <= 1 + 1e-12


MISSED_WHOLE = ["clusters missed whole", "subjects missed whole", "subjects of MMLU, missed"]
OFTEN = ["U-shaped", "rare gross misses", "alike, apart by .05", "subjects, unequal"]
WORLDS = [(name, 30) for name in OFTEN]
WORLDS += [
    pytest.param(name, n, marks=pytest.mark.slow)
    for name in sorted(coverage.WORLDS.keys() - MISSED_WHOLE)
    for n in (30, 100)
    if (name, n) not in WORLDS
]


@pytest.mark.parametrize(("name", "n"), WORLDS)
def test_the_interval_holds_the_score_of_all_questions_like_these(name, n):
    held, _ = coverage.coverage(name, n, 400)["this"]
    least = 0.89 if (name, n) == ("overconfident", 100) else 0.94  # two misses in n: see below
    assert held > least - 0.025  # with the error of 400 studies


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("subjects missed whole", 0.8),
        pytest.param("subjects of MMLU, missed", 0.7, marks=pytest.mark.slow),
    ],
)
def test_the_interval_does_not_cover_clusters_that_are_missed_whole(name, about):
    held, _ = coverage.coverage(name, 57, 200)["this"]
    assert about - 0.1 < held < about + 0.1  # as it says


@pytest.mark.parametrize("n", [30, 200])
def test_the_interval_misses_a_rate_that_none_of_n_may_hide(n):
    """Exactly, over all counts of terms of 0 and 1, the hardest to hold."""
    limits = [mean_interval(np.arange(n) < ones, bounds=SCORE) for ones in range(n + 1)]
    _, low, high = np.array(limits).T[:, :, None]
    rate = np.linspace(0.1 / n, 0.5, 5 * n)
    chance = binom.pmf(np.arange(n + 1)[:, None], n, rate)
    covered = (chance * ((low <= rate) & (rate <= high))).sum(axis=0)
    assert high[0, 0] == pytest.approx(1.9 / n, rel=0.05)
    assert covered[rate < high[0, 0]].min() > 0.93
    assert 0.845 < covered.min() < 0.86
    assert rate[covered.argmin()] == pytest.approx(high[0, 0], rel=0.15)


def test_missing_terms_are_left_out():
    gaps, labels = (
        np.insert(TERMS, [3, 20], np.nan),
        np.insert(np.array(LABELS, object), [3, 20], "of nobody"),
    )
    assert mean_interval(gaps, bounds=SCORE) == mean_interval(TERMS, bounds=SCORE)
    codes = np.unique(LABELS, return_inverse=True)[1]
    expected = mean_interval(TERMS, clusters=codes, bounds=SCORE)
    assert mean_interval(gaps, clusters=labels, bounds=SCORE) == pytest.approx(expected)
    assert np.isnan(mean_interval([np.nan, np.nan], bounds=SCORE)).all()


@pytest.mark.parametrize(
    ("terms", "clusters"), [([0.3], None), ([0.2, 0.4], ["algebra", "algebra"])]
)
def test_a_single_unit_has_no_known_limits(terms, clusters):
    interval = mean_interval(terms, clusters=clusters, bounds=SCORE)
    assert interval.estimate == pytest.approx(0.3)
    assert np.isnan(interval[1:]).all()


def test_the_interval_mirrors_and_does_not_see_order_or_labels():
    terms, labels = rng(5).random(40) - 0.5, rng(6).integers(13, size=40)
    first = mean_interval(terms, clusters=labels, bounds=APART)
    names = [f"s{99 - each}" for each in labels]
    assert first == pytest.approx(mean_interval(terms, clusters=names, bounds=APART))
    shuffled = rng(2).permutation(40)
    again = mean_interval(terms[shuffled], clusters=labels[shuffled], bounds=APART)
    assert first == pytest.approx(again)
    mirrored = mean_interval(-terms, clusters=labels, bounds=APART)
    assert first == pytest.approx((-mirrored.estimate, -mirrored.high, -mirrored.low))


def test_series_of_terms_and_clusters_are_aligned():
    terms, labels = pd.Series(TERMS), pd.Series(LABELS)
    expected = mean_interval(TERMS, clusters=LABELS, bounds=SCORE)
    shuffled = labels.sample(frac=1, random_state=1)
    assert mean_interval(terms, clusters=shuffled, bounds=SCORE) == expected
    with pytest.raises(InputError, match="clusters and terms have different indices"):
        mean_interval(terms, clusters=labels.set_axis(range(1, 41)), bounds=SCORE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"terms": [np.inf, 0.1]}, "row 0: term is inf, but must be finite"),
        ({"terms": []}, "term is empty; give at least one row"),
        (
            {"clusters": ["a"]},
            "all must have the same number of rows, one per question; terms has 2, clusters has 1",
        ),
        ({"clusters": ["a", None]}, "row 1: the cluster label is missing"),
        ({"bounds": (1, 1)}, "bounds must be a lower and a higher number; got (1, 1)"),
        ({"bounds": (0, np.nan)}, "bounds must be a lower and a higher number; got (0, nan)"),
        ({"level": 1.5}, "level must lie between 0 and 1"),
    ],
)
def test_bad_means_are_refused(options, message):
    with pytest.raises(InputError) as error:
        mean_interval(**{"terms": [0.1, 0.2], "bounds": SCORE, **options})
    assert str(error.value).startswith(message)


# Methods


def test_a_comparison_has_the_intervals_of_the_means_and_shares_its_questions():
    frame = pd.DataFrame(
        {"a": TERMS, "b": rng(8).random(40), "none": np.nan}, index=[f"q{at}" for at in range(40)]
    )
    frame.loc["q3", "b"] = np.nan
    found = compare(frame, bounds=SCORE)
    for name in "ab":
        expected = mean_interval(frame[name].drop("q3"), bounds=SCORE)
        assert found.loc[name, ["estimate", "low", "high"]].tolist() == pytest.approx(
            expected, abs=0.01
        )
    assert found.loc["none", ["estimate", "low", "high"]].isna().all()
    assert found.index.tolist() == ["a", "b", "none"]
    assert found["may_be_best"].tolist() == [True, True, False]
    assert found["may_be_best"].dtype == bool


def test_the_lowest_is_looked_for_on_common_questions():
    """On its own questions, which are easier, the worse method has the lower mean."""
    good = np.r_[np.full(50, 0.1), np.full(50, 0.5)] + rng(1).random(100) / 20
    frame = pd.DataFrame(
        {"good": good, "worse": np.where(np.arange(100) < 50, good + 0.05, np.nan)}
    )
    frame.loc[0, "worse"] += 0.01  # the difference is not the same everywhere
    assert frame["worse"].mean() < frame["good"].mean()
    assert compare(frame, bounds=SCORE)["may_be_best"].tolist() == [True, False]


def test_equals_may_all_be_best_and_what_is_worse_everywhere_may_not():
    terms = rng(1).random(40)
    frame = pd.DataFrame({"a": terms, "same": terms, "worse": terms + 0.4})
    frame["noisy"] = terms + rng(2).normal(0, 0.1, 40)
    assert compare(frame, bounds=SCORE)["may_be_best"].tolist()[:3] == [True, True, False]
    back = compare(frame[frame.columns[::-1]], bounds=SCORE)["may_be_best"]
    assert back[frame.columns].tolist() == compare(frame, bounds=SCORE)["may_be_best"].tolist()
    grouped = compare(frame, clusters=np.arange(40) // 4, bounds=SCORE)
    assert grouped["may_be_best"].tolist()[:3] == [True, True, False]


def test_a_true_best_is_hardly_ever_excluded_among_nine_equals():
    generator, excluded = rng(30), []
    for _ in range(60):
        mu = generator.beta(0.3, 0.3, 200)
        s = np.clip(mu[:, None] + generator.normal(0, 0.25, (200, 9)), 0, 1)
        terms = pd.DataFrame((s - generator.binomial(100, mu)[:, None] / 100) ** 2)
        excluded.append(1 - compare(terms, bounds=SCORE)["may_be_best"].mean())
    assert np.mean(excluded) < 0.05  # of every one of the nine; Bonferroni's bound is not reached


def test_the_pages_comparison_of_two_is_a_one_sided_test():
    """Two methods: the worse is excluded where the lower limit of its one-sided interval is above
    0.
    """
    better = rng(1).random(5000)
    for shift, excluded in [(1.5, False), (1.8, True)]:
        noise = rng(2).normal(0, 1, 5000)
        noise += shift * noise.std(ddof=1) / math.sqrt(5000) - noise.mean()
        frame = pd.DataFrame({"better": better, "worse": better + noise})
        assert compare(frame, bounds=SCORE)["may_be_best"].tolist() == [True, not excluded]


def test_little_or_nothing_in_common():
    nothing = compare(pd.DataFrame({"a": [0.1, np.nan], "b": [np.nan, 0.2]}), bounds=SCORE)
    assert nothing[["estimate", "low", "high"]].isna().all(axis=None)
    assert not nothing["may_be_best"].any()
    single = compare(pd.DataFrame({"a": [0.1, 0.4], "b": [0.3, np.nan]}), bounds=SCORE)
    assert single["estimate"].tolist() == [0.1, 0.3]
    assert single["low"].isna().all()
    assert single["may_be_best"].all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"terms": np.zeros((3, 2))},
            "terms must be a DataFrame: one row per question, one column per method",
        ),
        ({"terms": pd.DataFrame()}, "terms must be a DataFrame"),
        ({"terms": pd.DataFrame({"mine": ["low"]})}, "row 0: mine is 'low', not a number"),
    ],
)
def test_bad_comparisons_are_refused(options, message):
    with pytest.raises(InputError) as error:
        compare(**{"terms": pd.DataFrame({"a": [0.1, 0.2]}), "bounds": SCORE, **options})
    assert str(error.value).startswith(message)


# Coverage of binomial intervals


@pytest.mark.parametrize("method", METHODS)
def test_coverage_is_the_chance_of_the_counts_whose_interval_holds_mu(method):
    for k, mu in [(1, 0.3), (10, 0.04), (100, 0.5)]:
        naive = 0.0
        for c in range(k + 1):
            low, high = binomial_interval([c], [k], method=method)[0]
            naive += math.comb(k, c) * mu**c * (1 - mu) ** (k - c) * (low <= mu <= high)
        exact = coverage_probability([mu], k, method=method)[0]
        assert exact == pytest.approx(naive, abs=1e-12)


@given(mu=st.floats(0, 1), k=st.integers(1, 150))
@settings(deadline=None, max_examples=25)
def test_clopper_pearson_never_covers_less_than_it_says(mu, k):
    assert coverage_probability([mu], k, method="clopper-pearson")[0] >= 0.95 - 1e-9


def test_coverage_refuses_what_is_no_probability():
    with pytest.raises(InputError, match=r"row 1: confidence is 1\.5"):
        coverage_probability([0.5, 1.5], 10)
    with pytest.raises(InputError, match="k_eval must be a whole number"):
        coverage_probability([0.5], 0)
