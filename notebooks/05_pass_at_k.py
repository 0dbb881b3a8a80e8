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
# A confidence says how often one attempt succeeds; this page shows what it says of the best of $k$ attempts, of the
# attempts until the first success, and how wrong that is: section 5.1 and appendix D.1 of the paper.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
dataset: str = ""  # one with samples; empty: where questions differ most
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of all that is drawn here

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.applications import (
    extrapolate_pass_at_k,
    fit_concentration,
    pass_at_k,
    pass_at_k_error_terms,
    posterior_places,
    simulate_pass_at_k,
    split_counts,
)
from capcal_lib.book import notebook, style, tables

# %% tags=["hide-input"]
from capcal_lib.grading import read_verdicts
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.metrics import compare, gains, mean_interval
from capcal_lib.probes import describe_probes, nearest_probe
from capcal_lib.reported import beta_from_moments, beta_moments, load_reported
from capcal_lib.results import (
    best_constant,
    describe_runs,
    load_results,
    subjects,
)
from capcal_lib.runs import read_samples
from scipy.stats import kstest

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval, verdicts=verdicts)
asked = {"verdicts": verdicts}
asked["recipe"] = "paper" if protocol == "paper" else "tuned"
results = load_results(
    runs, model, k_eval=k_eval, held_out=protocol != "paper", **asked
).query("total > 1")

# %% tags=["hide-input"]
own_probe = {name: load_dataset(name).probe for name in data.index}
probed = [
    name
    for name, probe in own_probe.items()
    if probe in results and results.loc[name, probe].notna().any()
]
lacking = {"probes": "No probe is trained for these data sets."}
notebook.about(
    model,
    data,
    lacking={} if probed else lacking,
    protocol=protocol,
    verdicts=verdicts,
)

# %% tags=["hide-input"]
# needs samples
results["Best constant"] = best_constant(results)
share = results["correct"] / results["total"]
spread = share.groupby(level="dataset").var()
deep = [name for name in probed if data.loc[name, "fewest"] >= 32]
probed = deep or probed
widest = max(probed or data.index, key=spread.get)
shown = notebook.choose_dataset(dataset, data, widest)
title = data.loc[shown, "title"]
probe = nearest_probe(results.loc[[shown]].dropna(axis="columns"), shown)

# %%
# needs samples
concentration = describe_probes(runs, model, **asked)["concentration"]


def predict(own, ks, probe=probe):
    """Predict pass@k by each method: a (questions, ks) array each."""
    constant = own["Best constant"]
    nu = fit_concentration(constant, own["correct"], own["total"])
    found = {
        "Best constant": simulate_pass_at_k(constant, ks, concentration=nu)
    }
    if probe:
        s, nu = own[probe], concentration[probe]
        found["Probe, plug-in"] = simulate_pass_at_k(s, ks)
        found["Probe, posterior"] = simulate_pass_at_k(s, ks, concentration=nu)
    for name in ("Verbalized confidence", "P(True)"):
        if name in own and own[name].notna().any():
            found[name] = simulate_pass_at_k(own[name].fillna(0.5), ks)
    return found


# %%
# needs samples
own = results.loc[shown]
counts = own["correct"], own["total"]
largest = int(own["total"].min())
ks = np.unique(np.geomspace(1, largest, 40).round().astype(int))
curves = {"Actual": pass_at_k(*counts, ks)} | predict(own, ks)
means = {name: each.mean(axis=0) for name, each in curves.items()}
lines = pd.DataFrame(means, index=pd.Index(ks, name="k"))


# %%
# needs probes
def band(s, nu, ks):
    """Return the limits of a posterior's mean pass@k: 1.96 deviations."""
    unsolved = 1 - simulate_pass_at_k(s, ks, concentration=nu)
    square = 1 - simulate_pass_at_k(s, 2 * np.array(ks), concentration=nu)
    error = np.sqrt((square - unsolved**2).clip(0).sum(axis=0)) / len(s)
    middle = 1 - unsolved.mean(axis=0)
    return middle - 1.96 * error, middle + 1.96 * error


# %% tags=["hide-input"]
# needs probes
within = []
for name in probed:
    each, nu = results.loc[name], concentration[own_probe[name]]
    few = [k for k in (1, 4, 16, 64) if k <= each["total"].min()]
    true = pass_at_k(each["correct"], each["total"], few).mean(axis=0)
    low, high = band(each[own_probe[name]], nu, few)
    within += list((low <= true) & (true <= high))
inside = {True: "inside the band", False: "outside the band for some k"}
if probe:
    low, high = band(own[probe], concentration[probe], ks)
    actual = lines["Actual"]
    notebook.glue(inside=inside[bool(actual.between(low, high).all())])
notebook.glue(within=int(sum(within)), of=len(within), title=title)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "pass@k from the samples, and as confidences predict it: the probe used directly (plug-in) or as the mean of a posterior with its 95 % band, the best constant as a posterior, and what the model says of itself.", "name": "fig-pass-at-k"}, "image": {"alt": "Line plot of pass@k against k on a logarithmic axis. The plug-in prediction of the probe rises well above the actual curve as k grows; the posterior one stays closer."}} paper=["figure-9", "appendix-d.1", "appendix-d.1.1", "appendix-d.1.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
colors = {"Actual": style.INK, "Best constant": "#8a8a8a"}
colors |= {"Probe, posterior": "#46a281", "Probe, plug-in": "#2b6450"}
colors |= {"P(True)": "#9b7cd2", "Verbalized confidence": "#bc3e0b"}
axes = sns.lineplot(lines, palette=colors, dashes=False)
if probe:
    axes.fill_between(ks, low, high, color="#46a281", alpha=0.15, linewidth=0)
axes.set(xscale="log", xlabel="k", ylabel="pass@k", title=title)
axes.set_xticks(ticks := [k for k in (1, 4, 16, 64) if k <= largest], ticks)
axes.minorticks_off()

# %%
# needs probes
notebook.say("""
On {title} the actual curve is {inside}; over all data sets with a probe it is inside in {within} of {of} cases (data set
and $k$ of 1, 4, 16, 64).
""")

# %% [markdown] needs="probes"
# Is the posterior better than a constant, and than the direct use of the probe? That is judged question by question, on
# every data set:


# %%
# needs probes
def errors(own, k, probe):
    """Return a question's corrected squared error of each method's pass@k."""
    counts = own["correct"], own["total"]
    terms = {
        name: pass_at_k_error_terms(predicted, *counts, [k])[:, 0]
        for name, predicted in predict(own, [k], probe).items()
    }
    return pd.DataFrame(terms, own.index).dropna()


# %%
# needs probes
judged = {}
for name in probed:
    for k in (4, 16):
        terms = errors(results.loc[[name]], k, own_probe[name])
        for rival in ("Best constant", "Probe, plug-in"):
            if len(terms) > 1:
                told = {"clusters": subjects(terms)}
                judged[name, k, rival] = gains(terms, rival, **told)
judged = pd.concat(judged, names=["dataset", "k", "rival", "method"])

# %% tags=["hide-input"]
# needs probes
posterior = judged.xs("Probe, posterior", level="method")
over = posterior["verdict"].groupby("rival").value_counts()
plug = judged.xs("Best constant", level="rival").xs(
    "Probe, plug-in", level="method"
)["verdict"]
notebook.glue(
    pairs=len(plug),
    fewest=int(data.loc[probed, "fewest"].min()),
    over_constant=int(over.get(("Best constant", "better"), 0)),
    under_constant=int(over.get(("Best constant", "worse"), 0)),
    over_plug=int(over.get(("Probe, plug-in", "better"), 0)),
    under_plug=int(over.get(("Probe, plug-in", "worse"), 0)),
    plug_better=int((plug == "better").sum()),
    plug_worse=int((plug == "worse").sum()),
)
# %% tags=["finding"]
# needs probes
notebook.finding("""
Used directly, a confidence overestimates pass@k. The tuned linear probe predicts pass@4 and pass@16 significantly better
than the best constant in {plug_better} of {pairs} cases (a $k$, and a data set with at least {fewest} samples of each
question) and significantly worse in {plug_worse}. Read as the mean of a posterior, the
same probe is better than the constant in {over_constant} and worse in {under_constant}; against its own direct use it is
better in {over_plug} and worse in {under_plug}.
""")

# %% [markdown]
# ## From counts to pass@k
#
# Of $n$ samples $c$ are correct. Drawn without replacement, $k$ of them all fail with probability
# $\binom{n-c}{k} / \binom{n}{k}$, and one minus this is an unbiased estimate of pass@k. With 20 samples nothing is known
# of $k = 64$: there are no 64 samples to draw.

# %%
from scipy.special import comb

c, n, few = np.array([1, 5, 20]), 20, np.array([1, 4, 16, 64])
with np.errstate(invalid="ignore"):  # 0/0 where k > n
    solved = 1 - comb(n - c[:, None], few) / comb(n, few)
assert np.allclose(solved, pass_at_k(c, [n] * 3, few), equal_nan=True)
pd.DataFrame(solved, pd.Index(c, name="correct"), few).round(3)

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
    nu: simulate_pass_at_k([0.5], few, concentration=nu)[0]
    for nu in (np.inf, 10, 1)
}
pd.DataFrame(believed, few).rename_axis("k").rename_axis(columns="ν").round(3)

# %% [markdown] needs="probes"
# $\nu$ of a probe is learned from its training questions by the likelihood of their counts, with predictions of
# cross-validation, each made without its own question. That of the constant is fitted on the questions shown, which
# favours it. A posterior also says how far the curve may lie from what it expects: the variance of $(1-\mu)^k$ is
# $\mathbb{E}(1-\mu)^{2k} - (\mathbb{E}(1-\mu)^k)^2$, which pass@$2k$ and pass@k give. The band takes the posterior as
# right, and $\nu$ as known.

# %%
# needs probes
concentration[sorted({own_probe[name] for name in probed})].round(2)

# %% [markdown] needs="probes"
# ## Is the posterior calibrated?
#
# A posterior predicts a distribution of the count $c$ of $n$ samples. If it is right, the place of $c$ in that
# distribution, drawn at random between $P(C < c)$ and $P(C \le c)$, is uniform on $[0, 1]$ (Czado et al., 2009).
# A U shape says too sure, a hump not sure enough. A single draw may mislead, so the p value is the median over 101.


# %%
# needs probes
def calibration(own, probe, nu, draws=101):
    """Return the places of the counts, and the p value of their evenness."""
    rng = np.random.default_rng(seed)
    triple = own[probe], own["correct"], own["total"]
    places = [
        posterior_places(*triple, concentration=nu, rng=rng)
        for _ in range(draws)
    ]
    p = [kstest(each, "uniform").pvalue for each in places]
    return places[0], np.median(p)


# %%
# needs probes
places, p = [], {}
for name in probed:
    for kind, nu in {
        "plug-in": np.inf,
        "posterior": concentration[own_probe[name]],
    }.items():
        drawn, p[name, kind] = calibration(
            results.loc[name], own_probe[name], nu
        )
        places.append(pd.DataFrame({"place": drawn, "kind": kind}))
places, p = pd.concat(places, ignore_index=True), pd.Series(p).unstack()

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Where the count of each evaluation question lies within its predicted distribution (probability integral transform), over all data sets with a probe. Calibrated predictions are flat, at the dotted line.", "name": "fig-pit"}, "image": {"alt": "Two histograms. Under the plug-in prediction nearly all questions stand in the two outermost bars; under the posterior the bars are of similar height."}} label="posterior-calibration" paper=["section-5.1"] evidence=["measured"] reads=["verdicts", "features"]
# needs probes
grid = sns.displot(
    places,
    x="place",
    col="kind",
    bins=np.linspace(0, 1, 21),
    stat="density",
    common_norm=False,
    color="#46a281",
    height=3,
    aspect=1.3,
)
grid.refline(y=1, color=style.INK, linestyle=":")
_ = grid.set_titles("{col_name}").set_axis_labels(
    "place of the count", "density"
)

# %% tags=["hide-input"]
# needs probes
refused = (p * len(p) < 0.05).sum()
outer = 1 - places["place"].between(0.05, 0.95).groupby(places["kind"]).mean()
notebook.glue(
    sets=len(p),
    refused_plug=int(refused["plug-in"]),
    refused=int(refused["posterior"]),
    ends_plug=outer["plug-in"],
    ends=outer["posterior"],
)

# %%
# needs probes
notebook.say("""
With the chance of a single false rejection held to 5 %, the test rejects the direct use of the probe on {refused_plug}
of {sets} data sets, and the posterior on {refused}. A calibrated prediction finds one count in ten in its outer tenth: the
plug-in has {ends_plug:.0%} of the counts there, the posterior {ends:.0%}.
""")

# %% [markdown] needs="samples"
# ## Question by question
#
# Against the measured pass@k even a perfect prediction has an error, because the measurement is noisy. With $f$ the
# predicted chance that all $k$ attempts fail and $Q_j = \binom{n-c}{j}/\binom{n}{j}$, the term
# $f^2 - 2 f Q_k + Q_{2k}$ has the true squared error for its expectation. It needs $2k$ samples of a question. Oracles are
# scored honestly: they know one half of a question's samples, and are scored on the other half. Oracle RC reports the
# verdict of one sample, which is correct with probability $\hat\mu$.

# %%
# needs samples
few = [1, 4, 16, 64]
terms = {
    name: pass_at_k_error_terms(predicted, *counts, few)
    for name, predicted in predict(own, few).items()
}
known, held_out = split_counts(*counts, rng=np.random.default_rng(seed))
half = known[0] / known[1]

# %%
# needs samples
oracle = simulate_pass_at_k(half, few)
terms["Oracle CC"] = pass_at_k_error_terms(oracle, *held_out, few)
right = pass_at_k_error_terms(np.ones_like(oracle), *held_out, few)
wrong = pass_at_k_error_terms(np.zeros_like(oracle), *held_out, few)
terms["Oracle RC"] = half[:, None] * right + (1 - half)[:, None] * wrong

# %% tags=["hide-input"] label="passk-errors" paper=["table-3", "table-8", "section-5.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
evidence, scored = data["evidence"].iloc[0], {}
for column, k in enumerate(k for k in few if 2 * k <= largest):
    of_k = pd.DataFrame({name: each[:, column] for name, each in terms.items()})
    competing = of_k.drop(columns=["Oracle CC", "Oracle RC"])
    groups = subjects(results.loc[[shown]]).to_numpy()
    best = compare(competing, clusters=groups)["may_be_best"]
    table = compare(of_k, clusters=groups)
    table["may_be_best"] = best.reindex(table.index, fill_value=False)
    scored[f"pass@{k}"] = table.rename(columns={"estimate": "brier"})
tables.show_scores(
    pd.concat(scored, names=["dataset", "method"]),
    f"Corrected squared error on {title} (lower is better).",
    evidence=evidence,
)

# %% tags=["hide-input"]
# needs samples
notebook.glue(largest=largest, halves=largest // 2, quarters=largest // 4)

# %%
# needs samples
notebook.say("""
Scoring pass@k without bias takes $2k$ samples, and of an oracle $4k$: with {largest} of them $k$ reaches {halves}, for
oracles {quarters}, and a dash stands beyond. The paper's own protocol compares plug-in predictions with the measured
pass@k, for $k$ up to the number of samples, and takes the oracles from the very samples on which they are scored (*in
sample*), so that Oracle CC can hardly fail:
""")

# %%
# needs samples
measured = pass_at_k(*counts, few)
mu = (counts[0] / counts[1]).to_numpy()[:, None]
predicted = {"Oracle CC (in sample)": simulate_pass_at_k(mu[:, 0], few)}
predicted |= predict(own, few)
squared = {
    name: (each - measured) ** 2
    for name, each in predicted.items()
    if name not in ("Probe, posterior", "Best constant")
}
squared["Oracle RC (in sample)"] = (
    mu * (1 - measured) ** 2 + (1 - mu) * measured**2
)

# %% tags=["hide-input"] label="passk-errors-paper" paper=["table-3", "table-8"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
table = pd.DataFrame(
    {name: each.mean(axis=0) for name, each in squared.items()}
)
table.index = [f"pass@{k}" for k in few]
of_probe = {"Probe, plug-in": probe or ""}
tables.show(
    table.T.rename(index=of_probe).rename_axis("method"),
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
    rows["model"] = [load_model(name).paper_name for name in rows["model"]]
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

# %%
notebook.say("""
*Probe (MATH)* has a lower error than Oracle RC in {printed_lower} of {printed_pairs} printed cells.
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
few, rows = [1, 2, 4, 8, 16, 32, 64], []
printed = load_reported()
pairs = printed[printed["table"].isin(["passk_math500", "passk_aime25"])]
for name, of in pairs[["model", "dataset"]].drop_duplicates().to_numpy():
    a, b = beta_from_moments(*beta_moments(name, of))
    solved = simulate_pass_at_k([a / (a + b)], few, concentration=a + b)
    curve = pd.DataFrame({"k": few, "pass@k": solved[0]})
    curve["model"] = load_model(name).paper_name
    rows.append(curve.assign(dataset=load_dataset(of).title))
expected = pd.concat(rows, ignore_index=True)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "pass@k of the paper's models, expected from two printed numbers (lines; simulated), and what the authors' code repository says of one of them (crosses; read off).", "name": "fig-pass-at-k-paper"}, "image": {"alt": "Two panels, MATH-500 and AIME25, each with a rising line for each of three models. On MATH-500 all lie above 0.9 from k = 4 on; the crosses of gpt-oss-20b lie on its line. On AIME25 the lines rise further and lie further apart."}} paper=["figure-9", "appendix-d.1.2"] evidence=["simulated", "read off"] reads=["main", "mean_accuracy", "passk_actual"]
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
# pass@k for $k$ beyond the samples depends on questions that were never solved. The plug-in $1 - (1 - c/n)^k$ gives up
# every one of them; a line through $\log(-\log \text{pass@}k)$ against $\log k$, carried on, is the *power law* of
# Schaeffer et al. (2025); one Beta distribution of $\mu$ is the choice of Kazdan et al. (2025), with
# extensions by Verine et al. (2026). `extrapolate_pass_at_k` estimates by a Beta as well, and its limits are those of
# *any* prior that explains the counts. Where they lie far apart, the shape of the prior decides and not the data.

# %%
c = [0, 0, 1, 3, 12, 20] * 20
extrapolate_pass_at_k(c, [20] * 120, [100, 10_000]).round(3)

# %% [markdown] needs="samples"
# To try it on recorded samples, ten of each question predict pass@k of all of them. What all say is the truth to be met,
# up to its own error.


# %%
# needs samples
def meet(own, few=10):
    """Predict pass@k of all samples from a few, beside what all say."""
    correct, total = own["correct"].to_numpy(), own["total"].to_numpy()
    rng, most = np.random.default_rng(seed), total.min()
    if most < 5 * few or ((correct == 0) | (correct == total)).all():
        return None  # nothing to go on
    drawn = rng.hypergeometric(correct, total - correct, few)
    size = np.full(len(own), few)
    row = extrapolate_pass_at_k(drawn, size, [most]).iloc[0]
    row["plug-in"] = simulate_pass_at_k(drawn / few, [most]).mean()
    row["actual"] = pass_at_k(correct, total, [most]).mean()
    return row


# %%
# needs samples
met = {name: meet(own) for name, own in results.groupby(level="dataset")}
met = pd.DataFrame({name: row for name, row in met.items() if row is not None})
met = met.astype(float)

# %% tags=["hide-input"] label="passk-beyond-recorded" paper=["appendix-d.1"] evidence=["measured"] reads=["verdicts"]
# needs samples
if len(met):
    table = met.T.rename(index=data["title"]).rename_axis("data set")
    notebook.glue(
        held=int(table.eval("low <= actual <= high").sum()), runs=len(table)
    )
    names = {"low": "95 % from", "high": "to", "estimate": "predicted"}
    columns = ["k", "actual", *names.values(), "plug-in"]
    beyond = tables.show(
        table.astype({"k": int}).rename(columns=names)[columns],
        "pass@k of all samples, as ten of each question predict it.",
        digits=2,
        evidence=evidence,
    )
beyond if len(met) else notebook.lack(True, reach="No data set has 50 samples.")

# %%
# needs reach
notebook.say("""
The limits hold the actual value on {held} of {runs} data sets.
""")

# %% [markdown]
# ## What a first success costs
#
# Whoever asks until an answer is right pays for every failure. Attempt $k+1$ is made if $k$ have failed, so that the
# mean number of attempts, giving up after some number, is the sum of the chances to be unsolved, one minus pass@k. Never
# giving up, a question takes $1/\mu$ attempts on average, and under a posterior that mean is
#
# $$
# \mathbb{E}\left[\frac{1}{\mu}\right] = \frac{\nu - 1}{s\nu - 1} \quad \text{if } s\nu > 1,
# \text{ and infinite otherwise:}
# $$
#
# a small chance that the question is next to hopeless outweighs all the rest. So plan with a limit.

# %%
# needs samples
limits = np.arange(1, largest + 1)
solved = {"Actual": pass_at_k(*counts, limits)} | predict(own, limits)
solved = pd.DataFrame(
    {name: each.mean(axis=0) for name, each in solved.items()},
    index=pd.Index(limits, name="giving up after"),
)
attempts = (1 - solved.shift(fill_value=0)).cumsum()
price = attempts / solved  # attempts paid for each solved question

# %% tags=["hide-input"]
# needs probes
notebook.glue(
    price=price["Actual"].iloc[-1],
    price_plug=price["Probe, plug-in"].iloc[-1] if probe else np.nan,
    price_posterior=price["Probe, posterior"].iloc[-1] if probe else np.nan,
    endless=(own[probe] * concentration[probe] <= 1).mean()
    if probe
    else np.nan,
)

# %%
# needs probes
notebook.say("""
On {title}, giving up after {largest}, {price:.1f} attempts are paid for each solved question; the posterior expects
{price_posterior:.1f} and direct use of the probe {price_plug:.1f}. Without a limit the posterior's mean would be infinite
for {endless:.0%} of the questions.
""")

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Attempts paid for each solved question, against the number of attempts after which one gives up: from the samples, and as confidences expect it.", "name": "fig-first-success"}, "image": {"alt": "Line plot of attempts a solved question against the limit of attempts, both logarithmic. The posterior stays near the measured curve; the plug-in falls below it as the limit grows."}} evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
drawn = price.loc[ks].replace(np.inf, np.nan)
axes = sns.lineplot(drawn, palette=colors, dashes=False)
axes.set(xscale="log", yscale="log", title=title)
axes.set(ylabel="attempts a solved question")
axes.set_xticks(ticks := [k for k in (1, 4, 16, 64) if k <= largest], ticks)
marks = [1, 2, 3, 5, 7, 10, 20, 30, 50, 100, 200, 500, 1000]
ends = drawn.min(axis=None), drawn.max(axis=None)
axes.set_yticks(marks := [k for k in marks if ends[0] <= k <= ends[1]], marks)
axes.minorticks_off()

# %% [markdown] needs="samples"
# In tokens: the samples in the order in which they were drawn, up to the first correct one, and no further. What is paid
# for the questions that stay unsolved counts too. A dash stands where none is solved.


# %%
# needs samples
def to_first_success(run):
    """Return each question's tokens up to a success, and whether it came."""
    names = ["question_id", "sample_index"]
    samples = read_samples(run, ["completion_tokens"]).set_index(names)
    right = read_verdicts(run).set_index(names)["verdict"] == "correct"
    samples["solved"] = right.reindex(samples.index, fill_value=False)
    earlier = samples["solved"].groupby("question_id").cumsum()
    made = samples[earlier - samples["solved"] == 0].groupby("question_id")
    return made[["completion_tokens", "solved"]].sum()


# %%
# needs samples
rows = {}
for name, run in data["run"].items():
    asked = pd.concat({name: to_first_success(run)}, names=["dataset"])
    tokens, success = asked.to_numpy().T
    row = rows[data.loc[name, "title"]] = {"solved": success.mean()}
    if success.any():
        ratio = tokens.sum() / success.sum()
        terms = ratio + (tokens - ratio * success) / success.mean()
        ends = mean_interval(terms, clusters=subjects(asked).to_numpy())
        row |= {"tokens": ratio, "low": ends.low, "high": ends.high}

# %% tags=["hide-input"] label="first-success-tokens" evidence=["measured"] reads=["samples", "verdicts"]
# needs samples
table = pd.DataFrame(rows).T.reindex(
    columns=["solved", "tokens", "low", "high"]
)
tables.show(
    table.rename_axis("data set"),
    "Questions solved, and tokens a solved question, giving up where the "
    "recorded samples end.",
    solved="{:.1%}",
    digits=0,
    evidence=evidence,
)

# %% [markdown]
# ## Summary
#
# - pass@k needs the expected accuracy of every question, not its mean: this is what capability calibration estimates.
# - A confidence that is right on average still overestimates pass@k, unless it says how sure it is; as a posterior it can be
#   tested.
# - Score an oracle on samples that it has not seen, and a prediction without the noise of the counts.
# - Beyond the samples the shape of the distribution of $\mu$ decides, and an interval has to say so.
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
# **3 (hard).** A solved question is worth as much as 25 attempts. After how many failures should one give up on a
# question with $s = 0.3$ and $\nu = 2.5$? *Hint:* after $k$ failures the next attempt succeeds with probability
# $s\nu/(\nu + k)$.

# %% tags=["hide-cell", "solution"]
chance = 0.75 / (2.5 + np.arange(50))
int(np.argmax(25 * chance < 1))  # worth less than it costs
