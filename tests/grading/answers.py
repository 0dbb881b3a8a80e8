"""What the tests of grading share: hand cases, gold answers, and verdicts of many at once."""

import gzip
import json

from capcal_lib.grading import grade_many
from capcal_lib.manifests import Kind
from capcal_lib.places import ROOT
from capcal_lib.questions import Answer
from tests.outside import DATA

GOLDS: dict[Kind, str] = {"math": "x+1", "number": "7", "choice": "C", "short": "Paris"}


def hand_cases() -> list[tuple[str, Answer, str]]:
    """List the responses of ``grading_cases.json``, each with its right answer and its verdict."""
    cases = []
    path = ROOT / "tests" / "grading" / "grading_cases.json"
    for rule in json.loads(path.read_text(encoding="utf-8")):
        answer = Answer(rule["kind"], rule["gold"], tuple(rule.get("aliases", ())))
        for verdict in ("correct", "incorrect", "no_answer"):
            cases += [(response, answer, verdict) for response in rule.get(verdict, ())]
    return cases


def rows(path: str) -> list[dict[str, str]]:
    with gzip.open(DATA / path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def outcomes(pairs: list[tuple[str, Answer]]) -> list[str]:
    return [verdict.verdict for verdict in grade_many(pairs)]
