# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The grader is an instrument
#
# The paper takes the correctness function for granted. It is a program or a model that reads answers, and every
# $\hat\mu$ in this book is only as good as it. This page keeps the samples and changes the grader.
#
# - **You will learn** how far accuracy moves with the grading rule, what to ask of a model that judges, and how a few
#   hand labels turn a grader's error into part of the error bar.
# - **You need** nothing but this repository: no GPU, no network. It takes a minute.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %%
from capcal_lib import manifests as paths
from capcal_lib.book import figures, notebook
from capcal_lib.results import strictness, tables

study = notebook.open_study(globals())
study

# %% [markdown]
# ## Four verdicts
#
# A sample is correct, incorrect, without an answer, or not scored. The middle two count as wrong, and are told apart:
# many samples without an answer ask for a better prompt or a better extraction. What is not scored counts as nothing.

# %%
shares = strictness.verdict_shares(study.evaluations)
tables.show(shares, "Verdicts by this book's rules.", digits=3)

# %% mystnb={"figure": {"caption": "What became of the samples of each data set.", "name": "fig-verdict-shares"}}
figures.verdict_shares(shares)

# %% [markdown]
# ## The same answers, other rules
#
# Here are three rules that are easy to write. *Identical text* asks the extracted answer to equal an accepted one,
# letter by letter. *One contains the other* is what many evaluation scripts do after lower-casing. *Mentioned anywhere*
# looks for an accepted answer in the whole response and extracts nothing. Only data sets whose right answers are on this
# machine have a row.

# %%
runs = paths.ROOT / store
by_rule = strictness.accuracy_by_rule(
    runs, study.evaluations, study.rng, k_eval=k_eval
)
tables.show(
    by_rule,
    "Mean expected accuracy of the same samples under four rules.",
    digits=3,
)

# %% mystnb={"figure": {"caption": "How far each rule moves mean expected accuracy from this book's rules, with 95 % paired bootstrap intervals over questions.", "name": "fig-strictness"}}
figures.strictness(by_rule)

# %%
moves = by_rule["difference"].abs().max() if len(by_rule) else float("nan")
notebook.glue(largest_move=100 * moves)

# %% [markdown]
# The largest move is {glue:text}`largest_move:.0f` points, with not one sample drawn anew. A rule that is too strict
# misses right answers in another form; one that is too lenient finds 4 in 14, and A in any sentence that has one.
# No interval over questions or samples shows this error: it is the same in every resample.
#
# ## A model as the judge
#
# A judge reads meaning where rules read form, and makes errors of its own. Here it sees the question, the right answers
# and the extracted answer, at temperature 0, and each distinct answer is judged once. Its verdicts are kept beside those
# of the rules and never mixed with them. Whether a judge is valid is an empirical question: agreement with the rules is
# where to begin. Cohen's $\kappa$ takes off the agreement that chance alone would give {cite:p}`cohen1960coefficient`; a
# judge that says the same of every answer has $\kappa = 0$, however often it agrees.

# %%
judged = strictness.judge_table(runs, study.evaluations, study.rng)
tables.show(
    judged,
    "Judges against the rules.",
    digits=3,
    empty="no model has judged these samples yet: capcal judge",
)

# %%
kappa = judged["kappa"].max() if len(judged) else float("nan")
notebook.glue(best_kappa=float(kappa))

# %% [markdown]
# The best $\kappa$ of the table is {glue:text}`best_kappa:.2f`. Judging goes from the answer given most often to the
# rarest, and *compared* says how far it has come. A model that can answer the questions need not be able to judge
# answers: look at what a judge says of answers that are letter by letter the right one before you use it.
#
# Two graders that agree can both be wrong. Only a person settles that, and a person settles few.
#
# ## From labels to an error bar
#
# Suppose that a person labels some answers, and that the grader calls a share $\mathrm{Se}$ of the right ones correct
# and a share $\mathrm{Sp}$ of the wrong ones not correct. If a model's accuracy is $\mu$, the grader's mean verdict is
# $m = \mathrm{Se}\,\mu + (1 - \mathrm{Sp})(1 - \mu)$. Solved for $\mu$ {cite:p}`rogan1978estimating`,
#
# $$
# \mu = \frac{m + \mathrm{Sp} - 1}{\mathrm{Se} + \mathrm{Sp} - 1}.
# $$ (eq-rogan-gladen)
#
# [Another page](../theory/grader_error.md) says how the uncertainty of $\mathrm{Se}$, $\mathrm{Sp}$ and $m$ becomes one
# interval. What would it take here? Suppose a grader with $\mathrm{Se} = 0.98$ and $\mathrm{Sp} = 0.99$.

# %%
chosen = [one for one in study.evaluations if one.sampled][:1]
supposed = {"sensitivity": 0.98, "specificity": 0.99}
sizes = [50, 100, 200, 500]
by_labels = tables.stack(
    [
        strictness.labels_table(one, sizes, study.rng, **supposed)
        for one in chosen
    ]
)

# %%
tables.show(
    by_labels,
    "Error bars with so many labelled right and wrong answers (labels supposed).",
    digits=3,
)

# %%
wider = (
    by_labels["one question"].iloc[1] / by_labels["one question"].iloc[0]
    if len(by_labels)
    else 1.0
)
notebook.glue(wider=float(wider))

# %% [markdown]
# With the fewest labels of the table, the interval of a single question's $\mu$ is {glue:text}`wider:.2f` times as wide
# as the one that takes the grader at its word. That is the honest width for what is known of the grader.
#
# ## Summary
#
# - The same samples give other accuracies under other rules. Say which rule, and keep the answers so that it can change.
# - No answer, not scored and incorrect are three things.
# - A judge is a measuring instrument too: fix its prompt and temperature, keep its words, and measure its agreement.
# - Labels by a person turn the grader's error from a footnote into a part of the interval.
#
# ## Exercises
#
# 1. Which rule is the most lenient on multiple choice, and why does it look better there than it is?
# 2. Write your own judge prompt. Does $\kappa$ by distinct answers or by samples change more? Which one matters for $\mu$?
# 3. At which sensitivity would {eq}`eq-rogan-gladen` move your model's accuracy by as much as its bootstrap interval is wide?
