"""What is read a part at a time says the same as what is read whole."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import read_verdicts
from capcal_lib.io import samples, shelf
from capcal_lib.io.importing import import_samples
from capcal_lib.io.samples import open_log
from capcal_lib.io.shelf import gather_rows
from capcal_lib.places import OWN_MANIFESTS
from capcal_lib.runs.store import read_samples
from tests.io.files import epoch, inspect, read_log, write


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rows at a time."""
    monkeypatch.setattr(samples._read_files, "__defaults__", (3,))
    monkeypatch.setattr(shelf, "ROWS", 3)


def rows_of(count: int, **change: Any) -> list[dict[str, Any]]:
    """Rows of ten questions in turn."""
    return [
        {"question_id": f"q{n % 10}", "response": f"It is {n % 7}.", "gold": f"{n % 10}"} | change
        for n in range(count)
    ]


def test_all_rows_of_a_question_are_in_one_part_in_their_order(few: None) -> None:
    table = pd.DataFrame({"question_id": [f"q{n % 50}" for n in range(1000)], "n": range(1000)})
    pieces = [table[start : start + 70].copy() for start in range(0, 1000, 70)]
    with TemporaryFile() as file:
        parts = [shelf.take(file, places) for places in shelf.split(file, pieces)]
    assert len(parts) > 10
    assert sum(part["question_id"].nunique() for part in parts) == 50, "none is in two"
    assert all(part["n"].is_monotonic_increasing for part in parts)
    assert pd.concat(parts).sort_index().equals(table)


def test_reading_holds_no_more_than_a_batch_and_a_part(tmp_path: Path, few: None) -> None:
    path = write(tmp_path / "rows.jsonl", *rows_of(400))
    assert max(map(len, samples._read_files([path], {}))) == 3
    with open_log([path]) as log:
        sizes = [len(part) for part in log.tables()]
    assert (sum(sizes), len(sizes)) == (400, 10), "a part of each question"


def test_tables_are_joined_up_to_so_many_rows() -> None:
    def tables() -> Iterator[pd.DataFrame]:
        for size in (1, 1, 2, 5, 1):
            yield pd.DataFrame({"n": range(size)})

    assert [len(table) for table in gather_rows(tables(), 3)] == [4, 5, 1]


@pytest.mark.parametrize("judged", [False, True])
def test_a_run_is_the_same_in_parts_and_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judged: bool
) -> None:
    rows = rows_of(95)
    for n, row in enumerate(rows):
        row |= {"verdict": n % 2} if judged else {}
    rows[40] |= {"response": None}
    path = write(tmp_path / "rows.jsonl", *rows)

    def take(name: str) -> tuple[Any, ...]:
        (tmp_path / name / "own").mkdir(parents=True)
        monkeypatch.setenv(OWN_MANIFESTS, str(tmp_path / name / "own"))
        done = import_samples(
            [path],
            model="toy",
            dataset="sums",
            store=tmp_path / name / "store",
            settings={"temperature": 1.0},
        )
        questions = (tmp_path / name / "own" / "datasets" / "sums.jsonl").read_bytes()
        verdicts = read_verdicts(done.run).to_csv() if judged else ""
        notes = [note for note in done.notes if not note.startswith("wrote")]
        texts = read_samples(done.run).to_csv()
        again = import_samples([path], model="toy", dataset="sums", store=tmp_path / name / "store")
        assert (again.new, again.present) == (0, 94)
        return done.run.folder.name, questions, texts, verdicts, notes, done.new

    whole = take("whole")
    monkeypatch.setattr(samples._read_files, "__defaults__", (3,))
    monkeypatch.setattr(shelf, "ROWS", 3)
    assert take("parts") == whole


def test_what_is_asked_of_a_whole_file_is_asked_of_its_parts(tmp_path: Path, few: None) -> None:
    path = tmp_path / "rows.jsonl"
    rows = rows_of(30)
    models = [row | {"model": "ab"[n > 25]} for n, row in enumerate(rows)]
    with pytest.raises(InputError, match="samples of several runs, with model a, b"):
        read_log([write(path, *models)])
    for name, number in (("doc_id", "id"), ("id", "doc_id")):  # which of them numbers the rows
        ids = [{name: row["question_id"], number: n, "response": "x"} for n, row in enumerate(rows)]
        with pytest.raises(InputError, match="columns id and doc_id name different questions"):
            read_log([write(path, *ids)])
    names = [row | {"uuid": f"u{n % 29}"} for n, row in enumerate(rows_of(30))]
    with pytest.raises(InputError, match="two questions have a sample of one uuid or id"):
        read_log([write(path, *names)])
    tasks = [row | {"task": "ab"[n % 20 >= 10]} for n, row in enumerate(rows_of(40))]
    with pytest.raises(InputError, match=r"question 'q\d' is of several tasks, a, b"):
        read_log([write(path, *tasks)])


def test_copies_and_scorers_are_those_of_whole_files(tmp_path: Path, few: None) -> None:
    spec = {"task": "t", "model": "m"}
    first = [epoch(n, {"match": {"value": "CI"[n % 2]}}) for n in range(20)]
    again = [sample | {"uuid": f"again{n}"} for n, sample in enumerate(first)]
    other = [epoch(n, {"match": {"value": "I"}}, response="No.") for n in range(20)]
    paths = [
        inspect(tmp_path / f"{name}.eval", *drawn, eval=spec | {"task_id": name})
        for name, drawn in (("a", first), ("b", again), ("c", other))
    ]
    found = read_log(paths)
    assert len(found.samples) == 40
    assert found.samples["verdict"].value_counts().to_dict() == {"incorrect": 30, "correct": 10}
    assert found.notes[0] == f"{paths[1]}: 20 samples left out: they are those of {paths[0]} again"
    again[7] |= {"output": other[0]["output"]}
    inspect(paths[1], *again, eval=spec | {"task_id": "b"})
    assert len(read_log(paths).samples) == 60, "one answer differs: another draw"
