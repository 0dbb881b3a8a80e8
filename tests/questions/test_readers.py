"""Rows of the paper's data sets become questions."""

import gzip
import json
import random
from pathlib import Path

import pytest

from capcal_lib.errors import InputError
from capcal_lib.questions import Answer, Question, load_questions
from tests.questions.files import GSM8K, write


def test_rows_become_questions(data_dir: Path) -> None:
    write(data_dir, "gsm8k/test.jsonl.gz", GSM8K)
    assert load_questions("gsm8k") == (
        Question("gsm8k/test/0", "How many?", Answer("number", "4")),
        Question("gsm8k/test/1", "How much?", Answer("number", "1,000")),
    )


def test_the_subject_in_a_local_simpleqa_is_its_topic(data_dir: Path) -> None:
    row = {"id": "s/0", "question": "Who?", "answer": "Ada", "topic": "Art"}
    write(data_dir, "simpleqa/test.jsonl.gz", [row])
    assert load_questions("simpleqa") == (Question("s/0", "Who?", Answer("short", "Ada"), "Art"),)


def test_triviaqa_is_unwrapped_and_its_aliases_kept_once(data_dir: Path) -> None:
    rows = [
        {
            "id": "t/0",
            "question": '"Who sang ""Hey Jude""?"',
            "aliases": ["The Beatles", " Beatles ", "The Beatles"],
        },
        {"id": "t/1", "question": '"Hello" and "bye" are what?', "aliases": ["greetings"]},
        {"id": "t/2", "question": '"Who?" asked "whom"', "aliases": ["me", ""]},
    ]
    write(data_dir, "triviaqa/validation.jsonl.gz", rows)
    first, second, third = load_questions("triviaqa")
    assert first == Question(
        "t/0", 'Who sang "Hey Jude"?', Answer("short", "The Beatles", ("Beatles",))
    )
    assert second.text == '"Hello" and "bye" are what?'
    assert third.text == '"Who?" asked "whom"'
    assert third.answer.aliases == ()


def test_mathematics_without_an_answer_is_left_out(data_dir: Path) -> None:
    row = {
        "problem": "Find $x$.",
        "answer": "\\frac12",
        "subject": "Algebra",
        "unique_id": "train/algebra/1.json",
    }
    write(
        data_dir,
        "math/train12k.jsonl.gz",
        [row | {"answer": "", "unique_id": "train/algebra/0.json"}, row],
    )
    assert load_questions("math500", "train") == (
        Question("math/train/algebra/1.json", "Find $x$.", Answer("math", "\\frac12"), "Algebra"),
    )


@pytest.mark.usefixtures("hub")
def test_the_hubs_columns() -> None:
    assert load_questions("triviaqa") == (
        Question("triviaqa/validation/0", "Who?", Answer("short", "Ada", ("Countess",))),
    )
    assert load_questions("simpleqa") == (
        Question("simpleqa/0", "Who?", Answer("short", "Ada"), "Art"),
        Question("simpleqa/1", "When?", Answer("short", "1815")),
    )
    assert [question.id for question in load_questions("gsm8k")] == ["gsm8k/test/0", "gsm8k/test/1"]
    assert [question.answer.gold for question in load_questions("gsm8k")] == ["4", "1,000"]
    (problem,) = load_questions("math500")
    assert problem == Question(
        "math/test/algebra/7.json", "Find $x$.", Answer("math", "2"), "Algebra"
    )
    exam = load_questions("aime25")
    assert [exam[number].id for number in (0, 14, 15, 29)] == [
        "aime2025/I-1",
        "aime2025/I-15",
        "aime2025/II-1",
        "aime2025/II-15",
    ]
    assert exam[7].answer == Answer("number", "7")
    first, _, last = load_questions("mmlu")
    assert first.text == "Which?\nA. w\nB. x\nC. y\nD. z"
    assert first.answer == Answer("choice", "C", ("y",))
    assert (first.id, last.id) == ("mmlu/validation/anatomy/0", "mmlu/validation/virology/0")


@pytest.mark.usefixtures("hub")
def test_the_papers_simpleqa() -> None:
    assert load_questions("simpleqa-verified") == (
        Question("7", "Who?", Answer("short", "Ada"), "Art"),
    )


@pytest.mark.usefixtures("hub")
def test_gpqa_options_are_shuffled_once_for_each_question() -> None:
    questions = load_questions("gpqa")
    assert questions == load_questions("gpqa")
    assert {question.answer.gold for question in questions} == set("ABCD")
    for question in questions:
        assert f"{question.answer.gold}. right" in question.text.splitlines()
        order = ["right", "wrong 1", "wrong 2", "wrong 3"]
        random.Random(42 + int(question.id.removeprefix("gpqa/rec"))).shuffle(order)
        assert [line[3:] for line in question.text.splitlines()[1:]] == order


@pytest.mark.usefixtures("hub")
def test_the_training_questions_of_triviaqa_keep_their_official_ids(tmp_path: Path) -> None:
    path = tmp_path / "manifests" / "datasets" / "triviaqa.yaml"
    path.write_text(path.read_text().replace("hub_split: train", "hub_split: validation"))
    assert [question.id for question in load_questions("triviaqa", "train")] == [
        "triviaqa/train/tc_1"
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "cannot be read: line 2: Expecting"),
        ("[1]", "cannot be read: line 2: not a JSON object"),
        (
            '{"id": "b", "question": "Why?"}',
            "row 1: no column 'answer', which GSM8K should have; found: id, q",
        ),
        (
            '{"id": "b", "question": "Why?", "answer": "1"}',
            "row 1: malformed (no #### before the final answer)",
        ),
        (
            '{"id": "b", "question": "Why?", "answer": "#### "}',
            "row 1: malformed (the gold answer must be a text",
        ),
        (
            '{"id": "b", "question": " ", "answer": "#### 1"}',
            "row 1: malformed (the question or an option is empty)",
        ),
        (
            '{"id": "gsm8k/test/0", "question": "Why?", "answer": "#### 1"}',
            "the id 'gsm8k/test/0' appears twice",
        ),
    ],
)
def test_malformed_rows(data_dir: Path, line: str, message: str) -> None:
    path = write(data_dir, "gsm8k/test.jsonl.gz", GSM8K[:1])
    path.write_bytes(gzip.compress(f"{json.dumps(GSM8K[0])}\n{line}\n".encode()))
    with pytest.raises(InputError) as raised:
        load_questions("gsm8k")
    assert str(raised.value).startswith(("CAPCAL_DATA_DIR/gsm8k/test.jsonl.gz, ", str(path)))
    assert message in str(raised.value)


def test_real_rows(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(real_data))
    assert load_questions("gsm8k")[0].answer == Answer("number", "18")
    assert load_questions("aime25")[0].answer == Answer("number", "70")
    assert all(question.answer.gold.isdecimal() for question in load_questions("aime25"))
    assert load_questions("simpleqa")[0].answer.gold == "Michio Sugeno"
    assert load_questions("simpleqa")[0].subject == "Science and technology"
    assert load_questions("math500")[0].answer.gold == "\\left( 3, \\frac{\\pi}{2} \\right)"
    first = load_questions("mmlu")[0]
    assert (first.answer, first.subject) == (Answer("choice", "A", ("4",)), "abstract_algebra")
    assert not any(
        question.text.startswith('"') and '""' in question.text
        for question in load_questions("triviaqa")
    )
    test, train = (
        {q.text for q in load_questions("math500", split)} for split in ("test", "train")
    )
    assert not test & train
