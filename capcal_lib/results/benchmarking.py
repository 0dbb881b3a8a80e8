"""Estimate accuracies without labels: how far a mean confidence is from the accuracy, on every data
set of every model, and whether it ranks models rightly.
"""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import pandas as pd

from capcal_lib import metrics
from capcal_lib.confidence.of_run import TITLES
from capcal_lib.grading.counts import count_run
from capcal_lib.probes import ProbeRecipe, describe_probes
from capcal_lib.results.results import CONSISTENCY, judged_by, subjects
from capcal_lib.results.scores import (
    NEAREST_PROBE,
    keep_nearest_probe,
    mean_over_probes,
    nearest_probe_of,
)
from capcal_lib.runs import open_runs

TRAINING = "Training questions"
METHODS = (*TITLES.values(), CONSISTENCY, NEAREST_PROBE)
VERDICTS = ("too high", "too low", "cannot tell")
COLUMNS = ["model", "dataset", "method", "accuracy", "miss", "low", "high", "p"]


def training_accuracies(
    store: Path | str,
    model: str,
    results: pd.DataFrame,
    *,
    recipe: ProbeRecipe = "tuned",
    verdicts: str = "rules",
) -> "pd.Series[float]":
    """Return the mean accuracy on the training questions of the probe that is nearest to a data
    set, by data set; those without a probe, or without its training run, have none.

    ``results`` are those of ``load_results``; ``recipe`` and ``verdicts`` are theirs.
    """
    probes = describe_probes(store, model, recipe=recipe, verdicts=verdicts)
    runs = {run.folder.name: run for run in open_runs(store, model=model)}
    accuracies = {}
    for name, subset in results.groupby(level="dataset", sort=False):
        dataset = str(name)
        nearest = nearest_probe_of(subset, dataset)
        training = runs.get(str(probes["run"][nearest])) if nearest else None
        if training is not None:  # predictions may have come without the run that taught the probe
            counts = count_run(training, verdicts=verdicts)
            accuracies[dataset] = (counts["correct"] / counts["total"]).mean()
    return pd.Series(accuracies, dtype=float)


def miss_accuracies(
    results: Mapping[str, pd.DataFrame], trained: Mapping[str, "pd.Series[float]"]
) -> pd.DataFrame:
    """Test how far a mean confidence is from the accuracy, on every data set of every model.

    ``results`` are those of ``load_results``, and ``trained`` those of :func:`training_accuracies`,
    by the names of models. Each of ``METHODS`` is judged by the samples that may judge it, on
    questions with two scored ones or more, and subjects are drawn whole. Of five probes the miss is
    that of their mean.

    Returns a row a case, in points: ``model``, ``dataset``, ``method``; the ``accuracy``; the
    ``miss``, which is the mean confidence less that, with its 95 % interval ``low`` to ``high``, by
    itself; ``p``; and the ``verdict``, a category, ``too high`` or ``too low`` where that is below
    .05 by Holm's method, for all cases of a method together. The accuracy on the training questions
    is a method without an interval and a verdict.
    """
    rows = []
    for model, own in results.items():
        for name, subset in own[own["total"] > 1].groupby(level="dataset", sort=False):
            dataset = str(name)
            accuracy = 100 * (subset["correct"] / subset["total"]).mean()
            if dataset in trained[model]:
                miss = 100 * trained[model][dataset] - accuracy
                rows.append([model, dataset, TRAINING, accuracy, miss, miss, miss, None])
            confidences = mean_over_probes(keep_nearest_probe(subset, dataset))
            for method in METHODS:
                if method in confidences:
                    scored = judged_by(confidences, method)
                    error = scored["confidence"] - scored["correct"] / scored["total"]
                    tested = metrics.judge_gain(error, clusters=subjects(scored))
                    points = 100 * tested[["estimate", "low", "high"]]
                    rows.append([model, dataset, method, accuracy, *points, tested["p"]])
    misses = pd.DataFrame(rows, columns=COLUMNS).astype({"p": float})
    verdicts = pd.Series("cannot tell", misses.index)
    for _, of_method in misses.groupby("method"):
        clear = metrics.adjusted(of_method["p"].to_numpy(), "holm") < 0.05
        verdicts[of_method.index[clear & (of_method["miss"] > 0)]] = "too high"
        verdicts[of_method.index[clear & (of_method["miss"] < 0)]] = "too low"
    verdicts = verdicts.mask(misses["method"] == TRAINING)
    return misses.assign(verdict=pd.Categorical(verdicts, VERDICTS))


def count_ranked(results: Mapping[str, pd.DataFrame], misses: pd.DataFrame) -> pd.DataFrame:
    """Count the pairs of models that each method's mean confidence ranks rightly.

    ``results`` and ``misses`` are those of :func:`miss_accuracies`. Only pairs whose accuracies
    differ significantly on a data set, on questions that both have, are counted, so that there is a
    right order. Returns a row a method: ``right`` and ``of``.
    """
    told = misses[misses["method"] != TRAINING].set_index(["dataset", "model", "method"])
    means = (told["accuracy"] + told["miss"]).sort_index()
    ranked = []
    for dataset, pair in _pairs(results):
        gap = _accuracies(results[pair[0]], dataset) - _accuracies(results[pair[1]], dataset)
        gap = gap.dropna()
        limits = metrics.mean_interval(gap, clusters=subjects(gap.to_frame()))
        if limits.low > 0 or limits.high < 0:
            apart = (means[dataset, pair[0]] - means[dataset, pair[1]]).dropna()
            ranked.append(apart * limits.estimate > 0)
    if not ranked:
        return pd.DataFrame(columns=["right", "of"], index=pd.Index([], name="method"))
    right = pd.concat(ranked).groupby(level="method")
    counts = pd.DataFrame({"right": right.sum(), "of": right.size()})
    return counts.reindex([method for method in METHODS if method in counts.index])


def _pairs(results: Mapping[str, pd.DataFrame]) -> list[tuple[str, tuple[str, str]]]:
    """List the pairs of models on each data set that both have."""
    found = []
    for first, second in combinations(results, 2):
        datasets = []
        for name in (first, second):
            scored = results[name][results[name]["total"] > 1]
            datasets.append(scored.index.unique("dataset"))
        both = datasets[0].intersection(datasets[1])
        found += [(str(dataset), (first, second)) for dataset in both]
    return found


def _accuracies(results: pd.DataFrame, dataset: str) -> "pd.Series[float]":
    """Return mu_hat of the questions of a data set that have two scored samples."""
    own = results.loc[[dataset]]
    own = own[own["total"] > 1]
    return own["correct"] / own["total"]
