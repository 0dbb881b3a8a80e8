"""Where the final answer of a response is found; the hand cases say what it is."""

import pytest

from capcal_lib.grading import grade
from capcal_lib.grading.extract import extract
from capcal_lib.manifests import Kind
from capcal_lib.questions import Answer


@pytest.mark.parametrize(
    ("response", "kind", "expected"),
    [
        (r"\boxed{6}, and then \boxed{\{1, 2\}}", "math", (r"\{1, 2\}", "boxed")),
        ("<|begin_of_solution|>The answer is 5.<|end_of_solution|>", "number", ("5", "phrase")),
        ("The answer is Paris, not London.", "short", ("Paris", "phrase")),
        ("The answer is (C) Paris.", "choice", ("(C) Paris", "phrase")),
        ("C. water, since it is wet", "choice", ("C", "opening option")),
        ("5<|END_RESPONSE|>", "number", ("5", "bare line")),
        ("The capital of France is Paris.", "short", ("Paris", "bare line")),
        ("Some.\nSo there are 6 * 40 = 240 pens.", "number", ("240 pens", "last sentence")),
        ("Probability: 0.7", "number", ("0.7", "last sentence")),  # where nothing else is said
        ("", "number", (None, "empty response")),
        ("<think>5", "number", (None, "unfinished reasoning")),
        ("A. fire\nB. water", "choice", (None, "nothing extractable")),
        ("In all 18 eggs, as I said before I ate.", "number", (None, "nothing extractable")),
    ],
)
def test_extraction_says_what_and_where(
    response: str, kind: Kind, expected: tuple[str | None, str]
) -> None:
    assert extract(response, kind) == expected


def test_only_the_end_of_a_long_response_is_searched() -> None:
    padding = "word " * 10_000
    assert grade(padding + r"\boxed{7}", Answer("number", "7")).verdict == "correct"
    assert grade(r"\boxed{7}" + padding, Answer("number", "7")).verdict == "no_answer"


def test_reasoning_is_dropped_however_long() -> None:
    response = "<think>" + r"\boxed{8} " * 100_000 + "</think>7"
    assert grade(response, Answer("number", "7")).verdict == "correct"
