"""Confidences and hidden states of a run's questions, kept beside its samples."""

from functools import cache, partial
from pathlib import Path
from typing import get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from capcal_lib.confidence import Confidence, estimated
from capcal_lib.confidence.p_true import p_true
from capcal_lib.confidence.verbalized import verbalized
from capcal_lib.errors import InputError, unknown
from capcal_lib.grading.verdicts import run_questions
from capcal_lib.manifests import Model, load_model
from capcal_lib.probes.features import extract_features
from capcal_lib.questions import Question
from capcal_lib.questions.prompts import answer_messages, prompt_digest, template_digest
from capcal_lib.sampling.engines import Layers, open_engine
from capcal_lib.sampling.store import KEY, read_record, read_samples, read_table, write_table
from capcal_lib.sampling.weights import weights_digest

FEATURES = "features.parquet"
BATCH = 64  # questions whose hidden states are read, and then kept, together
METHODS = ("p-true", "verbalized")
CONFIDENCES = pa.schema(
    [("question_id", pa.string()), ("confidence", pa.float64()), ("tokens", pa.int64()), ("text", pa.string())]
)


def estimate(folder: Path, method: str, *, engine: str | None = None, seed: int = 0) -> Confidence:
    """Ask the model for its confidence in each sampled question of a run, once, and keep the answer.

    A question that has an answer is not asked again, whatever the engine and the seed; one that was sampled
    since is asked alone, and one that the engine failed to ask is asked again.

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
    kept = kept.filter(pa.array(kept["tokens"].to_numpy() > 0))  # where the engine failed, nothing was said
    known = set(kept["question_id"].to_pylist())
    lacking = [question for name, question in _sampled(folder).items() if name not in known]
    if lacking:
        model = _asked_model(folder)
        source = open_engine(model, engine)
        fresh = p_true(source, model, lacking) if method == "p-true" else verbalized(source, model, lacking, seed=seed)
        values = pa.array(fresh.values, from_pandas=True)  # NaN becomes null
        columns = [fresh.question_ids.tolist(), values, fresh.tokens, fresh.texts]
        both = pa.concat_tables([kept, pa.table(columns, schema=CONFIDENCES)])
        write_table(path, both.sort_by("question_id"))
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


def extract(folder: Path, *, layers: Layers = "mean", engine: str | None = None) -> npt.NDArray[np.float32]:
    """Extract the hidden states of a run's questions, once, and keep them as float16, each with its prompt's digest.

    Only questions that were sampled since are read again, and those whose row has no digest. What is read is kept
    batch by batch, so a stop loses at most one batch.

    Returns
    -------
    ndarray
        (n_questions, hidden_size), or (n_questions, layers + 1, hidden_size) for ``all``, in the order of
        ``read_features``; about three decimal digits are kept.

    Raises
    ------
    InputError
        For a number beyond float16's 65,504, a corrupt file, rows that were read from another prompt, a run whose
        questions have changed, or a model that is asked in another way since.
    """
    path = features_file(folder, layers)
    model, questions = _asked_model(folder), _sampled(folder)
    _refuse_other(folder, "weights", read_record(folder).identity.weights, weights_digest(model))
    prompts = {name: prompt_digest(answer_messages(one, model.prompt_style)) for name, one in questions.items()}
    parts = _parts(path)  # what an extraction that was stopped has left
    tables: list[pa.Table] = []
    known: set[str] = set()
    for file in filter(Path.exists, [path, *parts]):
        table = _read_feature_table(file)
        if "prompt" not in table.column_names:  # nobody knows what was read: all of it is read again
            continue
        table = table.filter(pc.invert(pc.is_in(table["question_id"], pa.array(known, pa.string()))))
        names = table["question_id"].to_pylist()
        for name, prompt in zip(names, table["prompt"].to_pylist(), strict=True):
            if prompts.get(name) != prompt:
                raise InputError(f"{file}: {name!r} was read from another prompt; delete the file and make it again")
        known.update(names)
        tables.append(table)
    lacking = [question for name, question in questions.items() if name not in known]
    opened = cache(partial(open_engine, model, engine))  # at the first batch, if there is one
    for start in range(0, len(lacking), BATCH):
        batch = lacking[start : start + BATCH]
        features = extract_features(opened(), model, batch, layers=layers)
        table = _feature_table(path, [(one.id, prompts[one.id]) for one in batch], features)
        if tables and not table.schema.equals(tables[0].schema, check_metadata=False):
            raise InputError(f"{path}: made by another engine or model; delete it and make it again")
        parts.append(path.with_name(f"{path.stem}.part-{len(parts):05d}.parquet"))
        write_table(parts[-1], table)
        tables.append(table)
    if parts:
        write_table(path, pa.concat_tables(tables).sort_by("question_id"))
        for part in parts:
            part.unlink()
    return read_features(folder, layers)[1]


def read_features(folder: Path, layers: Layers = "mean") -> tuple[list[str], npt.NDArray[np.float32]]:
    """Read the question ids, sorted, and the hidden states that ``extract`` kept.

    Returns
    -------
    list of str, ndarray
        (n_questions,) and (n_questions, hidden_size), or (n_questions, layers + 1, hidden_size) for ``all``.

    Raises
    ------
    InputError
        Where there are none, with the command that makes them; for a corrupt file.
    """
    path = features_file(folder, layers)
    if not path.exists():
        option = "" if layers == "mean" else f" --layers {layers}"
        raise InputError(f"no hidden states in {folder}; {_how(folder, 'features')}{option}")
    table = _read_feature_table(path)
    shape, kind = [len(table)], table["features"].type
    values = table["features"].combine_chunks()
    while pa.types.is_fixed_size_list(kind):
        shape.append(kind.list_size)
        values, kind = values.flatten(), kind.value_type
    matrix = values.to_numpy(zero_copy_only=False).reshape(shape)
    return table["question_id"].to_pylist(), matrix.astype(np.float32)


def features_file(folder: Path, layers: Layers = "mean") -> Path:
    """Return where a run keeps the hidden states of these layers.

    Raises
    ------
    InputError
        For unknown layers.
    """
    if layers not in get_args(Layers):
        raise unknown("layers", layers, get_args(Layers))
    return folder / (FEATURES if layers == "mean" else f"features-{layers}.parquet")


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


def _sampled(folder: Path) -> dict[str, Question]:
    """Return the sampled questions of a run, sorted by id."""
    sampled = read_samples(folder, KEY)["question_id"].unique()
    if not len(sampled):
        raise InputError(f"{folder} has no samples yet; draw some with: capcal sample")
    questions = run_questions(folder)
    return {name: questions[name] for name in sampled}


def _asked_model(folder: Path) -> Model:
    """Return the model of a run, which must still be asked in the way that its samples were drawn."""
    run = read_record(folder).identity
    model = load_model(run.model).for_dataset(run.dataset)
    _refuse_other(folder, "prompt style", run.prompt_style, model.prompt_style)
    _refuse_other(folder, "prompt template", run.prompt_template, template_digest(model.prompt_style))
    _refuse_other(folder, "switches of the chat template", run.chat_template, model.chat_template)
    return model


def _refuse_other(folder: Path, what: str, then: object, now: object) -> None:
    if then != now:
        raise InputError(f"{folder}: sampled with other {what} ({then}) than there are now ({now}); sample it again")


def _parts(path: Path) -> list[Path]:
    """List the batches of hidden states that are not in their file yet."""
    return sorted(path.parent.glob(f"{path.stem}.part-*.parquet"))


def _feature_table(path: Path, rows: list[tuple[str, str]], features: npt.NDArray[np.float32]) -> pa.Table:
    """Return (question id, digest of its prompt) and hidden states as a table of float16."""
    far = np.abs(features).reshape(len(rows), -1).max(axis=1) > np.finfo(np.float16).max
    if far.any():
        raise InputError(
            f"the hidden states of {rows[int(far.argmax())][0]!r} go beyond 65,504, the largest float16; "
            f"they cannot be kept in {path}"
        )
    values = pa.array(features.astype(np.float16).ravel())
    for size in reversed(features.shape[1:]):
        values = pa.FixedSizeListArray.from_arrays(values, size)
    names, prompts = zip(*rows, strict=True)
    return pa.table({"question_id": names, "prompt": prompts, "features": values})


def _read_confidences(path: Path) -> pa.Table:
    table = read_table(path)
    if not table.schema.equals(CONFIDENCES, check_metadata=False):
        raise InputError(f"{path}: not a file of confidences; delete it and make it again with: capcal confidence")
    return table


def _read_feature_table(path: Path) -> pa.Table:
    table = read_table(path)
    known = table.column_names in (["question_id", "prompt", "features"], ["question_id", "features"])
    if not known or not pa.types.is_fixed_size_list(table["features"].type):
        raise InputError(f"{path}: not a file of hidden states; delete it and make it again with: capcal features")
    return table


def _how(folder: Path, command: str) -> str:
    run = read_record(folder).identity
    return f"make them with: capcal {command} --model {run.model} --dataset {run.dataset} --split {run.split}"
