# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Where does a probe still work?
#
# This page trains {term}`probes <probe>` on one data set and scores them on others, and shows
# how far from its training questions a probe is still better than a random guess: section 4.3.2 of the paper, its
# appendix C.4 and its table 7.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of the intervals

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns

# %% tags=["hide-input"]
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.metrics import (
    capability_brier,
    mean_interval,
    uniform_baseline_brier,
)

# %% tags=["hide-input"]
from capcal_lib.probes import (
    TunedProbe,
    read_predictions,
    runs_for_probes,
    train,
    training_data,
)
from capcal_lib.reported import load_reported
from capcal_lib.results import (
    brier_terms,
    describe_runs,
    load_results,
    score,
    subjects,
)
from capcal_lib.runs import find_run
from IPython.display import display

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
rng = np.random.default_rng(seed)
runs = notebook.open_store(store)

# %% tags=["hide-input"]
results = load_results(runs, model, k_eval=k_eval, verdicts=verdicts)
results = results[["correct", "total"]]
recipe = "paper" if protocol == "paper" else "tuned"
predicted = read_predictions(runs, model, recipe=recipe, verdicts=verdicts)
predicted = predicted.dropna(axis="columns", how="all")
results, probes = results.join(predicted, how="inner"), list(predicted)

# %% tags=["hide-input"]
found = runs_for_probes(runs, model, "training")
training = {dataset.name: run for dataset, run in found}

# %% tags=["hide-input"]
mean = results["correct"] / results["total"]
spread = mean.groupby("dataset").var().filter(list(training)).sort_values()
home = spread.index[-1] if probes else ""
known = results.dropna(subset=[load_dataset(home).probe]) if home else results
others = [name for name in known.index.unique("dataset") if name != home]
away = next((name for name in others if name in training), [*others, home][0])

# %% tags=["hide-input"]
lacking = {"mixture": ""} if away not in training or away == home else {}
if not probes:
    lacking["probes"] = (
        "No training split of this model has samples and hidden states, so no "
        "probe can be trained: capcal sample, grade and features make them."
    )
described = describe_runs(runs, model, k_eval=k_eval, verdicts=verdicts)
notebook.about(
    model, described, lacking=lacking, protocol=protocol, verdicts=verdicts
)


# %% tags=["hide-input"]
def interval(values, level=0.95):
    """Draw whole subjects, where the questions come in subjects."""
    clusters = subjects(values.to_frame()).to_numpy()
    found = mean_interval(
        values.to_numpy(),
        rng=rng,
        clusters=clusters,
        level=level,
        bounds=(-1, 1),
    )
    return pd.Series(found._asdict())


# %% tags=["hide-input"]
# needs probes
terms = brier_terms(results, protocol=protocol)
against = terms[probes].sub(terms["Uniform random"], axis="index")
against = against.rename_axis(columns="method").stack().dropna()
cells = against.groupby(["dataset", "method"], sort=False)


def judged(level):
    """Return the interval of each cell."""
    each = cells.apply(lambda own: interval(own.droplevel("method"), level))
    return each.unstack()


matrix = judged(0.95)
matrix["shift"] = [style.shift(method, name) for name, method in matrix.index]
matrix["significant"] = matrix["high"] < 0

# %% tags=["remove-cell"]
# needs probes
better = matrix.groupby("shift")["significant"].agg(["sum", "size"])
better = better.reindex(style.SHIFTS, fill_value=0)
notebook.glue(
    own=int(better["sum"].iloc[0]),
    own_cells=int(better["size"].iloc[0]),
    away=int(better["sum"].iloc[1:].sum()),
    away_cells=int(better["size"].iloc[1:].sum()),
    worse=int((matrix["low"] > 0).sum()),
)
sure = judged(1 - 0.05 / max(1, len(matrix)))  # Bonferroni
notebook.glue(
    surely=int((sure["high"] < 0).sum()),
    surely_worse=int((sure["low"] > 0).sum()),
)

# %% [markdown] needs="probes"
# A probe is significantly better than a uniform random guess on {glue:text}`own` of {glue:text}`own_cells` data sets that
# it was trained for, and on {glue:text}`away` of {glue:text}`away_cells` pairs of a probe and another data set; it is
# significantly worse in {glue:text}`worse` of all cases. Judged all together (Bonferroni), {glue:text}`surely` are better
# and {glue:text}`surely_worse` worse.

# %% mystnb={"figure": {"caption": "Score of each probe on each data set less that of Uniform random, by how far the training questions are from the data set. Left of the line a probe is better than a random guess; crosses are not significantly better.", "name": "fig-transfer"}, "image": {"alt": "Dot plot with three rows, one a shift. In-domain nearly all dots lie left of zero; out-of-domain they spread to both sides."}} paper=["table-7", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"] tags=["hide-input"]
# needs probes
axes = sns.scatterplot(
    matrix,
    x="estimate",
    y=pd.Categorical(matrix["shift"], style.SHIFTS).codes
    + rng.uniform(-0.2, 0.2, len(matrix)),
    hue="shift",
    palette=style.SHIFT_COLORS,
    style="significant",
    style_order=[True, False],
    markers=["o", "X"],
    s=60,
    legend=False,
)
axes.axvline(0, color=style.INK)
axes.set_yticks(range(3), style.SHIFTS)
axes.set(ylim=(2.5, -0.5), ylabel="")
_ = axes.set(xlabel="capability Brier score less that of Uniform random")

# %% [markdown]
# ## What the paper reports
#
# The paper trains probes on TriviaQA, on GSM8K, and on both together. The scores are plug-in and have no intervals. Where
# this page is not opened for one of its models, all three are shown.

# %% tags=["hide-input"]
printed = load_reported("mixing")
if model in set(printed["model"]):
    printed = printed.query("model == @model")

# %% tags=["hide-input"]
printed = printed.rename(columns={"value": "brier"})
place = printed.groupby(["model", "dataset"])["brier"].rank(method="dense")
printed["printed"] = place.map({1: "best", 2: "second"}).fillna("")

# %% label="mixing-reported" paper=["table-7", "appendix-c.4"] evidence=["reported"] reads=["mixing"]
for name, rows in printed.groupby("model", sort=False):
    caption = f"{load_model(name).title}, as printed (lower is better)."
    one = rows[["method", "dataset", "brier", "printed"]]
    display(tables.show_scores(one, caption, digits=4, evidence="reported"))

# %% tags=["hide-input"]
uniform = load_reported("main").query("method == 'Uniform random'")
label = "capability Brier score less that of Uniform random"
pairs = printed.merge(uniform, on=["model", "dataset"], suffixes=("", "_main"))
pairs["gain"] = pairs["brier"] - pairs["value"]
pairs["shift"] = [*map(style.shift, pairs["method"], pairs["dataset"])]

# %% mystnb={"figure": {"caption": "The paper's scores less those of Uniform random, by how far the training questions are from the data set. Left of the line a probe is better than a random guess.", "name": "fig-transfer-reported"}, "image": {"alt": "Dot plot with three rows. All in-distribution dots lie left of zero; out-of-domain some lie far to the right, where a probe is worse than a random guess."}} paper=["table-7", "appendix-c.4", "section-4.3.2"] evidence=["reported"] reads=["mixing", "main"] tags=["hide-input"]
axes = sns.stripplot(
    pairs,
    x="gain",
    y="shift",
    order=style.SHIFTS,
    hue="shift",
    palette=style.SHIFT_COLORS,
    size=7,
    jitter=0.2,
)
axes.axvline(0, color=style.INK)
_ = axes.set(xlabel=label, ylabel="")

# %% tags=["remove-cell"]
far = pairs["shift"] == style.OUT_OF_DOMAIN
notebook.glue(
    reported_far=int(far.sum()),
    reported_worse=int((pairs["gain"][far] > 0).sum()),
    reported_near=int((~far).sum()),
    reported_near_worse=int((pairs["gain"][~far] > 0).sum()),
)

# %% [markdown]
# In the paper's table a probe scores worse than Uniform random in {glue:text}`reported_worse` of
# {glue:text}`reported_far` cells out of domain, and in {glue:text}`reported_near_worse` of {glue:text}`reported_near`
# cells within the domain of its training questions.

# %% [markdown] needs="probes"
# ## Train here, test there
#
# What a probe learns from are the hidden states of questions and their counts of correct samples.

# %%
# needs probes
questions, features = training_data(training[home])
home, questions.shape, features.shape

# %% [markdown] needs="probes"
# The *tuned* linear probe is a logistic regression on $\hat\mu$ whose weight decay is chosen by cross-validation on
# these questions. All probes of this page are of this kind; [How good is a probe?](11_probe_lab.ipynb) has the recipe
# of the paper.

# %%
# needs probes
probe = TunedProbe().fit(features, questions["correct"], questions["total"])
probe.weight_decay_

# %% [markdown] needs="probes"
# It predicts the questions of any split that has hidden states: first those of the evaluation split of its own data set,
# then those of another one. Beside each score stands that of Uniform random, which says $s \sim U(0, 1)$.


# %%
# needs probes
def score_on(name, probe):
    split = load_dataset(name).evaluation_split
    unseen, features = training_data(find_run(runs, model, name, split))
    counts = results.loc[name].loc[unseen.index, ["correct", "total"]].T
    confidence = probe.predict(features)
    return (
        capability_brier(confidence, *counts.to_numpy(), corrected=True),
        uniform_baseline_brier(*counts.to_numpy(), corrected=True),
    )


# %%
# needs probes
transfer = {name: score_on(name, probe) for name in (home, away)}
pd.DataFrame(transfer, index=["probe", "Uniform random"]).T.round(3)

# %% [markdown] needs="probes"
# ## Every training set on every data set
#
# `predict` trains the same probe on each training split, and `score` scores it everywhere. Cells are tinted by shift, as
# in the paper; **bold** is what is significantly better than Uniform random on the same questions. That is little where
# nearly every answer is wrong: a probe that always says nearly 0 does it there, too. A dash stands where the two splits
# were asked in different styles of prompt, whose hidden states do not compare.

# %% tags=["hide-input"]
# needs probes
scores = (
    score(results, seed=seed, protocol=protocol)
    .query("method in @probes")
    .reset_index()
)
scores = scores.merge(
    matrix["significant"].rename("beats_uniform").reset_index()
).drop(columns="may_be_best")

# %% label="probe-transfer" paper=["section-4.3.2", "table-7", "appendix-c.4"] evidence=["measured"] reads=["verdicts", "features"]
# needs probes
kinds = {False: "Real data sets", True: "Built-in data sets"}
built_in = scores["dataset"].map(lambda name: load_dataset(name).builtin)
for kind, rows in scores.groupby(built_in):
    caption = f"{kinds[kind]}: {protocol} score of probes (lower is better)."
    evidence = described["evidence"].iloc[0]
    display(tables.show_scores(rows, caption, evidence=evidence))

# %% [markdown] needs="mixture"
# ## Mixed training sets
#
# The paper also trains on two sets together. Here are the training questions of the two data sets above in one probe.

# %%
# needs mixture
more, more_features = training_data(training[away])
both = pd.concat([questions, more])
together = np.concatenate([features, more_features])
mixed = TunedProbe().fit(together, both["correct"], both["total"])

# %%
# needs mixture
alone = train(training[away]).probe
kinds = {home: probe, away: alone, "both": mixed}
mixing = {
    f"trained on {kind}": [score_on(name, each)[0] for name in (home, away)]
    for kind, each in kinds.items()
}
heads = [f"scored on {name}" for name in (home, away)]
pd.DataFrame(mixing, index=heads).T.round(3)

# %% [markdown]
# ## Summary
#
# - A low score in the distribution of the training questions says little about another domain.
# - Compare every score with Uniform random: away from its training set a probe can be worse than no probe.
# - Mixing training sets buys breadth for little where a probe was good already; it says nothing of sets left out.
#
# ## Exercises
#
# **1 (easy).** A probe that always says 0.5 is scored on questions with $\mu$ = 0, 0, 1 and 1. Is it better than Uniform
# random? *Hint:* Uniform random scores $1/3 - \mu(1-\mu)$.

# %% tags=["hide-cell", "solution"]
correct = np.array([0, 0, 100, 100])
half = capability_brier(np.full(4, 0.5), correct, np.full(4, 100))
half, uniform_baseline_brier(correct, np.full(4, 100))

# %% [markdown]
# **2 (medium).** In the paper's table, which training set transfers better to the other: TriviaQA to GSM8K, or GSM8K to
# TriviaQA? *Hint:* compare each with the probe that was trained there.

# %% tags=["hide-cell", "solution"]
table = printed.pivot_table(
    index=["model", "method"], columns="dataset", values="brier"
)
table[["triviaqa", "gsm8k"]].unstack("method").round(3).T

# %% [markdown]
# **3 (hard).** A probe that has learned to say 0.9 meets questions with other $\mu$. Below which $\mu$ is it worse than
# Uniform random? Solve it for any constant $c > 1/2$. *Hint:* a constant scores $(c - \mu)^2$, and $\mu^2$ cancels.

# %% tags=["hide-cell", "solution"]
mu = np.linspace(0, 1, 1001)
worse = (0.9 - mu) ** 2 > 1 / 3 - mu * (1 - mu)
float(mu[worse].max()), (0.9**2 - 1 / 3) / (2 * 0.9 - 1)
