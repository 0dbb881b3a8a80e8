"""A user's own questions: any file of rows, columns mapped by a manifest, nothing dropped without a
word.
"""

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from capcal_lib.cli import app
from capcal_lib.errors import InputError
from capcal_lib.manifests import OWN_MANIFESTS, Columns, load_dataset
from capcal_lib.questions import (
    Answer,
    Question,
    at_hand,
    check_questions,
    load_questions,
    load_split,
    subjects_of,
)
from capcal_lib.questions.columns import make_question

Rows = list[dict[str, Any]]
Describe = Callable[..., Path]


@pytest.fixture
def describe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Describe:
    """Write the manifest of a data set ``law`` and return where its file belongs."""
    monkeypatch.setenv(OWN_MANIFESTS, str(tmp_path))
    (tmp_path / "datasets").mkdir()

    def write(file: str = "law.jsonl", kind: str = "short", more: str = "") -> Path:
        text = f"name: law\ndomain: law\nkind: {kind}\n{more}splits: {{all: {{file: {file}}}}}\n"
        (tmp_path / "datasets" / "law.yaml").write_text(text)
        return tmp_path / "datasets" / file

    return write


def jsonl(rows: Rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_csv(rows: Rows) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0])
    writer.writeheader()
    writer.writerows(
        {name: json.dumps(cell) if isinstance(cell, list) else cell for name, cell in row.items()}
        for row in rows
    )
    return text.getvalue().encode()


def parquet(rows: Rows) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


ROWS: Rows = [
    {
        "id": "007",
        "question": "Who wrote, alone, it?",
        "answer": "Ada",
        "aliases": ["Countess", "Ada"],
        "subject": "people",
    },
    {
        "id": "a/b",
        "question": 'What is "tort"?\nSay.',
        "answer": "a wrong",
        "aliases": [],
        "subject": "",
    },
]
QUESTIONS = (
    Question("007", "Who wrote, alone, it?", Answer("short", "Ada", ("Countess",)), "people"),
    Question("a/b", 'What is "tort"?\nSay.', Answer("short", "a wrong")),
)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("law.jsonl", jsonl(ROWS)),
        ("law.jsonl.gz", gzip.compress(jsonl(ROWS))),
        ("law.csv", as_csv(ROWS)),
        ("law.csv", b"\xef\xbb\xbf" + as_csv(ROWS)),
        ("law.csv.gz", gzip.compress(as_csv(ROWS))),
        ("law.parquet", parquet(ROWS)),
    ],
)
def test_any_format_gives_the_same_questions(describe: Describe, file: str, content: bytes) -> None:
    path = describe(file)
    assert not at_hand("law", "all")
    path.write_bytes(content)
    assert load_split("law") == (QUESTIONS, file)
    assert at_hand("law", "all")
    assert check_questions("law", "all", QUESTIONS) == "2 rows, pinned by no digest"


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


def test_rows_without_an_id_are_numbered(describe: Describe) -> None:
    describe().write_bytes(jsonl([{"question": "Why?", "answer": ["so", "thus"]}] * 2))
    first, second = load_questions("law")
    assert (first.id, second.id) == ("law/all/0", "law/all/1")
    assert first.answer == Answer("short", "so", ("thus",))


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
            "no column 'question'; this is not law as expected, it has prompt",
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
            "1 options; a question has 2 to 26",
        ),
        (
            "choice",
            {"question": "Which?", "answer": "A", "choices": ["a"] * 27},
            "27 options; a question has 2 to 26",
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
    ("file", "content", "message"),
    [
        (
            "law.csv",
            b"id,question,answer\n1,Why?,so\n2,Why?,so,then\n",
            "row 1: cannot be read: it has 4 fields, and the header 3 (id, question, answer)",
        ),
        (
            "law.csv",
            b"id,question,answer\n1,Why?\n",
            "row 0: cannot be read: it has 2 fields, and the header 3 (id, question, answer)",
        ),
        (
            "law.csv",
            b'id,question,answer\n1,"Why?,so\n',
            "row 0: cannot be read: unexpected end of data",
        ),
        ("law.csv", b"\xff\xfe", "row 0: cannot be read"),
        ("law.jsonl", b"[" * 100_000, "row 0: cannot be read: maximum recursion"),
        (
            "law.jsonl",
            b'{"question": 1' + b"0" * 5000 + b"}",
            "row 0: cannot be read: Exceeds the limit",
        ),
        ("law.parquet", b"PAR1", "law.parquet"),
        (
            "law.xlsx",
            b"",
            "not a file of rows; the formats are .jsonl, .jsonl.gz, .json, .csv, .csv.gz, .tsv, ",
        ),
    ],
)
def test_files_that_cannot_be_read(
    describe: Describe, file: str, content: bytes, message: str
) -> None:
    describe(file).write_bytes(content)
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
    ],
)
@pytest.mark.parametrize("column", ["", "columns: {choices: choices.text, answer: answer}\n"])
def test_labels_of_options_are_read(
    describe: Describe, choices: Any, answer: Any, letter: str, column: str
) -> None:
    row = {"id": "a", "question": "Sky?", "choices": choices, "answer": answer}
    describe(kind="choice", more=column).write_bytes(jsonl([row]))
    [question] = load_questions("law")
    assert question.answer.gold == letter
    assert question.options == len(choices["text"])


def test_a_missing_file_says_where_it_belongs(describe: Describe) -> None:
    path = describe()
    with pytest.raises(InputError, match="put it there, or name another in the manifest") as raised:
        load_questions("law")
    assert str(path) in str(raised.value)


def test_ones_own_questions_can_be_pinned_too(describe: Describe, tmp_path: Path) -> None:
    describe().write_bytes(jsonl(ROWS))
    manifest = tmp_path / "datasets" / "law.yaml"
    manifest.write_text(manifest.read_text().replace("law.jsonl}", "law.jsonl, rows: 3}"))
    with pytest.raises(InputError, match="pins: 2 rows, the manifest has 3"):
        load_questions("law")


def test_subjects_come_from_the_column(describe: Describe) -> None:
    path = describe(more="clustered: true\n")
    path.write_bytes(
        jsonl(
            [
                {"id": str(i), "question": "Why?", "answer": "so", "subject": "ab"[i % 2]}
                for i in range(4)
            ]
        )
    )
    assert subjects_of("law", "all", ["1", "2", "3"]) == ["b", "a", "b"]
    assert subjects_of("gsm8k", "test", ["gsm8k/test/0"]) is None


def test_ones_own_are_listed_and_sampled(describe: Describe, tmp_path: Path) -> None:
    describe().write_bytes(jsonl(ROWS))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "bad.yaml").write_text("name: bad\n")
    run = CliRunner().invoke
    listed = run(app, ["datasets"])
    assert listed.exit_code == 0
    assert "law" in listed.stdout
    assert "left out" in listed.stderr
    assert "bad.yaml: malformed manifest" in listed.stderr
    store = ["--store", str(tmp_path / "store")]
    asked = ["--model", "simulated", "--dataset", "law"]
    for command in (["sample", *asked, "--k", "3"], ["grade", *asked]):
        assert run(app, [*command, *store]).exit_code == 0
