"""Show what the paper prints of a page's subject, for a model of which there are no samples; and a
page of the book that has the main table of each model of the paper.

`ITEMS` says of an item of ``data_manifests/paper.yaml`` which reported table it is; a further item
is a further row."""

import hashlib
import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from capcal_lib.book import style, tables
from capcal_lib.book.tables import Html
from capcal_lib.manifests import load_model
from capcal_lib.plots import ScoreDisplay, draw_curves
from capcal_lib.reported import (
    Source,
    constant_score,
    load_reported,
    printed_distances,
    printed_scores,
)
from capcal_lib.studies.main_table import draw_printed_prices, printed_by_price

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Item(NamedTuple):
    """An item of the paper: its reported table, the caption under which it is shown, and the digits
    of its numbers.
    """

    table: str
    caption: str
    source: Source = "paper"
    digits: int = 4


ITEMS = {
    "table-2": Item(
        "main",
        "Printed capability Brier score (lower is better), and cost in tokens (L: an answer).",
    ),
    "table-3": Item(
        "passk_math500", "Printed squared error of predicted pass@k, MATH-500 (lower is better)."
    ),
    "table-8": Item(
        "passk_aime25", "Printed squared error of predicted pass@k, AIME25 (lower is better)."
    ),
    "table-4": Item("mean_accuracy", "Mean expected accuracy as printed."),
    "table-6": Item("consistency", "Printed score of a vote over k samples (lower is better)."),
    "figure-11": Item(
        "distance",
        "Mean distance of one response from the expected accuracy, computed from the printed score "
        "of Uniform random: one half is the most that is possible.",
    ),
    "figure-4": Item(
        "tokens",
        "Mean completion tokens a question, to about 6 %; above, the printed scores against them "
        "(lower left is better), with a small mark a data set and a large one for their mean.",
        "reference code",
        digits=0,
    ),
    "appendix-b.2": Item("sampling", "Settings of sampling, as printed."),
    "figure-10": Item(
        "budget",
        "Share of questions solved against B samples a question (higher is better), as the paper "
        "draws it, without intervals.",
        "reference code",
    ),
}

HEAD = """# The paper's main table

The paper scores three models. Their samples were not published, so that nothing here is measured:
these are plug-in scores without intervals, on seven data sets. The best constant follows from two
printed numbers. [The main table](/notebooks/04_main_table.ipynb) says how to read them, and has the
same of models that are measured. After `capcal reproduce --model gpt-oss-20b` it measures that one:
`papermill notebooks/04_main_table.ipynb page.ipynb -p model gpt-oss-20b -p store runs/local`.

:::::{tab-set}
"""
MAIN_TABLE = {  # what a tab has, with the alternative text of its figure
    "table-2": "Dot plot of printed capability Brier scores: a row a data set and a mark a method, "
    "with a line for the best constant in each row.",
    "table-4": "",
    "figure-4": "Printed scores against tokens: for each method a small mark a data set and a "
    "large one for their mean, and a dashed line for the best constant.",
}


def display(item: str, model: str) -> None:
    """Show an item of the paper of one model, where the paper has it: a table, and a figure of
    scores or of curves.
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
    """Write the main table of each model of the paper, a tab a model, in MyST.

    Returns it with its figures: the forms of each, of ``style.forms``, by the name of its file in
    the folder ``printed`` beside the page, which is a digest of it.
    """
    import matplotlib.pyplot as plt

    page, figures = HEAD, {}
    with plt.rc_context(), warnings.catch_warnings():  # the look is the book's alone
        style.set_style()
        for model in load_reported("main")["model"].unique():
            page += f"\n::::{{tab-item}} {load_model(model).paper_name}\n:name: {model}\n"
            for item, alt in MAIN_TABLE.items():
                figure, table = draw(item, numbers_of(item, model))
                if figure is not None:
                    drawn = style.forms(figure)
                    plt.close(figure)
                    name = hashlib.sha256(drawn["image/svg+xml"].encode()).hexdigest()
                    figures[name] = drawn
                    page += f"\n:::{{image}} printed/{name}.svg\n:class: capcal-drawing\n"
                    page += f":alt: {alt}\n:::\n"
                page += f"\n```{{raw}} html\n{table.html}\n```\n"
            page += "::::\n"
    return f"{page}:::::\n", figures


def draw(item: str, of_model: pd.DataFrame) -> "tuple[Figure | None, Html]":
    """Draw an item of the paper from its numbers of one model: a table, and maybe a figure."""
    table, caption, source, digits = ITEMS[item]
    model = of_model["model"].iloc[0]
    evidence = "reported" if source == "paper" else "read off"
    if table == "main":
        scores = scores_and_constant(model)
        figure = ScoreDisplay.from_scores(scores).figure
        drawn = tables.show_scores(scores, caption, digits=digits, evidence=evidence)
    elif table == "tokens":
        prices = printed_by_price().query("model == @model")
        figure = draw_printed_prices(tables.titled(prices)).figure
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
        drawn = tables.show(wide(of_model, "k"), caption, digits=digits, evidence=evidence)
    return figure, drawn


def numbers_of(item: str, model: str) -> pd.DataFrame:
    """Return the numbers of an item, of one model, as ``load_reported`` does; distances are
    computed from printed ones. No rows of a model that the paper does not have.
    """
    table, _, source, _ = ITEMS[item]
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


def wide(reported: pd.DataFrame, columns: str) -> pd.DataFrame:
    """Return printed values with a row a data set, and a method where there are several."""
    index = ["dataset", "method"] if columns == "k" and reported["method"].any() else ["dataset"]
    table = tables.titled(reported).pivot_table(
        index=index, columns=columns, values="value", sort=False
    )
    table = table.rename(columns={"": "mean μ"}).rename_axis(columns=None).reset_index()
    if not table["dataset"].any():  # of the model, whatever it is asked
        table = table.drop(columns="dataset")
    return table.rename(columns={"dataset": "data set"})
