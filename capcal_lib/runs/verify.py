"""Check that a run is what it says it is, and whole."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.manifests import load_dataset
from capcal_lib.questions import Question, at_hand, load_questions, questions_digest, subset
from capcal_lib.runs import store as runs
from capcal_lib.runs.artifacts import (
    NAMED,
    PART,
    VERDICTS,
    Artifact,
    Sampled,
    artifact_of,
    some,
    some_keys,
)
from capcal_lib.runs.files import NO_FILE, SUMS, files_of, read_bytes, read_sums, record_digests
from capcal_lib.runs.run import Identity, Run, is_folder
from capcal_lib.runs.samples import IMPORTED
from capcal_lib.runs.sessions import Ask, read_sessions

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
    store: Path,
    model: str | None = None,
    dataset: str | None = None,
    *,
    grader: str | None = None,
    checks: Sequence[Check] = (),
    record: bool = False,
) -> Iterator[Checked]:
    """Check each run of a store, or those of a model or data set, as ``verify_run`` does; without
    any it is refused.
    """
    if not is_folder(store):
        raise InputError(f"{store} is not a folder; name a run store with --store")
    found = [
        Run(folder)
        for folder in sorted(filter(Path.is_dir, store.glob("*/*/[!.]*")))  # a record or not
        if model in (None, folder.parts[-3])
        and (dataset is None or folder.parts[-2].rpartition("-")[0] == dataset)
    ]
    if not found:
        raise InputError(f"no run to check in {store}; see: capcal status --store {store}")
    for run in found:
        yield verify_run(run, grader=grader, checks=checks, record=record)


def verify_run(
    run: Run,
    *,
    grader: str | None = None,
    checks: Sequence[Check] = (),
    record: bool = False,
) -> Checked:
    """Check one run: its record and digests, its rows, and every file beside them.

    Every file must have the digest that is on record; the record must match the folder; the digest
    of the questions the one that the manifest pins; each row must be there once, none missing that
    was asked for; tokens must be positive; every file beside the samples as its ``Artifact`` says.
    ``grader`` is the version that verdicts must be by, ``checks`` are those of other rooms;
    ``record`` takes down the digests of files that have none, where nothing else is wrong."""
    problems: list[str] = []
    try:
        made = run.record
        samples = _samples(run, problems)
    except InputError as error:
        return Checked(run, (str(error).removeprefix(f"{run}: "),), ())
    identity = made.identity
    graded = run.has(VERDICTS)
    versions = [f"{name} {made.made_with[name]}" for name in VERSIONS if name in made.made_with]
    facts = [
        f"{len(samples):,} samples of {samples['question_id'].nunique():,} questions",
        ", ".join(versions),
    ]
    questions = _questions(identity, facts)
    if identity.engine == IMPORTED:
        source = made.made_with.get("imported_from")
        facts.append(f"imported from {source}, so its weights and prompts are not known")
    if not graded:
        facts.append("not graded")
    sampled = Sampled(
        run=run,
        samples=samples,
        questions=questions,
        grader=grader,
        facts=facts,
    )
    found = [
        _digests(sampled),
        _completeness(sampled),
        *(_file(path, sampled) for path in files_of(run.folder)),
        *(check(sampled) for check in checks),
    ]
    problems += [problem for each in found for problem in _plain(each)]
    problems += _plain(_on_record(run, record and not problems))
    return Checked(run, tuple(problems), tuple(filter(None, facts)))


def _plain(found: Iterator[str]) -> Iterator[str]:
    """Say what is wrong; a file that cannot be read is one more thing."""
    try:
        yield from found
    except InputError as error:
        yield str(error)


def _samples(run: Run, problems: list[str]) -> pd.DataFrame:
    """Read the key and the digest of each row, and note what is wrong with the rows."""
    identity = run.identity
    # 0 where a log or a server does not say
    least = 0 if identity.engine in (IMPORTED, "openai") else 1
    tokens = {
        "prompt_tokens": identity.sampling.context_tokens,
        "completion_tokens": identity.sampling.max_tokens,
    }

    def check(rows: pd.DataFrame) -> pd.DataFrame:
        wrong = {
            f"{name} outside {least} to {most}": ~rows[name].between(least, most)
            for name, most in tokens.items()
        }
        wrong["an unknown finish"] = ~rows["finish_reason"].isin(["stop", "length"])
        wrong["no response"] = rows["response"].isna()
        return rows[runs.KEY].assign(digest=runs.row_digests(rows), **wrong)

    samples = runs.gather_samples(run, check).sort_values(runs.KEY, ignore_index=True)
    for words in samples.columns.drop([*runs.KEY, "digest"]):
        found = samples[samples.pop(words)]
        if len(found):
            problems.append(f"{len(found)} rows with {words}: {some_keys(found, runs.KEY)}")
    twice = runs.count_rows(run) - len(samples)
    if twice:
        problems.append(f"{twice} rows are there twice")
    if lines := runs.read_journal(run).damaged:
        problems.append(
            f"{lines} damaged lines in the journal; their rows are drawn again with: capcal sample"
        )
    damaged = sorted(path.name for path in run.folder.glob("*.damaged"))
    if damaged:
        problems.append(
            f"set aside as damaged: {some(damaged)}; delete it once its rows are drawn again"
        )
    return samples


def _on_record(run: Run, record: bool) -> Iterator[str]:
    """Compare the names of the files with those on record; whoever reads a file has compared its
    digest.
    """
    if record:
        record_digests(run.folder)
    sums = read_sums(run.folder)
    there = {path.name for path in files_of(run.folder)}
    expected = {
        name for name, known in sums.items() if NO_FILE not in known
    }  # a removal may have been stopped
    if not sums:
        yield (
            f"no digests on record, which is no {SUMS}; take them down with: capcal verify --record"
        )
        return
    for words, names in (
        ("without a digest on record", there - sums.keys()),
        ("gone", expected - there),
    ):
        if names:
            yield f"{words}: {some(sorted(names))}"


def _questions(run: Identity, facts: list[str]) -> dict[str, Question] | None:
    """Load the questions of a run, where they are on this machine."""
    try:
        if at_hand(run.dataset, run.split):
            return {question.id: question for question in load_questions(run.dataset, run.split)}
        facts.append("questions not looked at, for they are not on this machine")
    except InputError as error:
        facts.append(f"questions not looked at: {error}")
    return None


def _digests(sampled: Sampled) -> Iterator[str]:
    record = sampled.run.record
    questions = sampled.questions
    identity = record.identity
    split = load_dataset(identity.dataset).splits.get(identity.split)
    if split is None:
        yield f"the manifest has no split {identity.split!r}"
    elif split.digest is not None and split.digest != identity.questions:
        made = identity.questions[:16]
        pinned = split.digest[:16]
        yield f"made with the questions {made}, the manifest has {pinned}"
    if questions is not None and questions_digest(questions.values()) != identity.questions:
        yield "the questions at hand are not those that were sampled"
    if "questions" not in record.made_with:
        yield "the record does not say whether the questions matched the manifest"


def _completeness(sampled: Sampled) -> Iterator[str]:
    """Compare with what the sessions asked for; without any, each question must reach the largest
    index.

    Imported samples may be of any number.
    """
    indices = sampled.samples.groupby("question_id")["sample_index"]
    there = {str(name): set(group) for name, group in indices}
    asks = [session.ask for session in read_sessions(sampled.run)]
    imported = sampled.run.identity.engine == IMPORTED
    most = 0 if asks or imported else max(sampled.samples["sample_index"], default=-1) + 1
    ks = dict.fromkeys(there, most)
    most_first = sorted(there, key=lambda name: len(there[name]), reverse=True)
    for ask in asks:
        if sampled.questions is None and len(there) < ask.questions:
            yield f"{ask.questions} questions were asked, {len(there)} are there"
        for name, k in _asked_for(sampled, ask, most_first).items():
            ks[name] = max(ks.get(name, 0), k)
    # Gaps count also below what was asked for: a question has the first of its samples, or none.
    missing = 0
    named = list[str]()
    for name, k in ks.items():
        have = there.get(name, set())
        until = max(k, 1 + max(have, default=-1))
        missing += until - len(have)
        if until > len(have) and len(named) <= NAMED:
            gaps = (index for index in range(until) if index not in have)
            named += [f"{name} {index}" for index in islice(gaps, NAMED)]
    if missing:
        yield f"{missing} samples missing: {some(named)}"
    strangers = sorted(there.keys() - sampled.questions.keys()) if sampled.questions else []
    if strangers:
        yield f"{len(strangers)} questions that the data set does not have: {some(strangers)}"


def _asked_for(sampled: Sampled, ask: Ask, most_first: list[str]) -> dict[str, int]:
    """Return how many samples a session asked for, by question.

    Where the questions are not at hand, they are taken to be those with most samples."""
    names = most_first[: ask.questions]
    if sampled.questions:
        names = [each.id for each in subset(tuple(sampled.questions.values()), ask.questions)]
    return dict.fromkeys(names, ask.k)


def _file(path: Path, sampled: Sampled) -> Iterator[str]:
    """Check a file beside the samples as its description says."""
    artifact = artifact_of(path.name)
    if artifact is None:
        if not path.name.startswith("samples-"):  # these are read above
            read_bytes(path)
        return
    table = artifact.read(path)
    key = sampled.run.identity.key
    other = (table.schema.metadata or {}).get(b"run", key.encode()).decode()
    if other != key:
        yield f"{path.name} was made for run {other}"
    title = artifact.label(path.name)
    rows = table.select(list(artifact.key)).to_pandas()
    twice = rows[rows.duplicated()]
    if len(twice):
        yield f"{len(twice)} {title} are there twice: {some_keys(twice, list(artifact.key))}"
    yield from _cover(artifact, title, rows, sampled.samples, PART in path.name)
    yield from artifact.check(table, sampled)


def _cover(
    artifact: Artifact, title: str, rows: pd.DataFrame, samples: pd.DataFrame, unfinished: bool
) -> Iterator[str]:
    """Compare what a file has rows of with what was sampled."""
    key = [name for name in runs.KEY if name in artifact.key]
    sampled = samples[key].drop_duplicates()
    sides = rows[key].drop_duplicates().merge(sampled, on=key, how="outer", indicator=True)
    alone, lacking = (sides[sides["_merge"] == side] for side in ("left_only", "right_only"))
    if len(alone):
        yield f"{len(alone)} {title} of what was not sampled: {some_keys(alone, key)}"
    if len(lacking) and artifact.whole and not unfinished:
        yield f"{len(lacking)} {title} missing: {some_keys(lacking, key)}"
