"""Estimates: one long table with one row per confidence in a question, beside the counts that may
judge it and what the method is.

A method has one member, or five for a probe of the paper's recipe. A number of a method is the mean
over its members. It is never the number of their mean confidence, which nobody trained and which
scores lower. What is missing has no row: a method that was not asked on a data set, a question
without a confidence, a vote of too few samples."""

import numpy as np
import pandas as pd

from capcal_lib.confidence.of_run import TITLES
from capcal_lib.probe_names import read_column, training_sets
from capcal_lib.probes import nearest_probe
from capcal_lib.results.results import CONSISTENCY, VOTES
from capcal_lib.results.terms import BEST_CONSTANT, COUNTS, NUMBERS
from capcal_lib.shifts import AT_HOME, IN_DOMAIN, OUTSIDE, shift

MISSING_AS = 0.5  # the confidence that the paper's code gives a question without one
SEVERAL = "probe of several data sets"
VOTED, STATED, YES = ASKED_KINDS = "response consistency", "verbalized confidence", "P(True)"
ELSEWHERE = IN_DOMAIN, OUTSIDE, SEVERAL  # the kinds of probes of other data sets
KINDS = (AT_HOME, *ELSEWHERE, *ASKED_KINDS, "other")
ABOUT = ["method", "member", "kind", "shift", "nearest"]


def confidence_columns(results: pd.DataFrame) -> list[str]:
    """List the columns of confidences of results: all but those of counts.

    >>> confidence_columns(pd.DataFrame(columns=["correct", "total", "P(True)"]))
    ['P(True)']
    """
    return [name for name in map(str, results) if name not in (*COUNTS, *VOTES, BEST_CONSTANT)]


def methods(results: pd.DataFrame) -> list[str]:
    """List the methods of results; the five probes of the paper's recipe are one method.

    >>> methods(pd.DataFrame(columns=["correct", "total", "Probe (MATH) [0]", "Probe (MATH) [1]"]))
    ['Probe (MATH)']
    """
    return [*dict.fromkeys(read_column(name)[0] for name in confidence_columns(results))]


def cases_of(results: pd.DataFrame) -> pd.DataFrame:
    """Say what each method is on each data set on which it has a confidence.

    Returns a table indexed by (dataset, method): its ``kind``, one of ``KINDS``; of a probe the
    ``shift``; and whether it is the ``nearest`` probe, which stands for all.

    >>> index = pd.MultiIndex.from_product([["gsm8k", "mmlu"], ["a"]])
    >>> index.names = ["dataset", "question_id"]
    >>> cases = cases_of(pd.DataFrame({"P(True)": [0.2, None], "Probe (GSM8K)": 0.5}, index))
    >>> cases["kind"].tolist()
    ['P(True)', 'probe of the data set', 'probe of another domain']
    """
    known = results[confidence_columns(results)].notna().groupby(level="dataset", sort=False).any()
    rows = {}
    for dataset, has in known.iterrows():
        columns = [str(name) for name, any_of in has.items() if any_of]
        present = [*dict.fromkeys(read_column(name)[0] for name in columns)]
        nearest = nearest_probe(present, str(dataset))
        for method in present:
            far = shift(method, str(dataset))
            rows[dataset, method] = [kind_of_method(method, far), far, method == nearest]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=ABOUT[2:])
    table.index = pd.MultiIndex.from_tuples(table.index, names=["dataset", "method"])
    return table.astype({"nearest": bool})


def kind_of_method(method: str, far: str | None) -> str:
    """Return the kind of a method, one of ``KINDS``; of a probe, from its ``shift`` on a data set.

    >>> kind_of_method("Probe (GSM8K)", AT_HOME), kind_of_method("My own", None)
    ('probe of the data set', 'other')
    """
    if method in (CONSISTENCY, *TITLES.values()):
        return method if method in KINDS else method.lower()
    if len(training_sets(method)) > 1:
        return SEVERAL
    return far or "other"


def estimates(results: pd.DataFrame, *names: str, fill: bool = False) -> pd.DataFrame:
    """List every confidence of results beside the counts that may judge it, in one long table.

    ``names`` are methods; without any, all methods of ``results`` are listed. The rows have the
    index of ``results``, data set by data set: ``method``, a category; ``member``, 0, or 0 to 4 for
    the probes of the paper's recipe; its ``kind`` on the data set and, of a probe, the ``shift``;
    whether it is the ``nearest`` probe, which stands for all (``probes.nearest_probe``);
    ``confidence`` in [0, 1]; and ``correct`` and ``total``. Votes are judged by the samples that
    did not vote; every other method is judged by all samples. With ``fill``, a missing confidence
    counts as one half if the method has any on the data set, as in the paper's code; but not a
    vote, which is missing if there are too few samples.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> from capcal_lib.results import load_results
    >>> results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mini-exam"])
    >>> estimates(results, "P(True)", "Response consistency").groupby("method")["total"].max()
    method
    P(True)                 100
    Response consistency     90
    Name: total, dtype: int64
    """
    listed = names or methods(results)
    cases = cases_of(results)
    parts = [pd.DataFrame(columns=["method", "member", *NUMBERS], index=results.index[:0])]
    for column in confidence_columns(results):
        method, member = read_column(column)
        if method not in listed:
            continue
        counts = VOTES[:2] if method == CONSISTENCY and VOTES[0] in results else COUNTS
        part = results[[column, *counts]].set_axis(NUMBERS, axis="columns")
        if fill and method != CONSISTENCY:
            asked = part["confidence"].groupby(level="dataset").transform("count") > 0
            missing = asked & part["confidence"].isna()
            part["confidence"] = part["confidence"].mask(missing, MISSING_AS)
        part = part[part.notna().all(axis="columns") & (part["total"] > 0)]
        parts.append(part.assign(method=method, member=member))
    table = pd.concat(parts[1:] or parts).join(cases, on=["dataset", "method"])
    datasets = results.index.unique("dataset")
    places = datasets.get_indexer(table.index.get_level_values("dataset"))
    table = table[[*ABOUT, *NUMBERS]].iloc[places.argsort(kind="stable")]
    table["method"] = pd.Categorical(table["method"], listed).remove_unused_categories()
    return table.astype({"confidence": np.float64, "correct": int, "total": int, "nearest": bool})


def differing(results: pd.DataFrame) -> pd.DataFrame:
    """Keep the data sets on which any two questions have different shares of correct samples. On
    the others there is nothing to compare.

    >>> index = pd.MultiIndex.from_product([["gsm8k", "mmlu"], ["a", "b"]])
    >>> index.names = ["dataset", "question_id"]
    >>> results = pd.DataFrame({"correct": [0, 0, 1, 2], "total": 4}, index)
    >>> differing(results).index.unique("dataset").tolist()
    ['mmlu']
    """
    mu_hat = results["correct"] / results["total"]
    return results[mu_hat.groupby(level="dataset").transform("nunique") > 1]
