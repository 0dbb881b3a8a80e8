"""Spend a budget of samples on questions, evenly or according to a confidence (section 5.2 and
appendix D.2 of the paper).

All functions take or return long tables: ``results.ways_to_use`` lists the ways to use a
confidence, and :func:`spend` divides a budget by each. ``per_question`` is the mean number of
samples per question, and no question gets more samples than were scored."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from capcal_lib.applications import allocate, honest_oracle, success_terms
from capcal_lib.probe_names import NEAREST_PROBE, POSTERIOR
from capcal_lib.results.estimated import VOTED
from capcal_lib.results.judged import JUDGED, WINNABLE
from capcal_lib.results.terms import COUNTS, HONEST_ORACLE
from capcal_lib.results.uses import compare_use, ways_to_use

EVEN = "Even spending"
BUDGETS = (1, 2, 4, 8)
CURVE_BUDGETS = (*BUDGETS, 16, 32, 64)  # those of a curve
HALVES = 10  # random halves that an honest oracle knows in turn


def spending_rules(
    results: pd.DataFrame, concentrations: "Mapping[str, float] | pd.Series[float]"
) -> pd.DataFrame:
    """List the rules to spend by: the long table of ``ways_to_use`` without votes, which cost more
    than a budget spends, and with even spending, for which one confidence stands for all.
    """
    ways = ways_to_use(results, concentrations)
    even = results.loc[results["total"] > 1, COUNTS]
    even = even.assign(way=EVEN, member=0, confidence=0.5, concentration=np.inf)
    return pd.concat([even, ways[ways["kind"] != VOTED]])


def spend(rules: pd.DataFrame, per_question: int) -> pd.DataFrame:
    """Divide a budget over the questions of each data set by each rule: add the samples ``spent``
    and the chance that the question is ``solved``.
    """
    tables = []
    for _, rows in rules.groupby(["dataset", "way", "member"], sort=False):
        total = rows["total"].to_numpy(int)
        spent = allocate(
            rows["confidence"].to_numpy(),
            per_question * len(rows),
            max_per_question=total,
            concentration=rows["concentration"].to_numpy(),
        )
        solved = success_terms(spent, rows["correct"].to_numpy(int), total)
        tables.append(rows.assign(spent=spent, solved=solved))
    return pd.concat(tables)


def solved_by_budget(rules: pd.DataFrame) -> pd.DataFrame:
    """Return the share of questions solved, in [0, 1], one row per ``dataset``, budget ``B`` and
    ``rule``, at all budgets that the samples of each data set allow.
    """
    least = rules.groupby(["dataset", "way"])["total"].transform("min")
    tables = {}
    for per_question in CURVE_BUDGETS:
        if (per_question < least).any():
            tables[per_question] = spend(rules[per_question < least], per_question)
    by = ["dataset", "B", "way"]
    spent = pd.concat(tables, names=["B"])
    shares = spent.groupby(by, sort=False)["solved"].mean().rename("estimate").reset_index()
    return shares.rename(columns={"way": "rule"})


def oracle_rules(results: pd.DataFrame, *, seed: int, in_sample: bool = False) -> pd.DataFrame:
    """Return oracles as rules to spend by.

    The honest oracle knows a random half of each question's samples and is scored on the other
    half, for ten halves in turn. ``in_sample`` adds the paper's oracles. They know the accuracy, or
    whether one answer is right, from the very samples that score them, so no confidence can reach
    their shares.
    """
    tables = []
    for _, subset in results.groupby(level="dataset", sort=False):
        rng = np.random.default_rng(seed)
        for member in range(HALVES):
            columns = ["confidence", "concentration", *COUNTS]
            halves = honest_oracle(*subset[COUNTS].to_numpy().T, rng=rng)
            half = pd.DataFrame(dict(zip(columns, halves, strict=True)), subset.index)
            tables.append(half.assign(way=HONEST_ORACLE, member=member))
        if in_sample:
            mu = subset["correct"] / subset["total"]
            right = (rng.random(len(mu)) < mu).astype(np.float64)
            for way, known in (("Oracle CC, in sample", mu), ("Oracle RC, in sample", right)):
                rule = subset[COUNTS].assign(confidence=known, concentration=np.inf)
                tables.append(rule.assign(way=way, member=0))
    return pd.concat(tables)


def compare_spending(
    results: pd.DataFrame, concentrations: "Mapping[str, float] | pd.Series[float]"
) -> pd.DataFrame:
    """Compare each rule with even spending at the same budget, on each data set.

    All cases of one budget are judged together (:func:`~capcal_lib.results.compare_use`). A gain is
    the number of questions solved beyond even spending, in a hundred, so positive is better.
    Questions share the budget, so a question's gain includes what it takes from the others
    (``applications.budget_gains``).

    Returns one row per case: ``dataset``, ``B``, ``rule``, ``estimate`` with its own interval
    ``low`` to ``high``, ``p``, ``p (Holm)`` and the ``verdict``, a category. The nearest probe is
    used as a posterior. There are no rows without a confidence.
    """
    tables = {
        per_question: compare_use(results, "Budget", concentrations, per_question=per_question)
        for per_question in BUDGETS
    }
    table = pd.concat(tables, names=["B", None]).reset_index("B")
    table[["estimate", "low", "high"]] *= 100
    table["rule"] = table["method"].replace(NEAREST_PROBE, POSTERIOR)
    return table.reset_index(drop=True)[["dataset", "B", "rule", *JUDGED, WINNABLE]]
