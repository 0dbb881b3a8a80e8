# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Where does a probe still work?
#
# A *probe* reads the hidden states of a question. It costs no answer, unlike the votes on the [previous
# page](07_response_consistency.ipynb), but it has to be trained. Does it still work on questions unlike those it was trained
# on?

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged

# %%
from capcal_lib.book.page import (
    EndOfPage,
    finding,
    open_page,
    probes_of,
    show_runs,
)
from capcal_lib.book.tables import show
from capcal_lib.results.results import results_of

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)

# %% [markdown]
# ## What the paper prints
#
# Table 7 of the paper has probes trained on TriviaQA, on GSM8K and on both. A probe's own data set is *in distribution*. Other
# sets of its domain are *out of distribution*, and the rest are *out of domain*.

# %% label="mixing-reported"
from capcal_lib.book import tables
from capcal_lib.manifests import load_model
from capcal_lib.reported import load_reported
from IPython.display import display

printed = load_reported("mixing").rename(columns={"value": "brier"})
for name, rows in printed.groupby("model", sort=False):
    caption = f"{load_model(name).title}, as printed (lower is better)."
    rows = rows.drop(columns=["table", "model", "k"])
    display(tables.show_scores(rows, caption, digits=4, evidence="reported"))

# %% [markdown]
# How many of these scores are worse than *Uniform random*, and how many are worse than the best constant ([computed from the
# printed numbers](04_main_table.ipynb))?

# %% label="mixing-worse"
import pandas as pd
from capcal_lib.reported import constant_score
from capcal_lib.shifts import shift

uniform = load_reported("main").query("method == 'Uniform random'")
uniform = uniform.set_index(["model", "dataset"])["value"]
rivals = pd.DataFrame({"Uniform random": uniform})
rivals["best constant"] = [constant_score(*pair) for pair in uniform.index]
lead = printed.join(rivals, on=["model", "dataset"])
lead["shift"] = [*map(shift, lead["method"], lead["dataset"])]
lead = lead.melt(["shift", "brier"], [*rivals], "rival", "score")
lead["gain"] = lead["score"] - lead["brier"]
worse = lead.assign(worse=lead["gain"] < 0).groupby(["shift", "rival"])["worse"]
tables.show(
    worse.agg(worse="sum", cells="size"),
    "How many printed scores of probes are worse than their rival.",
    evidence="reported",
)

# %% label="fig-transfer-reported" mystnb={"image": {"alt": "Dots around a line at zero in two panels, one for Uniform random and one for the best constant, with a row for each shift."}}
import seaborn as sns
from capcal_lib import plots
from capcal_lib.book import style
from capcal_lib.shifts import SHIFTS

swarm = {"order": SHIFTS, "hue": "shift", "palette": plots.SHIFT_COLORS}
grid = sns.catplot(
    lead, kind="swarm", x="gain", y="shift", col="rival", size=3.5, **swarm
)
grid.figure.set_size_inches(style.WIDTH, 3)
grid.refline(x=0, linestyle="-", color=plots.INK)
grid.set_titles("against {col_name}").set_axis_labels("gain", "")
_ = grid.tight_layout()

# %% [markdown]
# The score of Uniform random or of the best constant, minus the paper's score of a probe. Right of the line the probe is
# better.

# %% [markdown]
# The paper says that probes generalise reasonably well within their domain and inconsistently outside it. Its table shows this
# if the rival is Uniform random. The best constant is harder to beat.
#
# The paper chose the settings of its probes on validation sets:

# %% label="probes-reported"
settings = tables.titled(load_reported("hyperparameters"))
settings["setting"] = settings["method"] + " " + settings["dataset"]
settings = settings.pivot(index="setting", columns="model", values="value")
tables.show(
    settings.map("{:g}".format).rename_axis(columns=None),
    "Settings of the paper's probes as printed. For feature standardization, 1 is yes and 0 is no.",
    evidence="reported",
)

# %% [markdown]
# ## Closer than the best constant?
#
# Our probes are *tuned*: they have the paper's form and loss, but the loss is minimised exactly, and cross-validation chooses
# the weight decay. Their rival is the best constant, the mean accuracy of the other questions. A case *could be won* if a
# perfect confidence would be significantly closer.
#
# The verdicts are the same as in the [main table](04_main_table.ipynb). Probes trained on other data sets form a family of
# their own.

# %%
from capcal_lib.results import compare_with_constant

show_runs(page)
results = results_of(page.counting)
gained = compare_with_constant(results, protocol=protocol)
gained = gained[gained["kind"].str.match("probe of (the|another)")]

# %%
from capcal_lib.results import count_by_kind

if not results["correct"].any():
    raise EndOfPage(
        "No question is solved, so nothing varies and nothing can be closer."
    )
if gained.empty:
    raise EndOfPage(
        "No probe predicts questions whose accuracy varies: capcal features and capcal probe make one."
    )
counts = count_by_kind(gained).loc[:"probe of another domain"]
counts

# %% tags=["finding"]
from capcal_lib.text import share_in_words

cases = {
    kind: share_in_words(row["better"], row["could be won"], "case")
    for kind, row in counts.iterrows()
}
finding(
    "A probe beats the best constant in {own} on its own data set, in {domain} on other sets of its domain, and in {outside} outside "
    "the domain. Cases that could not be won are left out.",
    own=cases["probe of the data set"],
    domain=cases["probe of the domain"],
    outside=cases["probe of another domain"],
)

# %% tags=["picture"] label="fig-transfer" mystnb={"image": {"alt": "Gains of probes with intervals around a line at zero, a row for each probe and data set, in one panel within the domain and one out of it."}}
winnable = gained[gained["could be won"]]
_ = plots.draw_gains(winnable, "gain over the best constant")

# %% [markdown]
# Score of the best constant minus the score of a probe, with a 95 % interval for each. Right of the line the probe is closer. A
# filled mark is significant after Holm, and a hollow one is not. The upper panel is within the probe's domain and the lower one
# out of it, on another scale. Cases that could not be won are left out.

# %% [markdown]
# ## The level and the order
#
# A probe with a wrong level may still tell easy questions from hard ones. Its correlation with the accuracy shows whether it
# does. For one probe on one data set:

# %%
from capcal_lib.results import estimates

first = gained.iloc[0]
known = estimates(results.loc[[first["dataset"]]], first["method"])
mu = known["correct"] / known["total"]
known["confidence"].corr(mu)

# %% [markdown]
# What does each probe know, once its level is set? As in [the main table](04_main_table.ipynb#on-equal-terms), we recalibrate it
# on the labels of other questions of the data set, and compare it with the best constant again:

# %% label="fig-transfer-order" mystnb={"image": {"alt": "Gains of recalibrated probes with intervals and a line at zero, a row for each probe and data set, in one panel within the domain and one out of it."}}
from capcal_lib.probe_names import is_probe
from capcal_lib.results import recalibrate

names = [name for name in results if is_probe(name)]
probes = results[["correct", "total", *names]].query("total > 1")
level_set = compare_with_constant(recalibrate(probes), protocol=protocol)
level_set = level_set[level_set["kind"].str.match("probe of (the|another)")]
drawn = level_set[level_set["could be won"]]
_ = plots.draw_gains(drawn, "gain after recalibration")

# %% [markdown]
# Score of the best constant minus the score of a recalibrated probe, with a 95 % interval for each. Right of the line the probe
# tells easy questions from hard ones. A filled mark is significant after Holm.

# %% label="probe-gains"
measures = pd.concat(
    {"as it is": gained, "recalibrated": level_set}, names=["probe is"]
)
measures = measures.reset_index("probe is")
measures = measures.sort_values(["dataset", "method"], kind="stable")
columns = ["dataset", "method", "probe is", "estimate", "low", "high"]
show(
    measures[[*columns, "p (Holm)", "verdict"]],
    "Mean gain of a probe over the best constant (higher is better), as it is and recalibrated on labels of the data set, with 95 % "
    "intervals.",
    **{"p (Holm)": tables.p_value},
    evidence=page.evidence,
)

# %% [markdown]
# ## Has a probe seen the questions?
#
# A probe is tested on another part of its data set, but the parts can share questions. We looked for *exact* copies of training
# questions, for questions that share 13 words in a row with a training question, and for questions that are *alike*: of
# the words that occur in either, .6 or more occur in both (the Jaccard index). Does the probe still gain without them?

# %%
from capcal_lib.places import MANIFESTS
from capcal_lib.results import judge, terms_of

keys = ["dataset", "question_id"]
overlaps = pd.read_csv(MANIFESTS / "overlaps.csv", index_col=keys)
overlaps["jaccard"] = overlaps["jaccard"] >= 0.6
own = terms_of(results, protocol=protocol).query(
    "kind == 'probe of the data set' and member == 0"
)
own["gain"] = own["constant"] - own["term"]
searched = own.index.isin(["gsm8k", "math500", "mmlu", "triviaqa"], "dataset")
own = own[searched]
without = judge(own.drop(overlaps.index, errors="ignore"), ["dataset"])
near = overlaps.loc[overlaps.index.intersection(own.index)]
kinds = ["exact", "13 words", "alike"]
table = own.groupby("dataset", sort=False)["gain"].agg(
    questions="size", gain="mean"
)
found = near.groupby("dataset")[["exact", "ngram", "jaccard"]].sum()
table[kinds] = found.reindex(table.index, fill_value=0)
trained = own.groupby("dataset")["method"].first().astype(str)
table["training"] = trained.map(probes_of(page)["questions"])
without = without.set_index("dataset")[["estimate", "low", "high"]]

# %% label="probe-overlaps"
show(
    table[["training", "questions", *kinds, "gain"]].join(without),
    "The number of training and of evaluation questions, how many evaluation questions resemble a training question, and the gain of the "
    "data set's own probe over the best constant with and without them. The estimate and the interval are for the gain without them.",
    evidence=page.evidence,
)

# %% [markdown]
# ## How many labels does it take?
#
# The probe has learned from labels; votes, *P(True)* and a stated confidence have not. Now every method gets the same number of
# labels; a label is one graded answer to one question. The probe is trained on labelled training questions. The others are
# recalibrated by Platt's method on labelled evaluation questions and judged on the rest, as in [the main
# table](04_main_table.ipynb#on-equal-terms). Here is the gain of ten votes over the best constant, with one draw of
# twenty labels:

# %%
import numpy as np
from capcal_lib.metrics import Calibrator
from capcal_lib.results import best_constant

rng = np.random.default_rng(0)
voted = results.reindex(columns=["Response consistency"])
voted = voted.groupby("dataset").count().squeeze("columns")
if voted.max() > 30:
    largest = voted.idxmax()
    votes = estimates(results.loc[[largest]], "Response consistency")
    votes = votes.sample(frac=1, random_state=rng)
    labelled, rest = votes[:20], votes[20:]
    graded = rng.binomial(1, labelled["correct"] / labelled["total"])
    platt = Calibrator("platt").fit(labelled["confidence"], graded, 1)
    mu = rest["correct"] / rest["total"]
    constant = best_constant(results)[rest.index]
    squares = (platt.predict(rest["confidence"]) - mu) ** 2
    print(largest, ((constant - mu) ** 2 - squares).mean())

# %% [markdown]
# Another draw gives another number. `labels_curve` averages over draws: fifty for a recalibrated method, three to ten for a
# probe. The intervals allow for other questions and other draws.

# %%
from capcal_lib.probes import predict_by_labels
from capcal_lib.studies import probe_generalization as study

own_probes = (
    predict_by_labels(page.counting.store, model) if verdicts == "rules" else {}
)
curve = study.labels_curve(results, own_probes)

# %% label="fig-labels" mystnb={"image": {"alt": "Gain against the number of labels, in a panel for each data set, with a line for each method, intervals and a line at zero."}}
if len(curve):
    grid = plots.draw_curves(tables.titled(curve), x="labels", col="dataset")
    grid.refline(y=0, color=plots.MUTED)
    _ = grid.set_axis_labels("labels", "gain over the best constant")

# %% [markdown]
# Mean gain over the best constant against the number of labels. Above the line a method is closer. Bars are 95 % intervals.
# Votes take ten answers to each question.

# %% label="labels-gains"
pairs = ["method", "labels"]
wide = curve.pivot(index="dataset", columns=pairs, values="estimate")
show(
    wide.stack("method", future_stack=True).dropna(how="all"),
    "Mean gain over the best constant (higher is better) by the number of labels. The figure has the intervals.",
    evidence=page.evidence,
)

# %% [markdown]
# A dash means that fewer than ten questions are left to judge, or that no such probe is stored. For your own model, `capcal
# probe --model M --draws` trains them.

# %%
from capcal_lib.book.page import glue

points = [("Response consistency", 20)]
points += [(study.PROBE_OF_SET, labels) for labels in (250, 1000)]
points = pd.MultiIndex.from_tuples(points, names=pairs)
shared = wide.reindex(columns=points).dropna()
if len(shared):
    votes, some, many = shared.mean()
    sizes = {"votes": votes, "some": some, "many": many}
    text = (
        "Averaged over data sets, ten votes with twenty labels gain {votes:.3f} over the best constant. A probe of the data set gains "
        "{some:.3f} with 250 labels and {many:.3f} with a thousand."
    )
    display(finding(text, **sizes))
    glue(votes_at_20=votes, probe_at_250=some, probe_at_1000=many)

# %% [markdown]
# If you know the right answer to a question, you can grade all ten votes instead of one answer. How much does that help?

# %%
from capcal_lib.results import confidence_columns

others = set(confidence_columns(results)) - {"Response consistency"}
votes = results.drop(columns=[*others])
ten = study.labels_curve(votes, {}, answers=10)
one = curve.query("method == 'Response consistency'")
gains = {"one answer": one, "ten answers": ten}
gains = pd.concat(gains, names=["graded"]).query("labels == 20")
show(
    gains.pivot_table("estimate", "dataset", "graded", sort=False),
    "Mean gain of ten votes over the best constant with twenty labels, if a label is one graded answer or ten.",
    evidence=page.evidence,
)

# %% [markdown]
# The methods also [differ in cost](04_main_table.ipynb#what-a-confidence-costs). Ten votes take ten answers to every question.
# A probe takes none, except to its training questions.
#
# ## Two training sets in one
#
# The paper also trains one probe on TriviaQA and GSM8K together. `capcal probe --mix D,D` does so with any training sets. What
# does the second set change? The rival is the probe of the nearer set alone, and all data sets are judged together:

# %%
from capcal_lib.probe_names import training_sets

listed = estimates(probes)
mixtures = listed.query("kind == 'probe of several data sets'")[
    "method"
].unique()
if not len(mixtures):
    raise EndOfPage(
        "No probe of two training sets is stored: capcal probe --mix D,D trains one."
    )
mixture = study.compare_mixture(probes, mixtures[0], protocol=protocol)
mixture.rename(page.runs["title"], level="dataset")

# %% label="probe-mixture"
from capcal_lib.probe_names import probe_name, read_column
from capcal_lib.results import score

several = [*map(probe_name, training_sets(mixtures[0])), mixtures[0]]
columns = [name for name in probes if read_column(name)[0] in several]
scores = score(probes[["correct", "total", *columns]], protocol=protocol)
varies = scores["plug_in"].xs("Best constant", level="method") > 0
scores = scores.query("method in @several").join(varies.rename("varies"))
tables.show_scores(
    scores,
    "Capability Brier score (lower is better) of probes of one training set and of both.",
    evidence=page.evidence,
)

# %% [markdown]
# A dash means that a probe has seen no prompt in the style of the data set.
#
# ## Summary
#
# - A probe may tell easy questions from hard ones and still be no closer than the best constant.
# - A probe can beat Uniform random by its level alone. To beat the best constant it has to tell easy questions from hard ones.
# - Compare methods with the same labels. A few labels set a level; a probe needs hundreds to learn an order.
#
# [Next](09_statements.ipynb): which of the paper's sentences do its own numbers support?
#
# ## Exercises
#
# **1 (easy).** A probe that always says 0.5 is scored on questions with $\mu$ = 0, 0, 1 and 1. Is it better than Uniform
# random? *Hint:* Uniform random scores $1/3 - \mu(1-\mu)$.

# %% tags=["hide-cell", "solution"]
# The scores of the probe and of Uniform random
from capcal_lib.metrics import capability_brier

(capability_brier(np.full(4, 0.5), [0, 0, 100, 100], np.full(4, 100)), 1 / 3)

# %% [markdown]
# **2 (medium).** The mark of a probe is hollow in the first figure of gains and filled in the second. What does that
# tell you? *Hint:* what changes if you subtract the same number from all its confidences?

# %% tags=["hide-cell", "solution"]
# A wrong level costs its square and changes no correlation
confidences = np.array([0.2, 0.5, 0.8])
off = confidences + 0.3
(np.mean((off - confidences) ** 2), np.corrcoef(confidences, off)[0, 1])

# %% [markdown]
# **3 (hard).** A probe always says 0.9. Below which $\mu$ is it worse than Uniform random? Solve this for any constant $c >
# 1/2$. *Hint:* a constant scores $(c - \mu)^2$, and $\mu^2$ cancels.

# %% tags=["hide-cell", "solution"]
# The largest mu at which 0.9 is worse: on a grid, and by algebra
mu = np.linspace(0, 1, 1001)
worse = (0.9 - mu) ** 2 > 1 / 3 - mu * (1 - mu)
float(mu[worse].max()), (0.9**2 - 1 / 3) / (2 * 0.9 - 1)
