"""Bad input is refused in one line that names the row."""

import numpy as np
import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.metrics import validation as inputs

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "confidence is empty; give at least one row"),
        ("high", "row 0: confidence is 'high', not a number (the first row is 0)"),
        (
            [[0.5, 0.5]],
            "confidence must hold one number per row; got shape (1, 2)",
        ),
        ([0.5, None], "row 1: confidence is None, not a number (the first row is 0)"),
        ([0.5, "0.5"], "row 1: confidence is '0.5', not a number (the first row is 0)"),
        (
            [0.5, NAN, 2],
            "row 1: confidence is nan, but must lie in [0, 1]; leave out rows without one",
        ),
        ([-1, 0.5], "row 0: confidence is -1, but must lie in [0, 1]"),
        ([0.5, np.inf], "row 1: confidence is inf, but must lie in [0, 1]"),
    ],
)
def test_confidence_is_refused(values, message):
    with pytest.raises(InputError) as error:
        inputs.as_confidence(values)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("correct", "total", "message"),
    [
        ([1, 5], [4, 4], "row 1: correct is 5, more than its total (the first row is 0)"),
        ([-1, 1], [4, 4], "row 0: correct is -1, but must be a whole number of at least 0"),
        ([1, 1.5], [4, 4], "row 1: correct is 1.5, but must be a whole number of at least 0"),
        ([1, 1], [4, 1e300], "row 1: total is 1e+300, but must be a whole number of at least 0"),
        (
            [1, 1],
            [4],
            "all must have the same number of rows, one per question; correct has 2, total has 1",
        ),
        (
            [1, 0],
            [4, 0],
            "row 1: total is 0, but 1 or more scored samples are needed; leave this question out",
        ),
        ([1, 1], ["4", "4"], "row 0: total is '4', not a number"),
        (
            pd.Series([1, None], dtype="Int64"),
            [4, 4],
            "row 1: correct is nan, but must be a whole number",
        ),
    ],
)
def test_counts_are_refused(correct, total, message):
    with pytest.raises(InputError) as error:
        inputs.as_counts(correct, total, scored=1)
    assert str(error.value).startswith(message)


def test_two_scored_samples_can_be_asked_for():
    with pytest.raises(InputError, match="row 1: total is 1, but 2 or more scored"):
        inputs.as_counts([1, 1], [4, 1], scored=2)


@pytest.mark.parametrize(
    "values",
    [
        [1, 0],
        (1.0, 0.0),
        [np.True_, np.False_],
        np.array([True, False]),
        pd.Series([1, 0], index=[7, 3]),
    ],
)
def test_lists_arrays_and_series_are_the_same(values):
    correct, total = inputs.as_counts(values, [4, 4])
    assert correct.tolist() == [1, 0]
    assert total.dtype == np.int64


@pytest.mark.parametrize("value", [True, 1.0, "1", -1, 2**53])
def test_a_single_whole_number_is_refused(value):
    with pytest.raises(InputError, match="budget must be a whole number from 0"):
        inputs.check_int("budget", value, least=0)


def test_a_numpy_integer_is_a_whole_number():
    assert inputs.check_int("budget", np.int32(3), least=0) == 3


def test_a_single_number_stands_for_every_row():
    s, mu, total = inputs.as_scored(0.5, [1, 2], np.int64(4))
    assert (s.tolist(), mu.tolist(), total.tolist()) == ([0.5, 0.5], [0.25, 0.5], [4, 4])
    assert inputs.as_whole("k", 1, least=1).tolist() == [1]
    assert inputs.as_counts(3, 4)[0].tolist() == [3]


def test_series_are_aligned_by_their_index():
    confidence = pd.Series([0.1, 0.9], index=["a", "b"])
    correct, total = pd.Series([4, 0], index=["b", "a"]), pd.Series([4, 8], index=["b", "a"])
    s, mu, samples = inputs.as_scored(confidence, correct, total)
    assert (s.tolist(), mu.tolist(), samples.tolist()) == ([0.1, 0.9], [0.0, 1.0], [8, 4])
    repeated = pd.Series([1, 2], index=["a", "a"])
    assert inputs.as_counts(repeated, repeated)[0].tolist() == [1, 2]


@pytest.mark.parametrize("index", [["a", "c"], ["a", "a"]])
def test_series_of_other_questions_are_refused(index):
    with pytest.raises(
        InputError, match="total and correct have different indices; join them by question"
    ):
        inputs.as_counts(pd.Series([1, 2], index=["a", "b"]), pd.Series(4, index=index))
