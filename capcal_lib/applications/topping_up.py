"""Top up the samples of a data set until its scores are known well enough, without bias.

Every question has the same few samples, a pilot. Who looks at outcomes before going on may stop
where they happen to be good. So the questions are dealt into tenths, and how many samples a
question gets follows from the pilots of the other nine. It is thus independent of what its own say,
and the mean of the corrected terms is unbiased, as with a number fixed beforehand; no sample is set
aside for deciding. There is one look, at the pilot alone, so a second call comes to the same
numbers."""

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
    """Split the variance of a pilot's corrected capability Brier score into its parts, each without
    bias.

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
        raise InputError("variance over questions needs two questions at least; got 1")
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
    """Say how many samples each question needs so that the 95 % interval of every method's score,
    that of :func:`~capcal_lib.metrics.mean_interval`, reaches at most so far to either side.

    ``results`` are those of a pilot on one data set: ``correct`` and ``total``, at least four a
    question, then a column a method; ``clusters`` labels questions that belong together. At most
    ``most`` samples each, and never fewer than the pilot's; a score that would not be so precise
    were every mu known, because there are too few questions, asks for none more. The width comes
    out by chance too, with the relative error of a standard deviation, 1 in the root of twice the
    questions: that much narrower is aimed at. From pilots of 20 samples, what is asked for is
    reached nearly always where it is 1.1 times that with every mu known, or wider.

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
    """Return the least number of samples a question, of those that are allowed, with which the
    interval of a score reaches at most so far; the most where none is enough, and the fewest where
    none could be, were every mu known.

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
    """Return how far the interval of so many terms with this mean and variance reaches to the side
    where it reaches farther.
    """
    apart = np.resize([-1.0, 1.0], units)
    apart -= apart.mean()
    terms = estimate + apart * np.sqrt(variance) / apart.std(ddof=1)
    _, low, high = mean_interval(terms, bounds=(0, 1))
    return max(high - estimate, estimate - low)
