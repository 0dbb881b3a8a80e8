# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Five ways to get a confidence

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of the folds of the probe, and of the questions drawn anew

# %% tags=["hide-input"]
from collections import Counter

import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import plots
from capcal_lib.book import notebook, tables
from capcal_lib.manifests import load_dataset
from capcal_lib.probes import (
    LinearProbe,
    nearest_probe,
    probe_of,
    read_features,
    read_predictions,
    runs_for_probes,
    train,
    training_data,
)
from capcal_lib.questions import Answer, Question
from capcal_lib.questions.prompts import p_true_messages, verbalized_messages
from capcal_lib.reported import load_reported
from capcal_lib.results import (
    confidence_columns,
    costs,
    judged_by,
    load_results,
    mean_over_probes,
    methods,
)
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
options = {"k_eval": k_eval, "verdicts": verdicts}
results = load_results(runs, model, held_out=protocol != "paper", **options)
recipe = "paper" if protocol == "paper" else "tuned"
predicted = read_predictions(runs, model, recipe=recipe, verdicts=verdicts)
results = results.assign(**predicted).query("total > 0")
evidence = notebook.evidence_of(data)
enough = {"Verbalized confidence", "P(True)"} <= {*results}
enough = enough and predicted.notna().any(axis=None)
reason = {"samples": "Its runs lack confidences in words, P(True) or a probe."}
notebook.about(data, {} if enough else reason)

# %% [markdown]
# | method | what is asked | cost | needs |
# | --- | --- | --- | --- |
# | Verbalized confidence | "how likely are you to answer correctly?", a number in words | a few tokens, or a reasoning | text |
# | P(True) | "can you answer this?", the probability of *Yes* against *No* | one token | log-probabilities |
# | Response consistency | the share of $k_c$ samples that agree with the majority | $k_c$ answers | text |
# | Probe | a linear read-out of the hidden state at the end of the prompt | less than a token | weights |
# | Uniform random | nothing: a uniform draw, scored by its exact expectation | none | nothing |
#
# All but response consistency, which needs its answers, are about the *question*, before an answer is written. Two oracles stand
# beside them: Oracle RC knows whether one sample is correct, Oracle CC knows $\hat\mu$.

# %% [markdown] needs="samples"
# Of the data sets that a probe predicts, this page shows the one where difficulty varies most, and asks how well each method
# orders its questions.

# %%
# needs samples
mu = results["correct"] / results["total"]
probed = predicted.dropna(how="all").index.unique("dataset")
widest = mu.loc[[*probed]].groupby("dataset").std().idxmax()
shown = results.loc[widest].dropna(axis="columns", how="all")
nearest = nearest_probe(methods(shown), widest)
others = [
    name
    for name in shown
    if name.startswith("Probe") and probe_of(name) != nearest
]
shown = shown.drop(columns=others)

# %%
# needs samples
judged = {name: judged_by(shown, name) for name in confidence_columns(shown)}
judged = pd.concat(judged, names=["column", "question_id"])
judged["method"] = judged.index.get_level_values("column").map(probe_of)
judged["mu"] = judged["correct"] / judged["total"]


def rank(subset):
    """Return Spearman's correlation of a confidence with mu_hat."""
    return subset["confidence"].corr(subset["mu"], method="spearman")


# By protocol=paper a probe is five, and its rank correlation their mean.
ranks = judged.groupby(["method", "column"], sort=False).apply(rank)
ranks = ranks.groupby("method", sort=False).mean()

# %% [markdown] needs="samples"
# A rank correlation of a few hundred questions has an error, and two methods on the same questions share part of it. So the
# questions are drawn anew, many times, each with what all methods say of it and with its samples. A method is *ahead* of another
# where it ranks higher in so nearly all draws that not one of the comparisons with the highest is likely to be chance
# (Bonferroni).

# %%
# needs samples
said = judged["confidence"].unstack("column")
right = judged["mu"].unstack("column")
rng = np.random.default_rng(seed)
draws = []
for _ in range(500):
    rows = rng.integers(len(said), size=len(said))
    again = said.iloc[rows].reset_index(drop=True)
    truth = right.iloc[rows].reset_index(drop=True)
    draws.append(again.corrwith(truth, method="spearman"))
draws = mean_over_probes(pd.DataFrame(draws))
best = ranks.idxmax()
ahead = draws.drop(columns=best).rsub(draws[best], axis="index")
behind = ahead.quantile(0.025 / max(1, ahead.shape[1])) > 0
interval = draws[best].quantile([0.025, 0.975])

# %% tags=["finding"]
# needs samples
notebook.finding(
    r"On {dataset} the rank correlation with $\hat\mu$ is highest for *{best}*: {high:.2f} [{bottom:.2f}, {top:.2f}]; it is "
    "significantly ahead of {behind}.",
    dataset=load_dataset(widest).title,
    best=best,
    high=ranks[best],
    bottom=interval.iloc[0],
    top=interval.iloc[1],
    behind=", ".join(behind[behind].index) or "no other method",
)

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "A point for each question. Along the diagonal a confidence is right; a method that says nearly the same of every question draws a vertical line, and one whose points rise to the right tells easy questions from hard ones even where it is wrong on the scale.", "name": "fig-confidences"}, "image": {"alt": "Scatter plots of the share of correct samples against the confidence, one a method, each with a diagonal and a point a question."}} paper=["section-4.2", "appendix-c"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
grid = sns.relplot(
    judged.reset_index(),
    x="confidence",
    y="mu",
    hue="method",
    col="method",
    col_wrap=2,
    palette=plots.palette(methods(shown), widest),
    alpha=0.6,
    height=2.0,
    aspect=1.75,
    legend=False,
)
for axes in grid.axes:
    axes.axline((0, 0), slope=1, color=plots.MUTED, linewidth=1)
grid.set_axis_labels("confidence", "share correct").set(xlim=(-0.03, 1.03))
_ = grid.set_titles("{col_name}")

# %% [markdown] needs="samples"
# ## What each costs

# %% tags=["hide-input"] label="estimator-costs" paper=["section-4.2"] evidence=["measured"] reads=["confidences"]
# needs samples
cost = costs(runs, model, k_eval=k_eval).reindex(data.index).assign(Probe=0.0)
order = ["Verbalized confidence", "P(True)", "Response consistency", "Probe"]
cost = cost[[name for name in order if name in cost]]
tables.show(
    cost.rename(index=data["title"]).rename_axis("data set"),
    "Mean completion tokens of a confidence, a question.",
    digits=0,
    evidence=evidence,
)

# %% [markdown]
# ## Ask in words, ask for one token
#
# These are the paper's two questions, about a product. Small models are asked in fewer words, with examples.

# %% label="estimator-prompts" paper=["figure-7", "figure-8", "appendix-c.2"] evidence=["reported"]
question = Question("sum", "What is 6 × 7?", Answer("number", "42"))
print(verbalized_messages(question, "paper")[-1]["content"])

# %%
print(p_true_messages(question, "paper")[-1]["content"])

# %% [markdown] needs="samples"
# A model may fail to state a probability. Such a question has no confidence: it is counted as *missing* and left out of the
# scores. What needs a confidence for every question, such as spending a budget or answering the surest ones, takes one half
# for it: the model has told nothing.

# %%
# needs samples
stated = results.filter(regex="Verbalized|True")
stated.isna().mean().rename("share missing").to_frame().round(3)

# %% [markdown]
# ## Let samples vote
#
# Response consistency is the share of votes for the most frequent answer. The samples that vote are not among those that
# define $\hat\mu$: shared samples would tie the confidence to its own target.

# %%
votes = Counter(["Paris", "Paris", "Lyon", "Paris"])
votes.most_common(1)[0][1] / votes.total()

# %% [markdown] needs="samples"
# ## Read it from a hidden state
#
# A probe is a logistic regression from the hidden state of the prompt's last token (the mean over layers) to $\mu$. It is
# trained on other questions, whose share of correct samples is known.

# %%
# needs samples
training = {
    dataset.name: run
    for dataset, run in runs_for_probes(runs, model, "training")
    if run.identity.prompt_style == data.loc[widest, "prompts"]
}
source = training.get(widest, next(iter(training.values())))
questions, features = training_data(source)
share = questions["correct"] / questions["total"]
questions.shape, features.shape

# %% [markdown] needs="samples"
# A question with 7 correct samples of 10 counts as 7 positives and 3 negatives: each question stands twice, weighted.

# %%
# needs samples
scaler = StandardScaler().fit(features)
twice = np.tile(scaler.transform(features), (2, 1))
label = np.repeat([1, 0], len(share))
weight = np.concatenate([share, 1 - share]) / len(share)

# %%
# needs samples
decay = train(source).weight_decay_  # chosen by cross-validation
by_hand = LogisticRegression(C=1 / decay, max_iter=5000, tol=1e-8)
by_hand.fit(twice, label, sample_weight=weight)
ids, states = read_features(data.loc[widest, "run"])
mine = by_hand.predict_proba(scaler.transform(states))[:, 1]

# %% [markdown] needs="samples"
# `LinearProbe` solves the same problem and is faster on thousands of features:

# %%
# needs samples
probe = LinearProbe(weight_decay=decay, standardize=True)
probe.fit(features, questions["correct"], questions["total"])
assert np.allclose(mine, probe.predict(states), atol=1e-3)

# %% [markdown] needs="samples"
# The weight decay was chosen by cross-validation on the training questions. This *tuned* probe is ours;
# [the page on how good a probe is](08_probe_generalization.ipynb) sets the paper's recipe beside it.

# %% [markdown] needs="samples"
# ## Which method ranks the questions best?
#
# Telling questions apart (rank) and being right on average (calibration) are different virtues. Where all questions have
# the same $\hat\mu$ there is nothing to rank, so that such a data set has no column; a method that says the same of every
# question has no rank. In brackets stands the 95 % interval of Bonett and Wright (2000), from the number of questions; where two
# of them overlap, the order of their methods is not shown.


# %%
# needs samples
def spell_rank(r, n):
    """Spell a rank correlation with its interval, by Fisher's transformation."""
    error = np.sqrt((1 + r**2 / 2) / max(1, n - 3))
    low, high = np.tanh(np.arctanh(r) + np.array([-1.96, 1.96]) * error)
    return f"{r:.2f} [{low:.2f}, {high:.2f}]"


# %% tags=["hide-input"] label="estimator-ranks" paper=["section-4.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
by_set = {}
for name, rows in results.groupby(level="dataset", sort=False):
    found = {}
    for column in confidence_columns(results):
        subset = judged_by(rows, column)
        subset["mu"] = subset["correct"] / subset["total"]
        if subset[["confidence", "mu"]].nunique().min() > 1:
            found[column] = rank(subset), len(subset)
    found = pd.DataFrame(found, ["r", "n"]).T.groupby(probe_of).mean()
    spelt = {method: spell_rank(*row) for method, row in found.T.items()}
    if spelt:
        by_set[load_dataset(name).title] = spelt
order = pd.DataFrame(by_set).reindex(methods(results)).rename_axis("method")
tables.show(
    order,
    "Spearman correlation with expected accuracy (higher is better), with "
    "95 % intervals.",
    evidence=evidence,
)

# %% [markdown]
# ## How the paper did it
#
# The paper gives no confidences of single questions. It prints how it sampled from its three models:

# %% tags=["hide-input"] label="estimator-settings" paper=["appendix-b.2"] evidence=["reported"] reads=["sampling"]
printed = tables.titled(load_reported("sampling"))
settings = printed.pivot(index="method", columns="model", values="value")
tables.show(
    settings.map("{:g}".format).rename_axis("setting"),
    "Settings of sampling, as printed in the paper.",
    evidence="reported",
)

# %% [markdown]
# What its answers took in tokens is on the page [on costs](09_cost_performance.ipynb), and how its probes were set on that [on
# probes](08_probe_generalization.ipynb).

# %% [markdown]
# ## Summary
#
# - The methods differ in cost by orders of magnitude: a probe reads a prompt, consistency writes $k_c$ answers.
# - What a method cannot say must be counted, and said where something else stands for it.
# - A method may order questions well and still be off on the scale, and conversely.
#
# ## Exercises
#
# **1 (easy).** What does response consistency give on a question that the model always answers with the same wrong
# answer, and what is $\mu$ there? *Hint:* count the votes.

# %% tags=["hide-cell", "solution"]
# The share of the votes, beside the accuracy
votes = Counter(["Lyon"] * 10)
{"consistency": votes.most_common(1)[0][1] / votes.total(), "mu": 0.0}

# %% [markdown]
# **2 (medium).** Spearman's correlation does not change when a confidence is squared. Does its Brier score?
# *Hint:* take $\mu = 0.5$ and $s = 0.5$.

# %% tags=["hide-cell", "solution"]
# The Brier score before and after squaring
{"before": (0.5 - 0.5) ** 2, "after": (0.5**2 - 0.5) ** 2}

# %% [markdown] needs="samples"
# **3 (hard).** What does the probe say when it is trained with hardly any weight decay? *Hint:* refit `LinearProbe` with
# `weight_decay=1e-6` and compare its spread with that of $\hat\mu$.

# %% tags=["hide-cell", "solution"]
# The spread of a probe with hardly any decay, beside the tuned one
# needs samples
loose = LinearProbe(weight_decay=1e-6, standardize=True)
loose.fit(features, questions["correct"], questions["total"])
pd.Series(
    {"loose": loose.predict(states).std(), "tuned": probe.predict(states).std()}
).round(3)
