# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Benchmarking with few labels or none
#
# The mean confidence estimates a model's accuracy without a single graded answer. This page measures by how much it is
# wrong, whether it ranks models rightly, and what a few labels change. The paper names label-free benchmarking in section
# 5.3 and does not try it.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`; all are shown
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here
labels: int = 50  # questions that are graded, one answer each

# %% tags=["hide-input"]
from itertools import combinations

import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.applications import accuracy_from_labels, label_gains
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import mean_interval
from capcal_lib.probes import nearest_probe
from capcal_lib.results import describe_runs, judged_by, load_results, subjects

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
known = {
    each: describe_runs(runs, each, k_eval=k_eval) for each in model_names()
}
real = [each for each in known if "measured" in set(known[each]["evidence"])]
none = {"runs": "No model of this store has measured samples.", "ranks": ""}
notebook.about(model, known[model], lacking={} if real else none)

# %%
# needs runs
METHODS = ["Verbalized confidence", "P(True)", "Response consistency", "Probe"]
cells = {}
for name in real:
    results = load_results(runs, name, k_eval=k_eval).query("total > 1")
    for dataset, own in results.groupby("dataset", sort=False):
        own = own.dropna(axis="columns", how="all")
        nearest = nearest_probe(own, dataset)
        own = own.rename(columns={nearest: "Probe"}).assign(
            mu=own["correct"] / own["total"]
        )
        cells[name, dataset] = own

# %%
# needs runs
rows = []
for place, own in cells.items():
    accuracy = 100 * own["mu"].mean()
    rows.append((*place, "Uniform random", accuracy, *[50 - accuracy] * 3))
    for method in own.columns.intersection(METHODS):
        known = judged_by(own, method)
        error = known["confidence"] - known["correct"] / known["total"]
        miss = mean_interval(error, clusters=subjects(error))
        points = (100 * end for end in miss[:3])
        rows.append((*place, method, accuracy, *points))

# %%
# needs runs
columns = ["model", "dataset", "method", "accuracy", "miss", "low", "high"]
misses = pd.DataFrame(rows, columns=columns)

# %% tags=["hide-input"]
# needs runs
misses["wrong"] = (misses["low"] > 0) | (misses["high"] < 0)
typical = misses["miss"].abs().groupby(misses["method"]).median()
asked = misses[misses["method"].isin(METHODS[:2])]
probe = misses[misses["method"] == "Probe"]
notebook.glue(
    places=len(cells),
    half=typical["Uniform random"],
    probe=typical.get("Probe", np.nan),
    probe_wrong=int(probe["wrong"].sum()),
    probes=len(probe),
    votes=typical.get("Response consistency", np.nan),
    asked=asked["miss"].abs().median(),
    above=int((asked["low"] > 0).sum()),
    asked_all=len(asked),
)

# %% tags=["finding"]
# needs runs
notebook.finding("""
A probe's mean confidence is usually near the accuracy, and what a model says of itself is not. Over {places} cases (a model
and a data set), the probe trained on the nearest questions misses the accuracy by {probe:.0f} points in the median, and
significantly in {probe_wrong} of {probes}; the votes of response consistency miss it by {votes:.0f}. Asking the model misses
it by {asked:.0f}, and is significantly too high in {above} of {asked_all} cases. Saying one half of every question, which
takes no model, misses it by {half:.0f}.
""")

# %% mystnb={"figure": {"caption": "Mean confidence less accuracy: a point is a model on a data set. On the dotted line the mean confidence is the accuracy.", "name": "fig-label-free"}, "image": {"alt": "Strip plot with a row a method. Points of the probe and of response consistency lie close to the dotted line at zero; those of P(True) and verbalized confidence spread to the right, many by more than fifty points."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs runs
order = [*METHODS[::-1], "Uniform random"]
axes = sns.stripplot(
    misses,
    x="miss",
    y="method",
    hue="method",
    order=order,
    palette=style.palette(order),
    size=7,
    alpha=0.7,
)
axes.axvline(0, color=style.INK, linestyle=":")
_ = axes.set(xlabel="mean confidence less accuracy, points", ylabel="")

# %% [markdown]
# ## Without labels
#
# The mean of a confidence is the accuracy if the confidence is calibrated on average, and that is just what is not known
# without labels. A probe is calibrated on its training questions; on others it may miss by any amount.

# %%
# needs runs
star = misses["wrong"].map({True: "*", False: ""})
text = misses.assign(said=misses["miss"].map("{:+z.0f}".format) + star)
text["model"] = [load_model(name).short_title for name in text["model"]]
text["data set"] = [load_dataset(name).title for name in text["dataset"]]
keys = ["model", "data set", "accuracy"]
wide = text.pivot(index=keys, columns="method", values="said")

# %% label="label-free-misses" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs runs
tables.show(
    wide.reindex(columns=METHODS).fillna("–").rename_axis(columns=None),
    "Accuracy in per cent, and mean confidence less accuracy in points "
    "(*: the 95 % interval leaves out 0).",
    evidence="measured",
    accuracy="{:.1f}",
)

# %%
# needs runs
notebook.say("""
## Ranking models

Errors that all models share cancel when models are compared. Only pairs of models whose accuracies differ significantly
are counted, so that there is a right order.
""")

# %%
# needs runs
ranked = []
said = misses.set_index(["dataset", "model", "method"]).sort_index()
said = (said["accuracy"] + said["miss"]).drop("Uniform random", level="method")
for dataset in sorted({dataset for _, dataset in cells}):
    for a, b in combinations(
        [one for one, other in cells if other == dataset], 2
    ):
        gap = (cells[a, dataset]["mu"] - cells[b, dataset]["mu"]).dropna()
        found = mean_interval(gap, clusters=subjects(gap))
        if found.low > 0 or found.high < 0:
            right = (said[dataset, a] - said[dataset, b]) * found.estimate > 0
            right = right[
                said[dataset, a].index.intersection(said[dataset, b].index)
            ]
            ranked.append(right.rename(dataset))

# %% tags=["hide-input"]
# needs runs
none = "No two models differ significantly, so none are ranked."
notebook.lack(not ranked, ranks=none)

# %% label="label-free-ranking" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs ranks
pairs = pd.concat(ranked).groupby(level="method").agg(["sum", "size"])
pairs = pairs.reindex(METHODS).dropna().astype(int)
tables.show(
    pairs.set_axis(["ranked rightly", "of"], axis="columns"),
    "Pairs of models, of those whose accuracies differ significantly, that "
    "the mean confidence ranks rightly.",
    evidence="measured",
)

# %% [markdown]
# ## With a few labels
#
# Grade one answer to each of $n$ questions, and let the confidence fill in the others. *Prediction-powered inference*
# (Angelopoulos et al., 2023) takes the mean confidence of all other questions, and adds what the labels say it
# misses. The weight $\lambda$ of the confidence is chosen so that a useless one is left out:
#
# $$
# \hat\theta = \lambda\,\overline{s}_{\text{others}} + \overline{(C - \lambda s)}_{\text{labelled}}
# $$
#
# Here the model is right on three of four labelled questions, but the others look harder:

# %%
label, s = np.array([1, 0, 1, 1]), np.array([0.9, 0.2, 0.8, 0.3])
others = np.array([0.2, 0.3, 0.1, 0.4, 0.2, 0.3])
label.mean(), accuracy_from_labels(label, s, others)

# %% [markdown]
# The usual normal interval has no width where all labels are equal: at a mean accuracy of 0.006 most sets of 50 labels hold
# no right answer, and it covers the accuracy in a quarter of all studies. `accuracy_from_labels` counts two right and two
# wrong labels more, as Agresti and Coull do for a proportion. A simulation, with a thousand questions whose $\mu$ lies
# mostly near 0 and 1:

# %%
rng = np.random.default_rng(seed)
studies = []
for mean in (0.006, 0.03, 0.15, 0.5, 0.85, 0.95):
    for kind, blur in {"good": 0.1, "poor": 0.5, "useless": 50}.items():
        for _ in range(250):
            mu = rng.beta(mean / 2, (1 - mean) / 2, 1000)
            s = np.clip(mu + rng.normal(0, blur, 1000), 0, 1)
            label = rng.binomial(1, mu[:labels])
            found = accuracy_from_labels(label, s[:labels], s[labels:])
            held = found.low <= mean <= found.high
            studies.append((mean, kind, held, found.high - found.low))

# %%
columns = ["mean accuracy", "confidence", "covered", "width"]
studies = pd.DataFrame(studies, columns=columns)

# %% label="label-free-simulated" paper=["section-5.3"] evidence=["simulated"]
kept = studies.pivot_table(
    ["covered", "width"], columns[0], "confidence", sort=False
)
kept.columns = [f"{kind}: {what}" for what, kind in kept.columns]
tables.show(
    kept,
    "Share of 95 % intervals that cover the accuracy, and their mean width, "
    f"with {labels} labels and a good, poor or useless confidence.",
    digits=2,
    evidence="simulated",
    **{"mean accuracy": "{:.3f}"},
)

# %% tags=["hide-input"]
covered = studies.groupby(["mean accuracy", "confidence"])["covered"].mean()
middle = studies[studies["mean accuracy"] == 0.5].groupby("confidence")["width"]
notebook.glue(
    labels=labels,
    least=covered.min(),
    narrower=100 * (1 - middle.mean()["good"] / middle.mean()["useless"]),
)

# %%
notebook.say("""
With {labels} labels the interval covers the accuracy in {least:.0%} of the studies or more, at every mean accuracy and with
any confidence. At a mean accuracy of one half a good confidence makes it {narrower:.0f} % narrower than a useless one.
Where nearly all answers are wrong or right it gains little, since the labels hold too few of the others to tell whether
the confidence is good.
""")

# %%
# needs runs
notebook.say("""
On the recorded runs {labels} questions are labelled, over and over, and the accuracy on all recorded questions is to be
covered. *Labels saved* is the share of a
label's variance that the confidence explains on other questions: with it, that many fewer labels do.
""")


# %%
# needs runs
def relabel(mu, s, rng, times=50):
    """Return errors in points of labels alone and with s, and coverage."""
    studies = []
    for _ in range(times):
        drawn = rng.integers(len(mu), size=1000)
        own, label = s[drawn], rng.binomial(1, mu[drawn[:labels]])
        found = accuracy_from_labels(label, own[:labels], own[labels:])
        errors = np.array([label.mean(), found.estimate]) - mu.mean()
        held = found.low <= mu.mean() <= found.high
        studies.append((*errors**2, held))
    alone, both, held = np.mean(studies, axis=0)
    return 100 * alone**0.5, 100 * both**0.5, held


# %%
# needs runs
few = []
for place, own in cells.items():
    for method in own.columns.intersection(["Probe", *METHODS[:2]]):
        one = own.dropna(subset=method)
        mu, s = one["mu"].to_numpy(), one[method].to_numpy()
        if len(one) > 1 and mu.var() > 0 and s.var() > 0:
            gain = label_gains(one[method], one["correct"], one["total"])
            found = mean_interval(gain, clusters=subjects(gain))
            saved = found.estimate / (mu.mean() * (1 - mu.mean()))
            helps = found.low > 0
            few.append((*place, method, *relabel(mu, s, rng), saved, helps))

# %%
# needs runs
columns = ["labels alone", "with both", "covered", "labels saved", "helps"]
few = pd.DataFrame(few, columns=["model", "dataset", "method", *columns])

# %%
# needs runs
each = few.groupby("method")
mean = each[columns[:2]].median()
mean["covered"] = each["covered"].mean()
mean["labels saved"] = each["labels saved"].mean()
mean["significantly"] = [
    f"{own.sum()} of {len(own)}" for _, own in each["helps"]
]

# %% label="label-free-few" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs runs
tables.show(
    mean.reindex([name for name in METHODS if name in mean.index]),
    f"Median error in points with {labels} labels, alone and with a "
    "confidence; coverage; labels saved.",
    digits=1,
    evidence="measured",
    covered="{:.2f}",
    **{"labels saved": "{:.1%}"},
)

# %% tags=["hide-input"]
# needs runs
top = mean["labels saved"].idxmax()
notebook.glue(
    top=top,
    top_saved=100 * mean.loc[top, "labels saved"],
    top_better=mean.loc[top, "significantly"],
    recorded=few["covered"].mean(),
)

# %%
# needs runs
notebook.say("""
*{top}* saves {top_saved:.0f} % of the labels in the mean, significantly in {top_better} cases. Most of a label's variance
is that of the answer itself, and no confidence explains that. The interval covers the accuracy in {recorded:.0%} of all
draws.
""")

# %% [markdown]
# ## Summary
#
# - A mean confidence is an accuracy only where it is calibrated, which takes labels to know.
# - Errors that all models share cancel when models are ranked, and yet a ranking by mean confidence is not safe.
# - A few labels with a confidence give an interval that holds with any confidence, and is narrower with a good one.
#
# ## Exercises
#
# **1 (easy).** What does `accuracy_from_labels` return for a confidence that is 0.5 for all questions? *Hint:* the weight.

# %% tags=["hide-cell", "solution"]
label = np.array([1, 0, 1, 1])
same = accuracy_from_labels(label, np.full(4, 0.5), np.full(9, 0.5))
assert same.estimate == label.mean()

# %% [markdown]
# **2 (medium).** How many labels does the true $\mu$ save, where $\mu$ is uniform on $[0, 1]$? *Hint:* the variance of one answer
# is $\overline\mu(1-\overline\mu)$, and $\mu$ explains its own variance.

# %% tags=["hide-cell", "solution"]
mu = np.random.default_rng(seed).random(100_000)
round(mu.var() / (mu.mean() * (1 - mu.mean())), 2)

# %% [markdown]
# **3 (hard).** Grade ten answers to each labelled question in place of one. Does a good confidence save more? *Hint:* the labels'
# variance falls, the questions' does not.

# %% tags=["hide-cell", "solution"]
s = np.clip(mu + np.random.default_rng(seed).normal(0, 0.1, mu.size), 0, 1)
explained = np.corrcoef(s, mu)[0, 1] ** 2 * mu.var()
[round(explained / (mu.var() + (mu * (1 - mu)).mean() / k), 2) for k in (1, 10)]
