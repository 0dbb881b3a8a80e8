# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does it hold on small models?
#
# [Before](09_paper_audit.ipynb) the paper's statements were held against its own printed numbers. What becomes of them on
# much smaller models, whose samples we have?

# %% tags=["parameters"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models` with samples
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with the probes of its recipe
verdicts: str = "rules"  # or judge:MODEL, of the model's own samples

# %% tags=["provenance"]
from capcal_lib.book.lesson import open_page

page = open_page(globals())
page.show_other_models()

# %% [markdown]
# A statement about methods is many comparisons, each of two methods on the questions of one data set and the answers of one
# model. We take the probe with the nearest training set, pass@k at k = 16, and a budget of two samples a question. Sets, rivals and
# uses were chosen after an earlier look at the same data. A data set on which no two questions differ has no comparison.

# %%
models = page.comparable_models()
results, concentrations, taught = {}, {}, {}
for name in models:
    probes = page.probes(name)
    taught[name] = probes["questions"]
    if len(probes):
        results[name] = page.results(name)
        concentrations[name] = probes["concentration"]
if not results:
    page.end("No model has samples and a probe here.")

# %% [markdown]
# The comparisons that its statements lead to are judged together by Holm's method, so that the chance of a single false verdict
# among them is 5 %, as far as each interval holds. Those of budgets have the verdicts of the [page of budgets](06_budget_allocation.ipynb),
# and those of votes and of what the model says against the nearest probe have the verdicts of the [main table](04_main_table.ipynb). A comparison *holds* or *fails* where it is then clear, and says *neither* where
# the questions are too few.

# %%
from capcal_lib.studies import small_models as study

comparisons = study.compare_as_stated(results, concentrations)
comparisons["result"].value_counts()

# %% [markdown]
# That ten votes cost more tokens than an answer is counted, and not tested:

# %%
import pandas as pd
from capcal_lib.results import costs

dearer = [
    costs(page.counting_of(name))["Response consistency"]
    - models[name]["tokens"]
    for name in results
]
dearer = pd.concat(dearer).dropna() > 0
dearer.value_counts()

# %% [markdown]
# A statement is *supported* if as many comparisons hold as its wording asks for: all of them, more than half
# if the paper says "generally", "often" or "most", or one if it says "not always". It is *reversed* if as many fail. Between the two it
# *holds in part* if more comparisons hold than fail, and is *contradicted in part* if more fail than hold. That a method's worth
# depends on the model is shown by one data set on which two models have opposite clear signs.

# %%
from capcal_lib.claims import CLAIM_VERDICTS, judge_claims, load_claims

stated = load_claims().dropna(subset="measured")
tested = study.results_of_claims(stated, comparisons, dearer)
claims = judge_claims(stated, tested)
tally = claims["verdict"].value_counts().reindex(CLAIM_VERDICTS, fill_value=0)
tally

# %% tags=["finding"]
page.finding(
    "Small models can test {tested} statements of the paper. They support {supported}; {partly} more hold in part, and {against} are "
    "contradicted in part, with more comparisons that fail than hold.",
    tested=len(claims),
    supported=tally["supported"],
    partly=tally["holds in part"],
    against=tally["contradicted in part"],
)

# %%
from capcal_lib.book import style
from capcal_lib.claims import label_results

colors = {
    "fails": style.VERDICT_COLORS["reversed"],
    "neither": style.VERDICT_COLORS["inconclusive"],
    "need not hold": style.GRID,
    "holds": style.VERDICT_COLORS["supported"],
}
drawn = label_results(tested, claims["wording"])

# %% tags=["picture"] label="fig-four-claims" paper=["section-4.1", "section-4.3.2", "section-5.1", "section-5.2", "figure-9"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"] mystnb={"image": {"alt": "A stacked bar for each statement of the paper: the share of comparisons on small models that hold, that are not clear, and that fail."}}
import seaborn as sns

bars = {"multiple": "fill", "discrete": True, "shrink": 0.75, "alpha": 1}
axes = sns.histplot(
    drawn, y="claim", hue="result", hue_order=colors, palette=colors, **bars
)
axes.set(xlabel="share of comparisons", ylabel="")
sns.move_legend(
    axes, "upper center", bbox_to_anchor=(0.1, -0.12), ncols=4, title=""
)

# %% [markdown] tags=["caption"]
# What the paper says, and what becomes of it on much smaller models. Only what stays clear when all comparisons are judged
# together holds or fails; a bar that neither holds nor fails says that the questions are too few to tell, not that
# nothing is there. Where a statement asks only for some comparisons to hold, those that fail *need not hold*.

# %% [markdown]
# Printed numbers have no intervals, so that any difference counts there.

# %% label="findings-claims" paper=["section-4.1", "section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured", "reported", "read off", "simulated"] reads=["verdicts", "samples", "confidences", "features", "main", "mean_accuracy", "consistency", "passk_math500", "passk_aime25", "budget"]
from capcal_lib.book.lesson import evidence_of
from capcal_lib.claims import compare_printed, spell_results

printed = compare_printed(load_claims())
claims["printed"] = spell_results(printed, load_claims()["wording"])
claims["small models"] = spell_results(tested, claims["wording"])
evidence = evidence_of(*(models[name] for name in results))
columns = ["place", "printed", "small models", "verdict"]
page.show(
    claims.rename_axis("the paper says")[columns],
    "The paper's statements: its own printed numbers, small models after Holm's "
    "method, and what becomes of each by the paper's own wording.",
    evidence=[evidence, "reported", "read off", "simulated"],
)

# %% [markdown]
# We ask more than the paper says in two ways. It says of MATH-500 and AIME25, and of Probe (MATH), what we put to every data set and
# the probe nearest to it: the statements on pass@k and on budgets. And it takes the best of its probes on each data set, by the scores
# themselves, where we take the nearest by its training set. That a probe *misses* pass@16 of a data set means by more than .05. On
# MATH-500 itself they come to:

# %%
wider = comparisons["what"].str.contains("pass@16|budget")
on_math = comparisons[wider & (comparisons["dataset"] == "math500")]
on_math[["what", "method", "model", "result"]]

# %% [markdown]
# ## One comparison by hand
#
# That a probe beats *Uniform random* on a data set takes its Brier terms, question by question. Here is the first such comparison:

# %%
from capcal_lib.metrics import judge_gain
from capcal_lib.results import brier_terms, subjects

of_probes = comparisons["what"].str.endswith("probe < uniform")
first = comparisons[of_probes].iloc[0]
name, dataset, probe = first[["model", "dataset", "method"]]
terms = brier_terms(results[name].loc[[dataset]])
gain = (terms["Uniform random"] - terms[probe]).dropna()
judge_gain(gain, clusters=subjects(gain.to_frame()))

# %% [markdown]
# ## What the paper does not ask
#
# The paper does not ask whether a confidence beats the *best constant*: the mean accuracy of the other questions, which knows the
# data set and nothing of the question. This book does, by `compare_with_constant`, for all data sets of a model together. It counts
# neither for nor against the paper.

# %%
from capcal_lib.results import compare_recalibrated, compare_with_constant

judged, equal = [], []
for name, of_model in results.items():
    judged.append(compare_with_constant(of_model).assign(model=name))
    equal.append(compare_recalibrated(of_model).assign(model=name))
against, recalibrated = pd.concat(judged), pd.concat(equal)

# %% [markdown]
# The constant and the probes have learned from labels, which what the model says, and votes, have not. So these are judged a second
# time after [recalibration](04_main_table.ipynb#on-equal-terms) on the labels of other questions, as a family of their own. That is
# the most important thing that the paper's own table leaves out: it sets a trained probe beside methods that never saw a label.

# %% label="findings-constant" evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
from capcal_lib.book import tables
from capcal_lib.book.widgets import verdict_grid

after = recalibrated.astype({"kind": str})
after["kind"] += ", recalibrated"
both = pd.concat([against, after])
rows = against["kind"].cat.remove_unused_categories().cat.categories
grid = verdict_grid(
    tables.titled(both),
    rows=[*rows, *after["kind"].unique()],
    caption="Is a confidence closer than the average of the data set, the best "
    "constant? A mark for each data set and model, after Holm. A faint mark: "
    "even a perfect confidence could not have won there. Better is counted of "
    "the cases that could be won, and the rest of all. A probe of several data "
    "sets is judged on its own training sets too.",
    evidence=evidence,
)
grid

# %% [markdown]
# A probe of several data sets is closer on those that it was trained on only, so that its row says nothing of new data sets.
#
# Nor does the paper ask whether the nearest probe beats ten votes, which cost ten answers. These comparisons are a family of their
# own. Where one *holds*, the probe is closer:

# %%
votes = comparisons[comparisons["what"] == "probe < ten votes"]
votes["result"].value_counts()

# %% [markdown]
# ## What to do with what you have
#
# Without a label of the data set, a method must not be compared with the mean of its labels. The rival of a probe from elsewhere is
# then the mean of its own training set, and that of votes and of what the model says is one half. With labels, the rival is the best
# constant. So what is a method worth for somebody who has no labels, or some hundreds; one answer, ten, or the hidden states?

# %%
without = []
for name, of_model in results.items():
    means = study.training_means(page.store, name)
    without.append(
        study.compare_without_labels(of_model, means).assign(model=name)
    )
advice = study.advise(pd.concat(without), against, recalibrated)

# %% label="findings-advice" evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
table = page.show(
    advice,
    "Mean gain over the rival (higher is better); better in so many cases of those that could be won, and worse in so many of all. "
    "A case is a model on a data set.",
    evidence=evidence,
)
table

# %% [markdown]
# A number of a row is a mean over models and data sets, and says nothing of a model or a data set that is not among them. Verdicts are
# judged for each model apart, so with three models the chance of any false one in a row is up to 15 %. The probes of a data set learned
# from very different numbers of questions:

# %% label="findings-taught" evidence=["measured"] reads=["verdicts", "features"]
home = against[against["kind"] == "probe of the data set"]
learned = pd.concat(taught, names=["model", "method"]).rename("learned from")
columns = ["dataset", "model", "learned from", "estimate", "low", "high"]
page.show(
    home.join(learned, on=["model", "method"])[[*columns, "verdict"]],
    "Gain over the best constant of each probe on its own data set, and how many training questions it learned from.",
    evidence=evidence,
)

# %% [markdown]
# How few labels are enough has a [section of its own](08_probe_generalization.ipynb#how-many-labels-does-it-take).

# %% tags=["remove-cell"]
from capcal_lib.book import front
from capcal_lib.book.lesson import glue

glue(advice=table, known=grid, evidence=evidence, **front.spell_advice(advice))
glue(**front.count_statements(tally))
glue(**front.describe_models({name: models[name] for name in results}))

# %% [markdown]
# ## All comparisons
#
# An interval is that of one comparison alone, so that it may leave out 0 where the result, after Holm, is neither.

# %% label="findings-all" paper=["section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
about = ["what", "method", "model", "dataset", "estimate", "low", "high"]
listed = comparisons[[*about, "p (Holm)", "result"]]
page.show(
    listed.rename(columns={"what": "comparison", "estimate": "gain"}),
    "All comparisons: mean gain with its own 95 % interval.",
    evidence=evidence,
    **{"p (Holm)": tables.p_value},
)

# %% [markdown]
# ## Summary
#
# - What the paper says is tested, some statements on more data sets than it says them of; what this book asks beyond it is counted
#   apart.
# - A count of wins stands with its losses, and both after all comparisons are judged together.
#
# [Next](11_applications.ipynb): to be closer to the expected accuracy is no use by itself. What is done better with a confidence?
#
# ## Exercises
#
# **1 (easy).** How many comparisons would seem clear by chance alone, if no method differed from any other and each were
# judged by its own 95 % interval? *Hint:* one in twenty.

# %% tags=["hide-cell", "solution"]
# Clear comparisons: by chance, as found, and judged together
alone, together = comparisons["p"] < 0.05, comparisons["p (Holm)"] < 0.05
page.solution(len(comparisons) / 20, int(alone.sum()), int(together.sum()))

# %% [markdown]
# **2 (medium).** Look at the figure: what does it mean where a bar says neither? Could the same questions have shown a gain of the
# size that is seen where a comparison holds? *Hint:* how wide are the intervals?

# %% tags=["hide-cell", "solution"]
# Neither: a gain wider than half an interval would be seen, and where it holds it is so; a smaller one may be there
widths = comparisons["high"] - comparisons["low"]
of_result = comparisons.assign(
    half=widths / 2, gain=comparisons["estimate"].abs()
)
page.solution(
    of_result.groupby("result", observed=True)[["half", "gain"]].median()
)
