"""Answer only where a confidence is high: what that risks, and how to promise a risk.

The target is capability: a question's loss, in [0, 1], is the chance 1 - mu_hat that a fresh answer to it is wrong.
Arguments and errors as at the head of :mod:`capcal_lib.applications`.
"""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from capcal_lib.metrics.validation import Floats, Ints, as_scored, check_share


def risk_coverage(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> pd.DataFrame:
    """Return the risk of answering the most confident questions: a row for each share of questions answered.

    Columns: ``coverage``, the share answered, above 0 and up to 1; ``risk``, their mean loss, lower being better.
    Questions of equal confidence come in random order, in expectation.

    >>> risk_coverage([0.9, 0.2, 0.5, 0.5], [9, 1, 8, 2], 10).round(2)
       coverage  risk
    0      0.25  0.10
    1      0.50  0.30
    2      0.75  0.37
    3      1.00  0.50
    """
    _, (ranks, losses) = _ordered(confidence, correct, total)
    return pd.DataFrame({"coverage": ranks / ranks.size, "risk": np.cumsum(losses) / ranks})


def risk_area_terms(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> Floats:
    """Return one term a question, shape (n_questions,), whose mean is the area under the risk-coverage curve (AURC).

    Lower is better; a confidence that says nothing has the mean loss. The terms hold how much each question moves the
    area, directly and by its place in the order (the influence function), so that their
    :func:`~capcal_lib.metrics.mean_interval` is that of the area (Geifman, Uziel and El-Yaniv, ICLR 2019).

    >>> round(float(risk_area_terms([0.9, 0.2, 0.5, 0.5], [9, 1, 8, 2], 10).mean()), 4)
    0.3167
    """
    (_, mu, block), (ranks, losses) = _ordered(confidence, correct, total)
    weight = _mean_within(block, np.cumsum(1 / ranks[::-1])[::-1])
    place = _mean_within(block, np.cumsum((losses / ranks)[::-1])[::-1])
    return (1 - mu) * weight[block] + losses.mean() - place[block]


def promise_risk(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike, risk: float) -> float:
    """Return the threshold above which answering keeps a promise: wrong answers to at most this share of questions.

    On a new question, exchangeable with these, the chance that it is answered (its confidence lies above the
    threshold) and a fresh answer is wrong is at most ``risk``, in (0, 1), whatever the confidence and however few
    questions: conformal risk control (Angelopoulos et al., ICLR 2024). The promise is on average over the draw of these
    questions. -inf where all may be answered; infinite where none may, as ``risk`` < 1/(n + 1).

    >>> promise_risk([0.9, 0.8, 0.5, 0.2], [10, 9, 5, 0], 10, 0.3), promise_risk([0.9], [10], 10, 0.3)
    (0.5, inf)
    """
    (s, _, block), (_, losses) = _ordered(confidence, correct, total)
    if check_share("risk", risk) * (len(s) + 1) < 1:
        return float("inf")
    wrong = np.cumsum(losses)[np.cumsum(np.bincount(block)) - 1]  # were all down to each confidence answered
    broken = np.flatnonzero(wrong + 1 > risk * (len(s) + 1) + 1e-9)
    return float(np.unique(s)[::-1][broken[0]]) if broken.size else -float("inf")


def _ordered(
    confidence: ArrayLike, correct: ArrayLike, total: ArrayLike
) -> tuple[tuple[Floats, Floats, Ints], tuple[Ints, Floats]]:
    """Return s, mu_hat and each question's block of equal s, highest first; ranks, and the expected losses there."""
    s, mu, _ = as_scored(confidence, correct, total)
    block = np.unique(-s, return_inverse=True)[1]
    losses = (np.bincount(block, 1 - mu) / np.bincount(block))[np.sort(block)]
    return (s, mu, block), (np.arange(1, s.size + 1), losses)


def _mean_within(block: Ints, values: Floats) -> Floats:
    """Return the mean of values, in order of rank, within each block."""
    return np.bincount(np.sort(block), values) / np.bincount(block)
