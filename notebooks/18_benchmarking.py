# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Benchmarking with few labels or none
#
# The mean confidence estimates a model's accuracy without a single graded answer; this page measures by how much it is wrong,
# whether it ranks models rightly, and how it can be corrected by a few labels. The paper names label-free benchmarking in
# section 5.3 and does not try it.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`; all are shown
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here
labels: int = 50  # questions that are graded, one answer each

# %% tags=["hide-input"]
from itertools import combinations

import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import mean_interval
from capcal_lib.probes import nearest_probe
from capcal_lib.results import describe_runs, load_results, subjects
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_predict

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
described = {
    name: describe_runs(runs, name, k_eval=k_eval) for name in model_names()
}
real = [
    name
    for name, data in described.items()
    if "measured" in set(data["evidence"])
]
none = {"runs": "No model of this store has measured samples."}
notebook.about(model, described[model], lacking={} if real else none)

# %% tags=["hide-input"]
METHODS = ["Verbalized confidence", "P(True)", "Response consistency", "Probe"]


def confidences(name, dataset, results):
    """Return mu_hat and confidences, a column a method, by question."""
    own = results.loc[[dataset]].dropna(axis="columns", how="all")
    if probe := nearest_probe(own, dataset):
        own = own.rename(columns={probe: "Probe"})
    own["mu"] = own["correct"] / own["total"]
    kept = own[["mu", *(each for each in METHODS if each in own)]]
    return pd.concat({name: kept}, names=["model"])


# %% tags=["hide-input"]
# needs runs
every = []
for name in real:
    results = load_results(runs, name, k_eval=k_eval)
    results = results[results["total"] > 1]
    for dataset in results.index.unique("dataset"):
        every.append(confidences(name, dataset, results))
every = pd.concat(every)
cells = every.groupby(level=["model", "dataset"], sort=False)


# %% tags=["hide-input"]
def interval(terms):
    """Return a mean with its interval; subjects of a data set stay together."""
    terms = terms.dropna()
    own = terms.droplevel("model") if "model" in terms.index.names else terms
    clusters = subjects(own).to_numpy()
    return mean_interval(
        terms.to_numpy(), seed=seed, clusters=clusters, bounds=(-1, 1)
    )


# %% tags=["remove-cell"]
# needs runs
found = []
for (name, dataset), own in cells:
    for method in own.columns[1:]:
        if own[method].notna().any():
            miss = interval(own[method] - own["mu"])
            mean = own["mu"].mean()
            found.append(
                (name, dataset, method, mean, mean + miss.estimate, *miss[:3])
            )

# %% tags=["remove-cell"]
# needs runs
columns = [
    "model",
    "dataset",
    "method",
    "accuracy",
    "said",
    "miss",
    "low",
    "high",
]
found = pd.DataFrame(found, columns=columns)
wrong = (found["low"] > 0) | (found["high"] < 0)
typical = found["miss"].abs().groupby(found["method"]).median()
best = typical.idxmin()

# %% tags=["remove-cell"]
# needs runs
ranked = []
for (dataset, method), own in found.groupby(["dataset", "method"], sort=False):
    said = own.set_index("model")["said"]
    for a, b in combinations(said.index, 2):
        pair = (
            every["mu"]
            .xs(dataset, level="dataset", drop_level=False)
            .unstack("model")
        )
        gap = interval((pair[a] - pair[b]).dropna())
        sure = gap.low > 0 or gap.high < 0
        right = (said[a] - said[b]) * gap.estimate > 0
        ranked.append((dataset, method, a, b, sure, right))
columns = ["dataset", "method", "a", "b", "sure", "right"]
ranked = pd.DataFrame(ranked, columns=columns)
sure = ranked[ranked["sure"].astype(bool)]

# %% tags=["remove-cell"]
# needs runs
order = sure.groupby("method")["right"].agg(["sum", "size"])
notebook.glue(
    made=len(found),
    wrong=int(wrong.sum()),
    best=best,
    typical=100 * typical[best],
    worst=100 * typical.max(),
    best_wrong=int(wrong[found["method"] == best].sum()),
    best_made=int((found["method"] == best).sum()),
    pairs=len(sure),
    right=int(sure["right"].sum()),
)

# %% [markdown] needs="runs"
# Of {glue:text}`made` mean confidences (of a method, a model and a data set), {glue:text}`wrong` miss the accuracy
# significantly. The best method, *{glue:text}`best`*, misses it by {glue:text}`typical:.1f` points in the median and
# significantly in {glue:text}`best_wrong` of {glue:text}`best_made` cases; the worst misses it by {glue:text}`worst:.1f`. Of
# {glue:text}`pairs` comparisons of two models whose accuracies differ significantly, mean confidences rank
# {glue:text}`right` rightly.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Mean confidence against accuracy: one point per method, model and data set. On the dotted line the mean confidence would be the accuracy.", "name": "fig-label-free"}, "image": {"alt": "Scatter plot of mean confidence against accuracy with a dotted diagonal. Probes and response consistency lie nearer to the diagonal than verbalized confidence and P(True), many of which lie far above it."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs runs
axes = sns.scatterplot(
    found.replace({"model": {name: load_model(name).title for name in real}}),
    x="accuracy",
    y="said",
    hue="method",
    palette=style.palette(METHODS),
    style="model",
    s=60,
)
axes.axline((0, 0), slope=1, color=style.MUTED, linestyle=":")
axes.set(xlabel="accuracy", ylabel="mean confidence", ylim=(-0.03, 1.03))
sns.move_legend(axes, "center left", bbox_to_anchor=(1, 0.5))

# %% [markdown]
# ## Without labels
#
# The mean of a confidence is the accuracy if the confidence is calibrated on average, and that is just what is not known
# without labels. A probe is calibrated on its training questions; on others it may miss by any amount.

# %% tags=["hide-input"]
# needs runs
text = found.assign(
    miss=(100 * found[["miss", "low", "high"]]).apply(
        "{0[miss]:+z.0f} [{0[low]:+z.0f}, {0[high]:+z.0f}]".format, axis=1
    ),
    model=[load_model(name).short_title for name in found["model"]],
    dataset=[load_dataset(name).title for name in found["dataset"]],
    accuracy=(100 * found["accuracy"]).round(1),
)

# %% tags=["hide-input"] label="label-free-misses" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs runs
keys = ["model", "dataset", "accuracy"]
wide = text.pivot(index=keys, columns="method", values="miss")
wide = wide[[name for name in METHODS if name in wide]]
tables.show(
    wide.rename_axis(columns=None).rename_axis(
        ["model", "data set", "accuracy, %"]
    ),
    "Mean confidence less accuracy, in points, with 95 % intervals.",
    evidence="measured",
    **{"accuracy, %": "{:.1f}"},
)

# %% [markdown] needs="runs"
# ## Ranking models
#
# Ranking is easier than measuring, because errors that all models share cancel. Only pairs of models whose accuracies
# differ significantly are counted, so that there is a right order.

# %% tags=["hide-input"]
# needs runs
none = {"ranks": "No two models differ significantly, so none are ranked."}
notebook.lack(**({} if len(sure) else none))

# %% tags=["hide-input"] label="label-free-ranking" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs ranks
pairs = sure.pivot_table(
    index="method",
    columns="dataset",
    values="right",
    aggfunc=lambda own: f"{own.sum()} of {len(own)}",
)
pairs = pairs.reindex(METHODS).dropna(how="all").fillna("–")
pairs.columns = [load_dataset(name).title for name in pairs.columns]
tables.show(
    pairs.rename_axis("method"),
    "Pairs of models that the mean confidence ranks rightly.",
    evidence="measured",
)

# %% tags=["remove-cell"]
# needs runs
agreed = found.groupby(["model", "method"])[["accuracy", "said"]].corr(
    "spearman"
)
agreed = agreed.xs("said", level=2)["accuracy"].unstack()
enough = found.groupby("model")["dataset"].nunique() > 2
agreed = agreed[enough].reindex(columns=METHODS)
sets = found[found["model"].isin(enough.index[enough])]
counts = sets.groupby("model")["dataset"].nunique()

# %% [markdown] needs="runs"
# The same for data sets: how well does the mean confidence of one model order the data sets by its accuracy? These are rank
# correlations over a handful of data sets each, so only their sign and rough size mean something.

# %% tags=["hide-input"] label="label-free-sets" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs runs
agreed.index = [load_model(name).short_title for name in agreed.index]
agreed.insert(0, "data sets", counts.to_numpy())
tables.show(
    agreed.rename_axis("model"),
    "Spearman correlation of mean confidence and accuracy over data sets.",
    digits=1,
    evidence="measured",
)

# %% [markdown]
# ## With a few labels
#
# Grade one answer to each of $n$ questions, and let the confidence fill in the others. *Prediction-powered inference*
# {cite:p}`angelopoulos2023prediction` takes the mean confidence of all questions and adds what the labels say it
# misses; the weight $\lambda$ of the confidence is chosen so that a useless one is left out:
#
# $$
# \hat\theta = \lambda\,\overline{s}_{\text{all}} + \overline{(C - \lambda s)}_{\text{labelled}}
# $$


# %%
def powered(label, s, s_rest):
    """Return an accuracy with its standard error."""
    n, rest = len(label), len(s_rest)
    spread = np.var([*s, *s_rest], ddof=1)
    weight = np.cov(label, s)[0, 1] / max(spread, 1e-12) / (1 + n / rest)
    left = label - weight * s
    error = np.sqrt(weight**2 * spread / rest + left.var(ddof=1) / n)
    return weight * np.mean(s_rest) + left.mean(), error


# %% [markdown]
# Here the model is right on three of four labelled questions, but the others look harder:

# %%
label, s = np.array([1, 0, 1, 1]), np.array([0.9, 0.2, 0.8, 0.3])
powered(label, s, s_rest=np.array([0.2, 0.3, 0.1, 0.4, 0.2, 0.3]))

# %%
label.mean()

# %% [markdown]
# A simulation, with {glue:text}`labels` labels of a thousand questions: the estimate is right on average and its normal interval
# covers nearly as it says, whatever the confidence; a good confidence makes the error smaller, a useless one hardly larger.
# That takes right and wrong labels enough. Of 50 labels at a mean accuracy of 0.15 or 0.95 the interval covers the accuracy in
# about 0.9 of the studies, at 0.03 in 0.7 and at 0.006 in 0.2, where most sets of labels hold no right answer at all: there,
# count the labels and use an interval of a proportion.

# %% tags=["hide-input"] label="label-free-simulated" paper=["section-5.3"] evidence=["simulated"]
rng, rows = np.random.default_rng(seed), []
for name, blur in {"good": 0.1, "poor": 0.5, "useless": 50}.items():
    for _ in range(400):
        mu = rng.beta(0.5, 0.5, 1000)
        s = np.clip(mu + rng.normal(0, blur, 1000), 0, 1)
        label = rng.binomial(1, mu[:labels])
        mean, error = powered(label, s[:labels], s[labels:])
        held = abs(mean - 0.5) < 1.96 * error
        rows.append((name, (mean - 0.5) ** 2, (label.mean() - 0.5) ** 2, held))
columns = ["confidence", "error with it", "error of labels alone", "covered"]
drawn = pd.DataFrame(rows, columns=columns).groupby("confidence", sort=False)
drawn = drawn.mean()
drawn.iloc[:, :2] **= 0.5
notebook.glue(labels=labels)
tables.show(
    drawn,
    "Root mean squared error of the accuracy, and coverage of 95 % intervals.",
    evidence="simulated",
)


# %% [markdown] needs="runs"
# On the recorded runs: labels of {glue:text}`labels` random questions, over and over, against the accuracy on all of them.


# %% tags=["hide-input"]
def errors(mu, s, rng, times=200):
    """Return root mean squared errors: labels alone, and with s."""
    missed = []
    for _ in range(times):
        order = rng.permutation(len(mu))
        seen, rest = order[:labels], order[labels:]
        label = rng.binomial(1, mu[seen])
        mean, _ = powered(label, s[seen], s[rest])
        missed.append((label.mean() - mu.mean(), mean - mu.mean()))
    return np.sqrt(np.square(missed).mean(axis=0))


# %% tags=["hide-input"]
def saved(own, method):
    """Return the share of labels that a confidence saves, with an interval.

    It is the share of a label's variance that a line through the confidence
    explains, on questions that did not draw the line.
    """
    own = own.dropna(subset=[method])
    s, mu = own[[method]].to_numpy(), own["mu"]
    flat = (mu.sum() - mu) / (len(mu) - 1)
    line = cross_val_predict(LinearRegression(), s, mu, cv=10)
    gain = (mu - flat) ** 2 - (mu - line) ** 2
    variance = mu.mean() * (1 - mu.mean())
    return [end / variance for end in interval(gain)[:3]]


# %% tags=["hide-input"]
# needs runs
rng, rows = np.random.default_rng(seed), []
for (name, dataset), own in cells:
    for method in own.columns[1:]:
        own_s = own.dropna(subset=[method])
        if len(own_s) > 1.5 * labels and own_s[method].var() > 0:
            mu, s = own_s["mu"].to_numpy(), own_s[method].to_numpy()
            both = 100 * errors(mu, s, rng)
            miss = 100 * abs((s - mu).mean())
            rows.append(
                (name, dataset, method, miss, *both, *saved(own, method))
            )
columns = ["model", "dataset", "method", "no labels", "labels", "both"]
few = pd.DataFrame(rows, columns=[*columns, "saved", "low", "high"])

# %% tags=["remove-cell"]
# needs runs
helped = few.groupby("method")["low"].agg(
    better=lambda low: (low > 0).sum(), cases="size"
)
top = few.groupby("method")["saved"].mean().idxmax()
notebook.glue(
    top=top,
    top_better=int(helped.loc[top, "better"]),
    top_cases=int(helped.loc[top, "cases"]),
    top_saved=100 * few.groupby("method")["saved"].mean()[top],
    free=int((few["no labels"] < few["labels"]).sum()),
    all_cases=len(few),
)

# %% tags=["hide-input"] label="label-free-few" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs runs
mean = few.groupby("method")[["no labels", "labels", "both"]].median()
mean["labels saved"] = few.groupby("method")["saved"].mean()
mean["significantly"] = [
    f"{helped.loc[name, 'better']} of {helped.loc[name, 'cases']}"
    for name in mean.index
]
tables.show(
    mean.reindex([name for name in METHODS if name in mean.index]),
    f"Median error in points without labels, with {labels} labels, with both; "
    "labels saved.",
    digits=1,
    evidence="measured",
    **{"labels saved": "{:.1%}"},
)

# %% [markdown] needs="runs"
# *Labels saved* is the share of a label's variance that the confidence explains on other questions: with it, that
# many fewer labels are needed for the same error. *{glue:text}`top`* saves {glue:text}`top_saved:.0f` % in the mean,
# significantly in {glue:text}`top_better` of {glue:text}`top_cases` cases. Most of a label's variance is that of the
# answer itself, and no confidence explains that. In {glue:text}`free` of {glue:text}`all_cases` cases the mean confidence
# alone is nearer to the accuracy than {glue:text}`labels` labels are; which ones they are is not known without labels.
#
# ## Summary
#
# - A mean confidence is an accuracy only where it is calibrated, which takes labels to know.
# - Ranking models by mean confidence is easier than measuring one, and is not safe either.
# - Prediction-powered inference is right on average with any confidence, and gains as much as the confidence explains; its
#   interval needs right and wrong answers among the labels.
#
# ## Exercises
#
# **1 (easy).** What does `powered` return for a confidence that is 0.5 for all questions? *Hint:* the weight.

# %% tags=["hide-cell", "solution"]
label = np.array([1, 0, 1, 1])
assert powered(label, np.full(4, 0.5), np.full(9, 0.5))[0] == label.mean()

# %% [markdown]
# **2 (medium).** How many labels does the true $\mu$ save, where $\mu$ is uniform on $[0, 1]$? *Hint:* the variance of one answer
# is $\overline\mu(1-\overline\mu)$, and $\mu$ explains its own variance.

# %% tags=["hide-cell", "solution"]
mu = np.random.default_rng(seed).random(100_000)
round(mu.var() / (mu.mean() * (1 - mu.mean())), 2)

# %% [markdown]
# **3 (hard).** Grade ten answers to each labelled question in place of one. Does a good confidence save more? *Hint:* the labels'
# variance falls, the questions' does not.

# %% tags=["hide-cell", "solution"]
s = np.clip(mu + np.random.default_rng(seed).normal(0, 0.1, mu.size), 0, 1)
explained = np.corrcoef(s, mu)[0, 1] ** 2 * mu.var()
[round(explained / (mu.var() + (mu * (1 - mu)).mean() / k), 2) for k in (1, 10)]
