"""A grader's own error, from answers that a person has labelled, and what it does to expected accuracy.

Sensitivity is the probability that the grader calls a right answer correct, specificity that it calls a wrong one
not correct. With both, the mean m of its verdicts gives back the accuracy (m + specificity - 1) / (sensitivity +
specificity - 1), the estimator of Rogan and Gladen, "Estimating prevalence from the results of a screening test",
American Journal of Epidemiology 107 (1978). Its interval is the adjusted one of Lang and Reiczigel, "Confidence
limits for prevalence of disease adjusted for estimated sensitivity and specificity", Preventive Veterinary Medicine 113
(2014): it holds the noise of the samples and that of the labels.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError, unknown
from capcal_lib.metrics.intervals import Interval, _check_level, _z
from capcal_lib.metrics.validation import Floats, as_counts, as_numbers, check_rows, same_length

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class GraderError:
    """Sensitivity and specificity of a grader, with their Jeffreys intervals, and the labels behind each.

    ``right`` and ``wrong`` are effective numbers of labelled answers that are so: of labels with weights w, as many as
    (sum w)^2 / sum w^2 labels of one weight.
    """

    sensitivity: Interval
    specificity: Interval
    right: float
    wrong: float


class CorrectedMean(NamedTuple):
    """A mean expected accuracy, corrected for the grader's error."""

    estimate: float
    low: float
    high: float
    clipped: bool  # whether the estimate lay outside [0, 1] and was put at its end


def grader_error(
    says_correct: ArrayLike, is_correct: ArrayLike, weights: ArrayLike | None = None, *, level: float = 0.95
) -> GraderError:
    """Estimate a grader's sensitivity and specificity from labelled answers.

    Parameters
    ----------
    says_correct : array-like of shape (n_labels,)
        1 where the grader said ``correct``, else 0; leave out what it did not score.
    is_correct : array-like of shape (n_labels,)
        1 where a person says that the answer is right, 0 where wrong; NaN where they could not tell, which is left out.
    weights : array-like of shape (n_labels,), optional
        How many samples each label stands for; alike by default. Where two graders disagree a person labels every
        answer, and where they agree a few: without weights, the few would seem to be all there are.
    level : float, default=0.95
        Nominal coverage of the intervals, between 0 and 1.

    Raises
    ------
    InputError
        For other values than these, or where no right answer or no wrong one is labelled.

    Notes
    -----
    The labels count as independent. Labels of many answers to one question say less than their number.

    Examples
    --------
    >>> error = grader_error([1, 1, 1, 0, 0, 0, 0, 1], [1, 1, 1, 1, 0, 0, 0, 0])
    >>> error.sensitivity.estimate, error.specificity.estimate, error.right
    (0.75, 0.75, 4.0)
    """
    said, truth = as_numbers("says_correct", says_correct), as_numbers("is_correct", is_correct)
    weight = np.ones(len(said)) if weights is None else as_numbers("weight", weights)
    same_length(says_correct=said, is_correct=truth, weights=weight)
    check_rows("says_correct", said, ~np.isin(said, (0, 1)), "but must be 0 or 1 (the first row is 0)")
    told = ~np.isnan(truth)
    check_rows("is_correct", truth, told & ~np.isin(truth, (0, 1)), "but must be 0, 1 or NaN (the first row is 0)")
    check_rows(
        "weight", weight, ~((weight >= 0) & (weight < np.inf)), "but must be a number from 0 (the first row is 0)"
    )
    found = {}
    for name, value in (("right", 1), ("wrong", 0)):
        rows = told & (truth == value) & (weight > 0)
        if not rows.any():
            raise InputError(f"no {name} answer is labelled, so the grader's error on them is unknown; label some more")
        share = float(weight[rows] @ (said[rows] == value) / weight[rows].sum())
        size = float(weight[rows].sum() ** 2 / (weight[rows] ** 2).sum())
        found[name] = _jeffreys(share, size, level), size
    return GraderError(found["right"][0], found["wrong"][0], found["right"][1], found["wrong"][1])


def error_from_labels(labels: "pd.DataFrame", *, grader: str = "first", level: float = 0.95) -> GraderError:
    """Estimate a grader's error from a table of answers that a person has labelled.

    Parameters
    ----------
    labels : DataFrame
        One row an answer: a column with the grader's verdict; ``correct``, 1 or 0, or NaN where the person could not
        tell; and ``weight``, how many samples the row stands for.
    grader : str, default="first"
        The column of verdicts. Rows that the grader did not score are left out: they are in no accuracy either.
    level : float, default=0.95
        Nominal coverage of the intervals, between 0 and 1.

    Raises
    ------
    InputError
        For a missing column, and as for :func:`grader_error`.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [("correct", 1, 20), ("incorrect", 1, 5), ("no_answer", 0, 9), ("not_scored", 1, 2)]
    >>> error_from_labels(pd.DataFrame(rows, columns=["first", "correct", "weight"])).sensitivity.estimate
    0.8
    """
    for column in (grader, "correct", "weight"):
        if column not in labels:
            raise unknown("column of the labels", column, map(str, labels))
    scored = labels[labels[grader] != "not_scored"]
    return grader_error(scored[grader] == "correct", scored["correct"], scored["weight"], level=level)


def corrected_mu(correct: ArrayLike, total: ArrayLike, error: GraderError, *, level: float = 0.95) -> Floats:
    """Correct each question's mu_hat, with an interval that holds the noise of its samples and of the labels.

    It takes the grader to err alike on all questions, which is its weakness: an alias that the grader does not know
    makes it wrong on every sample of one question and on none of another.

    Parameters
    ----------
    correct, total : array-like of shape (n_questions,)
        Correct and scored samples of each question.
    error : GraderError
        Of the grader that counted them.
    level : float, default=0.95
        Nominal coverage, between 0 and 1.

    Returns
    -------
    ndarray of shape (n_questions, 3)
        Estimate, low and high, all put at 0 or 1 where they lay outside; NaN where no sample is scored.

    Raises
    ------
    InputError
        For malformed counts, or a grader whose sensitivity and specificity do not sum to more than 1.

    Examples
    --------
    >>> error = grader_error([1] * 95 + [0] * 5 + [0] * 100, [1] * 100 + [0] * 100)
    >>> corrected_mu([19, 100], [100, 100], error).round(3).tolist()
    [[0.2, 0.121, 0.291], [1.0, 0.989, 1.0]]
    """
    hits, samples = as_counts(correct, total)
    result = np.full((len(hits), 3), np.nan)
    seen = samples > 0
    mu = hits[seen] / samples[seen]
    result[seen] = np.column_stack([_rogan_gladen(mu, error), *_limits(mu, samples[seen].astype(float), error, level)])
    return np.asarray(np.clip(result, 0, 1))


def corrected_mean(correct: ArrayLike, total: ArrayLike, error: GraderError, *, level: float = 0.95) -> CorrectedMean:
    """Correct the mean expected accuracy over questions, with an interval for questions, samples and labels.

    Parameters
    ----------
    correct, total : array-like of shape (n_questions,)
        Correct and scored samples of each question; one without a scored sample is left out.
    error : GraderError
        Of the grader that counted them.
    level : float, default=0.95
        Nominal coverage, between 0 and 1.

    Returns
    -------
    CorrectedMean
        The limits are NaN for a single question, which says nothing about how questions differ.

    Raises
    ------
    InputError
        As for :func:`corrected_mu`, and where nothing is scored.

    Notes
    -----
    Questions differ, so their mean is less certain than that of as many independent samples. The interval is that of
    n = m (1 - m) / (s^2 / N) samples, where m and s are mean and standard deviation of mu_hat over N questions.

    Examples
    --------
    >>> error = grader_error([1] * 90 + [0] * 10 + [0] * 100, [1] * 100 + [0] * 100)
    >>> found = corrected_mean([0, 9, 50, 80, 100] * 20, [100] * 100, error)
    >>> round(found.estimate, 3), round(found.low, 3), round(found.high, 3), found.clipped
    (0.531, 0.441, 0.628, False)
    """
    hits, samples = as_counts(correct, total)
    seen = samples > 0
    if not seen.any():
        raise InputError("no question has a scored sample; there is no accuracy to correct")
    mu = hits[seen] / samples[seen]
    mean = np.array([mu.mean()])
    estimate = float(_rogan_gladen(mean, error)[0])
    clipped = float(np.clip(estimate, 0, 1))
    if len(mu) == 1:
        return CorrectedMean(clipped, np.nan, np.nan, clipped != estimate)
    low, high = np.clip(_limits(mean, np.array([_effective_samples(mu, samples[seen].sum())]), error, level), 0, 1)
    return CorrectedMean(clipped, float(low[0]), float(high[0]), clipped != estimate)


def _effective_samples(mu: Floats, samples: float) -> float:
    """Return how many independent samples would give the mean over questions as precisely."""
    mean, variance = mu.mean(), mu.var(ddof=1) / len(mu)
    if mean in (0, 1):
        return float(len(mu))
    return float(min(samples, mean * (1 - mean) / variance if variance > 0 else samples))


def _rogan_gladen(mean: Floats, error: GraderError) -> Floats:
    sensitivity, specificity = error.sensitivity.estimate, error.specificity.estimate
    _check(sensitivity, specificity)
    return (mean + specificity - 1) / (sensitivity + specificity - 1)


def _limits(mean: Floats, size: Floats, error: GraderError, level: float) -> tuple[Floats, Floats]:
    """Return Lang and Reiczigel's limits for means of ``size`` samples each; they may lie outside [0, 1]."""
    z = _z(level)
    right, wrong, size = error.right + 2, error.wrong + 2, size + z**2
    sensitivity = (error.sensitivity.estimate * error.right + 1) / right
    specificity = (error.specificity.estimate * error.wrong + 1) / wrong
    _check(sensitivity, specificity)
    mean = (mean * (size - z**2) + z**2 / 2) / size
    middle = (mean + specificity - 1) / (sensitivity + specificity - 1)
    from_right = sensitivity * (1 - sensitivity) / right
    from_wrong = specificity * (1 - specificity) / wrong
    variance = mean * (1 - mean) / size + middle**2 * from_right + (1 - middle) ** 2 * from_wrong
    half_width = z * np.sqrt(variance) / (sensitivity + specificity - 1)
    middle = middle + 2 * z**2 * (middle * from_right - (1 - middle) * from_wrong)
    return middle - half_width, middle + half_width


def _check(sensitivity: float, specificity: float) -> None:
    if sensitivity + specificity <= 1:
        raise InputError(
            f"sensitivity {sensitivity:.3f} and specificity {specificity:.3f} do not sum to more than 1: so far as "
            "the labels tell, this grader is no better than a coin; use another one, or label more answers"
        )


def _jeffreys(share: float, size: float, level: float) -> Interval:
    """Return a share with its Jeffreys interval from ``size`` labels, which need not be a whole number."""
    from scipy.special import betaincinv  # slow to import

    _check_level(level)
    hits, misses = size * share, size * (1 - share)
    low = 0.0 if share == 0 else float(betaincinv(hits + 0.5, misses + 0.5, (1 - level) / 2))
    high = 1.0 if share == 1 else float(betaincinv(hits + 0.5, misses + 0.5, (1 + level) / 2))
    return Interval(share, low, high)
