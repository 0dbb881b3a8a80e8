"""A Beta distribution of expected accuracy over questions, matched to two reported moments.

Numbers made from it are ``simulated``: the paper prints means, not counts, and a Beta is an assumption.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError
from capcal_lib.metrics.validation import Floats, as_whole, check_int


class Beta(NamedTuple):
    """Shapes of a Beta distribution, both above 0."""

    a: float
    b: float


def beta_from_moments(mean: float, mean_mu_one_minus_mu: float) -> Beta:
    """Return the Beta distribution of mu with the given E[mu] and E[mu(1 - mu)].

    Parameters
    ----------
    mean : float
        E[mu], the mean expected accuracy, in (0, 1).
    mean_mu_one_minus_mu : float
        E[mu(1 - mu)], in (0, mean(1 - mean)): the expected capability Brier of Oracle RC, or 1/3 minus
        that of Uniform random.

    Returns
    -------
    Beta
        Shapes (a, b); close to 0 where questions are either always or never answered correctly.

    Raises
    ------
    InputError
        Where no Beta distribution has these moments.

    Examples
    --------
    >>> beta_from_moments(0.5, 0.125)
    Beta(a=0.5, b=0.5)
    """
    if not 0 < mean < 1:
        raise InputError(f"the mean expected accuracy must lie between 0 and 1 for a Beta; got {mean!r}")
    most = mean * (1 - mean)
    if not 0 < mean_mu_one_minus_mu < most:
        raise InputError(
            f"no Beta with mean {mean!r} has E[mu(1-mu)] = {mean_mu_one_minus_mu!r}; "
            f"it must lie between 0 and mean(1-mean) = {most:.6g}"
        )
    weight = mean_mu_one_minus_mu / (most - mean_mu_one_minus_mu)  # a + b
    return Beta(mean * weight, (1 - mean) * weight)


def _check_shapes(a: float, b: float) -> None:
    if not (0 < a < math.inf and 0 < b < math.inf):
        raise InputError(f"the shapes of a Beta must be above 0 and finite; got a={a!r}, b={b!r}")


def beta_pass_at_k(a: float, b: float, ks: ArrayLike) -> Floats:
    """Return the expected pass@k where mu follows Beta(a, b): 1 - B(a, b + k)/B(a, b).

    Parameters
    ----------
    a, b : float
        Shapes, above 0.
    ks : array-like of shape (n_ks,)
        Numbers of attempts, each at least 1, in any order.

    Returns
    -------
    ndarray of shape (n_ks,)
        In (0, 1), rising in k. Good to about 1e-12 for a + b up to a thousand.

    Raises
    ------
    InputError
        For shapes out of range, or a k that is not a whole number of at least 1.

    Examples
    --------
    >>> beta_pass_at_k(1.0, 1.0, [1, 2, 4]).round(4)
    array([0.5   , 0.6667, 0.8   ])
    """
    from scipy.special import betaln  # slow to import

    _check_shapes(a, b)
    attempts = as_whole("k", ks, least=1)
    log_failure: Floats = betaln(a, b + attempts) - betaln(a, b)
    return -np.expm1(log_failure)


def beta_sample(a: float, b: float, n: int, rng: np.random.Generator) -> Floats:
    """Draw the expected accuracies of n questions from Beta(a, b).

    Parameters
    ----------
    a, b : float
        Shapes, above 0.
    n : int
        How many to draw, at least 1.
    rng : numpy.random.Generator
        Where the draws come from.

    Returns
    -------
    ndarray of shape (n,)
        In [0, 1].

    Raises
    ------
    InputError
        For an argument out of range.

    Examples
    --------
    >>> beta_sample(1.0, 1.0, 3, np.random.default_rng(0)).shape
    (3,)
    """
    _check_shapes(a, b)
    return rng.beta(a, b, size=check_int("n", n, least=1))
