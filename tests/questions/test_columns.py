"""Columns of a row become a question."""

import re
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.errors import InputError
from capcal_lib.manifests import Columns, load_dataset
from capcal_lib.questions import Answer, Question, load_questions
from capcal_lib.questions.columns import make_question, read_options, right_option
from tests.questions.files import Describe, jsonl


def test_columns_are_mapped(describe: Describe) -> None:
    path = describe(
        more=(
            "columns: {id: key, question: prompt.text, answer: gold, aliases: also, subject: "
            "area}\n"
        ),
        kind="number",
    )
    row = {
        "key": 7,
        "prompt": {"text": "How many?"},
        "gold": 1.5,
        "also": 2,
        "area": "sums",
        "question": "no",
    }
    path.write_bytes(jsonl([row]))
    assert load_questions("law") == (
        Question("7", "How many?", Answer("number", "1.5", ("2",)), "sums"),
    )


def test_lists_in_a_csv_are_those_of_json(describe: Describe) -> None:
    path = describe("law.csv", more="columns: {aliases: also}\n")
    text = '["City of Light", "it\'s"]'
    pd.DataFrame([{"question": "Where?", "answer": "Paris", "also": text}]).to_csv(path)
    assert load_questions("law")[0].answer == Answer("short", "Paris", ("City of Light", "it's"))
    pd.DataFrame([{"question": "Where?", "answer": text, "also": ""}]).to_csv(path)
    assert load_questions("law")[0].answer == Answer("short", "City of Light", ("it's",))


def test_lists_as_python_prints_them_are_refused(describe: Describe) -> None:
    text = """['City of Light', "it's"]"""
    path = describe("law.csv", more="columns: {aliases: also}\n")
    pd.DataFrame([{"question": "Where?", "answer": "Paris", "also": text}]).to_csv(path)
    with pytest.raises(InputError, match=r"is no list as JSON writes one; write table\.to_json"):
        load_questions("law")


def test_an_interval_is_no_list_and_numbers_are_options(describe: Describe) -> None:
    path = describe("law.csv", "math")
    for interval in ("[-2, 7]", "(1, 2)", "[0, 1)"):
        pd.DataFrame([{"question": "Solve.", "answer": interval}]).to_csv(path)
        assert load_questions("law")[0].answer == Answer("math", interval)
    path = describe("law.csv", "choice")
    for options in ("[3, 4, 1]", '["3", "4", "1"]'):
        row = {"question": "How many?", "choices": options, "answer": "C"}
        pd.DataFrame([row]).to_csv(path)
        assert load_questions("law")[0].answer == Answer("choice", "C", ("1",))


def test_rows_without_an_id_are_numbered(describe: Describe) -> None:
    describe().write_bytes(jsonl([{"question": "Why?", "answer": ["so", "thus"]}] * 2))
    first, second = load_questions("law")
    assert (first.id, second.id) == ("law/all/0", "law/all/1")
    assert first.answer == Answer("short", "so", ("thus",))


@settings(max_examples=25)
@given(
    options=st.lists(st.text("xyz", min_size=2, max_size=6), min_size=2, max_size=26, unique=True),
    data=st.data(),
)
def test_any_number_of_options_and_any_way_to_name_the_right_one(
    options: list[str], data: st.DataObject
) -> None:
    law = load_dataset("mini-exam").model_copy(update={"name": "law", "builtin": False})
    right = data.draw(st.integers(0, len(options) - 1))
    letter = chr(ord("A") + right)
    for answer in (right, str(right), letter, options[right]):
        row = {"question": "Which?", "choices": options, "answer": answer}
        question = make_question(law, Columns(), row, "law/all/0")
        assert question.answer == Answer("choice", letter, (options[right],))
        assert question.text.splitlines()[1:] == [
            f"{chr(ord('A') + i)}. {text}" for i, text in enumerate(options)
        ]
        assert question.options == len(options)


def test_options_in_columns_of_their_own(describe: Describe) -> None:
    path = describe("law.csv", "choice", "columns: {choices: [a, b, c]}\n")
    path.write_text(
        "id,question,a,b,c,answer\n1,Which?,tort,crime,,B\n2,Which?,tort,crime,both,both\n"
    )
    few, more = load_questions("law")
    assert (few.text, few.options) == ("Which?\nA. tort\nB. crime", 2)
    assert (more.answer, more.options) == (Answer("choice", "C", ("both",)), 3)
    path.write_text("id,question,a,b,c,answer\n1,Which?,tort,,both,A\n")
    with pytest.raises(InputError, match=r"row 0: malformed \(the question or an option is empty"):
        load_questions("law")


@pytest.mark.parametrize(
    ("kind", "row", "message"),
    [
        (
            "short",
            {"question": "Why?", "answer": ""},
            "row 0: malformed (the gold answer must be a text",
        ),
        ("short", {"question": "Why?", "answer": True}, "True is neither a text nor a number"),
        (
            "short",
            {"question": "", "answer": "so"},
            "row 0: malformed (the question or an option is empty)",
        ),
        (
            "short",
            {"prompt": "Why?", "answer": "so"},
            "no column 'question', which law should have; found: prompt",
        ),
        (
            "short",
            {"question": "Why?", "answer": "a", "choices": ["a", "b"]},
            "it has choices, but the manifest says kind",
        ),
        (
            "choice",
            {"question": "Which?", "answer": "E", "choices": ["a", "b"]},
            "'E' is not the text, letter or number of one option",
        ),
        (
            "choice",
            {"question": "Which?", "answer": 2, "choices": ["a", "b"]},
            "'2' is not the text, letter or number of one option",
        ),
        (
            "choice",
            {"question": "Which?", "answer": "A", "choices": ["B", "A"]},
            "'A' is not the text, letter or number of one option",
        ),
        (
            "choice",
            {"question": "Which?", "answer": "A", "choices": ["a"]},
            "a question has 2 to 26 options; got 1",
        ),
        (
            "choice",
            {"question": "Which?", "answer": "A", "choices": ["a"] * 27},
            "a question has 2 to 26 options; got 27",
        ),
    ],
)
def test_rows_that_cannot_be_asked(
    describe: Describe, kind: str, row: dict[str, Any], message: str
) -> None:
    describe(kind=kind).write_bytes(jsonl([row]))
    with pytest.raises(InputError) as raised:
        load_questions("law")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("choices", "answer", "letter"),
    [
        ({"text": ["red", "blue", "grey"], "label": ["1", "2", "3"]}, "2", "B"),
        ({"text": ["red", "blue", "grey"], "label": ["1", "2", "3"]}, "3", "C"),
        ({"text": ["C", "D", "A"], "label": ["A", "B", "C"]}, "A", "A"),
        ({"text": ["4", "1"], "label": [4, 1]}, 1, "B"),
        ({"text": ["red", "blue", "grey"], "label": ["1", "2", "3"]}, "grey", "C"),
    ],
)
def test_labels_of_options_are_read(
    describe: Describe, choices: Any, answer: Any, letter: str
) -> None:
    row = {"id": "a", "question": "Sky?", "choices": choices, "answer": answer}
    more = "columns: {choices: choices.text, answer: answer}\n"
    describe(kind="choice", more=more).write_bytes(jsonl([row]))
    [question] = load_questions("law")
    assert question.answer.gold == letter
    assert question.options == len(choices["text"])


def test_options_may_be_called_so_and_be_texts_by_their_labels(describe: Describe) -> None:
    texts = {"A": "red", "B": "blue", "C": "grey"}
    path = describe(kind="choice", more="columns: {choices: options}\n")
    for answer in ("C", "grey"):
        path.write_bytes(jsonl([{"question": "Which?", "options": texts, "answer": answer}]))
        assert load_questions("law")[0].answer == Answer("choice", "C", ("grey",))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ("red", "choices 'red' are no list"),
        ({"text": ["red", "blue"], "label": ["1"]}, "2 options have 1 labels"),
        ({"text": ["red", "blue"]}, "['red', 'blue'] is neither a text nor a number"),
        (["red", None], "None is neither a text nor a number"),
        ({"A": "red", "B": "red"}, "'red' is not the text, letter or number of one option"),
    ],
)
def test_what_are_no_options_is_refused(choices: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        right_option("red", *read_options(choices))


def test_a_number_that_is_the_text_of_another_option_is_refused() -> None:
    options = ["3", "4", "1", "2"]
    assert right_option(1, options, []) == right_option(1.0, options, []) == 1
    assert right_option("2", ["red", "green", "blue"], []) == 2
    assert right_option("4", ["5", "6", "4"], []) == 2, "which is no number of an option"
    with pytest.raises(ValueError, match="'1' is the text of one option and the number of anoth"):
        right_option("1", options, [])
