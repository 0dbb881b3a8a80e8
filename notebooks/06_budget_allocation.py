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
from capcal_lib.book.page import EndOfPage, finding, open_page, show_runs

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)
show_runs(page, dataset, printed=["figure-10"])

# %% [markdown]
# A question is *solved* if at least one of its samples is correct. We divide a budget of samples in advance, so that as many
# questions as possible are solved (section 5.2 and appendix D.2 of the paper). Each sample goes where the confidence expects
# the largest gain. A *rule* is a way to divide the budget. Each confidence gives one; a probe gives two, because we use its
# confidence directly (*plug-in*) or as the mean of a *posterior*, a distribution of $\mu$. Here are the posteriors'
# concentrations, fitted on the training questions:

# %%
from capcal_lib.book.page import probes_of
from capcal_lib.results.results import results_of

results = results_of(page.counting).query("total > 1")
concentrations = probes_of(page)["concentration"]
concentrations.to_frame().round(2)

# %% [markdown]
# The rival is even spending at the same budget of $B$ samples a question. A *gain* is the number of additional questions
# solved in a hundred, also called *points*. We take questions with at least $2B$ recorded samples, so that a rule can give a
# question twice the average number of samples. A rule on a data set at one budget is a *case*. All cases of a budget are
# judged together with Holm's method, which allows for several comparisons. A case *could be won* if a perfect confidence,
# tested alone, without Holm, would be significantly better. The probe is judged as a posterior only, because one probe should
# not count as two cases; the last table has its plug-in too.

# %%
from capcal_lib.studies import budget_allocation as study

judged = study.compare_spending(results, concentrations)
if judged.empty:
    raise EndOfPage(
        "There is nothing to compare: no two questions differ in accuracy, or none of those has a confidence. To get one: capcal confidence"
    )

# %%
from capcal_lib.book.tables import show

by_rule = judged.groupby("rule", sort=False)
counts = by_rule["verdict"].value_counts().unstack().rename_axis(columns=None)
counts["could be won"] = by_rule["could be won"].sum()

# %% label="budget-verdicts"
counts["mean gain, points"] = by_rule["estimate"].mean()
caption = "Number of cases by verdict against even spending, and the mean gain (higher is better)."
show(counts, caption, digits=1, evidence=page.evidence)

# %% [markdown]
# Not every confidence helps. We take the probe as a posterior, or the first rule if there is no probe:

# %%
from capcal_lib.text import in_words, share_in_words

rule = study.POSTERIOR if study.POSTERIOR in counts.index else counts.index[0]
gains = judged[judged["rule"] == rule]
won = gains["could be won"] & (gains["verdict"] == "better")
better = share_in_words(won.sum(), gains["could be won"].sum(), "case")
mean = gains["estimate"].mean()

# %% tags=["finding"]
finding(
    "On average, the rule “{rule}” solves {mean:.1f} {more} questions in a hundred than even spending. It solves significantly more in {better} that could be won, and significantly fewer in {worse}.",
    rule=rule,
    mean=abs(mean),
    more="more" if mean > 0 else "fewer",
    better=better,
    worse=in_words((gains["verdict"] == "worse").sum()),
)

# %%
import seaborn as sns
from capcal_lib import plots
from capcal_lib.book import tables

shown = tables.titled(gains).astype({"B": str})
color = plots.palette([rule])[rule]

# %% tags=["picture"] label="fig-budget-gains" mystnb={"image": {"alt": "Gain over even spending against the budget, in a panel for each data set, with intervals and a line at no gain."}}
grid = sns.FacetGrid(shown, col="dataset", col_wrap=3, height=2.4)
for title, ax in grid.axes_dict.items():
    case = shown[shown["dataset"] == title]
    plots.mark_verdicts(ax, case["B"], case, color=color, upright=True)
grid.refline(y=0, color=plots.INK)
grid.set_titles("{col_name}")
grid.set_axis_labels("B, samples a question", "points gained")
_ = grid.tight_layout()

# %% [markdown]
# Additional questions solved in a hundred, beyond even spending, with 95 % intervals. Filled marks are significant after Holm.
# A larger $B$ may have fewer questions, because each needs $2B$ samples.

# %% [markdown]
# ## The best allocation
#
# Suppose each sample solves a question with probability $p$. The sample that follows $k$ others gains $p(1-p)^k$, because it
# counts only if they all fail. This gain falls with every sample, so it is optimal to take the largest gains one at a time.

# %%
import numpy as np
import pandas as pd

confidence = np.array([0.9, 0.5, 0.1, 0.0])
spent = np.zeros(4, dtype=int)
for _ in range(12):
    gain = confidence * (1 - confidence) ** spent
    spent[np.argmax(gain)] += 1
pd.Series(spent, confidence).to_frame("samples")

# %% [markdown]
# The easy question needs little and the hopeless one gets nothing. `allocate` finds the same plan faster. As the mean of a
# posterior with concentration $\nu$, a confidence falls from $s$ to $s\nu/(\nu+k)$ after $k$ failures. Here this moves one
# sample to an easier question:

# %%
from capcal_lib.applications import allocate

plug_in = allocate(confidence, 12)
posterior = allocate(confidence, 12, concentration=2)
pd.DataFrame({"plug-in": plug_in, "posterior": posterior}, confidence)

# %% [markdown]
# The *success rate* of an allocation is the expected share of questions solved, which is pass@k at each question's own $k$.
# Here it is for even spending and the two plans above:

# %% label="budget-success-rate"
from capcal_lib.applications import success_rate

correct, total = [90, 60, 5, 0], [100] * 4
plans = {"even": [3] * 4, "plug-in": plug_in, "posterior": posterior}
solved = {name: success_rate(p, correct, total) for name, p in plans.items()}
pd.Series(solved).to_frame("share solved").round(3)

# %% [markdown]
# ## Data set by data set
#
# We take the data set whose questions differ most, unless `dataset` names another, and MATH-500 and AIME25, which the paper
# uses, if they have 32 samples a question. Of each we take the questions with the most samples. How far could a confidence go?
# The *honest oracle* knows a random half of each question's samples and is scored on the other half.

# %%
from capcal_lib.applications import deep_samples
from capcal_lib.results.targets import sets_to_show

deep = results.loc[sets_to_show(results, dataset)]
depth = deep["total"].groupby("dataset").transform(deep_samples)
deep = deep[deep["total"] >= depth]

# %%
oracles = study.oracle_rules(deep, seed=seed, in_sample=protocol == "paper")
rules = pd.concat([study.spending_rules(deep, concentrations), oracles])
solved = study.solved_by_budget(rules)

# %% label="budget-success"
solved["questions"] = solved["dataset"].map(deep.groupby("dataset").size())
rows = ["dataset", "questions", "rule"]
rates = tables.titled(solved).pivot_table("estimate", rows, "B", sort=False)
caption = "Share of the questions solved (higher is better)."
show(rates.rename(columns="B = {}".format), caption, evidence=page.evidence)

# %% [markdown]
# Compare the rules in one column. A step to the next column doubles the budget. Is the probe better as a posterior, which
# expects less of a question after each failure, or as a plug-in? Differences in the last digit are no answer, because these
# shares are not tested.

# %% [markdown]
# ## Summary
#
# - The best allocation takes the largest gains one at a time.
# - A confidence can spend better or worse than even spending. Compare them at the same budget, and judge all cases together.
# - Score an oracle on samples that it has not seen.
#
# On the [next page](07_response_consistency.ipynb) answers vote, and their agreement is a confidence. How many votes does that
# take?
#
# ## Exercises
#
# **1 (easy).** In the last table, how does the honest oracle's advantage over even spending change with the budget? Why is it
# not zero at $B = 1$? *Hint:* does every question get a sample?

# %% tags=["hide-cell", "solution"]
# Hopeless questions get none and others two. A larger budget need not make the advantage smaller
oracle = rates.xs("Honest oracle", level="rule").dropna(axis=1, how="all")
oracle - rates.xs("Even spending", level="rule")[oracle.columns]

# %% [markdown]
# **2 (medium).** Replace every confidence by one half. What does the allocation become, and does it matter which number you
# use? *Hint:* all first samples have the same gain.

# %% tags=["hide-cell", "solution"]
# Any constant confidence is even spending
pd.DataFrame({s: allocate([s] * 5, 12) for s in (0.5, 0.1)})

# %% [markdown]
# **3 (hard).** Samples of different questions cost different numbers of tokens. What replaces the gain? *Hint:* `allocate`
# has an argument `cost`, and then the budget is in tokens.

# %% tags=["hide-cell", "solution"]
# The gain per token, for samples of 100 and 300 tokens
tokens = np.array([100, 300])
spent = allocate([0.3, 0.3], 2000, cost=tokens)
pd.DataFrame({"samples": spent, "tokens": spent * tokens})
