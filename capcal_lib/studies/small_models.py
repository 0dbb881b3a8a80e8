"""Test the paper's statements on your own models: the comparisons that each statement names in
``data_manifests/claims.yaml``; and what each kind of confidence gains, with and without labels."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import deep_samples, pass_at_k_gains_over_answer
from capcal_lib.claims import opposite
from capcal_lib.probe_names import NEAREST_PROBE, PLUG_IN, POSTERIOR
from capcal_lib.results.estimated import STATED, VOTED, YES, cases_of, differing
from capcal_lib.results.judged import compare_with_nearest_probe, judge, mean_over_members, tally
from capcal_lib.results.results import CONSISTENCY
from capcal_lib.results.scores import best_constant, terms_of
from capcal_lib.results.targets import BETWEEN
from capcal_lib.results.terms import COUNTS, NUMBERS, ORACLE_RC
from capcal_lib.results.uses import ATTEMPTS, compare_use, ways_to_use
from capcal_lib.shifts import AT_HOME, IN_DOMAIN, OUTSIDE
from capcal_lib.studies.pass_at_k import predict_each

TARGETS = "targets differ"
MIXED = "most questions between .1 and .9"
OVER_UNIFORM = {
    AT_HOME: "own probe < uniform",
    IN_DOMAIN: "near probe < uniform",
    OUTSIDE: "far probe < uniform",
    STATED: "asked < uniform",
    YES: "asked < uniform",
}
OTHERS = "own probe < other probes"
ASKED_OWN = "own probe < asked"
ASKED_ELSEWHERE = "probe from elsewhere < asked"
FURTHER = "probe < response consistency"  # what the paper does not ask for
PASS = f"pass@16 by probe < {ORACLE_RC}"
MISSED = "pass@16 by probe off by .05"
OFF = 0.05
SPENT = {
    NEAREST_PROBE: "budget by probe > even",
    "Verbalized confidence": "budget by verbalized > even",
}
COSTS = "tokens of an answer < of ten votes"  # counted, and not tested
MEASURED = {TARGETS, MIXED, OTHERS, ASKED_OWN, ASKED_ELSEWHERE, FURTHER, PASS, MISSED, COSTS}
MEASURED |= {*OVER_UNIFORM.values(), *SPENT.values()}
FOR = {"better": "holds", "inconclusive": "inconclusive", "worse": "fails"}  # what a verdict says
AGAINST = {"better": "fails", "inconclusive": "inconclusive", "worse": "holds"}
CASE = ["what", "method", "model", "dataset", "nearest"]
ONE_HALF = "one half"
WAYS = pd.DataFrame(
    [
        ("none", "nothing", ONE_HALF),
        ("none", "a few tokens", STATED),
        ("none", "one token", YES),
        ("none", "ten answers", VOTED),
        ("none", "hidden states", IN_DOMAIN),
        ("none", "hidden states", OUTSIDE),
        ("yes", "a few tokens", STATED),
        ("yes", "one token", YES),
        ("yes", "ten answers", VOTED),
        ("yes", "hidden states", AT_HOME),
    ],
    columns=["labels", "needs from the model", "kind"],
)


def compare_as_stated(
    results: Mapping[str, pd.DataFrame], concentrations: Mapping[str, "pd.Series[float]"]
) -> pd.DataFrame:
    """Test what the paper's statements compare, on every data set of every model.

    ``results`` and ``concentrations`` map the names of models to tables from ``load_results`` and
    ``describe_probes``. Data sets on which no two questions differ are left out.

    Returns one row per comparison: ``what`` is compared, for which ``method``, ``model`` and
    ``dataset``, and whether the method is the ``nearest`` probe; the mean gain ``estimate`` with
    its own 95 % interval ``low`` to ``high``; ``p`` and ``p (Holm)``; and the ``result``:
    ``holds`` or ``fails`` if ``p (Holm)`` is below .05, else ``inconclusive``. Holm's method takes
    together all comparisons of targets, with a random confidence, among probes, and of pass@k.
    Other pages judge budgets (``results.compare_use``) and compare probes with response
    consistency, verbalized confidence and P(True) (``results.compare_with_nearest_probe``).
    """
    gains, elsewhere = [], []
    for model, of_model in results.items():
        varied = differing(of_model[of_model["total"] > 1])
        parts = [target_gains(varied), score_gains(varied)]
        parts += [pass_at_16_gains(varied, concentrations[model])]
        gains.append(pd.concat(parts).assign(model=model))
        parts = [compare_budgets(of_model, concentrations[model]), compare_asked(of_model)]
        elsewhere += [part.assign(model=model) for part in parts]
    judged = judge(pd.concat(gains), CASE)
    judged["result"] = judged["verdict"].map(FOR)
    columns = [*CASE, "estimate", "low", "high", "p", "p (Holm)", "result"]
    return pd.concat([judged, *elsewhere], ignore_index=True)[columns].astype({"result": str})


def target_gains(results: pd.DataFrame) -> pd.DataFrame:
    """Return the gain on each question of comparisons that concern all methods: how far two
    responses are apart on average, and whether a question with many samples lies between .1 and .9.
    """
    apart = 2 * metrics.correctness_variance_terms(*results[COUNTS].to_numpy().T, corrected=True)
    targets = results[[]].assign(what=TARGETS, gain=apart)
    depth = results["total"].groupby(level="dataset").transform(deep_samples)
    deep = results[results["total"] >= depth]
    mu_hat = deep["correct"] / deep["total"]
    between = mu_hat.between(*BETWEEN, inclusive="neither")
    mixed = deep[[]].assign(what=MIXED, gain=between - 0.5)
    return pd.concat([targets, mixed]).assign(method="", nearest=False)


def score_gains(results: pd.DataFrame) -> pd.DataFrame:
    """Return the gain on each question of each method over a random confidence, and of the data
    set's own probe over probes that were trained on another data set.
    """
    terms = mean_over_members(terms_of(results), ["method", "kind", "shift", "nearest"], ["term"])
    uniform = metrics.uniform_baseline_brier_terms(*results[COUNTS].to_numpy().T, corrected=True)
    terms["uniform"] = pd.Series(uniform, results.index)
    what = terms["shift"].fillna(terms["kind"]).map(OVER_UNIFORM)
    over_uniform = terms.assign(what=what, gain=terms["uniform"] - terms["term"])
    own = terms.loc[terms["kind"] == AT_HOME, "term"].rename("own")
    others = terms[terms["shift"].isin([IN_DOMAIN, OUTSIDE])].join(own)
    others = others.assign(what=OTHERS, gain=others["term"] - others["own"])
    gains = pd.concat([over_uniform.dropna(subset="what"), others])
    return gains.astype({"method": str})[["what", "method", "nearest", "gain"]]


def pass_at_16_gains(results: pd.DataFrame, concentrations: "pd.Series[float]") -> pd.DataFrame:
    """Return the gain on each question of the nearest probe in predicting pass@16.

    ``MISSED`` tells how far the data set's curve is missed at 16 if each attempt succeeds with the
    stated probability, as in the paper. ``PASS`` compares the posterior with an oracle that knows
    whether one answer is right.
    """
    ways = ways_to_use(results, concentrations)
    case = ["method", "nearest"]
    plug_in = predict_each(ways[ways["way"] == PLUG_IN], [ATTEMPTS])
    plug_in["gain"] = plug_in["predicted"] - plug_in["measured"]
    missed = mean_over_members(plug_in, case, ["gain"])
    side = np.sign(missed.groupby("dataset")["gain"].transform("mean"))
    missed = missed.assign(what=MISSED, gain=missed["gain"] * side - OFF)
    posterior = ways[ways["way"] == POSTERIOR]
    s, correct, total = (posterior[name].reset_index(drop=True) for name in NUMBERS)
    nu = posterior["concentration"].to_numpy()
    gain = pass_at_k_gains_over_answer(s, correct, total, ATTEMPTS, concentration=nu)
    passed = mean_over_members(posterior.assign(gain=gain.to_numpy()), case, ["gain"])
    return pd.concat([missed, passed.assign(what=PASS)]).astype({"method": str})


def compare_budgets(results: pd.DataFrame, concentrations: "pd.Series[float]") -> pd.DataFrame:
    """Return what the page on budgets says of spending two samples a question by the nearest probe
    or by verbalized confidence, as rows of :func:`compare_as_stated`.
    """
    spent = compare_use(results, "Budget", concentrations)
    spent = spent[spent["method"].isin(SPENT)]
    return spent.assign(
        what=spent["method"].map(SPENT),
        method=spent["confidence"],
        nearest=spent["method"] == NEAREST_PROBE,
        result=spent["verdict"].map(FOR),
    )


def compare_asked(results: pd.DataFrame) -> pd.DataFrame:
    """Return what the main table says of the nearest probe against response consistency, verbalized
    confidence and P(True), as rows of :func:`compare_as_stated`: a gain is now the probe's. In a
    comparison with response consistency, ``method`` is the probe.
    """
    asked = compare_with_nearest_probe(results)
    asked = asked.join(cases_of(results)["shift"], on=["dataset", "probe"])
    votes, own = asked["method"] == CONSISTENCY, asked["shift"] == AT_HOME
    return asked.assign(
        what=np.where(votes, FURTHER, np.where(own, ASKED_OWN, ASKED_ELSEWHERE)),
        method=asked["probe"].where(votes, asked["method"].astype(str)),
        nearest=True,
        estimate=-asked["estimate"],
        low=-asked["high"],
        high=-asked["low"],
        result=asked["verdict"].map(AGAINST),
    )


def results_of_claims(
    claims: pd.DataFrame, comparisons: pd.DataFrame, dearer: "pd.Series[bool]"
) -> pd.DataFrame:
    """Return the results of the comparisons of each claim, with the columns ``says`` and
    ``result``.

    ``claims`` are rows of ``load_claims`` with comparisons in ``measured``, which are those of
    :func:`compare_as_stated`. ``dearer`` tells for each data set and model whether ten votes cost
    more tokens than an answer.
    """
    counted = pd.DataFrame({"what": COSTS, "result": np.where(dearer, "holds", "fails")})
    comparisons = pd.concat([comparisons, counted], ignore_index=True)
    tables = []
    for says, claim in claims.iterrows():
        compared = comparisons[comparisons["what"].isin(claim["measured"])]
        if claim["nearest"] is True:
            compared = compared[compared["nearest"] == True]  # noqa: E712
        result = compared["result"]
        if claim["lost"] is True:
            result = result.replace({"holds": "fails", "fails": "holds"})
        if claim["opposite"] is True:
            group = compared["dataset"] + compared["method"]
            several = group.groupby(group).transform("size") > 1
            result = opposite(result[several], group[several])
        tables.append(pd.DataFrame({"says": says, "result": result}))
    return pd.concat(tables, ignore_index=True)


def gain_of_one_half(results: pd.DataFrame) -> "pd.Series[float]":
    """Return the mean gain over the best constant of saying one half, on each data set."""
    scored = results[results["total"] > 1]
    mu_hat = scored["correct"] / scored["total"]
    gain = (best_constant(scored) - mu_hat) ** 2 - (0.5 - mu_hat) ** 2
    return gain.groupby(level="dataset").mean()


def advise(
    as_it_is: pd.DataFrame, recalibrated: pd.DataFrame, half: "pd.Series[float]"
) -> pd.DataFrame:
    """Return what each kind of confidence gains over the best constant, for a reader with no labels
    and for one with labels of the data set.

    ``as_it_is`` and ``recalibrated`` are rows from ``compare_with_constant`` and
    ``compare_recalibrated``, for all models in one table that names the ``model``; ``half`` has
    the gains of :func:`gain_of_one_half`, by ``model`` and ``dataset``.

    Returns one row per way, in the order of ``WAYS``: the ``labels``, what it ``needs from the
    model`` beside the answer, the ``kind`` of confidence, and its ``mean gain``. All means are over
    the same cases: those that have both votes and a probe of their own, whose number is
    ``attrs["cases"]``. A way that lacks one of them has no mean. Then each model has a column with
    the counts of ``results.tally`` over all cases of the way. A way without a case has no row.
    """
    home, by = as_it_is["kind"] == AT_HOME, ["labels", "kind"]
    cases = {"none": as_it_is[~home], "yes": pd.concat([as_it_is[home], recalibrated])}
    rows = pd.concat(cases, names=["labels", None]).reset_index("labels").astype({"kind": str})
    gains = rows.pivot_table("estimate", ["model", "dataset"], by)
    gains["none", ONE_HALF] = half
    both = [way for way in gains if way in (("yes", VOTED), ("yes", AT_HOME))]
    gains = gains.dropna(subset=both)
    means = gains.mean().where(gains.notna().all()).rename("mean gain")
    counts = tally(rows, *by, "model").astype(str)
    lost = ", " + counts["worse"] + " of " + counts["cases"] + " worse"
    words = counts["better"] + " of " + counts["could be won"]
    words += lost.where(counts["worse"] != "0", "")
    of_model = words.unstack("model")[[*rows["model"].unique()]]
    advice = WAYS.join(pd.concat([means, of_model], axis=1), on=by, how="inner")
    advice.attrs["cases"] = len(gains)
    return advice
