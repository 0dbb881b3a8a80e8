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
# recorded samples, and the shift of every score is shown.

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

# %% tags=["hide-input"]
from capcal_lib.book import notebook, style, tables
from capcal_lib.errors import InputError
from capcal_lib.grading import judge_agreement, judges
from capcal_lib.manifests import load_dataset
from capcal_lib.probes import read_predictions
from capcal_lib.results import (
    MISSING_AS,
    brier_terms,
    describe_runs,
    load_results,
    methods,
)

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval)
notebook.about(model, data)

# %% tags=["hide-input"]
# needs samples
ours = load_results(runs, model, k_eval=k_eval, k_c=k_c)
evidence = data["evidence"].iloc[0]


# %% tags=["hide-input"]
def means(terms):
    """Return the mean term of each data set and method, as one column."""
    by_set = terms.groupby(level="dataset", sort=False).mean()
    return by_set.rename_axis(columns="method").stack().dropna()


# %% tags=["hide-input"]
# needs samples
base = means(brier_terms(ours))
switched = {}


# %% [markdown] needs="samples"
# Of the switches, *{glue:text}`most`* shifts the scores that it touches most, by {glue:text}`most_points:.3f` on average.
# All switches together shift a score by {glue:text}`together:.3f` on average, and by up to {glue:text}`farthest:.3f`
# ({glue:text}`farthest_at`).
#
# ## Five switches
#
# *Plug-in* leaves the noise of $\hat\mu$ in the score:

# %%
# needs samples
terms = brier_terms(ours, protocol="paper")
there = (
    ours[methods(ours)].notna().reindex(columns=terms.columns, fill_value=True)
)
switched["plug-in scores"] = means(terms.where(there))

# %% [markdown] needs="samples"
# *Missing as 0.5* gives a question without a confidence one half, on data sets where the method was asked at all:

# %%
# needs samples
asked = ours.groupby(level="dataset").transform("count") > 0
filled = ours.fillna(MISSING_AS).where(asked)
switched["missing as 0.5"] = means(brier_terms(filled))

# %% [markdown] needs="samples"
# *Votes in the pool* take the samples that vote from those that define $\hat\mu$:

# %%
# needs samples
pooled = {"k_eval": k_eval, "k_c": k_c, "held_out": False}
pool = load_results(runs, model, **pooled)
switched["votes in the pool"] = means(brier_terms(pool))

# %% [markdown] needs="samples"
# *Paper's probes* are trained by its recipe; the score is the mean of its five splits:

# %%
# needs samples
counts = ours[["correct", "total"]]
splits = [
    read_predictions(runs, model, recipe="paper", split=split)
    for split in range(5)
]
splits = [means(brier_terms(counts.assign(**each))) for each in splits]
switched["paper's probes"] = pd.concat(splits, axis=1).mean(axis=1)


# %% [markdown] needs="samples"
# *A judge's verdicts* can be switched on where a judge has judged every answer, which is so on {glue:text}`judged` of
# these data sets. The rules and a judge agree on {glue:text}`judge_said`. The lower Cohen's κ, the more of the shift is the
# judge's own error. [Grading](13_grading.ipynb) compares the two where only a part is judged.


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
    switched["a judge's verdicts"] = (
        pd.concat(judged.values()).groupby(level=[0, 1]).mean()
    )
notebook.glue(judge_said=", ".join(said) or "nothing, as none has judged all")

# %% [markdown] needs="samples"
# ## The shift of each
#
# A shift above zero makes the score worse. Cells that a switch does not touch are left out.

# %% tags=["hide-input"]
# needs samples
paper = pool.drop(columns=[name for name in ours if name.startswith("Probe")])
own_probes = read_predictions(runs, model, recipe="paper")
whole = brier_terms(paper.join(own_probes), protocol="paper")
switched["all together"] = means(whole)
shifts = pd.DataFrame(switched).sub(base, axis="index")
long = (
    shifts.rename_axis(columns="switch").stack().rename("shift").reset_index()
)
long = long[long["shift"].abs() > 1e-12]

# %% tags=["remove-cell"]
# needs samples
size = long["shift"].abs().groupby(long["switch"], sort=False).mean()
alone = size.drop(["all together", "a judge's verdicts"], errors="ignore")
row = long.loc[
    long["shift"].abs().where(long["switch"] == "all together").idxmax()
]
notebook.glue(most=alone.idxmax(), most_points=alone.max())
notebook.glue(together=size["all together"], farthest=abs(row["shift"]))
where = f"{row['method']} on {load_dataset(row['dataset']).title}"
notebook.glue(farthest_at=where, judged=len(judged))

# %% tags=["hide-input"] mystnb={"figure": {"caption": "The shift of every score (one dot per data set and method) when one correction is switched off, and when all are. Right of zero a score becomes worse.", "name": "fig-protocol"}, "image": {"alt": "Strip plot with a row for each switch. Plug-in scores shift methods right and Oracle CC not at all; votes in the pool and missing confidences move few dots; the paper's probes spread widest."}} paper=["section-4.1", "table-5", "table-6"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
look = {"color": style.INK, "alpha": 0.4, "order": list(switched)}
axes = sns.stripplot(long, x="shift", y="switch", jitter=False, **look)
axes.axvline(0, color=style.MUTED, zorder=0)
_ = axes.set(xlabel="shift of the capability Brier score", ylabel="")

# %% tags=["hide-input"] label="protocol-shifts" paper=["section-4.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
by_switch = long.groupby("switch", sort=False)["shift"]
table = by_switch.agg(cells="size", mean="mean", lowest="min", highest="max")
table = table.reindex(list(switched)).dropna().astype({"cells": int})
tables.show(
    table.rename_axis("switched back"),
    "Shift of the score by each switch, over data sets and methods.",
    digits=4,
    evidence=evidence,
)

# %% [markdown] needs="samples"
# The noise that *plug-in* leaves in is the same for every confidence, so it changes no order among them; the other switches
# can. A page takes all of them at once with `-p protocol paper`, and a judge's verdicts with `-p verdicts judge:MODEL`.
#
# ## Predictions of pass@k
#
# Two more concern [pass@k](05_pass_at_k.ipynb): the oracle knows the very samples that it is scored on, and $k$ goes up
# to the number of samples, where the measured pass@$k$ is itself noisy. On {glue:text}`shown`, with $\hat\mu$ as the
# confidence:

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

# %%
# needs samples
known, held_out = split_counts(c, n, rng=np.random.default_rng(seed))
honest = simulate_pass_at_k(known[0] / known[1], ks)
honest_error = pass_at_k_error_terms(honest, *held_out, ks).mean(axis=0)

# %% tags=["hide-input"] label="protocol-pass-at-k" paper=["table-3", "table-8"] evidence=["measured"] reads=["verdicts"]
# needs samples
notebook.glue(shown=load_dataset(spread.idxmax()).title)
oracles = {"in sample": paper_error, "known half, other half": honest_error}
tables.show(
    pd.DataFrame(oracles, [f"pass@{k}" for k in ks]).T.rename_axis("oracle"),
    "Squared error of Oracle CC (lower is better).",
    digits=4,
    evidence=evidence,
)

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
