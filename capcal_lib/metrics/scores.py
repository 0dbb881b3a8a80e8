"""Proper scores of a confidence in general form: theorem 2 beyond the Brier score.

Each score is the Bregman divergence of a strictly convex function on [0, 1], its generator: what a confidence
loses against a target, which is 0 only where they are equal. For all of them

    mean over samples of divergence(z, s)  =  divergence(mu_hat, s)  +  Bregman information of the samples,

with z the correctness of a sample. The last term does not depend on s. For the Brier score it is the variance
mu_hat(1 - mu_hat), which gives theorem 2 of the paper; for the log score the entropy of a sample's correctness.

``score`` is one of

- ``brier``: (t - s)^2;
- ``log``: the Kullback-Leibler divergence in nats, infinite where s is 0 or 1 and t is not;
- ``spherical``: the length of (t, 1 - t) less that of its projection on (s, 1 - s).

All functions return an array of shape (n_questions,), lower being better; input and errors are those of
:mod:`capcal_lib.metrics.brier`, and an unknown score is refused. See the paper, appendix A.3, and Banerjee et al.,
"Clustering with Bregman divergences" (2005).
"""

from __future__ import annotations  # keeps ArrayLike short in help()

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.errors import unknown
from capcal_lib.metrics.validation import Floats, align, as_confidence, as_counts, as_scored

ProperScore = Literal["brier", "log", "spherical"]


def _negative_entropy(t: Floats) -> Floats:
    from scipy.special import xlogy  # slow to import

    return xlogy(t, t) + xlogy(1 - t, 1 - t)


def _log_divergence(t: Floats, s: Floats) -> Floats:
    from scipy.special import rel_entr  # slow to import

    return rel_entr(t, s) + rel_entr(1 - t, 1 - s)


def _length(t: Floats) -> Floats:
    return np.hypot(t, 1 - t)


def _spherical_divergence(t: Floats, s: Floats) -> Floats:
    # Generator less its tangent at s: the length of (t, 1 - t) less its projection on (s, 1 - s).
    return _length(t) - (t * s + (1 - t) * (1 - s)) / _length(s)


_GENERATORS: dict[str, Callable[[Floats], Floats]] = {
    "brier": np.square,
    "log": _negative_entropy,
    "spherical": _length,
}
_DIVERGENCES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "brier": lambda t, s: (t - s) ** 2,
    "log": _log_divergence,
    "spherical": _spherical_divergence,
}


def divergence(target: ArrayLike, confidence: ArrayLike, *, score: ProperScore = "brier") -> Floats:
    """Return what each confidence loses against its target in [0, 1]; 0 where they are equal.

    >>> divergence([0.5, 1.0], [1.0, 1.0])
    array([0.25, 0.  ])
    >>> divergence([1.0], [0.5], score="log").round(4)
    array([0.6931])
    """
    _known(score)
    target, confidence = align(target=target, confidence=confidence)
    return _DIVERGENCES[score](as_confidence(target), as_confidence(confidence))


def capability_loss(
    confidence: ArrayLike, correct: ArrayLike, total: ArrayLike, *, score: ProperScore = "brier"
) -> Floats:
    """Return each question's divergence of s from mu_hat; for Brier, the terms of the capability Brier score.

    >>> capability_loss([0.5, 1.0], [2, 3], [4, 4])
    array([0.    , 0.0625])
    """
    s, mu, _ = as_scored(confidence, correct, total)
    return divergence(mu, s, score=score)


def expected_response_loss(
    confidence: ArrayLike, correct: ArrayLike, total: ArrayLike, *, score: ProperScore = "brier"
) -> Floats:
    """Return each question's mean over its samples of the divergence of s from the sample's correctness.

    >>> expected_response_loss([0.5, 1.0], [2, 3], [4, 4])
    array([0.25, 0.25])
    """
    s, mu, _ = as_scored(confidence, correct, total)
    return _weighted(mu, divergence(1, s, score=score)) + _weighted(1 - mu, divergence(0, s, score=score))


def bregman_information(correct: ArrayLike, total: ArrayLike, *, score: ProperScore = "brier") -> Floats:
    """Return each question's gap between response and capability loss: mean of g(z) - g(mu_hat), g the generator.

    It is the least that the expected response loss of any confidence can be, and 0 where all samples agree:
    mu_hat(1 - mu_hat) for Brier, the entropy of the sample's correctness (at most log 2) for log, 1 less the length
    of (mu_hat, 1 - mu_hat) for spherical.

    >>> bregman_information([2, 4], [4, 4], score="log").round(4)
    array([0.6931, 0.    ])
    """
    _known(score)
    hits, samples = as_counts(correct, total, scored=1)
    mu, generator = hits / samples, _GENERATORS[score]
    return mu * generator(np.ones_like(mu)) + (1 - mu) * generator(np.zeros_like(mu)) - generator(mu)


def _known(score: str) -> None:
    if score not in get_args(ProperScore):
        raise unknown("proper score", score, get_args(ProperScore))


def _weighted(weight: Floats, loss: Floats) -> Floats:
    """Multiply, where a loss that never happens counts as nothing even if it is infinite."""
    return np.multiply(weight, loss, out=np.zeros_like(loss), where=weight > 0)
