# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Twenty labelled questions, and a probe trained elsewhere
#
# What is the best confidence for a new data set with a few labelled questions: another data set's
# probe as it is, recalibrated, a constant, or a new probe? This page compares five ways on the same draws.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
labels: int = 20  # questions of the new data set that are labelled
samples: int = 10  # of each labelled question, or as many as there are
seed: int = 0  # of the draws

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset
from capcal_lib.metrics import capability_brier
from capcal_lib.probes import (
    LinearProbe,
    adapt,
    draw_training,
    read_predictions,
    runs_for_probes,
    score_few_labels,
    training_data,
)
from capcal_lib.results import describe_runs
from scipy.special import logit
from sklearn.preprocessing import StandardScaler

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
data = describe_runs(runs, model)
predicted = read_predictions(runs, model)
WAYS = {
    "as it is": "the probe as it is",
    "recalibrated": "the recalibrated probe",
    "constant": "the mean of the labelled questions",
    "trained on the labels": "a new probe",
    "started from the probe": "a new probe that starts from it",
}


# %% tags=["hide-input"]
def varies(questions):
    """Tell whether enough questions differ for a confidence to matter."""
    mean = questions["correct"] / questions["total"]
    several = questions["total"].min() > 1 and len(questions) >= 3 * labels
    return several and mean.var() > 0.01


evaluation = {
    each.name: training_data(run)
    for each, run in runs_for_probes(runs, model, "evaluation")
}
pairs = [
    (name, probe)
    for name in predicted.index.unique("dataset")
    for probe in predicted.loc[name].dropna(axis="columns")
    if probe != load_dataset(name).probe
    and load_dataset(name).builtin == probe.startswith("Probe (Mini")
    and varies(evaluation[name][0])
]
DRAWS = max(10, 160 // max(1, len(pairs)))  # of the labelled questions, a pair

# %% tags=["hide-input"]
none = "No probe of another data set predicts questions whose accuracy varies."
notebook.about(model, data, lacking={} if pairs else {"pairs": none})


# %% tags=["hide-input"]
def draw_scores(name, probe, labels, draws):
    """Score the five ways on draws of the labelled questions."""
    questions, features = evaluation[name]
    said = predicted.loc[name, probe].reindex(questions.index)
    drawn = {"samples": min(samples, questions["total"].min()), "seed": seed}
    scores = score_few_labels(
        questions, features, said, labels=labels, draws=draws, **drawn
    )
    far = style.shift(probe, name) == style.OUT_OF_DOMAIN
    where = "across domains" if far else "within a domain"
    pair = f"{load_dataset(name).title}\nby {probe}"
    return scores.assign(domain=where, pair=pair)


# %% tags=["hide-input"]
# needs pairs
scores = pd.concat([draw_scores(*pair, labels, DRAWS) for pair in pairs])
ways = list(WAYS)
means = scores.groupby("domain")[ways].mean().iloc[::-1]
said = [
    f"{where} {WAYS[row.idxmin()]} scores lowest ({row.min():.3f}; as it is "
    f"{row['as it is']:.3f}, constant {row['constant']:.3f})"
    for where, row in means.iterrows()
]
sure = scores[ways].sub(scores["constant"], axis="index")
sure = sure.groupby(scores["pair"]).quantile(0.95).lt(0).sum()
notebook.glue(
    few=labels,
    finding="; ".join(said),
    pairs=len(pairs),
    sure=int(sure["recalibrated"]),
    sure_started=int(sure["started from the probe"]),
)

# %% tags=["finding"]
# needs pairs
notebook.finding("""
With {few} labelled questions of a data set and a probe of another one, {finding}. In at least 95 % of the draws of these questions the recalibrated probe beats the constant
on {sure} of {pairs} pairs of a data set and a probe, and a new probe that starts from it on {sure_started}.
""")

# %% tags=["hide-input"]
# needs pairs
green, blue, orange = style.SHIFT_COLORS.values()
long = scores.melt(["domain", "pair"], var_name="way", value_name="score")
long = long.sort_values("domain", ascending=False, kind="stable")
colors = [orange, blue, style.MUTED, green, style.OWN]

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Corrected capability Brier score (lower is better) of five ways to use labelled questions, on the questions without labels; mean, and 95 % of the draws of the labelled ones.", "name": "fig-few-labels"}, "image": {"alt": "Dot plot with a row for each pair of a data set and a probe of another one. Within a domain the recalibrated probe lies furthest left; across domains the probe as it is lies far right of the constant, and the probes that are trained on the labels lie left of it."}} evidence=["measured"] reads=["verdicts", "features"]
# needs pairs
axes = sns.pointplot(
    long,
    x="score",
    y="pair",
    hue="way",
    palette=colors,
    markers=["X", "o", "s", "^", "D"],
    linestyle="none",
    dodge=0.5,
    errorbar=("pi", 95),
    err_kws={"linewidth": 1.2},
)
axes.figure.set_size_inches(style.WIDTH, 1.2 + 0.8 * len(pairs))
axes.set(xscale="log", xlabel="capability Brier score", ylabel="")
ticks = [0.02, 0.05, 0.1, 0.2, 0.5]
axes.set_xticks(ticks, ticks)
axes.minorticks_off()
sns.move_legend(axes, "lower center", bbox_to_anchor=(0.4, 1), ncols=3)
axes.legend_.set_title("")

# %%
# needs pairs
notebook.say("""
So a probe carries its order to other data sets of its domain, where a few labels mend its level, and to another domain it
carries neither: there the labels are better spent on a probe of one's own, and starting it from the other one costs nothing.

## One draw of the labelled questions
""")

# %%
# needs pairs
name, probe = pairs[0]
questions, features = evaluation[name]
said = predicted.loc[name, probe].reindex(questions.index)
known = draw_training(questions, labels, 4, rng=np.random.default_rng(seed))
asked = questions.drop(known.index)
name, probe, len(known), len(asked)

# %%
# needs pairs
notebook.say(r"""
`known` are the labelled questions, with four of their samples. *Recalibrated* is the mean of
$\sigma(a + b\,\mathrm{logit}\,s)$ over what level $a$ and slope $b$ may be after the labels. Before them, a slope of 0,
a constant, is as likely as one of 1, the probe as it is; so the labels decide how far the probe's order is believed.
""")

# %%
# needs pairs
counts = known["correct"], known["total"]
adapted = adapt(said, said[known.index], *counts)
pd.DataFrame({"as it is": said, "recalibrated": adapted}).head(3)

# %%
# needs pairs
notebook.say("""
A new probe is logistic in the hidden states, here standardised without any labels. One that is *started from the probe* has
one more feature, the recalibrated confidence, which is large beside the others and so hardly shrunk.
""")

# %%
# needs pairs
states = StandardScaler().fit_transform(features.astype(float))
states = pd.DataFrame(states / np.sqrt(states.shape[1]), questions.index)
together = states.assign(other=logit(adapted))
new = LinearProbe(weight_decay=0.4 / labels)
started = new.fit(together.loc[known.index], *counts).predict(together)
alone = new.fit(states.loc[known.index], *counts).predict(states)

# %%
# needs pairs
ways = pd.DataFrame(
    {
        "as it is": said,
        "recalibrated": adapted,
        "constant": known["correct"].sum() / known["total"].sum(),
        "trained on the labels": alone,
        "started from the probe": started,
    },
    questions.index,
)
ways.loc[asked.index].apply(
    capability_brier, args=(asked["correct"], asked["total"]), corrected=True
)

# %%
# needs pairs
notebook.say("""
## How many labels?

The same with other numbers of labels, on average over the pairs. `score_few_labels` does what is shown above for many draws.
""")

# %%
# needs pairs
least = min(len(evaluation[name][0]) for name, _ in pairs)
sizes = [size for size in (5, 10, 20, 50) if size < least]
by_size = {
    size: pd.concat([draw_scores(*pair, size, DRAWS // 4) for pair in pairs])
    for size in sizes
}

# %% tags=["hide-input"] label="few-labels" evidence=["measured"] reads=["verdicts", "features"]
# needs pairs
table = pd.concat(by_size, names=["labels"]).groupby(["domain", "labels"])
table = table[list(WAYS)].mean().sort_index(ascending=[False, True])
tables.show(
    table,
    "Mean corrected capability Brier score (lower is better) over pairs of a "
    "data set and a probe of another one.",
    evidence=data["evidence"].iloc[0],
)

# %% [markdown]
# ## Summary
#
# - As it is, a probe is used on the data set that it was trained on; elsewhere a constant may be better.
# - Within a domain, recalibrate it with the few labels that there are; across domains, train on them.
# - A new probe that starts from the other is near the better of the two everywhere. Labels of 20 questions with four samples
#   each are 80 answers to draw and grade.
#
# ## Exercises
#
# **1 (easy).** A probe says 0.9 of every question of a new data set. Of nine labelled questions every one is solved in 1 of 10
# samples. What does the recalibrated probe say? *Hint:* a confidence that does not vary leaves only its level.

# %% tags=["hide-cell", "solution"]
adapt([0.9], labelled=[0.9] * 9, correct=[1] * 9, total=[10] * 9)

# %% [markdown]
# **2 (medium).** For 100 samples, are 10 labelled questions with 10 samples each better for the constant, or 50 with two?
# *Hint:* the variance of the mean is that of $\mu$ over questions by their number, and a noise.

# %% tags=["hide-cell", "solution"]
rng = np.random.default_rng(seed)
mu = rng.beta(0.5, 1.5, 10_000).reshape(100, 100)  # a hundred data sets
for asked_of, each in ((10, 10), (50, 2)):
    mean = rng.binomial(each, mu[:, :asked_of]).mean(axis=1) / each
    print(asked_of, ((mean - 0.25) ** 2).mean().round(4))

# %% [markdown]
# **3 (hard).** Questions are labelled in an order that depends on the probe: the twenty with the highest confidence. What becomes of
# the constant and of the recalibrated probe? *Hint:* draw $s$, let $\mu = s$.

# %% tags=["hide-cell", "solution"]
s = np.sort(rng.random(500))[::-1]
top = rng.binomial(10, s[:20])
better = adapt(s[20:], s[:20], top, [10] * 20)
constant = np.full(480, top.mean() / 10)
[float(((each - s[20:]) ** 2).mean()) for each in (constant, better)]
