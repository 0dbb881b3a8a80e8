"""What a page needs: checked parameters, its run store, its finding, and one line of provenance."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from posixpath import dirname, relpath
from types import MappingProxyType
from typing import Any, get_args

import pandas as pd

from capcal_lib.book.tables import Html, badge
from capcal_lib.errors import InputError, unknown
from capcal_lib.manifests import IN_CHECKOUT, ROOT, dataset_names, load_model
from capcal_lib.reported import load_reported
from capcal_lib.results.scores import Protocol

TOP = ("finding", "provenance", "picture")  # tags of what stands below the title, in this order
INJECTED = "# Parameters"  # the first line of the cell in which papermill puts what it was given
ABSENT = "Recorded runs come with the repository, not with the package. "
HOW = """<p>To measure it (without out.ipynb, papermill prints the notebook):</p>
<pre>capcal reproduce --model MODEL --store runs/local
papermill THIS_PAGE.ipynb out.ipynb -p model MODEL -p store runs/local</pre>"""


def check_parameters(namespace: Mapping[str, Any]) -> None:
    """Refuse parameters that the notebook does not declare, and values of another type.

    papermill only warns of the first and does not look at the second. The declared ones are the
    annotated names of the notebook; the given ones are those assigned in a cell that papermill
    injected.

    >>> check_parameters({"__annotations__": {"k": int}, "k": "three",
    ...     "In": ["# Parameters\\nk = 'three'"]})
    Traceback (most recent call last):
    ...
    capcal_lib.errors.InputError: parameter k must be of type int; got 'three', which is of type str
    """
    declared: dict[str, type] = namespace.get("__annotations__", {})
    cells = [cell for cell in namespace.get("In", []) if cell.startswith(INJECTED)]
    for given in re.findall(r"^(\w+) = ", "\n".join(cells), flags=re.MULTILINE):
        if given not in declared:
            raise unknown("parameter", given, declared)
    for name, kind in declared.items():
        value, got = namespace[name], type(namespace[name])
        if got is not kind and (kind, got) != (float, int):
            allowed = f"must be of type {kind.__name__}"
            raise InputError(
                f"parameter {name} {allowed}; got {value!r}, which is of type {got.__name__}"
            )
        if kind is int and value < 0:
            raise InputError(f"parameter {name} must not be negative; got {value}")
        if name == "k_eval" and value < 2:
            raise InputError(f"parameter k_eval must be 2 samples at least to score; got {value}")
        if name == "protocol" and value not in get_args(Protocol):
            raise unknown(name, value, get_args(Protocol))


def open_store(path: str | Path) -> Path:
    """Find the folder of a run store, from where one stands, or else from the root of the
    repository; or refuse it.

    >>> open_store("runs/recorded").name
    'recorded'
    """
    for store in (Path(path), ROOT / path):
        if store.is_dir():
            return store
    raise InputError(
        f"parameter store names no folder: {str(path)!r}; looked in {Path.cwd()} and {ROOT}. Give "
        "one by -p store DIR: "
        "what `capcal sample` or `capcal import` made, or runs/recorded of a checkout"
    )


def choose_dataset(asked: str, runs: pd.DataFrame, default: str) -> str:
    """Return the data set that a page shows: the one asked for, where the model has samples of it.

    ``runs`` are as for `about`; without any, the page shows no samples, and what was asked for is
    only looked up. `InputError` lists what there is.

    >>> runs = pd.DataFrame(index=["gsm8k", "mmlu"])
    >>> choose_dataset("", runs, "mmlu")
    'mmlu'
    """
    known = list(runs.index) or dataset_names()
    if asked and asked not in known:
        raise unknown("dataset with samples", asked, known)
    return asked or default


def about(
    model: str,
    runs: pd.DataFrame,
    *,
    lacking: Mapping[str, str] = MappingProxyType({}),
    protocol: str = "corrected",
    verdicts: str = "rules",
) -> Html:
    """Say in one line that unfolds what is behind a page; and what is missing, and how to measure
    it.

    ``runs`` are as ``results.describe_runs`` tells of them, none for a model without samples;
    ``lacking`` is what else the page has cells for and is not there, such as ``probes``, each with
    a sentence that says so; ``protocol`` and ``verdicts`` are said where they are not ours, with
    the page that shows what they change. Cells that need what is missing are passed over."""
    known = load_model(model)
    title = escape(known.title)
    lines = [
        f"{badge(run['evidence'])} {escape(run['title'])}: {run['questions']:,} questions, "
        + " to ".join(dict.fromkeys([f"{run['fewest']:,}", f"{run['most']:,}"]))
        + " samples/question"
        for run in runs.to_dict("records")
    ]
    printed = int((load_reported()["model"] == model).sum())
    if printed:
        lines.append(f"{badge('reported')} {printed} numbers that the paper prints of {title}")
    notes = [f"Damaged: {problem}" for problem in runs.attrs.get("problems", ())]
    asked = ["the protocol of the paper"] * (protocol == "paper")
    asked += [f"verdicts by {verdicts.replace(':', ' ')}"] * (verdicts != "rules")
    if asked:
        effect = "the page “What each correction changes” shows the effect."
        notes.append(f"By {' and '.join(asked)}; {effect}")
    words = [] if printed else ["paper"]
    html, how = f"<strong>{title}</strong>", ""
    if len(runs):
        html += f" · {len(runs)} data sets · {runs['questions'].sum():,} questions "
        html += "".join(map(badge, dict.fromkeys(runs["evidence"])))
        notes += filter(None, lacking.values())
    else:
        notes.append(f"The run store has no samples of {known.title}: nothing here is measured.")
        notes += [] if IN_CHECKOUT else [ABSENT]
        words, how = ["samples", *words], HOW.replace("MODEL", escape(model))
    if lines:
        html = f"<details><summary>{html}</summary>{'<br>'.join(lines)}</details>"
    return _missing([*words, *lacking], notes, html, how)


def evidence_of(*runs: pd.DataFrame) -> str:
    """Say what numbers made from runs are: ``simulated``, where a run of any is, else ``measured``.

    ``runs`` are as for `about`.

    >>> evidence_of(pd.DataFrame({"evidence": ["measured", "simulated"]}))
    'simulated'
    """
    marks = {mark for described in runs for mark in described["evidence"]}
    return "simulated" if "simulated" in marks else "measured"


def lack(missing: bool, /, **what: str) -> Html | None:
    """Say what turned out not to be there, and pass over the cells that need it.

    ``what`` has a sentence for each word of ``# needs``. Where nothing is ``missing``, nothing is
    said and every cell is executed."""
    return _missing(list(what), list(what.values())) if missing else None


def _missing(words: Sequence[str], notes: Sequence[str], above: str = "", below: str = "") -> Html:
    """Pass over the cells that need what is missing, and say so."""
    pass_over(words)
    html = above + "".join(f"<p>{escape(note)}</p>" for note in notes) + below
    return Html(f"<div class='capcal-about' data-lacking='{' '.join(words)}'>{html}</div>")


def pass_over(lacking: Sequence[str]) -> None:
    """Let the kernel pass over cells whose first line says that they need what is lacking: ``#
    needs samples``.
    """
    from IPython import get_ipython

    firsts = [f"# needs {word}\n" for word in lacking]

    def transform(lines: list[str]) -> list[str]:
        return [] if lines[:1] and lines[0] in firsts else lines

    if (shell := get_ipython()) is not None:
        shell.input_transformers_cleanup.append(transform)


def drop_what_is_lacking(notebook: dict[str, Any]) -> None:
    """Take the cells that need what an executed page lacks out of it.

    A code cell says so in its first line, ``# needs samples`` or ``# needs paper``, a text cell in
    its metadata, ``needs="samples"``; what is lacking was found out by ``about``.

    >>> cells = [{"source": "# needs paper", "metadata": {}},
    ...     {"source": "", "metadata": {"needs": "samples"}}]
    >>> shown = [{"data": {"text/html": ["<p class=\\"a\\" data-lacking='samples'>"]}}]
    >>> page = {"cells": [{"outputs": shown, "source": "", "metadata": {}}, *cells]}
    >>> drop_what_is_lacking(page)
    >>> [cell["source"] for cell in page["cells"]]
    ['', '# needs paper']
    """
    outputs = json.dumps([cell.get("outputs") for cell in notebook["cells"]])
    lacking = " ".join(re.findall(r"data-lacking='([a-z ]*)'", outputs)).split()

    def needs(cell: dict[str, Any]) -> str:
        first = re.match(r"# needs (\w+)", "".join(cell["source"]))
        return str(cell["metadata"].get("needs", first[1] if first else ""))

    notebook["cells"] = [cell for cell in notebook["cells"] if needs(cell) not in lacking]


@dataclass(frozen=True, slots=True)
class Text:
    """A text in Markdown that a cell shows."""

    markdown: str

    def _repr_markdown_(self) -> str:
        return self.markdown


RECORD = "application/papermill.record/"  # before the types of what is kept and not displayed
_glued: dict[str, float | str | Html] = {}


def glue(**results: float | str | Html) -> None:
    """Keep results under their keys, from where the text of this page and of others takes them.

    The output is that of ``myst_nb.glue``, whose import takes every page four seconds.
    """
    from IPython.core.formatters import format_display_data
    from IPython.display import display

    for key, value in results.items():
        _glued[key] = value if isinstance(value, int | str | Html) else float(value)
        shown, metadata = format_display_data(_glued[key])  # type: ignore[no-untyped-call]
        metadata["scrapbook"] = {"name": key, "mime_prefix": RECORD}
        record = {RECORD + kind: data for kind, data in shown.items()}
        display(record, raw=True, metadata=metadata)  # type: ignore[no-untyped-call]


def plain(text: str) -> str:
    """Write a text of others so that neither Markdown, MyST nor HTML reads anything into it.

    >>> plain("<b> *a*")
    '\\\\<b\\\\> \\\\*a\\\\*'
    """
    return re.sub(r"([\\`*_{}\[\]<>&$#~|!^:@])", r"\\\1", " ".join(text.split()))


def say(text: str, /, **results: float | str) -> Text:
    """Show a text in Markdown, with results.

    ``{key}`` or ``{key:.2f}`` stands for one of the ``results``, or for what :func:`glue` keeps
    under that key; braces of formulas stay. Text among the results is shown as it is, whatever
    marks it holds. `InputError` for a key that was not given.

    >>> say(r"A share of {share:.0%} has $\\hat{\\mu} > 0$.", share=0.256).markdown
    'A share of 26 % has $\\\\hat{\\\\mu} > 0$.'
    """
    given = _glued | results

    def spell(found: re.Match[str]) -> str:
        if found[1] not in given:
            raise unknown("result", found[1], given)
        spelt = format(given[found[1]], found[2] or "")
        return plain(spelt) if isinstance(given[found[1]], str) else spelt.replace("%", " %")

    return Text(re.sub(r"(?<![\w^_{}\\])\{(\w+)(?::([^{}]*))?\}", spell, text.strip()))


def finding(text: str, /, **results: float | str) -> Text:
    """Show the finding of a page in large type: one sentence, with at most four of the ``results``,
    as in :func:`say`.
    """
    style = "class='capcal-finding' style='font-size: 1.35em; line-height: 1.35'"
    return Text(f"<div {style}>\n\n{say(text, **results).markdown}\n\n</div>")


def lay_out(notebook: dict[str, Any], name: str, versions: Mapping[str, str]) -> None:
    """Lay an executed page out for the book: below the title its finding, the line of provenance
    and the picture, by their tags; then all others. What only shows text hides its code.

    A page of which there are several ``versions``, the model of each by its name, has links to the
    others below its title.

    >>> cell = {"cell_type": "code", "source": "# needs samples\\nnotebook.say(...)",
    ...     "metadata": {"tags": ["finding"]}}
    >>> title = {"cell_type": "markdown", "source": "# Title", "metadata": {}}
    >>> page = {"cells": [title, {**title, "source": "Text."}, cell]}
    >>> lay_out(page, "01_page", {"01_page": "simulated"})
    >>> [cell["source"] for cell in page["cells"]]
    ['# Title', 'notebook.say(...)', 'Text.']
    """
    title, *cells = notebook["cells"]
    for cell in cells:
        cell["source"] = re.sub(r"^# needs \w+\n", "", "".join(cell["source"]))
        tags = cell["metadata"].setdefault("tags", [])
        if re.match(r"notebook\.(say|finding)\(", cell["source"]):
            tags.append("remove-input")
        if "injected-parameters" in tags:
            tags.append("hide-input")
        if "notebook.about(" in cell["source"]:
            tags.append("provenance")
        if "/" in name:  # labels are those of the first version
            cell["metadata"].get("mystnb", {}).get("figure", {}).pop("name", None)
    if len(versions) > 1:
        links = []
        for page, model in versions.items():
            target = relpath(f"{page}.ipynb", dirname(name))
            text = load_model(model).title
            links.append(text if page == name else f"[{text}]({target})")
        heading, _, rest = "".join(title["source"]).partition("\n")
        heading += f": {load_model(versions[name]).title}" if "/" in name else ""
        title["source"] = f"{heading}\n\n{' · '.join(links)}\n{rest}"

    def place(cell: dict[str, Any]) -> int:
        return next((TOP.index(tag) for tag in cell["metadata"]["tags"] if tag in TOP), len(TOP))

    notebook["cells"] = [title, *sorted(cells, key=place)]


def check_outputs(executed: Path) -> None:
    """Refuse an executed page on which a cell wrote to stderr, such as a warning, or shows a path
    of this machine.

    `InputError` says which page and cell, and how what it shows begins.
    """
    places = [str(place) for place in (ROOT, Path.home(), Path(sys.prefix)) if place.name]
    cells = json.loads(executed.read_text(encoding="utf-8"))["cells"]
    for number, cell in enumerate(cells):
        for output in cell.get("outputs", ()):
            if output.get("name") == "stderr":
                text = " ".join("".join(output["text"]).split())
                raise InputError(f"{executed.stem}: cell {number} writes to stderr: {text[:300]}")
            shown = json.dumps(output, ensure_ascii=False)
            for place in places:
                if re.search(rf"(?<![\w.-]){re.escape(place)}(?![\w.-])", shown):
                    raise InputError(
                        f"{executed.stem}: cell {number} shows a path of this machine: {place}"
                    )
