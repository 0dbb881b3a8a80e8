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
from capcal_lib import plots
from capcal_lib.applications import (
    budget_gains,
    others_mean,
    pass_at_k,
    pass_at_k_gains,
    risk_area_bounds,
    risk_area_terms,
)
from capcal_lib.book import notebook, style, tables
from capcal_lib.book.widgets import HEADS, UNDECIDABLE
from capcal_lib.confidence import TITLES
from capcal_lib.metrics import (
    bounds_over_constant,
    correctness_variance_terms,
    judge_gain,
)
from capcal_lib.probes import describe_probes, nearest_probe
from capcal_lib.results import (
    columns_of,
    compare_with_constant,
    judged_by,
    load_results,
    mean_over_probes,
    methods,
    subjects,
)
from capcal_lib.results.constant import judge_together
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
USES = {  # and what a sentence calls them
    "pass@k": "pass@k",
    "Budget": "spending a budget",
    "Abstaining": "abstaining",
    "Labels saved": "saving labels",
    "Evaluation": "designing an evaluation",
}
SPENT = ["Budget", "Evaluation"]  # less than ten votes cost
VERDICTS = ["better", "alike", "cannot tell", "worse"]
COLORS = {
    "better": style.VERDICT_COLORS["supported"],
    "alike": plots.MUTED,
    "cannot tell": style.VERDICT_COLORS["inconclusive"],
    "worse": style.VERDICT_COLORS["reversed"],
    UNDECIDABLE: style.GRID,
}

# %% [markdown] needs="runs"
# A confidence is of use where something is better with it than by the best rule without one, in the same model and on the same
# questions. The paper names these uses and tries the first two (section 5); the rules without a confidence are of this book.
#
# | use | what a confidence may add, and its gain | best rule without one | a gain is at least, at most |
# |---|---|---|---|
# | [pass@k](05_pass_at_k.ipynb) | It tells whether one of 16 answers will be right: less squared error. | the other questions' mean $c$ | $-1 + \min(c^2, (1-c)^2)$, $\max(c^2, (1-c)^2)$ |
# | [Budget](06_budget_allocation.ipynb) | Of two answers a question it gives one to the easy and three to others: more questions solved. | two for each | $-1$, $1$ |
# | [Abstaining](13_selective_prediction.ipynb) | The surest questions are answered first: a smaller area under the risk-coverage curve. | at random | $-(H_n - 2 + 1/n)$, $H_n - 2 + 1/n$ |
# | [Labels saved](15_benchmarking.ipynb) | A line through it tells a label before it is bought: less variance is left. | the other labels' mean $c$ | as pass@k |
# | Evaluation | Questions whose answers will differ are sampled more often: less variance of the accuracy, for the same tokens. | evenly | $-3/4$, $1/4$ |


# %%
# needs runs
def gains_of(confidence, correct, total, tokens, concentration=None):
    """Return what a confidence gains in each use, question by question."""
    scored, mu = (confidence, correct, total), correct / total
    folds = min(10, len(mu))
    inputs = confidence.to_frame()
    line = cross_val_predict(LinearRegression(), inputs, mu, cv=folds)
    deviation = np.sqrt(confidence * (1 - confidence)).clip(lower=1e-9)
    share = deviation * tokens.sum() / (deviation * tokens).sum()
    samples = 0.25 + 0.75 * share  # a quarter of the tokens is spent evenly
    variance = correctness_variance_terms(correct, total, corrected=True)
    posterior = {"concentration": concentration}
    return {
        "pass@k": pass_at_k_gains(*scored, 16, **posterior),
        "Budget": budget_gains(*scored, 2, **posterior),
        "Abstaining": 1 - mu - risk_area_terms(*scored),
        "Labels saved": (mu - others_mean(mu)) ** 2
        - (mu - line.clip(0, 1)) ** 2,
        "Evaluation": variance * (1 - 1 / samples),
    }


# %% [markdown] needs="runs"
# An interval of a mean gain allows for half an unseen question at the least and at the largest gain that one can have:
#
# - Over a mean $c$, squared errors gain most where a confidence is right and $c$ is far off, and lose most where it is wrong and
#   $c$ is near. So it is for pass@k, and for labels, whose line is kept between 0 and 1.
# - A budget loses a whole question where it spends nothing on one that even spending solves, and gains one the other way round.
# - When abstaining, a question counts by how far it moves the area. The surest of $n$ is in every share that is answered, in the
#   first alone, in the second with one other, and so on: with $H_n = 1 + 1/2 + \dots + 1/n$ it moves the area by up to
#   $H_n - 2 + 1/n$ questions, if there are twelve or more.
# - In an evaluation the variance of an answer is at most 1/4. A question with a quarter of the samples has four times that
#   variance, three quarters more; one with very many has none.


# %%
# needs runs
def over_mean(values):
    """Return the bounds of a gain over the mean of the other questions."""
    return bounds_over_constant(others_mean(values).dropna())


def bounds_of(correct, total):
    """Return the least and the largest gain of a question, by use."""
    solved = pd.Series(pass_at_k(correct, total, [16])[:, 0]).dropna()
    return {
        "pass@k": over_mean(solved) if len(solved) > 1 else None,
        "Budget": (-1, 1),
        "Abstaining": risk_area_bounds(len(correct)),
        "Labels saved": over_mean(correct / total),
        "Evaluation": (-3 / 4, 1 / 4),
    }


# %% tags=["hide-input"]
# needs runs
def load_sets(name):
    """Yield each data set of a model: its results, tokens, and its probe."""
    results = loaded[name].query("total > 1")
    for dataset, subset in results.groupby(level="dataset", sort=False):
        if not subset["correct"].any():
            continue  # no question is ever solved, so there is nothing to gain
        subset = subset.droplevel("dataset").dropna(axis="columns", how="all")
        subset = subset.fillna({m: 0.5 for m in ASKED if m in subset})
        samples = read_samples(described[name]["run"][dataset])
        tokens = samples.groupby("question_id")["completion_tokens"].mean()
        probe = nearest_probe(methods(subset), dataset)
        yield dataset, subset.assign(tokens=tokens), probe


# %% tags=["hide-input"]
# needs runs
evidence = notebook.evidence_of(*described.values())
loaded = {}
for name in described:
    options = {"k_eval": k_eval, "recipe": recipe, "verdicts": judges[name]}
    loaded[name] = load_results(runs, name, held_out=not paper, **options)


# %%
# needs runs
def mean_gains(subset, method, concentration):
    """Return the gains of a method; by protocol=paper a probe is five."""
    gains_by_column = {}
    for column in columns_of(subset, method):
        scored = judged_by(subset, column).join(subset["tokens"])
        columns = [scored[name] for name in scored]
        gains_by_column[column] = pd.DataFrame(
            gains_of(*columns, concentration)
        )
    by_use = pd.concat(gains_by_column, axis="columns").swaplevel(axis=1)
    return {use: mean_over_probes(by_use[use])[method] for use in USES}


# %% [markdown] needs="runs"
# A *perfect* confidence is $\hat\mu$ itself. Where that would not be better than the rule either, by the same test and in the same
# place, the questions are too few for any confidence: such a case is *undecidable*, and counts for nobody.


# %%
# needs runs
def perfect_gains(correct, total, tokens):
    """Return the gains that mu_hat itself has in the place of a method."""
    return gains_of(
        correct / total, correct, total, tokens.reindex(total.index)
    )


def test_gain(gain, dataset, bounds):
    """Test a mean gain, with subjects drawn whole where there are any."""
    gain = gain.dropna()
    groups = subjects(pd.concat({dataset: gain}, names=["dataset"]))
    judged = judge_gain(gain, clusters=groups.to_numpy(), bounds=bounds)
    return judged[["estimate", "low", "high", "p"]]


# %%
# needs runs
cases, perfect = {}, {}
for name in described:
    probes = describe_probes(runs, name, recipe=recipe, verdicts=judges[name])
    concentrations = probes["concentration"]
    for dataset, subset, probe in load_sets(name):
        shown = [m for m in methods(subset) if m in (*ASKED, VOTES, probe)]
        for method in shown:
            kind = PROBE if method == probe else method
            own = mean_gains(subset, method, concentrations.get(method))
            scored = judged_by(subset, columns_of(subset, method)[0])
            counts = scored["correct"], scored["total"]
            best = perfect_gains(*counts, subset["tokens"])
            bounds = bounds_of(*counts)
            for use in USES:
                dear = kind == VOTES and use in SPENT
                if not dear and own[use].count() > 1:
                    key = use, kind, name, dataset
                    cases[key] = test_gain(own[use], dataset, bounds[use])
                    perfect[key] = test_gain(best[use], dataset, bounds[use])

# %% tags=["hide-input"]
# needs runs
notebook.lack(not cases, **none)

# %% [markdown] needs="runs"
# All comparisons of this page are one family, judged together by Holm's method:

# %%
# needs runs
keys = ["use", "method", "model", "dataset"]
cases = pd.DataFrame(cases).T.astype(float).rename_axis(keys).dropna()
perfect = pd.DataFrame(perfect).T.astype(float).reindex(cases.index)
comparisons = judge_together(cases, perfect).reset_index()
comparisons["verdict"] = comparisons["verdict"].cat.rename_categories(HEADS)

# %%
# needs runs
decided = comparisons[comparisons["verdict"] != UNDECIDABLE]
counts = pd.crosstab(decided["method"], decided["verdict"])
counts = counts.reindex(METHODS, columns=VERDICTS, fill_value=0)
of_probe = decided[decided["method"] == PROBE]
by_use = pd.crosstab(of_probe["use"], of_probe["verdict"])
by_use = by_use.reindex([*USES], columns=VERDICTS, fill_value=0)

# %% [markdown] needs="runs"
# Whether a confidence is closer to the expected accuracy than the average is no use by itself, and not counted here. It is judged
# [with all methods of a model](11_small_models.ipynb), once for the whole book:

# %%
# needs runs
against = pd.concat(
    compare_with_constant(results, protocol=protocol)
    for results in loaded.values()
)
closer = against[against["kind"] == "probe of the data set"]["verdict"]
closer = closer.cat.rename_categories(HEADS)
closer.value_counts()


# %% tags=["hide-input"]
def list_uses(rows):
    """List uses, each with its wins among what could be decided."""
    each = [
        f"{USES[use]} ({row['better']} of {row.sum()})"
        for use, row in rows.iterrows()
    ]
    return ", ".join(each) or "nothing"


# %% tags=["hide-input"]
# needs runs
probed, asked = counts.loc[PROBE], counts.loc[ASKED].sum()
notebook.glue(
    made=len(comparisons),
    left_out=len(comparisons) - len(decided),
    probes=int(probed.sum()),
    probe_better=int(probed["better"]),
    probe_worse=int(probed["worse"]),
    asks=int(asked.sum()),
    asked_better=int(asked["better"]),
    asked_worse=int(asked["worse"]),
    helps=list_uses(by_use[by_use["better"] > 0]),
    never=list_uses(by_use[by_use["better"] == 0]),
    closer=int((closer == "better").sum()),
    closer_cells=int((closer != UNDECIDABLE).sum()),
)

# %% tags=["finding"]
# needs runs
notebook.finding("""
Of the comparisons that could be decided, a probe beats the best rule without a confidence in {probe_better} of {probes} and
loses to it in {probe_worse}.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "What a confidence adds in each use. Comparisons, each of a model on a data set, after Holm over all of this page: a confidence is better than the best rule without one; alike, within half a point; cannot tell; worse; or undecidable, where a perfect confidence would not be better either, so that it counts for nobody. An empty row is not compared.", "name": "fig-applications"}, "image": {"alt": "A panel of horizontal stacked bars for each method, with a row for each use: how many comparisons have each verdict."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
drawn = comparisons.assign(
    use=pd.Categorical(comparisons["use"], [*USES], ordered=True)
)
grid = sns.displot(
    drawn,
    y="use",
    hue="verdict",
    hue_order=[*COLORS][::-1],
    palette=COLORS,
    col="method",
    col_order=[m for m in METHODS if m in set(comparisons["method"])],
    multiple="stack",
    shrink=0.8,
    alpha=1,
)
grid.set(xlabel="comparisons", ylabel="").set_titles("{col_name}")
grid.figure.set(layout_engine="constrained", size_inches=(style.WIDTH, 3.4))
sns.move_legend(grid, "outside lower center", ncols=5, title="")

# %%
# needs runs
notebook.say("""
Of what could be decided, a probe is better for {helps}; it could not be shown to help with {never}. Asking the model is better
in {asked_better} of {asks} and worse in {asked_worse}. Verdicts are after Holm over the {made} comparisons of this page, of which
{left_out} are undecidable; those on one run are not independent of each other, so read the pattern and not a single cell. To the
expected accuracy itself a probe trained on the data set's own questions is closer than the average in {closer} of the
{closer_cells} cells that could be decided.
""")


# %% tags=["hide-input"]
# needs runs
def spell(marks):
    """Count verdicts: better, worse, and what could be decided."""
    better, worse = (marks == "better").sum(), (marks == "worse").sum()
    words = f"{better} better, {worse} worse, of {len(marks)}"
    return words.replace(" ", "\N{NO-BREAK SPACE}").replace(
        ",\N{NO-BREAK SPACE}", ", "
    )


# %% tags=["hide-input"] label="applications-summary" paper=["section-5.1", "section-5.2", "section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
wide = decided.pivot_table(
    index="use",
    columns="method",
    values="verdict",
    aggfunc=spell,
    observed=True,
)
wide = wide.reindex(index=[*USES], columns=METHODS).astype(object).fillna("–")
tables.show(
    wide.rename_axis("use").rename_axis(columns=None),
    "Comparisons in which a confidence is better or worse than the best rule "
    f"without one, of those that could be decided; after Holm over the {len(comparisons)} "
    "comparisons of this page. A dash: none is compared, or could be decided.",
    evidence=evidence,
)

# %% [markdown] needs="runs"
# ## Which confidence is compared
#
# A probe is the one whose training set is nearest, never chosen by a score, and is taken as the mean of a posterior whose
# concentration is fitted on its training questions. Confidences that the model was asked for, and votes, have no training
# questions and are used directly; a question without one counts as one half. Ten votes cost more than a budget spends, so response
# consistency is left out there; elsewhere its cost is not counted.

# %% tags=["hide-input", "hide-output"] label="applications-all" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
names = {"estimate": "gain", "dataset": "data set"}
listed = tables.titled(comparisons).rename(columns=names)
about = ["use", "method", "model", "data set"]
tables.show(
    listed[[*about, "gain", "low", "high", "p (Holm)", "verdict"]],
    "All comparisons: mean gain with its own 95 % interval, and the verdict "
    f"after Holm over these {len(comparisons)}, so that an interval may leave out 0 "
    "where nothing is decided.",
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
counts_of = scored["correct"], scored["total"]
plain = (
    gains_of(scored[columns[0]], *counts_of, scored["tokens"])
    if columns
    else {}
)
bounds = bounds_of(*counts_of) if columns else {}
pd.DataFrame(
    {
        use: test_gain(gain, dataset, bounds[use])
        for use, gain in plain.items()
        if use in ("pass@k", "Budget") and gain.count() > 1
    }
)

# %% [markdown] needs="runs"
# **3 (hard).** How many verdicts would there be by chance, were no confidence better or worse than its rule and each judged
# by its own 95 % interval? *Hint:* such an interval leaves out zero once in twenty.

# %% tags=["hide-cell", "solution"]
# Verdicts by chance, and as found
# needs runs
round(len(comparisons) / 20), int((comparisons["p"] < 0.05).sum())
