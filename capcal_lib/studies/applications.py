"""Compare a confidence in each use with the best rule that needs none, and a router between two
models with random mixing, for every model of a store on every data set.

The router is the nearest probe of the smaller model. A question costs a model its parameters, in
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
    """Judge every use for every model, as :func:`~capcal_lib.results.uses.compare_use` judges one.

    Each argument maps the names of models to tables: ``results`` from ``load_results``, ``runs``
    from ``describe_runs`` and ``concentrations`` from ``describe_probes``. Returns the rows of all
    comparisons in one table, with the columns ``use`` and ``model``.
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
    """Count for each use and method how many of the comparisons that ``could be won`` are
    ``better``, and how many of all ``cases`` are ``worse``.

    ``comparisons`` is a table from :func:`compare_uses`. Each pair of ``USES`` and ``COMPARED`` has
    a row, in this order. Other methods that were compared follow.
    """
    counts = tally(comparisons, [comparisons["use"], comparisons["method"]])
    named = dict.fromkeys([*COMPARED, *comparisons["method"]])
    every = pd.MultiIndex.from_product([USES, [*named]], names=["use", "method"])
    return counts.reindex(every, fill_value=0)


def draw_uses(counts: pd.DataFrame) -> "Figure":
    """Draw how often each method is worse or better in each use: one panel per method, one row per
    use.

    To the left of zero is the share of all comparisons in which the method is worse. To the right
    is the share of the comparisons that could be won in which it is better. ``counts`` is a table
    from :func:`count_uses`. A dash means that no comparison could be won.

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
        ax.barh(uses, -worse, color=WORSE_COLOR, label="worse, of all cases")
        ax.barh(uses, better, color=BETTER_COLOR, label="better, of the cases that could be won")
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
    """Test whether the nearest probe of a smaller model is a better router to a larger one than
    chance at equal cost (``applications.routing_gains``).

    ``results`` and ``runs`` map the names of models, from the smallest to the largest, to tables
    from ``load_results`` and ``describe_runs``. Every pair of models is judged on every data set of
    both, with all cases together by Holm's method. Data sets on which neither model solves a
    question are left out, and so are questions for which the probe has no prediction.

    Returns one row per case: ``dataset``, ``small`` and ``large``; the ``pair`` by parameters, such
    as "0.5B to 1.5B"; the ``probe``; the mean gain ``estimate``, with its own 95 % interval ``low``
    to ``high``; ``p`` and ``p (Holm)``; and the ``verdict``, a category. A gain has no bound that
    is known beforehand, so the largest absolute gain of a case is used.
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
    """Put the answers of two models to the same questions of a data set side by side.

    Arguments are as in :func:`compare_routers`. Returns one row per question with at least two
    scored samples from each model: the accuracies ``small`` and ``large``; the costs of an answer,
    ``small cost`` and ``large cost``; the cost of ``reading`` the question for the small model; and
    the confidence of its nearest ``Probe``, in five columns for the paper's recipe.
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
    """Return the mean cost of each question: billions of parameters times the tokens read, and
    times the tokens written.
    """
    samples = read_samples(runs["run"][dataset], ["question_id", *TOKENS])
    return samples.groupby("question_id")[TOKENS].mean() * billions(model)


def billions(model: str) -> float:
    """Return how many billions of parameters a model has, or 0 if this is unknown."""
    return (load_model(model).parameters or 0) / 1e9
