# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How many votes? Response consistency and its shared samples
#
# Reproduces appendix C.3 of the paper, the table of response consistency by $k_c$, and measures what voting with the
# very samples that define $\hat\mu$ does to the score.
#
# - **You will learn** what more votes buy, why they stop helping, and how to score a vote on samples that it has not
#   seen.
# - **You need** nothing but this repository: no GPU, no network. It takes seconds.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %%
from capcal_lib.book import figures, notebook
from capcal_lib.results import tables
from capcal_lib.results.evaluation import load_answers

study = notebook.open_study(globals())
study

# %% [markdown]
# ## Two ways to vote
#
# Response consistency lets $k_c$ samples vote and takes the share of the winning answer as the confidence. Whose
# samples? With a hundred at hand it is tempting to let some of them vote and to compare with $\hat\mu$ of all, as the
# reference implementation does. But then the vote is part of its own target: a block of samples that happens to hold
# more right answers raises both.
#
# Here the `k_eval` samples of each question are cut into blocks of $k_c$. Each block votes once. It is scored against
# $\hat\mu$ of the samples outside the block (*disjoint*), and, with the same vote, against $\hat\mu$ of all of them (*same
# pool*). No spare samples are needed, and the two differ in nothing else.

# %%
sampled = [one for one in study.evaluations if one.sampled]
answers = [load_answers(study.store, one) for one in sampled]

# %%
votes = {
    one.dataset.title: tables.consistency_table(
        one, said, (5, 10, 20), study.rng
    )
    for one, said in zip(sampled, answers, strict=True)
}

# %% mystnb={"figure": {"caption": "Score of response consistency against its cost, 5, 10 and 20 votes, with votes apart from mu_hat (its 95 % interval shaded) and votes among the samples of mu_hat. Grey: where a perfect estimator would lie.", "name": "fig-consistency"}} paper=["table-6", "appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"]
figures.consistency(votes)

# %% label="consistency-table" paper=["table-6", "appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples"]
scores = tables.by_data_set(votes)
tables.show(
    scores.drop(columns=["low", "high", "spread"], errors="ignore"),
    "Response consistency by the number of votes (corrected; lower is better).",
    tokens="{:,.0f}",
)

# %% [markdown]
# The score falls with $k_c$ because the vote itself becomes less noisy. It does not fall to the grey band: where the
# most frequent answer is wrong (*wrong majority*), more votes only make the method surer of it. *Missing* is the share
# of votes without a single answer; they have no confidence and are left out.
#
# ## What sharing flatters
#
# *Optimism* is the same-pool score less the disjoint one. In expectation it is minus twice the covariance of a vote with
# the $\hat\mu$ that it is part of, about $k_c / k_\text{eval}$ of its covariance with its own block.

# %%
sure = scores["95 % interval"].str.startswith("[-") if len(scores) else []
largest = scores["optimism"].min() if len(scores) else float("nan")
notebook.glue(largest=largest, cells=len(scores), flattered=int(sum(sure)))

# %% [markdown]
# The largest optimism on this page is {glue:text}`largest:.4f`, and the interval's lower limit is below zero in
# {glue:text}`flattered` of {glue:text}`cells` rows. Small beside the score, it is of one sign: it does not average out
# over data sets, and it grows as $k_\text{eval}$ shrinks.
#
# ## What the paper reports
#
# The paper prints plug-in scores for 5, 10 and 20 votes. The tokens were read off its cost figure, to about 6 %.

# %% mystnb={"figure": {"caption": "Response consistency as printed in the paper (plug-in scores), against the tokens of its cost figure. Grey: what a perfect estimator would score.", "name": "fig-consistency-reported"}} paper=["table-6", "appendix-c.3"] evidence=["reported"] reads=["consistency", "tokens"]
printed = study.model.name if study.reported else "gpt-oss-20b"
reported = tables.reported_consistency(printed)
figures.consistency(reported)

# %% label="consistency-reported" paper=["table-6", "appendix-c.3"] evidence=["reported"] reads=["consistency", "tokens"]
tables.show(
    tables.by_data_set(reported).drop(columns=["disjoint"], errors="ignore"),
    f"As printed in the paper of {printed} (lower is better).",
    tokens="{:,.0f}",
)

# %% [markdown]
# ## Summary
#
# - More votes sharpen the vote, not the idea: a wrong majority stays wrong.
# - A vote that shares samples with its target is scored too well. Disjoint samples cost nothing but bookkeeping.
# - The method costs $k_c$ answers, so it cannot be asked before the answers that it is to save.
#
# ## Exercises
#
# 1. Lower `k_eval` to 30. What happens to the optimism, and why?
# 2. On which data set is the wrong majority most common? What does its scatter plot in the page on estimators show?
# 3. How large would the optimism be at $k_c = k_\text{eval}$, where no sample is left outside?
