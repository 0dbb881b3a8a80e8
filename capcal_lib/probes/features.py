"""Features: the hidden states that a probe reads (paper, appendix on linear probes), kept beside a
run's samples.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from capcal_lib.confidence.of_run import asked_model, refuse_other, sampled_questions
from capcal_lib.errors import InputError
from capcal_lib.manifests import Model
from capcal_lib.questions import Question
from capcal_lib.questions.prompts import ask_for_answer, prompt_digest
from capcal_lib.runs.artifacts import FEATURES, LAYER_FEATURES, Artifact, matrix, vectors
from capcal_lib.runs.files import gather
from capcal_lib.runs.run import Run
from capcal_lib.sampling.engines import Engine, answer_requests, open_engine
from capcal_lib.sampling.weights import weights_digest

LARGEST_FLOAT16 = 65_504
QUESTIONS_AT_ONCE = 64  # whose hidden states are read together
WRITE_FEATURES_SECONDS = 60.0  # between two writes of the file


def extract_features(
    engine: Engine, model: Model, questions: Sequence[Question], layers: str = "mean"
) -> npt.NDArray[np.float32]:
    """Read the last prompt token's hidden states, averaged over layers as in the paper, or as
    ``layers`` says, see `extract`.

    The prompt is the one that answers are sampled from; reading it costs one pass and no tokens.
    Returns shape (n_questions, hidden_size), float32, in the order of the questions. `InputError`
    if the engine returns another shape, or numbers that are not finite or beyond float16's 65,504.

    >>> from capcal_lib.sampling.engines import open_engine
    >>> from capcal_lib.manifests import load_model
    >>> from capcal_lib.questions import load_questions
    >>> model = load_model("simulated")
    >>> questions = load_questions("mini-capitals", "test", limit=5)
    >>> extract_features(open_engine(model), model, questions).shape
    (5, 64)
    """
    requests = answer_requests(model, questions)
    # Another package's engine may know the mean alone.
    which = () if layers == "mean" else (layers,)
    features = np.asarray(engine.hidden_states(requests, *which), np.float32)
    if features.ndim != 2 or len(features) != len(questions):
        raise InputError(
            f"engine {engine.family} returned features of shape {features.shape} for "
            f"{len(questions)} questions"
        )
    unusable = np.flatnonzero(~(np.abs(features) <= LARGEST_FLOAT16).all(axis=1))
    if len(unusable):
        first = questions[int(unusable[0])]
        raise InputError(
            f"engine {engine.family} returned hidden states of {first.id!r} that are "
            f"not finite, or too large for float16 (at most {LARGEST_FLOAT16:,})"
        )
    return features


def same_model(run: Run) -> Model:
    """Return the model of a run; `InputError` if its weights or prompts have changed since."""
    model = asked_model(run)
    refuse_other(run, "weights", run.identity.weights, weights_digest(model, run.identity.engine))
    return model


def kept_as(layers: str) -> tuple[Artifact, str]:
    """Return the kind of file that keeps the hidden states of some layers, and its name."""
    if layers == "mean":
        return FEATURES, ""
    if layers != "max" and not re.fullmatch(r"0|[1-9][0-9]{0,3}", layers):
        raise InputError(
            f"layers must be mean, max, or the number of one (0: the embedding); got {layers!r}"
        )
    return LAYER_FEATURES, layers


def extract(
    run: Run, *, engine: str | None = None, layers: str = "mean"
) -> npt.NDArray[np.float32]:
    """Extract the hidden states of a run's questions, once, and keep them as float16, each with its
    prompt's digest.

    ``layers`` is ``mean`` (over all layers; probes are trained on it), ``max`` (over all layers),
    or the number of one layer, from 0, the embedding, to the last one after the final norm. Each
    choice has a file of its own.

    Only new questions are read, and those whose row has no digest. Rows are saved every minute and
    when it stops. Returns the matrix of ``read_features``, with about three decimal digits.

    `InputError` for a corrupt file, rows read from another prompt, and a run whose questions,
    prompts or weights have changed."""
    kind, name = kept_as(layers)
    model = same_model(run)
    questions = sampled_questions(run)
    words = model.prompts
    prompts = {
        name: prompt_digest(ask_for_answer(question, words)) for name, question in questions.items()
    }
    again = InputError(
        f"{run.path(kind, name)}: made with another prompt, engine or model; delete it and make it "
        "again"
    )
    table = run.read(kind, name) if run.has(kind, name) else kind.schema.empty_table()
    if "prompt" not in table.column_names:  # so that nobody knows what was read
        table = kind.schema.empty_table()
    known = dict(table.select(["question_id", "prompt"]).to_pandas().to_numpy())
    if not known.items() <= prompts.items():
        raise again
    lacking = sorted(prompts.keys() - known)
    if not lacking:
        return read_features(run, layers)[1]

    lacking_questions = [questions[one] for one in lacking]
    if (engine or model.engine) == "vllm":  # which keeps them to itself
        engine = "transformers"
    states = _read_states(open_engine(model, engine), model, lacking_questions, prompts, layers)
    tables = [table] if known else []
    for fresh in gather(states, WRITE_FEATURES_SECONDS):
        tables += fresh
        try:
            together = pa.concat_tables(tables)
        except pa.ArrowInvalid:  # they are of another size
            raise again from None
        run.write(kind, together.sort_by("question_id"), name)
    return read_features(run, layers)[1]


def _read_states(
    engine: Engine,
    model: Model,
    questions: Sequence[Question],
    prompts: Mapping[str, str],
    layers: str,
) -> Iterator[pa.Table]:
    """Yield the rows to keep of questions, some at a time: the hidden states of each, and the
    digest of the prompt, which stands under its id.
    """
    for start in range(0, len(questions), QUESTIONS_AT_ONCE):
        some = questions[start : start + QUESTIONS_AT_ONCE]
        ids = [question.id for question in some]
        states = vectors(extract_features(engine, model, some, layers))
        digests = [prompts[name] for name in ids]
        yield pa.table({"question_id": ids, "prompt": digests, "features": states})


def read_features(run: Run, layers: str = "mean") -> tuple[list[str], npt.NDArray[np.float32]]:
    """Read the question ids, sorted, and the hidden states that ``extract`` kept of these layers,
    shaped as by ``extract_features``.

    `InputError` if there are none, with the command that makes them.
    """
    kind, name = kept_as(layers)
    table = run.read(kind, name, option=f" --layers {name}" if name else "")
    return table["question_id"].to_pylist(), matrix(table, "features").astype(np.float32)
