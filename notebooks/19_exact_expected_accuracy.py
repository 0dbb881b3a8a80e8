# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Expected accuracy in one reading

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it runs anywhere
store: str = "runs/recorded"  # run store, from here or from the root
dataset: str = "mini-exam"  # one of `capcal datasets`, with questions of choice
n_questions: int = 200  # that are read, at most
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of what is drawn

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import plots
from capcal_lib.book import notebook
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.questions import at_hand, load_questions
from capcal_lib.results import load_results
from capcal_lib.runs import read_samples
from capcal_lib.sampling import answer_requests, open_engine, weights_folder

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
reader, manifest = load_model(model), load_dataset(dataset)
possible = reader.engine != "simulated" and weights_folder(reader) is not None
possible &= manifest.kind == "choice" and manifest.name in data.index
possible &= at_hand(manifest.name, manifest.evaluation_split)
none = {
    "reading": f"{reader.title} cannot be read on {manifest.title} here: that takes a "
    "recorded run, questions of choice, and the weights on this machine."
}
notebook.about(data, {} if possible else none)

# %% [markdown] needs="reading"
# Where an answer is one letter, a model's expected accuracy need not be sampled: it is the probability of the right letter,
# which one reading of the prompt gives. This goes beyond the paper, whose $\mu$ is always estimated from samples (section 4.1).
#
# ## Ten lines
#
# The model reads each prompt once and says how probable each letter is as the first token of its answer. Sampling at another
# temperature than 1 raises the probabilities to its inverse power.

# %%
# needs reading
questions = load_questions(manifest.name, limit=n_questions)
letters = list("ABCD")
engine = open_engine(reader)
requests = answer_requests(reader, questions)
logprobs, _ = engine.next_token_logprobs(requests, letters, reader.sampling, 0)
weights = np.exp(logprobs / reader.sampling.temperature)
names = pd.Index([question.id for question in questions], name="question_id")
shares = pd.DataFrame(weights, names, letters)
shares = shares.div(shares.sum(axis="columns"), axis="index")
right = [question.answer.gold for question in questions]
mu = pd.Series(
    shares.to_numpy()[range(len(right)), shares.columns.get_indexer(right)],
    names,
)

# %%
# needs reading
counts = load_results(
    runs, model, datasets=[manifest.name], k_eval=k_eval, recipe=None
)
counts = counts.loc[manifest.name].reindex(names).query("total > 0")
mu_hat = counts["correct"] / counts["total"]
mu = mu.reindex(mu_hat.index)
gaps = mu_hat - mu

# %% [markdown] needs="reading"
# If nothing but chance divided the two, counts would be draws from the probabilities that were read. Drawn anew many times, they
# show how far apart chance alone puts them:

# %%
# needs reading
size = counts["total"].astype(int)
drawn = np.random.default_rng(seed).binomial(size, mu, (10_000, len(mu)))
by_chance = drawn / size.to_numpy() - mu.to_numpy()
as_far = ((by_chance**2).mean(axis=1) >= (gaps**2).mean()).mean()
off_centre = (np.abs(by_chance.mean(axis=1)) >= abs(gaps.mean())).mean()

# %% [markdown] needs="reading"
# What a reading of letters cannot see is a sample that begins with something else. It is looked for in the samples themselves:

# %%
# needs reading
samples = read_samples(data.loc[manifest.name, "run"])
samples = samples[samples["question_id"].isin(mu.index)]
samples = samples.query("sample_index < @k_eval")
begins = samples["response"].str.strip().str[:1].isin(letters)
other = 1 - begins.mean()

# %% tags=["finding"]
# needs reading
notebook.finding(
    """
One reading of a prompt beside {most:.0f} samples, over {asked} questions of {title}: the probability of the right letter and the
share of correct samples differ by {miss:.3f} on average, and chance alone would make it {noise:.3f}.
""",
    asked=len(mu),
    title=manifest.title,
    most=counts["total"].median(),
    miss=gaps.abs().mean(),
    noise=np.abs(by_chance).mean(),
)

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "The share of a question's samples that are correct against the probability of the right letter, read once. On the diagonal both agree.", "name": "fig-exact"}, "image": {"alt": "Scatter plot of the share of correct samples against the probability of the right letter, a dot a question, with the diagonal."}}
# needs reading
axes = sns.scatterplot(x=mu, y=mu_hat)
axes.axline((0, 0), slope=1, color=plots.INK, linewidth=0.8)
_ = axes.set(xlabel="probability of the right letter", ylabel="share correct")

# %%
# needs reading
notebook.say(
    """
Chance alone puts the two as far apart as they are, question by question, in {as_far:.1%} of the draws. What chance makes has no
sign, so that it averages out: the mean of the share correct less the probability is {gap:+.4f}, and chance alone takes a mean
as far from zero in {off_centre:.1%} of the draws. Of these samples {other:.1%} do not begin with one of the letters, which can
have moved the share correct by no more than that.
""",
    as_far=as_far,
    gap=gaps.mean(),
    off_centre=off_centre,
    other=other,
)

# %% [markdown]
# ## Summary
#
# - For questions of choice one reading gives $\mu$, up to answers that are more than a letter.
# - For long answers the sum over all that a model may write never ends, and sampling is the only way.
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
# What is $\mu$ at temperature 0.5, and where does it go as the temperature falls to 0? *Hint:* raise the probabilities to the
# inverse power, and divide by their sum.

# %% tags=["hide-cell", "solution"]
# Probabilities raised to the inverse temperature
probabilities = np.array([0.5, 0.3, 0.15, 0.05])
for temperature in (1, 0.5, 0.1):
    raised = probabilities ** (1 / temperature)
    print(temperature, (raised / raised.sum()).round(3)[1])

# %% [markdown]
# **3 (hard).** A question has four options, and a model answers with the right letter in 60 % of its samples, with another
# letter in 20 %, and with words in 20 %, half of which are right. By how much does one reading miss $\mu$, if it divides the
# letters' probabilities by their sum? *Hint:* $\mu$ counts the words, and the reading does not.

# %% tags=["hide-cell", "solution"]
# Right answers among all samples, and among letters only
mu_of_samples, read = 0.6 + 0.2 / 2, 0.6 / (0.6 + 0.2)
round(read - mu_of_samples, 3)
