# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How far one response is from the capability

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of the responses that are drawn

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import correctness_variance, mean_interval
from capcal_lib.reported import load_reported
from capcal_lib.results import describe_runs, load_results, subjects

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
rng = np.random.default_rng(seed)
varied = data[data["most"] > 1]
ONE = "Every question has one scored sample, and a share of correct ones takes two. "
ONE += "Draw more with: capcal sample --k 2"
notebook.about(data, {} if len(varied) else {"samples": ONE})

# %% tags=["hide-input"]
lost = 1 if protocol == "corrected" else 0  # the plug-in divides by n * n
printed = load_reported("main").query("method == 'Uniform random'")
spread = (1 / 3 - printed["value"]) * 100 / (100 - lost)
printed = printed.assign(distance=2 * spread).set_index("model")
means = printed.query("model == @model").set_index("dataset")["distance"]

# %% [markdown] needs="samples"
# With $c$ of $n$ samples correct, $\hat\mu = c/n$ estimates the expected accuracy $\mu$ of a question. Another response is
# correct with probability $\mu$ and then lies $1 - \mu$ away from it; otherwise it lies $\mu$ away. So its mean distance is
# $\mathbb{E}|C - \mu| = 2\mu(1-\mu)$, which $2c(n-c)/(n(n-1))$ estimates without bias; by the paper's
# protocol it is $2\hat\mu(1-\hat\mu)$.

# %%
# needs samples
results = load_results(
    runs, model, k_eval=k_eval, recipe=None, verdicts=verdicts
).query("total > 1")
c, n = results["correct"], results["total"]
mu = c / n
distance = 2 * c * (n - c) / (n * (n - lost))
by_set = distance.groupby(level="dataset", sort=False)
means = by_set.mean()

# %% tags=["hide-input"]
none = "The paper prints no number of this model either."
notebook.lack(means.empty, numbers=none)

# %% tags=["hide-input"]
# needs numbers
widest = means.idxmax()
title = load_dataset(widest).title
notebook.glue(sets=len(means), apart=means.mean(), most=means.max())
notebook.glue(widest=title)

# %% tags=["finding"]
# needs numbers
notebook.finding("""
Judging a model by a single answer to a question, one is off by {apart:.2f} on average over {sets} data sets, and by {most:.2f} on
{widest}.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "A point is one response, drawn at random, to each question. If a single answer told what the model can do, all points would lie in two corners, the incorrect at 0 and the correct at 1. Instead both bands run over most of the scale: the same answer, right or wrong, comes from questions of very different expected accuracy.", "name": "fig-targets"}, "image": {"alt": "Scatter plot with two horizontal bands of points, incorrect below and correct above. Both bands run over the whole range of expected accuracy, instead of gathering in the lower left and the upper right corner."}} paper=["figure-2", "section-3.2"] evidence=["measured"] reads=["verdicts"]
# needs samples
share = mu.loc[widest]
correct = rng.random(len(share)) < share
axes = sns.scatterplot(
    x=share,
    y=correct + rng.normal(0, 0.04, len(share)),
    hue=correct,
    style=correct,
    markers=["X", "o"],
    palette=["#bc3e0b", style.ACCENT],
    alpha=0.7,
    legend=False,
)
axes.set_yticks([0, 1], ["incorrect", "correct"])
axes.set(xlabel="expected accuracy, estimated", ylabel="one drawn response")
_ = axes.set(ylim=(-0.4, 1.4), title=title)

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "How far the correctness of one response lies from the expected accuracy on average, computed from the printed baseline. One half is the most that is possible, and the distance is small only where nearly every question is nearly always solved, or nearly never.", "name": "fig-targets-printed"}, "image": {"alt": "Bars of the mean distance, one a data set, all between 0 and one half."}} paper=["figure-11"] evidence=["reported"] reads=["main"]
# needs paper
bars = printed.loc[[model]].sort_values("distance")
titles = [load_dataset(name).title for name in bars["dataset"]]
axes = sns.barplot(x=bars["distance"], y=titles, color=style.ACCENT)
_ = axes.set(xlim=(0, 0.5), xlabel="mean distance", ylabel="")

# %% [markdown] needs="samples"
# The paper finds that outputs are rarely binary (section 4.1). The share of questions with $0.1 < \hat\mu < 0.9$ says how
# often one sample cannot tell what the model can do. Half of the distance is the *correctness variance*, by which the scores
# of the two targets differ: [the theorems, on data](20_theorems.ipynb).

# %%
# needs samples
between = mu.between(0.1, 0.9, inclusive="neither")
rows = {
    name: mean_interval(subset, clusters=subjects(subset), bounds=(0, 0.5))
    for name, subset in by_set
}
table = pd.DataFrame(rows, index=["mean distance", "low", "high"]).T
table["share between"] = between.groupby(level="dataset").mean()
table.insert(0, "questions", by_set.size())

# %% tags=["hide-input"] label="targets-distance" paper=["figure-11", "appendix-e", "section-4.1"] evidence=["measured"] reads=["verdicts"]
# needs samples
tables.show(
    table.rename(index=data["title"]).rename_axis("data set"),
    "How far one response lies from the expected accuracy, with its 95 % interval "
    "for questions like these, and the share of questions with 0.1 < μ̂ < 0.9.",
    evidence=notebook.evidence_of(data),
)

# %% [markdown]
# ## Every model on every data set
#
# The samples of the paper's models were not published, but their distance can be computed from a printed baseline: *Uniform
# random* scores $1/3 - \hat\mu(1-\hat\mu)$ on average (section 4.2), so that $2\hat\mu(1-\hat\mu)$ is $2\,(1/3 - \text{score})$;
# the factor $100/99$ removes the bias of a hundred samples.

# %%
measured = {}
for name in model_names():
    mark = notebook.evidence_of(describe_runs(runs, name, k_eval=k_eval))
    if mark == notebook.evidence_of(data):  # the kinds never share a figure
        counts = load_results(runs, name, k_eval=k_eval, recipe=None)
        counts = counts.query("total > 1")
        c, n = counts["correct"], counts["total"]
        apart = 2 * c * (n - c) / (n * (n - lost))
        measured[name] = apart.groupby("dataset").mean()
measured = pd.DataFrame(measured).dropna(how="all", axis="columns").T
reported = printed.pivot(columns="dataset", values="distance")

# %% tags=["hide-input"]
both = {
    "here": measured,
    "printed": reported.drop(measured.index, errors="ignore"),
}
wide = pd.concat(both).rename(columns=lambda name: load_dataset(name).title)
wide.index = [
    f"{load_model(name).short_title} ({kind})" for kind, name in wide.index
]
notebook.glue(nearest=float(wide.min().min()), farthest=float(wide.max().max()))

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Mean distance of one response from the expected accuracy. Above the line it comes from samples, below it from the printed baseline. A cell is empty where the model has no samples here, or the paper prints none.", "name": "fig-divergence-grid"}, "image": {"alt": "Heat map of models against data sets, with a line between measured and reported models. Distances run from nearly 0, where almost every question is always right or always wrong, to about a third on multiple-choice exams."}} paper=["figure-11", "appendix-e"] evidence=["measured", "reported"] reads=["verdicts", "main"] label="targets-everywhere"
axes = sns.heatmap(
    wide,
    annot=wide.map("{:.2f}".format).map(lambda share: share[1:]),
    fmt="",
    cmap=sns.light_palette(style.ACCENT, as_cmap=True),
    cbar=False,
    vmin=0,
    vmax=0.8,
    annot_kws={"size": 9, "color": style.INK},
)
axes.axhline(len(measured), color=style.INK)
axes.grid(visible=False)
_ = axes.set(xlabel="", ylabel="")

# %%
notebook.say("""
It runs from {nearest:.2f} to {farthest:.2f}, and is small only where nearly every question is nearly always answered right, or
nearly never.
""")

# %% [markdown]
# ## Summary
#
# - One response's correctness is a noisy stand-in for what a model can do, and the noise is the correctness variance.
# - A method that is perfect by the capability target still scores that variance by the response target.
# - The variance is a property of the model and the question; no estimator can remove it.
#
# ## Exercises
#
# **1 (easy).** Show that the expected value of $|C - \mu|$ is $2\mu(1-\mu)$, and check it by drawing responses to a
# question with $\mu = 0.3$. *Hint:* $C$ is 1 with probability $\mu$.

# %% tags=["hide-cell", "solution"]
drawn = rng.random(100_000) < 0.3
float(np.abs(drawn - 0.3).mean()), 2 * 0.3 * 0.7

# %% [markdown]
# **2 (medium).** At which $\mu$ does one response tell least about the capability, and how far off is it there?
# *Hint:* where is $2\mu(1-\mu)$ largest?

# %% tags=["hide-cell", "solution"]
grid = np.linspace(0, 1, 101)
(
    float(grid[np.argmax(2 * grid * (1 - grid))]),
    float((2 * grid * (1 - grid)).max()),
)

# %% [markdown]
# **3 (hard).** The mean of $2\hat\mu(1-\hat\mu)$ falls when fewer samples define $\hat\mu$. By which factor, and how is it
# put right? *Hint:* compare `correctness_variance` with and without `corrected=True` on five samples a question.

# %% tags=["hide-cell", "solution"]
counts = rng.binomial(5, 0.3, 100_000), np.full(100_000, 5)
plain = correctness_variance(*counts) / (0.3 * 0.7)  # (k - 1) / k = 0.8
corrected = correctness_variance(*counts, corrected=True) / (0.3 * 0.7)
round(plain, 2), round(corrected, 2)
