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
# [Before](02_k_eval_choice.ipynb) we saw that a score takes many questions, and about ten samples of each. But a score of what:
# how does one get a confidence, what does it cost, and which confidence tells easy questions from hard ones?

# %% [markdown]
# | method | what is asked | cost | needs |
# | --- | --- | --- | --- |
# | Verbalized confidence | "how likely are you to answer correctly?", a number in words | a few tokens, or a reasoning | text |
# | P(True) | "can you answer this?", the probability of *Yes* against *No* | one token | log-probabilities |
# | Response consistency | the share of $k_c$ samples that agree with the majority | $k_c$ answers | text |
# | Probe | a linear read-out of the hidden state at the end of the prompt | less than a token | weights |
# | Uniform random | nothing: a uniform draw, scored by its exact expectation | none | nothing |
#
# All but response consistency, which needs its answers, are about the *question*, before an answer is written. Two oracles stand
# beside them: Oracle RC knows whether one sample is correct, Oracle CC knows $\hat\mu$.

# %% tags=["parameters"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged
seed: int = 0  # of what is drawn anew

# %% tags=["provenance"]
from capcal_lib.book.lesson import open_page

page = open_page(globals(), paper=["appendix-b.2"])

# %% [markdown]
# The results have a row a question: its samples and how many are correct, and a column for each confidence.

# %%
results = page.results()
results.groupby("dataset").head(1).iloc[:, :5]

# %% [markdown]
# ## Which method orders the questions best?
#
# Telling questions apart (their order) and being right on average (calibration) are different virtues. Spearman's *rank
# correlation* of a confidence with $\hat\mu$ asks for the order alone: it is 1 where the surer question is always the easier
# one, and near 0 where a confidence says nothing of it. Where all questions have the same $\hat\mu$ there is nothing to order,
# and a method that says the same of every question has no order.
#
# Which samples judge? Chance in $\hat\mu$ lowers every rank correlation: it is *attenuated*, the more the fewer samples judge. The
# samples that vote may not judge the vote, so the others judge it. `judge_alike` has these others judge all methods of a data set, so
# that methods can be compared. By the paper's protocol all samples judge all methods.

# %%
from capcal_lib.results.targets import judge_alike

compared = judge_alike(results)
compared.groupby("dataset", sort=False)["total"].agg(["min", "max"])

# %%
from capcal_lib.results import confidence_columns, judged_by

correlations = {}
for column in confidence_columns(compared):
    points = judged_by(compared, column)
    points["mu"] = points["correct"] / points["total"]
    pairs = points.groupby("dataset", sort=False)[["confidence", "mu"]]
    matrices = pairs.corr(method="spearman")
    correlations[column] = matrices["mu"].xs("confidence", level=1)

# %%
import pandas as pd
from capcal_lib.results import mean_over_probes

page.end_where_nothing_is_solved(results)
ranks = mean_over_probes(pd.DataFrame(correlations))
ranks = ranks.reindex(page.data.index).dropna(how="all")
if ranks.empty:
    page.end(
        "No confidence of questions that differ is recorded: capcal confidence asks for one."
    )

# %% [markdown]
# The correlations stand here without intervals. Of $n$ questions, two that differ by less than about $3/\sqrt n$ may change places on
# others: .17 of 300 questions, and .55 of 30. Compare methods on a data set, and not data sets with one another: these have different
# numbers of judges.

# %% label="estimator-ranks" paper=["section-4.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
by_method = ranks.rename(page.data["title"]).T.rename_axis("method")
page.show(
    by_method.dropna(how="all"),
    "Spearman correlation with expected accuracy (higher is better).",
    digits=2,
)

# %% [markdown]
# The highest is not the same method on all data sets. From here on we look at one, that on which difficulty varies most, of those that
# a probe predicts. Of several probes it shows the nearest: that of the data set itself, where there is one.

# %%
from capcal_lib.probe_names import is_probe
from capcal_lib.results import keep_nearest_probe
from capcal_lib.results.scores import nearest_probe_of
from capcal_lib.results.targets import accuracy_variance

probed = [name for name in ranks if is_probe(name)]
probed = ranks[probed].dropna(how="all")
spread = accuracy_variance(results)
widest = spread[(ranks if probed.empty else probed).index].idxmax()
nearest = nearest_probe_of(results.loc[[widest]], widest)
subset = keep_nearest_probe(compared.loc[[widest]], widest)

# %% [markdown]
# A point for each question shows what a rank correlation sums up. Few judges blur the picture, so we draw the questions with the most
# judges:

# %%
from capcal_lib.applications import deep_samples

most = deep_samples(subset["total"])
subset = subset[subset["total"] >= most]
most, len(subset)

# %%
from capcal_lib.probe_names import probe_of

columns = confidence_columns(subset)
points = {column: judged_by(subset, column) for column in columns}
points = pd.concat(points, names=["method"]).rename(probe_of, level="method")
points["mu"] = points["correct"] / points["total"]
points.groupby("method", sort=False).head(1)

# %% tags=["picture"] label="fig-confidences" paper=["section-4.2", "appendix-c"] evidence=["measured"] reads=["verdicts", "confidences", "features"] mystnb={"image": {"alt": "Scatter plots of the share of correct samples against the confidence, one a method, each with a diagonal and a point a question."}}
import seaborn as sns
from capcal_lib.plots import MUTED, palette
from capcal_lib.results import methods

colors = palette(methods(subset), widest)
panels = {"col": "method", "col_wrap": 2, "height": 2.0, "aspect": 1.75}
grid = sns.FacetGrid(
    points.reset_index(), hue="method", palette=colors, **panels
)
grid.map(sns.scatterplot, "confidence", "mu", alpha=0.6)
for panel in grid.axes:
    panel.axline((0, 0), slope=1, color=MUTED, linewidth=1)
grid.set_axis_labels("confidence", "share correct").set(xlim=(-0.03, 1.03))
_ = grid.set_titles("{col_name}")

# %% [markdown] tags=["caption"]
# A point for each question with the most judges, the same for all methods. Along the diagonal a confidence is right; a method that says nearly the same of every question draws
# a narrow upright cloud, and one whose points rise to the right tells easy questions from hard ones even where it is wrong on the scale.

# %% tags=["finding"]
from capcal_lib.text import counted

drawn = [name for name in ranks if name == nearest or not is_probe(name)]
of_drawn = ranks.loc[widest, drawn].dropna().sort_values(ascending=False)
second = [
    f", before {name} with {rank:.2f}"
    for name, rank in of_drawn.iloc[1:2].items()
]
page.finding(
    r"Of {methods} that the same samples judge, *{best}* has the highest rank correlation with $\hat\mu$ on {dataset}: "
    "{highest:.2f}{second}.",
    methods=counted(len(of_drawn), "method"),
    best=of_drawn.index[0],
    dataset=page.data.loc[widest, "title"],
    highest=of_drawn.iloc[0],
    second="".join(second),
)

# %% [markdown]
# ## Ask in words, ask for one token
#
# How does one ask? What that costs is counted with the scores, in [the main table](04_main_table.ipynb#what-a-confidence-costs).
# These are the paper's two questions, about a product. Small models are asked in fewer words, with examples.

# %% label="estimator-prompts" paper=["figure-7", "figure-8", "appendix-c.2"] evidence=["reported"]
from capcal_lib.questions import Answer, Question
from capcal_lib.questions.prompts import verbalized_messages

question = Question("sum", "What is 6 × 7?", Answer("number", "42"))
print(verbalized_messages(question, "paper")[-1]["content"])

# %%
from capcal_lib.questions.prompts import p_true_messages

print(p_true_messages(question, "paper")[-1]["content"])

# %% [markdown]
# A model may fail to state a probability. Such a question has no confidence: it is counted as *missing* and left out of the
# scores. What needs a confidence for every question, such as spending a budget or answering the surest ones, takes one half
# for it: the model has told nothing.

# %%
from capcal_lib.results.scores import stated_methods

stated = results[stated_methods(results)]
stated.isna().mean().rename("share missing").to_frame().round(3)

# %% [markdown]
# ## Let samples vote
#
# Response consistency is the share of votes for the most frequent answer. By the corrected protocol the samples that vote are
# not among those that define $\hat\mu$. By the paper's they are, which ties the confidence to its own target.

# %%
votes = pd.Series(["Paris", "Paris", "Lyon", "Paris"])
votes.value_counts(normalize=True).max()

# %% [markdown]
# ## How the paper asked
#
# The paper gives no confidences of single questions. It prints how it sampled from its three models. What its answers took in
# tokens is in the [main table](04_main_table.ipynb#as-the-paper-prints-it), and how its probes were set on that
# [on probes](08_probe_generalization.ipynb).

# %% label="estimator-settings" paper=["appendix-b.2"] evidence=["reported"] reads=["sampling"]
from capcal_lib.book import tables
from capcal_lib.reported import load_reported

printed = tables.titled(load_reported("sampling"))
settings = printed.pivot(index="method", columns="model", values="value")
tables.show(
    settings.map("{:g}".format).rename_axis("setting"),
    "Settings of sampling, as printed in the paper.",
    evidence="reported",
)

# %% [markdown]
# ## Read it from a hidden state
#
# While it reads a prompt, a model computes at each token, in each of its layers, a list of numbers, the *hidden state*. A probe is a
# logistic regression from that of the last token, the mean over layers, to $\mu$. It is trained on other questions, whose share of
# correct samples is known. These taught the probe that is shown above:

# %%
from capcal_lib.probes import runs_for_probes, training_data

runs = runs_for_probes(page.store, model, "training")
sources = [run for dataset, run in runs if dataset.probe == nearest]
if not sources:
    page.end("No probe is trained: capcal features and capcal probe make one.")
questions, features = training_data(sources[0])
questions.shape, features.shape

# %% [markdown]
# A question with 7 correct samples of 10 counts as 7 positives and 3 negatives: each question stands twice, weighted.

# %%
import numpy as np
from sklearn.preprocessing import StandardScaler

share = questions["correct"] / questions["total"]
scaler = StandardScaler().fit(features)
twice = np.tile(scaler.transform(features), (2, 1))
label = np.repeat([1, 0], len(share))
weight = np.concatenate([share, 1 - share]) / len(share)

# %% [markdown]
# How much large coefficients are held back, the *weight decay*, is chosen by cross-validation on the training questions.

# %%
from capcal_lib.probes import read_features, train
from sklearn.linear_model import LogisticRegression

decay = train(sources[0]).weight_decay_
by_hand = LogisticRegression(C=1 / decay, max_iter=5000, tol=1e-8)
by_hand.fit(twice, label, sample_weight=weight)
ids, states = read_features(page.data.loc[widest, "run"])
confidence = by_hand.predict_proba(scaler.transform(states))[:, 1]

# %% [markdown]
# `LinearProbe` solves the same problem and is faster on thousands of features. The largest difference between the two:

# %%
from capcal_lib.probes import LinearProbe

probe = LinearProbe(weight_decay=decay, standardize=True)
probe.fit(features, questions["correct"], questions["total"])
np.abs(confidence - probe.predict(states)).max().round(3)

# %% [markdown]
# This *tuned* probe is ours; [the page on corrections](15_protocol.ipynb) tells what the paper's recipe changes.
#
# ## Read $\mu$ itself, where an answer is a letter
#
# $\mu$ is estimated from samples because long answers cannot be summed over. Where a question has options and the answer is
# one letter, they can: a model that is asked says first of all how probable each letter is. Given the right one, which no
# confidence knows, that is $\mu$ itself, by one reading of the prompt. It takes the model, here the smallest of this book,
# and samples to compare with.

# %%
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.results import describe_runs
from capcal_lib.sampling import can_sample_here

reader, exam = load_model("smollm2-135m"), load_dataset("mini-exam")
recorded = describe_runs(page.counting_of(reader.name))
if exam.name not in recorded.index or not can_sample_here(reader, exam):
    page.end(
        f"What is left of this page reads letters off {reader.title}: that takes its recorded samples of {exam.title} and its "
        "weights on this machine, which capcal reproduce --model smollm2-135m gets."
    )

# %% [markdown]
# The engine that draws samples reads as well. It returns the logarithm of a probability at temperature 1; sampling at another
# temperature raises probabilities to its inverse power. Here are the first questions, as shares of what the four letters have
# together:

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
# The share of the right letter is $\mu$, and the samples of the same questions give $\hat\mu$. A *gap* is what divides the two.

# %%
counts = page.results(reader.name).loc[exam.name, ["correct", "total"]]
counts = counts.query("total > 0").reindex(ids).dropna()
by_samples = counts["correct"] / counts["total"]
right = {one.id: shares.at[one.id, one.answer.gold] for one in exam_questions}
by_reading = pd.Series(right)[counts.index]
gaps = by_samples - by_reading

# %% label="fig-exact" mystnb={"image": {"alt": "Scatter plot of the share of correct samples against the probability of the right letter, a dot a question, with the diagonal."}}
axes = sns.scatterplot(x=by_reading, y=by_samples)
axes.axline((0, 0), slope=1, color=MUTED, linewidth=1)
_ = axes.set(xlabel="probability of the right letter", ylabel="share correct")

# %% [markdown] tags=["caption"]
# The share of a question's samples that are correct against the probability of the right letter, read once. On the diagonal
# both agree.

# %% [markdown]
# The dots are not on the diagonal. Need they be? If nothing but chance divided the two, counts would be draws from the
# probabilities that were read. Drawn anew many times, they show how far apart chance alone puts the two, question by question;
# and what chance makes has no sign, so that it averages out.

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
table = pd.DataFrame({"found": distances, "by chance": chance.mean()})
as_far = (chance.abs() >= distances.abs()).mean()
table["chance puts it as far from 0"] = as_far
page.show(
    table.rename_axis("of the gaps"),
    f"Gaps between {np.median(size):.0f} samples and one reading, over {len(size)} questions of {exam.title}, and what chance alone "
    "makes of them.",
    digits=4,
)

# %% [markdown]
# What a reading of letters cannot see is a sample that begins with something else. It can have moved the share correct by no
# more than the share of such samples; if the mean gap is larger, something else divides the two as well:

# %%
from capcal_lib.runs import read_samples

samples = read_samples(recorded.loc[exam.name, "run"])
samples = samples[samples["question_id"].isin(counts.index)]
samples = samples.query("sample_index < @k_eval")
starts = samples["response"].str.strip().str[:1]
1 - starts.isin(letters).mean()

# %% [markdown]
# ## Summary
#
# - The methods differ in cost by orders of magnitude: a probe reads a prompt, consistency writes $k_c$ answers.
# - What a method cannot say must be counted, and said where something else stands for it.
# - A method may order questions well and still be off on the scale, and conversely.
# - Where an answer is one letter, one reading comes close to $\mu$; elsewhere one has to sample.
#
# An order is not enough to act on. [Next](04_main_table.ipynb): which of them comes closest to $\mu$ itself?
#
# ## Exercises
#
# **1 (easy).** Square every confidence of a panel of the first figure: where do its points move, and what happens to the rank
# correlation and to the Brier score? *Hint:* take $\mu = 0.5$ and $s = 0.5$.

# %% tags=["hide-cell", "solution"]
# To the left, in the same order: the rank correlation stays, the score does not
first = points.loc[points.index[0][0]]
squared = first["confidence"] ** 2
page.solution(
    squared.corr(first["mu"], method="spearman"),
    {"before": (0.5 - 0.5) ** 2, "after": (0.5**2 - 0.5) ** 2},
)

# %% [markdown]
# **2 (medium).** At temperature 1 a model answers A, B, C and D with probabilities 0.5, 0.3, 0.15 and 0.05, and B is right.
# What is $\mu$ at temperatures 1, 0.5 and 0.1, and where does it go as the temperature falls to 0? *Hint:* raise the
# probabilities to the inverse power, and divide by their sum.

# %% tags=["hide-cell", "solution"]
# Probabilities raised to the inverse temperature, a row a temperature
powers = 1 / np.array([[1], [0.5], [0.1]])
raised = np.array([0.5, 0.3, 0.15, 0.05]) ** powers
page.solution((raised / raised.sum(axis=1, keepdims=True)).round(3)[:, 1])

# %% [markdown]
# **3 (hard).** What does the probe say when it is trained with hardly any weight decay? *Hint:* refit `LinearProbe` with
# `weight_decay=1e-6` and compare its spread with that of $\hat\mu$.

# %% tags=["hide-cell", "solution"]
# The spread of a probe with hardly any decay, and that of the tuned one
loose = LinearProbe(weight_decay=1e-6, standardize=True)
loose.fit(features, questions["correct"], questions["total"])
page.solution(loose.predict(states).std(), probe.predict(states).std())
