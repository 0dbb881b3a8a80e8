"""Mathematics: what is equal, and what only looks so."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.grading import grade, math, normalize
from capcal_lib.questions import Answer
from tests.grading.answers import outcomes, rows
from tests.outside import needs_data


@given(st.tuples(*[st.integers(-3, 3)] * 4), st.integers(-1, 1))
@settings(max_examples=60, deadline=None)
def test_polynomials_are_equal_when_their_coefficients_are(
    numbers: tuple[int, int, int, int], shift: int
) -> None:
    a, b, c, d = numbers
    gold = Answer("math", rf"({a}x+{b})\left({c}x+{d}\right)".replace("+-", "-"))
    expanded = f"{a * c}x^2+{a * d + b * c}x+{b * d + shift}".replace("+-", "-")
    assert (grade(rf"$\boxed{{{expanded}}}$", gold).verdict == "correct") == (shift == 0)


EXPRESSIONS = [
    "x+1",
    r"\frac{1}{2}",
    "(1,2)",
    r"\{3,4\}",
    r"\sqrt{2}",
    "52_8",
    r"\text{east}",
    "[0,1)",
    "y=2x",
    "5x+3y=4",
]


@pytest.mark.parametrize("one", EXPRESSIONS)
def test_equality_is_reflexive_and_symmetric_and_sees_differences(one: str) -> None:
    pairs = [(rf"\boxed{{{two}}}", Answer("math", one)) for two in EXPRESSIONS]
    back = [(rf"\boxed{{{one}}}", Answer("math", two)) for two in EXPRESSIONS]
    assert [result == "correct" for result in outcomes(pairs)] == [
        one == two for two in EXPRESSIONS
    ]
    assert outcomes(pairs) == outcomes(back)


@needs_data
def test_every_math500_answer_equals_itself_however_spelt() -> None:
    golds = [row["answer"] for row in rows("math/math500_test.jsonl.gz")]

    def respelt(gold: str) -> str:
        return (
            gold.replace(r"\frac", r"\dfrac ")
            .replace("(", r"\left( ")
            .replace(")", r" \right)")
            .replace(" + ", "+")
        )

    for spell in (str, respelt):
        graded = outcomes(
            [(rf"So $\boxed{{{spell(gold)}}}$.", Answer("math", gold)) for gold in golds]
        )
        assert [
            gold for gold, outcome in zip(golds, graded, strict=True) if outcome != "correct"
        ] == []


@needs_data
def test_math_answers_equal_others_only_where_they_are_equal() -> None:
    golds = [row["answer"] for row in rows("math/math500_test.jsonl.gz")]
    draw = random.Random(7)
    pairs = [tuple(draw.sample(golds, 2)) for _ in range(800)]
    graded = outcomes([(rf"\boxed{{{two}}}", Answer("math", one)) for one, two in pairs])
    equal = {pair for pair, outcome in zip(pairs, graded, strict=True) if outcome == "correct"}
    assert {pair for pair in pairs if pair[0] == pair[1]} <= equal
    assert all(normalize(one, "math") == normalize(two, "math") for one, two in equal)
    assert "not_scored" not in graded


@pytest.mark.parametrize(
    ("gold", "other", "same"),
    [
        (r"\frac{1}{150!}", r"\frac{151}{151!}", True),
        (r"\frac{1}{150!}", r"\frac{1}{151!}", False),
        (r"5^{-400}", r"5^{-401}", False),
        (r"\frac{\pi}{90!}", r"\frac{\pi}{91!}", False),
        (r"\frac{x}{90!}", r"\frac{x}{91!}", False),
        (r"\sqrt{3}+10^{-80}", r"\sqrt{3}", None),
        (r"\sqrt{5+2\sqrt{6}}", r"\sqrt{2}+\sqrt{3}", True),
        ("0.5x+0.5", r"\frac{x+1}{2}", True),
    ],
)
def test_no_rounding_hides_a_difference(gold: str, other: str, same: bool | None) -> None:
    assert math.equal(other, gold) is same


@pytest.mark.parametrize(
    ("gold", "other", "same"),
    [
        (r"\sqrt{ab}", r"\sqrt{a}\sqrt{b}", True),
        (r"\ln(ab)", r"\ln a + \ln b", True),
        ("a", r"\sqrt{a^2}", False),
        ("|a|", r"\sqrt{a^2}", True),
        (r"\sqrt{a+b}", r"\sqrt{a}+\sqrt{b}", False),
        ("-3", r"\sqrt[3]{-27}", True),
        ("3", r"\sqrt[3]{-27}", False),
    ],
)
def test_expressions_are_equal_where_both_are_real(gold: str, other: str, same: bool) -> None:
    assert math.equal(other, gold) is same


@pytest.mark.parametrize(
    ("gold", "other", "same"),
    [
        ("y=3x", "x=y/3", True),
        ("y=3x", "x=3y", False),
        ("x=5", "y=5", False),
        ("7", r"\frac{21}{3} = 7", True),
        ("7", "a+b = 3+4 = 7", True),
        ("7", "a+b = 7", False),
        (r"\sqrt{7}", r"\sqrt{7} \approx 2.6458", True),
        ("2.6458", r"\sqrt{7} \approx 2.6458", True),
        (r"\sqrt{7}", r"\sqrt{8} \approx 2.83", False),
        (r"\text{north}", r"d = \text{north}", True),
        (r"\text{(B)}", r"-\text{(B)}", False),
        (r"\text{ab}", "a+b", False),
        ("x^2+3=0", "x^2+4=0", False),
        ("x^2+3=0", "2x^2+6=0", True),
        (r"\sqrt{7}\text{ km}", r"\sqrt{7}\text{ m}", False),
    ],
)
def test_relations_words_and_units(gold: str, other: str, same: bool) -> None:
    assert math.equal(other, gold) is same
    assert (grade(rf"\boxed{{{other}}}", Answer("math", gold)).verdict == "correct") is same


@pytest.mark.parametrize("text", ["9^{9^{9^9}}", r"\frac{42 \cdot 10^7!}{10^7!}", "10000000!"])
def test_what_is_too_large_to_compute_is_not_scored(text: str) -> None:
    verdict = grade(rf"\boxed{{{text}}}", Answer("math", "42"))
    assert verdict.verdict == "not_scored"
    assert verdict.reason.startswith("too hard to compare: it takes more than")
    assert grade(rf"\boxed{{{text}}}", Answer("math", text)).verdict == "correct"


@pytest.mark.parametrize(
    "text",
    [r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", "{" * 400 + "42" + "}" * 400, "(9^9, 42)"],
)
def test_what_is_no_scalar_is_wrong(text: str) -> None:
    assert grade(rf"\boxed{{{text}}}", Answer("math", "42")).verdict == "incorrect"
