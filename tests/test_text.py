"""Numbers and text of others are spelled for a terminal and a table."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.text import printable, sanitize, spell, spell_cell


@settings(max_examples=25)
@given(st.text(), st.integers(1, 50))
def test_text_of_others_is_one_bounded_line_that_no_terminal_acts_on(
    text: str, characters: int
) -> None:
    safe = sanitize(text, characters)
    assert safe.isprintable()
    assert len(safe) <= characters
    assert printable(text).isprintable()


def test_what_is_printable_stays_as_it_is() -> None:
    assert printable("naïve 6 × 7") == "naïve 6 × 7"
    assert printable("a\x1b[2J\n") == r"a\x1b[2J\n"
    assert sanitize(" a \n b ") == "a b"
    assert sanitize("abcdef", 4) == "abc…"


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((0.25, -0.0001, 0.5), "0.250 [0.000, 0.500]"),
        ((-0.25, -0.5, 0.0), "-0.250 [-0.500, 0.000]"),
        ((0.25, math.nan, math.nan), "0.250"),
        ((0.25, 0.2, 0.3, 1), "0.2 [0.2, 0.3]"),
    ],
)
def test_an_estimate_has_its_interval_where_there_is_one(
    numbers: tuple[float, ...], text: str
) -> None:
    assert spell(*numbers) == text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (12_345, "12,345"),
        (1.0, "1.0000"),
        (False, "no"),
        (math.nan, ""),
    ],
)
def test_a_cell_is_spelled_by_what_it_holds(cell: object, text: str) -> None:
    assert spell_cell(cell) == text
