# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How many samples? The choice of k_eval
#
# How many samples of each question, $k_\text{eval}$, does a score need? This page answers it for a single question,
# for a mean accuracy, and for a {term}`corrected score <capability Brier>`: appendix B.1 and figure 6 of the paper.

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has most data sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
precision: float = 0.05  # half-width at which a question has had enough
seed: int = 0  # of the samples that are drawn from those at hand

# %% tags=["hide-input"]
from itertools import combinations

import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.applications import difference_components, score_components
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import (
    binomial_interval,
    capability_brier,
    coverage_probability,
    noise_floor,
    uniform_baseline_brier,
)
from capcal_lib.reported import load_reported
from capcal_lib.results import describe_runs, load_results, methods
from capcal_lib.runs import Rule, stops

# %% tags=["hide-input"]
from scipy.stats import beta, binom, norm

notebook.check_parameters(globals())
style.set_style()
rng = np.random.default_rng(seed)
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval)
results = load_results(runs, model, k_eval=k_eval, recipe=None)


# %% tags=["hide-input"]
def growths(own, split, *names):
    """Return by how much fewer samples widen the standard error."""
    asked = own[own["total"] == own["total"].max()].dropna(subset=list(names))
    if len(asked) < 2 or asked["total"].max() < 10:
        return {}
    said = [asked[name] for name in names]
    _, between, within, pairs = split(*said, asked["correct"], asked["total"])
    most = int(asked["total"].max())
    ks = [k for k in (5, 10, 20, 50) if k < most]
    variance = {
        k: between + within / k + pairs / (k * (k - 1)) for k in [*ks, most]
    }
    if variance[most] == 0:
        return {}
    return {k: np.sqrt(variance[k] / variance[most]) - 1 for k in ks}


# %% tags=["hide-input"]
recorded = [
    name for name in model_names() if load_model(name).engine != "simulated"
]
if model == "simulated":  # never beside what is measured
    recorded = [model]
kinds = {
    "a score": (1, score_components),
    "a difference of two": (2, difference_components),
}

# %% tags=["hide-input"]
rows = [
    (name, dataset, kind, " and ".join(names), own["total"].max(), k, each)
    for name in recorded
    for dataset, own in load_results(
        runs, name, k_eval=k_eval, recipe=None
    ).groupby("dataset")
    for kind, (size, split) in kinds.items()
    for names in combinations(methods(own), size)
    for k, each in growths(own, split, *names).items()
]
columns = ["model", "dataset", "kind", "method", "most", "k", "growth"]
growths_of_all = pd.DataFrame(rows, columns=columns)
growth = growths_of_all[growths_of_all["kind"] == "a score"]
paired = growths_of_all[growths_of_all["kind"] != "a score"]

# %% tags=["hide-input"]
missing = "No model has recorded runs here."
lacking = {} if 10 in set(growth["k"]) else {"runs": missing}
notebook.about(model, data, lacking=lacking)

# %% tags=["remove-cell"]
# needs runs
median = growth.groupby("k")["growth"].median()
worst = growth.query("k == 10").nlargest(1, "growth").iloc[0]
notebook.glue(
    scores=len(growth.query("k == 10")),
    usual=int(growth.query("k == 10")["most"].median()),
    ten=100 * median[10],
    five=100 * median[5],
)
share = (growth.query("k == 10")["growth"] <= 0.1).mean()
paired = paired.query("k == 10")["growth"]
notebook.glue(pairs=len(paired), paired=100 * paired.median())
notebook.glue(
    most=100 * worst["growth"],
    worst_method=worst["method"],
    worst_set=load_dataset(worst["dataset"]).title,
    worst_model=load_model(worst["model"]).title,
    narrow=100 * share,
)

# %% tags=["remove-cell"]
# needs runs
said = "By how much fewer samples widen an interval: median and middle half."
parts = growth.groupby("k")["growth"].quantile([0.5, 0.25, 0.75]).unstack()
parts = parts.set_axis(["estimate", "low", "high"], axis=1)
parts.index = [
    f"{k} samples: +{100 * parts.loc[k, 'estimate']:.0f} %" for k in parts.index
]
notebook.glue(widened=tables.strip(parts, said))

# %% [markdown] needs="runs"
# With ten samples of each question in place of all that were recorded ({glue:text}`usual` at the median), the
# standard error of a corrected score grows by {glue:text}`ten:.1f` % at the median of {glue:text}`scores` recorded
# scores, and by at most a tenth for {glue:text}`narrow:.0f` % of them; that of a difference of two methods grows by
# {glue:text}`paired:.1f` % at the median of {glue:text}`pairs`. The number of questions, much more than that of
# samples, makes most scores precise.

# %% tags=["remove-cell"]
# needs runs
percent = growths_of_all.assign(
    percent=100 * growths_of_all["growth"], k=growths_of_all["k"].astype(str)
)

# %% mystnb={"figure": {"caption": "Growth of the standard error over questions when only k samples of each are drawn, for corrected capability Brier scores and for differences of two of them. A point is a confidence, or a pair, on a data set of a recorded model; bars are medians.", "name": "fig-k-eval"}, "image": {"alt": "Strip plot of the growth in per cent against k, in two colours. At 5 samples most points lie between a few and some tens of per cent, at 10 most lie below ten, at 20 and 50 nearly all are close to zero."}} paper=["appendix-b.1"] evidence=["measured"] reads=["verdicts", "confidences"] tags=["hide-input"]
# needs runs
look = {"x": "k", "y": "percent", "hue": "kind"}
axes = sns.stripplot(percent, alpha=0.4, jitter=False, dodge=True, **look)
sns.pointplot(
    percent,
    estimator="median",
    errorbar=None,
    dodge=0.4,
    linestyle="none",
    marker="_",
    markersize=24,
    palette=[style.INK, style.INK],
    legend=False,
    ax=axes,
    **look,
)
axes.legend(title="")
_ = axes.set(
    xlabel="samples a question, k", ylabel="growth of the standard error, %"
)

# %% [markdown] needs="runs"
# It does not hold everywhere. The corrected score of a confidence $s$ has a question's own sampling variance,
# about $4(s-\mu)^2\mu(1-\mu)/k$ and a term in $1/k^2$, beside the variance of $(s-\mu)^2$ between questions. Where the
# confidences are good, or equally wrong everywhere, there is little between questions, and samples matter: the most, of
# {glue:text}`most:.0f` %, is for {glue:text}`worst_method` of {glue:text}`worst_model` on {glue:text}`worst_set`. Nor
# does it hold for the interval *for these questions* alone, whose width falls as $1/\sqrt k$, for the plug-in score,
# whose bias falls as $1/k$, or for what is asked about a single question. `capcal plan` weighs questions, samples and
# tokens for a score of your own, with stopping early and with groups of questions taken into account.

# %% [markdown]
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
# paper shows it for gpt-oss-20b on AIME25; the printed baseline, $1/3$ less the mean of $\hat\mu(1-\hat\mu)$, gives it for
# all three models.

# %%
printed = load_reported("main").query(
    "method == 'Uniform random' and dataset == 'aime25'"
)
spread = (1 / 3 - printed.set_index("model")["value"]) * 100 / 99
errors = {k: np.sqrt(spread / (k * 30)) for k in (10, 25, 50, 100, 200)}

# %% mystnb={"figure": {"caption": "Standard error, by sampling alone, of the mean expected accuracy on the 30 questions of AIME25, from the printed baselines.", "name": "fig-standard-error"}, "image": {"alt": "Three falling curves of the standard error against k_eval. At 100 samples all three lie below 0.006, and further samples lower them little."}} paper=["figure-6", "appendix-b.1", "equation-16"] evidence=["reported"] reads=["main"] tags=["hide-input"]
tidy = pd.DataFrame(errors).melt(
    ignore_index=False, var_name="k_eval", value_name="standard error"
)
tidy["model_title"] = [load_model(name).title for name in tidy.index]
axes = sns.lineplot(
    tidy, x="k_eval", y="standard error", hue="model_title", marker="o"
)
axes.set(ylim=(0, None), xlabel="samples a question, k_eval")
_ = axes.legend(title="")

# %% tags=["remove-cell"]
notebook.glue(oss=float(errors[100]["gpt-oss-20b"]))

# %% [markdown]
# At 100 samples it is {glue:text}`oss:.4f` for gpt-oss-20b; the paper says about 0.0056. Further samples lower it little,
# and 30 questions leave a far larger uncertainty about other questions like these.

# %% [markdown] needs="samples"
# ## The bias of the plug-in score
#
# More samples also seem to make every method better, because the plug-in score compares with $\hat\mu$ instead of
# $\mu$ and so adds $\mathbb{E}[\mu(1-\mu)]/k$ to every method alike. The corrected score subtracts an unbiased estimate of
# it, $\hat\mu(1-\hat\mu)/(k-1)$, and is flat in $k$. On the largest data set, with fewer samples drawn from those at hand:

# %%
# needs samples
largest = results.loc[data.index[0]]
whole = largest[largest["total"] == largest["total"].max()]
correct, total = whole["correct"].to_numpy(), whole["total"].to_numpy()
ks = [k for k in (2, 5, 10, 20, 50, 100) if k <= total.max()]


# %% tags=["hide-input"]
def null_std(c, n, k):
    """Return the standard deviation of the corrected score of the true mu."""
    # A term is the mean of (mu - z)(mu - z') over pairs of samples z and z';
    # its variance is 2 (mu(1 - mu))^2 / (k (k - 1)).
    square = (c / n * (1 - c / n)) ** 2
    if n.min() >= 4:  # (mu(1 - mu))^2 without bias, from all samples
        ordered = n * (n - 1) * (n - 2) * (n - 3)
        square = c * (c - 1) * (n - c) * (n - c - 1) / ordered
    return np.sqrt(2 * square.sum() / (k * (k - 1))) / len(c)


# %%
# needs samples
rows = {}
for k in ks:
    c = rng.hypergeometric(
        correct, total - correct, k, (200, len(total))
    ).ravel()
    n = np.full_like(c, k)
    plain, fair = (
        uniform_baseline_brier(c, n, corrected=how) for how in (False, True)
    )
    rows[k] = plain, fair, noise_floor(c, n), null_std(correct, total, k)

# %% label="k-eval-table" paper=["appendix-b.1"] evidence=["measured"] reads=["verdicts"] tags=["hide-input"]
# needs samples
heads = [
    "Uniform random, plug-in",
    "Uniform random, corrected",
    "perfect confidence, plug-in",
    "perfect confidence, corrected: standard deviation",
]
bias = pd.DataFrame(rows, index=heads).T.rename_axis("k")
tables.show(
    bias,
    f"Scores on {data['title'].iloc[0]} from k samples of each question: Uniform random, "
    "and a perfect confidence.",
    digits=4,
    evidence=data["evidence"].iloc[0],
)

# %% tags=["remove-cell"]
# needs samples
notebook.glue(
    smallest=ks[0], bias=float(bias[heads[0]].iloc[0] - bias[heads[1]].iloc[0])
)

# %% [markdown] needs="samples"
# At {glue:text}`smallest` samples a question the bias is {glue:text}`bias:.3f`, on a scale on which methods differ by
# hundredths. A corrected score has no bias but a spread: one within two of the last column's standard deviations of 0 is
# indistinguishable from perfect.

# %% [markdown]
# ## Stopping early
#
# Questions near 0 or 1 need fewer samples. `capcal sample --precision 0.05 --k 100` looks at a question after every ten
# samples and stops once half the width of its Jeffreys interval is at most 0.05. But a rule that looks at the outcomes
# chooses among them. What it does to a known $\mu$ is computed by counting the orders of outcomes that lead to each end.

# %%
rule, mu = Rule(precision=precision, k=k_eval), np.linspace(0, 1, 101)
correct, total = rule.ends  # all counts at which it may stop
chance = rule.probabilities(mu)  # of each of them: a row a mu
known = pd.DataFrame({"mu": mu, "samples": chance @ total})
known["bias"] = chance @ (correct / total) - mu


# %%
def covers(c, n):
    low, high = binomial_interval(c, n).T
    return (low <= mu[:, None]) & (mu[:, None] <= high)


known["coverage"] = (chance * covers(correct, total)).sum(axis=1)
digits = {"samples": 1, "bias": 4, "coverage": 3}
known.set_index("mu").iloc[::10].round(digits) + 0.0

# %% tags=["remove-cell"]
counts = np.arange(k_eval + 1)
fixed = binom.pmf(counts, k_eval, mu[:, None]) * covers(counts, k_eval)
far = known.loc[known["bias"].abs().idxmax()]
notebook.glue(stop_mu=min(far["mu"], 1 - far["mu"]), stop_bias=abs(far["bias"]))
notebook.glue(
    stop_covers=known["coverage"].mean(), fixed_covers=fixed.sum(axis=1).mean()
)

# %% [markdown]
# $c/n$ is pulled to the side where questions stop, by up to {glue:text}`stop_bias:.4f` near
# $\mu$ = {glue:text}`stop_mu:.2f` and its mirror image. The interval covers $\mu$ in {glue:text}`stop_covers:.3f` of cases on
# average over $\mu$, against {glue:text}`fixed_covers:.3f` with a fixed number of samples. There is an estimate without
# bias {cite:p}`girshick1946unbiased`: of all orders of outcomes that lead to the same end, the share that begins with a
# correct sample. The share that begins with two estimates $\mu^2$ (`Rule.unbiased`).


# %% tags=["hide-input"]
# needs samples
def replay(own):
    """Apply the rule to samples in random order: counts at its stop."""
    correct = rng.hypergeometric(
        own["correct"], own["total"] - own["correct"], rule.k
    )
    order = np.arange(rule.k) < correct[:, None]
    order = rng.permuted(order, axis=1).astype(np.int8)
    at, _ = stops(rule, order)
    drawn = np.where(np.arange(rule.k) < at[:, None], order, 0)
    c = drawn.sum(axis=1)
    return {
        "questions": len(own),
        "samples saved": 1 - at.mean() / rule.k,
        "mean μ, all samples": correct.mean() / rule.k,
        "mean c/n at the stop": (c / at).mean(),
        "unbiased": rule.unbiased(c, at)[0].mean(),
    }


# %% tags=["hide-input"]
# needs samples
enough = results[results["total"] >= min(rule.k, results["total"].max())]
if enough["total"].min() >= rule.k:
    stopped = pd.DataFrame(
        {
            load_dataset(name).title: replay(own)
            for name, own in enough.groupby(level="dataset", sort=False)
        }
    ).T.rename_axis("data set")
    shown = tables.show(
        stopped.astype({"questions": int}),
        "The rule applied to the samples behind this page.",
        evidence=data["evidence"].iloc[0],
        **{"samples saved": "{:.0%}"},
    )
else:
    shown = "No question has as many samples as the rule may take."
shown

# %% [markdown]
# ## Summary
#
# - The number of questions sets the precision of a score; for most confidences about ten samples of each are enough for a
#   corrected one, and the exceptions can be computed.
# - $k_\text{eval}$ sets the precision of one question's $\hat\mu$, and the bias of the plug-in score. Correct it, rather
#   than sampling more.
# - Stopping early saves samples where $\mu$ is near 0 or 1; its bias is small, known, and can be subtracted.
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
def study(questions, k):
    """Return the corrected score of one simulated study."""
    correct = rng.binomial(k, rng.random(questions))
    half, total = np.full(questions, 0.5), np.full(questions, k)
    return capability_brier(half, correct, total, corrected=True)


many = np.std([study(100, 10) for _ in range(300)])
few = np.std([study(10, 100) for _ in range(300)])
assert many < few
float(many), float(few)
