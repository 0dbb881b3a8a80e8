import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications import (
    abstaining_gains,
    risk_area_bounds,
    risk_area_terms,
    risk_coverage,
)
from capcal_lib.metrics import adjusted, judge_gain, mean_interval
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results import load_results
from capcal_lib.results.uses import compare_use
from capcal_lib.studies.selective_prediction import (
    AT_RANDOM,
    area_terms,
    ranking_confidences,
    risk_curves,
    score_areas,
    use_thresholds,
)


def made(questions=60, seed=0):
    """Results of a data set whose questions differ, and of one that is never solved."""
    rng = np.random.default_rng(seed)
    parts = {}
    for dataset, most in (("gsm8k", 1.0), ("math500", 0.0)):
        mu = rng.random(questions) * most
        columns = {
            "correct": rng.binomial(50, mu),
            "total": 50,
            "P(True)": rng.random(questions),
            "Probe (GSM8K)": (mu + rng.normal(0, 0.05, questions)).clip(0, 1),
            "Probe (MATH)": rng.random(questions),
        }
        names = [f"{dataset}/{place}" for place in range(questions)]
        parts[dataset] = pd.DataFrame(columns, pd.Index(names, name="question_id"))
    return pd.concat(parts, names=["dataset"])


def test_of_probes_the_nearest_ranks_and_what_was_not_stated_is_one_half():
    results = made()
    results.loc[("gsm8k", "gsm8k/3"), "P(True)"] = np.nan
    results.loc[("gsm8k", "gsm8k/4"), "total"] = 1
    ranked = ranking_confidences(results)
    assert ranked.loc[("gsm8k", "gsm8k/3"), "P(True)"] == 0.5
    assert ("gsm8k", "gsm8k/4") not in ranked.index
    for dataset, probe in (("gsm8k", "Probe (GSM8K)"), ("math500", "Probe (MATH)")):
        expected = results.loc[dataset, probe].reindex(ranked.loc[dataset].index)
        assert ranked.loc[dataset, "Probe"].tolist() == expected.tolist()


def test_a_data_set_that_was_not_asked_has_no_half():
    results = made()
    results.loc["math500", "P(True)"] = np.nan
    assert ranking_confidences(results).loc["math500", "P(True)"].isna().all()


def test_terms_are_those_of_each_data_set_alone():
    confidences = ranking_confidences(made())
    terms = area_terms(confidences)
    own = confidences.loc["gsm8k"]
    assert terms.loc["gsm8k", AT_RANDOM].tolist() == pytest.approx(1 - own["correct"] / 50)
    expected = risk_area_terms(own["Probe"], own["correct"], own["total"])
    assert terms.loc["gsm8k", "Probe"].tolist() == pytest.approx(expected)


def test_the_five_probes_of_the_papers_recipe_have_their_mean():
    results = made()
    five = results.rename(columns={"Probe (GSM8K)": "Probe (GSM8K) [0]"})
    five["Probe (GSM8K) [1]"] = 0.5
    own = ranking_confidences(five).loc["gsm8k"]
    alone = [risk_area_terms(own[f"Probe [{n}]"], own["correct"], 50) for n in (0, 1)]
    terms = area_terms(ranking_confidences(five)).loc["gsm8k", "Probe"]
    assert terms.tolist() == pytest.approx(np.mean(alone, axis=0))


def test_what_is_never_solved_is_not_compared():
    judged = compare_use(made(), "Abstaining", {})
    assert set(judged["dataset"]) == {"gsm8k"}
    assert judged["p (Holm)"].tolist() == adjusted(judged["p"].to_numpy(), "holm").tolist()
    verdicts = judged.set_index("method")["verdict"]
    assert verdicts["Probe"] == "better"
    assert verdicts["P(True)"] == "inconclusive"
    assert compare_use(made().loc[["math500"]], "Abstaining", {}).empty
    assert compare_use(made()[["correct", "total"]], "Abstaining", {}).empty


def test_an_area_is_scored_on_the_questions_that_all_have():
    confidences = ranking_confidences(made())
    half = confidences.index[:30]
    confidences.loc[half, "Probe"] = np.nan
    areas = score_areas(confidences).set_index(["dataset", "method"])
    assert areas.loc[("gsm8k", AT_RANDOM), "questions"] == 30
    best = areas.loc["gsm8k", "may_be_best"]
    assert best.dropna().to_dict() == {"P(True)": False, "Probe": True}
    others = confidences.loc["gsm8k"].iloc[30:]
    for method in ("P(True)", "Probe"):
        curve = risk_coverage(others[method], others["correct"], others["total"])
        found = areas.loc[("gsm8k", method), "brier"]
        assert found == pytest.approx(curve["risk"].mean()), "an area of these questions alone"
    assert areas["varies"].groupby(level="dataset").all().to_dict() == {
        "gsm8k": True,
        "math500": False,
    }


def test_a_method_that_knows_one_question_does_not_take_the_areas_of_the_others() -> None:
    results = made()
    areas = area_terms(ranking_confidences(results))
    results["mine"] = np.nan
    results.loc[("gsm8k", "gsm8k/7"), "mine"] = 0.9
    confidences = ranking_confidences(results)
    confidences["mine"] = results["mine"]  # as where it is not asked for
    pd.testing.assert_frame_equal(area_terms(confidences)[[*areas]], areas)


def solved_at_times(questions, share, rng):
    """Results of a model that solves few questions, with a confidence that knows a little."""
    solved = rng.random(questions) < share
    names = pd.Index([f"simpleqa/{place}" for place in range(questions)], name="question_id")
    columns = {
        "correct": 10 * solved,
        "total": 10,
        "P(True)": 1 / (1 + np.exp(-rng.normal(size=questions) - solved)),
    }
    return pd.concat({"simpleqa": pd.DataFrame(columns, names)}, names=["dataset"])


@pytest.mark.parametrize(("questions", "share"), [(100, 0.01), (100, 0.03), (30, 0.05)])
def test_the_interval_of_an_area_holds_it_where_little_is_solved(questions, share):
    """The least and the largest term seen would hold it in .60, .83 and .68 of studies."""
    rng = np.random.default_rng(questions)
    many = solved_at_times(200_000, share, rng)
    truth = risk_area_terms(many["P(True)"], many["correct"], many["total"]).mean()
    held = []
    for _ in range(150):
        areas = score_areas(solved_at_times(questions, share, rng)).set_index("method")
        low, high = areas.loc["P(True)", ["low", "high"]]
        held.append(low <= truth <= high)
        assert 0 <= low <= high <= 1
    assert np.mean(held) > 0.95


def test_an_area_of_a_constant_is_as_wide_as_any_question_can_make_it():
    """All wrong: the terms are 1, and half a question at either bound of the area is all else."""
    results = made().loc[["math500"]].drop(columns=["Probe (GSM8K)", "Probe (MATH)"])
    areas = score_areas(ranking_confidences(results)).set_index("method")
    least, most = risk_area_bounds(60)
    expected = mean_interval(np.ones(60), bounds=(least, 1 + most))
    assert areas.loc["P(True)", "low"] == pytest.approx(expected.low)
    assert areas.loc["P(True)", "high"] == 1
    at_random = mean_interval(np.ones(60), bounds=(0, 1))
    assert areas.loc[AT_RANDOM, "low"] == pytest.approx(at_random.low)


def test_curves_are_named_by_their_probe():
    results = made()
    curves = risk_curves(results, "math500", np.random.default_rng(0))
    assert [*curves["method"].unique()] == ["P(True)", "Probe (MATH)", "Honest oracle"]
    own = results.loc["gsm8k"]
    curves = risk_curves(results, "gsm8k", np.random.default_rng(0))
    drawn = curves[curves["method"] == "Probe (GSM8K)"]
    expected = risk_coverage(own["Probe (GSM8K)"], own["correct"], own["total"])
    assert drawn["risk"].tolist() == pytest.approx(expected["risk"].tolist())


def test_a_threshold_sees_one_half_and_answers_the_other():
    confidences = ranking_confidences(made()).loc[["gsm8k"]]
    seen = []

    def none_or_all(confidence, correct, total, risk):
        seen.append(len(confidence))
        return -np.inf if risk == 1 else np.inf

    rng = np.random.default_rng(0)
    shares = use_thresholds(confidences, none_or_all, risk=1, rng=rng)
    assert set(shares["method"]) == {"P(True)", "Probe", AT_RANDOM}
    assert set(seen) == {30}
    assert shares["answered"].tolist() == [1, 1, 1]
    wrong = 1 - (confidences["correct"] / 50).mean()
    assert shares["wrong"].tolist() == pytest.approx([wrong] * 3, abs=0.05)
    shares = use_thresholds(confidences, none_or_all, risk=0, rng=rng)
    assert shares[["answered", "wrong"]].to_numpy().tolist() == [[0, 0]] * 3


def test_methods_on_unlike_questions_have_no_areas():
    confidences = ranking_confidences(made())
    confidences.loc[confidences.index[:30], "Probe"] = np.nan
    confidences.loc[confidences.index[30:60], "P(True)"] = np.nan
    assert score_areas(confidences.loc[["gsm8k"]]).empty


def test_votes_are_compared_with_the_random_order_of_the_samples_that_judge_them():
    results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mini-exam"])
    compared = compare_use(results, "Abstaining", {}).set_index("method")
    votes = results[["Response consistency", "votes correct", "votes total"]].dropna()
    gain = abstaining_gains(*(votes[name] for name in votes))
    expected = judge_gain(gain, bounds=risk_area_bounds(len(gain)))
    row = compared.loc["Response consistency", ["estimate", "low", "high", "p"]]
    assert row.tolist() == pytest.approx(expected[["estimate", "low", "high", "p"]].tolist())


def test_votes_are_judged_by_the_other_samples():
    results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mini-exam"])
    confidences = ranking_confidences(results)
    terms = area_terms(confidences)["Response consistency"].dropna()
    votes = confidences.loc[terms.index]
    expected = 1 - (votes["votes correct"] / votes["votes total"]).mean()
    flat = votes.assign(**{"Response consistency": 0.5})
    assert area_terms(flat)["Response consistency"].mean() == pytest.approx(expected)
