"""What is kept beside samples: a changed bit and a row that cannot be are one line, whoever
reads.
"""

import random
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capcal_lib.confidence.of_run import estimate, read_confidence
from capcal_lib.errors import InputError
from capcal_lib.grading.judgements import judge_run
from capcal_lib.grading.verdicts import grade_run
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probes.features import extract
from capcal_lib.probes.predictions import keep_predictions
from capcal_lib.runs import Run, open_runs
from capcal_lib.runs.artifacts import (
    ARTIFACTS,
    CONFIDENCES,
    FEATURES,
    JUDGEMENTS,
    LAYER_FEATURES,
    PREDICTIONS,
    VERDICTS,
    Artifact,
    artifact_of,
)
from capcal_lib.runs.files import write_table
from capcal_lib.sampling.draw import sample

SET = "mini-capitals"
NAMES = {
    VERDICTS: "",
    JUDGEMENTS: "",
    CONFIDENCES: "p-true",
    FEATURES: "",
    LAYER_FEATURES: "max",
    PREDICTIONS: "tuned",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with all that is kept beside the samples of a run."""
    store = tmp_path_factory.mktemp("store")
    for split, limit in (("train", 12), ("test", 6)):
        drawn = sample("simulated", SET, k=3, limit=limit, split=split, store=store)
        grade_run(drawn.run)
        extract(drawn.run)
    extract(drawn.run, layers="max")
    estimate(drawn.run, "p-true")
    judge_run(drawn.run, "simulated")
    keep_predictions(store, "simulated")
    return store


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Run:
    shutil.copytree(whole, tmp_path / "store")
    (found,) = open_runs(tmp_path / "store", split="test")
    return found


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda artifact: artifact.name)
def test_no_flipped_bit_changes_a_row_unseen(run: Run, artifact: Artifact) -> None:
    path = run.path(artifact, NAMES[artifact])
    content = path.read_bytes()
    rows = artifact.read(path)
    rng = random.Random(0)
    for _ in range(40):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            assert artifact.read(path).to_pylist() == rows.to_pylist()
        except InputError as refusal:
            assert "\n" not in str(refusal)  # noqa: PT017


def test_files_of_earlier_versions_are_read() -> None:
    for run in open_runs(RECORDED_RUNS, model="smollm2-135m", dataset="gsm8k"):
        for path in run.folder.glob("*.parquet"):
            if artifact := artifact_of(path.name):
                assert artifact.read(path).equals(pq.read_table(path))


def put(column: str, value: object) -> Callable[[pa.Table], pa.Table]:
    """Return how the first row gets another value."""

    def change(rows: pa.Table) -> pa.Table:
        values = [value, *rows[column].to_pylist()[1:]]
        array = pa.array(values, rows[column].type)
        return rows.set_column(rows.column_names.index(column), column, array)

    return change


def no_text(rows: pa.Table) -> pa.Table:
    """Put bytes that are no UTF-8 in the place of the first id."""
    ids = [b"\xff\xfe", *(text.encode() for text in rows["question_id"].to_pylist()[1:])]
    return rows.set_column(
        rows.column_names.index("question_id"),
        "question_id",
        pa.Array.from_buffers(pa.string(), len(ids), pa.array(ids, pa.binary()).buffers()),
    )


@pytest.mark.parametrize(
    ("artifact", "change", "message"),
    [
        (CONFIDENCES, put("question_id", None), "not a file of `capcal confidence`"),
        (FEATURES, put("features", None), "not a file of `capcal features`"),
        (VERDICTS, put("verdict", None), "not a file of `capcal grade`"),
        (VERDICTS, no_text, "[Ii]nvalid UTF8"),
    ],
)
def test_rows_without_a_key_a_value_or_a_text_are_refused(
    run: Run, artifact: Artifact, change: Callable[[pa.Table], pa.Table], message: str
) -> None:
    path = run.path(artifact, NAMES[artifact])
    table = artifact.read(path)
    write_table(path, change(table).replace_schema_metadata(table.schema.metadata))
    with pytest.raises(InputError, match=message) as caught:
        artifact.read(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("value", [None, np.nan])
def test_a_confidence_may_be_missing(run: Run, value: float | None) -> None:
    path = run.path(CONFIDENCES, "p-true")
    write_table(path, put("confidence", value)(CONFIDENCES.read(path)))
    assert read_confidence(run, "p-true")["confidence"].isna().sum() == 1


def test_columns_of_another_type_are_refused(run: Run) -> None:
    ids = FEATURES.read(run.path(FEATURES))["question_id"]
    texts = pa.FixedSizeListArray.from_arrays(pa.array(["a"] * len(ids)), 1)
    pq.write_table(pa.table({"question_id": ids, "features": texts}), run.path(FEATURES))
    with pytest.raises(InputError, match="it has lists that are not hidden states"):
        run.read(FEATURES)
    pq.write_table(pa.table({"question_id": ids, "features": ids}), run.path(FEATURES))
    with pytest.raises(InputError, match="not a file of `capcal features`"):
        run.read(FEATURES)
    path = run.path(CONFIDENCES, "p-true")
    rows = CONFIDENCES.read(path)
    place = rows.column_names.index("confidence")
    write_table(path, rows.set_column(place, "confidence", rows["confidence"].cast(pa.string())))
    with pytest.raises(InputError, match="not a file of `capcal confidence`"):
        read_confidence(run, "p-true")


def test_a_small_file_does_not_unpack_to_much(run: Run) -> None:
    """A text that comes often takes no bytes in a file."""
    path = run.path(CONFIDENCES, "p-true")
    texts = {
        "question_id": [f"q{number}" for number in range(1_000)],
        "confidence": [0.5] * 1_000,
        "tokens": [1] * 1_000,
        "text": pa.DictionaryArray.from_arrays(pa.array([0] * 1_000), ["x" * 5_000_000]),
    }
    pq.write_table(pa.table(texts), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 1 << 15
    before = pa.total_allocated_bytes()
    with pytest.raises(InputError, match="unpacks to more than any file of a run"):
        read_confidence(run, "p-true")
    assert pa.total_allocated_bytes() - before < 1 << 26


def add_many(run: Run, first: int) -> None:
    """Add the confidences of twenty questions, one after another."""
    for number in range(first, first + 20):
        rows = [{"question_id": f"q{number}", "confidence": 0.5, "tokens": 1, "text": None}]
        run.add(CONFIDENCES, pd.DataFrame(rows), "mine")


def test_two_that_add_to_one_file_lose_no_row(run: Run) -> None:
    with ThreadPoolExecutor() as threads:
        list(threads.map(partial(add_many, run), (0, 100)))
    assert len(read_confidence(run, "mine")) == 40


def test_what_a_killed_writer_left_of_a_file_goes_with_the_next_rows(run: Run) -> None:
    left = run.path(CONFIDENCES, ".mine").with_name(".confidence-mine.parquet.0123.tmp")
    other = left.with_name(".confidence-yours.parquet.0123.tmp")
    left.touch()
    other.touch()
    add_many(run, 0)
    assert (left.exists(), other.exists()) == (False, True)
