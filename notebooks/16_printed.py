# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What the paper prints
#
# Which numbers does the paper print for its models, Olmo-3-7B-Instruct, Qwen3-8B and gpt-oss-20b? Its tables stand here digit by
# digit; tokens and budgets are read off its figures, and one figure is simulated. Nothing on this page is measured. [The page
# on the paper's statements](09_statements.ipynb) asks what follows. The [previous page](15_grading.ipynb) graded answers.

# %% tags=["parameters", "hide-input"]
model: str = ""  # one of the paper's three; empty: all
store: str = "runs/recorded"  # as on all pages; no sample is shown here

# %%
from capcal_lib.book.page import EndOfPage, finding, open_page
from capcal_lib.reported import load_reported

names = load_reported("main")["model"].unique()
page = open_page(model or names[0], store)
if model and model not in names:
    raise EndOfPage(f"The paper prints nothing of {model}.")
names = [model] if model else [*names]

# %% [markdown]
# The paper prints a score for each of seven data sets, without intervals; the averages here are ours. Its scores are plug-in, and
# lower is better. From the printed accuracy and the score of *Uniform random* one can compute the score of the best constant.
# Tokens are read off to about 6 %.

# %%
from capcal_lib.book.tables import show, titled
from capcal_lib.studies import main_table as study

prices = study.printed_by_price().query("model in @names")
numbers = prices.groupby(["model", "method"])[["tokens", "brier", "constant"]]
means = numbers.mean().rename(columns={"brier": "score"}).loc[names]

# %% label="cost-means"
caption = "Mean printed score, mean tokens and mean score of the best constant."
evidence = ["reported", "read off"]
show(means, caption, evidence=evidence, digits=4, tokens="{:,.0f}")

# %% [markdown]
# Rounding can move the difference of two means by .00015. Smaller differences count as equal.

# %%
lead = means["constant"] - means["score"]
closer = (lead >= 0.00015).groupby("method").sum()

# %% tags=["finding"]
finding(
    "Averaged over the data sets, the nearest probe scores lower than the best constant for {closer} of {models} models.",
    closer=closer["Probe"],
    models=len(names),
)

# %% tags=["picture"] label="fig-cost-paper" mystnb={"image": {"alt": "One panel per model, with printed scores against tokens: a mark per data set for each method, and a dashed line for the best constant."}}
_ = study.draw_prices(titled(prices), "model")

# %% [markdown]
# Printed scores (reported) of each method, with its mean tokens a question (read off). Each mark is a data set. The dashed line
# is the mean of the best constant.

# %% [markdown]
# ## Scores, accuracies and votes
#
# Table 2 is the main table. Table 4 has the mean expected accuracy, and table 6 the scores of 5, 10 and 20 votes.

# %%
from capcal_lib.book.printed import show_printed

for item in ("table-2", "table-4", "table-6"):
    for name in names:
        show_printed(item, name)

# %% [markdown]
# ## Pass@k
#
# Tables 3 and 8 have the squared errors of predicted pass@k.

# %%
for item in ("table-3", "table-8"):
    for name in names:
        show_printed(item, name)

# %% [markdown]
# The paper's curves come without numbers. But the printed accuracy and the score of *Uniform random* determine a Beta
# distribution of $\mu$, which has its own pass@k.

# %% label="fig-pass-at-k-paper" mystnb={"image": {"alt": "pass@k against k in two panels, MATH-500 and AIME25, with a line for each model."}}
from capcal_lib import plots
from capcal_lib.reported import printed_curves

curves = printed_curves([1, 2, 4, 8, 16, 32, 64]).query("model in @names")
grid = plots.draw_curves(titled(curves), x="k", hue="model", col="dataset")
_ = grid.set_axis_labels("k", "pass@k")

# %% [markdown]
# Expected pass@k from two printed numbers (simulated).

# %% [markdown]
# ## Budgets
#
# We read the success rates of figure 10 off a figure in the authors' code repository, to within 0.00005.

# %%
rates = load_reported("budget", source="reference code")
rates = titled(rates.query("model in @names"))
rates = rates.rename(columns={"value": "estimate"})
rates = rates.replace("Uniform allocation", "Even spending")

# %% label="fig-budget-paper" mystnb={"image": {"alt": "Success rate against the budget in panels for each model, on MATH-500 and on AIME25, with a curve for each rule."}}
for title in ("MATH-500", "AIME25"):
    rows = rates[rates["dataset"] == title]
    grid = plots.draw_curves(rows, x="k", col="model")
    grid.set_axis_labels("B, samples a question", "questions solved")
    grid.figure.suptitle(title)

# %% [markdown]
# Success rate against the budget, as the paper draws it (read off). The paper calls even spending *Uniform allocation*.

# %% [markdown]
# ## Probes of two training sets, and settings
#
# Table 7 has probes trained on TriviaQA, on GSM8K and on both.

# %%
for name in names:
    show_printed("table-7", name)

# %% [markdown]
# These are the sampling settings, and the settings of the probes, which the paper chose on validation sets. For feature
# standardization, 1 is yes and 0 is no.

# %%
import pandas as pd

settings = pd.concat(map(load_reported, ["sampling", "hyperparameters"]))
settings = titled(settings.query("model in @names"))
settings["setting"] = settings["method"] + " " + settings["dataset"]

# %% label="printed-settings"
table = settings.pivot(index="setting", columns="model", values="value")
caption = "Settings as printed in the paper."
show(table.map("{:g}".format), caption, evidence="reported")

# %% [markdown]
# ## Summary
#
# A printed score is a mean over questions, each with a hundred samples, and has no interval.
#
# Next: the map of the paper.
