"""Score results: capability Brier scores with intervals over questions, and which method may be the
best.
"""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import others_mean
from capcal_lib.errors import check_known
from capcal_lib.manifests import load_dataset
from capcal_lib.results.results import (
    CONSISTENCY,
    COUNTS,
    ORACLE_CC,
    ORACLE_RC,
    UNIFORM,
    VOTES,
    subjects,
)
from capcal_lib.results.score_file import question_terms

Protocol = Literal["corrected", "paper"]
ROUNDING = 1e-12  # methods that are the same in all parts differ by this at most
ORACLES = [ORACLE_RC, ORACLE_CC]
MISSING_AS = 0.5  # the confidence that the paper's code gives a question without one
BOUNDS = {UNIFORM: (1 / 12, 1 / 3), ORACLE_RC: (0, 1 / 4)}  # of a score; all others lie in [0, 1]
COLUMNS = ["brier", "low", "high", "plug_in", "may_be_best", "missing", "questions"]


def methods(results: pd.DataFrame) -> list[str]:
    """List the methods of results: its columns but those of counts."""
    return [name for name in map(str, results) if name not in (*COUNTS, *VOTES)]


def brier_terms(results: pd.DataFrame, *, protocol: Protocol = "corrected") -> pd.DataFrame:
    """Return the capability Brier term of each question by each method, under the index of
    ``results``.

    The columns are Uniform random, the methods, Oracle RC and Oracle CC; the first and the last two
    are exact expectations. NaN is not scored: a question without a confidence, or with fewer than
    two scored samples. By the ``paper``'s protocol terms are plug-in, and a missing confidence is
    0.5. Another protocol is refused."""
    check_known("protocol", protocol, get_args(Protocol))
    corrected = protocol == "corrected"
    scored = results[results["total"] > 1]
    confidences = scored[methods(results)]
    if not corrected:
        was_asked = confidences.groupby(level="dataset").transform("count") > 0
        confidences = confidences.fillna(MISSING_AS).where(was_asked)
    table = confidences.apply(question_terms, counts=scored, corrected=corrected)
    if len(scored):
        counts = scored["correct"], scored["total"]
        table[UNIFORM] = metrics.uniform_baseline_brier_terms(*counts, corrected=corrected)
        table[ORACLE_RC] = metrics.correctness_variance_terms(*counts, corrected=corrected)
        table[ORACLE_CC] = 0.0
    table = table.reindex(results.index, columns=[UNIFORM, *confidences, *ORACLES])
    if CONSISTENCY in results and VOTES[-1] in results:
        table[CONSISTENCY] = results["votes term" if corrected else "votes plug-in"]
    return table


def best_constant(results: pd.DataFrame) -> "pd.Series[float]":
    """Return the best confidence that is the same for all questions of a data set: its mean mu_hat.

    That of a question is the mean of the others, so that none helps to predict itself; NaN where a
    data set has one scored question. Any confidence that knows something of the questions has a
    lower score.

    >>> index = pd.MultiIndex.from_product(
    ...     [["mine"], ["a", "b", "c"]], names=["dataset", "question_id"]
    ... )
    >>> counts = pd.DataFrame({"correct": [0, 5, 10], "total": 10}, index)
    >>> best_constant(counts).tolist()
    [0.75, 0.5, 0.25]
    """
    mu_hat = results["correct"] / results["total"]
    return mu_hat.groupby(level="dataset").transform(others_mean)


def gains_by_dataset(terms: pd.DataFrame, rival: str) -> pd.DataFrame:
    """Test on each data set how much better than a rival each method is, with subjects drawn whole.

    ``terms`` are those of ``brier_terms``, whose index may have levels beside the data set, such as
    a model; lower is better. Returns the table of ``metrics.gains`` with a row a method under each
    case, without those that have fewer than two questions in common.

    >>> index = pd.MultiIndex.from_product(
    ...     [["gsm8k"], map(str, range(100))], names=["dataset", "question_id"]
    ... )
    >>> terms = pd.DataFrame({"rival": 0.5, "mine": 0.1}, index)
    >>> gains_by_dataset(terms, "rival").loc[("gsm8k", "mine"), "verdict"]
    'better'
    """
    cases = [name for name in terms.index.names if name != "question_id"]
    found = {
        case: metrics.gains(own, rival, clusters=subjects(own))
        for case, own in terms.groupby(level=cases, sort=False)
    }
    return pd.concat(found, names=[*cases, "method"]).dropna(subset="p")


def score(
    results: pd.DataFrame | Sequence[pd.DataFrame],
    *,
    seed: int = 0,  # noqa: ARG001
    protocol: Protocol = "corrected",
) -> pd.DataFrame:
    """Score every method on every data set by its capability Brier score; lower is better.

    ``results`` are those of ``load_results``, with any further columns of confidences. By the
    ``corrected`` protocol what mu_hat's own noise adds is subtracted, and missing confidences are
    left out; see ``brier_terms``. Several results of the same questions, such as those of the five
    probes of the paper's recipe, are scored by the mean of their terms; ``spread``, a last column,
    is then the standard deviation of a method's score over them, where they differ. No
    number depends on ``seed``.

    Returns a table indexed by (dataset, method): ``brier``, with the 95 % interval ``low`` to
    ``high`` for questions like these; ``plug_in``, the uncorrected score of the same questions;
    ``may_be_best``, whether no other is significantly better on the questions that both have, NA
    for the oracles, which do not compete; ``missing`` confidences; and scored ``questions``. The
    corrected score is unbiased, so it may fall below zero. A method without any confidence on a
    data set has no row there.

    >>> from capcal_lib.manifests import RECORDED_RUNS
    >>> from capcal_lib.results import load_results
    >>> scores = score(load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mini-exam"]))
    >>> round(float(scores.loc[("mini-exam", "Uniform random"), "brier"]), 4)
    0.1722
    """
    parts = [results] if isinstance(results, pd.DataFrame) else list(results)
    results = parts[0]
    each = [brier_terms(part, protocol=protocol) for part in parts]
    terms: Any = sum(each) / len(parts)
    plug_in: Any = sum(brier_terms(part, protocol="paper") for part in parts) / len(parts)
    plug_in = plug_in.where(terms.notna())
    missing = results[methods(results)].isna().reindex(columns=terms.columns, fill_value=False)
    if VOTES[-1] in results:  # of votes, a split's of any; too few samples to vote are none
        missing[CONSISTENCY] = terms[CONSISTENCY].isna() & results["votes total"].notna()
    groups = subjects(results)
    rows = {}
    for dataset, own in terms.groupby(level="dataset", sort=False):
        own = own.dropna(axis="columns", how="all")
        clusters = groups[own.index] if load_dataset(dataset).clustered else None
        best = metrics.may_be_best(own.drop(columns=ORACLES, errors="ignore"), clusters)
        for method, values in own.items():
            bounds = BOUNDS.get(method, (0, 1))
            limits = metrics.mean_interval(values, clusters=clusters, bounds=bounds)
            rows[dataset, method] = [
                *(limits if method != ORACLE_CC else (0.0, 0.0, 0.0)),  # by definition
                plug_in[method][own.index].mean(),
                None if method in ORACLES else method in best,
                missing[method][own.index].sum(),
                values.count(),
            ]
    index = pd.MultiIndex.from_tuples(list(rows), names=["dataset", "method"])
    table = pd.DataFrame(list(rows.values()), index, COLUMNS)
    table["may_be_best"] = table["may_be_best"].astype("boolean")
    if len(parts) > 1:
        means = [one.groupby(level="dataset").mean().stack() for one in each]
        spread = pd.concat(means, axis="columns").std(axis="columns")
        table["spread"] = spread.where(spread > ROUNDING).reindex(table.index)
    return table
