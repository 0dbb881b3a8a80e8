r"""Scalar expressions: parsed by Math-Verify, compared by the value of their difference.

A difference without variables is computed exactly where it is rational. Otherwise it is evaluated
with as many digits as it takes to tell it from zero, up to a number of digits below which only zero
lies: that of a separation bound for radicals over integers (after Burnikel, Funke, Mehlhorn,
Schirra and Schmitt, "A separation bound for real algebraic expressions", Algorithmica 55, 2009),
with the degree cut at 64. For other functions no such bound is known, and the digits are those of
radicals of the same size. With variables, the difference is evaluated so at fixed points.

Only the worker processes import this. What comes in has passed the limits of
:mod:`capcal_lib.grading.latex` and holds known commands only; nothing is ever handed to Python's or
SymPy's own parser."""

import re
from collections.abc import Sequence
from contextlib import suppress
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


# Values of the first and second variable, in the order of their names; further ones are shifted.
# None is special, and both signs occur, so that the root of x^2 is not taken for x.
_POINTS = (("0.6180", "1.7321"), ("-1.4427", "2.2360"), ("-0.7390", "-2.6854"))


def _at_points(*expressions: Any) -> list[list[Any]]:
    """Put values for the variables, and the imaginary unit for i; one row a point."""
    import sympy

    symbols = set().union(*(expression.free_symbols for expression in expressions))
    names = sorted({str(symbol) for symbol in symbols} - {"i"})
    rows = []
    for point in _POINTS if names else _POINTS[:1]:
        numbers = [
            sympy.Rational(point[i % 2]) * (1 + sympy.Rational(i // 2, 7))
            for i in range(len(names))
        ]
        given = dict(zip(names, numbers, strict=True)) | {"i": sympy.I}
        values = {symbol: given[str(symbol)] for symbol in symbols}
        rows.append([expression.subs(values).doit() for expression in expressions])
    return rows


def _digits(value: Any) -> int:
    """Return with how many digits a value can be told from zero: all those of its integers, times
    its root's degree.
    """
    import sympy

    size = sum(
        len(str(abs(number.p))) + len(str(number.q)) for number in value.atoms(sympy.Rational)
    )
    degree = 1
    for power in value.atoms(sympy.Pow):
        if power.exp.is_Rational:
            degree *= power.exp.q
            size += abs(power.exp.p) // power.exp.q
    return 50 + min(degree, 64) * size


def _signs(values: Sequence[Any]) -> list[int]:
    """Return the sign of each real part, -1, 0 or 1, leaving out what is no number."""
    found = []
    for value in values:
        with suppress(ArithmeticError, AttributeError, NotImplementedError, TypeError, ValueError):
            found.append(_sign(value))
    return [each for each in found if each is not None]


def _sign(value: Any) -> int | None:
    import sympy
    from sympy.core.evalf import evalf

    if value.is_Rational:
        return int(sympy.sign(value))
    if value.free_symbols or value.has(sympy.zoo, sympy.nan, sympy.oo, -sympy.oo):
        return None
    # A part is None where it is exactly zero. Its accuracy is in bits: those asked for, or next to
    # none of a zero.
    real, imaginary, known, also_known = evalf(value, 16, {"maxprec": int(3.33 * _digits(value))})
    if real is sympy.zoo or real is sympy.nan:
        return None
    if real and known >= 8:
        return -1 if real[0] else 1
    return 1 if imaginary and also_known >= 8 else 0


def same(gold: str, other: str) -> bool:
    r"""Say whether two scalars are equal for all values of their variables.

    >>> same(r"\frac{x}{2}", "0.5x"), same(r"\sqrt{x^{2}}", "x"), same(r"\sqrt{8}", r"2\sqrt{2}")
    (True, False, True)
    >>> same("2^{100}", "2^{100}-1"), same(r"\sqrt{10^{60}+1}", "10^{30}")
    (False, False)
    """
    left, right = parse(gold), parse(other)
    if left is None or right is None:
        return False
    difference = left - right
    signs = _signs([row[0] for row in _at_points(difference)])
    return not any(signs) if signs else bool(difference.expand() == 0)


def same_relation(gold: Sequence[str], other: Sequence[str], *, signed: bool) -> bool:
    r"""Say whether left minus right of one is a constant multiple of the other's, a positive one if
    ``signed``.

    >>> (same_relation(["2x+4y", "6"], ["x", "3-2y"], signed=False),
    ...     same_relation(["x", "1"], ["x", "y"], signed=False))
    (True, False)
    """
    sides = [parse(text) for text in (*gold, *other)]
    if any(side is None for side in sides):
        return False
    rows = _at_points(sides[0] - sides[1], sides[2] - sides[3])
    rows = [row for row in rows if len(_signs(row)) == 2 and all(_signs(row))]
    if len(rows) < 2:
        return False
    crossed = [one * rows[0][1] - two * rows[0][0] for one, two in rows[1:]]
    return _signs(crossed) == [0] * len(crossed) and not (
        signed and _signs([rows[0][0] * rows[0][1]]) != [1]
    )
