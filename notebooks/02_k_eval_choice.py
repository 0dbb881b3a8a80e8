# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How many samples? The choice of k_eval
#
# Reproduces appendix B.1 of the paper: the binomial analysis and the figure of the standard error against
# $k_\text{eval}$. It goes further where the paper stops: the bias of the plug-in Brier score, and intervals that
# keep their word.
#
# - **You will learn** what $k_\text{eval}$ buys, what it does not, and why a correction is better than more samples.
# - **You need** nothing but this repository: no GPU, no network. It takes seconds.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from the root
k_eval: int = 100  # samples that define mu_hat
precision: float = 0.05  # half-width at which a question has had enough
seed: int = 0  # of all that is drawn here

# %%
import numpy as np
from capcal_lib.book import figures, notebook
from capcal_lib.results import tables

study = notebook.open_study(globals())
study

# %% [markdown]
# ## Precision
#
# Given $\mu$, the number of correct samples is binomial, so $\hat\mu = c/k_\text{eval}$ has variance
# $\mu(1-\mu)/k_\text{eval}$. PromptOverride for a Wald interval no wider than $\pm\varepsilon$ at the worst case
# $\mu = 1/2$ takes $k_\text{eval} \ge z^2 / 4\varepsilon^2$ samples.

# %% label="wald-sizes" paper=["equation-17", "equation-18"] evidence=["simulated"]
from capcal_lib.metrics.intervals import wald_sample_size

notebook.glue(
    k_10=wald_sample_size(0.10),
    k_5=wald_sample_size(0.05),
    k_1=wald_sample_size(0.01),
)

# %% [markdown]
# A half-width of 0.10 takes {glue:text}`k_10` samples a question, 0.05 takes {glue:text}`k_5`, and 0.01 takes
# {glue:text}`k_1`. The paper chose 100. One question's $\hat\mu$ therefore stays rough; the mean over many questions does
# not.
#
# Fewer samples than were drawn can be imitated: a subsample of a question's answers is a hypergeometric draw from its
# counts. The standard error of the mean is exact.

# %%
ks = [k for k in (2, 5, 10, 20, 50, 100) if k <= k_eval]
sweeps = [tables.k_eval_table(one, ks, study.rng) for one in study.evaluations]

# %% label="k-eval-table" paper=["appendix-b.1"] evidence=["measured"] reads=["verdicts"]
sweep = tables.stack(sweeps[:1])
tables.show(sweep, "What k samples a question give.")

# %% mystnb={"figure": {"caption": "Precision of the estimates (left) and the bias of the plug-in Brier score (right) against k, on the largest data set.", "name": "fig-k-eval"}} paper=["figure-6", "appendix-b.1", "equation-16"] evidence=["measured"] reads=["verdicts"]
figures.k_eval(sweep) if len(sweep) else study

# %% [markdown]
# ## Bias
#
# More samples also seem to make every method better: the plug-in Brier score falls as $k$ grows. That is not
# calibration. The score compares with $\hat\mu$ instead of $\mu$, and so adds the estimate's own variance,
# $\mathbb{E}[\mu(1-\mu)]/k$, to every method alike. The corrected score subtracts an unbiased estimate of it,
# $\hat\mu(1-\hat\mu)/(k-1)$, and is flat in $k$. The column *floor* is what a perfect estimator scores by the plug-in
# form.

# %%
gap = (
    sweep.iloc[0]
    if len(sweep)
    else {"plug-in": float("nan"), "corrected": float("nan"), "k": 0}
)
notebook.glue(smallest=int(gap["k"]), bias=gap["plug-in"] - gap["corrected"])

# %% [markdown]
# At {glue:text}`smallest` samples a question the bias is {glue:text}`bias:.3f`, on a scale on which methods differ by
# hundredths.
#
# ## Intervals that keep their word
#
# The paper names the Wald interval's weakness near 0 and 1, where language models often are. A simulation with known
# $\mu$ shows how large it is.

# %%
mus = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5]
covered = tables.coverage(mus, k_eval, study.rng)

# %% mystnb={"figure": {"caption": "How often 95 % intervals cover mu (simulated). Wald fails where mu is close to 0; by symmetry, also close to 1.", "name": "fig-coverage"}} paper=["appendix-b.1"] evidence=["simulated"]
figures.coverage(covered)

# %%
by_method = covered.groupby("method")["coverage"].min()
notebook.glue(wald=by_method["wald"], jeffreys=by_method["jeffreys"])

# %% [markdown]
# At its worst among these $\mu$, Wald covers {glue:text}`wald:.2f` of the time and Jeffreys {glue:text}`jeffreys:.2f`. This
# book uses Jeffreys for single questions and the bootstrap over questions for means.
# [What an interval for μ is worth](21_interval_coverage.ipynb) sums the coverage exactly, for all $\mu$.
#
# ## Stopping when it is narrow enough
#
# Questions near 0 or 1 need fewer samples than the worst case. `capcal sample --precision 0.05 --k 100` looks at a
# question after every ten samples, and stops once half the width of its Jeffreys interval is at most 0.05, or at 100
# samples. But a rule that looks at the outcomes chooses among them. What it does to the estimate of a known $\mu$ is
# computed here exactly, by counting the orders of outcomes that lead to each end.

# %%
from capcal_lib.sampling.stopping import Rule, behaviour

rule = Rule(precision=precision, k=k_eval)
known = behaviour(rule, np.linspace(0, 1, 101))

# %% mystnb={"figure": {"caption": "Stopping early, for known mu (simulated): the samples it takes, the bias of both estimates, and how often the interval holds mu.", "name": "fig-stopping"}}
figures.stopping(known, rule)

# %%
worst = known.loc[known["bias"].abs().idxmax()]
notebook.glue(
    stop_mu=worst["mu"],
    stop_bias=abs(worst["bias"]),
    score_bias=known["score bias"].max(),
    stop_covers=known["coverage"].mean(),
    fixed_covers=known["fixed coverage"].mean(),
    stop_worst=known["coverage"].min(),
    fixed_worst=known["fixed coverage"].min(),
)

# %% [markdown]
# $c/n$ is pulled outward, to the side where questions stop: by up to {glue:text}`stop_bias:.4f`, near
# $\mu$ = {glue:text}`stop_mu:.2f` and its mirror image. The corrected Brier score of a perfect confidence, which should
# be 0, is off by up to {glue:text}`score_bias:.5f`, and that of a confidence far from $\mu$ by more. The interval holds
# $\mu$ in {glue:text}`stop_covers:.3f` of all cases on average over $\mu$, and in {glue:text}`stop_worst:.3f` at worst;
# at a fixed number of samples it is {glue:text}`fixed_covers:.3f` and {glue:text}`fixed_worst:.3f`.
#
# There is an estimate without bias {cite:p}`girshick1946unbiased`: of all orders of outcomes that lead to the same end,
# take the share that begins with a correct sample. The first sample is fair, whatever happens later. The share that begins
# with two gives $\mu^2$, and so a Brier score without bias. Its price is a larger error where questions stop soon.
#
# Here the rule is applied to the samples behind this page, in random order.

# %%
replayed = tables.stopping_table(study.evaluations, rule, study.rng)
tables.show(
    replayed,
    "What the rule would have saved, and what it does to the estimates.",
    samples="{:,.0f}",
    saved="{:.0%}",
)

# %% [markdown]
# The columns after *saved* are the mean expected accuracy by all samples, and at the stop by $c/n$ and by the unbiased
# estimate; then the Brier score of a constant confidence of ½ in the same three ways. `Rule.unbiased` and
# `Rule.brier_terms` compute them from the counts at the stop, which `stopped_counts` takes from the verdicts of a run.
#
# ## Summary
#
# - Stopping early saves samples where $\mu$ is near 0 or 1. Its bias is small, known, and can be taken off.
# - $k_\text{eval}$ sets the precision of one question's $\hat\mu$; the number of questions sets that of a mean.
# - The plug-in Brier score punishes every method for the noise of $\hat\mu$. Correct it, rather than sampling more.
# - Near 0 and 1, where many questions are, Wald intervals are too short.
#
# ## Exercises
#
# 1. At which $k$ does the plug-in bias fall below 0.001 for your model? Derive it from the correctness variance.
# 2. The bias is the same for every method. Why does it still matter when methods are compared across papers?
# 3. Run the page with `-p precision 0.1`. What is saved, and what happens to the bias?
# 4. Add `0.999` to the values of $\mu$. What do the four intervals do, and why?
