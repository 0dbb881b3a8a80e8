import json
import re

import numpy as np
import pandas as pd
import pytest

from capcal_lib.book.experiments import (
    evenly,
    explorer_data,
    first_lines,
    guess_data,
    recorded_answers,
    widget,
)
from capcal_lib.book.tables import Html
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.questions import load_questions
from capcal_lib.results import load_results
from capcal_lib.runs import open_runs


def test_data_of_a_widget_is_json_that_ends_no_script() -> None:
    data = {"text": "</script><script>alert(1)"}
    html = widget("coin", data, "<b>", fallback=Html(""), evidence="measured").html
    [text] = re.findall(r"<script type='application/json'>(.*?)</script>", html)
    assert json.loads(text) == data
    assert "&lt;b&gt; · " in html
    with pytest.raises(ValueError, match="not JSON compliant"):  # a browser reads no NaN
        widget("coin", {"p": np.nan}, "Toss.", fallback=Html(""), evidence="measured")


def test_answers_and_guesses_are_those_of_the_store() -> None:
    results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mini-capitals"])
    ten = evenly(results, 10)
    [run] = [
        run
        for run in open_runs(RECORDED_RUNS, model="smollm2-135m", dataset="mini-capitals")
        if run.place["split"] == "test"
    ]
    answers = recorded_answers(run, ten, 100)
    assert [one["verdicts"].count("1") for one in answers] == ten["correct"].tolist()
    assert all(one["text"].endswith("?") for one in answers)
    golds = {one.id: one.answer.gold for one in load_questions("mini-capitals")}
    assert golds[ten.index[-1][1]] in answers[-1]["answers"], "the easiest"
    guesses = guess_data(ten[["correct", "total", "P(True)"]])
    assert [one["correct"] for one in guesses["questions"]] == ten["correct"].tolist()
    assert guesses["methods"] == {"P(True)": ten["P(True)"].round(3).tolist()}
    assert {*guesses["colors"]} == {"P(True)", "You", "Uniform random", "constant"}


def test_a_missing_confidence_is_null_for_the_widget_of_scores() -> None:
    results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["triviaqa"])
    [shown] = explorer_data(results.assign(elsewhere=np.nan), ["triviaqa"])["sets"]
    assert "elsewhere" not in shown["methods"]
    missing = results["Verbalized confidence"].isna()
    assert missing.any()
    for value, null in zip(shown["methods"]["Verbalized confidence"], missing, strict=True):
        assert (value is None) == null


def test_a_question_of_several_lines_is_shown_by_its_first() -> None:
    key = ("mini-exam", load_questions("mini-exam")[0].id)
    [line] = first_lines(pd.MultiIndex.from_tuples([key], names=["dataset", "question_id"]))
    assert line == "What is the capital of Morocco?"  # and four choices
