"""Each defect against a naive re-derivation; the effects on recorded runs have the sign that they must have."""

import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.applications.budget import success_rate
from capcal_lib.book import defects
from capcal_lib.errors import InputError
from capcal_lib.manifests import RECORDED_RUNS
from capcal_lib.results.evaluation import Evaluation, load_evaluation
from tests.results.test_tables import FOUR, NAN, evaluation, rng


@pytest.fixture(scope="module")
def measured() -> list[Evaluation]:
    return [load_evaluation(RECORDED_RUNS, "smollm2-135m", name) for name in ("mini-elements", "mini-exam")]


def test_shared_draws_by_hand() -> None:
    drawn = [random.Random(seed).sample(range(100), 3) for seed in range(42, 52)]
    solved = [[min(one) < 7 for one in drawn], [min(one) < 90 for one in drawn], [False] * 10]
    found = defects.shared_draw_success([3, 3, 0], [7, 90, 90], [100, 100, 100])
    assert found == pytest.approx(np.mean(solved))


def test_the_ten_shared_positions_are_smaller_than_they_should_be() -> None:
    first = [random.Random(seed).sample(range(100), 1)[0] for seed in defects.SEEDS]
    assert np.mean(first) == 39.7  # 49.5 on average over all seeds
    counts = np.arange(101)
    even, total = np.ones(101, int), np.full(101, 100)
    assert defects.shared_draw_success(even, counts, total) > success_rate(even, counts, total) + 0.05


def test_many_shared_draws_are_right_on_average() -> None:
    c, n = np.array([3, 40, 77]), np.array([50, 100, 100])
    many = defects.shared_draw_success([2, 2, 2], c, n, seeds=range(4000))
    assert many == pytest.approx(success_rate([2, 2, 2], c, n), abs=0.02)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30))
@settings(deadline=None, max_examples=60)
def test_calibration_error_is_the_naive_one(pairs: list[tuple[float, float]]) -> None:
    for closed in (True, False):
        naive = 0.0
        for b in range(10):
            inside = [(s, mu) for s, mu in pairs if b <= np.floor(s * 10) < b + 1 or (closed and b == 9 and s == 1.0)]
            naive += abs(sum(s - mu for s, mu in inside)) / len(pairs)
        s, mu = zip(*pairs, strict=True)
        assert defects.calibration_error(s, mu, closed=closed) == pytest.approx(naive, abs=1e-9)


def test_a_sure_and_wrong_confidence_vanishes_from_an_open_bin() -> None:
    table = defects.open_last_bin([evaluation([0, 5], [10, 10], {"Verbalized confidence": [1.0, 0.5]})])
    assert table[["old way", "right way", "effect"]].iloc[0].tolist() == [0.0, 0.5, -0.5]


def test_gaps_filled_with_one_half_by_hand() -> None:
    one = evaluation([100] * 400, [100] * 400, {"Probe (Mini exam)": [1.0] * 400})
    row = defects.filled_gaps([one], rng(), share=0.25).iloc[0]
    assert row["right way"] == 0
    assert row["old way"] == pytest.approx(0.25 * 0.25, abs=0.02)
    assert row["evidence"] == "simulated"
    other = defects.filled_gaps([one], rng(1), share=0.25).iloc[0]
    assert row["old way"] != other["old way"]


def test_labels_of_another_model_by_hand() -> None:
    own = evaluation([10, 0], [10, 10], {"Verbalized confidence": [1.0, 0.0]})
    wrong = evaluation([0, 10], [10, 10])
    row = defects.labels_of_another([own], [wrong]).iloc[0]
    assert (row["old way"], row["right way"]) == (1.0, 0.0)
    assert defects.labels_of_another([own], []).empty


def test_letters_and_containment() -> None:
    assert defects.loose_letter(r"first \boxed{A}, no, \boxed{B}") == "B"
    assert defects.loose_letter("The answer is (c)") == "C"
    assert defects.loose_letter("It may be B, or A; hard to say") == "A"
    assert defects.contained("", "oslo")
    assert not defects.contained("bergen", "oslo")


def test_readings_differ_where_they_should() -> None:
    table = defects.readings()
    assert (table["old way"] != table["right way"]).sum() >= 6
    assert set(table["right way"]) <= {"correct", "incorrect", "no_answer"}


def test_effects_on_recorded_runs(measured: list[Evaluation]) -> None:
    budget = defects.shared_draws(measured, 1)
    means = [one.counts.expected_accuracy.mean() for one in measured]
    assert budget["right way"].tolist() == pytest.approx(means)
    assert (budget["effect"] > 0.03).all()
    loose = defects.loose_grading(measured, RECORDED_RUNS)
    assert loose["right way"].tolist() == pytest.approx(means)
    assert (loose["effect"] >= 0).all()


def test_votes_in_the_target_flatter(measured: list[Evaluation]) -> None:
    simulated = [load_evaluation(RECORDED_RUNS, "simulated", "mini-exam")]
    assert (defects.votes_in_the_target(simulated, RECORDED_RUNS)["effect"] < 0).all()
    texts = defects.answers_as_texts(measured, RECORDED_RUNS)
    assert texts["data set"].tolist() == [one.dataset.title for one in measured]
    assert texts["effect"].abs().max() > 0


def test_choosing_on_the_test_flatters() -> None:
    one = load_evaluation(RECORDED_RUNS, "smollm2-135m", "mini-capitals")
    first, other = (defects.chosen_on_the_test([one], RECORDED_RUNS, rng(seed)).iloc[0] for seed in (0, 1))
    assert first["old way"] < first["right way"]
    assert first["old way"] != other["old way"]


def test_what_has_no_samples_has_no_rows(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from dataclasses import replace

    unsampled = [replace(FOUR, sampled=False, confidences={})]
    tables = [
        defects.open_last_bin(unsampled),
        defects.votes_in_the_target(unsampled, tmp_path),
        defects.answers_as_texts(unsampled, tmp_path),
        defects.filled_gaps(unsampled, rng()),
        defects.labels_of_another(unsampled, unsampled),
        defects.loose_grading(unsampled, tmp_path),
        defects.chosen_on_the_test(unsampled, tmp_path, rng()),
        defects.shared_draws([evaluation([0], [0])], 1),
    ]
    assert all(table.empty and list(table.columns) == defects.COLUMNS for table in tables)


def test_a_missing_confidence_takes_no_part() -> None:
    one = evaluation([0, 5], [10, 10], {"Verbalized confidence": [NAN, 0.5]})
    assert defects.open_last_bin([one])["right way"].tolist() == [0.0]
    assert pd.notna(defects.labels_of_another([one], [one])["effect"]).all()


def test_lengths_must_agree() -> None:
    with pytest.raises(InputError, match="2"):
        defects.shared_draw_success([1], [1, 1], [2, 2])
    with pytest.raises(InputError, match="2"):
        defects.calibration_error([0.5], [0.5, 0.5], closed=True)
