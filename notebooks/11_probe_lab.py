# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A probe lab
#
# Takes the paper's best method, the linear probe of section 4.2 and appendix C.2, to the bench: is it better than a
# constant, how much data does it need, how far can one of its predictions be trusted, and can it be beaten at the
# same cost, one pass over the prompt?
#
# - **You will learn** to hold a probe against baselines that read no hidden state, and to put a band around it.
# - **You need** nothing but this repository: no GPU, no network. It takes less than a minute.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from the root
dataset: str = "mini-capitals"  # whose probe is looked at closely
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %%
from capcal_lib.book import figures, notebook
from capcal_lib.manifests import ROOT, model_names
from capcal_lib.results import generalisation, tables
from capcal_lib.results import transfer as contests

study = notebook.open_study(globals())
study

# %% [markdown]
# ## Baselines that keep us honest
#
# A probe must beat what needs no model: the mean of the training set, the words of the question, its length. All
# are trained on the same questions and scored on the same ones, so the differences are paired.
#
# *Linear probe (paper)* follows the paper's recipe: stochastic gradient descent on the mean over layers, its learning
# rate and epoch chosen by a fifth of the training questions. *Tuned*, as in the main table, solves the same problem to
# its end, with the weight decay that cross-validation on training questions chooses. The *kernel probe*
# reads all layers instead of their mean: standardised, each third of them along its 64 strongest directions, by kernel
# ridge regression on $\hat\mu$, with bandwidth and penalty chosen by leaving one training question out, in closed form. It
# costs the same single pass over the prompt. Its design was settled on the training questions of the four mini sets of
# `smollm2-135m`, but with the test scores in sight, so its lead there may flatter it. The *stacked probe* is described
# below, where it is also put to a clean test.

# %%
training = generalisation.training_sets(ROOT / store, model)
tests = generalisation.evaluation_sets(ROOT / store, model, k_eval=k_eval)

# %%
held = contests.hold_all(ROOT / store, [model], k_eval=k_eval, seed=seed)
against_paper, against_tuned = contests.score_tables(
    held, study.rng, contests.LINEAR, contests.TUNED
)

# %%
tables.show(
    contests.wide_table(against_paper),
    "Score, and the interval of its difference from the paper's probe.",
)

# %% mystnb={"figure": {"caption": "Difference from the paper's linear probe, with paired 95 % intervals: green is better for sure, red worse, grey neither.", "name": "fig-contest"}}
figures.differences(against_paper, reference=contests.LINEAR)

# %%
beaten = contests.baselines_beaten(against_paper)
kernel = contests.tenths_won(against_paper)
tuned = contests.tenths_won(against_tuned, reference=contests.TUNED)

# %%
notebook.glue(sets=beaten["sets"], kernel=kernel, tuned=tuned)
notebook.glue(below=beaten["below"], above=beaten["above"])

# %% [markdown]
# Of {glue:text}`sets` data sets, the paper's probe beats the best of the baselines on {glue:text}`below` and loses to
# it on {glue:text}`above`, as far as the paired interval tells; on the rest they cannot be told apart. The kernel
# probe scores at least a tenth lower than the paper's, with an interval that excludes zero, on {glue:text}`kernel`, and
# than the tuned probe on {glue:text}`tuned`: the first number holds what a better penalty gives, the second what the
# layers and the kernel add to it. Where all lie at the mean of the training set, there is nothing to be read.
#
# ## A better probe at the same cost
#
# The stacked probe is a weighted mean of eight predictions: linear probes on the mean over the layers with four weight
# decays, a kernel probe on the 32 principal directions of each third of the layers, and the mean of the training set.
# Each is fitted without a fifth of the training
# questions and predicts that fifth; the weights are those under which the samples of all fifths are most likely. So the
# decay, the layers that count, and the shrinkage to the mean are chosen on training questions alone, by
# cross-validation, and the kernel probes choose their directions and settings within the folds.
#
# All of it reads one pass over the answer prompt. P(True) would be one more: it asks another prompt. It is left out.
#
# Its members, their settings and the folds were fixed by nested cross-validation on the *training* questions of the mini
# sets of `smollm2-135m`. These sets are marked *development*. What was fixed was then committed, and only after that
# scored on the real data sets: the *clean test*. The best baseline is the best of the constants, the bag of words, and
# length and punctuation, picked with the test scores in sight, in its favour.

# %%
others = [name for name in model_names() if name not in (model, "simulated")]
everyone = held + contests.hold_all(
    ROOT / store, others, k_eval=k_eval, seed=seed
)
stacked = contests.stacked_table(everyone, seed=seed)

# %%
shown = contests.stacked_shown(stacked)
paper, tuned_too, baseline_too = contests.AGAINST
tables.show(
    shown.drop(columns=["questions", "met", tuned_too, baseline_too]),
    "The stacked probe on every pair of model and data set.",
    lower="{:.1%}",
)

# %%
tables.show(
    shown.drop(columns=["part", "paper's", "stacked", "lower", paper]),
    "Is the aim met? And its score less those of two others.",
)

# %%
counted = contests.aim_counts(stacked)
notebook.glue(pairs=counted["pairs"], met=counted["met"])
notebook.glue(clean=counted["clean"], clean_met=counted["clean_met"])
notebook.glue(worse=counted["worse"])
notebook.glue(failures=contests.failures(stacked))

# %%
notebook.glue(below_tuned=counted["below_tuned"])
notebook.glue(above_tuned=counted["above_tuned"])
notebook.glue(below_baseline=counted["below_baseline"])
notebook.glue(above_baseline=counted["above_baseline"])

# %% [markdown]
# The aim is a score at least a tenth below that of the paper's probe, with a paired interval that excludes zero. It is
# met on {glue:text}`met` of {glue:text}`pairs` pairs, and on {glue:text}`clean_met` of {glue:text}`clean` of the clean test.
# It is not met here: {glue:text}`failures`. The stacked probe is worse than the paper's for sure on {glue:text}`worse`.
#
# How much of that is the penalty alone shows beside the tuned probe. Against that, the stacked one is better for sure on
# {glue:text}`below_tuned` and worse on {glue:text}`above_tuned`; against the best baseline, better on {glue:text}`below_baseline` and worse on {glue:text}`above_baseline`. On the rest they cannot be told apart: where
# nearly every question is answered wrongly, a constant says as much.
#
# ## How much data?
#
# Fewer questions are drawn from the training set; fewer samples a question are drawn from the ten recorded ones
# without replacement, which is what sampling less would have given. The shade is the range over twenty draws.

# %%
ours = generalisation.pick(training, dataset)
theirs = generalisation.pick(tests, dataset)
sizes, ks = [25, 50, 100, 200, 400, 800], [1, 2, 3, 5, 10]

# %%
by_size, by_k = tables.stack([]), tables.stack([])
for train, test in zip(ours, theirs, strict=False):
    by_size = generalisation.size_curve(train, test, sizes, study.rng)
    by_k = generalisation.label_curve(train, test, ks, study.rng)

# %% mystnb={"figure": {"caption": "Score of the paper's probe against training questions (left) and samples a training question (right), on one data set.", "name": "fig-learning"}}
figures.learning(by_size, by_k)

# %%
notebook.glue(last_step=generalisation.last_step(by_k))

# %% [markdown]
# The last step to ten samples changes the score by {glue:text}`last_step:.3f`. Where that is small against the step from
# the last doubling of questions, spend the next samples on new questions.
#
# ## How far to trust one prediction
#
# Half of the training questions fit the probe, the other half calibrate a split-conformal band: of new questions of
# the same kind, at least 90 % have their $\hat\mu$ inside. The promise is about $\hat\mu$ of ten samples, so the
# band holds its binomial noise as well; and it is about questions of the same kind only. For the others there is a
# warning: a question is *far* when its Mahalanobis distance from the training questions (shrunk covariance) exceeds
# that of 95 % of held-out training questions.

# %%
trust = tables.stack(
    [generalisation.reliance(train, tests, study.rng) for train in ours]
)
tables.show(trust, "A band and a warning, in and out of domain.", digits=2)

# %%
shares = generalisation.home_and_away(trust)
notebook.glue(covered=shares["covered"])
notebook.glue(flagged_home=shares["home"], flagged_away=shares["away"])

# %% [markdown]
# At home the band covers {glue:text}`covered:.2f` and {glue:text}`flagged_home:.2f` of the questions are flagged; elsewhere
# {glue:text}`flagged_away:.2f` are.
#
# ## Summary
#
# - A probe is only as good as the constant it beats; where nothing can be predicted, the mean is the best probe.
# - Reading all layers, and choosing the penalty on training questions, costs nothing at prediction time.
# - Mixing probes by what they say of questions left out needs no choice by hand, and falls back on the mean.
# - A band without a statement of whom it is for is no promise; a warning tells when the promise is off.
#
# ## Exercises
#
# 1. Set `dataset` to another set. Does it need more questions or more samples?
# 2. Why is the band so wide? Compare its half-width with that of a Jeffreys interval at ten samples.
# 3. Standardise the bag of words. What happens to rare words, and to the score?
