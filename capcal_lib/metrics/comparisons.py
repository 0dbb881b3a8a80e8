"""Comparisons of methods on the same questions: gains over a rival, and which may be the best.

Intervals and clusters work as in :mod:`capcal_lib.metrics.intervals`. Terms come as a DataFrame
with one row per question and one column per method; NaN means not scored, and lower is better."""

from __future__ import annotations  # keeps ArrayLike short in help()

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError, check_known
from capcal_lib.metrics.intervals import Limits, check_bounds, finite, variance_of_mean
from capcal_lib.metrics.validation import Floats, align, as_counts, check_share

if TYPE_CHECKING:
    import pandas as pd

Adjustment = Literal["none", "holm", "bonferroni"]
COMPARISON_VERDICTS = ("better", "worse", "inconclusive")  # of a comparison
APART = (-1.0, 1.0)  # bounds of a difference of two methods
POWER = 1.96 + 0.84  # standard errors that a gain must be for power .8 at two-sided .05


def gains(
    terms: pd.DataFrame,
    rival: str,
    *,
    clusters: ArrayLike | None = None,
    adjust: Adjustment = "none",
    level: float = 0.95,
    bounds: tuple[float, float] = APART,
) -> pd.DataFrame:
    """Test by how much each method is better than a rival, on the questions that both have.

    A gain is the rival's mean term minus the method's: positive if the method is better. Returns
    one row per method except the rival, in the order of the columns: ``estimate`` with the interval
    ``low`` to ``high`` of :func:`~capcal_lib.metrics.mean_interval`, for this comparison alone;
    ``p``, 1 minus the level at which the interval just excludes 0; and ``verdict``: ``better`` or
    ``worse`` if p is below 1 - level, else ``inconclusive``.

    ``adjust`` keeps the chance of any false verdict among all rows at 1 - level, provided that the
    intervals cover as they should (:func:`~capcal_lib.metrics.mean_interval` says when they do
    not). ``bonferroni`` multiplies p by the number of rows; ``holm`` multiplies it step by step by
    the number of rows that are left, and has at least as much power. ``bounds`` are the least and
    the largest possible gain: (-1, 1) for a difference of two Brier scores, narrower if more is
    known, as in :func:`bounds_over_constant`. If the two methods have fewer than two questions in
    common, the gain is NaN and inconclusive.

    References: Holm, "A simple sequentially rejective multiple test procedure", Scandinavian
    Journal of Statistics 6 (1979).

    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> terms = pd.DataFrame({"rival": rng.random(200), "good": rng.random(200) / 4})
    >>> gains(terms, "rival", adjust="holm")[["estimate", "verdict"]].round(2)
          estimate verdict
    good      0.41  better
    """
    import pandas as pd  # slow to import

    values, clusters = _columns(terms, clusters)
    check_known("adjustment", adjust, get_args(Adjustment))
    check_known("rival", rival, [*terms])
    check_bounds(bounds)
    rows = {}
    for name in values.columns.drop(rival):
        limits = Limits((values[rival] - values[name]).to_numpy(), bounds, clusters)
        above = limits.above()
        row = [*limits.at(level), 2 * min(above, 1 - above)]
        rows[name] = row if limits.freedom > 0 else [np.nan] * 4
    table = pd.DataFrame(rows, ["estimate", "low", "high", "p"], dtype=float).T
    table["p"] = adjusted(table["p"].to_numpy(), adjust)
    sign = np.where(table["estimate"] > 0, "better", "worse")
    table["verdict"] = np.where(table["p"] < 1 - level, sign, "inconclusive")
    return table


def judge_gain(
    gain: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    bounds: tuple[float, float] = APART,
) -> pd.Series:
    """Test whether a mean gain is above or below 0: like :func:`gains`, but from each question's
    gain instead of the terms of two methods.

    ``gain`` has shape (n_questions,), with NaN for a question without one; ``clusters`` and
    ``bounds`` are as in :func:`gains`.

    >>> judged = judge_gain([0.2, 0.4] * 30)
    >>> round(judged["estimate"], 2), round(judged["low"], 2), judged["verdict"]
    (0.3, 0.25, 'better')
    """
    import pandas as pd  # slow to import

    terms = pd.DataFrame({"rival": gain, "method": 0.0})
    judged = gains(terms, "rival", clusters=clusters, bounds=bounds)
    return judged.T["method"]


def bounds_over_constant(constant: ArrayLike) -> tuple[float, float]:
    """Return the least and the largest possible gain, in Brier score, of any confidence over a
    constant in [0, 1], if both are judged by the same mu_hat. Given several constants, such as
    each question's mean of the others, the bounds hold for all of them.

    A confidence gains most if it is right and the constant is far off. It loses most if it is
    certain and wrong and the constant is near.

    >>> bounds_over_constant(0.5), bounds_over_constant([0.5, 0.0])
    ((-0.75, 0.25), (-1.0, 1.0))
    """
    constants = np.asarray(constant, dtype=np.float64)
    from_ends = np.array([constants**2, (1 - constants) ** 2])
    return float(from_ends.min()) - 1, float(from_ends.max())


def questions_needed(
    differences: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    bounds: tuple[float, float] = APART,
) -> float:
    """Return about how many questions :func:`gains` would need to detect a gain of the size seen.

    ``differences`` are the rival's terms minus the method's, shape (n_questions,), NaN left out;
    ``clusters`` and ``bounds`` are those of the test. A study of that many questions like these
    has a power of about .8 to detect the mean difference at a level of .95. NaN if the gain is
    smaller than its standard error: then there are too few questions to plan with. Distrust the
    answer if there are few questions, since a gain that is large by chance looks easy to find.

    >>> round(questions_needed([0.04] * 20))  # a verdict waits for what is rare and unseen
    70
    """
    values, clusters = align(differences=differences, clusters=clusters)
    values = finite("difference", values)
    scored = ~np.isnan(values)
    if clusters is not None:
        clusters = np.asarray(clusters, dtype=object)[scored]
    values = values[scored]
    gain = abs(values.mean()) if len(values) else 0.0
    squared_error = variance_of_mean(values, clusters) if len(values) else 0.0
    if gain == 0 or gain**2 < squared_error:
        return np.nan
    # N gain + shift = POWER * sqrt(N * variance + added), of which N is the larger root: the sum of
    # N differences and of half a question at either bound, and its standard error.
    low, high = check_bounds(bounds)
    variance = squared_error * len(values)
    shift = np.sign(values.mean()) * (low + high) / 2
    added = (low**2 + high**2) / 2
    b = POWER**2 * variance - 2 * gain * shift
    c = POWER**2 * added - shift**2
    return float((b + np.sqrt(b**2 + 4 * gain**2 * c)) / (2 * gain**2))


def adjusted(p: Floats, adjust: Adjustment) -> Floats:
    """Adjust p values for their number; NaN is no comparison.

    >>> adjusted(np.array([0.01, 0.04, 0.03]), "holm").round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    if adjust == "none":
        return p
    order = np.argsort(p)  # NaN comes last
    tests = np.count_nonzero(~np.isnan(p))
    left = np.maximum(tests - np.arange(len(p)), 1) if adjust == "holm" else tests
    result = np.minimum(np.maximum.accumulate(p[order] * left), 1)
    return result[np.argsort(order)]


def compare_counts(
    correct: ArrayLike, total: ArrayLike, correct_again: ArrayLike, total_again: ArrayLike
) -> pd.DataFrame:
    """Test for each question whether its two counts come from the same expected accuracy.

    Counts have shape (n_questions,). Returns one row per question: ``p`` of Fisher's exact test,
    and ``p (Holm)``, adjusted so that if no question differs, the chance of any value below .05 is
    at most 5 %.

    References: Fisher, "Statistical Methods for Research Workers", 1925.

    >>> compare_counts([5, 56], [10, 100], [5, 78], [10, 100]).round(3).to_numpy().tolist()
    [[1.0, 1.0], [0.001, 0.003]]
    """
    import pandas as pd  # slow to import
    from scipy.stats import fisher_exact

    first, second = as_counts(correct, total), as_counts(correct_again, total_again)
    pairs = zip(*first, *second, strict=True)
    p = [fisher_exact([[a, n - a], [b, m - b]]).pvalue for a, n, b, m in pairs]
    table = pd.DataFrame({"p": p, "p (Holm)": adjusted(np.array(p), "holm")})
    return table.set_index(correct.index) if isinstance(correct, pd.Series) else table


def compare(
    terms: pd.DataFrame,
    *,
    bounds: tuple[float, float],
    clusters: ArrayLike | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Compare methods on the questions that all of them have, and mark those that may be the best,
    which is to have the lowest mean.

    A column without any term is left out of the comparison: its row is NaN and ``may_be_best`` is
    False. If the methods have no question in common, this holds for all of them.

    Returns one row per method, in the order of the columns: ``estimate``, ``low`` and ``high`` of
    :func:`~capcal_lib.metrics.mean_interval`, with the ``bounds`` of each mean, such as (0, 1) for
    Brier scores; and ``may_be_best``, see :func:`may_be_best`.

    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> good, bad = rng.random(200) / 4, rng.random(200)
    >>> compare(pd.DataFrame({"good": good, "bad": bad}), bounds=(0, 1))["may_be_best"].tolist()
    [True, False]
    """
    import pandas as pd  # slow to import

    values, clusters = _columns(terms, clusters)
    bounds = check_bounds(bounds)
    scored = values.dropna(axis="columns", how="all")
    common = values.where(scored.notna().all(axis="columns"))  # questions that all of them have
    rows = {}
    for name, column in common.items():
        terms_here = column.to_numpy()
        rows[name] = Limits(terms_here, bounds, clusters).at(level)
    table = pd.DataFrame(rows, ["estimate", "low", "high"], dtype=float).T
    best = may_be_best(common, clusters, level)
    return table.assign(may_be_best=[str(name) in best for name in common])


def _columns(terms: pd.DataFrame, clusters: ArrayLike | None) -> list[Any]:
    """Return the terms as finite numbers, and the clusters beside them."""
    import pandas as pd  # slow to import

    if not isinstance(terms, pd.DataFrame) or not terms.size:
        raise InputError("terms must be a DataFrame: one row per question, one column per method")
    values = terms.apply(lambda column: finite(str(column.name), column))
    return align(terms=values, clusters=clusters)


def may_be_best(
    terms: pd.DataFrame, clusters: ArrayLike | None = None, level: float = 0.95
) -> set[str]:
    """Return the methods that no other method beats significantly, on the questions both have.

    ``terms`` has one row per question and one column per method; NaN means not scored, and a
    method without any term is left out. However many methods there are, those returned include the
    best one with confidence ``level``. Each is compared with every other by a one-sided test on
    the limits of their difference, at 1 - level over the number of its rivals (Bonferroni).

    References: Hsu, "Multiple comparisons: theory and methods" (1996), chapter 4.

    >>> import pandas as pd
    >>> terms = pd.DataFrame({"good": [0.1, 0.2] * 20, "bad": [0.6, 0.5] * 20, "few": np.nan})
    >>> terms.loc[:3, "few"] = 0.3
    >>> sorted(may_be_best(terms))
    ['few', 'good']
    """
    terms, clusters = align(terms=terms.dropna(axis="columns", how="all"), clusters=clusters)
    allowed = (1 - check_share("level", level)) / max(1, terms.shape[1] - 1)

    values = terms.to_numpy().T
    best = set()
    for place, name in enumerate(terms):
        rivals = np.delete(values, place, axis=0)
        chances = [Limits(values[place] - rival, APART, clusters).above() for rival in rivals]
        if not any(chance < allowed for chance in chances):  # a NaN tells nothing
            best.add(str(name))
    return best
