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
# Do the paper's statements hold on much smaller models? [On the previous page](09_paper_audit.ipynb) we compared them with the
# paper's own printed numbers.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models` with samples
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with its recipe and scores
verdicts: str = "rules"  # or judge:MODEL, of the model's own samples

# %%
from capcal_lib.book.page import (
    EndOfPage,
    finding,
    models_beside,
    open_page,
    probes_of,
    show_runs,
)
from capcal_lib.book.tables import p_value, show
from capcal_lib.results.results import results_of

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)

# %% [markdown]
# Each statement becomes comparisons of two methods on one data set, with the answers of one model. We use the probe with the
# nearest training set, pass@k at k = 16, and a budget of two samples a question. We chose the data sets,
# rivals and uses after an earlier look at the same data.

# %%
models = models_beside(page)
for one in models.values():
    show_runs(one)
results, concentrations, taught = {}, {}, {}
for name, one in models.items():
    probes = probes_of(one)
    taught[name] = probes["questions"]
    if len(probes):
        results[name] = results_of(one.counting)
        concentrations[name] = probes["concentration"]
if not results:
    raise EndOfPage("No model has samples and a probe here.")

# %% [markdown]
# A comparison *holds* or *fails* if it is significant, and is *neither* otherwise. Verdicts on budgets come from the [page on
# budgets](06_budget_allocation.ipynb), and verdicts on the nearest probe against votes, verbalized confidence or P(True) from
# the [main table](04_main_table.ipynb). We judge all other comparisons together by Holm's method. So the chance of any false
# verdict among them is at most 5 %, if each interval has its stated coverage.

# %%
from capcal_lib.studies import small_models as study

comparisons = study.compare_as_stated(results, concentrations)
comparisons["result"].value_counts()

# %% [markdown]
# Whether ten votes cost more tokens than one answer needs no test. We count:

# %%
import pandas as pd
from capcal_lib.results import costs

dearer = [
    costs(models[name].counting)["Response consistency"]
    - models[name].runs["tokens"]
    for name in results
]
dearer = pd.concat(dearer).dropna() > 0
dearer.value_counts()

# %% [markdown]
# Statements are judged as on the [previous page](09_paper_audit.ipynb). One statement says that the worth of verbalized
# confidence and P(True) depends on the model. A data set shows this if one of them is significantly better than *Uniform
# random* with one model and significantly worse with another.

# %%
from capcal_lib.claims import CLAIM_VERDICTS, judge_claims, load_claims

stated = load_claims().dropna(subset="measured")
tested = study.results_of_claims(stated, comparisons, dearer)
claims = judge_claims(stated, tested)
tally = claims["verdict"].value_counts().reindex(CLAIM_VERDICTS, fill_value=0)
tally

# %% tags=["finding"]
counts = {
    "tested": tally.sum(),
    "supported": tally["supported"],
    "partly": tally["holds in part"],
    "against": tally["contradicted in part"] + tally["reversed"],
}
finding(
    "Small models can test {tested} of the paper's statements. They fully support {supported} and support {partly} in part. They contradict "
    "{against} at least in part.",
    **counts,
)

# %%
from capcal_lib.book.style import result_colors
from capcal_lib.claims import label_results

colors = result_colors("neither")
drawn = label_results(tested, claims["wording"])

# %% tags=["picture"] label="fig-four-claims" mystnb={"image": {"alt": "A stacked bar for each statement of the paper: the shares of comparisons on small models that hold, need not hold, are neither, and fail."}}
import seaborn as sns

bars = {"multiple": "fill", "discrete": True, "shrink": 0.75, "alpha": 1}
axes = sns.histplot(
    drawn, y="claim", hue="result", hue_order=colors, palette=colors, **bars
)
axes.set(xlabel="share of comparisons", ylabel="")
sns.move_legend(
    axes, "lower center", bbox_to_anchor=(0.1, 1), ncols=4, title=""
)

# %% [markdown]
# One bar per statement: the share of its comparisons with each result, after Holm. *Neither* means that the questions are too
# few to tell. If a statement asks only for some comparisons to hold, the ones that fail *need not hold*.

# %% [markdown]
# Printed numbers have no intervals, so in the column *printed* any difference counts that rounding cannot explain:

# %% label="findings-claims"
from capcal_lib.claims import compare_printed, spell_results

printed = compare_printed(load_claims())
claims["printed"] = spell_results(printed, load_claims()["wording"])
claims["small models"] = spell_results(tested, claims["wording"])
evidence = page.evidence
columns = ["place", "printed", "small models", "verdict"]
show(
    claims.rename_axis("the paper says")[columns],
    "The paper's statements on its own printed numbers and, after Holm, on small models. The verdict is for small models.",
    evidence=[evidence, "reported", "read off", "simulated"],
)

# %% [markdown]
# Our test asks more than the paper says in two ways. We test the statements on pass@k and budgets on every data set, not only
# on MATH-500 and AIME25. And we take the probe with the nearest training set, not the one with the best score. Here are the
# results on MATH-500 alone, if there are samples of it. *Off by .05* asks whether the predicted pass@16 of the data set is off
# by more than .05, and *voice* is verbalized confidence:

# %%
wider = comparisons["what"].str.contains("pass@16|budget")
on_math = comparisons[wider & (comparisons["dataset"] == "math500")]
on_math[["what", "method", "model", "result"]]

# %% [markdown]
# ## One comparison by hand
#
# Does a probe beat *Uniform random* on a data set? Subtract their Brier terms question by question, and judge the mean:

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
# The paper does not ask whether a confidence beats the *best constant*, the mean accuracy of the other questions. So what
# follows counts neither for nor against it.

# %%
from capcal_lib.results import compare_recalibrated, compare_with_constant

judged, equal = [], []
for name, of_model in results.items():
    judged.append(compare_with_constant(of_model).assign(model=name))
    equal.append(compare_recalibrated(of_model).assign(model=name))
against, recalibrated = pd.concat(judged), pd.concat(equal)

# %% [markdown]
# The constant and the probes have learned from labels; votes, verbalized confidence and P(True) have not. So we judge these
# three a second time after [recalibration](04_main_table.ipynb#on-equal-terms) on the labels of other questions, as a family of
# their own.

# %% label="findings-constant"
from capcal_lib.results import tally

after = recalibrated.astype({"kind": str})
after["kind"] += ", recalibrated"
both = pd.concat([against.astype({"kind": str}), after])
known = show(
    tally(both, "kind"),
    "Is a confidence closer than the best constant, the average of the data set? A case is one data set and one model, judged after "
    "Holm. Better is counted among the cases that a perfect confidence would win, and worse among all cases. A probe of several data "
    "sets is judged on its own training sets too.",
    evidence=evidence,
)
known

# %% [markdown]
# Nor does the paper ask whether the nearest probe beats ten votes, which cost ten answers. A comparison *holds* if the probe is
# closer:

# %%
votes = comparisons[comparisons["what"] == "probe < ten votes"]
votes["result"].value_counts()

# %% [markdown]
# ## What to do with what you have
#
# What a method is worth to you depends on your labels, and on whether you have one answer, ten answers or the hidden states.
# With labels, the rival is the best constant. Without labels nobody knows the mean of the data set. The rival of a probe is
# then the mean of its own training set, and the rival of the other methods is one half.

# %%
without = []
for name, of_model in results.items():
    means = study.training_means(page.counting.store, name)
    without.append(
        study.compare_without_labels(of_model, means).assign(model=name)
    )
advice = study.advise(pd.concat(without), against, recalibrated)

# %% label="findings-advice"
table = show(
    advice,
    "Mean gain over the rival (higher is better). A case is a model on a data set. Better is counted among the cases that could be won, "
    "and worse among all cases.",
    evidence=evidence,
)
table

# %% [markdown]
# Each number is a mean over models and data sets, and says nothing about others. Each model is judged separately, so with three
# models the chance of any false verdict in one row of the table is up to 15 %. The probes also learned from very
# different numbers of questions:

# %% label="findings-taught"
home = against[against["kind"] == "probe of the data set"]
learned = pd.concat(taught, names=["model", "method"]).rename("learned from")
columns = ["dataset", "model", "learned from", "estimate", "low", "high"]
show(
    home.join(learned, on=["model", "method"])[[*columns, "verdict"]],
    "Gain of each probe over the best constant on its own data set, and the number of training questions it learned from.",
    evidence=evidence,
)

# %% [markdown]
# Another page shows [how few labels are enough](08_probe_generalization.ipynb#how-many-labels-does-it-take).

# %% tags=["remove-cell"]
from capcal_lib.book.page import glue
from capcal_lib.manifests import load_model

sizes = [(load_model(name).parameters or 0) / 1e9 for name in results]
questions = pd.concat(models[name].runs["questions"] for name in results)
of_set = questions.groupby(level="dataset").max()
glue(
    advice=table,
    known=known,
    evidence=evidence,
    models=len(results),
    named=", ".join(load_model(name).title for name in results),
    smallest=min(sizes),
    largest=max(sizes),
    sets=len(of_set),
    questions=of_set.sum(),
    **counts,
)

# %% tags=["remove-cell"]
cases = advice.set_index("method")
rows = {
    "own": "probe of the data set",
    "votes": "votes, recalibrated",
    "yes_alone": "P(True), as it is",
}
spelled = {
    key: "{better} of {could be won}".format(**cases.loc[method])
    for key, method in rows.items()
}
glue(**spelled)

# %% [markdown]
# ## All comparisons
#
# Each interval is for one comparison alone. So it may exclude 0 although the result, after Holm, is *neither*. *Asked* is
# verbalized confidence or P(True). A *near* probe is from the same domain, and a *far* probe is from another. *Targets differ*
# asks whether one response is off the expected accuracy.

# %% label="findings-all"
about = ["what", "method", "model", "dataset", "estimate", "low", "high"]
listed = comparisons[[*about, "p (Holm)", "result"]]
show(
    listed.rename(columns={"what": "comparison", "estimate": "gain"}),
    "All comparisons: mean gain with its own 95 % interval.",
    evidence=evidence,
    **{"p (Holm)": p_value},
)

# %% [markdown]
# ## Summary
#
# - We test what the paper says, sometimes on more data sets than it names, and count our own questions separately.
# - Report losses beside wins, and judge comparisons together if they answer one question.
#
# [Next](11_applications.ipynb): what can you do better with a confidence?
#
# ## Exercises
#
# **1 (easy).** Suppose that no method differs from any other, and that each comparison is judged by its own 95 % interval. How
# many would seem significant by chance? *Hint:* one in twenty.

# %% tags=["hide-cell", "solution"]
# Significant: expected by chance, found alone, and judged together
alone, together = comparisons["p"] < 0.05, comparisons["p (Holm)"] < 0.05
len(comparisons) / 20, int(alone.sum()), int(together.sum())

# %% [markdown]
# **2 (medium).** Could the comparisons with the result *neither* have shown a gain as large as the gains that hold? *Hint:* how
# wide are their intervals?

# %% tags=["hide-cell", "solution"]
# An interval alone shows a gain above half its width. Compare the half of *neither* with the gains that hold
widths = comparisons["high"] - comparisons["low"]
of_result = comparisons.assign(
    half=widths / 2, gain=comparisons["estimate"].abs()
)
(of_result.groupby("result", observed=True)[["half", "gain"]].median())
