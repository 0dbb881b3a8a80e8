"""Capability-calibration metrics, from counts of correct samples.

Every score is the mean of one term per question; the ``*_terms`` functions return these terms, for
:func:`~capcal_lib.metrics.mean_interval` and :func:`~capcal_lib.metrics.compare`.

**Input.** One row a question, shape (n_questions,): ``confidence``, an estimate s of its expected
accuracy, in [0, 1]; ``correct`` and ``total``, its correct and its scored samples. Lists, arrays,
or pandas Series, which are aligned by their index; a single number stands for every row.

**Output.** A float, or an array of shape (n_questions,) in the order of the first Series. Brier
scores are better when lower. With ``corrected``, mu^2 is estimated without bias, which takes two
scored samples a question; the score is then unbiased for what infinitely many samples would give,
and may leave the range of the plug-in score: it may be negative.

**Errors.** :class:`~capcal_lib.errors.InputError` names the first row at fault: a confidence
outside [0, 1] or NaN, a question with too few scored samples, ``correct`` above ``total``, a count
that is not a whole number, empty input, lengths or indices that differ.

The scores are those of the paper, sections 3 and 4; the corrections are ours.
"""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.metrics.validation import Floats, as_counts, as_scored


def capability_brier(
    confidence: ArrayLike, correct: ArrayLike, total: ArrayLike, *, corrected: bool = False
) -> float:
    """Score confidences against expected accuracies: mean (s - mu_hat)^2, in [0, 1]; lower is
    better.

    mu_hat is noisy, so that the true mu itself scores mean mu(1 - mu)/total. ``corrected``
    subtracts mu_hat(1 - mu_hat)/(total - 1) from each term; the score then lies in [-1/4, 1].

    >>> capability_brier([0.5, 1.0], [2, 3], [4, 4])
    0.03125
    >>> round(capability_brier([0.5, 1.0], [2, 3], 4, corrected=True), 4)
    -0.0417
    """
    return float(capability_brier_terms(confidence, correct, total, corrected=corrected).mean())


def capability_brier_terms(
    confidence: ArrayLike, correct: ArrayLike, total: ArrayLike, *, corrected: bool = False
) -> Floats:
    """Return the terms whose mean is :func:`capability_brier`."""
    s, mu, samples = as_scored(confidence, correct, total, scored=1 + corrected)
    terms = (s - mu) ** 2
    if corrected:
        return terms - mu * (1 - mu) / (samples - 1)
    return terms


def expected_response_brier(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> float:
    """Score confidences against single samples: (s - z)^2, averaged over each question's samples
    and then over questions. Lower is better.

    z is 1 for a correct sample and 0 for any other. It is exactly :func:`capability_brier` plus
    :func:`correctness_variance` (theorem 2). Its terms:
    :func:`~capcal_lib.metrics.expected_response_loss`.

    >>> expected_response_brier([0.5, 1.0], [2, 3], [4, 4])
    0.25
    """
    s, mu, _ = as_scored(confidence, correct, total)
    return float((mu * (1 - s) ** 2 + (1 - mu) * s**2).mean())


def correctness_variance(correct: ArrayLike, total: ArrayLike, *, corrected: bool = False) -> float:
    """Return the mean variance of a sample's correctness within its question, mu_hat(1 - mu_hat),
    in [0, 1/4].

    It separates response from capability calibration, and is what Oracle RC (one sample's
    correctness as the confidence) scores in expectation. ``corrected``: c(n - c)/(n(n - 1)), in [0,
    1/2].

    >>> correctness_variance([2, 4], [4, 4])
    0.125
    >>> round(correctness_variance([2, 4], [4, 4], corrected=True), 4)
    0.1667
    """
    return float(correctness_variance_terms(correct, total, corrected=corrected).mean())


def correctness_variance_terms(
    correct: ArrayLike, total: ArrayLike, *, corrected: bool = False
) -> Floats:
    """Return the terms whose mean is :func:`correctness_variance`."""
    hits, samples = as_counts(correct, total, scored=1 + corrected)
    return hits / samples * ((samples - hits) / (samples - int(corrected)))


def uniform_baseline_brier(
    correct: ArrayLike, total: ArrayLike, *, corrected: bool = False
) -> float:
    """Return the expected capability Brier of confidences drawn from U(0, 1): mean 1/3 - mu_hat +
    mu_hat^2.

    A useful confidence scores lower. In [1/12, 1/3]; ``corrected``, in [-1/6, 1/3].

    >>> round(uniform_baseline_brier([2, 4], [4, 4]), 4)
    0.2083
    """
    return float(uniform_baseline_brier_terms(correct, total, corrected=corrected).mean())


def uniform_baseline_brier_terms(
    correct: ArrayLike, total: ArrayLike, *, corrected: bool = False
) -> Floats:
    """Return the terms whose mean is :func:`uniform_baseline_brier`."""
    # -mu + mu^2 is minus the variance, with or without the correction.
    return 1 / 3 - correctness_variance_terms(correct, total, corrected=corrected)


def soft_auroc(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> float:
    """Return the AUROC for targets that are fractions: how well confidences rank questions. Higher
    is better.

    Draw a question and a correct sample of it, in proportion to mu_hat, and another with an
    incorrect sample, in proportion to 1 - mu_hat: this is the chance that the first has the higher
    confidence, a tie counting one half. A constant has 0.5; mu_hat itself has less than 1, because
    a question can give both samples. NaN if no sample is correct, or if all are.

    >>> soft_auroc([0.9, 0.2], [4, 0], 4), soft_auroc(0.5, [4, 0], 4)
    (1.0, 0.5)
    """
    s, mu, _ = as_scored(confidence, correct, total)
    if mu.max() == 0 or mu.min() == 1:
        return float("nan")
    tie = np.unique(s, return_inverse=True)[1]
    right = np.bincount(tie, mu)
    wrong = np.bincount(tie, 1 - mu)
    below = np.cumsum(wrong) - wrong / 2
    return float(right @ below / (right.sum() * wrong.sum()))


def spearman(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> float:
    """Return the rank correlation of confidence and mu_hat, in [-1, 1]; ties share their mean rank.
    Higher is better.

    NaN if all confidences, or all mu_hat, are equal.

    >>> round(spearman([0.1, 0.5, 0.9, 0.9], [0, 1, 3, 4], [4, 4, 4, 4]), 4)
    0.9487
    """
    from scipy.stats import spearmanr  # slow to import

    s, mu, _ = as_scored(confidence, correct, total)
    if np.ptp(s) == 0 or np.ptp(mu) == 0:
        return float("nan")
    return float(spearmanr(s, mu).statistic)
