from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.confidence.consistency import (
    consistency,
    majority,
    paper_consistency,
    read_answers,
    split_votes,
    vote,
)
from capcal_lib.errors import InputError
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.questions import load_questions
from capcal_lib.runs import Run, find_run
from capcal_lib.runs.store import read_samples
from tests.results.test_results import by_hand, make

NAN = float("nan")


def said(letters: list[str], correct: list[list[float]] | None = None) -> pd.DataFrame:
    """Make answers from letters, a row of them a question: a dot is no answer, a blank no sample; A
    is correct.
    """
    rows = []
    for question, answers in enumerate(letters):
        for index, letter in enumerate(answers):
            if letter == " ":
                continue
            outcome = correct[question][index] if correct else float(letter == "A")
            rows.append((f"q{question}", index, None if letter == "." else letter, outcome))
    return pd.DataFrame(rows, columns=["question_id", "sample_index", "canonical", "correct"])


def term(s: float, outcomes: list[float]) -> float:
    known = [z for z in outcomes if not np.isnan(z)]
    mu, n = np.mean(known), len(known)
    return (s - mu) ** 2 - mu * (1 - mu) / (n - 1)


@pytest.fixture
def many_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capcal_lib.confidence.consistency.VOTE_SPLITS", 20_000)


@pytest.mark.usefixtures("many_splits")
def test_a_split_score_is_the_mean_over_all_splits() -> None:
    letters, k_c = "AAB.BA", 3
    z = [float(letter == "A") for letter in letters]
    terms = []
    for votes in combinations(range(6), k_c):
        (s,) = consistency([[None if letters[at] == "." else letters[at] for at in votes]])
        terms.append(term(s, [z[at] for at in range(6) if at not in votes]))
    found = split_votes(said([letters]), k_c).iloc[0]
    assert found["confidence"] == pytest.approx(2 / 3), "of the first three"
    assert (found["correct"], found["total"]) == (1, 3), "of the others"
    assert found["term"] == pytest.approx(np.mean(terms), abs=0.005)


@pytest.mark.usefixtures("many_splits")
def test_votes_in_the_pool_are_the_same_votes_scored_by_all_samples() -> None:
    letters, k_c = "AAB.BA", 3
    outcomes = [1.0, 1, 0, 0, 0, 1]
    canonical = [None if letter == "." else letter for letter in letters]
    terms = []
    for votes in combinations(range(6), k_c):
        (share,) = consistency([[canonical[place] for place in votes]])
        terms.append(term(share, outcomes))
    answers = said([letters])
    pool = split_votes(answers, k_c, held_out=False).iloc[0]
    assert pool["term"] == pytest.approx(np.mean(terms), abs=0.003)
    assert (pool["correct"], pool["total"]) == (3, 6), "of all"
    assert pool["confidence"] == split_votes(answers, k_c)["confidence"].iloc[0]


@pytest.mark.parametrize(("n", "k_c"), [(4, 2), (12, 10)])
def test_split_scores_are_unbiased_for_known_mu(n: int, k_c: int) -> None:
    """The truth: votes of k_c fresh samples against mu itself."""
    rng = np.random.default_rng(n)
    mu = rng.beta(0.5, 0.5, 1000)
    letters = np.where(rng.random((1000, n)) < mu[:, None], "A", "B").ravel()
    ids = np.repeat(np.arange(1000), n)
    answers = pd.DataFrame(
        {"question_id": ids, "canonical": letters, "correct": (letters == "A") * 1.0}
    )
    found = split_votes(answers, k_c)
    right = rng.binomial(k_c, mu, (50, 1000)) / k_c
    truth = np.mean((np.maximum(right, 1 - right) - mu) ** 2, axis=0)
    difference = found["term"] - truth
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(1000)


def test_the_splits_of_a_question_do_not_depend_on_the_others() -> None:
    both, alone = said(["AABBA.", "ABCABC"]), said(["AABBA."])
    assert split_votes(both, 3).iloc[0].equals(split_votes(alone, 3).iloc[0])
    few = split_votes(said(["AAAA", "AA  "], [[1, NAN, NAN, NAN], [1, 1, 0, 0]]), 2)
    assert len(few) == 1
    assert few["term"].isna().all()


def test_too_few_samples_make_no_rows() -> None:
    assert split_votes(said(["AAA", "AAAA"[:3]]), 2).empty
    assert split_votes(said(["AAAA", "AA  "]), 2).index.tolist() == ["q0"]
    with pytest.raises(InputError, match="k_c must be a whole number from 1"):
        split_votes(said(["AAAA"]), 0)


def test_the_first_samples_vote_as_in_the_authors_code() -> None:
    """By hand: two of three agree; one of three; no answer, which is one half; and a question with
    fewer samples, which has none.
    """
    shares = paper_consistency(said(["AABB", "C..C", "...A", "AA  "]), 3)
    assert shares.index.tolist() == ["q0", "q1", "q2"]
    np.testing.assert_array_equal(shares, [2 / 3, 1 / 3, 1 / 2])


def test_a_missing_vote_agrees_with_nobody_however_it_is_written() -> None:
    assert majority(["B", None, NAN, NAN, "B"]) == ("B", 0.4)
    winner, share = majority([None, NAN])
    assert winner is None
    assert np.isnan(share)


def test_answers_are_read_by_question_and_sample(tmp_path: Path) -> None:
    folder = make(tmp_path, k=4, limit=2)
    make(tmp_path, k=2, limit=3)  # a question with fewer
    names = read_answers(Run(folder), k=9)["question_id"].unique().tolist()
    assert names == sorted(names)
    by_hand(
        folder,
        {
            names[0]: [
                ("A", "correct"),
                ("b", "incorrect"),
                (None, "no_answer"),
                (None, "not_scored"),
            ],
            names[1]: [("C", "incorrect"), ("c", "incorrect")],
            names[2]: [("A", "correct")] * 4,
        },
    )
    answers = read_answers(Run(folder), k=3)
    assert answers["question_id"].tolist() == [names[0]] * 3 + [names[1]] * 2 + [names[2]] * 3
    assert answers["sample_index"].tolist() == [0, 1, 2, 0, 1, 0, 1, 2]
    canonical = answers["canonical"].fillna("none").tolist()
    assert canonical == ["A", "B", "none", "C", "C", "A", "A", "A"]
    assert answers["correct"].tolist() == [1, 0, 0, 0, 0, 1, 1, 1]
    assert read_answers(Run(folder), k=4)["correct"].isna().tolist().index(True) == 3
    with pytest.raises(InputError, match="k_eval must be a whole number from 1"):
        read_answers(Run(folder), k=0)


def test_samples_that_are_correct_without_an_answer_cannot_vote(tmp_path: Path) -> None:
    """As those of a table with a verdict a sample."""
    folder = make(tmp_path, k=2, limit=1)
    [name] = read_answers(Run(folder), k=2)["question_id"].unique()
    by_hand(folder, {name: [(None, "correct"), (None, "incorrect")]})
    assert read_answers(Run(folder), k=2).empty
    by_hand(folder, {name: [(None, "no_answer"), (None, "incorrect")]})
    assert len(read_answers(Run(folder), k=2)) == 2


def test_a_run_votes_and_says_what_it_costs_or_lacks(tmp_path: Path) -> None:
    run = find_run(RECORDED_RUNS, "smollm2-135m", "mini-exam", "test")
    tokens = read_samples(run, ["completion_tokens"])["completion_tokens"]
    table = vote(run, k_eval=8, k_c=3)
    first = read_answers(run, k=3).groupby("question_id")["canonical"]
    shares = first.agg(lambda texts: texts.value_counts().max() / 3)  # NaN without an answer
    pd.testing.assert_series_equal(table["confidence"], shares, check_names=False)
    assert (table["total"] <= 5).all()
    assert table["tokens"].unique() == pytest.approx([3 * tokens[tokens > 0].mean()])
    with pytest.raises(
        InputError, match=r"no question has 5 samples, 3 to vote and 2 to judge; .* --k 5$"
    ):
        vote(run, k_eval=4, k_c=3)
    folder = make(tmp_path, k=4, limit=2)
    names = [question.id for question in load_questions("mini-exam", limit=2)]
    by_hand(folder, {name: [(None, "correct")] * 4 for name in names})
    with pytest.raises(InputError, match="has an extracted answer to vote with; imported samples"):
        vote(Run(folder), k_c=2)
