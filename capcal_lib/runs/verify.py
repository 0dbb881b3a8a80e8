"""Check that a run is what it says it is, and whole."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from os.path import isdir
from pathlib import Path

import numpy as np
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.manifests import load_dataset
from capcal_lib.questions import Question, at_hand, load_questions, questions_digest, subset
from capcal_lib.runs import store as runs
from capcal_lib.runs.artifacts import (
    GIVEN,
    NAMED,
    OUTCOMES,
    PART,
    VERDICTS,
    Artifact,
    Sampled,
    artifact_of,
    matrix,
    some,
    some_keys,
)
from capcal_lib.runs.files import open_parquet, read_batches, size_of
from capcal_lib.runs.run import Identity, Run
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
) -> Iterator[Checked]:
    """Check each run of a store, or those of a model or data set, as ``verify_run`` does; without
    any it is refused.
    """
    if not isdir(store):
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
        yield verify_run(run, grader=grader, checks=checks)


def verify_run(
    run: Run,
    *,
    grader: str | None = None,
    checks: Sequence[Check] = (),
) -> Checked:
    """Check one run: its record, its rows, and every file beside them.

    The bytes of every part must be as its name says; the record must match the folder; the digest
    of the questions the one that the manifest pins; each row must be there once, none missing that
    was asked for; every file beside the samples as its ``Artifact`` says. ``grader`` is the version
    that verdicts must be by, ``checks`` are those of other rooms."""
    problems: list[str] = []
    try:
        made = run.record
        present, digest = _count(run, problems)
    except InputError as error:
        return Checked(run, (str(error).removeprefix(f"{run}: "),), ())
    identity = made.identity
    graded = run.has(VERDICTS)
    versions = [f"{name} {made.made_with[name]}" for name in VERSIONS if name in made.made_with]
    facts = [
        f"{_total(present):,} samples of {len(present):,} questions",
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
        present=present,
        digest=f"{digest % 2**64:016x}",
        questions=questions,
        grader=grader,
        facts=facts,
    )
    found = [
        _digests(sampled),
        _completeness(sampled),
        *(_file(path, sampled) for path in sorted(run.folder.glob("[!.]*"))),
        *(check(sampled) for check in checks),
    ]
    problems += [problem for each in found for problem in _plain(each)]
    return Checked(run, tuple(problems), tuple(filter(None, facts)))


def _plain(found: Iterator[str]) -> Iterator[str]:
    """Say what is wrong; a file that cannot be read is one more thing."""
    try:
        yield from found
    except InputError as error:
        yield str(error)


def _count(run: Run, problems: list[str]) -> tuple[runs.Present, int]:
    """Return which samples there are and the sum of their digests, and note what is wrong with the
    rows.
    """
    identity = run.identity
    # 0 where a log or a server does not say
    least = 0 if identity.engine in (IMPORTED, "openai") else 1
    tokens = {
        "prompt_tokens": identity.sampling.context_tokens,
        "completion_tokens": identity.sampling.max_tokens,
    }
    present = runs.Present()
    digest = 0
    numbers: Counter[str] = Counter()
    named: dict[str, str] = {}
    for rows in runs.stream_samples(run):
        runs.add_keys(present, pa.Table.from_pandas(rows[runs.KEY], preserve_index=False))
        digest += int(runs.row_digests(rows).sum())
        wrong = {
            f"{name} outside {least} to {most}": ~rows[name].between(least, most)
            for name, most in tokens.items()
        }
        wrong["an unknown finish"] = ~rows["finish_reason"].isin(["stop", "length"])
        wrong["no response"] = rows["response"].isna()
        for words, bad in wrong.items():
            if bad.any():
                numbers[words] += int(bad.sum())
                named.setdefault(words, some_keys(rows[bad], runs.KEY))
    problems += [f"{number} rows with {words}: {named[words]}" for words, number in numbers.items()]
    damaged = sorted(path.name for path in run.folder.glob("*.damaged"))
    if damaged:
        problems.append(
            f"set aside as damaged: {some(damaged)}; delete it once its rows are drawn again"
        )
    return present, digest


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
    there = sampled.present
    asks = [session.ask for session in read_sessions(sampled.run)]
    imported = sampled.run.identity.engine == IMPORTED
    most = 0 if asks or imported else max((bits.bit_length() for bits in there.values()), default=0)
    ks = dict.fromkeys(there, most)
    most_first = sorted(there, key=lambda name: there[name].bit_count(), reverse=True)
    for ask in asks:
        if sampled.questions is None and len(there) < ask.questions:
            yield f"{ask.questions} questions were asked, {len(there)} are there"
        for name, k in _asked_for(sampled, ask, most_first).items():
            ks[name] = max(ks.get(name, 0), k)
    # Gaps count also below what was asked for: a question has the first of its samples, or none.
    missing = 0
    named = list[str]()
    for name, k in sorted(ks.items()):
        bits = there.get(name, 0)
        until = max(k, bits.bit_length())
        missing += until - bits.bit_count()
        if until > bits.bit_count() and len(named) <= NAMED:
            gaps = (index for index in range(until) if not bits >> index & 1)
            named += [f"{name} {index}" for index in islice(gaps, NAMED)]
    if missing:
        yield f"{missing} samples missing: {some(named)}"
    strangers = sorted(there.keys() - sampled.questions.keys()) if sampled.questions else []
    if strangers:
        yield f"{len(strangers)} questions that the data set does not have: {some(strangers)}"


def _asked_for(sampled: Sampled, ask: Ask, most_first: list[str]) -> dict[str, int]:
    """Return how many samples a session asked for, by question.

    Where they were named or are not at hand, they are taken to be those with most samples."""
    names = most_first[: ask.questions]
    if sampled.questions and not ask.named:
        names = [each.id for each in subset(tuple(sampled.questions.values()), ask.questions)]
    return dict.fromkeys(names, ask.k)


def _file(path: Path, sampled: Sampled) -> Iterator[str]:
    """Check a file beside the samples as its description says; that it is a regular one, of
    all.
    """
    size_of(path)
    artifact = artifact_of(path.name)
    if artifact is VERDICTS:
        yield from _verdicts(path, sampled)
    elif artifact:
        yield from _rows(path, artifact, sampled)


def _verdicts(path: Path, sampled: Sampled) -> Iterator[str]:
    """Check the verdicts, which may be as many as the samples."""
    with open_parquet(path) as file:
        schema = file.schema_arrow
        if not VERDICTS.fits(schema.empty_table()):
            yield f"{path.name} is not a file of `capcal grade`; delete it and grade again"
            return
    made = {name: text.decode() for name, text in (schema.metadata or {}).items()}
    graded = runs.Present()
    twice = 0
    unknown = set[str]()
    for table in read_batches(path, [*runs.KEY, "verdict"]):
        twice += runs.add_keys(graded, table).count(False)
        unknown |= set(table["verdict"].unique().to_pylist()) - OUTCOMES
    if twice:
        yield f"{twice} verdicts are there twice"
    if unknown:
        yield f"unknown verdicts: {some(sorted(map(str, unknown)))}"
    whole = True
    for words, one, other in (
        ("of what was not sampled", graded, sampled.present),
        ("missing", sampled.present, graded),
    ):
        rest = {name: bits & ~other.get(name, 0) for name, bits in one.items()}
        if number := _total(rest):
            whole = False
            first = [
                f"{name} {bits.bit_length() - 1}" for name, bits in sorted(rest.items()) if bits
            ]
            yield f"{number} verdicts {words}: {some(first)}"
    version = made[b"grader"]
    if sampled.grader and version not in (sampled.grader, GIVEN):
        yield f"graded by version {version} of the grader, now {sampled.grader}: grade again"
    digest = (
        sampled.digest
        if whole
        else runs.digest_of_graded(sampled.run, read_batches(path, runs.KEY))
    )
    if made.get(b"rows", digest) != digest:
        yield "the verdicts were made from other samples than these: grade again"


def _rows(path: Path, artifact: Artifact, sampled: Sampled) -> Iterator[str]:
    """Check a file with rows of questions."""
    table = artifact.read(path)
    title = artifact.label(path.name)
    rows = table.select(list(artifact.key)).to_pandas()
    if twice := int(rows.duplicated().sum()):
        named = some_keys(rows[rows.duplicated()], list(artifact.key))
        yield f"{twice} {title} are there twice: {named}"
    there = set(rows["question_id"])
    alone = sorted(there - sampled.present.keys())
    lacking = sorted(sampled.present.keys() - there)
    if alone:
        yield f"{len(alone)} {title} of what was not sampled: {some(alone)}"
    if lacking and artifact.whole and PART not in path.name:
        yield f"{len(lacking)} {title} missing: {some(lacking)}"
    values = table[artifact.value]
    if artifact.value == "verdict":
        if unknown := set(values.unique().to_pylist()) - OUTCOMES:
            yield f"unknown verdicts: {some(sorted(map(str, unknown)))}"
    elif pa.types.is_nested(values.type):
        if not np.isfinite(matrix(table, artifact.value)).all():
            yield f"{title} are not all finite"
    else:
        numbers = values.to_pandas()
        if wrong := int((numbers.notna() & ~numbers.between(0, 1)).sum()):
            yield f"{wrong} {title} out of range; a confidence lies in [0, 1]"


def _total(present: runs.Present) -> int:
    return sum(bits.bit_count() for bits in present.values())
