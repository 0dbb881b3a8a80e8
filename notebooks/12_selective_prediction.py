# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Answering only when the confidence is high
#
# How often is a model wrong if it answers only when it is confident, and can we promise a limit? [On the previous
# page](11_applications.ipynb) abstaining was one of three uses.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
dataset: str = ""  # one with samples; empty: where the gain is largest
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with its recipe and scores
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of all that is drawn here
risk: float = 0.1  # the share of wrong answers that is promised

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
show_runs(page, dataset)

# %% [markdown]
# A model that may abstain answers questions in order of confidence, highest first. *Coverage* is the share of the questions
# that it answers. The *risk* of a question is the chance $1-\mu$ that a fresh answer to it is wrong. The risk at a coverage is
# the mean over the answered questions. The area under the risk-coverage curve is the mean risk over all coverages. The paper
# suggests abstaining in section 5.3 and does not try it.
#
# We compare each method with answering at random, with Holm's correction over all methods and data sets. A case *could be won*
# if a perfect confidence would be significantly better. The probe is the one with the nearest training set, and a confidence
# that the model did not state counts as one half. Data sets without a solved question are left out.

# %%
from capcal_lib.results import compare_use, tally, ways_to_use

results = results_of(page.counting)
concentrations = probes_of(page)["concentration"]
ways = ways_to_use(results, concentrations)
ways = ways[ways["way"] != "Probe, posterior"]  # it ranks as the plug-in does
judged = compare_use(results, "Abstaining", concentrations)
if judged.empty:
    raise EndOfPage("No confidence of a question that is ever solved.")
counts = tally(judged, "method").reindex(judged["method"].unique()[::-1])

# %% label="selective-verdicts"
show(
    counts,
    "Number of data sets on which a method is significantly better or worse than answering at random.",
    evidence=page.evidence,
)

# %% tags=["finding"]
from capcal_lib.text import share_in_words

first, last = counts.index[[0, -1]]
won = [
    share_in_words(*counts.loc[name, ["better", "could be won"]], "data set")
    for name in (first, last)
]
finding(
    "Answering in order of *{first}* is significantly better than answering at random on {better} that could be won. "
    "In order of *{last}* it is significantly better on {last_better}.",
    first=first,
    better=won[0],
    last=last,
    last_better=won[1],
)

# %% [markdown]
# Here are the curves on the data set where the first method gains most, unless `dataset` names another:

# %%
import numpy as np
import pandas as pd
from capcal_lib import plots
from capcal_lib.applications import risk_coverage, split_counts

gained = judged[judged["method"] == first].set_index("dataset")["estimate"]
shown = dataset or gained.idxmax()
rng = np.random.default_rng(seed)
of_set = results.query("total > 1").loc[[shown]]
(known, drawn), (right, left) = split_counts(
    of_set["correct"], of_set["total"], rng=rng
)
oracle = {"method": "Honest oracle", "confidence": known / drawn}
oracle |= {"correct": right, "total": left, "member": 0}
ranked = pd.concat([ways.loc[[shown]], pd.DataFrame(oracle)])

# %%
numbers = ["confidence", "correct", "total"]
members = ranked.astype({"method": str}).groupby(
    ["method", "member"], sort=False
)
curves = {
    case: risk_coverage(*rows[numbers].to_numpy().T) for case, rows in members
}
curves = pd.concat(curves, names=["method", "member", None])
curves = curves.groupby(["method", "coverage"], sort=False)["risk"].mean()
curves = curves.reset_index()
colors = plots.palette(curves["method"].unique(), shown)

# %% tags=["picture"] label="fig-risk-coverage" mystnb={"image": {"alt": "Line plot of risk, the expected share of wrong answers, against coverage: a curve for each method and for the honest oracle, which meet at full coverage, and a level line for answering at random."}}
import seaborn as sns
from capcal_lib.manifests import load_dataset

steady = curves[curves["coverage"] >= 0.1]
axes = sns.lineplot(
    steady, x="coverage", y="risk", hue="method", style="method", palette=colors
)
at_random = (1 - of_set["correct"] / of_set["total"]).mean()
axes.axhline(at_random, color=plots.MUTED, linewidth=1, label="At random")
axes.set(xlim=(0, 1), ylim=(0, 1), title=load_dataset(shown).title)
axes.set(xlabel="coverage: questions answered", ylabel="risk: answers wrong")
_ = axes.legend()

# %% [markdown]
# Share of wrong answers when the most confident questions are answered first. Curves begin at a coverage of 0.1, because fewer
# questions tell too little. The honest oracle orders questions by one half of their samples and is scored on the other.

# %% [markdown]
# How often is the model wrong if it answers only its surest half of the questions, and how often if it answers all? Votes and
# the honest oracle may have a slightly different risk when all are answered, because fewer samples judge them.

# %%
half = curves[curves["coverage"] <= 0.5].groupby("method", sort=False)["risk"]
whole = curves.groupby("method", sort=False)["risk"]
pd.DataFrame({"half answered": half.last(), "all answered": whole.last()})

# %% [markdown]
# ## The area under the curve
#
# `risk_coverage` computes the curve from the order of the confidences alone. Here are four questions, two of which have the
# same confidence:

# %%
correct, total = [9, 1, 8, 2], [10] * 4
risk_coverage([0.9, 0.2, 0.5, 0.5], correct, total)

# %% [markdown]
# `risk_area_terms` gives each question a term, and the mean of the terms is the area. So intervals and comparisons work as for
# any mean. Here is the area for the four questions, and the risk of answering at random:

# %%
from capcal_lib.applications import risk_area_terms

of_four = risk_area_terms([0.9, 0.2, 0.5, 0.5], correct, total)
of_four.mean().round(3), (1 - np.divide(correct, total)).mean()

# %% [markdown]
# A gain is the risk of answering at random minus the area:

# %% label="selective-areas"
from capcal_lib.book import tables

show(
    judged.drop(columns=["method", "p"]),
    "Area saved under the risk-coverage curve compared with answering at random (higher is better), with its own 95 % interval, and the "
    "verdict after Holm.",
    **{"p (Holm)": tables.p_value},
    evidence=page.evidence,
)

# %% [markdown]
# ## Promising a risk
#
# Which threshold keeps wrong answers below a promised share of all questions? A threshold that is read off the curve of some
# questions is too low for new ones. *Conformal risk control* (Angelopoulos et al., 2024) adds one more question, which the
# model answers and always gets wrong. If questions with a confidence $s_i$ above $t$ are answered, and $n$ questions set the
# threshold, the lowest $t$ with
#
# $$
# \frac{1}{n+1}\Bigl(1 + \sum_{i:\,s_i > t} (1 - \hat\mu_i)\Bigr) \le \alpha
# $$
#
# keeps the promise $\alpha$ on average for new questions of the same kind, whatever the confidence is.


# %%
def promise_risk(s, c, n, risk):
    """Return the lowest threshold that keeps the promise."""
    if risk * (len(s) + 1) < 1:
        return np.inf  # none may be answered
    wrong = pd.Series(1 - np.divide(c, n)).groupby(-np.asarray(s)).sum()
    # Answer all down to each confidence, from the highest on.
    broken = 1 + wrong.cumsum() > risk * (len(s) + 1) + 1e-9
    return -float(broken.idxmax()) if broken.any() else -np.inf


promise_risk([0.9, 0.8, 0.5, 0.2], [10, 9, 5, 0], [10] * 4, risk=0.3)

# %% [markdown]
# We set thresholds on a random half of the questions and use them on the other half, a hundred times.

# %% label="selective-promise"
shares = {}
for case, rows in ways.groupby(["dataset", "way", "member"], sort=False):
    scored = rows[numbers].to_numpy().T
    rng = np.random.default_rng(seed)
    for half in range(100):
        seen = rng.permutation(len(rows)) < len(rows) // 2
        limit = promise_risk(*scored[:, seen], risk)
        s, c, n = scored[:, ~seen]
        wrong = np.mean((s > limit) * (1 - c / n))
        shares[*case, half] = {"answered": np.mean(s > limit), "wrong": wrong}
promised = pd.DataFrame.from_dict(shares, "index")
promised = promised.groupby(level=[0, 1], sort=False).mean()
promised = promised.rename_axis(["dataset", "method"]).reset_index()
titled = tables.titled(promised)
show(
    titled.pivot_table("answered", "method", "dataset", sort=False),
    f"Share of questions answered under a promise of {100 * risk:g} % wrong answers.",
    digits=2,
    evidence=page.evidence,
)

# %% [markdown]
# Is the promise kept? Here is the mean share of questions with a wrong answer, on the data set where it is largest. A hundred
# halves are a sample, so a share may lie a little above the promise by chance.

# %%
promised.groupby("method", sort=False)["wrong"].max()

# %% [markdown]
# ## Summary
#
# - Abstaining needs only the order of the questions.
# - Compare areas with answering at random, which is hard to beat if a model is hardly ever right.
# - Conformal risk control keeps its promise on average, with any confidence. A good confidence lets the model answer more.
#
# [Next](13_live_sampling.ipynb): what does a model answer if we ask it here and now?
#
# ## Exercises
#
# **1 (easy).** What happens to a curve in the figure if its confidence is squared? Where would all curves end if the same
# samples judged them all? *Hint:* only the order counts, and at the end all questions are answered.

# %% tags=["hide-cell", "solution"]
# The curves of a confidence and of its square are equal, and end in the mean risk
s = np.array([0.9, 0.2, 0.5, 0.5])
squared = risk_coverage(s**2, correct, total)
assert squared.equals(risk_coverage(s, correct, total))
squared["risk"].iloc[-1]

# %% [markdown]
# **2 (medium).** With ten questions, what is the smallest risk that can be promised if any question is to be answered? *Hint:*
# the added question is always wrong.

# %% tags=["hide-cell", "solution"]
# Ten right questions, and two risks close to each other
ten = [0.5] * 10, [1] * 10, [1] * 10
(promise_risk(*ten, 1 / 11 - 0.001), promise_risk(*ten, 1 / 11 + 0.001))

# %% [markdown]
# **3 (hard).** The page promises wrong answers among *all* questions. Suppose that somebody promises the risk among the
# *answered* ones and reads it off the curve of 50 questions. How often is this promise broken on other questions? Simulate
# questions with known $\mu$ and a confidence near it. *Hint:* the curve is lowest for questions that were lucky.

# %% tags=["hide-cell", "solution"]
# Curves of fifty questions, tried on the others
rng, broken = np.random.default_rng(seed), []
mu = rng.beta(0.5, 0.5, 2000)
s = pd.Series(mu + rng.normal(0, 0.5, 2000)).rank(pct=True).to_numpy()
for _ in range(300):
    seen, drawn = rng.permutation(2000) < 50, rng.binomial(20, mu)
    curve = risk_coverage(s[seen], drawn[seen], [20] * 50)
    safe = curve.loc[curve["risk"] <= 0.3, "coverage"]
    if len(safe):
        answered = ~seen & (s >= np.quantile(s[seen], 1 - safe.max()))
        broken.append((1 - mu[answered]).mean() > 0.3)
np.mean(broken)
