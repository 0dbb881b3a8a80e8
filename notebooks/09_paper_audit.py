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
# [Before](08_probe_generalization.ipynb) we measured where a confidence is worth something. What does the paper say of that,
# and do its own printed numbers bear it out? Nothing on this page is measured, but for samples of the paper's models in the
# run store: *reported* is what is printed in the paper, *read off* what was taken from its curves, or from what its authors
# published later.

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
# A statement is one clause of the paper. To find them all we read its abstract, sections 4 and 5, and the appendices B to D, with the
# captions of tables and figures, and took every clause that says how methods, models or data sets compare. We left out definitions
# and theorems, the choice of settings ($k_\mathrm{eval}$ has [its own page](02_k_eval_choice.ipynb)), and clauses that only repeat another,
# as those of the introduction and the conclusion do; the abstract's we kept. A clause that asks two questions has a row for each. Each
# row stands, with its line in the paper, in `data_manifests/claims.yaml`.

# %%
from capcal_lib.claims import load_claims

claims = load_claims()
claims[["place", "quote", "wording"]].head()

# %% [markdown]
# It is taken apart into comparisons of two printed numbers, of which it says that the first is lower. A number printed
# as 0.0831 was anything from 0.08305 to 0.08315, so a comparison *holds* or *fails* only where rounding cannot change it.

# %%
from capcal_lib.claims import compare_printed

comparisons = compare_printed(claims)
comparisons["result"].value_counts()

# %% [markdown]
# The paper's own wording decides how many must hold: *every* one; *most*, which is more than half, where it says "generally", "typically", "often" or "most";
# *some*, where it denies that something is always so. A statement is *supported* if as many hold as its wording asks for, and
# *reversed* if as many fail. Between the two it *holds in part* if more comparisons hold than fail, and is *contradicted in part* if more
# fail than hold. It is *inconclusive* if as many fail as hold, or if no printed number bears on it.

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
    "The paper's printed numbers support {supported} of {claims} statements that it makes about its results, and {excepted} more hold in "
    "part. They contradict {contradicted} in part, and reverse {reversed}.",
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
from capcal_lib.book import style
from capcal_lib.claims import label_results

colors = {
    "fails": style.VERDICT_COLORS["reversed"],
    "hidden by rounding": style.VERDICT_COLORS["inconclusive"],
    "need not hold": style.GRID,
    "holds": style.VERDICT_COLORS["supported"],
}
labelled = label_results(comparisons, claims["wording"])

# %% tags=["picture"] label="fig-claims" mystnb={"image": {"alt": "Stacked bars, one for each statement of the paper, from the share of comparisons that fails to the share that holds, with the number of those that hold at the end of each bar."}} paper=["abstract", "section-4.1", "section-4.3.2", "table-2", "figure-3", "figure-4", "appendix-c.3", "appendix-c.4", "table-6", "table-7", "section-5", "section-5.1", "section-5.2", "appendix-d", "table-3", "table-8", "figure-5", "figure-10"] evidence=["reported", "read off", "simulated"] reads=["main", "mean_accuracy", "consistency", "mixing", "passk_math500", "passk_aime25", "budget"]
import seaborn as sns

bars = {"multiple": "fill", "discrete": True, "shrink": 0.75, "alpha": 1}
colored = {"hue": "result", "hue_order": colors, "palette": colors}
axes = sns.histplot(labelled, y="claim", **colored, **bars)
axes.figure.set_figheight(9.6)
for row, says in enumerate(comparisons["says"].unique()):
    axes.text(1.02, row, claims.loc[says, "hold"], va="center", size=9)
axes.set(xlabel="share of comparisons", ylabel="")
sns.move_legend(
    axes, "upper center", bbox_to_anchor=(0.1, -0.055), ncols=4, title=""
)

# %% [markdown] tags=["caption"]
# What the paper says, and how many comparisons of two printed numbers bear it out: their share, and their number at the right.
# By the paper's wording all have to hold; where it says so, most or some.

# %% [markdown]
# Some of these statements could hardly have failed: that one response differs from the expected accuracy, that an oracle of the
# expected accuracy predicts best, or that something does *not always* hold. Others rest on a choice. The tradeoff takes the lowest of
# three probes on each data set, chosen by the scores themselves. That outputs are “rarely binary” we read as $\mu$ between .1
# and .9 on most questions, under a Beta distribution with the two printed moments of a cell. A stricter reading asks in how many cells
# fewer than half of the questions have all, or none, of a hundred samples right:

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
# The statements below hold only in part, or not, or are not decided; by their clause in the paper. Of the last curves of pass@k it says
# “most scenarios” in the text, as here, and “many scenarios” below the figure; it prints no number of them.

# %% label="audit-claims" paper=["section-4.1", "table-2", "figure-9", "section-5.1", "section-5.2", "appendix-c.2", "appendix-d"] evidence=["reported", "read off", "simulated"] reads=["main", "mean_accuracy", "passk_math500", "passk_aime25", "budget"]
others = claims[claims["verdict"] != "supported"].set_index("quote")
columns = ["place", "hold", "verdict", "evidence"]
page.show(
    others.rename_axis("the paper says")[columns],
    "Statements that are not supported throughout.",
)

# %% [markdown]
# All of them, with the reading in our words and the number of comparisons that the wording asks for:

# %% label="audit-clauses" paper=["abstract", "section-4.3.2", "table-7", "appendix-c.3", "appendix-c.4"] evidence=["reported", "read off", "simulated"] reads=["main", "mean_accuracy", "consistency", "mixing", "passk_math500", "passk_aime25", "budget"]
columns = ["quote", "place", "wording", "hold", "verdict", "evidence"]
page.show(
    claims[columns].rename_axis("read as").rename(columns={"quote": "clause"}),
    "Every statement, as the paper words it and as it is read.",
)

# %% [markdown]
# ## What does the main table compare?
#
# The paper's methods are “spanning both training-free and training-based techniques” (section 1). For verbalized confidence “We instruct
# the LLM to report a probability” (section 4.2), and its main table scores that probability as it is. A probe has learned from labels:
# “We train linear probes on LLMs' internal representations to predict query-level confidence” (section 4.2). So the table sets a
# method that has seen thousands of labels beside methods that have seen none. It mixes what a method *knows* about a question with the
# *level* at which it speaks, and a level is mended with a few labels. That is the authors' choice, and it is how the methods come.
#
# After the paper they published recalibrated scores of the same samples in their code repository: verbalized confidence and P(True)
# after isotonic regression on the training set of a probe. Now both have seen the same labels. What is left of the probe's lead on its
# own data set?

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
    "The probe of a data set against what the model says of itself, as printed and recalibrated on the same training set.",
    evidence=["reported", "read off"],
)

# %% [markdown]
# As printed, what a model says of itself is seldom closer to the accuracy than the best constant. Recalibrated it nearly always is, so
# that it knows something, and most of the probe's lead was level. The rest is knowledge: the probe is still lower in most cells. The
# [main table](04_main_table.ipynb) and [small models](10_small_models.ipynb) show every method both ways.

# %% [markdown]
# ## Do the tables agree with each other?
#
# The mean accuracy and the uniform baseline of a cell determine a Beta distribution of $\mu$, and with it what every draw
# of Oracle RC scores in expectation. Does the printed error lie in the band where 95 of 100 studies of as many questions would
# have it? How many do, how far off is the farthest, in standard deviations, and how wide is the band?

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
    "Printed pass@k errors of Oracle RC beside those that two other printed numbers let one expect.",
    evidence=["reported", "simulated"],
)

# %% [markdown]
# So exceptions weigh differently. On MATH-500, Probe (MATH) fails to beat Oracle RC once:

# %%
one = "model == 'olmo-3-7b-instruct' and dataset == 'math500' and k == 1"
passk = load_reported("passk_math500").query(one).set_index("method")["value"]
(
    passk[["Probe (MATH)", "Oracle RC"]],
    oracle.query(one)[["expected", "low", "high"]],
)

# %% [markdown]
# But Oracle RC is one random draw, with the expectation and the band beside it, so that this exception is no evidence
# against the statement. On AIME25, with 30 questions, the bands are several times as wide. In how many of its cells is the
# probe printed below the oracle?

# %%
aime = load_reported("passk_aime25").pivot(
    index=["model", "k"], columns="method", values="value"
)
(aime["Probe (MATH)"] < aime["Oracle RC"]).agg(["sum", "size"])

# %% [markdown]
# At $k = 1$ the pass@k error of a confidence, as the paper computes it, *is* its plug-in Brier score, so that one number is printed
# twice:

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
# Where the two differ by more than rounding, .0001, the two tables were made from different runs of the probe or of its targets.
# The mean accuracies of AIME25, over 30 questions and 3,000 samples, must be whole counts. Are they?

# %%
means = load_reported("mean_accuracy").set_index(keys)["value"]
mean = means.xs("aime25", level="dataset")
((mean * 3000).round() / 3000 - mean).abs().le(0.00005)

# %% [markdown]
# ## Ten draws for all questions
#
# What a budget solves is simulated in the authors' code with ten seeds. The generator starts afresh for every question and
# the outcomes are sorted, so that all questions draw the same positions, and chance does not average out over questions,
# however many there are. Five thousand questions whose mean is known, one sample each:

# %%
import random

from capcal_lib.applications import success_rate

draws = [random.Random(seed + i).sample(range(100), 1)[0] for i in range(10)]
correct = np.random.default_rng(0).integers(0, 101, 5000)
shared = np.mean([correct > position for position in draws])
exact = success_rate(np.ones(5000, int), correct, np.full(5000, 100))
pd.Series({"ten shared draws": shared, "expected": exact}).round(3)

# %% [markdown]
# One sample a question must solve the mean accuracy. In the published curves it solves more:

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
# The curves are too high, but their order is about right, since all methods share the draws.
#
# ## Published later
#
# After the paper its authors put more numbers into their code repository, each kept here with its generation: *G1* are the
# paper's samples, *G2* and *G3* were collected again, and *G3* partly on other questions. Run again, did the released scripts
# give the mean accuracies that the paper prints? How many points apart are the farthest, and how many are more than one?

# %%
later = load_reported(source="reference code")
again = later.query("table == 'later_mean_accuracy' and generation == 'G2'")
points = (100 * (again.set_index(keys)["value"] - means)).dropna()
farthest = points.abs().nlargest(3).index
points[farthest].round(2), (points.abs() > 1).sum(), len(points)

# %% [markdown]
# Numbers of two generations do not compare, and this book compares with the paper's alone. Where `model` is one of the paper's and
# the run store has samples of it, their mean accuracies stand beside the printed ones in a table here; of any other model there is
# nothing to show:

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
# All that the authors published later, a row a number, with its table, its generation and where it was published:

# %% label="audit-later" paper=["section-4.2", "section-4.3", "table-4", "figure-3", "figure-4", "figure-6", "figure-9", "appendix-b.2"] evidence=["read off"] reads=["later_brier", "later_ece", "later_mean_accuracy", "oracle_rc", "passk_actual", "tokens", "spearman", "recalibrated", "few_shot", "k_eval_curve", "temperature", "temperature_accuracy"]
link = tables.csv_link(later, "published_later", "All of them as CSV")
tables.Html(f"<p>{link} {tables.badge('read off')}</p>")

# %% [markdown]
# In Python `load_reported(source="reference code")` gives them, with the source and the precision of each.
#
# ## Summary
#
# - With rounding and the draws of the oracle taken into account, the paper's tables agree with each other, but for a score that
#   is printed twice and differs.
# - The main table compares a trained probe with methods that are taken as they come. Most of its lead is the level.
# - A statement is read with its own wording: what is said to be generally so may have exceptions, and what is said without
#   such a word may have none.
# - Draws that all questions share move a success rate by several points, and do not average out.
#
# [What each correction changes](15_protocol.ipynb) has the effect of every difference between this book and the paper.
# [Next](10_small_models.ipynb): do the statements hold for the small models that were measured here?
#
# ## Exercises
#
# **1 (easy).** How much lower must one of two numbers printed with four digits be for the difference not to be a matter of
# rounding? *Hint:* each may be off by 0.00005.

# %% tags=["hide-cell", "solution"]
# Two numbers, each of them rounded
page.solution(2 * 0.00005)

# %% [markdown]
# **2 (medium).** *Most* is more than half. Which statements would change their verdict if it were three quarters? *Hint:* `claims` has the
# wording, `comparisons` the results.

# %% tags=["hide-cell", "solution"]
# The share of comparisons that holds, by statement
share = comparisons["result"].eq("holds").groupby(comparisons["says"]).mean()
most = claims["wording"].reindex(share.index).eq("most")
page.solution(share[most & (share < 0.75)].round(2))

# %% [markdown]
# **3 (hard).** With ten shared draws, what is the standard deviation of the success at one sample if $\mu$ is uniform on
# $[0, 1]$? Does it fall with the number of questions? *Hint:* it is the mean of ten uniform positions.

# %% tags=["hide-cell", "solution"]
# Means of ten uniform positions, by simulation and by formula
positions = np.random.default_rng(0).random((10_000, 10))
page.solution(float(positions.mean(axis=1).std()), float(np.sqrt(1 / 12 / 10)))
