"""Bands around what a probe predicts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.errors import InputError
from capcal_lib.probes import conformal_half_width
from tests.probes.probe_sets import rng


@settings(max_examples=25, deadline=None)
@given(st.integers(10, 200), st.floats(0.5, 0.95), st.integers(0, 2**31))
def test_a_conformal_band_covers_a_new_question_as_promised(
    n: int, level: float, seed: int
) -> None:
    draws = rng(seed)
    s, mu = draws.random((2, n + 1))
    inside = 0
    for left_out in range(
        n + 1
    ):  # exchangeable: each question in turn is the new one, so the count is exact
        others = np.arange(n + 1) != left_out
        inside += (
            abs(s[left_out] - mu[left_out])
            <= conformal_half_width(s[others], mu[others], level=level) + 1e-9
        )
    assert inside >= level * (n + 1) - 1e-9


def test_a_band_from_too_few_questions_is_everything() -> None:
    assert conformal_half_width([0.5] * 5, [0.5] * 5, level=0.9) == 1
    with pytest.raises(InputError, match="level must lie between 0 and 1"):
        conformal_half_width([0.5], [0.5], level=1.0)
