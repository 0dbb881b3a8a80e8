"""Recalibration: turn a confidence into a better one, learned from other questions than those it is
applied to.

Every question weighs the same. Input and errors are those of :mod:`capcal_lib.metrics.brier`.
"""

from __future__ import annotations  # keeps ArrayLike short in help()

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError, unknown
from capcal_lib.metrics.validation import (
    Floats,
    align,
    as_confidence,
    as_counts,
    as_scored,
    check_int,
    same_length,
)

Recalibration = Literal["isotonic", "logistic"]
EDGE = 1e-6  # confidences of 0 and 1 have no logit


def recalibration(
    method: Recalibration, confidence: ArrayLike, correct: ArrayLike, total: ArrayLike
) -> Callable[[ArrayLike], Floats]:
    """Learn a function from confidences, shape (n,), to expected accuracies, shape (n,).

    ``isotonic``: the best non-decreasing steps by squared error, joined by lines; ``logistic``:
    Platt's sigmoid(a + b logit(s)) by cross-entropy.

    References: Niculescu-Mizil and Caruana, "Predicting good probabilities with supervised
    learning", ICML 2005.

    >>> better = recalibration("isotonic", [0.8, 0.9, 1.0], [1, 3, 5], 10)
    >>> better([0.0, 0.9, 0.95])
    array([0.1, 0.3, 0.4])
    """
    from scipy.special import expit  # slow to import
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression

    if method not in get_args(Recalibration):
        raise unknown("recalibration", method, get_args(Recalibration))
    s, mu, _ = as_scored(confidence, correct, total)
    if method == "isotonic":
        # Rounded: the fit is NaN at confidences that differ in their last bit.
        steps = IsotonicRegression(out_of_bounds="clip").fit(s.round(12), mu)
        return lambda given: steps.predict(as_confidence(given))
    # A trace of a penalty keeps the optimum finite where the confidences separate the questions.
    model = LogisticRegression(C=1e4, tol=1e-8, max_iter=10_000)
    model.fit(
        np.tile(_logit(s), (2, 1)),
        np.repeat([1, 0], len(s)),
        sample_weight=np.concatenate([mu, 1 - mu]),
    )
    return lambda given: expit(
        model.intercept_ + model.coef_[0] * _logit(as_confidence(given))[:, 0]
    )


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
    """Recalibrate every confidence by a function that was learned without its question, see
    :func:`recalibration`.

    The questions are dealt into folds at random, and each fold is recalibrated by what the others
    teach. ``groups`` labels questions that belong together, such as MMLU subjects: a group stays in
    one fold. A confidence of NaN is missing, teaches nothing and stays NaN; a question without
    scored samples teaches nothing. Fewer than two folds or groups are refused, and a fold for which
    nothing is left to learn from.

    >>> cross_fitted([0.9] * 4, [2, 2, 2, 2], 4, method="isotonic", rng=np.random.default_rng(0))
    array([0.5, 0.5, 0.5, 0.5])
    """
    from pandas import factorize  # slow to import
    from sklearn.model_selection import GroupKFold

    s, correct, total = align(confidence=confidence, correct=correct, total=total)
    hits, samples = as_counts(correct, total)
    labels = np.arange(len(s)) if groups is None else factorize(np.asarray(groups))[0]
    same_length(confidence=s, groups=labels)
    at_most, there = len(np.unique(labels)), ~np.isnan(s)
    if at_most < 2:
        raise InputError(f"recalibration needs two groups of questions at least; got {at_most}")
    folds = min(check_int("folds", folds, least=2), at_most)
    result = np.full(len(s), np.nan)
    splits = GroupKFold(folds, shuffle=True, random_state=int(rng.integers(2**31))).split(
        s, groups=labels
    )
    for learn, apply in splits:
        learn, apply = learn[there[learn] & (samples[learn] > 0)], apply[there[apply]]
        if not len(apply):
            continue
        if not len(learn):
            raise InputError(
                "recalibration needs scored questions with a confidence in two groups at least"
            )
        result[apply] = recalibration(method, s[learn], hits[learn], samples[learn])(s[apply])
    return result


def _logit(s: Floats) -> Floats:
    """Return logits as a column, shape (n, 1)."""
    from scipy.special import logit  # slow to import

    return logit(np.clip(s, EDGE, 1 - EDGE))[:, None]
