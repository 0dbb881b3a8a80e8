"""Measure how many samples per question a score needs.

We draw again from the recorded samples, fewer for each question, as if no more existed. What counts
is how much wider the interval of a score becomes, for other questions like these. Only the
questions of a data set with most samples are used."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib.applications import deep_samples
from capcal_lib.metrics import capability_brier_terms, mean_interval
from capcal_lib.metrics.validation import Floats
from capcal_lib.results.estimated import KINDS, VOTED, estimates
from capcal_lib.results.results import subjects
from capcal_lib.results.terms import NUMBERS

MORE_THAN = 10  # samples, with no more than which nothing can be drawn again
FEWER = 5, 10, 20, 50
REDRAWS = 10  # of fewer samples
GROWTH = ["k", "dataset", "method", "kind", "samples", "percent"]


def deep_questions(results: pd.DataFrame) -> pd.DataFrame:
    """Keep the questions of each data set that have as many samples as ``deep_samples`` says, if
    that is more than ten. Leave out data sets whose questions are all alike.

    >>> index = pd.MultiIndex.from_product([["gsm8k"], ["a", "b"]])
    >>> index.names = ["dataset", "question_id"]
    >>> deep_questions(pd.DataFrame({"correct": [1, 2], "total": 12}, index))["total"].tolist()
    [12, 12]
    """
    enough = results["total"] > MORE_THAN
    if not enough.any():
        return results[enough]
    of_dataset = results[enough].groupby(level="dataset")
    most = of_dataset["total"].transform(deep_samples)
    deep = results[enough][results["total"][enough] >= most]
    varied = deep.groupby(level="dataset")["correct"].transform("nunique") > 1
    return deep[varied]


def interval_width(judged: pd.DataFrame, k: int, *, rng: np.random.Generator) -> float:
    """Return the width of the 95 % interval of a corrected score with ``k`` samples per question.

    The samples are drawn at random from the recorded ones, without replacement. The width is the
    mean over ten draws. ``judged`` are a method's estimates, with at least k samples of each
    question.
    """
    confidence, correct, total = judged.to_numpy().T
    correct, wrong = correct.astype(int), (total - correct).astype(int)
    groups = subjects(judged).to_numpy()
    widths = []
    for _ in range(REDRAWS):
        drawn = rng.hypergeometric(correct, wrong, k)
        terms = capability_brier_terms(confidence, drawn, k, corrected=True)
        _, low, high = mean_interval(terms, clusters=groups, bounds=(0, 1))
        widths.append(high - low)
    return float(np.mean(widths))


def growths_of(
    judged: pd.DataFrame, *, ks: Sequence[int], most: int, rng: np.random.Generator
) -> Floats:
    """Return by how many percent the interval is wider with each of ``ks`` samples than with all
    ``most``, shape (n_ks,). ``judged`` are a method's estimates.
    """
    by_all = interval_width(judged, most, rng=rng)
    widths = np.array([interval_width(judged, k, rng=rng) for k in ks])
    return np.asarray(100 * (widths / by_all - 1))


def interval_growth(results: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Return how much wider the interval of each score becomes with 5, 10, 20 and 50 samples per
    question.

    ``results`` is a table from ``load_results``. *Response consistency* is left out, because its
    votes are samples too. Returns one row per case: ``k``, ``dataset``, ``method`` and its
    ``kind``, as in ``compare_with_constant``; the number of ``samples`` per question, more than k;
    and by how many ``percent`` the interval is wider than with all samples, as a mean over ten
    draws. For the paper's recipe this is the mean of its five probes. Each case is drawn from
    ``seed`` anew, so that no method moves the numbers of another. There are no rows if no question
    has more than ten samples.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> from capcal_lib.results import load_results
    >>> results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mini-exam"])
    >>> growth = interval_growth(results)
    >>> growth.query("method == 'P(True)'").set_index("k")["percent"].round().to_dict()
    {5: 50.0, 10: 24.0, 20: 14.0, 50: 3.0}
    """
    rows = []
    for case, judged in confidences_to_score(results):
        rng = np.random.default_rng(seed)
        most = int(judged["total"].min())
        ks = [k for k in FEWER if k < most]
        members = judged.groupby("member")[NUMBERS]
        of_members = [growths_of(member, ks=ks, most=most, rng=rng) for _, member in members]
        for k, percent in zip(ks, np.mean(of_members, axis=0), strict=True):
            rows.append([k, *case, most, percent])
    table = pd.DataFrame(rows, columns=GROWTH)
    return table.assign(kind=pd.Categorical(table["kind"], KINDS))


def confidences_to_score(results: pd.DataFrame) -> Any:
    """Group the estimates on deep questions by data set, method and kind, without votes and without
    methods that have fewer than two confidences.
    """
    listed = estimates(deep_questions(results))
    listed = listed[listed["kind"] != VOTED]
    case = ["dataset", "method", "kind"]
    sizes = listed.groupby([*case, "member"], observed=True)["total"].transform("size")
    return listed[sizes > 1].groupby(case, observed=True, sort=False)
