r"""Bounds of expressions, computed in floats, enough to tell what is too large to compute from
another number.
"""

import math
import operator
import sys
from collections.abc import Callable, Mapping
from functools import partial, reduce
from itertools import product
from typing import Any

Bounds = tuple[float, float]
MOST = sys.float_info.max
ERROR = 1e-12  # of a float's value, beyond all that rounding does to it
EVERYWHERE = (1.7, 1.7)  # where variables are taken: what differs there is not equal
_RULES: Mapping[str, Callable[..., float]] = {
    "Add": operator.add,
    "Mul": lambda one, two: one * two if one and two else 0.0,
    "Abs": abs,
    "exp": math.exp,
    "log": math.log,
    "floor": math.floor,
    "ceiling": math.ceil,
    "factorial": lambda value: math.gamma(value + 1),
}


def bounds(expression: Any, values: Mapping[Any, Bounds] = {}) -> Bounds:
    """Bound the value of an unevaluated SymPy expression where its variables have these values.

    Bounds are rigorous, and as wide as they must be. Errors of arithmetic and look-ups are raised
    for what has none here.

    >>> import sympy
    >>> power = partial(sympy.Pow, evaluate=False)
    >>> low, high = bounds(power(9, power(9, power(9, 9))))
    >>> low > 10**300, high
    (True, inf)
    """
    name = type(expression).__name__
    if not expression.args:
        known = values.get(expression, EVERYWHERE)
        return known if expression.is_Symbol else _corners(lambda: float(expression))
    if name in ("Sum", "Product", "Integral"):
        body, (variable, first, last) = expression.args
        (low, least), (most, high) = bounds(first, values), bounds(last, values)
        terms = max(0.0, most - least), max(0.0, high - low + 1)
        each = bounds(body, {**values, variable: (low, high)})
        return _power(each, terms, 0) if name == "Product" else _corners(_RULES["Mul"], each, terms)
    sides = [bounds(argument, values) for argument in expression.args]
    if name in ("Add", "Mul"):
        return reduce(partial(_corners, _RULES[name]), sides)
    if name == "Pow":
        base, exponent = sides
        even, odd = expression.exp.is_even, expression.exp.is_odd
        return _power(base, exponent, 1 if even else -1 if odd else 0)
    if name in ("sin", "cos"):
        return -1.0, 1.0
    if name == "binomial" and not expression.free_symbols:
        return _corners(lambda one, two: (one / two) ** two, *sides)[0], math.inf
    if name == "factorial" and sides[0][0] < 0.9:
        raise ArithmeticError("a factorial that may fall")
    return _corners(_RULES[name], *sides)


def _power(base: Bounds, exponent: Bounds, sign: int) -> Bounds:
    """Bound a power; the ``sign`` of one of what is negative, 0 where it is not known."""
    if base[0] >= 0:
        return _corners(pow, base, exponent)
    low, high = _corners(pow, (max(0.0, -base[1]), max(-base[0], base[1])), exponent)
    return (low, high) if sign > 0 else (-high, -low if sign < 0 and base[1] < 0 else high)


def _corners(function: Callable[..., float], *sides: Bounds) -> Bounds:
    """Bound a function that rises or falls in each argument by its values at the corners."""
    values = []
    for corner in product(*sides):
        try:
            values.append(function(*corner))
        except OverflowError:
            values.append(math.inf)
    if any(map(math.isnan, values)):
        return -math.inf, math.inf
    low, high = min(*values, MOST), max(*values, -MOST)
    return low - ERROR * abs(low), high + ERROR * abs(high) + math.ulp(0.0)
