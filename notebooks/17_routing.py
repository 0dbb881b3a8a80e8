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
    if "measured" in set(described[name]["evidence"]) and len(described[model])
]
shared = [
    (small, large, dataset)
    for small, large in combinations(real, 2)
    for dataset in described[small].index.intersection(described[large].index)
]
none = {
    "runs": "No two models of this store have solved a question of one data set."
}
notebook.about(model, described[model], lacking={} if shared else none)

# %% [markdown] needs="runs"
# Where a small model will do, a large one need not be paid for. Can a probe tell? The paper names routing in section 5.3 and
# does not try it. Here the router sends to the large model the half of the questions on which a probe of the small model says
# least. A question costs parameters times tokens, read and written, and the small model has to read the prompts that are sent
# on, where the probe looks. The rival was named beforehand: *random mixing*, which sends a random share of the questions to the
# large model, as many as cost the same.


# %% tags=["hide-input"]
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
def route(small, large):
    """Gain over random mixing at equal cost, by question, in questions of a hundred."""
    sent = small["probe"].rank(method="first") <= len(small) / 2
    solved = small["rate"].where(~sent, large["rate"])
    cost = small["cost"].where(~sent, large["cost"] + small["prompt_tokens"])
    dearer = large["cost"].mean() - small["cost"].mean()
    rate = (large["rate"].mean() - small["rate"].mean()) / dearer
    return 100 * (solved - small["rate"] - rate * (cost - small["cost"]))


# %%
# needs runs
evidence = notebook.evidence_of(*(described[name] for name in real))
gained = {}
for small_name, large_name, dataset in shared:
    small, large = load_set(small_name, dataset), load_set(large_name, dataset)
    both = small.index.intersection(large.index)
    small, large = small.loc[both], large.loc[both]
    if small["probe"].notna().all() and (small["rate"] + large["rate"]).any():
        pair = f"{size[small_name]:.2g}B to {size[large_name]:.2g}B"
        gained[dataset, pair] = route(small, large)

# %% tags=["hide-input"]
# needs runs
notebook.lack(not gained, **none)

# %% [markdown] needs="runs"
# Subjects are drawn whole. A case is decided where an interval at the level of all cases together, after Bonferroni, leaves out
# zero.

# %%
# needs runs
rows = {}
for (dataset, pair), gain in gained.items():
    groups = subjects(pd.concat({dataset: gain}, names=["dataset"])).to_numpy()
    strict = 1 - 0.05 / len(gained)
    _, low, high = mean_interval(gain, clusters=groups, level=strict)
    verdict = "better" if low > 0 else "worse" if high < 0 else "inconclusive"
    case = load_dataset(dataset).title, pair
    rows[case] = mean_interval(gain, clusters=groups)._asdict()
    rows[case]["verdict"] = verdict
gains = pd.DataFrame(rows).T.infer_objects().rename_axis(["data set", "pair"])

# %% tags=["finding"]
# needs runs
notebook.finding(
    """
A probe as a router solves significantly more than random mixing at equal cost in {better} of {cases} cases, and fewer in
{worse}.
""",
    better=int(gains["verdict"].eq("better").sum()),
    worse=int(gains["verdict"].eq("worse").sum()),
    cases=len(gains),
)

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Gain over random mixing at equal cost, in questions solved of a hundred, with 95 % intervals; right of the line the router is better. No case lies wholly right of it: what a probe knows does not pay for reading prompts twice.", "name": "fig-routing"}, "image": {"alt": "Dot plot with an interval for each data set and pair of models, around a line at zero."}} paper=["section-5.3", "appendix-d.3"] evidence=["measured"] reads=["verdicts", "samples", "features"]
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
#
# ## Exercises
#
# **1 (medium).** A small model solves 0.4 of the questions at a cost of 1, a large one 0.6 at a cost of 3. A router sends half of
# them on, and reading them costs the small model 0.2 each. How much has it to solve to be as good as random mixing? *Hint:*
# what does a question more cost, in solved ones?

# %% tags=["hide-cell", "solution"]
spent = 1 + 0.5 * (3 + 0.2 - 1)  # what is sent is read twice, and answered once
round(0.4 + (0.6 - 0.4) / (3 - 1) * (spent - 1), 3)
