# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The paper, audited
#
# Recomputes what the paper's tables say about each other and about its text, and shows what known defects of the
# reference implementation do to a number. It concerns tables 2 to 8, theorem 2 and figures 3, 5, 6, 9 and 10.
#
# - **You will learn** how much can be checked without a single sample, and which results stand.
# - **You need** nothing but this repository: no GPU, no network. It takes less than a minute.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %%
from capcal_lib.book import audit, claims, defects, notebook
from capcal_lib.manifests import ROOT
from capcal_lib.results import tables

study = notebook.open_study(globals())
runs = ROOT / store
study

# %% [markdown]
# ## A printed number is a range
#
# A score printed as 0.0831 is some number from 0.08305 to 0.08315. Below, two printed numbers *agree* when some pair of
# values from their ranges does, computed in fractions. Three numbers share one quantity, the mean of $\mu(1-\mu)$: the
# uniform baseline is one third less it, the pass@1 error of Oracle RC estimates it, and by theorem 2 it separates
# response from capability scores. What follows from printed numbers by arithmetic alone keeps the mark *reported*.
#
# ## Theorem 2, completed
#
# The paper prints no correctness variance. It follows from the uniform baseline for all 21 cells, and with it the
# expected response Brier score of every method.

# %% label="audit-theorem-2" paper=["theorem-2", "table-2", "equation-10"] evidence=["reported"] reads=["main"]
completed = audit.theorem_2_reported()
tables.show(
    completed,
    "Correctness variance of the paper's cells, and what follows.",
)

# %% [markdown]
# The variance is also what one graded sample, Oracle RC, scores as a confidence. It needs the right answer and is no
# rival; it is a yardstick.

# %%
beaten = int((completed["below variance"] > 0).sum())
least, most = completed["variance"].min(), completed["variance"].max()
notebook.glue(beaten=beaten, cells=len(completed), least=least, most=most)

# %% [markdown]
# The variance runs from {glue:text}`least:.3f` to {glue:text}`most:.3f`. In {glue:text}`beaten` of {glue:text}`cells` cells
# some method that sees only the question does better than it.
#
# ## Mean accuracy against the baseline
#
# A data set of mean accuracy $m$ has a variance of at most $m(1-m)$. A table that broke this would be wrong somewhere.

# %% label="audit-means" paper=["table-4", "appendix-b.3"] evidence=["reported"] reads=["main", "mean_accuracy"]
means = audit.mean_accuracies()
tables.show(means, "The variance and its bound.")

# %%
notebook.glue(possible=int((means["possible"] == "yes").sum()))

# %% [markdown]
# All {glue:text}`possible` of {glue:text}`cells` are possible. AIME25 has 30 questions, and 3,000 samples can only give
# certain means:

# %% label="audit-counts" paper=["table-4"] evidence=["reported"] reads=["mean_accuracy"]
tables.show(audit.countable_means(), "Whole counts behind the printed means.")

# %% [markdown]
# ## Oracle RC against the baseline

# %% label="audit-oracle-rc" paper=["table-3", "table-8", "equation-11"] evidence=["reported"] reads=["main", "passk_math500", "passk_aime25"]
shared = audit.shared_variance()
tables.show(shared, "The same variance, printed in two tables.")

# %%
unexplained = int((shared["rounding explains"] == "no").sum())
notebook.glue(unexplained=unexplained, widest=shared["sds"].abs().max())

# %% [markdown]
# Rounding alone does not explain {glue:text}`unexplained` of the six differences. But Oracle RC is drawn at random,
# and the largest difference is {glue:text}`widest:.2f` of the largest standard deviation that one draw can have. Nothing
# here contradicts the tables; with the exact expectation in the place of the draw they would agree to the last digit.
#
# ## One mean, printed twice
#
# At $k = 1$ the pass@k error of a confidence *is* its Brier score.

# %% label="audit-twice" paper=["table-2", "table-3", "table-8"] evidence=["reported"] reads=["main", "passk_math500", "passk_aime25"]
twice = audit.same_quantity()
tables.show(twice, "Brier score and pass@1 error of Probe (MATH).")

# %%
says = twice["the two are"].value_counts()
notebook.glue(equal=int(says["equal"]), differ=int(says["different"]))
notebook.glue(pairs=len(twice), excess=twice["excess"].max())

# %% [markdown]
# Of {glue:text}`pairs` pairs, {glue:text}`equal` are equal and {glue:text}`differ` differs, by at least
# {glue:text}`excess:.4f`; a pair may also meet only on the edge between two roundings. Where they differ, the two tables
# must have been made from different runs of the probe or of its targets; the paper does not say which is meant.
#
# ## An oracle on its own samples
#
# Oracle CC predicts pass@1 by $\hat\mu$ and is scored on the same $\hat\mu$: zero by definition. What would it score on
# others?

# %% label="audit-oracle-cc" paper=["table-3", "table-8"] evidence=["reported"] reads=["main", "passk_math500", "passk_aime25"]
tables.show(audit.oracle_in_sample(), "Oracle CC at k = 1, in sample and not.")

# %% [markdown]
# Small numbers, but not zero: this is the resolution of a hundred samples. On this page's runs, with half the samples
# for the oracle and half to score it:

# %%
halves = audit.oracle_halves(study.evaluations, study.rng)
tables.show(halves, "Oracle CC on unseen samples, and in sample.")

# %% [markdown]
# ## What the text says, and what the tables bear out
#
# Each claim is taken apart into comparisons of two printed numbers. Its own wording decides how many must hold: *every*
# one; *most*, where it says "generally" or "often"; *some*, where it denies that something is always so. Where no number
# bears on a claim, or rounding hides which is lower, it *cannot be told*.

# %% label="audit-claims-methods" paper=["section-4.3.2", "table-2"] evidence=["reported"] reads=["main"]
main_claims = claims.judged(claims.main_table_claims())
tables.show(main_claims, "Section 4.3 and table 2.")

# %% label="audit-claims-appendix" paper=["appendix-b.1", "appendix-c.2", "appendix-c.3", "appendix-c.4", "table-6", "table-7"] evidence=["reported"] reads=["main", "consistency", "mixing"]
appendix_claims = claims.judged(claims.appendix_claims())
tables.show(appendix_claims, "Appendices B and C.")

# %% [markdown]
# The standard error of 0.0056 that the paper names is that of the *mean* over 30 questions. One question's $\hat\mu$ is
# known to several hundredths at best, which is what matters for its Brier term.

# %% label="audit-claims-applications" paper=["section-5", "section-5.1", "section-5.2", "appendix-d", "figure-5", "figure-10", "table-3", "table-8"] evidence=["reported"] reads=["main", "passk_math500", "passk_aime25", "budget"]
application_claims = claims.judged(claims.application_claims())
tables.show(application_claims, "Section 5 and appendix D.")

# %%
verdicts = tables.stack([main_claims, appendix_claims, application_claims])
found = verdicts["verdict"].value_counts()
notebook.glue(claims=len(verdicts), supported=int(found["supported"]))
notebook.glue(
    refused=int(found["not supported"]), open=int(found["cannot be told"])
)

# %% [markdown]
# Of {glue:text}`claims` claims, {glue:text}`supported` are supported, {glue:text}`refused` are not as worded, and
# {glue:text}`open` cannot be told. Several of the unsupported ones say "all" or "consistently" where the table has an
# exception; the paper's main findings do not rest on them. What does weigh is AIME25: there the probe seldom
# beats one graded sample, and a lower Brier score did not always mean a better budget.
#
# ## The variance a third way
#
# The authors later published Brier scores against $k_\text{eval}$. The plug-in score at $k$ samples is too high by
# mean $\mu(1-\mu)/k$, so the drop along the curve measures the variance again. These numbers are read off a figure and
# belong to the paper's generation of samples, except gpt-oss-20b on MATH-500, whose labels were collected again.

# %% label="audit-slopes" paper=["figure-6", "appendix-b.1"] evidence=["reported"] reads=["main", "k_eval_curve"]
slopes = audit.k_eval_slope()
tables.show(slopes, "Variance from the baseline and from the curve.")

# %%
agree = int((slopes["reading explains"] == "yes").sum())
far = int((slopes["difference"].abs() > 0.005).sum())
notebook.glue(agree=agree, far=far)

# %% [markdown]
# In {glue:text}`agree` cells the two agree as closely as the figure can be read, and in {glue:text}`far` they are further
# than 0.005 apart: there the curve was made from other samples, or the baseline was.
#
# ## Ten draws for all questions
#
# What a budget solves is simulated in the reference implementation with ten draws. The generator starts afresh for every
# question and the outcomes are sorted, so all questions draw the same positions. One sample a question must solve the
# mean accuracy. It does not:

# %% label="audit-one-sample" paper=["figure-5", "figure-10"] evidence=["reported"] reads=["budget", "mean_accuracy"]
once = audit.one_sample_each()
tables.show(
    once, "Even spending at one sample a question, read off a figure.", digits=3
)

# %% [markdown]
# The same on this page's runs, with the ten seeds of the reference and with the exact expectation:

# %%
single = defects.shared_draws(study.evaluations, 1)
tables.show(single, "Success at one sample a question.")

# %%
four = defects.shared_draws(study.evaluations, 4)
tables.show(four, "Success at four samples a question.")

# %%
notebook.glue(points=once["points"].mean(), here=100 * single["effect"].mean())

# %% [markdown]
# At one sample the published curves are {glue:text}`points:.1f` points too high on average, and the same rule is
# {glue:text}`here:.1f` points too high here. All methods share the draws, so the order of the curves suffers less than
# their height.
#
# ## A confidence of one in no bin
#
# Two of the reference's scripts leave the last bin of the calibration error open. A confidence of exactly 1 is then in
# no bin, and counts as perfect.

# %%
tables.show(
    defects.open_last_bin(study.evaluations),
    "Calibration error of verbalized confidence.",
)

# %% [markdown]
# ## Votes that are also the target
#
# The reference draws the votes of response consistency from the samples that define $\hat\mu$. Here the same votes are
# scored on all samples, and on the others only. [How many votes?](07_response_consistency.ipynb) measures the difference
# for other numbers of votes, with intervals.

# %%
tables.show(
    defects.votes_in_the_target(study.evaluations, runs, k_eval=k_eval),
    "Corrected Brier score of ten votes.",
)

# %% [markdown]
# Besides, it groups answers by their exact text, and lets "no answer" be an answer:

# %%
tables.show(
    defects.answers_as_texts(study.evaluations, runs, k_eval=k_eval),
    "Corrected Brier score by how votes are grouped.",
)

# %% [markdown]
# The effect may go either way: taking apart answers that are the same lowers a confidence, which helps a model that
# is too sure.
#
# ## Gaps filled with one half
#
# Where a method says nothing, the reference scores 0.5. Here one confidence in five is hidden at random.

# %%
tables.show(
    defects.filled_gaps(study.evaluations, study.rng),
    "Corrected Brier score of the in-domain probe.",
)

# %% [markdown]
# ## Labels copied into the wrong file
#
# Estimates that keep a copy of their labels can keep those of another model. It happened: the authors later corrected
# scores for it. Here this page's verbalized confidences meet the counts of another recorded model.

# %%
from capcal_lib.results.evaluation import evaluated, load_evaluation

other = "smollm2-135m" if model == "simulated" else "simulated"
recorded = [one.dataset.name for one in study.evaluations if one.sampled]
others = [
    load_evaluation(runs, other, name)
    for name in evaluated(runs, other)
    if name in recorded
]

# %%
tables.show(
    defects.labels_of_another(study.evaluations, others),
    "Corrected Brier score on another model's labels.",
)

# %% [markdown]
# ## Settings chosen on the test questions
#
# The released scripts choose the epoch and the settings of two probes on the questions that they are then scored on.
# Here the best of ten settings on one half of the questions is scored on that half, and on the other.

# %%
tables.show(
    defects.chosen_on_the_test(study.evaluations, runs, study.rng),
    "Corrected Brier score of the chosen probe.",
)

# %% [markdown]
# ## Reading an answer
#
# The reference's first pass reads and compares answers by patterns. Made-up responses show how:

# %%
tables.show(defects.readings(), "Verdicts on made-up responses.")

# %% [markdown]
# For mathematics and short answers a language model judged again, so the published labels do not have these faults;
# they have those of a judge that is asked once, at temperature 1, and keeps no record. The effect of the patterns on
# the accuracy of this page's model:

# %%
tables.show(
    defects.loose_grading(study.evaluations, runs, k_eval=k_eval),
    "Mean expected accuracy by the patterns and by our grading.",
)

# %% [markdown]
# ## Cut, not scaled
#
# Where there are more samples than wanted, the reference cuts the number of correct ones at the new total, instead of
# drawing anew or scaling. A question solved half the time becomes one that is always solved:

# %%
correct, total, wanted = 100, 200, 100
old, right = min(correct, wanted) / wanted, correct / total
notebook.glue(cut=old, kept=right)

# %% [markdown]
# {glue:text}`cut:.1f` in the place of {glue:text}`kept:.1f`.
#
# ## Later numbers
#
# What the authors published after the paper is kept apart from it, with its generation: *G1* are the paper's samples,
# *G2* and *G3* were collected again, and *G3* has other questions. Numbers of two generations do not compare.

# %%
later = tables.reported_later(study.model.name)
tables.show(
    later, "Published later.", empty="nothing was published of this model"
)

# %% [markdown]
# ## Summary
#
# - With rounding and the draws of the oracle taken into account, the paper's tables agree with each other almost
#   everywhere.
# - Most of what the text says is borne out. "Always" should often read "mostly".
# - The defects move numbers by hundredths, which is as far as methods lie apart. None of them is hard to avoid.
#
# ## Exercises
#
# 1. Which claim would change its verdict if *most* meant three quarters?
# 2. The uniform baseline is printed with four digits. How many would be needed to find an error of one question in 500?
# 3. Run this page for `simulated`, whose confidences are good. Which defects matter more, and which less?
