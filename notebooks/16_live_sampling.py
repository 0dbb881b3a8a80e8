# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Sampling, live

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it runs anywhere
store: str = "runs/recorded"  # run store, from here or from the root
dataset: str = "mini-capitals"  # one of `capcal datasets`
n_questions: int = 16  # spread over the recorded difficulty
k_eval: int = 100  # samples that define mu_hat, recorded and live
seed: int = 2026  # of the live samples

# %% tags=["hide-input"]
import time

import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import plots
from capcal_lib.applications import deep_samples
from capcal_lib.book import notebook, tables
from capcal_lib.book.workshop import evenly
from capcal_lib.errors import InputError
from capcal_lib.grading import grade, grade_many
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.metrics import adjusted, binomial_interval
from capcal_lib.metrics.validation import check_int
from capcal_lib.questions import at_hand, load_questions
from capcal_lib.results import load_results
from capcal_lib.sampling import (
    Failure,
    answer_requests,
    open_engine,
    weights_folder,
)
from scipy.stats import fisher_exact

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
check_int("n_questions", n_questions, least=1)
sampler, manifest = load_model(model), load_dataset(dataset)
possible = sampler.engine == "simulated" or weights_folder(sampler) is not None
possible &= at_hand(manifest.name, manifest.evaluation_split)
possible &= manifest.name in data.index
reason = (
    f"{sampler.title} cannot be sampled on {manifest.title} here: that takes a "
    "recorded run, the questions and the weights on this machine."
)
data = data.loc[[manifest.name]] if possible else data
notebook.about(data, {} if possible else {"sampling": reason})

# %% [markdown] needs="sampling"
# ## Ask
#
# This is the framework of the paper's section 4.1: a model answers the same questions many times, each answer is graded, and
# the correct ones are counted. The questions run from the hardest to the easiest of the recorded run, among those with the most
# samples. Each is put to the model exactly as there, and every answer is drawn token by token at the model's temperature.

# %%
# needs sampling
asked_of = {"datasets": [manifest.name], "k_eval": k_eval, "recipe": None}
recorded = load_results(runs, model, **asked_of).loc[manifest.name]
recorded = recorded.query("total > 0")
recorded = recorded[recorded["total"] >= deep_samples(recorded["total"])]
questions = {
    question.id: question for question in load_questions(manifest.name)
}
spread = evenly(recorded, n_questions)  # from the hardest to the easiest
chosen = [questions[name] for name in spread.index]


# %%
# needs sampling
def sample(chosen, k, seed):
    """Draw and grade k fresh samples of each question: a row a sample."""
    indices = {question.id: tuple(range(k)) for question in chosen}
    requests = answer_requests(sampler, chosen, indices)
    drawn = []
    for group in engine.sample(requests, sampler.sampling, seed):
        if isinstance(group, Failure):
            raise InputError(f"a sample failed: {group.reason}; execute again")
        drawn += group
    samples = pd.DataFrame(drawn)
    answers = [questions[name].answer for name in samples["question_id"]]
    pairs = list(zip(samples["response"], answers, strict=True))
    return samples.join(pd.DataFrame(grade_many(pairs)))


# %%
# needs sampling
started = time.monotonic()
engine = open_engine(sampler)
samples = sample(chosen, k_eval, seed)
seconds = time.monotonic() - started  # of sampling and grading

# %% [markdown] needs="sampling"
# One question is shown below. It is a typical one: of those that were answered both rightly and wrongly when they were
# recorded, the one whose share of right answers has changed by a middling amount.


# %%
# needs sampling
def count(samples):
    """Count correct and scored samples of each question."""
    scored = samples[samples["verdict"] != "not_scored"]
    right = (scored["verdict"] == "correct").groupby(scored["question_id"])
    return right.agg(["sum", "size"]).set_axis(["live correct", "live"], axis=1)


# %%
# needs sampling
both = recorded[["correct", "total"]].join(count(samples), how="inner")
unsure = both.query("0 < correct < total")
if unsure.empty:
    unsure = both
before = unsure["correct"] / unsure["total"]
now = unsure["live correct"] / unsure["live"]
change = (now - before).abs().sort_values(kind="stable")
typical = change.index[len(change) // 2]

# %%
# needs sampling
question = questions[typical]
responses = samples[samples["question_id"] == question.id]
scored = responses[responses["verdict"] != "not_scored"]
correct = (scored["verdict"] == "correct").sum()
mu_hat = correct / len(scored)

# %% tags=["hide-input"]
# needs sampling
notebook.glue(seconds=seconds)

# %% tags=["finding"]
# needs sampling
notebook.finding(
    "Asked the same question {asked} times, {title} gives {distinct} different answers, and the right one {right:.0f} % of the "
    "time: “{text}”",
    asked=len(responses),
    title=sampler.title,
    distinct=int(responses["extracted"].nunique()),
    right=100 * float(mu_hat),
    text=question.text.splitlines()[0],
)

# %%
# needs sampling
(request,) = answer_requests(sampler, [question], {question.id: (0, 1, 2)})
print(request.messages[-1]["content"])

# %% [markdown] needs="sampling"
# ## Grade
#
# Never trust a number before you have read what is behind it. The first response to that question, graded, and then
# the most frequent ones with the verdict on each: `correct`, `incorrect`, or `no_answer` where nothing can be
# extracted.

# %%
# needs sampling
grade(responses["response"].iloc[0], question.answer)

# %% tags=["hide-input"] label="live-answers" paper=["section-4.1"] evidence=["measured"] reads=["samples"]
# needs sampling
columns = ["response", "extracted", "verdict", "reason"]
short = responses.assign(response=responses["response"].str.slice(0, 160))
frequent = short.value_counts(columns, dropna=False).rename("samples")
tables.show(
    frequent.head(5),
    f"The most frequent responses to: {question.text}",
    evidence=notebook.evidence_of(data),
)

# %% [markdown] needs="sampling"
# ## Count
#
# The expected accuracy $\mu$ of a question is the chance that one response is correct; its estimate $\hat\mu$ is the share
# of correct samples. A verdict of `not_scored`, where a sample or its grading failed, is not counted as wrong. The interval
# tells how far $\mu$ may be from it: at a hundred samples it is up to 0.2 wide.

# %%
# needs sampling
interval = binomial_interval([correct], [len(scored)], method="jeffreys")
int(correct), len(scored), float(mu_hat), interval.round(3)

# %% [markdown] needs="sampling"
# ## Compare
#
# Recorded and live samples are independent draws from one distribution, if nothing has changed. Fisher's exact test asks
# how likely counts at least as far apart would then be. Many questions are many chances to be unlucky: Holm's correction
# multiplies the smallest p-value by the number of questions, the next by one fewer, and so on, so that the chance of *any*
# false rejection on the page is at most 5 %.


# %%
# needs sampling
both["p"] = [
    fisher_exact([[a, n - a], [b, m - b]]).pvalue
    for a, n, b, m in both.to_numpy()
]
both["adjusted p"] = adjusted(both["p"].to_numpy(), "holm")
both = both.sort_values("p")
unlike = both["adjusted p"] < 0.05

# %% tags=["hide-input"]
# needs sampling
notebook.glue(unlike=int(unlike.sum()), alike=int((~unlike).sum()))

# %%
# needs sampling
notebook.say("""
Fresh and recorded counts agree up to chance for {alike} of the questions, and differ significantly for {unlike} (5 % level).
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "A point is a question: its expected accuracy as recorded, and as estimated again by this page, each with its 95 % interval. A question whose two shares differ significantly, judged with all others by Holm's method, has another mark: as long as model, prompt and sampling settings are the same, only chance moves a point off the line.", "name": "fig-live"}, "image": {"alt": "Scatter plot of live against recorded expected accuracy, a cross of two intervals at each point, and the diagonal on which the two are equal; points that differ significantly have another mark."}} paper=["section-4.1", "equation-16"] evidence=["measured"] reads=["samples", "verdicts"]
# needs sampling
x, y = both["correct"] / both["total"], both["live correct"] / both["live"]
differs = unlike.map({True: "significantly", False: "not significantly"})
colors = {"significantly": "#bc3e0b", "not significantly": plots.INK}
axes = sns.scatterplot(
    x=x, y=y, hue=differs, style=differs, palette=colors, s=50, zorder=3
)
across = binomial_interval(both["correct"], both["total"]).T
upward = binomial_interval(both["live correct"], both["live"]).T
axes.hlines(y, *across, color=plots.MUTED, linewidth=1)
axes.vlines(x, *upward, color=plots.MUTED, linewidth=1)
axes.axline((0, 0), slope=1, color=plots.MUTED, linestyle=":")
axes.legend(title="different", loc="upper left")
_ = axes.set(xlabel="share correct, recorded", ylabel="share correct, live")

# %% tags=["hide-input"] label="live-comparison" paper=["section-4.1"] evidence=["measured"] reads=["samples", "verdicts"]
# needs sampling
words = [questions[name].text.splitlines()[0][:48] for name in both.index]
names = {"correct": "recorded correct", "total": "samples"}
shown = both.rename(columns=names).drop(columns="live")
tables.show(
    shown.set_axis(pd.Index(words, name="question")).head(5),
    "The five questions whose counts are furthest apart.",
    evidence=notebook.evidence_of(data),
)

# %% [markdown] needs="sampling"
# Where the test rejects, either the recording cannot be repeated, or one of the two counts was unlucky, as happens by chance on
# one page in twenty like this one. Samples with another seed (`-p seed 1`) tell the two apart: a model, a prompt or a grader
# that had changed would move many questions, with every seed.

# %% [markdown]
# ## Summary
#
# - A question's expected accuracy is a property of the model, the prompt and the sampling settings; a sample is one draw.
# - An estimate without its interval says little: at a hundred samples the interval is up to 0.2 wide.
# - One rejection among many tests can be chance. Correct for their number, and repeat what was rejected.
#
# ## Exercises
#
# **1 (easy).** How wide is the interval of a question with 5 correct of 10 samples? *Hint:* `binomial_interval`.

# %% tags=["hide-cell", "solution"]
# Both ends of the interval, whose width is asked
low, high = binomial_interval([5], [10])[0]
float(high - low)

# %% [markdown]
# **2 (medium).** How likely is it that at least one of 16 independent tests at the 5 % level rejects by chance, without a
# correction? *Hint:* the chance that none does is $0.95^{16}$.

# %% tags=["hide-cell", "solution"]
# The chance that all 16 tests keep silent
round(1 - 0.95**16, 2)

# %% [markdown]
# **3 (hard).** Simulate pages of 16 questions whose recorded and live counts come from the same $\mu$. On what share of
# pages does Holm's correction reject anything? *Hint:* the smallest p-value times 16 decides. Exact tests of counts are
# conservative, so it is less than 5 %.

# %% tags=["hide-cell", "solution"]
# Pages without any difference, and how many of them reject
rng, rejected = np.random.default_rng(0), 0
for _ in range(50):
    pairs = rng.binomial(100, rng.random(16)[:, None], (16, 2))
    p = [fisher_exact([[a, 100 - a], [b, 100 - b]]).pvalue for a, b in pairs]
    rejected += 16 * min(p) < 0.05
rejected / 50
