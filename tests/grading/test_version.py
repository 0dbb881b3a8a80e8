"""The hand cases, one line a rule, and the grader's version, which moves with its verdicts."""

import hashlib

import pytest

from capcal_lib.grading import GRADER_VERSION, Verdict, grade_many
from tests.grading.answers import hand_cases

CASES = hand_cases()
# What the grader of this version says of the hand cases. A digest of its source would move with
# every comment, and make all stores stale.
FROZEN = "8", "ea98fef0f36008e1"


@pytest.fixture(scope="module")
def verdicts() -> list[Verdict]:
    return grade_many([(response, answer) for response, answer, _ in CASES])


def test_hand_cases(verdicts: list[Verdict]) -> None:
    wrong = [
        (case, verdict)
        for case, verdict in zip(CASES, verdicts, strict=True)
        if verdict.verdict != case[2]
    ]
    assert wrong == []


def test_verdicts_move_only_with_the_version(verdicts: list[Verdict]) -> None:
    said = [(*case[:2], *verdict[:2]) for case, verdict in zip(CASES, verdicts, strict=True)]
    digest = hashlib.sha256(repr(said).encode(errors="backslashreplace")).hexdigest()[:16]
    assert (GRADER_VERSION, digest) == FROZEN, (
        "raise GRADER_VERSION if a verdict moved, and not if you added a case; then write the new "
        "pair into FROZEN"
    )
