"""Check that a run is complete and matches its record."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from capcal_lib.errors import InputError
from capcal_lib.manifests import load_dataset
from capcal_lib.questions import at_hand, load_questions, questions_digest
from capcal_lib.runs import files, store
from capcal_lib.runs.artifacts import GIVEN, VERDICTS, artifact_of
from capcal_lib.runs.run import PARTS, RECORD, Run, open_runs, store_option
from capcal_lib.runs.sessions import open_ask

Check = Callable[[Run], Iterable[str]]  # gives what is wrong with a run
NOT_OF_SAMPLED = "not of what was sampled, or not of all of it"


@dataclass
class Checked:
    """The result of checking one run."""

    run: Run
    problems: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)  # what was looked at, and what could not be

    def __str__(self) -> str:
        """Spell the result in one line."""
        return f"{self.run}: {'; '.join(self.problems) or 'ok, ' + '; '.join(self.facts)}"


def verify_store(
    folder: Path,
    model: str | None = None,
    dataset: str | None = None,
    *,
    grader: str | None = None,
    checks: Sequence[Check] = (),
) -> Iterator[Checked]:
    """Check each run of a store, or those of a model or data set, as ``verify_run`` does; without
    any it is refused. A folder of samples without a record, which nothing else takes for a run, is
    one here.
    """
    runs = open_runs(folder, model=model, dataset=dataset)
    runs += _without_record(folder, model, dataset)
    if not runs:
        raise InputError(f"{folder} has no run to check; see: capcal status{store_option(folder)}")
    for run in runs:
        yield verify_run(run, grader=grader, checks=checks)


def _without_record(store_folder: Path, model: str | None, dataset: str | None) -> list[Run]:
    """List the folders of a store, or of a model or data set, that have samples and no record."""
    folders = sorted({part.parent for part in store_folder.glob(f"*/*-*/*/{PARTS}")})
    wanted = {"model": model, "dataset": dataset}
    return [
        Run(folder)
        for folder in folders
        if not (folder / RECORD).exists()
        and all(name in (None, Run(folder).place[part]) for part, name in wanted.items())
    ]


def verify_run(run: Run, *, grader: str | None = None, checks: Sequence[Check] = ()) -> Checked:
    """Check one run: its record, its rows, and every file beside them.

    Every part's bytes must match its name; the record must match the folder; the digest of the
    questions must match the manifest; each row must be there once, and no requested row may be
    missing; every file beside the samples must match its ``Artifact``. Verdicts must come from the
    version ``grader``; ``checks`` are further checks from other rooms."""
    checked = Checked(run)
    try:
        source = run.record.made_with.get("imported_from")
        present = store.present_of(store.stream_samples(run))
    except InputError as error:
        checked.problems.append(str(error))
        return checked
    questions = present.questions
    checked.facts.append(f"{len(present):,} samples of {len(questions):,} questions")
    if source:
        checked.facts.append(f"imported from {source}, so its weights and prompts are not known")
    for wrong in [
        _differences(checked, present),
        *(_file(path, run, present, grader) for path in files.list_files(run.folder, "[!.]*")),
        *(check(run) for check in checks),
    ]:
        try:
            checked.problems += wrong
        except InputError as error:
            checked.problems.append(str(error))
    return checked


def _differences(checked: Checked, present: store.Present) -> Iterator[str]:
    """Compare a run with the manifest, the questions, and what was asked for."""
    identity = checked.run.identity
    split = load_dataset(identity.dataset).splits.get(identity.split)
    pinned = split.digest if split else f"no split {identity.split!r}"
    if pinned not in (None, identity.questions):
        yield f"made with the questions {identity.questions[:16]}, the manifest has {pinned[:16]}"
    _, missing = open_ask(checked.run, present)
    if missing:
        yield f"{missing} samples missing, which `capcal sample` draws"
    if not at_hand(identity.dataset, identity.split):
        checked.facts.append("questions not looked at, for they are not on this machine")
        return
    questions = load_questions(identity.dataset, identity.split)
    if questions_digest(questions) != identity.questions:
        yield "the questions at hand have changed since they were sampled"
    if strangers := present.questions - {question.id for question in questions}:
        yield f"{len(strangers)} questions that the data set does not have, as {min(strangers)}"


def _file(path: Path, run: Run, present: store.Present, grader: str | None) -> Iterator[str]:
    """Check a file beside the samples as its description says; that it is a regular one, of
    all.
    """
    files.refuse_irregular(path)
    artifact = artifact_of(path.name)
    if artifact is None:
        return
    if artifact is VERDICTS:
        yield from _verdicts(path, run, present, grader)
        return
    questions: set[str] = set()
    for table in artifact.batches(path, ["question_id"]):
        questions.update(table["question_id"].to_pylist())
    sampled = present.questions
    strange = sampled ^ questions if artifact.whole else questions - sampled
    if strange:
        yield f"{path.name}: {NOT_OF_SAMPLED}: {min(strange)}"


def _verdicts(path: Path, run: Run, present: store.Present, grader: str | None) -> Iterator[str]:
    """Check that the verdicts cover all samples, and come from the current grader."""
    graded = store.Present()
    made: dict[bytes, bytes] = {}
    for table in VERDICTS.batches(path, VERDICTS.key):
        made = table.schema.metadata
        store.add_keys(graded, table.to_pandas())
    if graded != present:
        strange = graded.questions ^ present.questions
        yield f"{path.name}: {NOT_OF_SAMPLED}: {min(strange, default='')}"
    version = made[b"grader"].decode()
    if grader and version not in (grader, GIVEN):
        yield f"graded by version {version} of the grader, now {grader}: grade again"
    digest = store.digest_of_graded(run, graded).encode()
    if made.get(b"rows", digest) != digest:
        yield "the verdicts were made from other samples than these: grade again"
