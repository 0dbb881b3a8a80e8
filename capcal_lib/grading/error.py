"""A grader's own error, from answers that a person has labelled, and what it does to expected
accuracy.

Sensitivity is the probability that the grader calls a right answer correct, specificity that it
calls a wrong one not correct. With both, the mean m of its verdicts gives back the accuracy (m +
specificity - 1) / (sensitivity + specificity - 1), the estimator of Rogan and Gladen, "Estimating
prevalence from the results of a screening test", American Journal of Epidemiology 107 (1978). Its
interval is the adjusted one of Lang and Reiczigel, "Confidence limits for prevalence of disease
adjusted for estimated sensitivity and specificity", Preventive Veterinary Medicine 113 (2014): it
holds the noise of the samples and that of the labels.

Every ``level`` is the nominal coverage of an interval, between 0 and 1; ``correct`` and ``total``
count the correct and the scored samples of each question, shape (n_questions,). Malformed counts,
other values than those named, a level out of range and a grader whose sensitivity and specificity
do not sum to more than 1 raise ``InputError``."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError
from capcal_lib.metrics.intervals import Interval
from capcal_lib.metrics.validation import (
    Floats,
    as_counts,
    as_numbers,
    check_rows,
    check_share,
    same_length,
)


@dataclass(frozen=True, slots=True)
class GraderError:
    """Sensitivity and specificity of a grader, with their Jeffreys intervals, and the labels behind
    each.
    """

    sensitivity: Interval
    specificity: Interval
    # effective number of labelled answers that are right: as many independent labels would tell as
    # much
    right: float
    wrong: float


class CorrectedMean(NamedTuple):
    """A mean expected accuracy corrected for the grader's error; one question has NaN limits."""

    estimate: float
    low: float
    high: float
    clipped: bool  # whether the estimate lay outside [0, 1] and was put at its end


def grader_error(
    says_correct: ArrayLike,
    is_correct: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    clusters: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    level: float = 0.95,
) -> GraderError:
    """Estimate a grader's sensitivity and specificity from labels of right and of wrong answers.

    The variance of a rate is the sum over strata of W^2 p (1 - p) / (n + 2), where W is the
    stratum's share of the weight, p its rate with one label of either kind added, and n its
    effective number of labels: (sum w)^2 / sum w^2, over the variance of totals by question
    relative to that of independent labels. Where all labels of a stratum say the same nothing is
    known of that ratio, and the labels of a question count as one.

    ``says_correct`` and ``is_correct``, (n_labels,), are 1 where the grader, and where a person,
    says that the answer is right, else 0. Leave out what the grader did not score; NaN is what the
    person could not tell. ``weights`` tell how many samples each label stands for: where two
    graders disagree a person labels every answer, and where they agree a few, which without weights
    would seem to be all there are. ``clusters`` are the questions: labels of many answers to one
    say less than their number, since a grader that lacks an alias errs on all of them. ``strata``
    are groups that labels were drawn from apart, such as disputed answers and others.

    >>> error = grader_error([1, 1, 1, 0, 0, 0, 0, 1], [1, 1, 1, 1, 0, 0, 0, 0])
    >>> error.sensitivity.estimate, error.specificity.estimate, round(error.right, 6)
    (0.75, 0.75, 4.0)
    """
    said = as_numbers("says_correct", says_correct)
    truth = as_numbers("is_correct", is_correct)
    weight = np.ones(len(said)) if weights is None else as_numbers("weight", weights)
    cluster = np.arange(len(said)) if clusters is None else np.asarray(clusters)
    stratum = np.zeros(len(said)) if strata is None else np.asarray(strata)
    same_length(
        says_correct=said, is_correct=truth, weights=weight, clusters=cluster, strata=stratum
    )
    told = ~np.isnan(truth)
    counts = (weight >= 0) & (weight < np.inf)
    check_rows("says_correct", said, ~np.isin(said, (0, 1)), "but must be 0 or 1")
    check_rows("is_correct", truth, told & ~np.isin(truth, (0, 1)), "but must be 0, 1 or NaN")
    check_rows("weight", weight, ~counts, "but must be a number from 0")
    found = []
    for name, value in (("right", 1), ("wrong", 0)):
        rows = told & (truth == value) & (weight > 0)
        if not rows.any():
            raise InputError(
                f"no {name} answer is labelled, so the grader's error on them is unknown; label "
                "some more"
            )
        rate, size = _rate(said[rows] == value, weight[rows], cluster[rows], stratum[rows])
        found.append((_jeffreys(rate, size, level), size))
    (sensitivity, right), (specificity, wrong) = found
    return GraderError(
        sensitivity=sensitivity,
        specificity=specificity,
        right=right,
        wrong=wrong,
    )


def _rate(
    hits: np.ndarray, weight: Floats, cluster: np.ndarray, stratum: np.ndarray
) -> tuple[float, float]:
    """Return a weighted rate and its effective number of labels."""
    rate = variance = 0.0
    for label in np.unique(stratum):
        rows = stratum == label
        w = weight[rows]
        own = hits[rows]
        share = w.sum() / weight.sum()
        p = w @ own / w.sum()
        _, question = np.unique(cluster[rows], return_inverse=True)
        apart = w * (own - p) if 0 < own.mean() < 1 else w
        together = np.bincount(question, apart)
        inflation = max(1.0, (together @ together) / (apart @ apart))
        size = w.sum() ** 2 / (w @ w) / inflation
        p = (size * p + 1) / (size + 2)
        rate += share * p
        variance += share**2 * p * (1 - p) / (size + 2)
    observed = float(np.average(hits, weights=weight))
    return observed, float(rate * (1 - rate) / variance - 2)


def _jeffreys(share: float, size: float, level: float) -> Interval:
    """Return a share with its Jeffreys interval from ``size`` labels, which need not be a whole
    number.
    """
    from scipy.special import betaincinv  # slow to import

    check_share("level", level)
    a = size * share + 0.5
    b = size * (1 - share) + 0.5
    tail = (1 - level) / 2
    low = 0.0 if share == 0 else float(betaincinv(a, b, tail))
    high = 1.0 if share == 1 else float(betaincinv(a, b, (1 + level) / 2))
    return Interval(share, low, high)


def corrected_mu(
    correct: ArrayLike, total: ArrayLike, error: GraderError, *, level: float = 0.95
) -> Floats:
    """Correct each question's mu_hat, with an interval that holds the noise of its samples and of
    the labels.

    It takes the grader to err alike on all questions, which is its weakness: an alias that the
    grader does not know makes it wrong on every sample of one question and on none of another.

    Returns estimate, low and high, (n_questions, 3), all put at 0 or 1 where they lay outside; NaN
    where not scored.

    >>> error = grader_error([1] * 95 + [0] * 5 + [0] * 100, [1] * 100 + [0] * 100)
    >>> corrected_mu([19, 100], [100, 100], error).round(3).tolist()
    [[0.2, 0.121, 0.291], [1.0, 0.989, 1.0]]
    """
    seen, mu, samples = _scored(correct, total)
    estimate = _rogan_gladen(mu, error.sensitivity.estimate, error.specificity.estimate)
    low, high = _limits(mu, samples, error, level)
    result = np.full((len(seen), 3), np.nan)
    result[seen] = np.column_stack([estimate, low, high])
    return np.asarray(np.clip(result, 0, 1))


def corrected_mean(
    correct: ArrayLike, total: ArrayLike, error: GraderError, *, level: float = 0.95
) -> CorrectedMean:
    """Correct the mean expected accuracy over questions, with an interval for questions, samples
    and labels.

    A question without a scored sample is left out; where none has one, an ``InputError`` is raised.
    Questions differ, so their mean is less certain than that of as many independent samples: the
    interval is that of n = m (1 - m) / (s^2 / N) samples, where m and s are mean and standard
    deviation of mu_hat over N questions.

    >>> error = grader_error([1] * 90 + [0] * 10 + [0] * 100, [1] * 100 + [0] * 100)
    >>> found = corrected_mean([0, 9, 50, 80, 100] * 20, [100] * 100, error)
    >>> round(found.estimate, 3), round(found.low, 3), round(found.high, 3), found.clipped
    (0.531, 0.441, 0.628, False)
    """
    seen, mu, samples = _scored(correct, total)
    if not seen.any():
        raise InputError("no question has a scored sample; there is no accuracy to correct")
    mean = np.array([mu.mean()])
    estimate = float(_rogan_gladen(mean, error.sensitivity.estimate, error.specificity.estimate)[0])
    clipped = float(np.clip(estimate, 0, 1))
    if len(mu) == 1:
        return CorrectedMean(
            estimate=clipped,
            low=np.nan,
            high=np.nan,
            clipped=clipped != estimate,
        )
    size = np.array([_effective_samples(mu, samples.sum())])
    low, high = np.clip(_limits(mean, size, error, level), 0, 1)
    return CorrectedMean(
        estimate=clipped,
        low=float(low[0]),
        high=float(high[0]),
        clipped=clipped != estimate,
    )


def _scored(correct: ArrayLike, total: ArrayLike) -> tuple[np.ndarray, Floats, Floats]:
    """Return which questions have scored samples, and their mu_hat and number of samples."""
    hits, samples = as_counts(correct, total)
    seen = samples > 0
    return seen, hits[seen] / samples[seen], samples[seen].astype(float)


def _effective_samples(mu: Floats, samples: float) -> float:
    """Return how many independent samples would give the mean over questions as precisely."""
    mean = mu.mean()
    variance = mu.var(ddof=1) / len(mu)
    if mean in (0, 1):
        return float(len(mu))
    return float(min(samples, mean * (1 - mean) / variance if variance > 0 else samples))


def _rogan_gladen(mean: Floats, sensitivity: float, specificity: float) -> Floats:
    if sensitivity + specificity <= 1:
        raise InputError(
            f"sensitivity {sensitivity:.3f} and specificity {specificity:.3f} do not sum to more "
            "than 1: so far as "
            "the labels tell, this grader is no better than a coin; use another one, or label "
            "more answers"
        )
    return (mean + specificity - 1) / (sensitivity + specificity - 1)


def _limits(mean: Floats, size: Floats, error: GraderError, level: float) -> tuple[Floats, Floats]:
    """Return Lang and Reiczigel's limits for means of ``size`` samples each; they may lie outside
    [0, 1].
    """
    from scipy.special import ndtri  # slow to import

    z = ndtri((1 + check_share("level", level)) / 2)
    right = error.right + 2
    wrong = error.wrong + 2
    size = size + z**2
    sensitivity = (error.sensitivity.estimate * error.right + 1) / right
    specificity = (error.specificity.estimate * error.wrong + 1) / wrong
    mean = (mean * (size - z**2) + z**2 / 2) / size
    middle = _rogan_gladen(mean, sensitivity, specificity)
    from_right = sensitivity * (1 - sensitivity) / right
    from_wrong = specificity * (1 - specificity) / wrong
    variance = mean * (1 - mean) / size + middle**2 * from_right + (1 - middle) ** 2 * from_wrong
    half_width = z * np.sqrt(variance) / (sensitivity + specificity - 1)
    middle = middle + 2 * z**2 * (middle * from_right - (1 - middle) * from_wrong)
    return middle - half_width, middle + half_width
