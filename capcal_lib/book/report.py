"""What confidences are worth on counted questions, as one HTML page that needs no network and runs
no script.
"""

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
<p>Each confidence is compared with the expected accuracy of its question, which is the chance that
a fresh sample is right. It is estimated by mu_hat, the share of the question's scored samples that
are correct. Intervals are 95 % intervals for questions like these.</p>
{}{}<h2>What the words mean</h2><dl>{}</dl><p><small>{}</small></p></body></html>
"""
MEANINGS = {  # of the names in tables
    "accuracy": "The mean of mu_hat over questions.",
    "pass@k": "The chance that one of k samples is correct, without bias, on the questions that "
    "have k samples.",
    "noise": "The share of the spread of mu_hat over questions that is noise of sampling.",
    "best constant": "Saying of each question the mean of mu_hat over the other questions. A "
    "confidence that knows anything beats it.",
    "uniform random": "Uniform random numbers in place of confidences.",
    "Oracle RC": "The correctness of one sample, 0 or 1, as the confidence.",
    "Oracle CC": "The expected accuracy itself as the confidence.",
    CAPABILITY_PLUG_IN: "The mean of (confidence - mu_hat)^2. Lower is better.",
    CORRECTED: "The mean of (confidence - mu_hat)^2 without what the noise of mu_hat adds. Lower "
    "is better. It may fall below 0 by chance.",
    GAIN: "How much lower the corrected score is than that of the best constant.",
    "noise floor of the plug-in": "What the noise of mu_hat adds to the plug-in score.",
    "miscalibration": "What recalibration could remove of the score, fitted to these questions.",
    "discrimination": "How far the confidences tell questions apart, fitted to these questions. "
    "Higher is better.",
    RESPONSE: "The mean of (confidence - 1)^2 over correct samples and of confidence^2 over the "
    "others. Lower is better.",
    "correctness variance": "The part of the expected response Brier score that no confidence for "
    "a question can remove.",
    "log loss": "The mean of -log(confidence) over correct samples and of "
    "-log(1 - confidence) over the others. Lower is better.",
    "ECE, ten bins": "The mean distance between confidence and mu_hat in ten bins: corrected for "
    "noise, or plug-in, as it is usually reported.",
    "AUROC": "The chance that a correct sample's question has a higher confidence than that of an "
    "incorrect sample. Higher is better.",
    "Spearman": "The rank correlation of confidence and mu_hat.",
    "missing": "Questions without a confidence.",
    "spread": "The standard deviation of the score over five probes.",
    "Holm": "The gain is judged after Holm's correction for all methods and data sets.",
    "could be won": "Whether a perfect confidence would be significantly better here.",
    "recalibrated": "After Platt scaling on the labels of other questions.",
}
POINT_SHAPES = "sD^v<>P*X"
FIGURES = {
    "Reliability": (
        "The mean expected accuracy of questions in ten bins of their confidence, with its "
        "interval, above how the confidences are spread. On the dotted line a confidence is right "
        "on average."
    ),
    "pass@k": (
        "pass@k as measured, without bias, with its interval, and as each confidence s promises "
        "it: the mean of 1 − (1 − s)^k."
    ),
}


def write_report(path: Path, scored: Scored, files: Iterable[Path] = ()) -> None:
    """Write a page with a chapter for each of the ``parts``: scores, reliability and pass@k.

    A part has a title, a table of scores that is shown as it is, and its questions: ``correct``,
    ``total``, then a column a method with its confidences. What is said ``below`` the scores stands
    first, what was scored last, with the digests of ``files``. Names may come from anywhere; all
    are escaped. A path that is there and no regular file is refused."""
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
    """List the names with a meaning that stand in tables, as heads, row names or words."""
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
    """Draw the reliability of each method, and pass@k of all."""
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
    """Show a figure as SVG inside an image, where nothing in it can run; nothing for none."""
    if not figure.axes:
        return ""
    file = io.BytesIO()
    figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    data = base64.b64encode(file.getvalue()).decode()
    text = FIGURES[title]
    return f'<h3>{title}</h3><p>{text}</p><img alt="{text}" src="data:image/svg+xml;base64,{data}">'
