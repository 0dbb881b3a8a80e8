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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from capcal_lib.errors import InputError
from capcal_lib.runs import files
from capcal_lib.runs.artifacts import VERDICTS
from capcal_lib.runs.files import hold, plain_errors
from capcal_lib.runs.run import Record, Run, run_of
from capcal_lib.runs.samples import Sample

ROWS = 50_000  # of a part, at most
SIZE = 1 << 28  # characters of pending rows, at most
SECONDS = 5.0  # until rows are written, whatever their number
SMALL_PARTS = 64  # are joined while the run is still being written
LOCK = "lock"
MOST_SAMPLES = 1 << 20  # of a question; a larger index is damage, or somebody's mischief
KEY = ["question_id", "sample_index"]
ORDER = [(name, "ascending") for name in KEY]
SCHEMA = pa.schema(
    [(field.name, pa.int32() if field.type is int else pa.string()) for field in fields(Sample)]
)
Present = dict[str, int]  # of each question a number whose bit i tells whether sample i is there


def read_samples(run: Run, columns: Sequence[str] = SCHEMA.names) -> pd.DataFrame:
    """Read all rows of a run, sorted by (question_id, sample_index), each once: its key and the
    named columns.
    """
    return gather_samples(run, lambda rows: rows, columns).sort_values(KEY, ignore_index=True)


def stream_samples(run: Run, columns: Sequence[str] = SCHEMA.names) -> Iterator[pd.DataFrame]:
    """Yield the rows that ``read_samples`` reads as they were written, some 65,000 of them at a
    time.
    """
    present = Present()
    names = [name for name in SCHEMA.names if name in {*KEY, *columns}]
    for table in _tables(run, names):
        new = add_keys(present, table)
        if not all(new):
            _refuse_differing(run)
            table = table.filter(pa.array(new, pa.bool_()))
        if len(table):
            yield table.to_pandas()


def gather_samples(
    run: Run,
    make: Callable[[pd.DataFrame], pd.DataFrame],
    columns: Sequence[str] = SCHEMA.names,
) -> pd.DataFrame:
    """Make something small of the rows of each batch, and put it together.

    Of a run without rows it is what is made of a table without rows."""
    made = [make(rows) for rows in stream_samples(run, columns)]
    if made:
        return pd.concat(made, ignore_index=True)
    names = [name for name in SCHEMA.names if name in {*KEY, *columns}]
    return make(SCHEMA.empty_table().select(names).to_pandas())


def add_keys(present: Present, table: pa.Table) -> list[bool]:
    """Note the samples of a table; return of each row whether it is new."""
    new = []
    for name, index in zip(*(table[column].to_pylist() for column in KEY), strict=True):
        before = present.get(name, 0)
        new.append(not before >> index & 1)
        present[name] = before | 1 << index
    return new


def row_digests(rows: pd.DataFrame) -> "pd.Series[int]":
    """Return 64 bits for each row that follow from its key and its response."""
    return pd.util.hash_pandas_object(rows[[*KEY, "response"]], index=False, categorize=False)


def digest_of_graded(run: Run, verdicts: Iterable[pa.Table]) -> str:
    """Return the digest of those samples of a run that have these verdicts, in whatever order they
    were written.
    """
    graded = Present()
    for table in verdicts:
        add_keys(graded, table)
    total = 0
    for samples in stream_samples(run, ["response"]):
        keys = zip(samples["question_id"], samples["sample_index"], strict=True)
        there = [bool(graded.get(name, 0) >> index & 1) for name, index in keys]
        total += int(row_digests(samples[there]).sum())
    return f"{total % 2**64:016x}"


def digest_of_rows(digests: "pd.Series[int]") -> str:
    """Return the digest of samples by the digests of each."""
    return f"{int(digests.sum()) % 2**64:016x}"


def problems_of(run: Run) -> tuple[str, ...]:
    """Name what of a run is damaged, as far as its record and the names of its files tell."""
    problems = []
    try:
        _ = run.record
        problems += [f"{path.name} is not as its name says" for path in parts_of(run, sound=False)]
    except InputError as error:
        problems.append(str(error))
    problems += [f"{path.name} was set aside" for path in run.folder.glob("*.damaged")]
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


def parts_of(run: Run, *, sound: bool | None = None) -> list[Path]:
    """List the parts of a run; those whose bytes are as their names say, or are not."""
    parts = sorted(run.folder.glob("samples-*.parquet"))
    if sound is None:
        return parts
    return [part for part in parts if _is_sound(part) is sound]


def is_being_written(run: Run) -> bool:
    """Tell whether another process holds a run, as far as its lock may be touched."""
    if files.size_of(run.folder / LOCK) is None:
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
        self._size = self._small = 0
        self._written = time.monotonic()
        for path in parts_of(run, sound=False):
            aside = path.with_name(f"{path.name}.damaged")
            path.rename(aside)
            notes.append(
                f"{path.name} was damaged: set aside as {aside.name}; its rows are drawn again"
            )
        for table in _tables(run, KEY):
            if not all(add_keys(self.present, table)):
                _refuse_differing(run)
        self._drop_stale_verdicts()

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
                self._size += len(row[name] or "")
            before = self.present.get(sample.question_id, 0)
            if before >> sample.sample_index & 1:
                raise ValueError(
                    f"{self.folder}: sample {sample.sample_index} of {sample.question_id} is there "
                    "already"
                )
            self.present[sample.question_id] = before | 1 << sample.sample_index
            self._pending.append(row)
        waited = time.monotonic() - self._written
        if len(self._pending) >= ROWS or self._size >= SIZE or waited >= SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the rows that are pending."""
        if self._pending:
            self.add_part(pa.Table.from_pylist(self._pending, schema=SCHEMA))
            self._small += len(self._pending) < ROWS // 2
        self._pending, self._size = [], 0
        if self._small >= SMALL_PARTS:
            self._join()
        self._written = time.monotonic()

    def adopt(self, rows: pd.DataFrame) -> int:
        """Write those rows of another copy of the run that this one lacks, all or none; return how
        many.
        """
        table = pa.Table.from_pandas(rows, schema=SCHEMA, preserve_index=False)
        lacking = add_keys(self.present, table)
        if any(lacking):
            self.add_part(table.filter(pa.array(lacking, pa.bool_())))
        return sum(lacking)

    def close(self) -> None:
        """Write what is pending, and join small parts."""
        self.flush()
        self._join()

    def add_part(self, table: pa.Table) -> Path:
        """Write rows as a part."""
        return files.write_table(self.folder / "samples-*.parquet", table.sort_by(ORDER))

    def _join(self) -> None:
        """Join small parts to such of at most ``ROWS`` rows."""
        small = []
        for path in parts_of(self.run):
            with files.open_parquet(path) as part:
                if part.metadata.num_rows < ROWS // 2 and path.stat().st_size < SIZE // 8:
                    small.append((path, part.metadata.num_rows))
        while len(small) > 1:
            group, rows = [], 0
            while small and rows + small[0][1] <= ROWS:
                path, number = small.pop(0)
                group.append(path)
                rows += number
            if len(group) > 1:
                tables = [files.read_table(path) for path in group]
                whole = pa.concat_tables(table.replace_schema_metadata() for table in tables)
                made = self.add_part(_once(self.run, whole))
                for path in group:
                    if path != made:
                        path.unlink()
        self._small = 0

    def _drop_stale_verdicts(self) -> None:
        """Remove the verdict file where it knows rows that are lost: what is drawn in their place
        may differ.
        """
        path = self.run.path(VERDICTS)
        if not self.run.has(VERDICTS):
            return
        try:
            for table in files.read_batches(path, KEY):
                known = Present()
                add_keys(known, table)
                if any(bits & ~self.present.get(name, 0) for name, bits in known.items()):
                    break
            else:
                return
        except (InputError, KeyError, TypeError):
            pass
        path.unlink()
        self.notes.append(
            "removed the verdicts, which were damaged or of rows that are lost; grade again"
        )


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
    there = files.size_of(path) is not None
    try:
        _ = run.record
    except InputError:
        text = record.model_dump_json(indent=2).encode() + b"\n"
        files.write_file(path, lambda file: file.write(text))
        return ["run.json was damaged: written anew"] * there
    return []


def _tables(run: Run, names: Sequence[str]) -> Iterator[pa.Table]:
    """Read the parts of a run; a row that is in two of them comes twice."""
    done = set[Path]()
    while new := [path for path in parts_of(run) if path not in done]:
        for path in new:  # one that was joined with others meanwhile is read in its new place
            done.add(path)
            if files.size_of(path) is not None:
                yield from part_tables(path, names)


def part_tables(path: Path, names: Sequence[str]) -> Iterator[pa.Table]:
    """Read a part by and by; a damaged one is an InputError."""
    if not _is_sound(path):
        raise InputError(
            f"{path}: corrupt, since its bytes are not those that its name says; delete it, and "
            "draw its rows again with: capcal sample"
        )
    for table in files.read_batches(path, names):
        yield _checked(path, table, names)


def _is_sound(part: Path) -> bool:
    if files.size_of(part) is None:
        return False
    if re.fullmatch(r"samples-\d{5}\.parquet", part.name):  # of a run of an earlier version
        try:
            return all(files.read_batches(part, SCHEMA.names))
        except InputError:
            return False
    return part.name == part_name(part)


def part_name(part: Path) -> str:
    """Return what a part is called by the digest of its bytes."""
    return f"samples-{files.file_digest(part)}.parquet"


def _checked(path: Path, table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Refuse a table that cannot be that of samples."""
    table = table.replace_schema_metadata()
    table = table.select([name for name in names if name in table.column_names])
    if not table.schema.equals(pa.schema([SCHEMA.field(name) for name in names])):
        raise InputError(
            f"{path}: not a part with samples; its columns are {', '.join(table.column_names)}"
        )
    for name in names:
        numbers = pa.types.is_integer(table.schema.field(name).type)
        most = MOST_SAMPLES - 1 if name == "sample_index" else (1 << 31) - 1
        least, largest = pc.min_max(table[name]).as_py().values() if numbers else (0, 0)
        if table[name].null_count and (name in KEY or numbers):
            raise InputError(f"{path}: rows without a {name}; delete it, and draw them again")
        if len(table) and not 0 <= least <= largest <= most:
            raise InputError(
                f"{path}: {name} from {least} to {largest}, which must lie in 0 to {most}; delete "
                "the file, and draw its rows again with: capcal sample"
            )
    return table


def _once(run: Run, table: pa.Table) -> pa.Table:
    """Leave out rows that are there twice; refuse two that differ."""
    rows = table.to_pandas().drop_duplicates()
    _refuse_twice(run, rows)
    return pa.Table.from_pandas(rows, schema=SCHEMA, preserve_index=False)


def _refuse_differing(run: Run) -> None:
    """Refuse two different rows under one key, wherever they stand."""
    digests = []
    for table in _tables(run, SCHEMA.names):
        rows = table.to_pandas()
        digest = pd.util.hash_pandas_object(rows, index=False, categorize=False)
        digests.append(rows[KEY].assign(digest=digest))
    _refuse_twice(run, pd.concat(digests).drop_duplicates())


def _refuse_twice(run: Run, rows: pd.DataFrame) -> None:
    for question, index in rows.loc[rows.duplicated(KEY), KEY].itertuples(index=False):
        raise InputError(
            f"{run}: two different rows for sample {index} of {question}; the run is corrupt"
        )
