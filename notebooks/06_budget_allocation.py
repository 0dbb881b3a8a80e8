# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Spending a budget where it helps
#
# On the [previous page](05_pass_at_k.ipynb) every question got the same number of attempts. Now we divide attempts over
# questions. Can a confidence tell us where another sample helps most?

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
dataset: str = ""  # one with samples; empty: where questions differ most
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of all that is drawn here

# %%
from capcal_lib.book.page import (
    EndOfPage,
    finding,
    open_page,
    probes_of,
    show_runs,
)
from capcal_lib.book.tables import show
from capcal_lib.results.results import results_of

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)
show_runs(page, dataset, printed=["figure-10"])

# %% [markdown]
# A question is *solved* if at least one of its samples is correct. We divide a budget of samples in advance, so that as many
# questions as possible are solved (section 5.2 and appendix D.2 of the paper). Each sample goes where the confidence expects
# the largest gain. A *rule* divides the budget. Each confidence gives one rule, and a probe gives two: we use its confidence
# directly (*plug-in*) or as the mean of a *posterior*, whose *concentration* is fitted on the probe's training questions:

# %%
results = results_of(page.counting).query("total > 1")
concentrations = probes_of(page)["concentration"]
concentrations

# %% [markdown]
# The rival is even spending at the same budget of $B$ samples a question. A *gain* is the number of additional questions
# solved in a hundred, also called *points*. We take questions with at least $2B$ recorded samples, so that a rule can give
# some of them twice the mean. A rule on a data set at one budget is a *case*. All cases of a budget are judged together with
# Holm's method. A case *could be won* if a perfect confidence would be significantly better.

# %% label="budget-verdicts"
from capcal_lib.studies import budget_allocation as study

if not results["correct"].any():
    raise EndOfPage(
        "No question is solved, so nothing varies and nothing can be closer."
    )
judged = study.compare_spending(results, concentrations)
if judged.empty:
    raise EndOfPage(
        "These data sets have no recorded confidence: capcal confidence asks for one."
    )
by_rule = judged.groupby("rule", sort=False)
counts = by_rule["verdict"].value_counts().unstack()
counts["could be won"] = by_rule["could be won"].sum()
counts["mean gain, points"] = by_rule["estimate"].mean()
show(
    counts.rename_axis(columns=None),
    "Number of cases by verdict against even spending, and the mean gain (higher is better).",
    digits=1,
    evidence=page.evidence,
)

# %% [markdown]
# Not every confidence helps. We take the probe as a posterior, or the first rule if there is no probe:

# %% tags=["finding"]
from capcal_lib.text import in_words, share_in_words

rule = study.POSTERIOR if study.POSTERIOR in counts.index else counts.index[0]
gains = judged[judged["rule"] == rule]
won = gains["could be won"] & (gains["verdict"] == "better")
finding(
    "Compared with even spending, the rule “{rule}” changes the number of questions solved by {mean:+.1f} in a hundred. It solves "
    "significantly more in {better} that could be won, and significantly fewer in {worse}.",
    rule=rule,
    mean=gains["estimate"].mean(),
    better=share_in_words(won.sum(), gains["could be won"].sum(), "case"),
    worse=in_words((gains["verdict"] == "worse").sum()),
)

# %% tags=["picture"] label="fig-budget-gains" mystnb={"image": {"alt": "Gain over even spending against the budget, in a panel for each data set, with intervals and a line at no gain."}}
import seaborn as sns
from capcal_lib import plots

color = plots.palette([rule])[rule]
shown = gains.assign(dataset=gains["dataset"].map(page.runs["title"]))
grid = sns.FacetGrid(shown, col="dataset", col_wrap=3, height=2.4)
for title, ax in grid.axes_dict.items():
    case = shown[shown["dataset"] == title].astype({"B": str})
    plots.mark_verdicts(ax, case["B"], case, color=color, upright=True)
grid.refline(y=0, color=plots.INK)
grid.set_titles("{col_name}")
grid.set_axis_labels("B, samples a question", "points gained")
_ = grid.tight_layout()

# %% [markdown]
# Additional questions solved in a hundred, beyond even spending, with 95 % intervals. Filled marks are significant after Holm.
# A larger $B$ may have fewer questions, because each needs $2B$ samples.

# %% label="budget-gains"
from capcal_lib.book import tables

show(
    gains,
    "Gain over even spending in points (higher is better), each with its own 95 % interval, and the verdict after Holm. "
    "A larger B may have fewer questions, because each needs 2B samples.",
    digits=1,
    **{"p": tables.p_value, "p (Holm)": tables.p_value},
    evidence=page.evidence,
)

# %% [markdown]
# ## The best allocation
#
# Suppose each sample solves a question with probability $p$. The sample that follows $k$ others gains $p(1-p)^k$, because it
# counts only if they all fail. This gain falls with every sample, so it is optimal to take the largest gains one at a time.

# %%
import numpy as np

confidence = np.array([0.9, 0.5, 0.1, 0.0])
spent = np.zeros(4, dtype=int)
for _ in range(12):
    gain = confidence * (1 - confidence) ** spent
    spent[np.argmax(gain)] += 1
spent

# %% [markdown]
# The easy question needs little and the hopeless one gets nothing. `allocate` finds the same plan faster:

# %% label="budget-greedy"
from capcal_lib.applications import allocate

plug_in = allocate(confidence, 12)
plug_in

# %% [markdown]
# As the mean of a posterior with concentration $\nu$, a confidence falls from $s$ to $s\nu/(\nu+k)$ after $k$ failures. Here
# this moves one sample to an easier question:

# %%
posterior = allocate(confidence, 12, concentration=2)
posterior

# %% [markdown]
# The *success rate* of an allocation is the expected share of questions solved, which is pass@k at each question's own $k$.
# Here it is for even spending and the two plans above:

# %% label="budget-success-rate"
from capcal_lib.applications import success_rate

correct, total = [90, 60, 5, 0], [100] * 4
for plan in ([3, 3, 3, 3], plug_in, posterior):
    print(plan, round(success_rate(plan, correct, total), 3))

# %% [markdown]
# ## On one data set
#
# We take real questions from the data set whose questions differ most, unless `dataset` names another.

# %%
from capcal_lib.results.targets import sets_to_show

sets = sets_to_show(results, dataset)
questions = results.loc[sets[:1]]
if not questions["correct"].any():
    raise EndOfPage(
        "No question is solved, so nothing varies and nothing can be closer."
    )
len(questions)

# %% [markdown]
# Each rule divides a budget of $B = 4$ samples a question (2 if questions have fewer than eight, and 1 if fewer than four):

# %%
from capcal_lib.applications import deep_samples

n = deep_samples(questions["total"])
budget = max(B for B in (1, 2, 4) if n >= 2 * B)
rules = study.spending_rules(questions, concentrations).query("member == 0")
spent = study.spend(rules, budget)
spent.groupby("way", sort=False)["spent"].describe()

# %% [markdown]
# Does the last rule solve more questions than even spending? All questions share one budget, so a question that takes more
# samples leaves fewer for the others. An interval has to allow for that. So we charge each question for the samples that it
# takes beyond the mean. The price of a sample is what a further sample solves on average, if the budget grows by one sample a
# question.

# %%
from capcal_lib.applications import spending_terms
from capcal_lib.metrics import mean_interval
from capcal_lib.results import subjects

way = spent["way"].iloc[-1]
plan = spent[spent["way"] == way]
even = spent[spent["way"] == study.EVEN]
more = study.spend(rules[rules["way"] == way], budget + 1)
counts = questions["correct"], questions["total"]
paid = spending_terms(plan["spent"], more["spent"], *counts)
gain = plan["solved"] - even["solved"] - paid
mean_interval(gain, clusters=subjects(questions), bounds=(-1, 1))

# %% [markdown]
# If every question has at least $2B$ samples, these numbers times a hundred are the row with this $B$ in the table of gains.
# (With the paper's recipe, they belong to the first of five probes; the table has the mean of all five.)
#
# How far could a confidence go? The *honest oracle* knows a random half of each question's samples and is scored on the other
# half. The table has the questions with the most samples, and both ways to use a probe: does a posterior, which expects less
# of a question after each failure, spend better than the plug-in?

# %% label="budget-success"
import pandas as pd

deep = results.loc[sets]
depth = deep["total"].groupby("dataset").transform(deep_samples)
deep = deep[deep["total"] >= depth]
oracles = study.oracle_rules(deep, seed=seed, in_sample=protocol == "paper")
rules = pd.concat([study.spending_rules(deep, concentrations), oracles])
solved = study.solved_by_budget(rules)
solved["questions"] = solved["dataset"].map(deep.groupby("dataset").size())
rows = ["dataset", "questions", "rule"]
rates = solved.pivot_table("estimate", rows, "B", sort=False)
show(
    rates.rename(columns="B = {}".format),
    "Share of the questions solved (higher is better).",
    evidence=page.evidence,
)

# %% label="fig-budget" mystnb={"image": {"alt": "Share of questions solved against the budget, with a line for each rule and the honest oracle."}}
grid = plots.draw_curves(
    tables.titled(solved), x="B", hue="rule", col="dataset"
)
_ = grid.set_axis_labels("B, samples a question", "questions solved")

# %% [markdown]
# Share of questions solved against the mean number of samples a question. The table of gains has the intervals.

# %% [markdown]
# ## As the paper draws it
#
# The paper draws the success rate for three models and two data sets, without intervals. We read the numbers off a figure in
# the authors' code repository, to within 0.00005. The authors' code makes the same random draws for every question. [The
# audit](09_statements.ipynb) shows what this does at one sample a question. The paper's Oracle CC knows the samples that
# score it.
#
# How many points of each curve lie above, on and below the uniform allocation, and what is the mean difference in questions per
# hundred?

# %%
from capcal_lib.reported import load_reported

published = load_reported("budget", source="reference code")
keys = ["model", "dataset", "k"]
curves = published.pivot(index=keys, columns="method", values="value")
above = curves.sub(curves["Uniform allocation"], axis="index")
points = {"above": above > 0, "on it": above == 0, "below": above < 0}
points = pd.DataFrame({where: these.sum() for where, these in points.items()})
points.assign(mean=100 * above.mean()).round(2)

# %% [markdown]
# A curve can be higher than the uniform allocation at most budgets and still lose on average. This happens to the probe,
# which loses much on AIME25 at one sample a question:

# %% label="fig-budget-paper" mystnb={"image": {"alt": "Success rate against the budget in six panels, for three models on MATH-500 and AIME25, with a curve for each rule."}}
lines = tables.titled(published)
colors = plots.palette(lines["method"])
by = {"x": "k", "y": "value", "hue": "method", "style": "method"}
by |= {"col": "model", "row": "dataset", "palette": colors, "kind": "line"}
shared = {"sharey": "row", "margin_titles": True}
grid = sns.relplot(lines, **by, height=2.3, facet_kws=shared)
grid.set(xscale="log", xticks=[1, 4, 16, 64], xticklabels=[1, 4, 16, 64])
grid.set_titles(col_template="{col_name}", row_template="{row_name}")
_ = grid.set_axis_labels("B, samples a question", "questions solved")

# %% [markdown]
# Success rate against the budget, as the paper draws it (read off).

# %% [markdown]
# ## Summary
#
# - The best allocation takes the largest gains one at a time.
# - A confidence can spend better or worse than even spending. Compare them at the same budget, and judge all cases together.
# - A posterior expects less of a question after each failure. Compare the two ways at each budget.
# - Score an oracle on samples that it has not seen.
#
# On the [next page](07_response_consistency.ipynb) answers vote, and their agreement is a confidence. How many votes does that
# take?
#
# ## Exercises
#
# **1 (easy).** In the published curves, how does the oracle's advantage over the uniform allocation change with the budget? Why
# is it not zero at $B = 1$? *Hint:* does every question get a sample?

# %% tags=["hide-cell", "solution"]
# Hopeless questions get none and others two. With many samples any plan solves nearly all
above["Oracle CC"].groupby("k").mean()

# %% [markdown]
# **2 (medium).** Replace every confidence by one half. What does the allocation become, and does it matter which number you
# use? *Hint:* all first samples have the same gain.

# %% tags=["hide-cell", "solution"]
# Any constant confidence is even spending
allocate([0.5] * 5, 12), allocate([0.1] * 5, 12)

# %% [markdown]
# **3 (hard).** Samples of different questions cost different numbers of tokens. What replaces the gain? *Hint:* `allocate`
# has an argument `cost`.

# %% tags=["hide-cell", "solution"]
# The gain per token, for samples of 100 and 300 tokens
tokens = np.array([100, 300])
spent = allocate([0.3, 0.3], 2000, cost=tokens)
spent, spent @ tokens
