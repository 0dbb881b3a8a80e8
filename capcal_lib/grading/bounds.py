r"""Bounds of expressions that are too large to compute, enough to tell them from a number.

Read are numbers, sums, products, quotients, powers, roots, factorials, binomials, ``\sum`` and
``\prod``. Bounds are floats, and outside the range of these as wide as they must be."""

import math
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import product

Bounds = tuple[float, float]
MOST = sys.float_info.max
LEAST = math.ulp(0.0)
WHOLE = 2.0**53
MARGIN = Fraction(1, 1000)  # of a number, by which an expression must differ to be another
_TOKENS = re.compile(r"\d+(?:\.\d+)?|\.\d+|\\[A-Za-z]+|\S")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def excludes(text: str, value: Fraction) -> bool:
    r"""Say whether a cleaned expression is certain to be another number than ``value``.

    >>> texts = "9^{9^{9^9}}", r"\sum_{k=1}^{10^9} 42", "x^{9^9}"
    >>> [excludes(text, Fraction(42)) for text in texts]
    [True, True, False]
    """
    reader = _Reader(re.sub(r"^[A-Za-z]\s?=", "", text))
    try:
        low, high = reader.total()
    except (LookupError, ArithmeticError, ValueError, RecursionError):  # none that is read here
        return False
    margin = MARGIN * max(Fraction(1), abs(value))
    return not reader.tokens and (low > value + margin or high < value - margin)


class _Reader:
    """Read an expression from its first token on, each rule by a method."""

    def __init__(self, text: str) -> None:
        self.tokens = _TOKENS.findall(text)[::-1]
        self.values: dict[str, Bounds] = {r"\pi": (math.pi, math.pi), "e": (math.e, math.e)}

    def total(self) -> Bounds:
        low, high = self.product()
        while self.tokens and self.tokens[-1] in "+-":
            sign = self.tokens.pop()
            least, most = self.product()
            low, high = (low + least, high + most) if sign == "+" else (low - most, high - least)
        return _outwards(low, high)

    def product(self) -> Bounds:
        value = self.power()
        while self.tokens and self.tokens[-1] not in "+-)]}":
            sign = self.tokens.pop() if self.tokens[-1] in ("/", r"\cdot") else ""
            if not sign and self.tokens[-1][0].isdigit():
                raise ValueError("two numbers in a row")
            value = _times(value, _power(self.power(), (-1, -1)) if sign == "/" else self.power())
        return value

    def power(self) -> Bounds:
        value = self.argument()
        while self.tokens and self.tokens[-1] in "!^":
            sign = self.tokens.pop()
            value = _factorial(value) if sign == "!" else _power(value, self.exponent())
        return value

    def exponent(self) -> Bounds:
        value = self.argument()
        if self.tokens and self.tokens[-1] == "^":
            self.tokens.pop()
            return _power(value, self.exponent())
        return value

    def argument(self) -> Bounds:
        token = self.tokens.pop()
        if token[-1].isdigit():
            return _outwards(float(token), float(token))
        if token == "-":
            low, high = self.power()
            return -high, -low
        if token == r"\frac":
            return _times(self.argument(), _power(self.argument(), (-1, -1)))
        if token == r"\sqrt":
            return _power(self.argument(), (0.5, 0.5))
        if token == r"\binom":
            (low, high), (least, most) = self.argument(), self.argument()
            return _outwards(low if least >= 1 and most < low else 0.0, math.inf)
        if token in (r"\sum", r"\prod"):
            return self.series(_times if token == r"\sum" else _power)
        if token not in _CLOSING:
            return self.values[token]
        value = self.total()
        self.expect(_CLOSING[token])
        return value

    def series(self, repeat: Callable[[Bounds, Bounds], Bounds]) -> Bounds:
        self.expect("_{")
        name = self.tokens.pop()
        self.expect("=")
        first = self.total()
        self.expect("}^")
        last = self.argument()
        self.values[name] = first[0], last[1]
        number = max(0.0, last[0] - first[1] + 1), max(0.0, last[1] - first[0] + 1)
        return repeat(self.product(), number)

    def expect(self, tokens: str) -> None:
        if any(self.tokens.pop() != token for token in tokens):
            raise ValueError(f"{tokens} is missing")


def _outwards(low: float, high: float) -> Bounds:
    """Widen bounds by the error of floats; whole numbers that these hold are exact."""
    if math.isnan(low) or math.isnan(high):
        raise ArithmeticError("nothing is known of it")
    low = min(low, MOST)
    high = max(high, -MOST)
    return low - _error(low), high + _error(high)


def _error(value: float) -> float:
    return 0.0 if value.is_integer() and abs(value) < WHOLE else 1e-12 * abs(value)


def _monotone(function: Callable[..., float], *sides: Bounds) -> Bounds:
    """Bound a function that rises or falls in each argument by its values at the corners."""
    values = []
    for corner in product(*sides):
        try:
            values.append(function(*corner))
        except OverflowError:
            values.append(math.inf)
    return _outwards(min(values), max(values) or LEAST)  # what is 0 to a float may be more


def _times(one: Bounds, two: Bounds) -> Bounds:
    low, high = _monotone(lambda x, y: x * y if x and y else 0.0, one, two)
    return low or -LEAST * (min(*one, *two) < 0), high


def _power(base: Bounds, exponent: Bounds) -> Bounds:
    if base[0] < 0:
        raise ArithmeticError("a power of what may be negative")
    return _monotone(pow, base, exponent)


def _factorial(value: Bounds) -> Bounds:
    if value[0] < 1:
        raise ArithmeticError("a factorial of what may be below 1")
    return _monotone(lambda x: math.gamma(x + 1), value)
