# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Predicting pass@k from a confidence
#
# The [previous page](04_main_table.ipynb) showed which confidences come close to the expected accuracy $\mu$. Can they predict
# *pass@k*, the chance that at least one of $k$ attempts succeeds? We use a probe in two ways. Either we believe that $\mu$ equals
# the confidence (*plug-in*), or only that $\mu$ is spread around it (*posterior*).

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
dataset: str = ""  # one with samples; empty: where questions differ most
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of the halves that oracles know

# %%
from capcal_lib.book.page import EndOfPage, finding, open_page, show_runs

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)
show_runs(page, dataset, printed=["table-3", "table-8"])

# %%
from capcal_lib.book.page import probes_of
from capcal_lib.results.results import results_of
from capcal_lib.studies import pass_at_k as study

results = results_of(page.counting).query("total > 1")
nu = probes_of(page)["concentration"]
judged = study.compare_pass_at_k(study.predict(results, [4], nu))

# %%
from capcal_lib.results import tally

if judged.empty:
    raise EndOfPage(
        f"With k_eval = {k_eval}, no data set has both a probe of its own and eight samples a question. Raise k_eval, draw samples with capcal sample, or train a probe with capcal probe."
    )

# %%
counts = tally(judged, "rival", "method")
probe = counts.xs("Best constant")

# %% tags=["finding"]
finding(
    "As a posterior, a probe predicts pass@4 better than the best constant on {posterior} of the {winnable} data sets on which a perfect prediction would. As a plug-in it is better on {plug} and worse on {worse}.",
    posterior=probe.at["Probe, posterior", "better"],
    winnable=probe.at["Probe, posterior", "could be won"],
    plug=probe.at["Probe, plug-in", "better"],
    worse=probe.at["Probe, plug-in", "worse"],
)

# %%
from capcal_lib.book.tables import titled

cases = titled(judged[judged["rival"] == "Best constant"])
cases = cases.sort_values("method", ascending=False)  # posterior first
cases["place"] = cases["method"].str.split().str[-1] + "\n" + cases["dataset"]

# %% tags=["picture"] label="fig-pass-at-k-gains" mystnb={"image": {"alt": "Gains with intervals around a line at zero, for posterior and plug-in on each data set."}}
from capcal_lib import plots
from matplotlib import pyplot as plt

axes = plt.subplots()[1]
colors = cases["method"].map(plots.RULE_COLORS)
plots.mark_verdicts(axes, cases["place"], cases, color=colors, upright=True)
axes.axhline(0, color=plots.INK, linewidth=1)
_ = axes.set_ylabel("squared error: constant minus probe")

# %% [markdown]
# The squared error of pass@4 by the best constant, minus that by the probe, with 95 % intervals. Above the line the probe is
# better. Filled marks are significant after Holm's method, which allows for several comparisons.

# %% [markdown]
# ## From counts to pass@k
#
# If $c$ of $n$ samples are correct, $k$ samples drawn without replacement all fail with probability
# $\binom{n-c}{k} / \binom{n}{k}$. One minus this is an unbiased estimate of pass@k. It needs at least $k$ samples. Below,
# `pass_at_k` computes it.

# %%
import numpy as np
import pandas as pd
from scipy.special import comb

c, n, k = np.array([1, 5, 20]), 20, np.array([1, 4, 16])
solved = 1 - comb(n - c[:, None], k) / comb(n, k)
pd.DataFrame(solved, pd.Index(c, name="correct"), k).round(3)

# %% [markdown]
# ## From a confidence to pass@k
#
# If each attempt succeeds with probability $s$, at least one of $k$ succeeds with probability $1-(1-s)^k$. This is the plug-in,
# which the paper uses. It can promise too much. Take two questions with $\mu = 0$ and $\mu = 1$, both given $s = 1/2$. Only
# one is ever solved, but with many attempts the plug-in promises nearly two.
#
# The posterior is a Beta distribution of $\mu$ with mean $s$. The higher its *concentration* $\nu$, the closer $\mu$ is to
# $s$; with infinite concentration it is the plug-in. Predictions for $s = 1/2$:

# %%
from capcal_lib.applications import simulate_pass_at_k

attempts = np.array([1, 4, 16, 64])
believed = {
    sure: simulate_pass_at_k([0.5], attempts, concentration=sure)[0]
    for sure in (np.inf, 10, 1)
}
pd.DataFrame(believed, pd.Index(attempts, name="k")).round(3)

# %% [markdown]
# ## Data set by data set
#
# We take the data set whose questions differ most, unless `dataset` names another, and MATH-500 and AIME25, which the paper
# uses, if they have 32 samples a question. The probe's concentration is fitted on its training questions. The rival is the
# best constant as a posterior. Its concentration is fitted on the very questions that judge it, which favours it.

# %%
from capcal_lib.results.targets import sets_to_show

sets = sets_to_show(results, dataset)
subset = results.loc[sets[:1]]
if len(subset) < 2 or not subset["correct"].any():
    raise EndOfPage(
        "Here is only one question, or none is solved, so there is nothing to compare. Choose another data set."
    )

# %% [markdown]
# `ways_to_use` lists each confidence as one can use it, and `predict` adds the best constant and what each predicts. A curve is
# the mean of the predictions over the questions with the most samples:

# %%
from capcal_lib.applications import deep_samples

n = deep_samples(subset["total"])
powers = 2 ** np.arange(7)
deep = study.predict(results.loc[sets], powers, nu, deepest=True)
curves = study.curves_of(deep)

# %% label="fig-pass-at-k" mystnb={"image": {"alt": "Curves of pass@k against k, measured and predicted by the best constant and each confidence, in a panel for each data set."}}
grid = plots.draw_curves(titled(curves), x="k", col="dataset")
_ = grid.set_axis_labels("k", "pass@k")

# %% [markdown]
# Measured (*Actual*) and predicted pass@k.

# %% [markdown]
# ## Question by question, with oracles
#
# A curve can be right on average and wrong on every question. Let $f$ be the predicted chance that all $k$ attempts fail. The
# true chance is $(1-\mu)^k$, so the squared error of the prediction is $f^2 - 2 f (1-\mu)^k + (1-\mu)^{2k}$. An unbiased
# estimate of $(1-\mu)^j$ is $Q_j = \binom{n-c}{j}/\binom{n}{j}$, so $f^2 - 2 f Q_k + Q_{2k}$ estimates the squared error
# without bias. It needs $2k$ samples. Here it is for the constant as a plug-in, on the first of these data sets:

# %%
from capcal_lib.applications import pass_at_k
from capcal_lib.results import best_constant

k = min(4, n // 2)
f = (1 - best_constant(subset)) ** k
Q = 1 - pass_at_k(subset["correct"], subset["total"], [k, 2 * k])
error = np.nanmean(f**2 - 2 * f * Q[:, 0] + Q[:, 1])
pd.DataFrame({f"squared error of pass@{k}": [error]}, ["constant"])

# %% [markdown]
# The next table has this for each method. There the constant is a posterior, so its error is another. Each oracle knows one
# half of a question's samples and is scored on the other half.

# %%
ks = attempts[2 * attempts <= n]
predicted = study.predict(subset, ks, nu)
oracles = study.oracle_errors(subset, ks, seed=seed)
scored = study.score_errors(pd.concat([predicted, oracles]))

# %% label="passk-errors"
from capcal_lib.book.tables import show, show_scores

title = page.runs.loc[sets[0], "title"]
caption = f"Corrected squared error on {title} (lower is better). Scoring pass@k takes 2k samples. An oracle takes twice as many, because it uses up half of them."
show_scores(scored, caption, evidence=page.evidence)

# %% [markdown]
# The paper compares plug-in predictions with the measured pass@k. Its oracles are scored on the samples that they know (*in
# sample*), so Oracle CC can hardly fail.

# %% label="passk-errors-paper"
plain = study.predict(results.loc[sets], attempts, nu, deepest=True)
caption = "Squared error under the paper's protocol (lower is better), on the questions with the most samples."
table = study.plug_in_errors(plain)
show(table, caption, digits=4, evidence=page.evidence)

# %% [markdown]
# ## On all data sets
#
# Does a probe predict pass@4 better than the constant, and a posterior better than the plug-in? Holm's method judges all these
# comparisons together. A data set *could be won* if a perfect prediction, tested alone, without Holm, would be significantly
# better than the rival:

# %%
counts

# %% [markdown]
# ## Is the paper's band wide enough?
#
# The paper's band (appendix D.1.1) is the mean plus and minus $1.96 \sqrt{\sum_i S_i (1 - S_i)} / N$, where $S_i$ is the
# predicted pass@k of question $i$. It allows only for luck: one draw of $k$ attempts a question. By hand, for five questions:

# %%
s = np.array([0.9, 0.5, 0.5, 0.2, 0.1])
half = 1.96 * np.sqrt((s * (1 - s)).sum()) / len(s)
pd.DataFrame({"mean": [s.mean()], "half the band": half}, ["by hand"])

# %% [markdown]
# How many bands contain the measured pass@k, over the data sets of all models?

# %%
from capcal_lib.book.page import models_beside

beside = models_beside(page)
own = "kind == 'probe of the data set' and way == 'Probe, plug-in'"

# %%
bands = []
for one in beside.values():
    of_model = results_of(one.counting).query("total > 1")
    depth = of_model["total"].groupby("dataset").transform(deep_samples)
    sure = probes_of(one)["concentration"]
    plain = study.predict(of_model, attempts, sure).query(own)
    bands.append(study.half_bands(plain[plain["k"] <= depth[plain.index]]))

# %%
by_k = pd.concat(bands).groupby("k")
held = by_k["held"].agg(probes="size", held="sum")
means = by_k[["predicted", "measured", "half the band"]].mean()

# %% label="passk-band"
caption = "The paper's 95 % band around the mean of plug-in predictions: the number of probes, how many of their bands contain the measured pass@k, and means over the probes."
show(held.join(means), caption, evidence=page.evidence)

# %% [markdown]
# ## Summary
#
# - To predict pass@k you need the expected accuracy of every question, and a confidence estimates it.
# - A plug-in promises too much if it gives the same middling confidence to easy and hard questions.
# - The paper's band assumes that the confidence is right, so it cannot test whether it is.
#
# So far each question had the same number of attempts. [Next](06_budget_allocation.ipynb): does a confidence say where to spend
# them?
#
# ## Exercises
#
# **1 (easy).** In the figure of curves, when does a confidence promise more than was measured? *Hint:* compare the plug-in with
# the posterior at the largest $k$.

# %% tags=["hide-cell", "solution"]
# Above zero: too much. A plug-in treats hopeless questions as unlucky ones, so at large k it promises too much
first = curves[curves["dataset"] == sets[0]]
wide = first.pivot(index="k", columns="method", values="estimate")
wide.sub(wide["Actual"], axis="index").tail(1).T.round(3)

# %% [markdown]
# **2 (medium).** How likely is it that *all* $k$ attempts are correct, often written pass^$k$? *Hint:* exchange correct and
# incorrect.

# %% tags=["hide-cell", "solution"]
# Correct and incorrect exchanged
c, n = np.array([5, 19]), np.array([20, 20])
all_correct = 1 - pass_at_k(n - c, n, [1, 4, 16])
pd.DataFrame(all_correct, pd.Index(c, name="correct of 20"), [1, 4, 16])

# %% [markdown]
# **3 (hard).** Why is the corrected error at $k = 1$ the corrected capability Brier score? Derive it, and check it for two
# questions. *Hint:* $f = 1 - s$ and $Q_1 = 1 - c/n$.

# %% tags=["hide-cell", "solution"]
# With m = c/n, f^2 - 2 f Q_1 + Q_2 is (s - m)^2 + Q_2 - Q_1^2, and Q_2 - Q_1^2 is -m(1 - m)/(n - 1), the correction
from capcal_lib.applications import pass_at_k_error_terms
from capcal_lib.metrics import capability_brier_terms

s, c, n = [0.2, 0.9], [3, 5], [10, 10]
error = pass_at_k_error_terms(np.array(s)[:, None], c, n, [1])[:, 0]
brier = capability_brier_terms(s, c, n, corrected=True)
pd.DataFrame({"pass@1 error": error, "Brier term": brier})
