"""What is kept beside the samples of a run: each kind of file is described once, here.

Whatever reads, checks, merges or counts such files walks over these descriptions; a new kind of
file is one more of them."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.manifests import load_model
from capcal_lib.questions import Question
from capcal_lib.questions.prompts import answer_messages, prompt_digest
from capcal_lib.runs.files import changed_files, read_table

if TYPE_CHECKING:
    from capcal_lib.runs.run import Run

NAMED = 3  # how many of what is wrong are named
PART = ".part-"  # in the name of a file that is not finished
# instead of a grader's version: the verdicts came with the samples, and nothing grades them again
GIVEN = "given"
OUTCOMES = {"correct", "incorrect", "no_answer", "not_scored"}
QUESTION = ("question_id", pa.string())
STATES = pa.list_(pa.float16())  # in a file of one size for all rows, and maybe nested


@dataclass(frozen=True)
class Sampled:
    """A run that is being checked, and what is known of it."""

    run: "Run"
    samples: pd.DataFrame  # question_id, sample_index, digest
    questions: dict[str, Question] | None  # None where they are not on this machine
    grader: str | None = None  # the present version; None does not compare
    facts: list[str] = field(default_factory=list)  # what was looked at, and what could not be


@dataclass(frozen=True, eq=False)
class Artifact:
    """A kind of file beside the samples of a run."""

    name: str  # a ``*`` stands for what tells several of a kind apart
    title: str  # of its rows
    command: str  # of ``capcal``, that makes it
    key: tuple[str, ...]  # what identifies a row
    schema: pa.Schema
    check: Callable[[pa.Table, Sampled], Iterator[str]]  # yields what is wrong with its values
    whole: bool = True  # there is a row of all that was sampled
    made: tuple[str, ...] = ()  # what its metadata must say of how it was made
    optional: tuple[str, ...] = ()  # columns that older files lack

    def fits(self, table: pa.Table) -> bool:
        """Tell whether a table has the columns of this kind of file."""
        there = set(table.column_names)
        known = set(self.schema.names)
        if not known - {*self.optional} <= there <= known:
            return False
        made = table.schema.metadata or {}
        return all(map(self._has_type, table.schema)) and {*map(str.encode, self.made)} <= {*made}

    def read(self, path: Path) -> pa.Table:
        """Read a file of this kind; one with other columns is refused."""
        table = read_table(path)
        if not self.fits(table):
            raise InputError(
                f"{path}: not a file of `capcal {self.command}`; delete it and make it again with: "
                f"capcal {self.command}"
            )
        return table

    def _has_type(self, column: pa.Field) -> bool:
        wanted = self.schema.field(column.name).type
        if pa.types.is_list(wanted):
            return bool(pa.types.is_fixed_size_list(column.type))
        return bool(column.type == wanted)

    def label(self, file: str) -> str:
        """Say what is in one of several files of a kind."""
        before, _, after = self.name.partition("*")
        inside = file.removeprefix(before).removesuffix(after).strip("-") if after else ""
        if inside:
            return f"{inside} {self.title}"
        return self.title


def artifact_of(file: str) -> Artifact | None:
    """Return the kind of a file by its name; None for a file of another kind."""
    return next((each for each in ARTIFACTS if fnmatch(file, each.name)), None)


def matrix(table: pa.Table, column: str) -> npt.NDArray[np.float16]:
    """Return a column of lists of one size as a matrix, (n_rows, size), or (n_rows, n, size)."""
    values = table[column].combine_chunks()
    shape = [len(table)]
    while pa.types.is_fixed_size_list(values.type):
        shape.append(values.type.list_size)
        values = values.flatten()
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(shape)


def vectors(states: npt.NDArray[Any]) -> pa.Array:
    """Return a matrix as a column of lists of one size, in float16; `matrix` gives it back.

    >>> vectors(np.eye(2)).to_pylist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    values = pa.array(states.astype(np.float16).ravel())
    for size in reversed(states.shape[1:]):
        values = pa.FixedSizeListArray.from_arrays(values, size)
    return values


def some(names: Iterable[str]) -> str:
    """Name the first few."""
    listed = list(names)
    return ", ".join(listed[:NAMED]) + (", ..." if len(listed) > NAMED else "")


def some_keys(rows: pd.DataFrame, key: list[str]) -> str:
    """Name the first few rows by their key."""
    first = rows[key].head(NAMED + 1).itertuples(index=False)
    return some(" ".join(map(str, each)) for each in first)


def _check_verdicts(table: pa.Table, sampled: Sampled) -> Iterator[str]:
    made = table.schema.metadata
    version = made[b"grader"].decode()
    if sampled.grader and version not in (sampled.grader, GIVEN):
        yield f"graded by version {version} of the grader, now {sampled.grader}: grade again"
    keys = ["question_id", "sample_index"]
    digests = table.select(keys).to_pandas().merge(sampled.samples, on=keys, how="left")["digest"]
    if b"rows" in made and digests.notna().all():
        digest = f"{sum(map(int, digests)) % 2**64:016x}"
        if made[b"rows"].decode() != digest:
            yield "the verdicts were made from other samples than these: grade again"
    yield from _check_outcomes(table, sampled)


def _check_outcomes(table: pa.Table, sampled: Sampled) -> Iterator[str]:  # noqa: ARG001
    if unknown := set(table["verdict"].to_pylist()) - OUTCOMES:
        yield f"unknown verdicts: {some(sorted(map(str, unknown)))}"


def _check_confidences(table: pa.Table, sampled: Sampled) -> Iterator[str]:  # noqa: ARG001
    values = table["confidence"].to_pandas()
    wrong = int((values.notna() & ~values.between(0, 1)).sum())
    if wrong:
        yield f"{wrong} confidences out of range; a confidence lies in [0, 1]"


def _check_predictions(table: pa.Table, sampled: Sampled) -> Iterator[str]:
    yield from _check_confidences(table, sampled)
    for source in json.loads(table.schema.metadata[b"sources"]):
        changed = changed_files(sampled.run.folder.parents[1], source["digests"])
        if changed:
            yield (
                f"predictions of the probe of {source['training']} are stale, since "
                f"{some(changed)} changed: capcal probe makes them again"
            )


def _check_states(table: pa.Table, sampled: Sampled) -> Iterator[str]:
    identity = sampled.run.identity
    states = matrix(table, "features")
    if bad := sum(not np.isfinite(each).all() for each in states):
        yield f"hidden states of {bad} questions are not finite"
    size = load_model(identity.model).hidden_size
    if size is not None and states.shape[-1] != size:
        yield f"hidden states of size {states.shape[-1]}, the manifest has {size}"
    known = sampled.questions or {}
    if known and "prompt" in table.column_names:
        rows = table.select(["question_id", "prompt"]).to_pylist()
        other = [
            row["question_id"]
            for row in rows
            if (question := known.get(row["question_id"]))
            and row["prompt"] != prompt_digest(answer_messages(question, identity.prompt_style))
        ]
        if other:
            yield f"hidden states of {len(other)} questions are after other prompts: {some(other)}"


def _check_coordinates(table: pa.Table, sampled: Sampled) -> Iterator[str]:  # noqa: ARG001
    if not np.isfinite(matrix(table, "coordinates")).all():
        yield "coordinates are not all finite"


def _check_exact(table: pa.Table, sampled: Sampled) -> Iterator[str]:  # noqa: ARG001
    exact = table.to_pandas()
    wrong = ~(exact["lower"].between(0, exact["upper"] + 1e-9) & (exact["upper"] <= 1 + 1e-9))
    if wrong.any():
        yield f"exact accuracies of {int(wrong.sum())} questions out of range"


VERDICTS = Artifact(
    name="verdicts.parquet",
    title="verdicts",
    command="grade",
    key=("question_id", "sample_index"),
    schema=pa.schema(
        [
            QUESTION,
            ("sample_index", pa.int32()),
            ("verdict", pa.string()),
            ("extracted", pa.string()),
            ("reason", pa.string()),
        ]
    ),
    check=_check_verdicts,
    made=("grader",),
)
JUDGEMENTS = Artifact(
    name="judgements.parquet",
    title="judgements",
    command="judge",
    key=("judge", "question_id", "extracted"),
    schema=pa.schema(
        [
            ("judge", pa.string()),
            ("weights", pa.string()),
            ("engine", pa.string()),
            ("prompt", pa.string()),
            QUESTION,
            ("extracted", pa.string()),
            ("verdict", pa.string()),
            ("words", pa.string()),
        ]
    ),
    check=_check_outcomes,
    whole=False,
)
CONFIDENCES = Artifact(
    name="confidence-*.parquet",
    title="confidences",
    command="confidence",
    key=("question_id",),
    schema=pa.schema(
        [
            QUESTION,
            ("confidence", pa.float64()),
            ("tokens", pa.int64()),
            ("text", pa.string()),
        ]
    ),
    check=_check_confidences,
)
FEATURES = Artifact(
    name="features*.parquet",
    title="hidden states",
    command="features",
    key=("question_id",),
    schema=pa.schema([QUESTION, ("prompt", pa.string()), ("features", STATES)]),
    check=_check_states,
    optional=("prompt",),
)
COORDINATES = Artifact(
    name="coordinates.parquet",
    title="coordinates",
    command="coordinates",
    key=("question_id",),
    schema=pa.schema([QUESTION, ("coordinates", STATES), ("statistics", pa.list_(pa.int32()))]),
    check=_check_coordinates,
    made=("directions",),
    optional=("statistics",),
)
EXACT = Artifact(
    name="exact.parquet",
    title="exact accuracies",
    command="exact",
    key=("question_id",),
    schema=pa.schema(
        [
            QUESTION,
            ("lower", pa.float64()),
            ("upper", pa.float64()),
            ("passes", pa.int64()),
        ]
    ),
    check=_check_exact,
    whole=False,
)
PREDICTIONS = Artifact(
    name="predictions-*.parquet",
    title="predictions of probes",
    command="probe",
    key=("question_id", "training", "split"),
    schema=pa.schema(
        [
            QUESTION,
            ("training", pa.string()),  # the data set
            ("split", pa.int8()),  # which of the paper's five; 0 elsewhere
            ("confidence", pa.float32()),
        ]
    ),
    check=_check_predictions,
    whole=False,
    made=("sources",),
)
ARTIFACTS = (VERDICTS, JUDGEMENTS, CONFIDENCES, FEATURES, COORDINATES, EXACT, PREDICTIONS)
