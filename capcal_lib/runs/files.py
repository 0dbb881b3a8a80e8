"""Read and write the files of a run: each is written whole under another name, and then renamed.

Everything in a run's folder is a regular file; a link, a pipe or a folder is refused before it is
opened. Every parquet file is known by a digest of its bytes, in its name or else in itself, and
what it unpacks to is bounded."""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from capcal_lib.disk import write_whole
from capcal_lib.errors import DiskError, InputError
from capcal_lib.text import sanitize

Item = TypeVar("Item")
WRITE_SECONDS = 5.0  # between two writes of a file
FOOTER = 1 << 24  # bytes, or entries, of what a file says of itself
FILES_LOCK = "files.lock"  # held by who writes a file, or changes one
WAIT = 2.0  # seconds for a lock that another may hold for hours
SHORT_WAIT = 60.0  # seconds for one that is held while a file is written
BATCH = 1 << 16  # rows
MOST_ROWS = 1 << 25  # of a file
UNPACKED = 1 << 30  # bytes that a file may unpack to, or so many times its own:
RATIO = 100
SEAL = b"capcal.sha256:"  # stands before the digest that a file has of itself
BLANK = b"0" * 64  # stands for the digest where it is taken
ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


class Opened(NamedTuple):
    """An open parquet file."""

    path: Path
    schema: pa.Schema  # with what the file says of how it was made
    rows: int
    reader: pq.ParquetFile
    limit: int  # bytes that it may unpack to


def exists(path: Path) -> bool:
    """Tell whether a file of a run exists. A name that is impossible does not.

    `InputError` if it is no regular file, `DiskError` if the disk gives no answer."""
    try:
        mode = path.lstat().st_mode
    except ValueError:
        return False
    except OSError as error:
        if error.errno in ABSENT:
            return False
        raise DiskError(f"{path}: cannot be read ({error.strerror}); try again") from None
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: not a regular file, as a file of a run must be; remove it")
    return True


def refuse_irregular(path: Path) -> None:
    """Refuse a path that exists and is no regular file."""
    exists(path)


def list_files(folder: Path, pattern: str) -> list[Path]:
    """List the files of a run whose names fit a pattern, sorted; empty if the folder does not
    exist.
    """
    try:
        return sorted(folder / name for name in os.listdir(folder) if fnmatch(name, pattern))
    except ValueError:
        return []
    except OSError as error:
        if error.errno in ABSENT:
            return []
        raise DiskError(f"{folder}: cannot be read ({error.strerror}); try again") from None


@contextmanager
def open_file(path: Path) -> Iterator[BufferedReader]:
    """Open a file of a run, and say in one line why it cannot be read.

    `DiskError` if the cause may pass, which says nothing about the file."""
    refuse_irregular(path)
    try:
        with path.open("rb") as file:
            yield file
    except (InputError, MemoryError):
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        number = getattr(error, "errno", None)  # pyarrow's errors have none
        if number is not None and number not in ABSENT:
            raise DiskError(f"{path}: cannot be read ({os.strerror(number)}); try again") from None
        reason = os.strerror(number) if number else str(error).partition("\n")[0]
        raise InputError(
            f"{path}: missing or corrupt ({sanitize(reason or type(error).__name__)}); restore the "
            "file, or delete it and make it again"
        ) from None


@contextmanager
def open_parquet(path: Path, *, sealed: bool) -> Iterator[Opened]:
    """Open a parquet file of a run. A ``sealed`` file contains its own digest, unless it is from an
    earlier version.

    `InputError` if it is missing or corrupt, does not match its digest, or unpacks to too much."""
    with open_file(path) as file:  # pyarrow takes no path that is not UTF-8
        place = find_seal(file) if sealed else 0
        if place and digest_around(file, place) != file.read(len(BLANK)):
            raise ValueError("its bytes are not those whose digest it has")
        plain = _read_footer(file)
        about = plain.metadata
        if sealed and not place and SEAL in (about.metadata or {}):
            raise ValueError("it has lost the digest of its bytes")
        schema = plain.schema_arrow
        # What pyarrow says of row groups is not asked: a hostile footer ends the process there.
        lists = [one.type for one in schema if pa.types.is_fixed_size_list(one.type)]
        numbers = about.num_rows * sum(one.list_size for one in lists)
        limit = max(UNPACKED, RATIO * path.stat().st_size)
        if about.num_rows > MOST_ROWS or 2 * numbers > limit:
            raise ValueError("it unpacks to more than any file of a run")
        made = {name: text for name, text in (schema.metadata or {}).items() if name != b"pandas"}
        for text in made.values():
            text.decode()
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        reader = _read_footer(file, texts)
        yield Opened(path, schema.with_metadata(made), about.num_rows, reader, limit)


def _read_footer(file: IO[bytes], texts: Collection[str] = ()) -> pq.ParquetFile:
    """Let pyarrow read the footer. In the columns ``texts``, a repeated text is read once."""
    return pq.ParquetFile(
        file,
        read_dictionary=[*texts],
        page_checksum_verification=True,
        thrift_string_size_limit=FOOTER,
        thrift_container_size_limit=FOOTER,
    )


def iterate(opened: Opened, columns: Iterable[str]) -> Iterator[pa.Table]:
    """Read columns of a parquet file, a batch of rows at a time."""
    unpacked = 0
    for batch in opened.reader.iter_batches(BATCH, columns=[*columns], use_threads=False):
        unpacked += sum(map(unpacked_size, batch.columns))
        if unpacked > opened.limit:
            raise ValueError("it unpacks to more than any file of a run")
        schema = pa.schema([opened.schema.field(name) for name in batch.schema.names])
        table = pa.Table.from_batches([batch]).replace_schema_metadata().cast(schema)
        table.validate(full=True)  # that texts are UTF-8, among others
        yield table


def unpacked_size(column: pa.Array) -> int:
    """Count the bytes of a column, counting a repeated text each time."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary).take(column.indices)
    return int(pc.sum(lengths).as_py() or 0)


def count_rows(path: Path) -> int:
    """Count the rows of a file of samples, from its footer."""
    with open_parquet(path, sealed=False) as opened:
        return opened.rows


def find_seal(file: IO[bytes]) -> int:
    """Return the position of the digest that a parquet file has of itself; 0 if there is none, as
    in files of earlier versions and in files whose names have the digest.
    """
    size = file.seek(0, os.SEEK_END)
    start = file.seek(max(0, size - FOOTER))
    place = file.read().rfind(SEAL)
    return start + place + len(SEAL) if place >= 0 else 0


def digest_around(file: IO[bytes], place: int) -> bytes:
    """Return the SHA-256 of a file, in hexadecimal digits, with zeros in the place of its own
    digest.

    The file is then at this place.
    """
    digest = hashlib.sha256()
    file.seek(0)
    left = place
    while piece := file.read(min(left, 1 << 20)):
        digest.update(piece)
        left -= len(piece)
    digest.update(BLANK)
    file.seek(place + len(BLANK))
    while piece := file.read(1 << 20):
        digest.update(piece)
    file.seek(place)
    return digest.hexdigest().encode()


def write_table(path: Path, table: pa.Table) -> Path:
    """Write a parquet file of a run; a ``*`` in its name becomes the SHA-256 of its bytes."""
    return write_tables(path, table.schema, [table])


def write_tables(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> Path:
    """Write tables one after another, as ``write_table`` writes one, however long they take to
    come. A kill meanwhile leaves nothing behind.

    The bytes of vectors are split by significance: the exponents of hidden states are alike, and
    compress well once they are apart from the fractions. A file without a ``*`` in its name
    contains its own digest, computed with zeros in its place and then written over them."""
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
            if "*" not in path.name:
                writer.add_key_value_metadata({SEAL: SEAL + BLANK})
        if "*" in path.name:
            made.seek(0)
            digest = hashlib.file_digest(made, "sha256").hexdigest()
            path = path.with_name(path.name.replace("*", digest))
        elif place := find_seal(made):
            made.write(digest_around(made, place))
        made.seek(0)
        write_file(path, made)
        return path


def write_file(path: Path, content: IO[bytes]) -> None:
    """Write a file of a run. `InputError` if the folder cannot be written or is full; the old file
    then stays.
    """
    with hold(path.parent), plain_errors(path.parent):
        write_whole(path, content)


def gather(items: Iterable[Item | None], seconds: float = WRITE_SECONDS) -> Iterator[list[Item]]:
    """Yield together the items that come within so many seconds, and the rest at the end. None is
    no item, but time that has passed.

    >>> list(gather(["a", None, "b", "c"]))
    [['a', 'b', 'c']]
    """
    together: list[Item] = []
    since = time.monotonic()
    try:
        for item in items:
            if item is not None:
                together.append(item)
            if together and time.monotonic() - since > seconds:
                due, together = together, []
                yield due
                since = time.monotonic()
    finally:
        if together:
            yield together


@contextmanager
def hold(folder: Path, name: str = FILES_LOCK) -> Iterator[None]:
    """Lock the files of a run against other processes that change or write them.

    The folder is made if it is new, and what killed writers left is removed.
    """
    refuse_irregular(folder / name)
    short = name == FILES_LOCK
    # who holds the lock of the files takes it again to write one of them
    lock = FileLock(folder / name, timeout=SHORT_WAIT if short else WAIT, is_singleton=short)
    with plain_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout:
            raise InputError(
                f"{folder} is being written by another process; wait for it, or use another --store"
            ) from None
    try:
        if short and lock.lock_counter == 1:
            with plain_errors(folder):
                for path in list_files(folder, ".*.tmp"):
                    path.unlink()
        yield
    finally:
        lock.release()


@contextmanager
def plain_errors(folder: Path) -> Iterator[None]:
    """Say in one line why a folder cannot be written, as a `DiskError`."""
    try:
        yield
    except OSError as error:
        problem = f"cannot be written ({error.strerror}); choose another --store"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            problem = (
                "the disk is full; what was written is kept. Free some space and give the command "
                "again"
            )
        raise DiskError(f"{folder}: {problem}") from None
