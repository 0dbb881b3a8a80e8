# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does it hold on small models?

# %% tags=["parameters", "hide-input"]
model: str = "qwen2.5-coder-1.5b"  # one of `capcal models`; all are shown
store: str = "runs/recorded"  # run store, from here or from the root
k_eval: int = 100  # samples that define mu_hat
recipe: str = "tuned"  # of the probes; or paper

# %% tags=["hide-input"]
import pandas as pd
import seaborn as sns
from capcal_lib import manifests
from capcal_lib.applications import budget_gains, pass_at_k_gains_over_answer
from capcal_lib.book import notebook, style, tables
from capcal_lib.book.widgets import verdict_grid
from capcal_lib.claims import (
    compare_printed,
    label_results,
    load_claims,
    opposite,
    verdict_of,
)
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.metrics import adjusted, judge_gain
from capcal_lib.probes import describe_probes, nearest_probe, read_predictions
from capcal_lib.results import (
    brier_terms,
    columns_of,
    compare_with_constant,
    costs,
    count_by_kind,
    load_results,
    mean_over_probes,
    methods,
    subjects,
)

# %% tags=["hide-input"]
runs, data = notebook.open_page(globals())
described = notebook.measured_models(runs, data, k_eval)
real = [
    name
    for name in described
    if read_predictions(runs, name, recipe=recipe).notna().any(axis=None)
]
none = {"runs": "No model has measured samples and a probe here."}
notebook.about(data, {} if real else none)

# %% [markdown] needs="runs"
# A statement about methods is many comparisons, each of two methods on the questions of one data set and the answers of one
# model. Of several probes it is the one whose training set is nearest, of pass@k the sixteenth, of budgets two samples a
# question: sets, rivals and uses were chosen after an earlier look at the same data. A data set on which no two questions differ
# has no comparison.

# %%
UNIFORM, VOTES = "Uniform random", "Response consistency"
ASKED = ["Verbalized confidence", "P(True)"]
NEAR = dict(zip(manifests.SHIFTS, ("own", "near", "far"), strict=True))


# %% tags=["hide-input"]
def mean_gain(gains_of, subset, probe, k, nu):
    """Return the gains by a probe, which by the paper's recipe is five."""
    counts = subset["correct"], subset["total"]
    each = {
        name: gains_of(subset[name], *counts, k, concentration=nu)
        for name in columns_of(subset, probe)
    }
    each = pd.DataFrame(each)
    return mean_over_probes(each)[probe]


# %% tags=["hide-input"]


def compare_methods(subset, dataset, probe, nu):
    """Yield what the paper compares on a data set, and a gain a question."""
    terms = brier_terms(subset)
    over_uniform = terms.rsub(terms[UNIFORM], axis="index")
    counts = subset["correct"], subset["total"]
    for method in methods(subset):
        if method in ASKED:
            yield "asked < uniform", method, over_uniform[method]
        elif shift := manifests.shift(method, dataset):
            name = f"{NEAR[shift]} probe < uniform"
            yield name, method, over_uniform[method]
            if probe == load_dataset(dataset).probe != method:
                gain = terms[method] - terms[probe]
                yield "own probe < other probes", method, gain
    if probe:
        gain = mean_gain(pass_at_k_gains_over_answer, subset, probe, 16, nu)
        yield "pass@16 by probe < Oracle RC", probe, gain
        gain = mean_gain(budget_gains, subset, probe, 2, nu)
        yield "budget by probe > even", probe, gain
    if ASKED[0] in subset:
        gain = budget_gains(subset[ASKED[0]].fillna(0.5), *counts, 2)
        yield "budget by voice > even", ASKED[0], gain


# %% [markdown] needs="runs"
# The paper does not ask whether a confidence beats the *average*: the mean accuracy of the other questions, which knows the
# data set and nothing of the question. This book does, by `compare_with_constant`, which judges all methods on all data sets of one
# model together; and whether the nearest probe beats ten votes. Neither counts for or against the paper.


# %%
def compare_further(subset, probe):
    """Yield what this book asks beyond the paper, and a gain a question."""
    terms = brier_terms(subset)
    if VOTES in terms and probe:
        yield "probe < ten votes", probe, terms[VOTES] - terms[probe]


# %% tags=["hide-input"]
# needs runs
rows, against = [], []
for name in real:
    concentrations = describe_probes(runs, name, recipe=recipe)["concentration"]
    loaded = load_results(runs, name, k_eval=k_eval, recipe=recipe)
    against.append(compare_with_constant(loaded).assign(model=name))
    for dataset, subset in loaded.query("total > 1").groupby("dataset"):
        if subset["correct"].nunique() < 2:
            continue  # nothing to tell apart
        subset = subset.dropna(axis="columns", how="all")
        probe = nearest_probe(methods(subset), dataset)
        nu = concentrations.get(probe)
        claimed = [*compare_methods(subset, dataset, probe, nu)]
        further = [*compare_further(subset, probe)]
        for place, (what, method, gain) in enumerate([*claimed, *further]):
            about = {"what": what, "method": method, "model": name}
            about |= {"dataset": dataset, "nearest": method == probe}
            about["family"] = "the paper" if place < len(claimed) else what
            gain = gain.dropna()
            if len(gain) > 1:
                judged = judge_gain(gain, clusters=subjects(gain))
                rows.append(about | judged.drop("verdict").to_dict())
comparisons = pd.DataFrame(rows).dropna(subset="p").reset_index(drop=True)

# %% [markdown] needs="runs"
# All comparisons that the paper asks for are judged together by Holm's method, so that the chance of a single false verdict
# among them is 5 %, as far as each interval holds; those of the nearest probe with ten votes are another family.


# %%
# needs runs
def judged_together(p):
    """Return p values for the number of comparisons."""
    return adjusted(p.to_numpy(), "holm")


comparisons["p (Holm)"] = comparisons.groupby("family")["p"].transform(
    judged_together
)
sign = comparisons["estimate"].gt(0).map({True: "holds", False: "fails"})
comparisons["result"] = sign.where(comparisons["p (Holm)"] < 0.05, "neither")


# %% tags=["hide-input"]
def select(name):
    """Return the results of the comparisons that a claim is measured by."""
    plain = name.removeprefix("not ")
    if plain.startswith("tokens"):  # counted, and not tested
        more = [
            costs(runs, one)[VOTES].sub(described[one]["tokens"]).dropna() > 0
            for one in real
        ]
        return pd.concat(more).map({True: "holds", False: "fails"})
    subset = comparisons[comparisons["what"] == plain]
    if plain == "nearest probe < uniform":
        of = comparisons["what"].str.endswith("probe < uniform")
        subset = comparisons[of & comparisons["nearest"]]
    turned = {"holds": "fails", "fails": "holds"}
    result = subset["result"]
    return result.map(turned).fillna("neither") if name != plain else result


def measured(claim):
    """Return what becomes of the comparisons of a claim on small models."""
    result = pd.concat([select(name) for name in claim["measured"]])
    if claim["opposite"] is True:
        subset = comparisons.loc[result.index]
        group = subset["dataset"] + subset["method"]
        several = group.groupby(group).transform("size") > 1
        return opposite(result[several], group[several])
    return result


# %%
# needs runs
claims = load_claims()
printed = compare_printed(claims).groupby("says")["result"]
claims = claims[claims["measured"].notna()]
results = {says: measured(claim) for says, claim in claims.iterrows()}
claims["verdict"] = [
    verdict_of(results[says], claims["wording"][says]) for says in claims.index
]

# %% tags=["hide-input"]
# needs runs
evidence = notebook.evidence_of(*(described[name] for name in real))
tally = claims["verdict"].value_counts()
sizes = [load_model(name).parameters or 0 for name in real]
sets = pd.concat(described[name]["questions"] for name in real)
notebook.glue(
    tested=len(claims),
    supported=int(tally.get("supported", 0)),
    partly=int(tally.get("in part", 0)),
    reversed=int(tally.get("reversed", 0)),
    open=int(tally.get("inconclusive", 0)),
    models=len(real),
    evidence=evidence,
    smallest=min(sizes) / 1e9,
    largest=max(sizes) / 1e9,
    sets=sets.index.nunique(),
    questions=int(sets.groupby(level="dataset").max().sum()),
)

# %% tags=["finding"]
# needs runs
notebook.finding("""
Of {tested} statements of the paper that small models can test, {supported} are supported, {partly} hold in part, and
{reversed} are reversed; the others stay open.
""")

# %% tags=["picture", "hide-input"] mystnb={"figure": {"caption": "What the paper says, and what becomes of it on models of at most a tenth of the size. Only what stays clear when all comparisons are judged together holds or fails; a bar that neither holds nor fails says that the questions are too few to tell, not that nothing is there.", "name": "fig-four-claims"}, "image": {"alt": "A stacked bar for each statement of the paper: the share of comparisons on small models that hold, that are not clear, and that fail."}} paper=["section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
RESULTS = {
    "fails": style.VERDICT_COLORS["reversed"],
    "neither": style.VERDICT_COLORS["inconclusive"],
    "need not hold": style.GRID,
    "holds": style.VERDICT_COLORS["supported"],
}
drawn = pd.concat(results, names=["says", None]).rename("result")
drawn = label_results(drawn.reset_index("says"), claims["wording"])
axes = sns.histplot(
    drawn,
    y="claim",
    hue="result",
    hue_order=RESULTS,
    palette=RESULTS,
    multiple="fill",
    discrete=True,
    shrink=0.75,
    alpha=1,
)
axes.set(xlabel="share of comparisons", ylabel="")
sns.move_legend(
    axes, "upper center", bbox_to_anchor=(0.1, -0.12), ncols=4, title=""
)


# %% tags=["hide-input"]
def spell(result):
    """Count what holds and what fails."""
    holds, fails = (result == "holds").sum(), (result == "fails").sum()
    return f"{holds} hold, {fails} fail, of {len(result)}"


def spell_claim(says, result):
    """Count what holds; and what fails, where it must not."""
    some = claims["wording"][says] == "some"
    return (
        f"{(result == 'holds').sum()} of {len(result)}"
        if some
        else spell(result)
    )


# %% label="findings-claims" paper=["section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured", "reported", "read off"] reads=["verdicts", "samples", "confidences", "features", "main", "consistency", "passk_math500", "passk_aime25", "budget"] tags=["hide-input"]
# needs runs
for column, found_in in {
    "printed": dict(list(printed)),
    "small models": results,
}.items():
    claims[column] = pd.Series(
        {
            says: spell_claim(says, found_in[says])
            for says in claims.index
            if says in found_in
        }
    )
tables.show(
    claims.rename_axis("the paper says")[
        ["place", "printed", "small models", "verdict"]
    ],
    "The paper's statements: its own printed numbers, small models after Holm's "
    "method, and what becomes of each by the paper's own wording.",
    evidence=[evidence, "reported", "read off"],
)

# %% [markdown] needs="runs"
# A statement is *supported* where as many comparisons hold as its wording asks for: all of them, or more than half
# where the paper says "generally" or "often", or one where it says "not always". It is *reversed* where more than half
# fail, holds *in part* where more hold than fail, and else is *inconclusive*. That a method's worth depends on the
# model is shown by one data set on which two models have opposite clear signs. Printed numbers have no intervals, so
# that any difference counts there.
#
# ## What the paper does not ask

# %% tags=["hide-input"]
# needs runs
votes = comparisons[comparisons["what"] == "probe < ten votes"]["result"]
against = pd.concat(against)
cases = count_by_kind(against)
home, voted = cases.loc["probe of the data set"], cases.loc[VOTES.lower()]
away = cases.loc[["probe of the domain", "probe of another domain"]].sum()
asked = cases.loc[["verbalized confidence", "P(True)"]].sum()

# %% tags=["hide-input"]
# needs runs
notebook.glue(
    home=f"{home['better']} of {home['decided']} cases",
    home_worse=str(home["worse"]),
    away=f"{away['better']} of {away['decided']} cases",
    away_worse=str(away["worse"]),
    voted=f"{voted['better']} of {voted['decided']} cases",
    voted_worse=str(voted["worse"]),
    asked=f"{asked['better']} of {asked['decided']} cases",
    asked_worse=str(asked["worse"]),
)
notebook.glue(
    closer=int((votes == "holds").sum()),
    farther=int((votes == "fails").sum()),
    voted_pairs=len(votes),
)

# %% label="findings-constant" evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"] tags=["hide-input"]
# needs runs
titles = {name: load_model(name).short_title for name in real}
names = {name: load_dataset(name).title for name in sets.index.unique()}
shown = against.astype({"kind": str, "verdict": str})
grid = verdict_grid(
    shown.replace({"model": titles, "dataset": names}),
    rows=[kind for kind in cases.index if kind in set(shown["kind"])],
    caption="Is a confidence closer than the average of the data set? A mark for "
    "each data set and model; all of a model after Holm. Undecidable, and not "
    "counted: a perfect confidence would not be better either.",
    evidence=evidence,
)
hero = (
    f"<p class='capcal-answer'><strong>A probe of its hidden states is closer "
    f"than the average of the data set in {home['better']} of the "
    f"{home['decided']} cells that could be decided, and farther in "
    f"{home['worse']}.</strong> What the model says of itself is closer in "
    f"{asked['better']} of {asked['decided']}, and farther in "
    f"{asked['worse']}. {tables.badge(evidence)}</p>"
)
notebook.glue(known=grid, answer=tables.Html(hero))
grid

# %%
# needs runs
notebook.say("""
Of the cases that could be decided, a probe trained on the data set's own questions is closer than the average in {home} and
farther in {home_worse}; one trained elsewhere is closer in {away} and farther in {away_worse}; ten votes in {voted} and
{voted_worse}; what the model says of itself in {asked} and {asked_worse}. Against ten votes the nearest probe is closer in
{closer} of {voted_pairs} cases and farther in {farther}.
""")

# %% tags=["hide-input", "hide-output"] label="findings-all" paper=["section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
# needs runs
columns = {"what": "comparison", "dataset": "data set", "estimate": "gain"}
listed = comparisons.replace({"model": titles, "dataset": names})
listed = listed.rename(columns=columns)
about = ["comparison", "method", "model", "data set"]
tables.show(
    listed[[*about, "gain", "low", "high", "p (Holm)", "result"]],
    "All comparisons: mean gain with its own 95 % interval.",
    evidence=evidence,
    **{"p (Holm)": tables.p_value},
)

# %% [markdown]
# ## Summary
#
# - What is said of a paper is what the paper says; what it does not ask counts for nobody.
# - A count of wins stands with its losses, and both after all comparisons are judged together.
#
# ## Exercises
#
# **1 (easy).** How many comparisons would seem clear by chance alone, if no method differed from any other and each were
# judged by its own 95 % interval? *Hint:* one in twenty.

# %% tags=["hide-cell", "solution"]
# Clear comparisons: by chance, as found, and judged together
# needs runs
(
    len(comparisons) / 20,
    int((comparisons["p"] < 0.05).sum()),
    int((comparisons["p (Holm)"] < 0.05).sum()),
)
