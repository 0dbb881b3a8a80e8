"""Corrections taken back one at a time."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.confidence.of_run import estimate
from capcal_lib.grading.judgements import JUDGEMENTS, PAIR
from capcal_lib.grading.verdicts import grade_run, read_verdicts
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results import Counting, brier_terms, describe_runs, load_results, score
from capcal_lib.results.results import results_of
from capcal_lib.results.terms import BEST_CONSTANT
from capcal_lib.sampling.draw import sample
from capcal_lib.studies.protocol import (
    ALL_TOGETHER,
    GROUPS,
    UNDOING,
    _judged,
    _means,
    shifts_by_correction,
)

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


def test_a_judge_that_agrees_with_the_rules_gives_their_scores(tmp_path: Path) -> None:
    run = sample("simulated", "mini-capitals", k=12, limit=9, store=tmp_path).run
    grade_run(run)
    estimate(run, "p-true")
    counting = Counting(tmp_path, "simulated")
    assert _judged(counting, counting.runs()).empty, "nobody has judged"
    said = read_verdicts(run)[[*PAIR, "verdict"]].dropna().drop_duplicates()
    by = dict.fromkeys(("judge", "weights", "engine", "prompt", "words"), "alike")
    run.add(JUDGEMENTS, said.assign(**by))
    expected = _means(brier_terms(results_of(counting))).to_dict()
    assert ("mini-capitals", "P(True)") in expected
    assert _judged(counting, counting.runs()).to_dict() == pytest.approx(expected)


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


def test_shifts_are_numbers_where_a_data_set_has_no_votes() -> None:
    shifts = shifts_by_correction(Counting(RECORDED_RUNS, "qwen2.5-coder-0.5b"))
    assert "aime25" in set(shifts["dataset"])
    assert shifts.nlargest(1, "shift")["shift"].item() == max(shifts["shift"])
