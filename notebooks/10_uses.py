# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What is a confidence good for?
#
# What can you do better with a confidence than with the best rule that needs none? [On the previous
# page](09_statements.ipynb) we counted how often a confidence is closer to the expected accuracy than a constant. Being closer
# is no use by itself.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models` with samples
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with the probes of its recipe
verdicts: str = "rules"  # or judge:MODEL, of the model's own samples
seed: int = 0  # of all that is drawn here
risk: float = 0.1  # the share of wrong answers that is promised

# %%
from capcal_lib.book.page import finding, open_page
from capcal_lib.book.tables import show

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)

# %% [markdown]
# In each of three uses, we compare a confidence with the best rule that does not use it, on the same questions. The paper tries
# the first two and names others (section 5). The rules are ours.
#
# | use | what a confidence does, and its gain | best rule without one |
# |---|---|---|
# | [pass@k](05_pass_at_k.ipynb) | predicts whether at least one of 16 answers is right: less squared error | best constant |
# | [Budget](06_budget_allocation.ipynb) | moves answers to harder questions: more questions solved | two answers a question |
# | Abstaining | answers the surest questions first: less risk, averaged over the share answered | random order |
#
# We take the probe with the nearest training set, never the one with the best score. Pass@k and budgets use a posterior around
# it, with a concentration fitted on the training questions. A missing verbalized confidence counts as one half. Response
# consistency takes ten answers, more than a budget spends, so it has no budget.
#
# Pass@k and budgets need the level of a confidence, and abstaining only its order. Probes have learned the level from labels.
# So for pass@k and budgets we try the other methods twice: as they are, and [recalibrated](04_main_table.ipynb) on labels of
# other questions (then as posteriors).

# %%
from capcal_lib.book.page import models_beside, show_runs

models = models_beside(page)
for one in models.values():
    show_runs(one)

# %%
from capcal_lib.book.page import probes_of
from capcal_lib.results.results import results_of

results = {name: results_of(one.counting) for name, one in models.items()}
nu = {name: probes_of(one)["concentration"] for name, one in models.items()}

# %% [markdown]
# A case is a method on a data set of a model. It *could be won* if a perfect confidence, which knows each question's expected
# accuracy, would be significantly better than the rule in a single test. Holm's method then judges the cases of each use and
# model together, and the recalibrated ones as a second group. The questions of a subject are one group.

# %%
import pandas as pd
from capcal_lib.results import compare_use
from capcal_lib.results.uses import USES

judged = {}
for use in USES:
    for name in results:
        judged[use, name] = compare_use(results[name], use, nu[name])
comparisons = pd.concat(judged, names=["use", "model", None])
comparisons = comparisons.reset_index(["use", "model"]).reset_index(drop=True)

# %%
from capcal_lib.book.page import EndOfPage

if comparisons.empty:
    needs = "a solved question, two samples of each question, and a confidence"
    raise EndOfPage(f"Nothing here can be compared. That takes {needs}.")

# %% [markdown]
# *Better* is counted among the cases that could be won, and *worse* among all cases:

# %%
from capcal_lib.results import tally

counts = tally(comparisons, "use", "method").reindex(USES, level="use")
order = comparisons["method"].unique()
counts = counts.reindex(order, level="method")
caption = "Cases of a confidence against the best rule without one, after Holm."
show(counts, caption, evidence=page.evidence)

# %% tags=["finding"]
by_method = counts.groupby("method", sort=False).sum()
method = "Probe" if "Probe" in by_method.index else order[0]
case = by_method.rename(columns={"could be won": "won"}).loc[method]
lost = counts.drop(method, level="method")["worse"].groupby("use").sum()
before, after = lost.reindex(["pass@k", "pass@k, recalibrated"]).fillna(0)
text = "*{method}* beats the best rule without a confidence in {better} of the {won} cases that could be won. In pass@k, the other methods lose {before:.0f} cases as they are, and {after:.0f} recalibrated."
finding(text, method=method, before=before, after=after, **case)

# %%
share = {"worse, of all cases": -counts["worse"] / counts["cases"]}
won = counts["better"] / counts["could be won"]
share["better, of those that could be won"] = won
bars = pd.DataFrame(share).rename_axis(columns="verdict").stack()
bars = bars.rename("share").reset_index()

# %% tags=["picture"] label="fig-uses" mystnb={"image": {"alt": "A panel for each method with a row for each use. One bar is the share of comparisons in which it is worse than the rule without a confidence, the other the share in which it is better."}}
import seaborn as sns

by = {"hue": "verdict", "col": "method", "palette": ["#be123c", "#0f766e"]}
shape = {"kind": "bar", "height": 3.6, "dodge": False}
grid = sns.catplot(bars, x="share", y="use", **by, **shape)
grid.refline(x=0).set(xlim=(-1, 1), xticks=[-0.5, 0.5])
grid.set_titles("{col_name}").set_axis_labels("", "")
grid.figure.set(figwidth=7.2, layout_engine="constrained")
sns.move_legend(grid, "outside lower center", ncols=2, title="share")

# %% [markdown]
# Left, the share of all cases in which a method is significantly worse than the best rule without a confidence. Right, the
# share of the cases that could be won in which it is better. Where there is no bar, nothing is significant, or the method is not
# tried: a probe is not recalibrated, and response consistency has no budget.

# %% [markdown]
# If no method is better in a use, the questions may be too few to tell. The uses have the same questions, so they are not
# independent: read the pattern and not a single bar. All comparisons, with intervals, are in this file:

# %% label="uses-comparisons"
from capcal_lib.book.tables import Html, badge, csv_link, titled

listed = titled(comparisons)
Html(f"<p>{csv_link(listed)} {badge(page.evidence)}</p>")

# %% [markdown]
# ## Is the model overconfident?
#
# A confidence is *overconfident* if its mean is above the accuracy. Here is the difference on each data set:

# %%
from capcal_lib.probe_names import is_probe
from capcal_lib.results import methods

own = results[model]
confidences = own[[name for name in methods(own) if not is_probe(name)]]
excess = confidences.sub(own["correct"] / own["total"], axis="index")

# %% label="uses-excess"
mean = excess.groupby("dataset", sort=False).mean()
caption = "Mean confidence minus accuracy."
show(mean, caption, evidence=page.evidence, digits=2)

# %% [markdown]
# An overconfident method loses in uses that need the level. Recalibration mends the level, and leaves the order or reverses it.
#
# ## Answering only when the confidence is high
#
# A model that may abstain answers questions in order of confidence, highest first. *Coverage* is the share of the questions
# that it answers. The *risk* of a question is the chance $1-\mu$ that a fresh answer to it is wrong. The risk at a coverage is
# the mean over the answered questions. The paper suggests abstaining in section 5.3 and does not try it.

# %%
from capcal_lib.results import differing, ways_to_use

ways = ways_to_use(differing(own), nu[model])
ways = ways[ways["way"] != "Probe, posterior"]  # it ranks as the plug-in does
if ways.empty:
    raise EndOfPage(f"{model} has no confidence here that could be ranked.")

# %% [markdown]
# `risk_coverage` computes a curve from the order of the confidences alone:

# %%
from capcal_lib.applications import risk_coverage

numbers = ["confidence", "correct", "total"]
by_case = ways.groupby(["dataset", "way", "member"], sort=False)[numbers]
curves = {case: risk_coverage(*rows.to_numpy().T) for case, rows in by_case}
curves = pd.concat(curves, names=["dataset", "method", "member", None])
by = ["dataset", "method", "coverage"]
curves = curves.groupby(by, sort=False)["risk"].mean().reset_index()

# %% label="fig-risk-coverage" mystnb={"image": {"alt": "A panel for each data set: lines of risk, the expected share of wrong answers, against coverage, one for each method."}}
from capcal_lib import plots
from capcal_lib.book import tables

steady = tables.titled(curves[curves["coverage"] >= 0.1])
colors = plots.palette(steady["method"].unique())
by = {"hue": "method", "style": "method", "palette": colors}
shape = {"kind": "line", "height": 2.4, "col_wrap": 3}
grid = sns.relplot(steady, x="coverage", y="risk", col="dataset", **by, **shape)
grid.set(ylim=(0, 1.02), xticks=[0.1, 0.5, 1]).set_titles("{col_name}")
grid.figure.set(figwidth=7.2, layout_engine="constrained")
sns.move_legend(grid, "outside lower center", ncols=4, title="")

# %% [markdown]
# Share of wrong answers when the most confident questions are answered first. Curves begin at a coverage of 0.1, because fewer
# questions tell too little. At full coverage all questions are answered. Response consistency may end at a slightly different
# risk, because the answers that vote do not judge it.

# %% [markdown]
# ## Promising a risk
#
# Which threshold keeps wrong answers below a promised share of all questions? A threshold chosen to just keep the
# promise on old questions often breaks it on new ones. *Conformal risk control* (Angelopoulos et al., 2024) adds one more question, which the model
# answers and always gets wrong. The model answers questions with a confidence $s_i$ above $t$. If $n$ questions set the
# threshold, the lowest $t$ with
#
# $$
# \frac{1}{n+1}\Bigl(1 + \sum_{i:\,s_i > t} (1 - \hat\mu_i)\Bigr) \le \alpha
# $$
#
# keeps the promise $\alpha$ on average for new questions of the same kind, whatever the confidence is.

# %%
import numpy as np


def promise_risk(s, c, n, risk):
    """Return the lowest threshold that keeps the promise."""
    if risk * (len(s) + 1) < 1:
        return np.inf  # none may be answered
    wrong = pd.Series(1 - np.divide(c, n)).groupby(-np.asarray(s)).sum()
    broken = 1 + wrong.cumsum() > risk * (len(s) + 1) + 1e-9
    return -float(broken.idxmax()) if broken.any() else -np.inf


promise_risk([0.9, 0.8, 0.5, 0.2], [10, 9, 5, 0], [10] * 4, risk=0.3)

# %% [markdown]
# We set thresholds on a random half of the questions and use them on the other half, a hundred times.


# %%
def keep_promise(scored, rng):
    """Return the shares answered, and wrong, in the other half."""
    seen = rng.permutation(scored.shape[1]) < scored.shape[1] // 2
    limit = promise_risk(*scored[:, seen], risk)
    s, c, n = scored[:, ~seen]
    answered = s > limit
    return answered.mean(), np.mean(answered * (1 - c / n))


# %%
shares = {}
for case, rows in by_case:
    scored, rng = rows.to_numpy().T, np.random.default_rng(seed)
    halves = [keep_promise(scored, rng) for _ in range(100)]
    shares[case] = np.mean(halves, axis=0)

# %%
promised = pd.DataFrame(shares, ["answered", "wrong"]).T
promised = promised.groupby(level=[0, 1], sort=False).mean()
promised = promised.rename_axis(["dataset", "method"]).reset_index()

# %% label="uses-promise"
promised = tables.titled(promised)
answered = promised.pivot_table("answered", "method", "dataset", sort=False)
caption = f"Share of questions answered, with {100 * risk:g} % wrong answers promised."
show(answered, caption, digits=2, evidence=page.evidence)

# %% [markdown]
# Is the promise kept? Here is the mean share of questions with a wrong answer, on the data set where it is largest. A hundred
# halves are a sample, so a share may lie a little above the promise by chance.

# %%
largest = promised.groupby("method", sort=False)["wrong"].max()
largest.round(3).to_frame("largest share of wrong answers")

# %% [markdown]
# ## Summary
#
# - The rival of a confidence is the best rule without one, at the same cost.
# - A use that needs only the order of questions is easier to serve than one that needs the level.
# - Recalibrate a confidence before you use its level.
# - Count the cost of the confidence: a probe is nearly free, and verbalized confidence costs about as much as a short answer.
# - Conformal risk control keeps its promise on average, with any confidence. A good confidence lets the model answer more.
#
# [Next](11_live_sampling.ipynb): what does a model answer if we ask it here and now?
#
# ## Exercises
#
# **1 (easy).** In which uses, and on which data sets, does a probe help? *Hint:* the verdict `better` in `comparisons`.

# %% tags=["hide-cell", "solution"]
# Uses in which a probe is better, by data set
won = listed[listed["verdict"] == "better"]
won = won[won["method"] == "Probe"]
pd.crosstab(won["dataset"], won["use"])

# %% [markdown]
# **2 (medium).** With ten questions, what is the smallest risk that can be promised if any question is to be answered? *Hint:*
# the added question is always wrong.

# %% tags=["hide-cell", "solution"]
# Ten right questions: the threshold at risks just below and just above one eleventh
ten = [0.5] * 10, [1] * 10, [1] * 10
risks = [1 / 11 - 0.001, 1 / 11 + 0.001]
pd.Series([promise_risk(*ten, each) for each in risks], ["below", "above"])

# %% [markdown]
# **3 (hard).** What happens to a curve in the figure if its confidence is squared? Where would all curves end if the same
# samples judged them all? *Hint:* only the order counts, and at the end all questions are answered.

# %% tags=["hide-cell", "solution"]
# The curves of a confidence and of its square are equal, and end in the mean risk
s, c, n = np.array([0.9, 0.2, 0.5, 0.5]), [9, 1, 8, 2], [10] * 4
curve = risk_coverage(s, c, n)
assert curve.equals(risk_coverage(s**2, c, n))
curve.tail(1)
