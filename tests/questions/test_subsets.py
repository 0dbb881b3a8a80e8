"""Everybody takes the same random questions."""

import itertools
from typing import Any

import pytest

from capcal_lib.errors import InputError
from capcal_lib.questions import load_questions, subset, subsets


def test_a_limit_takes_a_subset_that_a_larger_limit_contains() -> None:
    every = load_questions("mini-exam")
    taken = [load_questions("mini-exam", limit=limit) for limit in (1, 7, 30, 31, 10_000)]
    assert [len(few) for few in taken] == [1, 7, 30, 31, len(every)]
    assert all(set(few) < set(more) for few, more in itertools.pairwise(taken))
    assert all(list(few) == sorted(few, key=every.index) for few in taken)
    assert taken[1] != every[:7]
    assert taken[-1] == every


def test_a_subset_depends_on_the_seed_and_not_on_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    every = load_questions("mini-exam")
    few = subset(every, 9)
    assert set(subset(every[::-1], 9)) == set(few)
    positions = [every.index(question) for question in subset(every, len(every) // 2)]
    assert 0.4 < sum(positions) / len(positions) / len(every) < 0.6  # from the whole split
    monkeypatch.setattr(subsets, "SUBSET_SEED", 43)
    assert set(subset(every, 9)) != set(few)


@pytest.mark.parametrize("limit", [0, -1, 2.0, "3", True])
def test_bad_limits(limit: Any) -> None:
    with pytest.raises(InputError, match=r"limit must be a whole number from 1 to .*; got "):
        load_questions("mini-exam", limit=limit)
