"""Features: the hidden states that a probe reads (paper, appendix on linear probes), kept beside a
run's samples.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from capcal_lib.confidence.of_run import asked_model, refuse_other, sampled_questions
from capcal_lib.errors import InputError
from capcal_lib.manifests import Model
from capcal_lib.questions import Question
from capcal_lib.questions.prompts import answer_messages, prompt_digest
from capcal_lib.runs.artifacts import FEATURES, matrix, vectors
from capcal_lib.runs.files import gather
from capcal_lib.runs.run import Run
from capcal_lib.sampling.draw import answer_requests
from capcal_lib.sampling.engines import Engine, open_engine
from capcal_lib.sampling.weights import weights_digest

LARGEST = 65_504  # of float16
BATCH = 64  # questions whose hidden states are read together
WRITE_SECONDS = 60.0  # between two writes of the file


def extract_features(
    engine: Engine, model: Model, questions: Sequence[Question]
) -> npt.NDArray[np.float32]:
    """Read the mean over layers of the last prompt token's hidden states, as the paper does.

    The prompt is the one that answers are sampled from: it costs one pass over it and no token.
    (n_questions, hidden_size), float32, in the order of the questions. Another shape from the
    engine, or a number that is not finite or beyond float16's 65,504, is refused.

    >>> from capcal_lib.sampling.engines import open_engine
    >>> from capcal_lib.manifests import load_model
    >>> from capcal_lib.questions import load_questions
    >>> model = load_model("simulated")
    >>> questions = load_questions("mini-capitals", "test", limit=5)
    >>> extract_features(open_engine(model), model, questions).shape
    (5, 64)
    """
    features = np.asarray(engine.hidden_states(answer_requests(model, questions)), np.float32)
    if features.ndim != 2 or len(features) != len(questions):
        raise InputError(
            f"engine {engine.family} returned features of shape {features.shape} for "
            f"{len(questions)} questions"
        )
    for row in np.flatnonzero(~(np.abs(features) <= LARGEST).all(axis=1)):
        raise InputError(
            f"engine {engine.family} returned hidden states of {questions[int(row)].id!r} that are "
            f"not finite, or beyond {LARGEST:,}, the largest float16"
        )
    return features


def same_model(run: Run) -> Model:
    """Return the model of a run, refused where its weights or its prompts are others now."""
    model = asked_model(run)
    refuse_other(run, "weights", run.identity.weights, weights_digest(model, run.identity.engine))
    return model


def extract(run: Run, *, engine: str | None = None) -> npt.NDArray[np.float32]:
    """Extract the hidden states of a run's questions, once, and keep them as float16, each with its
    prompt's digest.

    Only questions that were sampled since are read again, and those whose row has no digest. What
    is read is kept every minute and when it stops. Returns the matrix of ``read_features``; about
    three decimal digits are kept.

    Refused are a corrupt file, rows that were read from another
    prompt, a run whose questions have changed, and a model that is asked in another way since."""
    model = same_model(run)
    questions = sampled_questions(run)
    prompts = {
        name: prompt_digest(answer_messages(one, model.prompt_style))
        for name, one in questions.items()
    }
    again = InputError(
        f"{run.path(FEATURES)}: read from another prompt, or by another engine or model; delete it "
        "and make it again"
    )
    table = run.read(FEATURES) if run.has(FEATURES) else FEATURES.schema.empty_table()
    if "prompt" not in table.column_names:  # so that nobody knows what was read
        table = FEATURES.schema.empty_table()
    known = dict(table.select(["question_id", "prompt"]).to_pandas().to_numpy())
    if not known.items() <= prompts.items():
        raise again
    lacking = sorted(prompts.keys() - known)
    if not lacking:
        return read_features(run)[1]

    def read() -> Iterator[pa.Table]:
        source = open_engine(model, engine)
        for start in range(0, len(lacking), BATCH):
            ids = lacking[start : start + BATCH]
            asked = [questions[name] for name in ids]
            states = vectors(extract_features(source, model, asked))
            read_from = [prompts[name] for name in ids]
            yield pa.table({"question_id": ids, "prompt": read_from, "features": states})

    tables = [table] if known else []
    for fresh in gather(read(), WRITE_SECONDS):
        tables += fresh
        try:
            together = pa.concat_tables(tables)
        except pa.ArrowInvalid:  # they are of another size
            raise again from None
        run.write(FEATURES, together.sort_by("question_id"))
    return read_features(run)[1]


def read_features(run: Run) -> tuple[list[str], npt.NDArray[np.float32]]:
    """Read the question ids, sorted, and the hidden states that ``extract`` kept, shaped as by
    ``extract_features``.

    Where there are none, the error names the command that makes them.
    """
    table = run.read(FEATURES)
    return table["question_id"].to_pylist(), matrix(table, "features").astype(np.float32)
