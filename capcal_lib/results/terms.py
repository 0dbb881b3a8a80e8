"""What all results use: counts, and the Brier term of each question."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import others_mean

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

COUNTS = ["correct", "total"]
NUMBERS = ["confidence", *COUNTS]
UNIFORM, BEST_CONSTANT = "Uniform random", "Best constant"
ORACLE_RC, ORACLE_CC = ORACLES = ["Oracle RC", "Oracle CC"]
HONEST_ORACLE = "Honest oracle"  # it knows other samples than those that judge it
NOT_COMPETING = [UNIFORM, BEST_CONSTANT, *ORACLES]  # two baselines, and two that know the samples
FEWEST = 10  # questions of which an interval or a comparison says anything


def question_terms(
    confidence: "pd.Series[float]", counts: pd.DataFrame, *, corrected: bool = True
) -> "pd.Series[float]":
    """Return the Brier term of each question; NaN without a confidence, or with too few samples."""
    known = counts[COUNTS].assign(confidence=confidence)[NUMBERS].dropna()
    least = 2 if corrected else 1
    known = known[known["total"] >= least]
    if known.empty:
        return pd.Series(np.nan, counts.index)
    terms = metrics.capability_brier_terms(*known.to_numpy().T, corrected=corrected)
    return pd.Series(terms, known.index).reindex(counts.index)


def constant_terms(table: pd.DataFrame) -> "pd.Series[float]":
    """Return the corrected terms of the best constant: mean mu_hat of the other questions."""
    mu_hat = (table["correct"] / table["total"]).where(table["total"] > 1)
    return question_terms(others_mean(mu_hat), table)


def gain_bounds(counts: pd.DataFrame) -> tuple[float, float]:
    """Return the bounds of any gain over the best constant."""
    return metrics.bounds_over_constant(float((counts["correct"] / counts["total"]).mean()))


def accuracy_bounds(counts: pd.DataFrame) -> tuple[float, float]:
    """Bound the mean expected accuracy: with all unscored samples counted as wrong, and with all of
    them counted as right.

    >>> counts = pd.DataFrame({"correct": [1, 2], "total": [2, 4], "not_scored": [2, 0]})
    >>> accuracy_bounds(counts)
    (0.375, 0.625)
    """
    samples = counts["total"] + counts["not_scored"]
    most = (counts["correct"] + counts["not_scored"]) / samples
    return float((counts["correct"] / samples).mean()), float(most.mean())


def mark_best(terms: pd.DataFrame, clusters: "ArrayLike | None" = None) -> "pd.Series[bool]":
    """Mark the methods of a data set that may be the best: no other method is significantly better
    on the questions that both have.

    ``terms`` has one row per question and one column per method. NA for methods that do not
    compete: baselines, oracles, a method with fewer than ten questions, or without a competitor.

    >>> terms = pd.DataFrame({"P(True)": [0.1, 0.2] * 20, "Probe": [0.6, 0.5] * 20})
    >>> mark_best(terms.assign(**{"Uniform random": 0.05})).tolist()
    [True, False, <NA>]
    """
    competing = terms.drop(columns=NOT_COMPETING, errors="ignore")
    competing = competing.dropna(axis="columns", thresh=FEWEST)
    marks = pd.Series(pd.NA, terms.columns, dtype="boolean")
    if competing.shape[1] > 1:
        best = metrics.may_be_best(competing, clusters)
        marks[competing.columns] = [name in best for name in competing]
    return marks


def decimals_of(questions: int) -> int:
    """Return how many decimals of a mean over questions are meaningful: two for fewer than ten
    questions, three below a thousand, then four.

    >>> [decimals_of(number) for number in (3, 60, 999, 5000)]
    [2, 3, 3, 4]
    """
    if questions < FEWEST:
        return 2
    return 3 if questions < 1000 else 4
