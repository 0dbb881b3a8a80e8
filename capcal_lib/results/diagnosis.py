"""Look behind a method's score: what it is made of, what recalibration mends, and what would settle a comparison."""

from collections.abc import Sequence
from typing import get_args

import numpy as np
import pandas as pd

from capcal_lib.applications import difference_components, questions_needed, samples_needed
from capcal_lib.metrics import capability_brier_terms, soft_auroc, spearman
from capcal_lib.metrics.intervals import bootstrap_means
from capcal_lib.metrics.recalibration import Recalibration, cross_fitted
from capcal_lib.metrics.reliability import binned_split, isotonic_split, smooth_ece
from capcal_lib.metrics.validation import Floats, Ints
from capcal_lib.results.evaluation import Evaluation
from capcal_lib.results.tables import Bools, interval_text

PERFECT = "A perfect estimator"
COUNT = "{:,.0f}"
FORMATS = {"from samples": "{:.1%}", "samples of each": COUNT} | {f"questions at k = {k}": COUNT for k in (1, 10, 100)}


def parts(one: Evaluation, rng: np.random.Generator) -> pd.DataFrame:
    """Take apart the score of every method: one row a method, and one for a perfect estimator.

    ``brier`` is the corrected capability Brier score and equals miscalibration - discrimination + uncertainty (the
    isotonic split, with binomial weights). ``reliability`` and ``resolution`` are those of ten bins; ``smooth ECE``,
    ``concordance`` and ``rank`` (Spearman) follow. A method is scored on the questions that have its confidence and
    two scored samples; ``missing`` is the share of the questions without its confidence.

    The perfect estimator knows the mu of a simulated model: mu is set to mu_hat and as many samples are drawn from it
    anew. What it misses is the noise of the samples, which no method can avoid.
    """
    rows = []
    for method, found in one.confidences.items():
        there = _usable(one, found.values)
        if there.any():
            missing = float(np.isnan(found.values).mean())
            c, n = one.counts.correct[there], one.counts.total[there]
            rows.append((method, *_parts(found.values[there], c, n), missing, one.evidence))
    twice = one.counts.total > 1
    if rows and twice.any():
        mu, n = one.counts.expected_accuracy[twice], one.counts.total[twice]
        rows.append((PERFECT, *_parts(mu, rng.binomial(n, mu), n), 0.0, "simulated"))
    split = ["brier", "miscalibration", "discrimination", "uncertainty"]
    columns = ["method", *split, "reliability", "resolution", "smooth ECE", "concordance", "rank"]
    return pd.DataFrame(rows, columns=[*columns, "missing", "evidence"])


def _parts(s: Floats, c: Ints, n: Ints) -> tuple[float, ...]:
    bins = binned_split(s, c, n)
    others = smooth_ece(s, c, n), soft_auroc(s, c, n), spearman(s, c, n)
    return (*isotonic_split(s, c, n, corrected=True), bins.reliability, bins.resolution, *others)


def _usable(one: Evaluation, *confidences: Floats) -> Bools:
    """Say which questions have two scored samples and all these confidences."""
    return (one.counts.total > 1) & ~np.isnan(np.column_stack(confidences)).any(axis=1)


def recalibrated(one: Evaluation, rng: np.random.Generator) -> pd.DataFrame:
    """Recalibrate every method by every map, cross-fitted over questions: one row a (method, recalibration).

    ``before`` and ``after`` are corrected capability Brier scores of the same questions, ``change`` is after less
    before with its paired interval; below 0 the recalibration helps, and ``for sure`` says whether the interval agrees
    that the score is ``lower``, or ``higher``. No question is recalibrated by a map that it
    helped to learn, nor one of its subject where a data set comes in subjects. A method with a confidence for fewer
    than ten questions is left out.
    """
    names: list[tuple[str, str, float]] = []
    columns: list[Floats] = []
    for method, found in one.confidences.items():
        there = _usable(one, found.values)
        groups = None if one.groups is None else one.groups[there]
        if there.sum() < 10 or (groups is not None and len(np.unique(groups)) < 2):
            continue
        s, c, n = found.values[there], one.counts.correct[there], one.counts.total[there]
        before = capability_brier_terms(s, c, n, corrected=True)
        for by in get_args(Recalibration):
            better = cross_fitted(s, c, n, method=by, rng=rng, groups=groups)
            after = capability_brier_terms(better, c, n, corrected=True)
            names.append((method, by, float(np.isnan(found.values).mean())))
            columns += [_placed(terms, there) for terms in (before, after, after - before)]
    if not names:
        return pd.DataFrame()
    means = bootstrap_means(np.column_stack(columns), rng=rng, clusters=one.groups)
    rows = []
    for (method, by, missing), *scores in zip(names, means[::3], means[1::3], means[2::3], strict=True):
        estimates = (score.estimate for score in scores)
        change = scores[-1]
        sure = "lower" if change.high < 0 else "higher" if change.low > 0 else ""
        rows.append((method, by, *estimates, interval_text(change, 4), sure, missing, one.evidence))
    heads = ["method", "recalibration", "before", "after", "change", "95 % interval", "for sure", "missing", "evidence"]
    return pd.DataFrame(rows, columns=heads)


def _placed(terms: Floats, there: Bools) -> Floats:
    """Put the terms of some questions where they belong among all; NaN elsewhere."""
    values = np.full(len(there), np.nan)
    values[there] = terms
    return values


def settling(one: Evaluation, rng: np.random.Generator, *, ks: Sequence[int] = (1, 10, 100)) -> pd.DataFrame:
    """Ask what would settle which method scores better: the lowest against each other one, one row a comparison.

    ``difference`` is the other method's corrected capability Brier score less that of the lowest, with its paired
    interval, on the questions that both scored. ``from samples`` is the share of the difference's variance that more
    samples of these questions would remove. Then come the questions that would show a difference of this size, with
    a chance of 80 %, at each k, and the samples of each that would do so with the present ``questions``; infinite
    where none do. Uniform random and the oracles take no part.
    """
    found = {
        name: confidence.values for name, confidence in one.confidences.items() if _usable(one, confidence.values).any()
    }
    terms = {name: _brier(one, values) for name, values in found.items()}
    if len(terms) < 2:
        return pd.DataFrame()
    lowest = min(terms, key=lambda name: float(np.nanmean(terms[name])))
    rows = []
    for name, values in found.items():
        both = _usable(one, values, found[lowest])
        if name == lowest or both.sum() < 2:
            continue
        c, n = one.counts.correct[both], one.counts.total[both]
        pilot = difference_components(values[both], found[lowest][both], c, n)
        groups = None if one.groups is None else one.groups[both]
        (interval,) = bootstrap_means((terms[name] - terms[lowest])[both][:, None], rng=rng, clusters=groups)
        sampled = pilot.within * float(np.mean(1 / n))
        whole = pilot.between + sampled
        share = sampled / whole if whole > 0 else np.nan
        needed = [questions_needed(pilot, k) for k in ks]
        more = samples_needed(pilot, int(both.sum()))
        text = interval_text(interval, 4)
        rows.append((name, lowest, pilot.estimate, text, share, *needed, int(both.sum()), more, one.evidence))
    columns = [
        "method",
        "against",
        "difference",
        "95 % interval",
        "from samples",
        *(f"questions at k = {k}" for k in ks),
    ]
    return pd.DataFrame(rows, columns=[*columns, "questions", "samples of each", "evidence"])


def _brier(one: Evaluation, values: Floats) -> Floats:
    there = _usable(one, values)
    c, n = one.counts.correct[there], one.counts.total[there]
    return _placed(capability_brier_terms(values[there], c, n, corrected=True), there)
