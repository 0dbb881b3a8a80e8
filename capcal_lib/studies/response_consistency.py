"""Let some of a question's samples vote, and score the votes against the samples that did not vote
(*held-out*) and against all samples (*same pool*).

``answers`` is a table from ``confidence.read_answers`` for several data sets, with one row per
sample and the data set as the first level of the index. ``terms`` is a table from
:func:`score_votes`."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib.applications import deep_samples
from capcal_lib.confidence.consistency import majority, split_votes
from capcal_lib.results.counting import Counting
from capcal_lib.results.results import PAPER_VOTES, results_of, votes_title
from capcal_lib.results.terms import question_terms

WAYS = ["held-out", "same pool"]
SIDES = {True: "wrong", False: "right"}
LEVELS = ["dataset", "votes", "question_id"]


def votes_of_datasets(answers: pd.DataFrame) -> "pd.Series[int]":
    """Return how many samples of a question vote in the examples from each data set: ten or five,
    so that at least two do not vote.

    A data set with fewer samples is left out. The largest data set comes first.

    >>> index = pd.MultiIndex.from_product([["gsm8k"], range(12)], names=["dataset", None])
    >>> votes_of_datasets(pd.DataFrame({"question_id": "q"}, index)).to_dict()
    {'gsm8k': 10}
    """
    votes, questions = {}, {}
    for dataset, rows in answers.groupby(level="dataset", sort=False):
        sizes = rows.groupby("question_id").size()
        fitting = [number for number in (10, 5) if deep_samples(sizes) > number + 1]
        if fitting:
            votes[str(dataset)], questions[str(dataset)] = fitting[0], len(sizes)
    largest = sorted(votes, key=lambda name: questions[name], reverse=True)
    return pd.Series([votes[name] for name in largest], largest, dtype=np.int64)


def score_votes(
    answers: pd.DataFrame, *, numbers: Collection[int] = PAPER_VOTES, corrected: bool = True
) -> pd.DataFrame:
    """Let random choices of k_c samples vote, and score their votes in both ways, as
    ``confidence.split_votes`` does for the main table.

    Returns a table indexed by ``dataset``, number of ``votes`` k_c and ``question_id``.
    ``held-out`` and ``same pool`` are the squared distances of the vote from mu_hat of these
    samples, minus the noise of mu_hat if ``corrected``. ``share`` is the mean share of the votes
    that the winning answer has, and ``noise`` is its variance from one draw of votes to the next.

    Questions without an answer are left out. So are numbers of votes that would leave fewer than
    two of a data set's samples (``applications.deep_samples``).
    """
    numbers = tuple(numbers)
    column = "term" if corrected else "plug_in"
    terms = {}
    for dataset, rows in answers.groupby(level="dataset", sort=False):
        depth = deep_samples(rows.groupby("question_id").size())
        for k_c in numbers:
            if depth > k_c + 1:
                table = split_votes(rows, k_c)[[column, "share", "noise"]]
                table.insert(1, "same pool", split_votes(rows, k_c, held_out=False)[column])
                table = table.rename(columns={column: "held-out"})
                terms[dataset, k_c] = table.dropna(subset=WAYS)
    if not terms:
        index = pd.MultiIndex.from_tuples([], names=LEVELS)
        return pd.DataFrame(columns=[*WAYS, "share", "noise"], index=index, dtype=np.float64)
    return pd.concat(terms, names=LEVELS)


def find_majorities(answers: pd.DataFrame) -> "pd.Series[str]":
    """Tell for each question whether the most frequent of all its answers is ``right`` or
    ``wrong``.

    The index is (dataset, question_id). A question that nobody answers is wrong.
    """
    sides = {}
    for key, samples in answers.groupby(["dataset", "question_id"], sort=False):
        winner, _ = majority(samples["canonical"].tolist())
        right = samples.loc[samples["canonical"] == winner, "correct"] == 1
        sides[key] = SIDES[not right.mean() >= 0.5]
    index = pd.MultiIndex.from_tuples(list(sides), names=["dataset", "question_id"])
    return pd.Series([*sides.values()], index, name="majority")


def score_first_votes(
    counting: Counting, *, numbers: Collection[int] = PAPER_VOTES
) -> "pd.Series[float]":
    """Score votes under the paper's protocol: the first samples vote and judge themselves, and no
    noise is subtracted. A question without an answer among its votes has 0.5.

    Returns plug-in terms with the index of :func:`score_votes`, NaN if a question has fewer samples
    than votes.
    """
    votes = results_of(replace(counting, recipe=None), votes=numbers)
    terms = {
        number: question_terms(votes[votes_title(number)], votes, corrected=False)
        for number in numbers
    }
    by_number: Any = pd.concat(terms, names=["votes"])
    return by_number.reorder_levels(LEVELS)
