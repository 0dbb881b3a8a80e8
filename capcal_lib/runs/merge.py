"""Merge run stores that were drawn on several machines.

Runs with one identity become one, with the rows of all; others stay runs of their own. Two
different rows under one key are refused before anything is written. Parts and files are copied
where the target has none of their rows, so that what was made from them stays as it was; of
verdicts, confidences and hidden states, what the target has stands, and what it lacks is added."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os.path import isfile
from pathlib import Path

import pandas as pd
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.runs import files, store
from capcal_lib.runs.artifacts import VERDICTS, Artifact, artifact_of
from capcal_lib.runs.run import Run, open_runs, run_of
from capcal_lib.runs.sessions import add_session, read_sessions


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
    for source in sources:
        runs = [Run(source)] if isfile(source / "run.json") else open_runs(source)
        if not runs:
            raise InputError(f"{source} is neither a run nor a store with runs in it")
        for run in runs:
            copies.setdefault(run_of(into, run.identity), []).append(run)
    for target, runs in copies.items():
        store.refuse_differing([target, *runs])
    return [taken for runs in copies.values() for taken in _merge_one(into, runs)]


def _merge_one(into: Path, copies: Sequence[Run]) -> Iterator[Merged]:
    with store.open_writer(into, copies[0].record) as writer:
        run = writer.run
        store.refuse_differing([run, *copies])  # another merge may have come first
        for copy in copies:
            before = store.count_present(writer.present)
            rows = sum(_take_part(writer, part) for part in store.parts_of(copy))
            new = store.count_present(writer.present) - before
            known = read_sessions(run)
            for session in read_sessions(copy):
                if session not in known:
                    add_session(run, session)
            notes = []
            for path in sorted(copy.folder.iterdir()):
                if artifact := artifact_of(path.name):
                    try:
                        _take_file(path, artifact, run)
                    except InputError as error:
                        notes.append(f"left out: {error}")
            yield Merged(copy, run, new, rows - new, tuple(notes))


def _take_part(writer: store.Writer, part: Path) -> int:
    """Copy a part, or take those of its rows that are lacking; return how many it has."""
    keys = store.part_rows(part, store.KEY)
    new = [one for rows in keys for one in store.add_keys(writer.present, rows)]
    if all(new):
        _copy(part, writer.run.folder / store.part_name(part))
    elif any(new):
        writer.add_part(pd.concat(store.part_rows(part)).loc[new])
    return len(new)


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as content:
        files.write_file(target, lambda file: shutil.copyfileobj(content, file))


def _take_file(source: Path, artifact: Artifact, run: Run) -> None:
    """Take over a file, or the rows of it that a run lacks; `InputError` where that cannot be."""
    key = [*artifact.key]
    with artifact.open(source) as file:
        made = file.schema_arrow.metadata or {}
        if artifact is VERDICTS and b"rows" in made:
            digest = store.digest_of_graded(run, store.present_of(files.iterate(file, key)))
            if made[b"rows"].decode() != digest:
                raise InputError(f"{source}, which was made from other samples; grade again")
    target = run.folder / source.name
    with files.hold(run.folder):
        if not files.exists(target):
            _copy(source, target)
            return
        table = artifact.read(target)
        theirs = artifact.read(source)
        if _how(table) != _how(theirs):
            raise InputError(f"{source}, which was made in another way than {target}")
        both = pa.concat_tables([table, theirs])
        twice = both.select(key).to_pandas().duplicated()
        if twice.sum() < len(theirs):
            both = both.filter(pa.array(~twice)).sort_by([(name, "ascending") for name in key])
            if artifact is VERDICTS:
                graded = store.present_of([both.to_pandas()])
                made |= {b"rows": store.digest_of_graded(run, graded).encode()}
            files.write_table(target, both.replace_schema_metadata(made))


def _how(table: pa.Table) -> tuple[pa.Schema, dict[bytes, bytes]]:
    """Return the columns of a file, and how it was made but for its run and rows."""
    made = table.schema.metadata or {}
    facts = {name: value for name, value in made.items() if name not in (b"run", b"rows")}
    return table.schema.remove_metadata(), facts
