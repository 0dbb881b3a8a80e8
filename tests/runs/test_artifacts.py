"""What is kept beside samples: a changed bit and a row that cannot be are one line, whoever
reads.
"""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capcal_lib.confidence.of_run import estimate, read_confidence
from capcal_lib.errors import InputError
from capcal_lib.grading.judgements import judge_run
from capcal_lib.grading.verdicts import grade_run, read_verdicts
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
def test_no_flipped_bit_goes_unseen(run: Run, artifact: Artifact) -> None:
    path = run.path(artifact, NAMES[artifact])
    content = path.read_bytes()
    rng = random.Random(0)
    for _ in range(150):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(InputError) as caught:
            artifact.read(path)
        assert "\n" not in str(caught.value)
    path.write_bytes(content)
    assert len(artifact.read(path))


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda artifact: artifact.name)
def test_nothing_describes_the_columns_a_second_time(run: Run, artifact: Artifact) -> None:
    path = run.path(artifact, NAMES[artifact])
    assert b"pandas" not in path.read_bytes()
    table = artifact.read(path)
    obeyed = pq.read_table(path).replace_schema_metadata(
        (table.schema.metadata or {}) | {b"pandas": b'{"columns": 1}'}
    )
    path.unlink()
    pq.write_table(obeyed, path)
    assert artifact.read(path).equals(table, check_metadata=True)
    assert artifact.read(path).to_pandas().equals(table.to_pandas())


def test_files_of_earlier_versions_are_read() -> None:
    for run in open_runs(RECORDED_RUNS, model="smollm2-135m", dataset="gsm8k"):
        for path in run.folder.glob("*.parquet"):
            if artifact := artifact_of(path.name):
                assert artifact.read(path).equals(pq.read_table(path))


def test_a_digest_in_a_text_is_not_that_of_the_file(run: Run) -> None:
    rows = read_confidence(run, "p-true").reset_index()
    rows["text"] = f"capcal.sha256:{'1' * 64}"
    run.add(CONFIDENCES, rows, "p-true")
    assert read_confidence(run, "p-true")["text"].str.endswith("1111").all()


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


def first_twice(rows: pa.Table) -> pa.Table:
    return pa.concat_tables([rows[:1], rows])


IMPOSSIBLE: list[tuple[Artifact, Callable[[pa.Table], pa.Table], str]] = [
    *((artifact, first_twice, "1 rows are there twice") for artifact in ARTIFACTS),
    *((artifact, put("question_id", None), "rows without a key") for artifact in ARTIFACTS),
    *((artifact, lambda rows: rows[:0], "not a file of `capcal") for artifact in ARTIFACTS),
    *((artifact, no_text, "invalid UTF8|Invalid UTF8|UTF-?8") for artifact in ARTIFACTS),
    (VERDICTS, put("sample_index", None), "rows without a key"),
    (VERDICTS, put("sample_index", -1), "rows with a number that none can have"),
    (VERDICTS, put("sample_index", 1 << 20), "rows with a number that none can have"),
    (VERDICTS, put("verdict", "perhaps"), "1 values that no verdict can have"),
    (VERDICTS, put("verdict", None), "1 values that no verdict can have"),
    (JUDGEMENTS, put("verdict", "right"), "1 values that no verdict can have"),
    (JUDGEMENTS, put("extracted", None), "rows without a key"),
    (CONFIDENCES, put("confidence", 1.5), "1 values that no confidence can have"),
    (CONFIDENCES, put("confidence", -np.inf), "1 values that no confidence can have"),
    (FEATURES, put("features", [np.nan] * 64), "1 values that no features can have"),
    (PREDICTIONS, put("confidence", np.nan), "1 values that no confidence can have"),
    (PREDICTIONS, put("split", -1), "rows with a number that none can have"),
]


@pytest.mark.parametrize(("artifact", "change", "message"), IMPOSSIBLE)
def test_rows_that_cannot_be_are_refused_whoever_reads(
    run: Run, artifact: Artifact, change: Callable[[pa.Table], pa.Table], message: str
) -> None:
    path = run.path(artifact, NAMES[artifact])
    table = artifact.read(path)
    write_table(path, change(table).replace_schema_metadata(table.schema.metadata))
    for read in (
        lambda: artifact.read(path),
        lambda: [*artifact.batches(path, [artifact.key[0]])],
    ):
        with pytest.raises(InputError, match=message) as caught:
            read()
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("value", [None, np.nan])
def test_a_confidence_may_be_missing(run: Run, value: float | None) -> None:
    path = run.path(CONFIDENCES, "p-true")
    write_table(path, put("confidence", value)(CONFIDENCES.read(path)))
    assert read_confidence(run, "p-true")["confidence"].isna().sum() == 1


def test_states_of_another_kind_are_refused(run: Run) -> None:
    ids = FEATURES.read(run.path(FEATURES))["question_id"]
    texts = pa.FixedSizeListArray.from_arrays(pa.array(["a"] * len(ids)), 1)
    pq.write_table(pa.table({"question_id": ids, "features": texts}), run.path(FEATURES))
    with pytest.raises(InputError, match="not a file of `capcal features`"):
        run.read(FEATURES)


def bomb(path: Path, table: pa.Table, times: int = 1) -> None:
    with pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False) as writer:
        for _ in range(times):
            writer.write_table(table)


def test_a_small_file_does_not_unpack_to_much(run: Run) -> None:
    """Texts and numbers that come often take no bytes in a file."""
    path = run.path(CONFIDENCES, "p-true")
    rows = 1_000_000
    equal = {
        "question_id": pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, "i1")), ["q"]),
        "confidence": pa.array(np.zeros(rows)),
        "tokens": pa.array(np.zeros(rows, "i8")),
        "text": pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, "i1")), [""]),
    }
    bomb(path, pa.table(equal), 40)
    assert path.stat().st_size < 1 << 20
    with pytest.raises(InputError, match="unpacks to more than any file of a run"):
        read_confidence(run, "p-true")
    texts = {
        "question_id": [f"q{number}" for number in range(1_000)],
        "confidence": [0.5] * 1_000,
        "tokens": [1] * 1_000,
        "text": pa.DictionaryArray.from_arrays(pa.array([0] * 1_000), ["x" * 5_000_000]),
    }
    bomb(path, pa.table(texts))
    assert path.stat().st_size < 1 << 15
    before = pa.total_allocated_bytes()
    with pytest.raises(InputError, match="unpacks to more than any file of a run"):
        read_confidence(run, "p-true")
    assert pa.total_allocated_bytes() - before < 1 << 26


def test_verdicts_read_back_as_they_were_made(run: Run) -> None:
    before = read_verdicts(run)
    run.path(VERDICTS).unlink()
    grade_run(run)
    pd.testing.assert_frame_equal(read_verdicts(run), before)
