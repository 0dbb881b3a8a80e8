"""Files are compared, and what came of it is said."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.io.comparing import compare_files, in_words
from capcal_lib.io.score_file import score_counts, score_files
from capcal_lib.io.tables import read_confidences, read_counts, read_file
from capcal_lib.metrics import gains, mean_interval, questions_needed
from tests.io.files import CSV, GROUPED, LOG, table_of


def test_files_that_count_differently_are_not_compared(tmp_path: Path) -> None:
    one, other, apart = tmp_path / "one.csv", tmp_path / "other.csv", tmp_path / "apart.csv"
    one.write_text(CSV)
    other.write_text(CSV.replace("2,2", "1,2"))
    apart.write_text(CSV.replace("a,", "c,").replace("b,", "d,"))
    first = read_confidences(one).table
    with pytest.raises(
        InputError, match="question 'b' has other correct and total in one file than in another"
    ):
        compare_files({"one": first, "other": read_confidences(other).table}, "one")
    found = compare_files({"one": first, "apart": read_confidences(apart).table}, "one")
    assert found["sentence"].tolist() == ["apart and one ask different questions: not compared"]
    with pytest.raises(InputError, match="logs without confidences are not compared"):
        compare_files({"one": first, "log": read_counts(LOG).table}, "one")


def test_logs_of_other_tasks_are_not_compared(tmp_path: Path) -> None:
    tables = {}
    for name in "ab":
        rows = [
            {"question_id": n, "question": f"{name}{n}", "response": "B", "gold": "B"} for n in "01"
        ]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        tables[name] = read_file(path).table
    (sentence,) = compare_files(tables, "a")["sentence"]
    assert sentence == "b and a ask different questions: not compared"
    shown = score_files([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert (
        shown.below[-1]
        == f"{tmp_path}/b.jsonl and {tmp_path}/a.jsonl ask different questions: not compared"
    )
    (sentence,) = compare_files({"a": tables["a"], "c": tables["a"]}, "a")["sentence"]
    assert sentence.startswith("c and a have the same confidences, or accuracies, on 2 questions")


def test_what_two_files_say_is_said_with_its_direction() -> None:
    rng = np.random.default_rng(0)
    mu = rng.random(300)
    tables = {"sharp": table_of(mu, 0.1, rng), "blunt": table_of(mu, 0.4, rng)}
    for rival, other in (("sharp", "blunt"), ("blunt", "sharp")):
        said = compare_files(tables, rival)["sentence"][other]
        assert said.startswith("sharp is better than blunt by 0."), "whichever comes first"
        assert said.endswith("on 300 questions that both have")
    tables["copy"] = tables["sharp"] + {"confidence": 1e-11, "correct": 0, "total": 0}
    said = compare_files(tables, "sharp")["sentence"]["copy"]
    assert said.startswith("copy and sharp have the same confidences, or accuracies, on 300")
    tables["like"] = table_of(mu, 0.105, rng)
    row = compare_files(tables, "sharp").loc["like"]
    assert row["sentence"].startswith("these data cannot tell like and sharp apart (")
    assert row["sentence"].endswith(", and are too few to say how many would")
    assert np.isnan(row["needed"]), "the gain is smaller than its standard error"
    tables["less"] = table_of(mu, 0.12, rng)
    row = compare_files(tables, "sharp").loc["less"]
    terms = (tables["sharp"]["confidence"] - tables["sharp"]["correct"] / 20) ** 2
    terms -= (tables["less"]["confidence"] - tables["less"]["correct"] / 20) ** 2
    by_hand = np.ceil(questions_needed(terms))
    assert row["verdict"] == "inconclusive"
    assert row["needed"] == by_hand > 300
    assert row["sentence"].endswith(f": about {by_hand:,.0f} questions or more would")


def test_one_file_is_compared_with_the_best_constant() -> None:
    rng = np.random.default_rng(0)
    sharp = table_of(rng.random(300), 0.1, rng)
    said = in_words("sharp", sharp, score_counts(sharp))
    assert said.startswith("sharp is better than the best constant by 0.")
    assert said.endswith("on 300 questions"), "which both have anyway"
    single = sharp.assign(correct=1, total=1)
    said = in_words("single", single, score_counts(single))
    assert "draw two or more of each" in said


@pytest.mark.parametrize("head", ["subject", "cluster", "Subject", "CLUSTER"])
def test_subjects_of_a_file_vary_whole(head: str, tmp_path: Path) -> None:
    path, plain = tmp_path / "mine.csv", tmp_path / "plain.csv"
    path.write_text(GROUPED.format(head))
    plain.write_text(GROUPED.format("colour"))
    found = read_file(path)
    assert found.table["cluster"].tolist() == [f"s{n // 10}" for n in range(60)]
    assert f"whole {head.lower()}s vary: 6 of them" in found.notes
    row = score_counts(found.table).loc["accuracy"]
    mu_hat = found.table["correct"] / found.table["total"]
    expected = mean_interval(mu_hat, clusters=found.table["cluster"], bounds=(0, 1))
    assert row[["value", "low", "high"]].tolist() == list(expected)
    alone = score_counts(read_file(plain).table).loc["accuracy"]
    assert row["high"] - row["low"] > 1.5 * (alone["high"] - alone["low"])
    other = read_file(path).table.assign(confidence=0.5)
    both = {"mine": found.table, "other": other.sample(frac=1, random_state=0)}
    tested = compare_files(both, "mine").loc["other"]
    terms = pd.DataFrame(
        {name: (table["confidence"] - mu_hat) ** 2 for name, table in both.items()}, mu_hat.index
    )
    by_hand = gains(terms, "mine", clusters=found.table["cluster"]).loc["other"]
    assert tested[["low", "high", "p"]].tolist() == by_hand[["low", "high", "p"]].tolist()
    with pytest.raises(InputError, match="some files have a column cluster or subject and others"):
        compare_files({"mine": found.table, "plain": read_file(plain).table}, "mine")
    regrouped = found.table.assign(cluster="all")
    with pytest.raises(InputError, match="other correct and total and cluster in one file than in"):
        compare_files({"mine": found.table, "regrouped": regrouped}, "mine")
