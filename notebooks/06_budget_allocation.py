# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Spending a budget where it helps

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
from capcal_lib import plots
from capcal_lib.applications import (
    allocate,
    budget_gains,
    deep_samples,
    honest_oracle,
    success_rate,
    success_terms,
)
from capcal_lib.book import notebook, tables
from capcal_lib.confidence import TITLES
from capcal_lib.manifests import load_dataset
from capcal_lib.metrics import gains, holm, mean_interval
from capcal_lib.probes import describe_probes, nearest_probe
from capcal_lib.reported import load_reported
from capcal_lib.results import (
    columns_of,
    load_results,
    mean_over_probes,
    methods,
    subjects,
)

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
options = {"verdicts": verdicts}
options["recipe"] = "paper" if protocol == "paper" else "tuned"
results = load_results(
    runs, model, k_eval=k_eval, held_out=protocol != "paper", **options
).query("total > 1")

# %% tags=["hide-input"]
own_probe = {name: load_dataset(name).probe for name in data.index}
probed = [
    name
    for name, probe in own_probe.items()
    if results.loc[name, columns_of(results, probe)].notna().any(axis=None)
]
available = any(
    results[columns_of(results, name)].any(axis=None)
    for name in [*TITLES.values(), *own_probe.values()]
)
lacking = {}
if not probed:
    lacking["probes"] = "No probe is trained for these data sets."
if not available:
    lacking["rules"] = "No confidence is known for these data sets."
notebook.about(data, lacking)

# %% tags=["hide-input"]
# needs samples
evidence = notebook.evidence_of(data)
share = results["correct"] / results["total"]
spread = share.groupby(level="dataset").var()
depth = results["total"].groupby(level="dataset").agg(deep_samples)
deep = [name for name in probed if depth[name] >= 32]
sets = deep or probed or list(data.index)
shown = notebook.choose_dataset(dataset, data, max(sets, key=spread.get))
title = load_dataset(shown).title

# %% [markdown] needs="samples"
# A budget of samples is to be divided over questions so that as many as possible are solved at least once (section 5.2 and
# appendix D.2 of the paper).
#
# A rule goes by a confidence for each question: a sample goes where it is expected to gain most, and no question gets more
# samples than were recorded. So a budget of $B$ samples a question is tried on the questions that have $2B$ or more. A probe is used directly (*plug-in*) or as the mean of a posterior, whose concentration
# was fitted on its training questions.


# %%
# needs samples
concentrations = describe_probes(runs, model, **options)["concentration"]
EVEN, PLUG_IN, POSTERIOR = "Even spending", "Probe, plug-in", "Probe, posterior"


# %%
# needs samples
# By protocol=paper a probe is five rules; mean_over_probes averages their gains.


def confidences(subset, dataset):
    """Return what each rule goes by: a confidence, and a concentration."""
    rules_of = {
        name: (subset[name].fillna(0.5), None)
        for name in TITLES.values()
        if name in subset and subset[name].notna().any()
    }
    if probe := nearest_probe(methods(subset.dropna(axis="columns")), dataset):
        for column in columns_of(subset, probe):
            which = column.removeprefix(probe)
            rules_of[PLUG_IN + which] = subset[column], None
            by = subset[column], concentrations[probe]
            rules_of[POSTERIOR + which] = by
    return rules_of


# %%
# needs rules
judged, between = {}, {}
for name in sets:
    for b in (1, 2, 4, 8):
        subset = results.loc[[name]].query("total >= 2 * @b")
        if 2 * b <= depth[name]:
            counts = subset["correct"], subset["total"]
            gain = {
                rule: budget_gains(s, *counts, b, concentration=nu)
                for rule, (s, nu) in confidences(subset, name).items()
            }
            # Gains over even spending, which gains nothing over itself.
            terms = -mean_over_probes(pd.DataFrame(gain)).assign(**{EVEN: 0.0})
            groups = subjects(subset)
            judged[name, b] = gains(terms, EVEN, clusters=groups)
            if POSTERIOR in terms:
                two = terms[[PLUG_IN, POSTERIOR]]
                between[name, b] = gains(two, PLUG_IN, clusters=groups)
judged = pd.concat(judged, names=["dataset", "B", "rule"])

# %% tags=["hide-input"]
# needs rules
alone = judged["verdict"]
judged = judged.groupby("rule", group_keys=False).apply(holm)
rule = POSTERIOR if POSTERIOR in judged.index.levels[2] else judged.index[0][2]
subset = judged.xs(rule, level="rule")
better, worse = (
    subset[subset["verdict"] == verdict] for verdict in ("better", "worse")
)
notebook.glue(
    pairs=len(subset),
    better=len(better),
    worse=len(worse),
    mean=100 * subset["estimate"].mean(),
    alone=int((alone.xs(rule, level="rule") == "better").sum()),
    rule=rule,
)

# %% tags=["finding"]
# needs rules
notebook.finding("""
Spending by a confidence changes the questions solved by {mean:+.1f} in a hundred: more than even spending in {better} of
{pairs} cases, and fewer in {worse}.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Questions solved beyond those of even spending, in points, each with its own 95 % interval. A filled mark is a difference that is significant with all cases judged together (Holm), a hollow one is not, whatever its own interval says. The rule is the probe as a posterior, where there is one, and budgets are one to eight samples a question.", "name": "fig-budget-gains"}, "image": {"alt": "A panel for each data set, with a mark and an interval for each budget in samples a question, and a line at no gain. Marks are filled where the gain is significant after Holm, and hollow elsewhere."}} paper=["section-5.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs rules
of_rule = judged.xs(rule, level="rule")
cases = 100 * of_rule[["estimate", "low", "high"]]
cases["verdict"] = of_rule["verdict"]
cases = cases.reset_index().astype({"B": str})
cases = tables.titled(cases)
color = plots.palette([rule])[rule] if rule in TITLES.values() else "#46a281"
grid = sns.FacetGrid(cases, col="dataset", col_wrap=4, height=2.8, aspect=0.72)
for name, axes in grid.axes_dict.items():
    of_set = cases[cases["dataset"] == name]
    plots.mark_verdicts(axes, of_set["B"], of_set, color=color, upright=True)
grid.refline(y=0, color=plots.INK)
grid.set_titles("{col_name}")
grid.set_axis_labels("B", "points gained")
_ = grid.tight_layout()

# %%
# needs rules
notebook.say("""
The rule is *{rule}*. A case is a budget on a data set, and all cases of a rule are judged together (Holm); each on its own,
{alone} would be better.
""")

# %% [markdown] needs="samples"
# On one data set, over all budgets that its samples allow, on the questions that have the most:


# %%
# needs samples
subset = results.loc[shown]
subset = subset[subset["total"] >= depth[shown]]
counts = subset["correct"], subset["total"]
budgets = [b for b in (1, 2, 4, 8, 16, 32, 64) if b < depth[shown]]


def solved(s, nu, correct, total):
    """Return whether each question is solved in expectation, a column a budget."""
    limits = {"max_per_question": total, "concentration": nu}
    spent = [allocate(s, b * len(total), **limits) for b in budgets]
    terms = [success_terms(samples, correct, total) for samples in spent]
    return pd.DataFrame(np.transpose(terms), columns=budgets)


# %%
# needs samples
half = pd.Series(0.5, subset.index)  # one confidence for all is even spending
rules = {EVEN: (half, None)} | confidences(subset, shown)
by_rule = {rule: solved(*by, *counts) for rule, by in rules.items()}
terms = {
    b: mean_over_probes(
        pd.DataFrame({rule: table[b] for rule, table in by_rule.items()})
    )
    for b in budgets
}
shares = pd.DataFrame({b: table.mean() for b, table in terms.items()}).T

# %% [markdown] needs="samples"
# Two oracles bound what a confidence can do. The *honest oracle* knows a random half of each question's samples, and is
# scored on the other half. An oracle that knows the very samples it is scored on, as in the paper, promises more than any confidence can keep.

# %%
# needs samples
rng = np.random.default_rng(seed)
drawn = []
for _ in range(10):
    half, nu, *rest = honest_oracle(*counts, rng=rng)
    drawn.append(solved(half, nu, *rest).mean())
left = rest[1].min()  # of a question's samples
oracle = np.where(np.array(budgets) < left, np.mean(drawn, axis=0), np.nan)
shares["Honest oracle"] = oracle
if protocol == "paper":
    mu = counts[0] / counts[1]
    shares["Oracle CC, in sample"] = solved(mu, None, *counts).mean()
    first = (rng.random(len(subset)) < mu).astype(float)
    shares["Oracle RC, in sample"] = solved(first, None, *counts).mean()
rates = shares.rename_axis("B")

# %% tags=["hide-input"]
# needs samples
ours = {EVEN: plots.INK, PLUG_IN: "#2b6450", POSTERIOR: "#46a281"}
ours |= {"Honest oracle": "#6b6b6b"}
ours |= {"Oracle CC, in sample": "#8a5a44", "Oracle RC, in sample": "#b9962f"}
palette = plots.palette(set(rates) - set(ours)) | ours

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Questions solved against the mean number of samples a question, on the data set whose questions differ most, or the one asked for. The band is the 95 % interval of even spending, for questions like these: it is wide because questions differ, and says nothing of the distance between rules, which are compared question by question above.", "name": "fig-budget"}, "image": {"alt": "Line plot of the share of questions solved against the budget in samples a question, a line for each rule and for the honest oracle, with a band around even spending."}} paper=["figure-5", "figure-10", "section-5.2", "appendix-d.2", "appendix-d.2.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
groups = subjects(pd.concat({shown: subset}, names=["dataset"])).to_numpy()
axes = sns.lineplot(
    rates,
    palette=palette,
    dashes=False,
    markers=[*"osD^vPX*"[: rates.shape[1]]],
)
ends = [mean_interval(terms[b][EVEN], clusters=groups) for b in budgets]
low, high = np.array([(end.low, end.high) for end in ends]).T
axes.fill_between(budgets, low, high, color=plots.INK, alpha=0.12, lw=0)
axes.set(xscale="log", xlabel="B, samples a question", title=title)
axes.set(ylabel="questions solved")
axes.set_xticks(budgets, budgets)
axes.minorticks_off()
sns.move_legend(axes, "center left", bbox_to_anchor=(1, 0.5))

# %% tags=["hide-input"] label="budget-success" paper=["figure-10", "equation-19"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
tables.show(
    rates.rename("B = {}".format).T.rename_axis("rule"),
    f"Share of the {len(subset)} questions solved on {title} (higher is better).",
    evidence=evidence,
)

# %% [markdown] needs="samples"
# ## Does it help?
#
# Every rule is compared with even spending at the same budget, question by question, all cases of a rule together by Holm's
# method. All questions share one budget, so that a question's gain counts what it takes from the others.

# %% tags=["hide-input"] label="budget-verdicts" paper=["section-5.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs rules
by_rule = judged.groupby("rule", sort=False)
verdicts_of = ["better", "inconclusive", "worse"]
summary = by_rule["verdict"].value_counts().unstack()
summary = summary.reindex(columns=verdicts_of).fillna(0).astype(int)
summary["mean gain, points"] = 100 * by_rule["estimate"].mean()
tables.show(
    summary.rename_axis(columns=None),
    "Number of cases by their comparison with even spending.",
    evidence=evidence,
    **{"mean gain, points": "{:.1f}"},
)

# %% [markdown] needs="probes"
# A posterior gives up sooner on a question that keeps failing. Whether it spends better than the plug-in of the same probe is
# judged in the same way:

# %%
# needs probes
between = holm(pd.concat(between, names=["dataset", "B", "rule"]))
notebook.say(
    """
The posterior solves more questions than the plug-in in {more} of {cases} cases and fewer in {fewer}, by {mean:+.1f} points in
the mean; significantly more in {better} and fewer in {worse}, judged together.
""",
    cases=len(between),
    more=int((between["estimate"] > 0).sum()),
    fewer=int((between["estimate"] < 0).sum()),
    mean=100 * between["estimate"].mean(),
    better=int((between["verdict"] == "better").sum()),
    worse=int((between["verdict"] == "worse").sum()),
)

# %% label="budget-gains" tags=["hide-input"] paper=["section-5.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs rules
points = 100 * judged[["estimate", "low", "high"]]
text = tables.intervals(points, "estimate", digits=1)
text += judged["verdict"].map({"inconclusive": ""}).fillna(" *")
text = text.xs(rule, level="rule").unstack("B")
text.index = [load_dataset(name).title for name in text.index]
tables.show(
    text.rename(columns="B = {}".format).rename_axis("data set").fillna("–"),
    f"Gain of {rule} over even spending in points, each with its own 95 % interval; a star marks what is significant with all "
    "cases judged together (Holm).",
    evidence=evidence,
)

# %% [markdown]
# ## As the paper draws it
#
# The paper draws the success rate against the budget for three models and two data sets; the numbers are read off its
# figures. There are no intervals. Oracle CC divides by $\hat\mu$ of the very samples that it is scored on.

# %%
published = load_reported("budget", source="reference code")
keys = ["model", "dataset", "k", "method"]
wide = published.set_index(keys)["value"].unstack()
more = wide.sub(wide["Uniform allocation"], axis="index")
of_probe, asked = more["Probe (MATH)"], more["Verbalized confidence"]

# %% tags=["hide-input"]
notebook.glue(
    points=len(more),
    above_probe=int((of_probe > 0).sum()),
    ties_probe=int((of_probe == 0).sum()),
    below_probe=int((of_probe < 0).sum()),
    mean_probe=100 * of_probe.mean(),
    above_verbalized=int((asked > 0).sum()),
    ties_verbalized=int((asked == 0).sum()),
    below_verbalized=int((asked < 0).sum()),
)

# %%
notebook.say("""
*Probe (MATH)* lies above the uniform allocation at {above_probe} of {points} points, on it at {ties_probe} and below it at
{below_probe}, by {mean_probe:+.2f} points in the mean; verbalized confidence above it at {above_verbalized}, on it at
{ties_verbalized} and below it at {below_verbalized}. The authors' code draws the same positions for every question, and
[what that does](10_paper_audit.ipynb) is seen where each question has one sample. Here the success rate is an exact
expectation.
""")

# %% tags=["hide-input"]
lines = tables.titled(published)
dashes = dict.fromkeys(lines["method"], "")
dashes |= {"Oracle RC": (3, 1), "Oracle CC": (1, 1)}

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Success rate against the budget, as the paper draws it (read off).", "name": "fig-budget-paper"}, "image": {"alt": "Six panels, three models by MATH-500 and AIME25, each with a curve for every rule against the budget."}} paper=["figure-5", "figure-10", "section-5.2", "appendix-d.2.2"] evidence=["read off"] reads=["budget"]
grid = sns.relplot(
    lines,
    x="k",
    y="value",
    hue="method",
    palette=plots.palette(lines["method"]) | {"Uniform allocation": plots.INK},
    style="method",
    dashes=dashes,
    col="model",
    row="dataset",
    kind="line",
    height=2.3,
    facet_kws={"sharey": "row", "margin_titles": True, "legend_out": False},
)
grid.set(xscale="log", xticks=[1, 4, 16, 64], xticklabels=[1, 4, 16, 64])
grid.set_titles(col_template="{col_name}", row_template="{row_name}")
grid.set_axis_labels("B, samples a question", "questions solved")
grid.figure.set_layout_engine("constrained")
sns.move_legend(grid, "outside lower center", ncols=3, title="")

# %% [markdown]
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
# ## The success rate of an allocation
#
# The success rate of an allocation is the share of questions solved at least once, when each question's samples are
# drawn from those at hand: pass@k at each question's own $k$.

# %% label="budget-success-rate" paper=["equation-19"] evidence=["simulated"]
correct, total = [90, 60, 5, 0], [100] * 4
plans = {
    "even spending": [3, 3, 3, 3],
    "plug-in": allocate([0.9, 0.5, 0.1, 0.0], 12),
    "posterior": allocate([0.9, 0.5, 0.1, 0.0], 12, concentration=2),
}
{
    name: round(success_rate(plan, correct, total), 3)
    for name, plan in plans.items()
}

# %% [markdown]
# ## Summary
#
# - Optimal allocation needs no search: take the largest gains, or find the gain that all of them beat.
# - A confidence may spend better than even spending, or worse: count both, and judge all cases together.
# - A posterior gives up sooner on what keeps failing; that it spends better does not follow.
# - Score an oracle on samples that it has not seen, and compare with even spending at the same budget.
#
# ## Exercises
#
# **1 (easy).** In the published curves, how does the oracle's advantage over the uniform allocation change with the
# budget, and why is it not zero at $B = 1$? *Hint:* a budget of one sample a question need not be spent one each.

# %% tags=["hide-cell", "solution"]
# The distance of two published curves, by budget
published.pivot_table(index="k", columns="method", values="value").eval(
    "`Oracle CC` - `Uniform allocation`"
)  # hopeless questions get none and others two; many samples solve all anyway

# %% [markdown]
# **2 (medium).** Replace every confidence by one half. What does the allocation become, and does it matter which number
# it is? *Hint:* all gains of the first sample are equal.

# %% tags=["hide-cell", "solution"]
# Two constant confidences, and what is allocated by them
assert (allocate([0.5] * 5, 12) == allocate([0.1] * 5, 12)).all()
allocate([0.5] * 5, 12)  # even spending

# %% [markdown]
# **3 (hard).** A question's samples cost different numbers of tokens. What takes the place of the gain? *Hint:* try
# `cost`.

# %% tags=["hide-cell", "solution"]
# Two questions whose samples cost 100 and 300 tokens
tokens = np.array([100, 300])
spent = allocate([0.3, 0.3], 2000, cost=tokens)  # by gain per token
spent, int(spent @ tokens)
