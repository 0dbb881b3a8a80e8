# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Main table
#
# Which confidence is closest to the expected accuracy?
# Every confidence of one model is scored against the expected accuracy of its question, on every data set: table 2 and
# section 4.3 of the paper.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of the resampling behind the intervals

# %% tags=["hide-input"]
import pandas as pd
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import capability_brier, gains, mean_interval
from capcal_lib.plots import ScoreDisplay
from capcal_lib.probes import read_predictions
from capcal_lib.reported import beta_moments, load_reported
from capcal_lib.results import (
    best_constant,
    brier_terms,
    costs,
    describe_runs,
    load_results,
    methods,
    score,
    subjects,
)
from IPython.display import display

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
asked = {"k_eval": k_eval, "verdicts": verdicts}
data = describe_runs(runs, model, **asked)
notebook.about(model, data, protocol=protocol, verdicts=verdicts)


# %% tags=["hide-input"]
recipe = "paper" if protocol == "paper" else "tuned"


def load(name):
    """Load a model's confidences, once for each split of a probe's training."""
    own = {"held_out": protocol != "paper", "recipe": None, **asked}
    results = load_results(runs, name, **own)
    results["Best constant"] = best_constant(results)
    said = {"recipe": recipe, "verdicts": verdicts}
    return [
        results.assign(**read_predictions(runs, name, split=split, **said))
        for split in range(5 if recipe == "paper" else 1)
    ]


def mean_terms(parts):
    """Return the terms of each question, their mean over the splits."""
    each = [brier_terms(part, protocol=protocol) for part in parts]
    return sum(each) / len(each)


# %% tags=["hide-input"]
# needs samples
parts = load(model)  # the paper's recipe trains on five splits
results = parts[0]
scores = score(parts, seed=seed, protocol=protocol)
mu = results["correct"] / results["total"]
differ = mu.groupby(level="dataset").nunique() > 1  # some questions are solved

# %% tags=["hide-input"]
# needs samples
terms = mean_terms(parts).drop(columns=["Oracle RC", "Oracle CC"])
judged = pd.concat(
    {
        name: gains(own, "Best constant", seed=seed, clusters=subjects(own))
        for name, own in terms.groupby(level="dataset", sort=False)
        if differ[name]
    },
    names=["dataset", "method"],
)
judged = judged.dropna().drop("Uniform random", level="method")

# %% tags=["hide-input"]
# needs samples
beaten = judged["verdict"].value_counts()
probe = judged.index.get_level_values("method").str.startswith("Probe")
home = [
    style.shift(*pair[::-1]) == style.IN_DISTRIBUTION for pair in judged.index
]
knowing = judged["verdict"] == "better"
notebook.glue(
    compared=len(judged),
    better=int(beaten.get("better", 0)),
    worse=int(beaten.get("worse", 0)),
    home=int(knowing[home].sum()),
    home_all=sum(home),
    far=int(knowing[probe].sum() - knowing[home].sum()),
    far_all=int(probe.sum()) - sum(home),
    other=int(knowing[~probe].sum()),
    other_all=int((~probe).sum()),
)

# %%
# needs samples
notebook.say("""
Of {compared} confidences, each of one method on one data set, {better} are significantly closer to the expected
accuracy than the best constant, which knows nothing of a question, and {worse} are significantly further from it:
{home} of {home_all} are closer for probes trained on questions of the same data set, {far} of {far_all} for probes
trained on others, and {other} of {other_all} for asking the model or counting its votes.
""")

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Capability Brier score of every method on every data set (lower is better). Tick: Uniform random; crosses: the oracles.", "name": "fig-scores"}, "image": {"alt": "Dot plot with a row a data set and a dot a method. Oracle CC stands at zero and in-distribution probes near the left end of their rows; the tick of Uniform random lies in the midst of the other dots or right of them."}} paper=["table-2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
shown = scores.reset_index()
shown = shown[shown["dataset"].map(differ)]
_ = ScoreDisplay.from_scores(shown)
# %% tags=["hide-input"]
reported = load_reported("main").rename(columns={"value": "brier"})
upward = reported.iloc[::-1]  # of equal scores the paper marks the lower row
place = upward.groupby(["model", "dataset"])["brier"].rank(method="first")
reported["printed"] = place.map({1: "best", 2: "second"}).reindex(
    reported.index
)
known = {"Uniform random": "N/A", "Verbalized confidence": "L", "P(True)": "1"}
reported["cost"] = [
    known.get(name, "<1" if name.startswith("Probe") else "–")
    for name in reported["method"]
]
reasoned = reported["model"] == "gpt-oss-20b"  # before it says Yes or No
reported.loc[reasoned & (reported["method"] == "P(True)"), "cost"] = "L"
printed = reported[reported["model"] == model]

# %% tags=["hide-input"]
# needs paper
best = printed[printed["printed"] == "best"]
far = [style.shift(*pair) for pair in best[["method", "dataset"]].to_numpy()]
wide = printed.pivot(index="dataset", columns="method", values="brier")
moments = {name: beta_moments(model, name) for name in wide.index}
constant = pd.Series(
    {name: m * (1 - m) - v for name, (m, v) in moments.items()}
)
rivals = wide.drop(columns="Uniform random")
notebook.glue(
    printed_sets=len(best),
    probe_sets=sum(map(bool, far)),
    own_sets=far.count(style.IN_DISTRIBUTION),
    cells=int(rivals.notna().sum().sum()),
    beaten=int(rivals.lt(wide["Uniform random"], axis="index").sum().sum()),
    over_constant=int(rivals.lt(constant, axis="index").sum().sum()),
)

# %%
# needs paper
notebook.say("""
## As the paper prints it

The lowest printed score is that of a probe on {probe_sets} of {printed_sets} data sets; {own_sets} of these probes were
trained on questions of the same data set. *Uniform random*, which knows nothing, is beaten by {beaten} of {cells} scores,
and the best constant, whose score follows from two printed numbers, by {over_constant}:
""")

# %% tags=["hide-input"]
# needs paper
over = rivals.lt(constant, axis="index").sum().rename("closer than a constant")
tables.show(
    over.rename_axis("method").reset_index(),
    f"Data sets, of {len(wide)}, on which a printed score is lower than that of "
    "the best constant.",
    evidence="reported",
)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "The printed scores. Ticks: Uniform random.", "name": "fig-main-reported"}, "image": {"alt": "Dot plot with a row a data set, a dot a score and a tick for Uniform random. Most dots lie left of their tick, in-distribution probes among the furthest; the dots furthest right are mostly of probes from another domain."}}
# needs paper
_ = ScoreDisplay.from_scores(printed)

# %%
# needs paper
notebook.say("""
The printed scores are plug-in scores without intervals, on samples that were not published.
""")


# %% tags=["hide-input"]
def show_printed(name):
    """Show the printed scores of a model, and its mean accuracies."""
    accuracies = load_reported("mean_accuracy").query("model == @name")
    titles = [load_dataset(one).title for one in accuracies["dataset"]]
    return [
        tables.show_scores(
            reported[reported["model"] == name],
            "Printed capability Brier score (lower is better), and cost in "
            "tokens (L: an answer).",
            digits=4,
            evidence="reported",
        ),
        tables.show(
            pd.DataFrame({"data set": titles, "mean μ": accuracies["value"]}),
            "Mean expected accuracy as printed.",
            digits=4,
            evidence="reported",
        ),
    ]


# %% tags=["hide-input"]
# needs paper
tables.Html("".join(table.html for table in show_printed(model)))

# %%
# needs samples
notebook.say(r"""
## From samples to scores

The results are one table: a row a question, its counts of correct and of scored samples, and a column a confidence.
""")

# %%
# needs samples
results.groupby(level="dataset").head(1)

# %%
# needs samples
notebook.say(r"""
A confidence $s$ is compared with $\hat\mu = c/n$, the share of correct samples. The mean squared distance is the
*plug-in* score, which the paper uses:
""")

# %%
# needs samples
mu = results["correct"] / results["total"]
distance = results[methods(results)].sub(mu, axis="index") ** 2
plug_in = distance.groupby(level="dataset", sort=False).mean()

# %%
# needs samples
notebook.say(r"""
But $\hat\mu$ is itself noisy, with variance $\mu(1-\mu)/n$, and the plug-in score adds that variance to every method
alike. An unbiased estimate of it, question by question, is $\hat\mu(1-\hat\mu)/(n-1)$; subtracting it gives the
*corrected* score.
""")

# %%
# needs samples
noise = (mu * (1 - mu) / (results["total"] - 1)).where(results["total"] > 1)
corrected = distance.sub(noise, axis="index")
corrected.groupby(level="dataset", sort=False).mean().T.round(3)

# %%
# needs samples
notebook.say(r"""
`brier_terms` computes the same terms with *Uniform random* and the oracles beside them, and `score` takes their means
with 95 % intervals for questions like these. Response consistency is scored by votes on some samples against the others.
""")

# %%
# needs samples
terms = brier_terms(results, protocol=protocol)
scores = score(parts, seed=seed, protocol=protocol)
scores[["brier", "low", "high", "may_be_best"]].round(3).head(4)

# %% tags=["hide-input"]
kind = {"corrected": "Corrected", "paper": "Plug-in"}[protocol]


def show(name, results, scores):
    """Show the scores of a model, with the mean tokens of each method."""
    spent = costs(runs, name, k_eval=k_eval).mean()
    cost = {"Uniform random": "N/A", "Best constant": "N/A"}
    cost |= {way: f"{tokens:.0f}" for way, tokens in spent.dropna().items()}
    table = scores.reset_index()
    names = table["method"]
    table["cost"] = names.map(cost).fillna("–")
    table.loc[names.str.startswith("Probe"), "cost"] = "0"
    solved = results["correct"].groupby(level="dataset").nunique() > 1
    return tables.show_scores(
        table.assign(varies=table["dataset"].map(solved)),
        f"{kind} capability Brier score (lower is better), and cost in tokens.",
        evidence=describe_runs(runs, name, **asked)["evidence"].iloc[0],
    )


# %% tags=["hide-input"] label="main-scores" paper=["table-2", "section-4.3.2", "equation-7", "equation-11"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
show(model, results, scores)

# %% tags=["hide-input"]
# needs samples
if "spread" in scores:
    spread = scores[["brier", "spread"]].dropna().reset_index()
    said = "Mean score of a probe over its five splits, and its spread."
    display(tables.show(spread, said, evidence=data["evidence"].iloc[0]))

# %% tags=["hide-input"]
# needs samples
here = load_model(model)
styles = " and ".join(f"*{style}*" for style in dict.fromkeys(data["prompts"]))
unlike = [f"prompts are of the styles {styles}, with examples"]
if any("gguf" in str(way.file) for way in here.weights):
    unlike.append("weights are quantised")
if "simpleqa" in data.index:
    unlike.append("SimpleQA is the whole set and not its Verified part")
notebook.glue(
    differences=f"Unlike in the paper, {'; '.join(unlike)}."
    if not here.paper_name
    else ""
)

# %%
# needs samples
notebook.say("""
The cost is the mean of the tokens that a confidence takes beside the answer. {differences} A dash stands where a probe
was trained with prompts of another style.

## Does a confidence know anything?

The best constant is the mean of the other questions' $\\hat\\mu$: it knows the data set, and nothing of the question. A
*gain* is how much lower the terms of a confidence are than those of the constant, on the same questions:
""")

# %%
# needs samples
first = data.index[0]
own = terms.loc[[first]].drop(columns=["Oracle RC", "Oracle CC"])
gains(own, "Best constant", seed=seed).round(4)

# %% tags=["hide-input"] label="main-gains" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
listed = judged.reset_index()
listed["data set"] = listed["dataset"].map(data["title"])
tables.show(
    listed[["data set", "method", "estimate", "low", "high", "verdict"]],
    "Mean gain over the best constant, 95 % interval, each on its own.",
    evidence=data["evidence"].iloc[0],
)

# %%
# needs samples
notebook.say(r"""
## Expected accuracy

The scores depend on how much $\mu$ differs between questions. Its mean is the accuracy that a benchmark reports.
""")

# %% tags=["hide-input"] label="main-overview" paper=["table-4", "appendix-b.3", "section-4.3", "section-4.3.1"] evidence=["measured"] reads=["verdicts"]
# needs samples
means = {
    name: mean_interval(own, seed=seed, bounds=(0, 1))[:3]
    for name, own in mu.groupby(level="dataset", sort=False)
}
accuracy = pd.DataFrame(means, index=["mean μ", "low", "high"]).T
accuracy.insert(0, "questions", data["questions"])
tables.show(
    accuracy.rename(index=data["title"]).rename_axis("data set"),
    "Mean expected accuracy, 95 % interval.",
    evidence=data["evidence"].iloc[0],
)

# %% [markdown]
# ## All models
#
# A tab a model: measured where it has samples here, as printed where it is one of the paper's.

# %% tags=["hide-input"] label="main-models" paper=["table-2", "table-4", "appendix-b.3"] evidence=["measured", "reported"] reads=["verdicts", "confidences", "features", "main", "mean_accuracy"]
tabs = {}
for name in [model, *(other for other in model_names() if other != model)]:
    shown = []
    known = set(describe_runs(runs, name, **asked)["evidence"])
    if "measured" in known or (known and name == model):
        own = load(name)
        scored = score(own, seed=seed, protocol=protocol)
        shown.append(show(name, own[0], scored))
    if name in set(reported["model"]):
        shown += show_printed(name)
    if shown:
        tabs[load_model(name).short_title] = shown
tables.tabs(tabs)

# %% [markdown]
# ## Summary
#
# - The rival of a confidence is the best constant: *Uniform random* is beaten by nearly anything.
# - A score without an interval does not rank methods; several are often not significantly worse than the best.
# - Oracle RC shows what a single graded sample is worth as a confidence.
#
# ## Exercises
#
# **1 (easy).** Why is the difference between the plug-in and the corrected score the same for every method without
# missing confidences? *Hint:* which symbol does not stand in what is subtracted?

# %% tags=["hide-cell", "solution"]
counts = [3, 8], [10, 10]
for s in ([0.2, 0.9], [0.5, 0.5]):  # the noise of mu_hat has no s in it
    plain = capability_brier(s, *counts)
    print(round(plain - capability_brier(s, *counts, corrected=True), 4))

# %% [markdown]
# **2 (medium).** What does *Uniform random* score where $\mu$ is always 0 or 1, and what where $\mu$ is always one half?
# *Hint:* it scores $1/3 - \mu(1-\mu)$ on average.

# %% tags=["hide-cell", "solution"]
{mu: round(1 / 3 - mu * (1 - mu), 3) for mu in (0, 0.5, 1)}

# %% [markdown]
# **3 (hard).** What does the best constant score, in terms of $\mu$ alone? *Hint:* the mean squared distance from the mean.

# %% tags=["hide-cell", "solution"]
three = pd.Series([0.1, 0.5, 0.9])  # the variance of mu over questions
round(((three - three.mean()) ** 2).mean(), 4), round(three.var(ddof=0), 4)
