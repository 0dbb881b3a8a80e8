"""Options by letter and by text."""

import pytest

from capcal_lib.grading import grade
from capcal_lib.questions import Answer


@pytest.mark.parametrize("gold", ["J", "K", "Z"])
def test_letters_go_to_z(gold: str) -> None:
    answer = Answer("choice", gold, ("water",))
    for response in (
        f"\\boxed{{{gold}}}",
        f"({gold})",
        f"The answer is {gold}.",
        gold,
        "\\boxed{water}",
    ):
        assert grade(response, answer).verdict == "correct", response
    for response in (
        "\\boxed{B}",
        "The answer is B.",
        "\\boxed{Y}",
        "\\boxed{fire}",
        "The answer is L.",
    ):
        assert grade(response, answer).verdict in ("incorrect", "no_answer"), response


@pytest.mark.parametrize(
    "text",
    [
        "La risposta corretta è B.",
        "La réponse est la B.",
        "Правильный ответ: B",
        "정답은 B입니다.",
        "正解はBです",
        "B is correct; C is incorrect.",
    ],
)
def test_statements_in_other_languages_and_of_two_options(text: str) -> None:
    assert grade(text, Answer("choice", "B")).verdict == "correct"
    assert grade(text, Answer("choice", "C")).verdict == "incorrect"
