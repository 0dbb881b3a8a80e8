"""Files of anybody: written whole or not at all."""

import io
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capcal_lib.disk import file_digest, is_file, is_folder, write_text, write_whole
from capcal_lib.errors import InputError


def test_a_name_that_no_file_can_have_is_no_file_and_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    assert is_folder(tmp_path)
    assert not is_file(tmp_path)
    for name in ("file", "link"):
        assert is_file(tmp_path / name)
    for name in ("file", "nothing", "long" * 2_000, "zero\0byte"):
        assert not is_folder(tmp_path / name), name[:10]
    for name in ("nothing", "long" * 2_000, "zero\0byte", "file/below"):
        assert not is_file(tmp_path / name), name[:10]


def test_a_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    # The first example of FIPS 180-2, appendix B.1.
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert file_digest(tmp_path / "abc") == expected


def test_what_is_written_takes_the_place_of_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"a long one", b"short", b""):
        write_whole(path, io.BytesIO(content))
        assert path.read_bytes() == content
        assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")

    class Torn(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell():
                raise KeyboardInterrupt
            return super().read(2)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, Torn(b"after"))
    failing: list[tuple[Any, str, Callable[..., None]]] = [
        (os, "fsync", full),
        (Path, "replace", full),
    ]
    for owner, name, fail in failing:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fail)
            with pytest.raises(OSError, match="No space left"):
                write_whole(path, io.BytesIO(b"after"))
            with pytest.raises(InputError, match=r"cannot write .*file: No space left on device"):
                write_text(path, "after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_text_is_written_as_it_is_but_for_half_a_letter(tmp_path: Path) -> None:
    write_text(tmp_path / "text", "é\r\n\ud83d\n")
    assert (tmp_path / "text").read_bytes() == b"\xc3\xa9\r\n?\n"


def test_a_place_that_no_file_can_have_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    reasons = {
        ".": "not a regular file",
        "pipe": "not a regular file",
        "file/below": "Not a directory",
        "absent/file": "No such file or directory",
        "long" * 80: "File name too long",
    }
    for name, reason in reasons.items():
        with pytest.raises(InputError, match=f"cannot write .*{reason}"):
            write_text(tmp_path / name, "text")
    assert stat.S_ISFIFO((tmp_path / "pipe").lstat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "pipe"]
