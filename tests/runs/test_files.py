"""Files of a run: written whole by one at a time, and what could not be read is not damaged."""

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from capcal_lib.errors import DiskError
from capcal_lib.runs.files import gather, read_table, write_table

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

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", fail)
        with pytest.raises(DiskError, match=r"cannot be read .*; try again") as caught:
            read_table(path)
    assert "delete" not in str(caught.value)
