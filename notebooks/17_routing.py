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
# Where a small model will do, a large one need not be paid for. Can a probe tell? The paper names routing in section 5.3 and
# does not try it. The rival is named beforehand: *random mixing*, a random share of the questions sent to the large model.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`; all are shown
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat

# %% tags=["hide-input"]
from itertools import combinations

import pandas as pd
import seaborn as sns
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import mean_interval
from capcal_lib.probes import nearest_probe
from capcal_lib.results import describe_runs, load_results, subjects
from capcal_lib.runs import read_samples

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
described = {
    name: describe_runs(runs, name, k_eval=k_eval) for name in model_names()
}
size = {name: (load_model(name).parameters or 0) / 1e9 for name in described}
real = [
    name
    for name in sorted(described, key=size.get)
    if "measured" in set(described[name]["evidence"])
]
shared = [
    (small, large, dataset)
    for small, large in combinations(real, 2)
    for dataset in described[small].index.intersection(described[large].index)
]
none = {
    "runs": "No two models of this store have solved a question of one data set."
}
evidence = notebook.evidence_of(*(described[name] for name in real))
notebook.about(model, described[model], lacking={} if shared else none)

# %% [markdown] needs="runs"
# ## A router in a few lines
#
# A question costs parameters times tokens, read and written. The router sends to the large model the half of the questions
# on which a probe of the small model says least, and pays for the small model's reading of these prompts, where the probe
# looks. Mixing at random sends as many questions as cost the same. Gains are in questions solved of a hundred.


# %%
# needs runs
def load_set(name, dataset):
    """Return accuracies, costs and the nearest probe of a model on a data set."""
    own = load_results(runs, name, datasets=[dataset], k_eval=k_eval)
    probe = nearest_probe(map(str, own), dataset)
    samples = read_samples(described[name]["run"][dataset])
    tokens = ["prompt_tokens", "completion_tokens"]
    tokens = samples.groupby("question_id")[tokens].mean() * size[name]
    own = own.query("total > 1").droplevel("dataset").join(tokens)
    rate = own["correct"] / own["total"]
    return own.assign(
        rate=rate, cost=own[tokens.columns].sum(axis=1), probe=own.get(probe)
    )


# %%
# needs runs
def route(small, large, first):
    """Gain over random mixing at equal cost, by question; ``first`` go to the large model."""
    solved = small["rate"].where(~first, large["rate"])
    cost = small["cost"].where(~first, large["cost"] + small["prompt_tokens"])
    dearer = large["cost"].mean() - small["cost"].mean()
    rate = (large["rate"].mean() - small["rate"].mean()) / dearer
    return solved - small["rate"] - rate * (cost - small["cost"])


# %%
# needs runs
rows = {}
for small_name, large_name, dataset in shared:
    small, large = load_set(small_name, dataset), load_set(large_name, dataset)
    both = small.index.intersection(large.index)
    small, large = small.loc[both], large.loc[both]
    if small["probe"].isna().any() or not (
        small["rate"].any() or large["rate"].any()
    ):
        continue
    first = small["probe"].rank(method="first") <= len(small) / 2
    gain = route(small, large, first)
    groups = subjects(pd.concat({dataset: gain}, names=["dataset"]))
    pair = f"{size[small_name]:.2g}B to {size[large_name]:.2g}B"
    found = mean_interval(100 * gain, clusters=groups.to_numpy())
    rows[load_dataset(dataset).title, pair] = found._asdict()

# %% tags=["hide-input"]
# needs runs
notebook.lack(not rows, **none)

# %%
# needs runs
gains = pd.DataFrame(rows).T.rename_axis(["data set", "pair"])
better, worse = (gains["low"] > 0).sum(), (gains["high"] < 0).sum()

# %% tags=["finding"]
# needs runs
notebook.finding(
    """
Sending the half of the questions on which a probe of the small model says least to the large one solves significantly more than
random mixing at equal cost in {better} of {cases} cases, and significantly fewer in {worse}.
""",
    better=int(better),
    worse=int(worse),
    cases=len(gains),
)

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Gain over random mixing at equal cost, in questions solved of a hundred, with 95 % intervals; right of the line the router is better.", "name": "fig-routing"}, "image": {"alt": "Dot plot with an interval for each data set and pair of models, around a line at zero."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "features"]
# needs runs
long = gains.reset_index().melt(
    ["data set", "pair"], ["estimate", "low", "high"], "end", "gain"
)
long["case"] = long["data set"] + ", " + long["pair"]
axes = sns.pointplot(
    long,
    x="gain",
    y="case",
    linestyle="none",
    estimator="median",  # of a mean and its two limits
    errorbar=("pi", 100),
)
axes.axvline(0, color=style.INK)
_ = axes.set(xlabel="solved of a hundred, against random mixing", ylabel="")

# %% label="routing-gains" tags=["hide-input"] paper=["section-5.3"] evidence=["measured"] reads=["verdicts", "samples", "features"]
# needs runs
tables.show(
    gains,
    "Gain over random mixing at equal cost, in questions solved of a hundred.",
    evidence=evidence,
    digits=1,
)

# %% [markdown]
# ## Summary
#
# - Compare a router with random mixing at equal cost, with everything that it asks paid for.
# - Where answers are short, reading is the cost, and a model that is asked anything has read the prompt.
