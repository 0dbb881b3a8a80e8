# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The paper's four claims on small models
#
# Puts what the paper concludes in its sections 4.3.2, 5.1 and 5.2 to every model that has recorded runs here. The
# paper's models have 7 to 21 billion parameters; these have far fewer.
#
# - **You will learn** which of the claims hold on small models, which go the other way, and where the data cannot tell.
# - **You need** nothing but this repository: no GPU, no network. It takes less than a minute.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # one of `capcal models`
store: str = "runs/recorded"  # run store, from the root
k_eval: int = 100  # samples that define mu_hat
seed: int = 0  # of all that is drawn here

# %%
from capcal_lib.book import figures, findings, notebook
from capcal_lib.results import status, tables
from capcal_lib.results.evaluation import load_answers

study = notebook.open_study(globals())
study

# %% [markdown]
# ## What is compared
#
# This page is about all measured runs, whichever model it is opened with. Simulated models take no part: their answers
# follow from what was put into them.

# %%
runs = [
    one
    for each in study.everyone()
    for one in each.evaluations
    if one.evidence == "measured"
]
answers = [load_answers(study.store, one) for one in runs]

# %% label="findings-runs" paper=["section-4.3.1"] evidence=["measured"] reads=["verdicts"]
overview = [
    tables.overview([one], study.rng).assign(
        model=one.model.title, remarks="; ".join(one.remarks())
    )
    for one in runs
]
facts = ["model", "data set", "prompts", "questions", "each", "mean mu_hat"]
tables.show(
    tables.stack(overview).reindex(columns=[*facts, "remarks", "evidence"]),
    "The measured runs.",
)

# %% [markdown]
# Every comparison stays within one row of this table: one model, one data set, one form of prompt, the same questions
# and samples. It is a difference so taken that the claim says it is below zero, with a 95 % interval over questions. The
# claim *holds* where the whole interval is below zero, goes *the other way* where it is above, and *cannot be told*
# where it holds zero. Counts add up over data sets, and the forms of prompt are kept apart, because the same model asked
# in another form is another experiment.
#
# The paper's printed numbers are put to the same comparisons. They have no intervals, so that any difference in print
# counts.
#
# Training splits are recorded as well: a probe learns from them. The table below says how each run was drawn. A dash
# stands where the samples are older than the record of times; elsewhere the machine was doing other work too, so that
# the rates are a lower bound of what it can do. The layers multiply in float32 where
# nothing else is said.

# %% tags=["scroll-output"] label="recorded-runs" paper=["section-4.3.1"] evidence=["measured"] reads=["samples"]
tables.show(
    status.how_made(study.store),
    "How the runs were drawn.",
    **{"tokens/s": "{:,.0f}"},
)

# %% [markdown]
# ## The counts
#
# Each comparison has one of the three verdicts; they are counted by claim, model and form of prompt.

# %%
measured = findings.gather(
    findings.comparisons(one, said, study.rng)
    for one, said in zip(runs, answers, strict=True)
)
every = findings.gather([measured, findings.reported_comparisons()])
verdicts = findings.tally(every)

# %% mystnb={"figure": {"caption": "Comparisons of each claim (rows) that hold, cannot be told, or go the other way, for every model and form of prompt (columns). Measured: by 95 % intervals; reported: by the printed numbers alone.", "name": "fig-findings"}} paper=["section-4.3.2", "section-5.1", "section-5.2"] evidence=["measured", "reported"] reads=["verdicts", "samples", "confidences", "features", "main", "consistency", "passk_math500", "passk_aime25", "budget"]
figures.findings(verdicts)

# %%
sure = len(measured) and int((measured["verdict"] != findings.OPEN).sum())
notebook.glue(runs=len(runs), made=len(measured), sure=sure)
notebook.glue(by_chance=len(measured) / 20)

# %% [markdown]
# {glue:text}`made` comparisons were made on {glue:text}`runs` runs, and {glue:text}`sure` can be told. If no method
# differed from any other, about {glue:text}`by_chance:.0f` would still seem to. Several $k$ or budgets on one run are not
# independent of each other either. Read the pattern, and not a single cell.
#
# ## Claim 1: a probe has the best cost-performance
#
# A probe writes no token. What it has to beat at its cost is guessing: *Uniform random*, and it should do so at home
# (*own probe*, trained on the data set's training split) and away. To be best at any cost it must also score below all
# that write tokens. There the probe is the one whose training set is nearest, which no score has chosen; the row shows
# the rival that scores best, with the verdict on all of them.

# %%
shown = ["item", "model", "data set", "prompts", "method", "against"]
numbers = ["questions", "difference", "low", "high", "verdict", "evidence"]

# %% tags=["scroll-output"] label="findings-probe" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "samples", "confidences", "features"]
tables.show(
    findings.of_claim(measured, 1).reindex(columns=[*shown, *numbers]),
    "Claim 1: differences in corrected capability Brier (below 0, it holds).",
)

# %% label="findings-probe-counts" paper=["section-4.3.2"] evidence=["measured", "reported"] reads=["verdicts", "samples", "confidences", "features", "main", "consistency"]
tables.show(
    findings.of_claim(verdicts, 1), "Claim 1: how many comparisons hold."
)

# %%
own = findings.counted(measured, findings.OWN)
away = findings.counted(measured, findings.AWAY)
best = findings.counted(measured, findings.CHEAPEST)
notebook.glue(own=own[0], own_not=own[1], own_open=own[2], own_all=own[3])
notebook.glue(away=away[0], away_not=away[1], away_open=away[2])
notebook.glue(away_all=away[3], best_all=best[3])
notebook.glue(best=best[0], best_not=best[1], best_open=best[2])

# %% [markdown]
# At home, a probe beats guessing on {glue:text}`own` of {glue:text}`own_all` data sets, loses on {glue:text}`own_not`, and
# {glue:text}`own_open` cannot be told. Away, it does on {glue:text}`away` of {glue:text}`away_all`, loses on
# {glue:text}`away_not`, and {glue:text}`away_open` cannot be told. Against all that write tokens, the nearest probe is best
# on {glue:text}`best` of {glue:text}`best_all` and for certain not on {glue:text}`best_not`; on the remaining
# {glue:text}`best_open` it cannot be told from the best of the others.
#
# ## Claim 2: what asking is worth depends on the model

# %% label="findings-asking" paper=["section-4.3.2"] evidence=["measured"] reads=["verdicts", "confidences"]
asked = findings.of_claim(measured, 2).reindex(columns=[*shown, *numbers])
tables.show(
    asked, "Claim 2: differences in corrected capability Brier to guessing."
)

# %% label="findings-asking-counts" paper=["section-4.3.2"] evidence=["measured", "reported"] reads=["verdicts", "confidences", "main"]
tables.show(
    findings.of_claim(verdicts, 2), "Claim 2: better than guessing, or worse."
)

# %%
said, yes = (
    findings.counted(measured, item) for item in (findings.SAID, findings.P_YES)
)
notebook.glue(said=said[0], said_not=said[1], said_all=said[3])
notebook.glue(yes=yes[0], yes_not=yes[1], yes_all=yes[3])

# %% [markdown]
# A verbalized confidence is better than guessing on {glue:text}`said` of {glue:text}`said_all` data sets and worse on
# {glue:text}`said_not`; P(True) is better on {glue:text}`yes` of {glue:text}`yes_all` and worse on {glue:text}`yes_not`. The
# score of Uniform random is easily beaten by a constant near the model's mean accuracy, so that *better than guessing*
# is not yet to know anything about the question: the page on [cost](09_cost_performance.ipynb) and the main table's
# rank correlations tell these apart.
#
# ## Claim 3: response consistency costs more than a response
#
# That it costs $k_c$ responses needs no experiment. What the others cost does, because a short answer is soon written.
# The votes are blocks of ten samples of the same run, each scored on the samples outside the block.

# %% label="findings-tokens" paper=["section-4.3.2", "appendix-c.3"] evidence=["measured"] reads=["samples", "confidences"]
costs = [
    findings.relative_costs(one, said)
    for one, said in zip(runs, answers, strict=True)
]
tables.show(
    findings.gather(costs),
    "Tokens of a mean response, and of each method relative to it.",
    digits=2,
)

# %% label="findings-votes" paper=["section-4.3.2", "appendix-c.3"] evidence=["measured"] reads=["verdicts", "samples", "features"]
tables.show(
    findings.of_claim(measured, 3).reindex(columns=[*shown, *numbers]),
    "Claim 3: the probe's corrected capability Brier less that of ten votes.",
)

# %%
votes = findings.counted(measured, findings.VOTE)
notebook.glue(votes=votes[0], votes_not=votes[1], votes_open=votes[2])
notebook.glue(votes_all=votes[3])

# %% [markdown]
# For its tenfold cost, response consistency scores better than the nearest probe on {glue:text}`votes_not` of
# {glue:text}`votes_all` data sets and worse on {glue:text}`votes`; {glue:text}`votes_open` cannot be told.
#
# ## Claim 4: a confidence helps to predict pass@k and to spend a budget
#
# The prediction of pass@k is judged by its squared error, against two that know other things: the *mean of the others*
# is the best constant and knows the pass@k of all other questions; *Oracle RC* knows whether one response to this
# question was right, and is judged, as is the confidence beside it, by the samples without that response. A budget is
# judged by the share of questions left unsolved, against spending evenly. No confidence here has seen the samples that
# judge it.

# %% tags=["scroll-output"] label="findings-applied" paper=["section-5.1", "section-5.2"] evidence=["measured"] reads=["verdicts", "confidences", "features"]
applied = findings.of_claim(measured, 4)
tables.show(
    applied.reindex(columns=[*shown, "at", *numbers]),
    "Claim 4: differences in squared error, or in questions left unsolved.",
)

# %% label="findings-applied-counts" paper=["section-5.1", "section-5.2"] evidence=["measured", "reported"] reads=["verdicts", "confidences", "features", "passk_math500", "passk_aime25", "budget"]
tables.show(
    findings.of_claim(verdicts, 4), "Claim 4: how many comparisons hold."
)

# %%
passes = findings.counted(measured, findings.PASSK_PROBE)
spent = findings.counted(measured, findings.BUDGET_PROBE)
notebook.glue(passes=passes[0], passes_not=passes[1], passes_all=passes[3])
notebook.glue(spent=spent[0], spent_not=spent[1], spent_all=spent[3])

# %% [markdown]
# The probe predicts pass@k better than a constant in {glue:text}`passes` of {glue:text}`passes_all` comparisons and worse
# in {glue:text}`passes_not`. Its allocation solves more than even spending in {glue:text}`spent` of
# {glue:text}`spent_all` and fewer in {glue:text}`spent_not`. A probe that is sure of its zeros starves questions that one
# more sample would have solved; a Brier score hardly notices, a budget does.
#
# ## Does it depend on size?
#
# Skill is 1 - Brier / Brier of Uniform random: 1 is perfect, and 0 is no better than guessing. It makes data sets of
# unlike difficulty comparable, though not equal. Lines join the same data set under the same form of prompt; where there
# is none, two points differ in more than their size.

# %%
skills = findings.gather(
    findings.skills(one, said, study.rng)
    for one, said in zip(runs, answers, strict=True)
)
scaling = findings.gather([skills, findings.reported_skills()])

# %% mystnb={"figure": {"caption": "Skill of each method against the model's parameters (all of them, also where a response uses a few of its experts), a point a data set; colours are forms of prompt. Filled: measured, corrected, with 95 % intervals; hollow: as printed in the paper, plug-in. Dashed: Uniform random.", "name": "fig-scaling"}} paper=["section-4.3.2"] evidence=["measured", "reported"] reads=["verdicts", "samples", "confidences", "features", "main", "consistency"]
figures.skills(scaling)

# %% label="findings-skills" paper=["section-4.3.2"] evidence=["measured", "reported"] reads=["verdicts", "samples", "confidences", "features", "main", "consistency"]
tables.show(
    findings.mean_skills(scaling),
    "Mean skill over the data sets that each model has (higher is better).",
    digits=2,
    parameters="{:,.2f} B",
)

# %% [markdown]
# ## Summary
#
# - A claim about methods is a set of paired comparisons; its fate on other models is a count of three kinds, and not a yes.
# - A probe costs nothing to ask, but it has to be at home: count its verdicts away from its training set.
# - Better calibrated is not yet more useful: pass@k and budgets weigh small confidences most.
#
# ## Exercises
#
# 1. Which claims change their verdict if only the data sets of the paper are counted?
# 2. Replace the constant of claim 4 by 0.5. Why is almost everything better than that?
# 3. How many questions would settle the comparisons of claim 3 that cannot be told? The page on the probe lab shows how.
