"""Numbers: exact, with units, percent, and words that multiply."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.grading import grade, normalize, number
from capcal_lib.questions import Answer
from tests.grading.answers import outcomes, rows
from tests.outside import needs_data


@given(st.fractions(), st.fractions())
@settings(max_examples=100, deadline=None)
def test_numbers_are_equal_as_fractions(one: Fraction, two: Fraction) -> None:
    answer = Answer("number", str(one))
    spellings = [
        str(one),
        rf"\frac{{{one.numerator}}}{{{one.denominator}}}",
        f"x = {one}",
        f"{one} apples",
    ]
    assert set(outcomes([(rf"\boxed{{{text}}}", answer) for text in spellings])) == {"correct"}
    assert (grade(rf"\boxed{{{two}}}", answer).verdict == "correct") == (one == two)


@given(st.integers(-(10**12), 10**12), st.integers(0, 6))
@settings(max_examples=100, deadline=None)
def test_decimals_and_thousands_are_exact(digits: int, places: int) -> None:
    value = Fraction(digits, 10**places)
    decimal = f"{digits / abs(digits) if digits else 1:+.0f}"[0].replace("+", "") + (
        f"{abs(digits) // 10**places:,}"
        + (f".{abs(digits) % 10**places:0{places}d}" if places else "")
    )
    read = number.read(decimal)
    assert read is not None
    assert read.value == value
    assert normalize(decimal, "number") == normalize(decimal.replace(",", ""), "math") == str(value)


@needs_data
def test_gsm8k_answers_equal_themselves_and_no_others() -> None:
    golds = [row["answer"].partition("#### ")[2] for row in rows("gsm8k/test.jsonl.gz")]
    for form in (r"\boxed{{{}}}", "The answer is ${}.", "#### {}", "{}"):
        assert set(outcomes([(form.format(gold), Answer("number", gold)) for gold in golds])) == {
            "correct"
        }
    others = golds[1:] + golds[:1]
    graded = outcomes(
        [
            (rf"\boxed{{{other}}}", Answer("number", gold))
            for gold, other in zip(golds, others, strict=True)
        ]
    )
    values = [int(gold.replace(",", "")) for gold in golds]
    assert [outcome == "correct" for outcome in graded] == [
        one == two for one, two in zip(values, values[1:] + values[:1], strict=True)
    ]


@pytest.mark.parametrize("words", ["squared", "(5)", "m^", "and 3 pears", "or so", "out of ten"])
def test_what_changes_a_number_is_no_unit(words: str) -> None:
    assert number.unit(words) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(-7)", Fraction(-7)),
        ("1'234'567", Fraction(1234567)),
        ("1,23,456", Fraction(123456)),
        (r"\text{EUR }7", Fraction(7)),
        ("R$ 7", Fraction(7)),
        ("three and a quarter", Fraction(13, 4)),
        ("7 tenths", Fraction(7, 10)),
        ("7 quarters", Fraction(7)),
        ("7 and a half", Fraction(15, 2)),
        ("7 point five", None),
        ("7 below zero", None),
        ("7-", None),
    ],
)
def test_spellings_of_a_number(text: str, value: Fraction | None) -> None:
    known = number.read(text)
    assert (known and known.value) == value


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("7 km", "7000 m", True),
        ("7 km", "7 m", False),
        ("7 km", "7 kg", False),
        ("7 km", "7", True),
        ("7 N m", "7 J", True),
        ("7 pounds", "£7", True),
        ("7 pounds", "7 lb", True),
        ("7 pounds", "7 kg", False),
        ("36 km/h", "10 m/s", True),
        ("7 degrees", "7 °C", True),
        ("7 °F", "7 °C", False),
        ("7 dollars per hour", "$7", False),
        ("7 apples", "7 pears", True),
    ],
)
def test_quantities(one: str, other: str, same: bool) -> None:
    assert number.equal(number.read(one), number.read(other)) is same
    assert number.equal(number.read(other), number.read(one)) is same


def test_among_variables_a_short_word_is_a_product() -> None:
    for text in ("7k", "7M", "7mn", "7ab", "7m"):
        assert number.read(text, variables=True) is None, text
    known = number.read(r"7\text{ million}", variables=True)
    assert known is not None
    assert known.value == 7 * 10**6


@pytest.mark.parametrize(
    ("response", "verdict"),
    [
        (r"\boxed{3+4}", "correct"),
        (r"\boxed{3!+1}", "correct"),
        (r"\boxed{\sqrt{49}}", "correct"),
        (r"\boxed{3+5}", "incorrect"),
        (r"\boxed{x+7}", "incorrect"),
    ],
)
def test_arithmetic_is_compared_as_mathematics(response: str, verdict: str) -> None:
    assert grade(response, Answer("number", "7")).verdict == verdict
