"""How expected accuracy goes with what people find difficult."""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError
from capcal_lib.metrics.intervals import Interval, mean_interval
from capcal_lib.metrics.validation import align, as_counts


def level_slope(
    level: ArrayLike,
    correct: ArrayLike,
    total: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
) -> Interval:
    """Return by how much expected accuracy changes from a level to the next, with its interval.

    ``level``, (n_questions,), is a question's difficulty for people, higher where it is more
    difficult. The estimate is the slope of mu_hat on level by least squares: negative where the
    model finds difficult what people do, 0 where levels say nothing of it. The noise of mu_hat does
    not bias it. The interval is that of :func:`~capcal_lib.metrics.mean_interval` of the terms of
    the slope's influence function. `InputError` where all questions have one level.

    >>> level_slope([1, 1, 2, 2], [3, 4, 1, 2], [4, 4, 4, 4]).estimate
    -0.5
    """
    level, correct, total = align(level=level, correct=correct, total=total)
    hits, samples = as_counts(correct, total, scored=1)
    mu = hits / samples
    steps = level - level.mean()
    spread = np.mean(steps**2)
    if spread == 0:
        raise InputError("all questions have one level; a slope needs two")
    slope = np.mean(steps * mu) / spread
    terms = slope + steps * (mu - mu.mean() - slope * steps) / spread
    steepest = np.abs(steps).mean() / 2 / spread  # with mu 1 below the mean level and 0 above
    return mean_interval(terms, clusters=clusters, bounds=(-steepest, steepest))
