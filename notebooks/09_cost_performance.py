# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What a confidence costs

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged

# %% tags=["hide-input"]
from itertools import pairwise

import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import plots
from capcal_lib.book import notebook, tables
from capcal_lib.manifests import load_model
from capcal_lib.metrics import gains
from capcal_lib.plots import MARKERS
from capcal_lib.probes import nearest_probe
from capcal_lib.reported import constant_score, load_reported
from capcal_lib.results import (
    brier_terms,
    confidence_columns,
    costs,
    keep_nearest_probe,
    load_results,
    methods,
    score,
    subjects,
)

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
evidence = notebook.evidence_of(data)
paper = protocol == "paper"
counted = {"k_eval": k_eval, "verdicts": verdicts}
counted |= {"held_out": not paper, "recipe": "paper" if paper else "tuned"}
results = load_results(runs, model, **counted).query("total > 1")

# %% tags=["hide-input"]
answered = results[confidence_columns(results)]
answered = answered.groupby("dataset", sort=False).count()
solved = results["correct"].groupby("dataset", sort=False).sum()
sets = [
    name for name in answered.index if solved[name] and answered.loc[name].any()
]
none = {
    "scores": "No data set has a solved question and a confidence: capcal confidence."
}
notebook.about(data, {"printed": ""} if sets else none)

# %% tags=["hide-input"]
CONSTANT, VOTES = "Best constant", "Response consistency"
ASKED = ["Verbalized confidence", "P(True)", VOTES]
MARKS = {name: MARKERS.get(name, "o") for name in [*ASKED, "Probe"]}
TICKS = {"xscale": "symlog", "xticks": [0, 1, 100, 10_000]}
TICKS["xticklabels"] = ["0", "1", "100", "10,000"]

# %% [markdown] needs="scores"
# A confidence is scored beside its price: the tokens that it takes. The probe is the one that was trained on the nearest
# questions, and the best constant, the mean accuracy of the other questions, is free as well.


# %%
# needs scores
def compared(subset):
    """Keep three ways to ask, and the nearest probe."""
    subset = keep_nearest_probe(subset, subset.index[0][0])
    others = [name for name in methods(subset) if name not in MARKS]
    return subset.drop(columns=others)


# %%
# needs scores
tokens = costs(runs, model, k_eval=k_eval).rename_axis(columns="method")
scores = pd.concat(
    score(compared(results.loc[[name]]), protocol=protocol) for name in sets
)
scores = scores[["brier", "low", "high"]].join(tokens.stack().rename("tokens"))
scores = scores.drop(["Uniform random", "Oracle RC", "Oracle CC"], level=1)
scores["tokens"] = scores["tokens"].fillna(0)  # a probe, and the constant

# %% [markdown]
# A method stands on the *Pareto front* if none that is as cheap scores lower: from cheap to dear, these are the rows whose
# score is below all before them.


# %%
def pareto_front(table):
    """Keep the rows that no other beats in both tokens and score."""
    cheap_first = table.sort_values(["tokens", "brier"])
    best_before = cheap_first["brier"].cummin().shift(fill_value=np.inf)
    return cheap_first[cheap_first["brier"] < best_before]


# %%
# needs scores
by_set = scores.groupby(level="dataset", sort=False)
fronts = pd.concat([pareto_front(subset) for _, subset in by_set])
made = scores.index.get_level_values("method").value_counts()
stand = fronts.index.get_level_values("method").value_counts()

# %% tags=["hide-input"]
# needs scores
named = {"Probe": "a probe", VOTES: "ten votes", CONSTANT: "a constant"}
phrases = [
    f"{name} on {stand.get(method, 0)} of {made[method]}"
    for method, name in named.items()
    if method in made
]

# %% tags=["finding"]
# needs scores
notebook.finding(
    "The best score for its price comes from {told} data sets.",
    told=" and ".join(phrases[:2]),
)

# %% tags=["hide-input"]
# needs scores
drawn = scores.rename(index=data["title"]).reset_index()
points = drawn[drawn["method"] != CONSTANT]
colors = plots.palette(points["method"])
across = min(3, len(sets))

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Score against mean completion tokens a question, with 95 % intervals; lower left is better. The steps are the front: what stands above them is dearer and no better than something else. Dashed is the best constant, which costs nothing; above it, tokens are spent for less than nothing.", "name": "fig-cost"}, "image": {"alt": "A panel a data set with score against tokens on a logarithmic axis that begins at zero tokens: a mark a method, a step line through the front, and a dashed line for the best constant."}} paper=["figure-3", "figure-4", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs scores
options = {"x": "tokens", "y": "brier", "hue": "method", "palette": colors}
options |= {"style": "method", "markers": MARKS, "s": 60, "zorder": 3}
options |= {"height": 2.5, "aspect": 2.85 / across}
options |= {"col_wrap": across, "facet_kws": {"legend_out": False}}
grid = sns.relplot(points, col="dataset", **options)
for title, axes in grid.axes_dict.items():
    subset = drawn[drawn["dataset"] == title].set_index("method")
    front = pareto_front(subset)
    reach = [*front["tokens"], 3e4], [*front["brier"], front["brier"].min()]
    axes.set_yscale("symlog", linthresh=0.1)
    axes.step(*reach, where="post", color=plots.MUTED, lw=1)
    axes.axhline(subset.loc[CONSTANT, "brier"], color=plots.INK, ls="--", lw=1)
    subset = subset.drop(index=CONSTANT)
    ends = subset["tokens"], subset["low"], subset["high"]
    axes.vlines(*ends, subset.index.map(colors))
grid.set(xlim=(-0.4, 3e4), **TICKS).set_titles("{col_name}")
levels = [0, 0.05, 0.1, 0.2, 0.5]
grid.set(ylim=(-0.01, 0.8), yticks=levels, yticklabels=levels)
grid.set_axis_labels("tokens a question", "score")
place = {"bbox_to_anchor": (0.5, 1), "ncols": 4, "title": ""}
sns.move_legend(grid, "upper center", **place)
_ = grid.tight_layout(rect=(0, 0, 1, 0.93))

# %% [markdown] needs="scores"
# An interval that reaches below the next row says that these questions cannot decide.

# %% label="cost-front" paper=["figure-3", "figure-4"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"] tags=["hide-input"]
# needs scores
front = fronts.rename(index=data["title"]).reset_index()
tables.show(
    front.rename(columns={"dataset": "data set", "brier": "score"}),
    "The Pareto front of each data set, from cheap to dear.",
    tokens="{:,.0f}",
    evidence=evidence,
)

# %% [markdown]
# ## As the paper prints it
#
# The paper draws the same for three models and seven data sets. Here its printed scores stand against the tokens read
# off its figures, to about 6 %. Response consistency writes ten answers, a probe nothing, and P(True) one token,
# unless the model reasons first. The score of the best constant follows from two printed numbers.

# %% tags=["hide-input"]
keys = ["model", "dataset", "method"]
votes = load_reported("consistency").query("k == 10").assign(method=VOTES)
printed = pd.concat([load_reported("main"), votes], ignore_index=True)
printed = printed[[*keys, "value"]].rename(columns={"value": "brier"})
probes = printed["method"].unique()
nearest = [nearest_probe(probes, name) for name in printed["dataset"]]
near = printed["method"] == nearest
printed = printed[near | printed["method"].isin(ASKED)]
printed["method"] = printed["method"].mask(near, "Probe")
printed["constant"] = [
    constant_score(*pair) for pair in printed[["model", "dataset"]].values
]

# %% tags=["hide-input"]
read_off = load_reported("tokens", source="reference code")
read_off = read_off.set_index(keys)["value"].rename("tokens")
ten = 10 * read_off.xs("Response", level="method", drop_level=False)
read_off = pd.concat([read_off, ten.rename({"Response": VOTES})])
printed = printed.join(read_off, on=keys)
yes = printed["method"] == "P(True)"
printed["tokens"] = printed["tokens"].fillna(yes.astype(float))

# %%
numbers = ["tokens", "brier", "constant"]
means = printed.groupby(["model", "method"])[numbers].mean()
front_of = {}
for name, subset in means.groupby(level="model"):
    subset = subset.droplevel("model")
    constant = {"tokens": 0, "brier": subset["constant"].iloc[0]}
    subset.loc[CONSTANT] = pd.Series(constant)
    front_of[name] = pareto_front(subset[["tokens", "brier"]])
front_of = pd.concat(front_of, names=["model"])

# %% tags=["hide-input"]
on_front = front_of.index.get_level_values("method").value_counts()
costly = printed["tokens"][printed["tokens"] > 0]
notebook.glue(
    free=int(on_front.get("Probe", 0)),
    votes=int(on_front.get(VOTES, 0)),
    constants=int(on_front.get(CONSTANT, 0)),
    models=means.index.unique("model").size,
    orders=np.log10(costly.max() / costly.min()),
    ratio=means["brier"].max() / means["brier"].min(),
)

# %% tags=["finding"]
# needs printed
notebook.finding("""
On the average of the paper's data sets the probe, the cheapest method, stands on the Pareto front of {free} of {models} models,
ten votes on that of {votes}.
""")

# %% mystnb={"figure": {"caption": "Printed scores (reported), without intervals, against tokens (read off) for the paper's models: small marks are its seven data sets, large ones their mean. The probe is the one trained nearest to a data set. Dashed is the mean of the best constant, which nothing but the probe and ten votes comes near.", "name": "fig-cost-paper"}, "image": {"alt": "Three panels, one a model, with the mean score against tokens, a mark a method, and a dashed line for the best constant."}} paper=["figure-3", "figure-4", "section-4.3.2"] evidence=["reported", "read off"] reads=["main", "consistency", "tokens"] tags=["hide-input"]
one = printed.assign(shown="one data set")
mean = means.reset_index().assign(shown="mean of seven")
points = pd.concat([one, mean], ignore_index=True)
points = tables.titled(points)
options = {"x": "tokens", "y": "brier", "hue": "method", "style": "method"}
options |= {"size": "shown", "sizes": [25, 110], "markers": MARKS}
options |= {"palette": plots.palette(points["method"])}
grid = sns.relplot(points, col="model", height=2.7, aspect=0.7, **options)
for name, axes in grid.axes_dict.items():
    constant = points[points["model"] == name]["constant"].mean()
    axes.axhline(constant, color=plots.INK, linestyle="--")
grid.set(xlim=(-0.4, 3e5), **TICKS).set_titles("{col_name}")
_ = grid.set_axis_labels("tokens a question", "score")

# %%
notebook.say("""
On average over the data sets the probe stands on the Pareto front of {free} of {models} models, response consistency on that of
{votes}, and the best constant on that of {constants}. From one token to the longest ten answers, the cost spans {orders:.1f}
orders of magnitude, while the mean scores of the methods differ by a factor of {ratio:.1f}.
""")

# %% label="cost-means" paper=["figure-4"] evidence=["reported", "read off"] reads=["main", "consistency", "tokens"] tags=["hide-input"]
marked = means.drop(columns="constant").rename(columns={"brier": "score"})
marked["front"] = np.where(marked.index.isin(front_of.index), "yes", "")
titles = {name: load_model(name).paper_name for name in means.index.levels[0]}
tables.show(
    marked.rename(index=titles),
    "Mean printed score and mean tokens of the paper's models.",
    tokens="{:,.0f}",
    evidence=["reported", "read off"],
)

# %% [markdown]
# ## Summary
#
# - A probe is free at the point of use, but not before: its training questions had to be sampled and graded.
# - The most expensive method, response consistency, may score best, and costs more than the answer that it is about.
# - The best constant is free as well: a confidence that costs tokens has to beat it.
# - Whether a confidence may cost more than an answer depends on its use, not on the figure.
#
# ## Exercises
#
# **1 (easy).** How many votes could response consistency afford at the price of a verbalized confidence? *Hint:* one
# vote costs one answer.

# %% tags=["hide-cell", "solution"]
# The cost of asking, counted in answers
asking = read_off.xs("Verbalized confidence", level="method")
(asking / read_off.xs("Response", level="method")).unstack("model").round(1)

# %% [markdown] needs="scores"
# **2 (medium).** What does a constant at the mean of $\hat\mu$ score on the first data set, without the noise? *Hint:* the
# variance of $\mu$ over its questions.

# %% tags=["hide-cell", "solution"]
# The variance of mu-hat over questions, less its noise
# needs scores
subset = results.loc[fronts.index[0][0]]
count, n = subset["correct"], subset["total"]
noise = (count / n * (1 - count / n) / (n - 1)).mean()
float((count / n).var(ddof=0) - noise)

# %% [markdown] needs="scores"
# **3 (hard).** Which methods would leave the front if each had to score *significantly* lower than the one before?
# *Hint:* `gains` of their `brier_terms`.

# %% tags=["hide-cell", "solution"]
# Each method of a front against the cheaper one before it
# needs scores
for name, subset in fronts.groupby(level="dataset", sort=False):
    terms = brier_terms(compared(results.loc[[name]]), protocol=protocol)
    for cheap, dear in pairwise(subset.index.get_level_values("method")):
        both = terms[[cheap, dear]].dropna()
        found = gains(both, cheap, clusters=subjects(both))
        print(name, dear, found.loc[dear, "verdict"])
