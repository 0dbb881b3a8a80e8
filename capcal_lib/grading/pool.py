"""Worker processes with a hard time limit: a comparison that takes too long is killed with its
worker.

Each worker is a fresh interpreter (no copy of the caller's, whose script thus needs no guard), used
again, limited in memory, and replaced after it died; it ends with its parent. The limit is on
processor time, kept by the operating system, so that a busy machine does not change verdicts. A
worker that stands still is killed by the clock."""

import logging
import os
import pkgutil
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

# seconds of processor time for one comparison; those of MATH's answers take 0.005, and at most 0.12
TIME_LIMIT = 1.0
CLOCK_LIMIT = (
    60.0  # seconds by the clock beyond that, the start of a worker on a busy machine included
)
MEMORY_LIMIT = (
    128 * 2**20
)  # bytes of address space that a worker may take beyond those of its libraries

TIMED_OUT = "grader time limit"
UNKNOWN = "cannot be compared"
DIED = "grader worker stopped"


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def settle(
    compare: Callable[..., bool | None],
    cases: Sequence[tuple[Any, ...]],
    *,
    workers: int = 0,
    time_limit: float = TIME_LIMIT,
) -> list[bool | str]:
    """Call a function of a module of this package with each case, in so many workers at most (0:
    one a core).

    Returns, for each case in order, what ``compare`` says, or as a text why it could not say: a
    worker is killed after ``time_limit`` seconds of processor time for one case."""
    from pebble import ProcessExpired

    # A worker takes a second to start, worth some fifty comparisons.
    pool = _pool(min(workers or cores(), len(cases) // 50 + 1))
    name = (
        compare.__module__,
        compare.__name__,
    )  # loaded within the comparison, so that a failure is one of it alone
    replies = [
        pool.schedule(_limited, (*name, case, time_limit), timeout=CLOCK_LIMIT + time_limit)
        for case in cases
    ]
    results: list[bool | str] = []
    try:
        for reply in replies:
            try:
                equal = reply.result()
                results.append(UNKNOWN if equal is None else equal)
            except TimeoutError:
                results.append(TIMED_OUT)
            except ProcessExpired as error:
                results.append(TIMED_OUT if error.exitcode == -signal.SIGPROF else DIED)
            except Exception:  # out of memory, or beyond the libraries
                results.append(DIED)
    finally:
        for reply in replies[len(results) :]:
            reply.cancel()
    return results


_pools: dict[int, Any] = {}  # by their number of workers
_opening = threading.Lock()


def _pool(workers: int) -> Any:
    from pebble import ProcessPool

    with _opening:  # one for all threads
        if workers not in _pools:
            pool = ProcessPool(max_workers=workers, context=_context())
            pool.schedule(_prepare).result(
                CLOCK_LIMIT
            )  # or no worker can start, and none would ever answer
            _pools[workers] = pool
        return _pools[workers]


def _context() -> Any:
    """Return how workers are started: with one seed for the order of sets, by which SymPy's way to
    a result, and whether it arrives, would differ from worker to worker.
    """
    from loky.backend.context import LokyContext
    from loky.backend.process import LokyProcess

    # Unlike those of multiprocessing, its processes do not run the caller's script.
    context = LokyContext()
    context.Process = partial(LokyProcess, env={"PYTHONHASHSEED": "0"})
    return context


def close() -> None:
    """Kill all workers."""
    while _pools:
        _, pool = _pools.popitem()
        pool.stop()
        pool.join()


def _forget() -> None:
    """Leave the workers to the process that has forked this one."""
    global _opening
    _opening = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@cache
def _prepare() -> None:
    """Load the libraries and build the parser's tables, once a worker, and limit its memory from
    then on.
    """
    from capcal_lib.grading import symbolic

    logging.disable()
    symbolic.same("x", "2x")
    with suppress(
        ImportError, OSError, ValueError
    ):  # not Linux: the limits on size and time remain
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY_LIMIT
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _limited(module: str, name: str, case: tuple[Any, ...], time_limit: float) -> bool | None:
    """Compare in a worker, which the system kills after so much processor time."""
    _prepare()
    compare = pkgutil.resolve_name(f"{module}:{name}")
    if sys.platform == "win32":
        return compare(*case)
    signal.setitimer(signal.ITIMER_PROF, time_limit)
    try:
        return compare(*case)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
