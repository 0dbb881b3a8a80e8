# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Where does a probe still work?

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
from capcal_lib.metrics import Calibrator, adjusted, capability_brier, gains
from capcal_lib.probes import draw_training, nearest_probe
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
from scipy.stats import t

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
store = notebook.open_store(store)
asked = {"k_eval": k_eval, "verdicts": verdicts}
data = describe_runs(store, model, **asked)
paper = protocol == "paper"
asked["recipe"] = "paper" if paper else "tuned"
results = load_results(store, model, **asked)
probes = [name for name in results if name.startswith("Probe (")]
results = results[["correct", "total", *probes]].query("total > 1")
varied = (results["correct"] / results["total"]).groupby("dataset").var() > 0.01
known = results[probes].groupby("dataset").count().loc[varied].stack()
mixtures = [name for name in probes if " + " in name]
pairs = [pair for pair in known[known > 1].index if pair[1] not in mixtures]

# %% tags=["hide-input"]
near_pairs = [
    (name, probe)
    for name, probe in pairs
    if style.shift(probe, name) == style.OUT_OF_DISTRIBUTION
    and known[name, probe] > 60
]
lacking = {} if near_pairs else {"near": ""}
if pairs:
    lacking["printed"] = ""
    if not mixtures:
        lacking["mixture"] = (
            f"No probe of two training sets is kept: capcal probe --model {model} --mix D,D"
        )
else:
    lacking["mixture"] = ""
    lacking["probes"] = (
        "No probe predicts questions whose accuracy varies: capcal sample, "
        "grade, features and probe make them."
    )
notebook.about(
    model, data, lacking=lacking, protocol=protocol, verdicts=verdicts
)

# %% [markdown] needs="probes"
# A probe tells easy questions from hard ones if what it says is correlated with the expected accuracy. The interval is
# Fisher's, on $\operatorname{artanh} r$, with the error from the influence of each subject or question on $r$:


# %%
# needs probes
def correlate(said, mu, groups):
    """Correlate confidences with accuracies; groups count as one draw."""
    a, b = ((x - x.mean()) / x.std(ddof=0) for x in (said, mu))
    r = (a * b).mean()
    influence = (a * b - r * (a**2 + b**2) / 2).groupby(groups).sum()
    free = len(influence) - 1
    error = np.sqrt((influence**2).sum() * (free + 1) / free) / len(a)
    error, z = error / (1 - r**2), np.arctanh(r)
    low, high = np.tanh(z + error * t.ppf([0.025, 0.975], free))
    p = 2 * t.sf(abs(z) / error, free)
    return {"estimate": r, "low": low, "high": high, "p": p}


# %% [markdown] needs="probes"
# To be taken at its word it has to be closer to the accuracy than a constant, the mean of the other questions:


# %%
# needs probes
def judge(dataset, probe):
    """Correlate a probe with the accuracy; compare it with a constant."""
    own = results.loc[[dataset], ["correct", "total", probe]].dropna()
    groups = subjects(own)
    found = correlate(own[probe], own["correct"] / own["total"], groups)
    found["verdict"] = "better" if found["estimate"] > 0 else "worse"
    own["constant"] = best_constant(own)
    terms = brier_terms(own, protocol=protocol)[["constant", probe]]
    gain = gains(terms, "constant", clusters=groups).set_axis(["gain"])
    both = pd.concat([pd.DataFrame(found, ["correlation"]), gain])
    return both.assign(dataset=dataset, probe=probe)


# %%
# needs probes
ENDS = ["estimate", "low", "high"]
judged = pd.concat([judge(*pair) for pair in pairs]).dropna()
judged = judged.rename_axis("measure").reset_index()
holm = adjusted(judged["p"].to_numpy(), "holm") < 0.05
judged["verdict"] = judged["verdict"].where(holm, "inconclusive")

# %% tags=["hide-input"]
# needs probes
judged["shift"] = [
    style.shift(*pair) for pair in judged[["probe", "dataset"]].values
]
count = judged.groupby(["measure", "shift"])["verdict"].value_counts()
count = count.unstack(fill_value=0).reindex(
    pd.MultiIndex.from_product([["correlation", "gain"], style.SHIFTS]),
    columns=["better", "inconclusive", "worse"],
    fill_value=0,
)
order, constant = count.loc["correlation"], count.loc["gain"]
size = order.sum(axis=1)
share = [
    f"all {n}" if k == n else f"none of {n}" if k == 0 else f"{k} of {n}"
    for k, n in zip(order["better"], size, strict=True)
]
won, lost = (
    [
        ", ".join(
            f"{table.loc[one, verdict]} of {size[one]}" for one in size.index
        )
        for table in (order, constant)
    ]
    for verdict in ("better", "worse")
)
notebook.glue(
    order_home=share[0],
    order_far=share[1],
    order_out=share[2],
    order_won=won[0],
    order_lost=lost[0],
    constant_won=won[1],
    constant_lost=lost[1],
)

# %% tags=["finding"]
# needs probes
notebook.finding("""
A probe tells easy questions from hard ones on {order_home} data sets that it was trained for, on {order_far} others of its
domain, and on {order_out} outside.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Correlation of what a probe says with the expected accuracy, with 95 % intervals. Right of the line it gives easy questions more than hard ones. Out of the domain that is left to chance.", "name": "fig-transfer"}, "image": {"alt": "Dots with intervals, a row for each probe and data set, coloured by shift. Those of the probe's own data sets lie right of zero, most of its domain too, and those out of domain near zero or left of it."}} paper=["table-7", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"]
# needs probes
drawn = judged[judged["measure"] == "correlation"]
drawn = drawn.melt(["dataset", "probe", "shift"], ENDS)
drawn["pair"] = [
    f"{probe} on {load_dataset(name).title}"
    for name, probe in drawn[["dataset", "probe"]].values
]
drawn["place"] = drawn["shift"].map(style.SHIFTS.index)
axes = sns.pointplot(
    drawn.sort_values(["place", "probe"], kind="stable"),
    x="value",
    y="pair",
    hue="shift",
    palette=style.SHIFT_COLORS,
    linestyle="none",
    estimator="median",  # of a mean and its two limits
    errorbar=("pi", 100),
)
axes.figure.set_figheight(1.4 + 0.25 * drawn["pair"].nunique())
axes.axvline(0, color=style.INK, lw=1)
axes.set(xlabel="correlation with the expected accuracy", ylabel="")
_ = axes.legend(title="", loc="lower center", bbox_to_anchor=(0.3, 1), ncols=3)

# %%
# needs probes
notebook.say("""
On its own data sets, on others of its domain, and on those outside, a probe is significantly correlated with the accuracy on
{order_won}, and the wrong way round on {order_lost}. Knowing the order is not enough to be taken at its word: against the best
constant, which has seen samples of the data set, it is better on {constant_won}, and worse on {constant_lost}. All of these are
judged together by Holm's method; subjects are drawn whole.
""")

# %% tags=["hide-input"] label="probe-gains" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"]
# needs probes
table = judged.assign(dataset=judged["dataset"].map(data["title"]))
table = table.rename(columns={"dataset": "data set"})
columns = ["data set", "probe", "measure", *ENDS, "verdict"]
tables.show(
    table[columns],
    "Correlation of a probe with the expected accuracy, and its mean gain over the best constant (higher "
    "is better), with 95 % intervals, and the verdict with all judged together.",
    evidence=data["evidence"].iloc[0],
)

# %% [markdown] needs="mixture"
# ## Two training sets in one
#
# The paper merges TriviaQA and GSM8K, and trains one probe on all of their questions (its table 7). `capcal probe --mix D,D`
# does so with any training sets, and `score` scores it where it is kept.

# %%
# needs mixture
mixture = mixtures[0]
sources = mixture.removeprefix("Probe (").removesuffix(")").split(" + ")
sources = [f"Probe ({name})" for name in sources]
parts = [
    load_results(store, model, split=split, **asked)
    for split in range(5 if paper else 1)
]
columns = ["correct", "total", *sources, mixture]
scores = score([part[columns] for part in parts], protocol=protocol)
scores = scores.query("method.str.startswith('Probe')")

# %% tags=["hide-input"] label="probe-mixture" paper=["table-7", "appendix-c.4"] evidence=["measured"] reads=["verdicts", "features"]
# needs mixture
tables.show_scores(
    scores,
    "Capability Brier score (lower is better) of probes of one training set and of both.",
    evidence=data["evidence"].iloc[0],
)

# %% [markdown] needs="mixture"
# A dash stands where a probe has seen no prompt of the data set's style. What does the second training set change? The rival
# is the probe of the nearer of the two:

# %%
# needs mixture
changes = {}
for name in varied[varied].index:
    own = results.loc[[name]].dropna(axis="columns", how="all")
    single = nearest_probe([one for one in sources if one in own], name)
    if single and mixture in own:
        terms = brier_terms(own, protocol=protocol)[[single, mixture]]
        found = gains(terms, single, clusters=subjects(own))
        changes[name, single] = found.loc[mixture]
changes = pd.DataFrame(changes).T.rename_axis(["dataset", "rival"])
p = changes["p"].to_numpy(float)
changes["verdict"] = changes["verdict"].where(
    adjusted(p, "holm") < 0.05, "inconclusive"
)
changes[["estimate", "low", "high", "verdict"]]

# %% tags=["hide-input"]
# needs mixture
notebook.say(
    "{mixture} is significantly better than the probe of one set on {better} of {sets} data sets, and worse on {worse}.",
    mixture=mixture,
    sets=len(changes),
    better=int(changes["verdict"].eq("better").sum()),
    worse=int(changes["verdict"].eq("worse").sum()),
)

# %% [markdown] needs="near"
# ## Starting from a near probe
#
# What are four samples of twenty questions of a new data set good for, where there is a probe of another one of its domain?
# Corrected scores on the other questions, a mean over fifty draws of the twenty:


# %%
# needs near
def use_labels(own, probe, rng):
    """Score three uses of twenty labelled questions on the others."""
    labelled = draw_training(own, 20, 4, rng=rng)
    others = own.drop(labelled.index)
    counts = labelled["correct"], labelled["total"]
    platt = Calibrator("platt").fit(labelled[probe], *counts)
    ways = {
        "as it is": others[probe],
        "recalibrated": platt.predict(others[probe]),
        "constant": np.full(len(others), counts[0].sum() / counts[1].sum()),
    }
    known = others["correct"], others["total"]
    return {
        way: capability_brier(s, *known, corrected=True)
        for way, s in ways.items()
    }


# %%
# needs near
rng = np.random.default_rng(seed)
few = {}
for dataset, probe in near_pairs:
    own = results.loc[dataset, ["correct", "total", probe]].dropna()
    draws = [use_labels(own, probe, rng) for _ in range(50)]
    few[dataset, probe] = pd.DataFrame(draws).mean()
few = pd.DataFrame(few).T.rename_axis(["data set", "probe"])
few.round(3)

# %% [markdown]
# ## What the paper prints
#
# The paper trains probes on TriviaQA, on GSM8K, and on both together. The scores are plug-in and have no intervals. The best
# constant follows from what it prints: $m(1-m) - \mathbb{E}[\mu(1-\mu)]$, where $m$ is the mean accuracy and Uniform random
# scores $1/3 - \mathbb{E}[\mu(1-\mu)]$.

# %% tags=["hide-input"] label="mixing-reported" paper=["table-7", "appendix-c.4"] evidence=["reported"] reads=["mixing"]
printed = load_reported("mixing").rename(columns={"value": "brier"})
if model in set(printed["model"]):
    printed = printed[printed["model"] == model]
place = printed.groupby(["model", "dataset"])["brier"].rank(method="dense")
printed["printed"] = place.map({1: "best", 2: "second"}).fillna("")
for name, rows in printed.groupby("model", sort=False):
    caption = f"{load_model(name).title}, as printed (lower is better)."
    one = rows[["method", "dataset", "brier", "printed"]]
    display(tables.show_scores(one, caption, digits=4, evidence="reported"))

# %%
keys = ["model", "dataset"]
uniform = load_reported("main").query("method == 'Uniform random'")
uniform = uniform.set_index(keys)["value"]
accuracy = load_reported("mean_accuracy").set_index(keys)["value"]
rivals = pd.DataFrame({"Uniform random": uniform})
rivals["best constant"] = accuracy * (1 - accuracy) - 1 / 3 + uniform
lead = printed.join(rivals, on=keys)
lead["shift"] = [*map(style.shift, lead["method"], lead["dataset"])]
lead = lead.melt(["shift", "brier"], list(rivals), "rival", "score")
lead["gain"] = lead["score"] - lead["brier"]
worse = lead["gain"].lt(0).groupby([lead["rival"], lead["shift"]]).sum()
cells = lead.groupby("shift").size() // rivals.shape[1]

# %% tags=["hide-input"]
notebook.glue(
    **{
        f"printed_{where}_{rival.split()[0].lower()}": f"{worse[rival, shift]} of {cells[shift]}"
        for where, shift in zip(
            ("home", "far", "out"), style.SHIFTS, strict=True
        )
        for rival in rivals
    }
)

# %% tags=["finding"]
# needs printed
notebook.finding("""
As printed, probes are worse than Uniform random in {printed_far_uniform} cells within their domain, and in
{printed_out_uniform} outside it.
""")

# %% mystnb={"figure": {"caption": "The score of Uniform random, and that of the best constant, less the paper's scores of probes. Right of the line a probe is better: against Uniform random it is within its domain, against a constant mostly at home.", "name": "fig-transfer-reported"}, "image": {"alt": "Two panels of dots with three rows. Against Uniform random nearly all dots within the domain lie right of zero; against the best constant those of other data sets of the domain lie around zero or left of it, and those out of domain spread far to the left."}} paper=["table-7", "appendix-c.4", "section-4.3.2"] evidence=["reported"] reads=["mixing", "main", "mean_accuracy"] tags=["hide-input"]
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

# %%
notebook.say("""
The paper says that probes generalise reasonably well to other data sets of their domain, and not consistently out of it. Against
Uniform random its table shows that: worse in {printed_far_uniform} cells within the domain, and in {printed_out_uniform} out of
it. Against the best constant a probe is worse in {printed_far_best} and in {printed_out_best}; at home in {printed_home_best}.
""")

# %% [markdown]
# ## Summary
#
# - A probe knows the order of questions where it was trained, and mostly in the same domain; elsewhere look before you use it.
# - The best constant of a data set is the rival that asks for order; Uniform random is beaten by almost anything.
# - A few labelled questions mend the level of a probe of the same domain. They cannot give it an order that it has not.
#
# ## Exercises
#
# **1 (easy).** A probe that always says 0.5 is scored on questions with $\mu$ = 0, 0, 1 and 1. Is it better than Uniform
# random? *Hint:* Uniform random scores $1/3 - \mu(1-\mu)$.

# %% tags=["hide-cell", "solution"]
capability_brier(np.full(4, 0.5), [0, 0, 100, 100], np.full(4, 100)), 1 / 3

# %% [markdown]
# **2 (medium).** In the paper's table, which training set transfers better to the other: TriviaQA to GSM8K, or GSM8K to
# TriviaQA? *Hint:* compare each with the probe that was trained there.

# %% tags=["hide-cell", "solution"]
table = printed.pivot_table("brier", ["model", "method"], "dataset")
table[["triviaqa", "gsm8k"]].unstack("method").round(3).T

# %% [markdown]
# **3 (hard).** A probe that has learned to say 0.9 meets questions with other $\mu$. Below which $\mu$ is it worse than
# Uniform random? Solve it for any constant $c > 1/2$. *Hint:* a constant scores $(c - \mu)^2$, and $\mu^2$ cancels.

# %% tags=["hide-cell", "solution"]
mu = np.linspace(0, 1, 1001)
worse = (0.9 - mu) ** 2 > 1 / 3 - mu * (1 - mu)
float(mu[worse].max()), (0.9**2 - 1 / 3) / (2 * 0.9 - 1)
