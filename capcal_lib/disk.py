"""Files on the disk, whosever they are: what is there, what its digest is, and how one is written
whole."""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from capcal_lib.errors import InputError


def is_folder(path: Path) -> bool:
    """Say whether a path is a folder. One with a name that is too long for any file is none, where
    pathlib raises an error.
    """
    return os.path.isdir(path)


def is_file(path: Path) -> bool:
    """Say whether a path is a regular file, or a link to one; of a name that is too long as
    ``is_folder``.
    """
    return os.path.isfile(path)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_whole(path: Path, content: IO[bytes]) -> None:
    """Write a file under another name in its folder, and then rename it: it is there whole or not
    at all. `OSError` where that fails.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            shutil.copyfileobj(content, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, texts: Iterable[str]) -> None:
    """Write a file that somebody named, of texts one after another, whole or not at all; what is
    there and no regular file is refused.
    """
    if os.path.exists(path) and not is_file(path):
        raise InputError(f"cannot write {path}: it is no regular file; give another name")
    try:
        with TemporaryFile() as content:
            content.writelines(text.encode("utf-8", "replace") for text in texts)
            content.seek(0)
            write_whole(path, content)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
