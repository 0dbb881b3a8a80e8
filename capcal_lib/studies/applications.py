"""What does a confidence add in each use, compared with the best rule without one, and does a
router between two models solve more than random mixing? Every model of a store on every data set.

The router is the nearest probe of the small model. A question costs a model its parameters, in
billions, times the tokens that it reads and writes."""

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pandas as pd

from capcal_lib.applications import routing_gains
from capcal_lib.confidence.of_run import TITLES
from capcal_lib.errors import naming_extra
from capcal_lib.manifests import load_model
from capcal_lib.plots import INK, MUTED
from capcal_lib.probe_names import NEAREST_PROBE
from capcal_lib.results.estimated import columns_of
from capcal_lib.results.judged import WINNABLE, judge_cases, tally
from capcal_lib.results.results import CONSISTENCY
from capcal_lib.results.scores import keep_nearest_probe, nearest_probe_of
from capcal_lib.results.uses import USES, compare_use
from capcal_lib.runs import read_samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COMPARED = (*TITLES.values(), CONSISTENCY, NEAREST_PROBE)
BETTER_COLOR, WORSE_COLOR = "#0f766e", "#be123c"


def compare_uses(
    results: Mapping[str, pd.DataFrame],
    runs: Mapping[str, pd.DataFrame],
    concentrations: Mapping[str, "pd.Series[float]"],
) -> pd.DataFrame:
    """Judge every use of every model, as :func:`~capcal_lib.results.uses.compare_use` does one.

    ``results`` are those of ``load_results``, ``runs`` those of ``describe_runs``, and
    ``concentrations`` those of ``describe_probes``, by the names of models. Returns the rows of all
    below one another, with ``use`` and ``model`` beside the others.
    """
    tables = {}
    for use in USES:
        for model, of_model in results.items():
            known = concentrations[model]
            tables[use, model] = compare_use(of_model, use, known, runs=runs[model]["run"])
    if not tables:
        return pd.DataFrame(columns=["use", "model", "dataset", "method", "verdict", WINNABLE])
    table = pd.concat(tables, names=["use", "model", None]).reset_index(["use", "model"])
    return table.reset_index(drop=True)


def count_uses(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Count the verdicts of each method in each use: how many are ``better``, of those that ``could
    be won``; and how many are ``worse``, of all ``cases``.

    ``comparisons`` are those of :func:`compare_uses`. Every one of ``USES`` and ``COMPARED`` has a
    row, in that order, and then what else was compared.
    """
    counts = tally(comparisons, [comparisons["use"], comparisons["method"]])
    named = dict.fromkeys([*COMPARED, *comparisons["method"]])
    every = pd.MultiIndex.from_product([USES, [*named]], names=["use", "method"])
    return counts.reindex(every, fill_value=0)


def draw_uses(counts: pd.DataFrame) -> "Figure":
    """Draw in which share of all comparisons a method is worse, left of a line at zero, and in
    which share of those that could be won it is better, right of it: a panel for each method, a row
    for each use.

    ``counts`` are those of :func:`count_uses`. A dash stands where none could be won.

    >>> row = pd.DataFrame({"better": [2], "could be won": [8], "worse": [1], "cases": [10]})
    >>> row.index = pd.MultiIndex.from_tuples([("Budget", "Probe")], names=["use", "method"])
    >>> [float(bar.get_width()) for bar in draw_uses(row).axes[0].patches]
    [-0.1, 0.25]
    """
    with naming_extra():
        import matplotlib.pyplot as plt

    by_method = counts.groupby(level="method", sort=False)
    layout: dict[str, Any] = {"figsize": (7.2, 3.2), "layout": "constrained", "squeeze": False}
    figure, axes = plt.subplots(1, by_method.ngroups, sharex=True, sharey=True, **layout)
    for (method, group), ax in zip(by_method, axes.flat, strict=True):
        uses = group.index.get_level_values("use")
        worse = group["worse"] / group["cases"].clip(lower=1)
        better = group["better"] / group[WINNABLE].clip(lower=1)
        ax.barh(uses, -worse, color=WORSE_COLOR, label="worse, of all")
        ax.barh(uses, better, color=BETTER_COLOR, label="better, of those that could be won")
        ax.axvline(0, color=INK, lw=1)
        for use in uses[group[WINNABLE] == 0]:
            ax.text(0.05, use, "–", va="center", color=MUTED)
        ax.grid(visible=False, axis="y")
        ax.set(title=method, xlabel="share", xlim=(-1, 1))
        ax.set_xticks([-0.5, 0, 0.5], ["0.5", "0", "0.5"])
    axes[0, 0].invert_yaxis()
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


TOKENS = ["prompt_tokens", "completion_tokens"]
ROUTED = ["dataset", "small", "large", "pair", "probe"]


def compare_routers(
    results: Mapping[str, pd.DataFrame], runs: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """Judge on each data set of two models whether the small one's nearest probe is a better router
    than chance at equal cost (``applications.routing_gains``), all cases together by Holm's method.

    ``results`` are those of ``load_results`` and ``runs`` those of ``describe_runs``, by the names
    of models, from the smallest to the largest. Left out are data sets on which neither model
    solves a question, and questions of which the probe says nothing.

    Returns a row a case: ``dataset``, ``small`` and ``large``; the ``pair``, as "0.5B to 1.5B", by
    parameters; the ``probe``; the mean gain
    ``estimate`` with its 95 % interval ``low`` to ``high``, by itself; ``p``, ``p (Holm)``; and the
    ``verdict``, a category. No gain has a bound that is known beforehand, so that the largest of a
    case, on either side, stands for it.
    """
    gains, bounds = {}, {}
    for small, large in combinations(results, 2):
        for dataset in runs[small].index.intersection(runs[large].index):
            questions = questions_of_pair(results, runs, small, large, dataset)
            columns = columns_of(questions, NEAREST_PROBE)
            questions = questions.dropna(subset=columns)
            probes = questions[columns]
            if probes.size and questions[["small", "large"]].any(axis=None):
                of_members = probes.apply(routing_gains, questions=questions)
                gain = of_members.mean(axis="columns")
                probe = nearest_probe_of(results[small].loc[[dataset]], dataset)
                pair = f"{billions(small):.2g}B to {billions(large):.2g}B"
                case = dataset, small, large, pair, probe
                gains[case] = pd.concat({dataset: gain}, names=["dataset"])
                bounds[case] = -gain.abs().max(), gain.abs().max()
    return judge_cases(gains, ROUTED, bounds=bounds)


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
