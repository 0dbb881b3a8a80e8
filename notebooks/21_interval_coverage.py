# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What an interval for μ is worth
#
# Runs appendix B.1 of the paper, the Wald analysis of one question's $\hat\mu$, and what it leaves open. It goes with
# [the page on estimating μ](../theory/estimating_mu.md).
#
# - **You will learn** how often four intervals hold the truth, exactly and not by simulation, and where the Wald
#   interval does not.
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
# ## Where the questions are
#
# The Wald interval $\hat\mu \pm z\sqrt{\hat\mu(1-\hat\mu)/k}$ has no width where $\hat\mu$ is 0 or 1. How many questions
# are there?

# %% label="wald-points" paper=["appendix-b.1"] evidence=["measured"] reads=["verdicts"]
certain = theory.at_the_ends(study.evaluations)
tables.show(certain, "Questions whose Wald interval is a single point.")

# %% [markdown]
# ## Coverage, exactly
#
# With $k$ samples there are only $k + 1$ possible counts. So the chance that an interval holds $\mu$ is a finite sum,
# $\sum_c \binom kc \mu^c (1-\mu)^{k-c}\,[\text{low}_c \le \mu \le \text{high}_c]$, with no draws and no error.

# %%
import numpy as np

mus = np.linspace(0.002, 0.998, 499)
exact = theory.exact_coverage(mus, k_eval)

# %% mystnb={"figure": {"caption": "Chance that a 95 % interval holds mu, for four intervals, summed exactly. The teeth come from the counts being whole numbers.", "name": "fig-exact-coverage"}} paper=["appendix-b.1", "equation-16"] evidence=["simulated"]
figures.coverage(exact)

# %% label="coverage-summary" paper=["appendix-b.1"] evidence=["simulated"]
summary = theory.coverage_summary(exact)
tables.show(summary, "Coverage and width over all mu.", digits=3)

# %%
least = summary.set_index("method")["least"]
notebook.glue(wald=least["wald"], exact_least=least["clopper-pearson"])

# %% [markdown]
# The least coverage of Wald is {glue:text}`wald:.2f`, and that of Clopper–Pearson {glue:text}`exact_least:.3f`, which never
# falls below 0.95 and pays for it in width. Wilson and Jeffreys miss a little at some $\mu$ and are right on average.
#
# The least is taken at unlucky $\mu$, and $\mu$ near the ends are not rare. Averaged over the questions of each data set,
# with the mean of a question's Jeffreys posterior in the place of its $\mu$:

# %%
tables.show(
    theory.coverage_on(study.evaluations, k_eval),
    "Mean coverage over the questions of a data set.",
    digits=3,
)

# %% [markdown]
# ## Does simulation agree?

# %%
few = [0.005, 0.02, 0.1, 0.35]
drawn = tables.coverage(few, k_eval, study.rng, draws=20_000)
summed = theory.exact_coverage(few, k_eval)
both = drawn.merge(summed, on=["method", "mu"], suffixes=(" drawn", ""))
notebook.glue(apart=(both["coverage drawn"] - both["coverage"]).abs().max())

# %% [markdown]
# Twenty thousand draws differ from the sum by at most {glue:text}`apart:.4f`.
#
# ## Fewer samples

# %%
smaller = theory.exact_coverage(mus, 10)
tables.show(
    theory.coverage_summary(smaller), "The same with ten samples.", digits=3
)

# %% [markdown]
# ## How many samples, by Wilson
#
# The paper plans $k_\text{eval}$ by the Wald half-width at $\mu = 1/2$, and mentions that Wilson's interval could be
# searched instead. Its widest interval is also in the middle, so the search is short.

# %% label="wilson-size" paper=["equation-17", "equation-18"] evidence=["simulated"]
from capcal_lib.metrics.intervals import binomial_interval, wald_sample_size


def wilson_half_width(k):
    low, high = binomial_interval([k // 2], [k], method="wilson")[0]
    return (high - low) / 2


by_wilson = next(k for k in range(1, 1000) if wilson_half_width(k) <= 0.1)
notebook.glue(by_wilson=by_wilson, by_wald=wald_sample_size(0.1))

# %% [markdown]
# For a half-width of 0.1, Wilson asks for {glue:text}`by_wilson` samples and Wald for {glue:text}`by_wald`. In the middle the
# two hardly differ; the paper's 100 is enough by either.
#
# ## Summary
#
# - Wald's promise fails where language models are: near 0 and 1. The paper says so too, and uses it as a guideline only.
# - Coverage needs no simulation: it is a sum of $k + 1$ terms.
# - Jeffreys and Wilson are right on average, Clopper–Pearson always and at a price.
#
# ## Exercises
#
# 1. At $\mu = 0.002$, what is the chance of no correct answer in `k_eval` samples? What does Wald say then?
# 2. Find the $\mu$ at which Jeffreys covers least. Does it move when `k_eval` is doubled?
# 3. For which data set is the Wald interval least to be trusted, and why?
