import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications import allocate, budget_gains, pass_at_k, success_rate
from capcal_lib.metrics import judge_gain
from capcal_lib.results.terms import HONEST_ORACLE
from capcal_lib.studies.budget_allocation import (
    EVEN,
    POSTERIOR,
    compare_spending,
    oracle_rules,
    solved_by_budget,
    spend,
    spending_rules,
)

NU = {"Probe (GSM8K)": 3.0, "Probe (MATH)": 5.0}


def made(dataset: str = "gsm8k", total: int = 64, questions: int = 60) -> pd.DataFrame:
    """Results of questions from hopeless to easy, of which a probe knows much and P(True) less."""
    rng = np.random.default_rng(0)
    mu = np.linspace(0, 1, questions) ** 2
    counts = {"correct": rng.binomial(total, mu), "total": total}
    said = {
        "P(True)": np.where(np.arange(questions) % 5 == 0, np.nan, 1 - mu),
        "Probe (GSM8K)": (mu + rng.normal(0, 0.1, questions)).clip(0, 1),
    }
    names = [f"{dataset}/{place}" for place in range(questions)]
    table = pd.DataFrame(counts | said, pd.Index(names, name="question_id"))
    return pd.concat({dataset: table}, names=["dataset"])


def test_every_rule_spends_the_budget_and_no_more_than_there_is() -> None:
    spent = spend(spending_rules(made(), NU), 8)
    assert (spent.groupby("way")["spent"].sum() == 8 * 60).all()
    assert (spent["spent"] <= spent["total"]).all()
    assert [*spent["way"].unique()] == [EVEN, "P(True)", "Probe, plug-in", POSTERIOR]
    expected = allocate(made()["Probe (GSM8K)"], 480, max_per_question=64, concentration=3.0)
    assert spent.loc[spent["way"] == POSTERIOR, "spent"].tolist() == expected.tolist()


def test_even_spending_solves_as_many_as_pass_at_k() -> None:
    results = made()
    solved = solved_by_budget(spending_rules(results, NU)).set_index(["B", "rule"])["estimate"]
    measured = pass_at_k(results["correct"], results["total"], [1, 2, 4]).mean(axis=0)
    assert [solved[budget, EVEN] for budget in (1, 2, 4)] == pytest.approx(measured)
    assert {*solved.index.unique("B")} == {1, 2, 4, 8, 16, 32}, "below all samples"


def test_oracles_bound_what_a_confidence_can_do() -> None:
    results = made()
    rules = pd.concat([spending_rules(results, NU), oracle_rules(results, seed=0, in_sample=True)])
    solved = solved_by_budget(rules).set_index(["B", "rule"])["estimate"]
    best = allocate(results["correct"] / 64, 120, max_per_question=64)
    in_sample = solved[2, "Oracle CC, in sample"]
    assert in_sample == success_rate(best, results["correct"], results["total"])
    assert solved[2, EVEN] < solved[2, HONEST_ORACLE]
    assert solved.loc[2].drop(HONEST_ORACLE).max() == in_sample


def test_a_naive_definition_gives_the_same_gains() -> None:
    results = made()
    judged = compare_spending(results, NU).set_index(["B", "rule"])
    counts = (results[name].droplevel(0) for name in ("Probe (GSM8K)", "correct", "total"))
    gain = budget_gains(*counts, 4, concentration=3.0)
    alone = judge_gain(gain)
    row = judged.loc[(4, POSTERIOR)]
    assert row["estimate"] == pytest.approx(100 * alone["estimate"])
    assert row["p"] == pytest.approx(alone["p"])


def test_a_probe_of_the_papers_recipe_is_one_case() -> None:
    results = made()
    five = results.drop(columns="Probe (GSM8K)")
    for member in range(5):
        five[f"Probe (GSM8K) [{member}]"] = results["Probe (GSM8K)"]
    pd.testing.assert_frame_equal(compare_spending(five, NU), compare_spending(results, NU))


def test_a_budget_is_tried_on_the_questions_that_have_twice_as_many_samples() -> None:
    judged = compare_spending(made(total=6), NU)
    assert {*judged["B"]} == {1, 2}
