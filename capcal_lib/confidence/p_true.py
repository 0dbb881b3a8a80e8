"""P(True): the probability of Yes when the model is asked whether it can answer (paper, section
4.2).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from capcal_lib.confidence.verbalized import Estimate
from capcal_lib.manifests import Model
from capcal_lib.metrics.validation import Floats
from capcal_lib.questions import Question
from capcal_lib.questions.prompts import p_true_messages
from capcal_lib.sampling.engines import Engine, Request

YES = ("Yes", " Yes", "yes", " yes", "YES", " YES")
CHUNK = 1_000  # questions that are asked together, and kept then
NO = ("No", " No", "no", " no", "NO", " NO")


def p_true(
    engine: Engine, model: Model, questions: Sequence[Question], *, seed: int
) -> Iterator[Estimate]:
    """Ask the model whether it can answer each question, and compare the probabilities of Yes and
    No; yield one estimate per question, in order.

    The confidence is P(Yes) / (P(Yes) + P(No)) at the first answer token, at temperature 1, each
    word in all its spellings. It costs one token per question; a model that reasons does so first,
    with ``seed``, at the cost of a response. The confidence is missing if the reasoning reaches no
    answer, the engine reports nothing on one of the words, or neither has any probability.

    The paper's code reads only the spellings Yes and No, gives probability zero to a word that the
    engine does not report, and reads reasoning that was cut off as if it were the answer.
    """
    for start in range(0, len(questions), CHUNK):
        batch = questions[start : start + CHUNK]
        requests = [Request(one, p_true_messages(one, model.prompt_style)) for one in batch]
        logprobs, tokens = engine.next_token_logprobs(requests, [*YES, *NO], model.sampling, seed)
        shares = yes_share(logprobs[:, : len(YES)], logprobs[:, len(YES) :])
        for question, share, spent in zip(batch, shares, tokens, strict=True):
            yield Estimate(question.id, float(share), int(spent))


def yes_share(yes: Floats, no: Floats) -> Floats:
    """Return P(yes) / (P(yes) + P(no)), each summed over its spellings, shape (n_questions,), in
    [0, 1].

    Takes log-probabilities, shape (n_questions, n_spellings), NaN for an unknown spelling. The
    share is NaN if no spelling of a word is known, or if all have probability zero.

    >>> yes_share(np.log([[0.3, 0.3]]), np.array([[np.log(0.2), np.nan]])).round(3).tolist()
    [0.75]
    """
    from scipy.special import expit  # slow to import

    spellings = np.stack([yes, no])
    known = ~np.isnan(spellings)
    sums = np.logaddexp.reduce(spellings, axis=2, where=known, initial=-np.inf)
    log_yes, log_no = np.where(known.any(axis=2), sums, np.nan)
    with np.errstate(invalid="ignore"):  # two probabilities of zero have no ratio
        return np.asarray(expit(log_yes - log_no))
