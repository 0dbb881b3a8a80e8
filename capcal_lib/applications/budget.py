"""Divide a budget of samples over questions so that as many as possible are solved.

A question is solved if any of its samples is correct and can be told to be. Arguments and errors as
at the head of :mod:`capcal_lib.applications`."""

from __future__ import annotations  # keeps ArrayLike short in help()

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from capcal_lib.applications.passk import as_concentration, log_rising_ratio, pass_at_k
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
    """Divide a budget so that the expected number of solved questions is largest: samples, shape
    (n_questions,).

    One more sample after k failures solves a question with the chance s (1 - s)^k, under a
    posterior Beta(a, b) B(a + 1, b + k)/B(a, b): less each time. So the best division takes the
    largest gains: all that beat some price.

    ``budget`` is in samples over all questions, ``max_per_question`` one number for all or one
    each. Without ``cost`` the budget is always spent, or all maxima where they are less; equal
    gains are taken in turns, first rows first, and what nobody could gain by is dealt in turns to
    the others. With ``cost``, above 0, what one sample of each question costs, the budget is in the
    same unit and never exceeded, and the gain per cost counts: the samples near the price are
    chosen by integer programming (HiGHS), and those that gain nothing are not drawn.

    Of a Series, a Series by its index.

    References: the paper, section 5.2; Damani et al., "Learning how hard to think" (2024).
    Posterior and cost are ours.

    >>> allocate([0.9, 0.5, 0.1], 6)
    array([1, 3, 2])
    >>> allocate([0.9, 0.5, 0.1], 600, cost=[100, 100, 300])
    array([2, 4, 0])
    """
    confidence, max_per_question, concentration, cost = check.align_index(
        confidence=confidence,
        max_per_question=max_per_question,
        concentration=concentration,
        cost=cost,
    )
    p = check.as_confidence(confidence)
    spend = float(check.check_int("budget", budget, least=0))
    price = _as_cost(cost, p.size)
    most = np.floor(spend / price)
    if max_per_question is not None:
        most = np.minimum(most, _as_maxima(max_per_question, p.size))
    gains = _Gains(p, as_concentration(concentration, p.size), price)
    of_use = p  # one sample at p = 1, none at p = 0
    worth = np.where(gains.uncertain, most, np.minimum(most, of_use))
    taken = _take_largest(gains, worth, spend)
    if cost is not None:
        found = _fill_up(gains, taken, worth, spend)
    else:
        found = taken + _take_in_turns(most - taken, spend - taken.sum())
    return check.like(confidence, found.astype(np.int64))


class _Gains:
    """The gain per cost of each question's sample after k failures, in logarithms, and where it
    falls to a price. At confidences of 0 and 1, those of a sample that surely solves.
    """

    def __init__(self, p: Floats, nu: Floats, cost: Floats) -> None:
        self.cost = cost
        self.uncertain = (p > 0) & (p < 1)
        # Beyond, no digit of the gain differs from plug-in.
        self.posterior = self.uncertain & (nu < 1e12)
        self.first = np.log(np.where(self.uncertain, p, 1.0)) - np.log(cost)
        missed = np.log1p(-np.where(self.uncertain, p, 0.0))
        self.step = np.where(self.uncertain, missed, -1.0)
        self.nu = np.where(self.posterior, nu, 2.0)
        self.a = np.where(self.posterior, p, 0.5) * self.nu
        self.b = self.nu - self.a

    def after(self, k: Floats) -> Floats:
        if not self.posterior.any():
            return self.first + k * self.step
        spread = log_rising_ratio(self.b, self.a + 1, k)
        return self.first + np.where(self.posterior, spread, k * self.step)

    def fall(self, k: Floats) -> Floats:
        """Return how the gain falls from the sample after k failures to the next one."""
        by_posterior = np.log((self.b + k) / (self.nu + 1 + k))
        return np.where(self.posterior, by_posterior, self.step)

    def ladder(self, low: Floats, width: int) -> Floats:
        """Return the gains after ``low`` failures and the next ones, shape (n_questions, width)."""
        gains = np.empty((width, low.size))
        gains[0] = self.after(low)
        for i in range(1, width):
            gains[i] = gains[i - 1] + self.fall(low + i - 1)
        return np.ascontiguousarray(gains.T)

    def counts(self, most: Floats, near: Floats) -> Callable[[float], Floats]:
        """Return a function that counts each row's gains above a price: exact for plug-in, else
        good near ``near``.

        A posterior's gain falls about as a power of k: with the right value and slope at ``near``.
        """
        first = self.first
        if not self.posterior.any():
            return lambda price: np.clip(np.ceil((price - first) / self.step), 0, most)
        # The first gain may be far above the others, and is looked at by itself.
        near = np.maximum(near, 1)
        least = np.minimum(1, most)
        gain = self.after(near)
        step = self.fall(near)
        power = self.a + 1

        def above(price: float) -> Floats:
            drop = gain - price
            by_power = power * np.expm1(drop / power)
            steps = np.where(self.posterior, by_power, drop) / step
            counted = np.clip(np.ceil(near - steps), least, most)
            return np.where(first > price, counted, 0)

        return above


def _take_largest(gains: _Gains, most: Floats, amount: float) -> Floats:
    """Take the largest gains that ``amount`` pays for, below ``most`` of each row, and count them
    by row.

    Floats hold the whole numbers, up to 2^53 exactly.
    """
    cost = gains.cost
    if cost @ most <= amount:
        return most
    near = np.minimum(most, np.ceil(amount / cost.sum()))
    least_gain = min(float(gains.after(most).min()), 0.0)
    bracket = 2 * least_gain - 1, float(gains.first.max())
    if not gains.posterior.any():
        few, many = _bisect(gains.counts(most, near), cost, bracket, amount, slack=0.0)
        return _share_ties(few, many, cost, amount)
    slack = cost.sum() / 30
    for _ in range(50):
        before = near
        near, _ = _bisect(gains.counts(most, near), cost, bracket, amount, slack=slack)
        if np.abs(near - before).max() <= 2:
            break
    for _ in range(1000):  # each time for the better, until nothing outside the window could be
        low = np.maximum(near - 2, 0)
        high = np.minimum(near + 2, most)
        near = _best_between(gains, low, high, amount - float(cost @ low))
        at_bottom = (near == low) & (low > 0)
        at_top = (near == high) & (high < most)
        if not (at_bottom | at_top).any():
            break
    return near


def _share_ties(few: Floats, many: Floats, cost: Floats, amount: float) -> Floats:
    """Spend what ``few`` leaves on the equal gains between ``few`` and ``many``: in turns, or where
    costs differ, in whole rounds.
    """
    left = amount - float(cost @ few)
    if (cost == 1).all():
        return few + _take_in_turns(many - few, left)
    tied = many > few
    if not tied.any():
        return few
    rounds = np.floor(left / cost[tied].sum())
    return np.minimum(few + rounds * tied, many)


@np.errstate(over="ignore")
def _bisect(
    above: Callable[[float], Floats],
    cost: Floats,
    bracket: tuple[float, float],
    amount: float,
    *,
    slack: float,
) -> tuple[Floats, Floats]:
    """Return the counts at two prices next to each other, of which ``amount`` pays for the first
    only.

    Both are the same where they cost all of the amount, to within ``slack``.
    """
    low, high = bracket
    few = above(high)
    many = above(low)
    for _ in range(128):
        price = (low + high) / 2
        if not low < price < high:
            break
        count = above(price)
        total = cost @ count
        if abs(total - amount) <= slack:
            return count, count
        if total <= amount:
            high = price
            few = count
        else:
            low = price
            many = count
    return few, many


def _best_between(gains: _Gains, low: Floats, high: Floats, amount: float) -> Floats:
    """Take the largest gains of each row from ``low`` on and below ``high``, first rows first where
    they are equal.
    """
    width = max(1, int((high - low).max()))
    offered = np.arange(width) < (high - low)[:, None]
    rows, _ = np.nonzero(offered)
    losses = -gains.ladder(low, width)[offered]
    if (gains.cost == 1).all():
        paid = int(np.clip(amount, 0, rows.size))
        # Three times as fast as a sort.
        last = np.partition(losses, paid - 1)[paid - 1] if paid else -np.inf
        order = np.concatenate([np.flatnonzero(losses < last), np.flatnonzero(losses == last)])
    else:
        order = np.argsort(losses, kind="stable")
        spent = np.cumsum(gains.cost[rows[order]])
        paid = int(np.searchsorted(spent, amount, side="right"))
    taken = rows[order[:paid]]
    return low + np.bincount(taken, minlength=low.size)


def _fill_up(gains: _Gains, taken: Floats, most: Floats, amount: float) -> Floats:
    """Spend what the largest gains per cost leave over, exactly: a greedy rule may leave more than
    a sample's worth unspent where costs differ.

    However it is spent, no more can be gained than at the price of the next sample. A sample whose
    distance from that price costs more than what the greedy way falls short of this bound is
    settled; the few others are a small knapsack."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    left = float(amount - gains.cost @ taken)
    after = gains.after(taken)
    price = float(np.exp(np.where(taken < most, after, -np.inf).max()))
    greedy = _add_what_fits(gains, taken, most, left)
    gained = float((np.exp(after) * gains.cost) @ (greedy - taken))
    short = (price * left - gained) * (1 + 1e-9)
    low, high = _open_range(gains, taken, most, price, short)
    width = (high - low).astype(np.int64)
    if not 0 < width.sum() <= 200 or price == 0:  # a gain below the smallest float is none
        return greedy
    rows, further = np.nonzero(np.arange(width.max()) < width[:, None])
    cost = gains.cost[rows]
    worth = np.exp(gains.ladder(low, int(width.max())))[rows, further] * cost
    found = milp(
        -1e3 * worth / worth.max(),  # HiGHS stops at an absolute gap of 1e-6
        constraints=LinearConstraint(cost, ub=amount - gains.cost @ low),
        integrality=np.ones(rows.size),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0, "node_limit": 1000},
    )
    if found.x is None:
        return greedy
    chosen = low + np.bincount(rows, weights=np.round(found.x), minlength=low.size)
    if gains.cost @ chosen <= amount:
        return chosen
    return greedy


def _add_what_fits(gains: _Gains, taken: Floats, most: Floats, left: float) -> Floats:
    """Take one more of each row that still fits, the largest gains first."""
    more = taken.copy()
    for row in np.argsort(-gains.after(taken), kind="stable"):
        cost = gains.cost[row]
        if more[row] < most[row] and cost <= left:
            more[row] += 1
            left -= cost
    return more


def _open_range(
    gains: _Gains, taken: Floats, most: Floats, price: float, short: float
) -> tuple[Floats, Floats]:
    """Return the counts between which the best division lies: a sample outside would lose more by
    its distance from the price than ``short``.
    """
    low = taken.copy()
    high = taken.copy()
    while True:
        distance = (price - np.exp(gains.after(high))) * gains.cost
        further = (high < most) & (distance <= short)
        if not further.any():
            break
        high += further
    while True:
        distance = (np.exp(gains.after(low - 1)) - price) * gains.cost
        further = (low > 0) & (distance <= short)
        if not further.any():
            break
        low -= further
    return low, high


def _take_in_turns(most: Floats, amount: float) -> Floats:
    """Deal ``amount`` one by one to the rows in turn, to none more than its ``most``."""
    if most.sum() <= amount:
        return most
    # The first number of rounds for which there is not enough.
    over = bisect_right(
        range(int(most.max())), amount, key=lambda rounds: np.minimum(most, rounds).sum()
    )
    dealt = np.minimum(most, over - 1)
    left = int(amount - dealt.sum())
    further = np.flatnonzero(dealt < most)[:left]
    dealt[further] += 1
    return dealt


def success_rate(allocation: ArrayLike, correct: ArrayLike, total: ArrayLike) -> float:
    """Return the expected share of questions solved when samples are drawn as allocated, in [0, 1].
    Higher is better.

    ``allocation`` holds samples per question, such as :func:`allocate` returns; none above the
    question's total. The expectation over draws without replacement from the scored samples is
    exact: pass@k at each question's own k. (The authors' code draws ten times, with the same
    positions for every question, instead. The paper, section 5.2.)

    >>> round(success_rate([1, 2, 0], [2, 2, 4], [4, 4, 4]), 4)
    0.4444
    """
    return float(success_terms(allocation, correct, total).mean())


def success_terms(allocation: ArrayLike, correct: ArrayLike, total: ArrayLike) -> Floats:
    """Return the terms, shape (n_questions,), whose mean is :func:`success_rate`."""
    drawn, c, n = check.align(allocation=allocation, correct=correct, total=total)
    spent = check.as_whole("allocation", drawn, least=0)
    hits, samples = check.as_counts(c, n)
    rule = "more than its total of scored samples; pass max_per_question=total to allocate"
    check.check_rows("allocation", spent, spent > samples, rule)
    ks, column = np.unique(spent, return_inverse=True)
    solved = pass_at_k(hits, samples, np.maximum(ks, 1))[np.arange(spent.size), column]
    return np.where(spent > 0, solved, 0.0)


def spending_terms(
    allocation: ArrayLike, more: ArrayLike, correct: ArrayLike, total: ArrayLike
) -> Floats:
    """Return what each question's spending is worth beyond the mean, shape (n_questions,): to be
    subtracted from :func:`success_terms` before an interval is taken.

    An allocation spends a fixed mean, so questions share a budget: one that takes more leaves less
    for the others. Were other questions drawn, the price of a sample would move until the budget
    fits, and so each term counts its spending at that price (its influence). ``more`` is the same
    rule's allocation of a somewhat larger budget, of which the price is what one more sample
    solves. The terms are price times (allocation - mean allocation); their mean is 0. Without them
    the interval of a gain over even spending is up to twice too wide.

    >>> spending_terms([1, 3, 2], [1, 4, 2], [9, 2, 5], [10, 10, 10]).round(3)
    array([-0.133,  0.133,  0.   ])
    """
    drawn, larger, c, n = check.align(
        allocation=allocation, more=more, correct=correct, total=total
    )
    added = float(larger.sum() - drawn.sum())
    if added == 0:
        return np.zeros(len(drawn))
    solved = (success_terms(larger, c, n) - success_terms(drawn, c, n)).sum()
    return float(solved) / added * (drawn - drawn.mean())


def attempt_order(
    confidence: ArrayLike,
    max_per_question: ArrayLike,
    *,
    concentration: float | ArrayLike | None = None,
    cost: ArrayLike | None = None,
    sequential: bool = False,
) -> Ints:
    """Order all attempts by what they are worth: the question's row of each, shape
    (max_per_question summed over all,).

    What a budget of samples buys is the first so many of them, so that one sort divides every
    budget. One-shot, all of a question's attempts are made whatever comes of them. ``sequential``:
    a question is left as soon as it is solved, so that an attempt is made, and paid for, after
    failures only. Then its chance counts, which falls from s to s nu/(nu + k) after k failures:
    among all rules that go by what happened so far, none solves more at the same cost, in
    expectation. Either way the worth is per ``cost``, as for :func:`allocate`. Attempts of equal
    worth are ordered by row, those that are worth nothing go in turns.

    >>> attempt_order([0.9, 0.5], 2), attempt_order([0.9, 0.5], 2, sequential=True)
    (array([0, 1, 1, 0]), array([0, 0, 1, 1]))
    """
    confidence, max_per_question, concentration, cost = check.align_index(
        confidence=confidence,
        max_per_question=max_per_question,
        concentration=concentration,
        cost=cost,
    )
    s = check.as_confidence(confidence)
    most = _as_maxima(max_per_question, s.size)
    nu = as_concentration(concentration, s.size)
    price = _as_cost(cost, s.size)
    tries = np.arange(max(most.max(), 1))
    if sequential:
        first = np.log(np.maximum(s, 5e-324)) - np.log(price)
        worth = first[:, None] - np.log1p(tries / nu[:, None])
    else:
        worth = _Gains(s, nu, price).ladder(np.zeros(s.size), tries.size)
        worth[s == 1, 1:] = -1e100 * tries[1:]
    worth[s == 0] = -1e100 * (1 + tries)
    rows, tried = np.nonzero(tries < most[:, None])
    order: Ints = rows[np.argsort(-worth[rows, tried], kind="stable")]
    return order


def solved_by_budget(
    order: ArrayLike,
    correct: ArrayLike,
    total: ArrayLike,
    budgets: ArrayLike,
    *,
    cost: ArrayLike | None = None,
    sequential: bool = False,
) -> Floats:
    """Return each question's chance to be solved by every budget, shape (n_questions, n_budgets).
    Higher is better.

    Attempts are made in ``order``, such as that of :func:`attempt_order`, no more of a question
    than its total; ``sequential``, only while it is unsolved. ``budgets`` are what is spent on a
    question on average, in samples or in the unit of ``cost``: in expectation, over draws without
    replacement from the scored samples. The last attempt is made with the chance that spends a
    budget exactly; one that pays for more than all attempts is not spent.

    >>> solved_by_budget([0, 1, 1, 0], [8, 2], [10, 10], [1, 2]).round(3)
    array([[0.8  , 0.978],
           [0.2  , 0.378]])
    """
    c, n = check.as_counts(correct, total)
    rows = check.as_whole("order", order, least=0)
    check.check_rows("order", rows, rows >= c.size, f"but there are {c.size} questions")
    mean = check.as_numbers("budgets", budgets)
    allowed = (mean >= 0) & (mean < np.inf)
    check.check_rows("budgets", mean, ~allowed, "but must be at least 0 and finite")
    made = np.bincount(rows, minlength=c.size)
    check.check_rows("attempts", made, made > n, "more than the total of scored samples")
    attempt = pd.Series(rows).groupby(rows).cumcount().to_numpy()
    pairs, kind = np.unique(np.column_stack([c, n]), axis=0, return_inverse=True)
    solved = np.nan_to_num(pass_at_k(pairs[:, 0], pairs[:, 1], np.arange(1, made.max() + 1)))
    before = np.column_stack([np.zeros(len(pairs)), solved[:, :-1]])
    gain = (solved - before)[kind[rows], attempt]
    paid = _as_cost(cost, c.size)[rows]
    if sequential:
        paid = paid * (1 - before)[kind[rows], attempt]
    spent = np.append(0.0, np.cumsum(paid))
    budget, column = np.unique(mean * c.size, return_inverse=True)
    whole = np.searchsorted(spent, budget * (1 + 1e-12), side="right") - 1
    each = np.zeros((c.size, budget.size + 1))
    first = np.repeat(np.arange(budget.size + 1), np.diff(whole, prepend=0, append=rows.size))
    np.add.at(each, (rows, first), gain)  # at the first budget that pays for it
    result: Floats = np.cumsum(each[:, :-1], axis=1)
    part = np.flatnonzero(whole < rows.size)
    last = whole[part]
    share = (budget[part] - spent[last]) / paid[last]
    result[rows[last], part] += gain[last] * share
    return result[:, column]


def _as_maxima(most: ArrayLike, n_questions: int) -> Ints:
    each = check.as_each("max_per_question", most, n_questions)
    return check.as_whole("max_per_question", each, least=0)


def _as_cost(cost: ArrayLike | None, n_questions: int) -> Floats:
    price = check.as_each("cost", 1.0 if cost is None else cost, n_questions)
    allowed = (price > 0) & (price < np.inf)
    check.check_rows("cost", price, ~allowed, "but must be above 0 and finite")
    return price


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


class HonestOracle(NamedTuple):
    """What one half of each question's samples says, and the counts of the other half."""

    confidence: Floats  # in [0, 1]
    concentration: Floats  # above 0; of the posterior whose mean is the confidence
    correct: Ints
    total: Ints


def honest_oracle(
    correct: ArrayLike, total: ArrayLike, *, rng: np.random.Generator
) -> HonestOracle:
    """Let an oracle know a random half of each question's samples; it is scored on the other half.

    An oracle that knows the very samples it is scored on looks better than any confidence can be.
    The known counts are taken with what the data set says of a question, as a Beta prior.

    >>> honest_oracle([10, 0], [10, 10], rng=np.random.default_rng(0)).confidence.round(2)
    array([1., 0.])
    """
    (known, seen), (left, drawn) = split_counts(correct, total, rng=rng)
    mean: Floats = np.full(len(known), known.sum() / seen.sum(), np.float64)
    prior = fit_concentration(mean, known, seen)
    if not np.isfinite(prior):  # the questions do not differ
        return HonestOracle(
            confidence=mean,
            concentration=np.full(len(known), np.inf),
            correct=left,
            total=drawn,
        )
    concentration: Floats = np.asarray(prior + seen, np.float64)
    confidence = (mean * prior + known) / concentration
    return HonestOracle(
        confidence=confidence,
        concentration=concentration,
        correct=left,
        total=drawn,
    )
