"""A grader's own error, from answers that a person has labelled, and what it does to expected
accuracy.

Sensitivity is the probability that the grader calls a right answer correct, specificity that it
calls a wrong one not correct. With both, the mean m of its verdicts gives back the accuracy (m +
specificity - 1) / (sensitivity + specificity - 1), the estimator of Rogan and Gladen, "Estimating
prevalence from the results of a screening test", American Journal of Epidemiology 107 (1978). Its
95 % interval is the adjusted one of Lang and Reiczigel, "Confidence limits for prevalence of
disease adjusted for estimated sensitivity and specificity", Preventive Veterinary Medicine 113
(2014): it holds the noise of the samples and that of the labels.

``correct`` and ``total`` count the correct and the scored samples of each question, shape
(n_questions,). Malformed counts and a grader whose sensitivity and specificity do not sum to more
than 1 raise ``InputError``."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError
from capcal_lib.metrics.intervals import Interval, variance_of_mean
from capcal_lib.metrics.validation import Floats, align, as_counts, as_numbers, check_rows

NORMAL_95 = 1.959963984540054  # standard deviations to either end of a normal's middle 95 %


class GraderError(NamedTuple):
    """Sensitivity and specificity of a grader, and the labels behind each."""

    sensitivity: float
    specificity: float
    # labelled answers that are right, and wrong: as many independent labels would tell as much
    right: float
    wrong: float


def grader_error(
    says_correct: ArrayLike,
    is_correct: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    clusters: ArrayLike | None = None,
) -> GraderError:
    """Estimate a grader's sensitivity and specificity from labels of right and of wrong answers.

    ``says_correct`` and ``is_correct``, (n_labels,), are 1 where the grader, and where a person,
    says that the answer is right, else 0. Leave out what the grader did not score and what the
    person could not tell. ``weights`` tell how many samples each label stands for, where answers
    were not drawn with equal chances, such as those that two graders dispute. ``clusters`` are the
    questions: labels of many answers to one say less than their number, since a grader that lacks
    an alias errs on all of them. The effective number of labels is (sum w)^2 / sum w^2 over the
    variance of totals by question relative to that of independent labels; where all say the same
    nothing is known of that ratio, and the labels of a question count as one.

    >>> grader_error([1, 1, 1, 0, 0, 0, 0, 1], [1, 1, 1, 1, 0, 0, 0, 0])
    GraderError(sensitivity=0.75, specificity=0.75, right=4.0, wrong=4.0)
    """
    graded = as_numbers("says_correct", says_correct)
    truth = as_numbers("is_correct", is_correct)
    cluster = np.arange(len(graded)) if clusters is None else np.asarray(clusters)
    weight = np.ones(len(graded)) if weights is None else as_numbers("weights", weights)
    align(says_correct=graded, is_correct=truth, clusters=cluster, weights=weight)
    for name, column in {"says_correct": graded, "is_correct": truth}.items():
        check_rows(name, column, ~np.isin(column, (0, 1)), "but must be 0 or 1")
    is_right = truth == 1
    if not is_right.any():
        raise InputError("no right answer is labelled")
    if is_right.all():
        raise InputError("no wrong answer is labelled")
    errs = graded != truth
    sensitivity, right = _agreement(errs[is_right], weight[is_right], cluster[is_right])
    specificity, wrong = _agreement(errs[~is_right], weight[~is_right], cluster[~is_right])
    return GraderError(sensitivity, specificity, right, wrong)


def _agreement(
    errs: npt.NDArray[np.bool_], weight: Floats, cluster: npt.NDArray[Any]
) -> tuple[float, float]:
    """Return the weighted share of labels with which the grader agrees, and as many labels as say
    as much where weights are equal and no two are of one cluster.
    """
    error = float(weight[errs].sum() / weight.sum())
    residual = weight * (error - errs) if 0 < error < 1 else weight
    _, places = np.unique(cluster, return_inverse=True)
    totals = np.bincount(places, residual)
    inflation = max(1.0, (totals @ totals) / (residual @ residual))
    return 1 - error, float(weight.sum() ** 2 / (weight @ weight) / inflation)


def corrected_mu(correct: ArrayLike, total: ArrayLike, error: GraderError) -> Floats:
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
    hits, samples = as_counts(correct, total)
    size = np.where(samples > 0, samples, np.nan)
    return _corrected(hits / size, size, error)


def corrected_mean(
    correct: ArrayLike,
    total: ArrayLike,
    error: GraderError,
    *,
    clusters: ArrayLike | None = None,
) -> Interval:
    """Correct the mean expected accuracy over questions, with an interval for questions, samples
    and labels; what lies outside [0, 1] is put at its end, and one question, or one cluster, has
    NaN limits.

    A question without a scored sample is left out; where none has one, an ``InputError`` is raised.
    Questions differ, so their mean is less certain than that of as many independent samples: the
    interval is that of n = m (1 - m) / v samples, where m is the mean of mu_hat over questions and
    v its variance (``metrics.intervals.variance_of_mean``), by which whole ``clusters`` vary.

    >>> error = grader_error([1] * 90 + [0] * 10 + [0] * 100, [1] * 100 + [0] * 100)
    >>> mean = corrected_mean([0, 9, 50, 80, 100] * 20, [100] * 100, error)
    >>> round(mean.estimate, 3), round(mean.low, 3), round(mean.high, 3)
    (0.531, 0.441, 0.628)
    """
    hits, samples = as_counts(correct, total)
    scored = samples > 0
    if not scored.any():
        raise InputError("no question has a scored sample; there is no accuracy to correct")
    mu = hits[scored] / samples[scored]
    units = np.arange(len(samples)) if clusters is None else np.asarray(clusters)
    align(total=samples, clusters=units)
    mean = mu.mean()
    size = np.nan
    number = len(np.unique(units[scored]))
    if number > 1:
        tiny = 1e-200  # in the place of a variance of 0, where all questions are alike
        over_samples = max(mean * (1 - mean), tiny)
        of_mean = max(variance_of_mean(mu, units[scored]), tiny / number)
        size = min(samples.sum(), over_samples / of_mean)
    return Interval(*_corrected(mean, size, error).tolist())


def _corrected(mean: ArrayLike, size: ArrayLike, error: GraderError) -> Floats:
    """Return Rogan and Gladen's estimate of means of ``size`` samples with Lang and Reiczigel's
    limits, (..., 3), put at 0 or 1 where they lay outside.
    """
    mean, size = np.asarray(mean, float), np.asarray(size, float) + NORMAL_95**2
    rates, labels = np.array(error).reshape(2, 2)  # of right and of wrong answers
    smooth = (rates * labels + 1) / (labels + 2)
    from_right, from_wrong = smooth * (1 - smooth) / (labels + 2)
    skill, raw_skill = smooth.sum() - 1, rates.sum() - 1
    if min(skill, raw_skill) <= 0:
        raise InputError(
            f"sensitivity {error.sensitivity:.3f} and specificity {error.specificity:.3f} do not "
            "sum to more than 1, so far as the labels tell: this grader is no better than a coin; "
            "use another one, or label more answers"
        )
    adjusted = (mean * (size - NORMAL_95**2) + NORMAL_95**2 / 2) / size
    middle = (adjusted + smooth[1] - 1) / skill
    variance = adjusted * (1 - adjusted) / size
    variance = variance + middle**2 * from_right + (1 - middle) ** 2 * from_wrong
    half_width = NORMAL_95 * np.sqrt(variance) / skill
    shifted = middle + 2 * NORMAL_95**2 * (middle * from_right - (1 - middle) * from_wrong)
    estimate = (mean + error.specificity - 1) / raw_skill
    corrected = [estimate, shifted - half_width, shifted + half_width]
    return np.stack(corrected, axis=-1).clip(0, 1)
