# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Response consistency: how many votes?

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of the exercises

# %% tags=["hide-input"]
from collections import Counter

import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import plots
from capcal_lib.applications import deep_samples
from capcal_lib.book import notebook, style, tables
from capcal_lib.confidence import majority, read_answers
from capcal_lib.confidence.consistency import consistency
from capcal_lib.metrics import gains, holm
from capcal_lib.reported import load_reported
from capcal_lib.results import brier_terms, load_results, subjects

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
evidence = notebook.evidence_of(data)
rng = np.random.default_rng(seed)
purples = sns.light_palette(plots.method_color("Response consistency"), 5)[2:]
SHADES = dict(zip((5, 10, 20), purples, strict=True))
options = {"k_eval": k_eval, "verdicts": verdicts}
reason = "Five votes and two held-out samples make seven a question: "
reason += "no run has as many, so nothing here is measured."
enough = len(data) and data["most"].max() >= 7
notebook.about(data, {} if enough else {"samples": reason})

# %% [markdown] needs="samples"
# With a hundred samples at hand it is tempting to let some of them vote, and to compare the vote with $\hat\mu$ of
# all of them, as the authors' code does (*same pool*). But then the vote is part of its own target. The other way is to
# compare with $\hat\mu$ of the samples that did not vote (*held-out*). Each block of $k_c$ samples votes in turn, and
# a question's terms are averaged over its blocks: no spare samples are needed, and the two ways differ in nothing else.

# %%
# needs samples
answers = {}
for dataset, run in data["run"].items():
    rows = read_answers(run, k=k_eval, verdicts=verdicts)
    answers[dataset] = rows.pivot(index="question_id", columns="sample_index")


# %%
def squared_error(confidence, correct):
    """Return each question's error, less the noise of mu_hat if corrected."""
    scored = (~np.isnan(correct)).sum(axis=1)
    total = np.where(scored > 1, scored, np.nan)
    mu = np.nansum(correct, axis=1) / total
    noise = mu * (1 - mu) / (total - 1) if protocol == "corrected" else 0
    return (confidence - mu) ** 2 - noise


# %%
def score_blocks(table, k_c):
    """Let each block of k_c samples vote, and score it in both ways."""
    correct = table["correct"].to_numpy()
    drawn = table["verdict"].notna().to_numpy()
    blocks = []
    for start in range(0, drawn.shape[1] - k_c + 1, k_c):
        block = np.arange(start, start + k_c)
        confidence = consistency(table["canonical"].to_numpy()[:, block])
        others = np.delete(correct, block, axis=1)
        scores = {
            "held-out": squared_error(confidence, others),
            "same pool": squared_error(confidence, correct),
            "share": confidence,
        }
        complete = drawn[:, block].all(axis=1)
        blocks.append(pd.DataFrame(scores, table.index)[complete])
    by_question = pd.concat(blocks).dropna().groupby(level=0)
    scores = by_question.mean()
    scores["noise"] = by_question["share"].var()
    return scores


# %% [markdown] needs="samples"
# Two samples at least have to be left when the votes are taken. Where questions have unlike numbers of samples, those that
# can spare the votes are scored:

# %%
# needs samples
terms = {
    (dataset, k_c): score_blocks(table, k_c)
    for dataset, table in answers.items()
    for k_c in (5, 10, 20)
    if deep_samples(table["verdict"].notna().sum(axis="columns")) > k_c + 1
}
terms = pd.concat(terms, names=["dataset", "votes", "question_id"])
counted = "held-out" if protocol == "corrected" else "same pool"

# %% [markdown] needs="samples"
# More votes are compared with fewer on the same questions, those that have samples enough for the most votes of their data set:

# %%
# needs samples
whole = {}
for dataset, subset in terms.groupby(level="dataset", sort=False):
    of_votes = subset.droplevel("dataset").unstack("votes")
    whole[dataset] = of_votes[of_votes[counted].notna().all(axis=1)]
whole = pd.concat(whole, names=["dataset", "question_id"])
by_votes = whole[counted].groupby(level="dataset", sort=False).mean()

# %% [markdown] needs="samples"
# The rival is the best constant, the mean accuracy of the other questions, which costs nothing. Whether ten votes are closer is
# judged with all other methods and data sets on the [page of the small models](11_small_models.ipynb). *Optimism* is how much
# better votes look when they are scored on their own samples. No question's can be large: one sample more or less moves the
# share of $k_c$ votes by at most $1/k_c$, and so (Efron and Stein) optimism is expected to lie within $0.71/n$ of 0 on every
# question, $n$ being the samples in $\hat\mu$. The interval of optimism is that of a mean with these bounds:

# %%
# needs samples
results = load_results(runs, model, recipe=None, **options)
rival = brier_terms(results, protocol=protocol)["Best constant"]
optimism = {}
for (dataset, k_c), subset in terms.groupby(
    level=["dataset", "votes"], sort=False
):
    ways = subset.droplevel("votes")[["held-out", "same pool"]]
    n = results["total"].reindex(ways.index).min()
    largest = np.sqrt(0.5) / n
    if protocol == "paper":
        largest += 0.25 / (n - k_c)  # noise of the fewer samples held out
    bounds = -largest, largest
    table = gains(ways, "held-out", clusters=subjects(ways), bounds=bounds)
    optimism[dataset, k_c] = table.loc["same pool"]
optimism = pd.DataFrame(optimism).T.rename_axis(["dataset", "votes"])
optimism = holm(optimism.infer_objects())

# %% tags=["hide-input"]
# needs samples
complete = by_votes.dropna()  # with samples enough for each number of votes
flattered = (optimism["estimate"] > 0) & (optimism["p"] < 0.05)
humbled = (optimism["estimate"] < 0) & (optimism["p"] < 0.05)
most = optimism["estimate"].idxmax()
notebook.glue(
    sets=len(complete),
    few_votes=complete[5].mean(),
    many_votes=complete[by_votes.columns.max()].mean(),
    most_votes=int(by_votes.columns.max()),
    largest=optimism["estimate"].max(),
    largest_on=data.loc[most[0], "title"],
    largest_votes=int(most[1]),
    cells=len(optimism),
    flattered=int(flattered.sum()),
    humbled=int(humbled.sum()),
    surely=int((optimism["verdict"] == "better").sum()),
)

# %% tags=["finding"]
# needs samples
notebook.finding("""
Averaged over {sets} data sets, the score falls from {few_votes:.3f} with 5 votes to {many_votes:.3f} with {most_votes}.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Capability Brier score of response consistency (lower is better) with 5, 10 and 20 votes, as far as the samples go, on the questions that have samples enough for the most votes shown. Votes have no part in the expected accuracy unless the page follows the paper. Ticks: the best constant on the same questions.", "name": "fig-consistency"}, "image": {"alt": "Dot plot with one row for each data set and a dot for each number of votes, the score along the axis, and a tick in each row for the best constant."}} paper=["table-6", "appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"]
# needs samples
dots = by_votes.rename(data["title"]).rename_axis("dataset")
dots = dots.reset_index().melt("dataset", value_name="score")
constant = rival.reindex(whole.index).groupby("dataset", sort=False).mean()
axes = sns.stripplot(
    dots.astype({"votes": int}),
    x="score",
    y="dataset",
    hue="votes",
    palette=SHADES,
    size=8,
    jitter=False,
)
axes.plot(constant, range(len(constant)), "k|", ms=14, mew=2)
axes.grid(visible=True, axis="y")
axes.set(xlabel="capability Brier score", ylabel="")
sns.move_legend(axes, "upper left", bbox_to_anchor=(1, 1))

# %%
# needs samples
notebook.say("""
Voting with the samples that also define $\\hat\\mu$ flatters the method significantly in {flattered} of {cells} cases, each a
data set and a number of votes, and makes it look worse in {humbled}; judged together by Holm's method, it flatters in {surely}.
The largest optimism is {largest:.4f}, with {largest_votes} votes on {largest_on}.
""")

# %% [markdown]
# ## What the paper reports
#
# The paper prints scores for 5, 10 and 20 votes, without intervals. They are plug-in scores: the noise of $\hat\mu$ is
# not subtracted.

# %% tags=["hide-input"] label="consistency-reported" paper=["table-6", "appendix-c.3"] evidence=["reported"] reads=["consistency"]
printed = load_reported("consistency")
if model in set(printed["model"]):
    printed = printed.query("model == @model")
printed = tables.titled(printed).rename(
    columns={"k": "votes", "dataset": "data set"}
)
wide = printed.pivot_table(
    index=["model", "votes"], columns="data set", values="value", sort=False
)
tables.show(
    wide.map("{:.4f}".format),
    "Response consistency as printed in the paper (lower is better).",
    evidence="reported",
)

# %% tags=["hide-input"]
change = printed.pivot_table(
    index=["model", "data set"], columns="votes", values="value"
)
notebook.glue(pairs=len(change), rising=int((change[20] > change[5]).sum()))

# %%
notebook.say("""
From 5 to 20 votes the score rises, which is worse, in {rising} of these {pairs} pairs of model and data set, and falls in
the others.
""")

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Scores of response consistency as printed in the paper (plug-in, lower is better), with 5, 10 and 20 votes.", "name": "fig-consistency-reported"}, "image": {"alt": "Dot plot with one row for each data set of the paper, a panel for each model, and a dot for each number of votes."}} paper=["table-6", "appendix-c.3"] evidence=["reported"] reads=["consistency"]
grid = sns.catplot(
    printed.astype({"votes": int}),
    x="value",
    y="data set",
    hue="votes",
    palette=SHADES,
    col="model",
    size=7,
    jitter=False,
    height=3.4,
    aspect=0.7,
)
for axes in grid.axes.flat:
    axes.grid(visible=True, axis="y")
grid.figure.set_figwidth(style.WIDTH)
_ = grid.set_titles("{col_name}").set_axis_labels("score", "")

# %% [markdown] needs="samples"
# ## How a vote becomes a confidence
#
# Response consistency lets $k_c$ samples of a question vote, and takes the share of the winning answer as the
# confidence. These are the first ten answers to one question, in a form in which equal answers are equal texts:

# %%
# needs samples
table = answers[data.index[0]]
first_ten = table["canonical"].iloc[:, :10].to_numpy()
Counter(first_ten[0])

# %% [markdown] needs="samples"
# The winner and its share, and the same for all questions; a sample without an answer counts as a vote for nobody.

# %%
# needs samples
majority(first_ten[0])

# %%
# needs samples
confidence = consistency(first_ten)
confidence[:5]

# %% [markdown] needs="samples"
# These ten votes, scored in both ways on the largest data set:

# %%
# needs samples
correct = table["correct"].to_numpy()
same_pool = squared_error(confidence, correct)
held_out = squared_error(confidence, correct[:, 10:])
float(np.nanmean(same_pool)), float(np.nanmean(held_out))

# %% [markdown] needs="samples"
# One block of votes is one draw; the scores are means over all blocks. Where the most frequent answer of all samples is wrong,
# the *majority* is wrong:


# %%
def wrong_majority(table):
    """Say of each question whether its most frequent answer is wrong."""
    wrong = {}
    for name, votes in table["canonical"].iterrows():
        winner, _ = majority(votes)
        right = table["correct"].loc[name, votes == winner] == 1
        wrong[name] = not right.mean() >= 0.5
    return pd.Series(wrong)


# %%
# needs samples
wrong = {name: wrong_majority(table) for name, table in answers.items()}
wrong = pd.concat(wrong, names=["dataset", "question_id"])

# %% [markdown] needs="samples"
# By the paper's protocol the first votes alone are taken, a question where none of them is an answer has 0.5, and nothing is
# subtracted; so does `capcal reproduce --recipe paper`.

# %%
# needs samples
by_rule = by_votes
if protocol == "paper":
    first = {}
    for votes in by_votes:
        pool = {"k_c": votes, "held_out": False, "recipe": None}
        loaded = load_results(runs, model, **pool, **options)
        terms_of = brier_terms(loaded, protocol=protocol)[
            "Response consistency"
        ]
        first[votes] = terms_of.groupby("dataset").mean()
    by_rule = pd.DataFrame(first).reindex(by_votes.index)

# %% tags=["hide-input"] label="consistency-table" paper=["table-6", "appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"]
# needs samples
wide = by_rule.add_suffix(" votes")
wide["best constant"] = constant
wide["questions"] = whole.groupby(level="dataset").size()
wide["tokens of 10 votes"] = 10 * data["tokens"]
of_whole = wrong.reindex(whole.index).groupby(level="dataset")
wide["wrong majority"] = of_whole.mean()
tables.show(
    wide.rename(data["title"]).rename_axis("data set"),
    f"Score of {counted} votes ({protocol} protocol; lower is better), and the share of "
    "questions whose most frequent answer of all samples is wrong.",
    evidence=evidence,
    **{
        "questions": "{:.0f}",
        "tokens of 10 votes": "{:,.0f}",
        "wrong majority": "{:.0%}",
    },
)

# %% [markdown] needs="samples"
# ## Why more votes score lower
#
# Two things change with $k_c$: the share of one draw of votes lies closer to its mean over draws, and this mean lies closer to
# the accuracy. The first can be seen where there are several blocks of a question: it is the variance of the share over them.
# The rest is level, since the largest of few shares is mostly too large. On the questions of the table above:

# %%
# needs samples
few, many = by_votes.columns.min(), by_votes.columns.max()
means = whole.groupby(level="dataset", sort=False).mean()
why = pd.DataFrame(
    {
        "the score falls by": by_votes[few] - by_votes[many],
        "of that less noise": means["noise"][few] - means["noise"][many],
    }
)
mu = results.eval("correct / total").reindex(whole.index)
why["accuracy"] = mu.groupby(level="dataset").mean()
why = why.join(means["share"].add_prefix("mean share of "))

# %% tags=["hide-input"] label="consistency-why" paper=["appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"]
# needs samples
tables.show(
    why.rename(data["title"]).rename_axis("data set"),
    f"From {few} votes to {many}: what the score falls by, what of it is less noise of the vote (a dash where a question has "
    "one block), and the mean share beside the mean accuracy that it should have.",
    evidence=evidence,
)

# %% [markdown] needs="samples"
# Does a wrong majority grow surer of itself with more votes? It cannot on average: in each half of twenty votes, their winner
# has no more votes than the half's own winner. So the share falls, whether the winner is right or wrong:

# %%
# needs samples
share = whole["share"].assign(wrong=wrong.reindex(whole.index))
by_majority = share.groupby(["dataset", "wrong"], sort=False).mean()
by_majority.insert(0, "questions", share.groupby(["dataset", "wrong"]).size())

# %% tags=["hide-input"]
# needs samples
sides = {True: "wrong", False: "right"}

# %% tags=["hide-input"] label="consistency-wrong-majority" paper=["appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"]
# needs samples
tables.show(
    by_majority.rename(data["title"], level=0)
    .rename(sides, level=1)
    .rename_axis(["data set", "majority"])
    .rename(
        columns=lambda votes: (
            votes if votes == "questions" else f"{votes} votes"
        )
    ),
    "Mean share of the winning answer, where the majority of all samples is right and where it is wrong.",
    evidence=evidence,
    questions="{:.0f}",
)

# %% [markdown] needs="samples"
# ## How much shared samples flatter
#
# In expectation optimism is twice the covariance of a vote with the $\hat\mu$ that it is part of, and that is
# $k_c / k_\text{eval}$ of its covariance with the accuracy of its own block.

# %% tags=["hide-input"] label="consistency-optimism" paper=["appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"]
# needs samples
spelt = tables.intervals(optimism, "estimate", digits=4)
wide = spelt.unstack().reindex(by_votes.index).add_suffix(" votes")
tables.show(
    wide.rename(data["title"]).rename_axis("data set"),
    "Optimism with its 95 % interval: held-out less same pool.",
    evidence=evidence,
)

# %% [markdown] needs="samples"
# The covariance has a sign for each question. A block that happens to hold more right answers gives a right majority a larger
# share, and a wrong one a smaller. So sharing may flatter on the former and do the opposite on the latter:

# %%
# needs samples
gap = terms["held-out"] - terms["same pool"]
side = gap.index.droplevel("votes").map(wrong).map(sides).rename("majority")
split = gap.groupby(["dataset", "votes", side], sort=False).mean()

# %% tags=["hide-input"] label="consistency-sides" paper=["appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"]
# needs samples
tables.show(
    split.unstack("votes")
    .add_suffix(" votes")
    .rename(data["title"], level=0)
    .rename_axis(["data set", "majority"])
    .rename_axis(columns=None),
    "Mean optimism where the majority is right, and where it is wrong.",
    digits=4,
    evidence=evidence,
)

# %% tags=["hide-input"]
# needs samples
below = split.xs("wrong", level="majority") < 0
above = split.xs("right", level="majority") > 0
notebook.glue(
    below=int(below.sum()),
    of_wrong=len(below),
    above=int(above.sum()),
    of_right=len(above),
)

# %%
# needs samples
notebook.say("""
It lies above 0 in {above} of {of_right} cells where the majority is right, and below 0 in {below} of {of_wrong} where it is
wrong. So the two cancel in part, and what is left depends on the data set.
""")

# %% [markdown]
# ## Summary
#
# - More votes score lower, and each doubling buys less: the largest of few shares is too large.
# - A wrong majority is no stronger for more votes; its share falls, but not to the accuracy.
# - A vote that shares samples with its target is scored a little too well where the majority is right, and too badly where it is
#   wrong. Holding its samples out costs nothing.
# - Ten votes cost ten answers.
#
# ## Exercises
#
# **1 (easy).** Four samples answer 4, 4, 5 and nothing at all. What is the confidence? *Hint:* who counts as a vote?

# %% tags=["hide-cell", "solution"]
# Four samples, one of which says nothing
consistency([["4", "4", "5", None]])

# %% [markdown]
# **2 (medium).** A model answers B with probability 0.5, A with 0.3 and C with 0.2, and A is right. Where does the
# confidence go with more votes, and where its squared error? *Hint:* which answer wins, and what is $\mu$?

# %% tags=["hide-cell", "solution"]
# Votes drawn from three answers, by their number
votes = rng.choice(["A", "B", "C"], p=[0.3, 0.5, 0.2], size=(2_000, 100))
for k_c in (5, 20, 100):
    vote = consistency(votes[:, :k_c].tolist())
    print(k_c, vote.mean().round(3), ((vote - 0.3) ** 2).mean().round(3))

# %% [markdown]
# **3 (hard).** A model is right with probability 0.9, and otherwise always gives the same wrong answer. How much does
# sharing flatter ten votes among 100 samples? *Hint:* the vote is nearly the accuracy of its block, with variance
# $0.9 \cdot 0.1 / 10$; check your formula with `squared_error`.

# %% tags=["hide-cell", "solution"]
# Ten votes scored on all samples, and on the others only
right = (rng.random((20_000, 100)) < 0.9).astype(float)
vote = consistency(right[:, :10].tolist())
gap = squared_error(vote, right) - squared_error(vote, right[:, 10:])
float(gap.mean()), -2 * (10 / 100) * 0.9 * 0.1 / 10
