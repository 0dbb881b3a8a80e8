r"""Grading as a measuring instrument: extract the final answer, then compare it with the right one.

The two steps are apart, have one file for each kind of answer, and no settings. Each module says
what it decides: :mod:`~capcal_lib.grading.extract`, :mod:`~capcal_lib.grading.math`,
:mod:`~capcal_lib.grading.number`, :mod:`~capcal_lib.grading.choice`,
:mod:`~capcal_lib.grading.short`."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from capcal_lib.errors import InputError
from capcal_lib.grading import choice, math, number, pool, short
from capcal_lib.grading.extract import extract
from capcal_lib.grading.latex import LONGEST, too_large
from capcal_lib.manifests import Kind, write_text
from capcal_lib.questions import Answer

GRADER_VERSION = "4"  # changes whenever a verdict may
IDS = ("question_id", "sample_index", "sample")  # of a row of a file, kept as they are

Outcome = Literal["correct", "incorrect", "no_answer", "not_scored"]
# Whether an answer is right, and a remark; None for what is not known, with why where it stays so.
_Equal = tuple[bool | None, str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one response: where the answer was found and what was the matter with it is
    the ``reason``.
    """

    # no_answer: nothing extractable; not_scored: the grader failed, never counted as wrong
    verdict: Outcome
    extracted: str | None  # at most 500 characters; None for no_answer
    reason: str


def normalize(extracted: str, kind: Kind) -> str:
    """Return a form that is the same for extracted answers that are cheaply seen to be equal, to
    group votes by.

    For ``math`` there is no algebra: ``x+1`` and ``1+x`` are two groups.

    >>> (normalize("0.5", "number"), normalize("1/2", "math"), normalize("The Moon", "short"),
    ...     normalize("c", "choice"))
    ('1/2', '1/2', 'moon', 'C')
    """
    normal = {
        "math": math.normal,
        "number": number.normal,
        "choice": choice.normal,
        "short": short.normal,
    }
    return normal[kind](extracted)


def grade(response: str, answer: Answer) -> Verdict:
    r"""Grade one response, safely from any thread; hostile text is refused or graded, never
    evaluated.

    ``not_scored`` is where the comparison took more than a second of processor time. `InputError`
    for a gold answer that does not read as its kind, or is longer than 500 characters.

    >>> grade(r"Thus $x = \boxed{\tfrac12}$.", Answer("math", "0.5"))
    Verdict(verdict='correct', extracted='\\tfrac12', reason='boxed')
    >>> grade("<think>Perhaps \\boxed{4}?", Answer("number", "4"))
    Verdict(verdict='no_answer', extracted=None, reason='unfinished reasoning')
    """
    return grade_many([(response, answer)])[0]


def grade_many(pairs: Sequence[tuple[str, Answer]]) -> list[Verdict]:
    r"""Grade responses, each with its right answer, as `grade` does, on all cores; return the
    verdicts in order.

    Equal answers to equal questions are compared once.

    >>> gold = Answer("math", r"\frac{x}{2}")
    >>> responses = (r"\boxed{0.5x}", r"\boxed{x}", "Hm.")
    >>> [graded.verdict for graded in grade_many([(text, gold) for text in responses])]
    ['correct', 'incorrect', 'no_answer']
    """
    for answer in {answer for _, answer in pairs}:
        _check(answer)
    found = [
        (answer, *extract(response, answer.kind, _readable(answer))) for response, answer in pairs
    ]
    distinct = dict.fromkeys(
        (answer, extracted) for answer, extracted, _ in found if extracted is not None
    )
    settled = {key: _compare(*key) for key in distinct}
    settled |= _compare_slowly([key for key, told in settled.items() if told == (None, "")])
    return [
        Verdict("no_answer", None, how)
        if extracted is None
        else _verdict(extracted, how, *settled[answer, extracted])
        for answer, extracted, how in found
    ]


def _check(answer: Answer) -> None:
    """Refuse a gold answer that does not read as its kind."""
    shown = f"the gold answer {answer.gold!r:.80}"
    if answer.kind == "number" and number.read(answer.gold) is None:
        raise InputError(f"{shown} does not read as a number; use the kind 'math' or 'short'")
    if answer.kind == "choice" and not (choice.letter(answer.gold) or choice.later(answer.gold)):
        raise InputError(f"{shown} is not a letter from A to Z")
    if len(answer.gold) > LONGEST:
        raise InputError(f"{shown} is longer than {LONGEST} characters")


def _readable(answer: Answer) -> tuple[str, ...]:
    """Return what else an answer may be read as: the text of the right option, and its letter from
    K on.
    """
    later = answer.kind == "choice" and choice.later(answer.gold)
    if later:
        return *answer.aliases, answer.gold
    return answer.aliases


def _compare(answer: Answer, extracted: str) -> _Equal:
    """Compare with the gold answer and its aliases; None where a worker must tell."""
    if len(extracted) > LONGEST:
        return False, "too long"
    golds = (answer.gold, *answer.aliases)
    match answer.kind:
        case "number":
            return _compare_numbers(golds, extracted)
        case "choice":
            return choice.equal(answer.gold, answer.aliases, extracted), ""
        case "short":
            return short.equal(golds, extracted), ""
        case "math":
            results = [math.equal(gold, extracted) for gold in golds]
            if True not in results and any(map(too_large, (extracted, *golds))):
                return None, "too large"
            return True if True in results else None if None in results else False, ""


def _compare_numbers(golds: Sequence[str], extracted: str) -> _Equal:
    value = number.read(extracted)
    if value is None:
        return (None, "too large") if too_large(extracted) else (False, "not a number")
    results = [number.equal(right, value) for gold in golds if (right := number.read(gold))]
    if True in results:
        return True, ""
    if None in results:
        return None, f"unknown unit {value.words!r:.60}"
    return False, ""


def _compare_slowly(cases: list[tuple[Answer, str]]) -> dict[tuple[Answer, str], _Equal]:
    """Compare by algebra in worker processes, each pair of texts once."""
    golds = {case: [(gold, case[1]) for gold in (case[0].gold, *case[0].aliases)] for case in cases}
    distinct = list(dict.fromkeys(chain(*golds.values())))
    replies = (
        dict(zip(distinct, pool.settle(math.equal_slowly, distinct), strict=True))
        if distinct
        else {}
    )

    def told(results: list[bool | str]) -> _Equal:
        failed = [result for result in results if isinstance(result, str)]
        if failed and True not in results:
            return None, failed[0]
        return True in results, ""

    return {case: told([replies[pair] for pair in pairs]) for case, pairs in golds.items()}


def _verdict(extracted: str, how: str, equal: bool | None, remark: str) -> Verdict:
    bounded = extracted if len(extracted) <= LONGEST else extracted[: LONGEST - 1] + "…"
    if equal is None:
        return Verdict("not_scored", bounded, remark)
    return Verdict(
        "correct" if equal else "incorrect", bounded, f"{how}, {remark}" if remark else how
    )


def grade_file(in_path: str | Path, out_path: str | Path) -> int:
    """Grade a JSONL file of ``{kind, gold, aliases?, response}`` into one of ``{verdict, extracted,
    reason}``.

    Verdicts stand in the order of the rows, a row's ``question_id``, ``sample_index`` and
    ``sample`` beside them; other keys and empty lines are ignored. The number of rows is returned.
    The new file is put in place whole: nothing is written where an `InputError` is raised, for a
    row that is not as it must be (with its line number), a file that cannot be read or written, and
    an ``out_path`` that is the input or no regular file.

    >>> rows = Path(getfixture("tmp_path")) / "rows.jsonl"
    >>> _ = rows.write_text('{"kind": "number", "gold": "4", "response": "The answer is 4."}')
    >>> grade_file(rows, rows.with_name("verdicts.jsonl"))
    1
    >>> print(rows.with_name("verdicts.jsonl").read_text(), end="")
    {"verdict": "correct", "extracted": "4", "reason": "phrase"}
    """
    source = Path(in_path)
    target = Path(out_path)
    if target.exists() and (not target.is_file() or target.resolve() == source.resolve()):
        raise InputError(
            f"cannot write {target}: it is the input or no regular file; give another name after "
            "--out"
        )
    try:
        lines = source.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}") from None
    rows = []
    for place, line in enumerate(lines, 1):
        try:
            rows += [_row(line)] if line.strip() else []
        except InputError as error:
            raise InputError(f"{source}, line {place}: {error}") from None
    verdicts = grade_many([(row["response"], answer) for row, answer in rows])
    kept = ({name: row[name] for name in IDS if name in row} for row, _ in rows)
    graded = [ids | asdict(verdict) for ids, verdict in zip(kept, verdicts, strict=True)]
    write_text(target, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in graded))
    return len(verdicts)


def _row(line: bytes) -> tuple[dict[str, Any], Answer]:
    """Return a row of a file, and the right answer that it names."""
    try:
        row: Any = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"not valid JSON: {' '.join(str(error).split())}") from None
    if not isinstance(row, dict):
        raise InputError(
            f"must be an object with kind, gold and response; got {type(row).__name__}"
        )
    for key in ("kind", "gold", "response"):
        if key not in row:
            raise InputError(
                f"{key!r} is missing; a row has kind, gold, response and perhaps aliases"
            )
        if not isinstance(row[key], str):
            raise InputError(f"{key!r} must be a text; got {row[key]!r:.60}")
    aliases = row.get("aliases") or []
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise InputError(f"'aliases' must be a list of texts; got {aliases!r:.60}")
    answer = Answer(kind=row["kind"], gold=row["gold"], aliases=tuple(aliases))
    _check(answer)
    return row, answer


_MODULES = {  # of what needs runs, which a process that only compares does without
    "Agreement": "agreement",
    "judge_agreement": "agreement",
    "count_run": "counts",
    "count_verdicts": "counts",
    "GraderError": "error",
    "corrected_mean": "error",
    "corrected_mu": "error",
    "grader_error": "error",
    "propagate": "error",
    "judge_run": "judgements",
    "judges": "judgements",
    "read_judgements": "judgements",
    "verdicts_by": "judgements",
    "grade_run": "verdicts",
    "read_verdicts": "verdicts",
    "run_questions": "verdicts",
}

__all__ = [
    "GRADER_VERSION",
    "Agreement",
    "GraderError",
    "Outcome",
    "Verdict",
    "corrected_mean",
    "corrected_mu",
    "count_run",
    "count_verdicts",
    "grade",
    "grade_file",
    "grade_many",
    "grade_run",
    "grader_error",
    "judge_agreement",
    "judge_run",
    "judges",
    "normalize",
    "propagate",
    "read_judgements",
    "read_verdicts",
    "run_questions",
    "verdicts_by",
]


def __getattr__(name: str) -> Any:
    """Import what works on runs when it is first asked for."""
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
