"""Names and phrases: the normal form, and what is more than a spelling."""

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.grading import number, short
from capcal_lib.questions import Answer
from tests.grading.answers import outcomes, rows
from tests.outside import needs_data


def naive_normal(text: str) -> str:
    """The official TriviaQA normal form, step by step, on text without accents, numbers, initials
    or symbols; articles alone stay.
    """
    lowered = text.replace("_", " ").lower()
    spaced = "".join(
        " " if mark in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~‘’´" else mark for mark in lowered
    )
    words = spaced.split()
    return " ".join([word for word in words if word not in ("a", "an", "the")] or words)


WORDS = st.sampled_from(["a", "b", "The ", "an ", "n", " ", "'", ",", "_", "!"])


@given(st.lists(WORDS, min_size=1).map("".join))
@settings(max_examples=200, deadline=None)
def test_short_normal_form_is_the_official_one(text: str) -> None:
    assert short.normal(text) == naive_normal(text)


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_short_answers_are_equal_exactly_when_their_normal_forms_are(one: str, two: str) -> None:
    if not short.normal(one) or number.read(one) or number.read(two):
        return
    assert short.equal((one,), two) == (short.normal(one) == short.normal(two))
    assert (
        short.equal((one,), one.upper())
        or "ß" in one
        or len(one.upper()) != len(one)
        or one.upper().lower() != one.lower()
        or re.search(r"(?<!\w)[A-Z]\s[A-Z](?!\w)", one.upper())  # capitals apart are initials
    )


def test_accents_do_not_matter() -> None:
    for form in ("NFC", "NFD", "NFKC"):
        assert short.equal(("Åland Islands",), unicodedata.normalize(form, "åland islands"))  # type: ignore[arg-type]


@needs_data
def test_triviaqa_aliases_equal_themselves() -> None:
    golds = [row["aliases"] for row in rows("triviaqa/validation.jsonl.gz")[:500]]
    answers = [Answer("short", names[0], tuple(names[1:])) for names in golds]
    graded = outcomes(
        [(rf"\boxed{{{names[-1]}}}", answer) for names, answer in zip(golds, answers, strict=True)]
    )
    assert graded.count("correct") >= 495  # braces and backslashes in names are the rest


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("ハン", "パン", False),
        ("とき", "どき", False),
        ("край", "краи", False),
        ("ёлка", "елка", True),
        ("замо\u0301к", "замок", True),
        ("कुल", "कल", False),
        ("Zürich", "Zurich", True),
        ("Αθήνα", "Αθηνα", True),
    ],
)
def test_marks_that_make_another_letter_are_no_accents(one: str, other: str, same: bool) -> None:
    assert short.equal((one,), other) is same
    assert short.equal((other,), one) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("N2O", "N₂O", True),
        ("N2O", r"\mathrm{N_2O}", True),
        ("N2O", "NO₂", False),
        ("s^3", "s³", True),
        ("s^3", "s²", False),
        ("Mg2+", "Mg²⁺", True),
        ("Br-", "Br", False),
        ("2.71", "2 71", False),
        ("7 May 1824", "1824-05-07", True),
        ("7 May 1824", "1824-07-05", False),
        ("1824", "In 1824", True),
        ("1824", "In 1825", False),
        ("⏭", "⏭", True),
        ("⏭", "⏮", False),
    ],
)
def test_spellings_of_signs_and_dates(one: str, other: str, same: bool) -> None:
    assert short.equal((one,), other) is same
