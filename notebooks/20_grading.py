# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The grader is an instrument

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has the built-in sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
from capcal_lib import plots
from capcal_lib.book import notebook, style, tables
from capcal_lib.grading import normalize
from capcal_lib.grading.agreement import judge_agreement
from capcal_lib.grading.judgements import judges
from capcal_lib.grading.labels import (
    corrected_accuracy,
    load_labels,
    measured_error,
)
from capcal_lib.grading.verdicts import read_verdicts, run_questions
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.metrics import binomial_interval, mean_interval
from capcal_lib.metrics.grader import corrected_mean, corrected_mu, grader_error
from capcal_lib.questions import at_hand
from capcal_lib.results import load_results, subjects
from capcal_lib.runs import KEY, read_samples
from matplotlib import pyplot as plt
from scipy.stats import beta

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
judged = {
    (name, judge): judge_agreement(run, judge)
    for name, run in data["run"].items()
    for judge in judges(run)
}
at_home = [
    name
    for name in data.index
    if at_hand(name, load_dataset(name).evaluation_split)
]
lacking = {}
if not judged:
    lacking["judge"] = "No model has judged these samples yet: capcal judge."
if not at_home:
    lacking["answers"] = "No other rule can be tried: the right answers of "
    lacking["answers"] += "these data sets are not here. Set CAPCAL_DATA_DIR."
notebook.about(data, lacking)


# %% [markdown] needs="answers"
# Three other rules that are easy to write. *Identical text* asks the extracted answer to equal an accepted one, letter by letter.
# *One contains the other* is what many evaluation scripts do after lower-casing. *Mentioned anywhere* looks for an accepted
# answer in the whole response and extracts nothing:


# %%
# needs answers
def identical(answer, extracted, _response):
    return extracted in (answer.gold, *answer.aliases)


def contained(answer, extracted, _response):
    given = normalize(extracted, answer.kind) if extracted else ""
    golds = (answer.gold, *answer.aliases)
    golds = [normalize(gold, answer.kind) for gold in golds]
    return any(g and given and (g in given or given in g) for g in golds)


def mentioned(answer, _extracted, response):
    return any(gold in response for gold in (answer.gold, *answer.aliases))


rules = {
    "identical text": identical,
    "one contains the other": contained,
    "mentioned anywhere": mentioned,
}


# %% [markdown] needs="answers"
# The same samples under each rule:


# %%
# needs answers
def regrade(run):
    """Return the share that each rule calls correct: a row a question."""
    rows = read_verdicts(run).query("sample_index < @k_eval")
    rows = rows.query("verdict != 'not_scored'")
    rows = rows.merge(read_samples(run)[[*KEY, "response"]], on=KEY)
    extracted = [None if pd.isna(text) else text for text in rows["extracted"]]
    cases = list(
        zip(rows["question_id"], extracted, rows["response"], strict=True)
    )
    questions = run_questions(run)
    right = {"this book's rules": rows["verdict"] == "correct"}
    for name, rule in rules.items():
        correct_by = {
            case: rule(questions[case[0]].answer, *case[1:])
            for case in set(cases)
        }
        right[name] = [correct_by[case] for case in cases]
    return pd.DataFrame(right).groupby(rows["question_id"]).mean()


# %%
# needs answers
shares = {name: regrade(data["run"][name]) for name in at_home}
mu = pd.concat(shares, names=["dataset", "question_id"])
moves = mu[list(rules)].sub(mu["this book's rules"], axis="index")

# %%
# needs answers
change = {
    (dataset, rule): mean_interval(
        subset[rule], clusters=subjects(subset), bounds=(-1, 1)
    )[:3]
    for dataset, subset in moves.groupby(level="dataset", sort=False)
    for rule in rules
}
change = pd.DataFrame(change, index=["move", "low", "high"]).T
change = change.rename_axis(["dataset", "rule"])

# %% tags=["hide-input"]
# needs answers
farthest = change["move"].abs().idxmax()
notebook.glue(
    largest_move=100 * abs(change.loc[farthest, "move"]),
    where=data["title"][farthest[0]],
    which=farthest[1],
)

# %% tags=["finding"]
# needs answers
notebook.finding("""
The same samples, graded by another rule, give another accuracy: on {where} the rule “{which}” moves it by
{largest_move:.0f} points.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "How far each rule moves the mean expected accuracy from that of this book's rules, with 95 % intervals of the paired difference over questions. A rule that is too strict misses right answers in another form; one that is too lenient finds 4 in 14, and A in any sentence that has one. No interval over questions shows this error: it is the same whichever questions are drawn.", "name": "fig-strictness"}, "image": {"alt": "Dot plot with a row for each data set and, in it, a mark with an interval for each of three rules, around a line at zero."}}
# needs answers
_, axes = plt.subplots(figsize=(style.WIDTH, 1 + 0.6 * len(shares)))
for place, rule in enumerate(rules):
    subset = change.xs(rule, level="rule")
    arms = subset["move"] - subset["low"], subset["high"] - subset["move"]
    axes.errorbar(
        subset["move"],
        np.arange(len(subset)) + 0.22 * (place - 1),
        xerr=np.clip(arms, 0, None),
        fmt="osD"[place],
        label=rule,
    )
axes.set_yticks(range(len(subset)), data["title"][subset.index])
axes.axvline(0, color=plots.INK, linewidth=1)
axes.invert_yaxis()
axes.set_xlabel("change of mean expected accuracy")
_ = axes.figure.legend(loc="outside lower center", ncols=3)

# %% tags=["hide-input"]
# needs answers
spelt = change.apply(
    "{0[move]:+z.3f} [{0[low]:+z.3f}, {0[high]:+z.3f}]".format, axis="columns"
).unstack()[list(rules)]
means = mu.groupby(level="dataset", sort=False)["this book's rules"].mean()
spelt.insert(0, "this book's rules", means)
counts = load_results(runs, model, k_eval=k_eval, recipe=None)
allowed = tables.intervals(corrected_accuracy(counts), "estimate", digits=3)
allowed = allowed.reindex(spelt.index).fillna("not measured")
spelt.insert(1, "their error allowed for", allowed)
tables.show(
    spelt.loc[at_home].rename(index=data["title"]).rename_axis("data set"),
    "Mean expected accuracy; with the measured error of the rules allowed "
    "for; and its move under other rules. In brackets: 95 % intervals.",
    evidence=notebook.evidence_of(data),
)

# %% [markdown]
# What this book counts as an answer stands, with cases, on the page “Grading”.
#
# ## How often the rules were wrong
#
# Answers of small models were labelled by reading them beside the accepted answers, a language model's reading and not a
# person's: all that the grader and an independent one disputed or a sample of it, and a sample of what they agreed on, weighted
# by the samples each stands for. Where it is open whether an answer is right, such as a misspelt name, the label is "cannot
# tell". The intervals are Jeffreys', by the number of independent labels that would tell as much; few right answers to a hard
# data set leave them wide.


# %%
def spell_rate(rate, labels):
    """Spell a rate with Jeffreys' interval of as many labels."""
    counts = labels * rate + 0.5, labels * (1 - rate) + 0.5
    low, high = beta.ppf([0.025, 0.975], *counts)
    return f"{rate:.1%} [{low:.1%}, {1 if rate == 1 else high:.1%}]"


rows = {}
for dataset, labelled in load_labels().groupby("dataset"):
    sensitivity, specificity, right, wrong = measured_error(labelled)
    rows[load_dataset(dataset).title] = {
        "labelled": int(labelled["correct"].notna().sum()),
        "cannot tell": int(labelled["correct"].isna().sum()),
        "right ones called correct": spell_rate(sensitivity, right),
        "wrong ones called not correct": spell_rate(specificity, wrong),
    }

# %% tags=["hide-input"]
tables.show(
    pd.DataFrame(rows).T.rename_axis("data set"),
    "How often the rules of this book are right, by labels, in brackets with "
    "95 % intervals.",
    evidence="measured",
)

# %% [markdown]
# Nearly all errors are misses: answers in words that no rule expects, an element named by its symbol, and on TriviaQA right
# answers that the list of accepted ones misspells or lacks. A miss lowers the accuracy, alike for every confidence that is
# compared there; the table of rules above and that of accuracies on the page of [the main table](04_main_table.ipynb) allow for
# it. A data set that is not in this table has “not measured” there: nobody has read both right and wrong answers to it.
#
# ## Four verdicts
#
# A sample is correct, incorrect, without an answer, or not scored. The middle two count as wrong, and are told apart:
# many samples without an answer ask for a better prompt or a better extraction. What is not scored counts as nothing.

# %%
# needs samples
verdicts = {
    name: read_verdicts(run).query("sample_index < @k_eval")["verdict"]
    for name, run in data["run"].items()
}
verdicts = pd.concat(verdicts, names=["data set"]).groupby(level="data set")
counted = verdicts.value_counts(normalize=True).unstack(fill_value=0.0)

# %% tags=["hide-input"]
# needs samples
names = ["correct", "incorrect", "no_answer", "not_scored"]
counted = counted.reindex(data.index, columns=names, fill_value=0.0)
spaced = {name: name.replace("_", " ") for name in names}
tables.show(
    counted.rename(index=data["title"], columns=spaced).rename_axis("data set"),
    "Verdicts by this book's rules, as shares of the samples.",
    evidence=notebook.evidence_of(data),
)

# %% [markdown]
# ## A model as the judge
#
# A judge reads meaning where rules read form, and makes errors of its own. Its verdicts are kept beside those of the rules and
# never mixed with them. Cohen's $\kappa$ subtracts the agreement that chance alone would give
# (Cohen, 1960); a judge that says the same of every answer has $\kappa = 0$, however often it agrees.

# %%
# needs judge
agreement = {pair: both.kappa for pair, both in judged.items()}
agreement = pd.Series(agreement, name="κ").rename_axis(["dataset", "judge"])
best = judged[agreement.idxmax()]
agreement.round(2)

# %% tags=["hide-input"]
# needs judge
notebook.glue(
    best_kappa=best.kappa,
    best_judge=load_model(agreement.idxmax()[1]).title,
    best_rate=best.rate.estimate,
)

# %%
# needs judge
notebook.say("""
The best judge here, {best_judge}, agrees with the rules on {best_rate:.0%} of the samples; its κ is {best_kappa:.2f},
where 0 is chance and 1 perfect. A model that can answer questions need not be able to judge answers: look at what a
judge says of answers that are letter by letter the right one before you use it.
""")

# %% [markdown]
# Two graders that agree can both be wrong. Only a person settles that, and a person settles few.
#
# ## From labels to an interval
#
# Suppose that a person labels some answers, and that the grader calls a share $\mathrm{Se}$ of the right ones correct
# and a share $\mathrm{Sp}$ of the wrong ones not correct. With its mean verdict these give the accuracy (Rogan and Gladen,
# 1978). All three are uncertain, and `corrected_mean` puts them into one interval, whose formula is derived on the page
# “Grading”.

# %% [markdown] needs="samples"
# What would it take here, each question taken by itself? Suppose a grader with $\mathrm{Se} = 0.98$ and
# $\mathrm{Sp} = 0.99$.


# %%
# needs samples
def supposed(labels, right=0.98, wrong=0.99):
    says = np.arange(labels) < round(labels * right)
    also = np.arange(labels) >= round(labels * wrong)
    return grader_error([*says, *also], [1] * labels + [0] * labels)


# %%
# needs samples
largest = data.index[:1]
options = {"datasets": largest, "k_eval": k_eval, "recipe": None}
results = load_results(runs, model, **options).query("total > 0")
c, n = results[["correct", "total"]].to_numpy().T
plain = mean_interval(c / n, bounds=(0, 1))
rows = {
    "none": [*plain[:3], np.median(np.ptp(binomial_interval(c, n), axis=1))]
}
for labels in (50, 100, 200, 500):
    error = supposed(labels)
    intervals = corrected_mu(c, n, error)
    width = np.median(intervals[:, 2] - intervals[:, 1])
    rows[f"{labels} + {labels}"] = [*corrected_mean(c, n, error)[:3], width]

# %% tags=["hide-input"]
# needs samples
columns = ["mean μ", "low", "high", "width, one question"]
by_labels = pd.DataFrame(rows, index=columns).T.rename_axis("labels")
marks = [notebook.evidence_of(data), *["simulated"] * (len(by_labels) - 1)]
widths = by_labels["width, one question"]
notebook.glue(wider=float(widths.iloc[1] / widths.iloc[0]))
tables.show(
    by_labels.assign(evidence=marks),
    f"{data['title'].iloc[0]}: intervals with so many labelled right and "
    "wrong answers (labels supposed).",
)

# %%
# needs samples
notebook.say(r"""
With the fewest labels of the table, the interval of a single question's $\mu$ is {wider:.2f} times as wide as the one
that assumes an error-free grader.
""")

# %% [markdown]
# ## Summary
#
# - The same samples give other accuracies under other rules. Say which rule, and keep the answers so that it can change.
# - No answer, not scored and incorrect are three things.
# - A judge is a measuring instrument too, and labels by a person turn the grader's error into a part of the interval.
#
# ## Exercises
#
# **1 (easy).** A grader with $\mathrm{Se} = 0.9$ and $\mathrm{Sp} = 0.95$ calls 40 % of the answers correct. What is the
# accuracy? *Hint:* the grader calls a share $0.9\mu + 0.05(1-\mu)$ correct.

# %% tags=["hide-cell", "solution"]
# The mean verdict, solved for the accuracy
round((0.4 + 0.95 - 1) / (0.9 + 0.95 - 1), 3)

# %% [markdown] needs="samples"
# **2 (hard).** At which sensitivity would the correction move the accuracy of the largest data set by as much as
# its interval is wide? *Hint:* with $\mathrm{Sp} = 1$ the mean verdict $m$ is $\mathrm{Se}\,\mu$.

# %% tags=["hide-cell", "solution"]
# The sensitivity at which the move equals the width
# needs samples
m, low, high = plain
float(np.round(m / (m + high - low), 3))
