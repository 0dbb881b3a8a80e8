"""The tuned linear probe: its weight decay is chosen by cross-validation."""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
import numpy.typing as npt

from capcal_lib.metrics.validation import Floats
from capcal_lib.probes.estimator import Probe
from capcal_lib.probes.linear import (
    CURVATURE,
    LinearProbe,
    Matrix,
    minimise,
    not_fitted,
    training_rows,
)

FOLDS = 5
DECAYS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


class TunedProbe(Probe):
    """A standardised linear probe with the weight decay that predicts left-out training questions
    best.

    Each of five folds of the questions is predicted by probes that are fitted to the others, one a
    decay of ``DECAYS``; the decay with the smallest squared error against mu_hat, the capability
    Brier score itself, is taken, and the probe fitted to all questions with it. At the largest
    decay a probe predicts nearly the training mean. ``seed`` decides the folds. The paper fixes the
    decay at 0.01 and stops early, on validation data; with few hundred questions and about a
    thousand features the optimum at that decay fits noise, so the decay has to do what stopping
    early does there.

    ``weight_decay_`` is the decay that was chosen; ``coef_`` and ``intercept_`` are those of
    `LinearProbe`, ``out_of_fold_`` and ``concentration_`` those of `Probe`.

    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=(100, 50))
    >>> TunedProbe().fit(noise, rng.binomial(10, 0.5, 100), np.full(100, 10)).weight_decay_
    100.0
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        self.weight_decay_: float | None = None
        self.coef_: Floats | None = None
        self.intercept_: float | None = None

    def fit(
        self, features: npt.ArrayLike, correct: npt.ArrayLike, total: npt.ArrayLike
    ) -> TunedProbe:
        """Fit to features (n_questions, n_features) and counts (n_questions,), two rows or more."""
        from sklearn.model_selection import KFold

        matrix, hits, samples = training_rows(
            features, correct, total, least=2, needs="a tuned probe"
        )
        mu = hits / samples
        left_out = np.empty((len(DECAYS), len(matrix)))
        folds = KFold(min(FOLDS, len(matrix)), shuffle=True, random_state=self.seed)
        for others, fold in folds.split(matrix):
            left_out[:, fold] = _path(matrix[others], mu[others], matrix[fold])
        best = int(np.mean((left_out - mu) ** 2, axis=1).argmin())
        self.weight_decay_ = DECAYS[best]
        self._chosen = LinearProbe(weight_decay=DECAYS[best], standardize=True)
        self._chosen.fit(matrix, hits, samples)
        self.coef_ = self._chosen.coef_
        self.intercept_ = self._chosen.intercept_
        self._keep(left_out[best], hits, samples)
        return self

    def predict(self, features: npt.ArrayLike) -> Floats:
        """Predict mu, (n_questions,) in [0, 1], from features (n_questions, n_features)."""
        if self.weight_decay_ is None:
            raise not_fitted()
        return self._chosen.predict(features)


def _path(training: Matrix, mu: Floats, unseen: Matrix) -> Floats:
    """Predict unseen questions by the probe of each decay, (n_decays, n_unseen).

    In the principal coordinates of the standardised training questions, at most as many as there
    are questions, the same probe takes less work: the penalty stays what it is, and the bound of
    the curvature is diagonal."""
    from scipy.special import expit
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(training.astype(np.float64))
    rows = scaler.transform(training)
    others = scaler.transform(unseen)
    wide = rows.shape[1] > len(rows)
    squares, vectors = np.linalg.eigh(rows @ rows.T if wide else rows.T @ rows)
    kept = squares >= squares[-1] * 1e-10
    squares = np.maximum(squares, 1e-300)  # where no feature varies
    squares = squares[kept]
    vectors = vectors[:, kept]
    directions = rows.T @ (vectors / np.sqrt(squares)) if wide else vectors
    columns = rows @ directions
    unseen_columns = others @ directions
    shares = np.full(len(rows), 1 / len(rows))
    curvature = CURVATURE["bce"] * squares / len(rows)
    predicted = np.empty((len(DECAYS), len(others)))
    found = None
    for row, decay in reversed(list(enumerate(DECAYS))):  # from the flattest, each from the last
        units = 1 / np.sqrt(curvature + decay)
        start = None if found is None else np.append(found[:-1] / units, found[-1])
        scale = units.__mul__
        point = minimise(
            "bce", columns, mu, shares, decay, scale, scale, start=start, steepness=1e-5
        )
        found = np.append(units * point[:-1], point[-1])
        predicted[row] = expit(unseen_columns @ found[:-1] + found[-1])
    return predicted
