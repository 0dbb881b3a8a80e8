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
# Does a model give the same expected accuracies if it is asked again, now and on this machine? [The previous
# page](10_uses.ipynb), like all before it, used recorded samples.

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it runs anywhere
store: str = "runs/recorded"  # run store, from here or from the root
dataset: str = "mini-capitals"  # one of `capcal datasets`
n_questions: int = 16  # spread over the recorded difficulty
k_eval: int = 100  # samples that define mu_hat, recorded and live
seed: int = 2026  # of the live samples

# %%
from capcal_lib.book.page import EndOfPage, finding, open_page, show_runs
from capcal_lib.book.tables import show

page = open_page(model, store, k_eval=k_eval)
show_runs(page)

# %% [markdown]
# ## Ask
#
# The page needs a recorded run, and the questions and the weights on this machine.

# %%
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.sampling import can_sample_here

sampler, exam = load_model(model), load_dataset(dataset)
if dataset not in page.runs.index or not can_sample_here(sampler, exam):
    lack = "a recorded run, the questions or the weights are missing"
    get = f"To get them, run: capcal reproduce --model {model}"
    raise EndOfPage(
        f"{sampler.title} cannot be sampled on {exam.title} here: {lack}. {get}"
    )

# %% [markdown]
# The questions range from the hardest to the easiest of the recorded run:

# %%
from capcal_lib.applications import deep_samples
from capcal_lib.book.experiments import evenly
from capcal_lib.questions import load_questions
from capcal_lib.results import load_results

counted = {"datasets": [dataset], "k_eval": k_eval, "recipe": None}
recorded = load_results(page.counting.store, model, **counted).loc[dataset]
recorded = recorded.query("total > 0")
recorded = recorded[recorded["total"] >= deep_samples(recorded["total"])]
spread = evenly(recorded, n_questions)

# %%
questions = {question.id: question for question in load_questions(dataset)}
chosen = [questions[name] for name in spread.index]

# %% [markdown]
# The prompt is the same as in the recorded run:

# %%
import time

from capcal_lib.sampling import open_engine
from capcal_lib.studies.live_sampling import draw_and_grade

started = time.monotonic()
engine = open_engine(sampler)
samples = draw_and_grade(engine, sampler, chosen, k=k_eval, seed=seed)
seconds = time.monotonic() - started
f"{len(samples)} samples drawn and graded in {seconds:.0f} seconds"

# %%
from capcal_lib.grading.counts import count_verdicts

live = count_verdicts(samples, k=k_eval)[["correct", "total"]]
live = live.add_prefix("live ")
both = recorded[["correct", "total"]].join(live, how="inner")

# %% [markdown]
# We follow the question that is answered correctly about half of the time. This is its prompt:

# %%
from capcal_lib.sampling import answer_requests

half = both["live correct"] / both["live total"] - 0.5
question = questions[half.abs().idxmin()]
(request,) = answer_requests(sampler, [question], {question.id: (0, 1, 2)})
print(request.messages[-1]["content"])

# %%
responses = samples[samples["question_id"] == question.id]
distinct = responses["extracted"].nunique()
f"{distinct} different answers in {len(responses)} samples"

# %% [markdown]
# ## Grade
#
# Read some answers before you trust a number. Here is the grade of the first response, and a table of the most frequent ones:

# %%
from capcal_lib.grading import grade

grade(responses["response"].iloc[0], question.answer)

# %% label="live-answers"
columns = ["response", "extracted", "verdict", "reason"]
short = responses.assign(response=responses["response"].str.slice(0, 160))
frequent = short.value_counts(columns, dropna=False).rename("samples")
caption = f"The most frequent responses to: {question.text}"
show(frequent.head(5), caption, evidence=page.evidence)

# %% [markdown]
# ## Count
#
# The share of correct samples, $\hat\mu$, estimates the expected accuracy $\mu$. A sample that cannot be graded is
# `not_scored` and does not count. The interval shows how far $\mu$ may be from $\hat\mu$:

# %%
from capcal_lib.metrics import binomial_interval

correct, total = both.loc[question.id, ["live correct", "live total"]]
low, high = binomial_interval([correct], [total], method="jeffreys")[0]
f"{correct} of {total}: {correct / total:.2f}, from {low:.2f} to {high:.2f}"

# %% [markdown]
# ## Compare
#
# If nothing has changed, recorded and live samples are independent draws from the same distribution. Fisher's exact test gives
# the probability of counts at least this far apart. For the question above:

# %%
from scipy.stats import fisher_exact

c, n = recorded.loc[question.id, ["correct", "total"]]
table = [[c, n - c], [correct, total - correct]]
f"p = {fisher_exact(table).pvalue:.3f}"

# %% [markdown]
# Each question is one more chance of a false alarm. With Holm's correction, the probability of *any* false rejection on the
# page is at most 5 %, one page in twenty. A question *agrees* if its difference is not significant:

# %%
import numpy as np
from capcal_lib.metrics import compare_counts

p = compare_counts(*both.to_numpy().T).set_index(both.index)
both = both.join(p).sort_values("p")
words = "significantly", "not significantly"
differs = np.where(both["p (Holm)"] < 0.05, *words)

# %% tags=["finding"]
from capcal_lib.text import in_words

asked, apart = len(both), int((both["p (Holm)"] < 0.05).sum())
text = "Asked again, {title} agrees with its recorded answers on {agree} of {asked} questions"
chance = "; on {apart} it does not. If nothing has changed, at most one page in twenty shows any such question."
about = {"title": sampler.title, "asked": asked, "agree": asked - apart}
finding(text + (chance if apart else "."), apart=in_words(apart), **about)

# %%
x = both["correct"] / both["total"]
y = both["live correct"] / both["live total"]
across = binomial_interval(both["correct"], both["total"]).T
upward = binomial_interval(both["live correct"], both["live total"]).T

# %% tags=["picture"] label="fig-live" mystnb={"image": {"alt": "Scatter plot of live against recorded expected accuracy, a cross of two intervals at each point, and the diagonal on which the two are equal; points that differ significantly have another mark."}}
import seaborn as sns
from capcal_lib import plots

colors = dict(zip(words, ["#bc3e0b", plots.INK], strict=True))
marks = {"hue": differs, "style": differs, "palette": colors, "s": 50}
axes = sns.scatterplot(x=x, y=y, zorder=3, **marks)
axes.hlines(y, *across, color=plots.MUTED, linewidth=1)
axes.vlines(x, *upward, color=plots.MUTED, linewidth=1)
axes.axline((0, 0), slope=1, color=plots.MUTED, linestyle=":")
axes.legend(title="different", loc="upper left")
_ = axes.set(xlabel="share correct, recorded", ylabel="share correct, live")

# %% [markdown]
# Each point is a question, at its share of correct samples when recorded and today, with 95 % intervals. Colour and shape mark
# differences that are significant after Holm's correction. If nothing has changed, only chance moves a point off the dotted
# line.

# %% label="live-comparison"
names = {"correct": "recorded correct", "total": "samples"}
furthest = both.drop(columns="live total").head(5).rename(columns=names)
texts = [questions[name].text.splitlines()[0][:48] for name in furthest.index]
furthest = furthest.set_axis(texts).rename_axis("question")
caption = "The five questions whose counts are furthest apart."
show(furthest, caption, evidence=page.evidence)

# %% [markdown]
# A changed model, prompt or grader would move many questions. If one question alone is rejected, another seed does not settle
# it, because the recorded count stays, and may itself be low or high by chance. Ask the whole data set (`-p n_questions 1000`).
#
# ## Summary
#
# - The expected accuracy of a question depends on the model, the prompt and the sampling settings.
# - Report an estimate with its interval. With a hundred samples it is up to 0.2 wide.
# - One rejection among many tests can be chance. Correct for the number of tests, and ask more questions.
#
# [The next page](12_try_it.ipynb) needs only a browser: can you guess how often a model answers a question correctly?
#
# ## Exercises
#
# **1 (easy).** How wide is the interval of a question with 5 correct of 10 samples? *Hint:* `binomial_interval`.

# %% tags=["hide-cell", "solution"]
# Both ends of the interval, whose width is asked
low, high = binomial_interval([5], [10])[0]
float(high - low)

# %% [markdown]
# **2 (medium).** Most crosses of two intervals in the figure touch the dotted line, although their centres lie off it. What
# does that mean? How likely is it that at least one of 16 independent tests at the 5 % level rejects by chance? *Hint:* the
# chance that none does is $0.95^{16}$.

# %% tags=["hide-cell", "solution"]
# Both counts can come from one expected accuracy; the chance that any of 16 tests rejects
round(1 - 0.95**16, 2)

# %% [markdown]
# **3 (hard).** Simulate pages of 16 questions whose recorded and live counts come from the same $\mu$. On what share of the
# pages does Holm's correction reject anything? *Hint:* look at the smallest adjusted p-value.

# %% tags=["hide-cell", "solution"]
# Pages without any difference, and how many of them reject
rng, rejected = np.random.default_rng(0), 0
for _ in range(50):
    one, two = rng.binomial(100, rng.random(16)[:, None], (16, 2)).T
    p = compare_counts(one, [100] * 16, two, [100] * 16)["p (Holm)"]
    rejected += (p < 0.05).any()
rejected / 50
