"""The run store: rows that are only added, one for each (question_id, sample_index).

A run is a folder, ``<store>/<model>/<dataset>-<split>/<key>``, named by a digest of all that
decides its rows. In it:

``run.json``                  the identity behind the key, and how the run was made
``samples-<SHA-256>.parquet`` parts, named by the digest of their bytes and never changed
``sessions.jsonl``            what each sitting of drawing asked for and took
``lock``                      held by who is drawing

A part is there whole or not at all, and one that was damaged is not what its name says; the next
writer sets it aside as ``*.damaged``, and its rows are drawn again. A kill loses the rows since the
last part, a few seconds; the same seeds draw them again. Small parts are joined; a kill meanwhile
leaves rows in two parts, which readers take once. All functions raise ``InputError`` for a run that
is corrupt."""

import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.runs import files
from capcal_lib.runs.artifacts import VERDICTS
from capcal_lib.runs.files import hold, plain_errors
from capcal_lib.runs.run import Record, Run, run_of
from capcal_lib.runs.samples import Sample

ROWS = 50_000  # of a part, at most
SMALL = 1 << 25  # bytes of a part that is joined with others, at most
SECONDS = 5.0  # until rows are written, whatever their number
SMALL_PARTS = 64  # are joined while the run is still being written
LOCK = "lock"
MOST_SAMPLES = 1 << 20  # of a question; a larger index is damage, or somebody's mischief
KEY = ["question_id", "sample_index"]
WORDS = ("question_id", "response", "finish_reason")  # stand in every row
ORDER = [(name, "ascending") for name in KEY]
SCHEMA = pa.schema(
    [(field.name, pa.int32() if field.type is int else pa.string()) for field in fields(Sample)]
)
Present = dict[str, int]  # of each question a number whose bit i tells whether sample i is there


def read_samples(run: Run, columns: Sequence[str] = SCHEMA.names) -> pd.DataFrame:
    """Read all rows of a run, sorted by (question_id, sample_index), each once: its key and the
    named columns.
    """
    return pd.concat(stream_samples(run, columns)).sort_values(KEY, ignore_index=True)


def stream_samples(run: Run, columns: Sequence[str] = SCHEMA.names) -> Iterator[pd.DataFrame]:
    """Yield the rows that ``read_samples`` reads as they were written, some 65,000 of them at a
    time; of a run without rows one table without rows.
    """
    present = Present()
    names = [name for name in SCHEMA.names if name in {*KEY, *columns}]
    for rows in _all_rows(run, names):
        new = add_keys(present, rows)
        if not all(new):
            refuse_differing([run])
            rows = rows[new]
        yield rows
    if not present:
        yield SCHEMA.empty_table().select(names).to_pandas()


def add_keys(present: Present, rows: pd.DataFrame) -> list[bool]:
    """Note the samples of a table; return of each row whether it is new."""
    new = []
    for name, index in zip(*(rows[column].tolist() for column in KEY), strict=True):
        before = present.get(name, 0)
        new.append(not before >> index & 1)
        present[name] = before | 1 << index
    return new


def row_digests(rows: pd.DataFrame) -> "pd.Series[int]":
    """Return 64 bits for each row that follow from its key and its response."""
    return hash_rows(rows[[*KEY, "response"]])


def digest_of_graded(run: Run, verdicts: Iterable[pd.DataFrame]) -> str:
    """Return the digest of those samples of a run that have these verdicts, in whatever order they
    were written.
    """
    graded = Present()
    for rows in verdicts:
        add_keys(graded, rows)
    total = 0
    for rows in stream_samples(run, ["response"]):
        keys = zip(rows["question_id"], rows["sample_index"], strict=True)
        scored = [bool(graded.get(name, 0) >> index & 1) for name, index in keys]
        total += int(row_digests(rows[scored]).sum())
    return f"{total % 2**64:016x}"


def refuse_differing(copies: Sequence[Run]) -> None:
    """Refuse two different rows under one key, wherever they stand in copies of a run; 64 bits of
    each are compared.
    """
    digests = [
        np.column_stack([hash_rows(rows[KEY]), hash_rows(rows)])
        for run in copies
        for part in parts_of(run)
        for rows in part_rows(part)
    ]
    if digests:
        keys, rows = (len(np.unique(column)) for column in np.concatenate(digests).T)
        if keys < rows:
            raise InputError(
                f"{rows - keys} samples are two different rows in {', '.join(map(str, copies))}; "
                "nothing was written: keep one of them"
            )


def hash_rows(rows: pd.DataFrame) -> "pd.Series[int]":
    """Return 64 bits for each row that follow from what it holds."""
    return pd.util.hash_pandas_object(rows, index=False, categorize=False)


def problems_of(run: Run) -> tuple[str, ...]:
    """Name what of a run is damaged, as far as its record and the bytes of its parts tell."""
    problems = [f"{path.name} was set aside" for path in run.folder.glob("*.damaged")]
    try:
        _ = run.record
        for part in parts_of(run):
            check_part(part)
    except InputError as error:
        problems.append(str(error))
    return tuple(f"{problem}; see: capcal verify" for problem in problems)


def remove_run(run: Run) -> None:
    """Remove a run with all that was made from it; one that is being written is refused.

    It is out of the store at once, or not at all: a stop leaves a folder that is no run."""
    with hold(run.folder, LOCK), plain_errors(run.folder):
        aside = run.folder.with_name(f".{run.folder.name}.{secrets.token_hex(4)}.tmp")
        run.folder.rename(aside)
        for rest in run.folder.parent.glob(f".{run.folder.name}.*.tmp"):
            shutil.rmtree(rest)
    for parent in (run.folder.parent, run.folder.parent.parent):
        with suppress(OSError):  # which holds other runs
            parent.rmdir()


def parts_of(run: Run) -> list[Path]:
    """List the parts of a run."""
    return sorted(run.folder.glob("samples-*.parquet"))


def is_being_written(run: Run) -> bool:
    """Tell whether another process holds a run, as far as its lock may be touched."""
    if not files.exists(run.folder / LOCK):
        return False
    try:
        with hold(run.folder, LOCK):
            return False
    except InputError as error:
        return "is being written" in str(error)


class Writer:
    """Append samples to one run. Made by ``open_writer``, which holds the lock.

    ``notes`` says in one line each what damage was found, and what was done about it."""

    def __init__(self, run: Run, notes: list[str]) -> None:
        self.run = run
        self.folder = run.folder
        self.notes = notes
        self.present = Present()
        self._pending: list[dict[str, object]] = []
        self._flushed = 0
        self._written = time.monotonic()
        for path in parts_of(run):
            try:
                check_part(path)
            except InputError:
                self._set_aside(path)
        for rows in _all_rows(run, KEY):
            if not all(add_keys(self.present, rows)):
                refuse_differing([run])

    def _set_aside(self, path: Path) -> None:
        """Take a damaged part out of the run; its verdicts go too, since what is drawn in place of
        its rows may differ.
        """
        aside = path.with_name(f"{path.name}.damaged")
        path.rename(aside)
        self.run.path(VERDICTS).unlink(missing_ok=True)
        self.notes.append(
            f"{path.name} was damaged: set aside as {aside.name}; its rows are drawn again, then "
            "grade again"
        )

    @property
    def rows(self) -> int:
        """Return how many rows the run has."""
        return sum(bits.bit_count() for bits in self.present.values())

    def missing(self, ks: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """Return, for each question that lacks any of its first k samples, the indices that it
        lacks.
        """
        wanted = {
            name: tuple(i for i in range(k) if not self.present.get(name, 0) >> i & 1)
            for name, k in ks.items()
        }
        return {name: indices for name, indices in wanted.items() if indices}

    def append(self, samples: Iterable[Sample]) -> None:
        """Add rows, which are written within seconds; a row that is there already is an error."""
        for sample in samples:
            row = asdict(sample)
            for name in ("response", "reasoning"):  # half a surrogate pair is not text
                row[name] = row[name] and row[name].encode("utf-8", "replace").decode()
            before = self.present.get(sample.question_id, 0)
            if before >> sample.sample_index & 1:
                raise ValueError(
                    f"{self.folder}: sample {sample.sample_index} of {sample.question_id} is there "
                    "already"
                )
            self.present[sample.question_id] = before | 1 << sample.sample_index
            self._pending.append(row)
        if len(self._pending) >= ROWS or time.monotonic() - self._written >= SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the rows that are pending."""
        if self._pending:
            self.add_part(pd.DataFrame(self._pending))
            self._pending = []
            self._flushed += 1
            if self._flushed % SMALL_PARTS == 0:
                self._join()
        self._written = time.monotonic()

    def adopt(self, rows: pd.DataFrame) -> int:
        """Write those rows of another copy of the run that this one lacks, all or none; return how
        many.
        """
        new = rows[add_keys(self.present, rows)]
        if len(new):
            self.add_part(new)
        return len(new)

    def close(self) -> None:
        """Write what is pending, and join small parts."""
        self.flush()
        self._join()

    def add_part(self, rows: pd.DataFrame) -> Path:
        """Write rows as a part."""
        table = pa.Table.from_pandas(rows, schema=SCHEMA, preserve_index=False)
        return files.write_table(self.folder / "samples-*.parquet", table.sort_by(ORDER))

    def _join(self) -> None:
        """Join small parts to such of some ``ROWS`` rows."""
        groups: dict[int, list[Path]] = {}
        total = 0
        for path in parts_of(self.run):
            with files.open_parquet(path) as part:
                rows = part.metadata.num_rows
            if rows < ROWS // 2 and path.stat().st_size < SMALL:
                groups.setdefault(total // ROWS, []).append(path)
                total += rows
        for group in groups.values():
            if len(group) > 1:
                whole = pd.concat(rows for path in group for rows in part_rows(path))
                made = self.add_part(whole.drop_duplicates(KEY))
                for path in group:
                    if path != made:
                        path.unlink()


@contextmanager
def open_writer(store: Path, record: Record) -> Iterator[Writer]:
    """Open a run for appending, making it if it is new; one that another process writes is
    refused.
    """
    run = run_of(store, record.identity)
    with plain_errors(run.folder):
        run.folder.mkdir(parents=True, exist_ok=True)
    with hold(run.folder, LOCK):
        with plain_errors(run.folder):
            for path in run.folder.iterdir():
                files.exists(path)
            for rest in (*run.folder.glob(".samples-*.tmp"), *run.folder.glob(".run.json.*.tmp")):
                rest.unlink()
            writer = Writer(run, _keep_record(run, record))
        try:
            yield writer
        finally:
            with plain_errors(run.folder):
                writer.close()


def _keep_record(run: Run, record: Record) -> list[str]:
    """Write ``run.json`` where there is none or a damaged one: the folder's name says what must
    stand in it.
    """
    path = run.folder / "run.json"
    damaged = files.exists(path)
    try:
        _ = run.record
    except InputError:
        text = record.model_dump_json(indent=2).encode() + b"\n"
        files.write_file(path, lambda file: file.write(text))
        return ["run.json was damaged: written anew"] * damaged
    return []


def _all_rows(run: Run, names: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Read the parts of a run; a row that is in two of them comes twice."""
    done = set[Path]()
    while new := [path for path in parts_of(run) if path not in done]:
        for path in new:  # one that was joined with others meanwhile is read in its new place
            done.add(path)
            if files.exists(path):
                yield from part_rows(path, names)


def part_rows(path: Path, names: Sequence[str] = SCHEMA.names) -> Iterator[pd.DataFrame]:
    """Read columns of a part, the key among them, so many rows at a time; a damaged one is an
    InputError.
    """
    check_part(path)
    refusal = InputError(
        f"{path}: not a part with samples; delete it, and draw its rows again with: capcal sample"
    )
    with files.open_parquet(path) as file:
        if not file.schema_arrow.remove_metadata().equals(SCHEMA):
            raise refusal
        for rows in files.iterate(file, names):
            numbers = rows.select_dtypes("number")  # NaN where one is lacking
            words = rows[[name for name in rows if name in WORDS]]
            sound = (numbers >= 0).all(axis=None) and words.notna().all(axis=None)
            if not sound or (rows["sample_index"] >= MOST_SAMPLES).any():
                raise refusal
            yield rows


def check_part(path: Path) -> None:
    """Refuse a part whose bytes are not those that its name says, or cannot be read."""
    if re.fullmatch(r"samples-\d{5}\.parquet", path.name):  # of a run of an earlier version
        files.read_table(path)
    elif path.name != part_name(path):
        raise InputError(
            f"{path}: corrupt, since its bytes are not those that its name says; its rows are "
            "drawn again by: capcal sample"
        )


def part_name(path: Path) -> str:
    """Return what a part is called by the digest of its bytes."""
    files.exists(path)
    with files.readable(path):
        return f"samples-{files.file_digest(path)}.parquet"
