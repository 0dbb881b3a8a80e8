"""What the page to try shows is what was recorded."""

import pandas as pd
import pytest

from capcal_lib.book.experiments import (
    accuracies_by_coverage,
    explorer_data,
    first_lines,
    guess_data,
    recorded_answers,
    ten_to_guess,
)
from capcal_lib.grading.verdicts import read_verdicts
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.questions import load_questions
from capcal_lib.results import Counting, describe_runs, load_results
from capcal_lib.results.targets import judge_alike

SET = "mini-elements"
RESULTS = load_results(RECORDED_RUNS, "simulated", datasets=[SET])
RUN = describe_runs(Counting(RECORDED_RUNS, "simulated")).loc[SET, "run"]


def test_answers_come_in_the_order_of_their_samples() -> None:
    shown = RESULTS.head(2)
    verdicts = read_verdicts(RUN)
    for question, key in zip(recorded_answers(RUN, shown, 7), shown.index, strict=True):
        own = verdicts[verdicts["question_id"] == key[1]].sort_values("sample_index").head(7)
        right = ["1" if verdict == "correct" else "0" for verdict in own["verdict"]]
        assert question["verdicts"] == "".join(right)
        assert len(question["answers"]) == 7
        assert question["text"] == first_lines(shown.index)[key]


def test_a_question_that_is_not_at_hand_goes_by_its_id() -> None:
    index = pd.MultiIndex.from_tuples([(SET, "nobody/knows")], names=["dataset", "question_id"])
    assert first_lines(index).tolist() == ["nobody/knows"]


def test_ten_questions_are_guessed_that_are_not_shown_elsewhere() -> None:
    shown = RESULTS.head(24)
    ten = ten_to_guess(RESULTS, [SET], shown, public=False, seed=1)
    assert len(ten) == 10
    assert not {*ten.index} & {*shown.index}
    data = guess_data(ten)
    assert [one["correct"] for one in data["questions"]] == ten["correct"].tolist()
    assert {*data["methods"]} <= {*data["colors"]}


def test_the_explorer_has_each_count_and_says_where_a_confidence_is_missing() -> None:
    gap = RESULTS.copy()
    gap.iloc[0, gap.columns.get_loc("P(True)")] = None
    (found,) = explorer_data(gap, [SET])["sets"]
    assert found["correct"] == RESULTS["correct"].tolist()
    assert found["methods"]["P(True)"][0] is None
    assert None not in found["methods"]["P(True)"][1:]


def test_who_answers_everything_has_the_mean_accuracy() -> None:
    results = judge_alike(RESULTS)
    table = accuracies_by_coverage(results, SET)
    asked = results.loc[[SET]].dropna(subset="P(True)")
    mean = (asked["correct"] / asked["total"]).mean()
    assert table.loc["P(True)", "100 %"] == pytest.approx(mean)


def test_of_a_question_with_options_the_first_line_is_shown() -> None:
    name = "mini-exam/test/capital-of-morocco"
    index = pd.MultiIndex.from_tuples([("mini-exam", name)], names=["dataset", "question_id"])
    (line,) = first_lines(index)
    (text,) = [question.text for question in load_questions("mini-exam") if question.id == name]
    assert "\n" in text
    assert text.startswith(f"{line}\n")
