"""A kernel probe: ridge regression of mu_hat under a Gaussian kernel, its settings chosen by
leaving one out.
"""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
import numpy.typing as npt

from capcal_lib.metrics.validation import Floats
from capcal_lib.probes.estimator import Probe
from capcal_lib.probes.linear import as_fitted, training_rows

BANDWIDTHS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)  # of exp(-bandwidth · squared distance / its median)
PENALTIES = tuple(
    10.0 ** np.arange(-6, 0.1, 0.5)
)  # a question, on a kernel that is 1 on its diagonal


class KernelProbe(Probe):
    """Predict mu by kernel ridge regression: smooth in the features, not linear.

    The squared error that it minimises is the capability Brier score itself. A question weighs as
    its total, since the variance of mu_hat falls with it. ``bandwidth_`` and ``penalty_`` are those
    with the smallest leave-one-out error on the training questions, which needs no refit: one
    eigendecomposition gives it for every penalty, and ``out_of_fold_``, what is predicted for each
    training question from all others. Nothing is drawn, so the same questions give the same probe.
    Time grows with the cube of the number of training questions: a second for 1,000, minutes for
    7,000. ``components`` is how many of the features' principal directions to read, taken without
    the labels; None reads all.

    >>> features = np.linspace(-1, 1, 40)[:, None]
    >>> correct = np.where(abs(features[:, 0]) < 0.5, 9, 1)
    >>> probe = KernelProbe().fit(features, correct, total=np.full(40, 10))
    >>> probe.predict([[0.0], [0.9]]).round(1).tolist()
    [0.9, 0.1]
    """

    def __init__(self, *, components: int | None = None) -> None:
        self.components = components
        self.bandwidth_: float | None = None
        self.penalty_: float | None = None
        self._features: int | None = None

    def __repr__(self) -> str:
        fitted = "not fitted"
        if self.bandwidth_ is not None:
            fitted = f"bandwidth {self.bandwidth_:g}, penalty {self.penalty_:g}"
        return f"<KernelProbe(components={self.components}), {fitted}>"

    def fit(
        self, features: npt.ArrayLike, correct: npt.ArrayLike, total: npt.ArrayLike
    ) -> KernelProbe:
        """Fit to features (n_questions, n_features) and counts (n_questions,), three rows or
        more.
        """
        from sklearn.decomposition import PCA
        from sklearn.metrics.pairwise import euclidean_distances

        points, hits, samples = training_rows(
            features, correct, total, least=3, needs="a kernel probe"
        )
        points = points.astype(np.float64)
        self._features = points.shape[1]
        if self.components:
            kept = min(self.components, *points.shape)
            self._directions = PCA(kept, svd_solver="full").fit(points)
            points = self._directions.transform(points)
        mu = hits / samples
        weight = np.sqrt(samples / samples.mean())
        self._points = points
        self._mean = float(np.average(mu, weights=samples))
        distances = euclidean_distances(points, squared=True)
        self._scale = float(np.median(distances)) or 1.0
        target = weight * (mu - self._mean)
        lowest = np.inf
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
                    self._keep(left_out, hits, samples)
        return self

    def predict(self, features: npt.ArrayLike) -> Floats:
        """Predict mu, (n_questions,) in [0, 1], from features (n_questions, n_features)."""
        from sklearn.metrics.pairwise import euclidean_distances

        points = as_fitted(features, self._features).astype(np.float64)
        if self.components:
            points = self._directions.transform(points)
        distances = euclidean_distances(points, self._points, squared=True)
        kernel = self._kernel(distances, self.bandwidth_ or 0.0)
        return np.clip(self._mean + kernel @ self._dual, 0, 1)

    def _kernel(self, distances: Floats, bandwidth: float) -> Floats:
        """Return the kernel, with a constant that leaves the mean free."""
        return 1 + np.exp(-bandwidth * distances / self._scale)
