# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Five ways to ask a model how sure it is
#
# Describes the methods of section 4.2 and appendix C of the paper and shows what each says about every question.
#
# - **You will learn** what each method asks, what it costs, and where it fails in silence if one lets it.
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
# ## The methods
#
# | method | what is asked | cost | needs |
# | --- | --- | --- | --- |
# | Uniform random | nothing: a uniform draw, scored by its exact expectation | none | nothing |
# | Verbalized confidence | "how likely are you to answer correctly?", a number in words | an answer | text |
# | P(True) | "can you answer this?", the probability of *Yes* against *No* | one token | log-probabilities |
# | Response consistency | the share of $k_c$ samples that agree with the majority | $k_c$ answers | text |
# | Probe | a linear read-out of the hidden state at the end of the prompt | less than a token | weights |
#
# All are about the *question*, before an answer is written. Two oracles bound them: Oracle RC knows whether one
# sample is correct, Oracle CC knows $\hat\mu$.
#
# Response consistency votes with samples that do not define $\hat\mu$. Sharing them, as the reference
# implementation does, ties the confidence to its own target.

# %% label="estimator-costs" paper=["section-4.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
costs = tables.costs(study.evaluations)
tables.show(
    costs,
    "Mean tokens an estimate costs; questions without one.",
    digits=1,
    **{"missing rate": "{:.1%}"},
)

# %% [markdown]
# ## What the model is asked
#
# These are the paper's two questions, about a sum. Small models are asked in fewer words, with examples.

# %% label="estimator-prompts" paper=["figure-7", "figure-8", "appendix-c.2"] evidence=["reported"]
from capcal_lib.questions import Answer, Question
from capcal_lib.questions.prompts import p_true_messages, verbalized_messages

asked = Question("sum", "What is 6 × 7?", Answer("number", "42"))
print(verbalized_messages(asked, "paper")[-1]["content"])
print("\n-----\n")
print(p_true_messages(asked, "paper")[-1]["content"])

# %% [markdown]
# ## Missing is missing
#
# A model may fail to state a probability. Such a question has no confidence. It is counted as *missing* and left out,
# and the tables show the score once more with 0.5 filled in, which is what the reference implementation does silently.

# %%
missing = int(costs["missing"].sum()) if len(costs) else 0
asked = int(costs["questions"].sum()) if len(costs) else 0
notebook.glue(missing=missing, asked=asked)

# %% [markdown]
# On this page {glue:text}`missing` of {glue:text}`asked` estimates are missing.
#
# ## Question by question
#
# A good method's points lie along the diagonal. A method that says nearly the same of every question makes a vertical
# line: calibrated at best on average, and useless for telling questions apart.

# %% mystnb={"figure": {"caption": "Confidence against expected accuracy, a point a question. In the grey band lie 95 % of the points of a perfect estimator.", "name": "fig-confidences"}} paper=["section-4.2", "appendix-c"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
figures.confidences(study.evaluations[0]) if study.evaluations else study

# %% label="estimator-ranks" paper=["section-4.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
ranks = tables.ranks(study.evaluations)
tables.show(
    ranks, "Spearman correlation with expected accuracy (higher is better)."
)

# %% [markdown]
# ## What the paper reports
#
# The paper gives no confidences of single questions, only their scores.

# %% label="estimators-reported" paper=["table-2"] evidence=["reported"] reads=["main"]
printed = study.model.name if study.reported else "gpt-oss-20b"
tables.show(
    tables.reported_wide(printed),
    f"As printed in the paper of {printed} (lower is better).",
)

# %% [markdown]
# How it sampled from its three models, and the settings of their probes:

# %% label="estimator-settings" paper=["appendix-b.2", "table-5", "appendix-c.2"] evidence=["reported"] reads=["sampling", "hyperparameters"]
settings = tables.reported_settings()
numbers = dict.fromkeys(settings.columns[1:-1], "{:g}")
tables.show(settings, "Settings, as printed in the paper.", **numbers)

# %% [markdown]
# What a response and a confidence cost in tokens, read off the paper's cost figures to about 6 %:

# %% label="estimator-tokens" paper=["figure-3", "figure-4"] evidence=["reported"] reads=["tokens"]
tables.show(tables.reported_tokens(), "Mean tokens.", digits=0)

# %% [markdown]
# ## Summary
#
# - The methods differ in cost by four orders of magnitude: the probe reads a prompt, consistency writes $k_c$ answers.
# - What a method cannot say must be counted, not filled in.
# - Telling questions apart (rank) and being right on average (calibration) are different virtues.
#
# ## Exercises
#
# 1. Which probe ranks the questions of a data set best: the one trained on the same data set? Why might it not?
# 2. Find a method whose points lie on the wrong side of the diagonal throughout. What one-number repair suggests itself?
# 3. What would Response consistency give on a question that the model always answers with the same wrong answer?
