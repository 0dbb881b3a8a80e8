# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How good is a probe?
#
# This page compares the linear probe of the paper (section 4.2, appendix C.2) with a constant, a tuned probe and two
# that read all layers, and shows what a probe needs to learn from and when its predictions can be relied on.

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has most training runs
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns

# %% tags=["hide-input"]
from capcal_lib.book import notebook, style
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import mean_interval
from capcal_lib.probes import (
    LinearProbe,
    TunedProbe,
    conformal_half_width,
    read_predictions,
    runs_for_probes,
    training_data,
)
from capcal_lib.results import (
    brier_terms,
    describe_runs,
    load_results,
    subjects,
)

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
rng = np.random.default_rng(seed)
runs = notebook.open_store(store)

# %% tags=["hide-input"]
simulated = load_model(model).engine == "simulated"
real = [
    name for name in model_names() if load_model(name).engine != "simulated"
]
models = [model] if simulated else real


# %% tags=["hide-input"]
def training_runs(name):
    found = runs_for_probes(runs, name, "training")
    return {dataset.name: run for dataset, run in found}


# %% tags=["hide-input"]
CONSTANT, PAPER = "constant", "paper's recipe"
RECIPES = {"tuned linear": "tuned", "kernel": "kernel", "stacked": "stacked"}
SPLITS = range(5)


# %% tags=["hide-input"]
def own_probe(table):
    """Keep what each data set's own probe predicts."""
    own = {name: load_dataset(name).probe for name in table.index.unique(0)}
    long = table.stack().dropna()
    keep = [own[dataset] == probe for dataset, _, probe in long.index]
    return long[keep].droplevel(2)


# %% tags=["hide-input"]
def predictions(name):
    """Predict a model's questions by each kind of probe."""
    said = {
        kind: own_probe(read_predictions(runs, name, recipe=recipe))
        for kind, recipe in RECIPES.items()
    }
    for split in SPLITS:
        each = read_predictions(runs, name, recipe="paper", split=split)
        said[f"{PAPER} {split}"] = own_probe(each)
    return pd.DataFrame(said).dropna()


# %% tags=["hide-input"]
def training_means(name):
    return {
        dataset: training_data(run)[0].eval("correct / total").mean()
        for dataset, run in training_runs(name).items()
    }


# %% tags=["hide-input"]
def terms_of(name):
    """Score each question of a model by each predictor."""
    counts = load_results(runs, name, k_eval=k_eval)[["correct", "total"]]
    results = counts.join(predictions(name), how="inner")
    means = results.index.get_level_values(0).map(training_means(name))
    return brier_terms(results.assign(**{CONSTANT: means}))


# %% tags=["hide-input"]
with_probes = [name for name in models if training_runs(name)]
training = training_runs(model)

# %% tags=["hide-input"]
lacking = {"probes": "No probe can be trained."} if not with_probes else {}
if not training:
    lacking["own"] = (
        "No training split of this model has samples and hidden states: "
        "what is measured here is measured on other models."
    )

# %% tags=["hide-input"]
described = describe_runs(runs, model, k_eval=k_eval)
notebook.about(model, described, lacking=lacking)

# %% tags=["hide-input"]
# needs probes
terms = pd.concat(
    {name: terms_of(name) for name in with_probes}, names=["model"]
)
drawn = terms.filter(like=PAPER)
terms[PAPER] = drawn.mean(axis="columns")
scores = terms.groupby(["model", "dataset"], sort=False).mean()
kinds = [
    name for name in scores if name in RECIPES or name.startswith(PAPER + " ")
]
gains = scores[kinds].sub(scores[CONSTANT], axis="index")

# %% tags=["hide-input"]
# needs probes
none = {"probes": "No scored question has all the probes compared here."}
notebook.lack(**({} if len(gains) else none))


# %% tags=["hide-input"]
def interval(values, level=0.95):
    """Draw whole subjects, where the questions come in subjects."""
    clusters = subjects(values.droplevel("model").to_frame()).to_numpy()
    return mean_interval(
        values.to_numpy(),
        rng=rng,
        clusters=clusters,
        level=level,
        bounds=(-1, 1),
    )


# %% tags=["remove-cell"]
# needs probes
better, worse, sure = {}, {}, []
together = 1 - 0.05 / max(1, 4 * len(scores))  # Bonferroni
for kind in (PAPER, *RECIPES):
    difference = (terms[kind] - terms[CONSTANT]).groupby(["model", "dataset"])
    found = [interval(values) for _, values in difference]
    better[kind] = sum(each.high < 0 for each in found)
    worse[kind] = sum(each.low > 0 for each in found)
    sure += [interval(values, together) for _, values in difference]
notebook.glue(
    all=len(sure),
    surely=sum(each.high < 0 for each in sure),
    surely_worse=sum(each.low > 0 for each in sure),
)

# %% tags=["remove-cell"]
# needs probes
spread = drawn.groupby(["model", "dataset"]).mean().std(axis=1).max()
notebook.glue(pairs=len(scores), spread=spread)
notebook.glue(paper_better=better[PAPER], paper_worse=worse[PAPER])

# %% tags=["remove-cell"]
# needs probes
notebook.glue(
    tuned_better=better["tuned linear"], tuned_worse=worse["tuned linear"]
)
notebook.glue(kernel_better=better["kernel"], kernel_worse=worse["kernel"])
notebook.glue(stacked_better=better["stacked"], stacked_worse=worse["stacked"])

# %% [markdown] needs="probes"
# On {glue:text}`pairs` pairs of a model and a data set, a linear probe tuned on its training questions is significantly
# better than a constant on {glue:text}`tuned_better` and worse on {glue:text}`tuned_worse`; the paper's recipe on
# {glue:text}`paper_better` and {glue:text}`paper_worse`; a kernel probe on {glue:text}`kernel_better` and
# {glue:text}`kernel_worse`; a stacked probe on {glue:text}`stacked_better` and {glue:text}`stacked_worse`. Of all
# {glue:text}`all` comparisons judged together (Bonferroni), {glue:text}`surely` are better and {glue:text}`surely_worse` worse.

# %% tags=["hide-input"]
# needs probes
shown = gains.reset_index()
shown = shown.melt(["model", "dataset"], var_name="probe", value_name="gain")
shown["probe"] = shown["probe"].str.replace(
    r" \d$", ", five splits", regex=True
)

# %% tags=["hide-input"]
# needs probes
titles = [load_dataset(name).title for name in shown["dataset"]]
shown["pair"] = [
    f"{title}\n{load_model(name).title.removesuffix('-Instruct')}"
    for title, name in zip(titles, shown["model"], strict=True)
]

# %% mystnb={"figure": {"caption": "Capability Brier score of probes trained on the data set's own training split, less that of a constant, the mean of the training questions; left of the line a probe is better. The paper's recipe is shown for five splits of its questions.", "name": "fig-predictors"}, "image": {"alt": "Dot plot with one row for each pair of data set and model. The tuned, kernel and stacked probes lie at or left of zero almost everywhere; the five dots of the paper's recipe spread, on some rows far to the right."}} paper=["table-5", "appendix-c.2", "section-4.2"] evidence=["measured"] reads=["verdicts", "features"] tags=["hide-input"]
# needs probes
green = style.SHIFT_COLORS[style.IN_DISTRIBUTION]
axes = sns.scatterplot(
    shown.iloc[::-1],
    x="gain",
    y="pair",
    hue="probe",
    style="probe",
    hue_order=[f"{PAPER}, five splits", *RECIPES],
    style_order=[f"{PAPER}, five splits", *RECIPES],
    palette=[style.MUTED, green, style.OWN, style.INK],
    markers=["X", "o", "^", "D"],
    s=55,
)
axes.axvline(0, color=style.INK)
axes.figure.set_size_inches(style.WIDTH, 1 + 0.55 * len(gains))
axes.set(xlabel="score less that of the constant", ylabel="")
sns.move_legend(
    axes, "upper center", bbox_to_anchor=(0.4, -0.1), ncols=4, title=""
)

# %% [markdown] needs="probes"
# ## The predictors
#
# All are trained on the same questions and samples, those of the data set's training split, and read one pass over the
# prompt. So none costs more than another when it predicts.
#
# - The **constant** is the mean expected accuracy of the training questions. It needs no model, and a probe that does not
#   beat it has learned nothing about single questions.
# - The **paper's recipe** is a linear probe on the mean over layers, trained by stochastic gradient descent; a fifth of the
#   training questions chooses its learning rate and its epoch. Which fifth matters: the standard deviation of the score
#   over five splits is up to {glue:text}`spread:.3f`.
# - The **tuned linear** probe has the same form and the same loss, solved to its optimum, with the weight decay chosen by
#   cross-validation. It is the probe of all other pages.
# - The **kernel** probe reads all layers in place of their mean, by kernel ridge regression.
# - The **stacked** probe is a weighted mean of linear probes, kernel probes and the constant. Its weights are those that
#   predict left-out training questions best. The directions along which it sees the layers are those of all training
#   questions, without their labels. Taken inside each fold, they change its cross-validated score by at most 0.0004 and its
#   score on the evaluation split by at most 0.0001, and move no prediction by more than 0.009 (SmolLM2-135M on the four
#   built-in sets and TriviaQA).
#
# The settings of the kernel and of the stacked probe were chosen on training questions of the built-in sets of
# SmolLM2-135M, but with these test sets at hand, so that their lead may flatter them.
# [Probes in detail](23_probes_in_detail.ipynb) has the scores with their intervals.

# %% [markdown] needs="own"
# ## More questions, or more samples of each?
#
# A training set costs questions times samples. Fewer questions are drawn from those that there are; fewer samples are
# drawn from the recorded ones without replacement, which is what sampling less would have given.

# %%
# needs own
results = load_results(runs, model, k_eval=k_eval)[["correct", "total"]]
spread = results.eval("correct / total").groupby(level=0).var()
home = spread.filter([*training]).idxmax()
questions, features = training_data(training[home])

# %%
# needs own
predicted = read_predictions(runs, model)[load_dataset(home).probe].dropna()
found = runs_for_probes(runs, model, "evaluation")
asked = predicted.index.unique("dataset")
evaluation = {each.name: run for each, run in found if each.name in asked}

# %%
# needs own
unseen, unseen_features = training_data(evaluation[home])
asked = [(home, name) for name in unseen.index]
counts = results.loc[asked]


# %%
# needs own
def score_probe(rows, correct, total):
    probe = TunedProbe().fit(features[rows], correct, total)
    said = counts.assign(probe=probe.predict(unseen_features))
    return brier_terms(said)["probe"].mean()


# %%
# needs own
correct, total = questions.to_numpy().T
everyone, curve = np.arange(len(questions)), []
for size in [size for size in (25, 50, 100, 200, 400) if size < len(questions)]:
    for _ in range(3):
        rows = rng.permutation(len(questions))[:size]
        score = score_probe(rows, correct[rows], total[rows])
        curve.append(("fewer questions", total[rows].sum(), score))

# %%
# needs own
for k in [k for k in (1, 2, 5) if k < total.min()]:
    for _ in range(3):
        fewer = rng.hypergeometric(correct, total - correct, k)
        score = score_probe(everyone, fewer, np.full(len(total), k))
        curve.append(("fewer samples of each", k * len(total), score))
score = score_probe(everyone, correct, total)
for way in ("fewer questions", "fewer samples of each"):
    curve.append((way, total.sum(), score))
curve = pd.DataFrame(curve, columns=["way", "samples", "score"])

# %% tags=["remove-cell"]
# needs own
means = curve.groupby(["way", "samples"])["score"].mean()
notebook.glue(home=load_dataset(home).title)
notebook.glue(one_sample=means["fewer samples of each"].iloc[0])
notebook.glue(few_questions=means["fewer questions"].iloc[0])
ways = ["many questions and few samples", "few questions and many samples"]
worse_many = (
    means["fewer samples of each"].iloc[0] > means["fewer questions"].iloc[0]
)
notebook.glue(better_set=ways[int(worse_many)])

# %% mystnb={"figure": {"caption": "Score of the tuned probe against the samples that its training set costs, saved on questions or on samples of each; mean of three draws, and their range. Lower is better.", "name": "fig-learning"}, "image": {"alt": "Two falling curves over the number of training samples which meet at the right. At the same cost, the curve with fewer samples of each question lies lower than that with fewer questions."}} paper=["appendix-c.2"] evidence=["measured"] reads=["verdicts", "features"] tags=["hide-input"]
# needs own
axes = sns.lineplot(
    curve.round({"samples": -1}),
    x="samples",
    y="score",
    hue="way",
    style="way",
    markers=True,
    errorbar=("pi", 100),
    palette=[style.SHIFT_COLORS[style.IN_DISTRIBUTION], style.OWN],
)
axes.set(title=load_dataset(home).title)
axes.legend(title="")
_ = axes.set(xlabel="training samples", ylabel="capability Brier score")

# %% [markdown] needs="own"
# On {glue:text}`home` one sample of every question gives a score of {glue:text}`one_sample:.3f`. All samples of the fewest
# questions, at about the same cost, give {glue:text}`few_questions:.3f`. Here a training set does better with
# {glue:text}`better_set`.
#
# ## When can a prediction be relied on?
#
# Half of the training questions fit a probe, and the other half calibrate a *split-conformal* band around its
# predictions, wide enough for nine in ten of them. Of new questions of the same kind at least 90 % then have their
# $\hat\mu$ inside. The promise is about questions of the same kind only.

# %%
# needs own
mu = correct / total
fitted, calibration = np.array_split(rng.permutation(len(mu)), 2)
probe = TunedProbe().fit(features[fitted], correct[fitted], total[fitted])
said = probe.predict(features[calibration])
width = conformal_half_width(said, mu[calibration], level=0.9)

# %%
# needs own
inside = {}
for name, run in evaluation.items():
    asked, seen = training_data(run)
    error = np.abs(probe.predict(seen) - asked.eval("correct / total"))
    inside[load_dataset(name).title] = (error <= width).mean()

# %%
# needs own
band = pd.DataFrame({"inside": inside}).rename_axis("data set").reset_index()
band["shift"] = [
    style.shift(load_dataset(home).probe, name) for name in evaluation
]

# %% mystnb={"figure": {"caption": "Share of questions whose expected accuracy lies in the 90 % conformal band of a probe, on its own data set and on others. The line is at 90 %.", "name": "fig-band"}, "image": {"alt": "Dot plot with one row for each data set. The probe's own data set lies near the line at 90 percent; many others lie far below it."}} evidence=["measured"] reads=["verdicts", "features"] tags=["hide-input"]
# needs own
axes = sns.stripplot(
    band,
    x="inside",
    y="data set",
    hue="shift",
    hue_order=[name for name in style.SHIFTS if name in set(band["shift"])],
    palette=style.SHIFT_COLORS,
    size=9,
    jitter=False,
)
axes.axvline(0.9, color=style.INK)
axes.legend(title="")
_ = axes.set(
    xlabel="share of questions inside the band", ylabel="", xlim=(0, 1.05)
)

# %% tags=["remove-cell"]
# needs own
away = band["shift"] != style.IN_DISTRIBUTION
notebook.glue(width=width, covered=band["inside"][~away].mean())
notebook.glue(least=band["inside"].min())

# %% [markdown] needs="own"
# The band of the probe of {glue:text}`home` reaches {glue:text}`width:.2f` to either side of a prediction. It covers
# {glue:text}`covered:.0%` of the questions of its own data set, and as few as {glue:text}`least:.0%` of another one.

# %% [markdown]
# ## Summary
#
# - A probe is only as good as the constant that it beats; where nothing can be predicted, the mean is the best probe.
# - The weight decay matters more than the kind of probe: the paper's recipe depends on how it splits few questions.
# - A conformal band covers as promised for questions like the training questions, and for no others.
#
# ## Exercises
#
# **1 (easy).** A constant of 0.4 is scored on questions with $\mu$ = 0.2, 0.4 and 0.9. What is its capability Brier score,
# and which constant is best? *Hint:* it is a mean squared error.

# %% tags=["hide-cell", "solution"]
mu = np.array([0.2, 0.4, 0.9])
float(((0.4 - mu) ** 2).mean()), float(mu.mean()), float(mu.var())

# %% [markdown]
# **2 (medium).** Twenty questions with 50 features of pure noise train a linear probe. What does it score on new questions
# with decay 0.01, and what does cross-validation choose? *Hint:* `TunedProbe`.

# %% tags=["hide-cell", "solution"]
noise, hits = rng.normal(size=(220, 50)), rng.binomial(10, 0.5, 220)
chosen = TunedProbe().fit(noise[:20], hits[:20], np.full(20, 10))
fixed = LinearProbe(weight_decay=0.01, standardize=True)
fixed.fit(noise[:20], hits[:20], np.full(20, 10))
for decay, probe in ((0.01, fixed), (chosen.weight_decay_, chosen)):
    error = ((probe.predict(noise[20:]) - 0.5) ** 2).mean()
    print(decay, error.round(4))

# %% [markdown]
# **3 (hard).** Why does a 90 % band take the 46th largest of 50 calibration errors, and not the 45th? Check the coverage of
# both by drawing. *Hint:* a new error is equally likely to have any rank among 51.

# %% tags=["hide-cell", "solution"]
errors = np.sort(rng.random((20_000, 50)), axis=1)
new = rng.random(20_000)
[float((new <= errors[:, rank - 1]).mean()) for rank in (45, 46)]
