"""Files on disk: whether they exist, their digest, and writing them whole or not at all."""

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
    """Return whether a path is a folder; False for a name too long, for which pathlib raises."""
    return os.path.isdir(path)


def is_file(path: Path) -> bool:
    """Return whether a path is a regular file or a link to one; False if its name is too long."""
    return os.path.isfile(path)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_whole(path: Path, content: IO[bytes]) -> None:
    """Write a file under another name in its folder, then rename it, so that it exists whole or not
    at all. `OSError` if that fails.
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
    """Write texts, one after another, to a file that the user named, whole or not at all.
    `InputError` if the path exists and is not a regular file.
    """
    if os.path.exists(path) and not is_file(path):
        raise InputError(f"cannot write {path}: it is not a regular file; give another name")
    try:
        with TemporaryFile() as content:
            content.writelines(text.encode("utf-8", "replace") for text in texts)
            content.seek(0)
            write_whole(path, content)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
