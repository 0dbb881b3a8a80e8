"""The verdict file of a run: graded once, and again only when the grader or the samples have
changed.

Each verdict is stored with the canonical form of the answer, which votes count. The metadata name
the version of the grader and the digest of the graded samples.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.grading.compare import canonical
from capcal_lib.grading.core import GRADER_VERSION, Verdict, grade_many
from capcal_lib.manifests import Kind, load_dataset
from capcal_lib.questions import Question, load_questions, questions_digest
from capcal_lib.runs import store as runs
from capcal_lib.runs.artifacts import GIVEN, VERDICTS
from capcal_lib.runs.run import Run

FILE = VERDICTS.name
SCHEMA = VERDICTS.schema


class Graded(NamedTuple):
    """What a call to ``grade_run`` did."""

    new: int  # samples graded for the first time
    again: int  # samples graded again
    flipped: Counter[tuple[str, str]]  # (old verdict, new verdict): how many


def grade_run(run: Run) -> Graded:
    """Grade the samples of a run, unless all have verdicts from this version of the grader.

    All are graded again if the grader or the samples have changed: it takes half a minute for a
    hundred thousand answers. Verdicts that were imported with the samples stay. Memory grows with
    the number of verdicts, not with the responses.

    `InputError` when the run is corrupt, or its questions cannot be loaded or have changed.
    """
    made: dict[bytes, bytes] = {}
    old = SCHEMA.empty_table().to_pandas()
    if run.has(VERDICTS):
        made = run.made(VERDICTS)
        old = run.read(VERDICTS).to_pandas()
    is_given = made.get(b"grader") == GIVEN.encode()
    if is_given or made == _made(run, runs.present_keys(run), GRADER_VERSION):
        return Graded(0, 0, Counter())
    questions = run_questions(run)
    graded = pd.concat(_grade(rows, questions) for rows in runs.stream_samples(run, ["response"]))
    write_verdicts(run, graded, GRADER_VERSION)
    columns = [*runs.KEY, "verdict"]
    both = graded[columns].merge(old[columns], "left", runs.KEY, suffixes=("", "_old"))
    again = both["verdict_old"].notna()
    moved = both[again & (both["verdict"] != both["verdict_old"])]
    flipped = Counter(zip(moved["verdict_old"], moved["verdict"], strict=True))
    return Graded(int((~again).sum()), int(again.sum()), flipped)


def _made(run: Run, graded: runs.Keys, grader: str) -> dict[bytes, bytes]:
    rows = runs.digest_of_graded(run, graded)
    return {b"grader": grader.encode(), b"rows": rows.encode()}


def write_verdicts(run: Run, verdicts: pd.DataFrame, grader: str) -> None:
    """Write verdicts, each with the canonical form of its answer."""
    cases = [*zip(verdicts["extracted"], kinds_of(run, verdicts["question_id"]), strict=True)]
    forms: dict[tuple[str, str], str | None] = {}
    for extracted, kind in set(cases):  # many samples are the same
        has_answer = pd.notna(extracted)
        forms[extracted, kind] = canonical(extracted, cast(Kind, kind)) if has_answer else None
    rows = verdicts.assign(canonical=np.array([forms[case] for case in cases], dtype=object))
    table = pa.Table.from_pandas(rows, SCHEMA, preserve_index=False)
    made = _made(run, set(runs.keys_of(rows)), grader)
    run.write(VERDICTS, table.replace_schema_metadata(made))


def _grade(samples: pd.DataFrame, questions: Mapping[str, Question]) -> pd.DataFrame:
    """Return the verdicts of samples, a row each."""
    strangers = set(samples["question_id"]) - questions.keys()
    if strangers:
        raise InputError(
            f"question {min(strangers)!r} was sampled, but the data set does not have it; see: "
            "capcal verify"
        )
    answers = [questions[name].answer for name in samples["question_id"]]
    verdicts = grade_many(list(zip(samples["response"], answers, strict=True)))
    return samples[runs.KEY].join(pd.DataFrame(verdicts, samples.index, Verdict._fields))


def read_verdicts(run: Run) -> pd.DataFrame:
    """Read the verdicts of a run, one row a graded sample, sorted by (question_id, sample_index).

    `InputError` if the file is corrupt; or, with the command that grades the run, if it is not
    graded.
    """
    return run.read(VERDICTS).sort_by(runs.ORDER).to_pandas()


def kinds_of(run: Run, question_ids: "pd.Series[str]") -> "pd.Series[str]":
    """Return the kind of the answer to each of these questions of a run."""
    identity = run.identity
    dataset = load_dataset(identity.dataset)
    file = dataset.splits[identity.split].file
    if not dataset.builtin or file is None:
        return pd.Series(dataset.kind, question_ids.index, dtype=str)
    rows = pd.read_json(file, lines=True)  # each says of which kind its answer is
    return question_ids.map(rows.set_index("id")["kind"])


def run_questions(run: Run) -> dict[str, Question]:
    """Load the questions of a run by id; `InputError` if they have changed since sampling."""
    identity = run.identity
    questions = load_questions(identity.dataset, identity.split)
    if questions_digest(questions) != identity.questions:
        raise InputError(
            f"{run}: the questions of {identity.dataset} ({identity.split}) have changed since "
            "they were sampled; use the earlier version of the data set, or sample again"
        )
    return {question.id: question for question in questions}
