"""Features: the hidden states that a probe reads (paper, appendix on linear probes), kept beside a
run's samples.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from capcal_lib.confidence.of_run import asked_model, refuse_other, sampled_questions
from capcal_lib.errors import InputError
from capcal_lib.manifests import Model
from capcal_lib.questions import Question
from capcal_lib.questions.prompts import answer_messages, prompt_digest
from capcal_lib.runs.artifacts import FEATURES, PART, matrix, vectors
from capcal_lib.runs.files import write_table
from capcal_lib.runs.run import Run
from capcal_lib.sampling.draw import answer_requests
from capcal_lib.sampling.engines import Engine, open_engine
from capcal_lib.sampling.weights import weights_digest

BATCH = 64  # questions whose hidden states are read, and then kept, together


def extract_features(
    engine: Engine, model: Model, questions: Sequence[Question]
) -> npt.NDArray[np.float32]:
    """Read the mean over layers of the last prompt token's hidden states, as the paper does.

    The prompt is the one that answers are sampled from: it costs one pass over it and no token.
    (n_questions, hidden_size), float32, in the order of the questions. Another shape from the
    engine, or a number that is not finite, is refused.

    >>> from capcal_lib.sampling.engines import open_engine
    >>> from capcal_lib.manifests import load_model
    >>> from capcal_lib.questions import load_questions
    >>> model = load_model("simulated")
    >>> questions = load_questions("mini-capitals", "test", limit=5)
    >>> extract_features(open_engine(model), model, questions).shape
    (5, 64)
    """
    requests = answer_requests(model, questions)
    features = np.asarray(engine.hidden_states(requests), dtype=np.float32)
    if features.ndim != 2 or len(features) != len(questions):
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


def extract(run: Run, *, engine: str | None = None) -> npt.NDArray[np.float32]:
    """Extract the hidden states of a run's questions, once, and keep them as float16, each with its
    prompt's digest.

    Only questions that were sampled since are read again, and those whose row has no digest. What
    is read is kept batch by batch, so a stop loses at most one batch. Returns the matrix of
    ``read_features``; about three decimal digits are kept.

    Refused are a number beyond float16's 65,504, a corrupt file, rows that were read from another
    prompt, a run whose questions have changed, and a model that is asked in another way since."""
    table, parts = read_states(run, engine)
    if parts:
        write_table(run.path(FEATURES), table)
        for part in parts:
            part.unlink(missing_ok=True)
    return read_features(run)[1]


def read_states(run: Run, engine: str | None = None) -> tuple[pa.Table, list[Path]]:
    """Read what ``extract`` keeps: a row of each question, sorted by id, and the files of the
    batches that were read since the finished file.

    Whoever asks removes these files when what was made of them is written."""
    path = run.path(FEATURES)
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
    for names, features in _batches(model, lacking, engine):
        table = _feature_table(path, [(name, prompts[name]) for name in names], features)
        if tables and not table.schema.equals(tables[0].schema, check_metadata=False):
            raise InputError(
                f"{path}: made by another engine or model; delete it and make it again"
            )
        parts.append(path.with_name(f"{path.stem}{PART}{len(parts):05d}.parquet"))
        write_table(parts[-1], table)
        tables.append(table)
    return pa.concat_tables(tables).sort_by("question_id"), parts


def read_features(run: Run) -> tuple[list[str], npt.NDArray[np.float32]]:
    """Read the question ids, sorted, and the hidden states that ``extract`` kept, shaped as by
    ``extract_features``.

    Where there are none, the error names the command that makes them.
    """
    table = run.read(FEATURES)
    return table["question_id"].to_pylist(), matrix(table, "features").astype(np.float32)


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
    model: Model, questions: Mapping[str, Question], engine: str | None
) -> Iterator[tuple[list[str], npt.NDArray[np.float32]]]:
    """Yield question ids and their hidden states."""
    if not questions:
        return
    source = open_engine(model, engine)
    ids = list(questions)
    for start in range(0, len(ids), BATCH):
        names = ids[start : start + BATCH]
        yield names, extract_features(source, model, [questions[name] for name in names])
