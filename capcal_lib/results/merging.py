"""Merge run stores that were drawn on several machines.

Runs with one identity become one, with the rows of all; others stay runs of their own. Two different rows under one
key are refused before anything is written. Of verdicts, confidences and hidden states, what the target has stands, and
what it lacks is taken over.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.grading import GRADER_VERSION
from capcal_lib.grading.judgements import FILE as JUDGEMENTS
from capcal_lib.grading.judgements import PAIR
from capcal_lib.sampling.files import read_table, write_table
from capcal_lib.sampling.sessions import add_sessions
from capcal_lib.sampling.store import (
    KEY,
    VERDICTS,
    Present,
    list_runs,
    open_writer,
    read_record,
    run_folder,
    stream_samples,
)

KEYS = {VERDICTS: KEY, JUDGEMENTS: ["judge", *PAIR]}  # what identifies a row of a file; of others, its question


@dataclass(frozen=True, slots=True)
class Merged:
    """What was taken from one run."""

    source: Path
    target: Path
    rows: int  # taken over
    present: int  # rows that were there already
    notes: tuple[str, ...]  # what was left out of the files beside the samples


def merge(into: Path, sources: Sequence[Path]) -> list[Merged]:
    """Take over all runs of the sources that ``into`` does not have, and of those it has the rows that it lacks.

    Merging again changes nothing. A merge that was stopped is completed by the same call.

    Parameters
    ----------
    into
        Folder of a run store, existing or not.
    sources
        Folders of run stores, or of single runs.

    Raises
    ------
    InputError
        For a source that holds no run, a run that is corrupt or being written, and a sample that two of them have with
        different content; then nothing was written.
    """
    runs = [run for source in sources for run in _runs(source)]
    by_target: dict[Path, list[Path]] = {}
    for run in runs:
        by_target.setdefault(run_folder(into, read_record(run).identity), []).append(run)
    for target, copies in by_target.items():
        _check(target, copies)
    return [_take(into, run) for run in runs]


def _runs(source: Path) -> list[Path]:
    runs = [source] if (source / "run.json").exists() else list_runs(source)
    if not runs:
        raise InputError(f"{source} is neither a run nor a store with runs in it")
    return runs


def _check(target: Path, copies: Sequence[Path]) -> None:
    """Compare the rows that several copies of a run have under one key."""
    seen = [target] if _exists(target) else []
    known = _digests(target) if seen else None
    for copy in copies:
        rows = _digests(copy)
        if known is not None:
            both = known.merge(rows, on=KEY, suffixes=("", "_other"))
            differing = both[both["digest"] != both["digest_other"]]
            if len(differing):
                question, index = differing.iloc[0][KEY]
                raise InputError(
                    f"sample {index} of {question} is one thing in {' or '.join(map(str, seen))}, another in {copy}; "
                    "nothing was merged: keep one of the two runs, or merge into another store"
                )
        known = rows if known is None else pd.concat([known, rows]).drop_duplicates(KEY)
        seen.append(copy)


def _digests(run: Path) -> pd.DataFrame:
    """Return the keys of a run's rows, each with 64 bits that follow from the content."""
    parts = [rows[KEY].assign(digest=pd.util.hash_pandas_object(rows, index=False)) for rows in stream_samples(run)]
    return pd.concat(parts, ignore_index=True)


def _take(into: Path, run: Path) -> Merged:
    record = read_record(run)
    target = run_folder(into, record.identity)
    there = stream_samples(target, KEY) if _exists(target) else ()
    known = Present(key for rows in there for key in rows[KEY].itertuples(index=False, name=None))
    taken = present = 0
    with ExitStack() as stack:
        writer = None if _exists(target) else stack.enter_context(open_writer(into, record))
        for rows in stream_samples(run):
            lacking = rows[[key not in known for key in rows[KEY].itertuples(index=False, name=None)]]
            if len(lacking):
                writer = writer or stack.enter_context(open_writer(into, record))
                writer.adopt(lacking)
            taken += len(lacking)
            present += len(rows) - len(lacking)
    add_sessions(target, run)
    notes = [note for path in sorted(run.glob("*.parquet")) if (note := _take_facts(path, target / path.name))]
    return Merged(run, target, taken, present, tuple(notes))


def _take_facts(source: Path, target: Path) -> str | None:
    """Take over the rows of a file beside the samples that the target lacks; return what is to be said."""
    if source.name.startswith("samples-") or ".part-" in source.name:  # samples; hidden states not finished yet
        return None
    keys = KEYS.get(source.name, KEY[:1])
    theirs = read_table(source)
    if source.name == VERDICTS and (theirs.schema.metadata or {}).get(b"grader") != GRADER_VERSION.encode():
        return f"left out {source}, which is by another version of the grader; grade again"
    if not target.exists():
        write_table(target, theirs)
        return None
    own = read_table(target)
    if own.schema.metadata != theirs.schema.metadata or not own.schema.equals(theirs.schema):
        return f"left out {source}, which was made in another way than {target}"
    known = set(zip(*(own[name].to_pylist() for name in keys), strict=True))
    lacking = [key not in known for key in zip(*(theirs[name].to_pylist() for name in keys), strict=True)]
    if any(lacking):
        both = pa.concat_tables([own, theirs.filter(pa.array(lacking))])
        write_table(target, both.sort_by([(name, "ascending") for name in keys]))
    return None


def _exists(run: Path) -> bool:
    return (run / "run.json").exists()
