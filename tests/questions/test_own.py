"""A user's own questions: any file of rows, columns mapped by a manifest, nothing dropped without a
word.
"""

import csv
import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from capcal_lib.cli import app
from capcal_lib.errors import InputError
from capcal_lib.questions import (
    Answer,
    Question,
    at_hand,
    check_questions,
    load_questions,
    load_split,
    subjects_of,
)
from tests.questions.files import Describe, Rows, jsonl


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
        ("law.csv", as_csv(ROWS)),
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


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "law.csv",
            b"id,question,answer\n1,Why?,so\n2,Why?,so,then\n",
            "law.csv: cannot be read: line 3 has not as many fields as the header",
        ),
        (
            "law.csv",
            b'id,question,answer\n1,"Why?,so\n',
            "law.csv: cannot be read: unexpected end of data",
        ),
        ("law.csv", b"\xff\xfe", "law.csv: cannot be read"),
        (
            "law.xlsx",
            b"",
            "unknown format; the formats are .csv, .tsv, .jsonl, .json, .parquet",
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


def test_a_missing_file_says_where_it_belongs(describe: Describe) -> None:
    path = describe()
    with pytest.raises(InputError, match="put it there, or change the manifest") as raised:
        load_questions("law")
    assert str(path) in str(raised.value)


def test_a_file_with_a_name_that_is_too_long_is_a_missing_one(describe: Describe) -> None:
    describe("long" * 80 + ".jsonl")
    assert not at_hand("law", "all")
    with pytest.raises(InputError, match="put it there, or change the manifest"):
        load_questions("law")


def test_ones_own_questions_can_be_pinned_too(describe: Describe, tmp_path: Path) -> None:
    describe().write_bytes(jsonl(ROWS))
    manifest = tmp_path / "datasets" / "law.yaml"
    manifest.write_text(manifest.read_text().replace("law.jsonl}", "law.jsonl, rows: 3}"))
    with pytest.raises(InputError, match="pins: 2 rows, the manifest has 3"):
        load_questions("law")
    manifest.write_text(manifest.read_text().replace("rows: 3", "select: {sample: 3}"))
    with pytest.raises(InputError, match="selects 3 rows, but only 2 are there"):
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
