"""The paper's four claims, put to every measured run and to the paper's own printed numbers.

A claim comes down to comparisons within one run: of a model, on a data set, by one prompt style. The difference is so
taken that the claim says it is below zero, and it *holds* where the whole interval lies there, goes *the other way*
where the whole interval lies above zero, and *cannot be told* otherwise. Printed numbers have no interval; their
difference has a sign, unless they are equal as printed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from capcal_lib.applications.budget import allocate, success_terms
from capcal_lib.applications.passk import pass_at_k, simulate_pass_at_k
from capcal_lib.confidence import with_fallback
from capcal_lib.confidence.consistency import Answers, vote_terms
from capcal_lib.confidence.of_run import TITLES
from capcal_lib.manifests import Dataset, load_dataset, load_model
from capcal_lib.metrics.intervals import Interval, bootstrap_means
from capcal_lib.metrics.validation import Floats, Ints
from capcal_lib.probes import nearest_probe
from capcal_lib.reported import load_reported
from capcal_lib.results.evaluation import CONSISTENCY, Evaluation
from capcal_lib.results.tables import EVEN, ORACLE_RC, UNIFORM, brier_terms, reported_cost_table, shift, stack

HOLDS, OTHER, OPEN = VERDICTS = ("holds", "the other way", "cannot be told")
VERBALIZED, P_TRUE = TITLES["verbalized"], TITLES["p-true"]
CONSTANT = "Mean of the others"
OWN, AWAY = "Own probe below Uniform random", "Other probes below Uniform random"
CHEAPEST = "Probe below all that write tokens"
SAID, P_YES = "Verbalized below Uniform random", "P(True) below Uniform random"
VOTE = "Probe below response consistency"
PASSK_PROBE, PASSK_ASKED = "pass@k by the probe, against a constant", "pass@k by asking, against a constant"
RC_PROBE, RC_ASKED = "pass@k by the probe, against Oracle RC", "pass@k by asking, against Oracle RC"
BUDGET_PROBE, BUDGET_ASKED = "Budget by the probe, against even", "Budget by asking, against even"
ITEMS = {  # by the number of the claim
    1: (OWN, AWAY, CHEAPEST),
    2: (SAID, P_YES),
    3: (VOTE,),
    4: (PASSK_PROBE, RC_PROBE, PASSK_ASKED, RC_ASKED, BUDGET_PROBE, BUDGET_ASKED),
}
SKILL_COLUMNS = ["model", "parameters", "data set", "prompts", "method", "kind", "skill", "low", "high", "evidence"]
KINDS = (
    VERBALIZED,
    P_TRUE,
    CONSISTENCY,
    "Own probe",
    "Probe of the same domain",
    "Probe of another domain",
)
COLUMNS = ["item", "model", "data set", "prompts", "method", "against", "at", "questions"]


class Pair(NamedTuple):
    """Two things that a claim compares, with the terms of the first less those of the second, (n_questions,)."""

    item: str
    method: str
    against: str
    at: str
    terms: Floats


def judge(interval: Interval) -> str:
    """Say what the interval of a difference says of the claim that it is below zero.

    Examples
    --------
    >>> [judge(Interval(0.0, *limits)) for limits in ((-2, -1), (1, 2), (-1, 1), (float("nan"), float("nan")))]
    ['holds', 'the other way', 'cannot be told', 'cannot be told']
    """
    return HOLDS if interval.high < 0 else OTHER if interval.low > 0 else OPEN


def comparisons(
    one: Evaluation,
    answers: Answers,
    rng: np.random.Generator,
    *,
    k_c: int = 10,
    budgets: Sequence[int] = (1, 2, 4),
) -> pd.DataFrame:
    """Make every comparison that the claims ask for on one measured run: one row each, no row for what is missing.

    Parameters
    ----------
    one, answers
        A run, and what its samples answered.
    rng
        For the bootstrap over questions, or over the groups in which they come.
    k_c
        Votes of response consistency. They are blocks of the run's samples, each scored on those outside it.
    budgets
        Samples a question on average. An allocation is made once, and the questions drawn anew with it.

    Returns
    -------
    DataFrame
        ``difference`` with ``low`` and ``high`` is in corrected capability Brier; for pass@k in squared error; for
        budgets in the share of questions left unsolved. Below 0, the claim holds. Confidences of claim 4 depend on no
        sample that judges them: the probes are trained on other questions, and asking draws none. The constant is
        the mean of pass@k over the other questions.
    """
    pairs = [*_briers(one, answers, k_c), *_pass_at_k(one), *_budgets(one, budgets)]
    pairs = [pair for pair in pairs if not np.isnan(pair.terms).all()]
    if not pairs:
        return pd.DataFrame()
    drawn = bootstrap_means(np.column_stack([pair.terms for pair in pairs]), rng=rng, clusters=one.groups)
    rows = []
    for pair, interval in zip(pairs, drawn, strict=True):
        about = (pair.item, one.model.title, one.dataset.title, one.prompt_style, *pair[1:4])
        rows.append((*about, int((~np.isnan(pair.terms)).sum()), *interval, judge(interval)))
    table = pd.DataFrame(rows, columns=[*COLUMNS, "difference", "low", "high", "verdict"])
    return _hardest(table.assign(evidence=one.evidence))


def _briers(one: Evaluation, answers: Answers, k_c: int) -> Iterator[Pair]:
    terms = scored(one, answers, k_c)
    return _orders(list(map(str, terms)), one.dataset, lambda a, b: (terms[a] - terms[b]).to_numpy(np.float64))


def scored(one: Evaluation, answers: Answers, k_c: int = 10) -> pd.DataFrame:
    """Return ``tables.brier_terms`` with response consistency by blocks of the run's samples, where they suffice."""
    terms = brier_terms(one).drop(columns=CONSISTENCY, errors="ignore")
    votes = vote_terms(answers, k_c).groupby("row")["disjoint"].mean().reindex(range(len(terms)))
    return terms if votes.isna().all() else terms.assign(**{CONSISTENCY: votes.to_numpy()})


def _orders(methods: Sequence[str], dataset: Dataset, less: Callable[[str, str], Floats]) -> Iterator[Pair]:
    """List what claims 1 to 3 compare among some methods on a data set, by a function of two of them."""
    probe = nearest_probe(methods, dataset.name)
    for name in methods:
        kind = shift(name, dataset)
        item = {VERBALIZED: SAID, P_TRUE: P_YES}.get(name) or (OWN if kind == "id" else AWAY if kind else None)
        if item:
            yield Pair(item, name, UNIFORM, "", less(name, UNIFORM))
        if probe and name in (VERBALIZED, P_TRUE, CONSISTENCY):
            yield Pair(CHEAPEST, probe, name, "", less(probe, name))
        if probe and name == CONSISTENCY:
            yield Pair(VOTE, probe, name, "", less(probe, name))


def _hardest(table: pd.DataFrame) -> pd.DataFrame:
    """Leave of the rivals of the cheapest method the one that scores best, with the verdict on all of them.

    It holds if it does against each, and goes the other way if it does so against any.
    """
    keys = ["model", "data set", "evidence"]
    rows = table[table["item"] == CHEAPEST].copy()
    if rows.empty:
        return table
    lost = rows["verdict"].eq(OTHER).groupby([rows[key] for key in keys]).transform("any")
    won = rows["verdict"].eq(HOLDS).groupby([rows[key] for key in keys]).transform("all")
    rows["verdict"] = np.select([lost, won], [OTHER, HOLDS], OPEN)
    hardest = rows.loc[rows.groupby(keys, sort=False)["difference"].idxmax()]
    return pd.concat([table[table["item"] != CHEAPEST], hardest], ignore_index=True)


def _applied(one: Evaluation) -> dict[str, Floats]:
    """Return the confidences of claim 4: asked for, or of the nearest probe; votes need the answers themselves."""
    known = {name: found.values for name, found in one.confidences.items() if not np.isnan(found.values).all()}
    probe = nearest_probe(known, one.dataset.name)
    return {name: values for name, values in known.items() if name in (VERBALIZED, P_TRUE, probe)}


def _pass_at_k(one: Evaluation) -> Iterator[Pair]:
    """Compare squared errors of pass@k, at k = 10 and at 100, or at as many samples as the middle question has."""
    counts = one.counts
    most = min(100, int(np.median(counts.total)))
    ks = sorted({min(10, most), most} - {0, 1})
    for k in ks:
        actual = _known_pass(counts.correct, counts.total, k)
        there = ~np.isnan(actual)
        others = (np.nansum(actual) - actual) / max(1, there.sum() - 1) if there.sum() > 1 else np.nan
        for name, s in _applied(one).items():
            asked = not name.startswith("Probe (")
            said = np.full(len(s), np.nan)
            said[~np.isnan(s)] = simulate_pass_at_k(s[~np.isnan(s)], [k])[:, 0]
            constant = (said - actual) ** 2 - (others - actual) ** 2
            yield Pair(PASSK_ASKED if asked else PASSK_PROBE, name, CONSTANT, f"k = {k}", constant)
            response = _against_one_response(said, counts.correct, counts.total, k)
            yield Pair(RC_ASKED if asked else RC_PROBE, name, ORACLE_RC, f"k = {k}", response)


def _known_pass(correct: Ints, total: Ints, k: int) -> Floats:
    return pass_at_k(correct, total, [k])[:, 0]


def _against_one_response(said: Floats, correct: Ints, total: Ints, k: int) -> Floats:
    """Compare a prediction of pass@k with the correctness of one response, both judged by the other samples.

    Exact: the mean over which sample is the response.
    """
    mu = np.divide(correct, total, out=np.full(len(total), np.nan), where=total > 1)
    rest = np.maximum(total - 1, 0)
    after_right = _known_pass(np.maximum(correct - 1, 0), rest, k)
    after_wrong = _known_pass(np.minimum(correct, rest), rest, k)
    right = (said - after_right) ** 2 - (1 - after_right) ** 2
    wrong = (said - after_wrong) ** 2 - after_wrong**2
    return mu * right + (1 - mu) * wrong


def _budgets(one: Evaluation, budgets: Sequence[int]) -> Iterator[Pair]:
    """Compare the questions left unsolved; as in ``tables.budget_table``, without a confidence one counts as 0.5."""
    there = one.counts.total > 0
    c, n = one.counts.correct[there], one.counts.total[there]
    for each in budgets if there.any() else ():
        even = success_terms(np.minimum(each, n), c, n)
        for name in _applied(one):
            s = with_fallback(one.confidences[name]).values[there]
            gained = np.full(len(there), np.nan)
            gained[there] = success_terms(allocate(s, each * len(n), max_per_question=n), c, n) - even
            item = BUDGET_PROBE if name.startswith("Probe (") else BUDGET_ASKED
            yield Pair(item, name, EVEN, f"B = {each}", -gained)


def reported_comparisons() -> pd.DataFrame:
    """Make the same comparisons on the paper's printed numbers, and on budgets read off a later figure of theirs.

    The form is that of ``comparisons``, without intervals. pass@k and budgets are there for MATH-500 and AIME25, and
    pass@k for the probe against Oracle RC.
    """
    rows = []
    for model in load_reported("mean_accuracy")["model"].unique():
        table = reported_cost_table(model)
        for name, part in table.groupby("dataset", sort=False):
            score = part.set_index("method")["brier"]
            pairs = _orders(list(score.index), load_dataset(str(name)), partial(_less, score))
            rows += [_printed(pair, model, str(name)) for pair in pairs]
    tables = [(load_reported(f"passk_{name}"), ORACLE_RC, "k", 1) for name in ("math500", "aime25")]
    tables.append((load_reported("budget", source="reference code"), EVEN, "B", -1))
    for table, base, letter, sign in tables:
        value = table.set_index(["model", "dataset", "k", "method"])["value"]
        for model, name, k, method in value.index:
            probe = method == nearest_probe([method], name)
            if probe or method == VERBALIZED:
                item = {"k": RC_PROBE, "B": BUDGET_PROBE if probe else BUDGET_ASKED}[letter]
                less = sign * (value[model, name, k, method] - value[model, name, k, base])
                pair = Pair(item, method, base, f"{letter} = {k}", np.array([less]))
                rows.append(_printed(pair, model, name))
    columns = [*COLUMNS, "difference", "low", "high", "verdict"]
    return _hardest(pd.DataFrame(rows, columns=columns).assign(evidence="reported"))


def _less(score: "pd.Series[float]", method: str, other: str) -> Floats:
    return np.array([score[method] - score[other]])


def _printed(pair: Pair, model: str, dataset: str) -> tuple[object, ...]:
    difference = round(float(pair.terms[0]), 4)
    interval = Interval(difference, difference, difference)  # for the verdict alone
    about = (pair.item, load_model(model).title, load_dataset(dataset).title, load_model(model).prompt_style)
    return (*about, *pair[1:4], pd.NA, difference, np.nan, np.nan, judge(interval))


def tally(table: pd.DataFrame, *, by: Sequence[str] = ("model", "prompts")) -> pd.DataFrame:
    """Count the verdicts of comparisons: one row an item, in the order of the claims, and each of ``by``."""
    if table.empty:
        return table
    order = {item: (claim, item) for claim, items in ITEMS.items() for item in items}
    places = {item: place for place, item in enumerate(order)}
    counts = [table["verdict"].eq(verdict).rename(verdict).astype(int) for verdict in VERDICTS]
    keys = ["item", *by, "evidence"]
    found = pd.concat([table[keys], *counts], axis="columns").groupby(keys, sort=False).sum()
    found = found.assign(of=found.sum(axis="columns")).reset_index()
    found.insert(0, "claim", [order[item][0] for item in found["item"]])
    found = found.sort_values("item", key=lambda items: items.map(places), kind="stable").reset_index(drop=True)
    return found[[*found.columns.drop("evidence"), "evidence"]]


def of_claim(table: pd.DataFrame, claim: int) -> pd.DataFrame:
    """Return the comparisons, or the tally, of one claim."""
    return table[table["item"].isin(ITEMS[claim])] if len(table) else table


def counted(table: pd.DataFrame, *items: str) -> tuple[int, int, int, int]:
    """Count the measured comparisons of some items: those that hold, go the other way, cannot be told, and all."""
    rows = table[table["item"].isin(items) & (table["evidence"] == "measured")] if len(table) else table
    found = [int((rows["verdict"] == verdict).sum()) if len(rows) else 0 for verdict in VERDICTS]
    return found[0], found[1], found[2], len(rows)


def relative_costs(one: Evaluation, answers: Answers, *, k_c: int = 10) -> pd.DataFrame:
    """List the tokens of a mean response and, relative to it, of each way to ask: one row a run, NaN where missing."""
    tokens = {
        name: float(one.confidences[name].tokens.mean()) for name in (VERBALIZED, P_TRUE) if name in one.confidences
    }
    about = {"model": one.model.title, "data set": one.dataset.title, "prompts": one.prompt_style}
    costs = {name: tokens.get(name, np.nan) / answers.tokens for name in (VERBALIZED, P_TRUE)}
    votes = {CONSISTENCY: float(k_c) if CONSISTENCY in scored(one, answers, k_c) else np.nan}
    return pd.DataFrame([about | {"response": answers.tokens} | costs | votes | {"evidence": one.evidence}])


def skills(one: Evaluation, answers: Answers, rng: np.random.Generator, *, k_c: int = 10) -> pd.DataFrame:
    """Return each method's skill, 1 - Brier / Brier of Uniform random: one row a method (1 is perfect, 0 no better).

    Both scores are corrected and on the questions that have both. The interval is that of the ratio, linearised.
    ``parameters`` are those of the model.
    """
    terms = scored(one, answers, k_c)
    rows, columns = [], []
    for method in terms.columns.difference([UNIFORM, "Oracle RC", "Oracle CC"], sort=False):
        brier, uniform = terms[method].to_numpy(np.float64), terms[UNIFORM].to_numpy(np.float64)
        both = ~np.isnan(brier)
        if both.any() and uniform[both].mean() > 0:
            ratio = brier[both].mean() / uniform[both].mean()
            columns.append(1 - ratio - (brier - ratio * uniform) / uniform[both].mean())
            rows.append((str(method), _kind(str(method), one.dataset)))
    if not rows:
        return pd.DataFrame()
    drawn = bootstrap_means(np.column_stack(columns), rng=rng, clusters=one.groups)
    about = one.model.title, one.model.parameters, one.dataset.title, one.prompt_style
    found = [(*about, *row, *interval, one.evidence) for row, interval in zip(rows, drawn, strict=True)]
    return pd.DataFrame(found, columns=SKILL_COLUMNS)


def reported_skills() -> pd.DataFrame:
    """Return the same of the paper's models, from its printed plug-in scores, without intervals."""
    rows = []
    for name in load_reported("mean_accuracy")["model"].unique():
        model, table = load_model(name), reported_cost_table(name)
        uniform = table[table["method"] == UNIFORM].set_index("dataset")["brier"]
        for _, row in table[table["method"] != UNIFORM].iterrows():
            dataset = load_dataset(row["dataset"])
            skill = 1 - row["brier"] / uniform[dataset.name]
            about = model.title, model.parameters, dataset.title, model.prompt_style
            rows.append((*about, row["method"], _kind(row["method"], dataset), skill, np.nan, np.nan, "reported"))
    return pd.DataFrame(rows, columns=SKILL_COLUMNS)


def mean_skills(table: pd.DataFrame) -> pd.DataFrame:
    """Average skills over the data sets of each model and form of prompt: a column a kind of method.

    ``parameters`` are in billions. Models have other data sets, so that only one row's cells compare.
    """
    if table.empty:
        return table
    keys = ["model", "parameters", "prompts", "evidence"]
    wide = table.pivot_table("skill", keys, "kind", sort=False).rename_axis(columns=None).reset_index()
    sets = table.groupby(keys)["data set"].nunique().rename("data sets").reset_index()
    wide = wide.merge(sets).sort_values("parameters").assign(parameters=lambda rows: rows["parameters"] / 1e9)
    kinds = [kind for kind in KINDS if kind in wide]
    return wide[["model", "parameters", "prompts", "data sets", *kinds, "evidence"]]


def _kind(method: str, dataset: Dataset) -> str:
    return {"id": KINDS[3], "ood": KINDS[4], "out": KINDS[5]}.get(shift(method, dataset), method)


def gather(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Put tables under each other, leaving out the empty ones."""
    return stack([table for table in tables if len(table)])
