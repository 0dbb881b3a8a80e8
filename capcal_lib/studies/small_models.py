"""Test the paper's statements on your own models: the comparisons that each statement names in
``data_manifests/claims.yaml``, and what the paper does not ask: what a reader gains with and
without labels."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import deep_samples, pass_at_k_gains_over_answer
from capcal_lib.claims import opposite
from capcal_lib.grading.counts import count_run
from capcal_lib.probe_names import NEAREST_PROBE, PLUG_IN, POSTERIOR
from capcal_lib.probes import runs_for_probes
from capcal_lib.results.estimated import (
    ASKED_KINDS,
    AT_HOME,
    IN_DOMAIN,
    KINDS,
    OUTSIDE,
    STATED,
    VOTED,
    YES,
    differing,
)
from capcal_lib.results.judged import (
    WINNABLE,
    compare_with_nearest_probe,
    judge,
    mean_over_members,
    tally,
)
from capcal_lib.results.scores import Protocol, terms_of
from capcal_lib.results.targets import BETWEEN
from capcal_lib.results.terms import COUNTS, ORACLE_RC
from capcal_lib.results.uses import compare_use, ways_to_use
from capcal_lib.shifts import IN_DISTRIBUTION, OUT_OF_DISTRIBUTION, OUT_OF_DOMAIN, shift
from capcal_lib.studies.pass_at_k import predict_each

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
ATTEMPTS, OFF = 16, 0.05  # of a data set's pass@k
COSTS = "tokens of an answer < of ten votes"  # counted, and not tested
FURTHER = "probe < ten votes"  # what the paper does not ask for
RESULTS = ("holds", "neither", "fails")
FOR = {"better": "holds", "inconclusive": "neither", "worse": "fails"}  # what a verdict says
CASE = ["what", "method", "model", "dataset", "nearest"]
ONE_HALF, OWN_MEAN, CONSTANT = "one half", "mean of its training set", "mean of the data set"
HIDDEN_STATES, ONE, TEN = "hidden states", "one answer", "ten answers"
WAYS = pd.DataFrame(
    [
        ("none", ONE, "stated number, as it is", "a few", ONE_HALF, STATED),
        ("none", ONE, "P(True), as it is", "one", ONE_HALF, YES),
        ("none", TEN, "votes, as they are", "ten answers", ONE_HALF, VOTED),
        ("none", HIDDEN_STATES, "probe of the same domain", "none", OWN_MEAN, IN_DOMAIN),
        ("none", HIDDEN_STATES, "probe of another domain", "none", OWN_MEAN, OUTSIDE),
        ("yes", ONE, "stated number, recalibrated", "a few", CONSTANT, STATED),
        ("yes", ONE, "P(True), recalibrated", "one", CONSTANT, YES),
        ("yes", TEN, "votes, recalibrated", "ten answers", CONSTANT, VOTED),
        ("yes", HIDDEN_STATES, "probe of the data set", "none", CONSTANT, AT_HOME),
    ],
    columns=["labels", "of the model", "method", "tokens", "rival", "kind"],
)


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
    ``results.compare_use`` and ``results.compare_with_nearest_probe``.
    """
    gains, elsewhere = [], []
    for model, of_model in results.items():
        stated = stated_gains(differing(of_model[of_model["total"] > 1]), concentrations[model])
        gains.append(stated.assign(model=model))
        elsewhere.append(judged_elsewhere(of_model, concentrations[model]).assign(model=model))
    table = pd.concat([judge(pd.concat(gains), CASE), *elsewhere], ignore_index=True)
    result = pd.Categorical(table.pop("verdict").astype(str).map(FOR), RESULTS)
    return table.assign(result=result)


def stated_gains(results: pd.DataFrame, concentrations: "pd.Series[float]") -> pd.DataFrame:
    """Return the gain on each question of what is compared: ``what``, the ``method``, whether it is
    the ``nearest`` probe, and the ``gain``.

    Two comparisons concern all methods and have no name of a method: how far one response is from
    the expected accuracy on average, without bias, and whether more than half of the questions with
    many samples lie between .1 and .9. Other probes are probes that were trained on another data
    set.
    """
    counts = results[COUNTS].to_numpy().T
    apart = 2 * metrics.correctness_variance_terms(*counts, corrected=True)
    targets = results[[]].assign(what=TARGETS, gain=apart)
    depth = results["total"].groupby(level="dataset").transform(deep_samples)
    deep = results[results["total"] >= depth]
    mu = deep["correct"] / deep["total"]
    between = mu.between(*BETWEEN, inclusive="neither") - 0.5
    mixed = deep[[]].assign(what=MIXED, gain=between)

    terms = mean_over_members(terms_of(results), ["method", "kind", "shift", "nearest"], ["term"])
    terms["uniform"] = pd.Series(
        metrics.uniform_baseline_brier_terms(*counts, corrected=True), results.index
    )
    asked = terms["kind"].isin([STATED, YES])
    over_uniform = terms.assign(gain=terms["uniform"] - terms["term"])
    over_uniform["what"] = terms["shift"].map(OVER_UNIFORM).mask(asked, ASKED_OVER_UNIFORM)
    own = terms[terms["kind"] == AT_HOME]["term"].rename("own")
    others = terms[terms["shift"].isin([OUT_OF_DISTRIBUTION, OUT_OF_DOMAIN])].join(own)
    others = others.assign(what=OTHERS, gain=others["term"] - others["own"])
    parts = [targets, mixed, over_uniform.dropna(subset="what"), others]
    table = pd.concat([*parts, gains_at_16(results, concentrations)])
    table["method"] = table["method"].astype(object).fillna("")
    nearest = table["nearest"].eq(True)
    return table.assign(nearest=nearest)[["what", "method", "nearest", "gain"]]


def gains_at_16(results: pd.DataFrame, concentrations: "pd.Series[float]") -> pd.DataFrame:
    """Return the gains of the nearest probe in predicting pass@16, as rows of
    :func:`stated_gains`.

    ``MISSED`` tells how far the data set's curve is missed at 16 if each attempt succeeds with the
    stated probability, as in the paper. ``PASS`` compares the posterior with an oracle that knows
    whether one answer is right.
    """
    ways = ways_to_use(results, concentrations)
    plug_in = predict_each(ways[ways["way"] == PLUG_IN], [ATTEMPTS])
    plug_in["gain"] = plug_in["predicted"] - plug_in["measured"]
    missed = mean_over_members(plug_in, ["method", "nearest"], ["gain"])
    side = np.sign(missed.groupby("dataset")["gain"].transform("mean"))
    missed["gain"] = missed["gain"] * side - OFF
    posterior = ways[ways["way"] == POSTERIOR]
    numbers = ["confidence", *COUNTS]
    s, correct, total = (posterior[name].reset_index(drop=True) for name in numbers)
    concentration = posterior["concentration"].to_numpy()
    over_answer = pass_at_k_gains_over_answer(
        s, correct, total, ATTEMPTS, concentration=concentration
    )
    posterior = posterior.assign(gain=over_answer.to_numpy())
    passed = mean_over_members(posterior, ["method", "nearest"], ["gain"])
    return pd.concat([missed.assign(what=MISSED), passed.assign(what=PASS)])


def judged_elsewhere(results: pd.DataFrame, concentrations: "pd.Series[float]") -> pd.DataFrame:
    """Return the comparisons that other pages judge, as rows of :func:`compare_as_stated`: the
    nearest probe and what the model says against even spending of two samples per question, and the
    nearest probe against ten votes and what the model says. In a comparison with votes, ``method``
    is the probe.
    """
    spent = compare_use(results, "Budget", concentrations)
    what = {NEAREST_PROBE: SPENT, "Verbalized confidence": SPENT_BY_VOICE}
    spent = spent[spent["method"].isin(list(what))].assign(
        what=spent["method"].map(what),
        nearest=spent["method"] == NEAREST_PROBE,
        method=spent["confidence"],
    )
    asked = compare_with_nearest_probe(results)
    votes = asked["method"] == "Response consistency"
    at_home = [shift(*pair) == IN_DISTRIBUTION for pair in asked[["probe", "dataset"]].to_numpy()]
    opposite_sign = {"better": "worse", "inconclusive": "inconclusive", "worse": "better"}
    asked = asked.assign(
        what=np.where(votes, FURTHER, np.where(at_home, ASKED_OWN, ASKED_ELSEWHERE)),
        method=asked["probe"].where(votes, asked["method"].astype(str)),
        nearest=True,
        estimate=-asked["estimate"],
        low=-asked["high"],
        high=-asked["low"],
        verdict=asked["verdict"].astype(str).map(opposite_sign),
    )
    return pd.concat([spent.drop(columns=[WINNABLE, "confidence"]), asked.drop(columns="probe")])


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
    ``results.judge``, with whether it ``could be won``.
    """
    terms = terms_of(differing(results[results["total"] > 1]), protocol=protocol)
    terms = terms[terms["kind"].isin([*ASKED_KINDS, IN_DOMAIN, OUTSIDE])]
    asked = terms["kind"].isin(ASKED_KINDS)
    terms["level"] = terms["method"].astype(str).map(means).mask(asked, 0.5)
    terms = terms.dropna(subset="level")
    counts = terms[COUNTS].to_numpy().T
    corrected = protocol == "corrected"
    terms["perfect"] = metrics.capability_brier_terms(
        terms["level"].to_numpy(), *counts, corrected=corrected
    )
    terms["gain"] = terms["perfect"] - terms["term"]
    asked = terms["kind"].isin(ASKED_KINDS)
    terms["rival"] = np.where(asked, ONE_HALF, OWN_MEAN)
    terms["family"] = terms["kind"].mask(asked, "asked")
    case = ["method", "kind", "rival", "family"]
    gains = mean_over_members(terms, case, ["gain", "perfect"])
    judged = judge(gains, ["dataset", *case], family=["family"]).drop(columns="family")
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
    columns of ``results.tally``. A way without a case has no row.
    """
    at_home = as_it_is[as_it_is["kind"] == AT_HOME]
    cases = {"none": without, "yes": pd.concat([at_home, recalibrated])}
    rows = pd.concat(cases, names=["labels", None]).reset_index("labels")
    rows["kind"] = rows["kind"].astype(str)
    by = ["labels", "kind"]
    means = rows.groupby(by)["estimate"].mean().rename("mean gain")
    return WAYS.join(pd.concat([means, tally(rows, *by)], axis=1), on=by, how="inner").drop(
        columns="kind"
    )


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
        result = pd.concat([_selected(name, comparisons, dearer) for name in claim["measured"]])
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
    if what == COSTS:
        return dearer.map({True: "holds", False: "fails"})
    several = {ASKED_NEAREST: [ASKED_OWN, ASKED_ELSEWHERE], NEAREST: [*OVER_UNIFORM.values()]}
    chosen = comparisons["what"].isin(several.get(what, [what]))
    if what == NEAREST:
        chosen &= comparisons["nearest"]
    result = comparisons.loc[chosen, "result"].astype(str)
    return result if name == what else result.replace({"holds": "fails", "fails": "holds"})
