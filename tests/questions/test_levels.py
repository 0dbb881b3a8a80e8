"""What people find difficult, where a data set says so."""

import math
from pathlib import Path

import pytest

from capcal_lib.questions import human_levels, load_questions, stream_rows


def test_subjects_of_mmlu_say_for_whom_they_are() -> None:
    names = ("elementary_mathematics", "high_school_physics", "college_law", "professional_law")
    ids = [f"mmlu/validation/{name}/7" for name in names]
    assert human_levels("mmlu", ids) == [1, 2, 3, 4]
    assert math.isnan(human_levels("mmlu", ["mmlu/validation/virology/0"])[0])


def test_sets_without_levels_have_none() -> None:
    assert all(map(math.isnan, human_levels("gsm8k", ["gsm8k/test/0", "gsm8k/test/1"])))
    assert math.isnan(human_levels("math500", ["math/test/algebra/0.json"])[0])


def test_levels_of_math_are_those_of_its_rows(
    real_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(real_data))
    rows = stream_rows(real_data / "math/math500_test.jsonl.gz")
    levels = {f"math/{row['unique_id']}": row["level"] for row in rows}
    ids = [question.id for question in load_questions("math500")]
    assert human_levels("math500", ids) == [levels[name] for name in ids]
    assert set(levels) == set(ids)
