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
# This page shows what more votes buy, where they stop helping, and why a {term}`vote <response consistency>`
# must be scored on samples that it has not seen: appendix C.3 of the paper and its table 6.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of the intervals and of the exercises

# %% tags=["hide-input"]
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.book import notebook, style, tables
from capcal_lib.confidence import majority, read_answers
from capcal_lib.confidence.consistency import consistency
from capcal_lib.grading import countable_samples
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.metrics import mean_interval
from capcal_lib.reported import load_reported
from capcal_lib.results import describe_runs, subjects

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
rng = np.random.default_rng(seed)
purple = style.method_color("Response consistency")

# %% tags=["hide-input"]
runs = describe_runs(
    notebook.open_store(store), model, k_eval=k_eval, verdicts=verdicts
)
few = {
    "samples": "Five votes and two held-out samples make seven a question: "
    "no run has as many, so nothing here is measured."
}
enough = len(runs) and runs["most"].max() >= 7
lacking = {} if enough else few
notebook.about(
    model, runs, lacking=lacking, protocol=protocol, verdicts=verdicts
)

# %% tags=["remove-cell"]
# needs samples
answers = {
    dataset: read_answers(
        run, k=countable_samples(run, k_eval), verdicts=verdicts
    )
    for dataset, run in runs["run"].items()
}


# %% tags=["hide-input"]
def brier_terms(confidence, correct):
    """Square each question's error, less the noise of mu_hat if corrected."""
    scored = (~np.isnan(correct)).sum(axis=1)
    total = np.where(scored > 1, scored, np.nan)
    mu = np.nansum(correct, axis=1) / total
    noise = mu * (1 - mu) / (total - 1) if protocol == "corrected" else 0
    return (confidence - mu) ** 2 - noise


# %% tags=["hide-input"]
def score_blocks(said, k_c):
    """Let each block of k_c samples vote, and score it in both ways."""
    blocks = []
    for start in range(0, said.drawn.shape[1] - k_c + 1, k_c):
        block = np.arange(start, start + k_c)
        confidence = consistency(said.canonical[:, block].tolist())
        held_out = np.delete(said.correct, block, axis=1)
        scores = {
            "held-out": brier_terms(confidence, held_out),
            "same pool": brier_terms(confidence, said.correct),
        }
        complete = said.drawn[:, block].all(axis=1)
        blocks.append(pd.DataFrame(scores, said.question_ids)[complete])
    return pd.concat(blocks).dropna().groupby(level=0).mean()


# %% tags=["hide-input"]
# needs samples
terms = pd.concat(
    {
        (dataset, k_c): score_blocks(said, k_c)
        for dataset, said in answers.items()
        for k_c in (5, 10, 20)
        if said.drawn.shape[1] > k_c + 1
    },
    names=["dataset", "votes", "question_id"],
)
scores = terms.groupby(["dataset", "votes"], sort=False).mean()
terms["optimism"] = terms["same pool"] - terms["held-out"]
counted = "held-out" if protocol == "corrected" else "same pool"


# %% tags=["remove-cell"]
def interval(values, level=0.95):
    """Draw whole subjects, where the questions come in subjects."""
    clusters = subjects(values.droplevel("votes").to_frame())
    found = mean_interval(
        values.to_numpy(),
        rng=rng,
        clusters=clusters.to_numpy(),
        level=level,
        bounds=(-1, 1),
    )
    return pd.Series(found._asdict())


# %% tags=["remove-cell"]
# needs samples
cells = terms["optimism"].groupby(["dataset", "votes"], sort=False)
optimism = cells.apply(interval).unstack()
together = 1 - 0.05 / max(1, len(optimism))  # Bonferroni
sure = cells.apply(interval, level=together).unstack()
by_votes = scores[counted].unstack()
complete = by_votes.dropna()  # with samples enough for each number of votes
notebook.glue(
    sets=len(complete),
    few_votes=complete[5].mean(),
    many_votes=complete[by_votes.columns.max()].mean(),
    most_votes=int(by_votes.columns.max()),
    largest=-optimism["estimate"].min(),
    cells=len(optimism),
    flattered=int((optimism["high"] < 0).sum()),
    surely=int((sure["high"] < 0).sum()),
)

# %% [markdown] needs="samples"
# Averaged over the {glue:text}`sets` data sets with samples enough for it, the score is {glue:text}`few_votes:.3f`
# with 5 votes and {glue:text}`many_votes:.3f` with {glue:text}`most_votes`. Voting with the samples that also define
# $\hat\mu$ would flatter the method significantly in {glue:text}`flattered` of {glue:text}`cells` cases, each a data
# set and a number of votes ({glue:text}`surely` when all are judged together, by Bonferroni), by up to
# {glue:text}`largest:.4f`.

# %% tags=["hide-input"]
# needs samples
shown = scores.reset_index()
shown["data set"] = [load_dataset(name).title for name in shown["dataset"]]

# %% mystnb={"figure": {"caption": "Capability Brier score of response consistency (lower is better) with 5, 10 and 20 votes, as far as the samples go. Votes have no part in the expected accuracy unless the page follows the paper.", "name": "fig-consistency"}, "image": {"alt": "Dot plot with one row for each data set and up to three dots in it. The dots move left, to lower scores, from 5 to 10 and to 20 votes, by less at each step."}} paper=["table-6", "appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"] tags=["hide-input"]
# needs samples
axes = sns.stripplot(
    shown,
    x=counted,
    y="data set",
    hue="votes",
    palette=sns.light_palette(purple, 5)[2 : 2 + shown["votes"].nunique()],
    size=8,
    jitter=False,
)
axes.grid(visible=True, axis="y")
sns.move_legend(axes, "upper left", bbox_to_anchor=(1, 1))
_ = axes.set(xlabel="capability Brier score", ylabel="")

# %% [markdown]
# ## What the paper reports
#
# The paper prints scores for 5, 10 and 20 votes, without intervals. They are plug-in scores: the noise of $\hat\mu$ is
# not subtracted. Where this page is not opened for one of its models, all three are shown.

# %% label="consistency-reported" paper=["table-6", "appendix-c.3"] evidence=["reported"] reads=["consistency"]
printed = load_reported("consistency")
if model in set(printed["model"]):
    printed = printed.query("model == @model")
printed = printed.assign(
    model=[load_model(name).paper_name for name in printed["model"]],
    dataset=[load_dataset(name).title for name in printed["dataset"]],
).rename(columns={"k": "votes", "dataset": "data set"})
wide = printed.pivot_table(
    index=["model", "votes"], columns="data set", values="value", sort=False
)
tables.show(
    wide.map("{:.4f}".format),
    "Response consistency as printed in the paper (lower is better).",
    evidence="reported",
)

# %% tags=["remove-cell"]
change = printed.pivot_table(
    index=["model", "data set"], columns="votes", values="value"
)
notebook.glue(pairs=len(change), worse=int((change[20] > change[5]).sum()))

# %% [markdown]
# From 5 to 20 votes the score rises, which is worse, in {glue:text}`worse` of these {glue:text}`pairs` pairs of model
# and data set, and falls in the others.

# %% mystnb={"figure": {"caption": "Scores of response consistency as printed in the paper (plug-in, lower is better), with 5, 10 and 20 votes.", "name": "fig-consistency-reported"}, "image": {"alt": "Dot plot with one row for each data set of the paper and a panel for each model. More votes score lower almost everywhere; on SimpleQA, AIME25 and GPQA by most."}} paper=["table-6", "appendix-c.3"] evidence=["reported"] reads=["consistency"] tags=["hide-input"]
names = printed["model"].unique()
figure, panels = plt.subplots(
    1, len(names), sharex=True, sharey=True, squeeze=False
)
for name, axes in zip(names, panels[0], strict=True):
    sns.stripplot(
        printed[printed["model"] == name].astype({"votes": int}),
        x="value",
        y="data set",
        hue="votes",
        palette=sns.light_palette(purple, 5)[2:],
        size=8,
        jitter=False,
        legend=axes is panels[0, -1],
        ax=axes,
    )
    axes.grid(visible=True, axis="y")
    axes.set(title=name, xlabel="capability Brier score", ylabel="")
sns.move_legend(panels[0, -1], "upper left", bbox_to_anchor=(1, 1))

# %% [markdown] needs="samples"
# ## How a vote becomes a confidence
#
# Response consistency lets $k_c$ samples of a question vote, and takes the share of the winning answer as the
# confidence. These are the first ten answers to one question, in a form in which equal answers are equal texts:

# %%
# needs samples
said = answers[runs.index[0]]
Counter(said.canonical[0, :10])

# %% [markdown] needs="samples"
# The winner and its share, and the same for all questions; a sample without an answer counts as a vote for nobody.

# %%
# needs samples
majority(said.canonical[0, :10].tolist())

# %%
# needs samples
confidence = consistency(said.canonical[:, :10].tolist())
confidence[:5]

# %% [markdown] needs="samples"
# ## Two ways to score a vote
#
# With a hundred samples at hand it is tempting to let some of them vote, and to compare the vote with $\hat\mu$ of
# all of them, as the authors' code does (*same pool*). But then the vote is part of its own target: a block of samples
# that happens to hold more right answers raises both. The other way is to compare with $\hat\mu$ of the samples that did
# not vote (*held-out*). `brier_terms`, in the folded cell at the top, is each question's squared error less the variance
# of $\hat\mu$, $\hat\mu(1-\hat\mu)/(n-1)$ with $n$ samples.

# %%
# needs samples
same_pool = brier_terms(confidence, said.correct)
held_out = brier_terms(confidence, said.correct[:, 10:])
float(np.nanmean(same_pool)), float(np.nanmean(held_out))

# %% [markdown] needs="samples"
# One block of votes is one draw. So each block of $k_c$ samples votes in turn, and a question's terms are averaged over
# its blocks: no spare samples are needed, and the two ways differ in nothing else.


# %%
def wrong(votes, correct):
    winner, _ = majority(votes.tolist())
    return np.mean(correct[votes == winner] == 1) < 0.5


# %% label="consistency-table" paper=["table-6", "appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"]
# needs samples
wide = by_votes.add_suffix(" votes")
wide["tokens of 10 votes"] = 10 * runs["tokens"]
wide["wrong majority"] = [
    np.mean([*map(wrong, answers[name].canonical, answers[name].correct)])
    for name in wide.index
]
tables.show(
    wide.rename(lambda name: load_dataset(name).title).rename_axis("data set"),
    "Score of held-out votes (corrected; lower is better), and the share of "
    "questions whose most frequent answer of all samples is wrong.",
    evidence=runs["evidence"].iloc[0],
    **{"tokens of 10 votes": "{:,.0f}", "wrong majority": "{:.0%}"},
)

# %% [markdown] needs="samples"
# The score falls with $k_c$ because the vote itself becomes less noisy. It does not fall to zero: where the most frequent
# answer is wrong, more votes only make the method surer of it.
#
# ## How much shared samples flatter
#
# *Optimism* is the same-pool score less the held-out one on the same votes; below zero, sharing flatters. In expectation
# it is minus twice the covariance of a vote with the $\hat\mu$ that it is part of, and that is $k_c / k_\text{eval}$ of its
# covariance with the accuracy of its own block.

# %% label="consistency-optimism" paper=["appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"]
# needs samples
spelt = optimism.apply(
    lambda row: (
        f"{row['estimate']:z.4f} [{row['low']:z.4f}, {row['high']:z.4f}]"
    ),
    axis="columns",
).unstack()
tables.show(
    spelt.reindex(by_votes.index)
    .add_suffix(" votes")
    .rename(lambda name: load_dataset(name).title)
    .rename_axis("data set"),
    "Optimism with its 95 % interval: same pool less held-out.",
    evidence=runs["evidence"].iloc[0],
)

# %% [markdown] needs="samples"
# The interval lies below zero in {glue:text}`flattered` of {glue:text}`cells` cases. In expectation the optimism is
# of one sign, so that it does not average out over data sets; it grows with $k_c$, and with fewer samples in
# $\hat\mu$. Where hardly any question has a term other than zero, the interval is as wide as what unseen questions
# could add.

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
consistency([["4", "4", "5", None]])

# %% [markdown]
# **2 (medium).** A model answers B with probability 0.5, A with 0.3 and C with 0.2, and A is right. Where does the
# confidence go with more votes, and where its squared error? *Hint:* which answer wins, and what is $\mu$?

# %% tags=["hide-cell", "solution"]
votes = rng.choice(["A", "B", "C"], p=[0.3, 0.5, 0.2], size=(2_000, 100))
for k_c in (5, 20, 100):
    vote = consistency(votes[:, :k_c].tolist())
    print(k_c, vote.mean().round(3), ((vote - 0.3) ** 2).mean().round(3))

# %% [markdown]
# **3 (hard).** A model is right with probability 0.9, and otherwise always gives the same wrong answer. How much does
# sharing flatter ten votes among 100 samples? *Hint:* the vote is nearly the accuracy of its block, with variance
# $0.9 \cdot 0.1 / 10$; check your formula with `brier_terms`.

# %% tags=["hide-cell", "solution"]
right = (rng.random((20_000, 100)) < 0.9).astype(float)
vote = consistency(right[:, :10].tolist())
gap = brier_terms(vote, right) - brier_terms(vote, right[:, 10:])
float(gap.mean()), -2 * (10 / 100) * 0.9 * 0.1 / 10
