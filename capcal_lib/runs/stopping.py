"""Stop sampling a question once its interval is narrow enough, and estimate mu without bias.

The rule looks at a question after every ``EVERY`` samples, up to k. It stops at the first look at
which the Jeffreys interval of its counts has a half-width, (high - low)/2, of at most
``precision``, and at k in any case. Right and wrong are treated alike: c correct of n stop exactly
where n - c do.

A rule that looks at the outcomes biases what is counted: mu_hat = c/n is pulled outward here, since
a run of equal outcomes stops early and stands. The orders of outcomes that lead to each end are
counted, which says exactly what the rule does to any mu, and gives an unbiased estimate."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from capcal_lib.applications import Components, fit_concentration
from capcal_lib.errors import InputError
from capcal_lib.metrics.intervals import binomial_interval
from capcal_lib.metrics.validation import Floats, Ints, as_confidence, as_counts, check_int
from capcal_lib.runs.artifacts import VERDICTS
from capcal_lib.runs.run import Run

EVERY = 10  # samples between two looks
MOST = 2_000  # samples of a question; the table of what leads to each end grows with their square
QUANTILES = 9  # of a posterior, at which a mean over it is taken


@dataclass(frozen=True)
class Rule:
    """When to stop sampling a question; a value out of range is an InputError.

    >>> rule = Rule(precision=0.05, k=100)
    >>> rule.looks[:3], rule.enough([0, 0, 30, 5], [20, 30, 30, 30]).tolist()
    ((10, 20, 30), [False, True, True, False])
    """

    # half-width of the 95 % Jeffreys interval at which a question has had enough, in (0, 0.5)
    precision: float
    k: int  # samples at which it stops in any case, at least 2

    def __post_init__(self) -> None:
        if isinstance(self.precision, bool) or not 0 < self.precision < 0.5:
            raise InputError(
                "precision is the half-width of an interval, in (0, 0.5), such as 0.05; got "
                f"{self.precision}"
            )
        if check_int("k", self.k, least=2) > MOST:
            raise InputError(f"with a precision, k is at most {MOST:,}; got {self.k}")

    @property
    def looks(self) -> tuple[int, ...]:
        """Return the numbers of samples at which the rule looks; the last is k."""
        return (*range(EVERY, self.k, EVERY), self.k)

    def enough(self, correct: ArrayLike, total: ArrayLike) -> NDArray[np.bool_]:
        """Tell of each question whether its interval is narrow enough."""
        low, high = binomial_interval(correct, total).T
        return np.asarray((high - low) / 2 <= self.precision)

    @cached_property
    def _orders(self) -> NDArray[np.float64]:
        """Count orders of outcomes, as shares of all that have as many correct ones.

        Shape (3, k + 1, k + 1), by samples and correct ones: the share of the orders that no look
        stops before; of those, the ones that begin with a correct sample; and the ones that begin
        with two."""
        share = np.zeros((3, self.k + 1, self.k + 1))
        every, one, two = share
        every[1, :2] = 1
        one[1, 1] = 1
        for n in range(1, self.k):
            c = np.arange(n + 1)
            going = share[:, n, : n + 1].copy()
            if n in self.looks:
                going[:, self.enough(c, n)] = 0
            last_wrong = (n + 1 - c) / (n + 1)
            last_right = (c + 1) / (n + 1)
            share[:, n + 1, : n + 1] += going * last_wrong
            share[:, n + 1, 1 : n + 2] += going * last_right
            if n == 1:
                two[2, 2] = 1
        return share

    @cached_property
    def ends(self) -> tuple[Ints, Ints]:
        """Return all counts at which the rule may stop, (correct, total)."""
        reached = self._orders[0] > 0
        total, correct = np.nonzero(reached)
        stop = self._stops(correct, total)
        return correct[stop], total[stop]

    def _stops(self, correct: Ints, total: Ints) -> NDArray[np.bool_]:
        """Tell at which counts the rule looks and stops."""
        looks = np.isin(total, self.looks)
        done = self.enough(correct, total) | (total == self.k)
        return np.asarray(looks & done)

    def unbiased(self, correct: ArrayLike, total: ArrayLike) -> tuple[Floats, Floats]:
        """Estimate mu and mu^2 without bias from the counts at which questions stopped, each of
        shape (n_questions,).

        They are the shares of the orders of outcomes leading there that begin with one and with two
        correct samples (Girshick, Mosteller and Savage, Annals of Mathematical Statistics 17,
        1946), in [0, 1]. NaN for counts at which the rule does not stop, such as those of a
        question that is not finished or has a sample that could not be scored.

        >>> rule = Rule(precision=0.05, k=100)
        >>> mu, square = rule.unbiased([0, 2, 50], [30, 60, 100])
        >>> mu.round(4)
        array([0.    , 0.0473, 0.5   ])
        """
        hits, samples = as_counts(correct, total)
        inside = samples <= self.k
        n = np.where(inside, samples, 0)
        c = np.where(inside, hits, 0)
        every, one, two = self._orders[:, n, c]
        is_end = self._stops(hits, samples) & (every > 0)
        every = np.where(is_end, every, np.nan)
        return one / every, two / every

    def probabilities(self, mu: ArrayLike) -> Floats:
        """Return how likely each of ``ends`` is for mu in [0, 1], shape (n_mu, n_ends); rows sum to
        1.

        What stopping does to an estimate for a known mu follows exactly, such as the expected
        number of samples.

        >>> rule = Rule(precision=0.05, k=100)
        >>> (rule.probabilities([0.02, 0.05]) @ rule.ends[1]).round(3)
        array([43.131, 67.51 ])
        """
        from scipy.stats import binom  # slow to import

        correct, total = self.ends
        p = as_confidence(mu)
        normal = np.where(p < 1e-300, 0, p)  # scipy overflows at the smallest floats
        of_counts = binom.pmf(correct, total, normal[:, None])
        return np.asarray(of_counts * self._orders[0, total, correct])


def stopped_components(
    rule: Rule, pilot: Components, correct: ArrayLike, total: ArrayLike, *confidences: ArrayLike
) -> tuple[Components, float]:
    """Return a pilot's components for samples drawn until the rule stops, and the mean number of
    samples a question.

    ``pilot`` is that of :mod:`capcal_lib.applications.planning` for these counts and for one
    confidence, or the difference of two. Its parts over samples become one, ``within``, for k = 1:
    computed exactly for mu at quantiles of each question's posterior, whose prior is a Beta with
    the pilot's mean and spread. What confidences tell of mu beyond the counts is not used: from a
    pilot of few samples, ``within`` of a score is somewhat too high.

    >>> pilot = Components(estimate=0.01, between=0.001, within=0.1)
    >>> found, samples = stopped_components(Rule(0.05, 100), pilot, [0, 50], [100, 100], [0.1, 0.5])
    >>> round(found.within, 5), round(samples, 1)
    (2e-05, 65.4)
    """
    from scipy.stats import beta  # slow to import

    hits, samples = as_counts(correct, total, scored=1)
    pairs, row = np.unique(np.column_stack([hits, samples]), axis=0, return_inverse=True)
    c, n = pairs.T
    mean = hits.sum() / samples.sum()
    nu = min(fit_concentration(np.full(hits.size, mean), hits, samples), 1e6)
    a = c + nu * mean
    b = n - c + nu * (1 - mean)
    middles = (np.arange(QUANTILES) + 0.5) / QUANTILES
    mu = beta.ppf(middles, a[:, None], b[:, None])
    chance = rule.probabilities(mu.ravel())

    def of_questions(of_ends: Floats, known: Floats | float = 0.0) -> Floats:
        """Return each question's expected value beyond what is known at its mu."""
        expected = (chance @ of_ends).reshape(mu.shape)
        return (expected - known).mean(axis=1)[row]

    first, second = rule.unbiased(*rule.ends)
    _, end = rule.ends
    # Variances and covariance of the estimates of mu and mu^2.
    of_first = of_questions(first * first, mu**2)
    of_both = of_questions(first * second, mu**3)
    of_second = of_questions(second * second, mu**4)
    drawn = of_questions(end.astype(float)).mean()
    s, *other = (as_confidence(each) for each in confidences)
    if other:
        within = 4 * (s - other[0]) ** 2 * of_first
    else:
        within = 4 * s**2 * of_first - 4 * s * of_both + of_second
    return pilot._replace(within=float(within.mean()), pairs=0.0), float(drawn)


def outcomes(verdicts: pd.DataFrame, k: int) -> tuple[list[str], NDArray[np.int8]]:
    """Put the verdicts of the samples 0 to k - 1 in a table: question ids, sorted, and
    (n_questions, k).

    There 1 stands for a correct sample, 0 for any other that is scored, -1 for one that is not
    scored, -2 for one that is not there."""
    rows = verdicts[verdicts["sample_index"] < k]
    ids, row = np.unique(rows["question_id"].to_numpy(str), return_inverse=True)
    column = rows["sample_index"].to_numpy()
    codes = {"correct": 1, "incorrect": 0, "no_answer": 0, "not_scored": -1}
    table = np.full((len(ids), k), -2, dtype=np.int8)
    table[row, column] = rows["verdict"].map(codes).to_numpy()
    return ids.tolist(), table


def stops(rule: Rule, table: NDArray[np.int8]) -> tuple[Ints, NDArray[np.bool_]]:
    """Go through the looks of each question, as far as its samples in the table of ``outcomes``
    reach.

    Return the number of samples at the look where it stops, or up to which it must go on; and
    whether it stopped."""
    at = np.full(len(table), rule.looks[0], dtype=np.int64)
    stopped = np.zeros(len(table), dtype=bool)
    there = np.logical_and.accumulate(table > -2, axis=1)
    for look in rule.looks:
        now = ~stopped & (at == look) & there[:, look - 1]
        seen = table[:, :look]
        correct = (seen == 1).sum(axis=1)
        total = (seen >= 0).sum(axis=1)
        done = now & (rule.enough(correct, total) | (look == rule.k))
        stopped |= done
        at[now & ~done] = min(look + EVERY, rule.k)
    return at, stopped


def ends_of(run: Run, rule: Rule) -> tuple[dict[str, int], set[str]]:
    """Return up to where a rule lets each graded question of a run go, and which have got there."""
    names, table = outcomes(run.read(VERDICTS).to_pandas(), rule.k)
    at, stopped = stops(rule, table)
    reach = dict(zip(names, at.tolist(), strict=True))
    ended = set(np.array(names, dtype=str)[stopped].tolist())
    return reach, ended
