"""Read and write the files of a run: each is written whole under another name, and then renamed.

A store may be a stranger's: a link that leads out of it is refused, see `inside`, and so is a file
that unpacks to too much, see `read_bytes`."""

import errno
import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from capcal_lib.disk import write_whole
from capcal_lib.errors import DiskError, InputError
from capcal_lib.text import sanitize

Item = TypeVar("Item")
WRITE_SECONDS = 5.0  # between two writes of a file
LOCK = "lock"  # held by who draws, merges, removes or adds to a file
WAIT = 2.0  # seconds for a lock that another may hold for hours
BATCH = 1 << 16  # rows that are read at a time
UNPACKED = 1 << 30  # bytes that a file may unpack to, or so many times its own:
RATIO = 100
MOST_ROWS = 1 << 25  # of a file
FOOTER = 1 << 24  # bytes, or entries, of what a file says of itself
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Say in one line why a file of a run cannot be read or written.

    `DiskError` if the disk is the cause, which says nothing about the file."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: missing or corrupt (No such file or directory)") from None
    except (OSError, ValueError, pa.ArrowException) as error:
        number = getattr(error, "errno", None)  # pyarrow's errors have none
        if number in FULL:
            raise DiskError(
                f"{path}: the disk is full; what was written is kept. Free some space and give "
                "the command again"
            ) from None
        if number:
            raise DiskError(
                f"{path}: cannot be read or written ({os.strerror(number)}); try again, or choose "
                "another --store"
            ) from None
        raise InputError(
            f"{path}: missing or corrupt ({sanitize(error)}); delete it and make it again"
        ) from None


@contextmanager
def open_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file of a run to read it, with `plain_errors`, if it is `inside` the run."""
    with plain_errors(path), inside(path.parent, path.name).open("rb") as file:
        yield file


def read_table(path: Path) -> pa.Table:
    """Read a parquet file, and check the checksums of its pages."""
    with open_file(path) as file:
        return read_bytes(file)


def read_part(path: Path, schema: pa.Schema) -> pa.Table:
    """Read the columns of a schema from a part, whose name must have the SHA-256 of its bytes."""
    with plain_errors(path):
        content = inside(path.parent, path.name).read_bytes()
        if path.stem.rpartition("-")[2] != hashlib.sha256(content).hexdigest():
            raise InputError(
                f"{path}: corrupt, since its bytes do not match its name; delete it, and draw its "
                "rows again with the `capcal sample` command of its run"
            )
        table = read_bytes(BytesIO(content), schema.names)
        if table.schema != schema:
            raise ValueError("its columns are not those of samples")
        return table


def read_bytes(file: IO[bytes], columns: Sequence[str] = ()) -> pa.Table:
    """Read an open parquet file, or columns of it, unless it unpacks to more than 1 GiB, or 100
    times the file, or has more rows than any file of a run.
    """
    limit = max(UNPACKED, RATIO * file.seek(0, os.SEEK_END))
    schema = read_footer(file).schema_arrow
    names = [*columns] or schema.names
    if lacking := {*names} - {*schema.names}:
        raise ValueError(f"no column {min(lacking)}")
    texts = [one.name for one in schema if pa.types.is_string(one.type)]  # repeated ones are one
    opened = read_footer(file, texts)
    lists = [one.type for one in schema if pa.types.is_nested(one.type)]
    if not all(map(is_states, lists)):
        raise ValueError("it has lists that are not hidden states")
    rows = opened.metadata.num_rows
    unpacked = 2 * rows * sum(one.list_size for one in lists)
    too_much = ValueError("it unpacks to more than any file of a run")
    if rows > MOST_ROWS or unpacked > limit:
        raise too_much
    batches = []
    for batch in opened.iter_batches(BATCH, columns=names, use_threads=False):
        unpacked += sum(map(unpacked_size, batch.columns))
        if unpacked > limit:
            raise too_much
        batches.append(batch)
    if sum(map(len, batches)) != rows:
        raise ValueError("it has not as many rows as it says")
    wanted = pa.schema([schema.field(name) for name in names], schema.metadata)
    tables = [pa.Table.from_batches([batch]).select(names).cast(wanted) for batch in batches]
    table = pa.concat_tables([wanted.empty_table(), *tables])
    table.validate(full=True)  # that texts are UTF-8, among others
    return table


def read_footer(file: IO[bytes], texts: Sequence[str] = ()) -> pq.ParquetFile:
    """Open a parquet file, and read its footer. In the columns ``texts``, a repeated text is read
    once.
    """
    return pq.ParquetFile(
        file,
        read_dictionary=[*texts],
        page_checksum_verification=True,
        thrift_string_size_limit=FOOTER,
        thrift_container_size_limit=FOOTER,
    )


def is_states(kind: pa.DataType) -> bool:
    """Tell whether a column has lists of one size, in float16, as hidden states are stored."""
    return pa.types.is_fixed_size_list(kind) and bool(kind.value_type == pa.float16())


def unpacked_size(column: pa.Array) -> int:
    """Count the bytes of a column, counting a repeated text each time."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary).take(column.indices)
    return int(pc.sum(lengths).as_py() or 0)


def count_rows(path: Path) -> int:
    """Count the rows of a parquet file, as its footer says."""
    with open_file(path) as file:
        return read_footer(file).metadata.num_rows


def read_metadata(path: Path) -> dict[bytes, bytes]:
    """Return the metadata of a parquet file."""
    with open_file(path) as file:
        return read_footer(file).schema_arrow.metadata or {}


def write_table(path: Path, table: pa.Table) -> Path:
    """Write a parquet file; a ``*`` in its name becomes the SHA-256 of its bytes.

    The bytes of vectors are split by significance: the exponents of hidden states are alike, and
    compress well once they are apart from the fractions."""
    made = BytesIO()
    pq.write_table(
        table,
        made,
        compression="zstd",
        use_dictionary=[one.name for one in table.schema if not pa.types.is_nested(one.type)],
        use_byte_stream_split=True,
        write_page_checksum=True,
    )
    digest = hashlib.sha256(made.getbuffer()).hexdigest()
    path = path.with_name(path.name.replace("*", digest))
    made.seek(0)
    write_file(path, made)
    return path


def write_file(path: Path, content: IO[bytes]) -> None:
    """Write a file of a run; if that fails, the old one stays."""
    with plain_errors(path):
        write_whole(path, content)


def inside(folder: Path, *place: str) -> Path:
    """Return the path of a place in a folder. `InputError` for a link that leads out of it, so that
    nothing outside of a store is read, written or removed, and for a pipe or a device.
    """
    path = folder.joinpath(*place)
    with plain_errors(path):
        if path.resolve() != folder.resolve().joinpath(*place):
            raise InputError(
                f"{path} is a link to {path.resolve()}, outside this store; name that store with "
                "--store, or remove the link"
            )
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise InputError(f"{path}: not a regular file; remove it")
    return path


@contextmanager
def hold(folder: Path, written: str) -> Iterator[None]:
    """Lock a run against others who draw, merge, remove or add to a file; the folder is made if it
    is new. What killed writers have left of the files to be ``written`` is removed.
    """
    with plain_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(inside(folder, LOCK), timeout=WAIT)
        try:
            lock.acquire()
        except Timeout:
            raise InputError(
                f"{folder} is being written by another process; wait for it, or use another --store"
            ) from None
    try:
        with plain_errors(folder):
            for path in folder.glob(f".{written}.*.tmp"):
                path.unlink()
        yield
    finally:
        lock.release()


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
