"""The store: rows that are only added, whatever is killed, damaged or full meanwhile."""

import hashlib
import os
import random
import re
import resource
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capcal_lib.errors import InputError
from capcal_lib.runs import Run, open_runs
from capcal_lib.runs.artifacts import VERDICTS
from capcal_lib.runs.files import write_table
from capcal_lib.runs.merge import merge
from capcal_lib.runs.run import PARTS, run_of
from capcal_lib.runs.sessions import Ask, note_ask
from capcal_lib.runs.status import run_status
from capcal_lib.runs.store import open_writer, parts_of, read_samples, remove_run, stream_samples
from tests.folders import verify_run
from tests.runs.rows import IDENTITY, RECORD, flip, keys, row, shards


def test_rows_come_back_as_they_went_in(tmp_path: Path) -> None:
    odd = 'two\nlines, a "quote", a NUL \0, a right-to-left mark \u200f and é'
    with open_writer(tmp_path, RECORD) as writer:
        writer.append([row("b", 1), row("a", 0, odd)])
    samples = read_samples(run_of(tmp_path, IDENTITY))
    assert samples["question_id"].tolist() == ["a", "b"]
    assert samples["response"].tolist() == [odd, "Paris"]
    assert samples["reasoning"].isna().all()


def test_raising_k_asks_only_for_what_is_missing(tmp_path: Path) -> None:
    with open_writer(tmp_path, RECORD) as writer:
        writer.append([row("a", 0), row("a", 1), row("b", 1)])
    with open_writer(tmp_path, RECORD) as writer:
        assert writer.missing({"a": 2, "b": 2, "c": 2}) == {"b": (0,), "c": (0, 1)}
        assert writer.missing({"a": 1}) == {}
        assert writer.missing({"a": 4}) == {"a": (2, 3)}


def test_a_row_is_never_written_twice(tmp_path: Path) -> None:
    with open_writer(tmp_path, RECORD) as writer:
        writer.append([row("a", 0)])
        writer.append([row("a", 0, "other")])
    with open_writer(tmp_path, RECORD) as writer:
        writer.append([row("a", 0, "another")])
    assert read_samples(run_of(tmp_path, IDENTITY))["response"].tolist() == ["Paris"]


def test_a_second_writer_is_refused_in_one_line(tmp_path: Path) -> None:
    with (
        open_writer(tmp_path, RECORD),
        pytest.raises(InputError, match="is being written by another process"),
    ):
        open_writer(tmp_path, RECORD).__enter__()
    with open_writer(tmp_path, RECORD):
        pass


def test_a_refusal_removes_a_new_run_without_rows_and_no_other(tmp_path: Path) -> None:
    folder = run_of(tmp_path, IDENTITY).folder
    for rows, is_there in (([], False), ([row("a", 0)], True), ([], True)):
        with suppress(InputError), open_writer(tmp_path, RECORD) as writer:
            writer.append(rows)
            raise InputError("refused")
        assert folder.exists() == is_there
    assert len(read_samples(run_of(tmp_path, IDENTITY))) == 1


def test_a_place_that_cannot_be_written_is_one_clear_line() -> None:
    with pytest.raises(InputError, match="nothing"):
        open_writer(Path("/proc/nothing"), RECORD).__enter__()


# Damage from outside


def test_an_edited_record_is_refused_and_written_again_once_it_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shards(tmp_path, monkeypatch)
    path = folder / "run.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(InputError, match=r"since its settings belong to run \w{12}") as caught:
        _ = Run(folder).record
    assert "\n" not in str(caught.value)
    path.unlink()
    with open_writer(tmp_path, RECORD) as writer:
        assert writer.missing({"a": 6}) == {}
    assert Run(folder).record == RECORD


def test_vectors_come_back_exactly_and_their_alike_bytes_compress(tmp_path: Path) -> None:
    states = np.random.default_rng(0).normal(size=(400, 4, 64)).astype(np.float16)
    states[0, 0, :3] = [np.nan, np.inf, -0.0]
    rows = pa.FixedSizeListArray.from_arrays(states.ravel(), 64)
    table = pa.table(
        {
            "question_id": ["the same long name of a question"] * 400,
            "layers": pa.FixedSizeListArray.from_arrays(rows, 4),
        }
    )
    path = tmp_path / "features.parquet"
    write_table(path, table)
    columns = pq.read_table(path).column("layers").combine_chunks()
    assert columns.flatten().flatten().to_numpy().tobytes() == states.tobytes()
    assert path.stat().st_size < 0.95 * states.nbytes


def test_a_part_is_named_by_its_bytes_and_small_ones_are_joined_at_the_end(tmp_path: Path) -> None:
    with open_writer(tmp_path, RECORD) as writer:
        for index in range(3):
            assert writer.append([row("a", index)]) == 1
            assert len(parts_of(writer.run)) == index + 1
    (part,) = parts_of(writer.run)
    digest = hashlib.sha256(part.read_bytes()).hexdigest()
    assert part.name == f"samples-{digest}.parquet"
    assert keys(writer.run.folder) == [("a", index) for index in range(3)]


def test_small_parts_are_joined_and_a_kill_before_they_are_deleted_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(path: Path, missing_ok: bool = False) -> None:
        if path.name.startswith("samples-"):
            raise KeyboardInterrupt

    def draw() -> None:
        with open_writer(tmp_path, RECORD) as writer:
            for index in range(4):
                writer.append([row("a", index)])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", die)
        with pytest.raises(KeyboardInterrupt):
            draw()
    run = run_of(tmp_path, IDENTITY)
    assert len(parts_of(run)) >= 5
    assert keys(run.folder) == [("a", index) for index in range(4)]
    assert sum(map(len, stream_samples(run))) == 4
    with open_writer(tmp_path, RECORD) as writer:
        assert writer.present == {("a", index) for index in range(4)}
        writer.append([row("a", 4)])
    assert len(parts_of(run)) == 1
    assert keys(run.folder) == [("a", index) for index in range(5)]


def test_no_flipped_bit_goes_unseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shards(tmp_path, monkeypatch)
    rng = random.Random(0)
    for path in rng.choices(parts_of(Run(folder)), k=30):
        content = path.read_bytes()
        flip(path, rng.randrange(1 << 30))
        with pytest.raises(InputError, match="its bytes do not match its name"):
            read_samples(Run(folder))
        path.write_bytes(content)
    assert len(read_samples(Run(folder))) == 6


@pytest.mark.parametrize("keep", [0, -1])
def test_a_damaged_part_is_named_and_its_rows_are_drawn_again_once_it_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: int
) -> None:
    folder = shards(tmp_path, monkeypatch)
    path = parts_of(Run(folder))[1]
    lost = pq.read_table(path)["sample_index"].to_pylist()
    path.write_bytes(path.read_bytes()[:keep])
    for use in (
        lambda: open_writer(tmp_path, RECORD).__enter__(),
        lambda: read_samples(Run(folder)),
    ):
        with pytest.raises(InputError, match="delete it, and draw its rows again") as caught:
            use()
        assert path.name in str(caught.value)
    path.unlink()
    with open_writer(tmp_path, RECORD) as writer:
        assert writer.missing({"a": 6}) == {"a": tuple(lost)}
        writer.append([row("a", index, f"answer {index}") for index in lost])
    assert keys(folder) == [("a", index) for index in range(6)]


def test_two_different_rows_under_one_key_are_refused(tmp_path: Path) -> None:
    for place, word in ((tmp_path, "Paris"), (tmp_path / "other", "Rome")):
        with open_writer(place, RECORD) as writer:
            writer.append([row("a", 0, word), row("b", 0)])
    (part,) = parts_of(run_of(tmp_path / "other", IDENTITY))
    run = run_of(tmp_path, IDENTITY)
    part.rename(run.folder / part.name)
    with pytest.raises(InputError, match="1 samples have two different rows in"):
        read_samples(run)
    with pytest.raises(InputError, match="1 samples have two different rows in"):
        open_writer(tmp_path, RECORD).__enter__()


def test_a_full_disk_keeps_what_was_written(tmp_path: Path) -> None:
    with open_writer(tmp_path, RECORD) as writer:
        writer.append([row("a", 0)])
    noise = random.Random(0).randbytes(50_000).hex()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def write_too_much() -> None:
        with open_writer(tmp_path, RECORD) as writer:
            writer.append([row("a", 1, noise)])

    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
        with pytest.raises(InputError, match="the disk is full; what was written is kept"):
            write_too_much()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert keys(writer.run.folder) == [("a", 0)]
    assert not list(writer.run.folder.glob(".*"))
    with open_writer(tmp_path, RECORD) as writer:
        assert writer.missing({"a": 2}) == {"a": (1,)}


def test_a_run_that_is_being_written_is_not_removed(tmp_path: Path) -> None:
    with (
        open_writer(tmp_path, RECORD) as writer,
        pytest.raises(InputError, match="is being written by another process"),
    ):
        remove_run(writer.run)


@pytest.mark.parametrize("left", [0, 12, 24])  # before any file, and but for the last
def test_a_removal_that_was_killed_leaves_a_run_that_is_removed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    folder = shards(tmp_path, monkeypatch)
    (folder / "notes").mkdir()
    for number in range(20):
        (folder / f"confidence-{number}.parquet").touch()
    run = run_of(tmp_path, IDENTITY)
    unlink = os.unlink
    unlinked = []

    def die(path: Any, **options: Any) -> None:
        if len(unlinked) == left:
            raise KeyboardInterrupt
        unlinked.append(path)
        unlink(path, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "unlink", die)
        with suppress(KeyboardInterrupt):
            remove_run(run)
    assert len(unlinked) == left or not folder.exists()
    remains = [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []
    assert (open_runs(tmp_path) == [run]) == bool(remains), "what is there is seen"
    if remains:
        assert open_runs(tmp_path) == [run]
        remove_run(run)
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("run.json", "link"),
        ("lock", "link"),
        ("sessions.jsonl", "link"),
        (VERDICTS.name, "link"),
        ("part", "pipe"),
        ("part", "folder"),
    ],
)
def test_what_is_no_file_of_the_store_is_refused_in_a_line_and_what_it_points_to_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    folder = shards(tmp_path / "store", monkeypatch)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = parts_of(Run(folder))[0] if name == "part" else folder / name
    path.unlink(missing_ok=True)
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(victim)
    problem = "outside this store|not a regular file|Is a directory"
    if name != "lock":  # which nobody reads
        assert re.search(problem, str(verify_run(Run(folder))))
        assert run_status(Run(folder))["next"] == "verify"
    if name != VERDICTS.name:  # of which a writer does not ask
        with pytest.raises(InputError, match=problem) as caught:
            write(tmp_path / "store")
        assert "\n" not in str(caught.value)
    assert victim.read_text() == "precious"
    assert len(open_runs(tmp_path / "store")) == 1


def write(store: Path) -> None:
    with open_writer(store, RECORD) as writer:
        writer.append([row("b", 0)])
        note_ask(writer.run, Ask(questions=1, k=1))


def test_a_removal_and_a_merge_leave_alone_what_links_point_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shards(tmp_path / "store", monkeypatch)
    victim = tmp_path / "victims" / "victim"
    victim.parent.mkdir()
    victim.write_text("precious")
    (folder / "notes").symlink_to(victim.parent)
    (folder / ".samples-0.parquet.0.tmp").symlink_to(victim)
    (folder / VERDICTS.name).symlink_to(victim)
    with pytest.raises(InputError, match="outside this store"):
        merge(tmp_path / "into", [tmp_path / "store"])
    write(tmp_path / "store")
    remove_run(Run(folder))
    assert not folder.exists()
    assert victim.read_text() == "precious"


def test_a_part_with_other_columns_is_refused_though_its_name_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shards(tmp_path, monkeypatch)
    rows = pq.read_table(parts_of(Run(folder))[0])
    indices = rows["sample_index"].cast(pa.string())
    write_table(folder / PARTS, rows.set_column(1, "sample_index", indices))
    with pytest.raises(InputError, match="its columns are not those of samples"):
        read_samples(Run(folder))
