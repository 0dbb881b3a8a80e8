r"""Scalar expressions: parsed by Math-Verify, compared by the value of their difference.

A difference without variables is computed exactly where it is rational. Otherwise it is evaluated
with as many digits as it takes to tell it from zero, up to a number of digits below which only zero
lies: that of a separation bound for radicals over integers (after Burnikel, Funke, Mehlhorn,
Schirra and Schmitt, "A separation bound for real algebraic expressions", Algorithmica 55, 2009),
with the degree cut at 64. For other functions no such bound is known, and the digits are those of
radicals of the same size and of the exponents. With variables, the difference is evaluated so at
points drawn from a digest of the pair, so that no answer can be written to vanish at them; where a
root or logarithm is not real, the point is left out. Odd roots of negative numbers are real.

Only the worker processes import this. What comes in has passed the limits of
:mod:`capcal_lib.grading.latex` and holds known commands only; nothing is ever handed to Python's or
SymPy's own parser."""

import random
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from capcal_lib.grading.latex import tokens

_PLAIN_FRACTION = re.compile(r"(?<![\w.}^])(\d+)/(\d+)(?![\d.])")
# Math-Verify reads 2(3) as a mixed number, and a number before a binomial.
_PRODUCT = re.compile(r"((?<![_^.\d])\d+(?:\.\d+)?(?=\(|\\binom)|\)(?=[(\d]))")
_CAPITAL = re.compile(r"([A-Z])(?:_(?:\{(\w+)\}|(\w)))?")  # which it would make small
_DECIMAL = re.compile(r"\d*\.\d+|\d+\.")


@lru_cache(maxsize=1024)
def parse(text: str) -> Any:
    """Parse a scalar into a SymPy expression; None where Math-Verify cannot, or loses a variable on
    the way.

    Decimals become exact fractions first, so that nothing is compared after rounding; ``1/2x`` is
    half of x."""
    import math_verify
    import sympy
    from latex2sympy2_extended import NormalizationConfig

    text = _PLAIN_FRACTION.sub(r"\\frac{\1}{\2}", text)
    text = _PRODUCT.sub(r"\1\\cdot ", text)
    text = _CAPITAL.sub(_small, text)
    text = _DECIMAL.sub(_exact, text)
    # Its stripping of units would read 2m as 2.
    settings = NormalizationConfig(units=False, malformed_operators=True, nits=False, boxed="none")
    parsed = math_verify.parse(
        f"${text}$",
        extraction_config=[
            math_verify.LatexExtractionConfig(
                boxed_match_priority=-1, normalization_config=settings
            )
        ],
        fallback_mode="no_fallback",
        parsing_timeout=None,
    )
    if not parsed or not isinstance(parsed[0], sympy.Expr):
        return None
    expression = parsed[0]
    names = "".join(
        map(
            str,
            [*expression.free_symbols, *(call.func for call in expression.atoms(sympy.Function))],
        )
    )
    letters = {part.lower() for part in tokens(text) if part.isalpha()} - {"e", "i"}
    return expression if letters <= set(names.lower()) else None


def _small(match: re.Match[str]) -> str:
    r"""Give a capital letter a small name of its own; e with an index is not parsed."""
    letter = r"\epsilon" if match[1] == "E" else match[1].lower()
    return f"{letter}_{{99{match[2] or match[3] or ''}}}"


def _exact(match: re.Match[str]) -> str:
    value = Fraction(match[0])
    return rf"(\frac{{{value.numerator}}}{{{value.denominator}}})"


# How far from zero the values of the variables are, and their signs in turn. Both occur, so that
# the root of x^2 is not taken for x.
_RANGES = (
    (0.2, 2.0, (1,)),
    (2.0, 9.0, (1,)),
    (0.2, 4.0, (-1,)),
    (20.0, 50.0, (1,)),
    (0.2, 4.0, (1, -1)),
)
MOST_DIGITS_COMPUTED = 20_000


class TooManyDigitsError(Exception):
    """A value cannot be told from zero with a reasonable number of digits."""


def _points(*expressions: Any) -> Iterator[list[Any]]:
    """Put values for the variables, drawn from a digest of the expressions; one row a point.

    The imaginary unit is put for i. Without it, odd roots are the real ones, and a point where a
    logarithm or an even root is not real is left out.
    """
    import sympy

    symbols = set().union(*(expression.free_symbols for expression in expressions))
    names = sorted({str(symbol) for symbol in symbols} - {"i"})
    real = not any(expression.has(sympy.I) for expression in expressions) and not any(
        str(symbol) == "i" for symbol in symbols
    )
    positive = _of_logarithms_and_even_roots(expressions) if real and names else []
    draw = random.Random("\0".join(sorted(map(str, expressions))))
    for low, high, signs in _RANGES if names else _RANGES[:1]:
        numbers = [
            sympy.Rational(round(draw.uniform(low, high) * 10**4), 10**4)
            * signs[place % len(signs)]
            for place in range(len(names))
        ]
        given = dict(zip(names, numbers, strict=True)) | {"i": sympy.I}
        values = {symbol: given[str(symbol)] for symbol in symbols}
        if any(_sign(each.subs(values)) == -1 for each in positive):
            continue
        row = [expression.subs(values).doit() for expression in expressions]
        if real:
            row = [_with_real_roots(each) for each in row]
        yield row


def _with_real_roots(value: Any) -> Any:
    """Take the real odd root of a negative number for the principal one."""

    def is_odd_root(power: Any) -> bool:
        exponent = power.exp if power.is_Pow else None
        odd = exponent is not None and exponent.is_Rational and exponent.q > 1 and exponent.q % 2
        return bool(odd) and _sign(power.base) == -1

    def real_root(power: Any) -> Any:
        return (-1) ** power.exp.p * (-power.base) ** power.exp

    return value.replace(is_odd_root, real_root)


def _of_logarithms_and_even_roots(expressions: Sequence[Any]) -> list[Any]:
    """Return what must not be negative for the expressions to be real."""
    import sympy

    inside = []
    for expression in expressions:
        inside += [call.args[0] for call in expression.atoms(sympy.log)]
        for power in expression.atoms(sympy.Pow):
            odd = power.exp.is_Rational and power.exp.q % 2
            if not odd and not (power.base.is_number or power.exp.is_Integer):
                inside.append(power.base)
    return inside


def _digits(value: Any) -> int:
    """Return with how many digits a value can be told from zero: all those of its integers, times
    its root's degree, and the size of its exponents.
    """
    import sympy

    rationals = value.atoms(sympy.Rational)
    bits = sum(int(each.p).bit_length() + int(each.q).bit_length() for each in rationals)
    size = bits // 3 + 2 * len(rationals)
    degree = 1
    for power in value.atoms(sympy.Pow):
        if power.exp.is_Rational:
            degree *= power.exp.q
            size += abs(power.exp.p) // power.exp.q
        else:
            size += _magnitude(power.exp)
    for call in value.atoms(sympy.exp, sympy.tanh, sympy.sinh, sympy.cosh):
        size += _magnitude(call.args[0])
    return 50 + min(degree, 64) * size


def _magnitude(value: Any) -> int:
    try:
        return int(min(abs(value.evalf(5)), MOST_DIGITS_COMPUTED))
    except (ArithmeticError, TypeError, ValueError):
        return 0


def _sign(value: Any) -> int | None:
    """Return 0 for zero, else 1 or -1 by the sign of the real part; None for what is no number.

    `TooManyDigitsError` where it cannot be told within `MOST_DIGITS_COMPUTED`.
    """
    import sympy
    from sympy.core.evalf import evalf

    if value.is_Rational:
        return int(sympy.sign(value))
    if value.free_symbols or value.has(sympy.zoo, sympy.nan, sympy.oo, -sympy.oo):
        return None
    digits = _digits(value)
    if digits > MOST_DIGITS_COMPUTED:
        raise TooManyDigitsError
    # A part is None where it is exactly zero. Its accuracy is in bits: those asked for, or next to
    # none of a zero.
    try:
        real, imaginary, known, also_known = evalf(value, 16, {"maxprec": int(3.33 * digits)})
    except (ArithmeticError, AttributeError, NotImplementedError, TypeError, ValueError):
        return None
    if real is sympy.zoo or real is sympy.nan:
        return None
    if real and known >= 8:
        return -1 if real[0] else 1
    return 1 if imaginary and also_known >= 8 else 0


def same(gold: str, other: str) -> bool | None:
    r"""Say whether two scalars are equal for all values of their variables for which they are real;
    None where there are no such values, or too many digits are needed to tell.

    >>> same(r"\frac{x}{2}", "0.5x"), same(r"\sqrt{x^{2}}", "x"), same(r"2\ln x", r"\ln(x^2)")
    (True, False, True)
    >>> same("2^{100}", "2^{100}-1"), same(r"\sqrt{10^{60}+1}", "10^{30}")
    (False, False)
    >>> same(r"\sqrt[3]{-8}", "-2")
    True
    """
    left = parse(gold)
    right = parse(other)
    if left is None or right is None:
        return False
    signs = []
    try:
        for one, two in _points(left, right):
            signs.append(_sign(one - two))
            if signs[-1]:
                return False
    except TooManyDigitsError:
        return None
    if 0 in signs or (left - right).expand() == 0:
        return True
    return False if signs else None


def same_relation(gold: Sequence[str], other: Sequence[str], *, signed: bool) -> bool | None:
    r"""Say whether left minus right of one is a constant multiple of the other's, a positive one if
    ``signed``.

    >>> (same_relation(["2x+4y", "6"], ["x", "3-2y"], signed=False),
    ...     same_relation(["x", "1"], ["x", "y"], signed=False))
    (True, False)
    """
    sides = [parse(text) for text in (*gold, *other)]
    if any(side is None for side in sides):
        return False
    try:
        rows = [
            (one, two)
            for one, two in _points(sides[0] - sides[1], sides[2] - sides[3])
            if _sign(one) and _sign(two)
        ]
        if len(rows) < 2:
            return False
        first, second = rows[0]
        crossed = [_sign(one * second - two * first) for one, two in rows[1:]]
        alike = not any(sign != 0 for sign in crossed)
        return alike and not (signed and _sign(first * second) != 1)
    except TooManyDigitsError:
        return None
