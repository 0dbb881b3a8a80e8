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
OTHER = "other"  # domain of a data set that is not known
WRAPS = {  # how a cell of this class is marked
    "best": "<strong>{}</strong>",
    "may-be-best": "≈ {}",
    "second": "<u>{}</u>",
    "beats-uniform": "<strong>{}</strong>",
}
LEGEND = {  # what each mark means, in the order of the legend
    "interval": "in brackets: 95 % interval",
    "few": "†: a few questions carry it, and it may be too narrow",
    "best": "<strong>bold</strong>: significantly lower than every other method",
    "may-be-best": "≈: not significantly worse than the lowest",
    "second": "<u>underlined</u>: second lowest",
    "alike": "grey: all questions are alike, so nothing is compared",
    "printed": "<strong>bold</strong>: lowest printed, <u>underlined</u>: second lowest",
    "beats-uniform": "<strong>bold</strong>: significantly lower than Uniform random",
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
    datasets = _by_domain(table["dataset"])
    compared = _compared(table).to_dict("records")
    cells = {(row["method"], row["dataset"]): _score(row, digits) for row in compared}
    costs = dict(zip(table["method"], table["cost"], strict=True)) if "cost" in table else {}
    heads = [_head("Method", False)]
    widths = [METHOD_REM]
    if costs:
        heads.append(_head("Cost", True))
        widths.append(COST_REM)
    above = _domains([domain for domain, _ in datasets.values()], widths)
    heads += [_head(title, True) for _, title in datasets.values()]
    names = dict.fromkeys(table["method"])
    rows = []
    for method in sorted(names, key=lambda name: str(name).startswith("Oracle")):  # last
        row = [("", escape(str(method)))]
        if costs:
            row.append(("number", escape(str(costs[method]))))
        row += [cells.get((method, name), ("number", "–")) for name in datasets]
        rows.append(_row(row))
    bare = "low" not in table or bool(table["low"].isna().all())
    width = sum(widths) + (BARE_REM if bare else SCORE_REM) * len(datasets)
    style = f" style='width:{width:.1f}rem'"
    shown = _figure([*above, *heads], rows, caption, marks, table, kind="scores", style=style)
    legend = _legend(list(cells.values()), printed="printed" in table)
    return Html(shown.html.replace("</figure>", f"{legend}</figure>"))


def _by_domain(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the domain and the title of each data set, those of one domain side by side."""
    known = dataset_names()
    found = {}
    for name in dict.fromkeys(names):
        found[name] = (OTHER, str(name))
        if name in known:
            dataset = load_dataset(name)
            found[name] = (dataset.domain, dataset.title)
    order = {domain: place for place, domain in enumerate(DOMAINS)}
    return dict(sorted(found.items(), key=lambda item: order.get(item[1][0], len(order))))


def _compared(table: pd.DataFrame) -> pd.DataFrame:
    """Say of each score how it stands among those of its data set: ``mark``, ``second`` lowest, and
    of how many questions that were ``asked`` it was taken.
    """
    table = table.copy()
    datasets = table["dataset"]
    if "missing" in table:
        table["asked"] = table.groupby("dataset")["questions"].transform("max")
    if "may_be_best" in table:
        competing = ~table["method"].isin(NOT_COMPETING)
        best = table["may_be_best"].astype(bool)
        alone = best.groupby(datasets).transform("sum") == 1
        table["mark"] = ""
        table.loc[best & competing, "mark"] = "may-be-best"
        table.loc[best & competing & alone, "mark"] = "best"
        place = table["brier"].where(competing).groupby(datasets).rank(method="first")
        table["second"] = place == 2
    return table


def intervals(table: pd.DataFrame, estimate: str, digits: int) -> "pd.Series[str]":
    """Spell a column of estimates with its interval, from the columns ``low`` and ``high``.

    >>> gains = pd.DataFrame({"gain": [1.25], "low": [-0.5], "high": [3.0]})
    >>> intervals(gains, "gain", 1).tolist()
    ['1.2 [-0.5, 3.0]']
    """
    number = f"{{:z.{digits}f}}"
    spelt = table[[estimate, "low", "high"]].map(number.format)
    return spelt[estimate] + " [" + spelt["low"] + ", " + spelt["high"] + "]"


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
    there = [value for value in column if not pd.isna(value) and value not in ("", "–")]
    return bool(there) and all(
        isinstance(value, str) and NUMBER.fullmatch(value) for value in there
    )


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
    cells = []
    for value in column:
        if isinstance(value, Html):
            cells.append(value.html)
        else:
            cells.append("–" if pd.isna(value) else escape(write(value)))
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


def _score(row: Mapping[Hashable, Any], digits: int) -> tuple[str, str]:
    """Return the class and the HTML of a score: the number, its interval, and the share of
    confidences missing.
    """
    if pd.isna(row["brier"]):
        return "number", "–"
    text = f"{row['brier']:z.{digits}f}"
    if not row.get("varies", True):
        return "number alike", text
    css = ["second"] if row.get("second") else []
    if row.get("mark"):
        css.append(row["mark"])
    if row.get("beats_uniform"):
        css.append("beats-uniform")
    for name in css:
        text = WRAPS[name].format(text)
    if row.get("printed") in ("best", "second"):
        text = WRAPS[row["printed"]].format(text)
    if far := shift(str(row["method"]), str(row["dataset"])):
        css.append(far.replace(" ", "-"))
    if not pd.isna(row.get("low")):
        few = "†" if row.get("few") else ""
        text += f"<small>[{row['low']:z.{digits}f}, {row['high']:z.{digits}f}]{few}</small>"
    if row.get("missing"):
        text += f"<small>{row['missing'] / row['asked']:.1%} missing</small>"
    return " ".join(["number", *css]), text


def _legend(cells: Sequence[tuple[str, str]], *, printed: bool) -> str:
    """Say what the marks of a table mean, of those that it has."""
    names = {name for css, _ in cells for name in css.split()}
    text = "".join(html for _, html in cells)
    if "<small>[" in text:
        names.add("interval")
    if "]†" in text:
        names.add("few")
    if printed:
        names.add("printed")
    said = [meaning for name, meaning in LEGEND.items() if name in names]
    tints = {far.replace(" ", "-"): far for far in SHIFTS}
    shifts = [f"<span class='{css}'>{far}</span>" for css, far in tints.items() if css in names]
    if shifts:
        said.append(f"probes: {', '.join(shifts)}")
    legend = "; ".join(said)
    if said:
        return f"<p class='capcal-legend'>{legend[:1].upper()}{legend[1:]}.</p>"
    return ""


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
    label = escape(caption)
    css = f"capcal {kind}".strip()

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
