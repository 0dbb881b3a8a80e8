# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Response consistency: how many votes?
#
# [Before](06_budget_allocation.ipynb) samples were spent to solve a question. They may also vote on its answer, and how many of them
# agree is a confidence: how many votes does it take, and which samples may judge it?

# %% tags=["parameters"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of the exercises

# %% tags=["provenance"]
from capcal_lib.book.lesson import open_page

page = open_page(globals(), paper=["table-6"])

# %% [markdown]
# ## How a vote becomes a confidence
#
# Response consistency lets $k_c$ samples of a question vote, and takes the share of the winning answer as the confidence. These
# are the first ten answers to one question, or five where no question has twelve samples, in a form in which equal answers are
# equal texts:

# %%
import pandas as pd
from capcal_lib.confidence import read_answers
from capcal_lib.studies import response_consistency as study

results = page.results()
answers = {
    name: read_answers(run, k=k_eval, verdicts=verdicts)
    for name, run in page.data["run"].items()
}
answers = pd.concat(answers, names=["dataset"])
numbers = study.votes_of_datasets(answers)  # ten, or five of fewer samples
if numbers.empty:
    page.end(
        "Five votes and two held-out samples make seven a question, and no run has as many: capcal sample --k 7."
    )

# %%
shown, k_c = numbers.index[0], numbers.iloc[0]
table = answers.loc[shown].pivot(index="question_id", columns="sample_index")
drawn = table["verdict"].notna().sum(axis="columns")
table = table[drawn >= k_c + 2]  # so many votes and two more
first = table["canonical"].iloc[:, :k_c].to_numpy()
pd.Series(first[0]).value_counts(dropna=False)

# %% [markdown]
# The winner, of several the first, and its share, and the same for all questions; a sample without an answer counts as a vote for
# nobody.

# %%
from capcal_lib.confidence import majority

majority(first[0])

# %%
from capcal_lib.confidence.consistency import consistency

confidence = consistency(first)
confidence[:5]

# %% [markdown]
# ## Who judges a vote?
#
# With many samples at hand it is tempting to let some of them vote, and to compare the vote with $\hat\mu$ of all of them, as
# the authors' code does (*same pool*). But then the vote is part of its own target. The other way is to compare with $\hat\mu$ of
# the samples that did not vote (*held-out*). These votes, scored in both ways; what the noise of $\hat\mu$ adds is its squared
# standard error, and is subtracted:

# %%
correct = table["correct"]  # a column a sample
same_pool = (confidence - correct.mean(axis=1)) ** 2 - correct.sem(axis=1) ** 2
others = correct.iloc[:, k_c:]
held_out = (confidence - others.mean(axis=1)) ** 2 - others.sem(axis=1) ** 2
both = pd.DataFrame({"same pool": same_pool, "held-out": held_out}).dropna()
both.mean()

# %% [markdown]
# ## How many votes?
#
# These votes are one draw. `score_votes` lets a hundred random choices of $k_c$ samples vote, and averages the terms of a question
# over them, as the main table does: no spare samples are needed, and the two ways differ in nothing else. At least two samples
# have to be left when the votes are taken.

# %%
corrected = protocol == "corrected"
terms = study.score_votes(answers, corrected=corrected)
terms.head().round(3)

# %% [markdown]
# By the paper's protocol the first votes alone are taken, a question where none of them is an answer has 0.5, and nothing is
# subtracted; so does `capcal reproduce --recipe paper`.

# %%
judge = "held-out"
if protocol == "paper":
    judge = "first votes"
    terms[judge] = study.score_first_votes(page.counting)

# %% [markdown]
# More votes are compared with fewer on the same questions, those that have samples enough for the most votes of their data set:

# %%
wide = terms.unstack("votes", sort=False)
numbers = wide[judge].count(axis="columns")
whole = wide[numbers == numbers.groupby("dataset").transform("max")]
by_votes = whole[judge].groupby("dataset", sort=False).mean()
by_votes.rename(page.data["title"])

# %% tags=["finding"]
from capcal_lib.text import counted

complete = by_votes.dropna()  # with samples enough for each number of votes
few, many = by_votes.columns.min(), by_votes.columns.max()
page.finding(
    "Averaged over {sets}, the score is {few:.3f} with the fewest votes, 5, and {many:.3f} with the most, {most}; lower is better.",
    sets=counted(len(complete), "data set"),
    few=complete[few].mean(),
    many=complete[many].mean(),
    most=int(many),
)

# %% [markdown]
# The rival is the best constant, the mean accuracy of the other questions, which costs nothing. Whether ten votes are closer is
# judged with all other methods and data sets on the [page of the small models](10_small_models.ipynb).

# %%
from capcal_lib.results import brier_terms

rival = brier_terms(results, protocol=protocol)["Best constant"]
constant = rival.reindex(whole.index).groupby("dataset", sort=False).mean()

# %% tags=["picture"] label="fig-consistency" paper=["table-6", "appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"] mystnb={"image": {"alt": "Dot plot with one row for each data set and a dot for each number of votes, the score along the axis, and a tick in each row for the best constant."}}
import seaborn as sns
from capcal_lib import plots

shades = sns.light_palette(plots.method_color("Response consistency"), 5)[2:]
dots = by_votes.rename(page.data["title"]).stack().reset_index(name="score")
look = {"palette": shades[: by_votes.shape[1]], "size": 8, "jitter": False}
ax = sns.stripplot(dots, x="score", y="dataset", hue="votes", **look)
ax.plot(constant, range(len(constant)), "k|", ms=14, mew=2)
ax.set(xlabel="capability Brier score", ylabel="")
ax.grid(visible=True, axis="y")
sns.move_legend(ax, "upper left", bbox_to_anchor=(1, 1))

# %% [markdown] tags=["caption"]
# Capability Brier score of response consistency (lower is better) with 5, 10 and 20 votes, as far as the samples go, on the
# questions that have samples enough for the most votes shown. Votes have no part in the expected accuracy unless the page follows
# the paper. Ticks: the best constant on the same questions.

# %% [markdown]
# Where the most frequent answer of all samples is wrong, the *majority* is wrong. How often is it, and what do ten votes cost?

# %% label="consistency-table" paper=["table-6", "appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"]
majorities = study.find_majorities(answers)
wrong = majorities[whole.index] == "wrong"
table = by_votes.add_suffix(" votes")
table["best constant"] = constant
table["questions"] = whole.groupby("dataset").size()
samples = results["total"].reindex(whole.index)
table["samples"] = samples.groupby("dataset").min()
table["tokens of 10 votes"] = 10 * page.data["tokens"]
table["wrong majority"] = wrong.groupby("dataset").mean()
page.show(
    table,
    f"Score of votes ({judge}; {protocol} protocol; lower is better), and the share of questions on which the majority of all samples "
    "is wrong.",
    **{"tokens of 10 votes": "{:,.0f}", "wrong majority": "{:.0%}"},
)

# %% [markdown]
# ## Why more votes score lower
#
# Two things change with $k_c$: the share of one draw of votes lies closer to its mean over draws, and this mean lies closer to
# the accuracy. The first can be seen if a question has samples for two draws: it is the variance of the share from draw to draw.
# The rest is level, since the largest of few shares is mostly too large. On the questions of the table above:

# %% label="consistency-why" paper=["appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"]
means = whole.groupby("dataset", sort=False).mean()
mu = (results["correct"] / results["total"]).reindex(whole.index)
why = pd.DataFrame({"the score falls by": by_votes[few] - by_votes[many]})
why["of that less noise"] = means["noise"][few] - means["noise"][many]
why["accuracy"] = mu.groupby("dataset").mean()
page.show(
    why.join(means["share"].add_prefix("mean share of ")),
    f"From {few} votes to {many}: what the score falls by, what of it is less noise of the vote (a dash if the samples "
    "are too few for two draws), and the mean share beside the mean accuracy that it should have.",
)

# %% [markdown]
# Does a wrong majority grow surer of itself with more votes? It cannot on average: in each half of twenty votes, their winner
# has no more votes than the half's own winner. So the share falls, whether the winner is right or wrong:

# %% label="consistency-wrong-majority" paper=["appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"]
by_side = whole["share"].groupby(["dataset", majorities], sort=False)
shares = by_side.mean().add_suffix(" votes")
shares.insert(0, "questions", by_side.size())
page.show(
    shares,
    "Mean share of the winning answer, where the majority of all samples is right and where it is wrong.",
)

# %% [markdown]
# ## How much shared samples flatter
#
# *Optimism* is how much better votes look when they are scored on their own samples. In expectation it is twice the covariance of a
# vote with the $\hat\mu$ that it is part of, and that is $k_c / n$ of its covariance with the accuracy of its own block, $n$ being
# the samples in $\hat\mu$. No question's can be large: one sample more or less moves the share of $k_c$ votes by at most $1/k_c$,
# and by the inequality of Efron and Stein, which bounds a variance by what drawing one sample anew changes, optimism is expected to lie
# within $0.71/n$ of 0 on every question. Its interval is that of a mean with these bounds, and all rows of the table are judged
# together by Holm's method: *better* is flattered. The noise of $\hat\mu$ is subtracted by either protocol, since the fewer samples
# that are held out have more of it.

# %%
votes = terms if corrected else study.score_votes(answers)
flattered = (votes["held-out"] - votes["same pool"]).unstack("votes")
flattered.groupby(["dataset", results["total"]]).mean().round(4)

# %% [markdown]
# On a data set whose questions have different numbers of samples, optimism is larger with fewer samples: it falls as $1/n$. So the
# table takes of each data set the questions with the most samples, and says how many these are. Compare rows with the same number of
# samples only. With 100 samples, as in the paper, optimism is about an eighth of what it is with twelve.

# %% label="consistency-optimism" paper=["appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"]
from capcal_lib.book import tables

optimism = study.judge_optimism(votes, results["total"])
page.show(
    optimism.rename(columns={"estimate": "optimism"}),
    "Optimism of votes, held-out less same pool, on the questions with the most samples: how many define the accuracy, the 95 % "
    "interval of each row alone, and the verdict after Holm.",
    digits=4,
    **{"p": tables.p_value, "p (Holm)": tables.p_value},
)

# %% [markdown]
# ## What the paper reports
#
# The paper prints scores for 5, 10 and 20 votes, without intervals. They are plug-in scores: the noise of $\hat\mu$ is
# not subtracted.

# %% label="consistency-reported" paper=["table-6", "appendix-c.3"] evidence=["reported"] reads=["consistency"]
from capcal_lib.reported import load_reported

printed = tables.titled(load_reported("consistency"))
printed = printed.rename(columns={"k": "votes"}).astype({"votes": int})
table = printed.pivot_table("value", ["model", "votes"], "dataset", sort=False)
tables.show(
    table,
    "Response consistency as printed in the paper (lower is better).",
    digits=4,
    evidence="reported",
)

# %% [markdown]
# Of how many pairs of a model and a data set does the score rise from 5 to 20 votes, which is worse, and how many are there?

# %%
rises = table.xs(20, level="votes") > table.xs(5, level="votes")
rises.stack().agg(["sum", "size"])

# %% [markdown]
# ## Summary
#
# - More votes score lower on the data sets measured here, and the second doubling buys less than the first: the largest of few
#   shares is too large. In the paper's table both are mostly so, but not always.
# - A wrong majority is no stronger for more votes; its share falls, but not to the accuracy.
# - A vote that shares samples with its target looks a little better than it is, and the less so the more samples there are; the
#   table of optimism shows on which data sets this is significant. Holding its samples out costs nothing.
# - After ten answers it is too late to save the cost of one.
#
# A probe costs no answer at all. [Next](08_probe_generalization.ipynb): where does it work, and where not?
#
# ## Exercises
#
# **1 (easy).** Four samples answer 4, 4, 5 and nothing at all. What is the confidence? *Hint:* who counts as a vote?

# %% tags=["hide-cell", "solution"]
# Four samples, one of which says nothing
page.solution(consistency([["4", "4", "5", None]]))

# %% [markdown]
# **2 (medium).** A model answers B with probability 0.5, A with 0.3 and C with 0.2, and A is right. Where does the
# confidence go with more votes, and where its squared error? Which row of the tables above is such a model? *Hint:* which answer
# wins, and what is $\mu$?

# %% tags=["hide-cell", "solution"]
# Votes drawn from three answers, by their number: as where the majority is wrong
import numpy as np

rng, means = np.random.default_rng(seed), {}
votes = rng.choice(["A", "B", "C"], p=[0.3, 0.5, 0.2], size=(2_000, 100))
for k_c in (5, 20, 100):
    vote = consistency(votes[:, :k_c].tolist())
    means[k_c] = vote.mean(), ((vote - 0.3) ** 2).mean()
page.solution(pd.DataFrame(means, ["confidence", "squared error"]))

# %% [markdown]
# **3 (hard).** A model is right with probability 0.9, and otherwise always gives the same wrong answer. How much does
# sharing flatter ten votes among 100 samples? *Hint:* the vote is nearly the accuracy of its block, with variance
# $0.9 \cdot 0.1 / 10$. The block is a tenth of the samples in $\hat\mu$, so that a tenth of this variance is the covariance of the two,
# and optimism is twice that. Check it with `capability_brier`.

# %% tags=["hide-cell", "solution"]
# Ten votes scored on all samples, and on the others only
from capcal_lib.metrics import capability_brier

right = rng.random((20_000, 100)) < 0.9
vote = consistency(right[:, :10].tolist())
pool, rest = right.sum(axis=1), right[:, 10:].sum(axis=1)
shared = capability_brier(vote, pool, 100, corrected=True)
apart = capability_brier(vote, rest, 90, corrected=True)
page.solution(shared - apart, -2 * (10 / 100) * 0.9 * 0.1 / 10)
