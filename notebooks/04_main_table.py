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
from capcal_lib.book import figures, notebook
from capcal_lib.results import diagnosis, tables

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
# Each cell is the corrected capability Brier score, lower is better, with its 95 % bootstrap interval over questions
# (over subjects, where a data set comes in subjects).
# **Bold** is the lowest score, if the paired intervals say that every other method is worse on the same questions;
# otherwise all that cannot be told from the lowest are marked *tie*. Next to a sure best, the sure second is underlined.
# The oracles know the answers and do not compete. A probe's cell is tinted by how far its training questions are from
# the column:
# [in-domain in-distribution]{.in-domain-in-distribution}, [in-domain out-of-distribution]{.in-domain-out-of-distribution}
# or [out-of-domain]{.out-of-domain}. A share of missing confidences stands in the cell; the score is over the others.

# %% label="main-scores" paper=["table-2", "section-4.3.2", "equation-7", "equation-11"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
scores = tables.main_table(study.evaluations, study.rng)
tables.show_main(scores, "Corrected capability Brier score.")

# %% mystnb={"figure": {"caption": "Corrected scores with their intervals; green may be the best. Grey: where 95 % of the scores of a perfect estimator would lie.", "name": "fig-scores"}}
figures.scores(scores)

# %% [markdown]
# ## With and without what is missing
#
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
# ## What a score is made of
#
# By the best increasing function of the confidence (isotonic, the CORP split), a score is *miscalibration* less
# *discrimination* plus *uncertainty*. The last is a property of the questions: the variance of $\mu$. A method off on the
# scale can be mended; one that cannot tell questions apart cannot. A perfect estimator has no miscalibration, and
# discriminates all there is; the noise of the samples is what it still misses.

# %%
asked = [one for one in study.evaluations if one.confidences]
made_of = {one.dataset.title: diagnosis.parts(one, study.rng) for one in asked}

# %% mystnb={"figure": {"caption": "Discrimination against miscalibration; up and to the left is better, and along a diagonal the score stays the same. Dotted: all the discrimination there is. Star: a perfect estimator with as many samples, simulated.", "name": "fig-parts"}}
figures.parts(made_of)

# %%
tables.show(
    tables.stack(list(made_of.values())[:1]),
    "What the scores are made of, on the largest data set.",
    missing="{:.1%}",
)

# %% [markdown]
# ## Can it be mended?
#
# Each method is recalibrated by an isotonic map, a logistic one (Platt) and a temperature, learned on four fifths of the
# questions and applied to the rest, in turn: no question is scored by a map that has seen it.

# %%
mended = [diagnosis.recalibrated(one, study.rng) for one in asked]
tables.show(
    tables.stack(mended[:1]),
    "Recalibration on the largest data set (below 0 it helps).",
    empty="no confidences to recalibrate",
    missing="{:.1%}",
)

# %%
sure = [word for table in mended for word in table.get("for sure", [])]
notebook.glue(
    maps=len(sure), lower=sure.count("lower"), higher=sure.count("higher")
)

# %% [markdown]
# Over all data sets, {glue:text}`lower` of {glue:text}`maps` recalibrations lower the score for sure, and
# {glue:text}`higher` raise it for sure.
#
# ## What would settle it
#
# A difference between two methods is noisy because questions differ and because $\hat\mu$ is an estimate. The data tell
# the two apart, and with them how many questions, at how many samples each, would show a difference of the size found
# here with a chance of 80 %.

# %%
tables.show(
    tables.stack([diagnosis.settling(one, study.rng) for one in asked[:1]]),
    "What would settle each comparison with the lowest score, on the largest data set.",
    empty="fewer than two methods to compare",
    **diagnosis.FORMATS,
)

# %% [markdown]
# Where *from samples* is small, more samples of the same questions buy nothing: ask more questions. *inf* says that no
# number of samples of these questions alone is likely to do.
#
# ## What the paper reports
#
# These are the paper's printed numbers: plug-in scores without intervals, on the paper's own samples, which were not
# published. Bold and underlined are the lowest two as printed; no interval supports it.

# %% label="main-reported" paper=["table-2"] evidence=["reported"] reads=["main"]
printed = study.model.name if study.reported else "gpt-oss-20b"
tables.show_main(
    tables.reported_main(printed),
    f"As printed in the paper of {printed}.",
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
