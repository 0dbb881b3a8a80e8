import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.io import score_table
from capcal_lib.io.score_file import (
    compare_files,
    score_counts,
    score_files,
    spell_scores,
    summarize,
)
from capcal_lib.io.tables import read_file
from capcal_lib.metrics import bounds_over_constant, capability_brier, gains, mean_interval
from tests.io.files import BY_RULES, CSV, LOG, table_of


def test_scores_are_those_of_the_metrics_whatever_the_order_of_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {"question_id": [f"q{i}" for i in range(50)], "confidence": rng.random(50), "total": 20}
    )
    table["correct"] = rng.binomial(20, 0.4, 50)
    paths = [tmp_path / "one.csv", tmp_path / "other.csv"]
    table.to_csv(paths[0], index=False)
    table.sample(frac=1, random_state=2).to_csv(paths[1], index=False)
    tables = [read_file(path).table for path in paths]
    first, second = map(score_counts, tables)
    expected = capability_brier(
        table["confidence"], table["correct"], table["total"], corrected=True
    )
    assert first.loc["capability Brier, corrected", "value"] == pytest.approx(expected)
    np.testing.assert_allclose(*(one["value"].astype(float) for one in (first, second)), atol=1e-12)
    difference = compare_files(dict(zip("ab", tables, strict=True)), "a").loc["b"]
    assert difference["estimate"] == 0
    assert difference["questions"] == 50


def test_what_a_careful_person_would_say_is_seven_rows() -> None:
    rng = np.random.default_rng(0)
    table = table_of(rng.random(60), 0.2, rng)
    scores = score_counts(table)
    shown = summarize(scores)
    assert shown.index.tolist() == [
        "questions, scored samples",
        "accuracy",
        "capability Brier, corrected",
        "best constant",
        "gain over the best constant",
        "miscalibration, discrimination (in sample)",
        "AUROC",
    ]
    assert shown.iloc[0] == "60, 1,200"
    limits = mean_interval(table["correct"] / 20, bounds=(0, 1))
    assert shown["accuracy"] == "{:.3f} [{:.3f}, {:.3f}]".format(*limits)
    parts = [scores["value"][name] for name in ("miscalibration", "discrimination")]
    assert shown.iloc[5] == "{:.3f}, {:.3f}".format(*parts)
    assert len(spell_scores(scores)) > 17
    log = table.drop(columns="confidence").assign(total=20)
    assert summarize(score_counts(log)).index.tolist() == [
        "questions, scored samples",
        "accuracy",
        "pass@16",
        "best constant",
    ]


def test_below_ten_questions_nothing_has_an_interval_or_four_decimals() -> None:
    rng = np.random.default_rng(0)
    table = table_of(rng.random(10), 0.2, rng)
    assert score_counts(table).loc["accuracy", ["low", "high"]].notna().all()
    few = table.iloc[:9]
    scores = score_counts(few)
    assert scores[["low", "high"]].isna().all(axis=None)
    assert not re.search(r"\[|\.\d\d\d", " ".join(spell_scores(scores)))
    both = compare_files({"a": few, "b": few.assign(confidence=0.5)}, "a").loc["b"]
    assert both["verdict"] == "too few"
    assert both[["low", "high", "p"]].isna().all()


def test_the_interval_of_a_corrected_score_below_zero_begins_at_the_score(tmp_path: Path) -> None:
    """Samples of all questions alike are said to be so, and by chance less far than they are."""
    path = tmp_path / "mine.csv"
    rows = [f"q{n},0.5,{1 + n % 3},4" for n in range(60)]
    path.write_text("question_id,confidence,correct,total\n" + "\n".join(rows))
    found = score_files([path])
    scores = found.rows[0].set_index("metric")
    value, low, high = scores.loc["capability Brier, corrected", ["value", "low", "high"]]
    # (1/24 of mu_hat's spread less the mean of mu_hat (1 - mu_hat) / 3)
    assert value == pytest.approx(2 / 3 / 16 - (2 * 3 / 16 + 1 / 4) / 9)
    assert value == low < 0 < high, "as `score --model` has it: no error bar is negative"
    note = f"{path}: a corrected score below 0 is noise of sampling: the true one is 0 or more"
    assert note in found.below


def test_counts_far_from_any_noise_have_no_interval() -> None:
    table = pd.DataFrame(
        {"confidence": 0.5, "correct": 1, "total": 2}, [f"q{n}" for n in range(20)]
    )
    scores = score_counts(table)
    row = scores.loc["capability Brier, corrected"]
    assert row["value"] == -0.25
    assert row[["low", "high"]].isna().all()


def test_the_gain_of_a_file_is_tested_within_the_bounds_of_its_constant() -> None:
    rng = np.random.default_rng(0)
    table = table_of(rng.beta(8, 8, 60), 0.1, rng)
    share = table["correct"] / 20
    floor = share * (1 - share) / 19
    others = (share.sum() - share) / 59
    terms = pd.DataFrame(
        {
            "constant": (others - share) ** 2 - floor,
            "mine": (table["confidence"] - share) ** 2 - floor,
        }
    )
    bounds = bounds_over_constant(share.mean())
    expected = gains(terms, "constant", bounds=bounds).loc["mine"]
    row = score_counts(table).loc["gain over the best constant"]
    assert row[["value", "low", "high"]].tolist() == pytest.approx(
        expected[["estimate", "low", "high"]].tolist()
    )


def test_what_rests_on_fewer_questions_says_so() -> None:
    rng = np.random.default_rng(0)
    table = table_of(rng.random(40), 0.2, rng)
    table.loc[table.index[5:], ["correct", "total"]] = 1
    shown = summarize(score_counts(table))
    assert re.fullmatch(r"0\.\d\d\d \[.*\]", shown["accuracy"])
    assert re.fullmatch(r"-?\d\.\d\d on 5 questions", shown["capability Brier, corrected"])
    assert re.fullmatch(r"-?\d\.\d\d on 5 questions", shown["gain over the best constant"])
    assert shown.iloc[5].count("on 5 questions") == 1
    ones = table.assign(correct=rng.integers(0, 2, 40), total=1)
    shown = summarize(score_counts(ones))
    response = (ones["confidence"] - ones["correct"]) ** 2
    assert shown["expected response Brier"] == f"{response.mean():.3f}"
    assert "capability Brier, corrected" not in shown


def test_a_log_is_counted_as_it_is() -> None:
    table = read_file(LOG).table
    assert table["total"].tolist() == [3, 3, 3]
    assert table["correct"].tolist() == [1, 1, 2], "by the rules: the log has one score for three"
    scores = score_counts(table)
    assert scores.loc["accuracy", "value"] == pytest.approx(4 / 9)
    # 1 - C(2, 2) / C(3, 2) of one correct sample in three, and 1 of two
    assert scores.loc["pass@2", "value"] == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)
    assert read_file(LOG).notes == [BY_RULES]
    epochs = read_file(LOG.with_name("counts.eval"))
    assert epochs.notes == ["verdicts by match"], "each epoch has its verdict"
    assert epochs.table["total"].tolist() == [3, 3, 3]


def test_one_sample_does_not_take_the_corrected_score_from_the_others(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(CSV + "c,0.5,1,1\n")
    found = read_file(path)
    assert found.notes == ["no corrected score of 1 question: one scored sample"]
    scores = score_counts(found.table)
    assert scores.loc["questions", "value"] == 3
    assert scores.loc["capability Brier, corrected", "value"] == pytest.approx(-0.125)
    on = scores["questions"].to_dict()
    assert scores.loc["correctness variance", "value"] == pytest.approx((1 / 4 + 0 + 0) / 3)
    assert (on["best constant"], on["correctness variance"]) == (2, 3)


def test_a_data_frame_is_scored_in_one_call_as_its_file_is(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = table_of(rng.random(30), 0.2, rng).astype({"correct": int})
    path = tmp_path / "mine.csv"
    table.rename_axis("question_id").to_csv(path)
    wanted = score_counts(read_file(path).table)
    named = table.rename_axis("question_id").reset_index()
    nullable = pd.concat([named[:10], named[10:].set_axis(range(20))]).convert_dtypes()
    for given in (table, named, named.sample(frac=1, random_state=0), nullable):
        pd.testing.assert_frame_equal(score_table(given), wanted)
    samples = pd.DataFrame({"question_id": ["a", "a", "b"], "confidence": [0.5, 0.5, 1]})
    samples["correct"] = [True, False, True]
    for given in (samples, samples.set_index("question_id")):
        scores = score_table(given)
        assert scores.loc[["questions", "scored samples"], "value"].tolist() == [2, 3]
    counts = score_table(table[["correct", "total"]])
    assert counts.loc["accuracy"].equals(wanted.loc["accuracy"])
    assert "AUROC" not in counts.index


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"correct": 3}, "the table, row 0: question 'a' has more correct samples than its total"),
        ({"confidence": None}, "the table, row 0: question 'a' has no confidence, as 2 of 2 rows"),
    ],
)
def test_a_data_frame_is_checked_as_a_file_is(change: dict[str, object], said: str) -> None:
    table = pd.DataFrame({"confidence": 0.5, "correct": 1, "total": 2}, ["a", "b"])
    with pytest.raises(InputError, match=said):
        score_table(table.assign(**change))
    with pytest.raises(InputError, match="the table: no column correct; needed: question_id, conf"):
        score_table(table.rename(columns={"correct": "right"}))
