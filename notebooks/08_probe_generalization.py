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
# A *probe* reads the hidden states of a question. It costs no answer, unlike response consistency on the [previous
# page](07_response_consistency.ipynb), but it has to be trained. Does it still work on questions unlike those it was trained
# on?

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged

# %%
from capcal_lib.book.page import EndOfPage, finding, open_page, show_runs

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)
show_runs(page, printed=["table-7"])

# %% [markdown]
# ## Closer than the best constant?
#
# The paper calls a probe's own data set *in distribution*, other sets of its domain *out of distribution*, and the rest *out of
# domain*. It says that probes generalise reasonably well within their domain and inconsistently outside it.
#
# Our probes are *tuned*: they have the paper's form and loss, but the loss is minimised exactly, and cross-validation chooses
# the weight decay. Their rival is the best constant, the mean accuracy of the other questions. A case *could be won* if a
# perfect confidence would be significantly closer, tested alone and without Holm's method, which corrects for many tests.
#
# The verdicts are the same as in the [main table](04_main_table.ipynb). Probes trained on other data sets form a family of
# their own.

# %%
from capcal_lib.results import compare_with_constant
from capcal_lib.results.results import results_of

results = results_of(page.counting)
gained = compare_with_constant(results, protocol=protocol)
gained = gained[gained["kind"].str.match("probe of (the|another)")]

# %%
if gained.empty:
    raise EndOfPage(
        "No probe predicts questions whose accuracy varies: capcal features and capcal probe make one."
    )

# %%
from capcal_lib.results import count_by_kind

counts = count_by_kind(gained).loc[:"probe of another domain"]
counts

# %%
from capcal_lib.text import share_in_words

cases = {
    kind: share_in_words(row["better"], row["could be won"], "case")
    for kind, row in counts.iterrows()
}

# %% tags=["finding"]
finding(
    "A probe beats the best constant in {own} on its own data set, in {domain} on other sets of its domain, and in {outside} outside the domain.",
    own=cases["probe of the data set"],
    domain=cases["probe of the domain"],
    outside=cases["probe of another domain"],
)

# %% tags=["picture"] label="fig-transfer" mystnb={"image": {"alt": "Gains of probes with intervals around a line at zero, a row for each probe and data set, in one panel within the domain and one out of it."}}
from capcal_lib import plots

winnable = gained[gained["could be won"]]
_ = plots.draw_gains(winnable, "gain over the best constant")

# %% [markdown]
# Score of the best constant minus the score of a probe, with a 95 % interval for each. Right of the line the probe is closer. A
# filled mark is significant after Holm, and a hollow one is not. The upper panel is within the probe's domain and the lower one
# out of it, on another scale. Cases that could not be won are left out.

# %% [markdown]
# ## The level and the order
#
# A probe with a wrong level may still tell easy questions from hard ones.
# Does it order the questions well, once its level is corrected? As in [the main table](04_main_table.ipynb#on-equal-terms), we recalibrate it
# on the labels of other questions of the data set, and compare it with the best constant again:

# %% label="fig-transfer-order" mystnb={"image": {"alt": "Gains of recalibrated probes with intervals and a line at zero, a row for each probe and data set, in one panel within the domain and one out of it."}}
from capcal_lib.probe_names import is_probe
from capcal_lib.results import recalibrate

probes = results[["correct", "total", *filter(is_probe, results)]]
level_set = compare_with_constant(recalibrate(probes), protocol=protocol)
level_set = level_set[level_set["kind"].str.match("probe of (the|another)")]
drawn = level_set[level_set["could be won"]]
_ = plots.draw_gains(drawn, "gain after recalibration")

# %% [markdown]
# Score of the best constant minus the score of a recalibrated probe, with a 95 % interval for each. Right of the line the probe
# tells easy questions from hard ones. A filled mark is significant after Holm. The two panels again differ in scale.

# %% [markdown]
# ## Has a probe seen the questions?
#
# A probe is tested on another part of its data set, but the parts can share questions. We looked for *exact* copies of training
# questions, for questions that share 13 words in a row with a training question, and for questions that are *alike*: at least
# 60 % of their words are shared (the Jaccard index). Does the probe still gain without them?

# %%
from capcal_lib.results import terms_of

own = terms_of(results, protocol=protocol)
own = own[(own["kind"] == "probe of the data set") & (own["member"] == 0)]
own["gain"] = own["constant"] - own["term"]

# %%
searched = ["gsm8k", "math500", "mmlu", "triviaqa"]
own = own[own.index.isin(searched, level="dataset")]

# %%
import pandas as pd
from capcal_lib.places import MANIFESTS

keys = ["dataset", "question_id"]
overlaps = pd.read_csv(MANIFESTS / "overlaps.csv", index_col=keys)
overlaps["alike"] = overlaps["jaccard"] >= 0.6

# %%
overlaps = overlaps.rename(columns={"ngram": "13 words"})
kinds = ["exact", "13 words", "alike"]
own[kinds] = overlaps[kinds].reindex(own.index).eq(True)

# %%
from capcal_lib.book.page import probes_of

of_set = own.groupby("dataset", sort=False)
trained = of_set["method"].first().astype(str)
table = of_set["gain"].agg(questions="size", gain="mean")
table.insert(0, "training", trained.map(probes_of(page)["questions"]))
table = table.join(of_set[kinds].sum())

# %%
from capcal_lib.results import judge

without = own[~own.index.isin(overlaps.index)]
without = judge(without, ["dataset"]).set_index("dataset")
table = table.join(without[["estimate", "low", "high"]])

# %% label="probe-overlaps"
from capcal_lib.book.tables import show, titled

caption = "The number of training and of evaluation questions, how many evaluation questions resemble a training question, and the gain of the data set's own probe over the best constant with and without them. The estimate and the interval are for the gain without them."
show(table, caption, evidence=page.evidence)

# %% [markdown]
# ## How many labels does it take?
#
# The probe has learned from labels; response consistency, *P(True)* and verbalized confidence have not. Now every method gets
# the same number of labels. A label is one graded answer to one question. The probe learns from labelled training questions.
# The others are recalibrated by Platt's method on labelled evaluation questions and judged on the rest, as in [the main
# table](04_main_table.ipynb#on-equal-terms). `labels_curve` averages over draws of the labels: fifty for a recalibrated method,
# three to ten for a probe.

# %%
from capcal_lib.probes import predict_by_labels
from capcal_lib.studies import probe_generalization as study

by_labels = predict_by_labels(page.counting.store, model)
if verdicts != "rules":  # under which these probes are trained
    by_labels = {}
curve = study.labels_curve(results, by_labels)

# %% label="fig-labels" mystnb={"image": {"alt": "Gain against the number of labels, in a panel for each data set, with a line for each method, intervals and a line at zero."}}
drawn = curve[curve["dataset"].isin(winnable["dataset"])]
if len(drawn):
    grid = plots.draw_curves(titled(drawn), x="labels", col="dataset")
    grid.set_axis_labels("labels", "gain over the best constant")
    for ax in grid.axes.flat:
        ax.axhline(0, color=plots.MUTED, ls="--")

# %% [markdown]
# Mean gain over the best constant against the number of labels, on data sets that could be won. Above the line a method is
# closer. Bars are 95 % intervals that allow for other questions and other labels. They are too short at the right end, where all
# draws share nearly all labels. For your own model, `capcal probe --model M --draws` trains the probes.
#
# A line below zero has too few labels, or its method cannot order the questions. Is it the same for other models? We take all
# data sets of each model whose questions differ, with twenty labels and with fifty. The rival without any method is the *mean
# of the labels*:

# %%
from capcal_lib.book.page import models_beside

few, columns = {}, "^(correct|total|votes|Response)"
for name, one in models_beside(page).items():
    known = results_of(one.counting).filter(regex=columns).dropna()
    known["Mean of the labels"] = 0.5
    trained = predict_by_labels(page.counting.store, name)
    if one is page:
        trained = by_labels
    few[name] = study.labels_curve(known, trained)

# %%
few = pd.concat(few, names=["model", None]).reset_index("model")
of_probe = few["method"] == "Probe of the data set"
kept = few["labels"].isin([20, 50]).where(~of_probe, few["labels"] == 1000)
by = ["model", "method", "labels"]
few = few.loc[kept].groupby(by, sort=False, as_index=False)

# %% label="probe-labels"
about = {"dataset": "size", "estimate": "mean", "spread": "mean"}
few = few.agg(about).rename(columns={"dataset": "data sets"})
caption = "Gain over the best constant with few labels, averaged over the data sets of each model, and the standard deviation of the gain from one draw of labels to another. You have one draw. Compare rows of a model only if they are on as many data sets."
names = {"estimate": "mean gain", "spread": "spread of one draw"}
few_labels = show(few.rename(columns=names), caption, evidence=page.evidence)
few_labels

# %% tags=["remove-cell"]
from capcal_lib.book.page import glue

glue(few_labels=few_labels)

# %% [markdown]
# A mean hides data sets whose questions are nearly alike. There no confidence can win, and a few labels only add noise.
#
# The methods also [differ in cost](04_main_table.ipynb#what-a-confidence-costs). Response consistency takes ten answers to every
# question. A probe takes none, except to its training questions.
#
# ## Two training sets in one
#
# The paper also trains one probe on TriviaQA and GSM8K together. `capcal probe --mix D,D` does so with any training sets. What
# does the second set change? The rival is the probe of the nearer set alone. Holm's method judges all data sets together:

# %%
mixture = study.compare_mixture(results, protocol=protocol)
if mixture.empty:
    raise EndOfPage(
        "No probe of two training sets is stored: capcal probe --mix D,D trains one."
    )
caption = "Gain of the probe of both sets over the probe of the nearer set (higher is better), with 95 % intervals."
show(mixture, caption, evidence=page.evidence)

# %% [markdown]
# If the verdict is *better*, the second set brought the probe closer there. *Inconclusive* does not mean that it changes
# nothing: the interval says how large the change may be.

# %% [markdown]
# ## Summary
#
# - A probe may tell easy questions from hard ones and still be no closer than the best constant.
# - A probe can beat Uniform random by its level alone (exercise 1). To beat the best constant it has to tell easy questions from hard ones.
# - Compare methods with the same labels. Twenty labels do not set a level safely, and fifty nearly do. A probe needs hundreds.
#
# [Next](09_statements.ipynb): which of the paper's sentences do its own numbers support?
#
# ## Exercises
#
# **1 (easy).** A probe that always says 0.5 is scored on questions with $\mu$ = 0, 0, 1 and 1. Is it better than Uniform
# random? *Hint:* Uniform random scores $1/3 - \mu(1-\mu)$.

# %% tags=["hide-cell", "solution"]
# The scores of the probe and of Uniform random
import numpy as np
from capcal_lib.metrics import capability_brier

score = capability_brier(np.full(4, 0.5), [0, 0, 100, 100], np.full(4, 100))
pd.Series({"probe": score, "Uniform random": 1 / 3})

# %% [markdown]
# **2 (medium).** The mark of a probe is hollow in the first figure of gains and filled in the second. What does that
# tell you? *Hint:* what changes if you subtract the same number from all its confidences?

# %% tags=["hide-cell", "solution"]
# A wrong level costs its square and changes no correlation
confidences = np.array([0.2, 0.5, 0.8])
off = confidences + 0.2
costs = np.mean((off - confidences) ** 2)
pd.Series({"cost": costs, "correlation": np.corrcoef(confidences, off)[0, 1]})

# %% [markdown]
# **3 (hard).** A probe always says 0.9. Below which $\mu$ is it worse than Uniform random? Solve this for any constant $c >
# 1/\sqrt 3$. *Hint:* a constant scores $(c - \mu)^2$, and $\mu^2$ cancels.

# %% tags=["hide-cell", "solution"]
# The largest mu at which 0.9 is worse: on a grid, and by algebra
mu = np.linspace(0, 1, 1001)
worse = (0.9 - mu) ** 2 > 1 / 3 - mu * (1 - mu)
algebra = (0.9**2 - 1 / 3) / (2 * 0.9 - 1)
pd.Series({"on a grid": mu[worse].max(), "by algebra": algebra})
