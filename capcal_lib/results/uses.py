"""What does a confidence gain in one use, compared with the best rule without one?

This module answers the question for each method on each data set of a model; the pages on budgets,
on uses and on abstaining take the answer from here. A family is one use of one model: all methods
on all its data sets are judged together by Holm's method. A budget of another size is another
use."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import (
    abstaining_gains,
    budget_gains,
    deep_samples,
    draw_accuracies,
    evaluation_gains,
    label_gains,
    others_mean,
    pass_at_k,
    pass_at_k_gains,
    risk_area_bounds,
)
from capcal_lib.metrics.comparisons import APART
from capcal_lib.probe_names import NEAREST_PROBE, training_sets
from capcal_lib.results.estimated import estimates, mean_over_members, methods
from capcal_lib.results.judged import judge_cases
from capcal_lib.results.results import CONSISTENCY
from capcal_lib.results.scores import fill_unstated, nearest_probe_of, questions_differ
from capcal_lib.runs import Run, read_samples

USES = ("pass@k", "Budget", "Abstaining", "Labels saved", "Evaluation")
CHEAPER_THAN_VOTES = ("Budget", "Evaluation")  # what they spend is less than ten votes cost
ATTEMPTS = 16
PER_QUESTION = 2  # samples a question of a budget
WORLDS = 5  # sets of expected accuracies that a perfect confidence knows in turn


def compare_use(
    results: pd.DataFrame,
    use: str,
    concentrations: "Mapping[str, float] | pd.Series[float]",
    *,
    runs: "pd.Series[Any] | None" = None,
    per_question: int = PER_QUESTION,
) -> pd.DataFrame:
    """Judge what each confidence of a model gains in one of ``USES`` on each data set, all of them
    together (``results.judged.judge_cases``).

    ``results`` come from ``load_results``, ``concentrations`` from ``describe_probes``, and
    ``runs``, which an evaluation needs, is the column ``run`` of ``describe_runs``. The methods
    compared are those the model was asked for, your own, votes if they do not cost more than is
    spent, and the nearest probe, under the name ``Probe``: never a probe chosen by its score. A
    budget has ``per_question`` samples on average, and is tried on questions with twice as many, if
    there are enough (``applications.deep_samples``). Data sets whose questions all have the same
    accuracy are left out.

    Returns one row per comparison: ``dataset``, ``method``; the ``confidence``, which for a probe
    is its own name; the mean gain ``estimate`` with the 95 % interval ``low`` to ``high`` of this
    comparison alone; ``p``, ``p (Holm)``; the ``verdict``, a category; and whether the case ``could
    be won``.
    """
    gains: dict[Any, Any] = {}
    perfect: dict[Any, Any] = {}
    bounds = {}
    for name in results[results["total"] > 1].index.unique("dataset"):
        dataset = str(name)
        questions = questions_to_use(results, dataset, None if runs is None else runs[dataset])
        if use == "Budget":
            if 2 * per_question > deep_samples(questions["total"]):
                continue
            questions = questions[questions["total"] >= 2 * per_question]
        if not questions_differ(questions):
            continue
        probe = nearest_probe_of(questions, dataset)
        of_all = perfect_gains(questions, questions["tokens"], use, per_question)
        for method in methods(questions.drop(columns="tokens")):
            if training_sets(method) and method != probe:
                continue  # the nearest stands for all
            if method == CONSISTENCY and use in CHEAPER_THAN_VOTES:
                continue
            gain = gains_of_method(questions, method, use, concentrations.get(method), per_question)
            if gain.count() < 2:
                continue
            case = dataset, NEAREST_PROBE if method == probe else method, method
            judges = estimates(questions, method).query("member == 0")
            best = of_all
            if method == CONSISTENCY:
                best = perfect_gains(judges, questions["tokens"], use, per_question)
            for of_cases, values in ((gains, gain), (perfect, best)):
                of_cases[case] = pd.concat({dataset: values}, names=["dataset"])
            bounds[case] = bounds_in_use(use, judges["correct"], judges["total"])
    names = ["dataset", "method", "confidence"]
    return judge_cases(gains, names, bounds=bounds, perfect=perfect)


def questions_to_use(results: pd.DataFrame, dataset: str, run: Run | None = None) -> pd.DataFrame:
    """Return the results of one data set as a use takes them, indexed by question, with the mean
    completion ``tokens`` of an answer (NaN without a run).

    Questions with fewer than two scored samples, and columns without any confidence, are left out.
    If the model was asked but stated no confidence for a question, one half is used.
    """
    questions = results[results["total"] > 1]
    questions = questions[questions.index.get_level_values("dataset") == dataset]
    questions = questions.droplevel("dataset").dropna(axis="columns", how="all")
    questions = fill_unstated(questions)
    if run is None:
        return questions.assign(tokens=np.nan)
    samples = read_samples(run, ["question_id", "completion_tokens"])
    return questions.assign(tokens=samples.groupby("question_id")["completion_tokens"].mean())


def gain_in_use(
    use: str,
    confidence: "pd.Series[float]",
    correct: "pd.Series[int]",
    total: "pd.Series[int]",
    *,
    tokens: "pd.Series[float]",
    concentration: float | None = None,
    per_question: int = PER_QUESTION,
) -> "pd.Series[float]":
    """Return what a confidence gains in a use on each question, shape (n_questions,).

    Arguments are as in ``applications``; ``tokens`` is the length of an answer.
    """
    given = confidence, correct, total
    if use == "pass@k":
        return pass_at_k_gains(*given, ATTEMPTS, concentration=concentration)
    if use == "Budget":
        return budget_gains(*given, per_question, concentration=concentration)
    if use == "Abstaining":
        return abstaining_gains(*given)
    if use == "Labels saved":
        return label_gains(*given)
    return evaluation_gains(*given, tokens)


def gains_of_method(
    questions: pd.DataFrame,
    method: str,
    use: str,
    concentration: float | None,
    per_question: int = PER_QUESTION,
) -> "pd.Series[float]":
    """Return the gains of a method in a use; a probe of the paper's recipe has the mean gains of
    its five.
    """

    def of_member(judged: pd.DataFrame) -> "pd.Series[float]":
        given = judged["confidence"], judged["correct"], judged["total"]
        tokens = questions["tokens"].reindex(judged.index)
        return gain_in_use(
            use, *given, tokens=tokens, concentration=concentration, per_question=per_question
        )

    gains: pd.Series[float] = mean_over_members(estimates(questions, method), of_member)
    return gains


def perfect_gains(
    judges: pd.DataFrame, tokens: "pd.Series[float]", use: str, per_question: int = PER_QUESTION
) -> "pd.Series[float]":
    """Return what a perfect confidence gains in a use, on the questions and counts of ``judges``.

    It knows each question's expected accuracy, but not the noise of the samples that judge it. The
    gain is the mean over five draws of accuracies given the samples
    (``applications.draw_accuracies``).
    """
    rng = np.random.default_rng(0)
    counts = judges["correct"], judges["total"]
    tokens = tokens.reindex(judges.index)
    worlds = []
    for drawn in draw_accuracies(*counts, WORLDS, rng=rng):
        accuracy = pd.Series(drawn, judges.index)
        worlds.append(gain_in_use(use, accuracy, *counts, tokens=tokens, per_question=per_question))
    return pd.concat(worlds, axis="columns").mean(axis="columns", skipna=False)


def bounds_in_use(
    use: str, correct: "pd.Series[int]", total: "pd.Series[int]"
) -> tuple[float, float]:
    """Return the least and the largest possible gain of a question in a use.

    With squared errors (pass@k and labels), a confidence gains most if it is right and the mean of
    the others is far off, and loses most if it is wrong and the mean is near. A budget loses a
    whole question if it spends nothing on one that even spending solves, and gains one in the
    opposite case. For abstaining see ``applications.risk_area_bounds``. In an evaluation the
    variance of an answer is at most 1/4: a question with a quarter of the samples has four times
    that, three quarters more, and one with very many samples has none.
    """
    if use == "Budget":
        return -1.0, 1.0
    if use == "Abstaining":
        return risk_area_bounds(len(correct))
    if use == "Evaluation":
        return -3 / 4, 1 / 4
    mu = correct / total
    if use == "pass@k":
        mu = pd.Series(pass_at_k(correct, total, [ATTEMPTS])[:, 0]).dropna()
        if len(mu) < 2:
            return APART
    return metrics.bounds_over_constant(others_mean(mu).dropna())
