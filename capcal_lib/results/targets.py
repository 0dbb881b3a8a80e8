"""How far are the two targets of a confidence apart: the correctness of one response, and the
expected accuracy? (Sections 3 and 4.1, and appendices A and E, of the paper.)"""

import numpy as np
import pandas as pd

from capcal_lib.applications import deep_samples
from capcal_lib.errors import InputError
from capcal_lib.metrics import (
    correctness_variance_terms,
    divergence,
    expected_response_loss,
    mean_interval,
)
from capcal_lib.metrics.scores import ProperScore
from capcal_lib.metrics.validation import Floats
from capcal_lib.reported import APPLIED
from capcal_lib.results.estimated import differing, estimates
from capcal_lib.results.results import subjects
from capcal_lib.results.scores import Protocol
from capcal_lib.results.terms import COUNTS, NUMBERS

BETWEEN = 0.1, 0.9  # expected accuracies that one sample cannot tell
DEEP = 32  # samples of a question, from which curves and budgets say something
ENOUGH = 10  # samples of a question, among which the correct ones are counted


def judge_alike(results: pd.DataFrame) -> pd.DataFrame:
    """Judge all methods of a data set by the same samples, so that rank correlations, losses and
    other statistics that depend on the noise of mu_hat can be compared.

    Samples that vote may not judge the vote. If a data set has votes, ``correct`` and ``total``
    become the counts of the samples that did not vote, and questions without such samples are left
    out; other data sets stay as they are. Takes and returns the table of ``load_results``.

    >>> index = pd.MultiIndex.from_product([["gsm8k"], ["a"]], names=["dataset", "question_id"])
    >>> results = pd.DataFrame({"correct": [9], "total": [12]}, index)
    >>> results = results.assign(**{"votes correct": 1, "votes total": 2})
    >>> judge_alike(results)[["correct", "total"]].values.tolist()
    [[1, 2]]
    """
    counts = results[COUNTS]
    if "votes total" in results:
        held_out = results[["votes correct", "votes total"]].set_axis(COUNTS, axis="columns")
        voted = held_out["total"].groupby(level="dataset").transform("count") > 0
        counts = counts.where(~voted, held_out, axis="index").dropna().astype(int)
    return counts.join(results.drop(columns=COUNTS))


def accuracy_variance(results: pd.DataFrame) -> "pd.Series[float]":
    """Estimate the variance of expected accuracy over the questions of each data set.

    The variance of mu_hat is larger, the more so the fewer samples a question has. The noise of
    mu_hat adds mu (1 - mu)/total on average; an unbiased estimate of this is subtracted, so the
    result may fall below zero. Questions with one sample are left out; NaN for a single question.

    >>> index = pd.MultiIndex.from_product([["gsm8k"], ["a", "b"]], names=["dataset", None])
    >>> counts = pd.DataFrame({"correct": [0, 2], "total": [2, 4]}, index)
    >>> accuracy_variance(counts).round(3).tolist()  # 0.5**2 / 2 - (0 + 0.5**2 / 3) / 2
    [0.083]
    """
    known = results[results["total"] > 1]
    mu = known["correct"] / known["total"]
    noise = mu * (1 - mu) / (known["total"] - 1)
    variance = mu.groupby(level="dataset", sort=False).var()
    return variance - noise.groupby(level="dataset", sort=False).mean()


def shares_between(counts: pd.DataFrame) -> "pd.Series[float]":
    """Return for each question the probability that a share between .1 and .9 is correct among ten
    of its samples, drawn at random without replacement.

    The share of questions with mu_hat between .1 and .9 depends on the number of samples behind
    mu_hat. The mean of these probabilities is that share, with the same number of samples for all
    questions. NaN for a question with fewer samples.

    ``counts`` has ``correct`` and ``total``. The probability is exact (hypergeometric).

    >>> shares_between(pd.DataFrame({"correct": [5, 2, 9], "total": [10, 20, 9]})).round(3).tolist()
    [1.0, 0.237, nan]
    """
    from scipy.stats import hypergeom  # slow to import

    numbers = np.arange(ENOUGH + 1)
    share = numbers / ENOUGH
    between = numbers[(share > BETWEEN[0]) & (share < BETWEEN[1])]
    known = counts[counts["total"] >= ENOUGH]
    correct, total = known[COUNTS].to_numpy().T[..., None]
    chance = hypergeom.pmf(between, total, correct, ENOUGH).sum(axis=1)
    return pd.Series(chance, known.index).reindex(counts.index)


def response_distances(results: pd.DataFrame, *, protocol: Protocol = "corrected") -> pd.DataFrame:
    """Measure how far one response lies from the expected accuracy on average, on each data set.

    A question's mean distance is 2 mu (1 - mu), twice the correctness variance. The ``corrected``
    protocol estimates it without bias; the ``paper``'s protocol uses mu_hat.

    ``results`` come from ``load_results``; questions with one sample are left out. Returns one row
    per data set with any question left: ``questions``; ``mean distance`` with its 95 % interval
    ``low`` to ``high`` for questions like these; and ``share between``, the mean of
    :func:`shares_between`, which is the share of questions with between .1 and .9 of ten samples
    correct, or NaN if no question has ten. No distance is above 1/2; its unbiased estimate from n
    samples is at most n / (2 (n - 1)), which is 1 for two samples.

    >>> index = pd.MultiIndex.from_product([["gsm8k"], ["a", "b"]])
    >>> index.names = ["dataset", "question_id"]
    >>> counts = pd.DataFrame({"correct": [2, 4], "total": 4}, index)
    >>> response_distances(counts, protocol="paper")["mean distance"].tolist()
    [0.25]
    """
    known = results[results["total"] > 1]
    between = shares_between(known)
    groups = subjects(known)
    rows = {}
    for dataset, subset in known.groupby(level="dataset", sort=False):
        counts = subset["correct"], subset["total"]
        distance = 2 * correctness_variance_terms(*counts, corrected=protocol == "corrected")
        interval = mean_interval(distance, clusters=groups[subset.index], bounds=(0, 0.5))
        rows[str(dataset)] = [len(subset), *interval, between[subset.index].mean()]
    columns = ["questions", "mean distance", "low", "high", "share between"]
    types = dict.fromkeys(columns, float) | {"questions": int}  # also of no rows
    table = pd.DataFrame.from_dict(rows, "index", columns=columns).astype(types)
    return table.rename_axis("dataset")


def losses_by_target(
    results: pd.DataFrame, *, score: ProperScore = "brier", least: float = 0.0
) -> pd.DataFrame:
    """Score every method against both targets on each data set; lower is better.

    The same samples judge all methods of a data set (:func:`judge_alike`). Confidences are clipped
    to [least, 1 - least], since the log score of a wrong 0 or 1 is infinite.

    Returns a table indexed by (dataset, method): the mean ``expected response loss``; the ``Bregman
    information`` of the samples, which for the Brier score is the correctness variance; the
    ``capability loss``; and the ``gap``, the capability loss minus its value under theorem 2
    (expected response loss minus Bregman information). A method without a confidence on a data set
    has no row there; a probe of the paper's recipe has the mean of its five. `InputError` for a
    ``least`` outside [0, 0.5).

    >>> index = pd.MultiIndex.from_tuples([("gsm8k", "a")], names=["dataset", "question_id"])
    >>> results = pd.DataFrame({"correct": 2, "total": 4, "mine": 1.0}, index)
    >>> losses_by_target(results).iloc[0].tolist()
    [0.5, 0.25, 0.25, 0.0]
    """
    if not 0 <= least < 0.5:
        raise InputError(f"least must be at least 0 and below 0.5; got {least}")
    rows = {}
    listed = estimates(judge_alike(results))
    cases = listed.groupby(["dataset", "method"], observed=True, sort=False)
    for case, judged in cases:
        of_members = [
            _losses(member[NUMBERS], score=score, least=least)
            for _, member in judged.groupby("member")
        ]
        rows[case] = np.mean(of_members, axis=0)
    names = ["expected response loss", "Bregman information", "capability loss", "gap"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=names)
    table.index = pd.MultiIndex.from_tuples(table.index, names=["dataset", "method"])
    return table


def _losses(judged: pd.DataFrame, *, score: ProperScore, least: float) -> Floats:
    """Return one row of :func:`losses_by_target`, from judged confidences."""
    s, c, n = judged.to_numpy().T
    s = s.clip(least, 1 - least)
    response = expected_response_loss(s, c, n, score=score).mean()
    information = expected_response_loss(c / n, c, n, score=score).mean()
    capability = divergence(c / n, s, score=score).mean()
    return np.array([response, information, capability, capability - (response - information)])


def sets_to_show(results: pd.DataFrame, dataset: str = "") -> list[str]:
    """List a data set to show, by default the one whose questions differ most, and then the two on
    which the paper tries its applications, MATH-500 and AIME25.

    Only data sets with 32 samples per question count (by ``applications.deep_samples``), or all if
    there are none.

    >>> index = pd.MultiIndex.from_product([["gsm8k", "math500"], ["a", "b"]])
    >>> index.names = ["dataset", "question_id"]
    >>> counts = pd.DataFrame({"correct": [0, 40, 2, 3], "total": 40}, index)
    >>> sets_to_show(counts), sets_to_show(counts, "math500")
    (['gsm8k', 'math500'], ['math500'])
    """
    spread = accuracy_variance(differing(results)).fillna(0)
    depth = results["total"].groupby(level="dataset").agg(deep_samples)
    deep = [str(name) for name in spread.index if depth[name] >= DEEP]
    first = dataset or str(spread[deep or spread.index].idxmax())
    return [first, *(name for name in APPLIED if name in deep and name != first)]
