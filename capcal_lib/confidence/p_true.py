"""P(True): the probability of Yes when the model is asked whether it can answer (paper, section 4.2)."""

from collections.abc import Sequence

import numpy as np

from capcal_lib.confidence import Confidence, estimated
from capcal_lib.manifests import Model
from capcal_lib.metrics.validation import Floats
from capcal_lib.questions import Question
from capcal_lib.questions.prompts import p_true_messages
from capcal_lib.sampling.engines import Engine, Request

YES = ("Yes", " Yes", "yes", " yes", "YES", " YES")
NO = ("No", " No", "no", " no", "NO", " NO")


def p_true(engine: Engine, model: Model, questions: Sequence[Question]) -> Confidence:
    """Ask the model whether it can answer each question, and weigh Yes against No.

    The confidence is P(Yes) / (P(Yes) + P(No)) over the first answer token at temperature 1, each word in
    all its spellings. It is missing where the engine says nothing of one of the words, or neither has any
    probability. It costs one token a question.

    Parameters
    ----------
    engine, model
        The opened engine and the manifest of its model.
    questions
        (n_questions,)

    Returns
    -------
    Confidence
        One value in [0, 1] a question, in the order of the questions; NaN where missing.

    Notes
    -----
    The paper's code reads the spellings Yes and No alone, and gives a word that the engine does not report a
    probability of zero; for gpt-oss-20b it reads them after a sampled reasoning, at the cost of a response.
    """
    requests = [Request(question, p_true_messages(question, model.prompt_style)) for question in questions]
    logprobs = engine.next_token_logprobs(requests, [*YES, *NO])
    return estimated(
        [question.id for question in questions],
        yes_share(logprobs[:, : len(YES)], logprobs[:, len(YES) :]),
        tokens=np.where(np.isnan(logprobs).all(axis=1), 0, 1),  # none where the engine was told nothing: it asks again
    )


def yes_share(yes: Floats, no: Floats) -> Floats:
    """Weigh the spellings of one word against those of another.

    Parameters
    ----------
    yes, no
        (n_questions, n_spellings) log-probabilities in [-inf, 0]; NaN where a spelling is unknown.

    Returns
    -------
    ndarray
        (n_questions,) P(yes) / (P(yes) + P(no)) in [0, 1]; NaN where no spelling of a word is known,
        or all have probability zero.

    Examples
    --------
    >>> yes_share(np.log([[0.3, 0.3]]), np.array([[np.log(0.2), np.nan]])).round(3).tolist()
    [0.75]
    """
    log_yes, log_no = _log_sum(yes), _log_sum(no)
    highest = np.maximum(log_yes, log_no)  # keeps the ratio of tiny probabilities
    highest = np.where(np.isneginf(highest), np.nan, highest)
    mass_yes, mass_no = np.exp(log_yes - highest), np.exp(log_no - highest)
    return np.asarray(mass_yes / (mass_yes + mass_no))


def _log_sum(logprobs: Floats) -> Floats:
    """Add the known probabilities of each row in log space; NaN where none is known."""
    total = np.logaddexp.reduce(np.where(np.isnan(logprobs), -np.inf, logprobs), axis=1)
    return np.where(np.isnan(logprobs).all(axis=1), np.nan, total)
