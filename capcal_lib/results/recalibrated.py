"""Give every method the same labels: its confidences after Platt scaling, cross-fitted.

A confidence can rank questions well and still be far from mu, because its level is off. The best
constant and the probes have learned the level from labels. For a fair comparison, each other method
is recalibrated with labels of other questions, as the constant is."""

from zlib import crc32

import numpy as np
import pandas as pd

from capcal_lib.metrics import Calibrator
from capcal_lib.metrics.validation import check_int
from capcal_lib.results.estimated import columns_of, confidence_columns, estimates, methods
from capcal_lib.results.results import SPLIT_TERMS, subjects
from capcal_lib.results.terms import NUMBERS


def recalibrate(results: pd.DataFrame, *, folds: int = 5) -> pd.DataFrame:
    """Recalibrate every method's confidences on each data set with the labels of the other folds.

    ``results`` come from ``load_results``. A fold consists of whole subjects, or of questions if
    the data set has no subjects, and is the same each time. Platt's method
    (``metrics.Calibrator``) learns from the counts of the other folds.

    Returns the same table with recalibrated confidences; NaN if a method has none, or if the other
    folds have fewer than two questions. *Response consistency* is the recalibrated vote of a
    question's first samples, beside the counts of the samples that did not vote. `InputError` for
    fewer than two ``folds``.

    >>> index = pd.MultiIndex.from_product([["gsm8k"], map(str, range(40))])
    >>> index.names = ["dataset", "question_id"]
    >>> counts = {"correct": [1, 3] * 20, "total": 4}
    >>> results = pd.DataFrame(counts | {"P(True)": [0.8, 0.9] * 20}, index)
    >>> recalibrate(results)["P(True)"].round(2).unique().tolist()
    [0.25, 0.75]
    """
    check_int("folds", folds, least=2)
    recalibrated = results.drop(columns=SPLIT_TERMS, errors="ignore")
    recalibrated[confidence_columns(results)] = np.nan
    for name in results.index.unique("dataset"):
        subset = results.loc[[name]]
        fold = _folds_of(subjects(subset), folds)
        for method in methods(subset):
            listed = estimates(subset, method)
            for member, column in enumerate(columns_of(subset, method)):
                values = _cross_fitted(listed.loc[listed["member"] == member, NUMBERS], fold)
                recalibrated.loc[values.index, column] = values
    return recalibrated


def _folds_of(groups: "pd.Series[str]", folds: int) -> "pd.Series[int]":
    """Deal whole groups out to folds, in an order that their names alone decide."""
    names = sorted(groups.unique(), key=lambda name: (crc32(str(name).encode()), str(name)))
    return groups.map({name: place % folds for place, name in enumerate(names)})


def _cross_fitted(judged: pd.DataFrame, fold: "pd.Series[int]") -> "pd.Series[float]":
    """Recalibrate each fold of ``judged``, a method's estimates, by what the others show."""
    parts = [pd.Series(dtype=np.float64)]
    of_question = fold[judged.index]
    for number in of_question.unique():
        inside = of_question == number
        others = judged[~inside]
        if len(others) > 1:
            calibrator = Calibrator("platt").fit(*(others[name] for name in others))
            confidence = judged.loc[inside, "confidence"]
            parts.append(pd.Series(calibrator.predict(confidence), confidence.index))
    return pd.concat(parts)
