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
# Runs what [the page of definitions](../theory/definitions.md) proves: section 3 and appendix A of the paper, and
# the uniform baseline of appendix C.2.
#
# - **You will learn** that both theorems are identities on counts, what takes the place of the variance for other
#   proper scores, and where the uniform baseline comes from.
# - **You need** nothing but this repository: no GPU, no network. It takes seconds.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %%
from capcal_lib.book import figures, notebook, theory
from capcal_lib.results import tables

study = notebook.open_study(globals())
study

# %% [markdown]
# ## Expected accuracy is a limit
#
# $\mu$ is what the share of correct samples tends to as more and more are drawn. Three undecided questions of each
# data set, in a random order of the samples at hand:

# %% mystnb={"figure": {"caption": "Share of correct samples of three questions as samples come in; dotted, all samples.", "name": "fig-running-means"}} paper=["equation-5", "equation-4", "section-3.1"] evidence=["measured"] reads=["verdicts"]
figures.running_means(study.evaluations, study.rng)

# %% [markdown]
# ## Theorem 1: two targets, two optima
#
# For every question, search all confidences for the best by either target. By the response target that is the
# correctness of the one sample drawn; by the capability target it is $\hat\mu$. This is so for every proper score.

# %% label="theorem-1-optima" paper=["theorem-1", "equation-8", "equation-6", "equation-2"] evidence=["measured"] reads=["verdicts"]
optima = tables.stack(
    [theory.optima(one, study.rng) for one in study.evaluations[:1]]
)
tables.show(optima, "The best confidences on one data set.", digits=2)

# %%
apart = float(optima["optima apart"].iloc[0]) if len(optima) else float("nan")
notebook.glue(apart=apart)

# %% [markdown]
# A share of {glue:text}`apart:.2f` of the questions has two different best confidences. On the others $\hat\mu$ is 0 or 1,
# and the theorem allows them to agree.
#
# ## Theorem 2: the difference is the variance
#
# Expected response Brier less correctness variance is the capability Brier, for any confidence.

# %%
checks = [
    tables.theorem_2(one).assign(evidence=one.evidence)
    for one in study.evaluations
]

# %% label="theorem-2-gaps" paper=["theorem-2", "equation-9", "equation-10", "equation-3", "equation-7"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
tables.show(
    tables.stack(checks[:1]), "Both sides on one data set.", gap="{:.1e}"
)

# %%
notebook.glue(datasets=len(checks), worst=theory.widest_gap(checks))

# %% [markdown]
# Over all {glue:text}`datasets` data sets the largest gap is {glue:text}`worst:.1e`: rounding, and nothing else.
#
# ## Beyond the Brier score
#
# Appendix A.3 of the paper says that for strictly convex losses the difference is the Bregman information of the
# correctness {cite:p}`banerjee2005clustering`. For that the loss has to be written as a divergence, zero where
# confidence and target agree:
#
# $$
# \begin{aligned}
# \mathcal D_g(t, s) &= g(t) - g(s) - g'(s)\,(t - s), \\
# \mathbb E\bigl[\mathcal D_g(\mathcal C, s)\bigr] - \mathcal D_g(\mu, s) &= \mathbb E\bigl[g(\mathcal C)\bigr] - g(\mu).
# \end{aligned}
# $$ (eq-bregman)
#
# The right side does not know $s$. With $g(t) = t^2$ it is the variance. With $g(t) = t\log t + (1-t)\log(1-t)$ the
# divergence is Kullback and Leibler's and the right side is the entropy of $\mathcal C$. With
# $g(t) = \sqrt{t^2 + (1-t)^2}$ it is the spherical score.

# %% label="proper-scores" paper=["appendix-a.3", "equation-15"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
general = [theory.proper_scores(one) for one in study.evaluations]
tables.show(
    tables.stack(general[:1]),
    "Three proper scores, one identity.",
    gap="{:.1e}",
)

# %%
notebook.glue(worst_general=theory.widest_gap(general))

# %% [markdown]
# The largest gap over all data sets, methods and scores is {glue:text}`worst_general:.1e`.
#
# The form matters. Cross-entropy, $-t\log s - (1-t)\log(1-s)$, is the log score as it is usually written. It is a
# straight line in the target $t$, not strictly convex, and a straight line has no gap:

# %%
import numpy as np


def cross_entropy(t, s):
    return -t * np.log(s) - (1 - t) * np.log(1 - s)


mu, s = 0.3, 0.6
mean = mu * cross_entropy(1, s) + (1 - mu) * cross_entropy(0, s)
notebook.glue(no_gap=mean - cross_entropy(mu, s))

# %% [markdown]
# For $\mu = 0.3$ and $s = 0.6$ it is {glue:text}`no_gap:.1e`. What cross-entropy adds to the divergence is the entropy of its
# target, which is zero for a verdict and is not for $\mu$: that is where the information went.
#
# ## The uniform baseline
#
# A confidence drawn evenly from $[0, 1]$ loses $\int_0^1 (s - \mu)^2\,ds = \frac13 - \mu + \mu^2$ on average. The
# integrand is a parabola in $s$, so Gauss's rule with two points gives the integral exactly; it needs no draws.

# %% label="uniform-integral" paper=["equation-11", "appendix-c.2"] evidence=["simulated"]
nodes, weights = np.polynomial.legendre.leggauss(2)
points, share = (nodes + 1) / 2, weights / 2
mus = np.linspace(0, 1, 101)
integral = ((points[:, None] - mus) ** 2 * share[:, None]).sum(axis=0)
notebook.glue(baseline_gap=np.abs(integral - (1 / 3 - mus + mus**2)).max())

# %% [markdown]
# Integral and formula differ by at most {glue:text}`baseline_gap:.1e`. So the baseline of a data set is one third less the
# correctness variance, and one number tells the other. A single draw of the confidences scatters around it:

# %% label="uniform-draws" paper=["equation-11"] evidence=["measured"] reads=["verdicts"]
single = [theory.single_draws(one, study.rng) for one in study.evaluations]
tables.show(
    tables.stack(single),
    "The uniform baseline: exact, and drawn a thousand times.",
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
# 1. Find the confidence with the lowest expected response Brier. Why is it the same as by the capability Brier?
# 2. Which confidences does clipping at 0.001 change, and what would the log score be without it?
# 3. Derive the uniform baseline of the log score. (The integral of $-\log s$ over $[0, 1]$ is 1.)
