"""A report on scored confidences: one HTML page that needs no network and runs no script."""

import base64
import io
import re
import warnings
from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from itertools import cycle
from pathlib import Path

import pandas as pd

from capcal_lib.book.style import set_style
from capcal_lib.disk import file_digest, is_file, write_text
from capcal_lib.errors import naming_extra
from capcal_lib.io.score_file import CAPABILITY_PLUG_IN, CORRECTED, GAIN, RESPONSE, Scored
from capcal_lib.plots import PassAtKDisplay, ReliabilityDisplay, known_color
from capcal_lib.text import sanitize, spell_cell

with naming_extra():  # or else the scores would be printed first
    import seaborn  # noqa: F401 -- for set_style
    from matplotlib import rc_context
    from matplotlib.figure import Figure

PANELS_IN_A_ROW, SIDE = 3, 2.6  # figures of reliability in a row, and their size in inches
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
dt {{ font-weight: 600 }}
img {{ max-width: 100% }}
@media (prefers-color-scheme: dark) {{ img {{ filter: invert(1) hue-rotate(180deg) }} }}
</style></head><body><h1>Capability calibration</h1>
<p>Each confidence is compared with the expected accuracy of its question: the chance that a fresh
sample is correct. mu_hat, the share of correct samples among the scored ones, estimates it. All
intervals are 95 % intervals for questions like these.</p>
{}{}<h2>What the words mean</h2><dl>{}</dl><p><small>{}</small></p></body></html>
"""
MEANINGS = {  # of the names in tables
    "accuracy": "The mean of mu_hat over questions.",
    "pass@k": "The chance that at least one of k samples is correct, estimated without bias on the "
    "questions that have k samples.",
    "noise": "The share of the variance of mu_hat over questions that is sampling noise.",
    "best constant": "The mean of mu_hat over the other questions, as the confidence. A useful "
    "confidence beats it.",
    "uniform random": "Uniform random numbers as confidences.",
    "Oracle RC": "The correctness of one sample, 0 or 1, as the confidence.",
    "Oracle CC": "The expected accuracy itself as the confidence.",
    CAPABILITY_PLUG_IN: "The mean of (confidence - mu_hat)^2. Lower is better.",
    CORRECTED: "The mean of (confidence - mu_hat)^2, minus what the noise of mu_hat adds. Lower "
    "is better. It may fall below 0 by chance.",
    GAIN: "The corrected score of the best constant minus the corrected score of this confidence. "
    "Higher is better.",
    "noise floor of the plug-in": "What the noise of mu_hat adds to the plug-in score.",
    "miscalibration": "The part of the score that recalibration could remove, fitted to these "
    "questions.",
    "discrimination": "How well the confidences tell questions apart, fitted to these questions. "
    "Higher is better.",
    RESPONSE: "The mean over samples: (confidence - 1)^2 for a correct sample, confidence^2 for "
    "any other. Lower is better.",
    "correctness variance": "The part of the expected response Brier score that no confidence can "
    "remove.",
    "log loss": "The mean over samples: -log(confidence) for a correct sample, "
    "-log(1 - confidence) for any other. Lower is better.",
    "ECE, ten bins": "The mean distance between confidence and mu_hat in ten bins: corrected for "
    "noise, or plug-in as usually reported.",
    "AUROC": "The chance that the question of a correct sample has a higher confidence than the "
    "question of an incorrect one. Higher is better.",
    "Spearman": "The rank correlation of confidence and mu_hat.",
    "missing": "Questions without a confidence.",
    "spread": "The standard deviation of the score over five probes.",
    "Holm": "The gain is tested with Holm's correction over all methods and data sets.",
    "could be won": "Whether a perfect confidence would be significantly better here.",
    "recalibrated": "After Platt scaling on the labels of other questions.",
}
POINT_SHAPES = "sD^v<>P*X"
FIGURES = {
    "Reliability": (
        "The mean expected accuracy of the questions in each of ten bins of confidence, with its "
        "interval. Bars at the foot show how many questions a bin has. On the dotted line a "
        "confidence is right on average."
    ),
    "pass@k": (
        "pass@k as measured, without bias, with its interval. Dashed: pass@k as each confidence s "
        "promises it, the mean of 1 − (1 − s)^k."
    ),
}


def write_report(path: Path, scored: Scored, files: Iterable[Path] = ()) -> None:
    """Write a page with a chapter for each of the ``parts``: scores, reliability and pass@k.

    A part has a title, a table of scores, which is shown as it is, and its questions: ``correct``,
    ``total``, then a column of confidences for each method. The page begins with the lines
    ``below`` the scores and ends with the digests of ``files``. All names are escaped, because they
    may come from anywhere. `InputError` if ``path`` exists and is no regular file."""
    stated = "".join(f"<p>{escape(sanitize(line, 1_000))}</p>" for line in scored.below)
    with rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a name in letters that the font lacks
        set_style()
        chapters = "".join(_chapter(title, *part) for title, part in scored.parts.items())
    digests = [
        f"{escape(sanitize(file))} (SHA-256 {file_digest(file)})" for file in files if is_file(file)
    ]
    meanings = "".join(map(_meaning, _named(table for table, _ in scored.parts.values())))
    made = f"capcal {version('capcal')}, {datetime.now(UTC):%Y-%m-%d}"
    write_text(path, [_PAGE.format(stated, chapters, meanings, ", ".join([made, *digests]))])


def _named(tables: Iterable[pd.DataFrame]) -> list[str]:
    """List the names in ``MEANINGS`` that tables have as heads, row names or words."""
    words: set[str] = set()
    for table in tables:
        words |= {*map(str, table), *map(str, table.index), *table.to_numpy().astype(str).flat}
    text = re.sub(r"pass@\d+", "pass@k", "\n".join(words).replace("_", " ")).lower()
    return [name for name in MEANINGS if name.lower() in text]


def _meaning(name: str) -> str:
    return f"<dt>{escape(name)}</dt><dd>{escape(MEANINGS[name])}</dd>"


def _chapter(title: str, scores: pd.DataFrame, questions: pd.DataFrame) -> str:
    plain = scores.rename(columns=lambda name: name.replace("_", " "))
    table = plain.map(spell_cell).to_html(border=0, index_names=False)
    known = questions[questions["total"] > 1].select_dtypes("number")
    drawn = "<p>No question has two scored samples.</p>" if known.empty else _figures(known)
    return f"<h2>{escape(sanitize(title))}</h2><div>{table}</div>{drawn}"


def _figures(known: pd.DataFrame) -> str:
    """Draw the reliability of each method, and pass@k of all methods."""
    counts = ["correct", "total"]
    methods = known.drop(columns=counts).dropna(axis="columns", how="all").columns
    rows = -(-len(methods) // PANELS_IN_A_ROW)
    reliability, passed = Figure(figsize=(SIDE * PANELS_IN_A_ROW, SIDE * rows)), Figure()
    ax = passed.add_subplot()
    PassAtKDisplay.from_counts(None, known["correct"], known["total"], ax=ax)
    for place, (method, mark) in enumerate(zip(methods, cycle(POINT_SHAPES), strict=False)):
        triple = known[[method, *counts]].dropna().to_numpy().T
        name, color = sanitize(method, 100), known_color(method) or f"C{place}"
        panel = reliability.add_subplot(rows, PANELS_IN_A_ROW, place + 1, title=name)
        ReliabilityDisplay.from_counts(*triple, ax=panel, color=color)
        PassAtKDisplay.from_counts(*triple, name=name, ax=ax, color=color)
        ax.get_lines()[-1].set_marker(mark)
        ax.legend()
    return "".join(map(_image, FIGURES, (reliability, passed)))


def _image(title: str, figure: Figure) -> str:
    """Show a figure as SVG inside an image, so that nothing in it can run; '' for an empty one."""
    if not figure.axes:
        return ""
    file = io.BytesIO()
    figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    data = base64.b64encode(file.getvalue()).decode()
    text = FIGURES[title]
    return f'<h3>{title}</h3><p>{text}</p><img alt="{text}" src="data:image/svg+xml;base64,{data}">'
