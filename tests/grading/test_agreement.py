from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.errors import InputError
from capcal_lib.grading.agreement import Agreement, agreement, agreements, judge_agreement
from capcal_lib.grading.judgements import judge_run, judges
from capcal_lib.grading.verdicts import grade_run, read_verdicts
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.runs import Run, find_run
from capcal_lib.sampling.draw import sample

RIGHT, WRONG, NONE, NOT = "correct", "incorrect", "no_answer", "not_scored"
VERDICTS = (RIGHT, WRONG, NONE, NOT)


def compare(
    one: Sequence[str], other: Sequence[str], clusters: Sequence[int] | None = None
) -> Agreement:
    questions = range(len(one)) if clusters is None else clusters
    return agreement(pd.Series(one), pd.Series(other), pd.Series(questions).astype(str))


def test_cohens_kappa_by_hand() -> None:
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: observed 0.7; by chance 0.5 x 0.6 + 0.5 x 0.4 = 0.5
    one = [RIGHT] * 25 + [WRONG] * 25
    other = [RIGHT] * 20 + [WRONG] * 5 + [RIGHT] * 10 + [WRONG] * 15
    found = compare(one, other)
    assert found.rate.estimate == pytest.approx(0.7)
    assert found.kappa == pytest.approx(0.4)
    assert found.table.to_numpy().tolist() == [[20, 5], [10, 15]]
    assert list(found.table) == list(found.table.index) == [RIGHT, WRONG]


def test_no_answer_counts_as_wrong_and_not_scored_as_nothing() -> None:
    found = compare([WRONG, NONE, RIGHT, RIGHT, NOT], [NONE, WRONG, RIGHT, NOT, RIGHT])
    assert found.rate.estimate == 1
    assert found.kappa == 1
    assert found.table.loc[NOT, RIGHT] == found.table.loc[RIGHT, NOT] == 1
    assert found.table.to_numpy().sum() == 5


def test_kappa_is_unknown_where_chance_alone_agrees() -> None:
    found = compare([WRONG, WRONG], [WRONG, NONE])
    assert np.isnan(found.kappa)
    assert found.rate.estimate == 1


def test_a_judge_of_one_word_has_no_skill() -> None:
    found = compare([RIGHT, WRONG, WRONG, WRONG], [NONE] * 4)
    assert found.rate.estimate == 0.75
    assert found.kappa == 0


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from(VERDICTS)] * 2), min_size=2, max_size=40))
def test_it_is_symmetric_and_within_bounds(pairs: list[tuple[str, str]]) -> None:
    one, other = zip((RIGHT, RIGHT), *pairs, strict=True)
    there, back = compare(one, other), compare(other, one)
    np.testing.assert_array_equal(there.rate, back.rate)  # NaN limits where a single answer is left
    assert there.kappa == pytest.approx(back.kappa, nan_ok=True)
    assert there.table.to_numpy().tolist() == back.table.T.to_numpy().tolist()
    assert np.isnan(there.kappa) or -1 <= there.kappa <= 1 + 1e-12


def test_the_interval_is_that_of_whole_questions() -> None:
    one = [RIGHT] * 100
    other = [RIGHT] * 50 + [WRONG] * 50
    apart = compare(one, other).rate
    together = compare(one, other, [place // 10 for place in range(100)]).rate
    assert together.high - together.low > 2 * (apart.high - apart.low)


def test_nothing_that_both_scored_is_refused() -> None:
    with pytest.raises(InputError, match="no answer was scored by both graders"):
        compare([NOT], [RIGHT])


def test_a_judge_is_compared_by_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sample("simulated", "mini-capitals", k=20, limit=6, store=tmp_path).run.folder
    grade_run(Run(folder))
    rules = read_verdicts(Run(folder))
    once = rules[["question_id", "extracted", "verdict"]].drop_duplicates()
    wrong = once[once["verdict"] == "incorrect"].iloc[0]
    lenient = once.assign(
        verdict=once["verdict"].where(once.index != wrong.name, "correct"), words=""
    )
    monkeypatch.setattr(
        "capcal_lib.grading.agreement.read_judgements", lambda folder, judge: lenient
    )
    found = judge_agreement(Run(folder), "any")
    times = (
        (rules[["question_id", "extracted"]] == wrong[["question_id", "extracted"]])
        .all(axis=1)
        .sum()
    )
    assert found.table.to_numpy().sum() == len(rules) == 120
    assert found.table.loc["incorrect", "correct"] == times
    assert found.rate.estimate == pytest.approx(1 - times / 120)


def test_a_judge_that_says_none_of_its_words_cannot_be_compared(tmp_path: Path) -> None:
    folder = sample("simulated", "mini-capitals", k=2, limit=2, store=tmp_path).run.folder
    grade_run(Run(folder))
    judge_run(Run(folder), "simulated")
    with pytest.raises(InputError, match="no answer was scored by both"):
        judge_agreement(Run(folder), "simulated")


def test_every_judge_of_every_run_is_compared_the_best_first() -> None:
    names = "mini-capitals", "mini-elements"
    runs = {name: find_run(RECORDED_RUNS, "smollm2-135m", name, "test") for name in names}
    table = agreements(runs)
    assert len(table) == sum(len(judges(run)) for run in runs.values()) > 1
    assert table["κ"].is_monotonic_decreasing
    for row in table.itertuples():
        both = judge_agreement(runs[row.dataset], row.judge)
        assert row[3:] == (both.rate.estimate, both.kappa)
