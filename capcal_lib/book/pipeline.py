"""Execute the notebooks whose inputs have changed, and build the book from them."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from capcal_lib.book.layout import lay_out
from capcal_lib.book.lesson import plain
from capcal_lib.book.map import map_page
from capcal_lib.book.printed import printed_page
from capcal_lib.book.style import NARROW
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

MAP, PRINTED = "reference/paper_map", "reference/printed"
WORKERS = 2
CELL_TIMEOUT_S = 600
LOCKS = ("lock", "files.lock")  # of a run

Say = Callable[[str], object]


class Page(NamedTuple):
    """A notebook executed for one model."""

    notebook: str  # such as 04_main_table
    model: str
    name: str  # path without its ending, in the book or among notebooks of several models

    def executed(self, folder: Path) -> Path:
        """Return where the executed notebook lies in a folder of them, one that failed as far as it
        came.
        """
        return folder / f"{self.name}.ipynb"


def notebook_names() -> list[str]:
    """List the notebooks in the order in which they are read."""
    return sorted(path.stem for path in NOTEBOOKS.glob("[0-9]*.ipynb"))


def default_model(notebook: str) -> str:
    """Return the model that a notebook opens with, from its parameters.

    Most open with the model whose expected accuracies differ most, of those recorded on public
    data; where a page needs what only another one has recorded, its parameters say so.

    >>> default_model("04_main_table")
    'qwen2.5-coder-1.5b'
    """
    text = (NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8")
    return re.findall(r'"model: str = \\"(.+?)\\"', text)[0]


def book_pages(models: Sequence[str] = ()) -> list[Page]:
    """List the pages of a book that are notebooks: each for the first of the models, by default its
    own one.
    """
    model = load_model(models[0]).name if models else None
    return [Page(name, model or default_model(name), name) for name in notebook_names()]


def model_pages(models: Sequence[str]) -> list[Page]:
    """List all notebooks for the given models."""
    return [
        Page(notebook, load_model(model).name, f"models/{model}/{notebook}")
        for model in models
        for notebook in notebook_names()
    ]


def own_front_page(model: str) -> str:
    """Write the front page of a book of one's own: its title and the list of its pages.

    >>> own_front_page("qwen3-8b").splitlines()[0]
    '# Capability calibration of Qwen3-8B (non-thinking)'
    """
    title = plain(load_model(model).title)
    return f"# Capability calibration of {title}\n\n```{{tableofcontents}}\n```\n"


def execute(
    pages: Sequence[Page],
    folder: Path,
    *,
    store: Path | None = None,
    verdicts: str = "rules",
    say: Say,
) -> dict[Page, str]:
    """Execute into a folder the pages whose inputs have changed since they were last executed.

    A page's inputs are the notebook, its parameters, the library, the manifests, the run store
    (``store`` in place of the recorded runs) and the pinned requirements; ``verdicts`` says whose
    count on pages that let one choose. Returns the pages that failed, each with its cell and the
    last line of the error; the others are executed all the same, and those that failed are executed
    again the next time.
    """
    import papermill  # noqa: F401, or else nothing is written

    folder = folder.resolve()
    if store is None and not RECORDED_RUNS.is_dir():
        store = folder / "no_runs"  # a wheel has none: pages say so
        store.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # or pages wait for each other
    places = [ROOT / "capcal_lib", MANIFESTS, ROOT / "requirements.lock", store or RECORDED_RUNS]
    own_folder = own_manifests()
    if own_folder is not None:
        places.append(own_folder)
    inputs = _digest(places)
    given = {"verdicts": verdicts} | ({"store": str(store)} if store else {})
    run = partial(_run, folder=folder, inputs=inputs, given=given)
    failed = {}
    with ThreadPoolExecutor(WORKERS) as pool:
        done = zip(count(1), pages, pool.map(run, pages), strict=False)
        for number, page, (state, reason) in done:
            say(f"{number:>3} of {len(pages)}   {page.name}, {state}")
            if reason:
                failed[page] = reason
    return failed


def _digest(places: Sequence[Path]) -> str:
    """Return the SHA-256 of files and of all files in folders: of their contents, and of where in
    its folder each lies.
    """
    digest = hashlib.sha256()
    for place in places:
        for path in [place, *sorted(place.rglob("*"))]:
            if path.is_file() and path.suffix != ".pyc" and path.name not in LOCKS:
                digest.update(f"{path.relative_to(place)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _run(page: Page, folder: Path, inputs: str, given: dict[str, str]) -> tuple[str, str]:
    """Execute one page if it is not what its inputs make, and return what was done, and the reason
    where it failed.
    """
    import papermill
    from jupyter_core.utils import ensure_event_loop
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    source = NOTEBOOKS / f"{page.notebook}.ipynb"
    text = source.read_text(encoding="utf-8")
    parameters = given | {"model": page.model}
    if '"verdicts: str' not in text:
        del parameters["verdicts"]
    key = hashlib.sha256(f"{inputs}\n{text}\n{parameters}".encode()).hexdigest()
    executed = page.executed(folder)
    mark = executed.with_suffix(".inputs")
    if executed.exists() and mark.exists() and mark.read_text() == key:
        return "unchanged", ""
    mark.unlink(missing_ok=True)
    executed.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    try:
        with contextlib.closing(ensure_event_loop()):  # of this thread
            papermill.execute_notebook(
                source,
                executed,
                parameters=parameters,
                progress_bar=False,
                execution_timeout=CELL_TIMEOUT_S,
                extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
            )
    except PapermillExecutionError as error:
        return "failed", f"cell {error.exec_count}: {error.ename}: {error.evalue}"
    except (CellTimeoutError, DeadKernelError) as error:
        return "failed", str(error).splitlines()[0]
    mark.write_text(key)
    return f"{time.monotonic() - started:.0f} s", ""


def build_book(
    models: Sequence[str] = (),
    *,
    store: Path | None = None,
    verdicts: str = "rules",
    out: Path | None = None,
    say: Say,
) -> tuple[Path, dict[Page, str]]:
    """Execute the pages of a book and build it, warnings being errors in the book as published
    unless a page failed; return its front page, and the pages that failed, each with the reason.

    ``models`` are those of :func:`book_pages`; ``store`` and ``verdicts`` those of :func:`execute`;
    ``out``, by default ``build`` at the root, is for all that is made. A page that failed is shown
    as far as it came. Where nothing has changed since the last build, nothing is done. `InputError`
    where the build fails."""
    import jupyter_book  # noqa: F401, or else nothing is written

    if not models and not RECORDED_RUNS.is_dir():
        raise InputError(
            "the published book needs the recorded runs, which only the repository has; for a book "
            "of your own: capcal book --model M --store DIR"
        )
    out = (out or BUILD).resolve()
    pages, executed, source = book_pages(models), out / "notebooks", out / "book_source"
    failed = execute(pages, executed, store=store, verdicts=verdicts, say=say)
    index = out / "book" / "_build" / "html" / "index.html"
    config = (ROOT if IN_CHECKOUT else BOOK) / "_config.yml"
    inputs = _digest([BOOK, config, executed])  # executed pages say what they were made from
    mark = out / "book" / "inputs"
    if index.exists() and mark.exists() and mark.read_text() == inputs:
        say("the book, unchanged")
        return index, failed
    for folder in (source, out / "book"):  # Sphinx would keep what it remembers of moved pages
        shutil.rmtree(folder, ignore_errors=True)
    _write_source(source, pages, executed, models)
    strict = not models and not failed
    _run_jupyter_book(source, config, out, strict=strict)
    downloads = index.parent / "_sources" / "notebooks"
    downloads.mkdir(parents=True, exist_ok=True)
    for page in pages:  # as it is run, and not as the book shows it: in another order, with outputs
        shutil.copy(NOTEBOOKS / f"{page.notebook}.ipynb", page.executed(downloads))
    mark.write_text(inputs)
    return index, failed


def _write_source(
    source: Path, pages: Sequence[Page], executed: Path, models: Sequence[str]
) -> None:
    """Write what Sphinx reads: the book's own pages, the map, what the paper prints, and the
    executed notebooks laid out, with the narrow form of each figure.
    """
    shutil.copytree(BOOK, source, ignore=shutil.ignore_patterns("tools"))
    narrow = source / "static" / "narrow"
    narrow.mkdir()
    (source / f"{MAP}.md").write_text(map_page(), encoding="utf-8")
    text, figures = printed_page()
    (source / f"{PRINTED}.md").write_text(text, encoding="utf-8")
    (source / PRINTED).mkdir()
    for name, forms in figures.items():
        (source / PRINTED / f"{name}.svg").write_text(forms["image/svg+xml"], encoding="utf-8")
        (narrow / f"{name}.svg").write_text(forms[NARROW], encoding="utf-8")
    if models:
        (source / "index.md").write_text(own_front_page(models[0]), encoding="utf-8")
    for page in pages:
        notebook = json.loads(page.executed(executed).read_bytes())
        for name, drawing in lay_out(notebook).items():
            (narrow / f"{name}.svg").write_text(drawing, encoding="utf-8")
        path = page.executed(source / "notebooks")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(notebook))


def _run_jupyter_book(source: Path, config: Path, out: Path, *, strict: bool) -> None:
    """Build the pages in ``source`` into ``out/book``, with a log beside it; where it is strict, a
    warning is an error. `InputError` with the first twenty warnings where the build fails.
    """
    tool = Path(sys.executable).with_name("jupyter-book")
    options = ["-n", "--keep-going", "--path-output=book"]
    if strict:
        options.append("-W")
    log = out / "book.log"
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(
            [tool, "build", source, "--config", config, *options],
            stdout=file,
            stderr=file,
            cwd=out,
            check=False,
        )
    if done.returncode:
        wrong = re.findall(r".*(?:WARNING|ERROR).*", log.read_text(encoding="utf-8"))[:20]
        raise InputError("\n".join([f"the book does not build; see {log}:", *wrong]))
