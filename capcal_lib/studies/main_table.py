"""Score each confidence beside its price, in completion tokens per question.

Three confidences ask the model, which costs tokens. A probe costs none, and neither does the best
constant. The probe that was trained nearest to a data set stands for all probes, under the name
``Probe``."""

from typing import TYPE_CHECKING

import pandas as pd

from capcal_lib.errors import naming_extra
from capcal_lib.plots import INK, MARKERS, mark_verdicts, palette
from capcal_lib.probe_names import NEAREST_PROBE
from capcal_lib.probes import nearest_probe
from capcal_lib.reported import constant_score, load_reported
from capcal_lib.results.nearest import ASKED, keep_asked_and_nearest_probe
from capcal_lib.results.results import CONSISTENCY
from capcal_lib.results.scores import Protocol, nearest_probe_of, score
from capcal_lib.results.terms import ORACLES, UNIFORM

if TYPE_CHECKING:
    import seaborn as sns

PRICED = ["dataset", "method", "brier", "low", "high", "tokens", "verdict"]
PRICES = {"0": 0, "1": 1, "100": 100, "10,000": 10_000}  # marks of an axis of tokens
LEVELS = [0, 0.05, 0.1, 0.2, 0.5]  # marks of an axis of scores


def score_by_price(
    results: pd.DataFrame,
    tokens: pd.DataFrame,
    judged: pd.DataFrame,
    *,
    protocol: Protocol = "corrected",
) -> pd.DataFrame:
    """Score the confidences that ask the model, the nearest probe and the best constant, beside the
    tokens that each costs.

    ``results`` has all data sets of a model, ``tokens`` is from ``results.costs``, and ``judged``
    is from :func:`~capcal_lib.results.compare_with_constant`. Returns one row per ``dataset`` and
    ``method``: ``brier`` (lower is better) with its interval ``low`` to ``high``, ``tokens``, and
    the ``verdict`` from ``judged``. The verdict is empty for the constant itself and if no
    questions differ. There are no rows if :func:`keep_asked_and_nearest_probe` keeps none.
    """
    compared = keep_asked_and_nearest_probe(results)
    if compared.empty:
        return pd.DataFrame(columns=PRICED)
    scores = score(compared, protocol=protocol)[["brier", "low", "high"]]
    scores = scores.drop([UNIFORM, *ORACLES], level="method")
    prices = tokens.rename_axis(columns="method").stack()
    scores["tokens"] = prices.reindex(scores.index).fillna(0.0)  # a probe, and the constant
    verdicts = judged.set_index(["dataset", "method"])["verdict"].astype(str)
    probes = {}
    for name, subset in results.groupby(level="dataset", sort=False):
        probes[name] = nearest_probe_of(subset, str(name))
    scores["verdict"] = [
        verdicts.get((name, probes[name] if method == NEAREST_PROBE else method), "")
        for name, method in scores.index
    ]
    return scores.reset_index()[PRICED]


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
    printed = printed[near | printed["method"].isin(ASKED)].copy()
    printed["method"] = printed["method"].mask(near, NEAREST_PROBE)

    read_off = load_reported("tokens", source="reference code").set_index(keys)["value"]
    ten_answers = 10 * read_off.xs("Response", level="method", drop_level=False)
    tokens = pd.concat([read_off, ten_answers.rename({"Response": CONSISTENCY})])
    printed = printed.join(tokens.rename("tokens"), on=keys)
    one_token = (printed["method"] == "P(True)").astype(float)
    printed["tokens"] = printed["tokens"].fillna(one_token)
    pairs = printed[["model", "dataset"]].to_numpy()
    return printed.assign(constant=[constant_score(*pair) for pair in pairs])


def draw_prices(table: pd.DataFrame) -> "sns.FacetGrid":
    """Draw scores against the tokens that they cost, with one panel per data set and the best
    constant as a dashed line.

    ``table`` is from :func:`score_by_price`; its data sets are the titles of panels. Marks are
    filled as in ``plots.mark_verdicts``. Both axes are linear near 0 and logarithmic beyond.

    >>> row = {"brier": 0.1, "low": 0.05, "high": 0.2, "tokens": 0.0, "verdict": ""}
    >>> table = pd.DataFrame([row, row]).assign(method=["Best constant", "Probe"], dataset="GSM8K")
    >>> draw_prices(table).axes.size
    1
    """
    with naming_extra():
        import seaborn as sns

    table = table.rename(columns={"brier": "estimate"})
    asked = table[table["method"] != "Best constant"]
    colors = palette(asked["method"])
    across = min(3, table["dataset"].nunique())
    grid = sns.FacetGrid(
        table, col="dataset", col_wrap=across, height=2.5, aspect=2.85 / across, sharey=True
    )
    for title, ax in grid.axes_dict.items():
        ax.set_yscale("symlog", linthresh=0.1)
        panel = table[table["dataset"] == title]
        constant = panel[panel["method"] == "Best constant"]
        ax.axhline(constant["estimate"].item(), color=INK, ls="--", lw=1)
        for name, color in colors.items():
            row, marker = panel[panel["method"] == name], MARKERS.get(name, "o")
            mark_verdicts(ax, row["tokens"], row, color=color, marker=marker, upright=True)
    for name, color in colors.items():
        ax.scatter([], [], color=color, marker=MARKERS.get(name, "o"), label=name)
    _set_price_axes(grid, dearest=3e4)
    grid.set_titles("{col_name}")
    grid.figure.legend(loc="upper center", ncols=4)
    grid.tight_layout(rect=(0, 0, 1, 0.93))
    return grid


def draw_printed_prices(printed: pd.DataFrame) -> "sns.FacetGrid":
    """Draw the paper's scores against the tokens that they cost, with one panel per model.

    A small mark is a data set, a large mark is the mean over data sets, and a dashed line is the
    mean of the best constant. ``printed`` is from :func:`printed_by_price`; its models are the
    titles of panels. Both axes are linear near 0 and logarithmic beyond.

    >>> row = {"model": "Mine", "method": "P(True)", "brier": 0.2, "tokens": 1.0, "constant": 0.1}
    >>> draw_printed_prices(pd.DataFrame([row])).axes.size
    1
    """
    with naming_extra():
        import seaborn as sns

    colors = palette(printed["method"])
    grid = sns.FacetGrid(printed, row="model", height=2.4, aspect=3)
    for title, ax in grid.axes_dict.items():
        panel = printed[printed["model"] == title]
        ax.set_yscale("symlog", linthresh=0.1)
        ax.axhline(panel["constant"].mean(), color=INK, ls="--", lw=1, label="Best constant")
        for name, marks in panel.groupby("method", sort=False):
            style = {"color": colors[str(name)], "marker": MARKERS.get(str(name), "o")}
            ax.scatter(marks["tokens"], marks["brier"], s=20, **style)
            mean = marks[["tokens", "brier"]].mean()
            ax.scatter(*mean, s=130, edgecolors="white", zorder=3, label=name, **style)
    _set_price_axes(grid, dearest=3e5)
    grid.set_titles("{row_name}")
    grid.figure.set(layout_engine="constrained", figheight=0.8 + 2.2 * grid.axes.size)
    entries = grid.axes.flat[0].get_legend_handles_labels()
    grid.figure.legend(*entries, loc="outside upper center", ncols=3)
    return grid


def _set_price_axes(grid: "sns.FacetGrid", dearest: float) -> None:
    """Set the axes of scores against tokens, up to ``dearest`` tokens."""
    grid.set(xscale="symlog", xlim=(-0.4, dearest))
    grid.set(xticks=[*PRICES.values()], xticklabels=[*PRICES])
    grid.set(ylim=(-0.01, 0.8), yticks=LEVELS, yticklabels=LEVELS)
    grid.set_axis_labels("tokens a question", "score")
