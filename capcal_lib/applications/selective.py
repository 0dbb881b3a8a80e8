"""Answer only where a confidence is high: what that risks.

The target is capability: a question's loss, in [0, 1], is the chance 1 - mu_hat that a fresh answer
to it is wrong. Arguments and errors as at the head of :mod:`capcal_lib.applications`."""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from capcal_lib.metrics.validation import Floats, Ints, as_scored


def risk_area_terms(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> Floats:
    """Return one term a question, shape (n_questions,), whose mean is the area under the
    risk-coverage curve (AURC).

    Lower is better; a confidence that says nothing has the mean loss. Of few questions the area is
    somewhat too small (by a tenth of 20, a twenty-fifth of 60), and its 95 % interval covers less
    often (.86 and .91). The terms hold how much each
    question moves the area, directly and by its place in the order (the influence function), so
    that their :func:`~capcal_lib.metrics.mean_interval` is that of the area (Geifman, Uziel and
    El-Yaniv, ICLR 2019).

    >>> round(float(risk_area_terms([0.9, 0.2, 0.5, 0.5], [9, 1, 8, 2], 10).mean()), 4)
    0.3167
    """
    s, mu, _ = as_scored(confidence, correct, total)
    block, losses = _by_rank(s, 1 - mu)
    ranks = np.arange(1, s.size + 1)
    after = np.cumsum(1 / ranks[::-1])[::-1]
    losses_after = np.cumsum((losses / ranks)[::-1])[::-1]
    weight = _mean_within(block, after)
    place = _mean_within(block, losses_after)
    return losses.mean() + ((1 - mu) * weight[block] - place[block])


def _by_rank(s: Floats, loss: Floats) -> tuple[Ints, Floats]:
    """Return each question's block of equal s, the highest first, and the losses in order of rank,
    ties in expectation.
    """
    _, block = np.unique(-s, return_inverse=True)
    mean_loss = _mean_within(block, loss[np.argsort(block)])
    return block, mean_loss[np.sort(block)]


def _mean_within(block: Ints, values: Floats) -> Floats:
    """Return the mean of values, in order of rank, within each block."""
    return np.bincount(np.sort(block), values) / np.bincount(block)


def risk_coverage(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> pd.DataFrame:
    """Return the risk of answering only the most confident questions, at each share of them.

    A row a question, the most confident first: ``coverage``, the share answered so far, and
    ``risk``, their mean loss. Questions of equal confidence come in random order: each has their
    mean loss. Lower is better.

    >>> risk_coverage([0.9, 0.2, 0.5, 0.5], [9, 1, 8, 2], 10)["risk"].round(3).tolist()
    [0.1, 0.3, 0.367, 0.5]
    """
    s, mu, _ = as_scored(confidence, correct, total)
    _, losses = _by_rank(s, 1 - mu)
    answered = np.arange(1, s.size + 1)
    coverage = answered / s.size
    risk = losses.cumsum() / answered
    return pd.DataFrame({"coverage": coverage, "risk": risk})
