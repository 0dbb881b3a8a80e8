import json
from pathlib import Path

import pytest

from capcal_lib.book import pipeline
from capcal_lib.book.pipeline import Page, book_pages, execute, model_pages
from capcal_lib.errors import InputError
from capcal_lib.manifests import model_names

NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {"tags": ["parameters"]},
            "outputs": [],
            "source": 'model: str = "simulated"',
        },
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": "print(model)"},
    ],
    "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    "nbformat": 4,
    "nbformat_minor": 4,
}


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository with one notebook, one module and one manifest."""
    for name, content in {
        "notebooks/00_say.ipynb": json.dumps(NOTEBOOK),
        "notebooks/00_say.py": "",
        "capcal_lib/one.py": "x = 1",
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
        "EXECUTED": "build/notebooks",
    }
    for name, relative in places.items():
        monkeypatch.setattr(pipeline, name, tmp_path / relative)
    return tmp_path


def say_of(pages: list[Page]) -> list[str]:
    said: list[str] = []
    execute(pages, say=said.append)
    return said


def test_only_what_changed_is_executed_again(house: Path) -> None:
    pages = [Page("00_say", "simulated", "00_say")]
    assert "1 of 1" in say_of(pages)[0]
    assert "simulated" in pages[0].executed.read_text()
    assert say_of(pages) == ["unchanged  00_say"]
    for changed in (
        "notebooks/00_say.ipynb",
        "capcal_lib/one.py",
        "data_manifests/one.yaml",
        "runs/recorded/one.parquet",
        "requirements.lock",
    ):
        path = house / changed
        path.write_text(path.read_text() + " ")
        keys = {page: pipeline._page_key(page, pipeline._digest(pipeline._shared_inputs())) for page in pages}
        assert pipeline._last_key(pages[0]) != keys[pages[0]], changed
        pipeline._key_file(pages[0]).write_text(json.dumps({"key": keys[pages[0]]}))
    assert say_of(pages) == ["unchanged  00_say"]
    pages[0].executed.unlink()
    assert "1 of 1" in say_of(pages)[0]


def test_a_failing_notebook_is_named_and_is_executed_again_next_time(house: Path) -> None:
    broken = NOTEBOOK | {"cells": [NOTEBOOK["cells"][0], NOTEBOOK["cells"][1] | {"source": "1 / 0"}]}  # type: ignore[index, operator]
    (house / "notebooks/00_say.ipynb").write_text(json.dumps(broken))
    page = Page("00_say", "simulated", "00_say")
    with pytest.raises(InputError, match="00_say: cell 3: ZeroDivisionError: division by zero"):
        say_of([page])
    assert not page.executed.exists()
    assert pipeline._last_key(page) is None


def test_the_book_has_every_notebook_once_and_a_main_table_for_each_model() -> None:
    pages = book_pages()
    assert len({page.name for page in pages}) == len(pages)
    assert {page.notebook for page in pages} == set(pipeline.notebook_names())
    assert [page.model for page in pages if page.notebook == pipeline.MAIN_TABLE] == model_names()


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
