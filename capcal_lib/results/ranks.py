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
from capcal_lib.results.results import judged_by
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

    >>> from capcal_lib.manifests import RECORDED_RUNS
    >>> from capcal_lib.results import load_results
    >>> results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mini-exam"])
    >>> rank_correlations(results).loc[("mini-exam", "P(True)")].round(2).tolist()
    [0.02, -0.17, 0.22, 102.0]
    """
    rows = {}
    for dataset, own in results.groupby(level="dataset", sort=False):
        for method in methods(own):
            correlations, questions = [], []
            for column in columns_of(own, method):
                judged = judged_by(own, column)
                if len(judged) > 1:
                    correlations.append(spearman(*judged.to_numpy().T))
                    questions.append(len(judged))
            if np.isfinite(correlations).any():
                r, n = float(np.nanmean(correlations)), float(np.mean(questions))
                rows[str(dataset), method] = [r, *rank_interval(r, n), n]
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


def compare_ranks(subset: pd.DataFrame, *, draws: int = 500, seed: int = 0) -> pd.DataFrame:
    """Say which methods order the questions of one data set significantly worse than the method of
    the highest rank correlation.

    Two methods on the same questions share part of their error, so that questions are drawn anew,
    each with what all methods say of it and with its samples. A method is ``behind`` where it is
    below the highest in so nearly all draws that none of these comparisons is likely to be chance
    (Bonferroni, at 5 %).

    Returns a row a method: ``rank correlation``, the middle 95 % of its draws, ``low`` to ``high``,
    and a ``verdict``, one of the categories ``highest``, ``behind`` and ``inconclusive``.
    A method that says the same of every question has no row; a probe by the paper's recipe has the
    mean of its five. `InputError` where no method has a row.

    >>> from capcal_lib.manifests import RECORDED_RUNS
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
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(draws):
        rows = rng.integers(len(mu), size=len(mu))
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
