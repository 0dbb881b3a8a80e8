"""Posterior confidences: the concentration nu of mu ~ Beta(s nu, (1 - s) nu), fitted to counts.

Fit nu on other questions than those it is used on: training questions, with out-of-fold confidences. Arguments and
errors as at the head of :mod:`capcal_lib.applications`. Under a Beta a confidence of 0 or 1 excludes all other mu, so
here confidences are kept within [0.005, 0.995].
"""

from __future__ import annotations  # keeps ArrayLike short in help()

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.applications.passk import as_concentration, log_rising
from capcal_lib.metrics.intervals import Interval
from capcal_lib.metrics.validation import Floats, Ints, align, as_confidence, as_counts, check_share

CERTAIN = 0.005  # how near to 0 or 1 a confidence may come
SMALLEST, LARGEST = 1e-4, 1e6  # of nu; a spread below that of the largest is indistinguishable from none


class Calibration(NamedTuple):
    """A test of a posterior: its PIT values, (n_questions,), and the chance of a larger deviation from uniform."""

    pit: Floats
    p_value: float


def fit_concentration(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> float:
    """Fit nu, above 0, by the Beta-binomial likelihood of the counts. Higher says that confidences are closer to mu.

    Infinite where the counts spread no further around their confidences than the binomial does.

    >>> round(fit_concentration([0.5] * 4, [0, 3, 7, 10], [10] * 4), 2)
    0.7
    >>> fit_concentration([0.5] * 4, [5, 4, 5, 6], [10] * 4)
    inf
    """
    return _most_likely(_likelihood(confidence, correct, total))


def concentration_interval(
    confidence: ArrayLike, correct: ArrayLike, total: ArrayLike, *, level: float = 0.95
) -> Interval:
    """Return :func:`fit_concentration` with its profile likelihood interval; the high end may be infinite.

    It takes questions as independent, and the Beta as right.

    >>> [round(value, 2) for value in concentration_interval([0.5] * 4, [0, 3, 7, 10], [10] * 4)]
    [0.7, 0.1, 3.77]
    """
    from scipy.optimize import brentq
    from scipy.special import chdtri

    likelihood = _likelihood(confidence, correct, total)
    best = _most_likely(likelihood)
    floor = likelihood(best) - chdtri(1, 1 - check_share("level", level)) / 2

    def above(log_nu: float) -> float:
        return likelihood(float(np.exp(log_nu))) - floor

    middle, low, high = np.log(np.clip([best, SMALLEST, LARGEST], SMALLEST, LARGEST))
    lower = np.exp(brentq(above, low, middle)) if above(low) < 0 else 0.0
    upper = np.exp(brentq(above, middle, high)) if above(high) < 0 and middle < high else np.inf
    return Interval(best, float(lower), float(upper))


def calibration_test(
    confidence: ArrayLike,
    correct: ArrayLike,
    total: ArrayLike,
    *,
    concentration: float | ArrayLike | None = None,
    rng: np.random.Generator,
) -> Calibration:
    """Test whether counts look like draws from their posteriors, by the randomised probability integral transform.

    A question's value lies at random between P(count < c) and P(count <= c). Under calibrated posteriors these values
    are uniform on [0, 1]: a U-shaped histogram says that the posteriors are too narrow, a hump that they are too
    wide, a slope that confidences are too low or too high (Czado, Gneiting and Held, Biometrics 65, 2009). The p-value
    is that of a Kolmogorov-Smirnov test; where nu was fitted on the same counts, it is too large.

    >>> rng = np.random.default_rng(0)
    >>> correct = rng.binomial(20, rng.beta(1, 1, 500))
    >>> for nu in (2, 20):
    ...     print(f"{calibration_test([0.5] * 500, correct, [20] * 500, concentration=nu, rng=rng).p_value:.3f}")
    0.711
    0.000
    """
    from scipy.stats import kstest

    s, c, n = _rows(confidence, correct, total)
    nu = as_concentration(concentration, s.size)
    counts = np.arange(n.max() + 1)
    chances = np.exp(_log_chances(s[:, None], nu[:, None], np.minimum(counts, n[:, None]), n[:, None]))
    below = np.where(counts < c[:, None], chances, 0.0).sum(axis=1)
    pit = np.clip(below + rng.random(s.size) * chances[np.arange(s.size), c], 0, 1)
    return Calibration(pit, float(kstest(pit, "uniform").pvalue))


def _rows(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> tuple[Floats, Ints, Ints]:
    s, c, n = align(confidence=confidence, correct=correct, total=total)
    return np.clip(as_confidence(s), CERTAIN, 1 - CERTAIN), *as_counts(c, n, scored=1)


def _log_chances(s: Floats, nu: Floats | float, c: Ints, n: Ints) -> Floats:
    """Return the log of the Beta-binomial chance of c of n; of the binomial where nu is infinite."""
    from scipy.special import gammaln

    choices = gammaln(n + 1.0) - gammaln(c + 1.0) - gammaln(n - c + 1.0)
    finite = np.isfinite(nu)
    weight = np.where(finite, nu, 1.0)
    spread = log_rising(s * weight, c) + log_rising((1 - s) * weight, n - c) - log_rising(weight, n)
    return choices + np.where(finite, spread, c * np.log(s) + (n - c) * np.log1p(-s))


def _likelihood(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> Callable[[float], float]:
    """Return the log-likelihood of nu; equal rows are worked out once."""
    pairs, times = np.unique(np.column_stack(_rows(confidence, correct, total)), axis=0, return_counts=True)
    s, (c, n) = pairs[:, 0].astype(np.float64), pairs[:, 1:].T.astype(np.int64)
    return lambda nu: float(times @ _log_chances(s, nu, c, n))


def _most_likely(likelihood: Callable[[float], float]) -> float:
    from scipy.optimize import minimize_scalar

    grid = np.linspace(np.log(SMALLEST), np.log(LARGEST), 24)
    start = int(np.argmax([likelihood(float(nu)) for nu in np.exp(grid)]))
    bounds = grid[max(start - 1, 0)], grid[min(start + 1, grid.size - 1)]
    found = minimize_scalar(lambda log_nu: -likelihood(float(np.exp(log_nu))), bounds=bounds, method="bounded")
    spread_helps = -found.fun > likelihood(np.inf) + 1e-9
    return float(np.exp(found.x)) if spread_helps and start < grid.size - 1 else float("inf")
