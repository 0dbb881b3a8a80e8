"""Confidences and hidden states of a run's questions, kept beside its samples."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from capcal_lib.confidence import Confidence, estimated
from capcal_lib.confidence.p_true import p_true
from capcal_lib.confidence.verbalized import verbalized
from capcal_lib.engines import open_engine
from capcal_lib.errors import InputError, unknown
from capcal_lib.manifests import load_model
from capcal_lib.probes.features import extract_features
from capcal_lib.questions import Question
from capcal_lib.store import read_record, read_samples, read_table, write_table
from capcal_lib.verdicts import run_questions

FEATURES = "features.parquet"
METHODS = ("p-true", "verbalized")
CONFIDENCES = pa.schema(
    [("question_id", pa.string()), ("confidence", pa.float64()), ("tokens", pa.int64()), ("text", pa.string())]
)


def estimate(folder: Path, method: str, *, engine: str | None = None, seed: int = 0) -> Confidence:
    """Ask the model for its confidence in each sampled question of a run, once, and keep the answer.

    A question that has an answer is not asked again, whatever the engine and the seed; one that was sampled
    since is asked alone.

    Returns
    -------
    Confidence
        One row a sampled question, sorted by id.

    Raises
    ------
    InputError
        For an unknown method, a corrupt file, or a run whose questions have changed.
    """
    path = confidence_file(folder, method)
    kept = _read_confidences(path) if path.exists() else CONFIDENCES.empty_table()
    lacking = _lacking(folder, kept)
    if lacking:
        run = read_record(folder).identity
        model = load_model(run.model).on(run.dataset)
        source = open_engine(model, engine)
        fresh = p_true(source, model, lacking) if method == "p-true" else verbalized(source, model, lacking, seed=seed)
        values = pa.array(fresh.values, from_pandas=True)  # NaN becomes null
        columns = [fresh.question_ids.tolist(), values, fresh.tokens, fresh.texts]
        _add(path, kept, pa.table(columns, schema=CONFIDENCES))
    return read_confidence(folder, method)


def read_confidence(folder: Path, method: str) -> Confidence:
    """Read the confidences that ``estimate`` kept.

    Raises
    ------
    InputError
        Where there are none, with the command that makes them; for a corrupt file.
    """
    path = confidence_file(folder, method)
    if not path.exists():
        raise InputError(f"no {method} confidences in {folder}; {_how(folder, 'confidence')} --method {method}")
    table = _read_confidences(path)
    return estimated(
        table["question_id"].to_pylist(),
        table["confidence"].to_numpy(),
        tokens=table["tokens"].to_numpy(),
        texts=table["text"].to_pylist(),
    )


def extract(folder: Path, *, engine: str | None = None) -> npt.NDArray[np.float32]:
    """Extract the hidden states of a run's questions, once, and keep them as float16.

    Only questions that were sampled since are read again.

    Returns
    -------
    ndarray
        (n_questions, hidden_size), in the order of ``read_features``; about three decimal digits are kept.

    Raises
    ------
    InputError
        For a number beyond float16's 65,504, a corrupt file, or a run whose questions have changed.
    """
    path = folder / FEATURES
    kept = _read_feature_table(path) if path.exists() else None
    lacking = _lacking(folder, kept)
    if lacking:
        run = read_record(folder).identity
        model = load_model(run.model).on(run.dataset)
        features = extract_features(open_engine(model, engine), model, lacking)
        far = np.abs(features).max(axis=1) > np.finfo(np.float16).max
        if far.any():
            raise InputError(
                f"the hidden states of {lacking[int(far.argmax())].id!r} go beyond 65,504, the largest float16; "
                f"they cannot be kept in {path}"
            )
        flat = pa.array(features.astype(np.float16).ravel())
        rows = pa.FixedSizeListArray.from_arrays(flat, features.shape[1])
        _add(path, kept, pa.table({"question_id": [question.id for question in lacking], "features": rows}))
    return read_features(folder)[1]


def read_features(folder: Path) -> tuple[list[str], npt.NDArray[np.float32]]:
    """Read the question ids, sorted, and the hidden states, (n_questions, hidden_size), that ``extract`` kept.

    Raises
    ------
    InputError
        Where there are none, with the command that makes them; for a corrupt file.
    """
    path = folder / FEATURES
    if not path.exists():
        raise InputError(f"no hidden states in {folder}; {_how(folder, 'features')}")
    table = _read_feature_table(path)
    features = table["features"].combine_chunks()
    matrix = features.values.to_numpy(zero_copy_only=False).reshape(len(table), features.type.list_size)
    return table["question_id"].to_pylist(), matrix.astype(np.float32)


def confidence_file(folder: Path, method: str) -> Path:
    """Return where a run keeps the confidences of a method.

    Raises
    ------
    InputError
        For an unknown method.
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    return folder / f"confidence-{method}.parquet"


def _lacking(folder: Path, kept: pa.Table | None) -> list[Question]:
    """Return the sampled questions of a run, sorted by id, that a table has no row for."""
    sampled = read_samples(folder)["question_id"].unique()
    if not len(sampled):
        raise InputError(f"{folder} has no samples yet; draw some with: capcal sample")
    known = set(kept["question_id"].to_pylist()) if kept is not None else set()
    names = [name for name in sampled if name not in known]
    questions = run_questions(folder) if names else {}
    return [questions[name] for name in names]


def _add(path: Path, kept: pa.Table | None, fresh: pa.Table) -> None:
    """Write the rows of both tables to a file, sorted by question id."""
    both = [fresh] if kept is None else [kept, fresh]
    try:
        table = pa.concat_tables(both)
    except pa.ArrowInvalid:
        raise InputError(f"{path}: made by another engine or model; delete it and make it again") from None
    write_table(path, table.sort_by("question_id"))


def _read_confidences(path: Path) -> pa.Table:
    table = read_table(path)
    if not table.schema.equals(CONFIDENCES, check_metadata=False):
        raise InputError(f"{path}: not a file of confidences; delete it and make it again with: capcal confidence")
    return table


def _read_feature_table(path: Path) -> pa.Table:
    table = read_table(path)
    if table.column_names != ["question_id", "features"] or not pa.types.is_fixed_size_list(table["features"].type):
        raise InputError(f"{path}: not a file of hidden states; delete it and make it again with: capcal features")
    return table


def _how(folder: Path, command: str) -> str:
    run = read_record(folder).identity
    return f"make them with: capcal {command} --model {run.model} --dataset {run.dataset} --split {run.split}"
