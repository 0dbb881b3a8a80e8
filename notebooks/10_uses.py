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

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models` with samples
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with the probes of its recipe
verdicts: str = "rules"  # or judge:MODEL, of the model's own samples

# %%
from capcal_lib.book.page import (
    EndOfPage,
    finding,
    models_beside,
    open_page,
    probes_of,
    show_runs,
)
from capcal_lib.book.tables import show
from capcal_lib.results.results import results_of

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)

# %% [markdown]
# In each of three uses, we compare a confidence with the best rule that does not use it, on the same questions. The paper tries
# the first two and names others (section 5). The rules are ours.
#
# | use | what a confidence does, and its gain | best rule without one |
# |---|---|---|
# | [pass@k](05_pass_at_k.ipynb) | predicts whether one of 16 answers will be right: less squared error | mean of the other questions |
# | [Budget](06_budget_allocation.ipynb) | moves answers to harder questions: more questions solved | two answers a question |
# | [Abstaining](12_selective_prediction.ipynb) | answers the surest questions first: less area under the risk-coverage curve | random order |
#
# A case *could be won* if a perfect confidence, which knows each question's expected accuracy, would be significantly better
# than the rule. In each use, all methods on all data sets of a model are judged together by Holm's method.

# %%
models = models_beside(page)
for one in models.values():
    show_runs(one)
results = {name: results_of(one.counting) for name, one in models.items()}
concentrations = {
    name: probes_of(one)["concentration"] for name, one in models.items()
}

# %%
import pandas as pd
from capcal_lib.results import compare_use, tally
from capcal_lib.results.uses import USES

judged = {
    (use, name): compare_use(results[name], use, concentrations[name])
    for use in USES
    for name in results
}
comparisons = pd.concat(judged, names=["use", "model", None])
comparisons = comparisons.reset_index(["use", "model"]).reset_index(drop=True)
if comparisons.empty:
    raise EndOfPage(
        "Nothing here can be compared. That takes a data set with a solved question, two samples of each question, and a confidence. The "
        "confidence can be asked for or imported, or come from a probe or from ten votes, which two more samples have to judge."
    )
counts = tally(comparisons, "use", "method").reindex(USES, level="use")
counts = counts.reindex(comparisons["method"].unique(), level="method")
by_method = counts.groupby("method", sort=False).sum()
by_method

# %% tags=["finding"]
winnable = by_method.loc[comparisons["method"].unique(), "could be won"]
method = "Probe" if "Probe" in winnable else winnable.idxmax()
case = by_method.loc[method]
finding(
    "*{method}* beats the best rule without a confidence in {cases}.",
    method=method,
    cases="{better} of the {could be won} cases that a perfect confidence would win, and loses {worse} of all {cases}".format(
        **case
    ),
)

# %%
share = {"better": counts["better"] / counts["could be won"]}
share["worse"] = -counts["worse"] / counts["cases"]
bars = pd.DataFrame(share).rename_axis(columns="verdict").stack()
bars = bars.rename("share").reset_index()

# %% tags=["picture"] label="fig-applications" mystnb={"image": {"alt": "A panel for each method with a row for each use. One bar is the share of comparisons in which it is worse than the rule without a confidence, the other the share in which it is better."}}
import seaborn as sns

colors = {"worse": "#be123c", "better": "#0f766e"}
by = {"hue": "verdict", "col": "method", "palette": colors}
shape = {"kind": "bar", "height": 3, "aspect": 0.6, "dodge": False}
grid = sns.catplot(bars, x="share", y="use", **by, **shape)
grid.refline(x=0).set(xlim=(-1, 1), xticks=[-0.5, 0, 0.5])
_ = grid.set_titles("{col_name}")

# %% [markdown]
# For each method, the share of comparisons in which it is worse (left) or better (right) than the best rule without a
# confidence, after Holm. Each comparison is one model on one data set. No bar can mean that none could be won.

# %% label="applications-summary"
show(
    counts,
    "Comparisons of a confidence with the best rule without one. Better is counted among the cases that could be won, and worse among all "
    "cases. Verdicts are after Holm, for each use and each model.",
    evidence=page.evidence,
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
asked = "Verbalized confidence", "P(True)", "Response consistency"
confidences = own[own.columns.intersection(asked)]
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
from capcal_lib.results import ways_to_use

abstained = comparisons[comparisons["use"] == "Abstaining"]
case = abstained.loc[abstained["p (Holm)"].idxmin()]
name, dataset, method = case[["model", "dataset", "confidence"]]
ways = ways_to_use(results[name].loc[[dataset]], concentrations[name])
case[["model", "dataset", "confidence", "estimate", "low", "high", "verdict"]]

# %% [markdown]
# In each use every question has a gain, and their mean is the gain of the confidence:

# %%
from capcal_lib.applications import (
    abstaining_gains,
    budget_gains,
    pass_at_k_gains,
)

scored = ways[(ways["method"] == method) & (ways["member"] == 0)]
scored = scored[scored["way"] != "Probe, posterior"]
numbers = ["confidence", "correct", "total"]
confidence, correct, total = (scored[name] for name in numbers)
gains = {
    "pass@k": pass_at_k_gains(confidence, correct, total, 16),
    "Budget": budget_gains(confidence, correct, total, 2),
    "Abstaining": abstaining_gains(confidence, correct, total),
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
# it, with a concentration fitted on the training questions. A missing stated confidence counts as one half. Ten votes cost more
# than a budget spends, so this use leaves them out. The other uses do not count their cost.

# %% label="applications-all"
from capcal_lib.book import tables

about = ["use", "method", "model", "dataset", "gain", "low", "high", "p (Holm)"]
show(
    comparisons.rename(columns={"estimate": "gain"})[[*about, "verdict"]],
    "All comparisons: mean gain with its own 95 % interval, and the verdict after Holm, for each use and each model. An interval may exclude "
    "0 although the verdict is inconclusive.",
    evidence=page.evidence,
    digits=4,
    **{"p (Holm)": tables.p_value},
)

# %% tags=["remove-cell"]
from capcal_lib.book.page import glue

sums = counts.groupby(level="method").sum()
shared = {"probe": ["Probe"], "asked": ["Verbalized confidence", "P(True)"]}
spelled = {
    key: "{better:.0f} of {could be won:.0f}".format(
        **sums.reindex(names).sum()
    )
    for key, names in shared.items()
}
glue(**spelled)

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
pd.crosstab(won["dataset"], won["use"])

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
pd.DataFrame(by_concentration, ["pass@k", "Budget"])
