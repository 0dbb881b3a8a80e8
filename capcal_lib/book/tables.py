"""Draw tables that speak without a style sheet and without a network: escaped, captioned with their
evidence, and offered as CSV.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd
from pandas.api.types import is_float_dtype, is_numeric_dtype

from capcal_lib.errors import InputError, check_known
from capcal_lib.manifests import DOMAINS, dataset_names, load_dataset, load_model
from capcal_lib.shifts import SHIFTS, shift

EVIDENCE = ("measured", "reported", "read off", "simulated")
UNFOLDED_ROWS = 20  # that a table shows
SHIFT_LETTERS = dict(zip(SHIFTS, "abc", strict=True))  # beside the tints
# What a spreadsheet would compute: all that begins as a formula and is no number with its interval.
FORMULA = re.compile(r"[\s\x00-\x1f]*(?:[=@＝＠＋－]|[-+](?![\d.,]+(?: [%\[]|$)))")
INTERVAL = {r"(?<=\d) (\[.*\])$": r" <br><small>\1</small>"}  # on a line of its own
UNSAID = {"may_be_best": False, "missing": 0, "questions": 1, "varies": True, "printed": None}
MARKED = {"best": "<strong>{}</strong>", "second": "<u>{}</u>", "level": "≈ {}"}
LEGEND = {  # what a cell of scores holds, and what that means
    "<small>[": "in brackets: 95 % interval",
    "<strong>": "bold: significantly lower than every method but baselines and oracles, or the "
    "lowest printed",
    "≈": "≈: not significantly worse than the lowest, baselines and oracles aside",
    "<u>": "underlined: second lowest printed",
    "‡": "‡: all questions are alike, so nothing is compared",
} | {f"<sup>{letter}": f"{letter}: {far} probe" for far, letter in SHIFT_LETTERS.items()}


@dataclass(frozen=True, slots=True)
class Html:
    """Something that a notebook shows as it is."""

    html: str

    def _repr_html_(self) -> str:
        return self.html

    def __str__(self) -> str:
        """Return its text, as in a CSV."""
        return re.sub("<[^>]*>", "", self.html)


def badge(evidence: str) -> str:
    """Return a badge for an evidence as HTML; `InputError` for an unknown evidence.

    >>> badge("read off")
    '<span class="evidence read-off">read off</span>'
    """
    check_known("evidence", evidence, EVIDENCE)
    return f'<span class="evidence {evidence.replace(" ", "-")}">{evidence}</span>'


def show(
    table: pd.DataFrame,
    caption: str,
    *,
    digits: int = 3,
    evidence: str | Sequence[str] = (),
    **formats: str | Callable[[object], str],
) -> Html:
    """Draw a table of one row or more; a cell that is `Html` is shown as it is.

    The first column heads the rows; a named index is put before it as columns. Columns ``low`` and
    ``high`` are drawn in the cell of the column before them, and stay columns in the CSV. The
    ``caption``, a sentence, is shown above, with the evidence and a link to all rows and digits as
    CSV. ``formats``, such as ``"{:.1%}"`` or a function of the value, format columns; the others
    have ``digits`` after the decimal point. ``evidence`` is the kind of the numbers, one or several
    of ``measured``, ``reported``, ``read off`` and ``simulated``; if rows differ, give a column
    ``evidence``.

    `InputError` for a table without rows (leave it out), or numbers without evidence.

    >>> table = pd.DataFrame({"method": ["P(True)"], "Brier": [0.12345]})
    >>> "<td>0.123</td>" in show(table, "Scores.", evidence="measured").html
    True
    """
    if any(table.index.names):
        table = table.reset_index()
    if "evidence" in table:
        marks = table["evidence"].map(lambda mark: Html(badge(mark)))
        evidence, table = [*table["evidence"].unique()], table.assign(evidence=marks)
    cells = {}
    for name, column in join_intervals(table, digits).items():
        number = f"{{:z,.{digits}f}}" if is_float_dtype(column) else "{:,}"
        form = formats.get(str(name), number if is_numeric_dtype(column) else "{}")
        write = form.format if isinstance(form, str) else form
        cells[escape(str(name))] = [_cell(value, write) for value in column]
    heads, *_ = cells
    drawn = pd.DataFrame(cells).replace(INTERVAL, regex=True)
    return _draw(drawn.set_index(heads).rename_axis(columns=heads), caption, evidence, table)


def show_scores(
    scores: pd.DataFrame, caption: str, *, digits: int = 3, evidence: str | Sequence[str]
) -> Html:
    """Draw scores with one row per method and one column per data set, each with its interval
    below.

    The lowest score of a data set is bold if it is significantly lower than all others; if several
    methods may be the best, they are marked ``≈``. Oracles come last. Cells of probes have a tint
    and a letter for the shift. Nothing is marked if all questions have the same accuracy. Data sets
    are grouped by domain. Everything else is as in :func:`show`.

    ``scores`` come from ``results.score``: one row per (dataset, method), as columns or as the
    index, and ``brier``. Optional columns are ``low`` and ``high``, ``may_be_best``, ``missing``
    and ``questions``, and ``varies`` (whether questions differ in expected accuracy). A column
    ``cost`` is shown beside the methods; ``printed``, "best" or "second", is shown in bold or
    underlined, as in papers."""
    table = scores.reset_index() if any(scores.index.names) else scores
    rows = pd.DataFrame(UNSAID, table.index).assign(**table)
    oracle = rows["method"].str.startswith("Oracle")
    rows = rows.iloc[oracle.argsort(kind="stable")]
    columns = {}
    for key, scored in rows.groupby("dataset", sort=False):
        name = str(key)
        best = scored["may_be_best"].isin([True]) & scored["varies"]
        most = scored["questions"].max()
        marked = scored.assign(
            printed=scored["printed"].mask(best, "best" if best.sum() == 1 else "level"),
            missing=scored["missing"] / most,
            most=most,
        )
        known = load_dataset(name) if name in dataset_names() else None
        domain, title = (known.domain, known.title) if known else ("", name)
        head = escape(domain), escape(title)
        if head in columns:  # two sets of one's own may have one title
            head = escape(domain), escape(f"{title} ({name})")
        cells = [_score_cell(row, digits) for row in marked.to_dict("records")]
        columns[head] = pd.Series(cells, scored["method"])
    domains = ["", *DOMAINS, *(domain for domain, _ in columns)]  # one's own stand last
    order = sorted(columns, key=lambda head: domains.index(head[0]))
    wide = pd.DataFrame(columns).reindex(index=rows["method"].unique(), columns=order).fillna("–")
    if "cost" in rows:
        cost = rows.groupby("method")["cost"].first()
        wide.insert(0, ("", "Cost"), cost.astype(str).map(escape))
    text = wide.to_csv()
    legend = "; ".join(meaning for sign, meaning in LEGEND.items() if sign in text)
    wide = wide.rename(index=escape).rename_axis(columns=["", "Method"])
    if len({domain for domain, _ in columns}) == 1:
        wide = wide.droplevel(0, axis="columns")
    return _draw(wide, caption, evidence, table, legend)


def _cell(value: Any, write: Callable[[Any], str]) -> str:
    """Return a value as HTML: unchanged if it is HTML, a dash if it is missing."""
    if isinstance(value, Html):
        return value.html
    if pd.isna(value):
        return "–"
    return escape(write(value))


def _score_cell(row: Mapping[Hashable, Any], digits: int) -> str:
    """Write a score with its marks and interval; and the number of its questions if other methods
    have more, or the share of missing confidences that count as one half.
    """
    if pd.isna(row["brier"]):
        return "–"
    text = MARKED.get(row["printed"], "{}").format(f"{row['brier']:z.{digits}f}")
    if not row["varies"]:
        text += "<sup>‡</sup>"
    distance = shift(row["method"], row["dataset"])
    if distance:
        css = distance.replace(" ", "-")
        text = f"<span class='{css}'>{text}</span><sup>{SHIFT_LETTERS[distance]}</sup>"
    if not pd.isna(row.get("low")):
        text += f"<br><small>[{row['low']:z.{digits}f}, {row['high']:z.{digits}f}]</small>"
    if row["questions"] < row["most"]:
        text += f"<br><small>{row['questions']:,} of {row['most']:,} questions</small>"
    elif row["missing"]:
        text += f"<br><small>{row['missing']:.1%} missing</small>"
    return text


def join_intervals(table: pd.DataFrame, digits: int) -> pd.DataFrame:
    """Put the interval ``low`` to ``high`` into the column before it, if the table has one.

    >>> gains = pd.DataFrame({"gain": [1.25], "low": [-0.5], "high": [3.0], "p": [0.2]})
    >>> join_intervals(gains, 1).to_dict("records")
    [{'gain': '1.2 [-0.5, 3.0]', 'p': 0.2}]
    """
    names = list(map(str, table))
    if not {"low", "high"} <= set(names) or names.index("low") == 0:
        return table
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


def titled(table: pd.DataFrame) -> pd.DataFrame:
    """Name models as the paper does, or in short, and data sets by their titles, in the columns
    ``model`` and ``dataset`` of a table, as far as it has them.

    >>> titled(pd.DataFrame({"model": ["qwen3-8b"], "dataset": ["gsm8k"]})).loc[0].tolist()
    ['Qwen3-8B', 'GSM8K']
    """

    def model_title(name: str) -> str:
        return load_model(name).paper_name or load_model(name).short_title

    titles = {"model": model_title, "dataset": lambda name: name and load_dataset(name).title}
    for column in table.columns.intersection([*titles]):
        table = table.assign(**{column: table[column].map(titles[column], na_action="ignore")})
    return table


def p_value(p: float) -> str:
    """Write a p value, which is the tail of a formula below .001.

    >>> p_value(0.0213), p_value(1e-9)
    ('0.021', '< .001')
    """
    return "< .001" if p < 0.001 else f"{p:.3f}"


def csv_link(table: pd.DataFrame, name: str, text: str = "CSV") -> str:
    """Write a link under which a browser saves a table, without its index, and without cells that a
    spreadsheet would take for formulas.

    >>> csv_link(pd.DataFrame({"k": [1]}), "All of them.").split(" href")[0]
    "<a class='capcal-csv' download='all-of-them.csv'"
    """

    def guard(value: object) -> object:
        return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value

    guarded = table.map(guard).rename(columns=guard).to_csv(index=False)
    file = re.sub(r"\W+", "-", name.lower()).strip("-")[:48] or "table"
    href = f"data:text/csv;base64,{b64encode(guarded.encode()).decode()}"
    return f"<a class='capcal-csv' download='{file}.csv' href='{href}'>{escape(text)}</a>"


def _draw(
    cells: pd.DataFrame,
    caption: str,
    evidence: str | Sequence[str],
    table: pd.DataFrame,
    legend: str = "",
) -> Html:
    """Put cells of HTML, whose index heads their rows, under their heads; many rows are folded."""
    if table.empty:
        raise InputError(f"the table {caption!r} is empty; leave it out")
    marks = [evidence] if isinstance(evidence, str) else [*dict.fromkeys(evidence)]
    if not len(marks) and any(map(is_numeric_dtype, table.dtypes)):
        known = ", ".join(EVIDENCE)
        raise InputError(f"the table {caption!r} names no evidence; give one of: {known}")
    label = escape(caption)
    with pd.option_context("display.max_colwidth", None):
        html = cells.rename_axis(index=None).to_html(escape=False, border=0, classes="capcal")
    html = f"<div class='capcal-scroll' tabindex='0' role='group' aria-label='{label}'>{html}</div>"
    if len(cells) > UNFOLDED_ROWS:
        html = f"<details><summary>All {len(cells)} rows</summary>{html}</details>"
    if legend:
        html += f"<p class='capcal-legend'>{legend[0].upper()}{legend[1:]}.</p>"
    line = " · ".join([label, *map(badge, marks), csv_link(table, caption)])
    return Html(f"<figure class='capcal-table'><figcaption>{line}</figcaption>{html}</figure>")
