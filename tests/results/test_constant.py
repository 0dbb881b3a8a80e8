import numpy as np
import pandas as pd
import pytest

from capcal_lib.metrics import adjusted, gains
from capcal_lib.metrics.comparisons import bounds_over_constant
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results import (
    best_constant,
    brier_terms,
    compare_with_constant,
    count_by_kind,
    load_results,
    methods,
)
from capcal_lib.results.estimated import ELSEWHERE, KINDS, cases_of


def made(questions: int = 200, seed: int = 0) -> pd.DataFrame:
    """Results of two data sets: one whose questions differ, one whose accuracies hardly do."""
    rng = np.random.default_rng(seed)
    parts = {}
    for dataset, spread in (("gsm8k", 1.0), ("math500", 0.02)):
        mu = rng.random(questions) * spread
        counts = {"correct": rng.binomial(50, mu), "total": 50}
        said = {
            "P(True)": np.full(questions, 0.9),
            "Probe (GSM8K)": (mu + rng.normal(0, 0.05, questions)).clip(0, 1),
            "Probe (TriviaQA)": np.full(questions, mu.mean()),
            "mine": mu,
        }
        names = [f"{dataset}/{place}" for place in range(questions)]
        parts[dataset] = pd.DataFrame(counts | said, pd.Index(names, name="question_id"))
    return pd.concat(parts, names=["dataset"])


def test_a_naive_definition_gives_the_same_gains_and_verdicts() -> None:
    results = made()
    judged = compare_with_constant(results).set_index(["dataset", "method"])
    terms = brier_terms(results)
    constant = best_constant(results)
    p = {}
    for dataset in ("gsm8k", "math500"):
        ends = [bounds_over_constant(c) for c in constant[dataset]]
        bounds = min(low for low, _ in ends), max(high for _, high in ends)
        for method in methods(results):
            both = terms.loc[dataset][["Best constant", method]]
            alone = gains(both, "Best constant", bounds=bounds).loc[method]
            row = judged.loc[(dataset, method)]
            assert row[["estimate", "low", "high", "p"]].tolist() == pytest.approx(
                alone[["estimate", "low", "high", "p"]].tolist()
            )
            p[dataset, method] = alone["p"]
    for elsewhere in (False, True):
        family = judged[judged["kind"].isin(ELSEWHERE) == elsewhere]
        holm = adjusted(np.array([p[case] for case in family.index]), "holm")
        assert family["p (Holm)"].tolist() == pytest.approx(holm.tolist())
        assert len(family)
    assert judged.loc[("gsm8k", "Probe (GSM8K)"), "verdict"] == "better"
    assert judged.loc[("gsm8k", "P(True)"), "verdict"] == "worse"
    assert judged.loc[("math500", "P(True)"), "verdict"] == "worse", "even where none could win"


def test_what_a_perfect_confidence_would_not_win_could_not_be_won() -> None:
    """Of sixty questions whose accuracies differ by a hair, none can be shown to be better."""
    results = made(questions=60)
    results["mine"] = results["correct"] / results["total"]
    judged = compare_with_constant(results).set_index(["dataset", "method"])
    assert not judged.loc["math500", "could be won"].any(), "nor by what is worse there"
    assert judged.loc[("math500", "P(True)"), "verdict"] == "worse"
    assert judged.loc["gsm8k", "could be won"].all()


def test_verdicts_are_counted_by_kind_better_of_those_that_could_be_won() -> None:
    judged = compare_with_constant(made(questions=60))
    twice = pd.concat([judged, judged])  # two models
    counts = count_by_kind(twice)
    assert counts.index.tolist() == list(KINDS)  # `made` has a method of a name that is no kind
    known = twice[twice["kind"] != "other"]
    assert count_by_kind(known).index.tolist() == list(KINDS[:-1])
    for kind, row in counts.iterrows():
        own = twice[twice["kind"] == kind]
        winnable = own[own["could be won"]]
        better, worse = (winnable["verdict"] == "better").sum(), (own["verdict"] == "worse").sum()
        assert row.tolist() == [better, len(winnable), worse, len(own)]
    assert counts["could be won"].sum() < counts["cases"].sum() == len(twice)


def test_kinds_of_methods() -> None:
    index = pd.MultiIndex.from_product([["gsm8k", "math500"], ["a"]])
    index.names = ["dataset", "question_id"]
    several = "Probe (TriviaQA + GSM8K)"
    columns = ["P(True)", "Response consistency", "mine", several, "Probe (GSM8K)"]
    results = pd.DataFrame(
        dict.fromkeys(["correct", "total", *columns, "Probe (MATH)"], 0.5), index
    )
    kinds = cases_of(results)["kind"]
    assert kinds["gsm8k"].to_dict() == {
        "P(True)": "P(True)",
        "Response consistency": "response consistency",
        "mine": "other",
        several: "probe of several data sets",
        "Probe (GSM8K)": "probe of the data set",
        "Probe (MATH)": "probe of the domain",
    }
    assert kinds["math500"]["Probe (MATH)"] == "probe of the data set"


def test_a_data_set_on_which_nothing_differs_has_no_case_and_empty_results_have_none() -> None:
    results = made()
    results.loc["math500", "correct"] = 0
    judged = compare_with_constant(results)
    assert {*judged["dataset"]} == {"gsm8k"}
    assert compare_with_constant(results.loc[["math500"]]).empty
    assert compare_with_constant(load_results(RECORDED_RUNS, "gpt-oss-20b")).empty


def test_five_probes_are_one_case() -> None:
    results = made()
    five = results.drop(columns="Probe (GSM8K)")
    for fold in range(5):
        five[f"Probe (GSM8K) [{fold}]"] = results["Probe (GSM8K)"]
    one = compare_with_constant(results).sort_values(["dataset", "method"], ignore_index=True)
    mean = compare_with_constant(five).sort_values(["dataset", "method"], ignore_index=True)
    pd.testing.assert_frame_equal(one, mean)


def test_one_sample_a_question_decides_nothing_and_stops_nothing() -> None:
    results = made(30)
    single = results.loc[["math500"]].assign(correct=[0, 1] * 15, total=1)
    both = pd.concat([results.loc[["gsm8k"]], single])
    judged = compare_with_constant(both)
    pd.testing.assert_frame_equal(judged, compare_with_constant(results.loc[["gsm8k"]]))
    some = results.loc[["gsm8k"]].copy()
    some.iloc[:3, some.columns.get_loc("total")] = 1
    some.iloc[:3, some.columns.get_loc("correct")] = 1
    assert compare_with_constant(some)["p"].notna().all()
