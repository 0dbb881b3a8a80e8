"""What a page needs: checked parameters, its run store, its finding, and one line of provenance."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from capcal_lib.book.lesson import KEPT_TYPE, evidence_of, plain  # noqa: F401
from capcal_lib.book.parameters import check_parameters, open_store
from capcal_lib.book.style import set_style
from capcal_lib.book.tables import Html, badge, show
from capcal_lib.errors import check_known
from capcal_lib.manifests import dataset_names, load_model, model_names
from capcal_lib.reported import load_reported
from capcal_lib.results import describe_runs
from capcal_lib.text import counted

USUAL = {"model": "", "protocol": "corrected", "verdicts": "rules"}  # of parameters
NO_SAMPLES = (
    "The run store has no samples of this model: nothing here is measured. Recorded runs come with "
    "the repository, not with the package."
)
EFFECT = "The page “What each correction changes” shows the effect."
HOW = """<p>To measure it (without out.ipynb, papermill prints the notebook):</p>
<pre>capcal reproduce --model MODEL --store runs/local
papermill THIS_PAGE.ipynb out.ipynb -p model MODEL -p store runs/local</pre>"""


def open_page(namespace: Mapping[str, Any]) -> tuple[Path, pd.DataFrame]:
    """Check the parameters of a page, which are among its names, give it the book's look, and find
    its run store.

    Returns the store, and what it holds of the model, as ``results.describe_runs`` tells it, with
    the parameters that :func:`about` speaks of among its ``attrs``."""
    check_parameters(namespace)
    set_style()
    store = open_store(namespace["store"])
    asked = {name: namespace[name] for name in ("k_eval", "verdicts") if name in namespace}
    data = describe_runs(store, namespace["model"], **asked)
    data.attrs |= {name: namespace.get(name, usual) for name, usual in USUAL.items()}
    return store, data


def measured_models(store: Path, data: pd.DataFrame, k_eval: int) -> dict[str, pd.DataFrame]:
    """Describe the runs of each model of the store that has measured samples, from the smallest to
    the largest; none for a page whose own model, of which ``data`` tells, has no samples.
    """
    names = () if data.empty else model_names()
    names = sorted(names, key=lambda name: load_model(name).parameters or 0)
    described = {name: describe_runs(store, name, k_eval=k_eval) for name in names}
    return {name: runs for name, runs in described.items() if "measured" in {*runs["evidence"]}}


def choose_dataset(asked: str, runs: pd.DataFrame, default: str) -> str:
    """Return the data set that a page shows: the one asked for, where the model has samples of it.

    ``runs`` are as for `about`; without any, the page shows no samples, and what was asked for is
    only looked up. `InputError` lists what there is.

    >>> runs = pd.DataFrame(index=["gsm8k", "mmlu"])
    >>> choose_dataset("", runs, "mmlu")
    'mmlu'
    """
    known = list(runs.index) or dataset_names()
    if asked:
        check_known("dataset with samples", asked, known)
    return asked or default


def about(data: pd.DataFrame, lacking: Mapping[str, str] = MappingProxyType({})) -> Html:
    """Say in one line that unfolds what is behind a page; and what is missing, and how to measure
    it.

    ``data`` are those of :func:`open_page`, empty for a model without samples; ``lacking`` is what
    else the page has cells for and is not there, such as ``probes``, each with a sentence that says
    so. Protocol and verdicts are said where they are not ours, with the page that shows what they
    change. Cells that need what is missing are passed over."""
    model, protocol, verdicts = (data.attrs[name] for name in USUAL)
    lacking, notes = dict(lacking), list(data.attrs["problems"])
    if (protocol, verdicts) != ("corrected", "rules"):
        notes.append(f"Protocol: {protocol}; verdicts: {verdicts}. {EFFECT}")
    printed = (load_reported()["model"] == model).sum()
    if not printed:
        lacking["paper"] = ""
    title = f"<strong>{escape(load_model(model).title)}</strong>"
    if data.empty:
        lacking = {"samples": NO_SAMPLES} | dict.fromkeys(lacking, "")
        how = HOW.replace("MODEL", escape(model))
        if printed:
            title += f" {badge('reported')}"
        return _missing(lacking, title, notes, how)
    marks = "".join(map(badge, data["evidence"].unique()))
    sizes = counted(len(data), "data set"), counted(int(data["questions"].sum()), "question")
    title += f" · {' · '.join(sizes)} {marks}"
    behind = data[["title", "questions"]].rename(columns={"title": "data set"})
    behind["samples a question"] = [
        str(most) if fewest == most else f"{fewest} to {most}"
        for fewest, most in data[["fewest", "most"]].to_numpy()
    ]
    behind["evidence"] = data["evidence"]
    table = show(behind.rename_axis(None), f"The paper prints {printed} numbers of this model.")
    return _missing(lacking, f"<details><summary>{title}</summary>{table.html}</details>", notes)


def lack(missing: bool, /, **what: str) -> Html | None:
    """Say what turned out not to be there, and pass over the cells that need it.

    ``what`` has a sentence for each word of ``# needs``. Where nothing is ``missing``, nothing is
    said and every cell is executed."""
    return _missing(what) if missing else None


def _missing(
    lacking: Mapping[str, str], head: str = "", notes: Sequence[str] = (), how: str = ""
) -> Html:
    """Pass over the cells that need what is lacking, and say so."""
    pass_over(lacking)
    said = "".join(f"<p>{escape(note)}</p>" for note in [*notes, *lacking.values()] if note)
    words = " ".join(lacking)
    return Html(f"<div class='capcal-about' data-lacking='{words}'>{head}{said}{how}</div>")


def pass_over(lacking: Iterable[str]) -> None:
    """Let the kernel pass over cells whose first line, or the one below a comment, says that they
    need what is lacking: ``# needs samples``.
    """
    from IPython import get_ipython

    needs = {f"# needs {word}\n" for word in lacking}
    if shell := get_ipython():
        shell.input_transformers_cleanup.append(
            lambda lines: lines if needs.isdisjoint(lines[:2]) else []
        )


def drop_what_is_lacking(notebook: dict[str, Any]) -> None:
    """Take the cells that need what an executed page lacks out of it.

    A cell says so in its metadata, ``needs="samples"``, and a code cell in its first lines too, for
    the kernel; what is lacking was found out by ``about``.

    >>> cells = [{"source": text, "metadata": {"needs": text}} for text in ("paper", "samples")]
    >>> shown = [{"data": {"text/html": ["<p data-lacking='samples'>"]}}]
    >>> page = {"cells": [{"outputs": shown, "source": "", "metadata": {}}, *cells]}
    >>> drop_what_is_lacking(page)
    >>> [cell["source"] for cell in page["cells"]]
    ['', 'paper']
    """
    said = re.findall(r"data-lacking='([a-z ]*)'", json.dumps(notebook["cells"]))
    lacking = " ".join(said).split()
    notebook["cells"] = [
        cell for cell in notebook["cells"] if cell["metadata"].get("needs") not in lacking
    ]


_glued: dict[str, float | str | Html] = {}


def glue(**results: float | str | Html) -> None:
    """Keep results under their keys, from where the text of this page and of others takes them.

    The output is that of ``myst_nb.glue``, whose import takes every page four seconds.
    """
    from IPython.display import display

    for key, value in results.items():
        _glued[key] = value if isinstance(value, int | str | Html) else float(value)
        record = {f"{KEPT_TYPE}text/plain": repr(_glued[key])}
        if isinstance(value, Html):
            record[f"{KEPT_TYPE}text/html"] = value.html
        about = {"scrapbook": {"name": key, "mime_prefix": KEPT_TYPE}}
        display(record, raw=True, metadata=about)  # type: ignore[no-untyped-call]


def say(text: str, /, **results: float | str) -> Any:
    """Return a text in Markdown, with results, for a cell to show.

    ``{key}`` or ``{key:.2f}`` stands for one of the ``results``, or for what :func:`glue` keeps
    under that key; braces of formulas stay. Text among the results is shown as it is, whatever
    marks it holds. `InputError` for a key that was not given.

    >>> say(r"A share of {share:.0%} has $\\hat{\\mu} > 0$.", share=0.256).data
    'A share of 26 % has $\\\\hat{\\\\mu} > 0$.'
    """
    from IPython.display import Markdown

    given = _glued | results

    def spell(found: re.Match[str]) -> str:
        check_known("result", found[1], given)
        spelt = format(given[found[1]], found[2] or "")
        return plain(spelt) if isinstance(given[found[1]], str) else spelt.replace("%", " %")

    filled = re.sub(r"(?<![\w^_{}\\])\{(\w+)(?::([^{}]*))?\}", spell, text.strip())
    return Markdown(filled)  # type: ignore[no-untyped-call]


def finding(text: str, /, **results: float | str) -> Any:
    """Return the finding of a page in large type: one sentence, with at most four of the
    ``results``, as in :func:`say`.
    """
    style = "class='capcal-finding' style='font-size: 1.35em; line-height: 1.35'"
    return say(f"<div {style}>\n\n{text.strip()}\n\n</div>", **results)
