"""The right answers that came with samples."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.io.importing import import_samples
from capcal_lib.questions import load_questions
from tests.io.files import accuracy, epoch, harness, inspect, read_log, write

HOT = {"temperature": 1.0}
COLOURS = ["red", "green", "blue"]
NUMBERS = ["3", "4", "1", "2"]

INTERVALS = [
    ("[-2,7]", r"\boxed{[-2,7]}", r"\boxed{-2}"),
    ("[0,1)", r"\boxed{[0,1)}", r"\boxed{[0,1]}"),
]


@pytest.mark.parametrize(("gold", "right", "wrong"), INTERVALS)
def test_an_answer_in_brackets_stays_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gold: str, right: str, wrong: str
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"question_id": "a", "question": "Solve.", "gold": gold}
    path = write(tmp_path / "rows.jsonl", row | {"response": right}, row | {"response": wrong})
    import_samples([path], model="m", dataset="d", store=tmp_path, kind="math", settings=HOT)
    assert load_questions("d")[0].answer.gold == gold
    path = write(tmp_path / "samples_a.jsonl", harness(0, "x", target=gold))
    assert read_log([path]).items.loc["0", "gold"] == gold


def chosen(path: Path, letter: str, answer: Any, choices: Any = NUMBERS) -> Path:
    row = {"question": "Which?", "choices": choices, "answer": answer, "response": letter}
    return write(path, *({"question_id": f"q{n}"} | row for n in range(2)))


@pytest.mark.parametrize(
    ("answer", "choices", "letter"),
    [
        (1, NUMBERS, "B"),
        (1.0, NUMBERS, "B"),
        (2, COLOURS, "C"),
        ("2", COLOURS, "C"),
        ("green", COLOURS, "B"),
        ("A", ["D", "C", "B", "E"], "A"),
        ("4", ["5", "6", "4"], "C"),
        ("2", {"text": COLOURS, "label": ["1", "2", "3"]}, "B"),
        ("green", {"A": "red", "B": "green", "C": "blue"}, "B"),
    ],
)
def test_an_option_is_named_by_its_number_letter_or_text_in_score_and_import_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, choices: Any, letter: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = chosen(tmp_path / "rows.jsonl", letter, answer, choices)
    assert accuracy(path) == (2, 2)
    options = path.with_name("options.jsonl")
    options.write_text(path.read_text().replace("choices", "options"))
    assert accuracy(options) == (2, 2)
    import_samples([path], model="m", dataset="d", store=tmp_path, settings=HOT)
    assert load_questions("d")[0].answer.gold == letter
    wrong = "A" if letter != "A" else "B"
    assert accuracy(chosen(path, wrong, answer, choices)) == (0, 2)


@pytest.mark.parametrize(
    ("answer", "choices", "said"),
    [
        ("1", NUMBERS, "'1' is the text of one option and the number of another; write its letter"),
        ("B", ["D", "C", "B", "E"], "the answer 'B' is not the text, letter or number of one opt"),
        (4, NUMBERS, "the answer '4' is not the text, letter or number of one option"),
        (0, "red", "choices 'red' are no list"),
        (0, {"text": COLOURS}, r"\['red', 'green', 'blue'\] is neither a text nor a number"),
    ],
)
def test_an_option_that_is_not_clear_is_refused(
    tmp_path: Path, answer: Any, choices: Any, said: str
) -> None:
    path = chosen(tmp_path / "rows.jsonl", "B", answer, choices)
    with pytest.raises(InputError, match=f"rows.jsonl, row 0: {said}"):
        read_log([path])


@pytest.mark.parametrize("spelled", ["{}", "({})"])
def test_answers_that_are_all_letters_are_options(tmp_path: Path, spelled: str) -> None:
    said = ("The answer is ({}).", "{}", "The answer is (D).")
    rows = [
        harness(n, *(text.format(letter) for text in said), target=spelled.format(letter))
        for n, letter in enumerate("ABJ")
    ]
    path = write(tmp_path / "samples_mmlu_pro.jsonl", *rows)
    assert accuracy(path, regrade=True) == (6, 9)


def test_a_right_answer_inside_an_object_is_named(tmp_path: Path) -> None:
    answer = {"value": "Paris", "aliases": ["Paree"]}
    path = write(tmp_path / "rows.jsonl", {"id": 0, "response": "Paris", "answer": answer})
    said = "rows.jsonl, row 0: the right answer is an object of value, aliases; name the text in it"
    with pytest.raises(InputError, match=said + ", as in --column gold=answer.value"):
        read_log([path])
    assert accuracy(path, columns={"gold": "answer.value"}) == (1, 1)


def test_options_of_some_questions_only_are_no_choices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"question_id": "a", "choices": COLOURS, "answer": 1, "response": "green"}
    other = {"question_id": "b", "answer": "Oslo", "response": "Oslo"}
    path = write(tmp_path / "rows.jsonl", row, other)
    assert accuracy(path) == (2, 2)
    import_samples([path], model="m", dataset="d", store=tmp_path, settings=HOT)
    assert [one.answer.kind for one in load_questions("d")] == ["short", "short"]


@pytest.mark.parametrize("target", ["B", ["B"]])
def test_choices_of_inspect_are_named_by_their_letter(tmp_path: Path, target: Any) -> None:
    sample = epoch(0, {}, response="B", choices=COLOURS, target=target)
    assert accuracy(inspect(tmp_path / "log.json", sample)) == (1, 1)


def test_numbers_in_a_list_are_options(tmp_path: Path) -> None:
    for text in ("[3, 4, 1, 2]", json.dumps(["3", "4", "1", "2"])):
        row = {"question_id": "a", "answer": "D", "response": "D", "choices": text}
        pd.DataFrame([row]).to_csv(tmp_path / "rows.csv", index=False)
        assert read_log([tmp_path / "rows.csv"]).items["choices"].item() == ("3", "4", "1", "2")


@pytest.mark.parametrize("text", ["__import__('os').getcwd()", "[x for x in 'ab']"])
def test_what_is_no_list_is_one_alias_and_is_not_evaluated(tmp_path: Path, text: str) -> None:
    row = {"question_id": "a", "gold": "Paris", "response": "x", "aliases": text}
    pd.DataFrame([row]).to_csv(tmp_path / "rows.csv", index=False)
    assert read_log([tmp_path / "rows.csv"]).items["aliases"].tolist() == [(text,)]


def test_a_list_in_a_csv_is_json_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    row = {"question_id": "a", "gold": "Paris", "response": "Paname"}
    aliases = json.dumps(["City of Light", "Paname"])
    pd.DataFrame([row | {"aliases": aliases}]).to_csv(path, index=False)
    assert accuracy(path) == (1, 1)
    for other in ("['City of Light', 'Paname']", "['City of Light' 'Paname']"):
        pd.DataFrame([row | {"aliases": other}]).to_csv(path, index=False)
        with pytest.raises(InputError, match="is no list as JSON writes one"):
            read_log([path])


def test_a_list_of_targets_of_the_harness_is_as_python_writes_it(tmp_path: Path) -> None:
    path = write(
        tmp_path / "samples_trivia.jsonl", harness(0, "x", target="['Paris', \"L'Oréal\"]")
    )
    assert read_log([path]).items.loc["0", ["gold", "aliases"]].tolist() == ["Paris", ("L'Oréal",)]
