"""Worker processes with a hard time limit: a comparison that takes too long is killed with its worker.

Each worker is a separate interpreter, spoken to in lines of JSON. It is started when first needed, used again, limited
in memory, and replaced after it was killed or died. It works from any thread, and the caller's script needs no guard.

The limit is on processor time, kept by the operating system, so that a busy machine does not change verdicts. Where
there is no such timer, and where a worker stands still, it is killed after ``PATIENCE`` times the limit.
"""

import atexit
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

Settled = bool | str  # equal or not; or why that could not be settled

TIME_LIMIT = 1.0  # seconds of processor time for one comparison; those of MATH's answers take 0.005, and at most 0.12
PATIENCE = 20  # as many times the limit may pass by the clock
MEMORY_LIMIT = 128 * 2**20  # bytes of address space that a worker may take beyond those of its libraries
START_LIMIT = 120.0  # seconds to import SymPy on a busy machine

TIMED_OUT = "grader time limit"
DIED = "grader worker stopped"


class Worker:
    """One worker process; one comparison at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0

    def equal(self, gold: str, extracted: str, time_limit: float) -> Settled:
        """Compare two mathematical answers, or say why that could not be done."""
        with self._lock:
            reply: Settled = DIED
            for _ in range(2):  # it may have died of something else since it was last used
                if self._process is None or self._owner != os.getpid():
                    self._start()
                    if self._ask(None, START_LIMIT) is not True:
                        continue
                reply = self._ask(json.dumps([gold, extracted, time_limit]), PATIENCE * time_limit)
                if reply != DIED:
                    break
            return reply

    def close(self) -> None:
        """Kill the process, if there is one of ours."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(BrokenPipeError):  # what it was still to be sent
                _pipe(pipe).close()

    def _start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from capcal_lib.grading.pool import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
            encoding="utf-8",
        )

    def _ask(self, line: str | None, time_limit: float) -> Settled:
        """Send a line and wait for the reply; what is not a bool afterwards is the reason, and the worker is gone."""
        assert self._process is not None
        process, late = self._process, threading.Event()

        def kill() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(time_limit, kill)
        timer.daemon = True
        timer.start()
        try:
            if line is not None:
                _pipe(process.stdin).write(line + "\n")
                _pipe(process.stdin).flush()
            answer = _pipe(process.stdout).readline()
        except OSError:
            answer = ""
        except BaseException:
            self.close()  # or its reply would be taken for that to the next question
            raise
        finally:
            timer.cancel()
        if answer:
            return bool(json.loads(answer))
        self.close()
        timed_out = late.is_set() or (sys.platform != "win32" and process.returncode == -signal.SIGPROF)
        return TIMED_OUT if timed_out else DIED


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


_workers: list[Worker] = []
_workers_lock = threading.Lock()


def _borrowed(count: int) -> list[Worker]:
    with _workers_lock:
        while len(_workers) < count:
            _workers.append(Worker())
        return _workers[:count]


@atexit.register
def close() -> None:
    """Kill all workers."""
    for worker in _workers:
        worker.close()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def settle(pairs: Sequence[tuple[str, str]], *, workers: int, time_limit: float) -> list[Settled]:
    """Compare pairs of mathematical answers (gold, extracted) in worker processes.

    Parameters
    ----------
    pairs
        The pairs, without repetitions.
    workers
        Number of processes, at least 1; no more are started than there is work for.
    time_limit
        Seconds of processor time for one pair, after which its worker is killed.

    Returns
    -------
    list
        For each pair, in order, whether its answers are equal, or why that could not be settled.
    """
    results: list[Settled] = [DIED] * len(pairs)
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in range(len(pairs)):
        waiting.put(index)

    def work(worker: Worker) -> None:
        while True:
            try:
                index = waiting.get_nowait()
            except queue.Empty:
                return
            results[index] = worker.equal(*pairs[index], time_limit)

    # A worker takes a second to start, worth some fifty comparisons.
    helpers = _borrowed(max(1, min(workers, len(pairs) // 50 + 1)))
    threads = [threading.Thread(target=work, args=(helper,), daemon=True) for helper in helpers[1:]]
    for thread in threads:
        thread.start()
    work(helpers[0])
    for thread in threads:
        thread.join()
    return results


def _limit_memory() -> None:
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY_LIMIT
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (ImportError, ValueError, OSError):  # not Linux; the limits on size and time remain
        pass


def serve() -> None:
    """Answer comparisons on the standard input until it is closed; what a worker process runs."""
    from capcal_lib.grading import math, symbolic

    symbolic.same("x", "2x")  # loads the libraries and builds the parser's tables
    _limit_memory()
    replies = sys.stdout
    sys.stdout = sys.stderr
    print("true", file=replies, flush=True)
    for line in sys.stdin:
        gold, extracted, time_limit = json.loads(line)
        _kill_after(time_limit)
        equal = math.equal_slowly(gold, extracted)
        _kill_after(0)
        print(json.dumps(equal), file=replies, flush=True)


def _kill_after(seconds: float) -> None:
    """Have the system kill this process after so much processor time; 0 calls that off."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)
