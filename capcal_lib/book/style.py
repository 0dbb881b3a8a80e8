"""One look for every figure of the book, and one colour a method.

A figure is 691 px wide, the width of the page's column at 1280, with text of 12 px or more, and is
kept as SVG on a transparent ground. In the dark theme ``book/static/capcal.css`` inverts it and
turns its hues back, so that one file serves both; the tests hold every colour to a contrast of 3 on
both grounds, and every pair apart for each common form of colour blindness. A probe has the paper's
colour of its shift: green in-domain in-distribution, blue in-domain out-of-distribution, orange
out-of-domain."""

import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from capcal_lib.plots import (  # noqa: F401, for pages, whose figures use the same colours
    COLORS,
    IN_DISTRIBUTION,
    INK,
    MUTED,
    OUT_OF_DISTRIBUTION,
    OUT_OF_DOMAIN,
    OWN,
    SHIFT_COLORS,
    SHIFTS,
    method_color,
    palette,
    shift,
)

WIDTH, HEIGHT = 7.2, 4.0  # inches; the browser shows 96 px an inch
GRID = "#d9d9d9"
ACCENT = "#17616b"  # of links, of what a reader does, and of a correct answer
VERDICT_COLORS = {"supported": "#0f766e", "inconclusive": "#adadad", "reversed": "#be123c"}

FACE, TEXT_FACE = "Source Sans Pro", "Source Serif Pro"  # of figures and tables, and of the text


def font_files() -> list[Path]:
    """List the files of both faces, each upright, italic and semibold; none where they are not
    installed, as without ``capcal[book]``.

    The packages are Adobe's fonts under the SIL Open Font License 1.1, unchanged.
    """
    names = [face.replace(" ", "") for face in (FACE, TEXT_FACE)]
    wanted = {name + cut for name in names for cut in ("", "It", "Semibold")}
    return [
        Path(file)
        for package in entry_points(group="fonts_ttf")
        if package.module.startswith("font_source_")
        for name, file in package.load().items()
        if name in wanted
    ]


def set_style() -> None:
    """Give matplotlib and seaborn the book's look; in a notebook, figures become SVG, for the book,
    and PNG, for JupyterLab, and numbers have four digits.
    """
    import warnings

    import numpy as np
    import pandas as pd
    import seaborn as sns
    from matplotlib.font_manager import fontManager

    warnings.filterwarnings(
        "ignore", "The figure layout has changed to tight"
    )  # seaborn's grids do so
    sizes = {
        "font.size": 10.5,
        "axes.labelsize": 10.5,
        "axes.titlesize": 11.5,
        "legend.title_fontsize": 10,
    }
    sizes |= dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 10)
    inks = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    grounds = dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none")
    look: dict[str, Any] = {
        "figure.figsize": (WIDTH, HEIGHT),
        "figure.constrained_layout.use": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": MUTED,
        "grid.color": GRID,
        "legend.frameon": False,
        "svg.hashsalt": "capcal",  # the same figure has the same bytes
        "text.parse_math": False,  # names come from anybody, and a formula in one may be broken
    }
    if files := font_files():
        for file in files:
            fontManager.addfont(file)
        look["font.family"] = [FACE, "DejaVu Sans"]  # the second for signs that the first lacks
    sns.set_theme(
        style="whitegrid",
        palette=[*SHIFT_COLORS.values(), *COLORS.values()],
        rc=look | sizes | inks | grounds,
    )
    if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()) is not None:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        shell.run_line_magic("precision", "%.4g")
        np.set_printoptions(precision=4)
        pd.set_option("display.precision", 4)
        set_matplotlib_formats("svg", "png", bbox_inches=None, metadata={"Date": None})  # type: ignore[no-untyped-call]
