"""The worker pool: hard limits, deaths, threads, order."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from capcal_lib.errors import InputError
from capcal_lib.grading import Verdict, grade, grade_many, pool
from capcal_lib.manifests import ROOT
from capcal_lib.questions import Answer

HALF = Answer("math", r"\frac{x}{2}")
RIGHT, WRONG = r"\boxed{0.5x}", r"\boxed{0.25x}"
# Ten logarithms to the base x of one another: within the limits on size, but minutes of evaluation.
ENDLESS = r"\boxed{" + r"\log_{x}" * 9 + "y}"


@pytest.fixture(autouse=True)
def _no_workers_left() -> Iterator[None]:
    yield
    pool.close()


def test_a_comparison_that_takes_too_long_is_not_scored_and_the_rest_is() -> None:
    verdicts = grade_many([(RIGHT, HALF), (ENDLESS, HALF), (WRONG, HALF), (RIGHT, HALF)], workers=1, time_limit=1.0)
    assert [verdict.verdict for verdict in verdicts] == ["correct", "not_scored", "incorrect", "correct"]
    assert verdicts[1].reason == "grader time limit"
    assert verdicts[1].extracted == ENDLESS[7:-1]


def test_a_killed_worker_is_replaced() -> None:
    worker = pool.Worker()
    assert worker.equal("x", "0.5x+0.5x", 5.0) is True
    assert worker._process is not None
    first = worker._process.pid
    os.kill(first, signal.SIGKILL)
    assert worker.equal("x", "0.5x", 5.0) is False
    assert worker._process is not None
    assert worker._process.pid != first
    worker.close()


def test_the_late_worker_is_really_gone() -> None:
    worker = pool.Worker()
    assert worker.equal("x", "2x", 5.0) is False
    assert worker._process is not None
    process = worker._process
    assert worker.equal("x", ENDLESS[7:-1], 0.5) == "grader time limit"
    assert process.returncode == -signal.SIGPROF  # by processor time, so that a busy machine changes no verdict
    assert worker._process is None


def test_a_worker_that_stands_still_is_killed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = pool.Worker()
    assert worker.equal("x", "2x", 5.0) is False
    assert worker._process is not None
    process = worker._process
    monkeypatch.setattr(pool, "PATIENCE", 1)
    os.kill(process.pid, signal.SIGSTOP)
    assert worker.equal("x", "3x", 0.3) == "grader time limit"
    assert process.returncode == -signal.SIGKILL


PAYLOADS = [
    r"\log_{x}" * 9 + "y",
    r"\log_{x}" * 3 + "y",
    "x^{9999}+y^{9999}",
    "(x+y+z)^{99}",
    "(1+x)^{9999}",
    "3000!",
    r"\binom{3000}{1500}",
    r"\sin(" * 9 + "x" + ")" * 9,
    r"\tan(" * 9 + "10^{9999}" + ")" * 9,
    "e^{e^{e^{x}}}",
    "2.5^{9999.5}",
    r"\frac{1}{" * 9 + "x" + "}" * 9,
    "x!" * 50,
    "|" * 50 + "x" + "|" * 50,
    "x^{0.123456789}" * 30,
    r"\sum_{n=1}^{10000} n^2",
    "__import__('os').system('true')",
    "abcdefghijklmnop" * 30,
]


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_hard_expressions_stay_within_a_second_of_processor_time_and_200_megabytes() -> None:
    assert pool.TIME_LIMIT == 1.0
    worker = pool.Worker()
    assert worker.equal("x", "2x", 5.0) is False
    for payload in PAYLOADS:
        reply = worker.equal("x+1", payload, pool.TIME_LIMIT)
        assert reply is False or reply == "grader time limit", payload
        if worker._process is not None:
            status = Path(f"/proc/{worker._process.pid}/status").read_text()
            peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
            assert peak < 200 * 1024, payload
    worker.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is set on Linux only")
def test_workers_are_limited_in_memory() -> None:
    import resource

    worker = pool.Worker()
    assert worker.equal("x", "2x", 5.0) is False
    assert worker._process is not None
    used = int(Path(f"/proc/{worker._process.pid}/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.prlimit(worker._process.pid, resource.RLIMIT_AS)
    assert soft == hard
    assert used < soft <= used + pool.MEMORY_LIMIT
    worker.close()


def test_threads_may_grade_at_once() -> None:
    answers = [Answer("math", f"x+{index}") for index in range(12)]
    verdicts: dict[int, Verdict] = {}

    def work(index: int) -> None:
        verdicts[index] = grade(rf"\boxed{{{index}+x}}" if index % 2 else r"\boxed{x-1}", answers[index])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [verdicts[index].verdict for index in range(12)] == ["incorrect", "correct"] * 6


def test_the_number_of_workers_changes_nothing() -> None:
    pairs = [(rf"\boxed{{{index % 40}+x}}", Answer("math", f"x+{index % 7}")) for index in range(200)]
    expected = ["correct" if index % 40 == index % 7 else "incorrect" for index in range(200)]
    for workers in (1, 2):
        assert [verdict.verdict for verdict in grade_many(pairs, workers=workers)] == expected


def test_many_are_as_one_by_one_in_order() -> None:
    pairs = [
        (RIGHT, HALF),
        ("", HALF),
        (r"\boxed{7}", Answer("number", "7")),
        (WRONG, HALF),
        ("B", Answer("choice", "A")),
    ] * 3
    assert grade_many(pairs) == [grade(response, answer) for response, answer in pairs]
    assert grade_many([]) == []


def test_no_guard_is_needed_in_the_main_script(tmp_path: object) -> None:
    script = f"{tmp_path}/script.py"
    with open(script, "w") as out:
        out.write(
            "from capcal_lib.grading import grade\nfrom capcal_lib.questions import Answer\n"
            "print(grade(r'\\boxed{0.5x}', Answer('math', r'\\frac{x}{2}')).verdict)\n"
        )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("correct\n", "")


def test_an_interrupted_question_leaves_no_stale_reply() -> None:
    worker = pool.Worker()
    assert worker.equal("x", "2x", 5.0) is False
    assert worker._process is not None
    assert worker._process.stdin is not None
    assert worker._process.stdout is not None

    class Interrupted:
        def readline(self) -> str:
            raise KeyboardInterrupt

        def close(self) -> None:
            pass

    real, worker._process.stdout = worker._process.stdout, Interrupted()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        worker.equal("x", "x+0", 5.0)
    real.close()
    assert worker.equal("x", "3x", 5.0) is False
    worker.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workers": 0}, "workers must be at least 1; got 0"),
        ({"time_limit": 0.0}, "time_limit must be a positive number of seconds; got 0.0"),
        ({"time_limit": float("nan")}, "time_limit must be a positive number of seconds; got nan"),
    ],
)
def test_limits_must_make_sense(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        grade_many([], **arguments)  # type: ignore[arg-type]
