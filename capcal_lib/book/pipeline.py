"""Execute the notebooks that need it, and build the book from them."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from capcal_lib.book.map import check_evidence, map_page
from capcal_lib.errors import InputError
from capcal_lib.manifests import BOOK, BUILD, MANIFESTS, NOTEBOOKS, RECORDED_RUNS, ROOT, Model, load_model, model_names

DEFAULT_MODEL = "smollm2-135m"
PAPER_MODEL = "gpt-oss-20b"  # whose main table shows reported numbers
MAIN_TABLE = "04_main_table"
EXECUTED = BUILD / "notebooks"
SOURCE = BUILD / "book_source"
MAP = "reference/paper_map"
WORKERS = 2
CELL_TIMEOUT_S = 600

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Page:
    """A notebook executed for one model."""

    notebook: str  # such as 04_main_table
    model: str
    name: str  # path in the book without its ending

    @property
    def executed(self) -> Path:
        """Return where the executed notebook lies."""
        return EXECUTED / f"{self.name}.ipynb"


def notebook_names() -> list[str]:
    """List the notebooks in the order in which they are read."""
    return sorted(path.stem for path in NOTEBOOKS.glob("[0-9]*.py"))


def book_pages() -> list[Page]:
    """List the pages of the book: each notebook once, and the main table for every model."""
    pages = []
    for notebook in notebook_names():
        if notebook == MAIN_TABLE:
            pages += [Page(notebook, model, f"{notebook}/{model}") for model in model_names()]
        else:
            pages.append(Page(notebook, DEFAULT_MODEL, notebook))
    return pages


def model_pages(models: Sequence[str]) -> list[Page]:
    """List all notebooks for the given models.

    Raises
    ------
    InputError
        For an unknown model.
    """
    return [
        Page(notebook, load_model(model).name, f"models/{model}/{notebook}")
        for model in models
        for notebook in notebook_names()
    ]


def execute(pages: Iterable[Page], *, say: Say) -> None:
    """Execute the pages whose inputs have changed since they were last executed.

    A page's inputs are the notebook, its parameters, the library, the manifests, the recorded runs
    and the pinned requirements.

    Raises
    ------
    InputError
        When a notebook fails: which one, and its last line.
    """
    shared = _digest(_shared_inputs())
    keys = {page: _page_key(page, shared) for page in pages}
    stale = [page for page, key in keys.items() if not page.executed.exists() or _last_key(page) != key]
    for page in keys:
        if page not in stale:
            say(f"unchanged  {page.name}")
    EXECUTED.mkdir(parents=True, exist_ok=True)
    log = EXECUTED / "kernels.log"
    with ProcessPoolExecutor(WORKERS, get_context("spawn"), initializer=_settle, initargs=(log,)) as pool:
        jobs = {pool.submit(_run, page, NOTEBOOKS, page.executed, ROOT): page for page in stale}
        try:
            for number, job in enumerate(as_completed(jobs), start=1):
                page, seconds = jobs[job], job.result()
                _key_file(page).write_text(json.dumps({"key": keys[page]}), encoding="utf-8")
                say(f"{number:>3} of {len(stale)}   {page.name}, {seconds:.0f} s")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def build_book() -> Path:
    """Build the book from the executed pages and the reproduction map, warnings being errors, and return its index.

    Raises
    ------
    InputError
        When a page is not executed or shows other evidence than its notebook declares, or the build fails.
    """
    wanted = {BOOK / path.relative_to(BOOK): path.relative_to(BOOK) for path in BOOK.rglob("*") if path.is_file()}
    for page in book_pages():
        if not page.executed.exists():
            raise InputError(f"{page.name} is not executed; run: capcal notebooks")
        if page.model == DEFAULT_MODEL:
            check_evidence(page.executed)
        wanted[page.executed] = Path("notebooks") / f"{page.name}.ipynb"
    where = BUILD / "paper_map.md"
    where.write_text(map_page(_names(DEFAULT_MODEL), _names(PAPER_MODEL)), encoding="utf-8")
    wanted[where] = Path(f"{MAP}.md")
    _mirror(wanted, SOURCE)
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", str(SOURCE), "-n", "-W", "--keep-going"]
    command += ["--config", str(ROOT / "_config.yml"), "--toc", str(BOOK / "_toc.yml")]
    command += ["--path-output", str(BUILD / "book")]
    log = BUILD / "book.log"
    with log.open("w", encoding="utf-8") as file:
        plain = os.environ | {"NO_COLOR": "1"}
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT, env=plain, check=False)
    if done.returncode:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        told = [line for line in lines if "WARNING" in line or "ERROR" in line] or lines[-5:]
        raise InputError("the book does not build; see build/book.log:\n" + "\n".join(told[:20]))
    return BUILD / "book" / "_build" / "html" / "index.html"


def _names(model: str) -> dict[str, str]:
    """Return the page of each notebook that the book has for a model."""
    return {page.notebook: page.name for page in book_pages() if page.model == model}


def _settle(log: Path) -> None:
    """Send what kernels say about themselves to a file, and share the cores; what fails comes back as an error."""
    file = log.open("ab")
    os.dup2(file.fileno(), sys.stderr.fileno())
    # More threads than cores wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // WORKERS)))


def _run(page: Page, notebooks: Path, executed: Path, root: Path) -> float:
    """Execute one page in a process of its own, and return the seconds it took."""
    import papermill
    from papermill.exceptions import PapermillExecutionError

    started = time.monotonic()
    executed.parent.mkdir(parents=True, exist_ok=True)
    unfinished = executed.with_suffix(".unfinished.ipynb")
    try:
        papermill.execute_notebook(
            notebooks / f"{page.notebook}.ipynb",
            unfinished,
            parameters={"model": page.model},
            progress_bar=False,
            execution_timeout=CELL_TIMEOUT_S,
            cwd=root,
        )
    except PapermillExecutionError as error:
        raise InputError(f"{page.name}: cell {error.exec_count}: {error.ename}: {error.evalue}") from None
    if page.notebook == MAIN_TABLE:
        _name_after_model(unfinished, load_model(page.model))
    unfinished.replace(executed)
    return time.monotonic() - started


def _name_after_model(path: Path, model: Model) -> None:
    """Put the model into the heading and the names of figures, which pages of one notebook would share otherwise."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    first = notebook["cells"][0]["source"]
    first[0] = f"{first[0].rstrip()}: {model.title}\n"
    for cell in notebook["cells"]:
        if figure := cell["metadata"].get("mystnb", {}).get("figure"):
            figure["name"] += f"-{model.name}"
    path.write_text(json.dumps(notebook, indent=1), encoding="utf-8")


def _shared_inputs() -> list[Path]:
    code = ROOT.joinpath("capcal_lib").rglob("*.py")
    files = [path for folder in (MANIFESTS, RECORDED_RUNS) for path in folder.rglob("*") if path.is_file()]
    data = [path for path in files if path.name != "lock"]  # says who wrote last, and changes no row
    return [ROOT / "requirements.lock", *code, *data]


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _page_key(page: Page, shared: str) -> str:
    source = _digest([NOTEBOOKS / f"{page.notebook}.ipynb"])
    return hashlib.sha256("\n".join((shared, source, page.model)).encode()).hexdigest()


def _key_file(page: Page) -> Path:
    return page.executed.with_suffix(".key.json")


def _last_key(page: Page) -> str | None:
    try:
        key = json.loads(_key_file(page).read_text(encoding="utf-8"))["key"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return key if isinstance(key, str) else None


def _mirror(files: dict[Path, Path], target: Path) -> None:
    """Make target hold exactly these files; an unchanged one keeps its time, so that Sphinx rebuilds only the rest."""
    wanted = {target / relative for relative in files.values()}
    for path in list(target.rglob("*")):
        if path.is_file() and path not in wanted:
            path.unlink()
    for source, relative in files.items():
        copy = target / relative
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
