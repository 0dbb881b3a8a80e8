# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Interval coverage: how often an interval covers the truth
#
# This page shows how often intervals cover the truth: for one question's $\mu$, exactly (appendix B.1 of the paper), and
# for a mean over few questions, by simulation. It goes with the page on estimating μ.

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has most data sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of the simulated questions and samples

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.book import notebook, style, tables
from capcal_lib.metrics import (
    binomial_interval,
    capability_brier_terms,
    coverage_probability,
    mean_interval,
)
from capcal_lib.results import describe_runs, load_results, methods, subjects
from scipy.stats import binom, norm

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
rng = np.random.default_rng(seed)
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval)
results = load_results(runs, model, k_eval=k_eval, recipe=None).query(
    "total > 0"
)
intervals = ["jeffreys", "wilson", "clopper-pearson", "wald"]
said = [name for name in methods(results) if results[name].notna().any()]
none = {"said": "No confidence of this model is recorded."}
notebook.about(model, data, lacking={} if said else none)

# %% [markdown]
# With $k$ samples there are only $k + 1$ possible counts, so the probability that an interval covers $\mu$ is a finite sum,
# $\sum_c \binom kc \mu^c (1-\mu)^{k-c}\,[\text{low}_c \le \mu \le \text{high}_c]$, with no draws and no error.

# %%
mus = np.linspace(0.002, 0.998, 499)
exact = pd.DataFrame(index=pd.Index(mus, name="mu"))
for name in intervals:
    exact[name.title()] = coverage_probability(mus, k_eval, method=name)
exact.agg(["mean", "min"]).round(3)

# %% tags=["hide-input"]
notebook.glue(
    wald=exact["Wald"].min(),
    exact_least=exact["Clopper-Pearson"].min(),
    jeffreys=exact["Jeffreys"].mean(),
)

# %% tags=["finding"]
notebook.finding(r"""
A 95 % Wald interval, which the paper plans with, covers $\mu$ with a probability of {wald:.2f} at its worst $\mu$, and
Clopper–Pearson with {exact_least:.3f}; Jeffreys' interval covers with {jeffreys:.3f} on average over $\mu$.
""")

# %% mystnb={"figure": {"caption": "Probability that a 95 % interval covers the expected accuracy, for four intervals, summed exactly; Wald's falls out of the panel at both ends. The teeth come from the counts being whole numbers.", "name": "fig-exact-coverage"}, "image": {"alt": "Four panels, one for each interval, with a toothed curve of coverage against expected accuracy. Clopper-Pearson stays above 0.95, Wilson and Jeffreys swing around it, and Wald falls steeply towards both ends."}} paper=["appendix-b.1", "equation-16"] evidence=["simulated"]
drawn = exact.melt(ignore_index=False, var_name="interval").reset_index()
grid = sns.relplot(
    drawn,
    x="mu",
    y="value",
    kind="line",
    col="interval",
    col_wrap=2,
    color=style.INK,
    linewidth=0.8,
    errorbar=None,
)
grid.refline(y=0.95, color=style.MUTED)
grid.set(xlabel="expected accuracy, μ", ylabel="coverage")
grid.set(ylim=(0.58, 1.005)).set_titles("{col_name}")
look = {"layout_engine": "constrained", "size_inches": (style.WIDTH, 4.6)}
_ = grid.figure.set(**look)

# %% [markdown]
# ## Coverage is a sum
#
# The sum for one $\mu$, with the Wald interval:

# %%
counts = np.arange(k_eval + 1)
low, high = binomial_interval(counts, k_eval, method="wald").T
covers = (low <= 0.01) & (high >= 0.01)
float(binom.pmf(counts, k_eval, 0.01) @ covers)

# %% [markdown]
# `coverage_probability` does so for many $\mu$. Does simulation agree?

# %%
c = rng.binomial(k_eval, 0.01, 20_000)
low, high = binomial_interval(c, k_eval, method="wald").T
float(np.mean((low <= 0.01) & (high >= 0.01)))


# %% label="coverage-summary" paper=["appendix-b.1"] evidence=["simulated"]
def summary(k):
    """Reduce coverage to its mean and least, beside the expected width."""
    counts, rows = np.arange(k + 1), {}
    chance = binom.pmf(counts, k, mus[:, None])
    for name in intervals:
        limits = binomial_interval(counts, k, method=name)
        covered = coverage_probability(mus, k, method=name)
        width = (chance @ np.ptp(limits, axis=1)).mean()
        rows[name.title()] = covered.mean(), covered.min(), width
    columns = ["mean coverage", "least coverage", "mean width"]
    return pd.DataFrame(rows, index=columns).T.rename_axis("interval")


both = pd.concat({k_eval: summary(k_eval), 10: summary(10)}, names=["samples"])
tables.show(both, "Coverage and width over all μ.", evidence="simulated")

# %% [markdown]
# Clopper–Pearson never falls below 0.95 and pays for it in width. Wilson and Jeffreys miss a little at some $\mu$ and are
# right on average.
#
# ## Where the questions are
#
# The Wald interval $\hat\mu \pm z\sqrt{\hat\mu(1-\hat\mu)/k}$ has no width where $\hat\mu$ is 0 or 1, as it often is for a
# language model. With the mean of a question's Jeffreys posterior in the place of its $\mu$, this is the mean coverage over
# the questions of each data set:

# %% label="wald-points" paper=["appendix-b.1"] evidence=["measured", "simulated"] reads=["verdicts"]
# needs samples
ends = pd.DataFrame(
    {
        "none correct": results["correct"] == 0,
        "all correct": results["correct"] == results["total"],
    }
)
posterior = (results["correct"] + 0.5) / (results["total"] + 1)
for name in intervals:
    ends[name.title()] = coverage_probability(posterior, k_eval, method=name)
where = ends.groupby(level="dataset", sort=False).mean()
tables.show(
    where.rename(index=data["title"]).rename_axis("data set"),
    "Share of questions whose Wald interval is a point, and mean coverage as "
    "if the posterior mean were μ.",
    evidence=[data["evidence"].iloc[0], "simulated"],
)

# %% [markdown]
# ## How many samples, by Wilson
#
# The paper plans $k_\text{eval}$ by the Wald half-width at $\mu = 1/2$, and mentions that Wilson's interval could be
# searched instead. Its widest interval is also in the middle, so the search is short.


# %% label="wilson-size" paper=["equation-17", "equation-18"] evidence=["simulated"]
def wilson_half_width(k):
    low, high = binomial_interval([k // 2], [k], method="wilson")[0]
    return (high - low) / 2


by_wilson = next(k for k in range(1, 1000) if wilson_half_width(k) <= 0.1)
by_wald = int(np.ceil((norm.ppf(0.975) / 0.1) ** 2 / 4))
by_wilson, by_wald

# %% tags=["hide-input"]
notebook.glue(by_wilson=by_wilson, by_wald=by_wald)

# %%
notebook.say("""
For a half-width of 0.1, Wilson asks for {by_wilson} samples and Wald for {by_wald}. In the middle the two hardly differ;
the paper's 100 is enough by either.
""")

# %% [markdown]
# ## A mean over few questions: two intervals
#
# A score is a mean of one term a question. Its interval *for these questions* covers the error of sampling alone: what
# would come out if the same questions were asked again. Its interval *for questions like these*
# lets whole questions vary, and is what two models or methods are to be compared by; `mean_interval` is a studentised
# bootstrap below 1,000 questions, and reaches as far as unseen questions may take it. Every score of this book has the second one. Both, for one confidence of this model:


# %%
def sampling_interval(s, c, n):
    """Return the corrected score with its interval for these questions."""
    score = capability_brier_terms(s, c, n, corrected=True).mean()
    mu = (c + 0.5) / (n + 1)  # samples that all agree leave a doubt
    v = mu * (1 - mu)
    # Of a corrected term, were the samples of its question drawn anew:
    variance = 4 * (s - mu) ** 2 * v / n + 2 * v**2 / (n * (n - 1))
    width = norm.ppf(0.975) * np.sqrt(variance.sum()) / len(s)
    return float(score), float(score - width), float(score + width)


# %% label="two-intervals" evidence=["measured"] reads=["verdicts", "confidences"]
# needs said
rows = {}
for name, own in results.query("total > 1").groupby(
    level="dataset", sort=False
):
    own = own.dropna(subset=said[:1])
    triple = own[said[0]], own["correct"], own["total"]
    if len(own) > 1:
        terms = capability_brier_terms(*triple, corrected=True)
        these, groups = sampling_interval(*triple), subjects(own).to_numpy()
        like = mean_interval(terms, clusters=groups, bounds=(0, 1))
        ends = [f"[{a:z.3f}, {b:z.3f}]" for a, b in (these[1:], like[1:3])]
        rows[data["title"][name]] = f"{these[0]:z.3f}", *ends
heads = ["score", "these questions", "questions like these"]
tables.show(
    pd.DataFrame(rows, index=heads).T.rename_axis("data set"),
    f"Corrected capability Brier score of {said[0]} with two 95 % intervals.",
    evidence=data["evidence"].iloc[0],
)

# %% [markdown]
# Do they cover the true score, of these questions and of all? Here are three populations of questions:

# %%
cases = {
    "U-shaped": lambda n: (mu := rng.beta(0.3, 0.3, n), (mu + 0.5) / 2),
    "sparse": lambda n: (rng.beta(0.05, 1.0, n), np.full(n, 0.05)),
    "gross misses": lambda n: (
        mu := rng.beta(0.3, 0.3, n),
        np.where(rng.random(n) < 0.05, 1 - mu, mu),
    ),
}

# %% [markdown]
# *U-shaped*: most questions are nearly always or nearly never answered right, and confidences go half the way. *Sparse*:
# most are never answered right, and one small confidence is given to all. *Gross misses*: the confidence is perfect, and
# for one question in twenty exactly reversed.


# %%
def draw(case, n):
    """Draw questions and samples: the true terms, and s, c, n."""
    mu, s = cases[case](n)
    return (s - mu) ** 2, (s, rng.binomial(k_eval, mu), np.full(n, k_eval))


# %%
STUDIES = 60


def study(case, n):
    """Count how often both intervals cover their true score, and warn."""
    truth, counts = draw(case, 100_000)[0].mean(), np.zeros(3)
    for _ in range(STUDIES):
        exact, triple = draw(case, n)
        terms = capability_brier_terms(*triple, corrected=True)
        these = sampling_interval(*triple)
        like = mean_interval(terms, bounds=(0, 1))
        covered = [
            low <= true <= high
            for true, (_, low, high) in zip(
                (truth, exact.mean()), (like[:3], these), strict=True
            )
        ]
        counts += [*covered, like.few]
    return counts / STUDIES


# %% label="mean-coverage" evidence=["simulated"]
rows = {(case, n): study(case, n) for case in cases for n in (30, 60, 200)}
heads = ["questions like these", "these questions", "few"]
means = pd.DataFrame(rows, index=heads).T
means = means.rename_axis(["population", "questions"])
tables.show(
    means,
    f"Share of {STUDIES} studies of each row whose 95 % intervals cover their "
    "true scores, and share in which few questions carry it.",
    digits=2,
    evidence="simulated",
)

# %% tags=["hide-input"]
like = means["questions like these"].groupby(level="population", sort=False)
notebook.glue(
    **like.min().set_axis(["shaped", "sparse", "gross"]),
    these=means["these questions"].min(),
    studies=STUDIES,
    known=1.96 * np.sqrt(0.95 * 0.05 / STUDIES),
    warned=means.loc[("gross misses", 30), "few"],
)

# %%
notebook.say("""
For questions like these, the least coverage is {shaped:.2f} over U-shaped and {sparse:.2f} over sparse questions, each known
from {studies} studies to about ±{known:.2f}. For these questions alone it is {these:.2f}. Rare gross misses are the hard case: with 30
questions one study in five sees none of them, and no interval knows what was not seen; so it reaches as far as unseen
questions may take the mean. The least coverage there is {gross:.2f}. With 30 questions `few` is set in a share of
{warned:.2f} of the studies: look at the few questions that carry the score.
""")

# %% [markdown]
# ## Summary
#
# - The Wald interval covers too seldom near 0 and 1, where language models often are. The paper says so too, and uses it as
#   a guideline only.
# - Coverage of an interval for $\mu$ needs no simulation: it is a sum of $k + 1$ terms. Jeffreys and Wilson are right on
#   average, Clopper–Pearson always and at a price.
# - An interval over few questions has to reach as far as what it has not seen; `few` says where that matters.
#
# ## Exercises
#
# **1 (easy).** At $\mu = 0.002$, what is the chance of no correct answer in `k_eval` samples? What does Wald say then?
# *Hint:* all samples fail independently.

# %% tags=["hide-cell", "solution"]
round((1 - 0.002) ** k_eval, 2), binomial_interval([0], k_eval, method="wald")

# %% [markdown]
# **2 (medium).** Find the $\mu$ at which Jeffreys covers least, below one half. Does it move when `k_eval` is doubled? *Hint:* `idxmin`.

# %% tags=["hide-cell", "solution"]
doubled = coverage_probability(mus, 2 * k_eval, method="jeffreys")
pd.DataFrame({k_eval: exact["Jeffreys"], 2 * k_eval: doubled}).loc[
    :0.5
].idxmin()

# %% [markdown]
# **3 (hard).** How often does a percentile bootstrap cover the true score of 30 questions with gross misses? *Hint:* draw the
# questions anew 1,000 times and take quantiles of the means.

# %% tags=["hide-cell", "solution"]
truth, held = draw("gross misses", 100_000)[0].mean(), 0
for _ in range(200):
    terms = capability_brier_terms(*draw("gross misses", 30)[1], corrected=True)
    means = rng.choice(terms, (1_000, 30)).mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    held += low <= truth <= high
held / 200
