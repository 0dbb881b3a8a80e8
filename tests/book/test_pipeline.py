import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from capcal_lib.book import pipeline
from capcal_lib.book.pipeline import Page, book_pages, execute, model_pages
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
    places = {
        "ROOT": "",
        "NOTEBOOKS": "notebooks",
        "MANIFESTS": "data_manifests",
        "RECORDED_RUNS": "runs/recorded",
    }
    for name, relative in places.items():
        monkeypatch.setattr(pipeline, name, tmp_path / relative)
    return tmp_path


PAGE = Page("00_say", "simulated", "00_say")


def say_of(folder: Path, **given: Any) -> list[str]:
    said: list[str] = []
    execute([PAGE], folder, say=said.append, **given)
    return said


@contextmanager
def without_kernels() -> Iterator[list[Page]]:
    """Execute pages without a kernel, where it only matters which are executed: those that are
    noted.
    """
    executed: list[Page] = []

    def note(page: Page, _: Path, path: Path, *__: object) -> float:
        executed.append(page)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return 0.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "ProcessPoolExecutor", lambda *_, **__: ThreadPoolExecutor(1))
        patch.setattr(pipeline, "_run", note)
        yield executed


def test_only_what_changed_is_executed_again(house: Path) -> None:
    out = house / "out"
    assert "1 of 1" in say_of(out)[0]
    given = json.loads(PAGE.executed(out).read_text())["cells"][1]
    assert 'model = "simulated"' in "".join(given["source"])
    assert "hide-input" in given["metadata"]["tags"]
    assert say_of(out) == ["unchanged  00_say"]

    def stale(changed: str) -> bool:
        path = house / changed
        path.write_text(path.read_text() + ("\nprint()" if path.suffix == ".py" else " "))
        return say_of(out) != ["unchanged  00_say"]

    with without_kernels() as executed:
        for changed in (
            "notebooks/00_say.ipynb",
            "capcal_lib/one.py",
            "data_manifests/one.yaml",
            "runs/recorded/one.parquet",
            "requirements.lock",
        ):
            assert stale(changed), changed
            assert say_of(out) == ["unchanged  00_say"]
        assert len(executed) == 5
        PAGE.executed(out).unlink()
        assert "1 of 1" in say_of(out)[0]


def test_another_store_is_read_and_makes_another_page(house: Path) -> None:
    out, store = house / "out", house / "mine"
    store.mkdir()
    with without_kernels():
        say_of(out)
    assert "1 of 1" in say_of(out, store=store)[0]
    assert str(store) in PAGE.executed(out).read_text()
    assert say_of(out, store=store) == ["unchanged  00_say"]
    (store / "row.parquet").write_text("1")
    with without_kernels():
        assert "1 of 1" in say_of(out, store=store)[0]


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
    assert not [line for line in said if "unchanged" in line]
    assert "judge:simulated" not in PAGE.executed(out).read_text()
    assert "judge:simulated" in choosing.executed(out).read_text()


def test_a_notebook_finds_ones_own_manifests(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = "import os; print([os.environ['CAPCAL_MANIFESTS']])"
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
    assert sorted(" ".join(line.split()[3:5]).split(",")[0] for line in said) == [
        "00_say",
        "01_fail failed",
        "02_die failed",
    ]
    assert PAGE.executed(house / "out").exists()
    for failing in reasons:
        assert failing.unfinished(house / "out").exists()
        assert pipeline._last_key(failing.executed(house / "out")) is None


def test_the_book_has_every_notebook_once() -> None:
    pages = book_pages()
    assert [page.name for page in pages] == pipeline.notebook_names()
    assert {page.model for page in book_pages(["simulated", "qwen3-8b"])} == {"simulated"}


def test_a_book_of_ones_own_has_no_card_with_what_no_page_computes(tmp_path: Path) -> None:
    pages = book_pages(["simulated"])
    for page in pages:
        page.executed(tmp_path).write_text(
            json.dumps({"metadata": {"scrapbook": {"name": "better"}}})
        )
    fit = pipeline._own_text({page: page.executed(tmp_path) for page in pages})
    card = ":::{grid-item-card}\n{glue:text}`notebooks/04_main_table.ipynb::KEY:d`\n:::\n"
    assert fit(card.replace("KEY", "better")) == card.replace("KEY", "better")
    assert fit(card.replace("KEY", "worse")) == ""
    plot = "```{glue:any} KEY\n:doc: notebooks/01_targets_divergence.ipynb\n```\n"
    assert fit(plot.replace("KEY", "better")) == plot.replace("KEY", "better")
    assert fit(f":::{{grid-item-card}}\n{plot}:::\n{plot}Text.\n") == "\nText.\n"


def test_an_unknown_model_is_refused_before_anything_runs() -> None:
    with pytest.raises(InputError, match="unknown model 'gpt-9'"):
        model_pages(["gpt-9"])


def test_mirror_keeps_unchanged_files_and_removes_others(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for folder in (source, target):
        folder.mkdir()
    (source / "a").write_text("1")
    (target / "stale").write_text("old")
    pipeline._mirror({source / "a": Path("deep/a")}, target)
    assert [path.name for path in target.rglob("*") if path.is_file()] == ["a"]
    before = (target / "deep/a").stat().st_mtime_ns
    pipeline._mirror({source / "a": Path("deep/a")}, target)
    assert (target / "deep/a").stat().st_mtime_ns == before
    (source / "a").write_text("2")
    pipeline._mirror({source / "a": Path("deep/a")}, target)
    assert (target / "deep/a").read_text() == "2"
    (source / "b.md").write_text("see here")
    pipeline._mirror(
        {source / "b.md": Path("b.md")}, target, lambda text: text.replace("here", "there")
    )
    assert (target / "b.md").read_text() == "see there"
