"""Execute the notebooks whose inputs have changed, and build the book from them."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from capcal_lib.errors import InputError
from capcal_lib.manifests import load_model
from capcal_lib.places import (
    BOOK,
    BUILD,
    IN_CHECKOUT,
    MANIFESTS,
    NOTEBOOKS,
    RECORDED_RUNS,
    ROOT,
    own_manifests,
)

WORKERS = 2
MADE_BELOW = "# made below"  # the book leaves out what a cell without source shows
LOCKS = ("lock", "files.lock")  # of a run; the second of earlier versions
Say = Callable[[str], object]


def book_pages(models: Sequence[str] = ()) -> dict[str, str]:
    """Map the notebooks, in reading order, to the first of the models, or else to none: each has
    its own.
    """
    model = load_model(models[0]).name if models else ""
    return {path.stem: model for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))}


def model_pages(models: Sequence[str]) -> dict[str, str]:
    """Map all notebooks of each of the models, in a folder for each, to the model."""
    names = {f"models/{model}": load_model(model).name for model in models}
    return {f"{folder}/{page}": names[folder] for folder in names for page in book_pages()}


def unlike_their_source() -> list[Path]:
    """List the notebooks whose cells are not those of the ``.py`` beside them, which is their
    source in a checkout. None are listed without jupytext.
    """
    if find_spec("jupytext") is None:
        return []
    sources = sorted(NOTEBOOKS.glob("[0-9]*.py"))
    pairs = [(source, source.with_suffix(".ipynb")) for source in sources]
    return [page for source, page in pairs if page.exists() and _cells(source) != _cells(page)]


def _cells(notebook: Path) -> list[tuple[Any, ...]]:
    import jupytext

    cells = jupytext.read(notebook).cells
    return [(cell.cell_type, cell.source, cell.metadata.get("tags")) for cell in cells]


def execute(
    pages: Mapping[str, str],
    folder: Path,
    *,
    store: Path | None = None,
    verdicts: str = "rules",
    say: Say,
) -> dict[str, str]:
    """Execute into a folder the pages whose inputs have changed since they were last executed.

    ``pages`` are those of :func:`book_pages` or :func:`model_pages`. Inputs are the notebook, its
    parameters, the library, the manifests, the run store and the pinned requirements. Says which
    notebooks are unlike their source. Returns the pages that failed, each with the last line of its
    error; the others are executed all the same.
    """
    for notebook in unlike_their_source():
        say(f"notebooks/{notebook.stem}.py has changed: run make notebooks")
    if store is None and not RECORDED_RUNS.is_dir():
        store = folder / "no_runs"  # a wheel has none: pages show what the paper prints
        store.mkdir(parents=True, exist_ok=True)
    places = [ROOT / "capcal_lib", MANIFESTS, ROOT / "requirements.lock", store or RECORDED_RUNS]
    inputs = _digest([*places, *filter(None, [own_manifests()])])

    def run(page: str) -> tuple[str, str, str]:
        source = NOTEBOOKS / f"{Path(page).name}.ipynb"
        text = source.read_text(encoding="utf-8")
        given = {"model": pages[page], "store": str(store.resolve()) if store else ""}
        if verdicts != "rules" and '"verdicts: str' in text:
            given["verdicts"] = verdicts
        options = [word for name, value in given.items() if value for word in ("-r", name, value)]
        key = hashlib.sha256(f"{inputs}{text}{options}".encode()).hexdigest()
        executed = folder / f"{page}.ipynb"
        mark = executed.with_suffix(".inputs")
        if executed.exists() and mark.exists() and mark.read_text() == key:
            return page, "unchanged", ""
        mark.unlink(missing_ok=True)
        executed.parent.mkdir(parents=True, exist_ok=True)
        if reason := _papermill(source, executed, options):
            return page, "failed", reason
        mark.write_text(key)
        return page, "executed", ""

    failed = {}
    with ThreadPoolExecutor(WORKERS) as pool:
        for page, state, reason in pool.map(run, pages):
            say(f"{page}, {state}")
            if reason:
                failed[page] = reason
    return failed


def _papermill(source: Path, executed: Path, options: Sequence[str]) -> str:
    """Execute a notebook; return the last line of its error, if there is one."""
    tool = Path(sys.executable).with_name("papermill")
    command = [str(tool), "--no-progress-bar", str(source), str(executed), *options]
    alone = {"OMP_NUM_THREADS": "1"} | os.environ  # or pages wait for each other
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, env=alone)
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def _digest(places: Sequence[Path]) -> str:
    """Return the SHA-256 of files and of all files in folders, with their names."""
    digest = hashlib.sha256()
    for place in places:
        for path in [place, *sorted(place.rglob("*"))]:
            if path.is_file() and path.suffix != ".pyc" and path.name not in LOCKS:
                digest.update(f"{path.relative_to(place)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def build_book(
    models: Sequence[str] = (),
    *,
    store: Path | None = None,
    verdicts: str = "rules",
    out: Path | None = None,
    say: Say,
) -> tuple[Path, dict[str, str]]:
    """Execute the pages of a book and build it: the published one, where a warning is an error, or
    for the first of the models one of its pages alone. Return its front page, and the pages that
    failed, each with the reason.

    ``out``, by default ``build`` at the root, is for all that is made. Where nothing has changed
    since the last build, nothing is done. `InputError` where the build fails.
    """
    out = (out or BUILD).resolve()
    pages, executed, source = book_pages(models), out / "notebooks", out / "book_source"
    failed = execute(pages, executed, store=store, verdicts=verdicts, say=say)
    index = out / "book" / "_build" / "html" / "index.html"
    config = (ROOT if IN_CHECKOUT else BOOK) / "_config.yml"
    inputs = _digest([BOOK, config, executed])
    mark = out / "book" / "inputs"
    if index.exists() and mark.exists() and mark.read_text() == inputs:
        say("the book, unchanged")
        return index, failed
    for folder in (source, out / "book"):  # Sphinx would keep what it remembers of moved pages
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(BOOK, source, ignore=shutil.ignore_patterns("tools"))
    if models:
        title = f"# Capability calibration: {models[0]}\n\n```{{tableofcontents}}\n```\n"
        (source / "index.md").write_text(title, encoding="utf-8")
        files = "\n".join(f"  - file: notebooks/{page}" for page in pages)
        toc = f"format: jb-book\nroot: index\nchapters:\n{files}\n"
        (source / "_toc.yml").write_text(toc, encoding="utf-8")
    (source / "notebooks").mkdir()
    for page in pages:
        notebook = json.loads((executed / f"{page}.ipynb").read_bytes())
        end(notebook)
        lift(notebook)
        text = json.dumps(notebook)
        (source / "notebooks" / f"{page}.ipynb").write_text(text, encoding="utf-8")
    _run_jupyter_book(source, config, out, strict=not models and not failed)
    mark.write_text(inputs)
    return index, failed


def end(notebook: dict[str, Any]) -> None:
    """Turn the error that ended a page early into its sentence, and remove all that is below.

    >>> ended = {"output_type": "error", "ename": "SystemExit", "traceback": ["No samples."]}
    >>> page = {"cells": [{"outputs": [ended]}, {"outputs": []}]}
    >>> end(page)
    >>> page["cells"]
    [{'outputs': [{'output_type': 'stream', 'name': 'stdout', 'text': 'No samples.'}]}]
    """
    for place, cell in enumerate(notebook["cells"]):
        for output in cell.get("outputs", []):
            if output.get("ename") == "SystemExit":
                reason = "\n".join(output["traceback"])
                cell["outputs"].remove(output)
                cell["outputs"].append({"output_type": "stream", "name": "stdout", "text": reason})
                del notebook["cells"][place + 1 :]
                return


def lift(notebook: dict[str, Any]) -> None:
    """Put what the cells tagged ``finding`` and ``picture`` show below the title, a picture with
    the text after it. Their code stays where it runs, also in a page that a reader downloads.

    >>> def cell(source, *tags):
    ...     return {"id": source, "source": source, "metadata": {"tags": [*tags]}, "outputs": [1]}
    >>> page = {"cells": [cell("Title"), cell("1"), cell("draw", "picture"), cell("Below.")]}
    >>> lift(page)
    >>> [(shown["source"], len(shown["outputs"])) for shown in page["cells"]]
    [('Title', 1), ('# made below', 1), ('Below.', 1), ('1', 1), ('draw', 0)]
    """
    title, *cells = notebook["cells"]
    lifted = []
    for tag in ("finding", "picture"):
        for cell in [cell for cell in cells if tag in cell["metadata"].get("tags", ())]:
            shown = deepcopy(cell) | {"id": f"{cell['id']}-shown", "source": MADE_BELOW}
            shown["metadata"]["tags"] = [tag, "remove-input"]
            lifted.append(shown)
            cell["outputs"] = []
            if tag == "picture":
                lifted.append(cells.pop(cells.index(cell) + 1))
    notebook["cells"] = [title, *lifted, *cells]


def _run_jupyter_book(source: Path, config: Path, out: Path, *, strict: bool) -> None:
    """Build the pages in ``source`` into ``out/book``, with a log beside it. `InputError` with the
    first twenty warnings where the build fails.
    """
    tool = Path(sys.executable).with_name("jupyter-book")
    options = ["-n", "--keep-going", "--path-output=book", *(["-W"] if strict else [])]
    log = out / "book.log"
    with log.open("w", encoding="utf-8") as file:
        command = [str(tool), "build", str(source), "--config", str(config), *options]
        done = subprocess.run(command, stdout=file, stderr=file, cwd=out, check=False)
    if done.returncode:
        wrong = re.findall(r".*(?:WARNING|ERROR).*", log.read_text(encoding="utf-8"))[:20]
        raise InputError("\n".join([f"the book does not build; see {log}:", *wrong]))
