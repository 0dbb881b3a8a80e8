# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Two targets: one response, or the model's capability
#
# Reproduces section 3 of the paper, its figure 2 and appendix E, and checks theorem 2 on data.
#
# - **You will learn** why the correctness of one sample and the expected accuracy of the model are different
#   targets, and by exactly how much their Brier scores differ.
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
# ## What is behind this page
#
# Each question was answered `k_eval` times. Its expected accuracy $\mu$ is estimated by
# $\hat\mu = c / k_\text{eval}$, the share of correct answers.

# %%
tables.show(
    tables.overview(study.evaluations, study.rng),
    "Questions, samples and expected accuracy.",
)

# %% [markdown]
# A question is interesting when $\hat\mu$ is neither 0 nor 1: then one sample cannot tell what the model can do.

# %% mystnb={"figure": {"caption": "Expected accuracy over the questions of each data set.", "name": "fig-expected-accuracy"}} paper=["equation-4"] evidence=["measured"] reads=["verdicts"]
figures.histograms(study.evaluations)

# %% [markdown]
# ## One sample against many
#
# Response calibration takes the correctness $C$ of one sample as its target; capability calibration takes $\mu$.
# Below, one sample is drawn for each question. Were the targets the same, all points would lie in two corners.

# %% mystnb={"figure": {"caption": "The response target of one drawn sample against the capability target, a point a question, with sideways jitter.", "name": "fig-targets"}} paper=["figure-2", "figure-11", "appendix-e", "section-3.2"] evidence=["measured"] reads=["verdicts"]
figures.targets(study.evaluations, study.rng)

# %% [markdown]
# The distance between the targets needs no draw: a sample of a question with expected accuracy $\mu$ lies
# $2\mu(1-\mu)$ from it on average.

# %% label="targets-distance" paper=["figure-11", "appendix-e", "section-4.1"] evidence=["measured"] reads=["verdicts"]
divergence = tables.targets(study.evaluations)
tables.show(divergence, "How far the two targets lie apart.")

# %%
notebook.glue(
    distance=divergence["mean |C − mu|"].mean(),
    between=divergence["0.1 < mu < 0.9"].mean(),
)

# %% [markdown]
# Averaged over the data sets, one sample's correctness lies {glue:text}`distance:.3f` from $\hat\mu$, and a share of
# {glue:text}`between:.2f` of the questions has $\hat\mu$ strictly between 0.1 and 0.9.
#
# ## Every model on every data set
#
# The same for all models with samples, and for the paper's models, whose samples were not published: their panels are
# simulated from Beta distributions with the two reported moments of $\mu$. In each panel stand the mean distance
# $|C - \hat\mu|$ and the share of the questions with $\hat\mu$ strictly between 0.1 and 0.9.

# %%
groups = [each.evaluations for each in study.everyone()]

# %% mystnb={"figure": {"caption": "The response target against the capability target, a row of panels a model; with the mean distance of the two and the share of questions in between.", "name": "fig-divergence-grid"}} paper=["figure-11", "appendix-e"] evidence=["measured", "simulated"] reads=["verdicts", "main", "mean_accuracy"]
figures.divergence(groups, study.rng)

# %% label="targets-everywhere" paper=["figure-11", "appendix-e"] evidence=["measured", "simulated"] reads=["verdicts", "main", "mean_accuracy"]
everywhere = tables.divergence_table(groups)
tables.show(everywhere, "How far the two targets lie apart, everywhere.")

# %%
notebook.glue(
    nearest=everywhere["mean |C − mu|"].min(),
    farthest=everywhere["mean |C − mu|"].max(),
)

# %% [markdown]
# The mean distance runs from {glue:text}`nearest:.2f` to {glue:text}`farthest:.2f`. It is small only where nearly every
# question is nearly always right, or nearly never.
#
# ## Theorem 2 on data
#
# For any confidences, the capability Brier score is the expected response Brier score less the variance of
# correctness. On counts this is an identity, so the last column may hold nothing but rounding.
# [The theorems, on data](20_theorems.ipynb) goes on from here: to theorem 1, and to other scores.

# %%
checks = [
    tables.theorem_2(one).assign(evidence=one.evidence)
    for one in study.evaluations
    if one.confidences
]

# %% label="targets-theorem-2" paper=["theorem-2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
tables.show(
    tables.stack(checks[:1]),
    "Both sides of theorem 2 on the largest data set.",
    gap="{:.1e}",
)

# %%
worst = max(
    (float(check["gap"].abs().max()) for check in checks), default=float("nan")
)
notebook.glue(worst=worst)

# %% [markdown]
# Over all data sets and methods the largest gap is {glue:text}`worst:.1e`.
#
# ## Summary
#
# - One sample's correctness is a noisy stand-in for what a model can do, and the noise is the correctness variance.
# - A method that is perfect by the capability target still scores that variance by the response target.
# - The variance is a property of the model and the question; no estimator can remove it.
#
# ## Exercises
#
# 1. Run this page for `gpt-oss-20b`. Which numbers change their mark from measured to simulated, and why?
# 2. Show that the mean of $2\mu(1-\mu)$ is twice the correctness variance. At which $\mu$ is it largest?
# 3. Lower `k_eval` to 10. Which columns of the tables move, and which identity still holds?
