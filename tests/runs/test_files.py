"""Files of a run: written whole by one at a time, and what could not be read is not damaged."""

import contextlib
import errno
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from capcal_lib.errors import DiskError, InputError
from capcal_lib.runs import files
from capcal_lib.runs.files import gather, plain_errors, read_metadata, read_table, write_table

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


def test_what_cannot_be_read_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_table(tmp_path / "a.parquet", TABLE)
    assert read_metadata(path) == {}

    def fail(*_: object, **__: object) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", fail)
        with pytest.raises(DiskError, match=r"cannot be read .*; try again") as caught:
            read_table(path)
    assert "delete" not in str(caught.value)


def test_memory_that_runs_out_is_not_damage(tmp_path: Path) -> None:
    with pytest.raises(MemoryError), plain_errors(tmp_path):
        raise pa.ArrowMemoryError("malloc of size 1500000000 failed")


def test_a_footer_that_hides_rows_is_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.parquet", pa.table({"a": [*range(300)]}))
    content = path.read_bytes()
    count, fewer = b"\x16\xd8\x04", b"\x16\xd6\x04"  # 300 and 299, as a footer writes numbers
    places = [found.start() for found in re.finditer(re.escape(count), content)]
    assert len(places) >= 3  # of the file, of its rows together, and of its column
    for place in places:
        path.write_bytes(content[:place] + fewer + content[place + len(count) :])
        with contextlib.suppress(InputError):
            assert len(read_table(path)) == 300


def test_long_lists_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zeros = pa.array(np.zeros(1 << 20, "f2"))
    states = pa.FixedSizeListArray.from_arrays(zeros, 1 << 10)
    path = write_table(tmp_path / "a.parquet", pa.table({"a": states}))
    assert len(read_table(path)) == 1 << 10
    monkeypatch.setattr(files, "UNPACKED", 1 << 20)
    monkeypatch.setattr(files, "RATIO", 1)
    before = pa.total_allocated_bytes()
    with pytest.raises(InputError, match="it unpacks to more than any file of a run"):
        read_table(path)
    assert pa.total_allocated_bytes() - before < 1 << 20
    open_ended = pa.ListArray.from_arrays([0, 1 << 20], zeros)
    write_table(path, pa.table({"a": open_ended}))
    with pytest.raises(InputError, match="it has lists that are not hidden states"):
        read_table(path)
