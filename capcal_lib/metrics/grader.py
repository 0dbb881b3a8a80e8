"""A grader's own error, from answers that a person has labelled.

Sensitivity is the probability that the grader calls a right answer correct; specificity is the
probability that it does not call a wrong answer correct."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError
from capcal_lib.metrics.validation import Floats, align, as_numbers, check_rows


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
    """Estimate a grader's sensitivity and specificity from labels of right and wrong answers.

    ``says_correct`` and ``is_correct``, shape (n_labels,), are 1 if the grader, or the person, says
    that the answer is right, else 0. Leave out answers that the grader did not score or the person
    could not decide. ``weights`` are the numbers of samples that the labels stand for, if answers
    were not drawn with equal chances, such as answers that two graders dispute. ``clusters`` are
    the questions: many labels of one question say less than their number, since a grader that
    lacks an alias errs on all of them. The effective number of labels is (sum w)^2 / sum w^2,
    divided by the variance of totals by question relative to independent labels. If all labels
    agree, that ratio is unknown, and the labels of a question count as one.

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
        raise InputError("none of the labelled answers is right; label at least one")
    if is_right.all():
        raise InputError("none of the labelled answers is wrong; label at least one")
    errs = graded != truth
    sensitivity, right = _agreement(errs[is_right], weight[is_right], cluster[is_right])
    specificity, wrong = _agreement(errs[~is_right], weight[~is_right], cluster[~is_right])
    return GraderError(sensitivity, specificity, right, wrong)


def _agreement(
    errs: npt.NDArray[np.bool_], weight: Floats, cluster: npt.NDArray[Any]
) -> tuple[float, float]:
    """Return the weighted share of labels that the grader agrees with, and the effective number of
    labels: how many independent labels of equal weight would say as much.
    """
    error = float(weight[errs].sum() / weight.sum())
    residual = weight * (error - errs) if 0 < error < 1 else weight
    _, places = np.unique(cluster, return_inverse=True)
    totals = np.bincount(places, residual)
    inflation = max(1.0, (totals @ totals) / (residual @ residual))
    return 1 - error, float(weight.sum() ** 2 / (weight @ weight) / inflation)
