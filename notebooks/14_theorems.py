# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does theorem 2 hold on counts?
#
# The paper proves its theorems for $\mu$ and for an expectation over responses. Does theorem 2 also hold for what one can
# measure, $c$ correct out of $n$ samples? [The previous page](13_protocol.ipynb) took back our corrections.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
dataset: str = ""  # one with samples; empty: where a response tells least
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: votes are scored on their own samples
verdicts: str = "rules"  # or judge:MODEL, where it has judged

# %%
from capcal_lib.book.page import finding, open_page, show_runs
from capcal_lib.book.tables import show
from capcal_lib.results.results import results_of

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)
show_runs(page, dataset)

# %% [markdown]
# The theorem says that the expected response score minus the correctness variance is the capability score, for any confidence.
# So a few methods are enough, and we leave out the probes.

# %%
from capcal_lib.probe_names import is_probe

results = results_of(page.counting)
results = results.drop(columns=[name for name in results if is_probe(name)])
results = results[results["total"] > 1]

# %% [markdown]
# `losses_by_target` scores each method on each data set against both targets. The *gap* is the difference between the two sides
# of the theorem. It is rounding:

# %%
from capcal_lib.results.targets import losses_by_target

losses = losses_by_target(results)
losses["gap"].abs().max()

# %% tags=["finding"]
text = "Theorem 2 holds on counts. For {pairs} pairs of a method and a data set, the response and the capability score differ by the correctness variance, up to a rounding error of {gap:.0g}."
finding(text, pairs=len(losses), gap=losses["gap"].abs().max())

# %%
from capcal_lib.book import style, tables
from capcal_lib.plots import INK, MUTED

variances = losses.groupby("dataset")["Bregman information"].max().nlargest(4)
points = tables.titled(losses.loc[[*variances.index]].reset_index())

# %% tags=["picture"] label="theorem-2-gaps" mystnb={"image": {"alt": "Scatter plot of the capability against the expected response Brier score, with one mark for each method on a data set, the diagonal and, for each data set, a line parallel to it."}}
import seaborn as sns

sides = {"x": "expected response loss", "y": "capability loss"}
axes = sns.scatterplot(points, style="dataset", color=INK, s=60, **sides)
for variance in variances:
    axes.axline((0, -variance), slope=1, color=style.GRID, zorder=0)
axes.axline((0, 0), slope=1, color=MUTED, linestyle=":", zorder=0)
axes.set(xlim=(0, None), ylim=(0, None), aspect="equal")
_ = axes.legend(title="")

# %% [markdown]
# Each mark is a method, on the four data sets with the largest correctness variance. The methods of a data set lie on one line,
# which is parallel to the dotted diagonal and below it by that variance. So both scores rank them alike. A mark is off its
# line if its method has no confidence for some questions, so that it is scored on fewer.

# %% [markdown]
# ## Beyond the Brier score
#
# A strictly convex function $g$ makes a divergence $\mathcal D_g$, which is zero if confidence and target agree. If it is the
# loss, the two scores differ by the Bregman information of the correctness (appendix A.3 of the paper; Banerjee et al., 2005):
#
# $$
# \begin{aligned}
# \mathcal D_g(t, s) &= g(t) - g(s) - g'(s)\,(t - s), \\
# \mathbb E\bigl[\mathcal D_g(\mathcal C, s)\bigr] - \mathcal D_g(\mu, s) &= \mathbb E\bigl[g(\mathcal C)\bigr] - g(\mu).
# \end{aligned}
# $$
#
# The right side does not contain $s$. With $g(t) = t^2$ it is the variance. With $g(t) = t\log t + (1-t)\log(1-t)$, which gives
# the Kullback-Leibler divergence, it is the entropy of $\mathcal C$. With $g(t) = \sqrt{t^2 + (1-t)^2}$ the loss is the
# spherical score. With cross-entropy, $-t\log s - (1-t)\log(1-s)$, which is no divergence, the two scores are equal.
#
# Confidences are moved into $[0.001, 0.999]$, because the log score of a wrong 0 or 1 is infinite:

# %%
from capcal_lib.results.targets import response_distances

distances = response_distances(results, protocol=protocol)["mean distance"]
shown = dataset or distances.idxmax()
one_set, title = results.loc[[shown]], page.runs.loc[shown, "title"]

# %% label="proper-scores"
import pandas as pd

by_score = {}
for score in ("Brier", "log", "spherical"):
    of_score = losses_by_target(one_set, score=score.lower(), least=0.001)
    by_score[score] = of_score.loc[shown]
table = pd.concat(by_score, names=["score"]).drop(columns="gap")
caption = f"Three proper scores on {title}."
show(table, caption, evidence=page.evidence)

# %% [markdown]
# ## Summary
#
# - Theorem 2 holds on counts up to rounding, for any model.
# - Other proper scores replace the variance by another quantity that does not depend on the confidence.
#
# All of this assumes that every verdict is right. [The next page](15_grading.ipynb) asks how good the grader is.
#
# ## Exercises
#
# **1 (medium).** Two samples judge each question, and $\mu$ is 1/2 everywhere. How does the mean of $\hat\mu(1-\hat\mu)$ over
# questions differ from $\mu(1-\mu)$? Which score contains the difference? *Hint:* none, one or both samples are correct.

# %% tags=["hide-cell", "solution"]
# Half as large: the other half is the noise of two samples, which the plug-in capability score contains
import numpy as np

mu_hat = np.array([0, 0.5, 1])
mean = np.average(mu_hat * (1 - mu_hat), weights=[1, 2, 1])
f"mean over questions: {mean}, with mu itself: {0.5 * 0.5}"

# %% [markdown]
# **2 (hard).** Show for $\hat\mu = 0.3$ and $s = 0.6$ that the two scores are equal with cross-entropy. *Hint:* it is linear in
# $t$.


# %% tags=["hide-cell", "solution"]
# A straight line in t: the mean of its values is its value at the mean
def cross_entropy(t, s):
    return -t * np.log(s) - (1 - t) * np.log(1 - s)


expected = 0.3 * cross_entropy(1, 0.6) + 0.7 * cross_entropy(0, 0.6)
pd.Series([expected, cross_entropy(0.3, 0.6)], ["response", "capability"])
