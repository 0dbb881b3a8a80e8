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
seed: int = 0  # of all that is drawn here

# %%
from capcal_lib import figures, notebook, tables

study = notebook.open_study(globals())
study

# %% [markdown]
# ## Precision
#
# Given $\mu$, the number of correct samples is binomial, so $\hat\mu = c/k_\text{eval}$ has variance
# $\mu(1-\mu)/k_\text{eval}$. Asking for a Wald interval no wider than $\pm\varepsilon$ at the worst case
# $\mu = 1/2$ takes $k_\text{eval} \ge z^2 / 4\varepsilon^2$ samples.

# %% label="wald-sizes" paper=["equation-17", "equation-18"] evidence=["simulated"]
from capcal_lib.intervals import wald_sample_size

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
#
# ## Summary
#
# - $k_\text{eval}$ sets the precision of one question's $\hat\mu$; the number of questions sets that of a mean.
# - The plug-in Brier score punishes every method for the noise of $\hat\mu$. Correct it, rather than sampling more.
# - Near 0 and 1, where many questions are, Wald intervals are too short.
#
# ## Exercises
#
# 1. At which $k$ does the plug-in bias fall below 0.001 for your model? Derive it from the correctness variance.
# 2. The bias is the same for every method. Why does it still matter when methods are compared across papers?
# 3. Add `0.999` to the values of $\mu$. What do the four intervals do, and why?
