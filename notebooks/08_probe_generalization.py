# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Where does a probe still work?
#
# Reproduces the columns of table 2 that train a probe on one data set and score it on another, and appendix C.4 of
# the paper on mixed training sets. It adds intervals, and asks of each cell whether it beats a uniform random guess.
#
# - **You will learn** how fast a probe loses its worth away from its training set, and what mixing repairs.
# - **You need** nothing but this repository: no GPU, no network. It takes seconds.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %%
from capcal_lib.book import figures, notebook
from capcal_lib.manifests import ROOT
from capcal_lib.results import generalisation, tables

study = notebook.open_study(globals())
study

# %% [markdown]
# ## Train here, test there
#
# Each row is the paper's linear probe, trained on the questions of one training split with ten samples each. The last
# row is trained on equal shares of all sets, together as many questions as the largest set has: it has more variety
# and no more data. Cells are tinted as in the paper:
# [in-domain in-distribution]{.in-domain-in-distribution},
# [in-domain out-of-distribution]{.in-domain-out-of-distribution} or [out-of-domain]{.out-of-domain}.
# **Bold** marks what beats Uniform random by the interval of their paired difference.

# %%
training = generalisation.training_sets(ROOT / store, model)
evaluation = generalisation.evaluation_sets(ROOT / store, model, k_eval=k_eval)

# %% label="probe-transfer" paper=["section-4.3.2", "table-7", "appendix-c.4"] evidence=["measured"] reads=["verdicts", "features"]
matrix = generalisation.transfer_matrix(training, evaluation, study.rng)
tables.show_main(matrix, "Corrected capability Brier score (lower is better).")

# %% mystnb={"figure": {"caption": "The same scores with their intervals; green beats Uniform random for sure.", "name": "fig-transfer"}} paper=["table-7"] evidence=["measured"] reads=["verdicts", "features"]
figures.scores(matrix)

# %% label="probe-shift" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"]
kinds = generalisation.shift_table(matrix)
tables.show(kinds, "By how far the training set is from the test set.")

# %%
counted = generalisation.shift_counts(kinds)
notebook.glue(own=counted["own"], own_cells=counted["own_cells"])
notebook.glue(away=counted["away"], away_cells=counted["away_cells"])
notebook.glue(mixture=counted["mixture"])
notebook.glue(mixture_cells=counted["mixture_cells"])

# %% [markdown]
# On its own data set a probe beats a random guess in {glue:text}`own` of {glue:text}`own_cells` cells. Elsewhere it does
# in {glue:text}`away` of {glue:text}`away_cells`. The mixture does in {glue:text}`mixture` of
# {glue:text}`mixture_cells`, but there every test set has a share in training; to know how it does on a new one, leave
# one out (exercise 1).
#
# ## What the paper reports
#
# Plug-in scores of probes trained on TriviaQA, on GSM8K and on both, without intervals.

# %% label="mixing-reported" paper=["table-7", "appendix-c.4"] evidence=["reported"] reads=["mixing"]
printed = study.model.name if study.reported else "gpt-oss-20b"
tables.show(
    generalisation.reported_mixing(printed),
    f"Mixed training sets, as printed in the paper of {printed}.",
)

# %% [markdown]
# ## Summary
#
# - A low score in the distribution of the training questions says little about another domain.
# - Mixing buys breadth for a few thousandths where a probe was at home.
# - Compare every cell with Uniform random: a probe away from home can be worse than no probe.
#
# ## Exercises
#
# 1. Train the mixture on all sets but one (`generalisation.mixed`) and score it on that one.
# 2. Which of the two directions of a pair of data sets transfers better? Compare their mean expected accuracies.
# 3. A constant is a probe, too. Which cells does the mean of the test set's own training split beat?
