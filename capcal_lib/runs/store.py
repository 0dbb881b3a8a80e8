"""The run store: rows that are only added, one for each (question_id, sample_index).

A run is a folder, ``<store>/<model>/<dataset>-<split>/<key>``, named by a digest of all that
decides its rows. In it:

``run.json``                  the identity behind the key, and how the run was made
``samples-<SHA-256>.parquet`` parts, named by the digest of their bytes and never changed
``sessions.jsonl``            what each sitting of drawing asked for
``lock``                      held by who draws, merges, removes or adds to another file

A part exists whole or not at all; a damaged one no longer matches its name, and is refused. A kill
loses the rows since the last part, a few seconds of work, and the same seeds draw them again. Parts
are joined when a writer closes; a kill during this leaves rows in two parts, and readers take each
row once. All functions raise ``InputError`` for a corrupt run."""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Literal

import pandas as pd
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.runs.files import count_rows, hold, plain_errors, read_part, write_file, write_table
from capcal_lib.runs.run import PARTS, RECORD, Record, Run, run_of

ROWS = 50_000  # of a part, at most
KEY = ["question_id", "sample_index"]
ORDER = [(name, "ascending") for name in KEY]
Keys = set[tuple[str, int]]
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


def keys_of(rows: pd.DataFrame) -> list[tuple[str, int]]:
    """Return the key of each row of a table."""
    questions = map(sys.intern, rows["question_id"])  # one text for all samples of a question
    return list(zip(questions, rows["sample_index"], strict=True))


def parts_of(run: Run) -> list[Path]:
    """List the parts of a run."""
    return sorted(run.folder.glob(PARTS))


def read_rows(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read columns of a part."""
    return read_part(path, pa.schema([SCHEMA.field(name) for name in columns])).to_pandas()


def read_samples(run: Run, columns: Sequence[str] = SCHEMA.names) -> pd.DataFrame:
    """Read the key and the named columns of all rows of a run, sorted by (question_id,
    sample_index), each row once.
    """
    rows = pd.concat(stream_samples(run, columns))
    return rows.sort_values(KEY, ignore_index=True)


def stream_samples(run: Run, columns: Sequence[str] = SCHEMA.names) -> Iterator[pd.DataFrame]:
    """Yield the rows of ``read_samples`` a part at a time, after a first table without rows."""
    names = [name for name in SCHEMA.names if name in {*KEY, *columns}]
    yield SCHEMA.empty_table().select(names).to_pandas()
    seen: Keys = set()
    for path in parts_of(run):
        rows = read_rows(path, names)
        keys = keys_of(rows)
        new = [key not in seen for key in keys]
        if not all(new):
            refuse_differing([run])
        seen.update(keys)
        yield rows.loc[new]


def present_keys(run: Run) -> Keys:
    """Return the keys of the samples of a run."""
    keys: Keys = set()
    number = 0
    for path in parts_of(run):
        rows = read_rows(path, KEY)
        number += len(rows)
        keys.update(keys_of(rows))
    if len(keys) < number:
        refuse_differing([run])
    return keys


def refuse_differing(copies: Sequence[Run]) -> None:
    """Refuse two different rows under one key in any copies of a run; 64 bits of the rows are
    compared.
    """
    tables = [
        rows[KEY].assign(hash=hash_rows(rows))
        for run in copies
        for path in parts_of(run)
        for rows in [read_rows(path, SCHEMA.names)]
    ]
    if tables and (differing := pd.concat(tables).drop_duplicates().duplicated(KEY).sum()):
        raise InputError(
            f"{differing} samples have two different rows in {', '.join(map(str, copies))}; "
            "nothing was written. Keep only one of them"
        )


def hash_rows(rows: pd.DataFrame) -> "pd.Series[int]":
    """Return 64 bits for each row that follow from what it holds."""
    return pd.util.hash_pandas_object(rows, index=False, categorize=False)


def digest_of_graded(run: Run, graded: Keys) -> str:
    """Return the digest of a run's graded samples, from their keys and responses; it does not
    depend on their order.
    """
    total = 0
    for rows in stream_samples(run, ["response"]):
        among = [key in graded for key in keys_of(rows)]
        total += int(hash_rows(rows.loc[among]).sum())
    return f"{total % 2**64:016x}"


@dataclass
class Writer:
    """Append samples to one run. Made by ``open_writer``, which holds the lock."""

    run: Run
    present: Keys

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
        return self.adopt(pd.DataFrame(samples, columns=SCHEMA.names, dtype=object))

    def adopt(self, rows: pd.DataFrame) -> int:
        """Write those rows that the run lacks, and tells apart; return how many."""
        rows = rows.drop_duplicates(KEY)
        new = rows.loc[[key not in self.present for key in keys_of(rows)]]
        self.present.update(keys_of(new))
        for start in range(0, len(new), ROWS):
            self.write_part(new[start : start + ROWS])
        return len(new)

    def write_part(self, rows: pd.DataFrame) -> Path:
        """Write rows as a part."""
        table = pa.Table.from_pandas(rows, schema=SCHEMA, preserve_index=False).sort_by(ORDER)
        return write_table(self.run.folder / PARTS, table.replace_schema_metadata())

    def join_parts(self) -> None:
        """Join small parts, one after another, to such of some ``ROWS`` rows."""
        tables: list[pd.DataFrame] = []
        paths: list[Path] = []
        for path in parts_of(self.run):
            if count_rows(path) >= ROWS // 2:
                continue
            tables.append(read_rows(path, SCHEMA.names))
            paths.append(path)
            if sum(map(len, tables)) >= ROWS // 2:
                self._join(paths, tables)
                tables, paths = [], []
        self._join(paths, tables)

    def _join(self, paths: list[Path], tables: list[pd.DataFrame]) -> None:
        if len(paths) > 1:
            made = self.write_part(pd.concat(tables).drop_duplicates(KEY))
            for path in {*paths} - {made}:
                path.unlink()


@contextmanager
def open_writer(store: Path, record: Record) -> Iterator[Writer]:
    """Open a run for appending, and make it if it is new; `InputError` if another process writes
    it, or if it is damaged. A new run that is refused before it has a row is removed.
    """
    run = run_of(store, record.identity)
    new = not run.folder.exists()
    with hold(run.folder, PARTS):
        with plain_errors(run.folder):
            if not (run.folder / RECORD).exists():
                text = record.model_dump_json(indent=2)
                write_file(run.folder / RECORD, BytesIO(f"{text}\n".encode()))
        _ = run.record  # refused if it is damaged
        writer = Writer(run, present_keys(run))
        try:
            yield writer
        except InputError:
            if new and not parts_of(run):
                shutil.rmtree(run.folder, ignore_errors=True)
            raise
        finally:
            writer.join_parts()


def remove_run(run: Run) -> None:
    """Remove a run with everything made from it; `InputError` if it is being written."""
    with hold(run.folder, PARTS), plain_errors(run.folder):
        for path in sorted(run.folder.iterdir(), key=lambda path: path.name == RECORD):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        run.folder.rmdir()
