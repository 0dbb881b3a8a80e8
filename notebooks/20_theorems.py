# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The theorems, on data

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
from capcal_lib.metrics import (
    capability_brier,
    correctness_variance,
    divergence,
    expected_response_brier,
    expected_response_loss,
)
from capcal_lib.results import judged_by, load_results, methods

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
rng = np.random.default_rng(seed)
results = load_results(runs, model, k_eval=k_eval, recipe=None).query(
    "total > 0"
)
evidence = notebook.evidence_of(data)
notebook.about(data)

# %% [markdown] needs="samples"
# Theorem 2 says that the capability Brier score is the expected response Brier score less the correctness variance. With
# $\hat\mu = c/n$ for $\mu$, and the mean over $n$ samples for the expectation, it holds for counts as well. Both sides, of
# every method on every data set:

# %%
# needs samples
rows = []
for dataset, subset in results.groupby(level="dataset", sort=False):
    for method in methods(subset):
        scored = judged_by(subset, method)
        if scored.empty:
            continue
        s, counts = scored["confidence"], (scored["correct"], scored["total"])
        rows.append(
            {
                "data set": data.loc[dataset, "title"],
                "method": method,
                "response": expected_response_brier(s, *counts),
                "variance": correctness_variance(*counts),
                "capability": capability_brier(s, *counts),
            }
        )
scores = pd.DataFrame(rows)
gap = scores["capability"] - (scores["response"] - scores["variance"])

# %% tags=["finding"]
# needs samples
notebook.finding(
    "The two scores differ by the correctness variance and by nothing else: "
    "what is left, over {pairs} pairs of a data set and a method, is rounding ({rest:.0e}).",
    pairs=len(scores),
    rest=10 ** np.ceil(np.log10(gap.abs().max() + 1e-17)),
)

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "One mark a method. The methods of a data set lie on one line of slope 1, as far below the dotted diagonal as its correctness variance says: a method that is better by one score is better by the other, and by as much.", "name": "fig-theorem-2"}, "image": {"alt": "Scatter plot of the capability against the expected response Brier score: all points lie below the diagonal, and the points of each data set at one distance from it, which differs between data sets."}} label="theorem-2-gaps" paper=["theorem-2", "equation-9", "equation-10", "equation-3", "equation-7"] evidence=["measured"] reads=["verdicts", "confidences"]
# needs samples
widest = scores.groupby("data set")["variance"].max().nlargest(4)
drawn = scores[scores["data set"].isin(widest.index)]
axes = sns.scatterplot(
    drawn,
    x="response",
    y="capability",
    hue="data set",
    style="data set",
    s=60,
)
for variance in widest:
    axes.axline((0, -variance), slope=1, color=style.GRID, zorder=0)
axes.axline((0, 0), slope=1, color=style.MUTED, linestyle=":", zorder=0)
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
largest = results.loc[data.index[0]]
share, total = largest["correct"] / largest["total"], largest["total"]
once = (rng.random(len(share)) < share).astype(float)
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
    f"Largest distances from the targets on {data['title'].iloc[0]}, and how "
    "often the optima differ. The theorem lets them agree only where μ is 0 or 1.",
    evidence=evidence,
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

# %% [markdown] needs="samples"
# Both sides on the largest data set, with confidences moved into $[0.001, 0.999]$, since the log score of a wrong 0 or 1
# is infinite:

# %%
# needs samples
sides = {}
for method in methods(largest):
    scored = judged_by(largest, method)
    s, c, n = scored.to_numpy().T
    s = s.clip(0.001, 0.999)
    for score in ("brier", "log", "spherical") if len(scored) else ():
        response = expected_response_loss(s, c, n, score=score).mean()
        least = expected_response_loss(c / n, c, n, score=score).mean()
        capability = divergence(c / n, s, score=score).mean()
        sides[score.replace("brier", "Brier"), method] = {
            "expected response loss": response,
            "Bregman information": least,
            "capability loss": capability,
            "gap": capability - (response - least),
        }

# %% tags=["hide-input"] label="proper-scores" paper=["appendix-a.3", "equation-15"] evidence=["measured"] reads=["verdicts", "confidences"]
# needs samples
tables.show(
    pd.DataFrame(sides)
    .T.rename_axis(["score", "method"])
    .sort_index(level=0, sort_remaining=False),
    f"Three proper scores on {data['title'].iloc[0]}.",
    evidence=evidence,
    gap="{:.1g}",
)

# %% [markdown]
# ## The uniform baseline
#
# A confidence drawn evenly from $[0, 1]$ loses $\int_0^1 (s - \mu)^2\,ds = \frac13 - \mu + \mu^2$ on average, one third less
# the correctness variance. The integrand is a parabola, so that Gauss's rule with two points gives the integral exactly;
# its largest distance from the formula on a grid of $\mu$ is

# %% label="uniform-integral" paper=["equation-11", "appendix-c.2"] evidence=["simulated"]
nodes, weights = np.polynomial.legendre.leggauss(2)
points, grid = (nodes + 1) / 2, np.linspace(0, 1, 101)
integral = ((points[:, None] - grid) ** 2 * weights[:, None] / 2).sum(axis=0)
float(np.abs(integral - (1 / 3 - grid + grid**2)).max())

# %% [markdown]
# ## Summary
#
# - Both theorems hold on counts to the last digit: no assumption on the model is left to check.
# - The variance is the Brier score's name for Bregman information. Other proper scores have another, which does not depend
#   on the confidence either.
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
