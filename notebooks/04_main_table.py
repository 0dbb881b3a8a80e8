# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Main table
#
# [Before](03_confidence_estimators.ipynb) we met the ways to ask how likely a model is to answer a question correctly. Which of
# them comes closest to its expected accuracy $\mu$, and what does it cost?

# %% tags=["parameters"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
protocol: str = "corrected"  # or paper: as the paper did it
verdicts: str = "rules"  # or judge:MODEL, where it has judged

# %% tags=["provenance"]
from capcal_lib.book.lesson import open_page

page = open_page(globals(), paper=["table-2", "table-4", "figure-4"])

# %% [markdown]
# The results have a row a question: how many of its samples were scored, how many of those are correct, and what each method
# says of it. The *capability Brier score* of a method is the mean squared distance of its confidence from $\hat\mu$, the share of
# correct samples; lower is better. A confidence is worth more than knowing the data set only if it beats the *best constant*: the
# mean $\hat\mu$ of the other questions, which is nearly the same for all and needs no confidence at all.

# %%
from capcal_lib.results import score

results = page.results()
scores = score(results, protocol=protocol)
largest = scores.index[0][0]  # of the data sets with a score
scores.loc[largest]

# %% [markdown]
# Is a score lower by more than chance? A *gain* is how much lower the squared error is than the constant's, on the same
# questions. `compare_with_constant` judges the methods that you can choose for a data set together on all data sets of the model, by
# Holm's method, so that the chance of a single false verdict among them is 5 %; probes that were trained on other data sets are a
# second family. All pages of the book take these verdicts. On some data sets the questions are so few, or so much alike, that even a
# perfect confidence would not be significantly better. Such a case could not be won. So we say: better in so many of those that
# *could be won*, and worse in so many of all *cases*.

# %%
from capcal_lib.results import compare_with_constant, count_by_kind

page.end_where_nothing_is_solved(results)
judged = compare_with_constant(results, protocol=protocol)
if judged.empty:
    page.end(
        "No confidence of questions that differ is recorded: capcal confidence asks for one."
    )
counts = count_by_kind(judged)
counts

# %% [markdown]
# The constant has learned from labels, the shares of the other questions, and a probe from those of its training questions. What the
# model says of itself, and votes, have learned from none: they are judged at the level at which they happen to speak. What does each
# *know*, once it gets the same labels? `compare_recalibrated` asks that, and [below](#on-equal-terms) it is done by hand.

# %%
from capcal_lib.results import compare_recalibrated

equal = compare_recalibrated(results, protocol=protocol)
on_equal_terms = count_by_kind(equal).query("cases > 0")
on_equal_terms

# %% tags=["finding"]
home = counts.loc["probe of the data set"]
voted = count_by_kind(equal).loc["response consistency"]
page.finding(
    "Of the cases that could be won, a probe of the data set is closer than the best constant in {home} of {own}, and ten votes, once "
    "they get the same labels, in {voted} of {votes}.",
    home=home["better"],
    own=home["could be won"],
    voted=voted["better"],
    votes=voted["could be won"],
)

# %% [markdown]
# Read a row of the table above to its end: where a kind of method is better in some cases and worse in others, it depends on the
# data set whether it helps, and the table of gains below says on which it does.

# %% tags=["picture"] label="fig-scores" paper=["table-2"] evidence=["measured"] reads=["verdicts", "confidences", "features"] mystnb={"image": {"alt": "Dot plot of capability Brier scores with intervals: a row a data set and a mark a method, with a line for the best constant in each row."}}
from capcal_lib import plots
from capcal_lib.probe_names import training_sets
from capcal_lib.results import methods

several = [name for name in methods(results) if len(training_sets(name)) > 1]
drawn = scores.drop([*several, "Uniform random", "Oracle CC"], level="method")
_ = plots.ScoreDisplay.from_scores(drawn.loc[judged["dataset"].unique()])

# %% [markdown] tags=["caption"]
# Left of the line of the best constant, in its row, a method is closer to the expected accuracy than always giving the average.
# A bar is the 95 % interval of one score alone; which differences from the constant are more than chance, after Holm, says the table of
# gains. *Uniform random*, Oracle CC and the probe of two data sets are left to the tables.

# %% [markdown]
# ## From samples to scores
#
# A score takes two lines. Take one confidence of the largest data set that has any, and for each question with two scored samples or
# more the share of them that are correct:

# %%
from capcal_lib.results import columns_of

scored = results[results["total"] > 1]
asked = judged[judged["method"] != "Response consistency"]
case = (asked if len(asked) else judged).iloc[0]
shown, method = case[["dataset", "method"]]
confidence = scored[columns_of(scored, method)[0]]
mu = scored["correct"] / scored["total"]
plug_in = (confidence - mu) ** 2
plug_in.groupby("dataset").mean()

# %% [markdown]
# This *plug-in* score is that of the paper. It is too high: even a confidence that is $\mu$ itself misses $\hat\mu$, which
# varies by $\mu(1-\mu)/n$ from one set of $n$ samples to the next. That is the same for every method, and
# $\hat\mu(1-\hat\mu)/(n-1)$ estimates it without bias. The *corrected* score subtracts it.

# %%
noise = mu * (1 - mu) / (scored["total"] - 1)
corrected = plug_in - noise
corrected.groupby("dataset").mean()

# %% [markdown]
# The best constant is a confidence as any other: for each question the mean of the others.

# %%
of_dataset = mu.groupby("dataset")
others = of_dataset.transform("count") - 1
constant = (of_dataset.transform("sum") - mu) / others
constant_terms = (constant - mu) ** 2 - noise
constant_terms.groupby("dataset").mean()

# %% [markdown]
# And a gain is the mean of the differences. Questions of a subject belong together, so that whole subjects vary, and no
# difference is beyond what a confidence between 0 and 1 can gain or lose.

# %%
from capcal_lib.metrics import bounds_over_constant, mean_interval
from capcal_lib.results import subjects

gain = (constant_terms - corrected)[shown].dropna()
clusters = subjects(scored)[shown].reindex(gain.index)
bounds = bounds_over_constant(constant[shown])
mean_interval(gain, clusters=clusters, bounds=bounds)

# %% [markdown]
# Votes are the exception: the samples that vote may not judge the vote, or it is compared with itself. `score` lets ten of
# the samples vote and judges them by the others, over many splits. By the paper's protocol votes judge themselves, and a probe
# stands for five, each trained on four fifths of its questions, whose terms are averaged.
#
# ## On equal terms
#
# Recalibrate that confidence by hand: learn from one half of the questions how confidences go with shares, and use it on the other.
# Platt's method fits a line to the log-odds, so that it moves the level and keeps the order.

# %%
from capcal_lib.metrics import Calibrator, capability_brier

known = (
    scored.loc[shown]
    .assign(confidence=confidence[shown])
    .dropna(subset="confidence")
)
learned = known.sample(frac=0.5, random_state=0)
judges = known.drop(learned.index)
calibrator = Calibrator("platt")
calibrator.fit(learned["confidence"], learned["correct"], learned["total"])
counted = judges["correct"], judges["total"]
before = capability_brier(judges["confidence"], *counted, corrected=True)
moved = calibrator.predict(judges["confidence"])
before, capability_brier(moved, *counted, corrected=True)

# %% [markdown]
# `recalibrate` does this for all methods, in five folds, so that every question is judged. Whole subjects go into a fold, and no
# question helps to recalibrate itself. Votes are the first ten samples here, judged by the others. The paper recalibrates nothing: its
# table sets a probe that was trained on labels beside methods that saw none. These verdicts are a family of their own.

# %% label="main-equal" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "confidences"]
names = ["dataset", "method", "estimate", "low", "high", "verdict"]
as_it_is = judged.set_index(["dataset", "method"])["verdict"].rename("as it is")
page.show(
    equal[[*names, "could be won"]].join(as_it_is, on=["dataset", "method"]),
    "Mean gain over the best constant after recalibration on the labels of other questions (higher is better), with its 95 % interval "
    "alone, the verdict after Holm, and the verdict on the method as it is.",
)

# %% [markdown]
# ## All scores
#
# A dash stands where a probe was trained with prompts of another style, and where there are too few samples to vote and be judged;
# the line below the title lists what differs from the paper. The cost of a confidence is in tokens, and has the section below.

# %% label="main-scores" paper=["table-2", "section-4.3.2", "equation-7", "equation-11"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
page.show_scores(
    scores.drop(several, level="method"),
    f"Capability Brier score, {protocol} (lower is better), and cost in tokens.",
)

# %% label="main-gains" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
from capcal_lib.book import tables

page.show(
    judged.drop(columns=["kind", "p"]),
    "Mean gain over the best constant (higher is better) with its 95 % interval "
    "alone, and the verdict after Holm.",
    **{"p (Holm)": tables.p_value},
)

# %% [markdown]
# ## What a confidence costs
#
# Is what is dearer better? The price of a confidence is the mean number of tokens that it takes beside the answer. An answer to the
# question "how likely?" is a few tokens, and ten votes are ten answers. A probe reads the hidden states of a prompt that is read
# anyway, and takes none.

# %% label="cost-tokens" paper=["figure-3", "figure-4"] evidence=["measured"] reads=["samples", "confidences"]
from capcal_lib.results import costs

tokens = costs(page.counting).reindex(page.data.index)
page.show(tokens, "Mean completion tokens a question.", digits=0)

# %% [markdown]
# Each way to ask stands beside the probe that was trained on the nearest questions, and the best constant; these two are free.

# %% label="fig-cost" paper=["figure-3", "figure-4", "section-4.3.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"] mystnb={"image": {"alt": "A panel a data set with score against tokens on a logarithmic axis that begins at zero tokens: a mark with an interval for each method, filled where its comparison with the best constant is clear after Holm, and a dashed line for the best constant."}}
from capcal_lib.studies import main_table as study

prices = study.score_by_price(results, tokens, judged, protocol=protocol)
prices["dataset"] = prices["dataset"].map(page.data["title"])
if len(prices):  # a confidence of one's own has no price
    _ = study.draw_prices(prices)

# %% [markdown] tags=["caption"]
# Score against mean completion tokens a question, with 95 % intervals; lower left is better. Both axes are linear near zero and
# logarithmic beyond. Dashed is the best constant, which costs nothing; above it, tokens are wasted. Filled: closer or farther than the
# constant after Holm, as in the table of gains; hollow: neither.

# %% [markdown]
# Two scores side by side do not say what a price buys. `compare_with_nearest_probe` compares every method that takes tokens with
# the probe, question by question, as above by hand. These comparisons, of all data sets, are a family of their own for Holm's
# method, apart from those with the constant. On how many data sets are ten votes closer than the probe (better), and on how many is
# asking?

# %%
from capcal_lib.results.nearest import compare_with_nearest_probe

bought = compare_with_nearest_probe(results, protocol=protocol)
of_method = bought.groupby("method", observed=False)["verdict"]
of_method.value_counts().unstack()

# %% label="cost-gains" evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
page.show(
    bought.drop(columns="p"),
    "Score of the nearest probe, which takes no tokens, less that of a method that does (higher is better), each with its own 95 % "
    "interval, and the verdict after Holm, all cases of this table together.",
    **{"p (Holm)": tables.p_value},
)

# %% [markdown]
# ## Expected accuracy
#
# The scores depend on how much $\mu$ differs between questions. Its mean is the accuracy that a benchmark reports. [The
# grader](17_grading.ipynb) errs too, and its page corrects the accuracy for what it was found to get wrong.

# %% label="main-overview" paper=["table-4", "appendix-b.3", "section-4.3", "section-4.3.1"] evidence=["measured"] reads=["verdicts"]
page.show(
    page.accuracies(),
    "Mean expected accuracy, 95 % interval for questions like these.",
)

# %% [markdown]
# ## As the paper prints it
#
# The printed scores are plug-in scores without intervals, on samples that were not published. The score of *Uniform random*
# and the mean accuracy give the mean and the variance of $\hat\mu$, and so the score of the best constant. The paper prints
# them for three models, which the book has on a page, “The paper's main table”.
#
# It draws them against tokens too. Here these are read off its figures, to about 6 %. Response consistency writes ten answers, a probe
# nothing, and P(True) one token, unless the model reasons first.

# %% label="cost-means" paper=["figure-4"] evidence=["reported", "read off"] reads=["main", "consistency", "tokens"]
printed = study.printed_by_price()
numbers = ["tokens", "brier", "constant"]
means = printed.groupby(["model", "method"])[numbers].mean()
page.show(
    means.rename(columns={"brier": "score"}),
    "Mean printed score and mean tokens of the paper's models, and the mean score of the best constant.",
    digits=4,
    evidence=["reported", "read off"],
    tokens="{:,.0f}",
)

# %% [markdown]
# For how many of the models is a method closer than the constant? Printed scores have no intervals, but they have a last digit. A
# mean of seven that is rounded to four digits is off by at most .00005, and the constant's, which follows from two printed numbers of
# each data set, by at most .0001: where the two are no farther apart than both together, they are *equal* as far as is printed.

# %%
import pandas as pd

rounding = 0.00015
lead = means["constant"] - means["brier"]
closer = (lead >= rounding).groupby("method").sum()
equal = (lead.abs() < rounding).groupby("method").sum()
pd.DataFrame({"closer": closer, "equal": equal})

# %% label="fig-cost-paper" paper=["figure-3", "figure-4", "section-4.3.2"] evidence=["reported", "read off"] reads=["main", "consistency", "tokens"] mystnb={"image": {"alt": "Three panels, one a model, with printed scores against tokens, for each method a small mark a data set and a large one for their mean, and a dashed line for the best constant."}}
_ = study.draw_printed_prices(tables.titled(printed))

# %% [markdown] tags=["caption"]
# Printed scores (reported), without intervals, against tokens (read off) for the paper's models, with axes as above: small marks are
# its seven data sets, large ones their mean. The probe is the one trained nearest to a data set. Dashed is the mean of the best constant.

# %% [markdown]
# ## Summary
#
# - The rival of a confidence is the best constant, which scores lower than *Uniform random* on any set of more than a few questions.
# - A score without an interval does not rank methods: the table marks those that may be the best.
# - A score mixes what a method knows with the level at which it speaks. Recalibrate before you compare what methods know.
# - A confidence that takes tokens has two free rivals, the constant and the nearest probe. What is dearer is worth its price where a
#   paired comparison says so. Before its use a probe is not free: its training questions had to be sampled and graded.
#
# A score is not a goal in itself. [Next](05_pass_at_k.ipynb): does a confidence predict how often at least one of several attempts
# succeeds?
#
# ## Exercises
#
# **1 (easy).** Why is the difference between the plug-in and the corrected score the same for every method without
# missing confidences? *Hint:* which symbol does not stand in what is subtracted?

# %% tags=["hide-cell", "solution"]
# The noise of mu_hat has no confidence in it: of 3 and 8 in ten, for two confidences
correct, total = [3, 8], [10, 10]
sure = capability_brier([0.2, 0.9], correct, total)
half = capability_brier([0.5, 0.5], correct, total)
sure_corrected = capability_brier([0.2, 0.9], correct, total, corrected=True)
half_corrected = capability_brier([0.5, 0.5], correct, total, corrected=True)
page.solution(round(sure - sure_corrected, 4), round(half - half_corrected, 4))

# %% [markdown]
# **2 (medium).** How many votes could response consistency afford at the price of a verbalized confidence of the paper's models?
# *Hint:* one vote costs one answer.

# %% tags=["hide-cell", "solution"]
# The cost of asking, counted in answers, of which ten votes are ten
price = printed.pivot(
    index=["dataset", "model"], columns="method", values="tokens"
)
votes = 10 * price["Verbalized confidence"] / price["Response consistency"]
page.solution(votes.unstack("model").round(1))

# %% [markdown]
# **3 (hard).** Look at the first figure: on which data set can a method gain most over the best constant? What decides that? *Hint:* what
# does the best constant score, in terms of $\mu$ alone?

# %% tags=["hide-cell", "solution"]
# Where questions differ most: the constant scores the variance of mu over them
variance = of_dataset.var() - noise.groupby("dataset").mean()
constant_score = scores["brier"].xs("Best constant", level="method")
page.solution(pd.DataFrame({"variance": variance, "constant": constant_score}))
