"""One look for every figure of the book, and one colour a method.

A figure is 691 px wide, the width of the page's column at 1280, with text of 12 px or more, and is
kept as SVG on a transparent ground. In the dark theme ``book/static/capcal.css`` inverts it and
turns its hues back, so that one file serves both; the tests hold every colour to a contrast of 3 on
both grounds, and every pair apart for each common form of colour blindness. A probe has the paper's
colour of its shift: green in-domain in-distribution, blue in-domain out-of-distribution, orange
out-of-domain."""

import sys
from functools import partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import Any

from capcal_lib.errors import naming_extra
from capcal_lib.places import BOOK
from capcal_lib.plots import COLORS, SHIFT_COLORS

WIDTH, NARROW_WIDTH = 7.2, 3.6  # inches; the browser shows 96 px an inch
LABEL = 18  # letters in a line of a label there
NARROW = "image/x-narrow+svg"  # the form of a figure for a telephone
GRID = "#d9d9d9"
ACCENT = "#17616b"  # of links, of what a reader does, and of a correct answer
VERDICT_COLORS = {
    "supported": "#0f766e",
    "inconclusive": "#adadad",
    "exempt": "#767676",  # fails, and need not hold
    "reversed": "#be123c",
}


def result_colors(undecided: str) -> dict[str, str]:
    """Return the colours of what becomes of comparisons, in the order of a bar; ``undecided`` is
    what a page calls those that show nothing.
    """
    return {
        "fails": VERDICT_COLORS["reversed"],
        undecided: VERDICT_COLORS["inconclusive"],
        "need not hold": VERDICT_COLORS["exempt"],
        "holds": VERDICT_COLORS["supported"],
    }


FACE, TEXT_FACE = "Source Sans Pro", "Source Serif Pro"  # of figures and tables, and of the text


def font_files() -> list[Path]:
    """List the files of both faces, each upright, italic and semibold; none where they are not
    installed, as without ``capcal[book]``.

    The packages are Adobe's fonts under the SIL Open Font License 1.1, unchanged.
    """
    if find_spec("font_source_sans_pro") is None:
        return []
    return [
        Path(str(files(f"font_source_{face}_pro") / "files" / f"Source{face.title()}Pro-{cut}.ttf"))
        for face in ("sans", "serif")
        for cut in ("Regular", "It", "Semibold")
    ]


def set_style() -> None:
    """Give matplotlib and seaborn the book's look, which ``book/static/capcal.mplstyle`` says; in a
    notebook, figures become SVG, for the book, and PNG, for JupyterLab, and numbers have four
    digits.
    """
    import warnings

    with naming_extra():
        import matplotlib.pyplot as plt
        import numpy as np
        import pandas as pd
        import seaborn as sns
        from matplotlib.font_manager import fontManager

    # seaborn's grids do so
    warnings.filterwarnings("ignore", "The figure layout has changed to tight")
    sns.set_theme(style="whitegrid", palette=[*SHIFT_COLORS.values(), *COLORS.values()])
    plt.style.use(BOOK / "static" / "capcal.mplstyle")
    for file in font_files():
        fontManager.addfont(file)
        plt.rcParams["font.family"] = [FACE, "DejaVu Sans"]  # the second for what the first lacks
    shell = "IPython" in sys.modules and sys.modules["IPython"].get_ipython()
    if shell:
        from matplotlib.figure import Figure
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        shell.run_line_magic("precision", "%.4g")
        np.set_printoptions(precision=4)
        pd.set_option("display.precision", 4)
        set_matplotlib_formats()  # type: ignore[no-untyped-call]  # none of IPython's own, after ours
        shell.display_formatter.mimebundle_formatter.for_type(Figure, forms)


def forms(figure: Any) -> dict[str, str]:
    """Draw a figure for the book, for JupyterLab, and, laid out anew, for a telephone."""
    from IPython.core.pylabtools import print_figure

    draw = partial(print_figure, figure, bbox_inches=None)
    draw_svg = partial(draw, "svg", metadata={"Date": None})
    drawn = {"image/svg+xml": draw_svg(), "image/png": draw("png", base64=True)}
    make_narrow(figure)
    return drawn | {NARROW: draw_svg()}


def make_narrow(figure: Any) -> None:
    """Lay a figure out anew on half the width: panels with titles of their own below one another,
    legends below, long labels on several lines.
    """
    figure.set_layout_engine("constrained")
    axes, height = figure.axes, figure.get_figheight()
    rows, columns, *_ = axes[0].get_subplotspec().get_geometry()
    if rows == 1 or all(ax.get_title() for ax in axes):
        height *= len(axes) / rows
        columns = 1
        for ax, place in zip(axes, figure.add_gridspec(len(axes)), strict=True):
            ax.set_subplotspec(place)
            ax.tick_params(labelleft=True, labelbottom=True)
    for ax in axes:
        labels = [fill(name.get_text(), LABEL) for name in ax.get_yticklabels()]
        lines = "\n".join(labels).count("\n") + 1
        if lines > len(labels) > 0:
            ax.set_yticks(ax.get_yticks(), labels)
            height = max(height, 1.6 + 0.18 * (lines + len(labels) / 2))
        ax.set_xlabel(fill(ax.get_xlabel(), 2 * LABEL // columns))
        ax.set_title(fill(ax.get_title(), 2 * LABEL // columns))
    handles, names = axes[0].get_legend_handles_labels()
    marks = dict(zip(names, handles, strict=True))  # those of bars whole
    for legend in [*figure.legends, *filter(None, (ax.get_legend() for ax in axes))]:
        names = [name.get_text() for name in legend.get_texts()]
        handles = [*map(marks.get, names, legend.legend_handles)]
        title = legend.get_title().get_text()
        legend.remove()
        figure.legend(handles, names, title=title, loc="outside lower center")
        height += 0.22 * len(names)
    figure.set_size_inches(NARROW_WIDTH, height)
