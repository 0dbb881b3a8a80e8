"""Intervals for one question's expected accuracy and for means over questions.

:func:`mean_interval` is *for questions like these*: whole questions vary together with their
counts, so it covers both the noise of sampling and the choice of questions.

``level`` is the nominal coverage, between 0 and 1. ``clusters`` holds one label per question, for
questions that belong together, such as MMLU subjects: whole clusters vary. Values out of range, of
unequal length or infinite raise an :class:`~capcal_lib.errors.InputError`."""

from __future__ import annotations  # keeps ArrayLike short in help()

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtr, stdtrit

from capcal_lib.errors import InputError, check_known
from capcal_lib.metrics.validation import (
    Floats,
    align,
    as_confidence,
    as_counts,
    as_numbers,
    check_int,
    check_rows,
    check_share,
)

BinomialMethod = Literal["jeffreys", "wilson", "clopper-pearson", "wald"]


class Interval(NamedTuple):
    """An estimate and its interval; the limits are NaN where they cannot be known."""

    estimate: float
    low: float
    high: float

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # as a notebook shows it
        numbers = (f"{name}={value:.4g}" for name, value in self._asdict().items())
        printer.text(f"Interval({', '.join(numbers)})")


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
    which may leave [0, 1] and has no width at mu_hat = 0 or 1. All but Wald start at exactly 0 if
    no sample is correct, and end at exactly 1 if all are. A question without scored samples has
    NaN limits.

    References: the paper, appendix "The choice of k_eval"; Brown, Cai and DasGupta, "Interval
    estimation for a binomial proportion", Statistical Science 16 (2001).

    >>> binomial_interval([0, 50], 100).round(4)
    array([[0.    , 0.0247],
           [0.4032, 0.5968]])
    """
    from scipy.stats import beta  # slow to import

    check_known("interval method", method, get_args(BinomialMethod))
    c, samples = as_counts(correct, total)
    tail = (1 - check_share("level", level)) / 2
    z = -ndtri(tail)
    n = np.where(samples > 0, samples, np.nan)
    if method in ("wald", "wilson"):
        added = z**2 if method == "wilson" else 0.0  # samples, half of them correct
        centre = (c + added / 2) / (n + added)
        half_width = z * np.sqrt(c * (n - c) / n + added / 4) / (n + added)
        low, high = centre - half_width, centre + half_width
    else:  # beta quantiles: both of one posterior, or of two that are a success apart
        apart = 0.5 if method == "jeffreys" else 1.0
        low = beta.ppf(tail, c + 1 - apart, n - c + apart)
        high = beta.ppf(1 - tail, c + apart, n - c + 1 - apart)
    if method != "wald":
        low = np.where(c == 0, 0 * n, low)
        high = np.where(c == n, 1.0, high)
    return np.column_stack([low, high])


def coverage_probability(
    expected_accuracy: ArrayLike,
    k_eval: int,
    *,
    method: BinomialMethod = "jeffreys",
) -> Floats:
    """Return the probability that a 95 % interval from k_eval samples covers each mu, shape (n,),
    summed exactly over the counts.

    Near .95 is good; below it the interval is too narrow. See :func:`binomial_interval`.

    >>> coverage_probability([0.01, 0.5], 100, method="wald").round(3)
    array([0.633, 0.943])
    """
    from scipy.stats import binom  # slow to import

    mu = as_confidence(expected_accuracy)[:, None]
    correct = np.arange(check_int("k_eval", k_eval, least=1) + 1)
    low, high = binomial_interval(correct, k_eval, method=method).T
    normal = np.where(mu < 1e-300, 0, mu)  # scipy overflows at the smallest floats
    chance = binom.pmf(correct, k_eval, normal)
    holds = (low <= mu) & (mu <= high)
    return (chance * holds).sum(axis=1)


def mean_interval(
    terms: ArrayLike,
    *,
    bounds: tuple[float, float],
    clusters: ArrayLike | None = None,
    level: float = 0.95,
) -> Interval:
    """Return the mean of one term per question with its interval *for questions like these*.

    ``terms``, shape (n_questions,), are for instance
    :func:`~capcal_lib.metrics.capability_brier_terms`, or the difference of two methods' terms; NaN
    means not scored and is left out. ``bounds`` are the least and the largest possible mean: (0, 1)
    for a Brier score or an accuracy, (-1, 1) for a difference of two. They protect against
    questions that were not seen, so they must not come from the terms themselves. No limit lies
    beyond them, unless the estimate itself does.

    The limits are Student's t limits for the terms, after half a question is added at either bound.
    A plain t interval ignores what was not seen, such as the rare questions on which a confidence
    is grossly wrong. The interval assumes that the questions, or the clusters, are independent
    draws, and that what is too rare to be seen among n questions weighs no more than 1.9 of them at
    a bound. If it weighs more, up to about six questions, the 95 % interval covers the truth in
    only .85 to .94 of studies, and least often if terms are 0 or 1 at a rate of 1.9 in n.

    With clusters, too, half a *question* is added at either bound, as all clusters may have been
    seen (MMLU has 57 subjects). That does not cover whole clusters that are rare and far from the
    others: if 3 % of clusters are grossly wrong throughout, the interval covers the truth in about
    .8 of studies with 57 clusters of equal size, in .6 with 30, and in .7 with 57 whose sizes
    differ as in MMLU. If the sizes of clusters differ, the standard error is the jackknife's, and
    the degrees of freedom follow from Kish's effective number of clusters. A single question or
    cluster says nothing about the spread and has NaN limits.

    References: Agresti and Coull, "Approximate is better than 'exact' for interval estimation of
    binomial proportions", The American Statistician 52 (1998).

    >>> interval = mean_interval([0.0, 0.2, 0.1, 0.3, 0.2, 0.0, 0.1, 0.2] * 4, bounds=(0, 1))
    >>> [round(value, 2) for value in interval]
    [0.14, 0.1, 0.2]
    """
    terms, clusters = align(terms=terms, clusters=clusters)
    values = finite("term", terms)
    return Limits(values, check_bounds(bounds), clusters).at(level)


def check_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the bounds of a mean; InputError unless they are a lower and a higher number."""
    low, high = bounds
    if not low < high:
        raise InputError(f"bounds must be a lower and a higher number; got {bounds!r:.60}")
    return bounds


class Limits:
    """The limits of a mean, computed from its units (questions or clusters) with half a question
    added at either bound.
    """

    def __init__(
        self, terms: Floats, bounds: tuple[float, float], clusters: ArrayLike | None = None
    ) -> None:
        """Take one term a question, NaN left out."""
        sums, sizes = units_of(terms, clusters)
        self.bounds = bounds
        if not len(sizes):
            sums = sizes = np.array([np.nan])
        self.estimate = sums.sum() / sizes.sum()
        self.freedom = sizes.sum() ** 2 / (sizes**2).sum() - 1  # of Kish's effective number
        weights = np.append(np.ones(len(sizes)), [0.5, 0.5])
        sums, sizes = np.append(sums, bounds), np.append(sizes, [1.0, 1.0])
        total = weights @ sizes
        self.centre = weights @ sums / total
        # What the centre moves by as each unit is left out: the jackknife, for sizes that differ.
        moves = (sums - sizes * self.centre) / (total - sizes)
        self.error = np.sqrt(weights @ moves**2 * (1 - 1 / weights.sum()))

    def at(self, level: float) -> Interval:
        """Return the mean with its limits, which are NaN for a single unit."""
        bottom, top = self.bounds
        width = self.error * stdtrit(self.freedom, (1 + check_share("level", level)) / 2)
        low = np.minimum(self.estimate, np.maximum(self.centre - width, bottom))
        high = np.maximum(self.estimate, np.minimum(self.centre + width, top))
        return Interval(float(self.estimate), float(low), float(high))

    def above(self) -> float:
        """Return the one-sided p value of a mean above 0, by the limits turned round."""
        return float(stdtr(self.freedom, -self.centre / self.error))


def variance_of_mean(terms: Floats, clusters: ArrayLike | None = None) -> float:
    """Return the estimated variance of the mean of terms without NaN over questions, or over
    clusters.

    >>> (variance_of_mean(np.array([0.0, 1.0, 0.0, 1.0])),
    ...     variance_of_mean(np.array([0.0, 1.0, 0.0, 1.0]), [1, 2, 1, 2]))
    (0.08333333333333333, 0.25)
    """
    sums, sizes = units_of(terms, clusters)
    residuals = sums - sizes * terms.mean()
    return float(residuals @ residuals * len(sizes) / max(1, len(sizes) - 1) / len(terms) ** 2)


def units_of(terms: Floats, clusters: ArrayLike | None = None) -> tuple[Floats, Floats]:
    """Return the sum of each unit's terms without NaN, and how many they are, (n_units,) each."""
    from pandas import factorize  # slow to import

    scored = ~np.isnan(terms)
    if clusters is None:
        return terms[scored], np.ones(scored.sum())
    codes, _ = factorize(np.asarray(clusters, dtype=object))
    missing = codes < 0
    if missing.any():
        row = int(np.argmax(missing))
        raise InputError(f"row {row}: the cluster label is missing (the first row is 0)")
    units = np.unique(codes[scored], return_inverse=True)[1]
    sums, sizes = np.bincount(units, terms[scored]), np.bincount(units)
    return sums.astype(np.float64), sizes.astype(np.float64)


def finite(name: str, values: ArrayLike) -> Floats:
    """Return one number a row; NaN passes."""
    numbers = as_numbers(name, values)
    check_rows(name, numbers, np.isinf(numbers), "but must be finite")
    return numbers
