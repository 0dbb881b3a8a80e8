"""The page on grading says what the grader does."""

import json
import re

import pytest

from capcal_lib.grading import grade_many
from capcal_lib.grading.cross_check import agreement, read_labels
from capcal_lib.manifests import BOOK, ROOT
from capcal_lib.metrics.intervals import Interval
from capcal_lib.questions import Answer

TEXT = (BOOK / "reference" / "grading.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (math|number|choice|short) \| `(.+?)` \| `(.+?)` \| (\w+) \|$", TEXT, flags=re.MULTILINE)


def test_every_row_of_the_tables_is_what_the_grader_says() -> None:
    assert len(ROWS) == sum(line.startswith("| ") and not line.startswith("| kind") for line in TEXT.splitlines()) - 2
    pairs = [(response, Answer(kind, gold, ("water",) * (kind == "choice"))) for kind, gold, response, _ in ROWS]
    verdicts = [verdict.verdict for verdict in grade_many(pairs)]
    wrong = [(row, verdict) for row, verdict in zip(ROWS, verdicts, strict=True) if row[3] != verdict]
    assert wrong == []


def test_the_figures_are_those_of_the_labels() -> None:
    labels = read_labels(ROOT / "tests" / "grading" / "grading_labels.jsonl")
    told = labels["correct"]
    shares = [agreement(labels), agreement(labels[told == 1]), agreement(labels[told == 0])]
    row = f"| {told.notna().sum()} | {told.isna().sum()} | {' | '.join(map(shown, shares))} |"
    assert row in TEXT


def shown(share: Interval) -> str:
    return f"{share.estimate:.1%} ({share.low:.1%} to {share.high:.1%})".replace("%", " %")


@pytest.mark.parametrize("key", ["question_id", "extracted", "first", "second", "samples", "weight", "correct"])
def test_the_row_described_is_the_row_of_a_labels_file(key: str) -> None:
    assert f"`{key}`" in TEXT
    first = (ROOT / "tests" / "grading" / "grading_labels.jsonl").read_text(encoding="utf-8").splitlines()[0]
    assert key in json.loads(first)
