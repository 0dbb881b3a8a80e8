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
# [Before](07_response_consistency.ipynb) ten answers voted, which costs ten answers. A *probe* reads the hidden states of a question
# and costs none, but it has to be trained: does it work on the questions that it was trained for, and on which others?

# %% tags=["parameters"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged

# %%
from capcal_lib.book.lesson import open_lesson

page = open_lesson(globals())

# %% [markdown]
# ## What the paper prints
#
# The paper trains probes on TriviaQA, on GSM8K, and on both together. A data set is *in distribution* for a probe that was trained on
# its training questions, *out of distribution* within the domain, and *out of domain* elsewhere. The scores are plug-in and have no
# intervals.

# %% label="mixing-reported" paper=["table-7", "appendix-c.4"] evidence=["reported"] reads=["mixing"]
from capcal_lib.book import tables
from capcal_lib.manifests import load_model
from capcal_lib.reported import load_reported
from IPython.display import display

printed = load_reported("mixing").rename(columns={"value": "brier"})
place = printed.groupby(["model", "dataset"])["brier"].rank(method="dense")
printed["printed"] = place.map({1: "best", 2: "second"}).fillna("")
for name, rows in printed.groupby("model", sort=False):
    caption = f"{load_model(name).title}, as printed (lower is better)."
    rows = rows.drop(columns=["table", "model", "k"])
    display(tables.show_scores(rows, caption, digits=4, evidence="reported"))

# %% [markdown]
# How often is a printed score worse than that of *Uniform random*, and than that of the best constant, which
# [follows from what the paper prints](04_main_table.ipynb)?

# %% label="mixing-worse" paper=["table-7", "section-4.3.2"] evidence=["reported"] reads=["mixing", "main", "mean_accuracy"]
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
    "Printed scores of probes that are worse than their rival.",
    evidence="reported",
)

# %% label="fig-transfer-reported" mystnb={"image": {"alt": "Two panels of dots around a line at zero, one against Uniform random and one against the best constant, with a row for each of three shifts."}} paper=["table-7", "appendix-c.4", "section-4.3.2"] evidence=["reported"] reads=["mixing", "main", "mean_accuracy"]
import seaborn as sns
from capcal_lib import plots
from capcal_lib.book import style
from capcal_lib.shifts import SHIFTS

look = {"order": SHIFTS, "hue": "shift", "palette": plots.SHIFT_COLORS}
grid = sns.catplot(
    lead, kind="swarm", x="gain", y="shift", col="rival", size=3.5, **look
)
grid.figure.set_size_inches(style.WIDTH, 3)
grid.refline(x=0, linestyle="-", color=plots.INK)
grid.set_titles("against {col_name}").set_axis_labels("gain", "")
_ = grid.tight_layout()

# %% [markdown] tags=["caption"]
# The score of Uniform random, and that of the best constant, less the paper's scores of probes. Right of the line a probe is better.

# %% [markdown]
# The paper says that probes generalise reasonably well to other data sets of their domain, and not consistently out of it. Against
# Uniform random its table shows that; the best constant asks for more.
#
# The settings that the paper's search chose differ from model to model:

# %% label="probes-reported" paper=["table-5", "appendix-c.2"] evidence=["reported"] reads=["hyperparameters"]
settings = tables.titled(load_reported("hyperparameters"))
settings["setting"] = settings["method"] + " " + settings["dataset"]
settings = settings.pivot(index="setting", columns="model", values="value")
tables.show(
    settings.map("{:g}".format).rename_axis(columns=None),
    "Settings of the paper's probes as printed (1: features are standardised).",
    evidence="reported",
)

# %% [markdown]
# ## Closer than the best constant?
#
# Now our own probes, which are *tuned*: they have the form and the loss of the paper's, and are solved to their optimum.
# [What each correction changes](15_protocol.ipynb) tells what the paper's recipe scores. A probe has to be closer to the accuracy than the best constant, the mean of the other
# questions, which has seen samples of the data set. The verdicts are those of the [main table](04_main_table.ipynb):
# `compare_with_constant` judges them on all data sets of the model together, the probes of other data sets as a family of their own.
# A case *could be won* if a perfect confidence would be significantly closer there.

# %% tags=["provenance"]
from capcal_lib.results import compare_with_constant

page.show_runs()
results = page.results()
gained = compare_with_constant(results, protocol=protocol)
gained["shift"] = [*map(shift, gained["method"], gained["dataset"])]
gained = gained[gained["kind"].str.match("probe of (the|another)")]

# %%
from capcal_lib.results import count_by_kind

page.end_where_nothing_is_solved(results)
if gained.empty:
    page.end(
        "No probe predicts questions whose accuracy varies: capcal features and probe make one."
    )
counts = count_by_kind(gained).loc[:"probe of another domain"]
counts

# %% tags=["finding"]
cases = (
    counts["better"].astype(str) + " of " + counts["could be won"].astype(str)
)
page.finding(
    "On its own data set a probe is closer to the accuracy than the best constant in {own} cases that could be won; on others of its "
    "domain in {domain}, and outside in {outside}.",
    own=cases["probe of the data set"],
    domain=cases["probe of the domain"],
    outside=cases["probe of another domain"],
)

# %% tags=["picture"] label="fig-transfer" mystnb={"image": {"alt": "Marks with intervals, a row for each probe and data set, in three groups by shift, around a line at zero. Marks are filled where the verdict is clear after Holm, and hollow elsewhere."}} paper=["table-7", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"]
from capcal_lib.studies import probe_generalization as study

winnable = gained[gained["could be won"]]
ax = study.draw_transfer(winnable)
_ = ax.set_xlabel("gain over the best constant")

# %% [markdown] tags=["caption"]
# The score of the best constant less that of a probe, each with its own 95 % interval; right of the line the probe is closer. Filled:
# significant after Holm; hollow: cannot tell, whatever its own interval says. Cases that could not be won are left to the table.

# %% [markdown]
# ## The level and the order
#
# A probe whose level is off may still tell easy questions from hard ones. Its correlation with the accuracy says so. This is a second
# question, and we chose it after seeing the gains. The correlation is Pearson's; that of
# [another page](03_confidence_estimators.ipynb) is of ranks, so that the same probe has another number there. For one probe on one
# data set it is a line of code:

# %%
first = gained.iloc[0]
own = results.loc[first["dataset"]].filter(regex="correct|total|Probe")
mu = own["correct"] / own["total"]
own.filter(like=first["method"]).corrwith(mu)

# %% [markdown]
# `compare_order` asks it of all, where the accuracy varies between questions (a variance above .01), as a family of their own for
# Holm's method. The interval is Fisher's, on $\operatorname{artanh} r$, with the error from the influence of each subject or question
# on $r$, which is how far $r$ moves where it weighs a little more. *Off* is the mean of what the probe says less the mean accuracy;
# the square of it is the part of a Brier score that the level alone costs.

# %% label="fig-transfer-order" mystnb={"image": {"alt": "Marks with intervals, a row for each probe and data set, in three groups by shift, around a line at zero. Marks are filled where the verdict is clear after Holm, and hollow elsewhere."}} paper=["table-7", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"]
probes = results.filter(regex=r"^correct$|^total$|^Probe \(").query("total > 1")
order = study.compare_order(probes)
ax = study.draw_transfer(order)
_ = ax.set_xlabel("correlation with the expected accuracy")

# %% [markdown] tags=["caption"]
# Correlation of what a probe says with the expected accuracy, each with its own 95 % interval. Right of the line it gives easy
# questions more than hard ones. Filled: significant after Holm among the cases of this figure; hollow: cannot tell. Fewer samples a
# question bring a correlation closer to 0, so compare the probes on one data set, and not data sets.

# %% label="probe-gains" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"]
measures = pd.concat({"gain": gained, "correlation": order}, names=["measure"])
measures = measures.reset_index("measure")
measures = measures.sort_values(["dataset", "method"], kind="stable")
columns = ["dataset", "method", "measure", "estimate", "low", "high"]
page.show(
    measures[[*columns, "p (Holm)", "verdict", "off"]],
    "Mean gain of a probe over the best constant (higher is better), and its correlation with the expected accuracy, each with its own "
    "95 % interval; the verdict after Holm, with the family of each measure; and how far the level is off.",
    off="{:+.3f}",
    **{"p (Holm)": tables.p_value},
)

# %% [markdown]
# ## Has a probe seen the questions?
#
# A probe that meets its own training questions again may know their answers by heart. Training and evaluation questions come from
# different parts of a data set, but parts may share questions. We looked for three kinds among the recorded ones: *exact* copies,
# questions that share 13 words in a row with a training question, and questions that are *alike*, with a Jaccard index of .6 or more:
# the share of the words of both that are in both. Does the probe still gain without all of these?

# %%
overlaps = study.compare_without_overlaps(results, protocol=protocol)
trained = overlaps["method"].map(page.probes()["questions"])
overlaps.insert(1, "training", trained)

# %% label="probe-overlaps" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"]
page.show(
    overlaps.drop(columns="method").set_index("dataset"),
    "Evaluation questions that are like one of the training questions, and the gain of the data set's own probe over the best constant, on "
    "all and without them, with its own 95 % interval.",
)

# %% [markdown]
# ## How many labels does it take?
#
# The best constant and the probe have learned from labels; votes, *P(True)* and a stated confidence have not. Now every method gets the
# same number of labels, and a label is one graded answer to one question. The probe learns from so many training questions of its data
# set. The others are recalibrated on so many evaluation questions by Platt's method, as in
# [the main table](04_main_table.ipynb#on-equal-terms), and judged on the rest. For ten votes and twenty labels, drawn once:

# %%
import numpy as np
from capcal_lib.metrics import Calibrator
from capcal_lib.results import best_constant, judged_by

rng = np.random.default_rng(0)
voted = results.reindex(columns=["Response consistency"])
voted = voted.groupby("dataset").count().squeeze("columns")
if voted.max() > 30:
    largest = voted.idxmax()
    votes = judged_by(results.loc[[largest]], "Response consistency")
    votes = votes.sample(frac=1, random_state=rng)
    labelled, rest = votes[:20], votes[20:]
    graded = rng.binomial(1, labelled["correct"] / labelled["total"])
    platt = Calibrator("platt").fit(labelled["confidence"], graded, 1)
    mu = rest["correct"] / rest["total"]
    constant = best_constant(results)[rest.index]
    squares = (platt.predict(rest["confidence"]) - mu) ** 2
    print(largest, ((constant - mu) ** 2 - squares).mean())

# %% [markdown]
# The constant is judged by the same samples as the votes, those that did not vote; their noise is in both squares and leaves the
# difference as it is. Another draw of twenty gives another number, so `labels_curve` averages over draws: fifty for a method that is
# recalibrated, and three to ten for a probe. The interval holds for other questions and for other draws: its arms add, as squares, the
# interval over questions of each one's mean gain, and that of the draws.

# %%
from capcal_lib.probes import predict_by_labels

own_probes = predict_by_labels(page.store, model) if verdicts == "rules" else {}
curve = study.labels_curve(results, own_probes, np.random.default_rng(0))

# %% label="fig-labels" mystnb={"image": {"alt": "A panel for each data set, with a line for each method by the number of labels on a logarithmic axis, intervals, and a line at zero."}} paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
if len(curve):
    study.draw_labels_curve(curve)

# %% [markdown] tags=["caption"]
# Mean gain over the best constant by the number of labels, on each data set whose accuracy varies; above the line a method is closer.
# Bars are 95 % intervals for other questions and other draws of labels. Votes take ten answers to each question.

# %% label="labels-gains" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
pairs = ["method", "labels"]
wide = curve.pivot(index="dataset", columns=pairs, values="estimate")
page.show(
    wide.stack("method", future_stack=True).dropna(how="all"),
    "Mean gain over the best constant (higher is better) by the number of labels; the figure has the intervals.",
)

# %% [markdown]
# A dash stands where fewer than ten questions would be left to judge, or where no probe of so many labels is kept. For a model of your
# own, `capcal probe --model M --draws` trains them.

# %%
from capcal_lib.book.lesson import glue
from capcal_lib.text import counted

points = [("Response consistency", 20)]
points += [(study.OWN_PROBE, labels) for labels in (250, 1000)]
points = pd.MultiIndex.from_tuples(points, names=pairs)
shared = wide.reindex(columns=points).dropna()
if len(shared):
    votes, some, many = shared.mean()
    sizes = {"votes": votes, "some": some, "many": many}
    text = (
        "On average over {sets}, twenty labels make ten votes gain {votes:.3f} over the best constant. A probe of the data set gains "
        "{some:.3f} with 250 labels, and {many:.3f} with a thousand."
    )
    sets = counted(len(shared), "data set")
    display(page.finding(text, sets=sets, **sizes))
    glue(votes_at_20=votes, probe_at_250=some, probe_at_1000=many)

# %% [markdown]
# Why one graded answer? Most training questions of the recorded probes have no more, and every method should get the same. But whoever
# knows the right answer to a question can grade all ten answers that vote. How much does that help?

# %%
votes = results.filter(regex="correct$|total$|^Response consistency$")
ten = study.labels_curve(votes, {}, np.random.default_rng(0), answers=10)
one = curve.query("method == 'Response consistency'")
gains = {"one answer": one, "ten answers": ten}
gains = pd.concat(gains, names=["graded"]).query("labels == 20")
page.show(
    gains.pivot_table("estimate", "dataset", "graded", sort=False),
    "Mean gain of ten votes over the best constant with twenty labels, where a label is one graded answer or ten.",
)

# %% [markdown]
# And what does an answer cost? Ten votes take ten answers to every question, for as long as the confidence is used. *P(True)* takes one
# token more and a stated confidence a few. A probe takes none: it reads the question once, and costs the samples of its training
# questions. [The main table](04_main_table.ipynb#what-a-confidence-costs) has the tokens.
#
# ## Two training sets in one
#
# The paper merges TriviaQA and GSM8K, and trains one probe on all of their questions (its table 7). `capcal probe --mix D,D` does so
# with any training sets. What does the second training set change? The rival is the probe of the nearer of the two, and the data
# sets are a family of their own for Holm's method:

# %%
from capcal_lib.results import methods

mixtures = [name for name in methods(probes) if " + " in name]
if not mixtures:
    page.end(
        "No probe of two training sets is kept: capcal probe --mix D,D trains one."
    )
mixture = study.compare_mixture(probes, mixtures[0], protocol=protocol)
mixture.rename(page.data["title"], level="dataset")

# %% label="probe-mixture" paper=["table-7", "appendix-c.4"] evidence=["measured"] reads=["verdicts", "features"]
from capcal_lib.probes import probe_of
from capcal_lib.results import score

sources = mixtures[0][len("Probe (") : -1].split(" + ")
several = [f"Probe ({name})" for name in sources] + mixtures[:1]
columns = [name for name in probes if probe_of(name) in several]
scores = score(probes[["correct", "total", *columns]], protocol=protocol)
varies = scores["plug_in"].xs("Best constant", level="method") > 0
scores = scores.query("method in @several").join(varies.rename("varies"))
tables.show_scores(
    scores,
    "Capability Brier score (lower is better) of probes of one training set and of both.",
    evidence=page.evidence,
)

# %% [markdown]
# A dash stands where a probe has seen no prompt of the data set's style.
#
# ## Summary
#
# - A probe is asked twice: is it closer than the best constant, and does it tell easy questions from hard? The second may be so
#   where the first is not.
# - The best constant of a data set is the rival that asks for order; a probe may beat Uniform random by its level alone.
# - Where an interval does not decide, "not shown to be closer" is all that can be said.
# - Recalibration by an increasing function mends a level and leaves the order as it is.
# - Compare methods that got the same labels. A few labels are enough to set a level; a probe takes hundreds to learn an order.
#
# So far we measured for ourselves. [Next](09_paper_audit.ipynb): which sentences of the paper do its own numbers support?
#
# ## Exercises
#
# **1 (easy).** A probe that always says 0.5 is scored on questions with $\mu$ = 0, 0, 1 and 1. Is it better than Uniform
# random? *Hint:* Uniform random scores $1/3 - \mu(1-\mu)$.

# %% tags=["hide-cell", "solution"]
# The probe's score, and that of Uniform random
from capcal_lib.metrics import capability_brier

page.solution(
    capability_brier(np.full(4, 0.5), [0, 0, 100, 100], np.full(4, 100)), 1 / 3
)

# %% [markdown]
# **2 (medium).** In the figures of gains and of correlations, the mark of a probe may be hollow in the first and filled in the second.
# What does that say of the probe? *Hint:* what does subtracting the same number from all that it says change?

# %% tags=["hide-cell", "solution"]
# A level that is off costs its square, and leaves every correlation as it is
said = np.array([0.2, 0.5, 0.8])
off = said + 0.3
page.solution(np.mean((off - said) ** 2), np.corrcoef(said, off)[0, 1])

# %% [markdown]
# **3 (hard).** A probe that has learned to say 0.9 meets questions with other $\mu$. Below which $\mu$ is it worse than
# Uniform random? Solve it for any constant $c > 1/2$. *Hint:* a constant scores $(c - \mu)^2$, and $\mu^2$ cancels.

# %% tags=["hide-cell", "solution"]
# Where a constant of 0.9 is worse, on a grid and by algebra
mu = np.linspace(0, 1, 1001)
worse = (0.9 - mu) ** 2 > 1 / 3 - mu * (1 - mu)
page.solution(float(mu[worse].max()), (0.9**2 - 1 / 3) / (2 * 0.9 - 1))
