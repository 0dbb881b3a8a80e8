"""A question and its right answer are checked."""

import pytest

from capcal_lib.errors import InputError
from capcal_lib.questions import Answer, with_options


def test_answers_are_checked() -> None:
    with pytest.raises(
        InputError, match="unknown answer kind 'numeric'; known: choice, math, number, short"
    ):
        Answer("numeric", "1")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must be a text that is not empty; got ''"):
        Answer("short", "")


def test_options_are_lettered() -> None:
    assert with_options(" Which?\n", [" a", "b "]) == "Which?\nA. a\nB. b"
