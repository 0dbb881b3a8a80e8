r"""Mathematics: the structure of an answer is taken apart here, and Math-Verify compares scalars.

What is equal stands, with cases, in ``book/reference/grading.md``. Beside Math-Verify there is what
it does not tell apart: bases, lists from tuples and intervals, inequalities from intervals, labels,
units, capital letters. It runs in worker processes alone."""

import re
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from capcal_lib.grading import number
from capcal_lib.grading.bounds import bounds
from capcal_lib.grading.latex import clean


class Form(NamedTuple):
    """An answer taken apart, one level deep.

    ``shape`` is ``scalar``, ``word``, ``list``, a pair of brackets such as ``(]``, or ``=`` for
    relations that are no labels and no intervals; the ``label`` is a name before a relation."""

    shape: str
    parts: list[str]
    label: str = ""
    unit: str = ""


_WORDS = re.compile(
    r"\\text\{([^{}\d,]*)\}|[A-Za-z]{5,}|[A-Za-z]{2,}(?:[ -][A-Za-z]{2,})+"  # in \text, or bare
)
_THOUSANDS = re.compile(  # outside brackets
    r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])(?![^(\[]*[)\]])(?!.*\\\})"
)
_AND = re.compile(r",?\s?(?:\\text\{\s?,?\s?(?:and|or)\s?\}|(?<![A-Za-z])(?:and|or)(?![A-Za-z]))")
_SIGN = r"=|<|>|\\(?:le|ge|neq|in|approx)(?![A-Za-z])"
_FLIPPED = {">": "<", r"\ge": r"\le"}
_LABEL = re.compile(
    r"(?:\\?[A-Za-z]+|\\text\{[^{}]*\})(?:_\s?(?:\w|\{\w+\}))?'*(?:\s?\([\w,\s]*\))?|\\angle\s?[A-Z]+"
    r"|\(\s?[A-Za-z](?:\s?,\s?[A-Za-z])+\s?\)"
)
_BRACKETED = re.compile(r"(?P<shape>[(\[]|(\\\{))(?P<inside>.*?)(?P<end>(?(2)\\\}|[)\]]))")
_UNIT = re.compile(r"(.*\S)\s?(\\text\{[^{}]*\}(?:\s?\^\s?\{?\s?\d\s?\}?)?)")


def read(text: str) -> Form:
    r"""Take a cleaned answer apart.

    >>> read("(1, 2]").shape, read("x = 5").label, read(r"3 \pm \sqrt{2}").parts, read("x>5").shape
    ('(]', 'x', ['3 + \\sqrt{2}', '3 - \\sqrt{2}'], '()')
    """
    if words := _WORDS.fullmatch(text):
        return Form("word", [words[1] or text])
    text = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    pieces = [
        piece.replace(r"\pm", sign)
        for piece in _split(_AND.sub(", ", text), r"[,;]|\\cup")[::2]
        for sign in ("+-" if r"\pm" in piece else " ")
        if piece
    ]
    if len(pieces) > 1:
        names = {piece.partition("=")[0] for piece in pieces if "=" in piece}
        return Form("()", sorted(pieces)) if len(names) == len(pieces) else Form("list", pieces)
    sides = _split(text, _SIGN)  # and the signs between them
    if len(sides) > 1:
        return _relation(sides) or Form("=", [text])
    if found := _BRACKETED.fullmatch(text):
        pieces = _split(found["inside"], ",")[::2]
        if len(pieces) > 1:
            return Form(found["shape"][-1] + found["end"][-1], pieces)
    if (found := _UNIT.fullmatch(text)) and (unit := number.unit(found[2])) is not None:
        return Form("scalar", [found[1]], unit=unit)
    return Form("scalar", [text])


def _split(text: str, separator: str) -> list[str]:
    """Split at separators outside all brackets; they stand between the pieces."""
    pieces = [""]
    depth = 0
    for token in re.split(rf"({separator}|[()\[\]{{}}])", text):
        if not depth and re.fullmatch(separator, token):
            pieces += [token, ""]
            continue
        depth += (token in list("([{")) - (token in list(")]}"))
        pieces[-1] += token
    return [piece.strip() for piece in pieces]


def _relation(sides: list[str]) -> Form | None:
    """Read an equation by what stands last and the name that stands first, an inequality as an
    interval.
    """
    if sides[1] in _FLIPPED:
        sides = [_FLIPPED.get(side, side) for side in reversed(sides)]
    first, signs = sides[0], {*sides[1::2]}
    label = first if _LABEL.fullmatch(first) else ""
    if signs <= {"<", r"\le"}:
        if label:
            sides = [r"-\infty", "<", *sides]
        low, sign, label, other, high = [*sides, "<", r"\infty"][:5]
        if _LABEL.fullmatch(label):
            return Form("[("[sign == "<"] + "])"[other == "<"], [low, high], label)
    is_equal = sides[-1] and signs <= {"=", r"\in", r"\approx"}
    if is_equal and (label or not re.search("[a-z]", first)):
        return read(sides[-1])._replace(label=label)
    return None


def equal(text: str, *golds: str) -> bool:
    r"""Say whether an answer is one of the right ones; only the workers should call it, for it may
    take long.

    >>> equal("[0,1)", r"0 \le x < 1"), equal("1,2", r"2 \text{ and } 1"), equal("52_8", "52_9")
    (True, True, False)
    """
    return any(_same(clean(gold), clean(text)) for gold in golds)


def _same(gold: str, other: str) -> bool:
    one, two = read(gold), read(other)
    shapes = {one.shape, two.shape}
    named = zip(one[2:], two[2:], strict=True)  # labels, and units
    if any(name and another and name != another for name, another in named):
        return False
    if "word" in shapes:
        word, another = (re.sub(r"\\text|\W", "", text) for text in (gold, other))
        return word == another if len(word) == 1 else word.casefold() == another.casefold()
    if "=" in shapes:
        return all(re.search(_SIGN, text) for text in (gold, other)) and _verified(gold, other)
    if len(one.parts) != len(two.parts) or (
        len(shapes) > 1 and shapes not in ({"list", "{}"}, {"list", "()"})
    ):
        return False
    if shapes == {"scalar"}:
        return _same_scalar(one.parts[0], two.parts[0])
    if not shapes <= {"list", "{}"}:
        return all(map(_same, one.parts, two.parts))
    left = list(two.parts)
    for part in one.parts:
        match = next((text for text in left if _same(part, text)), None)
        if match is None:
            return False
        left.remove(match)
    return True


_JOINED = re.compile(r"(?<!\d) | (?!\d)")
_COMMAND = re.compile(r"\\(?:begin|end)\s?\{[a-z]+\*?\}|\\[A-Za-z]+")
# ratios, primes, numbers side by side or in a base
_BY_TEXT = re.compile(r"[:']|\\dots|(?<![_\d])\d+ \d|\b[A-F]*\d[0-9A-F]*_\d")


def _same_scalar(gold: str, other: str) -> bool:
    if _JOINED.sub("", gold) == _JOINED.sub("", other):
        return True
    value, another = (number.literal(text, variables=True) for text in (gold, other))
    if value and another:
        return number.equal(value, another)
    if _BY_TEXT.search(f"{gold}, {other}"):
        return False
    letters, others = map(_letters, (gold, other))
    return (letters == others or letters != {*map(str.swapcase, others)}) and _verified(gold, other)


def _letters(text: str) -> set[str]:
    return set(re.findall("[A-Za-z]", _COMMAND.sub(" ", text)))


def _verified(gold: str, other: str) -> bool:
    from math_verify import verify

    one, two = map(parse, (gold, other))
    if one is None or two is None:
        return False
    with suppress(ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        (low, high), (least, most) = map(bounds, (one, two))
        if high < least or most < low:
            return False
    return bool(verify([one], [two], float_rounding=15, timeout_seconds=None))


_FRACTION = re.compile(r"(?<![\w.}^])(\d+)/(\d+)(?![\d.])")  # 1/2x is half of x


@lru_cache(maxsize=4096)
def parse(text: str) -> Any:
    """Parse a scalar as a SymPy expression; None where Math-Verify cannot, or loses a variable."""
    import math_verify
    import sympy
    from latex2sympy2_extended import NormalizationConfig

    if (known := number.literal(text, variables=True)) and not _letters(text):
        return sympy.Rational(known.value)
    text = _FRACTION.sub(r"\\frac{\1}{\2}", text)
    # Its stripping of units would read 2m as 2.
    settings = NormalizationConfig(units=False, malformed_operators=True, nits=False, boxed="none")
    config = math_verify.LatexExtractionConfig(
        boxed_match_priority=-1, normalization_config=settings
    )
    with sympy.evaluate(False):  # which for some binomials takes hours
        parsed = math_verify.parse(
            f"${text}$", [config], fallback_mode="no_fallback", parsing_timeout=None
        )
    if not parsed or isinstance(parsed[0], str):
        return None
    symbols = "".join(map(str, parsed[0].free_symbols)).lower()
    if not {*map(str.lower, _letters(text))} <= {*symbols, "e", "i"}:
        return None
    return parsed[0].subs({name: sympy.I for name in parsed[0].free_symbols if str(name) == "i"})


def normal(text: str) -> str:
    r"""Return one text for answers that are cheaply seen to be equal, to group votes by.

    >>> normal(r"\dfrac{1}{2}"), normal("x + 1"), normal("2, 1")
    ('1/2', 'x+1', '1,2')
    """
    return _normal(clean(text))


def _normal(text: str) -> str:
    shape, parts, *_ = read(text)
    if len(parts) > 1:
        spelt = map(_normal, parts)
        if shape in ("list", "{}"):
            return ",".join(sorted(spelt))
        return f"{shape[0]}{','.join(spelt)}{shape[1]}"
    if shape == "word":
        return parts[0].strip().lower() if len(parts[0]) > 1 else parts[0]
    value = number.literal(parts[0], variables=True)
    bare = re.sub(r"\\text\s?\{([^{}]*)\}", r"\1", parts[0])
    return str(value.value) if value else _JOINED.sub("", bare)
