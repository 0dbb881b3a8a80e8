"""The worker pool: hard limits, deaths, threads, order, and nothing left behind."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from capcal_lib.errors import InputError
from capcal_lib.grading import Verdict, grade, grade_many, pool
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
    r"\sqrt{10^{9999}+\sqrt{10^{9999}+\sqrt{2}}}",
    r"\frac{1}{" * 9 + "x" + "}" * 9,
    "x!" * 50,
    "|" * 50 + "x" + "|" * 50,
    "x^{0.123456789}" * 30,
    r"\lfloor" * 9 + "e^{9999.5}" + r"\rfloor" * 9,
    r"\sum_{n=1}^{10000} n^2",
    "__import__('os').system('true')",
    "abcdefghijklmnop" * 30,
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
    answers = [Answer("math", f"x+{index}") for index in range(12)]
    verdicts: dict[int, Verdict] = {}

    def work(index: int) -> None:
        verdicts[index] = grade(
            rf"\boxed{{{index}+x}}" if index % 2 else r"\boxed{x-1}", answers[index]
        )

    threads = [threading.Thread(target=work, args=(index,)) for index in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [verdicts[index].verdict for index in range(12)] == ["incorrect", "correct"] * 6
    assert len(workers_of(os.getpid())) == 1


def test_the_number_of_workers_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [
        (rf"\boxed{{{index % 40}+x}}", Answer("math", f"x+{index % 7}")) for index in range(200)
    ]
    expected = ["correct" if index % 40 == index % 7 else "incorrect" for index in range(200)]
    for workers in (1, 2):
        monkeypatch.setattr(pool, "cores", lambda workers=workers: workers)
        assert [verdict.verdict for verdict in grade_many(pairs)] == expected


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


SCRIPT = """
import sys, time
from capcal_lib.grading import grade
from capcal_lib.questions import Answer
print(grade(r'\\boxed{0.5x}', Answer('math', r'\\frac{x}{2}')).verdict, flush=True)
time.sleep(float(sys.argv[1]))
"""


def test_no_guard_is_needed_in_the_main_script_and_no_worker_outlives_it(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command, environment = (
        [sys.executable, str(tmp_path / "script.py")],
        {**os.environ, "PYTHONPATH": str(ROOT)},
    )
    done = subprocess.run([*command, "0"], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("correct\n", "")
    with subprocess.Popen(
        [*command, "60"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
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


DAEMON = """
import multiprocessing, os, re, subprocess
from capcal_lib.grading import grade
from capcal_lib.questions import Answer

def work(response):
    return grade(response, Answer("math", r"\\frac{x}{2}")).verdict, os.getpid()

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as workers:
        print(workers.map(work, [r"\\boxed{0.5x}"])[0], flush=True)
"""


def test_grading_works_in_a_worker_of_a_pool_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(DAEMON)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("('correct', "), done.stderr
    daemon = int(done.stdout.rstrip(")\n").rpartition(" ")[2])
    for _ in range(300):
        if not workers_of(daemon) and not Path(f"/proc/{daemon}").exists():
            return
        time.sleep(0.1)
    pytest.fail("a worker is an orphan")


PROCESSES = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
from capcal_lib.grading import grade
from capcal_lib.questions import Answer

def work(response):
    return grade(response, Answer("math", r"\\frac{x}{2}")).verdict

if __name__ == "__main__":
    print(work(r"\\boxed{0.5x}"))  # with workers of its own, which a fork must leave alone
    method = multiprocessing.get_context(sys.argv[1])
    with ProcessPoolExecutor(1, method) as workers:
        print(*workers.map(work, [r"\\boxed{0.5x}"]))
    print(work(r"\\boxed{0.25x+0}"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="others do not fork")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_that_has_graded_ends_and_stops_only_its_own_workers(
    tmp_path: Path, method: str
) -> None:
    (tmp_path / "script.py").write_text(PROCESSES)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(tmp_path / "script.py"), method],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.stdout, done.stderr) == ("correct\ncorrect\nincorrect\n", "")
