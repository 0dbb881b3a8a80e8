from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.metrics import capability_brier
from capcal_lib.results.score_file import read_confidences, score_confidences

CSV = "question_id,confidence,correct,total\na,0.5,1,2\nb,1.0,2,2\n"
BAD = {
    "no confidence": (
        CSV.replace("0.5", ""),
        "line 2: question 'a' has something else than numbers",
    ),
    "not a number": (
        CSV.replace("0.5", "NaN"),
        "line 2: question 'a' has something else than numbers",
    ),
    "more correct than total": (
        CSV.replace("2,2", "3,2"),
        "line 3: question 'b' has more correct samples",
    ),
    "half a sample": (
        CSV.replace("1,2", "0.5,2"),
        "line 2: question 'a' has counts that are not whole",
    ),
    "none scored": (CSV.replace("1,2", "0,0"), "line 2: question 'a' needs a scored sample"),
    "no rows": ("question_id,confidence,correct,total\n", "there are no rows"),
    "no column": (
        CSV.replace("total", "n"),
        "no column total; needed: .*; found: question_id, confidence, correct, n",
    ),
    "no id": (CSV.replace("b,", ","), "line 3: question '' has no question_id"),
    "a question twice": (CSV.replace("b,", "a,"), "line 3: question 'a' stands in two rows"),
    "too many fields": (
        CSV.replace("a,0.5", "a,x,0.5"),
        "more fields than the header|cannot be read",
    ),
    "an empty file": ("", "cannot be read as CSV"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_bad_files_are_refused_by_line_and_id(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_confidences(path)


def test_ids_are_kept_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "question_id,confidence,correct,total\n01,0.5,1,2\n1,0.5,1,2\nNA,0.5,1,2\nnull,0.5,1,2\n"
    )
    assert read_confidences(path).index.tolist() == ["01", "1", "NA", "null"]


def test_scores_are_those_of_the_metrics_whatever_the_order_of_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {"question_id": [f"q{i}" for i in range(50)], "confidence": rng.random(50), "total": 20}
    )
    table["correct"] = rng.binomial(20, 0.4, 50)
    paths = [tmp_path / "one.csv", tmp_path / "other.csv"]
    table.to_csv(paths[0], index=False)
    table.sample(frac=1, random_state=2).to_csv(paths[1], index=False)
    tables = [read_confidences(path) for path in paths]
    first, second = map(score_confidences, tables)
    expected = capability_brier(
        table["confidence"], table["correct"], table["total"], corrected=True
    )
    assert first.loc["capability Brier, corrected", "value"] == pytest.approx(expected)
    assert first.loc["capability Brier, corrected", "interval"] == "bootstrap"
    np.testing.assert_allclose(first["value"], second["value"], atol=1e-12)
    difference = score_confidences(*tables).loc["difference in capability Brier"]
    assert difference["value"] == 0


def test_files_that_count_differently_are_not_compared(tmp_path: Path) -> None:
    one, other, apart = tmp_path / "one.csv", tmp_path / "other.csv", tmp_path / "apart.csv"
    one.write_text(CSV)
    other.write_text(CSV.replace("2,2", "1,2"))
    apart.write_text(CSV.replace("a,", "c,").replace("b,", "d,"))
    with pytest.raises(InputError, match="question 'b' has other counts"):
        score_confidences(*map(read_confidences, (one, other)))
    with pytest.raises(InputError, match="no question_id in common"):
        score_confidences(*map(read_confidences, (one, apart)))


@pytest.mark.parametrize("name", ["mine.parquet", "mine.jsonl"])
def test_other_formats_are_read_alike(name: str, tmp_path: Path) -> None:
    csv, path = tmp_path / "mine.csv", tmp_path / name
    csv.write_text(CSV)
    table = pd.read_csv(csv)
    table.to_parquet(path) if name.endswith("parquet") else table.to_json(
        path, orient="records", lines=True
    )
    pd.testing.assert_frame_equal(read_confidences(path), read_confidences(csv))
    bad = table.assign(confidence=[0.5, None])
    bad.to_parquet(path) if name.endswith("parquet") else bad.to_json(
        path, orient="records", lines=True
    )
    with pytest.raises(InputError, match="row 1: question 'b' has something else than numbers"):
        read_confidences(path)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_confidences(tmp_path / "mine.jsonl")


def test_from_a_thousand_questions_on_intervals_have_a_closed_form() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"confidence": rng.random(1000), "correct": rng.binomial(9, 0.5, 1000), "total": 9}
    )
    row = score_confidences(table).loc["capability Brier, corrected"]
    assert row["interval"] == "closed form"
    terms = (table["confidence"] - table["correct"] / 9) ** 2
    terms -= table["correct"] / 9 * (1 - table["correct"] / 9) / 8
    assert row["high"] - row["low"] == pytest.approx(2 * 1.96 * terms.sem(), rel=0.02)
