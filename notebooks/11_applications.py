# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a confidence help?
#
# What can you do better with a confidence than with the best rule that needs none? [On the previous
# page](10_small_models.ipynb) we counted how often a confidence is closer to the expected accuracy than the average. Being
# closer is no use by itself.

# %% tags=["parameters"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models` with samples
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with the probes of its recipe
verdicts: str = "rules"  # or judge:MODEL, of the model's own samples

# %% tags=["provenance"]
from capcal_lib.book.lesson import open_page

page = open_page(globals())
page.show_other_models()

# %% [markdown]
# In each of five uses, we compare a confidence with the best rule that does not use it, on the same questions. The paper tries
# the first two and names others (section 5). The rules are ours.
#
# | use | what a confidence does, and its gain | best rule without one |
# |---|---|---|
# | [pass@k](05_pass_at_k.ipynb) | predicts whether one of 16 answers will be right: less squared error | mean of the other questions |
# | [Budget](06_budget_allocation.ipynb) | moves answers to harder questions: more questions solved | two answers a question |
# | [Abstaining](12_selective_prediction.ipynb) | answers the surest questions first: less area under the risk-coverage curve | random order |
# | Labels saved | predicts the accuracy on a question that is not labelled: less squared error | mean of the other questions |
# | Evaluation | samples questions with mixed answers more often: less variance of the mean accuracy for the same tokens | one answer a question |
#
# A case *could be won* if a perfect confidence, which knows each question's expected accuracy, would be significantly better
# than the rule. In each use, all methods on all data sets of a model are judged together by Holm's method.

# %%
models = page.comparable_models()
results = {name: page.results(name) for name in models}
concentrations = {name: page.concentrations(name) for name in models}

# %%
from capcal_lib.studies import applications as study

comparisons = study.compare_uses(results, models, concentrations)
if comparisons.empty:
    page.end(
        "Nothing here can be compared. That takes a data set with a solved question, two samples of each question, and a confidence. The "
        "confidence can be asked for or imported, or come from a probe or from ten votes, which two more samples have to judge."
    )
counts = study.count_uses(comparisons)
by_method = counts.groupby("method", sort=False).sum()
by_method

# %% tags=["finding"]
from capcal_lib.book import front

winnable = by_method.loc[comparisons["method"].unique(), "could be won"]
method = "Probe" if "Probe" in winnable else winnable.idxmax()
case = by_method.loc[method]
page.finding(
    "*{method}* beats the best rule without a confidence in {cases}.",
    method=method,
    cases=front.spell_counts(case),
)

# %% tags=["picture"] label="fig-applications" paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"] mystnb={"image": {"alt": "A panel for each method with a row for each use. One bar is the share of comparisons in which it is worse than the rule without a confidence, the other the share in which it is better."}}
_ = study.draw_uses(counts)

# %% [markdown] tags=["caption"]
# For each method, the share of comparisons in which it is worse (left) or better (right) than the best rule without a
# confidence, after Holm. Each comparison is one model on one data set. A dash means that none could be won.

# %% label="applications-summary" paper=["section-5.1", "section-5.2", "section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
from capcal_lib.book.lesson import evidence_of

page.show(
    counts,
    "Comparisons of a confidence with the best rule without one. Better is counted among the cases that could be won, and worse among all "
    "cases. Verdicts are after Holm, for each use and each model.",
    evidence=evidence_of(*models.values()),
)

# %% [markdown]
# If no method is better in a use, the questions may be too few to tell. Comparisons on one run depend on each other, so read
# the pattern and not a single cell.
#
# ## Is the model overconfident?
#
# A confidence is *overconfident* if its mean is above the accuracy. Here is the difference on each data set:

# %%
own = results[model]
accuracy = own["correct"] / own["total"]
confidences = own[own.columns.intersection(study.COMPARED)]
excess = confidences.sub(accuracy, axis="index")
excess.groupby("dataset", sort=False).mean().round(2)

# %% [markdown]
# An overconfident method loses in uses that need the level, such as pass@k. It can still help in uses that need only the order,
# such as abstaining. [Recalibration](04_main_table.ipynb#on-equal-terms) mends the level, and leaves the order or reverses it.
#
# ## One comparison by hand
#
# Take the clearest comparison in abstaining:

# %%
from capcal_lib.results.uses import questions_to_use

abstained = comparisons[comparisons["use"] == "Abstaining"]
case = abstained.loc[abstained["p (Holm)"].idxmin()]
name, dataset, method = case[["model", "dataset", "confidence"]]
run = models[name]["run"][dataset]
questions = questions_to_use(results[name], dataset, run)
case[["model", "dataset", "confidence", "estimate", "low", "high", "verdict"]]

# %% [markdown]
# In each use every question has a gain, and their mean is the gain of the confidence:

# %%
import pandas as pd
from capcal_lib.applications import (
    abstaining_gains,
    budget_gains,
    evaluation_gains,
    label_gains,
    pass_at_k_gains,
)
from capcal_lib.results import estimates

scored = estimates(questions, method).query("member == 0")
numbers = ["confidence", "correct", "total"]
confidence, correct, total = (scored[name] for name in numbers)
tokens = questions["tokens"].reindex(scored.index)
gains = {
    "pass@k": pass_at_k_gains(confidence, correct, total, 16),
    "Budget": budget_gains(confidence, correct, total, 2),
    "Abstaining": abstaining_gains(confidence, correct, total),
    "Labels saved": label_gains(confidence, correct, total),
    "Evaluation": evaluation_gains(confidence, correct, total, tokens),
}
pd.DataFrame(gains).mean()

# %% [markdown]
# To allow for unseen questions, the interval counts an extra half of a question with the largest possible loss, and another
# half with the largest possible gain:

# %%
from capcal_lib.applications import risk_area_bounds
from capcal_lib.metrics import judge_gain

gain = gains["Abstaining"]
judge_gain(gain, bounds=risk_area_bounds(len(gain)))

# %% [markdown]
# This interval takes questions as independent. If a data set has subjects, the table treats the questions of a subject as one
# group.
#
# ## Which confidence is compared
#
# We take the probe with the nearest training set, never the one with the best score. Pass@k and budgets use a posterior around
# it, with a concentration fitted on the training questions. A missing vote or stated confidence counts as one half. Ten votes
# cost more than a budget or an evaluation spends, so these two uses leave them out. The other uses do not count their cost.

# %% label="applications-all" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
from capcal_lib.book import tables

about = ["use", "method", "model", "dataset", "gain", "low", "high", "p (Holm)"]
page.show(
    comparisons.rename(columns={"estimate": "gain"})[[*about, "verdict"]],
    "All comparisons: mean gain with its own 95 % interval, and the verdict after Holm, for each use and each model. An interval may exclude "
    "0 although the verdict is inconclusive.",
    evidence=evidence_of(*models.values()),
    digits=4,
    **{"p (Holm)": tables.p_value},
)

# %% [markdown]
# ## Routing to a larger model
#
# A router sends questions from a small model on to a larger one; the paper only names this use. Our router keeps half of the
# questions and sends on the other half, on which the small model's nearest probe is less confident. Its rival, *random mixing*,
# sends on a random share at the same cost. The cost of a question is the model's parameters, in billions, times the tokens read
# and written.
#
# `compare_routers` judges every pair of models on every data set that both have answered, as one family. This gain has no known
# bound, so the interval uses the largest gain or loss of a question in the case.

# %%
routed = study.compare_routers(results, models)
routed[["estimate", "low", "high"]] *= 100  # questions of a hundred
routed["verdict"].value_counts()

# %% label="routing-gains" paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "features"]
columns = ["dataset", "pair", "estimate", "low", "high", "verdict", "probe"]
page.show(
    routed[columns],
    "Gain over random mixing at equal cost, in questions solved of a hundred. "
    "Each interval is for one case alone, and the verdict is after Holm.",
    evidence=evidence_of(*models.values()),
    digits=1,
)

# %% tags=["remove-cell"]
from capcal_lib.book.lesson import glue

glue(**front.spell_uses(counts, routed["verdict"]))

# %% [markdown]
# By hand, take four questions. The small model also has to *read* the questions that it sends on, because the probe uses its
# hidden states:

# %%
four = {"small": [0.0, 0.2, 0.7, 0.9], "large": [0.1, 0.8, 0.9, 1.0]}
costs = {"small cost": 1, "large cost": 5, "reading": 0.5}
questions = pd.DataFrame(four | costs)
questions

# %%
probe = pd.Series([0.1, 0.3, 0.6, 0.8])
sent = probe.rank() <= len(questions) / 2
solved = questions["small"].where(~sent, questions["large"])
paid = questions["large cost"] + questions["reading"]
cost = questions["small cost"].where(~sent, paid)
solved.mean(), cost.mean()

# %% [markdown]
# What does random mixing solve for that cost? The small model solves 0.45 of a question on average at a cost of 1, and the
# large one 0.70 at a cost of 5. Four more units of cost buy 0.25, so one unit buys 0.0625. The router spends 2.25 more than
# the small model. For that, random mixing buys $2.25 \times 0.0625 \approx 0.14$ and solves 0.59.
#
# `routing_gains` compares the two for each question; its mean comes last:

# %%
from capcal_lib.applications import routing_gains

means = questions.mean()
dearer = means["large cost"] - means["small cost"]
gain_per_cost = (means["large"] - means["small"]) / dearer
more = cost.mean() - means["small cost"]
mixed = means["small"] + gain_per_cost * more
solved.mean() - mixed, routing_gains(probe, questions).mean()

# %% [markdown]
# ## Summary
#
# - The rival of a confidence is the best rule without one, at the same cost.
# - A use that needs only the order of questions is easier to serve than one that needs the level.
# - Count the cost of the confidence: a probe is nearly free, and asking the model in words costs about as much as a short answer.
#
# [Next](12_selective_prediction.ipynb): how often is a model wrong if it answers only when its confidence is high?
#
# ## Exercises
#
# **1 (easy).** In which uses, and on which data sets, does a probe help? What does a missing bar mean, and what does a dash
# mean? *Hint:* the verdict `better` in `comparisons`.

# %% tags=["hide-cell", "solution"]
# Uses in which a probe is better, by data set. No bar: nothing is significant; a dash: no confidence could have won
won = comparisons[comparisons["verdict"] == "better"]
won = won[won["method"] == "Probe"]
page.solution(pd.crosstab(won["dataset"], won["use"]))

# %% [markdown]
# **2 (medium).** By hand we used the confidence directly. What changes in pass@k and budgets with a posterior around it?
# *Hint:* a very large concentration changes nothing.

# %% tags=["hide-cell", "solution"]
# The mean gain at two concentrations, and directly
by_concentration = {}
for nu in (2, 20, None):
    passed = pass_at_k_gains(confidence, correct, total, 16, concentration=nu)
    spent = budget_gains(confidence, correct, total, 2, concentration=nu)
    by_concentration[nu or "directly"] = passed.mean(), spent.mean()
page.solution(pd.DataFrame(by_concentration, ["pass@k", "Budget"]))

# %% [markdown]
# **3 (hard).** Some gains in the table of routers are below zero. Does the probe fail there, or the idea of a router? *Hint:*
# `questions_of_pair`; and a router that knows the small model's expected accuracy.

# %% tags=["hide-cell", "solution"]
# What the expected accuracy itself would gain as a router: if that gains nothing, a better probe will not help
oracle = []
for case in routed.itertuples():
    pair = results, models, case.small, case.large, case.dataset
    questions = study.questions_of_pair(*pair)
    oracle.append(100 * routing_gains(questions["small"], questions).mean())
page.solution(routed[["dataset", "pair", "estimate"]].assign(oracle=oracle))
