# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Sampling, live
#
# From a question to its {term}`expected accuracy`, before your
# eyes: a language model answers the same questions many times, each answer is graded, and the counts are compared with
# recorded ones. This is the evaluation framework of the paper's section 4.1.

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
from capcal_lib.book import notebook, style, tables
from capcal_lib.errors import InputError
from capcal_lib.grading import grade, grade_many
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.metrics import binomial_interval
from capcal_lib.metrics.validation import check_int
from capcal_lib.questions import at_hand, load_questions
from capcal_lib.results import describe_runs, load_results
from capcal_lib.sampling import (
    Failure,
    answer_requests,
    open_engine,
    weights_folder,
)
from scipy.stats import fisher_exact

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
check_int("n_questions", n_questions, least=1)
runs = notebook.open_store(store)
known, manifest = load_model(model), load_dataset(dataset)
data = describe_runs(runs, model, k_eval=k_eval)
here = known.engine == "simulated" or weights_folder(known) is not None
here &= at_hand(manifest.name, manifest.evaluation_split)
here &= manifest.name in data.index
reason = (
    f"{known.title} cannot be sampled on {manifest.title} here: that takes a "
    "recorded run, the questions and the weights on this machine."
)
notebook.about(
    model,
    data.loc[[manifest.name]] if here else data,
    lacking={} if here else {"sampling": reason},
)

# %% tags=["hide-input"]
# needs sampling
results = load_results(runs, model, datasets=[manifest.name], k_eval=k_eval)
recorded = results.loc[manifest.name].query("total > 0")
questions = {each.id: each for each in load_questions(manifest.name)}
difficulty = (recorded["correct"] / recorded["total"]).sort_values(
    kind="stable"
)
number = min(n_questions, len(difficulty))
places = (np.arange(number) + 0.5) / number * len(difficulty)
asked = [questions[name] for name in difficulty.index[places.astype(int)]]
started = time.monotonic()
engine = open_engine(known)


# %% tags=["hide-input"]
# needs sampling
def sample(asked, k, seed):
    """Draw and grade k fresh samples of each question: a row a sample."""
    requests = answer_requests(
        known, asked, {each.id: tuple(range(k)) for each in asked}
    )
    drawn = []
    for group in engine.sample(requests, known.sampling, seed):
        if isinstance(group, Failure):
            raise InputError(f"a sample failed: {group.reason}; execute again")
        drawn += group
    samples = pd.DataFrame(drawn)
    answers = [questions[name].answer for name in samples["question_id"]]
    pairs = list(zip(samples["response"], answers, strict=True))
    return samples.join(pd.DataFrame(grade_many(pairs)))


samples = sample(asked, k_eval, seed)


# %% tags=["hide-input"]
# needs sampling
def count(samples):
    """Count correct and scored samples of each question."""
    scored = samples[samples["verdict"] != "not_scored"]
    right = (scored["verdict"] == "correct").groupby(scored["question_id"])
    return right.agg(["sum", "size"]).set_axis(
        ["live correct", "live total"], axis=1
    )


# %% tags=["hide-input"]
# needs sampling
both = recorded.join(count(samples), how="inner")
both["p"] = [
    fisher_exact([[a, n - a], [b, m - b]]).pvalue
    for a, n, b, m in both[
        ["correct", "total", "live correct", "live total"]
    ].to_numpy()
]
both = both.sort_values("p")
holm = both["p"] * np.arange(len(both), 0, -1)
both["adjusted p"] = holm.cummax().clip(upper=1)
words = ["".join(questions[name].text.splitlines()[:1]) for name in both.index]
both["question"] = [
    text if len(text) <= 48 else text[:47] + "…" for text in words
]

# %% tags=["remove-cell"]
# needs sampling
unlike = int((both["adjusted p"] < 0.05).sum())
seconds = time.monotonic() - started  # of sampling and grading
notebook.glue(asked=len(both), unlike=unlike, samples=len(samples))
notebook.glue(seconds=seconds)
notebook.glue(title=known.title, alike=len(both) - unlike)

# %% [markdown] needs="sampling"
# {glue:text}`title` has just answered {glue:text}`asked` questions, {glue:text}`samples:,d` times in all. Fresh and
# recorded counts agree up to chance for {glue:text}`alike` of them, and differ significantly for {glue:text}`unlike`
# (Fisher's exact test, Holm's correction, 5 % level).

# %% mystnb={"figure": {"caption": "Two independent estimates of the same expected accuracies, with 95 % Jeffreys intervals. Where model, prompt and sampling settings are the same, points lie on the line up to chance.", "name": "fig-live"}, "image": {"alt": "Scatter plot of live against recorded expected accuracy with a cross of two intervals at each point. The points follow the diagonal from 0 to 1, and the crosses of nearly all touch it."}} paper=["section-4.1", "equation-16"] evidence=["measured"] reads=["samples", "verdicts"] tags=["hide-input"]
# needs sampling
x, y = (
    both["correct"] / both["total"],
    both["live correct"] / both["live total"],
)
differs = np.where(
    both["adjusted p"] < 0.05, "significantly", "not significantly"
)
colors = {"significantly": "#bc3e0b", "not significantly": style.INK}
axes = sns.scatterplot(x=x, y=y, hue=differs, palette=colors, s=50, zorder=3)
across = binomial_interval(both["correct"], both["total"]).T
upward = binomial_interval(both["live correct"], both["live total"]).T
axes.hlines(y, *across, color=style.MUTED, linewidth=1)
axes.vlines(x, *upward, color=style.MUTED, linewidth=1)
axes.axline((0, 0), slope=1, color=style.MUTED, linestyle=":")
axes.legend(title="different", loc="upper left")
_ = axes.set(xlabel="recorded μ̂", ylabel="live μ̂")

# %% [markdown] needs="sampling"
# ## Ask
#
# The questions are taken from the whole range of recorded difficulty. Each is put to the model exactly as in the recorded
# run, and the answer is drawn token by token at the model's temperature:

# %%
# needs sampling
question = asked[len(asked) // 2]
(request,) = answer_requests(known, [question], {question.id: (0, 1, 2)})
print(request.messages[-1]["content"])

# %% [markdown] needs="sampling"
# ## Grade
#
# Never trust a number before you have read what is behind it. The first response to that question, graded, and then
# the most frequent ones with the verdict on each: `correct`, `incorrect`, or `no_answer` where nothing can be
# extracted.

# %%
# needs sampling
responses = samples[samples["question_id"] == question.id]
grade(responses["response"].iloc[0], question.answer)

# %% label="live-answers" paper=["section-4.1"] evidence=["measured"] reads=["samples"] tags=["hide-input"]
# needs sampling
columns = ["response", "extracted", "verdict", "reason"]
short = responses.assign(response=responses["response"].str.slice(0, 160))
frequent = short.value_counts(columns, dropna=False).rename("samples")
tables.show(
    frequent.head(5),
    f"The most frequent responses to: {question.text}",
    evidence="measured" if known.engine != "simulated" else "simulated",
)

# %% [markdown] needs="sampling"
# ## Count
#
# The expected accuracy $\mu$ of a question is the chance that one response is correct; its estimate is the share of
# correct samples. A verdict of `not_scored`, where a sample or its grading failed, is not counted as wrong.

# %%
# needs sampling
scored = responses[responses["verdict"] != "not_scored"]
correct = (scored["verdict"] == "correct").sum()
mu_hat = correct / len(scored)
int(correct), len(scored), float(mu_hat)

# %% [markdown] needs="sampling"
# The interval tells how far $\mu$ may be from it: at a hundred samples it is up to 0.2 wide.

# %%
# needs sampling
binomial_interval([correct], [len(scored)], method="jeffreys").round(3)

# %% [markdown] needs="sampling"
# ## Compare
#
# Recorded and live samples are independent draws from one distribution, if nothing has changed. Fisher's exact test asks
# how likely counts at least as far apart would then be:

# %%
# needs sampling
row = both.loc[question.id]
a, n, b, m = row[["correct", "total", "live correct", "live total"]].astype(int)
float(fisher_exact([[a, n - a], [b, m - b]]).pvalue)

# %% [markdown] needs="sampling"
# Many questions are many chances to be unlucky. Holm's correction multiplies the smallest p-value by the number of
# questions, the next by one fewer, and so on, so that the chance of *any* false rejection on the page is at most 5 %.

# %% label="live-comparison" paper=["section-4.1"] evidence=["measured"] reads=["samples", "verdicts"] tags=["hide-input"]
# needs sampling
columns = ["question", "correct", "live correct", "total", "p", "adjusted p"]
tables.show(
    both[columns]
    .head(5)
    .reset_index(drop=True)
    .rename(columns={"correct": "recorded correct", "total": "samples"}),
    "The five questions whose counts are furthest apart.",
    evidence="measured" if known.engine != "simulated" else "simulated",
)

# %% [markdown] needs="sampling"
# Where the test rejects, there are two explanations: the recording cannot be repeated, or one of the two counts was
# unlucky, as happens by chance on one page in twenty like this one, and to some page of a book with hundreds of tests
# almost surely. Samples with other seeds tell the two apart, since a changed prompt or grader would move every question,
# and every seed. Here the first question of the table is sampled again, with five other seeds:

# %%
# needs sampling
name = both.index[0]
others = pd.concat(
    [sample([questions[name]], k_eval, seed + step) for step in range(1, 6)]
)
again = count(others).iloc[0]

# %% tags=["remove-cell"]
# needs sampling
a, n, b, m = both.loc[name, ["correct", "total", "live correct", "live total"]]
c, k = again
rest = both.drop(name)
pooled = fisher_exact([[a, n - a], [c, k - c]]).pvalue
others_p = int((rest["p"] < 0.05).sum())
said = "rejects" if both.loc[name, "adjusted p"] < 0.05 else "does not reject"

# %% tags=["remove-cell"]
# needs sampling
notebook.glue(
    said=said,
    first=both.loc[name, "question"],
    first_p=both.loc[name, "adjusted p"],
    old=a / n,
    new=b / m,
)
notebook.glue(
    again=c / k,
    fresh=int(k),
    again_p=pooled,
    again_holm=min(1.0, pooled * len(both)),
    rest=len(rest),
    others_p=others_p,
)

# %% [markdown] needs="sampling"
# For "{glue:text}`first`" the page's own test {glue:text}`said` (adjusted p = {glue:text}`first_p:.3f`): the recorded share
# is {glue:text}`old:.2f`, the live one {glue:text}`new:.2f`, and {glue:text}`fresh` samples with other seeds give
# {glue:text}`again:.2f`. Against these, the recorded count has p = {glue:text}`again_p:.3f`, to be multiplied by the number of
# questions, {glue:text}`asked`, since it was picked as the most unlike of them: {glue:text}`again_holm:.2f`. Of the
# {glue:text}`rest` other questions, {glue:text}`others_p` have a p-value below 0.05 before correction, where one in twenty is
# expected. A prompt, a model or a grader that had changed would show on more than one question.

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
low, high = binomial_interval([5], [10])[0]
float(high - low)

# %% [markdown]
# **2 (medium).** How likely is it that at least one of 16 independent tests at the 5 % level rejects by chance, without a
# correction? *Hint:* the chance that none does is $0.95^{16}$.

# %% tags=["hide-cell", "solution"]
round(1 - 0.95**16, 2)

# %% [markdown]
# **3 (hard).** Simulate pages of 16 questions whose recorded and live counts come from the same $\mu$. On what share of
# pages does Holm's correction reject anything? *Hint:* the smallest p-value times 16 decides. Exact tests of counts are
# conservative, so it is less than 5 %.

# %% tags=["hide-cell", "solution"]
rng, rejected = np.random.default_rng(0), 0
for _ in range(50):
    pairs = rng.binomial(100, rng.random(16)[:, None], (16, 2))
    p = [fisher_exact([[a, 100 - a], [b, 100 - b]]).pvalue for a, b in pairs]
    rejected += 16 * min(p) < 0.05
rejected / 50
