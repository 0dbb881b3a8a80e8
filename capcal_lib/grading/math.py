r"""Mathematics: the structure of an answer is taken apart here, and Math-Verify compares scalars.

What is equal stands, with cases, in ``book/reference/grading.md``. Beside Math-Verify there is what
it does not tell apart: bases, lists from tuples and intervals, inequalities from intervals, labels,
units, capital letters. It runs in worker processes alone."""

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from capcal_lib.grading import number
from capcal_lib.grading.latex import LONGEST, clean


class Form(NamedTuple):
    """An answer taken apart.

    ``shape`` is ``scalar``, ``word``, ``base``, ``list``, ``{}``, ``union``, a pair of brackets
    such as ``(]``, or ``=`` and ``<`` for relations that are no labels and no intervals."""

    shape: str
    text: str = ""
    parts: tuple["Form", ...] = ()
    label: str = ""


_ALL_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_WORD = re.compile(r"[A-Za-z]{5,}|[A-Za-z]{2,}(?:[ -][A-Za-z]{2,})+")
_BASE = re.compile(r"\(?([0-9A-F]+)\)?\s?_\s?\{?\s?(\d{1,2})\s?\}?")
_COLUMN = re.compile(r"\\begin\s?\{[a-z]*matrix\}([^&]*?)(?:\\\\)?\s?\\end\s?\{[a-z]*matrix\}")
_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
_AND = re.compile(r",?\s?(?:\\text\{\s?,?\s?(?:and|or)\s?\}|(?<![A-Za-z])(?:and|or)(?![A-Za-z]))")
_SIGN = re.compile(r"=|<|>|\\(?:le|ge|neq|in|approx)(?![A-Za-z])")
_FLIPPED = {">": "<", r"\ge": r"\le", "<": ">", r"\le": r"\ge"}
_LABEL = re.compile(
    r"(?:\\?[A-Za-z]+|\\text\{[^{}]*\})(?:_\s?(?:\w|\{\w+\}))?'*(?:\s?\([\w,\s]*\))?|\\angle\s?[A-Z]+"
)
_SUCH_THAT = re.compile(r"\\\{\s?[a-z]\s?(?:\\mid|\||:|\\vert)(.*)\\\}")
_BRACKETS = {"(": ")]", "[": ")]", r"\{": (r"\}",)}


def read(text: str, *, nested: bool = False) -> Form:
    r"""Take a cleaned answer apart.

    >>> read("(1, 2]").shape, read("x = 5").label, read(r"3 \pm \sqrt{2}").shape, read("x>5").shape
    ('(]', 'x', 'list', '()')
    """
    text = text.strip()
    inside = _ALL_TEXT.fullmatch(text)
    text = inside[1].strip() if inside else text
    wordy = (inside and not re.search(r"[\d,]", text)) or _WORD.fullmatch(text)
    if wordy and not number.digits(text).isdigit():
        return Form("word", text)
    if base := _BASE.fullmatch(text):
        return Form("base", f"{base[1]}_{base[2]}")
    if number.literal(text, variables=not inside) and not (nested and "," in text):
        return Form("scalar", text)
    if column := _COLUMN.fullmatch(text):
        text = f"({column[1].replace(chr(92) * 2, ',')})"
    if not nested and not re.search(r"[(\[]|\\\{", text):
        text = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    text = _AND.sub(", ", text).replace(", ,", ",")
    for shape, separator in (("union", r"\\cup"), ("list", "[,;]")):
        pieces, _ = _split(text, re.compile(separator))
        if len(pieces) > 1 and any(pieces):
            return _list(shape, [read(piece, nested=True) for piece in pieces if piece])
    return (
        _relation(text)
        or _bracketed(text)
        or (
            _list("list", [read(text.replace(r"\pm", sign)) for sign in "+-"])
            if r"\pm" in text
            else Form("scalar", text)
        )
    )


def _split(text: str, separator: re.Pattern[str]) -> tuple[list[str], list[str]]:
    """Split at separators outside all brackets; return the pieces, and the separators."""
    pieces: list[str] = []
    found: list[str] = []
    start = 0
    for match in separator.finditer(text):
        before = text[: match.start()]
        if sum(map(before.count, "([{")) == sum(map(before.count, ")]}")):
            pieces.append(text[start : match.start()].strip())
            found.append(match[0])
            start = match.end()
    return [*pieces, text[start:].strip()], found


def _list(shape: str, forms: Sequence[Form]) -> Form:
    flat = list(chain(*(form.parts if form.shape == shape else [form] for form in forms)))
    labels = [form.label for form in flat]
    names = {re.sub(r"_.*", "", label) for label in labels if label}
    if "" not in labels and len(names) == len(flat) > 1:  # x = 1, y = 2
        return _named(labels, flat)
    flat = [form._replace(label="") for form in flat]
    if "" not in labels and all(form.shape[:1] in ("(", "[") for form in flat):
        shape = "union"  # x < 2 or x > 3
    return Form(shape, parts=tuple(flat), label=names.pop() if len(names) == 1 else "")


def _named(labels: Sequence[str], values: Sequence[Form]) -> Form:
    ordered = sorted(zip(labels, values, strict=True), key=lambda pair: pair[0])
    parts = tuple(form._replace(label="") for _, form in ordered)
    return Form("()", parts=parts, label=",".join(sorted(labels)))


def _relation(text: str) -> Form | None:
    sides, signs = _split(text, _SIGN)
    if not signs:
        return None
    if set(signs) <= {"=", r"\in", r"\approx"}:
        return _equation(sides, text)
    if signs[0] in (">", r"\ge"):
        sides, signs = sides[::-1], [_FLIPPED.get(sign, sign) for sign in signs[::-1]]
    if len(sides) == 3 and set(signs) <= {"<", r"\le"} and _LABEL.fullmatch(sides[1]):
        return _interval(sides[0], signs, sides[2], sides[1])
    if len(sides) == 2 and all(sides) and signs[0] in ("<", r"\le"):
        for side, other in (sides, sides[::-1]):
            if _LABEL.fullmatch(side) and not re.search(r"(?<!\\)\b[a-z]\b", other):
                below = side == sides[0]
                low, high = (r"-\infty", other) if below else (other, r"\infty")
                return _interval(low, ["<", *signs] if below else [*signs, "<"], high, side)
    return Form("<", text)


def _interval(low: str, signs: Sequence[str], high: str, label: str) -> Form:
    shape = ("(" if signs[0] == "<" else "[") + (")" if signs[1] == "<" else "]")
    return Form(shape, parts=(read(low), read(high)), label=label)


def _equation(sides: list[str], text: str) -> Form:
    """Read what stands last, by the name that stands first: x = 2, or (x, y) = (1, 2)."""
    if len(sides) == 2 and _LABEL.fullmatch(sides[1]) and not re.search("[a-z]", sides[0]):
        sides = sides[::-1]  # 2 = x
    name = sides[0]
    value = read(sides[-1])
    if not all(sides[1:]):
        return Form("=", text)
    names = re.fullmatch(r"\(\s?([A-Za-z](?:\s?,\s?[A-Za-z])+)\s?\)", name)
    if names and len(labels := names[1].replace(" ", "").split(",")) == len(value.parts):
        return _named(labels, value.parts)
    if _LABEL.fullmatch(name):
        return value._replace(label=name.replace(" ", ""))
    return Form("=", text) if re.search("[a-z]", name) else value


def _bracketed(text: str) -> Form | None:
    """Read a tuple, interval or set, whose first bracket is closed by its last."""
    if such := _SUCH_THAT.fullmatch(text):
        return read(such[1])
    for opening, closings in _BRACKETS.items():
        for closing in closings:
            inside = text[len(opening) : len(text) - len(closing)]
            if text.startswith(opening) and text.endswith(closing) and len(text) > 1:
                pieces, _ = _split(inside, re.compile(","))
                if _split(inside + ",", re.compile(","))[0][-1]:
                    continue  # (1)(2)
                shape = (opening + closing).replace("\\", "")
                if len(pieces) > 1 or shape == "{}":
                    return Form(shape, parts=tuple(read(piece, nested=True) for piece in pieces))
                if shape == "()" and (inner := read(inside, nested=True)).shape == "word":
                    return inner
    return None


def equal(gold: str, other: str) -> bool:
    r"""Say whether two answers are equal; only the workers should call it, for it may take long.

    >>> equal("[0,1)", r"0 \le x < 1"), equal("1,2", r"2 \text{ and } 1"), equal("52_8", "52_9")
    (True, True, False)
    """
    return _same(read(clean(gold)), read(clean(other)))


def _same(one: Form, two: Form) -> bool:
    if one.label and two.label and one.label != two.label and "=" not in (one.shape, two.shape):
        return False
    one, two = (
        form.parts[0]
        if len(form.parts) == 1
        and form.shape in ("list", "{}")
        and form.parts[0].text != r"\emptyset"
        else form
        for form in (one, two)
    )
    shapes = {one.shape, two.shape}
    if shapes <= {"scalar", "word"}:
        return _same_scalar(one.text, two.text, words="word" in shapes)
    if "=" in shapes or "<" in shapes:
        sides = [f"{form.label}={form.text}" if form.label else form.text for form in (one, two)]
        return _same_relation(*sides)
    if "base" in shapes:
        return one.shape == two.shape and one.text == two.text
    if len(one.parts) != len(two.parts) or not (
        len(shapes) == 1 or shapes in ({"list", "{}"}, {"list", "()"})
    ):
        return False
    if shapes & {"{}", "union"} or shapes == {"list"}:
        left = list(two.parts)
        for part in one.parts:
            match = next((form for form in left if _same(part, form)), None)
            if match is None:
                return False
            left.remove(match)
        return True
    return all(map(_same, one.parts, two.parts))


_JOINED = re.compile(r"(?<!\d) | (?!\d)")
_COMMAND = re.compile(r"\\(?:begin|end)\s?\{[a-z]+\*?\}|\\[A-Za-z]+")
_UNIT = re.compile(r"(.*\S)\s?(\\text\{[^{}]*\}(?:\s?\^\s?\{?\s?\d\s?\}?)?)")


def _same_scalar(gold: str, other: str, *, words: bool) -> bool:
    if _JOINED.sub("", gold) == _JOINED.sub("", other):
        return True
    plain = [re.sub(r"\\text|[^\w:']", "", text) for text in (gold, other)]
    if words or ":" in gold + other or "'" in gold + other:
        return plain[0] == plain[1] or (
            len(plain[0]) > 1 and plain[0].casefold() == plain[1].casefold()
        )
    one, two = (number.literal(text, variables=True) for text in (gold, other))
    if one and two:
        return number.equal(one, two)
    if any(re.search(r"(?<![_\d])\d+ \d|\\dots", text) for text in (gold, other)):
        return False
    units = []
    for place, text in enumerate((gold, other)):
        if found := _UNIT.fullmatch(text):
            units.append(number.unit(found[2]))
            gold, other = (found[1], other) if place == 0 else (gold, found[1])
    if None in units or (len(units) == 2 and units[0] != units[1]):
        return False
    letters = [set(re.findall("[A-Za-z]", _COMMAND.sub(" ", text))) for text in (gold, other)]
    if {*map(str.lower, letters[0])} == {*map(str.lower, letters[1])} and letters[0] != letters[1]:
        return False
    from math_verify import verify

    one, two = (parse(text) for text in (gold, other))
    if one is None or two is None:
        return False
    return bool(verify([one], [two], float_rounding=15, timeout_seconds=None))


def _same_relation(gold: str, other: str) -> bool:
    """Say whether left minus right of one is a multiple of the other's, a positive one for <."""
    differences = []
    kinds = []
    for text in (gold, other):
        sides, signs = _split(text, _SIGN)
        if len(sides) != 2:
            return gold.replace(" ", "") == other.replace(" ", "")
        left, right = (parse(side) for side in sides)
        if left is None or right is None:
            return False
        kinds.append(_FLIPPED[signs[0]] if signs[0] in (">", r"\ge") else signs[0])
        differences.append(right - left if signs[0] in (">", r"\ge") else left - right)
    if kinds[0] != kinds[1] or 0 in differences:
        return False
    ratio = (differences[0] / differences[1]).simplify()
    return bool(ratio.is_number and ratio != 0 and (kinds[0] == "=" or ratio > 0))


_EXACT = (
    (re.compile(r"(?<![\w.}^])(\d+)/(\d+)(?![\d.])"), r"\\frac{\1}{\2}"),  # 1/2x is half of x
    (re.compile(r"((?<![_^.\d])\d+(?:\.\d+)?(?=\(|\\binom)|\)(?=[(\d]))"), r"\1\\cdot "),
    (re.compile(r"\\log_e(?![a-z])"), r"\\ln "),
)
_DECIMAL = re.compile(r"\d*\.\d+|\d+\.")


@lru_cache(maxsize=4096)
def parse(text: str) -> Any:
    """Parse a scalar as a SymPy expression; None where Math-Verify cannot, or loses a variable."""
    import math_verify
    import sympy
    from latex2sympy2_extended import NormalizationConfig

    for pattern, replacement in _EXACT:
        text = pattern.sub(replacement, text)
    text = _DECIMAL.sub(
        lambda found: (
            rf"\frac{{{Fraction(found[0]).numerator}}}{{{Fraction(found[0]).denominator}}}"
        ),
        text,
    )
    # Its stripping of units would read 2m as 2.
    settings = NormalizationConfig(units=False, malformed_operators=True, nits=False, boxed="none")
    config = math_verify.LatexExtractionConfig(
        boxed_match_priority=-1, normalization_config=settings
    )
    parsed = math_verify.parse(
        f"${text}$", [config], fallback_mode="no_fallback", parsing_timeout=None
    )
    if not parsed or isinstance(parsed[0], str):
        return None
    letters = {letter.lower() for letter in re.findall("[A-Za-z]", _COMMAND.sub(" ", text))} - {
        "e",
        "i",
    }
    if not letters <= set("".join(map(str, parsed[0].free_symbols)).lower()):
        return None
    return parsed[0].subs({name: sympy.I for name in parsed[0].free_symbols if str(name) == "i"})


def normal(text: str) -> str:
    r"""Return one text for answers that are cheaply seen to be equal, to group votes by.

    >>> normal(r"\dfrac{1}{2}"), normal("x + 1"), normal("2, 1")
    ('1/2', 'x+1', '1,2')
    """
    if len(text) > LONGEST:
        return text
    return _normal(read(clean(text)))


def _normal(form: Form) -> str:
    if form.parts:
        parts = list(map(_normal, form.parts))
        if form.shape in ("list", "{}") and len(parts) > 1:
            return ",".join(sorted(parts))
        if form.shape == "union":
            return "|".join(sorted(parts))
        return f"{form.shape[0]}{','.join(parts)}{form.shape[-1]}"
    value = number.literal(form.text, variables=True) if form.shape == "scalar" else None
    if value:
        return str(value.value)
    text = re.sub(r"\\text\s?\{([^{}]*)\}", r"\1", form.text)
    return text.lower() if len(text) > 1 and form.shape == "word" else _JOINED.sub("", text)
