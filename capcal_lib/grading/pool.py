"""Compare in worker processes with limits: a comparison that takes too long is killed with its
worker.

Each worker is a fresh interpreter, not a copy of the caller, so the caller's script needs no guard.
Workers are used again, and replaced when they die. The limit is on processor time, so that a busy
machine does not change verdicts. A worker that stands still is killed by the clock."""

import logging
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from capcal_lib.errors import naming_extra

logger = logging.getLogger(__name__)
TIME_LIMIT = 1.0  # seconds of processor time for one comparison; those of MATH take 0.01
CLOCK_LIMIT = 60.0  # seconds by the clock beyond that, the start of a worker included
MEMORY_LIMIT = 128 * 2**20  # bytes that a worker may take beyond its libraries


def cores() -> int:
    """Return how many cores this process may use."""
    with naming_extra():
        from loky import cpu_count

    return int(cpu_count())


TOO_HARD = "too hard to compare"  # how the reason begins


def settle(
    compare: Callable[..., bool],
    cases: Sequence[tuple[Any, ...]],
    *,
    time_limit: float = TIME_LIMIT,
) -> list[tuple[bool | None, str]]:
    """Call a function of a module of this package with each case, on all cores.

    Returns for each case, in order, the result and the problem, if any. The result is False for a
    case beyond the limits or one in which the function fails, and None if its worker was lost.
    """
    # A worker takes a second to start, worth some fifty comparisons.
    pool = _pool(min(cores(), len(cases) // 50 + 1))
    replies = [
        pool.schedule(_limited, (compare, case, time_limit), timeout=CLOCK_LIMIT + time_limit)
        for case in cases
    ]
    results: list[tuple[bool | None, str]] = []
    for case, reply in zip(cases, replies, strict=True):
        error = reply.exception()
        result = _failure(error, time_limit) if error else (reply.result(), "")
        if error:
            logger.info("not compared %r: %s", case, result[1])
        results.append(result)
    return results


def _failure(error: BaseException, time_limit: float) -> tuple[bool | None, str]:
    """Return the result of a comparison that failed, and why it failed."""
    from pebble import ProcessExpired

    if isinstance(error, TimeoutError):
        return None, "the worker stood still"
    if isinstance(error, ProcessExpired) and error.exitcode != -getattr(signal, "SIGPROF", 0):
        return None, "the worker was killed"
    if isinstance(error, ProcessExpired):
        return False, f"{TOO_HARD}: it takes more than {time_limit:g} s of processor time"
    if isinstance(error, MemoryError):
        return False, f"{TOO_HARD}: it takes more than {MEMORY_LIMIT >> 20} MB"
    return False, f"{TOO_HARD}: {type(error).__name__}: {error}".splitlines()[0][:200]


_pools: dict[tuple[int, int], Any] = {}  # by process, and number of workers
_opening = threading.Lock()


def _pool(workers: int) -> Any:
    with naming_extra():
        from loky.backend.context import LokyContext
        from loky.backend.process import LokyProcess
        from pebble import ProcessPool

    key = os.getpid(), workers
    caller = multiprocessing.current_process()
    if caller.daemon:  # such as a worker of multiprocessing.Pool, which may start no process
        caller.daemon = False
    with _opening:  # one for all threads
        if key not in _pools:
            # One seed for the order of sets, by which SymPy's way to a result would differ from
            # worker to worker. Loky's processes do not run the caller's script.
            context = LokyContext()
            context.Process = partial(LokyProcess, env={"PYTHONHASHSEED": "0"})
            pool = ProcessPool(max_workers=workers, context=context)
            pool.schedule(_prepare).result(CLOCK_LIMIT)  # or no worker can start
            if not _own():
                # before a process waits at its end for those that it has started
                Finalize(None, close, exitpriority=100)
            _pools[key] = pool
        return _pools[key]


def _own() -> list[tuple[int, int]]:
    """List the pools of this process, without the pools that a fork inherits from its parent."""
    return [key for key in _pools if key[0] == os.getpid()]


def close() -> None:
    """Kill all workers of this process."""
    for key in _own():
        pool = _pools.pop(key)
        pool.stop()
        pool.join()


@cache
def _prepare() -> None:
    """Load the libraries and build the parser's tables, once per worker, and limit its memory from
    then on.
    """
    from capcal_lib.grading import compare

    logging.disable()
    warnings.simplefilter("ignore")
    compare.mathematics("x+x", "2x")
    with suppress(ImportError, OSError, ValueError):  # not Linux: the limit on time remains
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY_LIMIT
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _limited(compare: Callable[..., bool], case: tuple[Any, ...], time_limit: float) -> bool:
    """Compare in a worker, which the system kills at the limit of processor time."""
    _prepare()
    if sys.platform == "win32":
        return compare(*case)
    signal.setitimer(signal.ITIMER_PROF, time_limit)
    try:
        return compare(*case)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
