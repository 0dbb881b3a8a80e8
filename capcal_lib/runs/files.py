"""The files of a run: each is written whole under another name, and then renamed.

Everything in a run's folder is a regular file: a link, a pipe or a folder is refused before it is
opened."""

import errno
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from os.path import isfile, islink, lexists  # of a name that cannot be, no
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from capcal_lib.errors import InputError, sanitize

Item = TypeVar("Item")
WRITE_SECONDS = 5.0  # between two writes of a file
FOOTER = 1 << 24  # bytes, or entries, of what a file says of itself
WAIT = 2.0  # seconds for a lock that is held for a moment
BATCH = 1 << 16  # rows


def exists(path: Path) -> bool:
    """Tell whether a file of a run is there; refuse what is no regular file."""
    if islink(path) or (lexists(path) and not isfile(path)):
        raise InputError(f"{path}: not a regular file, as all files of a run are; remove it")
    return lexists(path)


@contextmanager
def open_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file of a run, and say in one line why it cannot be read."""
    exists(path)
    try:
        with path.open("rb") as file:
            yield file
    except InputError:
        raise
    except (OSError, ValueError, MemoryError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise InputError(
            f"{path}: missing or corrupt ({sanitize(reason or type(error).__name__)}); restore the "
            "file, or delete it and make it again"
        ) from None


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def open_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a parquet file of a run; a missing or corrupt one is an InputError."""
    with open_file(path) as file:  # pyarrow takes no path that is not UTF-8
        opened = pq.ParquetFile(
            file,
            page_checksum_verification=True,
            thrift_string_size_limit=FOOTER,
            thrift_container_size_limit=FOOTER,
        )
        for text in (opened.schema_arrow.metadata or {}).values():
            text.decode()
        yield opened


def iterate(file: pq.ParquetFile, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Read columns of a parquet file, so many rows at a time."""
    for batch in file.iter_batches(BATCH, columns=[*columns], use_threads=False):
        yield batch.to_pandas()


def count_rows(path: Path) -> int:
    """Count the rows of a parquet file of a run, as its footer tells."""
    with open_parquet(path) as file:
        return int(file.metadata.num_rows)


def write_table(path: Path, table: pa.Table) -> Path:
    """Write a parquet file of a run; a ``*`` in its name becomes the SHA-256 of its bytes."""
    return write_tables(path, table.schema, [table])


def write_tables(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> Path:
    """Write tables below one another, as ``write_table`` does, however long they take to come: a
    kill meanwhile leaves nothing behind.

    The bytes of vectors are split by their significance: the exponents of hidden states are alike
    and their fractions are not, and apart the former compress."""
    with plain_errors(path.parent), TemporaryFile(dir=path.parent) as made:
        with pq.ParquetWriter(
            made,
            schema,
            compression="zstd",
            use_dictionary=[one.name for one in schema if not pa.types.is_nested(one.type)],
            use_byte_stream_split=True,
            write_page_checksum=True,
        ) as writer:
            for table in tables:
                writer.write_table(table)
        made.seek(0)
        return write_file(path, made)


def write_file(path: Path, content: IO[bytes]) -> Path:
    """Write a file of a run; `InputError`, and what was there stays, where the folder cannot be
    written or is full.
    """
    temporary = path.with_name(f".{path.name.replace('*', '')}.{secrets.token_hex(8)}.tmp")
    with plain_errors(path.parent):
        try:
            with temporary.open("xb") as file:
                shutil.copyfileobj(content, file)
                file.flush()
                os.fsync(file.fileno())
            path = path.with_name(path.name.replace("*", file_digest(temporary)))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    return path


def gather(items: Iterable[Item], seconds: float = WRITE_SECONDS) -> Iterator[list[Item]]:
    """Yield what comes within so many seconds together, and what there is where nothing more does.

    >>> list(gather("abc"))
    [['a', 'b', 'c']]
    """
    together: list[Item] = []
    since = time.monotonic()
    try:
        for item in items:
            together.append(item)
            if time.monotonic() - since > seconds:
                due, together = together, []
                yield due
                since = time.monotonic()
    finally:
        if together:
            yield together


@contextmanager
def hold(folder: Path, name: str = "files.lock") -> Iterator[None]:
    """Let nobody else read, change and write files of a run meanwhile; its folder is made where it
    is new.
    """
    exists(folder / name)
    with plain_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(folder / name, timeout=WAIT):
                yield
        except Timeout:
            raise InputError(
                f"{folder} is being written by another process; wait for it, or use another --store"
            ) from None


@contextmanager
def plain_errors(folder: Path) -> Iterator[None]:
    """Say in one line why a folder cannot be written."""
    try:
        yield
    except OSError as error:
        problem = f"cannot be written ({error.strerror}); choose another --store"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            problem = (
                "the disk is full; what was written is kept, so free some space and give the "
                "command again"
            )
        raise InputError(f"{folder}: {problem}") from None
