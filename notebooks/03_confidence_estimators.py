# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Five ways to get a confidence
#
# On [the previous page](02_k_eval_choice.ipynb) we saw how many samples a score needs. But where does a confidence come from,
# what does it cost, and which confidence tells easy questions from hard ones?

# %% [markdown]
# | method | what is asked | cost | needs |
# | --- | --- | --- | --- |
# | Verbalized confidence | "how likely are you to answer correctly?", as a number | a few tokens, or a chain of reasoning | text |
# | P(True) | "can you answer this?", the probability of *Yes* against *No* | one token | log-probabilities |
# | Response consistency | nothing: $k_c$ samples vote | $k_c$ answers | text |
# | Probe | nothing: a linear function of a hidden state | less than a token | weights |
# | Uniform random | nothing: a uniform draw | none | nothing |
#
# All but response consistency are known before an answer is written. Two oracles are references: Oracle RC knows whether one
# sample is correct, and Oracle CC knows $\hat\mu$.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of what is drawn anew

# %%
from capcal_lib.book.page import EndOfPage, finding, open_page, show_runs
from capcal_lib.book.tables import show
from capcal_lib.results.results import results_of

page = open_page(
    model, store, k_eval=k_eval, protocol=protocol, verdicts=verdicts
)
show_runs(page, printed=["appendix-b.2"])

# %%
results = results_of(page.counting)
results.groupby("dataset").head(1).iloc[:, :5]

# %% [markdown]
# ## Which method orders the questions best?
#
# Spearman's *rank correlation* with $\hat\mu$ is 1 if the question with the higher confidence is always the easier one, and
# near 0 if the confidence says nothing about difficulty. It looks at the order alone and not at the level.
#
# Which samples *judge* a confidence, that is, give the $\hat\mu$ that it is compared with? Samples that vote in response
# consistency may not judge it too, and fewer judges lower every rank correlation. So `judge_alike` lets the samples that did
# not vote judge *all* methods of a data set. Under the paper's protocol all samples judge.

# %%
from capcal_lib.results.targets import judge_alike

compared = judge_alike(results)
compared.groupby("dataset", sort=False)["total"].agg(["min", "max"])

# %%
from capcal_lib.results import estimates

points = estimates(compared)
points["mu"] = points["correct"] / points["total"]
pairs = points.groupby(["dataset", "method", "member"], observed=True)
matrices = pairs[["confidence", "mu"]].corr(method="spearman")
correlations = matrices["mu"].xs("confidence", level=3)

# %%
if not results["correct"].any():
    raise EndOfPage(
        "No question is solved, so nothing varies and nothing can be closer."
    )
of_methods = correlations.groupby(["dataset", "method"], observed=True)
ranks = of_methods.mean().unstack("method")
ranks = ranks.reindex(page.runs.index).dropna(how="all")
if ranks.empty:
    raise EndOfPage(
        "No confidence is recorded for questions that differ. To get one: capcal confidence"
    )

# %% [markdown]
# The table has no intervals. As a rule of thumb, two methods may swap places on other questions if their correlations differ by
# less than about $3/\sqrt n$ on $n$ questions: .17 for 300. Compare methods within a data set only, because there the same
# samples judge.

# %% label="estimator-ranks"
by_method = ranks.rename(page.runs["title"]).T.rename_axis("method")
show(
    by_method.dropna(how="all"),
    "Spearman correlation with expected accuracy (higher is better).",
    digits=2,
    evidence=page.evidence,
)

# %% [markdown]
# Now we look at one data set: the one whose difficulty varies most, among those that a probe predicts. Of its probes we keep
# the *nearest*, which is trained on the data set itself or, if there is none, on its domain:

# %%
from capcal_lib.results.targets import accuracy_variance

spread = accuracy_variance(results)
by_probe = points.loc[points["nearest"]].index.unique("dataset")
probed = ranks.index.intersection(by_probe)
widest = spread[probed if len(probed) else ranks.index].idxmax()
subset = estimates(compared.loc[[widest]])
subset = subset[subset["nearest"] | ~subset["kind"].str.startswith("probe")]
nearest = subset.loc[subset["nearest"], "method"].unique()

# %% [markdown]
# What does a rank correlation look like? We plot the questions with the most judges:

# %%
from capcal_lib.applications import deep_samples

most = deep_samples(subset["total"])
subset = subset[subset["total"] >= most]
most, subset.index.nunique()

# %%
points = subset.copy()
points["mu"] = points["correct"] / points["total"]
points["method"] = points["method"].cat.remove_unused_categories()
points.groupby("method", sort=False, observed=True).head(1)

# %% tags=["picture"] label="fig-confidences" mystnb={"image": {"alt": "Scatter plots of the share of correct samples against the confidence, one panel per method, with a diagonal and one point per question."}}
import seaborn as sns
from capcal_lib.plots import MUTED, palette

colors = palette(points["method"].unique(), widest)
panels = {"col": "method", "col_wrap": 2, "height": 2.0, "aspect": 1.75}
grid = sns.FacetGrid(
    points.reset_index(), hue="method", palette=colors, **panels
)
grid.map(sns.scatterplot, "confidence", "mu", alpha=0.6)
for panel in grid.axes:
    panel.axline((0, 0), slope=1, color=MUTED, linewidth=1)
grid.set_axis_labels("confidence", "share correct").set(xlim=(-0.03, 1.03))
_ = grid.set_titles("{col_name}")

# %% [markdown]
# One point per question. On the diagonal a confidence is right. In a narrow upright cloud, it is nearly the same for every
# question. If the points rise to the right, it tells easy questions from hard ones, even far from the diagonal.

# %% tags=["finding"]
drawn = points["method"].unique()
of_drawn = ranks.loc[widest, drawn].dropna().sort_values(ascending=False)
second = [
    f", followed by {name} with {rank:.2f}"
    for name, rank in of_drawn.iloc[1:2].items()
]
finding(
    r"On {dataset}, *{best}* has the highest rank correlation with $\hat\mu$: {highest:.2f}{second}.",
    best=of_drawn.index[0],
    dataset=page.runs.loc[widest, "title"],
    highest=of_drawn.iloc[0],
    second="".join(second),
)

# %% [markdown]
# ## Ask in words, ask for one token
#
# Here are the paper's two prompts. Small models get shorter ones with examples. [The main
# table](04_main_table.ipynb#what-a-confidence-costs) counts what asking costs.

# %% label="estimator-prompts"
from capcal_lib.questions import Answer, Question
from capcal_lib.questions.prompts import verbalized_messages

question = Question("sum", "What is 6 × 7?", Answer("number", "42"))
print(verbalized_messages(question, "paper")[-1]["content"])

# %%
from capcal_lib.questions.prompts import p_true_messages

print(p_true_messages(question, "paper")[-1]["content"])

# %% [markdown]
# If a model fails to state a probability, the confidence is *missing* and the question is left out of the scores. Applications
# that need every confidence, such as spending a budget, use one half instead.

# %%
stated = results.filter(["Verbalized confidence", "P(True)"])
stated.isna().mean().rename("share missing").to_frame().round(3)

# %% [markdown]
# ## Let samples vote
#
# Response consistency is the share of votes for the most frequent answer:

# %%
import pandas as pd

votes = pd.Series(["Paris", "Paris", "Lyon", "Paris"])
votes.value_counts(normalize=True).max()

# %% [markdown]
# ## How the paper asked
#
# These are the settings of the paper's three models. [The page on probes](08_probe_generalization.ipynb) has the settings of its
# probes.

# %% label="estimator-settings"
from capcal_lib.book import tables
from capcal_lib.reported import load_reported

printed = tables.titled(load_reported("sampling"))
settings = printed.pivot(index="method", columns="model", values="value")
tables.show(
    settings.map("{:g}".format).rename_axis("setting"),
    "Sampling settings, as printed in the paper.",
    evidence="reported",
)

# %% [markdown]
# ## Read it from a hidden state
#
# While a model reads a prompt, each of its layers computes a list of numbers for each token: the *hidden state*. A probe is a
# logistic regression that predicts $\mu$ from the hidden state of the last token, averaged over layers. These questions, whose
# shares of correct samples are known, trained the probe in the figure:

# %%
from capcal_lib.probes import runs_for_probes, training_data

runs = runs_for_probes(page.counting.store, model, "training")
sources = [run for dataset, run in runs if dataset.probe == nearest]
if not sources:
    raise EndOfPage(
        "No probe is trained. To make one: capcal features, then capcal probe"
    )
questions, features = training_data(sources[0])
questions.shape, features.shape

# %% [markdown]
# A question with 7 correct samples of 10 counts as 7 positives and 3 negatives, so it enters twice, with weights:

# %%
import numpy as np
from sklearn.preprocessing import StandardScaler

share = questions["correct"] / questions["total"]
scaler = StandardScaler().fit(features)
twice = np.tile(scaler.transform(features), (2, 1))
label = np.repeat([1, 0], len(share))
weight = np.concatenate([share, 1 - share]) / len(share)

# %% [markdown]
# *Weight decay* keeps coefficients small. Cross-validation on the training questions chooses how much.

# %%
from capcal_lib.probes import read_features, train
from sklearn.linear_model import LogisticRegression

decay = train(sources[0]).weight_decay_
by_hand = LogisticRegression(C=1 / decay, max_iter=5000, tol=1e-8)
by_hand.fit(twice, label, sample_weight=weight)
ids, states = read_features(page.runs.loc[widest, "run"])
confidence = by_hand.predict_proba(scaler.transform(states))[:, 1]

# %% [markdown]
# `LinearProbe` solves the same problem faster. This is the largest difference between the two:

# %%
from capcal_lib.probes import LinearProbe

probe = LinearProbe(weight_decay=decay, standardize=True)
probe.fit(features, questions["correct"], questions["total"])
np.abs(confidence - probe.predict(states)).max().round(3)

# %% [markdown]
# This *tuned* probe is ours. [The page on corrections](13_protocol.ipynb) shows what the paper's recipe changes.
#
# ## Read $\mu$ itself if the answer is a letter
#
# In multiple choice, one reading of the prompt gives the probability of each letter. The probability of the right letter is $\mu$
# itself. (It is not a confidence, because it needs the right letter.) We compare it with samples for our smallest model.

# %%
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.sampling import can_sample_here

reader, exam = load_model("smollm2-135m"), load_dataset("mini-exam")
reading = open_page(reader.name, store, k_eval=k_eval)
recorded = reading.runs
if exam.name not in recorded.index or not can_sample_here(reader, exam):
    raise EndOfPage(
        f"The rest of this page needs the weights of {reader.title} and its samples of {exam.title}. To get both: "
        "capcal reproduce --model smollm2-135m"
    )

# %% [markdown]
# The engine that draws samples also returns log-probabilities, at temperature 1. At temperature $T$ the probabilities are
# raised to the power $1/T$. We divide them by their sum over the four letters:

# %%
from capcal_lib.questions import load_questions
from capcal_lib.sampling import answer_requests, open_engine

exam_questions = load_questions(exam.name, limit=200)
requests, letters = answer_requests(reader, exam_questions), list("ABCD")
engine = open_engine(reader)
read = engine.next_token_logprobs(requests, letters, reader.sampling, 0)[0]
weights = np.exp(read / reader.sampling.temperature)
ids = [one.id for one in exam_questions]
shares = pd.DataFrame(weights, ids, letters)
shares = shares.div(shares.sum(axis="columns"), axis="index")
shares.head().round(3)

# %% [markdown]
# The samples of the same questions give $\hat\mu$. A *gap* is $\hat\mu$ minus the reading.

# %%
counts = results_of(reading.counting).loc[exam.name, ["correct", "total"]]
counts = counts.query("total > 0").reindex(ids).dropna()
by_samples = counts["correct"] / counts["total"]
right = {one.id: shares.at[one.id, one.answer.gold] for one in exam_questions}
by_reading = pd.Series(right)[counts.index]
gaps = by_samples - by_reading

# %% label="fig-exact" mystnb={"image": {"alt": "Scatter plot of the share of correct samples against the probability of the right letter, one dot per question, with the diagonal."}}
axes = sns.scatterplot(x=by_reading, y=by_samples)
axes.axline((0, 0), slope=1, color=MUTED, linewidth=1)
_ = axes.set(xlabel="probability of the right letter", ylabel="share correct")

# %% [markdown]
# One dot per question. On the diagonal, reading and samples agree.

# %% [markdown]
# Are the gaps more than chance? If the reading is $\mu$, the counts are random draws from it. We repeat these draws:

# %%
rng = np.random.default_rng(seed)
size = counts["total"].to_numpy(int)
drawn = rng.binomial(size, by_reading, (10_000, len(size))) / size
by_chance = pd.DataFrame(drawn - by_reading.to_numpy()).T
distances = pd.Series({"mean": gaps.mean(), "mean square": (gaps**2).mean()})
chance = pd.DataFrame(
    {"mean": by_chance.mean(), "mean square": (by_chance**2).mean()}
)

# %%
table = pd.DataFrame(
    {"found": distances, "by chance, on average": chance.mean()}
)
as_far = (chance.abs() >= distances.abs()).mean()
table["p-value"] = as_far
show(
    table.rename_axis("gaps"),
    f"Gaps between {np.median(size):.0f} samples and one reading, over {len(size)} questions of {exam.title}, and what chance alone gives.",
    digits=4,
    evidence=page.evidence,
)

# %% [markdown]
# Samples that do not start with a letter count as wrong, so they lower the mean gap, by at most their share:

# %%
from capcal_lib.runs import read_samples

samples = read_samples(recorded.loc[exam.name, "run"])
samples = samples[samples["question_id"].isin(counts.index)]
samples = samples.query("sample_index < @k_eval")
starts = samples["response"].str.strip().str[:1]
1 - starts.isin(letters).mean()

# %% [markdown]
# On average, the recorded samples lie below the reading by slightly more than this share. The rest may be chance.
#
# ## Summary
#
# - The methods differ in cost by orders of magnitude.
# - Count missing confidences, and say what replaced them.
# - If the answer is one letter, one reading comes close to $\mu$. For other answers you have to sample.
#
# A method may order questions well and still have the wrong level. [Next](04_main_table.ipynb): which one comes closest to $\mu$?
#
# ## Exercises
#
# **1 (easy).** Square every confidence in one panel of the first figure. What happens to the points, to the rank correlation and
# to the Brier score? *Hint:* take $\mu = 0.5$ and $s = 0.5$.

# %% tags=["hide-cell", "solution"]
# To the left, in the same order: the rank correlation stays, the score does not
first = points[points["method"] == points["method"].iloc[0]]
squared = first["confidence"] ** 2
(
    squared.corr(first["mu"], method="spearman"),
    {"before": (0.5 - 0.5) ** 2, "after": (0.5**2 - 0.5) ** 2},
)

# %% [markdown]
# **2 (medium).** At temperature 1 a model answers A, B, C and D with probabilities 0.5, 0.3, 0.15 and 0.05, and B is right.
# What is $\mu$ at temperatures 1, 0.5 and 0.1, and in the limit at 0? *Hint:* raise the probabilities to the power one over the
# temperature, and divide by their sum.

# %% tags=["hide-cell", "solution"]
# Probabilities raised to the inverse temperature, one row per temperature
powers = 1 / np.array([[1], [0.5], [0.1]])
raised = np.array([0.5, 0.3, 0.15, 0.05]) ** powers
(raised / raised.sum(axis=1, keepdims=True)).round(3)[:, 1]

# %% [markdown]
# **3 (hard).** What does a probe predict if it is trained with hardly any weight decay? *Hint:* refit `LinearProbe` with
# `weight_decay=1e-6` and compare the spread of both probes.

# %% tags=["hide-cell", "solution"]
# The spread of a probe with hardly any decay, and of the tuned one
loose = LinearProbe(weight_decay=1e-6, standardize=True)
loose.fit(features, questions["correct"], questions["total"])
loose.predict(states).std(), probe.predict(states).std()
