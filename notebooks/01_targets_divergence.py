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
# This page shows why the correctness of one response and the {term}`expected accuracy` of the model are different
# targets for a confidence, and by exactly how much their {term}`Brier scores <capability Brier>` differ: section
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
    mean_interval,
)
from capcal_lib.reported import load_reported
from capcal_lib.results import describe_runs, load_results, subjects

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
rng = np.random.default_rng(seed)
runs = notebook.open_store(store)
results = load_results(runs, model, k_eval=k_eval)
results = results[results["total"] > 1]
notebook.about(model, describe_runs(runs, model, k_eval=k_eval))

# %% tags=["remove-cell"]
uniform = load_reported("main").query(
    "model == @model and method == 'Uniform random'"
)
means = 2 * (1 / 3 - uniform.set_index("dataset")["value"]) * 100 / 99
if len(results):
    c, n = results["correct"], results["total"]
    share, distance = c / n, 2 * c * (n - c) / (n * (n - 1))
    means = distance.groupby(level="dataset", sort=False).mean()

# %% tags=["hide-input"]
none = {"numbers": "Neither samples nor printed numbers are there to show."}
notebook.lack(**({} if len(means) else none))

# %% tags=["remove-cell"]
# needs numbers
widest = means.idxmax()
notebook.glue(
    sets=len(means),
    apart=means.mean(),
    most=means.max(),
    widest=load_dataset(widest).title,
)

# %% tags=["remove-cell"]
# needs samples
said = "How far one answer lies from the expected accuracy, on average."
far = {
    load_dataset(name).title: mean_interval(
        own, seed=seed, clusters=subjects(own.to_frame()), bounds=(0, 0.5)
    )[:3]
    for name, own in distance.groupby("dataset", sort=False)
}
far = pd.DataFrame(far, ["estimate", "low", "high"]).T.sort_values("estimate")
far.index = far.index + far["estimate"].map(": {:.2f}".format)
notebook.glue(strip=tables.strip(far, said))

# %% [markdown] needs="numbers"
# Averaged over {glue:text}`sets` data sets, the correctness of one fresh response lies {glue:text}`apart:.2f` away from
# the expected accuracy of its question, and on {glue:text}`widest` {glue:text}`most:.2f`: one response is a poor
# stand-in for what the model can do.

# %% mystnb={"figure": {"caption": "Correctness of one drawn response of each question against the question's expected accuracy. Were the two targets the same, all points would lie in two corners.", "name": "fig-targets"}, "image": {"alt": "Scatter plot with two horizontal bands of points, incorrect below and correct above. Both bands run over the whole range of expected accuracy, instead of gathering in the lower left and the upper right corner."}} paper=["figure-2", "section-3.2"] evidence=["measured"] reads=["verdicts"] tags=["hide-input"]
# needs samples
shown = results.loc[[widest]].assign(mu=share.loc[[widest]])
shown["response"] = rng.random(len(shown)) < shown["mu"]
jitter = shown["response"] + rng.normal(0, 0.04, len(shown))
colors = {False: "#bc3e0b", True: style.ACCENT}
look = {"hue": "response", "palette": colors, "alpha": 0.7}
axes = sns.scatterplot(shown, x="mu", y=jitter, legend=False, **look)
axes.figure.set_figheight(3)
axes.set_yticks([0, 1], ["incorrect", "correct"])
_ = axes.set(
    xlabel="expected accuracy, μ̂",
    ylabel="one drawn response",
    ylim=(-0.4, 1.4),
    title=load_dataset(widest).title,
)

# %% [markdown]
# ## From counts to the two targets
#
# Every question was answered up to `k_eval` times, and each answer graded. What is kept of a question is how many of
# its scored samples were `correct`, of how many in `total`.

# %%
# needs samples
results[["correct", "total"]].head(3)

# %% [markdown]
# The capability target of a question is its expected accuracy $\mu$, estimated by the share of correct samples. The
# response target is the correctness $C$ of one of them, here drawn at random.

# %%
# needs samples
mu = results["correct"] / results["total"]
response = rng.random(len(mu)) < mu
targets = pd.DataFrame({"mu_hat": mu, "response": response.astype(int)})
targets.groupby("dataset", sort=False).head(1)

# %% [markdown]
# The distance between the targets needs no draw. A sample is right with probability $\mu$ and then lies $1 - \mu$
# away; otherwise it lies $\mu$ away. So its mean distance is $\mathbb{E}|C - \mu| = 2\mu(1-\mu)$: zero where the
# model always or never answers correctly, and one half where $\mu = 1/2$. With $c$ of $n$ samples correct,
# $2c(n-c)/(n(n-1))$ estimates it without bias:

# %%
# needs samples
c, n = results["correct"], results["total"]
distance = 2 * c * (n - c) / (n * (n - 1))
distance.groupby("dataset", sort=False).mean().round(3)

# %% [markdown]
# A question is interesting where $\hat\mu$ is neither near 0 nor near 1, because one sample cannot tell what the model
# can do there. The paper finds that outputs are rarely binary (section 4.1); here is the share of questions with
# $0.1 < \hat\mu < 0.9$, and the *correctness variance* of theorem 2, without the bias of a finite number of samples.

# %% tags=["hide-input"]
# needs samples
by_set = results.assign(mu=mu, distance=distance).groupby("dataset", sort=False)
table = by_set.size().rename("questions").to_frame()
table["mean |C − μ|"] = by_set["distance"].mean()
table["share with 0.1 < μ̂ < 0.9"] = by_set["mu"].agg(
    lambda each: each.between(0.1, 0.9, inclusive="neither").mean()
)
table["correctness variance"] = by_set.apply(
    lambda own: correctness_variance(
        own["correct"], own["total"], corrected=True
    )
)

# %% label="targets-distance" paper=["figure-11", "appendix-e", "section-4.1"] evidence=["measured"] reads=["verdicts"]
# needs samples
evidence = "simulated" if model == "simulated" else "measured"
table = table.rename(index=lambda name: load_dataset(name).title)
table = table.rename_axis("data set")
tables.show(
    table,
    "How far the two targets lie apart; correctness variance is half of it.",
    evidence=evidence,
)

# %% [markdown]
# ## Every model on every data set
#
# For models with samples, the mean distance is computed as above. The samples of the paper's models were not
# published, but its baseline gives them away: *Uniform random* scores $1/3 - \hat\mu(1-\hat\mu)$ on average (section
# 4.2), so the mean distance is $2\,(1/3 - \text{score})$, times $100/99$ for the bias of a hundred samples.

# %% tags=["hide-input"]
printed = load_reported("main").query("method == 'Uniform random'")
reported = printed.assign(
    distance=2 * (1 / 3 - printed["value"]) * 100 / 99, evidence="reported"
)
rows = [reported[["model", "dataset", "distance", "evidence"]]]
for name in model_names():
    if load_model(name).engine == "simulated" and name != model:
        continue  # never beside what is measured
    counts = load_results(runs, name, k_eval=k_eval).query("total > 1")
    c, n = counts["correct"], counts["total"]
    found = (
        (2 * c * (n - c) / (n * (n - 1)))
        .groupby(level="dataset")
        .mean()
        .rename("distance")
        .reset_index()
    )
    rows.append(found.assign(model=name, evidence="measured"))
everywhere = pd.concat(rows)

# %% mystnb={"figure": {"caption": "Mean distance of one response's correctness from the expected accuracy, for every model and data set: measured for the models with samples, from the printed baseline for the paper's three.", "name": "fig-divergence-grid"}, "image": {"alt": "Heat map of models against data sets. Distances run from nearly 0, where almost every question is always right or always wrong, to about a third on multiple-choice exams."}} paper=["figure-11", "appendix-e"] evidence=["measured", "reported"] reads=["verdicts", "main"] tags=["hide-input"] label="targets-everywhere"
wide = everywhere.assign(
    row=[load_model(name).title for name in everywhere["model"]],
    column=[load_dataset(name).title for name in everywhere["dataset"]],
).pivot_table(index="row", columns="column", values="distance", sort=False)
axes = sns.heatmap(
    wide,
    annot=True,
    fmt=".2f",
    cmap=sns.light_palette("#17616b", as_cmap=True),
    vmin=0,
    vmax=0.8,  # so light that the numbers are dark on every cell
    cbar=False,
    annot_kws={"size": 9, "color": style.INK},
)
axes.grid(visible=False)
_ = axes.set(xlabel="", ylabel="")

# %% tags=["remove-cell"]
nearest, farthest = everywhere["distance"].min(), everywhere["distance"].max()
notebook.glue(nearest=nearest, farthest=farthest)

# %% [markdown]
# The mean distance runs from {glue:text}`nearest:.2f` to {glue:text}`farthest:.2f`. It is small only where nearly every
# question is nearly always answered right, or nearly never.
#
# ## Theorem 2 on data
#
# For any confidences, the capability Brier score is the expected response Brier score less the variance of
# correctness. On counts this is an identity, so the last column may hold nothing but rounding.
# [The theorems, on data](20_theorems.ipynb) goes on from here.

# %%
# needs samples
parts = {}
own = results.loc[[widest]].dropna(axis="columns", how="all")
for name in own.columns.drop(["correct", "total"]):
    asked = own.dropna(subset=[name])
    counts = asked["correct"], asked["total"]
    response = expected_response_brier(asked[name], *counts)
    capability = capability_brier(asked[name], *counts)
    variance = correctness_variance(*counts)
    gap = capability - (response - variance)
    parts[name] = response, variance, capability, gap

# %% tags=["hide-input"] label="targets-theorem-2" paper=["theorem-2"] evidence=["measured"] reads=["verdicts", "confidences"]
# needs samples
columns = ["response Brier", "correctness variance", "capability Brier", "gap"]
identity = pd.DataFrame(parts, index=columns).T.rename_axis("method")
tables.show(
    identity,
    f"Both sides of theorem 2, on {load_dataset(widest).title}.",
    evidence=evidence,
    gap="{:.0e}",
)

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
