# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What a confidence costs
#
# A {term}`confidence` takes tokens, from none to those of ten answers; this page sets
# its score against its cost, and shows which methods are worth their tokens: figures 3 and 4 of the paper.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of the resampling behind the intervals

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.metrics import mean_interval
from capcal_lib.probes import nearest_probe
from capcal_lib.reported import load_reported
from capcal_lib.results import (
    brier_terms,
    costs,
    describe_runs,
    load_results,
    score,
)

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval)
results = load_results(runs, model, k_eval=k_eval)
results = results[results["total"] > 1]
few = {"samples": "Its runs lack verbalized confidences or P(True)."}
enough = {"Verbalized confidence", "P(True)"} <= {*results}
notebook.about(model, data, lacking={} if enough else few)

# %% tags=["remove-cell"]
UNIFORM, VOTES = "Uniform random", "Response consistency"
ASKED = ["Verbalized confidence", "P(True)", VOTES]


def compared(columns, dataset):
    """List what is compared on a data set: three ways to ask, a probe."""
    probe = nearest_probe(columns, dataset)
    return [name for name in (*ASKED, probe) if name in columns]


# %% tags=["remove-cell"]
# needs samples
evidence = data["evidence"].iloc[0]
share = results["correct"] / results["total"]
spread = share.groupby(level="dataset").var()
scored = {
    name: list(own.dropna(axis="columns", how="all"))
    for name, own in results.groupby(level="dataset")
}
shown = max(  # of the most methods
    scored, key=lambda name: (len(compared(scored[name], name)), spread[name])
)
title = load_dataset(shown).title
scores = score(results.loc[[shown]], seed=seed).loc[shown]
tokens = costs(runs, model, k_eval=k_eval)
there = compared(list(scores.index), shown)
table = scores.loc[there, ["brier", "low", "high"]]
table.insert(0, "tokens", tokens.loc[shown].reindex(there).fillna(0))

# %% tags=["remove-cell"]
# needs samples
lowest, dearest = table["brier"].idxmin(), table["tokens"].idxmax()
most = table["tokens"].max()
beside = "more than any other method takes"
if dearest != lowest:
    beside = f"where {dearest}, the most expensive, takes {most:.0f}"
notebook.glue(
    title=title,
    lowest=lowest,
    brier=table.loc[lowest, "brier"],
    paid=table.loc[lowest, "tokens"],
    beside=beside,
    answer=data.loc[shown, "tokens"],
    uniform=scores.loc[UNIFORM, "brier"],
    beating=int((table["high"] < scores.loc[UNIFORM, "brier"]).sum()),
    methods=len(table),
)

# %% [markdown] needs="samples"
# On {glue:text}`title` an answer takes {glue:text}`answer:.0f` tokens. The lowest score, {glue:text}`brier:.3f`, is
# that of *{glue:text}`lowest`* at {glue:text}`paid:.0f` tokens a question, {glue:text}`beside`. Of
# {glue:text}`methods` methods {glue:text}`beating` lie below *Uniform random* with their whole interval.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Corrected capability Brier score, with its 95 % interval, against mean completion tokens a question. Lower left is better. Dashed: Uniform random; dotted: the cost of one answer. The probe is the tuned linear probe.", "name": "fig-cost"}, "image": {"alt": "Scatter plot of score against tokens on a logarithmic axis that begins at 0. The probe stands at no tokens and low; verbalized confidence and P(True) in the middle; response consistency far to the right."}} paper=["figure-3", "figure-4", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs samples
colors = style.palette(table.index, shown)
look = {"x": "tokens", "y": "brier", "hue": "method", "palette": colors}
axes = sns.scatterplot(table, s=60, legend=False, **look)
axes.vlines(table["tokens"], table["low"], table["high"], list(colors.values()))
axes.axhline(scores.loc[UNIFORM, "brier"], color=style.INK, linestyle="--")
axes.axvline(data.loc[shown, "tokens"], color=style.MUTED, linestyle=":")
axes.set_xscale("symlog", linthresh=1)
for name, row in table.iterrows():
    place = {"xytext": (7, 3), "textcoords": "offset points", "fontsize": 9}
    at = row["tokens"], row["brier"]
    axes.annotate(name, at, color=colors[name], **place)
reach = 6 * max(table["tokens"].max(), data.loc[shown, "tokens"])
axes.set(xlim=(-0.2, reach), title=title)
axes.set(xlabel="tokens a question", ylabel="capability Brier score")
powers = np.arange(1 + np.log10(reach))
ticks = [0, *(10**powers).astype(int)]
_ = axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])

# %% [markdown]
# ## As the paper prints it
#
# The paper draws the same for three models and seven data sets. Here its printed scores stand against the tokens read
# off its figures, to about 6 %. Response consistency writes ten answers, a probe nothing, and P(True) one token,
# unless the model reasons first. On average over the data sets a probe, than which nothing is cheaper, stands on the
# Pareto front of {glue:text}`free` of {glue:text}`models` models, and response consistency on that of
# {glue:text}`votes`.

# %% tags=["hide-input"]
votes = load_reported("consistency").query("k == 10").assign(method=VOTES)
printed = pd.concat([load_reported("main"), votes], ignore_index=True)
read_off = load_reported("tokens", source="reference code")
read_off = read_off.set_index(["model", "dataset", "method"])["value"]


def cost(model, dataset, method):
    """Return the tokens of a confidence as the paper has them."""
    if method == VOTES:
        return 10 * read_off[model, dataset, "Response"]
    otherwise = 1.0 if method == "P(True)" else 0.0
    return read_off.get((model, dataset, method), otherwise)


# %% tags=["hide-input"]
probed = list(printed["method"].unique())
nearest = [nearest_probe(probed, name) for name in printed["dataset"]]
kept = printed["method"].isin([UNIFORM, *ASKED]) | (
    printed["method"] == nearest
)
paper = printed[kept].rename(columns={"value": "brier"})
cells = paper[["model", "dataset", "method"]].to_numpy()
paper["tokens"] = [cost(*cell) for cell in cells]
paper["method"] = paper["method"].str.replace(r"Probe .*", "Probe", regex=True)
paper["model"] = [load_model(name).paper_name for name in paper["model"]]
keys = ["model", "method"]
mean = paper.groupby(keys, sort=False)[["tokens", "brier"]].mean()
mean = mean.reset_index()

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Printed scores (reported) against tokens (read off) for the paper's models: small points are its seven data sets, large ones their mean. The probe is the one trained nearest to a data set. Dashed: Uniform random.", "name": "fig-cost-paper"}, "image": {"alt": "Three panels, one a model. In each the probe stands at no tokens with a mean score well below the dashed line of Uniform random; verbalized confidence stands near a thousand tokens, response consistency above ten thousand."}} paper=["figure-3", "figure-4", "section-4.3.2"] evidence=["reported", "read off"] reads=["main", "consistency", "tokens"]
points = paper[paper["method"] != UNIFORM]
look = {"x": "tokens", "y": "brier", "hue": "method"}
look["palette"] = style.palette(points["method"])
look |= {"height": 3.2, "aspect": 0.75, "facet_kws": {"legend_out": False}}
grid = sns.relplot(points, col="model", alpha=0.5, s=18, **look)
look = {key: look[key] for key in ("x", "y", "hue", "palette")}
for name, axes in grid.axes_dict.items():
    own = mean[mean["model"] == name].set_index("method", drop=False)
    axes.axhline(own.loc[UNIFORM, "brier"], color=style.INK, linestyle="--")
    others = own.drop(index=UNIFORM)
    sns.scatterplot(others, ax=axes, s=90, legend=False, **look)
grid.set(xscale="symlog", xlim=(-0.3, 3e5), xticks=[0, 1, 100, 10_000])
grid.set(xticklabels=["0", "1", "100", "10,000"])
grid.set_titles("{col_name}").set_axis_labels("tokens a question", "score")
grid.figure.set_layout_engine("constrained")
for handle in grid.legend.legend_handles:
    handle.set(alpha=1, markersize=8)
sns.move_legend(grid, "outside lower center", ncols=4, title="")

# %% [markdown]
# ## The Pareto front
#
# A method stands on the *Pareto front* if none that is as cheap scores lower. From cheap to expensive, these are the
# rows whose score is below all before them.


# %%
def pareto_front(table):
    """Keep the rows that no other beats in both tokens and score."""
    cheap_first = table.sort_values(["tokens", "brier"])
    best_before = cheap_first["brier"].cummin().shift(fill_value=np.inf)
    return cheap_first[cheap_first["brier"] < best_before]


# %% tags=["hide-input"]
def mark_front(table):
    """Say which rows stand on the front."""
    front = pareto_front(table).index
    return table.assign(front=np.where(table.index.isin(front), "yes", ""))


# %% [markdown] needs="samples"
# This is the front on {glue:text}`title`; the table below it has all methods, with the intervals of their scores. An
# interval that reaches below the front says that these questions cannot decide.

# %%
# needs samples
pareto_front(table).round(3)

# %% tags=["hide-input"] label="cost-front" paper=["figure-3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
tables.show(
    mark_front(table)
    .rename_axis("method")
    .rename(columns={"brier": "score"})
    .sort_values("tokens"),
    f"Score and cost on {title}.",
    tokens="{:,.0f}",
    evidence=evidence,
)

# %% [markdown] needs="samples"
# The same on every data set: the methods on the front, from cheap to expensive.

# %% tags=["hide-input"] label="cost-fronts" paper=["figure-4"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
means = brier_terms(results).groupby(level="dataset").mean()
fronts = {}
for name in data.index:
    brier = means.loc[name].dropna()
    rows = brier.loc[compared(list(brier.index), name)].to_frame("brier")
    rows["tokens"] = tokens.loc[name].reindex(rows.index).fillna(0)
    front = pareto_front(rows)
    steps = [
        f"{method} ({row['brier']:z.3f} at {row['tokens']:,.0f})"
        for method, row in front.iterrows()
    ]
    fronts[load_dataset(name).title] = ", ".join(steps)
heads = "methods on the front (score at tokens)"
overview = pd.DataFrame({heads: fronts}).rename_axis("data set")
tables.show(overview, "The Pareto front of each data set.", evidence=evidence)

# %% [markdown]
# In the paper's numbers, averaged over its data sets:

# %% tags=["hide-input"] label="cost-means" paper=["figure-4"] evidence=["reported", "read off"] reads=["main", "consistency", "tokens"]
methods = mean[mean["method"] != UNIFORM]
marked = pd.concat(
    mark_front(own) for _, own in methods.groupby("model", sort=False)
)
tables.show(
    marked.rename(columns={"brier": "score"}),
    "Mean printed score and mean tokens of the paper's models.",
    tokens="{:,.0f}",
    evidence=["reported", "read off"],
)

# %% tags=["remove-cell"]
on_front = marked[marked["front"] == "yes"]["method"].value_counts()
costly = paper["tokens"][paper["tokens"] > 0]
notebook.glue(
    free=int(on_front.get("Probe", 0)),
    votes=int(on_front.get(VOTES, 0)),
    models=marked["model"].nunique(),
    orders=np.log10(costly.max() / costly.min()),
    ratio=methods["brier"].max() / methods["brier"].min(),
)

# %% [markdown]
# From one token to the longest ten answers, the cost spans {glue:text}`orders:.1f` orders of magnitude, while the mean
# scores differ by a factor of {glue:text}`ratio:.1f`: on a logarithmic axis the fronts are flat.
#
# ## Summary
#
# - A probe is free at the point of use, but not before: its training questions had to be sampled and graded.
# - The most expensive method, response consistency, may score best, and costs more than the answer that it is about.
# - Whether a confidence may cost more than an answer depends on its use, not on the figure.
#
# ## Exercises
#
# **1 (easy).** How many votes could response consistency afford at the price of a verbalized confidence? *Hint:* one
# vote costs one answer.

# %% tags=["hide-cell", "solution"]
asking = read_off.xs("Verbalized confidence", level="method")
(asking / read_off.xs("Response", level="method")).unstack("model").round(1)

# %% [markdown]
# **2 (medium).** A confidence that is the same for every question costs nothing as well. Where would the best such
# constant stand, beside the probe? *Hint:* its score is the variance of $\mu$ over questions.

# %% tags=["hide-cell", "solution"]
# needs samples
count, n = results.loc[shown, "correct"], results.loc[shown, "total"]
noise = (count / n * (1 - count / n) / (n - 1)).mean()
float((count / n).var(ddof=0) - noise), table["brier"].to_dict()

# %% [markdown]
# **3 (hard).** Which methods would leave the front if each had to score *significantly* lower than the one before?
# *Hint:* `mean_interval` of the paired difference of their `brier_terms`.

# %% tags=["hide-cell", "solution"]
# needs samples
from itertools import pairwise

front = list(pareto_front(table).index)
terms = brier_terms(results.loc[[shown]])
for cheap, dear in pairwise(front):
    rng = np.random.default_rng(seed)
    print(dear, mean_interval(terms[dear] - terms[cheap], rng=rng))
