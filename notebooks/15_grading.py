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
# How good is the grader: how often is it wrong? [The previous page](14_theorems.ipynb) took every verdict as right.

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has the built-in sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat

# %% [markdown]
# ## How often the rules were wrong
#
# This book grades by rules, which the page “Grading” explains. To find their errors, a language model, not a person, labelled
# answers of small models as right or wrong. It read answers on which the rules and an independent grader disagreed, and a
# sample of the others. Each label has the weight of the samples that it stands for.

# %%
from capcal_lib.book.page import finding, open_page, show_runs
from capcal_lib.book.tables import show
from capcal_lib.grading.labels import load_labels

page = open_page(model, store, k_eval=k_eval)
labels = load_labels()
read = labels.groupby("dataset")["correct"].agg(labelled="count", read="size")
caption = "Labels by data set; “labelled” leaves out “cannot tell”."
show(read, caption, evidence="measured")

# %% [markdown]
# The *sensitivity* of a grader is the share of right answers that it calls correct. Its *specificity* is the share of wrong
# answers that it does not pass.

# %%
from capcal_lib.grading.labels import error_rates

rates = 100 * error_rates(labels)

# %% tags=["finding"]
from capcal_lib.book import tables
from capcal_lib.text import in_words

right, wrong = rates.index.unique("answers")
of_right = rates.xs(right, level="answers")
sensitivity = of_right["estimate"]
worst, sets = sensitivity.idxmin(), in_words(len(sensitivity))
text = "The rules miss right answers: on {where} they call about {estimate:.0f} % of them correct ({low:.0f} to {high:.0f} %), the lowest estimate of {sets} data sets."
where = tables.title_of(worst)
finding(text, where=where, sets=sets, **of_right.loc[worst])

# %%
import numpy as np

names = [tables.title_of(name) for name in rates.index.unique("dataset")]
places = -np.arange(len(names))  # downwards, as in the table
ends = rates[["low", "high"]].sub(rates["estimate"], axis="index").abs()

# %% tags=["picture"] label="fig-errors" mystnb={"image": {"alt": "Dot plot with a row for each data set and two marks in each, with intervals: the share of right answers called correct, and of wrong answers called not correct."}}
import matplotlib.pyplot as plt

marks = {right: ("o", "#0f766e"), wrong: ("s", "#bc3e0b")}
for place, (name, (mark, color)) in enumerate(marks.items()):
    x, reach = (part.xs(name, level="answers") for part in (rates, ends))
    y = places - 0.25 * place
    plt.errorbar(x["estimate"], y, None, reach.T, mark, color=color, label=name)
plt.yticks(places, names)
_ = plt.gca().set(xlabel="per cent of the answers")
_ = plt.legend(loc="lower center", bbox_to_anchor=(0.4, 1), ncols=2)

# %% [markdown]
# How often this book's rules are right, in per cent, with 95 % intervals. The intervals are wide for hard data sets, because
# these have few right answers.

# %% label="grading-rates"
spelt = tables.intervals(rates, "estimate", digits=1).unstack("answers")
caption = (
    "How often this book's rules are right, in per cent, with 95 % intervals."
)
show(spelt[[right, wrong]], caption, evidence="measured")

# %% [markdown]
# On most data sets nearly all errors are misses. If a model is seldom right, a few wrong answers that pass can outweigh them: look
# at the last table. Some right answers are in words that no rule expects, and the accepted answers of TriviaQA lack some right
# ones. Data sets outside the table have not been checked.
#
# Suppose that a model always solves every question and its confidence is 1. Its capability Brier score should be 0. But suppose
# the grader misses as many right answers as on TriviaQA. The score then depends on whether the misses are spread
# evenly over questions or fall on a few of them:

# %%
import pandas as pd

missed = 1 - sensitivity["triviaqa"] / 100
scores = [missed**2, missed]
pd.Series(scores, ["spread evenly", "on a few questions"]).round(4)

# %% [markdown]
# ## Four verdicts
#
# Incorrect samples and samples without an answer both count as wrong. We keep them apart, because many samples without an
# answer call for a better prompt. Samples that are not scored do not count.

# %%
show_runs(page)

# %%
from capcal_lib.grading.verdicts import read_verdicts

runs = page.runs["run"]
verdicts = pd.concat([*runs.map(read_verdicts)], keys=runs.index)
verdicts = verdicts.query("sample_index < @k_eval")["verdict"]
by_set = verdicts.groupby(level="dataset", sort=False)
counts = by_set.value_counts(normalize=True).unstack(fill_value=0.0)

# %% label="grading-verdicts"
names = ["correct", "incorrect", "no_answer", "not_scored"]
shares = counts.reindex(columns=names, fill_value=0.0)
caption = "Share of the samples with each verdict, under this book's rules."
show(shares, caption, evidence=page.evidence)

# %% [markdown]
# ## From labels to an accuracy
#
# With sensitivity $\mathrm{Se}$ and specificity $\mathrm{Sp}$, a model of accuracy $\mu$ has the mean verdict $m =
# \mathrm{Se}\,\mu + (1-\mathrm{Sp})(1-\mu)$. Solved for $\mu$, this is the estimator of Rogan and Gladen (1978). It removes the
# measured error of the rules:

# %%
from capcal_lib.results.results import results_of

results = results_of(page.counting)
mu_hat = results["correct"] / results["total"]
by_rules = mu_hat.groupby(level="dataset", sort=False).mean()

# %%
shares = rates["estimate"].unstack("answers") / 100
se, sp = shares[right], shares[wrong]
corrected = ((by_rules + sp - 1) / (se + sp - 1)).clip(0, 1).dropna()

# %% label="grading-corrected"
pair = {"by our rules": by_rules[corrected.index], "corrected": corrected}
caption = "Mean expected accuracy under our rules, and corrected for their measured error."
show(pd.DataFrame(pair), caption, evidence=page.evidence)

# %% [markdown]
# The correction assumes that the error is alike on all questions and that the labels are right. The labels are of answers by
# small models, and other answers may be harder or easier to grade. A corrected accuracy is less certain than the uncorrected
# one.
#
# ## Summary
#
# - Rules mostly err by missing right answers, unless a model is seldom right. Keep the answers, so that you can grade them again.
# - With labels you can remove the error of the rules or of a judge from an accuracy.
#
# [The next page](16_printed.ipynb) lists what the paper prints.
#
# ## Exercises
#
# **1 (easy).** A grader with $\mathrm{Se} = 0.9$ and $\mathrm{Sp} = 0.95$ calls 40 % of the answers correct. What is the
# accuracy? *Hint:* the grader calls a share $0.9\mu + 0.05(1-\mu)$ correct.

# %% tags=["hide-cell", "solution"]
# The mean verdict, solved for the accuracy
round((0.4 + 0.95 - 1) / (0.9 + 0.95 - 1), 3)

# %% [markdown]
# **2 (medium).** Two graders have the same sensitivity, but one misses every answer to a few questions and the other misses some
# answers to each. Which of them spoils a capability Brier score more? *Hint:* the two numbers for TriviaQA above.

# %% tags=["hide-cell", "solution"]
# The one that misses all answers to a few questions: a missed share m adds m there, and m squared if spread evenly
pd.Series({"spread evenly": 0.05**2, "on a few questions": 0.05})
