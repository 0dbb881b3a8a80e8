"""Put the paper's statements to models of one's own: the comparisons that each names in
``data_manifests/claims.yaml``, and one that the paper does not ask for.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import budget_gains, pass_at_k_gains_over_answer
from capcal_lib.claims import opposite
from capcal_lib.confidence.of_run import TITLES
from capcal_lib.manifests import load_dataset
from capcal_lib.probes import nearest_probe
from capcal_lib.results.results import CONSISTENCY, ORACLE_RC, UNIFORM, subjects
from capcal_lib.results.scores import MISSING_AS, brier_terms, columns_of, mean_over_probes, methods
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
COLUMNS = ["what", "method", "model", "dataset", "nearest", "estimate", "low", "high", "p"]


def compare_as_stated(
    results: Mapping[str, pd.DataFrame], concentrations: Mapping[str, "pd.Series[float]"]
) -> pd.DataFrame:
    """Test what the paper's statements compare, on every data set of every model.

    ``results`` are those of ``load_results``, and ``concentrations`` those of ``describe_probes``,
    by the names of models. Left out are data sets on which no two questions differ.

    Returns a row a comparison: ``what`` is compared, for which ``method``, ``model`` and
    ``dataset``, and whether that is the ``nearest`` probe; the mean gain ``estimate`` with its 95 %
    interval ``low`` to ``high``, by itself; ``p``; ``p (Holm)``, for all comparisons of the paper
    together and for those that it does not ask for together; and the ``result``, a category:
    ``holds`` or ``fails`` where that is below .05, else ``neither``.
    """
    rows = []
    for model, own in results.items():
        for name, subset in own[own["total"] > 1].groupby(level="dataset"):
            if subset["correct"].nunique() < 2:
                continue  # nothing to tell apart
            dataset = str(name)
            present = subset.dropna(axis="columns", how="all")
            probe = nearest_probe(methods(present), dataset)
            concentration = concentrations[model].get(probe)
            for what, method, gain in stated_gains(present, dataset, probe, concentration):
                known = gain.dropna()
                if len(known) > 1:
                    tested = metrics.judge_gain(known, clusters=subjects(known.to_frame()))
                    case = [what, method, model, dataset, method == probe]
                    rows.append([*case, *tested.drop("verdict")])
    table = pd.DataFrame(rows, columns=COLUMNS).dropna(subset="p").reset_index(drop=True)
    further = table["what"] == FURTHER
    for family in (~further, further):
        alone = table.loc[family, "p"].to_numpy(float)
        table.loc[family, "p (Holm)"] = metrics.adjusted(alone, "holm")
    sign = (table["estimate"] > 0).map({True: "holds", False: "fails"})
    result = sign.where(table["p (Holm)"] < 0.05, "neither")
    return table.assign(result=pd.Categorical(result, RESULTS))


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
        gain = gain_of_probe(budget_gains, subset, probe, 2, concentration)
        yield SPENT, probe, gain
    if VOICE in subset:
        stated = subset[VOICE].fillna(MISSING_AS)
        yield SPENT_BY_VOICE, VOICE, budget_gains(stated, subset["correct"], subset["total"], 2)
    if CONSISTENCY in terms and probe:
        yield FURTHER, probe, terms[CONSISTENCY] - terms[probe]


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
