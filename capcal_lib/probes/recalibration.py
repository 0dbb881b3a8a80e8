"""Recalibration: turn a confidence into a better one, learned from other questions than those it is applied to."""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError, unknown
from capcal_lib.metrics.reliability import isotonic_fit
from capcal_lib.metrics.validation import Floats, Ints, as_confidence, as_counts, as_numbers, check_int, same_length
from capcal_lib.probes import LinearProbe

Recalibration = Literal["isotonic", "logistic", "temperature"]
Map = Callable[[ArrayLike], Floats]
EDGE = 1e-6  # confidences of 0 and 1 have no logit


def recalibration(method: Recalibration, confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> Map:
    """Learn a map from confidences to expected accuracies. Every question weighs the same.

    Parameters
    ----------
    method : {"isotonic", "logistic", "temperature"}
        ``isotonic``: the best non-decreasing steps by squared error, joined by lines; ``logistic``: Platt's
        sigmoid(a + b logit(s)) by cross-entropy; ``temperature``: sigmoid(logit(s) / T), which keeps 0.5 where it is
        and cannot turn an order round.
    confidence : array-like of shape (n_questions,)
        Estimates s of the expected accuracy, in [0, 1].
    correct, total : array-like of shape (n_questions,)
        Correct and scored samples of each question, at least one.

    Returns
    -------
    callable
        Takes confidences of shape (n,), in [0, 1], and returns as many.

    Raises
    ------
    InputError
        For an unknown method, and as at the head of :mod:`capcal_lib.metrics`.

    References
    ----------
    Niculescu-Mizil and Caruana, "Predicting good probabilities with supervised learning", ICML 2005; Guo et al., "On
    calibration of modern neural networks", ICML 2017.

    Examples
    --------
    >>> better = recalibration("isotonic", [0.8, 0.9, 1.0], [1, 3, 5], [10, 10, 10])
    >>> better([0.0, 0.9, 0.95])
    array([0.1, 0.3, 0.4])
    """
    if method not in get_args(Recalibration):
        raise unknown("recalibration", method, get_args(Recalibration))
    s = as_confidence(confidence)
    hits, samples = as_counts(correct, total, scored=1)
    same_length(confidence=s, correct=hits)
    if method == "isotonic":
        knots = np.argsort(s, kind="stable")
        fitted = isotonic_fit(s, hits / samples, np.ones(len(s)))
        return lambda given: np.interp(as_confidence(given), s[knots], fitted[knots])
    if method == "logistic":
        # A trace of a penalty keeps the optimum finite where the confidences separate the questions.
        probe = LinearProbe(weight_decay=1e-4, standardize=True).fit(_logit(s)[:, None], hits, samples)
        return lambda given: probe.predict(_logit(as_confidence(given))[:, None])
    slope = _slope(_logit(s), hits / samples)
    return lambda given: _sigmoid(slope * _logit(as_confidence(given)))


def cross_fitted(
    confidence: ArrayLike,
    correct: ArrayLike,
    total: ArrayLike,
    *,
    method: Recalibration,
    rng: np.random.Generator,
    folds: int = 5,
    groups: ArrayLike | None = None,
) -> Floats:
    """Recalibrate every confidence by a map that was learned without its question.

    The questions are dealt into folds at random; each fold is recalibrated by what the others teach.

    Parameters
    ----------
    confidence : array-like of shape (n_questions,)
        Estimates s of the expected accuracy, in [0, 1]; NaN is missing, teaches nothing and stays missing.
    correct, total : array-like of shape (n_questions,)
        Correct and scored samples of each question; a question without any teaches nothing.
    method, folds
        See :func:`recalibration`; at least two folds, and no more are made than there are groups.
    rng : numpy.random.Generator
        Deals the questions.
    groups : array-like of shape (n_questions,), optional
        Labels of questions that belong together, such as MMLU subjects: a group stays in one fold.

    Returns
    -------
    ndarray of shape (n_questions,)
        In [0, 1]; NaN where the confidence is.

    Raises
    ------
    InputError
        For fewer than two groups or a fold that nothing is left to teach for, and as in :func:`recalibration`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> cross_fitted([0.9] * 4, [2, 2, 2, 2], [4, 4, 4, 4], method="isotonic", rng=rng)
    array([0.5, 0.5, 0.5, 0.5])
    """
    s = as_numbers("confidence", confidence)
    hits, samples = as_counts(correct, total)
    same_length(confidence=s, correct=hits)
    fold = _folds(len(s), check_int("folds", folds, least=2), rng, groups)
    there = ~np.isnan(s)
    teaches = there & (samples > 0)
    result = np.full(len(s), np.nan)
    for each in np.unique(fold[there]):
        others, own = teaches & (fold != each), there & (fold == each)
        if not others.any():
            raise InputError("recalibration needs scored questions with a confidence in two groups at least")
        result[own] = recalibration(method, s[others], hits[others], samples[others])(s[own])
    return result


def _folds(questions: int, folds: int, rng: np.random.Generator, groups: ArrayLike | None) -> Ints:
    """Return the fold of each question: groups are shuffled and dealt like cards."""
    import pandas as pd  # slow to import

    labels = np.arange(questions) if groups is None else np.asarray(groups)
    same_length(confidence=np.empty(questions), groups=labels)
    codes, names = pd.factorize(labels)
    if len(names) < 2:
        raise InputError(f"recalibration needs two groups of questions at least; got {len(names)}")
    fold: Ints = rng.permutation(len(names)) % folds
    return fold[codes]


def _slope(logits: Floats, mu: Floats) -> float:
    """Return 1 / T, the slope through the origin with the least cross-entropy."""
    from scipy.optimize import minimize_scalar  # slow to import

    def loss(log_slope: float) -> float:
        scaled = np.exp(log_slope) * logits
        return float(np.mean(np.logaddexp(0, scaled) - mu * scaled))

    return float(np.exp(minimize_scalar(loss, bounds=(-8, 8), method="bounded").x))


def _logit(s: Floats) -> Floats:
    inside = np.clip(s, EDGE, 1 - EDGE)
    return np.log(inside) - np.log1p(-inside)


def _sigmoid(logits: Floats) -> Floats:
    from scipy.special import expit

    return expit(logits)
