"""Compare hard answers in worker processes with limits on time and memory.

A worker is a fresh interpreter, not a copy of the caller, so the caller's script needs no guard. It
reads a comparison a line, replies with the result, and waits for the next, from call to call. One
that takes too long, or too much memory, ends its worker and counts as not equal. The limit is on
processor time, so that a busy machine does not change verdicts."""

import atexit
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Timer

from capcal_lib.errors import InputError, naming_extra

TOO_HARD = "too hard to compare"  # how the reason begins
TIME_LIMIT = 1.0  # seconds of processor time for one comparison; those of MATH take 0.01
CLOCK_LIMIT = 60.0  # seconds by the clock, after which a worker stands still
MEMORY_LIMIT = 128 * 2**20  # bytes that a worker may take beyond its libraries
AT_LEAST = 50  # comparisons that are worth a worker, which takes a second to start

TOO_MUCH = (-27, -6, -11)  # SIGPROF at the limit of time, SIGABRT and SIGSEGV for want of memory

Worker = subprocess.Popen[str]
_workers: dict[int, list[Worker]] = {}  # by process: a fork leaves those of its parent alone
_settling = Lock()


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def settle(cases: Sequence[tuple[str, ...]]) -> list[bool | None]:
    """Call `mathematics` with each case, on all cores, and return the results in order; None for a
    case that is too hard. `InputError` if a worker is killed from outside.
    """
    number = min(cores(), len(cases) // AT_LEAST + 1)
    shares = [cases[place::number] for place in range(number)]
    results: list[bool | None] = [None] * len(cases)
    with _settling, ThreadPoolExecutor(number) as threads:
        workers = _workers.setdefault(os.getpid(), [])
        workers += [_start() for _ in range(number - len(workers))]
        for place, share in enumerate(
            threads.map(_settle, [workers] * number, range(number), shares)
        ):
            results[place::number] = share
    return results


def _settle(
    workers: list[Worker], place: int, cases: Sequence[tuple[str, ...]]
) -> list[bool | None]:
    """Let one of the workers compare cases, one after the other, and replace it when it ends."""
    results: list[bool | None] = []
    for case in cases:
        if workers[place].poll() is not None:  # at the case before, or killed since
            workers[place].communicate()  # closes its pipes
            workers[place] = _start()
        result = _ask(workers[place], json.dumps(case))
        if not result and workers[place].wait() not in TOO_MUCH:
            raise InputError("a comparison of answers was stopped from outside; grade again")
        results.append({"1": True, "0": False}.get(result))
    return results


@atexit.register
def close() -> None:
    """End the workers of this process."""
    for worker in _workers.pop(os.getpid(), []):
        worker.communicate()


def _start() -> Worker:
    with naming_extra():
        if find_spec("math_verify") is None:
            raise ModuleNotFoundError(name="math_verify")
    # One seed for the order of sets, by which SymPy's way to a result would differ.
    environment = {"PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import work; work()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | environment,
        text=True,
    )


def _ask(worker: Worker, line: str) -> str:
    """Return the reply of a worker to a line; nothing if it ends."""
    assert worker.stdin
    assert worker.stdout
    limit = Timer(CLOCK_LIMIT, worker.kill)
    limit.start()
    try:
        worker.stdin.write(f"{line}\n")
        worker.stdin.flush()
        return worker.stdout.readline().strip()
    except BrokenPipeError:
        return ""
    finally:
        limit.cancel()


def work() -> None:
    """Compare what comes on standard input, a line each, until it ends."""
    import resource

    from capcal_lib.grading.compare import mathematics

    logging.disable()
    answers, sys.stdout = sys.stdout, sys.stderr
    mathematics("x+x", "2x")  # loads the libraries
    with suppress(OSError, ValueError):  # not Linux: the limit on time remains
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY_LIMIT
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, TIME_LIMIT)
        try:
            result = str(int(mathematics(*json.loads(line))))
        except Exception:  # among others for want of memory
            result = "-"
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(result, file=answers, flush=True)
