"""Whatever reads a run in batches gives the same at every boundary between them, and refuses what
no sample can be.
"""

import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import grade_run, read_verdicts
from capcal_lib.runs import Run
from capcal_lib.runs import store as store_module
from capcal_lib.runs.files import record_digests, write_table
from capcal_lib.runs.merge import merge
from capcal_lib.runs.samples import Sample
from capcal_lib.runs.status import run_status
from capcal_lib.runs.store import KEY, SCHEMA, Present, read_samples, stream_samples
from capcal_lib.sampling.draw import sample
from tests.folders import verify_run

SET = "mini-exam"
LIMIT = 6  # rows a shard, here


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "ROWS_PER_SHARD", LIMIT)


def check(run: Path, rows: int, store: Path) -> None:
    """Let every command that reads in batches read a run."""
    assert all(len(part) for part in stream_samples(Run(run)))
    assert len(read_samples(Run(run))) == rows
    grade_run(Run(run))
    pd.testing.assert_frame_equal(read_verdicts(Run(run))[KEY], read_samples(Run(run), KEY))
    assert verify_run(Run(run)).problems == ()
    assert run_status(Run(run)).samples == rows
    [merged] = merge(store, [run])
    assert merged.rows == rows
    assert merge(store, [run])[0].rows == 0
    assert verify_run(merged.target, deep=True).problems == ()
    assert read_verdicts(merged.target).equals(read_verdicts(Run(run)))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("first", [LIMIT - 1, LIMIT, LIMIT + 1])
@pytest.mark.parametrize("more", [1, LIMIT])
def test_a_run_may_end_anywhere_about_a_shard(tmp_path: Path, first: int, more: int) -> None:
    where = {"store": tmp_path / "store", "limit": 1}
    run = sample("simulated", SET, k=first, **where).run.folder  # type: ignore[arg-type]
    check(run, first, tmp_path / "once")
    sample("simulated", SET, k=first + more, **where)  # type: ignore[arg-type]
    check(run, first + more, tmp_path / "again")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("empty", ["journal", "shard", "both"])
def test_an_empty_file_is_no_batch(tmp_path: Path, empty: str) -> None:
    run = sample("simulated", SET, k=LIMIT, limit=2, store=tmp_path / "store").run.folder
    if empty != "shard":
        (run / "journal").touch()
    if empty != "journal":
        write_table(run / "samples-00009.parquet", SCHEMA.empty_table())
    check(run, 2 * LIMIT, tmp_path / "into")


def test_a_run_without_rows_is_read_by_every_command(tmp_path: Path) -> None:
    run = sample("simulated", SET, k=1, limit=1, store=tmp_path / "store").run.folder
    write_table(run / "samples-00000.parquet", SCHEMA.empty_table())
    (run / "sessions.jsonl").unlink()
    (run / "SHA256SUMS").unlink()
    record_digests(run)
    assert list(stream_samples(Run(run))) == []
    assert grade_run(Run(run)).new == 0
    assert run_status(Run(run)).samples == 0
    assert verify_run(Run(run)).problems == ()
    assert merge(tmp_path / "into", [run])[0].rows == 0


@given(
    keys=st.lists(st.tuples(st.sampled_from("ab"), st.integers(-(2**31), 2**31 - 1)), max_size=50)
)
def test_what_is_present_is_what_was_added(keys: list[tuple[str, int]]) -> None:
    there, known = Present(), set[tuple[str, int]]()
    for key in keys:
        assert there.add(key) == (key not in known)
        known.add(key)
        assert key in there
    assert len(there) == len(known)


@settings(max_examples=30, deadline=None)
@given(sizes=st.lists(st.integers(0, 2 * LIMIT + 1), min_size=1, max_size=6))
def test_batches_hold_every_row_once_and_none_is_empty(sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "ROWS_PER_SHARD", LIMIT)
        tables = [
            pa.table({"a": pa.array([place] * size, pa.int64())})
            for place, size in enumerate(sizes)
        ]
        found = list(store_module._batches(tables))
    rows = [value for table in found for value in table["a"].to_pylist()]
    assert rows == [place for place, size in enumerate(sizes) for _ in range(size)]
    assert all(len(table) <= max(LIMIT, max(sizes)) for table in found)


HOSTILE = [
    ("sample_index", -1),
    ("sample_index", 2**31 - 1),
    ("sample_index", 2**20),
    ("sample_index", None),
    ("prompt_tokens", -1),
    ("completion_tokens", -(2**31)),
    ("completion_tokens", None),
    ("prompt_tokens", 2**31 - 1),
    ("question_id", None),
]


def as_shard(run: Path, rows: list[dict[str, object]]) -> None:
    write_table(run / "samples-00001.parquet", pa.Table.from_pylist(rows, schema=SCHEMA))


def as_journal(run: Path, rows: list[dict[str, object]]) -> None:
    lines = [json.dumps(row, separators=(",", ":")).encode() for row in rows]
    (run / "journal").write_bytes(b"".join(b"%08x %s\n" % (zlib.crc32(x), x) for x in lines))


@pytest.mark.parametrize("put", [as_shard, as_journal])
@pytest.mark.parametrize(("name", "value"), HOSTILE)
def test_a_number_that_no_sample_has_ends_each_command_in_a_line(
    tmp_path: Path, put: Callable[[Path, list[dict[str, object]]], None], name: str, value: object
) -> None:
    run = sample("simulated", SET, k=2, limit=2, store=tmp_path / "store").run.folder
    ids = read_samples(Run(run), KEY)["question_id"]
    put(run, [asdict(Sample(ids[0], 2, "A", None, "stop", 9, 9)) | {name: value}])
    checked = verify_run(Run(run))
    assert len(checked.problems) >= 1
    assert "\n" not in str(checked)
    for command in (grade_run, run_status, lambda one: merge(tmp_path / "into", [one.folder])):
        with suppress(InputError):
            command(Run(run))


@pytest.mark.parametrize("line", ["[]", "{}", "1e999", "1" * 5_000, "[" * 100_000, '{"a": 1}'])
def test_a_line_of_the_journal_that_is_no_sample_is_damaged(tmp_path: Path, line: str) -> None:
    run = sample("simulated", SET, k=2, limit=2, store=tmp_path / "store").run.folder
    (run / "journal").write_bytes(b"%08x %s\n" % (zlib.crc32(line.encode()), line.encode()))
    assert store_module.read_journal(Run(run)) == ([], 1, 0)
    assert len(read_samples(Run(run))) == 4


def test_hostile_numbers_take_little_memory(tmp_path: Path) -> None:
    """Ten thousand questions with far indices, and a session that asks for as many as it may."""
    run = sample("simulated", SET, k=2, limit=2, store=tmp_path / "store").run.folder
    row = asdict(Sample("", 2**20 - 1, "A", None, "stop", 9, 9))
    as_shard(run, [row | {"question_id": f"q{number}"} for number in range(10_000)])
    session = (run / "sessions.jsonl").read_text().splitlines()[-1]
    hostile = json.loads(session) | {"ask": {"questions": 2**20, "k": 2**20, "precision": None}}
    (run / "sessions.jsonl").write_text(json.dumps(hostile) + "\n")
    (run / "SHA256SUMS").unlink()
    record_digests(run)
    code = f"""
import resource
from pathlib import Path
from capcal_lib.errors import InputError
from capcal_lib.runs import Run
from capcal_lib.grading.verdicts import grade_run
from capcal_lib.runs.merge import merge
from capcal_lib.runs.status import run_status
from capcal_lib.runs.verify import verify_run
from capcal_lib.runs.store import read_samples
run = Run(Path({str(run)!r}))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
into = Path({str(tmp_path)!r}) / "into"
for command in (verify_run, run_status, grade_run, lambda one: merge(into, [one.folder])):
    try:
        command(run)
    except InputError:
        pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 200
