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
def test_no_flipped_bit_changes_a_row_unseen(run: Run, artifact: Artifact) -> None:
    path = run.path(artifact, NAMES[artifact])
    content = path.read_bytes()
    rows = artifact.read(path)
    rng = random.Random(0)
    for _ in range(150):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            assert artifact.read(path).to_pylist() == rows.to_pylist()
        except InputError as error:
            assert "\n" not in str(error)


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


@pytest.mark.parametrize("value", [None, np.nan])
def test_a_confidence_may_be_missing(run: Run, value: float | None) -> None:
    path = run.path(CONFIDENCES, "p-true")
    write_table(path, put("confidence", value)(CONFIDENCES.read(path)))
    assert read_confidence(run, "p-true")["confidence"].isna().sum() == 1


def test_verdicts_read_back_as_they_were_made(run: Run) -> None:
    before = read_verdicts(run)
    run.path(VERDICTS).unlink()
    grade_run(run)
    pd.testing.assert_frame_equal(read_verdicts(run), before)
