"""What is equal, and what only looks so; the hand cases have one line for each rule."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.grading import canonical
from capcal_lib.grading.compare import name, read_number
from capcal_lib.manifests import Kind
from capcal_lib.questions import Answer
from tests.grading.answers import outcomes, rows
from tests.outside import needs_data


@given(st.fractions(), st.fractions())
@settings(max_examples=25)
def test_numbers_are_equal_as_fractions(one: Fraction, two: Fraction) -> None:
    answer = Answer("number", str(one))
    spellings = [
        str(one),
        rf"\frac{{{one.numerator}}}{{{one.denominator}}}",
        f"x = {one}",
        f"{one} apples",
    ]
    graded = outcomes([(rf"\boxed{{{text}}}", answer) for text in (*spellings, two)])
    assert set(graded[:-1]) == {"correct"}
    assert (graded[-1] == "correct") == (one == two)


@given(st.integers(0, 10**12), st.integers(0, 6), st.sampled_from(["", "-"]))
@settings(max_examples=25)
def test_decimals_and_thousands_are_exact(digits: int, places: int, sign: str) -> None:
    value = Fraction(digits, 10**places) * (-1 if sign else 1)
    decimal = f"{sign}{digits // 10**places:,}"
    if places:
        decimal += f".{digits % 10**places:0{places}d}"
    read = read_number(decimal)
    assert read is not None
    assert read.value == value
    assert canonical(decimal, "number") == canonical(decimal.replace(",", ""), "math") == str(value)


def test_the_end_of_a_sentence_is_no_part_of_a_number() -> None:
    assert {read_number(f"5{end}") for end in ("", ".", ",", ";", " .")} == {read_number("5")}
    assert read_number("5") is not None


def test_what_is_no_number_is_not_read_as_one() -> None:
    for text in (
        *("5x", "5^2", "2x = 5", "x = 1 or x = 5", "1:2", "5!", "5/0", "5 and a half", ""),
        *(
            "7 hundredths",
            "5 of 10",
            "3-4",
            "five or six",
            "1,23",
            "5" * 501,
            "5 " + "a. " * 150 + "1",
        ),
    ):
        assert read_number(text) is None, text


@needs_data
def test_gsm8k_answers_equal_themselves_and_no_others() -> None:
    golds = [row["answer"].partition("#### ")[2] for row in rows("gsm8k/test.jsonl.gz")]
    for form in (r"\boxed{{{}}}", "The answer is ${}.", "#### {}", "{}"):
        pairs = [(form.format(gold), Answer("number", gold)) for gold in golds]
        assert set(outcomes(pairs)) == {"correct"}
    others = golds[1:] + golds[:1]
    cases = zip(golds, others, strict=True)
    graded = outcomes([(rf"\boxed{{{other}}}", Answer("number", gold)) for gold, other in cases])
    values = [int(gold.replace(",", "")) for gold in golds]
    assert [outcome == "correct" for outcome in graded] == [
        one == two for one, two in zip(values, values[1:] + values[:1], strict=True)
    ]


@needs_data
def test_every_math500_answer_equals_itself_however_spelt() -> None:
    golds = [row["answer"] for row in rows("math/math500_test.jsonl.gz")]

    def spelt(gold: str) -> str:
        bracketed = gold.replace("(", r"\left( ").replace(")", r" \right)")
        return bracketed.replace(r"\frac", r"\dfrac ").replace(" + ", "+")

    for spell in (str, spelt):
        pairs = [(rf"So $\boxed{{{spell(gold)}}}$.", Answer("math", gold)) for gold in golds]
        assert set(outcomes(pairs)) == {"correct"}


@needs_data
def test_triviaqa_aliases_equal_themselves() -> None:
    golds = [row["aliases"] for row in rows("triviaqa/validation.jsonl.gz")[:500]]
    pairs = [
        (rf"\boxed{{{names[-1]}}}", Answer("short", names[0], tuple(names[1:]))) for names in golds
    ]
    # Braces and backslashes in names are the rest.
    assert outcomes(pairs).count("correct") >= 495


EXPRESSIONS = [r"\frac{1}{2}", "(1,2)", r"\{3,4\}", "52_8", r"\text{east}", "[0,1)", "y=2x"]


def test_equality_is_reflexive_and_symmetric_and_sees_differences() -> None:
    pairs = [(one, two) for one in EXPRESSIONS for two in EXPRESSIONS]
    graded = outcomes([(rf"\boxed{{{one}}}", Answer("math", two)) for one, two in pairs])
    assert [outcome == "correct" for outcome in graded] == [one == two for one, two in pairs]


def test_math_verify_is_asked_about_each_part() -> None:
    polynomial = Answer("math", r"(2x+3)\left(3x-5\right)")
    pair = Answer("math", r"(\sqrt{4}, \frac{x}{2})")
    pairs = [(rf"\boxed{{6x^2-x{number:+}}}", polynomial) for number in (-15, -14)]
    pairs += [(r"\boxed{(2, 0.5x)}", pair), (r"\boxed{(0.5x, 2)}", pair)]
    assert outcomes(pairs) == ["correct", "incorrect"] * 2


def naive_name(text: str) -> str:
    """The official TriviaQA normal form, step by step, on text without accents; articles alone
    stay.
    """
    spaced = "".join(
        " " if mark in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~‘’´" else mark for mark in text.lower()
    )
    words = [word for word in spaced.split() if word not in ("a", "an", "the")]
    return " ".join(words)


WORDS = st.sampled_from(["a", "b", "The ", "an ", "n", " ", "'", ",", "_", "!", "dog"])


@given(st.lists(WORDS, min_size=1).map("".join))
def test_names_have_the_official_normal_form(text: str) -> None:
    assert name(text) == naive_name(text) or not naive_name(text)


@pytest.mark.parametrize(
    ("kind", "same", "other"),
    [
        ("number", ["0.5", "1/2", ".50", r"\frac12"], "2"),
        ("math", ["0.5", "1/2", r"x = \frac{1}{2}", r"\dfrac{1}{2}"], "x"),
        ("math", ["x + 1", "x+1", r"x\,+ 1", "x+1. "], "1+x"),
        ("math", ["2 a + b", "2a+b"], "2a-b"),
        ("choice", ["C", "(c)", r"\text{C.}"], "B"),
        ("short", ["The Moon", "moon!", "MOON"], "Sun"),
        ("short", ["1,000", "1000"], "100"),
        ("short", ["The The", "the the"], "A"),  # a band, of articles alone
    ],
)
def test_votes_group_by_normal_form(kind: Kind, same: list[str], other: str) -> None:
    assert len({canonical(text, kind) for text in same}) == 1
    assert canonical(other, kind) != canonical(same[0], kind)
