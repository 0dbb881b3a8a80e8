"""Brier decomposition and calibration error: miscalibration apart from discrimination.

Input and errors are those of :mod:`capcal_lib.metrics.brier`.
"""

from __future__ import annotations  # keeps ArrayLike short in help()

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.metrics.validation import as_scored, check_int


class IsotonicSplit(NamedTuple):
    """score = miscalibration - discrimination + uncertainty, exactly."""

    score: float
    miscalibration: float  # at least 0; lower is better
    discrimination: float  # at least 0; higher is better
    uncertainty: float  # of the questions and the model, not of the confidences


def isotonic_split(
    confidence: ArrayLike, correct: ArrayLike, total: ArrayLike, *, corrected: bool = False
) -> IsotonicSplit:
    """Split the capability Brier score by the isotonic fit of mu_hat on the confidence (CORP).

    Miscalibration is what the best increasing recalibration would subtract; discrimination is what
    that recalibration gains over one mean for all; uncertainty is the variance of mu over
    questions. Questions are weighted by their scored samples, so ``score`` equals
    :func:`~capcal_lib.metrics.capability_brier` if all totals are equal. ``corrected`` subtracts
    mu_hat(1 - mu_hat)/(total - 1) from score and uncertainty. For the response target only the
    uncertainty differs, by the correctness variance of theorem 2.

    The fit is made on the rows that it splits, so with few questions miscalibration and
    discrimination are both somewhat too high, by about the same.

    References: Dimitriadis, Gneiting and Jordan, "Stable reliability diagrams for probabilistic
    classifiers", PNAS 118 (2021).

    >>> split = isotonic_split([0.2, 0.4, 0.6], [1, 0, 4], 4)
    >>> [round(part, 4) for part in split]
    [0.1075, 0.0971, 0.1701, 0.1806]
    """
    from scipy.optimize import isotonic_regression  # slow to import

    s, mu, samples = as_scored(confidence, correct, total, scored=1 + corrected)
    weights = samples / samples.sum()
    # Equal confidences have one value, and so have those that differ in their last bits.
    tie = np.unique(s.round(12), return_inverse=True)[1]
    tied = np.bincount(tie, weights)
    fitted = isotonic_regression(np.bincount(tie, weights * mu) / tied, weights=tied).x[tie]
    score = weights @ (s - mu) ** 2
    best = weights @ (fitted - mu) ** 2
    flat = weights @ (mu - weights @ mu) ** 2
    noise = weights @ (mu * (1 - mu) / (samples - 1)) if corrected else 0.0
    return IsotonicSplit(
        score=float(score - noise),
        miscalibration=float(score - best),
        discrimination=float(flat - best),
        uncertainty=float(flat - noise),
    )


def binned_ece(
    confidence: ArrayLike,
    correct: ArrayLike,
    total: ArrayLike,
    *,
    bins: int = 10,
    corrected: bool = True,
) -> float:
    """Return the expected calibration error in bins of equal width, in [0, 1]; lower is better.

    It is the distance between mean mu_hat and mean confidence in a bin, averaged over questions.
    Even calibrated confidences have an error above 0 if bins hold few questions. ``corrected``
    subtracts part of that noise, about six tenths for calibrated confidences: from each distance
    what a normal error of the same size would add; a sum below 0 becomes 0. Without it, this is the
    ECE that is usually reported.

    References: Naeini, Cooper and Hauskrecht, AAAI 2015; Kumar, Liang and Ma, "Verified uncertainty
    calibration", NeurIPS 2019 (the correction).

    >>> round(binned_ece([0.3, 0.3, 0.7, 0.7], [4, 5, 6, 7], 10, corrected=False), 3)
    0.1
    >>> round(binned_ece([0.3, 0.3, 0.7, 0.7], [4, 5, 6, 7], 10), 3)
    0.096
    """
    from scipy.stats import norm  # slow to import

    s, mu, _ = as_scored(confidence, correct, total)
    count = check_int("bins", bins, least=1)
    bin_of = np.minimum((s * count).astype(np.int64), count - 1)
    place = np.unique(bin_of, return_inverse=True)[1]  # empty bins left out
    size = np.bincount(place)
    gap = np.bincount(place, mu - s) / size
    distance = np.abs(gap)
    if corrected:
        squares = (mu - s - gap[place]) ** 2
        pooled = squares.sum() / max(1, len(s) - len(size))
        spread = np.bincount(place, squares) / np.maximum(size - 1, 1)
        error = np.maximum(np.sqrt(np.where(size > 1, spread, pooled) / size), 1e-9)
        z = distance / error
        # Less what the mean distance of a normal variable around the gap is beyond it.
        distance = distance + 2 * (distance * norm.cdf(-z) - error * norm.pdf(z))
    return max(0.0, float(size @ distance / len(s)))
