"""pass@k: the chance that at least one of k samples is correct; measured from counts or implied by a confidence."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.metrics.validation import Floats, as_confidence, as_counts, as_whole


class SimulatedCurve(NamedTuple):
    """A dataset's pass@k as a confidence implies it; mean and standard deviation, each of shape (n_ks,)."""

    mean: Floats
    sd: Floats


def pass_at_k(correct: ArrayLike, total: ArrayLike, ks: ArrayLike) -> Floats:
    """Estimate pass@k of each question without bias: 1 - C(n - c, k)/C(n, k).

    Parameters
    ----------
    correct, total : array-like of shape (n_questions,)
        Correct (c) and scored (n) samples of each question.
    ks : array-like of shape (n_ks,)
        Numbers of attempts, each at least 1, in any order.

    Returns
    -------
    ndarray of shape (n_questions, n_ks)
        In [0, 1], never falling as k grows; NaN where fewer than k samples were scored, since no unbiased estimate
        exists there.

    Raises
    ------
    InputError
        For malformed counts, or a k that is not a whole number of at least 1.

    References
    ----------
    The paper, section 5.1; Chen et al., "Evaluating large language models trained on code" (2021).

    Examples
    --------
    >>> pass_at_k([1, 2], [4, 4], [1, 2, 8]).round(4)
    array([[0.25  , 0.5   ,    nan],
           [0.5   , 0.8333,    nan]])
    """
    hits, samples = as_counts(correct, total)
    attempts = as_whole("k", ks, least=1)
    # Questions share few distinct counts, so one row each is worked out and then looked up. A pair as one
    # complex number is the fast way to have numpy sort it.
    pairs, question = np.unique(hits + 1j * samples, return_inverse=True)
    c, n = pairs.real[:, None], pairs.imag[:, None]
    known = np.minimum(attempts, n.max()).astype(np.int64)
    drawn = np.arange(known.max())
    # The chance that draw number `drawn` fails too, after that many failures without replacement.
    fails = np.maximum(n - c - drawn, 0) / np.maximum(n - drawn, 1)
    all_fail = np.column_stack([np.ones(n.size), np.cumprod(fails, axis=1)])
    table = np.where(attempts <= n, 1 - all_fail[:, known], np.nan)
    return table[question]


def simulate_pass_at_k(confidence: ArrayLike, ks: ArrayLike) -> Floats:
    """Return the pass@k that a confidence s implies for each question: 1 - (1 - s)^k.

    Parameters
    ----------
    confidence : array-like of shape (n_questions,)
        Estimates s of the expected accuracy, in [0, 1].
    ks : array-like of shape (n_ks,)
        Numbers of attempts, each at least 1, in any order.

    Returns
    -------
    ndarray of shape (n_questions, n_ks)
        In [0, 1], to full relative precision however small s or large k.

    Raises
    ------
    InputError
        For a confidence outside [0, 1] or NaN, or a k that is not a whole number of at least 1.

    References
    ----------
    The paper, appendix "Process of simulating Pass@k curve".

    Examples
    --------
    >>> simulate_pass_at_k([0.5, 1e-12], [1, 2])
    array([[5.0e-01, 7.5e-01],
           [1.0e-12, 2.0e-12]])
    """
    s, attempts = as_confidence(confidence), as_whole("k", ks, least=1)
    with np.errstate(divide="ignore"):  # log(0) = -inf at s = 1 is right
        log_failure = np.log1p(-s)
    return -np.expm1(log_failure[:, None] * attempts)


def simulated_curve(confidence: ArrayLike, ks: ArrayLike) -> SimulatedCurve:
    """Return the dataset's pass@k that confidences imply, with the spread of one draw of the verdicts.

    The spread holds only the luck of each question's k attempts, sqrt(sum S(1 - S))/N; neither
    the choice of questions nor errors of the confidences are in it.

    Parameters
    ----------
    confidence : array-like of shape (n_questions,)
        Estimates s of the expected accuracy, in [0, 1].
    ks : array-like of shape (n_ks,)
        Numbers of attempts, each at least 1, in any order.

    Returns
    -------
    SimulatedCurve
        ``mean`` and ``sd``, each of shape (n_ks,).

    Raises
    ------
    InputError
        As in :func:`simulate_pass_at_k`.

    References
    ----------
    The paper, appendix "Process of simulating Pass@k curve".

    Examples
    --------
    >>> simulated_curve([0.5, 1.0], [1, 2])
    SimulatedCurve(mean=array([0.75 , 0.875]), sd=array([0.25      , 0.21650635]))
    """
    solved = simulate_pass_at_k(confidence, ks)
    sd = np.sqrt((solved * (1 - solved)).sum(axis=0)) / len(solved)
    return SimulatedCurve(solved.mean(axis=0), sd)
