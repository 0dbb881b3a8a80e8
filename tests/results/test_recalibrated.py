import numpy as np
import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.metrics import Calibrator
from capcal_lib.results import (
    best_constant,
    brier_terms,
    compare_recalibrated,
    compare_with_constant,
    estimates,
    recalibrate,
    score,
    subjects,
)
from capcal_lib.results.scores import folds_of

VOTES = "Response consistency"


def made(questions: int = 300, dataset: str = "gsm8k") -> pd.DataFrame:
    """A confidence that knows mu and says far too much, and one that knows nothing."""
    rng = np.random.default_rng(0)
    mu = rng.random(questions)
    columns = {"correct": rng.binomial(20, mu), "total": 20}
    columns |= {"P(True)": 0.9 + 0.1 * mu, "mine": np.full(questions, 0.9)}
    index = pd.MultiIndex.from_product([[dataset], map(str, range(questions))])
    index.names = ["dataset", "question_id"]
    return pd.DataFrame(columns, index)


@pytest.fixture(scope="module")
def small(loaded_once: pd.DataFrame) -> pd.DataFrame:
    """Results on a set in subjects, and on one without."""
    return loaded_once.loc[["mini-exam", "mmlu"]]


@pytest.fixture(scope="module")
def recalibrated(small: pd.DataFrame) -> pd.DataFrame:
    return recalibrate(small)


@pytest.fixture(scope="module")
def judged(small: pd.DataFrame) -> pd.DataFrame:
    return compare_recalibrated(small).set_index(["dataset", "method"])


def test_a_naive_definition_gives_the_same_confidences(
    small: pd.DataFrame, recalibrated: pd.DataFrame
) -> None:
    for dataset in ("mini-exam", "mmlu"):
        own = estimates(small.loc[[dataset]], "P(True)")
        groups = subjects(small.loc[[dataset]])
        fold = folds_of(groups, 5)[own.index]
        assert groups.groupby(folds_of(groups, 5)).unique().explode().is_unique, "whole subjects"
        assert folds_of(groups[::-1], 5)[groups.index].equals(folds_of(groups, 5))
        for question in own.index[:3]:
            others = own[fold != fold[question]]
            calibrator = Calibrator("platt").fit(
                others["confidence"], others["correct"], others["total"]
            )
            expected = calibrator.predict([own.loc[question, "confidence"]])
            assert recalibrated.loc[question, "P(True)"] == pytest.approx(expected[0])


def test_no_question_helps_to_recalibrate_itself_or_its_subject(
    small: pd.DataFrame, recalibrated: pd.DataFrame
) -> None:
    before = recalibrated["P(True)"]
    own = small.loc[["mmlu"]]
    groups = subjects(own)
    subject = own.index[groups == groups.iloc[0]]
    changed = small[["correct", "total", "P(True)"]].copy()
    changed.loc[subject, "correct"] = changed.loc[subject, "total"]
    after = recalibrate(changed)["P(True)"]
    pd.testing.assert_series_equal(before[subject], after[subject])
    assert (before["mmlu"] != after["mmlu"]).any()
    pd.testing.assert_series_equal(before["mini-exam"], after["mini-exam"])


def test_a_level_is_mended_and_what_knows_nothing_becomes_the_constant() -> None:
    results = made()
    before, after = score(results)["brier"]["gsm8k"], score(recalibrate(results))["brier"]["gsm8k"]
    assert before["P(True)"] > before["Best constant"] > 10 * after["P(True)"]
    assert after["mine"] == pytest.approx(after["Best constant"], abs=0.002)
    assert score(results)["brier"]["gsm8k"]["P(True)"] == before["P(True)"], "a copy"


def test_votes_are_judged_by_the_samples_that_did_not_vote(
    small: pd.DataFrame, recalibrated: pd.DataFrame, judged: pd.DataFrame
) -> None:
    terms = brier_terms(recalibrated)[VOTES].dropna()
    judges = estimates(recalibrated, VOTES).loc[terms.index]
    mu = judges["correct"] / judges["total"]
    expected = (judges["confidence"] - mu) ** 2 - mu * (1 - mu) / (judges["total"] - 1)
    assert terms.tolist() == pytest.approx(expected.tolist())
    constant = best_constant(small)[terms.index]
    gain = (constant - mu) ** 2 - (judges["confidence"] - mu) ** 2  # their noise is the same
    found = judged.loc[("mini-exam", VOTES), "estimate"]
    assert found == pytest.approx(gain["mini-exam"].mean())


def test_probes_have_learned_from_labels_and_are_not_judged_again(
    small: pd.DataFrame, judged: pd.DataFrame
) -> None:
    assert small.filter(like="Probe").notna().any(axis=None)
    assert {*judged.index.unique("method")} == {"Verbalized confidence", "P(True)", VOTES}


def test_by_the_papers_protocol_what_is_missing_says_one_half() -> None:
    results = made(40)[["correct", "total", "P(True)"]]
    results.loc[("gsm8k", "0"), "P(True)"] = np.nan
    mu, s = results["correct"] / 20, recalibrate(results)["P(True)"].fillna(0.5)
    gain = (best_constant(results) - mu) ** 2 - (s - mu) ** 2
    found = compare_recalibrated(results, protocol="paper")["estimate"].item()
    assert found == pytest.approx(gain.mean())


def test_questions_that_are_not_scored_change_no_comparison() -> None:
    results = made(40)
    results.loc[("gsm8k", "0"), ["correct", "total"]] = 0
    without = compare_with_constant(results.iloc[1:])
    pd.testing.assert_frame_equal(compare_with_constant(results), without)


def test_too_few_questions_are_not_scored() -> None:
    results = made(3)
    results.loc[("gsm8k", "1"), "P(True)"] = np.nan
    results.loc[("gsm8k", "2"), "total"] = 0
    results.loc[("gsm8k", "2"), "correct"] = 0
    recalibrated = recalibrate(results)
    assert recalibrated["P(True)"].isna().all(), "one question is known, and no other to learn from"
    assert recalibrate(results.iloc[:0]).empty
    nothing = recalibrate(made(40).assign(correct=0))
    assert nothing["P(True)"].max() < 0.01
    with pytest.raises(InputError, match="folds"):
        recalibrate(results, folds=1)
