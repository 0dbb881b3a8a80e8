import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications import pass_at_k, simulate_pass_at_k
from capcal_lib.metrics import capability_brier_terms
from capcal_lib.results import best_constant, compare_with_constant, score
from capcal_lib.studies.pass_at_k import (
    check_bands,
    compare_pass_at_k,
    curves_by_set,
    half_band,
    most_varied,
    oracle_errors,
    pass_at_k_curves,
    pass_at_k_errors,
    plug_in_errors,
    plug_in_errors_by_set,
    predict_pass_at_k,
    score_pass_at_k,
)

NU = pd.Series({"Probe (GSM8K)": 20.0, "Probe (MATH)": 20.0})
GSM8K = {"probe": "Probe (GSM8K)", "concentration": NU}


def made(total: int = 40, questions: int = 150, seed: int = 0) -> pd.DataFrame:
    """Results of two data sets: one whose questions differ much, with a probe that is right."""
    rng = np.random.default_rng(seed)
    parts = {}
    for dataset, spread, probe in (("gsm8k", 1.0, "Probe (GSM8K)"), ("math500", 0.4, "other")):
        mu = spread * rng.random(questions)
        columns = {"correct": rng.binomial(total, mu), "total": total, probe: mu, "P(True)": 0.9}
        parts[dataset] = pd.DataFrame(columns, index=[f"q{place}" for place in range(questions)])
    results = pd.concat(parts, names=["dataset", "question_id"])
    results["Best constant"] = best_constant(results)
    return results


def test_the_data_set_is_that_whose_questions_differ_most_among_those_with_a_probe() -> None:
    results = made()
    assert most_varied(results) == "gsm8k"
    of_math = results.rename(columns={"Probe (GSM8K)": "Probe (MATH)"})
    assert most_varied(of_math) == "gsm8k"  # no probe of its own on either
    of_math = results.rename(columns={"other": "Probe (MATH)"})
    assert most_varied(of_math) == "gsm8k"
    only = results.drop(columns="Probe (GSM8K)").rename(columns={"other": "Probe (MATH)"})
    assert most_varied(only) == "math500"
    few = of_math.copy()
    few.loc["gsm8k", "total"] = 20
    few["correct"] = few[["correct", "total"]].min(axis="columns")
    assert most_varied(few) == "math500"  # too few samples on the other


def test_few_samples_do_not_make_questions_differ_more() -> None:
    """Three fair coins a question vary more than shares of a hundred that really differ."""
    coins = {"correct": [0, 1, 1, 1, 2, 2, 2, 3] * 5, "total": 3}
    differ = {"correct": [30, 40, 60, 70] * 10, "total": 100}
    names = ["dataset", "question_id"]
    results = pd.concat(
        {"gsm8k": pd.DataFrame(coins), "math500": pd.DataFrame(differ)}, names=names
    )
    mu_hat = results["correct"] / results["total"]
    assert mu_hat.groupby("dataset").var().idxmax() == "gsm8k"
    assert most_varied(results) == "math500"


def test_a_data_set_with_one_question_is_chosen_where_there_is_no_other() -> None:
    results = made()
    one = results.loc[["math500"]].head(1)
    assert most_varied(one) == "math500"
    assert most_varied(pd.concat([one, results.loc[["gsm8k"]]])) == "gsm8k"


def test_predictions_are_those_of_each_method() -> None:
    subset = made().loc[["gsm8k"]]
    subset.loc[subset.index[0], "P(True)"] = np.nan
    predicted = predict_pass_at_k(subset, [1, 4], **GSM8K)
    assert [*predicted] == ["Best constant", "Probe, plug-in", "Probe, posterior", "P(True)"]
    s = subset["Probe (GSM8K)"].to_numpy()
    [plug_in], [posterior] = predicted["Probe, plug-in"], predicted["Probe, posterior"]
    assert plug_in[:, 1] == pytest.approx(1 - (1 - s) ** 4)
    expected = simulate_pass_at_k(s, [1, 4], concentration=20.0)
    assert posterior == pytest.approx(expected)
    assert predicted["P(True)"][0][0].tolist() == [0.5, 1 - 0.5**4]
    assert [*predict_pass_at_k(subset, [1])] == ["Best constant", "P(True)"]


def test_curves_are_means_and_the_band_is_around_the_plug_in() -> None:
    subset = made().loc[["gsm8k"]]
    predicted = predict_pass_at_k(subset, [1, 4], **GSM8K)
    curves = pass_at_k_curves(subset, predicted, [1, 4]).set_index(["method", "k"])
    actual = pass_at_k(subset["correct"], subset["total"], [4]).mean()
    assert curves.loc[("Actual", 4), "estimate"] == pytest.approx(actual)
    row = curves.loc[("Probe, plug-in", 4)]
    values = predicted["Probe, plug-in"][0][:, 1]
    half = 1.96 * sum(p * (1 - p) for p in values) ** 0.5 / len(values)
    assert row.tolist() == pytest.approx(
        [values.mean(), values.mean() - half, values.mean() + half]
    )
    assert curves["low"].notna().sum() == 2


def test_the_error_of_one_attempt_is_the_brier_term() -> None:
    subset = made().loc[["gsm8k"]]
    errors = pass_at_k_errors(subset, predict_pass_at_k(subset, [1, 32], **GSM8K), [1, 32])
    counts = subset["correct"], subset["total"]
    expected = capability_brier_terms(subset["Probe (GSM8K)"], *counts, corrected=True)
    assert errors[1]["Probe, plug-in"].to_numpy() == pytest.approx(expected)
    assert errors[32].isna().all(axis=None)  # which takes 64 samples


def test_an_oracle_of_half_the_samples_beats_a_constant() -> None:
    subset = made().loc[["gsm8k"]]
    ks = [1, 4]
    errors = pass_at_k_errors(subset, predict_pass_at_k(subset, ks, **GSM8K), ks)
    scored = score_pass_at_k(errors, oracle_errors(subset, ks))
    assert scored.index.unique("dataset").tolist() == [
        "pass@1, 150 questions",
        "pass@4, 150 questions",
    ]
    brier = scored["brier"].xs("pass@1, 150 questions")
    assert brier["Probe, plug-in"] < brier["Oracle CC"] < brier["Best constant"]
    mu = subset["correct"] / subset["total"]
    assert brier["Oracle RC"] == pytest.approx((mu * (1 - mu)).mean(), abs=0.03)
    baselines = ["Best constant", "Oracle CC", "Oracle RC"]
    assert scored.loc[("pass@1, 150 questions", baselines), "may_be_best"].isna().all()
    assert scored.loc[("pass@1, 150 questions", "Probe, plug-in"), "may_be_best"]
    assert not scored.loc[("pass@1, 150 questions", "P(True)"), "may_be_best"]


def test_an_oracle_of_fewer_questions_says_how_many() -> None:
    """At k = 4 a method needs 8 samples, and an oracle needs 8 in its half."""
    subset = made(total=14).loc[["gsm8k"]]
    subset.iloc[:100, subset.columns.get_loc("total")] = 16
    ks = [1, 4]
    errors = pass_at_k_errors(subset, predict_pass_at_k(subset, ks, **GSM8K), ks)
    questions = score_pass_at_k(errors, oracle_errors(subset, ks))["questions"]
    methods = ["Best constant", "Probe, posterior", "P(True)", "Oracle CC", "Oracle RC"]
    of_one, of_four = questions.xs("pass@1, 150 questions"), questions.xs("pass@4, 150 questions")
    assert of_one[methods].tolist() == [150] * 5
    assert of_four[methods].tolist() == [150] * 3 + [100] * 2


def test_at_one_attempt_the_constant_has_the_score_and_interval_of_the_main_table() -> None:
    subset = made(total=3, questions=20).loc[["gsm8k"]]
    errors = pass_at_k_errors(subset, predict_pass_at_k(subset, [1], **GSM8K), [1])
    limits = ["brier", "low", "high"]
    found = score_pass_at_k(errors, oracle_errors(subset, [1])).loc["pass@1, 20 questions"]
    expected = score(subset).loc[("gsm8k", "Best constant"), limits]
    assert found.loc["Best constant", limits].tolist() == pytest.approx(expected.tolist())


def test_in_sample_an_oracle_cannot_fail() -> None:
    subset = made().loc[["gsm8k"]]
    table = plug_in_errors(subset, predict_pass_at_k(subset, [1, 64], **GSM8K), [1, 64])
    assert [*table] == ["pass@1", "pass@64"]
    assert table.loc["Oracle CC (in sample)", "pass@1"] == pytest.approx(0)
    mu = subset["correct"] / subset["total"]
    expected = ((subset["Probe (GSM8K)"] - mu) ** 2).mean()
    assert table.loc["Probe, plug-in", "pass@1"] == pytest.approx(expected)
    assert table["pass@64"].isna().all()
    assert "Probe, posterior" not in table.index


def test_a_probe_that_is_right_is_judged_better() -> None:
    judged = compare_pass_at_k(made(), NU, k=4).set_index(["rival", "method"])
    assert judged["dataset"].unique().tolist() == ["gsm8k"]
    assert judged.loc[("Best constant", "Probe, plug-in"), "verdict"] == "better"
    assert len(judged) == 3
    assert compare_pass_at_k(made().drop(columns="Probe (GSM8K)"), NU).empty
    assert compare_pass_at_k(made(total=7), NU, k=4).empty
    assert len(compare_pass_at_k(made(total=8), NU, k=4)) == 3


def test_what_could_be_won_at_one_attempt_is_that_of_the_main_table() -> None:
    """On MATH-500 all questions but one have the same accuracy."""
    results = made(questions=40).rename(columns={"other": "Probe (MATH)"})
    results.loc["math500", "correct"] = [20] * 39 + [30]
    results["Best constant"] = best_constant(results)
    judged = compare_pass_at_k(results, NU, k=1)
    found = judged[judged["rival"] == "Best constant"].groupby("dataset")["could be won"]
    main = compare_with_constant(results.drop(columns="Best constant"))
    expected = main[main["kind"] == "probe of the data set"].set_index("dataset")["could be won"]
    assert found.unique().explode().to_dict() == expected.to_dict()
    assert expected.to_dict() == {"gsm8k": True, "math500": False}


def test_a_probe_by_the_papers_recipe_is_the_mean_of_its_five() -> None:
    subset = made().loc[["gsm8k"]]
    five = subset.assign(**{"Probe (GSM8K) [0]": subset["Probe (GSM8K)"]})
    five["Probe (GSM8K) [1]"] = 0.5
    five = five.drop(columns="Probe (GSM8K)")
    errors = pass_at_k_errors(five, predict_pass_at_k(five, [4], **GSM8K), [4])[4]
    half = pass_at_k_errors(five, {"half": [np.full((150, 1), 1 - 0.5**4)]}, [4])[4]["half"]
    alone = pass_at_k_errors(subset, predict_pass_at_k(subset, [4], **GSM8K), [4])[4]
    expected = (alone["Probe, plug-in"] + half) / 2
    assert errors["Probe, plug-in"].to_numpy() == pytest.approx(expected.to_numpy())


def test_a_band_holds_what_a_right_probe_promises_and_not_what_a_bold_one_does() -> None:
    held = check_bands(made(), [1, 4, 64])
    assert held[["dataset", "k", "held"]].to_numpy().tolist() == [
        ["gsm8k", 1, True],
        ["gsm8k", 4, True],
    ]
    bold = made()
    bold["Probe (GSM8K)"] = bold["Probe (GSM8K)"] ** 0.2
    assert not check_bands(bold, [4])["held"].any()
    assert half_band(np.ones((5, 2))).tolist() == [0, 0]


def test_curves_of_a_set_are_those_of_its_questions_with_most_samples() -> None:
    results = made().rename(columns={"other": "Probe (MATH)"})
    few = results.index[150:200]  # of MATH-500
    results.loc[few, "correct"], results.loc[few, "total"] = 1, 4
    curves = curves_by_set(results, ["math500", "gsm8k"], NU)
    assert curves["dataset"].unique().tolist() == ["math500", "gsm8k"]
    assert curves["k"].max() == 32
    own = curves.query("dataset == 'math500' and k == 4").set_index("method")
    whole = results.iloc[200:]
    actual = pass_at_k(whole["correct"], whole["total"], [4]).mean()
    assert own.loc["Actual", "estimate"] == pytest.approx(actual)
    plug_in = (1 - (1 - whole["Probe (MATH)"]) ** 4).mean()
    assert own.loc["Probe, plug-in", "estimate"] == pytest.approx(plug_in)


def test_errors_of_a_set_are_those_of_its_own_probe() -> None:
    results = made().rename(columns={"other": "Probe (MATH)"})
    table = plug_in_errors_by_set(results, ["gsm8k", "math500"], [1, 64], NU)
    assert [*table] == ["pass@1"]  # there are 40 samples
    for name, probe in (("gsm8k", "Probe (GSM8K)"), ("math500", "Probe (MATH)")):
        own = results.loc[name]
        expected = ((own[probe] - own["correct"] / own["total"]) ** 2).mean()
        assert table.loc[(name, 150, probe), "pass@1"] == pytest.approx(expected)


def test_errors_of_a_set_are_on_the_same_questions_for_each_k() -> None:
    """Fifty questions of GSM8K and none of MATH-500 have fewer samples than the others."""
    results = made().rename(columns={"other": "Probe (MATH)"})
    few = results.index[:50]
    results.loc[few, "correct"], results.loc[few, "total"] = 1, 4
    table = plug_in_errors_by_set(results, ["math500", "gsm8k"], [1, 4, 16], NU)
    assert [*table] == ["pass@1", "pass@4", "pass@16"]
    assert table.notna().all(axis=None)
    assert table.index.droplevel("method").unique().tolist() == [("math500", 150), ("gsm8k", 100)]
    deep = plug_in_errors_by_set(results.iloc[50:], ["gsm8k"], [1, 4, 16], NU)
    pd.testing.assert_frame_equal(table.loc[["gsm8k"]], deep)
