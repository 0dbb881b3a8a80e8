"""A kernel probe: ridge regression of mu_hat under a Gaussian kernel, its settings chosen by
leaving one out.
"""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
import numpy.typing as npt

from capcal_lib.metrics.validation import Floats, Ints
from capcal_lib.probes.estimator import Probe
from capcal_lib.probes.linear import as_fitted, training_rows

BANDWIDTHS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)  # of exp(-bandwidth · squared distance / its median)
PENALTIES = tuple(
    10.0 ** np.arange(-6, 0.1, 0.5)
)  # a question, on a kernel that is 1 on its diagonal
MOST_QUESTIONS = 3_000  # that a kernel compares: half a minute, and 70 MB a matrix


class KernelProbe(Probe):
    """Predict mu by kernel ridge regression: smooth in the features, not linear.

    The squared error that it minimises is the capability Brier score itself. A question weighs as
    its total, since the variance of mu_hat falls with it. ``bandwidth_`` and ``penalty_`` are those
    with the smallest leave-one-out error on the training questions, which needs no refit: one
    eigendecomposition gives it for every penalty, and ``out_of_fold_``, what is predicted for each
    training question from all others. ``components`` is how many of the features' principal
    directions to read, taken without the labels; None reads all.

    Time grows with the cube of the number of training questions. Of more than 3,000, so many are
    drawn by ``seed`` and teach the probe; ``out_of_fold_`` of the others is what it predicts.

    >>> features = np.linspace(-1, 1, 40)[:, None]
    >>> correct = np.where(abs(features[:, 0]) < 0.5, 9, 1)
    >>> probe = KernelProbe().fit(features, correct, total=np.full(40, 10))
    >>> probe.predict([[0.0], [0.9]]).round(1).tolist()
    [0.9, 0.1]
    """

    def __init__(self, *, components: int | None = None, seed: int = 0) -> None:
        self.components = components
        self.seed = seed
        self.bandwidth_: float | None = None
        self.penalty_: float | None = None
        self._features: int | None = None

    def __repr__(self) -> str:
        fitted = "not fitted"
        if self.bandwidth_ is not None:
            fitted = f"bandwidth {self.bandwidth_:g}, penalty {self.penalty_:g}"
        return f"<KernelProbe(components={self.components}, seed={self.seed}), {fitted}>"

    def fit(
        self, features: npt.ArrayLike, correct: npt.ArrayLike, total: npt.ArrayLike
    ) -> KernelProbe:
        """Fit to features (n_questions, n_features) and counts (n_questions,), three rows or
        more.
        """
        from sklearn.decomposition import PCA

        rows, hits, samples = training_rows(
            features, correct, total, least=3, needs="a kernel probe"
        )
        points: Floats = rows.astype(np.float64)
        self._features = points.shape[1]
        if self.components:
            kept = min(self.components, *points.shape)
            self._directions = PCA(kept, svd_solver="full").fit(points)
            points = self._directions.transform(points)
        drawn = np.arange(len(points))
        if len(points) > MOST_QUESTIONS:
            rng = np.random.default_rng(self.seed)
            drawn = rng.choice(len(points), MOST_QUESTIONS, replace=False)
        left_out = self._learn(points[drawn], hits[drawn], samples[drawn])
        out_of_fold = self._smooth(points)
        out_of_fold[drawn] = left_out
        self._keep(out_of_fold, hits, samples)
        return self

    def predict(self, features: npt.ArrayLike) -> Floats:
        """Predict mu, (n_questions,) in [0, 1], from features (n_questions, n_features)."""
        points: Floats = as_fitted(features, self._features).astype(np.float64)
        if self.components:
            points = self._directions.transform(points)
        return self._smooth(points)

    def _learn(self, points: Floats, hits: Ints, samples: Ints) -> Floats:
        """Choose the settings, and return what is predicted of each question without its help."""
        from sklearn.metrics.pairwise import euclidean_distances

        mu = hits / samples
        weight = np.sqrt(samples / samples.mean())
        self._points = points
        self._mean = float(np.average(mu, weights=samples))
        distances = euclidean_distances(points, squared=True)
        self._scale = float(np.median(distances)) or 1.0
        target = weight * (mu - self._mean)
        lowest = np.inf
        best = np.empty_like(mu)
        for bandwidth in BANDWIDTHS:
            kernel = self._kernel(distances, bandwidth)
            values, vectors = np.linalg.eigh(weight[:, None] * kernel * weight)
            rotated = vectors.T @ target
            squares = vectors**2
            for penalty in PENALTIES:
                shrink = 1 / (np.maximum(values, 0) + penalty * len(points))
                # (K + penalty)^-1 gives the left-out residual: its product with the target over its
                # own diagonal.
                solved = vectors @ (shrink * rotated)
                residual = solved / (squares @ shrink)
                left_out = np.clip(mu - residual / weight, 0, 1)
                error = float(np.average((left_out - mu) ** 2, weights=samples))
                if error < lowest:
                    lowest = error
                    self.bandwidth_ = bandwidth
                    self.penalty_ = penalty
                    self._dual = weight * solved
                    best = left_out
        return best

    def _smooth(self, points: Floats) -> Floats:
        """Predict mu at points, (n_questions, n_directions)."""
        from sklearn.metrics.pairwise import euclidean_distances

        distances = euclidean_distances(points, self._points, squared=True)
        kernel = self._kernel(distances, self.bandwidth_ or 0.0)
        return np.clip(self._mean + kernel @ self._dual, 0, 1)

    def _kernel(self, distances: Floats, bandwidth: float) -> Floats:
        """Return the kernel, with a constant that leaves the mean free."""
        return 1 + np.exp(-bandwidth * distances / self._scale)
