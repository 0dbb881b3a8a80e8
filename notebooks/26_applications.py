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
# This page compares each use of a confidence that the paper names with the best simple rule that uses none, at equal cost,
# on every recorded run.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`; all are shown
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat

# %% tags=["hide-input"]
import pandas as pd
import seaborn as sns
from capcal_lib.applications import (
    abstaining_gains,
    attempts_gains,
    budget_gains,
    evaluation_gains,
    label_gains,
    pass_at_k_gains,
)
from capcal_lib.book import notebook, style, tables
from capcal_lib.confidence import TITLES
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import adjusted, gains
from capcal_lib.probes import describe_probes, nearest_probe
from capcal_lib.results import describe_runs, judged_by, load_results, subjects
from capcal_lib.runs import read_samples

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
real.sort(key=lambda name: load_model(name).parameters or 0)
none = {"runs": "No model of this store has a solved question."}
evidence = notebook.evidence_of(*(described[name] for name in real))
notebook.about(model, described[model], lacking={} if real else none)

# %% tags=["hide-input"]
ASKED, VOTES, PROBE = [*TITLES.values()], "Response consistency", "Probe"
METHODS = [*ASKED, VOTES, PROBE]
USES = ["pass@k", "First success", "Budget", "Abstaining"]
USES += ["Labels saved", "Evaluation"]
SPENT = ["Budget", "Evaluation"]  # less than ten votes cost
VERDICTS = ["better", "inconclusive", "worse"]

# %% [markdown] needs="runs"
# The *gain* on a question is what a confidence adds there to the simple rule. Each function below takes confidences and counts
# of correct and of all samples, and returns a gain a question; [what each is](#what-is-compared) stands further down.


# %%
def gains_of(s, correct, total, tokens, nu):
    """Return what a confidence gains in each use, question by question."""
    given = s, correct, total
    return {
        "pass@k": pass_at_k_gains(*given, 16, concentration=nu),
        "First success": attempts_gains(*given, 16, concentration=nu),
        "Budget": budget_gains(*given, 2, concentration=nu),
        "Evaluation": evaluation_gains(*given, tokens),
        "Abstaining": abstaining_gains(*given),
        "Labels saved": label_gains(*given),
    }


# %% tags=["hide-input"]
# needs runs
def load_sets(name):
    """Yield each data set of a model: its results, tokens, and its probe."""
    results = load_results(runs, name, k_eval=k_eval).query("total > 1")
    for dataset, own in results.groupby(level="dataset", sort=False):
        if not own["correct"].any():
            continue  # no question is ever solved, so there is nothing to gain
        own = own.droplevel("dataset").dropna(axis="columns", how="all")
        own = own.fillna({m: 0.5 for m in ASKED if m in own})
        samples = read_samples(described[name]["run"][dataset])
        tokens = samples.groupby("question_id")["completion_tokens"].mean()
        probe = nearest_probe(own, dataset)
        yield dataset, own.assign(tokens=tokens), probe


# %%
# needs runs
gained = {}
for name in real:
    sure = describe_probes(runs, name)["concentration"]
    for dataset, own, probe in load_sets(name):
        for method in [*ASKED, VOTES, probe]:
            if method in own:
                known = judged_by(own, method).join(own["tokens"])
                kind = PROBE if method == probe else method
                columns = (known[name] for name in known)
                found = gains_of(*columns, sure.get(method))
                for use, gain in found.items():
                    if kind != VOTES or use not in SPENT:
                        gained[use, kind, name, dataset] = gain


# %% tags=["hide-input"]
# needs runs
notebook.lack(not gained, **none)


# %%
# needs runs
def judge(gain, dataset):
    """Judge a mean gain: with its interval, over questions or subjects."""
    gain = gain.dropna()
    groups = subjects(pd.concat({dataset: gain}, names=["dataset"]))
    terms = pd.DataFrame({"rival": gain, "own": 0.0})
    clusters = groups.to_numpy()
    return gains(terms, "rival", clusters=clusters).loc["own"]


# %%
# needs runs
keys = ["use", "method", "model", "dataset"]
found = {
    key: judge(gain, key[-1])
    for key, gain in gained.items()
    if gain.notna().sum() > 1
}
found = pd.DataFrame(found).T.rename_axis(keys).reset_index()

# %%
# needs runs
numbers = ["estimate", "low", "high", "p"]
found[numbers] = found[numbers].astype(float)

# %%
# needs runs
found["p (Holm)"] = adjusted(found["p"].to_numpy(), "holm")
found["verdict"] = found["verdict"].where(
    found["p (Holm)"] < 0.05, "inconclusive"
)
counts = found.groupby("method")["verdict"].value_counts()
counts = counts.unstack(fill_value=0).reindex(columns=VERDICTS, fill_value=0)
counts = counts.reindex(METHODS, fill_value=0)

# %% tags=["hide-input"]
# needs runs
probed, asked = counts.loc[PROBE], counts.loc[ASKED].sum()
uses = found[found["method"] == PROBE].groupby("use", sort=False)["verdict"]
won = uses.agg(lambda verdicts: (verdicts == "better").sum())
lost = uses.agg(lambda verdicts: (verdicts == "worse").sum())
spoken = won.index.str.lower().str.replace("budget", "spending a budget")
spoken = pd.Series(spoken, won.index) + " (" + won.astype(str) + " better"
spoken += ", " + lost.astype(str) + " worse of " + uses.size().astype(str) + ")"
notebook.glue(
    made=len(found),
    probes=int(probed.sum()),
    probe_better=int(probed["better"]),
    probe_worse=int(probed["worse"]),
    asks=int(asked.sum()),
    asked_better=int(asked["better"]),
    asked_worse=int(asked["worse"]),
    helps=", ".join(spoken[won > 0]) or "nothing",
    never=", ".join(spoken[won == 0]) or "nothing",
)

# %% tags=["finding"]
# needs runs
notebook.finding("""
A probe is better than the best simple rule in {probe_better} of {probes} comparisons and worse in {probe_worse}; what the
model says of itself is worse in {asked_worse} of its own.
""")

# %%
# needs runs
notebook.say("""
All {made} comparisons are judged together by Holm's method. A probe wins somewhere for {helps}; and nowhere for {never}.
Asked, the model is better in {asked_better} of {asks} comparisons and worse in {asked_worse}.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Share of the comparisons of each application, over models and data sets, in which a confidence is better than the best simple rule, inconclusive, or worse, all judged together.", "name": "fig-applications"}, "image": {"alt": "Four panels of horizontal stacked bars, one for each method, with a row for each application. Asked confidences are mostly worse than a simple rule; probes and response consistency are better in a part of the applications and inconclusive in most others."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
drawn = found.assign(use=pd.Categorical(found["use"], USES, ordered=True))
grid = sns.displot(
    drawn,
    y="use",
    hue="verdict",
    hue_order=VERDICTS[::-1],
    palette=[*style.VERDICT_COLORS.values()][::-1],
    col="method",
    col_order=[m for m in METHODS if m in set(found["method"])],
    multiple="fill",
    shrink=0.8,
    alpha=1,
)
grid.set(xlabel="share", ylabel="", xticks=[0, 0.5, 1])
grid.set(xticklabels=["0", "0.5", "1"]).set_titles("{col_name}")
grid.figure.set(layout_engine="constrained", size_inches=(style.WIDTH, 3.4))
sns.move_legend(grid, "outside lower center", ncols=3, title="")


# %% tags=["hide-input"]
def spell(verdicts):
    """Count verdicts: better / inconclusive / worse."""
    of = " / ".join(str((verdicts == each).sum()) for each in VERDICTS)
    return of.replace(" ", "\N{NO-BREAK SPACE}")


# %% tags=["hide-input"] label="applications-summary" paper=["section-5.1", "section-5.2", "section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
wide = found.pivot_table(
    index="use", columns="method", values="verdict", aggfunc=spell
)
wide = wide.reindex(index=USES, columns=METHODS).fillna("–")
tables.show(
    wide.rename_axis("application").rename_axis(columns=None),
    "Comparisons in which a confidence is better / inconclusive / worse, all "
    "judged together by Holm's method.",
    evidence=evidence,
)

# %% [markdown]
# ## What is compared
#
# Every comparison stays within one model, one data set and the same questions. A verdict is that of the mean gain over
# questions, or over subjects, with all comparisons of the page judged together.
#
# | application | gain | best simple rule |
# |---|---|---|
# | [pass@k](05_pass_at_k.ipynb) | squared error of the predicted pass@16 | the other questions' mean |
# | [First success](05_pass_at_k.ipynb) | squared error of the tries, at most 16 | the other questions' mean |
# | [Budget](06_budget_allocation.ipynb) | questions solved by two samples each in the mean | even spending |
# | [Abstaining](16_selective_prediction.ipynb) | area under the risk-coverage curve | at random |
# | [Labels saved](18_benchmarking.ipynb) | variance of a label explained | the labels' mean |
# | Evaluation | sampling variance of the accuracy at equal tokens | even spending |
#
# A probe is the one whose training set is nearest, never chosen by a score, and is taken as the mean of a posterior whose
# concentration is fitted on its training questions. Confidences that the model was asked for, and votes, have no training
# questions and are used directly; a missing one counts as one half. Ten votes cost more than a budget spends, so response
# consistency is left out there; elsewhere its cost is not counted.

# %%
# needs runs
one = found[(found["use"] == "Abstaining") & (found["method"] == PROBE)]
one[["model", "dataset", "estimate", "low", "high"]].round(3).head(3)

# %% [markdown] needs="runs"
# Comparisons on one run are not independent of each other: read the pattern, and not a single cell. Each cell counts, over
# models, the significantly better (+) and the significantly worse (−) comparisons; an empty one of a
# colour has neither.


# %%
# needs runs
def count_signs(verdicts):
    """Count what is better and worse: +2 −1."""
    often = {"+": sum(verdicts == "better"), "−": sum(verdicts == "worse")}
    return " ".join(f"{sign}{count}" for sign, count in often.items() if count)


titles = {
    name: "Built-in sets" if known.builtin else known.title
    for name, known in ((d, load_dataset(d)) for d in found["dataset"].unique())
}
signs = found.assign(
    sign=found["verdict"].map({"better": 1, "inconclusive": 0, "worse": -1}),
    dataset=found["dataset"].map(titles),
    row=found["method"] + ": " + found["use"],
)
order = [f"{method}: {use}" for method in METHODS[::-1] for use in USES]

# %% mystnb={"figure": {"caption": "Verdicts by method, application and data set: how many comparisons are significantly better (+) and worse (−). Green where more are better, red where more are worse, grey where none is or both are alike, empty where nothing was compared.", "name": "fig-applications-sets"}, "image": {"alt": "Heat map with a row for each method and application and a column for each data set. Rows of the probe are green or grey, but for pass@k on SimpleQA; rows of asked confidences are red or grey."}} label="applications-runs" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
cells = {"index": "row", "columns": "dataset"}
net = signs.pivot_table(values="sign", aggfunc="mean", **cells)
told = signs.pivot_table(values="verdict", aggfunc=count_signs, **cells)
rows = [row for row in order if row in net.index]
places = {"index": rows, "columns": list(dict.fromkeys(titles.values()))}
net, told = net.reindex(**places), told.reindex(**places).fillna("")
tints = sns.blend_palette(["#e8899c", "#d9d9d9", "#74beb4"], as_cmap=True)
look = {"cmap": tints, "vmin": -1, "vmax": 1, "cbar": False, "linewidths": 1}
look["annot_kws"] = {"size": 9.5, "color": style.INK}
look["yticklabels"] = True  # of every row
axes = sns.heatmap(net, annot=told, fmt="", **look)
axes.figure.set_size_inches(style.WIDTH, 1 + 0.26 * len(rows))
axes.grid(visible=False)
_ = axes.set(xlabel="", ylabel="")

# %% tags=["hide-input", "hide-output"] label="applications-all" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
listed = found.rename(columns={"use": "application", "estimate": "gain"})
titles_of = {each: load_model(each).short_title for each in real}
listed["model"] = listed["model"].replace(titles_of)
listed["data set"] = [load_dataset(name).title for name in found["dataset"]]
about = ["application", "method", "model", "data set"]
tables.show(
    listed[[*about, "gain", "low", "high", "p (Holm)", "verdict"]],
    "All comparisons: mean gain with its own 95 % interval, and the verdict of "
    "all together.",
    evidence=evidence,
    digits=4,
    **{"p (Holm)": lambda p: "< .001" if p < 0.001 else f"{p:.3f}"},
)

# %% [markdown]
# ## Summary
#
# - The rival of a confidence is the best rule without one, at the same cost, and not doing nothing.
# - A use that needs the order of questions is easier to serve than one that needs the number.
# - Count the cost of the confidence too: a probe is nearly free, and asking the model costs about as much as a short answer.
#
# ## Exercises
#
# **1 (easy).** Which applications have no significantly worse probe? *Hint:* the column of the probe.

# %% tags=["hide-cell", "solution"]
# needs runs
probes = found[found["method"] == PROBE]
lost = probes[probes["verdict"] == "worse"]["use"]
sorted(set(probes["use"]) - set(lost))

# %% [markdown]
# **2 (medium).** Use a probe's confidence directly, without a posterior. What changes in pass@k and budgets on one data set? *Hint:*
# no concentration.

# %% tags=["hide-cell", "solution"]
# needs runs
dataset, own, probe = next(load_sets(real[-1]))
known = own.dropna(subset=[probe]) if probe else own[:0]
counted = known["correct"], known["total"], known["tokens"]
plain = gains_of(known[probe], *counted, None) if probe else {}
pd.Series({use: judge(gain, dataset)["verdict"] for use, gain in plain.items()})

# %% [markdown]
# **3 (hard).** How many verdicts would there be by chance, were no confidence better or worse than its rule and each judged
# by its own 95 % interval? *Hint:* such an interval leaves out zero once in twenty.

# %% tags=["hide-cell", "solution"]
# needs runs
round(len(found) / 20), int((found["p"] < 0.05).sum())
