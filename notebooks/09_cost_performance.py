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
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import plots
from capcal_lib.book import notebook, tables
from capcal_lib.manifests import load_model
from capcal_lib.metrics import gains, holm, questions_needed
from capcal_lib.plots import MARKERS
from capcal_lib.probes import nearest_probe
from capcal_lib.reported import constant_score, load_reported
from capcal_lib.results import (
    brier_terms,
    compare_with_constant,
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
loaded = load_results(runs, model, **counted)
results = loaded.query("total > 1")

# %% tags=["hide-input"]
answered = results[confidence_columns(results)]
answered = answered.groupby("dataset", sort=False).count()
solved = results["correct"].groupby("dataset", sort=False).sum()
sets = [
    name for name in answered.index if solved[name] and answered.loc[name].any()
]
none = {
    "scores": "No data set has a solved question and a confidence: capcal confidence.",
    "bought": "",
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
by_set = {name: compared(results.loc[[name]]) for name in sets}
tokens = costs(runs, model, k_eval=k_eval).rename_axis(columns="method")
scores = pd.concat(
    score(subset, protocol=protocol) for subset in by_set.values()
)
scores = scores[["brier", "low", "high"]].join(tokens.stack().rename("tokens"))
scores = scores.drop(["Uniform random", "Oracle RC", "Oracle CC"], level=1)
scores["tokens"] = scores["tokens"].fillna(0)  # a probe, and the constant

# %% [markdown] needs="scores"
# What does a price buy? Every method that takes tokens is compared with the nearest probe, which takes none, question by question
# and with subjects drawn whole. These comparisons, of all data sets, are a family of their own for Holm's method.

# %%
# needs scores
bought = {}
for name, subset in by_set.items():
    terms = brier_terms(subset, protocol=protocol)
    if "Probe" in terms:
        terms = terms[["Probe", *terms.columns.intersection(ASKED)]]
        bought[name] = gains(terms, "Probe", clusters=subjects(terms))
none = pd.DataFrame(columns=["estimate", "low", "high", "p", "verdict"])
bought = pd.concat(bought or {"": none}, names=["dataset", "method"])
bought = holm(bought.dropna(subset="p"))

# %% [markdown] needs="scores"
# Whether a confidence is closer than the best constant is not asked here once more: the verdicts are those of the [main
# table](04_main_table.ipynb), where all methods on all data sets of the model are judged together.

# %%
# needs scores
judged = compare_with_constant(loaded, protocol=protocol)
judged = judged.set_index(["dataset", "method"])["verdict"].astype(str)
nearest = {
    name: nearest_probe(
        methods(results.loc[[name]].dropna(axis=1, how="all")), name
    )
    for name in sets
}
scores["constant"] = [
    judged.get((name, nearest[name] if method == "Probe" else method), "")
    for name, method in scores.index
]

# %% tags=["hide-input"]
# needs scores
verdicts_on = bought.groupby(level="method")["verdict"]
won = verdicts_on.agg(lambda verdict: int(verdict.eq("better").sum()))
lost = verdicts_on.agg(lambda verdict: int(verdict.eq("worse").sum()))
asking = [name for name in ASKED if name in won and name != VOTES]
notebook.lack(bought.empty, bought="")

# %% tags=["hide-input"]
# needs bought
notebook.glue(
    votes_won=int(won.get(VOTES, 0)),
    votes_lost=int(lost.get(VOTES, 0)),
    votes_all=int((bought.index.get_level_values("method") == VOTES).sum()),
    asked_won=int(won[asking].sum()),
    asked_lost=int(lost[asking].sum()),
    asked_all=len(bought[bought.index.isin(asking, level="method")]),
)

# %% tags=["finding"]
# needs bought
notebook.finding("""
Ten votes are closer to the accuracy than a probe, which costs no tokens, on {votes_won} of {votes_all} data sets, and asking the
model is in {asked_won} of {asked_all} cases.
""")

# %% tags=["hide-input"]
# needs scores
names = {"brier": "estimate", "constant": "verdict"}
drawn = scores.rename(index=data["title"], columns=names).reset_index()
points = drawn[drawn["method"] != CONSTANT]
colors = plots.palette(points["method"])
across = min(3, len(sets))

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Score against mean completion tokens a question, with 95 % intervals; lower left is better. Dashed is the best constant, which costs nothing; above it, tokens are wasted. Filled: closer or farther than the constant after Holm, by the verdicts of the main table; hollow: cannot tell.", "name": "fig-cost"}, "image": {"alt": "A panel a data set with score against tokens on a logarithmic axis that begins at zero tokens: a mark with an interval for each method, filled where its comparison with the best constant is clear after Holm, and a dashed line for the best constant."}} paper=["figure-3", "figure-4", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs scores
size = {"height": 2.5, "aspect": 2.85 / across, "col_wrap": across}
grid = sns.FacetGrid(points, col="dataset", **size)
for title, axes in grid.axes_dict.items():
    subset = drawn[drawn["dataset"] == title]
    axes.set_yscale("symlog", linthresh=0.1)
    constant = subset.loc[subset["method"] == CONSTANT, "estimate"].item()
    axes.axhline(constant, color=plots.INK, ls="--", lw=1)
    for name, color in colors.items():
        look = {"color": color, "marker": MARKS[name]}
        row = subset[subset["method"] == name]
        plots.mark_verdicts(axes, row["tokens"], row, upright=True, **look)
for name, color in colors.items():
    axes.scatter([], [], color=color, marker=MARKS[name], label=name)
grid.set(xlim=(-0.4, 3e4), **TICKS).set_titles("{col_name}")
levels = [0, 0.05, 0.1, 0.2, 0.5]
grid.set(ylim=(-0.01, 0.8), yticks=levels, yticklabels=levels)
grid.set_axis_labels("tokens a question", "score")
grid.figure.legend(loc="upper center", ncols=4)
_ = grid.tight_layout(rect=(0, 0, 1, 0.93))

# %% label="cost-scores" paper=["figure-3", "figure-4"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"] tags=["hide-input"]
# needs scores
listed = scores.rename(index=data["title"]).reset_index()
listed = listed.sort_values("tokens", kind="stable")
listed = listed.rename(
    columns={
        "dataset": "data set",
        "brier": "score",
        "constant": "against the constant",
    }
)
tables.show(
    listed.sort_values("data set", kind="stable"),
    "Scores (lower is better), each with its own 95 % interval, from cheap to dear, and the verdict of the main table against the "
    "best constant, after Holm.",
    tokens="{:,.0f}",
    evidence=evidence,
)

# %% label="cost-gains" evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"] tags=["hide-input"]
# needs bought
listed = bought.rename(index=data["title"]).reset_index()
columns = ["method", "estimate", "low", "high", "p (Holm)", "verdict"]
tables.show(
    listed.rename(columns={"dataset": "data set"})[["data set", *columns]],
    "Score of the nearest probe, which takes no tokens, less that of a method that does (higher is better), each with its own 95 % "
    "interval, and the verdict after Holm, all cases of this table together.",
    evidence=evidence,
    **{"p (Holm)": tables.p_value},
)

# %%
# needs bought
notebook.say("""
After Holm, ten votes are closer than the nearest probe on {votes_won} of {votes_all} data sets and farther on {votes_lost}; what the
model says of itself is closer in {asked_won} of {asked_all} cases and farther in {asked_lost}. In the others these questions cannot
tell.
""")

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

# %% [markdown]
# Printed scores have no intervals, but they have a last digit. A mean of seven that is rounded to four digits is off by at most .00005,
# and the constant's, which follows from two printed numbers of each data set, by at most .0001: where the two are no farther apart
# than both together, they are equal as far as is printed.

# %%
ROUNDING = 0.00015
numbers = ["tokens", "brier", "constant"]
means = printed.groupby(["model", "method"])[numbers].mean()
lead = means["constant"] - means["brier"]
lead = lead.mask(lead.abs() < ROUNDING, 0.0)
closer = lead.groupby(level="method").agg(lambda gain: int((gain > 0).sum()))
equal = lead.groupby(level="method").agg(lambda gain: int((gain == 0).sum()))

# %% tags=["hide-input"]
costly = printed["tokens"][printed["tokens"] > 0]
notebook.glue(
    probe_closer=int(closer["Probe"]),
    probe_equal=int(equal["Probe"]),
    votes_closer=int(closer[VOTES]),
    asked_closer=int(closer[["Verbalized confidence", "P(True)"]].sum()),
    models=means.index.unique("model").size,
    orders=np.log10(costly.max() / costly.min()),
    ratio=means["brier"].max() / means["brier"].min(),
)

# %% tags=["finding"]
# needs printed
notebook.finding("""
On the average of the paper's data sets the probe, which costs no tokens, scores lower than the best constant for {probe_closer} of
{models} models, and the same as far as is printed for {probe_equal}; ten votes score lower for {votes_closer}.
""")

# %% mystnb={"figure": {"caption": "Printed scores (reported), without intervals, against tokens (read off) for the paper's models: small marks are its seven data sets, large ones their mean. The probe is the one trained nearest to a data set. Dashed is the mean of the best constant.", "name": "fig-cost-paper"}, "image": {"alt": "Three panels, one a model, with the mean score against tokens, a mark a method, and a dashed line for the best constant."}} paper=["figure-3", "figure-4", "section-4.3.2"] evidence=["reported", "read off"] reads=["main", "consistency", "tokens"] tags=["hide-input"]
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
On average over the data sets the probe scores lower than the best constant for {probe_closer} of {models} models and the same for
{probe_equal}, ten votes lower for {votes_closer}, and asking the model in {asked_closer} cases. These are point estimates, without
intervals. From one token to the longest ten answers, the cost spans {orders:.1f} orders of magnitude, while the mean scores of the
methods differ by a factor of {ratio:.1f}.
""")

# %% label="cost-means" paper=["figure-4"] evidence=["reported", "read off"] reads=["main", "consistency", "tokens"] tags=["hide-input"]
marked = means.rename(columns={"brier": "score"})
titles = {name: load_model(name).paper_name for name in means.index.levels[0]}
tables.show(
    marked.rename(index=titles),
    "Mean printed score and mean tokens of the paper's models, and the mean score of the best constant.",
    tokens="{:,.0f}",
    score="{:.4f}",
    constant="{:.4f}",
    evidence=["reported", "read off"],
)

# %% [markdown]
# ## Summary
#
# - A probe is free at the point of use, but not before: its training questions had to be sampled and graded.
# - The most expensive method, response consistency, may score best, and costs more than the answer that it is about.
# - The best constant is free as well: a confidence that costs tokens has to be closer than it is.
# - What is dearer is worth its price where a paired comparison says so; two scores side by side do not.
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
subset = results.loc[sets[0]]
count, n = subset["correct"], subset["total"]
noise = (count / n * (1 - count / n) / (n - 1)).mean()
float((count / n).var(ddof=0) - noise)

# %% [markdown] needs="bought"
# **3 (hard).** On how many questions would ten votes and the probe have to be compared, if the difference seen were the true one?
# *Hint:* `questions_needed`, of their `brier_terms`; NaN says that the difference is smaller than its error.

# %% tags=["hide-cell", "solution"]
# The questions that a verdict at power .8 would take, one comparison by itself
# needs bought
for name, subset in by_set.items():
    terms = brier_terms(subset, protocol=protocol)
    if {"Probe", VOTES} <= {*terms}:
        both = terms[["Probe", VOTES]].dropna()
        differences = both["Probe"] - both[VOTES]
        print(name, questions_needed(differences, clusters=subjects(both)))
