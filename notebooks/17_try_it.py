# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Try it: four experiments in the browser

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has the built-in sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 2026  # of the ten questions to guess

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
from capcal_lib import manifests, plots
from capcal_lib.applications import risk_coverage
from capcal_lib.book import notebook, style, tables
from capcal_lib.book.widgets import widget
from capcal_lib.book.workshop import evenly, to_guess
from capcal_lib.grading.verdicts import read_verdicts
from capcal_lib.manifests import RECORDED_RUNS, load_dataset, load_model
from capcal_lib.metrics import binomial_interval, capability_brier
from capcal_lib.probes import nearest_probe, nearest_probes
from capcal_lib.questions import at_hand, load_questions
from capcal_lib.results import judged_by, load_results, methods, score

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
results = load_results(runs, model, k_eval=k_eval).query("total > 1")
if "votes total" in results:  # samples that vote judge nobody on this page
    voted = results["votes total"] > 1
    others = results.loc[voted, ["votes correct", "votes total"]].astype(int)
    results.loc[voted, ["correct", "total"]] = others.to_numpy()
mu = results["correct"] / results["total"]
reason = (
    "Every question has one scored sample, and these experiments take two. "
)
reason += "Draw more with: capcal sample --k 2"
varied = data["most"] > 1
lacking = {} if varied.any() else {"samples": reason}
if not methods(results.dropna(axis="columns", how="all")):
    lacking["confidences"] = "No confidences: capcal confidence asks for them."
notebook.about(data, lacking)

# %% tags=["remove-cell"]
# needs samples
data = data[varied]
evidence = notebook.evidence_of(data)
variance = mu.groupby(level="dataset").var()
public = [name for name in data.index if load_dataset(name).builtin]
sets = public or list(data.index)
most_varied = max(sets, key=variance.get)
texts = {
    (name, question.id): question.text
    for name in sets
    if at_hand(name, load_dataset(name).evaluation_split)
    for question in load_questions(name)
}


# %% tags=["remove-cell"]
def spoken(key):
    """Return a question's text, or its id where the text is not at hand."""
    return texts.get(key, key[1]).splitlines()[0]


# %% tags=["remove-cell"]
# needs samples
shown = evenly(results.loc[[most_varied]], 24)
verdicts = read_verdicts(data.loc[most_varied, "run"])
verdicts = verdicts[verdicts["verdict"] != "not_scored"]
verdicts = verdicts.sort_values("sample_index").groupby("question_id")


# %% tags=["remove-cell"]
def recorded(name):
    """Return the recorded answers to a question, and which are correct."""
    seen = verdicts.get_group(name).head(k_eval)
    right = seen["verdict"] == "correct"
    answers = seen["extracted"].fillna("").str.slice(0, 40)
    return {
        "text": spoken((most_varied, name)),
        "verdicts": "".join(right.astype(int).astype(str)),
        "answers": answers.replace("", "no answer").tolist(),
    }


# %% tags=["remove-cell"]
# needs samples
title = load_model(model).title
questions = [recorded(name) for _, name in shown.index]
coin_data = {"model": title, "questions": questions}
unsure = (shown["correct"] / shown["total"] - 0.5).abs().to_numpy()
open_question = questions[unsure.argmin()]
asked = open_question["text"]
notebook.glue(asked=asked)
right = {
    n: {
        question["text"]: question["verdicts"][:n].count("1")
        for question in questions
    }
    for n in (1, 10, k_eval)
}
after = pd.DataFrame(right).add_prefix("correct of ")

# %% tags=["finding"]
# needs samples
notebook.finding(
    "Whether one answer is correct is luck; the share of correct ones settles. “{text}”: {few} of the first ten, "
    "{all} of {samples}.",
    text=asked,
    few=right[10][asked],
    all=right[k_eval][asked],
    samples=len(open_question["verdicts"]),
)

# %% [markdown] needs="samples"
# ## Ask again and again
#
# Above: pick a question and ask it once, ten times, a hundred times. The answers are a model's, recorded one by one, and come in an
# order that is drawn anew at each start. The *response target* jumps between 0 and 1 with every answer; the *capability
# target* $\hat\mu$ settles, and its 95 % Jeffreys interval shrinks.

# %% tags=["picture", "hide-input"] label="try-coin" paper=["section-3.2", "section-4.1"] evidence=["measured"] reads=["verdicts"]
# needs samples
coin = widget(
    "coin",
    coin_data,
    "Ask the same question again and again: each answer is correct or not, "
    "and the share of correct answers settles. Recorded answers, in an order "
    "drawn anew at each start.",
    fallback=tables.show(
        after.rename_axis("question"),
        "Correct answers among the first.",
        evidence=evidence,
    ),
    evidence=evidence,
)
notebook.glue(coin=coin)
coin

# %% [markdown] needs="samples"
# The interval of any count in Python:

# %%
# needs samples
binomial_interval([37], [100])

# %% [markdown] needs="confidences"
# ## Guess the confidence
#
# How often does the same model answer each of these ten questions correctly? Guess, then compare
# yourself with its own confidences. The score is the capability Brier score without the noise of the samples: zero is
# perfect.

# %% tags=["remove-cell"]
# needs confidences
plain = [name for name in methods(results) if not name.startswith("Probe")]
nearest = {name: nearest_probe(results.loc[[name]], name) for name in sets}
probes = [
    results.loc[[name], probe] for name, probe in nearest.items() if probe
]
guessed = results.loc[sets, ["correct", "total", *plain]]
if probes:
    guessed = guessed.assign(Probe=pd.concat(probes))
colors = {name: plots.method_color(name) for name in plain}
colors |= {"Probe": plots.SHIFT_COLORS[manifests.IN_DISTRIBUTION]}
colors |= {"Uniform random": plots.INK, "constant": plots.MUTED}
colors |= {"You": style.ACCENT}

# %% tags=["remove-cell"]
# needs confidences
full = guessed.dropna(axis="columns", how="all").dropna()
fresh = full.drop(shown.index, errors="ignore")
if (
    public and RECORDED_RUNS.is_dir()
):  # no question of another page, and none of the class's
    fresh = to_guess(fresh)
ten = evenly(fresh if len(fresh) > 9 else full, 10)
ten = ten.sample(frac=1, random_state=seed)
confidences = ten.drop(columns=["correct", "total"])
guess_data = {
    "questions": [
        {"id": key[1], "text": spoken(key), "correct": int(c), "total": int(n)}
        for key, c, n in ten[["correct", "total"]].itertuples()
    ],
    "methods": confidences.round(3).to_dict("list"),
    "colors": colors,
}

# %% tags=["hide-input"] label="try-guess" paper=["section-4.1", "section-4.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs confidences
listed = ten.set_axis(pd.Index(map(spoken, ten.index), name="question"))
widget(
    "guess",
    guess_data,
    "Guess how often each question is answered correctly, and compare "
    "yourself with the model's own confidences.",
    fallback=tables.show(
        listed,
        "Ten questions: what happened, and what the methods say.",
        digits=2,
        evidence=evidence,
    ),
    evidence=evidence,
)

# %% [markdown] needs="confidences"
# The saved CSV is what `capcal score` reads. In Python, for the methods, and for somebody who says one half of every
# question:

# %%
# needs confidences
counts = ten["correct"], ten["total"]
guesses = confidences.assign(half=0.5)
guesses.apply(capability_brier, args=counts, corrected=True).round(3)

# %% [markdown] needs="confidences"
# ## Explore a score
#
# Choose a data set and a method. The *plug-in* score takes $\hat\mu$ for $\mu$ and is too high by the noise of the samples;
# the *corrected* score is not. Shifting or stretching the log-odds is what recalibration does: it moves all questions
# alike, so it mends confidences that are too high or too low, and not those that order the questions wrongly.


# %% tags=["remove-cell"]
def columns(name):
    """Return the counts and confidences of a data set, ready for JSON."""
    subset = results.loc[name].dropna(axis="columns", how="all")
    names = [question for question in plain if question in subset]
    names += nearest_probes(subset, name)
    values = subset[names].round(3).astype(object)
    return {
        "title": load_dataset(name).title,
        "colors": plots.palette(values.columns, name),
        "correct": subset["correct"].tolist(),
        "total": subset["total"].tolist(),
        "methods": values.where(values.notna(), None).to_dict("list"),
    }


# %%
# needs confidences
brier = score(results)["brier"].unstack("dataset")[list(data.index)]

# %% tags=["hide-input"] label="try-explorer" paper=["section-4.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs confidences
explored = {"sets": [columns(name) for name in data.index], "colors": colors}
widget(
    "explorer",
    explored,
    "Choose a data set, a method and a score; then shift and stretch the "
    "confidences.",
    fallback=tables.show(
        brier.set_axis(data["title"], axis="columns"),
        "Corrected capability Brier scores (lower is better).",
        evidence=evidence,
    ),
    evidence=evidence,
)

# %% [markdown] needs="confidences"
# ## Answer only some questions
#
# A confidence helps where it says which questions to leave alone. Let the model answer only the share of the questions on
# which a method is most confident, and compare the accuracy there with that of answering all. Questions of equal confidence
# count as their mean; the interval is that of a mean over the answered questions.

# %%
# needs confidences
fair = [name for name in data.index if results.loc[[name], "correct"].any()]
first = max(fair or sets, key=variance.get)
subset = results.loc[first].dropna(axis="columns", how="all")
accuracies = {}
for method in methods(subset):
    curve = risk_coverage(*judged_by(subset, method).to_numpy().T)
    risk = np.interp([0.25, 0.5, 1], curve["coverage"], curve["risk"])
    accuracies[method] = dict(
        zip(["25 %", "50 %", "100 %"], 1 - risk, strict=True)
    )
accuracies = pd.DataFrame(accuracies).T.rename_axis("method")
first = load_dataset(first).title

# %% tags=["hide-input"] label="try-abstain" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs confidences
widget(
    "abstain",
    explored | {"first": first},
    "Choose a data set and a method, and move the share of questions that are "
    "answered.",
    fallback=tables.show(
        accuracies,
        f"Accuracy on {first} where only a share of the questions is answered, "
        "the most confident first (higher is better).",
        evidence=evidence,
    ),
    evidence=evidence,
)

# %% [markdown] needs="confidences"
# In Python, for four questions with ten samples each: the *risk* is the share of wrong answers among those given.

# %%
# needs confidences
risk_coverage([0.9, 0.8, 0.4, 0.1], [9, 5, 4, 0], [10, 10, 10, 10])

# %% [markdown]
# ## Summary
#
# - An expected accuracy settles with more samples; whether one answer is correct does not.
# - A score is only as good as its baselines: look at the constant and at the uniform random number first.
# - Recalibration moves all questions alike, and cannot put them in another order.
# - To answer only some questions well, a confidence needs the right order, and nothing else.
#
# ## Exercises
#
# **1 (easy).** How many samples make the Jeffreys interval of a question at $\hat\mu = 1/2$ narrower than 0.1? *Hint:* its
# width shrinks as one over the square root of the number.

# %% tags=["hide-cell", "solution"]
# The width of the interval, by number of samples
counts = np.arange(10, 1000, 10)
ends = binomial_interval(counts // 2, counts)
int(counts[(np.diff(ends)[:, 0] < 0.1).argmax()])

# %% [markdown]
# **2 (medium).** What capability Brier score has somebody who guesses every question's $\mu$ with a random error of
# standard deviation 0.2? *Hint:* the score is a mean of squared distances.

# %% tags=["hide-cell", "solution"]
# Guesses with a random error, and their score
draws = np.random.default_rng(0)
known = draws.uniform(0.3, 0.7, 10_000)
noisy = (known + draws.normal(0, 0.2, len(known))).clip(0, 1)
round(float(np.mean((noisy - known) ** 2)), 3)  # its square, 0.04
