"""Check that a run is what it says it is, and whole."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from capcal_lib.errors import InputError
from capcal_lib.manifests import load_dataset
from capcal_lib.questions import at_hand, load_questions, questions_digest
from capcal_lib.runs import files, store
from capcal_lib.runs.artifacts import GIVEN, VERDICTS, Sampled, artifact_of, some
from capcal_lib.runs.run import Run, open_runs
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
    sampled = Sampled(run)
    try:
        made_with = run.record.made_with
        for rows in store.stream_samples(run):
            store.add_keys(sampled.present, rows)
            sampled.keys += int(store.hash_rows(rows[store.KEY]).sum())
            sampled.digest += int(store.row_digests(rows).sum())
    except InputError as error:
        return Checked(run, (*problems, str(error)), ())
    number = sum(bits.bit_count() for bits in sampled.present.values())
    versions = [f"{name} {made_with[name]}" for name in VERSIONS if name in made_with]
    sampled.facts += [f"{number:,} samples of {len(sampled.present):,} questions", *versions]
    if source := made_with.get("imported_from"):
        sampled.facts.append(f"imported from {source}, so its weights and prompts are not known")
    if not run.has(VERDICTS):
        sampled.facts.append("not graded")
    for found in [
        _differences(sampled),
        *(_file(path, sampled, grader) for path in sorted(run.folder.glob("[!.]*"))),
        *(check(sampled) for check in checks),
    ]:
        try:
            problems += found
        except InputError as error:
            problems.append(str(error))
    return Checked(run, tuple(problems), tuple(sampled.facts))


def _differences(sampled: Sampled) -> Iterator[str]:
    """Compare a run with the manifest, the questions, and what was asked for."""
    identity = sampled.run.identity
    present = sampled.present
    split = load_dataset(identity.dataset).splits.get(identity.split)
    if split is None:
        yield f"the manifest has no split {identity.split!r}"
    elif split.digest not in (None, identity.questions):
        made, pinned = identity.questions[:16], str(split.digest)[:16]
        yield f"made with the questions {made}, the manifest has {pinned}"
    if "questions" not in sampled.run.record.made_with:
        yield "the record does not say whether the questions matched the manifest"
    missing = lacking(present, asks_of(sampled.run, present))
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
    questions: set[str] = set()
    total = wrong = 0
    twice = False
    with files.open_parquet(path) as file:
        artifact.check(path, file.schema_arrow)
        made = {name: text.decode() for name, text in (file.schema_arrow.metadata or {}).items()}
        for rows in files.iterate(file, [*artifact.key, artifact.value]):
            questions |= {*rows["question_id"]}
            total += int(store.hash_rows(rows[[*artifact.key]]).sum())
            wrong += int((~artifact.is_sound(rows[artifact.value])).sum())
            twice |= bool(rows.duplicated([*artifact.key]).any())
    alone = questions - sampled.present.keys()
    lacks = sampled.present.keys() - questions if artifact.whole else set()
    same = artifact is not VERDICTS or (total - sampled.keys) % 2**64 == 0
    if wrong:
        yield f"{path.name}: {wrong} values that no {artifact.value} can have"
    if twice:
        yield f"{path.name}: some rows are there twice"
    if alone or lacks or not same:
        named = some(sorted(map(str, {*alone, *lacks})))
        yield f"{path.name}: not of what was sampled, or not of all of it: {named}"
    if artifact is VERDICTS:
        if grader and made[b"grader"] not in (grader, GIVEN):
            yield f"graded by version {made[b'grader']} of the grader, now {grader}: grade again"
        digest = f"{sampled.digest % 2**64:016x}"
        if same and made.get(b"rows", digest) != digest:
            yield "the verdicts were made from other samples than these: grade again"
