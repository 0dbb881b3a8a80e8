"""A question and its right answer are checked; a digest holds what is asked, and nothing else."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.errors import InputError
from capcal_lib.questions import Answer, Question, questions_digest, with_options

TEXTS = st.text(max_size=20)
QUESTIONS = st.builds(
    Question,
    id=TEXTS,
    text=TEXTS,
    answer=st.builds(
        Answer,
        kind=st.sampled_from(["math", "number", "choice", "short"]),
        gold=TEXTS.filter(str.strip),
        aliases=st.lists(TEXTS, max_size=3).map(tuple),
    ),
)


def test_answers_are_checked() -> None:
    with pytest.raises(
        InputError, match="unknown answer kind 'numeric'; known: choice, math, number, short"
    ):
        Answer("numeric", "1")  # type: ignore[arg-type]
    for empty in ("", " "):
        with pytest.raises(InputError, match=f"must be a text and not empty; got '{empty}'"):
            Answer("short", empty)


def test_options_are_lettered() -> None:
    assert with_options(" Which?\n", [" a", "b "]) == "Which?\nA. a\nB. b"


@settings(max_examples=25)
@given(questions=st.lists(QUESTIONS, min_size=1, max_size=4))
def test_a_digest_holds_what_is_asked_and_right_and_nothing_else(questions: list[Question]) -> None:
    digest = questions_digest(questions)
    turned = [
        replace(each, answer=replace(each.answer, aliases=each.answer.aliases[::-1]))
        for each in questions
    ]
    renamed = [replace(each, id=f"{each.id}x", subject="x") for each in questions]
    assert questions_digest(turned) == questions_digest(renamed) == digest
    first = questions[0]
    for other in (
        replace(first, text=f"{first.text}x"),
        replace(first, answer=replace(first.answer, gold=f"{first.answer.gold}x")),
        replace(first, answer=replace(first.answer, aliases=(*first.answer.aliases, "x"))),
        replace(
            first,
            answer=replace(first.answer, kind="math" if first.answer.kind != "math" else "short"),
        ),
    ):
        assert questions_digest([other, *questions[1:]]) != digest
    assert questions_digest([*questions, first]) != digest
