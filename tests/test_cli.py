"""The command as a person meets it: one line and exit status 2 for bad input, never a traceback."""

import ast
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from capcal_lib import cli
from capcal_lib.manifests import dataset_names, model_names
from capcal_lib.places import RECORDED_RUNS, ROOT
from capcal_lib.probes.features import read_features
from capcal_lib.questions import load_questions
from capcal_lib.results import load_results, score
from capcal_lib.runs import Run, open_runs
from capcal_lib.runs.artifacts import CONFIDENCES
from capcal_lib.runs.store import read_samples
from capcal_lib.sampling.engines import Failure
from capcal_lib.sampling.engines.simulated import SimulatedEngine
from tests.command import run
from tests.folders import list_runs

Capcal = Callable[..., tuple[int, str, str]]
SIMULATED = ("--model", "simulated", "--dataset", "mini-exam")
CSV = "question_id,confidence,correct,total\na,0.5,1,2\nb,1.0,2,2\n"


@pytest.fixture
def capcal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Capcal:
    """The command in this process: its status and what it printed."""
    return partial(run, monkeypatch, capsys)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def json_lines(out: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines()]


# From samples to confidences


def test_a_run_from_sample_to_confidence(tmp_path: Path, capcal: Capcal) -> None:
    where = ("--model", "simulated", "--dataset", "mini-capitals", "--store", tmp_path)
    status, out, err = capcal("sample", *where, "--k", 3, "--limit", 5)
    assert status == 0
    assert "15 samples drawn, 0 already there" in out
    assert "15 of 15 samples" in err
    out = capcal("sample", *where, "--k", 4, "--limit", 5)[1]
    assert "5 samples drawn, 15 already there" in out
    (step,) = re.findall(r"next: (.*)", capcal("status", "--store", tmp_path)[1])
    assert step.startswith("capcal grade --model simulated")
    assert "20 samples graded, 0 graded again" in capcal("grade", *where)[1]
    assert "0 samples graded, 0 graded again" in capcal("grade", *where)[1]
    assert capcal("confidence", *where, "--method", "p-true")[1].startswith("p-true: 5 conf")
    status, _, err = capcal("confidence", *where, "--method", "consistency")
    assert (status, "no question has 12 samples, 10 to vote" in err) == (2, True)
    status, _, err = capcal("confidence", *where, "--method", "p-true", "--name", "mine")
    assert (status, "use either --method, or --from FILE with --name NAME" in err) == (2, True)
    assert "5 questions" in capcal("features", *where)[1]
    capcal("features", *where, "--layers", "max")
    assert len(read_features(Run(list_runs(tmp_path)[0]), "max")[0]) == 5
    assert len(read_samples(Run(list_runs(tmp_path)[0]))) == 5 * 4


def test_a_method_that_gives_no_confidence_has_failed(
    tmp_path: Path, capcal: Capcal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(self: object, requests: list[object], words: list[str], *_: object) -> tuple[Any, Any]:
        return np.full((len(requests), len(words)), np.nan), np.ones(len(requests))

    where = (*SIMULATED, "--store", tmp_path)
    capcal("sample", *where, "--k", 1, "--limit", 3)
    monkeypatch.setattr(SimulatedEngine, "next_token_logprobs", told)
    status, out, err = capcal("confidence", *where, "--method", "p-true")
    assert (status, out) == (1, "p-true: 0 confidences kept, 3 missing; 3 tokens\n")
    assert "3 are missing: the engine told the probability of no spelling of Yes" in err


def test_a_setting_or_a_key_chooses_one_of_several_runs(tmp_path: Path, capcal: Capcal) -> None:
    where = (*SIMULATED, "--store", tmp_path)
    for limit, setting in ((3, []), (4, ["--seed", 1]), (5, ["--temperature", 0.5])):
        capcal("sample", *where, "--k", 2, "--limit", limit, *setting)
    for limit, choice in ((3, []), (4, ["--run", "seed=1"]), (5, ["--run", "temperature=0.50"])):
        assert capcal("grade", *where, *choice)[1].startswith(f"{2 * limit} samples graded")
    *_, last = list_runs(tmp_path)
    assert capcal("features", *where, "--run", last.name[:6])[0] == 0
    assert (last / "features.parquet").exists()


@pytest.mark.parametrize(
    ("typed", "choice"),
    [
        ("1f0c2", "1f0c2"),
        ("seed=1,temperature=0.50,top_k=None", {"seed": 1, "temperature": 0.5, "top_k": "None"}),
        ("questions=012345678901", {"questions": "012345678901"}),  # a digest is a text
    ],
)
def test_a_choice_of_runs_is_read_as_values(typed: str, choice: object) -> None:
    read = cli._parse_choice(typed)
    assert read == choice
    if isinstance(read, dict) and isinstance(choice, dict):
        assert [type(read[name]) for name in read] == [type(choice[name]) for name in choice]


REPRODUCE = ["reproduce", "--model", "simulated"]
SAMPLE = ["sample", "--store", "store", "--k"]
BAD = {
    "verdicts of nobody": (
        [*REPRODUCE, "--verdicts", "mine"],
        "verdicts must be 'rules' or 'judge:MODEL', such as judge:gpt-oss-20b; got 'mine'",
    ),
    "a part of none": ([*REPRODUCE, "--part", "3"], "a part is NUMBER/PARTS, such as 3/8; got 3"),
    "a part without a number": ([*REPRODUCE, "--part", "x/8"], "such as 3/8; got x/8"),
    "unknown setting": (
        ["grade", *SIMULATED, "--run", "sead=1"],
        "unknown setting 'sead'; known: chat_template, context_tokens, ",
    ),
    "unknown model": (
        [*SAMPLE, 1, "--model", "gpt-9", "--dataset", "gsm8k"],
        "unknown model 'gpt-9'; known: ",
    ),
    "no model": (["grade", "--model", "gpt-9", "--dataset", "gsm8k"], "unknown model 'gpt-9'"),
    "unknown split": (
        [*SAMPLE, 1, *SIMULATED, "--split", "eval"],
        "'eval'; known: test, train",
    ),
    "unknown engine": ([*SAMPLE, 1, *SIMULATED, "--engine", "cloud"], "unknown engine 'cloud'; kn"),
    "no samples": ([*SAMPLE, 0, *SIMULATED], "must be at least 1; got 0"),
    "no ids": ([*SAMPLE, 1, *SIMULATED, "--ids", "none"], "none: there is no such file"),
    "no run": (
        ["judge", *SIMULATED, "--judge", "simulated", "--run", "seed=9", "--store", "store"],
        "make them with: capcal sample --model simulated",
    ),
    "no store": (["status", "--store", "nowhere"], "nowhere is not a folder"),
    "all metrics": (["score", "nowhere.csv", "--all"], "--json prints every metric"),
    "the value of a correct sample": (
        ["score", "nowhere.csv", "--correct", "pass"],
        'say it in the table: table["verdict"] = table["verdict"] == "pass"',
    ),
    "a file and a choice of runs": (
        ["score", "nowhere.csv", "--run", "zzz"],
        "--run applies to --model only",
    ),
    "a model and a key": (
        ["score", "--model", "simulated", "--key", "k.csv"],
        "--key applies to files only",
    ),
    "neither file nor model": (["score"], "name either files"),
    "an unknown option": (["status", "--nope"], "No such option: --nope"),
    "what is no number": ([*SAMPLE, "two", *SIMULATED], "Invalid value for '--k'"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_status_2(
    arguments: list[object], message: str, folder: Path, capcal: Capcal
) -> None:
    status, out, err = capcal(*arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert list(folder.rglob("*")) == [], "something was written"


def test_a_judge_judges_each_answer_once_and_its_verdicts_are_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capcal: Capcal
) -> None:
    class Kind(SimulatedEngine):
        def sample(self, requests, sampling, seed):  # type: ignore[no-untyped-def]
            for [one] in super().sample(requests, sampling, seed):
                yield [replace(one, response="CORRECT")]

    class Refused(SimulatedEngine):
        def sample(self, requests, sampling, seed):  # type: ignore[no-untyped-def]
            for one in requests:
                yield Failure(one.question.id, one.sample_indices, "status 400: no")

    asked: list[dict[str, Any]] = []

    def open_as(engine: type[SimulatedEngine]) -> None:
        opened = "capcal_lib.grading.judgements.open_engine"

        def open_engine(model: Any, name: str | None = None, **given: Any) -> SimulatedEngine:
            asked.append(given)
            return engine(model)

        monkeypatch.setattr(opened, open_engine)

    where = ("--model", "simulated", "--dataset", "mini-capitals", "--store", tmp_path)
    capcal("sample", *where, "--k", 10, "--limit", 5)
    status, _, err = capcal("judge", *where, "--judge", "simulated")
    assert (status, "no verdicts in" in err) == (2, True)
    capcal("grade", *where)
    open_as(Refused)
    status, _, err = capcal("judge", *where, "--judge", "simulated")
    assert (status, "answers got no reply (" in err) == (1, True)
    open_as(Kind)
    status, out, err = capcal("judge", *where, "--judge", "simulated", "--in-flight", 3)
    assert asked[-1]["in_flight"] == 3
    assert (status, "distinct answers judged, 0 already there" in out) == (0, True)
    assert "10 of 10 answers" in err
    uniform = []
    for verdicts in ("rules", "judge:simulated"):
        rows = json_lines(capcal("score", *where, "--json", "--verdicts", verdicts)[1])
        uniform += [row["brier"] for row in rows if row["method"] == "Uniform random"]
    assert uniform[0] != uniform[1] == pytest.approx(1 / 3), "all are correct, says the judge"
    status, _, err = capcal("score", *where, "--verdicts", "judge:gpt-9")
    assert (status, "unknown judge 'gpt-9'; known: simulated" in err) == (2, True)


def test_most_samples_without_an_answer_are_said(folder: Path, capcal: Capcal) -> None:
    row = {"question_id": "a", "question": "Why?", "gold": "4"}
    texts = ["It is 4.", "Hm.\nI cannot say", "I cannot say"]
    rows = "".join(json.dumps(row | {"response": text}) + "\n" for text in texts)
    Path("rows.jsonl").write_text(rows)
    line = '2 of 3 samples have no answer that the rules read; commonest last lines: 2 times "I'
    assert line in capcal("score", "rows.jsonl")[1]
    named = ("--model", "mine", "--dataset", "sums", "--store", "runs")
    capcal("import", "rows.jsonl", *named, "--temperature", 1)
    assert line in capcal("grade", *named)[1]


def test_grade_file(folder: Path, capcal: Capcal) -> None:
    row = {"kind": "number", "gold": "7", "response": "The answer is 7."}
    Path("rows.jsonl").write_text(json.dumps(row) + "\n")
    status, out, _ = capcal("grade-file", "rows.jsonl", "--out", "out.jsonl")
    assert (status, out) == (0, "wrote out.jsonl\n")
    assert json.loads(Path("out.jsonl").read_text())["verdict"] == "correct"


# A store


def test_merge_status_and_verify(tmp_path: Path, capcal: Capcal) -> None:
    one, other, both = (tmp_path / name for name in ("one", "other", "both"))
    for store, limit in ((one, 2), (other, 3)):
        capcal("sample", *SIMULATED, "--k", 2, "--limit", limit, "--store", store)
    status, out, _ = capcal("merge", both, one, other)
    assert status == 0
    assert "4 samples copied, 0 already there" in out
    assert "2 samples copied, 4 already there" in out
    status, out, _ = capcal("verify", "--store", both)
    assert (status, "ok, 6 samples of 3 questions" in out) == (0, True)
    (row,) = json_lines(capcal("status", "--json", "--store", both)[1])
    assert row["samples"] == 6
    (folder,) = list_runs(both)
    next(folder.glob("samples-*")).unlink()
    status, out, _ = capcal("verify", "--store", both)
    assert (status, "6 samples missing, which `capcal sample` draws" in out) == (1, True)
    for store in (one, other):
        capcal("confidence", *SIMULATED, "--method", "p-true", "--store", store)
    [run] = open_runs(other)
    kept = run.path(CONFIDENCES, "p-true")
    pq.write_table(pq.read_table(kept).replace_schema_metadata({"words": "others"}), kept)
    out = capcal("merge", tmp_path / "again", one, other)[1]
    assert "which was made with other settings than" in out


def test_samples_are_shown_where_their_question_is_not_at_hand(
    tmp_path: Path, capcal: Capcal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(tmp_path))
    asked = ("--model", "qwen2.5-coder-0.5b", "--dataset", "gsm8k", "--split", "test")
    status, out, err = capcal(
        "show", *asked, "--question", "gsm8k/test/100", "--store", RECORDED_RUNS
    )
    assert (status, err.count("\n")) == (0, 1)
    assert "test.jsonl.gz does not exist; set CAPCAL_DATA_DIR" in err
    assert out.startswith("sample 0: ")


def test_a_run_is_looked_at_and_removed(tmp_path: Path, capcal: Capcal) -> None:
    questions = {one.id: one for one in load_questions("mini-exam")}
    names = sorted(questions)[:2]
    ids = tmp_path / "ids.txt"
    ids.write_text("question_id\n" + "\n".join(reversed(names)) + "\n")
    store = ("--store", tmp_path / "store")
    out = capcal("sample", *SIMULATED, *store, "--k", 3, "--ids", ids)[1]
    assert "6 samples drawn" in out
    (made,) = open_runs(tmp_path / "store")
    key = made.folder.name
    out = capcal("show", key[:5], *store)[1]
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [[name, "3"] for name in names]
    out = capcal("show", key, "--question", names[0], *store)[1]
    assert "sample 2: not graded\n" in out
    capcal("grade", *SIMULATED, *store)
    out = capcal("show", key, "--question", names[0], *store)[1]
    assert out.startswith(questions[names[0]].text.split("\n")[0])
    assert f"right answer: {questions[names[0]].answer.gold}" in out
    assert "correct, extracted" in out
    capcal("sample", *SIMULATED, *store, "--k", 4, "--ids", ids)
    partly = capcal("show", key, "--question", names[0], *store)[1]
    assert partly.startswith(out)
    assert "sample 3: not graded\n" in partly
    assert "' (boxed)\n" in out, "where the answer was found"
    heads, *_ = capcal("show", key, *store)[1].splitlines()
    assert heads.split() == ["question_id", "samples", "correct", "not_scored"]
    for wrong in ((key, "--question", "nowhere"), (key, "--split", "train"), ("ffff",)):
        assert capcal("show", *wrong, *store)[0] == 2
    out = capcal("rm", key, *store)[1]
    assert "8 samples, verdicts: stale: 6 of 8" in out
    assert made.folder.exists()
    assert out == capcal("rm", *SIMULATED, *store)[1]
    hint = shlex.split(out.rpartition("to remove it: capcal ")[2])
    assert capcal(*hint)[0] == 0
    assert not list_runs(tmp_path / "store")
    for text, said in (("nowhere\n", "has no question 'nowhere'"), ("question_id\n", "has no ids")):
        ids.write_text(text)
        status, _, err = capcal("sample", *SIMULATED, *store, "--k", 3, "--ids", ids)
        assert (status, said in err) == (2, True)


def test_the_store_may_come_from_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capcal: Capcal
) -> None:
    monkeypatch.setenv("CAPCAL_STORE", "mine")
    capcal("sample", *SIMULATED, "--k", 1, "--limit", 1)
    assert len(list_runs(folder / "mine")) == 1
    Path("mine.csv").write_text(CSV)
    assert capcal("score", "mine.csv")[0] == 0, "which no file is asked of"


# Scores


def test_score_by_hand(folder: Path, capcal: Capcal) -> None:
    Path("mine.csv").write_text(CSV)
    rows = json_lines(capcal("score", "mine.csv", "--json")[1])
    scores = {row["metric"]: row["value"] for row in rows}
    assert scores["questions"] == 2
    assert scores["capability Brier, plug-in"] == 0
    assert scores["capability Brier, corrected"] == -0.125  # (0 - 0.25 / 1) / 2
    assert scores["expected response Brier"] == 0.125
    assert scores["correctness variance"] == 0.125
    out = capcal("score", "mine.csv")[1]
    assert "capability Brier, corrected                 -0.12" in out, "to two decimals"
    assert "plug-in" not in out, "seven rows"


def test_scores_as_json_with_a_comparison(folder: Path, capcal: Capcal) -> None:
    Path("mine.csv").write_text(CSV)
    Path("other.csv").write_text(CSV.replace("0.5", "0.1"))
    _, out, err = capcal("score", "mine.csv", "other.csv", "--json")
    as_text = capcal("score", "mine.csv", "other.csv")[1]
    notes = {line for line in err.splitlines() if line}
    assert set() < notes <= {*as_text.splitlines()}
    first, *_, last = json_lines(out)
    named = {"file": "mine.csv", "metric": "questions", "value": 2.0, "low": None, "high": None}
    assert first == named | {"questions": 2}
    assert (last["file"], last["against"]) == ("other.csv", "mine.csv")
    assert last["estimate"] == pytest.approx(-0.16 / 2), "the other file is worse"


def test_a_report_says_what_was_scored_and_what_came_of_it(folder: Path, capcal: Capcal) -> None:
    rows = "".join(f"q{n},{n / 100},{n // 5},20\n" for n in range(100))
    Path("one.csv").write_text("question_id,confidence,correct,total\n" + rows)
    Path("key.csv").write_text(Path("one.csv").read_text())
    flat = "".join(f"q{n},0.5\n" for n in range(99))
    Path("two.csv").write_text("question_id,confidence\n" + flat + "q99,\n")
    asked = ("one.csv", "two.csv", "--key", "key.csv")
    assert capcal("score", *asked)[0] == 2
    _, out, _ = capcal("score", *asked, "--drop-missing", "--html", "report.html")
    assert "two.csv: 1 of 100 rows without a confidence left out" in out
    page = Path("report.html").read_text()
    assert out.splitlines()[-1].startswith("two.csv is worse than one.csv by 0.")
    assert f"<p>{out.splitlines()[-1]}</p>" in page
    for name in ("one.csv", "two.csv", "key.csv"):
        assert f"{name} (SHA-256 {sha256(Path(name).read_bytes()).hexdigest()})" in page
    assert "<td>100, 2,000</td>" in page


def test_a_report_never_overwrites_what_is_scored(folder: Path, capcal: Capcal) -> None:
    Path("mine.csv").write_text(CSV)
    Path("link.html").symlink_to("mine.csv")
    status, _, err = capcal("score", "mine.csv", "--html", "link.html")
    assert (status, "would overwrite" in err) == (2, True)
    assert Path("mine.csv").read_text() == CSV


def test_the_first_minute_of_the_readme_is_what_one_sees(folder: Path, capcal: Capcal) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [(rows, shown)] = re.findall(
        r"```\n(question_id,.*?)```\n\n```\n\$ capcal score mine.csv\n(.*?)```", readme, re.DOTALL
    )
    Path("mine.csv").write_text(rows)
    assert shown.split() == capcal("score", "mine.csv")[1].split()


def test_a_file_may_be_standard_input(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capcal: Capcal
) -> None:
    Path("mine.csv").write_text(CSV)
    wanted = capcal("score", "mine.csv", "--json")[1]
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(CSV.encode())))
    status, out, notes = capcal("score", "-", "--json")
    assert (status, out) == (0, wanted.replace('"mine.csv"', '"-"'))
    assert "-: 2 questions, too few for intervals" in notes


def test_one_store_has_one_set_of_numbers(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capcal: Capcal
) -> None:
    where = (*SIMULATED, "--store", "runs")
    out = capcal("reproduce", *where, "--limit", 15)[1]
    made = {
        cells[1]: float(cells[2])
        for line in out.splitlines()
        if (cells := re.split("  +", line.strip()))[0] == "mini-exam" and len(cells) > 2
    }
    rows = json_lines(capcal("score", *where, "--json")[1])
    assert "Response consistency" in made
    scores = score(load_results("runs", "simulated")).loc["mini-exam", "brier"].to_dict()
    assert scores == pytest.approx(made, abs=5e-5)
    assert scores == pytest.approx({row["method"]: row["brier"] for row in rows}, abs=1e-14)
    (proposed,) = [line for line in out.splitlines() if line.startswith("the page with")]
    _, page, _, *given = shlex.split(proposed.partition(": ")[2])
    assert Path(page).is_file(), "from any folder"
    chosen = {"model": "simulated", "store": "runs", "verdicts": "rules", "protocol": "corrected"}
    assert given == [word for name, value in chosen.items() for word in ("-p", name, value)]
    monkeypatch.setattr(cli, "out", Console(width=80))
    shown = capcal("score", *where)[1]
    assert shown.startswith("simulated on mini-exam, simulated")
    assert max(map(len, shown.splitlines())) <= 80


# Hints


def test_what_is_next_after_an_import_is_to_grade(folder: Path, capcal: Capcal) -> None:
    Path("rows.csv").write_text("question_id,question,response,right\na,Why?,4,4\nb,How?,5,6\n")
    named = ("--model", "mine", "--dataset", "sums", "--store", "my runs")
    read = ("--temperature", 1, "--column", "gold=right")
    out = capcal("import", "rows.csv", *named, *read)[1]
    hint = shlex.split(out.splitlines()[-1].removeprefix("next: capcal "))
    assert hint == ["grade", *named[:4], "--split", "test", *named[4:]]
    status, _, err = capcal("score", *named[:2], *named[4:])
    assert status == 2
    proposed = shlex.split(err.strip().rpartition(": capcal ")[2])
    assert proposed[:5] == hint[:5]
    assert capcal(*proposed)[0] == 0
    assert capcal("score", *named[:2], *named[4:])[0] == 0


def proposed_in(module: Path) -> Iterator[str]:
    """Yield the commands that the messages of a module propose, names of a run being filled in."""
    values = {"{size}": "--k 2", "{recipe}": "tuned", "{mix}": ""}
    inside = set()  # pieces of a text that was met before them
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = node.values
            inside |= {*parts}
        elif isinstance(node, ast.Constant) and node not in inside:
            parts = [node]
        else:
            continue
        text = ""
        for part in parts:
            if isinstance(part, ast.Constant):
                text += str(part.value)
                continue
            expression = ast.unparse(part).strip("f'\"")
            if "options" in expression:
                text += "--model simulated --dataset mini-exam --split test"
            elif "store_option" not in expression:
                text += values.get(expression, "2")
        if isinstance(node, ast.Constant) and "\n" in text:  # a docstring
            continue
        yield from re.findall(r"(?:^|: )(capcal [a-z][^;`)\n]*)", text)


def test_every_command_that_a_message_proposes_has_all_that_it_needs(folder: Path) -> None:
    (folder / "DIR").mkdir()
    commands = typer.main.get_command(cli.app)
    modules = (ROOT / "capcal_lib").rglob("*.py")
    proposed = [hint for module in sorted(modules) for hint in proposed_in(module)]
    assert len(proposed) > 15
    for hint in proposed:
        _, name, *words = shlex.split(hint)
        found = commands.get_command(None, name)  # type: ignore[attr-defined]
        assert found, hint
        found.make_context(name, words)  # refuses what lacks or is unknown


def test_a_hint_is_a_whole_command_of_the_store_that_was_typed(
    tmp_path: Path, capcal: Capcal
) -> None:
    store = tmp_path / "my runs"
    in_store = f"--store={store}"

    def follow_hint(name: str, *arguments: object) -> None:
        _, out, err = capcal(*arguments)
        *_, hint = re.findall(r": capcal ([a-z][^;`)\n]*)", out + err)
        words = shlex.split(hint)
        assert words[0] == name
        assert words[words.index("--store") + 1] == str(store)
        few = [word.replace("100", "2") for word in words]
        assert capcal(*few)[0] == 0

    follow_hint("sample", "grade", *SIMULATED, in_store)
    follow_hint("grade", "score", "--model", "simulated", in_store)
    [part] = store.rglob("samples-*.parquet")
    part.unlink()
    follow_hint("sample", "confidence", *SIMULATED, in_store, "--method", "p-true")
    follow_hint("status", "probe", "--model", "simulated", in_store)


# Lists and help


def test_lists_are_json_or_fit_eighty_columns(
    monkeypatch: pytest.MonkeyPatch, capcal: Capcal
) -> None:
    """With the facts of the manifests, as the paper has them."""
    for what, names, fact in (
        ("models", model_names(), "qwen3-8b vllm paper 0.7 0.8 Qwen3-8B"),
        ("datasets", dataset_names(), "gsm8k mathematical reasoning number test 1319, train 7473"),
    ):
        monkeypatch.setattr(cli, "out", Console(width=80))
        shown = capcal(what)[1]
        assert max(map(len, shown.splitlines())) <= 80
        assert fact in [" ".join(line.split()) for line in shown.splitlines()]
        assert [row["name"] for row in json_lines(capcal(what, "--json")[1])] == names


def test_lists_say_what_is_wrong_with_the_manifests_that_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capcal: Capcal
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "broken.yaml").write_text("name: broken\n")
    monkeypatch.setenv("CAPCAL_MANIFESTS", str(tmp_path))
    status, out, err = capcal("models", "--json")
    assert (status, "broken" in out) == (0, False)
    assert err.startswith("capcal: left out: ")
    assert "models/broken.yaml" in err


def test_a_new_manifest_comes_with_the_command_that_tries_it(folder: Path, capcal: Capcal) -> None:
    out = capcal("new", "model", "mine")[1]
    assert out.splitlines()[0] == f"wrote {folder / 'capcal.d' / 'models' / 'mine.yaml'}"
    assert out.splitlines()[1].startswith("try it: capcal sample --model mine --dataset mini-cap")


def test_every_command_explains_itself_with_an_example_that_it_accepts() -> None:
    shown = CliRunner().invoke(cli.app, ["--help"], env={"COLUMNS": "100"}).output
    panels = (cli.SCORE, cli.DRAW, cli.GRADE, cli.STORE, cli.NAMES, cli.BOOK)
    heads = [shown.index(f"─ {panel} ─") for panel in panels]
    assert heads == sorted(heads), "in the order of use"
    commands = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        assert f"│ {name} " in shown
        help_of_one = CliRunner().invoke(cli.app, [name, "-h"])
        assert help_of_one.exit_code == 0
        assert "Example: capcal" in help_of_one.output
        example = command.epilog.removeprefix("Example: capcal ").split()
        assert example[0] == name
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in example if word.startswith("--")} <= options


def test_version(capcal: Capcal) -> None:
    assert capcal("--version")[:2] == (0, f"capcal {version('capcal')}\n")


# Whatever happens


def test_no_table_prints_what_a_terminal_would_act_on(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "\x1b[2J\x1b]0;own\x07 \u202e \x9b"
    cli._print_table(pd.DataFrame({"question_id": [hostile], hostile: [1]}))
    shown = capsys.readouterr().out
    assert not {*shown} & {"\x1b", "\x07", "\u202e", "\x9b"}
    assert shown.count(r"\x1b[2J\x1b]0;own\x07 \u202e \x9b") == 2


def test_no_name_of_a_file_reaches_the_terminal_as_a_command(
    tmp_path: Path, capcal: Capcal
) -> None:
    store = tmp_path / "a\x1b[2J\n[bold]"
    capcal("sample", *SIMULATED, "--k", 1, "--limit", 2, "--store", store)
    _, out, err = capcal("verify", "--store", store)
    assert (out + err).replace("\n", "").isprintable()
    assert "a\\x1b[2J\\n[bold]/" in out
    status, _, err = capcal("score", store)
    assert (status, err.count("\n")) == (2, 1)
    assert "a\\x1b[2J\\n[bold]" in err


def test_memory_that_runs_out_is_one_line(monkeypatch: pytest.MonkeyPatch, capcal: Capcal) -> None:
    def fail(**_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(cli, "app", fail)
    status, _, err = capcal("models")
    assert (status, err.count("\n"), "memory ran out" in err) == (2, 1, True)


def test_what_the_system_refuses_is_one_line_and_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capcal: Capcal
) -> None:
    (tmp_path / "file").touch()
    asked = ("--model", "simulated", "--out", tmp_path / "file", "--store", tmp_path)
    status, _, err = capcal("notebooks", *asked)
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith("capcal: [Errno ")
    monkeypatch.setattr(cli, "find_spec", lambda _: None)
    status, _, err = capcal("notebooks", *asked)
    assert (status, "this needs papermill, which is not installed" in err) == (2, True)


@pytest.mark.parametrize(
    ("command", "status", "shown", "error"),
    [
        ("{} datasets >&-", 2, "", "capcal: standard output is closed"),
        ("{} datasets --json | head -c 8", 0, '{"name":', ""),
        ("PYTHONIOENCODING=ascii {} score n\u00f6.csv", 2, "", "capcal: n\\xf6.csv: there"),
    ],
)
def test_whatever_becomes_of_its_output_there_is_no_traceback(
    tmp_path: Path, command: str, status: int, shown: str, error: str
) -> None:
    done = subprocess.run(
        command.replace("{}", f"{sys.executable} -W error -m capcal_lib"),
        shell=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (status, shown)
    assert done.stderr.startswith(error)
    assert done.stderr.count("\n") == bool(error)


def test_a_stop_keeps_what_was_drawn_and_says_how_to_go_on(tmp_path: Path) -> None:
    """Send what SLURM, docker and timeout send, and again while it writes what is finished."""
    arguments = ["sample", *SIMULATED, "--k", "400", "--store", str(tmp_path)]
    code = f"""
import os
from capcal_lib import cli
from capcal_lib.runs.store import Writer
append = Writer.append
def append_and_stop(self, samples):
    os.kill(os.getpid(), {int(signal.SIGTERM)})
    return append(self, samples)
Writer.append = append_and_stop
cli.SECONDS_BETWEEN_LINES = 0
cli.main()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stderr
        assert process.stderr.readline().startswith("simulated on mini-exam: 400 of 40800 samples")
        process.terminate()
        *_, last = process.stderr.read().splitlines()
    assert process.returncode == 130
    assert last.startswith(
        "capcal: stopped; finished work is kept. Go on with: capcal sample --model simulated"
    )
    (folder,) = list_runs(tmp_path)
    drawn = len(read_samples(Run(folder)))
    assert 0 < drawn < 400 * 102
    assert drawn % 400 == 0  # whole batches


def test_the_pace_counts_only_what_is_new(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "err", Console(stderr=True, width=200))
    monkeypatch.setattr(cli, "SECONDS_BETWEEN_LINES", 0)
    with cli._progress("drawing") as move:
        for done in (90_000, 90_001, 90_002):  # ninety thousand were there
            move(done, 100_000)
            time.sleep(0.1)
    first, _, third = capsys.readouterr().err.splitlines()
    assert first == "drawing: 90000 of 100000 samples"
    assert third.startswith("drawing: 90002 of 100000 samples, ")
    hours, minutes, _ = third.removesuffix(" to go").rpartition(" ")[2].split(":")
    assert 60 * int(hours) + int(minutes) >= 10  # at ten a second or fewer, and not 90,000
