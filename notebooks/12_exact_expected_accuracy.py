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
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval)
data = data.assign(exact=[(run.folder / FILE).exists() for run in data["run"]])
none = {
    "exact": "No answers of this model were enumerated. To do so: "
    f"capcal exact --model {model} --dataset mini-exam"
}
notebook.about(model, data, lacking={} if data["exact"].any() else none)

# %% tags=["hide-input"]
# needs exact
data = data[data["exact"]]
found = {name: read_exact(run) for name, run in data["run"].items()}
bounds = pd.concat(found, names=["dataset"])
results = load_results(runs, model, datasets=found, k_eval=k_eval)
questions = results[["correct", "total"]].query("total > 0").join(bounds)
mu_hat = questions["correct"] / questions["total"]
width = questions["upper"] - questions["lower"]
by_set = questions.groupby("dataset", sort=False)

# %% [markdown] needs="exact"
# Probabilities bound $\mu$ from both sides. Between the bounds it is placed by what samples of the other questions add:

# %%
# needs exact
beyond = mu_hat - questions["lower"]  # what samples outside the tree add
others_beyond = beyond.groupby("dataset").transform("sum") - beyond
others_width = width.groupby("dataset").transform("sum") - width
accuracy = (others_beyond / others_width).clip(0, 1)
questions["point"] = questions["lower"] + width * accuracy

# %% tags=["hide-input"]
# needs exact
variance = questions["point"] * (1 - questions["point"]) / questions["total"]
usable = variance * questions["total"] ** 2 > 1  # about one right and one wrong
z = ((mu_hat - questions["point"]) / np.sqrt(variance.where(usable))).dropna()

# %% tags=["hide-input"]
# needs exact
evidence = data["evidence"].iloc[0]
tokens = by_set["total"].sum() * data["tokens"]
notebook.glue(
    sets=len(found),
    questions=len(questions),
    known=int((width <= WIDEST).sum()),
    passes=questions["passes"].mean(),
    tokens=tokens.sum() / len(questions),
    spread=z.std(),
    z_questions=len(z),
    beyond=(z.abs() > 1.96).mean(),
)

# %% tags=["finding"]
# needs exact
notebook.finding(r"""
For short answers the expected accuracy can be computed, and samples agree with it. On {sets} data sets with {questions}
questions, $\mu$ is known to within 0.05 for {known} without drawing a sample. That costs {passes:.0f} next-token
distributions a question, where the samples behind $\hat\mu$ took {tokens:.0f} tokens. In units of its standard error,
$\hat\mu$ is spread around $\mu$ with a standard deviation of {spread:.2f}, where 1 is expected.
""")

# %% mystnb={"figure": {"caption": "Estimates from samples against what probabilities say: bounds (lines) and point (dots) of each question's expected accuracy. On the diagonal both agree.", "name": "fig-exact"}, "image": {"alt": "Scatter plot of estimated against exact expected accuracy. The dots scatter closely around the diagonal; horizontal lines through them are short for one data set and long for many questions of the other."}}
# needs exact
titles = data["title"].reindex(questions.index, level=0)
axes = sns.scatterplot(x=questions["point"], y=mu_hat, hue=titles, zorder=3)
ends = questions["lower"], questions["upper"]
axes.hlines(mu_hat, *ends, color=style.MUTED, linewidth=0.6)
axes.axline((0, 0), slope=1, color=style.INK, linewidth=0.8)
axes.set(xlabel="exact μ: bounds and point", ylabel="share of samples correct")
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

# %%
# needs exact
table = by_set[["lower", "upper", "passes"]].mean()
table.insert(0, "questions", by_set.size())
table.insert(1, "within 0.05", (width <= WIDEST).groupby("dataset").sum())
table["tokens of the samples"] = data["tokens"] * by_set["total"].mean()

# %% label="exact-bounds" evidence=["measured"] reads=["verdicts"] tags=["hide-input"]
# needs exact
tables.show(
    table.rename(index=data["title"]).rename_axis("data set"),
    "Mean bounds of expected accuracy, and what they cost a question.",
    evidence=evidence,
    **{"passes": "{:.0f}", "tokens of the samples": "{:,.0f}"},
)

# %%
# needs exact
notebook.say(r"""
## From bounds to a point

Between its bounds $\mu$ depends on the answers that were left out. They are no random part of all answers: the ones
left out are long, odd, and more often wrong than those found. So the share of right answers among those *found* would
be too high. What is known of the others comes from the samples: of all samples of a data set, a share of
`upper - lower` lies outside the tree, and what they add to $\hat\mu$ is their accuracy. Where hardly any lies outside,
the data are inconclusive, and it hardly matters.
""")

# %%
# needs exact
outside = beyond.groupby("dataset").sum() / width.groupby("dataset").sum()
outside.clip(0, 1)

# %%
# needs exact
notebook.say(r"""
The point is `lower + (upper - lower) * accuracy`, where the accuracy is that of the data set's *other* questions, so
that no question helps to predict itself. It says which way a question leans; its mean over a data set with wide bounds
is that of the samples by construction.

## Do samples agree?

If the samples were drawn from these distributions, $(\hat\mu - \mu)/\sqrt{\mu(1-\mu)/k}$ is spread like a standard
normal variable: a standard deviation of 1, a share of 0.05 beyond ±1.96, and a mean within two of its own standard
errors from zero. The bounds alone make a test that takes nothing for granted: how likely is a count as high under the
upper bound, or as low under the lower one?
""")

# %%
# needs exact
c, n = questions["correct"], questions["total"]
too_high = binom.sf(c - 1, n, questions["upper"])
too_low = binom.cdf(c, n, questions["lower"])
p = pd.Series(2 * np.minimum(too_high, too_low), questions.index)

# %%
# needs exact
squares = (z**2).groupby("dataset").sum()
tests = z.groupby("dataset", sort=False).agg(["size", "std"])
tests["beyond ±1.96"] = (z.abs() > 1.96).groupby("dataset").mean()
mean = z.groupby("dataset").mean()
tests["mean / its s.e."] = mean * np.sqrt(tests["size"])
tests["p, spread"] = chi2.sf(squares.reindex(tests.index), tests["size"])
tests["p, bounds"] = (p.groupby("dataset").min() * by_set.size()).clip(upper=1)

# %% label="exact-tests" evidence=["measured"] reads=["verdicts"] tags=["hide-input"]
# needs exact
tests = tests.rename(columns={"size": "questions", "std": "s.d. of z"})
tables.show(
    tests.rename(index=data["title"]).rename_axis("data set"),
    "Do samples agree with the probabilities? The last p is of the worst "
    "question of each data set (Bonferroni).",
    evidence=evidence,
)

# %%
# needs exact
notebook.say(r"""
Left out are questions with an expected count below about one right or wrong answer, where nothing is normal. Over all
{z_questions} others, a share of {beyond:.3f} lies beyond ±1.96. A mean beyond ±2
standard errors may be an unlucky set of samples; one beyond ±4 would be a defect. So engine, sampler, grader and store
are tested together, against arithmetic.

## How fast do estimates converge?

With $k$ of the recorded samples, drawn without replacement, the error of $\hat\mu$ falls as $1/\sqrt{k}$.
""")


# %%
# needs exact
rows = []
for name, own in by_set:
    own = own[own["total"] >= min(k_eval, 100)]
    wrong = own["total"] - own["correct"]
    expected = (own["point"] * (1 - own["point"])).mean()
    for k in [k for k in (1, 2, 5, 10, 20, 50, 100) if k <= k_eval]:
        drawn = rng.hypergeometric(own["correct"], wrong, k, (50, len(own)))
        missed = drawn / k - own["point"].to_numpy()
        rows.append((name, k, (missed**2).mean() ** 0.5, (expected / k) ** 0.5))
curve = pd.DataFrame(rows, columns=["dataset", "k", "error", "theory"])

# %% mystnb={"figure": {"caption": "Error of estimates from k samples against the exact point (dots), and the root of the mean of μ(1 − μ)/k (lines).", "name": "fig-exact-convergence"}, "image": {"alt": "Dots fall along straight lines on logarithmic axes, from an error of about 0.4 with one sample to about 0.04 with a hundred."}} tags=["hide-input"]
# needs exact
curve["data set"] = curve["dataset"].map(data["title"])
look = {"x": "k", "hue": "data set"}
axes = sns.lineplot(curve, y="theory", legend=False, **look)
sns.scatterplot(curve, y="error", s=50, ax=axes, **look)
axes.set(xscale="log", yscale="log", ylabel="root mean square error")
marks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
least, most = axes.get_ylim()
axes.set_yticks(ticks := [at for at in marks if least < at < most], ticks)
axes.set_xticks(ks := sorted(set(curve["k"])), ks)
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
