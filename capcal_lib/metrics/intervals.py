"""Intervals: for the expected accuracy of one question, and for means over questions."""

import math
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError, unknown
from capcal_lib.metrics.validation import (
    Floats,
    Ints,
    as_confidence,
    as_counts,
    as_numbers,
    check_int,
    check_rows,
    same_length,
)

BinomialMethod = Literal["jeffreys", "wilson", "clopper-pearson", "wald"]


class Interval(NamedTuple):
    """An estimate and its interval; the limits are NaN where they cannot be known."""

    estimate: float
    low: float
    high: float


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, such as 0.95; got {level!r}")


def _z(level: float) -> float:
    """Return the normal quantile of a two-sided interval, 1.96 for 0.95."""
    from scipy.special import ndtri  # slow to import

    _check_level(level)
    return float(ndtri((1 + level) / 2))


def binomial_interval(
    correct: ArrayLike, total: ArrayLike, *, method: BinomialMethod = "jeffreys", level: float = 0.95
) -> Floats:
    """Return an interval for each question's expected accuracy mu.

    With mu from Beta(0.3, 0.3) and 100 samples, 95 % Wald intervals hold mu in 71 % of the questions, Wilson
    and Jeffreys in 95 to 96 %, Clopper-Pearson in 97.5 %.

    Parameters
    ----------
    correct, total : array-like of shape (n_questions,)
        Correct and scored samples of each question; no scored sample gives NaN limits.
    method : {"jeffreys", "wilson", "clopper-pearson", "wald"}, default="jeffreys"
        ``jeffreys``: equal-tailed under a Beta(1/2, 1/2) prior; ``wilson``: the score test turned round;
        ``clopper-pearson``: never covers less than ``level``; ``wald``: the paper's mu_hat +- z sd, which
        may leave [0, 1] and has no width at mu_hat = 0 or 1. All but Wald start at exactly 0 where none
        is correct and end at exactly 1 where all are.
    level : float, default=0.95
        Nominal coverage, between 0 and 1.

    Returns
    -------
    ndarray of shape (n_questions, 2)
        Low and high limits.

    Raises
    ------
    InputError
        For an unknown method, a level outside (0, 1) or malformed counts.

    References
    ----------
    The paper, appendix "The choice of k_eval"; Brown, Cai and DasGupta, "Interval estimation for a
    binomial proportion", Statistical Science 16 (2001).

    Examples
    --------
    >>> binomial_interval([0, 50], [100, 100]).round(4)
    array([[0.    , 0.0247],
           [0.4032, 0.5968]])
    """
    if method not in get_args(BinomialMethod):
        raise unknown("interval method", method, get_args(BinomialMethod))
    hits, samples = as_counts(correct, total)
    z = _z(level)
    limits = np.full((hits.size, 2), np.nan)
    seen = samples > 0
    c, n = hits[seen].astype(np.float64), samples[seen].astype(np.float64)
    mu = c / n
    if method == "wald":
        half_width = z * np.sqrt(mu * (1 - mu) / n)
        limits[seen] = np.column_stack([mu - half_width, mu + half_width])
        return limits
    if method == "wilson":
        centre = (mu + z**2 / (2 * n)) / (1 + z**2 / n)
        half_width = z * np.sqrt(mu * (1 - mu) / n + (z / (2 * n)) ** 2) / (1 + z**2 / n)
        low, high = centre - half_width, centre + half_width
    else:
        low, high = _beta_limits(c, n, level, spread=0.5 if method == "jeffreys" else 1.0)
    limits[seen] = np.column_stack([np.where(c == 0, 0.0, low), np.where(c == n, 1.0, high)])
    return limits


def _beta_limits(c: Floats, n: Floats, level: float, *, spread: float) -> tuple[Floats, Floats]:
    """Return beta quantiles: both of one posterior (Jeffreys), or of two that are a success apart (exact)."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    # Where a shape would be 0, the caller puts the limit at 0 or 1; clipping only keeps the call defined.
    low = betaincinv(np.maximum(c + 1 - spread, 0.5), n - c + spread, tail)
    high = betaincinv(c + spread, np.maximum(n - c + 1 - spread, 0.5), 1 - tail)
    return low, high


def coverage_probability(
    expected_accuracy: ArrayLike, k_eval: int, *, method: BinomialMethod = "jeffreys", level: float = 0.95
) -> Floats:
    """Return how often an interval from k_eval samples holds mu, summed exactly over the number correct.

    Parameters
    ----------
    expected_accuracy : array-like of shape (n,)
        Values of mu, in [0, 1].
    k_eval : int
        Samples per question, at least 1.
    method, level
        As in :func:`binomial_interval`.

    Returns
    -------
    ndarray of shape (n,)
        In [0, 1]; near ``level`` is good, below it the interval promises too much.

    Raises
    ------
    InputError
        For values of mu outside [0, 1], or an option out of range.

    References
    ----------
    The paper, appendix "The choice of k_eval"; Brown, Cai and DasGupta (2001), section 2.

    Examples
    --------
    >>> coverage_probability([0.01, 0.5], 100, method="wald").round(3)
    array([0.633, 0.943])
    """
    mu = as_confidence(expected_accuracy)
    correct = np.arange(check_int("k_eval", k_eval, least=1) + 1)
    limits = binomial_interval(correct, np.full(correct.size, k_eval), method=method, level=level)
    held = (limits[:, 0] <= mu[:, None]) & (mu[:, None] <= limits[:, 1])
    return (count_chances(mu, k_eval) * held).sum(axis=1)


def count_chances(expected_accuracy: ArrayLike, k_eval: int) -> Floats:
    """Return the chance of each number correct among k_eval samples, shape (n, k_eval + 1): the binomial distribution.

    >>> count_chances([0.5, 0.0], 2).round(4)
    array([[0.25, 0.5 , 0.25],
           [1.  , 0.  , 0.  ]])
    """
    from scipy.special import gammaln, xlog1py, xlogy  # slow to import

    mu, correct = as_confidence(expected_accuracy)[:, None], np.arange(k_eval + 1)
    ways = gammaln(k_eval + 1) - gammaln(correct + 1) - gammaln(k_eval - correct + 1)
    return np.exp(ways + xlogy(correct, mu) + xlog1py(k_eval - correct, -mu))


def wald_sample_size(half_width: float, *, expected_accuracy: float = 0.5, level: float = 0.95) -> int:
    """Return the k_eval at which the Wald interval of mu has at most this half-width.

    Parameters
    ----------
    half_width : float
        Wanted margin of error, above 0.
    expected_accuracy : float, default=0.5
        The mu to plan for, in [0, 1]; 0.5 is the worst case.
    level : float, default=0.95
        Nominal coverage, between 0 and 1.

    Returns
    -------
    int
        Samples per question, at least 1.

    Raises
    ------
    InputError
        For a value out of range.

    References
    ----------
    The paper, appendix "The choice of k_eval": k_eval >= z^2 mu (1 - mu) / half_width^2.

    Examples
    --------
    >>> wald_sample_size(0.1)
    97
    """
    if not 0 < half_width < math.inf:
        raise InputError(f"half_width must be above 0, such as 0.1; got {half_width!r}")
    if not 0 <= expected_accuracy <= 1:
        raise InputError(f"expected_accuracy must lie in [0, 1]; got {expected_accuracy!r}")
    return max(1, math.ceil((_z(level) / half_width) ** 2 * expected_accuracy * (1 - expected_accuracy)))


def bootstrap_mean(
    terms: ArrayLike,
    *,
    rng: np.random.Generator,
    resamples: int = 10_000,
    level: float = 0.95,
    clusters: ArrayLike | None = None,
) -> Interval:
    """Return the mean over questions with a percentile bootstrap interval.

    Whole questions are drawn with replacement, and their counts go along, so the interval already holds
    the noise of the samples within each question.

    Parameters
    ----------
    terms : array-like of shape (n_questions,)
        One term per question, such as :func:`capcal_lib.metrics.capability_brier_terms`.
    rng : numpy.random.Generator
        Where the draws come from.
    resamples : int, default=10_000
        How often to draw.
    level : float, default=0.95
        Nominal coverage, between 0 and 1.
    clusters : array-like of shape (n_questions,), optional
        Labels of questions that belong together, such as MMLU subjects; whole clusters are drawn.

    Returns
    -------
    Interval
        Estimate, low and high. The limits are NaN for a single question or cluster, which says nothing
        about its spread. With few questions (AIME has 30) the interval is somewhat too narrow.

    Raises
    ------
    InputError
        For NaN or infinite terms (leave out what was not scored), a missing cluster label, lengths that
        differ, or an option out of range.

    Examples
    --------
    >>> interval = bootstrap_mean([0.0, 0.2, 0.1, 0.3], rng=np.random.default_rng(0))
    >>> [round(value, 4) for value in interval]
    [0.15, 0.05, 0.25]
    """
    columns = _as_terms(terms)[:, None]
    (interval,) = bootstrap_means(columns, rng=rng, resamples=resamples, level=level, clusters=clusters)
    return interval


def bootstrap_means(
    terms: ArrayLike,
    *,
    rng: np.random.Generator,
    resamples: int = 10_000,
    level: float = 0.95,
    clusters: ArrayLike | None = None,
) -> list[Interval]:
    """Return the mean of each column with its bootstrap interval, all on the same resampled questions.

    The draws, most of the work, are shared: 20 methods and their differences on 11,313 questions take hardly longer
    than one.

    Parameters
    ----------
    terms : array-like of shape (n_questions, n_columns)
        One term per question and column; NaN is not scored and left out of its own column. Give the difference
        of two methods as a column of its own.
    rng, resamples, level, clusters
        As in :func:`bootstrap_mean`.

    Returns
    -------
    list of Interval
        One a column; all NaN for a column without terms, and limits of NaN where all terms are of one question
        or cluster.

    Raises
    ------
    InputError
        For infinite terms, another shape, and as in :func:`bootstrap_mean`.

    Examples
    --------
    >>> columns = [[0.0, 0.1], [0.2, float("nan")], [0.1, 0.3]]
    >>> [[round(value, 4) for value in interval] for interval in bootstrap_means(columns, rng=np.random.default_rng(0))]
    [[0.1, 0.0, 0.2], [0.2, 0.1, 0.3]]
    """
    values = np.asarray(terms, dtype=np.float64)
    if values.ndim != 2 or not len(values):
        raise InputError(f"terms must have shape (n_questions, n_columns); got {values.shape}")
    if np.isinf(values).any():
        raise InputError(f"row {int(np.argmax(np.isinf(values).any(axis=1)))}: a term is infinite (the first row is 0)")
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy random generator, such as np.random.default_rng(0); got {rng!r:.40}")
    check_int("resamples", resamples, least=1)
    _check_level(level)
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    sums, sizes = filled, known.astype(np.float64)
    if clusters is not None:
        codes = _cluster_codes(clusters, len(values))
        sums, sizes = (np.zeros((codes.max() + 1, values.shape[1])) for _ in range(2))
        np.add.at(sums, codes, filled)
        np.add.at(sizes, codes, known)
    questions = known.sum(axis=0)
    estimates = np.divide(filled.sum(axis=0), questions, out=np.full(len(questions), np.nan), where=questions > 0)
    limits = np.full((2, len(questions)), np.nan)
    spread = (sizes > 0).sum(axis=0) > 1
    if spread.any():
        means = _resampled_means(sums[:, spread], sizes[:, spread], rng, resamples)
        limits[:, spread] = np.nanquantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return [Interval(*map(float, row)) for row in zip(estimates, *limits, strict=True)]


def paired_difference(
    terms_a: ArrayLike,
    terms_b: ArrayLike,
    *,
    rng: np.random.Generator,
    resamples: int = 10_000,
    level: float = 0.95,
    clusters: ArrayLike | None = None,
) -> Interval:
    """Return mean(a - b) with a bootstrap interval, both methods on the same resampled questions.

    For Brier terms, an interval below 0 says that a is better than b.

    Parameters
    ----------
    terms_a, terms_b : array-like of shape (n_questions,)
        Terms of two methods on the same questions, in the same order.
    rng, resamples, level, clusters
        As in :func:`bootstrap_mean`.

    Returns
    -------
    Interval
        As in :func:`bootstrap_mean`.

    Raises
    ------
    InputError
        As in :func:`bootstrap_mean`.

    Examples
    --------
    >>> difference = paired_difference([0.1, 0.3, 0.2], [0.2, 0.4, 0.3], rng=np.random.default_rng(0))
    >>> [round(value, 4) for value in difference]
    [-0.1, -0.1, -0.1]
    """
    a, b = _as_terms(terms_a), _as_terms(terms_b)
    same_length(terms_a=a, terms_b=b)
    return bootstrap_mean(a - b, rng=rng, resamples=resamples, level=level, clusters=clusters)


def _as_terms(terms: ArrayLike) -> Floats:
    values = as_numbers("term", terms)
    check_rows(
        "term", values, ~np.isfinite(values), "but must be finite; leave out what was not scored (the first row is 0)"
    )
    return values


def _cluster_codes(clusters: ArrayLike, questions: int) -> Ints:
    """Number the clusters, in the order of their first questions."""
    import pandas as pd  # slow to import

    if np.ndim(clusters) != 1:
        raise InputError(f"clusters must be one-dimensional, one label per question; got shape {np.shape(clusters)}")
    labels = pd.Series(clusters)
    same_length(terms=np.empty(questions), clusters=labels.to_numpy())
    codes, _ = pd.factorize(labels)
    if (codes < 0).any():
        raise InputError(f"row {int(np.argmax(codes < 0))}: the cluster label is missing (the first row is 0)")
    return codes.astype(np.int64)


def _resampled_means(sums: Floats, sizes: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    """Draw as many units as there are, often; return the mean of each column, NaN where none of its terms was drawn.

    Each unit, a question or a cluster, has the sum of its terms and their number in each column.
    """
    units, columns = sums.shape
    means = np.empty((resamples, columns))
    rows = max(1, 300_000 // units)  # a block of draws that stays in cache
    offsets = units * np.arange(rows)[:, None]
    always = bool((sizes == 1).all())  # one question each, and none is missing
    for start in range(0, resamples, rows):
        block = means[start : start + rows]
        drawn = rng.integers(units, size=(len(block), units)) + offsets[: len(block)]
        times = np.bincount(drawn.ravel(), minlength=units * len(block)).reshape(-1, units).astype(np.float64)
        weights = np.full((1, columns), float(units)) if always else times @ sizes
        block[:] = np.divide(times @ sums, weights, out=np.full(block.shape, np.nan), where=weights > 0)
    return means
