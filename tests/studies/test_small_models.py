import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications import budget_gains, pass_at_k, pass_at_k_gains_over_answer
from capcal_lib.metrics import capability_brier
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probes import describe_probes
from capcal_lib.results import brier_terms, compare_with_nearest_probe, load_results, score
from capcal_lib.studies.budget_allocation import compare_spending
from capcal_lib.studies.small_models import (
    ASKED_OWN,
    COSTS,
    FURTHER,
    MEASURED,
    MISSED,
    MIXED,
    OTHERS,
    TARGETS,
    advise,
    compare_as_stated,
    gain_of_one_half,
    results_of_claims,
)

MODEL = "smollm2-135m"
EXAM, SUMS = "mini-exam", "mini-arithmetic"


@pytest.fixture(scope="module")
def results():
    return load_results(RECORDED_RUNS, MODEL, datasets=[EXAM, SUMS])


@pytest.fixture(scope="module")
def concentrations():
    return describe_probes(RECORDED_RUNS, MODEL)["concentration"]


@pytest.fixture(scope="module")
def compared(results, concentrations):
    return compare_as_stated({MODEL: results}, {MODEL: concentrations})


def test_gains_are_those_of_the_methods_that_are_named(compared, results, concentrations):
    gains = compared.set_index(["what", "method", "dataset"])["estimate"]
    terms = brier_terms(results).loc[EXAM]
    own = "Probe (Mini exam)"
    expected = (terms["Uniform random"] - terms[own]).mean()
    assert gains["own probe < uniform", own, EXAM] == pytest.approx(expected)
    far = "Probe (TriviaQA)"
    expected = (terms["Uniform random"] - terms[far]).mean()
    assert gains["far probe < uniform", far, EXAM] == pytest.approx(expected)
    expected = (terms[far] - terms[own]).mean()
    assert gains["own probe < other probes", far, EXAM] == pytest.approx(expected)
    expected = (terms["Response consistency"] - terms[own]).mean()
    assert gains[FURTHER, own, EXAM] == pytest.approx(expected)
    expected = (terms["P(True)"] - terms[own]).mean()
    assert gains[ASKED_OWN, "P(True)", EXAM] == pytest.approx(expected)
    table = results.loc[EXAM]
    given = table[own], table["correct"], table["total"]
    nu = concentrations[own]
    expected = pass_at_k_gains_over_answer(*given, 16, concentration=nu).mean()
    assert gains["pass@16 by probe < Oracle RC", own, EXAM] == pytest.approx(expected)
    expected = budget_gains(*given, 2, concentration=nu).mean()
    assert gains["budget by probe > even", own, EXAM] == pytest.approx(expected)


def test_what_is_said_of_all_questions_is_counted_naively(compared, results):
    gains = compared.set_index(["what", "method", "dataset"])["estimate"]
    table = results.loc[EXAM]
    shares = [c / n for c, n in zip(table["correct"], table["total"], strict=True)]
    between = sum(0.1 < mu < 0.9 for mu in shares) / len(shares)
    assert gains[MIXED, "", EXAM] == pytest.approx(between - 0.5)
    # Two samples of a question disagree in 2 c (n - c) of n (n - 1) ordered pairs.
    apart = [
        2 * c * (n - c) / (n * (n - 1))
        for c, n in zip(table["correct"], table["total"], strict=True)
    ]
    assert gains[TARGETS, "", EXAM] == pytest.approx(sum(apart) / len(apart))
    assert not compared.loc[compared["what"].isin([TARGETS, MIXED]), "nearest"].any()
    own = "Probe (Mini exam)"
    predicted = (1 - (1 - table[own]) ** 16).mean()
    actual = pass_at_k(table["correct"], table["total"], [16]).mean()
    assert gains[MISSED, own, EXAM] == pytest.approx(abs(predicted - actual) - 0.05)


def test_only_questions_with_many_samples_tell_how_many_lie_between(results, concentrations):
    """Forty questions with two samples each are as often right as wrong, and say nothing."""
    shallow = results.loc[[EXAM]].copy()
    shallow.loc[shallow.index[:40], ["correct", "total"]] = [1, 2]
    shallow = shallow.drop(columns=["votes correct", "votes total"], errors="ignore")
    compared = compare_as_stated({MODEL: shallow}, {MODEL: concentrations})
    found = compared.set_index("what").loc[MIXED, "estimate"]
    deep = shallow.iloc[40:]
    expected = (deep["correct"] / deep["total"]).between(0.1, 0.9, inclusive="neither").mean() - 0.5
    assert found == pytest.approx(expected)
    c, n = deep["correct"], deep["total"]
    apart = (2 * c * (n - c) / (n * (n - 1))).sum() + 40  # one right of two: always apart
    found = compared.set_index("what").loc[TARGETS, "estimate"]
    assert found == pytest.approx(apart / len(shallow))


def test_a_probe_of_the_same_training_set_is_no_other_probe(results, concentrations):
    mixed = results.loc[[EXAM]].copy()
    for name in ("Probe (Mini exam + GSM8K)", "Probe (TriviaQA + GSM8K)"):
        mixed[name] = 0.3
    compared = compare_as_stated({MODEL: mixed}, {MODEL: concentrations})
    others = {*compared.loc[compared["what"] == OTHERS, "method"]}
    assert "Probe (TriviaQA + GSM8K)" in others
    assert "Probe (Mini exam + GSM8K)" not in others


def test_budgets_and_votes_have_the_verdicts_of_their_pages(compared, results, concentrations):
    assert {*compared["what"]} <= MEASURED
    spent = compare_spending(results, concentrations).query("B == 2")
    signs = {"better": "holds", "worse": "fails"}
    expected = spent[spent["rule"] == "Probe, posterior"].set_index("dataset")["verdict"]
    found = compared[compared["what"] == "budget by probe > even"]
    assert found["nearest"].all()
    found = found.set_index("dataset")["result"]
    assert len(found) > 1
    for dataset, result in found.items():
        assert result == signs.get(expected[dataset], "inconclusive")
    against = compare_with_nearest_probe(results)
    against = against[against["method"] == "Response consistency"].set_index("dataset")
    votes = against["verdict"]
    further = compared[compared["what"] == FURTHER].set_index("dataset")
    assert (further["low"] == -against["high"][further.index]).all()
    found = further["result"]
    for dataset, result in found.items():
        assert result == {"worse": "holds", "better": "fails"}.get(votes[dataset], "inconclusive")


def test_where_nothing_differs_nothing_is_compared(results, concentrations):
    alike = results.copy()
    alike.loc[EXAM, "correct"] = 3
    compared = compare_as_stated({MODEL: alike}, {MODEL: concentrations})
    assert set(compared["dataset"]) == {SUMS}


def test_a_claim_takes_the_comparisons_that_it_names():
    rows = [
        ["own probe < uniform", "A", "x", True, "holds"],
        ["far probe < uniform", "B", "x", False, "fails"],
        ["far probe < uniform", "C", "y", True, "inconclusive"],
        ["asked < uniform", "P(True)", "x", False, "holds"],
        ["asked < uniform", "P(True)", "x", False, "fails"],
        ["asked < uniform", "P(True)", "y", False, "fails"],
    ]
    columns = ["what", "method", "dataset", "nearest", "result"]
    comparisons = pd.DataFrame(rows, columns=columns)
    own, far = "own probe < uniform", "far probe < uniform"
    claims = pd.DataFrame(
        {
            "measured": [[own, far], [far], [COSTS], ["asked < uniform"]],
            "nearest": [True, None, None, None],
            "lost": [None, True, None, None],
            "opposite": [None, None, None, True],
        },
        index=["nearest", "not far", "costs", "depends"],
    )
    found = results_of_claims(claims, comparisons, pd.Series([True, False]))
    assert found.groupby("says")["result"].agg(list).to_dict() == {
        "nearest": ["holds", "inconclusive"],
        "not far": ["holds", "inconclusive"],
        "costs": ["holds", "fails"],
        "depends": ["holds"],  # x has both signs, and y one model alone
    }


def test_one_half_gains_what_it_scores_lower_than_the_best_constant(results):
    table = results.loc[EXAM]
    scores = score(results.loc[[EXAM]])["brier"].droplevel("dataset")
    counts = table["correct"], table["total"]
    half = capability_brier(np.full(len(table), 0.5), *counts, corrected=True)
    assert gain_of_one_half(results)[EXAM] == pytest.approx(scores["Best constant"] - half)


def cases(kind: str, gains: dict[tuple[str, str], float], **columns: object) -> pd.DataFrame:
    """Make rows of ``compare_with_constant`` from the gain on each (model, dataset)."""
    table = pd.Series(gains, name="estimate").rename_axis(["model", "dataset"]).reset_index()
    given = {"kind": kind, "verdict": "inconclusive", "could be won": True}
    return table.assign(**given | columns)


def test_advice_averages_gains_on_the_same_cases_and_counts_verdicts_by_model():
    near, own, votes = "probe of the domain", "probe of the data set", "response consistency"
    three = {("A", "x"): -0.2, ("A", "y"): -0.4, ("B", "x"): 0.9}
    two = {("A", "x"): 0.1, ("A", "y"): 0.3}
    as_it_is = [cases(votes, three, verdict="worse"), cases(near, {("A", "x"): 0.1})]
    as_it_is += [cases(own, two, verdict="better")]
    recalibrated = cases(votes, three | two, verdict="better")
    recalibrated.loc[1, "could be won"] = False
    half = pd.Series({("A", "x"): -0.5, ("A", "y"): 0.0, ("B", "x"): 9.0})
    half = half.rename_axis(["model", "dataset"])
    advice = advise(pd.concat(as_it_is), recalibrated, half)
    assert advice.attrs["cases"] == 2, "B has no probe of its own"
    rows = advice.set_index(["labels", "kind"])[["mean gain", "A", "B"]]
    assert rows.round(3).astype(object).where(rows.notna(), None).T.to_dict("list") == {
        ("none", "one half"): [-0.25, None, None],
        ("none", votes): [-0.3, "0 of 2, 2 of 2 worse", "0 of 1, 1 of 1 worse"],
        ("none", near): [None, "0 of 1", None],
        ("yes", votes): [0.2, "1 of 1", "1 of 1"],
        ("yes", own): [0.2, "2 of 2", None],
    }
