# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Predicting pass@k from a confidence
#
# A confidence says how often one attempt succeeds; this page shows what it says of the best of $k$ attempts, and how
# wrong that is: section 5.1 and appendix D.1 of the paper.

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

# %% tags=["hide-input"]
from capcal_lib.applications import (
    fit_concentration,
    pass_at_k,
    pass_at_k_error_terms,
    simulate_pass_at_k,
    split_counts,
)
from capcal_lib.book import notebook, style, tables
from capcal_lib.confidence import read_answers, vote_terms
from capcal_lib.manifests import load_dataset, load_model

# %% tags=["hide-input"]
from capcal_lib.metrics import compare, mean_interval
from capcal_lib.probes import describe_probes, training_data
from capcal_lib.reported import beta_from_moments, beta_moments, load_reported
from capcal_lib.results import describe_runs, load_results, subjects
from capcal_lib.runs import find_run
from scipy.stats import betabinom

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval, verdicts=verdicts)
asked = {"k_eval": k_eval, "verdicts": verdicts}
recipe = "paper" if protocol == "paper" else "tuned"
asked |= {"held_out": protocol != "paper", "recipe": recipe}
results = load_results(runs, model, **asked).query("total > 1")

# %% tags=["hide-input"]
probes = {name: load_dataset(name).probe for name in data.index}
probed = [
    name
    for name, probe in probes.items()
    if probe in results and results.loc[name, probe].notna().any()
]
deep = data.index[data["fewest"] >= 32]  # samples that pass@16 takes
probed = [name for name in probed if name in deep] or probed
lacking = {"probes": "No probe can be trained for these data sets."}
lacking = {} if probed else lacking
if not {"Verbalized confidence", "P(True)"} <= {*results}:
    lacking["samples"] = "Its runs lack verbalized confidences or P(True)."
notebook.about(
    model, data, lacking=lacking, protocol=protocol, verdicts=verdicts
)

# %% tags=["remove-cell"]
# needs samples
evidence = data["evidence"].iloc[0]
share = results["correct"] / results["total"]
spread = share.groupby(level="dataset").var()
shown = max(probed or data.index, key=spread.get)
title = load_dataset(shown).title


# %% tags=["hide-input"]
def learned(dataset):
    """Learn nu and the mean accuracy from training questions."""
    manifest = load_dataset(dataset)
    run = find_run(runs, model, dataset, manifest.training_split)
    seen, _ = training_data(run, verdicts)
    mean = np.full(len(seen), seen["correct"].sum() / seen["total"].sum())
    mean_nu = fit_concentration(mean, seen["correct"], seen["total"])
    about = describe_probes(runs, model, recipe=recipe, verdicts=verdicts)
    nu = about.loc[manifest.probe, "concentration"]
    return nu, mean[0], mean_nu


# %% tags=["hide-input"]
def predictions(dataset, ks):
    """Predict pass@k: a (questions, ks) array a method."""
    own, found = results.loc[dataset], {}
    if dataset in probed:
        nu, mean, mean_nu = learned(dataset)
        same, s = np.full(len(own), mean), own[probes[dataset]]
        found["Constant, posterior"] = simulate_pass_at_k(
            same, ks, concentration=mean_nu
        )
        found["Probe, plug-in"] = simulate_pass_at_k(s, ks)
        found["Probe, posterior"] = simulate_pass_at_k(s, ks, concentration=nu)
    for name in ("Verbalized confidence", "P(True)"):
        if name in own and own[name].notna().any():
            found[name] = simulate_pass_at_k(own[name].fillna(0.5), ks)
    return found


# %% tags=["remove-cell"]
# needs samples
gained = {"Probe, plug-in": [], "Constant, posterior": []}
for name in probed:
    own, ks = results.loc[name], [4, 16]
    terms = {
        method: pass_at_k_error_terms(
            predicted, own["correct"], own["total"], ks
        )
        for method, predicted in predictions(name, ks).items()
    }
    for other in gained:
        for less in (terms[other] - terms["Probe, posterior"]).T:
            gained[other] += [less] if np.isfinite(less).all() else []


def intervals(gains, level=0.95):
    """Return the mean of each gain with its interval."""
    seeds = [np.random.default_rng(seed) for _ in gains]
    return [
        mean_interval(gain, rng=rng, level=level, bounds=(-1, 1))
        for gain, rng in zip(gains, seeds, strict=True)
    ]


# %% tags=["remove-cell"]
# needs samples
plug, constant = map(intervals, gained.values())
together = 1 - 0.05 / max(1, 2 * len(plug))  # Bonferroni
surely = [
    sum(g.low > 0 for g in intervals(each, together))
    for each in gained.values()
]
notebook.glue(surely_plug=surely[0], surely_constant=surely[1])
notebook.glue(pairs=len(plug), shown=title)
fewest = data.loc[probed or data.index, "fewest"].min()
notebook.glue(fewest=int(fewest))
notebook.glue(over_plug=sum(gain.low > 0 for gain in plug))
notebook.glue(under_plug=sum(gain.high < 0 for gain in plug))
notebook.glue(over_constant=sum(gain.low > 0 for gain in constant))
notebook.glue(under_constant=sum(gain.high < 0 for gain in constant))

# %% tags=["remove-cell"]
# needs probes
said = (
    "Right of the line: a smaller error as a posterior, for a data set and k."
)
heads = ["estimate", "low", "high"]
gains = pd.DataFrame(plug)[heads]
gains = gains.sort_values("estimate", ascending=False, ignore_index=True)
notebook.glue(gains=tables.strip(gains, said))

# %% [markdown] needs="samples"
# Taken at its word, a confidence promises too much of many attempts. Read as the mean of a {term}`posterior
# <posterior confidence>`, the same confidence of the tuned linear probe predicts pass@4 and pass@16 significantly
# better in {glue:text}`over_plug` of {glue:text}`pairs` cases (a $k$, and a data set with at least {glue:text}`fewest` samples of each
# question) and significantly worse in {glue:text}`under_plug`. Against the same constant for every question, which
# needs no probe, it is significantly better in {glue:text}`over_constant` and worse in {glue:text}`under_constant`.
# Judged all together (Bonferroni), {glue:text}`surely_plug` gains over the plug-in and {glue:text}`surely_constant`
# over the constant stand.

# %% tags=["remove-cell"]
# needs samples
own = results.loc[shown]
largest = int(own["total"].min())
curve = np.unique(np.geomspace(1, largest, 40).round().astype(int))
actual = pass_at_k(own["correct"], own["total"], curve)
means = {"Actual": actual.mean(axis=0)} | {
    name: each.mean(axis=0) for name, each in predictions(shown, curve).items()
}


# %% tags=["hide-input"]
def band(dataset, ks):
    """Return the limits of a posterior's mean pass@k: 1.96 deviations."""
    s, nu = results.loc[dataset, probes[dataset]], learned(dataset)[0]
    ks = np.asarray(ks)
    unsolved = 1 - simulate_pass_at_k(s, ks, concentration=nu)
    square = 1 - simulate_pass_at_k(s, 2 * ks, concentration=nu)
    spread = np.sqrt(np.maximum(square - unsolved**2, 0).sum(axis=0)) / len(s)
    middle = 1 - unsolved.mean(axis=0)
    return middle - 1.96 * spread, middle + 1.96 * spread


# %% tags=["remove-cell"]
# needs probes
within = []
for name in probed:
    each = results.loc[name]
    ks = [k for k in (1, 4, 16, 64) if k <= each["total"].min()]
    true = pass_at_k(each["correct"], each["total"], ks).mean(axis=0)
    low, high = band(name, ks)
    within += list((low <= true) & (true <= high))
notebook.glue(within=int(sum(within)), of=len(within))

# %% tags=["remove-cell"]
# needs samples
drawn = {"Actual": style.INK, "Probe, posterior": "#46a281"}
drawn |= {"Probe, plug-in": "#2b6450", "P(True)": "#9b7cd2"}
drawn |= {"Verbalized confidence": "#bc3e0b"}
lines = pd.DataFrame(means, index=pd.Index(curve, name="k"))
lines = lines[[name for name in drawn if name in lines]]

# %% tags=["hide-input"] mystnb={"figure": {"caption": "pass@k of the data set whose questions differ most, from its samples and as confidences predict it: by the tuned linear probe, taken at its word (plug-in) or as the mean of a posterior with its 95 % band, and by what the model says of itself.", "name": "fig-pass-at-k"}, "image": {"alt": "Line plot of pass@k against k on a logarithmic axis. The plug-in prediction of the probe rises well above the actual curve as k grows; the posterior one stays closer."}} paper=["figure-9", "appendix-d.1", "appendix-d.1.1", "appendix-d.1.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
axes = sns.lineplot(lines, palette=drawn, dashes=False)
if shown in probed:
    ends = band(shown, curve)
    axes.fill_between(curve, *ends, color="#46a281", alpha=0.15, linewidth=0)
axes.set(xscale="log", xlabel="k", ylabel="pass@k", title=title)
axes.set_xticks(ticks := [k for k in (1, 4, 16, 64) if k <= largest], ticks)
axes.minorticks_off()
style.label_lines(axes)

# %% [markdown]
# ## As the paper prints it
#
# The paper prints the squared error of three predictions, question by question, for three models. *Oracle RC* takes the
# correctness of one sample for the confidence. *Oracle CC* is $\hat\mu$ of the very samples that it is scored on (*in
# sample*), so that it cannot fail. *Probe (MATH)* has a lower error than Oracle RC in {glue:text}`printed_lower` of
# {glue:text}`printed_pairs` printed cells.


# %% tags=["hide-input"]
def as_printed(table):
    """Turn a printed table into a row a method and a column a k."""
    rows = load_reported(table)
    rows["model"] = [load_model(name).paper_name for name in rows["model"]]
    rows["attempts"] = [f"pass@{k}" for k in rows["k"]]
    wide = rows.set_index(["model", "method", "attempts"])["value"].unstack()
    order = wide.index.unique("method").sort_values(ascending=False)
    return wide[rows["attempts"].unique()].reindex(order, level="method")


math, aime = as_printed("passk_math500"), as_printed("passk_aime25")

# %% tags=["remove-cell"]
both = pd.concat({"math500": math, "aime25": aime})
probe = both.xs("Probe (MATH)", level="method")
better = probe < both.xs("Oracle RC", level="method")
notebook.glue(
    printed_lower=int(better.to_numpy().sum()), printed_pairs=better.size
)

# %% tags=["hide-input"] label="passk-reported" paper=["table-3", "section-5.1"] evidence=["reported"] reads=["passk_math500"]
tables.show(
    math.rename(index={"Oracle CC": "Oracle CC (in sample)"}),
    "Squared error on MATH-500 as printed (lower is better).",
    digits=4,
    evidence="reported",
)

# %% tags=["hide-input"] label="passk-reported-aime25" paper=["table-8", "appendix-d.1.2"] evidence=["reported"] reads=["passk_aime25"]
tables.show(
    aime.rename(index={"Oracle CC": "Oracle CC (in sample)"}),
    "Squared error on AIME25 as printed (lower is better).",
    digits=4,
    evidence="reported",
)

# %% [markdown]
# The paper also draws pass@$k$ of each data set. Its numbers are not printed, but two that are give most of it away: the
# mean accuracy and the score of *Uniform random* fix a Beta distribution of $\mu$ over questions, and that has its own
# pass@$k$. The curve of Oracle RC needs no computing at all: it is flat, at the mean accuracy.

# %% tags=["hide-input"]
ks, rows = [1, 2, 4, 8, 16, 32, 64], []
printed = load_reported()
pairs = printed[printed["table"].isin(["passk_math500", "passk_aime25"])]
for name, dataset in pairs[["model", "dataset"]].drop_duplicates().to_numpy():
    a, b = beta_from_moments(*beta_moments(name, dataset))
    solved = simulate_pass_at_k([a / (a + b)], ks, concentration=a + b)
    curve = pd.DataFrame({"k": ks, "pass@k": solved[0]})
    curve["model"] = load_model(name).paper_name
    rows.append(curve.assign(dataset=load_dataset(dataset).title))

# %% tags=["hide-input"] mystnb={"figure": {"caption": "pass@k of the paper's models, expected from two printed numbers (lines; simulated), and what the authors' code repository says of one of them (crosses; read off).", "name": "fig-pass-at-k-paper"}, "image": {"alt": "Two panels, MATH-500 and AIME25, each with a rising line for each of three models. On MATH-500 all lie above 0.9 from k = 4 on; the crosses of gpt-oss-20b lie on its line. On AIME25 the lines rise further and lie further apart."}} paper=["figure-9", "appendix-d.1.2"] evidence=["simulated", "read off"] reads=["main", "mean_accuracy", "passk_actual"]
expected = pd.concat(rows, ignore_index=True)
look = {"x": "k", "y": "pass@k"}
grid = sns.relplot(
    expected,
    kind="line",
    hue="model",
    col="dataset",
    height=3,
    aspect=1.2,
    facet_kws={"legend_out": False},
    **look,
)
published = load_reported("passk_actual", source="reference code")
published = published.rename(columns={"value": "pass@k"})
sns.scatterplot(
    published, ax=grid.axes[0, 0], marker="x", color=style.INK, **look
)
grid.set(xscale="log", xticks=[1, 4, 16, 64], xticklabels=[1, 4, 16, 64])
grid.set_titles("{col_name}").set_axis_labels("k", "pass@k")
sns.move_legend(grid, "lower left", bbox_to_anchor=(0.12, 0.2), title="")

# %% tags=["remove-cell"]
beta = expected.query("model == 'gpt-oss-20b' and dataset == 'MATH-500'")
apart = beta.merge(published, on="k", suffixes=("", " published"))
notebook.glue(
    beta_apart=(apart["pass@k"] - apart["pass@k published"]).abs().max()
)

# %% [markdown]
# Where both are known, for gpt-oss-20b on MATH-500, they differ by at most {glue:text}`beta_apart:.3f`.
#
# ## From counts to pass@k
#
# Of $n$ samples $c$ are correct. Drawn without replacement, $k$ of them all fail with probability
# $\binom{n-c}{k} / \binom{n}{k}$, and one minus this is an unbiased estimate of pass@$k$.

# %%
from scipy.special import comb

c, n, ks = np.array([1, 5, 20]), 20, np.array([1, 4, 16, 64])
with np.errstate(invalid="ignore"):  # 0/0 where k > n
    solved = 1 - comb(n - c[:, None], ks) / comb(n, ks)

# %%
k_columns = pd.Index(ks, name="k")
pd.DataFrame(solved, pd.Index(c, name="correct"), columns=k_columns).round(3)

# %% [markdown]
# With 20 samples nothing is known of $k = 64$: there are no 64 samples to draw. `pass_at_k` says the same, for any
# counts and without overflow, and says NaN where $n$ does not suffice.

# %%
estimated = pass_at_k(c, [n] * 3, ks)
assert np.allclose(estimated, solved, equal_nan=True)
estimated.round(3)

# %% [markdown]
# ## From a confidence to pass@k
#
# If each attempt succeeds with probability $s$, at least one of $k$ does with probability $1-(1-s)^k$. This *plug-in*
# prediction is the paper's. It is concave in $s$, so that being wrong in both directions does not cancel: of two
# questions with $\mu = 0$ and $\mu = 1$, both given $s = 1/2$, exactly one is solved however often one tries, and the
# plug-in says nearly two.
#
# A *posterior* prediction takes $s$ as the mean of what is believed of $\mu$, a Beta distribution with parameters
# $s\nu$ and $(1-s)\nu$. The *concentration* $\nu$ says how sure the confidence is.

# %%
believed = {
    nu: simulate_pass_at_k([0.5], ks, concentration=nu)[0]
    for nu in (np.inf, 10, 1)
}
believed = pd.DataFrame(believed, pd.Index(ks, name="k"))
believed.rename_axis(columns="ν").round(3)

# %% [markdown] needs="probes"
# $\nu$ is learned from training questions by the likelihood of their counts. A probe has seen its training questions,
# so the predictions that enter are those of cross-validation, each made without its own question. On
# {glue:text}`shown`, $\nu$ is {glue:text}`nu:.2f`.

# %% [markdown] needs="probes"
# A posterior also says how far the curve may lie from what it expects: the variance of $(1-\mu)^k$ is
# $\mathbb{E}(1-\mu)^{2k} - (\mathbb{E}(1-\mu)^k)^2$, which pass@$2k$ and pass@$k$ give. With a band of 1.96 standard
# deviations of the mean over questions, the samples lie inside in {glue:text}`within` of {glue:text}`of` cases (data set
# and $k$ of 1, 4, 16, 64). The band takes the posterior as right, and $\nu$ as known.

# %% tags=["remove-cell"]
nu = np.inf  # takes confidences at their word; stays where no probe is trained

# %%
# needs samples
if shown in probed:
    about = describe_probes(runs, model, recipe=recipe, verdicts=verdicts)
    nu = about.loc[probes[shown], "concentration"]

# %% tags=["remove-cell"]
# needs samples
notebook.glue(nu=nu)
ks = [1, 4, 16, 64]
own = results.loc[shown]
counts = own["correct"], own["total"]

# %% [markdown] needs="samples"
# ## Question by question
#
# Against the measured pass@$k$ even a perfect prediction has an error, because the measurement is noisy. With $f$ the
# predicted chance that all $k$ attempts fail and $Q_j = \binom{n-c}{j}/\binom{n}{j}$, the term
# $f^2 - 2 f Q_k + Q_{2k}$ has the true squared error for its expectation. It needs $2k$ samples of a question.

# %%
# needs samples
terms = {
    name: pass_at_k_error_terms(predicted, *counts, ks)
    for name, predicted in predictions(shown, ks).items()
}

# %% [markdown] needs="samples"
# Oracles are scored honestly: they know one half of a question's samples, and are scored on the other half. Oracle RC
# takes a sample of the first half at its word, which is correct with probability $\hat\mu$.

# %%
# needs samples
known, held_out = split_counts(*counts, rng=np.random.default_rng(seed))
half = known[0] / known[1]
oracle = simulate_pass_at_k(half, ks)
terms["Oracle CC"] = pass_at_k_error_terms(oracle, *held_out, ks)

# %%
# needs samples
right = pass_at_k_error_terms(np.ones_like(oracle), *held_out, ks)
wrong = pass_at_k_error_terms(np.zeros_like(oracle), *held_out, ks)
terms["Oracle RC"] = half[:, None] * right + (1 - half)[:, None] * wrong

# %% tags=["hide-input"] label="passk-errors" paper=["table-3", "table-8", "section-5.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
scored = {}
for column, k in enumerate(k for k in ks if 2 * k <= largest):
    of_k = pd.DataFrame({name: each[:, column] for name, each in terms.items()})
    competing = of_k.drop(columns=["Oracle CC", "Oracle RC"])
    best = compare(competing, rng=np.random.default_rng(seed))["may_be_best"]
    table = compare(of_k, rng=np.random.default_rng(seed))
    table["may_be_best"] = best.reindex(table.index, fill_value=False)
    scored[f"pass@{k}"] = table.rename(columns={"estimate": "brier"})
tables.show_scores(
    pd.concat(scored, names=["dataset", "method"]),
    f"Corrected squared error on {title} (lower is better).",
    evidence=evidence,
)

# %% [markdown] needs="samples"
# Scoring pass@$k$ without bias takes $2k$ samples, and of an oracle $4k$: with {glue:text}`largest` of them $k$
# reaches {glue:text}`halves`, for oracles {glue:text}`quarters`, and a dash stands beyond. For comparison with the
# paper, its own protocol: plug-in predictions against the measured pass@$k$, oracles *in sample*, and $k$ up to the
# number of samples.

# %% tags=["hide-input"] label="passk-errors-paper" paper=["table-3", "table-8"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
notebook.glue(largest=largest, halves=largest // 2, quarters=largest // 4)
measured, mu = pass_at_k(*counts, ks), (counts[0] / counts[1]).to_numpy()
predicted = {"Oracle CC (in sample)": simulate_pass_at_k(mu, ks)}
predicted |= predictions(shown, ks)
errors = {
    name: ((each - measured) ** 2).mean(axis=0)
    for name, each in predicted.items()
    if "posterior" not in name
}
missed = mu[:, None] * (1 - measured) ** 2 + (1 - mu[:, None]) * measured**2
errors = {"Oracle RC (in sample)": missed.mean(axis=0)} | errors
table = pd.DataFrame(errors, index=[f"pass@{k}" for k in ks]).T
tables.show(
    table.rename_axis("method"),
    f"Squared error on {title} by the paper's protocol (lower is better).",
    digits=4,
    evidence=evidence,
)

# %% tags=["remove-cell"]
# needs probes
rows, simple = [], ("Constant, posterior", "Verbalized confidence", "P(True)")
for name in probed:
    each, groups = results.loc[[name]], subjects(results.loc[[name]])
    error = {
        method: pass_at_k_error_terms(
            predicted, each["correct"], each["total"], [4, 16]
        ).mean(axis=1)
        for method, predicted in predictions(name, [4, 16]).items()
    }
    best = min(set(simple) & set(error), key=lambda rule: error[rule].mean())
    for method in ("Probe, plug-in", "Probe, posterior"):
        rng, gain = np.random.default_rng(seed), error[best] - error[method]
        ends = mean_interval(
            gain, rng=rng, clusters=groups.to_numpy(), bounds=(-1, 1)
        )
        rows.append(["pass@k", method, name, best, *ends[:3]])

# %% [markdown] needs="probes"
# The simple rules need no probe: the constant as a posterior, verbalized confidence and P(True). Against the best of them
# on each data set, which is chosen by these very results and so favoured:

# %% tags=["hide-input"] label="passk-comparison" paper=["section-5.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs probes
heads = ["application", "method", "dataset", "against"]
comparison = pd.DataFrame(rows, columns=[*heads, "estimate", "low", "high"])
wide = comparison.assign(dataset=comparison["dataset"].map(data["title"]))
heads = {"dataset": "data set", "estimate": "gain"}
tables.show(
    wide.drop(columns="application").rename(columns=heads),
    "By how much less the squared error of pass@4 and pass@16 is (higher is better), "
    "with its 95 % interval.",
    evidence=evidence,
)

# %% [markdown]
# ## Any, most, or all of $k$
#
# What $k$ attempts are worth depends on how they are used. *pass@$k$*: someone can tell whether any is correct.
# *majority@$k$*: nobody can, and the most frequent answer counts. *pass^$k$*: all must be correct, as where every step
# of a chain has to hold. For a posterior with parameters $a$ and $b$ all three have a closed form; the majority's takes
# two answers, so that a majority is more than $k/2$.

# %%
odd = np.arange(1, 16, 2)


def uses(s, nu):
    """Expect the best, the majority and all of k attempts, by question."""
    s, nu = np.clip(np.asarray(s), 0.005, 0.995)[:, None], min(nu, 1e6)
    best = simulate_pass_at_k(s[:, 0], odd, concentration=nu)
    every = 1 - simulate_pass_at_k(1 - s[:, 0], odd, concentration=nu)
    most = betabinom.sf(odd // 2, odd, s * nu, (1 - s) * nu)
    return {"pass@k": best, "majority@k": most, "pass^k": every}


# %%
unsure = {name: each[0] for name, each in uses([0.6], 5).items()}
pd.DataFrame(unsure, pd.Index(odd, name="k")).T.round(3)

# %% [markdown] needs="probes"
# On the recorded samples the majority is taken over blocks of $k$ samples. With more than two answers it may be right
# more often than two answers let expect, as wrong answers split: on {glue:text}`shown`, at $k$ = {glue:text}`votes`,
# majority@$k$ is {glue:text}`majority:.2f`, expected {glue:text}`expected_majority:.2f`, and pass^$k$
# {glue:text}`every:.2f`, expected {glue:text}`expected_every:.2f`.

# %% tags=["remove-cell"]
# needs probes
answers = read_answers(data.loc[shown, "run"], k=k_eval)
odd = odd[odd <= largest]
notebook.glue(votes=int(odd[-1]))
blocks = [vote_terms(answers, k).fillna({"right": 0}) for k in odd[1:]]
votes = [each.groupby("row")["right"].mean().mean() for each in blocks]
c, n = results.loc[shown, "correct"], results.loc[shown, "total"]
seen = {
    "pass@k": pass_at_k(c, n, odd).mean(axis=0),
    "majority@k": [(c / n).mean(), *votes],
    "pass^k": 1 - pass_at_k(n - c, n, odd).mean(axis=0),
}
promised = uses(results.loc[shown, probes[shown]], learned(shown)[0])
promised = {name: each.mean(axis=0) for name, each in promised.items()}

# %% tags=["remove-cell"]
# needs probes
kinds = {"measured": seen, "posterior": promised}
tidy = pd.concat(
    {
        kind: pd.DataFrame(each, pd.Index(odd, name="k"))
        for kind, each in kinds.items()
    },
    names=["kind"],
)
tidy = tidy.rename_axis(columns="use").stack().rename("chance").reset_index()
notebook.glue(majority=seen["majority@k"][-1], every=seen["pass^k"][-1])
notebook.glue(expected_majority=promised["majority@k"][-1])
notebook.glue(expected_every=promised["pass^k"][-1])

# %% tags=["hide-input"] mystnb={"figure": {"caption": "The best, the majority and all of k attempts: measured, and as the posterior of the tuned linear probe expects them (with two answers, for the majority).", "name": "fig-uses-of-k"}, "image": {"alt": "Line plot against k. From a common start pass@k rises, pass^k falls and majority@k stays between them; the dashed lines are the expected ones."}} evidence=["measured"] reads=["verdicts", "features"]
# needs probes
colors = {"pass@k": "#3866bd", "majority@k": "#be8a1d", "pass^k": "#bc3e0b"}
look = {"hue": "use", "style": "kind", "palette": colors}
axes = sns.lineplot(tidy, x="k", y="chance", **look)
axes.set(xlabel="k", ylabel="share of questions", title=title)
axes.set_xticks(odd, odd)
sns.move_legend(axes, "center left", bbox_to_anchor=(1, 0.5), title="")

# %% [markdown]
# [pass@k in detail](25_pass_at_k_in_detail.ipynb) tests whether the posterior is calibrated, and predicts pass@$k$ beyond
# the samples at hand, up to 10,000 attempts.
#
# ## Summary
#
# - pass@k needs the expected accuracy of every question, not its mean: this is what capability calibration estimates.
# - A confidence that is right on average still promises too much of many attempts, unless it says how sure it is.
# - Score an oracle on samples that it has not seen, and a prediction without the noise of the counts.
#
# ## Exercises
#
# **1 (easy).** Show that the corrected error at $k = 1$ is the corrected capability Brier score.
# *Hint:* $f = 1 - s$, $Q_1 = 1 - c/n$, and `capability_brier_terms` is in `capcal_lib.metrics`.

# %% tags=["hide-cell", "solution"]
from capcal_lib.metrics import capability_brier_terms

s, c, n = [0.2, 0.9], [3, 5], [10, 10]
terms = pass_at_k_error_terms(np.array(s)[:, None], c, n, [1])[:, 0]
assert np.allclose(terms, capability_brier_terms(s, c, n, corrected=True))

# %% [markdown]
# **2 (medium).** How likely is it that *all* of $k$ attempts are correct, often written pass^$k$? *Hint:* exchange the
# roles of correct and incorrect.

# %% tags=["hide-cell", "solution"]
c, n = np.array([5, 19]), np.array([20, 20])
1 - pass_at_k(n - c, n, [1, 4, 16])

# %% [markdown]
# **3 (hard).** Which confidences decide pass@64? Let half of the questions have $\mu = 0$ and half $\mu = 0.1$, and
# change the confidence of the first half from 0 to 0.01. *Hint:* compare the errors at $k = 1$ and $k = 64$.

# %% tags=["hide-cell", "solution"]
mu = np.repeat([0, 0.1], 50)
s = np.maximum(mu, 0.01)
error = (simulate_pass_at_k(s, [1, 64]) - simulate_pass_at_k(mu, [1, 64])) ** 2
error.mean(axis=0)  # 0.00005, and 0.11: what is never solved decides
