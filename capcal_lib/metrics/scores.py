"""Proper scores of a confidence in general form: theorem 2 beyond the Brier score.

Each score is the Bregman divergence of a strictly convex function on [0, 1], its generator: what a
confidence loses against a target, which is 0 only where they are equal. For all of them

    mean over samples of divergence(z, s)  =  divergence(mu_hat, s)  +  Bregman information of the
    samples,

with z the correctness of a sample. The last term does not depend on s. For ``brier``, (t - s)^2, it
is the variance mu_hat(1 - mu_hat), which gives theorem 2 of the paper; for ``log``, the
Kullback-Leibler divergence in nats, the entropy of a sample's correctness; for ``spherical``, the
length of (t, 1 - t) less that of its projection on (s, 1 - s), 1 less the length of (mu_hat, 1 -
mu_hat).

All functions return an array of shape (n_questions,), lower being better; input and errors are
those of :mod:`capcal_lib.metrics.brier`, and an unknown score is refused. See the paper, appendix
A.3, and Banerjee et al., "Clustering with Bregman divergences" (2005)."""

from __future__ import annotations  # keeps ArrayLike short in help()

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.errors import check_known
from capcal_lib.metrics.validation import Floats, align, as_confidence, as_scored, as_whole

ProperScore = Literal["brier", "log", "spherical"]


def _log_divergence(t: Floats, s: Floats) -> Floats:
    from scipy.special import rel_entr  # slow to import

    return rel_entr(t, s) + rel_entr(1 - t, 1 - s)


_DIVERGENCES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "brier": lambda t, s: (t - s) ** 2,
    "log": _log_divergence,
    "spherical": lambda t, s: np.hypot(t, 1 - t) - (t * s + (1 - t) * (1 - s)) / np.hypot(s, 1 - s),
}


def divergence(target: ArrayLike, confidence: ArrayLike, *, score: ProperScore = "brier") -> Floats:
    """Return what each confidence loses against its target in [0, 1]; 0 where they are equal.

    >>> divergence([0.5, 1.0], [1.0, 1.0])
    array([0.25, 0.  ])
    >>> divergence([1.0], [0.5], score="log").round(4)
    array([0.6931])
    """
    check_known("proper score", score, _DIVERGENCES)
    target, confidence = align(target=target, confidence=confidence)
    t, s = np.broadcast_arrays(as_confidence(target), as_confidence(confidence))
    return _DIVERGENCES[score](t, s)


def expected_response_loss(
    confidence: ArrayLike, correct: ArrayLike, total: ArrayLike, *, score: ProperScore = "brier"
) -> Floats:
    """Return each question's mean over its samples of the divergence of s from the sample's
    correctness.

    Its capability loss is ``divergence(mu_hat, s)``; the expected response loss of mu_hat itself is
    the Bregman information, 0 where all samples agree.

    >>> expected_response_loss([0.5, 1.0], [2, 3], [4, 4])
    array([0.25, 0.25])
    """
    s, mu, _ = as_scored(confidence, correct, total)
    losses = np.stack([divergence(0, s, score=score), divergence(1, s, score=score)])
    weights = np.stack([1 - mu, mu])  # what never happens counts as nothing, be it infinite
    return np.multiply(weights, losses, out=np.zeros_like(losses), where=weights > 0).sum(axis=0)


def best_confidence(target: ArrayLike, total: ArrayLike, *, score: ProperScore = "brier") -> Floats:
    """Search the confidence that loses least against each target, among 0, 1/total, ..., 1.

    By theorem 1 of the paper it is the target itself, by every proper score.

    >>> best_confidence([0.0, 0.25], [4, 4], score="log")
    array([0.  , 0.25])
    """
    target, total = align(target=target, total=total)
    targets, samples = np.broadcast_arrays(as_confidence(target), as_whole("total", total, least=1))
    best = np.empty(len(targets))
    for place, (one, n) in enumerate(zip(targets, samples, strict=True)):
        grid = np.arange(n + 1) / n
        losses = divergence(np.full(n + 1, one), grid, score=score)
        best[place] = grid[losses.argmin()]
    return best
