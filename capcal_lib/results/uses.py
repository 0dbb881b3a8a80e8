"""What does a confidence gain in one use, compared with the best rule without one?

A *way* is a confidence as one uses it: a method that asks the model, one's own, or the nearest
probe, in two ways. *Plug-in* takes its confidence as mu; *posterior* takes it as the mean of a
distribution of mu, whose concentration is known from the probe's training questions. A missing
confidence counts as one half, except for votes."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import (
    abstaining_gains,
    budget_gains,
    deep_samples,
    draw_accuracies,
    fit_concentration,
    others_mean,
    pass_at_k,
    pass_at_k_gains,
    risk_area_bounds,
)
from capcal_lib.metrics.comparisons import APART
from capcal_lib.probe_names import NEAREST_PROBE, PLUG_IN, POSTERIOR
from capcal_lib.results.estimated import VOTED, differing, estimates
from capcal_lib.results.judged import judge, mean_over_members
from capcal_lib.results.scores import calibrated_folds, folds_of_sets
from capcal_lib.results.terms import NUMBERS

USES = ("pass@k", "pass@k, recalibrated", "Budget", "Budget, recalibrated", "Abstaining")
ATTEMPTS = 16
PER_QUESTION = 2  # samples a question of a budget
WORLDS = 5  # sets of expected accuracies that a perfect confidence knows in turn


def ways_to_use(
    results: pd.DataFrame, concentrations: "Mapping[str, float] | pd.Series[float]"
) -> pd.DataFrame:
    """List the ways to use a confidence on each data set: the long table of ``estimates`` with
    ``way`` and ``concentration``, which is infinite if the confidence is used as it is.

    ``concentrations`` maps the names of probes to the concentration of their posterior, as
    ``describe_probes`` gives it. Only questions with two scored samples count, and of all probes
    only the nearest to a data set: never one that is chosen by its score.
    """
    listed = estimates(results[results["total"] > 1], fill=True)
    listed["way"] = listed["method"].astype(str)
    stated = listed[~listed["kind"].str.startswith("probe")].assign(concentration=np.inf)
    plug_in = listed[listed["nearest"]].assign(way=PLUG_IN, concentration=np.inf)
    concentration = plug_in["method"].astype(str).map(dict(concentrations)).fillna(np.inf)
    posterior = plug_in.assign(way=POSTERIOR, concentration=concentration)
    return pd.concat([stated, plug_in, posterior])


def compare_use(
    results: pd.DataFrame,
    use: str,
    concentrations: "Mapping[str, float] | pd.Series[float]",
    *,
    per_question: int = PER_QUESTION,
) -> pd.DataFrame:
    """Judge what each confidence of a model gains in one of ``USES`` on each data set, all of them
    together (``results.judge``).

    ``results`` and ``concentrations`` are those of :func:`ways_to_use`. The probe is used as a
    posterior. Votes cost more than a budget spends, and are left out there. A budget has
    ``per_question`` samples on average, and is tried on questions with twice as many, if there are
    enough (``applications.deep_samples``). Data sets whose questions all have the same accuracy are
    left out. Two uses need the level of a confidence. If it is *recalibrated* there
    (:func:`recalibrate_ways`), probes, which have learned from labels before, are left out.

    Returns one row per comparison: ``dataset``, ``method``; the ``confidence``, which for a probe
    is its own name; the mean gain ``estimate`` with the 95 % interval ``low`` to ``high`` of this
    comparison alone; ``p``, ``p (Holm)``; the ``verdict``, a category; and whether the case ``could
    be won``.
    """
    results = results[results["total"] > 1]
    use, _, recalibrated = use.partition(", ")
    if use == "Budget":
        depth = results["total"].groupby(level="dataset").transform(deep_samples)
        enough = (results["total"] >= 2 * per_question) & (depth >= 2 * per_question)
        results = results[enough]
    ways = ways_to_use(differing(results), concentrations)
    ways = ways[ways["way"] != PLUG_IN]
    if use == "Budget":
        ways = ways[ways["kind"] != VOTED]
    if recalibrated:
        ways = recalibrate_ways(ways[ways["way"] != POSTERIOR])
    ways = ways.rename(columns={"method": "confidence", "confidence": "s"})
    ways["method"] = ways["way"].replace(POSTERIOR, NEAREST_PROBE)
    case = ["method", "confidence"]
    cases = ways.groupby(["dataset", *case, "member"], observed=True, sort=False)
    tables = [_gains(rows, use, per_question) for _, rows in cases]
    gains = pd.concat(tables) if tables else ways.assign(gain=0.0, perfect=0.0, least=-1, most=1)
    gains = mean_over_members(gains, case, ["gain", "perfect", "least", "most"])
    return judge(gains, ["dataset", *case])


def recalibrate_ways(ways: pd.DataFrame) -> pd.DataFrame:
    """Recalibrate each way as ``results.recalibrate`` does, and use it as a posterior, whose
    concentration is fitted to the labels of the other folds too.
    """
    fold = folds_of_sets(ways[~ways.index.duplicated()])
    parts = [ways[:0]]
    for _, rows in ways.groupby(["dataset", "way", "member"], sort=False):
        for inside, others, calibrator in calibrated_folds(rows, fold):
            if others["total"].gt(1).sum() > 1:
                s, *counts = (others[name] for name in NUMBERS)
                nu = fit_concentration(calibrator.predict(s), *counts)
                level = calibrator.predict(inside["confidence"])
                parts.append(inside.assign(confidence=level, concentration=nu))
    return pd.concat(parts)


def _gains(rows: pd.DataFrame, use: str, per_question: int) -> pd.DataFrame:
    """Add the ``gain`` of each question in a use, that of a ``perfect`` confidence, and bounds.

    The perfect confidence knows each question's expected accuracy, but not the noise of the samples
    that judge it. Its gain is the mean over five draws of accuracies given the samples
    (``applications.draw_accuracies``).
    """
    s, correct, total = (rows[name].droplevel("dataset") for name in ("s", "correct", "total"))
    posterior = {"concentration": rows["concentration"].droplevel("dataset")}
    gain = partial(abstaining_gains, correct=correct, total=total)
    if use == "pass@k":
        gain = partial(pass_at_k_gains, correct=correct, total=total, k=ATTEMPTS)
    elif use == "Budget":
        gain = partial(budget_gains, correct=correct, total=total, per_question=per_question)
    else:
        posterior = {}  # only the order counts
    drawn = draw_accuracies(correct, total, WORLDS, rng=np.random.default_rng(0))
    perfect = [gain(pd.Series(world, s.index)).to_numpy() for world in drawn]
    least, most = bounds_in_use(use, correct, total)
    return rows.assign(
        gain=gain(s, **posterior).to_numpy(),
        perfect=np.mean(perfect, axis=0),
        least=least,
        most=most,
    )


def bounds_in_use(
    use: str, correct: "pd.Series[int]", total: "pd.Series[int]"
) -> tuple[float, float]:
    """Return the least and the largest possible gain of a question in a use.

    In pass@k, a confidence gains most if it is right and the mean of the others is far off, and
    loses most if it is wrong and the mean is near. A budget loses a whole question if it spends
    nothing on one that even spending solves, and gains one in the opposite case. For abstaining see
    ``applications.risk_area_bounds``.
    """
    if use == "Budget":
        return -1.0, 1.0
    if use == "Abstaining":
        return risk_area_bounds(len(correct))
    solved = pd.Series(pass_at_k(correct, total, [ATTEMPTS])[:, 0]).dropna()
    return metrics.bounds_over_constant(others_mean(solved)) if len(solved) > 1 else APART
