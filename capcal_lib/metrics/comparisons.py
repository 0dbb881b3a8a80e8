"""Comparisons of methods on the same questions: gains over a rival, and which may be the best.

Intervals, seeds and clusters are those of :mod:`capcal_lib.metrics.intervals`. Terms come as a
DataFrame with a row a question and a column a method, NaN where it is not scored; lower is
better."""

from __future__ import annotations  # keeps ArrayLike short in help()

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError, unknown
from capcal_lib.metrics.intervals import (
    MANY,
    Column,
    Draws,
    Means,
    finite,
    range_of,
    ratio,
    source_of,
    units_of,
)
from capcal_lib.metrics.validation import Floats, align_index, check_share

if TYPE_CHECKING:
    import pandas as pd

Adjustment = Literal["none", "holm", "bonferroni"]


def gains(
    terms: pd.DataFrame,
    rival: str,
    *,
    seed: int = 0,
    clusters: ArrayLike | None = None,
    adjust: Adjustment = "none",
    level: float = 0.95,
) -> pd.DataFrame:
    """Test by how much each method is better than a rival, on the questions that both have.

    A gain is the mean of the rival's terms less those of the method: positive where the method is
    better. Returns a row a method, all columns but the rival's, in their order: ``estimate`` with
    the interval ``low`` to ``high`` of :func:`~capcal_lib.metrics.mean_interval`, of one comparison
    by itself; ``p``, the level at which that interval just leaves out 0; ``few``, whether a handful
    of questions carries it; ``verdict``: ``better`` or ``worse`` where p is below 1 - level, else
    ``inconclusive``.

    ``adjust`` holds the chance of any false verdict among all rows at 1 - level: p is then
    multiplied by the number of rows (``bonferroni``), or step by step by that of the rows that are
    left (``holm``, which is never less sharp). The terms must lie in [-1, 1]. NaN, and
    inconclusive, where the two have fewer than two questions in common.

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

    values, labels = _columns(terms, clusters)
    check_share("level", level)
    if adjust not in get_args(Adjustment):
        raise unknown("adjustment", adjust, get_args(Adjustment))
    if rival not in terms:
        raise unknown("rival", rival, list(map(str, terms)))
    rows = {}
    against = values[:, list(terms).index(rival)]
    for name, own in zip(terms, values.T, strict=True):
        if name == rival:
            continue
        rows[name] = {"estimate": np.nan, "low": np.nan, "high": np.nan, "few": False, "p": np.nan}
        column = _column(against - own, labels, seed)
        if column:
            interval = column.interval(level)._asdict()
            rows[name] = {**interval, "p": column.p_value()}
    columns = ["estimate", "low", "high", "few", "p"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    table["p"] = adjusted(table["p"].to_numpy(), adjust)
    sign = np.where(table["estimate"] > 0, "better", "worse")
    table["verdict"] = np.where(table["p"] < 1 - level, sign, "inconclusive")
    return table[["estimate", "low", "high", "p", "few", "verdict"]]


def adjusted(p: Floats, adjust: Adjustment) -> Floats:
    """Adjust p values for their number; NaN is no comparison.

    >>> adjusted(np.array([0.01, 0.04, 0.03]), "holm").round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    if adjust == "none":
        return p
    tests = np.count_nonzero(~np.isnan(p))
    if adjust == "bonferroni":
        return np.minimum(p * tests, 1)
    order = np.argsort(p)  # NaN comes last
    left = np.maximum(tests - np.arange(len(p)), 1)
    result = np.empty(len(p))
    result[order] = np.minimum(np.maximum.accumulate(p[order] * left), 1)
    return result


def compare(
    terms: pd.DataFrame,
    *,
    rng: np.random.Generator | None = None,
    seed: int = 0,
    level: float = 0.95,
    clusters: ArrayLike | None = None,
) -> pd.DataFrame:
    """Compare methods on the questions that all of them have: which may be the best, that is have
    the lowest mean?

    A column without any term is left out of the comparison: its row is NaN and ``may_be_best``
    False. Where nothing is common, so are all.

    Returns a row a method, in the order of the columns: ``estimate``, ``low``, ``high`` as from
    :func:`~capcal_lib.metrics.mean_interval`, and ``may_be_best``: not significantly worse than any
    other. The methods so marked hold the best one with confidence ``level``, however many there
    are: a method is excluded where its largest studentised difference from another exceeds the
    quantile of the largest one that resampling the questions gives, and where unseen questions
    cannot make up for it either.

    References: Hsu, "Multiple comparisons: theory and methods" (1996), chapter 4; Romano and Wolf,
    "Stepwise multiple testing as formalized data snooping", Econometrica 73 (2005).

    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> good, bad = rng.random(200) / 4, rng.random(200)
    >>> compare(pd.DataFrame({"good": good, "bad": bad}))["may_be_best"].tolist()
    [True, False]
    """
    import pandas as pd  # slow to import

    source = source_of(rng, seed)
    check_share("level", level)
    values, labels = _columns(terms, clusters)
    unknown_row = {"estimate": np.nan, "low": np.nan, "high": np.nan, "may_be_best": False}
    result = pd.DataFrame(unknown_row, terms.columns)
    there = ~np.isnan(values).all(axis=0)
    sums, sizes = units_of(values[:, there], *labels)
    if not there.any() or not len(sums):
        return result
    means = Means(sums, sizes)
    draws = means.resample(source) if len(sums) > 1 else None
    of_limits = draws if len(sums) < MANY else None
    shown = values[:, there]
    common = shown[~np.isnan(shown).any(axis=1)]
    limits = [
        means.column(at, of_limits, range_of(own, None)).limits(level)
        for at, own in enumerate(common.T)
    ]
    result.loc[there, "estimate"] = means.estimate
    result.loc[there, ["low", "high"]] = limits
    result.loc[there, "may_be_best"] = True if draws is None else _may_be_best(means, draws, level)
    return result


def _columns(terms: pd.DataFrame, clusters: ArrayLike | None) -> tuple[Floats, list[Any]]:
    """Return the values of all columns, and the labels of the questions, if any."""
    import pandas as pd  # slow to import

    if not isinstance(terms, pd.DataFrame) or not terms.size:
        raise InputError("terms must be a DataFrame with a row a question and a column a method")
    values = np.column_stack([finite(str(name), column) for name, column in terms.items()])
    if clusters is None:
        return values, []
    return values, align_index(terms=terms, clusters=clusters)[1:]


def _column(difference: Floats, labels: list[Any], seed: int) -> Column | None:
    """Return the mean of a difference over units; None without any."""
    sums, sizes = units_of(difference[:, None], *labels)
    if not len(sizes):
        return None
    means = Means(sums, sizes)
    draws = means.resample(source_of(None, seed)) if 1 < len(sizes) < MANY else None
    return means.column(0, draws, (-1.0, 1.0))


def _may_be_best(means: Means, draws: Draws, level: float) -> Floats:
    """Return which columns are not significantly above any other, by the distribution of the
    largest difference, nor beyond what unseen questions may do.
    """
    observed = _studentised(means.estimate, means.covariance)
    # A pair that differs by a constant has no distribution to be compared with.
    known = np.isfinite(observed)
    drawn = np.where(known, _studentised(draws.shift, draws.covariance), 0).max(axis=2)
    critical = np.quantile(drawn, level, axis=0, method="closest_observation")
    is_worse = (observed > critical[:, None]) & _sure(means, level)
    return ~is_worse.any(axis=1)


def _studentised(mean: Floats, covariance: Floats) -> Floats:
    """Return every column's mean less every other's, over its standard error."""
    variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    either = variance[..., :, None] + variance[..., None, :]
    of_difference = either - 2 * covariance
    error = np.sqrt(np.where(of_difference > 1e-12 * either, of_difference, 0))  # rounding
    difference = mean[..., :, None] - mean[..., None, :]
    return ratio(difference, error)


def _sure(means: Means, level: float) -> Floats:
    """Return which columns stay above which others whatever unseen units may do."""
    columns = len(means.estimate)
    one_sided = 1 - 2 * (1 - level) / max(1, columns - 1)  # of each of a column's rivals
    size = means.sizes.sum() / len(means.sizes)
    sure = np.zeros((columns, columns), dtype=bool)
    for i, j in np.ndindex(columns, columns):
        difference = Column(
            estimate=float(means.estimate[i] - means.estimate[j]),
            error=0.0,
            residuals=(means.residuals[:, i] - means.residuals[:, j]) / size,
            bounds=(-1.0, 1.0),
        )
        below, _ = difference.unseen(one_sided)
        sure[i, j] = below > 0
    return sure
