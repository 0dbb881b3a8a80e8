"""Is a confidence closer to the expected accuracy than the best constant?

This question has one answer for each method on each data set of a model, and this is where it is
given: pages, the front page and ``capcal score --model`` take it from here. All methods on all data
sets of one model are judged together by Holm's method."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.confidence.of_run import TITLES
from capcal_lib.results.results import CONSISTENCY, ORACLE_CC, subjects
from capcal_lib.results.scores import (
    BEST_CONSTANT,
    Protocol,
    best_constant,
    brier_terms,
    methods,
    questions_differ,
)
from capcal_lib.shifts import IN_DISTRIBUTION, OUT_OF_DISTRIBUTION, OUT_OF_DOMAIN, shift

VERDICTS = (*metrics.VERDICTS, "alike", "undecidable")
KIND_BY_SHIFT = {
    IN_DISTRIBUTION: "probe of the data set",
    OUT_OF_DISTRIBUTION: "probe of the domain",
    OUT_OF_DOMAIN: "probe of another domain",
}
KINDS = (
    *KIND_BY_SHIFT.values(),
    "probe of several data sets",
    "response consistency",
    "verbalized confidence",
    "P(True)",
    "other",
)
LEVEL = 0.05  # the chance of any false verdict among all
ALIKE = 0.005  # a gain of no more than half a point, on either side
CASE = ["dataset", "method"]
TESTED = ["estimate", "low", "high", "p"]
COLUMNS = [*TESTED, "p (Holm)", "verdict"]


def compare_with_constant(
    results: pd.DataFrame, *, protocol: Protocol = "corrected"
) -> pd.DataFrame:
    """Judge every method on every data set of one model against the best constant, all together.

    ``results`` are those of ``load_results``, of all data sets of a model: what is judged together
    is what is given here. A gain is the mean of the best constant's Brier terms less those of the
    method (``brier_terms``, by ``protocol``): above zero the method is closer to the expected
    accuracy. Data sets on which no two questions have the same accuracy are left out.

    Returns a row a case: ``dataset``, ``method``, its ``kind``, and what :func:`judge_together`
    says of it. ``kind`` and ``verdict`` are categories, so that counts of them are whole.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> from capcal_lib.results import load_results
    >>> judged = compare_with_constant(load_results(RECORDED_RUNS, "simulated"))
    >>> list(judged)[:4], judged["kind"].cat.categories[0]
    (['dataset', 'method', 'kind', 'estimate'], 'probe of the data set')
    """
    terms = brier_terms(results, protocol=protocol)
    constant = best_constant(results[results["total"] > 1])
    groups = subjects(results)
    found, perfect = {}, {}
    for name, own in terms.groupby(level="dataset", sort=False):
        dataset = str(name)
        if not questions_differ(results.loc[[dataset]]):
            continue
        known = constant.reindex(own.index).dropna()
        if known.empty:
            continue  # no question has two samples, which a score takes
        bounds = metrics.bounds_over_constant(known)
        for method in methods(results):
            both = own[[BEST_CONSTANT, method, ORACLE_CC]].dropna()
            if len(both) > 1:
                clusters = groups[both.index]
                tested = metrics.gains(both, BEST_CONSTANT, clusters=clusters, bounds=bounds)
                found[dataset, method] = tested.loc[method]
                perfect[dataset, method] = tested.loc[ORACLE_CC]
    cases, in_their_place = table_of_cases(found, CASE), table_of_cases(perfect, CASE)
    table = judge_together(cases, in_their_place).reset_index()
    kinds = [kind_of_method(*pair) for pair in table[["method", "dataset"]].to_numpy()]
    table.insert(2, "kind", pd.Series(pd.Categorical(kinds, KINDS), table.index))
    return table


def count_by_kind(judged: pd.DataFrame) -> pd.DataFrame:
    """Count the verdicts on each kind of method: how many are ``better``, how many ``worse``, and
    how many are ``decidable``, which is all but the undecidable.

    ``judged`` is what :func:`compare_with_constant` returns, of one model or of several below one
    another. Each of ``KINDS`` has a row, but ``other`` only where a method is none of these.

    >>> kinds = pd.Categorical(["P(True)", "P(True)", "other"], KINDS)
    >>> verdicts = pd.Categorical(["worse", "undecidable", "alike"], VERDICTS)
    >>> count_by_kind(pd.DataFrame({"kind": kinds, "verdict": verdicts})).loc["P(True)"].to_dict()
    {'better': 0, 'worse': 1, 'decidable': 1}
    """
    counts = judged.groupby("kind", observed=False)["verdict"].value_counts().unstack()
    if not counts.loc["other"].any():
        counts = counts.drop(index="other")
    decidable = counts.drop(columns="undecidable").sum(axis="columns")
    return pd.DataFrame(
        {"better": counts["better"], "worse": counts["worse"], "decidable": decidable}
    )


def judge_together(cases: pd.DataFrame, perfect: pd.DataFrame) -> pd.DataFrame:
    """Judge comparisons together, and say which could not have been won.

    ``cases`` are rows of ``metrics.gains``: ``estimate`` with its interval ``low`` to ``high``, of
    one comparison alone, and ``p``. ``perfect`` has the same for a confidence without error in the
    place of each, under the same index.

    Returns ``cases`` with ``p (Holm)`` and a ``verdict``, a category: ``better`` or ``worse`` where
    that is below .05; else ``alike`` where the interval lies within .005 on either side of 0;
    else ``undecidable`` where the perfect confidence in its place would not be better either, so
    that such a case says nothing of the method and counts for nobody; else ``inconclusive``.

    >>> cases = pd.DataFrame({"estimate": 0.1, "low": [0.02, -0.1], "high": 0.2, "p": [0.01, 0.3]})
    >>> judge_together(cases, cases.assign(estimate=0.2, p=[1e-9, 0.2]))["verdict"].tolist()
    ['better', 'undecidable']
    """
    alone = cases["p"].to_numpy(np.float64)
    together = metrics.adjusted(alone, "holm")
    verdicts = []
    for place, (estimate, low, high) in enumerate(cases[["estimate", "low", "high"]].to_numpy()):
        if together[place] < LEVEL:
            verdict = "better" if estimate > 0 else "worse"
        elif low >= -ALIKE and high <= ALIKE:
            verdict = "alike"
        else:
            in_its_place = alone.copy()
            in_its_place[place] = perfect["p"].iloc[place]
            wins = perfect["estimate"].iloc[place] > 0
            wins &= metrics.adjusted(in_its_place, "holm")[place] < LEVEL
            verdict = "inconclusive" if wins else "undecidable"
        verdicts.append(verdict)
    table = cases.assign(verdict=pd.Categorical(verdicts, VERDICTS), **{"p (Holm)": together})
    return table[COLUMNS]


def table_of_cases(rows: Mapping[Any, Any], names: Sequence[str]) -> pd.DataFrame:
    """Return tested gains, rows of ``metrics.gains`` by what they are of, as a table under an index
    of these ``names``; it has its columns even without any.
    """
    index = pd.MultiIndex.from_tuples(list(rows), names=list(names))
    values = [[float(row[name]) for name in TESTED] for row in rows.values()]
    return pd.DataFrame(np.reshape(values, (-1, len(TESTED))), index, TESTED)


def kind_of_method(method: str, dataset: str) -> str:
    """Say what kind of confidence a method is on a data set: one of ``KINDS``.

    >>> kind_of_method("Probe (GSM8K)", "gsm8k"), kind_of_method("Probe (GSM8K)", "math500")
    ('probe of the data set', 'probe of the domain')
    >>> kind_of_method("P(True)", "gsm8k"), kind_of_method("My own", "gsm8k")
    ('P(True)', 'other')
    """
    if method == CONSISTENCY:
        return "response consistency"
    if method in TITLES.values():
        return method if method in KINDS else method.lower()
    distance = shift(method, dataset)
    if distance is None:
        return "other"
    if " + " in method:
        return "probe of several data sets"
    return KIND_BY_SHIFT[distance]
