"""Merge run stores that were drawn on several machines.

Runs with the same identity become one run with all rows; others stay separate. Two different rows
under one key are refused before anything is written. Of a file beside the samples, the rows that
the target lacks are added; except of verdicts and predictions, which ``capcal grade`` and ``capcal
probe`` make again from what was merged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from capcal_lib.errors import InputError
from capcal_lib.runs import store
from capcal_lib.runs.artifacts import GIVEN, VERDICTS, Artifact, artifact_of
from capcal_lib.runs.files import open_file, plain_errors, write_file, write_table
from capcal_lib.runs.run import RECORD, Run, open_runs, run_of
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
    """Copy into ``into`` all runs of the sources that it does not have, and the rows that its own
    runs lack.

    ``into`` is the folder of a run store, existing or not; ``sources`` are folders of run stores or
    of single runs. Merging again changes nothing, and the same call completes a merge that was
    stopped. `InputError` for a source that holds no run, a run that is corrupt or being written,
    and a sample with different content in two of them; then nothing was copied."""
    copies: dict[Run, list[Run]] = {}
    for source in sources:
        with plain_errors(source):
            runs = [Run(source)] if (source / RECORD).exists() else open_runs(source)
        if not runs:
            raise InputError(f"{source} is neither a run nor a store with runs; name one")
        for run in runs:
            copies.setdefault(run_of(into, run.identity), []).append(run)
    checked = {}  # the parts of each target when its rows were compared
    for target, runs in copies.items():
        checked[target] = store.parts_of(target)
        store.refuse_differing([target, *runs])
    return [
        merged
        for target, runs in copies.items()
        for merged in _merge_one(into, runs, checked[target])
    ]


def _merge_one(into: Path, copies: Sequence[Run], checked: list[Path]) -> Iterator[Merged]:
    with store.open_writer(into, copies[0].record) as writer:
        run = writer.run
        if store.parts_of(run) != checked:  # another process has written meanwhile
            store.refuse_differing([run, *copies])
        for source in copies:
            rows = new = 0
            for table in store.stream_samples(source):
                rows += len(table)
                new += writer.adopt(table)
            known = read_lines(run)
            add_lines(run, [line for line in read_lines(source) if line not in known])
            notes = []
            for path in sorted(source.folder.iterdir()):
                if note := _take_file(path, run):
                    notes.append(f"left out: {note}")
            yield Merged(source, run, new, rows - new, tuple(notes))


def _take_file(source: Path, run: Run) -> str:
    """Copy a file beside the samples, or the rows of it that a run lacks. Return why it was left
    out, or nothing.
    """
    target = run.folder / source.name
    artifact = artifact_of(source.name)
    if artifact is None:
        return ""
    theirs = artifact.read(source)
    if not target.exists():
        with open_file(source) as content:
            write_file(target, content)
        return ""
    ours = artifact.read(target)
    made = ours.schema.metadata or {}
    if artifact is VERDICTS and made[b"grader"] != GIVEN.encode():
        return ""
    if _how(ours) != _how(theirs) or ours.column_names != theirs.column_names:
        return f"{source}, which was made with other settings than {target}"
    both = _unite(artifact, ours, theirs)
    if artifact is VERDICTS:
        graded = set(store.keys_of(both.to_pandas()))
        made[b"rows"] = store.digest_of_graded(run, graded).encode()
    if len(both) > len(ours) or not both.equals(ours):
        write_table(target, both.replace_schema_metadata(made))
    return ""


def _unite(artifact: Artifact, ours: pa.Table, theirs: pa.Table) -> pa.Table:
    """Return the rows of two files, sorted by key; of two under one key, ours, unless only theirs
    has a value.
    """
    both = pa.concat_tables([ours, theirs])
    missing = pc.is_null(both[artifact.value], nan_is_null=artifact.value == "confidence")
    order = np.argsort(missing.to_numpy(), kind="stable")  # any value goes before a missing one
    twice = both.select([*artifact.key]).to_pandas().iloc[order].duplicated()
    return both.take(order[~twice]).sort_by([(name, "ascending") for name in artifact.key])


def _how(table: pa.Table) -> dict[bytes, bytes]:
    """Return how a file was made, of whatever samples."""
    made = table.schema.metadata or {}
    samples = (b"run", b"rows", b"pandas")
    return {name: value for name, value in made.items() if name not in samples}
