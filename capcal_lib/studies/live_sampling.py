"""Draw fresh samples and grade them, without keeping them."""

from collections.abc import Sequence

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.grading.core import grade_many
from capcal_lib.manifests import Model
from capcal_lib.questions import Question
from capcal_lib.sampling import Engine, Failure, answer_requests


def draw_and_grade(
    engine: Engine, model: Model, questions: Sequence[Question], *, k: int, seed: int
) -> pd.DataFrame:
    """Draw ``k`` fresh samples of each question with an open engine, and grade them: one row per
    sample, with ``question_id``, ``sample_index``, ``response``, ``extracted`` and ``verdict``
    among its columns.

    Sampling follows the model's manifest. `InputError` if a sample fails.

    >>> from capcal_lib.manifests import load_model
    >>> from capcal_lib.questions import load_questions
    >>> from capcal_lib.sampling import open_engine
    >>> model, questions = load_model("simulated"), load_questions("mini-exam", limit=2)
    >>> len(draw_and_grade(open_engine(model), model, questions, k=3, seed=0))
    6
    """
    indices = {question.id: tuple(range(k)) for question in questions}
    drawn = []
    for group in engine.sample(answer_requests(model, questions, indices), model.sampling, seed):
        if isinstance(group, Failure):
            raise InputError(f"a sample failed: {group.reason}; run it again")
        drawn += group
    samples = pd.DataFrame(drawn)
    answers = {question.id: question.answer for question in questions}
    right = samples["question_id"].map(answers)
    return samples.join(pd.DataFrame(grade_many([*zip(samples["response"], right, strict=True)])))
