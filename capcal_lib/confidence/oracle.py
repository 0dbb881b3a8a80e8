"""Oracle CC: what knowing mu_hat would score, on other samples than it was counted from (paper, section 5.1)."""

import numpy as np
import numpy.typing as npt

from capcal_lib.metrics.validation import Floats, Ints, as_counts


def oracle_cc_split(
    correct: npt.ArrayLike, total: npt.ArrayLike, rng: np.random.Generator
) -> tuple[Floats, Ints, Ints]:
    """Take mu_hat of a random half of each question's samples as the confidence, and leave the rest to score it on.

    Parameters
    ----------
    correct, total
        (n_questions,) counts, 0 <= correct <= total.
    rng
        Decides which samples make the half; it has total // 2.

    Returns
    -------
    confidence
        (n_questions,) in [0, 1]; NaN where total is below 2.
    correct, total
        (n_questions,) counts of the remaining samples.

    Raises
    ------
    InputError
        For counts that are no counts.

    Examples
    --------
    >>> confidence, correct, total = oracle_cc_split([10, 0], [10, 5], np.random.default_rng(0))
    >>> confidence.tolist(), correct.tolist(), total.tolist()
    ([1.0, 0.0], [5, 0], [5, 3])
    """
    hits, samples = as_counts(correct, total)
    half = samples // 2
    hits_in_half = rng.hypergeometric(hits, samples - hits, half)
    confidence = np.divide(hits_in_half, half, out=np.full(len(half), np.nan), where=half > 0)
    return confidence, hits - hits_in_half, samples - half
