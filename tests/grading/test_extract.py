"""Where the final answer of a response is found."""

import pytest

from capcal_lib.grading import grade
from capcal_lib.grading.extract import boxed, extract
from capcal_lib.manifests import Kind
from capcal_lib.questions import Answer


@pytest.mark.parametrize(
    ("response", "kind", "expected"),
    [
        (r"\boxed{5}", "number", ("5", "boxed")),
        ("The answer is 5.", "number", ("5", "phrase")),
        ("The answer is 17. Wait. The answer is 18.", "number", ("18", "phrase")),
        ("#### 5", "number", ("5", "phrase")),
        ("**Final Answer**\n\n5", "number", ("5", "phrase")),
        ("<|begin_of_solution|>The answer is 5.<|end_of_solution|>", "number", ("5", "phrase")),
        ("5<|END_RESPONSE|>", "number", ("5", "bare line")),
        ("Human: 2 + 3?\nAI: The answer is 5.", "number", ("5", "phrase")),
        ("User: 2 + 3?\nThe answer is 5.", "number", ("5", "phrase")),
        ("The answer is Paris, not London.", "short", ("Paris", "phrase")),
        ("5", "number", ("5", "bare line")),
        ("", "number", (None, "empty response")),
        ("<think>5", "number", (None, "unfinished reasoning")),
        ("So it is five, I think.", "number", (None, "nothing extractable")),
        ("The answer is (C) Paris.", "choice", ("(C) Paris", "phrase")),
        ("C. water, since it is wet", "choice", ("C", "opening option")),
        ("A. fire\nB. water", "choice", (None, "nothing extractable")),
        ("A. fire (B) water or (C) air", "choice", (None, "nothing extractable")),
        ("A. Valid\nFor B implies C.", "choice", ("A", "opening option")),
        ("**Marie Curie**", "short", ("Marie Curie", "bare line")),
        ("The capital of France is Paris.", "short", ("Paris", "bare line")),
        ("It is 4.5.", "math", ("4.5", "last sentence")),
        (
            "He has some.\nSo there are 6 * 40 = 240 outfits.",
            "number",
            ("240 outfits", "last sentence"),
        ),
        ("90 + 10 equals 100", "number", ("100", "last sentence")),
        (
            "In all 18 eggs, as I said before I began to count them.",
            "number",
            (None, "nothing extractable"),
        ),
    ],
)
def test_extraction_says_what_and_where(
    response: str, kind: Kind, expected: tuple[str | None, str]
) -> None:
    assert extract(response, kind) == expected


@pytest.mark.parametrize(
    "response",
    [
        "The answer is not 7.",
        "<!-- the answer is 7 --> I do not know.",
    ],
)
def test_what_is_denied_or_not_said_is_no_answer(response: str) -> None:
    assert grade(response, Answer("number", "7")).verdict in ("no_answer", "incorrect")


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("Guess: 42\nProbability: 0.7", "42"),
        ("Answer: 42\nConfidence: 90%", "42"),
        ("\\boxed{42}\n\nConfidence: \\boxed{0.9}", "42"),
        ("42\n\nConfidence: 0.8", "42"),
        ("Confidence: 80%\n42", "42"),
        ("Probability: 0.7", "0.7"),  # where nothing else is said, it is what was asked
    ],
)
def test_a_confidence_beside_the_answer_is_not_the_answer(response: str, answer: str) -> None:
    assert extract(response, "number")[0] == answer


def test_only_the_end_of_a_long_response_is_searched() -> None:
    padding = "word " * 10_000
    assert grade(padding + r"\boxed{7}", Answer("number", "7")).verdict == "correct"
    assert grade(r"\boxed{7}" + padding, Answer("number", "7")).verdict == "no_answer"


def test_reasoning_is_dropped_however_long() -> None:
    response = "<think>" + r"\boxed{8} " * 100_000 + "</think>7"
    assert grade(response, Answer("number", "7")).verdict == "correct"


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed{6}, and then \boxed{7}", "7"),
        (r"\boxed{7} and then \boxed{8", "7"),
        (r"\fbox{7}", "7"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{}", None),
    ],
)
def test_the_last_box_that_is_closed_and_holds_something(text: str, content: str | None) -> None:
    assert boxed(text) == content
