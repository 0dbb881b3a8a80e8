"""Files are compared, and what came of it is said."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.io.score_file import compare_files, score_counts, score_files
from capcal_lib.io.tables import read_counts, read_file
from capcal_lib.metrics import gains, mean_interval
from tests.io.files import CSV, GROUPED, LOG, table_of


def test_files_that_count_differently_are_not_compared(tmp_path: Path) -> None:
    one, other, apart = tmp_path / "one.csv", tmp_path / "other.csv", tmp_path / "apart.csv"
    one.write_text(CSV)
    other.write_text(CSV.replace("2,2", "1,2"))
    apart.write_text(CSV.replace("a,", "c,").replace("b,", "d,"))
    first = read_file(one).table
    with pytest.raises(
        InputError, match="question 'b' has other correct and total in one file than in another"
    ):
        compare_files({"one": first, "other": read_file(other).table}, "one")
    found = compare_files({"one": first, "apart": read_file(apart).table}, "one")
    assert found["sentence"].tolist() == [
        "too few to tell apart and one apart: 0 questions that both have"
    ]
    with pytest.raises(InputError, match="files are compared that all have confidences"):
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
    with pytest.raises(InputError, match="question '0' has other gold and question in one file"):
        compare_files(tables, "a")
    tables["b"] = tables["b"].assign(question=tables["a"]["question"], correct=0)
    assert compare_files(tables, "a").loc["b", "estimate"] == -1, "by accuracy"


def test_what_two_files_say_is_said_with_its_direction() -> None:
    rng = np.random.default_rng(0)
    mu = rng.random(300)
    tables = {"sharp": table_of(mu, 0.1, rng), "blunt": table_of(mu, 0.4, rng)}
    for rival, other in (("sharp", "blunt"), ("blunt", "sharp")):
        row = compare_files(tables, rival).loc[other]
        assert row["sentence"].startswith(f"{other} is {row['verdict']} than {rival} by 0.")
        assert row["sentence"].endswith("on 300 questions that both have")
        assert (row["verdict"] == "better") == (other == "sharp")
    tables["like"] = table_of(mu, 0.105, rng)
    row = compare_files(tables, "sharp").loc["like"]
    assert row["sentence"].startswith("these data cannot tell like and sharp apart: ")


def test_one_file_is_compared_with_the_best_constant(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sharp, path = table_of(rng.random(300), 0.1, rng), tmp_path / "sharp.csv"

    def said(table: pd.DataFrame) -> str:
        table.rename_axis("question_id").to_csv(path)
        return score_files([path]).below[-1]

    gain = score_counts(sharp).loc["gain over the best constant"]
    limits = f"{gain['value']:.3f} [{gain['low']:.3f}, {gain['high']:.3f}]"
    assert said(sharp) == f"{path} is better than the best constant by {limits}, on 300 questions"
    worse = sharp.assign(confidence=1 - sharp["confidence"])
    assert said(worse).startswith(f"{path} is worse than the best constant by 0.")
    unsure = sharp.assign(confidence=sharp["correct"].mean() / 20)
    assert said(unsure).startswith(f"these data cannot tell {path} and the best constant apart: ")
    few = f"too few to tell {path} and the best constant apart: 9 questions"
    assert said(sharp.iloc[:9]) == few


@pytest.mark.parametrize("head", ["subject", "CLUSTER"])
def test_subjects_of_a_file_vary_whole(head: str, tmp_path: Path) -> None:
    path, plain = tmp_path / "mine.csv", tmp_path / "plain.csv"
    path.write_text(GROUPED.format(head))
    plain.write_text(GROUPED.format("colour"))
    found = read_file(path)
    assert found.table["cluster"].tolist() == [f"s{n // 10}" for n in range(60)]
    assert "whole subjects vary: 6 of them" in found.notes
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
    with pytest.raises(
        InputError, match="files are compared that all have confidences and subjects, or none"
    ):
        compare_files({"mine": found.table, "plain": read_file(plain).table}, "mine")
    regrouped = found.table.assign(cluster="all")
    with pytest.raises(InputError, match="other correct and total and cluster in one file than in"):
        compare_files({"mine": found.table, "regrouped": regrouped}, "mine")
