# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Routing questions to a small or a large model
#
# Where a small model will do, a large one need not be paid for: can a confidence tell, at equal cost and with the cost of
# the confidence itself counted? The paper names routing in section 5.3 and does not try it.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`; all are shown
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %% tags=["hide-input"]
from itertools import combinations

import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.applications import frontier, frontier_gains, split_counts
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import mean_interval
from capcal_lib.results import (
    cascade,
    describe_runs,
    load_pair,
    routers,
    subjects,
)

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
described = {
    name: describe_runs(runs, name, k_eval=k_eval) for name in model_names()
}
size = {name: load_model(name).parameters for name in described}
real = {
    name: set(described[name].query("evidence == 'measured'").index)
    for name in sorted(described, key=lambda name: size[name] or 0)
    if size[name] and len(described[name])
}

# %% tags=["hide-input"]
shared = [
    (small, large, dataset)
    for small, large in combinations(real, 2)
    for dataset in described[small].index
    if dataset in real[small] & real[large]
]
none = {
    "runs": "No two models of this store have solved a question of one data set."
}
titles = {name: f"{size[name] / 1e9:.2g}B" for name in real}
notebook.about(model, described[model], lacking={} if shared else none)

# %% [markdown] needs="runs"
# A router sends each question to one of two models within a budget. It is worth what it solves beyond *random mixing*: a
# random share of the questions sent to the large model, at the same cost.

# %%
# needs runs
pairs = {case: load_pair(runs, *case, k_eval=k_eval) for case in shared}
pairs = {
    case: pair for case, pair in pairs.items() if pair.rates.any(axis=None)
}
fronts = {}
for case, pair in pairs.items():
    for name, predicted, asking in routers(pair):
        known = pair.reading + pair.writing.mean()  # before the answer is there
        expected, paid = known + asking, pair.cost + asking
        own = frontier(predicted, expected, pair.rates, paid)
        fronts[*case, name] = own

# %%
# needs runs
gains = {
    case: frontier_gains(*own, pairs[case[:3]].rates, pairs[case[:3]].cost)
    for case, own in fronts.items()
}

# %% tags=["hide-input"]
# needs runs
notebook.lack(not pairs, **none)


# %% [markdown] needs="runs"
# Two more routers show what is possible. A *cascade* lets ten answers of the small model vote, and asks the large model
# where they disagree. An *honest oracle* knows one half of each question's samples for free, and is scored on the other
# half.


# %%
# needs runs
def split_rates(pair):
    """Return the rates of two random halves of each question's samples."""
    rng = np.random.default_rng(seed)
    known, rest = {}, {}
    for name in pair.rates:
        counts = pair.correct[name], pair.total[name]
        (c, n), (d, m) = split_counts(*counts, rng=rng)
        known[name], rest[name] = c / n, d / m
    index = pair.rates.index
    return pd.DataFrame(known, index), pd.DataFrame(rest, index)


# %%
# needs runs
for case, pair in pairs.items():
    known, rest = split_rates(pair)
    expected = pair.reading + pair.writing.mean()
    own = frontier(known, expected, rest, pair.cost)
    fronts[*case, "Honest oracle"] = own
    gains[*case, "Honest oracle"] = frontier_gains(*own, rest, pair.cost)

# %%
# needs runs
for case, pair in pairs.items():
    own = cascade(pair, [0.3, 0.5, 0.7, 0.9], k_eval=k_eval)
    if own[0].notna().all(axis=None):  # enough samples to vote
        fronts[*case, "Consistency cascade"] = own
        gain = frontier_gains(*own, pair.rates, pair.cost)
        gains[*case, "Consistency cascade"] = gain


# %%
# needs runs
def judge(gain, dataset, scale=100):
    """Give a mean gain its interval, in points; subjects stay together."""
    groups = subjects(pd.concat({dataset: gain}, names=["dataset"]))
    mean = mean_interval(gain, clusters=groups.to_numpy())
    limits = np.array(mean[:3]) * scale
    return dict(zip(["gain", "low", "high"], limits, strict=True))


# %%
# needs runs
found = pd.DataFrame(
    {case: judge(gain, case[2]) for case, gain in gains.items()}
)
found = found.T.rename_axis(["small", "large", "dataset", "router"])

# %% tags=["hide-input"]
# needs runs
probe = found.xs("Probe", level="router")
oracle = found.xs("Honest oracle", level="router")["gain"]
over = pd.DataFrame(
    {
        case: judge(
            gains[*case, "Probe"] - gains[*case, "Prompt length"], case[2]
        )
        for case in probe.index
    }
).T
notebook.glue(
    cases=len(probe),
    better=int((probe["low"] > 0).sum()),
    worse=int((probe["high"] < 0).sum()),
    longer=int((over["low"] > 0).sum()),
    shorter=int((over["high"] < 0).sum()),
    oracle_least=oracle.min(),
    oracle_most=oracle.max(),
)

# %% tags=["finding"]
# needs runs
notebook.finding("""
Routing by a probe of the small model solves significantly more questions than random mixing at equal cost in {better} of
{cases} cases (a data set and a pair of models) and fewer in {worse}. Compared with a rule that needs no confidence, to
send the shortest prompts to the large model, it is more in {longer} and fewer in {shorter}. There is something to gain:
the honest oracle gains {oracle_least:z.1f} to {oracle_most:z.1f} points.
""")

# %% tags=["hide-input"]
# needs runs
colors = {"Both probes": "#3866bd", "Consistency cascade": "#860282"}
colors |= {"Honest oracle": style.MUTED, "Prompt length": "#8a5a44"}
names = list(dict.fromkeys(found.index.get_level_values("router")))
colors = style.palette(set(names) - set(colors)) | colors
shown = found.reset_index()
shown["data set"] = [load_dataset(name).title for name in shown["dataset"]]
shown["pair"] = shown["small"].map(titles) + " to " + shown["large"].map(titles)
shown["case"] = shown["data set"] + ", " + shown["pair"]

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Gain of each router over random mixing at equal cost, a dot a router and a row a data set and a pair of models. Grey: the honest oracle.", "name": "fig-routing"}, "image": {"alt": "Dot plot with a row a case and a dot a router. The honest oracle lies to the right of zero; the probe lies near zero; verbalized confidence, P(True) and both probes lie left of it, most where answers are short."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
grid = sns.relplot(
    shown,
    x="gain",
    y="case",
    hue="router",
    palette=colors,
    height=0.32 * shown["case"].nunique() + 1.2,
    s=45,
)
grid.refline(x=0, color=style.INK)
grid.set(xlabel="points gained at equal cost", ylabel="")
grid.figure.set(layout_engine="constrained")
grid.figure.set_figwidth(style.WIDTH)
sns.move_legend(grid, "outside lower center", ncols=3, title="")

# %% label="routing-gains" tags=["hide-input"] paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
shown["text"] = tables.intervals(shown, "gain", digits=1)
wide = shown.pivot(index="case", columns="router", values="text")
tables.show(
    wide[names].rename_axis(columns=None).fillna("–"),
    "Gain over random mixing at equal cost, in points, with 95 % intervals.",
    evidence="measured",
)

# %% [markdown] needs="runs"
# ## Choosing a model for each question
#
# Lugoloobi et al. (2026) route among reasoning models by such probes, and report the accuracy of
# the best one for up to 70 % less on MATH, without an interval.
#
# A question goes to the model with the highest predicted accuracy less a price times its cost. Each price is a point of the
# frontier; `route` finds the lowest one that a budget allows. Here the budget allows the large model (the second column)
# for one question, the one where it helps most.

# %%
from capcal_lib.applications import mixing_gain_terms, route

predicted = [[0.9, 0.9], [0.1, 0.8], [0.2, 0.3]]
each_cost = [[1, 3], [1, 3], [1, 3]]
route(predicted, each_cost, budget=1.7)

# %% [markdown]
# The rival of the same cost is the best mixture of the two models: above the cost of the large one, the large one alone.

# %%
solved, spent = [0.9, 0.8, 0.2], [1, 3, 1]
mixing_gain_terms(solved, spent, predicted, each_cost).mean().round(3)

# %% [markdown] needs="runs"
# A router's gain is the mean over nine budgets, evenly between its least and greatest cost. For one case:

# %%
# needs runs
case = max(pairs, key=lambda case: size[case[1]] / size[case[0]])
pair = pairs[case]
lines = pd.concat(
    {
        name: pd.DataFrame({"spent": own[1].mean(), "solved": own[0].mean()})
        for (*of, name), own in fronts.items()
        if tuple(of) == case
    },
    names=["router"],
).reset_index()
ends = pd.DataFrame({"spent": pair.cost.mean(), "solved": pair.rates.mean()})

# %% mystnb={"figure": {"caption": "Accuracy against mean cost, in billions of parameters times tokens read and written, for routers between the smallest and the largest model; what a router asks is paid for. Dotted: random mixing.", "name": "fig-frontier"}, "image": {"alt": "Line plot of accuracy against cost. A dotted line joins the smallest and the largest model; the honest oracle lies above it, routers by confidences near it or, where asking is dear, below and to the right of it."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
axes = sns.lineplot(
    lines,
    x="spent",
    y="solved",
    hue="router",
    palette=colors,
    estimator=None,
    marker=".",
)
axes.plot(ends["spent"], ends["solved"], "o:", color=style.INK)
axes.set(title=load_dataset(case[2]).title, ylabel="share solved")
axes.set(xlabel="cost a question: billions of parameters × tokens")
sns.move_legend(axes, "center left", bbox_to_anchor=(1, 0.5), title="")

# %% [markdown] needs="runs"
# ## What it costs to ask
#
# Costs are parameters times tokens, read and written. A probe of the small model costs the small model's reading of the
# prompt where the large one answers, and nothing where it does not. Both probes cost both readings always. A
# model that is asked for its confidence reads the prompt once more, taken to be as long as the question's, and
# writes. Lengths of answers are not known ahead: a router expects their mean, and pays what they are.

# %%
# needs runs
facts = {}
for (_, _, dataset), pair in pairs.items():
    for name, share in pair.rates.mean().items():
        title = load_dataset(dataset).title, load_model(name).short_title
        billions = size[name] / 1e9
        read = pair.reading[name].mean() / billions
        written = pair.writing[name].mean() / billions
        facts[title] = {"read": read, "written": written, "accuracy": share}
price = pd.DataFrame(facts).T.rename_axis(["data set", "model"])

# %% label="routing-costs" paper=["section-5.3"] evidence=["measured"] reads=["samples"]
# needs runs
tables.show(
    price,
    "Tokens of a question, and accuracy of always asking one model, on the "
    "questions that two models were asked.",
    evidence="measured",
    read="{:.0f}",
    written="{:.0f}",
)

# %% [markdown] needs="runs"
# Where answers are short, reading is nearly all of the cost. Then asking the large model for anything, even for its
# hidden state, costs as much as its answer: it can make the answers better, and not cheaper.
#
# ## The share of the gap that is recovered
#
# The field counts calls of the large model, not costs: the *performance gap recovered*, averaged over all shares of
# calls, is one half for random choice. Asking is free in this count, and long prompts cost no more than short ones; it is
# given where the large model is significantly better.

# %%
# needs runs
recovered = {}
for case, pair in pairs.items():
    gap = pair.rates[case[1]] - pair.rates[case[0]]
    calls = 0 * pair.cost + [1, 2]
    for name, predicted, _ in list(routers(pair))[1:]:
        if judge(gap, case[2])["low"] > 0:
            own = frontier(predicted, calls, pair.rates, calls, budgets=19)
            gain = frontier_gains(*own, pair.rates, calls)
            share = gain.mean() / gap.mean()
            terms = 0.5 + share + (gain - share * gap) / gap.mean()
            recovered[*case, name] = judge(terms, case[2], scale=1)
shares = pd.DataFrame(recovered).T.rename_axis(found.index.names)
shares = shares.rename(columns={"gain": "share"})

# %% label="routing-recovered" tags=["hide-input"] paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs runs
text = tables.intervals(shares, "share", digits=2).rename("text")
text = shown.set_index(found.index.names)[["data set", "pair"]].join(text)
text = text.dropna().reset_index()
wide = text.pivot(index=["data set", "pair"], columns="router", values="text")
tables.show(
    wide[[name for name in names if name in wide]].rename_axis(columns=None),
    "Average share of the gap recovered (random: 0.5), with 95 % intervals.",
    evidence="measured",
)

# %% tags=["hide-input"]
# needs runs
both = shares.xs("Both probes", level="router")
paid = found.xs("Both probes", level="router")
notebook.glue(
    gaps=len(both),
    recovering=int((both["low"] > 0.5).sum()),
    recovered=both["share"].median(),
    paid=len(paid),
    losing=int((paid["high"] < 0).sum()),
    winning=int((paid["low"] > 0).sum()),
)

# %%
# needs runs
notebook.say("""
Counted in calls, probes of both models recover significantly more than random choice in {recovering} of {gaps} cases
(median share {recovered:.2f}). Counted in cost, where the large model has read every prompt, they gain significantly in
{winning} of {paid} and lose in {losing}.
""")

# %% [markdown]
# ## Summary
#
# - Compare a router with random mixing at equal cost, with everything that it asks paid for.
# - Short answers leave little to save: reading the prompt is the cost, and every model that is asked anything reads it.
# - Shares of calls flatter routers that ask much; the same predictions may gain in calls and lose in cost.
#
# ## Exercises
#
# **1 (easy).** Which budget sends every question to the model with the highest prediction? *Hint:* the price is zero.

# %% tags=["hide-cell", "solution"]
route([[0.9, 0.9], [0.1, 0.8], [0.2, 0.3]], each_cost, budget=3)

# %% [markdown]
# **2 (medium).** Let the first model predict 0.5 for every question. Which questions does a router send on, at half the
# calls? *Hint:* all gains are equal.

# %% tags=["hide-cell", "solution"]
even = [[0.5, 1.0]] * 4
route(even, [[1, 2]] * 4, budget=1.5)  # none: all or nothing at one price

# %% [markdown]
# **3 (hard).** A router asks for a confidence that costs half a small answer, and is always right. How much better must the
# large model be on the questions that need it? *Hint:* simulate, with `mixing_gain_terms`.

# %% tags=["hide-cell", "solution"]
simulated = {}
hard = np.arange(100) < 30
for better in (0.05, 0.1, 0.2, 0.4):
    rates = np.column_stack([np.full(100, 0.5), 0.5 + better * hard])
    paid_each = np.where(hard, 3, 1) + 0.5
    right = np.where(hard, rates[:, 1], rates[:, 0])
    terms = mixing_gain_terms(right, paid_each, rates, [[1, 3]] * 100)
    simulated[better] = terms.mean()
pd.Series(simulated).round(3)
