"""Draw tables that speak without a style sheet and without a network: escaped, captioned with their
evidence, and offered as CSV.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any, Literal, get_args

import pandas as pd
from pandas.api.types import is_bool_dtype, is_float_dtype, is_integer_dtype, is_numeric_dtype

from capcal_lib.book.style import SHIFTS, shift
from capcal_lib.errors import InputError, unknown
from capcal_lib.manifests import DOMAINS, dataset_names, load_dataset

Evidence = Literal["measured", "reported", "read off", "simulated"]
Format = str | Callable[[object], str]
ROWS = 20  # that a table shows unfolded
NUMBER = re.compile(r"[-−+±<>≥≤≈~]?[\d,.]+( ?%)?( \[.*\])?")  # and an interval, set below it
FORMULA = re.compile(r"[\s\x00-\x1f]*[=+\-@＝＋－＠]")  # what a spreadsheet would compute
NOT_COMPETING = ("Oracle RC", "Oracle CC")
SHIFT_LETTERS = dict(zip(SHIFTS, "abc", strict=True))  # beside the tints
LEGEND = {  # what each mark in a cell means
    "<small>[": "in brackets: 95 % interval",
    "<strong>": "bold: significantly lower than every other method, or the lowest printed",
    "≈": "≈: not significantly worse than the lowest",
    "<u>": "underlined: second lowest printed",
    "‡": "‡: all questions are alike, so nothing is compared",
}


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
    """Mark where a number comes from, as HTML; evidence that is not known is refused.

    >>> badge("read off")
    '<span class="evidence read-off">read off</span>'
    """
    if evidence not in get_args(Evidence):
        raise unknown("evidence", evidence, get_args(Evidence))
    return f'<span class="evidence {evidence.replace(" ", "-")}">{evidence}</span>'


def show(
    table: pd.DataFrame,
    caption: str,
    *,
    digits: int = 3,
    evidence: str | Sequence[str] | None = None,
    **formats: Format,
) -> Html:
    """Draw a table of one row or more; a cell that is `Html` is shown as it is.

    Its first column heads the rows; a named index comes before it as columns. Text that is numbers
    throughout, such as printed values or ``0.1 [0.0, 0.2]``, is aligned as numbers and not rounded.
    The ``caption``, a sentence, stands above it with the evidence and a link to all rows and digits
    as CSV. ``digits`` are those after the decimal point, for columns without one of the
    ``formats``, such as ``"{:.1%}"`` or a function of the value. ``evidence`` says what kind of
    numbers these are, one or several of ``measured``, ``reported``, ``read off`` and ``simulated``;
    by default what the column ``evidence`` says, which is shown only where its rows differ.

    `InputError` for a table without rows (leave it out), numbers without evidence, or a format of a
    column that is not there.

    >>> table = pd.DataFrame({"method": ["P(True)"], "Brier": [0.12345]})
    >>> ">0.123</td>" in show(table, "Scores.", evidence="measured").html
    True
    """
    if any(name is not None for name in table.index.names):
        table = table.reset_index()
    marks = _evidence(table, caption, evidence)
    if "evidence" in table and len(marks) < 2:
        table = table.drop(columns="evidence")
    for column in formats:
        if column not in table:
            raise unknown("column", column, map(str, table.columns))
    cells = pd.DataFrame(
        {name: _cells(table[name], digits, formats.get(str(name))) for name in table.columns}
    )
    numeric = [name for name in table.columns if _is_number(table[name])]
    return _draw(cells, numeric, caption, marks, table)


def _cells(column: "pd.Series[Any]", digits: int, form: Format | None) -> list[str]:
    """Return the HTML of each cell of a column."""
    if form is None:
        real, whole = is_float_dtype(column), is_integer_dtype(column)
        form = f"{{:z,.{digits}f}}" if real else "{:,}" if whole else "{}"
    write = form.format if isinstance(form, str) else form
    cells = []
    for value in column:
        if isinstance(value, Html):
            cells.append(value.html)
        elif column.name == "evidence":
            cells.append(badge(value))
        else:
            cells.append("–" if pd.isna(value) else escape(write(value)))
    if _is_number(column):
        return [re.sub(r" (\[.*\])$", r"<br><small>\1</small>", cell) for cell in cells]
    return cells


def show_scores(
    scores: pd.DataFrame,
    caption: str,
    *,
    digits: int = 3,
    evidence: str | Sequence[str] | None = None,
) -> Html:
    """Draw scores as a row a method and a column a data set, each with its interval below it.

    The lowest score of a data set is bold where it is significantly lower than all others; where
    several may be the best they are marked ``≈``. Oracles do not compete. Cells of probes have a
    tint and a letter by shift. Where no two questions differ, nothing is marked. The data sets
    stand under their domains. What is not said here is as in :func:`show`.

    ``scores`` are those of ``results.score``: one row a (dataset, method), as columns or as the
    index, and ``brier``; where they are there, also ``low`` and ``high``, ``may_be_best``,
    ``missing`` and ``questions``, ``varies`` (some questions differ in expected accuracy), and
    ``evidence``. A column ``cost`` stands beside the methods; ``printed``, "best" or "second", is
    shown as papers print it, bold or underlined."""
    table = scores.reset_index() if any(scores.index.names) else scores
    marks = _evidence(table, caption, evidence)
    names = table["dataset"].unique().tolist()
    found = {name: load_dataset(name) for name in names if name in dataset_names()}
    domains = {name: found[name].domain if name in found else "other" for name in names}
    names = sorted(names, key=lambda name: [*DOMAINS, "other"].index(domains[name]))
    best = table.get("may_be_best", pd.Series(False, table.index)).fillna(False).astype(bool)
    best &= ~table["method"].isin(NOT_COMPETING)
    alone = best.groupby(table["dataset"]).transform("sum") == 1
    spelt = table.assign(best=best, alone=alone)
    if "missing" in table:
        spelt["missing"] /= table.groupby("dataset")["questions"].transform("max")
    spelt["cell"] = [_spell(row, digits) for row in spelt.to_dict("records")]
    wide = spelt.pivot(index="method", columns="dataset", values="cell")[names].fillna("–")
    methods = sorted(table["method"].unique(), key=lambda name: name.startswith("Oracle"))
    wide = wide.loc[methods].rename(columns=lambda name: getattr(found.get(name), "title", name))
    numeric = list(wide.columns)
    if "cost" in table:
        cost = table.drop_duplicates("method").set_index("method")["cost"]
        wide.insert(0, "Cost", [escape(str(cost[name])) for name in methods])
    spans = [(one, len(list(same))) for one, same in groupby(domains[name] for name in names)]
    above = "".join(f"<th scope='colgroup' colspan='{n}'>{escape(one)}</th>" for one, n in spans)
    above = f"<tr><td colspan='{wide.shape[1] + 1 - len(names)}'></td>{above}</tr>"
    wide.insert(0, "Method", [escape(name) for name in methods])
    return _draw(
        wide,
        ["Cost", *numeric],
        caption,
        marks,
        table,
        above=above if len(spans) > 1 else "",
        legend=_legend("".join(spelt["cell"])),
    )


def _spell(row: Mapping[Hashable, Any], digits: int) -> str:
    """Write a score with its marks, its interval, and the share of confidences missing."""
    if pd.isna(row["brier"]):
        return "–"
    text = f"{row['brier']:z.{digits}f}"
    if not row.get("varies", True):
        return f"{text}<sup>‡</sup>"
    if (row["best"] and row["alone"]) or row.get("printed") == "best":
        text = f"<strong>{text}</strong>"
    elif row["best"]:
        text = f"≈ {text}"
    elif row.get("printed") == "second":
        text = f"<u>{text}</u>"
    if far := shift(str(row["method"]), str(row["dataset"])):
        css = far.replace(" ", "-")
        text = f"<span class='{css}'>{text}</span><sup>{SHIFT_LETTERS[far]}</sup>"
    if not pd.isna(row.get("low")):
        text += f"<br><small>[{row['low']:z.{digits}f}, {row['high']:z.{digits}f}]</small>"
    if row.get("missing"):
        text += f"<br><small>{row['missing']:.1%} missing</small>"
    return text


def _legend(text: str) -> str:
    """Say what the marks of cells mean, of those that they have."""
    said = [meaning for mark, meaning in LEGEND.items() if mark in text]
    shifts = [f"{a} {far}" for far, a in SHIFT_LETTERS.items() if f"<sup>{a}</sup>" in text]
    said += [f"probes: {', '.join(shifts)}"] if shifts else []
    legend = "; ".join(said)
    return f"{legend[:1].upper()}{legend[1:]}." if said else ""


def intervals(table: pd.DataFrame, estimate: str, digits: int) -> "pd.Series[str]":
    """Spell a column of estimates with its interval, from the columns ``low`` and ``high``.

    >>> gains = pd.DataFrame({"gain": [1.25], "low": [-0.5], "high": [3.0]})
    >>> intervals(gains, "gain", 1).tolist()
    ['1.2 [-0.5, 3.0]']
    """
    spelt = table[[estimate, "low", "high"]].map(f"{{:z.{digits}f}}".format)
    return spelt[estimate] + " [" + spelt["low"] + ", " + spelt["high"] + "]"


def csv_link(table: pd.DataFrame, name: str, text: str = "CSV") -> str:
    """Write a link under which a browser saves a table, without its index, and without cells that a
    spreadsheet would take for formulas.

    >>> csv_link(pd.DataFrame({"k": [1]}), "All of them.").split(" href")[0]
    "<a class='capcal-csv' download='all-of-them.csv'"
    """

    def guard(value: object) -> object:
        formula = isinstance(value, str) and FORMULA.match(value) and not NUMBER.fullmatch(value)
        return f"'{value}" if formula else value

    guarded = table.map(guard).rename(columns=guard)
    file = re.sub(r"\W+", "-", name.lower()).strip("-")[:48] or "table"
    data = b64encode(guarded.to_csv(index=False).encode()).decode()
    href = f"data:text/csv;base64,{data}"
    return f"<a class='capcal-csv' download='{file}.csv' href='{href}'>{escape(text)}</a>"


def _evidence(table: pd.DataFrame, caption: str, evidence: str | Sequence[str] | None) -> list[str]:
    if not len(table):
        raise InputError(f"there is nothing to show under {caption!r}; leave the table out")
    if evidence is None:
        evidence = table["evidence"].unique().tolist() if "evidence" in table else []
    marks = [evidence] if isinstance(evidence, str) else list(evidence)
    if not marks and any(map(is_numeric_dtype, table.dtypes)):
        known = ", ".join(get_args(Evidence))
        raise InputError(f"the numbers under {caption!r} name no evidence; known: {known}")
    return marks


def _is_number(column: "pd.Series[Any]") -> bool:
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return True
    there = [value for value in column if not pd.isna(value) and value not in ("", "–")]
    return bool(there) and all(isinstance(one, str) and NUMBER.fullmatch(one) for one in there)


def _draw(
    cells: pd.DataFrame,
    numeric: Container[object],
    caption: str,
    marks: Sequence[str],
    table: pd.DataFrame,
    *,
    above: str = "",
    legend: str = "",
) -> Html:
    """Put cells of HTML under their heads, and a row ``above`` these: the first ones open, the
    others folded.
    """
    label = escape(caption)
    css = [" class='number'" if name in numeric else "" for name in cells.columns]
    heads = [
        f"<th scope='col'{kind}>{escape(str(name))}</th>" if name else "<td></td>"
        for name, kind in zip(cells.columns, css, strict=True)
    ]
    rows = []
    for first, *others in cells.itertuples(index=False, name=None):
        row = "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(others, css[1:], strict=True))
        rows.append(f"<tr><th scope='row'{css[0]}>{first}</th>{row}</tr>")
    start = "<div class='capcal-scroll' tabindex='0' role='group'>"
    start += f"<table class='capcal{' scores' * bool(legend)}' aria-label='{label}'>"
    start += f"<thead>{above}<tr>{''.join(heads)}</tr></thead><tbody>"
    html = f"{start}{''.join(rows[:ROWS])}</tbody></table></div>"
    if rest := rows[ROWS:]:
        html += f"<details><summary>{len(rest)} more rows</summary>{start}{''.join(rest)}"
        html += "</tbody></table></div></details>"
    html += f"<p class='capcal-legend'>{legend}</p>" if legend else ""
    said = " ".join([label, *map(badge, marks), csv_link(table, caption)])
    return Html(f"<figure class='capcal-table'><figcaption>{said}</figcaption>{html}</figure>")
