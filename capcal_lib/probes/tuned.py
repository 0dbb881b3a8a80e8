"""The tuned linear probe: its weight decay is chosen by cross-validation."""

from __future__ import annotations  # keeps ArrayLike short in help()

from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.model_selection import KFold

from capcal_lib.probes.linear import LinearProbe, fit_path, training_rows

FOLDS = 5
DECAYS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


class TunedProbe(LinearProbe):
    """A standardised linear probe with the weight decay that predicts held-out training questions
    best.

    For each decay in ``DECAYS``, five probes predict the five folds of the questions, each fitted
    to the other folds. The decay with the smallest squared error against mu_hat, the capability
    Brier score itself, is chosen, and the probe is fitted to all questions with it. At the largest
    decay a probe predicts nearly the training mean. ``seed`` decides the folds.

    The paper fixes the decay at 0.01 and stops early, on validation data. With a few hundred
    questions and about a thousand features, the optimum at that decay fits noise, so here the decay
    does the work of early stopping.

    ``weight_decay_`` is the chosen decay. ``coef_`` and ``intercept_`` are as in `LinearProbe`, and
    ``out_of_fold_`` and ``concentration_`` as in `Probe`.

    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=(100, 50))
    >>> TunedProbe().fit(noise, rng.binomial(10, 0.5, 100), np.full(100, 10)).weight_decay_
    100.0
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, features: npt.ArrayLike, correct: npt.ArrayLike, total: npt.ArrayLike) -> Self:
        """Fit to features (n_questions, n_features) and counts (n_questions,), two rows or more."""
        matrix, hits, samples = training_rows(features, correct, total, least=2)
        mu_hat = hits / samples
        left_out = np.empty((len(DECAYS), len(matrix)))
        folds = KFold(min(FOLDS, len(matrix)), shuffle=True, random_state=self.seed)
        for others, fold in folds.split(matrix):
            path = fit_path(matrix[others], mu_hat[others], DECAYS[::-1], standardize=True)
            left_out[::-1, fold] = [expit(matrix[fold] @ coef + bias) for coef, bias in path]
        best = int(np.mean((left_out - mu_hat) ** 2, axis=1).argmin())
        self.weight_decay_ = DECAYS[best]
        [(self.coef_, self.intercept_)] = fit_path(
            matrix, mu_hat, [self.weight_decay_], standardize=True
        )
        self.out_of_fold_ = left_out[best]
        self.counts_ = hits, samples
        return self
