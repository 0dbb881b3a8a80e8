"""Accuracy from a few graded answers, with confidences of all questions to help."""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.metrics.intervals import Interval, binomial_interval
from capcal_lib.metrics.validation import as_confidence, as_counts, check_share, same_length

FEW = 5  # right or wrong answers from which a confidence can be judged


def accuracy_from_labels(
    correct: ArrayLike, confidence: ArrayLike, others: ArrayLike, *, level: float = 0.95
) -> Interval:
    """Estimate an accuracy from one graded answer each to a few questions, and confidences of all.

    ``correct``, shape (n_labelled,), holds 1 for a right answer and 0 for a wrong one, of questions
    chosen at random; ``confidence`` their confidences, in the same order, and ``others``, shape
    (n_others,), those of questions like these without a label. The estimate is the mean
    label, moved by what the confidences of the others have above or below those of the labelled
    (prediction-powered inference), with a weight that leaves a useless confidence out. The
    residuals are those of a question that had no part in the weight, and the interval is Student's
    with as many degrees of freedom as questions carry their variance.

    With fewer than five right or five wrong answers nothing says what the confidence is worth: then
    the estimate is the mean label, with the interval of Clopper and Pearson, and ``few`` is True.
    So the interval covers at least 0.95 of the time, whatever the confidence: with 50 labels, at
    mean accuracies from 0.006 to 0.95.

    Raises `InputError` for what is neither 0 nor 1, confidences outside [0, 1], unequal lengths or
    none at all. References: Angelopoulos et al., "Prediction-powered inference", Science 382
    (2023); "PPI++" (arXiv 2311.01453), for the weight.

    >>> rng = np.random.default_rng(0)
    >>> mu = rng.beta(0.5, 0.5, 1000)
    >>> labels = rng.binomial(1, mu[:50])
    >>> found = accuracy_from_labels(labels, mu[:50], mu[50:])
    >>> alone = accuracy_from_labels(labels, [0.5] * 50, mu[50:])
    >>> [[round(value, 2) for value in each[:3]] for each in (found, alone)]
    [[0.53, 0.43, 0.63], [0.58, 0.44, 0.72]]
    """
    from scipy.special import stdtrit  # slow to import

    right, _ = as_counts(correct, 1)
    s = as_confidence(confidence)
    rest = as_confidence(others)
    same_length(correct=right, confidence=s)
    check_share("level", level)
    n = len(right)
    hits = int(right.sum())
    if min(hits, n - hits) < FEW:
        low, high = binomial_interval(hits, n, method="clopper-pearson", level=level)[0]
        return Interval(hits / n, float(low), float(high), few=True)
    deviation = s - s.mean()
    spread = float(np.append(s, rest).var(ddof=1))
    covariance = float(deviation @ right) / (n - 1)
    weight = covariance / max(spread, 1e-12) / (1 + n / len(rest))
    estimate = right.mean() + weight * (rest.mean() - s.mean())
    # Each residual without the pull of its own question on the line.
    pull = 1 / n + deviation**2 / max(float(deviation @ deviation), 1e-12)
    residuals = (right - right.mean() - weight * deviation) / (1 - np.minimum(pull, 0.9))
    squares = residuals**2
    error = np.sqrt(squares.sum() / n**2 + weight**2 * spread / len(rest))
    carriers = squares.sum() ** 2 / max(float((squares**2).sum()), 1e-300)
    reach = error * stdtrit(min(n - 2, max(1.0, carriers)), (1 + level) / 2)
    return Interval(
        float(estimate),
        max(0.0, float(estimate - reach)),
        min(1.0, float(estimate + reach)),
    )
