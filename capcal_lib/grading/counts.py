"""Counts: how many of a question's samples are correct, of how many that were scored."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.metrics.validation import check_int
from capcal_lib.sampling.sessions import read_sessions
from capcal_lib.sampling.stopping import Rule

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class Counts:
    """Verdict counts, one row a question; every array is (n_questions,).

    ``total`` counts the scored samples: correct, incorrect and those without an answer.
    """

    question_ids: npt.NDArray[np.str_]
    correct: IntArray
    total: IntArray
    no_answer: IntArray
    not_scored: IntArray

    def __repr__(self) -> str:
        return f"<Counts, {len(self)} questions, {self.correct.sum()} of {self.total.sum()} scored samples correct>"

    def __len__(self) -> int:
        return len(self.question_ids)


def count_verdicts(verdicts: pd.DataFrame, *, first: int = 0, k: int) -> Counts:
    """Count the verdicts of the samples first to first + k - 1 of each question.

    `InputError` for k < 1, or where no sample lies in the range.

    Parameters
    ----------
    verdicts
        One row a sample: question_id, sample_index, verdict.
    first, k
        Which samples count; disjoint ranges give independent counts.

    Returns
    -------
    Counts
        Sorted by question id. A question with fewer samples than k keeps the total that it has.

    Examples
    --------
    >>> rows = [("q", 0, "correct"), ("q", 1, "no_answer"), ("q", 2, "not_scored"), ("q", 3, "correct")]
    >>> counts = count_verdicts(pd.DataFrame(rows, columns=["question_id", "sample_index", "verdict"]), k=3)
    >>> int(counts.correct[0]), int(counts.total[0]), int(counts.not_scored[0])
    (1, 2, 1)
    """
    if k < 1:
        raise InputError(f"k is a number of samples and must be at least 1; got {k}")
    rows = verdicts[verdicts["sample_index"].between(first, first + k - 1)]
    if rows.empty:
        raise InputError(f"no samples with index {first} to {first + k - 1}; draw more, or lower k")
    table = pd.crosstab(rows["question_id"], rows["verdict"])

    def column(verdict: str) -> IntArray:
        return table[verdict].to_numpy(np.int64) if verdict in table else np.zeros(len(table), np.int64)

    correct, no_answer = column("correct"), column("no_answer")
    return Counts(
        question_ids=table.index.to_numpy(str),
        correct=correct,
        total=correct + column("incorrect") + no_answer,
        no_answer=no_answer,
        not_scored=column("not_scored"),
    )


def countable_samples(run: Path, k_eval: int) -> int:
    """Return how many of a question's samples may count: k_eval, or fewer where outcomes decided how many there are."""
    check_int("k_eval", k_eval, least=1)
    asked = [session.ask for session in read_sessions(run)]
    whole = max((ask.k for ask in asked if ask.precision is None), default=0 if asked else k_eval)
    first = [int(Rule(ask.precision, ask.k).ends[1].min()) for ask in asked if ask.precision is not None]
    return min(k_eval, max(whole, min(first))) if first else k_eval
