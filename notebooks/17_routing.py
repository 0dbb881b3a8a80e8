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
# Where a small model will do, a large one need not be paid for; this page measures whether a confidence can tell, at
# equal cost and with the cost of the confidence itself counted. The paper names routing in section 5.3 and does not try it.

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
from capcal_lib.applications import mixing_gain_terms, route, split_counts
from capcal_lib.book import notebook, style, tables
from capcal_lib.confidence import (
    TITLES,
    read_answers,
    read_confidence,
    vote_terms,
)
from capcal_lib.manifests import load_dataset, load_model, model_names

# %% tags=["hide-input"]
from capcal_lib.metrics import mean_interval
from capcal_lib.probes import nearest_probe
from capcal_lib.results import describe_runs, load_results, subjects
from capcal_lib.runs import read_samples

notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)

# %% tags=["hide-input"]
described = {
    name: describe_runs(runs, name, k_eval=k_eval) for name in model_names()
}
real = {
    name: data[data["evidence"] == "measured"]
    for name, data in described.items()
    if load_model(name).parameters and len(data)
}
real = dict(sorted(real.items(), key=lambda one: load_model(one[0]).parameters))

# %% tags=["hide-input"]
titles = {name: f"{load_model(name).parameters / 1e9:.2g}B" for name in real}
sets = {
    dataset: [name for name, data in real.items() if dataset in data.index]
    for dataset in dict.fromkeys(
        d for data in real.values() for d in data.index
    )
}
sets = {dataset: names for dataset, names in sets.items() if len(names) > 1}
none = {
    "runs": "No two models of this store have measured samples of one data set."
}
notebook.about(model, described[model], lacking={} if sets else none)


# %% tags=["hide-input"]
def table_of(name, dataset):
    """Return a model's counts, probe and tokens on a data set, by question."""
    own = load_results(runs, name, datasets=[dataset], k_eval=k_eval)
    own = own[own["total"] > 1]
    own = own.dropna(axis="columns", how="all").droplevel("dataset")
    if probe := nearest_probe(own, dataset):
        own = own.rename(columns={probe: "Probe"})
    samples = read_samples(real[name].loc[dataset, "run"])
    tokens = samples.groupby("question_id")[
        ["prompt_tokens", "completion_tokens"]
    ]
    return own.join(tokens.mean())


loaded = {
    (name, dataset): table_of(name, dataset)
    for dataset, names in sets.items()
    for name in names
}


# %% tags=["hide-input"]
def side_by_side(dataset, names):
    """Return tables with a column a model: rates, costs, costs of reading."""
    names = list(names)
    own = pd.concat({name: loaded[name, dataset] for name in names}, axis=1)
    own = own.dropna(subset=[(name, "total") for name in names]).swaplevel(
        axis=1
    )
    size = pd.Series(
        {name: load_model(name).parameters / 1e9 for name in names}
    )
    reading = own["prompt_tokens"] * size
    writing = own["completion_tokens"] * size
    rates = own["correct"] / own["total"]
    return rates[names], (reading + writing)[names], reading[names]


# %% tags=["hide-input"]
def asked(dataset, pair, rates, reading):
    """Return, for each way to ask the small model, confidence and cost."""
    small, large = pair
    own = loaded[small, dataset].loc[rates.index]
    size = load_model(small).parameters / 1e9
    for method, name in TITLES.items():
        if name in own:
            spent = read_confidence(real[small].loc[dataset, "run"], method)
            tokens = pd.Series(spent.tokens, spent.question_ids)[rates.index]
            asking = reading[small] + size * tokens
            asking = pd.DataFrame({small: asking, large: asking})
            yield name, own[name].fillna(0.5), asking


# %% tags=["hide-input"]
def predictions(dataset, pair):
    """Return, for each router, predicted accuracies and what asking costs."""
    small, large = pair
    rates, _, reading = side_by_side(dataset, pair)
    own = loaded[small, dataset].loc[rates.index]
    same = pd.DataFrame({small: 0.0, large: 1.0}, rates.index)
    yield "Prompt length", same, 0 * reading
    if "Probe" in own:  # the small model's prompt is read in any case
        asking = pd.DataFrame({small: 0.0, large: reading[small]})
        yield "Probe", same.assign(**{small: own["Probe"]}), asking
        other = loaded[large, dataset].get("Probe")
        if other is not None:
            both = {small: own["Probe"], large: other[rates.index]}
            asking = reading[[large, small]].set_axis([small, large], axis=1)
            yield "Both probes", pd.DataFrame(both), asking
    for name, s, asking in asked(dataset, pair, rates, reading):
        yield name, same.assign(**{small: s}), asking


# %% tags=["hide-input"]
def oracle(dataset, pair):
    """Predict by one half of the samples, and return rates of the other."""
    rng, known, rest = np.random.default_rng(seed), {}, {}
    rates, *_ = side_by_side(dataset, pair)
    for name in pair:
        own = loaded[name, dataset].loc[rates.index]
        counts = own["correct"], own["total"]
        (c, n), (d, m) = split_counts(*counts, rng=rng)
        known[name], rest[name] = c / n, d / m
    return pd.DataFrame(known, rates.index), pd.DataFrame(rest, rates.index)


# %% tags=["hide-input"]
def frontier(predicted, rates, cost, reading, asking, steps=9):
    """Route within budgets; return accuracy and cost, a column a budget."""
    writing = cost - reading  # not known ahead, but for its mean
    expected = (reading + asking + writing.mean())[rates.columns]
    ends = expected.min(axis=1).mean(), expected.max(axis=1).mean()
    rows, solved, spent = np.arange(len(rates)), {}, {}
    for budget in np.linspace(*ends, steps + 2)[1:-1]:
        choice = route(predicted, expected, budget)
        paid = (cost + asking)[rates.columns]
        solved[budget] = rates.to_numpy()[rows, choice]
        spent[budget] = paid.to_numpy()[rows, choice]
    return pd.DataFrame(solved, rates.index), pd.DataFrame(spent, rates.index)


def gain_terms(solved, spent, rates, cost):
    """Return the mean gain over budgets, over mixing, a term a question."""
    each = [mixing_gain_terms(solved[b], spent[b], rates, cost) for b in solved]
    return pd.Series(np.mean(each, axis=0), rates.index)


# %% tags=["hide-input"]
def cascade(dataset, pair, k_c=10):
    """Let k_c answers of the small model vote; ask the large one in doubt."""
    small, large = pair
    rates, cost, reading = side_by_side(dataset, pair)
    answers = read_answers(real[small].loc[dataset, "run"], k=k_eval)
    votes = vote_terms(answers, k_c).set_index("row").fillna(0)
    votes.index = answers.question_ids[votes.index]
    votes = votes[votes.index.isin(rates.index)]
    asked = (reading[small] + k_c * (cost - reading)[small])[votes.index]
    solved, spent = {}, {}
    for share in (0.3, 0.5, 0.7, 0.9):
        sure = votes["confidence"] >= share
        right = votes["right"].where(sure, rates[large][votes.index])
        paid = asked + cost[large][votes.index].where(~sure, 0)
        solved[share] = right.groupby(level=0).mean().reindex(rates.index)
        spent[share] = paid.groupby(level=0).mean().reindex(rates.index)
    return pd.DataFrame(solved), pd.DataFrame(spent)


# %% tags=["hide-input"]
def routers(dataset, pair):
    """Return, for each router, its frontier and its gains over mixing."""
    rates, cost, reading = side_by_side(dataset, pair)
    for name, predicted, asking in predictions(dataset, pair):
        own = frontier(predicted, rates, cost, reading, asking)
        yield name, own, gain_terms(*own, rates, cost)
    own = cascade(dataset, pair)
    if own[0].notna().all(axis=None):  # enough samples to vote
        yield "Consistency cascade", own, gain_terms(*own, rates, cost)
    known, rest = oracle(dataset, pair)
    own = frontier(known, rest, cost, reading, 0 * cost)
    yield "Honest oracle", own, gain_terms(*own, rest, cost)


# %% tags=["hide-input"]
def interval(terms, dataset):
    """Return a mean with its interval; subjects of a data set stay together."""
    groups = subjects(pd.concat({dataset: terms}, names=["dataset"]))
    rng = np.random.default_rng(seed)
    return mean_interval(terms, rng=rng, clusters=groups.to_numpy())


# %% tags=["hide-input"]
# needs runs
found, fronts, gains = [], {}, {}
for dataset, names in sets.items():
    for pair in combinations(names, 2):
        for name, own, terms in routers(dataset, pair):
            mean = interval(terms, dataset)
            fronts[dataset, *pair, name] = own
            gains[dataset, *pair, name] = terms
            found.append((dataset, *pair, name, *(100 * x for x in mean[:3])))
columns = ["dataset", "small", "large", "router", "gain", "low", "high"]
found = pd.DataFrame(found, columns=columns)

# %% tags=["remove-cell"]
# needs runs
probe = found[found["router"] == "Probe"]
upper = found[found["router"] == "Honest oracle"]
over_length = [
    interval(terms - gains[*key, "Prompt length"], key[0])
    for (*key, name), terms in gains.items()
    if name == "Probe"
]
notebook.glue(
    cases=len(probe),
    better=int((probe["low"] > 0).sum()),
    worse=int((probe["high"] < 0).sum()),
    longer=sum(gain.low > 0 for gain in over_length),
    shorter=sum(gain.high < 0 for gain in over_length),
    oracle_least=upper["gain"].min(),
    oracle_most=upper["gain"].max(),
)

# %% [markdown] needs="runs"
# Routing by a probe of the small model solves significantly more questions than random mixing at equal cost in
# {glue:text}`better` of {glue:text}`cases` cases (data set and pair of models) and fewer in {glue:text}`worse`; compared with
# sending the shortest prompts to the large model, which needs no confidence, more in {glue:text}`longer` and fewer in
# {glue:text}`shorter`. There is something to gain: an *honest oracle*, which knows one half of each question's samples for
# free and is scored on the other half, gains {glue:text}`oracle_least:z.1f` to {glue:text}`oracle_most:z.1f` points.

# %% tags=["remove-cell"]
# needs runs
dataset = max(sets, key=lambda name: len(sets[name]))
small, large = sets[dataset][0], sets[dataset][-1]
rates, cost, reading = side_by_side(dataset, sets[dataset])
lines = [
    pd.DataFrame(
        {"spent": spent.mean(), "solved": solved.mean(), "router": name}
    )
    for (d, a, b, name), (solved, spent) in fronts.items()
    if (d, a, b) == (dataset, small, large)
]
lines = pd.concat(lines)
points = pd.DataFrame({"spent": cost.mean(), "solved": rates.mean()})
points.index = points.index.map(titles)
ours = {"Both probes": "#3866bd", "Consistency cascade": "#860282"}
ours |= {"Honest oracle": style.MUTED, "Prompt length": "#8a5a44"}
palette = style.palette(set(lines["router"]) - set(ours)) | ours

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Accuracy against mean cost, in billions of parameters times tokens read and written, for routers between the smallest and the largest model; what a router asks is paid for. Dotted: random mixing. Points: always one model.", "name": "fig-routing"}, "image": {"alt": "Line plot of accuracy against cost. A dotted line joins the smallest and the largest model; the honest oracle lies above it, routers by confidences near it or, where asking is dear, below and to the right of it."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
axes = sns.lineplot(
    lines,
    x="spent",
    y="solved",
    hue="router",
    palette=palette,
    estimator=None,
    marker=".",
    markeredgewidth=0,
)
sns.scatterplot(points, x="spent", y="solved", color=style.INK, s=40, ax=axes)
ends = points.iloc[[0, -1]]
axes.plot(ends["spent"], ends["solved"], ":", color=style.INK)
for name, row in points.iterrows():
    at = (-32, 3) if name == points.index[-1] else (8, -4)
    axes.annotate(name, row, at, textcoords="offset points")
axes.set(title=load_dataset(dataset).title, ylabel="share solved")
axes.set(xlabel="cost a question: billions of parameters × tokens")
sns.move_legend(axes, "center left", bbox_to_anchor=(1, 0.5), title="")

# %% [markdown]
# ## Choosing a model for each question
#
# A question goes to the model with the highest predicted accuracy less a price times its cost. Each price is a point of the
# frontier; `route` finds the lowest one that a budget allows. Here the budget allows the large model (the second column)
# for one question, the one where it helps most.

# %%
predicted = [[0.9, 0.9], [0.1, 0.8], [0.2, 0.3]]
each_cost = [[1, 3], [1, 3], [1, 3]]
route(predicted, each_cost, budget=1.7)

# %% [markdown]
# A rule without any confidence reaches every cost in between too: it sends a random share of the questions to
# the large model. A router is worth what it solves beyond the best such mixture *of the same cost*. Another simple rule
# predicts the same for all questions: it sends the shortest prompts to the large model, where they cost least.

# %%
solved, spent = [0.9, 0.8, 0.2], [1, 3, 1]
mixing_gain_terms(solved, spent, predicted, each_cost).mean().round(3)

# %% [markdown] needs="runs"
# ## What it costs to ask
#
# Costs are parameters times tokens, read and written. A probe of the small model costs the small model's reading of the
# prompt where the large one answers, and nothing where it does not. Both probes cost both readings always. A
# model that is asked for its confidence reads the prompt once more, taken to be as long as the question's, and
# writes. Lengths of answers are not known ahead: a router expects their mean, and pays what they are.

# %% tags=["hide-input"] label="routing-costs" paper=["section-5.3"] evidence=["measured"] reads=["samples"]
# needs runs
rows = []
for name, dataset in loaded:
    tokens = loaded[name, dataset][
        ["prompt_tokens", "completion_tokens"]
    ].mean()
    share = loaded[name, dataset].eval("correct / total").mean()
    rows.append(
        (load_dataset(dataset).title, load_model(name).title, *tokens, share)
    )
columns = ["data set", "model", "read", "written", "accuracy"]
price = pd.DataFrame(rows, columns=columns)
tables.show(
    price,
    "Tokens of a question, and accuracy of always asking one model.",
    evidence="measured",
    read="{:.0f}",
    written="{:.0f}",
)

# %% [markdown] needs="runs"
# Where answers are short, reading is nearly all of the cost. Then asking the large model for anything, even for its
# hidden state, costs as much as its answer: it can make the answers better, and not cheaper.
#
# ## At equal cost
#
# The mean gain over nine budgets, evenly between a router's least and greatest cost, is the area between its frontier and
# random mixing. Above the cost of the large model the rival is the large model.

# %% tags=["hide-input"] label="routing-gains" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
text = found.assign(
    gain=found.apply(
        "{0[gain]:z.1f} [{0[low]:z.1f}, {0[high]:z.1f}]".format, axis=1
    ),
    pair=[
        f"{titles[a]} → {titles[b]}"
        for a, b in zip(found["small"], found["large"], strict=True)
    ],
    dataset=[load_dataset(name).title for name in found["dataset"]],
)
keys = ["dataset", "pair"]
wide = text.pivot(index=keys, columns="router", values="gain")
wide = wide[list(dict.fromkeys(found["router"]))]
tables.show(
    wide.rename_axis(["data set", "pair"]).rename_axis(columns=None),
    "Gain over random mixing at equal cost, in points, with 95 % intervals.",
    evidence="measured",
)

# %% [markdown] needs="runs"
# ## The share of the gap that is recovered
#
# The field counts calls of the large model, not costs: the *performance gap recovered*, averaged over all shares of
# calls, is one half for random choice. Asking is free in this count, and long prompts cost no more than short ones; it is
# given where the large model is significantly better.


# %% tags=["hide-input"]
def recovered(dataset, pair):
    """Return the share of the gap that each router recovers, asking free."""
    rates, cost, _ = side_by_side(dataset, pair)
    gap, calls = rates[pair[1]] - rates[pair[0]], 0 * cost + [1, 2]
    if interval(gap, dataset).low <= 0:
        return
    for name, predicted, _ in list(predictions(dataset, pair))[1:]:
        own = frontier(predicted, rates, calls, calls, 0 * calls, 19)
        gain = gain_terms(*own, rates, calls)
        share = gain.mean() / gap.mean()
        terms = 0.5 + share + (gain - share * gap) / gap.mean()
        yield name, interval(terms, dataset)[:3]


# %% tags=["hide-input"]
# needs runs
pairs = found[["dataset", "small", "large"]].drop_duplicates()
shares = {
    (load_dataset(dataset).title, f"{titles[a]} → {titles[b]}", name): mean
    for dataset, a, b in pairs.itertuples(index=False)
    for name, mean in recovered(dataset, (a, b))
}
shares = pd.DataFrame(shares, index=["share", "low", "high"]).T

# %% tags=["hide-input"] label="routing-recovered" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs runs
text = shares.apply(
    "{0[share]:.2f} [{0[low]:.2f}, {0[high]:.2f}]".format, axis=1
)
wide = text.unstack()[list(dict.fromkeys(shares.index.get_level_values(2)))]
tables.show(
    wide.rename_axis(["data set", "pair"]),
    "Average share of the gap recovered (random: 0.5), with 95 % intervals.",
    evidence="measured",
)

# %% tags=["remove-cell"]
# needs runs
both = shares.xs("Both probes", level=2)
notebook.glue(
    gaps=len(both),
    recovering=int((both["low"] > 0.5).sum()),
    recovered=both["share"].median(),
)
paid = found[found["router"] == "Both probes"]
notebook.glue(losing=int((paid["high"] < 0).sum()), paid=len(paid))
notebook.glue(winning=int((paid["low"] > 0).sum()))

# %% [markdown] needs="runs"
# Counted in calls, probes of both models recover significantly more than random choice in {glue:text}`recovering` of
# {glue:text}`gaps` cases (median share {glue:text}`recovered:.2f`). Counted in cost, where the large model has read every
# prompt, they gain significantly in {glue:text}`winning` of {glue:text}`paid` and lose in {glue:text}`losing`.

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
route(predicted, each_cost, budget=3)

# %% [markdown]
# **2 (medium).** Let the first model predict 0.5 for every question. Which questions does a router send on, at half the
# calls? *Hint:* all gains are equal.

# %% tags=["hide-cell", "solution"]
route(
    [[0.5, 1.0]] * 4, [[1, 2]] * 4, budget=1.5
)  # none: all or nothing at one price

# %% [markdown]
# **3 (hard).** A router asks for a confidence that costs half a small answer, and is always right. How much better must the
# large model be on the questions that need it? *Hint:* simulate, with `mixing_gain_terms`.

# %% tags=["hide-cell", "solution"]
gains = {}
hard = np.arange(100) < 30
for better in (0.05, 0.1, 0.2, 0.4):
    both = np.column_stack([np.full(100, 0.5), 0.5 + better * hard])
    paid = np.where(hard, 3, 1) + 0.5
    right = np.where(hard, both[:, 1], both[:, 0])
    gains[better] = mixing_gain_terms(right, paid, both, [[1, 3]] * 100).mean()
pd.Series(gains).round(3)
