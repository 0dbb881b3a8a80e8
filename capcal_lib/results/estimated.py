"""Estimates: one row per confidence in a question, beside the counts that may judge it.

A method has one member, or several: a probe of the paper's recipe has five, each in a column of its
own. A number of a method is the mean over its members. It is never the number of their mean
confidence, which nobody trained and which scores lower."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib.probe_names import probe_of
from capcal_lib.results.results import CONSISTENCY, VOTES
from capcal_lib.results.terms import BEST_CONSTANT, COUNTS, NUMBERS


def confidence_columns(results: pd.DataFrame) -> list[str]:
    """List the columns of confidences of results: all but those of counts.

    >>> confidence_columns(pd.DataFrame(columns=["correct", "total", "P(True)"]))
    ['P(True)']
    """
    return [name for name in map(str, results) if name not in (*COUNTS, *VOTES, BEST_CONSTANT)]


def columns_of(results: pd.DataFrame, method: str | None) -> list[str]:
    """List the columns that hold a method's confidences: one, or five for a probe of the paper's
    recipe, or none if the results do not have the method.

    >>> results = pd.DataFrame(columns=["P(True)", "Probe (MATH) [0]", "Probe (MATH) [1]"])
    >>> columns_of(results, "Probe (MATH)")
    ['Probe (MATH) [0]', 'Probe (MATH) [1]']
    """
    return [name for name in confidence_columns(results) if probe_of(name) == method]


def methods(results: pd.DataFrame) -> list[str]:
    """List the methods of results; the five probes of the paper's recipe are one method.

    >>> methods(pd.DataFrame(columns=["correct", "total", "Probe (MATH) [0]", "Probe (MATH) [1]"]))
    ['Probe (MATH)']
    """
    return [*dict.fromkeys(map(probe_of, confidence_columns(results)))]


def estimates(results: pd.DataFrame, *names: str) -> pd.DataFrame:
    """List every confidence of results beside the counts that may judge it, in one long table.

    ``names`` are methods; without any, all methods of ``results`` are listed. The rows have the
    index of ``results``, method by method: ``method``, a category; ``member``, 0, or 0 to 4 for the
    probes of the paper's recipe; ``confidence`` in [0, 1]; and ``correct`` and ``total``. Votes are
    judged by the samples that did not vote; every other method is judged by all samples. Questions
    without a confidence or a scored sample have no row; methods without rows are no category.

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
    parts = [pd.DataFrame(columns=["method", "member", *NUMBERS], index=results.index[:0])]
    for method in listed:
        votes = method == CONSISTENCY and VOTES[0] in results
        counts = VOTES[:2] if votes else COUNTS
        for member, column in enumerate(columns_of(results, method)):
            part = results[[column, *counts]].set_axis(NUMBERS, axis="columns").dropna()
            part = part[part["total"] > 0].astype({"correct": int, "total": int})
            part.insert(0, "method", method)
            part.insert(1, "member", member)
            parts.append(part)
    table = pd.concat(parts[1:] or parts).astype({"confidence": np.float64})
    table["method"] = pd.Categorical(table["method"], listed).remove_unused_categories()
    return table


def mean_over_members(listed: pd.DataFrame, compute: Callable[[pd.DataFrame], Any]) -> Any:
    """Return the mean of a number, or of one number per question, over a method's members.

    ``listed`` are the :func:`estimates` of one method. ``compute`` takes the ``confidence``,
    ``correct`` and ``total`` of a member.

    >>> results = pd.DataFrame({"correct": [1], "total": [2]})
    >>> for fold, confidence in enumerate([0.1, 0.3]):
    ...     results[f"Probe (MATH) [{fold}]"] = confidence
    >>> listed = estimates(results, "Probe (MATH)")
    >>> mean_over_members(listed, lambda member: member["confidence"]).tolist()
    [0.2]
    """
    members = [compute(member[NUMBERS]) for _, member in listed.groupby("member")]
    return sum(members[1:], start=members[0]) / len(members)
