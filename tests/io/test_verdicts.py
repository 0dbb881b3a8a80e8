"""Verdicts that came with samples are taken on a known scale, or refused."""

import re
from pathlib import Path
from typing import Any

import pytest

from capcal_lib.errors import InputError
from capcal_lib.io.tables import read_file
from tests.io.files import accuracy, epoch, harness, inspect, write


def judged(path: Path, values: list[Any]) -> Path:
    return inspect(path, *(epoch(number, value) for number, value in enumerate(values)))


@pytest.mark.parametrize(
    ("values", "right", "scored"),
    [
        (["C"] * 8 + ["I", "P"], 8, 9),
        ([1] * 8 + [0, float("nan")], 8, 9),
        ([True, False, "true", "False", None], 2, 4),
        ([0, -0.0, 1, None], 1, 3),
        ([" C ", "i ", "C", "N", "P"], 2, 4),
        (["incorrect", "no_answer", "correct", "not_scored"], 1, 3),
    ],
)
def test_a_sample_without_a_verdict_is_left_out(
    tmp_path: Path, values: list[Any], right: int, scored: int
) -> None:
    path = judged(tmp_path / "log.json", values)
    assert accuracy(path) == (right, scored)
    [taken, left_out, *_] = read_file(path).notes
    assert (taken, left_out) == ("verdicts by judge", "1 sample without a verdict, not scored")


UNKNOWN = [
    ([0.65], "0.65"),
    (["A"] * 10 + ["B"] * 5 + ["C"] * 25, "A"),
    ([1, 2, 3, 4, 5], "2"),
]


@pytest.mark.parametrize(("values", "said"), UNKNOWN)
def test_an_unknown_scale_is_refused_and_graded_if_asked(
    tmp_path: Path, values: list[Any], said: str
) -> None:
    path = judged(tmp_path / "log.json", values)
    named = re.escape(
        f"log.json: no verdicts by judge: {', '.join(map(str, dict.fromkeys(values)))}"
    )
    with pytest.raises(InputError, match=named + "; verdicts are 1/0.*--regrade has"):
        read_file(path)
    assert accuracy(path, regrade=True) == (0, len(values))
    rows = [
        {"question_id": n, "gold": "x", "response": "x", "verdict": v} for n, v in enumerate(values)
    ]
    table = write(tmp_path / "rows.jsonl", *rows)
    row = next(n for n, value in enumerate(values) if str(value) == said)
    with pytest.raises(
        InputError, match=f"row {row}: .* no such verdict; verdicts are 1/0"
    ) as error:
        read_file(table)
    assert f"{{'verdict': '{said}'}}" in str(error.value)
    assert accuracy(table, regrade=True) == (len(values), len(values))


def test_several_scorers_are_chosen_by_name(tmp_path: Path) -> None:
    both = [{"refused": {"value": 0.0}, "match": {"value": "CI"[n == 4]}} for n in range(5)]
    path = judged(tmp_path / "log.json", both)
    with pytest.raises(InputError, match="verdicts by refused and match; choose: --scorer refused"):
        read_file(path)
    assert accuracy(path, scorer="match") == (4, 5)
    assert accuracy(path, scorer="refused") == (0, 5)
    with pytest.raises(InputError, match="unknown scorer 'other'; known: match, refused"):
        read_file(path, scorer="other")
    rows = [
        harness(n, "x", metrics=["f1", "em"], f1=[0.4, 1.0, 0.6][n], em=[0, 1, 0][n])
        for n in range(3)
    ]
    path = write(tmp_path / "samples_f1.jsonl", *rows)
    assert accuracy(path) == (1, 3), "f1 is no verdict"
    with pytest.raises(InputError, match=r"no verdicts by f1: 0\.4, 1\.0, 0\.6"):
        read_file(path, scorer="f1")
    rows = [
        harness(n, "x", filter=kept, exact_match=float(kept == "flexible-extract"))
        for n in range(3)
        for kept in ("strict-match", "flexible-extract")
    ]
    path = write(tmp_path / "samples_gsm8k.jsonl", *rows)
    with pytest.raises(InputError, match="verdicts by exact_match,strict-match and exact_match,fl"):
        read_file(path)
    assert accuracy(path, scorer="flexible-extract") == (3, 3)


@pytest.mark.parametrize("metric", ["pass@1", "bleu"])
def test_tasks_that_no_rule_grades_are_taken_at_their_word_or_refused(
    tmp_path: Path, metric: str
) -> None:
    single = [harness(n, "x", metrics=[metric], **{metric: float(n % 2)}) for n in range(4)]
    assert accuracy(write(tmp_path / "samples_one.jsonl", *single)) == (2, 4)
    several = [harness(0, *"abcd", metrics=[metric], **{metric: 0.75})]
    with pytest.raises(
        InputError, match=f"no verdict of each sample, and the rules do not measure {metric}"
    ):
        read_file(write(tmp_path / "samples_more.jsonl", *several))
