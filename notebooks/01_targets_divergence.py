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
dataset: str = ""  # one with samples; empty: where a response tells least
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of the responses that are drawn

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import plots
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import (
    capability_brier,
    correctness_variance,
    divergence,
    expected_response_brier,
    expected_response_loss,
    mean_interval,
)
from capcal_lib.reported import load_reported
from capcal_lib.results import (
    describe_runs,
    judged_by,
    load_results,
    methods,
    subjects,
)

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
shown = notebook.choose_dataset(dataset, varied, widest)
title = load_dataset(shown).title
notebook.glue(sets=len(means), apart=means.mean(), most=means.max())
notebook.glue(widest=load_dataset(widest).title)

# %% tags=["finding"]
# needs numbers
notebook.finding("""
Judging a model by a single answer to a question, one is off by {apart:.2f} on average over {sets} data sets, and by {most:.2f} on
{widest}.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "A point is one response, drawn at random, to each question of the data set on which a response tells least, or of the one asked for. If a single answer told what the model can do, all points would lie in two corners, the incorrect at 0 and the correct at 1. Instead both bands run over most of the scale: the same answer, right or wrong, comes from questions of very different expected accuracy.", "name": "fig-targets"}, "image": {"alt": "Scatter plot with two horizontal bands of points, of incorrect and of correct responses, against expected accuracy."}} paper=["figure-2", "section-3.2"] evidence=["measured"] reads=["verdicts"]
# needs samples
share = mu.loc[shown]
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

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "How far the correctness of one response lies from the expected accuracy on average, computed from the printed baseline. One half is the most that is possible, and the distance is small only where nearly every question is nearly always solved, or nearly never.", "name": "fig-targets-printed"}, "image": {"alt": "Bars of the mean distance, one a data set."}} paper=["figure-11"] evidence=["reported"] reads=["main"]
# needs paper
bars = printed.loc[[model]].sort_values("distance")
titles = [load_dataset(name).title for name in bars["dataset"]]
axes = sns.barplot(x=bars["distance"], y=titles, color=style.ACCENT)
_ = axes.set(xlim=(0, 0.5), xlabel="mean distance", ylabel="")

# %% [markdown] needs="samples"
# The paper finds that outputs are rarely binary (section 4.1). The share of questions with $0.1 < \hat\mu < 0.9$ says how
# often one sample cannot tell what the model can do. Half of the distance is the *correctness variance*, by which the scores
# of the two targets differ.

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

# %% [markdown] needs="samples"
# The same points on each data set:

# %%
# needs samples
POINTS = 500  # of a data set, drawn at random, so that each can be seen
points = mu.sample(frac=1, random_state=rng).groupby(level="dataset")
points = points.head(POINTS).rename("share").reset_index()
correct = rng.random(len(points)) < points["share"]
points["response"] = correct + rng.normal(0, 0.06, len(points))
points["correct"] = correct

# %% tags=["hide-input"] mystnb={"figure": {"caption": "One response to a question against its expected accuracy, on each data set of the model; of more than 500 questions, 500 drawn at random. Where both bands gather at their ends, as on data sets that are nearly always or hardly ever solved, one response tells much; where they run over the scale, it tells little.", "name": "fig-targets-all"}, "image": {"alt": "A panel for each data set, with two horizontal bands of points as in the first figure."}} label="targets-points" paper=["figure-11", "appendix-e"] evidence=["measured"] reads=["verdicts"]
# needs samples
grid = sns.relplot(
    tables.titled(points),
    x="share",
    y="response",
    hue="correct",
    style="correct",
    style_order=[False, True],
    hue_order=[False, True],
    markers=["X", "o"],
    palette=["#bc3e0b", style.ACCENT],
    col="dataset",
    col_order=data.loc[means.index, "title"],
    col_wrap=4,
    height=1.8,
    alpha=0.5,
    legend=False,
)
grid.set(ylim=(-0.4, 1.4), yticks=[0, 1], yticklabels=["incorrect", "correct"])
grid.set_titles("{col_name}").set_axis_labels("expected accuracy", "")
_ = grid.tight_layout()

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

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Mean distance of one response from the expected accuracy. Above the line it comes from samples, below it from the printed baseline. A cell is empty where the model has no samples here, or the paper prints none.", "name": "fig-divergence-grid"}, "image": {"alt": "Heat map of the mean distance, models against data sets, with a line between measured and reported models."}} paper=["figure-11", "appendix-e"] evidence=["measured", "reported"] reads=["verdicts", "main"] label="targets-everywhere"
axes = sns.heatmap(
    wide,
    annot=wide.map("{:.2f}".format).map(lambda share: share[1:]),
    fmt="",
    cmap=sns.light_palette(style.ACCENT, as_cmap=True),
    cbar=False,
    vmin=0,
    vmax=0.8,
    annot_kws={"size": 9, "color": plots.INK},
)
axes.axhline(len(measured), color=plots.INK)
axes.grid(visible=False)
_ = axes.set(xlabel="", ylabel="")

# %%
notebook.say("""
It runs from {nearest:.2f} to {farthest:.2f}, and is small only where nearly every question is nearly always answered right, or
nearly never.
""")

# %% [markdown] needs="samples"
# ## Theorem 2: the scores differ by the correctness variance
#
# The capability Brier score is the expected response Brier score less the correctness variance. With $\hat\mu = c/n$ for
# $\mu$, and the mean over $n$ samples for the expectation, it holds for counts as well. Both sides, of every method on every
# data set:

# %%
# needs samples
sides = []
for dataset, subset in results.groupby(level="dataset", sort=False):
    for method in methods(subset):
        scored = judged_by(subset, method)
        if scored.empty:
            continue
        s, counts = scored["confidence"], (scored["correct"], scored["total"])
        sides.append(
            {
                "data set": data.loc[dataset, "title"],
                "method": method,
                "response": expected_response_brier(s, *counts),
                "variance": correctness_variance(*counts),
                "capability": capability_brier(s, *counts),
            }
        )
scores = pd.DataFrame(sides)
gap = scores["capability"] - (scores["response"] - scores["variance"])

# %%
# needs samples
notebook.say(
    "What is left of the difference, over {pairs} pairs of a data set and a method, is rounding ({rest:.0e}).",
    pairs=len(scores),
    rest=10 ** np.ceil(np.log10(gap.abs().max() + 1e-17)),
)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "One mark a method. The methods of a data set lie on one line of slope 1, as far below the dotted diagonal as its correctness variance says: a method that is better by one score is better by the other, and by as much.", "name": "fig-theorem-2"}, "image": {"alt": "Scatter plot of the capability against the expected response Brier score, a mark a method on a data set, with the diagonal and, for each data set, a line parallel to it."}} label="theorem-2-gaps" paper=["theorem-2", "equation-9", "equation-10", "equation-3", "equation-7"] evidence=["measured"] reads=["verdicts", "confidences"]
# needs samples
widely = scores.groupby("data set")["variance"].max().nlargest(4)
drawn = scores[scores["data set"].isin(widely.index)]
axes = sns.scatterplot(
    drawn,
    x="response",
    y="capability",
    hue="data set",
    style="data set",
    s=60,
)
for variance in widely:
    axes.axline((0, -variance), slope=1, color=style.GRID, zorder=0)
axes.axline((0, 0), slope=1, color=plots.MUTED, linestyle=":", zorder=0)
axes.set(xlim=(0, None), ylim=(0, None))
axes.set(
    xlabel="expected response Brier score", ylabel="capability Brier score"
)
_ = axes.legend(title="")

# %% [markdown] needs="samples"
# ## Theorem 1: two targets, two optima
#
# The best confidence for a target is the one of least loss. By the response target, the correctness of one sample, it is 0
# or 1; by the capability target, which that correctness has as its mean, it is $\hat\mu$. A search over a grid finds both,
# and so it does by other proper scores:


# %%
# needs samples
def optimum(target, total, score):
    """Search the confidence of least loss among 0, 1/total, ..., 1."""
    grid = np.arange(total + 1) / total
    losses = divergence(np.full(len(grid), target), grid, score=score)
    return grid[losses.argmin()]


# %%
# needs samples
largest = results.loc[shown]
share, total = largest["correct"] / largest["total"], largest["total"]
once = (np.random.default_rng(seed).random(len(share)) < share).astype(float)
optima = {}
for score in ("brier", "log", "spherical"):
    response = [optimum(*pair, score) for pair in zip(once, total, strict=True)]
    capability = [
        optimum(*pair, score) for pair in zip(share, total, strict=True)
    ]
    optima[score.replace("brier", "Brier")] = {
        "|best by response − C|": np.abs(response - once).max(),
        "|best by capability − μ̂|": np.abs(capability - share).max(),
        "optima differ": np.mean(np.array(response) != capability),
    }

# %% tags=["hide-input"] label="theorem-1-optima" paper=["theorem-1", "equation-4", "equation-5", "equation-6", "equation-8", "section-3.1"] evidence=["measured"] reads=["verdicts"]
# needs samples
tables.show(
    pd.DataFrame(optima).T.rename_axis("score"),
    f"Largest distances from the targets on {title}, and how "
    "often the optima differ. The theorem lets them agree only where μ is 0 or 1.",
    evidence=notebook.evidence_of(data),
    **{"optima differ": "{:.0%}"},
)

# %% [markdown] needs="samples"
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

# %% [markdown] needs="samples"
# Both sides on the data set of the first figure, with confidences moved into $[0.001, 0.999]$, since the log score of a
# wrong 0 or 1 is infinite:

# %%
# needs samples
scored_by = {}
for method in methods(largest):
    scored = judged_by(largest, method)
    s, c, n = scored.to_numpy().T
    s = s.clip(0.001, 0.999)
    for score in ("brier", "log", "spherical") if len(scored) else ():
        response = expected_response_loss(s, c, n, score=score).mean()
        least = expected_response_loss(c / n, c, n, score=score).mean()
        capability = divergence(c / n, s, score=score).mean()
        scored_by[score.replace("brier", "Brier"), method] = {
            "expected response loss": response,
            "Bregman information": least,
            "capability loss": capability,
            "gap": capability - (response - least),
        }

# %% tags=["hide-input"] label="proper-scores" paper=["appendix-a.3", "equation-15"] evidence=["measured"] reads=["verdicts", "confidences"]
# needs samples
tables.show(
    pd.DataFrame(scored_by)
    .T.rename_axis(["score", "method"])
    .sort_index(level=0, sort_remaining=False),
    f"Three proper scores on {title}.",
    evidence=notebook.evidence_of(data),
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
# ## Exercises
#
# **1 (easy).** Show that the expected value of $|C - \mu|$ is $2\mu(1-\mu)$, and check it by drawing responses to a
# question with $\mu = 0.3$. *Hint:* $C$ is 1 with probability $\mu$.

# %% tags=["hide-cell", "solution"]
# Many responses to one question, and their mean distance from mu
drawn = rng.random(100_000) < 0.3
float(np.abs(drawn - 0.3).mean()), 2 * 0.3 * 0.7

# %% [markdown]
# **2 (medium).** What does a confidence of 0 lose by the log score on a question with $\mu = 0.01$, moved to 0.001 and not
# moved so far? *Hint:* `divergence(target, confidence, score="log")`.

# %% tags=["hide-cell", "solution"]
# The log score of the question, by how far the zero is moved
[float(divergence([0.01], [s], score="log")[0]) for s in (0.001, 1e-9, 1e-99)]

# %% [markdown]
# **3 (hard).** The mean of $2\hat\mu(1-\hat\mu)$ falls when fewer samples define $\hat\mu$. By which factor, and how is it
# put right? *Hint:* compare `correctness_variance` with and without `corrected=True` on five samples a question.

# %% tags=["hide-cell", "solution"]
# Five samples a question, without and with the correction
counts = rng.binomial(5, 0.3, 100_000), np.full(100_000, 5)
plain = correctness_variance(*counts) / (0.3 * 0.7)  # (k - 1) / k = 0.8
corrected = correctness_variance(*counts, corrected=True) / (0.3 * 0.7)
round(plain, 2), round(corrected, 2)
