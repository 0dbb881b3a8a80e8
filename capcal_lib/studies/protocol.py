"""Take back the differences between this book and the paper, one correction at a time, on the same
recorded samples."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from capcal_lib.confidence.consistency import read_answers, split_votes
from capcal_lib.errors import InputError
from capcal_lib.grading.judgements import judges
from capcal_lib.probe_names import training_sets
from capcal_lib.results.counting import Counting
from capcal_lib.results.estimated import MISSING_AS, confidence_columns, kind_of_method
from capcal_lib.results.results import CONSISTENCY, results_of
from capcal_lib.results.scores import ROUNDING, brier_terms
from capcal_lib.results.terms import BEST_CONSTANT, COUNTS
from capcal_lib.runs.run import Run
from capcal_lib.shifts import AT_HOME, shift

BY_JUDGE, ALL_TOGETHER = "a judge's verdicts", "all together"
UNDOING = {  # what each correction's switch does, as the subject of a sentence
    "plug-in scores": "Keeping the noise of the samples in the scores",
    "missing as 0.5": "Filling in one half for missing confidences",
    "votes in the pool": "Letting the samples that voted judge the vote too",
    "paper's probes": "Training probes with the paper's recipe instead of ours",
}
PROBE_AT_HOME, OTHER_PROBE, OTHER = GROUPS = (
    "a probe on its own data set",
    "any other probe",
    "any other confidence",
)


def shifts_by_correction(counting: Counting) -> pd.DataFrame:
    """Return how far each score of a model shifts if one correction is taken back, and if all are
    except for the judge's verdicts. Positive shifts are worse.

    The corrections are: ``plug-in scores`` leave the noise of mu_hat in. ``missing as 0.5``
    replaces a missing confidence by one half if the method was asked at all, but not a vote.
    ``votes in the pool`` judges the votes of the same splits by all samples. ``paper's probes`` are
    trained with its recipe. ``a judge's verdicts`` are the mean over the judges that have judged
    every answer to a data set.

    ``counting`` has all our corrections. Returns one row per ``switch``, ``dataset`` and ``method``
    that shifts at all: ``alone``, whether the switch is one of our corrections by itself;
    ``confidence``, one of ``GROUPS``; the ``shift`` and its ``size``.
    """
    ours = results_of(counting)
    terms = brier_terms(ours)
    runs = counting.runs()
    columns = [name for name in confidence_columns(ours) if name != CONSISTENCY]
    asked = ours[columns].groupby(level="dataset").transform("count") > 0
    filled = ours.assign(**ours[columns].fillna(MISSING_AS).where(asked))
    pool = {
        name: split_votes(read_answers(run, k=counting.k_eval), counting.k_c, held_out=False)[
            "term"
        ]
        for name, run in runs.items()
    }
    pooled = ours.assign(**{"votes term": pd.concat(pool, names=["dataset"])})
    by_recipe = results_of(replace(counting, recipe="paper"))
    of_probes = [name for name in confidence_columns(by_recipe) if training_sets(name)]
    probes = by_recipe[[*COUNTS, *of_probes]]
    paper = results_of(replace(counting, recipe="paper", held_out=False))
    switched = {
        "plug-in scores": _means(brier_terms(ours, protocol="paper").where(terms.notna())),
        "missing as 0.5": _means(brier_terms(filled)),
        "votes in the pool": _means(brier_terms(pooled)),
        "paper's probes": _means(brier_terms(probes)),
    }
    judged = _judged(counting, runs)
    if len(judged):
        switched[BY_JUDGE] = judged
    switched[ALL_TOGETHER] = _means(brier_terms(paper, protocol="paper"))
    shifts = pd.DataFrame(switched).sub(_means(terms), axis="index")
    stacked: Any = shifts.rename_axis(columns="switch").stack()
    table = stacked.rename("shift").dropna().reset_index()
    table = table[table["shift"].abs() > ROUNDING].reset_index(drop=True)
    groups = [_group(*pair) for pair in table[["method", "dataset"]].to_numpy()]
    table["alone"] = ~table["switch"].isin([BY_JUDGE, ALL_TOGETHER])
    table["size"] = table["shift"].abs()
    table["switch"] = pd.Categorical(table["switch"], [*switched]).remove_unused_categories()
    table["confidence"] = pd.Categorical(groups, GROUPS).remove_unused_categories()
    return table


def _means(terms: pd.DataFrame) -> "pd.Series[float]":
    """Return the mean term of each data set and method, without the best constant."""
    by_set = terms.drop(columns=BEST_CONSTANT).groupby(level="dataset", sort=False).mean()
    means: Any = by_set.rename_axis(columns="method").stack()
    return means.dropna()


def _judged(counting: Counting, runs: Mapping[str, Run]) -> "pd.Series[float]":
    """Return the mean terms under the judges that have judged every answer to a data set."""
    means = []
    for name, run in runs.items():
        for judge in judges(run):
            try:
                results = results_of(replace(counting, verdicts=f"judge:{judge}"), [name])
            except InputError:  # it has not judged them all
                continue
            means.append(_means(brier_terms(results)))
    if not means:
        return pd.Series(dtype=float)
    return pd.concat(means).groupby(level=[0, 1]).mean()


def _group(method: str, dataset: str) -> str:
    """Tell whether a confidence is a probe, and whether the data set is the probe's own."""
    kind = kind_of_method(method, shift(method, dataset))
    if kind == AT_HOME:
        return PROBE_AT_HOME
    return OTHER_PROBE if kind.startswith("probe") else OTHER
