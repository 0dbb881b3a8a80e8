"""Estimates: each confidence beside the counts that may judge it, and means over members."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results import brier_terms, estimates, load_results, methods
from capcal_lib.results.estimated import ABOUT, differing
from capcal_lib.results.terms import NUMBERS

VOTES = "Response consistency"
INDEX = pd.MultiIndex.from_product([["gsm8k"], ["a", "b", "c"]], names=["dataset", "question_id"])
TABLE = pd.DataFrame(
    {
        "correct": [1, 2, 0],
        "total": [4, 2, 0],
        "P(True)": [0.5, np.nan, 0.1],
        VOTES: [1.0, 0.5, np.nan],
        "Probe": [0.2, 0.3, 0.4],  # a method of one's own
        "Probe (MATH) [0]": [0.1, 0.7, 0.9],
        "Probe (MATH) [1]": [0.3, np.nan, 0.9],
        "never": np.nan,
        "votes correct": [0, 1, np.nan],
        "votes total": [2, 1, np.nan],
        "votes term": 0.25,
        "votes plug-in": 0.5,
    },
    INDEX,
)


def test_each_confidence_stands_beside_the_counts_that_may_judge_it() -> None:
    listed = estimates(TABLE).reset_index("question_id")
    rows = listed[["question_id", "method", "member", "confidence", "total"]].to_numpy().tolist()
    assert rows == [
        ["a", "P(True)", 0, 0.5, 4],
        ["a", VOTES, 0, 1.0, 2],
        ["b", VOTES, 0, 0.5, 1],
        ["a", "Probe", 0, 0.2, 4],
        ["b", "Probe", 0, 0.3, 2],
        ["a", "Probe (MATH)", 0, 0.1, 4],
        ["b", "Probe (MATH)", 0, 0.7, 2],
        ["a", "Probe (MATH)", 1, 0.3, 4],
    ]
    assert "never" not in estimates(TABLE)["method"].cat.categories, "or pictures have empty panels"
    listed = estimates(TABLE, VOTES, "P(True)")
    assert sorted(listed["correct"]) == [0, 1, 1]
    assert [*listed["method"].cat.categories] == [VOTES, "P(True)"], "in the order that was asked"


def test_without_other_samples_all_samples_judge_votes() -> None:
    alone = TABLE.drop(columns=[name for name in TABLE if name.startswith("votes")])
    assert estimates(alone, VOTES)["total"].tolist() == [4, 2]


@pytest.mark.parametrize("columns", [[*TABLE], ["correct", "total"], ["correct", "total", "never"]])
def test_nothing_is_listed_of_nothing(columns: list[str]) -> None:
    table = TABLE[columns]
    listed = estimates(table.iloc[:0] if "P(True)" in table else table)
    assert [*listed] == [*ABOUT, *NUMBERS]
    assert listed.empty
    assert [*listed.index.names] == [*INDEX.names]


def test_terms_are_means_over_the_members_that_predicted_a_question() -> None:
    terms = brier_terms(TABLE, protocol="paper")["Probe (MATH)"]
    first = ((0.1 - 0.25) ** 2 + (0.3 - 0.25) ** 2) / 2
    second = ((0.7 - 1) ** 2 + (0.5 - 1) ** 2) / 2  # one half where a member is missing
    np.testing.assert_allclose(terms, [first, second, np.nan])
    corrected = brier_terms(TABLE)["Probe (MATH)"]
    np.testing.assert_allclose(corrected, [first - 0.25 * 0.75 / 3, (0.7 - 1) ** 2, np.nan])


def test_equal_shares_of_unlike_totals_do_not_differ() -> None:
    assert differing(TABLE.assign(correct=[2, 1, 0])).empty  # 2 of 4, 1 of 2, and 0 of 0
    assert len(differing(TABLE)) == 3


@given(st.permutations(range(3)))
def test_the_order_of_questions_is_kept_and_changes_nothing(order: list[int]) -> None:
    shuffled = estimates(TABLE.iloc[order])
    key = ["method", "member", "question_id"]
    expected = estimates(TABLE).reset_index().sort_values(key, ignore_index=True)
    assert shuffled.reset_index().sort_values(key, ignore_index=True).equals(expected)


def test_every_confidence_of_a_recorded_model_is_listed_once() -> None:
    results = load_results(RECORDED_RUNS, "smollm2-135m", recipe="paper")
    sizes = results.groupby("dataset", sort=False).size()
    assert sizes.is_monotonic_decreasing, "the data set of most questions first"
    listed = estimates(results)
    assert not listed.reset_index().duplicated(["dataset", "question_id", "method", "member"]).any()
    scored = results[results["total"] > 0]
    for method in methods(results):
        own = listed[listed["method"] == method]
        members = [name for name in results if name.startswith(method) and name != method]
        columns = members if method.startswith("Probe") else [method]
        assert len(own) == scored[columns].count().sum()
