# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Benchmarking without labels

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`; all are shown
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with the probes of its recipe
verdicts: str = "rules"  # or judge:MODEL, of the model's own samples
seed: int = 0  # of all that is drawn here

# %% tags=["hide-input"]
from itertools import combinations

import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import plots
from capcal_lib.book import notebook, tables
from capcal_lib.grading.counts import count_run
from capcal_lib.metrics import adjusted, judge_gain, mean_interval
from capcal_lib.probes import describe_probes, nearest_probe
from capcal_lib.results import (
    judged_by,
    keep_nearest_probe,
    load_results,
    mean_over_probes,
    methods,
    subjects,
)
from capcal_lib.runs import open_runs
from scipy.stats import wilcoxon

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
described = notebook.measured_models(runs, data, k_eval)
paper = protocol == "paper"
recipe = "paper" if paper else "tuned"
judges = dict.fromkeys(described, "rules") | {model: verdicts}
probed = any(
    len(describe_probes(runs, name, recipe=recipe, verdicts=judges[name]))
    for name in described
)
none = {"runs": "No model of this store has measured samples.", "ranks": ""}
if described:
    none["runs"] = "No model of this store has a probe, whose mean to compare."
notebook.about(data, {} if probed else none)

# %% [markdown] needs="runs"
# The mean confidence estimates a model's accuracy without a single graded answer. The paper names label-free benchmarking in
# section 5.3 and does not try it.
#
# The mean of a confidence over the questions is an estimate of the accuracy, and needs no label. Its fair rival took the same
# labels as a probe: the mean accuracy on the *training questions* of the probe nearest to a data set.

# %%
# needs runs
evidence = notebook.evidence_of(*described.values())
METHODS = ["Verbalized confidence", "P(True)", "Response consistency", "Probe"]

# %%
# needs runs
cells, taught = {}, {}
for name in described:
    options = {"recipe": recipe, "verdicts": judges[name]}
    probes = describe_probes(runs, name, **options)
    training = {run.folder.name: run for run in open_runs(runs, model=name)}
    options |= {"k_eval": k_eval, "held_out": not paper}
    results = load_results(runs, name, **options).query("total > 1")
    for dataset, subset in results.groupby("dataset", sort=False):
        subset = subset.dropna(axis="columns", how="all")
        nearest = nearest_probe(methods(subset), dataset)
        # A mean miss of five probes is the miss of their mean.
        subset = mean_over_probes(keep_nearest_probe(subset, dataset))
        cells[name, dataset] = subset.assign(
            mu=subset["correct"] / subset["total"]
        )
        if nearest:
            source = training[probes.loc[nearest, "run"]]
            counts = count_run(source, verdicts=judges[name])
            taught[name, dataset] = (counts["correct"] / counts["total"]).mean()

# %%
# needs runs
rows = []
for place, subset in cells.items():
    accuracy = 100 * subset["mu"].mean()
    if place in taught:
        apart = 100 * taught[place] - accuracy
        rows.append(
            (*place, "Training questions", accuracy, *[apart] * 3, np.nan)
        )
    for method in subset.columns.intersection(METHODS):
        scored = judged_by(subset, method)
        error = scored["confidence"] - scored["correct"] / scored["total"]
        miss = judge_gain(error, clusters=subjects(error))
        points = 100 * miss[["estimate", "low", "high"]]
        rows.append((*place, method, accuracy, *points, miss["p"]))

# %%
# needs runs
columns = ["model", "dataset", "method", "accuracy", "miss", "low", "high", "p"]
misses = pd.DataFrame(rows, columns=columns)

# %% tags=["hide-input"]
# needs runs
holm = misses.groupby("method")["p"].transform(
    lambda p: adjusted(p.to_numpy(), "holm")
)
misses["wrong"] = holm < 0.05
typical = misses["miss"].abs().groupby(misses["method"]).median()

# %% [markdown] needs="runs"
# Both the probe and its rival miss by something. Case by case, which is nearer?

# %%
# needs runs
size = misses.pivot(
    index=["model", "dataset"], columns="method", values="miss"
).abs()
size = size.reindex(columns=["Probe", "Training questions"]).dropna()
nearer = size["Training questions"] - size["Probe"]
by_chance = wilcoxon(nearer).pvalue if nearer.any() else 1.0

# %% tags=["hide-input"]
# needs runs
spoken = misses[misses["method"].isin(METHODS[:2])]
probe = misses[misses["method"] == "Probe"]
voted = misses[misses["method"] == "Response consistency"]
notebook.glue(
    places=len(cells),
    rival=typical.get("Training questions", np.nan),
    probe=typical.get("Probe", np.nan),
    probe_wrong=int(probe["wrong"].sum()),
    probes=len(probe),
    votes=typical.get("Response consistency", np.nan),
    votes_above=int((voted["wrong"] & (voted["miss"] > 0)).sum()),
    voted=len(voted),
    nearer=int((nearer > 0).sum()),
    compared=len(nearer),
    by_chance=by_chance,
    asked=spoken["miss"].abs().median(),
    above=int((spoken["wrong"] & (spoken["miss"] > 0)).sum()),
    asked_all=len(spoken),
)

# %% tags=["finding"]
# needs runs
notebook.finding("""
The mean of a probe lies {probe:.1f} points from the accuracy in the median of {probes} cases; what a model says of itself is
significantly too high in {above} of {asked_all}.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Mean confidence less accuracy, a mark a model on a data set; on the dotted line the mean is the accuracy, and right of it the confidence is too high. A probe is calibrated on its training questions, and so is their mean accuracy, which knows nothing of a question.", "name": "fig-label-free"}, "image": {"alt": "Strip plot with a row a method and a point a model on a data set, by mean confidence less accuracy in points, with a dotted line at zero."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs runs
order = ["Probe", "Training questions", *METHODS[2::-1]]
axes = sns.stripplot(
    misses,
    x="miss",
    y="method",
    hue="method",
    order=order,
    palette=plots.palette(order),
    size=7,
    jitter=False,
    alpha=0.5,
)
axes.axvline(0, color=plots.INK, linestyle=":")
_ = axes.set(xlabel="mean confidence less accuracy, points", ylabel="")

# %%
# needs runs
notebook.say("""
A case is a model on a data set, and there are {places}. The probe's mean differs significantly from the accuracy in
{probe_wrong} of {probes}. The mean accuracy on its training questions, its rival, lies {rival:.1f} points off in the median;
the probe is nearer in {nearer} of {compared} cases (Wilcoxon's signed-rank test, with cases taken as independent: p =
{by_chance:.2f}). Votes are significantly too high in {votes_above} of {voted} cases, by {votes:.0f} points in
the median, and asking lies {asked:.0f} points off.
""")

# %% [markdown] needs="runs"
# ## Without labels
#
# This works only if confidences are right on average, which is not known without labels. A probe is calibrated on its
# training questions; on others it may miss by any amount.

# %% tags=["hide-input"]
# needs runs
star = misses["wrong"].map({True: "*", False: ""})
text = misses.assign(spelt=misses["miss"].map("{:+z.0f}".format) + star)
text = tables.titled(text).rename(columns={"dataset": "data set"})
keys = ["model", "data set", "accuracy"]
wide = text.pivot(index=keys, columns="method", values="spelt")

# %% tags=["hide-input"] label="label-free-misses" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs runs
tables.show(
    wide.reindex(columns=["Training questions", *METHODS])
    .astype(object)
    .fillna("–")
    .rename_axis(columns=None),
    "Accuracy in per cent, and mean confidence less accuracy in points "
    "(*: significantly other than 0, a method's cells after Holm).",
    evidence=evidence,
    accuracy="{:.1f}",
)

# %% [markdown] needs="runs"
# ## Ranking models
#
# Errors that all models share cancel when models are compared. Only pairs of models whose accuracies differ significantly
# are counted, so that there is a right order.

# %%
# needs runs
means = misses.set_index(["dataset", "model", "method"]).sort_index()
means = (means["accuracy"] + means["miss"]).drop(
    "Training questions", level="method", errors="ignore"
)

# %%
# needs runs
ranked = []
for dataset in sorted({dataset for _, dataset in cells}):
    both = [name for name, other in cells if other == dataset]
    for a, b in combinations(both, 2):
        gap = (cells[a, dataset]["mu"] - cells[b, dataset]["mu"]).dropna()
        interval = mean_interval(gap, clusters=subjects(gap))
        if interval.low > 0 or interval.high < 0:
            apart = (means[dataset, a] - means[dataset, b]).dropna()
            right = apart * interval.estimate > 0
            ranked.append(right.rename(dataset))

# %% tags=["hide-input"]
# needs runs
none = "No two models differ significantly, so none are ranked."
notebook.lack(not ranked, ranks=none)

# %% tags=["hide-input"] label="label-free-ranking" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs ranks
pairs = pd.concat(ranked).groupby(level="method").agg(["sum", "size"])
pairs = pairs.reindex(METHODS).dropna().astype(int)
tables.show(
    pairs.set_axis(["ranked rightly", "of"], axis="columns"),
    "Pairs of models, of those whose accuracies differ significantly, that "
    "the mean confidence ranks rightly.",
    evidence=evidence,
)

# %% [markdown]
# ## Summary
#
# - A mean confidence is an accuracy only where it is calibrated, which takes labels to know.
# - Errors that all models share cancel when models are ranked; those that differ from model to model do not.
#
# ## Exercises
#
# **1 (medium).** How many labels does the true $\mu$ save, where $\mu$ is uniform on $[0, 1]$? *Hint:* the variance of one answer
# is $\overline\mu(1-\overline\mu)$, and $\mu$ explains its own variance.

# %% tags=["hide-cell", "solution"]
# The variance of mu, as a share of that of one answer
mu = np.random.default_rng(seed).random(100_000)
round(mu.var() / (mu.mean() * (1 - mu.mean())), 2)

# %% [markdown]
# **2 (hard).** Grade ten answers to each labelled question in place of one. Does a good confidence save more? *Hint:* the labels'
# variance falls, the questions' does not.

# %% tags=["hide-cell", "solution"]
# What a confidence explains of the labels, with one answer and with ten
s = np.clip(mu + np.random.default_rng(seed).normal(0, 0.1, mu.size), 0, 1)
explained = np.corrcoef(s, mu)[0, 1] ** 2 * mu.var()
[round(explained / (mu.var() + (mu * (1 - mu)).mean() / k), 2) for k in (1, 10)]
