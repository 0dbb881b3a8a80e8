"""The files of a run: each is written whole or not at all, and its SHA-256 stands in the run's
``SHA256SUMS``.

``sha256sum -c SHA256SUMS`` checks them, and so does every read. While a file is replaced, made or
removed the digests before and after both stand there (zeros for no file), so that a kill at any
moment leaves a file that one of them fits. The journal and the locks have no digest: each line of
the journal carries its own checksum. Where there is no ``SHA256SUMS``, as in runs of earlier
versions, nothing is checked; the first write takes down what it finds."""

import errno
import fcntl
import hashlib
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from capcal_lib.errors import InputError, sanitize

SUMS = "SHA256SUMS"
# held for the moment of a write; who draws samples holds another for as long as that takes
LOCK = "sums.lock"
NO_FILE = "0" * 64
WITHOUT_DIGEST = re.compile(r"\..*|lock|journal|SHA256SUMS|.*\.(lock|damaged)")
LEFT_OVER = re.compile(r"\..*\.tmp|\..*\.parquet\.\d+|\.run\.json")
_LINE = re.compile(r"([0-9a-f]{64})  ([^/]+)")
_Content = TypeVar("_Content")
_held = threading.local()


Sums = dict[
    str, tuple[str, ...]
]  # the digests of each file by its name: one, or two where a write was stopped


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, or zeros where there is none."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return NO_FILE


def state_of(folder: Path) -> tuple[tuple[str, int, int, int], ...]:
    """Return the name, place, size and time of change of each file: as long as they are the same,
    nothing was written.
    """
    found = []
    with suppress(FileNotFoundError):  # also of a file that another process removes meanwhile
        for each in os.scandir(folder):
            if not each.name.startswith(".") and not each.name.endswith("lock"):
                stat = each.stat()
                found.append((each.name, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(sorted(found))


def files_of(folder: Path) -> list[Path]:
    """List the files of a run that need a digest, sorted."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and not WITHOUT_DIGEST.fullmatch(path.name)
    )


def read_sums(folder: Path) -> Sums:
    """Read the digests on record; `InputError` for a line that is no digest and name."""
    path = folder / SUMS
    sums = Sums()
    text = path.read_bytes().decode(errors="surrogateescape") if path.exists() else ""
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise InputError(f"{path}, line {number}: not a digest and a name; restore the file")
        sums[match[2]] = (*sums.get(match[2], ()), match[1])
    return sums


def damage(folder: Path) -> list[str]:
    """Name the files of a run that are gone, or not as their digests say.

    A file is read once, and again only after it has changed."""
    found: list[str] = []
    for _ in range(3):  # a writer may replace files meanwhile
        there = {name: state for name, *state in state_of(folder)}
        found = []
        for name, known in read_sums(folder).items():
            if name not in there:
                found += [f"{name} is gone"] * (NO_FILE not in known)
            elif _known_digest(folder / name, *there[name]) not in known:
                found.append(f"{name} is not as its digest says")
        if not found:
            break
    return found


@lru_cache(1 << 14)
def _known_digest(path: Path, *state: int) -> str:  # noqa: ARG001
    return file_digest(path)


def recorded_digest(path: Path) -> str:
    """Return the digest of a file of a run as it is on record, or of its bytes where none is; zeros
    where there is no file.
    """
    known = read_sums(path.parent).get(path.name, ())
    if len(known) == 1:
        return known[0]
    return file_digest(path)


def changed_files(home: Path, digests: Mapping[str, str]) -> list[str]:
    """Name the files in runs under a folder that are others than their digests say; what is in a
    run that is not there is not compared.
    """
    return [
        name
        for name, digest in digests.items()
        if (home / name).parent.is_dir() and recorded_digest(home / name) != digest
    ]


def record_digests(folder: Path) -> None:
    """Take down the digests of files that have none on record."""
    with hold(folder):
        sums = read_sums(folder)
        lacking: Sums = {
            path.name: (file_digest(path),) for path in files_of(folder) if path.name not in sums
        }
        if lacking:
            _write_sums(folder, sums | lacking)


def write_table(path: Path, table: pa.Table) -> None:
    """Write a parquet file of a run, which names the run in its metadata.

    The bytes of vectors are split by their significance: the exponents of hidden states are alike
    and their fractions are not, and apart the former compress.
    """
    named = table.replace_schema_metadata(
        (table.schema.metadata or {}) | {b"run": path.parent.name.encode()}
    )
    scalars = [field.name for field in named.schema if not pa.types.is_nested(field.type)]
    write_file(
        path,
        lambda file: pq.write_table(
            named,
            file,
            compression="zstd",
            use_dictionary=scalars,
            use_byte_stream_split=True,
            write_page_checksum=True,
        ),
    )


def write_file(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file of a run; `InputError`, and what was there stays, where the folder cannot be
    written or is full.
    """
    with hold(path.parent):
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
        try:
            with temporary.open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            _change(path, file_digest(temporary), lambda: temporary.replace(path))
        finally:
            temporary.unlink(missing_ok=True)


def remove_file(path: Path, aside: Path | None = None) -> None:
    """Remove a file of a run, or set it aside under another name."""
    with hold(path.parent):
        _change(
            path, NO_FILE, lambda: path.rename(aside) if aside else path.unlink(missing_ok=True)
        )


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Let nobody else write files of a run meanwhile, and clear what a killed writer has left
    half-written.
    """
    held = _held.__dict__.setdefault("folders", set[Path]())
    if folder in held:
        yield
        return
    with plain_errors(folder), (folder / LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        held.add(folder)
        try:
            for path in folder.iterdir():
                if LEFT_OVER.fullmatch(path.name):
                    path.unlink()
            yield
        finally:
            held.discard(folder)


@contextmanager
def plain_errors(folder: Path) -> Iterator[None]:
    """Say in one line why a folder cannot be written."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise InputError(
                f"{folder}: the disk is full; what was written is kept, so free some space and "
                "give the command again"
            ) from None
        raise InputError(
            f"{folder}: cannot be written ({error.strerror}); choose another --store"
        ) from None


def read_bytes(path: Path) -> bytes:
    """Read a file of a run; one that is missing or not as its digest says is an InputError."""
    return _read(path, lambda file: file.read())


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a parquet file of a run; a missing or corrupt one is an InputError."""
    return _read(
        path, lambda file: pq.ParquetFile(file, page_checksum_verification=True).read(columns)
    )


def _read(path: Path, read: Callable[[pa.BufferReader], _Content]) -> _Content:
    reason = f"its digest is not the one in {SUMS}"
    for _ in range(3):  # a writer may replace the file meanwhile
        try:
            # pyarrow's own memory: a thread of it that lets go of a Python object as Python ends
            # aborts the process.
            with path.open("rb") as file:
                content = pa.allocate_buffer(os.fstat(file.fileno()).st_size)
                file.readinto(content)
            known = read_sums(path.parent).get(path.name)
            if known is None or hashlib.sha256(content).hexdigest() in known:
                return read(pa.BufferReader(content))
        except InputError:
            raise
        except Exception as error:  # what a damaged footer makes of the reading can be any
            reason = sanitize(str(error).splitlines()[0] if str(error) else type(error).__name__)
            break
    raise InputError(
        f"{path}: missing or corrupt ({reason}); restore the file, or delete it and make it again"
    )


def _change(path: Path, digest: str, change: Callable[[], object]) -> None:
    """Do what gives a file another digest, so that at any moment its digest is on record."""
    folder = path.parent
    name = path.name
    there = (folder / SUMS).exists()
    sums = (
        read_sums(folder)
        if there
        else {other.name: (file_digest(other),) for other in files_of(folder)}
    )
    for other, known in sums.items():  # a write that was stopped was done, or was not
        if len(known) > 1 and (now := file_digest(folder / other)) in known:
            sums[other] = (now,)
    sums = {other: known for other, known in sums.items() if known != (NO_FILE,)}
    _write_sums(folder, sums | {name: (*sums.get(name, (NO_FILE,)), digest)})
    change()
    _sync(folder)
    done: Sums = {name: (digest,)} if digest != NO_FILE else {}
    _write_sums(
        folder,
        {other: known for other, known in sums.items() if other != name} | done,
        synced=False,
    )


def _write_sums(folder: Path, sums: Mapping[str, Sequence[str]], *, synced: bool = True) -> None:
    lines = [f"{digest}  {name}\n" for name, digests in sorted(sums.items()) for digest in digests]
    temporary = folder / f".{SUMS}.{secrets.token_hex(8)}.tmp"
    try:
        with temporary.open("xb") as file:
            file.write("".join(lines).encode(errors="surrogateescape"))
            if synced:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(folder / SUMS)
    finally:
        temporary.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
