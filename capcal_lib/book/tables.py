"""Draw tables as HTML that works without a network: escaped, captioned with their evidence, and
offered as CSV.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any, Literal, get_args
from zlib import crc32

import pandas as pd
from pandas.api.types import is_bool_dtype, is_float_dtype, is_integer_dtype, is_numeric_dtype

from capcal_lib.book.style import SHIFTS, shift
from capcal_lib.errors import InputError, unknown
from capcal_lib.manifests import DOMAINS, dataset_names, load_dataset

Evidence = Literal["measured", "reported", "read off", "simulated"]
Format = str | Callable[[object], str]
ROWS = 20  # that a table shows unfolded
NUMBER = re.compile(
    r"[-−+±<>≥≤≈~]?[\d,.]+( ?%)?( \[.*\])?"
)  # and an interval, which is set below it
METHOD_REM, COST_REM = (
    7.8,
    2.6,
)  # widths of columns, for a page's column of 42 rem at 1280: it holds
SCORE_REM, BARE_REM = 5.65, 4.5  # six scores with their intervals, or seven without
NOT_COMPETING = ("Oracle RC", "Oracle CC")


@dataclass(frozen=True, slots=True)
class Html:
    """Something that a notebook shows as it is."""

    html: str

    def _repr_html_(self) -> str:
        return self.html


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
    """Draw a table of one row or more.

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
    >>> "<td class='number'>0.123</td>" in show(table, "Scores.", evidence="measured").html
    True
    """
    if any(name is not None for name in table.index.names):
        table = table.reset_index()
    marks = _marks(table, caption, evidence)
    if "evidence" in table and len(marks) < 2:
        table = table.drop(columns="evidence")
    for column in formats:
        if column not in table:
            raise unknown("column", column, map(str, table.columns))
    cells = {name: _cells(table[name], digits, formats.get(str(name))) for name in table.columns}
    heads = [_head(str(name), _is_number(table[name])) for name in table.columns]
    return _figure(
        heads, [_row(row) for row in zip(*cells.values(), strict=True)], caption, marks, table
    )


def show_scores(
    scores: pd.DataFrame,
    caption: str,
    *,
    digits: int = 3,
    evidence: str | Sequence[str] | None = None,
) -> Html:
    """Draw scores as a row a method and a column a data set, each with its interval below it.

    The lowest score of a data set is bold where it is significantly lower than all others; where
    several may be the best they are marked ``≈``; the second lowest is underlined. Oracles do not
    compete. Cells of probes are tinted by shift. Where no two questions differ, cells are grey and
    nothing is marked. The data sets stand under their domains. What is not said here is as in
    :func:`show`.

    ``scores`` are those of ``results.score``: one row a (dataset, method), as columns or as the
    index, and ``brier``; where they are there, also ``low`` and ``high``, ``may_be_best``,
    ``missing`` and ``questions``, ``few``, ``varies`` (some questions differ in expected accuracy),
    and ``evidence``. A column ``cost`` stands beside the
    methods; ``printed``, "best" or "second", is shown as papers print it, bold or underlined;
    ``beats_uniform`` says what is to be bold in place of the best."""
    table = scores.reset_index() if any(scores.index.names) else scores
    marks = _marks(table, caption, evidence)
    methods = sorted(
        dict.fromkeys(table["method"]), key=lambda name: str(name).startswith("Oracle")
    )  # last
    order = {domain: place for place, domain in enumerate(DOMAINS)}
    known = {
        name: load_dataset(name)
        for name in dict.fromkeys(table["dataset"])
        if name in dataset_names()
    }
    datasets = sorted(
        dict.fromkeys(table["dataset"]),
        key=lambda name: order.get(known[name].domain, 9) if name in known else 9,
    )
    alone = _best_alone(table)
    if "may_be_best" in table:
        table = table.assign(second=_second(table))
    if "missing" in table:  # of all questions: the most that a method scored
        table = table.assign(asked=table.groupby("dataset")["questions"].transform("max"))
    cells = {
        (row["method"], row["dataset"]): _score(
            row, digits, row["dataset"] in alone, row["dataset"] in known
        )
        for row in table.to_dict("records")
    }
    costs = dict(zip(table["method"], table["cost"], strict=True)) if "cost" in table else {}
    heads = [_head("Method", False), *([_head("Cost", True)] if costs else [])]
    above = _domains(
        [known[name].domain if name in known else "" for name in datasets],
        [METHOD_REM, COST_REM][: len(heads)],
    )
    heads += [_head(known[name].title if name in known else str(name), True) for name in datasets]
    rows = []
    for method in methods:
        cost = [("number", escape(str(costs[method])))] if costs else []
        scored = [cells.get((method, name), ("number", "–")) for name in datasets]
        rows.append(_row([("", escape(str(method))), *cost, *scored]))
    bare = "low" not in table or bool(table["low"].isna().all())
    width = METHOD_REM + COST_REM * bool(costs) + (BARE_REM if bare else SCORE_REM) * len(datasets)
    shown = _figure(
        [*above, *heads], rows, caption, marks, table, "scores", f" style='width:{width:.1f}rem'"
    )
    return Html(shown.html.replace("</figure>", f"{_legend(table, cells.values())}</figure>"))


def csv_link(table: pd.DataFrame, name: str, text: str = "CSV") -> str:
    """Write a link under which a browser saves a table, without its index.

    >>> csv_link(pd.DataFrame({"k": [1]}), "All of them.").split(" href")[0]
    "<a class='capcal-csv' download='all-of-them.csv'"
    """
    file = re.sub(r"\W+", "-", name.lower()).strip("-")[:48] or "table"
    data = b64encode(table.to_csv(index=False).encode()).decode()
    href = f"data:text/csv;base64,{data}"
    return f"<a class='capcal-csv' download='{file}.csv' href='{href}'>{escape(text)}</a>"


def tabs(parts: Mapping[str, Sequence[Html]]) -> Html:
    """Put what is shown under the name of its tab; the first tab is open.

    >>> tabs({"one": [Html("<p>1</p>")], "two": [Html("<p>2</p>")]}).html.count("checked")
    1
    """
    group = "tabs-" + crc32("".join(parts).encode()).to_bytes(4).hex()
    html = ""
    for number, (name, shown) in enumerate(parts.items()):
        here = f"{group}-{number}"
        checked = "" if number else " checked"
        html += f"<input type='radio' name='{group}' id='{here}'{checked}>"
        html += f"<label class='sd-tab-label' for='{here}'>{escape(name)}</label>"
        content = "".join(part.html for part in shown)
        html += f"<div class='sd-tab-content docutils'>{content}</div>"
    return Html(f"<div class='sd-tab-set docutils'>{html}</div>")


def strip(intervals: pd.DataFrame, label: str) -> Html:
    """Draw intervals (``estimate``, ``low``, ``high``) as a small plot for a card: a row each, with
    a line at zero.

    Names in the index stand before the rows; a plain one has none. The ``label`` is a sentence that
    says what is seen.

    >>> strip(pd.DataFrame({"estimate": [0.1], "low": [-0.1], "high": [0.3]}),
    ...     "A gain.").html.count("<circle")
    1
    """
    named = not isinstance(intervals.index, pd.RangeIndex)
    intervals = intervals[["estimate", "low", "high"]].dropna()
    step, left = (20.0, 148) if named else (min(6.0, 180 / max(1, len(intervals))), 6)
    least, most = min(0.0, intervals["low"].min()), max(0.0, intervals["high"].max())
    height = round(step * len(intervals) + 6)

    def at(value: float) -> str:
        return f"{left + (354 - left) * (value - least) / ((most - least) or 1):.1f}"

    marks = f"<line class='zero' x1='{at(0)}' x2='{at(0)}' y1='0' y2='{height}'/>"
    for place, (name, mean, low, high) in enumerate(intervals.itertuples()):
        kind, y = (
            "up" if low > 0 else "down" if high < 0 else "even",
            round(step * (place + 0.5) + 3, 1),
        )
        marks += f"<g class='{kind}'><line x1='{at(low)}' x2='{at(high)}' y1='{y}' y2='{y}'/>"
        marks += f"<circle cx='{at(mean)}' cy='{y}' r='2.5'/></g>"
        marks += f"<text x='0' y='{y + 5}'>{escape(str(name))}</text>" if named else ""
    said = escape(label)
    svg = f"<svg viewBox='0 0 360 {height}' role='img' aria-label='{said}'>{marks}</svg>"
    return Html(f"<figure class='capcal-strip'>{svg}<figcaption>{said}</figcaption></figure>")


def _domains(domains: Sequence[str], before: Sequence[float]) -> list[str]:
    """Return the head row that names the domain of neighbouring columns; none where all are of one
    domain.

    The first row of a table decides the widths of its columns: ``before`` are those before the
    scores, in rem."""
    if len(set(domains)) < 2:
        return []
    spans = [(domain, len(list(same))) for domain, same in groupby(domains)]
    cells = [
        f"<th scope='colgroup' colspan='{span}'>{escape(domain or 'other')}</th>"
        for domain, span in spans
    ]
    return [*(f"<td style='width:{width}rem'></td>" for width in before), *cells, "</tr><tr>"]


def _marks(table: pd.DataFrame, caption: str, evidence: str | Sequence[str] | None) -> list[str]:
    if not len(table):
        raise InputError(f"there is nothing to show under {caption!r}; leave the table out")
    if evidence is None:
        marks = list(dict.fromkeys(table["evidence"])) if "evidence" in table else []
    else:
        marks = [evidence] if isinstance(evidence, str) else list(evidence)
    if not marks and any(map(is_numeric_dtype, table.dtypes)):
        raise InputError(
            f"the numbers under {caption!r} name no evidence; known: "
            f"{', '.join(get_args(Evidence))}"
        )
    return marks


def _is_number(column: "pd.Series[Any]") -> bool:
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return True
    there = [value for value in column if not _missing(value) and value not in ("", "–")]
    return bool(there) and all(
        isinstance(value, str) and NUMBER.fullmatch(value) for value in there
    )


def _missing(value: Any) -> bool:
    return value is None or value is pd.NA or value != value


def _cells(column: "pd.Series[Any]", digits: int, form: Format | None) -> list[tuple[str, str]]:
    """Return the class and the HTML of each cell of a column."""
    css = "number" if _is_number(column) else ""
    if column.name == "evidence":
        return [(css, badge(str(value))) for value in column]
    if form is None:
        form = (
            f"{{:z,.{digits}f}}"
            if is_float_dtype(column)
            else "{:,}"
            if is_integer_dtype(column)
            else "{}"
        )
    write = form.format if isinstance(form, str) else form
    cells = ["–" if _missing(value) else escape(write(value)) for value in column]
    return [
        (css, re.sub(r" (\[.*\])$", r"<small>\1</small>", cell) if css else cell) for cell in cells
    ]


def _head(name: str, number: bool) -> str:
    if not name:
        return "<td></td>"
    return f"<th scope='col'{_css('number' if number else '')}>{escape(name)}</th>"


def _row(cells: Iterable[tuple[str, str]]) -> str:
    (css, first), *rest = cells
    others = "".join(f"<td{_css(css)}>{html}</td>" for css, html in rest)
    return f"<tr><th scope='row'{_css(css)}>{first}</th>{others}</tr>"


def _css(names: str) -> str:
    return f" class='{names}'" if names else ""


def _best_alone(table: pd.DataFrame) -> set[str]:
    """Return the data sets on which one method alone may be the best."""
    if "may_be_best" not in table:
        return set()
    number = table[table["may_be_best"].astype(bool)].groupby("dataset")["method"].nunique()
    return set(number.index[number == 1])


def _second(table: pd.DataFrame) -> "pd.Series[bool]":
    """Say of each row whether its score is the second lowest of its data set, oracles aside."""
    competing = table[~table["method"].isin(NOT_COMPETING)]
    place = competing.groupby("dataset")["brier"].rank(method="first")
    return place.eq(2).reindex(table.index, fill_value=False)


def _score(row: Mapping[Hashable, Any], digits: int, alone: bool, known: bool) -> tuple[str, str]:
    """Return the class and the HTML of a score: the number, its interval, and the share of
    confidences missing.
    """
    if _missing(row["brier"]):
        return "number", "–"
    text, css = f"{row['brier']:z.{digits}f}", ["number"]
    if not row.get("varies", True):
        return "number alike", text
    if row.get("second"):
        css.append("second")
        text = f"<u>{text}</u>"
    if row.get("may_be_best") and row["method"] not in NOT_COMPETING:
        css.append("best" if alone else "may-be-best")
        text = f"<strong>{text}</strong>" if alone else f"≈ {text}"
    if row.get("printed") in ("best", "second"):
        tag = "strong" if row["printed"] == "best" else "u"
        text = f"<{tag}>{text}</{tag}>"
    if row.get("beats_uniform"):
        text = f"<strong>{text}</strong>"
        css.append("beats-uniform")
    if (far := shift(str(row["method"]), str(row["dataset"])) if known else None) is not None:
        css.append(far.replace(" ", "-"))
    if not _missing(row.get("low")):
        few = "†" if row.get("few") else ""
        text += f"<small>[{row['low']:z.{digits}f}, {row['high']:z.{digits}f}]{few}</small>"
    if row.get("missing"):
        text += f"<small>{row['missing'] / row['asked']:.1%} missing</small>"
    return " ".join(css), text


def _legend(table: pd.DataFrame, cells: Iterable[tuple[str, str]]) -> str:
    css = " ".join(names for names, _ in cells).split()
    said = ["in brackets: 95 % interval"] if "low" in table and table["low"].notna().any() else []
    said += (
        ["†: a few questions carry it, and it may be too narrow"]
        if "few" in table and table["few"].any()
        else []
    )
    said += (
        ["<strong>bold</strong>: significantly lower than every other method"]
        if "best" in css
        else []
    )
    said += ["≈: not significantly worse than the lowest"] if "may-be-best" in css else []
    said += ["<u>underlined</u>: second lowest"] if "second" in css else []
    said += ["grey: all questions are alike, so nothing is compared"] if "alike" in css else []
    said += (
        ["<strong>bold</strong>: lowest printed, <u>underlined</u>: second lowest"]
        if "printed" in table
        else []
    )
    said += (
        ["<strong>bold</strong>: significantly lower than Uniform random"]
        if "beats-uniform" in css
        else []
    )
    shifts = [
        f"<span class='{name}'>{far}</span>"
        for far in SHIFTS
        if (name := far.replace(" ", "-")) in css
    ]
    said += [f"probes: {', '.join(shifts)}"] if shifts else []
    text = "; ".join(said)
    return f"<p class='capcal-legend'>{text[0].upper()}{text[1:]}.</p>" if text else ""


def _figure(
    heads: Sequence[str],
    rows: Sequence[str],
    caption: str,
    marks: Sequence[str],
    table: pd.DataFrame,
    kind: str = "",
    style: str = "",
) -> Html:
    """Put rows under their heads: the first ones open, the others folded; caption, evidence and CSV
    above.
    """
    link = csv_link(table, caption)
    label, css = escape(caption), f"capcal {kind}".strip()

    def body(part: Sequence[str]) -> str:
        head = f"<thead><tr>{''.join(heads)}</tr></thead>"
        table = (
            f"<table class='{css}' aria-label='{label}'{style}>"
            f"{head}<tbody>{''.join(part)}</tbody></table>"
        )
        return (
            f"<div class='capcal-scroll' tabindex='0' role='group' "
            f"aria-label='{label}'>{table}</div>"
        )

    html = body(rows[:ROWS])
    if rest := rows[ROWS:]:
        html += f"<details><summary>{len(rest)} more rows</summary>{body(rest)}</details>"
    said = " ".join([label, *map(badge, marks), link])
    return Html(f"<figure class='capcal-table'><figcaption>{said}</figcaption>{html}</figure>")
