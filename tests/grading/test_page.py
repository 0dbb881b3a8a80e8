"""The page on grading says what the grader does."""

import re

import pandas as pd

from capcal_lib.grading import grade_many
from capcal_lib.places import BOOK, MANIFESTS
from capcal_lib.questions import Answer, load_questions

TEXT = (BOOK / "reference" / "grading.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| (math|number|choice|short) \| `(.+?)` \| `(.+?)` \| (\w+) \|$", TEXT, flags=re.MULTILINE
)


def test_every_row_of_the_tables_is_what_the_grader_says() -> None:
    lines = [line for line in TEXT.splitlines() if line.startswith("| ")]
    assert len(ROWS) == sum(not line.startswith("| kind") for line in lines)
    pairs = [
        (response, Answer(kind, gold, ("water",) * (kind == "choice")))
        for kind, gold, response, _ in ROWS
    ]
    verdicts = [verdict.verdict for verdict in grade_many(pairs)]
    wrong = [
        (row, verdict) for row, verdict in zip(ROWS, verdicts, strict=True) if row[3] != verdict
    ]
    assert wrong == []


LABELS = pd.read_json(MANIFESTS / "grading_labels.jsonl", lines=True, dtype={"extracted": str})


def test_the_labels_speak_of_this_grader() -> None:
    """The file's verdicts are those that the grader gives now, where the response is there."""
    rows = LABELS[LABELS["response"].notna() & LABELS["run"].str.contains("/mini-")]
    assert len(rows) >= 350
    answers: dict[str, Answer] = {}
    for run in rows["run"].unique():
        dataset, split = run.split("/")[1].rsplit("-", 1)
        answers |= {question.id: question.answer for question in load_questions(dataset, split)}
    verdicts = grade_many([(row.response, answers[row.question_id]) for row in rows.itertuples()])
    assert [verdict.verdict for verdict in verdicts] == rows["first"].tolist()
    assert [verdict.extracted for verdict in verdicts] == [
        each if isinstance(each, str) else None for each in rows["extracted"]
    ]
