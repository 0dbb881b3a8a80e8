"""What the notebooks draw. Each function takes computed data and returns a figure."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from capcal_lib.results.tables import NO_SAMPLES

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
