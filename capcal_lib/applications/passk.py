"""pass@k, the chance that at least one of k samples is correct: measured from samples, and
predicted from a confidence.

Arguments and errors are described in :mod:`capcal_lib.applications`.
"""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln

from capcal_lib.errors import InputError
from capcal_lib.metrics import validation as check
from capcal_lib.metrics.validation import Floats

PLUG_IN_NU = 1e9  # a concentration from which a posterior is its mean, as far as floats tell
ENOUGH = 10  # questions, fewer of which say little of others


def pass_at_k(correct: ArrayLike, total: ArrayLike, ks: ArrayLike) -> Floats:
    """Estimate each question's pass@k without bias: 1 - C(n - c, k)/C(n, k), shape (n_questions,
    n_ks), in [0, 1].

    NaN if fewer than k samples were scored, since then no unbiased estimate exists. The number of
    samples must be fixed beforehand. The chance that all k samples are correct, often written
    pass^k, is 1 minus the pass@k of ``total - correct``.

    References: the paper, section 5.1; Chen et al., "Evaluating large language models trained on
    code" (2021).

    >>> pass_at_k([1, 2], [4, 4], [1, 2, 8]).round(4)
    array([[0.25  , 0.5   ,    nan],
           [0.5   , 0.8333,    nan]])
    """
    hits, samples = check.as_counts(correct, total)
    attempts = check.as_whole("k", ks, least=1)
    # Questions share few distinct counts, so one row each is worked out and then looked up. A pair
    # as one complex number is the fast way to have numpy sort it.
    pairs, question = np.unique(hits + 1j * samples, return_inverse=True)
    c = pairs.real[:, None]
    n = pairs.imag[:, None]
    known = np.minimum(attempts, samples.max())
    drawn = np.arange(known.max())
    # The chance that draw number `drawn` fails too, after that many failures without replacement.
    fails = np.maximum(n - c - drawn, 0) / np.maximum(n - drawn, 1)
    all_fail = np.column_stack([np.ones(n.size), np.cumprod(fails, axis=1)])
    return np.where(attempts <= n, 1 - all_fail[:, known], np.nan)[question]


def deep_samples(total: ArrayLike) -> int:
    """Choose the number n of samples to use if questions have different totals; questions with
    fewer than n samples are then left out.

    Many samples show what is rare in a question, and many questions narrow an interval. So n is the
    total that maximises n times the square root of the number of questions with n or more samples,
    among the totals that at least ten questions reach (or all, if there are fewer than ten). Totals
    must not depend on verdicts.

    >>> deep_samples([100] * 20 + [12] * 40), deep_samples([100] * 45 + [97] * 15)
    (100, 97)
    """
    _, samples = check.as_counts(0, total)
    depths, questions = np.unique(samples, return_counts=True)
    having = questions[::-1].cumsum()[::-1]
    worth = np.where(having >= min(ENOUGH, samples.size), depths * np.sqrt(having), -1.0)
    return int(depths[np.argmax(worth)])


def simulate_pass_at_k(
    confidence: ArrayLike, ks: ArrayLike, *, concentration: float | ArrayLike | None = None
) -> Floats:
    """Predict each question's pass@k from its confidence s, shape (n_questions, n_ks), in [0, 1].

    Plug-in: 1 - (1 - s)^k, as in the paper (appendix "Process of simulating Pass@k curve"), to full
    relative precision for any s and k. It is concave in s, so a confidence that is right only on
    average predicts too much. With a concentration (ours) the prediction is the mean under the
    posterior Beta(a, b) = Beta(s nu, (1 - s) nu), 1 - B(a, b + k)/B(a, b), to within 1e-9 for nu up
    to a million.

    >>> simulate_pass_at_k([0.5, 1e-12], [1, 2])
    array([[5.0e-01, 7.5e-01],
           [1.0e-12, 2.0e-12]])
    """
    confidence, concentration = check.align(confidence=confidence, concentration=concentration)
    s = check.as_confidence(confidence)[:, None]
    attempts = check.as_whole("k", ks, least=1)
    nu = as_concentration(concentration, s.size)[:, None]
    with np.errstate(divide="ignore"):  # log(0) = -inf at s = 1 is right
        log_unsolved = np.log1p(-s) * attempts
    inside = (nu < PLUG_IN_NU) & (s > 0) & (s < 1)
    if inside.any():
        a = np.maximum(s * nu, 1e-300)
        b = np.maximum((1 - s) * nu, 1e-300)
        posterior = np.minimum(betaln(a, b + attempts) - betaln(a, b), 0)
        log_unsolved = np.where(inside, posterior, log_unsolved)
    return -np.expm1(log_unsolved)


def pass_at_k_error_terms(
    predicted: ArrayLike, correct: ArrayLike, total: ArrayLike, ks: ArrayLike
) -> Floats:
    """Score predictions of pass@k without the noise of the counts: one unbiased squared error per
    question and k.

    Against the measured pass@k even a perfect prediction has an error. Let f be the predicted
    chance that all k fail, and Q_j = C(n - c, j)/C(n, j): the term f^2 - 2 f Q_k + Q_2k has the
    expectation (f - (1 - mu)^k)^2.

    ``predicted`` lies in [0, 1], such as :func:`simulate_pass_at_k` returns; it and the result have
    shape (n_questions, n_ks). Lower is better. Single terms may be negative, and are NaN if fewer
    than 2k samples were scored.

    >>> pass_at_k_error_terms([[0.5], [0.5]], [0, 2], [4, 4], [1]).round(4)
    array([[ 0.25  ],
           [-0.0833]])
    """
    attempts = check.as_whole("k", ks, least=1)
    promised = np.asarray(predicted, dtype=np.float64)
    doubled = np.minimum(2 * attempts, check.LARGEST_COUNT)
    once = 1 - pass_at_k(correct, total, attempts)
    twice = 1 - pass_at_k(correct, total, doubled)
    if promised.shape != once.shape:
        raise InputError(
            "predicted must have one row per question and one column per k, shape "
            f"{once.shape}; got {promised.shape}"
        )
    inside = np.all((promised >= 0) & (promised <= 1), axis=1)
    check.check_rows("predicted", promised.min(axis=1), ~inside, "or has a value outside [0, 1]")
    missed = 1 - promised
    return missed**2 - 2 * missed * once + twice


def as_concentration(concentration: ArrayLike | None, n_questions: int) -> Floats:
    """Return a concentration for each question, above 0 and at most PLUG_IN_NU, which stands for
    None.
    """
    nu = check.as_numbers("concentration", PLUG_IN_NU if concentration is None else concentration)
    rule = "but must be above 0; None takes confidences at their word"
    check.check_rows("concentration", nu, ~(nu > 0), rule)
    return np.broadcast_to(np.minimum(nu, PLUG_IN_NU), n_questions)
