"""Does a router solve more than random mixing? Every pair of models on every data set of both.

The router is the nearest probe of the small model. A question costs a model its parameters, in
billions, times the tokens that it reads and writes."""

from collections.abc import Mapping
from itertools import combinations

import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import routing_gains
from capcal_lib.manifests import load_model
from capcal_lib.results.results import subjects
from capcal_lib.results.scores import (
    NEAREST_PROBE,
    columns_of,
    keep_nearest_probe,
    mean_over_probes,
    nearest_probe_of,
)
from capcal_lib.runs import read_samples

TOKENS = ["prompt_tokens", "completion_tokens"]
COLUMNS = [
    "dataset",
    "small",
    "large",
    "pair",
    "probe",
    "estimate",
    "low",
    "high",
    "p",
    "verdict",
]


def compare_routers(
    results: Mapping[str, pd.DataFrame], runs: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """Judge on each data set of two models whether the small one's nearest probe is a better router
    than chance at equal cost (``applications.routing_gains``), all cases together by Holm's method.

    ``results`` are those of ``load_results`` and ``runs`` those of ``describe_runs``, by the names
    of models, from the smallest to the largest. Left out are data sets on which neither model
    solves a question, or the probe says nothing of some.

    Returns a row a case: ``dataset``, ``small`` and ``large``; the ``pair``, as "0.5B to 1.5B", by
    parameters; the ``probe``; the mean gain
    ``estimate`` with its 95 % interval ``low`` to ``high``, by itself; ``p``, ``p (Holm)``; and the
    ``verdict``, a category. No gain has a bound that is known beforehand, so that the largest of a
    case, on either side, stands for it.
    """
    rows = []
    for small, large in combinations(results, 2):
        for dataset in runs[small].index.intersection(runs[large].index):
            questions = questions_of_pair(results, runs, small, large, dataset)
            probes = questions[columns_of(questions, NEAREST_PROBE)]
            known = probes.size and probes.notna().all(axis=None)
            if known and questions[["small", "large"]].any(axis=None):
                of_columns = probes.apply(routing_gains, questions=questions)
                gains = mean_over_probes(of_columns)[NEAREST_PROBE]
                clusters = subjects(pd.concat({dataset: gains}, names=["dataset"])).to_numpy()
                most = gains.abs().max()
                tested = metrics.judge_gain(gains, clusters=clusters, bounds=(-most, most))
                probe = nearest_probe_of(results[small].loc[[dataset]], dataset)
                pair = f"{billions(small):.2g}B to {billions(large):.2g}B"
                rows.append([dataset, small, large, pair, probe, *tested])
    judged = metrics.holm(pd.DataFrame(rows, columns=COLUMNS))
    return judged.assign(verdict=pd.Categorical(judged["verdict"], metrics.VERDICTS))


def questions_of_pair(
    results: Mapping[str, pd.DataFrame],
    runs: Mapping[str, pd.DataFrame],
    small: str,
    large: str,
    dataset: str,
) -> pd.DataFrame:
    """Put the questions that two models have answered on a data set side by side.

    Arguments are those of :func:`compare_routers`. Returns a row a question that has two scored
    samples of both: their accuracies ``small`` and ``large``; what an answer costs each, ``small
    cost`` and ``large cost``; what ``reading`` alone costs the small one; and the confidence of its
    nearest ``Probe``, by the paper's recipe in five columns.
    """
    costs = {name: costs_of(runs[name], name, dataset) for name in (small, large)}
    scored = {}
    for name in (small, large):
        subset = keep_nearest_probe(results[name].loc[[dataset]], dataset)
        subset = subset[subset["total"] > 1].droplevel("dataset")
        scored[name] = subset.assign(rate=subset["correct"] / subset["total"])
    table = pd.DataFrame({"small": scored[small]["rate"], "large": scored[large]["rate"]}).dropna()
    table["small cost"] = costs[small].sum(axis="columns")
    table["large cost"] = costs[large].sum(axis="columns")
    table["reading"] = costs[small]["prompt_tokens"]
    return table.join(scored[small][columns_of(scored[small], NEAREST_PROBE)])


def costs_of(runs: pd.DataFrame, model: str, dataset: str) -> pd.DataFrame:
    """Return the mean cost of each question in billions of parameters times tokens, those read and
    those written.
    """
    samples = read_samples(runs["run"][dataset], ["question_id", *TOKENS])
    return samples.groupby("question_id")[TOKENS].mean() * billions(model)


def billions(model: str) -> float:
    """Return how many billions of parameters a model has; 0 where that is not known."""
    return (load_model(model).parameters or 0) / 1e9
