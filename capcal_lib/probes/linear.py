"""A linear probe: a logistic model of mu, fitted to its optimum."""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from capcal_lib.errors import InputError, unknown
from capcal_lib.inputs import Floats, as_counts

Matrix = npt.NDArray[np.floating]
Loss = Literal["bce", "mse"]

# The largest second derivative of each loss in the logit (for mse, of its Gauss-Newton part).
_CURVATURE: dict[Loss, float] = {"bce": 1 / 4, "mse": 1 / 8}
_TOLERANCE = 1e-6  # of the preconditioned gradient, whose square bounds what the objective still could fall
_ITERATIONS = 2_000
_LARGEST, _SMALLEST = 1e30, 1e-30  # sizes whose squares stay numbers


class LinearProbe:
    """Predict mu from the features of a question: sigmoid(weights · features + bias).

    Fitting minimises the mean loss over questions plus weight_decay / 2 · ‖weights‖². Every question weighs
    the same, whatever its total. Work is done in the precision of the features: float32 or float64.

    Parameters
    ----------
    loss
        ``bce``, the cross-entropy against correct / total, or ``mse``, the squared error of the prediction.
    weight_decay
        At least 0. At 0 the optimum may lie at infinity; fitting then stops where the gradient vanishes.
    standardize
        Whether the penalty sees weights for features scaled to mean 0 and standard deviation 1.

    Attributes
    ----------
    weights, bias
        (n_features,) and a number, for the features as they are given; None before ``fit``.
        A feature that is constant in training has weight 0.

    Raises
    ------
    InputError
        For an unknown loss or a negative weight decay.

    Notes
    -----
    The paper trains the same objective by SGD for 100 epochs and keeps the epoch that does best on validation data
    (appendix on linear probes). Here the optimum is reached, so there is no learning rate, batch size, number
    of epochs or seed to choose. The paper's code decays the bias too; this one does not.

    Examples
    --------
    >>> features = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> probe = LinearProbe(weight_decay=1e-3).fit(features, correct=[1, 3, 7, 9], total=[10, 10, 10, 10])
    >>> probe.predict([[0.0], [2.0]]).round(2).tolist()
    [0.5, 0.88]
    """

    def __init__(self, *, loss: Loss = "bce", weight_decay: float = 1e-2, standardize: bool = False) -> None:
        if loss not in get_args(Loss):
            raise unknown("loss", loss, get_args(Loss))
        if not (isinstance(weight_decay, int | float) and 0 <= weight_decay < np.inf):
            raise InputError(f"weight_decay is a number of at least 0; got {weight_decay!r}")
        self.loss: Loss = loss
        self.weight_decay = weight_decay
        self.standardize = standardize
        self.weights: Floats | None = None
        self.bias: float | None = None

    def fit(self, features: npt.ArrayLike, correct: npt.ArrayLike, total: npt.ArrayLike) -> "LinearProbe":
        """Fit the weights and the bias.

        Parameters
        ----------
        features
            (n_questions, n_features), finite.
        correct, total
            (n_questions,) counts, 0 <= correct <= total and total at least 1.

        Returns
        -------
        LinearProbe
            Itself.

        Raises
        ------
        InputError
            For shapes that do not match, features that are not finite, or counts that are no counts.
        """
        matrix = _checked_features(features)
        hits, samples = as_counts(correct, total, scored=1)
        if len(samples) != len(matrix):
            raise InputError(f"features have {len(matrix)} rows, but there are counts of {len(samples)} questions")
        curvature = _CURVATURE[self.loss]

        # Centring leaves the objective as it is, because the bias is not penalised.
        centre = matrix.mean(axis=0, dtype=np.float64).astype(matrix.dtype)
        columns = matrix - centre
        deviation = np.sqrt(np.einsum("ij,ij->j", columns, columns, dtype=np.float64) / len(columns))
        varies = deviation > 8 * np.finfo(matrix.dtype).eps * np.abs(centre) + _SMALLEST  # more than rounding
        # Each column is scaled so that the objective has curvature 1 along it; the penalty follows.
        penalty = self.weight_decay * (deviation**2 if self.standardize else np.ones_like(deviation))
        scale = np.zeros_like(deviation)
        scale[varies] = 1 / np.sqrt(curvature * deviation[varies] ** 2 + penalty[varies])
        columns *= scale.astype(columns.dtype)
        weights, bias = _minimise(self.loss, columns, hits / samples, penalty * scale**2)
        self.weights = weights * scale
        self.bias = float(bias - centre.astype(np.float64) @ self.weights)
        return self

    def predict(self, features: npt.ArrayLike) -> Floats:
        """Predict mu.

        Parameters
        ----------
        features
            (n_questions, n_features), finite, with as many features as in training.

        Returns
        -------
        ndarray
            (n_questions,) in [0, 1].

        Raises
        ------
        InputError
            Before ``fit``, or for other features than in training.
        """
        from scipy.special import expit

        if self.weights is None or self.bias is None:
            raise InputError("the probe is not fitted; call fit(features, correct, total) first")
        matrix = _checked_features(features)
        if matrix.shape[1] != len(self.weights):
            raise InputError(f"the probe was fitted to {len(self.weights)} features; got {matrix.shape[1]}")
        return np.asarray(expit(matrix @ self.weights + self.bias))


def _minimise(loss: Loss, columns: Matrix, target: Floats, penalty: Floats) -> tuple[Floats, float]:
    """Minimise the mean loss + sum(penalty · weights²) / 2 over weights and bias.

    L-BFGS in coordinates in which the curvature bound of the whole objective is the identity: the triangular
    factor of that bound takes a hundred-fold of the iterations away where features are correlated.
    """
    from scipy.linalg import blas, cholesky
    from scipy.optimize import minimize

    precision = columns.dtype
    syrk, solve = blas.get_blas_funcs(("syrk", "trsv"), (columns,))
    bound = syrk(_CURVATURE[loss] / len(columns), columns.T)  # upper triangle
    bound[np.diag_indices_from(bound)] += (penalty + np.sqrt(np.finfo(precision).eps)).astype(precision)
    factor = cholesky(bound, overwrite_a=True, check_finite=False)
    bias_scale = _CURVATURE[loss] ** -0.5

    def objective(point: Floats) -> tuple[float, Floats]:
        weights = solve(factor, point[1:].astype(precision))
        value, slope = _LOSSES[loss]((columns @ weights).astype(np.float64) + bias_scale * point[0], target)
        shrink = penalty * weights
        gradient = columns.T @ slope.astype(precision) + shrink
        moved = solve(factor, gradient.astype(precision), trans=1)
        return value + float(shrink @ weights) / 2, np.concatenate([[bias_scale * slope.sum()], moved])

    mean = np.clip(target.mean(), 1e-3, 1 - 1e-3)
    start = np.zeros(columns.shape[1] + 1)
    start[0] = np.log(mean / (1 - mean)) / bias_scale
    options = {"maxiter": _ITERATIONS, "maxfun": 2 * _ITERATIONS, "maxcor": 20, "gtol": _TOLERANCE, "ftol": 0}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    if np.abs(found.jac).max() > 100 * _TOLERANCE:
        raise InputError("the probe does not come to its optimum; standardize the features or raise weight_decay")
    return solve(factor, found.x[1:].astype(precision)).astype(np.float64), float(bias_scale * found.x[0])


def _bce(logits: Floats, target: Floats) -> tuple[float, Floats]:
    """Return the mean cross-entropy and its gradient in the logits."""
    from scipy.special import expit

    return float(np.mean(np.logaddexp(0, logits) - target * logits)), (expit(logits) - target) / len(target)


def _mse(logits: Floats, target: Floats) -> tuple[float, Floats]:
    """Return the mean squared error of the predictions and its gradient in the logits."""
    from scipy.special import expit

    predicted = expit(logits)
    error = predicted - target
    return float(np.mean(error**2)), 2 * error * predicted * (1 - predicted) / len(target)


_LOSSES: dict[Loss, Callable[[Floats, Floats], tuple[float, Floats]]] = {"bce": _bce, "mse": _mse}


def _checked_features(features: npt.ArrayLike) -> Matrix:
    try:
        matrix = np.asarray(features)
    except ValueError:
        raise InputError("features need equally many numbers in each row; got rows of different lengths") from None
    if matrix.ndim != 2 or matrix.shape[1] == 0 or matrix.dtype.kind not in "biuf":
        raise InputError(
            f"features are numbers of shape (n_questions, n_features); got {matrix.dtype} of shape {matrix.shape}"
        )
    matrix = matrix.astype(np.result_type(matrix.dtype, np.float32), copy=False)
    bad = ~(np.abs(matrix) < _LARGEST)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        value = matrix[row, column]
        raise InputError(f"row {row}: feature {column} is {value}; features are finite and below {_LARGEST:g} in size")
    return matrix
