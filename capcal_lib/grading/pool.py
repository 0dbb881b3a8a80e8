"""Worker processes with limits: a comparison that takes too long is killed with its worker.

Each worker is a fresh interpreter (no copy of the caller's, whose script thus needs no guard), used
again, and replaced after it died. The limit is on processor time, kept by the operating system, so
that a busy machine does not change verdicts; a worker that stands still is killed by the clock."""

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)
TIME_LIMIT = 1.0  # seconds of processor time for one comparison; those of MATH take 0.01
CLOCK_LIMIT = 60.0  # seconds by the clock beyond that, the start of a worker included
MEMORY_LIMIT = 128 * 2**20  # bytes that a worker may take beyond its libraries


def cores() -> int:
    """Return how many cores this process may use."""
    from loky import cpu_count

    return int(cpu_count())


def settle(
    compare: Callable[..., bool | None],
    cases: Sequence[tuple[Any, ...]],
    *,
    time_limit: float = TIME_LIMIT,
) -> list[bool | str]:
    """Call a function of a module of this package with each case, on all cores; return what it says
    for each case in order, or why it says nothing: a limit, a failure, or that it cannot tell.
    """
    # A worker takes a second to start, worth some fifty comparisons.
    pool = _pool(min(cores(), len(cases) // 50 + 1))
    replies = [
        pool.schedule(_limited, (compare, case, time_limit), timeout=CLOCK_LIMIT + time_limit)
        for case in cases
    ]
    results: list[bool | str] = []
    for case, reply in zip(cases, replies, strict=True):
        error = reply.exception()
        result = _reason(error, time_limit) if error else reply.result()
        if result is None:
            result = "no difference is seen, and none is excluded"
        if isinstance(result, str):
            logger.info("not compared %r: %s", case, result)
        results.append(result)
    return results


def _reason(error: BaseException, time_limit: float) -> str:
    """Say why a comparison has no result."""
    if isinstance(error, TimeoutError):
        return "the worker stood still"
    if isinstance(error, MemoryError):
        return f"it takes more than {MEMORY_LIMIT >> 20} MB"
    if getattr(error, "exitcode", None) == -getattr(signal, "SIGPROF", 0):
        return f"it takes more than {time_limit:g} s of processor time"
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


_pools: dict[tuple[int, int], Any] = {}  # by process, and number of workers
_opening = threading.Lock()


def _pool(workers: int) -> Any:
    from loky.backend.context import LokyContext
    from loky.backend.process import LokyProcess
    from pebble import ProcessPool

    key = os.getpid(), workers
    with _opening:  # one for all threads
        if key not in _pools:
            # One seed for the order of sets, by which SymPy's way to a result would differ from
            # worker to worker. Loky's processes do not run the caller's script.
            context = LokyContext()
            context.Process = partial(LokyProcess, env={"PYTHONHASHSEED": "0"})
            pool = ProcessPool(max_workers=workers, context=context)
            pool.schedule(_prepare).result(CLOCK_LIMIT)  # or no worker can start
            _pools[key] = pool
        return _pools[key]


def close() -> None:
    """Kill all workers."""
    while _pools:
        _, pool = _pools.popitem()
        pool.stop()
        pool.join()


@cache
def _prepare() -> None:
    """Load the libraries and build the parser's tables, once a worker, and limit its memory from
    then on.
    """
    from capcal_lib.grading import math

    logging.disable()
    warnings.simplefilter("ignore")
    math.equal("x+x", "2x")
    with suppress(ImportError, OSError, ValueError):  # not Linux: the limit on time remains
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY_LIMIT
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _limited(
    compare: Callable[..., bool | None], case: tuple[Any, ...], time_limit: float
) -> bool | None:
    """Compare in a worker, which the system kills after so much processor time."""
    _prepare()
    if sys.platform == "win32":
        return compare(*case)
    signal.setitimer(signal.ITIMER_PROF, time_limit)
    try:
        return compare(*case)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
