"""What the theory pages compute: both theorems on counts, the uniform baseline, and the coverage of intervals."""

from collections.abc import Sequence
from typing import get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from capcal_lib.metrics import uniform_baseline_brier
from capcal_lib.metrics.intervals import BinomialMethod, binomial_interval, coverage_probability
from capcal_lib.metrics.scores import ProperScore, bregman_information, capability_loss, expected_response_loss
from capcal_lib.results.evaluation import Evaluation


def optima(evaluation: Evaluation, rng: np.random.Generator) -> pd.DataFrame:
    """Search the best confidence of each question by either target: one row a score (theorem 1).

    The search is over a grid that holds 0, 1 and mu_hat. ``furthest from C`` is the largest distance of the best
    confidence for one drawn sample from that sample's correctness, and ``furthest from mu_hat`` that of the best
    confidence by capability loss from mu_hat; both are zero up to rounding. ``optima apart`` is the share of
    questions whose two best confidences differ. Without a scored sample the table is empty.
    """
    scored = evaluation.counts.total > 0
    c, n = evaluation.counts.correct[scored], evaluation.counts.total[scored]
    drawn = rng.random(len(n)) < np.divide(c, n)
    rows = []
    for score in get_args(ProperScore) if len(n) else ():
        response, capability = np.empty(len(n)), np.empty(len(n))
        for row, (hits, samples) in enumerate(zip(c, n, strict=True)):
            grid = np.arange(samples + 1) / samples
            response[row] = grid[_losses(grid, int(drawn[row]), 1, score).argmin()]
            capability[row] = grid[_losses(grid, hits, samples, score).argmin()]
        distances = np.abs(response - drawn).max(), np.abs(capability - c / n).max()
        rows.append((score, len(n), *distances, float(np.mean(response != capability)), evaluation.evidence))
    columns = ["score", "questions", "furthest from C", "furthest from mu_hat", "optima apart", "evidence"]
    return pd.DataFrame(rows, columns=columns)


def _losses(grid: npt.NDArray[np.float64], correct: int, total: int, score: ProperScore) -> npt.NDArray[np.float64]:
    return capability_loss(grid, np.full(len(grid), correct), np.full(len(grid), total), score=score)


def proper_scores(evaluation: Evaluation, *, clip: float = 0.001) -> pd.DataFrame:
    """Evaluate both sides of the general theorem 2: one row a (score, method).

    Confidences are moved into [clip, 1 - clip] first, since the log score of a wrong 0 or 1 is infinite. Losses are
    means over the questions that have the confidence and a scored sample; ``gap`` is capability loss -
    (expected response loss - Bregman information): zero up to rounding.
    """
    rows = []
    for score in get_args(ProperScore):
        for method, confidence in evaluation.confidences.items():
            there = (evaluation.counts.total > 0) & ~np.isnan(confidence.values)
            if not there.any():
                continue
            counts = evaluation.counts.correct[there], evaluation.counts.total[there]
            s = np.clip(confidence.values[there], clip, 1 - clip)
            response = float(expected_response_loss(s, *counts, score=score).mean())
            information = float(bregman_information(*counts, score=score).mean())
            capability = float(capability_loss(s, *counts, score=score).mean())
            rows.append((score, method, response, information, capability, capability - (response - information)))
    columns = ["score", "method", "expected response loss", "Bregman information", "capability loss", "gap"]
    return pd.DataFrame(rows, columns=columns).assign(evidence=evaluation.evidence)


def widest_gap(tables: Sequence[pd.DataFrame]) -> float:
    """Return the largest absolute ``gap`` of some tables; NaN where all are empty."""
    return max((float(table["gap"].abs().max()) for table in tables if len(table)), default=float("nan"))


def single_draws(evaluation: Evaluation, rng: np.random.Generator, *, draws: int = 1000) -> pd.DataFrame:
    """Compare the exact uniform baseline with draws of the confidences: one row, mean and spread of their scores."""
    scored = evaluation.counts.total > 0
    c, n = evaluation.counts.correct[scored], evaluation.counts.total[scored]
    if not len(n):
        return pd.DataFrame()
    scores = ((rng.random((draws, len(n))) - c / n) ** 2).mean(axis=1)
    facts = evaluation.dataset.title, len(n), uniform_baseline_brier(c, n), scores.mean(), scores.std(ddof=1)
    columns = ["data set", "questions", "exact", "mean of draws", "sd of one draw", "evidence"]
    return pd.DataFrame([(*facts, evaluation.evidence)], columns=columns)


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
