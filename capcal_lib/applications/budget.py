"""Divide a budget of samples over questions so that as many as possible are solved.

A question is solved if at least one of its samples is correct and can be recognised as correct.
Arguments and errors are described in :mod:`capcal_lib.applications`."""

from __future__ import annotations  # keeps ArrayLike short in help()

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.special import betaln

from capcal_lib.applications.passk import PLUG_IN_NU, as_concentration, pass_at_k
from capcal_lib.applications.posterior import fit_concentration
from capcal_lib.metrics import validation as check
from capcal_lib.metrics.validation import Floats, Ints


def allocate(
    confidence: ArrayLike,
    budget: int,
    *,
    max_per_question: ArrayLike | None = None,
    concentration: float | ArrayLike | None = None,
    cost: ArrayLike | None = None,
) -> Ints:
    """Divide a budget so that the expected number of solved questions is largest. Returns samples
    per question, shape (n_questions,); a Series for a Series.

    After k failures, one more sample solves a question with the chance s (1 - s)^k, or under a
    posterior Beta(a, b) with B(a + 1, b + k)/B(a, b). This gain shrinks with each sample, so the
    best division takes all gains above a price, which bisection finds, and spends the rest on the
    largest of the next gains.

    ``budget`` is the number of samples over all questions; ``max_per_question`` is one number for
    all questions, or one each. Without ``cost`` the whole budget is spent, or as much as the maxima
    allow. Equal gains are taken in turns, first rows first, and samples that could gain nothing are
    dealt out in turns. ``cost``, above 0, is the price of one sample of each question. The budget
    is then in the same unit and never exceeded, and the division is greedy in gain per cost: no
    division of a budget that is smaller by the largest cost is better. Samples that gain nothing
    are then not drawn.

    References: the paper, section 5.2; Damani et al., "Learning how hard to think" (2024).
    Posterior and cost are ours.

    >>> allocate([0.9, 0.5, 0.1], 6)
    array([1, 3, 2])
    >>> allocate([0.9, 0.5, 0.1], 600, cost=[100, 100, 300])
    array([2, 4, 0])
    """
    confidence, max_per_question, concentration, cost = check.align(
        confidence=confidence,
        max_per_question=max_per_question,
        concentration=concentration,
        cost=cost,
    )
    p = check.as_confidence(confidence)
    spend = float(check.check_int("budget", budget, least=0))
    price = np.broadcast_to(check.as_numbers("cost", 1.0 if cost is None else cost), p.size)
    allowed = (price > 0) & (price < np.inf)
    check.check_rows("cost", price, ~allowed, "but must be above 0 and finite")
    most = np.floor(spend / price)
    if max_per_question is not None:
        most = np.minimum(most, check.as_whole("max_per_question", max_per_question, least=0))
    nu = as_concentration(concentration, p.size)
    worth = np.where((p > 0) & (p < 1), most, np.minimum(most, p))  # one sample at 1, none at 0
    taken, many, next_gains = _about_the_price(p, nu, worth, price, spend)
    order = np.argsort(-next_gains, kind="stable")
    if cost is None:
        taken[order] += _in_turns((many - taken)[order], spend - taken.sum())
        taken += _in_turns(most - taken, spend - taken.sum())
    else:
        left = spend - price @ taken
        for row in order:
            if taken[row] < worth[row] and price[row] <= left:
                taken[row] += 1
                left -= price[row]
    return check.like(confidence, taken.astype(np.int64))


def _about_the_price(
    p: Floats, nu: Floats, most: Floats, cost: Floats, amount: float
) -> tuple[Floats, Floats, Floats]:
    """Count each row's gains above two prices: ``amount`` pays for the gains above the first price
    but not for those above the second, and between the prices no row has two different gains.
    Return also each row's next gain after the first count. Gains are logarithms, per cost.
    """
    gains = _gains(p, nu, cost)
    if cost @ most <= amount:
        return most, most, gains.after(most)
    few = np.zeros(len(most))
    high = gains.first.max()
    drop = 1.0
    while cost @ (many := gains.count_above(high - drop, few, most)) <= amount:
        few = many
        high -= drop
        drop *= 2
    low = high - drop
    while (many - few).max() > 1 and low < (price := (low + high) / 2) < high:
        between = gains.count_above(price, few, many)
        if cost @ between <= amount:
            few, high = between, price
        else:
            many, low = between, price
    return few, many, gains.after(few)


class _Gains(NamedTuple):
    """The logarithm of what one more sample of each row gains per cost: less after each failure."""

    first: Floats  # of the first sample, the confidence itself, and
    step: Floats  # what a failure adds to it, below 0
    posterior: npt.NDArray[np.bool_]  # which rows have one, and its shapes
    a: Floats
    b: Floats
    base: Floats  # the logarithm of B(a, b), and of the cost

    def after(self, k: Floats) -> Floats:
        """Return each row's gain after k failures."""
        plug_in = self.first + k * self.step
        if not self.posterior.any():
            return plug_in
        return np.where(self.posterior, betaln(self.a + 1, self.b + k) - self.base, plug_in)

    def count_above(self, price: float, low: Floats, high: Floats) -> Floats:
        """Count each row's gains above a price, of which there are from low to high."""
        if not self.posterior.any():
            with np.errstate(over="ignore"):
                return np.clip(np.ceil((price - self.first) / self.step), low, high)
        while (low < high).any():
            middle = np.floor((low + high) / 2)
            more = (self.after(middle) > price) & (low < high)
            low, high = np.where(more, middle + 1, low), np.where(more, high, middle)
        return low


def _gains(p: Floats, nu: Floats, cost: Floats) -> _Gains:
    p = np.clip(p, 1e-300, 1 - 2**-53)  # what is worth no second sample has gains all the same
    a = np.maximum(p * nu, 1e-300)  # an a of 0 has no posterior
    b = np.maximum((1 - p) * nu, 1e-300)
    return _Gains(
        first=np.log(p) - np.log(cost),
        step=np.log1p(-p),
        posterior=nu < PLUG_IN_NU,
        a=a,
        b=b,
        base=betaln(a, b) + np.log(cost),
    )


def _in_turns(most: Floats, amount: float) -> Floats:
    """Deal ``amount`` one by one to the rows in turn, to none more than its ``most``."""
    dealt = np.zeros(len(most))
    while amount > 0 and (dealt < most).any():
        waiting = np.flatnonzero(dealt < most)
        rounds = amount // len(waiting)
        if not rounds:  # the last round, first rows first
            waiting = waiting[: int(amount)]
        more = np.minimum((most - dealt)[waiting], max(rounds, 1))
        dealt[waiting] += more
        amount -= more.sum()
    return dealt


def success_rate(allocation: ArrayLike, correct: ArrayLike, total: ArrayLike) -> float:
    """Return the expected share of questions solved if samples are drawn as allocated, in [0, 1].
    Higher is better.

    ``allocation`` holds samples per question, such as :func:`allocate` returns, at most the
    question's total. The expectation over draws without replacement from the scored samples is
    exact: it is pass@k at each question's own k. (The authors' code draws ten times instead, with
    the same positions for every question. The paper, section 5.2.)

    >>> round(success_rate([1, 2, 0], [2, 2, 4], [4, 4, 4]), 4)
    0.4444
    """
    return float(success_terms(allocation, correct, total).mean())


def success_terms(allocation: ArrayLike, correct: ArrayLike, total: ArrayLike) -> Floats:
    """Return the terms, shape (n_questions,), whose mean is :func:`success_rate`."""
    drawn, c, n = check.align(allocation=allocation, correct=correct, total=total)
    spent = check.as_whole("allocation", drawn, least=0)
    spent, hits, samples = np.broadcast_arrays(spent, *check.as_counts(c, n))
    rule = "more than its total of scored samples; pass max_per_question=total to allocate"
    check.check_rows("allocation", spent, spent > samples, rule)
    ks, column = np.unique(spent, return_inverse=True)
    solved = pass_at_k(hits, samples, np.maximum(ks, 1))[np.arange(spent.size), column]
    return np.where(spent > 0, solved, 0.0)


def spending_terms(
    allocation: ArrayLike, more: ArrayLike, correct: ArrayLike, total: ArrayLike
) -> Floats:
    """Return the value of each question's spending beyond the mean, shape (n_questions,). Subtract
    it from :func:`success_terms` before you take an interval.

    Questions share a budget: one that takes more leaves less for the others. With other questions,
    the price of a sample would move until the budget fits, so each term must count its spending at
    that price (its influence). ``more`` is the same rule's allocation of a slightly larger budget;
    from it follows the price, which is what one more sample solves. The terms are price times
    (allocation - mean allocation), and their mean is 0. Without them the interval of a gain over
    even spending is up to twice too wide.

    >>> spending_terms([1, 3, 2], [1, 4, 2], [9, 2, 5], [10, 10, 10]).round(3)
    array([-0.133,  0.133,  0.   ])
    """
    before = success_terms(allocation, correct, total)
    after = success_terms(more, correct, total)
    drawn = check.as_whole("allocation", allocation, least=0)
    added = np.sum(more) - drawn.sum()
    price = (after.sum() - before.sum()) / added if added else 0.0
    return np.asarray(price * (drawn - drawn.mean()))


def split_counts(
    correct: ArrayLike, total: ArrayLike, *, rng: np.random.Generator
) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """Divide each question's samples at random into two halves and count each: (correct, total),
    (correct, total).

    >>> split_counts([10, 0], [10, 5], rng=np.random.default_rng(0))
    ((array([5, 0]), array([5, 2])), (array([5, 0]), array([5, 3])))
    """
    hits, samples = check.as_counts(correct, total)
    half = samples // 2
    first = rng.hypergeometric(hits, samples - hits, half)
    return (first, half), (hits - first, samples - half)


def honest_oracle(
    correct: ArrayLike, total: ArrayLike, *, rng: np.random.Generator
) -> tuple[Floats, Floats, Ints, Ints]:
    """Return the confidence of an oracle that knows a random half of each question's samples, the
    concentration of its posterior, and the correct and scored samples of the other half.

    An oracle that knows the very samples that score it looks better than any confidence can be.
    The known counts update a Beta prior fitted to the data set, whose mean weighs all questions
    equally.

    >>> honest_oracle([10, 0], [10, 10], rng=np.random.default_rng(0))[0].round(2)
    array([1., 0.])
    """
    (known, seen), (left, drawn) = split_counts(correct, total, rng=rng)
    some = seen > 0
    mean = np.full(len(known), (known[some] / seen[some]).mean())
    prior = fit_concentration(mean, known, seen)
    concentration = prior + seen.astype(np.float64)
    if np.isfinite(prior):  # else the questions do not differ
        mean = (mean * prior + known) / concentration
    return mean, concentration, left, drawn
