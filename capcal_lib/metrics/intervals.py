"""Intervals for one question's expected accuracy and for means over questions, and comparisons of
methods.

:func:`mean_interval` and :func:`compare` are *for questions like these*: whole questions vary, and
their counts go along, so that they hold both the error of sampling and that of the choice of
questions.

``level`` is the nominal coverage, between 0 and 1. ``rng`` is a :class:`numpy.random.Generator`.
``clusters`` holds a label a question, for questions that belong together, such as MMLU subjects:
whole clusters vary. Everything else that is out of range, of unequal length or infinite is refused
with an :class:`~capcal_lib.errors.InputError`."""

from __future__ import annotations  # keeps ArrayLike short in help()

import math
import warnings
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError, unknown
from capcal_lib.metrics.validation import (
    Floats,
    Ints,
    align_index,
    as_confidence,
    as_counts,
    as_numbers,
    check_int,
    check_rows,
    check_share,
    same_length,
)

if TYPE_CHECKING:
    import pandas as pd

BinomialMethod = Literal["jeffreys", "wilson", "clopper-pearson", "wald"]
RESAMPLES = 10_000
MANY = 1_000  # questions or clusters from which closed forms are as good as resampling
CARRIED_BY = 6  # fewer questions than these that carry the variance are few
NO_RESAMPLING = 3  # fewer than these are too few to resample


class Interval(NamedTuple):
    """An estimate and its interval; the limits are NaN where they cannot be known."""

    estimate: float
    low: float
    high: float

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # as a notebook shows it
        printer.text(
            f"Interval(estimate={self.estimate:.4g}, low={self.low:.4g}, high={self.high:.4g})"
        )


class FewQuestionsWarning(UserWarning):
    """A few questions carry the variance of a mean, so that its interval cannot be trusted to cover
    as it says.
    """


def binomial_interval(
    correct: ArrayLike,
    total: ArrayLike,
    *,
    method: BinomialMethod = "jeffreys",
    level: float = 0.95,
) -> Floats:
    """Return low and high limits of each question's expected accuracy mu, shape (n_questions, 2).

    ``jeffreys``: equal-tailed under a Beta(1/2, 1/2) prior; ``wilson``: the score test inverted;
    ``clopper-pearson``: never covers less than ``level``; ``wald``: the paper's mu_hat +- z sd,
    which may leave [0, 1] and has no width at mu_hat = 0 or 1. All but Wald start at exactly 0
    where no sample is correct and end at exactly 1 where all are. A question without scored samples
    has NaN limits.

    References: the paper, appendix "The choice of k_eval"; Brown, Cai and DasGupta, "Interval
    estimation for a binomial proportion", Statistical Science 16 (2001).

    >>> binomial_interval([0, 50], 100).round(4)
    array([[0.    , 0.0247],
           [0.4032, 0.5968]])
    """
    from scipy.stats import beta  # slow to import

    if method not in get_args(BinomialMethod):
        raise unknown("interval method", method, get_args(BinomialMethod))
    hits, samples = as_counts(correct, total)
    z, tail = _z(level), (1 - level) / 2
    c, n = hits.astype(np.float64), np.where(samples > 0, samples, np.nan)
    mu = c / n
    if method == "wald":
        half_width = z * np.sqrt(mu * (1 - mu) / n)
        return np.column_stack([mu - half_width, mu + half_width])
    if method == "wilson":
        centre = (mu + z**2 / (2 * n)) / (1 + z**2 / n)
        half_width = z * np.sqrt(mu * (1 - mu) / n + (z / (2 * n)) ** 2) / (1 + z**2 / n)
        low, high = centre - half_width, centre + half_width
    else:  # beta quantiles: both of one posterior, or of two that are a success apart
        apart = 0.5 if method == "jeffreys" else 1.0
        low, high = (
            beta.ppf(tail, c + 1 - apart, n - c + apart),
            beta.ppf(1 - tail, c + apart, n - c + 1 - apart),
        )
    return np.column_stack([np.where(c == 0, 0 * n, low), np.where(c == n, 1.0, high)])


def coverage_probability(
    expected_accuracy: ArrayLike,
    k_eval: int,
    *,
    method: BinomialMethod = "jeffreys",
    level: float = 0.95,
) -> Floats:
    """Return how often an interval from k_eval samples holds each mu, shape (n,), summed exactly
    over the counts.

    Near ``level`` is good, below it the interval promises too much. See :func:`binomial_interval`.

    >>> coverage_probability([0.01, 0.5], 100, method="wald").round(3)
    array([0.633, 0.943])
    """
    from scipy.stats import binom  # slow to import

    mu = as_confidence(expected_accuracy)[:, None]
    correct = np.arange(check_int("k_eval", k_eval, least=1) + 1)
    low, high = binomial_interval(correct, k_eval, method=method, level=level).T
    chance = binom.pmf(
        correct, k_eval, np.where(mu < 1e-300, 0, mu)
    )  # scipy overflows at the smallest floats
    return (chance * ((low <= mu) & (mu <= high))).sum(axis=1)


def mean_interval(
    terms: ArrayLike,
    *,
    rng: np.random.Generator,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
) -> Interval:
    """Return the mean of one term a question with its interval *for questions like these*.

    ``terms``, shape (n_questions,), are for instance
    :func:`~capcal_lib.metrics.capability_brier_terms`, or the difference of two methods' terms; NaN
    is not scored and left out. They should not exceed 1 (nor fall below -1).

    Below 1,000 questions (or clusters) the limits are those of the studentised bootstrap, but never
    further out than what unseen questions can do: a share of them drawn from Beta(1/2, n + 1/2),
    with terms of 1 (or -1). Where all terms are equal, only the latter is left, with unseen terms
    in [0, 1], or in [-1, 1] if the terms are negative: the limit of Jeffreys' interval, and no
    interval of no width. From 1,000 on they are normal, corrected for skewness, in closed form. A
    single question, which says nothing about its spread, has NaN limits.

    Rare gross misses are covered only where some were seen. A :class:`FewQuestionsWarning` says so
    where the variance comes from a few questions; where it comes from fewer than three, the limit
    is that of unseen questions.

    References: Efron and Tibshirani, "An introduction to the bootstrap" (1993), section 12.5; Hall,
    "On the removal of skewness by transformation", Journal of the Royal Statistical Society B 54
    (1992).

    >>> interval = mean_interval([0.0, 0.2, 0.1, 0.3, 0.2, 0.0, 0.1, 0.2] * 4,
    ...     rng=np.random.default_rng(0))
    >>> [round(value, 2) for value in interval]
    [0.14, 0.1, 0.17]
    """
    _check(rng, level)
    terms, *labels = align_index(
        terms=terms, **({} if clusters is None else {"clusters": clusters})
    )
    sums, sizes = _units(_finite("term", terms)[:, None], *labels)
    if not len(sums):
        return Interval(math.nan, math.nan, math.nan)
    means = _Means(sums, sizes)
    draws = means.resample(rng) if 1 < len(sums) < MANY else None
    (low,), (high,) = _limits(means, draws, level, stacklevel=3)
    return Interval(float(means.estimate[0]), float(low), float(high))


def compare(
    terms: pd.DataFrame,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    clusters: ArrayLike | None = None,
) -> pd.DataFrame:
    """Compare methods on the questions that all of them have: which may be the best, that is have
    the lowest mean?

    ``terms`` has a row a question and a column a method, NaN where it is not scored. A column
    without any term is left out of the comparison: its row is NaN and ``may_be_best`` False. Where
    nothing is common, so are all.

    Returns a row a method, in the order of the columns: ``estimate``, ``low``, ``high`` as from
    :func:`mean_interval`, and ``may_be_best``: not significantly worse than any other. The methods
    so marked hold the best one with confidence ``level``, however many there are: a method is
    excluded where its largest studentised difference from another exceeds the quantile of the
    largest one that resampling the questions gives.

    References: Hsu, "Multiple comparisons: theory and methods" (1996), chapter 4; Romano and Wolf,
    "Stepwise multiple testing as formalized data snooping", Econometrica 73 (2005).

    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> good, bad = rng.random(200) / 4, rng.random(200)
    >>> compare(pd.DataFrame({"good": good, "bad": bad}), rng=rng)["may_be_best"].tolist()
    [True, False]
    """
    import pandas as pd  # slow to import

    _check(rng, level)
    if not isinstance(terms, pd.DataFrame) or not terms.size:
        raise InputError("terms must be a DataFrame with a row a question and a column a method")
    values = np.column_stack([_finite(str(name), column) for name, column in terms.items()])
    _, *labels = align_index(terms=terms, **({} if clusters is None else {"clusters": clusters}))
    result = pd.DataFrame(
        {"estimate": np.nan, "low": np.nan, "high": np.nan, "may_be_best": False}, terms.columns
    )
    there = ~np.isnan(values).all(axis=0)
    sums, sizes = _units(values[:, there], *labels)
    if not there.any() or not len(sums):
        return result
    means = _Means(sums, sizes)
    draws = means.resample(rng) if len(sums) > 1 else None
    low, high = _limits(means, draws if len(sums) < MANY else None, level, stacklevel=3)
    best = np.ones(there.sum(), dtype=bool) if draws is None else _may_be_best(means, draws, level)
    for name, column in {
        "estimate": means.estimate,
        "low": low,
        "high": high,
        "may_be_best": best,
    }.items():
        result.loc[there, name] = column
    return result


def variance_of_mean(terms: Floats, clusters: ArrayLike | None = None) -> float:
    """Return the estimated variance of the mean of terms without NaN over questions, or over
    clusters.

    >>> (variance_of_mean(np.array([0.0, 1.0, 0.0, 1.0])),
    ...     variance_of_mean(np.array([0.0, 1.0, 0.0, 1.0]), [1, 2, 1, 2]))
    (0.08333333333333333, 0.25)
    """
    return float(_Means(*_units(terms[:, None], clusters)).covariance[0, 0])


class _Draws(NamedTuple):
    """Means less the estimates, (resamples, columns), and their estimated covariance, (resamples,
    columns, columns).
    """

    shift: Floats
    covariance: Floats


class _Means:
    """Means of columns of terms over units (questions or clusters), and their covariance."""

    def __init__(self, sums: Floats, sizes: Floats) -> None:
        """Take the sum of each unit's terms in each column, and how many they are."""
        self.sizes = sizes
        self.estimate = sums.sum(axis=0) / sizes.sum()
        self.residuals = sums - sizes[:, None] * self.estimate
        self.residuals[np.abs(self.residuals) < 1e-12 * np.maximum(1, np.abs(self.estimate))] = (
            0  # rounding
        )
        self.covariance = _covariance(self.residuals.T @ self.residuals, len(sizes), sizes.sum())

    def resample(self, rng: np.random.Generator) -> _Draws:
        """Draw as many units as there are, with replacement; from many units, draw from the normal
        limit.
        """
        units, columns = self.residuals.shape
        if units >= MANY:
            shift = rng.multivariate_normal(
                np.zeros(columns), self.covariance, RESAMPLES, method="eigh"
            )
            return _Draws(shift, np.broadcast_to(self.covariance, (RESAMPLES, columns, columns)))
        e, m = self.residuals, self.sizes[:, None]
        products = (e[:, :, None] * e[:, None, :]).reshape(units, -1)
        drawn = _resampled(np.hstack([m, m**2, e, e * m, products]), rng, RESAMPLES)
        size, squares, total, cross, products = np.split(
            drawn, [1, 2, 2 + columns, 2 + 2 * columns], axis=1
        )
        shift = total / size
        # Products of residuals about the means of the resample.
        twice = shift[:, :, None] * cross[:, None, :]
        about = products.reshape(-1, columns, columns) - twice - twice.transpose(0, 2, 1)
        about += squares[:, :, None] * shift[:, :, None] * shift[:, None, :]
        return _Draws(shift, _covariance(about, units, size[:, :, None]))


def _covariance(products: Floats, units: int, questions: Floats) -> Floats:
    return products * (units / max(1, units - 1)) / questions**2


def _limits(
    means: _Means, draws: _Draws | None, level: float, *, stacklevel: int
) -> tuple[Floats, Floats]:
    """Return the limits of each column's mean, from draws or in closed form, and warn where few
    units carry it.
    """
    units, columns = means.residuals.shape
    error, tails = np.sqrt(np.diag(means.covariance)), ((1 - level) / 2, (1 + level) / 2)
    limits, few = np.full((2, columns), np.nan), []
    for j in range(columns if units > 1 else 0):
        e, estimate = means.residuals[:, j], float(means.estimate[j])
        if error[j] == 0:
            limits[:, j] = _unseen(
                np.array([estimate]), units, tails, bottom=0 if estimate >= 0 else -1
            )
            continue
        carriers = (e @ e) ** 2 / (e**4).sum()
        if draws is None:
            limits[:, j] = estimate - _skewed_quantiles(e, level) * error[j]
            warned = carriers < CARRIED_BY
        else:
            shift, own = draws.shift[:, j], np.sqrt(np.maximum(draws.covariance[:, j, j], 0))
            t = _ratio(shift, np.where(own > 1e-6 * error[j], own, 0))
            studentised = estimate - error[j] * np.quantile(
                t, tails[::-1], method="closest_observation"
            )
            furthest = _unseen(estimate + shift, units, tails)
            beyond = np.array([studentised[0] <= furthest[0], studentised[1] >= furthest[1]])
            if carriers < NO_RESAMPLING:
                beyond[int((e**3).sum() >= 0)] = True  # the side on which the few lie
            limits[:, j] = np.where(beyond, furthest, studentised)
            warned = carriers < CARRIED_BY and beyond.any()
        if warned:
            few.append(round(carriers))
    if few:
        warnings.warn(
            f"the variance of a mean comes from about {min(few)} of {units} questions or "
            "clusters: more of their kind "
            "may be unseen, and the interval too narrow",
            FewQuestionsWarning,
            stacklevel=stacklevel,
        )
    return limits[0], limits[1]


def _unseen(means: Floats, units: int, tails: tuple[float, float], *, bottom: float = -1) -> Floats:
    """Return low and high quantiles of the means of resamples when a share of unseen units has the
    extreme terms.
    """
    from scipy.special import betaincinv  # slow to import

    # Spread evenly over the resamples, which come in no order; for a single mean, the quantile
    # itself.
    ranks = tails[1] if len(means) == 1 else (np.arange(len(means)) + 0.5) / len(means)
    share = betaincinv(0.5, units + 0.5, ranks)
    low = (1 - share) * means + share * min(bottom, means.min())
    high = (1 - share) * means + share * max(1, means.max())
    return np.array([np.quantile(low, tails[0]), np.quantile(high, tails[1])])


def _skewed_quantiles(residuals: Floats, level: float) -> Floats:
    """Return high and low quantiles of the studentised mean, by Hall's cubic transformation to a
    normal variable.
    """
    z = np.array([_z(level), -_z(level)])
    skewness = (residuals**3).sum() / (residuals @ residuals) ** 1.5  # of the mean
    if abs(skewness) < 1e-6:
        return z
    return 3 / skewness * (np.cbrt(1 + skewness * (z - skewness / 6)) - 1)


def _may_be_best(means: _Means, draws: _Draws, level: float) -> Floats:
    """Return which columns are not significantly above any other, by the distribution of the
    largest difference.
    """

    def studentised(mean: Floats, covariance: Floats) -> Floats:
        variance = np.diagonal(covariance, axis1=-2, axis2=-1)
        of_difference = variance[..., :, None] + variance[..., None, :] - 2 * covariance
        scale = 1e-12 * (variance[..., :, None] + variance[..., None, :])  # rounding
        difference = mean[..., :, None] - mean[..., None, :]
        return _ratio(difference, np.sqrt(np.where(of_difference > scale, of_difference, 0)))

    observed = studentised(means.estimate, means.covariance)
    # A pair that differs by a constant has no distribution to be compared with.
    known = np.isfinite(observed)
    drawn = np.where(known, studentised(draws.shift, draws.covariance), 0).max(axis=2)
    critical = np.quantile(drawn, level, axis=0, method="closest_observation")
    return ~(observed > critical[:, None]).any(axis=1)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; over 0 it is infinite, with the sign of the numerator, or 0 if that is 0 up to
    rounding.
    """
    sign = np.where(np.abs(numerator) > 1e-12, np.sign(numerator), 0)
    infinite = np.multiply(sign, np.inf, out=np.zeros_like(sign), where=sign != 0)
    return np.divide(numerator, denominator, out=infinite, where=denominator > 0)


def _units(values: Floats, clusters: ArrayLike | None = None) -> tuple[Floats, Floats]:
    """Return the sums of each unit's rows without NaN, (n_units, n_columns), and how many they are,
    (n_units,).
    """
    scored = ~np.isnan(values).any(axis=1)
    if clusters is None:
        return values[scored], np.ones(scored.sum())
    codes = np.unique(_cluster_codes(clusters, len(values))[scored], return_inverse=True)[1]
    sizes = np.bincount(codes)
    columns = [
        np.bincount(codes, weights=column, minlength=len(sizes)) for column in values[scored].T
    ]
    return np.column_stack(columns), sizes.astype(np.float64)


def _cluster_codes(clusters: ArrayLike, questions: int) -> Ints:
    """Number the clusters, in the order of their first questions."""
    import pandas as pd  # slow to import

    if np.ndim(clusters) != 1:
        raise InputError(
            "clusters must be one-dimensional, one label per question; got shape "
            f"{np.shape(clusters)}"
        )
    codes, _ = pd.factorize(pd.Series(clusters))
    same_length(terms=np.empty(questions), clusters=codes)
    if (codes < 0).any():
        raise InputError(
            f"row {int(np.argmax(codes < 0))}: the cluster label is missing (the first row is 0)"
        )
    return codes.astype(np.int64)


def _resampled(columns: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    """Draw as many rows as there are, with replacement, often; return the sums, (resamples,
    n_columns).
    """
    units = len(columns)
    sums = np.empty((resamples, columns.shape[1]))
    rows = max(1, 300_000 // units)  # a block of draws that stays in cache
    for start in range(0, resamples, rows):
        block = sums[start : start + rows]
        drawn = (
            rng.integers(units, size=(len(block), units)) + units * np.arange(len(block))[:, None]
        )
        block[:] = (
            np.bincount(drawn.ravel(), minlength=units * len(block)).reshape(-1, units) @ columns
        )
    return sums


def _finite(name: str, values: ArrayLike) -> Floats:
    numbers = as_numbers(name, values)
    check_rows(name, numbers, np.isinf(numbers), "but must be finite")
    return numbers


def _z(level: float) -> float:
    """Return the normal quantile of a two-sided interval, 1.96 for 0.95."""
    from scipy.special import ndtri  # slow to import

    return float(ndtri((1 + check_share("level", level)) / 2))


def _check(rng: np.random.Generator, level: float) -> None:
    if not isinstance(rng, np.random.Generator):
        raise InputError(
            "rng must be a numpy random generator, such as np.random.default_rng(0); got "
            f"{rng!r:.40}"
        )
    check_share("level", level)
