"""Design a study: from a pilot's counts, how many questions and samples of each settle a score or a
difference.

Arguments and errors as at the head of :mod:`capcal_lib.applications`. Questions are taken as drawn
one by one; where they come in groups that resemble each other, ``clusters`` holds the label of
each, and the study is taken to have as many questions a group as the pilot. Samples are a number
fixed beforehand; for others see :func:`~capcal_lib.runs.stopping.stopped_components`."""

from __future__ import annotations  # keeps ArrayLike short in help()

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError
from capcal_lib.metrics import validation as check
from capcal_lib.metrics.intervals import variance_of_mean
from capcal_lib.metrics.validation import Floats, Ints


class Components(NamedTuple):
    """Where the noise of a mean over questions comes from; variances are of one question's term.

    With k samples a question, the variance of the mean over N questions is
    (between + within/k + pairs/(k(k - 1)))/N.
    """

    estimate: float  # the score, or the first method's score less the second's
    between: float  # variance over questions, were every mu known
    within: float  # variance over samples, for a single one
    pairs: float = 0.0  # variance from the correction for finite k, for a single pair of samples

    def variance(self, k: int) -> float:
        """Return the variance of a question's term with k samples; k is 2 or more where there are
        ``pairs``.

        >>> round(Components(0.08, between=0.01, within=0.04, pairs=0.02).variance(5), 3)
        0.019
        """
        return self.between + self.within / k + self.pairs / max(k * (k - 1), 1)


def score_components(
    confidence: ArrayLike,
    correct: ArrayLike,
    total: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
) -> Components:
    """Split the variance of a pilot's corrected capability Brier score into its parts, each without
    bias.

    The corrected term is the mean of (s - C)(s - C') over pairs of samples. So with d = s - mu and
    v = mu(1 - mu) its variance over samples is 4 d^2 v/k + 2 v^2/(k(k - 1)), exactly. It takes two
    questions, with four samples each.

    >>> components = score_components([0.5, 0.9, 0.2], [5, 6, 1], [10, 10, 10])
    >>> [round(part, 4) for part in components]
    [0.0119, 0.0004, 0.0071, 0.1005]
    """
    s, correct, total, clusters = check.align_index(
        confidence=confidence, correct=correct, total=total, clusters=clusters
    )
    s, correct, total = check.align(confidence=s, correct=correct, total=total)
    s = check.as_confidence(s)
    c, n = _pilot(correct, total, scored=4)
    # Powers of mu without bias, by falling factorials.
    mu, mu2, mu3, mu4 = np.cumprod([(c - i) / (n - i) for i in range(4)], axis=0)
    v = mu - mu2
    within = 4 * (s**2 * v - 2 * s * (mu2 - mu3) + mu3 - mu4)
    pairs = 2 * (mu2 - 2 * mu3 + mu4)
    terms = s**2 - 2 * s * mu + mu2
    return _components(terms, within, pairs, n, clusters)


def difference_components(
    confidence_a: ArrayLike,
    confidence_b: ArrayLike,
    correct: ArrayLike,
    total: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
) -> Components:
    """Split the variance of a pilot's difference in capability Brier score between two methods on
    the same questions.

    The difference (a - mu_hat)^2 - (b - mu_hat)^2 is linear in mu_hat. So it needs no correction
    for the number of samples, and its variance over samples is 4 (a - b)^2 mu(1 - mu)/k, exactly. A
    negative estimate says that a is better. It takes two questions, with two samples each.

    >>> components = difference_components([0.5, 0.5, 0.2], [0.9, 0.6, 0.2], [5, 2, 1],
    ...     [10, 10, 10])
    >>> [round(part, 4) for part in components]
    [-0.0767, 0.0003, 0.0616, 0.0]
    """
    columns = {
        "confidence_a": confidence_a,
        "confidence_b": confidence_b,
        "correct": correct,
        "total": total,
    }
    *aligned, clusters = check.align_index(**columns, clusters=clusters)
    a, b, correct, total = check.align(**dict(zip(columns, aligned, strict=True)))
    a = check.as_confidence(a)
    b = check.as_confidence(b)
    c, n = _pilot(correct, total, scored=2)
    within = 4 * (a - b) ** 2 * c * (n - c) / (n * (n - 1))
    terms = (a - b) * (a + b - 2 * c / n)
    return _components(terms, within, np.zeros(n.size), n, clusters)


def _pilot(correct: ArrayLike, total: ArrayLike, *, scored: int) -> tuple[Ints, Ints]:
    c, n = check.as_counts(correct, total, scored=scored)
    if len(c) < 2:
        raise InputError("variance over questions needs two questions at least; got 1")
    return c, n


def _components(
    terms: Floats, within: Floats, pairs: Floats, n: Ints, clusters: ArrayLike | None
) -> Components:
    """Take the variance over samples from that of the terms; a negative part is 0."""
    over_samples = within / n + pairs / (n * (n - 1))
    between = len(terms) * variance_of_mean(terms, clusters) - over_samples.mean()
    return Components(
        estimate=float(terms.mean()),
        between=max(0.0, float(between)),
        within=max(0.0, float(within.mean())),
        pairs=max(0.0, float(pairs.mean())),
    )


def questions_needed(
    components: Components,
    k: int,
    *,
    half_width: float | None = None,
    power: float = 0.8,
    level: float = 0.95,
) -> float:
    """Return how many questions with k samples each would do: a whole number, at least 2.

    ``half_width``, half of the width that the interval of coverage ``level`` may have; None asks
    for one that leaves out 0, with the chance ``power``. For this set ``components.estimate`` to
    the smallest difference that matters; where it is 0, the result is infinite. ``k`` is at least
    1, for a corrected score 2.

    >>> components = Components(estimate=-0.01, between=0.01, within=0.04)
    >>> [questions_needed(components, k) for k in (1, 10, 100)]
    [3925.0, 1099.0, 817.0]
    """
    samples = check.check_int("k", k, least=2 if components.pairs > 0 else 1)
    variance = components.variance(samples)
    allowed = _allowed(components, half_width, power, level)
    if allowed > 0:
        return float(max(2, np.ceil(variance / allowed)))
    return float("inf")


def plan_study(
    components: Components,
    *,
    half_width: float | None = None,
    tokens_per_sample: float = 1.0,
    tokens_per_question: float = 0.0,
    max_questions: int | None = None,
    max_samples: int = 100,
    power: float = 0.8,
    level: float = 0.95,
) -> pd.DataFrame:
    """List the designs that would do (see :func:`questions_needed`), one for each number of
    samples, cheapest first.

    ``tokens_per_sample`` is the cost of one sample, above 0, ``tokens_per_question`` that of asking
    a question at all. Returns columns ``samples`` (of each question), ``questions`` and ``tokens``;
    empty where no design will do.

    >>> components = Components(estimate=0.08, between=0.01, within=0.04, pairs=0.02)
    >>> plan_study(components, half_width=0.01, tokens_per_sample=200,
    ...     tokens_per_question=400).head(2)
       samples  questions   tokens
    0        4        833   999600
    1        5        730  1022000
    """
    if not (0 < tokens_per_sample < np.inf and 0 <= tokens_per_question < np.inf):
        raise InputError(
            "tokens_per_sample must be above 0 and tokens_per_question at least 0; "
            f"got {tokens_per_sample!r} and {tokens_per_question!r}"
        )
    least = 2 if components.pairs > 0 else 1
    samples = np.arange(least, check.check_int("max_samples", max_samples, least=least) + 1)
    most = np.inf
    if max_questions is not None:
        most = check.check_int("max_questions", max_questions, least=2)
    needed = [
        questions_needed(components, int(k), half_width=half_width, power=power, level=level)
        for k in samples
    ]
    plans = pd.DataFrame({"samples": samples, "questions": needed})
    will_do = np.isfinite(plans["questions"]) & (plans["questions"] <= most)
    plans = plans[will_do].astype({"questions": np.int64})
    of_each = plans["samples"] * tokens_per_sample + tokens_per_question
    plans["tokens"] = plans["questions"] * of_each
    return plans.sort_values("tokens", kind="stable", ignore_index=True)


def _allowed(components: Components, half_width: float | None, power: float, level: float) -> float:
    """Return the variance that the mean may have."""
    from scipy.special import ndtri  # slow to import

    z = ndtri((1 + check.check_share("level", level)) / 2)
    reach = ndtri(check.check_share("power", power))
    if half_width is None:
        return float((components.estimate / (z + reach)) ** 2)
    if not 0 < half_width < np.inf:
        raise InputError(f"half_width must be above 0; got {half_width!r}")
    return float((half_width / z) ** 2)
