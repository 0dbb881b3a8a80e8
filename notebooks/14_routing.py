# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Routing questions to a small or a large model
#
# [Before](13_selective_prediction.ipynb) a model did not answer where its confidence was low. A larger model may answer there:
# does a probe of the small model tell which questions to send on?

# %% tags=["parameters"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`; all are shown
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with the probes of its recipe
verdicts: str = "rules"  # or judge:MODEL, of the model's own samples

# %% tags=["provenance"]
import matplotlib.pyplot as plt
from capcal_lib import plots
from capcal_lib.applications import routing_gains
from capcal_lib.book import style, tables
from capcal_lib.book.lesson import evidence_of, open_page
from capcal_lib.results import columns_of
from capcal_lib.results.routing import compare_routers, questions_of_pair

page = open_page(globals())

# %% [markdown]
# Where a small model will do, a large one need not be paid for. The paper names routing in section 5.3 and does not try it. Here
# the router sends to the large model the half of the questions on which a probe of the small model says least. Its rival is
# *random mixing*, which sends on a random share of the questions, as large as costs the same.
#
# `compare_routers` takes every pair of models on every data set that both have answered, and judges all these cases together by
# Holm's method. A gain has no bound that is known beforehand: the largest that a case shows, on either side, stands for it.

# %%
models = page.measured_models()
results = {name: page.results(name) for name in models}
routed = compare_routers(results, models)
if routed.empty:
    page.end(
        "No two models of this store have solved a question of one data set."
    )
routed[["estimate", "low", "high"]] *= 100  # questions of a hundred
counts = routed["verdict"].value_counts()
counts

# %% tags=["finding"]
page.finding(
    "With the nearest probe as a router, significantly more is solved than by random mixing at equal cost in {better} of {cases} "
    "cases, and less in {worse}.",
    better=counts["better"],
    worse=counts["worse"],
    cases=len(routed),
)

# %% tags=["picture"] label="fig-routing" paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "features"] mystnb={"image": {"alt": "Dot plot with an interval for each data set and pair of models, around a line at zero."}}
cases = tables.titled(routed)
figsize = style.WIDTH, 1 + 0.25 * len(cases)
axes = plt.subplots(figsize=figsize, layout="constrained")[1]
names = cases["dataset"] + ", " + cases["pair"]
plots.mark_verdicts(axes, names, cases, color=plots.INK)
axes.invert_yaxis()
axes.axvline(0, color=plots.INK)
_ = axes.set(xlabel="solved of a hundred, against random mixing", ylabel="")

# %% [markdown] tags=["caption"]
# Gain over random mixing at equal cost, in questions solved of a hundred, with 95 % intervals; right of the line the router is
# better, which sends half of the questions on. Filled: significant when all cases are judged together; hollow: cannot tell,
# because the questions are too few for the difference.

# %% label="routing-gains" paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "features"]
columns = ["dataset", "pair", "estimate", "low", "high", "verdict", "probe"]
page.show(
    routed[columns],
    "Gain over random mixing at equal cost, in questions solved of a hundred.",
    evidence=evidence_of(*models.values()),
    digits=1,
)

# %% [markdown]
# ## One router by hand
#
# Take the last case: what each model solves of a question, in expectation, and what it costs. A question costs parameters, in
# billions, times tokens, those that are read and those that are written.

# %%
last = routed.iloc[-1]
questions = questions_of_pair(
    results, models, last["small"], last["large"], last["dataset"]
)
questions.head()

# %% [markdown]
# The router sends on the half of the questions on which the probe says least. The small model has to read these too, since that
# is where the probe looks.

# %%
probe = questions[columns_of(questions, "Probe")[0]]
sent = probe.rank(method="first") <= len(questions) / 2
solved = questions["small"].where(~sent, questions["large"])
paid = questions["large cost"] + questions["reading"]
cost = questions["small cost"].where(~sent, paid)
solved.mean(), cost.mean()

# %% [markdown]
# What does random mixing solve for that cost? Each question more that it sends on costs as much more, on average, as the large
# model is dearer, and solves as much more as the large model is better: that is the *price* of a solved question.

# %%
means = questions.mean()
dearer = means["large cost"] - means["small cost"]
price = (means["large"] - means["small"]) / dearer
mixed = means["small"] + price * (cost.mean() - means["small cost"])
100 * (solved.mean() - mixed)

# %% [markdown]
# The price is estimated from the same questions, and an interval has to hold its error. `routing_gains` therefore counts each
# question with its share of both: what is solved there, less what mixing solves there in the same share, and less the price of
# what the question costs more than mixing does. The mean is the same. By the paper's recipe a probe is five, of which the first
# is shown here, and the table has their mean.

# %%
gains = 100 * routing_gains(probe, questions)
gains.mean(), gains.std() / len(gains) ** 0.5

# %% [markdown]
# ## Summary
#
# - Compare a router with random mixing at equal cost, with everything that it asks paid for.
# - A price that is estimated has an error, which belongs to the interval of what is bought for it.
# - Where answers are short, reading is the cost, and a model that is asked anything has read the prompt.
#
# [Next](15_benchmarking.ipynb): if a confidence is right on average, does its mean tell the accuracy of a model without labels?
#
# ## Exercises
#
# **1 (easy).** A large model costs five times a small one, and every question is read by the small one first, for a tenth of its
# cost. What share of the questions may be sent on before that costs more than asking the large model alone? *Hint:* what is
# sent on costs the reading and the large model, all else the small model.

# %% tags=["hide-cell", "solution"]
# The two costs, set equal, and solved for the share
round((5 - 1) / (5 + 0.1 - 1), 3)

# %% [markdown]
# **2 (medium).** A small model solves 0.4 of the questions at a cost of 1, a large one 0.6 at a cost of 3. A router sends half of
# them on, and reading them costs the small model 0.2 each. How much has it to solve to be as good as random mixing? *Hint:*
# what does a question more cost, in solved ones?

# %% tags=["hide-cell", "solution"]
# What the router spends, and what random mixing solves for that
spent = 1 + 0.5 * (3 + 0.2 - 1)  # what is sent is read twice, and answered once
round(0.4 + (0.6 - 0.4) / (3 - 1) * (spent - 1), 3)

# %% [markdown]
# **3 (hard).** A mark of the figure stands left of the line: is it the probe that fails there, or the idea of a router? *Hint:*
# what would a router gain in the last case that knew the small model's expected accuracy?

# %% tags=["hide-cell", "solution"]
# The last case, routed by the probe and by the expected accuracy: where that gains nothing, no confidence can
oracle = 100 * routing_gains(questions["small"], questions).mean()
{"probe": round(gains.mean(), 1), "oracle": round(oracle, 1)}
