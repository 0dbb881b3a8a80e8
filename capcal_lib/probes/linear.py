"""A linear probe: a logistic model of mu, fitted to its optimum."""

from __future__ import annotations  # keeps ArrayLike short in help()

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.utils import check_array

from capcal_lib.errors import InputError, check_known
from capcal_lib.metrics.validation import Floats, Ints, align, as_counts
from capcal_lib.probes.estimator import Probe

Loss = Literal["bce", "mse"]
SKETCH = 512  # questions whose principal directions are taken
STEEPEST = 1e-3  # slope at which fitting may end, where the curvature is at most 1
OPTIONS = {"maxcor": 30, "ftol": 0, "gtol": 1e-6, "maxiter": 2_000}


class LinearProbe(Probe):
    """Predict mu from the features of a question: sigmoid(weights · features + bias).

    Fitting minimises the mean ``loss`` plus weight_decay / 2 · ‖weights‖². The loss ``bce`` is the
    cross-entropy against correct / total, and ``mse`` the squared error of the prediction; in both
    every question weighs the same. With ``standardize`` the penalty applies to weights for features
    scaled to mean 0 and standard deviation 1.

    ``coef_``, shape (n_features,), and ``intercept_`` apply to the features as given, whether
    standardised or not. A feature that is constant in training has coefficient 0. The optimum is
    reached exactly, so there is no learning rate, number of epochs or seed to choose; `PaperProbe`
    trains as the paper does.

    >>> features = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> probe = LinearProbe(weight_decay=1e-3).fit(features, correct=[1, 3, 7, 9],
    ...     total=[10, 10, 10, 10])
    >>> probe.predict([[0.0], [2.0]]).round(2).tolist()
    [0.5, 0.88]
    """

    coef_: Floats | None = None
    intercept_ = 0.0

    def __init__(
        self, *, loss: Loss = "bce", weight_decay: float = 1e-2, standardize: bool = False
    ) -> None:
        check_known("loss", loss, get_args(Loss))
        if not (isinstance(weight_decay, int | float) and 0 <= weight_decay < np.inf):
            raise InputError(f"weight_decay must be a number of at least 0; got {weight_decay!r}")
        self.loss: Loss = loss
        self.weight_decay = weight_decay
        self.standardize = standardize

    def fit(self, features: npt.ArrayLike, correct: npt.ArrayLike, total: npt.ArrayLike) -> Self:
        """Fit to features (n_questions, n_features) and counts (n_questions,)."""
        matrix, hits, samples = training_rows(features, correct, total)
        [(self.coef_, self.intercept_)] = fit_path(
            matrix,
            hits / samples,
            [self.weight_decay],
            loss=self.loss,
            standardize=self.standardize,
        )
        return self

    def predict(self, features: npt.ArrayLike) -> Floats:
        """Predict mu, (n_questions,) in [0, 1], from features (n_questions, n_features)."""
        if self.coef_ is None:
            raise InputError("the probe is not fitted; call fit(features, correct, total) first")
        matrix = as_features(features)
        if matrix.shape[1] != len(self.coef_):
            raise InputError(
                f"the probe was fitted to {len(self.coef_)} features; got {matrix.shape[1]}"
            )
        return np.asarray(expit(matrix @ self.coef_ + self.intercept_))


def fit_path(
    features: Floats,
    mu_hat: Floats,
    decays: Iterable[float],
    *,
    loss: Loss = "bce",
    standardize: bool = False,
) -> Iterator[tuple[Floats, float]]:
    """Yield the weights and the bias that are best at each decay, found by L-BFGS from those of
    the decay before.

    It runs in coordinates in which all directions are about equally steep, so that some tens of
    steps are enough whatever the features' spectrum: the principal directions of some questions
    are shrunk by the root of the curvature along them, all others by that of what is left of it."""
    centre = features.mean(axis=0)
    scale = features.std(axis=0) if standardize else np.ones_like(centre)
    scale[np.ptp(features, axis=0) == 0] = np.inf
    columns = (features - centre) / scale
    curvature, rest = _sketch_curvature(columns, loss)
    objective = _Objective(columns, mu_hat, loss, curvature)
    mean = np.full(len(mu_hat), 1 / len(mu_hat)) @ mu_hat
    weights, bias = np.zeros_like(centre), logit(np.clip(mean, 1e-3, 1 - 1e-3))
    for decay in decays:
        flat = max(decay + rest, 1e-9 * curvature.steep.max(initial=1e-9))
        start = np.append(curvature.scale(weights, flat, 0.5), bias)
        optimum = minimize(
            objective.slope, start, (decay, flat), method="L-BFGS-B", jac=True, options=OPTIONS
        )
        if not np.abs(optimum.jac).max() < STEEPEST:
            raise InputError(
                "training the probe did not converge; standardize the features, or raise "
                "weight_decay"
            )
        weights, bias = curvature.scale(optimum.x[:-1], flat, -0.5), optimum.x[-1]
        yield weights / scale, float(bias - centre @ (weights / scale))


class _Curvature(NamedTuple):
    """How steep a loss is: along some directions, on top of what it is along all."""

    steep: Floats  # (n_directions,)
    directions: Floats  # (n_directions, n_features), orthonormal

    def scale(self, values: Floats, flat: float, power: float) -> Floats:
        """Multiply by the curvature, ``flat`` along all directions, to a power."""
        along = self.directions @ values
        along *= (self.steep + flat) ** power - flat**power
        return flat**power * values + along @ self.directions


def _sketch_curvature(columns: Floats, loss: Loss) -> tuple[_Curvature, float]:
    """Return the curvature along the principal directions of some rows, and how much of it there is
    along each other direction, for which the rows are too few.
    """
    rows = columns[np.linspace(0, len(columns) - 1, min(len(columns), SKETCH)).astype(int)]
    products = rows @ rows.T
    certain = len(rows) * np.finfo(columns.dtype).eps * max(products.diagonal().max(), 1e-60)
    squares, vectors = eigh(products, subset_by_value=(certain, np.inf))
    directions = (vectors / np.sqrt(squares)).T @ rows
    bound = 1 / 8 if loss == "mse" else 1 / 4  # of a loss's second derivative in the logit
    rest = 0.0
    if len(rows) < len(columns):
        rest = bound / 2 * np.median(rows.var(axis=0))
    return _Curvature(bound * squares / len(rows), directions), rest


class _Objective(NamedTuple):
    """The mean loss of a linear probe, with its decay, at a point that is scaled by the
    curvature.
    """

    columns: Floats  # (n_questions, n_features)
    mu_hat: Floats  # (n_questions,)
    loss: Loss
    curvature: _Curvature

    def slope(self, point: Floats, decay: float, flat: float) -> tuple[float, Floats]:
        """Return the value at a point, weights and then the bias, and its gradient there."""
        weights = self.curvature.scale(point[:-1], flat, -0.5)
        logits = self.columns @ weights + point[-1]
        error = expit(logits) - self.mu_hat
        value = np.logaddexp(0, logits) - self.mu_hat * logits
        if self.loss == "mse":
            value = error**2
            error *= 2 * expit(logits) * expit(-logits)
        shares = np.full(len(error), 1 / len(error))
        gradient = (shares * error) @ self.columns + decay * weights
        total = shares @ value + decay / 2 * weights @ weights
        slope = self.curvature.scale(gradient, flat, -0.5)
        return total, np.append(slope, (shares * error).sum())


def training_rows(
    features: npt.ArrayLike, correct: npt.ArrayLike, total: npt.ArrayLike, *, least: int = 1
) -> tuple[Floats, Ints, Ints]:
    """Return features and counts of equally many questions, ``least`` or more, or refuse them."""
    matrix = as_features(features, least)
    hits, samples = as_counts(correct, total, scored=1)
    align(features=matrix, correct=hits)
    return matrix, hits, samples


def as_features(features: npt.ArrayLike, least: int = 1) -> Floats:
    """Return features as finite numbers of shape (n_questions, n_features), or refuse them."""
    try:
        matrix: Floats = check_array(features, dtype=np.float64, ensure_min_samples=least)
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"features must have shape (n_questions, n_features): {reason}") from None
    return matrix
