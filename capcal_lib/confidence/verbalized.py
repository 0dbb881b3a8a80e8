"""Verbalized confidence: the model says how likely a right answer is (paper, section 4.2)."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from capcal_lib.confidence.clause import limit, meaning
from capcal_lib.manifests import Model
from capcal_lib.questions import Question
from capcal_lib.questions.prompts import verbalized_messages
from capcal_lib.questions.reasoning import answer_text
from capcal_lib.sampling.engines import Engine, Failure, Request, warn_unanswered
from capcal_lib.text import respelt

MOST_QUERIES = 3
KEPT_CHARACTERS = 2_000  # of the model's words; the estimate stands at their end
READ_CHARACTERS = 10_000

# Every repetition is bounded and no two neighbours match the same character, so the time is linear
# in the text.
_BOXED = re.compile(r"\\boxed\s{0,3}\{((?:[^{}]|\{[^{}]{0,40}\}){1,60})\}")
_SHARE = r"(?:[0-9]{0,30}\.[0-9]{1,30}|0,[0-9]{1,30}|[0-9]{1,30}(?:,[0-9]{1,2}|\.)?)"
_PER_CENT = r"(?:\s?(?:%|per\s?cent\b))"
_ESTIMATE = re.compile(
    rf"""(?xai)
    (?<![\w.,/−–-])                            # not inside a word, a date or another number
    (?P<label>(?:P|probability|confidence)["']?\s{{0,3}}[=:≈~]\s{{0,3}})?
    (?P<first>{_SHARE}) (?P<percent>{_PER_CENT})?
    (?: \s{{0,3}}(?:-|–|—|\bto\b|\band\b)\s{{0,3}}
        (?P<high>{_SHARE}) (?P<high_percent>{_PER_CENT})?
      | \s{{0,3}}(?:/|\bout\ of\b|\bin\b)\s{{0,3}} (?P<whole>{_SHARE}) )?
    (?: [\s,(]{{0,4}} ± \s{{0,3}} {_SHARE} (?P<width_percent>{_PER_CENT})? \)? )?
    (?![\w%/] | [.,][0-9])
    """,
)
# What tells an estimate in running text from a bare integer, a year or a count.
_MARKED = re.compile(r"(?i)[%/=:≈~]|[.,][0-9]|\b(?:of|in)\b|cent")
# the markup that models put around a number
_RESPELLINGS = (
    (r"\\(?:text|textbf|mathrm|mathbf)\{([^{}]{0,40})\}", r"\1"),
    (r"\\[dt]?frac\{([0-9.]{1,30})\}\{([0-9.]{1,30})\}", r"\1/\2"),
    (r"\\%", "%"),
    (r"\{,\}", ","),
    (r"\\pm\b|∓|\+\s?/?\s?[-−–]|(?i:\bplus\W(?:or\W)?minus|\bgive or take)\b", "±"),
    (r"±\s?(?i:an?|about|around|some|maybe)\b", "±"),
    (r"\\(?:[,!()]|approx)|[$*`{}]", ""),
    # An interval behind an estimate is its width.
    (
        rf"(?<=[\d%])\s?[\[(]\s?{_SHARE}{_PER_CENT}?\s?(?:,|-|–|—|to)\s?{_SHARE}{_PER_CENT}?\s?[\])]",
        "",
    ),
    # The whole scale is no estimate.
    (r"(?<![\w.,/−–-])0(?:\.0)?\s?(?:-|–|—|to|and)\s?1(?:00)?(?:\.0)?(?![\w%]|[.,][0-9])", ""),
    (r"^\s+|[\s.]+$", ""),
)


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
            Request(
                question,
                verbalized_messages(question, model.prompt_style),
                (attempt,),
                "verbalized",
            )
            for question in lacking.values()
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
    """Read the probability in [0, 1] that a model stated; None if it stated none.

    The last ``\\boxed{}`` with a probability counts. Without a box, a text that is only a number
    counts. In running text the last labelled estimate counts (``P``, ``probability`` or
    ``confidence``, then ``=``, ``:`` or the like), even if an unlabelled one follows; without any
    label, the last estimate: a decimal, a percentage, a fraction or a range. A range stands for its
    middle, but the whole scale, 0 to 1, is no estimate. Numbers outside [0, 1] are refused, not
    clipped. A probability of being wrong becomes 1 minus it. Not read are a width, a bound, a
    number that is denied or that belongs to a guess, and a share of something else; "at least" and
    the like are a bound only beside an estimate that satisfies it. Reasoning is never read, and
    only the end of a long text is.

    >>> said = (r"I said 0.9, so \\boxed{85\\%}", "about 0,8", "7/10", "0.7-0.8")
    >>> [parse_probability(text) for text in said]
    [0.85, 0.8, 0.7, 0.75]
    >>> [parse_probability(text) for text in ("Confidence: 0.4, at first 90%", "0.4, no, 90%")]
    [0.4, 0.9]
    >>> [parse_probability(text) for text in (r"\\boxed{1.5}", "1e9", "nan", "<think> 0.9")]
    [None, None, None, None]
    >>> said = ("a 10% chance that I am wrong", "0.9 ± 0.05", "60% sure, not 100%")
    >>> [parse_probability(text) for text in said]
    [0.9, 0.9, 0.6]
    """
    answer = answer_text(text)
    if answer is None:
        return None
    answer = unicodedata.normalize("NFKC", answer[-READ_CHARACTERS:])
    boxes = [*_BOXED.finditer(answer)]
    for box in reversed(boxes):
        value = _probability(_ESTIMATE.fullmatch(respelt(box[1], _RESPELLINGS)))
        if value is not None:
            wrong = meaning(answer, *box.span()) == "wrong"
            return 1 - value if wrong else value
    if boxes:
        return None
    answer = respelt(answer, _RESPELLINGS)
    value = _probability(_ESTIMATE.fullmatch(answer))
    if value is not None:
        return value
    estimates: list[tuple[re.Match[str], bool]] = []
    for match in _ESTIMATE.finditer(answer):
        of = meaning(answer, match.start("first"), match.end())
        if not of or not _MARKED.search(match[0]):
            continue
        if not estimates or not _keeps(estimates[-1][0], match):
            estimates.append((match, of == "wrong"))
    if not estimates:
        return None
    labelled = [one for one in estimates if one[0]["label"]]
    match, is_wrong = (labelled or estimates)[-1]
    value = _probability(match)
    return 1 - value if value is not None and is_wrong else value


def _keeps(estimate: re.Match[str], number: re.Match[str]) -> bool:
    """Tell whether a later number is a bound that the estimate keeps: 70%, at least 50%."""
    kind = limit(number.string, number.start("first"))
    value, bound = _probability(estimate), _probability(number)
    if kind is None or value is None or bound is None:
        return False
    return value >= bound if kind == "least" else value <= bound


def _probability(match: re.Match[str] | None) -> float | None:
    """Return the probability that is stated: by a number, the middle of a range, a percentage or a
    fraction; None where it is none.
    """
    if match is None:
        return None
    first = _number(match["first"])
    high = _number(match["high"] or match["first"])
    whole = _number(match["whole"] or "1")
    is_percentage = bool(match["percent"] or match["high_percent"])
    if match["width_percent"] and first > 1:  # 90 ± 5%
        is_percentage = True
    if match["whole"] and first + whole == 100:  # 50/50 and 30/70
        is_percentage = True
    if match["label"] and not match["whole"] and first > 1 and first.is_integer():
        is_percentage = True  # confidence: 85
    if is_percentage:
        whole = 100.0
    middle = (first + high) / 2
    if not whole or middle > whole:
        return None
    return middle / whole


def _number(text: str) -> float:
    """Read a number that may have a comma for the point."""
    return float(text.replace(",", "."))
