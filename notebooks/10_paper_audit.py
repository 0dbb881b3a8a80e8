# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The paper, audited

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it narrows tables if it is the paper's
store: str = "runs/recorded"  # run store, from here or from the root
seed: int = 42  # the first of the ten seeds of the reference code

# %% tags=["hide-input"]
import random

import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import plots
from capcal_lib.applications import success_rate
from capcal_lib.book import notebook, style, tables
from capcal_lib.claims import (
    compare_printed,
    label_results,
    load_claims,
    verdict_of,
)
from capcal_lib.reported import expected_from_reported, load_reported
from capcal_lib.results import load_results

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
PROVENANCE = """<details class='capcal-about'><summary>
<strong>The paper's printed numbers</strong></summary>
Nothing on this page is measured, but for samples of the paper's models in the
run store. {reported} is printed in the paper, {read}
from its curves or from its authors' later publications.</details>"""

# %% tags=["provenance", "hide-input"]
marks = {
    mark.split()[0]: tables.badge(mark) for mark in ("reported", "read off")
}
tables.Html(PROVENANCE.format(**marks))

# %% [markdown]
# A statement is one clause of the paper. It is taken apart into comparisons of two printed numbers, of which it says that the
# first is lower; each clause stands, with its line and its comparisons, in `data_manifests/claims.yaml`. A number printed
# as 0.0831 was anything from 0.08305 to 0.08315, so a comparison *holds* or *fails* only where rounding cannot change it.

# %%
claims = load_claims()
comparisons = compare_printed(claims)
results = dict(list(comparisons.groupby("says")["result"]))

# %% [markdown]
# The paper's own wording decides how many must hold: *every* one; *most*, where it says "generally", "typically" or "often";
# *some*, where it denies that something is always so.

# %%
claims["verdict"] = [
    verdict_of(results.get(says, pd.Series(dtype=str)), wording)
    for says, wording in claims["wording"].items()
]

# %% tags=["hide-input"]
KEYS = ["model", "dataset"]
VERDICTS = ["supported", "in part", "reversed", "inconclusive"]
budget = load_reported("budget", source="reference code")
oracle = expected_from_reported()
inside = oracle["reported"].between(oracle["low"], oracle["high"])
tally = claims["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
notebook.glue(
    claims=len(claims),
    supported=int(tally["supported"]),
    excepted=int(tally["in part"]),
    reversed=int(tally["reversed"]),
    undecided=int(tally["inconclusive"]),
    inside=int(inside.sum()),
    oracles=len(oracle),
)

# %% tags=["finding"]
notebook.finding("""
Of {claims} statements that the paper makes about its results, its printed numbers support {supported}, support {excepted} in
part and reverse {reversed}; they do not decide the others.
""")

# %% tags=["hide-input"]
RESULTS = {
    "fails": style.VERDICT_COLORS["reversed"],
    "hidden by rounding": style.VERDICT_COLORS["inconclusive"],
    "need not hold": style.GRID,
    "holds": style.VERDICT_COLORS["supported"],
}
comparisons = label_results(comparisons, claims["wording"])
held = {
    says: f"{(subset == 'holds').sum()} of {len(subset)}"
    for says, subset in results.items()
}

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "What the paper says, and how many comparisons of two printed numbers bear it out: their share, and their number at the right. By the paper's wording all have to hold; where it says so, most or some.", "name": "fig-claims"}, "image": {"alt": "Stacked bars, one for each statement of the paper, from the share of comparisons that fails to the share that holds, with the number of those that hold at the end of each bar."}} paper=["section-4.3.2", "table-2", "appendix-c.3", "appendix-c.4", "table-6", "table-7", "section-5", "section-5.1", "section-5.2", "appendix-d", "table-3", "table-8", "figure-5", "figure-10"] evidence=["reported", "read off"] reads=["main", "consistency", "mixing", "passk_math500", "passk_aime25", "budget"]
axes = sns.histplot(
    comparisons,
    y="claim",
    hue="result",
    hue_order=RESULTS,
    palette=RESULTS,
    multiple="fill",
    discrete=True,
    shrink=0.75,
    alpha=1,
)
axes.figure.set_figheight(6.6)
for row, says in enumerate(comparisons["says"].unique()):
    axes.text(1.02, row, held[says], va="center", size=9)
axes.set(xlabel="share of comparisons", ylabel="")
sns.move_legend(
    axes, "upper center", bbox_to_anchor=(0.1, -0.085), ncols=4, title=""
)

# %%
notebook.say("""
A statement of which more comparisons hold than fail, but not as many as its wording asks for, is supported *in part*; one of
which more than half fail is *reversed*. It is *inconclusive* where neither is so, or where no printed number bears on it, as
on those that the table marks “no numbers”. So {supported} supported, {excepted} in part, {reversed} reversed and
{undecided} inconclusive make {claims}.
""")

# %% [markdown]
# The statements that are not simply supported, by their clause in the paper:

# %% tags=["hide-input"] label="audit-claims" paper=["table-2", "section-5.1", "section-5.2", "appendix-c.2", "appendix-d"] evidence=["reported", "read off"] reads=["main", "passk_math500", "passk_aime25", "budget"]
claims["hold"] = claims.index.map(held).fillna("no numbers")
curves = claims["tables"].map(lambda names: names == ["budget"])
claims["evidence"] = curves.map({True: "read off", False: "reported"})
clauses = claims.set_index("quote")[["place", "hold", "verdict", "evidence"]]
clauses = clauses.rename_axis("the paper says")
tables.show(
    clauses[clauses["verdict"] != "supported"],
    "Statements that are not supported throughout.",
)

# %% [markdown]
# All of them, with the reading in our words and the number of comparisons that the wording asks for:

# %% tags=["hide-input"] label="audit-clauses" paper=["section-4.3.2", "table-7", "appendix-c.3", "appendix-c.4"] evidence=["reported", "read off"] reads=["main", "consistency", "mixing", "passk_math500", "passk_aime25", "budget"]
columns = ["quote", "place", "wording", "hold", "verdict", "evidence"]
tables.show(
    claims[columns].rename_axis("read as").rename(columns={"quote": "clause"}),
    "Every statement, as the paper words it and as it is read.",
)

# %% tags=["hide-input"]
one = "model == 'olmo-3-7b-instruct' and dataset == 'math500' and k == 1"
first = oracle.query(one).iloc[0]
passk = load_reported("passk_math500").query(one).set_index("method")["value"]
aime = load_reported("passk_aime25").pivot(
    index=["model", "k"], columns="method", values="value"
)
notebook.glue(
    aime_lower=int((aime["Probe (MATH)"] < aime["Oracle RC"]).sum()),
    aime_cells=len(aime),
    probe_error=passk["Probe (MATH)"],
    oracle_error=first["reported"],
    oracle_expected=first["expected"],
    oracle_low=first["low"],
    oracle_high=first["high"],
)

# %%
notebook.say("""
The tables agree with each other: {inside} of {oracles} printed errors of Oracle RC lie where two other tables put them.
Exceptions weigh differently. On MATH-500, Probe (MATH) fails to beat Oracle RC once: {probe_error:.4f} against
{oracle_error:.4f}. But Oracle RC is one random draw, whose expectation is {oracle_expected:.4f}, and in studies of 500
such questions it lies, 95 times of 100, between {oracle_low:.4f} and {oracle_high:.4f}, so that this exception is no
evidence against the statement. On AIME25, with 30 questions, the bands are several times as wide; there Probe (MATH) is
printed below Oracle RC in {aime_lower} of {aime_cells} cells.
""")

# %% [markdown]
# ## Do the tables agree with each other?
#
# The mean accuracy and the uniform baseline of a cell determine a Beta distribution of $\mu$, and with it what every draw
# of Oracle RC scores in expectation.

# %%
deviation = (oracle["high"] - oracle["low"]) / (2 * 1.96)
z = (oracle["reported"] - oracle["expected"]) / deviation
z.abs().groupby(oracle["dataset"]).max().round(2)  # the farthest, in deviations

# %% mystnb={"figure": {"caption": "The pass@k error of Oracle RC: as printed (dots), and as two other printed numbers let one expect it, with the 95 % band over studies of as many questions.", "name": "fig-oracle-expected"}, "image": {"alt": "Panels of error against k, a column a model and a row a data set. Each has a line for the expectation, a band around it, and a dot for each printed error."}} paper=["table-3", "table-8", "equation-11"] evidence=["reported", "simulated"] reads=["main", "mean_accuracy", "passk_math500", "passk_aime25"] tags=["hide-input"]
here = oracle["model"] == model
grid = sns.FacetGrid(
    tables.titled(oracle[here] if here.any() else oracle).astype({"k": str}),
    col="model",
    row="dataset",
    height=2,
    aspect=1.2,
    margin_titles=True,
)
grid.map(sns.lineplot, "k", "expected")
for (row, column, _), subset in grid.facet_data():
    axes = grid.axes[row, column]
    axes.fill_between(subset["k"], subset["low"], subset["high"], alpha=0.2)
grid.map(sns.scatterplot, "k", "reported", color=plots.INK, zorder=3)
grid.figure.set_figwidth(style.WIDTH)
grid.set_titles(col_template="{col_name}", row_template="{row_name}")
_ = grid.set_axis_labels("k", "squared error")

# %% [markdown]
# At $k = 1$ the pass@k error of a confidence *is* its Brier score, so that one number is printed twice:

# %%
probe = load_reported().query("method == 'Probe (MATH)'")
once = probe[probe["table"].str.startswith("passk") & (probe["k"] == 1)]
brier = probe[probe["table"] == "main"].set_index(KEYS)["value"]
twice = once.set_index(KEYS)[["value"]].join(brier.rename("value in table 2"))
apart = (twice["value"] - twice["value in table 2"]).round(4)

# %% label="audit-twice" paper=["table-2", "table-3", "table-8"] evidence=["reported"] reads=["main", "passk_math500", "passk_aime25"] tags=["hide-input"]
names = {"value": "pass@1 error", "value in table 2": "Brier score"}
names["dataset"] = "data set"
tables.show(
    tables.titled(twice.assign(difference=apart).reset_index()).rename(
        columns=names
    ),
    "Brier score and pass@1 error of Probe (MATH).",
    digits=4,
    evidence="reported",
)

# %% tags=["hide-input"]
differ = apart.abs() > 0.0001
notebook.glue(
    differ=int(differ.sum()), twice=len(apart), most=apart.abs().max()
)
means = load_reported("mean_accuracy")
printed = means[means["model"] == model].set_index("dataset")["value"]
aime = means[means["dataset"] == "aime25"]["value"]
whole = ((aime * 3000).round() / 3000 - aime).abs() <= 0.00005
notebook.glue(whole=int(whole.sum()), aimes=len(whole))

# %%
notebook.say("""
In {differ} of {twice} pairs the two differ by more than rounding, by up to {most:.4f}: there the two tables were made
from different runs of the probe or of its targets. The mean accuracies of AIME25, over 30 questions and 3,000 samples, are
whole counts for {whole} of {aimes} models, as they must be.
""")

# %% [markdown]
# ## Ten draws for all questions
#
# What a budget solves is simulated in the authors' code with ten seeds. The generator starts afresh for every question and
# the outcomes are sorted, so that all questions draw the same positions, and chance does not average out over questions,
# however many there are. Five thousand questions whose mean is known, one sample each:

# %%
draws = [random.Random(seed + i).sample(range(100), 1)[0] for i in range(10)]
correct = np.random.default_rng(0).integers(0, 101, 5000)
shared = np.mean([correct > position for position in draws])
exact = success_rate(np.ones(5000, int), correct, np.full(5000, 100))
pd.Series({"ten shared draws": shared, "expected": exact}).round(3)

# %% [markdown]
# One sample a question must solve the mean accuracy. In the published curves it solves more:

# %%
even = budget.query("method == 'Uniform allocation' and k == 1")
solved = even.merge(means, on=KEYS, suffixes=(" at B = 1", " mean"))
solved["points"] = 100 * (solved["value at B = 1"] - solved["value mean"])

# %% label="audit-one-sample" paper=["figure-5", "figure-10"] evidence=["read off", "reported"] reads=["budget", "mean_accuracy"] tags=["hide-input"]
names = {"value at B = 1": "solved at B = 1", "value mean": "mean accuracy"}
names["dataset"] = "data set"
columns = ["model", "data set", *list(names.values())[:2], "points"]
tables.show(
    tables.titled(solved).rename(columns=names)[columns],
    "Published success of even spending at one sample a question.",
    evidence=["read off", "reported"],
    points="{:+.1f}",
)

# %% [markdown]
# All methods share the draws, so the order of the curves suffers less than their height.
#
# ## Published later
#
# After the paper its authors put more numbers into their code repository, each kept here with its generation: *G1* are the
# paper's samples, *G2* and *G3* were collected again, and *G3* partly on other questions.

# %%
later = load_reported(source="reference code")
again = later.query("table == 'later_mean_accuracy' and generation == 'G2'")
both = means.merge(again, on=KEYS, suffixes=(" printed", " again"))
points = 100 * (both["value again"] - both["value printed"])

# %% tags=["hide-input"]
most = tables.titled(both).loc[points.abs().idxmax()]
notebook.glue(
    moved=int((points.abs() > 1).sum()),
    again=len(both),
    farthest=f"{most['model']} on {most['dataset']}",
    points=points.abs().max(),
)

# %%
notebook.say("""
Run again, the released scripts gave other mean accuracies: {moved} of {again} differ by more than a point from those
that the paper prints, {farthest} by {points:.1f}. Numbers of two generations do not compare, and this book compares
with the paper's alone.
""")

# %% tags=["hide-input"]
notebook.lack(not {*printed.index} & {*data.index}, own="")

# %% [markdown] needs="own"
# The run store has samples of this model too:

# %% tags=["hide-input"]
# needs own
counts = load_results(runs, model, recipe=None).eval("correct / total")
both = {"printed": printed, "here": counts.groupby("dataset").mean()}
tables.show(
    pd.DataFrame(both).dropna().rename(index=data["title"]),
    "Mean expected accuracy, as printed and as counted here.",
    evidence=["reported", notebook.evidence_of(data)],
)

# %% label="audit-later" paper=["section-4.2", "section-4.3", "table-4", "figure-3", "figure-4", "figure-6", "figure-9", "appendix-b.2"] evidence=["read off"] reads=["later_brier", "later_ece", "later_mean_accuracy", "oracle_rc", "passk_actual", "tokens", "spearman", "recalibrated", "few_shot", "k_eval_curve", "temperature", "temperature_accuracy"] tags=["hide-input"]
overview = later.groupby("table", sort=False).agg(
    generation=("generation", lambda subset: ", ".join(subset.unique())),
    source=("source", lambda subset: ", ".join(subset.unique())),
    numbers=("value", "size"),
)
every_number = tables.csv_link(later, "published_later", "All of them as CSV")
shown = tables.show(
    overview,
    "Tables that the authors published later.",
    evidence="read off",
)
tables.Html(f"{shown.html}<p>{every_number}</p>")

# %% [markdown]
# In Python `load_reported(source="reference code")` gives them, with the source and the precision of each.
#
# ## Summary
#
# - With rounding and the draws of the oracle taken into account, the paper's tables agree with each other.
# - A statement is read with its own wording: what is said to be generally so may have exceptions, and what is said without
#   such a word may have none.
# - Draws that all questions share move a success rate by several points, and do not average out.
#
# [What each correction changes](18_protocol.ipynb) has the effect of every difference between this book and the paper.
#
# ## Exercises
#
# **1 (easy).** How much lower must one of two numbers printed with four digits be for the difference not to be a matter of
# rounding? *Hint:* each may be off by 0.00005.

# %% tags=["hide-cell", "solution"]
# Two numbers, each of them rounded
2 * 0.00005

# %% [markdown]
# **2 (medium).** Which statements would change their verdict if *most* meant three quarters? *Hint:* `claims` has the
# wording, `results` the comparisons.

# %% tags=["hide-cell", "solution"]
# The share of comparisons that holds, by statement
share = comparisons["result"].eq("holds").groupby(comparisons["says"]).mean()
share[claims["wording"].reindex(share.index).eq("most") & (share < 0.75)].round(
    2
)

# %% [markdown]
# **3 (hard).** With ten shared draws, what is the standard deviation of the success at one sample if $\mu$ is uniform on
# $[0, 1]$? Does it fall with the number of questions? *Hint:* it is the mean of ten uniform positions.

# %% tags=["hide-cell", "solution"]
# Means of ten uniform positions, by simulation and by formula
positions = np.random.default_rng(0).random((10_000, 10))
float(positions.mean(axis=1).std()), float(np.sqrt(1 / 12 / 10))
