"""Conformal prediction bands for a probe, and detection of questions out of its training distribution."""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
import numpy.typing as npt

from capcal_lib.errors import InputError
from capcal_lib.metrics.validation import Floats, align, check_share


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


class Familiarity:
    """Tell questions that lie far from the training questions: the probe was not trained for them.

    The distance is Mahalanobis', with the covariance of half of the training questions shrunk by Ledoit and Wolf; a
    question is far when it is farther away than a ``level`` share, between 0 and 1, of the other half. So about
    1 - level of new questions of the training kind are flagged, by construction.

    >>> rng = np.random.default_rng(0)
    >>> known = Familiarity().fit(rng.normal(size=(200, 3)), rng=rng)
    >>> known.far([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]]).tolist()
    [False, True]
    """

    def __init__(self, *, level: float = 0.95) -> None:
        self.level = check_share("level", level)

    def __repr__(self) -> str:
        return f"<Familiarity(level={self.level})>"

    def fit(self, features: npt.ArrayLike, *, rng: np.random.Generator) -> Familiarity:
        """Fit to the training questions' features, (n_questions, n_features), four questions or more."""
        from sklearn.covariance import LedoitWolf
        from sklearn.preprocessing import StandardScaler

        rows = np.asarray(features, np.float64)
        if rows.ndim != 2 or len(rows) < 4:
            raise InputError(f"four questions or more are needed, (n_questions, n_features); got shape {rows.shape}")
        order = rng.permutation(len(rows))
        fitted, held_out = rows[order[: len(rows) // 2]], rows[order[len(rows) // 2 :]]
        self._scaler = StandardScaler().fit(fitted)
        self._shape = LedoitWolf().fit(self._scaler.transform(fitted))
        self.limit = float(np.quantile(self.distance(held_out), self.level))
        return self

    def distance(self, features: npt.ArrayLike) -> Floats:
        """Return each question's squared Mahalanobis distance, (n_questions,); higher is farther."""
        return np.asarray(self._shape.mahalanobis(self._scaler.transform(np.asarray(features, np.float64))))

    def far(self, features: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Say of each question, (n_questions,), whether it is farther away than the limit."""
        return self.distance(features) > self.limit
