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
# This page trains probes on one data set, scores them on others, and asks what of them transfers: the
# level of their confidences, or their order (section 4.3.2 of the paper, its appendix C.4 and its table 7).

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of all that is drawn here

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.metrics import (
    capability_brier,
    gains,
    mean_interval,
    uniform_baseline_brier,
)
from capcal_lib.probes import (
    TunedProbe,
    draw_training,
    read_predictions,
    runs_for_probes,
    training_data,
)
from capcal_lib.reported import load_reported
from capcal_lib.results import (
    best_constant,
    brier_terms,
    describe_runs,
    load_results,
    score,
    subjects,
)
from IPython.display import display

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
rng = np.random.default_rng(seed)
runs = notebook.open_store(store)
results = load_results(runs, model, k_eval=k_eval, verdicts=verdicts)
results = results[["correct", "total"]]
recipe = "paper" if protocol == "paper" else "tuned"
predicted = read_predictions(runs, model, recipe=recipe, verdicts=verdicts)
predicted = predicted.dropna(axis="columns", how="all")
results, probes = results.join(predicted, how="inner"), list(predicted)
results = results[results["total"] > 1]
data = describe_runs(runs, model, k_eval=k_eval, verdicts=verdicts)

# %% tags=["hide-input"]
mu = results["correct"] / results["total"]
varied = [name for name, own in mu.groupby("dataset") if own.var() > 0.01]
training = {
    dataset.name: run
    for dataset, run in runs_for_probes(runs, model, "training")
}
evaluation = {
    dataset.name: run
    for dataset, run in runs_for_probes(runs, model, "evaluation")
}
both = [name for name in varied if name in training and name in evaluation]
alike = data["prompts"].reindex(both)
mixes = [
    tuple(names[:2])
    for names in alike.groupby(alike).groups.values()
    if len(names) > 1
]

# %% tags=["hide-input"]
lacking = {} if mixes else {"mixture": ""}
if not probes or not varied:
    lacking["probes"] = (
        "No probe of this model predicts questions whose accuracy varies. "
        "capcal sample, grade, features and probe make them."
    )
if not both:
    lacking["own"] = ""
notebook.about(
    model, data, lacking=lacking, protocol=protocol, verdicts=verdicts
)

# %% tags=["hide-input"]
# needs probes
UNIFORM, BEST = "Uniform random", "best constant"
PARTS = ["level", "order"]
asked = results.loc[varied].dropna(axis="columns", how="all")
probes = [name for name in probes if name in asked]
terms = brier_terms(asked.assign(**{BEST: best_constant(asked)}))


# %% tags=["hide-input"]
# needs probes
def interval(values):
    """Return a mean with its interval; draw whole subjects."""
    clusters = subjects(values.droplevel("probe").to_frame()).to_numpy()
    found = mean_interval(values, clusters=clusters, bounds=(-1, 1))
    return pd.Series(found._asdict())


def long(columns):
    """Return a row a question and probe, where the probe says something."""
    table = columns[probes].rename_axis(columns="probe")
    return table.stack().dropna()


# %% tags=["hide-input"]
# needs probes
flat = asked[probes].groupby("dataset").transform("mean")
flat_terms = brier_terms(asked[["correct", "total"]].join(flat))
level = flat_terms[probes].rsub(terms[UNIFORM], axis="index")
order = flat_terms[probes] - terms[probes]
in_all = terms[probes].rsub(terms[BEST], axis="index")
parts = {"level": long(level), "order": long(order), "in all": long(in_all)}
cells = pd.concat(
    {
        part: each.groupby(["dataset", "probe"], sort=False)
        .apply(interval)
        .unstack()
        for part, each in parts.items()
    },
    names=["part"],
)
cells["shift"] = [style.shift(probe, name) for _, name, probe in cells.index]

# %% tags=["hide-input"]
# needs probes
clear = cells.assign(sure=cells["low"] > 0, size=1)
clear = clear.groupby(["part", "shift"])[["sure", "size"]].sum()
near, far, out = style.SHIFTS


def count(part, shift):
    """Say in how many cells a part is significantly positive."""
    if (part, shift) not in clear.index:
        return "none of 0"
    sure, size = clear.loc[(part, shift)]
    return f"{sure:.0f} of {size:.0f}"


notebook.glue(
    home_order=count("order", near),
    far_order=count("order", far),
    out_order=count("order", out),
    home_best=count("in all", near),
    far_best=count("in all", far),
    out_best=count("in all", out),
    out_level=count("level", out),
)

# %% tags=["finding"]
# needs probes
notebook.finding("""
A probe that says different things of different questions is significantly better than its own mean on {home_order} data sets that
it was trained for, on {far_order} others of the same domain, and in {out_order} cases out of domain. Better than the best constant
of the data set it is in {home_best}, {far_best} and {out_best}; its mean alone beats Uniform random out of domain in {out_level}.
""")

# %% tags=["hide-input"]
# needs probes
TITLES = {
    "level": "level: its mean\nagainst Uniform random",
    "order": "order: its differences\nagainst its mean",
    "in all": "in all: against\nthe best constant",
}
drawn = cells.melt(
    "shift", ["estimate", "low", "high"], "end", "gain", ignore_index=False
).reset_index()
drawn["place"] = drawn["shift"].map(style.SHIFTS.index)
drawn = drawn.sort_values(["place", "probe"], kind="stable")
drawn["part"] = drawn["part"].map(TITLES)
drawn["pair"] = [
    f"{probe} on {load_dataset(name).title}"
    for name, probe in zip(drawn["dataset"], drawn["probe"], strict=True)
]
high = 1.5 + 0.3 * drawn["pair"].nunique()

# %% mystnb={"figure": {"caption": "Gains in capability Brier score of each probe on each data set, with 95 % intervals: of the probe's mean over Uniform random, of the probe over its mean, and of the probe over the best constant. Right of the line is better.", "name": "fig-transfer"}, "image": {"alt": "Three panels of dots with intervals, a row for each probe and data set, coloured by shift. In the first nearly all dots lie right of zero. In the second those of the probe's own data set do, and out of domain they lie near zero or left of it. In the third the dots out of domain lie left of zero."}} paper=["table-7", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"] tags=["hide-input"]
# needs probes
grid = sns.catplot(
    drawn,
    kind="point",
    x="gain",
    y="pair",
    col="part",
    hue="shift",
    palette=style.SHIFT_COLORS,
    linestyle="none",
    estimator="median",  # of a mean and its two limits
    errorbar=("pi", 100),
    sharex=False,
    legend_out=False,
)
grid.figure.set_size_inches(style.WIDTH + 1, high)
grid.refline(x=0, linestyle="-", color=style.INK)
grid.set_titles("{col_name}").set_axis_labels("gain", "")
sns.move_legend(grid, "lower center", ncols=3, title="")
_ = grid.tight_layout(rect=(0, 0.08, 1, 1))

# %% [markdown] needs="probes"
# ## Level and order
#
# Between Uniform random, which says $s \sim U(0, 1)$, and a probe stands the probe's own mean on the data set, said of every
# question. What the mean gains over Uniform random is the *level*; what the probe gains over its mean is the *order*, which
# is $2\,\mathrm{cov}(s, \mu) - \mathrm{var}(s)$. The noise of $\hat\mu$ is in none of these gains: it adds the same to
# both scores.


# %%
# needs probes
def parts_of(own):
    """Divide a probe's gain over Uniform random."""
    said, counts = own["said"], (own["correct"], own["total"])
    mean = np.full(len(own), said.mean())
    scores = {
        "uniform": uniform_baseline_brier(*counts, corrected=True),
        "mean": capability_brier(mean, *counts, corrected=True),
        "probe": capability_brier(said, *counts, corrected=True),
    }
    return pd.Series(
        {
            "mean μ̂": (counts[0] / counts[1]).mean(),
            "mean said": said.mean(),
            "level": scores["uniform"] - scores["mean"],
            "order": scores["mean"] - scores["probe"],
        }
    )


# %% [markdown] needs="probes"
# An order may be right where the confidences are not. The soft AUROC is the chance that of two questions, one with a correct
# sample and another with an incorrect one, the first has the higher confidence. Over pairs of *different* questions the noise
# of $\hat\mu$ cancels; 0.5 is no order. Its interval draws questions with replacement.


# %%
# needs probes
def auroc(own, resamples=500):
    """Return the soft AUROC over pairs of different questions, and its ends."""
    said, mu = own["said"].to_numpy(), own["correct"] / own["total"]
    higher = (1 + np.sign(np.subtract.outer(said, said))) / 2
    pairs = np.outer(mu, 1 - mu)
    np.fill_diagonal(pairs, 0)
    size = len(own)
    drawn = rng.multinomial(size, np.full(size, 1 / size), resamples)
    drawn = np.concatenate([np.ones((1, size)), drawn])
    won = ((drawn @ (higher * pairs)) * drawn).sum(axis=1)
    values = won / ((drawn @ pairs) * drawn).sum(axis=1)
    low, high = np.nanquantile(values[1:], [0.025, 0.975])
    return f"{values[0]:.2f} [{low:.2f}, {high:.2f}]"


# %% label="probe-parts" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"]
# needs probes
each = long(asked).rename("said").reset_index("probe")
each = asked[["correct", "total"]].join(each).groupby(["dataset", "probe"])
table = each.apply(parts_of).assign(**{"soft AUROC": each.apply(auroc)})
table = table.rename(lambda name: load_dataset(name).title, level="dataset")
tables.show(
    table.rename_axis(["data set", "probe"]),
    "What each probe says of each data set whose questions differ, what its "
    "mean gains over Uniform random, and what its order gains beyond.",
    evidence=data["evidence"].iloc[0],
)

# %% tags=["hide-input"]
# needs probes
shifts = [style.shift(probe, name) for name, probe in each.groups]
ranked = table.assign(shift=shifts)
ranked["ordered"] = ranked["soft AUROC"].str.extract(r"\[(.*),")[0] > "0.50"
ordered = ranked.groupby("shift")["ordered"].agg(["sum", "size"])
ordered = ordered.reindex(style.SHIFTS, fill_value=0)
total = table[PARTS].groupby(shifts).mean()
total = total.reindex(style.SHIFTS).dropna()
said = [f"{sure} of {size}" for sure, size in ordered.to_numpy()]
notebook.glue(
    own_rank=said[0],
    near_rank=said[1],
    away_rank=said[2],
    shares="; ".join(
        f"{row.level:.3f} by level and {row.order:.3f} by order {shift}"
        for shift, row in total.iterrows()
    ),
)

# %%
# needs probes
notebook.say("""
On average a probe gains over Uniform random {shares}. The AUROC lies significantly above 0.5 on {own_rank} data sets of
the probe's own, on {near_rank} of its domain, and on {away_rank} out of domain. A probe whose AUROC is above 0.5 and
whose order gains nothing knows the order and has the wrong spread or level. With a few labelled questions of the new data set,
say their mean: it gains as much as recalibrating the probe of another set on them.
""")

# %% [markdown]
# ## What the paper reports
#
# The paper trains probes on TriviaQA, on GSM8K, and on both together. The scores are plug-in and have no intervals.

# %% tags=["hide-input"]
printed = load_reported("mixing")
if model in set(printed["model"]):
    printed = printed.query("model == @model")
printed = printed.rename(columns={"value": "brier"})
place = printed.groupby(["model", "dataset"])["brier"].rank(method="dense")
printed["printed"] = place.map({1: "best", 2: "second"}).fillna("")

# %% label="mixing-reported" paper=["table-7", "appendix-c.4"] evidence=["reported"] reads=["mixing"] tags=["hide-input"]
for name, rows in printed.groupby("model", sort=False):
    caption = f"{load_model(name).title}, as printed (lower is better)."
    one = rows[["method", "dataset", "brier", "printed"]]
    display(tables.show_scores(one, caption, digits=4, evidence="reported"))

# %% [markdown]
# The best constant of a data set follows from what the paper prints. It scores the variance of $\mu$, which is
# $m(1-m) - \mathbb{E}[\mu(1-\mu)]$ with the mean accuracy $m$; and Uniform random scores $1/3 - \mathbb{E}[\mu(1-\mu)]$.

# %%
keys = ["model", "dataset"]
uniform = load_reported("main").query("method == 'Uniform random'")
uniform = uniform.set_index(keys)["value"]
accuracy = load_reported("mean_accuracy").set_index(keys)["value"]
rivals = pd.DataFrame({"Uniform random": uniform})
rivals["best constant"] = accuracy * (1 - accuracy) - 1 / 3 + uniform
pairs = printed.join(rivals, on=keys)
pairs["shift"] = [*map(style.shift, pairs["method"], pairs["dataset"])]
lead = pairs.melt(["shift", "brier"], list(rivals), "rival", "score")
lead["gain"] = lead["score"] - lead["brier"]
worse = lead["gain"].lt(0).groupby([lead["rival"], lead["shift"]], sort=False)
counted = worse.agg(["sum", "size"]).unstack(0)["sum"].reindex(style.SHIFTS)
counted.assign(cells=worse.size().unstack(0).iloc[:, 0])

# %% mystnb={"figure": {"caption": "The score of Uniform random, and that of the best constant, less the paper's scores of probes, by how far the training questions are from the data set. Right of the line a probe is better.", "name": "fig-transfer-reported"}, "image": {"alt": "Two panels of dots with three rows. Against Uniform random nearly all dots within the domain lie right of zero; against the best constant those of other data sets of the domain lie around zero or left of it, and those out of domain spread far to the left."}} paper=["table-7", "appendix-c.4", "section-4.3.2"] evidence=["reported"] reads=["mixing", "main", "mean_accuracy"]
grid = sns.catplot(
    lead,
    x="gain",
    y="shift",
    col="rival",
    order=style.SHIFTS,
    hue="shift",
    palette=style.SHIFT_COLORS,
    jitter=0.2,
    height=3,
    aspect=1.25,
)
grid.refline(x=0, linestyle="-", color=style.INK)
grid.set_titles("against {col_name}").set_axis_labels("gain", "")
_ = grid.tight_layout()

# %% tags=["hide-input"]
near, far, out = style.SHIFTS
cell_count = worse.size().unstack(0).iloc[:, 0]
notebook.glue(
    reported_near=int(cell_count[far]),
    reported_near_uniform=int(counted.loc[far, "Uniform random"]),
    reported_near_constant=int(counted.loc[far, "best constant"]),
    reported_out=int(cell_count[out]),
    reported_out_uniform=int(counted.loc[out, "Uniform random"]),
    reported_out_constant=int(counted.loc[out, "best constant"]),
    reported_own=int(cell_count[near]),
    reported_own_constant=int(counted.loc[near, "best constant"]),
)

# %%
notebook.say("""
The paper says that probes generalise reasonably well to other data sets of their domain, and not consistently out of it. Against
Uniform random, its rival, that is what its table shows: worse in {reported_near_uniform} of {reported_near} cells within the
domain, and in {reported_out_uniform} of {reported_out} out of it. Against the best constant a probe is worse in
{reported_near_constant} of {reported_near}, and in {reported_out_constant} of {reported_out}; on its own data set in
{reported_own_constant} of {reported_own}. The constant has seen samples of the data set, which such a probe has not, so the two
comparisons ask different things: whether a probe is better than nothing, and whether it tells questions apart so well that it
makes up for a level that nobody told it.
""")

# %% [markdown] needs="own"
# ## Train here, test there
#
# What a probe learns from are the hidden states of questions and their counts of correct samples. The *tuned* linear probe is
# a logistic regression on $\hat\mu$ whose weight decay is chosen by cross-validation on these questions.
# [How good is a probe?](11_probe_lab.ipynb) has the recipe of the paper.

# %%
# needs own
home = max(both, key=lambda name: mu[name].var())
questions, features = training_data(training[home])
probe = TunedProbe().fit(features, questions["correct"], questions["total"])
home, features.shape, probe.weight_decay_

# %% [markdown] needs="own"
# It predicts the questions of any split that has hidden states and was asked in the same style of prompt.

# %%
# needs own
transfer = {}
for name in alike[alike == alike[home]].index:
    unseen, states = training_data(evaluation[name])
    counts = unseen["correct"], unseen["total"]
    transfer[name] = {
        "probe": capability_brier(
            probe.predict(states), *counts, corrected=True
        ),
        "Uniform random": uniform_baseline_brier(*counts, corrected=True),
    }
pd.DataFrame(transfer).T.round(3)

# %% [markdown] needs="probes"
# `capcal probe` trains the same probe on each training split, and `score` scores what it kept everywhere. Cells are tinted by
# shift, as in the paper; **bold** is what is significantly better than Uniform random on the same questions. That is little
# where nearly every answer is wrong: a probe that always says nearly 0 does it there, too. A dash stands where the two splits
# were asked in different styles of prompt, whose hidden states do not compare.

# %%
# needs probes
scores = score(results, seed=seed, protocol=protocol)
scores = scores.query("method in @predicted.columns").reset_index()
every = brier_terms(results, protocol=protocol)
beaten = every.groupby("dataset").apply(gains, UNIFORM)
beaten = beaten["verdict"].eq("better").rename("significant")
scores = scores.drop(columns="may_be_best").merge(
    beaten.rename_axis(["dataset", "method"]).reset_index()
)

# %% label="probe-transfer" paper=["section-4.3.2", "table-7", "appendix-c.4"] evidence=["measured"] reads=["verdicts", "features"]
# needs probes
kinds = {False: "Real data sets", True: "Built-in data sets"}
built_in = scores["dataset"].map(lambda name: load_dataset(name).builtin)
for kind, rows in scores.groupby(built_in):
    caption = f"{kinds[kind]}: {protocol} score of probes (lower is better)."
    evidence = data["evidence"].iloc[0]
    display(tables.show_scores(rows, caption, evidence=evidence))

# %% [markdown] needs="mixture"
# ## Mixed training sets
#
# The paper merges two training sets into one, and so trains its mixed probe on twice as many questions. A fair comparison
# gives each probe as many samples: all of one set, all of the other, or half of each. Where the runs have them, the pairs
# here are two sets that were asked in the same style of prompt.


# %%
# needs mixture
def draw_mixes(pair):
    """Draw as many questions, with as many samples, of either set and of both."""
    known = {name: training_data(training[name])[0] for name in pair}
    samples = min(each["total"].max() for each in known.values())
    size = min((each["total"] >= samples).sum() for each in known.values())
    drawn = {
        name: draw_training(each, size, samples, rng=rng)
        for name, each in known.items()
    }
    half = pd.concat([each.head(size // 2) for each in drawn.values()])
    return drawn | {"both": half}


# %%
# needs mixture
def train_on(drawn, pair):
    """Fit a tuned probe to questions of a pair of sets."""
    states = {}
    for name in pair:
        known, features = training_data(training[name])
        states |= dict(zip(known.index, features, strict=True))
    rows = np.array([states[name] for name in drawn.index])
    return TunedProbe().fit(rows, drawn["correct"], drawn["total"])


# %%
# needs mixture
def mixed_terms(pair, draws=3):
    """Score probes of one set and of both, by question: the mean of draws."""
    every = []
    for _ in range(draws):
        probes = {
            kind: train_on(drawn, pair)
            for kind, drawn in draw_mixes(pair).items()
        }
        for name in pair:
            unseen, features = training_data(evaluation[name])
            said = {
                kind: probe.predict(features) for kind, probe in probes.items()
            }
            table = unseen.assign(**said)
            every.append(
                brier_terms(pd.concat({name: table}, names=["dataset"]))
            )
    return pd.concat(every).groupby(["dataset", "question_id"]).mean()


# %%
# needs mixture
mixed = {}
for pair in mixes:
    terms_of = mixed_terms(pair)
    for name, own in terms_of.groupby("dataset", sort=False):
        other = next(each for each in pair if each != name)
        kinds = {name: "own set", other: "other set", "both": "half of each"}
        own = own.rename(columns=kinds)[list(kinds.values())]
        groups = subjects(own).to_numpy()
        against = gains(own, "own set", clusters=groups).loc["half of each"]
        columns = {"gain": against["estimate"], "verdict": against["verdict"]}
        mixed[load_dataset(name).title] = {**own.mean(), **columns}

# %% label="settings-mixing" paper=["table-7", "appendix-c.4"] evidence=["measured"] reads=["verdicts", "features"]
# needs mixture
mixing = pd.DataFrame(mixed).T.rename_axis("scored on").infer_objects()
tables.show(
    mixing,
    "Corrected score of tuned probes trained on as many samples of the data "
    "set itself, of the other one of its pair, or of both, and the gain by "
    "mixing (mean of three draws).",
    evidence=data["evidence"].iloc[0],
)

# %% tags=["hide-input"]
# needs mixture
cost = mixing["half of each"] - mixing["own set"]
saved = mixing["other set"] - mixing["half of each"]
notebook.glue(
    mixing_sets=len(mixing),
    mixing_worse=int(mixing["verdict"].eq("worse").sum()),
    mixing_cost=cost.mean(),
    mixing_saved=saved.mean(),
    mixing_between=int((cost.gt(0) & saved.gt(0)).sum()),
    mixing_pairs=" and ".join(
        " with ".join(load_dataset(name).title for name in pair)
        for pair in mixes
    ),
)

# %%
# needs mixture
notebook.say("""
Mixing {mixing_pairs} at equal numbers of samples costs {mixing_cost:.3f} on average against a probe of the data set's own samples
(significantly worse on {mixing_worse} of {mixing_sets}), and saves {mixing_saved:.3f} against a probe of the other one's. The mixed
probe lies {mixing_between} of {mixing_sets} times between the two.
""")

# %% [markdown]
# ## Summary
#
# - Away from its own data set, what a probe gains over Uniform random is mostly its level; look at its order by itself.
# - The best constant of a data set is the rival that asks for order; Uniform random is beaten by almost anything.
# - Mixed training sets are compared at equal cost: a mixture of twice as many samples should win.
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
