# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Spending a budget where it helps
#
# A {term}`budget` of samples is divided over questions so that as many as possible
# are solved at least once; this page shows how to divide it by a confidence, and whether that helps: section 5.2 and
# appendix D.2 of the paper.

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

# %% tags=["hide-input"]
from capcal_lib.applications import (
    allocate,
    attempt_order,
    fit_concentration,
    solved_by_budget,
    spending_terms,
    split_counts,
    success_rate,
)
from capcal_lib.book import notebook, style, tables
from capcal_lib.confidence import read_answers, vote_terms
from capcal_lib.manifests import load_dataset, load_model

# %% tags=["hide-input"]
from capcal_lib.metrics import mean_interval
from capcal_lib.probes import describe_probes, read_features
from capcal_lib.reported import load_reported
from capcal_lib.results import describe_runs, load_results, subjects
from capcal_lib.runs import find_run, read_samples
from scipy.stats import betabinom
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
data = describe_runs(runs, model, k_eval=k_eval, verdicts=verdicts)
asked = {"k_eval": k_eval, "verdicts": verdicts}
recipe = "paper" if protocol == "paper" else "tuned"
asked |= {"held_out": protocol != "paper", "recipe": recipe}
results = load_results(runs, model, **asked).query("total > 1")

# %% tags=["hide-input"]
probes = {name: load_dataset(name).probe for name in data.index}
probed = [
    name
    for name, probe in probes.items()
    if probe in results and results.loc[name, probe].notna().any()
]
deep = data.index[data["fewest"] >= 32]  # samples: no budget exhausts them
probed = [name for name in probed if name in deep] or probed
lacking = {"probes": "No probe can be trained for these data sets."}
lacking = {} if probed else lacking
notebook.about(
    model, data, lacking=lacking, protocol=protocol, verdicts=verdicts
)

# %% tags=["remove-cell"]
# needs samples
evidence = data["evidence"].iloc[0]
share = results["correct"] / results["total"]
spread = share.groupby(level="dataset").var()
groups = subjects(results)
sets = probed or list(deep) or list(data.index)
shown = max(sets, key=spread.get)


# %% tags=["hide-input"]
EVEN, TURNS = "Even spending", "In turns until solved"
SIMPLE_RULES = [EVEN, TURNS, "Verbalized confidence", "P(True)"]
PLUG_IN, POSTERIOR = "Probe, plug-in", "Probe, posterior"
LENGTH, ORACLE = "Probe, posterior, by length", "Honest oracle"


def concentration(dataset):
    """Fit nu on cross-validated predictions for training questions."""
    about = describe_probes(runs, model, recipe=recipe, verdicts=verdicts)
    return about.loc[load_dataset(dataset).probe, "concentration"]


# %% tags=["hide-input"]
def orders(dataset, **ways):
    """Order all attempts by each rule; a missing confidence is one half."""
    own = results.loc[dataset]
    n, half = own["total"], pd.Series(0.5, own.index)
    found = {EVEN: attempt_order(half, n)}  # in turns
    for name in ("Verbalized confidence", "P(True)"):
        if name in own and own[name].notna().any():
            found[name] = attempt_order(own[name].fillna(0.5), n)
    if dataset in probed:
        s, nu = own[probes[dataset]], concentration(dataset)
        found[PLUG_IN] = attempt_order(s, n)
        found[POSTERIOR] = attempt_order(s, n, concentration=nu, **ways)
    return found


# %% tags=["hide-input"]
def honest_oracle(c, n, rng, **ways):
    """Order by a random half of the samples, and score on the other half."""
    solved = []
    for _ in range(10):
        (known, seen), (c_new, n_new) = split_counts(c, n, rng=rng)
        s = np.full(len(c), known.sum() / seen.sum())
        nu = fit_concentration(s, known, seen)
        if np.isfinite(nu):  # the data set is the prior
            s, nu = (s * nu + known) / (nu + seen), nu + seen
        order = attempt_order(s, n_new, concentration=nu, **ways)
        solved.append(solved_by_budget(order, c_new, n_new, budgets, **ways))
    return np.mean(solved, axis=0)


# %% tags=["hide-input"]
def shared(order, c, n):
    """Return what questions take from each other, whose budget is one."""
    found = []
    for budget in budgets:
        spent, more = (
            np.bincount(order[: int(b * len(n))], minlength=len(n))
            for b in (budget, 1.25 * budget)
        )
        found.append(spending_terms(spent, more, c, n))
    return np.column_stack(found)


# %% tags=["hide-input"]
def solved(dataset, **ways):
    """Return each question's chance to be solved, a column a rule."""
    c, n = results.loc[dataset, ["correct", "total"]].to_numpy().T
    rng = np.random.default_rng(seed)
    terms = {
        name: solved_by_budget(order, c, n, budgets, **ways)
        for name, order in orders(dataset, **ways).items()
    }
    if not ways:
        for name, order in orders(dataset).items():
            terms[name] = terms[name] - shared(order, c, n)
    terms[ORACLE] = honest_oracle(c, n, rng, **ways)
    frames = {
        b: pd.DataFrame({name: each[:, i] for name, each in terms.items()})
        for i, b in enumerate(budgets)
    }
    names = results.loc[dataset].index
    frames = {b: frame.set_index(names) for b, frame in frames.items()}
    return pd.concat(frames, names=["B", "question_id"])


# %% tags=["remove-cell"]
# needs samples
budgets = (1, 2, 4, 8)
terms = pd.concat({name: solved(name) for name in sets}, names=["dataset"])
gains = terms.drop(columns=EVEN).sub(terms[EVEN], axis="index")

# %% tags=["remove-cell"]
# needs samples
asked = [name for name in ("Verbalized confidence", "P(True)") if name in gains]
SIMPLE = "Verbalized or P(True)"
if asked:
    best = gains[asked].groupby(level="dataset").mean().idxmax(axis="columns")
    for table in (gains, terms):
        table[SIMPLE] = pd.concat(
            table.loc[[name], rule] for name, rule in best.items()
        )
known = (PLUG_IN, POSTERIOR, SIMPLE, ORACLE)
rules = [name for name in known if name in gains]
family = len(sets) * len(budgets)


# %% tags=["hide-input"]
def interval(gain, level=0.95):
    """Return the mean gain in points, with its paired interval."""
    clusters = groups[gain.index.droplevel("B")].to_numpy()
    rng = np.random.default_rng(seed)
    ends = mean_interval(
        gain, rng=rng, clusters=clusters, level=level, bounds=(-1, 1)
    )
    return [100 * end for end in ends[:3]]


# %% tags=["remove-cell"]
# needs samples
cells = gains.groupby(level=["dataset", "B"], sort=False)
found = pd.DataFrame(
    {
        (*cell, rule): interval(own[rule])
        for cell, own in cells
        for rule in rules
    },
    index=["gain", "low", "high"],
).T.rename_axis(["dataset", "B", "rule"])
found["better"], found["worse"] = found["low"] > 0, found["high"] < 0
count = found.groupby("rule")[["better", "worse"]].sum()

# %% tags=["remove-cell"]
# needs samples
judged = POSTERIOR if POSTERIOR in rules else rules[0]
better, worse = count.loc[judged]
strict = [interval(own[judged], 1 - 0.05 / family) for _, own in cells]
surely = sum(low > 0 for _, low, _ in strict)
verdict = "does not measurably help"
if better > worse:
    verdict = "helps" if surely else "helps in places"
if worse > better:
    verdict = "does more harm than good"
notebook.glue(verdict=verdict, judged=judged, pairs=family, surely=surely)
notebook.glue(better=int(better), worse=int(worse))
notebook.glue(fewest=int(data.loc[sets, "fewest"].min()))
attained = found.xs(ORACLE, level="rule")["gain"]
notebook.glue(least=attained.min(), most=attained.max())
notebook.glue(mean=found.xs(judged, level="rule")["gain"].mean())

# %% [markdown] needs="samples"
# On this model, dividing a budget by a confidence {glue:text}`verdict`: by *{glue:text}`judged`*, significantly more
# questions are solved than by spending evenly in {glue:text}`better` of {glue:text}`pairs` cases (a budget, and a
# data set with at least {glue:text}`fewest` samples of each question), and significantly fewer in {glue:text}`worse`;
# {glue:text}`surely` of the gains stand when all cases are judged together (Bonferroni). The mean gain is
# {glue:text}`mean:.1f` points, where an oracle that knows half of the samples gains {glue:text}`least:.1f` to
# {glue:text}`most:.1f`.

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Questions solved against the mean number of samples a question, on the data set whose questions differ most. Probe: tuned linear probe, taken at its word (plug-in) or as the mean of a posterior. Verbalized or P(True): the better of these two. The oracle knows half of the samples, and is scored on the other half.", "name": "fig-budget"}, "image": {"alt": "Line plot of the share of questions solved against the budget from 1 to 8 samples a question. The honest oracle lies a few points above even spending; the probes lie close to even spending."}} paper=["figure-5", "figure-10", "section-5.2", "appendix-d.2", "appendix-d.2.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
rates = terms[[EVEN, *rules]].loc[shown].groupby(level="B").mean()
colors = [style.INK, "#2b6450", "#46a281", "#bc3e0b", "#6b6b6b"]
palette = dict(zip([EVEN, *known], colors, strict=True))
axes = sns.lineplot(rates, palette=palette, dashes=False)
axes.set(xscale="log", xlabel="B, samples a question")
axes.set(ylabel="questions solved", title=load_dataset(shown).title)
axes.set_xticks(budgets, budgets)
axes.minorticks_off()
style.label_lines(axes)

# %% [markdown]
# ## As the paper draws it
#
# The paper draws the success rate against the budget for three models and two data sets; the numbers are read off its
# figures. *Probe (MATH)* lies above the uniform allocation at {glue:text}`above_probe` of {glue:text}`points` points,
# verbalized confidence at {glue:text}`above_verbalized`. There are no intervals. Oracle CC divides by $\hat\mu$ of the
# very samples that it is scored on.

# %%
published = load_reported("budget", source="reference code")
keys = ["model", "dataset", "k", "method"]
wide = published.set_index(keys)["value"].unstack()
more = wide.sub(wide["Uniform allocation"], axis="index") > 0

# %% tags=["remove-cell"]
notebook.glue(
    points=len(more),
    above_probe=int(more["Probe (MATH)"].sum()),
    above_verbalized=int(more["Verbalized confidence"].sum()),
)
actual = load_reported("passk_actual", source="reference code")
even = wide.loc["gpt-oss-20b", "math500"]["Uniform allocation"]
apart = (even - actual.set_index("k")["value"]).abs().dropna()
notebook.glue(apart=100 * apart.max(), apart_at=int(apart.idxmax()))

# %% tags=["hide-input"]
lines = published.assign(
    model=[load_model(name).paper_name for name in published["model"]],
    dataset=[load_dataset(name).title for name in published["dataset"]],
)
dashes = dict.fromkeys(lines["method"], "")
dashes |= {"Oracle RC": (3, 1), "Oracle CC": (1, 1)}

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Success rate against the budget, as the paper draws it (read off).", "name": "fig-budget-paper"}, "image": {"alt": "Six panels: three models by MATH-500 and AIME25. On MATH-500 all curves run between 0.85 and 1, the oracle on top. On AIME25 the oracle is on top again, and the other curves cross."}} paper=["figure-5", "figure-10", "section-5.2", "appendix-d.2.2"] evidence=["read off"] reads=["budget"]
grid = sns.relplot(
    lines,
    x="k",
    y="value",
    hue="method",
    palette=style.palette(lines["method"]) | {"Uniform allocation": style.INK},
    style="method",
    dashes=dashes,
    col="model",
    row="dataset",
    kind="line",
    height=2.3,
    facet_kws={"sharey": "row", "margin_titles": True, "legend_out": False},
)
grid.set(xscale="log", xticks=[1, 4, 16, 64], xticklabels=[1, 4, 16, 64])
grid.set_titles(col_template="{col_name}", row_template="{row_name}")
grid.set_axis_labels("B, samples a question", "questions solved")
grid.figure.set_layout_engine("constrained")
sns.move_legend(grid, "outside lower center", ncols=3, title="")

# %% [markdown]
# The authors' code draws the samples at the same ten sets of positions for every question. That alone moves its curve
# of the uniform allocation for gpt-oss-20b on MATH-500 by up to {glue:text}`apart:.1f` points (at $B$ =
# {glue:text}`apart_at`) from the same authors' pass@$k$, which it should equal. Below, the success rate is an exact
# expectation.
#
# ## The best allocation
#
# A question with success probability $p$ gains $p(1-p)^k$ from its next sample after $k$ failures. The gain falls
# with every sample, so taking the largest gains one at a time is optimal.


# %%
def greedy(confidence, budget):
    """Give every next sample to the question that gains most from it."""
    confidence = np.asarray(confidence)
    spent = np.zeros(len(confidence), dtype=int)
    for _ in range(budget):
        gain = confidence * (1 - confidence) ** spent
        spent[np.argmax(gain)] += 1
    return spent


greedy([0.9, 0.5, 0.1, 0.0], 12)

# %% [markdown]
# The likely question needs little, the hopeless one gets nothing, and the rest goes where it still pays. `allocate`
# finds the same without taking the samples one at a time: it searches for the gain that all samples must beat.

# %% label="budget-greedy" paper=["appendix-d.2.1", "equation-20"] evidence=["simulated"]
allocate([0.9, 0.5, 0.1, 0.0], 12)

# %%
guesses = np.random.default_rng(seed).random(50)
assert (greedy(guesses, 200) == allocate(guesses, 200)).all()

# %% [markdown]
# A confidence is no certainty. Read as the mean of a posterior with concentration $\nu$, it falls with every failure,
# from $s$ to $s\nu/(\nu+k)$ after $k$ of them. Here a sample moves from the question that has seemed hard all along, and
# seems harder with every failure, to an easier one.

# %%
allocate([0.9, 0.5, 0.1, 0.0], 12, concentration=2)

# %% [markdown]
# One sort serves all budgets: with all samples in the order of their gains, a budget buys the first ones.

# %%
order = attempt_order([0.9, 0.5, 0.1, 0.0], 12, concentration=2)
order[:12], np.bincount(order[:12], minlength=4)

# %% [markdown]
# ## The success rate of an allocation
#
# The success rate of an allocation is the share of questions solved at least once, when each question's samples are
# drawn from those at hand: pass@$k$ at each question's own $k$.

# %% label="budget-success-rate" paper=["equation-19"] evidence=["simulated"]
correct, total = [90, 60, 5, 0], [100] * 4
plans = {
    "even spending": [3, 3, 3, 3],
    "plug-in": allocate([0.9, 0.5, 0.1, 0.0], 12),
    "posterior": allocate([0.9, 0.5, 0.1, 0.0], 12, concentration=2),
}
{
    name: round(success_rate(own, correct, total), 3)
    for name, own in plans.items()
}

# %% [markdown] needs="samples"
# On the recorded samples, with no question given more samples than it has. A missing confidence counts as one half.

# %% tags=["hide-input"] label="budget-success" paper=["figure-10", "equation-19"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
shares = terms.loc[shown].groupby(level="B").mean().T
shares.columns = [f"B = {each}" for each in shares.columns]
tables.show(
    shares.drop(index=SIMPLE, errors="ignore").rename_axis("rule"),
    f"Share of questions solved on {load_dataset(shown).title} (higher is better).",
    evidence=evidence,
)

# %% [markdown] needs="samples"
# ## Does it help?
#
# Every rule is compared with even spending at the same budget, question by question, in {glue:text}`pairs` cases
# (95 % intervals of the paired difference, each on its own). *Verbalized or P(True)* is the better of the two on each
# data set, chosen by these very results, which favours it.

# %% tags=["hide-input"] label="budget-verdicts" paper=["section-5.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
summary = count.loc[rules].rename(
    columns={"better": "significantly better", "worse": "significantly worse"}
)
summary.insert(1, "inconclusive", family - summary.sum(axis="columns"))
summary["mean gain, points"] = found.groupby("rule")["gain"].mean()
tables.show(
    summary,
    "Number of cases by their comparison with even spending.",
    digits=1,
    evidence=evidence,
)

# %% tags=["hide-input"] label="budget-gains" paper=["section-5.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
text = found.round(1).apply(
    lambda row: f"{row['gain']:z.1f} [{row['low']:z.1f}, {row['high']:z.1f}]",
    axis="columns",
)
wide = text.unstack("B")[list(budgets)].sort_index(
    level="rule", sort_remaining=False
)
wide = wide.loc[(sets, [judged, ORACLE]), :].rename(
    index={name: load_dataset(name).title for name in sets}
)
tables.show(
    wide.rename(columns="B = {}".format).rename_axis(["data set", "rule"]),
    "Gain over even spending in points, with its 95 % interval.",
    evidence=evidence,
)

# %% [markdown]
# ## Stop at the first success
#
# All of that decides before the first sample is drawn. Whoever can tell a correct answer when it comes can stop there,
# and spend the rest elsewhere. Then what counts is the chance that the next sample succeeds after $k$ failures, $s$ for
# a confidence taken at its word and $s\nu/(\nu+k)$ for a posterior, which learns from each failure. To take the
# question with the highest chance is optimal: no other rule solves more with as many samples.

# %%
attempt_order([0.9, 0.5, 0.1, 0.0], 3, concentration=2, sequential=True)

# %% [markdown]
# A question leaves the order once it is solved, and its place goes to the next one. `solved_by_budget` gives every rule
# the same *expected* number of samples, exactly. Here two questions, each tried up to three times:

# %% label="budget-sequential-example" evidence=["simulated"]
order = attempt_order([0.9, 0.1], 3, concentration=2, sequential=True)
solved_by_budget(order, [9, 1], [10, 10], [1, 2], sequential=True).round(3)

# %% [markdown] needs="samples"
# The simple rule to beat goes through the questions in turns, until each is solved. On the recorded samples it solves
# {glue:text}`turns:.1f` points more than even spending, on average over data sets and budgets.

# %% [markdown] needs="probes"
# To that the posterior's rule adds {glue:text}`learned:+.1f` points. Against the same posterior's one-shot division,
# at the same expected spending, it is {glue:text}`over_one_shot:+.1f` points.

# %% tags=["remove-cell"]
# needs samples
stopped = pd.concat(
    {name: solved(name, sequential=True) for name in sets}, names=["dataset"]
)
levels = stopped.groupby(["dataset", "B"]).mean().mean()
before = terms.groupby(["dataset", "B"]).mean().mean()
notebook.glue(turns=100 * (levels[EVEN] - before[EVEN]))
last = levels.get(POSTERIOR, np.nan)
notebook.glue(learned=100 * (last - levels[EVEN]))
notebook.glue(over_one_shot=100 * (last - before.get(POSTERIOR, np.nan)))

# %% tags=["hide-input"] mystnb={"figure": {"caption": "Questions solved against the expected number of samples a question, where a question is left once it is solved. The posterior takes the question whose next sample is most likely to succeed.", "name": "fig-budget-sequential"}, "image": {"alt": "Line plot of the share of questions solved against the budget from 1 to 8 samples a question. All lines rise; even spending is the lowest, in turns until solved above it, and the honest oracle on top."}} evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs samples
rules = [EVEN, *(rule for rule in (POSTERIOR, ORACLE) if rule in stopped)]
rates = stopped[rules].rename(columns={EVEN: TURNS})
rates.insert(0, EVEN, terms[EVEN])
rates = rates.loc[shown].groupby(level="B").mean()
palette |= {TURNS: "#3866bd"}
axes = sns.lineplot(rates, palette=palette, dashes=False)
axes.set(xscale="log", xlabel="B, expected samples a question")
axes.set(ylabel="questions solved", title=load_dataset(shown).title)
axes.set_xticks(budgets, budgets)
axes.minorticks_off()
style.label_lines(axes)

# %% [markdown] needs="probes"
# ## Count tokens, not samples
#
# A sample of a question with long answers costs more. How long, a ridge regression predicts from the hidden states of
# the prompt, learned from the training questions; the worth of a sample is then its gain per predicted token. Every
# rule is charged with the tokens that the recorded samples of its questions took on average. What this gains is in
# the last table of the page.


# %% tags=["hide-input"]
def mean_tokens(run):
    """Return the mean tokens of each question's samples."""
    samples = read_samples(run, ["completion_tokens"])
    return samples.groupby("question_id")["completion_tokens"].mean()


# %% tags=["hide-input"]
def predicted_tokens(dataset):
    """Predict the mean tokens of each question's samples."""
    run = find_run(runs, model, dataset, load_dataset(dataset).training_split)
    names, features = read_features(run)
    length = np.log(mean_tokens(run).reindex(names).clip(lower=1))
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(0, 5, 6)))
    names, unseen = read_features(data.loc[dataset, "run"])
    logs = ridge.fit(features[length.notna()], length.dropna()).predict(unseen)
    return pd.Series(np.exp(logs), names).reindex(results.loc[dataset].index)


# %% tags=["hide-input"]
def solved_by_tokens(dataset):
    """Return each question's chance to be solved by a budget of tokens."""
    own, nu = results.loc[dataset], concentration(dataset)
    s, n = own[probes[dataset]], own["total"]
    paid = mean_tokens(data.loc[dataset, "run"]).reindex(own.index)
    found = orders(dataset)
    found[LENGTH] = attempt_order(
        s, n, concentration=nu, cost=predicted_tokens(dataset)
    )
    amounts = np.array(budgets) * paid.mean()
    each = {
        name: solved_by_budget(order, own["correct"], n, amounts, cost=paid)
        for name, order in found.items()
    }
    means = {name: each[name].mean(axis=1) for name in each}
    return pd.DataFrame(means, own.index)


# %% [markdown] needs="probes"
# ## Majority votes, where nobody can check
#
# Where nobody can tell a correct answer, the samples vote. A vote of $k$ is right more often than one sample only where
# the correct answer leads, and may be worse where it does not. If there are two answers and $\mu$ has a posterior, the
# vote is right with the chance that a Beta-binomial count exceeds $k/2$. With more than two answers, a correct one may
# lead with less than one half of the votes, which this leaves out.

# %%
votes = np.arange(1, 16, 2)
pd.DataFrame(
    {s: betabinom.sf(votes // 2, votes, 4 * s, 4 - 4 * s) for s in (0.3, 0.8)},
    index=pd.Index(votes, name="k"),
).T.rename_axis("s").round(3)

# %% [markdown] needs="probes"
# Each question gets one sample; further ones come in pairs, where a pair is expected to gain most. Whether a vote is
# right is measured over blocks of the recorded samples; the last table has the result.


# %% tags=["hide-input"]
def votes_right(answers):
    """Return how often votes are right, (questions, numbers of votes)."""
    blocks = [vote_terms(answers, k).fillna({"right": 0}) for k in votes]
    means = [each.groupby("row")["right"].mean() for each in blocks]
    return pd.concat(means, axis="columns").to_numpy()


# %% tags=["hide-input"]
def voted(dataset):
    """Return how often each question's vote is right: evenly, and dealt."""
    answers = read_answers(data.loc[dataset, "run"], k=k_eval)
    own, right = results.loc[dataset, probes[dataset]], votes_right(answers)
    s = own.reindex(answers.question_ids).clip(0.005, 0.995).to_numpy()
    a = min(concentration(dataset), 1e6) * s[:, None]
    promised = betabinom.sf(votes // 2, votes, a, a / s[:, None] - a)
    gain = np.minimum.accumulate(np.diff(promised), axis=1)
    order = np.argsort(-gain.ravel(), kind="stable") // gain.shape[1]
    rows, pairs = np.arange(len(s)), (1, 2, 4)  # 3, 5, 9 samples a question
    given = [np.bincount(order[: p * len(s)], minlength=len(s)) for p in pairs]
    dealt = np.mean([right[rows, each] for each in given], axis=0)
    table = {EVEN: right[:, pairs].mean(axis=1), POSTERIOR: dealt}
    return pd.DataFrame(table, answers.question_ids)


# %% [markdown] needs="probes"
# ## All comparisons in one table
#
# Each row compares a method with the best simple rule of each data set: even spending (or in turns until solved), or
# dividing by verbalized confidence or P(True). That is chosen by these very results, which favours it. Gains are
# means over the budgets, in points of questions solved (for votes: answered correctly).


# %% tags=["hide-input"]
def against_simple(application, table, method):
    """Compare a method with the best simple rule on each data set."""
    rows = []
    for name, own in table.groupby(level="dataset", sort=False):
        simple = own[own.columns.intersection(SIMPLE_RULES)].mean().idxmax()
        gain = own[method] - own[simple]
        rng, clusters = np.random.default_rng(seed), groups[gain.index]
        ends = mean_interval(gain, rng=rng, clusters=clusters, bounds=(-1, 1))
        rows.append([application, method, name, simple, *ends[:3]])
    heads = ["application", "method", "dataset", "against"]
    return pd.DataFrame(rows, columns=[*heads, "estimate", "low", "high"])


# %% tags=["hide-input"]
# needs probes
names = ["dataset", "question_id"]
tables_of = {
    "Budget, one-shot": terms.groupby(level=names, sort=False).mean(),
    "Budget, sequential": stopped.rename(columns={EVEN: TURNS})
    .groupby(level=names, sort=False)
    .mean(),
    "Budget in tokens": pd.concat(
        {name: solved_by_tokens(name) for name in probed}, names=names
    ),
}
if polled := [name for name in probed if data["fewest"][name] > votes[-1] + 1]:
    tables_of["Budget, majority vote"] = pd.concat(
        {name: voted(name) for name in polled}, names=names
    )

# %% tags=["remove-cell"]
# needs probes
comparison = pd.concat(
    against_simple(application, table, method)
    for application, table in tables_of.items()
    for method in (PLUG_IN, POSTERIOR, LENGTH)
    if method in table
).reset_index(drop=True)

# %% tags=["hide-input"] label="budget-comparison" paper=["section-5.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
# needs probes
signs = comparison.assign(
    better=comparison["low"] > 0, worse=comparison["high"] < 0
)
cases = signs.groupby(["application", "method"], sort=False)
summary = cases[["better", "worse"]].sum()
summary.insert(1, "inconclusive", cases.size() - summary.sum(axis="columns"))
summary["mean gain, points"] = 100 * cases["estimate"].mean()
tables.show(
    summary,
    "Number of data sets by the comparison with their best simple rule.",
    digits=1,
    evidence=evidence,
)

# %% [markdown]
# ## Summary
#
# - Optimal allocation needs no search: take the largest gains, or find the gain that all of them beat.
# - A confidence that is too sure wastes samples; as a posterior it costs less where it is wrong.
# - Where a success can be told, stop at it, and let every failure lower the confidence.
# - Count what a sample costs, and judge every rule at the same cost.
# - Score an oracle on samples that it has not seen, and compare with even spending at the same budget.
#
# ## Exercises
#
# **1 (easy).** In the published curves, how does the oracle's advantage over the uniform allocation change with the
# budget, and why is it not zero at $B = 1$? *Hint:* a budget of one sample a question need not be spent one each.

# %% tags=["hide-cell", "solution"]
published.pivot_table(index="k", columns="method", values="value").eval(
    "`Oracle CC` - `Uniform allocation`"
)  # hopeless questions get none and others two; many samples solve all anyway

# %% [markdown]
# **2 (medium).** Replace every confidence by one half. What does the allocation become, and does it matter which number
# it is? *Hint:* all gains of the first sample are equal.

# %% tags=["hide-cell", "solution"]
assert (allocate([0.5] * 5, 12) == allocate([0.1] * 5, 12)).all()
allocate([0.5] * 5, 12)  # even spending

# %% [markdown]
# **3 (hard).** A question's samples cost different numbers of tokens. What takes the place of the gain? *Hint:* try
# `cost`.

# %% tags=["hide-cell", "solution"]
tokens = np.array([100, 300])
spent = allocate([0.3, 0.3], 2000, cost=tokens)  # by gain per token
spent, int(spent @ tokens)
