"""Conformal prediction bands for a probe."""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
import numpy.typing as npt

from capcal_lib.metrics.validation import align, check_share


def conformal_half_width(predicted: npt.ArrayLike, observed: npt.ArrayLike, *, level: float = 0.9) -> float:
    """Return the half-width of a split-conformal band from questions that the probe has not seen.

    If a new question comes from the same distribution as these, its mu_hat lies within the band with a probability
    of at least ``level``, whatever the probe and the distribution are: on average over questions, not for each
    kind of question. The promise is on mu_hat of as many samples as ``observed`` has. Its binomial noise is in the
    width, so the band is wider than one for mu would be. For questions of another kind there is no promise.

    ``predicted`` and ``observed``, (n_questions,) in [0, 1], are what the probe says of the calibration questions, and
    their mu_hat. The result is 1, all of the unit interval, where these are too few for the level.

    >>> conformal_half_width([0.5] * 9, [0.5, 0.6, 0.7, 0.8, 0.9, 0.4, 0.3, 0.2, 0.1], level=0.5)
    0.2
    """
    s, mu = align(predicted=predicted, observed=observed)
    rank = int(np.ceil((len(s) + 1) * check_share("level", level)))
    return 1.0 if rank > len(s) else round(float(np.sort(np.abs(s - mu))[rank - 1]), 12)
