"""Test the paper's statements on your own models: the comparisons that each statement names in
``data_manifests/claims.yaml``, and one that the paper does not ask for."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import pass_at_k, pass_at_k_gains_over_answer, simulate_pass_at_k
from capcal_lib.claims import opposite
from capcal_lib.confidence.of_run import TITLES
from capcal_lib.grading.counts import count_run
from capcal_lib.manifests import load_dataset
from capcal_lib.probe_names import NEAREST_PROBE
from capcal_lib.probes import nearest_probe, runs_for_probes
from capcal_lib.results.constant import ASKED_KINDS, ELSEWHERE, KIND_BY_SHIFT, KINDS, kind_of_method
from capcal_lib.results.estimated import estimates, mean_over_members, methods
from capcal_lib.results.judged import WINNABLE, judge_cases, tally
from capcal_lib.results.nearest import compare_with_nearest_probe
from capcal_lib.results.results import CONSISTENCY
from capcal_lib.results.scores import (
    Protocol,
    brier_terms,
    deepest_questions,
    nearest_probe_of,
    questions_differ,
)
from capcal_lib.results.targets import BETWEEN
from capcal_lib.results.terms import ORACLE_RC, UNIFORM, question_terms
from capcal_lib.results.uses import compare_use
from capcal_lib.shifts import IN_DISTRIBUTION, OUT_OF_DISTRIBUTION, OUT_OF_DOMAIN, shift

OVER_UNIFORM = {
    IN_DISTRIBUTION: "own probe < uniform",
    OUT_OF_DISTRIBUTION: "near probe < uniform",
    OUT_OF_DOMAIN: "far probe < uniform",
}
ASKED_OVER_UNIFORM = "asked < uniform"
OTHERS = "own probe < other probes"
PASS = f"pass@16 by probe < {ORACLE_RC}"
SPENT = "budget by probe > even"
SPENT_BY_VOICE = "budget by voice > even"
NEAREST = "nearest probe < uniform"  # those of OVER_UNIFORM by the nearest probe
ASKED_OWN = "own probe < asked"
ASKED_ELSEWHERE = "probe from elsewhere < asked"
ASKED_NEAREST = "nearest probe < asked"  # both of these
TARGETS = "targets differ"
MIXED = "most questions between .1 and .9"
MISSED = "pass@16 by probe off by .05"
OFF = 0.05  # of a data set's pass@k
COSTS = "tokens of an answer < of ten votes"  # counted, and not tested
FURTHER = "probe < ten votes"  # what the paper does not ask for
VOICE, P_TRUE = TITLES["verbalized"], TITLES["p-true"]
RESULTS = ("holds", "neither", "fails")
FOR = {"better": "holds", "inconclusive": "neither", "worse": "fails"}  # what a verdict says
AGAINST = {"better": "fails", "inconclusive": "neither", "worse": "holds"}  # of the rival
ONE_HALF, OWN_MEAN, CONSTANT = "one half", "mean of its training set", "mean of the data set"
VOTED, NUMBER, YES = ASKED_KINDS
AT_HOME, NEAR, FAR = KIND_BY_SHIFT.values()
HIDDEN_STATES, ONE, TEN = "hidden states", "one answer", "ten answers"
WAYS = (  # labels, what of the model, kind, in words, rival, tokens beside the answer
    ("none", ONE, NUMBER, "stated number, as it is", ONE_HALF, "a few"),
    ("none", ONE, YES, "P(True), as it is", ONE_HALF, "one"),
    ("none", TEN, VOTED, "votes, as they are", ONE_HALF, "ten answers"),
    ("none", HIDDEN_STATES, NEAR, "probe of the same domain", OWN_MEAN, "none"),
    ("none", HIDDEN_STATES, FAR, "probe of another domain", OWN_MEAN, "none"),
    ("yes", ONE, NUMBER, "stated number, recalibrated", CONSTANT, "a few"),
    ("yes", ONE, YES, "P(True), recalibrated", CONSTANT, "one"),
    ("yes", TEN, VOTED, "votes, recalibrated", CONSTANT, "ten answers"),
    ("yes", HIDDEN_STATES, AT_HOME, "probe of the data set", CONSTANT, "none"),
)
ADVICE = ["labels", "of the model", "method", "tokens", "rival", "mean gain"]
ADVICE += ["better", WINNABLE, "worse", "cases"]
STATED = ["what", "method", "model", "dataset", "nearest"]


def compare_as_stated(
    results: Mapping[str, pd.DataFrame], concentrations: Mapping[str, "pd.Series[float]"]
) -> pd.DataFrame:
    """Test what the paper's statements compare, on every data set of every model.

    ``results`` and ``concentrations`` map the names of models to tables from ``load_results`` and
    ``describe_probes``. Data sets on which no two questions differ are left out.

    Returns one row per comparison: ``what`` is compared, for which ``method``, ``model`` and
    ``dataset``, and whether the method is the ``nearest`` probe; the mean gain ``estimate`` with
    its own 95 % interval ``low`` to ``high``; ``p`` and ``p (Holm)``; and the ``result``, a
    category. It is ``holds`` or ``fails`` if ``p (Holm)`` is below .05, else ``neither``. Holm's
    method takes together all comparisons with a random confidence, among probes, and of pass@k.
    Other pages judge budgets and compare probes with votes and with what the model says:
    :func:`~capcal_lib.results.uses.compare_use` and
    :func:`~capcal_lib.results.nearest.compare_with_nearest_probe`.
    """
    gains, elsewhere = {}, []
    for model, of_model in results.items():
        elsewhere.append(compare_spent(model, of_model, concentrations[model]))
        elsewhere.append(compare_nearest(model, of_model))
        for name, subset in of_model[of_model["total"] > 1].groupby(level="dataset"):
            if not questions_differ(subset):
                continue
            dataset = str(name)
            present = subset.dropna(axis="columns", how="all")
            probe = nearest_probe(methods(present), dataset)
            concentration = concentrations[model].get(probe)
            for what, method, gain in stated_gains(present, dataset, probe, concentration):
                gains[what, method, model, dataset, method == probe] = gain
    judged = judge_cases(gains, STATED)
    judged["result"] = judged.pop("verdict").astype(str).map(FOR)
    table = pd.concat([judged, *elsewhere], ignore_index=True)
    return table.assign(result=pd.Categorical(table["result"], RESULTS))


def compare_spent(
    model: str, results: pd.DataFrame, concentrations: "pd.Series[float]"
) -> pd.DataFrame:
    """Return the comparisons for the paper's statements on budgets, as rows of
    :func:`compare_as_stated`: the nearest probe, and what the model says, against even spending of
    two samples per question.
    """
    judged = compare_use(results, "Budget", concentrations)
    what = {NEAREST_PROBE: SPENT, VOICE: SPENT_BY_VOICE}
    judged = judged[judged["method"].isin(list(what))]
    return pd.DataFrame(
        {
            "what": judged["method"].map(what),
            "method": judged["confidence"],
            "model": model,
            "dataset": judged["dataset"],
            "nearest": judged["method"] == NEAREST_PROBE,
            **judged[["estimate", "low", "high", "p", "p (Holm)"]],
            "result": judged["verdict"].astype(str).map(FOR),
        }
    )


def compare_nearest(model: str, results: pd.DataFrame) -> pd.DataFrame:
    """Compare the nearest probe with ten votes and with what the model says about itself, as rows
    of :func:`compare_as_stated`. In a comparison with votes, ``method`` is the probe.
    """
    judged = compare_with_nearest_probe(results)
    nearest = {
        name: nearest_probe_of(subset, str(name))
        for name, subset in results.groupby(level="dataset")
    }
    probe = judged["dataset"].map(nearest)
    in_distribution = [
        shift(*pair) == IN_DISTRIBUTION for pair in zip(probe, judged["dataset"], strict=True)
    ]
    votes = judged["method"] == CONSISTENCY
    asked = np.where(in_distribution, ASKED_OWN, ASKED_ELSEWHERE)
    return pd.DataFrame(
        {
            "what": np.where(votes, FURTHER, asked),
            "method": probe.where(votes, judged["method"].astype(str)),
            "model": model,
            "dataset": judged["dataset"],
            "nearest": True,
            "estimate": -judged["estimate"],
            "low": -judged["high"],
            "high": -judged["low"],
            **judged[["p", "p (Holm)"]],
            "result": judged["verdict"].astype(str).map(AGAINST),
        }
    )


def stated_gains(
    subset: pd.DataFrame, dataset: str, probe: str | None, concentration: float | None
) -> Iterator[tuple[str, str, "pd.Series[float]"]]:
    """Yield what is compared on a data set, the method, and its gain on each question.

    ``subset`` has the results of the data set, and ``probe`` is the nearest. Two comparisons
    concern all methods and have no name of a method: how far one response is from the expected
    accuracy on average, without bias, and whether more than half of the questions with many samples
    lie between .1 and .9. Other probes are probes that were trained on another data set.
    """
    counts = subset["correct"], subset["total"]
    apart = 2 * metrics.correctness_variance_terms(*counts, corrected=True)
    yield TARGETS, "", pd.Series(apart, subset.index)
    deep = deepest_questions(subset)
    mu = deep["correct"] / deep["total"]
    yield MIXED, "", mu.between(*BETWEEN, inclusive="neither") - 0.5
    terms = brier_terms(subset)
    for method in methods(subset):
        over_uniform = terms[UNIFORM] - terms[method]
        distance = shift(method, dataset)
        if method in (VOICE, P_TRUE):
            yield ASKED_OVER_UNIFORM, method, over_uniform
        elif distance:
            yield OVER_UNIFORM[distance], method, over_uniform
            if probe == load_dataset(dataset).probe and distance != IN_DISTRIBUTION:
                yield OTHERS, method, terms[method] - terms[probe]
    if probe:
        missed = gain_of_probe(miss_pass_at_k, subset, probe, 16, None)
        yield MISSED, probe, missed * np.sign(missed.mean()) - OFF
        gain = gain_of_probe(pass_at_k_gains_over_answer, subset, probe, 16, concentration)
        yield PASS, probe, gain


def miss_pass_at_k(
    confidence: "pd.Series[float]",
    correct: "pd.Series[int]",
    total: "pd.Series[int]",
    k: int,
    *,
    concentration: None = None,
) -> "pd.Series[float]":
    """Return how far the pass@k that a confidence implies is above the measured pass@k, NaN if a
    question has fewer than k samples.

    As in the paper, each attempt succeeds with the stated probability. The mean over questions
    tells how far the data set's curve is missed at k.

    >>> counts = pd.Series([0, 5]), pd.Series([10, 10])
    >>> miss_pass_at_k(pd.Series([0.1, 0.4]), *counts, 1).round(3).tolist()
    [0.1, -0.1]
    """
    predicted = simulate_pass_at_k(confidence, [k], concentration=concentration)
    return pd.Series((predicted - pass_at_k(correct, total, [k]))[:, 0], confidence.index)


def gain_of_probe(
    gains: Any, subset: pd.DataFrame, probe: str, number: int, concentration: float | None
) -> "pd.Series[float]":
    """Return the gains of a probe. For the paper's recipe these are means over its five probes."""

    def of_member(judged: pd.DataFrame) -> "pd.Series[float]":
        given = judged["confidence"], judged["correct"], judged["total"]
        of_questions: pd.Series[float] = gains(*given, number, concentration=concentration)
        return of_questions

    mean: pd.Series[float] = mean_over_members(estimates(subset, probe), of_member)
    return mean


def training_means(store: Path | str, model: str) -> "pd.Series[float]":
    """Return the mean expected accuracy of each training set of a model, by the name of the probe
    that learned from it.
    """
    means = {}
    for dataset, run in runs_for_probes(store, model, "training"):
        counts = count_run(run)
        counts = counts[counts["total"] > 0]
        means[dataset.probe] = (counts["correct"] / counts["total"]).mean()
    return pd.Series(means, dtype=float)


def compare_without_labels(
    results: pd.DataFrame, means: "pd.Series[float]", *, protocol: Protocol = "corrected"
) -> pd.DataFrame:
    """Compare the confidences that need no label of the data set with rivals that need none either.

    A probe of one other training set is compared with the mean of that set, ``means`` from
    :func:`training_means`. Probes of the same domain and probes of another domain are one family
    each. What the model says, and votes, are compared with one half, as a third family.

    Returns one row per case: ``dataset``, ``method``, ``kind``, ``rival`` and the columns of
    :func:`~capcal_lib.results.judged.judge_cases`, with whether it ``could be won``.
    """
    corrected = protocol == "corrected"
    terms = brier_terms(results, protocol=protocol)
    gains, perfect = {}, {}
    for name, counts in results[results["total"] > 1].groupby(level="dataset", sort=False):
        dataset = str(name)
        if not questions_differ(counts):
            continue
        compared = terms.loc[counts.index]
        for method in methods(results):
            kind = kind_of_method(method, dataset)
            if method in means and kind in ELSEWHERE:
                level, rival, family = means[method], OWN_MEAN, kind
            elif kind in ASKED_KINDS:
                level, rival, family = 0.5, ONE_HALF, "asked"
            else:
                continue
            constant = pd.Series(level, counts.index)
            constant_terms = question_terms(constant, counts, corrected=corrected)
            case = dataset, method, kind, rival, family
            gains[case] = constant_terms - compared[method]
            perfect[case] = constant_terms
    names = ["dataset", "method", "kind", "rival", "family"]
    judged = judge_cases(gains, names, perfect=perfect, family=["family"]).drop(columns="family")
    return judged.assign(kind=pd.Categorical(judged["kind"], KINDS))


def advise(
    without: pd.DataFrame, as_it_is: pd.DataFrame, recalibrated: pd.DataFrame
) -> pd.DataFrame:
    """Return what each kind of confidence gained, for a reader with no labels and for one with
    labels of the data set.

    Arguments are rows from :func:`compare_without_labels`, ``compare_with_constant`` and
    ``compare_recalibrated``, for all models in one table. Returns one row per way, in the order of
    ``WAYS``: the ``labels`` and what ``of the model`` it needs, the ``method`` with the ``tokens``
    that it costs beside the answer, its ``rival``, the ``mean gain`` over the cases, and the
    columns of ``results.judged.tally``. A way without a case has no row.
    """
    rows = []
    for labels, access, kind, method, rival, tokens in WAYS:
        cases = recalibrated if kind in ASKED_KINDS else as_it_is
        if labels == "none":
            cases = without
        cases = cases[cases["kind"] == kind]
        if len(cases):
            [counts] = tally(cases, [cases["kind"].astype(str)]).to_dict("records")
            gain = cases["estimate"].mean()
            rows.append([labels, access, method, tokens, rival, gain, *counts.values()])
    return pd.DataFrame(rows, columns=ADVICE)


def results_of_claims(
    claims: pd.DataFrame, comparisons: pd.DataFrame, dearer: "pd.Series[bool]"
) -> pd.DataFrame:
    """Return the results of the comparisons of each claim, with the columns ``says`` and
    ``result``.

    ``claims`` are rows of ``load_claims`` with comparisons in ``measured``. ``comparisons`` is a
    table from :func:`compare_as_stated`. ``dearer`` tells for each data set and model whether ten
    votes cost more tokens than an answer. If a name begins with "not", a lost comparison counts as
    held.
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
    """Return the results of the comparisons with one name."""
    what = name.removeprefix("not ")
    if what == ASKED_NEAREST:
        asked = comparisons["what"].isin([ASKED_OWN, ASKED_ELSEWHERE])
        result = comparisons.loc[asked, "result"].astype(str)
    elif what == COSTS:
        result = dearer.map({True: "holds", False: "fails"})
    elif what == NEAREST:
        over_uniform = comparisons["what"].isin(list(OVER_UNIFORM.values()))
        result = comparisons.loc[over_uniform & comparisons["nearest"], "result"].astype(str)
    else:
        result = comparisons.loc[comparisons["what"] == what, "result"].astype(str)
    if name != what:
        return result.replace({"holds": "fails", "fails": "holds"})
    return result
