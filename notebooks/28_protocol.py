# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What each correction changes
#
# This book scores confidences differently from the paper in five ways. Here each is switched back alone, on the same
# recorded samples.

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has most data sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
k_c: int = 10  # samples that vote
seed: int = 0  # of the intervals

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.applications import (
    pass_at_k,
    pass_at_k_error_terms,
    simulate_pass_at_k,
    split_counts,
)
from capcal_lib.book import notebook, style, tables
from capcal_lib.errors import InputError
from capcal_lib.grading import judge_agreement, judges
from capcal_lib.manifests import load_dataset
from capcal_lib.probes import read_predictions
from capcal_lib.results import brier_terms, describe_runs, load_results

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval)
notebook.about(model, data)

# %% [markdown] needs="samples"
# *Plug-in* leaves the noise of $\hat\mu$ in the score. *Missing as 0.5* gives a question without a confidence one half,
# where the method was asked at all:


# %%
# needs samples
def means(terms):
    """Return the mean term of each data set and method."""
    by_set = terms.groupby(level="dataset", sort=False).mean()
    return by_set.rename_axis(columns="method").stack().dropna()


ours = load_results(runs, model, k_eval=k_eval, k_c=k_c)
terms = brier_terms(ours)
base = means(terms)

# %%
# needs samples
plug_in = brier_terms(ours, protocol="paper").where(terms.notna())
asked = ours.groupby(level="dataset").transform("count") > 0
filled = brier_terms(ours.fillna(0.5).where(asked))
switched = {"plug-in scores": means(plug_in), "missing as 0.5": means(filled)}

# %% [markdown] needs="samples"
# *Votes in the pool* takes the samples that vote from those that define $\hat\mu$, so that they share their luck. *Paper's
# probes* are trained by its recipe; the score is the mean of its five splits:

# %%
# needs samples
shared = {"k_eval": k_eval, "k_c": k_c, "held_out": False}
pool = load_results(runs, model, **shared)
switched["votes in the pool"] = means(brier_terms(pool))

# %%
# needs samples
counts = ours[["correct", "total"]]
splits = [
    read_predictions(runs, model, recipe="paper", split=split)
    for split in range(5)
]
splits = [means(brier_terms(counts.assign(**each))) for each in splits]
switched["paper's probes"] = pd.concat(splits, axis=1).mean(axis=1)


# %% tags=["hide-input"]
def by_judge(dataset, judge):
    """Score by a judge's verdicts; None where it has not judged them all."""
    chosen = {"datasets": [dataset], "verdicts": f"judge:{judge}"}
    try:
        found = load_results(runs, model, k_eval=k_eval, k_c=k_c, **chosen)
    except InputError:
        return None
    return means(brier_terms(found))


# %% tags=["hide-input"]
# needs samples
pairs = [
    (name, each) for name in data.index for each in judges(data["run"][name])
]
found = {pair: by_judge(*pair) for pair in pairs}
judged = {pair: each for pair, each in found.items() if each is not None}
said = []
for name, judge in judged:
    rng = np.random.default_rng(seed)
    both = judge_agreement(data["run"][name], judge, rng=rng)["samples"]
    said.append(
        f"{both.rate.estimate:.0%} of the samples of {data['title'][name]} "
        f"(κ = {both.kappa:.2f}, judged by {judge})"
    )
if judged:
    every = pd.concat(judged.values())
    switched["a judge's verdicts"] = every.groupby(level=[0, 1]).mean()

# %% [markdown] needs="samples"
# A shift above zero makes the score worse. *All together* is the paper's protocol, but for the judge:

# %%
# needs samples
said_by = pool.drop(columns=[name for name in pool if name.startswith("Probe")])
said_by = said_by.join(read_predictions(runs, model, recipe="paper"))
switched["all together"] = means(brier_terms(said_by, protocol="paper"))
shifts = pd.DataFrame(switched).sub(base, axis="index")
long = shifts.rename_axis(columns="switch").stack().rename("shift")
long = long[long.abs() > 1e-12].reset_index()

# %% tags=["hide-input"]
# needs samples
size = long["shift"].abs().groupby(long["switch"], sort=False).mean()
alone = size.drop(["all together", "a judge's verdicts"], errors="ignore")
whole = long[long["switch"] == "all together"]
farthest = whole.loc[whole["shift"].abs().idxmax()]
notebook.glue(
    most=alone.idxmax(),
    most_points=alone.max(),
    together=size["all together"],
    farthest=abs(farthest["shift"]),
    farthest_at=farthest["method"],
    farthest_on=load_dataset(farthest["dataset"]).title,
    judged=len(judged),
    judge_said=", ".join(said) or "nothing, as none has judged all",
)

# %%
# needs samples
notebook.say("""
The switch to *{most}* shifts the scores that it touches most, by {most_points:.3f} on average, up or down. All
switches together shift a score by {together:.3f} on average, and by up to {farthest:.3f}: that of {farthest_at} on
{farthest_on}.
""")

# %% mystnb={"figure": {"caption": "The shift of every score (one dot per data set and method) when one correction is switched off, and when all are. Right of zero a score becomes worse.", "name": "fig-protocol"}, "image": {"alt": "Strip plot with a row for each switch. Plug-in scores shift methods right and Oracle CC not at all; votes in the pool and missing confidences move few dots; the paper's probes spread widest."}} paper=["section-4.1", "table-5", "table-6"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
look = {"color": style.INK, "alpha": 0.4, "order": list(switched)}
axes = sns.stripplot(long, x="shift", y="switch", jitter=False, **look)
axes.axvline(0, color=style.MUTED, zorder=0)
_ = axes.set(xlabel="shift of the capability Brier score", ylabel="")

# %% label="protocol-shifts" paper=["section-4.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
by_switch = long.groupby("switch", sort=False)["shift"]
table = by_switch.agg(cells="size", mean="mean", lowest="min", highest="max")
table["mean size"] = size
tables.show(
    table.reindex(list(switched)).dropna().rename_axis("switched back"),
    "Shift of the score by each switch, over data sets and methods: its mean "
    "with its sign, and the mean of its size.",
    evidence=data["evidence"].iloc[0],
)

# %%
# needs samples
notebook.say("""
The noise that *plug-in* leaves in is the same for every confidence, so it changes no order among them; the other
switches can. A judge's verdicts can be switched on where a judge has judged every answer, which is so on {judged} of
these data sets: rules and judge agree on {judge_said}. The lower Cohen's κ, the more of that shift is the judge's own
error; [Grading](13_grading.ipynb) compares the two.

The notebooks 03 to 08 take the paper's protocol at once with `-p protocol paper`, and a judge's verdicts with `-p verdicts
judge:MODEL`; in Python, `score(results, protocol="paper")`.
""")

# %% [markdown] needs="samples"
# ## An oracle that has seen its target
#
# Oracle CC predicts [pass@k](05_pass_at_k.ipynb) from $\hat\mu$. In the paper it knows the very samples that it is scored
# on, and $k$ goes up to their number, where the measured pass@$k$ is itself noisy. An honest oracle knows one half of the
# samples and is scored on the other:

# %%
# needs samples
spread = (ours["correct"] / ours["total"]).groupby(level="dataset").var()
own = ours.loc[spread.idxmax()].query("total > 3")
c, n = own["correct"], own["total"]
ks = [k for k in (1, 4, 16, 64) if k <= n.min()]

# %%
# needs samples
in_sample = simulate_pass_at_k(c / n, ks)
paper_error = ((in_sample - pass_at_k(c, n, ks)) ** 2).mean(axis=0)
known, held_out = split_counts(c, n, rng=np.random.default_rng(seed))
honest = simulate_pass_at_k(known[0] / known[1], ks)
honest_error = pass_at_k_error_terms(honest, *held_out, ks).mean(axis=0)

# %% label="protocol-pass-at-k" paper=["table-3", "table-8"] evidence=["measured"] reads=["verdicts"]
# needs samples
oracles = {"in sample": paper_error, "known half, other half": honest_error}
tables.show(
    pd.DataFrame(oracles, [f"pass@{k}" for k in ks]).T.rename_axis("oracle"),
    "Squared error of Oracle CC on "
    f"{load_dataset(spread.idxmax()).title} (lower is better).",
    digits=4,
    evidence=data["evidence"].iloc[0],
)

# %% [markdown]
# ## Where we differ
#
# What the paper does, as far as it says so or its authors' public code shows it, and what is done here. Runs say which of
# the two they followed.
#
# **Data and models**
#
# - *SimpleQA.* The paper: SimpleQA Verified, 1,000 questions. Here `simpleqa-verified` is that set; the recorded runs use
#   the original one, 4,326 questions, under the name `simpleqa`, and the two are never shown as one.
# - *TriviaQA.* The paper: 1,000 questions of the validation split, drawn at random. Here `triviaqa-1000` draws them as the
#   public code does; the recorded runs use the whole split, `triviaqa`, and subsets of it.
# - *Models.* The paper: three of 7 to 20 billion parameters. Here: small models that a laptop runs, with prompts for small
#   models, on random subsets of the questions, the training splits too. The paper's models are shown by its printed
#   numbers until somebody measures them.
# - *Question sets.* Here are four small ones of ours besides, so that every page runs without a download.
#
# **Grading and targets**
#
# - *Grading.* The paper: a deterministic correctness function; by the public code a language model judges TriviaQA,
#   SimpleQA and MATH. Here: rules, each verdict kept with its reason; a judge's verdicts are kept
#   [beside them](../guide/bring_your_own.md#your-judge-and-your-labels), and count where they are asked for.
# - *No answer, or not graded.* The public code counts both as wrong. Here no answer is wrong, and a sample that could not be
#   graded is not scored and leaves the count.
# - *Capability Brier.* The paper: the plug-in score with 100 samples. Here also the
#   [corrected](../theory/estimating_mu.md#the-bias-of-the-plug-in-score) one, which has the intervals.
# - *Uncertainty.* The paper gives none. Here every measured score has a 95 % interval (studentised bootstrap over
#   questions, or over subjects), differences are tested on the same questions, and all methods that may be the best are
#   marked.
# - *Samples.* A hundred of each question in both; here `--precision` may stop a question earlier, and an unbiased estimate
#   is kept.
#
# **Confidences**
#
# - *Response consistency.* The paper does not say whether its votes are among the samples that define $\hat\mu$. Here they
#   are not; [what sharing does](07_response_consistency.ipynb) is measured.
# - *A missing confidence.* The paper does not say what becomes of it; the public code imputes 0.5. Here it is missing, and
#   counted.
# - *P(True) of a reasoning model.* The public code reads a reasoning that was cut off at its first token. Here it is read
#   where the answer begins, and is missing where it never does.
# - *Oracle CC.* The paper scores it on the counts that it reports. Here it is scored on held-out samples.
# - *Probes.* The paper: a linear probe by stochastic gradient descent, its learning rate from a grid, its best epoch kept.
#   Here the *tuned* probe is the default: the same model and loss on standardised features, solved to its optimum, the
#   weight decay chosen by cross-validation on the training questions. [Probes](11_probe_lab.ipynb) shows both.
# - *Calibration errors.* In two of the public scripts a confidence of exactly 1 is in no bin. Here the last bin is closed.
#
# **Applications**
#
# - *pass@k.* The paper: $1-(1-s)^k$. Here also for a *posterior confidence*, a Beta distribution with mean $s$ and a
#   concentration fitted on other questions.
# - *Budget.* The paper allocates greedily and does not say how success was computed. Here the allocation is optimal for the
#   stated confidences (the greedy one is), also for posterior ones, and its expected success is exact.

# %% [markdown]
# ## Summary
#
# - Corrections are switches: each can be taken back, and its effect is a number.
# - A correction that adds the same to every method changes no comparison; one that touches a method alone can.
# - An oracle that has seen its own target is no bound for what a confidence can reach.
#
# ## Exercises
#
# **1 (easy).** A question has $\hat\mu = 0.5$ from 100 samples. How much does *plug-in* add to the score of any
# confidence? *Hint:* $\hat\mu(1-\hat\mu)/(n-1)$.

# %% tags=["hide-cell", "solution"]
round(0.5 * 0.5 / 99, 5)

# %% [markdown]
# **2 (medium).** When does 0.5 for a missing confidence improve a score? *Hint:* compare $(0.5 - \mu)^2$ with the mean
# score of the other questions.

# %% tags=["hide-cell", "solution"]
mu, others = 0.6, 0.05
print((0.5 - mu) ** 2 < others)  # where its error is below the mean error
