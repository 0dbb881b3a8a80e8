"""Recalibration: correct a confidence's level, learning it from other questions than those that it
is applied to.

Every question weighs the same. Input and errors are as in :mod:`capcal_lib.metrics.brier`.
"""

from __future__ import annotations  # keeps ArrayLike short in help()

from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from capcal_lib.errors import InputError, check_known
from capcal_lib.metrics.validation import Floats, as_confidence, as_scored, like

Recalibration = Literal["isotonic", "beta", "platt"]
PENALTY = 1e-4  # a trace, which keeps the optimum finite where confidences separate the questions


class Calibrator(BaseEstimator):  # type: ignore[misc]
    """Recalibrate confidences: learn from questions with counts, and apply to others.

    ``isotonic``: the best non-decreasing steps by squared error, joined by lines; ``platt``:
    sigmoid(a logit(s) + c); ``beta``: sigmoid(a log(s) - b log(1 - s) + c) with a and b at least 0,
    which bends each end separately. Isotonic needs the most questions, Platt the fewest. Platt and
    beta are fitted by cross-entropy against mu_hat. For these two, confidences are first drawn
    towards one half, since exactly 0 and 1 have no logit: s becomes (s m + 1/2)/(m + 1), where m is
    the square root of the number of questions learned from (the minimax estimate of a share).

    References: Niculescu-Mizil and Caruana, "Predicting good probabilities with supervised
    learning", ICML 2005; Kull, Silva Filho and Flach, "Beta calibration", AISTATS 2017.

    >>> calibrator = Calibrator("isotonic").fit([0.8, 0.9, 1.0], [1, 3, 5], 10)
    >>> calibrator.predict([0.0, 0.9, 0.95])
    array([0.1, 0.3, 0.4])
    """

    def __init__(self, method: Recalibration = "isotonic") -> None:
        self.method = method
        self._check_method()
        self.fitted_: Any = None
        self.weight_ = 0.0

    def _check_method(self) -> None:
        check_known("recalibration", self.method, get_args(Recalibration))

    def fit(self, confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> Self:
        """Learn from confidences and counts of questions, each of shape (n_questions,)."""
        from sklearn.isotonic import IsotonicRegression  # slow to import

        self._check_method()  # it may have been set since
        s, mu, _ = as_scored(confidence, correct, total)
        self.weight_ = float(np.sqrt(len(s)))
        if self.method == "isotonic":
            # Rounded: the fit is NaN at confidences that differ in their last bit.
            self.fitted_ = IsotonicRegression(out_of_bounds="clip").fit(s.round(12), mu)
        else:
            self.fitted_ = _fit_sigmoid(self._features(s), mu, increasing=self.method == "beta")
        return self

    def predict(self, confidence: ArrayLike) -> Floats:
        """Return recalibrated confidences, shape (n,), in [0, 1]; a Series for a Series."""
        if self.fitted_ is None:
            raise InputError("this calibrator is not fitted; call fit first")
        s = as_confidence(confidence)
        if self.method == "isotonic":
            return like(confidence, self.fitted_.predict(s))
        from scipy.special import expit  # slow to import

        return like(confidence, expit(self._features(s) @ self.fitted_))

    def _features(self, s: Floats) -> Floats:
        inside = (s * self.weight_ + 0.5) / (self.weight_ + 1)
        below = np.log(inside)
        above = -np.log1p(-inside)
        columns = [below, above] if self.method == "beta" else [below + above]
        return np.column_stack([*columns, np.ones(len(s))])


def _fit_sigmoid(features: Floats, mu: Floats, *, increasing: bool) -> Floats:
    """Return weights of the features, of which the last is constant, by cross-entropy."""
    from scipy.optimize import minimize  # slow to import
    from scipy.special import expit

    start = np.ones(features.shape[1])
    start[-1] = 0  # the constant, which is not drawn to 0

    def loss(weights: Floats) -> tuple[float, Floats]:
        value = features @ weights
        slopes = start * weights
        entropy = np.logaddexp(0, value) - mu * value
        gradient = features.T @ (expit(value) - mu) + PENALTY * slopes
        return float(entropy.sum() + PENALTY / 2 * slopes @ slopes), gradient

    bounds = [(0.0 if increasing and slope else None, None) for slope in start]
    options = {"maxiter": 10_000, "ftol": 1e-14, "gtol": 1e-8}
    optimum = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(optimum.x)
