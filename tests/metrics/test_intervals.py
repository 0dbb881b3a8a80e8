import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import beta, betabinom, binom, binomtest, norm

from benchmarks import coverage
from capcal_lib.errors import InputError
from capcal_lib.metrics import binomial_interval, compare, coverage_probability, mean_interval

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
        np.testing.assert_allclose(
            limits, expected, rtol=0, atol=1e-8 if name == "exact" else 1e-14
        )


@pytest.mark.parametrize("c", [1, 3, 9])
def test_jeffreys_leaves_equal_tails_of_the_posterior(c):
    low, high = binomial_interval([c], [10], level=0.9)[0]
    posterior = beta(c + 0.5, 10 - c + 0.5)
    assert posterior.cdf(low) == pytest.approx(0.05, abs=1e-12)
    assert posterior.sf(high) == pytest.approx(0.05, abs=1e-12)


def test_clopper_pearson_turns_the_exact_tests_round():
    low, high = binomial_interval([3], [10], method="clopper-pearson")[0]
    assert low == pytest.approx(brentq(lambda mu: binom.sf(2, 10, mu) - 0.025, 1e-9, 0.9), abs=1e-9)
    assert high == pytest.approx(
        brentq(lambda mu: binom.cdf(3, 10, mu) - 0.025, 0.1, 1 - 1e-9), abs=1e-9
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

TERMS = rng(5).random(40)
LABELS = [f"subject {label}" for label in rng(6).integers(12, size=40)]


def naive_studentised(terms, seed, clusters=None, resamples=10_000):
    """One resample at a time, drawn clusters listed; the ratio of sums and its linearised error."""
    generator = rng(seed)
    labels = range(len(terms)) if clusters is None else clusters
    groups = [
        [t for t, at in zip(terms, labels, strict=True) if at == want]
        for want in dict.fromkeys(labels)
    ]

    def mean_and_error(drawn):
        sizes = np.array([len(group) for group in drawn])
        mean = sum(map(sum, drawn)) / sizes.sum()
        residuals = np.array([sum(group) for group in drawn]) - mean * sizes
        return mean, math.sqrt(
            len(drawn) / (len(drawn) - 1) * (residuals @ residuals)
        ) / sizes.sum()

    mean, error = mean_and_error(groups)
    units = len(groups)
    drawn = (
        mean_and_error([groups[at] for at in generator.integers(units, size=units)])
        for _ in range(resamples)
    )
    t = [(each - mean) / spread for each, spread in drawn]
    below, above = np.quantile(t, [0.025, 0.975], method="closest_observation")
    return mean, mean - above * error, mean - below * error


@pytest.mark.parametrize("clusters", [None, LABELS])
def test_few_questions_have_studentised_limits(clusters):
    found = mean_interval(TERMS, rng=rng(1), clusters=clusters)
    assert found[:3] == pytest.approx(naive_studentised(TERMS, 1, clusters), abs=1e-9)
    assert found == mean_interval(TERMS, seed=1, clusters=clusters)


def test_many_questions_have_limits_that_halls_transformation_makes_normal():
    terms = rng(3).exponential(size=4000) / 10
    mean, error = terms.mean(), terms.std(ddof=1) / math.sqrt(4000)
    skewness = ((terms - mean) ** 3).mean() / terms.std() ** 3 / math.sqrt(4000)
    for limit, z in zip(mean_interval(terms, rng=rng())[1:3], [1.959964, -1.959964], strict=True):
        t = (mean - limit) / error
        assert t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6 == pytest.approx(
            z, abs=1e-6
        )
    resampled = mean_interval(terms[:999], rng=rng())
    again = mean_interval(np.append(terms[:999], terms[:999].mean()), rng=rng())
    np.testing.assert_allclose(resampled[:3], again[:3], atol=0.05 * (again.high - again.low))


def test_a_million_questions_need_no_resampling():
    terms = np.tile(rng(2).random(1000), 1000)
    found = mean_interval(terms, rng=rng())
    assert found[1:3] == pytest.approx(
        norm.interval(0.95, terms.mean(), terms.std() / 1000), abs=1e-6
    )


@pytest.mark.parametrize("n", [2, 30, 5000])
def test_equal_terms_have_the_limit_of_jeffreys(n):
    limits = binomial_interval([0, n], n)
    assert mean_interval(np.zeros(n))[:3] == pytest.approx((0, *limits[0]))
    assert mean_interval(np.ones(n))[:3] == pytest.approx((1, *limits[1]))
    unseen = limits[0, 1]
    assert mean_interval([0.3] * n)[:3] == pytest.approx(
        (0.3, 0.3 - 0.3 * unseen, 0.3 + 0.7 * unseen)
    )
    assert mean_interval([-0.1] * n)[:3] == pytest.approx(
        (-0.1, -0.1 - 0.9 * unseen, -0.1 + 1.1 * unseen)
    )


def test_limits_reach_no_further_than_unseen_questions_can_take_them():
    for gross in (1, 2, 3):
        interval = mean_interval(np.r_[np.zeros(30 - gross), np.ones(gross)])
        assert interval.few
        seen_and_one_more = binomial_interval([gross + 1], 31, method="clopper-pearson")[0, 1]
        assert interval.estimate < interval.high < seen_and_one_more
        assert 0 <= interval.low < interval.estimate


@pytest.mark.parametrize(("n", "gross"), [(30, 1), (30, 2), (60, 3), (200, 2), (200, 3), (5000, 4)])
def test_rare_gross_misses_are_few(n, gross):
    assert mean_interval(np.r_[rng(1).random(n - gross) / 50, np.full(gross, 0.95)]).few


def test_a_mean_that_many_questions_carry_is_not_of_few():
    for n in (30, 100, 5000):
        assert not mean_interval(rng(n).random(n)).few


@pytest.mark.parametrize("n", [30, 100])
@pytest.mark.parametrize("name", coverage.WORLDS)
def test_the_interval_holds_the_score_of_all_questions_like_these(name, n, monkeypatch):
    monkeypatch.setattr("capcal_lib.metrics.intervals.RESAMPLES", 1000)
    held, _ = coverage.coverage(name, n, 250)
    assert held > 0.93 - 0.02  # with the error of 250 runs


def test_where_the_terms_fill_their_range_the_unseen_adds_nothing():
    terms = rng(3).random(40) * 0.4
    error = terms.std(ddof=1) / math.sqrt(40)
    found = mean_interval(terms, bounds=(-1, 1))
    assert found.high - found.low < 2 * 2.1 * error
    close = mean_interval(0.2 + (terms - terms.mean()) / 1000, bounds=(-1, 1))
    share = beta(0.5, 40.5).ppf(0.975)
    assert close.low == pytest.approx(0.2 - 1.2 * share, rel=1e-3)
    assert close.high == pytest.approx(0.2 + 0.8 * share, rel=1e-3)


@pytest.mark.parametrize("n", [20, 2000])
def test_no_limit_lies_where_no_mean_can(n):
    terms = 1 / 3 - 0.02 * (np.arange(n) < 3)
    assert mean_interval(terms, bounds=(1 / 12, 1 / 3)).high <= 1 / 3
    assert mean_interval(terms).high > 1 / 3
    assert mean_interval(-0.01 * terms, bounds=(0, 1)).low == pytest.approx(-0.01 * terms.mean())
    tokens = 300 + 10 * rng(1).random(n)
    low, high = mean_interval(tokens)[1:3]
    assert tokens.min() <= low < tokens.mean() < high < tokens.max()


def test_missing_terms_are_left_out():
    gaps, labels = (
        np.insert(TERMS, [3, 20], np.nan),
        np.insert(np.array(LABELS, object), [3, 20], "of nobody"),
    )
    assert mean_interval(gaps, rng=rng(1)) == mean_interval(TERMS, rng=rng(1))
    expected = mean_interval(TERMS, rng=rng(1), clusters=np.unique(LABELS, return_inverse=True)[1])
    assert mean_interval(gaps, rng=rng(1), clusters=labels) == pytest.approx(expected)
    assert np.isnan(mean_interval([np.nan, np.nan])[:3]).all()


@pytest.mark.parametrize(
    ("terms", "clusters"), [([0.3], None), ([0.2, 0.4], ["algebra", "algebra"])]
)
def test_a_single_unit_has_no_known_limits(terms, clusters):
    interval = mean_interval(terms, rng=rng(), clusters=clusters)
    assert interval.estimate == pytest.approx(0.3)
    assert np.isnan(interval[1:3]).all()


@pytest.mark.parametrize("n", [40, 3000])
def test_the_interval_mirrors_follows_the_seed_and_does_not_see_order_or_labels(n):
    terms, labels = rng(5).random(n) - 0.5, rng(6).integers(n // 3, size=n)
    first = mean_interval(terms, rng=rng(1), clusters=labels)
    width = first.high - first.low
    assert first == mean_interval(terms, rng=rng(1), clusters=labels)
    assert first == pytest.approx(
        mean_interval(terms, rng=rng(1), clusters=[f"s{n - each:05}" for each in labels]),
        abs=0.03 * width,
    )
    shuffled = rng(2).permutation(n)
    assert first == pytest.approx(
        mean_interval(terms[shuffled], rng=rng(1), clusters=labels[shuffled]), abs=0.03 * width
    )
    mirrored = mean_interval(-terms, rng=rng(1), clusters=labels)
    assert first == pytest.approx(
        (-mirrored.estimate, -mirrored.high, -mirrored.low, mirrored.few), abs=0.01 * width
    )


def test_a_seed_draws_what_its_generator_draws_whatever_was_drawn_before():
    terms = rng(4).random(50)
    by_generator = mean_interval(terms, rng=rng(3))
    assert mean_interval(terms, seed=3) == by_generator
    assert mean_interval(terms, seed=4) != by_generator
    assert mean_interval(terms[:49], seed=3) == mean_interval(terms[:49], rng=rng(3))
    assert mean_interval(terms, seed=3) == by_generator


def test_clusters_that_agree_within_widen_the_interval():
    terms, labels = np.repeat(rng(4).random(20), 10), np.repeat(np.arange(20), 10)
    alone, together = (
        mean_interval(terms, rng=rng(1), clusters=clusters) for clusters in (None, labels)
    )
    assert together.estimate == pytest.approx(alone.estimate)
    assert (together.high - together.low) > 2.5 * (
        alone.high - alone.low
    )  # sqrt(10), in expectation
    assert mean_interval(TERMS, rng=rng(1), clusters=range(40)) == pytest.approx(
        mean_interval(TERMS, rng=rng(1))
    )


def test_series_of_terms_and_clusters_are_aligned():
    terms, labels = pd.Series(TERMS), pd.Series(LABELS)
    expected = mean_interval(TERMS, rng=rng(), clusters=LABELS)
    assert (
        mean_interval(terms, rng=rng(), clusters=labels.sample(frac=1, random_state=1)) == expected
    )
    with pytest.raises(InputError, match="the index of clusters is not that of terms"):
        mean_interval(terms, rng=rng(), clusters=labels.set_axis(range(1, 41)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"terms": [np.inf, 0.1]}, "row 0: term is inf, but must be finite"),
        ({"terms": []}, "term is empty"),
        (
            {"clusters": ["a"]},
            "equally many rows are needed, one per question; terms has 2, clusters has 1",
        ),
        ({"clusters": ["a", None]}, "row 1: the cluster label is missing"),
        ({"clusters": [float("nan"), "a"]}, "row 0: the cluster label is missing"),
        (
            {"clusters": "ab"},
            "clusters must be one-dimensional, one label per question; got shape ()",
        ),
        (
            {"rng": 0},
            "rng must be a numpy random generator, such as np.random.default_rng(0); got 0",
        ),
        ({"rng": None, "seed": -1}, "seed must be a whole number"),
        ({"bounds": (1, 0)}, "bounds must be a lower and a higher number; got (1, 0)"),
        ({"level": 1.5}, "level must lie between 0 and 1"),
    ],
)
def test_bad_means_are_refused(options, message):
    with pytest.raises(InputError) as error:
        mean_interval(**{"terms": [0.1, 0.2], "rng": rng(), **options})
    assert str(error.value).startswith(message)


# Methods


def test_a_comparison_has_the_intervals_of_the_means_and_shares_its_questions():
    frame = pd.DataFrame(
        {"a": TERMS, "b": rng(8).random(40), "none": np.nan}, index=[f"q{at}" for at in range(40)]
    )
    frame.loc["q3", "b"] = np.nan
    found = compare(frame, rng=rng(1))
    for name in "ab":
        expected = mean_interval(frame[name].drop("q3"), rng=rng(1))
        assert found.loc[name, ["estimate", "low", "high"]].tolist() == pytest.approx(
            expected[:3], abs=0.01
        )
    assert found.loc["none", ["estimate", "low", "high"]].isna().all()
    assert found.index.tolist() == ["a", "b", "none"]
    assert found["may_be_best"].tolist() == [True, True, False]
    assert found["may_be_best"].dtype == bool


def test_what_is_a_trifle_worse_everywhere_may_be_best_among_few_questions():
    """Unseen questions may make up for it."""
    frame = pd.DataFrame({"a": rng(1).random(40)})
    frame["b"] = frame["a"] + 0.01
    assert compare(frame)["may_be_best"].all()
    assert compare(pd.concat([frame] * 20))["may_be_best"].tolist() == [True, False]


def test_the_lowest_is_looked_for_on_common_questions():
    """On its own questions, which are easier, the worse method has the lower mean."""
    good = np.r_[np.full(50, 0.1), np.full(50, 0.5)] + rng(1).random(100) / 20
    frame = pd.DataFrame(
        {"good": good, "worse": np.where(np.arange(100) < 50, good + 0.05, np.nan)}
    )
    frame.loc[0, "worse"] += 0.01  # the difference is not the same everywhere
    assert frame["worse"].mean() < frame["good"].mean()
    assert compare(frame, rng=rng())["may_be_best"].tolist() == [True, False]


@pytest.mark.parametrize("n", [40, 3000])
def test_equals_may_all_be_best_and_what_is_worse_everywhere_may_not(n):
    terms = rng(1).random(n)
    frame = pd.DataFrame(
        {
            "a": terms,
            "same": terms,
            "worse": terms + 0.4,
            "noisy": terms + rng(2).normal(0, 0.1, n),
        }
    )
    assert compare(frame, rng=rng())["may_be_best"].tolist()[:3] == [True, True, False]
    back = compare(frame[frame.columns[::-1]], rng=rng())["may_be_best"]
    assert back[frame.columns].tolist() == compare(frame, rng=rng())["may_be_best"].tolist()
    grouped = compare(frame, rng=rng(), clusters=np.arange(n) // 4)
    assert grouped["may_be_best"].tolist()[:3] == [True, True, False]


@pytest.mark.parametrize("n", [30, 200, 2000])
def test_a_true_best_is_hardly_ever_excluded_among_nine_equals(n, monkeypatch):
    monkeypatch.setattr("capcal_lib.metrics.intervals.RESAMPLES", 1000)
    generator, excluded = rng(n), []
    for _ in range(60):
        mu = generator.beta(0.3, 0.3, n)
        s = np.clip(mu[:, None] + generator.normal(0, 0.25, (n, 9)), 0, 1)
        terms = pd.DataFrame((s - generator.binomial(100, mu)[:, None] / 100) ** 2)
        excluded.append(1 - compare(terms, rng=generator)["may_be_best"].mean())
    assert 0.02 < np.mean(excluded) < 0.09  # near 0.05 to 0.07 for every one of the nine


def test_the_pages_comparison_of_two_is_a_one_sided_test():
    """Two methods: the worse is excluded where the lower limit of its one-sided interval is above
    0.
    """
    better = rng(1).random(5000)
    for shift, excluded in [(1.5, False), (1.8, True)]:
        noise = rng(2).normal(0, 1, 5000)
        noise += shift * noise.std(ddof=1) / math.sqrt(5000) - noise.mean()
        frame = pd.DataFrame({"better": better, "worse": better + noise})
        assert compare(frame, rng=rng())["may_be_best"].tolist() == [True, not excluded]


def test_little_or_nothing_in_common():
    nothing = compare(pd.DataFrame({"a": [0.1, np.nan], "b": [np.nan, 0.2]}), rng=rng())
    assert nothing[["estimate", "low", "high"]].isna().all(axis=None)
    assert not nothing["may_be_best"].any()
    single = compare(pd.DataFrame({"a": [0.1, 0.4], "b": [0.3, np.nan]}), rng=rng())
    assert single["estimate"].tolist() == [0.1, 0.3]
    assert single["low"].isna().all()
    assert single["may_be_best"].all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"terms": np.zeros((3, 2))},
            "terms must be a DataFrame with a row a question and a column a method",
        ),
        ({"terms": pd.DataFrame()}, "terms must be a DataFrame"),
        ({"terms": pd.DataFrame({"mine": ["low"]})}, "row 0: mine is 'low', not a number"),
        (
            {"terms": pd.DataFrame({"mine": [0.1, np.inf]})},
            "row 1: mine is inf, but must be finite",
        ),
        ({"rng": 3}, "rng must be a numpy random generator"),
        ({"level": 95}, "level must lie between 0 and 1"),
        ({"clusters": ["a"]}, "equally many rows are needed"),
    ],
)
def test_bad_comparisons_are_refused(options, message):
    with pytest.raises(InputError) as error:
        compare(**{"terms": pd.DataFrame({"a": [0.1, 0.2]}), "rng": rng(), **options})
    assert str(error.value).startswith(message)


# Coverage of binomial intervals


@pytest.mark.parametrize("method", METHODS)
def test_coverage_is_the_chance_of_the_counts_whose_interval_holds_mu(method):
    for k, mu in [(1, 0.3), (10, 0.04), (100, 0.5)]:
        naive = 0.0
        for c in range(k + 1):
            low, high = binomial_interval([c], [k], method=method, level=0.9)[0]
            naive += math.comb(k, c) * mu**c * (1 - mu) ** (k - c) * (low <= mu <= high)
        assert coverage_probability([mu], k, method=method, level=0.9)[0] == pytest.approx(
            naive, abs=1e-12
        )


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
    wald, jeffreys = (
        coverage_probability([0.001, 0.999], 100, method=one) for one in ("wald", "jeffreys")
    )
    assert (wald < 0.1).all()
    assert (jeffreys > 0.9).all()
    assert wald[0] == pytest.approx(wald[1], abs=1e-9)


def test_coverage_refuses_what_is_no_probability():
    with pytest.raises(InputError, match=r"row 1: confidence is 1\.5"):
        coverage_probability([0.5, 1.5], 10)
    with pytest.raises(InputError, match="k_eval must be a whole number"):
        coverage_probability([0.5], 0)
