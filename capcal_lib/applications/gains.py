"""What a confidence gains over a rule without one, question by question.

Each function returns a Series with the index of ``confidence``; higher is better. Its mean is the
gain, and :func:`~capcal_lib.metrics.mean_interval` gives the interval. Arguments are Series with
the same index, otherwise as in :mod:`capcal_lib.applications`. The rule without a confidence
predicts each question by the mean of the *other* questions, so that none helps to predict itself.
"""

from __future__ import annotations  # keeps the type aliases short in help()

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from capcal_lib.applications.budget import allocate, spending_terms, success_terms
from capcal_lib.applications.passk import pass_at_k, simulate_pass_at_k
from capcal_lib.applications.selective import risk_area_terms

Column = pd.Series  # of one number a question


def others_mean(values: Column) -> Column:
    """Return, for each question, the mean of the others; NaN is left out.

    >>> others_mean(pd.Series([0.0, 0.5, 1.0])).tolist()
    [0.75, 0.5, 0.25]
    """
    return (values.sum() - values) / (values.count() - 1)


def pass_at_k_gains(
    confidence: Column,
    correct: Column,
    total: Column,
    k: int,
    *,
    concentration: ArrayLike | None = None,
) -> Column:
    """Return the gain of predicting pass@k from the confidence: the squared error of the other
    questions' mean minus that of the prediction. NaN if a question has fewer than k samples.

    >>> counts = pd.Series([0, 5, 10]), pd.Series([10, 10, 10])
    >>> pass_at_k_gains(counts[0] / 10, *counts, 1).round(4).tolist()
    [0.5625, 0.0, 0.5625]
    """
    actual = pd.Series(pass_at_k(correct, total, [k])[:, 0], confidence.index)
    predicted = simulate_pass_at_k(confidence, [k], concentration=concentration)[:, 0]
    return (others_mean(actual) - actual) ** 2 - (predicted - actual) ** 2


def pass_at_k_gains_over_answer(
    confidence: Column,
    correct: Column,
    total: Column,
    k: int,
    *,
    concentration: ArrayLike | None = None,
) -> Column:
    """Return the gain of predicting pass@k from the confidence over *Oracle RC*, which knows
    whether one answer is right and takes that as the confidence; in squared error.

    Both are judged by the other ``total - 1`` samples, averaged over which answer is known.
    """
    predicted = simulate_pass_at_k(confidence, [k], concentration=concentration)[:, 0]
    mu = correct / total  # how often the known answer is right
    # Where it is right, one right sample is less among the others, and the oracle says 1.
    others_right = np.maximum(correct - 1, 0)  # of no matter where none is
    actual = pass_at_k(others_right, total - 1, [k])[:, 0]
    if_right = (1 - actual) ** 2 - (predicted - actual) ** 2
    # Where it is wrong, all right ones are among the others, and the oracle says 0.
    others_right = np.minimum(correct, total - 1)  # of no matter where all are
    actual = pass_at_k(others_right, total - 1, [k])[:, 0]
    if_wrong = (0 - actual) ** 2 - (predicted - actual) ** 2
    return mu * if_right + (1 - mu) * if_wrong


def budget_gains(
    confidence: Column,
    correct: Column,
    total: Column,
    per_question: int,
    *,
    concentration: ArrayLike | None = None,
) -> Column:
    """Return how many more questions are solved if the confidence divides a budget of on average
    ``per_question`` samples than if it is spent evenly; no question gets more than ``total``.

    Since the budget is shared, each question's spending counts at its price
    (:func:`spending_terms`).
    """
    budget = per_question * len(total)
    spent, more = (
        allocate(confidence, samples, max_per_question=total, concentration=concentration)
        for samples in (budget, 5 * budget // 4)
    )
    even = success_terms(np.minimum(per_question, total), correct, total)
    gained = success_terms(spent, correct, total) - even
    paid = spending_terms(spent, more, correct, total)
    return pd.Series(gained - paid, confidence.index)


def abstaining_gains(confidence: Column, correct: Column, total: Column) -> Column:
    """Return how much risk is saved by answering the most confident questions first instead of in
    random order: the question's risk minus its term in the area under the risk-coverage curve
    (:func:`risk_area_terms`).

    >>> counts = pd.Series([0, 10]), pd.Series([10, 10])
    >>> float(abstaining_gains(pd.Series([0.1, 0.9]), *counts).mean())
    0.25
    """
    return 1 - correct / total - risk_area_terms(confidence, correct, total)
