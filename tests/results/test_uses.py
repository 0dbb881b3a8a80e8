"""The bounds of what a confidence can gain in a use."""

import numpy as np
import pandas as pd

from capcal_lib.applications import budget_gains, risk_area_bounds
from capcal_lib.results import recalibrate
from capcal_lib.results.uses import bounds_in_use, compare_use, recalibrate_ways, ways_to_use

CORRECT, TOTAL = pd.Series([0, 3, 4, 10]), pd.Series([10, 10, 10, 10])


def test_a_budget_loses_or_gains_a_whole_question() -> None:
    assert bounds_in_use("Budget", CORRECT, TOTAL) == (-1, 1)


def test_abstaining_has_the_bounds_of_the_area_under_its_curve() -> None:
    assert bounds_in_use("Abstaining", CORRECT, TOTAL) == risk_area_bounds(4)


def test_a_question_of_few_samples_has_no_part_in_the_bounds_of_pass_at_k() -> None:
    assert bounds_in_use("pass@k", pd.Series([0, 16, 1]), pd.Series([16, 16, 4])) == (-1, 1)


def ways(results: pd.DataFrame) -> pd.DataFrame:
    return ways_to_use(results, {"Probe (GSM8K)": 0.5})


def test_a_probe_is_used_in_two_ways_and_others_as_they_are() -> None:
    index = pd.MultiIndex.from_product([["gsm8k"], ["a", "b"]], names=["dataset", "question_id"])
    columns = {"correct": [1, 2], "total": 4, "P(True)": [0.5, None]}
    columns |= {"Probe (GSM8K)": 0.5, "Probe (MATH)": 0.1}
    listed = ways(pd.DataFrame(columns, index)).groupby("way", sort=False)
    assert listed["concentration"].first().to_dict() == {
        "P(True)": float("inf"),
        "Probe, plug-in": float("inf"),
        "Probe, posterior": 0.5,
    }
    assert listed["confidence"].sum()["P(True)"] == 1.0, "one half where nothing is stated"


def test_a_budget_is_divided_by_the_posterior() -> None:
    index = pd.MultiIndex.from_product([["gsm8k"], range(4)], names=["dataset", "question_id"])
    s = pd.Series([0.02, 0.3, 0.5, 0.9])
    results = pd.DataFrame({"correct": CORRECT.array, "total": 10, "Probe (GSM8K)": s.array}, index)
    [row] = compare_use(results, "Budget", {"Probe (GSM8K)": 0.5}).to_dict("records")
    assert row["estimate"] == budget_gains(s, CORRECT, TOTAL, 2, concentration=0.5).mean()
    assert row["estimate"] != budget_gains(s, CORRECT, TOTAL, 2).mean()
    assert (row["method"], row["confidence"]) == ("Probe", "Probe (GSM8K)")


def test_recalibration_is_that_of_the_main_table_and_mends_the_level() -> None:
    index = pd.MultiIndex.from_product([["gsm8k"], range(100)], names=["dataset", "question_id"])
    mu = np.linspace(0, 0.5, 100) ** 3
    columns = {"correct": np.random.default_rng(0).binomial(40, mu), "total": 40}
    results = pd.DataFrame(columns | {"P(True)": 0.5 + mu, "Probe (GSM8K)": mu}, index)
    recalibrated = recalibrate_ways(ways(results[["correct", "total", "P(True)"]]))
    expected = recalibrate(results)["P(True)"]
    assert recalibrated["confidence"].reindex(index).tolist() == expected.tolist()
    assert recalibrated["concentration"].nunique() == 5, "one for each fold"
    before, after = (
        compare_use(results, use, {}).set_index("method")["verdict"]
        for use in ("pass@k", "pass@k, recalibrated")
    )
    assert before["P(True)"] == "worse"
    assert after.to_dict() == {"P(True)": "better"}, "a probe has its labels already"


def test_a_perfect_confidence_seldom_gains_where_questions_are_alike() -> None:
    """Such cases could not be won, though shares, which know the noise, always gain."""
    index = pd.MultiIndex.from_product([["gsm8k"], range(400)], names=["dataset", "question_id"])
    won = []
    for seed in range(6):
        correct = np.random.default_rng(seed).binomial(12, 0.4, 400)
        results = pd.DataFrame({"correct": correct, "total": 12, "mine": correct / 12}, index)
        won.append(compare_use(results, "Abstaining", {})["could be won"].item())
    assert sum(won) < 3
