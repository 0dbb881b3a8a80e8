"""Is a confidence that takes tokens closer to the expected accuracy than the nearest probe, which
takes none?

This module answers the question for each method on each data set of a model; the main table and
the page on small models take the answer from here. All cases of a model are judged together by
Holm's method."""

import pandas as pd

from capcal_lib.probe_names import NEAREST_PROBE
from capcal_lib.results.estimated import methods
from capcal_lib.results.judged import gains_over, judge_cases
from capcal_lib.results.results import CONSISTENCY
from capcal_lib.results.scores import Protocol, brier_terms, keep_nearest_probe, questions_differ

ASKED = ("Verbalized confidence", "P(True)", CONSISTENCY)


def keep_asked_and_nearest_probe(results: pd.DataFrame) -> pd.DataFrame:
    """Keep only the confidences that the model is asked for and each data set's nearest probe. Data
    sets without any confidence, or with equal accuracy on all questions, are left out.
    """
    selected = []
    for name, subset in results[results["total"] > 1].groupby(level="dataset", sort=False):
        subset = keep_nearest_probe(subset, str(name))
        others = {*methods(subset)} - {*ASKED, NEAREST_PROBE}
        subset = subset.drop(columns=[*others])
        if questions_differ(subset) and methods(subset):
            selected.append(subset)
    return pd.concat(selected) if selected else results.iloc[:0]


def compare_with_nearest_probe(
    results: pd.DataFrame, *, protocol: Protocol = "corrected"
) -> pd.DataFrame:
    """Judge each confidence that takes tokens against the nearest probe, which takes none, on each
    data set; all cases together, by Holm's method.

    Returns one row per ``dataset`` and ``method``: ``estimate``, how much lower the method's score
    is than the probe's, with the interval ``low`` to ``high`` of the case alone, ``p``, ``p
    (Holm)`` and a ``verdict``. ``method`` and ``verdict`` are categories, so that counts include
    those that do not occur. No rows if there is no probe, or nothing to compare it with.
    """
    terms = brier_terms(keep_asked_and_nearest_probe(results), protocol=protocol)
    asked = [name for name in ASKED if name in terms]
    gains = {}
    if NEAREST_PROBE in terms:
        gains = gains_over(terms[[NEAREST_PROBE, *asked]], NEAREST_PROBE)
    judged = judge_cases(gains, ["dataset", "method"])
    return judged.assign(method=pd.Categorical(judged["method"], ASKED))
