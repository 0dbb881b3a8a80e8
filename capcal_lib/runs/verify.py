"""Check that a run is what it says it is, and whole."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from capcal_lib.errors import InputError
from capcal_lib.manifests import load_dataset
from capcal_lib.questions import at_hand, load_questions, questions_digest
from capcal_lib.runs import files, store
from capcal_lib.runs.artifacts import GIVEN, VERDICTS, Sampled, artifact_of, some
from capcal_lib.runs.run import Run, open_runs
from capcal_lib.runs.samples import IMPORTED
from capcal_lib.runs.sessions import lacking, open_ask

Check = Callable[[Sampled], Iterator[str]]  # yields what is wrong with a run


def verify_store(
    folder: Path,
    model: str | None = None,
    dataset: str | None = None,
    *,
    grader: str | None = None,
    checks: Sequence[Check] = (),
) -> Iterator[Sampled]:
    """Check each run of a store, or those of a model or data set, as ``verify_run`` does; without
    any it is refused.
    """
    runs = open_runs(folder, model=model, dataset=dataset)
    if not runs:
        raise InputError(f"no run to check in {folder}; see: capcal status --store {folder}")
    for run in runs:
        yield verify_run(run, grader=grader, checks=checks)


def verify_run(run: Run, *, grader: str | None = None, checks: Sequence[Check] = ()) -> Sampled:
    """Check one run: its record, its rows, and every file beside them.

    The bytes of every part must be as its name says; the record must match the folder; the digest
    of the questions the one that the manifest pins; each row must be there once, none missing that
    was asked for; every file beside the samples as its ``Artifact`` says. ``grader`` is the version
    that verdicts must be by, ``checks`` are those of other rooms."""
    sampled = Sampled(run, {})
    try:
        source = run.record.made_with.get("imported_from")
        sampled.present = store.present_of(store.stream_samples(run))
    except InputError as error:
        sampled.problems.append(str(error))
        return sampled
    samples = store.count_present(sampled.present)
    sampled.facts.append(f"{samples:,} samples of {len(sampled.present):,} questions")
    if source:
        sampled.facts.append(f"imported from {source}, so its weights and prompts are not known")
    for wrong in [
        _differences(sampled),
        *(_file(path, sampled, grader) for path in sorted(run.folder.glob("[!.]*"))),
        *(check(sampled) for check in checks),
    ]:
        try:
            sampled.problems += wrong
        except InputError as error:
            sampled.problems.append(str(error))
    return sampled


def _differences(sampled: Sampled) -> Iterator[str]:
    """Compare a run with the manifest, the questions, and what was asked for."""
    run = sampled.run
    identity = run.identity
    present = sampled.present
    split = load_dataset(identity.dataset).splits.get(identity.split)
    pinned = split.digest if split else f"no split {identity.split!r}"
    if pinned not in (None, identity.questions):
        yield f"made with the questions {identity.questions[:16]}, the manifest has {pinned[:16]}"
    sizes = [*map(int.bit_count, present.values())]
    missing = lacking(sizes, open_ask(run, sizes))
    if missing and identity.engine != IMPORTED:
        yield f"{missing} samples missing, which `capcal sample` draws"
    if not at_hand(identity.dataset, identity.split):
        sampled.facts.append("questions not looked at, for they are not on this machine")
        return
    questions = load_questions(identity.dataset, identity.split)
    sampled.questions.update({question.id: question for question in questions})
    if questions_digest(questions) != identity.questions:
        yield "the questions at hand are not those that were sampled"
    if strangers := sorted(present.keys() - sampled.questions.keys()):
        yield f"{len(strangers)} questions that the data set does not have: {some(strangers)}"


def _file(path: Path, sampled: Sampled, grader: str | None) -> Iterator[str]:
    """Check a file beside the samples as its description says; that it is a regular one, of
    all.
    """
    artifact = artifact_of(path.name)
    if not files.exists(path) or artifact is None:
        return
    key = [*artifact.key]
    questions: set[str] = set()
    graded = store.Present()
    wrong = twice = 0
    with artifact.open(path) as file:
        made = file.schema_arrow.metadata or {}
        for rows in files.iterate(file, [*key, artifact.value]):
            questions |= {*rows["question_id"]}
            wrong += int((~artifact.is_sound(rows[artifact.value])).sum())
            twice += int(rows.duplicated(key).sum())
            if artifact is VERDICTS:
                store.add_keys(graded, rows)
    if wrong:
        yield f"{path.name}: {wrong} values that no {artifact.value} can have"
    if twice:
        yield f"{path.name}: {twice} rows are there twice"
    strange = questions - sampled.present.keys()
    if artifact.whole:
        strange |= sampled.present.keys() - questions
    if strange or (artifact is VERDICTS and graded != sampled.present):
        named = some(sorted(map(str, strange)))
        yield f"{path.name}: not of what was sampled, or not of all of it: {named}"
    if artifact is VERDICTS:
        version = made[b"grader"].decode()
        if grader and version not in (grader, GIVEN):
            yield f"graded by version {version} of the grader, now {grader}: grade again"
        digest = store.digest_of_graded(sampled.run, graded).encode()
        if made.get(b"rows", digest) != digest:
            yield "the verdicts were made from other samples than these: grade again"
