# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What each correction changes
#
# How much does each of our corrections change a score? The scores on [the page of experiments](12_try_it.ipynb), and on all
# others, differ from the paper's by four corrections and by the grader: rules instead of a judge.

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has most data sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
k_c: int = 10  # samples that vote

# %%
from capcal_lib.book.page import EndOfPage, finding, open_page, show_runs

page = open_page(model, store, k_eval=k_eval)
show_runs(page)

# %% [markdown]
# `shifts_by_correction` takes back one correction at a time. Its switches are four corrections, the grader, and the four together:
#
# - *plug-in scores* keep the noise of $\hat\mu$. Every score rises but Oracle RC's, which is the correctness variance: plug-in
#   makes that too small.
# - *missing as 0.5* fills in one half if a method was asked and gave no confidence.
# - *votes in the pool* lets the samples that voted judge the vote too.
# - *paper's probes* trains probes with the paper's recipe.
# - *a judge's verdicts* replace the verdicts of the rules, and bring [errors of the judge](15_grading.ipynb) with them. They have
#   a row only if a judge has graded every answer to a data set.
# - *all together* is the paper's protocol without the judge. Only the first `k_c` samples of a question vote then, instead of
#   many random choices.
#
# A positive *shift* makes a score worse.

# %%
from dataclasses import replace

from capcal_lib.studies import protocol as study

shifts = study.shifts_by_correction(replace(page.counting, k_c=k_c))
alone = shifts[shifts["alone"]]
if alone.empty:
    raise EndOfPage(
        "No correction changes a score here, because all answers are correct or all are incorrect."
    )

# %%
largest = alone.groupby("switch", observed=True)["size"].mean().idxmax()
moved = alone[alone["switch"] == largest]
by = moved.groupby("confidence", observed=True)["size"].mean().items()

# %% tags=["finding"]
finding(
    "{undoing} moves scores on average by {by}. No other correction moves a single score by more than {rest:.3f}.",
    undoing=study.UNDOING[largest],
    by=" and by ".join(f"{size:.3f} for {kind}" for kind, size in by),
    rest=max(alone["size"].drop(moved.index), default=0),
)

# %%
import seaborn as sns

marks = {"kind": "strip", "jitter": False, "alpha": 0.6, "color": "black"}
size = {"height": 3.2, "aspect": 2.25 / shifts["confidence"].nunique()}
cells = {"x": "shift", "y": "switch", "col": "confidence"}

# %% tags=["picture"] label="fig-protocol" mystnb={"image": {"alt": "A panel for each group of confidences, all with one scale. Rows are switches. A dot shows the shift of the score of a method on a data set, beside a line at zero."}}
grid = sns.catplot(shifts, **cells, **marks, **size)
grid.refline(x=0, color="gray").set_titles("{col_name}")
_ = grid.set_axis_labels("shift of the score", "")

# %% [markdown]
# Each mark shows how much worse (right of zero) or better the score of a method on a data set becomes if one correction, or all
# of them, is taken back.

# %%
from capcal_lib.book.tables import show

by_group = shifts.groupby(["switch", "confidence"], observed=True)
parts = {"cells": "size", "mean": "mean", "lowest": "min", "highest": "max"}
table = by_group["shift"].agg(**parts)

# %% label="protocol-shifts"
table["mean size"] = by_group["size"].mean()
caption = "Shift of the score with each switch, over data sets and methods. The mean keeps the sign of each shift; the mean size ignores it. Cells count the scores that shift at all."
show(table, caption, evidence=page.evidence)

# %% [markdown]
# Read the rows of probes on their own data set first, because probes are meant for such data.
#
# To score under the paper's protocol, run a page with `-p protocol paper`. For a judge's verdicts, use `-p verdicts
# judge:MODEL`.

# %% [markdown]
# ## Where this differs from the authors' code
#
# The table lists choices that the paper leaves open, as made in the authors' public code (commit 9088a5a) and here. Arrows show
# which way our choice moves a number; lower scores are better. We expect these moves, and have measured those that are marked
# *measured*.
#
# | what | the authors' code | here | moves |
# |---|---|---|---|
# | Score | plug-in, 100 samples | corrected, with an interval | ↓ by the mean of $\hat\mu(1-\hat\mu)/99$; measured above |
# | Missing confidence | 0.5 | left out; their number is shown | either way; measured above |
# | Response consistency | ten votes, which share samples with $\hat\mu$; equal strings vote together | the mean over a hundred splits, judged by the other samples; answers graded as equal vote together | either way; measured above |
# | Vote without an answer | one more group, which can win | agrees with nobody; 0.5 if no vote is an answer | either way |
# | Linear probe | gradient descent, grid of rates | *tuned*: the optimum, with decay from cross-validation | either way; measured above |
# | Training of a probe | 100 labels a question (in the branch `rebuttal` of their code); all of MATH; the best run is chosen on MATH valid or on evaluation questions (TriviaQA, GSM8K) | 10 labels; with `--recipe lean` one, or four for 500 of the questions; four fifths of MATH in each of five splits; the best run is chosen on a fifth of the training questions | score ↑ |
# | Hidden state | prompt with Qwen's thinking left on; pooled in bfloat16 | the prompt that is sampled; pooled in float32 | – |
# | Verbalized confidence | 5,000 tokens; only digits and dots in a box are read; after three attempts 0.5 | as long as an answer; also per cent, fractions, ranges and running text; after three attempts missing | fewer missing with gpt-oss |
# | P(True) | two spellings a word; reasoning cut at 5,000 tokens | six spellings; missing if the reasoning reaches no answer | – |
# | Oracle CC | scored on its own samples | scored on the other half | ↑; measured for [pass@k](05_pass_at_k.ipynb) |
# | Success of a budget | ten draws that all questions share | its exact expectation | ↓; by several points [at one sample a question](09_statements.ipynb) |
# | Judge | temperature 1.0; SimpleQA's rubric, yes or no; grades every sample; sees the first accepted answer (TriviaQA) | temperature 0; a prompt in our words with five examples and three possible verdicts; grades each distinct answer once; sees up to 20 aliases | accuracy ↑ on TriviaQA |
# | Not graded, or judgement unreadable | incorrect | not scored | accuracy ↑ |
# | Extracted answer | searched in the whole reply; if none is found, the last line (TriviaQA, SimpleQA) or capital letter (MMLU, GPQA) | the last statement after the reasoning; else no answer, which is incorrect | accuracy ↓, at most by the share of samples without one |
# | Questions and prompts | SimpleQA Verified, 1,000 questions; a prompt that the paper does not print | `simpleqa-verified` is the same, but recorded runs use all of SimpleQA; a prompt in our words | – |
#

# %% [markdown]
# ## Summary
#
# Every correction can be taken back. If no confidence is missing, plug-in scores add the same noise to every confidence that all
# samples judge. So they cannot change the order of these confidences. Taking back the other corrections can.
#
# That the two scores rank confidences alike rests on theorem 2. [The next page](14_theorems.ipynb) asks whether it holds on
# counts.
#
# ## Exercises
#
# **1 (easy).** A question has $\hat\mu = 0.5$ from 100 samples. How much does *plug-in* add to the score of any confidence?
# *Hint:* $\hat\mu(1-\hat\mu)/(n-1)$.

# %% tags=["hide-cell", "solution"]
# At one half and a hundred samples: the plug-in score minus the corrected score
import pandas as pd
from capcal_lib.metrics import capability_brier

plug_in_score = capability_brier([0.7], [50], [100])
corrected_score = capability_brier([0.7], [50], [100], corrected=True)
added = {"added": plug_in_score - corrected_score, "formula": 0.5 * 0.5 / 99}
pd.Series(added).round(5)

# %% [markdown]
# **2 (medium).** When does filling in 0.5 for a missing confidence improve a score? *Hint:* compare $(0.5 - \mu)^2$ with the
# mean score of the other questions.

# %% tags=["hide-cell", "solution"]
# The score of a filled-in one half, beside the mean score of the others
mu, others = 0.6, 0.05
pd.Series({"filled in": (0.5 - mu) ** 2, "others": others}).round(2)

# %% [markdown]
# **3 (medium).** Which switches move some scores up and others down, Oracle RC aside? What does this mean for a table of scores
# without the correction? *Hint:* can two methods change places?

# %% tags=["hide-cell", "solution"]
# With these switches the order may change, because a score that rises can pass one that falls
confidences = shifts[shifts["method"] != "Oracle RC"]
ends = confidences.groupby("switch", observed=True)["shift"]
ends.agg(["min", "max"])
