"""Divide a budget of samples over questions so that as many as possible are solved."""

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.applications.passk import pass_at_k
from capcal_lib.errors import InputError
from capcal_lib.metrics.validation import (
    Floats,
    Ints,
    as_confidence,
    as_counts,
    as_whole,
    check_int,
    check_rows,
    same_length,
)


def allocate(confidence: ArrayLike, budget: int, *, max_per_question: ArrayLike | None = None) -> Ints:
    """Divide a budget so that the expected number of solved questions is largest.

    That number is sum 1 - (1 - p_i)^k_i, and the next sample of a question gains p_i (1 - p_i)^k_i, less
    each time; the best division takes the largest gains. The greedy way takes them one at a time; here
    the price that all of them beat is found by bisection, in logarithms, so that tiny p and huge
    budgets are no trouble.

    Equal gains are taken in turns, first rows first. A question with p = 0 gains nothing, nor does one
    with p = 1 after its first sample. What is left of the budget once all others are at their maximum
    is dealt in turns to these, so that the budget is always spent.

    Parameters
    ----------
    confidence : array-like of shape (n_questions,)
        Estimates p of the expected accuracy, in [0, 1].
    budget : int
        Samples to spend over all questions, at least 0.
    max_per_question : int or array-like of shape (n_questions,), optional
        Most samples for each question, at least 0; one number for all or one each.

    Returns
    -------
    int ndarray of shape (n_questions,)
        Samples per question; they sum to the budget, or to all maxima where that is less.

    Raises
    ------
    InputError
        For a confidence outside [0, 1] or NaN, or a budget or maximum that is not a whole number of at
        least 0.

    References
    ----------
    The paper, section 5.2 and the appendix on budget allocation; Damani et al., "Learning how hard to
    think" (2024).

    Examples
    --------
    >>> allocate([0.9, 0.5, 0.1], 6)
    array([1, 3, 2])
    >>> allocate([0.9, 0.5, 0.1], 6, max_per_question=2)
    array([2, 2, 2])
    """
    p = as_confidence(confidence)
    spend = float(check_int("budget", budget, least=0))
    most = np.full_like(p, spend) if max_per_question is None else np.minimum(_maxima(max_per_question, p.size), spend)
    between = (p > 0) & (p < 1)
    first = np.log(p, where=between, out=np.zeros_like(p))
    step = np.log1p(-p, where=between, out=np.full_like(p, -1.0))
    worth = np.where(between, most, np.minimum(most, p))  # p itself is the one useful sample at p = 1, none at p = 0
    taken = _take_largest(first, step, worth, spend)
    taken = taken + _take_in_turns(most - taken, spend - taken.sum())
    return taken.astype(np.int64)


def _maxima(max_per_question: ArrayLike, n_questions: int) -> Floats:
    if np.ndim(max_per_question) == 0:
        return np.full(n_questions, float(check_int("max_per_question", max_per_question, least=0)))
    maxima = as_whole("max_per_question", max_per_question, least=0)
    if maxima.size != n_questions:
        raise InputError(f"max_per_question has {maxima.size} rows for {n_questions} questions; give one, or one each")
    return maxima.astype(np.float64)


def _take_largest(first: Floats, step: Floats, most: Floats, amount: float) -> Floats:
    """Take the ``amount`` largest of the values first + j step, j = 0, 1, ... below ``most``, and count them by row.

    ``first`` is at most 0, ``step`` below 0. Floats hold the whole numbers, up to 2^53 exactly.
    """
    if most.sum() <= amount:
        return most

    def above(price: float) -> Floats:
        """Count each row's values above the price."""
        with np.errstate(over="ignore"):
            return np.clip(np.ceil((price - first) / step), 0, most)

    low, high = 2 * float((first + most * step).min()) - 1, 0.0  # all values lie above low, none above high
    few, many = above(high), above(low)
    for _ in range(128):
        price = (low + high) / 2
        if not low < price < high:
            break
        count = above(price)
        total = count.sum()
        if total == amount:
            return count
        if total < amount:
            high, few = price, count
        else:
            low, many = price, count
    return few + _take_in_turns(many - few, amount - few.sum())  # what is left to choose from is equal


def _take_in_turns(most: Floats, amount: float) -> Floats:
    """Deal ``amount`` one by one to the rows in turn, to none more than its ``most``."""
    if most.sum() <= amount:
        return most
    low, high = 0, int(most.max())  # there is enough for `low` rounds, and not for `high`
    while high - low > 1:
        rounds = (low + high) // 2
        if np.minimum(most, rounds).sum() <= amount:
            low = rounds
        else:
            high = rounds
    dealt = np.minimum(most, low)
    dealt[np.flatnonzero(most > low)[: int(amount - dealt.sum())]] += 1
    return dealt


def success_rate(allocation: ArrayLike, correct: ArrayLike, total: ArrayLike) -> float:
    """Return the expected share of questions solved when samples are drawn as allocated. Higher is better.

    A question counts as solved if any of its drawn samples is correct. The expectation over draws without
    replacement from the scored samples is exact: pass@k at each question's own k, and 0 for k = 0. (The
    authors' code draws ten times, with the same positions for every question, instead.)

    Parameters
    ----------
    allocation : array-like of shape (n_questions,)
        Samples per question, such as :func:`allocate` returns.
    correct, total : array-like of shape (n_questions,)
        Correct and scored samples of each question.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        For an allocation above its question's total, malformed counts, or lengths that differ.

    References
    ----------
    The paper, section 5.2.

    Examples
    --------
    >>> round(success_rate([1, 2, 0], [2, 2, 4], [4, 4, 4]), 4)
    0.4444
    """
    return float(success_terms(allocation, correct, total).mean())


def success_terms(allocation: ArrayLike, correct: ArrayLike, total: ArrayLike) -> Floats:
    """Return the terms, shape (n_questions,), whose mean is :func:`success_rate`.

    >>> success_terms([1, 2, 0], [2, 2, 4], [4, 4, 4]).round(4)
    array([0.5   , 0.8333, 0.    ])
    """
    spent = as_whole("allocation", allocation, least=0)
    hits, samples = as_counts(correct, total)
    same_length(allocation=spent, correct=hits)
    check_rows(
        "allocation",
        spent.astype(np.float64),
        spent > samples,
        "more than its total of scored samples; pass max_per_question=total to allocate (the first row is 0)",
    )
    ks, column = np.unique(spent, return_inverse=True)
    solved = pass_at_k(hits, samples, np.maximum(ks, 1))[np.arange(spent.size), column]
    return np.where(spent > 0, solved, 0.0)
