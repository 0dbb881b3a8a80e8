"""Score results: the Brier terms of every method, capability Brier scores with intervals over
questions, which method may be the best, and recalibration.
"""

from collections.abc import Iterator
from typing import Any, Literal, get_args
from zlib import crc32

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import others_mean
from capcal_lib.errors import InputError, check_known
from capcal_lib.manifests import load_dataset
from capcal_lib.metrics.validation import check_int
from capcal_lib.probe_names import read_column
from capcal_lib.results.estimated import VOTED, confidence_columns, estimates, methods
from capcal_lib.results.results import CONSISTENCY, INDEX, SPLIT_TERMS, VOTES, subjects
from capcal_lib.results.terms import (
    BEST_CONSTANT,
    COUNTS,
    NUMBERS,
    ORACLE_CC,
    ORACLE_RC,
    ORACLES,
    UNIFORM,
    mark_best,
    question_terms,
)

Protocol = Literal["corrected", "paper"]
ROUNDING = 1e-12  # probes that are the same score alike up to this
BOUNDS = {UNIFORM: (1 / 12, 1 / 3), ORACLE_RC: (0, 1 / 4)}  # of a score; all others lie in [0, 1]


def best_constant(results: pd.DataFrame) -> "pd.Series[float]":
    """Return the best confidence that is the same for all questions of a data set: its mean mu_hat.

    A question's value is the mean of the others, so that none helps to predict itself; NaN if a
    data set has a single scored question. A confidence that knows something about the questions
    scores lower.

    >>> index = pd.MultiIndex.from_product(
    ...     [["mine"], ["a", "b", "c"]], names=["dataset", "question_id"]
    ... )
    >>> counts = pd.DataFrame({"correct": [0, 5, 10], "total": 10}, index)
    >>> best_constant(counts).tolist()
    [0.75, 0.5, 0.25]
    """
    mu_hat = results["correct"] / results["total"]
    return mu_hat.groupby(level="dataset").transform(others_mean)


def terms_of(results: pd.DataFrame, *, protocol: Protocol = "corrected") -> pd.DataFrame:
    """Return the long table of ``estimates`` with the capability Brier ``term`` of each, its
    ``plug_in`` term, and the term of the best constant by the same samples, ``constant``.

    Only questions with two scored samples count. A vote's terms are its means over many splits, if
    the results have them. Under the ``paper``'s protocol, all terms are plug-in, and a missing
    confidence counts as one half."""
    check_known("protocol", protocol, get_args(Protocol))
    corrected = protocol == "corrected"
    scored = results[results["total"] > 1]
    table = estimates(scored, fill=not corrected)
    table = table[table["total"] > 1] if corrected else table
    table = table.assign(term=_terms(table, corrected), plug_in=_terms(table, corrected=False))
    if {CONSISTENCY, *SPLIT_TERMS} <= {*results}:
        votes = scored[[CONSISTENCY, *COUNTS, *SPLIT_TERMS]]
        votes = votes.set_axis([*NUMBERS, "term", "plug_in"], axis="columns")
        votes["term"] = votes["term"] if corrected else votes["plug_in"]
        votes = votes.dropna(subset="term").assign(method=CONSISTENCY, member=0, kind=VOTED)
        votes["nearest"] = False
        table = pd.concat([table[table["method"] != CONSISTENCY], votes])
        table["method"] = pd.Categorical(table["method"], methods(results))
    rival = table.assign(confidence=best_constant(scored).reindex(table.index))
    return table.assign(constant=_terms(rival, corrected))


def _terms(table: pd.DataFrame, corrected: bool) -> "pd.Series[float]":
    """Return the Brier term of each row; NaN without a confidence."""
    known = table["confidence"].notna().to_numpy()
    terms = np.full(len(table), np.nan)
    if known.any():
        numbers = table.loc[known, NUMBERS].to_numpy().T
        terms[known] = metrics.capability_brier_terms(*numbers, corrected=corrected)
    return pd.Series(terms, table.index)


def brier_terms(results: pd.DataFrame, *, protocol: Protocol = "corrected") -> pd.DataFrame:
    """Return the capability Brier term of each question and method, with the index of ``results``.

    The columns are Uniform random, Best constant, the methods, Oracle RC and Oracle CC; the first
    and the last two are exact expectations, and Best constant is :func:`best_constant`. A probe of
    the paper's recipe has the mean term of its five. NaN means not scored: the question has no
    confidence, or fewer than two scored samples. Under the ``paper``'s protocol, terms are plug-in,
    and a missing confidence counts as 0.5, except for votes of too few samples. `InputError` for
    another protocol."""
    listed = terms_of(results, protocol=protocol)
    return _by_question(listed, "term", results, corrected=protocol == "corrected")


def _by_question(
    listed: pd.DataFrame, column: str, results: pd.DataFrame, *, corrected: bool
) -> pd.DataFrame:
    """Average a column of terms over the members of each method, and add the terms of the baselines
    and oracles: one row per question of ``results``, one column per method.
    """
    of_question = listed.groupby([*INDEX, "method"], observed=True, sort=False)[column].mean()
    table = of_question.unstack("method").reindex(results.index)
    scored = results[results["total"] > 1]
    if len(scored):
        counts = scored["correct"], scored["total"]
        uniform = metrics.uniform_baseline_brier_terms(*counts, corrected=corrected)
        variance = metrics.correctness_variance_terms(*counts, corrected=corrected)
        table[UNIFORM] = pd.Series(uniform, scored.index)
        table[ORACLE_RC] = pd.Series(variance, scored.index)
        table[ORACLE_CC] = pd.Series(0.0, scored.index)
        table[BEST_CONSTANT] = question_terms(best_constant(scored), scored, corrected=corrected)
    table = table.reindex(columns=[UNIFORM, BEST_CONSTANT, *methods(results), *ORACLES])
    return table.rename_axis(columns=None)


def score(results: pd.DataFrame, *, protocol: Protocol = "corrected") -> pd.DataFrame:
    """Score every method on every data set by its capability Brier score; lower is better.

    ``results`` come from ``load_results``; you may add columns of confidences. Under the
    ``corrected`` protocol the noise of mu_hat is subtracted, and missing confidences are left out;
    see ``brier_terms``. A probe of the paper's recipe has the mean score of its five; if they
    differ, a last column, ``spread``, is their standard deviation.

    Returns a table indexed by (dataset, method): ``brier``, with the 95 % interval ``low`` to
    ``high`` for questions like these; ``plug_in``, the uncorrected score of the same questions;
    ``may_be_best``, see :func:`mark_best`; the number of ``missing`` confidences, on questions with
    at least two scored samples; and the number of scored ``questions``. The corrected score is
    unbiased, so it may fall below zero. A method without any confidence on a data set has no row
    there. `InputError` for a table with another index or without counts.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> from capcal_lib.results import load_results
    >>> scores = score(load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mini-exam"]))
    >>> round(float(scores.loc[("mini-exam", "Uniform random"), "brier"]), 4)
    0.1722
    """
    if [*results.index.names] != INDEX or not {*COUNTS} <= {*results}:
        raise InputError(
            f"results are indexed by {' and '.join(INDEX)} and have {' and '.join(COUNTS)}, as "
            "load_results gives them; score a table of your own with capcal_lib.io.score_table"
        )
    listed, corrected = terms_of(results, protocol=protocol), protocol == "corrected"
    terms = _by_question(listed, "term", results, corrected=corrected)
    plug_in = _by_question(listed, "plug_in", results, corrected=False).where(terms.notna())
    groups = subjects(results)
    rows = {}
    for name, subset in terms.groupby(level="dataset", sort=False):
        subset = subset.dropna(axis="columns", how="all")
        clusters = groups[subset.index] if load_dataset(str(name)).clustered else None
        best = mark_best(subset, clusters)
        for method in map(str, subset):
            bounds = BOUNDS.get(method, (0, 1))
            interval = metrics.mean_interval(subset[method], clusters=clusters, bounds=bounds)
            if method == ORACLE_CC:  # by definition
                interval = metrics.Interval(0.0, 0.0, 0.0)
            mean = plug_in.loc[subset.index, method].mean()
            rows[str(name), method] = [*interval, mean, best[method], subset[method].count()]
    columns = ["brier", "low", "high", "plug_in", "may_be_best", "questions"]
    index = pd.MultiIndex.from_tuples(list(rows), names=["dataset", "method"])
    table = pd.DataFrame(list(rows.values()), index, columns)
    table["may_be_best"] = table["may_be_best"].astype("boolean")
    missing = _count_missing(results, terms).reindex(index).fillna(0)
    table.insert(5, "missing", missing.astype(int))
    if listed["member"].any():  # a method has several
        by_member = listed.groupby(["dataset", "method", "member"], observed=True)["term"]
        spread = by_member.mean().groupby(["dataset", "method"], observed=True).std()
        table["spread"] = spread[spread > ROUNDING].reindex(index)
    return table


def _count_missing(results: pd.DataFrame, terms: pd.DataFrame) -> "pd.Series[int]":
    """Count the questions of each data set and method that can be scored and have no confidence.
    Votes are missing if no sample that votes has an answer, but not if there are too few samples.
    """
    scored = results[results["total"] > 1]
    known = scored[confidence_columns(results)].notna()
    known = known.T.groupby(lambda name: read_column(name)[0]).any().T  # of any member
    missing = (~known).groupby(level="dataset").sum()
    if CONSISTENCY in missing:
        missing[CONSISTENCY] = 0
    if VOTES[1] in results:
        lost = results[VOTES[1]].notna() & terms[CONSISTENCY].isna()
        missing[CONSISTENCY] = lost.groupby(level="dataset").sum()
    of_method: Any = missing.stack()
    return of_method


def recalibrate(results: pd.DataFrame, *, folds: int = 5) -> pd.DataFrame:
    """Give every method the same labels: recalibrate its confidences on each data set with the
    labels of the other folds.

    A confidence can rank questions well and still be far from mu, because its level is off. The
    best constant and the probes have learned the level from labels. ``results`` come from
    ``load_results``. A fold consists of whole subjects, or of questions if the data set has no
    subjects, and is the same each time. Platt's method (``metrics.Calibrator``) learns from the
    counts of the other folds.

    Returns the same table with recalibrated confidences; NaN if a method has none, or if the other
    folds have fewer than two questions. *Response consistency* is the recalibrated vote of a
    question's first samples, beside the counts of the samples that did not vote. `InputError` for
    fewer than two ``folds``.

    >>> index = pd.MultiIndex.from_product([["gsm8k"], map(str, range(40))])
    >>> index.names = ["dataset", "question_id"]
    >>> counts = {"correct": [1, 3] * 20, "total": 4}
    >>> results = pd.DataFrame(counts | {"P(True)": [0.8, 0.9] * 20}, index)
    >>> recalibrate(results)["P(True)"].round(2).unique().tolist()
    [0.25, 0.75]
    """
    check_int("folds", folds, least=2)
    recalibrated = results.drop(columns=SPLIT_TERMS, errors="ignore")
    recalibrated[confidence_columns(results)] = np.nan
    listed = estimates(results)
    columns: dict[Any, str] = {read_column(name): name for name in confidence_columns(results)}
    fold = folds_of_sets(results, folds)
    for case, rows in listed.groupby(["dataset", "method", "member"], observed=True):
        for inside, _, calibrator in calibrated_folds(rows, fold):
            values = calibrator.predict(inside["confidence"])
            recalibrated.loc[inside.index, columns[case[1:]]] = values
    return recalibrated


def folds_of_sets(results: pd.DataFrame, folds: int = 5) -> "pd.Series[int]":
    """Deal the questions of each data set out to folds of whole subjects."""
    return subjects(results).groupby(level="dataset").transform(folds_of, folds)


def folds_of(groups: "pd.Series[str]", folds: int) -> "pd.Series[int]":
    """Deal whole groups out to folds, in an order that their names alone decide."""
    names = sorted(groups.unique(), key=lambda name: (crc32(str(name).encode()), str(name)))
    return groups.map({name: place % folds for place, name in enumerate(names)})


def calibrated_folds(
    rows: pd.DataFrame, fold: "pd.Series[int]"
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame, metrics.Calibrator]]:
    """Yield the rows of each fold, those of the others, and Platt's method as it learns from these;
    a fold is left out if the others have fewer than two rows.
    """
    for _, inside in rows.groupby(fold[rows.index]):
        others = rows.drop(inside.index)
        if len(others) > 1:
            counts = (others[name] for name in NUMBERS)
            yield inside, others, metrics.Calibrator("platt").fit(*counts)
