"""Execute the notebooks whose inputs have changed, and build the book from them."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

from capcal_lib.book.map import check_evidence, map_page
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
MAP = "reference/paper_map"
WORKERS = 2
CELL_TIMEOUT_S = 600
CONFIG = ROOT if IN_CHECKOUT else BOOK  # where _config.yml lies
GLUED = r"```\{glue:any\} (\w+)\n:doc: notebooks/([\w./-]+)\.ipynb\n```"  # in a page

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Page:
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


@dataclass(frozen=True, slots=True)
class Book:
    """A book that was built: its front page, and the pages that failed, each with the reason."""

    index: Path
    failed: dict[Page, str]


def notebook_names() -> list[str]:
    """List the notebooks in the order in which they are read."""
    return sorted(path.stem for path in NOTEBOOKS.glob("[0-9]*.py"))


def default_model(notebook: str) -> str:
    """Return the model that a notebook opens with, from its parameters.

    It is `DEFAULT_MODEL`, but where a page needs what only another model has recorded, which its
    parameters say.

    >>> default_model("04_main_table") == DEFAULT_MODEL
    True
    """
    text = (NOTEBOOKS / f"{notebook}.py").read_text(encoding="utf-8")
    return re.findall(r'^model: str = "(.+?)"', text, flags=re.MULTILINE)[0]


def book_pages(models: Sequence[str] = ()) -> list[Page]:
    """List the pages of a book: each notebook once, for the first of the models.

    Without models they are those of the book as it is published: each with its default one."""
    shown = [load_model(name).name for name in models]
    return [
        Page(notebook, shown[0] if shown else default_model(notebook), notebook)
        for notebook in notebook_names()
    ]


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
    folder.mkdir(parents=True, exist_ok=True)
    if store is None and not RECORDED_RUNS.is_dir():
        store = folder.resolve() / "no_runs"  # a wheel has none: pages say so
        store.mkdir(exist_ok=True)
    if own := own_manifests():
        os.environ[OWN_MANIFESTS] = str(own)  # for kernels, which run elsewhere
    places = filter(None, (MANIFESTS, own, store or RECORDED_RUNS))
    data = [path for place in places for path in place.rglob("*") if path.is_file()]
    code = [*(ROOT / "capcal_lib").rglob("*.py"), *ROOT.glob("requirements.lock")]
    shared = _digest([*code, *(path for path in data if path.name != "lock")])
    given = {}
    if store:
        given["store"] = str(store)
    if verdicts != "rules":
        given["verdicts"] = verdicts
    keys = {page: _page_key(page, shared, given) for page in pages}
    stale = []
    for page, key in keys.items():
        if _last_key(page.executed(folder)) == key:
            say(f"unchanged  {page.name}")
        else:
            stale.append(page)
    log = folder / "kernels.log"
    failed: dict[Page, str] = {}
    with ProcessPoolExecutor(
        WORKERS, get_context("spawn"), initializer=_settle, initargs=(log,)
    ) as pool:
        jobs = {
            pool.submit(_run, page, NOTEBOOKS, page.executed(folder), _home(), given): page
            for page in stale
        }
        try:
            for number, job in enumerate(as_completed(jobs), start=1):
                page = jobs[job]
                place = f"{number:>3} of {len(stale)}   {page.name}"
                try:
                    seconds = job.result()
                except InputError as error:
                    failed[page] = str(error)
                    say(f"{place} failed")
                    continue
                _key_file(page.executed(folder)).write_text(keys[page], encoding="utf-8")
                say(f"{place}, {seconds:.0f} s")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return failed


def build_book(
    models: Sequence[str] = (),
    *,
    store: Path | None = None,
    verdicts: str = "rules",
    out: Path | None = None,
    say: Say,
) -> Book:
    """Execute the pages of a book and build it, warnings being errors unless a page failed.

    ``models`` are those of :func:`book_pages`; ``store`` and ``verdicts`` those of :func:`execute`;
    ``out``, by default ``build`` at the root, is for all that is made. A page that failed is shown
    as far as it came, and so is one on which a cell writes to stderr, shows a path of this machine
    or does not show the evidence that it declares. `InputError` where the build fails."""
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
    sources = {
        page: page.unfinished(folder) if page in failed else page.executed(folder) for page in pages
    }
    wanted = {path: path.relative_to(BOOK) for path in _files(BOOK)}
    for page in pages:
        own = not models and page.model == default_model(page.notebook)
        try:
            if page not in failed:
                check_outputs(sources[page])
                check_evidence(sources[page], marks=own)
        except InputError as error:
            failed[page] = str(error)
        wanted[sources[page]] = Path("notebooks") / f"{page.name}.ipynb"
    where = out / "paper_map.md"
    where.write_text(map_page(), encoding="utf-8")
    wanted[where] = Path(f"{MAP}.md")
    source = out / "book_source"
    _mirror(wanted, source, _own_text(sources) if models or failed else str)
    toc = out / "_toc.yml"
    contents = (BOOK / "_toc.yml").read_text(encoding="utf-8")
    if (
        toc.exists() and toc.read_text(encoding="utf-8") != contents
    ):  # sections that move break what Sphinx remembers
        shutil.rmtree(out / "book" / "_build" / ".doctrees", ignore_errors=True)
    toc.write_text(contents, encoding="utf-8")
    config = out / "_config.yml"
    settings = (CONFIG / "_config.yml").read_text(encoding="utf-8")
    config.write_text(settings.replace("book/static/", f"{BOOK}/static/"), encoding="utf-8")
    tool = Path(sys.executable).with_name("jupyter-book")
    command: list[str | Path] = [tool, "build", source, "-n"]
    command += ["--config", config, "--toc", toc, "--path-output", out / "book", "--keep-going"]
    if not failed:
        command.append("-W")
    log = out / "book.log"
    with log.open("w", encoding="utf-8") as file:
        plain = os.environ | {"NO_COLOR": "1"}
        done = subprocess.run(
            command, stdout=file, stderr=subprocess.STDOUT, cwd=out, env=plain, check=False
        )
    if done.returncode:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        told = [line for line in lines if "WARNING" in line or "ERROR" in line] or lines[-5:]
        raise InputError(f"the book does not build; see {log}:\n" + "\n".join(told[:20]))
    return Book(out / "book" / "_build" / "html" / "index.html", failed)


def check_installed(*modules: str) -> None:
    """Refuse to go on without what the extra `book` brings."""
    lacking = [module for module in modules if find_spec(module) is None]
    if lacking:
        package = "-e '.[book]'" if IN_CHECKOUT else "'capcal[book]'"
        raise InputError(
            f"pages need {' and '.join(lacking)}, not installed; say: pip install {package}"
        )


def _own_text(sources: Mapping[Page, Path]) -> Callable[[str], str]:
    """Fit a text to a book of one's own.

    A card or a block with what no page of the book computes is left out."""
    texts = {page.name: path.read_text(encoding="utf-8") for page, path in sources.items()}
    glued = {name: re.findall(r'"name": "(\w+)"', text) for name, text in texts.items()}

    def keep(card: re.Match[str]) -> str:
        taken = re.findall(r"\{glue:text\}`notebooks/([^:]+)\.ipynb::(\w+)", card[0])
        taken += [(page, key) for key, page in re.findall(GLUED, card[0])]
        if all(key in glued[page] for page, key in taken):
            return card[0]
        return ""

    return partial(re.sub, rf"(?ms)^:::\{{grid-item-card\}}.*?^:::\n|{GLUED}", keep)


def _files(book: Path) -> list[Path]:
    """Return the files of the pages, without the tools beside them."""
    tools = book / "tools"
    return [path for path in book.rglob("*") if path.is_file() and tools not in path.parents]


def _home() -> Path:
    """Return the folder in which pages are executed."""
    return ROOT if IN_CHECKOUT else Path.cwd()


def _settle(log: Path) -> None:
    """Send what kernels say about themselves to a file, and share the cores; what fails comes back
    as an error.
    """
    file = log.open("ab")
    os.dup2(file.fileno(), sys.stderr.fileno())
    # jsonschema does without it, and its grammar of addresses takes seconds to build.
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    # More threads than cores wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // WORKERS)))


def _run(page: Page, notebooks: Path, executed: Path, root: Path, given: dict[str, str]) -> float:
    """Execute one page in a process of its own, and return the seconds it took."""
    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    started = time.monotonic()
    executed.parent.mkdir(parents=True, exist_ok=True)
    source = notebooks / f"{page.notebook}.ipynb"
    unfinished = executed.with_suffix(".unfinished.ipynb")
    if '"verdicts: str' not in source.read_text(encoding="utf-8"):  # the page has no such parameter
        given = {name: value for name, value in given.items() if name != "verdicts"}
    try:
        papermill.execute_notebook(
            source,
            unfinished,
            parameters={"model": page.model} | given,
            progress_bar=False,
            execution_timeout=CELL_TIMEOUT_S,
            cwd=root,
        )
    except PapermillExecutionError as error:
        raise InputError(f"cell {error.exec_count}: {error.ename}: {error.evalue}") from None
    except (CellTimeoutError, DeadKernelError) as error:
        raise InputError(str(error).splitlines()[0]) from None
    notebook = json.loads(unfinished.read_text(encoding="utf-8"))
    lay_out(notebook)
    unfinished.write_text(json.dumps(notebook, indent=1), encoding="utf-8")
    unfinished.replace(executed)
    return time.monotonic() - started


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(str(path).encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _page_key(page: Page, shared: str, given: dict[str, str]) -> str:
    notebook = (NOTEBOOKS / f"{page.notebook}.ipynb").read_text(encoding="utf-8")
    return hashlib.sha256(f"{shared}\n{notebook}\n{page.model}\n{given}".encode()).hexdigest()


def _key_file(executed: Path) -> Path:
    return executed.with_suffix(".key")


def _last_key(executed: Path) -> str | None:
    """Return the key by which a page was last executed; None where it is not."""
    kept = _key_file(executed)
    if executed.exists() and kept.exists():
        return kept.read_text(encoding="utf-8")
    return None


def _mirror(files: dict[Path, Path], target: Path, change: Callable[[str], str] = str) -> None:
    """Make target hold exactly these files; an unchanged one keeps its time, so that Sphinx
    rebuilds only the rest.

    ``change`` is applied to the text of pages.
    """
    wanted = {target / relative for relative in files.values()}
    for path in list(target.rglob("*")):
        if path.is_file() and path not in wanted:
            path.unlink()
    for source, relative in files.items():
        copy = target / relative
        content = source.read_bytes()
        if source.suffix in (".md", ".ipynb"):
            content = change(content.decode()).encode()
        if not copy.exists() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
