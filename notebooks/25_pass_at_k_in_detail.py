# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # pass@k in detail
#
# This page tests what [the page on pass@k](05_pass_at_k.ipynb) builds on: whether a posterior is as sure as it should
# be, and how far a few samples reach, to all recorded samples and to 10,000 simulated ones.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
few: int = 20  # samples from which larger k are predicted
seed: int = 0  # of all that is drawn here

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.applications import (
    extrapolate_pass_at_k,
    fit_concentration,
    pass_at_k,
    simulate_pass_at_k,
)
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import Interval
from capcal_lib.probes import train, training_data
from capcal_lib.results import describe_runs, load_results
from capcal_lib.runs import find_run
from scipy.optimize import brentq
from scipy.stats import betabinom, binom, chi2, kstest

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval)
results = load_results(runs, model, k_eval=k_eval).query("total > 1")
probes = {name: load_dataset(name).probe for name in data.index}
probed = [
    name
    for name, probe in probes.items()
    if probe in results and results.loc[name, probe].notna().any()
]


# %% tags=["hide-input"]
recorded = [
    name for name in model_names() if load_model(name).engine != "simulated"
]
if model == "simulated":  # never beside what is measured
    recorded = [model]
every = {name: describe_runs(runs, name, k_eval=1_000) for name in recorded}
long = {name: each.query("fewest >= 5 * @few") for name, each in every.items()}
lacking = {}
if not probed:
    lacking["probes"] = "No probe was trained on a data set of this model."
if all(each.empty for each in long.values()):
    lacking["reach"] = f"No recorded run has {5 * few} samples a question."
notebook.about(model, data, lacking=lacking)


# %% tags=["hide-input"]
def law(s, nu, n):
    """Return the distribution that a posterior predicts for counts of n."""
    s = np.clip(s, 0.005, 0.995)  # 0 or 1 would exclude all other mu
    return binom(n, s) if np.isinf(nu) else betabinom(n, s * nu, (1 - s) * nu)


def calibration_test(s, c, n, nu, rng):
    """Draw each count's place in its distribution; test that all are even."""
    below, at = law(s, nu, n).cdf(c - 1), law(s, nu, n).pmf(c)
    drawn = below + rng.random((101, len(s))) * at  # a single draw may mislead
    drawn = drawn.clip(0, 1)
    p = [kstest(places, "uniform").pvalue for places in drawn]
    return drawn[0], float(np.median(p))


# %% tags=["hide-input"]
def concentration_interval(s, c, n):
    """Fit nu, with the interval in which the likelihood is near its best."""

    def above(log_nu):
        return law(s, np.exp(log_nu), n).logpmf(c).sum() - least

    best = fit_concentration(s, c, n)
    least = law(s, best, n).logpmf(c).sum() - chi2.ppf(0.95, 1) / 2
    first, middle, last = np.log(np.clip([0, best, np.inf], 1e-4, 1e6))
    low, high = 0.0, np.inf
    if above(first) < 0:
        low = float(np.exp(brentq(above, first, middle)))
    if middle < last and above(last) < 0:
        high = float(np.exp(brentq(above, middle, last)))
    return Interval(best, low, high)


# %% tags=["hide-input"]
def learned(dataset):
    """Fit nu, with its interval, on cross-validated predictions."""
    split = load_dataset(dataset).training_split
    run = find_run(runs, model, dataset, split)
    (seen, _), unaided = training_data(run), train(run).out_of_fold
    return concentration_interval(unaided, seen["correct"], seen["total"])


def transformed(dataset, nu):
    """Test a posterior on the evaluation questions."""
    own, rng = results.loc[dataset], np.random.default_rng(seed)
    triple = own[probes[dataset]], own["correct"], own["total"]
    return calibration_test(*triple, nu, rng)


# %% tags=["hide-input"]
# needs probes
rows, values = [], []
for name in probed:
    nu = learned(name)
    kinds = {"plug-in": np.inf, "posterior": nu.estimate}
    tests = {kind: transformed(name, each) for kind, each in kinds.items()}
    p = {f"p, {kind}": value for kind, (_, value) in tests.items()}
    title = data["title"][name]
    rows.append({"data set": title, **nu._asdict(), **p})
    for kind, (places, _) in tests.items():
        values.append(pd.DataFrame({"pit": places, "kind": kind}))
tested = pd.DataFrame(rows)
pit = pd.concat(values, ignore_index=True) if values else pd.DataFrame()

# %% tags=["remove-cell"]
# needs probes
kept = {kind: tested[f"p, {kind}"] * len(tested) for kind in kinds}
ends = pit["pit"].between(0.05, 0.95).groupby(pit["kind"]).mean()
notebook.glue(
    sets=len(tested),
    refused_plug=int((kept["plug-in"] < 0.05).sum()),
    refused=int((kept["posterior"] < 0.05).sum()),
)
notebook.glue(ends_plug=1 - ends["plug-in"], ends=1 - ends["posterior"])

# %% [markdown] needs="probes"
# Taken at its word (plug-in), the tuned linear probe is rejected by a calibration test on {glue:text}`refused_plug` of
# {glue:text}`sets` data sets; taken as the mean of a posterior, on {glue:text}`refused` (the chance of a single false
# rejection among all is held to 5 %). A calibrated prediction finds one count in ten in its outer tenth: the plug-in has
# {glue:text}`ends_plug:.0%` of the counts there, the posterior {glue:text}`ends:.0%`.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Where the count of each evaluation question lies within its predicted distribution (probability integral transform), over all data sets with a probe. Calibrated predictions are flat, at the dotted line.", "name": "fig-pit"}, "image": {"alt": "Two histograms. Under the plug-in prediction nearly all questions stand in the two outermost bars; under the posterior the bars are of similar height."}} paper=["section-5.1"] evidence=["measured"] reads=["verdicts", "features"]
# needs probes
grid = sns.displot(
    pit,
    x="pit",
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

# %% [markdown]
# ## Is the posterior calibrated?
#
# A posterior $\mathrm{Beta}(s\nu, (1-s)\nu)$ of $\mu$ predicts a distribution of the count $c$ of $n$ samples. If it is
# right, the place of $c$ in that distribution, drawn at random between $P(C < c)$ and $P(C \le c)$, is uniform on
# $[0, 1]$ {cite:p}`czado2009predictive`; the p value is the median over 101 such draws. A U shape says too sure, a hump not sure enough. For a known truth, $\nu = 2$:

# %%
rng = np.random.default_rng(seed)
counts = rng.binomial(20, rng.beta(1, 1, 500)), np.full(500, 20)
same = np.full(500, 0.5)

# %%
{nu: calibration_test(same, *counts, nu, rng)[1] for nu in (0.5, 2, 20)}

# %% [markdown]
# $\nu$ is fitted to counts of training questions and predictions made without them, by likelihood, and its interval is
# where the likelihood falls by half a $\chi^2$ quantile:

# %%
np.round(concentration_interval(same, *counts), 3)

# %% [markdown] needs="probes"
# Of each data set's own probe, with the p-values of the test on evaluation questions, which $\nu$ has not seen:

# %% tags=["hide-input"] label="posterior-calibration" paper=["section-5.1"] evidence=["measured"] reads=["verdicts", "features"]
# needs probes
tables.show(
    tested.rename(columns={"estimate": "ν"}).set_index("data set"),
    "Concentration with its 95 % interval, and p-values of the calibration "
    "tests (each on its own).",
    evidence=data["evidence"].iloc[0],
    **dict.fromkeys(
        [name for name in tested if name.startswith("p, ")],
        lambda p: f"{p:.3f}" if p >= 0.001 else "<0.001",
    ),
)

# %% [markdown]
# ## Beyond the samples at hand
#
# pass@$k$ for $k$ beyond the samples depends on questions that were never solved. Four ways to predict it:
#
# - *plug-in*: $1 - (1 - c/n)^k$, which gives up every question without a success;
# - *power law*: a line through $\log(-\log \text{pass@}k)$ against $\log k$, up to $n$, carried on
#   {cite:p}`schaeffer2025monkeys`;
# - *Beta-binomial*: expected accuracies as draws of one Beta distribution {cite:p}`kazdan2025efficient`, with
#   hierarchical priors and zero inflation as its extensions {cite:p}`verine2026estimating`;
# - *five priors*: ours, `extrapolate_pass_at_k`. Beta and logit-normal, each with and without masses at 0 and 1, and a
#   mixture of two Betas, weighed by how well they explain the counts. Its interval covers the uncertainty among them, and
#   where no simple shape fits, that of any prior that explains the counts about as well.


# %% tags=["hide-input"]
def power_law(correct, total, ks):
    """Carry a power law of -log pass@k on."""
    seen = np.arange(1, total.min() + 1)
    solved = pass_at_k(correct, total, seen).mean(axis=0)
    x, y = np.log(seen), np.log(-np.log(np.clip(solved, 1e-9, 1 - 1e-9)))
    return np.exp(-np.exp(np.polyval(np.polyfit(x, y, 1), np.log(ks))))


def predicted(correct, total, ks):
    """Predict pass@k in four ways, with our intervals and bounds."""
    rng = np.random.default_rng(seed)
    table = extrapolate_pass_at_k(correct, total, ks, rng=rng)
    mean = np.full(len(correct), correct.sum() / total.sum())
    nu = fit_concentration(mean, correct, total)
    of_beta = simulate_pass_at_k(mean[:1], ks, concentration=nu)[0]
    table["Beta-binomial"] = of_beta
    table["power law"] = power_law(correct, total, ks)
    table["plug-in"] = simulate_pass_at_k(correct / total, ks).mean(axis=0)
    return table.rename(columns={"estimate": "five priors"})


# %% [markdown] needs="reach"
# ### Recorded runs
#
# Of every recorded run that is long enough, {glue:text}`few` samples of each question are drawn, and pass@$k$ is
# predicted for all of them. What they say is the truth to be met, up to its own error.


# %% tags=["hide-input"]
def meet(own):
    """Predict pass@k of all samples from a few, beside what all say."""
    rng = np.random.default_rng(seed)
    correct, total = own[["correct", "total"]].to_numpy().T
    most, size = total.min(), np.full(len(own), few)
    drawn = rng.hypergeometric(correct, total - correct, few)
    if not ((drawn > 0) & (drawn < few)).any():
        return pd.Series(dtype=float)  # nothing to go on
    row = predicted(drawn, size, [most]).iloc[0]
    row["actual"] = pass_at_k(correct, total, [most]).mean()
    return row


# %% tags=["hide-input"]
# needs reach
reached = {
    (name, dataset): own
    for name, table in long.items()
    for dataset, own in load_results(runs, name, k_eval=1_000)
    .loc[list(table.index)]
    .groupby(level="dataset", sort=False)
}
titles = {
    (name, dataset): (load_model(name).short_title, load_dataset(dataset).title)
    for name, dataset in reached
}
found = {titles[key]: meet(own) for key, own in reached.items()}
met = pd.DataFrame(found).T.dropna().astype({"k": int})
met = met.rename_axis(["model", "data set"])
ways = ["five priors", "Beta-binomial", "power law", "plug-in"]
off = met[ways].sub(met["actual"], axis="index").abs().mean()

# %% tags=["remove-cell"]
# needs reach
widest = max(reached, key=lambda key: reached[key].eval("correct/total").var())
correct, total = reached[widest][["correct", "total"]].to_numpy().T
rng, most = np.random.default_rng(seed), total.min()
drawn = rng.hypergeometric(correct, total - correct, few)
ks = np.unique(np.geomspace(1, most, 25).astype(int))
wide = predicted(drawn, np.full(len(drawn), few), ks).set_index("k")
wide["actual"] = pass_at_k(correct, total, ks).mean(axis=0)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "pass@k predicted from a few samples of each question, beside what all samples say. The band is the 95 % interval of five priors for questions like these; the few samples end at the dotted line.", "name": "fig-extrapolation"}, "image": {"alt": "Line plot of pass@k against k on a logarithmic axis. Beyond the dotted line the plug-in prediction flattens, while the five priors keep rising with the actual curve inside their widening band."}} paper=["appendix-d.1"] evidence=["measured"] reads=["verdicts"]
# needs reach
lines = wide[["actual", *ways]]
colors = [style.INK, "#3866bd", "#46a281", "#bc3e0b", "#be8a1d"]
axes = sns.lineplot(lines, palette=colors, dashes=False)
band = wide.index, wide["low"], wide["high"]
axes.fill_between(*band, color=colors[1], alpha=0.15, linewidth=0)
axes.axvline(few, color=style.MUTED, linestyle=":")
axes.set(xscale="log", ylabel="pass@k", xlabel="k")
axes.set(title=" on ".join(titles[widest]))
axes.set_xticks(ticks := [k for k in (1, 4, 16, 64) if k <= most], ticks)
axes.minorticks_off()
style.label_lines(axes)

# %% tags=["hide-input"] label="passk-beyond-recorded" paper=["appendix-d.1"] evidence=["measured"] reads=["verdicts"]
# needs reach
ends = {"95 % interval": ["low", "high"], "bounds": ["lowest", "highest"]}
limits = {
    name: met[pair].apply(lambda row: "[{:.2f}, {:.2f}]".format(*row), axis=1)
    for name, pair in ends.items()
}
tables.show(
    met.assign(**limits)[["k", "actual", ways[0], *limits, *ways[1:]]],
    f"pass@k from {few} samples by five priors with their 95 % interval and "
    "the bounds for any prior, and in three other ways.",
    digits=2,
    evidence="simulated" if model == "simulated" else "measured",
)

# %% tags=["remove-cell"]
# needs reach
rounded = met.round(3)
notebook.glue(
    few=few,
    runs=len(met),
    held=int(rounded.eval("low <= actual <= high").sum()),
    bound=int(rounded.eval("lowest <= actual <= highest").sum()),
)
notebook.glue(off=off["five priors"], off_beta=off["Beta-binomial"])
notebook.glue(off_law=off["power law"], off_plug=off["plug-in"])

# %% [markdown] needs="reach"
# The interval covers the actual pass@$k$ in {glue:text}`held` of {glue:text}`runs` runs, the bounds in
# {glue:text}`bound`. The mean distance from it is {glue:text}`off:.3f` for five priors, {glue:text}`off_beta:.3f` for one
# Beta, {glue:text}`off_law:.3f` for the power law and {glue:text}`off_plug:.3f` for the plug-in.
#
# ### Ten thousand attempts
#
# No recorded run reaches so far. Here $\mu$ of 300 questions is drawn from a known distribution, 20 samples are drawn
# of each, and the truth is that of the distribution. Only the first is a Beta, and the last has no shape that any
# of the five priors has.

# %%
rng = np.random.default_rng(seed)
worlds = {
    "Beta": lambda n: rng.beta(0.3, 1.0, n),
    "a third hopeless": lambda n: rng.beta(0.5, 2, n) * (rng.random(n) > 1 / 3),
    "logit-normal": lambda n: 1 / (1 + np.exp(rng.normal(3, 2.5, n))),
    "three kinds": lambda n: rng.choice([0.001, 0.05, 0.6], n),
}


# %% tags=["hide-input"]
def try_out(world, ks=(100, 10_000), studies=5, questions=300):
    """Repeat a study of a world: mean errors, and how often limits cover."""
    mu = np.minimum(world(200_000), 1 - 1e-12)
    truth = [np.mean(-np.expm1(k * np.log1p(-mu))) for k in ks]
    rows = []
    for _ in range(studies):
        correct = rng.binomial(20, world(questions))
        table = predicted(correct, np.full(questions, 20), [*ks])
        table = table.assign(truth=truth, k=ks)
        table["covered"] = table.eval("low <= truth <= high")
        table["bound"] = table.eval("lowest <= truth <= highest")
        rows.append(table)
    return pd.concat(rows)


# %% tags=["hide-input"]
every = pd.concat({name: try_out(each) for name, each in worlds.items()})
every["width"] = every["high"] - every["low"]
ways = ["five priors", "Beta-binomial", "power law", "plug-in"]
far = every[every["k"] == 10_000]
apart = far[ways].sub(far["truth"], axis="index").abs()
world = apart.groupby(level=0, sort=False).mean()
counted = far.groupby(level=0, sort=False)
world.insert(0, "truth", counted["truth"].first())
world["width"] = counted["width"].mean()
world["covered"] = counted["covered"].sum()
world["by bounds"] = counted["bound"].sum()

# %% label="passk-beyond-simulated" paper=["appendix-d.1"] evidence=["simulated"] tags=["hide-input"]
whole = {"covered": int, "by bounds": int}
tables.show(
    world.astype(whole).rename_axis("expected accuracies"),
    "pass@10,000 from 20 samples: mean absolute errors, the mean width of the "
    "interval of five priors, and in how many of 5 studies it and the bounds "
    "cover the truth.",
    evidence="simulated",
)

# %% tags=["remove-cell"]
means = world[ways].mean()
notebook.glue(
    far=means["five priors"],
    far_beta=means["Beta-binomial"],
    far_law=means["power law"],
    far_plug=means["plug-in"],
    far_held=int(every["covered"].sum()),
    far_all=len(every),
    near_held=int(every["covered"].sum() - world["covered"].sum()),
)

# %% [markdown]
# At five hundred times as many attempts as samples the mean error is {glue:text}`far:.2f` for five priors,
# {glue:text}`far_beta:.2f` for one Beta, {glue:text}`far_law:.2f` for the power law and {glue:text}`far_plug:.2f` for the
# plug-in. The interval covers the truth in {glue:text}`far_held` of {glue:text}`far_all` cases, those at 100 attempts among
# them ({glue:text}`near_held` of half as many), where the world of three kinds is hardest. It is wide where the counts leave the shape open, because 20 samples do not tell a hopeless question from one that is solved once in a
# thousand.
#
# ## Summary
#
# - A posterior can be tested: the counts of other questions must lie evenly within what it predicts.
# - Beyond the samples at hand the shape of the distribution of $\mu$ decides, and an interval has to say so.
# - A plug-in is no prediction beyond the samples: it gives up all questions that have not been solved yet.
#
# ## Exercises
#
# **1 (easy).** A question has 0 of 20 correct. What do plug-in and a posterior with $s = 0.05$, $\nu = 1$ say of
# pass@1000? *Hint:* `simulate_pass_at_k`.

# %% tags=["hide-cell", "solution"]
(
    simulate_pass_at_k([0.0], [1_000]),
    simulate_pass_at_k([0.05], [1_000], concentration=1.0),
)

# %% [markdown]
# **2 (medium).** How does the histogram look where all confidences are too high by 0.2? *Hint:* simulate
# $\mu \sim \mathrm{Beta}(1, 1)$ and say 0.7.

# %% tags=["hide-cell", "solution"]
high, _ = calibration_test(same + 0.2, *counts, 2, rng)
np.histogram(high, bins=4, range=(0, 1))[0]  # falls to the right

# %% [markdown]
# **3 (hard).** How many samples of each question does it take until one Beta is wrong by less than 0.02 at
# $k = 10{,}000$ in the world of three kinds? *Hint:* try 20, 200 and 2,000.

# %% tags=["hide-cell", "solution"]
mu = worlds["three kinds"](300)
truth, errors = np.mean(1 - (1 - mu) ** 10_000), {}
for n in (20, 200, 2_000):
    c, mean = rng.binomial(n, mu), np.full(300, mu.mean())
    nu = fit_concentration(mean, c, np.full(300, n))
    said = simulate_pass_at_k(mean[:1], [10_000], concentration=nu)
    errors[n] = float(said[0, 0] - truth)
errors  # its shape is wrong; more samples do not mend it
