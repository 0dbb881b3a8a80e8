"""Displays of one's own arrays: reliability, risk and coverage, pass@k, scores.

They work as in scikit-learn: ``from_counts`` computes and draws, on the axes that you give or on
new ones, and returns a display. The display keeps what it shows, ``plot`` draws it again, and
``ax`` and ``figure`` let you go on with matplotlib. Draw several on one ``ax`` to compare methods.

Arguments are as in :mod:`capcal_lib.metrics.brier`: one confidence in [0, 1] per question, and how
many of its ``total`` scored samples are ``correct``; lists, arrays, or Series, which are joined by
their index. `InputError` for unequal lengths, and for NaN or other values out of range. Bands and
bars are 95 % intervals for questions like these.

A method of the paper has the same colour throughout the book; any other takes the next colour of
matplotlib's cycle, unless ``color`` names one. Names are drawn as they are, never as formulas."""

from __future__ import annotations  # keeps ArrayLike short in help()

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from capcal_lib.applications import pass_at_k, risk_coverage, simulate_pass_at_k
from capcal_lib.errors import naming_extra
from capcal_lib.manifests import dataset_names, load_dataset
from capcal_lib.metrics import mean_interval
from capcal_lib.metrics.validation import Floats, align, as_scored
from capcal_lib.probe_names import PLUG_IN, POSTERIOR, PROBE_OF_SET, is_probe
from capcal_lib.shifts import AT_HOME, IN_DOMAIN, OUTSIDE, SHIFTS, shift

if TYPE_CHECKING:
    import seaborn as sns
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED = "#1a1a1a", "#6b6b6b"
SHIFT_COLORS = dict(zip(SHIFTS, ("#46a281", "#3866bd", "#be8a1d"), strict=True))
COLORS = {
    "Uniform random": "#1a1a1a",
    "Verbalized confidence": "#bc3e0b",
    "P(True)": "#9b7cd2",
    "Response consistency": "#860282",
    "Oracle RC": "#6b6b6b",
    "Oracle CC": "#494949",
}
OTHER_COLOR = "#8a5a44"  # of what is no method of the paper, such as a model
RULE_COLORS = {  # of what follows from a confidence, such as a rule to spend by
    "Actual": INK,
    "Best constant": "#8a8a8a",
    "Even spending": INK,
    "Uniform allocation": INK,
    PROBE_OF_SET: "#46a281",
    PLUG_IN: "#2b6450",
    POSTERIOR: "#46a281",
    "Honest oracle": "#6b6b6b",
    "Oracle CC, in sample": OTHER_COLOR,
    "Oracle RC, in sample": "#b9962f",
}
CURVE_MARKERS = "osD^vPX*"
MARKERS = {  # a method that is not here has a dot
    "Uniform random": "|",
    "Best constant": "|",
    "Verbalized confidence": "s",
    "P(True)": "^",
    "Response consistency": "D",
    "Oracle RC": "x",
    "Oracle CC": "+",
    IN_DOMAIN: "P",
    OUTSIDE: "v",
}
BINS = 10
BANDED = 12  # coverages at most whose risk has an interval
KS = (1, 2, 4, 8, 16, 32, 64, 128)
BAR = 0.2  # height of the highest bar of a histogram


class _Display:
    """What displays have in common: the axes that they were last drawn on."""

    ax: Axes

    def _take(self, ax: Axes | None) -> None:
        """Take the axes that are given, or new ones."""
        if ax is None:
            with naming_extra():
                import matplotlib.pyplot as plt

            ax = plt.subplots(layout="constrained")[1]
        self.ax = ax

    @property
    def figure(self) -> Figure:
        """Return the figure of the axes."""
        figure: Any = self.ax.get_figure(root=True)
        return figure


class _CountsDisplay(_Display, ABC):
    """What displays of counts have in common: they measure, keep what they measured, and draw."""

    name: str | None = None
    color: str | None = None

    @classmethod
    def from_counts(
        cls,
        confidence: ArrayLike | None,
        correct: ArrayLike,
        total: ArrayLike,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        color: str | None = None,
    ) -> Self:
        """Measure what confidences and counts say, and draw it on the axes, or on new ones."""
        display = cls()
        display._measure(confidence, correct, total)
        return display.plot(ax=ax, name=name, color=color)

    def plot(
        self, *, ax: Axes | None = None, name: str | None = None, color: str | None = None
    ) -> Self:
        """Draw on the axes that are given, or on new ones; by default as it was drawn before."""
        self._take(ax)
        self.name = name or self.name
        self.color = color or self.color or known_color(self.name)
        self._draw()
        if self.ax.get_legend_handles_labels()[1]:
            _as_they_are(self.ax.legend().get_texts())
        return self

    @abstractmethod
    def _measure(self, confidence: Any, correct: ArrayLike, total: ArrayLike) -> None:
        """Keep what is to be drawn."""

    @abstractmethod
    def _draw(self) -> None:
        """Draw it on the axes."""


class ReliabilityDisplay(_CountsDisplay):
    """Expected accuracy against confidence, in ten bins of equal width.

    On the dotted line a confidence is right on average. Bars at the foot are a histogram of the
    confidences. ``bins`` has one row per bin with questions: confidence, estimate, low, high,
    questions.

    >>> shown = ReliabilityDisplay.from_counts([0.15, 0.2, 0.9, 0.95], [1, 3, 8, 9], 10)
    >>> shown.bins[["confidence", "estimate", "questions"]].round(3).to_dict("list")
    {'confidence': [0.15, 0.2, 0.925], 'estimate': [0.1, 0.3, 0.85], 'questions': [1, 1, 2]}
    >>> shown.figure.savefig(getfixture("tmp_path") / "reliability.svg")
    """

    bins: pd.DataFrame

    def _measure(self, confidence: Any, correct: ArrayLike, total: ArrayLike) -> None:
        s, mu, _ = as_scored(confidence, correct, total)
        places = np.minimum(s * BINS, BINS - 1).astype(int)
        groups = pd.DataFrame({"s": s, "mu": mu}).groupby(places)
        self.bins = _shares(group["mu"] for _, group in groups)
        self.bins.insert(0, "confidence", groups["s"].mean().to_numpy())
        self.bins["questions"] = groups.size().to_numpy()
        self.counts = np.bincount(places, minlength=BINS)

    def _draw(self) -> None:
        self.ax.axline((0, 0), slope=1, color=MUTED, lw=1, ls=":")
        bins = self.bins
        drawn = self.ax.errorbar(
            bins["confidence"],
            bins["estimate"],
            _arms(bins),
            color=self.color,
            marker="o",
            ms=4,
            lw=1.2,
            label=self.name,
        )
        heights = BAR * self.counts / self.counts.max()
        edges = np.linspace(0, 1, BINS + 1)
        self.ax.stairs(heights, edges, fill=True, alpha=0.2, color=drawn.lines[0].get_color())
        self.ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="expected accuracy")


class RiskCoverageDisplay(_CountsDisplay):
    """The risk of answering only the most confident questions, against their share.

    Lower is better. All curves end at the mean risk, when every question is answered; the dotted
    line is a confidence that knows nothing. ``curve`` has one row per question, the most confident
    first: coverage, risk. ``band`` has coverage, estimate, low, high.

    >>> shown = RiskCoverageDisplay.from_counts([0.9, 0.2, 0.5], [9, 1, 5], 10)
    >>> shown.curve.round(3).to_dict("list")
    {'coverage': [0.333, 0.667, 1.0], 'risk': [0.1, 0.3, 0.5]}
    """

    curve: pd.DataFrame
    band: pd.DataFrame

    def _measure(self, confidence: Any, correct: ArrayLike, total: ArrayLike) -> None:
        """Keep the curve, and a band at so many of its coverages that a figure can show; equal
        confidences are one step of it.
        """
        s, mu, _ = as_scored(confidence, correct, total)
        order = np.argsort(-s, kind="stable")
        losses = (1 - mu)[order]
        ends = np.flatnonzero(np.diff(s[order], append=-1) < 0) + 1
        shown = ends[np.unique(np.linspace(0, len(ends) - 1, BANDED).round().astype(int))]
        self.band = _shares(losses[:end] for end in shown)
        self.band.insert(0, "coverage", shown / len(s))
        self.curve = risk_coverage(confidence, correct, total)

    def _draw(self) -> None:
        ax, curve = self.ax, self.curve
        (line,) = ax.plot(curve["coverage"], curve["risk"], color=self.color, label=self.name)
        known = self.band.dropna()  # the risk of a single question has no interval
        limits = known["coverage"], known["low"], known["high"]
        ax.fill_between(*limits, color=line.get_color(), alpha=0.15, lw=0)
        ax.axhline(curve["risk"].iloc[-1], color=MUTED, lw=1, ls=":")
        ax.set(xlim=(0, 1), ylim=(0, 1))
        ax.set(xlabel="coverage: questions answered", ylabel="risk: fresh answers wrong")


class PassAtKDisplay(_CountsDisplay):
    """The chance that at least one of k samples is correct: measured, and as a confidence predicts.

    Measured values are unbiased and have a band; k goes up to the number of samples that every
    question has. They are drawn once per axes. The dashed line is the prediction of plug-in
    confidences s, the mean of 1 - (1 - s)^k; without a confidence it is left out. ``curve`` has one
    row per k: k, measured, low, high, promised.

    >>> shown = PassAtKDisplay.from_counts([0.5, 0.2], [2, 1], 4)
    >>> shown.curve[["k", "measured", "promised"]].round(3).to_dict("list")
    {'k': [1, 2, 4], 'measured': [0.375, 0.667, 1.0], 'promised': [0.35, 0.555, 0.764]}
    """

    curve: pd.DataFrame

    def _measure(self, confidence: Any, correct: ArrayLike, total: ArrayLike) -> None:
        confidence, correct, total = align(confidence=confidence, correct=correct, total=total)
        ks = [k for k in KS if k <= np.min(total)]
        table = _shares(pass_at_k(correct, total, ks).T).rename(columns={"estimate": "measured"})
        table.insert(0, "k", ks)
        if confidence is not None:
            table["promised"] = simulate_pass_at_k(confidence, ks).mean(axis=0)
        self.curve = table

    def _draw(self) -> None:
        ax, ks = self.ax, self.curve["k"]
        if "measured" not in [line.get_label() for line in ax.get_lines()]:
            ax.plot(ks, self.curve["measured"], color=INK, marker="o", ms=4, label="measured")
            ax.fill_between(ks, self.curve["low"], self.curve["high"], color=INK, alpha=0.12, lw=0)
        if "promised" in self.curve:
            label = self.name or "as the confidence says"
            ax.plot(ks, self.curve["promised"], color=self.color, ls="--", label=label)
        ax.set_xscale("log", base=2)
        ax.set_xticks(ks, ks)
        ax.set(ylim=(0, 1.02), xlabel="k", ylabel="pass@k")


class ScoreDisplay(_Display):
    """Scores as :func:`~capcal_lib.results.score` gives them: the dot plot of the main table.

    With several data sets, each has a row with one mark per method, in the same order in every
    figure, and a line through the row marks the best constant. With a single data set, each method
    has a row. Lower is better. If the scores have low and high, bars are their intervals; if they
    have a column recalibrated, hollow marks show it. New axes are as high as the rows need.

    >>> scores = pd.DataFrame({"method": ["mine", "P(True)"], "brier": [0.1, 0.2]})
    >>> ScoreDisplay.from_scores(scores).ax.get_xlabel()
    'capability Brier score (lower is better)'
    """

    scores: pd.DataFrame  # a row a mark, with dataset and method as columns

    @classmethod
    def from_scores(cls, scores: pd.DataFrame, *, ax: Axes | None = None) -> Self:
        """Draw scores, with data set and method in the index or as columns."""
        display = cls()
        display.scores = scores.reset_index()
        if "dataset" not in display.scores:
            display.scores["dataset"] = ""
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw on the axes that are given, or on new ones, as high as the rows need."""
        self._take(ax)
        if self.scores["dataset"].nunique() > 1:
            height = self._draw_data_sets()
        else:
            height = 0.4 * self._draw_marks("method", self.scores, 0.0)
        if ax is None:
            self.figure.set_figheight(1.8 + height)
        return self

    def _draw_data_sets(self) -> float:
        """Draw a row for each data set, and return the height of all rows in inches."""
        is_constant = self.scores["method"] == "Best constant"
        constant, others = self.scores[is_constant], self.scores[~is_constant]
        if len(constant):
            places = constant["dataset"].map([*self.scores["dataset"].unique()].index)
            ends = places - 0.4, places + 0.4
            self.ax.vlines(constant["brier"], *ends, color=MUTED, lw=2, label="Best constant")
        marks = _mark_names(others).nunique()
        rows = self._draw_marks("dataset", others, 0.8 / max(1, marks))
        if "recalibrated" in others:
            self.ax.plot([], [], "o", mfc="white", color=INK, label="hollow: recalibrated")
        entries = self.ax.get_legend_handles_labels()
        legend = self.figure.legend(*entries, loc="outside upper center", ncols=3)
        _as_they_are(legend.get_texts())
        return rows * max(0.4, 0.12 * marks)

    def _draw_marks(self, by: str, table: pd.DataFrame, step: float) -> int:
        """Draw a row for each value of ``by``, with marks ``step`` apart, probes by their shift and
        oracles last; return the number of rows.
        """
        rows = [*self.scores[by].unique()]
        last = [*map(str.capitalize, SHIFTS), "Oracle RC", "Oracle CC"]
        names = _mark_names(table)
        marks = sorted(names.unique(), key=lambda name: last.index(name) if name in last else -1)
        for place, mark in enumerate(marks):
            group = table[names == mark]
            case = group.iloc[0][["method", "dataset"]]
            heights = group[by].map(rows.index) + step * (place + 0.5 - len(marks) / 2)
            style: dict[str, Any] = {
                "fmt": MARKERS.get(shift(*case) or mark, "o"),
                "color": method_color(*case),
                "ms": 6,
                "mew": 1.5,
                "lw": 1,
            }
            arms = _arms(group, "brier") if "low" in group else None
            self.ax.errorbar(group["brier"], heights, xerr=arms, label=mark, **style)
            if "recalibrated" in group:
                self.ax.errorbar(group["recalibrated"], heights, mfc="white", **style)
        titles = [load_dataset(row).title if row in dataset_names() else row for row in rows]
        self.ax.set_yticks(range(len(rows)), titles)
        label = "capability Brier score (lower is better)"
        self.ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel=label)
        _as_they_are(self.ax.get_yticklabels())
        return len(rows)


def _mark_names(scores: pd.DataFrame) -> pd.Series:
    """Name the mark of each score: a probe by how far its training questions are."""
    shifts = map(shift, scores["method"], scores["dataset"])
    return pd.Series(shifts, scores.index, dtype=str).str.capitalize().fillna(scores["method"])


def draw_curves(
    table: pd.DataFrame, *, x: str, hue: str = "method", col: str | None = None
) -> sns.FacetGrid:
    """Draw ``estimate`` against ``x`` on an axis of doublings, a line and a mark for each ``hue``,
    in a panel for each ``col``; with intervals where the table has ``low`` and ``high``.

    A line has the same mark in all panels. The legend has the lines of all of them, in the order in
    which they end, the highest first.

    >>> table = pd.DataFrame({"k": [1, 2], "method": "P(True)", "estimate": [0.5, 0.6]})
    >>> draw_curves(table, x="k").axes.size
    1
    """
    with naming_extra():
        import seaborn as sns

    names = list(map(str, table[hue].unique()))
    colors = palette(names)
    ticks = sorted(table[x].unique())
    panels = [*table.groupby(col, sort=False)] if col else [("", table)]
    aspect = 2 / len(panels) if len(panels) > 1 else 1.8
    grid = sns.FacetGrid(table, col=col, height=3.6, aspect=aspect)
    entries = {}
    for (_, panel), ax in zip(panels, grid.axes.flat, strict=True):
        for name, curve in panel.groupby(hue, sort=False):
            place = names.index(str(name))
            marker = CURVE_MARKERS[place % len(CURVE_MARKERS)]
            style = {"marker": marker, "ms": 5, "color": colors[str(name)]}
            [line] = ax.plot(curve[x], curve["estimate"], label=name, **style)
            entries[str(name)] = line
            if "low" in curve:
                beside = curve[x] * 1.03**place  # not on one another
                ax.vlines(beside, curve["low"], curve["high"], color=line.get_color(), lw=1)
        ax.set_xscale("log", base=2)
        ax.set_xticks(ticks, ticks)
    grid.set_titles("{col_name}")
    grid.set_axis_labels(x, "")
    grid.figure.set_layout_engine("constrained")
    if len(names) > 1:
        lines = sorted(entries.values(), key=lambda line: -line.get_ydata()[-1])
        grid.figure.legend(handles=lines, loc="outside lower center", ncols=3)
    return grid


def mark_verdicts(
    ax: Axes,
    places: ArrayLike,
    comparisons: pd.DataFrame,
    *,
    color: ArrayLike,
    marker: str = "o",
    upright: bool = False,
) -> None:
    """Draw comparisons with their intervals: filled marks if the verdict is significant, else
    hollow ones.

    ``comparisons`` has the columns ``estimate``, ``low``, ``high`` and ``verdict`` of
    ``metrics.gains`` or ``results.judged``. A mark is filled if the verdict is ``better`` or
    ``worse``, even if the interval of this comparison alone includes 0. ``places`` are numbers or
    names on the y axis, or on the x axis if intervals are ``upright``. Give one ``color`` for all,
    or one each.

    >>> import matplotlib.pyplot as plt
    >>> row = {"estimate": [0.1], "low": [-0.1], "high": [0.3], "verdict": ["inconclusive"]}
    >>> ax = plt.subplots()[1]
    >>> mark_verdicts(ax, ["P(True)"], pd.DataFrame(row), color="black")
    """
    clear = comparisons["verdict"].isin(["better", "worse"])
    fills = np.where(clear, color, "white")
    estimates, low, high = (comparisons[name] for name in ("estimate", "low", "high"))
    style: dict[str, Any] = {
        "c": fills,
        "edgecolors": color,
        "marker": marker,
        "s": 45,
        "zorder": 3,
    }
    if upright:
        ax.vlines(places, low, high, color=color)
        ax.scatter(places, estimates, **style)
    else:
        ax.hlines(places, low, high, color=color)
        ax.scatter(estimates, places, **style)


def draw_gains(comparisons: pd.DataFrame, label: str) -> Figure:
    """Draw gains of probes around a line at zero, with one row per probe and data set, in one panel
    within the domain of the probe and one panel out of it, on another scale, so that large losses
    out of the domain do not hide the small gains within it.

    ``comparisons`` has the columns ``dataset``, ``method`` and those of :func:`mark_verdicts`.
    ``label`` names the x axis.

    >>> row = {"estimate": 0.1, "low": -0.1, "high": 0.3, "verdict": "inconclusive"}
    >>> row |= {"dataset": "gsm8k", "method": "Probe (GSM8K)"}
    >>> figure = draw_gains(pd.DataFrame([row]), "gain")
    >>> [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    ['Probe (GSM8K) on GSM8K']
    """
    with naming_extra():
        import matplotlib.pyplot as plt

    shifts = [*map(shift, comparisons["method"], comparisons["dataset"])]
    table = comparisons.assign(shift=pd.Categorical(shifts, SHIFTS))
    panels = [panel for _, panel in table.groupby(table["shift"] == OUTSIDE)] or [table]
    size = plt.rcParams["figure.figsize"][0], 1.4 + 0.25 * (len(table) + len(panels))
    sizes: dict[str, Any] = {"figsize": size, "height_ratios": [1 + len(panel) for panel in panels]}
    figure, axes = plt.subplots(len(panels), squeeze=False, layout="constrained", **sizes)
    for ax, panel in zip(axes.flat, panels, strict=True):
        for name, rows in panel.groupby("shift", observed=True):
            distance = str(name)
            titles = rows["dataset"].map(lambda name: load_dataset(name).title)
            color, marker = SHIFT_COLORS[distance], MARKERS.get(distance, "o")
            mark_verdicts(ax, rows["method"] + " on " + titles, rows, color=color, marker=marker)
            ax.scatter([], [], color=color, marker=marker, label=distance)
        ax.set_ylim(len(panel) - 0.4, -0.6)
        ax.axvline(0, color=INK, lw=1)
    axes[-1, 0].set_xlabel(label)
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def method_color(method: str, dataset: str | None = None) -> str:
    """Return the colour of a method, as ``#rrggbb``: the same in every figure.

    A probe's colour depends on its shift to ``dataset``; without a data set it is green.

    >>> method_color("Oracle RC")
    '#6b6b6b'
    """
    return palette([method], dataset)[method]


def palette(methods: Iterable[str], dataset: str | None = None) -> dict[str, str]:
    """Return the colour of each method or rule, for seaborn's ``palette``; methods of one colour
    get darker shades of it.

    >>> palette(["Probe (GSM8K)", "Probe (MATH)"], "gsm8k")
    {'Probe (GSM8K)': '#46a281', 'Probe (MATH)': '#3866bd'}
    """
    with naming_extra():
        from matplotlib.colors import to_hex, to_rgb

    chosen: dict[str, str] = {}
    uses: Counter[str] = Counter()
    for method in dict.fromkeys(methods):
        if method in RULE_COLORS:
            chosen[method] = RULE_COLORS[method]
            continue
        base = COLORS.get(method, OTHER_COLOR)
        if is_probe(method):
            base = SHIFT_COLORS[shift(method, dataset) or AT_HOME]
        share = 0.62 ** uses[base]  # darker each time
        chosen[method] = to_hex(tuple(share * np.array(to_rgb(base))))
        uses[base] += 1
    return chosen


def known_color(name: str | None) -> str | None:
    """Return the colour of a method of the paper; None, the next of the cycle, for another."""
    if name and (name in COLORS or is_probe(name)):
        return method_color(name)
    return None


def _shares(samples: Iterable[ArrayLike]) -> pd.DataFrame:
    """Return the mean of each sample of shares, with an interval within [0, 1]."""
    return pd.DataFrame([mean_interval(terms, bounds=(0, 1)) for terms in samples])


def _arms(table: pd.DataFrame, estimate: str = "estimate") -> Floats:
    """Return how far intervals reach to either side, for matplotlib's error bars."""
    arms = [table[estimate] - table["low"], table["high"] - table[estimate]]
    return np.clip(np.array(arms, float), 0, None)


def _as_they_are(texts: Iterable[Any]) -> None:
    """Escape names, so that matplotlib reads no formula in them."""
    for text in texts:
        text.set_parse_math(False)
