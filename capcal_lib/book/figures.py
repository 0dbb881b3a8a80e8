"""What the notebooks draw. Each function takes computed data and returns a figure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from capcal_lib.metrics.intervals import binomial_interval
from capcal_lib.results.diagnosis import PERFECT
from capcal_lib.results.evaluation import Evaluation
from capcal_lib.results.tables import NO_SAMPLES
from capcal_lib.sampling.stopping import Rule

STYLE: Any = {  # Any, because the stubs want each key as a literal
    "figure.dpi": 120,
    "figure.facecolor": "white",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
}
INK, MUTED = "#1f3b4d", "#9aa5ab"
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8a6d3b", "#4d4d4d")
PANEL_WIDTH, PANEL_HEIGHT, COLUMNS = 2.9, 2.6, 4
SHAPES = {"measured": "o", "reported": "D", "simulated": "s"}
FLOOR = "a perfect estimator"


@contextmanager
def _style() -> Iterator[None]:
    with sns.axes_style("ticks"), plt.rc_context(STYLE):
        yield


def _grid(
    n: int, *, empty: str = NO_SAMPLES, width: float = PANEL_WIDTH, height: float = PANEL_HEIGHT, **shared: Any
) -> tuple[Figure, list[Axes]]:
    """Make n panels in rows of a few; none make one that says what there is none of."""
    columns = max(1, min(COLUMNS, n))
    rows = max(1, -(-n // columns))
    size = (max(width * columns, 5), height * rows + 0.3)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **shared)
    for axes in grid.flat[n:]:
        axes.set_axis_off()
    for axes in grid.flat[max(0, n - columns) : n]:
        axes.tick_params(labelbottom=True)  # also where an axis is shared with panels below that are not there
    if n == 0:
        _say(grid[0, 0], empty)
    return figure, list(grid.flat[:n])


def _panels(evaluations: Sequence[Evaluation], draw: Callable[[Axes, Evaluation], None], *, x: str, y: str) -> Figure:
    """Draw one panel an evaluation, titled with its data set and marked with its evidence."""
    with _style():
        figure, panels = _grid(len(evaluations))
        for axes, one in zip(panels, evaluations, strict=True):
            draw(axes, one)
            axes.set_title(f"{one.dataset.title} ({one.evidence})")
        _shared_legend(figure, panels)
        figure.supxlabel(x, fontsize="medium")
        figure.supylabel(y, fontsize="medium")
    return _done(figure)


def _say(axes: Axes, words: str) -> None:
    """Put words where there is nothing to draw."""
    axes.text(0.5, 0.5, words, ha="center", va="center", color=MUTED, transform=axes.transAxes)


def _mark(figure: Figure, table: pd.DataFrame) -> None:
    """Head a figure with the evidence of the table that it draws."""
    figure.suptitle(", ".join(dict.fromkeys(table.get("evidence", []))), fontsize="medium")


def _legend(axes: Axes, **settings: Any) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(**settings)


def _done(figure: Figure) -> Figure:
    """Take the figure out of pyplot's list, so that a notebook shows it once."""
    plt.close(figure)
    return figure


def histograms(evaluations: Sequence[Evaluation]) -> Figure:
    """Draw how expected accuracy is spread over the questions of each data set."""

    def draw(axes: Axes, one: Evaluation) -> None:
        mu = one.counts.expected_accuracy
        axes.hist(mu[~np.isnan(mu)], bins=list(np.linspace(0, 1, 11)), color=INK, alpha=0.85)

    return _panels(evaluations, draw, x="expected accuracy (mu_hat)", y="questions")


def targets(evaluations: Sequence[Evaluation], rng: np.random.Generator) -> Figure:
    """Draw the response target of one sample a question against the capability target (paper, figure 2)."""

    def draw(axes: Axes, one: Evaluation) -> None:
        _scatter_targets(axes, one, rng)
        axes.set_xticks([0, 1], ["incorrect", "correct"])

    return _panels(evaluations, draw, x="one sample (response target)", y="mu_hat (capability target)")


def running_means(evaluations: Sequence[Evaluation], rng: np.random.Generator) -> Figure:
    """Draw how the share of correct samples of three questions settles, in one random order of their samples.

    The questions are those at the 25th, 50th and 75th percentile of mu_hat among the undecided ones.
    """

    def draw(axes: Axes, one: Evaluation) -> None:
        c, n = one.counts.correct, one.counts.total
        undecided = np.flatnonzero((c > 0) & (c < n))
        order = undecided[np.argsort(one.counts.expected_accuracy[undecided], kind="stable")]
        chosen = [order[int(share * (len(order) - 1))] for share in (0.25, 0.5, 0.75)] if len(order) else []
        for color, row in zip(PALETTE, dict.fromkeys(chosen), strict=False):
            verdicts = rng.permutation(np.arange(n[row]) < c[row])
            drawn = np.arange(1, n[row] + 1)
            axes.plot(drawn, verdicts.cumsum() / drawn, color=color)
            axes.axhline(c[row] / n[row], color=color, linestyle=":", linewidth=1)
        axes.set(ylim=(-0.02, 1.02), xscale="log")
        if not chosen:
            _say(axes, "no undecided question")

    return _panels(evaluations, draw, x="samples drawn", y="share correct")


def _scatter_targets(axes: Axes, one: Evaluation, rng: np.random.Generator) -> None:
    """Draw one sample of each question at 0 or 1, with sideways jitter, against its mu_hat."""
    mu = one.counts.expected_accuracy[one.counts.total > 0]
    response = rng.random(len(mu)) < mu
    jitter = rng.uniform(-0.18, 0.18, len(mu))
    alpha = float(np.clip(150 / max(1, len(mu)), 0.08, 0.6))
    axes.scatter(response + jitter, mu, s=9, color=INK, alpha=alpha, linewidths=0)
    axes.set_ylim(-0.03, 1.03)


def divergence(groups: Sequence[Sequence[Evaluation]], rng: np.random.Generator, *, columns: int = 7) -> Figure:
    """Draw the two targets of every model (rows) on every data set (paper, appendix E), with their mean distance.

    Each group holds the evaluations of one model; one with more than ``columns`` takes several rows.
    """
    groups = [group for group in groups if group]
    rows = [group[start : start + columns] for group in groups for start in range(0, len(group), columns)]
    with _style():
        size = (1.55 * columns, 1.6 * max(1, len(rows)) + 0.5)
        figure, grid = plt.subplots(max(1, len(rows)), columns, figsize=size, squeeze=False, layout="constrained")
        for axes in grid.flat:
            axes.set_axis_off()
        if not rows:
            _say(grid[0, 0], NO_SAMPLES)
        for line, group in zip(grid, rows, strict=False):
            for axes, one in zip(line, group, strict=False):
                axes.set_axis_on()
                _scatter_targets(axes, one, rng)
                axes.set_title(one.dataset.title, fontsize="small")
                axes.set_xticks([0, 1], ["0", "1"])
                mu = one.counts.expected_accuracy
                mu = mu[~np.isnan(mu)]
                if len(mu):
                    between = np.mean((mu > 0.1) & (mu < 0.9))
                    words = f"{np.mean(2 * mu * (1 - mu)):.2f}\n{between:.0%}"
                    axes.text(0.5, 0.5, words, ha="center", va="center", fontsize="small", transform=axes.transAxes)
            line[0].set_ylabel(f"{group[0].model.title}\n({group[0].evidence})", fontsize="x-small")
        figure.supxlabel("correctness of one sample (response target)", fontsize="medium")
        figure.supylabel("mu_hat (capability target)", fontsize="medium")
    return _done(figure)


def parts(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw what ``diagnosis.parts`` holds for each data set: discrimination against miscalibration, a point a method.

    Up and to the left is better; on each diagonal the score is the same. The star is the perfect estimator.
    """
    methods = list(dict.fromkeys(str(method) for table in tables.values() for method in table["method"]))
    colors = dict(zip(methods, _colors(len(methods)), strict=True))
    with _style():
        figure, panels = _grid(len(tables))
        for axes, (title, table) in zip(panels, tables.items(), strict=True):
            for _, row in table.iterrows():
                place, method = (row["miscalibration"], row["discrimination"]), str(row["method"])
                shape, size = ("*", 110) if method == PERFECT else (SHAPES[row["evidence"]], 34)
                axes.scatter(*place, color=colors[method], marker=shape, s=size, label=method, zorder=3)
            if table.empty:
                axes.set_title(title)
                _say(axes, "no confidences")
                continue
            axes.set_title(f"{title} ({table['evidence'].iloc[0]})")
            axes.axhline(table["uncertainty"].iloc[0], color=MUTED, linestyle=":", zorder=0)
            right, top = table["miscalibration"].max() * 1.1 + 0.01, table["uncertainty"].max() * 1.15 + 0.01
            for shift in np.linspace(-right, top, 8):
                axes.plot([0, right], [shift, shift + right], color=INK, alpha=0.12, linewidth=0.8, zorder=0)
            axes.set(xlim=(-0.02 * right, right), ylim=(-0.03 * top, top))
        _shared_legend(figure, panels)
        figure.supxlabel("miscalibration (lower is better)", fontsize="medium")
        figure.supylabel("discrimination (higher is better)", fontsize="medium")
    return _done(figure)


def _colors(n: int) -> list[str]:
    """Return n colours that can be told apart: the palette's own, or as many around the circle."""
    return list(PALETTE[:n]) if n <= len(PALETTE) else sns.husl_palette(n, s=0.9, l=0.5).as_hex()


def _shared_legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """Put one legend of all panels above them."""
    found = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if found:
        figure.legend(found.values(), found.keys(), loc="outside upper center", ncols=4, fontsize="small")


def k_eval(table: pd.DataFrame, *, paper_k: int = 100) -> Figure:
    """Draw what ``tables.k_eval_table`` holds: precision, and the bias of the plug-in score, against k."""
    with _style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
        left.plot(table["k"], table["half-width"], marker="o", color=PALETTE[0], label="one question's mu_hat")
        left.plot(table["k"], table["standard error"], marker="o", color=PALETTE[1], label="mean over questions (SE)")
        left.set(xlabel="k_eval", ylabel="95 % half-width, or SE", xscale="log", yscale="log")
        right.plot(table["k"], table["plug-in"], marker="o", color=PALETTE[5], label="plug-in")
        right.plot(table["k"], table["corrected"], marker="o", color=PALETTE[2], label="corrected")
        right.plot(table["k"], table["floor"], marker="o", color=MUTED, label="plug-in of a perfect estimator")
        right.set(xlabel="k_eval", ylabel="Brier of Uniform random", xscale="log")
        for axes in (left, right):
            if table.empty:
                axes.set_axis_off()
                _say(axes, "too few samples a question")
                continue
            axes.axvline(paper_k, color=MUTED, linestyle=":", zorder=0)
            _legend(axes)
        _mark(figure, table)
    return _done(figure)


def coverage(table: pd.DataFrame, *, level: float = 0.95) -> Figure:
    """Draw what ``tables.coverage`` holds: how often each interval covers mu."""
    with _style():
        figure, axes = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
        for color, (method, rows) in zip(PALETTE, table.groupby("method"), strict=False):
            dots = "o" if len(rows) < 20 else ""
            axes.plot(rows["mu"], rows["coverage"], marker=dots, markersize=3, color=color, label=str(method))
        axes.axhline(level, color=MUTED, linestyle=":", zorder=0)
        axes.set(xlabel="mu", ylabel="coverage (simulated)", ylim=(min(0.6, table["coverage"].min()) - 0.02, 1.005))
        _legend(axes, ncols=2)
    return _done(figure)


def confidences(one: Evaluation) -> Figure:
    """Draw each method's confidence against mu_hat, question by question.

    The diagonal is perfect; the band around it holds 95 % of mu_hat of a confidence that equals mu, at the median
    number of samples.
    """
    from scipy.stats import binom  # slow to import

    line = np.linspace(0, 1, 201)
    k = max(1, int(np.median(one.counts.total)))
    low, high = (binom.ppf(tail, k, line) / k for tail in (0.025, 0.975))
    with _style():
        figure, panels = _grid(len(one.confidences), empty="no confidences yet", sharex=True, sharey=True)
        for axes, (method, confidence) in zip(panels, one.confidences.items(), strict=True):
            axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, zorder=0)
            axes.fill_between(line, low, high, color=MUTED, alpha=0.25, linewidth=0, zorder=0)
            axes.scatter(confidence.values, one.counts.expected_accuracy, s=10, color=INK, alpha=0.5, linewidths=0)
            axes.set(title=method, xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        figure.supxlabel("confidence", fontsize="medium")
        figure.supylabel("mu_hat", fontsize="medium")
        figure.suptitle(f"{one.dataset.title} ({one.evidence})", fontsize="medium")
    return _done(figure)


def scores(table: pd.DataFrame) -> Figure:
    """Draw what ``tables.main_table`` holds: scores with their intervals, a panel a data set, a line a method.

    The grey band is where 95 % of the scores of a perfect estimator would lie.
    """
    names = list(dict.fromkeys(table.get("data set", [])))
    methods = list(dict.fromkeys(table.get("method", [])))[::-1]  # the first on top
    places = np.arange(len(methods))
    with _style():
        figure, panels = _grid(len(names), width=2.6, height=0.26 * len(methods) + 1, sharey=True)
        for axes, name in zip(panels, names, strict=True):
            rows = table[table["data set"] == name].set_index("method").reindex(methods)
            colors = [PALETTE[2] if best is True else INK for best in rows["best"]]
            axes.hlines(places, rows["low"], rows["high"], colors=colors, linewidth=2, alpha=0.6)
            axes.scatter(rows["brier"], places, color=colors, s=22, zorder=3)
            axes.set_yticks(places, methods)
            axes.set_title(name)
            axes.axvline(0, color=MUTED, linewidth=0.8, zorder=0)
            reach = 1.96 * float(np.nan_to_num(table.loc[table["data set"] == name, "spread"].iloc[0]))
            axes.axvspan(-reach, reach, color=MUTED, alpha=0.6, linewidth=1, zorder=0)
        figure.supxlabel("corrected capability Brier score (lower is better)", fontsize="medium")
        _mark(figure, table)
    return _done(figure)


def layers(table: pd.DataFrame) -> Figure:
    """Draw where the signal lives: the ``states`` of a `Selection`, single layers as a line, pooled ones across it."""
    with _style():
        figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
        single = table["states"].astype(str).str.isdecimal()
        numbers = table[single].assign(layer=table["states"][single].astype(int)).sort_values("layer")
        axes.fill_between(numbers["layer"], numbers["low"], numbers["high"], color=INK, alpha=0.15, linewidth=0)
        axes.plot(numbers["layer"], numbers["brier"], marker="o", markersize=3, color=INK, label="one layer")
        for color, (_, row) in zip(PALETTE, table[~single].iterrows(), strict=False):
            label = {"all": "all side by side"}.get(row["states"], f"{row['states']} of the layers")
            axes.axhline(row["brier"], color=color, linestyle="--", label=label)
        if table.empty:
            _say(axes, NO_SAMPLES)
        axes.set(xlabel="layer (0 is the embedding)", ylabel="held-out capability Brier")
        _legend(axes, fontsize="x-small", loc="upper left", bbox_to_anchor=(1, 1))
        _mark(figure, table)
    return _done(figure)


def live(table: pd.DataFrame) -> Figure:
    """Draw what ``live.compare`` holds: two estimates of each question's mu, with their Jeffreys intervals."""
    with _style():
        figure, axes = plt.subplots(figsize=(7, 0.32 * len(table) + 1.2), layout="constrained")
        places = np.arange(len(table))
        for shift, color, label, prefix in ((-0.15, INK, "recorded", ""), (0.15, PALETTE[1], "live", "live ")):
            correct, total = table[f"{prefix}correct"], table[f"{prefix}total"]
            limits = binomial_interval(correct, total)
            axes.hlines(places + shift, limits[:, 0], limits[:, 1], colors=color, linewidth=2, alpha=0.6)
            axes.scatter(correct / total, places + shift, color=color, s=20, label=label, zorder=3)
        axes.set_yticks(places, table["question_id"])
        axes.invert_yaxis()
        axes.set(xlabel="expected accuracy, 95 % Jeffreys interval", xlim=(-0.02, 1.02))
        _mark(figure, table)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return _done(figure)


def verdict_shares(table: pd.DataFrame) -> Figure:
    """Draw what ``strictness.verdict_shares`` holds: one bar a data set, from correct to not scored."""
    with _style():
        figure, axes = plt.subplots(figsize=(7, 0.45 * max(1, len(table)) + 1.3), layout="constrained")
        places, left = np.arange(len(table)), np.zeros(len(table))
        for color, verdict in zip((PALETTE[2], PALETTE[5], PALETTE[1], MUTED), table.columns[2:6], strict=True):
            axes.barh(places, table[verdict], left=left, color=color, label=verdict, height=0.6)
            left += table[verdict].to_numpy(np.float64)
        axes.set_yticks(places, table["data set"])
        axes.invert_yaxis()
        axes.set(xlabel="share of samples", xlim=(0, 1))
        _mark(figure, table)
        if table.empty:
            axes.set_axis_off()
            _say(axes, NO_SAMPLES)
        else:
            figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return _done(figure)


def strictness(table: pd.DataFrame) -> Figure:
    """Draw what ``strictness.accuracy_by_rule`` holds: how far each rule moves accuracy, a panel a data set."""
    names, rules = list(dict.fromkeys(table["data set"])), list(dict.fromkeys(table["rule"]))[1:][::-1]
    places = np.arange(len(rules))
    with _style():
        figure, panels = _grid(len(names), width=2.6, height=0.3 * len(rules) + 1, sharex=True, sharey=True)
        for axes, name in zip(panels, names, strict=True):
            rows = table[table["data set"] == name].set_index("rule").loc[rules]
            axes.axvline(0, color=MUTED, linewidth=1, zorder=0)
            axes.hlines(places, rows["low"], rows["high"], colors=INK, linewidth=2, alpha=0.6)
            axes.scatter(rows["difference"], places, color=INK, s=22, zorder=3)
            axes.set_yticks(places, rules)
            axes.set(title=name, ylim=(-0.6, len(rules) - 0.4))
        figure.supxlabel("mean mu_hat, difference from this book's rules", fontsize="medium")
        _mark(figure, table)
    return _done(figure)


def stopping(table: pd.DataFrame, rule: Rule, *, level: float = 0.95) -> Figure:
    """Draw what ``stopping.behaviour`` holds: samples, bias and coverage against mu."""
    with _style():
        figure, (samples, bias, cover) = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
        mu = table["mu"]
        samples.plot(mu, table["samples"], color=PALETTE[0])
        samples.axhline(rule.k, color=MUTED, linestyle=":", zorder=0)
        samples.set(ylabel="expected samples", ylim=(0, 1.05 * rule.k))
        bias.plot(mu, table["bias"], color=PALETTE[5], label="c/n")
        bias.plot(mu, table["unbiased bias"], color=PALETTE[2], label="unbiased")
        bias.set(ylabel="bias of the estimate of mu")
        cover.plot(mu, table["fixed coverage"], color=MUTED, label=f"fixed, {rule.k} samples")
        cover.plot(mu, table["coverage"], color=PALETTE[0], label="stopped early")
        cover.axhline(level, color=MUTED, linestyle=":", zorder=0)
        cover.set(ylabel="coverage of the 95 % interval", ylim=(0.75, 1.005))
        for axes in (samples, bias, cover):
            axes.set_xlabel("mu")
            _legend(axes)
        figure.suptitle("simulated", fontsize="medium")
    return _done(figure)
