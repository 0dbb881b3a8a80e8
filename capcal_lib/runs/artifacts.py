"""What is kept beside the samples of a run: each kind of file is described once, here.

Whatever reads, checks, merges or counts such files walks over these descriptions; a new kind of
file is one more of them."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.questions import Question
from capcal_lib.runs.files import read_table, size_of

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
    present: dict[str, int]  # which samples there are, by question; see `runs.store.Present`
    digest: str  # of all of them
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
    value: str  # the column that others are made from
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


def content_digest(path: Path) -> str:
    """Return the digest of what a file says, whatever bytes say it: of its key and its values, by
    key; zeros where there is none.
    """
    if size_of(path) is None:
        return "0" * 64
    state = path.stat()
    return _content_digest(path, state.st_size, state.st_mtime_ns)


@lru_cache(1 << 10)
def _content_digest(path: Path, *state: int) -> str:  # noqa: ARG001
    artifact = artifact_of(path.name)
    if artifact is None:
        raise InputError(f"{path}: not a file that is kept beside samples")
    table = artifact.read(path).sort_by([(name, "ascending") for name in artifact.key])
    digest = hashlib.sha256()
    for name in (*artifact.key, artifact.value):
        if pa.types.is_nested(table.schema.field(name).type):
            digest.update(matrix(table, name).tobytes())
        else:
            digest.update(pd.util.hash_array(table[name].to_pandas().to_numpy()).tobytes())
    return digest.hexdigest()


def changed_files(home: Path, digests: Mapping[str, str]) -> list[str]:
    """Name the files in runs under a folder whose content is another than their digests say; what
    is in a run that is not there is not compared.
    """
    return [
        name
        for name, digest in digests.items()
        if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*/[\w-][\w.-]*", name)
        or ((home / name).parent.is_dir() and content_digest(home / name) != digest)
    ]


VERDICTS = Artifact(
    name="verdicts.parquet",
    title="verdicts",
    command="grade",
    key=("question_id", "sample_index"),
    value="verdict",
    schema=pa.schema(
        [
            QUESTION,
            ("sample_index", pa.int32()),
            ("verdict", pa.string()),
            ("extracted", pa.string()),
            ("reason", pa.string()),
        ]
    ),
    made=("grader",),
)
JUDGEMENTS = Artifact(
    name="judgements.parquet",
    title="judgements",
    command="judge",
    key=("judge", "question_id", "extracted"),
    value="verdict",
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
    whole=False,
)
CONFIDENCES = Artifact(
    name="confidence-*.parquet",
    title="confidences",
    command="confidence",
    key=("question_id",),
    value="confidence",
    schema=pa.schema(
        [
            QUESTION,
            ("confidence", pa.float64()),
            ("tokens", pa.int64()),
            ("text", pa.string()),
        ]
    ),
)
FEATURES = Artifact(
    name="features.parquet",
    title="hidden states",
    command="features",
    key=("question_id",),
    value="features",
    schema=pa.schema([QUESTION, ("prompt", pa.string()), ("features", STATES)]),
    optional=("prompt",),
)
PREDICTIONS = Artifact(
    name="predictions-*.parquet",
    title="predictions of probes",
    command="probe",
    key=("question_id", "training", "split"),
    value="confidence",
    schema=pa.schema(
        [
            QUESTION,
            ("training", pa.string()),  # the data set
            ("split", pa.int8()),  # which of the paper's five; 0 elsewhere
            ("confidence", pa.float32()),
        ]
    ),
    whole=False,
    made=("sources",),
)
ARTIFACTS = (VERDICTS, JUDGEMENTS, CONFIDENCES, FEATURES, PREDICTIONS)
