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
# Do the paper's printed numbers bear out what its text says? [On the previous page](08_probe_generalization.ipynb) we measured
# where a probe works. This page measures nothing new. A number is *reported* if the paper prints it, and *read off* if we took
# it from the paper's curves or from what the authors published later.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`; it may be the paper's
store: str = "runs/recorded"  # run store, from here or from the root
seed: int = 42  # the first of the ten seeds of the reference code

# %% tags=["provenance"]
from capcal_lib.book import tables
from capcal_lib.book.lesson import open_lesson

page = open_lesson(globals())
marks = tables.badge("reported") + " " + tables.badge("read off")
tables.Html(
    f"<p class='capcal-about'><strong>The paper's printed numbers</strong> {marks}</p>"
)

# %% [markdown]
# A statement is a clause of the paper that says how methods, models or data sets compare. We took every such clause of the
# abstract, sections 4 and 5, appendices B to D and the captions. We left out definitions, theorems, the choice of settings and,
# except in the abstract, clauses that only repeat another one. A clause that asks two questions has two rows.
# `data_manifests/claims.yaml` lists every row with its line in the paper.

# %%
from capcal_lib.claims import load_claims

claims = load_claims()
claims[["place", "quote", "wording"]].head()

# %% [markdown]
# We turn each statement into comparisons of two printed numbers. Each comparison says that the first number is lower. A printed
# 0.0831 can be anything from 0.08305 to 0.08315. So a comparison *holds* or *fails* only if rounding cannot change the result.

# %%
from capcal_lib.claims import compare_printed

comparisons = compare_printed(claims)
comparisons["result"].value_counts()

# %% [markdown]
# How many comparisons have to hold? The paper's wording decides. *Most* means more than half: the paper says "generally",
# "typically", "often" or "most". *Some* means at least one: the paper denies that something always holds. Otherwise *every*
# comparison has to hold.
#
# - *Supported*: as many hold as the wording asks for.
# - *Reversed*: all fail, or more than half if the wording is *most*.
# - *Holds in part*: neither of these, and more hold than fail.
# - *Contradicted in part*: neither of these, and more fail than hold.
# - *Inconclusive*: as many fail as hold, or no printed number bears on the statement.

# %%
from capcal_lib.claims import CLAIM_VERDICTS, judge_claims

claims = judge_claims(claims, comparisons)
tally = claims["verdict"].value_counts().reindex(CLAIM_VERDICTS, fill_value=0)
tally

# %% tags=["finding"]
names = {
    "holds in part": "excepted",
    "contradicted in part": "contradicted",
    "inconclusive": "undecided",
}
counts = tally.rename(names).to_dict()
page.finding(
    "The paper's printed numbers support {supported} of the {claims} statements about its results. Another {excepted} hold in part, and "
    "{contradicted} are contradicted in part.",
    claims=len(claims),
    **counts,
)

# %% tags=["remove-cell"]
from capcal_lib.book.lesson import glue

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

# %% tags=["picture"] label="fig-claims" mystnb={"image": {"alt": "A stacked bar for each statement of the paper: the shares of comparisons that hold, need not hold, are hidden by rounding, and fail. At its end, how many hold."}} paper=["abstract", "section-4.1", "section-4.3.2", "table-2", "figure-3", "figure-4", "appendix-c.3", "appendix-c.4", "table-6", "table-7", "section-5", "section-5.1", "section-5.2", "appendix-d", "table-3", "table-8", "figure-5", "figure-10"] evidence=["reported", "read off", "simulated"] reads=["main", "mean_accuracy", "consistency", "mixing", "passk_math500", "passk_aime25", "budget"]
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

# %% [markdown] tags=["caption"]
# One bar per statement: the share of its comparisons with each result. The number at the right counts the comparisons that
# hold. Every comparison has to hold unless the label says *most* or *some*.

# %% [markdown]
# Some statements could hardly fail: that one response differs from the expected accuracy, that an oracle of the expected
# accuracy predicts best, or that something does *not always* hold. Others depend on our reading. For the tradeoff we take, on
# each data set, whichever of three probes scores lowest. For “rarely binary” we ask whether most questions have $\mu$ between
# .1 and .9, under the Beta distribution that has the two printed moments of a cell. One can also call a question binary if all,
# or none, of a hundred samples are right. In how many cells are fewer than half of the questions binary in this sense?

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
# These statements do not hold throughout, or nothing decides them. The paper prints no number for the last pass@k curves. Its
# text says “most scenarios”, which we quote, and the caption of the figure says “many scenarios”.

# %% label="audit-claims" paper=["section-4.1", "table-2", "figure-9", "section-5.1", "section-5.2", "appendix-c.2", "appendix-d"] evidence=["reported", "read off", "simulated"] reads=["main", "mean_accuracy", "passk_math500", "passk_aime25", "budget"]
others = claims[claims["verdict"] != "supported"].set_index("quote")
columns = ["place", "hold", "verdict", "evidence"]
page.show(
    others.rename_axis("the paper says")[columns],
    "Statements that are not fully supported.",
)

# %% [markdown]
# And here are all statements, with our reading of each:

# %% label="audit-clauses" paper=["abstract", "section-4.3.2", "table-7", "appendix-c.3", "appendix-c.4"] evidence=["reported", "read off", "simulated"] reads=["main", "mean_accuracy", "consistency", "mixing", "passk_math500", "passk_aime25", "budget"]
columns = ["quote", "place", "wording", "hold", "verdict", "evidence"]
page.show(
    claims[columns].rename_axis("read as").rename(columns={"quote": "clause"}),
    "Every statement: the clause of the paper, and how we read it.",
)

# %% [markdown]
# ## What does the main table compare?
#
# The paper's methods are “spanning both training-free and training-based techniques” (section 1). Verbalized confidence is
# scored as stated: “We instruct the LLM to report a probability” (section 4.2). A probe learns from labels: “We train linear
# probes on LLMs' internal representations to predict query-level confidence” (section 4.2). So the table sets a method that has
# seen thousands of labels beside methods that have seen none. It mixes two things: what a method *knows* about a question, and
# the *level* of its confidences. A few labels can mend the level.
#
# Later the authors published recalibrated scores of the same samples. They recalibrated verbalized confidence and P(True) by
# isotonic regression on the training set of a probe, so all three have seen the same labels. How much of the probe's lead on
# its own data set is left?

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

# %% label="audit-level" paper=["table-2", "section-4.2", "section-4.3.2"] evidence=["reported", "read off"] reads=["main", "mean_accuracy", "recalibrated"]
cells = lead.index.droplevel("method")
ahead = lead.sub(probe[cells].to_numpy(), axis="index")
closer = lead.lt(constant[cells].to_numpy(), axis="index")
page.show(
    pd.DataFrame(
        {
            "cells": ahead.count(),
            "mean lead of the probe": ahead.mean(),
            "probe is lower": ahead.gt(0).sum(),
            "lower than the best constant": closer.sum(),
        }
    ).rename_axis("what the model says"),
    "Lead of the probe of a data set over what the model says of itself, as printed and recalibrated on the same training set.",
    evidence=["reported", "read off"],
)

# %% [markdown]
# As printed, what a model says of itself seldom beats the best constant. Recalibrated, it nearly always does. So the model
# knows something, and most of the probe's lead was level. The rest is knowledge: the probe is still lower in most cells. The
# [main table](04_main_table.ipynb) and [small models](10_small_models.ipynb) show every method both ways.

# %% [markdown]
# ## Do the tables agree with each other?
#
# The printed mean accuracy and the printed score of Uniform random determine a Beta distribution of $\mu$ for each cell. It
# gives the expected error of Oracle RC, and a band that contains the error in 95 of 100 studies of this size. How many printed
# errors lie in their band? How far off is the farthest, in standard deviations, and how wide are the bands?

# %%
from capcal_lib.reported import expected_from_reported

oracle = expected_from_reported()
oracle["inside"] = oracle["reported"].between(oracle["low"], oracle["high"])
oracle["width"] = oracle["high"] - oracle["low"]
off = (oracle["reported"] - oracle["expected"]).abs()
oracle["apart"] = off / (oracle["width"] / (2 * 1.96))

# %% label="audit-oracle" paper=["table-3", "table-8", "equation-11"] evidence=["reported", "simulated"] reads=["main", "mean_accuracy", "passk_math500", "passk_aime25"]
page.show(
    oracle.groupby("dataset").agg(
        printed=("inside", "size"),
        inside=("inside", "sum"),
        farthest=("apart", "max"),
        width=("width", "mean"),
    ),
    "Printed pass@k errors of Oracle RC, and whether they lie in the band that two other printed numbers imply.",
    evidence=["reported", "simulated"],
)

# %% [markdown]
# All lie in their bands, so the tables agree. But the bands also show how little one exception says. On MATH-500, Probe (MATH)
# fails to beat Oracle RC once:

# %%
one = "model == 'olmo-3-7b-instruct' and dataset == 'math500' and k == 1"
passk = load_reported("passk_math500").query(one).set_index("method")["value"]
(
    passk[["Probe (MATH)", "Oracle RC"]],
    oracle.query(one)[["expected", "low", "high"]],
)

# %% [markdown]
# Oracle RC depends on one random draw a question, and its expected error is nearly that of the probe. So this exception is no
# evidence against the statement. On AIME25, with 30 questions, the bands are several times as wide. In how many of its cells
# does the paper print a lower error for the probe?

# %%
aime = load_reported("passk_aime25").pivot(
    index=["model", "k"], columns="method", values="value"
)
(aime["Probe (MATH)"] < aime["Oracle RC"]).agg(["sum", "size"])

# %% [markdown]
# At $k = 1$ the pass@k error of a confidence, as the paper computes it, *is* its plug-in Brier score. So the paper prints one
# number twice:

# %% label="audit-twice" paper=["table-2", "table-3", "table-8"] evidence=["reported"] reads=["main", "passk_math500", "passk_aime25"]
keys = ["model", "dataset"]
probe = load_reported().query("method == 'Probe (MATH)'").set_index(keys)
once = probe[probe["k"] == 1]["value"]
twice = once.to_frame("pass@1 error")
twice["Brier score"] = probe[probe["table"] == "main"]["value"]
twice["difference"] = (once - twice["Brier score"]).round(4)
page.show(
    twice,
    "Brier score and pass@1 error of Probe (MATH).",
    digits=4,
    evidence="reported",
)

# %% [markdown]
# If the two differ by more than rounding, .0001, the tables come from different runs of the probe or of its targets. Another
# check: the mean accuracies of AIME25 are over 3,000 samples, so they must be whole counts. Are they?

# %%
means = load_reported("mean_accuracy").set_index(keys)["value"]
mean = means.xs("aime25", level="dataset")
((mean * 3000).round() / 3000 - mean).abs().le(0.00005)

# %% [markdown]
# ## Ten draws for all questions
#
# The authors' code simulates with ten seeds how many questions a budget solves. It starts the generator afresh for every
# question and sorts the outcomes, so all questions draw the same positions. Then chance does not average out. Take five
# thousand questions with known means, and draw one sample of each:

# %%
import random

from capcal_lib.applications import success_rate

draws = [random.Random(seed + i).sample(range(100), 1)[0] for i in range(10)]
correct = np.random.default_rng(0).integers(0, 101, 5000)
shared = np.mean([correct > position for position in draws])
exact = success_rate(np.ones(5000, int), correct, np.full(5000, 100))
pd.Series({"ten shared draws": shared, "expected": exact}).round(3)

# %% [markdown]
# With one sample a question, a budget must solve the mean accuracy. In the published curves it solves more:

# %% label="audit-one-sample" paper=["figure-5", "figure-10"] evidence=["read off", "reported"] reads=["budget", "mean_accuracy"]
budget = load_reported("budget", source="reference code").set_index(keys)
even = budget.query("method == 'Uniform allocation' and k == 1")["value"]
solved = even.to_frame("solved at B = 1")
solved["mean accuracy"] = means
solved["points"] = 100 * (even - solved["mean accuracy"])
page.show(
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
# Later the authors put more numbers into their code repository. We keep each with its generation: *G1* are the paper's samples,
# *G2* and *G3* were collected again, and *G3* is partly on other questions. How far are the mean accuracies of *G2* from the
# printed ones, in points? Here are the farthest three, and the number of cells that are more than one point apart:

# %%
later = load_reported(source="reference code")
again = later.query("table == 'later_mean_accuracy' and generation == 'G2'")
points = (100 * (again.set_index(keys)["value"] - means)).dropna()
farthest = points.abs().nlargest(3).index
points[farthest].round(2), (points.abs() > 1).sum(), len(points)

# %% [markdown]
# Numbers of two generations cannot be compared, so this book compares with the paper's own. If `model` is one of the paper's
# and the run store has samples of it, the next table has their mean accuracies beside the printed ones:

# %%
from capcal_lib.results import load_results

results = load_results(page.store, model, held_out=False, recipe=None)
mu = (results["correct"] / results["total"]).groupby("dataset").mean()
printed = means[means.index.get_level_values("model") == model]
beside = pd.DataFrame({"printed": printed.droplevel("model"), "here": mu})
page.show(
    beside.dropna(),
    "Mean expected accuracy, as printed and as counted here.",
    evidence=["reported", page.evidence],
)

# %% [markdown]
# This file has one row for each number that the authors published later, with table, generation and source:

# %% label="audit-later" paper=["section-4.2", "section-4.3", "table-4", "figure-3", "figure-4", "figure-6", "figure-9", "appendix-b.2"] evidence=["read off"] reads=["later_brier", "later_ece", "later_mean_accuracy", "oracle_rc", "passk_actual", "tokens", "spearman", "recalibrated", "few_shot", "k_eval_curve", "temperature", "temperature_accuracy"]
link = tables.csv_link(later, "published_later", "All of them as CSV")
tables.Html(f"<p>{link} {tables.badge('read off')}</p>")

# %% [markdown]
# In Python, `load_reported(source="reference code")` returns them with the source and the precision of each.
#
# ## Summary
#
# - If we allow for rounding and for the oracle's draws, the paper's tables agree with each other. One score that is printed
#   twice differs.
# - The main table compares a trained probe with methods that have seen no labels. Most of the probe's lead is level.
# - Read a statement in its own wording: *generally* allows exceptions, and a plain statement allows none.
# - Draws that all questions share move a success rate by several points and do not average out.
#
# [What each correction changes](15_protocol.ipynb) shows the effect of every difference between this book and the paper.
# [Next](10_small_models.ipynb): do the statements hold for the small models that we measured?
#
# ## Exercises
#
# **1 (easy).** Two numbers are printed with four digits. By how much must they differ so that rounding cannot explain it?
# *Hint:* each may be off by 0.00005.

# %% tags=["hide-cell", "solution"]
# Two numbers, each of them rounded
page.solution(2 * 0.00005)

# %% [markdown]
# **2 (medium).** *Most* means more than half. Which statements would change their verdict if it meant three quarters? *Hint:*
# `claims` has the wording, `comparisons` the results.

# %% tags=["hide-cell", "solution"]
# The share of comparisons that holds, by statement
share = comparisons["result"].eq("holds").groupby(comparisons["says"]).mean()
most = claims["wording"].reindex(share.index).eq("most")
page.solution(share[most & (share < 0.75)].round(2))

# %% [markdown]
# **3 (hard).** Let $\mu$ be uniform on $[0, 1]$. With ten shared draws, what is the standard deviation of the success at one
# sample? Does it fall with the number of questions? *Hint:* it is the mean of ten uniform positions.

# %% tags=["hide-cell", "solution"]
# The mean of ten uniform positions, simulated and by the formula
positions = np.random.default_rng(0).random((10_000, 10))
page.solution(float(positions.mean(axis=1).std()), float(np.sqrt(1 / 12 / 10)))
