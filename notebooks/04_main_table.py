# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Main table

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged

# %% tags=["hide-input"]
import pandas as pd
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import capability_brier, gains, mean_interval
from capcal_lib.plots import ScoreDisplay
from capcal_lib.reported import constant_score, load_reported, printed_scores
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

# %% [markdown] needs="samples"
# The rival of every method is the best constant, the mean of the other questions' $\hat\mu$: it knows the data set, and
# nothing of the question. Where the page follows the paper, probes are those of its five splits of the training questions.

# %% tags=["hide-input"]
held_out = protocol != "paper"  # votes are scored by other samples
recipe, splits = ("tuned", 1) if held_out else ("paper", 5)


def load(name):
    """Load a model's results, once for each split that its probes saw."""
    asked_for = {"held_out": held_out, "recipe": recipe, **asked}
    parts = [
        load_results(runs, name, split=split, **asked_for)
        for split in range(splits)
    ]
    constant = {"Best constant": best_constant(parts[0])}
    first = ["correct", "total", *constant]  # the rival, then its challengers
    columns = [*first, *methods(parts[0])]
    return [part.assign(**constant)[columns] for part in parts]


# %%
# needs samples
parts = load(model)
results = parts[0]
scores = score(parts, protocol=protocol)
mu = results["correct"] / results["total"]
differ = mu.groupby(level="dataset").nunique() > 1  # some questions are solved

# %% [markdown] needs="samples"
# A *gain* is how much lower the squared error of a confidence is than that of its rival, on the same questions.

# %%
# needs samples
terms = sum(brier_terms(part, protocol=protocol) for part in parts) / splits
terms = terms.drop(columns=["Oracle RC", "Oracle CC"])
judged = {}
for name, own in terms.groupby(level="dataset", sort=False):
    if differ[name]:
        groups = subjects(own)
        judged[name] = gains(own, "Best constant", clusters=groups)
judged = pd.concat(judged, names=["dataset", "method"]).dropna()
judged = judged.drop("Uniform random", level="method").reset_index()

# %% tags=["hide-input"]
# needs samples
probe = judged["method"].str.startswith("Probe")
shifts = [style.shift(*pair) for pair in judged[["method", "dataset"]].values]
kind = probe.map({True: "far", False: "other"})
kind[[each == style.IN_DISTRIBUTION for each in shifts]] = "home"
closer = (judged["verdict"] == "better").groupby(kind).agg(["sum", "size"])
closer = closer.reindex(["home", "far", "other"], fill_value=0)
made = closer["size"].add_suffix("_all")
notebook.glue(
    compared=len(judged),
    better=int(closer["sum"].sum()),
    worse=int((judged["verdict"] == "worse").sum()),
    **pd.concat([closer["sum"], made]).astype(int).to_dict(),
)

# %% tags=["finding"]
# needs samples
notebook.finding("""
On questions like those of their training, probes are closer to the expected accuracy than the best constant on {home} of
{home_all} data sets; on other questions, on {far} of {far_all}.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Capability Brier score of every method on every data set (lower is better). A dot left of the best constant's tick knows something of the questions. Crosses: the oracles.", "name": "fig-scores"}, "image": {"alt": "Dot plot with a row a data set and a dot a method. Oracle CC stands at zero and in-distribution probes near the left end of their rows, left of the brown tick of the best constant; most other dots lie right of it, some beyond the black tick of Uniform random."}} paper=["table-2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
shown = scores.reset_index()
_ = ScoreDisplay.from_scores(shown[shown["dataset"].map(differ)])

# %%
# needs samples
notebook.say("""
Of {compared} confidences, each of one method on one data set, {better} are significantly closer to the expected accuracy
than the best constant, and {worse} are significantly further from it. Asking the model, or counting its votes, is closer
in {other} of {other_all} cases.
""")

# %%
reported = printed_scores()
printed = reported[reported["model"] == model]


# %% tags=["hide-input"]
def show_printed(name):
    """Show the printed scores of a model, and its mean accuracies."""
    accuracies = load_reported("mean_accuracy").query("model == @name")
    titles = [load_dataset(one).title for one in accuracies["dataset"]]
    means = pd.DataFrame({"data set": titles, "mean μ": accuracies["value"]})
    look = {"digits": 4, "evidence": "reported"}
    return [
        tables.show_scores(
            reported[reported["model"] == name],
            "Printed capability Brier score (lower is better), and cost in "
            "tokens (L: an answer).",
            **look,
        ),
        tables.show(means, "Mean expected accuracy as printed.", **look),
    ]


# %% tags=["picture", "hide-input"]
# needs paper
tables.Html("".join(table.html for table in show_printed(model)))

# %% [markdown] needs="paper"
# ## As the paper prints it
#
# The printed scores are plug-in scores without intervals, on samples that were not published. Two of its numbers, the score
# of *Uniform random* and the mean accuracy, give the mean and the variance of $\hat\mu$, and so the score of the best
# constant:

# %%
# needs paper
wide = printed.pivot(index="dataset", columns="method", values="brier")
uniform = wide.pop("Uniform random")
rival = {name: constant_score(model, name) for name in wide.index}
constant = pd.Series(rival, name="brier").rename_axis("dataset")
closer = wide.lt(constant, axis="index")
beaten = pd.DataFrame({"a constant": closer.sum()})
beaten["Uniform random"] = wide.lt(uniform, axis="index").sum()

# %% tags=["hide-input"]
# needs paper
best = printed[printed["printed"] == "best"]
far = [style.shift(*pair) for pair in best[["method", "dataset"]].to_numpy()]
notebook.glue(
    printed_sets=len(best),
    probe_sets=sum(map(bool, far)),
    own_sets=far.count(style.IN_DISTRIBUTION),
    cells=int(wide.notna().sum().sum()),
    beaten=int(beaten["Uniform random"].sum()),
    over_constant=int(beaten["a constant"].sum()),
)

# %% tags=["finding"]
# needs paper
notebook.finding("""
Of {cells} scores that the paper prints, {over_constant} are lower than that of the best constant; a probe's is the lowest
on {probe_sets} of {printed_sets} data sets.
""")

# %%
# needs paper
notebook.say("""
{beaten} of the {cells} are lower than that of *Uniform random*, which knows nothing; {own_sets} of the probes with the lowest
score were trained on questions of the same data set.
""")

# %% tags=["hide-input"]
# needs paper
tables.show(
    beaten.reset_index(),
    f"Data sets, of {len(wide)}, on which a printed score is lower than that of "
    "the rival.",
    evidence="reported",
)

# %% mystnb={"figure": {"caption": "The printed scores. Ticks: the best constant and Uniform random, as in the figure above.", "name": "fig-main-reported"}, "image": {"alt": "Dot plot with a row a data set, a dot a score, and ticks for the best constant and Uniform random. Most dots lie left of the black tick, and few left of the brown one; the dots furthest right are mostly of probes from another domain."}}
# needs paper
rivals = constant.reset_index().assign(method="Best constant")
_ = ScoreDisplay.from_scores(pd.concat([printed, rivals]))

# %% [markdown] needs="samples"
# ## From samples to scores
#
# The results are one table: a row a question, its counts of correct and of scored samples, and a column a confidence; NaN
# stands where a method says nothing.

# %%
# needs samples
results.groupby(level="dataset").head(1)

# %% [markdown] needs="samples"
# A confidence $s$ is compared with $\hat\mu = c/n$, the share of correct samples. The mean squared distance is the
# *plug-in* score, which the paper uses:

# %%
# needs samples
distance = results[methods(results)].sub(mu, axis="index") ** 2
plug_in = distance.groupby(level="dataset", sort=False).mean()

# %% [markdown] needs="samples"
# But $\hat\mu$ is itself noisy, with variance $\mu(1-\mu)/n$, and the plug-in score adds that variance to every method
# alike. An unbiased estimate of it, question by question, is $\hat\mu(1-\hat\mu)/(n-1)$; subtracting it gives the
# *corrected* score.

# %%
# needs samples
noise = (mu * (1 - mu) / (results["total"] - 1)).where(results["total"] > 1)
corrected = distance.sub(noise, axis="index")
corrected.groupby(level="dataset", sort=False).mean().T.round(3)

# %% [markdown] needs="samples"
# `brier_terms` computes the same terms with *Uniform random* and the oracles beside them, and `score` takes their means
# with 95 % intervals for questions like these. Response consistency is scored by votes on some samples against the others.

# %%
# needs samples
scores[["brier", "low", "high", "may_be_best"]].round(3).head(4)


# %%
def show(name, results, scores):
    """Show the scores of a model, with the mean tokens of each method."""
    spent = costs(runs, name, k_eval=k_eval).mean().dropna()
    cost = dict.fromkeys(["Uniform random", "Best constant"], "N/A")
    cost |= spent.map("{:.0f}".format).to_dict()
    table = scores.reset_index()
    table["cost"] = table["method"].map(cost).fillna("–")
    table.loc[table["method"].str.startswith("Probe"), "cost"] = "0"
    solved = results["correct"].groupby(level="dataset").nunique() > 1
    kind = "Corrected" if protocol == "corrected" else "Plug-in"
    return tables.show_scores(
        table.assign(varies=table["dataset"].map(solved)),
        f"{kind} capability Brier score (lower is better), and cost in tokens.",
        evidence=describe_runs(runs, name, **asked)["evidence"].iloc[0],
    )


# %% label="main-scores" paper=["table-2", "section-4.3.2", "equation-7", "equation-11"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
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
styles = " and ".join(f"“{style}”" for style in dict.fromkeys(data["prompts"]))
unlike = [f"prompts are of the styles {styles}, with examples"]
if any("gguf" in str(way.file) for way in here.weights):
    unlike.append("weights are quantised")
if "simpleqa" in data.index:
    unlike.append("SimpleQA is the whole set and not its Verified part")
said = f"Unlike in the paper, {'; '.join(unlike)}."
notebook.glue(differences="" if here.paper_name else said)

# %%
# needs samples
notebook.say("""
The cost is the mean of the tokens that a confidence takes beside the answer. {differences} A dash stands where a probe
was trained with prompts of another style.
""")

# %% [markdown] needs="samples"
# ## Does a confidence know anything?
#
# All the gains over the best constant that the first sentence counts, each a mean of paired differences:

# %% label="main-gains" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
listed = judged.assign(dataset=judged["dataset"].map(data["title"]))
listed = listed.rename(columns={"dataset": "data set"})
tables.show(
    listed.drop(columns="p"),
    "Mean gain over the best constant, 95 % interval, each on its own.",
    evidence=data["evidence"].iloc[0],
)

# %% [markdown] needs="samples"
# ## Expected accuracy
#
# The scores depend on how much $\mu$ differs between questions. Its mean is the accuracy that a benchmark reports.

# %% label="main-overview" paper=["table-4", "appendix-b.3", "section-4.3", "section-4.3.1"] evidence=["measured"] reads=["verdicts"]
# needs samples
means = {
    name: mean_interval(own, bounds=(0, 1))[:3]
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
# ## The other models
#
# A tab a model: measured where it has samples here, as printed where it is one of the paper's.

# %% label="main-models" paper=["table-2", "table-4", "appendix-b.3"] evidence=["measured", "reported"] reads=["verdicts", "confidences", "features", "main", "mean_accuracy"]
tabs = {}
for name in model_names():
    shown, known = [], describe_runs(runs, name, **asked)["evidence"]
    if name != model and "measured" in set(known):
        own = load(name)
        scored = score(own, protocol=protocol)
        shown.append(show(name, own[0], scored))
    if name != model and name in set(reported["model"]):
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
