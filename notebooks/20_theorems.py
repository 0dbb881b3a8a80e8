# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The theorems, on data
#
# Both theorems of the paper's section 3, which the page of definitions proves, are identities on
# counts; this page computes both sides, their form for other proper scores, and the uniform baseline.

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has most data sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset
from capcal_lib.metrics import (
    capability_brier,
    correctness_variance,
    divergence,
    expected_response_brier,
    expected_response_loss,
    uniform_baseline_brier,
)
from capcal_lib.results import describe_runs, load_results, methods

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
rng = np.random.default_rng(seed)
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval)
results = load_results(runs, model, k_eval=k_eval, recipe=None).query(
    "total > 0"
)
evidence = data["evidence"].iloc[0] if len(data) else "simulated"
notebook.about(model, data)

# %%
# needs samples
rows = []
for dataset, own in results.groupby(level="dataset", sort=False):
    for method in methods(own):
        asked = own.dropna(subset=[method])
        if asked.empty:
            continue
        counts = asked["correct"], asked["total"]
        response = expected_response_brier(asked[method], *counts)
        capability = capability_brier(asked[method], *counts)
        variance = correctness_variance(*counts)
        rows.append((dataset, method, response, variance, capability))
columns = ["dataset", "method", "response Brier", "variance"]
both = pd.DataFrame(rows, columns=[*columns, "capability Brier"])
gap = both["capability Brier"] - both["response Brier"] + both["variance"]

# %% tags=["hide-input"]
# needs samples
power = np.ceil(np.log10(gap.abs().max() + 1e-17))
notebook.glue(scores=len(both), above=10**power)

# %% tags=["finding"]
# needs samples
notebook.finding("""
Over {scores} pairs of a data set and a method, the capability Brier score and the expected response Brier score less the
correctness variance differ by less than {above:.0e}: rounding, and nothing else.
""")

# %% mystnb={"figure": {"caption": "Capability against expected response Brier score, one point per method. On each data set the points lie on one line of slope 1, below the dotted diagonal by the correctness variance.", "name": "fig-theorem-2"}, "image": {"alt": "Scatter plot: all points lie below the diagonal, and the points of each data set at one distance from it, which differs between data sets."}} label="theorem-2-gaps" paper=["theorem-2", "equation-9", "equation-10", "equation-3", "equation-7"] evidence=["measured"] reads=["verdicts", "confidences"]
# needs samples
widest = both.groupby("dataset")["variance"].max().nlargest(4)
shown = both[both["dataset"].isin(widest.index)].assign(
    title=lambda own: [load_dataset(name).title for name in own["dataset"]]
)
axes = sns.scatterplot(
    shown, x="response Brier", y="capability Brier", hue="title", s=60
)
for variance in widest:
    axes.axline((0, -variance), slope=1, color=style.GRID, zorder=0)
axes.axline((0, 0), slope=1, color=style.MUTED, linestyle=":", zorder=0)
axes.set(xlabel="expected response Brier score", xlim=(0, None), ylim=(0, None))
_ = axes.legend(title="")

# %% [markdown] needs="samples"
# ## Expected accuracy is a limit
#
# $\mu$ is what the share of correct samples tends to as more and more are drawn. Three questions that are neither always
# nor never answered correctly, at the quarters of their $\hat\mu$, with their samples in a random order:

# %%
# needs samples
mu = results["correct"] / results["total"]
undecided = results.assign(mu=mu).query("0 < mu < 1").sort_values("mu")
chosen = undecided.iloc[
    [int(q * (len(undecided) - 1)) for q in (0.25, 0.5, 0.75)]
]

# %%
# needs samples
lines = []
for c, n in chosen[["correct", "total"]].astype(int).to_numpy():
    verdicts = rng.permutation(np.arange(n) < c)
    share = verdicts.cumsum() / np.arange(1, n + 1)
    lines.append(pd.Series(share, np.arange(1, n + 1), name=f"{c} of {n}"))

# %% mystnb={"figure": {"caption": "Share of correct samples of three questions as samples come in.", "name": "fig-running-means"}, "image": {"alt": "Three lines that jump between 0 and 1 over the first samples and settle as more come in, each at the question's share of correct samples."}} paper=["equation-5", "equation-4", "section-3.1"] evidence=["measured"] reads=["verdicts"]
# needs samples
axes = sns.lineplot(pd.concat(lines, axis=1), dashes=False)
axes.legend(title="correct in all")
axes.set(xscale="log", xlabel="samples drawn", ylabel="share correct")
longest = max(map(len, lines))
axes.set_xticks(ticks := [k for k in (1, 10, 100) if k <= longest], ticks)
axes.minorticks_off()

# %% [markdown] needs="samples"
# ## Theorem 1: two targets, two optima
#
# For a question, search all confidences $s$ for the best. By the response target that is the correctness of the one
# sample drawn, by the capability target $\hat\mu$:

# %%
# needs samples
c, n = chosen[["correct", "total"]].astype(int).iloc[1]
grid, drawn = np.arange(n + 1) / n, rng.random() < c / n

# %%
# needs samples
by_response = grid[((grid - drawn) ** 2).argmin()]
by_capability = grid[((grid - c / n) ** 2).argmin()]
float(by_response), float(by_capability), int(drawn), float(c / n)


# %% [markdown] needs="samples"
# The same for all questions of the largest data set, by three proper scores:


# %%
# needs samples
def best(targets, totals, score):
    """Search the best confidence for each target on a grid."""
    found = []
    for target, total in zip(targets, totals, strict=True):
        grid = np.arange(total + 1) / total
        losses = divergence(np.full(len(grid), target), grid, score=score)
        found.append(grid[losses.argmin()])
    return np.array(found)


# %%
# needs samples
largest = results.loc[data.index[0]]
share, totals = largest["correct"] / largest["total"], largest["total"]
once = (rng.random(len(share)) < share).astype(float)
optima = {}
for score in ("brier", "log", "spherical"):
    response, capability = (best(each, totals, score) for each in (once, share))
    optima[score] = (
        np.abs(response - once).max(),
        np.abs(capability - share).max(),
        np.mean(response != capability),
    )

# %% label="theorem-1-optima" paper=["theorem-1", "equation-8", "equation-6"] evidence=["measured"] reads=["verdicts"]
# needs samples
heads = ["|best by response − C|", "|best by capability − μ̂|", "optima differ"]
tables.show(
    pd.DataFrame(optima, index=heads)
    .T.rename({"brier": "Brier"})
    .rename_axis("score"),
    f"Largest distances from the targets on {data['title'].iloc[0]}, and how "
    "often the optima differ.",
    evidence=evidence,
    **{"optima differ": "{:.0%}"},
)

# %% tags=["hide-input"]
# needs samples
notebook.glue(apart=100 * float(optima["brier"][2]))

# %%
# needs samples
notebook.say(r"""
{apart:.0f} % of the questions have two different best confidences. The theorem allows the two to agree only where $\hat\mu$
is 0 or 1.
""")

# %% [markdown]
# ## Beyond the Brier score
#
# Appendix A.3 of the paper says that for strictly convex losses the difference is the Bregman information of the
# correctness (Banerjee et al., 2005). For that the loss has to be written as a divergence, zero where
# confidence and target agree:
#
# $$
# \begin{aligned}
# \mathcal D_g(t, s) &= g(t) - g(s) \\
# &\quad - g'(s)\,(t - s), \\
# \mathbb E\bigl[\mathcal D_g(\mathcal C, s)\bigr] - \mathcal D_g(\mu, s) &= \mathbb E\bigl[g(\mathcal C)\bigr] - g(\mu).
# \end{aligned}
# $$ (eq-bregman)
#
# The right side does not know $s$. With $g(t) = t^2$ it is the variance. With $g(t) = t\log t + (1-t)\log(1-t)$ the
# divergence is Kullback and Leibler's and the right side is the entropy of $\mathcal C$. With
# $g(t) = \sqrt{t^2 + (1-t)^2}$ it is the spherical score.

# %% [markdown] needs="samples"
# Both sides on the largest data set, with confidences moved into $[0.001, 0.999]$, since the log score of a wrong 0 or 1
# is infinite:

# %%
# needs samples
rows = {}
for method in methods(results):
    asked = largest.dropna(subset=[method])
    s, counts = asked[method].clip(0.001, 0.999), asked[["correct", "total"]]
    c, n = counts.to_numpy().T
    for score in ("brier", "log", "spherical") if len(asked) else ():
        response = expected_response_loss(s, c, n, score=score).mean()
        capability = divergence(c / n, s, score=score).mean()
        # Of mu_hat itself, which no confidence undercuts.
        information = expected_response_loss(c / n, c, n, score=score).mean()
        gap = capability - (response - information)
        rows[score, method] = response, information, capability, gap

# %% label="proper-scores" paper=["appendix-a.3", "equation-15"] evidence=["measured"] reads=["verdicts", "confidences"]
# needs samples
heads = [
    "expected response loss",
    "Bregman information",
    "capability loss",
    "gap",
]
sides = pd.DataFrame(rows, index=heads).T.rename_axis(["score", "method"])
tables.show(
    sides.sort_index(level=0, sort_remaining=False).rename({"brier": "Brier"}),
    f"Three proper scores on {data['title'].iloc[0]}.",
    evidence=evidence,
    gap="{:.1g}",
)

# %% [markdown]
# The form matters. Cross-entropy, $-t\log s - (1-t)\log(1-s)$, is the log score as it is usually written. It is a
# straight line in the target $t$, not strictly convex, and a straight line has no gap:


# %%
def cross_entropy(t, s):
    return -t * np.log(s) - (1 - t) * np.log(1 - s)


# %%
expected = 0.3 * cross_entropy(1, 0.6) + 0.7 * cross_entropy(0, 0.6)
float(expected - cross_entropy(0.3, 0.6))

# %% [markdown]
# What cross-entropy adds to the divergence is the entropy of its target, which is zero for a verdict and is not for $\mu$.
#
# ## The uniform baseline
#
# A confidence drawn evenly from $[0, 1]$ loses $\int_0^1 (s - \mu)^2\,ds = \frac13 - \mu + \mu^2$ on average. The
# integrand is a parabola in $s$, so Gauss's rule with two points gives the integral exactly:

# %% label="uniform-integral" paper=["equation-11", "appendix-c.2"] evidence=["simulated"]
nodes, weights = np.polynomial.legendre.leggauss(2)
points, grid = (nodes + 1) / 2, np.linspace(0, 1, 101)
integral = ((points[:, None] - grid) ** 2 * weights[:, None] / 2).sum(axis=0)
float(np.abs(integral - (1 / 3 - grid + grid**2)).max())

# %% [markdown] needs="samples"
# So the baseline of a data set is one third less the correctness variance. A single draw of the confidences scatters
# around it:

# %%
# needs samples
draws = {}
for title, own in results.rename(data["title"], level=0).groupby(
    level=0, sort=False
):
    share = (own["correct"] / own["total"]).to_numpy()
    single = ((rng.random((1000, len(own))) - share) ** 2).mean(axis=1)
    exact = uniform_baseline_brier(own["correct"], own["total"])
    draws[title] = exact, single.mean(), single.std(ddof=1)

# %% label="uniform-draws" paper=["equation-11"] evidence=["measured"] reads=["verdicts"]
# needs samples
heads = ["exact", "mean of 1,000 draws", "sd of one draw"]
tables.show(
    pd.DataFrame(draws, index=heads).T.rename_axis("data set"),
    "Plug-in score of Uniform random.",
    digits=4,
    evidence=evidence,
)

# %% [markdown]
# ## Summary
#
# - Both theorems hold on counts to the last digit: no assumption on the model is left to check.
# - The variance is the Brier score's name for Bregman information. Other proper scores have another, which also does
#   not depend on the confidence.
# - The uniform baseline says as much about a data set as its correctness variance, and nothing else.
#
# ## Exercises
#
# **1 (easy).** Which confidence has the lowest expected response Brier score, and which the lowest capability Brier score?
# *Hint:* theorem 2 subtracts something that has no $s$ in it.

# %% tags=["hide-cell", "solution"]
grid = np.linspace(0, 1, 101)
response = 0.3 * (grid - 1) ** 2 + 0.7 * grid**2
assert grid[response.argmin()] == grid[((grid - 0.3) ** 2).argmin()]

# %% [markdown]
# **2 (medium).** What does a confidence of 0 lose by the log score on a question with $\mu = 0.01$, moved to 0.001 and not
# moved so far? *Hint:* `divergence(target, confidence, score="log")`.

# %% tags=["hide-cell", "solution"]
[float(divergence([0.01], [s], score="log")[0]) for s in (0.001, 1e-9, 1e-99)]

# %% [markdown]
# **3 (hard).** Derive the uniform baseline of the log score of one verdict, and check it. *Hint:* the integral of
# $-\log s$ over $[0, 1]$ is 1.

# %% tags=["hide-cell", "solution"]
float(-np.log(1 - rng.random(100_000)).mean())  # 1, whatever the verdict
