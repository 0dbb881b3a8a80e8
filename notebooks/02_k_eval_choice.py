# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How many samples?

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has most data sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with the probes of its recipe
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of the simulated studies

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import manifests, plots
from capcal_lib.applications import deep_samples, score_components
from capcal_lib.book import notebook, tables
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import (
    binomial_interval,
    capability_brier_terms,
    correctness_variance,
    coverage_probability,
    mean_interval,
)
from capcal_lib.probes import probe_of
from capcal_lib.reported import load_reported
from capcal_lib.results import (
    confidence_columns,
    describe_runs,
    judged_by,
    load_results,
    subjects,
)
from scipy.stats import binom, norm, t

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
rng = np.random.default_rng(seed)
notebook.about(data)


# %%
recipe = "paper" if protocol == "paper" else "tuned"
rows = []
for name in model_names():
    mark = notebook.evidence_of(describe_runs(runs, name, k_eval=k_eval))
    if mark != notebook.evidence_of(data):  # the kinds never share a figure
        continue
    by = verdicts if name == model else "rules"
    options = {"k_eval": k_eval, "recipe": recipe, "verdicts": by}
    results = load_results(runs, name, **options).query("total > 10")
    for dataset, subset in results.groupby("dataset", sort=False):
        most = deep_samples(subset["total"])
        subset = subset[subset["total"] >= most]
        varied = subset["correct"].nunique() > 1
        for method in confidence_columns(subset) if varied else []:
            scored = judged_by(subset, method)
            if len(scored) > 1 and method != "Response consistency":
                rows.append((name, dataset, method, most, scored))
columns = ["model", "dataset", "method", "most", "scored"]
scores = pd.DataFrame(rows, columns=columns)

# %% [markdown]
# How wide would the interval of a score be with only $k$ samples of each question? Draw $k$ of those that are there, at random
# and without replacement, and take the interval of this score, that of every score in this book. Do it several times, and compare
# the mean width with that by all samples. Where questions have unlike numbers of samples, those with the most are taken.

# %%
DRAWS = 10
chance = np.random.default_rng(seed)


def interval_width(scored, k):
    """Return how wide a score's interval is with k samples a question."""
    confidence, correct, total = scored.to_numpy().T
    groups = subjects(scored).to_numpy()
    widths = []
    for _ in range(DRAWS):
        right = chance.hypergeometric(
            correct.astype(int), (total - correct).astype(int), k
        )
        terms = capability_brier_terms(confidence, right, k, corrected=True)
        _, low, high = mean_interval(terms, clusters=groups, bounds=(0, 1))
        widths.append(high - low)
    return np.mean(widths)


# %%
rows = []
for name, dataset, method, most, scored in scores.to_numpy():
    by_all = interval_width(scored, most)
    for k in (5, 10, 20, 50):
        if k < most:
            wider = 100 * (interval_width(scored, k) / by_all - 1)
            rows.append((k, name, dataset, probe_of(method), wider))
names = ["k", "model", "dataset", "method", "percent"]
growth = pd.DataFrame(rows, columns=names)
# By protocol=paper a probe is five, each with a score of its own.
growth = growth.groupby(names[:-1], sort=False)["percent"].mean().reset_index()

# %% tags=["hide-input"]
missing = "No model has recorded runs of more than ten samples a question."
notebook.lack(growth.empty, runs=missing, probes="")

# %% tags=["hide-input"]
# needs runs
home = growth["dataset"].map(lambda name: load_dataset(name).probe)
kinds = {True: "probe on its own data set", False: "any other"}
growth["confidence"] = (home == growth["method"]).map(kinds)
ten = growth[growth["k"] == 10]
probes = ten.loc[ten["confidence"] != "any other", "percent"]
notebook.glue(
    scores=len(ten),
    usual=int(scores["most"].median()),
    ten=ten["percent"].median(),
    narrow=(ten["percent"] <= 10).mean(),
    most=ten["percent"].max(),
    probe=probes.median(),
)
notebook.lack(probes.empty, probes="No probe is trained for these data sets.")

# %% tags=["finding"]
# needs runs
notebook.finding("""
Ten samples of each question in place of {usual} widen the interval of a score by {ten:.0f} % in the median: add questions instead.
""")

# %% tags=["finding"]
# needs probes
notebook.finding("""
That of a probe on its own data set widens by {probe:.0f} % in the median.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "How much wider the 95 % interval of a corrected score is when only k samples of each question are drawn, over all confidences on all data sets of the recorded models. A box holds the middle half of them, and the line in it is the median; single marks are outliers.", "name": "fig-k-eval"}, "image": {"alt": "Box plots of the growth of the interval in per cent against k, in two groups: probes on their own data set, and any other confidence."}} paper=["appendix-b.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs runs
axes = sns.boxplot(
    growth,
    x="k",
    y="percent",
    hue="confidence",
    hue_order=["any other", "probe on its own data set"],
    palette=["#bdbdbd", plots.SHIFT_COLORS[manifests.IN_DISTRIBUTION]],
    gap=0.15,
    fliersize=3,
)
axes.axhline(0, color=plots.MUTED, lw=0.8)
axes.legend(title="")
_ = axes.set(xlabel="samples a question, k", ylabel="wider by, %")

# %%
# needs runs
notebook.say(r"""
Of the {scores} scores, {narrow:.0%} have an interval that ten samples widen by at most a tenth; one widens by {most:.0f} %.
Response consistency is left out: its votes are samples too. All of it holds for questions *like these*.
""")

# %% [markdown]
# ## Where samples matter
#
# The corrected score of a confidence $s$ is the mean over $N$ questions of a term with two kinds of noise: questions
# differ, and a question's samples differ. With $v = \mu(1-\mu)$ the variance of the score is
# $\frac1N\bigl(\text{between} + \overline{4(s-\mu)^2 v}/k + \overline{2v^2}/(k(k-1))\bigr)$.
# `score_components` estimates the three parts without bias. Where a confidence is right everywhere, or equally wrong
# everywhere, there is little between questions, and samples matter. These are the parts of the model and data set on which an
# interval widens most; the interval itself widens by less than the root of this variance, since half a question more at either
# bound is part of it, however many samples there are:

# %%
# needs runs
widest = growth.loc[growth["percent"].idxmax(), ["model", "dataset"]]
shown = scores.set_index(["model", "dataset"]).loc[[tuple(widest)]]
parts = {
    method: score_components(*scored.to_numpy().T, clusters=subjects(scored))
    for method, scored in shown[["method", "scored"]].to_numpy()
}

# %% tags=["hide-input"] label="score-parts" evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs runs
tables.show(
    pd.DataFrame.from_dict(
        parts, orient="index", columns=["score", "between", "within", "pairs"]
    ).rename_axis("method"),
    f"Parts of the variance of a question's term: {load_model(widest['model']).title} on "
    f"{load_dataset(widest['dataset']).title}.",
    digits=4,
    evidence=notebook.evidence_of(data),
)

# %% [markdown]
# ## One question: four intervals
#
# With $k$ samples there are only $k + 1$ possible counts, so the probability that an interval covers $\mu$ is a finite sum,
# $\sum_c \binom kc \mu^c (1-\mu)^{k-c}\,[\text{low}_c \le \mu \le \text{high}_c]$, with no draws and no error.

# %%
mus = np.linspace(0.002, 0.998, 499)
exact = pd.DataFrame(index=pd.Index(mus, name="mu"))
for name in ("jeffreys", "wilson", "clopper-pearson", "wald"):
    exact[name.title()] = coverage_probability(mus, k_eval, method=name)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Probability that a 95 % interval covers the expected accuracy, summed exactly. The Wald interval, by which the paper plans, falls out of its panel at both ends, where language models often are; the others stay close to what they promise. The teeth come from counts being whole numbers.", "name": "fig-exact-coverage"}, "image": {"alt": "Four panels, one for each interval, with a toothed curve of coverage against expected accuracy and a line at the level that is promised."}} paper=["appendix-b.1", "equation-16"] evidence=["simulated"]
axes = exact.plot(subplots=True, layout=(2, 2), sharey=True, legend=False)
for panel, name in zip(axes.flat, exact, strict=True):
    panel.lines[0].set(color=plots.INK, linewidth=0.8)
    panel.axhline(0.95, color=plots.MUTED, linestyle="--")
    panel.set(title=name, ylim=(0.58, 1.005), ylabel="coverage")
    panel.set_xlabel("expected accuracy, μ")

# %%
notebook.say(
    r"""
At $\mu = 0.01$ the Wald interval covers with a probability of {wald:.2f}. Jeffreys' interval, the middle 95 % of
$\text{Beta}(c + \tfrac12,\; k - c + \tfrac12)$, is that of this book: it covers with {jeffreys:.3f} on average over $\mu$.
Where $\hat\mu$ is 0 or 1 the Wald interval has no width at all. So it is for many questions:
""",
    wald=exact["Wald"].loc[0.01:].iloc[0],
    jeffreys=exact["Jeffreys"].mean(),
)

# %%
# needs samples
counted = {"k_eval": k_eval, "recipe": None, "verdicts": verdicts}
results = load_results(runs, model, **counted).query("total > 0")
at_the_end = (results["correct"] / results["total"]).isin([0, 1])
where = at_the_end.groupby(level="dataset", sort=False).mean()

# %% tags=["hide-input"] label="wald-points" paper=["appendix-b.1"] evidence=["measured"] reads=["verdicts"]
# needs samples
tables.show(
    where.rename(index=data["title"])
    .to_frame("no width")
    .rename_axis("data set"),
    "Share of questions whose Wald interval has no width.",
    evidence=notebook.evidence_of(data),
)

# %% [markdown]
# The paper takes 100 samples, by the half-width of the Wald interval at $\mu = 1/2$, and mentions that Wilson's could be
# searched instead. Either asks for fewer, for a half-width of 0.1:

# %% label="wald-sizes" paper=["equation-17", "equation-18"] evidence=["simulated"]
ks = np.arange(10, 200)
width = np.diff(binomial_interval(ks // 2, ks, method="wilson"))[:, 0]
int(np.ceil(norm.ppf(0.975) ** 2 / 4 / 0.1**2)), int(ks[width <= 0.2][0])

# %% [markdown]
# ## The mean of many questions
#
# The mean of $\hat\mu$ over $N$ questions has the standard error $\sqrt{\overline{\mu(1-\mu)}/(kN)}$ by sampling alone. The
# paper shows it on the 30 questions of AIME25. Where a model has no samples of them, or solves none, the printed baselines of the
# paper's models give it, which are $1/3$ less the mean of $\hat\mu(1-\hat\mu)$:

# %%
subset = pd.DataFrame()
if "aime25" in data.index:
    options = {"datasets": ["aime25"], **counted}
    subset = load_results(runs, model, **options).query("total > 1")
if subset.empty or subset["correct"].nunique() == 1:
    on_aime = "method == 'Uniform random' and dataset == 'aime25'"
    printed = load_reported("main").query(on_aime).set_index("model")
    questions, variance = 30, (1 / 3 - printed["value"]) * 100 / 99
    mark = "reported"
else:
    counts = subset["correct"], subset["total"]
    mean = correctness_variance(*counts, corrected=True)
    questions, variance = len(subset), pd.Series({model: mean})
    mark = notebook.evidence_of(data.loc[["aime25"]])
ks = np.array([10, 25, 50, 100, 200])
errors = {name: np.sqrt(v / (ks * questions)) for name, v in variance.items()}
errors = pd.DataFrame(errors, pd.Index(ks, name="samples a question"))
errors = errors.rename(columns=lambda name: load_model(name).title)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Standard error, by sampling alone, of the mean expected accuracy on AIME25. It falls with the root of the number of samples; the error that comes from asking few questions is not part of it.", "name": "fig-standard-error"}, "image": {"alt": "Curves of the standard error against samples a question, one a model."}} paper=["appendix-b.1", "equation-16"] evidence=["reported"] reads=["main"]
axes = sns.lineplot(errors, markers=True, dashes=False)
axes.set(ylim=(0, None), ylabel="standard error")
_ = axes.legend(title="")

# %% tags=["hide-input"] label="standard-errors" paper=["figure-6"] evidence=["reported"] reads=["main"]
tables.show(
    errors,
    "The same in numbers. The paper says of gpt-oss-20b that it is about 0.0056 at 100 samples.",
    digits=4,
    evidence=mark,
)

# %% [markdown]
# ## Intervals for questions like these
#
# A score is a mean of one term a question, and its interval lets whole questions vary. Three ways: Student's $t$, the
# percentiles of a plain bootstrap, and `mean_interval`, that of every score in this book. It is $t$ on the terms and half a
# question more at either bound of the score: it assumes that questions are independent draws, and that errors too rare to show
# up add at most about two questions of the largest possible error. Rarer and heavier ones are covered less often, and so is a
# whole subject that is rare and missed throughout, where questions come in subjects. How much less, for terms that are 1 at a
# rate of 1 to 6 questions in a hundred and else 0, is a finite sum again:

# %%
n, rates = 100, np.arange(1, 61) / 1_000
ones = np.arange(n + 1)
limits = [
    mean_interval(np.repeat([1.0, 0.0], [c, n - c]), bounds=(0, 1))[1:]
    for c in ones
]
low, high = np.transpose(limits)
within = (low <= rates[:, None]) & (rates[:, None] <= high)
covered = (binom.pmf(ones, n, rates[:, None]) * within).sum(axis=1)
covered = pd.Series(covered, 100 * rates).loc[1:]

# %%
notebook.say(
    """
It covers with a probability of at least {least:.2f}, which it has at {at:.1f} in a hundred, and of {mean:.2f} on average over
these rates.
""",
    least=covered.min(),
    at=covered.idxmin(),
    mean=covered.mean(),
)

# %% [markdown]
# Do they cover the score of all questions? *Sparse*: most are never answered right, and all have one small confidence. *Rare
# misses*: the confidence is right, and for one question in a hundred grossly wrong.


# %%
def draw(case, n):
    """Draw n questions and their samples; return the terms of the score."""
    mu = rng.beta(0.05, 1, n) if case == "sparse" else rng.beta(0.5, 0.5, n)
    missed = np.where(rng.random(n) < 0.01, mu < 0.5, mu).clip(0.02, 0.98)
    confidence = np.full(n, 0.05) if case == "sparse" else missed
    counts = rng.binomial(k_eval, mu), np.full(n, k_eval)
    return capability_brier_terms(confidence, *counts, corrected=True)


# %%
STUDIES, rows = 200, {}
for case in ("sparse", "rare misses"):
    truth = draw(case, 300_000).mean()
    for n in (30, 100, 200):
        limits = []
        for _ in range(STUDIES):
            terms = draw(case, n)
            error = terms.std(ddof=1) / np.sqrt(n)
            drawn = rng.choice(terms, (1_000, n)).mean(axis=1)
            by_t = t.interval(0.95, n - 1, terms.mean(), error)
            plain = np.quantile(drawn, [0.025, 0.975])
            this = mean_interval(terms, bounds=(0, 1))[1:]
            limits.append((by_t, plain, this))
        low, high = np.moveaxis(limits, -1, 0)
        rows[case, n] = ((low <= truth) & (truth <= high)).mean(axis=0)
coverage = pd.DataFrame(rows, index=["t", "bootstrap", "this interval"]).T

# %% tags=["hide-input"] label="mean-coverage" evidence=["simulated"]
tables.show(
    coverage.rename_axis(["population", "questions"]),
    f"Share of {STUDIES} studies whose 95 % intervals hold the score of all questions.",
    digits=2,
    evidence="simulated",
)

# %%
notebook.say(
    """
$t$ holds the score in {t:.2f} of the studies at the least, this interval in {least:.2f}. With 30 questions three studies in
four see none of the rare misses, for which the interval must allow; it pays by its width where nothing is left to see.
""",
    t=coverage["t"].min(),
    least=coverage["this interval"].min(),
)

# %% [markdown]
# ## Summary
#
# - The number of questions sets the precision of most scores; about ten samples of each do. The score of a probe on its own data
#   set needs some more.
# - Near 0 and 1 the Wald interval covers too seldom; Jeffreys' and Wilson's are right on average.
# - The bias of a plug-in score falls with samples. [Correct it](04_main_table.ipynb), rather than sampling more.
# - An interval over few questions has to allow for what it has not seen.
#
# ## Exercise
#
# **1 (medium).** Scores of $N$ questions with $k$ samples each cost $Nk$ samples. With 1,000 samples in all, is it better to
# ask 100 questions ten times or 10 questions a hundred times? Simulate it with $\mu$ uniform and $s = 0.5$. *Hint:* compare
# the standard deviation of corrected scores over repeated studies.

# %% tags=["hide-cell", "solution"]
# The noise of a score, by questions and by samples
for n, k in ((100, 10), (10, 100)):
    mu = rng.binomial(k, rng.random((300, n))) / k
    terms = (0.5 - mu) ** 2 - mu * (1 - mu) / (k - 1)
    print(f"{n} questions: {terms.mean(axis=1).std():.3f}")
