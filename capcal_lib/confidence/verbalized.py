"""Verbalized confidence: the model says how likely a right answer is (paper, section 4.2)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from capcal_lib.manifests import Model
from capcal_lib.questions import Question
from capcal_lib.questions.prompts import verbalized_messages
from capcal_lib.questions.reasoning import answer_text
from capcal_lib.sampling.engines import Engine, Failure, Request, warn_unanswered

MOST_QUERIES = 3
KEPT_CHARACTERS = 2_000  # of the model's words; the estimate stands at their end

_BOXED = re.compile(r"\\boxed\s?\{([^{}]{0,60})\}")
# A decimal, a percentage, a fraction, or an integer; not a part of another number or word.
_NUMBER = re.compile(
    r"(?<![\w.,/−–-])(?:(?P<over>\d{1,6})/(?P<under>\d{1,6})|(?P<value>\d{0,9}\.\d{1,30}|\d{1,9})"
    r"\s?(?P<percent>\\?%)?)(?![\w/%]|[.,–-]\d)",
    re.ASCII,
)
_LABEL = re.compile(r"(?i)^(?:P|probability|confidence)\s?[=:≈]\s?")
_SENTENCE_END = re.compile(r"[.;!?\n]")
# Words, in all their forms, that may make a number something else than the probability of being
# right.
OTHERWISE = (
    "wrong", "incorrect", "inaccurate", "inaccuracy", "false", "err", "mistak", "fail", "doubt",
    "uncertain", "unsure", r"not\b", "never", "cannot", "±", r"\\pm",
)  # fmt: skip
_OTHERWISE = re.compile(rf"(?i)(?<![a-z])(?:{'|'.join(OTHERWISE)})|n['’]t\b")


class Estimate(NamedTuple):
    """An estimate of mu for one question, and what it cost."""

    question_id: str
    confidence: float  # in [0, 1]; NaN where missing
    tokens: int  # completion tokens spent, failed attempts included; 0 where the engine failed
    text: str | None = None  # the model's last words, cut to a bounded length


def verbalized(
    engine: Engine, model: Model, questions: Sequence[Question], *, seed: int
) -> Iterator[Estimate]:
    """Ask the model for the probability that it answers each question correctly; yield an estimate
    a question, as they come.

    If a reply holds no probability, the question is asked again, three times at most; after that
    its confidence is missing. The tokens of all attempts are counted (the paper's code counts only
    the last attempt). If the engine never answered, they are 0, and the reason is logged."""
    lacking = {question.id: question for question in questions}
    tokens = Counter[str]()
    texts: dict[str, str] = {}
    for attempt in range(MOST_QUERIES):
        failed: list[str] = []
        requests = [
            Request(one, verbalized_messages(one, model.prompt_style), (attempt,), "verbalized")
            for one in lacking.values()
        ]
        for group in engine.sample(requests, model.sampling, seed):
            if isinstance(group, Failure):  # asked again like one whose words hold no probability
                failed.append(group.reason)
                continue
            for sample in group:
                name = sample.question_id
                tokens[name] += max(1, sample.completion_tokens)  # 0: unknown
                texts[name] = sample.response[-KEPT_CHARACTERS:]
                probability = parse_probability(sample.response)
                if probability is not None:
                    del lacking[name]
                    yield Estimate(name, probability, tokens[name], texts[name])
        if not (lacking and texts):  # where none was answered, none would be
            break
    warn_unanswered(failed, len(questions))
    for name in lacking:
        yield Estimate(name, np.nan, tokens[name], texts.get(name))


def parse_probability(text: str) -> float | None:
    r"""Read the probability in [0, 1] that a model stated; None if it stated none.

    The last ``\boxed{}`` counts, as the paper's prompt asks for it. Without a box, a text that is
    only a number counts, or else the decimal, percentage or fraction in it, if there is one and no
    second. A number outside of [0, 1] is none, and so is one beside a word such as *wrong*, *fail*
    or *not*: in the sentence that leads to the box, or anywhere in a text without one. Reasoning is
    never read.

    >>> said = r"I said 0.9, so \boxed{85\%}", r"\boxed{P = .8}", "about 0.8", "7/10", "1"
    >>> [parse_probability(text) for text in said]
    [0.85, 0.8, 0.8, 0.7, 1.0]
    >>> said = "0.4 or 0.6", "<think> 0.9", "I doubt it: 0.1", r"I am wrong with \boxed{0.1}"
    >>> [parse_probability(text) for text in said]
    [None, None, None, None]
    """
    answer = answer_text(text)
    if answer is None:
        return None
    boxes = [*_BOXED.finditer(answer)]
    if boxes:
        before = _SENTENCE_END.split(answer[: boxes[-1].start()])[-1]
        return None if _OTHERWISE.search(before + boxes[-1][1]) else _alone(boxes[-1][1])
    alone = _alone(answer)
    if alone is not None or "\\boxed" in answer or _OTHERWISE.search(answer):
        return alone
    stated = [one for one in _NUMBER.finditer(answer) if re.search(r"[./%]", one[0])]
    return _value(stated[0]) if len(stated) == 1 else None


def _alone(text: str) -> float | None:
    """Read a text that is a probability and nothing else but its name."""
    return _value(_NUMBER.fullmatch(_LABEL.sub("", text.strip("$ \n")).rstrip("$. ")))


def _value(number: re.Match[str] | None) -> float | None:
    """Return what a number says, if it is a probability."""
    if number is None:
        return None
    if number["value"]:
        value = float(number["value"]) / (100 if number["percent"] else 1)
        return value if value <= 1 else None
    over, under = float(number["over"]), float(number["under"])
    are_odds = over + under == 100  # 50/50, 30/70
    return over / under if over <= under and under and not are_odds else None
