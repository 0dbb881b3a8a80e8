"""What a notebook needs: checked parameters, its run store, what is known of its model, and numbers
by key.
"""

import ast
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import pandas as pd

from capcal_lib.book.tables import Html, badge
from capcal_lib.errors import InputError, sanitize, unknown
from capcal_lib.manifests import IN_CHECKOUT, ROOT, dataset_names, load_model
from capcal_lib.reported import load_reported
from capcal_lib.results.scores import Protocol

INJECTED = "# Parameters"  # the first line of the cell in which papermill puts what it was given
ABSENT = "Recorded runs come with the repository, not with the package. "
HOW = """capcal reproduce --model MODEL --store runs/local
papermill notebooks/04_main_table.ipynb out.ipynb -p model MODEL -p store runs/local"""


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
    assigned = [
        node for cell in cells for node in ast.parse(cell).body if isinstance(node, ast.Assign)
    ]
    given = [
        target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)
    ]
    for name in given:
        if name not in declared:
            raise unknown("parameter", name, declared)
    for name, kind in declared.items():
        value = namespace[name]
        accepted = (int, float) if kind is float else (kind,)
        if type(value) not in accepted:
            got = type(value).__name__
            raise InputError(
                f"parameter {name} must be of type {kind.__name__}; got {value!r}, which is of "
                f"type {got}"
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
    """Say what is behind a page, or what is missing and how to measure it.

    ``runs`` are as ``results.describe_runs`` tells of them, none for a model without samples;
    ``lacking`` is what else the page has cells for and is not there, such as ``probes``, each with
    a sentence that says so; ``protocol`` and ``verdicts`` are said where they are not ours, with
    the page that shows what they change."""
    known = load_model(model)
    lines = [f"<strong>{escape(known.title)}</strong>"]
    for run in runs.to_dict("records"):
        each = " to ".join(dict.fromkeys(f"{run[end]:,}" for end in ("fewest", "most")))
        lines.append(
            f"{badge(run['evidence'])} {escape(run['title'])}: {run['questions']:,} questions, "
            f"{each} samples/question"
        )
    lines += [
        f"<strong>Damaged:</strong> {escape(each)}" for each in runs.attrs.get("problems", ())
    ]
    printed = int((load_reported()["model"] == model).sum())
    if printed:
        lines.append(
            f"{badge('reported')} {printed} numbers that the paper prints of "
            f"{escape(str(known.paper_name))}"
        )
    asked = ["the protocol of the paper"] * (protocol == "paper")
    asked += [f"verdicts by {verdicts.replace(':', ' ')}"] * (verdicts != "rules")
    if asked:
        lines.append(
            f"By {escape(' and '.join(asked))}; the page “What each correction changes” shows the "
            "effect."
        )
    if runs.empty:
        lines.append(
            "The run store has no samples of this model, so nothing here is measured. "
            f"{'' if IN_CHECKOUT else ABSENT}To measure it:<pre>{HOW}</pre>"
        )
        lacking = dict.fromkeys(lacking, "")
    lines += filter(None, map(escape, lacking.values()))
    words = [word for word, there in (("samples", len(runs)), ("paper", printed)) if not there]
    words += [word for word in lacking if word not in words]
    _skip(words)
    box = f"<div class='capcal-about' data-lacking='{' '.join(words)}'>{'<br>'.join(lines)}</div>"
    return Html(box.replace("MODEL", escape(model)))


def lack(missing: bool, /, **what: str) -> Html | None:
    """Say what turned out not to be there, and pass over the cells that need it.

    ``what`` has a sentence for each word of ``# needs``. Where nothing is ``missing``, nothing is
    said and every cell is executed."""
    if not missing:
        return None
    _skip(list(what))
    said = "<br>".join(map(escape, what.values()))
    return Html(f"<div class='capcal-about' data-lacking='{' '.join(what)}'>{said}</div>")


def _skip(lacking: Sequence[str]) -> None:
    """Let the kernel pass over cells whose first line says that they need what is lacking: ``#
    needs samples``.
    """
    from IPython import get_ipython

    def transform(lines: list[str]) -> list[str]:
        return (
            [] if lines and lines[0].strip() in [f"# needs {word}" for word in lacking] else lines
        )

    if (shell := get_ipython()) is not None:
        shell.input_transformers_cleanup.append(transform)


def drop_what_is_lacking(notebook: dict[str, Any]) -> None:
    """Take the cells that need what an executed page lacks out of it.

    A code cell says so in its first line, ``# needs samples`` or ``# needs paper``, a text cell in
    its metadata, ``needs="samples"``; what is lacking was found out by ``about``.

    >>> cells = [{"source": "# needs paper", "metadata": {}},
    ...     {"source": "", "metadata": {"needs": "samples"}}]
    >>> said = [{"data": {"text/html": ["<p class=\\"a\\" data-lacking='samples'>"]}}]
    >>> page = {"cells": [{"outputs": said, "source": "", "metadata": {}}, *cells]}
    >>> drop_what_is_lacking(page)
    >>> [cell["source"] for cell in page["cells"]]
    ['', '# needs paper']
    """
    said = [
        re.search(r"data-lacking='([a-z ]*)'", json.dumps(cell.get("outputs")))
        for cell in notebook["cells"]
    ]
    lacking = {word for match in said if match for word in match[1].split()}

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
_kept: dict[str, float | str | Html] = {}


def glue(**results: float | str | Html) -> None:
    """Keep results under their keys, from where the text of this page and of others takes them.

    The output is that of ``myst_nb.glue``, whose import takes every page four seconds.
    """
    from IPython.core.formatters import format_display_data
    from IPython.display import display

    for key, value in results.items():
        _kept[key] = value if isinstance(value, int | str | Html) else float(value)
        shown, metadata = format_display_data(_kept[key])  # type: ignore[no-untyped-call]
        metadata["scrapbook"] = {"name": key, "mime_prefix": RECORD}
        record = {RECORD + kind: data for kind, data in shown.items()}
        display(record, raw=True, metadata=metadata)  # type: ignore[no-untyped-call]


def say(text: str) -> Text:
    """Show a text in Markdown, with the results that the page has kept.

    ``{key}`` or ``{key:.2f}`` stands for what :func:`glue` keeps under that key; other braces, such
    as those of formulas, stay. The book sets it as text of the page.

    >>> _kept["share"] = 0.256
    >>> say(r"A share of {share:.0%} has $\\hat{\\mu} > 0$.").markdown
    'A share of 26 % has $\\\\hat{\\\\mu} > 0$.'
    """

    def spell(found: re.Match[str]) -> str:
        if found[1] not in _kept:
            return found[0]
        spelt = format(_kept[found[1]], found[2] or "")
        return re.sub(r"(?<=\d)%", " %", spelt)

    return Text(re.sub(r"\{(\w+)(?::([^{}]*))?\}", spell, text.strip()))


def set_as_text(notebook: dict[str, Any]) -> None:
    """Turn the cells of an executed page that only :func:`say` something into text cells.

    Those tagged ``finding`` come below the title: what was found, before how.

    >>> said = {"output_type": "execute_result", "data": {"text/markdown": ["Two of three."]}}
    >>> cell = {"cell_type": "code", "source": "notebook.say(...)", "outputs": [said]}
    >>> page = {"cells": [cell | {"metadata": {}}]}
    >>> set_as_text(page)
    >>> page["cells"]
    [{'cell_type': 'markdown', 'metadata': {}, 'source': 'Two of three.'}]
    """
    cells: list[dict[str, Any]] = []
    findings: list[dict[str, Any]] = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code" or not re.match(r"(# needs \w+\n)?notebook\.say\(", source):
            cells.append(cell)
            continue
        if len(cell["outputs"]) != 1:
            raise InputError(
                f"a cell says nothing, and none shows what it lacks: {sanitize(source, 80)}; "
                "notebook.about or notebook.lack has to be the last line of a cell"
            )
        (said,) = cell["outputs"]
        text = {
            "cell_type": "markdown",
            "metadata": {},
            "source": "".join(said["data"]["text/markdown"]),
        }
        if "id" in cell:
            text["id"] = cell["id"]
        is_finding = "finding" in cell["metadata"].get("tags", ())
        (findings if is_finding else cells).append(text)
    notebook["cells"] = [*cells[:1], *findings, *cells[1:]]


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
