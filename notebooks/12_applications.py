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
# [Before](11_small_models.ipynb) we counted how often a confidence is closer to the expected accuracy than the average. That is no
# use by itself: is anything done better with a confidence than by the best rule without one?

# %% tags=["parameters"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`; all are shown
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with the probes of its recipe
verdicts: str = "rules"  # or judge:MODEL, of the model's own samples

# %%
import pandas as pd
from capcal_lib.applications import (
    abstaining_gains,
    budget_gains,
    evaluation_gains,
    label_gains,
    pass_at_k_gains,
    risk_area_bounds,
)
from capcal_lib.book import tables
from capcal_lib.book.lesson import evidence_of, glue, open_page
from capcal_lib.book.widgets import HEADS
from capcal_lib.confidence import TITLES
from capcal_lib.metrics import judge_gain
from capcal_lib.plots import stack_verdicts
from capcal_lib.probes import describe_probes
from capcal_lib.results import (
    columns_of,
    compare_with_constant,
    count_by_kind,
    judged_by,
)
from capcal_lib.results.uses import compare_uses, count_uses, questions_to_use

# %% tags=["provenance"]
page = open_page(globals())

# %% [markdown]
# A confidence is of use where something is better with it than by the best rule without one, in the same model and on the same
# questions. The paper names these uses and tries the first two (section 5); the rules without a confidence are of this book.
#
# | use | what a confidence may add, and its gain | best rule without one | a gain is at least, at most |
# |---|---|---|---|
# | [pass@k](05_pass_at_k.ipynb) | It tells whether one of 16 answers will be right: less squared error. | the other questions' mean $c$ | $-1 + \min(c^2, (1-c)^2)$, $\max(c^2, (1-c)^2)$ |
# | [Budget](06_budget_allocation.ipynb) | Of two answers a question it gives one to the easy and three to others: more questions solved. | two for each | $-1$, $1$ |
# | [Abstaining](13_selective_prediction.ipynb) | The surest questions are answered first: a smaller area under the risk-coverage curve. | at random | $-(H_n - 2 + 1/n)$, $H_n - 2 + 1/n$ |
# | [Labels saved](15_benchmarking.ipynb) | A line through it tells a label before it is bought: less variance is left. | the other labels' mean $c$ | as pass@k |
# | Evaluation | Questions whose answers will differ are sampled more often: less variance of the accuracy, for the same tokens. | evenly | $-3/4$, $1/4$ |
#
# A *perfect* confidence is $\hat\mu$ itself. Where that would not be better than the rule either, by the same test and in the same
# place, the questions are too few for any confidence: such a case is *undecidable*, and counts for nobody. `compare_uses` judges
# every method in every use, for all models on all their data sets, as one family by Holm's method.

# %%
models = page.measured_models()
results = {name: page.results(name) for name in models}
concentrations = {}
for name in models:
    judge = verdicts if name == model else "rules"
    probes = describe_probes(
        page.store, name, recipe=page.recipe, verdicts=judge
    )
    concentrations[name] = probes["concentration"]

# %%
comparisons = compare_uses(results, models, concentrations)
if comparisons.empty:
    page.end("No model of this store has a solved question.")
counts = count_uses(comparisons)
by_method = counts.groupby("method", sort=False).sum()
by_method

# %% tags=["finding"]
page.finding(
    "Of the comparisons that could be decided, a probe beats the best rule without a confidence in {better} of {decided} and "
    "loses to it in {worse}.",
    **by_method.loc["Probe"],
)

# %% tags=["picture"] label="fig-applications" paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"] mystnb={"image": {"alt": "A panel of horizontal stacked bars for each method, with a row for each use: how many comparisons have each verdict."}}
comparisons["verdict"] = comparisons["verdict"].cat.rename_categories(HEADS)
_ = stack_verdicts(comparisons, y="use", col="method")

# %% [markdown] tags=["caption"]
# What a confidence adds in each use. Comparisons, each of a model on a data set, after Holm over all of this page: a confidence is
# better than the best rule without one; alike, within half a point; cannot tell; worse; or undecidable, where a perfect confidence
# would not be better either, so that it counts for nobody. An empty row is not compared.

# %% label="applications-summary" paper=["section-5.1", "section-5.2", "section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
spelt = counts["better"].map("{} better, ".format)
spelt += counts["worse"].map("{} worse, ".format)
spelt += counts["decided"].map("of {}".format)
page.show(
    spelt.mask(counts["decided"] == 0, "–").unstack(sort=False),
    "Comparisons in which a confidence is better or worse than the best rule "
    f"without one, of those that could be decided; after Holm over the {len(comparisons)} "
    "comparisons of this page. A dash: none is compared, or could be decided.",
    evidence=evidence_of(*models.values()),
)

# %% tags=["remove-cell"]
words = {
    "pass@k": "pass@k",
    "Budget": "spending a budget",
    "Abstaining": "abstaining",
    "Labels saved": "saving labels",
    "Evaluation": "designing an evaluation",
}
probed = counts.xs("Probe", level="method").rename(words)
won = probed["better"].map(" ({} of ".format) + probed["decided"].map(
    "{})".format
)
won = won.index + won
asked = by_method.loc[[*TITLES.values()]].sum()
glue(
    helps=", ".join(won[probed["better"] > 0]) or "nothing",
    never=", ".join(won[probed["better"] == 0]) or "nothing",
    asks=int(asked["decided"]),
    asked_better=int(asked["better"]),
    asked_worse=int(asked["worse"]),
)

# %% [markdown]
# Read a row of the table: a use in which no method is better may still be one in which the questions are too few. Comparisons on
# one run are not independent of each other, so read the pattern and not a single cell.
#
# Is a confidence that helps also closer to the expected accuracy than the average? That is judged
# [with all methods of a model](11_small_models.ipynb), once for the whole book:

# %%
against = [
    compare_with_constant(own, protocol=protocol) for own in results.values()
]
count_by_kind(pd.concat(against))

# %% [markdown]
# ## One comparison by hand
#
# Take the comparison in abstaining that is clearest: a confidence, the samples that judge it, and the tokens of an answer.

# %%
abstained = comparisons[comparisons["use"] == "Abstaining"]
case = abstained.loc[abstained["p (Holm)"].idxmin()]
name, dataset, method = case[["model", "dataset", "confidence"]]
run = models[name]["run"][dataset]
questions = questions_to_use(results[name], run, dataset)
column = columns_of(questions, method)[0]  # of a probe by the paper's recipe
case[["model", "dataset", "confidence", "estimate", "low", "high", "verdict"]]

# %% [markdown]
# What it gains is a number for each question and use, and its mean is the gain:

# %%
scored = judged_by(questions, column)
confidence, correct, total = (scored[each] for each in scored)
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
# An interval of a mean gain allows for half an unseen question at the least and at the largest gain that one can have:
#
# - Over a mean $c$, squared errors gain most where a confidence is right and $c$ is far off, and lose most where it is wrong and
#   $c$ is near. So it is for pass@k, and for labels, whose line is kept between 0 and 1.
# - A budget loses a whole question where it spends nothing on one that even spending solves, and gains one the other way round.
# - When abstaining, a question counts by how far it moves the area. The surest of $n$ is in every share that is answered, in the
#   first alone, in the second with one other, and so on: with $H_n = 1 + 1/2 + \dots + 1/n$ it moves the area by up to
#   $H_n - 2 + 1/n$ questions, if there are twelve or more.
# - In an evaluation the variance of an answer is at most 1/4. A question with a quarter of the samples has four times that
#   variance, three quarters more; one with very many has none.

# %%
gain = gains["Abstaining"]
judge_gain(gain, bounds=risk_area_bounds(len(gain)))

# %% [markdown]
# This interval takes questions as independent; where a data set comes in subjects, the table draws those whole.
#
# ## Which confidence is compared
#
# A probe is the one whose training set is nearest, never chosen by a score, and is taken as the mean of a posterior whose
# concentration is fitted on its training questions. Confidences that the model was asked for, and votes, have no training
# questions and are used directly; a question without one counts as one half. Ten votes cost more than a budget spends, so response
# consistency is left out there; elsewhere its cost is not counted. By the paper's recipe a probe is five, and its gain is the mean
# of theirs.

# %% label="applications-all" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
about = ["use", "method", "model", "dataset", "gain", "low", "high", "p (Holm)"]
page.show(
    comparisons.rename(columns={"estimate": "gain"})[[*about, "verdict"]],
    "All comparisons: mean gain with its own 95 % interval, and the verdict "
    f"after Holm over these {len(comparisons)}, so that an interval may leave out 0 "
    "where nothing is decided.",
    evidence=evidence_of(*models.values()),
    digits=4,
    **{"p (Holm)": tables.p_value},
)

# %% [markdown]
# ## Summary
#
# - The rival of a confidence is the best rule without one, at the same cost, and not doing nothing.
# - A use that needs the order of questions is easier to serve than one that needs the number.
# - Count the cost of the confidence too: a probe is nearly free, and asking the model costs about as much as a short answer.
#
# [Next](13_selective_prediction.ipynb): what does a model risk that answers only where its confidence is high?
#
# ## Exercises
#
# **1 (easy).** Look at the figure. On which data sets does a probe help in any use, and what does a bar mean that is undecidable from
# end to end? *Hint:* the verdict `better`; and the perfect confidence.

# %% tags=["hide-cell", "solution"]
# The uses in which a probe's verdict is better, by data set; where all is undecidable no confidence could have won
won = comparisons[comparisons["verdict"] == "better"]
won[won["method"] == "Probe"].groupby("dataset")["use"].unique()

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
pd.DataFrame(by_concentration, ["pass@k", "Budget"])

# %% [markdown]
# **3 (hard).** How many verdicts would there be by chance, were no confidence better or worse than its rule and each judged
# by its own 95 % interval? *Hint:* such an interval leaves out zero once in twenty.

# %% tags=["hide-cell", "solution"]
# Verdicts by chance, and as found
apart = (comparisons["low"] > 0) | (comparisons["high"] < 0)
round(len(comparisons) / 20), int(apart.sum())
