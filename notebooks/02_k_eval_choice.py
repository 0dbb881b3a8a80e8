# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How many samples?
#
# On [the previous page](01_targets_divergence.ipynb) we saw that one answer tells little about what a model can do. How many
# samples per question do you need for the expected accuracy $\mu$ of one question, for its mean over many questions, and for
# the score of a confidence?

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has most data sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with probes by the paper's recipe
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of what is drawn

# %%
from capcal_lib.book.page import EndOfPage, finding, open_page, show_runs

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)

# %% [markdown]
# ## One question: four intervals
#
# If $c$ of $k$ samples are correct, where does $\mu$ lie? Here are four 95 % intervals for one correct sample:

# %%
import pandas as pd
from capcal_lib.metrics import binomial_interval

names = "jeffreys", "wilson", "clopper-pearson", "wald"
intervals = {
    name.title(): binomial_interval([1], k_eval, method=name)[0]
    for name in names
}
pd.DataFrame(intervals, ["low", "high"]).T.round(3)

# %% [markdown]
# Which one can you trust? Only $k + 1$ counts are possible, so the probability that an interval covers $\mu$ is a finite sum:
# $\sum_c \binom kc \mu^c (1-\mu)^{k-c}\,[\text{low}_c \le \mu \le \text{high}_c]$.

# %%
import numpy as np
from capcal_lib.metrics import coverage_probability

mus = pd.Index(np.linspace(0.002, 0.998, 499), name="expected accuracy, μ")
exact = pd.DataFrame(index=mus)
for name in names:
    exact[name.title()] = coverage_probability(mus, k_eval, method=name)

# %%
exact.mean().to_frame("coverage on average")

# %% label="fig-exact-coverage" mystnb={"image": {"alt": "Four panels, one for each interval, with a jagged curve of coverage against expected accuracy and a line at the nominal level."}}
from capcal_lib.plots import INK, MUTED

panels = {"subplots": True, "layout": (2, 2), "sharey": True, "title": [*exact]}
style = {"color": INK, "linewidth": 0.8, "ylim": (0.58, 1.005), "legend": False}
axes = exact.plot(**panels, **style, ylabel="coverage")
for panel in axes.flat:
    panel.axhline(0.95, color=MUTED, linestyle="--")

# %% [markdown]
# Probability that a 95 % interval covers the expected accuracy. The Wald interval fails at both ends. The curves are jagged
# because counts are whole numbers.

# %% [markdown]
# This book uses Jeffreys' interval, the middle 95 % of $\text{Beta}(c + \tfrac12,\; k - c + \tfrac12)$.
#
# The paper takes 100 samples because more bring little. It uses the Wald interval at $\mu = 1/2$ only as a guideline, and names
# Wilson's as an alternative. For a half-width of 0.1, the Wald and the Wilson interval need this many samples:

# %% label="wald-sizes"
from scipy.stats import norm

ks = np.arange(10, 200)
width = np.diff(binomial_interval(ks // 2, ks, method="wilson"))[:, 0]
needed = {"Wald": norm.ppf(0.975) ** 2 / 4 / 0.1**2}
needed["Wilson"] = ks[width <= 0.2][0]
np.ceil(pd.Series(needed)).astype(int).to_frame("samples")

# %% [markdown]
# ## The mean of many questions
#
# The mean of $\hat\mu$ over $N$ questions needs fewer samples. Its standard error from sampling alone is
# $\sqrt{\overline{\mu(1-\mu)}/(kN)}$. For the 30 questions of AIME25 it follows from the paper's baseline *Uniform random*. We
# got the mean distance from this baseline on the previous page. Half of it is the mean of $\mu(1-\mu)$:

# %%
from capcal_lib.book.tables import titled
from capcal_lib.reported import printed_distances

printed = titled(printed_distances().query("dataset == 'aime25'"))
variance = printed.set_index("model")["distance"] / 2
np.sqrt(variance / (100 * 30)).rename("standard error").round(4)

# %% [markdown]
# For gpt-oss-20b the paper's text says about 0.0056. Rounding does not explain the difference. The error from asking few questions
# adds to these numbers.
#
# ## A score with fewer samples
#
# Thirty other questions would have another mean, however many samples each has. So the interval of a score lets whole questions
# vary. A score is a mean of one term per question, such as a squared error, and `mean_interval` computes its interval. How wide
# would it be with only ten samples per question?

# %%
from capcal_lib.book.page import models_beside
from capcal_lib.results.results import results_of

beside = models_beside(page)
for one in beside.values():
    show_runs(one)

# %% [markdown]
# Draw ten of each question's samples and score again. We start with one confidence on one data set:

# %%
from capcal_lib.results import estimates
from capcal_lib.studies import k_eval_choice as study

deep = study.deep_questions(results_of(page.counting))
listed = estimates(deep).query("kind != 'response consistency'")
if listed.empty:
    raise EndOfPage(
        "No question has a confidence and more than ten samples. To draw more: capcal sample --k 100"
    )

# %%
case = ["dataset", "method", "member"]
cases = listed.groupby(case, observed=True, sort=False)
(shown, method, _), judged = next(iter(cases))
pd.Series({"data set": page.runs.loc[shown, "title"], "method": method})

# %% [markdown]
# Its interval with all samples and with ten:

# %%
from capcal_lib.metrics import capability_brier_terms, mean_interval
from capcal_lib.results import subjects


def interval(correct, total):
    s, groups = judged["confidence"], subjects(judged)
    terms = capability_brier_terms(s, correct, total, corrected=True)
    return mean_interval(terms, clusters=groups, bounds=(0, 1))


# %%
c, n = judged["correct"], judged["total"]
ten = np.random.default_rng(seed).hypergeometric(c, n - c, 10)
rows = {"all samples": interval(c, n), "ten samples": interval(ten, 10)}
pd.DataFrame(rows, ["score", "low", "high"]).T

# %% [markdown]
# `interval_growth` repeats this for each confidence of each model, on the data sets with the most samples. It leaves out votes of
# samples, because the votes are samples too. We tell two groups apart: a *probe*, which learned to predict $\mu$ from other
# questions of the data set, and any other confidence, because the smaller the errors, the more the noise could count. The [next page](03_confidence_estimators.ipynb) introduces the methods.

# %%
tables = {
    name: study.interval_growth(results_of(beside[name].counting), seed=seed)
    for name in sorted(beside)
}

# %%
growth = pd.concat(tables, names=["model", "case"]).reset_index()
growth = growth[growth["samples"] == growth["samples"].max()]

# %%
at_home = "probe of the data set"
is_own = growth["kind"] == at_home
growth["confidence"] = np.where(is_own, at_home, "any other confidence")

# %%
ten = growth[growth["k"] == 10]
wider = ten.groupby("confidence")["percent"].agg(["count", "median", "max"])
wider.round(1)

# %% [markdown]
# For what share of these scores do ten samples widen the interval by at most a tenth?

# %%
pd.Series({"by at most a tenth": (ten["percent"] <= 10).mean()})

# %% tags=["finding"]
finding(
    "Ten samples per question instead of {usual:.0f} widen the interval of a score by {percent:.0f} % (median). To narrow it, add questions.",
    usual=ten["samples"].median(),
    percent=ten["percent"].median(),
)

# %% tags=["remove-cell"]
from capcal_lib.book.page import glue

glue(usual=int(ten["samples"].median()), ten=ten["percent"].median())

# %%
from capcal_lib.plots import method_color

colors = {"any other confidence": "#bdbdbd", at_home: method_color("Probe")}
boxes = {"hue": "confidence", "hue_order": colors, "palette": colors}

# %% tags=["picture"] label="fig-k-eval" mystnb={"image": {"alt": "Box plots of the growth of the interval in per cent against k, for probes of the data set and for any other confidence."}}
import seaborn as sns

axes = sns.boxplot(growth, x="k", y="percent", gap=0.15, fliersize=2, **boxes)
_ = axes.set(xlabel="samples per question, k", ylabel="wider by, %")

# %% [markdown]
# How much wider the 95 % interval of a corrected score is with only k samples per question. A box holds the middle half of all
# confidences, data sets and models, and its line is the median.

# %% [markdown]
# ## Summary
#
# - About ten samples per question are enough for most scores.
# - Near 0 and 1 the Wald interval covers too seldom. Jeffreys' and Wilson's intervals are right on average.
# - Few samples bias a plug-in score. [Correct it](04_main_table.ipynb) rather than sampling more.
#
# We know how many samples a score needs. [Next](03_confidence_estimators.ipynb): where does a confidence come from?
#
# ## Exercises
#
# **1 (medium).** Is it better to ask 100 questions ten times or 10 questions a hundred times? Simulate it with $\mu$ uniform and
# $s = 0.5$. *Hint:* compare the standard deviation of corrected scores.

# %% tags=["hide-cell", "solution"]
# The standard deviation of a score in both designs
rng, noise = np.random.default_rng(seed), {}
for n, k in ((100, 10), (10, 100)):
    mu = rng.binomial(k, rng.random((300, n))) / k
    terms = (0.5 - mu) ** 2 - mu * (1 - mu) / (k - 1)
    noise[f"{n} questions"] = terms.mean(axis=1).std()
pd.Series(noise).round(3)
