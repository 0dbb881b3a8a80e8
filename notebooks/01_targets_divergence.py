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
# A model asked the same question a hundred times is right in some of its answers, and their share, the *expected accuracy* $\mu$,
# is what it can do. Most studies ask once: how far does one answer lie from $\mu$, and what does that change for a confidence?

# %% tags=["parameters"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
dataset: str = ""  # one with samples; empty: where a response tells least
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of the responses that are drawn

# %% tags=["provenance"]
from capcal_lib.book.lesson import open_page

page = open_page(globals(), paper=["figure-11"])

# %% [markdown]
# The results have a row a question: how many of its samples were scored, and how many of those are correct.

# %%
results = page.results()
results = results[results["total"] > 1]
results.groupby("dataset").head(1)[["correct", "total"]]

# %% [markdown]
# With $c$ of $n$ samples correct, $\hat\mu = c/n$ estimates $\mu$. Another response is correct with probability $\mu$ and then
# lies $1 - \mu$ away from it; otherwise it lies $\mu$ away. So its mean distance is $\mathbb{E}|C - \mu| = 2\mu(1-\mu)$, which
# $2c(n-c)/(n(n-1))$ estimates without bias, from a few samples even above the largest distance, one half; by the paper's protocol
# it is $2\hat\mu(1-\hat\mu)$.

# %%
c, n = results["correct"], results["total"]
mu = c / n
distance = 2 * c * (n - c) / (n * (n - 1))
distance.groupby("dataset", sort=False).mean().rename(page.data["title"])

# %% [markdown]
# `response_distances` does so with an interval for questions like these. The paper finds that outputs are rarely binary
# (section 4.1). How often is that so: on which share of the questions are more than a tenth and less than nine tenths of the samples
# correct? This share depends on the number of samples, and data sets have different numbers. So we take ten samples of every question,
# of which two to eight have to be correct. No draw is needed: the probability of two to eight among ten of a question's samples is
# hypergeometric, and `shares_between` sums it.

# %%
from capcal_lib.results.targets import shares_between

shares_between(results).groupby("dataset", sort=False).mean().round(3)

# %% label="targets-distance" paper=["figure-11", "appendix-e", "section-4.1"] evidence=["measured"] reads=["verdicts"]
from capcal_lib.results.targets import response_distances

distances = response_distances(results, protocol=protocol)
page.show(
    distances.rename(columns={"low": "from", "high": "to"}),
    "How far one response lies from the expected accuracy, with its 95 % interval "
    "for questions like these, and the share of questions of which two to eight of ten samples are correct, "
    "which takes ten samples.",
)

# %% tags=["finding"]
from capcal_lib.text import counted

page.end_where_nothing_is_solved(results)
widest = distances["mean distance"].idxmax()
page.finding(
    "A single answer to a question is off by {apart:.2f} on average over {sets}, and by {most:.2f} on {widest}.",
    apart=distances["mean distance"].mean(),
    sets=counted(len(distances), "data set"),
    most=distances.loc[widest, "mean distance"],
    widest=page.data.loc[widest, "title"],
)

# %% tags=["remove-cell"]
from capcal_lib.book.lesson import glue

glue(sets=len(distances), apart=distances["mean distance"].mean())

# %% [markdown]
# What does that look like? Draw one response to each question.

# %%
import numpy as np

rng = np.random.default_rng(seed)
points = mu.rename("share").reset_index()
points["correct"] = rng.random(len(points)) < points["share"]
noise = rng.normal(0, 0.05, len(points))  # so that each can be seen
points["response"] = points["correct"] + noise

# %% [markdown]
# First on the data set on which a response tells least, or on the one asked for:

# %%
from capcal_lib.book import style

shown = dataset or widest
of_shown = points[points["dataset"] == shown]
marks = {"x": "share", "y": "response", "hue": "correct", "style": "correct"}
marks |= {"alpha": 0.7, "legend": False, "markers": {False: "X", True: "o"}}
marks["palette"] = {False: "#bc3e0b", True: style.ACCENT}
bands = {"yticks": [0, 1], "yticklabels": ["incorrect", "correct"]}
bands["ylim"] = (-0.4, 1.4)

# %% tags=["picture"] label="fig-targets" paper=["figure-2", "section-3.2"] evidence=["measured"] reads=["verdicts"] mystnb={"image": {"alt": "Scatter plot with two horizontal bands of points, of incorrect and of correct responses, against expected accuracy."}}
import seaborn as sns

axes = sns.scatterplot(of_shown, **marks)
axes.set(xlabel="expected accuracy, estimated", ylabel="one drawn response")
_ = axes.set(title=page.data.loc[shown, "title"], **bands)

# %% [markdown] tags=["caption"]
# A point is one response, drawn at random, to each question of the data set on which a response tells least, or of the one asked
# for. If a single answer told what the model can do, all points would lie in two corners, the incorrect at 0 and the correct at
# 1. Where both bands run over the scale instead, the same answer, right or wrong, comes from questions of very different expected
# accuracy.

# %% [markdown]
# The same points on each data set; of more than 500 questions, 500 are drawn at random.

# %% label="targets-points" paper=["figure-11", "appendix-e"] evidence=["measured"] reads=["verdicts"] mystnb={"image": {"alt": "A panel for each data set, with two horizontal bands of points as in the first figure."}}
from capcal_lib.book import tables

some = points.sample(frac=1, random_state=rng).groupby("dataset").head(500)
order = page.data.loc[distances.index, "title"]
panels = {"col": "dataset", "col_order": order, "col_wrap": 4, "height": 1.8}
grid = sns.relplot(tables.titled(some), **panels, **marks).set(**bands)
grid.set_titles("{col_name}").set_axis_labels("expected accuracy", "")
_ = grid.tight_layout()

# %% [markdown] tags=["caption"]
# One response to a question against its expected accuracy, on each data set of the model. Where both bands gather at their ends,
# as on data sets that are nearly always or hardly ever solved, one response tells much; where they run over the scale, it tells
# little.

# %% [markdown]
# ## Every model on every data set
#
# The samples of the paper's models were not published, but their distance can be computed from a printed baseline: *Uniform
# random* scores $1/3 - \hat\mu(1-\hat\mu)$ on average (section 4.2), so that $2\hat\mu(1-\hat\mu)$ is $2\,(1/3 - \text{score})$;
# the factor $100/99$ removes the bias of a hundred samples. They stand below the models that have samples here, from the smallest
# to the largest. Simulated ones are never put beside measured ones.

# %%
import pandas as pd

measured = {
    name: response_distances(page.results(name), protocol=protocol)
    for name in page.comparable_models()
}
measured = pd.concat(measured, names=["model"])["mean distance"]
measured = measured.rename("distance").reset_index()

# %%
from capcal_lib.reported import printed_distances

printed = printed_distances(corrected=protocol == "corrected")
printed = printed[~printed["model"].isin(measured["model"])]
both = tables.titled(pd.concat([measured, printed]))
wide = both.pivot_table("distance", "model", "dataset", sort=False)

# %% label="targets-everywhere" paper=["figure-11", "appendix-e"] evidence=["measured", "reported"] reads=["verdicts", "main"] mystnb={"image": {"alt": "Heat map of the mean distance, models against data sets, with a line between measured and reported models."}}
from capcal_lib.plots import INK

tints = sns.light_palette(style.ACCENT, as_cmap=True)
numbers = {"annot": True, "fmt": ".2f", "annot_kws": {"size": 9, "color": INK}}
axes = sns.heatmap(wide, cmap=tints, vmin=0, vmax=0.8, cbar=False, **numbers)
axes.axhline(measured["model"].nunique(), color=INK)
axes.grid(visible=False)
_ = axes.set(xlabel="", ylabel="")

# %% [markdown] tags=["caption"]
# Mean distance of one response from the expected accuracy. Above the line it comes from samples, below it from the printed
# baseline. It is small only where nearly every question is nearly always answered right, or nearly never. A cell is empty where
# the model has no samples here, or the paper prints none.

# %% [markdown]
# ## Theorem 2: the scores differ by the correctness variance
#
# A confidence can be scored by either target. By the *response* target it is compared with the correctness of one sample, by the
# *capability* target with $\mu$. Half of the distance above is the *correctness variance*, and by it the two scores differ: the
# capability Brier score is the expected response Brier score less the correctness variance. With $\hat\mu = c/n$ for $\mu$
# throughout, as by the paper's protocol, and the mean over $n$ samples for the expectation, it holds for counts as well; the
# variance is then too small by the share $1/n$. For the simplest confidence, which says of every question the average of its data
# set:

# %%
from capcal_lib.metrics import (
    capability_brier,
    correctness_variance,
    expected_response_brier,
)

correct, total = results.loc[shown, ["correct", "total"]].to_numpy().T
confidence = np.full(len(total), mu[shown].mean())
response = expected_response_brier(confidence, correct, total)
variance = correctness_variance(correct, total)
capability = capability_brier(confidence, correct, total)
response, variance, response - variance, capability

# %% [markdown]
# The response score less the variance is the capability score. That it is so for every method on every data set, and what takes
# the place of the variance for other scores, is [one of the checks](16_theorems.ipynb).

# %% [markdown]
# ## Summary
#
# - One response's correctness is a noisy stand-in for what a model can do, and the noise is the correctness variance.
# - A method that is perfect by the capability target still scores that variance by the response target.
# - The variance is a property of the model and the question; no estimator can remove it.
#
# One sample is too few. [Next](02_k_eval_choice.ipynb): how many does it take?
#
# ## Exercises
#
# **1 (easy).** Look at the first figure: what happened at a point in the upper band, left of the middle? How many of the correct
# responses are such points? *Hint:* `of_shown` has its points.

# %% tags=["hide-cell", "solution"]
# A question that the model mostly gets wrong was answered right, by luck
page.solution((of_shown.loc[of_shown["correct"], "share"] < 0.5).mean())

# %% [markdown]
# **2 (medium).** Show that the expected value of $|C - \mu|$ is $2\mu(1-\mu)$, and check it by drawing responses to a
# question with $\mu = 0.3$. *Hint:* $C$ is 1 with probability $\mu$.

# %% tags=["hide-cell", "solution"]
# Many responses to one question, and their mean distance from mu
responses = rng.random(100_000) < 0.3
page.solution(np.abs(responses - 0.3).mean(), 2 * 0.3 * 0.7)

# %% [markdown]
# **3 (hard).** The mean of $2\hat\mu(1-\hat\mu)$ falls when fewer samples define $\hat\mu$. By which factor, and how is it
# put right? *Hint:* compare `correctness_variance` with and without `corrected=True` on five samples a question.

# %% tags=["hide-cell", "solution"]
# Five samples a question, without and with the correction
counts = rng.binomial(5, 0.3, 100_000), np.full(100_000, 5)
plain = correctness_variance(*counts) / (0.3 * 0.7)  # (k - 1) / k = 0.8
corrected = correctness_variance(*counts, corrected=True) / (0.3 * 0.7)
page.solution(round(plain, 2), round(corrected, 2))
