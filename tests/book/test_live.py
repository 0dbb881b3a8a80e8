from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from capcal_lib.book.live import _holm, compare, first, sample_again, spread
from capcal_lib.errors import InputError
from capcal_lib.grading import grade
from capcal_lib.grading.counts import Counts
from capcal_lib.manifests import RECORDED_RUNS
from capcal_lib.results.evaluation import Evaluation, load_evaluation
from capcal_lib.sampling.store import find_run, read_samples

SET = "mini-capitals"


@pytest.fixture(scope="module")
def recorded() -> Evaluation:
    return load_evaluation(RECORDED_RUNS, "simulated", SET)


def with_counts(one: Evaluation, correct: list[int], total: list[int]) -> Evaluation:
    """Keep the first questions, with these counts."""
    names, zeros = one.counts.question_ids[: len(correct)], np.zeros(len(correct), np.int64)
    return replace(one, counts=Counts(names, np.array(correct), np.array(total), zeros, zeros), confidences={})


@pytest.mark.parametrize("n", [1, 2, 7, 16, 139, 140, 1000])
def test_spread_covers_the_range_hardest_first(recorded: Evaluation, n: int) -> None:
    mu = dict(zip(recorded.counts.question_ids, recorded.counts.expected_accuracy, strict=True))
    chosen = [mu[question.id] for question in spread(recorded, n)]
    assert len(chosen) == min(n, len(mu))
    assert chosen == sorted(chosen)
    assert chosen[0] == min(mu.values())
    assert n == 1 or chosen[-1] == max(mu.values())


def test_spread_steps_evenly_through_the_ranking(recorded: Evaluation) -> None:
    order = recorded.counts.question_ids[np.argsort(recorded.counts.expected_accuracy, kind="stable")].tolist()
    places = [order.index(question.id) for question in spread(recorded, 16)]
    steps = np.diff(places)
    assert steps.max() - steps.min() <= 1


def test_spread_is_deterministic_and_skips_what_was_not_scored(recorded: Evaluation) -> None:
    assert spread(recorded, 9) == spread(recorded, 9)
    one = with_counts(recorded, [0, 0, 5, 9], [10, 0, 10, 10])
    assert [question.id for question in spread(one, 10)] == one.counts.question_ids[[0, 2, 3]].tolist()


def test_no_question_and_no_sample_are_refused(recorded: Evaluation) -> None:
    with pytest.raises(InputError, match="n_questions must be a whole number from 1"):
        spread(recorded, 0)
    with pytest.raises(InputError, match="k must be a whole number from 1"):
        sample_again(recorded, spread(recorded, 1), k=0, seed=1)


def test_samples_are_fresh_and_graded_each_on_its_own(recorded: Evaluation) -> None:
    questions = spread(recorded, 4)
    again = sample_again(recorded, questions, k=5, seed=7)
    asked = {question.id: question for question in questions}
    assert len(again) == 20
    assert not again.duplicated(["question_id", "sample_index"]).any()
    for _, row in again.iterrows():
        alone = grade(row["response"], asked[row["question_id"]].answer)
        assert (row["verdict"], row["reason"]) == (alone.verdict, alone.reason)
        assert row["question"] == asked[row["question_id"]].text
    pd.testing.assert_frame_equal(again, sample_again(recorded, questions, k=5, seed=7))
    other = sample_again(recorded, questions, k=5, seed=8)
    assert (other["response"] != again["response"]).any()
    folder: Path = find_run(RECORDED_RUNS, "simulated", SET, "test")
    both = read_samples(folder).merge(again, on=["question_id", "sample_index"])
    assert (both["response_x"] != both["response_y"]).mean() > 0.2


def test_first_shows_one_sample_a_question(recorded: Evaluation) -> None:
    questions = spread(recorded, 3)
    shown = first(sample_again(recorded, questions, k=2, seed=7))
    assert shown["question"].tolist() == [question.text for question in questions]
    assert shown.columns.tolist() == ["question", "response", "extracted", "verdict", "reason"]


def live_rows(names: list[str], correct: list[int], total: list[int], not_scored: int = 0) -> pd.DataFrame:
    rows = []
    for name, right, scored in zip(names, correct, total, strict=True):
        said = ["correct"] * right + ["incorrect"] * (scored - right) + ["not_scored"] * not_scored
        rows += [(name, index, verdict) for index, verdict in enumerate(said)]
    return pd.DataFrame(rows, columns=["question_id", "sample_index", "verdict"]).sample(frac=1, random_state=0)


def fisher(a: int, n: int, b: int, m: int) -> float:
    """Two-sided by definition: the chance of all tables with these margins that are no likelier than this one."""
    chances = hypergeom.pmf(np.arange(n + 1), n + m, a + b, n)
    return float(chances[chances <= chances[a] * (1 + 1e-7)].sum())


def test_comparison_by_hand(recorded: Evaluation) -> None:
    correct, total, live, live_total = [9, 1, 5], [10, 10, 10], [2, 1, 4], [10, 8, 10]
    one = with_counts(recorded, correct, total)
    table = compare(one, live_rows(one.counts.question_ids.tolist()[::-1], live[::-1], live_total[::-1], not_scored=2))
    assert table["question_id"].tolist() == one.counts.question_ids[[1, 2, 0]].tolist()  # hardest first
    assert table["correct"].tolist() == [1, 5, 9]
    assert table["total"].tolist() == [10, 10, 10]
    assert table["live correct"].tolist() == [1, 4, 2]
    assert table["live total"].tolist() == [8, 10, 10]
    expected = [fisher(1, 10, 1, 8), fisher(5, 10, 4, 10), fisher(9, 10, 2, 10)]
    np.testing.assert_allclose(table["p"], expected, rtol=1e-9)
    assert expected[2] < 0.05 / 3
    assert table["differs"].tolist() == [False, False, True]
    assert set(table["evidence"]) == {"simulated"}
    assert not compare(one, live_rows(one.counts.question_ids.tolist(), live, live_total), level=1e-4)["differs"].any()


def test_a_live_question_that_nobody_could_grade_does_not_differ(recorded: Evaluation) -> None:
    one = with_counts(recorded, [10, 3], [10, 10])
    table = compare(one, live_rows(one.counts.question_ids.tolist(), [0, 3], [0, 10], not_scored=4))
    assert table["live total"].tolist() == [10, 0]
    assert table["p"].tolist() == [1.0, 1.0]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 0.2), min_size=1, max_size=8), st.sampled_from([0.01, 0.05, 0.2]))
def test_holm_by_its_definition(p: list[float], level: float) -> None:
    rejected = [False] * len(p)
    left = list(range(len(p)))
    while left:
        smallest = min(left, key=lambda row: p[row])
        if p[smallest] > level / len(left):
            break
        rejected[smallest] = True
        left.remove(smallest)
    assert _holm(np.array(p), level).tolist() == rejected


def test_an_honest_repetition_passes_and_another_model_fails(recorded: Evaluation) -> None:
    questions = spread(recorded, 12)
    live = sample_again(recorded, questions, k=40, seed=2026)
    assert not compare(recorded, live)["differs"].any()
    names = [question.id for question in questions]
    turned = live.assign(question_id=live["question_id"].map(dict(zip(names, names[::-1], strict=True))))
    assert compare(recorded, turned)["differs"].sum() >= 4
