import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications import allocate, budget_gains, pass_at_k, success_rate
from capcal_lib.metrics import adjusted, judge_gain
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results import load_results
from capcal_lib.studies.budget_allocation import (
    EVEN,
    HONEST_ORACLE,
    PLUG_IN,
    POSTERIOR,
    allocate_by_rules,
    compare_posterior,
    compare_spending,
    solved_by_oracles,
    solved_by_rules,
    solved_by_set,
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


def test_a_rule_goes_by_a_confidence_and_a_concentration() -> None:
    results = made()
    rules = spending_rules(results, NU)
    assert [*rules] == ["P(True)", PLUG_IN, POSTERIOR]
    [(said, nu)] = rules["P(True)"]
    assert nu is None
    assert said.iloc[0] == 0.5, "where it is missing"
    [(_, directly)] = rules[PLUG_IN]
    assert directly is None
    [(said, nu)] = rules[POSTERIOR]
    assert nu == 3.0
    assert said.equals(results["Probe (GSM8K)"])


def test_a_question_without_a_prediction_is_left_out_and_the_probe_stays() -> None:
    results = made()
    results["Probe (MATH)"] = 0.5  # of the same domain, and with a prediction of each question
    whole = compare_spending(results, NU).set_index(["B", "rule"])
    hole = results.copy()
    hole.iloc[3, hole.columns.get_loc("Probe (GSM8K)")] = np.nan
    judged = compare_spending(hole, NU).set_index(["B", "rule"])
    assert judged.index.equals(whole.index)
    without = compare_spending(results.drop(results.index[3]), NU).set_index(["B", "rule"])
    of_probe = judged.xs(POSTERIOR, level="rule")["estimate"]
    assert of_probe.equals(without.xs(POSTERIOR, level="rule")["estimate"])
    of_others = judged.xs("P(True)", level="rule")["estimate"]
    assert of_others.equals(whole.xs("P(True)", level="rule")["estimate"])


def test_a_probe_of_the_papers_recipe_is_five_rules_and_one_case() -> None:
    results = made()
    probe = results.pop("Probe (GSM8K)")
    for fold in range(5):
        results[f"Probe (GSM8K) [{fold}]"] = (probe + 0.02 * fold).clip(0, 1)
    rules = spending_rules(results, NU)
    assert {rule: len(members) for rule, members in rules.items()} == {
        "P(True)": 1,
        PLUG_IN: 5,
        POSTERIOR: 5,
    }
    judged = compare_spending(results, NU).query("B == 2")
    assert judged["rule"].tolist() == ["P(True)", POSTERIOR]
    counts = results["correct"], results["total"]
    five = [
        budget_gains(results[f"Probe (GSM8K) [{fold}]"], *counts, 2, concentration=3.0).mean()
        for fold in range(5)
    ]
    estimate = judged.set_index("rule").loc[POSTERIOR, "estimate"]
    assert estimate == pytest.approx(100 * np.mean(five))


def test_every_rule_spends_the_budget_and_no_more_than_there_is() -> None:
    results = made(total=8)
    plans = allocate_by_rules(results, 5, NU)
    assert [*plans] == [EVEN, "P(True)", PLUG_IN, POSTERIOR]
    assert plans.sum().unique().tolist() == [5 * 60]
    assert plans.max(axis=None) == 8
    assert plans[EVEN].unique().tolist() == [5]
    by_hand = allocate(results["Probe (GSM8K)"], 300, max_per_question=8, concentration=3.0)
    assert plans[POSTERIOR].equals(by_hand)


def test_even_spending_solves_as_many_as_pass_at_k() -> None:
    results = made()
    solved = solved_by_rules(results, [1, 4], NU).set_index(["B", "rule"])
    expected = pass_at_k(results["correct"], results["total"], [1, 4]).mean(axis=0)
    assert solved["estimate"].xs(EVEN, level="rule").tolist() == pytest.approx(expected.tolist())
    plan = allocate_by_rules(results, 4, NU)["P(True)"]
    by_hand = success_rate(plan, results["correct"], results["total"])
    assert solved.loc[(4, "P(True)"), "estimate"] == pytest.approx(by_hand)
    assert (solved["low"] < solved["estimate"]).all()
    assert (solved["estimate"] < solved["high"]).all()
    assert (solved["high"] <= 1).all()


def test_oracles_bound_what_a_confidence_can_do() -> None:
    results = made()
    budgets = [1, 4, 31, 32]
    rng = np.random.default_rng(0)
    oracles = solved_by_oracles(results, budgets, rng=rng, in_sample=True)
    oracles = oracles.set_index(["rule", "B"])["estimate"]
    assert oracles[HONEST_ORACLE].index.tolist() == [1, 4, 31], "smaller than the half of 64"
    for each in (1, 4):
        rules = solved_by_rules(results, [each], NU)["estimate"]
        assert oracles["Oracle CC, in sample", each] >= oracles[HONEST_ORACLE, each] > rules.max()
    mu = results["correct"] / results["total"]
    plan = allocate(mu, 240, max_per_question=64)
    by_hand = success_rate(plan, results["correct"], results["total"])
    assert oracles["Oracle CC, in sample", 4] == pytest.approx(by_hand)
    honest = solved_by_oracles(results, budgets, rng=np.random.default_rng(0))
    assert honest["rule"].unique().tolist() == [HONEST_ORACLE]


def test_a_naive_definition_gives_the_same_gains_and_verdicts() -> None:
    results = pd.concat([made(), made("math500", questions=40)])
    judged = compare_spending(results, NU).set_index(["B", "dataset", "rule"]).sort_index()
    for each in (1, 2, 4, 8):
        alone = {}
        for dataset in ("gsm8k", "math500"):
            own = results.loc[[dataset]]
            counts = own["correct"], own["total"]
            said = own["P(True)"].fillna(0.5)
            alone[dataset, "P(True)"] = judge_gain(budget_gains(said, *counts, each))
            gain = budget_gains(own["Probe (GSM8K)"], *counts, each, concentration=3.0)
            alone[dataset, POSTERIOR] = judge_gain(gain)
        table = pd.DataFrame(alone).T
        found = judged.loc[each].loc[[*table.index]]
        for column in ("estimate", "low", "high"):
            expected = (100 * table[column].astype(float)).tolist()
            assert found[column].tolist() == pytest.approx(expected)
        together = adjusted(table["p"].to_numpy(float), "holm")
        assert found["p (Holm)"].tolist() == pytest.approx(together.tolist())
        decided = found["verdict"].isin(["better", "worse"])
        assert decided.tolist() == (together < 0.05).tolist()
    assert "better" in judged.xs(POSTERIOR, level="rule")["verdict"].tolist()
    assert "worse" in judged.xs("P(True)", level="rule")["verdict"].tolist()


def test_the_posterior_is_compared_with_the_plug_in_by_the_difference_of_their_gains() -> None:
    results = made()
    between = compare_posterior(results, NU).set_index("B")
    counts = results["correct"], results["total"]
    probe = results["Probe (GSM8K)"]
    for each in (1, 2, 4, 8):
        gain = budget_gains(probe, *counts, each, concentration=3.0)
        gain -= budget_gains(probe, *counts, each)
        assert between.loc[each, "estimate"] == pytest.approx(100 * gain.mean())
    assert compare_posterior(results.drop(columns="Probe (GSM8K)"), NU).empty


def test_a_budget_is_tried_on_the_questions_that_have_twice_as_many_samples() -> None:
    results = made()
    few = results.index[:30]
    results.loc[few, "total"] = 6
    results.loc[few, "correct"] = results.loc[few, "correct"].clip(upper=6)
    judged = compare_spending(results, NU).set_index(["rule", "B"])["estimate"]
    assert judged[POSTERIOR].index.tolist() == [1, 2, 4, 8]
    deep = results.iloc[30:]
    counts = deep["correct"], deep["total"]
    gain = budget_gains(deep["Probe (GSM8K)"], *counts, 4, concentration=3.0)
    assert judged[POSTERIOR, 4] == pytest.approx(100 * gain.mean())
    shallow = made(total=6)
    judged = compare_spending(shallow, NU)
    assert judged["B"].unique().tolist() == [1, 2]
    assert judged["estimate"].dtype == float, "with no case of other budgets"


def test_without_any_rule_nothing_is_compared() -> None:
    judged = compare_spending(made()[["correct", "total"]], {})
    assert judged.empty
    assert "verdict" in judged


def test_a_confidence_that_was_brought_along_is_a_rule_as_any_other() -> None:
    results = load_results(RECORDED_RUNS, "simulated", datasets=["mini-exam"])
    results["mine"] = results["P(True)"].where(results["correct"] > 0)
    plans = allocate_by_rules(results, 4, {"Probe (Mini exam)": 2.0, "Probe (TriviaQA)": 2.0})
    expected = allocate(
        results["mine"].fillna(0.5), 4 * len(results), max_per_question=results["total"]
    )
    assert plans["mine"].tolist() == expected.tolist()


def test_a_data_set_is_shown_on_its_questions_with_most_samples() -> None:
    """Each data set by itself, with the same draws whatever stands before it."""
    few, both = made("math500", total=12, questions=30), made("math500", total=40, questions=20)
    both.index = both.index.map(lambda key: (key[0], f"{key[1]} again"))
    results = pd.concat([made(), few, both])
    solved = solved_by_set(results, ["gsm8k", "math500"], NU, seed=3)
    sizes = solved.groupby("dataset")[["questions", "B"]].max()
    assert sizes.to_numpy().tolist() == [[60, 32], [20, 32]]
    even = solved.query("dataset == 'math500' and B == 4 and rule == @EVEN")["estimate"].item()
    assert even == pytest.approx(pass_at_k(both["correct"], both["total"], [4]).mean())
    alone = solved_by_set(results, ["math500"], NU, seed=3)
    after = solved[solved["dataset"] == "math500"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, after)
    assert HONEST_ORACLE in {*alone["rule"]}
    assert not alone["rule"].str.contains("in sample").any()
    paper = solved_by_set(results, ["math500"], NU, seed=3, in_sample=True)
    assert paper["rule"].str.contains("in sample").any()
