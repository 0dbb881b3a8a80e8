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
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from importlib import metadata
from importlib.metadata import version
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pandas as pd
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from capcal_lib import cli
from capcal_lib.manifests import dataset_names, model_names
from capcal_lib.places import RECORDED_RUNS, ROOT
from capcal_lib.questions import load_questions
from capcal_lib.results import Counting, describe_runs, load_results, score
from capcal_lib.runs import Run, open_runs
from capcal_lib.runs.store import read_samples
from capcal_lib.sampling.engines import Failure
from capcal_lib.sampling.engines.simulated import SimulatedEngine
from tests.command import run
from tests.folders import list_runs


def capcal(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "capcal_lib.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_run_from_sample_to_confidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--model", "simulated", "--dataset", "mini-capitals", "--store", tmp_path)
    status, out, err = run(monkeypatch, capsys, "sample", *where, "--k", 3, "--limit", 5)
    assert status == 0
    assert "15 samples drawn, 0 already there" in out
    assert "15 of 15 samples" in err
    status, out, _ = run(monkeypatch, capsys, "sample", *where, "--k", 4, "--limit", 5)
    assert "5 samples drawn, 15 already there" in out
    status, out, _ = run(monkeypatch, capsys, "status", "--store", tmp_path)
    (step,) = re.findall(r"next: (.*)", out)
    assert step.startswith("capcal grade --model simulated")
    assert step.endswith(f"--store {tmp_path}")
    status, out, _ = run(monkeypatch, capsys, "grade", *where)
    assert "20 samples graded, 0 graded again" in out
    status, out, _ = run(monkeypatch, capsys, "grade", *where)
    assert "0 samples graded, 0 graded again" in out
    for method in ("p-true", "verbalized"):
        status, out, _ = run(monkeypatch, capsys, "confidence", *where, "--method", method)
        assert status == 0
        assert out.startswith(f"{method}: ")
    status, _, err = run(monkeypatch, capsys, "confidence", *where, "--method", "consistency")
    assert status == 2
    assert "no question has 12 samples, 10 to vote" in err
    run(monkeypatch, capsys, "sample", *where, "--k", 110, "--limit", 2)
    run(monkeypatch, capsys, "grade", *where)
    assert (
        "consistency: 2 confidences kept"
        in run(monkeypatch, capsys, "confidence", *where, "--method", "consistency")[1]
    )
    status, out, _ = run(monkeypatch, capsys, "features", *where)
    assert "5 questions" in out
    status, out, _ = run(monkeypatch, capsys, "status", "--store", tmp_path)
    assert "mini-capitals" in out
    assert len(read_samples(Run(list_runs(tmp_path)[0]))) == 2 * 110 + 3 * 4


def test_several_runs_stand_side_by_side_and_a_setting_chooses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--model", "simulated", "--dataset", "mini-exam", "--store", tmp_path)
    for number, setting in enumerate(([], ["--seed", 1], ["--temperature", 0.5])):
        run(monkeypatch, capsys, "sample", *where, "--k", 2, "--limit", 3 + number, *setting)
    folders = {Run(folder).record.identity.key: folder for folder in list_runs(tmp_path)}
    assert len(folders) == 3
    choices: tuple[tuple[str, dict[str, float] | None], ...] = (
        ("", None),
        ("seed=1", {"seed": 1}),
        ("temperature=0.50", {"temperature": 0.5}),
    )
    for number, (typed, choice) in enumerate(choices):
        chosen = ["--run", typed] if typed else []
        assert run(monkeypatch, capsys, "grade", *where, *chosen)[1].startswith(
            f"{2 * (3 + number)} samples graded"
        )
        assert (
            f"p-true: {3 + number} confidences kept"
            in run(monkeypatch, capsys, "confidence", *where, "--method", "p-true", *chosen)[1]
        )
        assert len(load_results(tmp_path, "simulated", choice=choice)) == 3 + number
        assert (
            describe_runs(Counting(tmp_path, "simulated", choice=choice)).loc[
                "mini-exam", "questions"
            ]
            == 3 + number
        )
    for key, folder in folders.items():
        assert run(monkeypatch, capsys, "features", *where, "--run", key[:6])[0] == 0
        assert (folder / "features.parquet").exists()
    asked = (*where, "--judge", "simulated", "--run", "seed=9")
    status, _, err = run(monkeypatch, capsys, "judge", *asked)
    assert status == 2
    assert "with seed=9 in" in err
    assert "capcal sample --model simulated" in err


@pytest.mark.parametrize(
    ("typed", "choice"),
    [
        (None, None),
        ("1f0c2", "1f0c2"),
        ("seed=1,temperature=0.50,top_k=None", {"seed": 1, "temperature": 0.5, "top_k": "None"}),
        ("questions=012345678901", {"questions": "012345678901"}),  # a digest is a text
        ("dtype=bfloat16,prompt_style=short@3", {"dtype": "bfloat16", "prompt_style": "short@3"}),
    ],
)
def test_a_choice_of_runs_is_read_as_values(typed: str | None, choice: object) -> None:
    read = cli._parse_choice(typed)
    assert read == choice
    if isinstance(read, dict) and isinstance(choice, dict):
        assert [type(read[name]) for name in read] == [type(choice[name]) for name in choice]


REPRODUCE = ["reproduce", "--model", "simulated"]
BAD = {
    "an unknown recipe": (
        [*REPRODUCE, "--recipe", "rich"],
        "unknown recipe 'rich'; known: lean, paper",
    ),
    "verdicts of nobody": (
        [*REPRODUCE, "--verdicts", "mine"],
        "verdicts must be 'rules' or 'judge:MODEL', such as judge:gpt-oss-20b; got 'mine'",
    ),
    "an unknown setting": (
        ["grade", "--model", "simulated", "--dataset", "gsm8k", "--run", "sead=1"],
        "unknown setting 'sead'; known: chat_template, context_tokens, ",
    ),
    "unknown model": (
        ["sample", "--model", "gpt-9", "--dataset", "gsm8k", "--k", 1],
        "unknown model 'gpt-9'; known: ",
    ),
    "unknown data set": (
        ["sample", "--model", "simulated", "--dataset", "mnist", "--k", 1],
        "unknown data set 'mnist'; known: ",
    ),
    "unknown split": (
        ["sample", "--model", "simulated", "--dataset", "mini-exam", "--split", "eval", "--k", 1],
        "'eval'; known: test, train",
    ),
    "unknown engine": (
        ["sample", "--model", "simulated", "--dataset", "mini-exam", "--engine", "cloud", "--k", 1],
        "unknown engine 'cloud'; known: ",
    ),
    "no samples": (
        ["sample", "--model", "simulated", "--dataset", "mini-exam", "--k", 0],
        "must be at least 1; got 0",
    ),
    "bad limit": (
        ["sample", "--model", "simulated", "--dataset", "mini-exam", "--k", 1, "--limit", 0],
        "limit",
    ),
    "no questions": ([*REPRODUCE, "--limit", 0], "--limit"),
    "no run": (
        ["grade", "--model", "simulated", "--dataset", "gsm8k"],
        "make them with: capcal sample --model simulated",
    ),
    "a judge of no run": (
        ["judge", "--model", "simulated", "--dataset", "mini-capitals", "--judge", "gpt-9"],
        "make them with: capcal sample --model simulated",
    ),
    "no store": (["status", "--store", "nowhere"], "nowhere is not a folder"),
    "all metrics": (["score", "nowhere.csv", "--all"], "--json prints every metric"),
    "the value of a correct sample": (
        ["score", "nowhere.csv", "--correct", "pass"],
        'say it in the table: table["verdict"] = table["verdict"] == "pass"',
    ),
    "no file": (["score", "nowhere.csv"], "nowhere.csv: there is no such file"),
    "no such file at all": (["score", "nowhere"], "nowhere: there is no such file"),
    "a folder without logs": (["score", "."], ". is a folder; name the files in it"),
    "no ids": (
        ["sample", "--model", "simulated", "--dataset", "mini-exam", "--k", 1, "--ids", "none"],
        "none: there is no such file",
    ),
    "a server asked for nothing": (
        ["sample", "--model", "simulated", "--dataset", "mini-exam", "--k", 1, "--in-flight", 0],
        "--in-flight",
    ),
    "a file and a choice of runs": (
        ["score", "nowhere.csv", "--run", "zzz"],
        "--run applies to --model only",
    ),
    "a file and verdicts": (["score", "nowhere.csv", "--verdicts", "rules"], "--verdicts applies"),
    "a file and a store": (
        ["score", "nowhere.csv", "--store", "s"],
        "--store applies",
    ),
    "a file and a data set": (["score", "nowhere.csv", "--dataset", "x"], "--dataset applies"),
    "a model and a key": (
        ["score", "--model", "simulated", "--key", "k.csv"],
        "--key applies to files only",
    ),
    "a model to grade again": (["score", "--model", "simulated", "--regrade"], "--regrade applies"),
    "a model and a scorer": (
        ["score", "--model", "simulated", "--scorer", "x"],
        "--scorer applies",
    ),
    "a model and what is missing": (
        ["score", "--model", "simulated", "--drop-missing"],
        "--drop-missing applies",
    ),
    "no rows": (["grade-file", "nowhere.jsonl", "--out", "out.jsonl"], "nowhere.jsonl"),
    "notebooks of an unknown model": (["notebooks", "--model", "gpt-9"], "unknown model 'gpt-9'"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_status_2(
    arguments: list[object],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if arguments[0] in ("sample", "grade", "judge", "confidence"):
        arguments = [*arguments, "--store", tmp_path / "store"]
    status, out, err = run(monkeypatch, capsys, *arguments)
    assert status == 2
    assert out == ""
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert list(tmp_path.rglob("*")) == [], "something was written"


def test_no_table_prints_what_a_terminal_would_act_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hostile = "\x1b[2J\x1b]0;own\x07 \u202e \x9b"
    cli._print_table(pd.DataFrame({"question_id": [hostile], hostile: [1]}))
    shown = capsys.readouterr().out
    assert not {*shown} & {"\x1b", "\x07", "\u202e", "\x9b"}
    assert shown.count(r"\x1b[2J\x1b]0;own\x07 \u202e \x9b") == 2


def test_memory_that_runs_out_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(cli, "app", fail)
    status, _, err = run(monkeypatch, capsys, "models")
    assert (status, err.count("\n"), "memory ran out" in err) == (2, 1, True)


def test_the_installed_command_shows_no_traceback() -> None:
    done = capcal("sample", "--model", "gpt-9", "--dataset", "gsm8k", "--k", "1")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert capcal("sample", "--k", "many").returncode == 2
    assert capcal("no-such-command").returncode == 2


def test_a_judge_judges_each_answer_once_and_its_verdicts_are_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Kind(SimulatedEngine):
        def sample(self, requests, sampling, seed):  # type: ignore[no-untyped-def]
            for [one] in super().sample(requests, sampling, seed):
                yield [replace(one, response="CORRECT")]

    monkeypatch.setattr(
        "capcal_lib.grading.judgements.open_engine", lambda model, name=None, **_: Kind(model)
    )
    where = ("--model", "simulated", "--dataset", "mini-capitals", "--store", tmp_path)
    run(monkeypatch, capsys, "sample", *where, "--k", 10, "--limit", 5)
    status, _, err = run(monkeypatch, capsys, "judge", *where, "--judge", "simulated")
    assert (status, "no verdicts in" in err) == (2, True)
    run(monkeypatch, capsys, "grade", *where)
    status, out, err = run(
        monkeypatch, capsys, "judge", *where, "--judge", "simulated", "--judge-engine", "simulated"
    )
    assert status == 0
    assert "distinct answers judged, 0 already there" in out
    assert "10 of 10 answers" in err
    run(monkeypatch, capsys, "confidence", *where, "--method", "p-true")
    scored = [
        [
            json.loads(line)
            for line in run(monkeypatch, capsys, "score", *where, "--json", *by)[1].splitlines()
        ]
        for by in ((), ("--verdicts", "judge:simulated"))
    ]
    uniform = [row["brier"] for rows in scored for row in rows if row["method"] == "Uniform random"]
    assert (
        uniform[0] < uniform[1] == pytest.approx(1 / 3)
    )  # by a judge that says correct of all, mu is 1
    status, _, err = run(monkeypatch, capsys, "score", *where, "--verdicts", "judge:gpt-9")
    assert (status, "unknown judge 'gpt-9'; known: simulated" in err) == (2, True)
    status, _, err = run(monkeypatch, capsys, "judge", *where, "--judge", "gpt-9")
    assert (status, "unknown model 'gpt-9'" in err) == (2, True)


def test_a_judge_that_says_none_of_its_words_has_done_its_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--model", "simulated", "--dataset", "mini-capitals", "--store", tmp_path)
    run(monkeypatch, capsys, "sample", *where, "--k", 3, "--limit", 2)
    run(monkeypatch, capsys, "grade", *where)
    status, out, _ = run(monkeypatch, capsys, "judge", *where, "--judge", "simulated")
    assert status == 0, "it says none of the three words"
    assert "distinct answers judged, 0 already there" in out
    status, out, _ = run(monkeypatch, capsys, "judge", *where, "--judge", "simulated")
    assert (status, "0 distinct answers judged" in out) == (0, True)


def test_a_judge_that_is_refused_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Refused(SimulatedEngine):
        def sample(self, requests, sampling, seed):  # type: ignore[no-untyped-def]
            yield from (
                Failure(request.question.id, request.sample_indices, "status 400: no")
                for request in requests
            )

    where = ("--model", "simulated", "--dataset", "mini-capitals", "--store", tmp_path)
    run(monkeypatch, capsys, "sample", *where, "--k", 10, "--limit", 5)
    run(monkeypatch, capsys, "grade", *where)
    run(monkeypatch, capsys, "judge", *where, "--judge", "simulated")
    monkeypatch.setattr(
        "capcal_lib.grading.judgements.open_engine", lambda model, name=None, **_: Refused(model)
    )
    run(monkeypatch, capsys, "sample", *where, "--k", 10, "--limit", 8)
    run(monkeypatch, capsys, "grade", *where)
    status, _, err = run(monkeypatch, capsys, "judge", *where, "--judge", "simulated")
    assert status == 1
    assert "answers got no reply (" in err
    assert re.fullmatch(
        r"(\d+) of \1 questions were not answered: \1 times: status 400: no", caplog.messages[-1]
    )


def test_what_the_system_refuses_is_one_line_and_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    status, _, err = run(
        monkeypatch,
        capsys,
        "notebooks",
        "--model",
        "simulated",
        "--out",
        tmp_path / "file",
        "--store",
        tmp_path,
    )
    assert status == 2
    assert err.startswith("capcal: [Errno ")
    assert err.count("\n") == 1


def test_no_name_of_a_file_reaches_the_terminal_as_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "a\x1b[2J\n[bold]"
    run(
        monkeypatch,
        capsys,
        "sample",
        "--model",
        "simulated",
        "--dataset",
        "mini-exam",
        "--k",
        1,
        "--store",
        store,
    )
    for command in (
        ["verify"],
        ["sample", "--model", "simulated", "--dataset", "mini-exam", "--k", "2"],
    ):
        _, out, err = run(monkeypatch, capsys, *command, "--store", store)
        assert (out + err).replace("\n", "").isprintable()
        assert "a\\x1b[2J\\n[bold]/" in out
    status, _, err = run(monkeypatch, capsys, "score", store)
    assert (status, err.count("\n")) == (2, 1)
    assert "a\\x1b[2J\\n[bold]" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_keeps_what_was_drawn_and_says_how_to_go_on(
    number: signal.Signals, tmp_path: Path
) -> None:
    """Send it for real, to another process, and a second time while that writes what is finished:
    Ctrl-C, and what SLURM, docker and timeout send."""
    arguments = [
        "sample",
        "--model",
        "simulated",
        "--dataset",
        "mini-exam",
        "--k",
        "400",
        "--store",
        str(tmp_path),
    ]
    code = f"""
import os
from capcal_lib import cli
from capcal_lib.runs.store import Writer
append = Writer.append
def append_and_stop(self, samples):
    os.kill(os.getpid(), {int(number)})
    return append(self, samples)
Writer.append = append_and_stop
cli.SECONDS_BETWEEN_LINES = 0
cli.main()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stderr
        assert process.stderr.readline().startswith("simulated on mini-exam: 400 of 40800 samples")
        process.send_signal(number)
        *_, last = process.stderr.read().splitlines()
    assert process.returncode == 130
    assert last.startswith(
        "capcal: stopped; finished work is kept. Go on with: capcal sample --model simulated"
    )
    (folder,) = list_runs(tmp_path)
    drawn = len(read_samples(Run(folder)))
    assert 0 < drawn < 400 * 102
    assert drawn % 400 == 0  # whole batches


def test_merge_status_and_verify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--model", "simulated", "--dataset", "mini-exam")
    one, other, both = (tmp_path / name for name in ("one", "other", "both"))
    for store, limit in ((one, 2), (other, 3)):
        run(monkeypatch, capsys, "sample", *where, "--k", 2, "--limit", limit, "--store", store)
    status, out, _ = run(monkeypatch, capsys, "merge", both, one, other)
    assert status == 0
    assert "4 samples copied, 0 already there" in out
    assert "2 samples copied, 4 already there" in out
    status, out, _ = run(monkeypatch, capsys, "verify", "--store", both)
    assert status == 0
    assert "ok, 6 samples of 3 questions" in out
    status, out, _ = run(monkeypatch, capsys, "status", *where, "--store", both)
    (line,) = [line for line in out.splitlines() if line.strip().startswith("simulated")]
    assert line.split()[4:8] == ["3", "6", "0", "no"]
    assert line.split()[-1] == "grade"
    (row,) = run(monkeypatch, capsys, "status", "--json", "--store", both)[1].splitlines()
    assert json.loads(row)["samples"] == 6
    assert run(monkeypatch, capsys, "status", "--model", "gpt-9", "--store", both)[1] == ""
    (folder,) = list_runs(both)
    next(folder.glob("samples-*")).unlink()
    status, out, _ = run(monkeypatch, capsys, "verify", "--store", both)
    assert status == 1
    assert "6 samples missing, which `capcal sample` draws" in out


def test_a_run_is_looked_at_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = {one.id: one for one in load_questions("mini-exam")}
    names = sorted(questions)[:2]
    ids = tmp_path / "ids.txt"
    ids.write_text("question_id\n" + "\n".join(reversed(names)) + "\n")
    where = ("--model", "simulated", "--dataset", "mini-exam", "--store", tmp_path / "store")
    status, out, _ = run(monkeypatch, capsys, "sample", *where, "--k", 3, "--ids", ids)
    assert (status, "6 samples drawn" in out) == (0, True)
    assert run(monkeypatch, capsys, "verify", *where[4:])[0] == 0
    (made,) = open_runs(tmp_path / "store")
    key, store = made.folder.name, ("--store", tmp_path / "store")
    out = run(monkeypatch, capsys, "show", key[:5], *store)[1]
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [[name, "3"] for name in names]
    out = run(monkeypatch, capsys, "show", key, "--question", names[0], *store)[1]
    assert "sample 2: not graded\n" in out
    run(monkeypatch, capsys, "grade", *where)
    status, out, _ = run(monkeypatch, capsys, "show", key, "--question", names[0], *store)
    assert status == 0
    assert out.startswith(questions[names[0]].text.split("\n")[0])
    assert out.count("sample ") == 3
    assert f"right answer: {questions[names[0]].answer.gold}" in out
    assert "correct, extracted" in out
    for wrong in ((key, "--question", "nowhere"), ("ffff",), ("",)):
        expected = 0 if wrong == ("",) else 2
        assert run(monkeypatch, capsys, "show", *wrong, *store)[0] == expected
    copy = tmp_path / "copy"
    run(monkeypatch, capsys, "merge", copy, tmp_path / "store")
    out = run(monkeypatch, capsys, "rm", key, *store)[1]
    assert "6 samples, verdicts: yes" in out
    assert made.folder.exists()
    assert out == run(monkeypatch, capsys, "rm", *where)[1]
    assert run(monkeypatch, capsys, "show", *where)[1].count("\n") == 3
    hint = shlex.split(out.rpartition("to remove it: capcal ")[2])
    status, out, _ = run(monkeypatch, capsys, *hint)
    assert len(list_runs(copy)) == 1
    assert status == 0
    assert not list_runs(tmp_path / "store")
    ids.write_text("nowhere\n")
    status, _, err = run(monkeypatch, capsys, "sample", *where, "--k", 3, "--ids", ids)
    assert (status, "has no question 'nowhere'" in err) == (2, True)
    ids.write_text("question_id\n")
    assert run(monkeypatch, capsys, "sample", *where, "--k", 3, "--ids", ids)[0] == 2


CSV = "question_id,confidence,correct,total\na,0.5,1,2\nb,1.0,2,2\n"


def test_score_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(CSV)
    status, out, _ = run(monkeypatch, capsys, "score", path, "--json")
    assert status == 0
    scores = {row["metric"]: row["value"] for row in map(json.loads, out.splitlines())}
    assert scores["questions"] == 2
    assert scores["capability Brier, plug-in"] == 0
    assert scores["capability Brier, corrected"] == -0.125  # (0 - 0.25 / 1) / 2
    assert scores["expected response Brier"] == 0.125
    assert scores["correctness variance"] == 0.125
    status, out, _ = run(monkeypatch, capsys, "score", path)
    assert "capability Brier, corrected                 -0.12" in out, "to two decimals"
    assert "plug-in" not in out, "seven rows"


def test_a_bad_csv_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(CSV.replace("0.5", "1.5"))
    status, _, err = run(monkeypatch, capsys, "score", path)
    assert status == 2
    assert "row 0: question 'a' has a confidence that is no number from 0 to 1: " in err
    assert len(err.strip().splitlines()) == 1


def test_scores_as_json_with_a_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path, other = Path("mine.csv"), Path("other.csv")
    path.write_text(CSV)
    other.write_text(CSV.replace("0.5", "0.1"))
    status, out, err = run(monkeypatch, capsys, "score", path, other, "--json")
    as_text = run(monkeypatch, capsys, "score", path, other)[1]
    notes = [line for line in err.splitlines() if line]
    assert notes, "what the scores do not show"
    assert {*notes} <= {*as_text.splitlines()}
    assert status == 0
    *rows, last = map(json.loads, out.splitlines())
    assert {row["file"] for row in rows} == {str(path), str(other)}
    assert rows[0] == {
        "file": str(path),
        "metric": "questions",
        "value": 2.0,
        "low": None,
        "high": None,
        "questions": 2,
    }
    assert (last["file"], last["against"]) == (str(other), str(path))
    assert last["estimate"] == pytest.approx(-0.16 / 2), "the other file is worse"
    asked = ("score", other, path, "--json")
    last = json.loads(run(monkeypatch, capsys, *asked)[1].splitlines()[-1])
    assert (last["file"], last["estimate"]) == (str(path), pytest.approx(0.16 / 2))
    page = Path("report.html")
    status, out, _ = run(monkeypatch, capsys, "score", path, other, "--html", page)
    assert status == 0
    last = "too few to tell other.csv and mine.csv apart: 2 questions that both have"
    assert out.splitlines()[-1] == last
    assert page.read_text().count(f"<h2>{other}</h2>") == 1


def test_a_report_says_what_was_scored_and_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"q{n},{n / 100},{n // 5},20\n" for n in range(100))
    Path("one.csv").write_text("question_id,confidence,correct,total\n" + rows)
    Path("key.csv").write_text(Path("one.csv").read_text())
    flat = "".join(f"q{n},0.5\n" for n in range(99))
    Path("two.csv").write_text("question_id,confidence\n" + flat + "q99,\n")
    asked = ("one.csv", "two.csv", "--key", "key.csv")
    assert run(monkeypatch, capsys, "score", *asked)[0] == 2
    html = ("--drop-missing", "--html", "report.html")
    status, out, _ = run(monkeypatch, capsys, "score", *asked, *html)
    assert status == 0
    assert "two.csv: 1 of 100 rows without a confidence left out" in out
    assert "Brier, corrected" in out
    page = Path("report.html").read_text()
    assert out.splitlines()[-1].startswith("two.csv is worse than one.csv by 0.")
    assert f"<p>{out.splitlines()[-1]}</p>" in page
    for name in ("one.csv", "two.csv", "key.csv"):
        assert f"{name} (SHA-256 {sha256(Path(name).read_bytes()).hexdigest()})" in page
    assert f"capcal {metadata.version('capcal')}, 20" in page
    assert "<td>100, 2,000</td>" in page


def test_the_first_minute_of_the_readme_is_what_one_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows, shown = re.findall(
        r"```\n(question_id,.*?)```\n\n```\n\$ capcal score mine.csv\n(.*?)```", readme, re.DOTALL
    )[0]
    monkeypatch.chdir(tmp_path)
    Path("mine.csv").write_text(rows)
    out = run(monkeypatch, capsys, "score", "mine.csv")[1]
    assert shown.split() == out.split()


def test_logs_of_others_are_scored_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = ROOT / "tests" / "io" / "logs"
    status, out, _ = run(monkeypatch, capsys, "score", logs / "samples_counts.jsonl")
    assert status == 0
    assert "pass@2" in out
    assert "best constant" in out
    pair = logs / "counts.eval", logs / "counts.json"
    status, out, _ = run(monkeypatch, capsys, "score", *pair, "--html", tmp_path / "logs.html")
    assert status == 0
    assert "too few to tell" in out.splitlines()[-1]
    assert (tmp_path / "logs.html").read_text().count("<img") == 2


def test_one_store_has_one_set_of_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--model", "simulated", "--dataset", "mini-exam", "--store", tmp_path)
    out = run(monkeypatch, capsys, "reproduce", *where, "--limit", 15)[1]
    made = {
        cells[1]: float(cells[2])
        for line in out.splitlines()
        if (cells := re.split("  +", line.strip()))[0] == "mini-exam" and len(cells) > 2
    }
    rows = run(monkeypatch, capsys, "score", *where, "--json")[1].splitlines()
    scores = {row["method"]: row["brier"] for row in map(json.loads, rows)}
    assert "Response consistency" in made
    assert scores == pytest.approx(made, abs=5e-5)


def test_several_models_stand_side_by_side(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("simulated", "smollm2-135m")
    where = ("--store", RECORDED_RUNS, "--dataset", "mini-exam")
    asked = [word for name in names for word in ("--model", name)]
    status, out, _ = run(monkeypatch, capsys, "score", *where, *asked)
    assert status == 0
    (row,) = [line for line in out.splitlines() if "Uniform random" in line]
    scores = [score(load_results(RECORDED_RUNS, name, datasets=["mini-exam"])) for name in names]
    for each in scores:
        assert f"{each.loc[('mini-exam', 'Uniform random'), 'brier']:.3f} [" in row
    assert out.count("accuracy 0.") == 2
    rows = run(monkeypatch, capsys, "score", *where, *asked, "--json")[1].splitlines()
    assert {json.loads(row)["model"] for row in rows} == set(names)


def test_a_report_never_overwrites_what_is_scored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("question_id,confidence,correct,total\na,0.5,1,2\nb,1.0,2,2\n")
    before = path.read_bytes()
    (tmp_path / "link.html").symlink_to(path)
    for page in (path, tmp_path / "link.html", tmp_path / "." / "mine.csv"):
        status, _, err = run(monkeypatch, capsys, "score", path, "--html", page)
        assert status == 2
        assert "would overwrite" in err
    assert path.read_bytes() == before


def test_scores_from_standard_input_and_from_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(CSV)
    wanted = run(monkeypatch, capsys, "score", path, "--json")[1]
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(CSV.encode())))
    status, out, notes = run(monkeypatch, capsys, "score", "-", "--json")
    assert (status, out) == (0, wanted.replace(f'"{path}"', '"-"'))
    assert "-: 2 questions, too few for intervals" in notes
    many = "".join(f"q{place},{place % 2},{9 * (place % 2)},9\n" for place in range(20))
    table = f"question_id,confidence,correct,total\n{many}"
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(table.encode())))
    out = run(monkeypatch, capsys, "score", "-")[1]
    assert "\n- is better than the best constant by" in out
    where = ("--store", RECORDED_RUNS, "--model", "simulated", "--dataset", "mini-exam")
    rows = [
        json.loads(line)
        for line in run(monkeypatch, capsys, "score", *where, "--json")[1].splitlines()
    ]
    results = load_results(RECORDED_RUNS, "simulated", datasets=["mini-exam"])
    scores = score(results)
    assert "Probe (Mini exam)" in scores.index.get_level_values("method")
    assert [row["method"] for row in rows] == scores.loc["mini-exam"].index.tolist()
    assert [row["brier"] for row in rows] == pytest.approx(scores["brier"].tolist())
    monkeypatch.setattr(cli, "out", Console(width=80))
    shown = run(monkeypatch, capsys, "score", *where)[1]
    assert shown.startswith("simulated on mini-exam, simulated")
    assert max(map(len, shown.splitlines())) <= 80
    for arguments in ((), (path, "--model", "simulated")):
        status, _, err = run(monkeypatch, capsys, "score", *arguments)
        assert (status, "name either files" in err) == (2, True)


def test_grade_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        json.dumps({"kind": "number", "gold": "7", "response": "The answer is 7."}) + "\n"
    )
    status, out, _ = run(monkeypatch, capsys, "grade-file", rows, "--out", tmp_path / "out.jsonl")
    assert (status, out) == (0, f"wrote {tmp_path / 'out.jsonl'}\n")
    assert json.loads((tmp_path / "out.jsonl").read_text())["verdict"] == "correct"


def test_lists(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With the facts of the manifests, as the paper has them."""
    rows = {what: run(monkeypatch, capsys, what)[1].splitlines() for what in ("datasets", "models")}
    datasets, models = ([" ".join(row.split()) for row in listed] for listed in rows.values())
    assert "gsm8k mathematical reasoning number test 1319, train 7473" in datasets
    assert "qwen3-8b vllm paper 0.7 0.8 Qwen3-8B" in models


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_lists_say_what_is_wrong_with_the_manifests_that_are_left_out(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
) -> None:
    for folder in ("models", "datasets"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "broken.yaml").write_text("name: broken\n")
    monkeypatch.setenv("CAPCAL_MANIFESTS", str(tmp_path))
    for what in ("models", "datasets"):
        status, out, err = run(monkeypatch, capsys, what, *options)
        assert (status, "broken" in out) == (0, False)
        [problem] = [line for line in err.splitlines() if f"{what}/broken.yaml" in line]
        assert problem.startswith("capcal: left out: ")


def test_help_names_every_command() -> None:
    shown = CliRunner().invoke(cli.app, ["--help"]).output
    answers = "sample grade grade-file confidence features score"
    for command in (
        *answers.split(),
        "status",
        "merge",
        "verify",
        "datasets",
        "models",
        "notebooks",
        "book",
    ):
        assert command in shown


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_explains_itself_with_an_example_that_it_accepts(flag: str) -> None:
    commands = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        shown = CliRunner().invoke(cli.app, [name, flag])
        assert shown.exit_code == 0
        example = command.epilog.removeprefix("Example: capcal ").split()
        assert example[0] == name
        assert "Example: capcal" in shown.output
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in example if word.startswith("--")} <= options


@pytest.mark.parametrize(
    ("command", "status", "shown", "error"),
    [
        ("{} datasets >&-", 2, "", "capcal: standard output is closed"),
        ("PYTHONIOENCODING=ascii {} models", 0, "\\\\u2013", ""),
        ("{} datasets --json | head -c 8", 0, '{{"name":', ""),
        ("PYTHONIOENCODING=ascii {} score n\u00f6.csv", 2, "", "capcal: n\\\\xf6.csv: there"),
        ("{} new model mine", 0, "try it: capcal sample --model mine", ""),
    ],
)
def test_whatever_becomes_of_its_output_there_is_no_traceback(
    tmp_path: Path, command: str, status: int, shown: str, error: str
) -> None:
    shell = command.format(f"{sys.executable} -m capcal_lib").replace("\\\\", "\\")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        shell,
        shell=True,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status
    assert shown.replace("\\\\", "\\").replace("{{", "{") in done.stdout
    assert done.stderr.startswith(error.replace("\\\\", "\\"))
    assert done.stderr.count("\n") == bool(error)


def test_commands_stand_in_groups_in_the_order_of_use() -> None:
    shown = CliRunner().invoke(cli.app, ["--help"], env={"COLUMNS": "100"}).output
    panels = (cli.SCORE, cli.DRAW, cli.GRADE, cli.STORE, cli.NAMES, cli.BOOK)
    heads = [shown.index(f"─ {panel} ─") for panel in panels]
    assert heads == sorted(heads)
    assert heads[0] < shown.index("│ score ") < shown.index("│ import ") < heads[1]


def test_what_is_next_after_an_import_is_to_grade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("question_id,question,response,gold\na,Why?,4,4\nb,How?,5,6\n")
    named = ("--model", "mine", "--dataset", "sums", "--store", "my runs")
    status, out, _ = run(monkeypatch, capsys, "import", "rows.csv", *named, "--temperature", 1)
    assert status == 0
    hint = shlex.split(out.splitlines()[-1].removeprefix("next: capcal "))
    assert hint == ["grade", *named[:4], "--split", "test", *named[4:]]
    status, _, err = run(monkeypatch, capsys, "score", *named[:2], *named[4:])
    assert status == 2
    proposed = shlex.split(err.strip().rpartition(": capcal ")[2])
    assert proposed[:5] == hint[:5]
    status, out, _ = run(monkeypatch, capsys, "status", *named[4:])
    assert (status, "capcal grade --model mine --dataset sums" in out) == (0, True)
    assert run(monkeypatch, capsys, *proposed)[0] == 0
    assert run(monkeypatch, capsys, "score", *named[:2], *named[4:])[0] == 0


def test_a_file_is_scored_whatever_store_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CAPCAL_STORE", str(tmp_path))
    path = tmp_path / "mine.csv"
    path.write_text(CSV)
    assert run(monkeypatch, capsys, "score", path)[0] == 0


def test_where_most_has_no_answer_commands_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"question": "Why?", "gold": "4"}
    texts = ["It is 4.", "Hm.\nI cannot say", "I cannot say"]
    rows = [row | {"question_id": "a", "response": text} for text in texts]
    Path("rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    line = '2 of 3 samples have no answer that the rules read; commonest last lines: 2 times "I'
    assert line in run(monkeypatch, capsys, "score", "rows.jsonl")[1]
    named = ("--model", "mine", "--dataset", "sums", "--store", "runs")
    run(monkeypatch, capsys, "import", "rows.jsonl", *named, "--temperature", 1)
    assert line in run(monkeypatch, capsys, "grade", *named)[1]


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(monkeypatch, capsys, "--version")
    assert (status, out) == (0, f"capcal {version('capcal')}\n")


def test_lists_are_json_or_fit_eighty_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for what, names in (("models", model_names()), ("datasets", dataset_names())):
        monkeypatch.setattr(cli, "out", Console(width=80))
        shown = run(monkeypatch, capsys, what)[1]
        assert max(map(len, shown.splitlines())) <= 80
        assert all(name in shown for name in names), "a name is cut"
        rows = run(monkeypatch, capsys, what, "--json")[1].splitlines()
        assert [json.loads(row)["name"] for row in rows] == names


def test_the_store_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CAPCAL_STORE", str(tmp_path / "mine"))
    run(
        monkeypatch,
        capsys,
        "sample",
        "--model",
        "simulated",
        "--dataset",
        "mini-exam",
        "--k",
        1,
        "--limit",
        1,
    )
    assert len(list_runs(tmp_path / "mine")) == 1
    assert "mini-exam" in run(monkeypatch, capsys, "status")[1]


def test_status_fits_120_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "out", Console(width=120, force_terminal=True, no_color=True))
    shown = run(monkeypatch, capsys, "status", "--store", RECORDED_RUNS)[1]
    lines = re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()
    rows = [line for line in lines if not re.match("next: |.* reached max_tokens", line)]
    assert max(len(line.rstrip()) for line in rows) <= 120
    assert len(rows) == 1 + len(open_runs(RECORDED_RUNS))


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


def test_every_command_that_a_message_proposes_has_all_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "DIR").mkdir()
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "my runs"
    in_store = f"--store={store}"
    where = ("--model", "simulated", "--dataset", "mini-exam", in_store)

    def follow_hint(name: str, *arguments: object) -> None:
        _, out, err = run(monkeypatch, capsys, *arguments)
        *_, hint = re.findall(r": capcal ([a-z][^;`)\n]*)", out + err)
        words = shlex.split(hint)
        assert words[0] == name
        assert words[words.index("--store") + 1] == str(store)
        few = [word.replace("100", "2") for word in words]
        assert run(monkeypatch, capsys, *few)[0] == 0

    follow_hint("sample", "grade", *where)
    assert "capcal grade --model simulated" in run(monkeypatch, capsys, "status", in_store)[1]
    follow_hint("grade", "score", "--model", "simulated", in_store)
    [part] = store.rglob("samples-*.parquet")
    part.unlink()
    follow_hint("sample", "confidence", *where, "--method", "p-true")
    follow_hint("status", "probe", "--model", "simulated", in_store)


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


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["sample", "--dataset", "mini-exam", "--k", "2"], "Missing option '--model'"),
        (["status", "--nope"], "No such option: --nope"),
        (["nope"], "No such command 'nope'"),
        (
            ["sample", "--model", "simulated", "--dataset", "mini-exam", "--k", "two"],
            "Invalid value for '--k'",
        ),
    ],
)
def test_a_command_that_is_typed_wrong_is_refused_in_one_line(
    typed: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, err = run(monkeypatch, capsys, *typed)
    (line,) = err.splitlines()
    assert (status, out) == (2, "")
    assert line.startswith(f"capcal: {said}")
    assert line.endswith("; --help lists the options")


def test_the_page_that_reproduce_proposes_is_there_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["--model", "simulated", "--dataset", "mini-exam", "--limit", "6", "--store", "runs"]
    status, out, _ = run(monkeypatch, capsys, "reproduce", *asked)
    (proposed,) = [line for line in out.splitlines() if line.startswith("the page with")]
    _, page, *_ = shlex.split(proposed.partition(": ")[2])
    assert status == 0
    assert Path(page).is_file()
