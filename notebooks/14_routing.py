# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Routing questions to a small or a large model

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`; all are shown
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: with the probes of its recipe
verdicts: str = "rules"  # or judge:MODEL, of the model's own samples

# %% tags=["hide-input"]
from functools import cache
from itertools import combinations

import matplotlib.pyplot as plt
import pandas as pd
from capcal_lib import plots
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.metrics import holm, judge_gain
from capcal_lib.probes import nearest_probe
from capcal_lib.results import (
    columns_of,
    keep_nearest_probe,
    load_results,
    mean_over_probes,
    methods,
    subjects,
)
from capcal_lib.runs import read_samples

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
described = notebook.measured_models(runs, data, k_eval)
recipe = "paper" if protocol == "paper" else "tuned"
judges = dict.fromkeys(described, "rules") | {model: verdicts}
size = {name: (load_model(name).parameters or 0) / 1e9 for name in described}
shared = [
    (small, large, dataset)
    for small, large in combinations(described, 2)
    for dataset in described[small].index.intersection(described[large].index)
]
none = {
    "runs": "No two models of this store have solved a question of one data set."
}
notebook.about(data, {} if shared else none)

# %% [markdown] needs="runs"
# Where a small model will do, a large one need not be paid for. Can a probe tell? The paper names routing in section 5.3 and
# does not try it. Here the router sends to the large model the half of the questions on which a probe of the small model says
# least. A question costs parameters times tokens, read and written, and the small model has to read the prompts that are sent
# on, where the probe looks. The rival is *random mixing*, which sends a random share of the questions to the large model, as
# many as cost the same.


# %% tags=["hide-input"]
# needs runs
@cache
def load_set(name, dataset):
    """Return accuracies, costs and the nearest probe of a model on a data set."""
    options = {"k_eval": k_eval, "recipe": recipe, "verdicts": judges[name]}
    subset = load_results(runs, name, datasets=[dataset], **options)
    probe = nearest_probe(methods(subset), dataset)
    subset = keep_nearest_probe(subset, dataset)
    samples = read_samples(described[name]["run"][dataset])
    tokens = ["prompt_tokens", "completion_tokens"]
    tokens = samples.groupby("question_id")[tokens].mean() * size[name]
    subset = subset.query("total > 1").droplevel("dataset").join(tokens)
    rate = subset["correct"] / subset["total"]
    return subset.assign(
        rate=rate,
        cost=subset[tokens.columns].sum(axis=1),
        router=probe,
    )


# %% [markdown] needs="runs"
# What random mixing would solve for the router's cost depends on the mean rates and costs of both models, and those are
# estimated from the same questions. So each question counts with its share of both: what is solved there, less what mixing
# solves there in the same share, and less the price of what the question costs more than mixing does. The mean is the gain,
# and the spread holds the error of the price too.


# %%
# needs runs
def route(small, large, confidence):
    """Gain over random mixing at equal cost, by question, in questions of a hundred."""
    sent = confidence.rank(method="first") <= len(small) / 2
    solved = small["rate"].where(~sent, large["rate"])
    cost = small["cost"].where(~sent, large["cost"] + small["prompt_tokens"])
    dearer = large["cost"].mean() - small["cost"].mean()
    price = (large["rate"].mean() - small["rate"].mean()) / dearer
    share = (cost - small["cost"]).mean() / dearer
    mixed_rate = (1 - share) * small["rate"] + share * large["rate"]
    mixed_cost = (1 - share) * small["cost"] + share * large["cost"]
    return 100 * (solved - mixed_rate - price * (cost - mixed_cost))


# %%
# needs runs
evidence = notebook.evidence_of(*described.values())
cases = {}
for small_name, large_name, dataset in shared:
    small, large = load_set(small_name, dataset), load_set(large_name, dataset)
    both = small.index.intersection(large.index)
    small, large = small.loc[both], large.loc[both]
    probes = small[columns_of(small, "Probe")]
    known = probes.size and probes.notna().all(axis=None)
    if known and (small["rate"] + large["rate"]).any():
        pair = f"{size[small_name]:.2g}B to {size[large_name]:.2g}B"
        cases[dataset, pair] = small, large

# %% tags=["hide-input"]
# needs runs
notebook.lack(not cases, **none)

# %% [markdown] needs="runs"
# Subjects are drawn whole, and all cases are judged together by Holm's method. A gain has no bound that is known beforehand, so
# that the largest of a case stands for it, on either side.

# %%
# needs runs
rows = {}
for (dataset, pair), (small, large) in cases.items():
    # By protocol=paper a probe is five, and the gain their mean.
    each = {
        s: route(small, large, small[s]) for s in columns_of(small, "Probe")
    }
    gain = mean_over_probes(pd.DataFrame(each))["Probe"]
    groups = subjects(pd.concat({dataset: gain}, names=["dataset"])).to_numpy()
    bounds = -gain.abs().max(), gain.abs().max()
    row = judge_gain(gain, clusters=groups, bounds=bounds)
    row["probe"] = small["router"].iloc[0]
    rows[load_dataset(dataset).title, pair] = row
routed = pd.DataFrame(rows).T.infer_objects().rename_axis(["data set", "pair"])
routed = holm(routed)

# %% tags=["finding"]
# needs runs
notebook.finding(
    """
With the nearest probe as a router, significantly more is solved than by random mixing at equal cost in {better} of {cases}
cases, and less in {worse}.
""",
    better=int(routed["verdict"].eq("better").sum()),
    worse=int(routed["verdict"].eq("worse").sum()),
    cases=len(routed),
)

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Gain over random mixing at equal cost, in questions solved of a hundred, with 95 % intervals; right of the line the router is better, which sends half of the questions on. Filled: significant when all cases are judged together; hollow: cannot tell, because the questions are too few for the difference.", "name": "fig-routing"}, "image": {"alt": "Dot plot with an interval for each data set and pair of models, around a line at zero."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "features"]
# needs runs
figsize = style.WIDTH, 1 + 0.25 * len(routed)
axes = plt.subplots(figsize=figsize, layout="constrained")[1]
names = [f"{title}, {pair}" for title, pair in routed.index]
plots.mark_verdicts(axes, names, routed, color=plots.INK)
axes.invert_yaxis()
axes.axvline(0, color=plots.INK)
_ = axes.set(xlabel="solved of a hundred, against random mixing", ylabel="")

# %% label="routing-gains" tags=["hide-input"] paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "features"]
# needs runs
tables.show(
    routed.drop(columns=["p", "p (Holm)"]),
    "Gain over random mixing at equal cost, in questions solved of a hundred.",
    evidence=evidence,
    digits=1,
)

# %% [markdown]
# ## Summary
#
# - Compare a router with random mixing at equal cost, with everything that it asks paid for.
# - A price that is estimated has an error, which belongs to the interval of what is bought for it.
# - Where answers are short, reading is the cost, and a model that is asked anything has read the prompt.
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

# %% [markdown] needs="runs"
# **3 (hard).** What would a router gain that knew the small model's expected accuracy in place of a probe? Is it the probe that
# fails, or the idea? *Hint:* put `rate` in the place of `probe`, on the last case.

# %% tags=["hide-cell", "solution"]
# The last case, routed by the probe and by the expected accuracy
# needs runs
small, large = [*cases.values()][-1]
oracle = route(small, large, small["rate"]).mean()
probe = route(small, large, small[columns_of(small, "Probe")[0]]).mean()
{"probe": round(probe, 1), "oracle": round(oracle, 1)}
