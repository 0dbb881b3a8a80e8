"""Test where a probe still works: its order on other data sets, the effect of a second training
set, and how many labels it needs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from capcal_lib.errors import naming_extra
from capcal_lib.manifests import load_dataset
from capcal_lib.metrics import Calibrator, bounds_over_constant, mean_interval
from capcal_lib.metrics.comparisons import APART
from capcal_lib.places import MANIFESTS
from capcal_lib.plots import INK, MARKERS, MUTED, SHIFT_COLORS, mark_verdicts, palette
from capcal_lib.probe_names import PROBE_OF_SET, probe_name, training_sets
from capcal_lib.probes import nearest_probe
from capcal_lib.probes.draws import DRAWS
from capcal_lib.results.estimated import columns_of, estimates, methods
from capcal_lib.results.judged import judge_alone, judge_cases, judge_together
from capcal_lib.results.results import CONSISTENCY, INDEX, subjects
from capcal_lib.results.scores import Protocol, best_constant, brier_terms, stated_methods
from capcal_lib.results.targets import accuracy_variance
from capcal_lib.results.terms import BEST_CONSTANT, FEWEST, NUMBERS
from capcal_lib.shifts import OUT_OF_DOMAIN, shift

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from seaborn import FacetGrid

OVERLAPS = MANIFESTS / "overlaps.csv"
COMPARED = ("gsm8k", "math500", "mmlu", "triviaqa")  # sets of which overlaps were looked for
VARIED = 0.01  # a variance of accuracy over questions: with less there is little to be learnt
CORRELATED = ["dataset", "method", "shift", "estimate", "low", "high", "p"]
RECALIBRATIONS = 50  # draws of labels for a method that is recalibrated
POINT = ["dataset", "method", "labels", "estimate", "low", "high", "questions", "draws", "spread"]


def varied_datasets(results: pd.DataFrame) -> list[str]:
    """List the data sets on which the variance of expected accuracy over questions is above .01
    (``accuracy_variance``).
    """
    variance = accuracy_variance(results)
    return [str(name) for name in variance.index[variance > VARIED]]


def probe_pairs(results: pd.DataFrame) -> list[tuple[str, str]]:
    """List the pairs of a data set whose questions differ and a probe of one training set that has
    predicted at least two of its questions.
    """
    of_first = estimates(results).query("member == 0")
    sizes = of_first.groupby(["dataset", "method"], sort=False, observed=True).size()
    counts = sizes.unstack("method")
    single = [name for name in map(str, counts) if len(training_sets(name)) == 1]
    counts = counts.reindex(index=varied_datasets(results), columns=single)
    stacked = pd.Series(counts.stack(), dtype=np.float64)
    return stacked.index[stacked > 1].tolist()


def compare_order(results: pd.DataFrame) -> pd.DataFrame:
    """Correlate the predictions of each probe with the expected accuracy, all cases together by
    Holm's method.

    A probe whose level is off may still tell easy questions from hard ones. Returns one row per
    ``dataset`` and ``method``, with its ``shift``: the correlation ``estimate`` with its interval,
    from :func:`correlation`, with ``p``, ``p (Holm)`` and ``verdict``; and ``off``, the mean
    prediction minus the mean accuracy. Its square is the part of a Brier score that the level alone
    costs. For the paper's recipe, values are means over the five probes.
    """
    rows = []
    for dataset, method in probe_pairs(results):
        columns = columns_of(results, method)
        subset = results.loc[[dataset], ["correct", "total", *columns]].dropna()
        mu = subset["correct"] / subset["total"]
        row = correlation(subset[columns], mu, subjects(subset))
        off = subset[columns].mean().mean() - mu.mean()
        distance = shift(method, dataset)
        rows.append({"dataset": dataset, "method": method, "shift": distance, **row, "off": off})
    tested = pd.DataFrame(rows, columns=[*CORRELATED, "off"])
    return judge_together(tested.dropna())[[*CORRELATED, "p (Holm)", "verdict", "off"]]


def correlation(
    confidences: pd.DataFrame, mu: "pd.Series[float]", groups: "pd.Series[str]"
) -> dict[str, float]:
    """Return the mean of Pearson's r between each column of confidences and the accuracies.

    The interval is Fisher's, on artanh r, with the error from the influence of each group of
    questions on r. Returns ``estimate``, ``low``, ``high`` and ``p``, which are NaN if a confidence
    is the same for all questions.
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
    return {"estimate": r, "low": low, "high": high, "p": p}


def compare_mixture(
    results: pd.DataFrame, mixture: str, *, protocol: Protocol = "corrected"
) -> pd.DataFrame:
    """Compare a probe of two training sets with the nearer of their single probes, on each data set
    whose questions differ, all together by Holm's method.

    Returns the gain of the mixture, indexed by ``dataset`` and ``rival``, with the columns of
    :func:`~capcal_lib.results.judged.judge_cases`.
    """
    single_probes = [*map(probe_name, training_sets(mixture))]
    gains = {}
    for dataset in varied_datasets(results):
        subset = results.loc[[dataset]].dropna(axis="columns", how="all")
        known = methods(subset)
        rival = nearest_probe([name for name in single_probes if name in known], dataset)
        if rival and mixture in known:
            terms = brier_terms(subset, protocol=protocol)
            gains[dataset, rival] = terms[rival] - terms[mixture]
    return judge_cases(gains, ["dataset", "rival"]).set_index(["dataset", "rival"])


def draw_transfer(comparisons: pd.DataFrame, label: str, *, sharex: bool) -> "Figure":
    """Draw comparisons of probes around a line at zero, with one row per probe and data set, in one
    panel within the domain of the probe and one panel out of it.

    ``comparisons`` has the columns ``dataset``, ``method`` and ``shift``, and the columns that
    ``plots.mark_verdicts`` needs to fill the marks. ``label`` names the x axis. Without ``sharex``
    each panel has its own scale, so that large losses out of the domain do not hide the small gains
    within it.

    >>> row = {"estimate": 0.1, "low": -0.1, "high": 0.3, "verdict": "inconclusive"}
    >>> row |= {"dataset": "gsm8k", "method": "Probe (GSM8K)"}
    >>> row["shift"] = shift(row["method"], row["dataset"])
    >>> figure = draw_transfer(pd.DataFrame([row]), "gain", sharex=True)
    >>> [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    ['Probe (GSM8K) on GSM8K']
    """
    with naming_extra():
        import matplotlib.pyplot as plt

    outside = comparisons["shift"] == OUT_OF_DOMAIN
    panels = [panel for _, panel in comparisons.groupby(outside)] or [comparisons]
    figure, axes = plt.subplots(
        len(panels),
        figsize=(plt.rcParams["figure.figsize"][0], 1.4 + 0.25 * (len(comparisons) + len(panels))),
        height_ratios=[1 + len(panel) for panel in panels],
        sharex=sharex,
        squeeze=False,
        layout="constrained",
    )
    for ax, panel in zip(axes.flat, panels, strict=True):
        for distance, color in SHIFT_COLORS.items():
            rows = panel[panel["shift"] == distance].sort_values("method", kind="stable")
            titles = rows["dataset"].map(lambda name: load_dataset(name).title)
            marker = MARKERS.get(distance, "o")
            mark_verdicts(ax, rows["method"] + " on " + titles, rows, color=color, marker=marker)
            if ax is axes.flat[0]:
                ax.scatter([], [], color=color, marker=marker, label=distance)
        ax.set_ylim(len(panel) - 0.4, -0.6)
        ax.axvline(0, color=INK, lw=1)
    axes[-1, 0].set_xlabel(label)
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def compare_without_overlaps(
    results: pd.DataFrame, *, protocol: Protocol = "corrected"
) -> pd.DataFrame:
    """Compare the probe of each data set with the best constant, without the questions that
    resemble a training question.

    ``data_manifests/overlaps.csv`` lists these questions; ``book/tools/find_overlaps.py`` found
    them among the recorded runs. Returns one row per data set that was searched and has a probe of
    its own, the ``method``: the number of evaluation ``questions``; how many are ``exact`` copies,
    share ``13 words`` in a row, or are ``alike``, with a Jaccard index of their words of .6 or
    more; the ``gain`` on all questions; and the gain ``without`` these, with its 95 % interval
    ``low`` to ``high``.
    """
    overlaps = pd.read_csv(OVERLAPS, index_col=["dataset", "question_id"])
    terms = brier_terms(results, protocol=protocol)
    rows = []
    for dataset in COMPARED:
        probe = str(load_dataset(dataset).probe)
        known = terms.index.isin([dataset], level="dataset")
        if probe not in terms or terms.loc[known, probe].isna().all():
            continue
        gain = (terms[BEST_CONSTANT] - terms[probe])[known].dropna()
        near = overlaps[overlaps.index.isin(gain.index)]
        without = gain.drop(near.index)
        limits = judge_alone(without, APART)
        kinds = near["exact"], near["ngram"], near["jaccard"] >= 0.6
        counts = [len(gain), *(int(kind.sum()) for kind in kinds)]
        rows.append([dataset, probe, *counts, gain.mean(), *limits[["estimate", "low", "high"]]])
    columns = ["dataset", "method", "questions", "exact", "13 words", "alike"]
    columns += ["gain", "without", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def labels_curve(
    results: pd.DataFrame,
    predicted: Mapping[tuple[str, int], pd.DataFrame],
    rng: np.random.Generator,
    *,
    answers: int = 1,
) -> pd.DataFrame:
    """Return the gain of each method over the best constant for each number of labels, on each data
    set whose questions differ.

    A label is the share of ``answers`` to a question that are correct. Votes and stated confidences
    are recalibrated by Platt's method on labelled questions that ``rng`` draws, and judged on the
    rest. Questions without a confidence are left out. The data set's own probe learns from training
    questions with one graded answer each: ``predicted`` is from ``probes.draws.predict_by_labels``.

    A gain is the constant's Brier term minus the method's, from the same counts. For votes these
    are the counts of the samples that did not vote. The noise of mu_hat is in both terms, so it
    cancels.

    Returns one row per ``dataset``, ``method`` and number of ``labels``, if at least ten questions
    are left to judge: the mean gain ``estimate``, positive if closer than the constant; its 95 %
    interval ``low`` to ``high`` for other questions and other draws, from :func:`over_draws`; the
    numbers of ``questions`` judged and of ``draws``; and ``spread``, the standard deviation of the
    gain from one draw to another.
    """
    scored = results[results["total"] > 1]
    rows = []
    for name in varied_datasets(scored):
        subset = scored.loc[[name]]
        constant, mu_hat = best_constant(subset), subset["correct"] / subset["total"]
        gains = {}
        for method in [*subset.columns.intersection([CONSISTENCY]), *stated_methods(subset)]:
            judged = estimates(subset, method).query("total > 1")[NUMBERS]
            for labels in DRAWS:
                if len(judged) >= labels + FEWEST:
                    of_draws = recalibrated_gains(judged, constant, labels, rng, answers=answers)
                    gains[method, labels] = of_draws
        for (dataset, labels), confidences in predicted.items():
            if dataset == name:
                joined = pd.concat({name: confidences}, names=INDEX).reindex(subset.index)
                squares = joined.sub(mu_hat, axis="index") ** 2
                gains[PROBE_OF_SET, labels] = -squares.sub((constant - mu_hat) ** 2, axis="index")
        bounds = bounds_over_constant(constant)
        for (method, labels), drawn in gains.items():
            point = over_draws(drawn, subjects(subset), bounds)
            rows.append({"dataset": name, "method": method, "labels": labels, **point})
    return pd.DataFrame(rows, columns=POINT)


def recalibrated_gains(
    judged: pd.DataFrame,
    constant: "pd.Series[float]",
    labels: int,
    rng: np.random.Generator,
    *,
    answers: int = 1,
) -> pd.DataFrame:
    """Recalibrate a method on each of fifty draws of labelled questions, and return its gains on
    the others, (n_questions, n_draws).

    The gain of a labelled question is NaN. ``judged`` are a method's estimates, without its name;
    ``labels`` are as in :func:`labels_curve`.
    """
    confidence, correct, total = (judged[name].to_numpy() for name in judged)
    mu_hat = correct / total
    of_constant = (constant[judged.index].to_numpy() - mu_hat) ** 2
    gains = np.full((len(judged), RECALIBRATIONS), np.nan)
    with threadpool_limits(1):  # products are so small that threads wait for each other
        for number in range(RECALIBRATIONS):
            order = rng.permutation(len(judged))
            labelled, rest = order[:labels], order[labels:]
            graded = np.minimum(total[labelled], answers)
            right = rng.hypergeometric(correct[labelled], (total - correct)[labelled], graded)
            calibrator = Calibrator("platt").fit(confidence[labelled], right, graded)
            squares = (calibrator.predict(confidence[rest]) - mu_hat[rest]) ** 2
            gains[rest, number] = of_constant[rest] - squares
    return pd.DataFrame(gains, judged.index)


def over_draws(
    gains: pd.DataFrame, groups: "pd.Series[str]", bounds: tuple[float, float]
) -> dict[str, float]:
    """Average gains, (n_questions, n_draws), over questions and draws, with an interval for both.

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
    spread = gains.sub(of_question, axis="index").mean().std()
    draws = gains.shape[1]
    arm = t.ppf(0.975, draws - 1) * spread / np.sqrt(draws)
    return {
        "estimate": estimate,
        "low": np.maximum(bounds[0], estimate - np.hypot(estimate - low, arm)),
        "high": np.minimum(bounds[1], estimate + np.hypot(high - estimate, arm)),
        "questions": int(of_question.count()),
        "draws": draws,
        "spread": spread,
    }


def draw_labels_curve(curve: pd.DataFrame) -> "FacetGrid":
    """Draw gains against the number of labels around a line at zero, with one panel per data set
    and one line, with intervals, per method.

    ``curve`` is a table from :func:`labels_curve`.

    >>> row = {"dataset": "gsm8k", "method": "P(True)", "labels": 20, "estimate": 0.1}
    >>> draw_labels_curve(pd.DataFrame([row | {"low": 0.0, "high": 0.2}])).axes.size
    1
    """
    with naming_extra():
        import matplotlib.pyplot as plt
        import seaborn as sns

    names = [*map(str, curve["method"].unique())]
    colors, ticks = palette(names), sorted(curve["labels"].unique())
    titled = curve.assign(dataset=curve["dataset"].map(lambda name: load_dataset(name).title))
    width = plt.rcParams["figure.figsize"][0]
    wrap = min(2, titled["dataset"].nunique())
    grid = sns.FacetGrid(titled, col="dataset", col_wrap=wrap, height=3, aspect=width / wrap / 3)
    for ax, (_, panel) in zip(grid.axes.flat, titled.groupby("dataset", sort=False), strict=True):
        for name, line in panel.groupby("method", sort=False):
            beside = line["labels"] * 1.05 ** names.index(str(name))  # not on one another
            style = {"color": colors[str(name)], "marker": MARKERS.get(str(name), "o")}
            ax.plot(beside, line["estimate"], label=name, ms=5, **style)
            ax.vlines(beside, line["low"], line["high"], color=style["color"], lw=1)
        ax.axhline(0, color=MUTED, lw=1, zorder=0)
        ax.set_xscale("log")
        ax.set_xticks(ticks, ticks, minor=False)
        ax.minorticks_off()
    grid.set_titles("{col_name}").set_axis_labels("labels", "gain over the best constant")
    grid.figure.set_layout_engine("constrained")
    shown = [ax.get_legend_handles_labels() for ax in grid.axes.flat]
    entries = {label: line for lines in shown for line, label in zip(*lines, strict=True)}
    grid.figure.legend(entries.values(), entries, loc="outside upper center", ncols=2)
    return grid
