r"""Mathematics: the structure of an answer is taken apart here, and Math-Verify compares scalars.

What is equal stands, with cases, in ``book/reference/grading.md``. Beside Math-Verify there is what
it does not tell apart: bases, lists from tuples and intervals, inequalities from intervals, labels,
units, capital letters, and values that differ by less than rounding sees. It runs in worker
processes alone.

A comparison is True, False, or None where it cannot be told."""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

from capcal_lib.grading import number, units
from capcal_lib.grading.latex import TEXT_COMMAND, alternatives, clean
from capcal_lib.grading.units import Unit


class Form(NamedTuple):
    """An answer taken apart, one level deep.

    ``shape`` is ``scalar``, ``word``, ``list``, a pair of brackets such as ``(]``, or ``=`` for
    relations that are no labels and no intervals; the ``label`` is a name before a relation."""

    shape: str
    parts: list[str]
    label: str = ""
    units: tuple[Unit, ...] = ()


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
    pieces = []
    for piece in _split(_AND.sub(", ", text), r"[,;]|\\cup")[::2]:
        if r"\pm" in piece:
            pieces += [piece.replace(r"\pm", "+"), piece.replace(r"\pm", "-")]
        elif piece:
            pieces.append(piece)
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
    if (found := _UNIT.fullmatch(text)) and (named := number.unit(found[2])) is not None:
        return Form("scalar", [found[1]], units=named)
    return Form("scalar", [text])


def _split(text: str, separator: str) -> list[str]:
    """Split at separators outside all brackets; they stand between the pieces."""
    pieces = [""]
    depth = 0
    for token in re.split(rf"({separator}|[()\[\]{{}}])", text):
        if not depth and re.fullmatch(separator, token):
            pieces += [token, ""]
            continue
        if token in ("(", "[", "{"):
            depth += 1
        elif token in (")", "]", "}"):
            depth -= 1
        pieces[-1] += token
    return [piece.strip() for piece in pieces]


def _relation(sides: list[str]) -> Form | None:
    """Read a relation as what it says of a name; None where it is no more than a relation."""
    if sides[1] in _FLIPPED:
        sides = [_FLIPPED.get(side, side) for side in reversed(sides)]
    signs = {*sides[1::2]}
    if signs <= {"<", r"\le"}:
        return _interval(sides)
    if sides[-1] and signs <= {"=", r"\in", r"\approx"}:
        return _value(sides[::2])
    return None


def _interval(sides: list[str]) -> Form | None:
    """Read an inequality of a name as an interval."""
    if _LABEL.fullmatch(sides[0]):
        sides = [r"-\infty", "<", *sides]
    if len(sides) == 3:
        sides = [*sides, "<", r"\infty"]
    if len(sides) != 5 or not _LABEL.fullmatch(sides[2]):
        return None
    low, sign, label, other, high = sides
    opening = "(" if sign == "<" else "["
    closing = ")" if other == "<" else "]"
    return Form(opening + closing, [low, high], label)


def _value(sides: list[str]) -> Form | None:
    """Read an equation by its last side: where the first is a name or nothing, where it has no
    variables (10/2 = 5), and where a chain comes to a number (m + n = 256 + 37 = 293).
    """
    first, *_, last = sides
    if _LABEL.fullmatch(first):
        return read(last)._replace(label=first)
    comes_to_number = len(sides) > 2 and not _letters(last)
    if comes_to_number or not _letters(first):
        return read(last)
    return None


def equal(text: str, *golds: str) -> bool | None:
    r"""Say whether an answer is one of the right ones; only the workers should call it, for it may
    take long.

    >>> equal("[0,1)", r"0 \le x < 1"), equal("1,2", r"2 \text{ and } 1"), equal("52_8", "52_9")
    (True, True, False)
    >>> equal(r"\sqrt{2} \approx 1.414", r"\sqrt{2}"), equal(r"\frac{1}{200!}", r"\frac{1}{201!}")
    (True, False)
    """
    results = [_same(clean(gold), spelt) for gold in golds for spelt in alternatives(clean(text))]
    if True in results:
        return True
    return None if None in results else False


def _same(gold: str, other: str) -> bool | None:
    """Compare two cleaned answers, by what they are."""
    one, two = read(gold), read(other)
    shapes = {one.shape, two.shape}
    if one.label and two.label and one.label != two.label:
        return _same_equation(gold, one, other, two)
    if one.units and two.units and 1 not in units.ratios(one.units, two.units):
        return False
    if "word" in shapes:
        return _word(gold, one) == _word(other, two)
    if "=" in shapes:
        return all(re.search(_SIGN, text) for text in (gold, other)) and _same_relation(gold, other)
    if shapes == {"scalar"}:
        return _same_scalar(one.parts[0], two.parts[0])
    if len(one.parts) != len(two.parts):
        return False
    if shapes in ({"list"}, {"{}"}, {"list", "{}"}):
        return _same_in_any_order(one.parts, two.parts)
    if len(shapes) == 1 or shapes == {"list", "()"}:
        return _all(
            _same(part, another) for part, another in zip(one.parts, two.parts, strict=True)
        )
    return False


def _all(results: Iterable[bool | None]) -> bool | None:
    """Return False with the first that is, None where one cannot be told, and else True."""
    known = True
    for result in results:
        if result is False:
            return False
        known = known and result is not None
    return True if known else None


def _same_in_any_order(parts: list[str], others: list[str]) -> bool | None:
    """Find an equal part for each part, each other one once."""
    left = list(others)
    known = True
    for part in parts:
        match = None
        for text in left:
            result = _same(part, text)
            if result:
                match = text
                break
            known = known and result is not None
        if match is None:
            return False if known else None
        left.remove(match)
    return True


def _word(text: str, form: Form) -> str:
    """Return what is compared of words: letters, case apart where there are several, and signs."""
    word = form.parts[0] if len(form.parts) == 1 else text
    if form.shape == "word":
        word = re.sub(r"(?<=\w)-(?=\w)", "", word)
    word = re.sub(r"\\text|[^\w+*/^=<>-]", "", word)
    return word if len(word) == 1 else word.casefold()


def _same_equation(gold: str, one: Form, other: str, two: Form) -> bool | None:
    """Compare what is said of two names: as equations, where one is said in terms of the other."""
    (value,), (another,) = one.parts[:1], two.parts[:1]
    if one.label in _letters(another) and two.label in _letters(value):
        return _same_relation(gold, other)
    return False


def _same_relation(gold: str, other: str) -> bool | None:
    """Compare two relations by Math-Verify; equations without real solutions by their multiples."""
    import sympy
    from math_verify import verify

    one, two = parse(gold), parse(other)
    if one is None or two is None:
        return False
    if not verify([one], [two], float_rounding=15, timeout_seconds=None):
        return False
    if isinstance(one, sympy.Eq) and isinstance(two, sympy.Eq) and not sympy.solve(one):
        ratio = sympy.simplify((one.lhs - one.rhs) / (two.lhs - two.rhs))
        return bool(ratio.is_number and ratio != 0)
    return True


_JOINED = re.compile(r"(?<!\d) | (?!\d)")
_COMMAND = re.compile(r"\\(?:begin|end)\s?\{[a-z]+\*?\}|\\[A-Za-z]+")
# ratios, primes, numbers side by side or in a base
_BY_TEXT = re.compile(r"[:']|\\dots|(?<![_\d])\d+ \d|\b[A-F]*\d[0-9A-F]*_\d")


def _same_scalar(gold: str, other: str) -> bool | None:
    if _JOINED.sub("", gold) == _JOINED.sub("", other):
        return True
    value, another = (number.literal(text, variables=True) for text in (gold, other))
    if value and another:
        return number.equal(value, another)
    if _BY_TEXT.search(f"{gold}, {other}"):
        return False
    letters, others = map(_letters, (gold, other))
    if letters != others and letters == {*map(str.swapcase, others)}:
        return False
    one, two = parse(gold), parse(other)
    return False if one is None or two is None else _same_value(one, two)


def _letters(text: str) -> set[str]:
    return set(re.findall("[A-Za-z]", _COMMAND.sub(" ", text)))


def _same_value(one: Any, two: Any) -> bool | None:
    """Compare two expressions: exactly where they are rational, else by Math-Verify, whose rounding
    must not hide a difference.
    """
    import sympy
    from math_verify import verify

    if isinstance(one, sympy.MatrixBase) and isinstance(two, sympy.MatrixBase):
        return one.shape == two.shape and _all(map(_same_value, one, two))
    if not isinstance(one, sympy.Expr) or not isinstance(two, sympy.Expr):
        return bool(verify([one], [two], float_rounding=15, timeout_seconds=None))
    one, two = _with_real_roots(one), _with_real_roots(two)
    if _differ(one, two):
        return False
    if verify([one], [two], float_rounding=15, timeout_seconds=None):
        return True if _is_zero(one - two) else None
    return _same_where_real(one, two)


PRECISION = 30  # digits to which two values are compared before Math-Verify is asked


def _differ(one: Any, two: Any) -> bool:
    """Say whether two expressions have the same variables and other values at a point."""
    names = sorted({str(symbol).lower() for symbol in one.free_symbols})
    if names != sorted({str(symbol).lower() for symbol in two.free_symbols}):
        return False
    # Numbers at which expressions that differ hardly have one value: 8/19, 15/19, 22/19, ...
    point = {name: 1 + 7 * place for place, name in enumerate(names, 1)}
    return _differ_at(one, two, point)


def _differ_at(one: Any, two: Any, point: dict[str, int]) -> bool:
    """Say whether two expressions have values at a point, of 19ths, and others."""
    import sympy

    values = []
    for expression in (one, two):
        at = {
            symbol: sympy.Rational(point[str(symbol).lower()], 19)
            for symbol in expression.free_symbols
        }
        values.append(expression.subs(at).doit())
    value, another = values
    if value.is_Rational and another.is_Rational:
        return bool(value != another)
    value, another = value.evalf(PRECISION), another.evalf(PRECISION)
    if not (value.is_number and another.is_number and value.is_finite and another.is_finite):
        return False
    scale = max(abs(value), abs(another))
    return bool(abs(value - another) > scale * sympy.Float(10) ** (10 - PRECISION))


def _is_zero(difference: Any) -> bool:
    """Say whether a difference that is nothing to 15 digits is nothing indeed."""
    import sympy

    if difference.doit() == 0 or sympy.simplify(difference) == 0:
        return True
    return bool(difference.equals(0))


def _same_where_real(one: Any, two: Any) -> bool:
    r"""Compare two expressions wherever both have a real value: \sqrt{x}\sqrt{y} is \sqrt{xy}, and
    \sqrt{x^2} is not x.
    """
    import sympy

    symbols = one.free_symbols | two.free_symbols
    if not 0 < len(symbols) < 4 or one.free_symbols != two.free_symbols:
        return False
    positive = {symbol: sympy.Symbol(str(symbol), positive=True) for symbol in symbols}
    difference = sympy.expand_log((one - two).subs(positive).doit(), force=True)
    if sympy.simplify(difference) != 0:
        return False
    for signs in product((1, -1), repeat=len(symbols)):
        at = {
            symbol: sympy.Rational(sign * (1 + 7 * place), 19)
            for place, (symbol, sign) in enumerate(
                zip(sorted(symbols, key=str), signs, strict=True), 1
            )
        }
        values = [_real_value(expression, at) for expression in (one, two)]
        if None not in values and abs(values[0] - values[1]) > 1e-9 * abs(values[0]):
            return False
    return True


def _real_value(expression: Any, at: dict[Any, Any]) -> Any:
    """Return a value whose parts are all real; None where one is not."""
    import sympy

    for part in sympy.preorder_traversal(expression):
        if not part.subs(at).evalf().is_real:
            return None
    return expression.subs(at).evalf()


def _with_real_roots(expression: Any) -> Any:
    r"""Take odd roots of negative numbers as the real ones: \sqrt[3]{-8} is -2."""
    import sympy

    def is_odd_root(part: Any) -> bool:
        if not (part.is_Pow and part.is_number and not part.exp.is_Integer):
            return False
        exponent = part.exp.doit()
        if not exponent.is_Rational or exponent.q % 2 == 0:
            return False
        return bool(part.base.evalf().is_negative)

    def real_root(part: Any) -> Any:
        exponent = part.exp.doit()
        root = sympy.Pow(-part.base, exponent)
        return -root if exponent.p % 2 else root

    return expression.replace(is_odd_root, real_root)


_FRACTION = re.compile(r"(?<![\w.}^])(\d+)/(\d+)(?![\d.]|\s?[!^])")  # 1/2x is half of x


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
        expression = parsed[0]
        symbols = "".join(map(str, expression.free_symbols)).lower()
        if not {*map(str.lower, _letters(text))} <= {*symbols, "e", "i"}:
            return None
        exact: dict[Any, Any] = {
            decimal: sympy.Rational(str(decimal)) for decimal in expression.atoms(sympy.Float)
        }
        imaginary = {name: sympy.I for name in expression.free_symbols if str(name) == "i"}
        return expression.xreplace(exact | imaginary)


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
    bare = TEXT_COMMAND.sub(r"\1", parts[0])
    return str(value.value) if value else _JOINED.sub("", bare)
