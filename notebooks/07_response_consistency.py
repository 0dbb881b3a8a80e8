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
from capcal_lib.book import notebook, style, tables
from capcal_lib.confidence import majority, read_answers
from capcal_lib.confidence.consistency import consistency
from capcal_lib.metrics import holm
from capcal_lib.reported import load_reported
from capcal_lib.results import (
    best_constant,
    brier_terms,
    gains_by_dataset,
    load_results,
)

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
rng = np.random.default_rng(seed)
purples = sns.light_palette(style.method_color("Response consistency"), 5)[2:]
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
    answers[dataset] = read_answers(run, k=k_eval, verdicts=verdicts)


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
    blocks = []
    for start in range(0, table.drawn.shape[1] - k_c + 1, k_c):
        block = np.arange(start, start + k_c)
        confidence = consistency(table.canonical[:, block].tolist())
        others = np.delete(table.correct, block, axis=1)
        scores = {
            "held-out": squared_error(confidence, others),
            "same pool": squared_error(confidence, table.correct),
        }
        complete = table.drawn[:, block].all(axis=1)
        blocks.append(pd.DataFrame(scores, table.question_ids)[complete])
    return pd.concat(blocks).dropna().groupby(level=0).mean()


# %%
# needs samples
terms = {
    (dataset, k_c): score_blocks(table, k_c)
    for dataset, table in answers.items()
    for k_c in (5, 10, 20)
    if table.drawn.shape[1] > k_c + 1
}
terms = pd.concat(terms, names=["dataset", "votes", "question_id"])
scores = terms.groupby(["dataset", "votes"], sort=False).mean()
counted = "held-out" if protocol == "corrected" else "same pool"
by_votes = scores[counted].unstack()

# %% [markdown] needs="samples"
# The rival is the best constant, the mean accuracy of the other questions, which costs nothing. *Optimism* is how much
# better votes look when they are scored on their own samples.

# %%
# needs samples
results = load_results(runs, model, recipe=None, **options)
results["constant"] = best_constant(results)
rival = brier_terms(results, protocol=protocol)["constant"]
both = terms.join(rival)
against_constant = gains_by_dataset(both[["constant", counted]], "constant")
optimism = gains_by_dataset(both[["held-out", "same pool"]], "held-out")
optimism = holm(optimism.droplevel("method"))

# %% tags=["hide-input"]
# needs samples
complete = by_votes.dropna()  # with samples enough for each number of votes
usual = 10 if 10 in by_votes else 5
verdict = holm(against_constant.xs(usual, level="votes"))["verdict"]
flattered = (optimism["estimate"] > 0) & (optimism["p"] < 0.05)
notebook.glue(
    usual=usual,
    all_sets=len(verdict),
    better=int((verdict == "better").sum()),
    worse=int((verdict == "worse").sum()),
    sets=len(complete),
    few_votes=complete[5].mean(),
    many_votes=complete[by_votes.columns.max()].mean(),
    most_votes=int(by_votes.columns.max()),
    largest=optimism["estimate"].max(),
    cells=len(optimism),
    flattered=int(flattered.sum()),
    surely=int((optimism["verdict"] == "better").sum()),
)

# %% tags=["finding"]
# needs samples
notebook.finding("""
The share of {usual} votes is significantly closer to the expected accuracy than the best constant on {better} of {all_sets}
data sets, and further from it on {worse}, judged together by Holm's method.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Capability Brier score of response consistency (lower is better) with 5, 10 and 20 votes, as far as the samples go. Votes have no part in the expected accuracy unless the page follows the paper. Ticks: the best constant.", "name": "fig-consistency"}, "image": {"alt": "Dot plot with one row for each data set and up to three dots in it. The dots move left, to lower scores, from 5 to 10 and to 20 votes, by less at each step; on some rows they stay right of the tick of the best constant."}} paper=["table-6", "appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"]
# needs samples
dots = scores.rename(data["title"]).reset_index()
constant = rival.groupby(level="dataset").mean()[by_votes.index]
axes = sns.stripplot(
    dots,
    x=counted,
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
More votes help: averaged over the {sets} data sets with samples enough for it,
the score is {few_votes:.3f} with 5 votes and {many_votes:.3f} with {most_votes}. Voting with the samples that also define
$\\hat\\mu$ would flatter the method significantly in {flattered} of {cells} cases, each a data set and a number of votes
({surely} when all are judged together, by Holm's method); the largest difference is {largest:.4f}.
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

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Scores of response consistency as printed in the paper (plug-in, lower is better), with 5, 10 and 20 votes.", "name": "fig-consistency-reported"}, "image": {"alt": "Dot plot with one row for each data set of the paper and a panel for each model. More votes score lower almost everywhere; on SimpleQA, AIME25 and GPQA by most."}} paper=["table-6", "appendix-c.3"] evidence=["reported"] reads=["consistency"]
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
Counter(table.canonical[0, :10])

# %% [markdown] needs="samples"
# The winner and its share, and the same for all questions; a sample without an answer counts as a vote for nobody.

# %%
# needs samples
majority(table.canonical[0, :10].tolist())

# %%
# needs samples
confidence = consistency(table.canonical[:, :10].tolist())
confidence[:5]

# %% [markdown] needs="samples"
# These ten votes, scored in both ways on the largest data set:

# %%
# needs samples
same_pool = squared_error(confidence, table.correct)
held_out = squared_error(confidence, table.correct[:, 10:])
float(np.nanmean(same_pool)), float(np.nanmean(held_out))

# %% [markdown] needs="samples"
# One block of votes is one draw; the scores below are means over all blocks.


# %% tags=["hide-input"]
def wrong(votes, correct):
    winner, _ = majority(votes.tolist())
    return np.mean(correct[votes == winner] == 1) < 0.5


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
wide["best constant"] = rival.groupby(level="dataset").mean()
wide["tokens of 10 votes"] = 10 * data["tokens"]
wide["wrong majority"] = [
    np.mean([*map(wrong, answers[name].canonical, answers[name].correct)])
    for name in wide.index
]
tables.show(
    wide.rename(data["title"]).rename_axis("data set"),
    f"Score of {counted} votes ({protocol} protocol; lower is better), and the share of "
    "questions whose most frequent answer of all samples is wrong.",
    evidence=data["evidence"].iloc[0],
    **{"tokens of 10 votes": "{:,.0f}", "wrong majority": "{:.0%}"},
)

# %% [markdown] needs="samples"
# The score falls with $k_c$ because the vote itself becomes less noisy. It does not fall to zero: where the most frequent
# answer is wrong, more votes only make the method surer of it.
#
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
    evidence=data["evidence"].iloc[0],
)

# %% [markdown] needs="samples"
# In expectation the optimism is of one sign, so that it does not average out over data sets; it grows with $k_c$, and with
# fewer samples in $\hat\mu$. Where hardly any question has a term other than zero, the interval is as wide as what unseen
# questions could add.

# %% [markdown]
# ## Summary
#
# - More votes make a vote less noisy, and each doubling buys less; a wrong majority stays wrong.
# - A vote that shares samples with its target is scored too well. Holding its samples out costs nothing.
# - The method costs $k_c$ answers, so it cannot save any of them.
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
