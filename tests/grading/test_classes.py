"""Fresh right answers in other forms, and wrong ones that look right, class by class."""

from capcal_lib.grading import grade_many
from capcal_lib.questions import Answer
from tests.grading.classes import CLASSES, Case, cases


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
