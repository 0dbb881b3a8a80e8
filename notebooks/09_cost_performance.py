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
# A confidence takes tokens, from none to those of ten answers; this page sets
# its score against its cost, and shows which methods are worth their tokens: figures 3 and 4 of the paper.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat

# %% tags=["hide-input"]
from itertools import pairwise

import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_model
from capcal_lib.metrics import gains
from capcal_lib.probes import nearest_probe
from capcal_lib.reported import constant_score, load_reported
from capcal_lib.results import (
    best_constant,
    brier_terms,
    costs,
    describe_runs,
    load_results,
    score,
    subjects,
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

# %% [markdown] needs="samples"
# Four confidences are compared with the best constant on each data set with a solved question. The constant is the mean
# accuracy of the other questions: it is free and knows nothing of a question. The probe is the one trained on the nearest
# questions.

# %%
CONSTANT, VOTES = "Best constant", "Response consistency"
ASKED = ["Verbalized confidence", "P(True)", VOTES]


def compared(own):
    """Keep three ways to ask, the nearest probe and the constant."""
    own = own.dropna(axis="columns", how="all")
    probe = nearest_probe(own, own.index[0][0])
    own = own.rename(columns={probe: "Probe"})
    own = own.assign(**{CONSTANT: best_constant(own)})
    kept = [name for name in (*ASKED, "Probe", CONSTANT) if name in own]
    return own[["correct", "total", *kept]]


# %%
# needs samples
tokens = costs(runs, model, k_eval=k_eval).rename_axis(columns="method")
rows = {}
for name, own in results.groupby(level="dataset", sort=False):
    if own["correct"].any():
        found = score(compared(own)).loc[name]
        rows[name] = found.drop(["Uniform random", "Oracle RC", "Oracle CC"])
scores = pd.concat(rows, names=["dataset", "method"])
scores = scores[["brier", "low", "high"]].join(tokens.stack().rename("tokens"))
scores["tokens"] = scores["tokens"].fillna(0)  # a probe, and the constant

# %% [markdown]
# A method stands on the *Pareto front* if none that is as cheap scores lower. From cheap to expensive, these are the
# rows whose score is below all before them.


# %%
def pareto_front(table):
    """Keep the rows that no other beats in both tokens and score."""
    cheap_first = table.sort_values(["tokens", "brier"])
    best_before = cheap_first["brier"].cummin().shift(fill_value=np.inf)
    return cheap_first[cheap_first["brier"] < best_before]


# %%
# needs samples
parts = scores.groupby(level="dataset", sort=False)
fronts = pd.concat([pareto_front(own) for _, own in parts])
stand = fronts.index.get_level_values("method").value_counts()
stand = stand.reindex([*ASKED, "Probe", CONSTANT], fill_value=0)

# %% tags=["hide-input"]
# needs samples
probed = int((scores.index.get_level_values("method") == "Probe").sum())
notebook.glue(
    sets=len(rows),
    probe_sets=int(stand["Probe"]),
    vote_sets=int(stand[VOTES]),
    asked_sets=int(stand[ASKED[:2]].sum()),
    constant_sets=int(stand[CONSTANT]),
)

# %% tags=["finding"]
# needs samples
notebook.finding(
    "{told}; ten votes stand on that of {vote_sets} of {sets}.",
    told=(
        "A probe writes no token and stands on the Pareto front of "
        f"{stand['Probe']} of the {probed} data sets that have one"
        if probed
        else "No probe is there to stand on a Pareto front"
    ),
)

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Corrected capability Brier score, with its 95 % interval, against mean completion tokens a question. Lower left is better. Dashed: the best constant. The probe is a tuned linear one.", "name": "fig-cost"}, "image": {"alt": "A panel a data set with score against tokens on a logarithmic axis that begins at 0. The probe stands at no tokens and mostly below the dashed line; verbalized confidence and P(True) in the middle and above it; response consistency far to the right, in some panels lowest."}} paper=["figure-3", "figure-4", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs samples
drawn = scores.rename(index=data["title"]).reset_index()
points = drawn[drawn["method"] != CONSTANT]
colors = style.palette(points["method"])
look = {"x": "tokens", "y": "brier", "hue": "method", "palette": colors}
look |= {"height": 2, "aspect": 1.05, "s": 50}
grid = sns.relplot(points, col="dataset", col_wrap=3, **look)
for title, axes in grid.axes_dict.items():
    own = drawn[drawn["dataset"] == title].set_index("method")
    axes.axhline(own.loc[CONSTANT, "brier"], color=style.INK, linestyle="--")
    own = own.drop(index=CONSTANT)
    axes.vlines(own["tokens"], own["low"], own["high"], own.index.map(colors))
grid.set(xscale="symlog", xticks=[0, 1, 100, 10_000], xlim=(-0.3, 3e4))
grid.set(xticklabels=["0", "1", "100", "10,000"]).set_titles("{col_name}")
_ = grid.set_axis_labels("tokens a question", "score")

# %% label="cost-front" paper=["figure-3", "figure-4"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs samples
front = fronts.rename(index=data["title"]).reset_index()
tables.show(
    front.rename(columns={"dataset": "data set", "brier": "score"}),
    "The Pareto front of each data set, from cheap to expensive.",
    tokens="{:,.0f}",
    evidence=data["evidence"].iloc[0],
)

# %% [markdown] needs="samples"
# An interval that reaches below the next row says that these questions cannot decide.

# %% [markdown]
# ## As the paper prints it
#
# The paper draws the same for three models and seven data sets. Here its printed scores stand against the tokens read
# off its figures, to about 6 %. Response consistency writes ten answers, a probe nothing, and P(True) one token,
# unless the model reasons first. The score of the best constant follows from two printed numbers.

# %%
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

# %%
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
for name, own in means.groupby(level="model"):
    own = own.droplevel("model")
    constant = {"tokens": 0, "brier": own["constant"].iloc[0]}
    own.loc[CONSTANT] = pd.Series(constant)
    front_of[name] = pareto_front(own[["tokens", "brier"]])
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

# %%
notebook.say("""
On average over the data sets the probe, the cheapest method, stands on the Pareto front of {free} of {models} models,
response consistency on that of {votes}, and the best constant on that of {constants}; the print has no intervals that
would say whether such differences are more than chance. From one token to the longest ten
answers, the cost spans {orders:.1f} orders of magnitude, while the mean scores of the methods differ by a factor of
{ratio:.1f}: on a logarithmic axis the fronts are flat.
""")

# %% mystnb={"figure": {"caption": "Printed scores (reported) against tokens (read off) for the paper's models: small points are its seven data sets, large ones their mean. The probe is the one trained nearest to a data set. Dashed: the mean of the best constant.", "name": "fig-cost-paper"}, "image": {"alt": "Three panels, one a model. In each the probe stands at no tokens with a mean score near the dashed line of the best constant or below it; verbalized confidence stands near a thousand tokens, response consistency above ten thousand."}} paper=["figure-3", "figure-4", "section-4.3.2"] evidence=["reported", "read off"] reads=["main", "consistency", "tokens"]
one = printed.assign(shown="one data set")
mean = means.reset_index().assign(shown="mean of seven")
points = pd.concat([one, mean], ignore_index=True)
points["model"] = [load_model(name).paper_name for name in points["model"]]
look = {"x": "tokens", "y": "brier", "hue": "method", "size": "shown"}
look |= {"sizes": [20, 90], "palette": style.palette(points["method"])}
grid = sns.relplot(points, col="model", height=2.7, aspect=0.7, **look)
for name, axes in grid.axes_dict.items():
    constant = points[points["model"] == name]["constant"].mean()
    axes.axhline(constant, color=style.INK, linestyle="--")
grid.set(xscale="symlog", xlim=(-0.3, 3e5), xticks=[0, 1, 100, 10_000])
grid.set(xticklabels=["0", "1", "100", "10,000"])
_ = grid.set_titles("{col_name}").set_axis_labels("tokens a question", "score")

# %% label="cost-means" paper=["figure-4"] evidence=["reported", "read off"] reads=["main", "consistency", "tokens"]
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
asking = read_off.xs("Verbalized confidence", level="method")
(asking / read_off.xs("Response", level="method")).unstack("model").round(1)

# %% [markdown]
# **2 (medium).** What does a constant at the mean of $\hat\mu$ score on the first data set, without the noise? *Hint:* the
# variance of $\mu$ over its questions.

# %% tags=["hide-cell", "solution"]
# needs samples
own = results.loc[fronts.index[0][0]]
count, n = own["correct"], own["total"]
noise = (count / n * (1 - count / n) / (n - 1)).mean()
float((count / n).var(ddof=0) - noise)

# %% [markdown]
# **3 (hard).** Which methods would leave the front if each had to score *significantly* lower than the one before?
# *Hint:* `gains` of their `brier_terms`.

# %% tags=["hide-cell", "solution"]
# needs samples
for name, own in fronts.groupby(level="dataset", sort=False):
    terms = brier_terms(compared(results.loc[[name]]))
    for cheap, dear in pairwise(own.index.get_level_values("method")):
        both = terms[[cheap, dear]].dropna()
        found = gains(both, cheap, clusters=subjects(both))
        print(name, dear, found.loc[dear, "verdict"])
