"""Check that a run is what it says it is, and whole."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from capcal_lib.confidence.of_run import CONFIDENCES
from capcal_lib.errors import InputError
from capcal_lib.grading import GRADER_VERSION, grade_many
from capcal_lib.grading.adaptive_sampling import ends_of
from capcal_lib.grading.judgements import FILE as JUDGEMENTS
from capcal_lib.grading.judgements import SCHEMA as JUDGED
from capcal_lib.grading.verdicts import GIVEN, OUTCOMES, digest_of_rows, read_verdicts
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.probes.coordinates import FILE as COORDINATES
from capcal_lib.probes.coordinates import read_coordinates
from capcal_lib.probes.features import FEATURES, states_of
from capcal_lib.questions import Question, at_hand, load_questions, questions_digest, subset
from capcal_lib.questions.prompts import answer_messages, prompt_digest
from capcal_lib.results.exact import FILE as EXACT
from capcal_lib.results.exact import read_exact
from capcal_lib.runs import files
from capcal_lib.runs import store as runs
from capcal_lib.runs.files import (
    SUMS,
    files_of,
    read_bytes,
    read_made,
    read_sums,
    read_table,
    record_digests,
)
from capcal_lib.runs.run import Identity, Run, is_folder
from capcal_lib.runs.samples import IMPORTED
from capcal_lib.runs.sessions import FILE as SESSIONS
from capcal_lib.runs.sessions import read_sessions
from capcal_lib.runs.stopping import Rule
from capcal_lib.sampling.weights import damaged_weights, pinned_digest

NAMED = 3  # how many of what is wrong are named
REGRADED = 1_000  # samples of a run
VERSIONS = ("capcal", "torch", "transformers", "vllm")


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
    deep: bool = False,
    record: bool = False,
) -> Iterator[Checked]:
    """Check each run of a store, or those of a model or data set, as ``verify_run`` does; without
    any it is refused.
    """
    if not is_folder(store):
        raise InputError(f"{store} is not a folder; name a run store with --store")
    found = [
        Run(folder)
        for folder in sorted(filter(Path.is_dir, store.glob("*/*/*")))  # with or without a record
        if model in (None, folder.parts[-3])
        and (dataset is None or folder.parts[-2].rpartition("-")[0] == dataset)
    ]
    if not found:
        raise InputError(f"no run to check in {store}; see: capcal status --store {store}")
    for run in found:
        yield verify_run(run, deep=deep, record=record)


def verify_run(run: Run, *, deep: bool = False, record: bool = False) -> Checked:
    """Check one run: its record and digests, its rows, and every file beside them.

    Every file must have the digest that is on record; the record must match the folder; the digests
    of weights and questions those that the manifests pin; each row must be there once, none missing
    that was asked for; tokens must be positive; verdicts must be those of the present grader and of
    these samples, one each; confidences and hidden states must be of this run, cover the questions,
    and be finite and in range. ``deep`` also grades a sample of the responses again; ``record``
    takes down the digests of files that have none, where nothing else is wrong."""
    problems: list[str] = []
    try:
        made = run.record
        samples = _samples(run, problems)
    except InputError as error:
        return Checked(run, (str(error).removeprefix(f"{run}: "),), ())
    identity, folder = made.identity, run.folder
    names, graded = set(samples["question_id"]), (folder / runs.VERDICTS).exists()
    versions = ", ".join(
        f"{name} {made.made_with[name]}" for name in VERSIONS if name in made.made_with
    )
    facts = [f"{len(samples):,} samples of {len(names):,} questions", versions]
    questions = _questions(identity, facts)
    if identity.engine == IMPORTED:
        facts.append(
            f"imported from {made.made_with.get('imported_from')}, so its weights and prompts are "
            "not known"
        )
    facts += [] if graded else ["not graded"]
    beside = [
        path
        for path in files_of(folder)
        if not re.fullmatch(rf"samples-.*|run\.json|{SESSIONS}", path.name)
    ]
    checks = [
        _digests(identity, questions, made.made_with),
        _completeness(run, samples, questions),
        *(_file(path, samples, names, identity, questions) for path in beside),
        *(
            [_verdicts_that_do_not_follow(run, questions, facts)]
            if deep and questions and graded
            else []
        ),
    ]
    problems += [problem for found in checks for problem in _plain(found)]
    problems += _plain(_on_record(folder, record and not problems))
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
    least = 0 if identity.engine == IMPORTED else 1  # 0 where a log does not say
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
            problems.append(f"{len(found)} rows with {words}: {_keys(found)}")
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
            f"set aside as damaged: {_some(damaged)}; delete it once its rows are drawn again"
        )
    return samples


def _on_record(folder: Path, record: bool) -> Iterator[str]:
    """Compare the names of the files with those on record; whoever reads a file has compared its
    digest.
    """
    if record:
        record_digests(folder)
    sums, there = read_sums(folder), {path.name for path in files_of(folder)}
    expected = {
        name for name, known in sums.items() if files.NO_FILE not in known
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
            yield f"{words}: {_some(sorted(names))}"


def _questions(run: Identity, facts: list[str]) -> dict[str, Question] | None:
    """Load the questions of a run, where they are on this machine."""
    try:
        if at_hand(run.dataset, run.split):
            return {question.id: question for question in load_questions(run.dataset, run.split)}
        facts.append("questions not looked at, for they are not on this machine")
    except InputError as error:
        facts.append(f"questions not looked at: {error}")
    return None


@cache
def _damaged_weights(model: str) -> list[str]:
    return damaged_weights(load_model(model))


def _digests(
    identity: Identity, questions: dict[str, Question] | None, made_with: dict[str, str]
) -> Iterator[str]:
    yield from _damaged_weights(identity.model)
    pin = pinned_digest(load_model(identity.model))
    if identity.engine != IMPORTED and pin is not None and pin != identity.weights:
        yield f"made with the weights {identity.weights[:16]}, the manifest has {pin[:16]}"
    split = load_dataset(identity.dataset).splits.get(identity.split)
    if split is None:
        yield f"the manifest has no split {identity.split!r}"
    elif split.digest is not None and split.digest != identity.questions:
        yield (
            f"made with the questions {identity.questions[:16]}, the manifest has "
            f"{split.digest[:16]}"
        )
    if questions is not None and questions_digest(questions.values()) != identity.questions:
        yield "the questions at hand are not those that were sampled"
    if "questions" not in made_with:
        yield "the record does not say whether the questions matched the manifest"


def _completeness(
    run: Run, samples: pd.DataFrame, questions: dict[str, Question] | None
) -> Iterator[str]:
    """Compare with what the sessions asked for; without any, each question must reach the largest
    index.

    Imported samples may be of any number.
    """
    there = {
        str(name): group.tolist() for name, group in samples.groupby("question_id")["sample_index"]
    }
    imported = run.identity.engine == IMPORTED
    asks = [session.ask for session in read_sessions(run)]
    ks = dict.fromkeys(
        there, 0 if asks or imported else max(samples["sample_index"], default=-1) + 1
    )
    for ask in asks:
        if questions is None and len(there) < ask.questions:
            yield f"{ask.questions} questions were asked, {len(there)} are there"
        asked = (
            [each.id for each in subset(tuple(questions.values()), ask.questions)]
            if questions
            else list(there)
        )
        wanted = dict.fromkeys(asked, ask.k)
        if ask.precision is not None:
            rule = Rule(ask.precision, ask.k)
            ends, _ = ends_of(run, rule)
            wanted = {name: ends.get(name, rule.looks[0]) for name in asked}
        ks |= {name: max(ks.get(name, 0), k) for name, k in wanted.items()}
    # Gaps count also below what was asked for: a question has the first of its samples, or none.
    missing, named = 0, list[str]()
    for name, k in ks.items():
        have = set(there.get(name, []))
        until = max(k, 1 + max(have, default=-1))
        lacking = until - len(have)
        missing += lacking
        if lacking and len(named) <= NAMED:
            gaps = (index for index in range(until) if index not in have)
            named += [f"{name} {index}" for index in islice(gaps, NAMED)]
    if missing:
        yield f"{missing} samples missing: {_some(named)}"
    strangers = sorted(there.keys() - questions.keys()) if questions else []
    if strangers:
        yield f"{len(strangers)} questions that the data set does not have: {_some(strangers)}"


def _file(
    path: Path,
    samples: pd.DataFrame,
    names: set[str],
    run: Identity,
    questions: dict[str, Question] | None,
) -> Iterator[str]:
    """Open a file beside the samples and check what is in it."""
    if path.suffix != ".parquet":
        read_bytes(path)
        return
    table = read_table(path)
    other = (table.schema.metadata or {}).get(b"run", run.key.encode()).decode()
    if other != run.key:
        yield f"{path.name} was made for run {other}"
    if path.name == runs.VERDICTS:
        yield from _verdicts(Run(path.parent), table, samples)
    elif path.name.startswith("confidence-"):
        table = read_made(path, CONFIDENCES, "capcal confidence")
        yield from _confidences(table, path.stem.removeprefix("confidence-"), names)
    elif path.name.startswith("features"):
        yield from _features(table, path.name, names, run, questions)
    elif path.name == EXACT:
        yield from _exact(Run(path.parent), names)
    elif path.name == COORDINATES:
        kept = read_coordinates(Run(path.parent))
        yield from _cover("coordinates", kept.question_ids, names)
        if not np.isfinite(kept.points).all():
            yield "coordinates are not all finite"
    elif path.name == JUDGEMENTS:
        table = read_made(path, JUDGED, "capcal judge")
        yield from _strangers("judgements", table["question_id"].to_pylist(), names)
        yield from _unknown("verdicts of a judge", table)


def _verdicts(run: Run, table: pa.Table, samples: pd.DataFrame) -> Iterator[str]:
    verdicts = read_verdicts(run)
    version = table.schema.metadata[b"grader"].decode()
    if version not in (GRADER_VERSION, GIVEN):
        yield f"graded by version {version} of the grader, now {GRADER_VERSION}: grade again"
    twice = verdicts[verdicts.duplicated(runs.KEY)]
    if len(twice):
        yield f"{len(twice)} verdicts are there twice: {_keys(twice)}"
    sides = verdicts[runs.KEY].merge(samples, on=runs.KEY, how="outer", indicator=True)
    for side, words in (
        ("left_only", "verdicts of samples that are not there"),
        ("right_only", "samples not graded"),
    ):
        alone = sides[sides["_merge"] == side]
        if len(alone):
            yield f"{len(alone)} {words}: {_keys(alone)}"
    rows = table.schema.metadata.get(b"rows")
    if rows is not None and not (sides["_merge"] == "left_only").any():  # said above
        digest = digest_of_rows(sides.loc[sides["_merge"] == "both", "digest"])
        if rows.decode() != digest:
            yield "the verdicts were made from other samples than these: grade again"
    yield from _unknown("verdicts", table)


def _unknown(what: str, table: pa.Table) -> Iterator[str]:
    if unknown := set(table["verdict"].to_pylist()) - OUTCOMES:
        yield f"unknown {what}: {_some(sorted(map(str, unknown)))}"


def _verdicts_that_do_not_follow(
    run: Run, questions: dict[str, Question], facts: list[str]
) -> Iterator[str]:
    if (read_table(run.folder / runs.VERDICTS).schema.metadata or {}).get(
        b"grader"
    ) == GIVEN.encode():
        return
    verdicts = read_verdicts(run)
    verdicts = verdicts[
        (verdicts["verdict"] != "not_scored") & verdicts["question_id"].isin(questions)
    ]
    chosen = verdicts.sample(min(REGRADED, len(verdicts)), random_state=0)
    rows = runs.gather_samples(run, lambda part: part.merge(chosen, on=runs.KEY), ["response"])
    answers = [questions[name].answer for name in rows["question_id"]]
    again = [said.verdict for said in grade_many(list(zip(rows["response"], answers, strict=True)))]
    wrong = rows[rows["verdict"] != pd.Series(again, rows.index, dtype=object)]
    facts.append(f"{len(rows):,} verdicts compared")
    if len(wrong):
        yield (
            f"{len(wrong)} of {len(rows)} verdicts do not follow from the responses: {_keys(wrong)}"
        )


def _confidences(table: pa.Table, method: str, names: set[str]) -> Iterator[str]:
    yield from _cover(f"{method} confidences", table["question_id"].to_pylist(), names)
    values = table["confidence"].to_pandas()
    wrong = int((values.notna() & ~values.between(0, 1)).sum())
    if wrong:
        yield f"{wrong} {method} confidences out of range; a confidence lies in [0, 1]"


def _features(
    table: pa.Table,
    name: str,
    names: set[str],
    run: Identity,
    questions: dict[str, Question] | None,
) -> Iterator[str]:
    ids, states, hidden_size = (
        table["question_id"].to_pylist(),
        states_of(table),
        load_model(run.model).hidden_size,
    )
    if name == FEATURES:
        yield from _cover("hidden states", ids, names)
    if bad := sum(not np.isfinite(each).all() for each in states):
        yield f"hidden states of {bad} questions are not finite"
    if hidden_size is not None and states.shape[-1] != hidden_size:
        yield f"hidden states of size {states.shape[-1]}, the manifest has {hidden_size}"
    if questions is not None and "prompt" in table.column_names:
        other = [
            question
            for question, prompt in zip(ids, table["prompt"].to_pylist(), strict=True)
            if question in questions
            and prompt != prompt_digest(answer_messages(questions[question], run.prompt_style))
        ]
        if other:
            yield (
                f"hidden states of {len(other)} questions are after other prompts: "
                f"{_some(sorted(other))}"
            )


def _exact(run: Run, names: set[str]) -> Iterator[str]:
    exact = read_exact(run)
    yield from _strangers("exact accuracies", exact.index, names)
    wrong = ~(exact["lower"].between(0, exact["upper"] + 1e-9) & (exact["upper"] <= 1 + 1e-9))
    if wrong.any():
        yield f"exact accuracies of {int(wrong.sum())} questions out of range"


def _cover(what: str, ids: list[str], names: set[str]) -> Iterator[str]:
    if len(set(ids)) < len(ids):
        yield f"{what}: a question is there twice"
    yield from _strangers(what, ids, names)
    if lacking := names - set(ids):
        yield f"{what} missing: {len(lacking)}, such as {_some(sorted(lacking))}"


def _strangers(what: str, ids: Iterable[str], names: set[str]) -> Iterator[str]:
    if strangers := set(ids) - names:
        yield f"{what} of no sampled question: {len(strangers)}, such as {_some(sorted(strangers))}"


def _keys(rows: pd.DataFrame) -> str:
    return _some(
        [
            f"{question} {index}"
            for question, index in rows[runs.KEY].head(NAMED + 1).itertuples(index=False)
        ]
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
