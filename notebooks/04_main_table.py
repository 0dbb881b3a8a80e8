# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Main table
#
# Reproduces table 2 of the paper: the capability Brier score of every method on every data set.
#
# - **You will learn** which methods match expected accuracy, and which differences the data can support.
# - **You need** nothing but this repository: no GPU, no network. It takes seconds. For your own model:
#   `papermill notebooks/04_main_table.ipynb out.ipynb -p model NAME`.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %%
from capcal_lib import figures, notebook, tables

study = notebook.open_study(globals())
study

# %% [markdown]
# ## What is behind this page

# %% label="main-overview" paper=["table-4", "appendix-b.3", "section-4.3", "section-4.3.1"] evidence=["measured"] reads=["verdicts"]
tables.show(
    tables.overview(study.evaluations, study.rng),
    "Questions, samples and expected accuracy.",
)

# %% [markdown]
# ## Scores
#
# Each cell is the corrected capability Brier score, lower is better, with its 95 % bootstrap interval over questions.
# **Bold** marks the lowest score and every method that cannot be told from it on the same questions. The oracles know
# the answers and do not compete. A probe's cell is tinted by how far its training questions are from the column:
# [in-domain in-distribution]{.in-domain-in-distribution}, [in-domain out-of-distribution]{.in-domain-out-of-distribution}
# or [out-of-domain]{.out-of-domain}.

# %% label="main-scores" paper=["table-2", "section-4.3.2", "equation-7", "equation-11"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
scores = tables.main_table(study.evaluations, study.rng)
tables.show_main(scores, "Corrected capability Brier score.")

# %%
figures.scores(scores)

# %% [markdown]
# A confidence that a method failed to give is missing: it is counted, and left out of the score.

# %%
missing = scores["missing"].sum() if len(scores) else 0
notebook.glue(missing=int(missing))

# %% [markdown]
# On this page {glue:text}`missing` confidences are missing. The paper scores by the plug-in form, and its code fills
# what is missing with 0.5. By that rule:

# %% label="main-plug-in" paper=["table-2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
filled = tables.main_table(study.evaluations, study.rng, fallback=0.5)
tables.show_main(tables.plug_in(filled), "Plug-in score, missing as 0.5.")

# %% [markdown]
# ## What the paper reports
#
# These are the paper's printed numbers: plug-in scores without intervals, on the paper's own samples, which were not
# published. Bold marks the lowest as printed; no interval supports it.

# %% label="main-reported" paper=["table-2"] evidence=["reported"] reads=["main"]
tables.show_main(
    tables.reported_main(study.model.name),
    "As printed in the paper.",
    empty="the paper has no numbers of this model",
)

# %% [markdown]
# ## Summary
#
# - A score without an interval does not rank methods; with paired intervals, several are often tied.
# - Compare with *Uniform random* before comparing methods with each other: some do not beat it.
# - Oracle RC shows what a single graded sample is worth as a confidence.
#
# ## Exercises
#
# 1. Which method would you choose for this model if an estimate may cost at most one token?
# 2. Compare the plug-in and the corrected scores. Why is their difference the same for every method in a column?
# 3. Which probe's training set transfers best to a data set of another domain?
