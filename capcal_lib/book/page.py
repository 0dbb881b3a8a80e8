"""Open a page: find what its run store holds, say so in one line, and end the page early if there
is nothing to show.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib.book.printed import show_printed
from capcal_lib.book.style import set_style
from capcal_lib.book.tables import Html, badge, show
from capcal_lib.errors import InputError, check_known
from capcal_lib.manifests import load_model, model_names
from capcal_lib.places import ROOT
from capcal_lib.probes import describe_probes
from capcal_lib.results import Counting, describe_runs
from capcal_lib.text import counted

NO_SAMPLES = (
    "The run store {store} has no samples of {model}, so nothing here is measured. First draw "
    "them: capcal reproduce --model {model} --store runs/local"
)
KINDS = {str: "a text", int: "a whole number", float: "a number"}
INJECTED = "# Parameters"  # the first line of the cell in which papermill puts what it was given
ONE_SAMPLE = (
    "Every question has one scored sample: its accuracy is known, and a score takes two. Draw more "
    "with: capcal sample --model {model} --dataset DATASET --k 2"
)


class EndOfPage(Exception):
    """End a page here; the reason is shown in place of a traceback."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason

    def _render_traceback_(self) -> list[str]:
        return [self.reason]


EndOfPage.__name__ = "SystemExit"  # at an error of this name papermill ends without one


@dataclass(frozen=True)
class Page:
    """A page: which samples of its model count, what its store holds (a row per data set, from
    ``results.describe_runs``), and the evidence of its numbers.
    """

    counting: Counting
    runs: pd.DataFrame
    evidence: str


def open_page(
    model: str,
    store: str | Path,
    *,
    k_eval: int = 100,
    protocol: str = "corrected",
    verdicts: str = "rules",
) -> Page:
    """Find a model's runs in a store, and set the book's style.

    ``store`` is a folder, from where one stands or from the root of the repository. `InputError`
    for an unknown model, store or protocol, and for a parameter that the page does not have.
    """
    check_parameters()
    check_known("protocol", protocol, ["corrected", "paper"])
    folder = next((path for path in (Path(store), ROOT / store) if path.is_dir()), None)
    if folder is None:
        raise InputError(f"the store {str(store)!r} is no folder; give one with -p store DIR")
    set_style()
    counting = Counting(
        folder,
        load_model(model).name,
        k_eval=k_eval,
        verdicts=verdicts,
        recipe="paper" if protocol == "paper" else "tuned",
        held_out=protocol != "paper",
    )
    runs = describe_runs(counting)
    return Page(counting, runs, evidence_of(runs))


def check_parameters() -> None:
    """Refuse what papermill was given under a name that the notebook does not declare, or with
    another type: papermill itself only warns, and the page would show another model than was asked
    for.
    """
    from IPython import get_ipython

    namespace = getattr(get_ipython(), "user_ns", {})  # none outside a notebook
    given = "\n".join(cell for cell in namespace.get("In", ()) if cell.startswith(INJECTED))
    for name in re.findall(r"^(\w+) = ", given, flags=re.MULTILINE):
        check_known("parameter", name, namespace["__annotations__"])
        value, kind = namespace[name], namespace["__annotations__"][name]
        if not isinstance(value, (int, float) if kind is float else kind):
            raise InputError(f"{name} must be {KINDS[kind]}; got {value!r}")


def show_runs(page: Page, dataset: str = "", *, printed: Sequence[str] = ()) -> None:
    """Show the runs behind a page in one line that unfolds.

    Ends the page if the store has no samples of the model, after what the paper prints of it (keys
    of ``printed.ITEMS``), and if no question, of the one ``dataset`` that is asked for, has two.
    `InputError` for a data set without samples.
    """
    from IPython.display import display

    model, runs = page.counting.model, page.runs
    if runs.empty:
        for item in printed:
            show_printed(item, model)
        raise EndOfPage(NO_SAMPLES.format(store=page.counting.store, model=model))
    if dataset:
        check_known("dataset with samples", dataset, [*runs.index])
        runs = runs.loc[[dataset]]
    if runs["most"].max() < 2:
        raise EndOfPage(ONE_SAMPLE.format(model=model))
    display(provenance(page))  # type: ignore[no-untyped-call]


def provenance(page: Page) -> Html:
    """Describe the runs behind a page in one line that unfolds."""
    model, runs = page.counting.model, page.runs
    sizes = [counted(len(runs), "data set"), counted(int(runs["questions"].sum()), "question")]
    summary = [f"<strong>{escape(load_model(model).title)}</strong>", *sizes, badge(page.evidence)]
    if page.counting.verdicts != "rules":
        summary.append(f"verdicts: {escape(page.counting.verdicts)}")
    if page.counting.recipe == "paper":
        summary.append("protocol: paper")
    columns = ["title", "prompts", "questions", "fewest", "most", "not scored", "evidence"]
    table = show(
        runs[columns].set_index("title").rename_axis("data set"),
        "Scored samples of a question: the fewest and the most. Weights and prompts differ from "
        "the paper's, see “Limits”.",
    )
    problems = "".join(f"<p>{escape(problem)}</p>" for problem in runs.attrs["problems"])
    line = " · ".join(summary)
    details = f"<details><summary>{line}</summary>{table.html}</details>{problems}"
    return Html(f"<div class='capcal-about'>{details}</div>")


def evidence_of(*runs: pd.DataFrame) -> str:
    """Return the evidence of numbers made from runs: ``simulated`` if any run is.

    >>> evidence_of(pd.DataFrame({"evidence": ["measured", "simulated"]}))
    'simulated'
    """
    simulated = any("simulated" in {*table["evidence"]} for table in runs)
    return "simulated" if simulated else "measured"


def models_beside(page: Page) -> dict[str, Page]:
    """Return the pages of all models to compare with a page's own, by name, the smallest first: all
    with measured samples, by the rules' verdicts; if the page is simulated, itself alone. Ends a
    page without samples of its own model.
    """
    if page.runs.empty:
        raise EndOfPage(NO_SAMPLES.format(store=page.counting.store, model=page.counting.model))
    if page.evidence == "simulated":
        return {page.counting.model: page}
    pages = {}
    for name in sorted(model_names(), key=lambda name: load_model(name).parameters or 0):
        counting = replace(page.counting, model=name, verdicts="rules")
        runs = describe_runs(counting)
        if len(runs) and evidence_of(runs) == "measured":
            pages[name] = Page(counting, runs, "measured")
    return pages | {page.counting.model: page}


def probes_of(page: Page) -> pd.DataFrame:
    """Describe the probes of a page's model by their names, see ``probes.describe_probes``."""
    counting = page.counting
    return describe_probes(
        counting.store,
        counting.model,
        recipe=counting.recipe or "tuned",
        verdicts=counting.verdicts,
    )


def finding(text: str, /, **values: float | str) -> Any:
    """Return the finding of a page: a sentence in Markdown with ``{key}`` or ``{key:.2f}`` replaced
    from ``values``; texts among these are shown as they are, without markup.
    """
    from IPython.display import Markdown

    escaped = {
        key: plain(value) if isinstance(value, str) else value for key, value in values.items()
    }
    return Markdown(text.format(**escaped))  # type: ignore[no-untyped-call]


def plain(text: str) -> str:
    """Escape foreign text, so that neither Markdown, MyST nor HTML finds markup in it.

    >>> plain("<b> *a*")
    '\\\\<b\\\\> \\\\*a\\\\*'
    """
    return re.sub(r"([\\`*_{}\[\]<>&$#~|!^:@])", r"\\\1", " ".join(text.split()))


def glue(**values: Any) -> None:
    """Keep values under their keys, for the front page and other pages."""
    import myst_nb

    for key, value in values.items():
        plain = value.item() if isinstance(value, np.generic) else value
        myst_nb.glue(key, plain, display=False)
