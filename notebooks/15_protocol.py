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
# [Before](14_try_it.ipynb) we looked at scores and played with them. They are not the paper's scores: this book makes them
# differently in five ways. How much does each of these corrections change?

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`; it has most data sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
k_c: int = 10  # samples that vote

# %% tags=["provenance"]
from capcal_lib.book.lesson import open_page

page = open_page(globals())

# %% [markdown]
# A correction is a switch. *Plug-in* scores leave the noise of $\hat\mu$ in; here is how much worse that makes each score, on
# the same recorded samples. Votes are judged by fewer samples, which leave more in; the oracle of one response becomes better, as
# its error is that noise itself, which $\hat\mu$ makes too small:

# %%
from capcal_lib.results import brier_terms

results = page.results()
terms = brier_terms(results)
plug_in = brier_terms(results, protocol="paper").where(terms.notna())
worse = (plug_in - terms).groupby(level="dataset", sort=False).mean()
worse.rename(page.data["title"]).T.round(4)

# %% [markdown]
# `shifts_by_correction` does that for every correction:
#
# - *missing as 0.5* gives a question without a confidence one half, where the method was asked at all;
# - *votes in the pool* scores the same votes, of the same hundred splits of a question's samples, by all samples in place of
#   those that did not vote, so that they share their luck;
# - *paper's probes* are trained by its recipe, and the score is the mean of its five splits;
# - *a judge's verdicts* count in place of those of the rules, where a model has judged every answer to a data set. How far a
#   judge agrees with the rules is on the page of [the grader](17_grading.ipynb); the lower Cohen's $\kappa$ there, the more of
#   that shift is the judge's own error;
# - *all together* is the paper's protocol, but for the judge; there a question's first samples alone vote, which is one split of
#   the hundred.
#
# A probe on its own data set, any other probe, and any other confidence are told apart, as their shifts are unlike.

# %%
from dataclasses import replace

from capcal_lib.book import tables
from capcal_lib.studies import protocol as study

shifts = study.shifts_by_correction(replace(page.counting, k_c=k_c))
tables.titled(shifts.nlargest(3, "size"))

# %% [markdown]
# Of each switch and kind of confidence, the mean says which way scores move, and the mean size how far:

# %%
of_switch = shifts.groupby(["switch", "confidence"], observed=True)
table = of_switch["shift"].agg(["size", "mean", "min", "max"])
names = {"size": "cells", "min": "lowest", "max": "highest"}
table = table.rename(columns=names)
table["mean size"] = of_switch["size"].mean()

# %% tags=["finding"]
alone = shifts[shifts["alone"]]
if alone.empty:
    page.end(
        "No correction moves a score here: every answer is right, or every one wrong."
    )
sizes = alone.groupby("switch", observed=True)["size"].mean()
page.finding(
    "Of our corrections, each taken back alone, *{most}* moves scores most: by {size:.3f} on average.",
    most=sizes.idxmax(),
    size=sizes.max(),
)

# %% tags=["picture"] label="fig-protocol" mystnb={"image": {"alt": "A panel for each kind of confidence, with a row for each switch and a dot for each data set and method, by the shift of its score, with a line at zero."}} paper=["section-4.1", "table-5", "table-6"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
import seaborn as sns
from capcal_lib import plots

panels = {"col": "confidence", "kind": "strip", "sharex": False}
size = {"height": 3.2, "aspect": 2.25 / shifts["confidence"].nunique()}
marks = {"jitter": False, "alpha": 0.6, "color": plots.INK}
grid = sns.catplot(shifts, x="shift", y="switch", **panels, **size, **marks)
grid.refline(x=0, color=plots.MUTED, linestyle="-", zorder=0)
grid.set_titles("{col_name}").set_axis_labels("shift of the score", "")
_ = grid.tight_layout()

# %% [markdown] tags=["caption"]
# How far every score shifts (a mark a data set and method) when one correction is taken back, and when all are; right of zero
# it becomes worse. Each panel has a scale of its own. What is the same for all methods moves no order; what touches one method
# can move it across all others.

# %% label="protocol-shifts" paper=["section-4.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
page.show(
    table,
    "Shift of the score by each switch, over data sets and methods: its mean "
    "with its sign, and the mean of its size.",
)

# %% [markdown]
# A probe is meant for data like its own, so read that row first. The noise that *plug-in* leaves in is the same for every
# confidence that all samples judge, so it changes no order among these; the other switches can.
#
# Pages that score confidences take the paper's protocol at once with `-p protocol paper`, and a judge's verdicts with `-p
# verdicts judge:MODEL`; in Python, `score(results, protocol="paper")`.

# %% [markdown]
# ## A correction that we do not make
#
# The weight decay of a probe draws what it says towards the mean. Could the probe take that back by itself? Cross-validation leaves a
# prediction for each training question that the question did not help to make, so Platt's method can learn from these with no label
# more: `Calibrator("platt").fit(probe.out_of_fold_, correct, total)`. Here is what it makes of a confidence of .1, .5 and .9:

# %%
import pandas as pd
from capcal_lib.probes import out_of_fold_calibrators

calibrators = out_of_fold_calibrators(page.store, model)
confidences = [0.1, 0.5, 0.9]
made = {
    name: calibrator.predict(confidences)
    for name, calibrator in calibrators.items()
}
pd.DataFrame(made, index=confidences).T.round(2)

# %% [markdown]
# Where the order of a row turns round, the probe has learned nothing: left-out questions are predicted by the mean of the others, which
# is the lower the higher they are themselves. `compare_recalibrated_probes` judges each probe after this against itself before, the
# cases of a model together by Holm's method. On which data sets does it help?

# %%
judged = {
    name: study.compare_recalibrated_probes(replace(page.counting, model=name))
    for name in page.comparable_models()
}
judged = pd.concat(judged, names=["model"])
judged["better"] = judged["verdict"] == "better"
judged["worse"] = judged["verdict"] == "worse"
cases = judged.groupby(["model", "shift"])
gains = cases["estimate"].agg(["size", "mean", "min", "max"])
gains = gains.join(cases[["better", "worse"]].sum())

# %% label="protocol-recalibrated-probes" paper=["appendix-c.2"] evidence=["measured"] reads=["verdicts", "features"]
names = {"size": "cases", "min": "lowest", "max": "highest"}
page.show(
    gains.rename(columns=names),
    "Gain of a probe that is recalibrated on its own out-of-fold predictions over itself before (higher is better), by how far the data "
    "set is from its training questions.",
    digits=4,
)

# %% [markdown]
# On its own data set a probe has little to take back, as its decay was chosen for the same score. Elsewhere the calibrator moves what
# the probe says away from the mean or towards it, and does not know whether the probe is too sure there. Labels of the new data set
# would tell; without them we leave probes as they are.

# %% [markdown]
# ## Where this differs from the authors' code
#
# By the authors' public code (commit 9088a5a) where the paper does not say. A score is lower where it is better; ↑ and ↓ say
# which way our choice moves the number beside the authors'. It is measured where the cell says *above*, *below* or names a
# page; elsewhere an arrow is what one expects, and a dash stands where we expect neither.
#
# | what | the authors' code | here | moves |
# |---|---|---|---|
# | Score | plug-in, 100 samples | corrected, with an interval; plug-in by `protocol=paper` | ↓ by the mean of $\hat\mu(1-\hat\mu)/99$, alike for all methods |
# | Missing confidence | 0.5 | left out and counted; 0.5 by `protocol=paper` | either way, above |
# | Response consistency | ten votes, which share samples with $\hat\mu$; equal strings vote together | the mean over a hundred splits, judged by the samples that did not vote; answers the grader calls equal vote together | either way, above |
# | Vote without an answer | one group more, which can win | agrees with nobody; 0.5 where no vote is an answer | either way, below |
# | Linear probe | gradient descent, grid of rates | *tuned*: its optimum, decay by cross-validation; theirs by `protocol=paper` | either way, above |
# | Judge's temperature | 1.0 | 0 | – |
# | Aliases that the judge sees | the first answer (TriviaQA) | up to 20 | accuracy ↑ on TriviaQA |
# | Judge's prompt | the rubric of SimpleQA, yes or no | our own words, three verdicts, four cases shown | – |
# | Judge is asked | once a sample | once a distinct answer | – |
# | Unreadable judgement | incorrect | not scored | accuracy ↑ |
# | No answer, not graded | incorrect | no answer is incorrect; not graded is not scored | accuracy ↑ |
# | Answer is searched | in the whole reply | after the reasoning, the last statement | – |
# | No answer is found | the last line (TriviaQA, SimpleQA) or the last capital letter (MMLU, GPQA) is taken for one | no answer, which is incorrect | accuracy ↓, at most by the share below |
# | Probability that is read | digits and dots in a box; after three attempts 0.5 | per cent, fractions and ranges too, and running text where there is no box; after three attempts missing | – (the models recorded here are asked for no box) |
# | Verbalized confidence | 5,000 tokens, then asked again | as long as an answer may be | fewer missing with gpt-oss |
# | P(True) | two spellings a word, reasoning cut at 5,000 tokens | six spellings, missing where no answer begins | – |
# | Prompt of a hidden state | thinking of Qwen left on | the prompt that is sampled | – |
# | Pooling | bfloat16 | float32 | – |
# | Labels of a training question | 100 (rebuttal) | 10, by the lean recipe 1 | score of the probe ↑ |
# | Training share of MATH | all of it, MATH valid chooses | four fifths in each of five splits | score of the probe ↑ |
# | Validation of a probe | evaluation questions (TriviaQA, GSM8K) | a fifth of the training questions | score of the probe ↑ |
# | Oracle CC | scored on its own samples | on the other half | ↑ in [pass@k](05_pass_at_k.ipynb) |
# | Success of a budget | ten draws that all questions share | its expectation, exact | ↓ by up to some points at one sample |
# | Answer prompt | theirs, which the paper does not print | in our words | – |
# | SimpleQA | Verified, 1,000 questions | the same as `simpleqa-verified`; the recorded runs use the whole set | – |
#
# The rows on answers that are not there, counted on the recorded samples. Votes are scored as the authors score them, on samples
# that they share with $\hat\mu$; *as a group* lets those without an answer vote together. The share of samples without an
# answer bounds what guessing one can add to the accuracy.

# %% label="protocol-no-answers" paper=["table-6"] evidence=["measured"] reads=["verdicts"]
absent = study.votes_without_answer(page.data["run"], k_eval=k_eval, k_c=k_c)
page.show(
    absent,
    f"Samples without an answer, and the score of {k_c} votes either way.",
    shift="{:+.4f}",
)

# %% [markdown]
# Runs of small models differ in more: quantised weights, prompts with examples, subsets of questions. Runs say all of it.
#
# ## Summary
#
# - Corrections are switches: each can be taken back, and its effect is a number.
# - A correction that adds the same to every method changes no comparison; one that touches a method alone can.
#
# With the corrections or without, a score rests on the paper's two theorems. [Next](16_theorems.ipynb): do they hold on counts?
#
# ## Exercises
#
# **1 (easy).** A question has $\hat\mu = 0.5$ from 100 samples. How much does *plug-in* add to the score of any
# confidence? *Hint:* $\hat\mu(1-\hat\mu)/(n-1)$.

# %% tags=["hide-cell", "solution"]
# At one half and a hundred samples: the plug-in score less the corrected one
from capcal_lib.metrics import capability_brier

plug_in_score = capability_brier([0.7], [50], [100])
corrected_score = capability_brier([0.7], [50], [100], corrected=True)
page.solution(
    round(plug_in_score - corrected_score, 5), round(0.5 * 0.5 / 99, 5)
)

# %% [markdown]
# **2 (medium).** When does 0.5 for a missing confidence improve a score? *Hint:* compare $(0.5 - \mu)^2$ with the mean
# score of the other questions.

# %% tags=["hide-cell", "solution"]
# An imputed one half, against the mean score of the others
mu, others = 0.6, 0.05
page.solution(round((0.5 - mu) ** 2, 2), others)  # better if the first is lower

# %% [markdown]
# **3 (medium).** In the figure, the marks of one row lie on both sides of the line. What does that say of a table of scores that
# was made without this correction? *Hint:* can two methods change places?

# %% tags=["hide-cell", "solution"]
# Their order may be another one: a score that rises passes one that falls
ends = shifts.groupby("switch", observed=True)["shift"].agg(["min", "max"])
page.solution((ends["min"] < 0) & (ends["max"] > 0))
