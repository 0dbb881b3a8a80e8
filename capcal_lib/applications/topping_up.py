"""Top up the samples of a data set until its scores are known well enough, without bias.

Every question has the same few samples, a pilot. More are bought where they tell most for their
tokens: of questions alike, by their confidences, whose terms vary most over samples.

Who looks at outcomes before going on may stop where they happen to be good. So the questions are
parted into two halves, at random, and what one half gets follows from the pilot of the other, and
from confidences, none of which saw a sample of its own. The number of samples of a question is thus
independent of what they say, and the mean of the corrected terms is unbiased, as with numbers fixed
beforehand; no sample is set aside for deciding. There is one look, at the pilot alone, so a second
call comes to the same numbers. The interval that is reached is wider or narrower than what was
aimed at, by as much as one half differs from the other: ``MARGIN`` allows for that, and where it
comes out wider all the same, a smaller half-width buys more."""

from __future__ import annotations  # keeps ArrayLike short in help()

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from capcal_lib.errors import InputError
from capcal_lib.metrics import validation as check
from capcal_lib.metrics.intervals import variance_of_mean
from capcal_lib.metrics.validation import Floats

MARGIN = 1.0  # what is aimed at is narrower than asked for by this over the root of the questions
TENTH = 10  # of the variance between questions, down to which samples' is brought near the limit
STRATA = 3  # of questions alike
STEP = 1.25  # by which their samples are multiplied, and judged by what that buys


class Components(NamedTuple):
    """Where the noise of a mean over questions comes from; variances are of one question's term.

    With k samples a question, the variance of the mean over N questions is
    (between + within/k + pairs/(k(k - 1)))/N.
    """

    estimate: float  # the score
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
    c, n = check.as_counts(correct, total, scored=4)
    if len(c) < 2:
        raise InputError("variance over questions needs two questions at least; got 1")
    # Powers of mu without bias, by falling factorials.
    mu, mu2, mu3, mu4 = np.cumprod([(c - i) / (n - i) for i in range(4)], axis=0)
    v = mu - mu2
    within = 4 * (s**2 * v - 2 * s * (mu2 - mu3) + mu3 - mu4)
    pairs = 2 * (mu2 - 2 * mu3 + mu4)
    terms = s**2 - 2 * s * mu + mu2
    over_samples = within / n + pairs / (n * (n - 1))
    between = len(terms) * variance_of_mean(terms, clusters) - over_samples.mean()
    parts = [float(part) for part in (between, within.mean(), pairs.mean())]
    return Components(float(terms.mean()), *(max(0.0, part) for part in parts))


def samples_needed(
    results: pd.DataFrame,
    *,
    half_width: float,
    most: int,
    apart: tuple[str, ...] = (),
    clusters: pd.Series[str] | None = None,
) -> pd.Series[int]:
    """Say how many samples each question needs so that the 95 % interval of every method's score,
    that of :func:`~capcal_lib.metrics.mean_interval`, reaches at most so far to either side.

    ``results`` are those of a pilot on one data set: ``correct`` and ``total``, at least four a
    question, then a column a method, of which those ``apart`` were made from the samples
    themselves, and ``clusters`` labels questions that belong together. A score that no number of
    samples makes so precise, because there are too few questions, is left as precise as the
    pilot's. At most ``most`` samples each; never fewer than the pilot's. What is asked for is
    reached nearly always where it is a fifth wider than with every mu known, and less often nearer.

    >>> rng = np.random.default_rng(0)
    >>> mu = rng.beta(0.5, 0.5, 400)
    >>> pilot = pd.DataFrame({"correct": rng.binomial(20, mu), "total": 20, "mine": 0.9 * mu})
    >>> samples_needed(pilot, half_width=0.5, most=100).unique().tolist()
    [20]
    """
    counts = ["correct", "total"]
    methods = list(map(str, results.drop(columns=counts).dropna(axis="columns", how="all")))
    seen = results[[name for name in methods if name not in apart]].mean(axis="columns")
    place = seen.fillna(0.5).rank(method="first", pct=True) * STRATA
    strata = place.clip(upper=STRATA - 0.001).astype(int)
    digests = [hashlib.sha256(f"half {name}".encode()).digest()[0] for name in results.index]
    half = np.array(digests) % 2
    aim = half_width * max(0.5, 1 - MARGIN / np.sqrt(len(results)))
    units = len(results) if clusters is None else clusters.nunique()
    needed = pd.Series(int(results["total"].max()), index=results.index)
    for own in (0, 1):
        pilot = results[(half != own) & (results["total"] >= 4)]
        shares = strata.value_counts(normalize=True).sort_index()
        labels = None if clusters is None else clusters[pilot.index]
        parts = [_varies(pilot, name, strata[pilot.index], shares, labels) for name in methods]
        varies = [part for part in parts if part is not None]
        bought = _buy(
            varies,
            np.asarray(shares, dtype=np.float64),
            aim=np.array([_variance(part.estimate, aim, len(results), units) for part in varies]),
            start=int(needed.iloc[0]),
            most=most,
        )
        rows = half == own
        needed[rows] = strata[rows].map(dict(zip(shares.index, bought, strict=True)))
    return needed


def _variance(estimate: float, reach: float, questions: int, units: int) -> float:
    """Return the variance of a question's term from which the interval reaches so far: Student's t
    on the units (questions or clusters) and half a unit more at either bound, turned round.
    """
    off = abs(estimate - 0.5) / (units + 1)  # of the interval's centre from the estimate
    centre = estimate - (estimate - 0.5) / (units + 1)
    error = max(0.0, reach - off) / stdtrit(units - 1, 0.975)
    added = units * off**2 + (centre**2 + (1 - centre) ** 2) / 2
    each = (error**2 * units * (units + 1) - added) / max(units - 1, 1)
    return float(each * questions / units)


@dataclass(frozen=True)
class Varies:
    """What the score of a method varies by."""

    estimate: float
    between: float  # questions
    strata: list[Components]  # within and pairs of each stratum


def _varies(
    pilot: pd.DataFrame,
    method: str,
    strata: pd.Series[int],
    shares: pd.Series[float],
    clusters: pd.Series[str] | None,
) -> Varies | None:
    scored = pilot.dropna(subset=[method])
    if len(scored) < 2:
        return None

    def components(rows: pd.DataFrame) -> Components:
        labels = None if clusters is None else clusters[rows.index]
        return score_components(rows[method], rows["correct"], rows["total"], clusters=labels)

    whole = components(scored)
    found = []
    for stratum in shares.index:
        rows = scored[strata[scored.index] == stratum]
        found.append(components(rows) if len(rows) > 1 else whole)
    return Varies(whole.estimate, whole.between, found)


def _buy(
    methods: list[Varies],
    shares: Floats,
    *,
    aim: Floats,
    start: int,
    most: int,
) -> list[int]:
    """Raise the samples of one stratum after the other, each time of the one where they buy most,
    until every method that can be is precise enough; return them by stratum."""
    ks = np.full(len(shares), start)
    shape = len(methods), len(shares)
    strata = [part for method in methods for part in method.strata]
    within = np.array([part.within for part in strata]).reshape(shape)
    pairs = np.array([part.pairs for part in strata]).reshape(shape)
    between = np.array([method.between for method in methods])

    def variance(k: np.ndarray) -> np.ndarray:
        return shares * (within / k + pairs / (k * (k - 1)))

    while True:
        now = variance(ks)
        lacking = now.sum(axis=1) - np.maximum(aim - between, between / TENTH)
        lacking[between >= 2 * aim] = 0.0  # no number of samples would do
        more = np.minimum(most, np.ceil(STEP * ks)).astype(int)
        if not (lacking > 0).any() or (more == ks).all():
            return [int(k) for k in ks]
        worst = int(lacking.argmax())
        price = shares * np.maximum(more - ks, 1e-9)
        gain = (now - variance(more))[worst] / price
        best = int(gain.argmax())
        if gain[best] <= 0:
            return [int(k) for k in ks]
        ks[best] = more[best]
