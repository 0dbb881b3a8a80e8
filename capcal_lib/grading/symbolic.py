r"""Scalar expressions: parsed by Math-Verify, compared by evaluation at fixed points.

Only the worker processes import this. What comes in has passed the limits of :mod:`capcal_lib.grading.latex` and holds
known commands only; nothing is ever handed to Python's or SymPy's own parser.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from capcal_lib.grading.latex import tokens

_PLAIN_FRACTION = re.compile(r"(?<![\w.}^])(\d+)/(\d+)(?![\d.])")
_PRODUCT = re.compile(r"((?<![_^.\d])\d+(?:\.\d+)?(?=\()|\)(?=[(\d]))")  # Math-Verify reads 2(3) as a mixed number
_CAPITAL = re.compile(r"([A-Z])(?:_(?:\{(\w+)\}|(\w)))?")  # which it would make small
_DECIMAL = re.compile(r"\d*\.\d+|\d+\.")


@lru_cache(maxsize=1024)
def parse(text: str) -> Any:
    """Parse a scalar into a SymPy expression; None where Math-Verify cannot, or loses a variable on the way.

    Decimals become exact fractions first, so that nothing is compared after rounding; ``1/2x`` is half of x.
    """
    import math_verify
    import sympy
    from latex2sympy2_extended import NormalizationConfig

    text = _PLAIN_FRACTION.sub(r"\\frac{\1}{\2}", text)
    text = _PRODUCT.sub(r"\1\\cdot ", text)
    text = _CAPITAL.sub(_small, text)
    text = _DECIMAL.sub(lambda match: _exact(match[0]), text)
    # Its stripping of units would read 2m as 2.
    settings = NormalizationConfig(units=False, malformed_operators=True, nits=False, boxed="none")
    parsed = math_verify.parse(
        f"${text}$",
        extraction_config=[math_verify.LatexExtractionConfig(boxed_match_priority=-1, normalization_config=settings)],
        fallback_mode="no_fallback",
        parsing_timeout=None,
    )
    if not parsed or not isinstance(parsed[0], sympy.Expr):
        return None
    expression = parsed[0]
    names = "".join(map(str, [*expression.free_symbols, *(call.func for call in expression.atoms(sympy.Function))]))
    letters = {part.lower() for part in tokens(text) if part.isalpha()} - {"e", "i"}
    return expression if letters <= set(names.lower()) else None


def _small(match: re.Match[str]) -> str:
    r"""Give a capital letter a small name of its own; e with an index is not parsed."""
    letter = r"\epsilon" if match[1] == "E" else match[1].lower()
    return f"{letter}_{{99{match[2] or match[3] or ''}}}"


def _exact(decimal: str) -> str:
    value = Fraction(decimal)
    return rf"(\frac{{{value.numerator}}}{{{value.denominator}}})"


# Values of the first and second variable, in the order of their names; further ones are shifted. None is special,
# and both signs occur, so that the root of x^2 is not taken for x.
_POINTS = (("0.6180", "1.7321"), ("-1.4427", "2.2360"), ("-0.7390", "-2.6854"))
_DIGITS = 30  # of every evaluation
_CLOSE = 1e-22  # relative difference that evaluation to 30 digits leaves between equal values
_ZERO = 1e-60  # what is left of an exact zero


def _evaluate(expressions: Sequence[Any]) -> list[list[Any]]:
    """Evaluate expressions at the points that suit them all; shape (n_points, n_expressions).

    The letter i is the imaginary unit, whichever symbol the parser made of it.
    """
    import sympy

    names = sorted({str(symbol) for expression in expressions for symbol in expression.free_symbols} - {"i"})
    rows = []
    for point in _POINTS if names else _POINTS[:1]:
        given: dict[str, Any] = {
            name: sympy.Rational(point[index % 2]) * (1 + sympy.Rational(index // 2, 7))
            for index, name in enumerate(names)
        }
        given["i"] = sympy.I
        row = []
        for expression in expressions:
            try:
                value = expression.subs({symbol: given[str(symbol)] for symbol in expression.free_symbols})
                value = value.doit().evalf(_DIGITS, maxn=200)
            except (ArithmeticError, AttributeError, NotImplementedError, TypeError, ValueError):
                break
            if not (value.is_number and value.is_finite):
                break
            row.append(value)
        else:
            rows.append(row)
    return rows


def _close(one: Any, two: Any) -> bool:
    size = max(abs(one), abs(two))
    return bool(size < _ZERO or abs(one - two) < _CLOSE * size)


def same(gold: str, other: str) -> bool:
    r"""Say whether two scalars are equal for all values of their variables.

    >>> same(r"\frac{x}{2}", "0.5x"), same(r"\sqrt{x^{2}}", "x"), same(r"\sqrt{8}", r"2\sqrt{2}")
    (True, False, True)
    """
    import math_verify

    left, right = parse(gold), parse(other)
    if left is None or right is None:
        return False
    rows = _evaluate([left, right])
    if rows:
        return all(_close(one, two) for one, two in rows)
    return bool(math_verify.verify([left], [right], timeout_seconds=None))


def same_relation(gold: Sequence[str], other: Sequence[str], *, signed: bool) -> bool:
    r"""Say whether left minus right of one is a constant multiple of the other's, a positive one if ``signed``.

    >>> same_relation(["2x+4y", "6"], ["x", "3-2y"], signed=False), same_relation(["x", "1"], ["x", "y"], signed=False)
    (True, False)
    """
    sides = [parse(text) for text in (*gold, *other)]
    if any(side is None for side in sides):
        return False
    rows = _evaluate([sides[0] - sides[1], sides[2] - sides[3]])
    ratios = [one / two for one, two in rows if abs(two) > _ZERO]
    if len(ratios) < 2 or not all(_close(ratio, ratios[0]) and abs(ratio) > _ZERO for ratio in ratios):
        return False
    return not signed or bool(ratios[0].is_positive)
