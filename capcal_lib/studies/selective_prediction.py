"""Answer only if a confidence is high, on every data set of a model: measure the risk, compare it
with answering at random, and check whether a promised risk is kept."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from capcal_lib import metrics
from capcal_lib.applications import risk_area_bounds, risk_area_terms, risk_coverage, split_counts
from capcal_lib.probe_names import NEAREST_PROBE
from capcal_lib.results.estimated import estimates
from capcal_lib.results.results import subjects
from capcal_lib.results.scores import fill_unstated, keep_nearest_probe, nearest_probe_of
from capcal_lib.results.terms import HONEST_ORACLE, NUMBERS, mark_best

AT_RANDOM = "At random"
TIMES = 100  # that a threshold is set
MEMBER = ["method", "member"]


def ranking_confidences(results: pd.DataFrame) -> pd.DataFrame:
    """Keep the confidences that rank the questions of a data set.

    The probe nearest to each data set stands for all probes, under the name ``Probe``. If the model
    was asked but stated nothing, the confidence is one half. Questions with fewer than two scored
    samples are left out.
    """
    ranked = []
    for dataset, subset in results[results["total"] > 1].groupby(level="dataset", sort=False):
        nearest = keep_nearest_probe(subset, str(dataset))
        ranked.append(fill_unstated(nearest))
    return pd.concat(ranked)


def area_terms(confidences: pd.DataFrame) -> pd.DataFrame:
    """Return the term of each question in the area under the risk-coverage curve of its data set
    (``applications.risk_area_terms``), for each of the `ranking_confidences` and ``At random``.

    Lower is better. All methods of a data set are judged on the same questions, so that each mean
    is an area of the same questions. A data set without two such questions is left out. For the
    paper's recipe, terms are means over its five probes.
    """
    tables = []
    for _, subset in confidences.groupby(level="dataset", sort=False):
        by_member = estimates(subset).groupby(MEMBER, observed=True)[NUMBERS]
        members = {case: judged for case, judged in by_member if len(judged) > 1}
        common = subset.index
        for judged in members.values():
            common = common.intersection(judged.index, sort=False)
        if len(common) < 2:
            continue
        terms = {
            case: pd.Series(risk_area_terms(*judged.loc[common].to_numpy().T), common)
            for case, judged in members.items()
        }
        table = pd.DataFrame({AT_RANDOM: 1 - (subset["correct"] / subset["total"])[common]})
        if terms:
            of_methods = pd.concat(terms, axis="columns").T.groupby(level=0, sort=False).mean().T
            table = table.join(of_methods)
        tables.append(table)
    return pd.concat(tables) if tables else pd.DataFrame(index=confidences.index[:0])


def score_areas(confidences: pd.DataFrame) -> pd.DataFrame:
    """Score each of the `ranking_confidences` on each data set by the area under the risk-coverage
    curve, on the questions that all have (:func:`area_terms`).

    Returns a table for ``tables.show_scores`` with one row per method and data set: the area, named
    ``brier``; its interval ``low`` to ``high``; ``may_be_best``, for which answering at random does
    not compete; the number of ``questions``; and ``varies``, whether any question of the data set
    was solved. The interval lets an unseen question count for as much as any can
    (``applications.risk_area_bounds``), because it may be the most confident one, right or wrong.
    """
    tables = []
    for dataset, subset in area_terms(confidences).groupby(level="dataset", sort=False):
        terms = subset.dropna(axis="columns", how="all")
        groups = subjects(terms)
        least, most = risk_area_bounds(len(terms))
        areas = metrics.compare(terms, clusters=groups, bounds=(least, 1 + most))
        at_random = metrics.compare(terms[[AT_RANDOM]], clusters=groups, bounds=(0, 1))
        areas.update(at_random[["low", "high"]])
        areas[["low", "high"]] = areas[["low", "high"]].clip(0, 1)
        areas = areas.rename_axis("method")
        areas["may_be_best"] = mark_best(terms.drop(columns=AT_RANDOM), groups)
        areas = areas.rename(columns={"estimate": "brier"}).reset_index()
        varies = bool(confidences.loc[[str(dataset)], "correct"].any())
        tables.append(areas.assign(dataset=str(dataset), questions=len(terms), varies=varies))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def risk_curves(results: pd.DataFrame, dataset: str, rng: np.random.Generator) -> pd.DataFrame:
    """Return the risk-coverage curves of a data set (``applications.risk_coverage``): ``method``,
    ``coverage`` and ``risk``.

    Each confidence has a curve, and so has the honest oracle. The oracle ranks questions by one
    half of their samples, which ``rng`` draws, and is judged by the other half. For the paper's
    recipe the curve is the mean over its five probes.
    """
    ranked = ranking_confidences(results.loc[[dataset]])
    curves = {}
    for case, judged in estimates(ranked).groupby(MEMBER, observed=True)[NUMBERS]:
        curves[case] = risk_coverage(*judged.to_numpy().T)
    (first, drawn), rest = split_counts(ranked["correct"], ranked["total"], rng=rng)
    curves[HONEST_ORACLE, 0] = risk_coverage(first / drawn, *rest)
    table = pd.concat(curves, names=[*MEMBER, None]).reset_index("method")
    nearest = nearest_probe_of(results.loc[[dataset]], dataset)
    table["method"] = table["method"].replace(NEAREST_PROBE, nearest)
    return table.groupby(["method", "coverage"], sort=False)["risk"].mean().reset_index()


def use_thresholds(
    confidences: pd.DataFrame,
    threshold: Callable[[ArrayLike, ArrayLike, ArrayLike, float], float],
    *,
    risk: float,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Set a threshold on a random half of the questions and use it on the other half, a hundred
    times.

    ``threshold`` takes confidences, correct and scored samples, and the ``risk``. Questions with a
    higher confidence are answered. ``confidences`` is a table from :func:`ranking_confidences`, to
    which a random confidence is added. Returns one row per ``dataset`` and ``method``: the mean
    shares of all questions that are ``answered``, and that are answered ``wrong``.
    """
    rows = []
    for dataset, subset in confidences.groupby(level="dataset", sort=False):
        ranked = subset.dropna(axis="columns", how="all")
        ranked = ranked.assign(**{AT_RANDOM: rng.random(len(ranked))})
        for (method, _), judged in estimates(ranked).groupby(MEMBER, observed=True)[NUMBERS]:
            scored = judged.to_numpy().T
            for _ in range(TIMES):
                seen = rng.permutation(len(scored[0])) < len(scored[0]) // 2
                confidence, correct, total = scored[:, seen]
                limit = threshold(confidence, correct, total, risk)
                confidence, correct, total = scored[:, ~seen]
                answered = confidence > limit
                wrong = answered * (1 - correct / total)
                rows.append([dataset, method, answered.mean(), wrong.mean()])
    table = pd.DataFrame(rows, columns=["dataset", "method", "answered", "wrong"])
    return table.groupby(["dataset", "method"], sort=False).mean().reset_index()
