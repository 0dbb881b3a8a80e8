# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The four claims in detail
#
# This page shows what stands behind [the counts of the four claims](14_small_models.ipynb): the runs, what each
# confidence costs, and how well each method does as models grow.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`; all are shown
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # not used: no number here is drawn

# %% tags=["hide-input"]
import pandas as pd
import seaborn as sns
from capcal_lib.book import notebook, style, tables
from capcal_lib.confidence import read_answers, vote_terms
from capcal_lib.manifests import load_model, model_names
from capcal_lib.reported import load_reported
from capcal_lib.results import brier_terms, costs, describe_runs, load_results

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
described = {
    name: describe_runs(runs, name, k_eval=k_eval) for name in model_names()
}
real = {
    name: data
    for name, data in described.items()
    if "measured" in set(data["evidence"])
}
none = {"runs": "No model of this store has measured samples."}
notebook.about(model, described[model], lacking={} if real else none)


# %% tags=["hide-input"]
def held_out_votes(run):
    """Score response consistency by votes of ten held-out samples."""
    answers = read_answers(run, k=k_eval)
    votes = vote_terms(answers, 10).groupby("row")["disjoint"].mean()
    return votes.set_axis(answers.question_ids[votes.index])


def kind(method, dataset):
    """Name a probe by its shift, and any other method by itself."""
    far = style.shift(method, dataset)
    return f"Probe, {far}" if far else method


# %% tags=["hide-input"]
def skills(terms, about):
    """Compare each method with Uniform random on the questions of both."""
    for method in terms.columns.drop("Uniform random"):
        both = terms[["Uniform random", method]].dropna().mean()
        if both.notna().all() and not method.startswith("Oracle"):
            skill = 1 - both[method] / both["Uniform random"]
            yield {**about, "method": method, "skill": skill}


rows = []
for name, data in real.items():
    results = load_results(runs, name, k_eval=k_eval).query("total > 1")
    terms = brier_terms(results)
    for dataset, run in data["run"].items():
        own = terms.loc[dataset].copy()
        own["Response consistency"] = held_out_votes(run)
        about = {"model": name, "dataset": dataset, "evidence": "measured"}
        rows += skills(own, about)

# %% tags=["hide-input"]
scores = load_reported("main"), load_reported("consistency").query("k == 10")
for (name, dataset), own in pd.concat(scores).groupby(["model", "dataset"]):
    about = {"model": name, "dataset": dataset, "evidence": "reported"}
    wide = own.set_index("method")[["value"]].T
    rows += skills(wide, about)
skill = pd.DataFrame(rows)
pairs = zip(skill["method"], skill["dataset"], strict=True)
skill["kind"] = [kind(*pair) for pair in pairs]
models = [load_model(name) for name in skill["model"]]
skill["billions"] = [each.parameters / 1e9 for each in models]
skill["title"] = [each.short_title for each in models]

# %% tags=["remove-cell"]
means = skill.groupby(["kind", "evidence"])["skill"].mean().unstack()
means = means.reindex(columns=["measured", "reported"])
home = means.loc[f"Probe, {style.IN_DISTRIBUTION}"]
said = means.loc["Verbalized confidence"]
notebook.glue(home=home["measured"], home_printed=home["reported"])
notebook.glue(said=said["measured"], said_printed=said["reported"])

# %% [markdown]
# *Skill* is 1 less the ratio of a method's Brier score to that of *Uniform random*: 1 is perfect, and 0 is no better than
# knowing nothing. On average over data sets, an in-distribution probe has a skill of {glue:text}`home:.2f` on the models
# measured here and of {glue:text}`home_printed:.2f` on the paper's; verbalized confidence has {glue:text}`said:.2f` and
# {glue:text}`said_printed:.2f`.

# %% mystnb={"figure": {"caption": "Skill of each method against the model's parameters, all of them also where a response uses a few of its experts; one point per data set. Measured: corrected scores, tuned probe; reported: plug-in scores as printed.", "name": "fig-scaling"}, "image": {"alt": "Six panels of points, one for each method. In-distribution probes lie between 0.5 and 1 at every size; verbalized confidence and P(True) lie around zero for the small models and mostly above it for the large ones."}} paper=["section-4.3.2"] evidence=["measured", "reported"] reads=["verdicts", "samples", "confidences", "features", "main", "consistency"] tags=["hide-input"]
grid = sns.relplot(
    skill,
    x="billions",
    y="skill",
    hue="evidence",
    palette=[style.OWN, style.INK],
    hue_order=["measured", "reported"],
    col="kind",
    col_wrap=3,
    alpha=0.7,
)
grid.refline(y=0, color=style.MUTED)
grid.set(xscale="log", xlabel="parameters, billions", ylim=(-1.5, 1.05))
grid.set(xticks=[0.1, 1, 10], xticklabels=[0.1, 1, 10])
for name, axes in grid.axes_dict.items():
    axes.set_title(name.replace(", ", "\n"))
grid.figure.set(layout_engine="constrained", size_inches=(style.WIDTH, 5))
sns.move_legend(grid, "outside lower center", ncols=2, title="")

# %% tags=["remove-cell"]
below = skill["skill"] < -1.5
notebook.glue(below=int(below.sum()))

# %% [markdown]
# ## How skill is computed
#
# Skill makes data sets of unlike difficulty comparable, though not equal. Both scores are corrected, and means over the
# questions that have both; for one model, data set and method:

# %%
# needs runs
method = terms.columns[1]
both = terms.loc[data.index[0], ["Uniform random", method]].dropna()
1 - both[method].mean() / both["Uniform random"].mean()

# %% [markdown]
# {glue:text}`below` points lie below the panels. Models were asked other data sets, so that two points of a panel may
# differ in more than the size of the model, and only the cells of one row compare:

# %% label="findings-skills" paper=["section-4.3.2"] evidence=["reported"] reads=["main", "consistency"] tags=["hide-input"]
keys = ["evidence", "billions", "title"]
mean_skill = skill.pivot_table("skill", keys, "kind")
mean_skill = mean_skill.rename_axis(["evidence", "billions", "model"])
tables.show(
    mean_skill.loc["reported"],
    "Mean skill over the data sets of each of the paper's models (higher is "
    "better).",
    digits=2,
    evidence="reported",
)

# %% label="findings-skills-measured" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"] tags=["hide-input"]
# needs runs
tables.show(
    mean_skill.loc["measured"],
    "Mean skill over the data sets of each model measured here (higher is "
    "better).",
    digits=2,
    evidence="measured",
)

# %% [markdown]
# ## The runs
#
# Training splits were sampled as well, for the probes; they are not listed. A model that is asked for *steps* reasons
# before it answers, and is another experiment than the same model asked for a *short* answer. How much there is to
# predict is the variance of $\mu$: where it is small, nearly all questions are equally difficult for the model, be it
# that their $\hat\mu$ lies near 0 or 1 or, as where it guesses among four choices, in between.

# %% tags=["hide-input"]
# needs runs
spread = []
for name in real:
    results = load_results(runs, name, k_eval=k_eval).query("total > 1")
    mu_hat = results["correct"] / results["total"]
    noise = mu_hat * (1 - mu_hat) / (results["total"] - 1)
    by = mu_hat.groupby(level="dataset")
    columns = {
        "mean": by.mean(),
        "variance of mu": by.var() - noise.groupby(level="dataset").mean(),
        "in 0.1 to 0.9": mu_hat.between(0.1, 0.9).groupby("dataset").mean(),
    }
    spread.append(pd.DataFrame(columns).assign(name=name))
spread = pd.concat(spread).set_index("name", append=True)

# %% label="findings-runs" paper=["section-4.3.1"] evidence=["measured"] reads=["verdicts"] tags=["hide-input"]
# needs runs
table = pd.concat(real, names=["name", "dataset"]).join(spread).reset_index()
table["model"] = [load_model(name).short_title for name in table["name"]]
names = {"title": "data set", "most": "samples per question"}
table = table.rename(columns=names)
facts = ["model", "data set", "prompts", "questions", "samples per question"]
shares = [name for name in ("no answer", "not scored") if table[name].any()]
tables.show(
    table[[*facts, *columns, *shares]],
    "The measured runs on evaluation splits, and how much mu spreads; samples "
    "that are not scored have a column where there are any.",
    evidence="measured",
    **dict.fromkeys(shares, "{:.1%}"),
    **{"mean": "{:.3f}", "variance of mu": "{:.4f}"},
    **{"in 0.1 to 0.9": "{:.0%}"},
)

# %% [markdown]
# ## What a confidence costs
#
# A response to a short question is only a few tokens long, so that asking for a confidence may cost more than the
# response. Ten votes cost ten responses; a probe writes nothing.

# %% label="findings-tokens" paper=["section-4.3.2", "appendix-c.3"] evidence=["measured"] reads=["samples", "confidences"] tags=["hide-input"]
# needs runs
asked = ["Verbalized confidence", "P(True)"]
relative = []
for name, data in real.items():
    tokens = costs(runs, name, k_eval=k_eval).reindex(columns=asked)
    ratio = tokens.div(data["tokens"], axis="index").loc[data.index]
    facts = data[["title", "tokens"]].assign(model=load_model(name).title)
    relative.append(facts.join(ratio).set_index("model"))
tables.show(
    pd.concat(relative).rename(
        columns={"title": "data set", "tokens": "tokens of a response"}
    ),
    "Tokens of a mean response, and of each way to ask relative to it.",
    digits=2,
    evidence="measured",
    **{"tokens of a response": "{:.0f}"},
)

# %% [markdown]
# ## Summary
#
# - In-distribution probes have a skill far above zero at every size; verbalized confidence has hardly any on small models.
# - Where answers are short, asking is not cheap: it costs up to several responses.
# - Points of different models are on different data sets, so that size is not the only thing that changes.
#
# ## Exercises
#
# **1 (easy).** What is the skill of a method with half the Brier score of *Uniform random*? *Hint:* the definition above.

# %% tags=["hide-cell", "solution"]
1 - 0.5

# %% [markdown]
# **2 (medium).** On which data sets has verbalized confidence a negative skill? *Hint:* `skill` has a row for each.

# %% tags=["hide-cell", "solution"]
verbalized = skill[skill["method"] == "Verbalized confidence"]
verbalized[verbalized["skill"] < 0][["title", "dataset", "skill"]].round(3)

# %% [markdown]
# **3 (hard).** Does the order of methods on the data sets that are measured and printed agree with the tables above?
# *Hint:* keep the data sets that are both measured and printed.

# %% tags=["hide-cell", "solution"]
shared = skill.groupby("dataset")["evidence"].transform("nunique") == 2
skill[shared].pivot_table("skill", "kind", "evidence").round(2)
