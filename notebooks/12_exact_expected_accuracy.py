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
n_questions: int = 20  # that are read
k_eval: int = 100  # samples that define mu_hat

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.book import notebook, style
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.questions import at_hand, load_questions
from capcal_lib.results import describe_runs, load_results
from capcal_lib.sampling import answer_requests, open_engine, weights_folder

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
known, manifest = load_model(model), load_dataset(dataset)
data = describe_runs(runs, model, k_eval=k_eval)
here = (
    weights_folder(known) is not None if known.engine != "simulated" else False
)
here &= manifest.kind == "choice" and manifest.name in data.index
here &= at_hand(manifest.name, manifest.evaluation_split)
none = {
    "reading": f"{known.title} cannot be read on {manifest.title} here: that takes a "
    "recorded run, questions of choice, and the weights on this machine."
}
notebook.about(model, data, lacking={} if here else none)

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
engine = open_engine(known)
requests = answer_requests(known, questions)
logprobs, _ = engine.next_token_logprobs(requests, letters, known.sampling, 0)
weights = np.exp(logprobs / known.sampling.temperature)
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
misses = (mu_hat - mu).abs()

# %% tags=["finding"]
# needs reading
notebook.finding(
    """
One reading of a prompt gives what {most:.0f} samples estimate: over {asked} questions of {title}, the probability of the right
letter and the share of correct samples differ by {miss:.3f} on average.
""",
    asked=len(mu),
    title=manifest.title,
    most=counts["total"].median(),
    miss=misses.mean(),
)

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "The share of a question's samples that are correct against the probability of the right letter, read once. On the diagonal both agree.", "name": "fig-exact"}, "image": {"alt": "Scatter plot of the share of correct samples against the probability of the right letter; the dots scatter around the diagonal."}}
# needs reading
axes = sns.scatterplot(x=mu, y=mu_hat)
axes.axline((0, 0), slope=1, color=style.INK, linewidth=0.8)
_ = axes.set(xlabel="probability of the right letter", ylabel="share correct")

# %%
# needs reading
notebook.say(
    """
The samples' own noise, the root of $\\mu(1-\\mu)/n$, is {noise:.3f} on average (root mean square); the two differ by
{miss:.3f}. What is left is where an answer is no single letter: words around it, or another spelling of it.
""",
    noise=np.sqrt((mu * (1 - mu) / counts["total"]).mean()),
    miss=np.sqrt(((mu_hat - mu) ** 2).mean()),
)

# %% [markdown]
# ## Summary
#
# - For questions of choice one reading gives $\mu$, up to answers that are more than a letter.
# - For long answers the sum over all that a model may write never ends, and sampling is the only way.
