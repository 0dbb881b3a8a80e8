# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What each correction changes

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has most data sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
k_c: int = 10  # samples that vote
seed: int = 0  # of what is drawn

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import plots
from capcal_lib.book import notebook, tables
from capcal_lib.confidence import mean_tokens
from capcal_lib.confidence.consistency import (
    consistency,
    read_answers,
    split_votes,
)
from capcal_lib.errors import InputError
from capcal_lib.grading.agreement import judge_agreement
from capcal_lib.grading.judgements import judges
from capcal_lib.manifests import (
    IN_DISTRIBUTION,
    OUT_OF_DOMAIN,
    load_dataset,
    load_model,
)
from capcal_lib.probes import (
    TunedProbe,
    draw_training,
    runs_for_probes,
    training_data,
)
from capcal_lib.results import BEST_CONSTANT, brier_terms, load_results, score
from capcal_lib.results.constant import kind_of_method

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
evidence = notebook.evidence_of(data)


# %% tags=["hide-input"]
unseen = {
    dataset.name: run
    for dataset, run in runs_for_probes(runs, model, "evaluation")
}
taught = {
    dataset.name: run
    for dataset, run in runs_for_probes(runs, model, "training")
    if dataset.name in unseen and len(training_data(run)[0]) >= 100
}  # fewer questions teach a probe nothing
none = "No training run of this model with 100 questions or more is recorded."
notebook.about(data, {} if taught else {"trained": none})

# %% [markdown] needs="samples"
# This book scores confidences differently from the paper in five ways. Here each is switched back alone, on the same
# recorded samples. *Plug-in* leaves the noise of $\hat\mu$ in the score. *Missing as 0.5* gives a question without a confidence one half,
# where the method was asked at all:


# %%
# needs samples
def mean_terms(terms):
    """Return the mean term of each data set and method."""
    terms = terms.drop(columns=BEST_CONSTANT)  # no confidence in a question
    by_set = terms.groupby(level="dataset", sort=False).mean()
    return by_set.rename_axis(columns="method").stack().dropna()


ours = load_results(runs, model, k_eval=k_eval, k_c=k_c)
terms = brier_terms(ours)
base = mean_terms(terms)

# %%
# needs samples
plug_in = brier_terms(ours, protocol="paper").where(terms.notna())
answered = ours.groupby(level="dataset").transform("count") > 0
filled = brier_terms(ours.fillna(0.5).where(answered))
switched = {
    "plug-in scores": mean_terms(plug_in),
    "missing as 0.5": mean_terms(filled),
}

# %% [markdown] needs="samples"
# *Votes in the pool* scores the same votes, of the same hundred splits of a question's samples, by all samples in place of those
# that did not vote, so that they share their luck. *Paper's probes* are trained by its recipe; the score is the mean of its five
# splits:

# %%
# needs samples
pool = {}
for name, run in data["run"].items():
    answers = read_answers(run, k=k_eval)
    pool[name] = split_votes(answers, k_c, held_out=False)["term"]
pool = pd.concat(pool, names=["dataset"])
pooled = brier_terms(ours.assign(**{"votes term": pool}))
switched["votes in the pool"] = mean_terms(pooled)

# %%
# needs samples
taken = {"k_eval": k_eval, "k_c": k_c, "recipe": "paper"}
probed = load_results(runs, model, **taken).filter(regex="correct|total|Probe")
switched["paper's probes"] = mean_terms(brier_terms(probed))


# %% tags=["hide-input"]
def by_judge(dataset, judge):
    """Score by a judge's verdicts; None where it has not judged them all."""
    chosen = {"datasets": [dataset], "verdicts": f"judge:{judge}"}
    try:
        scored = load_results(runs, model, k_eval=k_eval, k_c=k_c, **chosen)
    except InputError:
        return None
    return mean_terms(brier_terms(scored))


# %% tags=["hide-input"]
# needs samples
pairs = [
    (name, judge) for name in data.index for judge in judges(data["run"][name])
]
judged = {pair: by_judge(*pair) for pair in pairs}
judged = {pair: terms for pair, terms in judged.items() if terms is not None}
agreed = []
for name, judge in judged:
    both = judge_agreement(data["run"][name], judge)
    agreed.append(
        f"{100 * both.rate.estimate:.0f} % of the samples of "
        f"{data['title'][name]} "
        f"(κ = {both.kappa:.2f}, judged by {load_model(judge).title})"
    )
if judged:
    every = pd.concat(judged.values())
    switched["a judge's verdicts"] = every.groupby(level=[0, 1]).mean()

# %% [markdown] needs="samples"
# A shift above zero makes the score worse. *All together* is the paper's protocol, but for the judge; there a question's first
# samples alone vote, which is one split of the hundred. A probe on its own data set, any other probe, and any other confidence are
# told apart, as their shifts are unlike:

# %%
# needs samples
authors = load_results(runs, model, **taken, held_out=False)
switched["all together"] = mean_terms(brier_terms(authors, protocol="paper"))
shifts = pd.DataFrame(switched).sub(base, axis="index")
long = shifts.rename_axis(columns="switch").stack().rename("shift")
long = long[long.abs() > 1e-12].reset_index()


# %% tags=["hide-input"]
# needs samples
OWN_PROBE, PROBE = "a probe on its own data set", "any other probe"
GROUPS = [OWN_PROBE, PROBE, "any other confidence"]


def group_of(method, dataset):
    """Say whether a confidence is a probe, and of its own data set."""
    kind = kind_of_method(method, dataset)
    if kind == "probe of the data set":
        return OWN_PROBE
    return PROBE if kind.startswith("probe") else GROUPS[-1]


long["confidence"] = [
    group_of(*pair) for pair in long[["method", "dataset"]].to_numpy()
]

# %% tags=["hide-input"]
# needs samples
sizes = long.assign(size=long["shift"].abs())
sizes = sizes.groupby(["switch", "confidence"])["size"].mean()
alone = sizes.drop(["all together", "a judge's verdicts"], errors="ignore")
most = alone.idxmax()[0]
whole = long[long["switch"] == "all together"]
farthest = whole.loc[whole["shift"].abs().idxmax()]


def spell_sizes(switch):
    """Spell the mean size of a switch's shifts, for each group it moves."""
    moved = sizes[switch].reindex(GROUPS).dropna()
    return ", ".join(f"{group} by {size:.3f}" for group, size in moved.items())


notebook.glue(
    most=most,
    most_sizes=spell_sizes(most),
    together=spell_sizes("all together"),
    farthest=abs(farthest["shift"]),
    farthest_at=farthest["method"],
    farthest_on=load_dataset(farthest["dataset"]).title,
    judge_said=f"Rules and judge agree on {', '.join(agreed)}; the lower Cohen's "
    "κ, the more of that shift is the judge's own error."
    if agreed
    else "No judge has done so here.",
)

# %% tags=["finding"]
# needs samples
notebook.finding("""
Of our corrections, each taken back alone, *{most}* moves scores most; on average {most_sizes}.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "How far every score shifts (a mark a data set and method) when one correction is taken back, and when all are; right of zero it becomes worse. What is the same for all methods hardly shows; what touches one method can move it across all others.", "name": "fig-protocol"}, "image": {"alt": "Strip plot with a row for each switch and a dot for each data set and method, by the shift of its score, with a line at zero."}} paper=["section-4.1", "table-5", "table-6"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
colors = {
    OWN_PROBE: plots.SHIFT_COLORS[IN_DISTRIBUTION],
    PROBE: plots.SHIFT_COLORS[OUT_OF_DOMAIN],
    GROUPS[-1]: plots.INK,
}
axes = sns.stripplot(
    long,
    x="shift",
    y="switch",
    order=list(switched),
    hue="confidence",
    palette={group: colors[group] for group in long["confidence"].unique()},
    dodge=True,
    jitter=False,
    alpha=0.6,
)
axes.axvline(0, color=plots.MUTED, zorder=0)
axes.set(xlabel="shift of the capability Brier score", ylabel="")
sns.move_legend(
    axes, "upper center", bbox_to_anchor=(0.4, -0.14), ncols=3, title=""
)

# %% label="protocol-shifts" paper=["section-4.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"] tags=["hide-input"]
# needs samples
by_group = long.groupby(["switch", "confidence"])["shift"]
table = by_group.agg(cells="size", mean="mean", lowest="min", highest="max")
table["mean size"] = sizes
order = pd.MultiIndex.from_product([list(switched), GROUPS])
table = table.reindex(order).dropna().astype({"cells": int})
tables.show(
    table.rename_axis(["switched back", "confidence"]),
    "Shift of the score by each switch, over data sets and methods: its mean "
    "with its sign, and the mean of its size.",
    evidence=evidence,
)

# %%
# needs samples
notebook.say("""
The noise that *plug-in* leaves in is the same for every confidence, so it changes no order among them; the other switches can.
All switches together shift scores on average so: {together}; the farthest is {farthest_at} on {farthest_on}, by
{farthest:.3f}. A probe is meant for data like its own, so read that row first. A judge's verdicts can be switched on where it has judged every answer to a data set. {judge_said}

Pages that score confidences take the paper's protocol at once with `-p protocol paper`, and a judge's verdicts with `-p
verdicts judge:MODEL`; in Python, `score(results, protocol="paper")`.
""")

# %% [markdown] needs="trained"
# ## The same row for fewer tokens
#
# `capcal reproduce --recipe lean` draws 20 samples of each evaluation question, which define $\hat\mu$ and vote, where the
# paper draws 100. It trains on one sample of each training question, where the paper draws ten; three more of at most 500
# questions tell the concentration $\nu$. Here both sizes are cut from the same recorded samples, on the data sets where
# questions differ most. Scores are corrected and probes tuned in both, so that nothing but the size differs.


# %%
# needs trained
OWN = "Probe of the data set"


def fit_probe(run, n, k, rng):
    """Train a probe on k samples of n questions, drawn from a run."""
    questions, features = training_data(run)
    drawn = draw_training(questions, n, k, rng=rng)
    rows = questions.index.get_indexer(drawn.index)
    return TunedProbe().fit(features[rows], drawn["correct"], drawn["total"])


# %%
# needs trained
def score_sizes(name, k_eval, n, k):
    """Score the confidences of a data set, its own probe too, by such sizes."""
    sizes = {"k_eval": k_eval, "k_c": k_c, "recipe": None}
    scored = load_results(runs, model, datasets=[name], **sizes)
    questions, states = training_data(unseen[name])
    ids = scored.index.get_level_values("question_id")
    for draw in range(3):  # the training draw is chance, too
        rng = np.random.default_rng([seed, draw])
        predicted = fit_probe(taught[name], n, k, rng).predict(states)
        predicted = pd.Series(predicted, questions.index).reindex(ids).array
        scored[f"{OWN} [{draw}]"] = predicted
    return score(scored).loc[name]


# %%
# needs trained
LEAN, PAPER = "lean", "the paper's"
spread = (ours["correct"] / ours["total"]).groupby(level="dataset").var()
scores, costs = {}, {}
for name in spread.reindex([*taught]).nlargest(4).index:
    total = training_data(taught[name])[0]["total"]
    most = min(10, total.max())
    whole = (total >= most).sum()
    scores[name, LEAN] = score_sizes(name, 20, len(total), 1)
    scores[name, PAPER] = score_sizes(name, 100, whole, most)
    drawn = {LEAN: len(total) + 3 * min(500, whole), PAPER: whole * most}
    tokens = mean_tokens(taught[name]), mean_tokens(unseen[name])
    for sizes, k in ((LEAN, 20), (PAPER, 100)):
        answers = len(ours.loc[name]) * k
        costs[name, sizes] = drawn[sizes] * tokens[0] + answers * tokens[1]

# %% tags=["hide-input"]
# needs trained
scores = pd.concat(scores, names=["dataset", "sizes", "method"])
names = scores.index.get_level_values("method")
scores = scores[~names.str.startswith(("Uniform", "Best", "Oracle"))].copy()
scores["width"] = scores["high"] - scores["low"]
costs = pd.Series(costs).unstack()[[LEAN, PAPER]] / 1_000
apart = scores[["brier", "width"]].unstack("sizes")
wider = apart["width", LEAN] / apart["width", PAPER]
probes = wider.index.get_level_values("method") == OWN
moved = apart["brier", LEAN] - apart["brier", PAPER]
moved = moved[probes].droplevel("method")
chance = scores["spread"].dropna().xs(LEAN, level="sizes")
notebook.glue(
    share=costs[LEAN].sum() / costs[PAPER].sum(),
    untrained=wider[~probes].median(),
    untrained_most=wider[~probes].max(),
    trained=wider[probes].median(),
    trained_most=wider[probes].max(),
    chance=chance.mean(),
    moved=moved.mean(),
    most_moved=moved[moved.abs().idxmax()],
    most_moved_on=data.loc[moved.abs().idxmax(), "title"],
)

# %%
# needs trained
notebook.say("""
The lean sizes take {share:.0%} of the tokens. Intervals of methods without training are {untrained:.2f} times as wide in the
median and {untrained_most:.2f} at most; those of the own probe {trained:.2f} and {trained_most:.2f}. A probe's score also
depends on which samples taught it: over three training draws it spreads by {chance:.3f} (standard deviation) on average,
which no interval over questions holds. From fewer labels its score moves by {moved:+.3f} on average, above zero being worse, and
most on {most_moved_on}, by {most_moved:+.3f}. The rows below are means of these draws.
""")

# %% tags=["hide-input"] label="protocol-lean" paper=["section-4.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs trained
cells = tables.intervals(scores, "brier", digits=3)
cells = cells.unstack("sizes")[[LEAN, PAPER]].reset_index()
cells["dataset"] = cells["dataset"].map(data["title"])
tables.show(
    cells.rename(columns={"dataset": "data set"}),
    "Corrected scores with 95 % intervals, by the sizes of either recipe.",
    evidence=evidence,
)

# %% tags=["hide-input"] label="protocol-lean-tokens" evidence=["measured"] reads=["samples"]
# needs trained
costs["share"] = costs[LEAN] / costs[PAPER]
tables.show(
    costs.rename(index=data["title"]).rename_axis("data set"),
    "Thousands of tokens that the samples of either size take.",
    digits=1,
    share="{:.0%}",
    evidence=evidence,
)


# %% [markdown]
# ## Where this differs from the authors' code
#
# By the authors' public code (commit 9088a5a) where the paper does not say. A score is lower where it is better; ↑ and ↓ say
# which way our choice moves the number beside the authors'. It is measured where the cell says *above*, *below* or names a
# page; elsewhere an arrow is what one expects, and a dash stands where we expect neither.
#
# | what | the authors' code | here | moves |
# |---|---|---|---|
# | Score | plug-in, 100 samples | corrected, with an interval; plug-in by `protocol=paper` | ↓ by the mean of $\hat\mu(1-\hat\mu)/99$, alike for all methods |
# | Missing confidence | 0.5 | left out and counted; 0.5 by `protocol=paper` | either way, above |
# | Response consistency | ten votes, which share samples with $\hat\mu$; equal strings vote together | the mean over a hundred splits, judged by the samples that did not vote; answers the grader calls equal vote together | either way, above |
# | Vote without an answer | one group more, which can win | agrees with nobody; 0.5 where no vote is an answer | either way, below |
# | Linear probe | gradient descent, grid of rates | *tuned*: its optimum, decay by cross-validation; theirs by `recipe=paper` | either way, above |
# | Judge's temperature | 1.0 | 0 | – |
# | Aliases that the judge sees | the first answer (TriviaQA) | up to 20 | accuracy ↑ on TriviaQA |
# | Judge's prompt | the rubric of SimpleQA, yes or no | our own words, three verdicts, four cases shown | – |
# | Judge is asked | once a sample | once a distinct answer | – |
# | Unreadable judgement | incorrect | not scored | accuracy ↑ |
# | No answer, not graded | incorrect | no answer is incorrect; not graded is not scored | accuracy ↑ |
# | Answer is searched | in the whole reply | after the reasoning, the last statement | – |
# | No answer is found | the last line (TriviaQA, SimpleQA) or the last capital letter (MMLU, GPQA) is taken for one | no answer, which is incorrect | accuracy ↓, at most by the share below |
# | Probability that is read | digits and dots in a box; after three attempts 0.5 | per cent, fractions and ranges too, and running text where there is no box; after three attempts missing | – (the models recorded here are asked for no box) |
# | Verbalized confidence | 5,000 tokens, then asked again | as long as an answer may be | fewer missing with gpt-oss |
# | P(True) | two spellings a word, reasoning cut at 5,000 tokens | six spellings, missing where no answer begins | – |
# | Prompt of a hidden state | thinking of Qwen left on | the prompt that is sampled | – |
# | Pooling | bfloat16 | float32 | – |
# | Labels of a training question | 100 (rebuttal) | 10, by the lean recipe 1 | score of the probe ↑ |
# | Training share of MATH | all of it, MATH valid chooses | four fifths in each of five splits | score of the probe ↑ |
# | Validation of a probe | evaluation questions (TriviaQA, GSM8K) | a fifth of the training questions | score of the probe ↑ |
# | Oracle CC | scored on its own samples | on the other half | ↑ in [pass@k](05_pass_at_k.ipynb) |
# | Success of a budget | ten draws that all questions share | its expectation, exact | ↓ by up to some points at one sample |
# | Answer prompt | theirs, which the paper does not print | in our words | – |
# | SimpleQA | Verified, 1,000 questions | the same as `simpleqa-verified`; the recorded runs use the whole set | – |
#
# The rows on answers that are not there, counted on the recorded samples. Votes are scored as the authors score them, on samples
# that they share with $\hat\mu$; *as a group* lets those without an answer vote together. The share of samples without an
# answer bounds what guessing one can add to the accuracy.

# %% tags=["hide-input"] label="protocol-no-answers" paper=["table-6"] evidence=["measured"] reads=["verdicts"]
# needs samples
absent = {}
for title, run in zip(data["title"], data["run"], strict=True):
    answers = read_answers(run, k=k_eval)
    wide = answers.pivot(index="question_id", columns="sample_index")
    mu = wide["correct"].mean(axis="columns").to_numpy()
    votes = wide["canonical"].iloc[:, :k_c]
    group = votes.fillna("no answer").to_numpy()
    alone = pd.Series(consistency(votes.to_numpy())).fillna(0.5)
    scores = [((s - mu) ** 2).mean() for s in (alone, consistency(group))]
    no_answer = answers["canonical"].isna().mean()
    absent[title] = [no_answer, *scores, scores[1] - scores[0]]
names = ["without an answer", "agree with nobody", "as a group", "shift"]
absent = pd.DataFrame(absent, names).T.rename_axis("data set")
tables.show(
    absent,
    f"Samples without an answer, and the score of {k_c} votes either way.",
    shift="{:+.4f}",
    evidence=evidence,
)

# %% [markdown]
# Runs of small models differ in more: quantised weights, prompts with examples, subsets of questions. Runs say all of it.

# %% [markdown]
# ## Summary
#
# - Corrections are switches: each can be taken back, and its effect is a number.
# - A correction that adds the same to every method changes no comparison; one that touches a method alone can.
# - A score of a method without training hardly needs a hundred samples of each question; a probe depends on its draw too.
#
# ## Exercises
#
# **1 (easy).** A question has $\hat\mu = 0.5$ from 100 samples. How much does *plug-in* add to the score of any
# confidence? *Hint:* $\hat\mu(1-\hat\mu)/(n-1)$.

# %% tags=["hide-cell", "solution"]
# The formula, at one half and a hundred samples
round(0.5 * 0.5 / 99, 5)

# %% [markdown]
# **2 (medium).** When does 0.5 for a missing confidence improve a score? *Hint:* compare $(0.5 - \mu)^2$ with the mean
# score of the other questions.

# %% tags=["hide-cell", "solution"]
# An imputed one half, against the mean score of the others
mu, others = 0.6, 0.05
print((0.5 - mu) ** 2 < others)  # where its error is below the mean error
