"""Fresh right answers in other forms, and wrong ones that look right, class by class."""

import re

import pytest

from capcal_lib.grading import clauses, grade_many, number, short, units
from capcal_lib.questions import Answer
from tests.grading.classes import CLASSES, Case, cases, spelled


def is_wrong(case: Case, verdict: str) -> bool:
    return (verdict == "correct") != case.right


def test_of_each_class_at_most_two_in_a_hundred_are_judged_wrong() -> None:
    drawn = {name: cases(name, 50, seed=3) for name in CLASSES}
    pairs = [(case, name) for name, each in drawn.items() for case in each]
    verdicts = grade_many([(case.response, Answer(case.kind, case.gold)) for case, _ in pairs])
    wrong: dict[str, list[tuple[str, str, str]]] = {}
    for (case, name), verdict in zip(pairs, verdicts, strict=True):
        if is_wrong(case, verdict.verdict):
            wrong.setdefault(name, []).append((case.gold, case.response, verdict.verdict))
    assert {name: said for name, said in wrong.items() if len(said) > 1} == {}


def test_cases_are_the_same_for_the_same_seed_and_of_both_kinds() -> None:
    assert cases("percent", 20, seed=1) == cases("percent", 20, seed=1)
    assert cases("percent", 20, seed=1) != cases("percent", 20, seed=2)
    every = [case for name in CLASSES for case in cases(name, 20)]
    assert {case.right for case in every} == {True, False}
    assert {case.kind for case in every} == {"math", "number", "choice", "short"}


@pytest.mark.parametrize("value", [*range(130), 999, 1_000, 1_001, 12_345, 700_000, 10**6 + 17])
def test_numbers_in_words_are_read_back(value: int) -> None:
    assert number.in_words(spelled(value)) == (value, "")
    assert short.normal(spelled(value)) == str(value)


@pytest.mark.parametrize(
    "text", ["", "a", "an egg", "and", "hundred", "no one", "point five", "twentyone"]
)
def test_other_words_are_no_numbers(text: str) -> None:
    assert number.in_words(text) is None


@pytest.mark.parametrize(
    ("one", "other", "factor"),
    [
        ("km/h", "m/s", 1 / 3.6),
        ("kJ", "J", 1000),
        ("square feet", "in^2", 144),
        ("L", "cm^3", 1000),
        ("N", "kg m/s^2", 1),
    ],
)
def test_units_are_quantities(one: str, other: str, factor: float) -> None:
    first, second = units.read(one), units.read(other)
    assert first is not None
    assert second is not None
    assert first.powers == second.powers
    assert float(first.factor / second.factor) == pytest.approx(factor)


@pytest.mark.parametrize(
    "word", ["dozens", "bn", "squared", "hundredths", "times", "(", "m)", "^2", "flibbers"]
)
def test_what_the_table_does_not_have_is_no_unit(word: str) -> None:
    assert units.read(word) is None


def test_every_entry_of_the_table_is_known_by_each_of_its_names() -> None:
    names = re.findall(r"[^\s|*=\d.^/]+", re.sub(r"=[^|\n]*", "", units._TABLE))
    assert len(names) > 100
    assert [name for name in names if not units.known(name)] == []


@pytest.mark.parametrize(
    ("before", "affirmed"),
    [
        ("", True),
        ("The ", True),
        ("It was wrong before. So the correct ", True),
        ("Bob says 7, but the ", True),
        ("The wrong ", False),
        ('He wrote "the ', False),
        ("If it rains, the ", False),
        ("In the other version, according to Bob, the ", False),
    ],
)
def test_a_clause_affirms_or_does_not(before: str, affirmed: bool) -> None:
    assert clauses.affirms(f"{before}answer is 7", len(before)) is affirmed
