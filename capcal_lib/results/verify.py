"""Check that a run is what it says it is, and whole."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from capcal_lib.confidence.of_run import methods_of, read_confidence
from capcal_lib.errors import InputError
from capcal_lib.grading import GRADER_VERSION
from capcal_lib.grading.verdicts import read_verdicts
from capcal_lib.manifests import data_dir, load_dataset, load_model
from capcal_lib.probes.features import FEATURES, read_features
from capcal_lib.questions import Question, load_questions, questions_digest, subset
from capcal_lib.results.exact import FILE as EXACT
from capcal_lib.results.exact import read_exact
from capcal_lib.sampling.files import read_table
from capcal_lib.sampling.sessions import read_sessions
from capcal_lib.sampling.stopping import Rule, outcomes, stops
from capcal_lib.sampling.store import (
    KEY,
    VERDICTS,
    Identity,
    count_rows,
    list_run_folders,
    read_record,
    read_samples,
    stream_samples,
)
from capcal_lib.sampling.weights import pinned_digest

NAMED = 3  # how many of what is wrong are named
VERSIONS = ("capcal", "torch", "transformers", "vllm")


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of checking one run."""

    folder: Path
    problems: tuple[str, ...]
    facts: tuple[str, ...]  # what was looked at, and what could not be

    def __str__(self) -> str:
        """Say it in one line."""
        words = "; ".join(self.problems) if self.problems else f"ok, {'; '.join(self.facts)}"
        return f"{self.folder}: {words}"


def verify_store(store: Path, model: str | None = None, dataset: str | None = None) -> Iterator[Checked]:
    """Check each run of a store, or those of a model or data set.

    Raises
    ------
    InputError
        For a store that is no folder or has no such run.
    """
    if not store.is_dir():
        raise InputError(f"{store} is not a folder; name a run store with --store")
    found = [
        folder
        for folder in list_run_folders(store)
        if model in (None, folder.parts[-3]) and (dataset is None or folder.parts[-2].rpartition("-")[0] == dataset)
    ]
    if not found:
        raise InputError(f"no run to check in {store}; see: capcal status --store {store}")
    yield from map(verify_run, found)


def verify_run(folder: Path) -> Checked:
    """Check one run: its record and digests, its rows, and every file beside them.

    The record must match the folder; the digests of weights and questions those that the manifests pin; each row must
    be there once, none missing that was asked for; tokens must be positive; verdicts must be those of the present
    grader, one a row; confidences and hidden states must cover the questions, finite and in range.
    """
    try:
        record = read_record(folder)
        samples = read_samples(folder, KEY)
    except InputError as error:
        return Checked(folder, (str(error).removeprefix(f"{folder}: "),), ())
    identity = record.identity
    versions = ", ".join(f"{name} {record.made_with[name]}" for name in VERSIONS if name in record.made_with)
    facts = [f"{len(samples):,} samples of {samples['question_id'].nunique():,} questions", versions]
    problems: list[str] = []

    def check(look: Callable[[], Iterator[str]]) -> None:
        try:
            problems.extend(look())
        except InputError as error:
            problems.append(str(error))

    questions = _questions(identity, facts)
    check(lambda: _digests(identity, questions, record.made_with))
    check(lambda: _rows(folder, samples, identity))
    check(lambda: _completeness(folder, samples, questions))
    if (folder / VERDICTS).exists():
        check(lambda: _verdicts(folder, samples))
    else:
        facts.append("not graded")
    names = set(samples["question_id"])
    for method in methods_of(folder):
        check(lambda method=method: _confidences(folder, method, names))  # type: ignore[misc]
    if (folder / FEATURES).exists():
        check(lambda: _features(folder, names, identity))
    if (folder / EXACT).exists():
        check(lambda: _exact(folder, names))
    return Checked(folder, tuple(problems), tuple(filter(None, facts)))


def _questions(identity: Identity, facts: list[str]) -> dict[str, Question] | None:
    """Load the questions of a run, where they are on this machine."""
    if not load_dataset(identity.dataset).builtin and data_dir() is None:
        facts.append("questions not looked at, for CAPCAL_DATA_DIR is not set")
        return None
    try:
        return {question.id: question for question in load_questions(identity.dataset, identity.split)}
    except InputError as error:
        facts.append(f"questions not looked at: {error}")
        return None


def _digests(identity: Identity, questions: dict[str, Question] | None, made_with: dict[str, str]) -> Iterator[str]:
    pin = pinned_digest(load_model(identity.model))
    if pin is not None and pin != identity.weights:
        yield f"made with the weights {identity.weights[:16]}, the manifest has {pin[:16]}"
    split = load_dataset(identity.dataset).splits.get(identity.split)
    if split is None:
        yield f"the manifest has no split {identity.split!r}"
    elif split.digest is not None and split.digest != identity.questions:
        yield f"made with the questions {identity.questions[:16]}, the manifest has {split.digest[:16]}"
    if questions is not None and questions_digest(questions.values()) != identity.questions:
        yield "the questions at hand are not those that were sampled"
    if "questions" not in made_with:
        yield "the record does not say whether the questions matched the manifest"


def _rows(folder: Path, samples: pd.DataFrame, identity: Identity) -> Iterator[str]:
    twice = count_rows(folder) - len(samples)
    if twice:
        yield f"{twice} rows are there twice"
    damaged = sorted(path.name for path in folder.glob("*.damaged"))
    if damaged:
        yield f"set aside as damaged: {_some(damaged)}; delete it once its rows are drawn again"
    tokens = {"prompt_tokens": identity.sampling.context_tokens, "completion_tokens": identity.sampling.max_tokens}
    wrong: defaultdict[str, list[pd.DataFrame]] = defaultdict(list)
    for rows in stream_samples(folder):
        for column, most in tokens.items():
            wrong[f"rows with {column} outside 1 to {most}"].append(rows.loc[~rows[column].between(1, most), KEY])
        odd = ~rows["finish_reason"].isin(["stop", "length"]) | rows["response"].isna()
        wrong["rows without a response or with an unknown finish"].append(rows.loc[odd, KEY])
    for words, parts in wrong.items():
        found = pd.concat(parts).sort_values(KEY)
        if len(found):
            yield f"{len(found)} {words}: {_keys(found)}"


def _completeness(folder: Path, samples: pd.DataFrame, questions: dict[str, Question] | None) -> Iterator[str]:
    """Compare with what the sessions asked for; without any, each question must reach the largest index."""
    there = {str(name): group.tolist() for name, group in samples.groupby("question_id")["sample_index"]}
    ks = dict.fromkeys(there, 0)
    asks = [session.ask for session in read_sessions(folder)]
    if not asks:
        ks = dict.fromkeys(there, int(samples["sample_index"].max()) + 1 if len(samples) else 0)
    for ask in asks:
        if questions is None and len(there) < ask.questions:
            yield f"{ask.questions} questions were asked, {len(there)} are there"
        asked = [one.id for one in subset(tuple(questions.values()), ask.questions)] if questions else list(there)
        if ask.precision is None:
            wanted = dict.fromkeys(asked, ask.k)
        else:
            rule = Rule(ask.precision, ask.k)
            names, table = outcomes(read_verdicts(folder), rule.k)
            ends = dict(zip(names, stops(rule, table)[0].tolist(), strict=True))
            wanted = {name: ends.get(name, rule.looks[0]) for name in asked}
        ks = {name: max(ks.get(name, 0), wanted.get(name, 0)) for name in ks | wanted}
    # Gaps count also below what was asked for: a question has the first of its samples, or none.
    ks = {name: max(k, 1 + max(there.get(name, [-1]))) for name, k in ks.items()}
    missing = [(name, index) for name, k in ks.items() for index in sorted(set(range(k)) - set(there.get(name, [])))]
    if missing:
        yield f"{len(missing)} samples missing: {_some([f'{name} {index}' for name, index in missing])}"
    strangers = sorted(there.keys() - questions.keys()) if questions else []
    if strangers:
        yield f"{len(strangers)} questions that the data set does not have: {_some(strangers)}"


def _verdicts(folder: Path, samples: pd.DataFrame) -> Iterator[str]:
    verdicts = read_verdicts(folder)
    version = read_table(folder / VERDICTS).schema.metadata[b"grader"].decode()
    if version != GRADER_VERSION:
        yield f"graded by version {version} of the grader, now {GRADER_VERSION}: grade again"
    twice = verdicts[verdicts.duplicated(KEY)]
    if len(twice):
        yield f"{len(twice)} verdicts are there twice: {_keys(twice)}"
    sides = verdicts[KEY].merge(samples[KEY], on=KEY, how="outer", indicator=True)
    for side, words in (("left_only", "verdicts of samples that are not there"), ("right_only", "samples not graded")):
        alone = sides[sides["_merge"] == side]
        if len(alone):
            yield f"{len(alone)} {words}: {_keys(alone)}"
    unknown = Counter(verdicts["verdict"]).keys() - {"correct", "incorrect", "no_answer", "not_scored"}
    if unknown:
        yield f"unknown verdicts: {_some(sorted(map(str, unknown)))}"


def _confidences(folder: Path, method: str, names: set[str]) -> Iterator[str]:
    yield from _cover(f"{method} confidences", read_confidence(folder, method).question_ids.tolist(), names)


def _features(folder: Path, names: set[str], identity: Identity) -> Iterator[str]:
    ids, features = read_features(folder)
    yield from _cover("hidden states", ids, names)
    bad = int((~np.isfinite(features).all(axis=1)).sum())
    if bad:
        yield f"hidden states of {bad} questions are not finite"
    size = load_model(identity.model).hidden_size
    if size is not None and features.shape[1] != size:
        yield f"hidden states of size {features.shape[1]}, the manifest has {size}"


def _exact(folder: Path, names: set[str]) -> Iterator[str]:
    exact = read_exact(folder)
    strangers = sorted(set(exact.question_ids.tolist()) - names)
    if strangers:
        yield f"exact accuracies of no sampled question: {len(strangers)}, such as {_some(strangers)}"
    wrong = ~((exact.lower >= 0) & (exact.lower <= exact.upper + 1e-9) & (exact.upper <= 1 + 1e-9))
    if wrong.any():
        yield f"exact accuracies of {int(wrong.sum())} questions out of range"


def _cover(what: str, ids: list[str], names: set[str]) -> Iterator[str]:
    if len(set(ids)) < len(ids):
        yield f"{what}: a question is there twice"
    for words, others in (("of no sampled question", set(ids) - names), ("missing", names - set(ids))):
        if others:
            yield f"{what} {words}: {len(others)}, such as {_some(sorted(others))}"


def _keys(rows: pd.DataFrame) -> str:
    return _some([f"{question} {index}" for question, index in rows[KEY].head(NAMED + 1).itertuples(index=False)])


def _some(names: list[str]) -> str:
    return ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
