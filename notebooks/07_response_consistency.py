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

answers = {
    name: read_answers(run, k=k_eval, verdicts=verdicts)
    for name, run in page.runs["run"].items()
}
answers = pd.concat(answers, names=["dataset"])

# %%
voters = study.votes_of_datasets(answers)  # ten or five
if voters.empty:
    raise EndOfPage(
        "Five votes and two samples to judge them take seven samples a question, and no run has so many with extracted answers. To draw them: capcal sample --k 7; to extract answers of imported samples: capcal import --regrade --store ANOTHER"
    )

# %%
shown, k_c = voters.index[0], voters.iloc[0]
pd.DataFrame({"votes": [k_c]}, [page.runs.loc[shown, "title"]])

# %%
table = answers.loc[shown].pivot(index="question_id", columns="sample_index")
drawn = table["verdict"].notna().sum(axis="columns")
table = table[drawn >= k_c + 2]  # k_c votes and two to judge

# %%
first = table["canonical"].iloc[:, :k_c]
first.iloc[0].value_counts(dropna=False).rename_axis("answer")

# %% [markdown]
# The first answer wins a tie, and a sample without an answer is a vote for nobody. Here are the shares of the winners for five
# questions:

# %%
from capcal_lib.confidence.consistency import consistency

confidence = pd.Series(consistency(first.to_numpy()), first.index)
confidence.head().to_frame("confidence")

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
both.mean().to_frame("score")

# %% [markdown]
# ## How many votes?
#
# The votes above are one draw. `score_votes` averages over a hundred draws of the $k_c$ voters. At least two samples are left
# to judge.

# %%
scores = study.score_votes(answers)
if protocol == "paper":
    scores = study.score_first_votes(page.counting).reindex(scores.index)

# %% [markdown]
# Under the paper's protocol only the first $k_c$ samples vote, a question without an answer among them gets 0.5, and no noise
# is subtracted. Each data set keeps the questions with enough samples for its largest number of votes:

# %%
wide = scores.unstack("votes", sort=False)
numbers = wide.count(axis="columns")
whole = wide[numbers == numbers.groupby("dataset").transform("max")]

# %%
by_votes = whole.groupby("dataset", sort=False).mean()
by_votes.rename(page.runs["title"])

# %%
from capcal_lib.text import in_words

complete = by_votes.dropna()  # with enough samples for each number of votes
few, many = by_votes.columns.min(), by_votes.columns.max()

# %% [markdown]
# The rival is the best constant, the mean accuracy of the other questions, which costs no tokens but needs labels. The [main
# table](04_main_table.ipynb#on-equal-terms) tests whether ten votes are closer, as they are and recalibrated.

# %%
from capcal_lib.results import brier_terms
from capcal_lib.results.results import results_of

results = results_of(page.counting)
rival = brier_terms(results, protocol=protocol)["Best constant"]
constant = rival.reindex(whole.index).groupby("dataset", sort=False).mean()
worse = complete[many] > constant[complete.index]

# %% tags=["finding"]
finding(
    "With {few} votes the score is {start:.3f} on average, and with {many} votes {end:.3f}; lower is better. But even {many} votes, as they are, score worse than the best constant on {worse} data sets.",
    few=in_words(int(few)),
    start=complete[few].mean(),
    many=in_words(int(many)),
    end=complete[many].mean(),
    worse=f"{in_words(int(worse.sum()))} of {in_words(len(worse))}",
)

# %%
import seaborn as sns
from capcal_lib import plots

shades = sns.light_palette(plots.method_color("Response consistency"), 5)[2:]
dots = by_votes.rename(page.runs["title"]).stack().reset_index(name="score")
style = {"palette": shades[: by_votes.shape[1]], "size": 8, "jitter": False}

# %% tags=["picture"] label="fig-consistency" mystnb={"image": {"alt": "Dot plot of scores with a row for each data set, a dot for each number of votes and a tick for the best constant."}}
ax = sns.stripplot(dots, x="score", y="dataset", hue="votes", **style)
ax.plot(constant, range(len(constant)), "k|", ms=14, mew=2)
ax.set(xlabel="capability Brier score", ylabel="")
ax.grid(visible=True, axis="y")
sns.move_legend(ax, "upper left", bbox_to_anchor=(1, 1))

# %% [markdown]
# Capability Brier score of response consistency by number of votes; lower is better. Ticks are the best constant on the same
# questions. A dot left of its tick beats the constant, even without recalibration.

# %% [markdown]
# What do ten votes cost?

# %%
from capcal_lib.book.tables import show

table = by_votes.add_suffix(" votes")
table["best constant"] = constant
table["questions"] = whole.groupby("dataset").size()
table["tokens of 10 votes"] = (10 * page.runs["tokens"]).round()

# %% label="consistency-table"
caption = f"Score of votes ({protocol} protocol; lower is better) beside the best constant on the same questions."
tokens = {"tokens of 10 votes": "{:,.0f}"}
show(table, caption, evidence=page.evidence, **tokens)

# %% [markdown]
# ## Summary
#
# - More votes score lower on the data sets measured here, and the second doubling helps less than the first.
# - As it is, a vote can still score worse than the best constant. [Recalibrate](04_main_table.ipynb#on-equal-terms) it first.
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
pd.Series({"confidence": consistency([["4", "4", "5", None]])[0]})

# %% [markdown]
# **2 (medium).** A model answers B with probability 0.5, A with 0.3 and C with 0.2, and A is right. What do the confidence and
# its squared error approach as votes are added? *Hint:* which answer wins, and what is $\mu$?

# %% tags=["hide-cell", "solution"]
# B wins: its share of the votes approaches 0.5, and the squared error (0.5 - 0.3)^2 = 0.04
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
shared = capability_brier(vote, right.sum(axis=1), 100, corrected=True)
apart = capability_brier(vote, right[:, 10:].sum(axis=1), 90, corrected=True)
formula = -2 * (10 / 100) * 0.9 * 0.1 / 10
pd.Series({"simulated": shared - apart, "formula": formula})
