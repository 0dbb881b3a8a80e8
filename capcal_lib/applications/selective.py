"""Selective prediction: the risk of answering only questions with a high confidence.

The target is capability: a question's loss, in [0, 1], is the chance 1 - mu_hat that a fresh answer
to it is wrong. Arguments and errors are described in :mod:`capcal_lib.applications`."""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from capcal_lib.metrics.validation import Floats, as_scored


def risk_area_terms(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> Floats:
    """Return one term per question, shape (n_questions,), whose mean is the area under the
    risk-coverage curve (AURC).

    Lower is better; a confidence that knows nothing has the mean loss. With few questions the area
    of a useful confidence is somewhat too large: in simulations by 8 % with 20 questions and by 3 %
    with 60. A term is how much the question moves the area, directly and by
    its place in the order (the influence function), so their
    :func:`~capcal_lib.metrics.mean_interval` is an interval for the area (Geifman, Uziel and
    El-Yaniv, ICLR 2019). With the bounds of :func:`risk_area_bounds` it covered at least 98 % of
    the time there.

    >>> round(float(risk_area_terms([0.9, 0.2, 0.5, 0.5], [9, 1, 8, 2], 10).mean()), 4)
    0.3167
    """
    s, mu, _ = as_scored(confidence, correct, total)
    order = np.argsort(-s, kind="stable")  # the most confident first
    ranked, losses = s[order], (1 - mu)[order]
    ranks = np.arange(1, s.size + 1)
    # A question is one of ``rank`` in the answered share at each rank from its own on.
    directly = losses * _tied(ranked, _sums_from(1 / ranks))
    # Without it, those after it would come one rank sooner.
    by_place = _tied(ranked, _sums_from(_tied(ranked, losses) / ranks))
    moves = directly - by_place  # exactly 0 where all losses are equal
    back = np.argsort(order)  # into the order of the questions
    return (losses.mean() + moves)[back]


def risk_area_bounds(questions: int) -> tuple[float, float]:
    """Return the least and the largest possible gain of one of n questions over random order: its
    loss 1 - mu minus its term of :func:`risk_area_terms`.

    The most confident question is part of every answered share. It counts least if it alone is
    wrong, and most if it alone is right. With fewer than twelve questions the least confident one
    can count for more, up to 1 - 1 / n. The bounds are about ln n - 1.42 on either side.

    >>> [round(bound, 2) for bound in risk_area_bounds(100)]
    [-3.2, 3.2]
    """
    first = float((1 / np.arange(1, questions + 1)).sum() - 2 + 1 / questions)
    most = max(first, 1 - 1 / questions)
    return -most, most


def _sums_from(values: Floats) -> Floats:
    """Return, for each place, the sum of the values from there to the last."""
    return np.cumsum(values[::-1])[::-1]


def _tied(ranked: Floats, values: Floats) -> Floats:
    """Return the mean of values, in order of rank, over all questions of equal confidence."""
    return pd.Series(values).groupby(ranked).transform("mean").to_numpy()


def risk_coverage(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> pd.DataFrame:
    """Return the risk of answering only the most confident questions, for every share of them.

    One row per question, the most confident first: ``coverage``, the share answered so far, and
    ``risk``, its mean loss; lower is better. Questions of equal confidence come in random order, so
    each counts with their mean loss.

    >>> risk_coverage([0.9, 0.2, 0.5, 0.5], [9, 1, 8, 2], 10)["risk"].round(3).tolist()
    [0.1, 0.3, 0.367, 0.5]
    """
    s, mu, _ = as_scored(confidence, correct, total)
    order = np.argsort(-s, kind="stable")
    losses = _tied(s[order], (1 - mu)[order])
    answered = np.arange(1, s.size + 1)
    coverage = answered / s.size
    risk = losses.cumsum() / answered
    return pd.DataFrame({"coverage": coverage, "risk": risk})
