# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Which of the paper's statements hold?
#
# Do the paper's [printed numbers](16_printed.ipynb) support what its text says, and does it hold on much smaller models? [On the
# previous page](08_probe_generalization.ipynb) we saw where probes work.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models` with samples
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with its recipe and scores
verdicts: str = "rules"  # or judge:MODEL, of the model's own samples
seed: int = 42  # the first of the ten seeds of the reference code

# %%
from capcal_lib.book.page import finding, open_page
from capcal_lib.book.tables import show

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)

# %% [markdown]
# ## In print
#
# A statement is a clause of the paper that compares methods, models or data sets. We looked for such clauses in the abstract,
# sections 4 and 5, appendices B to D and the captions. Outside the abstract, we left out clauses that only repeat another one.
#
# Each statement becomes comparisons, which say that one printed number is lower than another. A printed 0.0831 can be anything
# from 0.08305 to 0.08315. So a comparison *holds* or *fails* only if rounding cannot change the result.
#
# The paper's *wording* decides how many comparisons have to hold. If it says "generally", "typically", "often" or
# "most", we read *most*: more than half. If it says that something does not always hold, we read *some*: at least one.
# Otherwise *every* comparison has to hold.
#
# - *Supported*: as many hold as the wording asks for.
# - *Reversed*: all fail, or more than half if the wording is *most*.
# - *Holds in part*: otherwise, if more hold than fail.
# - *Contradicted in part*: otherwise, if more fail than hold.
# - *Inconclusive*: as many fail as hold, or no printed number bears on the statement.

# %%
import pandas as pd
from capcal_lib.claims import (
    CLAIM_VERDICTS,
    compare_printed,
    judge_claims,
    load_claims,
)

claims = load_claims()
in_print = judge_claims(claims, compare_printed(claims))
tally = pd.DataFrame(index=pd.Index(CLAIM_VERDICTS, name="verdict"))
tally["in print"] = in_print["verdict"].value_counts()

# %% [markdown]
# For some statements we had to choose a reading. The paper calls outputs “rarely binary”, and we ask whether most questions
# have $\mu$ between .1 and .9. It calls two success rates “comparable” and does not say how close that is, so no number decides
# it. The text says that a probe misses pass@k in “most scenarios”, the caption says “many”; we test the text.

# %% [markdown]
# ## On small models
#
# Small models can test some of these statements. Each becomes comparisons of two methods on one data set, with the answers of
# one model.

# %%
from capcal_lib.book.page import models_beside, show_runs

models = models_beside(page)
for one in models.values():
    show_runs(one)

# %% [markdown]
# We use the probe with the nearest training set, not the one with the best score, pass@k at k = 16, and a budget of two samples
# a question. The statements on pass@k and budgets are tested on every data set, not only on MATH-500 and AIME25. We chose the
# data sets, rivals and uses after an earlier look at the same data.

# %%
from capcal_lib.book.page import EndOfPage, probes_of
from capcal_lib.results.results import results_of

probes = {name: probes_of(one) for name, one in models.items()}
probes = {name: table for name, table in probes.items() if len(table)}
if not probes:
    raise EndOfPage("No model has samples and a probe here.")
results = {name: results_of(models[name].counting) for name in probes}

# %% [markdown]
# A comparison *holds* or *fails* if it is significant, and is *inconclusive* otherwise. Two groups keep the verdicts of their own
# pages: [budgets](06_budget_allocation.ipynb), and the nearest probe against votes, verbalized confidence or P(True) ([main
# table](04_main_table.ipynb)). All other comparisons are judged together by Holm's method. So the chance of any false verdict
# among them is at most 5 %, if each interval has its stated coverage.

# %%
from capcal_lib.studies import small_models as study

concentrations = {name: probes[name]["concentration"] for name in probes}
comparisons = study.compare_as_stated(results, concentrations)

# %% [markdown]
# Whether ten votes cost more tokens than one answer needs no test. We count the data sets of each model on which they do:

# %%
from capcal_lib.results import costs

dearer = {}
for name in results:
    votes = costs(models[name].counting)["Response consistency"]
    dearer[name] = (votes - models[name].runs["tokens"]).dropna() > 0

# %%
dearer = pd.concat(dearer, names=["model", "dataset"])
dearer.groupby("model", sort=False).agg(["sum", "size"])

# %% [markdown]
# Statements are judged by their wording, as in print. One says that the worth of verbalized confidence and P(True) depends on
# the model. It holds on a data set if verbalized confidence (or P(True)) beats *Uniform random* for one model and loses to it
# for another, both significantly.

# %%
stated = claims.dropna(subset="measured")
tested = study.results_of_claims(stated, comparisons, dearer)
on_small = judge_claims(stated, tested)
tally["on small models"] = on_small["verdict"].value_counts()
tally = tally.fillna(0).astype(int)

# %% tags=["finding"]
from capcal_lib.text import in_words

against = tally.loc[["contradicted in part", "reversed"]].sum()
held = tally.loc["supported"]
text = "The paper's printed numbers support {} of its {} statements and contradict {} at least in part. Small models can test {}: they support {} and contradict {} at least in part."
counts = held["in print"], len(claims), in_words(against["in print"])
small = len(stated), *map(in_words, [held.iloc[1], against.iloc[1]])
finding(text.format(*counts, *small))

# %% tags=["picture"] label="fig-statements" mystnb={"image": {"alt": "Two stacked bars, for print and for small models: the numbers of statements with each verdict, from reversed to supported."}}
from capcal_lib.book.style import VERDICT_COLORS

axes = tally.T.iloc[::-1, ::-1].plot.barh(stacked=True, color=VERDICT_COLORS)
for bars in axes.containers:
    counts = [int(bar.get_width()) or "" for bar in bars]
    axes.bar_label(bars, counts, label_type="center", color="white")
axes.set(xlabel="statements")
axes.figure.set_figheight(2.6)
_ = axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1), ncols=5)

# %% [markdown]
# Statements of the paper by verdict, in print and on small models. A statement without a number that bears on it is
# *inconclusive*. The [contradicted ones](#contradicted-statements) are listed below.

# %% [markdown]
# ## Contradicted statements
#
# These are contradicted at least in part, in print or on small models. The verdict follows from the wording, and beside it
# stands how many comparisons hold:

# %%
both = {"in print": in_print, "on small models": on_small}
rank = {verdict: place for place, verdict in enumerate(CLAIM_VERDICTS)}
table = claims[["quote", "place", "wording"]]
for column, one in both.items():
    table[column] = one["verdict"] + ", " + one["hold"]
worst = pd.concat(both)["verdict"].map(rank).groupby(level="says").max()
worst = worst[claims.index].sort_values(ascending=False, kind="stable")

# %% label="statements-contradicted"
table = table.loc[worst.index].rename_axis("read as")
table = table.rename(columns={"quote": "the paper says"})
marks = [page.evidence, "reported", "read off", "simulated"]
caption = "Statements that are contradicted at least in part."
show(table[worst >= rank["contradicted in part"]], caption, evidence=marks)

# %% label="statements"
caption = "All statements, the contradicted first: the verdict, and how many comparisons hold, in print and on small models."
show(table, caption, evidence=marks)

# %% [markdown]
# Printed numbers have no intervals, so in print any difference counts that rounding cannot explain. On small models, a
# comparison that is *inconclusive* may have too few questions to tell. All comparisons, with intervals, are in this file:

# %% label="statements-comparisons"
from capcal_lib.book.tables import Html, badge, csv_link, titled

about = ["what", "method", "model", "dataset", "estimate", "low", "high"]
listed = titled(comparisons[[*about, "p (Holm)", "result"]])
Html(f"<p>{csv_link(listed)} {badge(page.evidence)}</p>")

# %% [markdown]
# ## What the paper does not ask
#
# The paper does not ask whether a confidence beats the *best constant*, the mean accuracy of the other questions. So what
# follows counts neither for nor against it. The constant and the probes have learned from labels; votes, verbalized confidence
# and P(True) have not. So we judge these three a second time after [recalibration](04_main_table.ipynb) on the labels of other
# questions, as a family of their own.

# %%
from capcal_lib.results import compare_recalibrated, compare_with_constant

as_it_is, recalibrated = [], []
for name, table in results.items():
    as_it_is += [compare_with_constant(table).assign(model=name)]
    recalibrated += [compare_recalibrated(table).assign(model=name)]
as_it_is = pd.concat(as_it_is).astype({"kind": str})
recalibrated = pd.concat(recalibrated).astype({"kind": str})

# %%
own = as_it_is[as_it_is["kind"] == "probe of the data set"]
own = own.assign(method="Probe of the data set")
drawn = titled(pd.concat([own, recalibrated]).query("`could be won`"))
size = drawn["model"].str.split("-").str[-1]  # a title ends with it
drawn["case"] = drawn["dataset"] + ", " + size
methods = ["Response consistency", "Probe of the data set"]
methods += ["P(True)", "Verbalized confidence"]

# %% label="fig-equal" mystnb={"image": {"alt": "Gains over the best constant with intervals around a line at zero: a panel for each method, and a row for each data set and model."}}
import matplotlib.pyplot as plt
from capcal_lib import plots

figure, axes = plt.subplots(1, 4, sharex=True, sharey=True)
for ax, method in zip(axes, methods, strict=True):
    rows, color = drawn[drawn["method"] == method], plots.method_color(method)
    plots.mark_verdicts(ax, rows["case"], rows, color=color)
    ax.axvline(0, color=plots.INK, lw=1)
    ax.set_title(method, size="medium")
_ = figure.supxlabel("gain over the best constant", size="medium")

# %% [markdown]
# Score of the best constant minus the score of a method, with a 95 % interval for each, in the cases that could be won. Rows name
# the data set and the size of the model. Right of the line the method is closer to $\mu$. A filled mark is significant after
# Holm. Without a mark, the method has no confidence there. The probe has learned from labels, and the others are recalibrated.
#
# Nor does the paper ask whether the nearest probe beats ten votes, which cost ten answers. A comparison *holds* if the probe is
# closer. Here votes are as they are; the [main table](04_main_table.ipynb) compares them on equal terms too:

# %%
votes = comparisons[comparisons["what"] == study.FURTHER]
votes["result"].value_counts().to_frame("comparisons")

# %% [markdown]
# ## What does the main table compare?
#
# The paper's methods are “spanning both training-free and training-based techniques” (section 1). A probe has seen thousands of
# labels: “We train linear probes on LLMs' internal representations to predict query-level confidence” (section 4.2). Verbalized
# confidence (“We instruct the LLM to report a probability”) and P(True) have seen none. So a score mixes two things: what a
# method *knows* about a question, and the *level* of its confidences.
#
# The authors later published scores of these two methods after recalibration on the same labels that the probe has seen. How
# much of the probe's lead on its own data set is left?

# %%
from capcal_lib.reported import load_reported

sets = {"triviaqa": "TriviaQA", "gsm8k": "GSM8K", "math500": "MATH"}
main = load_reported("main").query("dataset in @sets")
keys = ["model", "dataset"]
lead = main[main["method"].isin(["Verbalized confidence", "P(True)"])]
lead = lead.set_index([*keys, "method"])[["value"]]
lead.columns = ["as printed"]

# %%
later = load_reported("recalibrated", source="reference code")
later = later[later["setting"] == "fitted on " + later["dataset"].map(sets)]
later["method"] = later["method"].str.removesuffix(" + isotonic")
lead["recalibrated"] = later.set_index([*keys, "method"])["value"]

# %%
from capcal_lib.probe_names import probe_name
from capcal_lib.reported import constant_score

at_home = main[main["method"] == main["dataset"].map(sets).map(probe_name)]
probe = at_home.set_index(keys)["value"]
constant = pd.Series({cell: constant_score(*cell) for cell in probe.index})

# %%
cells = lead.index.droplevel("method")
ahead = lead.sub(probe[cells].to_numpy(), axis="index")
closer = lead.lt(constant[cells].to_numpy(), axis="index").sum()
left = ahead.agg(["count", "mean"]).T.astype({"count": int})
left["probe is lower"] = ahead.gt(0).sum()
left["lower than the best constant"] = closer
left.columns = ["cases", "mean lead of the probe", *left.columns[2:]]

# %% label="statements-level"
caption = "Lead of a data set's own probe over verbalized confidence and P(True), as printed and recalibrated on the probe's training set. A case is one of the two on one data set of a model. The last column counts the cases in which it scores lower than the best constant."
left = left.rename_axis("scores of the other methods")
show(left, caption, evidence=["reported", "read off"])

# %% [markdown]
# As printed, these two methods seldom beat the best constant. Recalibrated, they nearly always do. Most of the probe's lead
# vanishes: labels had only set its level. What remains is what it knows about questions: it is still lower in most cases.
#
# ## Ten draws for all questions
#
# The authors' code simulates with ten seeds how many questions a budget solves. The code sorts the hundred outcomes of each
# question, correct ones first, and resets the seed for each question. All questions draw the same position, so luck does not
# average out. Take five thousand questions with known means, and draw one sample of each:

# %%
import random

import numpy as np

draws = [random.Random(seed + i).sample(range(100), 1)[0] for i in range(10)]
correct = np.random.default_rng(0).integers(0, 101, 5000)
shared = np.mean([correct > position for position in draws])
f"Solved by ten shared draws: {shared:.3f}, expected: {correct.mean() / 100:.3f}"

# %% [markdown]
# With one sample a question, the expected share of solved questions is the mean accuracy. The published curves are higher:

# %% label="statements-one-sample"
budget = load_reported("budget", source="reference code").set_index(keys)
even = budget.query("method == 'Uniform allocation' and k == 1")["value"]
mean = load_reported("mean_accuracy").set_index(keys)["value"][even.index]
solved = pd.DataFrame({"solved at B = 1": even, "mean accuracy": mean})
solved["points"] = 100 * (even - mean)
caption = "Published success of even spending at one sample a question."
evidence = ["read off", "reported"]
show(solved, caption, evidence=evidence, points="{:+.1f}")

# %% [markdown]
# The curves are too high, but their order is about right, because all methods share the draws.

# %% tags=["remove-cell"]
from capcal_lib.book.page import glue
from capcal_lib.book.report import image
from capcal_lib.book.tables import title_of

half = {name: study.gain_of_one_half(table) for name, table in results.items()}
advice = study.advise(as_it_is, recalibrated, pd.concat(half, names=["model"]))
at_home = as_it_is[as_it_is["kind"] == "probe of the data set"]
learned = pd.concat(probes)["questions"].rename_axis(["model", "method"])
learned = at_home.join(learned, on=learned.index.names)["questions"]
caption = f"Mean gain over the best constant (higher is better), on the same {advice.attrs['cases']} cases in all rows; a case is a model on a data set. A dash: not compared, or not run on all of them. Then for each model: '2 of 5, 3 of 8 worse' means significantly better in 2 of the 5 cases that could be won and significantly worse in 3 of all 8, after Holm's method. A case could be won if a perfect confidence would be significantly better than the constant."
gained = advice.rename(columns=title_of).rename(columns={"kind": "method"})
means = advice.set_index(["labels", "kind"])["mean gain"]
own_gain = means.get(("yes", "probe of the data set"), np.nan)
votes_gain = means.get(("yes", "response consistency"), np.nan)
text = "Gain over the best constant, with a 95 % interval, only where a perfect confidence would be significantly better than the constant (we say: the case could be won). Rows name the data set and the size of the model. Right of the line a method is closer to the expected accuracy. A filled mark is significant after Holm's method, which corrects for many tests. Without a mark, the method has no confidence there. All have labels: the probe has learned from them, and the others are recalibrated."
glue(
    advice=show(gained, caption, evidence=page.evidence),
    gains=Html(
        f"<figure class='capcal-table cell_output'>{image(figure, text)}</figure>"
    ),
    cases=advice.attrs["cases"],
    own_gain=own_gain,
    votes_gain=votes_gain,
    share=own_gain / votes_gain,
    fewest=learned.min(),
    most=learned.max(),
)

# %% tags=["remove-cell"]
from capcal_lib.manifests import load_model

sizes = [(load_model(name).parameters or 0) / 1e9 for name in results]
questions = pd.concat(models[name].runs["questions"] for name in results)
of_set = questions.groupby(level="dataset").max()
named = ", ".join(load_model(name).title for name in results)
glue(
    evidence=page.evidence,
    models=len(results),
    named=named,
    smallest=min(sizes),
    largest=max(sizes),
    sets=len(of_set),
    questions=of_set.sum(),
)

# %% [markdown]
# ## Summary
#
# - We test what the paper says, sometimes on more data sets than it names, and count our own questions separately.
# - Report losses beside wins, and judge comparisons together if they answer one question.
# - Most of a probe's lead over verbalized confidence and P(True) is level, which labels can mend.
# - Draws that all questions share move a success rate by several points.
#
# [Next](10_uses.ipynb): what can you do better with a confidence?
#
# ## Exercises
#
# **1 (easy).** Two numbers are printed with four digits. By how much must they differ so that rounding cannot explain it?
# *Hint:* each may be off by 0.00005.

# %% tags=["hide-cell", "solution"]
# Two numbers, each of them rounded
2 * 0.00005

# %% [markdown]
# **2 (medium).** Suppose that no method differs from any other, and that each comparison on small models is judged by its own
# 95 % interval. How many would seem significant by chance? *Hint:* one in twenty.

# %% tags=["hide-cell", "solution"]
# Significant: expected by chance, found alone, and judged together
alone, together = comparisons["p"] < 0.05, comparisons["p (Holm)"] < 0.05
counts = [len(comparisons) / 20, alone.sum(), together.sum()]
pd.Series(counts, ["by chance", "alone", "after Holm"])

# %% [markdown]
# **3 (hard).** Let $\mu$ be uniform on $[0, 1]$. With ten shared draws, what is the standard deviation of the success at one
# sample? Does it fall with the number of questions? *Hint:* it is the mean of ten uniform positions.

# %% tags=["hide-cell", "solution"]
# The mean of ten uniform positions, simulated and by the formula, which has no number of questions in it: it does not fall
positions = np.random.default_rng(0).random((10_000, 10))
spread = [positions.mean(axis=1).std(), np.sqrt(1 / 12 / 10)]
pd.Series(spread, ["simulated", "by the formula"]).round(3)
