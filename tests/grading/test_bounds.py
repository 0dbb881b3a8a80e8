"""Bounds hold what they bound, and tell what is too large from a number."""

import operator
from fractions import Fraction
from math import factorial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcal_lib.grading import grade
from capcal_lib.grading.bounds import bounds
from capcal_lib.grading.math import parse
from capcal_lib.questions import Answer

Case = tuple[str, Fraction]  # an expression, and its value


def combine(parts: st.SearchStrategy[Case]) -> st.SearchStrategy[Case]:
    signs = {"+": operator.add, "-": operator.sub, r"\cdot": operator.mul}

    def join(case: tuple[Case, str, Case]) -> Case:
        (one, x), sign, (two, y) = case
        if sign == r"\frac":
            return rf"\frac{{{one}}}{{{two} + 1000}}", x / (y + 1000)
        return f"({one} {sign} {two})", signs[sign](x, y)

    def repeat(case: tuple[Case, int]) -> Case:
        return rf"\sum_{{k=1}}^{{{case[1]}}} ({case[0][0]})", case[1] * case[0][1]

    joined = st.tuples(parts, st.sampled_from([*signs, r"\frac"]), parts).map(join)
    return joined | st.tuples(parts, st.integers(1, 9)).map(repeat)


def leaf(number: int) -> list[Case]:
    return [
        (str(number), Fraction(number)),
        (f"{number}!", Fraction(factorial(number))),
        (f"{number}^{{3}}", Fraction(number**3)),
        (f"2^{{-{number}}}", Fraction(1, 2**number)),
    ]


@given(st.recursive(st.sampled_from([one for n in range(1, 7) for one in leaf(n)]), combine))
def test_an_expression_is_never_told_from_its_own_value(case: Case) -> None:
    text, value = case
    if (expression := parse(text)) is not None:
        low, high = bounds(expression)
        assert low <= value <= high


@pytest.mark.parametrize(
    "text",
    [
        r"9^{9^{9^9}} + 1",
        r"-9^{9^9}",
        r"\frac{10000000!}{3}",
        r"\sqrt{9^{9^9}}",
        r"\frac{1}{9^{9^9}}",
        r"\prod_{k=2}^{10^9} k",
        r"x = 2^{2^{2^{49}}}",
        r"\sum_{k=1}^{10^9} 42",
        r"\sum_{k=1}^{10^9} k^2",
    ],
)
def test_what_is_too_large_is_told_from_a_number_and_not_from_itself(text: str) -> None:
    assert grade(rf"\boxed{{{text}}}", Answer("math", "42")).verdict == "incorrect"
    assert grade(rf"\boxed{{{text}}}", Answer("math", text)).verdict == "correct"


@pytest.mark.parametrize(
    "text",
    [
        "9^{9^9} - 9^{9^9} + 42",
        r"(\frac{1}{2})^{10^9} \cdot 2^{10^9}",
        "(10^{20} + 42) - 10^{20}",
    ],
)
def test_what_may_be_a_number_is_not_told_from_it(text: str) -> None:
    low, high = bounds(parse(text))
    assert low <= 42 <= high


@pytest.mark.parametrize(
    "text",
    [
        "(-3)^{9^9}",
        r"|9^{9^9}| \cdot x",
        r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}^{10^9}",
        "{" * 400 + "42" + "}" * 400,
        r"\binom{10^9}{10^8}",
        r"(x+y)^{10^6}",
        "10!!",
        "(9^{9^9}, 42)",
    ],
)
def test_hostile_answers_are_wrong(text: str) -> None:
    assert grade(rf"\boxed{{{text}}}", Answer("math", "42")).verdict == "incorrect"


@pytest.mark.parametrize("text", ["9^{9^9} - 9^{9^9} + 42", r"\frac{42 \cdot 10^7!}{10^7!}"])
def test_what_is_too_large_and_may_be_right_is_not_scored(text: str) -> None:
    assert grade(rf"\boxed{{{text}}}", Answer("math", "42")).verdict == "not_scored"
    right_beyond_floats = Answer("math", r"7 \times 10^{400}")
    assert grade(r"\boxed{9^{9^{9^9}}}", right_beyond_floats).verdict == "not_scored"
