"""Estimates of expected accuracy against its exact value, where that is known."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from capcal_lib.metrics.validation import Floats
from capcal_lib.results.evaluation import Evaluation, run_of
from capcal_lib.results.exact import FILE, ExactAccuracy, read_exact

Pair = tuple[Evaluation, ExactAccuracy]


def exact_pairs(store: Path, evaluations: Sequence[Evaluation]) -> list[Pair]:
    """Return the sampled evaluations whose answers were enumerated, each with its bounds in the counts' order."""
    pairs = []
    for one in evaluations:
        if not one.sampled:
            continue
        folder = run_of(store, one)
        if (folder / FILE).exists():
            bounds = read_exact(folder)
            rows = pd.Index(bounds.question_ids).get_indexer(pd.Index(one.counts.question_ids))
            columns = bounds.question_ids[rows], bounds.lower[rows], bounds.upper[rows], bounds.passes[rows]
            pairs.append((one, ExactAccuracy(*columns)))
    return pairs


def bounds_table(pairs: Sequence[Pair]) -> pd.DataFrame:
    """Summarise the bounds: one row a data set.

    ``known`` counts the questions whose bounds are at most 0.05 apart, ``apart`` is the mean distance of all bounds.
    ``mu`` and ``mu_hat`` are means over the known ones. ``passes`` and ``tokens`` are what a question costs: next
    tokens asked of the network for the bounds, and tokens drawn for mu_hat.
    """
    rows = []
    for one, exact in pairs:
        known = ~np.isnan(exact.mu)
        mu = exact.mu[known].mean() if known.any() else np.nan
        mu_hat = np.nanmean(one.counts.expected_accuracy[known]) if known.any() else np.nan
        tokens = one.answer_tokens * one.counts.total.mean()
        numbers = (len(exact), int(known.sum()), float((exact.upper - exact.lower).mean()), mu, mu_hat)
        rows.append((one.dataset.title, *numbers, exact.passes.mean(), tokens, one.evidence))
    columns = ["data set", "questions", "known", "apart", "mu", "mu_hat", "passes", "tokens", "evidence"]
    return pd.DataFrame(rows, columns=columns)


def z_scores(one: Evaluation, exact: ExactAccuracy) -> Floats:
    """Return (mu_hat - mu) / sqrt(mu (1 - mu) / total) of the questions whose mu is known and is neither 0 nor 1.

    If samples and probabilities agree they are spread like a standard normal variable, whatever mu is.
    """
    mu, total = exact.mu, one.counts.total
    variance = mu * (1 - mu)
    usable = (total > 0) & (variance * total > 1)  # NaN is not
    spread = np.sqrt(variance[usable] / total[usable])
    return np.asarray((one.counts.expected_accuracy[usable] - mu[usable]) / spread)


def convergence(
    one: Evaluation, exact: ExactAccuracy, ks: Sequence[int], rng: np.random.Generator, *, draws: int = 50
) -> pd.DataFrame:
    """Measure how far mu_hat of k samples is from mu: one row a k for which there are samples.

    ``error`` is the root mean square of mu_hat - mu over the known questions and over draws of k of their samples,
    without replacement; ``theory`` the root of the mean of mu (1 - mu) / k.
    """
    known = ~np.isnan(exact.mu) & (one.counts.total >= max(ks, default=0))
    correct, total, mu = one.counts.correct[known], one.counts.total[known], exact.mu[known]
    rows = []
    for k in ks if known.any() else ():
        drawn = rng.hypergeometric(correct, total - correct, k, size=(draws, len(mu))) / k
        theory = np.sqrt(np.mean(mu * (1 - mu)) / k)
        rows.append((k, float(np.sqrt(np.mean((drawn - mu) ** 2))), float(theory), one.evidence))
    return pd.DataFrame(rows, columns=["k", "error", "theory", "evidence"])


def best_known(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pair with the most known questions: at most one."""
    return sorted(pairs, key=lambda pair: int(np.isnan(pair[1].mu).sum()) - len(pair[1]))[:1]


def agreement(z: Sequence[float] | Floats) -> dict[str, float]:
    """Summarise ``z_scores``, each beside what a standard normal variable gives; NaN for none.

    Returns
    -------
    dict
        ``spread``, their standard deviation (1); ``outside``, the share beyond 1.96 (0.05); ``middle``, the mean in its
        standard errors (within 2, nearly always).
    """
    scores = np.asarray(z, np.float64)
    if not len(scores):
        return dict.fromkeys(("spread", "outside", "middle"), float("nan"))
    middle = float(scores.mean() * np.sqrt(len(scores)))
    return {"spread": float(scores.std()), "outside": float(np.mean(np.abs(scores) > 1.96)), "middle": middle}
