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
from capcal_lib.book import notebook, tables
from capcal_lib.grading.core import UNSCORED
from capcal_lib.grading.labels import corrected_accuracy
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.metrics import capability_brier, mean_interval
from capcal_lib.plots import ScoreDisplay
from capcal_lib.reported import constant_score, load_reported, printed_scores
from capcal_lib.results import (
    compare_with_constant,
    confidence_columns,
    costs,
    count_by_kind,
    load_results,
    mean_over_probes,
    methods,
    score,
    subjects,
)
from IPython.display import display

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
counted = {"k_eval": k_eval, "verdicts": verdicts}
evidence = notebook.evidence_of(data)
varied, judged = data[data["most"] > 1], pd.DataFrame()
ONE = (
    "Every question has one scored sample: its accuracy is known, and a score "
    "takes two. Draw more with: capcal sample --k 2"
)
notebook.about(data, {} if len(varied) else {"scores": ONE})

# %% [markdown] needs="scores"
# A row of the results is a question: its counts of correct and of scored samples, and a column for each confidence. Where
# the page follows the paper, votes judge themselves, and a probe stands for five, each trained on four fifths of its questions.

# %%
# needs scores
paper = protocol == "paper"
counted |= {"held_out": not paper, "recipe": "paper" if paper else "tuned"}
loaded = load_results(runs, model, **counted)
# Probes of two training sets are on the page on their transfer.
results = loaded[[name for name in loaded if " + " not in name]]
scores = score(results, protocol=protocol)

# %% [markdown] needs="scores"
# The rival of every method is the *best constant*, the mean of the other questions' $\hat\mu$: it knows the data set and
# nothing of the question. A *gain* is how much lower the squared error of a confidence is than the rival's, on the same
# questions; a data set on which no question differs has none. `compare_with_constant` judges all methods on all data sets of the
# model together by Holm's method, for this page and for all others. Where even a perfect confidence, with an error of zero, would
# not be called better, a case is *undecidable*, and counts for nobody; where the interval lies within .005 on either side of zero,
# the two are *alike*.

# %%
# needs scores
judged = compare_with_constant(loaded, protocol=protocol)
judged = judged[judged["method"].isin(methods(results))]

# %% tags=["hide-input"]
notebook.lack(
    judged.empty,
    gains="No confidence of questions that differ is recorded. Ask for one with: capcal confidence",
)

# %% tags=["hide-input"]
# needs gains
counts = count_by_kind(judged)
of_groups = {
    "home": counts.loc["probe of the data set"],
    "far": counts.loc[["probe of the domain", "probe of another domain"]].sum(),
    "asked": counts.loc[["verbalized confidence", "P(True)"]].sum(),
    "votes": counts.loc["response consistency"],
}
for name, row in of_groups.items():
    notebook.glue(
        **{
            name: int(row["better"]),
            f"{name}_worse": int(row["worse"]),
            f"{name}_all": int(row["decided"]),
        }
    )
undecidable = judged["verdict"] == "undecidable"
notebook.glue(undecidable=int(undecidable.sum()), cases=len(judged))

# %% tags=["finding"]
# needs gains
notebook.finding("""
A probe is closer than the best constant on {home} of the {home_all} data sets of its own that could be decided, and on {far} of {far_all}
others.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "Left of the best constant, in its row, a method is closer to the expected accuracy than always giving the average. A bar is the 95 % interval of one score alone; which differences from the constant are more than chance, after Holm, says the table of gains.", "name": "fig-scores"}, "image": {"alt": "Dot plot of capability Brier scores with intervals: a row a data set and a mark a method, among them the best constant, Uniform random and the oracles."}} paper=["table-2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs gains
drawn = scores.reset_index()
_ = ScoreDisplay.from_scores(drawn[drawn["dataset"].isin(judged["dataset"])])

# %%
# needs gains
notebook.say("""
Of the cases that could be decided, asking the model is closer than the constant in {asked} of {asked_all} and farther in
{asked_worse}; votes are closer in {votes} of {votes_all} and farther in {votes_worse}; probes are farther in {home_worse} at home and
{far_worse} elsewhere. In {undecidable} of {cases} cases a perfect confidence would not be better either. All methods on all data sets
of the model are judged together by Holm's method.
""")

# %% tags=["hide-input"]
reported = printed_scores()
printed = reported[reported["model"] == model]

# %% [markdown]
# ## As the paper prints it
#
# The paper prints the scores of three models; each has this page of its own in the book.

# %% [markdown] needs="paper"
# The printed scores are plug-in scores without intervals, on samples that were not published. Two of its numbers, the score
# of *Uniform random* and the mean accuracy, give the mean and the variance of $\hat\mu$, and so the score of the best
# constant:

# %%
# needs paper
wide = printed.pivot(index="dataset", columns="method", values="brier")
uniform = wide.pop("Uniform random")
rival = {name: constant_score(model, name) for name in wide.index}
rival = pd.Series(rival, name="brier").rename_axis("dataset")
beaten = pd.DataFrame(
    {
        "a constant": wide.lt(rival, axis="index").sum(),
        "Uniform random": wide.lt(uniform, axis="index").sum(),
    }
)

# %% tags=["finding"]
# needs paper
notebook.finding(
    "Of {cells} scores that the paper prints, {constant} are lower than that of the best "
    "constant, and {uniform} lower than that of Uniform random.",
    cells=int(wide.notna().sum().sum()),
    constant=int(beaten["a constant"].sum()),
    uniform=int(beaten["Uniform random"].sum()),
)

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "The scores as the paper prints them, which have no intervals, and the best constant that follows from two of them. Uniform random is a low bar: what does not pass the tick of the constant knows nothing of the question.", "name": "fig-main-reported"}, "image": {"alt": "Dot plot with a row a data set, a mark a printed score, and ticks for the best constant and Uniform random."}} paper=["table-2"] evidence=["reported"] reads=["main"]
# needs paper
ticks = rival.reset_index().assign(method="Best constant")
_ = ScoreDisplay.from_scores(pd.concat([printed, ticks]))

# %% tags=["hide-input"] label="main-printed" paper=["table-2", "section-4.3.2"] evidence=["reported"] reads=["main"]
# needs paper
tables.show_scores(
    printed,
    "Printed capability Brier score (lower is better), and cost in tokens (L: an answer).",
    digits=4,
    evidence="reported",
)

# %% tags=["hide-input"] label="main-printed-wins" evidence=["reported"] reads=["main"]
# needs paper
tables.show(
    beaten.reset_index(),
    f"Data sets, of {len(wide)}, on which a printed score is lower than that of the rival.",
    evidence="reported",
)

# %% tags=["hide-input"] label="main-printed-accuracy" paper=["table-4", "appendix-b.3"] evidence=["reported"] reads=["mean_accuracy"]
# needs paper
accuracies = load_reported("mean_accuracy").query("model == @model")
titles = [load_dataset(name).title for name in accuracies["dataset"]]
tables.show(
    pd.DataFrame({"data set": titles, "mean μ": accuracies["value"]}),
    "Mean expected accuracy as printed.",
    digits=4,
    evidence="reported",
)

# %% [markdown] needs="scores"
# ## All scores

# %% tags=["hide-input"] label="main-scores" paper=["table-2", "section-4.3.2", "equation-7", "equation-11"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs scores
spent = costs(runs, model, k_eval=k_eval).mean().dropna()
cost = {"Uniform random": "N/A"} | spent.map("{:.0f}".format).to_dict()
table = scores.reset_index()
table["cost"] = table["method"].map(cost).fillna("–")
table.loc[table["method"].str.startswith("Probe"), "cost"] = "0"
table["varies"] = table["dataset"].isin(judged.get("dataset", []))
name = "Plug-in" if paper else "Corrected"
tables.show_scores(
    table,
    f"{name} capability Brier score (lower is better), and cost in tokens.",
    evidence=evidence,
)

# %% tags=["hide-input"]
# needs scores
if "spread" in scores:
    spread = scores[["brier", "spread"]].dropna().reset_index()
    caption = "Mean score of a probe over its five splits, and its spread."
    display(tables.show(spread, caption, evidence=evidence))

# %% tags=["hide-input"]
# needs scores
styles = " and ".join(f"“{style}”" for style in dict.fromkeys(data["prompts"]))
unlike = [f"prompts are of the styles {styles}, with examples"]
if any("gguf" in str(way.file) for way in load_model(model).weights):
    unlike.append("weights are quantised")
if "simpleqa" in data.index:
    unlike.append("SimpleQA is the whole set and not its Verified part")
unlike = f"Unlike in the paper, {'; '.join(unlike)}."
notebook.glue(unlike="" if load_model(model).paper_name else unlike)

# %%
# needs scores
notebook.say("""
The cost is the mean of the tokens that a confidence takes beside the answer. {unlike} A dash stands where a probe was
trained with prompts of another style.
""")

# %% [markdown] needs="scores"
# ## From samples to scores
#
# A confidence $s$ is compared with $\hat\mu = c/n$, the share of correct samples. The mean squared distance is the
# *plug-in* score of the paper. It is too high by the variance $\mu(1-\mu)/n$ of $\hat\mu$, for every method alike;
# $\hat\mu(1-\hat\mu)/(n-1)$ estimates that without bias, and the *corrected* score subtracts it.

# %%
# needs scores
mu = results["correct"] / results["total"]
noise = (mu * (1 - mu) / (results["total"] - 1)).where(results["total"] > 1)
columns = confidence_columns(results.filter(regex="^(?!Response)"))
plug_in = results[columns].sub(mu, axis="index") ** 2
corrected = mean_over_probes(plug_in.sub(noise, axis="index"))
corrected.groupby(level="dataset", sort=False).mean().T.round(3)

# %% [markdown] needs="scores"
# `brier_terms` computes the same terms, with those of votes on some samples against the others, and `score` takes their
# means with 95 % intervals for questions like these.

# %% [markdown] needs="gains"
# ## Gains over the best constant

# %% tags=["hide-input"] label="main-gains" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs gains
listed = judged.assign(dataset=judged["dataset"].map(data["title"]))
listed = listed.rename(columns={"dataset": "data set"}).set_index("data set")
listed = listed.astype({"verdict": str})
tables.show(
    listed[
        ["method", "estimate", "low", "high", "p (Holm)", "verdict"]
    ].reset_index(),
    "Mean gain over the best constant (higher is better) with its 95 % interval alone, and the "
    "verdict after Holm, all methods and data sets of the model judged together.",
    evidence=evidence,
)

# %% [markdown] needs="samples"
# ## Expected accuracy
#
# The scores depend on how much $\mu$ differs between questions. Its mean is the accuracy that a benchmark reports.

# %%
# needs samples
counts = load_results(
    runs, model, k_eval=k_eval, recipe=None, verdicts=verdicts
)
share = (counts["correct"] / counts["total"]).dropna()
means = {
    name: mean_interval(subset, clusters=subjects(subset), bounds=(0, 1))
    for name, subset in share.groupby(level="dataset", sort=False)
}
accuracy = pd.DataFrame(means, index=["mean μ", "low", "high"]).T

# %% tags=["hide-input"] label="main-overview" paper=["table-4", "appendix-b.3", "section-4.3", "section-4.3.1"] evidence=["measured"] reads=["verdicts"]
# needs samples
accuracy.insert(0, "questions", data["questions"])
if (data["not scored"] > UNSCORED).any():  # and so what they are decides
    bounds = {"all wrong": "μ, these wrong", "all right": "μ, these right"}
    shown = data[["not scored", *bounds]].rename(columns=bounds)
    accuracy = accuracy.join(shown)
allowed = tables.intervals(corrected_accuracy(counts), "estimate", digits=3)
allowed = allowed.reindex(accuracy.index).fillna("not measured")
accuracy["μ, the grader's error allowed for"] = allowed
tables.show(
    accuracy.rename(index=data["title"]).rename_axis("data set"),
    "Mean expected accuracy, 95 % interval for questions like these.",
    evidence=evidence,
)

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
# Both scores of two confidences, and how far they are apart
counts = [3, 8], [10, 10]
for s in ([0.2, 0.9], [0.5, 0.5]):  # the noise of mu_hat has no s in it
    plain = capability_brier(s, *counts)
    print(round(plain - capability_brier(s, *counts, corrected=True), 4))

# %% [markdown]
# **2 (medium).** What does *Uniform random* score where $\mu$ is always 0 or 1, and what where $\mu$ is always one half?
# *Hint:* it scores $1/3 - \mu(1-\mu)$ on average.

# %% tags=["hide-cell", "solution"]
# The formula at both ends and in the middle
{mu: round(1 / 3 - mu * (1 - mu), 3) for mu in (0, 0.5, 1)}

# %% [markdown]
# **3 (hard).** What does the best constant score, in terms of $\mu$ alone? *Hint:* the mean squared distance from the mean.

# %% tags=["hide-cell", "solution"]
# The score of a constant on three questions, and a statistic of mu
three = pd.Series([0.1, 0.5, 0.9])  # the variance of mu over questions
round(((three - three.mean()) ** 2).mean(), 4), round(three.var(ddof=0), 4)
