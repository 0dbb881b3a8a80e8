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
# How many samples of each question does a score need? This page answers it for a score over many questions, for one
# question, and for a mean accuracy: appendix B.1 and figure 6 of the paper.

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has most data sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of the study that an exercise simulates

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.applications import score_components
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import (
    capability_brier,
    correctness_variance,
    coverage_probability,
)
from capcal_lib.reported import load_reported
from capcal_lib.results import describe_runs, load_results, methods
from scipy.stats import beta, norm

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval)
notebook.about(model, data)

# %% tags=["hide-input"]
real = [
    name for name in model_names() if load_model(name).engine != "simulated"
]
if "simulated" in set(data["evidence"]):  # never beside what is measured
    real = [model]


# %%
def growths(own, method):
    """By what share do fewer samples widen a score's standard error?"""
    own = own.dropna(subset=method)
    if len(own) < 2:
        return {}
    parts = score_components(own[method], own["correct"], own["total"])
    most = own["total"].max()
    return {
        k: np.sqrt(parts.variance(k) / parts.variance(most)) - 1
        for k in (5, 10, 20, 50)
        if k < most
    }


# %%
rows = []
for name in real:
    every = load_results(runs, name, k_eval=k_eval).query("total > 10")
    for dataset, own in every.groupby("dataset", sort=False):
        own = own[own["total"] == own["total"].max()]
        solved = own["correct"].nunique() > 1  # some questions, not all
        for method in methods(own) if solved else []:
            for k, grown in growths(own, method).items():
                rows.append((name, dataset, method, k, 100 * grown))
columns = ["model", "dataset", "method", "k", "percent"]
growth = pd.DataFrame(rows, columns=columns)
growth = growth[growth["method"] != "Response consistency"]

# %% tags=["hide-input"]
missing = "No model has recorded runs of more than ten samples a question."
notebook.lack(growth.empty, runs=missing, probes="")

# %% tags=["hide-input"]
# needs runs
home = {name: load_dataset(name).probe for name in set(growth["dataset"])}
own_probe = growth["dataset"].map(home) == growth["method"]
growth["confidence"] = own_probe.map(
    {True: "probe trained on such questions", False: "any other"}
)
ten = growth.query("k == 10").set_index(["model", "dataset", "method"])
probes = ten.loc[ten["confidence"] != "any other", "percent"]
name, dataset, method = ten["percent"].idxmax()
most = [
    load_results(runs, *pair[:1], datasets=pair[1:], k_eval=k_eval)[
        "total"
    ].max()
    for pair in ten.index.droplevel("method").unique()
]

# %% tags=["hide-input"]
# needs runs
notebook.glue(
    scores=len(ten),
    usual=int(np.median(most)),
    ten=ten["percent"].median(),
    narrow=100 * (ten["percent"] <= 10).mean(),
    most=ten["percent"].max(),
    worst=f"{method} of {load_model(name).title} on {load_dataset(dataset).title}",
)

# %% tags=["hide-input"]
# needs runs
none = "No probe is trained for these data sets."
notebook.lack(probes.empty, probes=none)

# %% tags=["hide-input"]
# needs probes
notebook.glue(
    probes=len(probes),
    probe=probes.median(),
    probe_narrow=int((probes <= 10).sum()),
)

# %% tags=["finding"]
# needs runs
notebook.finding("""
Ten samples of each question cost most scores little precision, and a good probe more. With ten samples in place of all
that were recorded (usually {usual}), the standard error of a corrected score grows by {ten:.0f} % in the median of {scores}
scores, and by at most a tenth for {narrow:.0f} % of them. It grows most, by {most:.0f} %, for {worst}.
""")

# %% tags=["finding"]
# needs probes
notebook.finding("""
For the {probes} probes among them that were trained on questions of the same data set it grows by {probe:.0f} % in the
median, and by at most a tenth for {probe_narrow}.
""")

# %% mystnb={"figure": {"caption": "Growth of a corrected score's standard error when only k samples of each question are drawn. A point is a confidence on a data set of a recorded model; bars are medians.", "name": "fig-k-eval"}, "image": {"alt": "Strip plot of the growth in per cent against k, in two colours. At 5 samples most points lie below some tens of per cent, at 10 most lie below ten, at 20 and 50 nearly all are close to zero. Probes trained on such questions lie highest."}} paper=["appendix-b.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs runs
look = {"x": "k", "y": "percent", "hue": "confidence"}
axes = sns.stripplot(growth, dodge=True, alpha=0.5, **look)
bars = {"estimator": "median", "errorbar": None, "linestyle": "none"}
bars |= {"marker": "_", "markersize": 24, "legend": False}
kinds = growth["confidence"].nunique()  # with or without probes
bars |= {"dodge": 0.4 * (kinds > 1), "palette": [style.INK] * kinds}
sns.pointplot(growth, **bars, **look)
axes.legend(title="")
_ = axes.set(
    xlabel="samples a question, k", ylabel="growth of standard error, %"
)

# %% [markdown]
# ## Where samples matter
#
# The corrected score of a confidence $s$ is the mean over $N$ questions of a term that has two kinds of noise: questions
# differ, and a question's samples differ. With $v = \mu(1-\mu)$ the variance of the score is
#
# $$
# \frac1N\left(\text{between} + \frac{\overline{4(s-\mu)^2 v}}{k} + \frac{\overline{2v^2}}{k(k-1)}\right)
# $$
#
# `score_components` estimates the three parts without bias. Where a confidence is right everywhere, or equally wrong
# everywhere, questions differ little, and samples matter. The three parts for a confidence that is always 0.5:

# %%
# needs samples
largest = load_results(runs, model, k_eval=k_eval).loc[data.index[0]]
correct, total = largest["correct"], largest["total"]
parts = score_components(0.5, correct, total)
pd.Series(parts._asdict()).round(4)

# %% [markdown]
# Response consistency is left out above, because its votes are drawn from the same samples. All this is for questions
# *like these*. For these questions alone the width falls as $1/\sqrt k$.
#
# ## One question
#
# Given $\mu$, the number $c$ of correct samples is binomial, and $\hat\mu = c/k$ has variance $\mu(1-\mu)/k$. A Wald
# interval no wider than $\pm\varepsilon$ at the worst case $\mu = 1/2$ takes $k \ge z^2 / 4\varepsilon^2$ samples:

# %% label="wald-sizes" paper=["equation-17", "equation-18"] evidence=["simulated"]
z = norm.ppf(0.975)
{width: int(np.ceil(z**2 / (4 * width**2))) for width in (0.10, 0.05, 0.01)}

# %% [markdown]
# The paper takes 100, so one question's $\hat\mu$ stays rough. A Jeffreys interval holds the middle 95 % of
# $\text{Beta}(c + \tfrac12,\; k - c + \tfrac12)$:

# %%
c, k = 7, 20
low, high = beta.ppf([0.025, 0.975], c + 0.5, k - c + 0.5)
float(low), float(high)

# %% [markdown]
# It keeps its level where $\mu$ is near 0 or 1, where language models often are and the Wald interval fails. The chance
# that each covers $\mu = 0.01$ at a hundred samples:

# %% label="coverage-near-zero" paper=["appendix-b.1"] evidence=["simulated"]
{
    name: float(coverage_probability([0.01], 100, method=name)[0])
    for name in ("wald", "jeffreys")
}

# %% [markdown]
# [How often intervals cover μ](21_interval_coverage.ipynb) computes it for all $\mu$.
#
# ## The mean of many questions
#
# The mean of $\hat\mu$ over $N$ questions has the standard error $\sqrt{\overline{\mu(1-\mu)}/(kN)}$ by sampling alone. The
# paper shows it for gpt-oss-20b on AIME25, which has 30 questions. Its printed baseline is $1/3$ less the mean of
# $\hat\mu(1-\hat\mu)$, and so gives it for all three models.

# %%
printed = load_reported("main").query(
    "method == 'Uniform random' and dataset == 'aime25'"
)
spread = (1 / 3 - printed.set_index("model")["value"]) * 100 / 99
ks = (10, 25, 50, 100, 200)
errors = pd.DataFrame({k: np.sqrt(spread / (k * 30)) for k in ks}).T

# %% mystnb={"figure": {"caption": "Standard error, by sampling alone, of the mean expected accuracy on the 30 questions of AIME25, from the printed baselines.", "name": "fig-standard-error"}, "image": {"alt": "Three falling curves of the standard error against k_eval. At 100 samples all three lie below 0.006, and further samples lower them little."}} paper=["figure-6", "appendix-b.1", "equation-16"] evidence=["reported"] reads=["main"]
named = errors.rename(columns=lambda name: load_model(name).title)
axes = sns.lineplot(named, markers=True, dashes=False)
axes.set(ylim=(0, None), xlabel="samples a question", ylabel="standard error")
_ = axes.legend(title="")

# %% tags=["hide-input"]
notebook.glue(oss=float(errors.loc[100, "gpt-oss-20b"]))

# %%
notebook.say("""
At 100 samples it is {oss:.4f} for gpt-oss-20b; the paper says about 0.0056. Further samples lower it little, and 30
questions leave a far larger uncertainty about other questions like these.
""")

# %%
# needs samples
notebook.say(r"""
## The bias of the plug-in score

The plug-in score compares a confidence with $\hat\mu$ in place of $\mu$. That adds $\mathbb{E}[\mu(1-\mu)]/k$ to every
method alike, so that more samples seem to make every method better. The corrected score subtracts an unbiased estimate of
it, and is right on average for every $k$. What is left is noise. Even a perfect confidence, $s = \mu$, does not score
exactly zero:
""")

# %%
# needs samples
v = correctness_variance(correct, total, corrected=True)
pairs = score_components(correct / total, correct, total).pairs
ks = np.array([2, 5, 10, 20, 50, 100])
noise = np.sqrt(pairs / (ks * (ks - 1)) / len(correct))
perfect = {"plug-in score": v / ks, "standard deviation, corrected": noise}
bias = pd.DataFrame(perfect, pd.Index(ks, name="k"))

# %% label="k-eval-table" paper=["appendix-b.1"] evidence=["measured"] reads=["verdicts"]
# needs samples
tables.show(
    bias,
    f"Expected plug-in score of a perfect confidence, and the standard deviation of "
    f"its corrected score, on {data['title'].iloc[0]}.",
    digits=4,
    evidence=data["evidence"].iloc[0],
)

# %% tags=["hide-input"]
# needs samples
notebook.glue(bias=float(bias["plug-in score"][2]))

# %%
# needs samples
notebook.say("""
At two samples a question the bias is {bias:.3f}, on a scale on which methods differ by hundredths. A corrected score
within two of these standard deviations of 0 cannot be told from a perfect one.
""")

# %% [markdown]
# ## Summary
#
# - The number of questions sets the precision of most scores; about ten samples of each do. A good probe's score
#   is the exception: it needs more samples.
# - $k_\text{eval}$ sets the precision of one question's $\hat\mu$, and the bias of the plug-in score. Correct it, rather
#   than sampling more.
#
# ## Exercises
#
# **1 (easy).** A model answers 0 of 20 samples correctly. What is the upper end of the Jeffreys interval? *Hint:* set $c$
# and $k$ in the cell that computes a Jeffreys interval.

# %% tags=["hide-cell", "solution"]
float(beta.ppf(0.975, 0.5, 20.5))

# %% [markdown]
# **2 (medium).** At which $k$ does the plug-in bias fall below 0.001 where the mean of $\mu(1-\mu)$ is 0.06? *Hint:* the bias
# is that mean over $k$.

# %% tags=["hide-cell", "solution"]
round(0.06 / 0.001)

# %% [markdown]
# **3 (hard).** Scores of $N$ questions with $k$ samples each cost $Nk$ samples. With 1,000 samples in all, is it better to
# ask 100 questions ten times or 10 questions a hundred times? Simulate it with $\mu$ uniform and $s = 0.5$. *Hint:* compare
# the standard deviation of corrected scores over repeated studies.


# %% tags=["hide-cell", "solution"]
rng = np.random.default_rng(seed)


def study(questions, k):
    """Return the corrected score of one simulated study."""
    correct = rng.binomial(k, rng.random(questions))
    half, total = np.full(questions, 0.5), np.full(questions, k)
    return capability_brier(half, correct, total, corrected=True)


many = np.std([study(100, 10) for _ in range(300)])
few = np.std([study(10, 100) for _ in range(300)])
assert many < few
float(many), float(few)
