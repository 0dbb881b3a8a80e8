"""Numbers in words, and words that multiply."""

from fractions import Fraction

import pytest

from capcal_lib.grading import number, numerals, short
from tests.grading.classes import spelled


@pytest.mark.parametrize("value", [*range(130), 999, 1_000, 1_001, 12_345, 700_000, 10**6 + 17])
def test_numbers_in_words_are_read_back(value: int) -> None:
    assert numerals.digits(spelled(value)) == str(value)
    assert short.normal(spelled(value)) == str(value)


@pytest.mark.parametrize(
    "text", ["", "a", "an egg", "and", "hundred", "point", "twentyone", "often"]
)
def test_other_words_are_no_numbers(text: str) -> None:
    assert numerals.digits(text) == text


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("three sevenths", Fraction(3, 7)),
        ("an eighth", Fraction(1, 8)),
        ("two and two thirds", Fraction(8, 3)),
        ("nine tenths", Fraction(9, 10)),
    ],
)
def test_fractions_in_words(words: str, value: Fraction) -> None:
    known = number.read(words)
    assert known is not None
    assert known.value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 Millionen", 2 * 10**6),
        ("2 mil millones", 2 * 10**9),
        ("2 milliards", 2 * 10**9),
        ("2 mila", 2000),
        ("2 bilhões", 2 * 10**9),
        ("2 juta", 2 * 10**6),
        ("2 milyar", 2 * 10**9),
        ("2 тысячи", 2000),
        ("2億", 2 * 10**8),
        ("2만 원", 20000),
        ("2 مليون", 2 * 10**6),
        ("2 करोड़", 2 * 10**7),
        ("2k", 2000),
        ("2M", 2 * 10**6),
        ("$2bn", 2 * 10**9),
        ("2 dozen", 24),
        ("2 K", 2),
        ("2 ducks", 2),
    ],
)
def test_words_that_multiply(text: str, value: int) -> None:
    known = number.read(text)
    assert known is not None
    assert known.value == value
