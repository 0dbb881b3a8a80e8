# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What a confidence costs
#
# [Before](08_probe_generalization.ipynb) we saw where a probe works. It costs no tokens where it is used, and asking the model does:
# is what is dearer better?

# %% tags=["parameters"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged

# %% tags=["provenance"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import plots
from capcal_lib.book import tables
from capcal_lib.book.lesson import open_page
from capcal_lib.metrics import mean_interval, questions_needed
from capcal_lib.reported import load_reported
from capcal_lib.results import brier_terms, costs, subjects
from capcal_lib.results.prices import (
    compare_with_nearest_probe,
    keep_asked_and_nearest_probe,
    printed_by_price,
    score_by_price,
)

page = open_page(globals(), paper=["table-2", "table-6"])

# %% [markdown]
# The price of a confidence is the mean number of tokens that it takes beside the answer. An answer to the question "how likely?" is a
# few tokens, and ten votes are ten answers:

# %%
results = page.results()
tokens = costs(page.store, model, k_eval=k_eval)
tokens

# %% [markdown]
# Each way to ask stands beside the probe that was trained on the nearest questions and the best constant, the mean accuracy of the
# other questions, which are free. Whether a confidence is closer than the constant is not asked here once more: the verdicts are
# those of the [main table](04_main_table.ipynb), where all methods on all data sets of the model are judged together.

# %%
scores = score_by_price(results, tokens, protocol=protocol)
if scores.empty:
    page.end(
        "No data set has a solved question and a confidence: capcal confidence asks for one."
    )
scores = scores.assign(dataset=scores["dataset"].map(page.data["title"]))
scores = scores.sort_values("dataset", kind="stable")

# %% tags=["picture"] label="fig-cost" paper=["figure-3", "figure-4", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"] mystnb={"image": {"alt": "A panel a data set with score against tokens on a logarithmic axis that begins at zero tokens: a mark with an interval for each method, filled where its comparison with the best constant is clear after Holm, and a dashed line for the best constant."}}
_ = plots.draw_prices(scores)

# %% [markdown] tags=["caption"]
# Score against mean completion tokens a question, with 95 % intervals; lower left is better. Dashed is the best constant, which
# costs nothing; above it, tokens are wasted. Filled: closer or farther than the constant after Holm, by the verdicts of the main
# table; hollow: cannot tell.

# %% label="cost-scores" paper=["figure-3", "figure-4"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
names = {"dataset": "data set", "brier": "score"}
tables.show(
    scores.rename(columns={**names, "verdict": "against the constant"}),
    "Scores (lower is better), each with its own 95 % interval, from cheap to dear, and the verdict of the main table against the "
    "best constant, after Holm.",
    tokens="{:,.0f}",
    evidence=page.evidence,
)

# %% [markdown]
# ## What does a price buy?
#
# Two scores side by side do not say it. Every method that takes tokens is compared with the nearest probe, which takes none, question
# by question and with subjects drawn whole. These comparisons, of all data sets, are a family of their own for Holm's method.

# %%
bought = compare_with_nearest_probe(results, protocol=protocol)
if bought.empty:
    page.end(
        "No probe stands beside what the model was asked: capcal probe trains one."
    )
by_method = bought.groupby("method", observed=False)
counts = by_method["verdict"].value_counts().unstack()
counts

# %% tags=["finding"]
votes = counts.loc["Response consistency"]
asked = counts.drop("Response consistency").sum()
page.finding(
    "Ten votes are closer to the accuracy than a probe, which costs no tokens, on {votes} of {sets} data sets, and asking the model "
    "is in {asked} of {cases} cases.",
    votes=votes["better"],
    sets=votes.sum(),
    asked=asked["better"],
    cases=asked.sum(),
)

# %% [markdown]
# A row of the table below is one case, and the last of them takes four lines: the Brier terms of both, on the questions that both
# have, their difference, and its mean.

# %% label="cost-gains" evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
page.show(
    bought.drop(columns="p"),
    "Score of the nearest probe, which takes no tokens, less that of a method that does (higher is better), each with its own 95 % "
    "interval, and the verdict after Holm, all cases of this table together.",
    **{"p (Holm)": tables.p_value},
)

# %%
name, method = bought[["dataset", "method"]].iloc[-1]
kept = keep_asked_and_nearest_probe(results)
terms = brier_terms(kept, protocol=protocol)
both = terms.loc[[name], ["Probe", method]].dropna()
gain = both["Probe"] - both[method]
mean_interval(gain, clusters=subjects(both), bounds=(-1, 1))

# %% [markdown]
# ## As the paper prints it
#
# The paper draws the same for three models and seven data sets. Here its printed scores stand against the tokens read
# off its figures, to about 6 %. Response consistency writes ten answers, a probe nothing, and P(True) one token,
# unless the model reasons first. The score of the best constant follows from two printed numbers.

# %% label="cost-means" paper=["figure-4"] evidence=["reported", "read off"] reads=["main", "consistency", "tokens"]
printed = printed_by_price()
numbers = ["tokens", "brier", "constant"]
means = printed.groupby(["model", "method"])[numbers].mean()
page.show(
    means.rename(columns={"brier": "score"}),
    "Mean printed score and mean tokens of the paper's models, and the mean score of the best constant.",
    digits=4,
    evidence=["reported", "read off"],
    tokens="{:,.0f}",
)

# %% [markdown]
# For how many of the models is a method closer than the constant? Printed scores have no intervals, but they have a last digit. A
# mean of seven that is rounded to four digits is off by at most .00005, and the constant's, which follows from two printed numbers of
# each data set, by at most .0001: where the two are no farther apart than both together, they are *equal* as far as is printed.

# %%
rounding = 0.00015
lead = means["constant"] - means["brier"]
closer = (lead >= rounding).groupby("method").sum()
equal = (lead.abs() < rounding).groupby("method").sum()
pd.DataFrame({"closer": closer, "equal": equal})

# %% [markdown]
# From one token to the longest ten answers, the cost spans so many orders of magnitude, while the mean scores of the methods differ by
# such a factor:

# %%
costly = printed["tokens"][printed["tokens"] > 0]
orders = np.log10(costly.max() / costly.min())
orders.round(1), (means["brier"].max() / means["brier"].min()).round(1)

# %% label="fig-cost-paper" paper=["figure-3", "figure-4", "section-4.3.2"] evidence=["reported", "read off"] reads=["main", "consistency", "tokens"] mystnb={"image": {"alt": "Three panels, one a model, with the mean score against tokens, a mark a method, and a dashed line for the best constant."}}
mean = means.reset_index().assign(shown="mean of seven")
points = pd.concat([printed.assign(shown="one data set"), mean])
points = tables.titled(points.reset_index(drop=True))
marks = {name: plots.MARKERS.get(name, "o") for name in points["method"]}
look = {"palette": plots.palette(marks), "markers": marks, "height": 2.7}
look |= {"hue": "method", "style": "method", "aspect": 0.7}
look |= {"size": "shown", "sizes": [25, 110], "col": "model"}
grid = sns.relplot(points, x="tokens", y="brier", **look)
for name, ax in grid.axes_dict.items():
    constant = points["constant"][points["model"] == name].mean()
    ax.axhline(constant, color=plots.INK, linestyle="--")
ticks = {"xticks": [0, 1, 100, 10_000], "xticklabels": [*plots.TOKENS]}
grid.set(xscale="symlog", xlim=(-0.4, 3e5), **ticks)
_ = grid.set_titles("{col_name}").set_axis_labels("tokens a question", "score")

# %% [markdown] tags=["caption"]
# Printed scores (reported), without intervals, against tokens (read off) for the paper's models: small marks are its seven data sets,
# large ones their mean. The probe is the one trained nearest to a data set. Dashed is the mean of the best constant.

# %% [markdown]
# ## Summary
#
# - A probe is free at the point of use, but not before: its training questions had to be sampled and graded.
# - The most expensive method, response consistency, may score best, and costs more than the answer that it is about.
# - The best constant is free as well: a confidence that costs tokens has to be closer than it is.
# - What is dearer is worth its price where a paired comparison says so; two scores side by side do not.
# - Whether a confidence may cost more than an answer depends on its use, not on the figure.
#
# So far we measured for ourselves. [Next](10_paper_audit.ipynb): which sentences of the paper do its own numbers support?
#
# ## Exercises
#
# **1 (easy).** How many votes could response consistency afford at the price of a verbalized confidence? *Hint:* one
# vote costs one answer.

# %% tags=["hide-cell", "solution"]
# The cost of asking, counted in answers
read_off = load_reported("tokens", source="reference code")
prices = read_off.pivot(
    index=["model", "dataset"], columns="method", values="value"
)
votes = prices["Verbalized confidence"] / prices["Response"]
votes.unstack("model").round(1)

# %% [markdown]
# **2 (medium).** What does a constant at the mean of $\hat\mu$ score on the first data set, without the noise, and where is that in
# the figure? *Hint:* the variance of $\mu$ over its questions.

# %% tags=["hide-cell", "solution"]
# The variance of mu-hat over questions, less its noise: the dashed line
subset = kept.loc[kept.index[0][0]]
mu = subset["correct"] / subset["total"]
noise = mu * (1 - mu) / (subset["total"] - 1)
mu.var(ddof=0) - noise.mean()

# %% [markdown]
# **3 (hard).** On how many questions would ten votes and the probe have to be compared, if the difference seen were the true one?
# *Hint:* `questions_needed`, of their `brier_terms`; NaN says that the difference is smaller than its error.

# %% tags=["hide-cell", "solution"]
# The questions that a verdict at power .8 would take, one comparison by itself
two = terms.reindex(columns=["Probe", "Response consistency"]).dropna()
for name, own in two.groupby("dataset", sort=False):
    difference = own["Probe"] - own["Response consistency"]
    print(name, questions_needed(difference, clusters=subjects(own)))
