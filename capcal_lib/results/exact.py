"""Expected accuracy without sampling: add up the probabilities of the answers that are right.

The tree of next tokens is walked from the prompt, under the very settings that samples are drawn with: temperature,
top-k, top-p and the longest answer. Each answer that ends is graded. What is right is a lower bound of mu, what is
not wrong an upper one, and what lies between them is in answers too unlikely to follow. For an answer of one token
(``max_tokens`` 1, or a letter after which the model stops) the tree is one pass over the prompt and little more. For
long reasoning it does not close: no answer is likely enough to follow to its end, and the bounds stay far apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.grading import grade_many
from capcal_lib.grading.verdicts import run_questions
from capcal_lib.manifests import Model, load_model
from capcal_lib.metrics.validation import Floats, Ints
from capcal_lib.questions import Question
from capcal_lib.sampling.draw import answer_requests
from capcal_lib.sampling.engines import Engine, EnumeratingEngine, open_engine
from capcal_lib.sampling.files import read_made, write_table
from capcal_lib.sampling.store import KEY, name_run, read_record, read_samples

FILE = "exact.parquet"  # beside a run's samples
SCHEMA = pa.schema(
    [("question_id", pa.string()), ("lower", pa.float64()), ("upper", pa.float64()), ("passes", pa.int64())]
)
EPSILON = 1e-3
WIDEST = 0.05  # bounds further apart say less than a hundred samples do


@dataclass(frozen=True, eq=False, repr=False)
class ExactAccuracy:
    """Bounds of each question's expected accuracy; every array is (n_questions,)."""

    question_ids: npt.NDArray[np.str_]
    lower: Floats  # probability of the right answers found
    upper: Floats  # 1 less that of the wrong ones found
    passes: Ints  # times that the network was asked for a next token

    @property
    def width(self) -> Floats:
        """Return how far the bounds are apart: the probability of what was not found, or could not be scored."""
        return np.asarray(self.upper - self.lower)

    def __repr__(self) -> str:
        return f"<ExactAccuracy, {len(self)} questions, mean width {self.width.mean():.3f}>"

    def __len__(self) -> int:
        return len(self.question_ids)


def exact_accuracy(
    engine: Engine, model: Model, questions: Sequence[Question], *, epsilon: float = EPSILON
) -> ExactAccuracy:
    """Bound the expected accuracy of each question by the probabilities of its answers.

    `InputError` for an engine that cannot say how probable an answer is, prompts that ask for reasoning, or an epsilon
    out of range.

    Parameters
    ----------
    engine, model
        The opened engine and the manifest of its model, whose sampling settings define mu.
    questions
        (n_questions,)
    epsilon
        Answers, and beginnings of answers, with a probability below it are left out; above 0, at most 1.

    Returns
    -------
    ExactAccuracy
        In the order of the questions. An answer that the grader cannot score widens the bounds.

    Examples
    --------
    >>> from capcal_lib.sampling.engines import open_engine
    >>> from capcal_lib.manifests import load_model
    >>> from capcal_lib.questions import load_questions
    >>> model = load_model("simulated")
    >>> exact = exact_accuracy(open_engine(model), model, load_questions("mini-capitals", limit=2))
    >>> exact.lower.round(3).tolist(), exact.width.round(3).tolist()
    ([0.979, 0.971], [0.004, 0.001])
    """
    if not 0 < epsilon <= 1:
        raise InputError(f"epsilon is a probability above 0, such as {EPSILON}; got {epsilon!r}")
    if not isinstance(engine, EnumeratingEngine):
        raise InputError(
            f"engine {engine.family} does not tell the probability of whole answers, so mu can only be estimated; "
            "draw samples with: capcal sample"
        )
    if model.prompt_style.partition("@")[0] != "short":
        raise InputError(
            f"{model.name!r} is asked to reason before it answers (prompt style {model.prompt_style}), and "
            "such responses are too many to enumerate; draw samples with: capcal sample"
        )
    found = {
        each.question_id: each
        for each in engine.likely_answers(answer_requests(model, questions, {}), model.sampling, epsilon)
    }
    pairs = [(response, question.answer) for question in questions for response in found[question.id].responses]
    verdicts = iter(grade_many(pairs))
    bounds = np.zeros((len(questions), 2))
    for row, question in enumerate(questions):
        for probability in found[question.id].probabilities:
            verdict = next(verdicts).verdict
            bounds[row] += probability * np.array([verdict == "correct", verdict in ("incorrect", "no_answer")])
    return ExactAccuracy(
        question_ids=np.array([question.id for question in questions]),
        lower=np.minimum(bounds[:, 0], 1.0),
        upper=np.maximum(1 - bounds[:, 1], np.minimum(bounds[:, 0], 1.0)),
        passes=np.array([found[question.id].passes for question in questions], dtype=np.int64),
    )


def enumerate_answers(folder: Path, *, engine: str | None = None, epsilon: float = EPSILON) -> ExactAccuracy:
    """Bound the expected accuracy of each sampled question of a run, once, and keep the bounds beside the samples.

    Only questions that were sampled since are enumerated, whatever the epsilon of the others was.

    `InputError` as `exact_accuracy`; for a corrupt file, or a run whose questions have changed.
    """
    path = folder / FILE
    kept = read_made(path, SCHEMA, "capcal exact") if path.exists() else SCHEMA.empty_table()
    known = set(kept["question_id"].to_pylist())
    lacking = [name for name in read_samples(folder, KEY)["question_id"].unique() if name not in known]
    if lacking:
        run, questions = read_record(folder).identity, run_questions(folder)
        model = load_model(run.model).for_dataset(run.dataset)
        source = open_engine(model, engine)
        fresh = exact_accuracy(source, model, [questions[name] for name in lacking], epsilon=epsilon)
        columns = [fresh.question_ids.tolist(), fresh.lower, fresh.upper, fresh.passes]
        both = pa.concat_tables([kept, pa.table(columns, schema=SCHEMA)])
        write_table(path, both.sort_by("question_id"))
    return read_exact(folder)


def read_exact(folder: Path) -> ExactAccuracy:
    """Read the bounds that ``enumerate_answers`` kept, sorted by question id.

    `InputError` where there are none, with the command that makes them; for a corrupt file.
    """
    path = folder / FILE
    if not path.exists():
        raise InputError(f"no exact expected accuracies in {folder}; make them with: capcal exact {name_run(folder)}")
    table = read_made(path, SCHEMA, "capcal exact")
    lower, upper, passes = (table[name].to_numpy() for name in ("lower", "upper", "passes"))
    return ExactAccuracy(np.array(table["question_id"].to_pylist()), lower, upper, passes)
