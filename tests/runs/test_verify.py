"""A run that is whole passes, and each thing that can be wrong with one is named."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capcal_lib.confidence.of_run import estimate
from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import FILE, grade_run
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probes.features import extract
from capcal_lib.runs import Run
from capcal_lib.runs.artifacts import CONFIDENCES
from capcal_lib.runs.files import write_table
from capcal_lib.runs.run import Identity, Record
from capcal_lib.runs.verify import verify_store
from capcal_lib.sampling.draw import sample
from tests.folders import list_runs, verify_run

SET = "mini-exam"


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder", list_runs(RECORDED_RUNS), ids=lambda run: "-".join(run.parts[-3:-1])
)
def test_the_recorded_runs_are_whole(folder: Path) -> None:
    checked = verify_run(Run(folder))
    assert checked.problems == []
    assert "ok, " in str(checked)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("store")
    sample("simulated", SET, k=3, limit=4, store=store)
    folder = sample("simulated", SET, k=2, limit=6, store=store).run.folder
    grade_run(Run(folder))
    estimate(Run(folder), "p-true")
    extract(Run(folder))
    return folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / whole.parent.name / whole.name)


def shard(folder: Path) -> Path:
    return sorted(folder.glob("samples-*"))[0]


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    table = pq.read_table(path)
    path.unlink()
    name = "samples-*.parquet" if path.name.startswith("samples-") else path.name
    changed = change(table).replace_schema_metadata(table.schema.metadata)
    write_table(path.with_name(name), changed)


def put(table: pa.Table, column: str, value: object, row: int = 0) -> pa.Table:
    values = table[column].to_pylist()
    values[row] = value
    return table.set_column(
        table.column_names.index(column), column, pa.array(values, table[column].type)
    )


def edit_seed(folder: Path) -> None:
    path = folder / "run.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))


def unknown_set(folder: Path) -> None:
    path = folder / "run.json"
    text = path.read_text().replace('"mini-exam"', '"mini-nothing"')
    path.write_text(text)
    folder.rename(folder.with_name(Record.model_validate_json(text).identity.key))


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "an edited record": (edit_seed, "its settings belong to run"),
    "a torn part": (lambda run: shard(run).write_bytes(b"PAR1"), "do not match its name"),
    "a missing row": (
        lambda run: rewrite(shard(run), lambda rows: rows.slice(1)),
        "1 samples missing, which `capcal sample` draws",
    ),
    "two rows for one sample": (
        lambda run: write_table(
            run / "samples-*.parquet", put(pq.read_table(shard(run)), "response", "other")
        ),
        "samples have two different rows in",
    ),
    "a sample not graded": (
        lambda run: rewrite(run / FILE, lambda rows: rows.slice(1)),
        "verdicts without a sample, or samples without a verdict",
    ),
    "another grader": (
        lambda run: write_table(
            run / FILE, pq.read_table(run / FILE).replace_schema_metadata({"grader": "0"})
        ),
        "graded by version 0 of the grader",
    ),
    "a confidence too few": (
        lambda run: rewrite(Run(run).path(CONFIDENCES, "p-true"), lambda rows: rows.slice(1)),
        "confidence-p-true.parquet: not of what was sampled, or not of all of it: mini-exam/",
    ),
    "a file of other columns": (
        lambda run: rewrite(
            Run(run).path(CONFIDENCES, "p-true"), lambda rows: rows.drop_columns("text")
        ),
        "not a file of `capcal confidence`",
    ),
    "verdicts of other samples": (
        lambda run: rewrite(shard(run), lambda rows: put(rows, "response", "other")),
        "the verdicts were made from other samples than these",
    ),
    "an unknown data set": (lambda run: unknown_set(run), "unknown data set 'mini-nothing'"),
}


def test_a_run_of_two_asks_is_whole(run: Path) -> None:
    assert verify_run(Run(run)).problems == []


@pytest.mark.parametrize(("spoil", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_in_one_line(
    run: Path, spoil: Callable[[Path], object], message: str
) -> None:
    spoil(run)
    checked = verify_run(Run(next(run.parent.iterdir())))
    assert message in str(checked)
    assert "\n" not in str(checked)
    assert checked.problems


def test_two_asks_are_told_apart_where_the_questions_are_not_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample("simulated", SET, k=4, limit=2, store=tmp_path)
    folder = sample("simulated", SET, k=1, limit=5, store=tmp_path).run.folder
    monkeypatch.setattr("capcal_lib.runs.verify.at_hand", lambda *_: False)
    checked = verify_run(Run(folder))
    assert "questions not looked at, for they are not on this machine" in checked.facts
    assert checked.problems == []
    rewrite(shard(folder), lambda rows: rows.slice(0, len(rows) - 1))
    assert "1 samples missing" in str(verify_run(Run(folder)))


def test_questions_and_weights_are_compared_with_the_manifests(tmp_path: Path) -> None:
    folder = sample("simulated", SET, k=1, limit=1, store=tmp_path).run.folder
    path = folder / "run.json"
    record = json.loads(path.read_text())
    record["identity"] |= {"questions": "0" * 64, "weights": "1" * 64}
    key = Identity.model_validate_json(json.dumps(record["identity"])).key
    path.write_text(json.dumps(record))
    checked = str(verify_run(Run(folder.rename(folder.with_name(key)))))
    assert "made with the questions 0000000000000000, the manifest has" in checked
    assert "made with the weights 1111111111111111, the manifest has none" in checked
    assert "the questions at hand have changed since they were sampled" in checked


def test_a_store_is_checked_by_model_and_data_set() -> None:
    found = list(verify_store(RECORDED_RUNS, "simulated", "mini-exam"))
    assert [checked.run.folder.parts[-2] for checked in found] == [
        "mini-exam-test",
        "mini-exam-train",
    ]
    with pytest.raises(InputError, match="has no run to check"):
        list(verify_store(RECORDED_RUNS, "gpt-9"))
    with pytest.raises(InputError, match="is not a folder"):
        list(verify_store(RECORDED_RUNS / "nowhere"))
