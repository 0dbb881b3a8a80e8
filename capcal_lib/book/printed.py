"""Show the paper's printed numbers of a model."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from capcal_lib.book.tables import show, title_of
from capcal_lib.reported import Source, load_reported, printed_distances


class Item(NamedTuple):
    """An item of the paper: its reported table, and the caption under which it is shown."""

    table: str
    caption: str
    source: Source = "paper"
    digits: int = 4


ITEMS = {
    "table-2": Item("main", "Capability Brier score as printed (lower is better)."),
    "table-3": Item("passk_math500", "Squared error of predicted pass@k on MATH-500, as printed."),
    "table-8": Item("passk_aime25", "Squared error of predicted pass@k on AIME25, as printed."),
    "table-4": Item("mean_accuracy", "Mean expected accuracy, as printed."),
    "table-6": Item("consistency", "Score of response consistency over k samples, as printed."),
    "table-7": Item("mixing", "Score of probes of one training set and of two, as printed."),
    "figure-4": Item(
        "tokens", "Mean completion tokens a question, to about 6 %.", "reference code", 0
    ),
    "figure-10": Item(
        "budget", "Share of questions solved with k samples a question.", "reference code"
    ),
    "figure-11": Item("distance", "Mean distance of one response from the expected accuracy."),
    "appendix-b.2": Item("sampling", "Sampling settings, as printed."),
}


def printed_table(item: str, model: str) -> pd.DataFrame:
    """Return the numbers of an item for one model: a row for each data set (and method, where there
    are several k), a column for each method or k. No rows if the paper has none.

    >>> printed_table("table-4", "qwen3-8b").shape
    (7, 1)
    """
    table, _, source, _ = ITEMS[item]
    if table == "distance":
        distances = printed_distances().rename(columns={"distance": "value"})
        reported = distances.assign(method="mean distance", k=np.nan)
    else:
        reported = load_reported(table, source=source)
    of_model = reported[reported["model"] == model].replace({"method": {"": "value"}})
    if of_model["k"].isna().all():
        return of_model.pivot_table("value", "dataset", "method", sort=False)
    return of_model.pivot_table("value", ["dataset", "method"], "k", sort=False)


def show_printed(item: str, model: str) -> None:
    """Show an item of the paper for one model, if the paper has it."""
    from IPython.display import display

    _, caption, source, digits = ITEMS[item]
    table = printed_table(item, model)
    if len(table):
        evidence = "reported" if source == "paper" else "read off"
        caption = f"{title_of(model)}: {caption[0].lower()}{caption[1:]}"
        display(show(table, caption, evidence=evidence, digits=digits))  # type: ignore[no-untyped-call]
