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
# The paper's evaluation framework (section 4.1), run before your eyes: ask a real language model the same questions
# many times, grade every answer, and put the fresh estimate of each question's expected accuracy beside the
# recorded one.
#
# - **You will learn** what a sample, a verdict and an expected accuracy are, and how far two honest estimates of
#   the same number may differ.
# - **You need** two processor cores and the embedded model, which `make` has fetched. It takes about a minute.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from the root
dataset: str = "mini-capitals"  # one of `capcal datasets`
n_questions: int = 16  # spread over the recorded difficulty
k_eval: int = 100  # samples that define mu_hat, recorded and live
seed: int = 2026  # of the live samples

# %%
from capcal_lib.book import figures, live, notebook
from capcal_lib.results import tables

study = notebook.open_study(globals())
study

# %% [markdown]
# ## Ask
#
# The questions are taken from the whole range of recorded difficulty, so that some are nearly always answered,
# some nearly never, and the rest in between. Each is put to the model exactly as in the recorded run.

# %%
recorded = study.repeatable(dataset)
questions = [live.spread(one, n_questions) for one in recorded]
[question.text for asked in questions for question in asked[:3]]

# %% [markdown]
# The answer is drawn token by token at the model's temperature. The prompt is read only once for all samples of a
# question.

# %%
drawn = [
    live.sample_again(one, asked, k=k_eval, seed=seed)
    for one, asked in zip(recorded, questions, strict=True)
]

# %% [markdown]
# ## Look
#
# Never trust a number before you have read what is behind it. The first sample of each question, what the grader took
# from it, and its verdict:

# %% label="live-answers" paper=["section-4.1"] evidence=["measured"] reads=["samples"]
tables.show(
    tables.stack([live.first(samples) for samples in drawn]),
    "One drawn answer to each question.",
)

# %% [markdown]
# ## Compare
#
# The recorded and the live samples are independent draws from the same distribution. Their intervals should overlap on
# nearly every question.

# %%
comparisons = [
    live.compare(one, samples)
    for one, samples in zip(recorded, drawn, strict=True)
]

# %% mystnb={"figure": {"caption": "Two independent estimates of the same expected accuracies, recorded and live.", "name": "fig-live"}} paper=["section-4.1", "equation-16"] evidence=["measured"] reads=["samples", "verdicts"]
figures.live(comparisons[0]) if comparisons else study

# %% label="live-comparison" paper=["section-4.1"] evidence=["measured"] reads=["samples", "verdicts"]
tables.show(tables.stack(comparisons), "Correct answers, recorded and live.")

# %%
differing = [differs for table in comparisons for differs in table["differs"]]
notebook.glue(asked=len(differing), unlike=sum(differing))

# %% [markdown]
# Of {glue:text}`asked` questions, {glue:text}`unlike` differ by an exact test at the 5 % level, corrected for the
# number of questions (Holm). A recording that could not be repeated would fail here.
#
# ## Summary
#
# - A question's expected accuracy is a property of the model, the prompt and the sampling settings; a sample is one
#   draw from it.
# - An estimate without its interval says little: at a hundred samples, the interval is up to 0.2 wide.
#
# ## Exercises
#
# 1. Set another `seed`. Which columns change, and does the conclusion?
# 2. Set `k_eval` to 10. How wide are the intervals now?
# 3. Choose `dataset` `mini-arithmetic`. Which sums does the model get right only sometimes?
