# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Expected accuracy without sampling
#
# Goes beyond the paper, whose $\mu$ is always estimated from samples (section 4.1): where answers are short, $\mu$ is a
# sum of probabilities. That gives a ground truth that estimates from samples must converge to.
#
# - **You will learn** when $\mu$ can be computed, what it costs, and how sampling theory fares against it.
# - **You need** nothing but this repository: no GPU, no network. It takes seconds.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %%
from capcal_lib.book import figures, notebook
from capcal_lib.manifests import ROOT
from capcal_lib.results import convergence, tables

study = notebook.open_study(globals())
study

# %% [markdown]
# ## A sum over answers
#
# By definition $\mu = \sum_y p(y \mid x)\, C(x, y)$. Beginning at the prompt, the tree of next tokens is walked under the
# very settings of the samples: temperature, top-k, top-p, longest answer. Every answer that ends is graded. Beginnings
# that are too unlikely are left out, so that
#
# $$
# \sum_{y \text{ right}} p(y \mid x) \;\le\; \mu \;\le\; 1 - \sum_{y \text{ wrong}} p(y \mid x)
# $$ (exact-bounds)
#
# holds without any statistics. For an answer of one letter this is one pass over the prompt, and one more for each
# letter to see that the answer ends there. The first letter alone would not do: what follows it can still change
# the verdict. For long reasoning the tree never closes, and $\mu$ is *not known* this way: here, when the bounds
# of {eq}`exact-bounds` are over 0.05 apart.

# %%
pairs = convergence.exact_pairs(ROOT / store, study.evaluations)
tables.show(
    convergence.bounds_table(pairs),
    "Questions whose mu is known, and what it costs.",
    empty="no answers of this model were enumerated: capcal exact",
    digits=3,
)

# %%
best = convergence.best_known(pairs)
costs = convergence.bounds_table(best)

# %%
notebook.glue(known=int(costs["known"].sum()))
notebook.glue(passes=costs["passes"].mean(), tokens=costs["tokens"].mean())

# %% [markdown]
# On the data set with the most known questions, {glue:text}`known` of them, a question takes {glue:text}`passes:.0f` next-token
# distributions on average. The samples behind $\hat\mu$ took {glue:text}`tokens:.0f` tokens.
#
# ## Do samples agree?
#
# If the samples were drawn from these distributions, $(\hat\mu - \mu)/\sqrt{\mu(1-\mu)/k}$ is spread like a standard
# normal variable, and the error of $\hat\mu$ falls as $1/\sqrt{k}$ to nothing.

# %%
ks = [k for k in (1, 2, 5, 10, 20, 50, 100) if k <= k_eval]
curve = tables.stack(
    [convergence.convergence(*pair, ks, study.rng) for pair in best]
)
z = [score for pair in best for score in convergence.z_scores(*pair)]

# %% mystnb={"figure": {"caption": "Error of estimates against exact mu (left); their standardised differences at all samples (right).", "name": "fig-exact"}}
figures.convergence(curve, z)

# %%
agreement = convergence.agreement(z)
notebook.glue(spread=agreement["spread"], outside=agreement["outside"])
notebook.glue(middle=agreement["middle"])

# %% [markdown]
# The standard deviation is {glue:text}`spread:.2f`, where 1 is expected; {glue:text}`outside:.2f` of the questions lie outside
# ±1.96, where 0.05 are expected; and the mean of all lies {glue:text}`middle:.1f` of its standard errors from zero, where a
# value beyond ±2 is an unlucky set of samples and one beyond ±4 a defect. So engine, sampler, grader and store are
# tested together, against arithmetic.
#
# ## Summary
#
# - For short answers $\mu$ is computable, with bounds that need no confidence level.
# - Estimates from samples converge to it as the binomial law says.
# - For long answers, sampling is the only way, and this page says so instead of guessing.
#
# ## Exercises
#
# 1. Why can the bounds be wide although the most likely answer has a probability above one half?
# 2. `capcal exact --epsilon 0.01`: what does a coarser tree cost, and what does it leave open?
# 3. Score a confidence against exact $\mu$. Which term of the corrected Brier score is no longer needed?
