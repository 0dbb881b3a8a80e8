"""Describe each kind of file that is kept beside the samples of a run, once, here."""

import hashlib
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.runs.files import is_states, read_table

# instead of a grader's version: the verdicts came with the samples, and nothing grades them again
GIVEN = "given"
TEXT = pa.string()


@dataclass(frozen=True, eq=False)
class Artifact:
    """A kind of file beside the samples of a run."""

    name: str  # a ``*`` stands for what tells several of a kind apart
    command: str  # of ``capcal``, that makes it
    key: tuple[str, ...]  # what identifies a row
    value: str  # the column that others are made from
    schema: pa.Schema
    whole: bool = True  # there is a row of all that was sampled
    missing: bool = False  # a value may be
    optional: tuple[str, ...] = ()  # columns that older files lack
    made: frozenset[bytes] = frozenset()  # what its metadata must say of how it was made

    def read(self, path: Path) -> pa.Table:
        """Read a file of this kind, with its record of how it was made as metadata."""
        table = read_table(path)
        if not self._fits(table.schema) or self._lacks_values(table):
            raise InputError(
                f"{path}: not a file of `capcal {self.command}`; delete it and make it again"
            )
        return table

    def _fits(self, schema: pa.Schema) -> bool:
        """Tell whether a file has the columns and the metadata of this kind."""
        if {*schema.names, *self.optional} != {*self.schema.names}:
            return False
        for field in schema:
            wanted = self.schema.field(field.name).type
            if pa.types.is_nested(wanted):  # which leaves the size open
                if not is_states(field.type):
                    return False
            elif field.type != wanted:
                return False
        return self.made <= {*(schema.metadata or {})}

    def _lacks_values(self, table: pa.Table) -> bool:
        """Tell whether a key is missing, or a value of which none may be."""
        columns = [table[name] for name in self.key]
        if not self.missing:
            columns.append(table[self.value])
        if self.value == "features":
            columns.append(table["features"].combine_chunks().flatten())
        return any(column.null_count for column in columns)


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
    """Return a digest of the content of a file: of its key and its values, sorted by key, whatever
    bytes store them; zeros if there is no file.
    """
    if not path.exists():
        return "0" * 64
    return _content_digest(path, path.stat().st_mtime_ns)


@lru_cache(1 << 10)
def _content_digest(path: Path, modified: int) -> str:  # noqa: ARG001
    artifact = artifact_of(path.name)
    assert artifact is not None
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
            "canonical": TEXT,  # the same for equal answers; null where there is none
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
        {
            "judge": TEXT,
            "weights": TEXT,
            "engine": TEXT,
            "prompt": TEXT,
            "question_id": TEXT,
            "extracted": TEXT,
            "verdict": TEXT,
            "words": TEXT,
        }
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
    missing=True,
)
FEATURES = Artifact(
    name="features.parquet",
    command="features",
    key=("question_id",),
    value="features",
    # in a file all lists have one size
    schema=pa.schema({"question_id": TEXT, "prompt": TEXT, "features": pa.list_(pa.float16())}),
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
            "split": pa.int8(),  # which of the paper's five, or which draw of labels; else 0
            "confidence": pa.float32(),
        }
    ),
    whole=False,
)
ARTIFACTS = (VERDICTS, JUDGEMENTS, CONFIDENCES, FEATURES, LAYER_FEATURES, PREDICTIONS)
