from math import comb

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import coverage
from capcal_lib.errors import InputError
from capcal_lib.metrics import (
    adjusted,
    bounds_over_constant,
    compare_counts,
    gains,
    judge_gain,
    may_be_best,
    mean_interval,
    questions_needed,
)


def rng(seed=0):
    return np.random.default_rng(seed)


def frame(n=60):
    rival = rng(1).random(n)
    return pd.DataFrame(
        {
            "good": rival - 0.2 + rng(2).normal(0, 0.1, n),
            "rival": rival,
            "same": rival + rng(3).normal(0, 0.1, n),
            "bad": rival + 0.2 + rng(4).normal(0, 0.1, n),
        },
        index=[f"q{at}" for at in range(n)],
    )


def test_a_gain_is_the_interval_of_the_paired_difference():
    terms = frame()
    found = gains(terms, "rival")
    assert found.index.tolist() == ["good", "same", "bad"]
    for name in found.index:
        expected = mean_interval(terms["rival"] - terms[name], bounds=(-1, 1))
        assert found.loc[name, ["estimate", "low", "high"]].tolist() == list(expected)
    assert found["verdict"].tolist() == ["better", "inconclusive", "worse"]


@pytest.mark.parametrize("n", [8, 60])
def test_p_is_the_level_at_which_the_interval_leaves_out_zero(n):
    terms = frame(n)
    for name, row in gains(terms, "rival").iterrows():
        for factor, inside in ((0.97, True), (1.03, False)):
            if 1e-11 < row["p"] * factor < 0.9:
                gain = terms["rival"] - terms[name]
                found = mean_interval(gain, level=1 - row["p"] * factor, bounds=(-1, 1))
                assert (found.low <= 0 <= found.high) == inside, (name, row["p"])


def test_a_gain_whose_bounds_are_narrower_has_a_narrower_interval():
    terms = frame()
    for name, row in gains(terms, "rival", bounds=(-0.75, 0.25)).iterrows():
        expected = mean_interval(terms["rival"] - terms[name], bounds=(-0.75, 0.25))
        assert row[["estimate", "low", "high"]].tolist() == list(expected)
        wide = gains(terms, "rival").loc[name]
        assert row["high"] - row["low"] < wide["high"] - wide["low"]
    alike = pd.DataFrame({"rival": [0.02] * 60, "own": 0.0})
    assert gains(alike, "rival").loc["own", "verdict"] == "inconclusive"
    assert gains(alike, "rival", bounds=(-0.05, 0.05)).loc["own", "verdict"] == "better"


def test_a_gain_by_question_is_judged_as_the_terms_that_it_comes_from():
    terms = frame()
    groups = np.arange(len(terms)) // 3
    for name in terms.columns.drop("rival"):
        gain = terms["rival"] - terms[name]
        test = {"clusters": groups, "bounds": (-1, 0.5)}
        row = judge_gain(gain, **test)
        expected = gains(terms[["rival", name]], "rival", **test).loc[name]
        pd.testing.assert_series_equal(row, expected, check_names=False)
    assert np.isnan(judge_gain([0.5, np.nan])["p"]), "one question alone tells nothing"


def test_bounds_over_constants_are_those_of_all_confidences_and_accuracies():
    mu, s = np.meshgrid(np.linspace(0, 1, 101), np.linspace(0, 1, 101))
    for constants in ([0.0], [0.3], [0.81], [0.2, 0.3], [0.3, 0.9]):
        gain = np.array([(constant - mu) ** 2 - (s - mu) ** 2 for constant in constants])
        assert bounds_over_constant(constants) == pytest.approx((gain.min(), gain.max()))


def test_studies_of_the_size_needed_find_the_gain_in_four_of_five():
    """The half question is no chance, so where it weighs most a few questions less would do."""
    generator, bounds = rng(0), (-0.75, 0.25)
    pilot = generator.normal(0, 1, 40)
    pilot = 0.02 + 0.05 * (pilot - pilot.mean()) / pilot.std(ddof=1)
    needed = questions_needed(pilot, bounds=bounds)
    for size, least, most in ((needed, 0.72, 1), (0.7 * needed, 0, 0.78)):
        studies = generator.normal(0.02, 0.05, (200, round(size)))
        found = [judge_gain(study, bounds=bounds)["verdict"] == "better" for study in studies]
        assert least < np.mean(found) < most


def test_questions_needed_by_hand():
    """No spread: N g = 2.8; no half question to speak of: N = (2.8 sd / g)^2."""
    assert questions_needed([0.04] * 20) == pytest.approx(70)
    wide = np.array([1.0, -0.9] * 50) * 100
    needed = (2.8 * wide.std(ddof=1) / wide.mean()) ** 2
    assert np.isnan(questions_needed(wide)), "the gain is smaller than its standard error"
    many = np.tile(wide, 50)
    assert questions_needed(many) == pytest.approx(needed, rel=0.01)
    assert questions_needed(-many) == pytest.approx(questions_needed(many))
    assert np.isnan(questions_needed([0.0] * 20))
    assert np.isnan(questions_needed([np.nan, np.nan]))
    assert questions_needed([0.04, np.nan] * 20) == questions_needed([0.04] * 20)


def test_clusters_that_agree_within_need_more_questions():
    values, labels = np.repeat(0.02 + rng(3).normal(0, 0.1, 60), 5), np.repeat(np.arange(60), 5)
    alone, together = questions_needed(values), questions_needed(values, clusters=labels)
    assert 3.5 * alone < together < 5.5 * alone


def test_each_gain_has_the_questions_that_both_have():
    terms = frame()
    terms.loc["q3":"q9", "good"] = np.nan
    terms["one"] = np.where(np.arange(60) == 4, 0.1, np.nan)
    terms["none"] = np.nan
    found = gains(terms, "rival", adjust="holm")
    alone = gains(terms.drop(index=[f"q{at}" for at in range(3, 10)]), "rival")
    assert found.loc["good", "low"] == alone.loc["good", "low"]
    assert found.loc[["one", "none"], ["low", "p"]].isna().all(axis=None)
    assert found.loc[["one", "none"], "verdict"].tolist() == ["inconclusive"] * 2


def test_adjusted_p_values_of_holm_and_bonferroni_by_hand():
    p = np.array([0.01, np.nan, 0.04, 0.03, 0.9])
    assert adjusted(p, "none").tolist()[:1] == [0.01]
    assert adjusted(p, "bonferroni")[[0, 2, 3, 4]] == pytest.approx([0.04, 0.16, 0.12, 1])
    assert adjusted(p, "holm")[[0, 2, 3, 4]] == pytest.approx([0.04, 0.09, 0.09, 0.9])
    assert np.isnan(adjusted(p, "holm")[1])


def test_clusters_are_aligned_and_widen_a_gain():
    terms = frame()
    labels = pd.Series(np.arange(60) // 6, terms.index)
    one, other = (gains(terms, "rival", clusters=each) for each in (labels, labels.sample(frac=1)))
    pd.testing.assert_frame_equal(one, other)
    assert (one["low"] != gains(terms, "rival")["low"]).all()


SEVERE = ["100 constants, N=30, 3% solvable", "20 tails of 2%, N=100, sd .03"]


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(name, marks=[] if name in SEVERE else pytest.mark.slow)
        for name in coverage.FAMILIES
    ],
)
def test_equal_methods_seldom_have_any_verdict_after_holm(family):
    assert coverage.verdicts(coverage.FAMILIES[family], 40) <= 0.05


@settings(max_examples=25, deadline=None)
@given(
    differences=st.lists(st.floats(-1, 1), min_size=2, max_size=30),
    level=st.floats(0.01, 0.9999),
)
def test_verdict_interval_and_p_always_agree(differences, level):
    terms = pd.DataFrame({"rival": 0.0, "own": differences})
    row = gains(terms, "rival", level=level).loc["own"]
    inside = row["low"] <= 0 <= row["high"]
    if abs(row["p"] - (1 - level)) > 1e-9:
        assert inside == (row["p"] > 1 - level) == (row["verdict"] == "inconclusive")


def test_bad_gains_are_refused():
    with pytest.raises(InputError, match="unknown rival 'other'; known: bad, good, rival, same"):
        gains(frame(), "other")
    with pytest.raises(InputError, match="unknown adjustment 'fdr'"):
        gains(frame(), "rival", adjust="fdr")
    with pytest.raises(InputError, match="level must lie between 0 and 1"):
        gains(frame(), "rival", level=95)
    with pytest.raises(InputError, match="bounds must be a lower and a higher number"):
        gains(frame(), "rival", bounds=(1, -1))


def test_a_partial_method_excludes_others_and_is_excluded() -> None:
    rng = np.random.default_rng(0)
    good, bad = rng.random(300) / 10, 0.5 + rng.random(300) / 10
    gap = np.where(np.arange(300) < 250, 0, np.nan)
    assert may_be_best(pd.DataFrame({"good": good, "bad": bad + gap})) == {"good"}
    assert may_be_best(pd.DataFrame({"good": good + gap, "bad": bad})) == {"good"}
    assert may_be_best(pd.DataFrame({"good": good + gap, "bad": bad + gap[::-1]})) == {"good"}
    assert may_be_best(pd.DataFrame({"one": good, "other": np.nan})) == {"one"}


def test_counts_are_compared_by_fishers_test_and_judged_together() -> None:
    """By the hypergeometric probabilities of all tables with the same margins."""
    a, n, b, m = 7, 10, 2, 12
    weights = {i: comb(n, i) * comb(m, a + b - i) for i in range(a + b + 1)}
    as_rare = sum(weight for weight in weights.values() if weight <= weights[a])
    table = compare_counts([a, 5], [n, 10], [b, 5], [m, 10])
    assert table["p"].tolist() == pytest.approx([as_rare / comb(n + m, a + b), 1])
    assert table["p (Holm)"].tolist() == pytest.approx([2 * table["p"][0], 1])
