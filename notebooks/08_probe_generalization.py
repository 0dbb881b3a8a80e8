# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Where does a probe still work?

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of all that is drawn here

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import manifests, plots
from capcal_lib.book import notebook, style, tables
from capcal_lib.manifests import (
    dataset_names,
    load_dataset,
    load_model,
    model_names,
)
from capcal_lib.metrics import Calibrator, capability_brier, gains, holm
from capcal_lib.probes import (
    draw_training,
    nearest_probe,
    read_predictions,
    runs_for_probes,
    training_data,
)
from capcal_lib.reported import constant_score, load_reported
from capcal_lib.results import (
    BEST_CONSTANT,
    brier_terms,
    columns_of,
    confidence_columns,
    gains_by_dataset,
    load_results,
    mean_over_probes,
    methods,
    score,
    subjects,
)
from IPython.display import display
from scipy.stats import t

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
options = {"k_eval": k_eval, "verdicts": verdicts}
evidence = notebook.evidence_of(data)
paper = protocol == "paper"
options["recipe"] = "paper" if paper else "tuned"
results = load_results(runs, model, **options)
results = results.filter(regex=r"^correct$|^total$|^Probe \(").query(
    "total > 1"
)
probes = methods(results)
varied = (results["correct"] / results["total"]).groupby("dataset").var() > 0.01
predicted = mean_over_probes(results[confidence_columns(results)].notna())
predicted = predicted.groupby("dataset").sum().loc[varied].stack()
mixtures = [name for name in probes if " + " in name]
pairs = [
    pair for pair in predicted[predicted > 1].index if pair[1] not in mixtures
]

# %% tags=["hide-input"]
near_pairs = [
    (name, probe)
    for name, probe in pairs
    if manifests.shift(probe, name) == manifests.OUT_OF_DISTRIBUTION
    and predicted[name, probe] > 60
]
lacking = {} if near_pairs else {"near": ""}
if pairs:
    lacking["printed"] = ""
    if not mixtures:
        lacking["mixture"] = (
            f"No probe of two training sets is kept: capcal probe --model {model} --mix D,D"
        )
else:
    lacking["mixture"] = ""
    lacking["probes"] = (
        "No probe predicts questions whose accuracy varies: capcal sample, "
        "grade, features and probe make them."
    )
notebook.about(data, lacking)

# %% [markdown] needs="probes"
# A probe taken at its word has to be closer to the accuracy than the best constant, the mean of the other questions, which has
# seen samples of the data set. The gain is how much lower its Brier score is, the score that the paper names; subjects are
# drawn whole.

# %%
# needs probes
gained = {}
for name, probe in pairs:
    columns = ["correct", "total", *columns_of(results, probe)]
    subset = results.loc[[name], columns].dropna()
    terms = brier_terms(subset, protocol=protocol)[[BEST_CONSTANT, probe]]
    gain = gains(terms, BEST_CONSTANT, clusters=subjects(subset))
    gained[name, probe] = gain.loc[probe]


# %% tags=["hide-input"]
# needs probes
def judge(rows):
    """Judge what is estimated of all pairs together, by Holm's method."""
    table = pd.DataFrame(rows).T.infer_objects().dropna()
    table = table.rename_axis(["dataset", "probe"]).reset_index()
    table = holm(table)
    pairs = table[["probe", "dataset"]].values
    return table.assign(shift=[manifests.shift(*pair) for pair in pairs])


def shares(table, verdict):
    """Say of how many pairs a verdict is given, by shift."""
    given = table["verdict"].eq(verdict).groupby(table["shift"])
    given = given.agg(["sum", "size"]).reindex(manifests.SHIFTS, fill_value=0)
    return [f"{k} of {n}" for k, n in given.values]


# %%
# needs probes
gained = judge(gained)

# %% tags=["hide-input"]
# needs probes
better, worse = shares(gained, "better"), shares(gained, "worse")
notebook.glue(
    better_home=better[0],
    better_far=better[1],
    better_out=better[2],
    worse_home=worse[0],
    worse_far=worse[1],
    worse_out=worse[2],
)

# %% tags=["finding"]
# needs probes
notebook.finding("""
Away from the data set that it was trained for, a probe beats a constant on {better_far} data sets of its domain, and on
{better_out} outside.
""")


# %% tags=["hide-input"]
# needs probes
def draw(table, label):
    """Draw a row a probe and data set, with its interval, by shift."""
    table["place"] = table["shift"].map(manifests.SHIFTS.index)
    table = table.sort_values(["place", "probe"], kind="stable")
    table["pair"] = [
        f"{probe} on {load_dataset(name).title}"
        for name, probe in table[["dataset", "probe"]].values
    ]
    axes = sns.pointplot(
        table.melt(["pair", "shift"], ["estimate", "low", "high"]),
        x="value",
        y="pair",
        hue="shift",
        hue_order=manifests.SHIFTS,
        palette=plots.SHIFT_COLORS,
        markers=["o", "P", "v"],
        linestyle="none",
        estimator="median",  # of an estimate and its two limits
        errorbar=("pi", 100),
    )
    axes.figure.set_figheight(1.4 + 0.25 * len(table))
    axes.axvline(0, color=plots.INK, lw=1)
    axes.set(xlabel=label, ylabel="")
    axes.legend(title="", loc="lower center", bbox_to_anchor=(0.3, 1), ncols=3)


# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "The score of the best constant less that of a probe, with 95 % intervals; right of the line the probe is better. At home it gains a little; out of its domain its level can be so wrong that it loses many times that.", "name": "fig-transfer"}, "image": {"alt": "Dots with intervals, a row for each probe and data set, in three groups by shift, around a line at zero."}} paper=["table-7", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"]
# needs probes
draw(gained, "gain over the best constant")

# %%
# needs probes
notebook.say("""
On its own data sets, on others of its domain, and on those outside, a probe is significantly better than the constant on
{better_home}, {better_far} and {better_out}, and worse on {worse_home}, {worse_far} and {worse_out}. All of these are judged
together by Holm's method.
""")

# %% [markdown] needs="probes"
# ## The level and the order
#
# A probe whose level is off may still tell easy questions from hard ones. Its correlation with the accuracy says so: a second
# measure, chosen after the gains were seen. The interval is Fisher's, on $\operatorname{artanh} r$, with the error from the
# influence of each subject or question on $r$.


# %%
# needs probes
def correlate(confidences, mu, groups):
    """Correlate confidences with accuracies, in the mean over their columns."""
    b = (mu - mu.mean()) / mu.std(ddof=0)
    correlations, influences = [], []
    for _, s in confidences.items():
        a = (s - s.mean()) / s.std(ddof=0)
        correlations.append((a * b).mean())
        influences.append(a * b - correlations[-1] * (a**2 + b**2) / 2)
    r = np.mean(correlations)
    influence = sum(influences) / len(influences)
    influence = influence.groupby(groups).sum()
    free = len(influence) - 1
    error = np.sqrt((influence**2).sum() * (free + 1) / free) / len(mu)
    error, z = error / (1 - r**2), np.arctanh(r)
    low, high = np.tanh(z + error * t.ppf([0.025, 0.975], free))
    p, verdict = 2 * t.sf(abs(z) / error, free), "better" if r > 0 else "worse"
    return {"estimate": r, "low": low, "high": high, "p": p, "verdict": verdict}


# %%
# needs probes
order = {}
for name, probe in pairs:
    columns = columns_of(results, probe)
    subset = results.loc[[name], ["correct", "total", *columns]].dropna()
    mu = subset["correct"] / subset["total"]
    order[name, probe] = pd.Series(
        correlate(subset[columns], mu, subjects(subset))
    )
order = judge(order)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Correlation of what a probe says with the expected accuracy, with 95 % intervals. Right of the line it gives easy questions more than hard ones. Out of the domain that is left to chance.", "name": "fig-transfer-order"}, "image": {"alt": "Dots with intervals, a row for each probe and data set, in three groups by shift, around a line at zero."}} paper=["table-7", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"]
# needs probes
draw(order, "correlation with the expected accuracy")

# %%
# needs probes
notebook.say(
    """
At home a probe tells easy from hard on {home} data sets, within its domain on {far}, and outside on {out}. Where it does and gains
nothing, it ranks well and its numbers are off.
""",
    **dict(zip(["home", "far", "out"], shares(order, "better"), strict=True)),
)

# %% tags=["hide-input"] label="probe-gains" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"]
# needs probes
both = {"gain": gained, "correlation": order}
table = pd.concat(both, names=["measure"]).reset_index("measure")
table["data set"] = table["dataset"].map(data["title"])
columns = ["data set", "probe", "measure", "estimate", "low", "high", "verdict"]
tables.show(
    table.sort_values(["data set", "probe"], kind="stable")[columns],
    "Mean gain of a probe over the best constant (higher is better), and its correlation with the expected "
    "accuracy, with 95 % intervals, and the verdict with all of one measure judged together.",
    evidence=evidence,
)

# %% [markdown] needs="mixture"
# ## Two training sets in one
#
# The paper merges TriviaQA and GSM8K, and trains one probe on all of their questions (its table 7). `capcal probe --mix D,D`
# does so with any training sets.

# %%
# needs mixture
mixture = mixtures[0]
sources = mixture.removeprefix("Probe (").removesuffix(")").split(" + ")
sources = [f"Probe ({name})" for name in sources]
columns = [
    name
    for method in [*sources, mixture]
    for name in columns_of(results, method)
]
scores = score(results[["correct", "total", *columns]], protocol=protocol)
scores = scores.query("method.str.startswith('Probe')")

# %% tags=["hide-input"] label="probe-mixture" paper=["table-7", "appendix-c.4"] evidence=["measured"] reads=["verdicts", "features"]
# needs mixture
tables.show_scores(
    scores,
    "Capability Brier score (lower is better) of probes of one training set and of both.",
    evidence=evidence,
)

# %% [markdown] needs="mixture"
# A dash stands where a probe has seen no prompt of the data set's style. What does the second training set change? The rival
# is the probe of the nearer of the two:

# %%
# needs mixture
changes = {}
for name in varied[varied].index:
    subset = results.loc[[name]].dropna(axis="columns", how="all")
    known = methods(subset)
    single = nearest_probe([one for one in sources if one in known], name)
    if single and mixture in known:
        terms = brier_terms(subset, protocol=protocol)[[single, mixture]]
        tested = gains(terms, single, clusters=subjects(subset))
        changes[name, single] = tested.loc[mixture]
changes = pd.DataFrame(changes).T.rename_axis(["dataset", "rival"])
changes = holm(changes)
changes[["estimate", "low", "high", "verdict"]]

# %% tags=["hide-input"]
# needs mixture
notebook.say(
    "{mixture} is significantly better than the probe of one set on {better} of {sets} data sets, and worse on {worse}.",
    mixture=mixture,
    sets=len(changes),
    better=int(changes["verdict"].eq("better").sum()),
    worse=int(changes["verdict"].eq("worse").sum()),
)

# %% [markdown] needs="near"
# ## Starting from a near probe
#
# Twenty questions of a new data set are labelled by four samples each, and there is a probe of another set of its domain. Is it
# best left as it is, recalibrated by Platt's method, or replaced by the mean of the labels?


# %%
# needs near
def use_labels(subset, probe):
    """Score three uses of twenty labelled questions on the others."""
    labelled = draw_training(subset, 20, 4, rng=rng)
    others = subset.drop(labelled.index)
    counts = labelled["correct"], labelled["total"]
    platt = Calibrator("platt").fit(labelled[probe], *counts)
    ways = {
        "as it is": others[probe],
        "recalibrated": platt.predict(others[probe]),
        "constant": np.full(len(others), counts[0].sum() / counts[1].sum()),
    }
    predicted = others["correct"], others["total"]
    return {
        way: capability_brier(s, *predicted, corrected=True)
        for way, s in ways.items()
    }


# %%
# needs near
rng = np.random.default_rng(seed)
by_use = {}
for dataset, probe in near_pairs:
    columns = columns_of(results, probe)
    subset = results.loc[dataset, ["correct", "total", *columns]].dropna()
    draws = [use_labels(subset, name) for name in columns for _ in range(50)]
    by_use[dataset, probe] = pd.DataFrame(draws).mean()
by_use = pd.DataFrame(by_use).T.rename_axis(["data set", "probe"])
by_use.round(3)  # corrected scores on the others, a mean over fifty draws

# %% [markdown] needs="recipes"
# ## How good is a probe at home?
#
# Here every recorded model is asked, and by the paper's way of training a probe as well.


# %% tags=["hide-input"]
def runs_on(name, role):
    return {
        dataset.name: run for dataset, run in runs_for_probes(runs, name, role)
    }


shown = [model]
if evidence != "simulated" and not data.empty:
    shown = [
        name for name in model_names() if load_model(name).engine != "simulated"
    ]
shown = [
    name
    for name in shown
    if runs_on(name, "training").keys() & runs_on(name, "evaluation").keys()
]
NONE = "No scored question that varies has the probes of both recipes."
notebook.lack(not shown, recipes=NONE if pairs else "")

# %% [markdown] needs="recipes"
# Every probe learns from the training split of its data set alone, whatever it chooses it chooses by cross-validation
# there, and it is scored once on the evaluation split. Its rival is the *constant*, the mean expected accuracy of the training
# questions. Left out are pairs of a model and a data set on which the variance of $\hat\mu$ over questions is 0.01 or less:
# there a constant is all that can be learnt.

# %% tags=["hide-input"]
# needs recipes
CONSTANT = "constant"
PAPER, TUNED = "Probe, paper's recipe", "Probe, tuned"
OWN = {name: load_dataset(name).probe for name in dataset_names()}


def predict(name, recipe, title):
    """Read what each data set's own probe predicts of its questions.

    A column under the title; five by the paper's recipe.
    """
    predictions = read_predictions(runs, name, recipe=recipe)
    predicted = []
    for dataset in predictions.index.unique("dataset"):
        columns = columns_of(predictions, OWN[dataset])
        names = [column.replace(OWN[dataset], title) for column in columns]
        of_set = predictions.loc[[dataset], columns]
        predicted.append(of_set.set_axis(names, axis="columns"))
    return pd.concat(predicted) if predicted else predictions


# %%
# needs recipes
def bench(name):
    """Score each question of a model by a constant and its data set's probes."""
    results = load_results(
        runs, name, k_eval=k_eval, recipe=None, verdicts=verdicts
    ).sort_index()
    results = results[["correct", "total"]].query("total > 1")
    taught = {
        dataset: training_data(run)[0].eval("correct / total").mean()
        for dataset, run in runs_on(name, "training").items()
    }
    results[CONSTANT] = results.index.get_level_values("dataset").map(taught)
    results = results.join(predict(name, "tuned", TUNED))
    results = results.join(predict(name, "paper", PAPER))
    mu = results["correct"] / results["total"]
    varied = mu.groupby(level="dataset").transform("var") > 0.01
    terms = brier_terms(results[varied].dropna(), protocol=protocol)
    return terms.reindex(columns=[CONSTANT, PAPER, TUNED]).dropna()


# %%
# needs recipes
terms = {load_model(name).title: bench(name) for name in shown}
terms = pd.concat(terms, names=["model"])

# %% tags=["hide-input"]
notebook.lack(bool(shown) and terms.empty, recipes=NONE)

# %% [markdown] needs="recipes"
# Differences of probes are small beside the noise of a few hundred questions, so they are taken question by question, with
# subjects drawn whole, and judged together by Holm's method.

# %%
# needs recipes
judged = holm(gains_by_dataset(terms, CONSTANT)).reset_index()
judged = judged.rename(columns={"method": "probe"})

# %%
# needs recipes
groups = subjects(terms.droplevel("model")).to_numpy()
whole = gains(terms, CONSTANT, clusters=groups)
against_paper = gains(terms, PAPER, clusters=groups, adjust="holm")

# %%
# needs recipes
notebook.say(
    """
Over the questions of {pairs} pairs of a model and a data set, a linear probe with a tuned weight decay scores {constant:.3f}
lower than a constant, and {paper:.3f} lower than the paper's recipe.
""",
    pairs=len(judged) // 2,
    constant=whole.loc[TUNED, "estimate"],
    paper=against_paper.loc[TUNED, "estimate"],
)

# %% tags=["hide-input"]
# needs recipes
drawn = judged.assign(
    pair=[
        f"{load_dataset(name).title}\n{title.removesuffix('-Instruct')}"
        for title, name in judged[["model", "dataset"]].values
    ]
)
together = whole.rename_axis("probe").reset_index().assign(pair="all questions")
drawn = pd.concat([together, drawn])
drawn = drawn.melt(
    ["pair", "probe"], ["estimate", "low", "high"], "end", "gain"
)

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Capability Brier score of a constant, the mean of the training questions, less that of each probe, with 95 % intervals paired on the same questions; right of the line a probe is better. The two recipes differ where training questions are few.", "name": "fig-predictors"}, "image": {"alt": "Dot plot with intervals, a row for all questions and one for each pair of data set and model, with a mark for each of two probes, around a line at zero."}} paper=["table-5", "appendix-c.2", "section-4.2"] evidence=["measured"] reads=["verdicts", "features"]
# needs recipes
axes = sns.pointplot(
    drawn,
    x="gain",
    y="pair",
    hue="probe",
    palette=[plots.MUTED, plots.SHIFT_COLORS[manifests.IN_DISTRIBUTION]],
    markers=["X", "s"],
    linestyle="none",
    dodge=0.55,
    estimator="median",  # of a mean and its two limits
    errorbar=("pi", 100),
    err_kws={"linewidth": 1.3},
)
axes.axvline(0, color=plots.INK)
axes.figure.set_size_inches(style.WIDTH, 1.4 + 0.3 * len(judged))
axes.set(xlabel="score of the constant less that of the probe", ylabel="")
sns.move_legend(
    axes, "lower center", bbox_to_anchor=(0.4, 1), ncols=2, title=""
)

# %% tags=["hide-input"]
# needs recipes
count = judged.groupby("probe")["verdict"].value_counts()
notebook.glue(
    tuned=int(count.get((TUNED, "better"), 0)),
    paper_better=int(count.get((PAPER, "better"), 0)),
    paper_worse=int(count.get((PAPER, "worse"), 0)),
)

# %%
# needs recipes
notebook.say("""
One pair alone decides little: judged together, the tuned probe is significantly better than the constant on {tuned} of them; by
the paper's recipe a probe is on {paper_better}, and worse on {paper_worse}.
""")

# %% [markdown] needs="recipes"
# ### The recipes
#
# - The **paper's recipe** is linear on the mean over layers, trained by stochastic gradient descent; a fifth of the training
#   questions chooses learning rate and epoch. Its score is the mean over five choices of that fifth.
# - The **tuned linear** probe has the form and the loss of the paper's, solved to its optimum, with the weight decay chosen
#   by cross-validation. It is the probe of all other pages.

# %% label="probes-scores" paper=["appendix-c.2", "table-5"] evidence=["measured"] reads=["verdicts", "features"] tags=["hide-input"]
# needs recipes
scores = terms.groupby(["dataset", "model"], sort=False).mean()
scores = scores.rename(lambda name: load_dataset(name).title, level="dataset")
scores = scores.rename(lambda title: title.removesuffix("-Instruct"), level=1)
tables.show(
    scores.rename_axis(["data set", "model"]),
    "Corrected capability Brier score (lower is better).",
    evidence=evidence,
)

# %% [markdown] needs="recipes"
# Do the recipes differ by more than chance? Over the questions of all pairs:

# %% label="probes-against-paper" paper=["appendix-c.2"] evidence=["measured"] reads=["verdicts", "features"] tags=["hide-input"]
# needs recipes
table = against_paper.rename_axis("probe")
tables.show(
    table[["estimate", "low", "high", "p", "verdict"]],
    "Score of the paper's recipe less that of each probe, over the questions "
    "of all pairs.",
    digits=4,
    p=tables.p_value,
    evidence=evidence,
)

# %% [markdown]
# ## What the paper prints
#
# The paper trains probes on TriviaQA, on GSM8K, and on both together. The scores are plug-in and have no intervals. The score
# of the best constant [follows from what it prints](04_main_table.ipynb).

# %% tags=["hide-input"] label="mixing-reported" paper=["table-7", "appendix-c.4"] evidence=["reported"] reads=["mixing"]
printed = load_reported("mixing").rename(columns={"value": "brier"})
if model in set(printed["model"]):
    printed = printed[printed["model"] == model]
place = printed.groupby(["model", "dataset"])["brier"].rank(method="dense")
printed["printed"] = place.map({1: "best", 2: "second"}).fillna("")
for name, rows in printed.groupby("model", sort=False):
    caption = f"{load_model(name).title}, as printed (lower is better)."
    one = rows[["method", "dataset", "brier", "printed"]]
    display(tables.show_scores(one, caption, digits=4, evidence="reported"))

# %%
keys = ["model", "dataset"]
uniform = load_reported("main").query("method == 'Uniform random'")
uniform = uniform.set_index(keys)["value"]
rivals = pd.DataFrame({"Uniform random": uniform})
rivals["best constant"] = [constant_score(*pair) for pair in uniform.index]
lead = printed.join(rivals, on=keys)
lead["shift"] = [*map(manifests.shift, lead["method"], lead["dataset"])]
lead = lead.melt(["shift", "brier"], list(rivals), "rival", "score")
lead["gain"] = lead["score"] - lead["brier"]
worse = lead["gain"].lt(0).groupby([lead["rival"], lead["shift"]]).sum()
cells = lead.groupby("shift").size() // rivals.shape[1]

# %% tags=["hide-input"]
notebook.glue(
    **{
        f"printed_{where}_{rival.split()[0].lower()}": f"{worse[rival, shift]} of {cells[shift]}"
        for where, shift in zip(
            ("home", "far", "out"), manifests.SHIFTS, strict=True
        )
        for rival in rivals
    }
)

# %% tags=["finding"]
# needs printed
notebook.finding("""
As printed, probes are worse than Uniform random in {printed_far_uniform} cells within their domain, and in
{printed_out_uniform} outside it.
""")

# %% mystnb={"figure": {"caption": "The score of Uniform random, and that of the best constant, less the paper's scores of probes. Right of the line a probe is better: against Uniform random it is within its domain, against a constant mostly at home.", "name": "fig-transfer-reported"}, "image": {"alt": "Two panels of dots around a line at zero, one against Uniform random and one against the best constant, with a row for each of three shifts."}} paper=["table-7", "appendix-c.4", "section-4.3.2"] evidence=["reported"] reads=["mixing", "main", "mean_accuracy"] tags=["hide-input"]
grid = sns.FacetGrid(lead, col="rival", height=3, aspect=1.2)
marks = dict(zip(manifests.SHIFTS, "oPv", strict=True))
for (_, column, _), subset in grid.facet_data():
    for shift, dots in subset.groupby("shift"):
        sns.swarmplot(
            dots,
            x="gain",
            y="shift",
            order=manifests.SHIFTS,
            color=plots.SHIFT_COLORS[shift],
            marker=marks[shift],
            size=3.5,
            ax=grid.axes[0, column],
        )
grid.refline(x=0, linestyle="-", color=plots.INK)
grid.set_titles("against {col_name}").set_axis_labels("gain", "")
_ = grid.tight_layout()

# %%
notebook.say("""
The paper says that probes generalise reasonably well to other data sets of their domain, and not consistently out of it. Against
Uniform random its table shows that: worse in {printed_far_uniform} cells within the domain, and in {printed_out_uniform} out of
it. Against the best constant a probe is worse in {printed_far_best} and in {printed_out_best}; at home in {printed_home_best}.
""")

# %% [markdown]
# ## The settings as printed
#
# The paper prints the settings that its search chose. They differ from model to model, and none of them is a score.

# %% tags=["hide-input"] label="probes-reported" paper=["table-5", "appendix-c.2"] evidence=["reported"] reads=["hyperparameters"]
settings = load_reported("hyperparameters")
titles = [
    load_dataset(name).title if name else "" for name in settings["dataset"]
]
settings["setting"] = (settings["method"] + " " + titles).str.strip()
settings["model"] = [load_model(name).paper_name for name in settings["model"]]
settings = settings.pivot(index="setting", columns="model", values="value")
tables.show(
    settings.map("{:g}".format).rename_axis(columns=None).reset_index(),
    "Settings of the paper's probes as printed (1: features are standardised).",
    evidence="reported",
)

# %% [markdown]
# ## Summary
#
# - A probe gains on a constant at home only; it knows the order of questions within its domain, too, and not outside.
# - The best constant of a data set is the rival that asks for order; Uniform random is beaten by almost anything.
# - At home a probe is only as good as the constant that it beats, and with a few hundred questions its weight decay matters
#   most.
# - A few labelled questions mend the level of a probe of the same domain. They cannot give it an order that it has not.
#
# ## Exercises
#
# **1 (easy).** A probe that always says 0.5 is scored on questions with $\mu$ = 0, 0, 1 and 1. Is it better than Uniform
# random? *Hint:* Uniform random scores $1/3 - \mu(1-\mu)$.

# %% tags=["hide-cell", "solution"]
# The probe's score, and that of Uniform random
capability_brier(np.full(4, 0.5), [0, 0, 100, 100], np.full(4, 100)), 1 / 3

# %% [markdown]
# **2 (medium).** The paper's search keeps the best of 26 probes on the validation questions. Is its validation score an honest
# estimate? *Hint:* what is the smallest of many noisy numbers?

# %% tags=["hide-cell", "solution"]
# The smallest of 26 noisy numbers, on average
np.random.default_rng(0).normal(size=(1000, 26)).min(axis=1).mean()  # below 0

# %% [markdown]
# **3 (hard).** A probe that has learned to say 0.9 meets questions with other $\mu$. Below which $\mu$ is it worse than
# Uniform random? Solve it for any constant $c > 1/2$. *Hint:* a constant scores $(c - \mu)^2$, and $\mu^2$ cancels.

# %% tags=["hide-cell", "solution"]
# Where a constant of 0.9 is worse, on a grid and by algebra
mu = np.linspace(0, 1, 1001)
worse = (0.9 - mu) ** 2 > 1 / 3 - mu * (1 - mu)
float(mu[worse].max()), (0.9**2 - 1 / 3) / (2 * 0.9 - 1)
