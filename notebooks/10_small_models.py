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
# Do the paper's statements hold on much smaller models, whose samples we have? [On the previous page](09_paper_audit.ipynb) we
# compared them with the paper's own printed numbers.

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
# A statement about methods becomes many comparisons. Each compares two methods on the questions of one data set, with the
# answers of one model. We use the probe with the nearest training set, pass@k at k = 16, and a budget of two samples a
# question. We chose sets, rivals and uses after an earlier look at the same data. A data set has no comparison if no two of its
# questions differ.

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
# We judge the comparisons together by Holm's method. So the chance of a single false verdict among them is at most 5 %, if each
# interval holds. Two kinds of comparison take their verdicts from other pages. Budgets take them from the [page on
# budgets](06_budget_allocation.ipynb). The nearest probe, against votes or against what the model says, takes them from the
# [main table](04_main_table.ipynb). A comparison *holds* or *fails* if it is significant, and is *neither* otherwise.

# %%
from capcal_lib.studies import small_models as study

comparisons = study.compare_as_stated(results, concentrations)
comparisons["result"].value_counts()

# %% [markdown]
# We need no test to show that ten votes cost more tokens than one answer. We count:

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
# Verdicts follow the rules of [the previous page](09_paper_audit.ipynb). One statement needs two models: it says that a
# method's worth depends on the model. A data set shows this if two models have significant differences of opposite sign on it.

# %%
from capcal_lib.claims import CLAIM_VERDICTS, judge_claims, load_claims

stated = load_claims().dropna(subset="measured")
tested = study.results_of_claims(stated, comparisons, dearer)
claims = judge_claims(stated, tested)
tally = claims["verdict"].value_counts().reindex(CLAIM_VERDICTS, fill_value=0)
tally

# %% tags=["finding"]
page.finding(
    "Small models can test {tested} of the paper's statements. They support {supported}, {partly} more hold in part, and {against} are "
    "contradicted in part: more of their comparisons fail than hold.",
    tested=len(claims),
    supported=tally["supported"],
    partly=tally["holds in part"],
    against=tally["contradicted in part"],
)

# %%
from capcal_lib.book.style import result_colors
from capcal_lib.claims import label_results

colors = result_colors("neither")
drawn = label_results(tested, claims["wording"])

# %% tags=["picture"] label="fig-four-claims" paper=["section-4.1", "section-4.3.2", "section-5.1", "section-5.2", "figure-9"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"] mystnb={"image": {"alt": "A stacked bar for each statement of the paper: the shares of comparisons on small models that hold, need not hold, are neither, and fail."}}
import seaborn as sns

bars = {"multiple": "fill", "discrete": True, "shrink": 0.75, "alpha": 1}
axes = sns.histplot(
    drawn, y="claim", hue="result", hue_order=colors, palette=colors, **bars
)
axes.set(xlabel="share of comparisons", ylabel="")
sns.move_legend(
    axes, "lower center", bbox_to_anchor=(0.1, 1), ncols=4, title=""
)

# %% [markdown] tags=["caption"]
# One bar per statement: the share of its comparisons with each result, after Holm. *Neither* means that the questions are too
# few to tell. It does not mean that there is no difference. If a statement asks only for some comparisons to hold, the ones
# that fail *need not hold*.

# %% [markdown]
# Printed numbers have no intervals, so any difference counts in the column *printed*:

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
    "The paper's statements on its own printed numbers and, after Holm's method, on small models; the verdict is on small models.",
    evidence=[evidence, "reported", "read off", "simulated"],
)

# %% [markdown]
# Our test asks more than the paper says in two ways. The paper's statements on pass@k and on budgets are about MATH-500, AIME25
# and Probe (MATH). We test them on every data set with its nearest probe. The paper also takes, on each data set, the probe
# with the best score. We take the probe with the nearest training set. A probe *misses* pass@16 of a data set if it is off by
# more than .05. On MATH-500 alone the results are:

# %%
wider = comparisons["what"].str.contains("pass@16|budget")
on_math = comparisons[wider & (comparisons["dataset"] == "math500")]
on_math[["what", "method", "model", "result"]]

# %% [markdown]
# ## One comparison by hand
#
# Does a probe beat *Uniform random* on a data set? Subtract their Brier terms question by question, and judge the mean. The
# first such comparison is:

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
# The paper does not ask whether a confidence beats the *best constant*, the mean accuracy of the other questions. This constant
# knows the data set and nothing about the question. `compare_with_constant` judges all data sets of a model together. The
# result counts neither for nor against the paper.

# %%
from capcal_lib.results import compare_recalibrated, compare_with_constant

judged, equal = [], []
for name, of_model in results.items():
    judged.append(compare_with_constant(of_model).assign(model=name))
    equal.append(compare_recalibrated(of_model).assign(model=name))
against, recalibrated = pd.concat(judged), pd.concat(equal)

# %% [markdown]
# The constant and the probes have learned from labels; votes and the model's own words have not. So we judge these a second
# time after [recalibration](04_main_table.ipynb#on-equal-terms) on the labels of other questions, as a family of their own. The
# paper's main table leaves this out: it sets a trained probe beside methods that never saw a label.

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
    caption="Is a confidence closer than the best constant, the average of the "
    "data set? A mark for each data set and model, after Holm. A faint mark: "
    "not even a perfect confidence could win there. Better is counted "
    "among the cases that could be won, the rest among all. A probe of "
    "several data sets is judged on its own training sets too.",
    evidence=evidence,
)
grid

# %% [markdown]
# A probe of several data sets is closer only on sets that it was trained on, so its row says nothing about new data sets.
#
# Nor does the paper ask whether the nearest probe beats ten votes, which cost ten answers. These comparisons are a family of
# their own. One *holds* if the probe is closer:

# %%
votes = comparisons[comparisons["what"] == "probe < ten votes"]
votes["result"].value_counts()

# %% [markdown]
# ## What to do with what you have
#
# What is each method worth to you? That depends on your labels, and on whether you have one answer, ten answers or the hidden
# states. Without labels nobody knows the mean of the data set, so the rival must do without it. For a probe from elsewhere, the
# rival is the mean of the probe's own training set. For votes and for what the model says, the rival is one half. With labels,
# the rival is the best constant.

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
    "Mean gain over the rival (higher is better). A case is a model on a data set. Better is counted among the cases that could be won, "
    "worse among all.",
    evidence=evidence,
)
table

# %% [markdown]
# Each number is a mean over models and data sets, and says nothing about others. Each model is judged separately, so with three
# models the chance of any false one in a row is up to 15 %. The probes also learned from very different numbers of questions:

# %% label="findings-taught" evidence=["measured"] reads=["verdicts", "features"]
home = against[against["kind"] == "probe of the data set"]
learned = pd.concat(taught, names=["model", "method"]).rename("learned from")
columns = ["dataset", "model", "learned from", "estimate", "low", "high"]
page.show(
    home.join(learned, on=["model", "method"])[[*columns, "verdict"]],
    "Gain of each probe over the best constant on its own data set, and how many training questions it learned from.",
    evidence=evidence,
)

# %% [markdown]
# How few labels are enough? [A section of its own](08_probe_generalization.ipynb#how-many-labels-does-it-take) answers that.

# %% tags=["remove-cell"]
from capcal_lib.book import front
from capcal_lib.book.lesson import glue

glue(advice=table, known=grid, evidence=evidence, **front.spell_advice(advice))
glue(**front.count_statements(tally))
glue(**front.describe_models({name: models[name] for name in results}))

# %% [markdown]
# ## All comparisons
#
# Each interval is for one comparison alone. So it may exclude 0 although the result, after Holm, is *neither*.

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
# - We test what the paper says, sometimes on more data sets than the paper names. We count separately what this book asks
#   beyond the paper.
# - A count of wins needs its losses beside it, and all comparisons need to be judged together.
#
# [Next](11_applications.ipynb): being close to the expected accuracy is no use by itself. What can you do better with a
# confidence?
#
# ## Exercises
#
# **1 (easy).** Suppose that no method differs from any other, and that each comparison is judged by its own 95 % interval. How
# many would seem significant by chance? *Hint:* one in twenty.

# %% tags=["hide-cell", "solution"]
# Significant: expected by chance, found alone, and judged together
alone, together = comparisons["p"] < 0.05, comparisons["p (Holm)"] < 0.05
page.solution(len(comparisons) / 20, int(alone.sum()), int(together.sum()))

# %% [markdown]
# **2 (medium).** Look at the figure. What does *neither* mean? Could the same questions have shown a gain as large as the gains
# that hold? *Hint:* how wide are the intervals?

# %% tags=["hide-cell", "solution"]
# A gain above half an interval would be seen, as those that hold are; neither leaves room for a smaller one
widths = comparisons["high"] - comparisons["low"]
of_result = comparisons.assign(
    half=widths / 2, gain=comparisons["estimate"].abs()
)
page.solution(
    of_result.groupby("result", observed=True)[["half", "gain"]].median()
)
