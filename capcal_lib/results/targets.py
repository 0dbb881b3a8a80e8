"""How far are the two targets of a confidence apart: the correctness of one response, and the
expected accuracy? (Sections 3 and 4.1, and appendices A and E, of the paper.)"""

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.metrics import (
    correctness_variance_terms,
    divergence,
    expected_response_loss,
    mean_interval,
)
from capcal_lib.metrics.scores import ProperScore
from capcal_lib.results.results import judged_by, subjects
from capcal_lib.results.scores import Protocol, confidence_columns, mean_over_probes

BETWEEN = 0.1, 0.9  # expected accuracies that one sample cannot tell


def response_distances(results: pd.DataFrame, *, protocol: Protocol = "corrected") -> pd.DataFrame:
    """Measure how far one response lies from the expected accuracy on average, on each data set.

    A question's mean distance is 2 mu (1 - mu), twice the correctness variance, which is estimated
    without bias by the ``corrected`` protocol, and from mu_hat by the ``paper``'s.

    ``results`` are those of ``load_results``; questions with one sample are left out. Returns a row
    a data set, and none where there is no such question: ``questions``, ``mean distance``, with its
    95 % interval ``low`` to ``high`` for questions like these, and ``share between``, that of the
    questions with mu_hat between .1 and .9. No distance is above 1/2; its unbiased estimate is at
    most n / (2 (n - 1)) of n samples, which is 1 of two.

    >>> index = pd.MultiIndex.from_product([["gsm8k"], ["a", "b"]])
    >>> index.names = ["dataset", "question_id"]
    >>> counts = pd.DataFrame({"correct": [2, 4], "total": 4}, index)
    >>> response_distances(counts, protocol="paper")["mean distance"].tolist()
    [0.25]
    """
    known = results[results["total"] > 1]
    mu = known["correct"] / known["total"]
    groups = subjects(known)
    rows = {}
    for dataset, own in known.groupby(level="dataset", sort=False):
        counts = own["correct"], own["total"]
        distance = 2 * correctness_variance_terms(*counts, corrected=protocol == "corrected")
        interval = mean_interval(distance, clusters=groups[own.index], bounds=(0, 0.5))
        between = mu[own.index].between(*BETWEEN, inclusive="neither")
        rows[str(dataset)] = [len(own), *interval, between.mean()]
    columns = ["questions", "mean distance", "low", "high", "share between"]
    types = dict.fromkeys(columns, float) | {"questions": int}  # also of no rows
    table = pd.DataFrame.from_dict(rows, "index", columns=columns).astype(types)
    return table.rename_axis("dataset")


def losses_by_target(
    results: pd.DataFrame, *, score: ProperScore = "brier", least: float = 0.0
) -> pd.DataFrame:
    """Score every method by both targets on each data set; lower is better.

    ``least`` is the least confidence, and 1 less it the highest, to which others are moved: the log
    score of a wrong 0 or 1 is infinite.

    Returns a table indexed by (dataset, method): the mean ``expected response loss``; the ``Bregman
    information`` of the samples, of the Brier score the correctness variance; the ``capability
    loss``; and the ``gap``, capability loss less what theorem 2 says it is, the first less the
    second. A method without a confidence on a data set has no row there; a probe by the paper's
    recipe has the mean of its five. `InputError` for a ``least`` outside [0, 0.5).

    >>> index = pd.MultiIndex.from_tuples([("gsm8k", "a")], names=["dataset", "question_id"])
    >>> results = pd.DataFrame({"correct": 2, "total": 4, "mine": 1.0}, index)
    >>> losses_by_target(results).iloc[0].tolist()
    [0.5, 0.25, 0.25, 0.0]
    """
    if not 0 <= least < 0.5:
        raise InputError(f"least must be at least 0 and below 0.5; got {least}")
    tables = {}
    for dataset, own in results.groupby(level="dataset", sort=False):
        columns = {}
        for column in confidence_columns(own):
            judged = judged_by(own, column)
            if judged.empty:
                continue
            s, c, n = judged.to_numpy().T
            s = s.clip(least, 1 - least)
            response = expected_response_loss(s, c, n, score=score).mean()
            information = expected_response_loss(c / n, c, n, score=score).mean()
            capability = divergence(c / n, s, score=score).mean()
            gap = capability - (response - information)
            columns[column] = [response, information, capability, gap]
        tables[str(dataset)] = mean_over_probes(pd.DataFrame(columns)).T
    names = ["expected response loss", "Bregman information", "capability loss", "gap"]
    table = pd.concat(tables, names=["dataset", "method"])
    return table.set_axis(names[: table.shape[1]], axis="columns")
