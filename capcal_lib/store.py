"""The run store: append-only rows, one for each (question_id, sample_index).

A run is a folder, ``<store>/<model>/<dataset>-<split>/<key>``, named by a digest of everything
that decides its rows. In it:

``run.json``          the identity behind the key, and how the run was made
``samples-*.parquet`` sealed shards, never written again
``journal``           rows that are not in a shard yet, one checksummed line each
``lock``              who is writing

A kill at any byte leaves at most one torn line at the end of the journal; the next writer cuts it off.
A kill between sealing a shard and emptying the journal leaves rows in both; readers take them once.
"""

import errno
import fcntl
import hashlib
import json
import os
import socket
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from capcal_lib.engines import Sample
from capcal_lib.errors import InputError
from capcal_lib.manifests import Manifest, PromptStyle, Sampling

ROWS_PER_SHARD = 50_000
KEY = ["question_id", "sample_index"]
SCHEMA = pa.schema(
    [
        ("question_id", pa.string()),
        ("sample_index", pa.int32()),
        ("response", pa.string()),
        ("reasoning", pa.string()),
        ("finish_reason", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
    ]
)
assert SCHEMA.names == [field.name for field in fields(Sample)]


class Identity(Manifest):
    """Everything that decides the rows of a run. Two runs with one identity are one run."""

    model: str
    weights: str  # digest of the weights' bytes, or repository@commit
    dataset: str
    split: str
    questions: str  # digest of the split's questions and answers
    prompt_style: PromptStyle
    prompt_template: str  # digest of the words around the question
    chat_template: dict[str, Any]
    sampling: Sampling
    engine: str
    seed: int

    @property
    def key(self) -> str:
        """Return the digest that names the run's folder."""
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]


class Record(Manifest):
    """What ``run.json`` holds: the identity, and facts about the making that change no row."""

    identity: Identity
    made_with: dict[str, str]  # versions, hardware, whether the data set matched its manifest


def run_folder(store: Path, identity: Identity) -> Path:
    """Return the folder of the run with this identity, existing or not."""
    return store / identity.model / f"{identity.dataset}-{identity.split}" / identity.key


def list_runs(store: Path) -> list[Path]:
    """List the folders of all runs in a store, sorted."""
    return sorted(path.parent for path in store.glob("*/*/*/run.json"))


def find_run(store: Path, model: str, dataset: str, split: str) -> Path:
    """Return the folder of the only run of a model on a split.

    Raises
    ------
    InputError
        Where there is no run, with the command that makes one; where there are several, with what
        distinguishes them.
    """
    parent = store / model / f"{dataset}-{split}"
    runs = sorted(path.parent for path in parent.glob("*/run.json"))
    if not runs:
        raise InputError(
            f"no samples of {model} on {dataset} ({split}) in {store}; "
            f"make them with: capcal sample --model {model} --dataset {dataset} --split {split} --k 100"
        )
    if len(runs) > 1:
        settings = sorted({line for run in runs[1:] for line in differences(runs[0], run)})
        raise InputError(
            f"{len(runs)} runs of {model} on {dataset} ({split}) in {store}, which differ in {'; '.join(settings)}; "
            "keep one of them, or use another --store"
        )
    return runs[0]


def differences(one: Path, other: Path) -> list[str]:
    """Name the settings in which two runs differ, ``setting: one / other``."""

    def flat(folder: Path) -> dict[str, object]:
        settings = read_record(folder).identity.model_dump(mode="json")
        sampling = settings.pop("sampling")
        return settings | {f"sampling.{name}": value for name, value in sampling.items()}

    left, right = flat(one), flat(other)
    return [f"{name}: {left[name]} / {right[name]}" for name in left if left[name] != right[name]]


def read_record(folder: Path) -> Record:
    """Read a run's ``run.json``; a corrupt one is an InputError."""
    path = folder / "run.json"
    try:
        return Record.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise InputError(f"{path}: missing or corrupt run record ({_first_line(error)}); restore the file") from None


def read_samples(folder: Path) -> pd.DataFrame:
    """Read all rows of a run, sorted by (question_id, sample_index), each once.

    Raises
    ------
    InputError
        For a corrupt shard, or two different rows under one key.
    """
    # The journal first: a writer may move its rows to a shard meanwhile, and twice is better than never.
    rows, _ = _read_journal(folder / "journal")
    return _merged(folder, rows, [_read_shard(path) for path in _shards(folder)])


def _merged(folder: Path, rows: list[dict[str, Any]], shards: list[pa.Table]) -> pd.DataFrame:
    """Put the journal's rows and the shards together, sorted, each row once; two rows under one key are refused."""
    tables = [pa.Table.from_pylist(rows, schema=SCHEMA), *shards]
    frame = pa.concat_tables(tables).to_pandas().drop_duplicates().sort_values(KEY, ignore_index=True)
    twice = frame.duplicated(KEY)
    if twice.any():
        question, index = frame.loc[twice.idxmax(), KEY]
        raise InputError(f"{folder}: two different rows for sample {index} of {question}; the run is corrupt")
    return frame


def write_table(path: Path, table: pa.Table) -> None:
    """Write a parquet file whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        pq.write_table(table, temporary, compression="zstd")
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_table(path: Path) -> pa.Table:
    """Read a parquet file of a run; a missing or corrupt one is an InputError."""
    try:
        return pq.read_table(path, partitioning=None)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(
            f"{path}: missing or corrupt ({_first_line(error)}); restore the file or make it again"
        ) from None


class Writer:
    """Append samples to one run. Made by ``open_writer``, which holds the lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "journal"
        rows, whole = _read_journal(self._path)
        self.cut_bytes = self._path.stat().st_size - whole if self._path.exists() else 0
        if self.cut_bytes:
            os.truncate(self._path, whole)
        shards = [_read_shard(path) for path in _shards(folder)]
        samples = _merged(folder, rows, shards)
        sealed = {key for shard in shards for key in _keys(shard)}
        self._pending = [row for row in rows if (row["question_id"], row["sample_index"]) not in sealed]
        self._present = set(zip(samples["question_id"], samples["sample_index"], strict=True))
        self._journal = self._path.open("ab")

    def missing(self, question_ids: Sequence[str], k: int) -> dict[str, tuple[int, ...]]:
        """Return, for each question that lacks any of its first k samples, the indices that it lacks."""
        wanted = {
            question: tuple(index for index in range(k) if (question, index) not in self._present)
            for question in question_ids
        }
        return {question: indices for question, indices in wanted.items() if indices}

    def append(self, samples: Iterable[Sample]) -> None:
        """Write rows to the journal, at once; a row that is there already is an error."""
        rows = [asdict(sample) for sample in samples]
        for row in rows:  # half a surrogate pair is not text, and no file would take it
            for name in ("response", "reasoning"):
                row[name] = row[name] and row[name].encode("utf-8", "replace").decode()
        for row in rows:
            key = (row["question_id"], row["sample_index"])
            if key in self._present:
                raise ValueError(f"{self.folder}: sample {key[1]} of {key[0]} is there already")
            self._present.add(key)
        self._journal.write(b"".join(map(_journal_line, rows)))
        self._journal.flush()
        self._pending.extend(rows)
        if len(self._pending) >= ROWS_PER_SHARD:
            self.seal()

    def seal(self) -> None:
        """Move the journal's rows into a new shard."""
        if self._pending:
            table = pa.Table.from_pylist(self._pending, schema=SCHEMA)
            number = len(_shards(self.folder))
            path = self.folder / f"samples-{number:05d}.parquet"
            write_table(path, table.sort_by([(name, "ascending") for name in KEY]))
        self._journal.truncate(0)
        self._pending = []

    def close(self) -> None:
        """Seal what is pending and let go of the journal."""
        try:
            self.seal()
        finally:
            self._journal.close()
        if self._path.stat().st_size == 0:
            self._path.unlink()


@contextmanager
def open_writer(store: Path, record: Record) -> Iterator[Writer]:
    """Open a run for appending, making it if it is new; only one process may hold it.

    Raises
    ------
    InputError
        When another process holds the run (its pid and host are named), the folder is read-only, or
        the disk is full. Rows written before stay.
    """
    folder = run_folder(store, record.identity)
    with _plain_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("a+", encoding="utf-8") as lock:
            _hold(lock, folder)
            if not (folder / "run.json").exists():
                temporary = folder / ".run.json"
                temporary.write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
                temporary.replace(folder / "run.json")
            writer = Writer(folder)
            try:
                yield writer
            finally:
                writer.close()


def _hold(lock: IO[str], folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "another process"
        raise InputError(f"{folder} is being written by {holder}; wait for it, or use another --store") from None
    lock.truncate(0)
    lock.write(f"pid {os.getpid()} on {socket.gethostname()}")
    lock.flush()


@contextmanager
def _plain_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOENT, errno.ENOTDIR):
            raise InputError(f"{folder}: cannot be written ({error.strerror}); choose another --store") from None
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise InputError(
                f"{folder}: the disk is full; what was written is kept, so free some space and give the command again"
            ) from None
        raise


def _shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("samples-*.parquet"))


def _read_shard(path: Path) -> pa.Table:
    table = read_table(path)
    if not table.schema.equals(SCHEMA, check_metadata=False):
        raise InputError(f"{path}: not a shard of samples; its columns are {', '.join(table.column_names)}")
    return table


def _keys(table: pa.Table) -> Iterator[tuple[str, int]]:
    return zip(table["question_id"].to_pylist(), table["sample_index"].to_pylist(), strict=True)


def _journal_line(row: dict[str, object]) -> bytes:
    content = json.dumps(row, ensure_ascii=True, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(content), content)


def _read_journal(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the journal's whole rows and the number of bytes they take."""
    rows: list[dict[str, Any]] = []
    valid = 0
    if not path.exists():
        return rows, valid
    with path.open("rb") as file:
        for line in file:
            checksum, _, content = line.rstrip(b"\n").partition(b" ")
            if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(content):
                break
            rows.append(json.loads(content))
            valid += len(line)
    return rows, valid


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
