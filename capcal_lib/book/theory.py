"""How often intervals cover mu, summed exactly."""

from collections.abc import Sequence
from typing import get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from capcal_lib.metrics.intervals import BinomialMethod, binomial_interval, coverage_probability
from capcal_lib.results.evaluation import Evaluation


def exact_coverage(mus: npt.ArrayLike, k: int, *, level: float = 0.95) -> pd.DataFrame:
    """Compute how often each interval covers mu at k samples, without draws: one row a (method, mu).

    ``width`` is the expected width. Nothing is measured: the model is the binomial distribution alone.
    """
    from scipy.stats import binom  # slow to import

    values = np.asarray(mus, np.float64)
    correct = np.arange(k + 1)
    chance = binom.pmf(correct, k, values[:, None])
    found = []
    for method in get_args(BinomialMethod):
        limits = binomial_interval(correct, np.full(k + 1, k), method=method, level=level)
        covered = coverage_probability(values, k, method=method, level=level)
        width = chance @ (limits[:, 1] - limits[:, 0])
        found.append(pd.DataFrame({"method": method, "mu": values, "k": k, "coverage": covered, "width": width}))
    return pd.concat(found, ignore_index=True).assign(evidence="simulated")


def coverage_summary(table: pd.DataFrame) -> pd.DataFrame:
    """Reduce what ``exact_coverage`` holds to one row a method: over the values of mu, mean and least coverage."""
    grouped = table.groupby("method", sort=False)
    columns = {"mean": grouped["coverage"].mean(), "least": grouped["coverage"].min(), "width": grouped["width"].mean()}
    return pd.DataFrame(columns).reset_index().assign(evidence="simulated")


def coverage_on(evaluations: Sequence[Evaluation], k: int) -> pd.DataFrame:
    """Average each interval's exact coverage over the questions of each data set, as if their mu were known.

    The mean of the Jeffreys posterior, (correct + 1/2)/(total + 1), stands for mu: mu_hat itself would be 0 or 1 for
    many questions, where no interval can miss. One row a data set, one column an interval.
    """
    rows = []
    for one in evaluations:
        scored = one.counts.total > 0
        mu = (one.counts.correct[scored] + 0.5) / (one.counts.total[scored] + 1)
        covered = {
            method: float(coverage_probability(mu, k, method=method).mean()) if len(mu) else np.nan
            for method in get_args(BinomialMethod)
        }
        rows.append({"data set": one.dataset.title, **covered, "evidence": "simulated"})
    return pd.DataFrame(rows)


def at_the_ends(evaluations: Sequence[Evaluation]) -> pd.DataFrame:
    """Count the questions of which no sample is correct, or all are: one row a data set, shares of those scored."""
    rows = []
    for one in evaluations:
        scored = one.counts.total > 0
        c, n = one.counts.correct[scored], one.counts.total[scored]
        shares = (float(np.mean(ends)) if len(n) else np.nan for ends in (c == 0, c == n))
        rows.append((one.dataset.title, len(n), *shares, one.evidence))
    return pd.DataFrame(rows, columns=["data set", "questions", "none correct", "all correct", "evidence"])
