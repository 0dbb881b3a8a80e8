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

# %%
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.book import style, tables
from capcal_lib.book.lesson import glue, open_page
from capcal_lib.metrics import (
    best_confidence,
    capability_brier,
    correctness_variance,
    divergence,
    expected_response_brier,
)
from capcal_lib.plots import INK, MUTED
from capcal_lib.reported import printed_distances
from capcal_lib.results import judged_by, methods
from capcal_lib.results.targets import losses_by_target, response_distances

# %% tags=["provenance"]
page = open_page(globals(), paper=["figure-11"])

# %% [markdown]
# The results have a row a question: how many of its samples were scored, and how many of those are correct. (Probes, which
# come [later](08_probe_generalization.ipynb), are left out.)

# %%
results = page.results()
results = results.drop(columns=results.filter(like="Probe").columns)
results = results[results["total"] > 1]
results.groupby("dataset").head(1)[["correct", "total"]]

# %% [markdown]
# With $c$ of $n$ samples correct, $\hat\mu = c/n$ estimates $\mu$. Another response is correct with probability $\mu$ and then
# lies $1 - \mu$ away from it; otherwise it lies $\mu$ away. So its mean distance is $\mathbb{E}|C - \mu| = 2\mu(1-\mu)$, which
# $2c(n-c)/(n(n-1))$ estimates without bias; by the paper's protocol it is $2\hat\mu(1-\hat\mu)$.

# %%
c, n = results["correct"], results["total"]
mu = c / n
distance = 2 * c * (n - c) / (n * (n - 1))
distance.groupby("dataset", sort=False).mean()

# %% [markdown]
# `response_distances` does so with an interval for questions like these. The paper finds that outputs are rarely binary
# (section 4.1): the share of questions with $0.1 < \hat\mu < 0.9$ says how often one sample cannot tell what the model can do.

# %% label="targets-distance" paper=["figure-11", "appendix-e", "section-4.1"] evidence=["measured"] reads=["verdicts"]
distances = response_distances(results, protocol=protocol)
page.show(
    distances.rename(columns={"low": "from", "high": "to"}),
    "How far one response lies from the expected accuracy, with its 95 % interval "
    "for questions like these, and the share of questions with 0.1 < μ̂ < 0.9.",
)

# %% tags=["finding"]
widest = distances["mean distance"].idxmax()
page.finding(
    "A single answer to a question is off by {apart:.2f} on average over {sets} data sets, and by {most:.2f} on {widest}.",
    apart=distances["mean distance"].mean(),
    sets=len(distances),
    most=distances.loc[widest, "mean distance"],
    widest=page.data.loc[widest, "title"],
)

# %% tags=["remove-cell"]
glue(sets=len(distances), apart=distances["mean distance"].mean())

# %% [markdown]
# What does that look like? Draw one response to each question of the data set on which a response tells least, or of the one
# asked for.

# %%
shown = page.choose_dataset(dataset, widest)
title = page.data.loc[shown, "title"]
rng = np.random.default_rng(seed)
share = mu.loc[shown]
correct = rng.random(len(share)) < share
height = correct + rng.normal(0, 0.04, len(share))  # so that each can be seen

# %% tags=["picture"] label="fig-targets" paper=["figure-2", "section-3.2"] evidence=["measured"] reads=["verdicts"] mystnb={"image": {"alt": "Scatter plot with two horizontal bands of points, of incorrect and of correct responses, against expected accuracy."}}
marks = {"markers": ["X", "o"], "palette": ["#bc3e0b", style.ACCENT]}
marks |= {"alpha": 0.7, "legend": False}
axes = sns.scatterplot(x=share, y=height, hue=correct, style=correct, **marks)
axes.set_yticks([0, 1], ["incorrect", "correct"])
axes.set(xlabel="expected accuracy, estimated", ylabel="one drawn response")
_ = axes.set(ylim=(-0.4, 1.4), title=title)

# %% [markdown] tags=["caption"]
# A point is one response, drawn at random, to each question of the data set on which a response tells least, or of the one asked
# for. If a single answer told what the model can do, all points would lie in two corners, the incorrect at 0 and the correct at
# 1. Instead both bands run over most of the scale: the same answer, right or wrong, comes from questions of very different
# expected accuracy.

# %% [markdown]
# The same points on each data set; of more than 500 questions, 500 are drawn at random.

# %%
points = mu.sample(frac=1, random_state=rng).groupby(level="dataset").head(500)
points = points.rename("share").reset_index()
points["correct"] = rng.random(len(points)) < points["share"]
points["response"] = points["correct"] + rng.normal(0, 0.06, len(points))

# %% label="targets-points" paper=["figure-11", "appendix-e"] evidence=["measured"] reads=["verdicts"] mystnb={"image": {"alt": "A panel for each data set, with two horizontal bands of points as in the first figure."}}
order = page.data.loc[distances.index, "title"]
panels = {"col": "dataset", "col_order": order, "col_wrap": 4, "height": 1.8}
bands = {"hue": "correct", "style": "correct", "style_order": [False, True]}
points = tables.titled(points)
grid = sns.relplot(points, x="share", y="response", **panels, **bands, **marks)
grid.set(ylim=(-0.4, 1.4), yticks=[0, 1], yticklabels=["incorrect", "correct"])
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
# the factor $100/99$ removes the bias of a hundred samples.

# %% label="targets-printed" paper=["figure-11"] evidence=["reported"] reads=["main"]
printed = printed_distances(corrected=protocol == "corrected")
tables.show(
    tables.titled(printed).pivot_table("distance", "model", "dataset"),
    "Mean distance of one response, computed from the printed baseline.",
    evidence="reported",
)

# %% [markdown]
# And those that have samples here, from the smallest to the largest. Simulated ones are never put beside measured ones.

# %%
names = page.measured_models() if page.evidence == "measured" else [model]
measured = {
    name: response_distances(page.results(name), protocol=protocol)
    for name in names
}
measured = pd.concat(measured, names=["model"])["mean distance"]
measured = measured.rename("distance").reset_index()

# %%
printed = printed[~printed["model"].isin(measured["model"])]
both = {"here": measured, "printed": printed}
both = tables.titled(pd.concat(both, names=["source"]).reset_index("source"))
both["model"] += " (" + both["source"] + ")"
wide = both.pivot_table("distance", "model", "dataset", sort=False)

# %% label="targets-everywhere" paper=["figure-11", "appendix-e"] evidence=["measured", "reported"] reads=["verdicts", "main"] mystnb={"image": {"alt": "Heat map of the mean distance, models against data sets, with a line between measured and reported models."}}
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
# capability Brier score is the expected response Brier score less the correctness variance. With $\hat\mu = c/n$ for $\mu$, and
# the mean over $n$ samples for the expectation, it holds for counts as well. For one confidence:

# %%
one_set = results.loc[[shown]]
judged = judged_by(one_set, methods(one_set.dropna(axis=1, how="all"))[0])
s, *counts = judged.to_numpy().T
response = expected_response_brier(s, *counts)
response, correctness_variance(*counts), capability_brier(s, *counts)

# %% [markdown]
# Both sides, of every method on every data set: how many pairs there are, and the largest *gap* that is left of their
# difference, which is rounding.

# %%
losses = losses_by_target(results)
len(losses), losses["gap"].abs().max()

# %% label="theorem-2-gaps" paper=["theorem-2", "equation-9", "equation-10", "equation-3", "equation-7"] evidence=["measured"] reads=["verdicts", "confidences"] mystnb={"image": {"alt": "Scatter plot of the capability against the expected response Brier score, a mark a method on a data set, with the diagonal and, for each data set, a line parallel to it."}}
variances = losses.groupby("dataset")["Bregman information"].max().nlargest(4)
points = tables.titled(losses.loc[[*variances.index]].reset_index())
sides = {"x": "expected response loss", "y": "capability loss"}
axes = sns.scatterplot(points, hue="dataset", style="dataset", s=60, **sides)
for variance in variances:
    axes.axline((0, -variance), slope=1, color=style.GRID, zorder=0)
axes.axline((0, 0), slope=1, color=MUTED, linestyle=":", zorder=0)
axes.set(xlim=(0, None), ylim=(0, None))
_ = axes.legend(title="")

# %% [markdown] tags=["caption"]
# One mark a method, on the four data sets of largest correctness variance. The methods of a data set lie on one line of slope 1,
# as far below the dotted diagonal as its correctness variance says: a method that is better by one score is better by the other,
# and by as much.

# %% [markdown]
# ## Theorem 1: two targets, two optima
#
# The best confidence for a target is the one of least loss. By the response target, the correctness of one sample, it is 0
# or 1; by the capability target, which that correctness has as its mean, it is $\hat\mu$. Search it on a grid, for one question
# of which 3 in 10 samples are correct:

# %%
grid = np.arange(11) / 10
losses_on_grid = divergence(np.full(11, 0.3), grid, score="brier")
grid[losses_on_grid.argmin()]

# %% [markdown]
# `best_confidence` does so for each question, and finds both optima, by other proper scores as well:

# %%
share = one_set["correct"] / one_set["total"]
once = (np.random.default_rng(seed).random(len(share)) < share).astype(float)
rows = {}
for score in ("Brier", "log", "spherical"):
    searched = {"total": one_set["total"], "score": score.lower()}
    by_response = best_confidence(once, **searched)
    by_capability = best_confidence(share, **searched)
    missed = by_response - once, by_capability - share
    differ = (by_response != by_capability).mean()
    rows[score] = [*np.abs(missed).max(axis=1), differ]

# %% label="theorem-1-optima" paper=["theorem-1", "equation-4", "equation-5", "equation-6", "equation-8", "section-3.1"] evidence=["measured"] reads=["verdicts"]
page.show(
    pd.DataFrame.from_dict(
        rows,
        "index",
        columns=[
            "|best by response − C|",
            "|best by capability − μ̂|",
            "optima differ",
        ],
    ).rename_axis("score"),
    f"Largest distances from the targets on {title}, and how "
    "often the optima differ. The theorem lets them agree only where μ is 0 or 1.",
    **{"optima differ": "{:.0%}"},
)

# %% [markdown]
# ## Beyond the Brier score
#
# Appendix A.3 of the paper says that for strictly convex losses the difference is the Bregman information of the
# correctness (Banerjee et al., 2005). For that the loss has to be written as a divergence, zero where confidence and target
# agree:
#
# $$
# \begin{aligned}
# \mathcal D_g(t, s) &= g(t) - g(s) - g'(s)\,(t - s), \\
# \mathbb E\bigl[\mathcal D_g(\mathcal C, s)\bigr] - \mathcal D_g(\mu, s) &= \mathbb E\bigl[g(\mathcal C)\bigr] - g(\mu).
# \end{aligned}
# $$
#
# The right side does not know $s$. With $g(t) = t^2$ it is the variance; with $g(t) = t\log t + (1-t)\log(1-t)$, of which
# Kullback and Leibler's divergence comes, it is the entropy of $\mathcal C$; $g(t) = \sqrt{t^2 + (1-t)^2}$ is the spherical
# score. Cross-entropy, $-t\log s - (1-t)\log(1-s)$, is a straight line in $t$ and has no gap: what it adds to the
# divergence is the entropy of its target, which is zero for a verdict and is not for $\mu$.
#
# Both sides on the data set of the first figure, with confidences moved into $[0.001, 0.999]$, since the log score of a
# wrong 0 or 1 is infinite:

# %% label="proper-scores" paper=["appendix-a.3", "equation-15"] evidence=["measured"] reads=["verdicts", "confidences"]
by_score = {
    score: losses_by_target(one_set, score=score.lower(), least=0.001).loc[
        shown
    ]
    for score in ("Brier", "log", "spherical")
}
page.show(
    pd.concat(by_score, names=["score"]),
    f"Three proper scores on {title}.",
    gap="{:.1g}",
)

# %% [markdown]
# ## Summary
#
# - One response's correctness is a noisy stand-in for what a model can do, and the noise is the correctness variance.
# - A method that is perfect by the capability target still scores that variance by the response target.
# - The variance is a property of the model and the question; no estimator can remove it.
# - Both theorems hold on counts to the last digit: no assumption on the model is left to check. Other proper scores have a
#   variance of their own, which does not depend on the confidence either.
#
# One sample is too few. [Next](02_k_eval_choice.ipynb): how many does it take?
#
# ## Exercises
#
# **1 (easy).** Look at the first figure: what happened at a point in the upper band, left of the middle? How many of the correct
# responses are such points? *Hint:* `share[correct]` of the first figure.

# %% tags=["hide-cell", "solution"]
# A question that the model mostly gets wrong was answered right, by luck
float((mu.loc[shown][correct] < 0.5).mean())

# %% [markdown]
# **2 (medium).** Show that the expected value of $|C - \mu|$ is $2\mu(1-\mu)$, and check it by drawing responses to a
# question with $\mu = 0.3$. *Hint:* $C$ is 1 with probability $\mu$.

# %% tags=["hide-cell", "solution"]
# Many responses to one question, and their mean distance from mu
responses = rng.random(100_000) < 0.3
float(np.abs(responses - 0.3).mean()), 2 * 0.3 * 0.7

# %% [markdown]
# **3 (hard).** The mean of $2\hat\mu(1-\hat\mu)$ falls when fewer samples define $\hat\mu$. By which factor, and how is it
# put right? *Hint:* compare `correctness_variance` with and without `corrected=True` on five samples a question.

# %% tags=["hide-cell", "solution"]
# Five samples a question, without and with the correction
counts = rng.binomial(5, 0.3, 100_000), np.full(100_000, 5)
plain = correctness_variance(*counts) / (0.3 * 0.7)  # (k - 1) / k = 0.8
corrected = correctness_variance(*counts, corrected=True) / (0.3 * 0.7)
round(plain, 2), round(corrected, 2)
