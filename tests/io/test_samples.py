"""Samples that others drew are read from logs and tables, or refused in one line."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.io.importing import import_samples
from capcal_lib.io.tables import read_file
from tests.io.files import accuracy, epoch, harness, inspect, read_log, write


def test_rows_of_a_table_are_samples_each_whatever_they_are_numbered_by(tmp_path: Path) -> None:
    """Only logs have several rows of one sample."""
    row = {"doc_id": 7, "epoch": 1, "gold": "4", "target": "5"}
    rows = [row | {"response": text} for text in ("4", "4", "5")]
    path = write(tmp_path / "rows.jsonl", *rows)
    assert accuracy(path) == (2, 3)
    assert read_log([path]).samples["question_id"].tolist() == ["7"] * 3


def test_a_row_without_a_response_is_no_answer_and_an_empty_text_is(tmp_path: Path) -> None:
    row = {"question_id": "a", "gold": "4"}
    texts: list[Any] = ["4", None, float("nan"), "", 5]
    path = write(tmp_path / "rows.jsonl", *(row | {"response": text} for text in texts))
    assert read_log([path]).samples["response"].tolist() == ["4", "", "5"]
    assert read_log([path]).notes[0] == "2 requests without a response left out"
    assert accuracy(path) == (1, 3)
    frame = pd.DataFrame({"question_id": "a", "gold": "4", "response": ["4", None, ""]})
    frame.to_parquet(tmp_path / "rows.parquet")
    assert accuracy(tmp_path / "rows.parquet") == (1, 2)
    judged = [row | {"response": None, "verdict": v} for v in ("correct", "incorrect")]
    with pytest.raises(InputError, match="no samples with a response in it"):
        read_log([write(path, *judged)])


def test_numbers_and_truths_are_texts_that_a_table_changed(tmp_path: Path) -> None:
    rows = [{"question_id": "a", "gold": 42, "response": 42}]
    rows += [{"question_id": "b", "gold": True, "response": True}]
    path = write(tmp_path / "rows.jsonl", *rows)
    assert read_log([path]).samples["response"].tolist() == ["42", "True"]
    assert accuracy(path) == (2, 2)


def test_a_list_of_responses_is_refused_with_what_to_do(tmp_path: Path) -> None:
    listed = {"question_id": "a", "gold": "b", "response": ["a", "b"]}
    said = r"row 0: question 'a' has a list of responses; write a row a sample by table\.explode"
    with pytest.raises(InputError, match=said):
        read_log([write(tmp_path / "rows.jsonl", listed)])
    table = pd.DataFrame([{"question_id": "a", "gold": "b", "generations": ["a", "b"]}])
    table.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=said):
        read_log([tmp_path / "rows.parquet"], {"response": "generations"})


def test_each_task_of_a_group_is_a_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = [
        write(
            tmp_path / f"samples_mmlu_{task}_2025-01-01T10-00-00.jsonl",
            *(harness(n, "B", target="B", doc={"question": f"{task} {n}?"}) for n in range(2)),
        )
        for task in ("law", "art")
    ]
    asked: dict[str, Any] = {"model": "m", "store": tmp_path / "store"}
    with pytest.raises(InputError, match="with task mmlu_law, mmlu_art; give each run a file"):
        import_samples(files, dataset="mmlu-both", **asked)
    import_samples(files[:1], dataset="one", **asked)
    with pytest.raises(
        InputError,
        match=r"question '0' of the file is 'art 0\?' with the answer 'B', in one 'law 0",
    ):
        import_samples(files[1:], dataset="one", **asked)


@pytest.mark.parametrize(
    "content",
    [
        {"results": {}, "configs": {}},  # scores of lm-evaluation-harness
        {"date": "2025-01-01", "hash": "ab", "eval": {"HumanEval/0": [{}]}},  # evalplus
    ],
)
def test_any_other_format_is_told_the_columns_that_are_needed(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps(content))
    said = "no column question_id; needed: question_id, response, or .*; found: .*; name one with"
    with pytest.raises(InputError, match=said):
        read_file(path)


def test_an_array_of_rows_is_read_as_lines_are(tmp_path: Path) -> None:
    (tmp_path / "samples_a.json").write_text(json.dumps([harness(n, "x") for n in range(2)]))
    assert accuracy(tmp_path / "samples_a.json") == (2, 2)
    samples = [epoch(n, score) for n, score in enumerate("CI")]
    for name in ("log.json", "log.eval"):
        assert accuracy(inspect(tmp_path / name, *samples)) == (1, 2)
