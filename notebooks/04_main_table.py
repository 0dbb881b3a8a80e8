# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Main table
#
# On [the previous page](03_confidence_estimators.ipynb) we met the ways to get a confidence. These are the results: which of
# them comes closest to the expected accuracy $\mu$, and what does it cost?

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged

# %%
from capcal_lib.book.page import EndOfPage, finding, open_page, show_runs

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)
show_runs(page, printed=["table-2", "table-4", "figure-4"])

# %%
from capcal_lib.results import compare_with_constant
from capcal_lib.results.results import results_of

results = results_of(page.counting)
judged = compare_with_constant(results, protocol=protocol)
if judged.empty:
    raise EndOfPage(
        "There is nothing to compare: no two questions differ in accuracy, or none of those has a confidence. To get one: capcal confidence"
    )

# %%
from capcal_lib.results import compare_recalibrated, count_by_kind
from capcal_lib.text import share_in_words

equal = compare_recalibrated(results, protocol=protocol)
home = count_by_kind(judged).loc["probe of the data set"]
voted = count_by_kind(equal).loc["response consistency"]

# %% tags=["finding"]
finding(
    "A probe trained on the data set beats the best constant in {probe} that could be won. Response consistency, recalibrated with labels of other questions, beats it in {votes}.",
    probe=share_in_words(home["better"], home["could be won"], "case"),
    votes=share_in_words(voted["better"], voted["could be won"], "case"),
)

# %%
from capcal_lib.results import recalibrate, score

keys = ["dataset", "method"]
again = score(recalibrate(results), protocol=protocol)["brier"]
again = again.reindex(equal.set_index(keys).index)  # no probes
scores = score(results, protocol=protocol).assign(recalibrated=again)

# %%
from capcal_lib import plots

is_mix = judged["kind"] == "probe of several data sets"
mixes = judged["method"][is_mix].unique()

# %% tags=["picture"] label="fig-scores" mystnb={"image": {"alt": "Dot plot of capability Brier scores with intervals: one row per data set, one filled mark per method, a hollow one for the method recalibrated, and a line for the best constant in each row."}}
drawn = scores.drop([*mixes, "Uniform random", "Oracle CC"], level="method")
_ = plots.ScoreDisplay.from_scores(drawn.loc[judged["dataset"].unique()])

# %% [markdown]
# Capability Brier scores with 95 % intervals on the data sets whose questions differ in accuracy; lower is better. The line in a
# row is the best constant. A hollow mark is the same method recalibrated. *Oracle RC* knows whether one sample is correct. Probes
# learned from the data set itself (in the paper's words *in-domain in-distribution*), from another one of its domain (*in-domain
# out-of-distribution*) or from another domain (*out-of-domain*).

# %% [markdown]
# The *capability Brier score* of a method is the mean squared distance of its confidence from $\hat\mu$, the share of correct
# samples; lower is better. The rival of every method is the *best constant*: for each question, the mean $\hat\mu$ of the
# others. It knows the data set and nothing about the question.
#
# Is the difference more than chance? The *gain* of a method is the constant's squared error minus its own, averaged over the
# same questions. A method on a data set is a *case*, and its verdict is *better*, *worse* or *inconclusive*. We make many tests
# at once and adjust for that with Holm's method: the chance of even one false verdict in a *family* of tests is at most 5 %.
# All methods of a model are one family, probes trained on other data sets are another, and so is each further table of verdicts
# below.
#
# If nearly every question of a data set is failed, even a perfect confidence is not significantly better than the constant. So a
# case *could be won* if a perfect confidence, tested alone and without Holm's method, would be significantly better. We count
# wins among these cases only. Any case can be lost, so we count losses among all *cases*.

# %%
count_by_kind(judged)

# %% [markdown]
# This comparison is uneven. The constant and the probes have learned from *labels*: they know the shares of correct samples
# of other questions. The other methods do not, so their level may be wrong. How good are they when they
# may use labels of other questions too, as the constant does? `compare_recalibrated` answers that, and
# [below](#on-equal-terms) we do it by hand.

# %%
count_by_kind(equal).query("cases > 0")

# %% [markdown]
# ## From samples to scores
#
# We score one confidence by hand, on the questions with at least two scored samples:

# %%
import pandas as pd
from capcal_lib.results import best_constant, estimates

asked = judged[judged["method"] != "Response consistency"]
case = (asked if len(asked) else judged).iloc[0]
shown, method = case[["dataset", "method"]]

# %%
stated = estimates(results.loc[[shown]].query("total > 1"), method)
stated = stated.query("member == 0")
pd.Series({"data set": page.runs.loc[shown, "title"], "method": method})

# %%
mu = stated["correct"] / stated["total"]
plug_in = (stated["confidence"] - mu) ** 2
pd.Series({"plug-in score": plug_in.mean()})

# %% [markdown]
# This is the paper's *plug-in* score. It is too high: even $\mu$ itself misses $\hat\mu$, whose variance over sets of $n$
# samples is $\mu(1-\mu)/n$. The *corrected* score subtracts $\hat\mu(1-\hat\mu)/(n-1)$, which estimates this excess without
# bias and does not depend on the confidence.

# %%
noise = mu * (1 - mu) / (stated["total"] - 1)
corrected = plug_in - noise
pd.Series({"corrected score": corrected.mean()})

# %% [markdown]
# The best constant is scored like any other confidence:

# %%
constant = best_constant(results.loc[[shown]].query("total > 1"))[mu.index]
constant_terms = (constant - mu) ** 2 - noise
pd.Series({"best constant": constant_terms.mean()})

# %% [markdown]
# The gain is the mean difference. If the data set has subjects, such as anatomy, the interval of the gain treats the questions
# of a subject as one group. The interval is limited to gains that are possible for a confidence between 0 and 1. It adds one
# unseen question, half at either limit. If the questions are nearly alike, this makes up most of the interval's width.

# %%
from capcal_lib.metrics import bounds_over_constant, mean_interval
from capcal_lib.results import subjects

gain = constant_terms - corrected
bounds = bounds_over_constant(constant)
interval = mean_interval(gain, clusters=subjects(stated), bounds=bounds)
pd.Series(interval, ["gain", "low", "high"])

# %% [markdown]
# Response consistency and the paper's probes take more steps. A sample may not both vote and judge, so `score` lets ten
# samples vote and the others judge, over many splits. Under the paper's protocol votes judge themselves. The paper's recipe
# trains five probes, each on four fifths of the training questions, and averages their squared errors.
#
# Oracle CC reports $\hat\mu$ and is scored on the same samples, so its score is zero by construction. On the page on
# [pass@k](05_pass_at_k.ipynb) it is scored on samples that it does not know.
#
# ## On equal terms
#
# Now we recalibrate the confidence that we scored by hand. On one half of the questions we learn how it relates to the shares
# of correct samples, and we score the other half. Platt's method fits a line to the log-odds, so it moves the level and keeps
# the order, or reverses it.

# %%
from capcal_lib.metrics import Calibrator

numbers = ["confidence", "correct", "total"]
learned = stated.sample(frac=0.5, random_state=0)
calibrator = Calibrator("platt").fit(*learned[numbers].to_numpy().T)

# %%
from capcal_lib.metrics import capability_brier

judges = stated.drop(learned.index)
before, *counts = judges[numbers].to_numpy().T

# %%
both = {"as it is": before, "recalibrated": calibrator.predict(before)}
both = {
    k: capability_brier(s, *counts, corrected=True) for k, s in both.items()
}
pd.Series(both, name="score")

# %% [markdown]
# `recalibrate` does this for all methods with cross-validation in five folds of whole subjects. For response consistency, the
# first ten samples vote and the others judge, unless `protocol` is *paper*. The paper recalibrates nothing.

# %%
from capcal_lib.book.tables import show

as_it_is = judged.set_index(keys)["verdict"].rename("as it is")

# %% label="main-equal"
table = equal[[*keys, "estimate", "low", "high", "verdict", "could be won"]]
table = table.replace({"could be won": {True: "yes", False: "no"}})
caption = "Mean gain over the best constant after recalibration on the labels of other questions (higher is better), with its own 95 % interval, the verdict after Holm, whether the case could be won, and the verdict without recalibration."
show(table.join(as_it_is, on=keys), caption, evidence=page.evidence)

# %% [markdown]
# The constant keeps a small advantage: it also knows the other questions of the same subject; recalibration may not use them.

# %% [markdown]
# ## All scores
#
# A cost is the mean over the data sets on which methods are compared. A dash under a data set means that a probe was trained with the other kind of prompt, *short* or *steps*, or that there are too
# few samples to vote and to judge.

# %%
from capcal_lib.book.tables import show_scores
from capcal_lib.probe_names import is_probe
from capcal_lib.results import costs

tokens = costs(page.counting).reindex(judged["dataset"].unique())

# %%
names = scores.index.get_level_values("method")
free = [*filter(is_probe, names.unique()), "Best constant", "Uniform random"]
price = tokens.mean().round().to_dict() | dict.fromkeys(free, 0)
cost = names.map(price)
varied = scores.index.isin(tokens.index, level="dataset")

# %% label="main-scores"
marked = scores.assign(cost=cost, may_be_best=scores["may_be_best"] & varied)
caption = f"Capability Brier score, protocol {protocol} (lower is better), and cost in tokens."
show_scores(marked.drop(mixes, level="method"), caption, evidence=page.evidence)

# %% [markdown]
# All gains over the best constant, as they are, with intervals and verdicts, are in this file:

# %%
from capcal_lib.book import tables

link = tables.csv_link(tables.titled(judged.drop(columns=["kind", "nearest"])))
tables.Html(f"<p>{link} {tables.badge(page.evidence)}</p>")

# %% [markdown]
# The mean of $\mu$ is the accuracy that a benchmark reports. The [page on grading](15_grading.ipynb) corrects it for errors of
# the grader.

# %% label="main-overview"
from capcal_lib.studies import main_table as study

caption = (
    "Mean expected accuracy with its 95 % interval for questions like these."
)
show(study.accuracies(page.counting), caption, evidence=page.evidence)

# %% [markdown]
# ## What a confidence costs
#
# Do you get what you pay for? The price of a confidence is the mean number of tokens that the model writes for it. Ten votes
# take ten answers. A probe takes no tokens, because the model reads the prompt anyway.
#
# The best constant takes no tokens. Neither does the *nearest* probe: that of the data set itself, or else of its domain.

# %% label="fig-cost" mystnb={"image": {"alt": "One panel per data set with the scores of methods in the order of their price: a filled mark with an interval for each, a hollow one for the method recalibrated, and a dashed line for the best constant."}}
prices = study.score_by_price(scores, tokens, judged)
if len(prices):  # a confidence of one's own has no price
    _ = study.draw_prices(tables.titled(prices), "dataset")

# %% [markdown]
# Scores with 95 % intervals, from the cheapest method to the dearest; below each, its mean tokens per question. The dashed line is
# the best constant. A hollow mark is the same method recalibrated.

# %% [markdown]
# On how many data sets do tokens buy a better score than the nearest probe's? We compare both as they are, and both recalibrated
# on the same labels and judged by the same samples.

# %%
from capcal_lib.results import compare_with_nearest_probe
from capcal_lib.results.targets import judge_alike

alike = recalibrate(judge_alike(results))
ways = {"as they are": results, "recalibrated": alike}

# %%
bought = {
    way: compare_with_nearest_probe(given, protocol=protocol)
    for way, given in ways.items()
}
bought = pd.concat(bought, names=["compared", None])
by = bought.groupby(["compared", "method"], observed=False)["verdict"]
by.value_counts().unstack()

# %% [markdown]
# ## Summary
#
# - Compare a confidence with the best constant, which beats *Uniform random* on any set of more than a few questions.
# - Do not rank methods without intervals. The table of scores marks those that may be the best.
# - A score mixes what a method knows with its level. Recalibrate before you compare what methods know.
# - A confidence that takes tokens has two rivals that take none: the constant and the nearest probe. Both need labels.
#
# What can we do with a confidence? [Next](05_pass_at_k.ipynb): does it predict how often at least one of several attempts
# succeeds?
#
# ## Exercises
#
# **1 (easy).** Why do the plug-in and the corrected score differ by the same amount for any two confidences that the same samples
# judge? *Hint:* which symbol is not part of the correction?

# %% tags=["hide-cell", "solution"]
# The correction does not contain the confidence: two confidences, one difference
correct, total = [3, 8], [10, 10]
for s in ([0.2, 0.9], [0.5, 0.5]):
    plug_in = capability_brier(s, correct, total)
    corrected = capability_brier(s, correct, total, corrected=True)
    print(s, round(plug_in - corrected, 4))

# %% [markdown]
# **2 (hard).** In the first figure, on which data set can a method gain most over the best constant, and why? *Hint:* express
# the score of the best constant in terms of $\mu$.

# %% tags=["hide-cell", "solution"]
# The one whose questions differ most: the constant scores the variance of mu
from capcal_lib.results.targets import accuracy_variance

variance = accuracy_variance(results)
constant_score = scores["brier"].xs("Best constant", level="method")
pd.DataFrame({"variance": variance, "constant": constant_score})
