"""What a notebook needs: checked parameters, its run store, what is known of its model, and numbers by key."""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib.book.tables import Html, badge
from capcal_lib.errors import InputError, unknown
from capcal_lib.manifests import ROOT, Model, load_dataset, load_model, model_names
from capcal_lib.reported import load_reported
from capcal_lib.results.evaluation import Evaluation, beta_evaluation, evaluated, load_evaluation
from capcal_lib.sampling.weights import weights_folder

INJECTED = "# Parameters"  # the first line of the cell in which papermill puts what it was given
HOW = """capcal sample --model MODEL --dataset gsm8k --k 110 --store runs/local
capcal grade --model MODEL --dataset gsm8k --store runs/local
papermill notebooks/04_main_table.ipynb out.ipynb -p model MODEL -p store runs/local"""


@dataclass(frozen=True, eq=False)
class Study:
    """A notebook's model and what is known of it."""

    model: Model
    evaluations: tuple[Evaluation, ...]  # largest first; simulated where only two moments are reported
    reported: bool  # whether the paper has numbers of this model
    store: Path
    k_eval: int
    seed: int

    @cached_property
    def rng(self) -> np.random.Generator:
        """Return the generator behind everything that the notebook draws."""
        return np.random.default_rng(self.seed)

    def everyone(self) -> "list[Study]":
        """Return the studies of all models of which anything is known, by the same parameters; this one is its own."""
        names = model_names()
        studies = [
            self if name == self.model.name else _study(name, self.store, self.k_eval, self.seed) for name in names
        ]
        return [study for study in studies if study.evaluations or study.reported]

    def repeatable(self, dataset: str) -> list[Evaluation]:
        """Return the evaluation on a data set, if it can be sampled again here: at most one.

        That takes recorded samples and weights that are on this machine.
        """
        name = load_dataset(dataset).name
        here = self.model.engine == "simulated" or weights_folder(self.model) is not None
        return [one for one in self.evaluations if here and one.sampled and one.dataset.name == name]

    def _repr_html_(self) -> str:
        """Say what the page's numbers rest on, and what is missing."""
        lines = [f"<strong>{escape(self.model.title)}</strong>"]
        lines += [
            f"{badge(one.evidence)} {escape(one.dataset.title)}: "
            + escape("; ".join((f"{len(one.counts):,} questions, {one.source}", *one.remarks())))
            for one in self.evaluations
        ]
        if self.reported:
            lines.append(f"{badge('reported')} what the paper prints of {escape(str(self.model.paper_name))}")
        if all(not one.sampled for one in self.evaluations):
            lines.append(
                "No samples of this model are in the run store, so nothing here is measured. "
                f"To measure it: <code>capcal sample --model {self.model.name} --dataset gsm8k --k 110 && "
                f"capcal grade --model {self.model.name} --dataset gsm8k</code>, then this page with "
                "<code>-p store runs/local</code>."
            )
        return "<div class='capcal-study'>" + "<br>".join(lines) + "</div>"


def open_study(namespace: Mapping[str, Any]) -> Study:
    """Check a notebook's parameters, and load what there is of its model.

    Parameters
    ----------
    namespace
        The notebook's ``globals()``, with ``model``, ``store``, ``k_eval`` and ``seed``.

    Raises
    ------
    InputError
        For a parameter that the notebook does not have or that has another type, an unknown model, or
        a corrupt run.
    """
    check_parameters(namespace)
    model, k_eval, seed = load_model(namespace["model"]), namespace["k_eval"], namespace["seed"]
    if k_eval < 1:
        raise InputError(f"parameter k_eval is a number of samples and must be at least 1; got {k_eval}")
    if seed < 0:
        raise InputError(f"parameter seed must not be negative; got {seed}")
    return _study(model.name, open_store(namespace["store"]), k_eval, seed)


def _study(name: str, store: Path, k_eval: int, seed: int) -> Study:
    found = [load_evaluation(store, name, dataset, k_eval=k_eval) for dataset in evaluated(store, name)]
    measured = tuple(sorted(found, key=lambda one: -len(one.counts)))
    tables = load_reported("mean_accuracy")
    pairs = tables[tables["model"] == name]["dataset"]
    rng = np.random.default_rng(seed)
    evaluations = measured or tuple(beta_evaluation(name, dataset, k_eval=k_eval, rng=rng) for dataset in pairs)
    return Study(load_model(name), evaluations, len(pairs) > 0, store, k_eval, seed)


def check_parameters(namespace: Mapping[str, Any]) -> None:
    """Refuse parameters that the notebook does not declare, and values of another type.

    papermill only warns of the first and does not look at the second. The declared ones are the annotated
    names of the notebook; the given ones are those assigned in a cell that papermill injected.

    Examples
    --------
    >>> check_parameters({"__annotations__": {"k": int}, "k": "three", "In": ["# Parameters\\nk = 'three'"]})
    Traceback (most recent call last):
    ...
    capcal_lib.errors.InputError: parameter k must be of type int; got 'three', which is of type str
    """
    declared: dict[str, type] = namespace.get("__annotations__", {})
    cells = [cell for cell in namespace.get("In", []) if cell.startswith(INJECTED)]
    given = [target.id for cell in cells for target in _assigned(cell)]
    for name in given:
        if name not in declared:
            raise unknown("parameter", name, declared)
    for name, kind in declared.items():
        value = namespace[name]
        accepted = (int, float) if kind is float else (kind,)
        if type(value) not in accepted:
            got = type(value).__name__
            raise InputError(f"parameter {name} must be of type {kind.__name__}; got {value!r}, which is of type {got}")


def open_store(path: str | Path) -> Path:
    """Find the folder of a run store.

    A relative path counts from where one stands, and from the root of the repository if there is no such folder.

    Raises
    ------
    InputError
        Where there is neither.

    Examples
    --------
    >>> open_store("runs/recorded").name
    'recorded'
    """
    for store in (Path(path), ROOT / path):
        if store.is_dir():
            return store
    raise InputError(f"parameter store names no folder: {str(path)!r}; looked in {Path.cwd()} and {ROOT}")


def about(model: str, runs: pd.DataFrame, *, lacking: Mapping[str, str] = MappingProxyType({})) -> Html:
    """Say what is behind a page, or what is missing and how to measure it.

    Parameters
    ----------
    model
        A name of ``capcal models``.
    runs
        As ``results.describe_runs`` gives it; empty for a model without samples.
    lacking
        What else the page has cells for and is not there, such as ``probes``, each with a sentence that says so.
    """
    known = load_model(model)
    lines = [f"<strong>{escape(known.title)}</strong>"]
    for run in runs.to_dict("records"):
        each = " to ".join(dict.fromkeys(f"{run[end]:,}" for end in ("fewest", "most")))
        lines.append(
            f"{badge(run['evidence'])} {escape(run['title'])}: {run['questions']:,} questions, {each} samples/question"
        )
    printed = int((load_reported()["model"] == model).sum())
    if printed:
        lines.append(f"{badge('reported')} {printed} numbers that the paper prints of {escape(str(known.paper_name))}")
    if runs.empty:
        lines.append(
            f"The run store has no samples of this model, so nothing here is measured. To measure it:<pre>{HOW}</pre>"
        )
        lacking = dict.fromkeys(lacking, "")
    lines += filter(None, map(escape, lacking.values()))
    words = [word for word, there in (("samples", len(runs)), ("paper", printed)) if not there]
    words += [word for word in lacking if word not in words]
    _skip(words)
    box = f"<div class='capcal-about' data-lacking='{' '.join(words)}'>{'<br>'.join(lines)}</div>"
    return Html(box.replace("MODEL", escape(model)))


def _skip(lacking: Sequence[str]) -> None:
    """Let the kernel pass over cells whose first line says that they need what is lacking: ``# needs samples``."""
    from IPython import get_ipython

    def transform(lines: list[str]) -> list[str]:
        return [] if lines and lines[0].strip() in [f"# needs {word}" for word in lacking] else lines

    if (shell := get_ipython()) is not None:
        shell.input_transformers_cleanup.append(transform)


def drop_what_is_lacking(notebook: dict[str, Any]) -> None:
    """Take the cells that need what an executed page lacks out of it.

    A code cell says so in its first line, ``# needs samples`` or ``# needs paper``, a text cell in its metadata,
    ``needs="samples"``; what is lacking was found out by ``about``.

    Examples
    --------
    >>> cells = [{"source": "# needs paper", "metadata": {}}, {"source": "", "metadata": {"needs": "samples"}}]
    >>> page = {"cells": [{"outputs": "data-lacking='samples'", "source": "", "metadata": {}}, *cells]}
    >>> drop_what_is_lacking(page)
    >>> [cell["source"] for cell in page["cells"]]
    ['', '# needs paper']
    """
    said = [re.search(r"data-lacking='([a-z ]*)'", str(cell.get("outputs", ""))) for cell in notebook["cells"]]
    lacking = {word for match in said if match for word in match[1].split()}

    def needs(cell: dict[str, Any]) -> str:
        first = re.match(r"# needs (\w+)", "".join(cell["source"]))
        return str(cell["metadata"].get("needs", first[1] if first else ""))

    notebook["cells"] = [cell for cell in notebook["cells"] if needs(cell) not in lacking]


def glue(**results: float | str) -> None:
    """Keep results under their keys, from where the text takes them."""
    from myst_nb import glue as keep

    for key, value in results.items():
        keep(key, value if isinstance(value, int | str) else float(value), display=False)


def _assigned(cell: str) -> list[ast.Name]:
    statements = [node for node in ast.parse(cell).body if isinstance(node, ast.Assign)]
    return [target for node in statements for target in node.targets if isinstance(target, ast.Name)]
