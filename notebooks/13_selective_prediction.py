# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Answering only where the confidence is high

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
dataset: str = ""  # one with samples; empty: where the gain is largest
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with the probes of its recipe
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of all that is drawn here
risk: float = 0.1  # the share of wrong answers that is promised

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import plots
from capcal_lib.applications import risk_area_terms, risk_coverage, split_counts
from capcal_lib.book import notebook, tables
from capcal_lib.confidence import TITLES
from capcal_lib.manifests import load_dataset
from capcal_lib.metrics import compare, holm
from capcal_lib.probes import nearest_probe, probe_of
from capcal_lib.results import (
    confidence_columns,
    costs,
    gains_by_dataset,
    judged_by,
    keep_nearest_probe,
    load_results,
    mean_over_probes,
    methods,
    subjects,
)

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
paper = protocol == "paper"
options = {"k_eval": k_eval, "verdicts": verdicts}
options["recipe"] = "paper" if paper else "tuned"
results = load_results(runs, model, held_out=not paper, **options)
results = results.query("total > 1")
solved = results[results.groupby(level="dataset")["correct"].transform("any")]
present = [solved[name].any() for name in confidence_columns(solved)]
none = {"confidences": "No confidence of a question that is ever solved."}
evidence = notebook.evidence_of(data)
if results.empty:
    none["samples"] = "A risk takes two scored samples of a question."
notebook.about(data, {} if any(present) else none)

# %% [markdown] needs="samples"
# A model that may abstain answers fewer questions and is wrong less often. The paper names selective prediction in section 5.3
# and does not try it. Barkan et al. (2025) let models decide themselves where failure is costly, and find their decisions
# rational, given confidences that are too high.
#
# Questions are answered from the most confident on. The *risk* of a question is the chance $1-\mu$ that a fresh answer to
# it is wrong; the mean risk over all coverages is the area under the risk-coverage curve, and a confidence that knows
# nothing, such as a constant, has the mean risk.


# %%
# needs samples
RANDOM, PROBE, VOTES = "At random", "Probe", "Response consistency"


def risk_areas(subset):
    """Return the terms of each confidence's area, a row a question."""
    areas = {RANDOM: 1 - subset["correct"] / subset["total"]}
    for name in confidence_columns(subset):
        scored = judged_by(subset, name)
        terms = risk_area_terms(*scored.to_numpy().T)
        areas[name] = pd.Series(terms, scored.index)
    return mean_over_probes(pd.DataFrame(areas, subset.index))


# %%
# needs samples
by_set = {}
for name, subset in results.groupby(level="dataset", sort=False):
    subset = keep_nearest_probe(subset, name)
    asked = {m: 0.5 for m in TITLES.values() if m in subset}
    by_set[name] = subset.fillna(asked)
areas = {name: risk_areas(subset) for name, subset in by_set.items()}

# %%
# needs confidences
solved = [name for name in areas if by_set[name]["correct"].any()]
terms = pd.concat(areas[name] for name in solved)
judged = holm(gains_by_dataset(terms, RANDOM))

# %% tags=["hide-input"]
# needs confidences
counts = judged["verdict"].groupby("method").value_counts().unstack()
counts = counts.reindex(columns=["better", "inconclusive", "worse"])
counts = counts.fillna(0).astype(int)
order = [
    name
    for name in (PROBE, VOTES, *reversed(TITLES.values()))
    if name in counts.index
]
counts = counts.loc[order]
best, last = counts.iloc[0], counts.iloc[-1]
notebook.glue(
    first=order[0].lower(),
    first_better=int(best["better"]),
    first_sets=int(best.sum()),
    last=order[-1],
    last_better=int(last["better"]),
    last_sets=int(last.sum()),
)

# %% tags=["finding"]
# needs confidences
notebook.finding("""
Answering first where a {first} is confident risks significantly less than answering at random on {first_better} of {first_sets}
data sets; going by {last} does so on {last_better} of {last_sets}.
""")

# %%
# needs confidences
best_known = PROBE if PROBE in judged.index.levels[1] else judged.index[0][1]
gained = judged.xs(best_known, level="method")["estimate"]
shown = notebook.choose_dataset(dataset, data, gained.idxmax())
subset = by_set[shown]
c, n = subset["correct"], subset["total"]
curves = {
    name: risk_coverage(*judged_by(subset, name).to_numpy().T)
    for name in confidence_columns(subset)
}
(first, drawn), rest = split_counts(c, n, rng=np.random.default_rng(seed))
curves["Honest oracle"] = risk_coverage(first / drawn, *rest)
lines = pd.concat(curves, names=["method", None]).rename(probe_of, level=0)
lines = lines.groupby(["method", "coverage"], sort=False)["risk"].mean()
lines = lines.reset_index()

# %% tags=["hide-input"]
# needs confidences
palette = plots.palette(set(lines["method"]) - {PROBE, "Honest oracle"})
known = methods(results.loc[[shown]].dropna(axis=1, how="all"))
nearest = nearest_probe(known, shown)
palette |= {"Honest oracle": plots.MUTED}
palette |= {PROBE: plots.method_color(nearest, shown)} if nearest else {}

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Whoever answers some of the questions answers those of which the confidence is highest; at full coverage all curves end. Shown is the data set on which the probe gains most, or the one asked for; dotted, answering at random. The honest oracle orders questions by one half of their samples and is scored on the other.", "name": "fig-risk-coverage"}, "image": {"alt": "Line plot of risk, the expected share of wrong answers, against coverage. A curve a method and one for the honest oracle, all of which meet at full coverage, and a dotted line for answering at random."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs confidences
axes = sns.lineplot(
    lines,
    x="coverage",
    y="risk",
    hue="method",
    style="method",
    palette=palette,
)
axes.axhline(1 - (c / n).mean(), color=plots.MUTED, linestyle=":")
axes.set(xlim=(0, 1), ylim=(0, 1), title=load_dataset(shown).title)
axes.set(xlabel="coverage: questions answered", ylabel="risk: answers wrong")
sns.move_legend(axes, "lower right", title="")

# %% tags=["hide-input"]
# needs confidences
surest = best_known if best_known in curves else next(iter(curves))
half = np.interp(0.5, curves[surest]["coverage"], curves[surest]["risk"])
notebook.glue(
    everything=1 - float((c / n).mean()),
    surest_half=float(half),
    surest=surest.lower() if surest == PROBE else surest,
    shown=load_dataset(shown).title,
)

# %%
# needs confidences
notebook.say("""
On {shown} a model that answers every question is wrong in {everything:.0%} of its answers; one that answers only the half of
which the {surest} is surest, in {surest_half:.0%}.
""")

# %% [markdown] needs="confidences"
# A question of which the model has stated no confidence counts as one half. Votes cost ten more answers to each question; a probe reads the hidden states of the prompt and costs no token. Data sets
# without a solved question are left out.

# %% tags=["hide-input"] label="selective-verdicts" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs confidences
tables.show(
    counts.rename_axis("confidence").rename_axis(columns=None),
    "Data sets by the paired comparison with answering at random, all judged together by Holm.",
    evidence=evidence,
)

# %% [markdown]
# ## The area under the curve
#
# Only the order of the questions counts:

# %%
correct, total = [9, 1, 8, 2], [10] * 4
risk_coverage([0.9, 0.2, 0.5, 0.5], correct, total)

# %% [markdown]
# `risk_area_terms` gives each question a term, so that the mean of the terms is the area and their spread holds
# what the question does to the order. An interval, and a comparison of two methods, is then that of a mean.

# %%
terms = risk_area_terms([0.9, 0.2, 0.5, 0.5], correct, total)
terms.mean().round(3), (1 - np.divide(correct, total)).mean()

# %% label="selective-areas" tags=["hide-input"] paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
spent = costs(runs, model, k_eval=k_eval).mean().round()
rows = []
for name, terms in areas.items():
    present = terms.dropna(axis="columns", how="all").dropna()
    if len(present):
        table = compare(present, clusters=subjects(present))
        table = table.rename_axis("method").reset_index()
        rows.append(table.assign(dataset=name, questions=len(present)))
scores = pd.concat(rows).rename(columns={"estimate": "brier"})
scores["cost"] = scores["method"].map(spent).fillna(0).map("{:.0f}".format)
scores["varies"] = scores["dataset"].isin(judged.index.unique("dataset"))
tables.show_scores(
    scores,
    "Area under the risk-coverage curve (lower is better); cost: tokens a "
    "question.",
    evidence=evidence,
)

# %% [markdown]
# ## Promising a risk
#
# Where is the threshold, so that at most a promised share of all questions gets a wrong answer? Read off the curve of
# some questions, it is too low for new ones. *Conformal risk control* (Angelopoulos et al., 2024) adds one
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


# %%
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

# %%
rng = np.random.default_rng(seed)
mu, noise = rng.beta(0.5, 0.5, 2000), rng.normal(size=2000)
blur = {"good": 0.1, "poor": 0.5, "useless": 50}
confidences = pd.DataFrame({name: mu + sd * noise for name, sd in blur.items()})
confidences = confidences.rank(pct=True)
outcomes = {
    name: np.mean(
        [keep_promise(s.to_numpy(), mu, rng) for _ in range(500)], axis=0
    )
    for name, s in confidences.items()
}

# %% tags=["hide-input"] label="selective-simulated" paper=["section-5.3"] evidence=["simulated"]
simulated = pd.DataFrame(outcomes, index=["answered", "answered wrongly"]).T
tables.show(
    simulated.rename_axis("confidence"),
    f"Shares of all questions, for a promise of {100 * risk:.0f} %.",
    evidence="simulated",
)

# %% [markdown] needs="samples"
# On the recorded samples, thresholds are set on a random half of the questions and used on the other half, over and over.


# %%
# needs samples
def halves(s, c, n, rng, times=100):
    """Promise the risk on one half of the questions, and look at the other."""
    shares = []
    for _ in range(times):
        seen = rng.permutation(len(s)) < len(s) // 2
        threshold = promise_risk(s[seen], c[seen], n[seen], risk)
        answered = s[~seen] > threshold
        shares.append((answered.mean(), (answered * (1 - c / n)[~seen]).mean()))
    return np.mean(shares, axis=0)


outcomes, rng = {}, np.random.default_rng(seed)
for name, subset in by_set.items():
    subset = subset.assign(**{RANDOM: rng.random(len(subset))})
    for method in confidence_columns(subset):
        columns = judged_by(subset, method).to_numpy().T
        outcomes[load_dataset(name).title, method] = halves(*columns, rng)
outcomes = pd.DataFrame(outcomes, index=["answered", "wrong"]).T
outcomes = outcomes.rename(probe_of, level=1)
outcomes = outcomes.groupby(level=[0, 1], sort=False).mean()

# %% label="selective-promise" tags=["hide-input"] paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
wide = outcomes["answered"].unstack(0)[
    [load_dataset(name).title for name in by_set]
]
rows = [
    name
    for name in (RANDOM, *TITLES.values(), VOTES, PROBE)
    if name in wide.index
]
tables.show(
    wide.loc[rows].rename_axis("confidence"),
    f"Share of questions answered under a promise of {100 * risk:.0f} % "
    "wrong answers.",
    digits=2,
    evidence=evidence,
)

# %% tags=["hide-input"]
# needs samples
notebook.glue(promised=100 * risk, highest=100 * outcomes["wrong"].max())

# %%
# needs samples
notebook.say("""
The mean share of wrong answers is at most {highest:.1f} % of questions, with {promised:.0f} % promised, to within what
drawing a hundred halves leaves open. The promise holds on average over the questions that set the threshold, and for
questions like them; a confidence decides only how many answers it leaves.
""")

# %% [markdown]
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
# The curve of a confidence, and of its square
s = np.array([0.9, 0.2, 0.5, 0.5])
assert risk_coverage(s**2, correct, total).equals(
    risk_coverage(s, correct, total)
)

# %% [markdown]
# **2 (medium).** With ten questions, what is the least risk that can be promised? *Hint:* the added question is wrong.

# %% tags=["hide-cell", "solution"]
# Ten right questions, and two risks close to each other
ten = [0.5] * 10, [1] * 10, [1] * 10
promise_risk(*ten, 1 / 11 - 0.001), promise_risk(*ten, 1 / 11 + 0.001)

# %% [markdown]
# **3 (hard).** Promise the risk *among answered* questions by reading it off the curve of 50 questions. How often is it
# broken on new ones? *Hint:* the curve of some questions is lowest where they were lucky.

# %% tags=["hide-cell", "solution"]
# Curves of fifty questions, tried on the others
rng, broken = np.random.default_rng(seed), []
for _ in range(300):
    seen = rng.permutation(2000) < 50
    s, drawn = confidences["poor"].to_numpy(), rng.binomial(20, mu)
    curve = risk_coverage(s[seen], drawn[seen], [20] * seen.sum())
    safe = curve.loc[curve["risk"] <= 0.3, "coverage"]
    if len(safe):
        answered = ~seen & (s >= np.quantile(s[seen], 1 - safe.max()))
        broken.append((1 - mu[answered]).mean() > 0.3)
np.mean(broken)
