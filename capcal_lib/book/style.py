"""One look for every figure of the book.

A figure is 691 px wide, the width of the page's column, with text of 12 px or more, on a
transparent ground; in the dark theme ``book/static/capcal.css`` inverts it and turns its hues back.
"""

import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from capcal_lib.errors import naming_extra
from capcal_lib.places import BOOK
from capcal_lib.plots import COLORS, SHIFT_COLORS

WIDTH = 7.2  # inches; the browser shows 96 px an inch
GRID = "#d9d9d9"
ACCENT = "#17616b"  # of links, of what a reader does, and of a correct answer
VERDICT_COLORS = {
    "supported": "#0f766e",
    "holds in part": "#4d9f98",
    "inconclusive": "#8c8c8c",
    "contradicted in part": "#d4506f",
    "reversed": "#be123c",
}


def font_files() -> list[Path]:
    """List the files of the figures' faces; none where they are not installed, as without
    ``capcal[book]``.
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
    notebook, figures become SVG, for the book, and PNG, for JupyterLab.
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
        plt.rcParams["font.family"] = ["Source Sans Pro", "DejaVu Sans"]
    np.set_printoptions(precision=4)
    pd.set_option("display.precision", 4)
    if "ipykernel" in sys.modules:
        from IPython import get_ipython
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        if shell := get_ipython():  # a process may import the kernel and be none
            shell.run_line_magic("precision", "%.4g")
        set_matplotlib_formats("svg", "png", bbox_inches=None)  # type: ignore[no-untyped-call]
