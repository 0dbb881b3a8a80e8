"""Corrections taken back one at a time."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.confidence.consistency import read_answers
from capcal_lib.manifests import load_dataset
from capcal_lib.metrics import Calibrator, adjusted, capability_brier
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probes import keep_draws, train, training_data
from capcal_lib.results import Counting, brier_terms, describe_runs, load_results, score
from capcal_lib.results.terms import BEST_CONSTANT
from capcal_lib.runs import find_run
from capcal_lib.shifts import shift
from capcal_lib.studies.protocol import (
    ALL_TOGETHER,
    GROUPS,
    UNDOING,
    _means,
    compare_recalibrated_probes,
    shifts_by_correction,
    votes_without_answer,
)
from tests.folders import sample_unlike_totals

MODEL = "simulated"
RUNS = describe_runs(Counting(RECORDED_RUNS, MODEL))["run"]


@pytest.fixture(scope="module")
def shifts() -> pd.DataFrame:
    return shifts_by_correction(Counting(RECORDED_RUNS, MODEL))


def test_a_shift_is_the_difference_of_two_scores(shifts: pd.DataFrame) -> None:
    ours = load_results(RECORDED_RUNS, MODEL)
    scores = score(ours)["brier"]
    paper = load_results(RECORDED_RUNS, MODEL, recipe="paper", held_out=False)
    theirs = score(paper, protocol="paper")["brier"]
    found = shifts.set_index(["switch", "dataset", "method"])["shift"]
    whole = found[ALL_TOGETHER]
    assert len(whole) > 3
    for case, moved in whole.items():
        assert moved == pytest.approx(theirs[case] - scores[case], abs=1e-9)
    noise = brier_terms(ours, protocol="paper")["P(True)"] - brier_terms(ours)["P(True)"]
    by_set = noise.groupby(level="dataset").mean()
    alone = found["plug-in scores"].xs("P(True)", level="method")
    assert alone.to_dict() == pytest.approx(by_set[alone.index].to_dict())


def test_a_sentence_can_name_each_correction_alone(shifts: pd.DataFrame) -> None:
    assert set(shifts.loc[shifts["alone"], "switch"]) <= set(UNDOING)


def test_means_are_those_of_each_data_set_and_the_best_constant_is_no_method() -> None:
    index = pd.MultiIndex.from_tuples([("b", 1), ("b", 2), ("a", 1)], names=["dataset", None])
    terms = pd.DataFrame({"P(True)": [0.1, 0.3, np.nan], "mine": [0.2, np.nan, 0.4]}, index)
    means = _means(terms.assign(**{BEST_CONSTANT: 0.9}))
    assert means.index.names == ["dataset", "method"]
    expected = {("b", "P(True)"): 0.2, ("b", "mine"): 0.2, ("a", "mine"): 0.4}
    assert means.to_dict() == pytest.approx(expected)


def test_each_confidence_is_in_one_of_three_groups(shifts: pd.DataFrame) -> None:
    probes = shifts["method"].str.startswith("Probe")
    assert {*shifts.loc[~probes, "confidence"]} == {GROUPS[2]}
    assert {*shifts.loc[probes, "confidence"]} <= {*GROUPS[:2]}
    own = shifts["confidence"] == GROUPS[0]
    named = {"mini-elements": "Probe (Mini elements)", "mini-capitals": "Probe (Mini capitals)"}
    for dataset, method in named.items():
        mine = shifts[(shifts["dataset"] == dataset) & (shifts["method"] == method)]
        assert own[mine.index].all()


def test_a_probe_is_compared_with_itself_after_it_was_recalibrated_on_left_out_questions() -> None:
    judged = compare_recalibrated_probes(Counting(RECORDED_RUNS, MODEL))
    assert len(judged) == 16, "four probes on four data sets"
    ours = load_results(RECORDED_RUNS, MODEL)
    for dataset in ("mini-elements", "mini-exam"):
        source = find_run(RECORDED_RUNS, MODEL, dataset, "train")
        questions, _ = training_data(source)
        counts = questions["correct"], questions["total"]
        platt = Calibrator("platt").fit(train(source).out_of_fold_, *counts)
        method = load_dataset(dataset).probe
        for _, row in judged[judged["method"] == method].iterrows():
            own = ours.loc[row["dataset"]]
            naive = [
                capability_brier(confidence, own["correct"], own["total"], corrected=True)
                for confidence in (own[method], platt.predict(own[method]))
            ]
            assert row["estimate"] == pytest.approx(naive[0] - naive[1], abs=1e-5)
            assert row["shift"] == shift(method, row["dataset"])
    together = adjusted(judged["p"].to_numpy(np.float64), "holm")
    assert judged["p (Holm)"].to_numpy() == pytest.approx(together)


def test_there_is_no_recalibrated_probe_where_nothing_is_kept_or_no_question_differs(
    tmp_path: Path,
) -> None:
    sample_unlike_totals(tmp_path, "mini-capitals")
    counting = Counting(tmp_path, MODEL)
    assert compare_recalibrated_probes(counting).empty
    keep_draws(tmp_path, MODEL)
    assert len(compare_recalibrated_probes(counting)) == 1
    unsolved = compare_recalibrated_probes(Counting(RECORDED_RUNS, "qwen2.5-coder-0.5b"))
    assert "aime25" not in {*unsolved["dataset"]}, "none of its questions is solved"


def test_votes_without_an_answer_are_counted_naively() -> None:
    name = RUNS.index[0]
    table = votes_without_answer({name: RUNS[name]}, k_eval=20, k_c=5)
    errors, absent = [], []
    for _, own in read_answers(RUNS[name], k=20).groupby("question_id"):
        votes = own.sort_values("sample_index").head(5)["canonical"]
        known = votes.dropna()
        confidence = known.value_counts().max() / 5 if len(known) else 0.5
        errors.append((confidence - own["correct"].mean()) ** 2)
        absent += [*own["canonical"].isna()]
    row = table.loc[name]
    assert row["without an answer"] == np.mean(absent)
    assert row["agree with nobody"] == pytest.approx(np.mean(errors))
    assert row["shift"] == row["as a group"] - row["agree with nobody"]


def test_too_few_samples_to_vote_are_no_votes_of_any_correction(tmp_path: Path) -> None:
    """Twenty questions have a hundred samples, forty have twelve: too few for eleven votes and two
    others, or for twenty.
    """
    sample_unlike_totals(tmp_path, "mini-capitals")
    switched = shifts_by_correction(Counting(tmp_path, MODEL, k_c=11))
    missing = switched[switched["switch"] == "missing as 0.5"]
    assert "Response consistency" not in {*missing["method"]}
    runs = describe_runs(Counting(tmp_path, MODEL))["run"]
    answers = read_answers(runs["mini-capitals"], k=100)
    deep = answers.groupby("question_id").filter(lambda own: len(own) == 100)
    errors = []
    for _, own in deep.groupby("question_id"):
        votes = own.sort_values("sample_index").head(20)["canonical"]
        confidence = votes.value_counts().max() / 20
        errors.append((confidence - own["correct"].mean()) ** 2)
    row = votes_without_answer(runs, k_c=20).loc["mini-capitals"]
    assert row["agree with nobody"] == pytest.approx(np.mean(errors))
    assert row["without an answer"] == deep["canonical"].isna().mean()
    assert votes_without_answer(runs, k_c=101).empty


def test_shifts_are_numbers_where_a_data_set_has_no_votes() -> None:
    shifts = shifts_by_correction(Counting(RECORDED_RUNS, "qwen2.5-coder-0.5b"))
    assert "aime25" in set(shifts["dataset"])
    assert shifts.nlargest(1, "shift")["shift"].item() == max(shifts["shift"])
