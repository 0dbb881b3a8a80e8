# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Predicting pass@k without sampling
#
# Reproduces section 5.1 and appendix D.1 of the paper: its two pass@k tables and the dataset-level curves.
#
# - **You will learn** how a confidence predicts the success of repeated attempts, and how an oracle can flatter itself.
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
# ## From a confidence to pass@k
#
# If each attempt succeeds with probability $s$, then at least one of $k$ does with probability $1-(1-s)^k$. What
# really happened is estimated without bias from the counts, as $1 - \binom{n-c}{k} / \binom{n}{k}$.

# %%
ks = [k for k in (1, 4, 16, 64) if 2 * k <= k_eval]
errors = [tables.passk_table(one, ks, study.rng) for one in study.evaluations]
smallest = min(
    (int(one.counts.total.min()) for one in study.evaluations), default=0
)

# %% [markdown]
# ## Question by question
#
# The error is the mean squared distance between the predicted and the actual pass@k of a question. The paper scores
# Oracle CC on the very samples that define it (*in sample*). Here every method is scored on one half of the samples,
# and Oracle CC knows only the other half. That takes twice the samples, so the largest $k$ of the paper needs more
# than {glue:text}`smallest` samples a question.

# %%
notebook.glue(smallest=smallest)

# %% label="passk-errors" paper=["table-3", "table-8", "section-5.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
tables.show(
    tables.stack(errors[:1]),
    "Squared error on the largest data set (lower is better).",
)

# %% [markdown]
# Even an estimate of $\mu$ from half the samples does not predict pass@k perfectly; the in-sample column cannot show it.
#
# ## The whole data set

# %% mystnb={"figure": {"caption": "Actual pass@k of each data set, and the mean of what each method predicts.", "name": "fig-pass-at-k"}} paper=["figure-9", "appendix-d.1", "appendix-d.1.1", "appendix-d.1.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
figures.pass_curves(study.evaluations, tables.shown_methods(study.evaluations))

# %% [markdown]
# A confidence that is calibrated on average may still miss the curve: for large $k$ what counts are the questions that
# are never solved, and a method that gives none of them a confidence near zero promises too much.
#
# ## What the paper reports

# %% label="passk-reported" paper=["table-3", "table-8"] evidence=["reported"] reads=["passk_math500", "passk_aime25"]
tables.show(
    tables.reported_passk(study.model.name),
    "As printed in the paper (lower is better).",
)

# %% [markdown]
# ## Summary
#
# - pass@k needs the expected accuracy of every question, not its mean: this is what capability calibration estimates.
# - Oracle RC, one sample's correctness, predicts the same success for all $k$ and gets worse as $k$ grows.
# - Score an oracle on samples that it has not seen.
#
# ## Exercises
#
# 1. Why is the error at $k = 1$ the capability Brier score? Check it against the main table.
# 2. Which part of a confidence's distribution decides pass@64? Change one confidence from 0.01 to 0 and see.
# 3. Fit a Beta distribution to the confidences of a method. Does its curve do better than the confidences themselves?
