"""Judge comparisons: the one place that corrects verdicts for how many are judged together.

A *case* is one comparison, such as a method on a data set. A *family* is all cases that answer one
question; the caller chooses it, and the chance of any false verdict in it is 5 %. A case *could be
won* if a perfect confidence would be significantly better than the rival in this case alone. That
depends on the questions and not on the method, so ``better`` is counted among these cases."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.metrics.comparisons import APART
from capcal_lib.results.results import subjects

LEVEL = 0.05  # the chance of any false verdict in a family
TESTED = ["estimate", "low", "high", "p"]
TOGETHER = "p (Holm)"
WINNABLE = "could be won"
JUDGED = [*TESTED, TOGETHER, "verdict"]

Bounds = tuple[float, float]
Gains = Mapping[Any, "pd.Series[float]"]  # of each question, by case


def judge_cases(
    gains: Gains,
    names: Sequence[str],
    *,
    bounds: Bounds | Mapping[Any, Bounds] = APART,
    perfect: Gains | None = None,
    family: Sequence[str] = (),
) -> pd.DataFrame:
    """Test the mean gain of each case, and judge the cases of a family together by Holm's method.

    ``gains`` maps each case to the gains of its questions, indexed by (dataset, question_id); above
    zero is better. A case is a tuple, and ``names`` are the names of its parts. Subjects vary as a
    whole. ``bounds`` are the least and the largest possible gain of a question, for all cases or by
    case. ``perfect`` are the gains of a confidence without error in the same cases. Cases with the
    same values under the names ``family`` form a family; without it, all cases are one family.

    Returns one row per case: its names; the mean gain ``estimate`` with the 95 % interval ``low``
    to ``high`` and ``p`` of the case alone; ``p (Holm)``; the ``verdict``, a category: ``better``
    or ``worse`` if ``p (Holm)`` is below .05, else ``inconclusive``; and with ``perfect`` whether
    the case ``could be won``. Cases with fewer than two questions have no row.

    >>> index = pd.MultiIndex.from_product([["gsm8k"], map(str, range(60))])
    >>> index.names = ["dataset", "question_id"]
    >>> gains = {("gsm8k", "mine"): pd.Series([0.1, 0.3] * 30, index)}
    >>> judged = judge_cases(gains, ["dataset", "method"], perfect=gains)
    >>> judged["estimate"].round(2).tolist(), judged["verdict"].tolist()
    ([0.2], ['better'])
    """
    rows = []
    for case, gain in gains.items():
        limits = bounds[case] if isinstance(bounds, Mapping) else bounds
        known = gain.dropna()
        if len(known) < 2:
            continue
        row = [*case, *judge_alone(known, limits)]
        if perfect is not None:
            best = judge_alone(perfect[case].reindex(known.index).dropna(), limits)
            row.append(bool(best["estimate"] > 0 and best["p"] < LEVEL))
        rows.append(row)
    columns = [*names, *TESTED] if perfect is None else [*names, *TESTED, WINNABLE]
    table = pd.DataFrame(rows, columns=columns).dropna(subset="p").reset_index(drop=True)
    judged = judge_together(table, family)
    last = [WINNABLE] if perfect is not None else []
    types = dict.fromkeys(TESTED, float) | dict.fromkeys(last, bool)  # without rows too
    return judged[[*names, *JUDGED, *last]].astype(types)


def judge_together(tested: pd.DataFrame, family: Sequence[str] = ()) -> pd.DataFrame:
    """Judge tested rows together by Holm's method: return them with ``p (Holm)`` and ``verdict``.

    ``tested`` has ``estimate`` and ``p`` of each comparison alone; ``family`` is as in
    :func:`judge_cases`.

    >>> tested = pd.DataFrame({"estimate": [0.1, 0.1, -0.1], "p": [0.01, 0.04, 0.03]})
    >>> judge_together(tested)["verdict"].tolist()
    ['better', 'inconclusive', 'inconclusive']
    """
    p = tested["p"].astype(float)
    if family and len(tested):
        together = p.groupby([tested[name] for name in family], observed=True).transform(_holm)
    else:
        together = _holm(p)
    sign = np.where(tested["estimate"] > 0, "better", "worse")
    verdict = np.where(together < LEVEL, sign, "inconclusive")
    categories = pd.Categorical(verdict, metrics.COMPARISON_VERDICTS)
    return tested.assign(verdict=categories, **{TOGETHER: together})


def _holm(p: "pd.Series[float]") -> "pd.Series[float]":
    return pd.Series(metrics.adjusted(np.asarray(p, np.float64), "holm"), p.index)


def judge_alone(gain: "pd.Series[float]", bounds: Bounds) -> "pd.Series[Any]":
    """Test one mean gain, with subjects drawn whole: a row of ``metrics.judge_gain``."""
    clusters = subjects(gain.to_frame()).to_numpy()
    return metrics.judge_gain(gain, clusters=clusters, bounds=bounds)[TESTED]


def gains_over(
    terms: pd.DataFrame, rival: str, *case: Hashable
) -> "dict[tuple[Any, ...], pd.Series[float]]":
    """Return each method's gain over a rival by question, the rival's term minus its own, under the
    key (data set, method, *case).

    ``terms`` come from ``brier_terms``, and lower terms are better, so a gain above zero is better.
    """
    gains = {}
    for dataset, subset in terms.groupby(level="dataset", sort=False):
        for method in map(str, terms.columns.drop(rival)):
            gains[dataset, method, *case] = subset[rival] - subset[method]
    return gains


def tally(judged: pd.DataFrame, by: "Sequence[pd.Series[Any]]") -> pd.DataFrame:
    """Count verdicts in groups: how many cases are ``better``, among those that ``could be won``,
    and how many are ``worse``, among all ``cases``.

    ``judged`` are rows of :func:`judge_cases`, and ``by`` names the columns to group by; every
    value of a category has a row.
    """
    verdict, winnable = judged["verdict"], judged[WINNABLE].astype(bool)
    marks = {
        "better": (verdict == "better") & winnable,
        WINNABLE: winnable,
        "worse": verdict == "worse",
        "cases": pd.Series(True, judged.index),
    }
    return pd.DataFrame(marks).groupby([*by], observed=False).sum()
