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
# On [the previous page](02_k_eval_choice.ipynb) we saw that a score needs many questions and about ten samples of each. But
# where does a confidence come from, what does it cost, and which confidence tells easy questions from hard ones?

# %% [markdown]
# | method | what is asked | cost | needs |
# | --- | --- | --- | --- |
# | Verbalized confidence | "how likely are you to answer correctly?", as a number | a few tokens, or a chain of reasoning | text |
# | P(True) | "can you answer this?", the probability of *Yes* against *No* | one token | log-probabilities |
# | Response consistency | nothing: the share of $k_c$ samples that agree with the most frequent answer | $k_c$ answers | text |
# | Probe | nothing: a linear function of the hidden state at the end of the prompt | less than a token | weights |
# | Uniform random | nothing: a uniform draw, scored by its exact expectation | none | nothing |
#
# All but response consistency are known before an answer is written. Two oracles serve as references: Oracle RC knows whether
# one sample is correct, and Oracle CC knows $\hat\mu$.

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
# The results have one row per question: its samples, how many are correct, and a column for each confidence.

# %%
results = page.results()
results.groupby("dataset").head(1).iloc[:, :5]

# %% [markdown]
# ## Which method orders the questions best?
#
# A confidence may put questions in the right order and still have the wrong level, and vice versa. Spearman's *rank
# correlation* with $\hat\mu$ looks at the order alone. It is 1 if the surer question is always the easier one, and near 0 if
# the confidence says nothing about difficulty. It needs questions that differ and a confidence that varies.
#
# Which samples judge? Noise in $\hat\mu$ lowers every rank correlation, and lowers it more if fewer samples judge. And a sample
# may not both vote and judge. So `judge_alike` lets the samples that did not vote judge *all* methods of a data set. Under the
# paper's protocol all samples judge.

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
page.end_where_nothing_is_solved(results)
of_methods = correlations.groupby(["dataset", "method"], observed=True)
ranks = of_methods.mean().unstack("method")
ranks = ranks.reindex(page.data.index).dropna(how="all")
if ranks.empty:
    page.end(
        "No confidence is recorded for questions that differ. To get one: capcal confidence"
    )

# %% [markdown]
# The table has no intervals. As a rule of thumb, two correlations on $n$ questions that differ by less than about $3/\sqrt n$
# may change places on other questions: .17 for 300 questions, .55 for 30. Compare methods within a data set, because data sets
# have different numbers of judges.

# %% label="estimator-ranks" paper=["section-4.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
by_method = ranks.rename(page.data["title"]).T.rename_axis("method")
page.show(
    by_method.dropna(how="all"),
    "Spearman correlation with expected accuracy (higher is better).",
    digits=2,
)

# %% [markdown]
# From here on we look at one data set: the one whose difficulty varies most, among the data sets that a probe predicts. If
# there are several probes, we take the nearest, if possible the one trained on this data set.

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
# What does a rank correlation look like? Few judges blur the picture, so we draw the questions with the most judges:

# %%
from capcal_lib.applications import deep_samples

most = deep_samples(subset["total"])
subset = subset[subset["total"] >= most]
most, len(subset)

# %%
points = estimates(subset)
points["mu"] = points["correct"] / points["total"]
points.groupby("method", sort=False).head(1)

# %% tags=["picture"] label="fig-confidences" paper=["section-4.2", "appendix-c"] evidence=["measured"] reads=["verdicts", "confidences", "features"] mystnb={"image": {"alt": "Scatter plots of the share of correct samples against the confidence, one panel per method, with a diagonal and one point per question."}}
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
# One point per question, the same questions for all methods. On the diagonal a confidence is right. In a narrow upright cloud,
# the confidence is nearly the same for every question. If the points rise to the right, the confidence tells easy questions
# from hard ones, even far from the diagonal.

# %% tags=["finding"]
from capcal_lib.text import counted

drawn = [name for name in ranks if name == nearest or not is_probe(name)]
of_drawn = ranks.loc[widest, drawn].dropna().sort_values(ascending=False)
second = [
    f", followed by {name} with {rank:.2f}"
    for name, rank in of_drawn.iloc[1:2].items()
]
page.finding(
    r"On {dataset}, *{best}* has the highest rank correlation with $\hat\mu$ of {methods}: {highest:.2f}{second}.",
    methods=counted(len(of_drawn), "method"),
    best=of_drawn.index[0],
    dataset=page.data.loc[widest, "title"],
    highest=of_drawn.iloc[0],
    second="".join(second),
)

# %% [markdown]
# ## Ask in words, ask for one token
#
# How do you ask a model? Here are the paper's two prompts. Small models get shorter ones with examples. [The main
# table](04_main_table.ipynb#what-a-confidence-costs) counts what asking costs.

# %% label="estimator-prompts" paper=["figure-7", "figure-8", "appendix-c.2"] evidence=["reported"]
from capcal_lib.questions import Answer, Question
from capcal_lib.questions.prompts import verbalized_messages

question = Question("sum", "What is 6 × 7?", Answer("number", "42"))
print(verbalized_messages(question, "paper")[-1]["content"])

# %%
from capcal_lib.questions.prompts import p_true_messages

print(p_true_messages(question, "paper")[-1]["content"])

# %% [markdown]
# A model may fail to state a probability. The question then counts as *missing* and is left out of the scores. Applications
# that need a confidence for every question, such as spending a budget, use one half instead.

# %%
from capcal_lib.results.scores import stated_methods

stated = results[stated_methods(results)]
stated.isna().mean().rename("share missing").to_frame().round(3)

# %% [markdown]
# ## Let samples vote
#
# Response consistency is the share of votes for the most frequent answer. Under the corrected protocol the voters do not define
# $\hat\mu$. Under the paper's protocol they do, which ties the confidence to its own target.

# %%
import pandas as pd

votes = pd.Series(["Paris", "Paris", "Lyon", "Paris"])
votes.value_counts(normalize=True).max()

# %% [markdown]
# ## How the paper asked
#
# The paper prints how it sampled from its three models. The [main table](04_main_table.ipynb#as-the-paper-prints-it) has the
# tokens of its answers, and [the page on probes](08_probe_generalization.ipynb) has the settings of its probes.

# %% label="estimator-settings" paper=["appendix-b.2"] evidence=["reported"] reads=["sampling"]
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
# While a model reads a prompt, it computes a list of numbers at each token in each of its layers: the *hidden state*. A probe
# is a logistic regression that predicts $\mu$ from the hidden state of the last token, averaged over layers. It is trained on
# other questions, whose shares of correct samples are known. These questions trained the probe in the figure:

# %%
from capcal_lib.probes import runs_for_probes, training_data

runs = runs_for_probes(page.store, model, "training")
sources = [run for dataset, run in runs if dataset.probe == nearest]
if not sources:
    page.end(
        "No probe is trained. To make one: capcal features, then capcal probe"
    )
questions, features = training_data(sources[0])
questions.shape, features.shape

# %% [markdown]
# A question with 7 correct samples of 10 counts as 7 positives and 3 negatives. So each question enters twice, with weights.

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
ids, states = read_features(page.data.loc[widest, "run"])
confidence = by_hand.predict_proba(scaler.transform(states))[:, 1]

# %% [markdown]
# `LinearProbe` solves the same problem faster. This is the largest difference between the two:

# %%
from capcal_lib.probes import LinearProbe

probe = LinearProbe(weight_decay=decay, standardize=True)
probe.fit(features, questions["correct"], questions["total"])
np.abs(confidence - probe.predict(states)).max().round(3)

# %% [markdown]
# This *tuned* probe is ours. [The page on corrections](15_protocol.ipynb) shows what the paper's recipe changes.
#
# ## Read $\mu$ itself if the answer is a letter
#
# We estimate $\mu$ from samples because long answers are too many to sum over. Multiple choice is different: one reading of the
# prompt gives the probability of each letter, and the probability of the right letter is $\mu$ itself. (It is not a confidence,
# because it needs the right letter.) We try it with the smallest model of this book and compare with samples.

# %%
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.results import describe_runs
from capcal_lib.sampling import can_sample_here

reader, exam = load_model("smollm2-135m"), load_dataset("mini-exam")
recorded = describe_runs(page.counting_of(reader.name))
if exam.name not in recorded.index or not can_sample_here(reader, exam):
    page.end(
        f"The rest of this page needs the weights of {reader.title} and its samples of {exam.title}. To get both: "
        "capcal reproduce --model smollm2-135m"
    )

# %% [markdown]
# The engine that draws samples can also read. It returns log-probabilities at temperature 1; any other temperature raises the
# probabilities to the power of its inverse. We divide by the sum over the four letters. Here are the first questions:

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
# The share of the right letter is $\mu$, and the samples of the same questions give $\hat\mu$. A *gap* is the difference of the
# two.

# %%
counts = page.results(reader.name).loc[exam.name, ["correct", "total"]]
counts = counts.query("total > 0").reindex(ids).dropna()
by_samples = counts["correct"] / counts["total"]
right = {one.id: shares.at[one.id, one.answer.gold] for one in exam_questions}
by_reading = pd.Series(right)[counts.index]
gaps = by_samples - by_reading

# %% label="fig-exact" mystnb={"image": {"alt": "Scatter plot of the share of correct samples against the probability of the right letter, one dot per question, with the diagonal."}}
axes = sns.scatterplot(x=by_reading, y=by_samples)
axes.axline((0, 0), slope=1, color=MUTED, linewidth=1)
_ = axes.set(xlabel="probability of the right letter", ylabel="share correct")

# %% [markdown] tags=["caption"]
# Share of correct samples against the probability of the right letter, one dot per question. On the diagonal both agree.

# %% [markdown]
# The dots are not on the diagonal. Is that more than chance? If the reading is $\mu$, the counts are random draws from it. We
# repeat these draws many times and compare the gaps that chance alone makes with the gaps that we found:

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
    f"Gaps between {np.median(size):.0f} samples and one reading, over {len(size)} questions of {exam.title}, found and by chance alone.",
    digits=4,
)

# %% [markdown]
# Some samples do not start with a letter; reading letters misses them. They can change the share correct by at most their own
# share. If the mean gap is larger than this share, there is another cause too:

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
# - The methods differ in cost by orders of magnitude: a probe reads a prompt, and response consistency writes $k_c$ answers.
# - Count missing confidences, and say what replaced them.
# - A method may order questions well and still have the wrong level, and vice versa.
# - If the answer is one letter, one reading comes close to $\mu$. For other answers you have to sample.
#
# The right order is not enough to act on. [Next](04_main_table.ipynb): which method comes closest to $\mu$ itself?
#
# ## Exercises
#
# **1 (easy).** Square every confidence in one panel of the first figure. Where do its points move, and what happens to the rank
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
# What is $\mu$ at temperatures 1, 0.5 and 0.1, and what is its limit at 0? *Hint:* raise the probabilities to the inverse
# power, and divide by their sum.

# %% tags=["hide-cell", "solution"]
# Probabilities raised to the inverse temperature, one row per temperature
powers = 1 / np.array([[1], [0.5], [0.1]])
raised = np.array([0.5, 0.3, 0.15, 0.05]) ** powers
page.solution((raised / raised.sum(axis=1, keepdims=True)).round(3)[:, 1])

# %% [markdown]
# **3 (hard).** What does a probe predict if it is trained with hardly any weight decay? *Hint:* refit `LinearProbe` with
# `weight_decay=1e-6` and compare the spread of both probes.

# %% tags=["hide-cell", "solution"]
# The spread of a probe with hardly any decay, and of the tuned one
loose = LinearProbe(weight_decay=1e-6, standardize=True)
loose.fit(features, questions["correct"], questions["total"])
page.solution(loose.predict(states).std(), probe.predict(states).std())
