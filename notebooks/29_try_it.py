# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Try it: four experiments in the browser
#
# Four small experiments on recorded answers teach what an {term}`expected accuracy` is, how well people and
# methods guess it, what a score measures, and what a confidence is good for. Nothing needs to be installed.

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has the built-in sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 2026  # of the ten questions to guess

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
from capcal_lib.applications import allocate, fit_concentration, success_rate
from capcal_lib.book import notebook, style, tables
from capcal_lib.book.widgets import widget
from capcal_lib.book.workshop import spread
from capcal_lib.grading.verdicts import read_verdicts
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.metrics import binomial_interval, capability_brier
from capcal_lib.probes import predict, train, training_data
from capcal_lib.questions import at_hand, load_questions
from capcal_lib.results import describe_runs, load_results, methods, score
from capcal_lib.runs.store import find_run

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval)
results = load_results(runs, model, k_eval=k_eval).query("total > 1")
results = results.join(predict(runs, model))
mu = results["correct"] / results["total"]
notebook.about(model, data)

# %% tags=["remove-cell"]
# needs samples
evidence = data["evidence"].iloc[0]
variance = mu.groupby(level="dataset").var()
public = [name for name in data.index if load_dataset(name).builtin]
sets = public or list(data.index)
easiest = max(sets, key=variance.get)  # whose questions differ most
texts = {
    (name, each.id): each.text
    for name in sets
    if at_hand(name, load_dataset(name).evaluation_split)
    for each in load_questions(name)
}


# %% tags=["remove-cell"]
def spoken(key):
    """Return a question's text, or its id where the text is not at hand."""
    return texts.get(key, key[1]).splitlines()[0]


# %% tags=["remove-cell"]
# needs samples
own = mu.loc[easiest].sort_values(kind="stable")
places = np.linspace(0, len(own) - 1, 12).round().astype(int)
verdicts = read_verdicts(data.loc[easiest, "run"])
verdicts = verdicts[verdicts["verdict"] != "not_scored"]
verdicts = verdicts.sort_values("sample_index").groupby("question_id")
several = np.unique(own.iloc[places]).size


# %% tags=["remove-cell"]
def recorded(name):
    """Return the first answers to a question, with the intervals so far."""
    seen = verdicts.get_group(name).head(k_eval)
    right = seen["verdict"] == "correct"
    so_far = binomial_interval(right.cumsum(), np.arange(1, len(seen) + 1))
    answers = seen["extracted"].fillna("").str.slice(0, 40)
    return {
        "text": spoken((easiest, name)),
        "verdicts": "".join(right.astype(int).astype(str)),
        "answers": answers.replace("", "no answer").tolist(),
        "intervals": so_far.round(3).tolist(),
    }


# %% tags=["remove-cell"]
# needs samples
asked = own.index[places]
after = pd.DataFrame(
    {
        f"correct of {n}": {
            spoken((easiest, name)): recorded(name)["verdicts"][:n].count("1")
            for name in asked
        }
        for n in (1, 10, k_eval)
    }
)
coin_data = {
    "questions": [recorded(name) for name in asked],
    "colors": {"response": "#bc3e0b", "capability": "#46a281"},
}

# %% [markdown] needs="samples"
# ## Ask again and again
#
# Pick a question and ask it once, ten times, a hundred times. The answers are {glue:text}`title`'s, recorded one by one.
# The *response target* jumps between 0 and 1 with every answer; the *capability target* $\hat\mu$ settles, and its 95 %
# Jeffreys interval shrinks.

# %% tags=["hide-input"] label="try-coin" paper=["section-3.2", "section-4.1"] evidence=["measured"] reads=["verdicts"]
# needs samples
coin = widget(
    "coin",
    coin_data,
    "Ask a question again and again: recorded answers arrive, and the "
    "interval of the expected accuracy shrinks.",
    fallback=tables.show(
        after.rename_axis("question"),
        "Correct answers among the first.",
        evidence=evidence,
    ),
    evidence=evidence,
)
notebook.glue(title=load_model(model).title, coin=coin)
coin

# %% [markdown] needs="samples"
# The interval of any count, without a browser:

# %%
# needs samples
binomial_interval([37], [100])

# %% [markdown] needs="samples"
# ## Guess the confidence
#
# How often out of {glue:text}`k` does {glue:text}`title` answer each of these ten questions correctly? Guess, then compare
# yourself with its own confidences. The score is the capability Brier score without the noise of the samples: zero is
# perfect.

# %% tags=["remove-cell"]
# needs samples
probes = {name: load_dataset(name).probe for name in data.index}
probed = [name for name, probe in probes.items() if probe in results]
plain = [name for name in methods(results) if not name.startswith("Probe")]
confidences = results[["correct", "total", *plain]]
if probed:
    own_probe = [results.loc[[name], probes[name]] for name in probed]
    confidences = confidences.assign(Probe=pd.concat(own_probe))
colors = {name: style.method_color(name) for name in plain}
colors |= {"Probe": style.SHIFT_COLORS[style.IN_DISTRIBUTION]}
colors |= {"Uniform random": style.INK, "constant": style.MUTED}

# %% tags=["remove-cell"]
# needs samples
full = confidences.loc[sets].dropna(axis="columns", how="all").dropna()
ten = spread(full, seed=seed)
said = ten.drop(columns=["correct", "total"])
guess_data = {
    "questions": [
        {"id": key[1], "text": spoken(key), "correct": int(c), "total": int(n)}
        for key, c, n in ten[["correct", "total"]].itertuples()
    ],
    "methods": said.round(3).to_dict("list"),
    "colors": colors,
}
notebook.glue(k=int(ten["total"].max()))

# %% tags=["hide-input"] label="try-guess" paper=["section-4.1", "section-4.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
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

# %% [markdown] needs="samples"
# The saved CSV is what `capcal score` reads. In Python, for somebody who says one half of every question:

# %%
# needs samples
capability_brier(
    0.5 + 0 * ten["correct"], ten["correct"], ten["total"], corrected=True
)

# %% [markdown] needs="samples"
# ## Explore a score
#
# Choose a data set and a method. The *plug-in* score takes $\hat\mu$ for $\mu$ and is too high by the noise of the samples;
# the *corrected* score is not. Shifting or stretching the log-odds is what recalibration does: it moves all questions
# alike, so it mends confidences that are too high or too low, and not those that order the questions wrongly.


# %% tags=["remove-cell"]
def columns(name):
    """Return the counts and confidences of a data set, ready for JSON."""
    here = confidences.loc[name].dropna(axis="columns", how="all")
    found = here.drop(columns=["correct", "total"]).round(3).astype(object)
    return {
        "title": load_dataset(name).title,
        "correct": here["correct"].tolist(),
        "total": here["total"].tolist(),
        "methods": found.where(found.notna(), None).to_dict("list"),
    }


# %% tags=["hide-input"] label="try-explorer" paper=["section-4.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
brier = score(confidences)["brier"].unstack("dataset")[list(data.index)]
widget(
    "explorer",
    {"sets": [columns(name) for name in data.index], "colors": colors},
    "Choose a data set, a method and a score; then shift and stretch the "
    "confidences.",
    fallback=tables.show(
        brier.set_axis(data["title"], axis="columns"),
        "Corrected capability Brier scores (lower is better).",
        evidence=evidence,
    ),
    evidence=evidence,
)

# %% [markdown] needs="samples"
# ## Spend a budget
#
# A budget of $B$ samples a question is divided by confidences, and each next sample goes to the question that gains most
# from it. Compare the share of questions solved with spending evenly, and the predicted pass@$k$ with the one of the
# recorded samples.

# %% tags=["remove-cell"]
# needs samples
able = [name for name in probed if name in sets]
name = max(able or sets, key=variance.get)
method, nu = (plain[-1], None)
if able:
    run = find_run(runs, model, name, load_dataset(name).training_split)
    (seen, _), unaided = training_data(run), train(run).out_of_fold
    method = "Probe"
    nu = fit_concentration(unaided, seen["correct"], seen["total"])
here = confidences.loc[name].dropna(subset=method)
c, n, s = (here[column] for column in ("correct", "total", method))
plans = {b: allocate(s, b * len(s), concentration=nu) for b in (1, 2, 4, 8)}

# %% tags=["remove-cell"]
# needs samples
budget_data = {
    "confidence": s.round(4).tolist(),
    "correct": c.tolist(),
    "total": n.tolist(),
    "concentration": None if nu is None or np.isinf(nu) else round(nu, 3),
    "color": colors[method],
    "even": style.INK,
}
solved = pd.DataFrame(
    {
        "by confidence": {
            b: success_rate(np.minimum(plan, n), c, n)
            for b, plan in plans.items()
        },
        "evenly": {b: success_rate([b] * len(c), c, n) for b in plans},
    }
).rename_axis("B")
notebook.glue(spent_on=load_dataset(name).title, by=method)

# %% [markdown] needs="samples"
# The questions are those of {glue:text}`spent_on`, the confidence is *{glue:text}`by`*; a probe's is read as the mean of a
# posterior, so that a question that keeps failing is given up sooner.

# %% tags=["hide-input"] label="try-budget" paper=["section-5.1", "section-5.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
widget(
    "budget",
    budget_data,
    "Move the budget and the number of tries.",
    fallback=tables.show(
        solved,
        "Share of questions solved (higher is better).",
        evidence=evidence,
    ),
    evidence=evidence,
)

# %% [markdown] needs="samples"
# The division of 12 samples over four questions, in Python:

# %%
# needs samples
allocate([0.9, 0.5, 0.1, 0.0], 12, concentration=2)

# %% [markdown]
# ## Summary
#
# - An expected accuracy settles with more samples; whether one answer is correct does not.
# - A score is only as good as its baselines: look at the constant and at the uniform random number first.
# - Recalibration moves all questions alike, and cannot put them in another order.
#
# ## Exercises
#
# **1 (easy).** How many samples make the Jeffreys interval of a question at $\hat\mu = 1/2$ narrower than 0.1? *Hint:* its
# width shrinks as one over the square root of the number.

# %% tags=["hide-cell", "solution"]
counts = np.arange(10, 1000, 10)
ends = binomial_interval(counts // 2, counts)
int(counts[(np.diff(ends)[:, 0] < 0.1).argmax()])

# %% [markdown]
# **2 (medium).** What capability Brier score has somebody who guesses every question's $\mu$ with a random error of
# standard deviation 0.2? *Hint:* the score is a mean of squared distances.

# %% tags=["hide-cell", "solution"]
draws = np.random.default_rng(0)
known = draws.uniform(0.3, 0.7, 10_000)
noisy = (known + draws.normal(0, 0.2, len(known))).clip(0, 1)
round(float(np.mean((noisy - known) ** 2)), 3)  # its square, 0.04
