"""The grader's version moves with its verdicts.

A digest of the grader's source would move with every comment, and make all stores stale. So the
verdicts of a frozen sample, the hand cases and draws of each class, are kept beside the version
that gave them: where one moves, this fails until the version is raised and the sample is frozen
again, by ``python -m tests.grading.test_version``."""

import hashlib
import json

from capcal_lib.grading import GRADER_VERSION, grade_many
from capcal_lib.places import ROOT
from capcal_lib.questions import Answer
from tests.grading.answers import CASES
from tests.grading.classes import CLASSES, cases

FROZEN = ROOT / "tests" / "grading" / "frozen_verdicts.json"


def sample() -> dict[str, tuple[str, Answer]]:
    """Return responses and their right answers, by a digest of both."""
    pairs = [
        (case["response"], Answer(case["kind"], case["gold"], tuple(case.get("aliases", ()))))
        for case in CASES
    ]
    drawn = [case for name in CLASSES for case in cases(name, 10, seed=5)]
    pairs += [(case.response, Answer(case.kind, case.gold)) for case in drawn]
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
    assert len(pairs) >= 2000
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
