"""Merge run stores that were drawn on several machines.

Runs with one identity become one, with the rows of all; others stay runs of their own. Two
different rows under one key are refused before anything is written. Parts and files are copied
where the target has none of their rows, so that what was made from them stays as it was; of
verdicts, confidences and hidden states, what the target has stands, and what it lacks is added."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os.path import isdir
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.runs import files, store
from capcal_lib.runs.artifacts import PART, VERDICTS, Artifact, artifact_of
from capcal_lib.runs.files import hold
from capcal_lib.runs.run import Run, open_runs, run_of
from capcal_lib.runs.sessions import add_lines, read_lines


@dataclass(frozen=True, slots=True)
class Merged:
    """What was taken from one run."""

    source: Run
    target: Run
    rows: int  # taken over
    present: int  # rows that were there already
    notes: tuple[str, ...]  # what was left out of the files beside the samples


def merge(into: Path, sources: Sequence[Path]) -> list[Merged]:
    """Take over all runs of the sources that ``into`` does not have, and of those it has the rows
    that it lacks.

    ``into`` is the folder of a run store, existing or not, ``sources`` are those of run stores or
    of single runs. Merging again changes nothing, and a merge that was stopped is completed by the
    same call. `InputError` for a source that holds no run, a run that is corrupt or being written,
    and a sample that two of them have with different content; then nothing was taken over."""
    copies: dict[Run, list[Run]] = {}
    for run in (run for source in sources for run in _runs(source)):
        copies.setdefault(run_of(into, run.identity), []).append(run)
    for target, runs in copies.items():
        _check([target, *runs] if isdir(target.folder) else runs)
    return [taken for runs in copies.values() for taken in _merge_one(into, runs)]


def _runs(source: Path) -> list[Run]:
    runs = []
    if isdir(source):
        runs = [Run(source)] if (source / "run.json").exists() else open_runs(source)
    if not runs:
        raise InputError(f"{source} is neither a run nor a store with runs in it")
    for run in runs:
        if store.is_being_written(run):
            raise InputError(f"{run} is being written by another process; wait for it")
    return runs


def _check(copies: Sequence[Run]) -> None:
    """Refuse copies of a run that have different rows under one key.

    A part of one name is the same in all. Of each other row 128 bits are compared."""
    names = [{store.part_name(part) for part in store.parts_of(copy)} for copy in copies]
    shared = set.intersection(*names)
    found = []
    for copy in copies if len(copies) > 1 else ():
        for part in store.parts_of(copy):
            if part.name not in shared:
                found += [_digests(rows) for rows in _part_rows(part)]
    every = np.concatenate(found) if found else np.zeros((0, 2), np.uint64)
    every = every[np.lexsort(every.T[::-1])]
    differing = (every[1:, 0] == every[:-1, 0]) & (every[1:, 1] != every[:-1, 1])
    if not differing.any():
        return
    key = every[1:][differing][0, 0]
    for copy in copies:
        for rows in store.stream_samples(copy):
            for question, index in rows.loc[_digests(rows)[:, 0] == key, store.KEY].to_numpy():
                raise InputError(
                    f"sample {index} of {question} is one thing in {copy}, another in one of "
                    f"{', '.join(map(str, copies))}; nothing was merged: keep one of them, or "
                    "merge into another store"
                )


def _digests(rows: pd.DataFrame) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint64]]":
    """Return a digest of the key of each row, and one of all that it holds, (n_rows, 2)."""
    parts = (rows[store.KEY], rows[store.SCHEMA.names])
    digests = [pd.util.hash_pandas_object(part, index=False, categorize=False) for part in parts]
    return np.column_stack([digest.to_numpy() for digest in digests])


def _part_rows(part: Path) -> Iterator[pd.DataFrame]:
    return (table.to_pandas() for table in store.part_tables(part, store.SCHEMA.names))


def _merge_one(into: Path, copies: Sequence[Run]) -> Iterator[Merged]:
    with store.open_writer(into, copies[0].record) as writer:
        _check([writer.run, *copies])  # another merge may have come first
        for copy in copies:
            if copy.folder.resolve() == writer.folder.resolve():
                yield Merged(copy, writer.run, 0, writer.rows, ())
                continue
            before = writer.rows
            rows = sum(_take_part(writer, part) for part in store.parts_of(copy))
            own = set(read_lines(writer.run))
            add_lines(writer.run, [line for line in read_lines(copy) if line not in own])
            beside = [path for path in sorted(copy.folder.iterdir()) if PART not in path.name]
            notes = [
                _take_file(path, artifact, copy, writer.run)
                for path in beside
                if (artifact := artifact_of(path.name))
            ]
            yield Merged(
                copy,
                writer.run,
                writer.rows - before,
                rows - (writer.rows - before),
                tuple(filter(None, notes)),
            )


def _take_part(writer: store.Writer, part: Path) -> int:
    """Copy a part, or those of its rows that are lacking; return how many it has."""
    theirs = store.Present()
    rows = sum(len(store.add_keys(theirs, table)) for table in store.part_tables(part, store.KEY))
    own = writer.present
    if not any(bits & own.get(name, 0) for name, bits in theirs.items()):
        _copy(part, writer.folder / store.part_name(part))
        own.update({name: bits | own.get(name, 0) for name, bits in theirs.items()})
    elif any(bits & ~own.get(name, 0) for name, bits in theirs.items()):
        for table in _part_rows(part):
            writer.adopt(table)
    return rows


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as content:
        files.write_file(target, lambda file: shutil.copyfileobj(content, file))


def _take_file(source: Path, artifact: Artifact, copy: Run, run: Run) -> str | None:
    """Take over a file, or the rows of it that a run lacks; return what is to be said."""
    target = run.folder / source.name
    key = list(artifact.key)
    try:
        with files.open_parquet(source) as file:
            made = file.schema_arrow.metadata or {}
            if not artifact.fits(file.schema_arrow.empty_table()):
                return f"left out {source}, which is not a file of `capcal {artifact.command}`"
        rows = made.get(b"rows") if artifact is VERDICTS else None
        if rows and rows.decode() != store.digest_of_graded(
            copy, files.read_batches(source, store.KEY)
        ):
            return f"left out {source}, which was made from other samples; grade again"
        if artifact is not VERDICTS:  # these have been read
            artifact.read(source)
    except InputError as error:
        return f"left out: {error}"
    with hold(run.folder):
        if files.size_of(target) is None:
            _copy(source, target)
            return None
        own = artifact.read(target)
        theirs = artifact.read(source)
        if _how(own) != _how(theirs) or not own.schema.equals(theirs.schema):
            return f"left out {source}, which was made in another way than {target}"
        known = pd.MultiIndex.from_frame(own.select(key).to_pandas())
        lacking = ~pd.MultiIndex.from_frame(theirs.select(key).to_pandas()).isin(known)
        if lacking.any():
            both = pa.concat_tables([own, theirs.filter(pa.array(lacking, pa.bool_()))])
            both = both.sort_by([(name, "ascending") for name in key])
            made = own.schema.metadata or {}
            if artifact is VERDICTS:
                made = made | {b"rows": store.digest_of_graded(run, [both]).encode()}
            files.write_table(target, both.replace_schema_metadata(made))
    return None


def _how(table: pa.Table) -> dict[bytes, bytes]:
    """Return what a file's metadata say of how it was made, but for its run and rows."""
    made = table.schema.metadata or {}
    return {name: value for name, value in made.items() if name not in (b"run", b"rows")}
