"""pass@k beyond the samples that were drawn, with limits that hold for any prior."""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from capcal_lib.applications.passk import deep_samples, pass_at_k, simulate_pass_at_k
from capcal_lib.applications.posterior import fit_concentration
from capcal_lib.errors import InputError
from capcal_lib.metrics.intervals import mean_interval, units_of
from capcal_lib.metrics.validation import Floats, Ints, align, as_counts, as_whole

MISS = 0.05  # of the limits


def extrapolate_pass_at_k(
    correct: ArrayLike, total: ArrayLike, ks: ArrayLike, *, clusters: ArrayLike | None = None
) -> pd.DataFrame:
    """Estimate a data set's pass@k, also for k beyond the number of samples.

    Up to n samples it is the mean of :func:`pass_at_k` with its interval, over the questions that
    have k samples. Beyond n it depends on how many questions are hopeless or nearly so, which n
    samples hardly show. So the limits hold for any prior of mu. They are the least and the largest
    pass@k of all priors whose counts lie within a 95 % confidence band around those seen
    (Dvoretzky, Kiefer and Wolfowitz), found by linear programming: wide, but valid. The estimate
    assumes a Beta prior with the mean over questions and the spread of the counts (Kazdan et al.,
    arXiv 2510.05197), and is kept within the limits. The limits are 0 and 1 if no independent
    samples could give such counts.

    ``clusters`` labels questions that belong together, as in
    :func:`~capcal_lib.metrics.mean_interval`. The band is then as wide as if each cluster were one
    question (Kish's effective number, if their sizes differ), since the questions of a cluster may
    all be alike. So it is never too narrow, and far too wide if they are not alike.

    The number of samples must be fixed beforehand. If totals differ, n is
    :func:`~capcal_lib.applications.deep_samples` of them. Beyond n, only questions with at least n
    samples are used; if one has more, its expected counts among n samples stand for it. Nothing is
    drawn at random.

    Returns one row per k: ``k``, ``estimate``, ``low`` and ``high`` (the 95 % limits for questions
    like these), and the number of ``questions``. `InputError` if k is beyond the samples and no
    question has both correct and incorrect ones.

    >>> rng = np.random.default_rng(0)
    >>> mu = rng.beta(0.3, 1.0, 500)
    >>> correct, total = rng.binomial(20, mu), np.full(500, 20)
    >>> table = extrapolate_pass_at_k(correct, total, [10, 100]).set_index("k")
    >>> table.loc[100, ["low", "estimate", "high"]].round(2).tolist()
    [0.58, 0.78, 0.98]
    >>> float((1 - (1 - mu) ** 100).mean().round(3))
    0.796
    """
    correct, total, clusters = align(correct=correct, total=total, clusters=clusters)
    hits, samples = as_counts(correct, total, scored=1)
    attempts = as_whole("k", ks, least=1)
    n = deep_samples(samples)
    measured = pass_at_k(hits, samples, np.minimum(attempts, n))
    rows = [mean_interval(column, clusters=clusters, bounds=(0, 1)) for column in measured.T]
    table = pd.DataFrame(rows).fillna({"low": 0.0, "high": 1.0})  # of a single question
    table.insert(0, "k", attempts)
    table["questions"] = np.isfinite(measured).sum(axis=0)
    beyond = attempts > n
    if not beyond.any():
        return table
    deep = samples >= n
    hits, samples = hits[deep], samples[deep]
    if not ((hits > 0) & (hits < samples)).any():
        raise InputError(
            "no question has both correct and incorrect samples, so pass@k cannot be extrapolated "
            f"beyond {n} samples; draw more samples, or ask for a smaller k"
        )
    mean = (hits / samples).mean()
    nu = min(fit_concentration(mean, hits, samples), 1e6)
    whole = nu + samples
    s = (nu * mean + hits) / whole
    estimate = simulate_pass_at_k(s, attempts[beyond], concentration=whole).mean(axis=0)
    of_deep = None if clusters is None else np.asarray(clusters, dtype=object)[deep]
    sizes = units_of(np.ones(len(hits)), of_deep)[1]
    draws = float(sizes.sum() ** 2 / (sizes**2).sum())  # Kish's effective number
    limits = _limits(hits, samples, n, attempts[beyond], draws)
    table.loc[beyond, "estimate"] = np.clip(estimate, *limits.T)
    table.loc[beyond, ["low", "high"]] = limits
    return table


def _limits(hits: Ints, samples: Ints, n: int, attempts: Ints, draws: float) -> Floats:
    """Bound pass@k over all distributions of mu that agree with the counts of n samples seen, given
    the number of independent draws; one row per k.
    """
    from scipy.optimize import linprog  # slow to import
    from scipy.special import expit
    from scipy.stats import binom, hypergeom

    # Even on the logit scale, finely for many samples, and the ends.
    inner = expit(np.linspace(-16, 12, max(200, int(28 * np.sqrt(n)))))
    mu = np.concatenate([[0.0], inner, [1.0]])
    counts = np.arange(n)
    seen = hypergeom.cdf(counts[:, None], samples, hits, n).mean(axis=1)
    band = np.sqrt(np.log(2 / MISS) / (2 * draws))
    below = binom.cdf(counts[:, None], n, mu)
    constraints = {
        "A_ub": np.vstack([below, -below]),
        "b_ub": np.concatenate([seen + band, band - seen]),
        "A_eq": np.ones((1, mu.size)),
        "b_eq": [1.0],
    }
    limits = []
    for k in attempts:
        solved = -np.expm1(k * np.log1p(-np.minimum(mu, 1 - 1e-16)))
        least = linprog(solved, **constraints)
        most = linprog(-solved, **constraints)
        both_solved = least.success and most.success
        # with the tolerance of the solver
        limits.append((least.fun - 1e-6, 1e-6 - most.fun) if both_solved else (0.0, 1.0))
    return np.clip(limits, 0, 1)
