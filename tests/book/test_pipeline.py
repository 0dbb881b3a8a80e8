import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from capcal_lib.book import pipeline
from capcal_lib.book.pipeline import execute, model_pages
from capcal_lib.cli import app
from capcal_lib.errors import InputError


def notebook(code: str) -> str:
    cells = [
        {"metadata": {"tags": ["parameters"]}, "source": 'model: str = "simulated"'},
        {"metadata": {}, "source": code},
    ]
    empty = {"cell_type": "code", "execution_count": None, "outputs": []}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {
            "cells": [empty | cell for cell in cells],
            "metadata": {"kernelspec": kernel},
            "nbformat": 4,
            "nbformat_minor": 4,
        }
    )


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository with one notebook, a few modules and one manifest."""
    for name, content in {
        "notebooks/00_say.ipynb": notebook("print(model)"),
        "capcal_lib/room/one.py": "",
        "data_manifests/one.yaml": "a: 1",
        "runs/recorded/room/one.parquet": "",
        "requirements.lock": "",
        "book/_toc.yml": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    monkeypatch.setattr(pipeline, "ROOT", tmp_path)
    for name, folder in {
        "NOTEBOOKS": "notebooks",
        "MANIFESTS": "data_manifests",
        "RECORDED_RUNS": "runs/recorded",
        "BOOK": "book",
    }.items():
        monkeypatch.setattr(pipeline, name, tmp_path / folder)
    return tmp_path


def run(house: Path, page: str = "00_say", model: str = "", **given: Any) -> list[str]:
    said: list[str] = []
    execute({page: model}, house / "out", say=said.append, **given)
    return said


def test_only_what_changed_is_executed_again(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = house / "bin" / "papermill"  # it writes a page that says what it was given
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\ncp "$2" "$3"\necho "$@" >> called\n')
    tool.chmod(0o755)
    monkeypatch.chdir(house)
    monkeypatch.setattr(sys, "executable", str(tool))
    recorded = house / "runs" / "recorded"
    later = recorded.rename(house / "later")
    assert run(house) == ["00_say, executed"], "without runs, as in a wheel"
    later.rename(recorded)
    assert run(house) == ["00_say, executed"]
    assert run(house) == ["00_say, unchanged"]
    for changed in (
        "notebooks/00_say.ipynb",
        "capcal_lib/room/one.py",
        "data_manifests/one.yaml",
        "runs/recorded/room/one.parquet",
        "requirements.lock",
    ):
        path = house / changed
        path.write_text(f"{path.read_text()} ")
        assert run(house) == ["00_say, executed"], changed
        assert run(house) == ["00_say, unchanged"]
    store = house / "my runs"
    store.mkdir()
    other = {"page": "models/qwen3-8b/00_say", "model": "qwen3-8b", "store": store}
    assert run(house, **other) == ["models/qwen3-8b/00_say, executed"]
    assert run(house, **other) == ["models/qwen3-8b/00_say, unchanged"]
    last = (house / "called").read_text().splitlines()[-1]
    assert last.endswith(f"-r model qwen3-8b -r store {store}")


@pytest.mark.slow
def test_failing_notebooks_are_named_and_the_others_are_executed(house: Path) -> None:
    for name, code in {"01_fail": "1 / 0", "02_die": "import os; os._exit(1)"}.items():
        (house / f"notebooks/{name}.ipynb").write_text(notebook(code))
    done = CliRunner().invoke(app, ["notebooks", "--out", str(house / "out")])
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "00_say, executed",
        "01_fail, failed",
        "02_die, failed",
        f"1 of 3 pages: {house / 'out'}",
    ]
    fail, die = done.stderr.splitlines()
    assert fail == "capcal: 01_fail: ZeroDivisionError: division by zero"
    assert die.startswith("capcal: 02_die: ")
    assert "died" in die


def test_a_book_is_built_again_only_if_it_changes(
    house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[list[str]] = []

    def build(source: Path, config: Path, out: Path, *, strict: bool) -> None:
        built.append(sorted(path.name for path in source.rglob("*.*")))
        html = out / "book" / "_build" / "html"
        html.mkdir(parents=True)
        (html / "index.html").write_text("")

    def pages(pages: Any, folder: Path, **_: Any) -> dict[str, str]:
        folder.mkdir(exist_ok=True, parents=True)
        text = (house / "notebooks/00_say.ipynb").read_text()
        (folder / "00_say.ipynb").write_text(text)
        return {}

    monkeypatch.setattr(pipeline, "_run_jupyter_book", build)
    monkeypatch.setattr(pipeline, "execute", pages)
    for _ in range(2):
        pipeline.build_book(out=house / "out", say=lambda line: None)
    assert built == [["00_say.ipynb", "_toc.yml"]]
    (house / "book" / "_toc.yml").write_text("changed")
    pipeline.build_book(out=house / "out", say=lambda line: None)
    pipeline.build_book(["simulated"], out=house / "mine", say=lambda line: None)
    assert built[1:] == [built[0], ["00_say.ipynb", "_toc.yml", "index.md"]]
    monkeypatch.setattr(pipeline, "BUILD", house / "build")
    index, _ = pipeline.build_book(say=lambda line: None)
    assert index == house / "build" / "book" / "_build" / "html" / "index.html"


def test_a_page_with_its_finding_on_top_runs_where_a_reader_downloads_it() -> None:
    page = json.loads(notebook("import math"))
    found = {"metadata": {"tags": ["finding"]}, "source": "found = math.pi", "outputs": ["3.14"]}
    page["cells"].append(page["cells"][1] | found)
    for place, cell in enumerate(page["cells"]):
        cell["id"] = f"cell{place}"
    pipeline.lift(page)
    assert [cell["outputs"] for cell in page["cells"]] == [[], ["3.14"], [], []]
    assert len({cell["id"] for cell in page["cells"]}) == 4
    names: dict[str, Any] = {}
    for cell in page["cells"]:
        exec(cell["source"], names)
    assert names["found"] == math.pi


def test_an_unknown_model_is_refused_before_anything_runs() -> None:
    with pytest.raises(InputError, match="unknown model 'gpt-9'"):
        model_pages(["gpt-9"])


def test_a_warning_is_an_error_in_the_book_and_not_in_one_of_models(tmp_path: Path) -> None:
    source, config = tmp_path / "source", tmp_path / "_config.yml"
    source.mkdir()
    (source / "_toc.yml").write_text("format: jb-book\nroot: index\n")
    extension = "sphinx: {extra_extensions: [capcal_lib.book.search]}\n"
    config.write_text(f"title: A book\nexecute: {{execute_notebooks: 'off'}}\n{extension}")
    (source / "index.md").write_text("# A book\n\n{ref}`nowhere`\n\n```\npears\n```\n\nApples.\n")
    with pytest.raises(InputError, match=r"(?s)the book does not build; .*WARNING.*nowhere"):
        pipeline._run_jupyter_book(source, config, tmp_path, strict=True)
    pipeline._run_jupyter_book(source, config, tmp_path, strict=False)
    html = tmp_path / "book" / "_build" / "html"
    assert (html / "index.html").exists()
    index = (html / "searchindex.js").read_text()
    assert ("appl" in index, "pear" in index) == (True, False), "text, and not code"
