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
import matplotlib.pyplot as plt
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
)
from capcal_lib.reported import constant_score, load_reported
from capcal_lib.results import (
    BEST_CONSTANT,
    brier_terms,
    columns_of,
    compare_with_constant,
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
evidence = notebook.evidence_of(data)
paper = protocol == "paper"
counted = {"k_eval": k_eval, "verdicts": verdicts}
counted |= {"held_out": not paper, "recipe": "paper" if paper else "tuned"}
loaded = load_results(runs, model, **counted)
results = loaded.filter(regex=r"^correct$|^total$|^Probe \(").query("total > 1")
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
# drawn whole. Verdicts are those of the [main table](04_main_table.ipynb): `compare_with_constant` judges all methods on all data
# sets of the model together, and a case that even a perfect confidence would not win is *undecidable*, and counts for nobody.

# %%
# needs probes
gained = compare_with_constant(loaded, protocol=protocol)
gained = gained.rename(columns={"method": "probe"})
of_probes = gained["probe"].isin(probes) & ~gained["probe"].isin(mixtures)
gained = gained[of_probes].astype({"verdict": str})
gained["shift"] = [
    manifests.shift(*pair) for pair in gained[["probe", "dataset"]].values
]
decided = gained[gained["verdict"] != "undecidable"]


# %% tags=["hide-input"]
# needs probes
def shares(table, verdict):
    """Say of how many cases a verdict is given, by shift."""
    given = table["verdict"].eq(verdict).groupby(table["shift"])
    given = given.agg(["sum", "size"]).reindex(manifests.SHIFTS, fill_value=0)
    return [f"{k} of {n}" for k, n in given.values]


# %% tags=["hide-input"]
# needs probes
better, worse = shares(decided, "better"), shares(decided, "worse")
notebook.glue(
    better_home=better[0],
    better_far=better[1],
    better_out=better[2],
    worse_home=worse[0],
    worse_far=worse[1],
    worse_out=worse[2],
    undecidable=len(gained) - len(decided),
)

# %% tags=["finding"]
# needs probes
notebook.finding("""
On its own data set a probe is closer to the accuracy than the best constant in {better_home} cases; on others of its domain in
{better_far}, and outside in {better_out}.
""")


# %% tags=["hide-input"]
# needs probes
def draw(table, label):
    """Draw a row a probe and data set, with its interval, by shift."""
    table = table.assign(place=table["shift"].map(manifests.SHIFTS.index))
    table = table.sort_values(["place", "probe"], kind="stable")
    table["pair"] = [
        f"{probe} on {load_dataset(name).title}"
        for name, probe in table[["dataset", "probe"]].values
    ]
    size = style.WIDTH, 1.4 + 0.25 * len(table)
    axes = plt.subplots(figsize=size, layout="constrained")[1]
    for shift, marker in zip(manifests.SHIFTS, "oPv", strict=True):
        look = {"color": plots.SHIFT_COLORS[shift], "marker": marker}
        rows = table[table["shift"] == shift]
        plots.mark_verdicts(axes, rows["pair"], rows, **look)
        axes.scatter([], [], label=shift, **look)
    axes.invert_yaxis()
    axes.axvline(0, color=plots.INK, lw=1)
    axes.set(xlabel=label, ylabel="")
    axes.figure.legend(loc="outside upper center", ncols=3)


# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "The score of the best constant less that of a probe, each with its own 95 % interval; right of the line the probe is closer. Filled: significant after Holm, with all methods and data sets of the model judged together; hollow: cannot tell, whatever its own interval says. Undecidable cases are left to the table.", "name": "fig-transfer"}, "image": {"alt": "Marks with intervals, a row for each probe and data set, in three groups by shift, around a line at zero. Marks are filled where the verdict is clear after Holm, and hollow elsewhere."}} paper=["table-7", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"]
# needs probes
draw(decided, "gain over the best constant")

# %%
# needs probes
notebook.say("""
Of the cases that could be decided, a probe is closer than the constant in {better_home} on its own data sets, {better_far} on others
of its domain and {better_out} outside, and farther in {worse_home}, {worse_far} and {worse_out}, after Holm. {undecidable} more
could not be decided.
""")

# %% [markdown] needs="probes"
# ## The level and the order
#
# A probe whose level is off may still tell easy questions from hard ones. Its correlation with the accuracy says so: another
# question than that of the constant, chosen after the gains were seen. It is asked where the accuracy varies between questions
# (a variance above .01), and its cases are a family of their own for Holm's method. The interval is Fisher's, on
# $\operatorname{artanh} r$, with the error from the influence of each subject or question on $r$. *Off* is the mean of what the probe
# says less the mean accuracy; the square of it is the part of a Brier score that the level alone costs.


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
    row = correlate(subset[columns], mu, subjects(subset))
    row["off"] = subset[columns].mean().mean() - mu.mean()
    order[name, probe] = row | {"shift": manifests.shift(probe, name)}
order = pd.DataFrame(order).T.infer_objects().dropna()
order = holm(order.rename_axis(["dataset", "probe"]).reset_index())

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Correlation of what a probe says with the expected accuracy, each with its own 95 % interval. Right of the line it gives easy questions more than hard ones. Filled: significant after Holm among the cases of this figure; hollow: cannot tell.", "name": "fig-transfer-order"}, "image": {"alt": "Marks with intervals, a row for each probe and data set, in three groups by shift, around a line at zero. Marks are filled where the verdict is clear after Holm, and hollow elsewhere."}} paper=["table-7", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"]
# needs probes
draw(order, "correlation with the expected accuracy")

# %% tags=["hide-input"]
# needs probes
largest = order.loc[order["off"].abs().idxmax()]
joined = order.merge(gained, on=["dataset", "probe"], suffixes=("", " gain"))
lost = joined.loc[joined["estimate gain"].idxmin()]
loss = -lost["estimate gain"]

# %%
# needs probes
notebook.say(
    """
After Holm, the correlation is above zero on {home} data sets at home, on {far} within the domain and on {out} outside. The level
is farthest off by {most:+.2f}, for {probe} on {title}.
""",
    most=largest["off"],
    probe=largest["probe"],
    title=load_dataset(largest["dataset"]).title,
    **dict(zip(["home", "far", "out"], shares(order, "better"), strict=True)),
)

# %% tags=["hide-input"]
# needs probes
if loss > 0:
    text = (
        "Of the largest loss against the constant, {loss:.3f} for {probe} on {title}, "
        "the level alone is {level:.3f}."
    )
    about = {"loss": loss, "level": lost["off"] ** 2, "probe": lost["probe"]}
    about["title"] = load_dataset(lost["dataset"]).title
    display(notebook.say(text, **about))

# %% tags=["hide-input"] label="probe-gains" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "features"]
# needs probes
both = {"gain": gained, "correlation": order}
table = pd.concat(both, names=["measure"]).reset_index("measure")
table["data set"] = table["dataset"].map(data["title"])
columns = ["data set", "probe", "measure", "estimate", "low", "high"]
columns += ["p (Holm)", "verdict", "off"]
tables.show(
    table.sort_values(["data set", "probe"], kind="stable")[columns],
    "Mean gain of a probe over the best constant (higher is better), and its correlation with the expected "
    "accuracy, each with its own 95 % interval; the verdict after Holm, with the family of each measure; and how far the level is off.",
    evidence=evidence,
    off="{:+.3f}",
    **{"p (Holm)": tables.p_value},
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
# is the probe of the nearer of the two, and the data sets are a family of their own for Holm's method:

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
changes[["estimate", "low", "high", "p (Holm)", "verdict"]]

# %% tags=["hide-input"]
# needs mixture
notebook.say(
    "After Holm, {mixture} is better than the probe of one set on {better} of {sets} data sets, and worse on {worse}.",
    mixture=mixture,
    sets=len(changes),
    better=int(changes["verdict"].eq("better").sum()),
    worse=int(changes["verdict"].eq("worse").sum()),
)

# %% [markdown] needs="near"
# ## Starting from a near probe
#
# Twenty questions of a new data set are labelled by four samples each, and there is a probe of another set of its domain. Is it
# best left as it is, recalibrated by Platt's method, or replaced by the mean of the labels? Which twenty are labelled is drawn 400
# times: whoever labels has one such draw, and 95 of a hundred draws lie within the limits below.


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
    draws = [
        use_labels(subset, name)
        for name in columns
        for _ in range(400 // len(columns))
    ]
    by_use[dataset, probe] = pd.DataFrame(draws)
by_use = pd.concat(by_use, names=["data set", "probe", "draw"])
by_use.groupby(level=["data set", "probe"]).mean().round(3)  # scores

# %%
# needs near
saved = pd.DataFrame(
    {
        rival: by_use[rival] - by_use["recalibrated"]
        for rival in ("as it is", "constant")
    }
)
saved = saved.rename_axis(columns="rival").stack()
by_rival = saved.groupby(level=["data set", "probe", "rival"], sort=False)
saved = by_rival.quantile([0.025, 0.975]).unstack()
saved = saved.set_axis(["low", "high"], axis="columns")
saved.insert(0, "gain", by_rival.mean())

# %% tags=["hide-input"] label="probe-labels" evidence=["measured"] reads=["verdicts", "features"]
# needs near
tables.show(
    saved.rename(index=data["title"], level="data set"),
    "By how much recalibration on twenty labelled questions lowers the score on the others, against two rivals: its mean over 400 draws "
    "of the twenty, and the limits of the middle 95 %.",
    evidence=evidence,
)

# %% tags=["hide-input"]
# needs near
helped = saved["low"].gt(0).groupby(level="rival", sort=False)
of_rivals = {"as it is": "as_is", "constant": "constant"}
notebook.glue(
    labelled=len(near_pairs),
    **{of_rivals[name]: int(count) for name, count in helped.sum().items()},
)

# %%
# needs near
notebook.say("""
Recalibration lowers the score in nearly every draw (more than 97 of a hundred) for {as_is} of {labelled} probes against leaving it as
it is, and for {constant} against the mean of the labels. The limits are of draws among these questions; other questions would
widen them.
""")

# %% [markdown] needs="recipes"
# ## Does the recipe matter at home?
#
# The paper trains its probes another way than the tuned ones of this page. Every recorded model is asked.


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
# Probes are trained and tuned on the training split only, and scored once on the evaluation split, each on its own data set.
# Left out are pairs of a model and a data set on which the variance of $\hat\mu$ over questions is 0.01 or less: there is little
# that could be learnt.

# %% tags=["hide-input"]
# needs recipes
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
    """Score each question of a model by its data set's probes."""
    results = load_results(
        runs, name, k_eval=k_eval, recipe=None, verdicts=verdicts
    ).sort_index()
    results = results[["correct", "total"]].query("total > 1")
    results = results.join(predict(name, "tuned", TUNED))
    results = results.join(predict(name, "paper", PAPER))
    mu = results["correct"] / results["total"]
    varied = mu.groupby(level="dataset").transform("var") > 0.01
    terms = brier_terms(results[varied].dropna(), protocol=protocol)
    return terms.reindex(columns=[BEST_CONSTANT, PAPER, TUNED]).dropna()


# %%
# needs recipes
terms = {load_model(name).title: bench(name) for name in shown}
terms = pd.concat(terms, names=["model"])

# %% tags=["hide-input"]
notebook.lack(bool(shown) and terms.empty, recipes=NONE)

# %% [markdown] needs="recipes"
# The two are compared question by question, with subjects drawn whole: over the questions of all pairs, and on each pair, which
# are judged together by Holm's method as a family of their own. How either compares with the best constant is no question of this
# section: [the models together](11_small_models.ipynb) answer it.

# %%
# needs recipes
rivals = terms[[PAPER, TUNED]]
judged = holm(gains_by_dataset(rivals, PAPER)).reset_index()
groups = subjects(terms.droplevel("model")).to_numpy()
whole = gains(rivals, PAPER, clusters=groups).loc[TUNED]

# %% tags=["hide-input"]
# needs recipes
notebook.glue(
    pairs=len(judged),
    lower=whole["estimate"],
    low=whole["low"],
    high=whole["high"],
    lower_on=int((judged["verdict"] == "better").sum()),
    higher_on=int((judged["verdict"] == "worse").sum()),
)

# %%
# needs recipes
notebook.say("""
Over the questions of {pairs} pairs of a model and a data set, a tuned probe scores {lower:.3f} [{low:.3f}, {high:.3f}] lower than one
by the paper's recipe. Pair by pair it is lower on {lower_on}, and higher on {higher_on}, after Holm.
""")

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Capability Brier score by the paper's recipe less that of the tuned probe of the same data set, each with its own 95 % interval paired on the same questions; right of the line the tuned probe is closer. Filled: significant, of the pairs after Holm; hollow: cannot tell.", "name": "fig-predictors"}, "image": {"alt": "Dot plot with intervals, a row for all questions and one for each pair of data set and model, around a line at zero. Marks are filled where the difference is significant, and hollow elsewhere."}} paper=["table-5", "appendix-c.2", "section-4.2"] evidence=["measured"] reads=["verdicts", "features"]
# needs recipes
drawn = judged.assign(
    pair=[
        f"{load_dataset(name).title}, {title.removesuffix('-Instruct')}"
        for title, name in judged[["model", "dataset"]].values
    ]
)
drawn = pd.concat([whole.to_frame().T.assign(pair="all questions"), drawn])
size = style.WIDTH, 1 + 0.25 * len(drawn)
axes = plt.subplots(figsize=size, layout="constrained")[1]
color = plots.SHIFT_COLORS[manifests.IN_DISTRIBUTION]
plots.mark_verdicts(axes, drawn["pair"], drawn, color=color)
axes.invert_yaxis()
axes.axvline(0, color=plots.INK, lw=1)
_ = axes.set(xlabel="score of the paper's recipe less that of the tuned")

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
# - A probe is asked twice: is it closer than the best constant, and does it tell easy questions from hard? The second may be so
#   where the first is not.
# - The best constant of a data set is the rival that asks for order; Uniform random is beaten by almost anything.
# - Where an interval does not decide, "not shown to be closer" is all that can be said.
# - Twenty labelled questions are a draw: look at the limits before recalibrating. Recalibration by an increasing function
#   mends a level and leaves the order as it is.
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
