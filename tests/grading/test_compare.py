"""What is equal, and what only looks so."""

import random
import unicodedata
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.grading import canonical, grade
from capcal_lib.grading.compare import letter, mathematics, name, read_number
from capcal_lib.manifests import Kind
from capcal_lib.questions import Answer
from tests.grading.answers import outcomes, rows
from tests.outside import needs_data


def is_equal(kind: Kind, gold: str, other: str, *aliases: str) -> bool:
    return grade(rf"\boxed{{{other}}}", Answer(kind, gold, aliases)).verdict == "correct"


@pytest.mark.parametrize(
    ("gold", "other", "same"),
    [
        ("8-i", "8", False),
        ("8", "8-i", False),
        ("1 - x", "1", False),
        ("1/n", "1", False),
        ("1,i,-i", "1", False),
        ("8-i", "8-j", False),
        ("8-i", "8 − i", True),
        ("1-x", "-x+1", True),
        ("5", "5 m/s", True),
        ("5", "5-foot", True),
    ],
)
def test_letters_of_a_formula_are_not_what_is_counted(gold: str, other: str, same: bool) -> None:
    assert is_equal("math", gold, other) is same


@given(st.fractions(), st.fractions())
@settings(max_examples=100, deadline=None)
def test_numbers_are_equal_as_fractions(one: Fraction, two: Fraction) -> None:
    answer = Answer("number", str(one))
    spellings = [
        str(one),
        rf"\frac{{{one.numerator}}}{{{one.denominator}}}",
        f"x = {one}",
        f"{one} apples",
    ]
    assert set(outcomes([(rf"\boxed{{{text}}}", answer) for text in spellings])) == {"correct"}
    assert (grade(rf"\boxed{{{two}}}", answer).verdict == "correct") == (one == two)


@given(st.integers(0, 10**12), st.integers(0, 6), st.sampled_from(["", "-"]))
@settings(max_examples=100, deadline=None)
def test_decimals_and_thousands_are_exact(digits: int, places: int, sign: str) -> None:
    value = Fraction(digits, 10**places) * (-1 if sign else 1)
    decimal = f"{sign}{digits // 10**places:,}"
    if places:
        decimal += f".{digits % 10**places:0{places}d}"
    read = read_number(decimal)
    assert read is not None
    assert read.value == value
    assert canonical(decimal, "number") == canonical(decimal.replace(",", ""), "math") == str(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"\$1,234.50", "1234.5"),
        ("-$7", "-7"),
        ("$-7", "-7"),
        (r"2\frac{1}{2}", "5/2"),
        ("2 1/2", "5/2"),
        ("12^{\\text{th}}", "12"),
        ("twelve", "12"),
        ("90^\\circ", "90"),
        ("\N{NON-BREAKING HYPHEN}42", "-42"),
        ("256 + 37 = 293", "293"),
        ("84/2 = 43", "43"),  # whatever the working is worth
    ],
)
def test_spellings_of_a_number(text: str, value: str) -> None:
    read = read_number(text)
    assert read is not None
    assert read.value == Fraction(value)


@pytest.mark.parametrize(
    "text",
    [
        *("5x", "5^2", "5^", "--5", "2x = 5", "x = 1 or x = 5", "x+y=5", "1:2", "5!", "5/0"),
        *(
            "5 and a half",
            "7 squared",
            "7 hundredths",
            "5 of 10",
            "3-4",
            "five or six",
            "1,23",
            "",
        ),
        *("5" * 501, "5 " * 250, "5 " + "a. " * 150 + "1"),
    ],
)
def test_what_is_no_number_is_not_read_as_one(text: str) -> None:
    assert read_number(text) is None


@pytest.mark.parametrize(
    ("gold", "other", "same"),
    [
        ("5 cm", "5", True),
        ("5", "5 cm", True),
        ("5 cm", "5 m", False),
        ("5 apple", "5 apples", True),
        ("44 BC", "44 AD", False),
        ("5 profit", "5 loss", False),
        ("50%", "0.5", True),
        ("0.5", "50%", True),
        ("10", r"10\%", True),
        ("50%", "0.5%", False),
        ("1.25", "125%", True),
        ("100%", "1", True),
        ("42", "42%", True),
        ("42", "4200%", False),  # no share is a whole number above 1
        ("4200%", "42", False),
        ("1/3", "0.333", False),
    ],
)
def test_words_and_percent_signs_behind_a_number(gold: str, other: str, same: bool) -> None:
    assert is_equal("number", gold, other) is same


@needs_data
def test_gsm8k_answers_equal_themselves_and_no_others() -> None:
    golds = [row["answer"].partition("#### ")[2] for row in rows("gsm8k/test.jsonl.gz")]
    for form in (r"\boxed{{{}}}", "The answer is ${}.", "#### {}", "{}"):
        assert set(outcomes([(form.format(gold), Answer("number", gold)) for gold in golds])) == {
            "correct"
        }
    others = golds[1:] + golds[:1]
    graded = outcomes(
        [
            (rf"\boxed{{{other}}}", Answer("number", gold))
            for gold, other in zip(golds, others, strict=True)
        ]
    )
    values = [int(gold.replace(",", "")) for gold in golds]
    assert [outcome == "correct" for outcome in graded] == [
        one == two for one, two in zip(values, values[1:] + values[:1], strict=True)
    ]


@given(st.tuples(*[st.integers(-3, 3)] * 4), st.integers(-1, 1))
@settings(max_examples=40, deadline=None)
def test_polynomials_are_equal_when_their_coefficients_are(
    numbers: tuple[int, int, int, int], shift: int
) -> None:
    a, b, c, d = numbers
    gold = rf"({a}x+{b})\left({c}x+{d}\right)".replace("+-", "-")
    expanded = f"{a * c}x^2+{a * d + b * c}x+{b * d + shift}".replace("+-", "-")
    assert is_equal("math", gold, expanded) == (shift == 0)


EXPRESSIONS = [
    "x+1",
    r"\frac{1}{2}",
    "(1,2)",
    r"\{3,4\}",
    r"\sqrt{2}",
    "52_8",
    r"\text{east}",
    "[0,1)",
    "y=2x",
    "5x+3y=4",
]


@pytest.mark.parametrize("one", EXPRESSIONS)
def test_equality_is_reflexive_and_symmetric_and_sees_differences(one: str) -> None:
    pairs = [(rf"\boxed{{{two}}}", Answer("math", one)) for two in EXPRESSIONS]
    back = [(rf"\boxed{{{one}}}", Answer("math", two)) for two in EXPRESSIONS]
    assert [result == "correct" for result in outcomes(pairs)] == [
        one == two for two in EXPRESSIONS
    ]
    assert outcomes(pairs) == outcomes(back)


@pytest.mark.parametrize(
    ("gold", "other", "same"),
    [
        ("1,2", r"2 \text{ and } 1", True),
        ("1,2", r"\{2, 1\}", True),
        ("1,2,3", "1, 2, and 3", True),
        ("(1,2)", "(2,1)", False),
        ("(1,2)", "[1,2]", False),
        ("(1,2)", r"\{1,2\}", False),
        ("(1,2)", r"\left( 1, 2 \right)", True),
        ("x=5", r"x = 1 \text{ or } x = 5", False),
        ("x=5", "5", True),
        ("5", "2x=5", False),
        ("-1,3,3", "3, 3, -1", True),
        ("58,500", "58, 500", False),
        (r"(-\infty, 0]", r"[-\infty, 0]", False),
        (r"[0,1)", r"0 \le x < 1", True),
        (r"[0,1)", "0 < x < 1", False),
        (r"x \in [-2,7]", "[-2, 7]", True),
        (r"(-\infty, 2) \cup (3, \infty)", r"(-\infty, 2] \cup (3, \infty)", False),
        (r"\pm 2", "2", False),
        (
            r"\begin{pmatrix} 16/49 \\ 48/49 \end{pmatrix}",
            r"\begin{pmatrix} \frac{16}{49} \\ \frac{48}{49} \end{pmatrix}",
            True,
        ),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix}2\\1\end{pmatrix}", False),
    ],
)
def test_parts_and_their_brackets(gold: str, other: str, same: bool) -> None:
    assert is_equal("math", gold, other) is same


@pytest.mark.parametrize(
    ("gold", "other", "same"),
    [
        (r"3\sqrt{13}", r"\sqrt{117}", True),
        (r"\frac{\sqrt{3}}{3}", r"\frac{1}{\sqrt{3}}", True),
        (r"\sqrt{2}", "1.41421356", False),
        (r"\frac{x}{2}", "0.5x", True),
        ("2", "2m", False),
        ("2m", "2", False),
        ("x", "x'", False),
        ("52_8", "52", False),
        ("11:30", "11:20", False),
        (r"x^{2}", "x²¹", False),
        ("x^2+1", "x²+1", True),
        ("8", r"\phantom{8}5", False),
        (r"\text{east}", "East", True),
        (r"\text{east}", "seat", False),
        (r"\text{(E)}", "E", True),
        ("a+b", r"\text{B}", False),
        (r"5\text{ more}", r"5\text{ less}", False),
    ],
)
def test_expressions_and_words(gold: str, other: str, same: bool) -> None:
    assert is_equal("math", gold, other) is same


@needs_data
def test_every_math500_answer_equals_itself_however_spelt() -> None:
    golds = [row["answer"] for row in rows("math/math500_test.jsonl.gz")]

    def spelt(gold: str) -> str:
        return (
            gold.replace(r"\frac", r"\dfrac ")
            .replace("(", r"\left( ")
            .replace(")", r" \right)")
            .replace(" + ", "+")
        )

    for spell in (str, spelt):
        graded = outcomes(
            [(rf"So $\boxed{{{spell(gold)}}}$.", Answer("math", gold)) for gold in golds]
        )
        assert [
            gold for gold, outcome in zip(golds, graded, strict=True) if outcome != "correct"
        ] == []


@needs_data
def test_math_answers_equal_others_only_where_they_are_equal() -> None:
    golds = [row["answer"] for row in rows("math/math500_test.jsonl.gz")]
    draw = random.Random(7)
    pairs = [tuple(draw.sample(golds, 2)) for _ in range(400)]
    graded = outcomes([(rf"\boxed{{{two}}}", Answer("math", one)) for one, two in pairs])
    equal = {pair for pair, outcome in zip(pairs, graded, strict=True) if outcome == "correct"}
    assert {pair for pair in pairs if pair[0] == pair[1]} <= equal
    assert all(canonical(one, "math") == canonical(two, "math") for one, two in equal)
    assert "not_scored" not in graded


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("(C)", True),
        ("c", True),
        ("C. -x", True),
        ("-x", True),
        ("x", False),
        ("- x", False),
        ("B) -x", False),
        ("C or D", False),
    ],
)
def test_an_option_is_its_letter_or_its_very_text(text: str, right: bool) -> None:
    assert is_equal("choice", "C", text, "-x") is right


def test_an_option_whose_text_is_a_letter_is_known_by_its_own_letter() -> None:
    assert is_equal("choice", "D", "D", "B")
    assert not is_equal("choice", "D", "B", "B")
    assert is_equal("choice", "B", "x", "x")  # there are no options as far down as X
    assert letter("A dog") is None


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
@settings(max_examples=200, deadline=None)
def test_names_have_the_official_normal_form(text: str) -> None:
    assert name(text) == naive_name(text) or not naive_name(text)


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC"])
def test_accents_do_not_matter(form: str) -> None:
    assert name(unicodedata.normalize(form, "Åland Islands")) == name("Aland islands")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gold", "other", "same"),
    [
        ("Jean-Paul Sartre", "Jean\N{NON-BREAKING HYPHEN}Paul Sartre", True),
        ("The Beatles", "beatles!", True),
        ("Norway", "no", False),
        ("Norway", "Norway and Sweden", False),
        ("12 Monkeys", "12", False),
        ("1,000", "1000", True),
        ("5", "-5", False),
        ("14", "fourteen lines", True),
        ("2008", "two thousand", False),
        ("5 km north", "5 km south", False),
        ("ハン", "パン", False),
        ("Curie", "Currie", False),
        ("CaCO3", "CaCO₃", True),
    ],
)
def test_names_are_equal_whole(gold: str, other: str, same: bool) -> None:
    assert is_equal("short", gold, other) is same


@needs_data
def test_triviaqa_aliases_equal_themselves() -> None:
    golds = [row["aliases"] for row in rows("triviaqa/validation.jsonl.gz")[:500]]
    answers = [Answer("short", names[0], tuple(names[1:])) for names in golds]
    graded = outcomes(
        [(rf"\boxed{{{names[-1]}}}", answer) for names, answer in zip(golds, answers, strict=True)]
    )
    assert graded.count("correct") >= 495  # braces and backslashes in names are the rest


def test_math_verify_is_asked_about_each_part() -> None:
    assert mathematics("(2, 0.5x)", r"(\sqrt{4}, \frac{x}{2})")
    assert not mathematics("(2, 0.5x)", r"(\frac{x}{2}, \sqrt{4})")
    assert mathematics("7", "x+1", r"\sqrt{49}")  # any of the right answers will do


def test_votes_for_an_expression_are_grouped_whatever_its_spaces() -> None:
    assert canonical("2 a + b", "math") == canonical("2a+b", "math") != canonical("2a-b", "math")
