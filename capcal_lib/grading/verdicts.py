"""The verdict file of a run: graded once, and again only when the grader or the samples have
changed.

Its metadata name the version of the grader and the digest of the samples that were graded.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import pandas as pd
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.grading.core import GRADER_VERSION, grade_many
from capcal_lib.manifests import load_dataset
from capcal_lib.questions import Question, load_questions, questions_digest
from capcal_lib.runs import store as runs
from capcal_lib.runs.artifacts import GIVEN, VERDICTS
from capcal_lib.runs.files import write_tables
from capcal_lib.runs.run import Run

FILE = VERDICTS.name
SCHEMA = VERDICTS.schema


class Graded(NamedTuple):
    """What a call to ``grade_run`` did."""

    new: int  # samples graded for the first time
    again: (
        int  # samples graded again: the grader or the samples have changed, or grading had failed
    )
    flipped: dict[tuple[str, str], int]  # (old verdict, new verdict): how many


def grade_run(run: Run) -> Graded:
    """Grade the samples of a run that have no verdict by this version of the grader.

    Verdicts by another version, or of other samples, are all replaced; those that came with the
    samples stand. What was not scored is tried again, since a worker may have been stopped from
    outside. Memory grows with the questions, and not with the samples.

    `InputError` when the run is corrupt, or its questions cannot be loaded or have changed.
    """
    made: dict[bytes, bytes] = {}
    graded = runs.Present()
    old: dict[str, runs.Present] = {}  # by verdict
    if run.has(VERDICTS):
        with VERDICTS.open(run.path(VERDICTS)) as opened:
            made = opened.schema.metadata
        for rows in run.batches(VERDICTS, [*runs.KEY, "verdict"]):
            runs.add_keys(graded, rows)
            for verdict, own in rows.groupby("verdict"):
                runs.add_keys(old.setdefault(str(verdict), set()), own)
    if made.get(b"grader") == GIVEN.encode():
        return Graded(0, 0, {})
    questions = run_questions(run)
    present = runs.present_of(runs.stream_samples(run, runs.KEY))
    stands = made and made == _made(run, graded, GRADER_VERSION)
    kept = {*old} - {"not_scored"} if stands else set()
    if sum(len(old[verdict]) for verdict in kept) == len(present):
        return Graded(0, 0, {})
    moves: Counter[tuple[str, str]] = Counter()

    def verdicts() -> Iterator[pd.DataFrame]:
        for rows in run.batches(VERDICTS, SCHEMA.names) if kept else ():
            yield rows[rows["verdict"].isin(kept)]
        for rows in runs.stream_samples(run, ["response"]):
            samples = rows.loc[runs.find_keys(present, rows)]  # none that came meanwhile
            before = pd.Series("", samples.index)
            for verdict, own in old.items():
                before[runs.find_keys(own, samples)] = verdict
            before = before[~before.isin(kept)]
            fresh = _grade(samples.loc[before.index], questions)
            moves.update(zip(before, fresh["verdict"], strict=True))
            yield fresh

    write_verdicts(run, verdicts(), present, GRADER_VERSION)
    new = sum(count for (before, _), count in moves.items() if not before)
    flipped = {move: count for move, count in moves.items() if move[0] and move[0] != move[1]}
    return Graded(new=new, again=moves.total() - new, flipped=flipped)


def _made(run: Run, graded: runs.Present, grader: str) -> dict[bytes, bytes]:
    rows = runs.digest_of_graded(run, graded)
    return {b"grader": grader.encode(), b"rows": rows.encode()}


def write_verdicts(
    run: Run, verdicts: Iterable[pd.DataFrame], graded: runs.Present, grader: str
) -> None:
    """Write the verdicts of the samples that are graded, below one another."""
    schema = SCHEMA.with_metadata(_made(run, graded, grader))
    tables = (pa.Table.from_pandas(rows, schema, preserve_index=False) for rows in verdicts)
    write_tables(run.path(VERDICTS), schema, tables)


def _grade(samples: pd.DataFrame, questions: Mapping[str, Question]) -> pd.DataFrame:
    """Return the verdicts of samples, a row each."""
    strangers = set(samples["question_id"]) - questions.keys()
    if strangers:
        raise InputError(
            f"the data set has no question {min(strangers)!r}, which was sampled; see: capcal "
            "verify"
        )
    answers = [questions[name].answer for name in samples["question_id"]]
    verdicts = grade_many(list(zip(samples["response"], answers, strict=True)))
    return samples[runs.KEY].join(pd.DataFrame(verdicts, samples.index, SCHEMA.names[2:]))


def read_verdicts(run: Run) -> pd.DataFrame:
    """Read the verdicts of a run, one row a graded sample, sorted by (question_id, sample_index).

    `InputError` where the run is not graded, with the command that grades it; for a corrupt file.
    """
    return run.read(VERDICTS).sort_by(runs.ORDER).to_pandas()


def kinds_of(run: Run, question_ids: "pd.Series[str]") -> "pd.Series[str]":
    """Return the kind of the answer to each of these questions of a run."""
    dataset = load_dataset(run.identity.dataset)
    if not dataset.builtin:
        return pd.Series(dataset.kind, question_ids.index, dtype=str)
    questions = run_questions(run)  # the only ones whose answers may be of several kinds
    return question_ids.map({name: question.answer.kind for name, question in questions.items()})


def run_questions(run: Run) -> dict[str, Question]:
    """Load the questions of a run by id; refuse them when they are not those that were sampled."""
    identity = run.identity
    questions = load_questions(identity.dataset, identity.split)
    if questions_digest(questions) != identity.questions:
        raise InputError(
            f"{run}: the questions of {identity.dataset} ({identity.split}) are not those that "
            "were sampled; use the version of the data set that the run was made from, or sample "
            "again"
        )
    return {question.id: question for question in questions}
