# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Answering only where the confidence is high
#
# A model that may abstain answers fewer questions and is wrong less often; this page measures how much a
# confidence is worth for that, and how to promise a {term}`risk`. The paper names selective prediction in section
# 5.3 and does not try it. Barkan et al. {cite:p}`barkan2025capable` let models decide themselves where failure is
# costly, and find their decisions rational, given confidences that are too high.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here
risk: float = 0.1  # the share of wrong answers that is promised

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.applications import risk_area_terms, risk_coverage, split_counts
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset
from capcal_lib.metrics import compare, mean_interval
from capcal_lib.probes import nearest_probe
from capcal_lib.results import costs, describe_runs, load_results, subjects

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval)
results = load_results(runs, model, k_eval=k_eval)
results = results[results["total"] > 1]
notebook.about(model, data)

# %% tags=["hide-input"]
RANDOM, PROBE = "At random", "Probe"
ASKED, VOTES = ["Verbalized confidence", "P(True)"], "Response consistency"
evidence = data["evidence"].iloc[0] if len(data) else "simulated"


def confidences(dataset):
    """Return counts and confidences on a data set: the nearest probe's too."""
    own = results.loc[[dataset]].dropna(axis="columns", how="all")
    kept = [name for name in (*ASKED, VOTES) if name in own]
    own = own.assign(
        **{name: own[name].fillna(0.5) for name in ASKED if name in own}
    )
    if nearest := nearest_probe(own, dataset):
        own, kept = own.rename(columns={nearest: PROBE}), [*kept, PROBE]
    return own[["correct", "total", *kept]].dropna()


# %% tags=["remove-cell"]
# needs samples
own = {name: confidences(name) for name in data.index}
areas = pd.concat(
    pd.DataFrame(
        {
            name: risk_area_terms(each[name], each["correct"], each["total"])
            for name in each.columns[2:]
        },
        index=each.index,
    ).assign(**{RANDOM: 1 - each["correct"] / each["total"]})
    for each in own.values()
)
areas = areas[
    [RANDOM, *(name for name in (*ASKED, VOTES, PROBE) if name in areas)]
]
groups = subjects(areas)

# %% tags=["remove-cell"]
# needs samples
found = []
for dataset, terms in areas.groupby(level="dataset", sort=False):
    clusters = groups[terms.index]
    simple = [name for name in (RANDOM, *ASKED) if name in terms]
    best = terms[simple].mean().idxmin()
    for name in terms.columns.difference([RANDOM]):
        for rival in dict.fromkeys((RANDOM, best)):
            if rival != name and terms[name].notna().any():
                gain = terms[rival] - terms[name]
                ends = mean_interval(
                    gain, seed=seed, clusters=clusters, bounds=(-1, 1)
                )
                found.append((dataset, name, rival, *ends[:3]))
columns = ["dataset", "method", "rival", "gain", "low", "high"]
found = pd.DataFrame(found, columns=columns)

# %% tags=["remove-cell"]
# needs samples
over = found[found["rival"] == RANDOM].set_index(["dataset", "method"])
last = found.groupby(["dataset", "method"]).last()  # the best simple rule
judged = PROBE if PROBE in areas else next(iter(areas.columns[1:]))
mine = last.xs(judged, level="method")
notebook.glue(judged=judged, sets=len(mine))
notebook.glue(
    better=int((over.xs(judged, level="method")["low"] > 0).sum()),
    worse=int((over.xs(judged, level="method")["high"] < 0).sum()),
    beats=int((mine["low"] > 0).sum()),
    loses=int((mine["high"] < 0).sum()),
)

# %% [markdown] needs="samples"
# Answering by *{glue:text}`judged`* risks significantly less than answering at random on {glue:text}`better` of
# {glue:text}`sets` data sets and more on {glue:text}`worse`; compared with the best simple rule of each data set (at random,
# or by asking the model), less on {glue:text}`beats` and more on {glue:text}`loses`.

# %% tags=["remove-cell"]
# needs samples
spread = {name: (e["correct"] / e["total"]).var() for name, e in own.items()}
shown = max(own, key=lambda name: (PROBE in own[name], spread[name]))
each = own[shown]
c, n = each["correct"], each["total"]
(known, seen), rest = split_counts(c, n, rng=np.random.default_rng(seed))
curves = {
    name: risk_coverage(each[name], c, n) for name in each.columns[2:]
} | {"Oracle CC": risk_coverage(known / seen, *rest)}
nearest = nearest_probe(results.loc[[shown]].dropna(axis=1, how="all"), shown)
palette = style.palette(curves)
if nearest:
    palette[PROBE] = style.method_color(nearest, shown)
drawn = pd.concat(curves, names=["method", None]).reset_index("method")

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Risk of the most confident questions against the share of questions answered, on the data set whose questions differ most, of those with a probe where there is one. The oracle orders questions by one half of their samples and is scored on the other.", "name": "fig-risk-coverage"}, "image": {"alt": "Line plot of risk, the expected share of wrong answers, against coverage. All curves meet at full coverage; the oracle is lowest, and the better a confidence orders questions, the lower its curve."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
axes = sns.lineplot(
    drawn, x="coverage", y="risk", hue="method", palette=palette
)
axes.set(xlim=(0, 1), ylim=(0, 1), title=load_dataset(shown).title)
axes.set(
    xlabel="coverage: questions answered", ylabel="risk: fresh answers wrong"
)
axes.axhline(1 - (c / n).mean(), color=style.MUTED, linestyle=":")
sns.move_legend(axes, "lower right", title="")

# %% [markdown]
# ## The area under the curve
#
# The risk of a question is the chance $1-\mu$ that a *fresh* answer to it is wrong: the capability target, and not
# whether one given answer is. Questions are answered from the most confident on; the mean risk over all coverages is
# the area under the risk-coverage curve. A confidence that says nothing has the mean risk.

# %%
correct, total = [9, 1, 8, 2], [10] * 4
risk_coverage([0.9, 0.2, 0.5, 0.5], correct, total)

# %% [markdown]
# `risk_area_terms` gives each question a term, so that the mean of the terms is the area and their spread holds
# what the question does to the order. An interval, and a comparison of two methods, is then that of a mean.

# %%
terms = risk_area_terms([0.9, 0.2, 0.5, 0.5], correct, total)
terms.mean().round(3), (1 - np.divide(correct, total)).mean()

# %% tags=["hide-input"] label="selective-areas" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
spent = costs(runs, model, k_eval=k_eval).mean().round()
rows = []
for dataset, terms in areas.groupby(level="dataset", sort=False):
    rng, there = np.random.default_rng(seed), terms.dropna(axis=1, how="all")
    table = compare(there, rng=rng, clusters=groups[terms.index])
    table = table.rename_axis("method").reset_index()
    rows.append(table.assign(dataset=dataset, questions=len(terms)))
scores = pd.concat(rows).rename(columns={"estimate": "brier"})
scores["cost"] = scores["method"].map(spent).fillna(0).map("{:.0f}".format)
tables.show_scores(
    scores,
    "Area under the risk-coverage curve (lower is better); cost: tokens a "
    "question.",
    evidence=evidence,
)

# %% [markdown] needs="samples"
# Response consistency asks for ten more answers to each question; a probe reads the hidden states of the prompt and
# costs no token. The table below counts comparisons with answering at random and, where asking the model beats that, with
# the better way to ask.

# %% tags=["hide-input"] label="selective-verdicts" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
rival = found["rival"].where(found["rival"] == RANDOM, "asking the model")
sign = (found["low"] > 0) * 1 - (found["high"] < 0)
words = {
    1: "significantly better",
    0: "inconclusive",
    -1: "significantly worse",
}
counted = pd.crosstab([found["method"], rival], sign.map(words))
counted = counted.reindex(columns=words.values(), fill_value=0).rename_axis(
    columns=None
)
tables.show(
    counted,
    "Data sets by the paired comparison of areas (95 % intervals).",
    evidence=evidence,
)

# %% [markdown]
# ## Promising a risk
#
# Where is the threshold, so that at most a promised share of all questions gets a wrong answer? Read off the curve of
# some questions, it is too low for new ones. *Conformal risk control* {cite:p}`angelopoulos2024conformal` adds one
# question that is wrong with certainty: the lowest threshold $t$ with
#
# $$
# \frac{1}{n+1}\Bigl(1 + \sum_{i:\,s_i > t} (1 - \hat\mu_i)\Bigr) \le \alpha
# $$
#
# keeps the promise $\alpha$ for any confidence and any number of questions, on average over the questions that set it.


# %%
def promise_risk(s, c, n, risk):
    """Return the lowest threshold that keeps the promise."""
    if risk * (len(s) + 1) < 1:
        return np.inf  # none may be answered
    wrong = pd.Series(1 - np.divide(c, n)).groupby(-np.asarray(s)).sum()
    # Were all down to each confidence answered, from the highest on.
    broken = 1 + wrong.cumsum() > risk * (len(s) + 1) + 1e-9
    return -float(broken.idxmax()) if broken.any() else -np.inf


promise_risk([0.9, 0.8, 0.5, 0.2], [10, 9, 5, 0], [10] * 4, risk=0.3)


# %% tags=["hide-input"]
def keep_promise(s, mu, rng, n=50, k=20):
    """Set a threshold on n new questions; return answers and wrong ones."""
    first = rng.permutation(len(s))
    seen, new = first[:n], first[n:]
    correct = rng.binomial(k, mu[seen])
    threshold = promise_risk(s[seen], correct, [k] * n, risk)
    answered = s[new] > threshold
    return answered.mean(), (answered * (1 - mu[new])).mean()


# %% [markdown]
# A simulation, with thresholds set on 50 questions: a good, a poor and a useless confidence all keep the promise. What they
# differ in is how much they answer.

# %% tags=["hide-input"]
rng = np.random.default_rng(seed)
mu, noise = rng.beta(0.5, 0.5, 2000), rng.normal(size=2000)
blur = {"good": 0.1, "poor": 0.5, "useless": 50}
said = pd.DataFrame({name: mu + sd * noise for name, sd in blur.items()})
said = said.rank(pct=True)
kept = {
    name: np.mean(
        [keep_promise(s.to_numpy(), mu, rng) for _ in range(500)], axis=0
    )
    for name, s in said.items()
}

# %% tags=["hide-input"] label="selective-simulated" paper=["section-5.3"] evidence=["simulated"]
simulated = pd.DataFrame(kept, index=["answered", "answered wrongly"]).T
tables.show(
    simulated.rename_axis("confidence"),
    f"Shares of all questions, for a promise of {risk:.0%}.",
    evidence="simulated",
)

# %% [markdown] needs="samples"
# On the recorded samples, thresholds are set on a random half of the questions and used on the other half, over and over.


# %% tags=["hide-input"]
def halves(each, name, rng, times=100):
    """Promise the risk on one half of the questions, and look at the other."""
    s, c, n = (
        each[name].to_numpy(),
        each["correct"].to_numpy(),
        each["total"].to_numpy(),
    )
    shares = []
    for _ in range(times):
        seen = rng.permutation(len(s)) < len(s) // 2
        threshold = promise_risk(s[seen], c[seen], n[seen], risk)
        answered = s[~seen] > threshold
        shares.append((answered.mean(), (answered * (1 - c / n)[~seen]).mean()))
    return np.mean(shares, axis=0)


# %% tags=["hide-input"] label="selective-promise" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
rng = np.random.default_rng(seed)
kept = {}
for name, each in own.items():
    each = each.assign(**{RANDOM: rng.random(len(each))})
    for method in each.columns[2:]:
        kept[load_dataset(name).title, method] = halves(each, method, rng)
kept = pd.DataFrame(kept, index=["answered", "wrong"]).T
wide = kept["answered"].unstack(0)[[load_dataset(name).title for name in own]]
tables.show(
    wide.reindex(list(areas)).rename_axis("confidence"),
    f"Share of questions answered under a promise of {risk:.0%} wrong answers.",
    digits=2,
    evidence=evidence,
)

# %% tags=["remove-cell"]
# needs samples
notebook.glue(promised=100 * risk, highest=100 * kept["wrong"].max())

# %% [markdown] needs="samples"
# The mean share of wrong answers is at most {glue:text}`highest:.1f` % of questions, with {glue:text}`promised:.0f` %
# promised, to within what drawing a hundred halves leaves open. The promise holds on average over the questions that set the
# threshold, and for questions like them; a confidence decides only how many answers it leaves.
#
# ## Summary
#
# - For abstaining only the order of the questions counts, and the area under the risk-coverage curve measures it.
# - Compare areas question by question, and with answering at random, which is hard to beat where a model is hardly ever
#   right.
# - Conformal risk control keeps a promise with any confidence; a good one keeps it and still answers.
#
# ## Exercises
#
# **1 (easy).** Square a confidence. What happens to the curve, and why? *Hint:* only the order counts.

# %% tags=["hide-cell", "solution"]
s = np.array([0.9, 0.2, 0.5, 0.5])
assert risk_coverage(s**2, correct, total).equals(
    risk_coverage(s, correct, total)
)

# %% [markdown]
# **2 (medium).** With ten questions, what is the least risk that can be promised? *Hint:* the added question is wrong.

# %% tags=["hide-cell", "solution"]
ten = [0.5] * 10, [1] * 10, [1] * 10
promise_risk(*ten, 1 / 11 - 0.001), promise_risk(*ten, 1 / 11 + 0.001)

# %% [markdown]
# **3 (hard).** Promise the risk *among answered* questions by reading it off the curve of 50 questions. How often is it
# broken on new ones? *Hint:* the curve of some questions is lowest where they were lucky.

# %% tags=["hide-cell", "solution"]
rng, broken = np.random.default_rng(seed), []
for _ in range(300):
    seen = rng.permutation(2000) < 50
    s, drawn = said["poor"].to_numpy(), rng.binomial(20, mu)
    curve = risk_coverage(s[seen], drawn[seen], [20] * seen.sum())
    safe = curve.loc[curve["risk"] <= 0.3, "coverage"]
    if len(safe):
        answered = ~seen & (s >= np.quantile(s[seen], 1 - safe.max()))
        broken.append((1 - mu[answered]).mean() > 0.3)
np.mean(broken)
