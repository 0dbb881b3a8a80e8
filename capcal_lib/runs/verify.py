"""Check that a run is what it says it is, and whole."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.manifests import load_dataset
from capcal_lib.questions import Question, at_hand, load_questions, questions_digest
from capcal_lib.runs import files, store
from capcal_lib.runs.artifacts import (
    GIVEN,
    OUTCOMES,
    PART,
    VERDICTS,
    Artifact,
    Sampled,
    artifact_of,
    matrix,
    some,
)
from capcal_lib.runs.run import Identity, Run, open_runs
from capcal_lib.runs.samples import IMPORTED
from capcal_lib.runs.sessions import asks_of, lacking

VERSIONS = ("capcal", "torch", "transformers", "vllm")
Check = Callable[[Sampled], Iterator[str]]  # yields what is wrong with a run


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of checking one run."""

    run: Run
    problems: tuple[str, ...]
    facts: tuple[str, ...]  # what was looked at, and what could not be

    def __str__(self) -> str:
        """Say it in one line."""
        words = "; ".join(self.problems) if self.problems else f"ok, {'; '.join(self.facts)}"
        return f"{self.run}: {words}"


def verify_store(
    folder: Path,
    model: str | None = None,
    dataset: str | None = None,
    *,
    grader: str | None = None,
    checks: Sequence[Check] = (),
) -> Iterator[Checked]:
    """Check each run of a store, or those of a model or data set, as ``verify_run`` does; without
    any it is refused.
    """
    runs = open_runs(folder, model=model, dataset=dataset)
    if not runs:
        raise InputError(f"no run to check in {folder}; see: capcal status --store {folder}")
    for run in runs:
        yield verify_run(run, grader=grader, checks=checks)


def verify_run(run: Run, *, grader: str | None = None, checks: Sequence[Check] = ()) -> Checked:
    """Check one run: its record, its rows, and every file beside them.

    The bytes of every part must be as its name says; the record must match the folder; the digest
    of the questions the one that the manifest pins; each row must be there once, none missing that
    was asked for; every file beside the samples as its ``Artifact`` says. ``grader`` is the version
    that verdicts must be by, ``checks`` are those of other rooms."""
    problems = [
        f"{path.name} was set aside as damaged; delete it once its rows are drawn again"
        for path in run.folder.glob("*.damaged")
    ]
    facts: list[str] = []
    present = store.Present()
    try:
        made_with = run.record.made_with
        digest, odd = _read_rows(run, present)
        sampled = Sampled(run, present, _questions(run.identity, facts), facts)
    except InputError as error:
        return Checked(run, (*problems, str(error)), ())
    samples = sum(bits.bit_count() for bits in present.values())
    versions = [f"{name} {made_with[name]}" for name in VERSIONS if name in made_with]
    facts[:0] = [f"{samples:,} samples of {len(present):,} questions", *versions]
    if source := made_with.get("imported_from"):
        facts.append(f"imported from {source}, so its weights and prompts are not known")
    if not run.has(VERDICTS):
        facts.append("not graded")
    if odd:
        problems.append(
            f"{len(odd)} rows with tokens or a finish that no engine gives: {some(odd)}"
        )
    for found in [
        _differences(sampled),
        *(_file(path, sampled, grader, digest) for path in sorted(run.folder.glob("[!.]*"))),
        *(check(sampled) for check in checks),
    ]:
        try:
            problems += found
        except InputError as error:
            problems.append(str(error))
    return Checked(run, tuple(problems), tuple(facts))


def _read_rows(run: Run, present: store.Present) -> tuple[str, list[tuple[str, int]]]:
    """Note which samples there are; return their digest, and the keys of rows that no engine gives.

    Where a log or a server does not count tokens, 0 stands for their number."""
    identity = run.identity
    least = 0 if identity.engine in (IMPORTED, "openai") else 1
    sampling = identity.sampling
    most = {"prompt_tokens": sampling.context_tokens, "completion_tokens": sampling.max_tokens}
    total = 0
    odd: list[tuple[str, int]] = []
    for rows in store.stream_samples(run):
        store.add_keys(present, rows)
        total += int(store.row_digests(rows).sum())
        sound = rows["finish_reason"].isin(["stop", "length"]) & rows["response"].notna()
        for name, limit in most.items():
            sound &= rows[name].between(least, limit)
        odd += rows.loc[~sound, store.KEY].itertuples(index=False, name=None)
    return f"{total % 2**64:016x}", odd


def _questions(run: Identity, facts: list[str]) -> dict[str, Question] | None:
    """Load the questions of a run, where they are on this machine."""
    try:
        if at_hand(run.dataset, run.split):
            return {question.id: question for question in load_questions(run.dataset, run.split)}
        facts.append("questions not looked at, for they are not on this machine")
    except InputError as error:
        facts.append(f"questions not looked at: {error}")
    return None


def _differences(sampled: Sampled) -> Iterator[str]:
    """Compare a run with the manifest, the questions, and what was asked for."""
    identity = sampled.run.identity
    questions = sampled.questions
    split = load_dataset(identity.dataset).splits.get(identity.split)
    if split is None:
        yield f"the manifest has no split {identity.split!r}"
    elif split.digest not in (None, identity.questions):
        made, pinned = identity.questions[:16], str(split.digest)[:16]
        yield f"made with the questions {made}, the manifest has {pinned}"
    if questions is not None:
        if questions_digest(questions.values()) != identity.questions:
            yield "the questions at hand are not those that were sampled"
        if strangers := sorted(sampled.present.keys() - questions.keys()):
            yield f"{len(strangers)} questions that the data set does not have: {some(strangers)}"
    if "questions" not in sampled.run.record.made_with:
        yield "the record does not say whether the questions matched the manifest"
    asks = asks_of(sampled.run, sampled.present)
    if identity.engine != IMPORTED and (missing := lacking(sampled.present, asks)):
        yield f"{missing} samples missing, which `capcal sample` draws"


def _file(path: Path, sampled: Sampled, grader: str | None, digest: str) -> Iterator[str]:
    """Check a file beside the samples as its description says; that it is a regular one, of
    all.
    """
    files.exists(path)
    artifact = artifact_of(path.name)
    if artifact is VERDICTS:
        yield from _verdicts(sampled, grader, digest)
    elif artifact:
        yield from _rows(path, artifact, sampled.present)


def _verdicts(sampled: Sampled, grader: str | None, digest: str) -> Iterator[str]:
    """Check the verdicts, which may be as many as the samples."""
    run = sampled.run
    graded = store.Present()
    twice = 0
    outcomes: set[str] = set()
    for rows in run.batches(VERDICTS, [*store.KEY, "verdict"]):
        twice += store.add_keys(graded, rows).count(False)
        outcomes |= {*rows["verdict"].unique()}
    if unknown := outcomes - OUTCOMES:
        yield f"unknown verdicts: {some(sorted(map(str, unknown)))}"
    if twice or graded != sampled.present:
        number = sum(bits.bit_count() for bits in graded.values())
        yield f"{number + twice:,} verdicts are not one of each sample: grade again"
    with files.open_parquet(run.path(VERDICTS)) as file:
        made = {name: text.decode() for name, text in file.schema_arrow.metadata.items()}
    version = made[b"grader"]
    if grader and version not in (grader, GIVEN):
        yield f"graded by version {version} of the grader, now {grader}: grade again"
    if graded == sampled.present and made.get(b"rows", digest) != digest:
        yield "the verdicts were made from other samples than these: grade again"


def _rows(path: Path, artifact: Artifact, present: store.Present) -> Iterator[str]:
    """Check a file with rows of questions."""
    table = artifact.read(path)
    rows = table.select(list(artifact.key)).to_pandas()
    if (twice := rows.duplicated()).any():
        named = some(rows[twice].itertuples(index=False, name=None))
        yield f"{path.name}: {twice.sum()} rows are there twice: {named}"
    there = set(rows["question_id"])
    if alone := sorted(there - present.keys()):
        yield f"{path.name}: {len(alone)} questions that were not sampled: {some(alone)}"
    lacks = sorted(present.keys() - there)
    if lacks and artifact.whole and PART not in path.name:
        yield f"{path.name}: {len(lacks)} questions missing: {some(lacks)}"
    values = table[artifact.value]
    if artifact.value == "verdict":
        if unknown := {*values.to_pylist()} - OUTCOMES:
            yield f"{path.name}: unknown verdicts: {some(sorted(map(str, unknown)))}"
    elif pa.types.is_nested(values.type):
        if not np.isfinite(matrix(table, artifact.value)).all():
            yield f"{path.name}: not all are finite"
    elif not values.drop_null().to_pandas().between(0, 1).all():
        yield f"{path.name}: some out of range; a confidence lies in [0, 1]"
