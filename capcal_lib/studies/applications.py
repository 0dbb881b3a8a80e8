"""What does a confidence add in each use, compared with the best rule without one, and does a
router between two models solve more than random mixing? Every model of a store on every data set.

The router is the nearest probe of the small model. A question costs a model its parameters, in
billions, times the tokens that it reads and writes."""

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import (
    abstaining_gains,
    budget_gains,
    evaluation_gains,
    label_gains,
    others_mean,
    pass_at_k,
    pass_at_k_gains,
    risk_area_bounds,
    routing_gains,
)
from capcal_lib.confidence.of_run import TITLES
from capcal_lib.manifests import load_model
from capcal_lib.plots import INK, MUTED
from capcal_lib.probes import nearest_probe
from capcal_lib.results.constant import judge_together, table_of_cases
from capcal_lib.results.results import CONSISTENCY, judged_by, subjects
from capcal_lib.results.scores import (
    NEAREST_PROBE,
    columns_of,
    fill_unstated,
    keep_nearest_probe,
    mean_over_probes,
    methods,
    nearest_probe_of,
)
from capcal_lib.runs import Run, read_samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

USES = ("pass@k", "Budget", "Abstaining", "Labels saved", "Evaluation")
METHODS = (*TITLES.values(), CONSISTENCY, NEAREST_PROBE)
CHEAPER_THAN_VOTES = ("Budget", "Evaluation")  # what they spend is less than ten votes cost
ATTEMPTS = 16
EACH = 2  # samples a question of a budget
BETTER_COLOR, WORSE_COLOR = "#0f766e", "#be123c"
CASE = ["use", "method", "model", "dataset"]


def compare_uses(
    results: Mapping[str, pd.DataFrame],
    runs: Mapping[str, pd.DataFrame],
    concentrations: Mapping[str, "pd.Series[float]"],
) -> pd.DataFrame:
    """Judge in each use, on each data set of each model, what a confidence gains over the best rule
    without one, all comparisons together (``results.constant.judge_together``).

    ``results`` are those of ``load_results``, ``runs`` those of ``describe_runs``, and
    ``concentrations`` those of ``describe_probes``, by the names of models. Compared are what the
    model was asked for or what was brought along, votes where they do not cost more than is spent,
    and the nearest probe, under the name ``Probe``: never one that is chosen by its score. Data
    sets without a solved question are left out.

    Returns a row a comparison: ``use``, ``method``, ``model``, ``dataset``; the ``confidence``,
    which for a probe is its own name; the mean gain ``estimate`` with its 95 % interval ``low`` to
    ``high``, by itself; ``p (Holm)``; and the ``verdict``, a category.
    """
    cases, perfect, names = {}, {}, {}
    for model, own in results.items():
        for dataset in own[own["total"] > 1].index.unique("dataset"):
            questions = questions_to_use(own, runs[model]["run"][dataset], dataset)
            if not questions["correct"].any():
                continue  # there is nothing to gain
            probe = nearest_probe(methods(questions.drop(columns="tokens")), dataset)
            for method in methods(questions.drop(columns="tokens")):
                if method.startswith("Probe (") and method != probe:
                    continue  # the nearest stands for all
                gains = gains_of_method(questions, method, concentrations[model].get(method))
                best, bounds = perfect_gains(questions, method)
                kind = NEAREST_PROBE if method == probe else method
                for use in USES:
                    dear = kind == CONSISTENCY and use in CHEAPER_THAN_VOTES
                    if not dear and gains[use].count() > 1:
                        case = use, kind, model, dataset
                        cases[case] = judge_use(gains[use], dataset, bounds[use])
                        perfect[case] = judge_use(best[use], dataset, bounds[use])
                        names[case] = method
    tested = table_of_cases(cases, CASE).dropna()
    judged = judge_together(tested, table_of_cases(perfect, CASE).reindex(tested.index))
    judged.insert(0, "confidence", [names[case] for case in judged.index])
    return judged.reset_index()


def questions_to_use(results: pd.DataFrame, run: Run, dataset: str) -> pd.DataFrame:
    """Return the results of one data set under the index of its questions, as they are used, with
    the mean completion ``tokens`` of an answer.

    Questions with fewer than two scored samples, and columns without any confidence, are left out;
    where the model was asked, a question of which it has stated nothing counts as one half.
    """
    own = results[results["total"] > 1]
    own = own[own.index.get_level_values("dataset") == dataset]
    own = own.droplevel("dataset").dropna(axis="columns", how="all")
    own = fill_unstated(own)
    samples = read_samples(run, ["question_id", "completion_tokens"])
    return own.assign(tokens=samples.groupby("question_id")["completion_tokens"].mean())


def gains_in_uses(
    confidence: "pd.Series[float]",
    correct: "pd.Series[int]",
    total: "pd.Series[int]",
    tokens: "pd.Series[float]",
    concentration: float | None = None,
) -> pd.DataFrame:
    """Return what a confidence gains in each use: a row a question, a column for each of ``USES``.

    Arguments are those of ``applications``; ``tokens`` are those of an answer.
    """
    given = confidence, correct, total
    gains = {
        "pass@k": pass_at_k_gains(*given, ATTEMPTS, concentration=concentration),
        "Budget": budget_gains(*given, EACH, concentration=concentration),
        "Abstaining": abstaining_gains(*given),
        "Labels saved": label_gains(*given),
        "Evaluation": evaluation_gains(*given, tokens),
    }
    return pd.DataFrame(gains)


def gains_of_method(
    questions: pd.DataFrame, method: str, concentration: float | None
) -> pd.DataFrame:
    """Return the gains of a method in each use; a probe by the paper's recipe has the mean of those
    of its five.
    """
    by_column = {}
    for column in columns_of(questions, method):
        scored = judged_by(questions, column)
        given = scored["confidence"], scored["correct"], scored["total"]
        tokens = questions["tokens"].reindex(scored.index)
        by_column[column] = gains_in_uses(*given, tokens, concentration)
    by_use = pd.concat(by_column, axis="columns").swaplevel(axis=1)
    return pd.DataFrame({use: mean_over_probes(pd.DataFrame(by_use[use]))[method] for use in USES})


def perfect_gains(
    questions: pd.DataFrame, method: str
) -> tuple[pd.DataFrame, dict[str, tuple[float, float]]]:
    """Return the gains that mu_hat itself has in the place of a method, and the least and the
    largest gain of a question, in each use.
    """
    scored = judged_by(questions, columns_of(questions, method)[0])
    correct, total = scored["correct"], scored["total"]
    tokens = questions["tokens"].reindex(scored.index)
    gains = gains_in_uses(correct / total, correct, total, tokens)
    return gains, bounds_in_uses(correct, total)


def bounds_in_uses(
    correct: "pd.Series[int]", total: "pd.Series[int]"
) -> dict[str, tuple[float, float]]:
    """Return the least and the largest gain of a question in each use.

    Squared errors, of pass@k and of labels, gain most where a confidence is right and the mean of
    the others is far off, and lose most where it is wrong and that is near. A budget loses a whole
    question where it spends nothing on one that even spending solves, and gains one the other way
    round. When abstaining see ``applications.risk_area_bounds``. In an evaluation the variance of
    an answer is at most 1/4: a question with a quarter of the samples has four times that, three
    quarters more, and one with very many has none.
    """
    solved = pd.Series(pass_at_k(correct, total, [ATTEMPTS])[:, 0]).dropna()
    bounds = {
        "Budget": (-1.0, 1.0),
        "Abstaining": risk_area_bounds(len(correct)),
        "Labels saved": metrics.bounds_over_constant(others_mean(correct / total).dropna()),
        "Evaluation": (-3 / 4, 1 / 4),
    }
    if len(solved) > 1:
        bounds["pass@k"] = metrics.bounds_over_constant(others_mean(solved).dropna())
    return bounds


def judge_use(
    gains: "pd.Series[float]", dataset: str, bounds: tuple[float, float]
) -> "pd.Series[float]":
    """Test a mean gain, with subjects drawn whole where there are any: ``metrics.judge_gain``."""
    known = gains.dropna()
    clusters = subjects(pd.concat({dataset: known.to_frame()}, names=["dataset"]))
    return metrics.judge_gain(known, clusters=clusters.to_numpy(), bounds=bounds)


def count_uses(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Count the verdicts of each method in each use: how many are ``better``, how many ``worse``,
    and how many are ``decidable``, which is all but the undecidable.

    ``comparisons`` are those of :func:`compare_uses`. Every one of ``USES`` and ``METHODS`` has a
    row, in that order, and then what else was compared.
    """
    verdict = comparisons["verdict"]
    marks = {
        "better": verdict == "better",
        "worse": verdict == "worse",
        "decidable": verdict != "undecidable",
    }
    counts = pd.DataFrame(marks).groupby([comparisons["use"], comparisons["method"]]).sum()
    named = dict.fromkeys([*METHODS, *comparisons["method"]])
    every = pd.MultiIndex.from_product([USES, [*named]], names=["use", "method"])
    return counts.reindex(every, fill_value=0)


def draw_uses(counts: pd.DataFrame) -> "Figure":
    """Draw how often a method is worse, left of a line at zero, and better, right of it, and of how
    many comparisons that could be decided: a panel for each method, a row for each use.

    ``counts`` are those of :func:`count_uses`. A dash stands where none is decidable.

    >>> row = pd.DataFrame({"better": [2], "worse": [1], "decidable": [11]})
    >>> row.index = pd.MultiIndex.from_tuples([("Budget", "Probe")], names=["use", "method"])
    >>> [text.get_text() for text in draw_uses(row).axes[0].texts]
    ['of 11']
    """
    import matplotlib.pyplot as plt

    by_method = counts.groupby(level="method", sort=False)
    layout: dict[str, Any] = {"figsize": (7.2, 3.2), "layout": "constrained", "squeeze": False}
    figure, axes = plt.subplots(1, by_method.ngroups, sharex=True, sharey=True, **layout)
    for (method, own), ax in zip(by_method, axes.flat, strict=True):
        uses = own.index.get_level_values("use")
        ax.barh(uses, -own["worse"], color=WORSE_COLOR, label="worse")
        ax.barh(uses, own["better"], color=BETTER_COLOR, label="better")
        ax.axvline(0, color=INK, lw=1)
        for use, decidable in zip(uses, own["decidable"], strict=True):
            beside = {"transform": ax.get_yaxis_transform(), "va": "center", "color": MUTED}
            ax.text(1.03, use, f"of {decidable}" if decidable else "–", **beside)
        ax.xaxis.get_major_locator().set_params(integer=True, nbins=4, min_n_ticks=1)
        ax.xaxis.set_major_formatter(lambda count, _: f"{abs(count):.0f}")
        ax.set(title=method, xlabel="comparisons")
    axes[0, 0].invert_yaxis()
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


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
    solves a question, and questions of which the probe says nothing.

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
            columns = columns_of(questions, NEAREST_PROBE)
            questions = questions.dropna(subset=columns)
            probes = questions[columns]
            if probes.size and questions[["small", "large"]].any(axis=None):
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
