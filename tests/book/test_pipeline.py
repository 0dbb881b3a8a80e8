import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest

from capcal_lib.book import pipeline
from capcal_lib.book.pipeline import NARROW, Page, book_pages, execute, model_pages
from capcal_lib.errors import InputError

NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {"tags": ["parameters"]},
            "outputs": [],
            "source": 'model: str = "simulated"',
        },
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": "if not model:\n    from capcal_lib.one import f\n    f()\nprint(model)",
        },
    ],
    "metadata": {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
    },
    "nbformat": 4,
    "nbformat_minor": 4,
}


PLACES = {
    "ROOT": "",
    "NOTEBOOKS": "notebooks",
    "MANIFESTS": "data_manifests",
    "RECORDED_RUNS": "runs/recorded",
}


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository with one notebook, a few modules and one manifest."""
    for name, content in {
        "notebooks/00_say.ipynb": json.dumps(NOTEBOOK),
        "notebooks/00_say.py": "",
        "capcal_lib/__init__.py": "",
        "capcal_lib/one.py": "",
        "data_manifests/one.yaml": "a: 1",
        "runs/recorded/one.parquet": "",
        "requirements.lock": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for name, relative in PLACES.items():
        monkeypatch.setattr(pipeline, name, tmp_path / relative)
    return tmp_path


PAGE = Page("00_say", "simulated", "00_say")
UNCHANGED = ["  1 of 1   00_say, unchanged"]


def say_of(folder: Path, **given: Any) -> list[str]:
    said: list[str] = []
    execute([PAGE], folder, say=said.append, **given)
    return said


@contextmanager
def without_kernels() -> Iterator[list[str]]:
    """Note the pages that are executed, where it does not matter what they show."""
    executed: list[str] = []

    def note(source: Path, path: Path, *, parameters: dict[str, str], **_: object) -> Any:
        executed.append(parameters["model"])
        shutil.copy(source, path)
        return nbformat.v4.new_notebook()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("papermill.execute_notebook", note)
        yield executed


def test_only_what_changed_is_executed_again(house: Path) -> None:
    out = house / "out"
    assert say_of(out)[0].endswith(" s")
    given = json.loads(PAGE.executed(out).read_text())["cells"][1]
    assert 'model = "simulated"' in "".join(given["source"])
    assert say_of(out) == UNCHANGED

    def stale(changed: str) -> bool:
        path = house / changed
        path.write_text(path.read_text() + ("\nprint()" if path.suffix == ".py" else " "))
        return say_of(out) != UNCHANGED

    with without_kernels() as executed:
        for changed in (
            "notebooks/00_say.ipynb",
            "capcal_lib/one.py",
            "data_manifests/one.yaml",
            "runs/recorded/one.parquet",
            "requirements.lock",
        ):
            assert stale(changed), changed
            assert say_of(out) == UNCHANGED
        assert len(executed) == 5
        PAGE.executed(out).unlink()
        assert say_of(out) != UNCHANGED


def test_another_store_is_read_and_makes_another_page(house: Path) -> None:
    out, store = house / "out", house / "mine"
    store.mkdir()
    with without_kernels():
        say_of(out)
    assert say_of(out, store=store) != UNCHANGED
    assert str(store) in PAGE.executed(out).read_text()
    assert say_of(out, store=store) == UNCHANGED
    (store / "row.parquet").write_text("1")
    with without_kernels():
        assert say_of(out, store=store) != UNCHANGED


def test_whose_verdicts_count_reaches_the_pages_that_let_one_choose(house: Path) -> None:
    out, choosing = house / "out", Page("01_choose", "simulated", "01_choose")
    lines = NOTEBOOK["cells"][0] | {
        "source": ['model: str = "simulated"\n', 'verdicts: str = "rules"']
    }
    path = house / "notebooks/01_choose.ipynb"
    path.write_text(json.dumps(NOTEBOOK | {"cells": [lines, *NOTEBOOK["cells"][1:]]}))
    said: list[str] = []
    with without_kernels():
        execute([PAGE, choosing], out, say=said.append)
    execute([PAGE, choosing], out, verdicts="judge:simulated", say=said.append)
    assert len(said) == 4
    assert [line.split()[3] for line in said if "unchanged" in line] == ["00_say,"]
    assert "judge:simulated" not in PAGE.executed(out).read_text()
    assert "judge:simulated" in choosing.executed(out).read_text()


def test_a_notebook_finds_ones_own_manifests(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = "from capcal_lib.places import own_manifests; print([str(own_manifests())])"
    asking = NOTEBOOK | {"cells": [NOTEBOOK["cells"][0], NOTEBOOK["cells"][1] | {"source": where}]}  # type: ignore[index, operator]
    (house / "notebooks/00_say.ipynb").write_text(json.dumps(asking))
    (house / "elsewhere" / "capcal.d").mkdir(parents=True)
    monkeypatch.chdir(house / "elsewhere")
    monkeypatch.setenv("CAPCAL_MANIFESTS", "")
    assert "1 of 1" in say_of(house / "out")[0]
    page = PAGE.executed(house / "out").read_text()
    assert f"['{house}/elsewhere/capcal.d']" in page


def test_failing_notebooks_are_named_and_the_others_are_executed(house: Path) -> None:
    reasons = {}
    for name, code, reason in (
        ("01_fail", "1 / 0", "cell 3: ZeroDivisionError: division by zero"),
        ("02_die", "import os; os._exit(1)", "Kernel died"),
    ):
        cells = [NOTEBOOK["cells"][0], NOTEBOOK["cells"][1] | {"source": code}]  # type: ignore[index, operator]
        path = house / f"notebooks/{name}.ipynb"
        path.write_text(json.dumps(NOTEBOOK | {"cells": cells}))
        reasons[Page(name, "simulated", name)] = reason
    said: list[str] = []
    assert execute([*reasons, PAGE], house / "out", say=said.append) == reasons
    failed = [line for line in said if line.endswith(", failed")]
    assert (len(said), len(failed)) == (3, 2)
    assert PAGE.executed(house / "out").exists()
    for failing in reasons:
        assert failing.executed(house / "out").exists()  # as far as it came
    assert execute([*reasons, PAGE], house / "out", say=said.append) == reasons
    assert sum(line.endswith(", failed") for line in said) == 4


def test_the_book_has_every_notebook_once() -> None:
    assert [page.name for page in book_pages()] == pipeline.notebook_names()
    mine = book_pages(["simulated", "qwen3-8b"])
    assert [page.name for page in mine] == pipeline.notebook_names()
    assert {page.model for page in mine} == {"simulated"}


def test_an_unknown_model_is_refused_before_anything_runs() -> None:
    with pytest.raises(InputError, match="unknown model 'gpt-9'"):
        model_pages(["gpt-9"])


def test_a_copied_checkout_executes_nothing_again(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with without_kernels() as executed:
        say_of(house / "out")
        copy = shutil.copytree(house, tmp_path.parent / f"{tmp_path.name}-copy")
        for name, relative in PLACES.items():
            monkeypatch.setattr(pipeline, name, copy / relative)
        assert say_of(copy / "out") == UNCHANGED
    assert executed == ["simulated"]


KILLED = """
import sys
from pathlib import Path
from capcal_lib.book import pipeline
pipeline.NOTEBOOKS = Path(sys.argv[1]) / "notebooks"
page = pipeline.Page("00_say", "simulated", "00_say")
pipeline.execute([page], Path(sys.argv[1]) / "out", say=print)
"""


def test_a_book_of_which_nothing_has_changed_is_not_built_again(
    house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = house / "book"
    (book / "static").mkdir(parents=True)
    (book / "reference").mkdir()
    (book / "index.md").write_text("# A book")
    tool = house / "bin" / "jupyter-book"  # stands for Sphinx: it notes that it was called
    tool.parent.mkdir()
    lines = ["#!/bin/sh", "mkdir -p book/_build/html", "echo built >> built"]
    tool.write_text("\n".join([*lines, "touch book/_build/html/index.html"]))
    tool.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tool.with_name("python")))
    monkeypatch.setattr(pipeline, "BOOK", book)
    drawn = {"0a": {"image/svg+xml": "<svg/>", NARROW: "<svg/>"}}
    monkeypatch.setattr(pipeline, "printed_page", lambda: ("# What is printed", drawn))
    out = house / "out"

    def build() -> int:
        with without_kernels():
            index, failed = pipeline.build_book(out=out, say=lambda line: None)
        assert not failed
        for page in pipeline.book_pages():
            offered = page.executed(index.parent / "_sources" / "notebooks")
            assert offered.read_bytes() == page.executed(pipeline.NOTEBOOKS).read_bytes()
        return (out / "built").read_text().count("built")

    assert build() == 1
    figures = {path.name for path in (out / "book_source/reference/printed").iterdir()}
    assert figures == {"0a.svg"}
    assert {path.name for path in (out / "book_source/static/narrow").iterdir()} == figures
    assert build() == 1
    (book / "index.md").write_text("# Another book")
    assert build() == 2
    assert build() == 2
    index = out / "book" / "_build" / "html" / "index.html"
    index.unlink()
    assert build() == 3


@pytest.mark.slow
def test_what_a_killed_build_started_goes_with_it(house: Path) -> None:
    mark = house / "kernel"
    code = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(300)"
    cells = [NOTEBOOK["cells"][0], NOTEBOOK["cells"][1] | {"source": code}]  # type: ignore[index, operator]
    (house / "notebooks/00_say.ipynb").write_text(json.dumps(NOTEBOOK | {"cells": cells}))
    with subprocess.Popen([sys.executable, "-c", KILLED, house]) as build:
        while not (mark.exists() and mark.read_text()):
            time.sleep(0.1)
        build.kill()
    for _ in range(100):
        if not alive(int(mark.read_text())):
            return
        time.sleep(0.1)
    pytest.fail("the kernel is still there ten seconds later")


def alive(process: int) -> bool:
    status = Path(f"/proc/{process}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


def test_a_warning_is_an_error_in_the_book_and_not_in_one_of_models(tmp_path: Path) -> None:
    source, config = tmp_path / "source", tmp_path / "_config.yml"
    source.mkdir()
    (source / "_toc.yml").write_text("format: jb-book\nroot: index\n")
    config.write_text("title: A book\nexecute: {execute_notebooks: 'off'}\n")
    (source / "index.md").write_text("# A book\n\n{ref}`nowhere`\n")
    with pytest.raises(InputError, match=r"(?s)the book does not build; .*WARNING.*nowhere"):
        pipeline._run_jupyter_book(source, config, tmp_path, strict=True)
    pipeline._run_jupyter_book(source, config, tmp_path, strict=False)
    assert (tmp_path / "book" / "_build" / "html" / "index.html").exists()
