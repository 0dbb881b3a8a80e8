"""One look for every figure of the book, and one colour a method.

A figure is 691 px wide, the width of the page's column at 1280, with text of 12 px or more, and is
kept as SVG on a transparent ground. In the dark theme ``book/static/capcal.css`` inverts it and
turns its hues back, so that one file serves both; the tests hold every colour to a contrast of 3 on
both grounds, and every pair apart for each common form of colour blindness. A probe has the paper's
colour of its shift: green in-domain in-distribution, blue in-domain out-of-distribution, orange
out-of-domain."""

import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from capcal_lib.manifests import BOOK
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

WIDTH = 7.2  # inches; the browser shows 96 px an inch
GRID = "#d9d9d9"
ACCENT = "#17616b"  # of links, of what a reader does, and of a correct answer
VERDICT_COLORS = {"supported": "#0f766e", "inconclusive": "#adadad", "reversed": "#be123c"}

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

    import matplotlib.pyplot as plt
    import numpy as np
    import pandas as pd
    import seaborn as sns
    from matplotlib.font_manager import fontManager

    tight = "The figure layout has changed to tight"  # seaborn's grids do so
    warnings.filterwarnings("ignore", tight)
    sns.set_theme(style="whitegrid", palette=[*SHIFT_COLORS.values(), *COLORS.values()])
    plt.style.use(BOOK / "static" / "capcal.mplstyle")
    for file in font_files():
        fontManager.addfont(file)
        plt.rcParams["font.family"] = [FACE, "DejaVu Sans"]  # the second for what the first lacks
    if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()) is not None:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        shell.run_line_magic("precision", "%.4g")
        np.set_printoptions(precision=4)
        pd.set_option("display.precision", 4)
        set_matplotlib_formats("svg", "png", bbox_inches=None, metadata={"Date": None})  # type: ignore[no-untyped-call]
