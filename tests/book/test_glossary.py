"""What the glossary says holds for the functions that its words name, each computed by hand."""

import itertools
import re
from math import comb

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from capcal_lib.applications import pass_at_k, risk_coverage, success_rate
from capcal_lib.claims import CLAIM_VERDICTS, verdict_of
from capcal_lib.metrics import (
    Calibrator,
    adjusted,
    binned_ece,
    capability_brier,
    correctness_variance,
    expected_response_brier,
    isotonic_split,
    soft_auroc,
)
from capcal_lib.metrics.grader import grader_error
from capcal_lib.places import BOOK
from capcal_lib.results import score

GLOSSARY = " ".join((BOOK / "reference" / "vocabulary.md").read_text(encoding="utf-8").split())
SAID, CORRECT, TOTAL = np.array([0.9, 0.2, 0.6, 0.4]), np.array([7, 1, 2, 5]), np.full(4, 10)
MU = CORRECT / TOTAL


def says(sentence: str) -> None:
    """Check that a sentence still stands in the glossary as it is tested here."""
    assert sentence in GLOSSARY, sentence


def test_the_example_of_holm_is_worked_out():
    said = re.search(
        r"p-values ([.\d]+), ([.\d]+) and ([.\d]+)\. The first becomes 3 × [.\d]+ = ([.\d]+), "
        r"the second 2 × [.\d]+ = ([.\d]+), and the third also ([.\d]+), "
        r"because 1 × [.\d]+ is less. "
        r"Only the first is below ([.\d]+)",
        GLOSSARY,
    )
    assert said
    *numbers, level = map(float, said.groups())
    together = adjusted(np.array(numbers[:3]), "holm")
    assert together == pytest.approx(numbers[3:])
    assert (together < level).tolist() == [True, False, False]
    assert (np.array(numbers[:3]) < level).all()


def test_the_example_of_calibration_error_is_worked_out():
    said = re.search(
        r"a confidence of ([.\d]+) on two questions with \$\\mu\$ of ([.\d]+) and ([.\d]+) has an "
        r"ECE of ([.\d]+) and a capability Brier score of ([.\d]+\d)",
        GLOSSARY,
    )
    assert said
    confidence, first, second, error, brier = map(float, said.groups())
    counts = [first * 10, second * 10], [10, 10]
    both = [confidence, confidence]
    assert binned_ece(both, *counts, corrected=False) == pytest.approx(error, abs=1e-12)
    assert capability_brier(both, *counts) == pytest.approx(brier)


def test_the_corrected_score_subtracts_what_the_noise_adds_on_average():
    says(r"For each question with $n$ samples it subtracts $\hat\mu(1-\hat\mu)/(n - 1)$")
    plug_in = np.mean((SAID - MU) ** 2)
    corrected = capability_brier(SAID, CORRECT, TOTAL, corrected=True)
    assert corrected == pytest.approx(plug_in - np.mean(MU * (1 - MU) / 9))
    says("The plug-in score that $\\mu$ itself would get with this number of samples, on average.")
    counts = np.arange(6)
    chance = binom.pmf(counts, 5, 0.3)
    floor = chance @ (0.3 - counts / 5) ** 2
    assert chance @ (counts / 5 * (1 - counts / 5) / 4) == pytest.approx(floor)


def test_the_correctness_variance_is_between_the_two_scores():
    says("The mean of $\\mu(1-\\mu)$ over questions: expected response Brier minus cap")
    variance = correctness_variance(CORRECT, TOTAL)
    assert variance == pytest.approx(np.mean(MU * (1 - MU)))
    response = expected_response_brier(SAID, CORRECT, TOTAL)
    assert response - capability_brier(SAID, CORRECT, TOTAL) == pytest.approx(variance)
    says("confidence given before the answer cannot score below the correctness variance")
    assert expected_response_brier(MU, CORRECT, TOTAL) == pytest.approx(variance)


def test_recalibration_removes_miscalibration_and_leaves_discrimination():
    says(
        "miscalibration minus discrimination plus uncertainty. Recalibration removes miscalibration"
    )
    parts = isotonic_split(SAID, CORRECT, TOTAL)
    whole = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert whole == pytest.approx(parts.score)
    says(r"Uncertainty is the variance of $\mu$ over the questions.")
    assert parts.uncertainty == pytest.approx(MU.var())
    says("the best increasing function of the confidence, so that discrimination counts only the")
    squared = isotonic_split(SAID**2, CORRECT, TOTAL)
    assert squared.discrimination == pytest.approx(parts.discrimination)
    assert squared.miscalibration != pytest.approx(parts.miscalibration)
    fitted = Calibrator("isotonic").fit(SAID, CORRECT, TOTAL).predict(SAID)
    after = isotonic_split(fitted, CORRECT, TOTAL)
    assert after.miscalibration == pytest.approx(0)
    assert after.discrimination == pytest.approx(parts.discrimination)


def test_platt_scaling_sets_the_level_and_keeps_the_order():
    says("after Platt scaling, fitted to labels of other questions of the data set. It sets")
    moved = Calibrator("platt").fit(SAID, CORRECT, TOTAL).predict(SAID)
    assert np.argsort(moved).tolist() == np.argsort(SAID).tolist()
    assert moved.mean() == pytest.approx(MU.mean(), abs=0.001)


def test_auroc_is_the_chance_of_the_higher_confidence_and_ties_count_one_half():
    says("has a higher confidence than the question of an incorrect one. Ties count one half.")
    said = np.array([0.9, 0.2, 0.2])
    right, wrong = [2, 1, 0], [1, 2, 3]
    pairs = [
        (r * w, (said[i] > said[j]) + (said[i] == said[j]) / 2)
        for (i, r), (j, w) in itertools.product(enumerate(right), enumerate(wrong))
    ]
    naive = sum(n * wins for n, wins in pairs) / sum(n for n, _ in pairs)
    assert soft_auroc(said, right, [3, 3, 3]) == pytest.approx(naive)


def test_pass_at_k_is_the_chance_of_a_correct_sample_among_k():
    says(r"the estimate is $1 - \binom{n-c}{k} / \binom nk$")
    drawn = list(itertools.combinations([1, 1, 0, 0, 0], 3))  # of five samples, two correct
    share = np.mean([any(each) for each in drawn])
    assert pass_at_k([2], [5], [3]).item() == pytest.approx(share)
    assert share == pytest.approx(1 - comb(3, 3) / comb(5, 3))
    says("*success rate* is the expected share of questions with a correct sample")
    assert success_rate([3, 0], [2, 2], [5, 5]) == pytest.approx(share / 2)


def test_the_area_of_risk_is_lower_for_a_confidence_that_knows_which_to_answer():
    says("The risk of a question is the probability $1 - \\mu$ that a fresh answer is wrong.")
    knows, reversed_ = (risk_coverage(said, CORRECT, TOTAL)["risk"] for said in (MU, -MU + 1))
    assert knows.iloc[0] == pytest.approx(1 - MU.max())
    assert knows.iloc[-1] == pytest.approx(reversed_.iloc[-1]) == pytest.approx(np.mean(1 - MU))
    assert knows.mean() < reversed_.mean()


def test_the_best_constant_knows_the_others_and_oracle_cc_scores_nothing():
    says("the mean $\\hat\\mu$ of the other questions")
    says(r"$\hat\mu$ itself, which scores 0; for pass@k")
    index = pd.MultiIndex.from_product([["gsm8k"], list("abcd")], names=["dataset", "question_id"])
    results = pd.DataFrame({"correct": CORRECT, "total": TOTAL, "mine": SAID}, index)
    scores = score(results, protocol="paper")["brier"].droplevel("dataset")
    others = (MU.sum() - MU) / 3
    assert scores["Best constant"] == pytest.approx(np.mean((others - MU) ** 2))
    assert scores["Oracle CC"] == 0
    says("the correctness of one sample, 0 or 1")
    assert scores["Oracle RC"] == pytest.approx(np.mean(MU * (1 - MU)))


def test_a_grader_is_sensitive_to_right_answers_and_specific_to_wrong_ones():
    says("The *sensitivity* of a grader is the share of right answers that it calls correct.")
    error = grader_error([1, 1, 1, 0, 0, 1], [1, 1, 1, 1, 0, 0])
    assert (error.sensitivity, error.specificity) == (3 / 4, 1 / 2)


@pytest.mark.parametrize(
    ("wording", "holds", "fails", "neither", "verdict"),
    [
        ("every", 4, 0, 0, "supported"),
        ("most", 3, 1, 0, "supported"),
        ("some", 1, 3, 0, "supported"),
        ("every", 0, 4, 0, "reversed"),
        ("some", 0, 4, 0, "reversed"),
        ("most", 1, 3, 0, "reversed"),
        ("every", 3, 1, 0, "holds in part"),
        ("most", 2, 1, 1, "holds in part"),
        ("every", 1, 3, 0, "contradicted in part"),
        ("most", 1, 2, 1, "contradicted in part"),
        ("most", 1, 1, 2, "inconclusive"),
    ],
)
def test_a_claim_is_judged_by_its_wording(wording, holds, fails, neither, verdict):
    says("*supported* if as many comparisons hold as its wording asks for: all, more than half, or")
    says("*reversed* if all fail. If the wording asks for more than half, it is enough that more")
    says(
        "*holds in part* if more comparisons hold than fail, and is *contradicted in part* if more"
    )
    says("If as many fail as hold, it is *inconclusive*.")
    results = ["holds"] * holds + ["fails"] * fails + ["neither"] * neither
    assert verdict_of(pd.Series(results), wording) == verdict
    assert verdict in CLAIM_VERDICTS
