"""Features: the hidden states that a probe reads (paper, appendix on linear probes), kept beside a
run's samples.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from capcal_lib.confidence.of_run import asked_model, refuse_other, sampled_questions
from capcal_lib.errors import InputError, unknown
from capcal_lib.manifests import Model
from capcal_lib.questions import Question
from capcal_lib.questions.prompts import answer_messages, prompt_digest
from capcal_lib.runs.artifacts import FEATURES, PART, matrix, vectors
from capcal_lib.runs.files import write_table
from capcal_lib.runs.run import Run
from capcal_lib.sampling.draw import answer_requests
from capcal_lib.sampling.engines import Engine, Layers, open_engine
from capcal_lib.sampling.weights import weights_digest

BATCH = 64  # questions whose hidden states are read, and then kept, together


def extract_features(
    engine: Engine, model: Model, questions: Sequence[Question], *, layers: Layers = "mean"
) -> npt.NDArray[np.float32]:
    """Read the hidden states of the last prompt token: after the embedding, and after every layer.

    The prompt is the one that answers are sampled from: it costs one pass over it and no token.
    ``layers``: ``mean``, the paper's, or ``max`` pools the layers + 1 states, number by number, to
    (n_questions, hidden_size); ``all`` keeps each, (n_questions, layers + 1, hidden_size). Float32,
    in the order of the questions. Another shape from the engine, or a number that is not finite, is
    refused.

    >>> from capcal_lib.sampling.engines import open_engine
    >>> from capcal_lib.manifests import load_model
    >>> from capcal_lib.questions import load_questions
    >>> model = load_model("simulated")
    >>> questions = load_questions("mini-capitals", "test", limit=5)
    >>> extract_features(open_engine(model), model, questions, layers="all").shape
    (5, 7, 64)
    """
    if layers not in get_args(Layers):
        raise unknown("layers", layers, get_args(Layers))
    requests = answer_requests(model, questions)
    features = np.asarray(engine.hidden_states(requests, layers), dtype=np.float32)
    if features.ndim != (3 if layers == "all" else 2) or len(features) != len(questions):
        raise InputError(
            f"engine {engine.family} returned features of shape {features.shape} for "
            f"{len(questions)} questions"
        )
    bad = np.flatnonzero(~np.isfinite(features).reshape(len(features), -1).all(axis=1))
    if len(bad):
        raise InputError(
            f"engine {engine.family} returned features that are not finite for "
            f"{questions[bad[0]].id!r}"
        )
    return features


def extract(
    run: Run, *, layers: Layers = "mean", engine: str | None = None
) -> npt.NDArray[np.float32]:
    """Extract the hidden states of a run's questions, once, and keep them as float16, each with its
    prompt's digest.

    Only questions that were sampled since are read again, and those whose row has no digest; where
    the states of all layers are kept, these are pooled. What is read is kept batch by batch, so a
    stop loses at most one batch. Returns the matrix of ``read_features``; about three decimal
    digits are kept.

    Refused are a number beyond float16's 65,504, a corrupt file, rows that were read from another
    prompt, a run whose questions have changed, and a model that is asked in another way since."""
    table, parts = read_states(run, layers, engine)
    if parts:
        write_table(features_file(run, layers), table)
        for part in parts:
            part.unlink(missing_ok=True)
    return read_features(run, layers)[1]


def read_states(
    run: Run, layers: Layers = "mean", engine: str | None = None
) -> tuple[pa.Table, list[Path]]:
    """Read what ``extract`` keeps: a row of each question, sorted by id, and the files of the
    batches that were read since the finished file.

    Whoever asks removes these files when what was made of them is written."""
    path = features_file(run, layers)
    model = asked_model(run)
    questions = sampled_questions(run)
    weights = weights_digest(model, run.identity.engine)
    refuse_other(run, "weights", run.identity.weights, weights)
    prompts = {
        name: prompt_digest(answer_messages(one, model.prompt_style))
        for name, one in questions.items()
    }
    parts = _parts(path)
    tables = _kept([path, *parts], prompts)
    known = {name for table in tables for name in table["question_id"].to_pylist()}
    lacking = {name: one for name, one in questions.items() if name not in known}
    for names, features in _batches(run, model, lacking, prompts, layers, engine):
        table = _feature_table(path, [(name, prompts[name]) for name in names], features)
        if tables and not table.schema.equals(tables[0].schema, check_metadata=False):
            raise InputError(
                f"{path}: made by another engine or model; delete it and make it again"
            )
        parts.append(path.with_name(f"{path.stem}{PART}{len(parts):05d}.parquet"))
        write_table(parts[-1], table)
        tables.append(table)
    return pa.concat_tables(tables).sort_by("question_id"), parts


def read_features(run: Run, layers: Layers = "mean") -> tuple[list[str], npt.NDArray[np.float32]]:
    """Read the question ids, sorted, and the hidden states that ``extract`` kept, shaped as by
    ``extract_features``.

    Where there are none, the error names the command that makes them.
    """
    option = "" if layers == "mean" else f" --layers {layers}"
    table = run.read(FEATURES, _name(layers), option=option)
    return table["question_id"].to_pylist(), matrix(table, "features").astype(np.float32)


def features_file(run: Run, layers: Layers = "mean") -> Path:
    """Return where a run keeps the hidden states of these layers."""
    return run.path(FEATURES, _name(layers))


def _name(layers: Layers) -> str:
    if layers not in get_args(Layers):
        raise unknown("layers", layers, get_args(Layers))
    return "" if layers == "mean" else f"-{layers}"


def _feature_table(
    path: Path, rows: list[tuple[str, str]], features: npt.NDArray[np.float32]
) -> pa.Table:
    """Return (question id, digest of its prompt) and hidden states as a table of float16."""
    far = np.abs(features).reshape(len(rows), -1).max(axis=1) > np.finfo(np.float16).max
    if far.any():
        raise InputError(
            f"the hidden states of {rows[int(far.argmax())][0]!r} go beyond 65,504, the largest "
            "float16; "
            f"they cannot be kept in {path}"
        )
    names, prompts = zip(*rows, strict=True)
    return pa.table({"question_id": names, "prompt": prompts, "features": vectors(features)})


def _parts(path: Path) -> list[Path]:
    """List what an extraction that was stopped has left."""
    return sorted(path.parent.glob(f"{path.stem}{PART}*.parquet"))


def _kept(files: list[Path], prompts: Mapping[str, str]) -> list[pa.Table]:
    """Return the rows that files hold, each question once; those of another prompt are refused."""
    tables: list[pa.Table] = []
    known: set[str] = set()
    for file in filter(Path.exists, files):
        table = FEATURES.read(file)
        if (
            "prompt" not in table.column_names
        ):  # nobody knows what was read: all of it is read again
            continue
        table = table.filter(
            pc.invert(pc.is_in(table["question_id"], pa.array(known, pa.string())))
        )
        names = table["question_id"].to_pylist()
        for name, prompt in zip(names, table["prompt"].to_pylist(), strict=True):
            if prompts.get(name) != prompt:
                raise InputError(
                    f"{file}: {name!r} was read from another prompt; delete the file and make it "
                    "again"
                )
        known.update(names)
        tables.append(table)
    return tables


def _batches(
    run: Run,
    model: Model,
    questions: Mapping[str, Question],
    prompts: Mapping[str, str],
    layers: Layers,
    engine: str | None,
) -> Iterator[tuple[list[str], npt.NDArray[np.float32]]]:
    """Yield question ids and their hidden states: pooled where those of all layers are kept, and
    read of the others.
    """
    lacking = dict(questions)
    every = features_file(run, "all")
    for table in _kept([every, *_parts(every)], prompts) if layers != "all" else []:
        table = table.filter(pc.is_in(table["question_id"], pa.array(lacking, pa.string())))
        states = matrix(table, "features").astype(np.float32)
        names = table["question_id"].to_pylist()
        if names:
            yield names, states.mean(axis=1) if layers == "mean" else states.max(axis=1)
        for name in names:
            del lacking[name]
    if not lacking:
        return
    source = open_engine(model, engine)
    ids = list(lacking)
    for start in range(0, len(ids), BATCH):
        names = ids[start : start + BATCH]
        batch = [lacking[name] for name in names]
        yield names, extract_features(source, model, batch, layers=layers)
