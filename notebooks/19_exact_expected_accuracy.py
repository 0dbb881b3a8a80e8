# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Expected accuracy in one reading
#
# [Before](18_protocol.ipynb) we took back one correction after the other. All of them are there because $\mu$ is estimated from
# samples (section 4.1 of the paper). Where an answer is one letter, can it be read off the model without any?

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`; it runs anywhere
store: str = "runs/recorded"  # run store, from here or from the root
dataset: str = "mini-exam"  # one of `capcal datasets`, with questions of choice
n_questions: int = 200  # that are read, at most
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of what is drawn

# %% tags=["provenance"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import plots
from capcal_lib.book.lesson import open_page
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.questions import load_questions
from capcal_lib.results import load_results
from capcal_lib.runs import read_samples
from capcal_lib.sampling import answer_requests, can_sample_here, open_engine

page = open_page(globals())

# %% [markdown]
# A model that is asked a question of choice says first of all how probable each letter is as the first token of its answer: it
# need only read the prompt. That takes the model itself, and the samples of a run to compare with.

# %%
reader, exam = load_model(model), load_dataset(dataset)
recorded = dataset in page.data.index and exam.kind == "choice"
if not (recorded and can_sample_here(reader, exam)):
    page.end(
        f"{reader.title} cannot be read on {exam.title} here: that takes recorded samples, questions of choice, and the weights "
        "on this machine, which capcal reproduce --model smollm2-135m gets."
    )

# %% [markdown]
# The engine that draws samples reads as well. It returns a logarithm for each question and letter.

# %%
letters = list("ABCD")
engine = open_engine(reader)
questions = load_questions(dataset, limit=n_questions)
requests = answer_requests(reader, questions)
logprobs, _ = engine.next_token_logprobs(requests, letters, reader.sampling, 0)
if np.isinf(logprobs).any():
    page.end(
        f"{reader.title} is simulated and answers no letter: -p model smollm2-135m"
    )

# %% [markdown]
# These are probabilities at temperature 1. Sampling at another temperature raises them to its inverse power. Here they are for
# the first questions, as shares of what the four letters have together:

# %%
golds = pd.Series({question.id: question.answer.gold for question in questions})
weights = np.exp(logprobs / reader.sampling.temperature)
shares = pd.DataFrame(weights, golds.index, letters)
shares = shares.div(shares.sum(axis="columns"), axis="index")
shares.head().round(3)

# %% [markdown]
# The expected accuracy of a question is then the share of its right letter. The samples of the same questions give its
# estimate $\hat\mu$, and a *gap* is what divides the two.

# %%
is_right = pd.get_dummies(golds).reindex(columns=letters, fill_value=False)
mu = shares.where(is_right).sum(axis="columns")
counts = load_results(
    page.store, model, datasets=[dataset], k_eval=k_eval, recipe=None
)
counts = counts.loc[dataset].query("total > 0")
mu_hat = (counts["correct"] / counts["total"]).reindex(golds.index).dropna()
mu = mu[mu_hat.index]
gaps = mu_hat - mu

# %% tags=["picture"] label="fig-exact" mystnb={"image": {"alt": "Scatter plot of the share of correct samples against the probability of the right letter, a dot a question, with the diagonal."}}
axes = sns.scatterplot(x=mu, y=mu_hat)
axes.axline((0, 0), slope=1, color=plots.INK, linewidth=0.8)
_ = axes.set(xlabel="probability of the right letter", ylabel="share correct")

# %% [markdown] tags=["caption"]
# The share of a question's samples that are correct against the probability of the right letter, read once. On the diagonal
# both agree.

# %% [markdown]
# The dots are not on the diagonal. Need they be? If nothing but chance divided the two, counts would be draws from the
# probabilities that were read. Drawn anew many times, they show how far apart chance alone puts them:

# %%
rng = np.random.default_rng(seed)
size = counts["total"].reindex(mu.index).astype(int)
drawn = rng.binomial(size, mu, (10_000, len(mu)))
by_chance = drawn / size.to_numpy() - mu.to_numpy()
np.abs(by_chance).mean(), gaps.abs().mean()

# %% tags=["finding"]
page.finding(
    "One reading of a prompt beside {most:.0f} samples, over {asked} questions of {title}: the probability of the right letter "
    "and the share of correct samples differ by {miss:.3f} on average, and chance alone would make it {noise:.3f}.",
    most=size.median(),
    asked=len(mu),
    title=exam.title,
    miss=gaps.abs().mean(),
    noise=np.abs(by_chance).mean(),
)

# %% [markdown]
# How often does chance put the two as far apart, question by question? And what chance makes has no sign, so that it averages
# out: how often is the mean gap as far from zero?

# %%
squared, mean = (by_chance**2).mean(axis=1), by_chance.mean(axis=1)
as_far = (squared >= (gaps**2).mean()).mean()
off_centre = (np.abs(mean) >= abs(gaps.mean())).mean()
page.show(
    pd.DataFrame(
        {
            "of the gaps": ["mean square", "mean"],
            "found": [(gaps**2).mean(), gaps.mean()],
            "chance puts it as far from zero": [as_far, off_centre],
        }
    ),
    "Gaps between samples and reading, and how often chance alone makes them as large.",
    digits=4,
)

# %% [markdown]
# What a reading of letters cannot see is a sample that begins with something else. It can have moved the share correct by no
# more than the share of such samples:

# %%
samples = read_samples(page.data.loc[dataset, "run"])
samples = samples[samples["question_id"].isin(mu.index)]
samples = samples.query("sample_index < @k_eval")
starts = samples["response"].str.strip().str[:1]
1 - starts.isin(letters).mean()

# %% [markdown]
# ## Summary
#
# - For questions of choice one reading gives $\mu$, up to answers that are more than a letter.
# - Long answers cannot be summed over; there one has to sample.
# - Whether two estimates agree is a question about chance: draw what chance alone would give, and compare.
#
# All this trusts that a sample is rightly called correct. [Next](20_grading.ipynb): how good is the grader?
#
# ## Exercises
#
# **1 (easy).** A reading gives the right letter the probability 0.3. How many samples would estimate that to within 0.05, with
# 95 % confidence? *Hint:* twice the standard error $\sqrt{\mu(1-\mu)/n}$ is at most 0.05.

# %% tags=["hide-cell", "solution"]
# The standard error, solved for the number of samples
int(np.ceil(0.3 * 0.7 / (0.05 / 1.96) ** 2))

# %% [markdown]
# **2 (medium).** At temperature 1 a model answers A, B, C and D with probabilities 0.5, 0.3, 0.15 and 0.05, and B is right.
# What is $\mu$ at temperatures 1, 0.5 and 0.1, and where does it go as the temperature falls to 0? *Hint:* raise the
# probabilities to the inverse power, and divide by their sum.

# %% tags=["hide-cell", "solution"]
# Probabilities raised to the inverse temperature, a row a temperature
powers = 1 / np.array([[1], [0.5], [0.1]])
raised = np.array([0.5, 0.3, 0.15, 0.05]) ** powers
(raised / raised.sum(axis=1, keepdims=True)).round(3)[:, 1]

# %% [markdown]
# **3 (hard).** What does it mean where the dots of the figure lie below the diagonal on the whole, though each is within
# its noise? Think of a model that answers with the right letter in 60 % of its samples, with another letter in 20 %, and with
# words in 20 %, of which the grader calls half right. *Hint:* $\hat\mu$ counts the words, and the reading does not.

# %% tags=["hide-cell", "solution"]
# Right answers among all samples, and among letters only: samples lose by their words
mu_of_samples, read = 0.6 + 0.2 / 2, 0.6 / (0.6 + 0.2)
round(read - mu_of_samples, 3)
