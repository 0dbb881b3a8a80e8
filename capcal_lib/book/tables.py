"""Draw tables that speak without a style sheet and without a network: escaped, captioned with their
evidence, and offered as CSV.
"""

from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd
from pandas.api.types import is_float_dtype, is_integer_dtype, is_numeric_dtype

from capcal_lib.errors import InputError, check_known
from capcal_lib.manifests import dataset_names, load_dataset, load_model, model_names

EVIDENCE = ("measured", "reported", "read off", "simulated")
UNFOLDED_ROWS = 40  # that a table shows
LEGEND = (
    " In brackets: 95 % interval. A star: significantly lower than every other method, the best "
    "constant and oracles aside; ≈: not significantly worse than the lowest."
)


@dataclass(frozen=True, slots=True)
class Html:
    """Something that a notebook shows as it is."""

    html: str

    def _repr_html_(self) -> str:
        return self.html


def badge(evidence: str) -> str:
    """Return the mark of an evidence as HTML.

    >>> badge("read off")
    '<span class="evidence read-off">read off</span>'
    """
    check_known("evidence", evidence, EVIDENCE)
    return f'<span class="evidence {evidence.replace(" ", "-")}">{evidence}</span>'


def show(
    table: pd.DataFrame,
    caption: str,
    *,
    evidence: str | Sequence[str] = (),
    digits: int = 3,
    **formats: str | Callable[[Any], str],
) -> Html:
    """Draw a table under a caption, a sentence, with the evidence of its numbers and a link to all
    rows and digits as CSV.

    The first column heads the rows; a named index comes before it. Columns ``low`` and ``high``
    are drawn in the cell of the column before them. ``formats``, such as ``"{:.1%}"`` or a
    function, format columns; other floats have ``digits`` decimals. ``evidence`` is one or several
    of ``EVIDENCE``, or a column. `InputError` for numbers without one.

    >>> scores = pd.DataFrame({"method": ["<b>"], "Brier": [0.12345]})
    >>> html = show(scores, "Scores.", evidence="measured").html
    >>> "<td>0.123</td>" in html, "<th>&lt;b&gt;</th>" in html
    (True, True)
    """
    if any(table.index.names):
        table = table.reset_index()
    table = titled(table)
    marks = [evidence] if isinstance(evidence, str) else [*evidence]
    if "evidence" in table:
        marks = [*table["evidence"].unique()]
    if not marks and any(map(is_numeric_dtype, table.dtypes)):
        raise InputError(f"the table {caption!r} has no evidence; give one of {EVIDENCE}")
    cells = pd.DataFrame(index=table.index)
    for name, column in join_intervals(table, digits).items():
        usual = "{}"
        if is_float_dtype(column):
            usual = f"{{:z,.{digits}f}}"
        elif is_integer_dtype(column):
            usual = "{:,}"
        form = formats.get(str(name), usual)
        write = form.format if isinstance(form, str) else form
        cells[name] = column.astype(object).map(write, na_action="ignore")
    heads = str(cells.columns[0])
    cells = cells.set_index(heads).rename_axis(index=None, columns=heads)
    with pd.option_context("display.max_colwidth", None):
        html = cells.to_html(border=0, classes="capcal", na_rep="–")
    html = f"<div class='capcal-scroll' tabindex='0'>{html}</div>"
    if len(cells) > UNFOLDED_ROWS:
        html = f"<details><summary>All {len(cells)} rows</summary>{html}</details>"
    line = " · ".join([escape(caption), *map(badge, marks), csv_link(table)])
    return Html(f"<figure class='capcal-table'><figcaption>{line}</figcaption>{html}</figure>")


def show_scores(scores: pd.DataFrame, caption: str, *, evidence: str, digits: int = 3) -> Html:
    """Draw scores with a row for each method and a column for each data set.

    ``scores`` come from ``results.score``: rows of (dataset, method) with ``brier`` and optional
    ``low``, ``high``, ``may_be_best``, ``missing``, ``questions``, and ``cost`` of the method. The
    lowest score of a data set has a star if it is significantly lower than all others; several that
    may be the lowest have the sign ``≈``. A cell says on how many questions it is, if others are on
    more, and how many confidences are missing, which count as one half. Oracles come last.

    >>> row = {"dataset": "mine", "method": "P(True)", "brier": 0.25}
    >>> "<td>0.250</td>" in show_scores(pd.DataFrame([row]), "Score.", evidence="measured").html
    True
    """
    table = scores.reset_index() if any(scores.index.names) else scores
    cells = table["brier"].map(f"{{:z.{digits}f}}".format)
    if "low" in table:
        cells = cells.mask(table["low"].notna(), intervals(table, "brier", digits))
    if "may_be_best" in table:
        best = table["may_be_best"].fillna(False).astype(bool)
        alone = best.groupby(table["dataset"]).transform("sum") == 1
        cells = cells.mask(best & alone, "★ " + cells).mask(best & ~alone, "≈ " + cells)
        caption += LEGEND
    if "questions" in table:
        number = "{:,.0f}".format
        most = table.groupby("dataset")["questions"].transform("max")
        some = " on " + table["questions"].map(number) + " of " + most.map(number)
        cells = cells.mask(table["questions"] < most, cells + some)
        if "missing" in table:
            absent = " " + table["missing"].map(number) + " missing"
            whole = table["questions"] == most
            cells = cells.mask(whole & (table["missing"] > 0), cells + absent)
    wide = table.assign(cell=cells).pivot(index="method", columns="dataset", values="cell")
    methods = table["method"].drop_duplicates()
    last = methods.str.startswith("Oracle")
    wide = wide.loc[[*methods[~last], *methods[last]], table["dataset"].unique()]
    if "cost" in table:
        wide.insert(0, "cost", table.groupby("method")["cost"].first())
    return show(wide.rename(columns=title_of), caption, evidence=evidence, cost="{:,.0f}".format)


def csv_link(table: pd.DataFrame) -> str:
    """Write a link under which a browser saves a table."""
    data = b64encode(table.to_csv(index=False).encode()).decode()
    return f"<a download='table.csv' href='data:text/csv;base64,{data}'>CSV</a>"


def join_intervals(table: pd.DataFrame, digits: int) -> pd.DataFrame:
    """Put the interval ``low`` to ``high`` into the column before it, if the table has one.

    >>> gains = pd.DataFrame({"gain": [1.25], "low": [-0.5], "high": [3.0], "p": [0.2]})
    >>> join_intervals(gains, 1).to_dict("records")
    [{'gain': '1.2 [-0.5, 3.0]', 'p': 0.2}]
    """
    if not {"low", "high"} <= {*table}:
        return table
    names = [*map(str, table)]
    estimate = names[names.index("low") - 1]
    joined = table.assign(**{estimate: intervals(table, estimate, digits)})
    return joined.drop(columns=["low", "high"])


def intervals(table: pd.DataFrame, estimate: str, digits: int) -> "pd.Series[str]":
    """Spell a column of estimates with its interval, from the columns ``low`` and ``high``.

    >>> gains = pd.DataFrame({"gain": [1.25], "low": [-0.5], "high": [3.0]})
    >>> intervals(gains, "gain", 1).tolist()
    ['1.2 [-0.5, 3.0]']
    """
    spelt = table[[estimate, "low", "high"]].map(f"{{:z.{digits}f}}".format).astype(str)
    return spelt[estimate] + " [" + spelt["low"] + ", " + spelt["high"] + "]"


def title_of(name: str) -> str:
    """Return the title of a model or a data set, or else the name.

    >>> title_of("qwen3-8b"), title_of("gsm8k"), title_of("mine")
    ('Qwen3-8B', 'GSM8K', 'mine')
    """
    if name in dataset_names():
        return load_dataset(name).title
    if name in model_names():
        return load_model(name).paper_name or load_model(name).short_title
    return name


def titled(table: pd.DataFrame) -> pd.DataFrame:
    """Name models and data sets by their titles in the columns ``model`` and ``dataset``."""
    for column in table.columns.intersection(["model", "dataset"]):
        table = table.assign(**{column: table[column].map(title_of, na_action="ignore")})
    return table
