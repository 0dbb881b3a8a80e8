import pandas as pd

from capcal_lib.book.front import (
    ADVICE,
    count_statements,
    describe_models,
    spell_advice,
    spell_uses,
)
from capcal_lib.claims import CLAIM_VERDICTS
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results import Counting, describe_runs
from capcal_lib.studies.applications import COMPARED, USES, count_uses
from capcal_lib.studies.small_models import WAYS

COUNTS = {"better": 2, "could be won": 5, "worse": 1, "cases": 9}


def test_every_way_to_go_is_spelled_and_what_has_no_case_says_so() -> None:
    assert {*ADVICE.values()} <= {method for _, _, _, method, _, _ in WAYS}
    texts = spell_advice(pd.DataFrame([{"method": "votes, recalibrated", **COUNTS}]))
    assert texts["votes"] == (
        "two of the five cases that a perfect confidence would win, and loses one of all nine"
    )
    assert texts["votes_share"] == "two of five, and loses one"
    assert {*texts} == {*ADVICE, "votes_share"}
    assert {text for key, text in texts.items() if "votes" not in key} == {"no case"}
    assert {*spell_advice(advice=pd.DataFrame(columns=["method"])).values()} == {"no case"}


def test_statements_are_counted_by_what_they_came_to() -> None:
    tally = pd.Series(range(5, 0, -1), CLAIM_VERDICTS)
    counted = {"tested": 15, "supported": 5, "partly": 4, "against": 2 + 1}
    assert count_statements(tally) == counted


def test_models_are_described_with_each_question_once() -> None:
    """A data set that two models were asked counts with the larger number of its questions."""
    runs = {
        name: describe_runs(Counting(RECORDED_RUNS, name), datasets=["gsm8k"])
        for name in ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
    }
    described = describe_models(runs)
    most = max(int(table.loc["gsm8k", "questions"]) for table in runs.values())
    assert (described["models"], described["sets"], described["questions"]) == (2, 1, most)
    assert described["named"] == "Qwen2.5-Coder-0.5B-Instruct, Qwen2.5-Coder-1.5B-Instruct"
    assert 0.4 < described["smallest"] < 0.6 < 1.4 < described["largest"] < 1.6


def test_uses_of_the_probe_and_of_what_the_model_says_are_counted_apart() -> None:
    compared = pd.DataFrame(
        [
            ["Budget", "Probe", "better", True],
            ["Budget", "Probe", "worse", False],
            ["Evaluation", "Probe", "inconclusive", True],
            ["Evaluation", "P(True)", "worse", True],
            ["Budget", "Verbalized confidence", "inconclusive", True],
        ],
        columns=["use", "method", "verdict", "could be won"],
    )
    counts = count_uses(compared)
    assert len(counts) == len(USES) * len(COMPARED)
    routed = pd.Series(
        pd.Categorical(["worse", "inconclusive"], ["better", "worse", "inconclusive"])
    )
    texts = spell_uses(counts, routed)
    assert texts["probe"] == (
        "one of the two cases that a perfect confidence would win, and loses one of all three"
    )
    assert texts["asked"] == (
        "none of the two cases that a perfect confidence would win, and loses one of all two"
    )
    assert texts["routed"] == "none of two tests, and loses one"
