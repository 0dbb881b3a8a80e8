"""Sample a few recorded questions again, and compare."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.grading import grade_many
from capcal_lib.grading.counts import count_verdicts
from capcal_lib.metrics.validation import Floats, check_int
from capcal_lib.questions import Question, load_questions
from capcal_lib.results.evaluation import Evaluation
from capcal_lib.sampling.draw import answer_requests
from capcal_lib.sampling.engines import Failure, open_engine


def spread(one: Evaluation, n_questions: int) -> list[Question]:
    """Choose questions spread evenly over the recorded difficulty, hardest first.

    Questions without a scored sample are not among them. The same evaluation always gives the same questions; where
    it has fewer than ``n_questions``, all of them.

    Raises
    ------
    InputError
        For less than one question.
    """
    check_int("n_questions", n_questions, least=1)
    order = np.argsort(one.counts.expected_accuracy, kind="stable")[: int(np.sum(one.counts.total > 0))]  # NaN is last
    places = np.unique(np.linspace(0, len(order) - 1, min(n_questions, len(order))).round().astype(int))
    questions = {question.id: question for question in load_questions(one.dataset.name)}
    return [questions[name] for name in one.counts.question_ids[order[places]]]


def sample_again(one: Evaluation, questions: Sequence[Question], *, k: int, seed: int) -> pd.DataFrame:
    """Draw and grade k fresh samples of each question: one row a sample, with its question's text.

    They are fresh if the seed is not that of the recorded run.

    Raises
    ------
    InputError
        For k < 1, and where a sample failed.
    """
    check_int("k", k, least=1)
    asked = {question.id: question for question in questions}
    requests = answer_requests(one.model, questions, {name: tuple(range(k)) for name in asked})
    drawn = []
    for group in open_engine(one.model).sample(requests, one.model.sampling, seed):
        if isinstance(group, Failure):
            raise InputError(f"a sample of {group.question_id!r} failed: {group.reason}; execute the cell again")
        drawn += group
    samples = pd.DataFrame(drawn)
    answers = [asked[name].answer for name in samples["question_id"]]
    verdicts = pd.DataFrame(grade_many(list(zip(samples["response"], answers, strict=True))))
    texts = samples["question_id"].map({name: question.text for name, question in asked.items()})
    return pd.concat([samples, verdicts], axis=1).assign(question=texts)


def first(samples: pd.DataFrame) -> pd.DataFrame:
    """Return the first sample of each question, with its verdict."""
    return samples[samples["sample_index"] == 0][["question", "response", "extracted", "verdict", "reason"]]


def compare(one: Evaluation, live: pd.DataFrame, *, level: float = 0.05) -> pd.DataFrame:
    """Compare recorded and live counts question by question: Fisher's exact test, Holm's correction.

    Returns
    -------
    DataFrame
        One row a question, hardest first: both counts and expected accuracies, the p-value, and ``differs``:
        whether it is significant at the level for all questions together.
    """
    from scipy.stats import fisher_exact

    fresh = count_verdicts(live, k=int(live["sample_index"].max()) + 1)
    rows = pd.Series(range(len(one.counts)), one.counts.question_ids).reindex(fresh.question_ids).to_numpy()
    table = pd.DataFrame({"question_id": fresh.question_ids, "correct": one.counts.correct[rows]})
    table["total"] = one.counts.total[rows]
    table["live correct"], table["live total"] = fresh.correct, fresh.total
    pairs = table[["correct", "total", "live correct", "live total"]].to_numpy()
    p = np.array([fisher_exact([[a, n - a], [b, m - b]]).pvalue for a, n, b, m in pairs])
    table["p"], table["differs"] = p, _holm(p, level)
    table["evidence"] = one.evidence
    return table.iloc[np.argsort(table["correct"] / table["total"], kind="stable")].reset_index(drop=True)


def _holm(p: Floats, level: float) -> np.ndarray:
    """Say which of several hypotheses are rejected when the chance of any false rejection is the level."""
    order = np.argsort(p)
    passed = p[order] <= level / np.arange(len(p), 0, -1)
    rejected = np.zeros(len(p), bool)
    rejected[order] = np.cumprod(passed).astype(bool)
    return rejected
