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
# [Before](04_main_table.ipynb) we saw which confidences come close to the expected accuracy $\mu$. What is that good for? Does a
# confidence predict *pass@k*, how often at least one of $k$ attempts at a question succeeds?

# %% tags=["parameters"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
dataset: str = ""  # one with samples; empty: where questions differ most
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of the halves that oracles know

# %% tags=["provenance"]
from capcal_lib.book.lesson import open_page

page = open_page(globals(), paper=["table-3", "table-8"])

# %% [markdown]
# ## From counts to pass@k
#
# Of $n$ samples $c$ are correct. Drawn without replacement, $k$ of them all fail with probability
# $\binom{n-c}{k} / \binom{n}{k}$, and one minus this is an unbiased estimate of pass@k. With 20 samples the counts
# alone say nothing of $k = 64$: there are no 64 samples to draw.

# %%
import numpy as np
import pandas as pd
from capcal_lib.applications import pass_at_k
from scipy.special import comb

c, n, attempts = np.array([1, 5, 20]), 20, np.array([1, 4, 16, 64])
with np.errstate(invalid="ignore"):  # 0/0 where k > n
    solved = 1 - comb(n - c[:, None], attempts) / comb(n, attempts)
assert np.allclose(solved, pass_at_k(c, [n] * 3, attempts), equal_nan=True)
pd.DataFrame(solved, pd.Index(c, name="correct"), attempts).round(3)

# %% [markdown]
# ## From a confidence to pass@k
#
# If each attempt succeeds with probability $s$, one of $k$ does with probability $1-(1-s)^k$: the paper's *plug-in*
# prediction. It is concave in $s$, so that being wrong in both directions does not cancel: of two questions with $\mu = 0$ and
# $\mu = 1$, both given $s = 1/2$, exactly one is solved however often one tries, and the plug-in says nearly two.
#
# A *posterior* takes $s$ for the mean of a Beta distribution of $\mu$, whose *concentration* $\nu$ says how sure the confidence is.
# What it expects for $s = 1/2$; infinitely sure, it is the plug-in:

# %%
from capcal_lib.applications import simulate_pass_at_k

believed = {
    nu: simulate_pass_at_k([0.5], attempts, concentration=nu)[0]
    for nu in (np.inf, 10, 1)
}
pd.DataFrame(believed, pd.Index(attempts, name="k")).round(3)

# %% [markdown]
# ## On one data set
#
# The concentration of a probe is learned from its training questions. The rival is the best constant; its concentration is fitted on
# the test questions themselves, which favours it. Here is the data set whose questions differ most, of those that have a probe of
# their own and many samples, or the one asked for:

# %%
from capcal_lib.results import best_constant, columns_of
from capcal_lib.results.scores import nearest_probe_of
from capcal_lib.studies import pass_at_k as study

results = page.results().query("total > 1")
results["Best constant"] = best_constant(results)
shown = dataset or study.most_varied(results)
probe = nearest_probe_of(results.loc[[shown]], shown)
subset = results.loc[[shown]].dropna(subset=columns_of(results, probe))
page.end_where_nothing_is_solved(subset)
if len(subset) < 2:
    page.end(
        "The rival is the mean of the other questions: of one, there is none."
    )
title = page.data.loc[shown, "title"]
probe

# %% [markdown]
# Curves are those of the questions with most samples. Each method predicts the pass@k of each question, and a curve is the mean:

# %%
from capcal_lib.applications import deep_samples

probes = page.probes()
given = {"probe": probe, "concentration": probes["concentration"]}
n = deep_samples(subset["total"])
whole = subset[subset["total"] >= n]
powers = 2 ** np.arange(7)
ks = powers[powers <= n]
curves = study.pass_at_k_curves(
    whole, study.predict_pass_at_k(whole, ks, **given), ks
)
curves.pivot(index="method", columns="k", values="estimate").round(3)

# %% [markdown]
# The paper draws these curves for MATH-500 and AIME25. If the store has many samples of them, they stand beside:

# %% label="fig-pass-at-k" paper=["figure-9", "appendix-d.1", "appendix-d.1.1", "appendix-d.1.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"] mystnb={"image": {"alt": "Curves of pass@k against k: one for what was measured, one for the best constant, and one for each prediction from a confidence, with a band around the plug-in of the probe."}}
from capcal_lib.book.tables import titled
from capcal_lib.plots import draw_curves
from capcal_lib.results.scores import beside_the_paper

sets = beside_the_paper(results, shown)
panels = study.curves_by_set(results, sets, probes["concentration"])
grid = draw_curves(titled(panels), x="k", col="dataset")
_ = grid.set_axis_labels("k", "pass@k")

# %% [markdown] tags=["caption"]
# The mean over the questions with most samples. At k = 1 the constant is wrong only because these questions are not quite like the
# rest of the data set; beyond that it is right as far as one Beta distribution describes them. Upright bars are the paper's band, around the
# plug-in. A curve that is right on average may still be wrong on every question: what decides is the error question by question,
# below.

# %% [markdown]
# The band of the paper (appendix D.1.1): with $S_i$ the predicted pass@k of question $i$, the mean plus and minus $1.96$ times
# $\sqrt{\sum_i S_i (1 - S_i)} / N$. By hand, for five questions:

# %%
s = np.array([0.9, 0.5, 0.5, 0.2, 0.1])
1.96 * np.sqrt((s * (1 - s)).sum()) / len(s), study.half_band(s[:, None])

# %% [markdown]
# ## Question by question, with oracles
#
# Let $f$ be the predicted chance that all $k$ attempts fail, and $Q_j = \binom{n-c}{j}/\binom{n}{j}$. Then
# $f^2 - 2 f Q_k + Q_{2k}$ is an unbiased estimate of the squared error of a question. It needs $2k$ samples, and all questions that
# have these count. For the constant, plugged in as it is, and four attempts, or as many as half the samples:

# %%
correct, total, k = subset["correct"], subset["total"], min(4, n // 2)
f = (1 - subset["Best constant"].to_numpy()) ** k
all_fail = 1 - pass_at_k(correct, total, [k, 2 * k])
np.nanmean(f**2 - 2 * f * all_fail[:, 0] + all_fail[:, 1])

# %% [markdown]
# `pass_at_k_errors` does so for each method, and takes the constant for the mean of a Beta distribution, as a posterior. Oracles are scored honestly: they know one half of a question's samples, and are
# scored on the other half; their scores are means over ten random halves. *Oracle RC* reports the verdict of one sample, which is
# correct with probability $\hat\mu$. A dash stands where there are too few samples.

# %%
ks = attempts[2 * attempts <= n]
predicted = study.predict_pass_at_k(subset, ks, **given)
errors = study.pass_at_k_errors(subset, predicted, ks)
scored = study.score_pass_at_k(
    errors, study.oracle_errors(subset, ks, seed=seed)
)

# %% label="passk-errors" paper=["table-3", "table-8", "section-5.1", "appendix-d.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
from capcal_lib.book.tables import show_scores

show_scores(
    scored,
    f"Corrected squared error on {title} (lower is better). Oracles take the questions with twice the samples.",
    evidence=page.evidence,
)

# %% [markdown]
# The paper's own protocol compares plug-in predictions with the measured pass@k, for $k$ up to the number of samples, and
# takes the oracles from the very samples on which they are scored (*in sample*), so that Oracle CC can hardly fail. It is shown for
# the same data sets as the curves:

# %% label="passk-errors-paper" paper=["table-3", "table-8"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
table = study.plug_in_errors_by_set(
    results, sets, attempts, probes["concentration"]
)
page.show(
    table,
    "Squared error by the paper's protocol (lower is better).",
    digits=4,
)

# %% [markdown]
# ## On all data sets
#
# Does a probe predict better than the constant, and a posterior better than the plug-in? Both are judged by the errors above, all
# data sets together by Holm's method. This family is about pass@4, and its verdicts are counted on no other page:

# %%
judged = study.compare_pass_at_k(results, probes["concentration"], k=4)
if judged.empty:
    page.end(
        "No data set here has a probe of its own and eight samples a question: "
        "capcal sample draws them, capcal probe trains one."
    )
pairs = judged.groupby(["rival", "method"])["verdict"]
counts = pairs.value_counts().unstack()
counts

# %% tags=["finding"]
posterior = counts.loc[("Best constant", "Probe, posterior")]
plug_in = counts.loc[("Best constant", "Probe, plug-in")]
page.finding(
    "As a posterior, a probe predicts pass@4 better than the best constant on {posterior} of {sets} data sets; plugged in as it "
    "is, better on {plug} and worse on {worse}.",
    posterior=posterior["better"],
    sets=posterior.sum(),
    plug=plug_in["better"],
    worse=plug_in["worse"],
)

# %% tags=["picture"] label="fig-pass-at-k-gains" paper=["section-5.1"] evidence=["measured"] reads=["verdicts", "features"] mystnb={"image": {"alt": "Dot plot with an interval for each data set and each of the two ways of its probe, around a line at zero."}}
from capcal_lib.book import style
from capcal_lib.book.tables import titled
from capcal_lib.plots import INK, RULE_COLORS, mark_verdicts
from matplotlib import pyplot as plt

cases = titled(judged[judged["rival"] == "Best constant"])
rows = cases["method"].str.removeprefix("Probe, ") + " on " + cases["dataset"]
colors = cases["method"].map(RULE_COLORS)
_, axes = plt.subplots(figsize=(style.WIDTH, 1 + 0.25 * len(cases)))
mark_verdicts(axes, [*rows], cases, color=colors)
axes.invert_yaxis()
axes.axvline(0, color=INK, linewidth=1)
_ = axes.set_xlabel("squared error of the constant less that of the probe")

# %% [markdown] tags=["caption"]
# By how much a probe's squared error of pass@4 is below that of the best constant, plug-in and as the mean of a posterior, each with
# its own 95 % interval; right of the line the probe is better. Filled: significant, all judged together; hollow: cannot tell.

# %% [markdown]
# ## Is the paper's band wide enough?
#
# The band above asks how far one draw of $k$ attempts a question falls from its expectation, if every confidence is exactly right. It
# knows nothing of confidences that are wrong, and shrinks as predictions come close to 1. Does it hold the measured pass@k? For the
# probe of its own data set, over all models of the store:

# %%
bands = {
    name: study.check_bands(page.results(name).query("total > 1"), attempts)
    for name in page.comparable_models()
}
by_k = pd.concat(bands).groupby("k")
held = by_k["held"].agg(probes="size", held="sum")

# %% label="passk-band" paper=["appendix-d.1.1", "figure-9"] evidence=["measured"] reads=["verdicts", "features"]
page.show(
    held.join(by_k[["predicted", "measured", "half the band"]].mean()),
    "The paper's 95 % band around the mean of plug-in predictions: how many probes there are, of how many the band holds the "
    "measured pass@k, and means over them.",
)

# %% [markdown]
# ## As the paper prints it
#
# The paper prints the squared error of three predictions, question by question, for three models. Its Oracle CC is *in sample*, so
# that it can hardly fail.

# %% label="passk-reported" paper=["table-3", "table-8", "section-5.1", "appendix-d.1.2"] evidence=["reported"] reads=["passk_math500", "passk_aime25"]
from capcal_lib.reported import load_reported

printed = pd.concat(map(load_reported, ["passk_math500", "passk_aime25"]))
printed = printed.replace("Oracle CC", "Oracle CC (in sample)")
cases = ["dataset", "model", "method"]
printed = printed.pivot_table("value", cases, "k", sort=False)
page.show(
    printed.add_prefix("pass@"),
    "Squared error as printed (lower is better).",
    digits=4,
    evidence="reported",
)

# %% [markdown]
# In how many of these cells has the probe a lower error than Oracle RC, one known answer?

# %%
of_probe = printed.xs("Probe (MATH)", level="method")
lower = of_probe < printed.xs("Oracle RC", level="method")
int(lower.to_numpy().sum()), lower.size

# %% [markdown]
# The curves that the paper draws are not printed, but two printed numbers give most of them away: the mean accuracy and
# the score of *Uniform random* fix a Beta distribution of $\mu$ over questions, and that has its own pass@k. For one model:

# %%
from capcal_lib.reported import beta_from_moments, beta_moments

a, b = beta_from_moments(*beta_moments("gpt-oss-20b", "math500"))
simulate_pass_at_k([a / (a + b)], powers, concentration=a + b).round(3)

# %% [markdown]
# And for all, with what the authors' code repository says of one of them:

# %%
from capcal_lib.reported import printed_curves

expected = printed_curves(powers)
published = load_reported("passk_actual", source="reference code")
cases = ["model", "dataset", "k"]
apart = expected.merge(published, on=cases)
(apart["estimate"] - apart["value"]).abs().max()

# %% [markdown]
# The success rate of the uniform allocation in figure 10 is pass@k too, drawn ten times with the same positions for every question.
# How far is it from the published curve, at each $k$?

# %%
budgets = load_reported("budget", source="reference code")
uniform = budgets[budgets["method"] == "Uniform allocation"]
apart = uniform.merge(published, on=cases).set_index("k")
(apart["value_x"] - apart["value_y"]).round(4)

# %% label="fig-pass-at-k-paper" paper=["figure-9", "appendix-d.1.2"] evidence=["simulated", "read off"] reads=["main", "mean_accuracy", "passk_actual", "budget"] mystnb={"image": {"alt": "Two panels, MATH-500 and AIME25, each with a line and upright crosses for each model of the paper against k, and slanted crosses for one model on MATH-500."}}
grid = draw_curves(titled(expected), x="k", hue="model", col="dataset")
colors = {name: f"C{n}" for n, name in enumerate(expected["model"].unique())}
for title, ax in grid.axes_dict.items():
    for points, marker in ((uniform, "+"), (published, "x")):
        own = points[titled(points)["dataset"] == title]
        where = {"x": own["k"], "y": own["value"], "zorder": 4}
        ax.scatter(**where, s=60, c=own["model"].map(colors), marker=marker)
_ = grid.set_axis_labels("k", "pass@k")

# %% [markdown] tags=["caption"]
# pass@k of the paper's models, expected from two printed numbers (lines; simulated); read off: what the authors' code repository says
# of gpt-oss-20b on MATH-500 (slanted crosses), to within 0.00005, and the uniform allocation of figure 10 (upright crosses), whose draws
# make it too high at small k.

# %% [markdown]
# ## Beyond the samples at hand
#
# pass@k for $k$ beyond the samples depends on questions that were never solved. `extrapolate_pass_at_k` estimates it by one
# Beta distribution of $\mu$, as Kazdan et al. (2025) do; its limits hold for *any* prior that explains the counts. Where they
# lie far apart, the shape of the prior decides and not the data.

# %%
from capcal_lib.applications import extrapolate_pass_at_k

c = [0, 0, 1, 3, 12, 20] * 20
extrapolate_pass_at_k(c, [20] * 120, [100, 10_000]).round(3)

# %% [markdown]
# ## Summary
#
# - pass@k needs the expected accuracy of every question, not its mean: this is what capability calibration estimates.
# - A confidence that is plugged in promises more than a posterior of the same mean, at every $k$ above 1, and too much where it
#   is unsure of questions that differ. A posterior may promise too much as well: look at its curve.
# - A band that takes the confidence for the truth says nothing of whether it is.
# - Score an oracle on samples that it has not seen, and a prediction without the noise of the counts.
#
# So far each question had as many attempts as any other. [Next](06_budget_allocation.ipynb): does a confidence say where to spend
# them?
#
# ## Exercises
#
# **1 (easy).** Look at the figure of curves: where is the curve of a confidence above what was measured, and what does that say of how
# sure it is? *Hint:* compare the plug-in with the posterior at the largest $k$.

# %% tags=["hide-cell", "solution"]
# Above it, the confidence promises too much: at k = 1 by its level, and beyond that it takes what differs between questions for luck
wide = curves.pivot(index="k", columns="method", values="estimate")
page.solution(wide.sub(wide["Actual"], axis="index").tail(1).T.round(3))

# %% [markdown]
# **2 (medium).** How likely is it that *all* of $k$ attempts are correct, often written pass^$k$? *Hint:* exchange the
# roles of correct and incorrect.

# %% tags=["hide-cell", "solution"]
# The roles of correct and incorrect, exchanged
c, n = np.array([5, 19]), np.array([20, 20])
page.solution(1 - pass_at_k(n - c, n, [1, 4, 16]))

# %% [markdown]
# **3 (hard).** Show that the corrected error at $k = 1$ is the corrected capability Brier score.
# *Hint:* $f = 1 - s$, $Q_1 = 1 - c/n$, and `capability_brier_terms` is in `capcal_lib.metrics`.

# %% tags=["hide-cell", "solution"]
# Both errors, term by term
from capcal_lib.applications import pass_at_k_error_terms
from capcal_lib.metrics import capability_brier_terms

s, c, n = [0.2, 0.9], [3, 5], [10, 10]
terms = pass_at_k_error_terms(np.array(s)[:, None], c, n, [1])[:, 0]
assert np.allclose(terms, capability_brier_terms(s, c, n, corrected=True))
