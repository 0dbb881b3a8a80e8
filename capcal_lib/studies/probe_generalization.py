"""Test where a probe still works: the effect of a second training set, and how many labels it
takes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from capcal_lib.metrics import Calibrator, bounds_over_constant, mean_interval
from capcal_lib.probe_names import PROBE_OF_SET, probe_name, training_sets
from capcal_lib.probes import nearest_probe
from capcal_lib.probes.draws import DRAWS
from capcal_lib.results.estimated import ASKED_KINDS, SEVERAL, VOTED, differing, estimates
from capcal_lib.results.judged import judge, mean_over_members
from capcal_lib.results.results import INDEX, subjects
from capcal_lib.results.scores import Protocol, best_constant, terms_of
from capcal_lib.results.targets import accuracy_variance
from capcal_lib.results.terms import FEWEST, NUMBERS

VARIED = 0.01  # a variance of accuracy over questions: with less there is little to be learnt
RECALIBRATIONS = 50  # draws of labels for a method that is recalibrated
ASKED = [*ASKED_KINDS, "other"]


def varied(results: pd.DataFrame) -> pd.DataFrame:
    """Keep the data sets on which the variance of expected accuracy over questions is above .01
    (``accuracy_variance``).
    """
    variance = accuracy_variance(results)
    return results[results.index.isin(variance.index[variance > VARIED], level="dataset")]


def compare_mixture(results: pd.DataFrame, *, protocol: Protocol = "corrected") -> pd.DataFrame:
    """Compare a probe of two training sets with the nearer of their single probes, on each data set
    whose questions differ, all together by Holm's method.

    Returns the gain of the mixture, indexed by ``dataset`` and ``rival``, with the columns of
    ``results.judge``. There are no rows if the results have no such probe.
    """
    terms = terms_of(varied(results), protocol=protocol)
    terms = mean_over_members(terms, ["method", "kind"], ["term"])
    mixtures = terms.loc[terms["kind"] == SEVERAL, "method"].unique()[:1]
    singles = [probe_name(title) for name in mixtures for title in training_sets(name)]
    gains = [terms.iloc[:0].assign(rival="", gain=0.0)]
    for dataset, of_set in terms.groupby(level="dataset", sort=False):
        rival = nearest_probe(of_set["method"][of_set["method"].isin(singles)], str(dataset))
        single = of_set.loc[of_set["method"] == rival, "term"]
        mixed = of_set[of_set["method"].isin(mixtures)]
        gains.append(mixed.assign(rival=rival, gain=single - mixed["term"]))
    return judge(pd.concat(gains), ["dataset", "rival"]).set_index(["dataset", "rival"])


def labels_curve(
    results: pd.DataFrame,
    predicted: Mapping[tuple[str, int], pd.DataFrame],
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the gain of each method over the best constant for each number of labels, on each data
    set whose questions differ.

    A label is one graded answer to a question. All methods but probes are recalibrated by Platt's
    method on random labelled questions, and judged on the rest. Each case is drawn from ``seed``
    anew, so that no method moves the numbers of another. Questions without a confidence are left
    out. The data set's own probe learns from training questions with
    one graded answer each: ``predicted`` is from ``probes.draws.predict_by_labels``.

    A gain is the constant's Brier term minus the method's, from the same counts. For votes these
    are the counts of the samples that did not vote. The noise of mu_hat is in both terms, so it
    cancels.

    Returns one row per ``dataset``, ``method`` and number of ``labels``, if at least ten questions
    are left to judge: the mean gain ``estimate``, positive if closer than the constant; its 95 %
    interval ``low`` to ``high`` for other questions and other draws; and the ``spread`` of a single
    draw (:func:`over_draws`).
    """
    scored = differing(results[results["total"] > 1])
    listed = estimates(scored)
    listed = listed[listed["kind"].isin(ASKED) & (listed["total"] > 1)]
    constant = best_constant(scored)
    gains: dict[Any, pd.DataFrame] = {}
    for dataset, of_set in listed.groupby(level="dataset", sort=False):
        of_set = of_set.sort_values("kind", key=lambda kinds: kinds != VOTED, kind="stable")
        for method, judged in of_set.groupby("method", sort=False, observed=True):
            for labels in DRAWS:
                if len(judged) >= labels + FEWEST:
                    case = dataset, method, labels
                    rng = np.random.default_rng(seed)
                    gains[case] = recalibrated_gains(judged, constant, labels, rng)
    for (name, labels), confidences in predicted.items():
        if name in scored.index.unique("dataset"):
            counts = scored.loc[[name]]
            mu_hat = counts["correct"] / counts["total"]
            known = pd.concat({name: confidences}, names=INDEX).reindex(counts.index)
            of_constant = (constant[counts.index] - mu_hat) ** 2
            squares = known.sub(mu_hat, axis="index") ** 2
            gains[name, PROBE_OF_SET, labels] = -squares.sub(of_constant, axis="index")
    rows = []
    for (dataset, method, labels), drawn in gains.items():
        row = {"dataset": dataset, "method": method, "labels": labels}
        bounds = bounds_over_constant(constant.loc[[dataset]])
        rows.append(row | over_draws(drawn, subjects(drawn), bounds))
    columns = ["dataset", "method", "labels", "estimate", "low", "high", "spread"]
    return pd.DataFrame(rows, columns=columns)


def recalibrated_gains(
    judged: pd.DataFrame,
    constant: "pd.Series[float]",
    labels: int,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Recalibrate a method on each of fifty draws of labelled questions, and return its gains on
    the others, (n_questions, n_draws).

    The gain of a labelled question is NaN. ``judged`` are the estimates of one method and data set.
    """
    confidence, correct, total = (judged[name].to_numpy() for name in NUMBERS)
    mu_hat = correct / total
    of_constant = (constant[judged.index].to_numpy() - mu_hat) ** 2
    gains = np.full((len(judged), RECALIBRATIONS), np.nan)
    with threadpool_limits(1):  # products are so small that threads wait for each other
        for number in range(RECALIBRATIONS):
            order = rng.permutation(len(judged))
            labelled, rest = order[:labels], order[labels:]
            right = rng.hypergeometric(correct[labelled], (total - correct)[labelled], 1)
            calibrator = Calibrator("platt").fit(confidence[labelled], right, 1)
            squares = (calibrator.predict(confidence[rest]) - mu_hat[rest]) ** 2
            gains[rest, number] = of_constant[rest] - squares
    return pd.DataFrame(gains, judged.index)


def over_draws(
    gains: pd.DataFrame, groups: "pd.Series[str]", bounds: tuple[float, float]
) -> dict[str, float]:
    """Average gains, (n_questions, n_draws), over questions and draws: ``estimate``, ``low``,
    ``high``, and ``spread``, the standard deviation over draws.

    A question's gain is its mean over the draws in which it is judged. Each arm of the interval is
    the root of a sum of two squares. One is the arm of ``mean_interval`` over these gains, with
    whole ``groups`` drawn. The other is the arm of Student's t over draws, in which the value of a
    draw is the mean deviation of its gains from the means of their questions. The second arm is too
    short if draws label nearly all questions, because then they have most of them in common.
    """
    from scipy.stats import t  # slow to import

    of_question = gains.mean(axis="columns")
    clusters = groups[gains.index]
    estimate, low, high = mean_interval(of_question, clusters=clusters, bounds=bounds)
    draws = gains.shape[1]
    spread = gains.sub(of_question, axis="index").mean().std()
    arm = t.ppf(0.975, draws - 1) * spread / np.sqrt(draws)
    return {
        "estimate": estimate,
        "low": np.maximum(bounds[0], estimate - np.hypot(estimate - low, arm)),
        "high": np.minimum(bounds[1], estimate + np.hypot(high - estimate, arm)),
        "spread": spread,
    }
