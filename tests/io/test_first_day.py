"""What a first store or file has, little or odd as it is, is scored as far as it goes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from capcal_lib.questions import load_questions


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
    more = "capcal sample --model simulated --dataset mini-capitals .*--split test .*--k 2"
    assert re.search(more, ended.stdout)
    assert ended.stdout.count("Uniform random") == 1
    rows = capcal("score", "--model", "simulated", "--store", tmp_path, "--json").stdout
    assert {json.loads(row)["dataset"] for row in rows.splitlines()} == {"mini-exam"}


@pytest.mark.parametrize(
    ("counts", "said", "lacking"),
    [
        ("3,4", "1 question, too few for intervals", "best constant"),
        ("1,1", "1 question, too few for intervals", "correctness variance"),
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


def test_an_imported_log_of_single_samples_is_scored_as_far_as_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of its samples has a second one, and of one question there is no verdict at all."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "question_id": name,
            "question": f"{name}?",
            "response": "4",
            "gold": gold,
            "verdict": said,
        }
        for name, gold, said in (("a", "4", "correct"), ("b", "5", "incorrect"), ("c", "6", "P"))
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    named = ["--model", "mine", "--store", tmp_path / "store"]
    made = capcal("import", file, *named, "--dataset", "sums", "--temperature", "1")
    assert made.returncode == 0, made.stderr
    assert "1 sample without a verdict left out" in made.stdout
    page = tmp_path / "report.html"
    for more in ([], ["--json"], ["--html", page]):
        ended = capcal("score", *named, *more)
        assert ended.returncode == 0, ended.stderr
        assert "Traceback" not in ended.stderr
    assert "  accuracy 0.50\n  3 questions, too few for intervals" in ended.stdout
    assert "capcal import FILE... --model mine --dataset sums " in ended.stdout
    assert "No question has two scored samples" in page.read_text()


@pytest.mark.parametrize(
    ("labels", "answer", "gold"),
    [
        (["1", "2", "3", "4"], "3", "C"),
        (["0", "1", "2", "3"], "3", "D"),
        (["P", "Q", "R", "S"], "Q", "B"),
        (["D", "C", "B", "A"], "D", "A"),
        (["4", "3", "2", "1"], "1", "D"),
    ],
)
def test_the_labels_of_options_are_read_and_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: list[str], answer: str, gold: str
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = ["red", "green", "blue", "grey"]
    folder = tmp_path / "capcal.d" / "datasets"
    folder.mkdir(parents=True)
    choices = {"text": texts, "label": labels}
    row = {"id": "a", "question": "Sky?", "choices": choices, "answer": answer}
    (folder / "sky.jsonl").write_text(json.dumps(row) + "\n")
    facts = {"name": "sky", "domain": "mine", "kind": "choice"}
    facts |= {"splits": {"test": {"file": "sky.jsonl"}}}
    (folder / "sky.yaml").write_text(json.dumps(facts))
    (question,) = load_questions("sky")
    assert question.answer.gold == gold
    assert question.answer.aliases == (texts["ABCD".index(gold)],)
