# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a confidence help?
#
# Each use of a confidence that the paper names, judged alike on every recorded run: against the best simple rule, one that
# knows no confidence, at equal cost.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`; all are shown
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of the intervals

# %% tags=["hide-input"]
from itertools import combinations

import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import metrics
from capcal_lib.applications import (
    allocate,
    mixing_gain_terms,
    pass_at_k,
    risk_area_terms,
    route,
    simulate_pass_at_k,
    spending_terms,
    success_terms,
)
from capcal_lib.book import notebook, style, tables

# %% tags=["hide-input"]
from capcal_lib.confidence import TITLES, read_confidence
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import correctness_variance_terms
from capcal_lib.probes import describe_probes, nearest_probe
from capcal_lib.results import describe_runs, load_results, subjects
from capcal_lib.runs import read_samples
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
ASKED, VOTES, PROBE = [*TITLES.values()], "Response consistency", "Probe"
METHODS = [*ASKED, VOTES, PROBE]
USES = ["pass@k", "First success", "Budget", "Abstaining", "Routing"]
USES += ["Labels saved", "Evaluation"]
VERDICTS = ["significantly better", "inconclusive", "significantly worse"]
SIGNS = dict(zip(VERDICTS, "+·−", strict=True))


# %% tags=["hide-input"]
def load_own(name, dataset, results):
    """Return counts, tokens and confidences on a data set, and the probe."""
    own = results.loc[[dataset]].dropna(axis="columns", how="all")
    if probe := nearest_probe(own, dataset):
        own = own.rename(columns={probe: PROBE})
    own = own[["correct", "total", *(m for m in METHODS if m in own)]]
    path = described[name].loc[dataset, "run"]
    columns = ["prompt_tokens", "completion_tokens"]
    samples = read_samples(path, ["question_id", *columns])
    tokens = samples.groupby("question_id")[columns].mean()
    return own.join(tokens, on="question_id"), probe


# %% tags=["hide-input"]
# needs runs
loaded, concentration = {}, {}
for name in real:
    results = load_results(runs, name, k_eval=k_eval)
    results = results[results["total"] > 1]
    fitted = describe_probes(runs, name)["concentration"]
    for dataset in results.index.unique("dataset"):
        own, probe = load_own(name, dataset, results)
        loaded[name, dataset] = own
        concentration[name, dataset] = fitted.get(probe)


# %% tags=["hide-input"]
def others(values):
    """Return the mean of the other questions' values."""
    return (values.sum() - values) / (values.count() - 1)


def predicting(s, nu, c, n, most=16):
    """Return squared errors saved in pass@k, and in tries to a success."""
    ks = np.arange(1, most + 1)
    said = simulate_pass_at_k(s, ks, concentration=nu)
    actual = pass_at_k(c, n, ks)
    pairs = (
        (said[:, -1], actual[:, -1]),
        (1 - said[:, :-1].mean(axis=1), 1 - actual[:, :-1].mean(axis=1)),
    )
    for guess, truth in pairs:
        truth = pd.Series(truth, c.index)
        yield (others(truth) - truth) ** 2 - (guess - truth) ** 2


# %% tags=["hide-input"]
def spending(s, nu, c, n, tokens, each=2):
    """Return questions gained by a budget, and sampling variance saved."""
    even = success_terms(np.minimum(each, n), c, n)
    budget, asked = each * len(n), {"max_per_question": n, "concentration": nu}
    plan = allocate(s, budget, **asked)
    # The budget is shared: what a question takes, others lack.
    more = allocate(s, 5 * budget // 4, **asked)
    gain = success_terms(plan, c, n) - even - spending_terms(plan, more, c, n)
    yield pd.Series(gain, c.index)
    wanted = np.sqrt(s * (1 - s))
    wanted = 0.25 + 0.75 * wanted / max(wanted.mean(), 1e-9)
    dealt = wanted * tokens.sum() / (wanted * tokens).sum()
    v = correctness_variance_terms(c, n, corrected=True)
    yield v * (1 - 1 / dealt)


# %% tags=["hide-input"]
def explaining(s, mu):
    """Return the variance of a label that a line through s explains."""
    line = cross_val_predict(LinearRegression(), s.to_frame(), mu, cv=10)
    return (mu - others(mu)) ** 2 - (mu - line) ** 2


def gains(own, method, nu):
    """Yield, for each application, what a confidence gains a question."""
    own = own.fillna({name: 0.5 for name in ASKED if name in own})
    own = own.dropna(subset=[method])
    s, c, n = own[method], own["correct"], own["total"]
    if n.max() >= 16:
        yield from zip(USES, predicting(s, nu, c, n), strict=False)
    if method != VOTES:  # it costs ten times what is spent here
        both = spending(s, nu, c, n, own["completion_tokens"])
        yield from zip(("Budget", "Evaluation"), both, strict=True)
    area = risk_area_terms(s, c, n)
    yield "Abstaining", 1 - c / n - area
    yield "Labels saved", explaining(s, c / n)


# %% tags=["hide-input"]
def routed(name, other, dataset):
    """Yield what routing from a model to a larger one gains a question."""
    both = {each: loaded[each, dataset] for each in (name, other)}
    own = pd.concat(both, axis=1, join="inner").swaplevel(axis=1)
    size = {each: load_model(each).parameters / 1e9 for each in both}
    reading = own["prompt_tokens"] * pd.Series(size)
    writing = own["completion_tokens"] * pd.Series(size)
    rates, cost = own["correct"] / own["total"], reading + writing

    def over_mixing(predicted, asking):
        expected, terms = reading + asking + writing.mean(), []
        ends = expected.min(axis=1).mean(), expected.max(axis=1).mean()
        for budget in np.linspace(*ends, 11)[1:-1]:
            chosen = route(predicted, expected[rates.columns], budget)
            at = np.arange(len(chosen)), chosen
            paid = (cost + asking)[rates.columns].to_numpy()[at]
            right = rates.to_numpy()[at]
            terms.append(mixing_gain_terms(right, paid, rates, cost))
        return pd.Series(np.mean(terms, axis=0), rates.index)

    path = described[name].loc[dataset, "run"]
    yield from routers(both[name], path, name, other, reading, over_mixing)


# %% tags=["hide-input"]
def routers(own, path, name, other, reading, over_mixing):
    """Yield the gains of each router over the best simple rule."""
    own = own.loc[reading.index]
    same = pd.DataFrame({name: 0.0, other: 1.0}, reading.index)
    simple = over_mixing(same, 0 * reading)
    simple = simple * (simple.mean() > 0)  # otherwise mixing itself
    for key, method in TITLES.items():
        if method in own:
            spent = read_confidence(path, key)
            tokens = pd.Series(spent.tokens, spent.question_ids)
            tokens = tokens[own.index.get_level_values("question_id")]
            size = load_model(name).parameters / 1e9
            asking = reading[name] + size * tokens.to_numpy()
            asking = pd.DataFrame({name: asking, other: asking})
            predicted = same.assign(**{name: own[method].fillna(0.5)})
            yield method, over_mixing(predicted, asking) - simple
    if PROBE in own:
        asking = pd.DataFrame({name: 0.0, other: reading[name]})
        predicted = same.assign(**{name: own[PROBE]})
        yield PROBE, over_mixing(predicted, asking) - simple


# %% tags=["hide-input"]
def judge(gain):
    """Give a mean gain its interval, p-value and verdict."""
    gain = gain.dropna()
    terms = pd.DataFrame({"rival": gain, "own": 0.0})
    groups = subjects(gain)
    found = metrics.gains(terms, "rival", seed=seed, clusters=groups)
    row = found.loc["own"]
    names = {"better": 0, "inconclusive": 1, "worse": 2}
    return {**row, "verdict": VERDICTS[names[row["verdict"]]]}


# %% tags=["hide-input"]
# needs runs
found = []
for (name, dataset), own in loaded.items():
    about = {"model": name, "dataset": dataset}
    for method in (m for m in METHODS if m in own):
        nu = concentration[name, dataset] if method == PROBE else None
        for use, gain in gains(own, method, nu):
            verdict = judge(gain)
            found.append({**about, "use": use, "method": method} | verdict)
for (a, one), (b, two) in combinations(loaded, 2):
    if one == two:
        small, large = sorted((a, b), key=lambda m: load_model(m).parameters)
        about = {"model": small, "dataset": one, "use": "Routing"}
        for method, gain in routed(small, large, one):
            found.append(
                {**about, "to": large, "method": method, **judge(gain)}
            )
found = pd.DataFrame(found)


# %% tags=["hide-input"]
def holm(p):
    """Adjust p-values for how many there are: from the smallest upwards."""
    adjusted = p.sort_values() * np.arange(len(p), 0, -1)
    return adjusted.cummax().clip(upper=1)


# %% tags=["remove-cell"]
# needs runs
found["adjusted"] = holm(found["p"])
sure = found["verdict"].where(found["adjusted"] < 0.05, VERDICTS[1])
counts = found["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
probed = found[found["method"] == PROBE]["verdict"].value_counts()
asked = found[found["method"].isin(ASKED)]["verdict"].value_counts()
notebook.glue(
    made=len(found),
    better=int(counts.iloc[0]),
    open=int(counts.iloc[1]),
    worse=int(counts.iloc[2]),
    sure_better=int((sure == VERDICTS[0]).sum()),
    sure_worse=int((sure == VERDICTS[2]).sum()),
)

# %% tags=["remove-cell"]
# needs runs
notebook.glue(
    probes=int(probed.sum()),
    probe_better=int(probed.get(VERDICTS[0], 0)),
    probe_worse=int(probed.get(VERDICTS[2], 0)),
    asks=int(asked.sum()),
    asked_better=int(asked.get(VERDICTS[0], 0)),
    asked_worse=int(asked.get(VERDICTS[2], 0)),
)

# %% tags=["remove-cell"]
# needs runs
own = found[found["method"] == PROBE].groupby("use")["verdict"]
shares = own.agg(lambda verdicts: (verdicts == VERDICTS[0]).mean())
counts = own.agg(lambda each: f"{(each == VERDICTS[0]).sum()} of {len(each)}")
said = {
    use: f"{use.lower().replace('budget', 'spending a budget')} ({counts[use]})"
    for use in counts.index
}
ends = {"helps": (0.5, 1.01), "partly": (0.2, 0.5), "hardly": (0.0, 0.2)}
groups = {
    key: [
        said[use] for use in USES if use in said and low <= shares[use] < high
    ]
    for key, (low, high) in ends.items()
}
notebook.glue(
    **{key: ", ".join(group) or "nothing" for key, group in groups.items()}
)

# %% [markdown] needs="runs"
# Of {glue:text}`made` comparisons with the best simple rule, a confidence is significantly better in {glue:text}`better` and
# significantly worse in {glue:text}`worse`. For probes it is {glue:text}`probe_better` and {glue:text}`probe_worse` of
# {glue:text}`probes`, for confidences that the model was asked for {glue:text}`asked_better` and {glue:text}`asked_worse` of
# {glue:text}`asks`. With the chance of a single false verdict among all held to 5 % (Holm), {glue:text}`sure_better` are
# better and {glue:text}`sure_worse` worse.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Share of the comparisons of each application, over models and data sets, in which a confidence is significantly better than the best simple rule, inconclusive, or significantly worse.", "name": "fig-applications"}, "image": {"alt": "Four panels of horizontal stacked bars, one for each method, with a row for each application. Asked confidences are mostly worse than a simple rule; probes and response consistency are better in a part of the applications and inconclusive in most others."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
drawn = found.assign(use=pd.Categorical(found["use"], USES, ordered=True))
grid = sns.displot(
    drawn,
    y="use",
    hue="verdict",
    hue_order=VERDICTS[::-1],
    palette=["#be123c", style.GRID, "#0f766e"],
    col="method",
    col_order=[m for m in METHODS if m in set(found["method"])],
    multiple="fill",
    shrink=0.8,
    alpha=1,
)
grid.set(xlabel="share", ylabel="", xticks=[0, 0.5, 1], xticklabels=[0, 0.5, 1])
grid.set_titles("{col_name}")
grid.figure.set(layout_engine="constrained", size_inches=(style.WIDTH, 3.4))
sns.move_legend(grid, "outside lower center", ncols=3, title="")


# %% tags=["hide-input"]
def spell(verdicts):
    """Count verdicts: better / inconclusive / worse."""
    counts = " / ".join(str((verdicts == each).sum()) for each in VERDICTS)
    return counts.replace(" ", "\N{NO-BREAK SPACE}")


# %% tags=["hide-input"] label="applications-summary" paper=["section-5.1", "section-5.2", "section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
wide = found.pivot_table(
    index="use", columns="method", values="verdict", aggfunc=spell
)
wide = wide.reindex(index=USES, columns=METHODS).fillna("–")
wide["after Holm"] = sure.groupby(found["use"]).agg(spell)
tables.show(
    wide.rename_axis("application").rename_axis(columns=None),
    "Comparisons in which a confidence is significantly better / inconclusive "
    "/ worse.",
    evidence="measured",
)

# %% [markdown]
# ## What is compared
#
# Every comparison stays within one model, one data set and the same questions. A question's *gain* is what the confidence
# adds to the simple rule on it; a verdict is that of the 95 % interval of the mean gain over questions, or over subjects.
#
# | application | gain | best simple rule |
# |---|---|---|
# | [pass@k](05_pass_at_k.ipynb) | squared error of the predicted pass@16 | the other questions' mean |
# | [First success](05_pass_at_k.ipynb) | squared error of the tries, at most 16 | the other questions' mean |
# | [Budget](06_budget_allocation.ipynb) | questions solved by two samples each in the mean | even spending |
# | [Abstaining](16_selective_prediction.ipynb) | area under the risk-coverage curve | at random |
# | [Routing](17_routing.ipynb) | questions solved at equal cost, over nine budgets | random mixing, or shortest prompts to the large model |
# | [Labels saved](18_benchmarking.ipynb) | variance of a label explained | the labels' mean |
# | [Evaluation](19_difficulty.ipynb) | sampling variance of the accuracy at equal tokens | even spending |
#
# A probe is the one whose training set is nearest, never chosen by a score, and is taken as the mean of a posterior whose
# concentration is fitted on its training questions. A model that is asked, or votes, has no training questions, so
# its confidences are taken at their word; a missing one counts as one half. Ten votes cost more than what a budget spends, so
# that response consistency has no place there; elsewhere its cost is not counted.

# %%
# needs runs
one = found[(found["use"] == "Abstaining") & (found["method"] == PROBE)]
one[["model", "dataset", "estimate", "low", "high"]].round(3).head(3)

# %% [markdown]
# ## Many comparisons
#
# Among many comparisons some intervals exclude zero by chance. Holm's method multiplies the smallest of $m$ p-values
# by $m$, the next by $m-1$, and so on.

# %%
holm(pd.Series([0.001, 0.02, 0.04, 0.3]))

# %% [markdown] needs="runs"
# Comparisons on one run are not independent of each other: read the pattern, and not a single cell. By data set, a sign
# for each model, or pair of models, from small to large, and of the built-in sets for each set: + significantly better, · inconclusive, − significantly worse.

# %% tags=["hide-input"] label="applications-runs" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
sizes = found["model"].map(lambda name: load_model(name).parameters)
titles = {
    name: "Built-in sets" if known.builtin else known.title
    for name, known in ((d, load_dataset(d)) for d in found["dataset"].unique())
}
signs = found.assign(sign=found["verdict"].map(SIGNS), size=sizes)
signs["dataset"] = signs["dataset"].map(titles)
wide = signs.sort_values("size", kind="stable").pivot_table(
    index=["method", "use"], columns="dataset", values="sign", aggfunc="".join
)
order = [(method, use) for method in METHODS[::-1] for use in USES]
wide = wide.reindex([row for row in order if row in wide.index]).fillna("")
wide = wide[list(dict.fromkeys(titles.values()))]
tables.show(
    wide.rename_axis(["method", "application"]),
    "Verdicts by method, application and data set.",
    evidence="measured",
)

# %% tags=["hide-input"]
# needs runs
names = {"use": "application", "estimate": "gain", "adjusted": "p (Holm)"}
listed = found.rename(columns=names).assign(
    model=[
        " → ".join(load_model(name).title for name in pair if pd.notna(name))
        for pair in found.reindex(columns=["model", "to"]).to_numpy()
    ],
    verdict=found["verdict"].str.removeprefix("significantly "),
)
listed["data set"] = [load_dataset(name).title for name in found["dataset"]]
columns = ["application", "method", "model", "data set", "gain", "low", "high"]

# %% tags=["hide-input", "hide-output"] label="applications-all" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
tables.show(
    listed[[*columns, "p (Holm)", "verdict"]],
    "All comparisons: mean gain with its 95 % interval, by which a confidence "
    "is significantly better or worse.",
    evidence="measured",
    digits=4,
    **{"p (Holm)": "{:.2g}"},
)

# %% [markdown]
# ## Summary
#
# - The rival of a confidence is the best rule without one, at the same cost, and not doing nothing.
# - A use that needs the order of questions is easier to serve than one that needs the number.
# - What is asked for has to be paid for: a probe nearly nothing, a question to the model as much as a short answer.
#
# ## Exercises
#
# **1 (easy).** Which applications have no significantly worse probe? *Hint:* the column of the probe.

# %% tags=["hide-cell", "solution"]
# needs runs
probes = found[found["method"] == PROBE]
lost = probes[probes["verdict"] == VERDICTS[2]]["use"]
sorted(set(probes["use"]) - set(lost))

# %% [markdown]
# **2 (medium).** Judge probes at their word, without a posterior. What changes in pass@k and budgets? *Hint:* no concentration.

# %% tags=["hide-cell", "solution"]
# needs runs
verdicts = []
for own in loaded.values():
    if PROBE in own:
        for use, gain in list(gains(own, PROBE, None))[:3]:
            verdicts.append((use, judge(gain)["verdict"]))
verdicts = pd.DataFrame(verdicts, columns=["use", "verdict"])
verdicts.groupby("use")["verdict"].agg(spell)

# %% [markdown]
# **3 (hard).** How many significant verdicts would there be by chance, were no confidence better or worse than its rule?
# *Hint:* a 95 % interval leaves out zero once in twenty.

# %% tags=["hide-cell", "solution"]
# needs runs
round(len(found) / 20), int((found["verdict"] != VERDICTS[1]).sum())
