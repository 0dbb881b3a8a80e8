from collections.abc import Callable

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from capcal_lib.book import figures
from capcal_lib.results import diagnosis, tables
from capcal_lib.results.evaluation import Evaluation
from capcal_lib.results.tables import ORACLE_CC, ORACLE_RC, UNIFORM
from tests.results.test_tables import EDGES, NAN, evaluation, rng

N = 30
MIXED = evaluation(
    list(range(N)),
    [64 + row % 3 for row in range(N)],
    {
        "P(True)": [0.02 * row for row in range(N)],
        "Verbalized confidence": [0.9] * N,
        "Probe (Mini exam)": [NAN if row % 2 else 0.3 for row in range(N)],
    },
)
OTHER = evaluation(list(range(N)), [70] * N, {"P(True)": [0.4] * N}, dataset="mini-capitals")
METHODS = ["Verbalized confidence", "P(True)", "Probe (Mini exam)"]
LIVE = pd.DataFrame(
    {
        "question_id": ["a", "b"],
        "correct": [1, 5],
        "total": [10, 10],
        "live correct": [2, 0],
        "live total": [10, 0],
        "evidence": "measured",
    }
)


def sweep(ones: list[Evaluation]) -> pd.DataFrame:
    return tables.stack([tables.k_eval_table(one, [2, 10, 50], rng()) for one in ones[:1]])


DRAWN_FROM_EVALUATIONS: dict[str, Callable[[list[Evaluation]], Figure]] = {
    "histograms": figures.histograms,
    "targets": lambda ones: figures.targets(ones, rng()),
    "running_means": lambda ones: figures.running_means(ones, rng()),
    "parts": lambda ones: figures.parts({one.dataset.title: diagnosis.parts(one, rng()) for one in ones}),
    "scores": lambda ones: figures.scores(tables.main_table(ones, rng())),
}
DRAWN_FROM_TABLES: dict[str, Callable[[], Figure]] = {
    "k_eval": lambda: figures.k_eval(sweep([MIXED])),
    "coverage": lambda: figures.coverage(tables.coverage([0.1, 0.5], 20, rng(), draws=50)),
    "confidences": lambda: figures.confidences(MIXED),
    "live": lambda: figures.live(LIVE),
    "divergence": lambda: figures.divergence([[MIXED, OTHER]], rng()),
}


def panels(figure: Figure) -> list[Axes]:
    """Return the panels in which something is drawn."""
    figure.draw_without_rendering()
    return [axes for axes in figure.axes if axes.axison]


def legend(axes: Axes) -> list[str]:
    """Return what a legend of the panel, or of its figure, says of the panel."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    found = [axes.get_legend(), *figure.legends]
    return [text.get_text() for one in found if one for text in one.get_texts()]


def line(axes: Axes, label: str) -> np.ndarray:
    (found,) = [line for line in axes.get_lines() if line.get_label() == label]
    return np.asarray(found.get_ydata(), float)


@pytest.mark.parametrize("draw", DRAWN_FROM_EVALUATIONS.values(), ids=DRAWN_FROM_EVALUATIONS)
@pytest.mark.parametrize("ones", [[], [MIXED], [MIXED, OTHER], [MIXED] * 5], ids=len)
def test_one_panel_an_evaluation(draw: Callable[[list[Evaluation]], Figure], ones: list[Evaluation]) -> None:
    if len(ones) == 5:
        ones = [
            evaluation([1], [64], {"P(True)": [0.5]}, dataset=name)
            for name in ("gsm8k", "mmlu", "gpqa", "aime25", "math500")
        ]
    figure = draw(ones)
    drawn = panels(figure)
    words = [text.get_text() for axes in figure.axes for text in axes.texts]
    if ones:
        titles = [axes.get_title().removesuffix(" (measured)") for axes in drawn]
        assert titles == [one.dataset.title for one in ones]
        assert words == []
    else:
        assert words in (["no samples of this model yet"], ["nothing to draw"])


def test_every_figure_is_closed_and_changes_no_setting() -> None:
    before, open_before = dict(mpl.rcParams), plt.get_fignums()
    made = [draw([MIXED, OTHER]) for draw in DRAWN_FROM_EVALUATIONS.values()]
    made += [draw() for draw in DRAWN_FROM_TABLES.values()]
    assert all(isinstance(figure, Figure) for figure in made)
    assert dict(mpl.rcParams) == before
    assert plt.get_fignums() == open_before
    for figure in made:
        figure.draw_without_rendering()


@pytest.mark.parametrize("name", [*DRAWN_FROM_EVALUATIONS, *DRAWN_FROM_TABLES])
def test_every_figure_says_what_its_numbers_are(name: str) -> None:
    figure = DRAWN_FROM_TABLES[name]() if name in DRAWN_FROM_TABLES else DRAWN_FROM_EVALUATIONS[name]([MIXED])
    said = [figure.get_suptitle(), *(axes.get_title() + axes.get_ylabel() for axes in figure.axes)]
    kind = "reported" if name.startswith("reported") else "measured"
    assert any(kind in text or "simulated" in text for text in said)


def test_histograms_count_every_question() -> None:
    (axes,) = panels(figures.histograms([MIXED]))
    heights = [patch.get_height() for patch in axes.patches]  # type: ignore[attr-defined]
    assert sum(heights) == N
    assert heights == np.histogram(MIXED.counts.expected_accuracy, np.linspace(0, 1, 11))[0].tolist()


def points(figure: Figure) -> np.ndarray:
    return np.asarray(figure.axes[0].collections[0].get_offsets())


def test_targets_put_each_question_at_its_mu_hat_beside_its_sample() -> None:
    at = points(figures.targets([MIXED], rng()))
    np.testing.assert_allclose(at[:, 1], MIXED.counts.expected_accuracy)
    assert (np.abs(at[:, 0] - at[:, 0].round()) < 0.2).all()
    assert set(at[:, 0].round()) <= {0.0, 1.0}
    sure = evaluation([0, 8], [8, 8])
    assert points(figures.targets([sure], rng()))[:, 0].round().tolist() == [0.0, 1.0]


def test_another_generator_gives_another_jitter() -> None:
    one, same, other = (points(figures.targets([MIXED], rng(seed))) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one[:, 0] != other[:, 0]).all()


def test_k_eval_draws_what_the_table_holds() -> None:
    table = sweep([MIXED])
    left, right = panels(figures.k_eval(table, paper_k=50))
    assert legend(left) == ["one question's mu_hat", "mean over questions (SE)"]
    assert legend(right) == ["plug-in", "corrected", "plug-in of a perfect estimator"]
    np.testing.assert_array_equal(line(right, "plug-in"), table["plug-in"])
    np.testing.assert_array_equal(line(left, "mean over questions (SE)"), table["standard error"])


def test_coverage_draws_a_line_a_method() -> None:
    table = tables.coverage([0.1, 0.5], 20, rng(), draws=50)
    (axes,) = panels(figures.coverage(table))
    assert legend(axes) == ["clopper-pearson", "jeffreys", "wald", "wilson"]
    wald = table[table["method"] == "wald"]["coverage"]
    np.testing.assert_array_equal(line(axes, "wald"), wald)
    assert axes.get_ylim()[0] < table["coverage"].min()


def test_confidences_have_a_panel_a_method() -> None:
    figure = figures.confidences(MIXED)
    assert [axes.get_title() for axes in panels(figure)] == list(MIXED.confidences)
    band, scatter = figure.axes[0].collections
    low, high = band.get_paths()[0].vertices[:, 1].min(), band.get_paths()[0].vertices[:, 1].max()  # type: ignore[union-attr]
    assert (low, high) == (0, 1)
    at = np.ma.getdata(scatter.get_offsets())
    np.testing.assert_allclose(at[:, 0], MIXED.confidences["P(True)"].values)
    np.testing.assert_allclose(at[:, 1], MIXED.counts.expected_accuracy)
    empty = figures.confidences(EDGES["no confidences"])
    assert panels(empty) == []
    assert [text.get_text() for text in empty.axes[0].texts] == ["no confidences yet"]


def test_scores_keep_each_method_on_its_line_where_data_sets_have_others() -> None:
    table = tables.main_table([OTHER, MIXED], rng())  # the second has two methods more
    figure = figures.scores(table)
    for axes, name in zip(panels(figure), ("Mini capitals", "Mini exam"), strict=True):
        labels = [text.get_text() for text in axes.get_yticklabels()] or [
            text.get_text() for text in figure.axes[0].get_yticklabels()
        ]
        assert set(labels) == {UNIFORM, ORACLE_RC, ORACLE_CC, *METHODS}
        assert labels[-1] == UNIFORM  # on top
        at = np.ma.getdata(axes.collections[-1].get_offsets())
        rows = table[table["data set"] == name].set_index("method")
        for place, method in enumerate(labels):
            (x,) = at[at[:, 1] == place, 0]
            expected = rows["brier"].get(method, NAN)
            assert x == expected or (np.isnan(x) and np.isnan(expected))
        colors = [to_hex(color) for color in axes.collections[-1].get_facecolor()]
        green = [labels[place] for place, color in enumerate(colors) if color == figures.PALETTE[2].lower()]
        assert set(green) == set(rows.index[rows["best"]])


def test_divergence_has_a_panel_an_evaluation_and_its_numbers() -> None:
    figure = figures.divergence([[MIXED] * 9, [OTHER], []], rng(), columns=7)
    drawn = panels(figure)
    assert [axes.get_title() for axes in drawn] == ["Mini exam"] * 9 + ["Mini capitals"]
    assert len(figure.axes) == 3 * 7
    row = tables.targets([OTHER]).iloc[0]
    (words,) = [text.get_text() for text in drawn[-1].texts]
    assert words == f"{row['mean |C − mu|']:.2f}\n{row['0.1 < mu < 0.9']:.0%}"
    empty = figures.divergence([[], []], rng())
    assert [text.get_text() for axes in empty.axes for text in axes.texts] == ["no samples of this model yet"]


def test_the_band_of_a_perfect_estimator_is_in_every_panel_of_scores() -> None:
    table = tables.main_table([MIXED, OTHER], rng())
    for axes, name in zip(panels(figures.scores(table)), ("Mini exam", "Mini capitals"), strict=True):
        spread = table.loc[table["data set"] == name, "spread"].iloc[0]
        (band,) = axes.patches
        assert band.get_extents().width > 0
        np.testing.assert_allclose(band.get_width() / 2, 1.96 * spread)  # type: ignore[attr-defined]


def test_colours_can_be_told_apart() -> None:
    for n in (3, 8, 14):
        assert len(set(figures._colors(n))) == n


def test_live_draws_two_intervals_a_question() -> None:
    (axes,) = panels(figures.live(LIVE))
    assert legend(axes) == ["recorded", "live"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]
    low, high = axes.get_ylim()
    assert low > high  # the first on top


@pytest.mark.parametrize("one", EDGES.values(), ids=EDGES)
def test_nothing_stumbles_over_an_edge(one: Evaluation) -> None:
    made = [draw([one]) for draw in DRAWN_FROM_EVALUATIONS.values()]
    made += [figures.confidences(one), figures.k_eval(tables.k_eval_table(one, [2, 100], rng()))]
    for figure in made:
        figure.draw_without_rendering()


def test_running_means_end_at_the_expected_accuracy() -> None:
    one = evaluation([0, 3, 5, 8, 10], [10] * 5)
    (axes,) = panels(figures.running_means([one], rng()))
    ends = sorted(line.get_ydata()[-1] for line in axes.get_lines() if len(line.get_xdata()) == 10)
    assert ends == [0.3, 0.5]
    (nothing,) = panels(figures.running_means([evaluation([0, 4], [4, 4])], rng()))
    assert [text.get_text() for text in nothing.texts] == ["no undecided question"]
