"""A linear probe: a logistic model of mu, fitted to its optimum."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from capcal_lib.errors import InputError, unknown
from capcal_lib.inputs import Floats, as_counts, as_numbers, refuse
from capcal_lib.probes.persistence import read_arrays, write_arrays

Matrix = npt.NDArray[np.floating]
Loss = Literal["bce", "binomial", "mse"]
Change = Callable[[Matrix], Matrix]

# The largest second derivative of each loss in the logit (for mse, of its Gauss-Newton part).
CURVATURE: dict[Loss, float] = {"bce": 1 / 4, "binomial": 1 / 4, "mse": 1 / 8}
_TOLERANCE = 1e-6  # of the preconditioned gradient, whose square bounds what the objective still could fall
_ITERATIONS = 2_000
_KIND = "linear probe"
_LARGEST, _SMALLEST = 1e30, 1e-30  # sizes whose squares stay numbers
_SKETCH = 1_024  # features up to which the curvature is computed in full, and questions that stand for it beyond
_FLOOR = 1e-3  # share of a feature's curvature that a sketch may miss


class LinearProbe:
    """Predict mu from the features of a question: sigmoid(weights · features + bias).

    Fitting minimises the mean loss plus weight_decay / 2 · ‖weights‖². Work is done in the precision of the
    features: float32 or float64.

    Parameters
    ----------
    loss
        ``bce``, the cross-entropy against correct / total, or ``mse``, the squared error of the prediction: every
        question weighs the same. ``binomial``, the likelihood of the counts: every sample does, so it equals
        ``bce`` where all totals are equal.
    weight_decay
        At least 0. At 0 the optimum may lie at infinity; fitting then stops where the gradient vanishes.
    standardize
        Whether the penalty sees weights for features scaled to mean 0 and standard deviation 1.

    Attributes
    ----------
    weights, bias
        (n_features,) and a number, for the features as they are given; None before ``fit``.
        A feature that is constant in training has weight 0. Standardisation is part of them.

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
        matrix = as_features(features)
        hits, samples = as_counts(correct, total, scored=1)
        if len(samples) != len(matrix):
            raise InputError(f"features have {len(matrix)} rows, but there are counts of {len(samples)} questions")
        return self._fit(matrix, hits / samples, question_shares(self.loss, samples))

    def fit_soft(self, features: npt.ArrayLike, mu: npt.ArrayLike) -> "LinearProbe":
        """Fit the weights and the bias to expected accuracies that come without counts, such as exact ones.

        Parameters
        ----------
        features
            (n_questions, n_features), finite.
        mu
            (n_questions,) in [0, 1]. Every question weighs the same.

        Returns
        -------
        LinearProbe
            Itself.

        Raises
        ------
        InputError
            For shapes that do not match, features that are not finite, or mu outside [0, 1].

        Examples
        --------
        >>> LinearProbe().fit_soft([[0.0], [1.0]], [0.25, 0.75]).predict([[0.5]]).round(6).tolist()
        [0.5]
        """
        matrix, target = as_features(features), as_numbers("mu", mu)
        refuse("mu", target, ~((target >= 0) & (target <= 1)), "but must lie in [0, 1] (the first row is 0)")
        if len(target) != len(matrix):
            raise InputError(f"features have {len(matrix)} rows, but there is mu of {len(target)} questions")
        return self._fit(matrix, target, np.full(len(target), 1 / len(target)))

    def _fit(self, matrix: Matrix, target: Floats, shares: Floats) -> "LinearProbe":
        curvature = CURVATURE[self.loss]
        # Centring leaves the objective as it is, because the bias is not penalised.
        centre, deviation, columns = centred(matrix)
        varies = deviation > 0
        penalty = self.weight_decay * (deviation**2 if self.standardize else np.ones_like(deviation))
        # Each column is scaled to about the size of its part in the objective's curvature; the penalty follows.
        sketched = matrix.shape[1] > _SKETCH
        scale = np.zeros_like(deviation)
        part = curvature * (_FLOOR if sketched else 1) * deviation[varies] ** 2 + penalty[varies]
        scale[varies] = 1 / np.sqrt(part)
        columns *= scale.astype(columns.dtype)
        penalty *= scale**2
        change = _sketch(columns, curvature) if sketched else _factor(columns, curvature, penalty)
        weights, bias, _ = minimise(self.loss, columns, target, shares, penalty, change=change)
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
        matrix = as_features(features)
        if matrix.shape[1] != len(self.weights):
            raise InputError(f"the probe was fitted to {len(self.weights)} features; got {matrix.shape[1]}")
        return np.asarray(expit(matrix @ self.weights + self.bias))

    def save(self, path: str | Path) -> None:
        """Keep the probe as NAME.safetensors (weights and bias) and NAME.json (its settings and their digest).

        Parameters
        ----------
        path
            NAME, with or without one of the two suffixes.

        Raises
        ------
        InputError
            Before ``fit``, or where the files cannot be written.
        """
        if self.weights is None or self.bias is None:
            raise InputError("the probe is not fitted; call fit(features, correct, total) first")
        settings = {"loss": self.loss, "weight_decay": self.weight_decay, "standardize": self.standardize}
        arrays = {"weights": self.weights, "bias": np.array([self.bias])}
        write_arrays(Path(path), _KIND, settings, arrays)

    @classmethod
    def load(cls, path: str | Path) -> "LinearProbe":
        """Read a probe that ``save`` kept; it predicts the same bits.

        Raises
        ------
        InputError
            For files that are missing, corrupt, of another version, or hold no linear probe.

        Examples
        --------
        >>> import tempfile
        >>> name = Path(tempfile.mkdtemp()) / "probe"
        >>> LinearProbe().fit([[0.0], [1.0]], [1, 3], [4, 4]).save(name)
        >>> LinearProbe.load(name).predict([[0.5]]).round(6).tolist()
        [0.5]
        """
        settings, arrays = read_arrays(Path(path), _KIND)
        try:
            probe = cls(**settings)
        except TypeError:
            raise InputError(f"{path}: unknown settings {', '.join(settings)}; save the probe again") from None
        weights, bias = arrays.get("weights"), arrays.get("bias")
        if (
            not (isinstance(weights, np.ndarray) and weights.dtype == np.float64 and weights.ndim == 1)
            or not (isinstance(bias, np.ndarray) and bias.dtype == np.float64 and bias.shape == (1,))
            or not (np.isfinite(weights).all() and np.isfinite(bias).all() and len(weights))
        ):
            raise InputError(f"{path}: holds no finite weights and bias of a {_KIND}; save the probe again")
        probe.weights, probe.bias = weights, float(bias[0])
        return probe


def question_shares(loss: Loss, total: npt.NDArray[np.int64]) -> Floats:
    """Return what share of the loss each question has, (n_questions,), summing to 1."""
    return total / total.sum() if loss == "binomial" else np.full(len(total), 1 / len(total))


def centred(matrix: Matrix) -> tuple[Matrix, Floats, Matrix]:
    """Return the columns' means, their standard deviations (0 for what is only rounding), and the matrix less means."""
    centre = matrix.mean(axis=0, dtype=np.float64).astype(matrix.dtype)
    columns = matrix - centre
    deviation = np.sqrt(np.einsum("ij,ij->j", columns, columns, dtype=np.float64) / len(columns))
    deviation[deviation <= 8 * np.finfo(matrix.dtype).eps * np.abs(centre) + _SMALLEST] = 0
    return centre, deviation, columns


def minimise(
    loss: Loss,
    columns: Matrix,
    target: Floats,
    shares: Floats,
    penalty: Floats,
    *,
    change: tuple[Change, Change] | None = None,
    start: Floats | None = None,
    tolerance: float = _TOLERANCE,
) -> tuple[Floats, float, Floats]:
    """Minimise sum(shares · loss) + sum(penalty · weights²) / 2 over weights and bias.

    L-BFGS in coordinates in which the curvature bound of the whole objective is about the identity, which takes
    most of the iterations away where features are correlated. ``change`` maps these coordinates to weights, and
    gradients back; None, where the columns are so already. ``tolerance`` is of the gradient in these coordinates.

    Returns
    -------
    weights, bias, point
        Float64; the point may be the ``start`` of a problem that lies near, in the same coordinates.
    """
    from scipy.optimize import minimize

    precision = columns.dtype
    onward, back = change or (_same, _same)
    bias_scale = CURVATURE[loss] ** -0.5

    def objective(point: Floats) -> tuple[float, Floats]:
        weights = onward(point[1:].astype(precision))
        value, slope = LOSSES[loss]((columns @ weights).astype(np.float64) + bias_scale * point[0], target, shares)
        shrink = penalty * weights
        gradient = columns.T @ slope.astype(precision) + shrink
        moved = back(gradient.astype(precision))
        return float(value + shrink @ weights / 2), np.concatenate([[bias_scale * slope.sum()], moved])

    if start is None:
        mean = np.clip(shares @ target, 1e-3, 1 - 1e-3)
        start = np.zeros(columns.shape[1] + 1)
        start[0] = np.log(mean / (1 - mean)) / bias_scale
    options = {"maxiter": _ITERATIONS, "maxfun": 2 * _ITERATIONS, "maxcor": 20, "gtol": tolerance, "ftol": 0}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    if np.abs(found.jac).max() > 300 * tolerance:  # what single precision may leave
        raise InputError("the probe does not come to its optimum; standardize the features or raise weight_decay")
    return onward(found.x[1:].astype(precision)).astype(np.float64), float(bias_scale * found.x[0]), found.x


def _same(vector: Matrix) -> Matrix:
    return vector


def _factor(columns: Matrix, curvature: float, penalty: Floats) -> tuple[Change, Change]:
    """Change coordinates by the triangular factor of the curvature bound."""
    from scipy.linalg import blas, cholesky

    syrk, solve = blas.get_blas_funcs(("syrk", "trsv"), (columns,))
    bound = syrk(curvature / len(columns), columns.T)  # upper triangle
    bound[np.diag_indices_from(bound)] += (penalty + np.sqrt(np.finfo(columns.dtype).eps)).astype(columns.dtype)
    factor = cholesky(bound, overwrite_a=True, check_finite=False)
    return lambda point: solve(factor, point), lambda gradient: solve(factor, gradient, trans=1)


def _sketch(columns: Matrix, curvature: float) -> tuple[Change, Change]:
    """Change coordinates by the identity plus the curvature of a spread of questions, which is S'S for a wide S.

    With S' = QR, the change is the identity but in the span of Q, where it is the triangular factor of 1 + RR'.
    """
    from scipy.linalg import blas, cholesky

    rows = columns[np.linspace(0, len(columns) - 1, min(len(columns), _SKETCH)).round().astype(int)]
    rows *= np.sqrt(curvature / len(rows)).astype(rows.dtype)
    gram = rows @ rows.T
    gram[np.diag_indices_from(gram)] += 10 * np.finfo(gram.dtype).eps * (np.trace(gram) + 1)
    lower = cholesky(gram, lower=True, check_finite=False)
    trsm, trsv = blas.get_blas_funcs(("trsm", "trsv"), (columns,))
    basis = trsm(1, lower, rows.T, side=1, lower=1, trans_a=1, overwrite_b=1).T  # Q'
    inner = np.tril(lower).T @ lower
    inner[np.diag_indices_from(inner)] += 1
    factor = np.asfortranarray(cholesky(inner, lower=True, check_finite=False))

    def changed(vector: Matrix, trans: int) -> Matrix:
        inside = basis @ vector
        return vector + (trsv(factor, inside, lower=1, trans=trans) - inside) @ basis

    return lambda point: changed(point, 1), lambda gradient: changed(gradient, 0)


def _bce(logits: Floats, target: Floats, shares: Floats) -> tuple[Any, Floats]:
    """Return the cross-entropy, weighted by shares, and its gradient in the logits; one problem a column, if any."""
    from scipy.special import expit

    return shares @ (np.logaddexp(0, logits) - target * logits), (shares * (expit(logits) - target).T).T


def _mse(logits: Floats, target: Floats, shares: Floats) -> tuple[Any, Floats]:
    """Return the squared error of the predictions, weighted by shares, and its gradient, like ``_bce``."""
    from scipy.special import expit

    predicted = expit(logits)
    error = predicted - target
    return shares @ error**2, (2 * shares * (error * predicted * (1 - predicted)).T).T


LOSSES: dict[Loss, Callable[[Floats, Floats, Floats], tuple[Any, Floats]]] = {
    "bce": _bce,
    "binomial": _bce,
    "mse": _mse,
}


def as_features(features: npt.ArrayLike) -> Matrix:
    """Return features as float32 or float64 of shape (n_questions, n_features), or refuse them."""
    try:
        matrix = np.asarray(features)
    except ValueError:
        raise InputError("features need equally many numbers in each row; got rows of different lengths") from None
    if matrix.ndim != 2 or matrix.shape[1] == 0 or matrix.dtype.kind not in "biuf":
        raise InputError(
            f"features are numbers of shape (n_questions, n_features); got {matrix.dtype} of shape {matrix.shape}"
        )
    matrix = matrix.astype(np.result_type(matrix.dtype, np.float32), copy=False)
    if matrix.size and not (matrix.min() > -_LARGEST and matrix.max() < _LARGEST):  # NaN is neither
        row, column = np.argwhere(~(np.abs(matrix) < _LARGEST))[0]
        value = matrix[row, column]
        raise InputError(f"row {row}: feature {column} is {value}; features are finite and below {_LARGEST:g} in size")
    return matrix
