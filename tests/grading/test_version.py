"""The grader's version moves with its verdicts.

A digest of the grader's source would move with every comment, and make all stores stale. So the
verdicts of the hand cases are kept beside the version that gave them: where one moves, this fails
until the version is raised and they are frozen again, by ``python -m tests.grading.test_version``.
"""

import hashlib
import json

from capcal_lib.grading import GRADER_VERSION, grade_many
from capcal_lib.places import ROOT
from capcal_lib.questions import Answer
from tests.grading.answers import CASES

FROZEN = ROOT / "tests" / "grading" / "frozen_verdicts.json"


def sample() -> dict[str, tuple[str, Answer]]:
    """Return responses and their right answers, by a digest of both."""
    pairs = [
        (case["response"], Answer(case["kind"], case["gold"], tuple(case.get("aliases", ()))))
        for case in CASES
    ]
    return {
        hashlib.sha256(repr(pair).encode(errors="backslashreplace")).hexdigest()[:16]: pair
        for pair in pairs
    }


def graded(pairs: dict[str, tuple[str, Answer]]) -> dict[str, list[str | None]]:
    """Return verdict and extracted answer of each."""
    verdicts = grade_many(list(pairs.values()))
    return {
        digest: [verdict.verdict, verdict.extracted]
        for digest, verdict in zip(pairs, verdicts, strict=True)
    }


def test_verdicts_move_only_with_the_version() -> None:
    frozen = json.loads(FROZEN.read_text(encoding="utf-8"))
    pairs = {digest: pair for digest, pair in sample().items() if digest in frozen["verdicts"]}
    assert len(pairs) >= 300
    moved = {
        pairs[digest]: (frozen["verdicts"][digest], verdict)
        for digest, verdict in graded(pairs).items()
        if verdict != frozen["verdicts"][digest]
    }
    again = "freeze the sample: python -m tests.grading.test_version"
    assert not moved, f"raise GRADER_VERSION, and {again}"
    assert frozen["grader"] == GRADER_VERSION, again


if __name__ == "__main__":
    verdicts = graded(sample())
    lines = ",\n".join(f'"{digest}": {json.dumps(verdict)}' for digest, verdict in verdicts.items())
    FROZEN.write_text(
        f'{{"grader": "{GRADER_VERSION}", "verdicts": {{\n{lines}\n}}}}\n', encoding="utf-8"
    )
