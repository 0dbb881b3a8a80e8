# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Predicting pass@k from a confidence

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
dataset: str = ""  # one with samples; empty: where questions differ most
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of the halves that oracles know

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import plots
from capcal_lib.applications import (
    deep_samples,
    extrapolate_pass_at_k,
    fit_concentration,
    pass_at_k,
    pass_at_k_error_terms,
    simulate_pass_at_k,
    split_counts,
)
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset
from capcal_lib.metrics import compare, holm
from capcal_lib.probes import describe_probes, nearest_probe
from capcal_lib.reported import beta_from_moments, beta_moments, load_reported
from capcal_lib.results import (
    best_constant,
    columns_of,
    gains_by_dataset,
    load_results,
    mean_over_probes,
    methods,
    subjects,
)

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
recipe = "paper" if protocol == "paper" else "tuned"
results = load_results(
    runs,
    model,
    k_eval=k_eval,
    held_out=protocol != "paper",
    recipe=recipe,
    verdicts=verdicts,
).query("total > 1")

# %% tags=["hide-input"]
probes = {
    name: nearest_probe(methods(subset.dropna(axis="columns", how="all")), name)
    for name, subset in results.groupby(level="dataset", sort=False)
}
own_probes = {
    name: probe
    for name, probe in probes.items()
    if probe == load_dataset(name).probe
}
lacking = {}
if not own_probes:
    lacking["probes"] = "No probe is trained for these data sets."
if results.empty:
    lacking["counts"] = "pass@k takes two scored samples of a question."
notebook.about(data, lacking)

# %% tags=["hide-input"]
# needs counts
results["Best constant"] = best_constant(results)
evidence = notebook.evidence_of(data)
spread = (results["correct"] / results["total"]).groupby(level="dataset").var()
depth = results["total"].groupby(level="dataset").agg(deep_samples)
deep = [name for name in own_probes if depth[name] >= 32]
most_varied = max(deep or [*own_probes] or spread.index, key=spread.get)
shown = notebook.choose_dataset(dataset, spread.to_frame(), most_varied)
title, probe = data.loc[shown, "title"], probes[shown]

# %% [markdown] needs="probes"
# If each attempt succeeds with probability $s$, one of $k$ does with probability $1-(1-s)^k$: the paper's *plug-in*
# prediction. A *posterior* takes $s$ for the mean of a Beta distribution of $\mu$, whose *concentration* $\nu$ says how sure
# the confidence is. That of a probe is learned from its training questions. The constant has an unfair advantage: it learns its
# own from the very questions shown.

# %%
# needs counts
concentration = describe_probes(runs, model, recipe=recipe, verdicts=verdicts)[
    "concentration"
]


# %%
# needs counts
# By protocol=paper a probe is five; mean_over_probes averages their errors.
def predict(subset, ks, probe):
    """Predict pass@k by each method: a (questions, ks) array each."""
    constant = subset["Best constant"]
    nu = fit_concentration(constant, subset["correct"], subset["total"])
    shared = simulate_pass_at_k(constant, ks, concentration=nu)
    predicted = {"Best constant": shared}
    for column in columns_of(subset, probe):
        s, which = subset[column], column.removeprefix(probe)
        given = {"concentration": concentration[probe]}
        posterior = simulate_pass_at_k(s, ks, **given)
        predicted[f"Probe, plug-in{which}"] = simulate_pass_at_k(s, ks)
        predicted[f"Probe, posterior{which}"] = posterior
    for name in ("Verbalized confidence", "P(True)"):
        if name in subset and subset[name].notna().any():
            predicted[name] = simulate_pass_at_k(subset[name].fillna(0.5), ks)
    return predicted


# %% [markdown] needs="probes"
# With $f$ the predicted chance that all $k$ attempts fail and $Q_j = \binom{n-c}{j}/\binom{n}{j}$, the term
# $f^2 - 2 f Q_k + Q_{2k}$ has the true squared error of a question for its expectation. It needs $2k$ samples, and all questions
# that have these count. A method is judged by these terms against the best constant, and the posterior against the plug-in, all
# data sets together by Holm's method. This family is about pass@4, and its verdicts are counted on no other page:


# %%
# needs probes
def errors(subset, k, probe):
    """Return a question's corrected squared error of each method's pass@k."""
    counts = subset["correct"], subset["total"]
    terms = {
        name: pass_at_k_error_terms(predicted, *counts, [k])[:, 0]
        for name, predicted in predict(subset, [k], probe).items()
    }
    return mean_over_probes(pd.DataFrame(terms, subset.index)).dropna()


# %%
# needs probes
terms = pd.concat(
    errors(
        results.loc[[name]].dropna(subset=columns_of(results, own_probe)),
        4,
        own_probe,
    )
    for name, own_probe in own_probes.items()
)
rivals = ("Best constant", "Probe, plug-in")
judged = {rival: gains_by_dataset(terms, rival) for rival in rivals}
judged = pd.concat(judged, names=["rival"])
of_probe = judged.index.get_level_values("method").str.startswith("Probe")
judged = holm(judged[of_probe])

# %% tags=["hide-input"]
# needs probes
pairs = {
    "plug": ("Best constant", "Probe, plug-in"),
    "posterior": ("Best constant", "Probe, posterior"),
    "between": ("Probe, plug-in", "Probe, posterior"),
}
rows = judged.reset_index()
for name, (rival, method) in pairs.items():
    of_pair = (rows["rival"] == rival) & (rows["method"] == method)
    verdict = rows.loc[of_pair, "verdict"]
    better, worse = (verdict == "better").sum(), (verdict == "worse").sum()
    notebook.glue(**{name: int(better), f"{name}_worse": int(worse)})
notebook.glue(sets=judged.index.unique("dataset").size)

# %% tags=["finding"]
# needs probes
notebook.finding("""
A probe that says how sure it is predicts pass@4 better than a constant on {posterior} of {sets} data sets, and worse on
{posterior_worse}; taken at its word, better on {plug}.
""")

# %%
# needs counts
columns = columns_of(results, probe)
subset = results.loc[shown].dropna(subset=columns)
counts = subset["correct"], subset["total"]
groups = subjects(pd.concat({shown: subset}, names=["dataset"])).to_numpy()
n = depth[shown]
whole = subset[subset["total"] >= n]  # for curves, of the same questions
ks = np.unique(np.geomspace(1, n, 40).round().astype(int))
curves = {"Actual": pass_at_k(whole["correct"], whole["total"], ks)}
curves |= predict(whole, ks, probe)
lines = pd.DataFrame(
    {name: values.mean(axis=0) for name, values in curves.items()}
)
lines = mean_over_probes(lines.set_index(pd.Index(ks, name="k")))

# %% [markdown] needs="probes"
# The paper draws a 95 % band around a predicted curve (appendix D.1.1). With $S_i$ the predicted pass@k of question $i$, it is
# the mean plus and minus $1.96$ times $\sqrt{\sum_i S_i (1 - S_i)} / N$:


# %%
# needs counts
def band(predicted):
    """Return half the paper's band around the mean of predicted pass@k."""
    variance = (predicted * (1 - predicted)).sum(axis=0)
    return 1.96 * np.sqrt(variance) / len(predicted)


# %% tags=["hide-input"]
# needs counts
main_ks = [k for k in (1, 4, 16, 64) if 2 * k <= n]
terms = {
    name: pass_at_k_error_terms(predicted, *counts, main_ks)
    for name, predicted in predict(subset, main_ks, probe).items()
}
error = {}
for column, k in enumerate(main_ks):
    of_k = {name: values[:, column] for name, values in terms.items()}
    error[k] = compare(mean_over_probes(pd.DataFrame(of_k)), clusters=groups)

# %% tags=["hide-input"]
# needs counts
looks = {
    "Actual": (plots.INK, "-", ""),
    "Best constant": ("#8a8a8a", "--", "o"),
    "Probe, plug-in": ("#2b6450", "-", "s"),
    "Probe, posterior": ("#46a281", "-.", "D"),
    "Verbalized confidence": ("#bc3e0b", ":", "^"),
    "P(True)": ("#9b7cd2", ":", "v"),
}


# %% tags=["hide-input"]
# needs counts
def draw_curves(axes):
    """Draw the mean pass@k of each method, and the paper's band."""
    ticks = [k for k in (1, 4, 16, 64) if k <= n]
    places = np.searchsorted(ks, ticks).tolist()
    for name, line in lines.items():
        color, dashes, marker = looks[name]
        axes.plot(
            line, dashes, c=color, marker=marker, markevery=places, label=name
        )
    plug_ins = [name for name in curves if name.startswith("Probe, plug-in")]
    if plug_ins:
        middle = lines["Probe, plug-in"]
        width = np.mean([band(curves[name]) for name in plug_ins], axis=0)
        ends = middle - width, middle + width
        axes.fill_between(ks, *ends, color="#2b6450", alpha=0.2)
    axes.set(xscale="log", xlabel="k", ylabel="pass@k", title=title)
    axes.set_xticks(ticks, ticks)
    axes.minorticks_off()


# %% tags=["hide-input"]
# needs counts
def draw_errors(axes):
    """Draw the squared errors at each k, with their intervals."""
    table = pd.concat(error, names=["k", "method"]).reset_index()
    for place, (name, of) in enumerate(table.groupby("method", sort=False)):
        arms = of["estimate"] - of["low"], of["high"] - of["estimate"]
        x = np.arange(len(of)) + 0.12 * (place - 2)
        color, _, marker = looks[name]
        bars = np.abs(arms)
        axes.errorbar(x, of["estimate"], bars, c=color, fmt=marker, ms=5)
    axes.set_xticks(range(len(main_ks)), main_ks)
    axes.set(xlabel="k", title="squared error of a question", ylim=(0, None))


# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Left: the mean over the questions with most samples. A constant is right at k = 1 by construction, and beyond that as far as one Beta distribution describes the questions. The band is the paper's, around the plug-in. Right: what decides is the error question by question, with its interval; lower is better.", "name": "fig-pass-at-k"}, "image": {"alt": "Two panels against k. Left, pass@k: a curve for what was measured, one for the best constant, and one for each prediction from a confidence, with a band around the plug-in of the probe. Right, the squared error of each prediction with its interval, at each k for which there are samples."}} paper=["figure-9", "appendix-d.1", "appendix-d.1.1", "appendix-d.1.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs counts
figure, (left, right) = plt.subplots(1, 2, figsize=(style.WIDTH, 3.6))
draw_curves(left)
draw_errors(right)
entries = left.get_legend_handles_labels()
_ = figure.legend(*entries, loc="outside lower center", ncols=3)

# %%
# needs counts
notebook.say(
    """
The curves are those of the {questions} questions of {title} that have {n} samples or more; an error at $k$ takes all that have
$2k$.
""",
    questions=len(whole),
    title=title,
    n=int(n),
)

# %%
# needs probes
notebook.say("""
On {sets} data sets, all judged together, the plug-in predicts pass@4 better than a constant on {plug} and worse on {plug_worse}; the
posterior better than the plug-in on {between} and worse on {between_worse}.
""")

# %% [markdown] needs="probes"
# The band asks how far one draw of $k$ attempts a question falls from its expectation, if every confidence is exactly right. It
# knows nothing of confidences that are wrong, and shrinks as predictions come close to 1. Does it hold the measured pass@k? For the probe of its
# own data set, over all models of the store:


# %%
def check_band(known, column, ks):
    """Put a prediction and half its band beside the measured pass@k."""
    rows = []
    for k in ks:
        having = known[known["total"] >= k]
        predicted = simulate_pass_at_k(having[column], [k])
        measured = pass_at_k(having["correct"], having["total"], [k]).mean()
        rows.append((k, predicted.mean(), measured, band(predicted)[0]))
    return rows


# %%
# needs probes
names = [model]
if evidence == "measured":
    names = notebook.measured_models(runs, data, k_eval)
rows = []
for name in names:
    options = {"k_eval": k_eval, "held_out": False, "recipe": recipe}
    options["verdicts"] = verdicts if name == model else "rules"
    loaded = load_results(runs, name, **options).query("total > 1")
    for set_name, of_set in loaded.groupby(level="dataset", sort=False):
        for column in columns_of(of_set, load_dataset(set_name).probe):
            known = of_set.dropna(subset=column)
            if len(known):
                deepest = deep_samples(known["total"])
                powers = [k for k in (1, 4, 16, 64) if k <= deepest]
                rows += check_band(known, column, powers)
columns = ["k", "predicted", "measured", "half the band"]
held = pd.DataFrame(rows, columns=columns)
gap = held["predicted"] - held["measured"]
held["held"] = gap.abs() <= held["half the band"]

# %% tags=["hide-input"] label="passk-band" paper=["appendix-d.1.1", "figure-9"] evidence=["measured"] reads=["verdicts", "features"]
# needs probes
by_k = held.groupby("k")
table = by_k[["predicted", "measured", "half the band"]].mean()
table.insert(0, "probes", by_k.size())
table.insert(1, "held", by_k["held"].sum())
tables.show(
    table,
    "The paper's 95 % band around the mean of plug-in predictions: how many probes there are, of how many the band holds the "
    "measured pass@k, and means over them.",
    evidence=evidence,
    probes="{:.0f}",
    held="{:.0f}",
)

# %%
# needs probes
first, last = table.index.min(), table.index.max()
notebook.say(
    """
At k = {first} the band holds what was measured for {held_first} of {probes_first} probes, and at k = {last} for
{held_last} of {probes_last}.
""",
    first=int(first),
    last=int(last),
    held_first=int(table.loc[first, "held"]),
    held_last=int(table.loc[last, "held"]),
    probes_first=int(table.loc[first, "probes"]),
    probes_last=int(table.loc[last, "probes"]),
)

# %% [markdown]
# ## From counts to pass@k
#
# Of $n$ samples $c$ are correct. Drawn without replacement, $k$ of them all fail with probability
# $\binom{n-c}{k} / \binom{n}{k}$, and one minus this is an unbiased estimate of pass@k. With 20 samples nothing is known
# of $k = 64$: there are no 64 samples to draw.

# %%
from scipy.special import comb

c, n, attempts = np.array([1, 5, 20]), 20, np.array([1, 4, 16, 64])
with np.errstate(invalid="ignore"):  # 0/0 where k > n
    solved = 1 - comb(n - c[:, None], attempts) / comb(n, attempts)
assert np.allclose(solved, pass_at_k(c, [n] * 3, attempts), equal_nan=True)
pd.DataFrame(solved, pd.Index(c, name="correct"), attempts).round(3)

# %% [markdown]
# ## Why a confidence promises too much
#
# $1-(1-s)^k$ is concave in $s$, so that being wrong in both directions does not cancel: of two questions with $\mu = 0$ and
# $\mu = 1$, both given $s = 1/2$, exactly one is solved however often one tries, and the plug-in says nearly two. What a
# posterior with $s = 1/2$ expects:

# %%
believed = {
    nu: simulate_pass_at_k([0.5], attempts, concentration=nu)[0]
    for nu in (np.inf, 10, 1)
}
pd.DataFrame(believed, attempts).rename_axis("k").rename_axis(
    columns="ν"
).round(3)

# %% [markdown] needs="counts"
# ## Question by question, with oracles
#
# Oracles are scored honestly: they know one half of a question's samples, and are scored on the other half; their scores are
# means over ten random halves. *Oracle RC* reports the verdict of one sample, which is correct with probability $\hat\mu$. A dash
# stands where there are too few samples.

# %%
# needs counts
rng = np.random.default_rng(seed)
halves = []
for _ in range(10):
    known_half, held_out = split_counts(*counts, rng=rng)
    half = known_half[0] / known_half[1]
    promised = simulate_pass_at_k(half, main_ks)
    right = pass_at_k_error_terms(np.ones_like(promised), *held_out, main_ks)
    wrong = pass_at_k_error_terms(np.zeros_like(promised), *held_out, main_ks)
    oracle_cc = pass_at_k_error_terms(promised, *held_out, main_ks)
    oracle_rc = half[:, None] * right + (1 - half)[:, None] * wrong
    halves.append([oracle_cc, oracle_rc])
oracles = dict(
    zip(["Oracle CC", "Oracle RC"], np.mean(halves, axis=0), strict=True)
)

# %% tags=["hide-input"] label="passk-errors" paper=["table-3", "table-8", "section-5.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs counts
scored = {}
for column, k in enumerate(main_ks):
    of_oracles = pd.DataFrame(
        {name: values[:, column] for name, values in oracles.items()}
    )
    known = compare(of_oracles, clusters=groups).assign(may_be_best=False)
    table = pd.concat([error[k], known])
    head = f"pass@{k}, {(subset['total'] >= 2 * k).sum()} questions"
    scored[head] = table.rename(columns={"estimate": "brier"})
tables.show_scores(
    pd.concat(scored, names=["dataset", "method"]).rename(
        index={
            "Probe, plug-in": f"{probe}, plug-in",
            "Probe, posterior": f"{probe}, posterior",
        }
    ),
    f"Corrected squared error on {title} (lower is better). Oracles take the questions with twice the samples.",
    evidence=evidence,
)

# %% [markdown] needs="counts"
# The paper's own protocol compares plug-in predictions with the measured pass@k, for $k$ up to the number of samples, and
# takes the oracles from the very samples on which they are scored (*in sample*), so that Oracle CC can hardly fail:

# %%
# needs counts
attempts = [1, 4, 16, 64]
measured = pass_at_k(*counts, attempts)
mu = (counts[0] / counts[1]).to_numpy()[:, None]
predicted = {"Oracle CC (in sample)": simulate_pass_at_k(mu[:, 0], attempts)}
predicted |= predict(subset, attempts, probe)
squared = {
    name: (values - measured) ** 2
    for name, values in predicted.items()
    if not name.startswith(("Probe, posterior", "Best constant"))
}
squared["Oracle RC (in sample)"] = (
    mu * (1 - measured) ** 2 + (1 - mu) * measured**2
)

# %% tags=["hide-input"] label="passk-errors-paper" paper=["table-3", "table-8"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs counts
table = pd.DataFrame(
    {name: pd.DataFrame(values).mean() for name, values in squared.items()}
)
table = mean_over_probes(table)
having = [(subset["total"] >= k).sum() for k in attempts]
table.index = [
    f"pass@{k}, {number} questions" if number < len(subset) else f"pass@{k}"
    for k, number in zip(attempts, having, strict=True)
]
tables.show(
    table.T.rename(index={"Probe, plug-in": probe or ""}).rename_axis("method"),
    f"Squared error on {title} by the paper's protocol (lower is better).",
    digits=4,
    evidence=evidence,
)

# %% [markdown]
# ## As the paper prints it
#
# The paper prints the squared error of three predictions, question by question, for three models. Oracle CC is *in
# sample*, so that it cannot fail.


# %% tags=["hide-input"]
def as_printed(table):
    """Turn a printed table into a row a method and a column a k."""
    rows = load_reported(table)
    rows = tables.titled(rows)
    rows["attempts"] = [f"pass@{k}" for k in rows["k"]]
    wide = rows.set_index(["model", "method", "attempts"])["value"].unstack()
    order = wide.index.unique("method").sort_values(ascending=False)
    return wide[rows["attempts"].unique()].reindex(order, level="method")


math, aime = as_printed("passk_math500"), as_printed("passk_aime25")

# %%
both = pd.concat({"math500": math, "aime25": aime})
lower = both.xs("Probe (MATH)", level="method") < both.xs(
    "Oracle RC", level="method"
)
notebook.glue(
    printed_lower=int(lower.to_numpy().sum()), printed_pairs=lower.size
)

# %% tags=["hide-input"]
notebook.say("""
*Probe (MATH)* has a lower error than Oracle RC in {printed_lower} of {printed_pairs} printed cells.
""")

# %% tags=["finding"]
# needs paper
notebook.finding("""
The paper's probe predicts pass@k with a lower error than one known answer in {printed_lower} of {printed_pairs} printed cells.
""")


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
# The curves that the paper draws are not printed, but two printed numbers give most of them away: the mean accuracy and
# the score of *Uniform random* fix a Beta distribution of $\mu$ over questions, and that has its own pass@k.

# %%
powers, rows = [1, 2, 4, 8, 16, 32, 64], []
printed = load_reported()
pairs = printed[printed["table"].isin(["passk_math500", "passk_aime25"])]
for name, of in pairs[["model", "dataset"]].drop_duplicates().to_numpy():
    a, b = beta_from_moments(*beta_moments(name, of))
    solved = simulate_pass_at_k([a / (a + b)], powers, concentration=a + b)
    curve = pd.DataFrame({"k": powers, "pass@k": solved[0]})
    rows.append(curve.assign(model=name, dataset=of))
expected = tables.titled(pd.concat(rows, ignore_index=True))

# %% tags=["hide-input"] mystnb={"figure": {"caption": "pass@k of the paper's models, expected from two printed numbers (lines; simulated), and what the authors' code repository says of one of them (crosses; read off).", "name": "fig-pass-at-k-paper"}, "image": {"alt": "Two panels, MATH-500 and AIME25, each with a line for each model of the paper against k, and crosses for one model on MATH-500."}} paper=["figure-9", "appendix-d.1.2"] evidence=["simulated", "read off"] reads=["main", "mean_accuracy", "passk_actual"]
look = {"x": "k", "y": "pass@k"}
grid = sns.relplot(
    expected,
    kind="line",
    hue="model",
    col="dataset",
    col_order=["MATH-500", "AIME25"],
    height=3,
    aspect=1.2,
    facet_kws={"legend_out": False},
    **look,
)
published = load_reported("passk_actual", source="reference code")
published = published.rename(columns={"value": "pass@k"})
sns.scatterplot(
    published,
    ax=grid.axes_dict["MATH-500"],
    marker="x",
    color=plots.INK,
    **look,
)
grid.set(xscale="log", xticks=[1, 4, 16, 64], xticklabels=[1, 4, 16, 64])
grid.set_titles("{col_name}").set_axis_labels("k", "pass@k")
sns.move_legend(grid, "lower left", bbox_to_anchor=(0.12, 0.2), title="")

# %% tags=["hide-input"]
beta = expected.query("model == 'gpt-oss-20b' and dataset == 'MATH-500'")
apart = beta.merge(published, on="k", suffixes=("", " published"))
notebook.glue(
    beta_apart=(apart["pass@k"] - apart["pass@k published"]).abs().max()
)

# %%
notebook.say("""
Where both are known, for gpt-oss-20b on MATH-500, they differ by at most {beta_apart:.3f}.
""")

# %% [markdown]
# ## Beyond the samples at hand
#
# pass@k for $k$ beyond the samples depends on questions that were never solved. `extrapolate_pass_at_k` estimates it by one
# Beta distribution of $\mu$, as Kazdan et al. (2025) do; its limits hold for *any* prior that explains the counts. Where they
# lie far apart, the shape of the prior decides and not the data.

# %%
c = [0, 0, 1, 3, 12, 20] * 20
extrapolate_pass_at_k(c, [20] * 120, [100, 10_000]).round(3)

# %% [markdown]
# ## Summary
#
# - pass@k needs the expected accuracy of every question, not its mean: this is what capability calibration estimates.
# - A confidence taken at its word promises more than a posterior of the same mean, at every $k$ above 1, and too much where it
#   is unsure of questions that differ. A posterior may promise too much as well: look at its curve.
# - A band that takes the confidence for the truth says nothing of whether it is.
# - Score an oracle on samples that it has not seen, and a prediction without the noise of the counts.
#
# ## Exercises
#
# **1 (easy).** Show that the corrected error at $k = 1$ is the corrected capability Brier score.
# *Hint:* $f = 1 - s$, $Q_1 = 1 - c/n$, and `capability_brier_terms` is in `capcal_lib.metrics`.

# %% tags=["hide-cell", "solution"]
# Both errors, term by term
from capcal_lib.metrics import capability_brier_terms

s, c, n = [0.2, 0.9], [3, 5], [10, 10]
terms = pass_at_k_error_terms(np.array(s)[:, None], c, n, [1])[:, 0]
assert np.allclose(terms, capability_brier_terms(s, c, n, corrected=True))

# %% [markdown]
# **2 (medium).** How likely is it that *all* of $k$ attempts are correct, often written pass^$k$? *Hint:* exchange the
# roles of correct and incorrect.

# %% tags=["hide-cell", "solution"]
# The roles of correct and incorrect, exchanged
c, n = np.array([5, 19]), np.array([20, 20])
1 - pass_at_k(n - c, n, [1, 4, 16])

# %% [markdown]
# **3 (hard).** A solved question is worth as much as 25 attempts. After how many failures should one give up on a
# question with $s = 0.3$ and $\nu = 2.5$? *Hint:* after $k$ failures the next attempt succeeds with probability
# $s\nu/(\nu + k)$.

# %% tags=["hide-cell", "solution"]
# The chance of the next attempt, after each number of failures
chance = 0.75 / (2.5 + np.arange(50))
int(np.argmax(25 * chance < 1))  # worth less than it costs
