"""The worker pool: hard limits, deaths, threads, order, and nothing left behind."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from capcal_lib.errors import InputError
from capcal_lib.grading import grade, grade_many, pool
from capcal_lib.places import ROOT
from capcal_lib.questions import Answer

HALF = Answer("math", r"\frac{x}{2}")
RIGHT, WRONG = r"\boxed{0.5x}", r"\boxed{0.25x}"
ENDLESS = r"2^{9^{9^9}-9^{9^9}}\cdot\frac{x}{4}"


@pytest.fixture(autouse=True, scope="module")
def _no_workers_left() -> Iterator[None]:
    pool.close()
    yield
    pool.close()


def settle(*pairs: tuple[str, str]) -> list[bool | None]:
    return pool.settle(pairs)


def workers_of(parent: int) -> list[int]:
    """The worker processes of a process."""
    listed = subprocess.run(["ps", "-wweo", "pid,ppid,args"], capture_output=True, text=True).stdout
    rows = re.findall(
        r"^\s*(\d+)\s+(\d+)\s.*grading.pool import work.*$", listed, flags=re.MULTILINE
    )
    return [int(pid) for pid, of in rows if int(of) == parent]


def test_a_comparison_that_takes_too_long_counts_as_incorrect_and_says_why() -> None:
    answers = [RIGHT, rf"\boxed{{{ENDLESS}}}", WRONG, RIGHT]
    verdicts = grade_many([(answer, HALF) for answer in answers])
    assert [verdict.verdict for verdict in verdicts] == [
        "correct",
        "incorrect",
        "incorrect",
        "correct",
    ]
    assert (verdicts[1].reason, verdicts[1].extracted) == ("too hard to compare", ENDLESS)


def test_a_worker_that_is_killed_from_outside_is_one_line_and_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert settle(("2x", "x+x")) == [True]
    [first] = workers_of(os.getpid())
    os.kill(first, signal.SIGKILL)
    pool._workers[os.getpid()][0].wait()
    assert settle(("2x", "x+x+0")) == [True], "one that died while it waited is replaced"
    [second] = workers_of(os.getpid())
    os.kill(second, signal.SIGSTOP)
    monkeypatch.setattr(pool, "CLOCK_LIMIT", 0.3)
    with pytest.raises(InputError, match="stopped from outside; grade again"):
        settle(("2x", "3x"))
    assert second not in workers_of(os.getpid())


PAYLOADS = [
    ENDLESS,
    "3000!",
    r"\tan(" * 9 + "10^{9999}" + ")" * 9,
    r"\sum_{n=1}^{10000} n^2",
]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read and limited on Linux")
def test_hard_expressions_stay_within_a_second_of_processor_time_and_their_memory() -> None:
    import resource

    assert pool.TIME_LIMIT == 1.0
    assert settle(("x+x", "2x")) == [True]
    [worker] = workers_of(os.getpid())
    used = int(Path(f"/proc/{worker}/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.prlimit(worker, resource.RLIMIT_AS)
    assert soft == hard
    assert used < soft <= used + pool.MEMORY_LIMIT
    for payload in PAYLOADS:
        assert not settle(("x+1", payload))[0], payload
        for each in workers_of(os.getpid()):
            peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{each}/status").read_text())
            assert peak is not None
            assert int(peak[1]) < 320 * 1024, payload


def test_threads_may_grade_at_once() -> None:
    pool.close()  # so that they open it at once, too
    answers = [Answer("math", f"x+{index}") for index in range(6)]

    def work(index: int) -> str:
        response = rf"\boxed{{{index}+x}}" if index % 2 else r"\boxed{x-1}"
        return grade(response, answers[index]).verdict

    with ThreadPoolExecutor(6) as threads:
        assert [*threads.map(work, range(6))] == ["incorrect", "correct"] * 3
    assert len(workers_of(os.getpid())) == 1


def test_the_number_of_workers_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(rf"\boxed{{{index}+x}}", Answer("math", f"x+{index % 7}")) for index in range(12)]
    pairs += [("", HALF), (r"\boxed{7}", Answer("number", "7")), ("B", Answer("choice", "A"))]
    expected = ["correct"] * 7 + ["incorrect"] * 5 + ["no_answer", "correct", "incorrect"]
    monkeypatch.setattr(pool, "AT_LEAST", 5)
    for workers in (1, 2):
        monkeypatch.setattr(pool, "cores", lambda workers=workers: workers)
        assert [verdict.verdict for verdict in grade_many(pairs)] == expected
    assert grade_many([]) == []


SCRIPT = """
import time
from capcal_lib.grading import grade
from capcal_lib.questions import Answer
print(grade(r'\\boxed{0.5x}', Answer('math', r'\\frac{x}{2}')).verdict, flush=True)
time.sleep(60)
"""


def test_no_guard_is_needed_in_the_main_script_and_no_worker_outlives_it(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py")], env=environment, stdout=subprocess.PIPE
    ) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"correct\n"
        [worker] = workers_of(killed.pid)
        killed.kill()
    for _ in range(300):
        if not Path(f"/proc/{worker}").exists():
            return
        time.sleep(0.1)
    pytest.fail("the worker is an orphan")


FORKING = """
import multiprocessing
from capcal_lib.grading import grade
from capcal_lib.questions import Answer

def work(response):
    return grade(response, Answer("math", r"\\frac{x}{2}")).verdict

if __name__ == "__main__":
    print(work(r"\\boxed{0.5x}"))  # with workers of its own, which a fork must leave alone
    with multiprocessing.get_context("fork").Pool(1) as workers:
        print(*workers.map(work, [r"\\boxed{0.5x}"]))
    print(work(r"\\boxed{0.25x+0}"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="others do not fork")
def test_a_process_that_has_graded_ends_and_stops_only_its_own_workers(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(FORKING)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(tmp_path / "script.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.stdout, done.stderr) == ("correct\ncorrect\nincorrect\n", "")
