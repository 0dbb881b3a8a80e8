"""The run store: append-only rows, one for each (question_id, sample_index).

A run is a folder, ``<store>/<model>/<dataset>-<split>/<key>``, named by a digest of all that
decides its rows. In it:

``run.json``          the identity behind the key, and how the run was made
``samples-*.parquet`` sealed shards, never written again
``journal``           rows that are not in a shard yet, one checksummed line each
``lock``              who is drawing
``SHA256SUMS``        the digests of all other files (see ``files``)

A kill at any byte leaves at most one torn line at the end of the journal; the next writer cuts it
off. A kill between sealing a shard and emptying the journal leaves rows in both; readers take them
once. What was damaged from outside costs what was damaged: a line of the journal, or a shard, which
the next writer sets aside as ``*.damaged``; the rows are drawn again. All functions raise
``InputError`` for a run that is corrupt."""

import fcntl
import json
import os
import re
import secrets
import shutil
import signal
import socket
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from capcal_lib.errors import InputError
from capcal_lib.runs import files
from capcal_lib.runs.artifacts import VERDICTS
from capcal_lib.runs.files import SUMS, hold, plain_errors, read_sums, read_table, remove_file
from capcal_lib.runs.run import Record, Run, run_of
from capcal_lib.runs.samples import Sample
from capcal_lib.runs.sessions import mend_sessions

ROWS_PER_SHARD = 50_000
BYTES_PER_SHARD = (
    1 << 28
)  # of journal; whichever comes first bounds the memory that pending rows take
MOST_SAMPLES = 1 << 20  # of a question; a larger index is damage, or somebody's mischief
KEY = ["question_id", "sample_index"]
ORDER = [(name, "ascending") for name in KEY]
SCHEMA = pa.schema(
    [(field.name, pa.int32() if field.type is int else pa.string()) for field in fields(Sample)]
)
# the largest numbers that a row may have; the least is 0
MOST = {
    "sample_index": MOST_SAMPLES - 1,
    "prompt_tokens": (1 << 31) - 1,
    "completion_tokens": (1 << 31) - 1,
}


def read_samples(run: Run, columns: Sequence[str] = SCHEMA.names) -> pd.DataFrame:
    """Read all rows of a run, sorted by (question_id, sample_index), each once: its key and the
    named columns.
    """
    frame = pa.concat_tables(_tables(run, columns)).to_pandas()
    if frame.duplicated(KEY).any():
        frame = frame.drop_duplicates()
        for question, index in frame.loc[frame.duplicated(KEY), KEY].itertuples(index=False):
            raise InputError(
                f"{run}: two different rows for sample {index} of {question}; the run is corrupt"
            )
    return frame.sort_values(KEY, ignore_index=True)


class Present:
    """Which samples there are: a bit for each, in blocks of 1,024 of a question.

    Small where the samples of a question follow one another, and never larger than what it is
    given."""

    def __init__(self) -> None:
        self._bits: dict[tuple[str, int], int] = {}

    def __len__(self) -> int:
        return sum(bits.bit_count() for bits in self._bits.values())

    def __contains__(self, key: tuple[str, int]) -> bool:
        block, place = divmod(key[1], 1024)
        return bool(self._bits.get((key[0], block), 0) >> place & 1)

    def add(self, key: tuple[str, int]) -> bool:
        """Note a sample; return whether it is a new one."""
        block, place = divmod(key[1], 1024)
        before = self._bits.get((key[0], block), 0)
        after = before | 1 << place
        self._bits[key[0], block] = after
        return after != before


def stream_samples(run: Run, columns: Sequence[str] = SCHEMA.names) -> Iterator[pd.DataFrame]:
    """Yield the rows that ``read_samples`` reads as they were written, at most about a shard of
    them at a time, and at least one; nothing of a run without rows.
    """
    there = Present()
    for table in _batches(_tables(run, columns)):
        new = [there.add(key) for key in keys(table)]
        if not all(new):
            read_samples(run)  # refuses where the two rows differ
        if any(new):
            yield table.filter(pa.array(new, pa.bool_())).to_pandas()


def _batches(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Put small tables together, as long as they stay within the limits of a shard."""
    held: list[pa.Table] = []
    for table in tables:
        both = [*held, table]
        rows = sum(map(len, both))
        size = sum(part.nbytes for part in both)
        if held and (rows > ROWS_PER_SHARD or size > BYTES_PER_SHARD):
            yield pa.concat_tables(held)
            both = [table]
        held = both
    yield pa.concat_tables(held)


def gather_samples(
    run: Run,
    make: Callable[[pd.DataFrame], pd.DataFrame],
    columns: Sequence[str] = SCHEMA.names,
) -> pd.DataFrame:
    """Make something small of the rows of each batch, and put it together.

    Of a run without rows it is what is made of a table without rows."""
    parts = [make(rows) for rows in stream_samples(run, columns)]
    if not parts:
        return make(next(_tables(run, columns)).to_pandas())
    return pd.concat(parts, ignore_index=True)


def row_digests(rows: pd.DataFrame) -> "pd.Series[int]":
    """Return 64 bits for each row that follow from its key and its response."""
    return pd.util.hash_pandas_object(rows[[*KEY, "response"]], index=False, categorize=False)


def digest_of_graded(run: Run, verdicts: pa.Table) -> str:
    """Return the digest of those samples of a run that have these verdicts, in whatever order they
    were written.
    """
    graded = pd.MultiIndex.from_frame(verdicts.select(KEY).to_pandas())

    def digests(samples: pd.DataFrame) -> pd.DataFrame:
        there = pd.MultiIndex.from_frame(samples[KEY]).isin(graded)
        return row_digests(samples[there]).to_frame("digest")

    return digest_of_rows(gather_samples(run, digests, ["response"])["digest"])


def digest_of_rows(digests: "pd.Series[int]", others: int = 0) -> str:
    """Return the digest of samples by the digests of each, and by that of others."""
    return f"{(int(digests.sum()) + others) % 2**64:016x}"


def problems_of(run: Run) -> tuple[str, ...]:
    """Name what of a run is missing or damaged, as far as its digests and its journal tell."""
    return run.cached(_find_problems)


def _find_problems(run: Run) -> tuple[str, ...]:
    try:
        found = files.damage(run.folder)
    except InputError as error:
        found = [str(error)]
    journal = read_journal(run)
    if journal.damaged:
        found.append(f"{journal.damaged} damaged lines in the journal")
    if journal.torn and writer_at_work(run) is None:
        found.append("the journal ends in half a line")
    return tuple(f"{problem}; see: capcal verify" for problem in found)


def remove_run(run: Run) -> None:
    """Remove a run with all that was made from it; one that is being written is refused.

    It is out of the store at once, or not at all: a stop leaves a folder that is no run."""
    lock = run.folder / "lock"
    with plain_errors(run.folder), lock.open("a+", encoding="utf-8") as held:
        _hold(held, run)
        aside = run.folder.with_name(f".{run.folder.name}.{secrets.token_hex(4)}.tmp")
        run.folder.rename(aside)
        shutil.rmtree(aside)
    for parent in (run.folder.parent, run.folder.parent.parent):
        with suppress(OSError):  # which holds other runs
            parent.rmdir()


def count_rows(run: Run) -> int:
    """Count the rows in all files of a run; a row that is in two of them counts twice."""
    rows = len(read_journal(run).rows)
    for path in _shards(run):
        with path.open("rb") as file:  # pyarrow takes no path that is not UTF-8
            rows += pq.read_metadata(file).num_rows
    return rows


def keys(table: pa.Table) -> Iterator[tuple[str, int]]:
    """Yield the (question_id, sample_index) of each row."""
    for batch in table.select(KEY).to_batches(max_chunksize=ROWS_PER_SHARD):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


class Writer:
    """Append samples to one run. Made by ``open_writer``, which holds the lock.

    ``notes`` says in one line each what an earlier stop or damage had left, and what was done about
    it."""

    def __init__(self, run: Run, notes: list[str]) -> None:
        self.run = run
        self.folder = run.folder
        self.notes = notes
        self._path = run.folder / "journal"
        journal = read_journal(run)
        if journal.torn:
            os.truncate(self._path, self._path.stat().st_size - journal.torn)
            notes.append(
                f"cut off a torn tail of {journal.torn} bytes that an earlier stop had left"
            )
        if journal.damaged:
            notes.append(
                f"left out {journal.damaged} damaged lines of the journal; their rows are drawn "
                "again"
            )
        self._present = Present()
        doubled = False
        for path in self._sound_shards():
            for key in keys(_read_shard(path, KEY)):
                doubled |= not self._present.add(key)
        self._pending = [
            row
            for row in journal.rows
            if (row["question_id"], row["sample_index"]) not in self._present
        ]
        if doubled or len(self._pending) < len(journal.rows):
            read_samples(run)  # refuses where the two rows differ
        for row in self._pending:
            self._present.add((row["question_id"], row["sample_index"]))
        self._drop_stale_verdicts()
        mend_sessions(run, notes)
        files.record_digests(run.folder)
        self._journal = self._path.open("ab")

    @property
    def rows(self) -> int:
        """Return how many rows the run has."""
        return len(self._present)

    def missing(self, ks: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """Return, for each question that lacks any of its first k samples, the indices that it
        lacks.
        """
        there = self._present
        wanted = {
            name: tuple(i for i in range(k) if (name, i) not in there) for name, k in ks.items()
        }
        return {name: indices for name, indices in wanted.items() if indices}

    def append(self, samples: Iterable[Sample]) -> None:
        """Write rows to the journal, at once; a row that is there already is an error."""
        rows = [asdict(sample) for sample in samples]
        for row in rows:  # half a surrogate pair is not text, and no file would take it
            for name in ("response", "reasoning"):
                row[name] = row[name] and row[name].encode("utf-8", "replace").decode()
        with _uninterrupted(), plain_errors(self.folder):
            for row in rows:
                key = (row["question_id"], row["sample_index"])
                if not self._present.add(key):
                    raise ValueError(f"{self.folder}: sample {key[1]} of {key[0]} is there already")
            self._journal.write(b"".join(map(_journal_line, rows)))
            self._journal.flush()
            self._pending.extend(rows)
            if len(self._pending) >= ROWS_PER_SHARD or self._journal.tell() >= BYTES_PER_SHARD:
                self._seal()

    def adopt(self, rows: pd.DataFrame) -> int:
        """Write those rows of another copy of the run that this one lacks, all or none; return how
        many.
        """
        names = list(rows[KEY].itertuples(index=False, name=None))
        lacking = [key not in self._present for key in names]
        with _uninterrupted(), plain_errors(self.folder):
            if any(lacking):
                self._write_shard(
                    pa.Table.from_pandas(rows[lacking], schema=SCHEMA, preserve_index=False)
                )
            return sum(map(self._present.add, names))

    def close(self) -> None:
        """Seal what is pending and let go of the journal."""
        with _uninterrupted(), plain_errors(self.folder):
            try:
                self._seal()
            finally:
                self._journal.close()
            if self._path.stat().st_size == 0:
                self._path.unlink()

    def _seal(self) -> None:
        """Move the journal's rows into a new shard."""
        if self._pending:
            table = pa.Table.from_pylist(self._pending, schema=SCHEMA)
            self._write_shard(table.sort_by(ORDER))
        self._journal.truncate(0)
        self._pending = []

    def _write_shard(self, table: pa.Table) -> None:
        numbers = [
            int(match[1])
            for path in self.folder.iterdir()
            if (match := re.match(r"samples-(\d+)", path.name))
        ]
        files.write_table(
            self.folder / f"samples-{max(numbers, default=-1) + 1:05d}.parquet", table
        )

    def _sound_shards(self) -> Iterator[Path]:
        """List the shards; a damaged one is set aside."""
        sums = read_sums(self.folder)
        listed = {self.folder / name for name in sums if name.startswith("samples-")}
        for path in sorted(listed.union(_shards(self.run))):
            if not path.exists():
                remove_file(path)
                self.notes.append(f"{path.name} is gone; its rows are drawn again")
                continue
            path.open("rb").close()  # one that may not be read is not damaged
            try:  # a digest says as much as reading all of it
                _read_shard(path, KEY if path.name in sums else SCHEMA.names)
            except InputError:
                aside = path.with_name(f"{path.name}.damaged")
                remove_file(path, aside)
                self.notes.append(
                    f"{path.name} was damaged: set aside as {aside.name}; its rows are drawn again"
                )
                continue
            yield path

    def _drop_stale_verdicts(self) -> None:
        """Remove the verdict file where it knows rows that are lost: what is drawn in their place
        may differ.
        """
        path = self.run.path(VERDICTS)
        try:
            whole = not path.exists() or all(
                key in self._present for key in keys(read_table(path, KEY))
            )
        except (InputError, KeyError):
            whole = False
        if not whole:
            remove_file(path)
            self.notes.append(
                "removed the verdicts, which were damaged or of rows that are lost; grade again"
            )


@contextmanager
def open_writer(store: Path, record: Record) -> Iterator[Writer]:
    """Open a run for appending, making it if it is new; of one that another process holds, pid and
    host are told.
    """
    run = run_of(store, record.identity)
    with plain_errors(run.folder):
        run.folder.mkdir(parents=True, exist_ok=True)
        lock = (run.folder / "lock").open("a+", encoding="utf-8")
    with lock:
        with plain_errors(run.folder), hold(run.folder):
            _hold(lock, run)
            writer = Writer(run, _keep_record(run, record))
        try:
            yield writer
        finally:
            writer.close()


@contextmanager
def no_writer(run: Run) -> Iterator[None]:
    """Let nobody draw samples of a run meanwhile; one that cannot be locked, as on a read-only
    disk, is left so.
    """
    try:
        lock = (run.folder / "lock").open(encoding="utf-8")
    except OSError:
        yield
        return
    with lock:
        _hold(lock, run, fcntl.LOCK_SH)
        yield


def writer_at_work(run: Run) -> str | None:
    """Return who is writing a run, ``pid ... on ...``, or None."""
    with (
        suppress(OSError),
        (run.folder / "lock").open(encoding="utf-8") as lock,
    ):  # no lock, or none that can be read
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return lock.read().strip() or "another process"
    return None


def _keep_record(run: Run, record: Record) -> list[str]:
    """Write ``run.json`` where there is none or a damaged one: the folder's name says what must
    stand in it.
    """
    notes = []
    try:
        read_sums(run.folder)
    except InputError:
        (run.folder / SUMS).unlink()
        notes.append(f"{SUMS} was damaged: written anew")
    try:
        _ = run.record
    except InputError:
        if (path := run.folder / "run.json").exists():
            notes.append("run.json was damaged: written anew")
        files.write_file(
            path, lambda file: file.write(record.model_dump_json(indent=2).encode() + b"\n")
        )
    return notes


def _hold(lock: IO[str], run: Run, how: int = fcntl.LOCK_EX) -> None:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "another process"
        raise InputError(
            f"{run} is being written by {holder}; wait for it, or use another --store"
        ) from None
    if how == fcntl.LOCK_EX:
        lock.truncate(0)
        os.write(
            lock.fileno(), f"pid {os.getpid()} on {socket.gethostname()}".encode()
        )  # nothing is left to close


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put off a Ctrl-C until a step that must be whole is done."""
    before = signal.getsignal(signal.SIGINT)
    pressed = list[object]()
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, lambda *signals: pressed.extend(signals))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            signal.raise_signal(signal.SIGINT)


def _shards(run: Run) -> list[Path]:
    return sorted(run.folder.glob("samples-*.parquet"))


def _tables(run: Run, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Read the files of a run; a row that is in two of them comes twice."""
    names = [name for name in SCHEMA.names if name in {*KEY, *columns}]
    # The journal first: a writer may move its rows to a shard meanwhile, and twice is better than
    # never.
    yield pa.Table.from_pylist(read_journal(run).rows, schema=SCHEMA).select(names)
    yield from (_read_shard(path, names) for path in _shards(run))


def _read_shard(path: Path, names: Sequence[str]) -> pa.Table:
    table = read_table(path, names)
    if not table.schema.equals(
        pa.schema([SCHEMA.field(name) for name in names]), check_metadata=False
    ):
        raise InputError(
            f"{path}: not a shard of samples; its columns are {', '.join(table.column_names)}"
        )
    for name in names:
        within = pc.min_max(table[name]).as_py() if name in MOST else None
        if len(table) and within and not _in_range(name, within["min"], within["max"]):
            raise InputError(
                f"{path}: {name} from {within['min']} to {within['max']}, which must lie in 0 to "
                f"{MOST[name]}; delete the file, and draw its rows again with: capcal sample"
            )
        if name in KEY and table[name].null_count:
            raise InputError(f"{path}: rows without a {name}; delete the file, and draw them again")
    return table.replace_schema_metadata()


def _in_range(name: str, *values: object) -> bool:
    """Tell whether what stands in a column of whole numbers can stand there."""
    return all(type(value) is int and 0 <= value <= MOST[name] for value in values)


def _journal_line(row: dict[str, object]) -> bytes:
    content = json.dumps(row, ensure_ascii=True, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(content), content)


class Journal(NamedTuple):
    """What can be read of a journal."""

    rows: list[dict[str, Any]]
    damaged: int  # lines that are not what their checksum says, or no sample
    torn: int  # bytes of a last line that was not written to its end


def read_journal(run: Run) -> Journal:
    """Read the rows of a run that are in no shard yet."""
    rows: list[dict[str, Any]] = []
    damaged = torn = 0
    with suppress(FileNotFoundError), (run.folder / "journal").open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                torn = len(line)
            elif row := _sample_in(line):
                rows.append(row)
            else:
                damaged += 1
    return Journal(rows, damaged, torn)


def _sample_in(line: bytes) -> dict[str, Any] | None:
    """Read a line of a journal; None where it is damaged, or holds what no sample has."""
    checksum, _, content = line.rstrip(b"\n").partition(b" ")
    if checksum != b"%08x" % zlib.crc32(content):
        return None
    try:
        row = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or list(row) != SCHEMA.names:
        return None
    for field in SCHEMA:
        value = row[field.name]
        if field.name in MOST:
            sound = _in_range(field.name, value)
        else:
            sound = isinstance(value, str) or (value is None and field.name != "question_id")
        if not sound:
            return None
    return row
