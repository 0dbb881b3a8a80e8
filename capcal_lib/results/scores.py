"""Score results: capability Brier scores with intervals over questions, and which method may be the
best.
"""

from typing import Literal, get_args

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import deep_samples, others_mean
from capcal_lib.errors import InputError, check_known
from capcal_lib.manifests import load_dataset
from capcal_lib.probe_names import as_nearest, is_probe, training_sets
from capcal_lib.probes import nearest_probe
from capcal_lib.reported import APPLIED
from capcal_lib.results.estimated import columns_of, confidence_columns, estimates, methods
from capcal_lib.results.results import CONSISTENCY, INDEX, VOTES, subjects
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
DEEP = 32  # samples of a question, from which curves and budgets say something
ROUNDING = 1e-12  # probes that are the same score alike up to this
MISSING_AS = 0.5  # the confidence that the paper's code gives a question without one
BOUNDS = {UNIFORM: (1 / 12, 1 / 3), ORACLE_RC: (0, 1 / 4)}  # of a score; all others lie in [0, 1]
SCORE_COLUMNS = ["brier", "low", "high", "plug_in", "may_be_best", "missing", "questions"]


def stated_methods(results: pd.DataFrame) -> list[str]:
    """List the methods with any confidence that are neither probes nor votes: what a model says
    when asked, and your own methods (``capcal confidence --from``).

    >>> results = pd.DataFrame({"P(True)": [0.5], "Probe (MATH)": [0.5], "mine": [0.1]})
    >>> stated_methods(results.assign(theirs=None))
    ['P(True)', 'mine']
    """
    known = methods(results.dropna(axis="columns", how="all"))
    return [name for name in known if name != CONSISTENCY and not is_probe(name)]


def own_columns(results: pd.DataFrame, dataset: str) -> list[str]:
    """List the columns of a data set's own probe, if it has predicted any of its ``results``.

    >>> results = pd.DataFrame({"Probe (GSM8K)": [0.5], "Probe (MATH)": [0.5]})
    >>> own_columns(results, "math500"), own_columns(results, "triviaqa")
    (['Probe (MATH)'], [])
    """
    return columns_of(results.dropna(axis="columns", how="all"), load_dataset(dataset).probe)


def well_sampled(results: pd.DataFrame) -> list[str]:
    """List the data sets with a probe of their own and 32 samples per question (counted by
    ``applications.deep_samples``). If there are none, list those with a probe; else all.
    """
    names, probed, deep = [], [], []
    for name, subset in results.groupby(level="dataset", sort=False):
        dataset = str(name)
        names.append(dataset)
        if own_columns(subset, dataset):
            probed.append(dataset)
            if deep_samples(subset["total"]) >= DEEP:
                deep.append(dataset)
    return deep or probed or names


def nearest_probe_of(results: pd.DataFrame, dataset: str) -> str | None:
    """Return the probe nearest to a data set (``probes.nearest_probe``), among the probes that have
    predicted any question in ``results``, which hold that data set only.

    >>> columns = {"correct": [1], "total": [2], "Probe (MATH)": [0.5], "Probe (GSM8K)": [None]}
    >>> nearest_probe_of(pd.DataFrame(columns), "gsm8k")
    'Probe (MATH)'
    """
    return nearest_probe(methods(results.dropna(axis="columns", how="all")), dataset)


def questions_differ(results: pd.DataFrame) -> bool:
    """Return whether results of one data set leave anything to compare: whether any two questions
    have different shares of correct samples.

    >>> questions_differ(pd.DataFrame({"correct": [0, 0], "total": [4, 8]}))
    False
    """
    scored = results[results["total"] > 0]
    return bool((scored["correct"] / scored["total"]).nunique() > 1)


def questions_predicted(results: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Keep only the questions of one data set that its nearest probe has predicted; keep all if it
    has no probe.

    >>> columns = {"correct": [1, 2], "total": [2, 2], "Probe (MATH)": [0.5, None]}
    >>> len(questions_predicted(pd.DataFrame(columns), "gsm8k"))
    1
    """
    nearest = nearest_probe_of(results, dataset)
    return results.dropna(subset=columns_of(results, nearest))


def deepest_questions(questions: pd.DataFrame) -> pd.DataFrame:
    """Keep the questions of one data set with the most samples (``applications.deep_samples``).

    >>> len(deepest_questions(pd.DataFrame({"correct": 1, "total": [4] * 20 + [2] * 10})))
    20
    """
    return questions[questions["total"] >= deep_samples(questions["total"])]


def beside_the_paper(results: pd.DataFrame, dataset: str) -> list[str]:
    """List a data set and then the two on which the paper tries its applications, MATH-500 and
    AIME25, if these have 32 samples per question (``applications.deep_samples``) and their
    questions differ.

    >>> index = pd.MultiIndex.from_product([["gsm8k", "math500"], ["a", "b"]])
    >>> index.names = ["dataset", "question_id"]
    >>> counts = pd.DataFrame({"correct": [0, 1, 2, 3], "total": 40}, index)
    >>> beside_the_paper(counts, "gsm8k"), beside_the_paper(counts, "math500")
    (['gsm8k', 'math500'], ['math500'])
    """
    names = [dataset]
    for name in APPLIED:
        if name != dataset and name in results.index.unique("dataset"):
            predicted = questions_predicted(results.loc[[name]], name)
            if deep_samples(predicted["total"]) >= DEEP and questions_differ(predicted):
                names.append(name)
    return names


def fill_unstated(results: pd.DataFrame) -> pd.DataFrame:
    """Replace a missing stated confidence by one half if the method has any, as in the paper's
    code.

    >>> table = pd.DataFrame({"P(True)": [0.2, None], "Probe (MATH)": [None, 0.3]})
    >>> fill_unstated(table).values.tolist()
    [[0.2, nan], [0.5, 0.3]]
    """
    return results.fillna(dict.fromkeys(stated_methods(results), MISSING_AS))


def fill_missing(confidences: pd.DataFrame) -> pd.DataFrame:
    """Replace missing confidences by one half on data sets where the method has any, as in the
    paper's code; but not votes, which are missing if there are too few samples.

    ``confidences`` has one column per confidence, with the index of results."""
    asked = confidences.groupby(level="dataset").transform("count") > 0
    filled = confidences.fillna(MISSING_AS).where(asked)
    if CONSISTENCY in confidences:
        filled[CONSISTENCY] = confidences[CONSISTENCY]
    return filled


def keep_nearest_probe(results: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Keep only the nearest probe in results of one data set, under the name ``Probe``.

    See ``probes.nearest_probe``; under the paper's recipe it has five columns, ``Probe [0]`` to
    ``[4]``. Columns without any confidence are left out.

    >>> columns = ["correct", "total", "P(True)", "Probe (MATH)", "Probe (GSM8K)"]
    >>> results = pd.DataFrame([[1, 2, 0.5, 0.5, 0.5]], columns=columns)
    >>> list(keep_nearest_probe(results, "math500"))
    ['correct', 'total', 'P(True)', 'Probe']
    """
    results = results.dropna(axis="columns", how="all")
    nearest = nearest_probe_of(results, dataset)
    names = {name: name for name in map(str, results) if not training_sets(name)}
    for column in columns_of(results, nearest):
        names[column] = as_nearest(column)
    return results[[*names]].rename(columns=names)


def brier_terms(results: pd.DataFrame, *, protocol: Protocol = "corrected") -> pd.DataFrame:
    """Return the capability Brier term of each question and method, with the index of ``results``.

    The columns are Uniform random, Best constant, the methods, Oracle RC and Oracle CC; the first
    and the last two are exact expectations, and Best constant is :func:`best_constant`. A probe of
    the paper's recipe has the mean term of its five. NaN means not scored: the question has no
    confidence, or fewer than two scored samples. Under the ``paper``'s protocol, terms are plug-in,
    and a missing confidence counts as 0.5, except for votes of too few samples. `InputError` for
    another protocol."""
    corrected = protocol == "corrected"
    terms = _estimate_terms(results, protocol)
    of_question = terms.groupby([*INDEX, "method"], observed=True, sort=False)["term"].mean()
    table = of_question.unstack("method").reindex(results.index)
    scored = results[results["total"] > 1]
    if len(scored):
        counts = scored["correct"], scored["total"]
        table[UNIFORM] = pd.Series(
            metrics.uniform_baseline_brier_terms(*counts, corrected=corrected), scored.index
        )
        table[ORACLE_RC] = pd.Series(
            metrics.correctness_variance_terms(*counts, corrected=corrected), scored.index
        )
        table[ORACLE_CC] = pd.Series(0.0, scored.index)
        table[BEST_CONSTANT] = question_terms(best_constant(scored), scored, corrected=corrected)
    if CONSISTENCY in results and VOTES[-1] in results:
        table[CONSISTENCY] = results["votes term" if corrected else "votes plug-in"]
    table = table.reindex(columns=[UNIFORM, BEST_CONSTANT, *methods(results), *ORACLES])
    return table.rename_axis(columns=None)


def _estimate_terms(results: pd.DataFrame, protocol: Protocol) -> pd.DataFrame:
    """Return the estimates of questions with two scored samples, each with its Brier ``term``."""
    check_known("protocol", protocol, get_args(Protocol))
    corrected = protocol == "corrected"
    scored = results[results["total"] > 1]
    if not corrected:
        confidences = confidence_columns(results)
        scored = scored.assign(**fill_missing(scored[confidences]))
    table = estimates(scored)
    table = table[table["total"] > 1] if corrected else table
    if table.empty:
        return table.assign(term=np.nan)
    numbers = (table[name] for name in NUMBERS)
    return table.assign(term=metrics.capability_brier_terms(*numbers, corrected=corrected))


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


def score(
    results: pd.DataFrame,
    *,
    protocol: Protocol = "corrected",
) -> pd.DataFrame:
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
    terms = brier_terms(results, protocol=protocol)
    plug_in = brier_terms(results, protocol="paper").where(terms.notna())
    scored = results[results["total"] > 1]
    missing = pd.DataFrame(0.0, results.index, terms.columns)
    for method in methods(results):
        missing[method] = scored[columns_of(results, method)].isna().mean(axis="columns")
    if CONSISTENCY in results:  # too few samples to vote are no missing votes
        missing[CONSISTENCY] = 0
        if VOTES[-1] in results:  # of a split's, those of any
            missing[CONSISTENCY] = terms[CONSISTENCY].isna() & results["votes total"].notna()
    groups = subjects(results)
    rows = {}
    for name, subset in terms.groupby(level="dataset", sort=False):
        dataset = str(name)
        subset = subset.dropna(axis="columns", how="all")
        clusters = groups[subset.index] if load_dataset(dataset).clustered else None
        best = mark_best(subset, clusters)
        for method, values in zip(map(str, subset), subset.to_numpy().T, strict=True):
            bounds = BOUNDS.get(method, (0, 1))
            estimate, low, high = metrics.mean_interval(values, clusters=clusters, bounds=bounds)
            if method == ORACLE_CC:  # by definition
                estimate = low = high = 0.0
            rows[dataset, method] = [
                estimate,
                low,
                high,
                plug_in[method][subset.index].mean(),
                best[method],
                int(missing[method][subset.index].sum()),
                subset[method].count(),
            ]
    index = pd.MultiIndex.from_tuples(list(rows), names=["dataset", "method"])
    table = pd.DataFrame(list(rows.values()), index, SCORE_COLUMNS)
    table["may_be_best"] = table["may_be_best"].astype("boolean")
    if len(confidence_columns(results)) > len(methods(results)):  # a method has several members
        of_members = _estimate_terms(results, protocol)
        by_member = of_members.groupby(["dataset", "method", "member"], observed=True)["term"]
        spread = by_member.mean().groupby(["dataset", "method"], observed=True).std()
        table["spread"] = spread.reindex(table.index)
        table["spread"] = table["spread"].where(table["spread"] > ROUNDING)
    return table
