"""Posterior confidences: the concentration nu of mu ~ Beta(s nu, (1 - s) nu), fitted to counts.

Fit nu on other questions than it is used on: on training questions, with out-of-fold confidences.
Arguments and errors are described in :mod:`capcal_lib.applications`. Under a Beta a confidence of
0 or 1 excludes all other mu, so confidences are kept within [0.005, 0.995] here."""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError
from capcal_lib.metrics.validation import Floats, align, as_confidence, as_counts

CERTAIN = 0.005  # how near to 0 or 1 a confidence may come
SMALLEST_NU = 1e-4
LARGEST_NU = 1e6  # a spread below that of this nu is indistinguishable from none


def fit_concentration(confidence: ArrayLike, correct: ArrayLike, total: ArrayLike) -> float:
    """Fit the concentration nu, above 0, by the Beta-binomial likelihood of the counts. The higher
    nu, the closer confidences are to mu.

    Infinite if the counts spread no further around their confidences than the binomial does. One
    sample per question cannot show this spread: such questions are left out. `InputError` if there
    are no others.

    >>> round(fit_concentration([0.5] * 4, [0, 3, 7, 10], [10] * 4), 2)
    0.7
    >>> fit_concentration([0.5] * 4, [5, 4, 5, 6], [10] * 4)
    inf
    """
    from scipy.optimize import minimize_scalar  # slow to import
    from scipy.stats import betabinom, binom

    given = align(confidence=confidence, correct=correct, total=total)
    s, c, n = np.broadcast_arrays(as_confidence(given[0]), *as_counts(*given[1:], scored=1))
    several = n > 1
    if not several.any():
        raise InputError(
            "one sample per question cannot show how far mu lies from its confidence; give two or "
            "more samples for some questions"
        )
    rows = np.column_stack([np.clip(s, CERTAIN, 1 - CERTAIN), c, n])[several]
    (s, c, n), times = (columns.T for columns in np.unique(rows, axis=0, return_counts=True))

    def loss(log_nu: float) -> float:
        nu = np.exp(log_nu)
        return -float(times @ betabinom.logpmf(c, n, s * nu, (1 - s) * nu))

    grid = np.linspace(np.log(SMALLEST_NU), np.log(LARGEST_NU), 24)
    start = int(np.argmin([loss(log_nu) for log_nu in grid]))
    bounds = grid[np.clip([start - 1, start + 1], 0, grid.size - 1)]
    optimum = minimize_scalar(loss, bounds=bounds, method="bounded")
    spread_helps = -optimum.fun > times @ binom.logpmf(c, n, s) + 1e-9
    if spread_helps and start < grid.size - 1:
        return float(np.exp(optimum.x))
    return float("inf")


def draw_accuracies(
    correct: ArrayLike, total: ArrayLike, draws: int, *, rng: np.random.Generator
) -> Floats:
    """Draw expected accuracies of each question from the posterior of mu given its samples.

    Returns draws of shape (draws, n_questions). The Beta prior is fitted to these questions and has
    their mean. A draw fits the samples as well as the true mu does; unlike correct / total, it does
    not follow their noise. If questions do not differ, all draws equal the mean.

    >>> draw_accuracies([5, 4, 5, 6], [10] * 4, 2, rng=np.random.default_rng(0)).tolist()
    [[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5]]
    """
    c, n = as_counts(*align(correct=correct, total=total), scored=1)
    mean = np.full(len(c), (c / n).mean())
    nu = fit_concentration(mean, c, n)
    if np.isinf(nu):
        return np.tile(mean, (draws, 1))
    prior = np.clip(mean, CERTAIN, 1 - CERTAIN) * nu
    return rng.beta(prior + c, nu - prior + n - c, (draws, len(c)))
