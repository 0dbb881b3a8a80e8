import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from capcal_lib.book import figures
from capcal_lib.results import tables
from tests.results.test_tables import rng


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


def test_coverage_draws_a_line_a_method() -> None:
    table = tables.coverage([0.1, 0.5], 20, rng(), draws=50)
    (axes,) = panels(figures.coverage(table))
    assert legend(axes) == ["clopper-pearson", "jeffreys", "wald", "wilson"]
    wald = table[table["method"] == "wald"]["coverage"]
    np.testing.assert_array_equal(line(axes, "wald"), wald)
    assert axes.get_ylim()[0] < table["coverage"].min()
