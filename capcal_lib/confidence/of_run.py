"""The confidences of a run's sampled questions, kept beside its samples."""

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib.confidence.consistency import vote
from capcal_lib.confidence.p_true import p_true
from capcal_lib.confidence.verbalized import Estimate, verbalized
from capcal_lib.errors import InputError, check_known
from capcal_lib.grading.verdicts import run_questions
from capcal_lib.manifests import Model, load_model
from capcal_lib.probe_names import NEAREST_PROBE
from capcal_lib.questions import Question
from capcal_lib.questions.prompts import template_digest
from capcal_lib.rows import MISSING
from capcal_lib.runs.artifacts import CONFIDENCES
from capcal_lib.runs.files import gather
from capcal_lib.runs.run import IMPORTED, Run
from capcal_lib.runs.store import KEY, read_samples
from capcal_lib.sampling.engines import open_engine
from capcal_lib.text import sanitize

METHODS = {"p-true": p_true, "verbalized": verbalized}  # that ask the model
# in tables and figures; a method of one's own is called by its name
TITLES = {"verbalized": "Verbalized confidence", "p-true": "P(True)"}
WHY_MISSING = {
    "verbalized": "the reply states no probability",
    "p-true": "the engine told the probability of no spelling of Yes, or of none of No, at the "
    "answer's first token; a server must return log-probabilities of the likeliest tokens",
}
# Columns and curves of results that are something else. The names of the others, such as
# "Probe (MATH)", "votes total" and "Best constant", hold characters that no method's name may.
RESERVED = {*METHODS, "consistency", "dataset", "question_id", "correct", "total"}
RESERVED |= {NEAREST_PROBE, "Actual"}
# of the entry points by which other packages offer methods: functions that take a run and give the
# rows of `place_confidence`
PLUGINS = "capcal.methods"


def estimate(run: Run, method: str, *, engine: str | None = None, **server: Any) -> pd.DataFrame:
    """Ask the model once for its confidence in each sampled question of a run; keep the answers.

    The model is asked with the run's sampling settings and seed; ``server`` is passed to
    `open_engine`. Questions with an answer are not asked again, whatever the engine. Questions that
    the engine failed to ask (they took no tokens) are asked again; with P(True) so are questions
    without a confidence, which may be the server's fault. Answers are saved every few seconds.
    Returns what ``read_confidence`` does. The method ``consistency`` asks and keeps nothing, and
    returns what ``vote`` does. `InputError` for an unknown method, a corrupt file, or a run whose
    questions or prompts have changed."""
    installed = entry_points(group=PLUGINS)
    check_known("method", method, {*METHODS, "consistency", *installed.names})
    if method == "consistency":
        return vote(run)
    if method not in METHODS:
        try:
            rows = list(installed[method].load()(run))
        except Exception as error:  # whatever it is that somebody installed
            raise InputError(
                f"the method {method!r} of {installed[method].value} failed: {sanitize(error)}"
            ) from None
        return place_confidence(run, method, rows)
    known: set[str] = set()
    if run.has(CONFIDENCES, method):
        # Without tokens, nothing was said.
        answered = "confidence >= 0" if method == "p-true" else "tokens > 0"
        known = {*read_confidence(run, method).query(answered).index}
    lacking = [one for name, one in sampled_questions(run).items() if name not in known]
    if lacking:
        model = asked_model(run)
        source = open_engine(model, engine, **server)
        for fresh in gather(METHODS[method](source, model, lacking, seed=run.identity.seed)):
            run.add(CONFIDENCES, pd.DataFrame(fresh), method)
    return read_confidence(run, method)


def read_confidence(run: Run, method: str) -> pd.DataFrame:
    """Read the confidences kept with a run, indexed by question_id: confidence in [0, 1] (NaN if
    missing), tokens and text. `InputError` if there are none, with the command that makes them.
    """
    is_method = method in {*METHODS, *entry_points(group=PLUGINS).names}
    option = f" --method {method}" if is_method else f" --from FILE --name {method}"
    return run.read(CONFIDENCES, method, option=option).to_pandas().set_index("question_id")


def confidences_of(run: Run) -> dict[str, pd.DataFrame]:
    """Read all confidences kept with a run, by the title of the method."""
    return {TITLES.get(method, method): read_confidence(run, method) for method in methods_of(run)}


def place_confidence(
    run: Run, name: str, rows: Iterable[Mapping[Any, Any]], file: object = "the table"
) -> pd.DataFrame:
    """Keep the confidences of your own method with a run; they replace earlier ones of this name.

    The method is then a column of the run's results and a row of the main table. Its name may have
    letters, digits, ``_``, ``.`` and ``-``. Each row, such as from ``table.to_dict("records")``,
    has ``question_id`` and ``confidence``: a number in [0, 1], or empty, None or NaN if it is
    missing. A row may have ``tokens``, the completion tokens spent. A sampled question without a
    row has no confidence. `InputError` for a question given twice, or one that the run has not
    sampled; it names the ``file`` of the rows. Returns what ``read_confidence`` does."""
    if not re.fullmatch(r"[\w-][\w.-]{0,99}", name):
        raise InputError(f"invalid method name {name!r}; use letters, digits, _, . and -")
    if name in RESERVED:
        raise InputError(f"the name {name!r} is taken; give your method another name")
    sampled = {*read_samples(run, KEY)["question_id"]}
    example = min(sampled, default="")
    estimates: dict[str, Estimate] = {}
    for place, row in enumerate(rows):
        try:
            one = _read_estimate(row)
            if one.question_id in estimates:
                raise ValueError("its question stands in a row before")
            if one.question_id not in sampled:
                raise ValueError(f"its question was not sampled; the ids look like {example!r}")
        except ValueError as error:
            raise InputError(f"{file}, row {place}: {error}; got {sanitize(row)}") from None
        estimates[one.question_id] = one
    for question in sampled - estimates.keys():
        estimates[question] = Estimate(question, np.nan, 0)
    run.add(CONFIDENCES, pd.DataFrame(estimates.values(), columns=Estimate._fields), name)
    return read_confidence(run, name)


def _read_estimate(row: Mapping[Any, Any]) -> Estimate:
    """Read a row of one's own; ``ValueError`` says what is wrong with it."""
    for column in ("question_id", "confidence"):
        if column not in row:
            raise ValueError(f"no {column}")
    value = row["confidence"]
    written = "" if value is pd.NA else str(value).strip().lower()
    try:
        confidence = np.nan if written in MISSING else float(written)
    except ValueError:
        raise ValueError("its confidence is no number") from None
    if confidence < 0 or confidence > 1:
        raise ValueError("its confidence is not in [0, 1]")
    try:
        tokens = 0 if pd.isna(row.get("tokens")) else int(float(row["tokens"] or 0))
    except (TypeError, ValueError, OverflowError):
        raise ValueError("its tokens are no number") from None
    if tokens < 0:
        raise ValueError("its tokens are below 0")
    return Estimate(str(row["question_id"]), confidence, tokens)


def methods_of(run: Run) -> list[str]:
    """List the methods whose confidences are kept with a run: verbalized, P(True), then one's own
    by name.
    """
    names = run.names(CONFIDENCES)
    ours = [name for name in TITLES if name in names]
    return ours + [name for name in names if name not in TITLES]


def sampled_questions(run: Run) -> dict[str, Question]:
    """Return the sampled questions of a run, sorted by id."""
    sampled = read_samples(run, KEY)["question_id"].unique()
    if not len(sampled):
        raise InputError(
            f"{run} has no samples yet; draw some with: capcal sample {run.draw_options} --k 100"
        )
    questions = run_questions(run)
    return {name: questions[name] for name in sampled}


def asked_model(run: Run) -> Model:
    """Return the model of a run with its settings; `InputError` if its prompts have changed."""
    identity = run.identity
    if identity.engine == IMPORTED:
        raise InputError(
            f"{run}: its samples were imported, so its weights and prompts are unknown and the "
            "model cannot be asked; to add your own confidences: capcal confidence "
            f"{run.options} --from FILE --name NAME"
        )
    settings = {"prompt_style": identity.prompt_style, "sampling": identity.sampling}
    model = load_model(identity.model).model_copy(update=settings)
    template = template_digest(model.prompts)
    refuse_other(run, "prompt template", identity.prompt_template, template)
    refuse_other(run, "switches of the chat template", identity.chat_template, model.chat_template)
    return model


def refuse_other(run: Run, what: str, then: object, now: object) -> None:
    """Refuse a run that was sampled with other prompts or weights than there are now."""
    if then != now:
        raise InputError(
            f"{run}: its samples have other {what} ({then}) than now ({now}); sample it again"
        )
