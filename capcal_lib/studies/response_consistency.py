"""Let some of a question's samples vote, and score the votes against the samples that did not vote,
or, as in the paper, against all samples.

``answers`` is a table from ``confidence.read_answers`` for several data sets, with one row per
sample and the data set as the first level of the index."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib.applications import deep_samples
from capcal_lib.confidence.consistency import split_votes
from capcal_lib.results.counting import Counting
from capcal_lib.results.results import PAPER_VOTES, results_of, votes_title
from capcal_lib.results.terms import question_terms

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
    answers: pd.DataFrame, *, numbers: Collection[int] = PAPER_VOTES
) -> "pd.Series[float]":
    """Let random choices of k_c samples vote, and score their votes by the other samples, as
    ``confidence.split_votes`` does for the main table.

    Returns the squared distances of the vote from mu_hat of the samples that did not vote, minus
    the noise of mu_hat, indexed by ``dataset``, number of ``votes`` k_c and ``question_id``.

    Questions without an answer are left out. So are numbers of votes that would leave fewer than
    two of a data set's samples (``applications.deep_samples``).
    """
    terms = {}
    for dataset, rows in answers.groupby(level="dataset", sort=False):
        depth = deep_samples(rows.groupby("question_id").size())
        for k_c in numbers:
            if depth > k_c + 1:
                terms[dataset, k_c] = split_votes(rows, k_c)["term"].dropna()
    if not terms:
        return pd.Series(dtype=float, index=pd.MultiIndex.from_tuples([], names=LEVELS))
    return pd.concat(terms, names=LEVELS)


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
