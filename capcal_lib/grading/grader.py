"""Extract, then compare: one response, or many at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from capcal_lib.errors import InputError
from capcal_lib.grading import choice, math, number, pool, short
from capcal_lib.grading.extract import extract
from capcal_lib.grading.latex import LONGEST, too_large
from capcal_lib.manifests import Kind
from capcal_lib.questions import Answer

GRADER_VERSION = "3"  # changes whenever a verdict may

Outcome = Literal["correct", "incorrect", "no_answer", "not_scored"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one response.

    Parameters
    ----------
    verdict
        ``correct``, ``incorrect``, ``no_answer`` (nothing extractable) or ``not_scored`` (the grader failed;
        never counted as wrong).
    extracted
        The answer found, of at most 500 characters; None for ``no_answer``.
    reason
        Where the answer was found, and what was the matter with it, or why there is no verdict.
    """

    verdict: Outcome
    extracted: str | None
    reason: str


def check(answer: Answer) -> None:
    """Refuse a gold answer that does not read as its kind.

    Raises
    ------
    InputError
        For a gold number that is no number, a gold letter that is none, or a gold answer of over 500 characters.
    """
    if answer.kind == "number" and number.read(answer.gold) is None:
        raise InputError(
            f"the gold answer {answer.gold!r:.80} does not read as a number; use the kind 'math' or 'short'"
        )
    if answer.kind == "choice" and not (choice.letter(answer.gold) or choice.later(answer.gold)):
        raise InputError(f"the gold answer {answer.gold!r:.80} is not a letter from A to Z")
    if len(answer.gold) > LONGEST:
        raise InputError(f"the gold answer {answer.gold!r:.80} is longer than {LONGEST} characters")


def extract_answer(response: str, kind: Kind) -> str | None:
    r"""Extract the final answer of a response, as consistency votes do; None where there is none.

    >>> extract_answer(r"I think \boxed{(C)}", "choice"), extract_answer("Hm.", "number")
    ('C', None)
    """
    text = extract(response, kind)[0]
    return text and text[:LONGEST]


def normalize(extracted: str, kind: Kind) -> str:
    """Return a form that is the same for answers that are cheaply seen to be equal, to group votes by.

    Parameters
    ----------
    extracted
        As returned by :func:`extract_answer`.
    kind
        Its kind. For ``math`` there is no algebra: ``x+1`` and ``1+x`` are two groups.

    Examples
    --------
    >>> normalize("0.5", "number"), normalize("1/2", "math"), normalize("The Moon", "short"), normalize("c", "choice")
    ('1/2', '1/2', 'moon', 'C')
    """
    normal = {"math": math.normal, "number": number.normal, "choice": choice.normal, "short": short.normal}
    return normal[kind](extracted)


def _compare(answer: Answer, extracted: str) -> tuple[bool | None, str]:
    """Compare with the gold answer and its aliases: equal or not, or None where a worker must tell; and a remark."""
    if len(extracted) > LONGEST:
        return False, "too long"
    golds = (answer.gold, *answer.aliases)
    match answer.kind:
        case "number":
            value = number.read(extracted)
            if value is None:
                return False, "not a number"
            return any((gold := number.read(text)) and number.equal(gold, value) for text in golds) or False, ""
        case "choice":
            return choice.equal(answer.gold, answer.aliases, extracted), ""
        case "short":
            return short.equal(golds, extracted), ""
        case "math":
            results = [math.equal(gold, extracted) for gold in golds]
            if True in results:
                return True, ""
            if too_large(extracted):
                return False, "too large or unbalanced"
            return (None, "") if None in results else (False, "")


def _readable(answer: Answer) -> tuple[str, ...]:
    """Return what else an answer may be read as: the text of the right option, and its letter from K on."""
    later = answer.kind == "choice" and choice.later(answer.gold)
    return (*answer.aliases, answer.gold) if later else answer.aliases


def grade_many(
    pairs: Sequence[tuple[str, Answer]], *, workers: int | None = None, time_limit: float = pool.TIME_LIMIT
) -> list[Verdict]:
    r"""Grade many responses; equal answers to equal questions are compared once.

    Parameters
    ----------
    pairs
        Responses with the right answers.
    workers
        Processes for the comparisons that need algebra; as many as there are cores by default.
    time_limit
        Seconds of processor time for one such comparison, after which its verdict is ``not_scored``.

    Returns
    -------
    list of Verdict
        One for each pair, in order.

    Raises
    ------
    InputError
        For a gold answer that does not read as its kind, and for less than one worker or no time.

    Examples
    --------
    >>> gold = Answer("math", r"\frac{x}{2}")
    >>> [verdict.verdict for verdict in grade_many([(r"\boxed{0.5x}", gold), (r"\boxed{x}", gold), ("Hm.", gold)])]
    ['correct', 'incorrect', 'no_answer']
    """
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1; got {workers}")
    if not time_limit > 0:
        raise InputError(f"time_limit must be a positive number of seconds; got {time_limit}")
    for answer in {answer for _, answer in pairs}:
        check(answer)
    found = [extract(response, answer.kind, _readable(answer)) for response, answer in pairs]
    settled: dict[tuple[Answer, str], tuple[bool | None, str]] = {}
    for (_, answer), (extracted, _) in zip(pairs, found, strict=True):
        if extracted is not None and (answer, extracted) not in settled:
            settled[answer, extracted] = _compare(answer, extracted)
    slow = [key for key, (equal, _) in settled.items() if equal is None]
    if slow:
        _settle_slowly(slow, settled, workers or pool.cores(), time_limit)
    verdicts = []
    for (_, answer), (extracted, how) in zip(pairs, found, strict=True):
        if extracted is None:
            verdicts.append(Verdict("no_answer", None, how))
        else:
            verdicts.append(_verdict(extracted, how, *settled[answer, extracted]))
    return verdicts


def _settle_slowly(
    slow: list[tuple[Answer, str]],
    settled: dict[tuple[Answer, str], tuple[bool | None, str]],
    workers: int,
    time_limit: float,
) -> None:
    questions = [(gold, extracted) for answer, extracted in slow for gold in (answer.gold, *answer.aliases)]
    distinct = list(dict.fromkeys(questions))
    replies = dict(
        zip(distinct, pool.settle(math.equal_slowly, distinct, workers=workers, time_limit=time_limit), strict=True)
    )
    for answer, extracted in slow:
        results = [replies[gold, extracted] for gold in (answer.gold, *answer.aliases)]
        reasons = [result for result in results if isinstance(result, str)]
        if True in results or not reasons:
            settled[answer, extracted] = True in results, ""
        else:
            settled[answer, extracted] = None, reasons[0]


def _verdict(extracted: str, how: str, equal: bool | None, remark: str) -> Verdict:
    bounded = extracted if len(extracted) <= LONGEST else extracted[: LONGEST - 1] + "…"
    if equal is None:
        return Verdict("not_scored", bounded, remark)
    return Verdict("correct" if equal else "incorrect", bounded, f"{how}, {remark}" if remark else how)


def grade(response: str, answer: Answer) -> Verdict:
    r"""Grade one response, safely from any thread.

    Parameters
    ----------
    response
        The text of one sample; hostile text is refused or graded, never evaluated.
    answer
        The right answer and its kind.

    Returns
    -------
    Verdict
        ``not_scored`` where the comparison took more than a second of processor time.

    Raises
    ------
    InputError
        For a gold answer that does not read as its kind.

    Examples
    --------
    >>> grade(r"Thus $x = \boxed{\tfrac12}$.", Answer("math", "0.5"))
    Verdict(verdict='correct', extracted='\\tfrac12', reason='boxed')
    >>> grade("<think>Perhaps \\boxed{4}?", Answer("number", "4"))
    Verdict(verdict='no_answer', extracted=None, reason='unfinished reasoning')
    """
    return grade_many([(response, answer)], workers=1)[0]
