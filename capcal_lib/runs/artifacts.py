"""What is kept beside the samples of a run: each kind of file is described once, here.

Whatever reads, checks, merges or counts such files walks over these descriptions; a new kind of
file is one more of them."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from capcal_lib.errors import InputError
from capcal_lib.runs.files import exists, open_parquet

# instead of a grader's version: the verdicts came with the samples, and nothing grades them again
GIVEN = "given"
OUTCOMES = {"correct", "incorrect", "no_answer", "not_scored"}
TEXT = pa.string()
STATES = pa.list_(pa.float16())  # in a file of one size for all rows, and maybe nested


@dataclass(frozen=True, eq=False)
class Artifact:
    """A kind of file beside the samples of a run."""

    name: str  # a ``*`` stands for what tells several of a kind apart
    command: str  # of ``capcal``, that makes it
    key: tuple[str, ...]  # what identifies a row
    schema: pa.Schema
    value: str  # the column that others are made from
    whole: bool = True  # there is a row of all that was sampled
    made: frozenset[bytes] = frozenset()  # what its metadata must say of how it was made
    optional: tuple[str, ...] = ()  # columns that older files lack

    def read(self, path: Path) -> pa.Table:
        """Read a file of this kind."""
        with self.open(path) as file:
            return file.read(use_threads=False)

    @contextmanager
    def open(self, path: Path) -> Iterator[pq.ParquetFile]:
        """Open a file of this kind; one with other columns, or without the metadata of its kind,
        is refused.
        """
        with open_parquet(path) as file:
            schema = file.schema_arrow
            plain = {field for field in schema if not pa.types.is_fixed_size_list(field.type)}
            columns = {*schema.names, *self.optional} == {*self.schema.names}
            made = self.made <= {*(schema.metadata or ())}
            if not (made and columns and plain <= {*self.schema}):
                raise InputError(
                    f"{path}: not a file of `capcal {self.command}`; delete it and make it again "
                    f"with: capcal {self.command}"
                )
            yield file

    def is_sound(self, values: pd.Series) -> "pd.Series[bool]":
        """Tell of each value whether it can be one of this kind."""
        if self.value == "verdict":
            return values.isin(OUTCOMES)
        if self.value == "features":
            return values.map(lambda states: states is not None and np.isfinite(states).all())
        return values.isna() | values.between(0, 1)


def artifact_of(file: str) -> Artifact | None:
    """Return the kind of a file by its name; None for a file of another kind."""
    return next((kind for kind in ARTIFACTS if fnmatch(file, kind.name)), None)


def matrix(table: pa.Table, column: str) -> npt.NDArray[np.float16]:
    """Return a column of lists of one size as a matrix, (n_rows, size)."""
    values = table[column].combine_chunks().flatten()
    return values.to_numpy(zero_copy_only=False).reshape(len(table), -1)


def vectors(states: npt.NDArray[Any]) -> pa.Array:
    """Return a matrix as a column of lists of one size, in float16; `matrix` gives it back.

    >>> vectors(np.eye(2)).to_pylist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    values = pa.array(states.astype(np.float16).ravel())
    return pa.FixedSizeListArray.from_arrays(values, states.shape[1])


def content_digest(path: Path) -> str:
    """Return the digest of what a file says, whatever bytes say it: of its key and its values, by
    key; zeros where there is none.
    """
    artifact = artifact_of(path.name)
    if artifact is None or not exists(path):
        return "0" * 64
    return _content_digest(artifact, path, path.stat().st_mtime_ns)


@lru_cache(1 << 10)
def _content_digest(artifact: Artifact, path: Path, modified: int) -> str:  # noqa: ARG001
    table = artifact.read(path).sort_by([(name, "ascending") for name in artifact.key])
    digest = hashlib.sha256()
    for name in (*artifact.key, artifact.value):
        if pa.types.is_nested(table.schema.field(name).type):
            digest.update(matrix(table, name).tobytes())
        else:
            digest.update(pd.util.hash_array(table[name].to_pandas().to_numpy()).tobytes())
    return digest.hexdigest()


VERDICTS = Artifact(
    name="verdicts.parquet",
    command="grade",
    key=("question_id", "sample_index"),
    value="verdict",
    schema=pa.schema(
        {
            "question_id": TEXT,
            "sample_index": pa.int32(),
            "verdict": TEXT,
            "extracted": TEXT,
            "reason": TEXT,
        }
    ),
    made=frozenset({b"grader"}),
)
JUDGEMENTS = Artifact(
    name="judgements.parquet",
    command="judge",
    key=("judge", "question_id", "extracted"),
    value="verdict",
    schema=pa.schema(
        dict.fromkeys(
            (
                "judge",
                "weights",
                "engine",
                "prompt",
                "question_id",
                "extracted",
                "verdict",
                "words",
            ),
            TEXT,
        )
    ),
    whole=False,
)
CONFIDENCES = Artifact(
    name="confidence-*.parquet",
    command="confidence",
    key=("question_id",),
    value="confidence",
    schema=pa.schema(
        {"question_id": TEXT, "confidence": pa.float64(), "tokens": pa.int64(), "text": TEXT}
    ),
)
FEATURES = Artifact(
    name="features.parquet",
    command="features",
    key=("question_id",),
    value="features",
    schema=pa.schema({"question_id": TEXT, "prompt": TEXT, "features": STATES}),
    optional=("prompt",),
)
# Of one layer, or of the largest numbers of all; ``capcal probe`` reads those above.
LAYER_FEATURES = replace(FEATURES, name="features-*.parquet")
PREDICTIONS = Artifact(
    name="predictions-*.parquet",
    command="probe",
    key=("question_id", "training", "split"),
    value="confidence",
    schema=pa.schema(
        {
            "question_id": TEXT,
            "training": TEXT,  # the data set
            "split": pa.int8(),  # which of the paper's five; 0 elsewhere
            "confidence": pa.float32(),
        }
    ),
    whole=False,
    made=frozenset({b"sources"}),
)
ARTIFACTS = (VERDICTS, JUDGEMENTS, CONFIDENCES, FEATURES, LAYER_FEATURES, PREDICTIONS)
