"""Describe each kind of file that is kept beside the samples of a run, once, here.

Whatever reads, checks, merges or counts such files uses these descriptions. A new kind of file is
one more of them."""

import hashlib
from collections.abc import Iterator, Sequence
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
import pyarrow.compute as pc

from capcal_lib.errors import InputError
from capcal_lib.runs import files

# instead of a grader's version: the verdicts came with the samples, and nothing grades them again
GIVEN = "given"
OUTCOMES = pa.array(["correct", "incorrect", "no_answer", "not_scored"])
MOST_SAMPLES = 1 << 20  # of a question; a larger index is damage, or somebody's mischief
TEXT = pa.string()
STATE_TYPE = pa.list_(pa.float16())  # in a file of one size for all rows


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
    missing: bool = False  # a value may be

    def read(self, path: Path) -> pa.Table:
        """Read a file of this kind, with its record of how it was made as metadata."""
        with self.open(path) as opened:
            return pa.concat_tables(self._tables(opened, opened.schema.names))

    def batches(self, path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read columns of a file of this kind, some 65,000 rows at a time, each time with the
        record of how it was made.
        """
        with self.open(path) as opened:
            yield from self._tables(opened, columns)

    @contextmanager
    def open(self, path: Path) -> Iterator[files.Opened]:
        """Open a file of this kind. Refuse one with other columns, without rows, or without the
        metadata of its kind.
        """
        with files.open_parquet(path, sealed=True) as opened:
            if not (opened.rows and self._fits(opened.schema)):
                raise self._refusal(path, f"not a file of `capcal {self.command}`")
            yield opened

    def _fits(self, schema: pa.Schema) -> bool:
        """Tell whether a file has the columns and the metadata of this kind."""
        if {*schema.names, *self.optional} != {*self.schema.names}:
            return False
        known = {*self.schema}
        for field in schema:  # hidden states have a size that the kind leaves open
            if field not in known and not _is_states(field.type):
                return False
        return self.made <= {*(schema.metadata or ())}

    def _tables(self, opened: files.Opened, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read columns, and refuse impossible rows. Every reader uses this method."""
        seen = []
        for rows in files.iterate(opened, dict.fromkeys([*self.key, self.value, *columns])):
            keys = rows.select([*self.key])
            if any(column.null_count for column in keys.columns):
                raise self._refusal(opened.path, "rows without a key")
            for column in keys.columns:
                if pa.types.is_integer(column.type) and not _in_range(column):
                    raise self._refusal(opened.path, "rows with a number that none can have")
            if wrong := len(rows) - int(pc.sum(self.is_sound(rows[self.value])).as_py()):
                raise self._refusal(opened.path, f"{wrong} values that no {self.value} can have")
            seen.append(keys)
            yield rows.select([*columns]).replace_schema_metadata(opened.schema.metadata)
        distinct = pa.concat_tables(seen).group_by([*self.key], use_threads=False).aggregate([])
        if twice := opened.rows - len(distinct):
            raise self._refusal(opened.path, f"{twice} rows are there twice")

    def is_sound(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Tell for each value whether it is possible for this kind."""
        if self.value == "verdict":
            return pc.is_in(values, OUTCOMES)
        if self.value == "features":
            states = matrix(pa.table({"features": values}), "features")
            return pa.array(np.isfinite(states).all(axis=1))
        inside = pc.and_(pc.greater_equal(values, 0), pc.less_equal(values, 1)).fill_null(False)
        if self.missing:
            return pc.or_(inside, pc.is_null(values, nan_is_null=True))
        return inside

    def _refusal(self, path: Path, problem: str) -> InputError:
        return InputError(
            f"{path}: {problem}; delete it and make it again with: capcal {self.command}"
        )


def _is_states(type_: pa.DataType) -> bool:
    return pa.types.is_fixed_size_list(type_) and bool(type_.value_type == pa.float16())


def _in_range(numbers: pa.ChunkedArray) -> bool:
    least, most = pc.min_max(numbers).as_py().values()
    return bool(least >= 0 and most < MOST_SAMPLES)


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
    artifact = artifact_of(path.name)
    if artifact is None or not files.exists(path):
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
            "canonical": TEXT,  # the same for equal answers; null where there is none
        }
    ),
    made=frozenset({b"grader"}),
    optional=("canonical",),
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
    missing=True,
)
FEATURES = Artifact(
    name="features.parquet",
    command="features",
    key=("question_id",),
    value="features",
    schema=pa.schema({"question_id": TEXT, "prompt": TEXT, "features": STATE_TYPE}),
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
# The one file beside the samples that is no table: what `capcal probe --draws` keeps.
DRAWS = "draws.json"
ARTIFACTS = (VERDICTS, JUDGEMENTS, CONFIDENCES, FEATURES, LAYER_FEATURES, PREDICTIONS)
