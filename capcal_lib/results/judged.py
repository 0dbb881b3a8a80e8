"""Judge comparisons: the one place that corrects verdicts for how many are judged together, and the
comparisons that several pages share.

A *case* is one comparison, such as a method on a data set. A *family* is all cases that answer one
question; the chance of any false verdict in it is 5 %. A case *could be won* if a perfect
confidence, tested alone and without Holm's method, would be significantly better than the rival.
That depends on the questions and not on the method, so ``better`` is counted among these cases."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.metrics.comparisons import APART
from capcal_lib.probe_names import training_sets
from capcal_lib.results.estimated import ELSEWHERE, KINDS, confidence_columns, differing
from capcal_lib.results.results import INDEX, subjects
from capcal_lib.results.scores import Protocol, best_constant, recalibrate, terms_of

LEVEL = 0.05  # the chance of any false verdict in a family
TESTED = ["estimate", "low", "high", "p"]
TOGETHER = "p (Holm)"
WINNABLE = "could be won"
JUDGED = [*TESTED, TOGETHER, "verdict"]
TAKES_TOKENS = ("Verbalized confidence", "P(True)", "Response consistency")


def judge(gains: pd.DataFrame, case: Sequence[str], *, family: Sequence[str] = ()) -> pd.DataFrame:
    """Test the mean gain of each case, and judge the cases of a family together by Holm's method.

    ``gains`` is a long table with one row per question of a case, indexed by (dataset,
    question_id). ``case`` names the columns whose values are a case, and ``family`` those whose
    values are a family; without it, all cases are one family. ``gain`` is above zero if the method
    is better. Further columns are optional: ``perfect``, the gain of a confidence without error;
    and ``least`` and ``most``, the bounds of a gain, which are -1 and 1 without them. Subjects vary
    as a whole.

    Returns one row per case with two questions: its names; the mean gain ``estimate`` with the 95 %
    interval ``low`` to ``high`` and ``p`` of the case alone; ``p (Holm)``; the ``verdict``, a
    category: ``better`` or ``worse`` if ``p (Holm)`` is below .05, else ``inconclusive``; and with
    ``perfect`` whether the case ``could be won``.

    >>> index = pd.MultiIndex.from_product([["gsm8k"], map(str, range(60))])
    >>> index.names = ["dataset", "question_id"]
    >>> gains = pd.DataFrame({"method": "mine", "gain": [0.1, 0.3] * 30}, index)
    >>> judged = judge(gains, ["dataset", "method"])
    >>> judged["estimate"].round(2).tolist(), judged["verdict"].tolist()
    ([0.2], ['better'])
    """
    last = [WINNABLE] if "perfect" in gains else []
    rows = []
    for names, rows_of in gains.dropna(subset="gain").groupby([*case], sort=False, observed=True):
        if len(rows_of) < 2:
            continue
        row = dict(zip(case, names, strict=True)) | dict(_test(rows_of, "gain"))
        if last:
            best = _test(rows_of.dropna(subset="perfect"), "perfect")
            row[WINNABLE] = bool(best["estimate"] > 0 and best["p"] < LEVEL)
        rows.append(row)
    table = pd.DataFrame(rows, columns=[*case, *TESTED, *last]).dropna(subset="p")
    table = judge_together(table.reset_index(drop=True), family)
    types = dict.fromkeys(TESTED, float) | dict.fromkeys(last, bool)  # without rows too
    return table[[*case, *JUDGED, *last]].astype(types)


def _test(rows: pd.DataFrame, gain: str) -> "pd.Series[Any]":
    """Test the mean gain of one case, with subjects drawn whole."""
    bounds = (rows["least"].iloc[0], rows["most"].iloc[0]) if "least" in rows else APART
    clusters = subjects(rows).to_numpy()
    return metrics.judge_gain(rows[gain], clusters=clusters, bounds=bounds)[TESTED]


def judge_together(tested: pd.DataFrame, family: Sequence[str] = ()) -> pd.DataFrame:
    """Judge tested rows together by Holm's method: return them with ``p (Holm)`` and ``verdict``.

    ``tested`` has ``estimate`` and ``p`` of each comparison alone; ``family`` is as in
    :func:`judge`.

    >>> tested = pd.DataFrame({"estimate": [0.1, 0.1, -0.1], "p": [0.01, 0.04, 0.03]})
    >>> judge_together(tested)["verdict"].tolist()
    ['better', 'inconclusive', 'inconclusive']
    """
    families = (
        tested.groupby([*family], observed=True) if family else tested.assign(f=0).groupby("f")
    )
    together = families["p"].transform(lambda p: metrics.adjusted(p.to_numpy(float), "holm"))
    sign = np.where(tested["estimate"] > 0, "better", "worse")
    verdict = np.where(together < LEVEL, sign, "inconclusive")
    categories = pd.Categorical(verdict, metrics.COMPARISON_VERDICTS)
    return tested.assign(verdict=categories, **{TOGETHER: together})


def tally(judged: pd.DataFrame, *by: str) -> pd.DataFrame:
    """Count verdicts in groups: how many cases are ``better``, among those that ``could be won``,
    and how many are ``worse``, among all ``cases``.

    ``judged`` are rows of :func:`judge`, and ``by`` are the columns to group by; every value of a
    category has a row.
    """
    verdict, winnable = judged["verdict"], judged[WINNABLE].astype(bool)
    marks: dict[str, Any] = {
        "better": (verdict == "better") & winnable,
        WINNABLE: winnable,
        "worse": verdict == "worse",
        "cases": True,
    }
    return judged.assign(**marks).groupby([*by], observed=False, sort=True)[[*marks]].sum()


def compare_with_constant(
    results: pd.DataFrame, *, protocol: Protocol = "corrected"
) -> pd.DataFrame:
    """Judge every method on every data set of one model against the best constant.

    ``results`` come from ``load_results``, for all data sets of a model, or from ``recalibrate``;
    all that is passed here is judged together, in two families: the methods that one can choose for
    a data set (its own probe, votes, what the model is asked for, and your own methods), and the
    probes that were trained on other data sets. A gain is the best constant's Brier term minus the
    method's (``terms_of``, under ``protocol``): above zero the method is closer to the expected
    accuracy. Data sets whose questions all have the same accuracy are left out.

    Returns one row per case: ``dataset``, ``method``, its ``kind``, whether it is the ``nearest``
    probe, and the columns of :func:`judge`, with ``could be won``. ``kind`` and ``verdict`` are
    categories, so that counts include those that do not occur.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> from capcal_lib.results import load_results
    >>> judged = compare_with_constant(load_results(RECORDED_RUNS, "simulated"))
    >>> list(judged)[:4], judged["kind"].cat.categories[0]
    (['dataset', 'method', 'kind', 'nearest'], 'probe of the data set')
    """
    gains = terms_of(differing(results), protocol=protocol)
    gains["gain"] = gains["constant"] - gains["term"]
    case = ["dataset", "method", "kind", "nearest", "elsewhere"]
    gains["elsewhere"] = gains["kind"].isin(ELSEWHERE)
    gains = mean_over_members(gains, [*case[1:]], ["gain", "constant"])
    gains = _with_bounds(gains.rename(columns={"constant": "perfect"}), results)
    judged = judge(gains, case, family=["elsewhere"]).drop(columns="elsewhere")
    return judged.assign(kind=pd.Categorical(judged["kind"], KINDS))


def mean_over_members(
    table: pd.DataFrame, about: Sequence[str], numbers: Sequence[str]
) -> pd.DataFrame:
    """Average numbers of each question over the members of a method; ``about`` names the columns
    that say what a row is about.
    """
    groups = table.groupby([*about, *INDEX], observed=True, sort=False, dropna=False)
    return groups[[*numbers]].mean().reset_index([*about])


def _with_bounds(gains: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Add the bounds of a gain over the best constant, ``least`` and ``most``, on each data set."""
    for name in gains.index.unique("dataset"):
        bounds = metrics.bounds_over_constant(best_constant(results.loc[[name]]).dropna())
        here = gains.index.get_level_values("dataset") == name
        gains.loc[here, ["least", "most"]] = bounds
    return gains


def compare_recalibrated(
    results: pd.DataFrame, *, protocol: Protocol = "corrected"
) -> pd.DataFrame:
    """Judge every method except probes against the best constant, after recalibrating it on the
    same labels (``recalibrate``). These cases are a family of their own.

    Returns rows as :func:`compare_with_constant` does. Probes have already learned from labels.
    """
    probes = [name for name in confidence_columns(results) if training_sets(name)]
    return compare_with_constant(recalibrate(results.drop(columns=probes)), protocol=protocol)


def compare_with_nearest_probe(
    results: pd.DataFrame, *, protocol: Protocol = "corrected"
) -> pd.DataFrame:
    """Judge each confidence that takes tokens against the nearest probe, which takes none, on each
    data set; all cases of a model together, by Holm's method. ``recalibrate`` results first, to
    compare both on equal terms.

    Returns one row per ``dataset`` and ``method``, with the ``probe`` and the columns of
    :func:`judge`. ``method`` and ``verdict`` are categories, so that counts include those that do
    not occur. No rows if there is no probe, or nothing to compare it with.
    """
    terms = terms_of(differing(results[results["total"] > 1]), protocol=protocol)
    terms = mean_over_members(terms, ["method", "nearest"], ["term"])
    probes = terms[terms["nearest"]].rename(columns={"method": "probe", "term": "of probe"})
    gains = terms[terms["method"].isin(TAKES_TOKENS)].join(probes[["probe", "of probe"]])
    gains["gain"] = gains["of probe"] - gains["term"]
    judged = judge(gains, ["dataset", "method", "probe"])
    return judged.assign(method=pd.Categorical(judged["method"], TAKES_TOKENS))


def count_by_kind(judged: pd.DataFrame) -> pd.DataFrame:
    """Count the verdicts on each kind of method (:func:`tally`), for one model or for several
    models concatenated. Each of ``KINDS`` has a row; ``other`` only if a method is of no other
    kind.

    >>> kinds = pd.Categorical(["P(True)", "P(True)", "other"], KINDS)
    >>> judged = pd.DataFrame({"kind": kinds, "verdict": ["worse", "better", "worse"]})
    >>> judged["could be won"] = [False, True, True]
    >>> count_by_kind(judged).loc["P(True)"].to_dict()
    {'better': 1, 'could be won': 1, 'worse': 1, 'cases': 2}
    """
    counts = tally(judged, "kind")
    return counts if counts.loc["other", "cases"] else counts.drop(index="other")
