"""Take back the differences between this book and the paper, one correction at a time, on the same
recorded samples."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from capcal_lib.confidence.consistency import consistency, read_answers, split_votes
from capcal_lib.errors import InputError
from capcal_lib.grading.counts import count_run
from capcal_lib.grading.judgements import judges
from capcal_lib.probe_names import training_sets
from capcal_lib.probes import out_of_fold_calibrators, predictions_of
from capcal_lib.results.constant import kind_of_method
from capcal_lib.results.counting import Counting
from capcal_lib.results.estimated import confidence_columns
from capcal_lib.results.judged import judge_cases
from capcal_lib.results.results import INDEX, results_of
from capcal_lib.results.scores import (
    MISSING_AS,
    ROUNDING,
    brier_terms,
    fill_missing,
    questions_differ,
)
from capcal_lib.results.terms import BEST_CONSTANT, COUNTS, question_terms
from capcal_lib.runs.run import Run
from capcal_lib.shifts import shift

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

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
    replaces a missing confidence by one half if the method was asked at all;
    :func:`votes_without_answer` treats votes. ``votes in the pool`` judges the votes of the same
    splits by all samples. ``paper's probes`` are trained with its recipe. ``a judge's verdicts``
    are the mean over the judges that have judged every answer to a data set.

    ``counting`` has all our corrections. Returns one row per ``switch``, ``dataset`` and ``method``
    that shifts at all: ``alone``, whether the switch is one of our corrections by itself;
    ``confidence``, one of ``GROUPS``; the ``shift`` and its ``size``.
    """
    ours = results_of(counting)
    terms = brier_terms(ours)
    runs = counting.runs()
    columns = confidence_columns(ours)
    filled = ours.copy()
    filled[columns] = fill_missing(ours[columns])
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
    kind = kind_of_method(method, dataset)
    if kind == "probe of the data set":
        return PROBE_AT_HOME
    return OTHER_PROBE if kind.startswith("probe") else OTHER


def compare_recalibrated_probes(counting: Counting) -> pd.DataFrame:
    """Compare each tuned probe of one training set before and after Platt's method on its own
    out-of-fold predictions, all cases of a model together.

    This takes no further label, and we do not do it elsewhere. Returns one row per ``dataset``
    whose questions differ and ``method``, with the probe's ``shift`` and the columns of
    :func:`~capcal_lib.results.judged.judge_cases`. The mean gain ``estimate`` is positive if the
    recalibrated probe is nearer to mu. There is no row for a probe if ``capcal probe --draws`` has
    kept nothing for it.
    """
    calibrators = out_of_fold_calibrators(counting.store, counting.model)
    gains = {}
    for name, run in counting.runs().items():
        counts = count_run(run, counting.k_eval, counting.verdicts)[COUNTS]
        predicted, _ = predictions_of(run)
        both = pd.concat({name: counts.join(predicted)}, names=INDEX)
        if not questions_differ(counts):
            continue
        for method in predicted.columns.intersection([*calibrators]):
            known = both[method].dropna()
            after = pd.Series(calibrators[method].predict(known), known.index)
            gain = question_terms(known, both) - question_terms(after, both)
            gains[name, method, shift(method, name)] = gain
    return judge_cases(gains, ["dataset", "method", "shift"])


def votes_without_answer(
    runs: Mapping[str, Run], *, k_eval: int = 100, k_c: int = 10
) -> pd.DataFrame:
    """Return what samples without an answer do to the plug-in score of ``k_c`` votes, which share
    their samples with mu_hat.

    Only questions with k_c samples count. Returns one row per data set of ``runs`` with such
    questions: the share of samples ``without an answer``; the score if these samples ``agree with
    nobody``, and if they vote together ``as a group``; and the ``shift`` from the first to the
    second, positive if the group is worse.
    """
    rows = {}
    for name, run in runs.items():
        answers = read_answers(run, k=k_eval)
        wide: Any = answers.pivot(index="question_id", columns="sample_index")
        drawn = wide["verdict"].notna()
        wide = wide[drawn.iloc[:, :k_c].sum(axis="columns") == k_c]
        if wide.empty:
            continue
        mu = wide["correct"].mean(axis="columns").to_numpy()
        votes = wide["canonical"].iloc[:, :k_c]
        without = (wide["canonical"].isna() & wide["verdict"].notna()).to_numpy().sum()
        alone = pd.Series(consistency(votes.to_numpy())).fillna(MISSING_AS)
        group = consistency(votes.fillna("no answer").to_numpy())
        scores = [_squared(alone, mu), _squared(group, mu)]
        share = without / wide["verdict"].notna().to_numpy().sum()
        rows[name] = [share, *scores, scores[1] - scores[0]]
    columns = ["without an answer", "agree with nobody", "as a group", "shift"]
    return pd.DataFrame(rows, columns).T.rename_axis("dataset")


def _squared(confidence: "ArrayLike", mu: "ArrayLike") -> float:
    """Return the mean squared distance."""
    return float(np.mean((np.asarray(confidence) - np.asarray(mu)) ** 2))
