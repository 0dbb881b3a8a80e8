"""Files of a run: written whole by one at a time, and what could not be read is not damaged."""

import errno
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from capcal_lib.errors import DiskError, InputError
from capcal_lib.runs import files
from capcal_lib.runs.files import exists, gather, hold, list_files, open_file, write_table

TABLE = pa.table({"a": [1]})


def test_what_has_come_is_given_while_nothing_comes() -> None:
    reached = []

    def items() -> Iterator[str | None]:
        for item in ("a", None, "b"):
            reached.append(item)
            yield item
            time.sleep(0.05)

    together = gather(items(), 0.03)
    assert next(together) == ["a"]
    assert reached == ["a", None]
    assert list(together) == [["b"]]


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ESTALE, errno.EMFILE])
def test_what_cannot_be_read_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path = write_table(tmp_path / "a.parquet", TABLE)

    def fail(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    def read() -> None:
        with open_file(path):
            pass

    calls = {"open": read, "lstat": lambda: exists(path)}
    for name, call in calls.items():
        with monkeypatch.context() as patch:
            patch.setattr(Path, name, fail)
            with pytest.raises(DiskError, match=r"cannot be read .*; try again") as caught:
                call()
        assert "delete" not in str(caught.value)
    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", fail)
        with pytest.raises(DiskError, match="cannot be read"):
            list_files(tmp_path, "*")


def test_what_is_not_there_and_what_cannot_be_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("none", "a" * 300, "nul\0", "file/below"):
        assert not exists(tmp_path / name)
        assert list_files(tmp_path / name / "folder", "*") == []
    with pytest.raises(InputError, match="missing or corrupt") as caught, open_file(tmp_path / "n"):
        pass
    assert not isinstance(caught.value, DiskError)


def test_memory_that_runs_out_is_not_damage(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.parquet", TABLE)
    with pytest.raises(MemoryError), open_file(path):
        raise pa.ArrowMemoryError("malloc of size 1500000000 failed")


def _write_and_die(folder: Path) -> None:
    os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # when all is written but the name
    write_table(folder / "features.parquet", TABLE)


def test_what_a_killed_writer_left_is_taken_by_the_next_writer_of_any_file(tmp_path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=_write_and_die, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    (left,) = tmp_path.glob(".*.tmp")
    assert left.name.startswith(".features.parquet.")
    write_table(tmp_path / "verdicts.parquet", TABLE)
    assert not [*tmp_path.glob(".*.tmp")]


def test_a_writer_does_not_take_what_another_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "SHORT_WAIT", 0.01)
    context = multiprocessing.get_context("fork")
    told, answered = context.Event(), context.Event()

    def write() -> None:
        with hold(tmp_path):
            (tmp_path / ".a.tmp").touch()
            told.set()
            answered.wait()

    process = context.Process(target=write)
    process.start()
    told.wait()
    with pytest.raises(InputError, match="is being written by another process"):
        write_table(tmp_path / "a.parquet", TABLE)
    assert (tmp_path / ".a.tmp").exists()
    answered.set()
    process.join()
    with hold(tmp_path), hold(tmp_path):
        write_table(tmp_path / "a.parquet", TABLE)
    assert not (tmp_path / ".a.tmp").exists()
