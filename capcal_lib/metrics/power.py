"""Power: how many questions and samples would settle which of two methods scores better."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError
from capcal_lib.metrics.validation import as_confidence, as_counts, check_int, same_length


class Components(NamedTuple):
    """Where the noise of a difference in capability Brier comes from; variances are of one question's difference."""

    difference: float  # mean over questions of a's term less b's
    between: float  # variance over questions, were every mu known
    within: float  # variance over the samples of a question, with one sample each; k samples leave within / k


def variance_components(
    confidence_a: ArrayLike, confidence_b: ArrayLike, correct: ArrayLike, total: ArrayLike
) -> Components:
    """Split the variance of a pilot's differences into that over questions and that over samples.

    The difference (a - mu_hat)^2 - (b - mu_hat)^2 is linear in mu_hat. So it needs no correction for the number of
    samples, and its variance over samples is 4 (a - b)^2 mu(1 - mu)/k, exactly. Both parts are unbiased, but for the
    first being cut off at 0.

    Parameters
    ----------
    confidence_a, confidence_b : array-like of shape (n_questions,)
        Confidences of two methods on the same questions, in [0, 1].
    correct, total : array-like of shape (n_questions,)
        Correct and scored samples of each question, two scored ones at least; two questions at least.

    Returns
    -------
    Components
        A negative difference says that a is better.

    Raises
    ------
    InputError
        For fewer than two questions, and as at the head of :mod:`capcal_lib.metrics`.

    Examples
    --------
    >>> components = variance_components([0.5, 0.5, 0.2], [0.9, 0.6, 0.2], [5, 2, 1], [10, 10, 10])
    >>> [round(part, 4) for part in components]
    [-0.0767, 0.0003, 0.0616]
    """
    a, b = as_confidence(confidence_a), as_confidence(confidence_b)
    c, n = as_counts(correct, total, scored=2)
    same_length(confidence_a=a, confidence_b=b, correct=c)
    if len(c) < 2:
        raise InputError("variance over questions needs two questions at least; got 1")
    terms = (a - b) * (a + b - 2 * c / n)
    one_sample = 4 * (a - b) ** 2 * c * (n - c) / (n * (n - 1))
    between = max(0.0, float(terms.var(ddof=1) - np.mean(one_sample / n)))
    return Components(float(terms.mean()), between, float(one_sample.mean()))


def questions_needed(components: Components, k: int, *, power: float = 0.8, level: float = 0.95) -> float:
    """Return how many questions with k samples each would show the difference.

    Questions are taken as drawn one by one; where they come in groups that resemble each other, more are needed.

    Parameters
    ----------
    components : Components
        Of a pilot; set its ``difference`` to the smallest one that matters, where the pilot's own is a guess.
    k : int
        Samples a question, at least 1.
    power : float, default=0.8
        Chance that the interval of the difference will leave out 0, between 0 and 1.
    level : float, default=0.95
        Coverage of that interval.

    Returns
    -------
    float
        A whole number, at least 2; infinite where the difference is 0.

    Raises
    ------
    InputError
        For an argument out of range.

    Examples
    --------
    >>> components = Components(difference=-0.01, between=0.01, within=0.04)
    >>> [questions_needed(components, k) for k in (1, 10, 100)]
    [3925.0, 1099.0, 817.0]
    """
    samples = check_int("k", k, least=1)
    needed = _standard_errors(power, level) ** 2 * (components.between + components.within / samples)
    if components.difference == 0:
        return float("inf")
    return float(max(2, np.ceil(needed / components.difference**2)))


def samples_needed(components: Components, questions: int, *, power: float = 0.8, level: float = 0.95) -> float:
    """Return how many samples of each of so many questions would show the difference.

    Parameters
    ----------
    components, power, level
        As in :func:`questions_needed`.
    questions : int
        How many questions there are, at least 2.

    Returns
    -------
    float
        A whole number, at least 1; infinite where these questions differ too much among themselves for any number.

    Raises
    ------
    InputError
        For an argument out of range.

    Examples
    --------
    >>> components = Components(difference=-0.01, between=0.01, within=0.04)
    >>> [samples_needed(components, n) for n in (500, 1000, 4000)]
    [inf, 15.0, 1.0]
    """
    allowed = questions * components.difference**2 / _standard_errors(power, level) ** 2
    check_int("questions", questions, least=2)
    if allowed <= components.between:
        return float("inf")
    return float(max(1, np.ceil(components.within / (allowed - components.between))))


def _standard_errors(power: float, level: float) -> float:
    """Return how many standard errors the difference must be away from 0, 2.8 for the defaults."""
    from scipy.special import ndtri  # slow to import

    for name, value in (("power", power), ("level", level)):
        if not 0 < value < 1:
            raise InputError(f"{name} must lie between 0 and 1; got {value!r}")
    return float(ndtri((1 + level) / 2) + ndtri(power))
