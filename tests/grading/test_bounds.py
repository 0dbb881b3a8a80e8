"""Bounds hold what they bound, and tell what is too large from a number."""

import operator
from fractions import Fraction
from math import factorial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcal_lib.grading import grade
from capcal_lib.grading.bounds import excludes
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
    assert abs(value) > 10**250 or not excludes(text, value)


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
        r"\frac{10000000!}{9999999!}",
        r"(-1)^{9^9}",
        r"42 + 2^{-9^9}",
        r"(\frac{1}{2})^{10^9} \cdot 2^{10^9}",
        "x^{9^9}",
        "9^{9^9} 2",
        "(9^{9^9}",
        "(10^{20} + 42) - 10^{20}",
        r"\sum_{k=1}^{10^9} k - 500000000500000000",
        "(" * 400 + "1" + ")" * 400,
    ],
)
def test_what_cannot_be_bounded_is_not_told_from_a_number(text: str) -> None:
    assert not excludes(text, Fraction(42))


def test_a_right_answer_beyond_floats_is_left_open() -> None:
    verdict = grade(r"\boxed{9^{9^{9^9}}}", Answer("math", r"7 \times 10^{400}"))
    assert verdict.verdict == "not_scored"
