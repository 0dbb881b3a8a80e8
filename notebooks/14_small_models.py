# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does what the paper claims hold on small models?
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
    best_constant,
    brier_terms,
    costs,
    describe_runs,
    judge_claim,
    load_results,
    measured_claims,
    printed_claims,
    read_claims,
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
# A statement about methods is many comparisons: of a method and a rival, on one model and one data set, on the same
# questions and samples. A comparison is *supported* where the method's mean gain is significantly above zero, *reversed*
# where it is below, and else *inconclusive*; significance is that after Holm's method among all comparisons here.


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
measured["alone"] = measured["verdict"]
measured["verdict"] = measured["alone"].where(sure, "inconclusive")

# %%
# needs runs
claims = read_claims()
of_paper = claims["comparisons"].explode().unique()
printed = printed_claims()


def spell(verdicts):
    """Count verdicts: supported / inconclusive / reversed."""
    found = " / ".join(str((verdicts == each).sum()) for each in VERDICTS)
    return found.replace(" ", "\N{NO-BREAK SPACE}")


def judge_statement(found, claim):
    """Say what becomes of a statement, and the counts behind it."""
    own = found[found["comparison"].isin(claim["comparisons"])]
    return f"{judge_claim(own, claim['rule'])}: {spell(own['verdict'])}"


# %%
# needs runs
words = {
    column: [judge_statement(found, claim) for _, claim in claims.iterrows()]
    for column, found in {"measured": measured, "printed": printed}.items()
}
statements = claims[["place", "says"]].assign(**words)

# %% tags=["hide-input"]
# needs runs
spent = pd.concat({name: costs(runs, name, k_eval=k_eval) for name in real})
answer = pd.concat({name: described[name]["tokens"] for name in real})
both = spent[["Response consistency"]].assign(answer=answer).dropna()
dearer = both["Response consistency"] > both["answer"]
row = {
    "place": "section 4.3.2",
    "says": "Response consistency costs more than the answer",
    "measured": f"{'holds' if dearer.all() else 'undecided'}: "
    f"{dearer.sum()} of {len(dearer)}",
    "printed": "",
}
statements.loc[len(statements)] = row
word = statements["measured"].str.partition(":")[0].value_counts()
notebook.glue(
    made=int(measured["comparison"].isin(of_paper).sum()),
    pairs=len(measured[["model", "dataset"]].drop_duplicates()),
    statements=len(statements),
    holds=int(word.get("holds", 0)),
    undecided=int(word.get("undecided", 0)),
    fails=int(word.get("does not hold", 0)),
)

# %% tags=["finding"]
# needs runs
notebook.finding("""
Of {statements} statements of the paper that can be asked of small models, {holds} hold here, {undecided} stay undecided
and {fails} do not hold.
""")

# %%
printed = printed_claims().assign(source="printed")
shown = [measured.assign(source="measured")] if real else []
every = pd.concat([*shown, printed], ignore_index=True)
of_paper = read_claims()["comparisons"].explode().unique()
every = every[every["comparison"].isin(of_paper)]
every["row"] = pd.Categorical(every["comparison"], of_paper, ordered=True)

# %% mystnb={"figure": {"caption": "Share of the comparisons behind each statement of the paper that are supported, inconclusive, or reversed. Measured: after Holm; printed: by the sign of the difference of printed numbers (budgets: read off a figure).", "name": "fig-claims-small"}, "image": {"alt": "Two panels of horizontal bars with a row for each comparison behind a statement. In-distribution probes are nearly all supported; asking the model is mixed, in print as measured; pass@k and budgets are mostly supported or inconclusive for the probe."}} paper=["section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured", "reported", "read off"] reads=["verdicts", "samples", "confidences", "features", "main", "consistency", "passk_math500", "passk_aime25", "budget"]
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


# %% label="findings-four" paper=["section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured", "reported", "read off"] reads=["verdicts", "samples", "confidences", "features", "main", "passk_math500", "passk_aime25", "budget"] tags=["hide-input"]
# needs runs
shown = tables.show(
    statements.rename(columns={"says": "the paper says"})[
        ["the paper says", "place", "measured", "printed"]
    ],
    "What the paper says: comparisons that are supported / inconclusive / "
    "reversed, after Holm; of printed numbers by their sign.",
    evidence=["measured", "reported", "read off"],
)
notebook.glue(four_claims=shown)
shown

# %% [markdown] needs="runs"
# A statement holds where more than half of its comparisons are supported; that a method does *not always* work holds
# where one is reversed; that something *depends on the model* holds where one comparison on one data set is supported on
# a model and reversed on another. Printed numbers have no interval.
#
# ## What the paper does not ask
#
# These comparisons are questions of this book, and count neither for the paper nor against it.

# %% label="findings-claims" evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"] tags=["hide-input"]
# needs runs
others = measured[~measured["comparison"].isin(of_paper)]
counts = others.groupby("comparison", sort=False)["verdict"].agg(spell)
tables.show(
    counts.rename("better / inconclusive / worse"),
    "Findings of the book, after Holm.",
    evidence="measured",
)

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


# %% tags=["hide-input"]
# needs runs
home_won, home_lost, home_of = wins(HOME)
vote_won, vote_lost, vote_of = wins("Response consistency")
pairs = zip(wins("Verbalized confidence"), wins("P(True)"), strict=True)
said_won, said_lost, said_of = map(sum, pairs)
sizes = [load_model(name).parameters / 1e9 for name in real]
answer = (
    f"<p class='capcal-answer'><strong>Measured on models of "
    f"{min(sizes):.2f} to {max(sizes):.1f} billion parameters, quantised:"
    f"</strong> a probe trained on such questions is closer to it than one "
    f"number for all questions in {home_won} of {home_of} cases and further "
    f"in {home_lost}; asking the model is closer in {said_won} of {said_of} "
    f"and further in {said_lost}; ten votes are closer in {vote_won} of "
    f"{vote_of} and further in {vote_lost}. {tables.badge('measured')}</p>"
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
# zero; so it holds what unseen questions may do, as the interval does. All comparisons, folded, with a CSV of them:

# %% tags=["hide-input", "hide-output"] label="findings-all" paper=["section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
names = {"dataset": "data set", "estimate": "gain"}
listed = measured.rename(columns=names)
listed["model"] = listed["model"].map(titles)
listed["data set"] = [load_dataset(name).title for name in listed["data set"]]
about = ["model", "data set", "method", "rival", "at"]
tables.show(
    listed[[*about, "gain", "low", "high", "p (Holm)", "verdict"]],
    "All measured comparisons: mean gain with its 95 % interval, and the "
    "verdict after Holm.",
    evidence="measured",
    **{"p (Holm)": lambda p: "< .001" if p < 0.001 else f"{p:.3f}"},
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
# **1 (easy).** How many of all comparisons would be called supported or reversed without Holm's method? *Hint:* the
# column `alone`.

# %% tags=["hide-cell", "solution"]
# needs runs
measured[["alone", "verdict"]].apply(lambda each: each.value_counts())

# %% [markdown]
# **2 (medium).** Which statements change if only the data sets of the paper are counted? *Hint:* the built-in sets' names
# begin with `mini-`.

# %% tags=["hide-cell", "solution"]
# needs runs
public = measured[~measured["dataset"].str.startswith("mini-")]
[judge_statement(public, claim) for _, claim in claims.iterrows()]

# %% [markdown]
# **3 (hard).** Judge the probe's pass@k on the data set shown above with a plug-in confidence. What is left of it?
# *Hint:* leave the concentrations out.

# %% tags=["hide-cell", "solution"]
# needs runs
plain = measured_claims(own, {})
plain = plain[plain["comparison"].str.startswith("pass@k: probe")]
plain.set_index("comparison")[["estimate", "verdict"]].round(3)
