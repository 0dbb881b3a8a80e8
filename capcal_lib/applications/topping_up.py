"""Top up the samples of a data set until its scores are known well enough, without bias.

Every question starts with the same few samples, a pilot. If you look at outcomes before you decide
to go on, you may stop because they happen to be good. So the questions are dealt into tenths, and
the number of samples of a question follows from the pilots of the other nine tenths. It does not
depend on the question's own samples, so the mean of the corrected terms is unbiased, as with a
number fixed beforehand, and no sample is set aside. Only the pilot is looked at, once, so a second
call gives the same numbers."""

from __future__ import annotations  # keeps ArrayLike short in help()

from typing import NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError
from capcal_lib.metrics import mean_interval
from capcal_lib.metrics import validation as check
from capcal_lib.metrics.intervals import variance_of_mean

QUESTION_FOLDS = 10


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


def samples_needed(
    results: pd.DataFrame,
    *,
    half_width: float,
    most: int,
    clusters: pd.Series[str] | None = None,
) -> pd.Series[int]:
    """Return how many samples each question needs so that the 95 % interval of every method's
    score (:func:`~capcal_lib.metrics.mean_interval`) reaches at most so far to either side.

    ``results`` come from a pilot on one data set: ``correct`` and ``total``, at least four per
    question, then one column per method; ``clusters`` labels questions that belong together. A
    question gets at most ``most`` samples, and never fewer than in the pilot. If there are too few
    questions for the precision, even with every mu known, the score asks for no more samples. The
    width varies by chance too, with a relative error of 1 in the square root of twice the number of
    questions, so the aim is narrower by that much. From pilots of 20 samples, the precision is
    nearly always reached if it is at least 1.1 times the half-width with every mu known.

    >>> rng = np.random.default_rng(0)
    >>> mu = rng.beta(0.5, 0.5, 400)
    >>> pilot = pd.DataFrame({"correct": rng.binomial(20, mu), "total": 20, "mine": 0.9 * mu})
    >>> samples_needed(pilot, half_width=0.5, most=100).unique().tolist()
    [20]
    """
    fold = np.array([crc32(str(name).encode()) % QUESTION_FOLDS for name in results.index])
    total = results["total"]
    fewest = int(total.max())
    needed = pd.Series(fewest, results.index)
    for method in results.columns.drop(["correct", "total"]):
        scored = (total >= 4) & results[method].notna()
        labels = (results.index.to_series() if clusters is None else clusters)[scored]
        # As many units, and as large ones, as the interval will have.
        sizes = labels.value_counts().to_numpy()
        units = round(len(labels) ** 2 / max(1, (sizes**2).sum()))
        if units < 2:
            continue
        share = units / len(labels)
        for part in range(QUESTION_FOLDS):
            pilot = results[scored & (fold != part)]  # without those that it decides about
            if len(pilot) < 2:
                continue
            noise = score_components(
                pilot[method], pilot["correct"], pilot["total"], clusters=labels[pilot.index]
            )
            enough = _enough(noise, half_width, range(fewest, max(fewest, most) + 1), units, share)
            rows = fold == part
            needed[rows] = needed[rows].clip(enough)
    return needed


def _enough(noise: Components, half_width: float, allowed: range, units: int, share: float) -> int:
    """Return the smallest allowed number of samples per question with which the interval of a score
    reaches at most so far; the largest if none is enough, and the smallest if none could be enough
    even with every mu known.

    The score is a mean over so many ``units``, each of which has the variance of a question's term
    times ``share``."""
    error = half_width / np.sqrt(2 * units)
    if _reach(noise.estimate, share * noise.between, units) > half_width + error:
        return allowed[0]
    for samples in allowed[:-1]:
        if _reach(noise.estimate, share * noise.variance(samples), units) <= half_width - error:
            return samples
    return allowed[-1]


def _reach(estimate: float, variance: float, units: int) -> float:
    """Return the longer half of the interval of so many terms with this mean and variance."""
    apart = np.resize([-1.0, 1.0], units)
    apart -= apart.mean()
    terms = estimate + apart * np.sqrt(variance) / apart.std(ddof=1)
    _, low, high = mean_interval(terms, bounds=(0, 1))
    return max(high - estimate, estimate - low)
