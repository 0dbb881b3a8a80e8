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
# [Before](05_pass_at_k.ipynb) a confidence predicted how often one of several attempts succeeds. Now attempts are to be divided:
# does a confidence tell where a sample helps more than elsewhere?

# %% tags=["parameters"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
dataset: str = ""  # one with samples; empty: where questions differ most
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of all that is drawn here

# %% tags=["provenance"]
from capcal_lib.book.lesson import open_page

page = open_page(globals(), paper=["figure-10"])

# %% [markdown]
# A budget of samples is to be divided over questions so that as many as possible are solved: have at least one correct sample
# (section 5.2 and appendix D.2 of the paper). A rule goes by a confidence for each question: a sample goes where it is expected to
# gain most. A probe is used directly (*plug-in*) or as the mean of a *posterior*, a spread of accuracies around it, which is
# as wide as its *concentration* says; this was fitted on its training questions.

# %%
results = page.results().query("total > 1")
concentrations = page.concentrations()
concentrations

# %% [markdown]
# Each rule is compared with even spending at the same budget, question by question. A budget of $B$ samples a question is
# tried on the questions that have $2B$ or more. A *gain* is how many questions in a hundred are solved beyond even spending, and
# all methods on all data sets are judged together by Holm's method, each budget by itself. The verdicts for two samples a question
# are those on the [page of uses](11_applications.ipynb). A case *could be won* if a perfect confidence would be significantly better.

# %% label="budget-verdicts" paper=["section-5.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
from capcal_lib.studies import budget_allocation as study

page.end_where_nothing_is_solved(results)
judged = study.compare_spending(results, concentrations)
if judged.empty:
    page.end(
        "No confidence is recorded for these data sets: capcal confidence asks for one."
    )
by_rule = judged.groupby("rule", sort=False)
counts = by_rule["verdict"].value_counts().unstack()
counts["could be won"] = by_rule["could be won"].sum()
counts["mean gain, points"] = by_rule["estimate"].mean()
page.show(
    counts.rename_axis(columns=None),
    "Number of cases by their comparison with even spending, and the mean gain (higher is better).",
    digits=1,
)

# %% [markdown]
# The probe as a posterior knows most, where there is one. How often does it spend better? The other rows say that not every confidence
# does.

# %% tags=["finding"]
rule = study.POSTERIOR if study.POSTERIOR in counts.index else counts.index[0]
gains = judged[judged["rule"] == rule]
page.finding(
    "Spending by the rule “{rule}” changes the questions solved by {mean:+.1f} in a hundred: more than even spending in {better} of "
    "{cases} cases that could be won, and fewer in {worse}.",
    rule=rule,
    mean=gains["estimate"].mean(),
    better=(gains["could be won"] & (gains["verdict"] == "better")).sum(),
    cases=gains["could be won"].sum(),
    worse=(gains["verdict"] == "worse").sum(),
)

# %% tags=["picture"] label="fig-budget-gains" paper=["section-5.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"] mystnb={"image": {"alt": "A panel for each data set, with a mark and an interval for each budget in samples a question, and a line at no gain. Marks are filled where the gain is significant after Holm, and hollow elsewhere."}}
import seaborn as sns
from capcal_lib import plots

color = plots.palette([rule])[rule]
shown = gains.assign(dataset=gains["dataset"].map(page.data["title"]))
grid = sns.FacetGrid(shown, col="dataset", col_wrap=4, height=2.8, aspect=0.72)
for title, ax in grid.axes_dict.items():
    case = shown[shown["dataset"] == title].astype({"B": str})
    plots.mark_verdicts(ax, case["B"], case, color=color, upright=True)
grid.refline(y=0, color=plots.INK)
grid.set_titles("{col_name}").set_axis_labels("B", "points gained")
_ = grid.tight_layout()

# %% [markdown] tags=["caption"]
# Questions solved beyond those of even spending, in points, each with its own 95 % interval. A filled mark is a difference that is
# significant with all cases of its budget judged together (Holm), a hollow one is not, whatever its own interval says. The rule is the probe as a
# posterior, where there is one, and budgets are one to eight samples a question.

# %% label="budget-gains" paper=["section-5.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
from capcal_lib.book import tables

page.show(
    gains,
    "Gain over even spending in points (higher is better), each with its own 95 % interval, and the verdict after Holm.",
    digits=1,
    **{"p": tables.p_value, "p (Holm)": tables.p_value},
)

# %% [markdown]
# A posterior gives up sooner on a question that keeps failing. Does it spend better than the plug-in of the same probe? With all
# data sets and budgets judged together, a row here is a data set, a column a budget, and a cell how many more questions in a hundred the posterior solves.

# %%
between = study.compare_posterior(results, concentrations)
points = tables.titled(between).pivot_table("estimate", "dataset", "B")
points.round(2)

# %%
between["verdict"].value_counts()

# %% [markdown]
# ## The best allocation
#
# A question that is solved with chance $p$ by each sample gains $p(1-p)^k$ from its next sample after $k$ failures. The gain
# falls with every sample, so taking the largest gains one at a time is optimal.

# %%
import numpy as np

confidence = np.array([0.9, 0.5, 0.1, 0.0])
spent = np.zeros(4, dtype=int)
for _ in range(12):
    gain = confidence * (1 - confidence) ** spent
    spent[np.argmax(gain)] += 1
spent

# %% [markdown]
# The likely question needs little, the hopeless one gets nothing, and the rest goes where it still pays. `allocate`
# finds the same without taking the samples one at a time: it looks for the gain that every sample must reach.

# %% label="budget-greedy" paper=["appendix-d.2.1", "equation-20"] evidence=["simulated"]
from capcal_lib.applications import allocate

plug_in = allocate(confidence, 12)
plug_in

# %% [markdown]
# A confidence is no certainty. Read as the mean of a posterior with concentration $\nu$, it falls with every failure,
# from $s$ to $s\nu/(\nu+k)$ after $k$ of them. Here a sample moves from the question that has seemed hard all along, and
# seems harder with every failure, to an easier one.

# %%
posterior = allocate(confidence, 12, concentration=2)
posterior

# %% [markdown]
# What does an allocation achieve? Its *success rate* is the share of questions solved, when each question's samples are drawn from
# those at hand: pass@k at each question's own $k$. Here is that of even spending, and then of the two above.

# %% label="budget-success-rate" paper=["equation-19"] evidence=["simulated"]
from capcal_lib.applications import success_rate

correct, total = [90, 60, 5, 0], [100] * 4
for plan in ([3, 3, 3, 3], plug_in, posterior):
    print(plan, round(success_rate(plan, correct, total), 3))

# %% [markdown]
# ## On one data set
#
# Now to real questions: those of the data set whose questions differ most, or of the one asked for.

# %%
from capcal_lib.results import questions_predicted
from capcal_lib.results.targets import accuracy_variance

spread = accuracy_variance(results)
otherwise = spread[judged["dataset"].unique()].idxmax()
chosen = dataset or otherwise
questions = questions_predicted(results.loc[[chosen]], chosen)
len(questions)

# %% [markdown]
# Each column here is a rule, and divides four samples a question as it sees fit; no question gets more than were recorded.

# %%
plans = study.allocate_by_rules(questions, 4, concentrations)
plans.describe()

# %% [markdown]
# Does the last of the rules solve more questions than spending evenly? All questions share one budget: one that takes more leaves
# less for the others. So each question is charged for its samples. The charge is what one more sample a question would have solved:
# the gain from a budget of four to one of five.

# %%
from capcal_lib.applications import spending_terms, success_terms
from capcal_lib.metrics import mean_interval
from capcal_lib.results import subjects

plan, counts = plans.iloc[:, -1], (questions["correct"], questions["total"])
more = study.allocate_by_rules(questions, 5, concentrations).iloc[:, -1]
beyond = success_terms(plan, *counts) - success_terms(
    plans[study.EVEN], *counts
)
gain = beyond - spending_terms(plan, more, *counts)
mean_interval(gain, clusters=subjects(questions), bounds=(-1, 1))

# %% [markdown]
# Where all questions have eight samples or more, that is the case of four samples a question in the table above; by the paper's
# recipe it is the first of five probes, whose mean stands there. How far could a confidence go, with all budgets that the samples allow?
# That is told on the questions with most samples. The *honest oracle* knows a random half of each question's samples, and is scored on the other half. An oracle that knows the very
# samples it is scored on, as in the paper, promises more than any confidence can keep; it is shown by the paper's protocol only.
# The paper spends its budgets on MATH-500 and AIME25. If the store has many samples of them, they stand beside:

# %% label="budget-success" paper=["figure-10", "equation-19"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
from capcal_lib.results.scores import beside_the_paper

sets = beside_the_paper(results, chosen)
solved = study.solved_by_set(
    results, sets, concentrations, seed=seed, in_sample=protocol == "paper"
)
rows = ["dataset", "questions", "rule"]
rates = solved.pivot_table("estimate", rows, "B", sort=False)
page.show(
    rates.rename(columns="B = {}".format),
    "Share of the questions solved (higher is better).",
)

# %% label="fig-budget" paper=["figure-5", "figure-10", "section-5.2", "appendix-d.2", "appendix-d.2.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"] mystnb={"image": {"alt": "Line plot of the share of questions solved against the budget in samples a question, a line for each rule and for the honest oracle, with a vertical interval at each point of even spending."}}
limits = ["low", "high"]
solved[limits] = solved[limits].where(solved["rule"] == study.EVEN)
grid = plots.draw_curves(
    tables.titled(solved), x="B", hue="rule", col="dataset"
)
_ = grid.set_axis_labels("B, samples a question", "questions solved")

# %% [markdown] tags=["caption"]
# Questions solved against the mean number of samples a question, on the data set whose questions differ most, or the one asked for,
# and on those of the paper that have many samples. Bars are the 95 % interval of even spending, for questions like these: it is wide because questions differ, and says nothing of
# the distance between rules, which are compared question by question above.

# %% [markdown]
# ## As the paper draws it
#
# The paper draws the success rate against the budget for three models and two data sets; the numbers are read off
# a later drawing of its figures, to within 0.00005, which adds Oracle RC. There are no intervals. Oracle CC divides by $\hat\mu$ of the very samples that it is scored on, and the authors' code
# draws the same positions for every question; [what that does](09_paper_audit.ipynb) is seen where each question has one sample.
# Here the success rate is an exact expectation.

# %%
import pandas as pd
from capcal_lib.reported import load_reported

published = load_reported("budget", source="reference code")
keys = ["model", "dataset", "k"]
curves = published.pivot(index=keys, columns="method", values="value")
above = curves.sub(curves["Uniform allocation"], axis="index")
points = {"above": above > 0, "on it": above == 0, "below": above < 0}
points = pd.DataFrame({where: these.sum() for where, these in points.items()})
points.assign(mean=100 * above.mean()).round(2)

# %% [markdown]
# So many points of each curve lie above, on and below that of the uniform allocation, and by so many points of a hundred questions in
# the mean. A curve may lie above at most points and lose more at the others: the probe does so at one sample a question on AIME25. And
# so the curves look:

# %% label="fig-budget-paper" paper=["figure-5", "figure-10", "section-5.2", "appendix-d.2.2"] evidence=["read off"] reads=["budget"] mystnb={"image": {"alt": "Six panels, three models by MATH-500 and AIME25, each with a curve for every rule against the budget."}}
lines = tables.titled(published)
colors = plots.palette(lines["method"])
by = {"x": "k", "y": "value", "hue": "method", "style": "method"}
by |= {"col": "model", "row": "dataset", "palette": colors, "kind": "line"}
shared = {"sharey": "row", "margin_titles": True}
grid = sns.relplot(lines, **by, height=2.3, facet_kws=shared)
grid.set(xscale="log", xticks=[1, 4, 16, 64], xticklabels=[1, 4, 16, 64])
grid.set_titles(col_template="{col_name}", row_template="{row_name}")
_ = grid.set_axis_labels("B, samples a question", "questions solved")

# %% [markdown] tags=["caption"]
# Success rate against the budget, as the paper draws it (read off).

# %% [markdown]
# ## Summary
#
# - The best allocation takes the largest gains one at a time, or finds the gain that all of them reach.
# - A confidence may spend better than even spending, or worse: count both, and judge all cases together.
# - A posterior gives up sooner on what keeps failing; that it spends better does not follow.
# - Score an oracle on samples that it has not seen, and compare with even spending at the same budget.
#
# All these confidences are known before the first answer. [Next](07_response_consistency.ipynb): answers may also vote. How many does
# that take, and who may judge them?
#
# ## Exercises
#
# **1 (easy).** In the published curves, how does the oracle's advantage over the uniform allocation change with the
# budget, and why is it not zero at $B = 1$? *Hint:* a budget of one sample a question need not be spent one each.

# %% tags=["hide-cell", "solution"]
# Hopeless questions get none and others two; many samples solve all anyway
page.solution(above["Oracle CC"].groupby("k").mean())

# %% [markdown]
# **2 (medium).** Replace every confidence by one half. What does the allocation become, and does it matter which number
# it is? *Hint:* all gains of the first sample are equal.

# %% tags=["hide-cell", "solution"]
# Two constant confidences: both are even spending
page.solution(allocate([0.5] * 5, 12), allocate([0.1] * 5, 12))

# %% [markdown]
# **3 (hard).** A question's samples cost different numbers of tokens. What takes the place of the gain? *Hint:* try
# `cost`.

# %% tags=["hide-cell", "solution"]
# Two questions whose samples cost 100 and 300 tokens: by gain per token
tokens = np.array([100, 300])
spent = allocate([0.3, 0.3], 2000, cost=tokens)
page.solution(spent, spent @ tokens)
