"""Capability-calibration metrics, from counts of correct samples.

Every score is the mean of one term per question; the ``*_terms`` functions return these terms, shape
(n_questions,), for bootstrap intervals and paired differences (:mod:`capcal_lib.metrics.intervals`).

All of them take ``correct`` and ``total``, the correct and the scored samples of each question, and most
take ``confidence``, an estimate of each question's expected accuracy in [0, 1]. Lists, arrays and
pandas Series will do. An :class:`~capcal_lib.errors.InputError` that names the first row at fault is
raised for a confidence outside [0, 1] or NaN, a question with no scored sample (a corrected score needs
two), ``correct`` above ``total``, a count that is not a whole number, empty input and lengths that differ.
"""

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.metrics.validation import Floats, as_confidence, as_counts, as_expected_accuracy, same_length


def _confidence_and_accuracy(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> tuple[Floats, Floats]:
    s, mu = as_confidence(confidence), as_expected_accuracy(correct, total)
    same_length(confidence=s, correct=mu)
    return s, mu


def capability_brier(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike, *, corrected: bool = False) -> float:
    """Score confidences against expected accuracies: mean (s - mu_hat)^2. Lower is better.

    With finitely many samples, mu_hat is noisy and even the true mu scores mean mu(1 - mu)/total.
    The corrected score takes this off and is unbiased for mean (s - mu)^2, so it may fall below zero.

    Parameters
    ----------
    confidence : array-like of shape (n_questions,)
        Estimates s of the expected accuracy, in [0, 1].
    correct, total : array-like of shape (n_questions,)
        Correct and scored samples of each question.
    corrected : bool, default=False
        Subtract mu_hat(1 - mu_hat)/(total - 1) from each question's term; needs two scored samples.

    Returns
    -------
    float
        In [0, 1]; corrected, in [-1/4, 1].

    Raises
    ------
    InputError
        See the head of the module.

    References
    ----------
    The paper, sections 3.1 and 4.1; the correction is ours.

    Examples
    --------
    >>> capability_brier([0.5, 1.0], [2, 3], [4, 4])
    0.03125
    >>> capability_brier([0.5, 1.0], [2, 3], [4, 4], corrected=True)
    -0.041666666666666664
    """
    return float(capability_brier_terms(confidence, correct, total, corrected=corrected).mean())


def capability_brier_terms(
    confidence: ArrayLike, correct: ArrayLike, total: ArrayLike, *, corrected: bool = False
) -> Floats:
    """Return the terms, shape (n_questions,), whose mean is :func:`capability_brier`.

    >>> capability_brier_terms([0.5, 1.0], [2, 3], [4, 4])
    array([0.    , 0.0625])
    """
    s, mu = _confidence_and_accuracy(confidence, correct, total)
    terms = (s - mu) ** 2
    if corrected:
        _, samples = as_counts(correct, total, scored=2)
        terms -= mu * (1 - mu) / (samples - 1)
    return terms


def expected_response_brier(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> float:
    """Score confidences against single samples: mean over questions of mean over samples (s - z)^2.

    z is 1 for a correct sample and 0 for any other. Lower is better. On the same counts it equals
    :func:`capability_brier` plus :func:`correctness_variance`, exactly.

    Parameters
    ----------
    confidence : array-like of shape (n_questions,)
        Estimates s of the expected accuracy, in [0, 1].
    correct, total : array-like of shape (n_questions,)
        Correct and scored samples of each question.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        See the head of the module.

    References
    ----------
    The paper, section 3.2, theorem 2.

    Examples
    --------
    >>> expected_response_brier([0.5, 1.0], [2, 3], [4, 4])
    0.25
    """
    return float(expected_response_brier_terms(confidence, correct, total).mean())


def expected_response_brier_terms(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> Floats:
    """Return the terms, shape (n_questions,), whose mean is :func:`expected_response_brier`.

    >>> expected_response_brier_terms([0.5, 1.0], [2, 3], [4, 4])
    array([0.25, 0.25])
    """
    s, mu = _confidence_and_accuracy(confidence, correct, total)
    return mu * (1 - s) ** 2 + (1 - mu) * s**2


def correctness_variance(correct: ArrayLike, total: ArrayLike, *, corrected: bool = False) -> float:
    """Return the mean variance of a sample's correctness within its question.

    It is what separates response from capability calibration, and what Oracle RC (one sample's
    correctness as the confidence) scores in expectation.

    Parameters
    ----------
    correct, total : array-like of shape (n_questions,)
        Correct and scored samples of each question.
    corrected : bool, default=False
        Use the unbiased c(n - c)/(n(n - 1)) in place of mu_hat(1 - mu_hat); needs two scored samples.

    Returns
    -------
    float
        In [0, 1/4]; corrected, in [0, 1/2].

    Raises
    ------
    InputError
        See the head of the module.

    References
    ----------
    The paper, section 3.2, theorem 2.

    Examples
    --------
    >>> correctness_variance([2, 4], [4, 4])
    0.125
    >>> correctness_variance([2, 4], [4, 4], corrected=True)
    0.16666666666666666
    """
    return float(correctness_variance_terms(correct, total, corrected=corrected).mean())


def correctness_variance_terms(correct: ArrayLike, total: ArrayLike, *, corrected: bool = False) -> Floats:
    """Return the terms, shape (n_questions,), whose mean is :func:`correctness_variance`.

    >>> correctness_variance_terms([2, 4], [4, 4])
    array([0.25, 0.  ])
    """
    mu = as_expected_accuracy(correct, total)
    if not corrected:
        return mu * (1 - mu)
    hits, samples = as_counts(correct, total, scored=2)
    return mu * ((samples - hits) / (samples - 1))


def uniform_baseline_brier(correct: ArrayLike, total: ArrayLike, *, corrected: bool = False) -> float:
    """Return the expected capability Brier of confidences drawn from U(0, 1): mean 1/3 - mu_hat + mu_hat^2.

    A useful confidence scores lower.

    Parameters
    ----------
    correct, total : array-like of shape (n_questions,)
        Correct and scored samples of each question.
    corrected : bool, default=False
        Estimate mu^2 without bias by c(c - 1)/(n(n - 1)); needs two scored samples.

    Returns
    -------
    float
        In [1/12, 1/3]; corrected, in [-1/6, 1/3].

    Raises
    ------
    InputError
        See the head of the module.

    References
    ----------
    The paper, section 4.2 and its appendix on confidence estimators; the correction is ours.

    Examples
    --------
    >>> round(uniform_baseline_brier([2, 4], [4, 4]), 4)
    0.2083
    """
    return float(uniform_baseline_brier_terms(correct, total, corrected=corrected).mean())


def uniform_baseline_brier_terms(correct: ArrayLike, total: ArrayLike, *, corrected: bool = False) -> Floats:
    """Return the terms, shape (n_questions,), whose mean is :func:`uniform_baseline_brier`.

    >>> uniform_baseline_brier_terms([2, 4], [4, 4]).round(4)
    array([0.0833, 0.3333])
    """
    # -mu + mu^2 is minus the variance, with or without the correction.
    return 1 / 3 - correctness_variance_terms(correct, total, corrected=corrected)


def noise_floor(correct: ArrayLike, total: ArrayLike) -> float:
    """Return what the true mu would score by the plug-in capability Brier: mean mu(1 - mu)/total.

    Plug-in scores at or below it cannot be told from perfect. mu(1 - mu) is estimated without bias.

    Parameters
    ----------
    correct, total : array-like of shape (n_questions,)
        Correct and scored samples of each question, two scored ones at least.

    Returns
    -------
    float
        In [0, 1/4].

    Raises
    ------
    InputError
        See the head of the module.

    Examples
    --------
    >>> round(noise_floor([2, 4], [4, 4]), 4)
    0.0417
    """
    _, samples = as_counts(correct, total)
    return float((correctness_variance_terms(correct, total, corrected=True) / samples).mean())


def null_std(correct: ArrayLike, total: ArrayLike) -> float:
    """Return the standard deviation of the corrected capability Brier of the true mu, over draws of the samples.

    Its mean is 0, so a corrected score within about two of these of 0 cannot be told from perfect. The corrected
    term of a question is the mean of (mu - z)(mu - z') over pairs of its samples z and z', whose variance is
    2 (mu(1 - mu))^2 / (total (total - 1)); (mu(1 - mu))^2 is estimated without bias where there are four samples.

    Parameters
    ----------
    correct, total : array-like of shape (n_questions,)
        Correct and scored samples of each question, two scored ones at least.

    Returns
    -------
    float
        At least 0; smaller with more questions and with more samples.

    Raises
    ------
    InputError
        See the head of the module.

    Examples
    --------
    >>> round(null_std([50, 100], [100, 100]), 5)
    0.00179
    """
    variance = correctness_variance_terms(correct, total, corrected=True)
    c, n = as_counts(correct, total, scored=2)
    four = n >= 4
    squared = variance**2
    pairs = c[four] * (c[four] - 1) * (n - c)[four] * (n - c - 1)[four]
    squared[four] = pairs / (n[four] * (n[four] - 1) * (n[four] - 2) * (n[four] - 3))
    return float(np.sqrt((2 * squared / (n * (n - 1))).sum()) / len(n))


def soft_auroc(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> float:
    """Return how likely a correct sample's question has the higher confidence than an incorrect sample's.

    Draw a question and a correct sample of it, in proportion to mu_hat, and another with an incorrect sample, in
    proportion to 1 - mu_hat: this is the chance that the first question has the higher confidence, a tie counting
    one half. It is the AUROC for targets that are fractions. Higher is better; a constant confidence has 0.5, and
    mu_hat itself has less than 1, because a question can give both samples.

    Parameters
    ----------
    confidence : array-like of shape (n_questions,)
        Estimates s of the expected accuracy, in [0, 1].
    correct, total : array-like of shape (n_questions,)
        Correct and scored samples of each question.

    Returns
    -------
    float
        In [0, 1]; NaN where no sample is correct, or all are.

    Raises
    ------
    InputError
        See the head of the module.

    Examples
    --------
    >>> soft_auroc([0.9, 0.2], [4, 0], [4, 4]), soft_auroc([0.5, 0.5], [4, 0], [4, 4])
    (1.0, 0.5)
    """
    s, mu = _confidence_and_accuracy(confidence, correct, total)
    _, group = np.unique(s, return_inverse=True)  # confidences in rising order, equal ones together
    right, wrong = np.bincount(group, weights=mu), np.bincount(group, weights=1 - mu)
    pairs = right.sum() * wrong.sum()
    if pairs == 0:
        return float("nan")
    below = np.cumsum(wrong) - wrong
    return float((right * (below + wrong / 2)).sum() / pairs)


def spearman(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> float:
    """Return the rank correlation of confidence and mu_hat; ties share their mean rank. Higher is better.

    Parameters
    ----------
    confidence : array-like of shape (n_questions,)
        Estimates s of the expected accuracy, in [0, 1].
    correct, total : array-like of shape (n_questions,)
        Correct and scored samples of each question.

    Returns
    -------
    float
        In [-1, 1]; NaN where either side has a single value, so that no ranking exists.

    Raises
    ------
    InputError
        See the head of the module.

    Examples
    --------
    >>> round(spearman([0.1, 0.5, 0.9, 0.9], [0, 1, 3, 4], [4, 4, 4, 4]), 4)
    0.9487
    """
    from scipy.stats import spearmanr  # slow to import

    s, mu = _confidence_and_accuracy(confidence, correct, total)
    if np.ptp(s) == 0 or np.ptp(mu) == 0:
        return float("nan")
    return float(spearmanr(s, mu).statistic)
