"""Expected accuracy without sampling: add up the probabilities of the answers that are right.

The tree of next tokens is walked from the prompt, under the very settings that samples are drawn
with: temperature, top-k, top-p and the longest answer. Each answer that ends is graded. What is
right is a lower bound of mu, what is not wrong an upper one, and what lies between them is in
answers too unlikely to follow. For an answer of one token (``max_tokens`` 1, or a letter after
which the model stops) the tree is one pass over the prompt and little more. For long reasoning it
does not close: no answer is likely enough to follow to its end, and the bounds stay far apart."""

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa

from capcal_lib.confidence.of_run import asked_model, sampled_questions
from capcal_lib.errors import InputError
from capcal_lib.grading import grade_many
from capcal_lib.manifests import Model
from capcal_lib.questions import Question
from capcal_lib.runs.artifacts import EXACT
from capcal_lib.runs.run import Run
from capcal_lib.sampling.draw import answer_requests
from capcal_lib.sampling.engines import Engine, EnumeratingEngine, open_engine

FILE = EXACT.name
SCHEMA = EXACT.schema
EPSILON = 1e-3
WIDEST = 0.05  # bounds further apart say less than a hundred samples do


def exact_accuracy(
    engine: Engine, model: Model, questions: Sequence[Question], *, epsilon: float = EPSILON
) -> pd.DataFrame:
    """Bound the expected accuracy of each question by the probabilities of its answers.

    Returns a row a question, in their order, indexed by question_id: ``lower``, the probability of
    the right answers found; ``upper``, 1 less that of the wrong ones found; and ``passes``, how
    often the network was asked for a next token. An answer that the grader cannot score widens the
    bounds.

    ``model`` is the manifest whose sampling settings define mu. Answers, and beginnings of answers,
    with a probability below ``epsilon``, above 0 and at most 1, are left out. Refused are also an
    engine that cannot say how probable an answer is, and prompts that ask for reasoning.

    >>> from capcal_lib.sampling.engines import open_engine
    >>> from capcal_lib.manifests import load_model
    >>> from capcal_lib.questions import load_questions
    >>> model = load_model("simulated")
    >>> exact = exact_accuracy(open_engine(model), model, load_questions("mini-capitals", limit=2))
    >>> exact["lower"].round(3).tolist(), exact["upper"].round(3).tolist()
    ([0.979, 0.971], [0.983, 0.971])
    """
    if not 0 < epsilon <= 1:
        raise InputError(f"epsilon is a probability above 0, such as {EPSILON}; got {epsilon!r}")
    if not isinstance(engine, EnumeratingEngine):
        raise InputError(
            f"engine {engine.family} does not tell the probability of whole answers, so mu can "
            "only be estimated; "
            "draw samples with: capcal sample"
        )
    if model.prompt_style.partition("@")[0] != "short":
        raise InputError(
            f"{model.name!r} is asked to reason before it answers (prompt style "
            f"{model.prompt_style}), and "
            "such responses are too many to enumerate; draw samples with: capcal sample"
        )
    likely = engine.likely_answers(answer_requests(model, questions), model.sampling, epsilon)
    found = {each.question_id: each for each in likely}
    pairs = [
        (response, question.answer)
        for question in questions
        for response in found[question.id].responses
    ]
    verdicts = iter(grade_many(pairs))
    rows = []
    for question in questions:
        answers = found[question.id]
        right = wrong = 0.0
        for probability in answers.probabilities:
            verdict = next(verdicts).verdict
            right += probability * (verdict == "correct")
            wrong += probability * (verdict in ("incorrect", "no_answer"))
        right = min(right, 1.0)
        bounds = {"lower": right, "upper": max(1 - wrong, right)}
        rows.append({"question_id": question.id, **bounds, "passes": answers.passes})
    return pd.DataFrame(rows, columns=SCHEMA.names).set_index("question_id")


def enumerate_answers(
    run: Run, *, engine: str | None = None, epsilon: float = EPSILON
) -> pd.DataFrame:
    """Bound the expected accuracy of each sampled question of a run, once, and keep the bounds
    beside the samples.

    Only questions that were sampled since are enumerated, whatever the epsilon of the others was.
    Errors are those of ``exact_accuracy``; a corrupt file is refused, and a run whose questions or
    way of asking have changed."""
    kept = run.read(EXACT) if run.has(EXACT) else SCHEMA.empty_table()
    known = set(kept["question_id"].to_pylist())
    lacking = [question for name, question in sampled_questions(run).items() if name not in known]
    if lacking:
        model = asked_model(run)
        fresh = exact_accuracy(
            open_engine(model, engine), model, lacking, epsilon=epsilon
        ).reset_index()
        both = pa.concat_tables([kept, pa.Table.from_pandas(fresh, SCHEMA, preserve_index=False)])
        run.write(EXACT, both.sort_by("question_id"))
    return read_exact(run)


def read_exact(run: Run) -> pd.DataFrame:
    """Read the bounds that ``enumerate_answers`` kept, sorted by question id; without any, the
    error says how.
    """
    return run.read(EXACT).to_pandas().set_index("question_id")
