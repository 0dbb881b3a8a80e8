from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.confidence.consistency import (
    Answers,
    consistency,
    read_answers,
    split_votes,
    vote_terms,
)
from capcal_lib.errors import InputError
from capcal_lib.manifests import RECORDED_RUNS
from capcal_lib.runs import Run
from tests.results.test_results import by_hand, make

NAN = float("nan")


def said(rows: list[str], correct: list[list[float]] | None = None) -> Answers:
    """Make answers from letters: a dot is no answer, a blank no sample; A is correct."""
    canonical = np.array(
        [[None if letter in ". " else letter for letter in row] for row in rows], dtype=object
    )
    drawn = np.array([[letter != " " for letter in row] for row in rows])
    graded = np.array(correct or [[float(letter == "A") for letter in row] for row in rows])
    return Answers(
        np.array([f"q{i}" for i in range(len(rows))]),
        canonical,
        np.where(drawn, graded, NAN),
        drawn,
        12.0,
    )


def term(s: float, outcomes: list[float]) -> float:
    known = [z for z in outcomes if not np.isnan(z)]
    mu, n = np.mean(known), len(known)
    return (s - mu) ** 2 - mu * (1 - mu) / (n - 1)


def test_by_hand() -> None:
    table = vote_terms(said(["AABBBA"]), 2)
    assert table["row"].tolist() == [0, 0, 0]
    assert table["confidence"].tolist() == [1.0, 1.0, 0.5]
    assert table["right"].tolist() == [1.0, 0.0, 0.0]  # of a tie, the answer that comes first
    outcomes = [1.0, 1, 0, 0, 0, 1]
    for block, row in table.iterrows():
        start = 2 * int(block)  # type: ignore[call-overload]
        assert row["disjoint"] == pytest.approx(
            term(row["confidence"], outcomes[:start] + outcomes[start + 2 :])
        )
        assert row["same pool"] == pytest.approx(term(row["confidence"], outcomes))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text("AABC. ", min_size=9, max_size=9), min_size=1, max_size=4), st.integers(1, 5)
)
def test_every_block_votes_as_if_alone(rows: list[str], k_c: int) -> None:
    answers = said(rows)
    table = vote_terms(answers, k_c)
    expected = []
    for number, row in enumerate(rows):
        letters = [letter for letter in row if letter != " "]
        if len(letters) < k_c + 2:
            continue
        z = [float(letter == "A") for letter in letters]
        for start in range(0, len(letters) // k_c * k_c, k_c):
            votes = [None if letter == "." else letter for letter in letters[start : start + k_c]]
            (s,) = consistency([votes])
            ballot = Counter(vote for vote in votes if vote)
            right = float(ballot.most_common(1)[0][0] == "A") if ballot else NAN
            rest = z[:start] + z[start + k_c :]
            expected.append((number, s, right, term(s, rest), term(s, z)))
    assert len(table) == len(expected)
    if expected:
        np.testing.assert_allclose(table.to_numpy(float), expected, atol=1e-12)


def test_what_is_not_scored_is_no_wrong_answer() -> None:
    answers = said(["AAAAAA"], [[1, NAN, 1, 1, 0, 1]])
    table = vote_terms(answers, 2)
    np.testing.assert_allclose(table["right"], [1.0, 1.0, 0.5])
    assert table["disjoint"][0] == pytest.approx(term(1.0, [1, 1, 0, 1]))
    none = vote_terms(said(["AAAA"], [[1, 1, NAN, 0]]), 2)
    assert none["disjoint"].isna().tolist() == [True, False]  # one scored sample outside is too few
    assert none["same pool"].isna().tolist() == [True, False]


def test_blocks_and_their_targets_share_no_sample_and_so_have_no_optimism() -> None:
    """Of answers that are drawn apart, the disjoint score is the same-pool score of fresh samples,
    on average.
    """
    rng = np.random.default_rng(0)
    mu = rng.random(4000)
    letters = np.where(rng.random((4000, 30)) < mu[:, None], "A", "B")
    answers = Answers(
        np.arange(4000).astype(str),
        letters.astype(object),
        (letters == "A") * 1.0,
        np.ones((4000, 30), bool),
        1.0,
    )
    table = vote_terms(answers, 10)
    truth = np.mean((table["confidence"] - mu[table["row"]]) ** 2)
    spread = table["disjoint"].std() / np.sqrt(4000)
    assert abs(table["disjoint"].mean() - truth) < 4 * spread
    assert table["same pool"].mean() < table["disjoint"].mean()


def test_a_split_score_is_the_mean_over_all_splits() -> None:
    letters, k_c = "AAB.BA", 3
    z = [float(letter == "A") for letter in letters]
    terms = []
    for votes in combinations(range(6), k_c):
        (s,) = consistency([[None if letters[at] == "." else letters[at] for at in votes]])
        terms.append(term(s, [z[at] for at in range(6) if at not in votes]))
    found = split_votes(said([letters]), k_c, splits=20_000).iloc[0]
    assert found["confidence"] == pytest.approx(2 / 3), "of the first three"
    assert (found["correct"], found["total"]) == (1, 3), "of the others"
    assert found["term"] == pytest.approx(np.mean(terms), abs=0.005)


@pytest.mark.parametrize(("n", "k_c"), [(4, 2), (12, 10), (20, 10)])
def test_split_scores_are_unbiased_for_known_mu(n: int, k_c: int) -> None:
    """The truth: votes of k_c fresh samples against mu itself."""
    rng = np.random.default_rng(n)
    mu = rng.beta(0.5, 0.5, 4000)
    letters = np.where(rng.random((4000, n)) < mu[:, None], "A", "B").astype(object)
    ids, there = np.arange(4000).astype(str), np.ones((4000, n), bool)
    found = split_votes(Answers(ids, letters, (letters == "A") * 1.0, there, 1.0), k_c, splits=30)
    right = rng.binomial(k_c, mu, (50, 4000)) / k_c
    truth = np.mean((np.maximum(right, 1 - right) - mu) ** 2, axis=0)
    difference = found["term"] - truth
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(4000)


def test_the_splits_of_a_question_do_not_depend_on_the_others() -> None:
    both, alone = said(["AABBA.", "ABCABC"]), said(["AABBA."])
    assert split_votes(both, 3).iloc[0].equals(split_votes(alone, 3).iloc[0])
    few = split_votes(said(["AAAA", "AA  "], [[1, NAN, NAN, NAN], [1, 1, 0, 0]]), 2)
    assert len(few) == 1
    assert few["term"].isna().all()


def test_too_few_samples_make_no_rows() -> None:
    assert vote_terms(said(["AAA", "AAAA"[:3]]), 2).empty
    assert vote_terms(said(["AAAA", "AA  "]), 2)["row"].tolist() == [0, 0]
    with pytest.raises(InputError, match="k_c must be a whole number from 1"):
        vote_terms(said(["AAAA"]), 0)


def test_answers_are_read_by_question_and_sample(tmp_path: Path) -> None:
    folder = make(tmp_path, k=4, limit=2)
    make(tmp_path, k=2, limit=3)  # a question with fewer
    names = read_answers(Run(folder), k=9).question_ids.tolist()
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
    assert answers.canonical.tolist() == [["A", "B", None], ["C", "C", None], ["A"] * 3]
    assert answers.drawn.tolist() == [[True] * 3, [True, True, False], [True] * 3]
    np.testing.assert_array_equal(answers.correct, [[1, 0, 0], [0, 0, NAN], [1, 1, 1]])
    assert np.isnan(read_answers(Run(folder), k=4).correct[0, 3])
    assert answers.tokens > 0


def test_no_samples_in_the_range_is_said(tmp_path: Path) -> None:
    folder = make(tmp_path, k=2, limit=1)
    with pytest.raises(InputError, match="k_eval must be a whole number from 1"):
        read_answers(Run(folder), k=0)


def test_a_recorded_run() -> None:
    (folder,) = (RECORDED_RUNS / "simulated" / "mini-exam-test").iterdir()
    answers = read_answers(Run(folder), k=100)
    assert answers.canonical.shape == answers.correct.shape == (102, 100)
    assert set(np.unique(answers.canonical[answers.canonical != None])) <= set("ABCD")  # noqa: E711
