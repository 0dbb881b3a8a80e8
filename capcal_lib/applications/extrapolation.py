"""pass@k beyond the samples that were drawn, with an interval that holds the doubt about the shape
of the prior.
"""

from __future__ import annotations  # keeps ArrayLike short in help()

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from capcal_lib.applications.passk import pass_at_k
from capcal_lib.errors import InputError
from capcal_lib.metrics.intervals import mean_interval
from capcal_lib.metrics.validation import Floats, Ints, as_counts, as_whole

CLOUD = 600  # points around the best fit of a family
RESAMPLES = 400
FEW = 30  # questions that do not tell the shape of a prior
STEPS = 60  # of the EM algorithm
APART = 0.5  # bounds for any prior that say next to nothing
Prior = Callable[[Floats, Floats], Floats]


def extrapolate_pass_at_k(
    correct: ArrayLike, total: ArrayLike, ks: ArrayLike, *, rng: np.random.Generator
) -> pd.DataFrame:
    """Estimate a data set's pass@k, also for k beyond the number of samples.

    Up to the fewest samples of any question the estimate is the mean of :func:`pass_at_k`. Beyond,
    expected accuracies mu are taken as draws from a prior, fitted by the likelihood of the counts,
    and pass@k is the mean over questions of 1 - E[(1 - mu)^k | counts]. How many questions are
    hopeless or nearly so decides it, which n samples hardly tell. So five priors stand side by
    side: Beta and logit-normal, each with and without questions of mu = 0 and of mu = 1, and a
    mixture of two Betas. The estimate is their mean by Akaike weights, and the interval holds 95 %
    of what a bootstrap over questions, with each prior fitted anew, gives by the same weights.
    Where only the mixture of two fits, no simple shape does, and the interval reaches as far as any
    prior at all does whose likelihood is near the best one; with fewer than 30 questions none can
    be told, and it is that of the bounds. It speaks of questions like these.

    Beside them stand bounds that hold for any prior at all, from a confidence band of the
    distribution of the counts (Dvoretzky, Kiefer and Wolfowitz): wide, but valid. They are NaN
    where no independent samples would give such counts.

    The number of samples must be fixed beforehand; at least one question has some correct and some
    not. Returns a row a k: ``k``, ``estimate``, ``low`` and ``high`` of the 95 % interval,
    ``lowest`` and ``highest``, the bounds, and ``doubtful``, whether these are 0.5 apart or more or
    cannot be known: then the estimate rests on the shape of the prior. Kazdan et al. (arXiv
    2510.05197) fit a Beta-binomial; the doubt about its shape and the bounds are ours.

    >>> rng = np.random.default_rng(0)
    >>> mu = rng.beta(0.3, 1.0, 500)
    >>> correct, total = rng.binomial(20, mu), np.full(500, 20)
    >>> table = extrapolate_pass_at_k(correct, total, [10, 100], rng=rng).set_index("k")
    >>> table.loc[100, ["low", "estimate", "high"]].round(2).tolist()
    [0.68, 0.75, 0.81]
    >>> float((1 - (1 - mu) ** 100).mean().round(3))
    0.796
    """
    hits, samples = as_counts(correct, total, scored=1)
    attempts = as_whole("k", ks, least=1)
    pairs, times = np.unique(np.column_stack([hits, samples]), axis=0, return_counts=True)
    drawn = rng.multinomial(hits.size, times / hits.size, size=RESAMPLES)
    within = np.minimum(attempts, samples.min())
    measured = pass_at_k(hits, samples, within)
    intervals = [mean_interval(column, bounds=(0, 1)) for column in measured.T]
    estimate, low, high = np.array(intervals).T
    low = np.nan_to_num(low, nan=0.0)  # of a single question
    high = np.nan_to_num(high, nan=1.0)
    beyond = attempts > samples.min()
    if beyond.any():
        is_mixed = (hits > 0) & (hits < samples)
        if not is_mixed.any():
            raise InputError(
                "no question has both correct and incorrect samples, so nothing says how pass@k "
                "goes on beyond "
                f"{samples.min()} samples; draw more samples, or ask for smaller k"
            )
        found = _extrapolated(pairs, times, drawn, attempts[beyond], rng)
        estimate[beyond], low[beyond], high[beyond] = found
    lowest, highest = _bounds(hits, samples, attempts)
    if hits.size < FEW:
        low[beyond] = np.nan_to_num(lowest[beyond], nan=0.0)
        high[beyond] = np.nan_to_num(highest[beyond], nan=1.0)
    close = highest - lowest < APART  # not where they are NaN
    columns = {
        "k": attempts,
        "estimate": estimate,
        "low": low,
        "high": high,
        "lowest": lowest,
        "highest": highest,
        "doubtful": beyond & ~close,
    }
    return pd.DataFrame(columns)


def _extrapolated(
    pairs: Ints, times: Ints, drawn: Ints, attempts: Ints, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Fit the priors, weigh them, and return estimates and limits, each of shape (n_ks,)."""
    edges, mu = _grid(int(pairs[:, 1].max()))
    chances = _chances(pairs, mu)
    failing = np.exp(_log_failing(attempts, mu))
    counts = np.vstack([times, drawn])
    fits = []
    for family, start in PRIORS:
        points = _cloud(family, np.array(start), edges, chances, times, rng)
        priors = np.array([family(edges, point) for point in points])
        fits.append(_fit(priors, len(start), chances, failing, counts, rng))
    criterion = np.array([fit.criterion for fit in fits])
    weight = np.exp((criterion.min() - criterion) / 2)
    weight /= weight.sum()
    estimate = weight @ np.array([fit.solved for fit in fits])
    mixed = np.concatenate([fit.drawn for fit in fits])
    each = np.repeat(weight, len(drawn)) / len(drawn)
    low, high = np.quantile(mixed, [0.025, 0.975], axis=0, weights=each, method="inverted_cdf")
    if weight[-1] > 0.5:  # no simple shape
        lower, upper = _any_shape(chances, times, 1 - failing)
        low = np.minimum(low, lower)
        high = np.maximum(high, upper)
    return estimate, low, np.minimum(high, 1.0)


class _Fit(NamedTuple):
    """What a family of priors makes of the counts."""

    criterion: float  # Akaike's; lower is better
    solved: Floats  # pass@k of the data, (n_ks,)
    drawn: Floats  # pass@k of the resamples, (n_resamples, n_ks)


def _fit(
    priors: Floats,
    parameters: int,
    chances: Floats,
    failing: Floats,
    counts: Ints,
    rng: np.random.Generator,
) -> _Fit:
    """Choose the best of some priors for the data and for every resample, the rows of counts, and
    draw what is then left unsolved.
    """
    questions = counts[0].sum()
    shares = counts / questions
    seen = np.maximum(priors @ chances, 1e-300)  # of each pair of counts, by prior
    likelihood = np.log(seen) @ counts.T
    chosen = likelihood.argmax(axis=0)
    unsolved = np.empty((len(counts), len(failing)))
    variance = np.empty_like(unsolved)
    for place in np.unique(chosen):
        prior = priors[place]
        mean = (prior * failing) @ chances / seen[place]
        square = (prior * failing**2) @ chances / seen[place]
        own = chosen == place
        unsolved[own] = shares[own] @ mean.T
        variance[own] = shares[own] @ (square - mean**2).T / questions
    # What the questions' mu differ from their expectation; few failures are left where k is
    # large, hence a Gamma.
    expected = np.maximum(unsolved, 1e-9)
    spread = np.maximum(variance, 1e-18) / expected
    around = np.minimum(rng.gamma(expected / spread, spread), 1)
    criterion = 2 * parameters - 2 * likelihood[chosen[0], 0]
    return _Fit(float(criterion), 1 - unsolved[0], 1 - around[1:])


def _any_shape(chances: Floats, times: Ints, solved: Floats) -> tuple[Floats, Floats]:
    """Bound the mean of each row of solved over all priors whose likelihood is near the best one.

    Near is within 1.92, half the 95 % quantile of chi-squared: a profile likelihood interval.
    """
    even = np.full(len(chances), 1 / len(chances))
    best, most = _likeliest(chances, times, even, np.zeros(len(chances)))

    def furthest(direction: Floats) -> float:
        """Return the mean of direction over the last prior that is pulled there and is likely."""
        prior = best
        reached = likeliest = float(best @ direction)
        low = -3.0  # powers of ten of the pull
        high = 6.0
        for _ in range(12):
            middle = (low + high) / 2
            prior, likelihood = _likeliest(chances, times, prior, 10**middle * direction)
            if likelihood < most - 1.92:
                high = middle
            else:
                low = middle
                reached = float(prior @ direction)
        return max(reached, likeliest)

    lower = np.array([-furthest(-each) for each in solved])
    upper = np.array([furthest(each) for each in solved])
    return lower, upper


def _likeliest(chances: Floats, times: Ints, prior: Floats, pull: Floats) -> tuple[Floats, float]:
    """Return the prior with the highest likelihood plus pull, by EM steps, and its likelihood."""
    behind = pull.max() - pull  # how far each point is pulled less than the first
    for _ in range(STEPS):
        mass = prior * (chances @ (times / np.maximum(prior @ chances, 1e-300)))
        mass = np.maximum(mass, 1e-300)  # a point without mass would divide 0 by 0
        # The multiplier at which the masses sum to 1, less the strongest pull.
        multiplier = (mass - behind).max()
        for _ in range(10):  # Newton's method, from below
            share = mass / (multiplier + behind)
            multiplier += (share.sum() - 1) / (share / (multiplier + behind)).sum()
        prior = mass / (multiplier + behind)
        prior /= prior.sum()
    return prior, float(times @ np.log(np.maximum(prior @ chances, 1e-300)))


def _grid(samples: int) -> tuple[Floats, Floats]:
    """Divide [0, 1] evenly on the logit scale, finely for many samples; the first and last cell
    stand for 0 and 1.
    """
    from scipy.special import expit

    inner = np.linspace(-16, 12, max(200, int(28 * np.sqrt(samples))))
    middles = (inner[1:] + inner[:-1]) / 2
    edges = np.concatenate([[0.0], expit(inner), [1.0]])
    mu = np.concatenate([[0.0], expit(middles), [1.0]])
    return edges, mu


def _log_failing(attempts: Ints, mu: Floats) -> Floats:
    """Return the logarithm of (1 - mu)^k, shape (n_ks, n_mu); finite at mu = 1 too."""
    below_one = np.minimum(mu, 1 - 1e-16)
    return np.asarray(np.outer(attempts, np.log1p(-below_one)))


def _chances(pairs: Ints, mu: Floats) -> Floats:
    """Return the chance of each pair of counts at each mu, but for the number of orders; shape
    (n_mu, n_pairs).
    """
    from scipy.special import xlog1py, xlogy

    c, n = pairs.T
    p = mu[:, None]
    logs = xlogy(c, p) + xlog1py(n - c, -p)
    return np.exp(logs - logs.max(axis=0))


# A prior is given by the mass of each cell: functions of the cells' edges and of parameters on the
# whole line.


def _beta(edges: Floats, point: Floats) -> Floats:
    from scipy.special import betainc

    a, b = np.exp(point)
    return np.diff(betainc(a, b, edges))


def _two_betas(edges: Floats, point: Floats) -> Floats:
    share = 1 / (1 + np.exp(-point[4]))
    first = _beta(edges, point[:2])
    second = _beta(edges, point[2:4])
    return share * first + (1 - share) * second


def _logit_normal(edges: Floats, point: Floats) -> Floats:
    from scipy.special import logit, ndtr

    return np.diff(ndtr((logit(edges) - point[0]) / np.exp(point[1])))


def _inflated(family: Prior) -> Prior:
    """Add masses at mu = 0 and mu = 1; their odds, in logarithms, are the last two parameters."""

    def cells(edges: Floats, point: Floats) -> Floats:
        odds = np.exp(point[-2:])
        mass = family(edges, point[:-2])
        mass[[0, -1]] += odds
        return mass / (1 + odds.sum())

    return cells


PRIORS: tuple[tuple[Prior, list[float]], ...] = (  # with the parameters that a fit starts from
    (_beta, [-1.0, 0.0]),
    (_inflated(_beta), [-1.0, 0.0, -2.0, -3.0]),
    (_logit_normal, [0.0, 1.0]),
    (_inflated(_logit_normal), [0.0, 1.0, -2.0, -3.0]),
    (_two_betas, [0.5, 3.0, 1.5, 1.0, 0.0]),
)


def _cloud(
    family: Prior,
    start: Floats,
    edges: Floats,
    chances: Floats,
    times: Ints,
    rng: np.random.Generator,
) -> Floats:
    """Return the best fit and points around it, among which that to a resample is looked up."""
    from scipy.optimize import minimize

    def loss(point: Floats) -> float:
        seen = family(edges, np.clip(point, -12, 12)) @ chances
        likelihood = times @ np.log(np.maximum(seen, 1e-300))
        scaled = point / 5
        penalty = 0.5 * scaled @ scaled
        return float(penalty - likelihood)

    found = minimize(loss, start, method="BFGS", options={"gtol": 1e-2})
    values, axes = np.linalg.eigh(found.hess_inv)
    spread = axes * np.sqrt(np.clip(values, 1e-8, 4.0))
    points = found.x + 1.5 * rng.standard_normal((CLOUD, start.size)) @ spread.T
    return np.clip(np.vstack([found.x, points]), -12, 12)


def _bounds(hits: Ints, samples: Ints, attempts: Ints) -> tuple[Floats, Floats]:
    """Bound pass@k over all distributions of mu whose counts agree with those seen, by linear
    programming.
    """
    from scipy.optimize import linprog
    from scipy.stats import binom, hypergeom

    n = int(samples.min())
    _, mu = _grid(n)
    counts = np.arange(n)
    pairs, times = np.unique(np.column_stack([hits, samples]), axis=0, return_counts=True)
    c, total = pairs.T[..., None]
    seen = times @ hypergeom.cdf(counts, total, c, n) / hits.size  # of n samples each
    band = np.sqrt(np.log(2 / 0.05) / (2 * hits.size))
    below = binom.cdf(counts[:, None], n, mu)
    constraints = {
        "A_ub": np.vstack([below, -below]),
        "b_ub": np.concatenate([seen + band, band - seen]),
        "A_eq": np.ones((1, mu.size)),
        "b_eq": [1.0],
    }
    tolerance = 1e-6  # of the solver
    lowest = np.full(attempts.size, np.nan)
    highest = np.full(attempts.size, np.nan)
    for place, failing in enumerate(_log_failing(attempts, mu)):
        solved = -np.expm1(failing)
        least = linprog(solved, **constraints)
        most = linprog(-solved, **constraints)
        if least.success:
            lowest[place] = least.fun - tolerance
            highest[place] = -most.fun + tolerance
    return np.clip(lowest, 0, 1), np.clip(highest, 0, 1)
