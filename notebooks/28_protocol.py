# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What each correction changes
#
# This book scores confidences differently from the paper in five ways. Here each is switched back alone, on the same
# recorded samples; and the sizes of its samples are set beside the leaner ones of `capcal reproduce`.

# %% tags=["parameters", "hide-input"]
model: str = "smollm2-135m"  # one of `capcal models`; it has most data sets
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
k_c: int = 10  # samples that vote
learning_from: str = ""  # training data set; empty: those with most questions
seed: int = 0  # of what is drawn

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib.applications import (
    pass_at_k,
    pass_at_k_error_terms,
    simulate_pass_at_k,
    split_counts,
)

# %% tags=["hide-input"]
from capcal_lib.book import notebook, style, tables
from capcal_lib.confidence import mean_tokens
from capcal_lib.errors import InputError
from capcal_lib.grading import judge_agreement, judges
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import capability_brier_terms, gains
from capcal_lib.probes import (
    TunedProbe,
    draw_training,
    read_predictions,
    runs_for_probes,
    training_data,
)
from capcal_lib.results import (
    brier_terms,
    describe_runs,
    load_results,
    score,
    subjects,
)

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval)


# %% tags=["hide-input"]
def with_training(name):
    """List a model's data sets with a training run: a row each."""
    found = runs_for_probes(runs, name, "evaluation")
    asked = {each.name: run for each, run in found}
    found = runs_for_probes(runs, name, "training")
    return [
        {"model": name, "dataset": each.name, "run": run, "asked": test}
        for each, run in found
        if (test := asked.get(each.name))
    ]


# %% tags=["hide-input"]
simulated = load_model(model).engine == "simulated"
real = [
    name for name in model_names() if load_model(name).engine != "simulated"
]
models = [model] if simulated else real
rows = [row for name in models for row in with_training(name)]
pairs = pd.DataFrame(rows, columns=["model", "dataset", "run", "asked"])
pairs["questions"] = [len(training_data(run)[0]) for run in pairs["run"]]
pairs = pairs.query("questions >= 100")  # fewer teach a probe nothing

# %% tags=["hide-input"]
taught = pairs.query("model == @model").set_index("dataset")
most = pairs["questions"].clip(upper=1_000).max()
chosen = "dataset == @learning_from" if learning_from else "questions >= @most"
learners = pairs.query(chosen).sort_values("dataset", kind="stable")
learners["case"] = [
    f"{load_dataset(row.dataset).title}, {load_model(row.model).short_title}"
    for row in learners.itertuples()
]
learners = learners.set_index("case")
lacking = {}
if taught.empty:
    lacking["trained"] = (
        "No training run of this model with 100 questions or more is recorded."
    )
if learners.empty:
    lacking["curve"] = "No training run of 100 questions or more is recorded."
notebook.about(model, data, lacking=lacking)

# %% [markdown] needs="samples"
# *Plug-in* leaves the noise of $\hat\mu$ in the score. *Missing as 0.5* gives a question without a confidence one half,
# where the method was asked at all:


# %%
# needs samples
def means(terms):
    """Return the mean term of each data set and method."""
    by_set = terms.groupby(level="dataset", sort=False).mean()
    return by_set.rename_axis(columns="method").stack().dropna()


ours = load_results(runs, model, k_eval=k_eval, k_c=k_c)
terms = brier_terms(ours)
base = means(terms)

# %%
# needs samples
plug_in = brier_terms(ours, protocol="paper").where(terms.notna())
asked = ours.groupby(level="dataset").transform("count") > 0
filled = brier_terms(ours.fillna(0.5).where(asked))
switched = {"plug-in scores": means(plug_in), "missing as 0.5": means(filled)}

# %% [markdown] needs="samples"
# *Votes in the pool* takes the samples that vote from those that define $\hat\mu$, so that they share their luck. *Paper's
# probes* are trained by its recipe; the score is the mean of its five splits:

# %%
# needs samples
shared = {"k_eval": k_eval, "k_c": k_c, "held_out": False}
pool = load_results(runs, model, **shared)
switched["votes in the pool"] = means(brier_terms(pool))

# %%
# needs samples
counts = ours[["correct", "total"]]
splits = [
    read_predictions(runs, model, recipe="paper", split=split)
    for split in range(5)
]
splits = [means(brier_terms(counts.assign(**each))) for each in splits]
switched["paper's probes"] = pd.concat(splits, axis=1).mean(axis=1)


# %% tags=["hide-input"]
def by_judge(dataset, judge):
    """Score by a judge's verdicts; None where it has not judged them all."""
    chosen = {"datasets": [dataset], "verdicts": f"judge:{judge}"}
    try:
        found = load_results(runs, model, k_eval=k_eval, k_c=k_c, **chosen)
    except InputError:
        return None
    return means(brier_terms(found))


# %% tags=["hide-input"]
# needs samples
pairs = [
    (name, each) for name in data.index for each in judges(data["run"][name])
]
found = {pair: by_judge(*pair) for pair in pairs}
judged = {pair: each for pair, each in found.items() if each is not None}
said = []
for name, judge in judged:
    rng = np.random.default_rng(seed)
    both = judge_agreement(data["run"][name], judge)["samples"]
    said.append(
        f"{100 * both.rate.estimate:.0f} % of the samples of "
        f"{data['title'][name]} "
        f"(κ = {both.kappa:.2f}, judged by {load_model(judge).title})"
    )
if judged:
    every = pd.concat(judged.values())
    switched["a judge's verdicts"] = every.groupby(level=[0, 1]).mean()

# %% [markdown] needs="samples"
# A shift above zero makes the score worse. *All together* is the paper's protocol, but for the judge:

# %%
# needs samples
said_by = pool.drop(columns=[name for name in pool if name.startswith("Probe")])
said_by = said_by.join(read_predictions(runs, model, recipe="paper"))
switched["all together"] = means(brier_terms(said_by, protocol="paper"))
shifts = pd.DataFrame(switched).sub(base, axis="index")
long = shifts.rename_axis(columns="switch").stack().rename("shift")
long = long[long.abs() > 1e-12].reset_index()

# %% tags=["hide-input"]
# needs samples
size = long["shift"].abs().groupby(long["switch"], sort=False).mean()
alone = size.drop(["all together", "a judge's verdicts"], errors="ignore")
whole = long[long["switch"] == "all together"]
farthest = whole.loc[whole["shift"].abs().idxmax()]
notebook.glue(
    most=alone.idxmax(),
    most_points=alone.max(),
    together=size["all together"],
    farthest=abs(farthest["shift"]),
    farthest_at=farthest["method"],
    farthest_on=load_dataset(farthest["dataset"]).title,
    judge_said=f"Rules and judge agree on {', '.join(said)}."
    if said
    else "No judge has done so here.",
)

# %% tags=["finding"]
# needs samples
notebook.finding("""
The switch to *{most}* shifts the scores that it touches most, by {most_points:.3f} on average, up or down. All
switches together shift a score by {together:.3f} on average, and by up to {farthest:.3f}: that of {farthest_at} on
{farthest_on}.
""")

# %% mystnb={"figure": {"caption": "The shift of every score (one dot per data set and method) when one correction is switched off, and when all are. Right of zero a score becomes worse.", "name": "fig-protocol"}, "image": {"alt": "Strip plot with a row for each switch. Plug-in scores shift methods right and Oracle CC not at all; votes in the pool and missing confidences move few dots; the paper's probes spread widest."}} paper=["section-4.1", "table-5", "table-6"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
look = {"color": style.INK, "alpha": 0.4, "order": list(switched)}
axes = sns.stripplot(long, x="shift", y="switch", jitter=False, **look)
axes.axvline(0, color=style.MUTED, zorder=0)
_ = axes.set(xlabel="shift of the capability Brier score", ylabel="")

# %% label="protocol-shifts" paper=["section-4.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
by_switch = long.groupby("switch", sort=False)["shift"]
table = by_switch.agg(cells="size", mean="mean", lowest="min", highest="max")
table["mean size"] = size
tables.show(
    table.reindex(list(switched)).dropna().rename_axis("switched back"),
    "Shift of the score by each switch, over data sets and methods: its mean "
    "with its sign, and the mean of its size.",
    evidence=data["evidence"].iloc[0],
)

# %%
# needs samples
notebook.say("""
The noise that *plug-in* leaves in is the same for every confidence, so it changes no order among them; the other
switches can. A judge's verdicts can be switched on where it has judged every answer to a data set. {judge_said} The lower Cohen's κ, the more of that shift is the judge's own
error; [Grading](13_grading.ipynb) compares the two.

The notebooks 03 to 08 take the paper's protocol at once with `-p protocol paper`, and a judge's verdicts with `-p verdicts
judge:MODEL`; in Python, `score(results, protocol="paper")`.
""")

# %% [markdown] needs="samples"
# ## An oracle that has seen its target
#
# Oracle CC predicts [pass@k](05_pass_at_k.ipynb) from $\hat\mu$. In the paper it knows the very samples that it is scored
# on, and $k$ goes up to their number, where the measured pass@k is itself noisy. An honest oracle knows one half of the
# samples and is scored on the other:

# %%
# needs samples
spread = (ours["correct"] / ours["total"]).groupby(level="dataset").var()
own = ours.loc[spread.idxmax()].query("total > 3")
c, n = own["correct"], own["total"]
ks = [k for k in (1, 4, 16, 64) if k <= n.min()]

# %%
# needs samples
in_sample = simulate_pass_at_k(c / n, ks)
paper_error = ((in_sample - pass_at_k(c, n, ks)) ** 2).mean(axis=0)
known, held_out = split_counts(c, n, rng=np.random.default_rng(seed))
honest = simulate_pass_at_k(known[0] / known[1], ks)
honest_error = pass_at_k_error_terms(honest, *held_out, ks).mean(axis=0)

# %% label="protocol-pass-at-k" paper=["table-3", "table-8"] evidence=["measured"] reads=["verdicts"]
# needs samples
oracles = {"in sample": paper_error, "known half, other half": honest_error}
tables.show(
    pd.DataFrame(oracles, [f"pass@{k}" for k in ks]).T.rename_axis("oracle"),
    "Squared error of Oracle CC on "
    f"{load_dataset(spread.idxmax()).title} (lower is better).",
    digits=4,
    evidence=data["evidence"].iloc[0],
)

# %% [markdown] needs="curve"
# ## One sample of many questions
#
# One sample is a noisy label of its question. But a probe averages over questions, and a new question also teaches what
# another sample of an old one cannot. How much, the recorded training samples say. Probes are trained on $n$ questions with
# $k$ samples each, drawn from those that there are, and scored on all evaluation questions; below 1,000 questions the score
# is the mean of five draws.


# %%
# needs curve
def fit_probe(run, n, k, rng):
    """Train a probe on k samples of n questions, drawn from a run."""
    questions, features = training_data(run)
    drawn = draw_training(questions, n, k, rng=rng)
    rows = questions.index.get_indexer(drawn.index)
    return TunedProbe().fit(features[rows], drawn["correct"], drawn["total"])


# %%
# needs curve
def learn(run, asked, n, k):
    """Return the mean terms of probes trained on k samples of n questions."""
    unseen, states = training_data(asked)
    counts = unseen["correct"], unseen["total"]
    rng = np.random.default_rng([seed, n, k])
    terms = []
    for _ in range(5 if n < 1_000 else 1):  # few questions differ by chance
        said = fit_probe(run, n, k, rng).predict(states)
        terms.append(capability_brier_terms(said, *counts, corrected=True))
    return np.mean(terms, axis=0)


# %%
# needs curve
SIZES, SAMPLES = (100, 300, 1_000, 3_000, 10_000), (1, 3, 10)
learned = {}
for case, row in learners.iterrows():
    total = training_data(row["run"])[0]["total"]
    for k in SAMPLES:
        for n in [n for n in SIZES if n <= (total >= k).sum()]:
            learned[case, n, k] = learn(row["run"], row["asked"], n, k)
learned = pd.Series(learned).rename_axis(["case", "questions", "samples"])

# %%
# needs curve
curve = learned.map(np.nanmean).rename("score").reset_index()
each = curve["case"].map(learners["run"].map(mean_tokens))
curve["tokens"] = curve["questions"] * curve["samples"] * each

# %%
# needs curve
constants = {}
for case, row in learners.iterrows():
    known, asked = (training_data(row[of])[0] for of in ("run", "asked"))
    mean = np.full(len(asked), known.eval("correct / total").mean())
    triple = mean, asked["correct"], asked["total"]
    terms = capability_brier_terms(*triple, corrected=True)
    constants[case] = np.nanmean(terms)

# %% [markdown] needs="curve"
# Where as many samples were drawn of more and of fewer questions, the scores are compared question by question:

# %%
# needs curve
judged, found = {}, learned.reset_index(name="terms")
found["drawn"] = found["questions"] * found["samples"]
for (case, drawn), same in found.groupby(["case", "drawn"]):
    if len(same) > 1:
        terms = same.set_index(same["samples"].astype(str))["terms"]
        home, asked = learners.loc[case, ["dataset", "asked"]]
        terms = pd.DataFrame(terms.to_dict(), training_data(asked)[0].index)
        terms = pd.concat({home: terms}).dropna()
        terms.index.names = ["dataset", "question_id"]
        rival = str(same["samples"].max())
        told = {"clusters": subjects(terms)}
        judged[case, drawn] = gains(terms, rival, **told).loc["1"]

# %% tags=["hide-input"]
# needs curve
judged = pd.DataFrame(judged, index=["estimate", "verdict"]).T
notebook.glue(
    equal=len(judged),
    lower=int((judged["estimate"] > 0).sum()),
    surely=int((judged["verdict"] == "better").sum()),
    surely_worse=int((judged["verdict"] == "worse").sum()),
)

# %%
# needs curve
notebook.say("""
One sample each of more questions gives the lower score in {lower} of {equal} comparisons at the same number of samples,
significantly so in {surely}; it is significantly higher in {surely_worse}.
""")

# %% tags=["hide-input"]
# needs curve
drawn = curve.astype({"samples": str})
drawn["thousands"] = drawn["tokens"] / 1_000
look = {"x": "thousands", "y": "score", "hue": "samples", "style": "samples"}
look["palette"] = ["#46a281", "#d08a3c", style.OWN]
look["palette"] = look["palette"][: drawn["samples"].nunique()]
look |= {"markers": True, "dashes": False, "col_wrap": 3}
look["facet_kws"] = {"sharey": False}

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Score of the tuned probe against the tokens of its training samples, for designs of more questions (along a line) or more samples of each (from line to line); dotted, the best constant. Lower is better.", "name": "fig-learning-design"}, "image": {"alt": "A panel for each data set and model, with lines for one, three and ten samples a question over the tokens of the training samples on a logarithmic axis. The lines fall to the right; at the same tokens the line of one sample mostly lies lowest."}} paper=["appendix-c.2"] evidence=["measured"] reads=["verdicts", "features", "samples"]
# needs curve
grid = sns.relplot(drawn, kind="line", col="case", **look)
for case, axes in grid.axes_dict.items():
    axes.axhline(constants[case], color=style.INK, linestyle=":")
    axes.set_xscale("log")
    axes.set_xticks(ticks := [0.3, 3, 30, 300], ticks)
    axes.minorticks_off()
least, most = drawn["thousands"].agg(["min", "max"])
grid.set(xlim=(0.7 * least, 1.3 * most)).set_titles("{col_name}")
grid.set_axis_labels("thousands of training tokens", "score")
grid.legend.set_title("samples each")
sns.move_legend(grid, "lower center", ncols=3)
height = 0.5 + 2.6 * -(-len(learners) // 3)
grid.figure.set_size_inches(style.WIDTH, height)
_ = grid.tight_layout(rect=(0, 0.5 / height, 1, 1))

# %% tags=["hide-input"] label="protocol-learning" paper=["appendix-c.2"] evidence=["measured"] reads=["verdicts", "features", "samples"]
# needs curve
curve["cell"] = [
    f"{row.score:z.4f} ({row.tokens / 1_000:,.1f})"
    for row in curve.itertuples()
]
shown = curve.pivot(
    index=["case", "samples"], columns="questions", values="cell"
)
shown = shown.fillna("–")
shown.columns = [f"{questions:,}" for questions in shown.columns]
shown["constant"] = shown.index.get_level_values("case").map(constants)
tables.show(
    shown,
    "Score of a probe by the number of its training questions (columns) and "
    "the samples of each, with thousands of tokens in brackets; and of the "
    "best constant.",
    digits=4,
    evidence=notebook.evidence_of(data),
)

# %% [markdown] needs="trained"
# ## The same row for fewer tokens
#
# `capcal reproduce --recipe lean` draws 20 samples of each evaluation question, which define $\hat\mu$ and vote, where the
# paper draws 100. It trains on one sample of each training question, where the paper draws ten; three more of at most 500
# questions tell the concentration $\nu$. Here both sizes are cut from the same recorded samples, on the data sets where
# questions differ most. Scores are corrected and probes tuned in both, so that nothing but the size differs.


# %%
# needs trained
def score_sizes(name, k_eval, n, k):
    """Score what is said of a data set, its own probe too, by such sizes."""
    sizes = {"k_eval": k_eval, "k_c": k_c, "recipe": None}
    found = load_results(runs, model, datasets=[name], **sizes)
    unseen, states = training_data(taught.loc[name, "asked"])
    rng = np.random.default_rng(seed)
    said = fit_probe(taught.loc[name, "run"], n, k, rng).predict(states)
    asked = found.index.get_level_values("question_id")
    found["Own probe"] = pd.Series(said, unseen.index).reindex(asked).array
    return score(found, seed=seed).loc[name]


# %%
# needs trained
LEAN, PAPER = "lean", "the paper's"
scores, costs = {}, {}
for name in spread.reindex(taught.index).nlargest(4).index:
    total = training_data(taught.loc[name, "run"])[0]["total"]
    most = min(10, total.max())
    whole = (total >= most).sum()
    scores[name, LEAN] = score_sizes(name, 20, len(total), 1)
    scores[name, PAPER] = score_sizes(name, 100, whole, most)
    drawn = {LEAN: len(total) + 3 * min(500, whole), PAPER: whole * most}
    each = [mean_tokens(taught.loc[name, of]) for of in ("run", "asked")]
    for sizes, k in ((LEAN, 20), (PAPER, 100)):
        asked = len(ours.loc[name]) * k
        costs[name, sizes] = drawn[sizes] * each[0] + asked * each[1]

# %% tags=["hide-input"]
# needs trained
scores = pd.concat(scores, names=["dataset", "sizes", "method"])
names = scores.index.get_level_values("method")
scores = scores[~names.str.startswith(("Uniform", "Oracle"))].copy()
scores["width"] = scores["high"] - scores["low"]
costs = pd.Series(costs).unstack()[[LEAN, PAPER]] / 1_000
apart = scores[["brier", "width"]].unstack("sizes")
moved = (apart["brier", LEAN] - apart["brier", PAPER]).abs()
notebook.glue(
    share=costs[LEAN].sum() / costs[PAPER].sum(),
    wider=(apart["width", LEAN] / apart["width", PAPER]).median(),
    moved=moved.mean(),
    most_moved=moved.max(),
)

# %%
# needs trained
notebook.say("""
The lean sizes take {share:.0%} of the tokens. Their intervals are {wider:.2f} times as wide in the median, and the scores
differ by {moved:.3f} on average and by {most_moved:.3f} at most.
""")

# %% tags=["hide-input"] label="protocol-lean" paper=["section-4.1"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs trained
cells = tables.intervals(scores, "brier", digits=3)
cells = cells.unstack("sizes")[[LEAN, PAPER]].reset_index()
cells["dataset"] = cells["dataset"].map(data["title"])
tables.show(
    cells.rename(columns={"dataset": "data set"}),
    "Corrected scores with 95 % intervals, by the sizes of either recipe.",
    evidence=data["evidence"].iloc[0],
)

# %% tags=["hide-input"] label="protocol-lean-tokens" evidence=["measured"] reads=["samples"]
# needs trained
costs["share"] = costs[LEAN] / costs[PAPER]
tables.show(
    costs.rename(index=data["title"]).rename_axis("data set"),
    "Thousands of tokens that the samples of either size take.",
    digits=1,
    share="{:.0%}",
    evidence=data["evidence"].iloc[0],
)


# %% [markdown]
# ## Where we differ
#
# What the paper does, as far as it says so or its authors' public code shows it, and what is done here. Runs say which of
# the two they followed.
#
# **Data and models**
#
# - *SimpleQA.* The paper: SimpleQA Verified, 1,000 questions. Here `simpleqa-verified` is that set; the recorded runs use
#   the original one, 4,326 questions, under the name `simpleqa`, and the two are never shown as one.
# - *TriviaQA.* The paper: 1,000 questions of the validation split, drawn at random. Here `triviaqa-1000` draws them as the
#   public code does; the recorded runs use the whole split, `triviaqa`, and subsets of it.
# - *Models.* The paper: three of 7 to 20 billion parameters. Here: small models that a laptop runs, with prompts for small
#   models, on random subsets of the questions, the training splits too. The paper's models are shown by its printed
#   numbers until somebody measures them.
# - *Question sets.* Here are four small ones of ours besides, so that every page runs without a download.
#
# **Grading and targets**
#
# - *Grading.* The paper: a deterministic correctness function; by the public code a language model judges TriviaQA,
#   SimpleQA and MATH. Here: rules, each verdict kept with its reason; a judge's verdicts are kept
#   beside them, and count where they are asked for.
# - *No answer, or not graded.* The public code counts both as wrong. Here no answer is wrong, and a sample that could not be
#   graded is not scored and leaves the count.
# - *Capability Brier.* The paper: the plug-in score with 100 samples. Here also the
#   corrected one, which has the intervals.
# - *Uncertainty.* The paper gives none. Here every measured score has a 95 % interval (over
#   questions, or over subjects), differences are tested on the same questions, and all methods that may be the best are
#   marked.
# - *Samples.* A hundred of each question in both.
#
# **Confidences**
#
# - *Response consistency.* The paper does not say whether its votes are among the samples that define $\hat\mu$. Here they
#   are not; [what sharing does](07_response_consistency.ipynb) is measured.
# - *A missing confidence.* The paper does not say what becomes of it; the public code imputes 0.5. Here it is missing, and
#   counted.
# - *P(True) of a reasoning model.* The public code reads a reasoning that was cut off at its first token. Here it is read
#   where the answer begins, and is missing where it never does.
# - *Oracle CC.* The paper scores it on the counts that it reports. Here it is scored on held-out samples.
# - *Probes.* The paper: a linear probe by stochastic gradient descent, its learning rate from a grid, its best epoch kept.
#   Here the *tuned* probe is the default: the same model and loss on standardised features, solved to its optimum, the
#   weight decay chosen by cross-validation on the training questions. [Probes](11_probe_lab.ipynb) shows both.
# - *Calibration errors.* In two of the public scripts a confidence of exactly 1 is in no bin. Here the last bin is closed.
#
# **Applications**
#
# - *pass@k.* The paper: $1-(1-s)^k$. Here also for a *posterior confidence*, a Beta distribution with mean $s$ and a
#   concentration fitted on other questions.
# - *Budget.* The paper allocates greedily and does not say how success was computed. Here the allocation is optimal for the
#   stated confidences (the greedy one is), also for posterior ones, and its expected success is exact.

# %% [markdown]
# ## Summary
#
# - Corrections are switches: each can be taken back, and its effect is a number.
# - A correction that adds the same to every method changes no comparison; one that touches a method alone can.
# - An oracle that has seen its own target is no bound for what a confidence can reach.
# - Samples teach a probe most on questions that it has not seen, and a score hardly needs a hundred of each question.
#
# ## Exercises
#
# **1 (easy).** A question has $\hat\mu = 0.5$ from 100 samples. How much does *plug-in* add to the score of any
# confidence? *Hint:* $\hat\mu(1-\hat\mu)/(n-1)$.

# %% tags=["hide-cell", "solution"]
round(0.5 * 0.5 / 99, 5)

# %% [markdown]
# **2 (medium).** When does 0.5 for a missing confidence improve a score? *Hint:* compare $(0.5 - \mu)^2$ with the mean
# score of the other questions.

# %% tags=["hide-cell", "solution"]
mu, others = 0.6, 0.05
print((0.5 - mu) ** 2 < others)  # where its error is below the mean error
