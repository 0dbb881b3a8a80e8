# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Numbers published later
#
# After the paper its authors put more numbers into their code repository. All of them are here, each with its generation
# and its source: *G1* are the paper's own samples, *G2* and *G3* were collected again, *G3* partly on other questions.
#
# Run again, the released scripts gave other mean accuracies: {glue:text}`moved` of {glue:text}`pairs` differ by more
# than a point from those that the paper prints, {glue:text}`farthest` by {glue:text}`points:.1f`. So numbers of two
# generations do not compare, and this book compares with the paper's alone.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # where not the paper's: gpt-oss-20b
store: str = "runs/recorded"  # run store, from here or from the root

# %% tags=["hide-input"]
import numpy as np
import seaborn as sns
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import dataset_names, load_dataset, load_model
from capcal_lib.reported import load_reported
from capcal_lib.results import describe_runs

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
titles = {
    load_dataset(name).reported_as: load_dataset(name).title
    for name in dataset_names()
    if load_dataset(name).reported_as
}
later = load_reported(source="reference code")
models = later["model"].unique()
shown = model if model in set(models) else "gpt-oss-20b"
notebook.about(shown, describe_runs(notebook.open_store(store), shown))

# %% tags=["remove-cell"]
again = load_reported("later_mean_accuracy", source="reference code")
again = again.query("generation == 'G2'")
both = load_reported("mean_accuracy").merge(
    again, on=["model", "dataset"], suffixes=(" printed", " again")
)
both["points"] = 100 * (both["value again"] - both["value printed"])
both["model"] = [load_model(name).title for name in both["model"]]
both["data set"] = [titles[name] for name in both["dataset"]]
most = both.loc[both["points"].abs().idxmax()]
notebook.glue(moved=int((both["points"].abs() > 1).sum()), pairs=len(both))
notebook.glue(
    farthest=f"{most['model']} on {most['data set']}",
    points=abs(most["points"]),
)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Mean accuracy when the released scripts were run again (G2), less the printed one (G1), in percentage points.", "name": "fig-generations"}, "image": {"alt": "Dot plot with a row for each data set and a dot for each model. Most dots lie within one point of zero; those of TriviaQA lie up to five points away, on both sides."}} paper=["table-4"] evidence=["reported", "read off"] reads=["mean_accuracy", "later_mean_accuracy"]
axes = sns.scatterplot(both, x="points", y="data set", hue="model", s=50)
axes.axvline(0, color=style.MUTED, zorder=0)
axes.set(xlabel="difference of mean accuracy, in points", ylabel="")
sns.move_legend(
    axes, "upper center", bbox_to_anchor=(0.4, -0.15), ncols=3, title=""
)


# %% tags=["hide-input"]
def numbers_of(table):
    """Return one model's numbers of a table, with the titles of data sets."""
    own = later[(later["table"] == table) & (later["model"] == shown)]
    return own.assign(
        k=own["k"].astype(str).replace("<NA>", ""),
        dataset=own["dataset"].replace(titles),
    )


# %% tags=["hide-input"]
def show_generation(own, what, columns):
    """Show numbers of one generation, their source and how precise they are."""
    source, near = ", ".join(own["source"].unique()), own["precision"].max()
    varying = [
        name
        for name in ("dataset", "method", "setting", "k")
        if own[name].nunique() > 1 and name != columns
    ]
    generation = own["generation"].iloc[0]
    wide = own.pivot_table(
        "value", varying or ["generation"], columns, sort=False
    )
    return tables.show(
        wide.rename_axis(columns=None, index={"dataset": "data set"}),
        f"{what} of {load_model(shown).title} ({generation}). Source: {source}; "
        f"precise to within {np.format_float_positional(near, trim='-')}.",
        digits=0 if near > 1 else 4,
        evidence="read off",
    )


# %% tags=["hide-input"]
def show(table, what, columns="dataset"):
    """Show what was published under a name, a table for each generation."""
    generations = numbers_of(table).groupby("generation", sort=False)
    shown = [show_generation(own, what, columns) for _, own in generations]
    return tables.Html("".join(each.html for each in shown))


# %% [markdown]
# ## Scores and accuracies

# %% label="later-accuracy" paper=["table-4"] evidence=["read off"] reads=["later_mean_accuracy"]
show("later_mean_accuracy", "Mean accuracy")

# %% label="later-brier" paper=["table-2"] evidence=["read off"] reads=["later_brier"]
show("later_brier", "Capability Brier score")

# %% label="later-ece" paper=["section-4.3"] evidence=["read off"] reads=["later_ece"]
show("later_ece", "Expected calibration error")

# %% label="later-spearman" paper=["section-4.3"] evidence=["read off"] reads=["spearman"]
show("spearman", "Rank correlation (Spearman) with the expected accuracy")

# %% label="later-oracle" paper=["table-2"] evidence=["read off"] reads=["oracle_rc"]
show("oracle_rc", "Oracle RC")

# %% [markdown]
# ## Other settings

# %% label="later-recalibrated" paper=["section-4.3"] evidence=["read off"] reads=["recalibrated"]
show("recalibrated", "Capability Brier score after recalibration")

# %% label="later-few-shot" paper=["section-4.2"] evidence=["read off"] reads=["few_shot"]
show("few_shot", "Capability Brier score of few-shot verbalized confidence")

# %% label="later-temperature" paper=["appendix-b.2"] evidence=["read off"] reads=["temperature"]
show("temperature", "Capability Brier score by temperature")

# %% label="later-temperature-accuracy" paper=["appendix-b.2"] evidence=["read off"] reads=["temperature_accuracy"]
show("temperature_accuracy", "Mean accuracy by temperature")

# %% label="later-k-eval" paper=["figure-6", "appendix-b.1"] evidence=["read off"] reads=["k_eval_curve"]
show("k_eval_curve", "Capability Brier score by samples a question")

# %% [markdown]
# ## Applications and cost

# %% label="later-budget" paper=["figure-5", "figure-10"] evidence=["read off"] reads=["budget"]
show("budget", "Success rate by samples a question", columns="k")

# %% label="later-tokens" paper=["figure-3", "figure-4"] evidence=["read off"] reads=["tokens"]
show("tokens", "Completion tokens")

# %% [markdown]
# One table is of gpt-oss-20b alone, whichever model the page is opened with.

# %% label="later-pass-at-k" paper=["figure-9"] evidence=["read off"] reads=["passk_actual"]
shown = "gpt-oss-20b"
show("passk_actual", "pass@k on MATH-500", columns="k")

# %% [markdown]
# ## Summary
#
# - A number belongs to the samples that it was counted on: name the generation, or do not compare.
# - Running the same scripts again does not give the same mean accuracies.
# - `load_reported(table, source="reference code")` gives every number with its generation, source and precision.
#
# ## Exercises
#
# **1 (easy).** Which of the paper's models changed most, over all data sets? *Hint:* group `both` by model.

# %% tags=["hide-cell", "solution"]
both["points"].abs().groupby(both["model"]).mean().idxmax()

# %% [markdown]
# **2 (medium).** Is a move of 5 points on 1,000 questions with 100 samples each chance? *Hint:* if the questions are the
# same, only their samples differ, and $\hat\mu$ has a variance of at most 1/400 a question.

# %% tags=["hide-cell", "solution"]
round((1 / 400 / 1000) ** 0.5 * 100, 3)  # points: no
