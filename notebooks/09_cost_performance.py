# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What a confidence costs
#
# Reproduces the cost-performance figures of the paper: tokens against 1 - Brier, for every method, data set and model.
#
# - **You will learn** which methods are worth their tokens, and how to read a Pareto front whose points have intervals.
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
# ## One model, data set by data set
#
# The cost of an estimate is the completion tokens that it takes. A probe reads the hidden states of a prompt that has
# to be read anyway and writes nothing; P(True) writes one token, unless the model reasons first; a verbalized
# confidence is an answer of its own; response consistency writes ten. Measured scores are corrected and have 95 %
# intervals; reported ones are plug-in, and their tokens were read off the paper's figure to about 6 %.

# %%
scores = (
    tables.cost_table(study.evaluations, study.rng)
    if any(one.sampled for one in study.evaluations)
    else tables.reported_cost_table(study.model.name)
)

# %% mystnb={"figure": {"caption": "Score against cost on each data set; up and to the left is better. The line is the Pareto front, dashed is Uniform random, grey is where a perfect estimator would lie. Filled: from samples, corrected; hollow: reported, plug-in.", "name": "fig-cost"}} paper=["figure-3", "figure-4", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
figures.costs(scores)

# %% [markdown]
# A point on the front is beaten by none that is as cheap. An interval that reaches below the front says that the data
# cannot tell: the [main table](04_main_table/smollm2-135m.ipynb) has the paired tests.

# %% label="cost-front" paper=["figure-3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
best = scores[tables.pareto_front(scores)] if len(scores) else scores
tables.show(
    best.reindex(columns=["data set", "method", "tokens", "brier", "evidence"]),
    "The Pareto front of each data set.",
    tokens="{:,.0f}",
)

# %% [markdown]
# ## All models
#
# The mean over the data sets of each model, for the methods that have a score on all of them. A model with samples is
# shown from them, a model of the paper also as reported. The data sets differ between the panels, so compare methods
# within a panel and not the panels.

# %%
studies = study.everyone()
sampled = [
    each for each in studies if any(one.sampled for one in each.evaluations)
]
found = [tables.cost_table(each.evaluations, study.rng) for each in sampled]
found += [
    tables.reported_cost_table(each.model.name)
    for each in studies
    if each.reported
]

# %% mystnb={"figure": {"caption": "Mean score against mean cost, a panel a model. Marks and lines as above.", "name": "fig-cost-models"}} paper=["figure-4", "section-4.3.2"] evidence=["measured", "reported", "simulated"] reads=["verdicts", "samples", "confidences", "features", "main", "consistency", "tokens"]
summary = tables.cost_summary(tables.stack(found))
figures.costs(summary)

# %% label="cost-means" paper=["figure-4"] evidence=["measured", "simulated", "reported"] reads=["verdicts", "confidences", "features", "main", "consistency", "tokens"]
tables.show(
    summary[
        ["model", "method", "tokens", "brier", "data set", "evidence"]
    ].rename(columns={"data set": "over"}),
    "Means over the data sets of each model (lower is better).",
    tokens="{:,.1f}",
)

# %%
on_front = (
    summary[tables.pareto_front(summary)].groupby("model")["method"].apply(set)
)
free = [any(name.startswith("Probe") for name in each) for each in on_front]
votes = ["Response consistency" in each for each in on_front]
notebook.glue(panels=len(on_front), probes=sum(free), consistency=sum(votes))

# %% [markdown]
# Of {glue:text}`panels` models, a probe stands on the front of {glue:text}`probes`, where nothing is cheaper, and response
# consistency on that of {glue:text}`consistency`: the most expensive method may also score best, which the paper's
# figures show as well. What decides is whether an estimate may cost more than the answer that it is about.
#
# ## Summary
#
# - Cost spans five orders of magnitude, score less than one: on a logarithmic axis most fronts are flat.
# - A probe is free at the point of use, but not before: its training set had to be sampled and graded.
# - Whether a method may cost more than an answer depends on the use, not on the figure.
#
# ## Exercises
#
# 1. Add the cost of the probes' training samples, spread over the test questions. Which fronts change?
# 2. Which points would leave the front if a difference had to be outside its paired interval?
# 3. How many votes could response consistency afford at the price of a verbalized confidence?
