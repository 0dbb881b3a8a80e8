"""Where does a probe still work? Its order on other data sets than its own, what a second training
set changes, what twenty labels of a new data set are worth, and what its recipe changes on its own.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.manifests import load_dataset
from capcal_lib.probes import ProbeRecipe, draw_training, nearest_probe, read_predictions
from capcal_lib.results.results import load_results, subjects
from capcal_lib.results.scores import (
    BEST_CONSTANT,
    Protocol,
    brier_terms,
    columns_of,
    confidence_columns,
    gains_by_dataset,
    mean_over_probes,
    methods,
)
from capcal_lib.shifts import OUT_OF_DISTRIBUTION, shift

VARIED = 0.01  # a variance of mu_hat over questions: with less there is little to be learnt
LABELS, LABEL_SAMPLES, DRAWS = 20, 4, 400
LEAST_OTHERS = 60  # questions to score on, beside those that are labelled
ORDER = ["dataset", "method", "shift", "estimate", "low", "high", "p", "p (Holm)", "verdict", "off"]
BY_PAPER, BY_TUNING = "Probe, paper's recipe", "Probe, tuned"
ALL_QUESTIONS = "all questions"
TESTED = ["estimate", "low", "high", "p", "p (Holm)", "verdict"]


def varied_datasets(results: pd.DataFrame) -> list[str]:
    """List the data sets on which the variance of mu_hat over questions is above .01."""
    mu_hat = results["correct"] / results["total"]
    variance = mu_hat.groupby(level="dataset", sort=False).var()
    return [str(name) for name in variance.index[variance > VARIED]]


def probe_pairs(results: pd.DataFrame) -> "pd.Series[int]":
    """Count the questions that each probe of one data set has predicted on each data set whose
    questions differ: two or more, indexed by (dataset, method).
    """
    predicted = mean_over_probes(results[confidence_columns(results)].notna())
    counts = predicted.groupby(level="dataset", sort=False).sum().rename_axis(columns="method")
    counts = counts.loc[varied_datasets(results)].filter(regex=r"^Probe \([^+]*\)$")
    stacked = pd.Series(counts.stack(), dtype=np.float64).astype(int)
    return stacked[stacked > 1]


def compare_order(results: pd.DataFrame) -> pd.DataFrame:
    """Correlate what each probe says with the expected accuracy, all cases judged together by
    Holm's method.

    A probe whose level is off may still tell easy questions from hard ones. Returns a row a
    ``dataset`` and ``method``, with its ``shift``: the correlation as ``estimate`` with its
    interval, as :func:`correlation` gives it, ``p (Holm)`` and ``verdict``; and ``off``, the mean
    of what the probe says less the mean accuracy, whose square is the part of a Brier score that
    the level alone costs. By the paper's recipe they are means over the five probes.
    """
    rows = []
    for dataset, method in probe_pairs(results).index:
        columns = columns_of(results, method)
        own = results.loc[[dataset], ["correct", "total", *columns]].dropna()
        mu = own["correct"] / own["total"]
        row = correlation(own[columns], mu, subjects(own))
        off = own[columns].mean().mean() - mu.mean()
        distance = shift(method, dataset)
        rows.append({"dataset": dataset, "method": method, "shift": distance, **row, "off": off})
    if not rows:
        return pd.DataFrame(columns=ORDER)
    return metrics.holm(pd.DataFrame(rows).dropna())[ORDER]


def correlation(
    confidences: pd.DataFrame, mu: "pd.Series[float]", groups: "pd.Series[str]"
) -> dict[str, float | str]:
    """Correlate confidences with accuracies: the mean of Pearson's r over the columns of
    confidences.

    The interval is Fisher's, on artanh r, with the error from the influence of each group of
    questions on r. Returns ``estimate``, ``low``, ``high``, ``p`` and the ``verdict`` alone; NaN
    where a confidence is the same for all.
    """
    from scipy.stats import t

    b = (mu - mu.mean()) / mu.std(ddof=0)
    correlations, influences = [], []
    for _, confidence in confidences.items():
        a = (confidence - confidence.mean()) / confidence.std(ddof=0)
        correlations.append((a * b).mean())
        influences.append(a * b - correlations[-1] * (a**2 + b**2) / 2)
    r = float(np.mean(correlations))
    influence = pd.concat(influences, axis="columns").mean(axis="columns", skipna=False)
    by_group = influence.groupby(groups).sum()
    free = len(by_group) - 1
    squares = float((by_group**2).sum())
    error = np.sqrt(squares * (free + 1) / free) / len(mu) / (1 - r**2)
    z = np.arctanh(r)
    low, high = np.tanh(z + error * t.ppf([0.025, 0.975], free))
    p = 2 * t.sf(abs(z) / error, free)
    verdict = "better" if r > 0 else "worse"
    return {"estimate": r, "low": low, "high": high, "p": p, "verdict": verdict}


def compare_mixture(
    results: pd.DataFrame, mixture: str, *, protocol: Protocol = "corrected"
) -> pd.DataFrame:
    """Judge a probe of two training sets against that of the nearer of the two, on each data set
    whose questions differ, all together by Holm's method.

    Returns a row a ``dataset`` and ``rival``, the index: the gain of the mixture as
    ``metrics.gains`` has it, with ``p (Holm)`` and ``verdict``.
    """
    sources = mixture.removeprefix("Probe (").removesuffix(")").split(" + ")
    single_probes = [f"Probe ({source})" for source in sources]
    found = {}
    for dataset in varied_datasets(results):
        own = results.loc[[dataset]].dropna(axis="columns", how="all")
        known = methods(own)
        rival = nearest_probe([name for name in single_probes if name in known], dataset)
        if rival and mixture in known:
            terms = brier_terms(own, protocol=protocol)[[rival, mixture]]
            tested = metrics.gains(terms, rival, clusters=subjects(own))
            found[dataset, rival] = tested.loc[mixture]
    index = pd.MultiIndex.from_tuples(list(found), names=["dataset", "rival"])
    if not found:
        return pd.DataFrame(columns=TESTED, index=index)
    return metrics.holm(pd.DataFrame(list(found.values()), index).infer_objects())


def near_probes(results: pd.DataFrame) -> list[tuple[str, str]]:
    """List the pairs of a data set and a probe of another set of its domain that leave more than 60
    questions to score on.
    """
    counts = probe_pairs(results)
    enough = counts[counts > LEAST_OTHERS].index.tolist()
    return [pair for pair in enough if shift(pair[1], pair[0]) == OUT_OF_DISTRIBUTION]


def score_labels(results: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Score what twenty labelled questions of a new data set are worth to a probe of another set of
    its domain (:func:`near_probes`), over 400 draws of the twenty from ``seed``, with four samples
    of each.

    Returns corrected Brier scores (lower is better) on the other questions, a row a ``dataset``,
    ``method`` and ``draw``, the index: of the probe ``as it is``, ``recalibrated`` by Platt's
    method, and replaced by the mean of the labels, a ``constant``.
    """
    rng = np.random.default_rng(seed)
    scores = {}
    for dataset, method in near_probes(results):
        columns = columns_of(results, method)
        own = results.loc[[dataset], ["correct", "total", *columns]].droplevel("dataset").dropna()
        draws = []
        for column in columns:
            for _ in range(DRAWS // len(columns)):
                draws.append(score_labels_once(own, column, rng=rng))
        scores[dataset, method] = pd.DataFrame(draws)
    if not scores:
        index = pd.MultiIndex.from_tuples([], names=["dataset", "method", "draw"])
        columns = ["as it is", "recalibrated", "constant"]
        return pd.DataFrame(columns=columns, index=index, dtype=np.float64)
    return pd.concat(scores, names=["dataset", "method", "draw"])


def score_labels_once(
    questions: pd.DataFrame, probe: str, *, rng: np.random.Generator
) -> dict[str, float]:
    """Score three uses of twenty labelled questions on the others, as :func:`score_labels` does."""
    labelled = draw_training(questions, LABELS, LABEL_SAMPLES, rng=rng)
    others = questions.drop(labelled.index)
    correct, total = labelled["correct"], labelled["total"]
    platt = metrics.Calibrator("platt").fit(labelled[probe], correct, total)
    ways: dict[str, Any] = {
        "as it is": others[probe],
        "recalibrated": platt.predict(others[probe]),
        "constant": np.full(len(others), correct.sum() / total.sum()),
    }
    counts = others["correct"], others["total"]
    return {
        way: metrics.capability_brier(confidence, *counts, corrected=True)
        for way, confidence in ways.items()
    }


def gains_of_labels(scores: pd.DataFrame) -> pd.DataFrame:
    """Return by how much recalibration lowers the score against its two rivals: the mean ``gain``
    over draws, and the limits ``low`` and ``high`` of the middle 95 % of them.

    ``scores`` are those of :func:`score_labels`. A row a ``dataset``, ``method`` and ``rival``.
    """
    rivals = scores[["as it is", "constant"]]
    lowered: Any = rivals.sub(scores["recalibrated"], axis="index").rename_axis(columns="rival")
    by_rival = lowered.stack().groupby(["dataset", "method", "rival"], sort=False)
    low, high = by_rival.quantile(0.025), by_rival.quantile(0.975)
    return pd.DataFrame({"gain": by_rival.mean(), "low": low, "high": high})


def recipe_terms(
    store: Path | str,
    models: Iterable[str],
    *,
    k_eval: int = 100,
    verdicts: str = "rules",
    protocol: Protocol = "corrected",
) -> pd.DataFrame:
    """Return the Brier terms of questions by the probe of their own data set, by the paper's recipe
    and tuned, and those of the best constant; a row a ``model``, ``dataset`` and ``question_id``.

    Only data sets whose questions differ, and questions that both have predicted.
    """
    found = {}
    for model in models:
        results = load_results(store, model, k_eval=k_eval, recipe=None, verdicts=verdicts)
        counts = results.sort_index()[["correct", "total"]].query("total > 1")
        if counts.empty:
            continue
        tuned = own_predictions(store, model, "tuned", BY_TUNING, verdicts)
        predicted = counts.join(tuned).join(
            own_predictions(store, model, "paper", BY_PAPER, verdicts)
        )
        mu_hat = predicted["correct"] / predicted["total"]
        varied = mu_hat.groupby(level="dataset").transform("var") > VARIED
        terms = brier_terms(predicted[varied].dropna(), protocol=protocol)
        found[model] = terms.reindex(columns=[BEST_CONSTANT, BY_PAPER, BY_TUNING]).dropna()
    if not found:
        index = pd.MultiIndex.from_tuples([], names=["model", "dataset", "question_id"])
        return pd.DataFrame(columns=[BEST_CONSTANT, BY_PAPER, BY_TUNING], index=index, dtype=float)
    return pd.concat(found, names=["model"])


def own_predictions(
    store: Path | str, model: str, recipe: ProbeRecipe, title: str, verdicts: str
) -> pd.DataFrame:
    """Return what each data set's own probe predicts of its questions, under a title: a column, or
    five by the paper's recipe.
    """
    predictions = read_predictions(store, model, recipe=recipe, verdicts=verdicts)
    predicted = []
    for dataset in predictions.index.unique("dataset"):
        probe = load_dataset(str(dataset)).probe
        columns = columns_of(predictions, probe)
        names = [column.replace(str(probe), title) for column in columns]
        predicted.append(predictions.loc[[dataset], columns].set_axis(names, axis="columns"))
    return pd.concat(predicted) if predicted else predictions


def compare_recipes(terms: pd.DataFrame) -> pd.DataFrame:
    """Judge by how much lower a tuned probe scores than one by the paper's recipe, on the same
    questions and with subjects drawn whole.

    ``terms`` are those of :func:`recipe_terms`. Returns a first row for all questions, judged by
    itself, and one a ``model`` and ``dataset``, judged together by Holm's method.
    """
    rivals = terms[[BY_PAPER, BY_TUNING]]
    if rivals.empty:
        return pd.DataFrame(columns=["model", "dataset", *TESTED])
    by_pair = metrics.holm(gains_by_dataset(rivals, BY_PAPER)).reset_index()
    groups = subjects(terms.droplevel("model")).to_numpy()
    whole = metrics.gains(rivals, BY_PAPER, clusters=groups).loc[[BY_TUNING]]
    whole = whole.assign(model="", dataset=ALL_QUESTIONS)
    return pd.concat([whole, by_pair], ignore_index=True)[["model", "dataset", *TESTED]]
