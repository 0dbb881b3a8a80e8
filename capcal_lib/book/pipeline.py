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
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from capcal_lib.book.map import map_page
from capcal_lib.book.notebook import check_outputs, lay_out
from capcal_lib.errors import InputError
from capcal_lib.manifests import (
    BOOK,
    BUILD,
    IN_CHECKOUT,
    MANIFESTS,
    NOTEBOOKS,
    OWN_MANIFESTS,
    RECORDED_RUNS,
    ROOT,
    load_model,
    own_manifests,
)

DEFAULT_MODEL = (
    "qwen2.5-coder-1.5b"  # its expected accuracies differ most, of those recorded on public data
)
MAIN_TABLE, PAPER_MODELS = "04_main_table", ("olmo-3-7b-instruct", "qwen3-8b", "gpt-oss-20b")
MAP = "reference/paper_map"
WORKERS = 2
CELL_TIMEOUT_S = 600
CONFIG = ROOT if IN_CHECKOUT else BOOK  # where _config.yml lies
OWN_INDEX = "# Capability calibration of {}\n\n```{{tableofcontents}}\n```\n"

Say = Callable[[str], object]


class Page(NamedTuple):
    """A notebook executed for one model."""

    notebook: str  # such as 04_main_table
    model: str
    name: str  # path in the book without its ending

    def executed(self, folder: Path) -> Path:
        """Return where the executed notebook lies in a folder of them."""
        return folder / f"{self.name}.ipynb"

    def unfinished(self, folder: Path) -> Path:
        """Return where a notebook lies that failed, as far as it came."""
        return folder / f"{self.name}.unfinished.ipynb"


def notebook_names() -> list[str]:
    """List the notebooks in the order in which they are read."""
    return sorted(path.stem for path in NOTEBOOKS.glob("[0-9]*.ipynb"))


def default_model(notebook: str) -> str:
    """Return the model that a notebook opens with, from its parameters.

    It is `DEFAULT_MODEL`, but where a page needs what only another model has recorded, which its
    parameters say.

    >>> default_model("04_main_table") == DEFAULT_MODEL
    True
    """
    text = (NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8")
    return re.findall(r'"model: str = \\"(.+?)\\"', text)[0]


def book_pages(models: Sequence[str] = ()) -> list[Page]:
    """List the pages of a book: each notebook once, for the first of the models.

    Without models they are those of the book as it is published: each with its default one, and the
    main table for each model of the paper."""
    if models:
        model = load_model(models[0]).name
        return [Page(notebook, model, notebook) for notebook in notebook_names()]
    pages = [Page(notebook, default_model(notebook), notebook) for notebook in notebook_names()]
    if any(page.notebook == MAIN_TABLE for page in pages):
        pages += [Page(MAIN_TABLE, model, f"{MAIN_TABLE}/{model}") for model in PAPER_MODELS]
    return pages


def model_pages(models: Sequence[str]) -> list[Page]:
    """List all notebooks for the given models."""
    return [
        Page(notebook, load_model(model).name, f"models/{model}/{notebook}")
        for model in models
        for notebook in notebook_names()
    ]


def execute(
    pages: Iterable[Page],
    folder: Path = BUILD / "notebooks",
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
    check_installed("papermill", "ipykernel", "myst_nb")
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if store is None and not RECORDED_RUNS.is_dir():
        store = folder / "no_runs"  # a wheel has none: pages say so
        store.mkdir(exist_ok=True)
    own = own_manifests()
    if own:
        os.environ[OWN_MANIFESTS] = str(own)  # for kernels, which run elsewhere
    # More threads than cores wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // WORKERS)))
    inputs = hashlib.sha256()
    for place in filter(None, (ROOT / "capcal_lib", MANIFESTS, own, store or RECORDED_RUNS)):
        for path in sorted(place.rglob("*")):
            if path.is_file() and path.suffix != ".pyc" and path.name != "lock":
                inputs.update(f"{path.relative_to(place)}\0".encode())
                inputs.update(hashlib.sha256(path.read_bytes()).digest())
    if (lock := ROOT / "requirements.lock").exists():
        inputs.update(lock.read_bytes())
    run = partial(_run, folder=folder, inputs=inputs.hexdigest(), store=store, verdicts=verdicts)
    failed: dict[Page, str] = {}
    pages = list(pages)
    with (
        contextlib.chdir(ROOT if IN_CHECKOUT else Path.cwd()),
        ThreadPoolExecutor(WORKERS) as pool,
    ):
        jobs = {pool.submit(run, page): page for page in pages}
        try:
            for number, job in enumerate(as_completed(jobs), start=1):
                page = jobs[job]
                try:
                    done = job.result()
                except InputError as error:
                    failed[page] = str(error)
                    done = "failed"
                say(f"{number:>3} of {len(pages)}   {page.name}, {done}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return failed


def _run(page: Page, folder: Path, inputs: str, store: Path | None, verdicts: str) -> str:
    """Execute one page if it is not what its inputs make, and return what was done."""
    import papermill
    from jupyter_core.utils import ensure_event_loop
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    source = (NOTEBOOKS / f"{page.notebook}.ipynb").resolve()
    text = source.read_text(encoding="utf-8")
    parameters = {"model": page.model}
    if store:
        parameters["store"] = str(store)
    if verdicts != "rules" and '"verdicts: str' in text:
        parameters["verdicts"] = verdicts
    key = hashlib.sha256(f"{inputs}\n{text}\n{parameters}".encode()).hexdigest()
    executed, unfinished = page.executed(folder), page.unfinished(folder)
    if executed.exists() and key in executed.read_text(encoding="utf-8"):
        return "unchanged"
    executed.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    try:
        with contextlib.closing(ensure_event_loop()):  # of this thread
            notebook = papermill.execute_notebook(
                source,
                unfinished,
                parameters=parameters,
                progress_bar=False,
                execution_timeout=CELL_TIMEOUT_S,
                extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
            )
    except PapermillExecutionError as error:
        raise InputError(f"cell {error.exec_count}: {error.ename}: {error.evalue}") from None
    except (CellTimeoutError, DeadKernelError) as error:
        raise InputError(str(error).splitlines()[0]) from None
    notebook.metadata["inputs"] = key
    unfinished.write_text(json.dumps(notebook, indent=1), encoding="utf-8")
    unfinished.replace(executed)
    return f"{time.monotonic() - started:.0f} s"


def build_book(
    models: Sequence[str] = (),
    *,
    store: Path | None = None,
    verdicts: str = "rules",
    out: Path | None = None,
    say: Say,
) -> tuple[Path, dict[Page, str]]:
    """Execute the pages of a book and build it, warnings being errors unless a page failed; return
    its front page, and the pages that failed, each with the reason.

    ``models`` are those of :func:`book_pages`; ``store`` and ``verdicts`` those of :func:`execute`;
    ``out``, by default ``build`` at the root, is for all that is made. A page that failed is shown
    as far as it came, and so is one on which a cell writes to stderr or shows a path of this
    machine. `InputError` where the build fails."""
    check_installed("jupyter_book")
    if not models and not RECORDED_RUNS.is_dir():
        raise InputError(
            "the book as published is made from recorded runs, which the repository holds; for one "
            "of your own say: capcal book --model M --store DIR"
        )
    out = (out or BUILD).resolve()
    pages = book_pages(models)
    folder = out / "notebooks"
    failed = execute(pages, folder, store=store, verdicts=verdicts, say=say)
    for page in pages:
        try:
            if page not in failed:
                check_outputs(page.executed(folder))
        except InputError as error:
            failed[page] = str(error)
    _write_sources(out / "book_source", pages, folder, failed, own=bool(models))
    contents = (BOOK / "_toc.yml").read_text(encoding="utf-8")
    if models:  # the pages of the paper's models are not in it
        contents = re.sub(r" +sections:\n( +- file: notebooks/.+/.+\n)+", "", contents)
    if _write(out / "_toc.yml", contents.encode()):  # moves break what Sphinx remembers
        shutil.rmtree(out / "book" / "_build" / ".doctrees", ignore_errors=True)
    settings = (CONFIG / "_config.yml").read_text(encoding="utf-8")
    _write(out / "_config.yml", settings.replace("book/static/", f"{BOOK}/static/").encode())
    tool = Path(sys.executable).with_name("jupyter-book")
    command: list[str | Path] = [
        tool,
        "build",
        "book_source",
        "-n",
        "--keep-going",
        "--path-output",
        "book",
    ]
    command += ["--config", out / "_config.yml", "--toc", out / "_toc.yml", *["-W"] * (not failed)]
    log = out / "book.log"
    with log.open("w", encoding="utf-8") as file:
        plain = os.environ | {"NO_COLOR": "1"}
        done = subprocess.run(
            command, stdout=file, stderr=subprocess.STDOUT, cwd=out, env=plain, check=False
        )
    if done.returncode:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        reasons = [line for line in lines if "WARNING" in line or "ERROR" in line] or lines[-5:]
        raise InputError(f"the book does not build; see {log}:\n" + "\n".join(reasons[:20]))
    return out / "book" / "_build" / "html" / "index.html", failed


def _write_sources(
    source: Path, pages: Sequence[Page], folder: Path, failed: Mapping[Page, str], *, own: bool
) -> None:
    """Write what Sphinx reads: written pages, the map, and executed pages as the book lays them
    out.
    """
    for path in BOOK.rglob("*"):
        if path.is_file() and "tools" not in path.relative_to(BOOK).parts:
            _write(source / path.relative_to(BOOK), path.read_bytes())
    if own:
        _write(source / "index.md", OWN_INDEX.format(load_model(pages[0].model).title).encode())
    _write(source / f"{MAP}.md", map_page().encode())
    for page in pages:
        path = page.unfinished(folder) if page in failed else page.executed(folder)
        if not path.exists():  # executed, and refused for what it shows
            path = page.executed(folder)
        notebook = json.loads(path.read_text(encoding="utf-8"))
        versions = {each.name: each.model for each in pages if each.notebook == page.notebook}
        lay_out(notebook, page.name, versions)
        text = json.dumps(notebook, indent=1)
        _write(source / "notebooks" / f"{page.name}.ipynb", text.encode())


def _write(path: Path, content: bytes) -> bool:
    """Write a file if it changes, so that Sphinx reads only what did; and say whether it did."""
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return True


def check_installed(*modules: str) -> None:
    """Refuse to go on without what the extra `book` brings."""
    lacking = [module for module in modules if find_spec(module) is None]
    if lacking:
        package = "-e '.[book]'" if IN_CHECKOUT else "'capcal[book]'"
        raise InputError(
            f"pages need {' and '.join(lacking)}, not installed; say: pip install {package}"
        )
