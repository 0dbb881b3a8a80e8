"""The verdict file of a run: graded once, and again only when the grader or the samples have
changed.

Its metadata name the version of the grader and the digest of the samples that were graded.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.grading.core import GRADER_VERSION, grade_many
from capcal_lib.manifests import Kind, load_dataset
from capcal_lib.questions import Question, load_questions, questions_digest
from capcal_lib.runs import store as runs
from capcal_lib.runs.artifacts import GIVEN, VERDICTS, Sampled, some
from capcal_lib.runs.files import write_tables
from capcal_lib.runs.run import Run

FILE = VERDICTS.name
SCHEMA = VERDICTS.schema
REGRADED = 1_000  # samples of a run, to see whether its verdicts follow


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
    old: dict[str, runs.Present] = {}
    graded = runs.Present()
    made: dict[str, str] = {}
    if run.has(VERDICTS):
        with VERDICTS.open(run.path(VERDICTS)) as file:
            known = file.schema_arrow.metadata.items()
        made = {name.decode(): value.decode() for name, value in known}
        for rows in run.batches(VERDICTS, [*runs.KEY, "verdict"]):
            runs.add_keys(graded, rows)
            for verdict, own in rows.groupby("verdict"):
                runs.add_keys(old.setdefault(str(verdict), {}), own)
    if made.get("grader") == GIVEN:
        return Graded(0, 0, {})
    questions = run_questions(run)
    present = runs.present_of(runs.stream_samples(run, runs.KEY))
    stands = bool(made) and made == _made(run, graded, GRADER_VERSION)
    kept = [one for verdict, one in old.items() if stands and verdict != "not_scored"]
    if sum(map(runs.count_present, kept)) == runs.count_present(present):
        return Graded(0, 0, {})
    moves: Counter[tuple[str, str]] = Counter()

    def graded_rows() -> Iterator[pd.DataFrame]:
        for rows in run.batches(VERDICTS, SCHEMA.names) if stands else ():
            yield rows[rows["verdict"] != "not_scored"]
        for part in runs.stream_samples(run, ["response"]):
            todo = np.array(runs.find_keys(present, part), bool)
            for one in kept:
                todo &= ~np.array(runs.find_keys(one, part), bool)
            fresh = _grade(part[todo], questions)
            before = pd.Series("", fresh.index)
            for verdict, one in old.items():
                before[runs.find_keys(one, fresh)] = verdict
            moves.update(zip(before, fresh["verdict"], strict=True))
            yield fresh

    schema = SCHEMA.with_metadata(_made(run, present, GRADER_VERSION))
    tables = (
        pa.Table.from_pandas(rows, schema=schema, preserve_index=False) for rows in graded_rows()
    )
    write_tables(run.path(VERDICTS), schema, tables)
    new = sum(count for (before, _), count in moves.items() if not before)
    flipped = {move: count for move, count in moves.items() if move[0] and move[0] != move[1]}
    return Graded(new=new, again=moves.total() - new, flipped=flipped)


def _made(run: Run, graded: runs.Present, grader: str) -> dict[str, str]:
    return {"grader": grader, "rows": runs.digest_of_graded(run, graded)}


def write_verdicts(run: Run, verdicts: pd.DataFrame, grader: str) -> None:
    """Write the verdicts of samples."""
    table = pa.Table.from_pandas(verdicts, schema=SCHEMA, preserve_index=False)
    made = _made(run, runs.present_of([verdicts]), grader)
    run.write(VERDICTS, table.replace_schema_metadata(made))


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


def verdicts_follow(sampled: Sampled) -> Iterator[str]:
    """Grade some of the responses of a run again, and yield what does not follow from them."""
    run, questions = sampled.run, sampled.questions
    if not questions or not run.has(VERDICTS):
        return
    table = run.read(VERDICTS)
    if table.schema.metadata[b"grader"] == GIVEN.encode():
        return
    verdicts = table.to_pandas().query("verdict != 'not_scored' and question_id in @questions")
    chosen = verdicts.sample(min(REGRADED, len(verdicts)), random_state=0)
    parts = runs.stream_samples(run, ["response"])
    rows = pd.concat([part.merge(chosen, on=runs.KEY) for part in parts], ignore_index=True)
    wrong = rows[rows["verdict"] != _grade(rows, questions)["verdict"]]
    sampled.facts.append(f"{len(rows):,} verdicts compared")
    if len(wrong):
        keys = some(wrong["question_id"] + " " + wrong["sample_index"].astype(str))
        yield f"{len(wrong)} of {len(rows)} verdicts do not follow from the responses: {keys}"


def kinds_of(run: Run, question_ids: Sequence[str]) -> list[Kind]:
    """Return the kind of the answer to each of these questions of a run."""
    dataset = load_dataset(run.identity.dataset)
    if not dataset.builtin:
        return [dataset.kind] * len(question_ids)
    questions = run_questions(run)  # the only ones whose answers may be of several kinds
    return [questions[name].answer.kind for name in question_ids]


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
