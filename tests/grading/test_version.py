"""The hand cases, and the grader's version, which moves with its verdicts.

A digest of the grader's source would move with every comment, and make all stores stale. So the
verdicts of the hand cases are kept beside the version that gave them: where one moves, this fails
until the version is raised and they are frozen again, by ``python -m tests.grading.test_version``.
"""

import hashlib
import json
from functools import cache
from typing import Any

from capcal_lib.grading import GRADER_VERSION, Verdict, grade_many
from capcal_lib.places import ROOT
from capcal_lib.questions import Answer
from tests.grading.answers import CASES, GOLDS

FROZEN = ROOT / "tests" / "grading" / "frozen_verdicts.json"


def pair(case: dict[str, Any]) -> tuple[str, Answer]:
    answer = Answer(case["kind"], case["gold"], tuple(case.get("aliases", ())))
    return case["response"], answer


def digest(case: dict[str, Any]) -> str:
    """Return what a response and its right answer are known by."""
    return hashlib.sha256(repr(pair(case)).encode(errors="backslashreplace")).hexdigest()[:16]


@cache
def verdicts_of_cases() -> list[Verdict]:
    return grade_many([pair(case) for case in CASES])


def test_hand_cases() -> None:
    wrong = [
        (case["source"], case["gold"], case["response"][:80], case["expected"], verdict)
        for case, verdict in zip(CASES, verdicts_of_cases(), strict=True)
        if verdict.verdict != case["expected"]
    ]
    assert wrong == []


def test_there_are_cases_of_every_kind_and_verdict() -> None:
    assert len(CASES) >= 150
    for kind in GOLDS:
        assert {case["expected"] for case in CASES if case["kind"] == kind} >= {
            "correct",
            "incorrect",
            "no_answer",
        }


def graded() -> dict[str, list[str | None]]:
    """Return verdict and extracted answer of each case, by its digest."""
    return {
        digest(case): [verdict.verdict, verdict.extracted]
        for case, verdict in zip(CASES, verdicts_of_cases(), strict=True)
    }


def test_verdicts_move_only_with_the_version() -> None:
    frozen = json.loads(FROZEN.read_text(encoding="utf-8"))
    pairs = {digest(case): pair(case) for case in CASES if digest(case) in frozen["verdicts"]}
    assert len(pairs) >= 300
    verdicts = graded()
    moved = {
        pairs[name]: (frozen["verdicts"][name], verdicts[name])
        for name in pairs
        if verdicts[name] != frozen["verdicts"][name]
    }
    again = "freeze the sample: python -m tests.grading.test_version"
    assert not moved, f"raise GRADER_VERSION, and {again}"
    assert frozen["grader"] == GRADER_VERSION, again


if __name__ == "__main__":
    verdicts = graded()
    lines = ",\n".join(f'"{digest}": {json.dumps(verdict)}' for digest, verdict in verdicts.items())
    FROZEN.write_text(
        f'{{"grader": "{GRADER_VERSION}", "verdicts": {{\n{lines}\n}}}}\n', encoding="utf-8"
    )
