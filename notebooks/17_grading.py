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
# [Before](16_theorems.ipynb) we saw that the theorems hold for counts, and took every verdict on a sample as right. How often is
# the grader wrong, and what would another one say?

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`; it has the built-in sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat

# %% [markdown]
# ## How often the rules were wrong
#
# This book grades by rules; what they count as an answer stands, with cases, on the page “Grading”. Answers of small models were
# labelled by reading them beside the accepted answers, a language model's reading and not a person's: all that the rules and an
# independent grader disputed or a sample of it, and a sample of what they agreed on. A label has the weight of the samples it
# stands for. Where it is open whether an answer is right, such as a misspelt name, it is "cannot tell" (NaN).

# %%
from capcal_lib.grading.labels import load_labels

labels = load_labels()
labels[["dataset", "extracted", "first", "correct", "weight"]].head()

# %% [markdown]
# The *sensitivity* of a grader is the share of the right answers that it calls correct, its *specificity* that of the wrong ones
# that it calls not correct. Here for TriviaQA, with the number of independent labels that would tell as much of either:

# %%
from capcal_lib.grading.labels import measured_error

measured_error(labels[labels["dataset"] == "triviaqa"])

# %% [markdown]
# And for all data sets with labels of both kinds, with Jeffreys' intervals. Few right answers to a hard data set leave them wide.

# %%
from capcal_lib.book import tables
from capcal_lib.book.lesson import open_lesson
from capcal_lib.grading.labels import error_rates

page = open_lesson(globals())
rates = 100 * error_rates(labels)
spelt = tables.intervals(rates, "estimate", digits=1).unstack("answers")
read = labels.groupby("dataset")["correct"].agg(labelled="count", read="size")
page.show(
    read.join(spelt[rates.index.unique("answers")], how="right"),
    "How often the rules of this book are right, in per cent with 95 % intervals; labelled are those read that could be told.",
    evidence="measured",
)

# %% [markdown]
# Nearly all errors are misses: answers in words that no rule expects, an element named by its symbol, and on TriviaQA right
# answers that the list of accepted ones misspells or lacks. Of a data set that is not in this table nobody has read both right and
# wrong answers.
#
# A miss lowers the accuracy, and with it every score, but not alike. It costs most where a confidence was right to be sure. Say a
# model always solves a question, and the confidence is 1. Missing right answers to TriviaQA as often as here then costs this much if
# the misses are spread evenly over questions, and this much on average if they fall on some questions, which lack an accepted answer:

# %%
missed = 1 - measured_error(labels[labels["dataset"] == "triviaqa"]).sensitivity
missed**2, missed

# %% [markdown]
# A confidence that is set by graded answers pays less: the best constant, a probe and a recalibrated confidence all learn the
# accuracy as graded, misses and all. So misses favour them over what a model says of itself.
#
# ## Four verdicts
#
# A sample is correct, incorrect, without an answer, or not scored. The middle two count as wrong, and are told apart:
# many samples without an answer ask for a better prompt or a better extraction. What is not scored counts as nothing.

# %% tags=["provenance"]
page.show_runs()

# %%
import pandas as pd
from capcal_lib.grading.verdicts import read_verdicts

runs = page.data["run"]
verdicts = pd.concat([*runs.map(read_verdicts)], keys=runs.index)
verdicts = verdicts.query("sample_index < @k_eval")["verdict"]
by_set = verdicts.groupby(level="dataset", sort=False)
counts = by_set.value_counts(normalize=True).unstack()
names = ["correct", "incorrect", "no_answer", "not_scored"]
page.show(
    counts.reindex(columns=names).fillna(0.0),
    "Verdicts by this book's rules, as shares of the samples.",
)

# %% [markdown]
# ## Other rules
#
# Three other rules are easy to write. *Identical text* asks the extracted answer to equal an accepted one, letter by letter.
# *One contains the other* is what many evaluation scripts do after lower-casing. *Mentioned anywhere* looks for an accepted
# answer in the whole response and extracts nothing:


# %%
from capcal_lib.grading import canonical


def identical(answer, extracted, _response):
    return extracted in (answer.gold, *answer.aliases)


def contained(answer, extracted, _response):
    given = canonical(extracted, answer.kind)
    golds = (answer.gold, *answer.aliases)
    golds = {canonical(gold, answer.kind) for gold in golds} - {""}
    return given != "" and any(g in given or given in g for g in golds)


def mentioned(answer, _extracted, response):
    return any(gold in response for gold in (answer.gold, *answer.aliases))


# %% [markdown]
# Each rule grades the same samples. That takes the right answers of a data set on this machine.

# %%
from capcal_lib.manifests import load_dataset
from capcal_lib.questions import at_hand

at_home = [
    name
    for name in page.data.index
    if at_hand(name, load_dataset(name).evaluation_split)
]
if not at_home:
    page.end(
        "No other rule can be tried: the right answers of these data sets are not here. Set CAPCAL_DATA_DIR to their folder."
    )

# %%
from capcal_lib.studies.grading import regrade

rules = {
    "identical text": identical,
    "one contains the other": contained,
    "mentioned anywhere": mentioned,
}
shares = {name: regrade(runs[name], rules, k=k_eval) for name in at_home}
mu = pd.concat(shares, names=["dataset", "question_id"])
mu.groupby(level="dataset", sort=False).head(1)

# %% [markdown]
# How far does a rule *move* the accuracy from that of this book's rules, question by question?

# %%
from capcal_lib.results.judged import gains_over, judge_cases
from capcal_lib.studies.grading import OURS

moves = judge_cases(gains_over(-mu, OURS), ["dataset", "rule"])
moves = moves.set_index(["dataset", "rule"])
moves = moves.rename(columns={"estimate": "move"})
moves.loc[at_home[0], ["move", "low", "high"]].round(3)

# %% tags=["finding"]
dataset, rule = moves["move"].abs().idxmax()
page.finding(
    "The same samples, graded by another rule, give another accuracy: on {where} the rule “{rule}” moves it by {points:.0f} points.",
    where=page.data["title"][dataset],
    rule=rule,
    points=100 * abs(moves.loc[(dataset, rule), "move"]),
)

# %% tags=["picture"] label="fig-strictness" mystnb={"image": {"alt": "Dot plot with a row for each data set and, in it, a mark with an interval for each of three rules, around a line at zero."}}
import numpy as np
from capcal_lib import plots
from capcal_lib.book import style
from matplotlib import pyplot as plt

_, axes = plt.subplots(figsize=(style.WIDTH, 1 + 0.6 * len(at_home)))
for place, rule in enumerate(rules):
    of_rule = moves.xs(rule, level="rule")
    rows = np.arange(len(of_rule)) + 0.22 * (place - 1)
    arms = of_rule["move"] - of_rule["low"], of_rule["high"] - of_rule["move"]
    axes.errorbar(
        of_rule["move"], rows, xerr=arms, fmt="osD"[place], label=rule
    )
axes.axvline(0, color=plots.INK, linewidth=1)
axes.set_yticks(range(len(of_rule)), page.data["title"][of_rule.index])
axes.invert_yaxis()
axes.set_xlabel("change of mean expected accuracy")
_ = axes.figure.legend(loc="outside lower center", ncols=3)

# %% [markdown] tags=["caption"]
# How far each rule moves the mean expected accuracy from that of this book's rules, with 95 % intervals of the paired
# difference over questions. A rule that is too strict misses right answers in another form; one that is too lenient finds 4 in
# 14, and A in any sentence that has one. No interval over questions shows this error: it is the same whichever questions are
# drawn.

# %% [markdown]
# Beside the moves, the accuracy by our rules itself:

# %%
table = page.accuracies()[["mean μ"]].reindex(at_home)
spelt = tables.intervals(moves, "move", digits=3).unstack("rule")[[*rules]]
page.show(
    table.join(spelt),
    "Mean expected accuracy by our rules, and its move under other rules. In brackets: 95 % intervals.",
)

# %% [markdown]
# ## A model as the judge
#
# A judge reads meaning where rules read form, and makes errors of its own. Its verdicts are kept beside those of the rules and
# never mixed with them. Cohen's $\kappa$ subtracts the agreement that chance alone would give (Cohen, 1960): 0 is chance and 1
# perfect. A judge that says the same of every answer has $\kappa = 0$, however often it agrees. The table is empty where no
# model has judged these samples; `capcal judge` asks one.

# %%
from capcal_lib.grading.agreement import agreements

tables.titled(agreements(runs)).round(2)

# %% [markdown]
# A model that can answer questions need not be able to judge answers: look at what a judge says of answers that are letter by
# letter the right one before you use it. And two graders that agree can both be wrong. Only a person settles that, and a person
# settles few.
#
# ## From labels to an accuracy
#
# Of the right answers the rules call a share $\mathrm{Se}$ correct, the sensitivity, and of the wrong ones a share $1-\mathrm{Sp}$. So
# of a model of accuracy $\mu$ the mean verdict is $m = \mathrm{Se}\,\mu + (1-\mathrm{Sp})(1-\mu)$. Solved for $\mu$, that is the
# estimator of Rogan and Gladen (1978), by which the measured error of the rules is taken out of an accuracy:

# %%
overview = page.accuracies()
by_rate = (rates["estimate"] / 100).unstack("answers")
se, sp = by_rate[rates.index.unique("answers")].to_numpy().T
by_rules = overview["mean μ"].reindex(by_rate.index)
corrected = ((by_rules + sp - 1) / (se + sp - 1)).clip(0, 1)
table = pd.DataFrame({"by our rules": by_rules, "corrected": corrected})
page.show(
    table.dropna(),
    "Mean expected accuracy, and corrected for the measured error of the rules.",
)

# %% [markdown]
# The correction takes the error for alike on all questions, and the labels for the truth. They are of answers of small models; those of
# another model may be harder or easier to grade. A corrected accuracy is less certain than the accuracy itself, since the two
# rates are uncertain as well.
#
# ## Summary
#
# - The same samples give other accuracies under other rules. Say which rule, and keep the answers so that it can change.
# - No answer, not scored and incorrect are three things.
# - A judge is a measuring instrument too. With labels of its answers the grader's error can be taken out of an accuracy.
#
# That was the last of the checks. [The first page](01_targets_divergence.ipynb) asks what all this is measured for: how far is
# one answer from the expected accuracy?
#
# ## Exercises
#
# **1 (easy).** A grader with $\mathrm{Se} = 0.9$ and $\mathrm{Sp} = 0.95$ calls 40 % of the answers correct. What is the
# accuracy? *Hint:* the grader calls a share $0.9\mu + 0.05(1-\mu)$ correct.

# %% tags=["hide-cell", "solution"]
# The mean verdict, solved for the accuracy
page.solution(round((0.4 + 0.95 - 1) / (0.9 + 0.95 - 1), 3))

# %% [markdown]
# **2 (medium).** In the figure an interval lies wholly to the right of the line. Does that mean that the rule finds more right
# answers than ours? *Hint:* the interval is about other questions, not about other graders.

# %% tags=["hide-cell", "solution"]
# No: it calls more answers correct, and labels say whether ours had missed them
page.solution(
    rates.xs("right ones called correct", level="answers")["estimate"].round(1)
)

# %% [markdown]
# **3 (hard).** At which sensitivity would the correction move the accuracy of the largest data set by as much as
# its interval is wide? *Hint:* with $\mathrm{Sp} = 1$ the mean verdict $m$ is $\mathrm{Se}\,\mu$.

# %% tags=["hide-cell", "solution"]
# The sensitivity at which the move equals the width
m, low, high = overview[["mean μ", "low", "high"]].iloc[0]
page.solution(round(m / (m + high - low), 3))
