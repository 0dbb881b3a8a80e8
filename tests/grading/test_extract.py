"""Where the final answer of a response is found."""

import pytest

from capcal_lib.grading import grade
from capcal_lib.grading.extract import boxes, enclosed, extract
from capcal_lib.manifests import Kind
from capcal_lib.questions import Answer


@pytest.mark.parametrize(
    ("response", "kind", "expected"),
    [
        (r"\boxed{5}", "number", ("5", "boxed")),
        ("The answer is 5.", "number", ("5", "phrase")),
        ("5", "number", ("5", "bare line")),
        ("", "number", (None, "empty response")),
        ("<think>5", "number", (None, "unfinished reasoning")),
        ("Five, I think.", "number", (None, "nothing extractable")),
        ("The answer is (C) Paris.", "choice", ("C", "phrase")),
        ("**\\text{Marie Curie}**", "short", ("Marie Curie", "bare line")),
        ("The capital of France is Paris.", "short", ("Paris", "bare line")),
        ("It is $x$.", "math", (None, "nothing extractable")),
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
    assert (
        grade("<think>" + r"\boxed{8} " * 100_000 + "</think>7", Answer("number", "7")).verdict
        == "correct"
    )


@pytest.mark.parametrize(
    ("response", "kind", "expected"),
    [
        ("Some thoughts.\n<answer>7</answer>", "number", ("7", "tag or JSON")),
        ("<ANSWER>\nThe answer is 7.\n</ANSWER>", "number", ("7", "phrase")),
        ('{"why": "it is", "Final_Answer": "Bern"}', "short", ("Bern", "tag or JSON")),
        ("{'answer': '7'}", "number", ("7", "tag or JSON")),
        (r'{"answer": "\\frac{1}{2}"}', "math", (r"\frac{1}{2}", "tag or JSON")),
        (r'{"answer": "\frac{1}{2}"}', "math", (r"\frac{1}{2}", "tag or JSON")),
        ('{"answer": "Z\\u00fcrich"}', "short", ("Zürich", "tag or JSON")),
        ('{"answer": null}', "number", (None, "nothing extractable")),
        ("<answer></answer>\nThe answer is 7.", "number", ("7", "phrase")),
        ("<answer>6</answer> Wait. The answer is 7.", "number", ("7", "phrase")),
        ("<|begin_of_box|>7<|end_of_box|>", "number", ("7", "tag or JSON")),
        (r"So \\boxed{\\sqrt{2}}.", "math", (r"\sqrt{2}", "boxed")),
    ],
)
def test_answers_between_tags_and_in_json(
    response: str, kind: Kind, expected: tuple[str | None, str]
) -> None:
    assert extract(response, kind) == expected


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("Let us see.\n\nQuestion: How many?\n\nAnswer: 7", "7"),
        ("7\n\nQuestion: How many more?\nAnswer: 8", "7"),
        ("Q: How many?\nA: 7", "7"),
        ("We begin.\n\nUser: it is 8", None),
    ],
)
def test_a_question_ends_an_answer_only_behind_one(response: str, answer: str | None) -> None:
    assert extract(response, "number")[0] == answer


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        (r"I was mistaken: \boxed{7}", ["7"]),
        (r"6 is false: \boxed{7}", ["7"]),
        (r"The wrong answer is \boxed{6}", []),
        (r"\boxed{6} is not correct.", []),
        (r"It can't be \boxed{6}.", []),
        (r"\framebox[2cm][c]{7}", ["7"]),
        (r"\boxed{6}, and then \boxed{7}", ["7", "6"]),
    ],
)
def test_a_denial_is_about_the_answer_beside_it(text: str, contents: list[str]) -> None:
    assert boxes(text) == contents


@pytest.mark.parametrize("kind", ["number", "short"])
def test_solved_with_a_letter_at_the_end(kind: Kind) -> None:
    working = "She adds what she has, and then takes away the half of it again, as before.\n" * 2
    assert extract(working + "A: 7", kind) == ("7", "phrase")
    assert extract(working + "A: 7\nand more of it.", kind)[0] is None
    assert extract(working + "A: water", "choice")[0] is None


def test_a_box_that_is_no_option_leaves_the_statement() -> None:
    text = r"We find \boxed{x^2}. The answer is B."
    assert extract(text, "choice") == ("B", "phrase")
    assert extract(text, "math") == ("x^2", "boxed")
    assert extract(r"\boxed{B} as \boxed{x^2} shows", "choice") == ("B", "boxed")
    assert extract(r"It is \boxed{fire}, as I said above.", "choice") == ("fire", "boxed")


def test_nothing_is_enclosed_where_another_answer_follows() -> None:
    assert enclosed("<answer>1</answer>") == "1"
    assert enclosed(r"<answer>1</answer> \boxed{2}") is None
    assert enclosed("no tag") is None
