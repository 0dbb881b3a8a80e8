"""Merge run stores that were drawn on several machines.

Runs with one identity become one, with the rows of all; others stay runs of their own. Two
different rows under one key are refused before anything is written. Of verdicts, confidences and
hidden states, what the target has stands, and what it lacks is taken over."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.runs import files, store
from capcal_lib.runs.artifacts import PART, VERDICTS, Artifact, artifact_of
from capcal_lib.runs.files import hold
from capcal_lib.runs.run import Run, is_folder, open_runs, run_of
from capcal_lib.runs.sessions import add_sessions


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
    same call. Nobody else can write any of the runs meanwhile. `InputError` for a source that holds
    no run, a run that is corrupt or being written, and a sample that two of them have with
    different content; then nothing was taken over."""
    copies: dict[Run, list[Run]] = {}
    for run in (run for source in sources for run in _runs(source)):
        copies.setdefault(run_of(into, run.identity), []).append(run)
    with ExitStack() as stack:
        writers = {
            target: stack.enter_context(_open(into, runs))
            for target, runs in copies.items()
            if is_folder(target.folder)
        }
        for target, runs in copies.items():
            _check([target, *runs] if target in writers else runs)
        for target, runs in copies.items():
            if target not in writers:
                writers[target] = stack.enter_context(_open(into, runs))
                if writers[target].rows:  # another merge has made it meanwhile
                    _check([target, *runs])
        return [_take(writers[target], run) for target, runs in copies.items() for run in runs]


def _runs(source: Path) -> list[Run]:
    runs = []
    if is_folder(source):
        runs = [Run(source)] if (source / "run.json").exists() else open_runs(source)
    if not runs:
        raise InputError(f"{source} is neither a run nor a store with runs in it")
    return runs


@contextmanager
def _open(into: Path, copies: Sequence[Run]) -> Iterator[store.Writer]:
    """Open the run that these copies go into; nobody may write them, either."""
    with store.open_writer(into, copies[0].record) as writer, ExitStack() as stack:
        for copy in copies:
            if copy.folder.resolve() != writer.folder.resolve():
                stack.enter_context(store.no_writer(copy))
        yield writer


def _check(copies: Sequence[Run]) -> None:
    """Refuse copies of a run that have different rows under one key."""
    known: pd.DataFrame | None = None
    for copy in copies if len(copies) > 1 else ():
        rows = store.gather_samples(copy, _whole_digests)
        if known is not None:
            both = known.merge(rows, on=store.KEY, suffixes=("", "_other"))
            differing = both[both["digest"] != both["digest_other"]]
            if len(differing):
                question, index = differing.iloc[0][store.KEY]
                seen = " or ".join(map(str, copies[: copies.index(copy)]))
                raise InputError(
                    f"sample {index} of {question} is one thing in {seen}, another in {copy}; "
                    "nothing was merged: keep one of the two runs, or merge into another store"
                )
        known = rows if known is None else pd.concat([known, rows]).drop_duplicates(store.KEY)


def _whole_digests(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the key of each row and a digest of all that it holds."""
    digests = pd.util.hash_pandas_object(rows, index=False, categorize=False)
    return rows[store.KEY].assign(digest=digests)


def _take(writer: store.Writer, run: Run) -> Merged:
    taken = 0

    def adopt(rows: pd.DataFrame) -> pd.DataFrame:
        nonlocal taken
        taken += writer.adopt(rows)
        return rows[store.KEY].assign(digest=store.row_digests(rows))

    digests = store.gather_samples(run, adopt)
    add_sessions(writer.run, run)
    beside = [path for path in sorted(run.folder.iterdir()) if PART not in path.name]
    notes = [
        _take_facts(path, artifact, writer.run, digests)
        for path in beside
        if (artifact := artifact_of(path.name))
    ]
    return Merged(
        source=run,
        target=writer.run,
        rows=taken,
        present=len(digests) - taken,
        notes=tuple(filter(None, notes)),
    )


def _take_facts(source: Path, artifact: Artifact, run: Run, digests: pd.DataFrame) -> str | None:
    """Take over the rows of a file that a run lacks; return what is to be said."""
    target = run.folder / source.name
    key = list(artifact.key)
    try:
        theirs = artifact.read(source)
    except InputError as error:
        return f"left out: {error}"
    made = _made(theirs)
    rows = theirs.select(key).to_pandas()
    if artifact is VERDICTS:
        rows = rows.merge(digests, on=key, how="left")
        said = (theirs.schema.metadata or {}).get(b"rows")
        other = rows["digest"].isna().any()
        if other or (said and said.decode() != store.digest_of_rows(rows["digest"])):
            return f"left out {source}, which was made from other samples; grade again"
    with hold(run.folder):
        own = artifact.read(target) if target.exists() else theirs.slice(0, 0)
        if _made(own) != made or not own.schema.equals(theirs.schema):
            return f"left out {source}, which was made in another way than {target}"
        known = pd.MultiIndex.from_frame(own.select(key).to_pandas())
        lacking = ~pd.MultiIndex.from_frame(rows[key]).isin(known)
        if not lacking.any() and target.exists():
            return None
        if artifact is VERDICTS:
            before = (own.schema.metadata or {}).get(b"rows") if target.exists() else b"0"
            before = before or store.digest_of_graded(run, own)
            digest = store.digest_of_rows(rows.loc[lacking, "digest"], int(before, 16))
            made[b"rows"] = digest.encode()
        both = pa.concat_tables([own, theirs.filter(pa.array(lacking, pa.bool_()))])
        table = both.sort_by([(name, "ascending") for name in key])
        files.write_table(target, table.replace_schema_metadata(made))
    return None


def _made(table: pa.Table) -> dict[bytes, bytes]:
    """Return what a file's metadata say of how it was made, but for its run and rows."""
    return {
        name: value
        for name, value in (table.schema.metadata or {}).items()
        if name not in (b"run", b"rows")
    }
