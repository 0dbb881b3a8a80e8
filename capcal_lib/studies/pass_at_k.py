"""Test whether a confidence predicts pass@k, the chance that one of k attempts is correct (section
5.1 and appendix D.1 of the paper).

All functions take or return long tables: ``results.ways_to_use`` lists the ways to use a
confidence, :func:`predict` adds what each predicts for each k, and the rest are means by ``way``
and ``k``."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import (
    deep_samples,
    fit_concentration,
    pass_at_k,
    pass_at_k_error_terms,
    simulate_pass_at_k,
    split_counts,
)
from capcal_lib.probe_names import PLUG_IN, POSTERIOR
from capcal_lib.results.estimated import VOTED
from capcal_lib.results.judged import judge, mean_over_members
from capcal_lib.results.results import subjects
from capcal_lib.results.scores import best_constant
from capcal_lib.results.terms import BEST_CONSTANT, COUNTS, ORACLE_CC, ORACLE_RC, mark_best
from capcal_lib.results.uses import ways_to_use
from capcal_lib.shifts import AT_HOME

ACTUAL = "Actual"
HALVES = 10  # random halves that an oracle knows in turn


def predict(
    results: pd.DataFrame,
    ks: Sequence[int],
    concentrations: "pd.Series[float]",
    *,
    deepest: bool = False,
) -> pd.DataFrame:
    """Predict pass@k for each question: the long table of ``ways_to_use`` without votes, and with
    the best constant, one row per k; of the ``deepest`` questions only, those of a data set with
    most samples (``applications.deep_samples``).

    ``predicted`` is the way's pass@k, ``measured`` that of the samples, NaN if a question has fewer
    than k, and ``error`` the unbiased squared error, NaN if it has fewer than 2k. The best constant
    is a posterior too; its concentration is fitted to the very questions shown, which favours it.
    """
    results = results[results["total"] > 1]
    constant = results[COUNTS].assign(confidence=best_constant(results), member=0)
    constant = constant.assign(way=BEST_CONSTANT).dropna(subset="confidence")
    if deepest:
        depth = results["total"].groupby(level="dataset").transform(deep_samples)
        results = results[results["total"] >= depth]
        constant = constant[constant.index.isin(results.index)]
    by_set = constant.groupby(level="dataset")[["confidence", *COUNTS]]
    fitted = {name: fit_concentration(*rows.to_numpy().T) for name, rows in by_set}
    datasets = constant.index.get_level_values("dataset")
    constant["concentration"] = datasets.map(fitted).astype(float)
    ways = ways_to_use(results, concentrations)
    return predict_each(pd.concat([constant, ways[ways["kind"] != VOTED]]), ks)


def predict_each(ways: pd.DataFrame, ks: Sequence[int]) -> pd.DataFrame:
    """Predict pass@k with each row of confidences, as :func:`predict` does."""
    if ways.empty:
        return ways.assign(k=0, predicted=np.nan, measured=np.nan, error=np.nan)
    counts = ways["correct"].to_numpy(int), ways["total"].to_numpy(int)
    confidence, concentration = (ways[name].to_numpy() for name in ("confidence", "concentration"))
    predicted = simulate_pass_at_k(confidence, ks, concentration=concentration)
    measured = pass_at_k(*counts, ks)
    error = pass_at_k_error_terms(predicted, *counts, ks)
    tables = {}
    for place, k in enumerate(ks):
        columns = {"predicted": predicted, "measured": measured, "error": error}
        tables[k] = ways.assign(**{name: values[:, place] for name, values in columns.items()})
    return pd.concat(tables, names=["k"]).reset_index("k")


def known_to_all(predicted: pd.DataFrame) -> pd.DataFrame:
    """Keep each k of a data set for which all of its questions have enough samples."""
    lacking = predicted.assign(lacking=predicted["measured"].isna())
    return predicted[~lacking.groupby(["dataset", "k"])["lacking"].transform("any")]


def curves_of(predicted: pd.DataFrame) -> pd.DataFrame:
    """Return the mean pass@k over questions, measured (*Actual*) and by each way, one row per
    ``dataset``, ``method`` and ``k``.

    ``estimate`` is the mean. All ways need the same questions.
    """
    predicted = known_to_all(predicted)
    by = ["dataset", "way", "k"]
    curves = predicted.groupby(by, sort=False)["predicted"].mean().rename("estimate").reset_index()
    measured = predicted[predicted["way"] == BEST_CONSTANT].groupby(["dataset", "k"], sort=False)
    actual = measured["measured"].mean().rename("estimate").reset_index().assign(way=ACTUAL)
    return pd.concat([curves, actual], ignore_index=True).rename(columns={"way": "method"})


def half_bands(predicted: pd.DataFrame) -> pd.DataFrame:
    """Return half the width of the paper's 95 % band around the mean of each way's predicted
    pass@k, and whether the band ``held`` the measured mean.

    The band says how far one draw of k attempts per question falls from its expectation if every
    confidence is exactly right (appendix D.1.1): 1.96 times the root of the sum of S (1 - S), over
    the number of questions. Returns one row per ``dataset``, ``way``, ``member`` and ``k``, over
    the questions with k samples.
    """
    known = predicted.dropna(subset="measured")
    known = known.assign(variance=known["predicted"] * (1 - known["predicted"]))
    by_case = known.groupby(["dataset", "way", "member", "k"], sort=False)
    table = by_case[["predicted", "measured"]].mean()
    table["half the band"] = 1.96 * by_case["variance"].sum() ** 0.5 / by_case.size()
    gap = (table["predicted"] - table["measured"]).abs()
    return table.assign(held=gap <= table["half the band"]).reset_index()


def oracle_errors(results: pd.DataFrame, ks: Sequence[int], *, seed: int = 0) -> pd.DataFrame:
    """Return the errors of two oracles, as rows of :func:`predict`, with ten members.

    Each oracle knows a random half of each question's samples and is scored on the other half.
    *Oracle CC* knows the share of its half that is correct. *Oracle RC* knows the verdict of one
    sample of its half, and has its expected error.
    """
    rng = np.random.default_rng(seed)
    halves = []
    for member in range(HALVES):
        (known, drawn), (correct, total) = split_counts(*results[COUNTS].to_numpy().T, rng=rng)
        half = pd.DataFrame({"correct": correct, "total": total}, results.index)
        half = half.assign(member=member, concentration=np.inf)
        share = pd.Series(known / drawn, results.index)
        by_share, by_right, by_wrong = (
            predict_each(half.assign(confidence=says), ks) for says in (share, 1.0, 0.0)
        )
        right = share[by_right.index]
        by_one = by_right.assign(error=right * by_right["error"] + (1 - right) * by_wrong["error"])
        halves += [by_share.assign(way=ORACLE_CC), by_one.assign(way=ORACLE_RC)]
    return pd.concat(halves)


def score_errors(predicted: pd.DataFrame) -> pd.DataFrame:
    """Score predictions of pass@k by the mean unbiased error of each way, with its interval.

    Returns a table indexed by (dataset, method) for ``book.tables.show_scores``. Its ``dataset``
    names k and the number of questions. The columns are ``brier``, ``low``, ``high``,
    ``may_be_best``, for which neither the constant nor the oracles compete, and the number of
    ``questions`` of a row: an oracle may have fewer, because it needs twice the samples.
    """
    errors = mean_over_members(predicted, ["way", "k"], ["error"]).dropna(subset="error")
    tables = {}
    for k, of_k in errors.groupby("k"):
        terms = of_k.set_index("way", append=True)["error"].unstack("way", sort=False)
        groups = subjects(terms).to_numpy()
        table = pd.DataFrame(
            {
                name: metrics.mean_interval(values, clusters=groups, bounds=(0, 1))
                for name, values in terms.items()
            },
            ["brier", "low", "high"],
        ).T
        table["may_be_best"] = mark_best(terms, groups)
        table["questions"] = terms.count()
        tables[f"pass@{k}, {len(terms)} questions"] = table
    return pd.concat(tables, names=["dataset", "method"])


def plug_in_errors(predicted: pd.DataFrame) -> pd.DataFrame:
    """Score predictions under the paper's protocol: the mean squared distance of plug-in
    predictions from the measured pass@k, one row per data set and method, one column per k.

    Both oracles are made from the very samples that score them (*in sample*), so Oracle CC can
    hardly fail.
    """
    known = known_to_all(predicted)
    constant = known[known["way"] == BEST_CONSTANT]
    mu = constant["correct"] / constant["total"]
    measured = constant["measured"]
    simulated = 1 - (1 - mu) ** constant["k"]
    shares = {
        "Oracle CC (in sample)": (simulated - measured) ** 2,
        "Oracle RC (in sample)": mu * (1 - measured) ** 2 + (1 - mu) * measured**2,
    }
    plug_in = known[~known["way"].isin([BEST_CONSTANT, POSTERIOR])]
    names = plug_in["way"].where(plug_in["way"] != PLUG_IN, plug_in["method"].astype(str))
    squared = (plug_in["predicted"] - plug_in["measured"]) ** 2
    parts = [plug_in[["k"]].assign(method=names, squared=squared)]
    parts += [constant[["k"]].assign(method=name, squared=of) for name, of in shares.items()]
    means = pd.concat(parts).groupby(["dataset", "method", "k"], sort=False)["squared"].mean()
    return means.unstack("k").add_prefix("pass@")


def compare_pass_at_k(predicted: pd.DataFrame) -> pd.DataFrame:
    """Compare predictions of pass@k on each data set that has a probe of its own, all together by
    Holm's method.

    ``predicted`` is a table from :func:`predict` for one k. Both ways of the probe are compared
    with the best constant, and the posterior is compared with the plug-in. Questions need 2k
    samples. Returns one row per case: ``dataset``, ``method``, ``rival`` and the columns of
    ``results.judge``, with ``could be won``. There are no rows without a probe or without enough
    samples.
    """
    own = predicted[predicted["kind"] == AT_HOME].index.unique()
    errors = mean_over_members(predicted[predicted.index.isin(own)], ["way"], ["error"])
    errors = errors.set_index("way", append=True)["error"].unstack("way")
    parts = [pd.DataFrame(columns=["method", "rival", "gain", "perfect"], index=errors.index[:0])]
    pairs = (PLUG_IN, BEST_CONSTANT), (POSTERIOR, BEST_CONSTANT), (POSTERIOR, PLUG_IN)
    for way, rival in pairs:
        if way in errors:
            gain = {"gain": errors[rival] - errors[way], "perfect": errors[rival]}
            parts.append(pd.DataFrame(gain).assign(method=way, rival=rival))
    return judge(pd.concat(parts), ["dataset", "method", "rival"])
