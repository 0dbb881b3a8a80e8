"""What a first store or file has, little or odd as it is, is scored as far as it goes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def capcal(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "capcal_lib.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def draw(store: Path, dataset: str, k: int, limit: int = 6) -> None:
    run = ["--model", "simulated", "--dataset", dataset, "--store", store]
    for words in (["sample", "--k", str(k), "--limit", str(limit)], ["grade"]):
        assert capcal(words[0], *run, *words[1:]).returncode == 0


def test_one_sample_a_question_has_an_accuracy_and_loses_no_other_run(tmp_path: Path) -> None:
    draw(tmp_path, "mini-capitals", k=1)
    draw(tmp_path, "mini-exam", k=4)
    ended = capcal(
        "score", "--model", "simulated", "--store", tmp_path, "--html", tmp_path / "r.html"
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("accuracy ") == 2
    assert "--dataset mini-capitals --split test --k 2 --store" in ended.stdout
    assert ended.stdout.count("Uniform random") == 1
    rows = capcal("score", "--model", "simulated", "--store", tmp_path, "--json").stdout
    assert {json.loads(row)["dataset"] for row in rows.splitlines()} == {"mini-exam"}


@pytest.mark.parametrize(
    ("counts", "said", "lacking"),
    [
        ("3,4", "one question says nothing of others", "best constant"),
        ("1,1", "one question says nothing of others", "correctness variance"),
    ],
)
def test_a_file_with_one_question_is_scored(
    tmp_path: Path, counts: str, said: str, lacking: str
) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(f"question_id,confidence,correct,total\na,0.78,{counts}\n")
    ended = capcal("score", file)
    assert ended.returncode == 0
    assert ended.stderr == "" or "no corrected score" in ended.stderr
    assert said in ended.stdout
    assert lacking not in ended.stdout
    assert "accuracy" in ended.stdout
