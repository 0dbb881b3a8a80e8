"""Evaluation questions that are like training questions: by hand, and those that are kept."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from find_overlaps import COMPARED, OVERLAPS, compare_questions, find_overlaps, words_of

from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probes.training import runs_for_probes, training_data
from capcal_lib.questions import Answer, Question, with_options
from capcal_lib.results import load_results


def test_words_are_those_of_a_question_and_its_options_without_their_letters() -> None:
    answer = Answer("choice", "A")
    text = with_options("Is A. Smith\nright?", ["B. Jones, yes", "No"])
    question = Question("mine/1", text, answer, options=2)
    assert words_of(question)[-5:] == ["right", "b", "jones", "yes", "no"]
    free = Question("mine/2", "A. is $x^2$", Answer("short", "4"))
    assert words_of(free) == ["a", "is", "x", "2"]


def test_three_kinds_of_likeness_by_hand() -> None:
    letters = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"]
    training = [letters, ["x", "y"]]
    evaluated = [
        ["x", "y"],  # a copy
        ["y", "x"],  # the same words in another order
        [*letters[1:], "z"],  # thirteen in a row, and 13 of 15 words
        [*letters[:12], "z", *letters[12:]],  # twelve in a row, 14 of 15 words
        ["x", "q", "r"],  # one of four words
        ["nothing"],
    ]
    found = compare_questions(evaluated, training)
    assert found["exact"].tolist() == [True, False, False, False, False, False]
    assert found["ngram"].tolist() == [False, False, True, False, False, False]
    expected = [1, 1, 13 / 15, 14 / 15, 1 / 4, 0]
    assert found["jaccard"].tolist() == pytest.approx(expected)


def test_likeness_is_what_sets_of_words_say() -> None:
    rng = np.random.default_rng(0)
    made = [[f"w{each}" for each in rng.integers(30, size=rng.integers(1, 20))] for _ in range(60)]
    evaluated, training = made[:25], made[25:]
    found = compare_questions(evaluated, training)
    for words, jaccard in zip(evaluated, found["jaccard"], strict=True):
        shares = [len({*words} & {*other}) / len({*words} | {*other}) for other in training]
        assert jaccard == pytest.approx(max(shares))


def test_the_overlaps_that_are_kept_are_those_of_the_recorded_questions(
    monkeypatch: pytest.MonkeyPatch, real_data: Path
) -> None:
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(real_data))
    pd.testing.assert_frame_equal(find_overlaps(), pd.read_csv(OVERLAPS))


def test_the_questions_of_other_models_are_some_of_those_compared() -> None:
    most: dict[tuple[str, str], set[str]] = {}
    for model in ("qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b", "smollm2-135m"):
        results = load_results(RECORDED_RUNS, model)
        for dataset, run in runs_for_probes(RECORDED_RUNS, model, "training"):
            if dataset.name in COMPARED:
                asked = results.loc[dataset.name].index
                for role, names in (("training", training_data(run)[0].index), ("asked", asked)):
                    assert {*names} <= most.setdefault((role, dataset.name), {*names})
    assert len(most) == 2 * len(COMPARED)
