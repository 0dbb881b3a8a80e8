# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do the paper's four claims hold on small models?
#
# The conclusions of the paper's sections 4.3.2, 5.1 and 5.2, put to every model with recorded runs, all far smaller than
# the paper's, and to the paper's own printed numbers.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`; all are shown
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
recipe: str = "tuned"  # of the probes; or paper
seed: int = 0  # of the drawn responses

# %% tags=["hide-input"]
import pandas as pd
import seaborn as sns
from capcal_lib.applications import pass_at_k, simulate_pass_at_k
from capcal_lib.book import notebook, style, tables
from capcal_lib.book.widgets import MARKS, verdict_grid
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import adjusted, gains, mean_interval
from capcal_lib.probes import describe_probes, nearest_probes, read_predictions
from capcal_lib.reported import constant_score, load_reported
from capcal_lib.results import (
    CLAIMS,
    best_constant,
    brier_terms,
    describe_runs,
    load_results,
    measured_claims,
    printed_claims,
    subjects,
)

# %% tags=["hide-input"]
notebook.check_parameters(globals())
style.set_style()
runs = notebook.open_store(store)
described = {
    name: describe_runs(runs, name, k_eval=k_eval) for name in model_names()
}
real = [
    name
    for name, data in described.items()
    if "measured" in set(data["evidence"])
    and read_predictions(runs, name, recipe=recipe).notna().any(axis=None)
]
real.sort(key=lambda name: load_model(name).parameters)
VERDICTS = ["supported", "inconclusive", "reversed"]
none = {"runs": "No model has measured samples and a probe here."}
notebook.about(model, described[model], lacking={} if real else none)

# %% [markdown] needs="runs"
# A claim about methods is many comparisons: of a method and a rival, on one model and one data set, on the same questions
# and samples. A comparison is *supported* where the interval of the method's mean gain lies above zero, *reversed* where
# it lies below, and else *inconclusive*.


# %%
# needs runs
def judge(name):
    """Make every comparison on one model."""
    results = load_results(runs, name, k_eval=k_eval, recipe=recipe)
    sure = describe_probes(runs, name, recipe=recipe)["concentration"]
    found = measured_claims(results, sure.to_dict(), seed=seed)
    return found.assign(model=name)


# %%
# needs runs
measured = pd.concat([judge(name) for name in real])
measured["p (Holm)"] = adjusted(measured["p"].to_numpy(), "holm")
sure = measured["p (Holm)"] < 0.05
measured["after Holm"] = measured["verdict"].where(sure, "inconclusive")

# %%
# needs runs
verdicts = measured.groupby("comparison")["verdict"]
counts = verdicts.value_counts().unstack(fill_value=0)
counts = counts.reindex(list(CLAIMS), columns=VERDICTS, fill_value=0)

# %% tags=["hide-input"]
# needs runs
notebook.glue(
    made=len(measured),
    pairs=len(measured[["model", "dataset"]].drop_duplicates()),
    supported=int(counts["supported"].sum()),
    reversed=int(counts["reversed"].sum()),
    by_chance=len(measured) / 20,
    sure=int((measured["after Holm"] == "supported").sum()),
    sure_reversed=int((measured["after Holm"] == "reversed").sum()),
)

# %% tags=["finding"]
# needs runs
notebook.finding("""
Of {made} comparisons on {pairs} pairs of a model and a data set, {supported} support the paper and {reversed}
contradict it, each by its own 95 % interval; without any difference anywhere about {by_chance:.0f} would seem to do one
or the other. With the chance of a single false verdict among all of them held to 5 %, {sure} still support it and
{sure_reversed} contradict it.
""")

# %%
printed = printed_claims().assign(source="printed")
shown = [measured.assign(source="measured")] if real else []
every = pd.concat([*shown, printed], ignore_index=True)
every["row"] = pd.Categorical(every["comparison"], list(CLAIMS), ordered=True)

# %% mystnb={"figure": {"caption": "Share of the comparisons of each row that support the paper, are inconclusive, or are reversed. Measured: by 95 % intervals; printed: by the sign of the difference of printed numbers (budgets: read off a figure).", "name": "fig-four-claims"}, "image": {"alt": "Two panels of horizontal bars with a row for each of twelve comparisons. The rows of claims 1 and 3 are nearly all supported where measured; those of claim 2 are mixed; those of claim 4 are mostly supported or inconclusive for the probe and reversed where the model was asked. In print, votes beat the probe more often than not."}} paper=["section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured", "reported", "read off"] reads=["verdicts", "samples", "confidences", "features", "main", "consistency", "passk_math500", "passk_aime25", "budget"]
grid = sns.displot(
    every,
    y="row",
    hue="verdict",
    hue_order=VERDICTS[::-1],
    palette=style.VERDICT_COLORS,
    col="source",
    multiple="fill",
    shrink=0.8,
    alpha=1,
)
grid.set(xlabel="share of the comparisons", ylabel="").set_titles("{col_name}")
grid.figure.set(layout_engine="constrained", size_inches=(style.WIDTH, 4.6))
sns.move_legend(grid, "outside lower center", ncols=3, title="")


# %%
def spell(verdicts):
    """Count verdicts: supported / inconclusive / reversed."""
    found = " / ".join(str((verdicts == each).sum()) for each in VERDICTS)
    return found.replace(" ", "\N{NO-BREAK SPACE}")


def counted(found, column="verdict"):
    """Count the verdicts of each comparison."""
    return found.groupby("comparison")[column].agg(spell)


# %% label="findings-claims" paper=["section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured", "reported", "read off"] reads=["verdicts", "samples", "confidences", "features", "main", "consistency", "passk_math500", "passk_aime25", "budget"] tags=["hide-input"]
columns = {"claim": pd.Series(CLAIMS)}
if real:
    columns["measured"] = counted(measured)
    columns["after Holm"] = counted(measured, "after Holm")
columns["printed"] = counted(printed)
table = pd.DataFrame(columns).reindex(list(CLAIMS)).rename_axis("comparison")
tables.show(
    table,
    "Comparisons that are supported / inconclusive / reversed: measured, with "
    "false verdicts excluded by Holm's method, and in the paper's print.",
    evidence=["measured", "reported", "read off"],
)

# %% [markdown]
# ## The four claims
#
# A claim is called supported or reversed where more than half of its comparisons are. The second is supported where
# asking is better in some comparisons and worse in others.


# %%
def majority(verdicts):
    """Name the verdict that more than half of the comparisons have."""
    share = verdicts.value_counts(normalize=True)
    return share.index[0] if share.iloc[0] > 0.5 else "inconclusive"


def depends(verdicts):
    """Call a claim supported where both better and worse occur."""
    both = {"supported", "reversed"} <= set(verdicts)
    return "supported" if both else "inconclusive"


# %%
ASKED = ["Verbalized > Uniform random", "P(True) > Uniform random"]
OWN = "In-distribution probe > Uniform random"
VOTES = "Probe > response consistency"
PASS = "pass@k: probe > Oracle RC"
BUDGET = "Budget: probe > even"
FOUR = {
    "1. A probe trained on such questions beats a random number": [OWN],
    "2. Whether asking beats it depends on the model": ASKED,
    "3. A probe beats ten votes, which cost far more": [VOTES],
    "4. It predicts pass@k better than one known answer": [PASS],
    "4. It spends a budget better than evenly": [BUDGET],
}


# %%
def verdict(found, comparisons):
    """Say what becomes of a claim, and the counts behind it."""
    own = found[found["comparison"].isin(comparisons)]["verdict"]
    name = depends(own) if comparisons == ASKED else majority(own)
    return f"{name}: {spell(own)}"


# %% label="findings-four" paper=["section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured", "reported", "read off"] reads=["verdicts", "samples", "confidences", "features", "main", "consistency", "passk_math500", "passk_aime25", "budget"]
# needs runs
both = {"measured": measured, "printed in the paper": printed}
four = pd.DataFrame(
    {
        column: {words: verdict(found, rows) for words, rows in FOUR.items()}
        for column, found in both.items()
    }
)
shown = tables.show(
    four.rename_axis("claim"),
    "The paper's four claims: comparisons that are supported / inconclusive / "
    "reversed.",
    evidence=["measured", "reported", "read off"],
)
notebook.glue(four_claims=shown)
shown

# %% tags=["hide-input"]
# needs runs
KEYS = {
    "own": OWN,
    "other": "Other probe > Uniform random",
    "asking": "Probe > asking",
    "said": ASKED[0],
    "yes": ASKED[1],
    "votes": VOTES,
    "passes": PASS,
    "constant": "pass@k: probe > constant",
    "told": "pass@k: asked > constant",
    "spent": BUDGET,
    "paid": "Budget: asked > even",
}
for key, comparison in KEYS.items():
    row = counts.loc[comparison]
    won, lost, made = map(int, (row["supported"], row["reversed"], row.sum()))
    notebook.glue(**{key: won, f"{key}_not": lost, f"{key}_all": made})

# %% tags=["hide-input"]
# needs runs
votes = printed[printed["comparison"] == VOTES]["verdict"]
notebook.glue(
    votes_print=int((votes == "reversed").sum()), votes_print_all=len(votes)
)

# %%
# needs runs
notebook.say("""
**Claim 1, a probe has the best cost-performance.** A probe writes no token. Trained on the data set's own training
split, it is better than *Uniform random* in {own} of {own_all} comparisons; trained on another data set in {other} of
{other_all}, and worse in {other_not}. The nearest probe is better than asking the model, for a verbalized confidence or
P(True), in {asking} of {asking_all}. But *Uniform random* is easily beaten: where a model mostly fails, a constant near
its mean accuracy does it.

**Claim 2, what asking is worth depends on the model.** Verbalized confidence is better than *Uniform random* in {said} of
{said_all} comparisons and worse in {said_not}; P(True) is better in {yes} and worse in {yes_not}.

**Claim 3, response consistency is costly.** Ten votes cost ten responses. They are further from the expected accuracy
than the nearest probe in {votes} of {votes_all} comparisons, and closer in {votes_not}. In the paper's print they are
closer in {votes_print} of {votes_print_all}: its models answer more consistently than these.

**Claim 4, a confidence helps to predict pass@k and to spend a budget.** The nearest probe predicts pass@k better than
*Oracle RC*, which knows whether one response is right, in {passes} of {passes_all} comparisons and worse in {passes_not};
better than a constant in {constant}, worse in {constant_not}. Confidences that the model was asked for are better than a
constant in {told} of {told_all} and worse in {told_not}. A budget divided by a probe solves more questions than an even
one in {spent} of {spent_all} comparisons and fewer in {spent_not}; one divided by asking solves fewer in {paid_not} of
{paid_all}.
""")

# %% [markdown] needs="runs"
# ## Who knows more than a constant
#
# The best constant is the mean accuracy of the *other* questions of the data set. It knows the data set and nothing of the
# question, so that what beats it knows something of the question. Data sets without any solved question are left out.


# %%
# needs runs
def over_constant(own, dataset):
    """Judge each method's gain over the best constant on one data set."""
    terms = brier_terms(own.assign(constant=best_constant(own)))
    methods = ["Verbalized confidence", "P(True)", "Response consistency"]
    methods += nearest_probes(list(own), dataset)[:1]
    terms = terms.reindex(columns=[*methods, "constant"])
    terms = terms.dropna(axis="columns", how="all")
    return gains(terms, "constant", clusters=subjects(own))


# %%
# needs runs
known = {}
for name in real:
    results = load_results(runs, name, k_eval=k_eval, recipe=recipe)
    for dataset, own in results.groupby(level="dataset", sort=False):
        if own["correct"].any() and (own["total"] > 1).all():
            known[name, dataset] = over_constant(own, dataset)
known = pd.concat(known, names=["model", "dataset", "method"]).reset_index()


# %% tags=["hide-input"]
# needs runs
HOME = f"Probe, {style.IN_DISTRIBUTION}"
far = [style.shift(*pair) for pair in known[["method", "dataset"]].to_numpy()]
probe = known["method"].str.startswith("Probe")
known["method"] = known["method"].mask(
    probe, [f"Probe, {each}" for each in far]
)


def wins(method):
    """Count how often a method beats the constant, loses to it, and of all."""
    of = known[known["method"] == method]["verdict"]
    return (of == MARKS[0]).sum(), (of == MARKS[2]).sum(), len(of)


def often(won, of):
    """Say in a word how often."""
    ends = {0.9: "nearly always", 0.5: "mostly", 0.2: "sometimes", 0: "rarely"}
    return next(word for least, word in ends.items() if won >= least * of)


# %% tags=["hide-input"]
# needs runs
home_won, home_lost, home_of = wins(HOME)
vote_won, _, vote_of = wins("Response consistency")
pairs = zip(wins("Verbalized confidence"), wins("P(True)"), strict=True)
said_won, said_lost, said_of = map(sum, pairs)
answer = (
    f"<p class='capcal-answer'><strong>Its hidden states "
    f"{often(home_won, home_of)} know; what it says of itself "
    f"{often(said_won, said_of)} does.</strong> A probe trained on such "
    f"questions beats the best constant in {home_won} of {home_of} cases and "
    f"loses to it in {home_lost}; asking the model beats it in {said_won} of "
    f"{said_of} and loses in {said_lost}; ten votes beat it in {vote_won} of "
    f"{vote_of}. {tables.badge('measured')}</p>"
)
notebook.glue(answer=tables.Html(answer))

# %% label="findings-constant" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
order = ["Verbalized confidence", "P(True)", "Response consistency"]
order += [f"Probe, {each}" for each in style.SHIFTS]
titles = {name: load_model(name).short_title for name in real}
sets = {name: load_dataset(name).title for name in known["dataset"].unique()}
grid = verdict_grid(
    known.replace({"model": titles, "dataset": sets}),
    rows=[name for name in order if name in set(known["method"])],
    columns=[*titles.values()],
    caption="Each method against the best constant, a mark for each data set: "
    "significantly better, inconclusive or significantly worse.",
    evidence="measured",
)
notebook.glue(known=grid)
grid

# %% [markdown]
# The paper prints no constant, but two of its numbers give one: from the score of *Uniform random* and the mean accuracy
# follows the variance of $\mu$, which is what a constant at the mean scores.


# %%
main = load_reported("main").set_index(["model", "dataset"])
main["constant"] = [constant_score(*pair) for pair in main.index]
better = (main["value"] < main["constant"]).groupby(main["method"])

# %% tags=["hide-input"]
said = better.get_group("Verbalized confidence").groupby(level="model")
won = said.agg(["sum", "count"])
home = [style.shift(m, d) for (_, d), m in main["method"].items()]
home = main[[each == style.IN_DISTRIBUTION for each in home]]
notebook.glue(
    verbal_print=", ".join(
        f"{row['sum']} of {row['count']} for {load_model(str(name)).title}"
        for name, row in won.iterrows()
    ),
    home_print=int((home["value"] < home["constant"]).sum()),
    home_print_all=len(home),
)

# %%
notebook.say("""
Verbalized confidence beats this constant on these numbers of data sets in the paper's print: {verbal_print}. An
in-distribution probe does on {home_print} of {home_print_all} pairs of a model and a data set. What asking is worth
indeed depends on the model.
""")

# %% [markdown]
# ## How a comparison is judged
#
# Every comparison stays within one model, one data set, the same questions and the same samples. A question's *gain* is
# how much better the method does on it than its rival: here, how much lower its squared error is.

# %%
# needs runs
results = load_results(runs, real[-1], k_eval=k_eval, recipe=recipe)
dataset = results.index.get_level_values("dataset")[0]
own = results.loc[[dataset]]
probe = nearest_probes(list(own), dataset)[0]
terms = brier_terms(own)
gain = terms["Uniform random"] - terms[probe]
mean_interval(gain, clusters=subjects(own))

# %% [markdown]
# The interval of the mean gain is one *for questions like these*: subjects of MMLU are drawn whole. The comparison is
# *supported* where the whole interval lies above zero, *reversed* where it lies below zero, and else *inconclusive*. The
# paper's printed numbers have no intervals, so any difference in print counts.
#
# Rivals know different things. *Uniform random* and the constant know nothing of the question; the constant, the mean
# of the other questions, knows the data set. *Oracle RC* knows whether one response to the question was right, and is
# judged, as is the probe beside it, by the other samples. Votes of response consistency are of ten samples, scored by the
# samples that did not vote. Probes are those whose training questions are nearest: the data set's own, else all of its
# domain, else all; never chosen by a score.
#
# ## A confidence that knows how sure it is
#
# The chance that one of $k$ samples is right, $1 - (1 - \mu)^k$, is concave in $\mu$: a confidence that is right on
# average promises too much. So a probe's prediction $s$ is taken as the mean of a posterior
# $\mathrm{Beta}(s\nu, (1-s)\nu)$. How sure it is, $\nu$, is fitted to what the probe predicts for training questions
# without their help.

# %%
# needs runs
nu = describe_probes(runs, real[-1], recipe=recipe)["concentration"][probe]
counts_own = own["correct"], own["total"]
posterior = simulate_pass_at_k(own[probe], [16], concentration=nu)
means = {
    "plug-in": simulate_pass_at_k(own[probe], [16]).mean(),
    "posterior": posterior.mean(),
    "measured": pass_at_k(*counts_own, [16]).mean(),
}
pd.Series(means).round(3)

# %% [markdown]
# `allocate` divides a budget by the same posterior. Asking has no training questions, so that its confidences are
# taken at their word. A probe keeps the $\nu$ of its training set wherever it is used; on another data set it may be
# overconfident.
#
# ## Many comparisons
#
# Among many comparisons some intervals exclude zero by chance. Holm's method multiplies the smallest of $m$ p-values
# by $m$, the next by $m - 1$, and so on; what is then below 0.05 is true with 95 % confidence *all together*, however
# the comparisons depend on each other.

# %%
adjusted(pd.Series([0.001, 0.02, 0.04, 0.3]).to_numpy(), "holm")

# %% [markdown]
# A p-value here is the level at which the interval of the mean gain, over questions or over subjects, just leaves out
# zero; so it holds what unseen questions may do, as the interval does. Several $k$, budgets and probes on one run are not
# independent of each other: read the pattern, and not a single cell. All comparisons, folded, with a CSV of them:

# %% tags=["hide-input", "hide-output"] label="findings-all" paper=["section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
names = {"dataset": "data set", "estimate": "gain"}
listed = measured.rename(columns=names)
listed["model"] = listed["model"].map(titles)
listed["data set"] = [load_dataset(name).title for name in listed["data set"]]
about = ["model", "data set", "method", "rival", "at"]
tables.show(
    listed[[*about, "gain", "low", "high", "p (Holm)", "verdict"]],
    "All measured comparisons: mean gain with its 95 % interval.",
    evidence="measured",
    **{"p (Holm)": "{:.2g}"},
)

# %% [markdown]
# ## The runs behind it
#
# How much there is to predict is the variance of $\mu$, the score of the constant: where it is small, nearly all questions
# are equally difficult for the model, and no confidence can be much better than another.

# %%
# needs runs
spread = {}
for name in real:
    results = load_results(runs, name, k_eval=k_eval).query("total > 1")
    mu = results["correct"] / results["total"]
    noise = mu * (1 - mu) / (results["total"] - 1)
    by = mu.groupby(level="dataset")
    spread[name] = pd.DataFrame(
        {
            "mean μ": by.mean(),
            "variance of μ": by.var() - noise.groupby(level="dataset").mean(),
            "in 0.1 to 0.9": mu.between(0.1, 0.9).groupby("dataset").mean(),
        }
    )

# %% label="findings-runs" paper=["section-4.3.1"] evidence=["measured"] reads=["verdicts"] tags=["hide-input"]
# needs runs
rows = [described[name].join(spread[name]).assign(model=name) for name in real]
names = {"title": "data set", "most": "samples each"}
table = pd.concat(rows).rename(columns=names).set_index("model")
table = table.rename(index=titles)
tables.show(
    table[
        ["data set", "prompts", "questions", "samples each", *spread[real[0]]]
    ],
    "The measured runs on evaluation splits, and how much μ spreads. A model "
    "that is asked for steps reasons before it answers.",
    evidence="measured",
    **{"mean μ": "{:.3f}", "variance of μ": "{:.4f}"},
    **{"in 0.1 to 0.9": "{:.0%}"},
)

# %% [markdown]
# ## Summary
#
# - A claim about methods is a set of paired comparisons: on other models a count answers it, and not a yes or no.
# - In-distribution a probe is the best of what is cheap; on other data sets that has to be measured again.
# - A better score is not yet a better decision: pass@k and budgets ask how sure a confidence is.
#
# ## Exercises
#
# **1 (easy).** Which rows have no reversed comparison left once the family-wise error is controlled? *Hint:* the column
# *after Holm*.

# %% tags=["hide-cell", "solution"]
# needs runs
left = counted(measured, "after Holm")
list(left.index[left.str.endswith("0") & ~left.str.endswith("10")])

# %% [markdown]
# **2 (medium).** Which rows change if only the data sets of the paper are counted? *Hint:* the built-in sets' names begin
# with `mini-`.

# %% tags=["hide-cell", "solution"]
# needs runs
public = measured[~measured["dataset"].str.startswith("mini-")]
counted(public).reindex(list(CLAIMS)).rename("public data sets")

# %% [markdown]
# **3 (hard).** Judge the probe's pass@k on the data set shown above with a plug-in confidence. What is left of claim 4?
# *Hint:* leave the concentrations out.

# %% tags=["hide-cell", "solution"]
# needs runs
plain = measured_claims(own, {})
plain = plain[plain["comparison"].isin([PASS, KEYS["constant"]])]
plain.set_index(["comparison", "at"])[["estimate", "verdict"]].round(3)
