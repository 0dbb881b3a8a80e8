"""How expected accuracy goes with people's levels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcal_lib.applications import level_slope
from capcal_lib.errors import InputError


def test_by_hand() -> None:
    # Means 0.75 and 0.25 at levels 1 and 3: half a point over two levels.
    found = level_slope([1, 1, 3, 3], [4, 2, 2, 0], [4, 4, 4, 4])
    assert found.estimate == pytest.approx(-0.25)
    assert found.low < -0.25 < found.high


rows = st.tuples(st.integers(1, 5), st.integers(0, 8))


@given(st.lists(rows, min_size=2, max_size=30).filter(lambda all: len({r[0] for r in all}) > 1))
def test_it_is_the_line_of_least_squares_within_its_bounds(
    questions: list[tuple[int, int]],
) -> None:
    level, correct = np.array(questions, float).T
    found = level_slope(level, correct, np.full(len(level), 8))
    assert found.estimate == pytest.approx(np.polyfit(level, correct / 8, 1)[0], abs=1e-9)
    turned = level_slope(-level, correct, np.full(len(level), 8))
    assert turned.estimate == pytest.approx(-found.estimate)
    assert not found.low > found.estimate + 1e-9
    assert not found.high < found.estimate - 1e-9


def test_subjects_that_stay_whole_make_the_interval_wider() -> None:
    rng = np.random.default_rng(0)
    subject = np.repeat(np.arange(12), 10)
    level = subject % 4 + 1
    mu = np.clip(0.6 - 0.05 * level + rng.normal(0, 0.2, 12)[subject], 0, 1)
    correct = rng.binomial(50, mu)
    alone = level_slope(level, correct, np.full(120, 50))
    whole = level_slope(level, correct, np.full(120, 50), clusters=subject)
    assert whole.estimate == pytest.approx(alone.estimate)
    assert whole.high - whole.low > 1.5 * (alone.high - alone.low)


def test_one_level_has_no_slope() -> None:
    with pytest.raises(InputError, match="all questions have one level; a slope needs two"):
        level_slope([2, 2], [1, 0], [1, 1])
