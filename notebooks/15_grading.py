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
# How good is the grader: how often is it wrong, and what would another grader say? [The previous page](14_theorems.ipynb) took
# every verdict as right.

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has the built-in sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat

# %% [markdown]
# ## How often the rules were wrong
#
# This book grades by rules, which the page “Grading” explains. To find their errors, a language model, not a person, labelled
# answers of small models as right or wrong. It read answers on which the rules and an independent grader disagreed, and a
# sample of the others. Each label has the weight of the samples that it stands for. `first` is the verdict of the rules, and a
# `correct` of NaN means "cannot tell".

# %%
from capcal_lib.grading.labels import load_labels

labels = load_labels()
labels[["dataset", "extracted", "first", "correct", "weight"]].head()

# %% [markdown]
# The *sensitivity* of a grader is the share of right answers that it calls correct. Its *specificity* is the share of wrong
# answers that it calls not correct. Here are both for TriviaQA. `right` and `wrong` are effective sample sizes, smaller than
# the numbers of labels because weights differ and some labels share a question:

# %%
from capcal_lib.grading.labels import measured_error

measured_error(labels[labels["dataset"] == "triviaqa"])

# %% [markdown]
# The intervals are wide for hard data sets, because these have few right answers:

# %%
from capcal_lib.book import tables
from capcal_lib.book.page import EndOfPage, finding, open_page, show_runs
from capcal_lib.book.tables import show
from capcal_lib.grading.labels import error_rates
from capcal_lib.studies.main_table import accuracies

page = open_page(model, store, k_eval=k_eval)
rates = 100 * error_rates(labels)
spelt = tables.intervals(rates, "estimate", digits=1).unstack("answers")
read = labels.groupby("dataset")["correct"].agg(labelled="count", read="size")
show(
    read.join(spelt[rates.index.unique("answers")], how="right"),
    "How often this book's rules are right, in per cent, with 95 % intervals. The column “read” counts all answers that were read, and “labelled” leaves out “cannot tell”.",
    evidence="measured",
)

# %% [markdown]
# Nearly all errors are misses. Some right answers are in words that no rule expects, and the accepted answers of TriviaQA lack
# some right ones. Data sets outside the table have not been checked.
#
# Suppose that a model always solves every question and its confidence is 1. Its capability Brier score should be 0. But suppose
# the grader misses as many right answers as on TriviaQA. The score is then the first number below if the misses are spread
# evenly over questions, and the second, on average, if they fall on a few questions:

# %%
missed = 1 - measured_error(labels[labels["dataset"] == "triviaqa"]).sensitivity
missed**2, missed

# %% [markdown]
# ## Four verdicts
#
# Incorrect samples and samples without an answer both count as wrong. We keep them apart, because many samples without an
# answer call for a better prompt. Samples that are not scored do not count.

# %%
show_runs(page)

# %%
import pandas as pd
from capcal_lib.grading.verdicts import read_verdicts

runs = page.runs["run"]
verdicts = pd.concat([*runs.map(read_verdicts)], keys=runs.index)
verdicts = verdicts.query("sample_index < @k_eval")["verdict"]
by_set = verdicts.groupby(level="dataset", sort=False)
counts = by_set.value_counts(normalize=True).unstack()
names = ["correct", "incorrect", "no_answer", "not_scored"]
show(
    counts.reindex(columns=names).fillna(0.0),
    "Share of the samples with each verdict, under this book's rules.",
    evidence=page.evidence,
)

# %% [markdown]
# ## Other rules
#
# Three other rules are easy to write. The second is what many evaluation scripts do after lower-casing:


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
# Each rule grades the same samples, on data sets whose right answers are on this machine.

# %%
from capcal_lib.manifests import load_dataset
from capcal_lib.questions import at_hand

at_home = [
    name
    for name in page.runs.index
    if at_hand(name, load_dataset(name).evaluation_split)
]
if not at_home:
    raise EndOfPage(
        "Other rules need the right answers, which are not on this machine. Set CAPCAL_DATA_DIR to their folder."
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
# How far does each rule *move* the accuracy? We compare it with our rules question by question:

# %%
from capcal_lib.results import judge
from capcal_lib.studies.grading import OURS

moves = mu.drop(columns=OURS).sub(mu[OURS], axis="index")
moves = moves.rename_axis(columns="rule").stack().rename("gain")
moves = judge(moves.reset_index("rule"), ["dataset", "rule"])
moves = moves.set_index(["dataset", "rule"])
moves = moves.rename(columns={"estimate": "move"})
moves.loc[at_home[0], ["move", "low", "high"]].round(3)

# %% tags=["finding"]
dataset, rule = moves["move"].abs().idxmax()
finding(
    "The same samples have another accuracy under another rule. On {where}, the rule “{rule}” moves it by {points:.0f} points.",
    where=page.runs["title"][dataset],
    rule=rule,
    points=100 * abs(moves.loc[(dataset, rule), "move"]),
)

# %% tags=["picture"] label="fig-strictness" mystnb={"image": {"alt": "Dot plot with a row for each data set. In each row, three rules have a mark of their own shape with an interval, beside a line at zero."}}
import numpy as np
from capcal_lib import plots
from capcal_lib.book import style
from matplotlib import pyplot as plt

_, axes = plt.subplots(figsize=(style.WIDTH, 1 + 0.6 * len(at_home)))
for place, rule in enumerate(rules):
    of_rule = moves.xs(rule, level="rule")
    rows = np.arange(len(of_rule)) + 0.22 * (place - 1)
    arms = of_rule["move"] - of_rule["low"], of_rule["high"] - of_rule["move"]
    look = {"fmt": "osD"[place], "label": rule, "color": plots.INK}
    axes.errorbar(of_rule["move"], rows, xerr=arms, **look)
axes.axvline(0, color=plots.INK, linewidth=1)
axes.set_yticks(range(len(of_rule)), page.runs["title"][of_rule.index])
axes.invert_yaxis()
axes.set_xlabel("change of mean expected accuracy")
_ = axes.figure.legend(loc="outside lower center", ncols=3)

# %% [markdown]
# Each mark shows the mean expected accuracy under a rule minus the mean under this book's rules, with the 95 % interval of the
# paired difference over questions. A rule that is too strict misses right answers in another form. A rule that is too lenient
# accepts 14 if the right answer is 4.

# %%
table = accuracies(page.counting)[["mean μ"]].reindex(at_home)
spelt = tables.intervals(moves, "move", digits=3).unstack("rule")[[*rules]]
show(
    table.join(spelt),
    "Mean expected accuracy under our rules, and how far other rules move it. In brackets: 95 % intervals.",
    evidence=page.evidence,
)

# %% [markdown]
# ## A model as the judge
#
# A judge reads meaning, while rules read form. It makes errors of its own, so its verdicts are stored beside those of the
# rules. Cohen's $\kappa$ (Cohen, 1960) measures agreement beyond chance: 0 is chance, and 1 is perfect. The table is empty
# until `capcal judge` has asked a model to judge these samples.

# %%
from capcal_lib.grading.agreement import agreements

tables.titled(agreements(runs)).round(2)

# %% [markdown]
# Before you use a judge, read its verdicts on answers that are identical to the right one. Two graders that agree can both be
# wrong, and only a person can settle that.
#
# ## From labels to an accuracy
#
# With sensitivity $\mathrm{Se}$ and specificity $\mathrm{Sp}$, a model of accuracy $\mu$ has the mean verdict $m =
# \mathrm{Se}\,\mu + (1-\mathrm{Sp})(1-\mu)$. Solved for $\mu$, this is the estimator of Rogan and Gladen (1978). It removes the
# measured error of the rules:

# %%
overview = accuracies(page.counting)
by_rate = (rates["estimate"] / 100).unstack("answers")
se, sp = by_rate[rates.index.unique("answers")].to_numpy().T
by_rules = overview["mean μ"].reindex(by_rate.index)
corrected = ((by_rules + sp - 1) / (se + sp - 1)).clip(0, 1)
table = pd.DataFrame({"by our rules": by_rules, "corrected": corrected})
show(
    table.dropna(),
    "Mean expected accuracy under our rules, and corrected for their measured error.",
    evidence=page.evidence,
)

# %% [markdown]
# The correction assumes that the error is alike on all questions and that the labels are right. The labels are of answers by
# small models, and other answers may be harder or easier to grade. A corrected accuracy is less certain than the uncorrected
# one.
#
# ## Summary
#
# - The same samples have other accuracies under other rules. Report the rule, and keep the answers so that you can change it.
# - With labels you can remove the error of the rules or of a judge from an accuracy.
#
# In the book, the map of the paper comes next.
#
# ## Exercises
#
# **1 (easy).** A grader with $\mathrm{Se} = 0.9$ and $\mathrm{Sp} = 0.95$ calls 40 % of the answers correct. What is the
# accuracy? *Hint:* the grader calls a share $0.9\mu + 0.05(1-\mu)$ correct.

# %% tags=["hide-cell", "solution"]
# The mean verdict, solved for the accuracy
round((0.4 + 0.95 - 1) / (0.9 + 0.95 - 1), 3)

# %% [markdown]
# **2 (medium).** Some intervals in the figure lie wholly to the right of the line. Do these rules find more right answers than
# ours? *Hint:* an interval shows what other questions might change, not which verdicts are right.

# %% tags=["hide-cell", "solution"]
# Not necessarily: they call more answers correct; labels show whether our rules missed any
(rates.xs("right ones called correct", level="answers")["estimate"].round(1))

# %% [markdown]
# **3 (hard).** At which sensitivity would the correction move the accuracy of the largest data set by the width of its
# interval? *Hint:* with $\mathrm{Sp} = 1$, the mean verdict $m$ is $\mathrm{Se}\,\mu$.

# %% tags=["hide-cell", "solution"]
# The sensitivity at which the move equals the width
m, low, high = overview[["mean μ", "low", "high"]].iloc[0]
round(m / (m + high - low), 3)
