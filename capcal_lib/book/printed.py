"""Show what the paper prints of a page's subject, for a model of which there are no samples.

`ITEMS` says of an item of ``data_manifests/paper.yaml`` which reported table it is; a further item
is a further row."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from capcal_lib.book import tables
from capcal_lib.plots import ScoreDisplay, draw_curves, draw_printed_prices
from capcal_lib.reported import (
    Source,
    constant_score,
    load_reported,
    printed_distances,
    printed_scores,
)
from capcal_lib.results.prices import printed_by_price


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


def display(item: str, model: str) -> None:
    """Show an item of the paper of one model, where the paper has it: a table, and a figure of
    scores or of curves.
    """
    import matplotlib.pyplot as plt
    from IPython.display import display as show

    table, caption, source, digits = ITEMS[item]
    reported = numbers_of(item)
    of_model = reported[reported["model"] == model]
    if of_model.empty:
        return
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
    if figure is not None:
        show(figure)  # type: ignore[no-untyped-call]
        plt.close(figure)  # shown, and not once more at the end of the cell
    show(drawn)  # type: ignore[no-untyped-call]


def numbers_of(item: str) -> pd.DataFrame:
    """Return the numbers of an item, of all models, as ``load_reported`` does; distances are
    computed from printed ones.
    """
    table, _, source, _ = ITEMS[item]
    if table == "distance":
        distances = printed_distances().rename(columns={"distance": "value"})
        return distances.assign(method="mean distance", k=np.nan)
    return load_reported(table, source=source)


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
