"""A report on scored confidences: one HTML page that needs no network and runs no script."""

import base64
import io
import warnings
from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from capcal_lib.book.style import set_style
from capcal_lib.disk import file_digest, is_file, write_text
from capcal_lib.errors import naming_extra
from capcal_lib.io.score_file import Scored
from capcal_lib.plots import PassAtKDisplay, ReliabilityDisplay
from capcal_lib.text import sanitize, spell_cell

with naming_extra():  # or else the scores would be printed first
    import seaborn  # noqa: F401 -- for set_style
    from matplotlib import rc_context
    from matplotlib.figure import Figure

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>Capability calibration</title><style>
body {{ font: 16px/1.5 sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }}
div {{ overflow-x: auto }}
table {{ border-collapse: collapse; font-size: .85rem }}
td, th {{ padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #8886 }}
img {{ max-width: 100% }}
</style></head><body><h1>Capability calibration</h1>
<p>Each confidence is compared with the expected accuracy of its question: the chance that a fresh
sample is correct. mu_hat, the share of correct samples among the scored ones, estimates it. The
capability Brier score is the mean of (confidence - mu_hat)^2, corrected for the noise of mu_hat:
lower is better. The best constant always says the mean of mu_hat over the other questions; a useful
confidence beats it. All intervals are 95 % intervals for questions like these.</p>
{body}<p><small>{made}</small></p></body></html>
"""
RELIABILITY = (
    "Reliability: the mean expected accuracy of the questions in each of ten bins of confidence, "
    "with its interval. On the dotted line a confidence is right on average."
)
PASSED = (
    "pass@k as measured, with its interval; dashed: as each confidence s promises it, the mean of "
    "1 - (1 - s)^k."
)


def write_report(path: Path, scored: Scored, files: Iterable[Path] = ()) -> None:
    """Write a page with a chapter for each of the ``parts``: scores, reliability and pass@k.

    A part has a title, a table of scores, which is shown as it is, and its questions: ``correct``,
    ``total``, then a column of confidences for each method. The page begins with the lines
    ``below`` the scores and ends with the digests of ``files``. All names are escaped, because they
    may come from anywhere. `InputError` if ``path`` exists and is no regular file."""
    body = [f"<p>{escape(sanitize(line, 1_000))}</p>" for line in scored.below]
    with rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a name in letters that the font lacks
        set_style()
        for title, (table, questions) in scored.parts.items():
            shown = table.rename(columns=lambda name: name.replace("_", " ")).map(spell_cell)
            body += [f"<h2>{escape(sanitize(title))}</h2>", f"<div>{shown.to_html(border=0)}</div>"]
            body += _figures(questions[questions["total"] > 1].select_dtypes("number"))
    made = [f"capcal {version('capcal')}, {datetime.now(UTC):%Y-%m-%d}"]
    made += [f"{sanitize(file)} (SHA-256 {file_digest(file)})" for file in files if is_file(file)]
    write_text(path, [PAGE.format(body="".join(body), made=escape(", ".join(made)))])


def _figures(known: pd.DataFrame) -> list[str]:
    """Draw the reliability of each method, and pass@k of all methods."""
    if known.empty:
        return ["<p>No question has two scored samples.</p>"]
    counts = known["correct"], known["total"]
    passed = Figure()
    solved = passed.add_subplot()
    PassAtKDisplay.from_counts(None, *counts, ax=solved)
    images = []
    methods = known.drop(columns=["correct", "total"]).dropna(axis="columns", how="all")
    for method, confidence in methods.items():
        name, triple = sanitize(method, 100), known.assign(s=confidence).dropna(subset="s")
        numbers = triple["s"], triple["correct"], triple["total"]
        reliability = Figure(figsize=(4, 4))
        ReliabilityDisplay.from_counts(*numbers, name=name, ax=reliability.add_subplot())
        PassAtKDisplay.from_counts(*numbers, name=name, ax=solved)
        images.append(image(reliability, f"{name}. {RELIABILITY}"))
    return [*images, image(passed, PASSED)]


def image(figure: Figure, text: str) -> str:
    """Show a figure below its text, as SVG inside an image, so that nothing in it can run."""
    file = io.BytesIO()
    figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    data = base64.b64encode(file.getvalue()).decode()
    source = f'class="capcal-drawing" src="data:image/svg+xml;base64,{data}"'
    return f'<p>{escape(text)}</p><img alt="{escape(text)}" {source}>'
