"""Intervals for one question's expected accuracy and for means over questions.

:func:`mean_interval` is *for questions like these*: whole questions vary, and their counts go
along, so that it holds both the error of sampling and that of the choice of questions.

``level`` is the nominal coverage, between 0 and 1. Resampling follows ``seed``, or an explicit
:class:`numpy.random.Generator` as ``rng``. ``clusters`` holds a label a question, for questions
that belong together, such as MMLU subjects: whole clusters vary. Everything else that is out of
range, of unequal length or infinite is refused with an :class:`~capcal_lib.errors.InputError`."""

from __future__ import annotations  # keeps ArrayLike short in help()

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

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

BinomialMethod = Literal["jeffreys", "wilson", "clopper-pearson", "wald"]
Source = np.random.Generator | int  # of what is drawn: a generator, or a seed
Counts = NDArray[np.uint16]
RESAMPLES = 10_000
MANY = 1_000  # questions or clusters from which closed forms are as good as resampling
CARRIED_BY = 6  # fewer questions than these that carry the variance are few
NO_RESAMPLING = 3  # fewer than these are too few to resample
KEPT = 8  # draws that are kept for the next mean over as many units
FILLED = 0.04  # gross misses that the spread of the terms amounts to, from which none is added
RESOLVED = 0.996  # a level above which 10,000 resamples do not tell the limits


class Interval(NamedTuple):
    """An estimate and its interval; the limits are NaN where they cannot be known."""

    estimate: float
    low: float
    high: float
    few: bool = False  # a handful of questions carries it: it may be too narrow

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # as a notebook shows it
        few = ", few=True" if self.few else ""
        printer.text(
            f"Interval(estimate={self.estimate:.4g}, low={self.low:.4g}, high={self.high:.4g}{few})"
        )


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
    z = _z(level)
    tail = (1 - level) / 2
    c = hits.astype(np.float64)
    n = np.where(samples > 0, samples, np.nan)
    mu = c / n
    variance = mu * (1 - mu) / n
    if method == "wald":
        half_width = z * np.sqrt(variance)
        return np.column_stack([mu - half_width, mu + half_width])
    if method == "wilson":
        shrinkage = 1 + z**2 / n
        centre = (mu + z**2 / (2 * n)) / shrinkage
        half_width = z * np.sqrt(variance + (z / (2 * n)) ** 2) / shrinkage
        low = centre - half_width
        high = centre + half_width
    else:  # beta quantiles: both of one posterior, or of two that are a success apart
        apart = 0.5 if method == "jeffreys" else 1.0
        low = beta.ppf(tail, c + 1 - apart, n - c + apart)
        high = beta.ppf(1 - tail, c + apart, n - c + 1 - apart)
    low = np.where(c == 0, 0 * n, low)
    high = np.where(c == n, 1.0, high)
    return np.column_stack([low, high])


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
    normal = np.where(mu < 1e-300, 0, mu)  # scipy overflows at the smallest floats
    chance = binom.pmf(correct, k_eval, normal)
    holds = (low <= mu) & (mu <= high)
    return (chance * holds).sum(axis=1)


def mean_interval(
    terms: ArrayLike,
    *,
    rng: np.random.Generator | None = None,
    seed: int = 0,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> Interval:
    """Return the mean of one term a question with its interval *for questions like these*.

    ``terms``, shape (n_questions,), are for instance
    :func:`~capcal_lib.metrics.capability_brier_terms`, or the difference of two methods' terms; NaN
    is not scored and left out. ``bounds`` are the least and the largest value that their mean can
    have at all: (0, 1) for a Brier score or an accuracy, (-1, 1) for a difference of two. None
    takes (0, 1) where no term is negative, else (-1, 1), and what was seen where the terms lie
    outside; so say (-1, 1) for a difference. No limit lies beyond them, unless the
    estimate itself does.

    Below 1,000 questions (or clusters) the limits are those of the studentised bootstrap, from
    there on normal, corrected for skewness, in closed form. Both only know what was seen. So every
    limit also reaches as far as unseen questions may take the mean: a share of them, drawn from
    Beta(1/2, n + 1/2), with terms at the bound, as in Jeffreys' interval. That counts in full
    where the terms hardly spread, as on a data set of which next to nothing is solved, and less the
    more of their range the seen terms fill. Where all terms are equal, it is all there is. A single
    question, which says nothing about its spread, has NaN limits.

    ``few`` says that the variance comes from a handful of questions.

    References: Efron and Tibshirani, "An introduction to the bootstrap" (1993), section 12.5; Hall,
    "On the removal of skewness by transformation", Journal of the Royal Statistical Society B 54
    (1992).

    >>> interval = mean_interval([0.0, 0.2, 0.1, 0.3, 0.2, 0.0, 0.1, 0.2] * 4)
    >>> [round(value, 2) for value in interval[:3]]
    [0.14, 0.1, 0.17]
    """
    source = source_of(rng, seed)
    check_share("level", level)
    given = {} if clusters is None else {"clusters": clusters}
    terms, *labels = align_index(terms=terms, **given)
    values = finite("term", terms)
    sums, sizes = units_of(values[:, None], *labels)
    if not len(sizes):
        return Interval(math.nan, math.nan, math.nan)
    means = Means(sums, sizes)
    draws = means.resample(source) if 1 < len(sizes) < MANY else None
    column = means.column(0, draws, range_of(values, bounds))
    return column.interval(level)


def range_of(terms: Floats, bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Return the bounds of a mean: those given, or what the terms suggest."""
    if bounds is not None:
        bottom, top = bounds
        if not bottom < top:
            raise InputError(f"bounds must be a lower and a higher number; got {bounds!r:.60}")
        return bottom, top
    known = terms[~np.isnan(terms)]
    if (np.abs(known) > 1).any():
        return float(known.min()), float(known.max())
    if (known >= 0).all():
        return 0.0, 1.0
    return -1.0, 1.0


def variance_of_mean(terms: Floats, clusters: ArrayLike | None = None) -> float:
    """Return the estimated variance of the mean of terms without NaN over questions, or over
    clusters.

    >>> (variance_of_mean(np.array([0.0, 1.0, 0.0, 1.0])),
    ...     variance_of_mean(np.array([0.0, 1.0, 0.0, 1.0]), [1, 2, 1, 2]))
    (0.08333333333333333, 0.25)
    """
    return float(Means(*units_of(terms[:, None], clusters)).covariance[0, 0])


def _between(ordered: Floats, place: float) -> float:
    """Return the value at a place between two."""
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    step = ordered[above] - ordered[below]
    return float(ordered[below] + (place - below) * step)


@dataclass(frozen=True, eq=False)
class Column:
    """The mean of a column of terms, and what its limits are taken from."""

    estimate: float
    error: float
    residuals: Floats  # of each unit, in the unit of a term
    bounds: tuple[float, float]
    t: Floats | None = None  # studentised means of the resamples; without, closed form
    shift: Floats | None = None  # the means of the resamples, less the estimate

    @cached_property
    def carriers(self) -> float:
        """Count the units that carry the variance."""
        squares = self.residuals**2
        fourth = (squares**2).sum()
        return float(squares.sum() ** 2 / max(fourth, 1e-300))

    @cached_property
    def skewness(self) -> float:
        """Return the skewness of the mean."""
        spread = self.residuals @ self.residuals
        return float((self.residuals**3).sum() / max(spread**1.5, 1e-300))

    def interval(self, level: float) -> Interval:
        """Return the estimate with its limits."""
        low, high = self.limits(level)
        return Interval(
            estimate=self.estimate,
            low=low,
            high=high,
            few=self.error > 0 and self.carriers < CARRIED_BY,
        )

    def limits(self, level: float) -> tuple[float, float]:
        """Return limits that reach as far as the seen and the unseen units may take the mean."""
        if len(self.residuals) < 2:
            return math.nan, math.nan
        low = high = self.estimate
        if self.error > 0:
            low, high = self.seen(level)
        below, above = self.unseen(level)
        bottom, top = self.bounds
        low = max(min(low, below), min(bottom, self.estimate))
        high = min(max(high, above), max(top, self.estimate))
        return low, high

    def unseen(self, level: float) -> tuple[float, float]:
        """Return how far unseen units with terms at the bounds may take the mean."""
        from scipy.special import betaincinv  # slow to import

        share = betaincinv(0.5, len(self.residuals) + 0.5, (1 + level) / 2)
        reach = np.array(self.bounds) - self.estimate
        filled = self.residuals @ self.residuals / np.maximum(reach**2, 1e-300)
        counted = np.maximum(0, 1 - filled / FILLED)
        below, above = self.estimate + share * counted * reach
        return float(below), float(above)

    def seen(self, level: float) -> tuple[float, float]:
        """Return the studentised limits, but none further out than a percentile with the unseen."""
        if self.t is None or level > RESOLVED:
            return self._closed_form(level)
        tail = (1 - level) / 2
        last = len(self._sorted) - 1
        # The closest observations, and percentiles between two.
        places = np.array([1 - tail, tail]) * (last + 1)
        nearest = np.maximum(np.round(places).astype(int) - 1, 0)
        low, high = self.estimate - self.error * self._sorted[nearest]
        with_low, with_high = self._furthest
        lowest = _between(with_low, tail * last)
        highest = _between(with_high, (1 - tail) * last)
        if self.carriers < NO_RESAMPLING:
            if self.skewness < 0:
                low = lowest
            else:
                high = highest
        return float(max(low, lowest)), float(min(high, highest))

    @cached_property
    def _sorted(self) -> Floats:
        return np.sort(np.asarray(self.t))

    @cached_property
    def _furthest(self) -> tuple[Floats, Floats]:
        """Return means of resamples with a share of unseen units at either bound, in order."""
        means = self.estimate + np.asarray(self.shift)
        share = _unseen_shares(len(self.residuals), len(means))
        bottom, top = self.bounds
        low = (1 - share) * means + share * min(bottom, means.min())
        high = (1 - share) * means + share * max(top, means.max())
        return np.sort(low), np.sort(high)

    def _closed_form(self, level: float) -> tuple[float, float]:
        """Return the limits by Hall's cubic transformation to a normal variable, or Student's t."""
        from scipy.special import stdtrit  # slow to import

        units = len(self.residuals)
        z = _z(level) if units >= MANY else stdtrit(units - 1, (1 + level) / 2)
        quantiles = np.array([z, -z])
        if abs(self.skewness) > 1e-6:
            inner = 1 + self.skewness * (quantiles - self.skewness / 6)
            quantiles = 3 / self.skewness * (np.cbrt(inner) - 1)
        low, high = self.estimate - self.error * quantiles
        return float(low), float(high)

    def p_value(self) -> float:
        """Return the least 1 - level at which the limits leave out 0, down to 1e-12."""
        if not np.isfinite(self.limits(0.5)[0]):
            return math.nan
        least = -12.0  # powers of ten
        most = 0.0
        for _ in range(30):
            middle = (least + most) / 2
            low, high = self.limits(1 - 10**middle)
            if low > 0 or high < 0:
                most = middle
            else:
                least = middle
        return float(10**most)


class Draws(NamedTuple):
    """Means less the estimates, (resamples, columns), and their estimated covariance, (resamples,
    columns, columns).
    """

    shift: Floats
    covariance: Floats


class Means:
    """Means of columns of terms over units (questions or clusters), and their covariance."""

    def __init__(self, sums: Floats, sizes: Floats) -> None:
        """Take the sum of each unit's terms in each column, and how many they are."""
        self.sizes = sizes
        self.estimate = sums.sum(axis=0) / sizes.sum()
        self.residuals = sums - sizes[:, None] * self.estimate
        rounding = 1e-12 * np.maximum(1, np.abs(self.estimate))
        self.residuals[np.abs(self.residuals) < rounding] = 0
        self.covariance = covariance_of(self.residuals.T @ self.residuals, len(sizes), sizes.sum())

    def resample(self, source: Source) -> Draws:
        """Draw as many units as there are, with replacement; from many units, draw from the normal
        limit.
        """
        units, columns = self.residuals.shape
        if units >= MANY:
            rng = np.random.default_rng(source)
            shift = rng.multivariate_normal(
                np.zeros(columns), self.covariance, RESAMPLES, method="eigh"
            )
            covariance = np.broadcast_to(self.covariance, (RESAMPLES, columns, columns))
            return Draws(shift, covariance)
        e = self.residuals
        m = self.sizes[:, None]
        products = (e[:, :, None] * e[:, None, :]).reshape(units, -1)
        summed = np.hstack([m, m**2, e, e * m, products])
        drawn = _sums(_draw(units, source), summed)
        ends = [1, 2, 2 + columns, 2 + 2 * columns]
        size, squares, total, cross, products = np.split(drawn, ends, axis=1)
        shift = total / size
        # Products of residuals about the means of the resample.
        twice = shift[:, :, None] * cross[:, None, :]
        about = products.reshape(-1, columns, columns) - twice - twice.transpose(0, 2, 1)
        about += squares[:, :, None] * shift[:, :, None] * shift[:, None, :]
        return Draws(shift, covariance_of(about, units, size[:, :, None]))

    def column(self, at: int, draws: Draws | None, bounds: tuple[float, float]) -> Column:
        """Return what the limits of a column's mean are taken from; without draws, closed form."""
        size = self.sizes.sum() / len(self.sizes)
        error = float(np.sqrt(self.covariance[at, at]))
        column = Column(
            estimate=float(self.estimate[at]),
            error=error,
            residuals=self.residuals[:, at] / size,
            bounds=bounds,
        )
        if draws is None or error == 0:
            return column
        own = np.sqrt(np.maximum(draws.covariance[:, at, at], 0))
        shift = draws.shift[:, at]
        t = ratio(shift, np.where(own > 1e-6 * error, own, 0))
        return replace(column, t=t, shift=shift)


def covariance_of(products: Floats, units: int, questions: Floats) -> Floats:
    return products * (units / max(1, units - 1)) / questions**2


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; over 0 it is infinite, with the sign of the numerator, or 0 if that is 0 up to
    rounding.
    """
    sign = np.where(np.abs(numerator) > 1e-12, np.sign(numerator), 0)
    infinite = np.multiply(sign, np.inf, out=np.zeros_like(sign), where=sign != 0)
    return np.divide(numerator, denominator, out=infinite, where=denominator > 0)


def units_of(values: Floats, clusters: ArrayLike | None = None) -> tuple[Floats, Floats]:
    """Return the sums of each unit's rows without NaN, (n_units, n_columns), and how
    many they are, (n_units,).
    """
    scored = ~np.isnan(values).any(axis=1)
    if clusters is None:
        return values[scored], np.ones(scored.sum())
    labels = _cluster_codes(clusters, len(values))
    _, codes = np.unique(labels[scored], return_inverse=True)
    sizes = np.bincount(codes)
    columns = [np.bincount(codes, weights=column) for column in values[scored].T]
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


def _draw(units: int, source: Source) -> Counts:
    """Draw as many units as there are, with replacement, often; see :func:`_draw_anew`."""
    if isinstance(source, np.random.Generator):
        return _draw_anew(units, source, RESAMPLES)
    return _draw_of_seed(units, source, RESAMPLES)


@lru_cache(KEPT)
def _draw_of_seed(units: int, seed: int, resamples: int) -> Counts:
    return _draw_anew(units, np.random.default_rng(seed), resamples)


def _draw_anew(units: int, rng: np.random.Generator, resamples: int) -> Counts:
    """Return how often each resample has each unit, (resamples, units)."""
    counts = np.empty((resamples, units), np.uint16)
    for block in _blocks(counts):
        first = units * np.arange(len(block))  # of each resample
        drawn = rng.integers(units, size=block.shape) + first[:, None]
        block[:] = np.bincount(drawn.ravel(), minlength=block.size).reshape(block.shape)
    return counts


def _sums(counts: Counts, columns: Floats) -> Floats:
    """Return the sums of each resample, (resamples, n_columns)."""
    return np.concatenate([block.astype(np.float64) @ columns for block in _blocks(counts)])


def _blocks(counts: Counts) -> Iterator[Counts]:
    """Yield parts that stay in cache, and for which a BLAS starts no threads."""
    rows = max(1, 50_000 // counts.shape[1])
    for start in range(0, len(counts), rows):
        yield counts[start : start + rows]


@lru_cache(KEPT)
def _unseen_shares(units: int, resamples: int) -> Floats:
    """Return shares of unseen units, spread evenly over the resamples, which come in no order."""
    from scipy.special import betaincinv  # slow to import

    ranks = (np.arange(resamples) + 0.5) / resamples
    shares: Floats = betaincinv(0.5, units + 0.5, ranks)
    return shares


def finite(name: str, values: ArrayLike) -> Floats:
    numbers = as_numbers(name, values)
    check_rows(name, numbers, np.isinf(numbers), "but must be finite")
    return numbers


def _z(level: float) -> float:
    """Return the normal quantile of a two-sided interval, 1.96 for 0.95."""
    from scipy.special import ndtri  # slow to import

    return float(ndtri((1 + check_share("level", level)) / 2))


def source_of(rng: np.random.Generator | None, seed: int) -> Source:
    """Return the generator that was given, or else the seed."""
    if rng is None:
        return check_int("seed", seed, least=0)
    if not isinstance(rng, np.random.Generator):
        raise InputError(
            "rng must be a numpy random generator, such as np.random.default_rng(0); got "
            f"{rng!r:.40}"
        )
    return rng
