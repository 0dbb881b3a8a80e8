"""Fresh right answers in other forms, and wrong ones that look right, class by class."""

import pytest

from capcal_lib.grading import grade_many, number, short
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
    assert number.digits(spelled(value)) == str(value)
    assert short.normal(spelled(value)) == str(value)


@pytest.mark.parametrize(
    "text", ["", "a", "an egg", "and", "hundred", "point", "twentyone", "often"]
)
def test_other_words_are_no_numbers(text: str) -> None:
    assert number.digits(text) == text


@pytest.mark.parametrize(
    ("one", "other"),
    [("km/h", "kilometers per hour"), ("sq ft", "square feet"), ("in^2", "inches squared")],
)
def test_names_of_a_unit_are_one(one: str, other: str) -> None:
    assert number.unit(one) == number.unit(other) != ""


@pytest.mark.parametrize("words", ["squared", "dozen", "(5)", "m^", "and 3 pears", "hundredths"])
def test_what_changes_a_number_is_no_unit(words: str) -> None:
    assert number.unit(words) is None
