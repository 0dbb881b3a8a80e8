"""A linear probe: a logistic model of mu, fitted to its optimum."""

from __future__ import annotations  # keeps ArrayLike short in help()

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from capcal_lib.errors import InputError, unknown
from capcal_lib.metrics.validation import Floats, Ints, as_counts, same_length

Matrix = npt.NDArray[np.floating]
Loss = Literal["bce", "binomial", "mse"]
Solve = Callable[[Floats], Floats]

# The largest second derivative of each loss in the logit (for mse, of its Gauss-Newton part).
CURVATURE: dict[Loss, float] = {"bce": 1 / 4, "binomial": 1 / 4, "mse": 1 / 8}
_LARGEST = 1e30  # sizes whose squares stay numbers
_SMALLEST = 1e-30
_SKETCH = 1_024  # questions that stand for all in the curvature
_SMALL = 2**22  # numbers, up to which all is computed in double precision
_STEEPEST = 1e-3  # where fitting may end, in coordinates in which the curvature is at most 1
_ITERATIONS = 2_000


class LinearProbe(BaseEstimator):  # type: ignore[misc]
    """Predict mu from the features of a question: sigmoid(weights · features + bias).

    Fitting minimises the mean ``loss`` plus weight_decay / 2 · ‖weights‖², in the precision of the
    features: float32 or float64. The loss is ``bce``, the cross-entropy against correct / total, or
    ``mse``, the squared error of the prediction, for which every question weighs the same; or
    ``binomial``, the likelihood of the counts, for which every sample does. ``weight_decay`` is at
    least 0; at 0 the optimum may lie at infinity, and fitting stops where the gradient vanishes.
    With ``standardize`` the penalty sees weights for features scaled to mean 0 and deviation 1.

    ``coef_``, (n_features,), and ``intercept_`` are for the features as they are given,
    standardised or not, and None before ``fit``; a feature that is constant in training has
    coefficient 0.

    Here the optimum is reached, so there is no learning rate, number of epochs or seed to choose;
    `PaperProbe` trains as the paper does.

    L-BFGS runs in coordinates in which the curvature is near the identity, so that some tens of
    steps are enough whatever the features' spectrum.

    >>> features = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> probe = LinearProbe(weight_decay=1e-3).fit(features, correct=[1, 3, 7, 9],
    ...     total=[10, 10, 10, 10])
    >>> probe.predict([[0.0], [2.0]]).round(2).tolist()
    [0.5, 0.88]
    """

    def __init__(
        self, *, loss: Loss = "bce", weight_decay: float = 1e-2, standardize: bool = False
    ) -> None:
        if loss not in get_args(Loss):
            raise unknown("loss", loss, get_args(Loss))
        if not (isinstance(weight_decay, int | float) and 0 <= weight_decay < np.inf):
            raise InputError(f"weight_decay is a number of at least 0; got {weight_decay!r}")
        self.loss: Loss = loss
        self.weight_decay = weight_decay
        self.standardize = standardize
        self.coef_: Floats | None = None
        self.intercept_: float | None = None

    def fit(
        self, features: npt.ArrayLike, correct: npt.ArrayLike, total: npt.ArrayLike
    ) -> LinearProbe:
        """Fit to features (n_questions, n_features), finite, and counts (n_questions,); return the
        probe.
        """
        matrix, hits, samples = training_rows(features, correct, total)
        if matrix.size < _SMALL:
            matrix = matrix.astype(np.float64)
        shares = np.full(len(samples), 1 / len(samples))  # of the loss: every question the same
        if self.loss == "binomial":
            shares = samples / samples.sum()  # every sample
        # Hidden states have means many times their deviations, from which a product in single
        # precision does not recover.
        centre = matrix.mean(axis=0, dtype=np.float64).astype(matrix.dtype)
        columns = matrix - centre
        deviation = columns.std(axis=0, dtype=np.float64)
        rounding = 8 * np.finfo(matrix.dtype).eps + len(matrix) * np.finfo(np.float64).eps
        deviation[deviation <= rounding * np.abs(centre) + _SMALLEST] = 0
        scale = deviation if self.standardize else np.ones_like(deviation)
        inverse = np.divide(1, scale, out=np.zeros_like(scale), where=deviation > 0)
        columns *= inverse.astype(matrix.dtype)
        to_weights = _unit_basis(
            columns, CURVATURE[self.loss], (deviation * inverse) ** 2, self.weight_decay
        )
        point = minimise(self.loss, columns, hits / samples, shares, self.weight_decay, *to_weights)
        self.coef_ = inverse * to_weights[0](point[:-1])
        self.intercept_ = float(point[-1] - centre.astype(np.float64) @ self.coef_)
        return self

    def predict(self, features: npt.ArrayLike) -> Floats:
        """Predict mu, (n_questions,) in [0, 1], from as many features as in training, (n_questions,
        n_features).
        """
        from scipy.special import expit

        matrix = as_fitted(features, None if self.coef_ is None else len(self.coef_))
        return np.asarray(expit(matrix @ np.asarray(self.coef_) + (self.intercept_ or 0.0)))


def _unit_basis(
    columns: Matrix, curvature: float, variance: Floats, penalty: float
) -> tuple[Solve, Solve]:
    """Return what makes weights of a point in coordinates in which the curvature is near 1, and its
    transpose.

    The curvature is that of some of the questions in their principal directions, and a diagonal
    for what these leave out: the median feature's variance, or more where a feature's is huge.
    """
    from scipy.linalg import eigh

    size = min(len(columns), _SKETCH)
    missed = max(0.5 * (1 - size / len(columns)), 1e-3)
    spread = curvature * np.maximum(np.median(variance), variance / 100)
    diagonal = penalty + missed * spread
    units = np.divide(1, np.sqrt(diagonal), out=np.zeros_like(spread), where=variance > 0)
    rows = columns[np.linspace(0, len(columns) - 1, size).round().astype(int)]
    rows = rows * (units * np.sqrt((1 - missed) * curvature / size)).astype(rows.dtype)
    squares, vectors = eigh(rows @ rows.T, overwrite_a=True, check_finite=False)
    apart = squares > 4 * np.finfo(rows.dtype).eps * max(squares[-1], 1.0)
    squares = squares[apart]
    directions = (vectors[:, apart] / np.sqrt(squares)).T @ rows
    shrink = 1 / np.sqrt(1 + squares) - 1

    def stretch(point: Floats) -> Floats:
        along = directions @ point.astype(rows.dtype)
        return point + directions.T @ (shrink * along).astype(rows.dtype)

    return lambda point: units * stretch(point), lambda gradient: stretch(units * gradient)


def minimise(
    loss: Loss,
    columns: Matrix,
    target: Floats,
    shares: Floats,
    penalty: Floats | float,
    from_unit: Solve,
    to_unit: Solve,
    *,
    start: Floats | None = None,
    steepness: float = 1e-6,
) -> Floats:
    """Minimise sum(shares · loss) + sum(penalty · weights²) / 2 by L-BFGS; return the point of the
    optimum, its bias last.

    ``from_unit`` makes weights from a point, and ``to_unit``, its transpose, a point's gradient
    from the weights'. ``start`` is a similar problem's point, and
    ``steepness`` the gradient at which to stop."""
    from scipy.optimize import minimize

    def objective(point: Floats) -> tuple[float, Floats]:
        weights = from_unit(point[:-1])
        logits = columns @ weights.astype(columns.dtype) + point[-1]
        value, slope = LOSSES[loss](logits, target, shares)
        shrink = penalty * weights
        gradient = to_unit(columns.T @ slope.astype(columns.dtype) + shrink)
        return float(value + shrink @ weights / 2), np.append(gradient, slope.sum())

    if start is None:
        mean = float(np.clip(shares @ target, 1e-3, 1 - 1e-3))
        start = np.append(np.zeros(columns.shape[1]), np.log(mean / (1 - mean)))
    options = {"maxcor": 30, "ftol": 0, "gtol": steepness, "maxiter": _ITERATIONS}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    if columns.dtype == np.float32 and not np.abs(found.jac).max() < steepness:
        # features that cancel one another
        double = columns.astype(np.float64)
        return minimise(loss, double, target, shares, penalty, from_unit, to_unit, start=found.x)
    if not np.abs(found.jac).max() < _STEEPEST:
        raise InputError(
            "the probe does not come to its optimum; standardize the features or raise weight_decay"
        )
    return np.asarray(found.x)


def _bce(logits: Floats, target: Floats, shares: Floats) -> tuple[Any, Floats]:
    """Return the cross-entropy, weighted by shares, and its gradient in the logits; one problem a
    column, if any.
    """
    from scipy.special import expit

    loss = np.logaddexp(0, logits) - target * logits
    slope = expit(logits) - target
    return shares @ loss, (shares * slope.T).T


def _mse(logits: Floats, target: Floats, shares: Floats) -> tuple[Any, Floats]:
    """Return the squared error of the predictions, weighted by shares, and its gradient, like
    ``_bce``.
    """
    from scipy.special import expit

    predicted = expit(logits)
    error = predicted - target
    slope = error * predicted * (1 - predicted)
    return shares @ error**2, (2 * shares * slope.T).T


LOSSES: dict[Loss, Callable[[Floats, Floats, Floats], tuple[Any, Floats]]] = {
    "bce": _bce,
    "binomial": _bce,
    "mse": _mse,
}


def training_rows(
    features: npt.ArrayLike,
    correct: npt.ArrayLike,
    total: npt.ArrayLike,
    *,
    least: int = 1,
    needs: str = "a probe",
) -> tuple[Matrix, Ints, Ints]:
    """Return features and counts of equally many questions, ``least`` or more, or refuse them."""
    matrix = as_features(features)
    hits, samples = as_counts(correct, total, scored=1)
    same_length(features=matrix, correct=hits)
    if len(hits) < least:
        raise InputError(f"{needs} needs {least} training questions or more; got {len(hits)}")
    return matrix, hits, samples


def as_fitted(features: npt.ArrayLike, number: int | None) -> Matrix:
    """Return features, as many as a probe was fitted to, or refuse them; None for one that is not
    fitted.
    """
    if number is None:
        raise not_fitted()
    matrix = as_features(features)
    if matrix.shape[1] != number:
        raise InputError(f"the probe was fitted to {number} features; got {matrix.shape[1]}")
    return matrix


def not_fitted() -> InputError:
    """Build the error for a probe that is asked before it is fitted."""
    return InputError("the probe is not fitted; call fit(features, correct, total) first")


def as_features(features: npt.ArrayLike) -> Matrix:
    """Return features as float32 or float64 of shape (n_questions, n_features), or refuse them."""
    try:
        matrix = np.asarray(features)
    except ValueError:
        raise InputError(
            "features need equally many numbers in each row; got rows of different lengths"
        ) from None
    if matrix.ndim != 2 or matrix.shape[1] == 0 or matrix.dtype.kind not in "biuf":
        raise InputError(
            f"features are numbers of shape (n_questions, n_features); got {matrix.dtype} of "
            f"shape {matrix.shape}"
        )
    matrix = matrix.astype(np.result_type(matrix.dtype, np.float32), copy=False)
    if not np.einsum("ij,ij->", matrix, matrix) < _LARGEST:  # then some may be too large, or NaN
        bad = np.argwhere(~(np.abs(matrix) < _LARGEST))
        if len(bad):
            row, column = bad[0]
            raise InputError(
                f"row {row}: feature {column} is {matrix[row, column]}; "
                f"features are finite and below {_LARGEST:g} in size"
            )
    return matrix
