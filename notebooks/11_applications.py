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
# [Before](10_small_models.ipynb) we counted how often a confidence is closer to the expected accuracy than the average. That is no
# use by itself: is anything done better with a confidence than by the best rule without one?

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
# A confidence is of use where something is better with it than by the best rule without one, in the same model and on the same
# questions. The paper names these uses and tries the first two (section 5); the rules without a confidence are of this book.
#
# | use | what a confidence may add, and its gain | best rule without one |
# |---|---|---|
# | [pass@k](05_pass_at_k.ipynb) | It tells whether one of 16 answers will be right: less squared error. | the other questions' mean |
# | [Budget](06_budget_allocation.ipynb) | Of two answers a question it gives one to the easy and three to others: more questions solved. | two for each |
# | [Abstaining](12_selective_prediction.ipynb) | The surest questions are answered first: a smaller area under the risk-coverage curve. | at random |
# | Labels saved | A line through it tells a label before it is bought: less variance is left. | the other labels' mean |
# | Evaluation | Questions whose answers will differ are sampled more often: less variance of the accuracy, for the same tokens. | evenly |
#
# A case *could be won* if a perfect confidence would be significantly better than the rule. A perfect confidence knows each
# question's expected accuracy, but not the noise of the samples that judge it, so `perfect_gains` draws accuracies that the samples
# leave possible. `compare_uses` judges every method in every use. All methods on all data sets of a model are one family in each use, by Holm's method, and the pages on
# budgets and on abstaining show the same verdicts. Routing questions to a larger
# model is for a pair of models and has a section of its own.

# %%
models = page.comparable_models()
results = {name: page.results(name) for name in models}
concentrations = {name: page.concentrations(name) for name in models}

# %%
from capcal_lib.studies import applications as study

comparisons = study.compare_uses(results, models, concentrations)
if comparisons.empty:
    page.end(
        "Nothing here can be compared. That takes a data set with a solved question and two samples of each, and a confidence: one that "
        "is asked for or imported, a probe, or ten votes, which take twelve samples."
    )
counts = study.count_uses(comparisons)
by_method = counts.groupby("method", sort=False).sum()
by_method

# %% tags=["finding"]
winnable = by_method.loc[comparisons["method"].unique(), "could be won"]
method = "Probe" if "Probe" in winnable else winnable.idxmax()
case = by_method.loc[method]
page.finding(
    "Going by *{method}* beats the best rule without a confidence in {better} of {winnable} comparisons that could be won, and loses to "
    "it in {worse} of {cases}.",
    method=method,
    better=case["better"],
    winnable=case["could be won"],
    worse=case["worse"],
    cases=case["cases"],
)

# %% tags=["picture"] label="fig-applications" paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"] mystnb={"image": {"alt": "A panel of horizontal bars for each method, with a row for each use: in how many comparisons a confidence is worse, and in how many better, than the rule without one."}}
_ = study.draw_uses(counts)

# %% [markdown] tags=["caption"]
# In each use, how often a confidence is worse than the best rule without one, and how often better, of the comparisons that could
# be won. Each is of a model on a data set, after Holm; in the rest of them the questions cannot tell. A dash: none is compared, or
# could be won.

# %% label="applications-summary" paper=["section-5.1", "section-5.2", "section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
from capcal_lib.book.lesson import evidence_of

page.show(
    counts,
    "Comparisons in which a confidence is better or worse than the best rule "
    "without one, of those that could be won and of all; after Holm in each use of a model.",
    evidence=evidence_of(*models.values()),
)

# %% [markdown]
# A use in which no method is better may still be one in which the questions are too few. Comparisons on
# one run are not independent of each other, so read the pattern and not a single cell.
# Whether a confidence that helps is also closer to the expected accuracy than the average is judged
# [with all methods of a model](10_small_models.ipynb), once for the whole book.

# %% [markdown]
# ## One comparison by hand
#
# Take the comparison in abstaining that is clearest: a confidence, the samples that judge it, and the tokens of an answer.

# %%
from capcal_lib.results import columns_of
from capcal_lib.results.uses import questions_to_use

abstained = comparisons[comparisons["use"] == "Abstaining"]
case = abstained.loc[abstained["p (Holm)"].idxmin()]
name, dataset, method = case[["model", "dataset", "confidence"]]
run = models[name]["run"][dataset]
questions = questions_to_use(results[name], dataset, run)
column = columns_of(questions, method)[0]  # of a probe by the paper's recipe
case[["model", "dataset", "confidence", "estimate", "low", "high", "verdict"]]

# %% [markdown]
# What it gains is a number for each question and use, and its mean is the gain:

# %%
import pandas as pd
from capcal_lib.applications import (
    abstaining_gains,
    budget_gains,
    evaluation_gains,
    label_gains,
    pass_at_k_gains,
)
from capcal_lib.results import judged_by

scored = judged_by(questions, column)
confidence, correct, total = (scored[part] for part in scored)
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
# An interval of a mean gain allows for half an unseen question that loses as much as a question can, and for half a one that gains
# as much. When abstaining, that is the question that is answered first, and `risk_area_bounds` says by how far it can move the area.
# The bounds of the other uses, and why they are these, stand with `bounds_in_use` in `capcal_lib/results/uses.py`.

# %%
from capcal_lib.applications import risk_area_bounds
from capcal_lib.metrics import judge_gain

gain = gains["Abstaining"]
judge_gain(gain, bounds=risk_area_bounds(len(gain)))

# %% [markdown]
# This interval takes questions as independent; where a data set comes in subjects, the table draws those whole.
#
# ## Which confidence is compared
#
# A probe is the one whose training set is nearest, never chosen by a score, and is taken as the mean of a posterior whose
# concentration is fitted on its training questions. Confidences that the model was asked for, and votes, have no training
# questions and are used directly; a question without one counts as one half. Ten votes cost more than a budget or an evaluation
# spends, so response consistency is left out of these two; in the other uses its cost is not counted. By the paper's recipe a probe
# is five, and its gain is the mean of theirs.

# %% label="applications-all" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
from capcal_lib.book import tables

about = ["use", "method", "model", "dataset", "gain", "low", "high", "p (Holm)"]
page.show(
    comparisons.rename(columns={"estimate": "gain"})[[*about, "verdict"]],
    "All comparisons: mean gain with its own 95 % interval, and the verdict after Holm in each use of a model, so that an interval "
    "may leave out 0 where nothing is decided.",
    evidence=evidence_of(*models.values()),
    digits=4,
    **{"p (Holm)": tables.p_value},
)

# %% [markdown]
# ## Routing to a larger model
#
# A question that a small model had better not answer may be sent on to a larger one, and where the small one will do, the large
# one need not be paid for. The paper names this use too and does not try it. Here the router sends on the half of the questions on
# which the nearest probe of the small model says least; with another share the result may differ. Its rival is *random mixing*, which sends on a random share of them, as
# large as costs the same. A question costs parameters, in billions, times tokens, those that are read and those that are written.
#
# `compare_routers` takes every pair of models on every data set that both have answered. Such a case is of two models, so these
# cases are a family of their own by Holm's method, and no verdict above depends on them. By the paper's recipe the gain is the mean
# of those of five probes. A gain has no bound that is known beforehand: the largest that a case shows, on either side, stands for
# it. Where no two models have answered one data set, and solved some of it, there is no row.

# %%
routed = study.compare_routers(results, models)
routed[["estimate", "low", "high"]] *= 100  # questions of a hundred
routed["verdict"].value_counts()

# %% label="routing-gains" paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "features"]
columns = ["dataset", "pair", "estimate", "low", "high", "verdict", "probe"]
page.show(
    routed[columns],
    "Gain over random mixing at equal cost, in questions solved of a hundred; "
    "the interval is that of one case alone, the verdict after Holm over all.",
    evidence=evidence_of(*models.values()),
    digits=1,
)

# %% tags=["remove-cell"]
from capcal_lib.book import front
from capcal_lib.book.lesson import glue

glue(**front.spell_uses(counts, routed["verdict"]))

# %% [markdown]
# By hand, take four questions: what each model solves of them, in expectation, what an answer costs, and what *reading* costs the
# small model, which has to read also what it sends on, since that is where the probe looks.

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
# What does random mixing solve for that cost? The small model solves 0.45 of a question on average, for a cost of 1, and the large
# one 0.70 for 5. So what is sent on at random gains 0.25 of a question for a cost of 4, or 0.0625 for a cost of 1. The router above
# spends 3.25, which is 2.25 more than the small model alone; random mixing turns that into $2.25 \times 0.0625 \approx 0.14$ of a
# question, and solves 0.59. What a cost of 1 gains is estimated from the same questions, and an interval has to allow for its
# error, so `routing_gains` counts each question with its share of it. The mean, which comes last, is the same.

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
# - The rival of a confidence is the best rule without one, at the same cost, and not doing nothing.
# - A use that needs the order of questions is easier to serve than one that needs the number.
# - Count the cost of the confidence too: a probe is nearly free, and asking the model costs about as much as a short answer.
# - Compare a router with random mixing at equal cost, with everything that it reads paid for.
#
# [Next](12_selective_prediction.ipynb): what does a model risk that answers only where its confidence is high?
#
# ## Exercises
#
# **1 (easy).** Look at the figure of uses. In which of them does a probe help, and what does a row without a bar mean, and one with
# a dash? Then find in `comparisons` on which data sets it helps. *Hint:* the verdict `better`; and the perfect confidence.

# %% tags=["hide-cell", "solution"]
# The uses in which a probe is better, by data set. No bar: nothing is clear; a dash: no confidence could have won
won = comparisons[comparisons["verdict"] == "better"]
won = won[won["method"] == "Probe"]
page.solution(pd.crosstab(won["dataset"], won["use"]))

# %% [markdown]
# **2 (medium).** By hand the confidence was used directly. What changes in pass@k and budgets with a posterior around it? *Hint:* its
# concentration; with a very large one nothing changes.

# %% tags=["hide-cell", "solution"]
# The mean gain at two concentrations, and directly
by_concentration = {}
for nu in (2, 20, None):
    passed = pass_at_k_gains(confidence, correct, total, 16, concentration=nu)
    spent = budget_gains(confidence, correct, total, 2, concentration=nu)
    by_concentration[nu or "directly"] = passed.mean(), spent.mean()
page.solution(pd.DataFrame(by_concentration, ["pass@k", "Budget"]))

# %% [markdown]
# **3 (hard).** A gain in the table of routers is below zero: is it the probe that fails there, or the idea of a router?
# *Hint:* `questions_of_pair`; and a router that knows the small model's expected accuracy.

# %% tags=["hide-cell", "solution"]
# Each case, and what its expected accuracy would gain as a router: where that gains nothing, better probes will not help
oracle = []
for case in routed.itertuples():
    pair = results, models, case.small, case.large, case.dataset
    questions = study.questions_of_pair(*pair)
    oracle.append(100 * routing_gains(questions["small"], questions).mean())
page.solution(routed[["dataset", "pair", "estimate"]].assign(oracle=oracle))
