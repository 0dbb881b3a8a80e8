from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.confidence import read_answers
from capcal_lib.metrics import adjusted, capability_brier_terms, mean_interval
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results import brier_terms, describe_runs, load_results
from capcal_lib.studies.response_consistency import (
    find_majorities,
    judge_optimism,
    score_blocks,
    score_first_votes,
)
from tests.folders import sample_unlike_totals


def made(said: dict[str, str], right: str = "a") -> pd.DataFrame:
    """Answers of questions, a letter a sample: a dash is no answer, a blank is not drawn."""
    rows = []
    for name, letters in said.items():
        for place, letter in enumerate(letters):
            if letter != " ":
                answer = None if letter == "-" else letter
                rows.append([name, place, "scored", answer, float(letter == right)])
    columns = ["question_id", "sample_index", "verdict", "canonical", "correct"]
    return pd.concat({"gsm8k": pd.DataFrame(rows, columns=columns)}, names=["dataset"])


def test_each_block_votes_in_turn_by_hand() -> None:
    terms = score_blocks(made({"q": "aabbaa"}), numbers=[2])
    assert terms.index.tolist() == [("gsm8k", 2, "q")]
    row = terms.iloc[0]
    # The shares of aa, bb and aa are 1; others are right in 2, 4 and 2 of 4; all in 4 of 6.
    of_others = [(1 - 0.5) ** 2 - 0.25 / 3, 0.0, (1 - 0.5) ** 2 - 0.25 / 3]
    assert row["held-out"] == pytest.approx(np.mean(of_others))
    assert row["same pool"] == pytest.approx((1 / 3) ** 2 - (2 / 9) / 5)
    assert row["share"] == 1
    assert row["noise"] == 0
    plug_in = score_blocks(made({"q": "aabbaa"}), numbers=[2], corrected=False).iloc[0]
    assert plug_in["held-out"] == pytest.approx(np.mean([0.25, 0, 0.25]))
    assert plug_in["same pool"] == pytest.approx(1 / 9)


def test_blocks_that_are_not_whole_or_without_an_answer_do_not_vote() -> None:
    said = {"whole": "abaabb", "silent": "--aabb", "short": "aab bb"}
    terms = score_blocks(made(said), numbers=[2])["share"].droplevel(["dataset", "votes"])
    assert terms["whole"] == pytest.approx((0.5 + 1 + 1) / 3)
    assert terms["silent"] == pytest.approx((1 + 1) / 2)
    assert terms["short"] == pytest.approx((1 + 1) / 2)


def test_two_samples_at_least_are_left() -> None:
    answers = made({"q": "aaab", "r": "abab"})
    votes = score_blocks(answers, numbers=[2, 3]).index.unique("votes")
    assert votes.tolist() == [2]
    nothing = score_blocks(answers, numbers=[3])
    assert nothing.empty
    assert nothing.index.names == ["dataset", "votes", "question_id"]
    assert [*nothing] == ["held-out", "same pool", "share", "noise"]


def test_a_naive_definition_gives_the_same_terms() -> None:
    run = describe_runs(RECORDED_RUNS, "simulated")["run"]["mini-elements"]
    rows = read_answers(run, k=40)
    answers = pd.concat({"mini-elements": rows}, names=["dataset"])
    terms = score_blocks(answers, numbers=[10]).loc["mini-elements", 10]
    for name, samples in list(rows.groupby("question_id"))[:12]:
        held_out, shared = [], []
        for start in range(0, 40, 10):
            block = samples.iloc[start : start + 10]
            most = block["canonical"].value_counts().max()
            for judges, terms_of in ((samples.drop(block.index), held_out), (samples, shared)):
                counts = [judges["correct"].sum()], [judges["correct"].count()]
                [term] = capability_brier_terms([most / 10], *counts, corrected=True)
                terms_of.append(term)
        assert terms.loc[name, "held-out"] == pytest.approx(np.mean(held_out))
        assert terms.loc[name, "same pool"] == pytest.approx(np.mean(shared))


def test_votes_that_judge_themselves_are_flattered() -> None:
    rng = np.random.default_rng(0)
    said = {f"q{n}": "".join(rng.choice([*"aaab"], 40)) for n in range(80)}
    terms = score_blocks(made(said), numbers=[5, 10])
    total = pd.Series(40, terms.xs(5, level="votes").index)
    judged = judge_optimism(terms, total)
    assert judged.index.tolist() == [("gsm8k", 5), ("gsm8k", 10)]
    assert judged["verdict"].tolist() == ["better", "better"]
    gap = (terms["held-out"] - terms["same pool"]).xs(10, level="votes")
    largest = 0.5**0.5 / 40
    alone = mean_interval(gap, bounds=(-largest, largest))
    assert judged.loc[("gsm8k", 10), ["estimate", "low", "high"]].tolist() == pytest.approx(
        [*alone]
    )
    assert judged["p (Holm)"].tolist() == pytest.approx(
        adjusted(judged["p"].to_numpy(float), "holm").tolist()
    )


def test_a_majority_is_right_where_its_samples_are() -> None:
    said = {"right": "aab", "wrong": "abb", "first of two": "ab", "silent": "--"}
    found = find_majorities(made(said))["gsm8k"]
    assert found.to_dict() == {
        "right": "right",
        "wrong": "wrong",
        "first of two": "right",
        "silent": "wrong",
    }


def test_first_votes_are_those_of_the_papers_protocol() -> None:
    first = score_first_votes(RECORDED_RUNS, "simulated", numbers=[5, 10])
    assert first.index.names == ["dataset", "votes", "question_id"]
    results = load_results(Path(RECORDED_RUNS), "simulated", k_c=5, held_out=False, recipe=None)
    terms = brier_terms(results, protocol="paper")["Response consistency"]
    assert first.xs(5, level="votes").to_dict() == pytest.approx(terms.to_dict())


def test_first_votes_need_as_many_samples_as_votes(tmp_path: Path) -> None:
    """Twenty questions have a hundred samples, forty have twelve."""
    sample_unlike_totals(tmp_path, "mini-capitals")
    first = score_first_votes(tmp_path, "simulated")
    assert first.groupby("votes").count().to_dict() == {5: 60, 10: 60, 20: 20}
