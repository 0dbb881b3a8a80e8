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
# This page puts the conclusions of the paper's sections 4.3.2, 5.1 and 5.2 to every model with recorded runs, all far
# smaller than the paper's, and to the paper's own printed numbers, and counts what is supported.

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`; all are shown
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of the intervals and of the drawn responses

# %% tags=["hide-input"]
from functools import cache

import numpy as np
import pandas as pd
import seaborn as sns
from capcal_lib import metrics
from capcal_lib.applications import (
    allocate,
    pass_at_k,
    simulate_pass_at_k,
    spending_terms,
    success_terms,
)
from capcal_lib.book import notebook, style, tables
from capcal_lib.book.widgets import MARKS, verdict_grid
from capcal_lib.confidence import read_answers, vote_terms
from capcal_lib.manifests import load_dataset, load_model, model_names
from capcal_lib.metrics import capability_brier, mean_interval

# %% tags=["hide-input"]
from capcal_lib.probes import describe_probes, nearest_probes, read_predictions
from capcal_lib.reported import beta_moments, load_reported
from capcal_lib.results import (
    best_constant,
    brier_terms,
    describe_runs,
    load_results,
    subjects,
)

notebook.check_parameters(globals())
style.set_style()
rng = np.random.default_rng(seed)
runs = notebook.open_store(store)

# %% tags=["hide-input"]
described = {
    name: describe_runs(runs, name, k_eval=k_eval) for name in model_names()
}
real = [
    name
    for name, data in described.items()
    if "measured" in set(data["evidence"])
    and read_predictions(runs, name).notna().any(axis=None)
]
none = {"runs": "No model has measured samples and a probe here."}
notebook.about(model, described[model], lacking={} if real else none)

# %% tags=["hide-input"]
OWN = "In-distribution probe > Uniform random"
OTHER = "Other probe > Uniform random"
ASKING = "Probe > asking"
VOTES = "Probe > response consistency"
ASKED = {
    "Verbalized confidence": "Verbalized > Uniform random",
    "P(True)": "P(True) > Uniform random",
}
PASS = {who: f"pass@k: {who} > constant" for who in ("probe", "asked")}
PASS["RC"] = "pass@k: probe > Oracle RC"
BUDGET = {who: f"Budget: {who} > even" for who in ("probe", "asked")}
BUDGET["RC"] = "Budget: probe > Oracle RC"
ROWS = [OWN, OTHER, ASKING, *ASKED.values(), VOTES]  # of claims 1, 1, 1, 2, ...
ROWS += [*(PASS[who] for who in ("probe", "RC", "asked"))]
ROWS += [*(BUDGET[who] for who in ("probe", "RC", "asked"))]
CLAIMS = dict(zip(ROWS, (1, 1, 1, 2, 2, 3, *[4] * 6), strict=True))
VERDICTS = ["supported", "inconclusive", "reversed"]
PRINTED = "printed"
COLUMNS = ["comparison", "method", "rival", "at"]


# %% tags=["hide-input"]
def load_recipe(name, recipe):
    """Load a model's results with the predictions of one kind of probe."""
    results = load_results(runs, name, k_eval=k_eval, recipe=recipe)
    return results.query("total > 1")


def concentrations(name, recipe, columns):
    """Fit how sure each probe is, on its own training questions."""
    fitted = describe_probes(runs, name, recipe=recipe)["concentration"]
    return fitted.filter(list(columns)).to_dict()


@cache
def held_out_votes(run):
    """Score response consistency by votes of ten held-out samples."""
    answers = read_answers(run, k=k_eval)
    votes = vote_terms(answers, 10).groupby("row")["disjoint"].mean()
    return votes.set_axis(answers.question_ids[votes.index])


# %% tags=["hide-input"]
def score_pairs(names, dataset):
    """List what claims 1 to 3 compare on a data set: method and rival."""
    near = nearest_probes(names, dataset)
    for name in names:
        if far := style.shift(name, dataset):
            row = OWN if far == style.IN_DISTRIBUTION else OTHER
            yield row, name, "Uniform random"
        if name in ASKED:
            yield ASKED[name], name, "Uniform random"
        if name in (*ASKED, "Response consistency"):
            row = ASKING if name in ASKED else VOTES
            yield from ((row, probe, name) for probe in near)


# %% tags=["hide-input"]
def pass_gains(s, nu, c, n, k):
    """Return squared errors saved: over a constant, and over Oracle RC."""
    said = simulate_pass_at_k(s, [k], concentration=nu)[:, 0]
    actual = pd.Series(pass_at_k(c, n, [k])[:, 0], c.index)
    constant = (actual.sum() - actual) / (actual.count() - 1)  # the others'
    saved = (constant - actual) ** 2 - (said - actual) ** 2
    # Oracle RC knows one response; both are judged by the n - 1 others.
    right = pass_at_k(np.maximum(c - 1, 0), n - 1, [k])[:, 0]
    wrong = pass_at_k(np.minimum(c, n - 1), n - 1, [k])[:, 0]
    if_right = (1 - right) ** 2 - (said - right) ** 2
    if_wrong = wrong**2 - (said - wrong) ** 2
    return saved, c / n * if_right + (1 - c / n) * if_wrong


# %% tags=["hide-input"]
def budget_gains(s, nu, c, n, each, draws=20):
    """Return questions gained: over even spending, and over Oracle RC."""
    budget = each * len(n)
    asked = {"max_per_question": n - 1, "concentration": nu}
    spent, more = (allocate(s, b, **asked) for b in (budget, 5 * budget // 4))
    even = success_terms(np.minimum(each, n), c, n)
    # The budget is shared: what a question takes, others lack.
    price = spending_terms(spent, more, c, n)
    over_even = success_terms(spent, c, n) - even - price
    over_rc = np.zeros(len(n))
    for _ in range(draws):  # of the response that Oracle RC knows
        known = rng.random(len(n)) < c / n
        left = c - known, n - 1
        oracle = allocate(known * 1.0, budget, max_per_question=n - 1)
        gained = success_terms(spent, *left) - success_terms(oracle, *left)
        gained -= spending_terms(spent, more, *left)
        over_rc += gained / draws
    return pd.Series(over_even, c.index), pd.Series(over_rc, c.index)


# %% tags=["hide-input"]
def applied_gains(own, name, nu):
    """Make the comparisons of claim 4 for one confidence on a data set."""
    own = own.dropna(subset=[name])
    who = "probe" if name.startswith("Probe") else "asked"
    s, c, n = own[name], own["correct"], own["total"]
    for k in (4, 16, 64):
        if k < n.max():
            saved = pass_gains(s, nu, c, n, k)
            yield PASS[who], name, "constant", f"k = {k}", saved[0]
            if who == "probe":
                yield PASS["RC"], name, "Oracle RC", f"k = {k}", saved[1]
    left = n.min() - 1  # beside the one that Oracle RC knows
    for each in [each for each in (1, 2, 4) if each < left]:
        gained = budget_gains(s, nu, c, n, each)
        yield BUDGET[who], name, "even", f"B = {each}", gained[0]
        if who == "probe":
            yield BUDGET["RC"], name, "Oracle RC", f"B = {each}", gained[1]


# %% tags=["hide-input"]
def judge(gain, clusters):
    """Give a mean gain its interval, p-value and verdict."""
    gain = gain.dropna()
    terms = pd.DataFrame({"rival": gain, "own": 0.0})
    groups = clusters[gain.index]
    found = metrics.gains(terms, "rival", seed=seed, clusters=groups)
    row = found.loc["own"]
    names = {"better": 0, "inconclusive": 1, "worse": 2}
    return {**row, "verdict": VERDICTS[names[row["verdict"]]]}


# %% tags=["hide-input"]
def all_gains(dataset, own, votes, nu):
    """Make every comparison on one data set: what is compared, and gains."""
    terms = brier_terms(own).droplevel("dataset")
    terms["Response consistency"] = votes
    terms = terms.dropna(axis="columns", how="all").set_axis(own.index)
    for row, name, rival in score_pairs(list(terms), dataset):
        yield row, name, rival, "", terms[rival] - terms[name]
    asked = [name for name in ASKED if name in terms]
    for name in [*nearest_probes(list(terms), dataset), *asked]:
        yield from applied_gains(own, name, nu.get(name))


# %% tags=["hide-input"]
loaded = {
    (name, recipe): load_recipe(name, recipe)
    for name in real
    for recipe in ("tuned", "stacked")
}
found = []
for (name, recipe), results in loaded.items():
    nu = concentrations(name, recipe, results.dropna(axis=1, how="all"))
    groups = subjects(results)
    for dataset, run in described[name]["run"].items():
        own, votes = results.loc[[dataset]], held_out_votes(run)
        for *what, gain in all_gains(dataset, own, votes, nu):
            if recipe == "tuned" or what[1].startswith("Probe"):
                about = dict(zip(COLUMNS, what, strict=True))
                about |= {"model": name, "dataset": dataset}
                about |= {"source": f"{recipe} probe"}
                found.append(about | judge(gain, groups))


# %% tags=["hide-input"]
scores = load_reported("main"), load_reported("consistency").query("k == 10")
printed = []
for (name, dataset), own in pd.concat(scores).groupby(["model", "dataset"]):
    value = own.set_index("method")["value"]
    for row, method, rival in score_pairs(list(value.index), dataset):
        gain = value[rival] - value[method]
        printed.append((row, method, rival, "", name, dataset, gain))

# %% tags=["hide-input"]
probe, even = "Probe (MATH)", "Uniform allocation"
said = next(iter(ASKED))
applied = {
    "k": [(PASS["RC"], probe, "Oracle RC")],
    "B": [(BUDGET["probe"], probe, even), (BUDGET["asked"], said, even)],
}
applied["B"].append((BUDGET["RC"], probe, "Oracle RC"))
errors = [load_reported(f"passk_{name}") for name in ("math500", "aime25")]
errors = pd.concat(errors).query("k > 1")
solved = load_reported("budget", source="reference code").query("k <= 4")
both = {"k": errors.assign(value=-errors["value"]), "B": solved}

# %% tags=["hide-input"]
for letter, table in both.items():
    keys = ["k", "model", "dataset"]
    wide = table.pivot(index=keys, columns="method", values="value")
    for (k, *about), value in wide.iterrows():
        for row, method, rival in applied[letter]:
            gain = value[method] - value[rival]
            printed.append(
                (row, method, rival, f"{letter} = {k}", *about, gain)
            )
names = [*COLUMNS, "model", "dataset", "estimate"]
reported = pd.DataFrame(printed, columns=names).round({"estimate": 4})
sign = np.sign(reported["estimate"]).astype(int)
reported["verdict"] = [VERDICTS[1 - each] for each in sign]
names += ["low", "high", "p", "verdict", "source"]
rows = [pd.DataFrame(found, columns=names), reported.assign(source=PRINTED)]
every = pd.concat(rows, ignore_index=True)


# %% tags=["hide-input"]
def holm(p):
    """Adjust p-values for how many there are: from the smallest upwards."""
    adjusted = p.sort_values() * np.arange(len(p), 0, -1)
    return adjusted.cummax().clip(upper=1)


def spell(verdicts):
    """Count verdicts: supported / inconclusive / reversed."""
    counts = " / ".join(str((verdicts == each).sum()) for each in VERDICTS)
    return counts.replace(" ", "\N{NO-BREAK SPACE}")


# %% tags=["remove-cell"]
measured = every[every["source"] != PRINTED].copy()
measured["adjusted"] = holm(measured["p"])
sure = measured["verdict"].where(measured["adjusted"] < 0.05, VERDICTS[1])
notebook.glue(
    made=len(measured),
    runs=len(measured[["model", "dataset"]].drop_duplicates()),
    by_chance=len(measured) / 20,
)
notebook.glue(
    supported=int((measured["verdict"] == "supported").sum()),
    reversed=int((measured["verdict"] == "reversed").sum()),
    sure=int((sure == "supported").sum()),
    sure_reversed=int((sure == "reversed").sum()),
)

# %% [markdown]
# Of {glue:text}`made` comparisons on {glue:text}`runs` pairs of a model and a data set, {glue:text}`supported` support the
# paper and {glue:text}`reversed` contradict it, each by its own 95 % interval. Without any difference anywhere about
# {glue:text}`by_chance:.0f` would seem to do one or the other. With the chance of a single false verdict among all of them
# held to 5 %, {glue:text}`sure` still support it and {glue:text}`sure_reversed` contradict it.

# %% mystnb={"figure": {"caption": "Share of the comparisons of each row that support the paper, are inconclusive, or are reversed. Measured: by 95 % intervals, with two kinds of probe; right: by the sign of the difference of printed numbers (budgets: read off a figure).", "name": "fig-four-claims"}, "image": {"alt": "Three panels of horizontal bars with a row for each of twelve comparisons. The rows of claims 1 and 3 are nearly all supported; those of claim 2 are mixed; those of claim 4 are mostly supported or inconclusive for the probe and reversed where the model was asked."}} paper=["section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured", "reported", "read off"] reads=["verdicts", "samples", "confidences", "features", "main", "consistency", "passk_math500", "passk_aime25", "budget"] tags=["hide-input"]
drawn = every.assign(
    row=pd.Categorical(every["comparison"], ROWS, ordered=True)
)
colors = ["#be123c", style.GRID, "#0f766e"]
grid = sns.displot(
    drawn,
    y="row",
    hue="verdict",
    hue_order=VERDICTS[::-1],
    palette=colors,
    col="source",
    multiple="fill",
    shrink=0.8,
    alpha=1,
)
grid.set(xlabel="share", ylabel="", xticks=[0, 0.5, 1], xticklabels=[0, 0.5, 1])
grid.set_titles("{col_name}")
grid.figure.set(layout_engine="constrained", size_inches=(style.WIDTH, 4.6))
sns.move_legend(grid, "outside lower center", ncols=3, title="")

# %% label="findings-claims" paper=["section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured", "reported", "read off"] reads=["verdicts", "samples", "confidences", "features", "main", "consistency", "passk_math500", "passk_aime25", "budget"] tags=["hide-input"]
counted = every.pivot_table(
    index="comparison", columns="source", values="verdict", aggfunc=spell
).reindex(index=ROWS)
counted = counted.reindex(columns=["tuned probe", "stacked probe", PRINTED])
counted["after Holm"] = sure.groupby(measured["comparison"]).agg(spell)
counted.insert(0, "claim", counted.index.map(CLAIMS))
tables.show(
    counted,
    "Comparisons that are supported / inconclusive / reversed.",
    evidence=["measured", "reported", "read off"],
)


# %% tags=["remove-cell"]
def count(row, verdict=None, own=None):
    """Count measured comparisons of a row, in-distribution or not."""
    of = measured[measured["comparison"] == row]
    if own is not None:
        far = map(style.shift, of["method"], of["dataset"])
        of = of[(pd.Series(far, of.index) == style.IN_DISTRIBUTION) == own]
    return int((of["verdict"] == verdict).sum()) if verdict else len(of)


def most(row, own=None):
    """Say which verdict more than half of a row's comparisons have."""
    half = count(row, own=own) / 2
    ends = [name for name in VERDICTS if count(row, name, own) > half]
    return ends[0] if ends else "inconclusive"


# %% tags=["remove-cell"]
notebook.glue(
    claim_1=most(OWN),
    claim_3=most(VOTES),
    claim_4=most(PASS["RC"], own=True),
    claim_budget=most(BUDGET["probe"]),
)
ways = [count(row, each) for row in ASKED.values() for each in VERDICTS[::2]]
notebook.glue(claim_2="supported" if all(ways) else "inconclusive")

# %% tags=["remove-cell"]
notebook.glue(
    own=count(OWN, "supported"),
    own_all=count(OWN),
    other=count(OTHER, "supported"),
    other_not=count(OTHER, "reversed"),
    other_all=count(OTHER),
    asking=count(ASKING, "supported"),
    asking_all=count(ASKING),
    votes=count(VOTES, "supported"),
    votes_not=count(VOTES, "reversed"),
    votes_all=count(VOTES),
)
said, yes = ASKED.values()
notebook.glue(
    said=count(said, "supported"),
    said_not=count(said, "reversed"),
    yes=count(yes, "supported"),
    yes_not=count(yes, "reversed"),
    asked_all=count(said),
)

# %% tags=["remove-cell"]
near, rc = PASS["probe"], PASS["RC"]
notebook.glue(
    near=count(near, "supported", own=True),
    near_not=count(near, "reversed", own=True),
    near_all=count(near, own=True),
    rc=count(rc, "supported", own=True),
    rc_not=count(rc, "reversed", own=True),
)
notebook.glue(
    far=count(near, "supported", own=False),
    far_not=count(near, "reversed", own=False),
    far_all=count(near, own=False),
    told=count(PASS["asked"], "supported"),
    told_not=count(PASS["asked"], "reversed"),
    told_all=count(PASS["asked"]),
)

# %% tags=["remove-cell"]
notebook.glue(
    spent=count(BUDGET["probe"], "supported"),
    spent_not=count(BUDGET["probe"], "reversed"),
    spent_all=count(BUDGET["probe"]),
    paid_not=count(BUDGET["asked"], "reversed"),
    paid_all=count(BUDGET["asked"]),
)


# %% tags=["hide-input"]
def majority(verdicts):
    """Name the verdict that more than half of them have, and count all."""
    half = len(verdicts) / 2
    ends = [each for each in VERDICTS if (verdicts == each).sum() > half]
    return f"{ends[0] if ends else VERDICTS[1]}: {spell(verdicts)}"


def both_ways(verdicts):
    """Call claim 2 supported where asking is better here and worse there."""
    some = [(verdicts == each).any() for each in VERDICTS[::2]]
    return f"{VERDICTS[0] if all(some) else VERDICTS[1]}: {spell(verdicts)}"


def claim(words, rows, name=majority):
    """Make the row of a claim: its verdict as measured and as printed."""
    of = every[every["comparison"].isin(rows)]
    print_ = of["source"] == PRINTED
    about = {"claim": words, "measured": name(of["verdict"][~print_])}
    return about | {"printed in the paper": name(of["verdict"][print_])}


# %% tags=["remove-cell"]
# needs runs
four = [
    claim("1. A probe trained on such questions beats a random number", [OWN]),
    claim(
        "2. Whether asking beats it depends on the model",
        [*ASKED.values()],
        both_ways,
    ),
    claim("3. A probe beats ten votes, which cost far more", [VOTES]),
    claim("4. It predicts pass@k better than one known answer", [PASS["RC"]]),
    claim("4. It spends a budget better than evenly", [BUDGET["probe"]]),
]
notebook.glue(
    four_claims=tables.show(
        pd.DataFrame(four).set_index("claim"),
        "The paper's four claims: comparisons that are supported / "
        "inconclusive / reversed.",
        evidence=["measured", "reported", "read off"],
    )
)

# %% [markdown]
# A claim is called *supported* or *reversed* where more than half of its comparisons are, and else *inconclusive*.
#
# **Claim 1, a probe has the best cost-performance: {glue:text}`claim_1` in-distribution.** A probe writes no token.
# Trained on the data set's own training split, it is better than *Uniform random* in {glue:text}`own` of
# {glue:text}`own_all` comparisons; trained on another data set in {glue:text}`other` of {glue:text}`other_all`, and
# worse in {glue:text}`other_not`. The nearest probe is better than asking the model, for a verbalized confidence or
# P(True), in {glue:text}`asking` of {glue:text}`asking_all`. But *Uniform random* is easily beaten: where a model
# mostly fails, a constant near its mean accuracy does it.
#
# **Claim 2, what asking is worth depends on the model: {glue:text}`claim_2`.** Verbalized confidence is better than
# *Uniform random* in {glue:text}`said` of {glue:text}`asked_all` comparisons and worse in {glue:text}`said_not`;
# P(True) is better in {glue:text}`yes` and worse in {glue:text}`yes_not`. This claim is supported where both ways to
# ask are better in some comparisons and worse in others.
#
# **Claim 3, response consistency is costly: {glue:text}`claim_3`.** For ten times the tokens of a response it is better
# than the nearest probe in {glue:text}`votes_not` of {glue:text}`votes_all` comparisons, and worse in
# {glue:text}`votes`.
#
# **Claim 4, a confidence helps to predict pass@k and to spend a budget: {glue:text}`claim_4` for pass@k by
# in-distribution probes against Oracle RC; {glue:text}`claim_budget` for budgets.** In-distribution probes predict
# pass@k better than Oracle RC in {glue:text}`rc` of {glue:text}`near_all` comparisons and worse in {glue:text}`rc_not`,
# and better than a constant in {glue:text}`near`, worse in {glue:text}`near_not`. Other probes do better than a
# constant in {glue:text}`far` of {glue:text}`far_all` and worse in {glue:text}`far_not`; confidences that the model was
# asked for do better in {glue:text}`told` of {glue:text}`told_all` and worse in {glue:text}`told_not`. A budget divided
# by a probe solves more questions than an even one in {glue:text}`spent` of {glue:text}`spent_all` comparisons and
# fewer in {glue:text}`spent_not`; one divided by asking solves fewer in {glue:text}`paid_not` of {glue:text}`paid_all`.

# %% [markdown]
# ## How much there is to predict
#
# A constant at the mean accuracy of a data set scores the variance of $\mu$ there. Where nearly all questions are equally
# difficult that is close to 0, and no confidence can be much better; where $\mu$ spreads, a method shows what it is worth.


# %% tags=["hide-input"]
def kind(method, dataset):
    """Name a probe by its shift, and any other method by itself."""
    far = style.shift(method, dataset)
    return f"Probe, {far}" if far else method


def place(scores, constant, about):
    """List the scores of a data set's methods beside the constant's."""
    scores = scores.drop(["Oracle RC", "Oracle CC"], errors="ignore")
    kinds = [kind(name, about["dataset"]) for name in scores.index]
    for method, score in scores.groupby(kinds).mean().dropna().items():
        yield {**about, "method": method, "score": score, "constant": constant}


# %% tags=["hide-input"]
spread = []
for name in real:
    results = loaded[name, "tuned"]
    terms = brier_terms(results)
    for dataset, run in described[name]["run"].items():
        c, n = results.loc[dataset, "correct"], results.loc[dataset, "total"]
        mean = np.full(len(c), (c / n).mean())
        constant = capability_brier(mean, c, n, corrected=True)
        scores = terms.loc[dataset].mean()
        scores["Response consistency"] = held_out_votes(run).mean()
        about = {"model": name, "dataset": dataset, "evidence": "measured"}
        spread += place(scores, constant, about)

# %% tags=["hide-input"]
main = load_reported("main").groupby(["model", "dataset"])
for (name, dataset), own in main:
    mean, within = beta_moments(name, dataset)
    about = {"model": name, "dataset": dataset, "evidence": "reported"}
    scores = own.set_index("method")["value"]
    spread += place(scores, mean * (1 - mean) - within, about)
spread = pd.DataFrame(spread)


# %% tags=["remove-cell"]
def won(method, evidence):
    """Count the pairs on which a method beats the constant, of how many."""
    own = spread[spread["method"] == method]
    own = own[own["evidence"] == evidence]
    return f"{(own['score'] < own['constant']).sum()} of {len(own)}"


home, said = f"Probe, {style.IN_DISTRIBUTION}", "Verbalized confidence"
notebook.glue(
    home_measured=won(home, "measured"),
    home_reported=won(home, "reported"),
    verbal_measured=won(said, "measured"),
    verbal_reported=won(said, "reported"),
)

# %% tags=["hide-input"]
here = spread[spread["evidence"] == "measured"]
none = {"spread": "No run on a public data set has been scored here."}
notebook.lack(**({} if len(here) else none))

# %% tags=["remove-cell"]
# needs spread
widest = here.loc[here["constant"].idxmax()]
notebook.glue(
    widest=load_model(widest["model"]).title,
    where=load_dataset(widest["dataset"]).title,
    most=widest["constant"],
    least=here["constant"].min(),
)

# %% mystnb={"figure": {"caption": "Capability Brier score of each method (lower is better) against that of the constant, which is the variance of expected accuracy. Points above one another are one model on one data set; those below the line beat the constant. Measured: corrected scores, tuned probes; reported: plug-in scores as printed.", "name": "fig-spread"}, "image": {"alt": "Two panels of points, one column of points for each model and data set, and a diagonal line that is the constant. Uniform random lies far above the line everywhere; in-distribution probes lie at or below it; asked confidences lie on both sides, mostly above it for the measured models."}} paper=["table-2", "appendix-b.3"] evidence=["measured", "reported"] reads=["verdicts", "samples", "confidences", "features", "main", "mean_accuracy"] tags=["hide-input"]
probes = [f"Probe, {far}" for far in style.SHIFTS]
shifts = dict(zip(probes, style.SHIFT_COLORS.values(), strict=True))
colors = style.COLORS | shifts
grid = sns.relplot(
    spread,
    x="constant",
    y="score",
    hue="method",
    hue_order=[name for name in colors if name in set(spread["method"])],
    palette=colors,
    col="evidence",
)
for axes in grid.axes.flat:
    axes.axline((0, 0), slope=1, color=style.MUTED)
grid.set(xlabel="score of the constant", ylim=(-0.02, None))
grid.set_titles("{col_name}")
grid.figure.set(layout_engine="constrained", size_inches=(style.WIDTH, 4.4))
sns.move_legend(grid, "outside lower center", ncols=3, title="")

# %% [markdown] needs="spread"
# The variance of $\mu$ cannot exceed 0.25. Of the runs measured here it is largest, {glue:text}`most:.3f`, for
# {glue:text}`widest` on {glue:text}`where`, and as small as {glue:text}`least:.4f` elsewhere.

# %% [markdown]
# An in-distribution probe beats the constant on {glue:text}`home_measured` pairs of a model and a data set measured here and on
# {glue:text}`home_reported` of the paper's; verbalized confidence does on {glue:text}`verbal_measured` and on
# {glue:text}`verbal_reported`. The constant is lent the mean of the very questions that it is scored on, which flatters it
# a little. For the paper's models the variance follows from two printed numbers, the score of *Uniform random* and the
# mean accuracy. [The appendix](24_claims_in_detail.ipynb) lists the spread of every run.

# %% [markdown] needs="runs"
# ## Who knows more than a constant
#
# The best constant is the mean accuracy of the *other* questions of the data set. It knows the data set and nothing of the
# question, so that what beats it knows something of the question. Data sets without any solved question are left out.


# %% tags=["hide-input"]
def over_constant(own, dataset, votes):
    """Return what each method saves over the best constant."""
    terms = brier_terms(own.assign(constant=best_constant(own)))
    names = own.index.get_level_values("question_id")
    terms["Response consistency"] = votes.reindex(names).to_numpy()
    terms = terms.dropna(axis="columns", how="all")
    near = nearest_probes(list(terms), dataset)[:1]
    for name in [*ASKED, "Response consistency", *near]:
        if name in terms:
            yield kind(name, dataset), terms["constant"] - terms[name]


# %% tags=["hide-input"]
# needs runs
PROBES = [f"Probe, {far}" for far in style.SHIFTS]
known = []
for name in real:
    results = loaded[name, "tuned"]
    for dataset, run in described[name]["run"].items():
        own = results.loc[[dataset]]
        if own["correct"].any():
            votes = held_out_votes(run)
            for method, gain in over_constant(own, dataset, votes):
                verdict = judge(gain, subjects(results))["verdict"]
                known.append((method, name, dataset, verdict))
known = pd.DataFrame(known, columns=["method", "model", "dataset", "verdict"])
words = dict(zip(VERDICTS, MARKS, strict=True))
known["verdict"] = known["verdict"].map(words)


# %% tags=["hide-input"]
def wins(names):
    """Count how often methods beat the constant, lose to it, and of all."""
    of = known[known["method"].isin(names)]["verdict"]
    return [int((of == each).sum()) for each in (MARKS[0], MARKS[2])], len(of)


def often(won, of):
    """Say in a word how often."""
    ends = {0.9: "nearly always", 0.5: "mostly", 0.2: "sometimes", 0: "rarely"}
    return next(word for least, word in ends.items() if won >= least * of)


# %% tags=["remove-cell"]
# needs runs
(home_won, home_lost), home_of = wins([home])
(said_won, said_lost), said_of = wins(ASKED)
(vote_won, vote_lost), vote_of = wins(["Response consistency"])
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

# %% tags=["hide-input"] label="findings-constant" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
order = [*ASKED, "Response consistency", *PROBES]
sizes = sorted(real, key=lambda name: load_model(name).parameters)
titles = {name: load_model(name).short_title for name in sizes}
sets = {name: load_dataset(name).title for name in known["dataset"].unique()}
shown = known.replace({"model": titles, "dataset": sets})
grid = verdict_grid(
    shown,
    rows=[name for name in order if name in set(known["method"])],
    columns=[*titles.values()],
    caption="Each method against the best constant, a mark for each data set: "
    "significantly better, inconclusive or significantly worse.",
    evidence="measured",
)
notebook.glue(known=grid)
grid

# %% [markdown]
# ## How a comparison is judged
#
# Every comparison stays within one model, one data set, the same questions and the same samples. A question's *gain* is
# how much better the method does on it than its rival: here, how much lower its squared error is.

# %%
# needs runs
one = measured[measured["comparison"] == OWN].iloc[0]
own = loaded[one["model"], "tuned"].loc[[one["dataset"]]]
terms = brier_terms(own)
gain = terms["Uniform random"] - terms[one["method"]]

# %% [markdown]
# The interval of the mean gain is one *for questions like these*: subjects of MMLU are drawn whole. The comparison is
# *supported* where the whole interval lies above zero, *reversed* where it lies below zero, and else *inconclusive*.

# %%
# needs runs
mean_interval(gain, rng=np.random.default_rng(seed))

# %% [markdown]
# The paper's printed numbers have no intervals, so any difference in print counts.
#
# Rivals know different things. *Uniform random* and the constant know nothing of the question; the constant, the mean
# pass@k of the other questions, knows the data set. *Oracle RC* knows whether one response to the question was right, and
# is judged, as is the probe beside it, by the other samples. Votes of response consistency are blocks of ten samples,
# each scored by the samples outside the block. Probes are those whose training questions are nearest: the data set's
# own, else all of its domain, else all; never chosen by a score.
#
# ## A confidence that knows how sure it is
#
# The chance that one of $k$ samples is right, $1 - (1 - \mu)^k$, is concave in $\mu$: a confidence that is right on
# average promises too much. So a probe's prediction $s$ is taken as the mean of a posterior
# $\mathrm{Beta}(s\nu, (1-s)\nu)$. How sure it is, $\nu$, is fitted to what the probe predicts for training questions
# without their help.

# %%
# needs runs
nu = concentrations(one["model"], "tuned", own)[one["method"]]
s, counts = own[one["method"]], (own["correct"], own["total"])

# %%
# needs runs
said = {
    "plug-in": simulate_pass_at_k(s, [16]),
    "posterior": simulate_pass_at_k(s, [16], concentration=nu),
    "measured": pass_at_k(*counts, [16]),
}
pd.Series({name: np.nanmean(each) for name, each in said.items()}).round(3)

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
holm(pd.Series([0.001, 0.02, 0.04, 0.3]))

# %% [markdown]
# A p-value here is the level at which the interval of the mean gain, over questions or over subjects, just leaves out
# zero; so it holds what unseen questions may do, as the interval does. Several $k$, budgets and probes on one run are not independent of each other: read the
# pattern, and not a single cell. All comparisons, with a CSV of them:

# %% tags=["hide-input", "hide-output"] label="findings-all" paper=["section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
listed = measured.rename(columns={"estimate": "gain", "adjusted": "p (Holm)"})
listed["model"] = [load_model(name).title for name in listed["model"]]
listed["data set"] = [load_dataset(name).title for name in listed["dataset"]]
stacked = listed["source"].eq("stacked probe")
listed.loc[stacked, "method"] += ", stacked"
columns = ["model", "data set", "method", "rival", "at", "gain"]
tables.show(
    listed[[*columns, "low", "high", "p (Holm)", "verdict"]],
    "All measured comparisons: mean gain with its 95 % interval.",
    evidence="measured",
    **{"p (Holm)": "{:.2g}"},
)

# %% [markdown]
# ## Summary
#
# - A claim about methods is a set of paired comparisons: on other models a count answers it, and not a yes or no.
# - In-distribution a probe is the best of what is cheap; on other data sets that has to be measured again.
# - A better score is not yet a better decision: pass@k and budgets ask how sure a confidence is.
#
# [The appendix](24_claims_in_detail.ipynb) has the runs, what each method costs, and skill by the size of the model.
#
# ## Exercises
#
# **1 (easy).** Which rows have no reversed comparison left once the family-wise error is controlled? *Hint:* the column
# *after Holm*.

# %% tags=["hide-cell", "solution"]
list(counted.index[counted["after Holm"].str.endswith(" 0").fillna(False)])

# %% [markdown]
# **2 (medium).** Which rows change if only the data sets of the paper are counted? *Hint:* the built-in sets' names begin
# with `mini-`.

# %% tags=["hide-cell", "solution"]
paper = measured[~measured["dataset"].str.startswith("mini-")]
paper["verdict"].groupby(paper["comparison"]).agg(spell).reindex(ROWS)

# %% [markdown]
# **3 (hard).** Judge the tuned probes' pass@16 with plug-in confidences. What is left of claim 4? *Hint:* no
# concentration.

# %% tags=["hide-cell", "solution"]
probes = measured.query("comparison == @near and at == 'k = 16'")
verdicts = []
for one in probes[probes["source"].str.contains("tuned")].itertuples():
    own = loaded[one.model, "tuned"].loc[[one.dataset]]
    s, c, n = own[one.method], own["correct"], own["total"]
    gain, _ = pass_gains(s, None, c, n, 16)
    verdicts.append(judge(gain, subjects(own))["verdict"])
spell(pd.Series(verdicts, dtype=object))
