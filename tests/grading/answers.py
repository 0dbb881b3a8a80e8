"""What the tests of grading share: hand cases, gold answers, and verdicts of many at once."""

import gzip
import json

from capcal_lib.grading import grade_many
from capcal_lib.manifests import Kind
from capcal_lib.places import ROOT
from capcal_lib.questions import Answer
from tests.outside import DATA

CASES = json.loads((ROOT / "tests" / "grading" / "grading_cases.json").read_text(encoding="utf-8"))
GOLDS: dict[Kind, str] = {"math": "x+1", "number": "7", "choice": "C", "short": "Paris"}


def rows(path: str) -> list[dict[str, str]]:
    with gzip.open(DATA / path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def outcomes(pairs: list[tuple[str, Answer]]) -> list[str]:
    return [verdict.verdict for verdict in grade_many(pairs)]
