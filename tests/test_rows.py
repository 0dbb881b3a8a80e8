"""Files of rows as people have them: odd first lines, long fields, two columns of one name."""

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capcal_lib import rows
from capcal_lib.errors import InputError
from capcal_lib.rows import read_table, stream_rows, take_columns


def read(path: Path, content: str | bytes) -> list[dict[str, Any]]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(stream_rows(path))


def test_a_field_may_be_as_long_as_a_line(tmp_path: Path) -> None:
    text = "wait " * 60_000
    assert read(tmp_path / "a.csv", f"id,text\n1,{text}x\n") == [{"id": "1", "text": text + "x"}]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "Results\na,b\n1,2\n", "line 2 has not as many fields as the header"),
        ("a.csv", "a,b,c\n1,2,3\n\n1,2\n", "line 4 has not as many fields as the header"),
        ("a.csv", 'a,b\n1,"2\n', "unexpected end of data"),
        ("a.csv", "a,b,a\n1,2,3\n", "two columns are called 'a'; name them apart"),
        ("a.jsonl", '{"a": 1}\n\n{"a": 2\n', "cannot be read: line 3: Expecting"),
        ("a.json", '[{"a": 1}, 7]', "cannot be read: not a JSON object"),
        ("a.csv", "a,b\n1,2\n".encode("utf-16"), "'utf-8' codec .*; save it as UTF-8"),
        ("a.jsonl", '{"a": "é"}'.encode("latin-1"), "line 1: 'utf-8' codec .*; save it as UTF-8"),
        ("a.csv", b"PK\x03\x04\xff\xfe", "cannot be read: 'utf-8' codec"),
    ],
)
def test_what_is_odd_is_named(tmp_path: Path, name: str, content: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path / name, content)


def test_two_columns_of_a_parquet_file_may_not_be_called_alike(tmp_path: Path) -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match="two columns are called 'a'"):
        list(stream_rows(tmp_path / "a.parquet"))


def test_what_is_not_there_or_no_file_is_said_whatever_its_name(tmp_path: Path) -> None:
    for name in ("none", "none.csv", "none.xlsx", "none.parquet", "none.jsonl.gz"):
        with pytest.raises(InputError, match=f"{name}: there is no such file$"):
            list(stream_rows(tmp_path / name))
    for name in ("folder", "folder.csv"):
        (tmp_path / name).mkdir()
        with pytest.raises(InputError, match=f"{name} is a folder; name the files in it"):
            list(stream_rows(tmp_path / name))
    with pytest.raises(InputError, match=r"a.xlsx: unknown format; the formats are .csv, "):
        read(tmp_path / "a.xlsx", b"")


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.gz"])
def test_what_a_packed_file_holds_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    line = json.dumps({"text": "x" * 100}) + "\n" if "json" in name else "x" * 100 + "\n"
    packed = gzip.compress(line.encode() * 30_000)
    assert len(read(tmp_path / name, packed)) >= 29_999
    monkeypatch.setattr(rows, "UNPACKED_BYTES", 1 << 20)
    with pytest.raises(InputError, match=f"{name}: cannot be read: it unpacks to more than . MiB"):
        list(stream_rows(tmp_path / name))


def test_what_a_parquet_file_unpacks_to_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rows that are all alike, and of texts that pack well."""
    path = tmp_path / "a.parquet"
    pd.DataFrame({"a": [1] * 100_000, "b": "x"}).to_parquet(path)
    assert len(rows.read_table(path)) == 100_000
    monkeypatch.setattr(rows, "UNPACKED_BYTES", 1 << 20)
    monkeypatch.setattr(rows, "UNPACKED_RATIO", 1)
    said = r"a\.parquet: cannot be read: it unpacks to more than 1 MiB"
    with pytest.raises(InputError, match=said):
        rows.read_table(path)
    pd.DataFrame({"a": ["x" * 100_000 + str(n) for n in range(20)]}).to_parquet(path)
    with pytest.raises(InputError, match=said):
        rows.read_table(path)


def test_half_a_pair_of_signs_is_left_out(tmp_path: Path) -> None:
    text = r'{"id": "a\ud800", "b": "\ud83d\ude00"}'
    assert read(tmp_path / "a.jsonl", text) == [{"id": "a", "b": "😀"}]
    assert read_table(tmp_path / "a.jsonl")["id"].tolist() == ["a"]


def test_rows_are_those_of_the_csv_of_pandas(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": ['x, "y"', "two\nlines", ""], "b": [1.5, math.nan, -2]})
    table.to_csv(tmp_path / "a.csv", index=False)
    found = list(stream_rows(tmp_path / "a.csv"))
    assert found == [
        {"a": 'x, "y"', "b": "1.5"},
        {"a": "two\nlines", "b": ""},
        {"a": "", "b": "-2.0"},
    ]


@pytest.mark.parametrize("head", ["question_id", "Question ID", "id", "doc_id"])
def test_a_question_is_known_by_any_of_its_names(tmp_path: Path, head: str) -> None:
    read(tmp_path / "a.csv", f"{head},n\n01,5\n")
    table = take_columns("a.csv", read_table(tmp_path / "a.csv"), ["question_id"], ["n", "other"])
    assert table.to_dict("records") == [{"question_id": "01", "n": "5"}]


def test_a_column_may_be_named_and_may_be_a_field_inside_one(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    read(path, '{"key": 1, "said": {"p": [0.5, 0.7]}}\n{"key": 2, "said": {"p": [0.1, 0.2]}}\n')
    columns = {"question_id": "key", "confidence": "said.p.1"}
    table = read_table(path)
    taken = take_columns(path, table, ["question_id", "confidence"], columns=columns)
    assert taken.to_dict("list") == {"question_id": [1, 2], "confidence": [0.7, 0.2]}
    with pytest.raises(InputError, match=r"a\.jsonl: no column said\.q; found: key, said$"):
        take_columns(path, table, ["question_id"], columns={"question_id": "said.q"})


def test_two_columns_that_may_be_one_are_refused(tmp_path: Path) -> None:
    read(tmp_path / "a.csv", "id,doc_id,n,N\n0,x,1,2\n")
    table = read_table(tmp_path / "a.csv")
    said = "the question_id may be column id or doc_id; "
    with pytest.raises(InputError, match=said + "name one with --column question_id=id"):
        take_columns("a.csv", table, ["question_id"], columns={})
    with pytest.raises(InputError, match=said + "rename one"):
        take_columns("a.csv", table, ["question_id"])
    chosen = take_columns("a.csv", table, ["question_id"], columns={"question_id": "doc_id"})
    assert chosen["question_id"].tolist() == ["x"]
    assert take_columns("a.csv", table, [], ["n"])["n"].tolist() == ["1"], "as it is spelled"
    with pytest.raises(InputError, match="no column r; needed: r; found: id, doc_id, n, N; name"):
        take_columns("a.csv", table, ["r"], columns={})


def test_a_table_of_json_is_that_of_all_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "STEP", 2)
    path = tmp_path / "a.jsonl"
    lines = [{"a": 1}, {"a": "x", "b": None}, {"c": [1]}, {"a": 2.5}, {"b": True}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    pd.testing.assert_frame_equal(rows.read_table(path), pd.DataFrame(lines, dtype=object))
