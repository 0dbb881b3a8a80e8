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
    """Ask the model whether it can answer each question, and weigh Yes against No; yield an
    estimate a question, in their order.

    The confidence is P(Yes) / (P(Yes) + P(No)) over the first
    answer token at temperature 1, each word in all its spellings. It costs one token a question; a
    model that reasons does so first, as ``seed`` decides, at the cost of a response. It is missing
    where the reasoning comes to no answer, the engine says nothing of one of the words, or neither
    has any probability.

    The paper's code reads the spellings Yes and No alone, gives a word that the engine does not
    report a probability of zero, and reads a reasoning that was cut off as if it were the answer.
    """
    for start in range(0, len(questions), CHUNK):
        batch = questions[start : start + CHUNK]
        requests = [Request(one, p_true_messages(one, model.prompt_style)) for one in batch]
        logprobs, tokens = engine.next_token_logprobs(requests, [*YES, *NO], model.sampling, seed)
        shares = yes_share(logprobs[:, : len(YES)], logprobs[:, len(YES) :])
        for question, share, spent in zip(batch, shares, tokens, strict=True):
            yield Estimate(question.id, float(share), int(spent))


def yes_share(yes: Floats, no: Floats) -> Floats:
    """Weigh the spellings of one word against those of another: P(yes) / (P(yes) + P(no)),
    (n_questions,) in [0, 1].

    Takes log-probabilities, (n_questions, n_spellings), NaN where a spelling is unknown. The share
    is NaN where no spelling of a word is known, or all have probability zero.

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
