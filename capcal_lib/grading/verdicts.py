"""The verdict file of a run: graded once, and again only when the grader has changed."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.grading import GRADER_VERSION, grade_many
from capcal_lib.questions import Question, load_questions, questions_digest
from capcal_lib.sampling.files import read_table, write_table
from capcal_lib.sampling.store import KEY, VERDICTS, Present, keys, read_record, stream_samples

FILE = VERDICTS
SCHEMA = pa.schema(
    [
        ("question_id", pa.string()),
        ("sample_index", pa.int32()),
        ("verdict", pa.string()),
        ("extracted", pa.string()),
        ("reason", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Graded:
    """What a call to ``grade_run`` did."""

    new: int  # samples graded for the first time
    again: int  # samples graded again because the grader has changed
    flipped: dict[tuple[str, str], int]  # (old verdict, new verdict): how many


def grade_run(folder: Path) -> Graded:
    """Grade the samples of a run that have no verdict by this version of the grader.

    Verdicts by another version are all replaced. A verdict file holds those of one version only.

    Raises
    ------
    InputError
        When the run is corrupt, or its questions cannot be loaded or have changed.
    """
    old = _read(folder) if (folder / FILE).exists() else None
    version = old.schema.metadata[b"grader"].decode() if old is not None else ""
    current = old if old is not None and version == GRADER_VERSION else SCHEMA.empty_table()
    known = Present(keys(current))
    questions = run_questions(folder)
    fresh = pa.concat_tables(
        [SCHEMA.empty_table(), *(_grade(rows, known, questions) for rows in stream_samples(folder, ["response"]))]
    )
    if len(fresh):
        table = pa.concat_tables([current.replace_schema_metadata(), fresh])
        table = table.sort_by([(name, "ascending") for name in KEY])
        write_table(folder / FILE, table.replace_schema_metadata({"grader": GRADER_VERSION}))
    if old is None or version == GRADER_VERSION:
        return Graded(new=len(fresh), again=0, flipped={})
    both = old.to_pandas().merge(fresh.to_pandas(), on=KEY, suffixes=("_old", "_new"))
    changed = both[both["verdict_old"] != both["verdict_new"]]
    flipped = Counter(zip(changed["verdict_old"], changed["verdict_new"], strict=True))
    return Graded(new=len(fresh) - len(both), again=len(both), flipped=dict(flipped))


def _grade(samples: pd.DataFrame, known: Present, questions: Mapping[str, Question]) -> pa.Table:
    """Grade the samples that have no verdict yet."""
    rows = [row for row in samples.itertuples(index=False, name=None) if row[:2] not in known]
    verdicts = grade_many([(response, questions[question].answer) for question, _, response in rows])
    columns = [
        [row[0] for row in rows],
        [row[1] for row in rows],
        [verdict.verdict for verdict in verdicts],
        [verdict.extracted for verdict in verdicts],
        [verdict.reason for verdict in verdicts],
    ]
    return pa.table(columns, schema=SCHEMA)


def read_verdicts(folder: Path) -> pd.DataFrame:
    """Read the verdicts of a run, one row a graded sample, sorted by (question_id, sample_index).

    Raises
    ------
    InputError
        Where the run is not graded, with the command that grades it; for a corrupt file.
    """
    if not (folder / FILE).exists():
        identity = read_record(folder).identity
        raise InputError(
            f"{folder} is not graded; grade it with: "
            f"capcal grade --model {identity.model} --dataset {identity.dataset} --split {identity.split}"
        )
    return _read(folder).to_pandas()


def _read(folder: Path) -> pa.Table:
    table = read_table(folder / FILE)
    if not table.schema.equals(SCHEMA, check_metadata=False) or b"grader" not in (table.schema.metadata or {}):
        raise InputError(f"{folder / FILE}: not a verdict file; delete it and grade again with: capcal grade")
    return table


def run_questions(folder: Path) -> dict[str, Question]:
    """Load the questions of a run by id; refuse them when they are not those that were sampled."""
    identity = read_record(folder).identity
    questions = load_questions(identity.dataset, identity.split)
    if questions_digest(questions) != identity.questions:
        raise InputError(
            f"{folder}: the questions of {identity.dataset} ({identity.split}) are not those that were sampled; "
            "use the version of the data set that the run was made from, or sample again"
        )
    return {question.id: question for question in questions}
