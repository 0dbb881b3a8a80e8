"""Where the noise of a mean over questions comes from: the questions, and their samples."""

from __future__ import annotations  # keeps ArrayLike short in help()

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError
from capcal_lib.metrics import validation as check
from capcal_lib.metrics.intervals import variance_of_mean


class Components(NamedTuple):
    """Where the noise of a mean over questions comes from; variances are of one question's term.

    With k samples a question, the variance of the mean over N questions is
    (between + within/k + pairs/(k(k - 1)))/N.
    """

    estimate: float  # the score
    between: float  # variance over questions, were every mu known
    within: float  # variance over samples, for a single one
    pairs: float = 0.0  # variance from the correction for finite k, for a single pair of samples

    def variance(self, k: int) -> float:
        """Return the variance of a question's term with k samples; k is 2 or more where there are
        ``pairs``.

        >>> round(Components(0.08, between=0.01, within=0.04, pairs=0.02).variance(5), 3)
        0.019
        """
        return self.between + self.within / k + self.pairs / max(k * (k - 1), 1)


def score_components(
    confidence: ArrayLike,
    correct: ArrayLike,
    total: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
) -> Components:
    """Split the variance of a pilot's corrected capability Brier score into unbiased parts.

    The corrected term is the mean of (s - C)(s - C') over pairs of samples. So with d = s - mu and
    v = mu(1 - mu) its variance over samples is 4 d^2 v/k + 2 v^2/(k(k - 1)), exactly. It takes two
    questions, with four samples each.

    >>> components = score_components([0.5, 0.9, 0.2], [5, 6, 1], [10, 10, 10])
    >>> [round(part, 4) for part in components]
    [0.0119, 0.0004, 0.0071, 0.1005]
    """
    s, c, n, clusters = check.align(
        confidence=confidence, correct=correct, total=total, clusters=clusters
    )
    counts = check.as_counts(c, n, scored=4)
    s, c, n = np.broadcast_arrays(check.as_confidence(s), *counts)
    if len(c) < 2:
        raise InputError("the variance over questions needs at least two questions; got 1")
    # Powers of mu without bias, by falling factorials.
    mu, mu2, mu3, mu4 = np.cumprod([(c - i) / (n - i) for i in range(4)], axis=0)
    v = mu - mu2
    within = 4 * (s**2 * v - 2 * s * (mu2 - mu3) + mu3 - mu4)
    pairs = 2 * (mu2 - 2 * mu3 + mu4)
    terms = s**2 - 2 * s * mu + mu2
    over_samples = within / n + pairs / (n * (n - 1))
    between = len(terms) * variance_of_mean(terms, clusters) - over_samples.mean()
    parts = between, within.mean(), pairs.mean()
    return Components(float(terms.mean()), *(max(0.0, float(part)) for part in parts))
