# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Spending a budget where it helps
#
# Reproduces section 5.2 and appendix D.2 of the paper: allocating a budget of samples over questions by confidence.
#
# - **You will learn** how to allocate optimally for given confidences, and what a confidence is worth in solved
#   questions.
# - **You need** nothing but this repository: no GPU, no network. It takes seconds.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %%
from capcal_lib.book import figures, notebook
from capcal_lib.results import tables

study = notebook.open_study(globals())
study

# %% [markdown]
# ## The best allocation
#
# A question with success probability $p$ gains $p(1-p)^k$ from its next sample after $k$ failures. The gain falls
# with every sample, so taking the largest gains first is optimal: a threshold on the gain decides every question's
# share at once.

# %% label="budget-greedy" paper=["appendix-d.2.1", "equation-20"] evidence=["simulated"]
from capcal_lib.applications.budget import allocate

allocate([0.9, 0.5, 0.1, 0.0], 12)

# %% [markdown]
# The likely question needs little, the hopeless one gets nothing, and the rest goes where it still pays.
#
# ## What it solves
#
# The success rate of an allocation is the share of questions solved at least once, when each question's samples are
# drawn from those at hand: an exact hypergeometric expectation. The reference implementation simulates it with ten
# draws that all questions share, which alone moves its curve by points at small budgets.

# %%
budgets = (1, 2, 4, 8, 16, 32, 64)
curves = [tables.budget_table(one, budgets) for one in study.evaluations]

# %% mystnb={"figure": {"caption": "Questions solved against the mean number of samples a question, by the confidence that allocates them.", "name": "fig-budget"}} paper=["figure-5", "figure-10", "section-5.2", "appendix-d.2", "appendix-d.2.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
figures.budgets(
    study.evaluations, curves, tables.shown_methods(study.evaluations)
)

# %% label="budget-success" paper=["figure-10", "equation-19"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
tables.show(
    tables.stack([tables.budget_wide(table) for table in curves[:1]]),
    "Success rate on the largest data set (higher is better).",
)

# %% [markdown]
# *Oracle CC* allocates by $\hat\mu$ of the very samples that it is scored on, so it is a ceiling and not a method. A
# confidence that ranks wrongly can do worse than spending evenly.
#
# ## Does it help?
#
# The gain over the uniform allocation at the same budget, in percentage points:

# %% label="budget-gains" paper=["section-5.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
gains = [
    tables.budget_gain(one, table)
    for one, table in zip(study.evaluations, curves, strict=True)
]
tables.show(
    tables.stack(gains),
    "Percentage points won over the uniform allocation.",
    digits=1,
)

# %% [markdown]
# ## Summary
#
# - Optimal allocation needs no search: sort the gains, or find their threshold.
# - What a confidence is worth depends on its order as much as on its calibration.
# - Expected success is exact; simulation would only add noise.
#
# ## Exercises
#
# 1. At which budget is the oracle's advantage largest, and why does it vanish at both ends?
# 2. Replace a method's confidences by 0.5 everywhere. What does the allocation become?
# 3. A question's samples cost different numbers of tokens. How would you change the gain?
