"""The run store: rows that are only added, one for each (question_id, sample_index).

A run is a folder, ``<store>/<model>/<dataset>-<split>/<key>``, named by a digest of all that
decides its rows. In it:

``run.json``                  the identity behind the key, and how the run was made
``samples-<SHA-256>.parquet`` parts, named by the digest of their bytes and never changed
``sessions.jsonl``            what each sitting of drawing asked for and took
``lock``                      held by who is drawing
``files.lock``                held by who writes a file

A part exists whole or not at all. A damaged part no longer matches its name; the next writer sets
it aside as ``*.damaged``, and its rows are drawn again. A kill loses the rows since the last part,
a few seconds of work, and the same seeds draw them again. Small parts are joined; a kill during
this leaves rows in two parts, and readers take each row once. All functions raise ``InputError``
for a corrupt run."""

import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from capcal_lib.errors import DiskError, InputError
from capcal_lib.runs import files
from capcal_lib.runs.artifacts import MOST_SAMPLES, VERDICTS
from capcal_lib.runs.files import hold, plain_errors
from capcal_lib.runs.run import PARTS, RECORD, Record, Run, run_of

ROWS = 50_000  # of a part, at most
MOST_PART_ROWS = 1 << 17  # of one of an earlier version
BITS = 256  # of samples of a question that are noted together
LOCK = "lock"
KEY = ["question_id", "sample_index"]
ORDER = [(name, "ascending") for name in KEY]
FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One drawn answer, identified by (question_id, sample_index) within its run."""

    question_id: str
    sample_index: int
    response: str
    reasoning: str | None  # kept apart from the answer and never graded
    finish_reason: FinishReason
    prompt_tokens: int  # 0 where a log or a server does not say
    completion_tokens: int  # every generated token, the end-of-turn token included; likewise


SCHEMA = pa.schema(
    [(field.name, pa.int32() if field.type is int else pa.string()) for field in fields(Sample)]
)


class Present(Set[tuple[str, int]]):
    """The keys of the samples that are there: a bit each, and an entry for each question and
    ``BITS`` samples of it, however far apart they lie.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, int]] = {}
        self._size = 0

    def __contains__(self, key: Any) -> bool:
        name, index = key
        block, place = divmod(index, BITS)
        return bool(self._blocks.get(block, {}).get(name, 0) >> place & 1)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        for block, questions in self._blocks.items():
            for name, bits in questions.items():
                while bits:
                    last = bits & -bits
                    yield name, block * BITS + last.bit_length() - 1
                    bits ^= last

    def __len__(self) -> int:
        return self._size

    @property
    def questions(self) -> set[str]:
        """Return the questions that have samples."""
        return set().union(*self._blocks.values())

    def add(self, name: str, index: int) -> bool:
        """Note a sample; return whether it is new."""
        block, place = divmod(index, BITS)
        questions = self._blocks.setdefault(block, {})
        bits = questions.get(name, 0)
        new = not bits >> place & 1
        if new:
            questions[name] = bits | 1 << place
            self._size += 1
        return new


def read_samples(run: Run, columns: Sequence[str] = SCHEMA.names) -> pd.DataFrame:
    """Read the key and the named columns of all rows of a run, sorted by (question_id,
    sample_index), each row once.
    """
    return pd.concat(stream_samples(run, columns)).sort_values(KEY, ignore_index=True)


def stream_samples(run: Run, columns: Sequence[str] = SCHEMA.names) -> Iterator[pd.DataFrame]:
    """Yield the rows of ``read_samples`` in the order in which they were written, about 65,000 at a
    time, after a first table without rows.
    """
    present = Present()
    names = [name for name in SCHEMA.names if name in {*KEY, *columns}]
    yield SCHEMA.empty_table().select(names).to_pandas()
    done = set[Path]()
    while new := [path for path in parts_of(run) if path not in done]:
        for path in new:
            done.add(path)
            if not files.exists(path):  # joined with others meanwhile, and read in its new place
                continue
            for rows in part_rows(path, names):
                first = add_keys(present, rows)
                if not all(first):
                    refuse_differing([run])
                yield rows.loc[first]


def keys_of(rows: pd.DataFrame) -> Iterator[tuple[str, int]]:
    """Yield the key of each row of a table."""
    return rows[KEY].itertuples(index=False, name=None)


def add_keys(present: Present, rows: pd.DataFrame) -> list[bool]:
    """Add the samples of a table; return for each row whether it is new."""
    return [present.add(*key) for key in keys_of(rows)]


def count_samples(run: Run) -> int:
    """Count the rows of the parts of a run, as their footers say; while parts are being joined a
    sample may stand in two of them.
    """
    return sum(map(files.count_rows, parts_of(run)))


def present_of(tables: Iterable[pd.DataFrame]) -> Present:
    """Note the samples of tables."""
    present = Present()
    for rows in tables:
        add_keys(present, rows)
    return present


def find_keys(present: Present, rows: pd.DataFrame) -> list[bool]:
    """Return for each row of a table whether its sample is present."""
    return [key in present for key in keys_of(rows)]


def digest_of_graded(run: Run, graded: Present) -> str:
    """Return the digest of a run's graded samples, from their keys and responses; it does not
    depend on their order.
    """
    samples = (rows.loc[find_keys(graded, rows)] for rows in stream_samples(run, ["response"]))
    total = sum(int(hash_rows(rows).sum()) for rows in samples)
    return f"{total % 2**64:016x}"


def refuse_differing(copies: Sequence[Run]) -> None:
    """Refuse two different rows under one key in any copies of a run; 64 bits of the rows are
    compared.
    """
    parts = [part for run in copies for part in parts_of(run)]
    samples = len(present_of(rows for part in parts for rows in part_rows(part, KEY)))
    if samples < sum(map(files.count_rows, parts)):
        digests = [hash_rows(rows) for part in parts for rows in part_rows(part)]
        if differing := len(np.unique(np.concatenate(digests))) - samples:
            raise InputError(
                f"{differing} samples have two different rows in {', '.join(map(str, copies))}; "
                "nothing was written. Keep only one of them"
            )


def hash_rows(rows: pd.DataFrame) -> "pd.Series[int]":
    """Return 64 bits for each row that follow from what it holds."""
    return pd.util.hash_pandas_object(rows, index=False, categorize=False)


def damaged_files(run: Run) -> Iterator[tuple[Path, str]]:
    """Yield the damaged files of a run and what is wrong with them, judged from its record and the
    bytes of its parts. `DiskError` if one cannot be read, for it may be intact.
    """
    for path in (run.folder / RECORD, *parts_of(run)):
        try:
            if path.name == RECORD:
                run.check()
            else:
                check_part(path)
        except DiskError:
            raise
        except InputError as error:
            yield path, str(error)


def remove_run(run: Run) -> None:
    """Remove a run with everything made from it; `InputError` if it is being written.

    Its record is removed last, after the locks: an interruption leaves a run without some samples,
    which the same call removes."""
    with hold(run.folder, LOCK), hold(run.folder), plain_errors(run.folder):
        for path in run.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name not in (RECORD, LOCK, files.FILES_LOCK):
                path.unlink()
        for name in (LOCK, files.FILES_LOCK, RECORD):
            (run.folder / name).unlink(missing_ok=True)
        run.folder.rmdir()


def parts_of(run: Run) -> list[Path]:
    """List the parts of a run."""
    return files.list_files(run.folder, PARTS)


@dataclass
class Writer:
    """Append samples to one run. Made by ``open_writer``, which holds the lock."""

    run: Run
    notes: list[str]  # a line each, what damage was found, and what was done about it
    present: Present

    def missing(self, ks: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """Return, for each question that lacks any of its first k samples, the indices that it
        lacks.
        """
        wanted = {
            name: tuple(i for i in range(k) if (name, i) not in self.present)
            for name, k in ks.items()
        }
        return {name: indices for name, indices in wanted.items() if indices}

    def append(self, samples: Sequence[Sample]) -> int:
        """Write those samples that the run lacks; return how many."""
        rows = pd.DataFrame(samples, columns=SCHEMA.names, dtype=object)
        for name in ("response", "reasoning"):  # half a surrogate pair is not text
            rows[name] = rows[name].str.encode("utf-8", "replace").str.decode("utf-8")
        return self.adopt(rows)

    def adopt(self, rows: pd.DataFrame) -> int:
        """Write those rows that the run lacks; return how many."""
        new = rows.loc[add_keys(self.present, rows)]
        for start in range(0, len(new), ROWS):
            self.add_part(new[start : start + ROWS])
        return len(new)

    def add_part(self, rows: pd.DataFrame) -> Path:
        """Write rows as a part."""
        table = pa.Table.from_pandas(rows, schema=SCHEMA, preserve_index=False).sort_by(ORDER)
        return files.write_table(self.run.folder / PARTS, table.replace_schema_metadata())

    def join_parts(self) -> None:
        """Join small parts to such of some ``ROWS`` rows."""
        rows = pd.Series({path: files.count_rows(path) for path in parts_of(self.run)}, dtype=int)
        small = rows[rows < ROWS // 2]
        for _, group in small.groupby(small.cumsum() // ROWS):
            if len(group) > 1:
                whole = pd.concat(rows for path in group.index for rows in part_rows(path))
                made = self.add_part(whole.drop_duplicates(KEY))
                for path in {*group.index} - {made}:
                    path.unlink()


@contextmanager
def open_writer(store: Path, record: Record) -> Iterator[Writer]:
    """Open a run for appending, and make it if it is new; `InputError` if another process writes
    it.

    Files left by a killed writer are removed, and damaged files are set aside. A damaged record is
    written again, since the folder's name fixes its content. Then the verdicts are removed, since
    rows drawn in place of lost ones may differ."""
    run = run_of(store, record.identity)
    with hold(run.folder, LOCK):
        with hold(run.folder), plain_errors(run.folder):
            for path in run.folder.iterdir():
                files.refuse_irregular(path)
            notes = []
            for path, _ in damaged_files(run):
                if files.exists(path):
                    aside = path.rename(path.with_name(f"{path.name}.damaged"))
                    run.path(VERDICTS).unlink(missing_ok=True)
                    notes.append(
                        f"{path.name} was damaged: set aside as {aside.name}. Its content "
                        "is made again; then grade again"
                    )
            if not files.exists(run.folder / RECORD):
                text = record.model_dump_json(indent=2)
                files.write_file(run.folder / RECORD, BytesIO(f"{text}\n".encode()))
        writer = Writer(run, notes, present_of(stream_samples(run, KEY)))
        try:
            yield writer
        finally:
            with plain_errors(run.folder):
                writer.join_parts()


def part_rows(path: Path, names: Sequence[str] = SCHEMA.names) -> Iterator[pd.DataFrame]:
    """Read columns of a part, the key among them, so many rows at a time; a damaged one is an
    InputError.
    """
    check_part(path)
    refusal = InputError(
        f"{path}: not a file of samples; delete it, and draw its rows again with the `capcal "
        "sample` command of its run"
    )
    with files.open_parquet(path, sealed=False) as opened:
        if not opened.schema.remove_metadata().equals(SCHEMA) or opened.rows > MOST_PART_ROWS:
            raise refusal
        for table in files.iterate(opened, names):
            rows = table.to_pandas()
            complete = rows.drop(columns="reasoning", errors="ignore").notna().all(axis=None)
            negative = (rows.select_dtypes("number") < 0).any(axis=None)
            if not complete or negative or rows["sample_index"].max() >= MOST_SAMPLES:
                raise refusal
            yield rows


def check_part(path: Path) -> None:
    """Refuse a part whose bytes are not those that its name says; one of a run of an earlier
    version has a number.
    """
    with files.open_file(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not re.fullmatch(rf"samples-({digest}|\d{{5}})\.parquet", path.name):
        raise InputError(
            f"{path}: corrupt, since its bytes do not match its name; draw its rows again with the "
            "`capcal sample` command of its run"
        )
