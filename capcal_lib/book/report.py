"""What confidences are worth on counted questions, as one HTML page that needs no network and runs
no script.
"""

import base64
import io
import warnings
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from capcal_lib.book.style import set_style
from capcal_lib.errors import sanitize
from capcal_lib.manifests import write_text
from capcal_lib.plots import PassAtKDisplay, ReliabilityDisplay, known_color
from capcal_lib.results.score_file import MEANINGS, NUMBERS, spell_cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

SHOWN = 20_000  # questions at most behind the figures
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
{}{}<p><small>{}</small></p><p>{}</p></body></html>
"""
MARKS = "sD^v<>P*X"


def write_report(
    path: Path,
    parts: Mapping[str, tuple[pd.DataFrame, pd.DataFrame]],
    lines: Iterable[str] = (),
    files: Iterable[Path] = (),
) -> None:
    """Write a page with a chapter a part: scores, reliability and pass@k.

    A part has a title, a table of scores that is shown as it is, and its questions: ``correct``,
    ``total``, then a column a method with its confidences. ``lines`` stand first, what was scored
    last, with the digests of ``files``. Names may come from anywhere; all are escaped. A path that
    is there and no regular file is refused."""
    import matplotlib.pyplot as plt

    stated = "".join(f"<p>{escape(sanitize(line, 1_000))}</p>" for line in lines)
    with plt.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a name in letters that the font lacks
        set_style()
        chapters = "".join(_chapter(title, *part) for title, part in parts.items())
    digests = [
        f"{escape(sanitize(file))} (SHA-256 {sha256(file.read_bytes()).hexdigest()})"
        for file in files
        if file.is_file()
    ]
    meanings = escape("; ".join(f"{name}: {meaning}" for name, meaning in MEANINGS.items()))
    made = f"capcal {version('capcal')}, {datetime.now(UTC):%Y-%m-%d}"
    write_text(path, _PAGE.format(stated, chapters, meanings, ", ".join([made, *digests])))


def _chapter(title: str, scores: pd.DataFrame, questions: pd.DataFrame) -> str:
    plain = scores.rename_axis(index=None).rename(columns=lambda name: name.replace("_", " "))
    body = [
        f"<h2>{escape(sanitize(title))}</h2>",
        f"<div>{plain.map(spell_cell).to_html(border=0)}</div>",
    ]
    known = questions[questions["total"] > 1].select_dtypes("number").reset_index(drop=True)
    if known.empty:
        return "".join([*body, "<p>No question has two scored samples.</p>"])
    if len(known) > SHOWN:
        known = known.sample(SHOWN, random_state=0)
        body.append(f"<p>What follows is drawn from {SHOWN:,} questions at random.</p>")
    own = iter(cycle(f"C{place}" for place in range(10)))
    methods = {  # the colours of the book, and of others one apart from the other
        sanitize(name, 100): (
            known[[name, *NUMBERS[1:]]].dropna().to_numpy().T,
            known_color(str(name)) or next(own),
        )
        for name in known
        if name not in NUMBERS[1:] and known[name].notna().any()
    }
    if methods:
        body.append(_reliability(methods))
    return "".join([*body, _pass_at_k(known, methods)])


Methods = Mapping[str, tuple["NDArray[Any]", str]]  # confidence, correct, total; and a colour


def _reliability(methods: Methods) -> str:
    import matplotlib.pyplot as plt

    rows = -(-len(methods) // COLUMNS)
    figure = plt.figure(figsize=(SIDE * COLUMNS, SIDE * rows))
    for place, (name, (triple, color)) in enumerate(methods.items(), start=1):
        ax = figure.add_subplot(rows, COLUMNS, place, title=name)
        ReliabilityDisplay.from_counts(*triple, ax=ax, color=color)
    text = (
        "The mean expected accuracy of questions in ten bins of their confidence, with its "
        "interval, above how the confidences are spread. On the dotted line a confidence is right "
        "on average."
    )
    return _figure("Reliability", text, figure)


def _pass_at_k(known: pd.DataFrame, methods: Methods) -> str:
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    PassAtKDisplay.from_counts(None, known["correct"], known["total"], ax=ax)
    for (name, (triple, color)), mark in zip(methods.items(), cycle(MARKS), strict=False):
        PassAtKDisplay.from_counts(*triple, name=name, ax=ax, color=color)
        ax.get_lines()[-1].set_marker(mark)
        ax.legend()
    text = (
        "pass@k as measured, without bias, with its interval, and as each confidence s promises "
        "it: the mean of 1 − (1 − s)^k."
    )
    return _figure("pass@k", text, figure)


def _figure(title: str, text: str, figure: "Figure") -> str:
    """Show a figure as SVG inside an image, where nothing in it can run."""
    import matplotlib.pyplot as plt

    file = io.BytesIO()
    figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    data = base64.b64encode(file.getvalue()).decode()
    return (
        f"<h3>{escape(title)}</h3><p>{escape(text)}</p>"
        f'<img alt="{escape(text)}" src="data:image/svg+xml;base64,{data}">'
    )
