"""Show the paper's printed numbers: those on a page's subject, for a model without samples, and the
main table of each model of the paper, as a page of the book.

`ITEMS` names the reported table of each item of ``data_manifests/paper.yaml``; a further item is a
further row."""

import hashlib
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from capcal_lib.book import style, tables
from capcal_lib.book.tables import Html
from capcal_lib.manifests import load_model
from capcal_lib.plots import MUTED, ScoreDisplay, draw_curves
from capcal_lib.probe_names import is_probe
from capcal_lib.reported import (
    Source,
    constant_score,
    load_reported,
    printed_distances,
    printed_scores,
)
from capcal_lib.studies.main_table import draw_printed_prices, printed_by_price

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Item(NamedTuple):
    """An item of the paper: its reported table, the caption under which it is shown, the digits of
    its numbers, and the head of a column for each k, if it has such columns.
    """

    table: str
    caption: str
    source: Source = "paper"
    digits: int = 4
    head: str = "{}"


ITEMS = {
    "table-2": Item(
        "main",
        "Capability Brier score as printed (lower is better), and cost in tokens; L is the length "
        "of an answer. In the figure, probes that share a mark have the first letter of their "
        "training set.",
    ),
    "table-3": Item(
        "passk_math500",
        "Squared error of predicted pass@k on MATH-500, as printed (lower is better).",
        head="pass@{}",
    ),
    "table-8": Item(
        "passk_aime25",
        "Squared error of predicted pass@k on AIME25, as printed (lower is better).",
        head="pass@{}",
    ),
    "table-4": Item("mean_accuracy", "Mean expected accuracy, as printed."),
    "table-6": Item(
        "consistency",
        "Score of a vote over k samples, as printed (lower is better).",
        head="{} votes",
    ),
    "figure-11": Item(
        "distance",
        "Mean distance of one response from the expected accuracy, computed from the printed score "
        "of Uniform random; it is at most one half.",
    ),
    "figure-4": Item(
        "tokens",
        "Mean completion tokens a question, read off to about 6 %. The figure has the printed "
        "scores against them (lower left is better): a large mark for the mean, and a small mark "
        "for each data set, with the first two letters of its name unless all have as many tokens.",
        "reference code",
        digits=0,
    ),
    "appendix-b.2": Item("sampling", "Sampling settings, as printed."),
    "figure-10": Item(
        "budget",
        "Share of questions solved with B samples a question (higher is better), as the paper "
        "draws it, without intervals.",
        "reference code",
        head="B = {}",
    ),
}

HEAD = """# The paper's main table

The paper scores three models on seven data sets. Their samples are not public, so nothing on this
page is measured: these are plug-in scores without intervals. The best constant follows from two
printed numbers. [Our main table](/notebooks/04_main_table.ipynb) explains how to read the scores
and shows them for the models that we measured. To measure gpt-oss-20b, run
`capcal reproduce --model gpt-oss-20b`, and then
`papermill notebooks/04_main_table.ipynb page.ipynb -p model gpt-oss-20b -p store runs/local`.

:::::{tab-set}
"""
MAIN_TABLE = {  # what a tab has, with the alternative text of its figure
    "table-2": "Dot plot of printed capability Brier scores: a row for each data set, a mark for "
    "each method, and a line for the best constant.",
    "table-4": "",
    "figure-4": "Printed scores against tokens: for each method a small mark for each data set and "
    "a large mark for their mean, with a dashed line for the best constant.",
}


def display(item: str, model: str) -> None:
    """Show an item of the paper for one model, if the paper has it: a table, and a figure of scores
    or of curves.
    """
    import matplotlib.pyplot as plt
    from IPython.display import display as show

    numbers = numbers_of(item, model)
    if numbers.empty:
        return
    figure, table = draw(item, numbers)
    if figure is not None:
        show(figure)  # type: ignore[no-untyped-call]
        plt.close(figure)  # shown, and not once more at the end of the cell
    show(table)  # type: ignore[no-untyped-call]


def printed_page() -> tuple[str, dict[str, dict[str, str]]]:
    """Write the main table of each model of the paper in MyST, a tab for each model: every table
    first, and then its figure.

    Returns the page with its figures. A figure is the forms of ``style.forms``, by the name of its
    file in the folder ``printed`` beside the page, which is a digest of it.
    """
    import matplotlib.pyplot as plt

    page, figures = HEAD, {}
    with plt.rc_context(), warnings.catch_warnings():  # the look is the book's alone
        style.set_style()
        for model in load_reported("main")["model"].unique():
            page += f"\n::::{{tab-item}} {load_model(model).paper_name}\n:name: {model}\n"
            for item, alt in MAIN_TABLE.items():
                figure, table = draw(item, numbers_of(item, model))
                page += f"\n```{{raw}} html\n{table.html}\n```\n"
                if figure is not None:
                    drawn = style.forms(figure)
                    plt.close(figure)
                    name = hashlib.sha256(drawn["image/svg+xml"].encode()).hexdigest()
                    figures[name] = drawn
                    page += f"\n:::{{image}} printed/{name}.svg\n:class: capcal-drawing\n"
                    page += f":alt: {alt}\n:::\n"
            page += "::::\n"
    return f"{page}:::::\n", figures


def draw(item: str, of_model: pd.DataFrame) -> "tuple[Figure | None, Html]":
    """Draw an item of the paper from its numbers of one model: a table, and maybe a figure."""
    table, caption, source, digits, head = ITEMS[item]
    model = of_model["model"].iloc[0]
    evidence = "reported" if source == "paper" else "read off"
    if table == "main":
        scores = scores_and_constant(model)
        shown = ScoreDisplay.from_scores(scores)
        name_probes(shown.ax, scores)
        figure = shown.figure
        drawn = tables.show_scores(scores, caption, digits=digits, evidence=evidence)
    elif table == "tokens":
        prices = printed_by_price().query("model == @model")
        prices = tables.titled(prices)
        figure = draw_printed_prices(prices).figure
        figure.set_figheight(4.2)
        name_sets(figure.axes[0], prices)
        drawn = tables.show(wide(of_model, "method"), caption, digits=digits, evidence=evidence)
    elif of_model["k"].isna().all():
        figure = None
        drawn = tables.show(wide(of_model, "method"), caption, digits=digits, evidence=evidence)
    else:
        curves = tables.titled(of_model).rename(columns={"value": "estimate"})
        if of_model["method"].nunique() > 1:
            col = "dataset" if of_model["dataset"].nunique() > 1 else None
            figure = draw_curves(curves, x="k", col=col).figure
        else:
            figure = draw_curves(curves, x="k", hue="dataset").figure
        rows = wide(of_model, "k", head)
        drawn = tables.show(rows, caption, digits=digits, evidence=evidence)
    return figure, drawn


def name_probes(ax: "Axes", scores: pd.DataFrame) -> None:
    """Write the first letter of its training set beside each probe that shares its mark with
    another one of the row: the lowest has it at the left, the highest at the right.

    ``ax`` are those of a `ScoreDisplay` of ``scores``, with a row for each data set.
    """
    probes = scores[scores["method"].map(is_probe)]
    letters = probes["method"].str.extract(r"\((.)", expand=False)
    places = zip(probes["dataset"], probes["brier"], strict=True)
    letter_of = dict(zip(places, letters, strict=True))
    datasets = scores["dataset"].unique()
    for marks in ax.containers:
        points: Any = marks[0].get_xydata()
        for y in np.unique(points[:, 1]):
            shared = np.sort(points[points[:, 1] == y, 0])
            offsets = [(-10, 0), *[(0, -10)] * (len(shared) - 2), (10, 0)]
            if len(shared) > 1:
                for x, offset in zip(shared, offsets, strict=True):
                    name_mark(ax, (x, y), letter_of[datasets[round(y)], x], offset)


def name_sets(ax: "Axes", prices: pd.DataFrame) -> None:
    """Write the first two letters of its data set beside each small mark of a figure of ``prices``,
    unless another mark of the method has as many tokens and stands above it.
    """
    apart = prices.drop_duplicates(["method", "tokens"], keep=False).sort_values("tokens")
    next_ratio = apart.groupby("method")["tokens"].shift(-1) / apart["tokens"]
    side = np.where(next_ratio < 1.3, -12, 12)  # the left of two that are close
    rows = apart[["tokens", "brier", "dataset"]].to_numpy()
    for (tokens, brier, dataset), beside in zip(rows, side, strict=True):
        name_mark(ax, (tokens, brier), dataset[:2], (beside, 0))


def name_mark(
    ax: "Axes", mark: tuple[float, float], name: str, offset: tuple[float, float]
) -> None:
    """Write a short name about so many points from a mark."""
    place: Any = {"xytext": offset, "textcoords": "offset points", "ha": "center", "va": "center"}
    ax.annotate(name, mark, size=9, color=MUTED, **place)


def numbers_of(item: str, model: str) -> pd.DataFrame:
    """Return the numbers of an item, of one model, as ``load_reported`` does; distances are
    computed from printed ones. No rows of a model that the paper does not have.
    """
    table, _, source, *_ = ITEMS[item]
    if table == "distance":
        distances = printed_distances().rename(columns={"distance": "value"})
        reported = distances.assign(method="mean distance", k=np.nan)
    else:
        reported = load_reported(table, source=source)
    return reported[reported["model"] == model]


def scores_and_constant(model: str) -> pd.DataFrame:
    """Return the printed scores of a model, with that of the best constant, which two of its
    printed numbers give away.
    """
    scores = printed_scores().query("model == @model")
    names = scores["dataset"].unique()
    constant = [constant_score(model, name) for name in names]
    rows = pd.DataFrame({"dataset": names, "method": "Best constant", "brier": constant})
    return pd.concat([scores, rows.assign(cost="–")])


def wide(reported: pd.DataFrame, columns: str, head: str = "{}") -> pd.DataFrame:
    """Return printed values with a row a data set, and a method where there are several."""
    index = ["dataset", "method"] if columns == "k" and reported["method"].any() else ["dataset"]
    table = tables.titled(reported).pivot_table(
        index=index, columns=columns, values="value", sort=False
    )
    table = table.rename(columns={"": "mean μ"}).rename(columns=head.format)
    table = table.rename_axis(columns=None).reset_index()
    if not table["dataset"].any():  # of the model, whatever it is asked
        table = table.drop(columns="dataset")
    return table.rename(columns={"dataset": "data set"})
