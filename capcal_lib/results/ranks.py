"""How well do confidences order the questions of a data set, from hard to easy?

Spearman's rank correlation of a confidence with the expected accuracy is 1 where the surer question
is always the easier one, and 0 where a confidence says nothing of the order; higher is better. It
does not ask whether a confidence is right on its scale."""

import numpy as np
import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.metrics import spearman
from capcal_lib.metrics.validation import check_int
from capcal_lib.probes import probe_of
from capcal_lib.results.results import judged_by, subjects
from capcal_lib.results.scores import columns_of, confidence_columns, mean_over_probes, methods

RANKED = ["rank correlation", "low", "high", "questions"]
BESIDE_HIGHEST = ("highest", "behind", "inconclusive")


def points_of(results: pd.DataFrame) -> pd.DataFrame:
    """Put the confidences of all methods below one another, each beside the accuracy by which it
    may be judged.

    ``results`` are those of ``load_results``. Returns a row a confidence of a question, indexed by
    ``column`` and then as ``results`` are, with ``method``, ``confidence`` and ``mu``, the share of
    correct samples; of a probe by the paper's recipe five ``column`` are one ``method``.
    `InputError` where there are no confidences.

    >>> index = pd.MultiIndex.from_tuples([("gsm8k", "a")], names=["dataset", "question_id"])
    >>> points = points_of(pd.DataFrame({"correct": 3, "total": 4, "mine": 0.5}, index))
    >>> points[["confidence", "mu"]].to_numpy().tolist()
    [[0.5, 0.75]]
    """
    tables = {column: judged_by(results, column) for column in confidence_columns(results)}
    if not tables:
        raise InputError("there are no confidences to rank: no method has predicted two questions")
    points = pd.concat(tables, names=["column"])
    points["method"] = points.index.get_level_values("column").map(probe_of)
    points["mu"] = points["correct"] / points["total"]
    return points[["method", "confidence", "mu"]]


def rank_correlations(results: pd.DataFrame) -> pd.DataFrame:
    """Correlate the ranks of each method with those of the expected accuracy, on each data set.

    Returns a table indexed by (dataset, method): ``rank correlation``, in [-1, 1], with its 95 %
    interval ``low`` to ``high``, and the ``questions`` that have a confidence. A method that says
    the same of every question has no row, and neither has a data set whose questions are all alike.
    A probe by the paper's recipe has the mean of its five.

    The interval takes Fisher's transformation, with the standard error of Bonett and Wright,
    "Sample size requirements for estimating Pearson, Kendall and Spearman correlations" (2000).
    Where questions come in subjects, they are not independent, and the error is that of the
    jackknife over subjects (:func:`subject_interval`).

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> from capcal_lib.results import load_results
    >>> results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mini-exam"])
    >>> rank_correlations(results).loc[("mini-exam", "P(True)")].round(2).tolist()
    [0.02, -0.17, 0.22, 102.0]
    """
    rows = {}
    for dataset, own in results.groupby(level="dataset", sort=False):
        groups = subjects(own)
        for method in methods(own):
            tables = [judged_by(own, column) for column in columns_of(own, method)]
            r = _correlation(tables)
            if np.isfinite(r):
                n = float(np.mean([len(table) for table in tables if len(table) > 1]))
                if groups.is_unique:
                    interval = rank_interval(r, n)
                else:
                    interval = subject_interval(tables, groups)
                rows[str(dataset), method] = [r, *interval, n]
    index = pd.MultiIndex.from_tuples(list(rows), names=["dataset", "method"])
    return pd.DataFrame(list(rows.values()), index, RANKED, dtype=np.float64)


def rank_interval(correlation: float, questions: float) -> tuple[float, float]:
    """Return the 95 % interval of a rank correlation over so many questions.

    >>> [round(float(end), 3) for end in rank_interval(0.5, 100)]
    [0.326, 0.641]
    """
    error = np.sqrt((1 + correlation**2 / 2) / max(1, questions - 3))
    with np.errstate(divide="ignore"):  # a perfect correlation is infinite, and has no width
        middle = np.arctanh(correlation)
    return float(np.tanh(middle - 1.96 * error)), float(np.tanh(middle + 1.96 * error))


def _correlation(tables: list[pd.DataFrame]) -> float:
    """Return the mean rank correlation over tables of ``judged_by``; one without an order, or with
    fewer than two questions, is left out, and NaN where all are.
    """
    correlations = [spearman(*table.to_numpy().T) for table in tables if len(table) > 1]
    return float(pd.Series(correlations, dtype=np.float64).mean())


def subject_interval(tables: list[pd.DataFrame], groups: "pd.Series[str]") -> tuple[float, float]:
    """Return the 95 % interval of a rank correlation for subjects like these: Fisher's, with the
    error from how far the correlation moves as each subject is left out.

    ``tables`` are those of ``judged_by``, one a confidence, whose correlations are averaged, and
    ``groups`` names the subject of each question. NaN for a single subject.
    """
    from scipy.stats import t  # slow to import

    r = _correlation(tables)
    own = [groups[table.index] for table in tables]
    left_out = []
    for subject in pd.concat(own).unique():
        pairs = zip(tables, own, strict=True)
        left_out.append(_correlation([table[group != subject] for table, group in pairs]))
    free = len(left_out) - 1
    error = np.sqrt(free * np.var(left_out))  # the jackknife's
    error_of_z = error / max(1 - r**2, np.finfo(float).tiny)
    with np.errstate(divide="ignore"):  # a perfect correlation is infinite, and has no width
        low, high = np.arctanh(r) + error_of_z * t.ppf([0.025, 0.975], free)
    return float(np.tanh(low)), float(np.tanh(high))


def compare_ranks(subset: pd.DataFrame, *, draws: int = 500, seed: int = 0) -> pd.DataFrame:
    """Say which methods order the questions of one data set significantly worse than the method of
    the highest rank correlation.

    Two methods on the same questions share part of their error, so that questions are drawn anew,
    in whole subjects where there are any, each with what all methods say of it and with its
    samples. A method is ``behind`` where it is
    below the highest in so nearly all draws that none of these comparisons is likely to be chance
    (Bonferroni, at 5 %).

    Returns a row a method: ``rank correlation``, the middle 95 % of its draws, ``low`` to ``high``,
    and a ``verdict``, one of the categories ``highest``, ``behind`` and ``inconclusive``.
    A method that says the same of every question has no row; a probe by the paper's recipe has the
    mean of its five. `InputError` where no method has a row.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> from capcal_lib.results import load_results
    >>> results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mini-exam"])
    >>> compare_ranks(results.loc[["mini-exam"]], draws=50)["verdict"].value_counts()["highest"]
    np.int64(1)
    """
    check_int("draws", draws, least=2)
    points = points_of(subset)
    confidences = points["confidence"].unstack("column")
    mu = points["mu"].unstack("column")
    correlations = mean_over_probes(correlate(confidences, mu).to_frame().T).iloc[0].dropna()
    if correlations.empty:
        raise InputError("no method tells one question from another, or all questions are alike")
    groups, _ = pd.factorize(subjects(mu))
    order = np.argsort(groups, kind="stable")
    members = np.split(order, np.bincount(groups).cumsum()[:-1])  # the rows of each subject
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(draws):
        chosen = rng.integers(len(members), size=len(members))
        rows = np.concatenate([members[subject] for subject in chosen])
        drawn.append(correlate(confidences.iloc[rows], mu.iloc[rows]))
    samples = mean_over_probes(pd.DataFrame(drawn))[correlations.index]
    highest = correlations.idxmax()
    leads = samples.drop(columns=highest).rsub(samples[highest], axis="index")
    behind = leads.quantile(0.025 / max(1, leads.shape[1])) > 0
    verdicts = behind.map({True: "behind", False: "inconclusive"})
    verdicts = pd.Series({highest: "highest"} | verdicts.to_dict())
    table = pd.DataFrame(
        {
            "rank correlation": correlations,
            "low": samples.quantile(0.025),
            "high": samples.quantile(0.975),
            "verdict": pd.Categorical(verdicts[correlations.index], BESIDE_HIGHEST),
        }
    )
    return table.rename_axis("method")


def correlate(confidences: pd.DataFrame, mu: pd.DataFrame) -> "pd.Series[float]":
    """Correlate the ranks of each column with those of the same column of ``mu``, which is NaN on
    the same rows; NaN of a column that is the same throughout.
    """
    ranks, ranks_of_mu = confidences.rank(), mu.rank()
    centred = (ranks - ranks.mean()).to_numpy()
    centred_mu = (ranks_of_mu - ranks_of_mu.mean()).to_numpy()
    both = np.nansum(centred * centred_mu, axis=0)
    lengths = np.sqrt(np.nansum(centred**2, axis=0) * np.nansum(centred_mu**2, axis=0))
    with np.errstate(invalid="ignore"):  # 0 / 0 where all ranks are alike
        return pd.Series(both / lengths, confidences.columns)
