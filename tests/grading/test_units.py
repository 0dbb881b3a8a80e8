"""Units: what they measure, and how large they are."""

from fractions import Fraction

import pytest

from capcal_lib.grading import units


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("km/h", "kilometers per hour"),
        ("sq ft", "square feet"),
        ("in^2", "inches squared"),
        ("kg m^2/s^2", "joules"),
        ("W s", "J"),
        ("kN", "kilonewtons"),
        ("µs", "microseconds"),
        ("nautical miles", "nmi"),
        ("J/(kg K)", "J/kg/K"),
        ("USD", "dollars"),
    ],
)
def test_names_of_a_unit_are_one(one: str, other: str) -> None:
    assert 1 in units.ratios(units.read(one)[0], units.read(other)[0])


@pytest.mark.parametrize(
    ("large", "small", "ratio"),
    [
        ("mile", "km", Fraction(1609344, 10**6)),
        ("gallon", "cup", Fraction(16)),
        ("week", "hour", Fraction(168)),
        ("acre", "sq yd", Fraction(4840)),
        ("kWh", "MJ", Fraction(18, 5)),
        ("stone", "pound", Fraction(14)),
        ("dollar", "cent", Fraction(100)),
        ("MB", "kB", Fraction(1000)),
    ],
)
def test_sizes(large: str, small: str, ratio: Fraction) -> None:
    assert units.ratios(units.read(large)[0], units.read(small)[0]) == {ratio}


@pytest.mark.parametrize(
    ("one", "other"),
    [("J", "W"), ("a.m.", "p.m."), ("m/s", "m/s^2"), ("°C", "°F"), ("kg", "mile"), ("€", "$")],
)
def test_other_things_have_no_ratio(one: str, other: str) -> None:
    assert units.ratios(units.read(one)[0], units.read(other)[0]) == set()


@pytest.mark.parametrize(
    ("text", "left"), [("in total", 2), ("apples", 1), ("cm long", 1), ("", 0)]
)
def test_other_words_are_left(text: str, left: int) -> None:
    assert units.read(text)[1] == left


def test_every_line_of_the_tables_reads() -> None:
    for names, _ in (*units._SI.items(), *units._OTHERS):
        for name in names.split():
            assert units.read(name)[0], name
