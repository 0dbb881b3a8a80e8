r"""A second opinion on a response, built from libraries and sharing no code with the first grader.

It is the more lenient of the two: mathematics is extracted and compared by Math-Verify, with its
rounding; a number is the last one there is; an option is found by Math-Verify's patterns; a short
answer shares nine tenths of its words with an accepted one (the F1 of SQuAD), or nearly all its
letters (rapidfuzz)."""

import re
from collections import Counter
from math import isclose

from capcal_lib.manifests import Kind

_REASONING_END = re.compile(r"</think>|assistantfinal|<\|message\|>")
_NUMBER = re.compile(r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")
_CHARACTERS = 5_000  # at the end of a response
_F1, _LETTERS = 0.9, 93.0  # shares of words and letters (of 100) from which names are alike


def second_opinion(response: str, kind: Kind, golds: tuple[str, ...]) -> bool:
    r"""Say whether a response looks right to other eyes; only the workers should call it, for it
    may take long.

    >>> (second_opinion(r"So \boxed{\frac{2}{4}}", "math", ("0.5",)),
    ...     second_opinion("It costs $8.50.", "number", ("7",)))
    (True, False)
    >>> (second_opinion("Surprise: Marie Currie", "short", ("Marie Curie",)),
    ...     second_opinion("B.", "choice", ("C",)))
    (True, False)
    """
    text = _REASONING_END.split(response)[-1][-_CHARACTERS:].strip()
    right = {"math": _math, "number": _number, "choice": _choice, "short": _short}[kind]
    return any(right(text, gold) for gold in golds)


def _math(text: str, gold: str) -> bool:
    from math_verify import LatexExtractionConfig, parse, verify

    found, right = (
        parse(each, [LatexExtractionConfig()], parsing_timeout=None) for each in (text, f"${gold}$")
    )
    return bool(verify(right, found, timeout_seconds=None))


def _number(text: str, gold: str) -> bool:
    values = [
        float(found[-1].replace(",", ""))
        for each in (text, gold)
        if (found := _NUMBER.findall(each))
    ]
    return (len(values) == 2 and isclose(*values)) or ("\\" in text and _math(text, gold))


def _choice(text: str, gold: str) -> bool:
    from math_verify import StringExtractionConfig, parse

    if len(gold) > 1:  # the text of the right option
        return _short(text, gold)
    patterns = StringExtractionConfig(tuple("ABCDEFGHIJ"), lowercase=False)
    found = re.findall(r"\\boxed\{\W*(?:\\text\{)?\W*([A-J])\b", text) or parse(
        text, [patterns], parsing_timeout=None
    )
    return bool(found) and found[-1] == gold


def _short(text: str, gold: str) -> bool:
    from rapidfuzz import fuzz, utils

    found = re.split(r"\\boxed\{|\bis\b|:|\n", text.rstrip("}$. \n"))[-1]
    one, other = (
        utils.default_process(re.sub(r"\\text|\b(?:a|an|the)\b", "", each.lower()))
        for each in (found, gold)
    )
    words = one.split(), other.split()
    shared = sum((Counter(words[0]) & Counter(words[1])).values())
    alike = shared and 2 * shared / (len(words[0]) + len(words[1])) >= _F1
    return bool(alike) or (not re.search(r"\d", one + other) and fuzz.ratio(one, other) >= _LETTERS)
