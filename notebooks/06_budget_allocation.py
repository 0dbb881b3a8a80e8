# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Spending a budget where it helps
#
# A budget of samples is divided over questions so that as many as possible are solved at least once; this page shows
# how to divide it by a confidence, and whether that helps: section 5.2 and appendix D.2 of the paper.

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %% tags=["hide-input"]
import warnings

import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.applications import (
    allocate,
    attempt_order,
    fit_concentration,
    honest_oracle_terms,
    solved_by_budget,
    success_rate,
)
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.metrics import FewQuestionsWarning, mean_interval
from capcal_lib.probes import predict, train, training_data
from capcal_lib.reported import load_reported
from capcal_lib.results import describe_runs, load_results
from capcal_lib.sampling.store import find_run

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
warnings.simplefilter("ignore", FewQuestionsWarning)
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval)
results = load_results(runs, model, k_eval=k_eval)
results = results[results["total"] > 1].join(predict(runs, model))
notebook.about(model, data)

# %% tags=["remove-cell"]
# needs samples
evidence = data["evidence"].iloc[0]
share = results["correct"] / results["total"]
spread = share.groupby(level="dataset").var()
probes = {name: load_dataset(name).probe for name in data.index}
probed = [
    name
    for name, probe in probes.items()
    if probe in results and results.loc[name, probe].notna().any()
]
sets = probed or list(data.index)
shown = max(sets, key=spread.get)
EVEN, ORACLE = "Even spending", "Honest oracle"
PLUG_IN, POSTERIOR = "Probe, plug-in", "Probe, posterior"


# %% tags=["hide-input"]
def concentration(dataset):
    """Fit nu on cross-validated predictions for training questions."""
    split = load_dataset(dataset).training_split
    run = find_run(runs, model, dataset, split)
    (seen, _), unaided = training_data(run), train(run).out_of_fold
    return fit_concentration(unaided, seen["correct"], seen["total"])


# %% tags=["hide-input"]
def orders(dataset, **ways):
    """Order all attempts by each rule; a missing confidence is one half."""
    own = results.loc[dataset]
    n, half = own["total"], pd.Series(0.5, own.index)
    found = {EVEN: attempt_order(half, n)}  # in turns
    for name in ("Verbalized confidence", "P(True)"):
        if name in own and own[name].notna().any():
            found[name] = attempt_order(own[name].fillna(0.5), n)
    if dataset in probed:
        s, nu = own[probes[dataset]], concentration(dataset)
        found[PLUG_IN] = attempt_order(s, n)
        found[POSTERIOR] = attempt_order(s, n, concentration=nu, **ways)
    return found


# %% tags=["hide-input"]
def solved(dataset, **ways):
    """Return each question's chance to be solved, a column a rule."""
    c, n = results.loc[dataset, ["correct", "total"]].to_numpy().T
    rng = np.random.default_rng(seed)
    terms = {
        name: solved_by_budget(order, c, n, budgets, **ways)
        for name, order in orders(dataset, **ways).items()
    }
    terms[ORACLE] = honest_oracle_terms(c, n, budgets, rng=rng, **ways)
    frames = {
        b: pd.DataFrame({name: each[:, i] for name, each in terms.items()})
        for i, b in enumerate(budgets)
    }
    return pd.concat(frames, names=["B", "question"])


# %% tags=["remove-cell"]
# needs samples
budgets = (1, 2, 4, 8)
terms = pd.concat({name: solved(name) for name in sets}, names=["dataset"])
gains = terms.drop(columns=EVEN).sub(terms[EVEN], axis="index")

# %% tags=["remove-cell"]
# needs samples
asked = [name for name in ("Verbalized confidence", "P(True)") if name in gains]
SIMPLE = "Best simple rule"
if asked:
    best = gains[asked].groupby(level="dataset").mean().idxmax(axis="columns")
    for table in (gains, terms):
        table[SIMPLE] = pd.concat(
            table.loc[[name], rule] for name, rule in best.items()
        )
known = (PLUG_IN, POSTERIOR, SIMPLE, ORACLE)
rules = [name for name in known if name in gains]
family = len(sets) * len(budgets)


# %% tags=["hide-input"]
def interval(gain, level=0.95):
    """Return the mean gain in points, with its paired interval."""
    rng = np.random.default_rng(seed)
    return [100 * end for end in mean_interval(gain, rng=rng, level=level)]


# %% tags=["remove-cell"]
# needs samples
cells = gains.groupby(level=["dataset", "B"], sort=False)
found = pd.DataFrame(
    {
        (*cell, rule): interval(own[rule])
        for cell, own in cells
        for rule in rules
    },
    index=["gain", "low", "high"],
).T.rename_axis(["dataset", "B", "rule"])
found["better"], found["worse"] = found["low"] > 0, found["high"] < 0
count = found.groupby("rule")[["better", "worse"]].sum()

# %% tags=["remove-cell"]
# needs samples
judged = POSTERIOR if POSTERIOR in rules else rules[0]
better, worse = count.loc[judged]
strict = [interval(own[judged], 1 - 0.05 / family) for _, own in cells]
surely = sum(low > 0 for _, low, _ in strict)
verdict = "does not measurably help"
if better > worse:
    verdict = "helps" if surely else "helps in places"
if worse > better:
    verdict = "does more harm than good"
notebook.glue(verdict=verdict, judged=judged, pairs=family, surely=surely)
notebook.glue(better=int(better), worse=int(worse))
attained = found.xs(ORACLE, level="rule")["gain"]
notebook.glue(least=attained.min(), most=attained.max())
notebook.glue(mean=found.xs(judged, level="rule")["gain"].mean())

# %% [markdown] needs="samples"
# On this model, dividing a budget by a confidence {glue:text}`verdict`: by *{glue:text}`judged`*, significantly more
# questions are solved than by spending evenly in {glue:text}`better` of {glue:text}`pairs` cases (data set and budget),
# and significantly fewer in {glue:text}`worse`; {glue:text}`surely` of the gains stand when all cases are judged
# together (Bonferroni). The mean gain is {glue:text}`mean:.1f` points, where an oracle that knows half of the samples
# gains {glue:text}`least:.1f` to {glue:text}`most:.1f`.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Questions solved against the mean number of samples a question, on the data set whose questions differ most. Probe: tuned linear probe, taken at its word (plug-in) or as the mean of a posterior. Best simple rule: the better of verbalized confidence and P(True). The oracle knows half of the samples, and is scored on the other half.", "name": "fig-budget"}, "image": {"alt": "Line plot of the share of questions solved against the budget from 1 to 8 samples a question. The honest oracle lies a few points above even spending; the probes lie close to even spending."}} paper=["figure-5", "figure-10", "section-5.2", "appendix-d.2", "appendix-d.2.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
rates = terms[[EVEN, *rules]].loc[shown].groupby(level="B").mean()
colors = [style.INK, "#2b6450", "#46a281", "#bc3e0b", "#6b6b6b"]
palette = dict(zip([EVEN, *known], colors, strict=True))
axes = sns.lineplot(rates, palette=palette, dashes=False)
axes.set(xscale="log", xlabel="$B$, samples a question")
axes.set(ylabel="questions solved", title=load_dataset(shown).title)
axes.set_xticks(budgets, budgets)
axes.minorticks_off()
style.label_lines(axes)

# %% [markdown]
# ## As the paper publishes it
#
# The paper draws the success rate against the budget for three models and two data sets; the numbers are read off its
# figures. *Probe (MATH)* lies above the uniform allocation at {glue:text}`above_probe` of {glue:text}`points` points,
# verbalized confidence at {glue:text}`above_verbalized`. There are no intervals. Oracle CC divides by $\hat\mu$ of the
# very samples that it is scored on.

# %%
published = load_reported("budget", source="reference code")
keys = ["model", "dataset", "k", "method"]
wide = published.set_index(keys)["value"].unstack()
more = wide.sub(wide["Uniform allocation"], axis="index") > 0

# %% tags=["remove-cell"]
notebook.glue(
    points=len(more),
    above_probe=int(more["Probe (MATH)"].sum()),
    above_verbalized=int(more["Verbalized confidence"].sum()),
)
actual = load_reported("passk_actual", source="reference code")
even = wide.loc["gpt-oss-20b", "math500"]["Uniform allocation"]
apart = (even - actual.set_index("k")["value"]).abs().dropna()
notebook.glue(apart=100 * apart.max(), apart_at=int(apart.idxmax()))

# %% tags=["hide-input"]
lines = published.assign(
    model=[load_model(name).paper_name for name in published["model"]],
    dataset=[load_dataset(name).title for name in published["dataset"]],
)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Success rate against the budget, as the paper draws it (read off).", "name": "fig-budget-paper"}, "image": {"alt": "Six panels: three models by MATH-500 and AIME25. On MATH-500 all curves run between 0.85 and 1, the oracle on top. On AIME25 the oracle is on top again, and the other curves cross."}} paper=["figure-5", "figure-10", "section-5.2", "appendix-d.2.2"] evidence=["read off"] reads=["budget"]
grid = sns.relplot(
    lines,
    x="k",
    y="value",
    hue="method",
    palette=style.palette(lines["method"]) | {"Uniform allocation": style.INK},
    col="model",
    row="dataset",
    kind="line",
    height=2.3,
    facet_kws={"sharey": "row", "margin_titles": True, "legend_out": False},
)
grid.set(xscale="log", xticks=[1, 4, 16, 64], xticklabels=[1, 4, 16, 64])
grid.set_titles(col_template="{col_name}", row_template="{row_name}")
grid.set_axis_labels("$B$, samples a question", "questions solved")
grid.figure.set_layout_engine("constrained")
sns.move_legend(grid, "outside lower center", ncols=3, title="")

# %% [markdown]
# The authors' code draws the samples at the same ten sets of positions for every question. That alone moves its curve
# of the uniform allocation for gpt-oss-20b on MATH-500 by up to {glue:text}`apart:.1f` points (at $B$ =
# {glue:text}`apart_at`) from the same authors' pass@$k$, which it should equal. Below, the success rate is an exact
# expectation.
#
# ## The best allocation
#
# A question with success probability $p$ gains $p(1-p)^k$ from its next sample after $k$ failures. The gain falls
# with every sample, so taking the largest gains one at a time is optimal.


# %%
def greedy(confidence, budget):
    """Give every next sample to the question that gains most from it."""
    confidence = np.asarray(confidence)
    spent = np.zeros(len(confidence), dtype=int)
    for _ in range(budget):
        gain = confidence * (1 - confidence) ** spent
        spent[np.argmax(gain)] += 1
    return spent


greedy([0.9, 0.5, 0.1, 0.0], 12)

# %% [markdown]
# The likely question needs little, the hopeless one gets nothing, and the rest goes where it still pays. `allocate`
# finds the same without taking the samples one at a time: it searches for the gain that all samples must beat.

# %% label="budget-greedy" paper=["appendix-d.2.1", "equation-20"] evidence=["simulated"]
allocate([0.9, 0.5, 0.1, 0.0], 12)

# %%
guesses = np.random.default_rng(seed).random(50)
assert (greedy(guesses, 200) == allocate(guesses, 200)).all()

# %% [markdown]
# A confidence is no certainty. Read as the mean of a posterior with concentration $\nu$, it falls with every failure,
# from $s$ to $s\nu/(\nu+k)$ after $k$ of them. Here a sample moves from the question that has seemed hard all along, and
# seems harder with every failure, to an easier one.

# %%
allocate([0.9, 0.5, 0.1, 0.0], 12, concentration=2)

# %% [markdown]
# ## What it solves
#
# The success rate of an allocation is the share of questions solved at least once, when each question's samples are
# drawn from those at hand: pass@$k$ at each question's own $k$.

# %% label="budget-success-rate" paper=["equation-19"] evidence=["simulated"]
correct, total = [90, 60, 5, 0], [100] * 4
plans = {
    "even spending": [3, 3, 3, 3],
    "plug-in": allocate([0.9, 0.5, 0.1, 0.0], 12),
    "posterior": allocate([0.9, 0.5, 0.1, 0.0], 12, concentration=2),
}
{
    name: round(success_rate(own, correct, total), 3)
    for name, own in plans.items()
}

# %% [markdown] needs="samples"
# On the recorded samples, with no question given more samples than it has. A missing confidence counts as one half.

# %% tags=["hide-input"] label="budget-success" paper=["figure-10", "equation-19"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
shares = terms.loc[shown].groupby(level="B").mean().T
shares.columns = [f"B = {each}" for each in shares.columns]
tables.show(
    shares.drop(index=SIMPLE, errors="ignore").rename_axis("rule"),
    f"Share of questions solved on {load_dataset(shown).title} (higher is better).",
    evidence=evidence,
)

# %% [markdown] needs="samples"
# ## Does it help?
#
# Every rule is compared with even spending at the same budget, question by question. Of {glue:text}`pairs` cases, each
# rule solves significantly more in some and fewer in others (95 % intervals of the paired difference, each on its own).
# The best simple rule is the better of verbalized confidence and P(True) on each data set, chosen by these very
# results, which favours it.

# %% tags=["hide-input"] label="budget-verdicts" paper=["section-5.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
summary = count.loc[rules].rename(
    columns={"better": "significantly better", "worse": "significantly worse"}
)
summary.insert(1, "inconclusive", family - summary.sum(axis="columns"))
summary["mean gain, points"] = found.groupby("rule")["gain"].mean()
tables.show(
    summary,
    "Cases by their comparison with even spending.",
    digits=1,
    evidence=evidence,
)

# %% tags=["hide-input"] label="budget-gains" paper=["section-5.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
text = found.round(1).apply(
    lambda row: f"{row['gain']:z.1f} [{row['low']:z.1f}, {row['high']:z.1f}]",
    axis="columns",
)
wide = text.unstack("B")[list(budgets)].sort_index(
    level="rule", sort_remaining=False
)
wide = wide.loc[(sets, [judged, ORACLE]), :].rename(
    index={name: load_dataset(name).title for name in sets}
)
tables.show(
    wide.rename(columns="B = {}".format).rename_axis(["data set", "rule"]),
    "Gain over even spending in points, with its 95 % interval.",
    evidence=evidence,
)

# %% [markdown]
# ## Summary
#
# - Optimal allocation needs no search: take the largest gains, or find the gain that all of them beat.
# - A confidence that is too sure wastes samples; as a posterior it costs less where it is wrong.
# - Score an oracle on samples that it has not seen, and compare with even spending at the same budget.
#
# ## Exercises
#
# **1 (easy).** In the published curves, how does the oracle's advantage over the uniform allocation change with the
# budget, and why is it not zero at $B = 1$? *Hint:* a budget of one sample a question need not be spent one each.

# %% tags=["hide-cell", "solution"]
published.pivot_table(index="k", columns="method", values="value").eval(
    "`Oracle CC` - `Uniform allocation`"
)  # hopeless questions get none and others two; many samples solve all anyway

# %% [markdown]
# **2 (medium).** Replace every confidence by one half. What does the allocation become, and does it matter which number
# it is? *Hint:* all gains of the first sample are equal.

# %% tags=["hide-cell", "solution"]
assert (allocate([0.5] * 5, 12) == allocate([0.1] * 5, 12)).all()
allocate([0.5] * 5, 12)  # even spending

# %% [markdown]
# **3 (hard).** A question's samples cost different numbers of tokens. What takes the place of the gain? *Hint:* try
# `cost`.

# %% tags=["hide-cell", "solution"]
tokens = np.array([100, 300])
spent = allocate([0.3, 0.3], 2000, cost=tokens)  # by gain per token
spent, int(spent @ tokens)
