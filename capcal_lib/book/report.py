"""What confidences are worth on counted questions, as one HTML page that needs no network and runs
no script.
"""

import base64
import io
import warnings
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib.applications import allocate, pass_at_k, simulate_pass_at_k
from capcal_lib.applications.budget import success_terms
from capcal_lib.book.style import palette, set_style
from capcal_lib.errors import sanitize
from capcal_lib.manifests import write_text
from capcal_lib.metrics import (
    FewQuestionsWarning,
    Interval,
    isotonic_split,
    mean_interval,
    smooth_ece,
)
from capcal_lib.results.results import COUNTS

SHOWN = 20_000  # questions at most behind the figures and the allocations
BUDGETS = (1, 2, 4, 8, 16)  # mean samples a question
BINS = 10
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
{}</body></html>
"""


def write_report(path: Path, parts: Mapping[str, tuple[pd.DataFrame, pd.DataFrame]]) -> None:
    """Write a page with a chapter a part: scores, decomposition, reliability, pass@k and the gain
    of allocating by it.

    A part has a title, a table of scores that is shown as it is, and its questions: ``correct``,
    ``total``, then a column a method with its confidences. Names may come from anywhere; all are
    escaped. A path that is there and no regular file is refused."""
    write_text(path, _PAGE.format("".join(_chapter(title, *part) for title, part in parts.items())))


def _chapter(title: str, scores: pd.DataFrame, questions: pd.DataFrame) -> str:
    known = questions[questions["total"] > 1].reset_index(drop=True)
    known.columns = pd.Index([sanitize(name, 100) for name in known])
    names = [str(name) for name in known if name not in COUNTS and known[name].notna().any()]
    body = [f"<h2>{escape(sanitize(title))}</h2>", _html(scores)]
    if not names:
        return "".join([*body, "<p>No question has a confidence and two scored samples.</p>"])
    triples = {name: known[[name, *COUNTS]].dropna() for name in names}
    split = {
        name: isotonic_split(*triple.to_numpy().T, corrected=True)._asdict()
        | {"smooth calibration error": smooth_ece(*triple.to_numpy().T)}
        for name, triple in triples.items()
    }
    body += [
        "<h3>Decomposition</h3><p>The corrected score is miscalibration, which recalibration can "
        "remove, less "
        "discrimination, plus uncertainty, the variance of μ over questions (isotonic "
        "regression).</p>",
        _html(pd.DataFrame(split).T),
    ]
    if len(known) > SHOWN:
        known = known.sample(SHOWN, random_state=0)
        triples = {name: known[[name, *COUNTS]].dropna() for name in names}
        body.append(f"<p>What follows is computed on {SHOWN:,} questions drawn at random.</p>")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewQuestionsWarning)
        warnings.filterwarnings("ignore", "Glyph")  # a name in letters that the font lacks
        body += [_reliability(triples), _pass_at_k(known, names), _gains(triples)]
    return "".join(body)


def _reliability(triples: Mapping[str, pd.DataFrame]) -> str:
    rows = []
    for name, triple in triples.items():
        s, mu = triple[name], triple["correct"] / triple["total"]
        for place, own in s.groupby(np.minimum((s * BINS).astype(int), BINS - 1)):
            rows.append(
                {
                    "method": name,
                    "bin": place,
                    "confidence": own.mean(),
                    **_share(mu[own.index])._asdict(),
                }
            )
    points = pd.DataFrame(rows)

    def draw(sns: Any) -> Any:
        grid = sns.FacetGrid(
            points, col="method", hue="method", palette=palette(triples), col_wrap=3, height=2.6
        )
        grid.map_dataframe(_error_bars).set_titles("{col_name}").set(xlim=(0, 1), ylim=(0, 1))
        for axes in grid.axes.flat:
            axes.axline((0, 0), slope=1, color="#6b6b6b", lw=1, ls=":")
        return grid.set_axis_labels("confidence", "mean μ").figure

    text = (
        "Reliability: the mean expected accuracy of questions in ten bins of their "
        "confidence, with its interval."
    )
    return _figure(
        "Reliability", text + " On the dotted line a confidence is right on average.", draw
    )


def _error_bars(*, data: pd.DataFrame, color: str, **_: object) -> None:
    import matplotlib.pyplot as plt

    away = (data["estimate"] - data[["low", "high"]].T).abs()
    plt.errorbar(data["confidence"], data["estimate"], away, color=color, marker="o", ms=4, lw=1)


def _pass_at_k(known: pd.DataFrame, names: list[str]) -> str:
    ks = [k for k in (1, 2, 4, 8, 16, 32, 64, 128) if k <= known["total"].min()]
    measured = pass_at_k(known["correct"], known["total"], ks)
    rows = [{"k": k, "pass@k": measured[:, j].mean(), "": "measured"} for j, k in enumerate(ks)]
    for name in names:
        promised = simulate_pass_at_k(known[name].dropna(), ks).mean(axis=0)
        rows += [{"k": k, "pass@k": value, "": name} for k, value in zip(ks, promised, strict=True)]
    curves = pd.DataFrame(rows)

    def draw(sns: Any) -> Any:
        colors = {"measured": "#1a1a1a"} | palette(names)
        axes = sns.lineplot(curves, x="k", y="pass@k", hue="", style="", palette=colors, marker="o")
        axes.set(ylim=(0, 1.02))
        axes.set_xscale("log", base=2)
        axes.set_xticks(ks, map(str, ks))
        return axes.figure

    table = curves.pivot(index="k", columns="", values="pass@k")[names]
    table.insert(0, "measured", [_spell(_share(column)) for column in measured.T])
    text = (
        "pass@k as measured, without bias, and as each confidence s promises it: the "
        "mean of 1 − (1 − s)^k."
    )
    return _figure("pass@k", text, draw) + _html(table.rename("k = {}".format))


def _gains(triples: Mapping[str, pd.DataFrame]) -> str:
    table = pd.DataFrame()
    for name, triple in triples.items():
        counts = triple["correct"], triple["total"]
        for budget in (budget for budget in BUDGETS if budget <= triple["total"].min()):
            plan = allocate(triple[name], budget * len(triple), max_per_question=triple["total"])
            gain = success_terms(plan, *counts) - success_terms(budget, *counts)
            table.loc[f"{budget} a question", name] = _spell(_mean(gain), 100, 1)
    text = (
        "Points of questions solved beyond an even division, when samples are divided by "
        "the confidence."
    )
    return f"<h3>Gain of allocating samples</h3><p>{text}</p>{_html(table)}"


def _mean(terms: Any) -> Interval:
    return mean_interval(terms, rng=np.random.default_rng(0))


def _share(terms: Any) -> Interval:
    """Return the mean of shares; no end of its interval lies outside [0, 1]."""
    found = _mean(terms)
    return found._replace(low=max(found.low, 0.0), high=min(found.high, 1.0))


def _spell(interval: Interval, unit: int = 1, digits: int = 3) -> str:
    estimate, low, high = (f"{unit * end:z.{digits}f}" for end in interval)
    return f"{estimate} [{low}, {high}]"


def _html(table: pd.DataFrame) -> str:
    plain = table.rename_axis(index=None, columns=None).rename(
        columns=lambda name: str(name).replace("_", " ")
    )
    html = plain.to_html(border=0, na_rep="", float_format="{:z,.4f}".format)
    return f"<div>{html}</div>"


def _figure(title: str, text: str, draw: Any) -> str:
    """Draw a figure as SVG inside an image, where nothing in it can run."""
    import matplotlib.pyplot as plt
    import seaborn as sns

    with plt.rc_context(), io.BytesIO() as file:
        set_style()
        figure = draw(sns)
        figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)
        data = base64.b64encode(file.getvalue()).decode()
    alt = escape(text)
    return (
        f"<h3>{escape(title)}</h3><p>{alt}</p>"
        f'<img alt="{alt}" src="data:image/svg+xml;base64,{data}">'
    )
