"""Response consistency: how many of k_c samples agree with the majority (paper, section 4.2)."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from capcal_lib.metrics.validation import Floats


def consistency(answers: Sequence[Sequence[str | None]]) -> Floats:
    """Return the share of each question's votes that agree with its most frequent answer.

    Take the votes from samples that do not also define mu_hat: shared samples tie the confidence to its
    own target. The cost is k_c times the tokens of a sample.

    Parameters
    ----------
    answers
        (n_questions, k_c) answers in canonical form, so that equal answers are equal texts; None for a sample
        without an answer, which agrees with nobody but still counts as a vote.

    Returns
    -------
    ndarray
        (n_questions,) in [1 / k_c, 1]; NaN where no vote is an answer. Ties do not matter: the largest groups
        are of one size.

    Notes
    -----
    The paper's code takes the votes from the samples that define mu_hat, and lets the samples without an answer
    form a group that can win.

    Examples
    --------
    >>> consistency([["4", "4", "4", "5"], ["7", None, None, None], [None] * 4]).tolist()
    [0.75, 0.25, nan]
    """
    return np.array([_agreement(votes) for votes in answers], dtype=np.float64)


def _agreement(votes: Sequence[str | None]) -> float:
    groups = Counter(vote for vote in votes if vote is not None)
    return max(groups.values()) / len(votes) if groups else np.nan
