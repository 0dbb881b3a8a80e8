"""How expected accuracy goes with what people find difficult."""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.metrics.validation import Floats, align, as_counts


def level_slope_terms(level: ArrayLike, correct: ArrayLike, total: ArrayLike) -> Floats:
    """Return terms whose mean is the change of expected accuracy from a level to the next.

    ``level``, (n_questions,), is a question's difficulty for people, higher where it is more
    difficult. The mean is the slope of mu_hat on level by least squares: negative where the model
    finds difficult what people do. Sampling noise of mu_hat does not bias it. The terms,
    (n_questions,), are those of its influence function, so that
    :func:`~capcal_lib.metrics.mean_interval` gives an interval over questions or groups of them.
    NaN where all questions have one level.

    >>> level_slope_terms([1, 1, 2, 2], [3, 4, 1, 2], [4, 4, 4, 4]).mean()
    np.float64(-0.5)
    """
    level, correct, total = align(level=level, correct=correct, total=total)
    hits, samples = as_counts(correct, total, scored=1)
    mu = hits / samples
    steps = level - level.mean()
    spread = np.mean(steps**2)
    if spread == 0:
        return np.full(len(mu), np.nan)
    slope = np.mean(steps * mu) / spread
    return slope + steps * (mu - mu.mean() - slope * steps) / spread
