"""A confidence of each question, and what it cost: what all methods make."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from capcal_lib.errors import InputError
from capcal_lib.metrics.validation import Floats, Ints


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Confidence:
    """An estimate of mu for each question and what it cost; every field is (n_questions,).

    Made by ``estimated``.
    """

    question_ids: npt.NDArray[np.str_]
    values: Floats  # in [0, 1]; NaN where missing
    status: npt.NDArray[np.str_]  # ok or missing
    tokens: Ints  # completion tokens spent, failed attempts included
    texts: tuple[
        str | None, ...
    ]  # the model's last words, cut to a bounded length; None where there are none

    def status_counts(self) -> dict[str, int]:
        """Count the questions of each status."""
        return {status: int(np.sum(self.status == status)) for status in ("ok", "missing")}

    def __repr__(self) -> str:
        return (
            f"<Confidence, {len(self)} questions, {self.tokens.sum()} tokens, "
            f"{self.status_counts()}>"
        )

    def __len__(self) -> int:
        return len(self.question_ids)


def estimated(
    question_ids: Sequence[str] | npt.NDArray[np.str_],
    values: npt.ArrayLike,
    *,
    tokens: npt.ArrayLike = 0,
    texts: Sequence[str | None] | None = None,
) -> Confidence:
    """Put estimates beside their questions; the fields of a `Confidence`, or what cannot be one is
    refused.

    Ids come once each; ``tokens`` may be one number for all.

    >>> estimated(["q1", "q2"], [0.7, np.nan], tokens=1)
    <Confidence, 2 questions, 2 tokens, {'ok': 1, 'missing': 1}>
    """
    ids = np.asarray(question_ids, dtype=np.str_)
    numbers = np.array(values, dtype=np.float64)
    words = (None,) * len(ids) if texts is None else tuple(texts)
    if ids.ndim != 1 or numbers.shape != ids.shape or len(words) != len(ids):
        raise InputError(
            f"a confidence needs one value (and text) a question; "
            f"got {ids.shape} ids, {numbers.shape} values and {len(words)} texts"
        )
    names, times = np.unique(ids, return_counts=True)
    if np.any(times > 1):
        raise InputError(
            f"question {str(names[times > 1][0])!r} has more than one confidence; keep one"
        )
    outside = np.flatnonzero((numbers < 0) | (numbers > 1))
    if len(outside):
        first = outside[0]
        raise InputError(
            f"a confidence lies in [0, 1] or is NaN; question {str(ids[first])!r} has "
            f"{numbers[first]}"
        )
    spent = np.broadcast_to(np.asarray(tokens, dtype=np.int64), ids.shape).copy()
    if np.any(spent < 0):
        raise InputError(
            f"tokens cannot be negative; question {str(ids[spent < 0][0])!r} has "
            f"{spent[spent < 0][0]}"
        )
    return Confidence(
        question_ids=ids,
        values=numbers,
        status=np.where(np.isnan(numbers), "missing", "ok"),
        tokens=spent,
        texts=words,
    )
