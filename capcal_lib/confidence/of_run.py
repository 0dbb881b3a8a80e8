"""The confidences of a run's sampled questions, kept beside its samples."""

from pathlib import Path

import pyarrow as pa

from capcal_lib.confidence import Confidence, estimated
from capcal_lib.confidence.p_true import p_true
from capcal_lib.confidence.verbalized import verbalized
from capcal_lib.errors import InputError, unknown
from capcal_lib.grading.verdicts import run_questions
from capcal_lib.manifests import Model, load_model
from capcal_lib.questions import Question
from capcal_lib.questions.prompts import template_digest
from capcal_lib.sampling.engines import open_engine
from capcal_lib.sampling.store import KEY, read_record, read_samples, read_table, write_table

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
    lacking = [question for name, question in sampled_questions(folder).items() if name not in known]
    if lacking:
        model = asked_model(folder)
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
        raise InputError(f"no {method} confidences in {folder}; {how_to_make(folder, 'confidence')} --method {method}")
    table = _read_confidences(path)
    return estimated(
        table["question_id"].to_pylist(),
        table["confidence"].to_numpy(),
        tokens=table["tokens"].to_numpy(),
        texts=table["text"].to_pylist(),
    )


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


def sampled_questions(folder: Path) -> dict[str, Question]:
    """Return the sampled questions of a run, sorted by id."""
    sampled = read_samples(folder, KEY)["question_id"].unique()
    if not len(sampled):
        raise InputError(f"{folder} has no samples yet; draw some with: capcal sample")
    questions = run_questions(folder)
    return {name: questions[name] for name in sampled}


def asked_model(folder: Path) -> Model:
    """Return the model of a run, which must still be asked in the way that its samples were drawn."""
    run = read_record(folder).identity
    model = load_model(run.model).for_dataset(run.dataset)
    refuse_other(folder, "prompt style", run.prompt_style, model.prompt_style)
    refuse_other(folder, "prompt template", run.prompt_template, template_digest(model.prompt_style))
    refuse_other(folder, "switches of the chat template", run.chat_template, model.chat_template)
    return model


def refuse_other(folder: Path, what: str, then: object, now: object) -> None:
    """Refuse a run that was sampled with something else than there is now."""
    if then != now:
        raise InputError(f"{folder}: sampled with other {what} ({then}) than there are now ({now}); sample it again")


def _read_confidences(path: Path) -> pa.Table:
    table = read_table(path)
    if not table.schema.equals(CONFIDENCES, check_metadata=False):
        raise InputError(f"{path}: not a file of confidences; delete it and make it again with: capcal confidence")
    return table


def how_to_make(folder: Path, command: str) -> str:
    """Say which command makes what a run lacks."""
    run = read_record(folder).identity
    return f"make them with: capcal {command} --model {run.model} --dataset {run.dataset} --split {run.split}"
