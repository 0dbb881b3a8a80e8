r"""LaTeX answers: structure is compared here, exactly; only scalar expressions are left to
Math-Verify.

What is equal stands, with cases, in ``book/reference/grading.md``.

Scalars that are neither the same text nor numbers are parsed by Math-Verify, with its own stripping
of units and its rounding switched off, and their difference is evaluated:
:mod:`capcal_lib.grading.symbolic`. Only known commands are let through to the parser; anything else
can only match the gold answer's own text."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from math import inf
from typing import NamedTuple

from capcal_lib.grading import number, units
from capcal_lib.grading.latex import clean, depths, tokens, too_large
from capcal_lib.grading.units import Unit

MOST_ELEMENTS = 50
_INEQUALITY = "inequality"  # the text of an interval that was written as one
_SEPARATORS = {"union": (r"\cup",), "list": (",", ";")}


@dataclass(frozen=True, slots=True)
class Form:
    """An answer taken apart.

    ``shape`` is ``scalar``, ``word``, ``base``, ``list``, ``set``, ``union``, ``minus``, a pair of
    brackets such as ``(]``, ``matrix RxC``, or a relation ``=``, ``<``, ``\\le``, ``\\neq`` between
    two parts. ``words`` stand after a scalar and are no known unit."""

    shape: str
    text: str = ""
    parts: tuple["Form", ...] = ()
    label: str = ""
    unit: Unit = units.NONE
    words: str = ""
    value: number.Number | None = None


# Three-valued comparison of two scalars: equal, different, or None for not settled.
Compare = Callable[[Form, Form], bool | None]

_WORD = re.compile(r"[A-Za-z]{5,}|[A-Za-z]{2,}(?:[ -][A-Za-z]{2,})+")
_ALL_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_TRAILING_UNIT = re.compile(r"(.*\S)\s?\\text\{\s?([^{}]*)\}(?:\s?\^\s?\{?\s?(\d)\s?\}?)?")
_BASE = re.compile(
    r"(?:\\text\{(?=\w+\})|\((?=\w+\)))?([0-9A-F]+)[})]?\s?_\s?(?:\{\s?(\d{1,2})\s?\}|(\d{1,2}))"
)
_LABEL = re.compile(
    r"(?:[A-Za-z]|\\[a-zA-Z]+|\\text\{[^{}]*\}|[A-Z]{2,4})(?:_\s?(?:\w|"
    r"\{\w+\}))?'*(?:\s?\(\s?[\w,\s]*\))?|\\angle\s?[A-Z]+"
)
_EXCLUDED = re.compile(r"(?:[A-Za-z]\s?\\in\s?\(-\\infty,\\infty\),?\s?)?([A-Za-z])\s?\\neq(.+)")
_INDEX = re.compile(r"_(?:\w|\{\w+\})$")
_NAMES = re.compile(r"\(\s?([A-Za-z](?:\s?,\s?[A-Za-z])+)\s?\)")
_ALL_REALS = frozenset(
    ["all reals", "all real numbers", "the real numbers", "the set of all real numbers"]
)
_ARITHMETIC = re.compile(
    r"(?:[\d\s.+\-/(){}!^]|\\(?:cdot|div|frac|sqrt|binom|left|right)(?![A-Za-z]))+"
)
_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
_AND = re.compile(r",?\s?(?:\\text\{\s?,?\s?(?:and|or)\s?\}|(?<![A-Za-z])(?:and|or)(?![A-Za-z]))")
_LESS = {"<", r"\le"}
_GREATER = {">", r"\ge"}
_FLIPPED = {">": "<", r"\ge": r"\le", "<": ">", r"\le": r"\ge"}
_RELATIONS = {"=", *_FLIPPED, r"\neq", r"\in", r"\approx"}
_FUNCTIONS = {
    f"\\{name}"
    for name in re.findall(
        r"\w+", "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln exp"
    )
}
_GREEK = re.findall(
    r"\S+",
    r"\alpha \beta \gamma \delta \epsilon \theta \lambda \mu \nu \rho \sigma \tau "
    r"\phi \varphi \omega",
)
_FLOORS = {r"\lfloor", r"\rfloor", r"\lceil", r"\rceil"}
_KNOWN = {r"\frac", r"\sqrt", r"\pi", r"\cdot", r"\div", r"\binom", *_FLOORS, *_FUNCTIONS, *_GREEK}


def read(text: str) -> Form | None:
    r"""Take an answer apart; None where it is too large to be handled.

    >>> (read("(1, 2]").shape, read("x = 5").label, read(r"3 \pm \sqrt{2}").shape,
    ...     read("9^{9^{9^9}}"))
    ('(]', 'x', 'list', None)
    """
    if too_large(text):
        return None
    return _read(clean(text), nested=False)


def _read(text: str, *, nested: bool) -> Form:
    text = text.strip()
    if inside := _ALL_TEXT.fullmatch(text):
        text = inside[1].strip()
        if "," in text:
            return _read(text, nested=nested)
        if not any(mark.isdigit() for mark in text):
            return _word(text.strip("() ."))
    if _WORD.fullmatch(text) and rf"\{text}" not in _FUNCTIONS:
        return _word(text)
    if found := _BASE.fullmatch(text):
        return Form("base", f"{found[1].lstrip('0') or '0'}_{found[2] or found[3]}")
    value = number.literal(text, variables=True)
    if value and not (nested and "," in text):
        return _scalar(text, value)
    if not nested:
        text = _THOUSANDS.sub(_joined, text)
        text = _AND.sub(", ", text).replace(", ,", ",")
    if found := _EXCLUDED.fullmatch(text):
        letter, rest = found.groups()
        points = _read(rest.replace(rf"{letter}\neq", " "), nested=False)
        excluded = points.parts if points.shape == "list" else (points,)
        if all(point.value for point in excluded):
            return _without(letter, excluded)
    parts = tokens(text)
    levels = depths(parts)
    if levels is None:
        return _scalar(text)
    sets = _split(parts, levels, (r"\setminus",))
    if len(sets) > 1:
        return _real_set(Form("minus", parts=_read_all(sets)))
    for shape, separators in _SEPARATORS.items():
        pieces = _split(parts, levels, separators)
        if len(pieces) > 1 and any(pieces):
            return _list(shape, [piece for piece in pieces if piece])
    return (
        _relation(parts, levels)
        or _bracketed(parts, levels)
        or _scaled_matrix(parts, levels)
        or _plus_minus(parts)
        or _scalar_with_unit(text)
    )


def _read_all(pieces: Iterable[str]) -> tuple[Form, ...]:
    return tuple(_read(piece, nested=True) for piece in pieces)


def _word(text: str) -> Form:
    text = text.lower()
    spelled = number.in_words(text)
    if spelled and not spelled[1]:
        return _scalar(text, number.Number(spelled[0]))
    if text in _ALL_REALS:
        return _all_reals()
    return Form("word", text)


def _all_reals() -> Form:
    return Form("()", parts=(_scalar(r"-\infty"), _scalar(r"\infty")))


def _joined(match: re.Match[str]) -> str:
    """Join thousands, outside brackets only."""
    before = tokens(match.string[: match.start()])
    opened = sum(part in ("(", "[", r"\{") for part in before)
    closed = sum(part in (")", "]", r"\}") for part in before)
    if opened > closed:
        return match[0]
    return match[0].replace(",", "")


def _split(parts: Sequence[str], levels: Sequence[int], separators: Sequence[str]) -> list[str]:
    """Split at separators outside all brackets."""
    pieces: list[list[str]] = [[]]
    for part, level in zip(parts, levels, strict=True):
        if level == 0 and part in separators:
            pieces.append([])
        else:
            pieces[-1].append(part)
    return [_join(piece) for piece in pieces]


def _join(parts: Sequence[str]) -> str:
    """Undo :func:`tokens`; a space after a command only where a letter follows, and between
    numbers.
    """
    text = ""
    for part in parts:
        command_runs_on = part[0].isalpha() and re.search(r"\\[A-Za-z]+$", text)
        numbers_meet = text[-1:].isdigit() and part[0].isdigit()
        if command_runs_on or numbers_meet:
            text += " "
        text += part
    return text


def _list(shape: str, pieces: list[str]) -> Form:
    flat = [*_flat(shape, _read_all(pieces))]
    labels = {form.label for form in flat} - {""}
    if shape == "list" and len(labels) == len(flat) > 1:
        named = _named([form.label for form in flat], flat)
        if named:
            return named
        flat = [replace(form, label=_INDEX.sub("", form.label)) for form in flat]
    label = flat[0].label
    others = {form.label for form in flat[1:]}
    if others <= {label} or others == {""}:  # x = 1, x = 2 and x = 1, 2 are lists with one label
        flat = [replace(form, label="") for form in flat]
    else:
        label = ""
    if shape == "list" and all(_is_inequality(form) for form in flat):
        shape = "union"  # x < 2 or x > 3
    if len(flat) == 1 and shape == "list":
        return replace(flat[0], label=label)
    return _real_set(Form(shape, parts=tuple(flat), label=label))


def _is_inequality(form: Form) -> bool:
    return form.text == _INEQUALITY and form.shape != "word"


class Cut(NamedTuple):
    """A place between reals: just below a value, or just above it."""

    value: Fraction | float
    above: bool


class Segment(NamedTuple):
    """The reals between two cuts; a single one where both are at one value."""

    low: Cut
    high: Cut

    @property
    def is_point(self) -> bool:
        return self.low.value == self.high.value

    def form(self) -> Form:
        """Write it as an interval."""
        opening = "(" if self.low.above else "["
        closing = "]" if self.high.above else ")"
        ends = (_number(self.low.value), _number(self.high.value))
        return Form(opening + closing, parts=ends)


_ENDLESS = {r"\infty": inf, r"-\infty": -inf}


def _real_set(form: Form) -> Form:
    """Write a union or difference of sets of numbers in one way; what is of anything else stays."""
    segments = _segments(form) if form.shape in ("union", "minus") else None
    if segments is None:
        return form
    parts = [each.form() for each in segments if not each.is_point]
    points = tuple(_number(each.low.value) for each in segments if each.is_point)
    if points:
        parts.append(Form("set", parts=points))
    if not parts:
        return _scalar(r"\emptyset")
    if len(parts) == 1:
        return replace(parts[0], label=form.label)
    return Form("union", parts=tuple(parts), label=form.label)


def _number(value: Fraction | float) -> Form:
    if isinstance(value, Fraction):
        return _scalar("", number.Number(value))
    return _scalar(r"\infty" if value > 0 else r"-\infty")


def _segments(form: Form) -> list[Segment] | None:
    """Return a set of numbers as disjoint intervals from low to high; None where it is none."""
    if form.shape in ("union", "minus"):
        return _combined(form)
    ends: list[Fraction | float] = []
    for part in form.parts:
        value = _end(part)
        if value is None:
            return None
        ends.append(value)
    if form.shape == "set" and ends:
        return [Segment(Cut(value, above=False), Cut(value, above=True)) for value in ends]
    if form.shape in ("()", "[]", "[)", "(]") and len(ends) == 2 and ends[0] < ends[1]:
        low = Cut(ends[0], above=form.shape.startswith("("))
        high = Cut(ends[1], above=form.shape.endswith("]"))
        return [Segment(low, high)]
    return None


def _end(form: Form) -> Fraction | float | None:
    """Return the number, or infinity, that ends an interval."""
    if form.value and not form.unit.powers:
        return form.value.value
    return _ENDLESS.get(form.text.replace(" ", ""))


def _combined(form: Form) -> list[Segment] | None:
    """Return the segments of a union, or of a set without others."""
    first, *others = form.parts
    known = []
    for part in (first, *map(_as_set, others)):
        segments = _segments(part)
        if segments is None:
            return None
        known.append(segments)
    cuts = sorted({cut for segments in known for segment in segments for cut in segment})
    kept: list[Segment] = []
    for piece in map(Segment, cuts, cuts[1:]):
        in_first, *in_others = (_covers(segments, piece) for segments in known)
        if form.shape == "minus":
            is_in = in_first and not any(in_others)
        else:
            is_in = in_first or any(in_others)
        if is_in and kept and kept[-1].high == piece.low:
            kept[-1] = Segment(kept[-1].low, piece.high)
        elif is_in:
            kept.append(piece)
    return kept


def _covers(segments: Iterable[Segment], piece: Segment) -> bool:
    """Say whether a piece that no end of a segment divides lies in one of them."""
    return any(segment.low <= piece.low < segment.high for segment in segments)


def _as_set(form: Form) -> Form:
    return form if form.parts else Form("set", parts=(form,))


def _without(label: str, points: Sequence[Form]) -> Form:
    """Return the reals without these points."""
    removed = Form("set", parts=tuple(points))
    return _real_set(Form("minus", parts=(_all_reals(), removed), label=label))


def _named(labels: list[str], values: Sequence[Form]) -> Form | None:
    """Return the tuple, by name, that x = 1, y = 2 stands for; None for x_1 = 1, x_2 = 2, which is
    a list.
    """
    letters = {_INDEX.sub("", label) for label in labels}
    if len(labels) != len(values) or len(letters) != len(labels):
        return None
    by_label = dict(zip(labels, values, strict=True))
    ordered = sorted(labels)
    parts = tuple(replace(by_label[label], label="") for label in ordered)
    return Form("()", parts=parts, label=",".join(ordered))


def _relation(parts: list[str], levels: list[int]) -> Form | None:
    outside = [part for part, level in zip(parts, levels, strict=True) if level == 0]
    signs = [part for part in outside if part in _RELATIONS]
    if not signs:
        return None
    sides = _split(parts, levels, tuple(_RELATIONS))
    if signs == ["="] and _is_turned(*sides):
        sides.reverse()
    found = None
    if all(sign in ("=", r"\approx", r"\in") for sign in signs):
        found = _labelled(sides)
    elif len(sides) == 3 and _one_way(signs) and _LABEL.fullmatch(sides[1]):
        found = _between(sides, signs)
    elif all(sign in _FLIPPED for sign in signs):
        found = _solved(sides, signs) or _one_sided(sides, signs)
    if found:
        return found
    if len(sides) != 2 or not all(sides):
        return _scalar(_join(parts))
    values = tuple(_scalar(side) for side in sides)
    if signs[0] in _GREATER:
        return Form(_FLIPPED[signs[0]], parts=values[::-1])
    return Form(signs[0], parts=values)


def _is_turned(value: str, name: str) -> bool:
    """Say whether a name stands behind its value: 2 = x."""
    if not value or not _LABEL.fullmatch(name) or not name[0].isalpha():
        return False
    has_letters = any(part.isalpha() for part in tokens(value))
    return not has_letters and not _LABEL.fullmatch(value)


def _one_way(signs: Sequence[str]) -> bool:
    return set(signs) <= _LESS or set(signs) <= _GREATER


def _labelled(sides: Sequence[str]) -> Form | None:
    """Read what stands last, by the name that stands first: x = 2, or (x, y) = (1, 2)."""
    value = _read(sides[-1], nested=False)
    name = sides[0]
    if not name or _ARITHMETIC.fullmatch(name):
        return value
    names = _NAMES.fullmatch(name)
    if names and value.shape == "()":
        return _named(names[1].replace(" ", "").split(","), value.parts) or value
    if _LABEL.fullmatch(name):
        return replace(value, label=name.replace(" ", ""))
    return None


def _between(sides: Sequence[str], signs: Sequence[str]) -> Form:
    """Read a double inequality: 1 < x < 2, or 2 > x > 1."""
    first, name, last = sides
    left, right = signs
    if left in _LESS:
        return _interval(name, first, left, last, right)
    return _interval(name, last, right, first, left)


def _one_sided(sides: Sequence[str], signs: Sequence[str]) -> Form | None:
    """Read an inequality between a name and its bound: x < 2, or 2 > x."""
    if len(sides) != 2:
        return None
    left, right = sides
    sign = signs[0]
    for label, sense, bound in ((left, sign, right), (right, _FLIPPED[sign], left)):
        if not _LABEL.fullmatch(label) or label == bound:
            continue
        if sense in _LESS:
            return _interval(label, r"-\infty", "<", bound, sense)
        return _interval(label, bound, sense, r"\infty", "<")
    return None


_LINEAR = re.compile(
    r"([+-]?)\s?(\d+(?:\.\d+)?|\\frac\{\d+\}\{\d+\})?\s?([A-Za-z])\s?(?:([+-])\s?(\d+(?:\.\d+)?|"
    r"\\frac\{\d+\}\{\d+\}))?"
)


def _solved(sides: Sequence[str], signs: Sequence[str]) -> Form | None:
    """Solve inequalities that are linear in one side and numbers in the others: 2x - 1 < 5."""
    linear = [match for side in sides if (match := _LINEAR.fullmatch(side))]
    if len(linear) != 1 or linear[0][0] == linear[0][3]:
        return None
    sign, factor, letter, added, constant = linear[0].groups()
    slope = _signed(sign, factor or "1")
    shift = _signed(added, constant or "0")
    pieces = []
    for side, after in zip(sides, [*signs, ""], strict=True):
        if _LINEAR.fullmatch(side):
            pieces.append(letter)
        elif bound := number.literal(side):
            pieces.append(str((bound.value - shift) / slope))
        else:
            return None
        pieces.append(_FLIPPED[after] if after and slope < 0 else after)
    parts = tokens(" ".join(pieces))
    return _relation(parts, [0] * len(parts))


def _signed(sign: str | None, digits: str) -> Fraction:
    found = number.literal(digits)
    assert found is not None
    return -found.value if sign == "-" else found.value


def _interval(label: str, lower: str, left: str, upper: str, right: str) -> Form:
    opening = "[" if left in (r"\le", r"\ge") else "("
    closing = "]" if right in (r"\le", r"\ge") else ")"
    return Form(
        shape=opening + closing,
        text=_INEQUALITY,
        parts=_read_all((lower, upper)),
        label=label.replace(" ", ""),
    )


def _bracketed(parts: list[str], levels: list[int]) -> Form | None:
    if len(parts) < 2 or 0 in levels[:-1] or levels[0] != 1:
        return None
    first = parts[0]
    last = parts[-1]
    inside = parts[1:-1]
    if first.startswith(r"\begin"):
        return _matrix(first, inside)
    if first in _FLOORS or not inside:
        return None
    if first == r"\{" and len(inside) > 2 and inside[0].isalpha() and inside[1] in ("|", ":"):
        return _read(_join(inside[2:]), nested=False)  # {x | x > 2}
    brackets = first + last
    if first == "{" or (brackets in ("[]", "()") and _is_environment(inside, levels)):
        return _read(_join(inside), nested=False)
    pieces = _split(inside, [level - 1 for level in levels[1:-1]], (",", ";"))
    if not all(pieces):
        return None
    if brackets == "()" and len(pieces) == 1:
        return _read(pieces[0], nested=False)
    elements = _read_all(pieces)
    if first == r"\{":  # {1 ± √5, -2} has three elements
        return Form("set", parts=_flat("list", elements))
    if first == r"\langle":
        return Form("()", parts=elements)
    return Form(brackets, parts=elements)


def _is_environment(inside: Sequence[str], levels: Sequence[int]) -> bool:
    """Say whether all that is in brackets is one environment, such as a matrix."""
    own = levels[1:-2]
    return bool(own) and min(own) > 1 and inside[0].startswith(r"\begin")


def _flat(shape: str, forms: Iterable[Form]) -> tuple[Form, ...]:
    """Put the parts of forms of this shape in their place."""
    return tuple(
        part for form in forms for part in (form.parts if form.shape == shape else (form,))
    )


def _matrix(opening: str, inside: list[str]) -> Form | None:
    if not re.fullmatch(r"\\begin\s*\{[pbB]?(?:small)?matrix\}", opening):
        return None
    levels = depths(inside)
    if levels is None:
        return None
    rows = [_cells(row) for row in _split(inside, levels, (r"\\",)) if row]
    if not rows:
        return None
    width = len(rows[0])
    if any(len(row) != width or not all(row) for row in rows):
        return None
    is_column = width == 1 and len(rows) > 1
    shape = "()" if is_column else f"matrix {len(rows)}x{width}"
    return Form(shape, parts=_read_all(chain.from_iterable(rows)))


def _cells(row: str) -> list[str]:
    parts = tokens(row)
    levels = depths(parts) or [0] * len(parts)
    return _split(parts, levels, ("&",))


def _scaled_matrix(parts: list[str], levels: list[int]) -> Form | None:
    """Multiply a matrix or a column by the scalar before it."""
    start = next(
        (place for place, level in enumerate(levels) if level and _opens_matrix(parts, place)), 0
    )
    if not start or levels[-1] or 0 in levels[start:-1]:
        return None
    factor = parts[:start]
    before = [part for part, level in zip(factor, levels, strict=False) if level == 0]
    if factor[-1] == r"\cdot":
        factor = factor[:-1]
    if {"+", "-", ",", "="} & set(before[1:]) or not factor:
        return None
    form = _bracketed(parts[start:], levels[start:])
    if form is None or any(part.shape != "scalar" for part in form.parts):
        return None
    scalar = "-1" if factor == ["-"] else _join(factor)
    products = (_scalar_product(scalar, part) for part in form.parts)
    return replace(form, parts=tuple(products))


def _opens_matrix(parts: Sequence[str], place: int) -> bool:
    after = parts[place + (parts[place] in ("(", "[")) :]
    return after[0].startswith(r"\begin")


def _scalar_product(scalar: str, part: Form) -> Form:
    factor = number.literal(scalar, variables=True)
    if factor and part.value:
        return _scalar("", number.Number(factor.value * part.value.value))
    return _scalar(f"({scalar})({_latex(part)})")


def _plus_minus(parts: list[str]) -> Form | None:
    if r"\pm" not in parts:
        return None
    both = []
    for signs in ({r"\pm": "+", r"\mp": "-"}, {r"\pm": "-", r"\mp": "+"}):
        variant = _join([signs.get(part, part) for part in parts])
        both.append(_scalar_with_unit(variant.lstrip("+")))
    return Form("list", parts=tuple(both))


def _scalar_with_unit(text: str) -> Form:
    after: list[str] = []
    while found := _TRAILING_UNIT.fullmatch(text):
        before, unit_text, power = found.groups()
        text = before.strip()
        after.insert(0, f"{unit_text}^{power}" if power else unit_text)
    words = " ".join(after)
    unit = units.read(words)
    for sign in (r"\%", r"\$"):
        text = text.replace(sign, "")
    form = _scalar(text)
    if after:
        form = replace(form, unit=unit or units.NONE, words="" if unit else words)
    if form.value:
        return replace(form, value=replace(form.value, unit=form.unit, words=form.words))
    return form


def _scalar(text: str, value: number.Number | None = None) -> Form:
    value = value or number.literal(text, variables=True)
    if value:
        return Form("scalar", str(value.value), value=value, unit=value.unit, words=value.words)
    return Form("scalar", _join(tokens(text)))


def compare(gold: Form, other: Form, scalars: Compare) -> bool | None:
    """Compare two answers part by part; None where ``scalars`` could not settle a pair that
    matters.
    """
    if gold.label and other.label and gold.label != other.label:
        return False
    if (gold.shape == "set") != (other.shape == "set"):
        gold = _only_element(gold)
        other = _only_element(other)
    match sorted({gold.shape, other.shape}):
        case ["scalar"]:
            return scalars(gold, other)
        case ["word"] | ["base"] | ["scalar", "word"]:
            return gold.text.lower() == other.text.lower()
        case ["list"] | ["set"] | ["union"] | ["list", "set"]:
            return _unordered(gold, other, scalars)
        case ["="] | ["<"] | [r"\le"] | [r"\neq"]:
            if gold.parts == other.parts:
                return True
            return scalars(gold, other)
        case ["=", "scalar"]:
            one = _as_equation(gold)
            two = _as_equation(other)
            if one is None or two is None:
                return False
            return compare(one, two, scalars)
        case [_] | ["()", "list"]:
            return _in_order(gold, other, scalars)
    return False


def _only_element(form: Form) -> Form:
    only = form.shape == "set" and len(form.parts) == 1 and form.parts[0].text != r"\emptyset"
    return form.parts[0] if only else form


def _as_equation(form: Form) -> Form | None:
    """Write ``y = 2x + 1`` as an equation; None for a value, which no equation equals."""
    if form.shape == "=":
        return form
    if not form.label or form.value or not any(part.isalpha() for part in tokens(form.text)):
        return None
    return Form("=", parts=(_scalar(form.label), replace(form, label="")))


def _in_order(gold: Form, other: Form, scalars: Compare) -> bool | None:
    if len(gold.parts) != len(other.parts):
        return False
    pairs = zip(gold.parts, other.parts, strict=True)
    results = [compare(one, two, scalars) for one, two in pairs]
    if False in results:
        return False
    return None if None in results else True


def _unordered(gold: Form, other: Form, scalars: Compare) -> bool | None:
    """Match every part with one of the other's: the first, for equality is transitive."""
    if len(gold.parts) != len(other.parts) or len(gold.parts) > MOST_ELEMENTS:
        return False
    left = list(other.parts)
    unsettled = 0
    for part in gold.parts:
        results = [compare(part, candidate, scalars) for candidate in left]
        if True in results:
            del left[results.index(True)]
        elif None in results:
            unsettled += 1
        else:
            return False
    return None if unsettled else True


def settle_quickly(gold: Form, other: Form) -> bool | None:
    """Compare two scalars by text and as exact numbers; None where that does not settle it."""
    if gold.shape != "scalar":
        if all(_readable(part.text) for part in (*gold.parts, *other.parts)):
            return None
        return False
    if gold.value and other.value:
        return number.equal(gold.value, other.value)
    if other.words and other.words != gold.words:
        return None
    if gold.unit.powers and other.unit.powers and gold.unit != other.unit:
        if gold.unit.powers == other.unit.powers:
            return None
        return False
    if gold.text == other.text:
        return True
    if _readable(_latex(gold)) and _readable(_latex(other)):
        return None
    return False


def _latex(form: Form) -> str:
    if form.value:
        return _fraction(form.value.value)
    return form.text


def _fraction(value: Fraction) -> str:
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"


@lru_cache(maxsize=4096)
def _readable(text: str) -> bool:
    """Say whether every token is one whose meaning the parser and we agree on."""
    parts = tokens(text)
    letters = 0
    for index, part in enumerate(parts):
        after = parts[index + 1] if index + 1 < len(parts) else ""
        if part[0] == "\\" and part not in _KNOWN:
            return False
        letters = letters + 1 if part.isalpha() else 0
        if letters > 4 or (part[0].isdigit() and after[:1].isdigit()):
            return False  # prose, or two numbers side by side
        if not (part[0] == "\\" or part.isascii()) or part in "\"#$%&',:;<=>?@`~":
            return False
    return bool(parts) and depths(parts) is not None


def equal(gold: str, extracted: str) -> bool | None:
    r"""Compare an answer with the gold one without Math-Verify; None where only
    :func:`equal_slowly` can tell.

    >>> (equal(r"\frac{1}{2}", "0.5"), equal("(1,2)", "(2,1)"), equal("52_8", "52"),
    ...     equal("x+1", "1+x"))
    (True, False, False, None)
    """
    if clean(gold) == clean(extracted):
        return True
    form = read(gold)
    other = read(extracted)
    if form is None or other is None:
        return None
    return compare(form, other, settle_quickly)


def equal_slowly(gold: str, extracted: str) -> bool | None:
    """Compare with the help of Math-Verify; None where the two cannot be compared.

    This may take long, so only the worker processes call it.
    """
    form = read(gold)
    other = read(extracted)
    if form is None or other is None:
        return None
    return compare(form, other, _settle)


def _settle(gold: Form, other: Form) -> bool | None:
    from capcal_lib.grading import symbolic

    quick = settle_quickly(gold, other)
    if quick is not None or (gold.value and other.value):
        return quick
    if gold.shape != "scalar":
        sides = [_latex(part) for part in gold.parts]
        others = [_latex(part) for part in other.parts]
        return symbolic.same_relation(sides, others, signed=gold.shape in _LESS)
    if other.words and other.words != gold.words:
        return None
    if gold.unit.powers == other.unit.powers != ():
        return symbolic.same(_in_base_units(gold), _in_base_units(other))
    return symbolic.same(_latex(gold), _latex(other))


def _in_base_units(form: Form) -> str:
    return rf"{_fraction(form.unit.factor)}\cdot ({_latex(form)})"


def normal(text: str) -> str:
    """Return a cheap normal form for grouping votes: numbers, order of unordered parts, labels and
    units, no algebra.

    >>> normal("x = 0.5"), normal(r"\\{2, 1\\}") == normal("1, 2"), normal("x+1") == normal("1+x")
    ('1/2', True, False)
    """
    form = read(text)
    if form:
        return _render(form)
    return " ".join(text.split())


def _render(form: Form) -> str:
    if not form.parts:
        return form.text
    parts = [_render(part) for part in form.parts]
    if form.shape in ("list", "set", "union"):
        parts.sort()
    inside = ",".join(parts)
    if form.shape in ("list", "set"):
        return "{" + inside + "}"
    return f"{form.shape}:{inside}"
