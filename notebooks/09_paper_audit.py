# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The paper, audited
#
# Do the paper's printed numbers support what its text says? Unlike the [previous page](08_probe_generalization.ipynb), this
# page measures nothing, unless your store has samples of the paper's models. A number is *reported* if the paper prints it. It
# is *read off* if we took it from the paper's curves or from what the authors published later.

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it may be the paper's
store: str = "runs/recorded"  # run store, from here or from the root
seed: int = 42  # the first of the ten seeds of the reference code

# %%
from capcal_lib.book import tables
from capcal_lib.book.page import finding, open_page
from capcal_lib.book.tables import show

page = open_page(model, store)
marks = tables.badge("reported") + " " + tables.badge("read off")
tables.Html(
    f"<p class='capcal-about'><strong>The paper's printed numbers</strong> {marks}</p>"
)

# %% [markdown]
# A statement is a clause of the paper that compares methods, models or data sets. We took every such clause of the abstract,
# sections 4 and 5, appendices B to D and the captions. Outside the abstract, we left out clauses that only repeat another one.
# `data_manifests/claims.yaml` gives the line of each clause in the paper.

# %%
from capcal_lib.claims import load_claims

claims = load_claims()
claims[["place", "quote", "wording"]].head()

# %% [markdown]
# Each statement becomes comparisons, which say that one printed number is lower than another. A printed 0.0831 can be anything
# from 0.08305 to 0.08315. So a comparison *holds* or *fails* only if rounding cannot change the result.

# %%
from capcal_lib.claims import compare_printed

comparisons = compare_printed(claims)
comparisons["result"].value_counts()

# %% [markdown]
# The paper's wording decides how many comparisons have to hold. If it says "generally", "typically", "often" or
# "most", we read *most*: more than half. If it says that something does not always hold, we read *some*: at least one.
# Otherwise *every* comparison has to hold.
#
# - *Supported*: as many hold as the wording asks for.
# - *Reversed*: all fail, or more than half if the wording is *most*.
# - *Holds in part*: otherwise, if more hold than fail.
# - *Contradicted in part*: otherwise, if more fail than hold.
# - *Inconclusive*: as many fail as hold, or no printed number bears on the statement.

# %%
from capcal_lib.claims import CLAIM_VERDICTS, judge_claims

claims = judge_claims(claims, comparisons)
tally = claims["verdict"].value_counts().reindex(CLAIM_VERDICTS, fill_value=0)
tally

# %% tags=["finding"]
from capcal_lib.text import in_words

names = {
    "holds in part": "excepted",
    "contradicted in part": "contradicted",
    "inconclusive": "undecided",
}
counts = tally.rename(names).to_dict()
finding(
    "The paper's printed numbers fully support {supported} of the {claims} statements about its results. They support {excepted} in "
    "part and contradict {contradicted} in part.",
    claims=len(claims),
    **{name: in_words(count) for name, count in counts.items()},
)

# %% tags=["remove-cell"]
from capcal_lib.book.page import glue

glue(
    claims=len(claims),
    supported=counts["supported"],
    excepted=counts["excepted"],
    contradicted=counts["contradicted"],
    reversed=counts["reversed"],
    undecided=counts["undecided"],
)

# %%
from capcal_lib.book.style import result_colors
from capcal_lib.claims import label_results

colors = result_colors("hidden by rounding")
labelled = label_results(comparisons, claims["wording"])

# %% tags=["picture"] label="fig-claims" mystnb={"image": {"alt": "A stacked bar for each statement of the paper: the shares of comparisons that hold, need not hold, are hidden by rounding, and fail. At its end, how many hold."}}
import seaborn as sns

bars = {"multiple": "fill", "discrete": True, "shrink": 0.75, "alpha": 1}
colored = {"hue": "result", "hue_order": colors, "palette": colors}
axes = sns.histplot(labelled, y="claim", **colored, **bars)
axes.figure.set_figheight(8.4)
for row, says in enumerate(comparisons["says"].unique()):
    axes.text(1.02, row, claims.loc[says, "hold"], va="center", size=9)
axes.set(xlabel="share of comparisons", ylabel="")
sns.move_legend(
    axes, "lower center", bbox_to_anchor=(0.1, 1), ncols=4, title=""
)

# %% [markdown]
# One bar per statement: the share of its comparisons with each result. The number at the right counts those that hold. Every
# comparison has to hold unless the label says *most* or *some*. If it says *some*, the ones that fail *need not hold*.

# %% [markdown]
# Some statements could hardly fail, such as that one response differs from the expected accuracy. Others depend on our reading.
# The paper calls outputs “rarely binary”, and we ask whether most questions have $\mu$ between .1 and .9. For each *cell*, a
# model on a data set, two printed numbers give the mean and the variance of $\mu$. We take the Beta distribution that has both.
# One can also call a question binary if all, or none, of a hundred samples are right. In how many cells are fewer than half of
# the questions binary then?

# %%
import numpy as np
from capcal_lib.reported import beta_from_moments, beta_moments, load_reported
from scipy.stats import betabinom

moments = [
    beta_moments(*cell)
    for cell in load_reported("mean_accuracy")[["model", "dataset"]].to_numpy()
]
shapes = [beta_from_moments(*moment) for moment in moments]
binary = [betabinom.pmf([0, 100], 100, *moment).sum() for moment in shapes]
(np.array(binary) < 0.5).sum(), len(binary)

# %% [markdown]
# For the last pass@k curves the paper prints no number. Its text says “most scenarios”, which we quote, and the caption of the
# figure says “many scenarios”.

# %% label="audit-claims"
others = claims[claims["verdict"] != "supported"].set_index("quote")
columns = ["place", "hold", "verdict", "evidence"]
show(
    others.rename_axis("the paper says")[columns],
    "Statements that are not fully supported.",
    evidence=page.evidence,
)

# %% label="audit-clauses"
columns = ["quote", "place", "wording", "hold", "verdict", "evidence"]
show(
    claims[columns].rename_axis("read as").rename(columns={"quote": "clause"}),
    "All statements: the clause of the paper, and how we read it.",
    evidence=page.evidence,
)

# %% [markdown]
# ## What does the main table compare?
#
# The paper's methods are “spanning both training-free and training-based techniques” (section 1). A probe has seen thousands of
# labels: “We train linear probes on LLMs' internal representations to predict query-level confidence” (section 4.2). Verbalized
# confidence (“We instruct the LLM to report a probability”) and P(True), *what a model says of itself*, have seen none. So a
# score mixes two things: what a method *knows* about a question, and the *level* of its confidences.
#
# The authors later published scores of these two methods after recalibration on the same labels that the probe has seen. How
# much of the probe's lead on its own data set is left?

# %%
import pandas as pd
from capcal_lib.probe_names import probe_name
from capcal_lib.reported import constant_score

sets = {"triviaqa": "TriviaQA", "gsm8k": "GSM8K", "math500": "MATH"}
main = load_reported("main").query("dataset in @sets")
lead = main.query("method in ['Verbalized confidence', 'P(True)']")
lead = lead.set_index(["model", "dataset", "method"])[["value"]]
lead = lead.rename(columns={"value": "as printed"})
later = load_reported("recalibrated", source="reference code")
later = later[later["setting"] == "fitted on " + later["dataset"].map(sets)]
later["method"] = later["method"].str.removesuffix(" + isotonic")
lead["recalibrated"] = later.set_index(lead.index.names)["value"]
at_home = main[main["method"] == main["dataset"].map(sets).map(probe_name)]
probe = at_home.set_index(["model", "dataset"])["value"]
constant = pd.Series({cell: constant_score(*cell) for cell in probe.index})

# %% label="audit-level"
cells = lead.index.droplevel("method")
ahead = lead.sub(probe[cells].to_numpy(), axis="index")
closer = lead.lt(constant[cells].to_numpy(), axis="index")
show(
    pd.DataFrame(
        {
            "cells": ahead.count(),
            "mean lead of the probe": ahead.mean(),
            "probe is lower": ahead.gt(0).sum(),
            "lower than the best constant": closer.sum(),
        }
    ).rename_axis("what the model says"),
    "Lead of a data set's own probe over what the model says of itself, as printed and recalibrated on the probe's training set. "
    "The last column counts the cells in which the confidence scores lower than the best constant.",
    evidence=["reported", "read off"],
)

# %% [markdown]
# As printed, what a model says of itself seldom beats the best constant. Recalibrated, it nearly always does. The probe loses
# most of its mean lead, so that part was level. The rest is knowledge: the probe is still lower in most cells.

# %% [markdown]
# ## Do the tables agree with each other?
#
# The printed mean accuracy and the printed score of Uniform random determine a Beta distribution of $\mu$ for each cell. It
# gives the expected pass@k error of Oracle RC, and a band that contains the error in 95 of 100 studies of this size. How many
# printed errors lie in their band?

# %%
from capcal_lib.reported import expected_from_reported

oracle = expected_from_reported()
oracle["inside"] = oracle["reported"].between(oracle["low"], oracle["high"])
oracle["width"] = oracle["high"] - oracle["low"]
off = (oracle["reported"] - oracle["expected"]).abs()
oracle["apart"] = off / (oracle["width"] / (2 * 1.96))

# %% label="audit-oracle"
show(
    oracle.groupby("dataset").agg(
        printed=("inside", "size"),
        inside=("inside", "sum"),
        farthest=("apart", "max"),
        width=("width", "mean"),
    ),
    "Printed pass@k errors of Oracle RC, and how many lie inside the band that two other printed numbers imply. Farthest: the largest "
    "distance from the expected error, in standard deviations. Width: of the band, on average.",
    evidence=["reported", "simulated"],
)

# %% [markdown]
# All do, so the tables agree. The paper states that Probe (MATH) beats Oracle RC on MATH-500 with every model. The probe fails
# once:

# %%
one = "model == 'olmo-3-7b-instruct' and dataset == 'math500' and k == 1"
passk = load_reported("passk_math500").query(one).set_index("method")["value"]
(
    passk[["Probe (MATH)", "Oracle RC"]],
    oracle.query(one)[["expected", "low", "high"]],
)

# %% [markdown]
# Oracle RC depends on one random draw a question, and its expected error is nearly the probe's. So this exception is no
# evidence against the statement. On AIME25 the bands are several times as wide. In how many of its cells is the probe's printed
# error lower than Oracle RC's?

# %%
aime = load_reported("passk_aime25").pivot(
    index=["model", "k"], columns="method", values="value"
)
(aime["Probe (MATH)"] < aime["Oracle RC"]).agg(["sum", "size"])

# %% [markdown]
# At $k = 1$ the pass@k error of a confidence, as the paper computes it, *is* its plug-in Brier score. So the paper prints one
# number twice:

# %% label="audit-twice"
keys = ["model", "dataset"]
probe = load_reported().query("method == 'Probe (MATH)'").set_index(keys)
once = probe[probe["k"] == 1]["value"]
twice = once.to_frame("pass@1 error")
twice["Brier score"] = probe[probe["table"] == "main"]["value"]
twice["difference"] = (once - twice["Brier score"]).round(4)
show(
    twice,
    "Brier score and pass@1 error of Probe (MATH).",
    digits=4,
    evidence="reported",
)

# %% [markdown]
# If the two differ by more than rounding, .0001, the tables come from different runs. Another check: the mean accuracies of
# AIME25 are over 3,000 samples. So 3,000 times a mean has to be a whole number, except for rounding. Is it?

# %%
means = load_reported("mean_accuracy").set_index(keys)["value"]
mean = means.xs("aime25", level="dataset")
((mean * 3000).round() / 3000 - mean).abs().le(0.00005)

# %% [markdown]
# ## Ten draws for all questions
#
# The authors' code simulates with ten seeds how many questions a budget solves. For every question it puts the correct ones of
# the hundred outcomes first and restarts the generator with the same seed. So all questions draw the same positions, and chance
# does not average out. Take five thousand questions with known means, and draw one sample of each:

# %%
import random

from capcal_lib.applications import success_rate

draws = [random.Random(seed + i).sample(range(100), 1)[0] for i in range(10)]
correct = np.random.default_rng(0).integers(0, 101, 5000)
shared = np.mean([correct > position for position in draws])
exact = success_rate(np.ones(5000, int), correct, np.full(5000, 100))
pd.Series({"ten shared draws": shared, "expected": exact}).round(3)

# %% [markdown]
# With one sample a question, the expected share of solved questions is the mean accuracy. The published curves are higher:

# %% label="audit-one-sample"
budget = load_reported("budget", source="reference code").set_index(keys)
even = budget.query("method == 'Uniform allocation' and k == 1")["value"]
solved = even.to_frame("solved at B = 1")
solved["mean accuracy"] = means
solved["points"] = 100 * (even - solved["mean accuracy"])
show(
    solved,
    "Published success of even spending at one sample a question.",
    evidence=["read off", "reported"],
    points="{:+.1f}",
)

# %% [markdown]
# The curves are too high, but their order is about right, because all methods share the draws.
#
# ## Published later
#
# The authors later put more numbers into their code repository. *G1* numbers belong to the paper's samples. *G2* and *G3* were
# collected again, *G3* partly on other questions. How far are the mean accuracies of *G2* from the printed ones? Here are the
# three largest differences, in points, and the number of cells in which they are more than one point apart:

# %%
later = load_reported(source="reference code")
again = later.query("table == 'later_mean_accuracy' and generation == 'G2'")
points = (100 * (again.set_index(keys)["value"] - means)).dropna()
farthest = points.abs().nlargest(3).index
points[farthest].round(2), (points.abs() > 1).sum(), len(points)

# %% [markdown]
# Confidences and accuracies from different samples do not belong together, so the other pages use only *G1*. If `model` is one
# of the paper's and has samples here, the next table has both mean accuracies:

# %%
from capcal_lib.results import load_results

results = load_results(page.counting.store, model, held_out=False, recipe=None)
mu = (results["correct"] / results["total"]).groupby("dataset").mean()
printed = means[means.index.get_level_values("model") == model]
beside = pd.DataFrame({"printed": printed.droplevel("model"), "here": mu})
show(
    beside.dropna(),
    "Mean expected accuracy, as printed and as counted here.",
    evidence=["reported", page.evidence],
)

# %% [markdown]
# This file has all numbers published later, and `load_reported(source="reference code")` returns them:

# %% label="audit-later"
tables.Html(f"<p>{tables.csv_link(later)} {tables.badge('read off')}</p>")

# %% [markdown]
# ## Summary
#
# - Apart from rounding and the oracle's draws, the paper's tables agree with each other, except on one score that is printed
#   with two values.
# - Most of a probe's lead over what a model says of itself is level, which labels can mend.
# - Draws that all questions share move a success rate by several points.
#
# [Next](10_small_models.ipynb): do the statements hold for the small models that we measured?
#
# ## Exercises
#
# **1 (easy).** Two numbers are printed with four digits. By how much must they differ so that rounding cannot explain it?
# *Hint:* each may be off by 0.00005.

# %% tags=["hide-cell", "solution"]
# Two numbers, each of them rounded
2 * 0.00005

# %% [markdown]
# **2 (medium).** Which statements would change their verdict if *most* meant three quarters? *Hint:* `claims` has the wording,
# `comparisons` the results.

# %% tags=["hide-cell", "solution"]
# The share of comparisons that holds, by statement
share = comparisons["result"].eq("holds").groupby(comparisons["says"]).mean()
most = claims["wording"].reindex(share.index).eq("most")
share[most & (share < 0.75)].round(2)

# %% [markdown]
# **3 (hard).** Let $\mu$ be uniform on $[0, 1]$. With ten shared draws, what is the standard deviation of the success at one
# sample? Does it fall with the number of questions? *Hint:* it is the mean of ten uniform positions.

# %% tags=["hide-cell", "solution"]
# The mean of ten uniform positions, simulated and by the formula
positions = np.random.default_rng(0).random((10_000, 10))
float(positions.mean(axis=1).std()), float(np.sqrt(1 / 12 / 10))
