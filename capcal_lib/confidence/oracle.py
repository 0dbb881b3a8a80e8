"""Oracles: what perfect knowledge of one sample (RC) or of mu_hat (CC) would score (paper, section 5.1)."""

import numpy as np
import numpy.typing as npt

from capcal_lib.metrics.validation import Floats, Ints, as_counts


def oracle_cc(correct: npt.ArrayLike, total: npt.ArrayLike) -> Floats:
    """Return mu_hat itself as the confidence.

    Scored on the same counts it is perfect by definition; ``oracle_cc_split`` is not.

    Parameters
    ----------
    correct, total
        (n_questions,) counts, 0 <= correct <= total.

    Returns
    -------
    ndarray
        (n_questions,) correct / total in [0, 1]; NaN where total is 0.

    Raises
    ------
    InputError
        For counts that are no counts.

    Examples
    --------
    >>> oracle_cc([3, 0], [4, 0]).tolist()
    [0.75, nan]
    """
    hits, samples = as_counts(correct, total)
    accuracy = np.full(len(samples), np.nan)
    np.divide(hits, samples, out=accuracy, where=samples > 0)
    return accuracy


def oracle_rc(correct: npt.ArrayLike, total: npt.ArrayLike, rng: np.random.Generator) -> Floats:
    """Draw one of each question's samples and return its correctness as the confidence.

    Parameters
    ----------
    correct, total
        (n_questions,) counts, 0 <= correct <= total.
    rng
        Decides which sample is drawn.

    Returns
    -------
    ndarray
        (n_questions,) 0 or 1; NaN where total is 0.

    Raises
    ------
    InputError
        For counts that are no counts.

    Examples
    --------
    >>> oracle_rc([4, 0, 0], [4, 4, 0], np.random.default_rng(0)).tolist()
    [1.0, 0.0, nan]
    """
    hits, samples = as_counts(correct, total)
    drawn = rng.integers(0, np.maximum(samples, 1)) < hits
    return np.where(samples > 0, drawn.astype(np.float64), np.nan)


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
    return oracle_cc(hits_in_half, half), hits - hits_in_half, samples - half
