r"""Grade a response: extract the final answer, then compare it with the right one.

Each of the two steps is a plain module without settings: :mod:`~capcal_lib.grading.extract` and
:mod:`~capcal_lib.grading.compare`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from capcal_lib.disk import write_text
from capcal_lib.errors import InputError
from capcal_lib.grading import compare, pool
from capcal_lib.grading.compare import LONGEST
from capcal_lib.grading.extract import extract
from capcal_lib.questions import Answer
from capcal_lib.rows import stream_rows

# Raised whenever a verdict may have changed: tests/grading/test_version.py holds it to that.
GRADER_VERSION = "8"
UNSCORED = 0.02  # share of samples from which tables show the bounds
IDS = ("question_id", "sample_index", "sample")  # of a row of a file, kept as they are

Outcome = Literal["correct", "incorrect", "no_answer", "not_scored"]


class Verdict(NamedTuple):
    """The grade of one response; ``reason`` says where the answer was found and what was wrong with
    it.
    """

    # no_answer: nothing extractable; not_scored: no reply, or a judge's that is none of its words
    verdict: Outcome
    extracted: str | None  # at most 500 characters; None for no_answer
    reason: str


def grade(response: str, answer: Answer) -> Verdict:
    r"""Grade one response, safely from any thread; hostile text is refused or graded, never
    evaluated.

    An answer that cannot be compared within the limits on time and memory is ``incorrect``, and its
    reason says so. `InputError` if the gold answer does not fit its kind, or is longer than 500
    characters.

    >>> grade(r"Thus $x = \boxed{\tfrac12}$.", Answer("math", "0.5"))
    Verdict(verdict='correct', extracted='\\tfrac12', reason='boxed')
    >>> grade("<think>Perhaps \\boxed{4}?", Answer("number", "4"))
    Verdict(verdict='no_answer', extracted=None, reason='unfinished reasoning')
    """
    return grade_many([(response, answer)])[0]


def grade_many(responses: Sequence[tuple[str, Answer]]) -> list[Verdict]:
    r"""Grade responses, each with its right answer, as `grade` does, on all cores; return the
    verdicts in order.

    Equal answers to equal questions are compared once.

    >>> gold = Answer("math", r"\frac{x}{2}")
    >>> responses = (r"\boxed{0.5x}", r"\boxed{x}", "<think>Hm.")
    >>> [graded.verdict for graded in grade_many([(text, gold) for text in responses])]
    ['correct', 'incorrect', 'no_answer']
    """
    for answer in {answer for _, answer in responses}:
        check_answer(answer)
    extractions = [
        (answer, *extract(text, answer.kind, answer.aliases)) for text, answer in responses
    ]
    results: dict[tuple[Answer, str], bool | None] = {}
    for answer, extracted, _ in extractions:
        if extracted is not None and (answer, extracted) not in results:
            golds = (answer.gold, *answer.aliases)
            results[answer, extracted] = compare.equal(answer.kind, golds, extracted)
    hard = [case for case, is_equal in results.items() if is_equal is None]
    if hard:
        cases = [(extracted, answer.gold, *answer.aliases) for answer, extracted in hard]
        results |= zip(hard, pool.settle(cases), strict=True)
    verdicts = []
    for answer, extracted, reason in extractions:
        if extracted is None:
            verdicts.append(Verdict("no_answer", None, reason))
            continue
        is_equal = results[answer, extracted]
        if is_equal is None:
            reason = pool.TOO_HARD
        verdicts.append(Verdict("correct" if is_equal else "incorrect", extracted, reason))
    return verdicts


def check_answer(answer: Answer) -> None:
    """Refuse a gold answer that does not fit its kind."""
    shown = f"the gold answer {answer.gold!r:.80}"
    if answer.kind == "number" and compare.read_number(answer.gold) is None:
        raise InputError(f"{shown} is not a number; use the kind 'math' or 'short'")
    if answer.kind == "choice" and not compare.letter(answer.gold):
        raise InputError(f"{shown} is not a letter from A to Z")
    if len(answer.gold) > LONGEST:
        raise InputError(f"{shown} is longer than {LONGEST} characters")


def grade_file(in_path: str | Path, out_path: str | Path) -> int:
    """Grade a file of rows ``{kind, gold, aliases?, response}``, such as JSONL, into JSONL of
    ``{verdict, extracted, reason}``.

    Returns the number of rows. Verdicts are in the order of the rows, with the row's
    ``question_id``, ``sample_index`` and ``sample``; other keys and empty lines are ignored. The
    file is written whole or not at all. `InputError` for a malformed row (with its number, from 0),
    a file that cannot be read or written, and an ``out_path`` that is the input or not a regular
    file.

    >>> rows = Path(getfixture("tmp_path")) / "rows.jsonl"
    >>> _ = rows.write_text('{"kind": "number", "gold": "4", "response": "The answer is 4."}')
    >>> grade_file(rows, rows.with_name("verdicts.jsonl"))
    1
    >>> print(rows.with_name("verdicts.jsonl").read_text(), end="")
    {"verdict": "correct", "extracted": "4", "reason": "phrase"}
    """
    source, target = Path(in_path), Path(out_path)
    if target.exists() and (not target.is_file() or target.resolve() == source.resolve()):
        raise InputError(
            f"cannot write {target}: it is the input, or not a regular file; give --out another "
            "name"
        )
    rows, pairs = [], []
    for place, row in enumerate(stream_rows(source)):
        aliases = row.get("aliases") or []
        texts = [row.get("kind"), row.get("gold"), row.get("response"), *aliases]
        try:
            if not isinstance(aliases, list) or not all(isinstance(text, str) for text in texts):
                raise InputError(
                    "kind, gold and response must be texts, and aliases, if given, a list of "
                    f"texts; got {row!r:.100}"
                )
            pairs.append((row["response"], Answer(row["kind"], row["gold"], tuple(aliases))))
            check_answer(pairs[-1][1])
        except InputError as error:
            raise InputError(f"{source}, row {place}: {error}") from None
        rows.append({name: value for name, value in row.items() if name in IDS})
    graded = [row | verdict._asdict() for row, verdict in zip(rows, grade_many(pairs), strict=True)]
    write_text(target, (json.dumps(row, ensure_ascii=False) + "\n" for row in graded))
    return len(graded)
