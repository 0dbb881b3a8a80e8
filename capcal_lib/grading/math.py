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

    ``shape`` is ``scalar``, ``word``, ``list``, a pair of brackets such as ``(]``, or
    ``=`` and ``<`` for relations that are no labels and no intervals."""

    shape: str
    parts: list[str]
    label: str = ""


_ALL_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_WORD = re.compile(r"[A-Za-z]{5,}|[A-Za-z]{2,}(?:[ -][A-Za-z]{2,})+")
_COLUMN = re.compile(r"\\begin\s?\{[a-z]*matrix\}([^&]*?)(?:\\\\)?\s?\\end\s?\{[a-z]*matrix\}")
_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
_AND = re.compile(r",?\s?(?:\\text\{\s?,?\s?(?:and|or)\s?\}|(?<![A-Za-z])(?:and|or)(?![A-Za-z]))")
_SIGN = r"=|<|>|\\(?:le|ge|neq|in|approx)(?![A-Za-z])"
_FLIPPED = {">": "<", r"\ge": r"\le"}
_LABEL = re.compile(
    r"(?:\\?[A-Za-z]+|\\text\{[^{}]*\})(?:_\s?(?:\w|\{\w+\}))?'*(?:\s?\([\w,\s]*\))?|\\angle\s?[A-Z]+"
    r"|\(\s?[A-Za-z](?:\s?,\s?[A-Za-z])+\s?\)"
)
_SUCH_THAT = re.compile(r"\\\{\s?[a-z]\s?(?:\\mid|\||:|\\vert)(.*)\\\}")
_BRACKETED = re.compile(r"(?P<shape>[(\[]|(\\\{))(?P<inside>.*?)(?P<end>(?(2)\\\}|[)\]]))")


def read(text: str) -> Form:
    r"""Take a cleaned answer apart.

    >>> read("(1, 2]").shape, read("x = 5").label, read(r"3 \pm \sqrt{2}").parts, read("x>5").shape
    ('(]', 'x', ['3 + \\sqrt{2}', '3 - \\sqrt{2}'], '()')
    """
    text = text.strip()
    inside = _ALL_TEXT.fullmatch(text)
    text = inside[1].strip() if inside else text
    if (inside and not re.search(r"[\d,]", text)) or _WORD.fullmatch(text):
        return Form("word", [text])
    if column := _COLUMN.fullmatch(text):
        text = f"({column[1].replace(chr(92) * 2, ',')})"
    if not re.search(r"[(\[]|\\\{", text):
        text = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    pieces = [
        piece.replace(r"\pm", sign)
        for piece in _split(_AND.sub(", ", text), r"[,;]|\\cup")[::2]
        for sign in ("+-" if r"\pm" in piece else " ")
        if piece
    ]
    if len(pieces) > 1:
        labels = [read(piece).label for piece in pieces]
        if len({*labels}) == len(labels) and all(labels):
            named = sorted(zip(labels, pieces, strict=True))  # x = 1, y = 2
            return Form("()", [piece for _, piece in named])
        return Form("list", pieces)
    return _relation(text) or _bracketed(text) or Form("scalar", [text])


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


def _relation(text: str) -> Form | None:
    """Read an equation by what stands last and the name that stands first, an inequality as an
    interval.
    """
    sides = _split(text, _SIGN)  # and the signs between them
    if len(sides) == 1:
        return None
    if sides[1] in _FLIPPED:
        sides = [_FLIPPED.get(side, side) for side in sides[::-1]]
    first, value = sides[0], sides[-1]
    if {*sides[1::2]} <= {"=", r"\in", r"\approx"}:
        label = first.replace(" ", "") if _LABEL.fullmatch(first) else ""
        if not value or (not label and re.search("[a-z]", first)):
            return Form("=", [text])
        return read(value)._replace(label=label)
    if len(sides) == 3:
        sides = [r"-\infty", "<", *sides] if _LABEL.fullmatch(first) else [*sides, "<", r"\infty"]
    if len(sides) == 5 and {*sides[1::2]} <= {"<", r"\le"} and _LABEL.fullmatch(sides[2]):
        low, sign, label, other, high = sides
        if low and high:
            return Form("[("[sign == "<"] + "])"[other == "<"], [low, high], label)
    return Form("<", [text])


def _bracketed(text: str) -> Form | None:
    """Read a tuple, interval or set, whose first bracket is closed by its last."""
    if such := _SUCH_THAT.fullmatch(text):
        return read(such[1])
    found = _BRACKETED.fullmatch(text)
    if not found or _split(f"{found['inside']},", ",")[-1]:  # (1)(2)
        return None
    pieces = _split(found["inside"], ",")[::2]
    shape = found["shape"][-1] + found["end"][-1]
    if len(pieces) == 1 and pieces[0] != r"\emptyset":
        inner = read(pieces[0])
        return inner if shape == "{}" else None
    return Form(shape, pieces)


def equal(text: str, *golds: str) -> bool:
    r"""Say whether an answer is one of the right ones; only the workers should call it, for it may
    take long.

    >>> equal("[0,1)", r"0 \le x < 1"), equal("1,2", r"2 \text{ and } 1"), equal("52_8", "52_9")
    (True, True, False)
    """
    return any(_same(clean(gold), clean(text)) for gold in golds)


def _same(gold: str, other: str) -> bool:
    one, two = read(gold), read(other)
    if one.label and two.label and one.label != two.label:
        return False
    shapes = {one.shape, two.shape}
    if shapes <= {"scalar", "word"}:
        return _same_scalar(one.parts[0], two.parts[0], words="word" in shapes)
    if "=" in shapes or "<" in shapes:
        return all(re.search(_SIGN, text) for text in (gold, other)) and _verified(gold, other)
    if len(one.parts) != len(two.parts) or not (
        len(shapes) == 1 or shapes in ({"list", "{}"}, {"list", "()"})
    ):
        return False
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
_UNIT = re.compile(r"(.*\S)\s?(\\text\{[^{}]*\}(?:\s?\^\s?\{?\s?\d\s?\}?)?)")
# ratios, primes, numbers side by side or in a base
_BY_TEXT = re.compile(r"[:']|\\dots|(?<![_\d])\d+ \d|\b[A-F]*\d[0-9A-F]*_\d")


def _same_scalar(gold: str, other: str, *, words: bool) -> bool:
    if _JOINED.sub("", gold) == _JOINED.sub("", other):
        return True
    if words:
        one, two = (re.sub(r"\\text|\W", "", text) for text in (gold, other))
        return one == two if len(one) == 1 else one.casefold() == two.casefold()
    value, another = (number.literal(text, variables=True) for text in (gold, other))
    if value and another:
        return number.equal(value, another)
    if _BY_TEXT.search(f"{gold}, {other}") or ("matrix" in gold) != ("matrix" in other):
        return False
    (gold, unit), (other, second) = map(_without_unit, (gold, other))
    letters, others = map(_letters, (gold, other))
    capitals = letters != others and {*map(str.lower, letters)} == {*map(str.lower, others)}
    return not (capitals or (unit != second and unit and second)) and _verified(gold, other)


def _without_unit(text: str) -> tuple[str, str | None]:
    found = _UNIT.fullmatch(text)
    unit = number.unit(found[2]) if found else ""
    return (found[1], unit) if found and unit is not None else (text, unit)


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
    form = read(text)
    if form.shape not in ("scalar", "word", "=", "<"):
        parts = map(_normal, form.parts)
        if len(form.parts) > 1 and form.shape in ("list", "{}"):
            return ",".join(sorted(parts))
        return f"{form.shape[0]}{','.join(parts)}{form.shape[1]}"
    [text] = form.parts
    if form.shape == "scalar" and (value := number.literal(text, variables=True)):
        return str(value.value)
    text = re.sub(r"\\text\s?\{([^{}]*)\}", r"\1", text)
    return text.lower() if len(text) > 1 and form.shape == "word" else _JOINED.sub("", text)
