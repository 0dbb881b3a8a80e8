# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Try it: three experiments in the browser
#
# What does a confidence have to know to be worth anything? Here you ask, guess and score in the browser. [The previous
# page](11_live_sampling.ipynb) needed a model.

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has the built-in sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 2026  # of the ten questions to guess

# %%
from capcal_lib.book.page import EndOfPage, finding, open_page, show_runs
from capcal_lib.book.tables import show
from capcal_lib.results.results import results_of

page = open_page(model, store, k_eval=k_eval)
show_runs(page)

# %% [markdown]
# ## Ask again and again
#
# The first experiment takes 24 questions of the data set whose questions differ most in difficulty, a built-in one if there is one.

# %%
from capcal_lib.book.experiments import evenly
from capcal_lib.manifests import load_dataset
from capcal_lib.results.targets import judge_alike

results = judge_alike(results_of(page.counting)).query("total > 1")
mu = results["correct"] / results["total"]
varied = page.runs[page.runs["most"] > 1]
public = [name for name in varied.index if load_dataset(name).builtin]
sets = public or list(varied.index)

# %%
variance = mu.groupby(level="dataset").var()
shown = evenly(results.loc[[variance[sets].idxmax()]], 24)

# %%
import pandas as pd
from capcal_lib.book.experiments import recorded_answers

run = page.runs.loc[shown.index[0][0], "run"]
questions = pd.DataFrame(recorded_answers(run, shown, k_eval))
verdicts = questions.set_index("text")["verdicts"].rename_axis("question")
after = pd.DataFrame()
for n in (1, 10, verdicts.str.len().max()):
    after[f"correct of {n}"] = verdicts.str[:n].str.count("1")

# %% tags=["finding"]
from capcal_lib.text import in_words
from scipy.stats import hypergeom

unsure = (shown["correct"] / shown["total"] - 0.5).abs().to_numpy().argmin()
asked = questions["text"][unsure]
samples, most = len(verdicts.iloc[unsure]), int(after.iloc[unsure, -1])
few = min(10, samples)
ends = map(int, hypergeom(samples, most, few).interval(0.95))
text = "Whether one answer is correct is luck, but the share of correct answers settles. Correct answers to “{asked}”: {most} of {samples}; {few} of them, drawn at random, may show {ends}."
of = {"few": in_words(few), "ends": " to ".join(map(in_words, ends))}
finding(text, asked=asked, most=most, samples=samples, **of)

# %% [markdown]
# Pick a question and ask it. The *response target* jumps between 0 and 1 with every answer. The *capability target* $\hat\mu$
# settles, and its 95 % Jeffreys interval shrinks.

# %%
from capcal_lib.manifests import load_model

title = load_model(model).title
data = {"model": title, "questions": questions.to_dict("records")}
caption = "Correct answers among the first samples of each question."
table = show(after, caption, evidence=page.evidence)

# %% tags=["picture"] label="try-coin"
from capcal_lib.book.experiments import widget

about = "Ask the same question again and again: each answer is correct or not, and the share of correct answers settles. Recorded answers, in an order drawn anew at each start."
coin = widget("coin", data, about, fallback=table, evidence=page.evidence)
coin

# %% tags=["remove-cell"]
from capcal_lib.book.page import glue

glue(asked=asked, coin=coin)

# %% [markdown]
# The interval of any count in Python:

# %%
from capcal_lib.metrics import binomial_interval

low, high = binomial_interval([37], [100])[0]
f"37 of 100: from {low:.2f} to {high:.2f}"

# %% [markdown]
# ## Guess the confidence
#
# How often does the model answer each of these ten questions correctly? Guess, and compare your *capability Brier score* with
# the scores of the model's own confidences. It is the mean squared distance from $\hat\mu$, and zero is perfect. *Verbalized
# confidence* is the probability that the model writes, *P(True)* the probability of "Yes" when it is asked whether it can
# answer, and *response consistency* the share of ten answers that agree.

# %%
from capcal_lib.probe_names import is_probe
from capcal_lib.results import methods

said = [name for name in methods(results) if not is_probe(name)]
known = results.loc[sets, ["correct", "total", *said]].dropna()
if known.empty:
    lack = "No confidences are recorded: capcal confidence asks for them."
    raise EndOfPage(lack)

# %%
fresh = known.drop(shown.index, errors="ignore")
ten = evenly(fresh if len(fresh) > 9 else known, 10)
ten = ten.sample(frac=1, random_state=seed)

# %%
from capcal_lib.book.experiments import first_lines

listed = ten.set_axis(pd.Index(first_lines(ten.index), name="question"))
caption = "Ten questions: what happened, and what the methods say."
table = show(listed, caption, digits=2, evidence=page.evidence)

# %% label="try-guess"
from capcal_lib.book.experiments import guess_data

about = "Guess how often each question is answered correctly, and compare yourself with the model's own confidences."
data = guess_data(ten)
widget("guess", data, about, fallback=table, evidence=page.evidence)

# %% [markdown]
# *Save as CSV* writes your guesses to a file that `capcal score` reads. Here are the scores of the methods, and of always
# saying one half:

# %%
from capcal_lib.metrics import capability_brier

counts = ten["correct"], ten["total"]
guesses = ten.drop(columns=["correct", "total"]).assign(half=0.5)
scores = guesses.apply(capability_brier, args=counts, corrected=True)
scores.round(3).to_frame("corrected capability Brier")

# %% [markdown]
# ## Explore a score
#
# The *plug-in* score is too high by the noise of the samples, and the *corrected* score is not. Recalibration shifts and
# stretches the log-odds of a confidence, $\log(s/(1-s))$. It repairs confidences that are too high or too low, but not a wrong
# order. A score covers only the questions for which the method has a confidence.

# %%
from capcal_lib.book.experiments import explorer_data
from capcal_lib.results import score

brier = score(results)["brier"].unstack("dataset")[list(varied.index)]
opening = variance[varied.index].sort_values(ascending=False)
explored = explorer_data(results, opening.index)

# %%
scores = brier.set_axis(varied["title"], axis="columns")
caption = "Corrected capability Brier scores (lower is better)."
table = show(scores, caption, evidence=page.evidence)

# %% label="try-explorer"
about = "Choose a data set, a method and a score; then shift and stretch the confidences."
widget("explorer", explored, about, fallback=table, evidence=page.evidence)

# %% [markdown]
# ## Summary
#
# - The share of correct answers to a question settles with more samples. Whether one answer is correct does not.
# - Compare every score with the best constant.
#
# The book's quiz comes next. After it, [the page on corrections](13_protocol.ipynb) shows how these scores differ from the
# paper's.
#
# ## Exercises
#
# **1 (easy).** How many samples make the Jeffreys interval of a question with $\hat\mu = 1/2$ narrower than 0.1? *Hint:* its
# width is proportional to one over the square root of the number.

# %% tags=["hide-cell", "solution"]
# The width of the interval, by number of samples
import numpy as np

counts = np.arange(10, 1000)
ends = binomial_interval(counts // 2, counts)
int(counts[(np.diff(ends)[:, 0] < 0.1).argmax()])

# %% [markdown]
# **2 (medium).** Every $\mu$ lies between .3 and .7, and someone guesses it with a random error of standard deviation 0.2. What
# is their capability Brier score? *Hint:* a guess has to lie between 0 and 1.

# %% tags=["hide-cell", "solution"]
# Guesses with a random error, and their score: less than 0.2 squared, 0.04, since a guess beyond 0 or 1 is moved back
draws = np.random.default_rng(0)
known = draws.uniform(0.3, 0.7, 10_000)
noisy = (known + draws.normal(0, 0.2, len(known))).clip(0, 1)
round(float(np.mean((noisy - known) ** 2)), 3)
