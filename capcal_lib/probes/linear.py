"""A linear probe: a logistic model of mu, fitted to its optimum.

NumPy and SciPy come with a BLAS each. Threads of the one that wait for work take the processor from
the other's, so all large products here are SciPy's."""

from __future__ import annotations  # keeps ArrayLike short in help()

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from capcal_lib.errors import InputError, unknown
from capcal_lib.metrics.validation import Floats, Ints, as_counts, same_length

Matrix = npt.NDArray[np.floating]
Loss = Literal["bce", "binomial", "mse"]
Solve = Callable[[Floats], Floats]

# The largest second derivative of each loss in the logit (for mse, of its Gauss-Newton part).
CURVATURE: dict[Loss, float] = {"bce": 1 / 4, "binomial": 1 / 4, "mse": 1 / 8}
# What a last step may still promise to lower the objective by, in either precision.
_SINGLE = 1e-10
_DOUBLE = 1e-13
_ROUNDING = 1e-7  # what rounding may add to it in double precision
_ITERATIONS = 2_000
_LARGEST = 1e30  # sizes whose squares stay numbers
_SMALLEST = 1e-30
_MEMORY = 30  # steps
# features up to which the curvature is computed in full, and questions that stand for it beyond
_SKETCH = 1_024
# share of the curvature that is spread over all features where few of the questions stand for it
_MISSED = 0.5
_FLOOR = 1e-3  # the same where all do
# times the median of the features' curvatures; single precision does not bear much more
_HUGE = 100.0
_BLOCK = 2**19  # numbers


class LinearProbe:
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

    Fitting ends with the first step that promises to lower the objective by no more than 1e-10
    (float32, or float64 where that is too coarse) or 1e-13 (float64).

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

    def __repr__(self) -> str:
        fitted = "not fitted" if self.coef_ is None else f"fitted to {len(self.coef_)} features"
        settings = (
            f"loss={self.loss!r}, weight_decay={self.weight_decay:g}, "
            f"standardize={self.standardize}"
        )
        return f"<LinearProbe({settings}), {fitted}>"

    def fit(
        self, features: npt.ArrayLike, correct: npt.ArrayLike, total: npt.ArrayLike
    ) -> LinearProbe:
        """Fit to features (n_questions, n_features), finite, and counts (n_questions,); return the
        probe.
        """
        matrix, hits, samples = training_rows(features, correct, total)
        shares = np.full(len(samples), 1 / len(samples))  # of the loss: every question the same
        if self.loss == "binomial":
            shares = samples / samples.sum()  # every sample
        centre, deviation, columns = centred(matrix)
        penalty = np.full_like(deviation, self.weight_decay)
        if self.standardize:
            penalty *= deviation**2
        curvature = CURVATURE[self.loss]
        spread = curvature * deviation**2
        if matrix.shape[1] > _SKETCH:
            solve = _sketch(columns, curvature, spread, penalty, own=self.standardize)
        else:
            solve = _factor(columns, curvature, spread, penalty)
        self.coef_, bias = minimise(self.loss, columns, hits / samples, shares, penalty, solve)
        self.intercept_ = float(bias - centre.astype(np.float64) @ self.coef_)
        return self

    def predict(self, features: npt.ArrayLike) -> Floats:
        """Predict mu, (n_questions,) in [0, 1], from as many features as in training, (n_questions,
        n_features).
        """
        from scipy.special import expit

        matrix = as_fitted(features, None if self.coef_ is None else len(self.coef_))
        return np.asarray(expit(matrix @ np.asarray(self.coef_) + (self.intercept_ or 0.0)))


def centred(matrix: Matrix) -> tuple[Matrix, Floats, Matrix]:
    """Return the columns' means, their standard deviations (0 for what is only rounding), and the
    matrix less means.

    Hidden states have means many times their deviations, from which a product in single precision
    does not recover."""
    sums, squares = np.zeros((2, matrix.shape[1]))
    for start in range(0, len(matrix), 16):  # few at a time, for what is summed in single precision
        sums += matrix[start : start + 16].sum(axis=0)
    centre = (sums / len(matrix)).astype(matrix.dtype)
    columns = np.empty_like(matrix, order="C")
    for rows in _blocks(matrix):
        part = np.subtract(matrix[rows], centre, out=columns[rows])
        squares += np.einsum("ij,ij->j", part, part)
    deviation = np.sqrt(squares / len(matrix))
    rounding = 8 * np.finfo(matrix.dtype).eps + len(matrix) * np.finfo(np.float64).eps
    deviation[deviation <= rounding * np.abs(centre) + _SMALLEST] = 0
    return centre, deviation, columns


def _blocks(matrix: Matrix) -> list[slice]:
    """Divide the rows into parts that stay in the processor's cache while they are read more than
    once.
    """
    size = max(1, _BLOCK // matrix.shape[1])
    return [slice(start, start + size) for start in range(0, len(matrix), size)]


def minimise(
    loss: Loss,
    columns: Matrix,
    target: Floats,
    shares: Floats,
    penalty: Floats | float,
    solve: Solve,
    *,
    start: tuple[Floats, float] | None = None,
    tolerance: float | None = None,
) -> tuple[Floats, float]:
    """Minimise sum(shares · loss) + sum(penalty · weights²) / 2; return weights and bias, a similar
    problem's start.

    L-BFGS that starts from ``solve``, which applies an approximate inverse of the objective's
    curvature in the weights to a gradient. Its last step is the first to promise a fall of the
    objective of no more than ``tolerance``."""
    from scipy.linalg import blas

    columns = np.ascontiguousarray(columns)
    precision = columns.dtype
    blocks = _blocks(columns)
    (gemv,) = blas.get_blas_funcs(("gemv",), (columns,))
    if tolerance is None:
        tolerance = _SINGLE if precision == np.float32 else _DOUBLE

    def objective(point: Floats) -> tuple[float, Floats]:
        weights = point[:-1].astype(precision)
        bias = np.float64(point[-1])
        shrink = penalty * point[:-1]
        value = shrink @ point[:-1] / 2
        pull = 0.0
        gradient = shrink
        for rows in blocks:
            part = columns[rows].T
            logits = gemv(1, part, weights, trans=True) + bias
            loss_there, slope = LOSSES[loss](logits, target[rows], shares[rows])
            value += loss_there
            pull += slope.sum()
            gradient += gemv(1, part, slope.astype(precision))
        return float(value), np.append(gradient, pull)

    def newton(gradient: Floats) -> Floats:
        return scale * np.append(solve(gradient[:-1]), gradient[-1] / CURVATURE[loss])

    if start is None:
        mean = float(np.clip(shares @ target, 1e-3, 1 - 1e-3))
        start = np.zeros(columns.shape[1]), float(np.log(mean / (1 - mean)))
    point = np.append(*start)
    value, gradient = objective(point)
    scale = 1.0
    memory = deque[tuple[Floats, Floats]](maxlen=_MEMORY)
    for _ in range(_ITERATIONS):
        step = -_two_loops(gradient, memory, newton)
        fall = -(gradient @ step)  # twice what the step promises
        if fall <= 2 * tolerance:
            if fall > 0:
                point = point + step
            break
        rounding = np.finfo(precision).eps * abs(value)
        for size in 0.5 ** np.arange(30):
            there = point + size * step
            value_there, gradient_there = objective(there)
            if value_there <= value - 1e-4 * size * fall + rounding:
                break
        else:
            break
        moved = there - point
        change = gradient_there - gradient
        if moved @ change > 0:
            if not memory:  # midway from the bound of the curvature to what the first step met
                scale = float(np.sqrt(moved @ change / (change @ newton(change))))
            memory.append((moved, change))
        point = there
        value = value_there
        gradient = gradient_there
    is_done = 0 <= fall <= 2 * tolerance
    if precision == np.float32 and not is_done:  # too coarse for features that cancel one another
        start = point[:-1], float(point[-1])
        return minimise(
            loss, columns.astype(np.float64), target, shares, penalty, solve, start=start
        )
    if not abs(fall) <= 2 * (tolerance + _ROUNDING):  # NaN neither
        raise InputError(
            "the probe does not come to its optimum; standardize the features or raise weight_decay"
        )
    return point[:-1], float(point[-1])


def _two_loops(gradient: Floats, memory: Sequence[tuple[Floats, Floats]], newton: Solve) -> Floats:
    """Apply the inverse curvature that the steps and the gradients' changes along them tell
    (Nocedal 1980).
    """
    passed = []
    for step, change in reversed(memory):
        share = step @ gradient / (step @ change)
        gradient = gradient - share * change
        passed.append((share, step, change))
    result = newton(gradient)
    for share, step, change in reversed(passed):
        result += (share - change @ result / (step @ change)) * step
    return result


def _factor(columns: Matrix, curvature: float, spread: Floats, penalty: Floats) -> Solve:
    """Solve with the curvature bound, in units in which each feature's part of it is 1."""
    from scipy.linalg import blas, cho_factor, cho_solve

    units = np.divide(1, np.sqrt(spread + penalty), out=np.zeros_like(spread), where=spread > 0)
    (syrk,) = blas.get_blas_funcs(("syrk",), (columns,))
    bound = np.zeros((len(units), len(units)), dtype=columns.dtype, order="F")
    for rows in _blocks(columns):
        part = (columns[rows] * units).astype(columns.dtype)
        share = curvature / len(columns)
        bound = syrk(share, part.T, beta=1, c=bound, overwrite_c=True)  # upper triangle
    ridge = penalty * units**2 + np.sqrt(np.finfo(bound.dtype).eps)
    bound[np.diag_indices_from(bound)] += ridge.astype(bound.dtype)
    factor = cho_factor(bound, overwrite_a=True, check_finite=False)

    def solve(gradient: Floats) -> Floats:
        scaled = (units * gradient).astype(bound.dtype)
        return units * cho_solve(factor, scaled, check_finite=False)

    return solve


def _sketch(
    columns: Matrix, curvature: float, spread: Floats, penalty: Floats, *, own: bool
) -> Solve:
    """Solve with the curvature of a spread of questions, S'S, plus a diagonal, by Woodbury's
    identity.

    What they leave out is spread over the features, by their ``own`` curvature or evenly.
    """
    from scipy.linalg import blas, cho_factor, lapack

    size = min(len(columns), _SKETCH)
    missed = max(_MISSED * (1 - size / len(columns)), _FLOOR)
    left_out = spread
    if not own:
        left_out = np.maximum(np.median(spread), spread / _HUGE)
    diagonal = penalty + missed * left_out
    units = np.divide(1, np.sqrt(diagonal), out=np.zeros_like(spread), where=spread > 0)
    chosen = np.linspace(0, len(columns) - 1, size).round().astype(int)
    rows = columns[chosen]
    rows *= (units * np.sqrt((1 - missed) * curvature / size)).astype(rows.dtype)
    syrk, gemv, trmv = blas.get_blas_funcs(("syrk", "gemv", "trmv"), (rows,))
    (trtri,) = lapack.get_lapack_funcs(("trtri",), (rows,))
    inner = syrk(1, rows.T, trans=True)  # upper triangle
    inner[np.diag_indices_from(inner)] += 1 + np.finfo(inner.dtype).eps * np.trace(inner)
    factor, _ = cho_factor(inner, overwrite_a=True, check_finite=False)
    root, _ = trtri(factor, overwrite_c=True)  # root root' is the inverse

    def solve(gradient: Floats) -> Floats:
        scaled = (units * gradient).astype(rows.dtype)
        met = gemv(1, rows.T, scaled, trans=True)
        explained = trmv(root, trmv(root, met, trans=True))
        return units * (scaled - gemv(1, rows.T, explained))

    return solve


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
