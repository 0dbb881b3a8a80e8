# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Four ways to get a confidence
#
# On [the previous page](02_k_eval_choice.ipynb) we saw how many samples a score needs. But where does a confidence come from,
# what does it cost, and which confidence tells easy questions from hard ones?

# %% [markdown]
# | method | what is asked | cost | needs |
# | --- | --- | --- | --- |
# | Verbalized confidence | "how likely are you to answer correctly?", as a number | a few tokens, or a chain of reasoning | text |
# | P(True) | "can you answer this?", the probability of *Yes* against *No* | one token | log-probabilities |
# | Response consistency | nothing: $k_c$ samples vote | $k_c$ answers | text |
# | Probe | nothing: a linear function of a hidden state | no tokens | weights |
#
# All but response consistency are known before an answer is written. *Uniform random*, a number drawn evenly from 0 to 1, is a
# baseline. Two oracles are references: *Oracle RC* (response calibration) knows whether one sample is correct, and *Oracle CC*
# (capability calibration) knows $\hat\mu$.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged

# %%
from capcal_lib.book.page import EndOfPage, finding, open_page, show_runs
from capcal_lib.results.results import results_of

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)
show_runs(page, printed=["appendix-b.2"])

# %% [markdown]
# ## Which method orders the questions best?
#
# Spearman's *rank correlation* with $\hat\mu$ is 1 if the question with the higher confidence is always the easier one, and
# near 0 if the confidence says nothing about difficulty. It looks at the order alone and not at the level.
#
# The samples behind $\hat\mu$ *judge* a confidence. A sample that votes in response consistency must not also judge it. That
# leaves fewer judges, a noisier $\hat\mu$ and lower correlations. To be fair, `judge_alike` uses the same remaining samples for
# every method. Under the paper's protocol all samples judge.

# %%
from capcal_lib.results import differing, estimates
from capcal_lib.results.targets import judge_alike

results = results_of(page.counting)
points = estimates(differing(judge_alike(results)))
points["mu"] = points["correct"] / points["total"]

# %%
import pandas as pd

case = ["dataset", "method", "member"]
correlations = {
    key: pair[["confidence", "mu"]].corr("spearman").iloc[0, 1]
    for key, pair in points.groupby(case, observed=True)
}
correlations = pd.Series(correlations, dtype=float).dropna()

# %%
if correlations.empty:
    raise EndOfPage(
        "There is nothing to compare: no two questions differ in accuracy, or none of those has a confidence. To get one: capcal confidence"
    )
ranks = correlations.groupby(level=[0, 1], sort=False).mean().unstack()

# %% [markdown]
# The table has no intervals. As a rule of thumb, two methods may swap places on other questions if their correlations differ by
# less than about $3/\sqrt n$ on $n$ questions: .17 for 300. Compare methods within a data set only, because there the same
# samples judge. A dash: no confidence, for example because the probe was trained with the other kind of prompt, *short* or
# *steps*.

# %% label="estimator-ranks"
from capcal_lib.book.tables import show

ranks = ranks.reindex(page.runs.index).dropna(how="all")
shown = ranks.rename(page.runs["title"]).T.rename_axis("method")
caption = "Spearman correlation with expected accuracy (higher is better)."
show(shown, caption, digits=2, evidence=page.evidence)

# %% [markdown]
# Of the data sets with a probe we take the one with the most varied difficulty. We keep one probe, the *nearest*: that of the
# data set itself, or else of its domain:

# %%
from capcal_lib.results.targets import accuracy_variance

by_probe = points[points["nearest"]].index.unique("dataset")
probed = ranks.index.intersection(by_probe)
spread = accuracy_variance(results)
widest = spread[probed if len(probed) else ranks.index].idxmax()

# %%
drawn = points.loc[[widest]]
drawn = drawn[drawn["nearest"] | drawn["shift"].isna()]  # of the probes one
drawn["method"] = drawn["method"].cat.remove_unused_categories()

# %% [markdown]
# What does a rank correlation look like? The number of the table stands above each panel:

# %% tags=["picture"] label="fig-confidences" mystnb={"image": {"alt": "Scatter plots of the share of correct samples against the confidence, one panel per method, with a diagonal and one point per question."}}
import seaborn as sns
from capcal_lib.plots import palette

colors = palette(drawn["method"].unique(), widest)
panels = {"col": "method", "col_wrap": 2, "height": 2.0, "aspect": 1.75}
grid = sns.FacetGrid(drawn, hue="method", palette=colors, **panels)
grid.map(sns.scatterplot, "confidence", "mu", s=15, linewidth=0)
grid.map(sns.lineplot, x=[0, 1], y=[0, 1], color="gray", linewidth=1)
for name, rank in ranks.loc[widest].reindex([*colors]).items():
    grid.axes_dict[name].set_title(f"{name}: {rank:.2f}")
_ = grid.set_axis_labels("confidence", "share correct")

# %% [markdown]
# One point per question, and the rank correlation above. If only two samples judge, points gather at 0, 1/2 and 1. On the
# diagonal a confidence is right. In a narrow upright cloud, it is nearly the same for every question. If the points rise to the
# right, it tells easy questions from hard ones, even far from the diagonal.

# %%
order = ranks.loc[widest, [*colors]].dropna().sort_values(ascending=False)
followed = "".join(
    f", followed by {name} with {rank:.2f}" for name, rank in order[1:2].items()
)

# %% tags=["finding"]
finding(
    r"On {dataset}, *{first}* has the highest rank correlation with $\hat\mu$: {highest:.2f}{followed}.",
    dataset=page.runs.loc[widest, "title"],
    first=order.index[0],
    highest=order.iloc[0],
    followed=followed,
)

# %% [markdown]
# ## Ask in words, ask for one token
#
# Here are the paper's two prompts. Small models get shorter ones with examples. [The main
# table](04_main_table.ipynb#what-a-confidence-costs) counts what asking costs.

# %% label="estimator-prompts"
from capcal_lib.questions import Answer, Question
from capcal_lib.questions.prompts import verbalized_messages

question = Question("sum", "What is 6 × 7?", Answer("number", "42"))
print(verbalized_messages(question, "paper")[-1]["content"])

# %%
from capcal_lib.questions.prompts import p_true_messages

print(p_true_messages(question, "paper")[-1]["content"])

# %% [markdown]
# If a model fails to state a probability, the confidence is *missing* and the question is left out of the scores. Applications
# that need every confidence, such as spending a budget, use one half instead.

# %% [markdown]
# ## Let samples vote
#
# Response consistency is the share of votes for the most frequent answer:

# %%
votes = pd.Series(["Paris", "Paris", "Lyon", "Paris"])
votes.value_counts(normalize=True).head(1)

# %% [markdown]
# ## Read it from a hidden state
#
# While a model reads a prompt, each of its layers computes a list of numbers for each token: the *hidden state*. A probe is a
# logistic regression that predicts $\mu$ from the hidden state of the last token, averaged over layers. The probe
# in the figure was trained on questions whose share of correct samples is known:

# %%
from capcal_lib.probes import runs_for_probes, training_data

nearest = drawn.loc[drawn["nearest"], "method"].unique()
runs = runs_for_probes(page.counting.store, model, "training")
sources = [run for dataset, run in runs if dataset.probe in nearest]
if not sources:
    raise EndOfPage("No probe is trained: capcal features, then capcal probe")
questions, features = training_data(sources[0])

# %% [markdown]
# A question with 7 correct samples of 10 counts as 7 positives and 3 negatives, so it enters twice, with weights:

# %%
import numpy as np
from sklearn.preprocessing import StandardScaler

share = questions["correct"] / questions["total"]
scaler = StandardScaler().fit(features)
twice = np.tile(scaler.transform(features), (2, 1))

# %%
label = np.repeat([1, 0], len(share))
weight = np.concatenate([share, 1 - share]) / len(share)

# %% [markdown]
# *Weight decay* keeps coefficients small. Cross-validation on the training questions chooses how much.

# %%
from capcal_lib.probes import read_features, train
from sklearn.linear_model import LogisticRegression

decay = train(sources[0]).weight_decay_
by_hand = LogisticRegression(C=1 / decay, max_iter=5000, tol=1e-8)
_ = by_hand.fit(twice, label, sample_weight=weight)

# %%
ids, states = read_features(page.runs.loc[widest, "run"])
confidence = by_hand.predict_proba(scaler.transform(states))[:, 1]

# %% [markdown]
# `LinearProbe` solves the same problem faster. This is the largest difference between the two:

# %%
from capcal_lib.probes import LinearProbe

probe = LinearProbe(weight_decay=decay, standardize=True)
probe.fit(features, questions["correct"], questions["total"])
apart = np.abs(confidence - probe.predict(states)).max()
pd.Series({"largest difference": apart}).round(3)

# %% [markdown]
# This *tuned* probe is ours. [The page on corrections](13_protocol.ipynb) shows what the paper's recipe changes.
#
# ## Summary
#
# - The methods differ in cost by orders of magnitude.
# - Count missing confidences, and say what replaced them.
#
# A method may order questions well and still have the wrong level. [Next](04_main_table.ipynb): which one comes closest to $\mu$?
#
# ## Exercises
#
# **1 (easy).** Square every confidence in one panel of the first figure. What happens to the points, to the rank correlation and
# to the Brier score? *Hint:* take $\mu = 0.5$ and $s = 0.5$.

# %% tags=["hide-cell", "solution"]
# To the left, in the same order: the rank correlation stays, the score does not
first = drawn[drawn["method"] == drawn["method"].iloc[0]]
squared = (first["confidence"] ** 2).corr(first["mu"], method="spearman")
as_it_is = first["confidence"].corr(first["mu"], method="spearman")
score = {"as it is": (0.5 - 0.5) ** 2, "squared": (0.5**2 - 0.5) ** 2}
pd.DataFrame(
    {"rank": {"as it is": as_it_is, "squared": squared}, "score": score}
)

# %% [markdown]
# **2 (hard).** What does a probe predict if it is trained with hardly any weight decay? *Hint:* refit `LinearProbe` with
# `weight_decay=1e-6` and compare the spread of both probes.

# %% tags=["hide-cell", "solution"]
# The spread of a probe with hardly any decay, and of the tuned one
loose = LinearProbe(weight_decay=1e-6, standardize=True)
loose.fit(features, questions["correct"], questions["total"])
spreads = {"loose": loose.predict(states), "tuned": probe.predict(states)}
pd.DataFrame(spreads).std()
