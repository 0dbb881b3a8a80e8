# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How far one response is from the capability
#
# This page shows why the correctness of one response and the expected accuracy of the model are different
# targets for a confidence, and by exactly how much their Brier scores differ: section
# 3 of the paper, its figure 2 and appendix E.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of the samples that are picked for the figures

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import (
    capability_brier,
    correctness_variance,
    expected_response_brier,
)
from capcal_lib.reported import load_reported
from capcal_lib.results import describe_runs, judged_by, load_results, methods

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
rng = np.random.default_rng(seed)
runs = notebook.open_store(store)
results = load_results(runs, model, k_eval=k_eval).query("total > 1")
data = describe_runs(runs, model, k_eval=k_eval)
notebook.about(model, data)

# %% tags=["hide-input"]
printed = load_reported("main").query("method == 'Uniform random'")
printed = printed.assign(distance=2 * (1 / 3 - printed["value"]) * 100 / 99)
own = printed[printed["model"] == model]
means = own.set_index("dataset")["distance"]  # replaced where it is measured

# %%
# needs samples
c, n = results["correct"], results["total"]
mu = c / n
distance = 2 * c * (n - c) / (n * (n - 1))  # of a fresh response from mu
means = distance.groupby("dataset", sort=False).mean()

# %% tags=["hide-input"]
none = "Neither samples nor printed numbers are there to show."
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
One response is a poor stand-in for what the model can do. Averaged over {sets} data sets, the correctness of a fresh
response, which is 0 or 1, lies {apart:.2f} away from the expected accuracy of its question, and on {widest} {most:.2f}.
""")

# %% mystnb={"figure": {"caption": "Correctness of one drawn response of each question against the question's expected accuracy. Were the two targets the same, all points would lie in two corners.", "name": "fig-targets"}, "image": {"alt": "Scatter plot with two horizontal bands of points, incorrect below and correct above. Both bands run over the whole range of expected accuracy, instead of gathering in the lower left and the upper right corner."}} paper=["figure-2", "section-3.2"] evidence=["measured"] reads=["verdicts"]
# needs samples
shown = pd.DataFrame({"mu": mu.loc[widest]})
shown["response"] = rng.random(len(shown)) < shown["mu"]
jitter = shown["response"] + rng.normal(0, 0.04, len(shown))
colors = {False: "#bc3e0b", True: style.ACCENT}
axes = sns.scatterplot(
    shown, x="mu", y=jitter, hue="response", palette=colors, alpha=0.7
)
axes.set_yticks([0, 1], ["incorrect", "correct"])
axes.set(xlabel="expected accuracy, estimated", ylabel="one drawn response")
_ = axes.set(ylim=(-0.4, 1.4), title=title), axes.get_legend().remove()

# %%
# needs samples
notebook.say(r"""
## From counts to the two targets

Every question was answered many times, and each answer graded. The capability target of a question is its expected
accuracy $\mu$, estimated by $\hat\mu$, the share of its scored samples that are correct. The response target is the
correctness of one of them, here drawn at random. Some questions on {widest}, from hard to easy:
""")

# %%
# needs samples
targets = results.loc[widest, ["correct", "total"]].assign(
    mu_hat=shown["mu"].round(2), response=shown["response"].astype(int)
)
easier = targets.sort_values("mu_hat", ignore_index=True)
easier.iloc[len(easier) // 20 :: len(easier) // 8 + 1]

# %%
# needs samples
notebook.say(r"""
The distance between the targets needs no draw. A sample is right with probability $\mu$ and then lies $1 - \mu$ away;
otherwise it lies $\mu$ away. So its mean distance is $\mathbb{E}|C - \mu| = 2\mu(1-\mu)$: zero where the model always or
never answers correctly, and one half where $\mu = 1/2$. With $c$ of $n$ samples correct, $2c(n-c)/(n(n-1))$ estimates it
without bias. Half of it is the *correctness variance* of theorem 2. The paper finds that outputs are rarely binary
(section 4.1); the share of questions with $0.1 < \hat\mu < 0.9$ says how often one sample cannot tell what the model can
do:
""")

# %%
# needs samples
inside = mu.between(0.1, 0.9, inclusive="neither")
by_set = {"questions": n, "mean |C − μ|": distance, "share between": inside}
table = pd.DataFrame(by_set).groupby("dataset", sort=False)
table = table.agg({"questions": "size"} | dict.fromkeys([*by_set][1:], "mean"))
table["correctness variance"] = table["mean |C − μ|"] / 2

# %% tags=["hide-input"] label="targets-distance" paper=["figure-11", "appendix-e", "section-4.1"] evidence=["measured"] reads=["verdicts"]
# needs samples
named = table.rename(index=lambda name: load_dataset(name).title)
tables.show(
    named.rename_axis("data set"),
    "How far the two targets lie apart, and the share of questions with "
    "0.1 < μ̂ < 0.9.",
    evidence=notebook.evidence_of(data),
)

# %% [markdown]
# ## Every model on every data set
#
# For models with samples the mean distance is computed as above. The samples of the paper's models were not published,
# but its baseline gives them away: *Uniform random* scores $1/3 - \hat\mu(1-\hat\mu)$ on average (section 4.2), so the mean
# distance is $2\,(1/3 - \text{score})$, times $100/99$ for the bias of a hundred samples.

# %%
found = {}
for name in model_names():
    mark = notebook.evidence_of(describe_runs(runs, name, k_eval=k_eval))
    if mark == notebook.evidence_of(data):  # the kinds never share a figure
        counts = load_results(runs, name, k_eval=k_eval, recipe=None)
        counts = counts.query("total > 1")
        c, n = counts["correct"], counts["total"]
        found[name] = (
            (2 * c * (n - c) / (n * (n - 1))).groupby("dataset").mean()
        )
measured = pd.DataFrame(found).dropna(how="all", axis="columns").T
reported = printed.pivot(index="model", columns="dataset", values="distance")

# %% tags=["hide-input"]
both = {
    notebook.evidence_of(data): measured,
    "reported": reported.drop(measured.index, errors="ignore"),
}
wide = pd.concat(both).rename(columns=lambda name: load_dataset(name).title)
wide.index = [
    f"{load_model(name).short_title} ({kind})" for kind, name in wide.index
]
notebook.glue(nearest=float(wide.min().min()), farthest=float(wide.max().max()))

# %% mystnb={"figure": {"caption": "Mean distance of one response's correctness from the expected accuracy. Above the line it comes from samples, below it from the paper's printed baseline. White: the model has no samples of the data set here, or the paper prints none.", "name": "fig-divergence-grid"}, "image": {"alt": "Heat map of models against data sets, with a line between measured and reported models. Distances run from nearly 0, where almost every question is always right or always wrong, to about a third on multiple-choice exams."}} paper=["figure-11", "appendix-e"] evidence=["measured", "reported"] reads=["verdicts", "main"] label="targets-everywhere"
light = sns.light_palette("#17616b", as_cmap=True)
look = {"vmin": 0, "vmax": 0.8, "annot_kws": {"size": 9, "color": style.INK}}
axes = sns.heatmap(wide, annot=True, fmt=".2f", cmap=light, cbar=False, **look)
axes.axhline(len(measured), color=style.INK)
axes.grid(visible=False)
_ = axes.set(xlabel="", ylabel="")

# %%
notebook.say("""
The mean distance runs from {nearest:.2f} to {farthest:.2f}. It is small only where nearly every question is nearly always
answered right, or nearly never.
""")

# %%
# needs samples
notebook.say("""
## Theorem 2 on data

For any confidences, the capability Brier score is the expected response Brier score less the variance of correctness. On
counts this is an identity, so that the last column may hold nothing but rounding, here on {widest}.
[The theorems, on data](20_theorems.ipynb) goes on from here.
""")

# %%
# needs samples
parts = {}
own = results.loc[[widest]].dropna(axis="columns", how="all")
for name in methods(own):
    asked = judged_by(own, name)
    s, counts = asked["confidence"], (asked["correct"], asked["total"])
    response = expected_response_brier(s, *counts)
    capability = capability_brier(s, *counts)
    variance = correctness_variance(*counts)
    gap = capability - (response - variance)
    parts[name] = response, variance, capability, gap

# %% label="targets-theorem-2" paper=["theorem-2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
columns = ["response Brier", "correctness variance", "capability Brier", "gap"]
pd.DataFrame(parts, index=columns).T.round(4) + 0.0  # no -0.0

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
few = rng.binomial(5, 0.3, 100_000), np.full(100_000, 5)
plain = correctness_variance(*few) / (0.3 * 0.7)  # (k - 1) / k = 0.8
corrected = correctness_variance(*few, corrected=True) / (0.3 * 0.7)
round(plain, 2), round(corrected, 2)
