import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications import fit_concentration, pass_at_k, simulate_pass_at_k
from capcal_lib.results import best_constant, brier_terms, compare_with_constant
from capcal_lib.studies.pass_at_k import (
    compare_pass_at_k,
    curves_of,
    half_bands,
    oracle_errors,
    plug_in_errors,
    predict,
    score_errors,
)

NU = pd.Series({"Probe (GSM8K)": 20.0, "Probe (MATH)": 20.0})


def made(total: int = 40, questions: int = 150, seed: int = 0) -> pd.DataFrame:
    """Results of two data sets: one whose questions differ much, with a probe that is right."""
    rng = np.random.default_rng(seed)
    parts = {}
    for dataset, spread, probe in (("gsm8k", 1.0, "Probe (GSM8K)"), ("math500", 0.4, "other")):
        mu = spread * rng.random(questions)
        columns = {"correct": rng.binomial(total, mu), "total": total, probe: mu, "P(True)": 0.9}
        parts[dataset] = pd.DataFrame(columns, index=[f"q{place}" for place in range(questions)])
    return pd.concat(parts, names=["dataset", "question_id"])


def test_predictions_are_those_of_each_way() -> None:
    results = made().loc[["gsm8k"]]
    counts = results["correct"], results["total"]
    by_way = dict(iter(predict(results, [4], NU).groupby("way")))
    assert [*by_way] == ["Best constant", "P(True)", "Probe, plug-in", "Probe, posterior"]
    mu = results["Probe (GSM8K)"]
    plug_in = simulate_pass_at_k(mu, [4])[:, 0]
    assert by_way["Probe, plug-in"]["predicted"].tolist() == plug_in.tolist()
    posterior = simulate_pass_at_k(mu, [4], concentration=20.0)[:, 0]
    assert by_way["Probe, posterior"]["predicted"].tolist() == posterior.tolist()
    constant = best_constant(results)
    nu = fit_concentration(constant, *counts)
    expected = simulate_pass_at_k(constant, [4], concentration=nu)[:, 0]
    assert by_way["Best constant"]["predicted"].tolist() == expected.tolist()
    assert by_way["P(True)"]["measured"].tolist() == pass_at_k(*counts, [4])[:, 0].tolist()


def test_curves_are_means() -> None:
    predicted = predict(made().loc[["gsm8k"]], [1, 2, 64], NU)
    curves = curves_of(predicted).set_index(["method", "k"]).sort_index()
    assert {*curves.index.unique("k")} == {1, 2}, "no question has 64 samples"
    plug_in = predicted[(predicted["way"] == "Probe, plug-in") & (predicted["k"] == 2)]
    s = plug_in["predicted"]
    assert curves.loc[("Probe, plug-in", 2), "estimate"] == pytest.approx(s.mean())
    half = half_bands(plug_in)
    expected = 1.96 * np.sqrt((s * (1 - s)).sum()) / len(s)
    assert half["half the band"].tolist() == pytest.approx([expected])
    assert curves.loc[("Actual", 1), "estimate"] == pytest.approx(
        (made().loc["gsm8k", "correct"] / 40).mean()
    )


def test_the_error_of_one_attempt_is_the_brier_term_and_its_mean_the_score() -> None:
    results = made().loc[["gsm8k"]]
    predicted = predict(results, [1], NU)
    terms = brier_terms(results)
    of_probe = predicted[predicted["way"] == "Probe, plug-in"]["error"]
    np.testing.assert_allclose(of_probe, terms["Probe (GSM8K)"])
    scored = score_errors(predicted).loc["pass@1, 150 questions"]
    assert scored.loc["P(True)", "brier"] == pytest.approx(terms["P(True)"].mean())
    best = scored.index[scored["may_be_best"].eq(True)]
    assert {*best} == {"Probe, plug-in", "Probe, posterior"}, "which are one at one attempt"


def test_what_could_be_won_at_one_attempt_is_that_of_the_main_table() -> None:
    results = made()
    judged = compare_pass_at_k(predict(results, [1], NU)).set_index(["dataset", "method", "rival"])
    row = judged.loc[("gsm8k", "Probe, plug-in", "Best constant")]
    expected = compare_with_constant(results).set_index(["dataset", "method"])
    assert row["could be won"] == expected.loc[("gsm8k", "Probe (GSM8K)"), "could be won"]
    assert row["verdict"] == "better", "a probe that is right"
    assert {*judged.index.unique("dataset")} == {"gsm8k"}, "only one has a probe of its own"


def test_an_oracle_of_half_the_samples_beats_a_constant() -> None:
    results = made().loc[["gsm8k"]]
    both = pd.concat([predict(results, [4], NU), oracle_errors(results, [4])])
    scores = score_errors(both).loc["pass@4, 150 questions", "brier"]
    assert scores["Oracle CC"] < scores["Best constant"] < scores["Oracle RC"]


def test_in_sample_an_oracle_cannot_fail() -> None:
    errors = plug_in_errors(predict(made(), [1, 4], NU)).loc["gsm8k"]
    assert errors.loc["Oracle CC (in sample)", "pass@1"] == pytest.approx(0)
    assert "Probe (GSM8K)" in errors.index
    mu = made().loc["gsm8k", "correct"] / 40
    assert errors.loc["Oracle RC (in sample)", "pass@1"] == pytest.approx((mu * (1 - mu)).mean())


def test_a_band_holds_what_a_right_probe_promises_and_not_what_a_bold_one_does() -> None:
    results = made()
    held = half_bands(predict(results, [4], NU)).set_index(["dataset", "way"])["held"]
    assert held["gsm8k", "Probe, plug-in"]
    bold = results.assign(**{"Probe (GSM8K)": results["Probe (GSM8K)"] ** 0.2})
    held = half_bands(predict(bold, [4], NU)).set_index(["dataset", "way"])["held"]
    assert not held["gsm8k", "Probe, plug-in"]


def test_a_probe_by_the_papers_recipe_is_the_mean_of_its_five() -> None:
    results = made()
    five = results.drop(columns="Probe (GSM8K)")
    for member in range(5):
        five[f"Probe (GSM8K) [{member}]"] = results["Probe (GSM8K)"]
    one, mean = (compare_pass_at_k(predict(table, [4], NU)) for table in (results, five))
    pd.testing.assert_frame_equal(one, mean)
