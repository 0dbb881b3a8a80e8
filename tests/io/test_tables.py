"""Tables and logs that people score are read, or refused by row and rule."""

import json
from pathlib import Path

import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.io.tables import read_counts, read_file
from tests.io.files import BY_RULES, CSV, LOG

BAD = {
    "no confidence": (
        CSV.replace("0.5", ""),
        "row 0: question 'a' has no confidence, as 1 of 2 rows; --drop-missing",
    ),
    "not a number": (
        CSV.replace("0.5", "high"),
        "row 0: question 'a' has a confidence that is no number from 0 to 1",
    ),
    "one percentage": (
        CSV.replace("0.5", "50"),
        "row 0: .* a confidence that is no number from 0 to 1: .*50",
    ),
    "below 0": (CSV.replace("0.5", "-0.1"), "row 0: .* has a confidence that is no number from 0"),
    "more correct than total": (
        CSV.replace("2,2", "3,2"),
        "row 1: question 'b' has more correct samples than its total: .*'3', 'total': '2'",
    ),
    "half a sample": (
        CSV.replace("1,2", "0.5,2"),
        "row 0: question 'a' has counts that are no whole numbers from 0 on: ",
    ),
    "below none": (CSV.replace("1,2", "-1,2"), "row 0: .* counts that are no whole numbers from 0"),
    "a total in words": (CSV.replace("1,2", "1,x"), "row 0: .* counts that are no whole numbers"),
    "none scored": (CSV.replace("1,2", "0,0"), "row 0: .* has no scored sample; leave it out: "),
    "no rows": ("question_id,confidence,correct,total\n", "the table has no rows"),
    "no column": (
        CSV.replace("correct", "right"),
        "no column correct; needed: question_id, confidence, correct; found: question_id, "
        "confidence, right, total; name one with --column correct=COLUMN",
    ),
    "a total of another name": (
        CSV.replace("total", "n"),
        "row 1: .* a correct that is not 0 or 1; without",
    ),
    "no id": (CSV.replace("b,", ","), "row 1: question '' has no question_id"),
    "a question twice": (CSV.replace("b,", "a,"), "question 'a' has two confidences"),
    "an empty file": ("", "the table has no rows"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_bad_files_are_refused_by_line_and_id(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_file(path)


def test_ids_are_kept_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "question_id,confidence,correct,total\n01,0.5,1,2\n1,0.5,1,2\nNA,0.5,1,2\nnull,0.5,1,2\n"
    )
    assert read_file(path).table.index.tolist() == ["01", "1", "NA", "null"]


@pytest.mark.parametrize("name", ["mine.parquet", "mine.jsonl"])
def test_other_formats_are_read_alike(name: str, tmp_path: Path) -> None:
    csv, path = tmp_path / "mine.csv", tmp_path / name
    csv.write_text(CSV)
    table = pd.read_csv(csv)
    table.to_parquet(path) if name.endswith("parquet") else table.to_json(
        path, orient="records", lines=True
    )
    pd.testing.assert_frame_equal(read_file(path).table, read_file(csv).table)
    bad = table.assign(confidence=[0.5, None])
    bad.to_parquet(path) if name.endswith("parquet") else bad.to_json(
        path, orient="records", lines=True
    )
    with pytest.raises(InputError, match="row 1: question 'b' has no confidence, as 1 of 2 rows"):
        read_file(path)


SPELLED = {
    "tabs": ("mine.tsv", CSV.replace(",", "\t")),
    "semicolons": ("mine.csv", CSV.replace(",", ";")),
    "spaces": ("mine.csv", CSV.replace(",", ", ")),
    "records": (
        "mine.json",
        json.dumps(
            [
                {"question_id": "a", "confidence": 0.5, "correct": 1, "total": 2},
                {"question_id": "b", "confidence": 1.0, "correct": 2, "total": 2},
            ]
        ),
    ),
    "capitals": ("mine.csv", CSV.replace("correct,total", "Correct,TOTAL")),
}


@pytest.mark.parametrize(("name", "content"), SPELLED.values(), ids=SPELLED)
def test_one_table_is_read_however_it_is_spelled(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    found = read_file(tmp_path / name)
    assert found.table.to_numpy().tolist() == [[0.5, 1, 2], [1, 2, 2]]
    assert found.table.index.tolist() == ["a", "b"]
    assert found.notes == []


@pytest.mark.parametrize("said", ["0 1", "false TRUE"])
def test_without_a_total_each_row_is_one_sample(said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    wrong, right = said.split()
    rows = f"a,.5,{wrong}\nb,1,{right}\na,.5,{right}\n"
    path.write_text(f"question_id,confidence,correct\n{rows}")
    found = read_file(path)
    assert found.table.to_numpy().tolist() == [[0.5, 1, 2], [1, 1, 1]]
    assert found.notes[0] == "no total: 3 rows counted as samples of 2 questions"
    path.write_text(f"question_id,confidence,correct\n{rows}a,.6,{right}\n")
    with pytest.raises(InputError, match="row 0: question 'a' has two confidences; use one file"):
        read_file(path)


def test_counts_come_from_a_key_and_missing_confidences_go_if_asked(tmp_path: Path) -> None:
    key, mine = tmp_path / "key.csv", tmp_path / "mine.csv"
    key.write_text("question_id,question,correct,total\na,Why?,1,2\nb,How?,2,2\nc,Who?,0,2\n")
    mine.write_text("question_id,question,confidence\nb,How?,1.0\na,Why?,\n")
    with pytest.raises(InputError, match="row 1: question 'a' has no confidence"):
        read_file(mine, key=key)
    found = read_file(mine, key=key, drop_missing=True)
    assert found.table.to_dict("index") == {"b": {"confidence": 1.0, "correct": 2, "total": 2}}
    assert found.notes == [
        "1 of 2 rows without a confidence left out",
        "the key counts 3 questions, 1 of them with a confidence",
    ]
    mine.write_text("question_id,confidence\nz,1.0\n")
    with pytest.raises(InputError, match="question 'z' is not in the key, whose ids look like 'a'"):
        read_file(mine, key=key)
    mine.write_text("question_id,confidence\na,1.0\na,1.0\n")
    with pytest.raises(InputError, match=r"mine.csv, row 1: question 'a' stands in two rows"):
        read_file(mine, key=key)
    with pytest.raises(InputError, match=r"mine\.csv: no column correct; needed: question_id, cor"):
        read_file(mine, key=mine)


def test_a_key_counts_rows_and_says_which_rows_are_unlike(tmp_path: Path) -> None:
    key, mine = tmp_path / "key.csv", tmp_path / "mine.csv"
    mine.write_text("ID,Confidence\na,0.5\nb,1.0\n")
    key.write_text("question_id,correct\na,true\na,I\nb,1\n")
    found = read_file(mine, key=key)
    assert found.table[["correct", "total"]].to_numpy().tolist() == [[1, 2], [1, 1]]
    assert found.notes[0] == "no total: 3 rows counted as samples of 2 questions"
    key.write_text("question_id,method,correct,total\na,x,1,2\na,y,1,2\n")
    with pytest.raises(InputError, match=r"key.csv, row 1: .* stands in two rows; give one"):
        read_file(mine, key=key)


def test_a_key_may_be_a_log(tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text("doc_id,confidence\n0,0.5\n1,0.3\n2,0.6\n")
    found = read_file(mine, key=LOG)
    counts = read_counts(LOG).table
    assert found.table["correct"].to_dict() == counts["correct"].to_dict()
    assert found.table["confidence"].tolist() == [0.5, 0.3, 0.6]
    assert found.notes[0] == BY_RULES
    rows = [{"question_id": "0", "question": q, "response": "B", "gold": "B"} for q in "ab"]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"question '0' has another answer, text"):
        read_file(mine, key=path)


def test_options_of_logs_and_of_tables_are_not_exchanged(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(CSV)
    for options in ({"regrade": True}, {"scorer": "match"}):
        with pytest.raises(InputError, match=r"mine.csv is a table of counts, no log: --scorer"):
            read_file(path, **options)
        with pytest.raises(InputError, match=r"mine.csv is a table of counts, no log: --scorer"):
            read_file(path, key=path, **options)
    with pytest.raises(InputError, match="is a log, which has no confidences to miss"):
        read_file(LOG, drop_missing=True)
    assert read_file(path, scorer=None, regrade=False).table["total"].tolist() == [2, 2]
    rows = tmp_path / "rows.csv"
    rows.write_text("question_id,response,gold\na,4,4\n")
    with pytest.raises(
        InputError, match=r"rows.csv: --scorer is for logs of lm-evaluation-harness"
    ):
        read_file(rows, scorer="match")


def test_columns_of_other_names_are_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("id,prob,n_correct,n\na,0.5,1,2\nb,1,2,2\n")
    needed = "question_id, response, or for `capcal score` question_id, confidence, correct; found"
    with pytest.raises(InputError, match=f"no column response; needed: {needed}"):
        read_file(path)
    columns = {"confidence": "prob", "correct": "n_correct", "total": "n"}
    found = read_file(path, columns=columns)
    assert found.table.to_numpy().tolist() == [[0.5, 1, 2], [1, 2, 2]]
    for wrong in ({"prob": "confidence"}, {"confidence": "prob", "aliases": "n"}):
        with pytest.raises(InputError, match=r"unknown column '(prob|aliases)'; known: "):
            read_file(path, columns=wrong)
    rows = tmp_path / "rows.csv"
    rows.write_text("id,said,gold\na,4,4\na,5,4\n")
    assert read_file(rows, columns={"response": "said"}).table["correct"].tolist() == [1]
    rows.write_text("id,response,correct\na,4,1\na,5,0\n")
    with pytest.raises(InputError, match="no column confidence"):
        read_file(rows)
    assert read_file(rows, columns={"verdict": "correct"}).table["correct"].tolist() == [1]


def test_subjects_may_stand_in_the_key_and_in_rows_of_samples(tmp_path: Path) -> None:
    mine, key = tmp_path / "mine.csv", tmp_path / "key.csv"
    mine.write_text("question_id,confidence\nb,0.5\na,0.2\n")
    key.write_text("question_id,correct,total,subject\na,1,2,law\nb,2,2,art\nc,1,2,art\n")
    assert read_file(mine, key=key).table["cluster"].to_dict() == {"b": "art", "a": "law"}
    mine.write_text("question_id,confidence,subject\nb,0.5,x\na,0.2,y\n")
    assert read_file(mine, key=key).table["cluster"].to_dict() == {"b": "x", "a": "y"}
    rows = tmp_path / "rows.csv"
    rows.write_text("question_id,confidence,correct,subject\na,.5,1,law\na,.5,0,law\nb,1,1,art\n")
    assert read_file(rows).table["cluster"].to_dict() == {"a": "law", "b": "art"}


def test_lists_in_cells_are_texts_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    row = {"question_id": "a", "confidence": 0.5, "correct": 1}
    path.write_text(json.dumps(row | {"subject": ["law"], "sample": [0]}))
    assert read_file(path).table["cluster"].tolist() == ["['law']"]
    for name in ("confidence", "correct"):
        path.write_text(json.dumps(row | {name: [1]}))
        with pytest.raises(InputError, match=rf"row 0: question 'a' has a {name}"):
            read_file(path)
    rows = [{"question_id": n, "response": "x", "gold": "x", "uuid": [n]} for n in (1, 2)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(read_file(path).table) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "question_id,confidence,correct,total,Subject,cluster\na,.5,1,2,x,y\n",
            "the subject may be column Subject or cluster; name one with --column subject=Subject",
        ),
        (
            "question_id,confidence,correct,total,subject\na,.5,1,2,x\nb,.5,1,2,\n",
            "row 1: question 'b' has no subject",
        ),
        (
            "question_id,confidence,correct,subject\na,.5,1,x\na,.5,1,y\n",
            "row 0: question 'a' has more than one subject",
        ),
    ],
)
def test_unclear_subjects_are_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_file(path)
