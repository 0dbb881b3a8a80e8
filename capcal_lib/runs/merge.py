"""Merge run stores that were drawn on several machines.

Runs with the same identity become one run with all rows; others stay separate. Two different rows
under one key are refused before anything is written. A file beside the samples is copied if the
target has none. Otherwise the target's rows stay and missing rows are added; except for the rules'
verdicts, which ``capcal grade`` makes from the samples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from capcal_lib.disk import is_file
from capcal_lib.errors import DiskError, InputError
from capcal_lib.runs import files, store
from capcal_lib.runs.artifacts import DRAWS, GIVEN, VERDICTS, artifact_of
from capcal_lib.runs.run import RECORD, Run, open_runs, run_of
from capcal_lib.runs.sessions import add_sessions, read_sessions


@dataclass(frozen=True, slots=True)
class Merged:
    """What was taken from one run."""

    source: Run
    target: Run
    rows: int  # taken over
    present: int  # rows that were there already
    notes: tuple[str, ...]  # what was left out of the files beside the samples


def merge(into: Path, sources: Sequence[Path]) -> list[Merged]:
    """Copy into ``into`` all runs of the sources that it does not have, and the rows that its own
    runs lack.

    ``into`` is the folder of a run store, existing or not; ``sources`` are folders of run stores or
    of single runs. Merging again changes nothing, and the same call completes a merge that was
    stopped. `InputError` for a source that holds no run, a run that is corrupt or being written,
    and a sample with different content in two of them; then nothing was copied. `DiskError` if
    something cannot be read or written."""
    copies: dict[Run, list[Run]] = {}
    for source in sources:
        runs = [Run(source)] if is_file(source / RECORD) else open_runs(source)
        if not runs:
            raise InputError(f"{source} is neither a run nor a store with runs; name one")
        for run in runs:
            copies.setdefault(run_of(into, run.identity), []).append(run)
    for target, runs in copies.items():
        store.refuse_differing([target, *runs])
    return [merged for runs in copies.values() for merged in _merge_one(into, runs)]


def _merge_one(into: Path, copies: Sequence[Run]) -> Iterator[Merged]:
    with store.open_writer(into, copies[0].record) as writer:
        run = writer.run
        store.refuse_differing([run, *copies])  # another merge may have come first
        for source in copies:
            rows = new = 0
            for table in store.stream_samples(source):
                rows += len(table)
                new += writer.adopt(table)
            known = {session.model_dump_json() for session in read_sessions(run)}
            new_sessions = [
                session
                for session in read_sessions(source)
                if session.model_dump_json() not in known
            ]
            add_sessions(run, new_sessions)
            notes = []
            for path in files.list_files(source.folder, "*"):
                try:
                    with files.hold(run.folder):
                        _take_file(path, run)
                except DiskError:
                    raise
                except InputError as error:
                    notes.append(f"left out: {error}")
            yield Merged(source, run, new, rows - new, tuple(notes))


def _take_file(source: Path, run: Run) -> None:
    """Copy a file beside the samples, or the rows of it that a run lacks; `InputError` if they
    cannot be joined.
    """
    target = run.folder / source.name
    if source.name == DRAWS and not files.exists(target):
        with files.open_file(source) as content:
            files.write_file(target, BytesIO(content.read(files.FOOTER)))
        return
    artifact = artifact_of(source.name)
    if artifact is None:
        return
    if not files.exists(target):
        with artifact.open(source), files.open_file(source) as content:
            files.write_file(target, content)
        return
    ours, theirs = artifact.read(target), artifact.read(source)
    made = ours.schema.metadata or {}
    if artifact is VERDICTS and made[b"grader"] != GIVEN.encode():
        return
    if not _how(ours).equals(_how(theirs), check_metadata=True):
        raise InputError(f"{source}, which was made with other settings than {target}")
    key = [*artifact.key]
    both = pa.concat_tables([ours, theirs])
    missing = pc.is_null(both[artifact.value], nan_is_null=artifact.missing).to_numpy()
    order = np.argsort(missing, kind="stable")  # any value goes before a missing one
    kept = order[~both.select(key).to_pandas().iloc[order].duplicated()]
    if (kept >= len(ours)).any():
        rows = both.take(kept).sort_by([(name, "ascending") for name in key])
        if artifact is VERDICTS:
            graded = store.present_of([rows.to_pandas()])
            made[b"rows"] = store.digest_of_graded(run, graded).encode()
        files.write_table(target, rows.replace_schema_metadata(made))


def _how(table: pa.Table) -> pa.Schema:
    """Return the columns of a file, and how it was made, of whatever samples."""
    made = table.schema.metadata or {}
    return table.schema.with_metadata(made | {b"run": b"", b"rows": b""})
