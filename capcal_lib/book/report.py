"""What confidences are worth on counted questions, as one HTML page that needs no network and runs
no script.
"""

import base64
import io
import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from capcal_lib.applications import allocate
from capcal_lib.applications.budget import success_terms
from capcal_lib.book.style import set_style
from capcal_lib.errors import sanitize
from capcal_lib.manifests import write_text
from capcal_lib.metrics import Interval, isotonic_split, mean_interval, smooth_ece
from capcal_lib.plots import PassAtKDisplay, ReliabilityDisplay, known_color
from capcal_lib.results.score_file import MEANINGS, NUMBERS, spell_cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 20_000  # questions at most behind the figures and the allocations
BUDGETS = (1, 2, 4, 8, 16)  # mean samples a question
COLUMNS, SIDE = 3, 2.6  # figures of reliability in a row, and their size in inches
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>Capability calibration</title><style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  color: light-dark(#1a1a1a, #e6e6e6); background: light-dark(#fff, #16181c) }}
h1, h2, h3 {{ line-height: 1.25; overflow-wrap: anywhere }}
div {{ overflow-x: auto }}
table {{ border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums }}
td {{ white-space: nowrap }}
td, th {{ padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #8886 }}
th:first-child {{ text-align: left }}
img {{ max-width: 100% }}
@media (prefers-color-scheme: dark) {{ img {{ filter: invert(1) hue-rotate(180deg) }} }}
</style></head><body><h1>Capability calibration</h1>
<p>Confidences are compared with expected accuracy μ, the chance that a fresh sample is right.
Intervals are 95 % intervals for questions like these.</p>
{}{}{}</body></html>
"""
MARKS = "osD^v<>P*X"


def write_report(
    path: Path,
    parts: Mapping[str, tuple[pd.DataFrame, pd.DataFrame]],
    lines: Iterable[str] = (),
    files: Iterable[Path] = (),
) -> None:
    """Write a page with a chapter a part: scores, decomposition, reliability, pass@k and the gain
    of allocating by it.

    A part has a title, a table of scores that is shown as it is, and its questions: ``correct``,
    ``total``, then a column a method with its confidences. ``lines`` stand first, what was scored
    last, with the digests of ``files``. Names may come from anywhere; all are escaped. A path that
    is there and no regular file is refused."""
    stated = "".join(f"<p>{escape(sanitize(line, 1_000))}</p>" for line in lines)
    chapters = "".join(_chapter(title, *part) for title, part in parts.items())
    digests = [
        f"{escape(sanitize(file))} (SHA-256 {sha256(file.read_bytes()).hexdigest()})"
        for file in files
        if file.is_file()
    ]
    made = f"capcal {version('capcal')}, {datetime.now(UTC):%Y-%m-%d}"
    write_text(path, _PAGE.format(stated, chapters, f"<p>{', '.join([made, *digests])}</p>"))


def _chapter(title: str, scores: pd.DataFrame, questions: pd.DataFrame) -> str:
    known = questions[questions["total"] > 1].reset_index(drop=True)
    known = known.select_dtypes("number")
    known.columns = pd.Index([sanitize(name, 100) for name in known])
    names = [str(name) for name in known if name not in NUMBERS[1:] and known[name].notna().any()]
    shown = [*map(str, scores.index), *map(str, scores)]
    meanings = "; ".join(
        f"{name}: {meaning}"
        for name, meaning in MEANINGS.items()
        if any(name.rstrip("k") in f"capability {head}" for head in shown)
    )
    explained = f"<p><small>{escape(meanings)}</small></p>"
    body = [f"<h2>{escape(sanitize(title))}</h2>", _html(scores), explained]
    if known.empty:
        return "".join([*body, "<p>No question has two scored samples.</p>"])
    if not names:
        return "".join([*body, _pass_at_k(known, {})])
    triples = {name: known[[name, *NUMBERS[1:]]].dropna() for name in names}
    split = {
        name: isotonic_split(*triple.to_numpy().T, corrected=True)._asdict()
        | {"smooth ECE, plug-in": smooth_ece(*triple.to_numpy().T)}
        for name, triple in triples.items()
    }
    body += [
        "<h3>Decomposition</h3><p>The corrected score is miscalibration, which recalibration can "
        "remove, less "
        "discrimination, plus uncertainty, the variance of μ over questions (isotonic "
        "regression).</p>",
        _html(pd.DataFrame(split).T.rename(columns={"score": "Brier, corrected"})),
    ]
    if len(known) > SHOWN:
        known = known.sample(SHOWN, random_state=0)
        triples = {name: known[[name, *NUMBERS[1:]]].dropna() for name in names}
        body.append(f"<p>What follows is computed on {SHOWN:,} questions drawn at random.</p>")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a name in letters that the font lacks
        body += [_reliability(triples), _pass_at_k(known, triples), _gains(triples)]
    return "".join(body)


def _reliability(triples: Mapping[str, pd.DataFrame]) -> str:
    rows = -(-len(triples) // COLUMNS)

    def draw(plt: Any) -> "Figure":
        figure: Figure = plt.figure(figsize=(SIDE * COLUMNS, SIDE * rows))
        colors = _colors(triples)
        for place, (name, triple) in enumerate(triples.items(), start=1):
            ax = figure.add_subplot(rows, COLUMNS, place, title=name)
            ReliabilityDisplay.from_counts(*triple.to_numpy().T, ax=ax, color=colors[name])
        return figure

    text = (
        "The mean expected accuracy of questions in ten bins of their confidence, with its "
        "interval, above how the confidences are spread. On the dotted line a confidence is right "
        "on average."
    )
    return _figure("Reliability", text, draw)


def _pass_at_k(known: pd.DataFrame, triples: Mapping[str, pd.DataFrame]) -> str:
    table = pd.DataFrame()

    def draw(plt: Any) -> "Figure":
        figure: Figure
        figure, ax = plt.subplots()
        measured = PassAtKDisplay.from_counts(None, known["correct"], known["total"], ax=ax)
        for _, row in measured.curve.iterrows():
            found = Interval(row["measured"], row["low"], row["high"])
            table.loc[f"k = {row['k']:.0f}", "measured"] = _spell(found)
        for (name, color), mark in zip(_colors(triples).items(), cycle(MARKS[1:]), strict=False):
            triple = triples[name].to_numpy().T
            promised = PassAtKDisplay.from_counts(*triple, name=name, ax=ax, color=color)
            ax.get_lines()[-1].set_marker(mark)
            ax.legend()
            table[name] = promised.curve["promised"].to_numpy()[: len(table)]
        return figure

    text = (
        "pass@k as measured, without bias, and as each confidence s promises it: the mean of "
        "1 − (1 − s)^k."
    )
    drawn = _figure("pass@k", text, draw)
    return drawn + _html(table)


def _gains(triples: Mapping[str, pd.DataFrame]) -> str:
    table = pd.DataFrame()
    for name, triple in triples.items():
        counts = triple["correct"], triple["total"]
        for budget in (budget for budget in BUDGETS if budget <= triple["total"].min()):
            plan = allocate(triple[name], budget * len(triple), max_per_question=triple["total"])
            gain = success_terms(plan, *counts) - success_terms(budget, *counts)
            table.loc[f"{budget} a question", name] = _spell(mean_interval(gain), 100, 1)
    text = (
        "Points of questions solved beyond an even division, when samples are divided by "
        "the confidence."
    )
    return f"<h3>Gain of allocating samples</h3><p>{text}</p>{_html(table)}"


def _colors(names: Iterable[str]) -> dict[str, str]:
    """Return the colours of methods: those of the book, and of others one apart from the other."""
    own = iter(cycle(f"C{place}" for place in range(10)))
    return {name: known_color(name) or next(own) for name in names}


def _spell(interval: Interval, unit: int = 1, digits: int = 3) -> str:
    estimate, low, high = (f"{unit * end:z.{digits}f}" for end in interval[:3])
    return f"{estimate} [{low}, {high}]"


def _html(table: pd.DataFrame) -> str:
    plain = table.rename_axis(index=None, columns=None).rename(
        columns=lambda name: str(name).replace("_", " ")
    )
    html = plain.map(spell_cell).to_html(border=0)
    return f"<div>{html}</div>"


def _figure(title: str, text: str, draw: Callable[[Any], "Figure"]) -> str:
    """Draw a figure as SVG inside an image, where nothing in it can run."""
    import matplotlib.pyplot as plt

    with plt.rc_context(), io.BytesIO() as file:
        set_style()
        figure = draw(plt)
        figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)
        data = base64.b64encode(file.getvalue()).decode()
    alt = escape(text)
    return (
        f"<h3>{escape(title)}</h3><p>{alt}</p>"
        f'<img alt="{alt}" src="data:image/svg+xml;base64,{data}">'
    )
