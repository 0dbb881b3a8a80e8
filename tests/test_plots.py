"""Displays hold what they draw, and it is what the definitions say."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from capcal_lib.errors import InputError
from capcal_lib.plots import (
    COLORS,
    OTHER_COLOR,
    RULE_COLORS,
    PassAtKDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    ScoreDisplay,
    draw_curves,
    mark_verdicts,
)

RNG = np.random.default_rng(0)
MU = RNG.beta(1, 1, 60)
CORRECT, TOTAL = RNG.binomial(8, MU), np.full(60, 8)
DISPLAYS = (ReliabilityDisplay, RiskCoverageDisplay, PassAtKDisplay)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def test_reliability_by_hand() -> None:
    bins = ReliabilityDisplay.from_counts(MU, CORRECT, TOTAL).bins
    assert bins["questions"].sum() == 60
    inside = (MU >= 0.3) & (MU < 0.4)
    row = bins[bins["confidence"].between(0.3, 0.4)].iloc[0]
    assert row["questions"] == inside.sum()
    assert row["confidence"] == pytest.approx(MU[inside].mean())
    assert row["estimate"] == pytest.approx((CORRECT / TOTAL)[inside].mean())
    known = bins.dropna()
    assert ((known["low"] >= 0) & (known["high"] <= 1)).all()
    assert ((known["low"] <= known["estimate"]) & (known["estimate"] <= known["high"])).all()
    ends = ReliabilityDisplay.from_counts([0.0, 1.0], [0, 4], 4).bins
    assert ends["confidence"].tolist() == [0, 1], "1 lies in the last bin"


def test_risk_and_coverage_by_hand_with_ties() -> None:
    shown = RiskCoverageDisplay.from_counts([0.9, 0.5, 0.5, 0.1], [4, 4, 0, 0], 4)
    assert shown.curve["coverage"].tolist() == [0.25, 0.5, 0.75, 1]
    assert shown.curve["risk"].tolist() == pytest.approx([0, 0.25, 1 / 3, 0.5])
    assert shown.band["coverage"].tolist() == [0.25, 0.75, 1], "those of equal confidence together"
    constant = RiskCoverageDisplay.from_counts(0.5, CORRECT, TOTAL)
    assert constant.curve["risk"].to_numpy() == pytest.approx(1 - (CORRECT / TOTAL).mean())


def test_pass_at_k_by_hand() -> None:
    curve = PassAtKDisplay.from_counts([0.5, 0.25], [1, 0], [4, 2]).curve
    assert curve["k"].tolist() == [1, 2], "as many as every question has"
    assert curve["measured"].tolist() == [0.125, 0.25]
    assert curve["promised"].tolist() == pytest.approx([0.375, (0.75 + 1 - 0.75**2) / 2])
    only = PassAtKDisplay.from_counts(None, [1, 0], [4, 2])
    assert "promised" not in only.curve


@pytest.mark.parametrize("display", DISPLAYS)
def test_series_join_by_their_index_and_bad_values_are_refused(display: type) -> None:
    names = [f"q{i}" for i in range(60)]
    shuffled = pd.Series(MU, names).sample(frac=1, random_state=1)
    counts = pd.Series(CORRECT, names), pd.Series(TOTAL, names)
    first = display.from_counts(MU, CORRECT, TOTAL)  # type: ignore[attr-defined]
    second = display.from_counts(shuffled, *counts)  # type: ignore[attr-defined]
    for one, other in zip(vars(first).values(), vars(second).values(), strict=True):
        if isinstance(one, pd.DataFrame):
            same = one.columns.difference(["low", "high"])  # resampling follows the order of rows
            pd.testing.assert_frame_equal(one[same], other[same])
    for wrong in (np.nan, 1.5):
        with pytest.raises(InputError, match="row 3"):
            display.from_counts(np.where(np.arange(60) == 3, wrong, MU), CORRECT, TOTAL)  # type: ignore[attr-defined]


@pytest.mark.parametrize("display", DISPLAYS)
def test_several_methods_share_the_axes_that_are_given(display: type) -> None:
    figure, ax = plt.subplots()
    hostile = "$\\frac{$"
    for name in ("P(True)", hostile):
        shown = display.from_counts(MU, CORRECT, TOTAL, name=name, ax=ax)  # type: ignore[attr-defined]
        assert shown.ax is ax
        assert shown.figure is figure
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [label for label in labels if label != "measured"] == ["P(True)", hostile]
    drawn = {str(line.get_label()): line.get_color() for line in ax.get_lines()}
    containers = {box.get_label(): box.lines[0].get_color() for box in ax.containers}
    assert (drawn | containers)["P(True)"] == COLORS["P(True)"]
    figure.canvas.draw()


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_display_is_drawn_again_from_what_it_keeps(display: type) -> None:
    first = display.from_counts(MU, CORRECT, TOTAL, name="P(True)")  # type: ignore[attr-defined]
    drawn = [line.get_xydata().tolist() for line in first.ax.get_lines()]
    figure, ax = plt.subplots()
    again = first.plot(ax=ax)
    assert again is first
    assert first.ax is ax
    assert first.figure is figure
    assert [line.get_xydata().tolist() for line in ax.get_lines()] == drawn
    assert "P(True)" in [text.get_text() for text in ax.get_legend().get_texts()]
    renamed = first.plot(name="mine", color="#123456")
    assert renamed.figure is not figure
    assert "mine" in [text.get_text() for text in renamed.ax.get_legend().get_texts()]
    assert "#123456" in [line.get_color() for line in renamed.ax.get_lines()]


def test_scores_are_drawn_again_too() -> None:
    scores = pd.DataFrame({"method": ["mine", "P(True)"], "brier": [0.1, 0.2]})
    shown = ScoreDisplay.from_scores(scores)
    first = marks(shown.ax)
    ax = plt.subplots()[1]
    assert marks(shown.plot(ax=ax).ax) == first == {"mine": ("o", [0.1]), "P(True)": ("^", [0.2])}
    assert scores.columns.tolist() == ["method", "brier"], "what was given is left as it was"


def test_scores_have_a_row_a_data_set_or_a_row_a_method() -> None:
    columns = {"brier": [0.1, 0.3, 0.2, 0.4], "low": 0.05, "high": 0.5}
    pairs = [("mini-exam", "P(True)"), ("mini-exam", "mine"), ("law", "P(True)"), ("law", "mine")]
    index = pd.MultiIndex.from_tuples(pairs, names=["dataset", "method"])
    scores = pd.DataFrame(columns, index)
    both = ScoreDisplay.from_scores(scores).ax
    assert [label.get_text() for label in both.get_yticklabels()] == ["Mini exam", "law"]
    assert marks(both) == {"P(True)": ("^", [0.1, 0.2]), "mine": ("o", [0.3, 0.4])}
    heights = [list(line.get_ydata()) for line in both.get_lines()]
    assert heights[0] == [pytest.approx(row - 0.2) for row in (0, 1)], "side by side in a row"
    assert heights[1] == [pytest.approx(row + 0.2) for row in (0, 1)]
    ends = [bar.get_segments()[0][:, 0].tolist() for bar in both.collections]
    assert np.array(ends) == pytest.approx(np.array([[0.05, 0.5]] * 2))
    one = ScoreDisplay.from_scores(scores.loc[["law"]]).ax
    assert [label.get_text() for label in one.get_yticklabels()] == ["P(True)", "mine"]
    assert marks(one) == {"P(True)": ("^", [0.2]), "mine": ("o", [0.4])}
    again = ScoreDisplay.from_scores(scores.assign(recalibrated=[0.1, np.nan] * 2)).ax
    hollow = [box.lines[0] for box in again.containers if box.lines[0].get_mfc() == "white"]
    assert list(hollow[0].get_xdata()) == [0.1, 0.1], "in the rows of its method"
    bare = ScoreDisplay.from_scores(scores[["brier"]]).ax
    assert not bare.collections, "no interval is drawn where none is known"


def test_marks_of_a_row_have_one_order_and_their_legend_above() -> None:
    """Whatever the order of the table: probes by their shift, then oracles, below all others."""
    probes = ["Probe (TriviaQA)", "Probe (MATH)", "Probe (GSM8K)"]
    names = ["Oracle RC", *probes, "Best constant", "P(True)"]
    sets = ["gsm8k", "math500"]
    index = pd.MultiIndex.from_product([sets, names], names=["dataset", "method"])
    shown = ScoreDisplay.from_scores(pd.DataFrame({"brier": 0.1}, index))
    heights = {str(box.get_label()): box.lines[0].get_ydata()[0] for box in shown.ax.containers}
    assert sorted(heights, key=heights.__getitem__) == [
        "P(True)",
        "Probe of the data set",
        "Probe of the domain",
        "Probe of another domain",
        "Oracle RC",
    ], "the best constant is a line and takes no place"
    shown.figure.canvas.draw()
    [legend] = shown.figure.legends
    assert legend.get_window_extent().y0 > shown.ax.get_window_extent().y1


def marks(ax: Axes) -> dict[str, tuple[str, list[float]]]:
    """Return what each method was drawn with, and where."""
    drawn = {str(box.get_label()): box.lines[0] for box in ax.containers}
    return {name: (line.get_marker(), list(line.get_xdata())) for name, line in drawn.items()}


@pytest.mark.parametrize("upright", [False, True])
def test_a_mark_is_filled_where_the_verdict_is_clear(upright: bool) -> None:
    verdicts = ["better", "worse", "inconclusive", "alike"]
    rows = {"estimate": [3.0, -2, 1, 0], "low": [2.0, -3, -1, -1], "high": [4.0, -1, 3, 1]}
    comparisons = pd.DataFrame(rows | {"verdict": verdicts})
    ax = plt.subplots()[1]
    mark_verdicts(ax, [*"abcd"], comparisons, color="#ff0000", upright=upright)
    lines, points = ax.collections
    faces = [to_hex(color) for color in points.get_facecolors()]
    assert faces == ["#ff0000", "#ff0000", "#ffffff", "#ffffff"]
    assert {to_hex(color) for color in points.get_edgecolors()} == {"#ff0000"}
    along, across = (1, 0) if upright else (0, 1)
    assert points.get_offsets()[:, along].tolist() == rows["estimate"]
    assert points.get_offsets()[:, across].tolist() == [0, 1, 2, 3]
    ends = np.array([line[:, along] for line in lines.get_segments()])
    assert ends.tolist() == np.transpose([rows["low"], rows["high"]]).tolist()


@pytest.mark.parametrize(
    ("hue", "colors"),
    [
        ("method", {"P(True)": COLORS["P(True)"], "Best constant": RULE_COLORS["Best constant"]}),
        ("model", {"one": OTHER_COLOR, "two": "#56382a"}),  # 0.62 of each channel
    ],
)
def test_curves_have_the_colours_of_their_methods_or_shades_that_mean_none(
    hue: str, colors: dict[str, str]
) -> None:
    rows = [(name, k, 0.5) for name in colors for k in (1, 2)]
    grid = draw_curves(pd.DataFrame(rows, columns=[hue, "k", "estimate"]), x="k", hue=hue)
    drawn = {line.get_label(): to_hex(line.get_color()) for line in grid.ax.get_lines()}
    assert drawn == colors


def test_a_line_looks_the_same_in_each_panel_and_stands_in_the_legend_once() -> None:
    rows = [("one", "P(True)"), ("two", "Best constant"), ("two", "P(True)")]
    table = pd.DataFrame([(*row, k, 0.5) for row in rows for k in (1, 2)])
    table.columns = pd.Index(["dataset", "method", "k", "estimate"])
    grid = draw_curves(table, x="k", col="dataset")
    first, second = ([*ax.get_lines()] for ax in grid.axes.flat)
    assert len(first) == 1
    same = [line for line in second if line.get_label() == "P(True)"]
    assert [line.get_marker() for line in same] == [first[0].get_marker()]
    [legend] = grid.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["P(True)", "Best constant"]
    width, height = grid.figure.get_size_inches()
    assert width == pytest.approx(2 * height)
