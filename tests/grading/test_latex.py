"""One spelling for many."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.grading import latex

SPELT = re.findall(
    r"\S+",
    r"a C US sqrt pi spider theta \text \frac \circ \mathbb{R} \ $ % ~ < = * ** _ ^ "
    r"{ } ( ) [ ] | , . - "
    r"1 12 345 .5 C(5,2) ½ ² ° − × 12th",
)


@settings(deadline=None, max_examples=500)
@given(st.lists(st.sampled_from([*SPELT, "real except", " ", "\n"]), max_size=4).map("".join))
def test_plain_text_is_cleaned_as_every_text(text: str) -> None:
    slowly = latex.respelt(latex.undressed(text).translate(latex._CHARACTERS), latex._SPELLINGS)
    assert latex.clean(text) == slowly.strip().rstrip(".,;").strip()


@pytest.mark.parametrize(
    ("dressed", "bare"),
    [
        (r"\textcolor{green}{7}", "7"),
        (r"{\color{green} 7}", "7"),
        (r"{\huge\bf 7}", "7"),
        (r"\fcolorbox{red}{white}{7}", "7"),
        (r"\underline{\mathbf{\sqrt{7}}}", r"\sqrt{7}"),
        (r"\text{west}", r"\text{west}"),
        (r"\frac{1}{2}", r"\frac{1}{2}"),
        (r"\infty", r"\infty"),
    ],
)
def test_dress_says_nothing(dressed: str, bare: str) -> None:
    assert latex.undressed(dressed) == bare
