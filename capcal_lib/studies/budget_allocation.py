"""Spend a budget of samples on questions, evenly or according to a confidence.

A *rule* divides a budget over questions. *Even spending* needs no confidence; every other rule uses
the confidence of a method. The nearest probe has two rules: *plug-in* uses its confidence as it is,
and *posterior* uses it as the mean of a distribution. ``per_question`` is the mean number of
samples per question, and no question gets more samples than were scored. ``concentrations`` maps
the name of a probe to the concentration of its posterior, from ``probes.describe_probes``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import (
    allocate,
    budget_gains,
    deep_samples,
    honest_oracle,
    success_rate,
    success_terms,
)
from capcal_lib.metrics.validation import Ints
from capcal_lib.probe_names import NEAREST_PROBE, PLUG_IN, POSTERIOR
from capcal_lib.results.estimated import columns_of
from capcal_lib.results.judged import JUDGED, WINNABLE, judge_cases
from capcal_lib.results.results import subjects
from capcal_lib.results.scores import (
    MISSING_AS,
    deepest_questions,
    nearest_probe_of,
    questions_predicted,
    stated_methods,
)
from capcal_lib.results.terms import HONEST_ORACLE
from capcal_lib.results.uses import compare_use

EVEN = "Even spending"
BUDGETS = (1, 2, 4, 8)
CURVE_BUDGETS = (*BUDGETS, 16, 32, 64)  # those of a curve
HALVES = 10  # random halves that an honest oracle knows in turn
CASE = ["dataset", "B", "rule"]


def spending_rules(
    subset: pd.DataFrame, concentrations: Mapping[str, float]
) -> "dict[str, list[tuple[pd.Series[float], float | None]]]":
    """Return the confidences that each rule uses on one data set.

    A rule has a list of members: five for a probe from the paper's recipe, else one. A member is a
    confidence for each question and the concentration of the posterior around it, which is None if
    the confidence is used as it is. A missing confidence is 0.5.
    """
    rules: dict[str, list[tuple[pd.Series[float], float | None]]] = {}
    for name in stated_methods(subset):
        rules[name] = [(subset[name].fillna(MISSING_AS), None)]
    probe = nearest_probe_of(subset, str(subset.index[0][0]))
    if probe is not None:
        members = [subset[column] for column in columns_of(subset, probe)]
        rules[PLUG_IN] = [(s, None) for s in members]
        rules[POSTERIOR] = [(s, concentrations[probe]) for s in members]
    return rules


def allocate_by_rules(
    subset: pd.DataFrame, per_question: int, concentrations: Mapping[str, float]
) -> pd.DataFrame:
    """Divide a budget over the questions of one data set, according to each rule.

    Returns the numbers of samples, with one row per question and one column per rule. If a rule has
    several members, its column is from the first.
    """
    plans = _plans_of_members(subset, per_question, concentrations)
    return pd.DataFrame({rule: members[0] for rule, members in plans.items()}, subset.index)


def _plans_of_members(
    subset: pd.DataFrame, per_question: int, concentrations: Mapping[str, float]
) -> dict[str, list[Ints]]:
    """Divide a budget according to each member of each rule."""
    most = subset["total"]
    half = pd.Series(0.5, subset.index)  # one confidence for all is even spending
    rules = {EVEN: [(half, None)]} | spending_rules(subset, concentrations)
    return {
        rule: [
            allocate(s, per_question * len(s), max_per_question=most, concentration=nu)
            for s, nu in members
        ]
        for rule, members in rules.items()
    }


def solved_by_rules(
    subset: pd.DataFrame, budgets: Iterable[int], concentrations: Mapping[str, float]
) -> pd.DataFrame:
    """Return the share of questions solved, in [0, 1], with one row per budget ``B`` and ``rule``.

    ``estimate`` is the share, and ``low`` to ``high`` is its 95 % interval for other questions like
    these. The interval is wide because questions differ. To compare two rules, use
    :func:`compare_spending`.
    """
    rows = []
    for per_question in budgets:
        for rule, plans in _plans_of_members(subset, per_question, concentrations).items():
            counts = subset["correct"], subset["total"]
            solved = np.mean([success_terms(plan, *counts) for plan in plans], axis=0)
            limits = metrics.mean_interval(solved, clusters=subjects(subset), bounds=(0, 1))
            rows.append([per_question, rule, *limits])
    return pd.DataFrame(rows, columns=["B", "rule", "estimate", "low", "high"])


def solved_by_oracles(
    subset: pd.DataFrame,
    budgets: Iterable[int],
    *,
    rng: np.random.Generator,
    in_sample: bool = False,
) -> pd.DataFrame:
    """Return the share of questions solved by oracles, as rows of :func:`solved_by_rules` without
    intervals.

    The honest oracle knows a random half of each question's samples and is scored on the other
    half. Its share is the mean over ten random halves, for budgets that are smaller than a half.
    ``in_sample`` adds the paper's oracles. They know the accuracy, or whether one answer is right,
    from the very samples that score them, so no confidence can reach their shares.
    """
    correct, total = subset["correct"], subset["total"]
    halves = [honest_oracle(correct, total, rng=rng) for _ in range(HALVES)]
    *_, left = halves[0]
    mu = correct / total
    oracles = {}
    if in_sample:
        right = (rng.random(len(mu)) < mu).astype(np.float64)
        oracles = {"Oracle CC, in sample": mu, "Oracle RC, in sample": right}
    rows: list[list[Any]] = []
    for per_question in budgets:
        if per_question < left.min():
            shares = [_share_solved(*half, per_question) for half in halves]
            rows.append([per_question, HONEST_ORACLE, np.mean(shares)])
        for name, s in oracles.items():
            rows.append([per_question, name, _share_solved(s, None, correct, total, per_question)])
    return pd.DataFrame(rows, columns=["B", "rule", "estimate"])


def solved_by_set(
    results: pd.DataFrame,
    names: Sequence[str],
    concentrations: Mapping[str, float],
    *,
    seed: int,
    in_sample: bool = False,
) -> pd.DataFrame:
    """Return the share of questions solved by rules and by oracles on each data set, at all budgets
    that its samples allow.

    Only the questions with most samples are used, if the nearest probe has predicted them. Rows are
    as in :func:`solved_by_rules` and :func:`solved_by_oracles`, with a ``dataset`` and its number
    of ``questions``. Each data set has its own random generator, with this seed.
    """
    tables = []
    for name in names:
        subset = deepest_questions(questions_predicted(results.loc[[name]], name))
        budgets = [budget for budget in CURVE_BUDGETS if budget < subset["total"].min()]
        rng = np.random.default_rng(seed)
        by_rules = solved_by_rules(subset, budgets, concentrations)
        oracles = solved_by_oracles(subset, budgets, rng=rng, in_sample=in_sample)
        solved = pd.concat([by_rules, oracles])
        tables.append(solved.assign(dataset=name, questions=len(subset)))
    return pd.concat(tables, ignore_index=True)


def _share_solved(
    confidence: Any, concentration: Any, correct: Any, total: Any, per_question: int
) -> float:
    """Return the share of questions solved with a budget that a confidence divides."""
    budget = per_question * len(total)
    spent = allocate(confidence, budget, max_per_question=total, concentration=concentration)
    return success_rate(spent, correct, total)


def compare_spending(
    results: pd.DataFrame, concentrations: "Mapping[str, float] | pd.Series[float]"
) -> pd.DataFrame:
    """Compare each rule with even spending at the same budget, on each data set.

    All cases of one budget are judged together (:func:`~capcal_lib.results.uses.compare_use`). A
    gain is the number of questions solved beyond even spending, in a hundred, so positive is
    better. Questions share the budget, so a question's gain includes what it takes from the others
    (``applications.budget_gains``).

    Returns one row per case: ``dataset``, ``B``, ``rule``, ``estimate`` with its own interval
    ``low`` to ``high``, ``p``, ``p (Holm)`` and the ``verdict``, a category. The nearest probe has
    its posterior rule only. There are no rows without a confidence.
    """
    tables = {}
    for per_question in BUDGETS:
        tables[per_question] = compare_use(
            results, "Budget", concentrations, per_question=per_question
        )
    table = pd.concat(tables, names=["B", None]).reset_index("B")
    table[["estimate", "low", "high"]] *= 100
    table["rule"] = table["method"].replace(NEAREST_PROBE, POSTERIOR)
    return table.reset_index(drop=True)[[*CASE, *JUDGED, WINNABLE]]


def compare_posterior(results: pd.DataFrame, concentrations: Mapping[str, float]) -> pd.DataFrame:
    """Compare the posterior of the nearest probe with its plug-in at the same budget, on each data
    set and at each budget, all together by Holm's method.

    Rows are as in :func:`compare_spending`, without ``rule``. Questions that the probe has not
    predicted are left out.
    """
    scored = results[results["total"] > 1]
    gains = {}
    for name in scored.index.unique("dataset"):
        of_set = questions_predicted(scored.loc[[name]], name)
        depth = deep_samples(of_set["total"])
        for per_question in BUDGETS:
            subset = of_set[of_set["total"] >= 2 * per_question]
            if 2 * per_question <= depth and subset["correct"].any():
                gained = _gains_by_rules(subset, per_question, concentrations)
                if PLUG_IN in gained:
                    gains[name, per_question] = gained[POSTERIOR] - gained[PLUG_IN]
    judged = judge_cases(gains, ["dataset", "B"])
    judged[["estimate", "low", "high"]] *= 100
    return judged


def _gains_by_rules(
    subset: pd.DataFrame, per_question: int, concentrations: Mapping[str, float]
) -> pd.DataFrame:
    """Return the gain of each rule over even spending on each question. Even spending gains 0."""
    counts = subset["correct"], subset["total"]
    gained = {EVEN: pd.Series(0.0, subset.index)}
    for rule, members in spending_rules(subset, concentrations).items():
        gains = [budget_gains(s, *counts, per_question, concentration=nu) for s, nu in members]
        gained[rule] = pd.concat(gains, axis="columns").mean(axis="columns")
    return pd.DataFrame(gained)
