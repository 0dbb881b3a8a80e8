"""The page on grading says what the grader does."""

import re

import pandas as pd
from scipy.stats import beta

from capcal_lib.grading import grade_many
from capcal_lib.manifests import BOOK, NOTEBOOKS, ROOT
from capcal_lib.metrics.grader import grader_error
from capcal_lib.questions import Answer, load_questions

TEXT = (BOOK / "reference" / "grading.md").read_text(encoding="utf-8")
LABELLED = (NOTEBOOKS / "20_grading.py").read_text(encoding="utf-8")
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


LABELS = pd.read_json(
    ROOT / "tests" / "grading" / "grading_labels.jsonl", lines=True, dtype={"extracted": str}
)


def test_the_figures_are_those_of_the_labels() -> None:
    told = LABELS["correct"].astype(float)
    rows = LABELS[told.notna()]
    error = grader_error(
        rows["first"] == "correct", told.dropna(), rows["weight"], clusters=rows["question_id"]
    )
    row = (
        f"| {told.notna().sum()} | {told.isna().sum()} | {shown(error.sensitivity, error.right)} | "
        f"{shown(error.specificity, error.wrong)} |"
    )
    assert row in LABELLED


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


def shown(share: float, labels: float) -> str:
    """Spell a share with Jeffreys' interval of as many labels."""
    low, high = beta.ppf([0.025, 0.975], labels * share + 0.5, labels * (1 - share) + 0.5)
    high = 1 if share == 1 else high
    return f"{share:.1%} ({low:.1%} to {high:.1%})".replace("%", " %")
