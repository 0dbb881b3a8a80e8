"""Score each confidence beside its price, in completion tokens per question.

Three confidences ask the model, which costs tokens. A probe costs none, and neither does the best
constant. The probe that was trained nearest to a data set stands for all probes, under the name
``Probe``."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from capcal_lib.errors import naming_extra
from capcal_lib.grading.core import UNSCORED
from capcal_lib.metrics import mean_interval
from capcal_lib.plots import INK, MARKERS, palette
from capcal_lib.probe_names import NEAREST_PROBE
from capcal_lib.probes import nearest_probe
from capcal_lib.reported import constant_score, load_reported
from capcal_lib.results.counting import Counting
from capcal_lib.results.judged import TAKES_TOKENS
from capcal_lib.results.results import CONSISTENCY, describe_runs, results_of, subjects
from capcal_lib.results.terms import BEST_CONSTANT

if TYPE_CHECKING:
    import seaborn as sns


def accuracies(counting: Counting) -> pd.DataFrame:
    """Return the mean expected accuracy of each data set with its interval; and, if enough samples
    were not scored to matter, with those counted as wrong and as right.
    """
    runs, counts = describe_runs(counting), results_of(replace(counting, recipe=None))
    mu = (counts["correct"] / counts["total"]).dropna()
    clusters = subjects(counts)
    means = {
        name: mean_interval(of_set, clusters=clusters[of_set.index], bounds=(0, 1))
        for name, of_set in mu.groupby(level="dataset", sort=False)
    }
    table = pd.DataFrame(means, ["mean μ", "low", "high"]).T.rename_axis("dataset")
    table.insert(0, "questions", runs["questions"])
    if (runs["not scored"] > UNSCORED).any():
        bounds = {"all wrong": "μ, these wrong", "all right": "μ, these right"}
        table = table.join(runs[["not scored", *bounds]].rename(columns=bounds))
    return table


def score_by_price(
    scores: pd.DataFrame, tokens: pd.DataFrame, judged: pd.DataFrame
) -> pd.DataFrame:
    """Put the scores of the confidences that ask the model and of the nearest probe beside the
    tokens that each costs.

    ``scores`` are from ``results.score``, with a column ``recalibrated``; ``tokens`` from
    ``results.costs``; and ``judged`` from ``results.compare_with_constant``, whose data sets are
    kept. Returns one row per ``dataset`` and ``method``: ``brier`` (lower is better) with its
    interval ``low`` to ``high``; the score ``recalibrated``; ``tokens``; and ``constant``, the
    score of the best constant.
    """
    keys = ["dataset", "method"]
    shown = judged[judged["nearest"] | judged["method"].isin(TAKES_TOKENS)]
    numbers = scores[["brier", "low", "high", "recalibrated"]]
    table = shown[[*keys, "nearest"]].join(numbers, on=keys)
    prices: Any = tokens.rename_axis(columns="method").stack()
    table = table.join(prices.rename("tokens"), on=keys).fillna({"tokens": 0.0})  # a probe
    constant: Any = scores["brier"].xs(BEST_CONSTANT, level="method")
    table["method"] = table["method"].mask(table.pop("nearest"), NEAREST_PROBE)
    return table.join(constant.rename("constant"), on="dataset").reset_index(drop=True)


def printed_by_price() -> pd.DataFrame:
    """Put the paper's printed scores beside the tokens that are read off its figures.

    Returns one row per ``model``, ``dataset`` and ``method``: ``brier`` as printed (plug-in, lower
    is better); ``tokens``, accurate to about 6 %; and ``constant``, the score of the best constant,
    which follows from two printed numbers. Response consistency costs the tokens of ten answers,
    the nearest probe none, and P(True) one unless the model reasons first.

    >>> printed = printed_by_price().set_index(["model", "dataset", "method"])
    >>> printed.loc[("qwen3-8b", "gsm8k", "Probe"), ["brier", "tokens"]].tolist()
    [0.0368, 0.0]
    """
    keys = ["model", "dataset", "method"]
    votes = load_reported("consistency").query("k == 10").assign(method=CONSISTENCY)
    printed = pd.concat([load_reported("main"), votes], ignore_index=True)
    printed = printed[[*keys, "value"]].rename(columns={"value": "brier"})
    names = printed["method"].unique()
    near = printed["method"] == [nearest_probe(names, name) for name in printed["dataset"]]
    printed = printed[near | printed["method"].isin(TAKES_TOKENS)].copy()
    printed["method"] = printed["method"].mask(near, NEAREST_PROBE)

    read_off = load_reported("tokens", source="reference code").set_index(keys)["value"]
    ten_answers = 10 * read_off.xs("Response", level="method", drop_level=False)
    tokens = pd.concat([read_off, ten_answers.rename({"Response": CONSISTENCY})])
    printed = printed.join(tokens.rename("tokens"), on=keys)
    one_token = (printed["method"] == "P(True)").astype(float)
    printed["tokens"] = printed["tokens"].fillna(one_token)
    pairs = printed[["model", "dataset"]].to_numpy()
    return printed.assign(constant=[constant_score(*pair) for pair in pairs])


def draw_prices(table: pd.DataFrame, panel: str) -> "sns.FacetGrid":
    """Draw the scores ``brier`` of each ``method`` above its mean ``tokens``, the cheapest first.

    Marks are filled, with an interval if there are ``low`` and ``high``; scores ``recalibrated``,
    if there are any, have hollow marks. A dashed line is the mean of ``constant``. There is one
    panel for each value of ``panel``.

    >>> row = {"dataset": "GSM8K", "method": "P(True)", "brier": 0.2, "tokens": 1.0}
    >>> draw_prices(pd.DataFrame([row | {"constant": 0.1}]), "dataset").axes.size
    1
    """
    with naming_extra():
        import seaborn as sns

    colors = palette(table["method"])
    across = min(3, table[panel].nunique())
    aspect = 2.85 / across
    grid = sns.FacetGrid(
        table, col=panel, col_wrap=across, height=2.5, aspect=aspect, sharex=False, sharey=False
    )
    for title, ax in grid.axes_dict.items():
        rows = table[table[panel] == title]
        ax.axhline(rows["constant"].mean(), color=INK, ls="--", lw=1)
        prices = rows.groupby("method")["tokens"].mean().sort_values()
        for place, name in enumerate(map(str, prices.index)):
            marks = rows[rows["method"] == name]
            places = [place] * len(marks)
            style: dict[str, Any] = {"color": colors[name], "marker": MARKERS.get(name, "o")}
            ax.scatter(places, marks["brier"], label=name, **style)
            if "low" in marks:
                ax.vlines(places, marks["low"], marks["high"], color=colors[name])
            if "recalibrated" in marks:
                ax.scatter(places, marks["recalibrated"], facecolors="white", **style)
        ax.set_xticks(range(len(prices)), [f"{price:,.0f}" for price in prices])
        ax.set(xlim=(-0.5, len(prices) - 0.5), ylim=(min(0, ax.get_ylim()[0]), None))
    grid.set_axis_labels("tokens a question", "score").set_titles("{col_name}")
    entries = grid.axes.flat[0].get_legend_handles_labels()
    grid.figure.legend(*entries, loc="upper center", ncols=4)
    grid.tight_layout(rect=(0, 0, 1, 1 - 0.4 / grid.figure.get_figheight()))  # below the legend
    return grid
