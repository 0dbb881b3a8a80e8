"""Check the arrays that people hand in, once and in one place.

Each function takes a list, array, pandas Series or single number, and returns a plain numpy array,
or raises an :class:`~capcal_lib.errors.InputError` that names the first row at fault. Rows count
from 0.

>>> as_scored(0.5, [3, 0], [4, 2])
(array([0.5, 0.5]), array([0.75, 0.  ]), array([4, 2]))
"""

from __future__ import annotations  # keeps ArrayLike short in help()

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capcal_lib.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST_COUNT = 2**53 - 1  # every whole number up to here is a float64


def as_numbers(name: str, values: ArrayLike) -> Floats:
    """Return one number a row, shape (n,), n at least 1; NaN passes, and a single number is one
    row.
    """
    # Without a type of its own, numpy would turn [0.5, "x"] into texts.
    array = np.atleast_1d(np.asarray(values, None if hasattr(values, "dtype") else object))
    if not array.size:
        raise InputError(f"{name} is empty; give at least one row")
    if array.ndim > 1:
        raise InputError(f"{name} must hold one number per row; got shape {np.shape(array)}")
    if array.dtype.kind not in "biuf":
        for row, value in enumerate(array):
            if not isinstance(value, Real | np.bool_):
                raise InputError(
                    f"row {row}: {name} is {value!r:.40}, not a number (the first row is 0)"
                )
    return array.astype(np.float64)


def check_rows(name: str, values: Floats | Ints, bad: NDArray[np.bool_], rule: str) -> None:
    """Raise an InputError for the first row that is bad, if there is one."""
    if bad.any():
        row = int(np.argmax(bad))
        value = repr(float(values[row])).removesuffix(".0")
        raise InputError(f"row {row}: {name} is {value}, {rule} (the first row is 0)")


def as_whole(name: str, values: ArrayLike, *, least: int) -> Ints:
    """Return one whole number of at least ``least`` per row, shape (n,)."""
    numbers = as_numbers(name, values)
    fits = (numbers == np.floor(numbers)) & (numbers >= least) & (numbers <= LARGEST_COUNT)
    check_rows(name, numbers, ~fits, f"but must be a whole number of at least {least}")
    return numbers.astype(np.int64)


def check_int(name: str, value: Any, *, least: int) -> int:
    """Return a single whole number of at least ``least``; a bool or a float is refused."""
    whole = isinstance(value, int | np.integer) and type(value) is not bool
    if whole and least <= value <= LARGEST_COUNT:
        return int(value)
    raise InputError(
        f"{name} must be a whole number from {least} to {LARGEST_COUNT}; got {value!r:.40}"
    )


def check_share(name: str, value: float) -> float:
    """Return a number between 0 and 1, neither of them."""
    if not 0 < value < 1:
        raise InputError(f"{name} must lie between 0 and 1, such as 0.95; got {value!r}")
    return value


def as_confidence(confidence: ArrayLike) -> Floats:
    """Return confidences in [0, 1], shape (n_questions,); NaN is refused, since nobody can score
    it.
    """
    numbers = as_numbers("confidence", confidence)
    outside = ~((numbers >= 0) & (numbers <= 1))
    check_rows("confidence", numbers, outside, "but must lie in [0, 1]; leave out rows without one")
    return numbers


def as_counts(correct: ArrayLike, total: ArrayLike, *, scored: int = 0) -> tuple[Ints, Ints]:
    """Return correct and scored samples, each of shape (n_questions,), with ``scored`` or more to a
    question.
    """
    correct, total = align(correct=correct, total=total)
    hits = as_whole("correct", correct, least=0)
    samples = as_whole("total", total, least=0)
    hits, samples = np.broadcast_arrays(hits, samples)
    check_rows("correct", hits, hits > samples, "more than its total")
    needed = f"but {scored} or more scored samples are needed; leave this question out"
    check_rows("total", samples, samples < scored, needed)
    return hits, samples


def as_scored(
    confidence: ArrayLike, correct: ArrayLike, total: ArrayLike, *, scored: int = 1
) -> tuple[Floats, Floats, Ints]:
    """Return s, mu_hat = correct / total and total, each of shape (n_questions,)."""
    confidence, correct, total = align(confidence=confidence, correct=correct, total=total)
    s = as_confidence(confidence)
    hits, samples = as_counts(correct, total, scored=scored)
    s, hits, samples = np.broadcast_arrays(s, hits, samples)
    return s, hits / samples, samples


def align(**columns: Any) -> list[Any]:
    """Align columns: reorder each Series to the first one's index, and check that all columns have
    the same length; a single value stands for every row.
    """
    first = None
    for name, column in columns.items():
        if not hasattr(column, "reindex"):
            continue
        first = first or name
        index = columns[first].index
        if not column.index.equals(index):
            if not index.is_unique or len(column.index.symmetric_difference(index)):
                raise InputError(
                    f"{name} and {first} have different indices; join them by question, or give "
                    "arrays in the same order"
                )
            columns[name] = column.reindex(index)
    lengths = {name: len(column) for name, column in columns.items() if np.ndim(column)}
    if len(set(lengths.values())) > 1:
        counted = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"all must have the same number of rows, one per question; {counted}")
    return list(columns.values())


def like(first: Any, values: Any) -> Any:
    """Return values as a Series with the index of ``first`` if that is a Series, else as is."""
    if not hasattr(first, "reindex"):
        return values
    from pandas import Series  # slow to import

    return Series(values, first.index)
