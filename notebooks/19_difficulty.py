# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How difficult is a question?
#
# Expected accuracy is difficulty for one model; this page asks whether models agree on it, whether people do, whether a
# confidence orders questions by it without a sample, and what that is good for: a curriculum, or a cheaper evaluation. The
# paper names these in section 5.3 and does not try them.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %% tags=["hide-input"]
from itertools import combinations

import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.applications import level_slope
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import (
    capability_brier_terms,
    correctness_variance_terms,
    gains,
    mean_interval,
)
from capcal_lib.probes import nearest_probe, read_predictions
from capcal_lib.questions import human_levels
from capcal_lib.results import (
    best_constant,
    describe_runs,
    load_results,
    subjects,
)
from capcal_lib.runs import read_samples

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval)
results = load_results(runs, model, k_eval=k_eval).query("total > 1")
solved = results["correct"].groupby(level="dataset").transform("any")
results = results[solved.astype(bool)]
none = {"samples": "It solves no question of its data sets."}
evidence = data["evidence"].iloc[0] if len(data) else "simulated"
notebook.about(model, data, lacking={} if len(results) else none)

# %% [markdown] needs="samples"
# Before anything is sampled, the questions of each data set are dealt into four bins by a confidence, that of the probe
# trained on the nearest questions. Data sets without a solved question are left out.

# %%
# needs samples
METHODS = ["Verbalized confidence", "P(True)", "Probe"]
own = {}
for name, each in results.groupby(level="dataset", sort=False):
    each = each.dropna(axis="columns", how="all")
    probe = nearest_probe(each, name)
    each = each.assign(mu=each["correct"] / each["total"])
    own[name] = each.rename(columns={probe: "Probe"})
asked = "Probe" if any("Probe" in each for each in own.values()) else METHODS[0]
own = {name: each for name, each in own.items() if asked in each}


# %%
def deal(each):
    """Deal questions into bins 1 to 4 by the confidence; ties at random."""
    mixed = each.sample(frac=1, random_state=seed)
    rank = mixed[asked].fillna(0.5).rank(method="first") - 1
    return 1 + (4 * rank // len(each)).astype(int)


# %%
# needs samples
rows = {}
for name, each in own.items():
    own[name] = each = each.assign(bin=deal(each))
    counts = each[["bin", "correct", "total"]].to_numpy().T
    rows[name] = level_slope(*counts, clusters=subjects(each), seed=seed)
steps = pd.DataFrame(rows, index=["slope", "low", "high"]).T

# %% tags=["hide-input"]
# needs samples
notebook.glue(
    asked=asked,
    sets=len(steps),
    rising=int((steps["low"] > 0).sum()),
    falling=int((steps["high"] < 0).sum()),
    step=100 * steps["slope"].median(),
)

# %% tags=["finding"]
# needs samples
notebook.finding("""
Expected accuracy rises significantly from bin to bin of *{asked}* on {rising} of {sets} data sets, and falls on {falling};
in the median it rises by {step:.0f} points a bin.
""")

# %% mystnb={"figure": {"caption": "Expected accuracy of the questions of each bin, from those of the lowest confidence (bin 1) to those of the highest, with 95 % intervals over questions.", "name": "fig-difficulty-bins"}, "image": {"alt": "Panels, one for each data set, of mean expected accuracy in four bins by confidence. Where the confidence knows the difficulty the points rise from left to right; elsewhere they are flat."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
drawn = pd.concat(own.values()).rename(data["title"], level="dataset")
look = {"height": 2.2, "aspect": 1, "color": style.method_color(asked)}
grid = sns.catplot(
    drawn.reset_index(),
    x="bin",
    y="mu",
    col="dataset",
    col_wrap=3,
    kind="point",
    seed=seed,
    n_boot=500,
    **look,
)
grid.set_titles("{col_name}").set_axis_labels("bin", "mean accuracy")
_ = grid.set(ylim=(-0.05, 1))

# %% [markdown]
# ## Do models agree?
#
# Two models' $\hat\mu$ are correlated less than their $\mu$, as both carry sampling noise. The noise of $\hat\mu$ is known, so
# it can be subtracted from the variances, which gives the correlation of $\mu$ itself. Where little is left of a variance,
# the ratio may leave $[-1, 1]$, and is put back.


# %%
def agreement(c_a, n_a, c_b, n_b):
    """Correlate two models' mu over questions, without sampling noise."""
    a, b = c_a / n_a, c_b / n_b
    noise = [np.mean(m * (1 - m) / (n - 1)) for m, n in ((a, n_a), (b, n_b))]
    spread = np.maximum([a.var() - noise[0], b.var() - noise[1]], 1e-9)
    ratio = np.cov(a, b, ddof=0)[0, 1] / np.sqrt(np.prod(spread))
    return np.clip(ratio, -1, 1)


# %% label="difficulty-noise" paper=["section-5.3"] evidence=["simulated"]
rng, rows = np.random.default_rng(seed), {}
for k in (4, 10, 100):
    mu = rng.beta(1, 1, 20_000)
    other = np.where(rng.random(mu.size) < 0.6, mu, rng.permutation(mu))
    c, d = rng.binomial(k, mu), rng.binomial(k, other)
    rows[k] = {
        "correlation of μ̂": np.corrcoef(c, d)[0, 1],
        "without noise": agreement(c, k, d, k),
        "correlation of μ": np.corrcoef(mu, other)[0, 1],
    }
tables.show(
    pd.DataFrame(rows).T.rename_axis("samples a question"),
    "Two simulated models that agree on six of ten questions.",
    digits=2,
    evidence="simulated",
)

# %%
every = {}
for name in model_names():
    if "measured" in set(describe_runs(runs, name, k_eval=k_eval)["evidence"]):
        counts = load_results(runs, name, k_eval=k_eval, recipe=None)
        every[name] = counts.loc[counts["total"] > 1, ["correct", "total"]]


# %%
def resampled(pair, times=500):
    """Return the agreement of two models with a percentile interval."""
    columns = pair.to_numpy(float).T
    rng, n = np.random.default_rng(seed), len(pair)
    drawn = (columns[:, rng.integers(n, size=n)] for _ in range(times))
    found = [agreement(*each) for each in drawn]
    return [agreement(*columns), *np.quantile(found, [0.025, 0.975])]


# %%
rows = []
for a, b in combinations(every, 2):
    both = every[a].join(every[b].add_suffix(" other"), how="inner")
    for name, pair in both.groupby(level="dataset", sort=False):
        if (pair.filter(like="correct").nunique() > 1).all():
            rows.append((name, a, b, len(pair), *resampled(pair)))
columns = ["dataset", "model", "other", "questions", "agreement", "low", "high"]
agreed = pd.DataFrame(rows, columns=columns)

# %% tags=["hide-input"]
notebook.glue(
    pairs=len(agreed),
    agree=int((agreed["low"] > 0).sum()),
    disagree=int((agreed["high"] < 0).sum()),
)

# %%
notebook.say("""
Of {pairs} pairs of recorded models on common questions, {agree} agree significantly on which are difficult, and {disagree}
disagree. An interval is wide where hardly any question is ever solved; pairs of which one model solves none are left
out.
""")

# %% tags=["hide-input"]
TITLES = {name: load_model(name).short_title for name in model_names()}
SETS = {
    name: load_dataset(name).title
    for each in every.values()
    for name in each.index.unique("dataset")
}
none = "No two models here have common questions."
notebook.lack(agreed.empty, pairs=none)

# %% label="difficulty-agreement" paper=["section-5.3"] evidence=["measured"] reads=["verdicts"]
# needs pairs
titled = agreed.replace({"dataset": SETS, "model": TITLES, "other": TITLES})
tables.show(
    titled.rename(columns={"dataset": "data set", "other": "other model"}),
    "Correlation of expected accuracy between models, without sampling noise, "
    "with 95 % intervals over questions.",
    digits=2,
    evidence="measured",
)

# %% [markdown]
# ## Is it difficult for people, too?
#
# Two data sets say what people find difficult: a problem of MATH has a level from 1 to 5, and half of the subjects of MMLU
# have in their name for whom they are, from elementary school (1) to professionals (4). Lugoloobi et al.
# (Lugoloobi et al., 2026) find that models which reason encode another difficulty than people's. Here the slope of
# $\hat\mu$ on the level tells by how much expected accuracy changes from a level to the next; a subject of MMLU stays
# whole in its interval.

# %%
rows = []
for name, counts in every.items():
    for dataset, each in counts.groupby(level="dataset", sort=False):
        levels = human_levels(dataset, each.index.unique("question_id"))
        each = each.assign(level=levels).dropna()
        if each["level"].nunique() > 1:
            triple = each[["level", "correct", "total"]].to_numpy().T
            found = level_slope(*triple, clusters=subjects(each), seed=seed)
            rows.append((dataset, name, len(each), *found[:3]))
columns = ["data set", "model", "questions", "slope", "low", "high"]
people = pd.DataFrame(rows, columns=columns)

# %% tags=["hide-input"]
notebook.glue(
    asked_people=len(people),
    with_people=int((people["high"] < 0).sum()),
    against_people=int((people["low"] > 0).sum()),
    steepest=-100 * people["slope"].min() if len(people) else 0,
)
none = "No data set here says what people find difficult."
notebook.lack(people.empty, levels=none)

# %%
# needs levels
notebook.say("""
Of {asked_people} pairs of a recorded model and a data set with levels, accuracy falls significantly with the level on
{with_people}, and rises on {against_people}; the steepest fall is {steepest:.0f} points a level.
""")

# %% label="difficulty-people" paper=["section-5.3"] evidence=["measured"] reads=["verdicts"]
# needs levels
points = 100 * people[["slope", "low", "high"]]
spelt = tables.intervals(points, "slope", digits=1)
shown = people.replace({"data set": SETS, "model": TITLES})
shown = shown[["data set", "model", "questions"]]
tables.show(
    shown.assign(**{"points a level": spelt}),
    "Change of expected accuracy from a level of difficulty for people to the "
    "next, in points, with 95 % intervals over questions or subjects.",
    evidence="measured",
)

# %% [markdown]
# ## What the text alone tells
#
# A probe that reads hidden states may have learnt only that long questions are hard, or which words go with success. Two
# rivals see nothing else: ridge regression of $\hat\mu$ on the length of a question, and on its words and pairs of words
# (TF-IDF), each on the training questions of the probe. They are made by `capcal probe --recipe length` and `--recipe
# words`.

# %%
RECIPES = {"hidden states": "tuned", "words": "words", "length": "length"}
texts = results[["correct", "total"]].copy()
for reads, recipe in RECIPES.items():
    predicted = read_predictions(runs, model, recipe=recipe)
    for name, said in predicted.reindex(texts.index).groupby("dataset"):
        there = said.dropna(axis="columns", how="all")
        if probe := nearest_probe(there, name):
            texts.loc[said.index, reads] = said[probe]
texts["best constant"] = best_constant(results)
texts = texts.reindex(columns=["correct", "total", *RECIPES, "best constant"])

# %%
rows = {}
for name, each in texts.dropna().groupby(level="dataset", sort=False):
    counts = each["correct"], each["total"]
    terms = each.drop(columns=["correct", "total"]).apply(
        capability_brier_terms, args=counts, corrected=True
    )
    gain = gains(terms, "words", clusters=subjects(each))
    rows[name] = {**terms.mean(), **gain.loc["hidden states"]}
beyond = pd.DataFrame.from_dict(rows, orient="index")

# %% tags=["hide-input"]
verdicts = list(beyond["verdict"]) if len(beyond) else []
notebook.glue(
    text_sets=len(beyond),
    text_better=verdicts.count("better"),
    text_worse=verdicts.count("worse"),
    text_constant=int(beyond.eval("`hidden states` < `best constant`").sum())
    if len(beyond)
    else 0,
)
none = "What the text alone tells is not recorded for this model."
notebook.lack(beyond.empty, texts=none)

# %%
# needs texts
notebook.say("""
On {text_better} of {text_sets} data sets the probe of hidden states is significantly better than the one of words, on
{text_worse} worse; it scores lower than the best constant on {text_constant}.
""")

# %% label="difficulty-text" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "features"]
# needs texts
spelt = tables.intervals(beyond, "estimate", digits=3)
shown = beyond[[*RECIPES, "best constant"]]
shown = shown.assign(**{"gain over words": spelt})
shown = shown.join(beyond["verdict"]).rename(index=data["title"])
tables.show(
    shown.rename_axis("data set"),
    "Capability Brier score (corrected) of probes that read hidden states, "
    "words, or the length of a question, and of the best constant; and the "
    "gain of the first over the second, with 95 % intervals.",
    evidence=evidence,
)

# %% [markdown]
# ## A cheaper evaluation
#
# A question that is always or never solved tells nothing more with another sample; the variance of the accuracy is the sum of
# $\mu(1-\mu)/n$. It is least where samples are dealt out as the root of $\mu(1-\mu)$ per token (Neyman). A posterior with
# mean $s$ expects $\mu(1-\mu)$ to be $s(1-s)\nu/(\nu+1)$: its concentration is a factor of all questions alike and drops out.
# A quarter of the samples is spent evenly, in case the confidence is wrong.


# %%
def samples_for(s, tokens, each):
    """Deal out the tokens of ``each`` samples a question by s."""
    wanted = np.sqrt(s * (1 - s))
    wanted = 0.25 + 0.75 * wanted / max(wanted.mean(), 1e-9)
    return wanted * each * tokens.sum() / (wanted * tokens).sum()


# %%
samples_for(np.array([0.0, 0.5, 0.9]), np.array([10, 10, 10]), each=8).round(1)

# %%
# needs samples
names = ["question_id", "completion_tokens"]
rows = []
for name, each in own.items():
    samples = read_samples(data.loc[name, "run"], names)
    tokens = samples.groupby("question_id")["completion_tokens"].mean()
    tokens = tokens.reindex(each.index, level="question_id")
    v = correctness_variance_terms(
        each["correct"], each["total"], corrected=True
    )
    for method in each.columns.intersection(METHODS, sort=False):
        n = samples_for(each[method].fillna(0.5), tokens, 1.0)
        saved = pd.Series(v, each.index) * (1 - 1 / n)
        found = mean_interval(saved, clusters=subjects(each), bounds=(-1, 1))
        if v.mean() >= 0.01:  # else hardly ever solved: nothing to save
            rows.append(
                (name, method, *(100 * x / v.mean() for x in found[:3]))
            )

# %%
# needs samples
columns = ["data set", "method", "saved", "low", "high"]
cheaper = pd.DataFrame(rows, columns=columns)
mine = cheaper[cheaper["method"] == asked]

# %% tags=["hide-input"]
# needs samples
notebook.glue(
    cheap=int((mine["low"] > 0).sum()),
    dear=int((mine["high"] < 0).sum()),
    of=len(mine),
    saved=mine["saved"].median(),
)

# %%
# needs samples
notebook.say("""
On the recorded runs, dealing out samples by *{asked}* gives a significantly smaller sampling variance than as many tokens
spent evenly on {cheap} of {of} data sets, and a larger one on {dear}; it saves {saved:.0f} % in the median. Data sets of
which the model solves hardly anything are left out.
""")

# %% label="difficulty-evaluation" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs samples
spelt = tables.intervals(cheaper, "saved", digits=0)
text = cheaper.assign(saved=spelt)
wide = text.set_index(["data set", "method"])["saved"].unstack(sort=False)
tables.show(
    wide.rename(data["title"]).rename_axis(columns=None),
    "Sampling variance saved at equal tokens, in %, with 95 % intervals.",
    evidence=evidence,
)

# %% [markdown]
# ## Summary
#
# - Difficulty is a property of a question and a model; take the sampling noise out before asking whether models agree.
# - What people find difficult need not be what a model does; levels and subjects let one look.
# - A probe is worth its hidden states where it beats what the words of a question tell.
# - A confidence deals questions into bins without a sample; whether the bins rise is to be measured.
# - Samples belong where $\mu(1-\mu)$ is large, and a part of them everywhere.
#
# ## Exercises
#
# **1 (easy).** Which $s$ gets most samples, and how many does a hopeless question get? *Hint:* `samples_for`.

# %% tags=["hide-cell", "solution"]
s = np.linspace(0, 1, 11)
dealt_out = samples_for(s, np.ones(11), each=8)
s[dealt_out.argmax()], dealt_out.min().round(1)

# %% [markdown]
# **2 (medium).** How much variance does the true $\mu$ save, where it is Beta(0.5, 0.5)? *Hint:* compare the sums of
# $\mu(1-\mu)/n$.

# %% tags=["hide-cell", "solution"]
mu = np.random.default_rng(seed).beta(0.5, 0.5, 100_000)
v = mu * (1 - mu)
round(1 - (v / samples_for(mu, np.ones(mu.size), 1)).mean() / v.mean(), 2)

# %% [markdown]
# **3 (hard).** What would the correlation of $\hat\mu$ be for two models with one and the same $\mu$, uniform on $[0, 1]$, at four
# samples? *Hint:* the variance of $\hat\mu$ is that of $\mu$ and the noise's.

# %% tags=["hide-cell", "solution"]
noise = (1 / 2 - 1 / 3) / 4  # the mean of mu(1 - mu) over four samples
round((1 / 12) / (1 / 12 + noise), 2)
