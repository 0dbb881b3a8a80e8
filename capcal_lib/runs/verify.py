"""Check that a run is complete and matches its record."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from capcal_lib.errors import InputError
from capcal_lib.manifests import load_dataset
from capcal_lib.questions import at_hand, load_questions, questions_digest
from capcal_lib.runs import store
from capcal_lib.runs.artifacts import GIVEN, VERDICTS, artifact_of
from capcal_lib.runs.run import Run, open_runs, store_option
from capcal_lib.runs.sessions import open_ask

Check = Callable[[Run], Iterable[str]]  # gives what is wrong with a run


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
    any it is refused.
    """
    runs = open_runs(folder, model=model, dataset=dataset)
    if not runs:
        raise InputError(f"{folder} has no run to check; see: capcal status{store_option(folder)}")
    for run in runs:
        yield verify_run(run, grader=grader, checks=checks)


def verify_run(run: Run, *, grader: str | None = None, checks: Sequence[Check] = ()) -> Checked:
    """Check one run: its record, its rows, and every file beside them.

    Every part's bytes must match its name; the record must match the folder; the digest of the
    questions must match the manifest; no requested row may be missing; files beside the samples
    must be of them. Verdicts must come from the version ``grader``; ``checks`` are further checks
    from other rooms."""
    checked = Checked(run)
    try:
        source = run.record.made_with.get("imported_from")
        store.refuse_differing([run])
        present = store.present_keys(run)
    except InputError as error:
        checked.problems.append(str(error))
        return checked
    questions = {name for name, _ in present}
    checked.facts.append(f"{len(present):,} samples of {len(questions):,} questions")
    if source:
        checked.facts.append(f"imported from {source}, so its weights and prompts are not known")
    every = [
        _questions(checked, questions),
        _asked(run, present),
        _verdicts(run, present, grader),
        *(_beside(path, questions) for path in sorted(run.folder.glob("[!.]*.parquet"))),
        *(check(run) for check in checks),
    ]
    for problems in every:
        try:
            checked.problems += problems
        except InputError as error:
            checked.problems.append(str(error))
    return checked


def _questions(checked: Checked, sampled: set[str]) -> Iterator[str]:
    """Compare the questions of a run with the manifest, and with those at hand."""
    identity = checked.run.identity
    split = load_dataset(identity.dataset).splits.get(identity.split)
    pinned = split.digest if split else f"no split {identity.split!r}"
    if pinned not in (None, identity.questions):
        yield f"made with the questions {identity.questions[:16]}, the manifest has {pinned[:16]}"
    if not at_hand(identity.dataset, identity.split):
        checked.facts.append("questions not looked at, for they are not on this machine")
        return
    questions = load_questions(identity.dataset, identity.split)
    if questions_digest(questions) != identity.questions:
        yield "the questions at hand have changed since they were sampled"
    if strangers := sampled - {question.id for question in questions}:
        yield f"{len(strangers)} questions that the data set does not have, as {min(strangers)}"


def _asked(run: Run, present: store.Keys) -> Iterator[str]:
    _, missing = open_ask(run, present)
    if missing:
        yield f"{missing} samples missing, which `capcal sample` draws"


def _verdicts(run: Run, present: store.Keys, grader: str | None) -> Iterator[str]:
    """Check that the verdicts cover all samples, and come from the current grader."""
    if not run.has(VERDICTS):
        return
    graded = set(store.keys_of(run.read(VERDICTS).to_pandas()))
    made = run.made(VERDICTS)
    version = made[b"grader"].decode()
    if graded != present:
        yield f"{len(graded ^ present):,} verdicts without a sample, or samples without a verdict"
    if grader and version not in (grader, GIVEN):
        yield f"graded by version {version} of the grader, now {grader}: grade again"
    digest = store.digest_of_graded(run, graded).encode()
    if made.get(b"rows", digest) != digest:
        yield "the verdicts were made from other samples than these: grade again"


def _beside(path: Path, sampled: set[str]) -> Iterator[str]:
    """Check that a file beside the samples is of the sampled questions, and of all of them."""
    artifact = artifact_of(path.name)
    if artifact is None:
        return
    questions = set(artifact.read(path)["question_id"].to_pylist())
    strange = sampled ^ questions if artifact.whole else questions - sampled
    if strange:
        yield f"{path.name}: not of what was sampled, or not of all of it: {min(strange)}"
