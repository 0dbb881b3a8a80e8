# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Benchmarking without labels
#
# [Before](13_selective_prediction.ipynb) a confidence had to tell questions apart. Here it has only to be right on average: does its
# mean tell the accuracy of a model, without a single graded answer?

# %% tags=["parameters"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models` with samples
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with the probes of its recipe
verdicts: str = "rules"  # or judge:MODEL, of the model's own samples

# %% tags=["provenance"]
import numpy as np
import seaborn as sns
from capcal_lib import plots
from capcal_lib.book.lesson import evidence_of, open_page
from capcal_lib.results import judged_by
from capcal_lib.results.benchmarking import (
    count_ranked,
    miss_accuracies,
    training_accuracies,
)
from scipy.stats import wilcoxon

page = open_page(globals())
page.show_other_models()

# %% [markdown]
# The paper names label-free benchmarking in section 5.3 and does not try it. The mean of a confidence over the questions is an
# estimate of the accuracy. The test questions need no labels, but the probe's training questions did. The rival uses those same
# labels: it is the mean accuracy on the *training questions* of the probe nearest to a data set.

# %%
models = page.comparable_models()
results, trained = {}, {}
for name in models:
    own = page.results(name)
    judge = verdicts if name == model else "rules"
    graded = {"recipe": page.recipe, "verdicts": judge}
    trained[name] = training_accuracies(page.store, name, own, **graded)
    results[name] = own

# %% [markdown]
# A *case* is a model on a data set. In a case a method *misses* the accuracy by its mean confidence less the accuracy, in points.
# The cases of a method are judged together by Holm's method: is its mean too high, too low, or can the questions not tell?

# %%
misses = miss_accuracies(results, trained)
if "Training questions" not in set(misses["method"]):
    page.end(
        "No model of this store has samples, a probe, and the run that taught it."
    )
of_method = misses.groupby("method", sort=False)
counts = of_method["verdict"].value_counts().unstack()
counts["median"] = misses["miss"].abs().groupby(misses["method"]).median()
counts

# %% [markdown]
# The last column is the median of the absolute miss. The accuracy on training questions is no confidence, and has no verdict. What
# a model says of itself is asked for in two ways.

# %% tags=["finding"]
asked = counts.filter(["Verbalized confidence", "P(True)"], axis="index")
page.finding(
    "The mean of a probe lies {probe:.1f} points from the accuracy in the median of {probes} cases; what a model says of itself is "
    "significantly too high in {above} of {cases}.",
    probe=counts.loc["Probe", "median"],
    probes=of_method.size()["Probe"],
    above=asked["too high"].sum(),
    cases=of_method.size()[asked.index].sum(),
)

# %% tags=["picture"] label="fig-label-free" paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"] mystnb={"image": {"alt": "Strip plot with a row a method and a point a model on a data set, by mean confidence less accuracy in points, with a dotted line at zero."}}
order = counts.sort_values("median").index
colors = plots.palette(order)
marks = {"size": 7, "jitter": False, "alpha": 0.5, "palette": colors}
axes = sns.stripplot(
    misses, x="miss", y="method", hue="method", order=order, **marks
)
axes.axvline(0, color=plots.INK, linestyle=":")
_ = axes.set(xlabel="mean confidence less accuracy, points", ylabel="")

# %% [markdown] tags=["caption"]
# Mean confidence less accuracy, a mark a model on a data set; on the dotted line the mean is the accuracy, and right of it the
# confidence is too high. The probe and the mean accuracy of its training questions are both right on average on the training
# questions; the mean accuracy knows nothing of a single question.

# %% [markdown]
# Both the probe and its rival miss by something. Case by case, which is nearer? This is how often it is the probe, of how many
# cases, and the p value of Wilcoxon's signed-rank test, with cases taken as independent.

# %%
size = misses.pivot_table("miss", ["model", "dataset"], "method").abs()
nearer = (size["Training questions"] - size["Probe"]).dropna()
int((nearer > 0).sum()), len(nearer), wilcoxon(nearer).pvalue

# %% [markdown]
# ## Without labels
#
# This works only if confidences are right on average, which is not known without labels. A probe is calibrated on its
# training questions; on others it may miss by any amount.

# %% label="label-free-misses" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
clear = misses["verdict"].isin(["too high", "too low"])
star = np.where(clear, "*", "")
misses["spelt"] = misses["miss"].map("{:+z.0f}".format) + star
keys = ["model", "dataset", "accuracy"]
wide = misses.pivot(index=keys, columns="method", values="spelt")
page.show(
    wide[counts.index].fillna("–"),
    "Accuracy in per cent, and mean confidence less accuracy in points "
    "(*: significantly other than 0, a method's cells after Holm).",
    evidence=evidence_of(*models.values()),
    accuracy="{:.1f}",
)

# %% [markdown]
# A miss by hand is a mean of differences. Take the case in which asking or voting is farthest off:

# %%
others = misses[~misses["method"].isin(["Probe", "Training questions"])]
worst = others.loc[others["miss"].abs().idxmax()]
name, dataset, method = worst[["model", "dataset", "method"]]
scored = judged_by(results[name].loc[[dataset]], method)
error = scored["confidence"] - scored["correct"] / scored["total"]
method, 100 * error.mean()

# %% [markdown]
# ## Ranking models
#
# Errors that all models share cancel when models are compared. Only pairs of models whose accuracies differ significantly
# are counted, so that there is a right order; where no two differ, nothing is ranked.

# %% label="label-free-ranking" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
ranked = count_ranked(results, misses)
page.show(
    ranked.rename(columns={"right": "ranked rightly"}),
    "Pairs of models, of those whose accuracies differ significantly, that "
    "the mean confidence ranks rightly.",
    evidence=evidence_of(*models.values()),
)

# %% [markdown]
# ## Summary
#
# - A mean confidence is an accuracy only where it is calibrated, which takes labels to know.
# - Errors that all models share cancel when models are ranked; those that differ from model to model do not.
#
# [Next](16_live_sampling.ipynb): all samples so far were recorded. What does a model answer that is asked here and now?
#
# ## Exercises
#
# **1 (easy).** Look at the figure: what does it mean for a benchmark that the marks of a method lie in a narrow band, but not at the
# dotted line? *Hint:* what is left if one and the same number is taken off all of them?

# %% tags=["hide-cell", "solution"]
# The spread of the misses around their own mean: what a single labelled set could not take away
of_method["miss"].std()

# %% [markdown]
# **2 (medium).** How many test questions would have to be graded, one answer each, to miss the accuracy by no more than a probe does
# without a label? Take the median of its misses, and the accuracies of the table. *Hint:* the standard error of a share $p$ of $n$
# answers is $\sqrt{p(1-p)/n}$, and half of all errors are within 0.67 of it.

# %% tags=["hide-cell", "solution"]
# The number whose median error is the median miss, at the median accuracy
p = misses["accuracy"].median() / 100
round(p * (1 - p) * (0.67 * 100 / counts.loc["Probe", "median"]) ** 2)
