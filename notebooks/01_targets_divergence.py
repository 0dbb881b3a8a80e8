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
# Ask a model the same question a hundred times. The share of correct answers, the *expected accuracy* $\mu$, is what the model
# can do. Most studies ask once. How far does one answer lie from $\mu$, and what does that change for a confidence?

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
dataset: str = ""  # one with samples; empty: the one with the largest distance
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of the responses that are drawn

# %%
from capcal_lib.book.page import finding, open_page, show_runs
from capcal_lib.book.tables import show
from capcal_lib.results.results import results_of

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)
show_runs(page, dataset, printed=["figure-11"])

# %% [markdown]
# A *short* prompt asks for the answer alone, and one with *steps* for reasoning first. The results have one row per question:
# how many samples were scored, and how many are correct. If $c$ of $n$ samples are correct, $\hat\mu = c/n$ estimates $\mu$.
# One more response lies $1 - \mu$ away from $\mu$ if it is correct, and $\mu$ away if not. So its mean distance is
# $\mathbb{E}|C - \mu| = 2\mu(1-\mu)$. We estimate it without bias by $2c(n-c)/(n(n-1))$. The paper's protocol uses
# $2\hat\mu(1-\hat\mu)$.

# %%
results = results_of(page.counting)
results = results[results["total"] > 1]
mu = results["correct"] / results["total"]

# %% [markdown]
# The paper finds that outputs are rarely binary (section 4.1). How often are two to eight of ten samples correct? Draw ten of a
# question's samples: the number of correct ones is hypergeometric. `response_distances` adds up the probabilities of two to
# eight, and computes the mean distance. The interval covers both sources of chance: few samples, and the choice of questions.

# %%
from capcal_lib.results.targets import response_distances

distances = response_distances(results, protocol=protocol)

# %% label="targets-distance"
columns = {"low": "from", "high": "to"}
caption = "Mean distance of one response from the expected accuracy, with its 95 % interval for questions like these, and the share of questions with two to eight correct samples out of ten."
show(distances.rename(columns=columns), caption, evidence=page.evidence)

# %% tags=["finding"]
widest = distances["mean distance"].idxmax()
finding(
    "A single answer is off by {apart:.2f} on average over the data sets, and by {most:.2f} on {widest}.",
    apart=distances["mean distance"].mean(),
    most=distances.loc[widest, "mean distance"],
    widest=page.runs.loc[widest, "title"],
)

# %% tags=["remove-cell"]
from capcal_lib.book.page import glue

glue(sets=len(distances), apart=distances["mean distance"].mean())

# %% [markdown]
# What does that look like? Draw one response to each question:

# %%
import numpy as np

rng = np.random.default_rng(seed)
points = mu.rename("share").reset_index()
points["correct"] = rng.random(len(points)) < points["share"]

# %%
noise = rng.normal(0, 0.05, len(points))  # so that points do not overlap
points["response"] = points["correct"] + noise

# %% [markdown]
# We look at one data set first, by default the one with the largest mean distance:

# %%
from capcal_lib.book import style

shown = dataset or widest
of_shown = points[points["dataset"] == shown]

# %%
marks = {"x": "share", "y": "response", "hue": "correct", "style": "correct"}
marks |= {"alpha": 0.7, "legend": False, "markers": {False: "X", True: "o"}}
marks["rasterized"] = True  # thousands of points
marks["palette"] = {False: "#bc3e0b", True: style.ACCENT}
bands = {"yticks": [0, 1], "yticklabels": ["incorrect", "correct"]}
bands["ylim"] = (-0.4, 1.4)

# %% tags=["picture"] label="fig-targets" mystnb={"image": {"alt": "Scatter plot with two horizontal bands of points, incorrect and correct responses, against expected accuracy."}}
import seaborn as sns

axes = sns.scatterplot(of_shown, **marks)
axes.set(xlabel="expected accuracy, estimated", ylabel="one drawn response")
_ = axes.set(title=page.runs.loc[shown, "title"], **bands)

# %% [markdown]
# One point per question: one random response. If a single answer told what the model can do, all points would lie in two
# corners, the incorrect ones at 0 and the correct ones at 1. Points may stand in columns, because a share of $n$ samples is a
# multiple of $1/n$.

# %% [markdown]
# Here are all data sets, with at most 500 questions of each:

# %%
from capcal_lib.book import tables

some = points.sample(frac=1, random_state=rng).groupby("dataset").head(500)
order = page.runs.loc[distances.index, "title"]

# %% label="targets-points" mystnb={"image": {"alt": "A panel for each data set, with two horizontal bands of points as in the first figure."}}
panels = {"col": "dataset", "col_order": order, "col_wrap": 4, "height": 1.8}
grid = sns.relplot(tables.titled(some), **panels, **marks).set(**bands)
grid.set_titles("{col_name}").set_axis_labels("expected accuracy", "")
_ = grid.tight_layout()

# %% [markdown]
# One random response per question against the expected accuracy. One response tells much if incorrect responses gather at 0 and
# correct ones at 1.

# %% [markdown]
# ## Every model on every data set
#
# How far is one answer off for other models? The paper's samples were not published, but its baseline *Uniform random* gives the
# distance. This baseline scores $1/3 - \hat\mu(1-\hat\mu)$ on average (section 4.2), so
# $2\hat\mu(1-\hat\mu) = 2\,(1/3 - \text{score})$. The factor $100/99$ removes the bias of a hundred samples.

# %%
import pandas as pd
from capcal_lib.book.page import models_beside

measured = {
    name: response_distances(results_of(one.counting), protocol=protocol)
    for name, one in models_beside(page).items()
}

# %%
measured = pd.concat(measured, names=["model"])["mean distance"]
measured = measured.rename("distance").reset_index()

# %%
from capcal_lib.reported import printed_distances

printed = printed_distances(corrected=protocol == "corrected")
printed = printed[~printed["model"].isin(measured["model"])]
both = tables.titled(pd.concat([measured, printed]))
wide = both.pivot_table("distance", "model", "dataset", sort=False)

# %% label="targets-everywhere" mystnb={"image": {"alt": "Heat map of the mean distance, models against data sets, with a line between measured and reported models."}}
from capcal_lib.plots import INK

tints = sns.light_palette(style.ACCENT, as_cmap=True)
numbers = {"annot": True, "fmt": ".2f", "annot_kws": {"size": 9, "color": INK}}
axes = sns.heatmap(wide, cmap=tints, vmin=0, vmax=0.8, cbar=False, **numbers)
axes.axhline(measured["model"].nunique(), color=INK)
axes.grid(visible=False)
_ = axes.set(xlabel="", ylabel="", title="mean distance of one response")

# %% [markdown]
# Mean distance of one response from the expected accuracy: above the line from samples, below it from the printed baseline. A
# small value means that most questions are solved almost always or almost never. So the distance depends on whether the questions
# are too easy or too hard for a model, and not on its size alone. A model has no number on a data set that it was not asked.

# %% [markdown]
# ## Summary
#
# One response is a noisy estimate of what a model can do. The noise is the *correctness variance*, half of the mean distance.
# Even a confidence that equals $\mu$ misses one response by this distance on average. So we compare confidences with $\mu$.
#
# One sample is too few. [Next](02_k_eval_choice.ipynb): how many does it take?
#
# ## Exercises
#
# **1 (easy).** In the first figure, what is a point in the upper band, left of the middle? What share of the correct responses
# are such points? *Hint:* `of_shown` has the points.

# %% tags=["hide-cell", "solution"]
# Luck: the model mostly gets such a question wrong
lucky = of_shown.loc[of_shown["correct"], "share"] < 0.5
pd.Series({"share of correct responses by luck": lucky.mean()})

# %% [markdown]
# **2 (medium).** Show that $\mathbb{E}|C - \mu| = 2\mu(1-\mu)$, and check it with random responses to a question with
# $\mu = 0.3$. *Hint:* $C$ is 1 with probability $\mu$, and otherwise 0.

# %% tags=["hide-cell", "solution"]
# With probability mu the distance is 1 - mu, and with probability 1 - mu it is mu:
# mu (1 - mu) + (1 - mu) mu = 2 mu (1 - mu)
responses = rng.random(100_000) < 0.3
simulated = np.abs(responses - 0.3).mean()
pd.Series({"simulated": simulated, "formula": 2 * 0.3 * 0.7})

# %% [markdown]
# **3 (hard).** The mean of $2\hat\mu(1-\hat\mu)$ falls if fewer samples define $\hat\mu$. By which factor? *Hint:* compare
# `correctness_variance` with and without `corrected=True` on five samples per question.

# %% tags=["hide-cell", "solution"]
# Five samples per question, without and with the correction
from capcal_lib.metrics import correctness_variance

counts = rng.binomial(5, 0.3, 100_000), np.full(100_000, 5)
plain = correctness_variance(*counts) / (0.3 * 0.7)  # (k - 1) / k = 0.8
corrected = correctness_variance(*counts, corrected=True) / (0.3 * 0.7)
pd.Series({"without": plain, "with": corrected}).round(2)
