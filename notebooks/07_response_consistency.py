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
# On the [previous page](06_budget_allocation.ipynb) we spent samples to solve a question. Samples can also vote on its answer,
# and their agreement is a confidence. How many votes does that take, and which samples may judge it?

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of the exercises

# %%
from capcal_lib.book.page import EndOfPage, finding, open_page, show_runs
from capcal_lib.book.tables import show
from capcal_lib.results.results import results_of

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)
show_runs(page, printed=["table-6"])

# %% [markdown]
# ## How a vote becomes a confidence
#
# Response consistency lets $k_c$ samples of a question vote. The confidence is the winner's share of the votes. Take the
# first ten answers to one question, or the first five if its data set has fewer than twelve samples a question:

# %%
import pandas as pd
from capcal_lib.confidence import read_answers
from capcal_lib.studies import response_consistency as study

results = results_of(page.counting)
answers = {
    name: read_answers(run, k=k_eval, verdicts=verdicts)
    for name, run in page.runs["run"].items()
}
answers = pd.concat(answers, names=["dataset"])
numbers = study.votes_of_datasets(answers)  # ten or five votes
if numbers.empty:
    raise EndOfPage(
        "Five votes and two samples to judge them take seven samples a question, and no run has so many. To draw them: capcal sample --k 7"
    )

# %%
shown, k_c = numbers.index[0], numbers.iloc[0]
table = answers.loc[shown].pivot(index="question_id", columns="sample_index")
drawn = table["verdict"].notna().sum(axis="columns")
table = table[drawn >= k_c + 2]  # k_c votes and two to judge
first = table["canonical"].iloc[:, :k_c].to_numpy()
pd.Series(first[0]).value_counts(dropna=False)

# %% [markdown]
# The first answer wins a tie, and a sample without an answer is a vote for nobody. Here are the winner and its share, and then
# the shares for five questions:

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
# The authors' code compares a vote with $\hat\mu$ of *all* samples (*same pool*), so the vote is part of its own target.
# Alternatively, only the samples that did not vote judge (*held-out*). Both scores subtract the noise of $\hat\mu$, its squared
# standard error:

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
# The votes above are one draw. `score_votes` averages over a hundred draws of the $k_c$ voters. At least two samples are left
# to judge.

# %%
corrected = protocol == "corrected"
terms = study.score_votes(answers, corrected=corrected)
terms.head().round(3)

# %% [markdown]
# Under the paper's protocol only the first $k_c$ samples vote, a question without an answer among them gets 0.5, and no noise
# is subtracted.

# %%
judge = "held-out"
if protocol == "paper":
    judge = "first votes"
    terms[judge] = study.score_first_votes(page.counting)

# %% [markdown]
# Each data set keeps the questions with enough samples for its largest number of votes:

# %%
wide = terms.unstack("votes", sort=False)
numbers = wide[judge].count(axis="columns")
whole = wide[numbers == numbers.groupby("dataset").transform("max")]
by_votes = whole[judge].groupby("dataset", sort=False).mean()
by_votes.rename(page.runs["title"])

# %% tags=["finding"]
from capcal_lib.text import in_words

complete = by_votes.dropna()  # with enough samples for each number of votes
few, many = by_votes.columns.min(), by_votes.columns.max()
finding(
    "Averaged over {sets} of the data sets, the score is {few:.3f} with five votes and {many:.3f} with {most}; lower is better.",
    sets=in_words(len(complete)),
    few=complete[few].mean(),
    many=complete[many].mean(),
    most=in_words(int(many)),
)

# %% [markdown]
# The rival is the best constant, the mean accuracy of the other questions, which costs nothing. The [page of the small
# models](09_statements.ipynb) tests whether ten votes are closer.

# %%
from capcal_lib.results import brier_terms

rival = brier_terms(results, protocol=protocol)["Best constant"]
constant = rival.reindex(whole.index).groupby("dataset", sort=False).mean()

# %% tags=["picture"] label="fig-consistency" mystnb={"image": {"alt": "Dot plot of scores with a row for each data set, a dot for each number of votes and a tick for the best constant."}}
import seaborn as sns
from capcal_lib import plots

shades = sns.light_palette(plots.method_color("Response consistency"), 5)[2:]
dots = by_votes.rename(page.runs["title"]).stack().reset_index(name="score")
style = {"palette": shades[: by_votes.shape[1]], "size": 8, "jitter": False}
ax = sns.stripplot(dots, x="score", y="dataset", hue="votes", **style)
ax.plot(constant, range(len(constant)), "k|", ms=14, mew=2)
ax.set(xlabel="capability Brier score", ylabel="")
ax.grid(visible=True, axis="y")
sns.move_legend(ax, "upper left", bbox_to_anchor=(1, 1))

# %% [markdown]
# Capability Brier score of response consistency by number of votes; lower is better. Ticks are the best constant on the same
# questions.

# %% [markdown]
# The *majority* of a question is the most frequent answer among all its samples. How often is it wrong, and what do ten votes
# cost?

# %% label="consistency-table"
majorities = study.find_majorities(answers)
wrong = majorities[whole.index] == "wrong"
table = by_votes.add_suffix(" votes")
table["best constant"] = constant
table["questions"] = whole.groupby("dataset").size()
samples = results["total"].reindex(whole.index)
table["samples"] = samples.groupby("dataset").min()
table["tokens of 10 votes"] = 10 * page.runs["tokens"]
table["wrong majority"] = wrong.groupby("dataset").mean()
show(
    table,
    f"Score of votes ({judge}; {protocol} protocol; lower is better), and the share of questions with a wrong majority.",
    **{"tokens of 10 votes": "{:,.0f}", "wrong majority": "{:.0%}"},
    evidence=page.evidence,
)

# %% [markdown]
# ## Why more votes score lower
#
# With more votes the share varies less from draw to draw. Its mean also falls towards the accuracy: with few votes, chance
# often gives the winner more votes than its probability deserves. The variance between two draws of the same question shows
# the first effect:

# %% label="consistency-why"
means = whole.groupby("dataset", sort=False).mean()
mu = (results["correct"] / results["total"]).reindex(whole.index)
why = pd.DataFrame({"the score falls by": by_votes[few] - by_votes[many]})
why["part due to less noise"] = means["noise"][few] - means["noise"][many]
why["accuracy"] = mu.groupby("dataset").mean()
show(
    why.join(means["share"].add_prefix("mean share of ")),
    f"From {few} votes to {many}: the fall of the score, the part due to less noise in the vote (a dash if the samples "
    "are too few for two draws), and the mean share beside the mean accuracy.",
    evidence=page.evidence,
)

# %% [markdown]
# Do more votes make a wrong majority look surer? On average they cannot. Split twenty votes into halves: in each half the
# overall winner has at most as many votes as the winner of that half. So the share falls, whether the winner is right or wrong:

# %% label="consistency-wrong-majority"
by_side = whole["share"].groupby(["dataset", majorities], sort=False)
shares = by_side.mean().add_suffix(" votes")
shares.insert(0, "questions", by_side.size())
show(
    shares,
    "Mean share of the winning answer, for questions with a right and with a wrong majority.",
    evidence=page.evidence,
)

# %% [markdown]
# ## What the paper reports
#
# The paper prints plug-in scores for 5, 10 and 20 votes, without intervals.

# %% label="consistency-reported"
from capcal_lib.book.tables import titled
from capcal_lib.reported import load_reported

printed = titled(load_reported("consistency"))
printed = printed.rename(columns={"k": "votes"}).astype({"votes": int})
table = printed.pivot_table("value", ["model", "votes"], "dataset", sort=False)
show(
    table,
    "Response consistency as printed in the paper (lower is better).",
    digits=4,
    evidence="reported",
)

# %% [markdown]
# How many of these pairs of model and data set score worse with 20 votes than with 5?

# %%
rises = table.xs(20, level="votes") > table.xs(5, level="votes")
rises.stack().agg(["sum", "size"])

# %% [markdown]
# ## Summary
#
# - More votes score lower on the data sets measured here, and the second doubling helps less than the first. The paper's table
#   mostly agrees.
# - A wrong majority does not look surer with more votes. Its share falls, but stays above the accuracy.
# - A vote looks slightly too good if its own samples judge it. Holding the votes out removes this, but leaves fewer samples
#   to judge.
#
# Votes need ten answers first. A probe needs none. On the [next page](08_probe_generalization.ipynb) we ask where a probe works
# and where it fails.
#
# ## Exercises
#
# **1 (easy).** Four samples answer 4, 4, 5 and nothing at all. What is the confidence? *Hint:* what counts as a vote?

# %% tags=["hide-cell", "solution"]
# Four samples, one without an answer
consistency([["4", "4", "5", None]])

# %% [markdown]
# **2 (medium).** A model answers B with probability 0.5, A with 0.3 and C with 0.2, and A is right. What do the confidence and
# its squared error approach as votes are added? *Hint:* which answer wins, and what is $\mu$?

# %% tags=["hide-cell", "solution"]
# Each question has a wrong majority
import numpy as np

rng, means = np.random.default_rng(seed), {}
votes = rng.choice(["A", "B", "C"], p=[0.3, 0.5, 0.2], size=(2_000, 100))
for k_c in (5, 20, 100):
    vote = consistency(votes[:, :k_c].tolist())
    means[k_c] = vote.mean(), ((vote - 0.3) ** 2).mean()
pd.DataFrame(means, ["confidence", "squared error"])

# %% [markdown]
# **3 (hard).** A model is right with probability 0.9 and otherwise always gives the same wrong answer. Ten of 100 samples
# vote. How much does sharing flatter them? *Hint:* the vote is nearly the share of correct voters, whose variance is
# $0.9 \cdot 0.1 / 10$.

# %% tags=["hide-cell", "solution"]
# Ten votes: all samples judge, minus the other ninety. Below zero: flattered
from capcal_lib.metrics import capability_brier

right = rng.random((20_000, 100)) < 0.9
vote = consistency(right[:, :10].tolist())
pool, rest = right.sum(axis=1), right[:, 10:].sum(axis=1)
shared = capability_brier(vote, pool, 100, corrected=True)
apart = capability_brier(vote, rest, 90, corrected=True)
shared - apart, -2 * (10 / 100) * 0.9 * 0.1 / 10
