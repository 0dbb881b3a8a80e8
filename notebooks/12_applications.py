# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a confidence help?

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`; all are shown
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with the probes of its recipe
verdicts: str = "rules"  # or judge:MODEL, of the model's own samples

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.applications import (
    budget_gains,
    others_mean,
    pass_at_k_gains,
    risk_area_terms,
)
from capcal_lib.book import notebook, style, tables
from capcal_lib.confidence import TITLES
from capcal_lib.metrics import correctness_variance_terms, gains, holm
from capcal_lib.probes import describe_probes, nearest_probe
from capcal_lib.results import (
    columns_of,
    judged_by,
    load_results,
    mean_over_probes,
    methods,
    subjects,
)
from capcal_lib.runs import read_samples
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_predict

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
described = notebook.measured_models(runs, data, k_eval)
paper = protocol == "paper"
recipe = "paper" if paper else "tuned"
judges = dict.fromkeys(described, "rules") | {model: verdicts}
none = {"runs": "No model of this store has a solved question."}
notebook.about(data, {} if described else none)

# %% tags=["hide-input"]
ASKED, VOTES, PROBE = [*TITLES.values()], "Response consistency", "Probe"
METHODS = [*ASKED, VOTES, PROBE]
USES = ["pass@k", "Budget", "Abstaining", "Labels saved", "Evaluation"]
SPENT = ["Budget", "Evaluation"]  # less than ten votes cost
VERDICTS = ["better", "inconclusive", "worse"]

# %% [markdown] needs="runs"
# The *gain* on a question is what a confidence adds there to the best rule without one. For abstaining it is the risk at
# random less the term of the area under the risk-coverage curve; for labels, the variance that a line through the confidence
# explains; for an evaluation, the sampling variance that is saved where answers are expected to differ.


# %%
# needs runs
def gains_of(s, correct, total, tokens, nu):
    """Return what a confidence gains in each use, question by question."""
    given, mu = (s, correct, total), correct / total
    line = cross_val_predict(
        LinearRegression(), s.to_frame(), mu, cv=min(10, len(mu))
    )
    wanted = np.sqrt(s * (1 - s))
    wanted = 0.25 + 0.75 * wanted / max(wanted.mean(), 1e-9)
    asked = wanted * tokens.sum() / (wanted * tokens).sum()
    variance = correctness_variance_terms(correct, total, corrected=True)
    return {
        "pass@k": pass_at_k_gains(*given, 16, concentration=nu),
        "Budget": budget_gains(*given, 2, concentration=nu),
        "Abstaining": 1 - mu - risk_area_terms(*given),
        "Labels saved": (mu - others_mean(mu)) ** 2 - (mu - line) ** 2,
        "Evaluation": variance * (1 - 1 / asked),
    }


# %% tags=["hide-input"]
# needs runs
def load_sets(name):
    """Yield each data set of a model: its results, tokens, and its probe."""
    options = {"k_eval": k_eval, "recipe": recipe, "verdicts": judges[name]}
    results = load_results(runs, name, held_out=not paper, **options)
    results = results.query("total > 1")
    for dataset, subset in results.groupby(level="dataset", sort=False):
        if not subset["correct"].any():
            continue  # no question is ever solved, so there is nothing to gain
        subset = subset.droplevel("dataset").dropna(axis="columns", how="all")
        subset = subset.fillna({m: 0.5 for m in ASKED if m in subset})
        samples = read_samples(described[name]["run"][dataset])
        tokens = samples.groupby("question_id")["completion_tokens"].mean()
        probe = nearest_probe(methods(subset), dataset)
        yield dataset, subset.assign(tokens=tokens), probe


# %%
# needs runs
evidence = notebook.evidence_of(*described.values())


# %%
# needs runs
def mean_gains(subset, method, nu):
    """Return the gains of a method; by protocol=paper a probe is five."""
    gains_by_column = {}
    for column in columns_of(subset, method):
        scored = judged_by(subset, column).join(subset["tokens"])
        given = (scored[name] for name in scored)
        gains_by_column[column] = pd.DataFrame(gains_of(*given, nu))
    by_use = pd.concat(gains_by_column, axis="columns").swaplevel(axis=1)
    return {use: mean_over_probes(by_use[use])[method] for use in USES}


# %%
# needs runs
gained = {}
for name in described:
    probes = describe_probes(runs, name, recipe=recipe, verdicts=judges[name])
    concentrations = probes["concentration"]
    for dataset, subset, probe in load_sets(name):
        for method in [
            m for m in methods(subset) if m in (*ASKED, VOTES, probe)
        ]:
            kind = PROBE if method == probe else method
            by_use = mean_gains(subset, method, concentrations.get(method))
            for use, gain in by_use.items():
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
comparisons = {
    key: judge(gain, key[-1])
    for key, gain in gained.items()
    if gain.notna().sum() > 1
}
comparisons = pd.DataFrame(comparisons).T.infer_objects().rename_axis(keys)
comparisons = holm(comparisons.reset_index())

# %%
# needs runs
counts = comparisons.groupby("method")["verdict"].value_counts()
counts = counts.unstack(fill_value=0).reindex(columns=VERDICTS, fill_value=0)
counts = counts.reindex(METHODS, fill_value=0)

# %% tags=["hide-input"]
# needs runs
probed, asked = counts.loc[PROBE], counts.loc[ASKED].sum()
uses = comparisons[comparisons["method"] == PROBE].groupby("use", sort=False)[
    "verdict"
]
won = uses.agg(lambda marks: (marks == "better").sum())
spoken = won.index.str.lower().str.replace("budget", "spending a budget")
notebook.glue(
    made=len(comparisons),
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
A probe beats the best rule without a confidence in {probe_better} of {probes} comparisons and loses in {probe_worse}; asking
the model loses in {asked_worse}.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "A use that needs only the order of questions, such as abstaining, is served by more confidences than one that needs the number, such as pass@k. Share of the comparisons, over models and data sets, in which a confidence is better than the best rule without one, inconclusive, or worse; an empty row is not compared.", "name": "fig-applications"}, "image": {"alt": "A panel of horizontal stacked bars for each method, with a row for each application, from better over inconclusive to worse."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
drawn = comparisons.assign(
    use=pd.Categorical(comparisons["use"], USES, ordered=True)
)
grid = sns.displot(
    drawn,
    y="use",
    hue="verdict",
    hue_order=VERDICTS[::-1],
    palette=[*style.VERDICT_COLORS.values()][::-1],
    col="method",
    col_order=[m for m in METHODS if m in set(comparisons["method"])],
    multiple="fill",
    shrink=0.8,
    alpha=1,
)
grid.set(xlabel="share", ylabel="", xticks=[0, 0.5, 1])
grid.set(xticklabels=["0", "0.5", "1"]).set_titles("{col_name}")
grid.figure.set(layout_engine="constrained", size_inches=(style.WIDTH, 3.4))
sns.move_legend(grid, "outside lower center", ncols=3, title="")

# %%
# needs runs
notebook.say("""
Asking is better in {asked_better} of {asks} comparisons and worse in {asked_worse}. All {made} are judged together by Holm's method; those on
one run are not independent of each other, so read the pattern and not a single cell.
""")


# %% tags=["hide-input"]
# needs runs
def spell(marks):
    """Count verdicts: better / inconclusive / worse."""
    of = " / ".join(str((marks == each).sum()) for each in VERDICTS)
    return of.replace(" ", "\N{NO-BREAK SPACE}")


# %% tags=["hide-input"] label="applications-summary" paper=["section-5.1", "section-5.2", "section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
wide = comparisons.pivot_table(
    index="use", columns="method", values="verdict", aggfunc=spell
)
wide = wide.reindex(index=USES, columns=METHODS).astype(object).fillna("–")
tables.show(
    wide.rename_axis("application").rename_axis(columns=None),
    "Comparisons in which a confidence is better / inconclusive / worse, all "
    "judged together by Holm's method.",
    evidence=evidence,
)

# %% [markdown] needs="runs"
# ## What is compared
#
# Every comparison stays within one model, one data set and the same questions. The paper names these uses
# and tries the first two (section 5); the rivals are of this book.
#
# | application | gain | best simple rule |
# |---|---|---|
# | [pass@k](05_pass_at_k.ipynb) | squared error of the predicted pass@16 | the other questions' mean |
# | [Budget](06_budget_allocation.ipynb) | questions solved by two samples each in the mean | even spending |
# | [Abstaining](13_selective_prediction.ipynb) | area under the risk-coverage curve | at random |
# | [Labels saved](15_benchmarking.ipynb) | variance of a label explained | the labels' mean |
# | Evaluation | sampling variance of the accuracy at equal tokens | even spending |
#
# A probe is the one whose training set is nearest, never chosen by a score, and is taken as the mean of a posterior whose
# concentration is fitted on its training questions. Confidences that the model was asked for, and votes, have no training
# questions and are used directly; a question without one counts as one half. Ten votes cost more than a budget spends, so response
# consistency is left out there; elsewhere its cost is not counted.

# %% tags=["hide-input", "hide-output"] label="applications-all" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
names = {"use": "application", "estimate": "gain", "dataset": "data set"}
listed = tables.titled(comparisons).rename(columns=names)
about = ["application", "method", "model", "data set"]
tables.show(
    listed[[*about, "gain", "low", "high", "p (Holm)", "verdict"]],
    "All comparisons: mean gain with its own 95 % interval, and the verdict of "
    "all together.",
    evidence=evidence,
    digits=4,
    **{"p (Holm)": tables.p_value},
)

# %% [markdown]
# ## Summary
#
# - The rival of a confidence is the best rule without one, at the same cost, and not doing nothing.
# - A use that needs the order of questions is easier to serve than one that needs the number.
# - Count the cost of the confidence too: a probe is nearly free, and asking the model costs about as much as a short answer.

# %% [markdown] needs="runs"
# ## Exercises
#
# **1 (easy).** On which data sets does a probe help in any use? *Hint:* the verdict `better`.

# %% tags=["hide-cell", "solution"]
# The uses in which a probe's verdict is better, by data set
# needs runs
won = comparisons[
    (comparisons["method"] == PROBE) & (comparisons["verdict"] == "better")
]
won.groupby("dataset")["use"].unique()

# %% [markdown] needs="runs"
# **2 (medium).** Use a probe's confidence directly, without a posterior. What changes in pass@k and budgets on one data set? *Hint:*
# no concentration.

# %% tags=["hide-cell", "solution"]
# The probe's confidence without a posterior, on one data set
# needs runs
dataset, subset, probe = next(load_sets([*described][-1]))
columns = columns_of(subset, probe)[:1]
scored = subset.dropna(subset=columns) if columns else subset[:0]
counted = scored["correct"], scored["total"], scored["tokens"]
plain = gains_of(scored[columns[0]], *counted, None) if columns else {}
pd.Series({use: judge(gain, dataset)["verdict"] for use, gain in plain.items()})

# %% [markdown] needs="runs"
# **3 (hard).** How many verdicts would there be by chance, were no confidence better or worse than its rule and each judged
# by its own 95 % interval? *Hint:* such an interval leaves out zero once in twenty.

# %% tags=["hide-cell", "solution"]
# Verdicts by chance, and as found
# needs runs
round(len(comparisons) / 20), int((comparisons["p"] < 0.05).sum())
