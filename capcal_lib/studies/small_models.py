"""Put the paper's statements to models of one's own: the comparisons that each names in
``data_manifests/claims.yaml``, and one that the paper does not ask for.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from capcal_lib.applications import pass_at_k_gains_over_answer
from capcal_lib.claims import opposite
from capcal_lib.confidence.of_run import TITLES
from capcal_lib.manifests import load_dataset
from capcal_lib.probes import nearest_probe
from capcal_lib.results.judged import judge_cases
from capcal_lib.results.nearest import compare_with_nearest_probe
from capcal_lib.results.results import CONSISTENCY, ORACLE_RC, UNIFORM
from capcal_lib.results.scores import (
    NEAREST_PROBE,
    brier_terms,
    columns_of,
    mean_over_probes,
    methods,
    nearest_probe_of,
    questions_differ,
)
from capcal_lib.results.uses import compare_use
from capcal_lib.shifts import IN_DISTRIBUTION, OUT_OF_DISTRIBUTION, OUT_OF_DOMAIN, shift

OVER_UNIFORM = {
    IN_DISTRIBUTION: "own probe < uniform",
    OUT_OF_DISTRIBUTION: "near probe < uniform",
    OUT_OF_DOMAIN: "far probe < uniform",
}
ASKED = "asked < uniform"
OTHERS = "own probe < other probes"
PASS = f"pass@16 by probe < {ORACLE_RC}"
SPENT = "budget by probe > even"
SPENT_BY_VOICE = "budget by voice > even"
NEAREST = "nearest probe < uniform"  # those of OVER_UNIFORM by the nearest probe
COSTS = "tokens of an answer < of ten votes"  # counted, and not tested
FURTHER = "probe < ten votes"  # what the paper does not ask for
VOICE, P_TRUE = TITLES["verbalized"], TITLES["p-true"]
RESULTS = ("holds", "neither", "fails")
COLUMNS = ["what", "method", "model", "dataset", "nearest"]


def compare_as_stated(
    results: Mapping[str, pd.DataFrame], concentrations: Mapping[str, "pd.Series[float]"]
) -> pd.DataFrame:
    """Test what the paper's statements compare, on every data set of every model.

    ``results`` are those of ``load_results``, and ``concentrations`` those of ``describe_probes``,
    by the names of models. Left out are data sets on which no two questions differ.

    Returns a row a comparison: ``what`` is compared, for which ``method``, ``model`` and
    ``dataset``, and whether that is the ``nearest`` probe; the mean gain ``estimate`` with its 95 %
    interval ``low`` to ``high``, by itself; ``p``; ``p (Holm)``, for all comparisons with a random
    confidence, among probes, and of pass@k together; and the ``result``, a category: ``holds`` or
    ``fails`` where that is below .05, else ``neither``. Budgets and votes are judged where other
    pages take their verdicts: :func:`~capcal_lib.results.uses.compare_use` and
    :func:`~capcal_lib.results.nearest.compare_with_nearest_probe`.
    """
    gains, elsewhere = {}, []
    for model, own in results.items():
        elsewhere.append(compare_spent(model, own, concentrations[model]))
        elsewhere.append(compare_votes(model, own))
        for name, subset in own[own["total"] > 1].groupby(level="dataset"):
            if not questions_differ(subset):
                continue
            dataset = str(name)
            present = subset.dropna(axis="columns", how="all")
            probe = nearest_probe(methods(present), dataset)
            concentration = concentrations[model].get(probe)
            for what, method, gain in stated_gains(present, dataset, probe, concentration):
                gains[what, method, model, dataset, method == probe] = gain
    judged = judge_cases(gains, COLUMNS)
    result = judged.pop("verdict").map({"better": "holds", "worse": "fails"}).astype(object)
    judged = judged.assign(result=result.fillna("neither"))
    table = pd.concat([judged, *elsewhere], ignore_index=True)
    return table.assign(result=pd.Categorical(table["result"], RESULTS))


def compare_spent(
    model: str, results: pd.DataFrame, concentrations: "pd.Series[float]"
) -> pd.DataFrame:
    """Return what the paper states of budgets, as rows of :func:`compare_as_stated`: the nearest
    probe, and what the model says, against even spending of two samples a question.
    """
    judged = compare_use(results, "Budget", concentrations)
    what = {NEAREST_PROBE: SPENT, VOICE: SPENT_BY_VOICE}
    judged = judged[judged["method"].isin(list(what))]
    verdicts = {"better": "holds", "worse": "fails"}
    return pd.DataFrame(
        {
            "what": judged["method"].map(what),
            "method": judged["confidence"],
            "model": model,
            "dataset": judged["dataset"],
            "nearest": judged["method"] == NEAREST_PROBE,
            **judged[["estimate", "low", "high", "p", "p (Holm)"]],
            "result": judged["verdict"].astype(str).map(verdicts).fillna("neither"),
        }
    )


def compare_votes(model: str, results: pd.DataFrame) -> pd.DataFrame:
    """Compare the nearest probe with ten votes, as rows of :func:`compare_as_stated`."""
    judged = compare_with_nearest_probe(results)
    judged = judged[judged["method"] == CONSISTENCY]
    nearest = {
        name: nearest_probe_of(own, str(name)) for name, own in results.groupby(level="dataset")
    }
    verdicts = {"worse": "holds", "better": "fails"}  # of the votes
    return pd.DataFrame(
        {
            "what": FURTHER,
            "method": judged["dataset"].map(nearest),
            "model": model,
            "dataset": judged["dataset"],
            "nearest": True,
            "estimate": -judged["estimate"],
            "low": -judged["high"],
            "high": -judged["low"],
            **judged[["p", "p (Holm)"]],
            "result": judged["verdict"].astype(str).map(verdicts).fillna("neither"),
        }
    )


def stated_gains(
    subset: pd.DataFrame, dataset: str, probe: str | None, concentration: float | None
) -> Iterator[tuple[str, str, "pd.Series[float]"]]:
    """Yield what is compared on a data set, the method, and its gain on each question; ``subset``
    are its results, and ``probe`` is the nearest.
    """
    terms = brier_terms(subset)
    for method in methods(subset):
        over_uniform = terms[UNIFORM] - terms[method]
        distance = shift(method, dataset)
        if method in (VOICE, P_TRUE):
            yield ASKED, method, over_uniform
        elif distance:
            yield OVER_UNIFORM[distance], method, over_uniform
            if probe == load_dataset(dataset).probe != method:
                yield OTHERS, method, terms[method] - terms[probe]
    if probe:
        gain = gain_of_probe(pass_at_k_gains_over_answer, subset, probe, 16, concentration)
        yield PASS, probe, gain


def gain_of_probe(
    gains: Any, subset: pd.DataFrame, probe: str, number: int, concentration: float | None
) -> "pd.Series[float]":
    """Return the gains of a probe, which by the paper's recipe is five."""
    counts = subset["correct"], subset["total"]
    of_column = {}
    for name in columns_of(subset, probe):
        of_column[name] = gains(subset[name], *counts, number, concentration=concentration)
    return mean_over_probes(pd.DataFrame(of_column))[probe]


def results_of_claims(
    claims: pd.DataFrame, comparisons: pd.DataFrame, dearer: "pd.Series[bool]"
) -> pd.DataFrame:
    """Return what the comparisons of each claim come to: the columns ``says`` and ``result``.

    ``claims`` are rows of ``load_claims`` that are ``measured``, ``comparisons`` those of
    :func:`compare_as_stated`, and ``dearer`` tells of each data set and model whether ten votes
    cost more tokens than an answer. A name that begins with "not" counts where it is lost.
    """
    tables = []
    for says, claim in claims.iterrows():
        parts = [_selected(name, comparisons, dearer) for name in claim["measured"]]
        result = pd.concat(parts)
        if claim["opposite"] is True:
            compared = comparisons.loc[result.index]
            group = compared["dataset"] + compared["method"]
            several = group.groupby(group).transform("size") > 1
            result = opposite(result[several], group[several])
        tables.append(pd.DataFrame({"says": says, "result": result}))
    return pd.concat(tables, ignore_index=True)


def _selected(name: str, comparisons: pd.DataFrame, dearer: "pd.Series[bool]") -> "pd.Series[str]":
    """Return the results of the comparisons of one name."""
    what = name.removeprefix("not ")
    if what == COSTS:
        result = dearer.map({True: "holds", False: "fails"})
    elif what == NEAREST:
        over_uniform = comparisons["what"].isin(list(OVER_UNIFORM.values()))
        result = comparisons.loc[over_uniform & comparisons["nearest"], "result"].astype(str)
    else:
        result = comparisons.loc[comparisons["what"] == what, "result"].astype(str)
    if name != what:
        return result.replace({"holds": "fails", "fails": "holds"})
    return result
