# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Expected accuracy without sampling
#
# This page shows when $\mu$ can be bounded by adding up probabilities of answers, what that costs, and that samples agree
# with it. It goes beyond the paper, whose $\mu$ is always estimated from samples (section 4.1).

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has the built-in sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of the samples that are drawn from those recorded

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.book import notebook, style, tables
from capcal_lib.results import WIDEST, describe_runs, load_results, read_exact
from capcal_lib.results.exact import FILE
from scipy.stats import binom, chi2

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
rng = np.random.default_rng(seed)
data = describe_runs(notebook.open_store(store), model, k_eval=k_eval)
data = data.assign(exact=[(run.folder / FILE).exists() for run in data["run"]])
none = {
    "exact": "No answers of this model were enumerated. To do so: "
    f"capcal exact --model {model} --dataset mini-exam"
}
notebook.about(model, data, lacking={} if data["exact"].any() else none)

# %% tags=["hide-input"]
# needs exact
data = data[data["exact"]]
evidence = data["evidence"].iloc[0]
found = {name: read_exact(run) for name, run in data["run"].items()}
bounds = pd.concat(found, names=["dataset"])
results = load_results(
    notebook.open_store(store), model, datasets=found, k_eval=k_eval
)
questions = results[["correct", "total"]].query("total > 0").join(bounds)
by_set = questions.groupby(level="dataset", sort=False)

# %% tags=["remove-cell"]
# needs exact
mu_hat = questions["correct"] / questions["total"]
width = questions["upper"] - questions["lower"]
outside = (mu_hat - questions["lower"]).groupby(level=0)
rest = outside.transform("sum") - (mu_hat - questions["lower"])
width_of_rest = width.groupby(level=0).transform("sum") - width
accuracy = (rest / width_of_rest).clip(0, 1)
questions["point"] = questions["lower"] + width * accuracy
variance = questions["point"] * (1 - questions["point"]) / questions["total"]
usable = variance * questions["total"] ** 2 > 1
z = ((mu_hat - questions["point"]) / np.sqrt(variance.where(usable))).dropna()
spread = z.groupby(level=0, sort=False)

# %% tags=["remove-cell"]
# needs exact
notebook.glue(
    sets=len(found),
    questions=len(questions),
    known=int((width <= WIDEST).sum()),
    passes=questions["passes"].mean(),
    tokens=(
        questions["total"] * data["tokens"].reindex(questions.index, level=0)
    ).mean(),
    spread=z.std(),
    z_questions=len(z),
    beyond=(z.abs() > 1.96).mean(),
)

# %% [markdown] needs="exact"
# On {glue:text}`sets` data sets with {glue:text}`questions` questions, $\mu$ is known to within 0.05 for
# {glue:text}`known` without drawing a sample. That costs {glue:text}`passes:.0f` next-token distributions a question; the
# samples behind $\hat\mu$ took {glue:text}`tokens:.0f` tokens a question. In units of its standard error, $\hat\mu$ is
# spread around $\mu$ with a standard deviation of {glue:text}`spread:.2f`, where 1 is expected.

# %% mystnb={"figure": {"caption": "Estimates from samples against what probabilities say: bounds (lines) and point (dots) of each question's expected accuracy. On the diagonal both agree.", "name": "fig-exact"}, "image": {"alt": "Scatter plot of estimated against exact expected accuracy. The dots scatter closely around the diagonal; horizontal lines through them are short for one data set and long for many questions of the other."}} tags=["hide-input"]
# needs exact
titles = data["title"].reindex(questions.index, level=0)
axes = sns.scatterplot(
    x=questions["point"], y=mu_hat, hue=titles, s=20, zorder=3
)
axes.hlines(
    mu_hat,
    questions["lower"],
    questions["upper"],
    color=style.MUTED,
    linewidth=0.6,
)
axes.axline((0, 0), slope=1, color=style.INK, linewidth=0.8)
axes.set(xlabel="exact μ: bounds and point", ylabel="sampled μ̂")
_ = axes.legend(title="")

# %% [markdown]
# ## A sum over answers
#
# By definition $\mu = \sum_y p(y \mid x)\, C(x, y)$. Beginning at the prompt, the tree of next tokens is walked under the
# very settings of the samples: temperature, top-k, top-p, longest answer. Every answer that ends is graded. Beginnings
# that are too unlikely are left out, so that
#
# $$
# \sum_{y \text{ right}} p(y \mid x) \;\le\; \mu \;\le\; 1 - \sum_{y \text{ wrong}} p(y \mid x)
# $$ (exact-bounds)
#
# holds without any statistics. For an answer of one letter this is one pass over the prompt, and one more for each
# letter to see that the answer ends there. The first letter alone would not do: what follows it can still change
# the verdict. For long reasoning the tree never closes, and the bounds stay at 0 and 1.

# %%
# needs exact
questions[["lower", "upper", "passes"]].groupby(level="dataset").head(2)

# %% label="exact-bounds" evidence=["measured"] reads=["verdicts"] tags=["hide-input"]
# needs exact
table = by_set[["lower", "upper", "passes"]].mean()
table.insert(0, "questions", by_set.size())
table.insert(1, "within 0.05", (width <= WIDEST).groupby(level=0).sum())
table["tokens of the samples"] = data["tokens"] * by_set["total"].mean()
tables.show(
    table.rename(index=data["title"]).rename_axis("data set"),
    "Mean bounds of expected accuracy, and what they cost a question.",
    evidence=evidence,
    **{"passes": "{:.0f}", "tokens of the samples": "{:,.0f}"},
)

# %% [markdown] needs="exact"
# ## From bounds to a point
#
# Between its bounds $\mu$ depends on the answers that were left out. They are no random part of all answers: the ones
# left out are long, odd, and more often wrong than those found. So the share of right answers among those *found* would
# be too high. What is known of the others comes from the samples: of all samples of a data set, a share of
# `upper - lower` lies outside the tree, and what they add to $\hat\mu$ is their accuracy. Where hardly any lies outside,
# the data are inconclusive, and it hardly matters.

# %%
# needs exact
added = mu_hat - questions["lower"]
added.groupby("dataset").sum().div(width.groupby("dataset").sum()).clip(0, 1)

# %% [markdown] needs="exact"
# The point is `lower + (upper - lower) * accuracy`, where the accuracy is that of the data set's *other* questions, so
# that no question helps to predict itself. It says which way a question leans; its mean over a data set with wide bounds
# is that of the samples by construction.
#
# ## Do samples agree?
#
# If the samples were drawn from these distributions, $(\hat\mu - \mu)/\sqrt{\mu(1-\mu)/k}$ is spread like a standard
# normal variable: a standard deviation of 1, a share of 0.05 beyond ±1.96, and a mean within two of its own standard
# errors from zero. The bounds alone make a test that takes nothing for granted: how likely is a count as high under the
# upper bound, or as low under the lower one?

# %%
# needs exact
c, n = questions["correct"], questions["total"]
too_high = binom.sf(c - 1, n, questions["upper"])
too_low = binom.cdf(c, n, questions["lower"])
p = pd.Series(2 * np.minimum(too_high, too_low), questions.index)

# %% label="exact-tests" evidence=["measured"] reads=["verdicts"] tags=["hide-input"]
# needs exact
tests = spread.agg(["size", "std"])
tests["beyond ±1.96"] = (z.abs() > 1.96).groupby(level=0).mean()
tests["mean / its s.e."] = spread.mean() * np.sqrt(spread.size())
squares = (z**2).groupby(level=0).sum()
tests["p, spread"] = chi2.sf(squares.reindex(tests.index), tests["size"])
tests["p, bounds"] = (p.groupby(level=0).min() * by_set.size()).clip(upper=1)
tests = tests.rename(columns={"size": "questions", "std": "s.d. of z"})
tables.show(
    tests.rename(index=data["title"]).rename_axis("data set"),
    "Do samples agree with the probabilities? Every data set with bounds; the "
    "last p is of the worst question (Bonferroni).",
    evidence=evidence,
)

# %% [markdown] needs="exact"
# Left out are questions with an expected count below about one right or wrong answer, where nothing is normal. Over all
# {glue:text}`z_questions` others, a share of {glue:text}`beyond:.3f` lies beyond ±1.96. A mean beyond ±2
# standard errors may be an unlucky set of samples; one beyond ±4 would be a defect. So engine, sampler, grader and store
# are tested together, against arithmetic.
#
# ## How fast do estimates converge?
#
# With $k$ of the recorded samples, drawn without replacement, the error of $\hat\mu$ falls as $1/\sqrt{k}$.


# %% tags=["hide-input"]
def error(own, k, draws=50):
    """Return the root mean square of mu_hat - mu over questions and draws."""
    c, n = own["correct"], own["total"]
    drawn = rng.hypergeometric(c, n - c, k, size=(draws, len(own))) / k
    return np.sqrt(np.mean((drawn - own["point"].to_numpy()) ** 2))


# %% tags=["hide-input"]
# needs exact
whole = questions[questions["total"] >= min(k_eval, 100)]
ks = [k for k in (1, 2, 5, 10, 20, 50, 100) if k <= k_eval]
curve = pd.DataFrame(
    [
        (
            data["title"][name],
            k,
            error(own, k),
            np.sqrt((own["point"] * (1 - own["point"])).mean() / k),
        )
        for name, own in whole.groupby(level="dataset", sort=False)
        for k in ks
    ],
    columns=["data set", "k", "error", "theory"],
)

# %% mystnb={"figure": {"caption": "Error of estimates from k samples against the exact point (dots), and the root of the mean of μ(1 − μ)/k (lines).", "name": "fig-exact-convergence"}, "image": {"alt": "Dots fall along straight lines on logarithmic axes, from an error of about 0.4 with one sample to about 0.04 with a hundred."}} tags=["hide-input"]
# needs exact
look = {"x": "k", "hue": "data set"}
axes = sns.lineplot(curve, y="theory", legend=False, **look)
sns.scatterplot(curve, y="error", s=50, ax=axes, **look)
axes.set(xscale="log", yscale="log", ylabel="root mean square error")
marks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
least, most = axes.get_ylim()
axes.set_yticks(ticks := [at for at in marks if least < at < most], ticks)
axes.set_xticks(ks, ks)
axes.minorticks_off()
axes.set(xlabel="samples, k")
_ = axes.legend(title="")

# %% [markdown]
# ## Summary
#
# - For short answers $\mu$ has bounds that need no samples and no confidence level.
# - A point between the bounds needs an assumption on what was left out; it is wrong more often than what was found.
# - Estimates from samples agree with both, and converge as the binomial law says. For long answers sampling is the only
#   way.
#
# ## Exercises
#
# **1 (easy).** The tree holds right answers of probability 0.5 and wrong ones of 0.4. What are the bounds, and what would
# the share of right answers among those found claim? *Hint:* the share has 0.9 below the line.

# %% tags=["hide-cell", "solution"]
0.5, 1 - 0.4, round(0.5 / 0.9, 3)

# %% [markdown]
# **2 (medium).** Show on the data set with the widest bounds that the share among those found is too high.
# *Hint:* compare its mean with that of $\hat\mu$.

# %% tags=["hide-cell", "solution"]
# needs exact
widest = width.groupby(level=0).mean().idxmax()
own = questions.loc[widest]
share = own["lower"] / (own["lower"] + 1 - own["upper"])
pd.Series({"found": share.mean(), "sampled": mu_hat[widest].mean()}).round(3)

# %% [markdown]
# **3 (hard).** Score a confidence against the point instead of $\hat\mu$. Which term of the corrected Brier score is no
# longer needed, and how far apart are the two? *Hint:* the noise of $\hat\mu$ is what the correction subtracts.

# %% tags=["hide-cell", "solution"]
# needs exact
s = results[results.columns[2]].reindex(questions.index)
noise = mu_hat * (1 - mu_hat) / (questions["total"] - 1)
by_samples = ((s - mu_hat) ** 2 - noise).mean()
by_point = ((s - questions["point"]) ** 2).mean()
round(float(by_samples), 4), round(float(by_point), 4)
