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
# [Before](01_targets_divergence.ipynb) we saw that one answer tells little of what a model can do. How many samples of a question
# does it take: to know its expected accuracy $\mu$, to know the mean over many questions, and to score a confidence?

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`; it has most data sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with the probes of its recipe
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of what is drawn

# %%
from capcal_lib.book.lesson import open_lesson

page = open_lesson(globals())

# %% [markdown]
# ## One question: four intervals
#
# With $c$ of $k$ samples correct, where does $\mu$ lie? Four formulas give an interval of 95 %, here for one correct sample:

# %%
import pandas as pd
from capcal_lib.metrics import binomial_interval

names = "jeffreys", "wilson", "clopper-pearson", "wald"
intervals = {
    name: binomial_interval([1], k_eval, method=name)[0] for name in names
}
pd.DataFrame(intervals, ["low", "high"]).T.round(3)

# %% [markdown]
# Which of them can be trusted? With $k$ samples there are only $k + 1$ possible counts, so the probability that an interval covers
# $\mu$ is a finite sum, $\sum_c \binom kc \mu^c (1-\mu)^{k-c}\,[\text{low}_c \le \mu \le \text{high}_c]$, with no draws and no error.

# %%
import numpy as np
from capcal_lib.metrics import coverage_probability

mus = pd.Index(np.linspace(0.002, 0.998, 499), name="expected accuracy, μ")
exact = pd.DataFrame(index=mus)
for name in names:
    exact[name.title()] = coverage_probability(mus, k_eval, method=name)
pd.DataFrame({"at 0.01": exact.loc[0.01:].iloc[0], "on average": exact.mean()})

# %% label="fig-exact-coverage" paper=["appendix-b.1", "equation-16"] evidence=["simulated"] mystnb={"image": {"alt": "Four panels, one for each interval, with a toothed curve of coverage against expected accuracy and a line at the level that is promised."}}
from capcal_lib.plots import INK, MUTED

panels = {"subplots": True, "layout": (2, 2), "sharey": True, "title": [*exact]}
style = {"color": INK, "linewidth": 0.8, "ylim": (0.58, 1.005), "legend": False}
axes = exact.plot(**panels, **style, ylabel="coverage")
for panel in axes.flat:
    panel.axhline(0.95, color=MUTED, linestyle="--")

# %% [markdown] tags=["caption"]
# Probability that a 95 % interval covers the expected accuracy, summed exactly. The Wald interval, by which the paper plans, falls
# out of its panel at both ends, where language models often are; the others stay close to what they promise. The teeth come from
# counts being whole numbers.

# %% [markdown]
# Jeffreys' interval, the middle 95 % of $\text{Beta}(c + \tfrac12,\; k - c + \tfrac12)$, is that of this book. The paper takes 100
# samples, by the half-width of the Wald interval at $\mu = 1/2$, and mentions that Wilson's could be searched instead. Either asks
# for fewer, for a half-width of 0.1:

# %% label="wald-sizes" paper=["equation-17", "equation-18"] evidence=["simulated"]
from scipy.stats import norm

ks = np.arange(10, 200)
width = np.diff(binomial_interval(ks // 2, ks, method="wilson"))[:, 0]
int(np.ceil(norm.ppf(0.975) ** 2 / 4 / 0.1**2)), int(ks[width <= 0.2][0])

# %% [markdown]
# ## The mean of many questions
#
# The mean of $\hat\mu$ over $N$ questions has the standard error $\sqrt{\overline{\mu(1-\mu)}/(kN)}$ by sampling alone. The
# paper shows it on the 30 questions of AIME25. Its printed baselines give it for all its models: the mean of $\mu(1-\mu)$ is half
# of the distance that we met before.

# %%
from capcal_lib.book.tables import titled
from capcal_lib.reported import printed_distances

ks = pd.Index([10, 25, 50, 100, 200], name="samples a question")
printed = titled(printed_distances().query("dataset == 'aime25'"))
variance = printed.set_index("model")["distance"] / 2 / 30
errors = pd.DataFrame(np.sqrt(np.outer(1 / ks, variance)), ks, variance.index)
errors.loc[100].round(4)

# %% [markdown]
# The paper says of gpt-oss-20b that the error is about 0.0056 at 100 samples. For other numbers of samples:

# %% label="fig-standard-error" paper=["figure-6", "appendix-b.1", "equation-16"] evidence=["reported"] reads=["main"] mystnb={"image": {"alt": "Curves of the standard error against samples a question, one a model."}}
import seaborn as sns

axes = sns.lineplot(errors, markers=True, dashes=False)
axes.set(ylim=(0, None), ylabel="standard error")
_ = axes.legend(title="")

# %% [markdown] tags=["caption"]
# Standard error, by sampling alone, of the mean expected accuracy on AIME25. It falls with the root of the number of samples; the
# error that comes from asking few questions is not part of it.

# %% [markdown]
# ## Intervals for questions like these
#
# Another thirty questions would have another mean, however many samples each has. A mean over questions, such as a score, has an
# interval that lets whole questions vary. `mean_interval`, that of every score in this book, is Student's $t$ on the terms and half a
# question more at either bound of the score: it assumes that questions are independent draws, and that errors too rare to show up
# add at most about two questions of the largest possible error. Rarer and heavier ones are covered less often, and so is a whole
# subject that is rare and missed throughout, where questions come in subjects. How much less, for terms that are 1 at a rate of 1 to
# 6 questions in a hundred and else 0, is a finite sum again:

# %%
from capcal_lib.metrics import mean_interval
from scipy.stats import binom

n, rates = 100, np.arange(1, 61) / 1_000
ones = np.arange(n + 1)
terms = [np.repeat([1.0, 0.0], [c, n - c]) for c in ones]
low, high = np.array(
    [mean_interval(sample, bounds=(0, 1))[1:] for sample in terms]
).T
within = (low <= rates[:, None]) & (rates[:, None] <= high)
covered = (binom.pmf(ones, n, rates[:, None]) * within).sum(axis=1)
covered = pd.Series(covered, pd.Index(100 * rates, name="in a hundred")).loc[1:]
covered.idxmin(), covered.min(), covered.mean()

# %% [markdown]
# The first number is the rate at which it covers least, then come the probability there and that on average over the rates.
# `benchmarks/coverage.py` draws studies of other kinds, and counts the intervals that hold the score of all questions.
#
# ## Samples of a model
#
# From here on we take samples that are there. If $\hat\mu$ is 0 or 1, the Wald interval has no width at all. How often is that? Fewer
# samples are more often all alike, so we compare data sets with ten samples of each question. The probability that ten of a question's
# samples are alike is hypergeometric:

# %% tags=["provenance"]
page.show_runs()
page.show_other_models()

# %% label="wald-points" paper=["appendix-b.1"] evidence=["measured"] reads=["verdicts"]
from scipy.stats import hypergeom

results = page.results()
mu = results["correct"] / results["total"]
alike = pd.DataFrame({"all samples": mu.dropna().isin([0, 1])})
some = results[results["total"] >= 10]
counts = some["total"], some["correct"], 10
none, all_ten = (hypergeom.pmf(right, *counts) for right in (0, 10))
alike["ten samples"] = pd.Series(none + all_ten, some.index)
page.show(
    alike.groupby("dataset", sort=False).mean(),
    "Share of questions whose Wald interval has no width, with all samples and with ten of each question.",
)

# %% [markdown]
# And this is the standard error of the mean accuracy, by sampling alone, on each data set of the model:

# %% label="standard-errors-measured" paper=["figure-6"] evidence=["measured"] reads=["verdicts"]
from capcal_lib.results.targets import response_distances

distances = response_distances(results).rename(page.data["title"])
variance = distances["mean distance"] / 2 / distances["questions"]
page.show(
    pd.DataFrame(np.sqrt(np.outer(1 / ks, variance)), ks, variance.index),
    "Standard error, by sampling alone, of the mean expected accuracy.",
    digits=4,
)

# %% [markdown]
# ## A score with fewer samples
#
# How wide would the interval of a score be with only ten samples of each question? Draw ten of those that are there, at random and
# without replacement, and take the interval of this score, that of every score in this book. Where questions have unlike numbers of
# samples, those with the most are taken. One confidence on one data set, with all of its samples and with ten:

# %%
from capcal_lib.results import confidence_columns, judged_by
from capcal_lib.studies import k_eval_choice as study

votes = "Response consistency"
deep = study.deep_questions(results).drop(columns=votes, errors="ignore")
columns = confidence_columns(deep.dropna(axis="columns", how="all"))
if not columns:
    page.end(
        "No question has a confidence and more than ten samples: capcal sample --k 100 draws them."
    )
judged = judged_by(deep, columns[0])
judged = judged.loc[[judged.index[0][0]]]
confidence, correct, total = judged.to_numpy().T

# %%
from capcal_lib.metrics import capability_brier_terms
from capcal_lib.results import subjects

all_terms = capability_brier_terms(confidence, correct, total, corrected=True)
wrong = (total - correct).astype(int)
chance = np.random.default_rng(seed)
few = chance.hypergeometric(correct.astype(int), wrong, 10)
few_terms = capability_brier_terms(confidence, few, 10, corrected=True)
limits = {"clusters": subjects(judged).to_numpy(), "bounds": (0, 1)}
mean_interval(all_terms, **limits), mean_interval(few_terms, **limits)

# %% [markdown]
# `interval_growth` does it several times for each confidence on each data set, and compares the mean width with that by all
# samples. It leaves out response consistency, whose votes are samples too. Here it is for all models that have samples. Ten samples
# are compared with the same number everywhere, so we keep the data sets with the most samples a question:

# %%
names = sorted(page.comparable_models())
draws = np.random.default_rng(seed)
growth = {
    name: study.interval_growth(page.results(name), rng=draws) for name in names
}
growth = pd.concat(growth, names=["model", "case"]).reset_index()
growth = growth[growth["samples"] == growth["samples"].max()]

# %%
at_home = "a probe on its own data set"
is_own = growth["kind"] == "probe of the data set"
growth["confidence"] = np.where(is_own, at_home, "any other confidence")
ten = growth[growth["k"] == 10]
wider = ten.groupby("confidence")["percent"].agg(["count", "median", "max"])
wider.round(1)

# %% [markdown]
# And the share of these scores whose interval ten samples widen by at most a tenth:

# %%
(ten["percent"] <= 10).mean()

# %% tags=["finding"]
kind = wider["median"].idxmax()
page.finding(
    "Ten samples of each question in place of {usual:.0f} widen the interval of a score by {ten:.0f} % in the median, that of "
    "{kind} by {of_kind:.0f} %: add questions instead.",
    usual=ten["samples"].median(),
    ten=ten["percent"].median(),
    kind=kind,
    of_kind=wider.loc[kind, "median"],
)

# %% tags=["remove-cell"]
from capcal_lib.book.lesson import glue

glue(usual=int(ten["samples"].median()), ten=ten["percent"].median())
glue(probe=wider["median"].reindex([at_home]).item())

# %% tags=["picture"] label="fig-k-eval" paper=["appendix-b.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"] mystnb={"image": {"alt": "Box plots of the growth of the interval in per cent against k, in two groups: probes on their own data set, and any other confidence."}}
from capcal_lib.plots import SHIFT_COLORS
from capcal_lib.shifts import IN_DISTRIBUTION

colors = {
    "any other confidence": "#bdbdbd",
    at_home: SHIFT_COLORS[IN_DISTRIBUTION],
}
boxes = {"hue": "confidence", "hue_order": colors, "palette": colors}
axes = sns.boxplot(growth, x="k", y="percent", gap=0.15, fliersize=3, **boxes)
axes.legend(title="")
_ = axes.set(xlabel="samples a question, k", ylabel="wider by, %")

# %% [markdown] tags=["caption"]
# How much wider the 95 % interval of a corrected score is when only k samples of each question are drawn, over all confidences on
# all data sets of the recorded models. A box holds the middle half of them, and the line in it is the median; single marks are
# outliers. All of it holds for questions like these.

# %% [markdown]
# ## Where samples matter
#
# The corrected score of a confidence $s$ is the mean over $N$ questions of a term with two kinds of noise: questions
# differ, and a question's samples differ. With $v = \mu(1-\mu)$ the variance of the score is
# $\frac1N\bigl(\text{between} + \text{within}/k + \text{pairs}/(k(k-1))\bigr)$, where *within* is the mean of $4(s-\mu)^2 v$
# and *pairs* that of $2v^2$. `score_parts` estimates the three parts without bias. Where a confidence is right everywhere, or equally wrong
# everywhere, there is little between questions, and samples matter. These are the parts of the model and data set on which an
# interval widens most; the interval itself widens by less than the root of this variance, since half a question more at either
# bound is part of it, however many samples there are:

# %%
widest = growth.loc[growth["percent"].idxmax()]
parts = study.score_parts(
    page.results(widest["model"]).loc[[widest["dataset"]]]
)

# %% label="score-parts" evidence=["measured"] reads=["verdicts", "confidences", "features"]
page.show(
    parts.assign(model=widest["model"]),
    "Parts of the variance of a question's term.",
    digits=4,
)

# %% [markdown]
# ## Summary
#
# - The number of questions sets the precision of most scores; about ten samples of each do. A score needs more where a
#   confidence is about equally far from $\mu$ on all questions.
# - Near 0 and 1 the Wald interval covers too seldom; Jeffreys' and Wilson's are right on average.
# - The bias of a plug-in score falls with samples. [Correct it](04_main_table.ipynb), rather than sampling more.
# - An interval over few questions has to allow for what it has not seen.
#
# We know how to score a confidence. [Next](03_confidence_estimators.ipynb): where does one come from?
#
# ## Exercises
#
# **1 (easy).** In the figure there may be marks far above the others, and the parts above are of the model and data set of the furthest.
# Whose intervals widen by much there, and why? *Hint:* what is left between questions where a confidence is equally far from $\mu$ on
# all of them?

# %% tags=["hide-cell", "solution"]
# The less lies between questions, the more of the noise of ten samples each is that of samples
page.solution((parts["within"] / 10 + parts["pairs"] / 90) / parts["between"])

# %% [markdown]
# **2 (medium).** Scores of $N$ questions with $k$ samples each cost $Nk$ samples. With 1,000 samples in all, is it better to
# ask 100 questions ten times or 10 questions a hundred times? Simulate it with $\mu$ uniform and $s = 0.5$. *Hint:* compare
# the standard deviation of corrected scores over repeated studies.

# %% tags=["hide-cell", "solution"]
# The noise of a score, by questions and by samples
rng, noise = np.random.default_rng(seed), {}
for n, k in ((100, 10), (10, 100)):
    mu = rng.binomial(k, rng.random((300, n))) / k
    terms = (0.5 - mu) ** 2 - mu * (1 - mu) / (k - 1)
    noise[f"{n} questions"] = terms.mean(axis=1).std().round(3)
page.solution(noise)
