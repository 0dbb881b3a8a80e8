from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.confidence import read_answers
from capcal_lib.confidence.consistency import split_votes
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results import Counting, brier_terms, describe_runs, load_results
from capcal_lib.studies.response_consistency import (
    score_first_votes,
    score_votes,
    votes_of_datasets,
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


def test_votes_are_scored_by_hand() -> None:
    """Of aabbaa two vote: in 7 of 15 pairs they are alike. Others are right in 2 or 4 of 4 then."""
    terms = score_votes(made({"q": "aabbaa"}), numbers=[2])
    assert terms.index.tolist() == [("gsm8k", 2, "q")]
    pairs = [*combinations("aabbaa", 2)]
    shares = [1.0 if one == two else 0.5 for one, two in pairs]
    right = [(4 - pair.count("a")) / 4 for pair in pairs]
    held_out = [(s - m) ** 2 - m * (1 - m) / 3 for s, m in zip(shares, right, strict=True)]
    assert terms.iloc[0] == pytest.approx(np.mean(held_out), abs=0.05)  # over 100 choices


def test_the_scores_are_those_of_the_main_table() -> None:
    results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mini-exam"], recipe=None)
    run = describe_runs(Counting(RECORDED_RUNS, "smollm2-135m"))["run"]["mini-exam"]
    answers = pd.concat({"mini-exam": read_answers(run, k=100)}, names=["dataset"])
    terms = score_votes(answers, numbers=[10]).xs(10, level="votes")
    main = brier_terms(results)["Response consistency"].dropna()
    assert terms.to_dict() == pytest.approx(main.to_dict())


def test_two_samples_at_least_are_left() -> None:
    answers = made({"q": "aaab", "r": "ababab"})  # both have four
    votes = score_votes(answers, numbers=[2, 3]).index.unique("votes")
    assert votes.tolist() == [2]
    nothing = score_votes(answers, numbers=[3])
    assert nothing.empty
    assert nothing.index.names == ["dataset", "votes", "question_id"]
    assert votes_of_datasets(made({"q": "aaaabbb"})).to_dict() == {"gsm8k": 5}
    assert votes_of_datasets(made({"q": "aaabbb"})).empty


def test_a_question_without_an_answer_does_not_vote() -> None:
    terms = score_votes(made({"q": "aabb", "silent": "----"}), numbers=[2])
    assert terms.index.get_level_values("question_id").tolist() == ["q"]


def test_votes_that_judge_themselves_are_flattered() -> None:
    """By twice the covariance of a vote with the share of its block, times k_c / n."""
    rng = np.random.default_rng(2)
    draws = rng.choice([*"aaaab"], (20_000, 5)) == "a"
    share = np.maximum(draws.mean(axis=1), 1 - draws.mean(axis=1))
    covariance = np.cov(share, draws.mean(axis=1))[0, 1]
    said = {f"q{n}": "".join(rng.choice([*"aaaab"], 60)) for n in range(150)}
    for n in (12, 60):
        answers = made({name: letters[:n] for name, letters in said.items()})
        apart, shared = (split_votes(answers, 5, held_out=way)["term"] for way in (True, False))
        flattered = (apart - shared).mean()
        assert flattered == pytest.approx(2 * 5 / n * covariance, rel=0.25)


def test_first_votes_are_those_of_the_papers_protocol() -> None:
    first = score_first_votes(Counting(RECORDED_RUNS, "simulated"), numbers=[5, 10])
    assert first.index.names == ["dataset", "votes", "question_id"]
    results = load_results(Path(RECORDED_RUNS), "simulated", k_c=5, held_out=False, recipe=None)
    terms = brier_terms(results, protocol="paper")["Response consistency"]
    assert first.xs(5, level="votes").to_dict() == pytest.approx(terms.to_dict())


def test_first_votes_need_as_many_samples_as_votes(tmp_path: Path) -> None:
    """Twenty questions have a hundred samples, forty have twelve."""
    sample_unlike_totals(tmp_path, "mini-capitals")
    first = score_first_votes(Counting(tmp_path, "simulated"))
    assert first.groupby("votes").count().to_dict() == {5: 60, 10: 60, 20: 20}
    few = score_first_votes(Counting(tmp_path, "simulated", k_eval=5))
    assert few.groupby("votes").count().to_dict() == {5: 60, 10: 60, 20: 20}, "others may vote"
