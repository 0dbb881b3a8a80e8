"""Do many things at a time in a loop of its own, and give back what comes as it comes."""

import asyncio
import queue
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

PAUSE_SECONDS = 1.0
T = TypeVar("T")
R = TypeVar("R")


def stream_results(
    items: Iterable[T],
    do: Callable[[T], Awaitable[R]],
    *,
    in_flight: int,
    weigh: Callable[[T], int] = lambda _: 1,
    around: AbstractAsyncContextManager[object] | None = None,
    loop: BlockingPortal | None = None,
    pause: R | None = None,
) -> Iterator[R]:
    """Yield what ``do(item)`` returns for every item, as it comes, and ``pause``, if there is one,
    after each second in which nothing comes.

    At most ``in_flight`` are under way at a time, where an item counts for as many as ``weigh``
    says. Each begins before the next is taken, so results come while items are left. They run in
    ``loop``, which runs in another thread, or in one of their own, since this thread may have one
    (a notebook has), and within ``around``. What one of them raises, and closing the iterator, as
    an interrupt does, stops the work at once."""
    results: queue.SimpleQueue[tuple[R] | None] = queue.SimpleQueue()

    async def run() -> None:
        free = asyncio.Semaphore(in_flight)

        async def work(item: T) -> None:
            results.put((await do(item),))
            for _ in range(weigh(item)):
                free.release()

        async with around or nullcontext(), asyncio.TaskGroup() as group:
            for item in items:
                for _ in range(weigh(item)):
                    await free.acquire()
                group.create_task(work(item))
                await asyncio.sleep(0)

    with nullcontext(loop) if loop else start_blocking_portal(name="requests") as portal:
        running = portal.start_task_soon(run)
        running.add_done_callback(lambda _: results.put(None))
        try:
            while True:
                try:
                    result = results.get(timeout=None if pause is None else PAUSE_SECONDS)
                except queue.Empty:
                    if pause is not None:
                        yield pause
                    continue
                if result is None:
                    break
                yield result[0]
            if failure := running.exception():
                raise failure.exceptions[0] if isinstance(failure, ExceptionGroup) else failure
        finally:
            running.cancel()
